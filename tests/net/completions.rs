//! Connections whose events a completion queue brings.

use crate::common::{PATIENCE, Random, finish, forked, hang_guard, in_child, readable, until};
use crate::kit::{Client, KINDS, Kind, Listening, end, pattern, pool};
use paceline::cq::{CompletionQueue, Entry, EntryKind};
use paceline::net::{
    Address, Conn, ConnEvent, ConnEventKind, ConnHandler, ConnRef, Reason, Server, ServerBuilder,
    Timeout, Wanted, WriteStatus,
};
use paceline::{Error, Pool};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const NOT_AT_ALL: Duration = Duration::ZERO;
const TAG: u64 = 5;

/// A server, and the queue that brings what happens to its connections.
#[derive(Clone)]
struct Host {
    queue: CompletionQueue,
    server: Server,
}

impl Host {
    fn of(pool: &Pool, builder: ServerBuilder, wanted: Wanted) -> Self {
        let queue = CompletionQueue::new(pool).unwrap();
        let server = queue.serve(builder, wanted, TAG).unwrap();
        Self { queue, server }
    }

    fn start(
        pool: &Pool,
        kind: Kind,
        wanted: Wanted,
        settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        Self::of(pool, settings(Server::builder(pool).listen(kind.address())), wanted)
    }

    /// And a client that came and has sent this before the server began.
    fn beside_a_client(
        pool: &Pool,
        kind: Kind,
        wanted: Wanted,
        sent: &str,
        settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> (Self, Client) {
        let listener = Listening::at(kind);
        let mut client = Client::connect(&listener.address);
        client.send(sent);
        let inherited = listener.socket.try_clone().unwrap();
        let builder = settings(Server::builder(pool).listen_on(inherited));
        (Self::of(pool, builder, wanted), client)
    }

    fn connect(&self) -> Client {
        Client::connect(&self.server.addresses()[0])
    }

    fn connect_to(&self, address: &Address, wanted: Wanted) -> paceline::Result<ConnRef> {
        self.server.connect(address, self.server.handler(wanted).unwrap())
    }

    /// What comes within this time: None if nothing does.
    #[track_caller]
    fn within(&self, time: Duration) -> Option<EntryKind> {
        let mut entries = Vec::new();
        self.queue.wait(&mut entries, 1, time).unwrap();
        let entry = entries.pop()?;
        assert_eq!(entry.tag, TAG);
        Some(entry.kind)
    }

    /// The next event; there must be one.
    #[track_caller]
    fn next(&self) -> ConnEvent {
        match self.within(PATIENCE / 2) {
            Some(EntryKind::Conn(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    /// The next event, which must be of this kind.
    #[track_caller]
    fn expect(&self, kind: ConnEventKind) -> ConnEvent {
        let event = self.next();
        assert_eq!(event.kind(), kind);
        event
    }

    /// Data events until so many bytes have come.
    #[track_caller]
    fn expect_bytes(&self, bytes: &[u8]) {
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            got.extend_from_slice(self.expect(ConnEventKind::Data).bytes());
        }
        assert_eq!(got, bytes);
    }

    #[track_caller]
    fn expect_end(&self) {
        let end = self.within(PATIENCE / 2);
        assert!(matches!(end, Some(EntryKind::Ended)), "{end:?}");
    }

    #[track_caller]
    fn nothing_comes(&self) {
        let event = self.within(Duration::from_millis(20));
        assert!(event.is_none(), "{event:?}");
    }

    /// A thread that hands each event on until the server has ended, or the queue is closed, which it does then.
    fn handle(&self, mut handle: impl FnMut(ConnEvent) + Send + 'static) -> JoinHandle<()> {
        let queue = self.queue.clone();
        thread::spawn(move || {
            let mut entries = Vec::new();
            while queue.wait(&mut entries, 16, PATIENCE).is_ok() {
                for entry in entries.drain(..) {
                    match entry.kind {
                        EntryKind::Conn(event) => handle(event),
                        // It comes once, and others wait too.
                        EntryKind::Ended => queue.close(),
                        other => panic!("{other:?}"),
                    }
                }
            }
        })
    }

    /// The drain has begun: nothing new does.
    fn until_it_drains(&self) {
        until("the drain has begun", || {
            let handler = self.server.handler(Wanted::NONE).unwrap();
            matches!(self.server.connect("127.0.0.1:1", handler), Err(Error::ShutDown))
        });
    }
}

fn echo(event: &ConnEvent) {
    if event.kind() == ConnEventKind::Data {
        // It fails when the peer is gone, which its end says too.
        let _ = event.conn().write(event.bytes());
    }
}

#[test]
fn events_come_in_order_over_every_kind_of_stream() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let mut client = host.connect();
        let opened = host.expect(ConnEventKind::Opened);
        let id = opened.conn().id();
        drop(opened);
        client.send("hello");
        let data = host.expect(ConnEventKind::Data);
        assert_eq!((data.bytes(), data.conn().id()), (&b"hello"[..], id));
        data.conn().write_tracked(b"world", 7).unwrap();
        client.expect("world");
        drop(data);
        drop(host.expect(ConnEventKind::Written(7)));
        client.finish();
        let finished = host.expect(ConnEventKind::Finished);
        finished.conn().close().unwrap();
        drop(finished);
        let closed = host.expect(ConnEventKind::Closed(Reason::Peer));
        assert!(matches!(closed.conn().write(b"late"), Err(Error::Stale { .. })));
        drop(closed);
        end(&host.server);
        finish(&pool);
    }
}

#[test]
fn one_event_of_a_connection_is_out_at_a_time() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let (mut first, mut second) = (host.connect(), host.connect());
        let mut opened = vec![host.next(), host.next()];
        // What is not completed holds back what comes after it, and nothing of others.
        first.send("early");
        second.send("early");
        host.nothing_comes();
        let other = opened.pop().unwrap();
        drop(other);
        let data = host.expect(ConnEventKind::Data);
        assert_ne!(data.conn().id(), opened[0].conn().id());
        first.send(" and late");
        second.send(" and late");
        host.nothing_comes();
        drop((data, opened));
        let mut got: HashMap<u64, Vec<u8>> = HashMap::new();
        while got.values().map(Vec::len).sum::<usize>() < 2 * " and late".len() + "early".len() {
            let data = host.expect(ConnEventKind::Data);
            got.entry(data.conn().id().to_bits()).or_default().extend_from_slice(data.bytes());
        }
        let mut got: Vec<_> = got.into_values().collect();
        got.sort();
        assert_eq!(got, [&b" and late"[..], b"early and late"]);
        drop((first, second));
        let ended = host.handle(|_| ());
        end(&host.server);
        ended.join().unwrap();
        finish(&pool);
    }
}

