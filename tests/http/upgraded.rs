//! Connections of another protocol whose events a completion queue brings.

use crate::common::{LONG, PATIENCE, finish, hang_guard};
use crate::http_kit::*;
use crate::kit::{KINDS, Kind, pool};
use paceline::cq::{CompletionQueue, EntryKind};
use paceline::http::{Http, Request, Response};
use paceline::net::{Address, ConnEvent, ConnEventKind, Reason, Server, Wanted};
use paceline::{Error, Pool};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

/// A server that has no answer yet to what it is asked, and one that has no connections of its own.
struct Servers {
    http: Http,
    address: Address,
    asked: Receiver<Response>,
    queue: CompletionQueue,
    host: Server,
}

impl Servers {
    fn start(pool: &Pool, kind: Kind) -> Self {
        let (sender, asked) = channel();
        let (http, address) = serve(pool, kind, |builder| {
            let sender = Mutex::new(sender);
            // No alarm is to bring what nothing else does.
            let builder = builder.head_timeout(HOUR).keep_alive_timeout(HOUR);
            builder.route("GET", "/", move |_: &Request, response: Response| {
                sender.lock().unwrap().send(response).unwrap();
            })
        });
        let queue = CompletionQueue::new(pool).unwrap();
        let host = queue.serve(Server::builder(pool), Wanted::NONE, 0).unwrap();
        Self { http, address, asked, queue, host }
    }

    /// A client whose request was answered with 101, after all of this had come.
    fn upgrade(&self, sent: &str, wanted: Wanted) -> Asker {
        let mut asker = Asker::connect(&self.address);
        asker.send(sent);
        let response = self.asked.recv_timeout(PATIENCE).unwrap();
        // From here on the answer is one that comes later.
        until_stats(&self.http, "the end of its handler", |stats| stats.in_work == 1);
        response.upgrade("x", self.host.handler(wanted).unwrap()).unwrap();
        assert_eq!(asker.answer().status, 101);
        asker
    }

    /// What comes within this time: None if nothing does.
    #[track_caller]
    fn within(&self, time: Duration) -> Option<EntryKind> {
        let mut entries = Vec::new();
        self.queue.wait(&mut entries, 1, time).unwrap();
        entries.pop().map(|entry| entry.kind)
    }

    #[track_caller]
    fn expect(&self, kind: ConnEventKind) -> ConnEvent {
        let event = match self.within(PATIENCE / 2) {
            Some(EntryKind::Conn(event)) => event,
            other => panic!("{other:?}"),
        };
        assert_eq!(event.kind(), kind, "{event:?}");
        event
    }

    #[track_caller]
    fn expect_data(&self, bytes: &[u8]) -> ConnEvent {
        let event = self.expect(ConnEventKind::Data);
        assert_eq!(event.bytes().escape_ascii().to_string(), bytes.escape_ascii().to_string());
        event
    }

    #[track_caller]
    fn nothing_comes(&self) {
        let event = self.within(Duration::from_millis(20));
        assert!(event.is_none(), "{event:?}");
    }

    #[track_caller]
    fn end(self, pool: &Pool) {
        end(&self.http);
        assert!(self.host.drain(LONG).drained);
        let end = self.within(PATIENCE / 2);
        assert!(matches!(end, Some(EntryKind::Ended)), "{end:?}");
        finish(pool);
    }
}

#[test]
fn what_came_with_the_request_comes_though_nothing_follows() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let servers = Servers::start(&pool, kind);
        for wanted in [Wanted::ALL, Wanted::CLOSED] {
            let mut asker = servers.upgrade(&format!("{UPGRADE}early"), wanted);
            if wanted == Wanted::ALL {
                drop(servers.expect(ConnEventKind::Opened));
            }
            let data = servers.expect_data(b"early");
            data.conn().write(b"answer").unwrap();
            data.conn().close().unwrap();
            drop(data);
            assert_eq!(asker.rest(), b"answer");
            drop(asker);
            let closed = servers.expect(ConnEventKind::Closed(Reason::Local));
            assert!(matches!(closed.conn().write(b"late"), Err(Error::Stale { .. })));
        }
        servers.end(&pool);
    }
}

/// Goal: what the host does not consume comes again with what follows, and not before. Method: an upgrade
/// with bytes behind it, and one without, where bytes come while its opening is with the host.
#[test]
fn what_is_not_consumed_comes_again_only_with_more() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let servers = Servers::start(&pool, kind);
        for early in ["abc", ""] {
            let mut asker = servers.upgrade(&format!("{UPGRADE}{early}"), Wanted::ALL);
            let opened = servers.expect(ConnEventKind::Opened);
            if early.is_empty() {
                asker.send("abc");
            }
            drop(opened);
            let mut data = servers.expect_data(b"abc");
            data.consume(1).unwrap();
            drop(data);
            servers.nothing_comes();
            asker.send("d");
            drop(servers.expect_data(b"bcd"));
            asker.client.finish();
            let finished = servers.expect(ConnEventKind::Finished);
            finished.conn().close().unwrap();
            drop(finished);
            drop(servers.expect(ConnEventKind::Closed(Reason::Peer)));
        }
        servers.end(&pool);
    }
}

/// Goal: the end is brought when the last connection of another server has, and not before; a handler that was
/// given to none holds nothing up.
#[test]
fn entries_come_as_long_as_connections_of_other_servers_are_open() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let servers = Servers::start(&pool, kind);
        drop(servers.host.handler(Wanted::ALL).unwrap());
        let mut asker = servers.upgrade(UPGRADE, Wanted::CLOSED);
        assert!(servers.host.drain(LONG).drained);
        servers.nothing_comes();
        asker.send("after the drain");
        drop(servers.expect_data(b"after the drain"));
        drop(asker);
        drop(servers.expect(ConnEventKind::Closed(Reason::Peer)));
        servers.end(&pool);
    }
}
