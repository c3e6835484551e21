//! The proxy: bytes, ends and failures go through as they are.

use super::kit::{KINDS, Kind, Server, Stream, Upstream, eventually, fill, is_over};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

/// More than the kernel keeps for the four ends of a stream.
const MUCH: usize = 32 << 20;
/// What streams may cost in memory, with room for huge pages. A proxy that keeps what it reads has all of [`MUCH`].
const LITTLE: usize = MUCH / 4;
/// The library's read: what may wait in one direction.
const READ: usize = 64 << 10;

struct Proxy {
    server: Server,
    upstream: Upstream,
}

impl Proxy {
    /// Clients and upstream of one kind.
    fn start(kind: Kind) -> Self {
        let upstream = Upstream::start(kind);
        let flags = ["--threads", "2", "--to", &upstream.address];
        Self { server: Server::start(kind, "proxy", &flags), upstream }
    }

    /// Both ends of a new stream: the client and the upstream.
    fn stream(&self) -> (Stream, Stream) {
        (self.server.connect(), self.upstream.accept())
    }

    /// What its books say at the end: streams, to their ends, broken off, without upstream, and the
    /// most that waited.
    fn books(self) -> [usize; 5] {
        let books = self.server.stop("TERM");
        let numbers = books.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        numbers.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{books}"))
    }
}

/// Bytes that tell their places, and differ by direction.
fn pattern(seed: u32, size: usize) -> Vec<u8> {
    (0..size as u32 / 4).flat_map(|n| (n ^ seed.wrapping_mul(0x9e37_79b9)).to_le_bytes()).collect()
}

#[track_caller]
fn assert_same(got: &[u8], sent: &[u8]) {
    assert!(got == sent, "{} of {} bytes, or others", got.len(), sent.len());
}

fn read_all(mut stream: &Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an orderly end");
    bytes
}

fn send_all(mut stream: &Stream, bytes: &[u8]) {
    stream.write_all(bytes).expect("the other end reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
}

#[test]
fn both_directions_are_byte_exact_at_once_and_hold_little() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        let (up, down) = (pattern(1, MUCH), pattern(2, MUCH));
        let exchange = || {
            let (client, upstream) = proxy.stream();
            thread::scope(|scope| {
                scope.spawn(|| send_all(&client, &up));
                scope.spawn(|| send_all(&upstream, &down));
                scope.spawn(|| assert_same(&read_all(&upstream), &up));
                assert_same(&read_all(&client), &down);
            });
        };
        // What is kept for re-use is made in the first one.
        exchange();
        let before = proxy.server.allocated();
        exchange();
        let grown = proxy.server.allocated().saturating_sub(before);
        assert!(grown < LITTLE, "{grown} bytes more");
        let [streams, to_their_ends, broken_off, _, waited] = proxy.books();
        assert_eq!((streams, to_their_ends, broken_off), (2, 2, 0));
        assert!(waited <= READ, "{waited} bytes waited");
    }
}

/// Goal: nothing is lost or reordered when a reader is slow, and little waits for it. Method: both ends send until nothing
/// more is taken from them; then they read, in small pieces and with rests, while the rest is sent.
#[test]
fn slow_readers_hold_senders_back() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        let (client, upstream) = proxy.stream();
        let read_slowly = |mut stream: &Stream, bytes: &[u8]| {
            let (mut got, mut buffer) = (Vec::new(), [0; 50_000]);
            loop {
                let count = stream.read(&mut buffer).expect("an orderly end");
                got.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    return assert_same(&got, bytes);
                }
                thread::sleep(Duration::from_micros(500));
            }
        };
        let (up, down) = (pattern(3, MUCH), pattern(4, MUCH));
        let before = proxy.server.allocated();
        let stuck = |mut stream: &Stream, bytes: &[u8]| {
            stream.set_nonblocking(true).expect("a socket can be made non-blocking");
            let sent = fill(&mut stream, bytes);
            stream.set_nonblocking(false).expect("a socket can be made blocking");
            assert!(sent < bytes.len(), "nothing has stopped the sender");
            sent
        };
        let sent = thread::scope(|scope| {
            let up = scope.spawn(|| stuck(&client, &up));
            (stuck(&upstream, &down), up.join().expect("no panic"))
        });
        let grown = proxy.server.allocated().saturating_sub(before);
        assert!(grown < LITTLE, "{grown} bytes more");
        let (down_sent, up_sent) = sent;
        thread::scope(|scope| {
            scope.spawn(|| send_all(&client, &up[up_sent..]));
            scope.spawn(|| send_all(&upstream, &down[down_sent..]));
            scope.spawn(|| read_slowly(&upstream, &up));
            read_slowly(&client, &down);
        });
        let [_, to_their_ends, _, _, waited] = proxy.books();
        assert_eq!(to_their_ends, 1);
        assert!(waited > 0, "no reader was too slow");
        assert!(waited <= READ, "{waited} bytes waited");
    }
}