#[test]
fn what_is_not_consumed_comes_again_with_more() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::NONE, |builder| builder);
        let mut client = host.connect();
        client.send("abcdef");
        let mut data = host.expect(ConnEventKind::Data);
        assert!(matches!(data.consume(7), Err(Error::Invalid { .. })));
        data.consume(2).unwrap();
        drop(data);
        // It is not shown again by itself.
        host.nothing_comes();
        client.send("gh");
        let mut data = host.expect(ConnEventKind::Data);
        assert_eq!(data.bytes(), b"cdefgh");
        // This comes while the event is out.
        client.send("ij");
        host.nothing_comes();
        data.consume(5).unwrap();
        drop(data);
        let mut data = host.expect(ConnEventKind::Data);
        assert_eq!(data.bytes(), b"hij");
        // A pause that ends while the event is out shows it again.
        data.conn().pause().unwrap();
        data.consume(0).unwrap();
        data.conn().resume().unwrap();
        // Whether the connection has seen that by now makes no difference.
        thread::sleep(Duration::from_millis(5));
        drop(data);
        let data = host.expect(ConnEventKind::Data);
        assert_eq!(data.bytes(), b"hij");
        drop(data);
        drop(client);
        end(&host.server);
        finish(&pool);
    }
}

#[test]
fn too_much_that_is_not_consumed_ends_the_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::CLOSED, |builder| builder.max_unconsumed(1000));
        let mut client = host.connect();
        client.send([b'x'; 1000]);
        let mut length = 0;
        while length < 1000 {
            let mut data = host.expect(ConnEventKind::Data);
            length = data.bytes().len();
            data.consume(0).unwrap();
        }
        client.send("y");
        let mut data = host.expect(ConnEventKind::Data);
        assert_eq!(data.bytes().len(), 1001);
        data.consume(0).unwrap();
        drop(data);
        drop(host.expect(ConnEventKind::Closed(Reason::Unconsumed)));
        assert_eq!(end(&host.server).closed.unconsumed, 1);
        finish(&pool);
    }
}

