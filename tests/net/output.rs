//! Bytes out: in order, byte-exact, without waiting, and bounded.

use crate::common::{Count, LONG, hang_guard, until, with_longer_ticks};
use crate::kit::*;
use paceline::Error;
use paceline::net::{
    Accept, Conn, ConnHandler, Reason, Server, ServerBuilder, Timeout, WriteStatus,
};
use std::io::{IoSlice, Read};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// As small as the kernel makes them.
fn tiny(builder: ServerBuilder) -> ServerBuilder {
    builder.send_buffer(1).receive_buffer(1)
}

/// Goal: whatever way bytes take into the output, they come out as they went in. Method: buffers so
/// small that nearly every send is partial; a client that reads odd amounts.
#[test]
fn partial_writes_are_byte_exact() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let (bytes, inner) = (pattern(1 << 20), log.clone());
        let all = bytes.clone();
        let writes = move |conn: &Conn, asked: &[u8]| {
            for (index, piece) in all.chunks(7777).enumerate() {
                let (front, back) = piece.split_at(piece.len() / 3);
                match index % 4 {
                    0 => conn.write(piece),
                    1 => conn.write_vectored(&[IoSlice::new(front), IoSlice::new(back)]),
                    2 => conn.write_owned(piece.to_vec()),
                    _ => conn.write_tracked(piece, index as u64),
                }
                .unwrap();
            }
            conn.close();
            asked.len()
        };
        let builder = tiny(Server::builder(&pool).listen(kind.address()));
        let server = builder.serve(move |_| OnData(inner.clone(), writes.clone())).unwrap();
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        client.send("go");
        let mut got = Vec::new();
        let mut buffer = [0; 1013];
        loop {
            match client.0.read(&mut buffer).unwrap() {
                0 => break,
                count => got.extend_from_slice(&buffer[..count]),
            }
        }
        assert!(got == bytes, "{kind:?}: {} of {} bytes", got.len(), bytes.len());
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        end(&server);
    }
}

/// Goal: records of one thread stay whole and in order, however many threads write.
#[test]
fn many_threads_write_whole_records_in_order() {
    const THREADS: u8 = 4;
    const RECORDS: u32 = 2000;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, tiny);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        let conn = log.conn(0);
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let conn = conn.clone();
                thread::spawn(move || {
                    for record in 0..RECORDS {
                        let number = record.to_be_bytes();
                        let tag = [thread];
                        let pieces = [IoSlice::new(&tag), IoSlice::new(&number)];
                        conn.write_vectored(&pieces).unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0; THREADS as usize];
        let mut record = [0; 5];
        for _ in 0..u32::from(THREADS) * RECORDS {
            client.0.read_exact(&mut record).unwrap();
            let [thread, number @ ..] = record;
            assert_eq!(u32::from_be_bytes(number), next[thread as usize]);
            next[thread as usize] += 1;
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(client);
        end(&server);
    }
}

/// What the hooks around the output have said.
#[derive(Clone, Default)]
struct Told {
    writable: Count,
    written: Arc<Mutex<Vec<u64>>>,
    consumed: Count,
}

struct Pressing(Log, Told);

impl ConnHandler for Pressing {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    /// Each byte asks for a kilobyte; it stops where the output presses.
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            self.1.consumed.up();
            if conn.write(&[*byte; 1024]).unwrap() == WriteStatus::AboveHighMark {
                return index + 1;
            }
        }
        bytes.len()
    }

    fn writable(&mut self, _: &Conn) {
        self.1.writable.up();
    }

    fn notified(&mut self, _: &Conn) {
        self.0.notified.up();
    }

    fn written(&mut self, _: &Conn, token: u64) {
        self.1.written.lock().unwrap().push(token);
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

fn pressing(pool: &paceline::Pool, kind: Kind) -> (Server, Log, Told) {
    let (log, told) = (Log::new(), Told::default());
    let (inner, hooks) = (log.clone(), told.clone());
    let builder =
        tiny(Server::builder(pool).listen(kind.address())).output_marks(4096, 16384, 65536);
    let server = builder.serve(move |_| Pressing(inner.clone(), hooks.clone())).unwrap();
    (server, log, told)
}

/// Goal: a peer that does not read is not served more than the high mark; when it reads, it gets all,
/// including what had been received and held back.
#[test]
fn above_the_high_mark_nothing_is_read_or_shown() {
    const ASKED: usize = 500;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log, told) = pressing(&pool, kind);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        client.send([7; ASKED]);
        let conn = log.conn(0);
        until("the pressure", || conn.queued() > 4096);
        log.settle(&conn);
        assert!(conn.queued() <= 16384 + 1024, "{}", conn.queued());
        assert!(told.consumed.get() < ASKED as u64, "the rest is held back");
        assert_eq!(told.writable.get(), 0);
        client.expect(vec![7; ASKED * 1024]);
        assert!(told.writable.get() > 0);
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}

#[test]
fn a_write_beyond_the_maximum_is_refused_as_a_whole() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log, _) = pressing(&pool, kind);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        let conn = log.conn(0);
        let mut accepted = Vec::new();
        let refused = loop {
            let piece = [accepted.len() as u8; 5000];
            match conn.write(&piece) {
                Ok(_) => accepted.extend(piece),
                Err(error) => break error,
            }
        };
        let full = matches!(
            refused,
            Error::Full { what: "bytes of a connection's output", capacity: 65536 }
        );
        assert!(full, "{refused}");
        assert!(conn.queued() <= 65536);
        client.expect(accepted);
        conn.write(b"again").unwrap();
        client.expect("again");
        drop(client);
        end(&server);
    }
}

