//! What other threads and the handler itself have a connection called for.

use crate::common::{Count, hang_guard, until, with_longer_ticks};
use crate::kit::*;
use paceline::Error;
use paceline::net::{Accept, Conn, ConnHandler, ConnRef, Reason, Server, Timeout, TimeoutAction};
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone, Default)]
struct Seen {
    mail: Arc<Mutex<Vec<u8>>>,
    shown: Count,
    notified: Count,
}

/// Sends what lies in the mailbox when it is notified, and consumes input only then.
struct Mailbox {
    log: Log,
    seen: Seen,
    consumes: bool,
}

impl ConnHandler for Mailbox {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.log.open(conn);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.seen.shown.up();
        if !std::mem::take(&mut self.consumes) {
            return 0;
        }
        conn.write(bytes).unwrap();
        bytes.len()
    }

    fn notified(&mut self, conn: &Conn) {
        self.seen.notified.up();
        self.consumes = true;
        let mail = std::mem::take(&mut *self.seen.mail.lock().unwrap());
        conn.write(&mail).unwrap();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.log.close(reason);
    }
}

fn mailbox(kind: Kind) -> (paceline::Pool, Server, Log, Seen) {
    let (pool, log, seen) = (pool(2), Log::new(), Seen::default());
    let (inner, theirs) = (log.clone(), seen.clone());
    let factory =
        move |_: &Conn| Mailbox { log: inner.clone(), seen: theirs.clone(), consumes: false };
    let server = Server::builder(&pool).listen(kind.address()).serve(factory).unwrap();
    (pool, server, log, seen)
}

#[test]
fn a_notified_handler_sees_what_was_published_and_its_input_again() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (_pool, server, log, seen) = mailbox(kind);
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("kept back");
        seen.shown.until(1);
        let conn = log.conn(0);
        seen.mail.lock().unwrap().extend_from_slice(b"news, ");
        conn.notify().unwrap();
        client.expect("news, kept back");
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        until("the end", || !conn.is_open());
        assert!(matches!(conn.notify(), Err(Error::Stale { what: "connection" })));
        end(&server);
    }
}

/// Goal: whatever was published before a notification is seen, though many become one.
#[test]
fn no_notification_of_many_threads_is_lost() {
    const THREADS: u8 = 4;
    const EACH: usize = 2000;
    let _guard = hang_guard();
    for kind in KINDS {
        let (_pool, server, log, seen) = mailbox(kind);
        let mut client = Client::connect(&server.addresses()[0]);
        let conn = log.conn(0);
        let publish = |byte: u8, conn: &ConnRef| {
            for _ in 0..EACH {
                seen.mail.lock().unwrap().push(byte);
                conn.notify().unwrap();
            }
        };
        thread::scope(|scope| {
            for byte in 0..THREADS {
                let (conn, publish) = (conn.clone(), &publish);
                scope.spawn(move || publish(byte, &conn));
            }
        });
        let mut got = vec![0; EACH * usize::from(THREADS)];
        std::io::Read::read_exact(&mut client.0, &mut got).unwrap();
        for byte in 0..THREADS {
            assert_eq!(got.iter().filter(|other| **other == byte).count(), EACH);
        }
        assert!(seen.notified.get() <= got.len() as u64);
        drop(client);
        end(&server);
    }
}

/// Notified by its own factory, before it was opened.
struct Early(Log, Vec<&'static str>);

impl ConnHandler for Early {
    fn open(&mut self, _: &Conn) -> Accept {
        self.1.push("open");
        Accept::Yes
    }

    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn notified(&mut self, conn: &Conn) {
        self.1.push("notified");
        conn.write(self.1.join(" ").as_bytes()).unwrap();
        conn.close();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn a_notification_waits_for_open() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let factory = move |conn: &Conn| {
            conn.handle().notify().unwrap();
            Early(inner.clone(), Vec::new())
        };
        let server = Server::builder(&pool).listen(kind.address()).serve(factory).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        assert_eq!(client.rest(), b"open notified");
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        // One that is being made.
        let listener = Listening::at(kind);
        let early = Early(log.clone(), Vec::new());
        let conn = server.connect(&listener.address, early).unwrap();
        conn.notify().unwrap();
        assert_eq!(listener.accept().rest(), b"open notified");
        end(&server);
    }
}

/// Each byte is a command for its deadline, which comes after so long.
struct Timed(Log, TimeoutAction, Duration);

impl ConnHandler for Timed {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        for byte in bytes {
            match byte {
                b'+' => conn.set_deadline(Some(self.2)),
                b'-' => conn.set_deadline(None),
                b'!' => conn.set_deadline(Some(Duration::ZERO)),
                b'h' => conn.set_deadline(Some(Duration::from_secs(3600))),
                _ => conn.set_deadline(Some(Duration::MAX)),
            }
        }
        conn.write(bytes).unwrap();
        bytes.len()
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        assert_eq!(kind, Timeout::Deadline);
        conn.write(b"over").unwrap();
        self.1
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

fn timed(kind: Kind, patience: TimeoutAction, time: Duration) -> (paceline::Pool, Server, Log) {
    let (pool, log) = (pool(2), Log::new());
    let inner = log.clone();
    let factory = move |_: &Conn| Timed(inner.clone(), patience, time);
    let server = Server::builder(&pool).listen(kind.address()).serve(factory).unwrap();
    (pool, server, log)
}

#[test]
fn a_deadline_comes_once_unless_it_is_put_off_or_unset() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a deadline is put off", |tick| {
            let (_pool, server, log) = timed(kind, TimeoutAction::Keep, tick * 8);
            let mut client = Client::connect(&server.addresses()[0]);
            let mut unset = Client::connect(&server.addresses()[0]);
            let mut never = Client::connect(&server.addresses()[0]);
            for (client, command) in [(&mut unset, "+-"), (&mut never, "+m")] {
                client.send(command);
                client.expect(command);
            }
            for _ in 0..12 {
                client.send("+");
                let mut got = [0];
                client.0.read_exact(&mut got).unwrap();
                if &got == b"o" {
                    return false;
                }
                thread::sleep(tick);
            }
            client.expect("over");
            // It is unset now, and can be set again, also to a time before an alarm's.
            client.send("h");
            client.expect("h");
            client.send("!");
            client.expect("!over");
            thread::sleep(tick * 10);
            for mut client in [client, unset, never] {
                client.send("x");
                client.expect("x");
            }
            assert_eq!(log.reason(2), Reason::Peer);
            end(&server);
            true
        });
    }
}

#[test]
fn a_deadline_may_end_its_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (_pool, server, log) = timed(kind, TimeoutAction::Close, TICK);
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("!");
        let _ = client.rest_or_reset();
        drop(client);
        assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Deadline));
        assert_eq!(end(&server).closed.timed_out, 1);
    }
}