/// Goal: a host that takes its time holds its peers back, and memory does not grow. Method: the peer
/// sends as much as it can; what the host has taken in is bounded by what its buffers hold.
#[test]
fn a_slow_host_holds_the_peer_back() {
    const BUFFER: usize = 100_000;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::NONE, |builder| builder.receive_buffer(BUFFER));
        let address = &host.server.addresses()[0];
        let mut client = Client::with_buffers(address, Some(BUFFER)).unwrap();
        client.send("x");
        let held = host.expect(ConnEventKind::Data);
        client.0.set_nonblocking(true).unwrap();
        let bytes = pattern(8 << 20);
        let mut sent = 0;
        let mut quiet = 0;
        while quiet < 20 {
            match client.0.send(&bytes[sent..]) {
                Ok(count) => (sent, quiet) = (sent + count, 0),
                Err(_) => {
                    thread::sleep(Duration::from_millis(1));
                    quiet += 1;
                }
            }
        }
        assert!(sent < 2 << 20, "{sent} bytes were taken in");
        client.0.set_nonblocking(false).unwrap();
        let rest = bytes.clone();
        let sender = thread::spawn(move || {
            client.send(&rest[sent..]);
            client
        });
        drop(held);
        host.expect_bytes(&bytes);
        drop(sender.join().unwrap());
        end(&host.server);
        finish(&pool);
    }
}

#[test]
fn a_peer_that_has_finished_gets_its_answer() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::NONE, |builder| builder);
        let mut client = host.connect();
        client.send("question");
        client.finish();
        let data = host.expect(ConnEventKind::Data);
        // The end has come, and is not acted upon before this is completed.
        host.nothing_comes();
        data.conn().write(b"answer").unwrap();
        drop(data);
        assert_eq!(client.rest(), b"answer");
        assert_eq!(end(&host.server).closed.peer, 1);
        finish(&pool);
    }
}

#[test]
fn a_connection_can_be_refused() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let mut client = host.connect();
        client.send("not wanted");
        let mut opened = host.expect(ConnEventKind::Opened);
        opened.refuse("go away");
        drop(opened);
        assert_eq!(client.rest(), b"go away");
        drop(client);
        drop(host.expect(ConnEventKind::Closed(Reason::Refused)));
        assert_eq!(end(&host.server).closed.refused, 1);
        finish(&pool);
    }
}

#[test]
fn times_that_are_over_are_asked_about() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let idle = Duration::from_millis(20);
        let wanted = Wanted::TIMED_OUT | Wanted::CLOSED;
        let settings = |builder: ServerBuilder| builder.idle_timeout(idle);
        let (host, mut client) = Host::beside_a_client(&pool, kind, wanted, "x", settings);
        drop(host.expect(ConnEventKind::Data));
        let kind = Timeout::Idle;
        let mut over = host.expect(ConnEventKind::TimedOut(kind));
        over.keep();
        drop(over);
        drop(host.expect(ConnEventKind::TimedOut(kind)));
        drop(host.expect(ConnEventKind::Closed(Reason::TimedOut(kind))));
        assert!(client.rest().is_empty());
        assert_eq!(end(&host.server).closed.timed_out, 1);
        finish(&pool);
    }
}

#[test]
fn a_part_of_a_message_waits_only_so_long() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let limit = Duration::from_millis(20);
        let host = Host::start(&pool, kind, Wanted::CLOSED, |builder| builder.read_timeout(limit));
        let mut client = host.connect();
        client.send("a part");
        let mut data = host.expect(ConnEventKind::Data);
        data.consume(2).unwrap();
        drop(data);
        drop(host.expect(ConnEventKind::Closed(Reason::TimedOut(Timeout::Read))));
        end(&host.server);
        finish(&pool);
    }
}

