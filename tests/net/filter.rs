//! A filter between socket and handler. This one adds 128 to plain bytes, which are below that, and
//! knows four more: `!` opens, and is answered with `?`; `.` ends a direction; `x` is an error, and
//! answered with `e`. Before it was opened, it keeps what is written.

use crate::common::{finish, hang_guard, until};
use crate::kit::*;
use paceline::net::{
    Accept, Conn, ConnHandler, Filter, FilterRead, Listen, Reason, Server, WriteStatus,
};
use std::io::{self, ErrorKind, IoSlice};
use std::thread;

#[derive(Default)]
struct Shift {
    open: bool,
    kept: Vec<u8>,
}

fn shifted(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    bytes.as_ref().iter().map(|byte| byte ^ 128).collect()
}

impl Filter for Shift {
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        wire: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        for byte in bytes {
            match byte {
                b'!' => {
                    self.open = true;
                    wire.push(b'?');
                    wire.extend(std::mem::take(&mut self.kept));
                }
                b'.' => return Ok(FilterRead::Ended),
                b'x' => {
                    wire.push(b'e');
                    return Err(ErrorKind::InvalidData.into());
                }
                byte => plain.push(byte ^ 128),
            }
        }
        Ok(FilterRead::Open)
    }

    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        if bytes == b"unspeakable" {
            return Err(ErrorKind::InvalidInput.into());
        }
        let place = if self.open { wire } else { &mut self.kept };
        place.extend(shifted(bytes));
        Ok(())
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        wire.push(b'.');
    }

    fn cut_off(&mut self) -> io::Result<()> {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

fn listen(kind: Kind) -> Listen {
    Listen::on(kind.address()).filter(|_| Shift::default())
}

fn filtered_echo(pool: &paceline::Pool, kind: Kind) -> (Server, Log) {
    let log = Log::new();
    let inner = log.clone();
    let builder = Server::builder(pool).listen(listen(kind));
    (builder.serve(move |_| Echo(inner.clone())).unwrap(), log)
}

#[test]
fn bytes_are_turned_both_ways() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = filtered_echo(&pool, kind);
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("!");
        client.expect("?");
        for size in [1, 64, 5000, 65536, 1_000_000] {
            let bytes: Vec<u8> = pattern(size).iter().map(|byte| byte | 128).collect();
            let mut reader = Client(client.0.try_clone().unwrap());
            let sent = bytes.clone();
            let sender = thread::spawn(move || {
                client.send(sent);
                client
            });
            reader.expect(&bytes);
            client = sender.join().unwrap();
        }
        client.send(".");
        client.expect(".");
        assert!(client.rest().is_empty());
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
        finish(&pool);
    }
}

/// Goal: no way to write goes past the filter. Method: all of them, by the handler and by another
/// thread; what was written before the peer opened is kept, in order.
#[test]
fn whatever_way_bytes_are_written_they_are_turned() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let data = |conn: &Conn, bytes: &[u8]| {
            conn.write(b"a").unwrap();
            conn.write_vectored(&[IoSlice::new(b"b"), IoSlice::new(b"c")]).unwrap();
            conn.write_owned(b"d".to_vec()).unwrap();
            conn.write_tracked(b"e", 1).unwrap();
            conn.write(&[b'f'; 100_000]).unwrap();
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(listen(kind));
        let server = builder.serve(move |_| OnData(inner.clone(), data)).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        let conn = log.conn(0);
        conn.write(b"early ").unwrap();
        client.send("!");
        client.expect([b"?", &shifted("early ")[..]].concat());
        client.send(shifted("go"));
        client.expect(shifted("abcde"));
        client.expect(shifted([b'f'; 100_000]));
        conn.write(b"1").unwrap();
        conn.write_vectored(&[IoSlice::new(b"2"), IoSlice::new(b"3")]).unwrap();
        conn.write_owned(vec![b'4'; 100_000]).unwrap();
        conn.write_tracked(b"5", 2).unwrap();
        client.expect(shifted("123"));
        client.expect(shifted([b'4'; 100_000]));
        client.expect(shifted("5"));
        conn.shutdown_write().unwrap();
        client.expect(".");
        conn.close().unwrap();
        assert!(client.rest().is_empty(), "its last words are said once");
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        end(&server);
    }
}

#[test]
fn what_a_filter_makes_counts_for_the_marks() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).output_marks(1000, 2000, 1 << 20).send_buffer(1);
        let builder = builder.listen(listen(kind));
        let server = builder.serve(move |_| Echo(inner.clone())).unwrap();
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        client.send("!");
        client.expect("?");
        let (conn, bytes) = (log.conn(0), vec![b'z'; 12_000]);
        assert_eq!(conn.write(&bytes).unwrap(), WriteStatus::AboveHighMark);
        assert!(conn.queued() > 2000);
        assert!(conn.write(&[0; 1 << 20]).is_err(), "beyond the maximum");
        // What comes meanwhile is answered later, and in order.
        client.send(shifted("later"));
        client.expect(shifted(&bytes));
        client.expect(shifted("later"));
        drop(client);
        end(&server);
    }
}