/// Goal: one direction does not wait for the other. Method: a client that reads nothing before it has
/// sent everything, to an upstream that has filled all buffers the other way.
#[test]
fn a_client_may_send_much_before_it_reads() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        let (client, upstream) = proxy.stream();
        let (up, down) = (pattern(5, MUCH), pattern(6, MUCH));
        thread::scope(|scope| {
            scope.spawn(|| send_all(&upstream, &down));
            scope.spawn(|| assert_same(&read_all(&upstream), &up));
            send_all(&client, &up);
            assert_same(&read_all(&client), &down);
        });
    }
}

#[test]
fn a_half_close_is_one_at_the_other_end() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        let (mut client, mut upstream) = proxy.stream();
        send_all(&client, b"question");
        assert_same(&read_all(&upstream), b"question");
        upstream.write_all(b"an answer after the end").expect("that direction is open");
        let mut answer = [0; 23];
        client.read_exact(&mut answer).expect("that direction is open");
        assert_same(&answer, b"an answer after the end");
        upstream.shutdown(Shutdown::Write).expect("it is open");
        assert_eq!(client.read(&mut [0]).expect("an orderly end"), 0);
        let [streams, to_their_ends, ..] = proxy.books();
        assert_eq!((streams, to_their_ends), (1, 1));
    }
}

#[test]
fn a_reset_is_one_at_the_other_end() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        for upstream_resets in [false, true] {
            let (client, upstream) = proxy.stream();
            let (one, mut other) =
                if upstream_resets { (upstream, client) } else { (client, upstream) };
            other.write_all(b"unread").expect("it is open");
            eventually("it has come", || one.peek().is_ok_and(|count| count == 6));
            // Closed with bytes unread, a socket resets its connection.
            drop(one);
            match kind {
                Kind::Tcp => {
                    let error = other.read(&mut [0]).expect_err("the stream is broken off");
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{upstream_resets}");
                }
                // A Unix socket cannot be made to tell of more than an end.
                Kind::Unix => assert!(is_over(&mut other), "{upstream_resets}"),
            }
        }
        assert_eq!(proxy.books()[..4], [2, 0, 2, 0], "{kind:?}");
    }
}

#[test]
fn an_upstream_that_refuses_is_told() {
    if super::is_missing() {
        return;
    }
    // The port of a client is in use, and nobody listens there.
    let somebody = Upstream::start(Kind::Tcp);
    let client = TcpStream::connect(&somebody.address).expect("it listens");
    let to = client.local_addr().expect("it is connected").to_string();
    let mut command = super::program("proxy");
    command.args(["--threads", "2", "--to", &to]).stderr(Stdio::piped());
    let mut server = Server::spawn(Kind::Tcp, command);
    // The reset may come while this is still connecting.
    let read = Stream::connect(&server.address).and_then(|mut client| client.read(&mut [0]));
    let error = read.expect_err("there is nobody to talk to");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.error(), format!("proxy: no upstream at {to}: connection refused\n"));
    let expected =
        "1 streams: 0 to their ends, 1 broken off, of them 1 without upstream; up to 0 bytes";
    let books = server.stop("TERM");
    assert!(books.starts_with(expected), "{books}");
}

/// Whether somebody listens there, without connecting.
fn listens(address: &str) -> bool {
    match address.strip_prefix("unix:") {
        Some(path) => fs::exists(path).expect("it can be looked for"),
        None => {
            let port: u16 =
                address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
            let local = format!(":{port:04X} 00000000:0000 0A ");
            fs::read_to_string("/proc/net/tcp").expect("there is a table").contains(&local)
        }
    }
}

#[test]
fn an_interrupt_lets_streams_go_on_to_their_ends() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let proxy = Proxy::start(kind);
        let (mut client, mut upstream) = proxy.stream();
        let address = proxy.server.address.clone();
        assert!(listens(&address));
        let talking = thread::spawn(move || {
            eventually("the proxy does not listen", || !listens(&address));
            client.write_all(b"still").expect("it is open");
            let mut bytes = [0; 5];
            upstream.read_exact(&mut bytes).expect("it is open");
            send_all(&upstream, b"here");
            assert_same(&read_all(&client), b"here");
        });
        let [_, to_their_ends, broken_off, ..] = proxy.books();
        talking.join().expect("the stream went on");
        assert_eq!((to_their_ends, broken_off), (1, 0));
    }
}