/// Goal: a connection is idle from the end of what the host does, not from its last byte on, and is
/// not forgotten for that. Method: hold an event for several times the limit.
#[test]
fn a_connection_with_an_event_out_is_not_idle() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let idle = Duration::from_millis(10);
        let settings = |builder: ServerBuilder| builder.idle_timeout(idle);
        let (host, mut client) = Host::beside_a_client(&pool, kind, Wanted::CLOSED, "x", settings);
        let data = host.expect(ConnEventKind::Data);
        thread::sleep(5 * idle);
        data.conn().write(b"still here").unwrap();
        client.expect("still here");
        drop(data);
        drop(host.expect(ConnEventKind::Closed(Reason::TimedOut(Timeout::Idle))));
        end(&host.server);
        finish(&pool);
    }
}

#[test]
fn a_drain_waits_for_events_that_are_out() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::DRAINING, |builder| builder);
        let mut client = host.connect();
        client.send("question");
        let data = host.expect(ConnEventKind::Data);
        let drained = {
            let host = host.clone();
            thread::spawn(move || end(&host.server))
        };
        host.until_it_drains();
        thread::sleep(Duration::from_millis(5));
        data.conn().write(b"answer").unwrap();
        drop(data);
        drop(host.expect(ConnEventKind::Draining));
        assert_eq!(client.rest(), b"answer");
        drop(client);
        assert_eq!(drained.join().unwrap().closed.drained, 1);
        host.expect_end();
        finish(&pool);
    }
}

/// Goal: who drops a server waits for no entry of it, and hears of each connection's end and then of the server's.
#[test]
fn a_server_that_is_dropped_cuts_its_connections_off() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let mut clients: Vec<_> = (0..20).map(|_| host.connect()).collect();
        clients.iter_mut().for_each(|client| client.send("x"));
        let mut held = Vec::new();
        while held.len() < 20 {
            let event = host.next();
            if event.kind() == ConnEventKind::Opened {
                held.push(event);
            }
        }
        let Host { queue, server } = host;
        drop(server);
        drop(held);
        let (mut entries, mut closed) = (Vec::new(), 0);
        while !matches!(entries.last(), Some(Entry { kind: EntryKind::Ended, .. })) {
            entries.clear();
            queue.wait(&mut entries, 1, PATIENCE / 2).unwrap();
            closed += entries.iter().filter(|entry| is_cut_off(&entry.kind)).count();
        }
        assert_eq!(closed, 20);
        drop(clients);
        finish(&pool);
    }
}

fn is_cut_off(kind: &EntryKind) -> bool {
    matches!(kind, EntryKind::Conn(event) if event.kind() == ConnEventKind::Closed(Reason::CutOff))
}

#[test]
fn the_end_of_the_pool_is_told() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::CLOSED, |builder| builder);
        let mut client = host.connect();
        client.send("x");
        // One that is cut off before it has a handler has nobody to tell.
        drop(host.expect(ConnEventKind::Data));
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&reasons);
        let ended = host.handle(move |event| told.lock().unwrap().push(event.kind()));
        assert_eq!(pool.stop_now().connections, 1);
        ended.join().unwrap();
        assert_eq!(*reasons.lock().unwrap(), [ConnEventKind::Closed(Reason::PoolEnded)]);
        drop(client);
    }
}

/// Goal: who has finished is answered, though the host takes its time, and whether or not it wants to hear of that.
/// Method: an event that is held beyond the client's end, and a request that is admitted beyond its event.
#[test]
fn who_has_finished_is_answered() {
    let _guard = hang_guard();
    for (kind, wanted) in KINDS.into_iter().flat_map(|k| [(k, Wanted::NONE), (k, Wanted::FINISHED)])
    {
        let pool = pool(2);
        let host = Host::start(&pool, kind, wanted, |builder| builder);
        let mut client = host.connect();
        client.send("x");
        let data = host.expect(ConnEventKind::Data);
        client.0.shutdown(std::net::Shutdown::Write).unwrap();
        host.nothing_comes();
        data.conn().write(b"first").unwrap();
        let request = data.admit().unwrap();
        drop(data);
        if wanted == Wanted::FINISHED {
            drop(host.expect(ConnEventKind::Finished));
        }
        host.nothing_comes();
        request.conn().write(b" second").unwrap();
        request.answered();
        assert_eq!(client.rest(), b"first second");
        assert_eq!(end(&host.server).closed.peer, 1);
        finish(&pool);
    }
}