/// Keeps what comes, and answers at the end.
struct AtEnd(Log, Vec<u8>);

impl ConnHandler for AtEnd {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        self.1.extend_from_slice(bytes);
        bytes.len()
    }

    fn finished(&mut self, conn: &Conn) {
        conn.write(&self.1).unwrap();
        conn.close();
    }

    fn error(&mut self, _: &Conn, kind: ErrorKind) {
        assert!(matches!(kind, ErrorKind::InvalidData | ErrorKind::UnexpectedEof), "{kind:?}");
        assert_eq!(self.1, b"shown", "what came before it");
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

fn at_end(pool: &paceline::Pool, kind: Kind) -> (Server, Log) {
    let log = Log::new();
    let inner = log.clone();
    let builder = Server::builder(pool).listen(listen(kind));
    (builder.serve(move |_| AtEnd(inner.clone(), Vec::new())).unwrap(), log)
}

#[test]
fn an_end_that_the_filter_tells_is_one() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = at_end(&pool, kind);
        let mut client = Client::connect(&server.addresses()[0]);
        client.send([b"!", &shifted("question")[..], b"."].concat());
        client.expect([b"?", &shifted("question")[..], b"."].concat());
        assert!(client.rest().is_empty());
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}

#[test]
fn what_the_filter_cannot_turn_fails_the_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = at_end(&pool, kind);
        for (last, reason) in [("x", ErrorKind::InvalidData), ("", ErrorKind::UnexpectedEof)] {
            let mut client = Client::connect(&server.addresses()[0]);
            client.send([b"!", &shifted("shown")[..]].concat());
            client.expect("?");
            match last.is_empty() {
                true => client.finish(),
                // It may be gone before there is anything else to do.
                false => client.send(last),
            }
            let (got, _) = client.rest_or_reset();
            assert!(got.is_empty() || got == b"e", "nothing is answered but that: {got:?}");
            let index = usize::from(last.is_empty());
            assert_eq!(log.reason(index), Reason::Failed(reason));
        }
        let stats = end(&server);
        assert_eq!(stats.closed.failed, 2);
    }
}

/// Goal: what cannot be turned is an error of the write, and the end of the connection. Method: by the
/// handler, and by another thread, whose write nothing else of the connection would see.
#[test]
fn what_cannot_be_turned_to_be_written_fails_the_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let data = |conn: &Conn, bytes: &[u8]| {
            assert!(conn.write(b"unspeakable").is_err());
            assert!(conn.write(b"behind the gap").is_err());
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(listen(kind));
        let server = builder.serve(move |_| OnData(inner.clone(), data)).unwrap();
        for index in 0..2 {
            let mut client = Client::connect(&server.addresses()[0]);
            client.send("!");
            client.expect("?");
            let conn = log.conn(index);
            if index == 0 {
                client.send(shifted("go"));
            } else {
                assert!(conn.write_vectored(&[IoSlice::new(b"unspeakable")]).is_err());
            }
            assert_eq!(log.reason(index), Reason::Failed(ErrorKind::InvalidInput));
            assert!(client.rest_or_reset().0.is_empty());
            assert!(conn.write(b"behind the gap").is_err());
        }
        assert_eq!(end(&server).closed.failed, 2);
        finish(&pool);
    }
}

#[test]
fn a_drain_lets_the_filter_say_its_last_words() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = filtered_echo(&pool, kind);
        let mut client = Client::connect(&server.addresses()[0]);
        client.send([b"!", &shifted("hello")[..]].concat());
        client.expect([b"?", &shifted("hello")[..]].concat());
        let drained = server.clone();
        let draining = thread::spawn(move || end(&drained));
        assert_eq!(client.rest(), b".");
        drop(client);
        draining.join().unwrap();
        assert_eq!(log.reason(0), Reason::Drained);
    }
}

#[test]
fn listeners_without_a_filter_have_none_and_nobody_is_refused_in_plain() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let server = Server::builder(&pool)
            .refusal("plain")
            .listen(listen(kind).max_connections(1).refusal("plain, too"))
            .listen(Listen::on(kind.address()).max_connections(1))
            .serve(move |_| Echo(inner.clone()))
            .unwrap();
        let mut clients: Vec<_> = server.addresses().iter().map(Client::connect).collect();
        clients[1].send("as it is");
        clients[1].expect("as it is");
        until("both are in", || server.stats().open == 2);
        let rest = |index: usize| Client::connect(&server.addresses()[index]).rest_or_reset().0;
        assert_eq!((rest(0), rest(1)), (Vec::new(), b"plain".to_vec()));
        drop(clients);
        end(&server);
    }
}