#[test]
fn tracked_bytes_are_told_when_the_kernel_has_them() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log, told) = pressing(&pool, kind);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        let conn = log.conn(0);
        let written = || told.written.lock().unwrap().clone();
        conn.write_tracked(b"a", 1).unwrap();
        until("the first", || written() == [1]);
        conn.write_tracked(&[b'b'; 50_000], 2).unwrap();
        conn.write_tracked(b"c", 3).unwrap();
        log.settle(&conn);
        assert_eq!(written(), [1], "the peer has not read");
        client.expect([&b"a"[..], &[b'b'; 50_000], b"c"].concat());
        until("the others", || written() == [1, 2, 3]);
        drop(client);
        end(&server);
    }
}

#[test]
fn a_peer_that_takes_nothing_has_stalled() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| tiny(builder).stall_timeout(TICK));
        let client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        // Once by a write from outside, once by an answer of the handler.
        log.conn(0).write(&vec![0; 1 << 20]).unwrap();
        assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Stall));
        drop(client);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        client.0.set_nonblocking(true).unwrap();
        until("the end", || {
            use std::io::Write;
            let _ = client.0.write(&[0; 4096]);
            log.closed.get() == 2
        });
        assert_eq!(log.reason(1), Reason::TimedOut(Timeout::Stall));
        assert_eq!(end(&server).closed.timed_out, 2);
    }
}

/// A slow reader is no stalled one: something moves all the time.
#[test]
fn a_peer_that_reads_slowly_is_served_to_the_end() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a slow reader gets everything", |tick| {
            let pool = pool(2);
            let settings = |builder| tiny(builder).stall_timeout(tick * 10).linger(LONG);
            let (server, log) = echo(&pool, kind, settings);
            let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
            let bytes = pattern(100_000);
            let conn = log.conn(0);
            conn.write(&bytes).unwrap();
            conn.close().unwrap();
            let served = bytes.chunks(2500).all(|piece| {
                thread::sleep(tick / 2);
                client.try_expect(piece)
            });
            if served {
                assert!(client.rest().is_empty());
                drop(client);
                assert_eq!(log.reason(0), Reason::Local);
            } else {
                assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Stall));
            }
            served
        });
    }
}

/// Goal: a reset must not destroy an answer. Method: the client sends what is never read, and looks
/// only when the server has long been through.
#[test]
fn closing_waits_for_what_was_sent_even_if_input_is_left() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let answer = |conn: &Conn, bytes: &[u8]| {
            conn.write(&[b'!'; 3000]).unwrap();
            conn.close();
            bytes.len()
        };
        let server = Server::builder(&pool)
            .listen(kind.address())
            .linger(LONG)
            .serve(move |_| OnData(inner.clone(), answer))
            .unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("first");
        client.expect([b'!'; 1]);
        client.send(vec![0; 100_000]);
        thread::sleep(TICK);
        assert_eq!(log.closed.get(), 0, "the peer has not ended yet");
        client.expect([b'!'; 2999]);
        assert!(client.rest().is_empty());
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        end(&server);
    }
}

#[test]
fn a_peer_that_never_answers_the_end_is_left_after_linger() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder.linger(TICK));
        let client = Client::connect(&server.addresses()[0]);
        log.conn(0).close().unwrap();
        assert_eq!(log.reason(0), Reason::Local);
        drop(client);
        end(&server);
    }
}

#[test]
fn abort_loses_what_is_queued_and_tcp_peers_see_a_reset() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, tiny);
        let mut client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        let conn = log.conn(0);
        conn.write(&vec![0; 1 << 20]).unwrap();
        conn.abort().unwrap();
        assert_eq!(log.reason(0), Reason::Aborted);
        let (got, reset) = client.rest_or_reset();
        assert!(got.len() < 1 << 20);
        assert_eq!(reset, matches!(kind, Kind::Tcp | Kind::Tcp6));
        end(&server);
    }
}

struct Later(Log);

impl ConnHandler for Later {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }

    /// The answer comes after the question's end, from another thread.
    fn finished(&mut self, conn: &Conn) {
        let conn = conn.handle();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            conn.write(&[b'a'; 200_000]).unwrap();
            conn.close().unwrap();
        });
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn a_peer_that_has_finished_can_be_answered() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address()).allow_half_open(true);
        let server = builder.serve(move |_| Later(inner.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("question");
        client.finish();
        assert_eq!(client.rest(), [b'a'; 200_000]);
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}

#[test]
fn half_closed_connections_go_on_reading() {
    let _guard = hang_guard();
    for (kind, by_handle) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let (pool, log, got) = (pool(2), Log::new(), Count::new());
        let (inner, count) = (log.clone(), got.clone());
        let data = move |conn: &Conn, bytes: &[u8]| {
            if count.get() == 0 {
                conn.write(b"enough").unwrap();
                match by_handle {
                    true => conn.handle().shutdown_write().unwrap(),
                    false => conn.shutdown_write(),
                }
                assert!(conn.write(b"more").is_err());
            }
            count.add(bytes.len() as u64);
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("x");
        assert_eq!(client.rest(), b"enough");
        client.send([0; 9999]);
        got.until(10_000);
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}