#[test]
fn a_thread_that_ends_completes_what_it_holds() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::NONE, |builder| builder);
        let mut client = host.connect();
        for round in 0..20_u8 {
            client.send([round]);
            let host = host.clone();
            let waiter = thread::spawn(move || assert_eq!(host.next().bytes(), [round]));
            waiter.join().unwrap();
        }
        drop(client);
        end(&host.server);
        finish(&pool);
    }
}

#[test]
fn the_descriptor_is_readable_while_there_is_something() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::CLOSED, |builder| builder);
        let fd = host.queue.descriptor().unwrap().as_raw_fd();
        assert!(!readable(fd, 0));
        let mut client = host.connect();
        for _ in 0..3 {
            client.send("x");
            assert!(readable(fd, 10_000));
            let data = host.expect(ConnEventKind::Data);
            // Its source may be listed in vain once more.
            assert!(host.within(NOT_AT_ALL).is_none());
            assert!(!readable(fd, 0));
            drop(data);
        }
        drop(client);
        assert!(readable(fd, 10_000));
        drop(host.expect(ConnEventKind::Closed(Reason::Peer)));
        end(&host.server);
        assert!(readable(fd, 10_000));
        host.expect_end();
        finish(&pool);
    }
}

#[test]
fn a_forked_child_is_told_and_touches_nothing() {
    let _guard = hang_guard();
    in_child(|| {
        for kind in KINDS {
            let pool = pool(2);
            let host = Host::start(&pool, kind, Wanted::NONE, |builder| builder);
            let mut client = host.connect();
            client.send("x");
            let held = host.expect(ConnEventKind::Data);
            let mut held = Some(held);
            let status = forked(|| {
                let mut events = Vec::new();
                assert!(matches!(host.queue.wait(&mut events, 1, NOT_AT_ALL), Err(Error::Forked)));
                assert!(matches!(host.queue.descriptor(), Err(Error::Forked)));
                drop((held.take(), host.clone()));
            });
            assert_eq!(status, 0);
            client.send("y");
            host.nothing_comes();
            drop(held);
            host.expect_bytes(b"y");
            drop(client);
            end(&host.server);
            finish(&pool);
        }
    });
}

#[test]
fn senseless_calls_are_refused() {
    let _guard = hang_guard();
    let pool = pool(2);
    let host = Host::start(&pool, Kind::Tcp, Wanted::NONE, |builder| builder);
    assert!(matches!(host.queue.wait(&mut Vec::new(), 0, NOT_AT_ALL), Err(Error::Invalid { .. })));
    let inside = {
        let queue = host.queue.clone();
        move || {
            assert_eq!(queue.wait(&mut Vec::new(), 1, NOT_AT_ALL).unwrap(), 0);
            queue.wait(&mut Vec::new(), 1, PATIENCE).unwrap_err()
        }
    };
    let told = pool.submit(inside).map_err(|_| ()).unwrap().wait().unwrap();
    assert!(matches!(told, Error::WouldDeadlock), "{told:?}");
    end(&host.server);
    let other = Server::builder(&pool).serve(|_| Nothing).unwrap();
    let error = other.handler(Wanted::ALL).err().unwrap();
    assert_eq!(
        error.to_string(),
        "server is one with handlers of its own, but must be one that a completion queue has started"
    );
    finish(&pool);
}

struct Nothing;

impl ConnHandler for Nothing {
    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

#[test]
fn outgoing_connections_come_too() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let echoes = Host::start(&pool, kind, Wanted::NONE, |builder| builder);
        let echoing = echoes.handle(|event| echo(&event));
        let wanted = Wanted::OPENED | Wanted::CLOSED;
        let host = Host::of(&pool, Server::builder(&pool), Wanted::NONE);
        let conn = host.connect_to(&echoes.server.addresses()[0], wanted).unwrap();
        assert_ne!(conn.write(b"to and fro").unwrap(), WriteStatus::AboveHighMark);
        assert_eq!(host.expect(ConnEventKind::Opened).conn().id(), conn.id());
        host.expect_bytes(b"to and fro");
        conn.close().unwrap();
        // The other end's end may be there before this one's is known.
        let closed = host.next().kind();
        assert!(
            matches!(closed, ConnEventKind::Closed(Reason::Local | Reason::Peer)),
            "{closed:?}"
        );
        // Nobody listens there, and the attempt has no other event. A Unix socket is told at once.
        let nobody = Listening::at(kind).address.clone();
        let refused = host.connect_to(&nobody, wanted);
        assert!(refused.is_err() || matches!(kind, Kind::Tcp | Kind::Tcp6), "{kind:?}");
        if refused.is_ok() {
            assert!(matches!(host.next().kind(), ConnEventKind::Closed(Reason::Failed(_))));
        }
        end(&host.server);
        end(&echoes.server);
        echoing.join().unwrap();
        finish(&pool);
    }
}

/// Goal: who waits for a server without listeners is told of the pool's end, as others are. Method: with no
/// connection at all, with one that the pool's end ends, and with one that had ended before.
#[test]
fn the_end_of_its_pool_is_told_without_listeners() {
    let _guard = hang_guard();
    for (kind, connections) in KINDS
        .into_iter()
        .flat_map(|kind| ["none", "one", "none any more"].map(|connections| (kind, connections)))
    {
        let listener = Listening::at(kind);
        let pool = pool(2);
        let host = Host::of(&pool, Server::builder(&pool), Wanted::NONE);
        if connections != "none" {
            let conn = host.connect_to(&listener.address, Wanted::OPENED).unwrap();
            drop(host.expect(ConnEventKind::Opened));
            if connections == "none any more" {
                conn.abort().unwrap();
                until("its end", || host.server.stats().open == 0);
            }
        }
        let sleeper = host.handle(|_| ());
        let waiter = {
            let host = host.clone();
            thread::spawn(move || host.server.wait())
        };
        host.nothing_comes();
        assert!(!waiter.is_finished() && !sleeper.is_finished());
        finish(&pool);
        waiter.join().unwrap().unwrap();
        sleeper.join().unwrap();
        let told = host.queue.wait(&mut Vec::new(), 1, PATIENCE).unwrap_err();
        assert!(matches!(told, Error::ShutDown), "{kind:?}, {connections}: {told:?}");
    }
}

/// Goal: with several host threads, batches, and answers that consume as they like, every byte comes
/// back once and in order, and the counters balance. Method: echo what is consumed; what is not comes
/// again with the next bytes, and at the end all is consumed.
#[test]
fn many_threads_and_clients_lose_nothing() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let seed = Arc::new(Mutex::new(Random::new(3)));
        let hosts: Vec<_> = (0..3)
            .map(|_| {
                let seed = Arc::clone(&seed);
                host.handle(move |mut event| {
                    let length = event.bytes().len() as u64;
                    if length > 0 {
                        // The last byte of a message must not be left over: nothing would follow it.
                        let left = seed.lock().unwrap().below(length);
                        let ends = event.bytes().last() == Some(&b'\n');
                        let taken = if ends { length } else { length - left } as usize;
                        event.conn().write(&event.bytes()[..taken]).unwrap();
                        event.consume(taken).unwrap();
                    }
                    if event.kind() == ConnEventKind::Finished {
                        let _ = event.conn().close();
                    }
                })
            })
            .collect();
        let address = host.server.addresses()[0].clone();
        let clients: Vec<_> = (0..8)
            .map(|number| {
                let address = address.clone();
                thread::spawn(move || {
                    let mut client = Client::connect(&address);
                    for round in 0..50 {
                        let mut bytes = vec![b'a' + number; 1 + 997 * round];
                        *bytes.last_mut().unwrap() = b'\n';
                        client.send(&bytes);
                        client.expect(&bytes);
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(end(&host.server).accepted, 8);
        hosts.into_iter().for_each(|host| host.join().unwrap());
        finish(&pool);
    }
}

#[test]
fn what_a_host_fails_at_ends_its_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::CLOSED, |builder| builder);
        let mut client = host.connect();
        client.send("x");
        let mut data = host.expect(ConnEventKind::Data);
        data.fail();
        drop(data);
        drop(host.expect(ConnEventKind::Closed(Reason::Panicked)));
        assert!(client.rest_or_reset().0.is_empty());
        assert_eq!(end(&host.server).closed.panicked, 1);
        finish(&pool);
    }
}

/// Goal: the last event of a connection whose socket has failed says why. Method: a peer that resets it.
#[test]
fn the_end_says_why_a_socket_has_failed() {
    let _guard = hang_guard();
    let pool = pool(2);
    let host = Host::start(&pool, Kind::Tcp, Wanted::CLOSED, |builder| builder);
    let mut client = host.connect();
    client.send("x");
    drop(host.expect(ConnEventKind::Data));
    client.reset();
    drop(host.expect(ConnEventKind::Closed(Reason::Failed(ErrorKind::ConnectionReset))));
    assert_eq!(end(&host.server).closed.failed, 1);
    finish(&pool);
}

/// Goal: a host that fails at a connection's last event is counted, as a hook `close` that panics is.
#[test]
fn what_a_host_fails_at_in_the_end_is_counted() {
    let _guard = hang_guard();
    let pool = pool(2);
    let host = Host::start(&pool, Kind::Tcp, Wanted::CLOSED, |builder| builder);
    for fails in [true, false] {
        drop(host.connect());
        let mut closed = host.expect(ConnEventKind::Closed(Reason::Peer));
        if fails {
            closed.fail();
        }
    }
    let stats = end(&host.server);
    assert_eq!((stats.closed.peer, stats.panics_in_close), (2, 1));
    finish(&pool);
}

/// Goal: requests are admitted while an event is out, counted until their admissions go, wherever that is,
/// and refused with the busy message beyond the maximum; a drain waits for them.
#[test]
fn requests_of_hosted_connections_are_admitted() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host =
            Host::start(&pool, kind, Wanted::NONE, |builder| builder.max_requests(1).busy("busy"));
        let counters = || {
            let stats = host.server.stats();
            (stats.requests, stats.answered, stats.requests_aborted, stats.busy, stats.in_work)
        };
        let mut client = host.connect();
        client.send("one");
        let data = host.expect(ConnEventKind::Data);
        let first = data.admit().unwrap();
        assert_eq!(first.conn().id(), data.conn().id());
        assert!(data.admit().is_none());
        client.expect("busy");
        drop(data);
        assert_eq!(counters(), (1, 0, 0, 1, 1));
        // Long after its event.
        first.conn().write(b"answer").unwrap();
        first.answered();
        client.expect("answer");
        client.send("two");
        let data = host.expect(ConnEventKind::Data);
        drop(data.admit().unwrap());
        let last = data.admit().unwrap();
        drop(data);
        assert_eq!(counters(), (3, 1, 1, 1, 1));
        let draining = {
            let host = host.clone();
            thread::spawn(move || host.server.drain(PATIENCE))
        };
        host.until_it_drains();
        last.conn().write(b"last").unwrap();
        last.answered();
        assert_eq!(client.rest(), b"last");
        assert!(draining.join().unwrap().drained);
        assert_eq!(counters(), (3, 2, 1, 1, 0));
        finish(&pool);
    }
}

/// Goal: a queue that is closed brings nothing more, and what is out or comes later is completed as if no handler said
/// anything: its bytes are consumed, and nothing waits for it.
#[test]
fn what_comes_to_a_closed_queue_is_completed() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let host = Host::start(&pool, kind, Wanted::ALL, |builder| builder);
        let mut client = host.connect();
        let held = host.expect(ConnEventKind::Opened);
        let sleeper = host.handle(|_| ());
        client.send("x");
        host.queue.close();
        sleeper.join().unwrap();
        drop(held);
        client.send("y");
        client.finish();
        assert!(client.rest().is_empty());
        assert_eq!(end(&host.server).closed.peer, 1);
        finish(&pool);
    }
}
