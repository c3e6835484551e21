//! Datagrams: in batches, from and to whom they should, and nothing after the end.

use crate::common::{
    Count, Gate, LONG, PATIENCE, allow_cpus, allowed_cpus, finish, hang_guard, in_child,
    quiet_panic, until,
};
use crate::kit::{TICK, pool};
use paceline::net::{
    DatagramHandler, Datagrams, Reason, UdpBuilder, UdpReport, UdpSocket, UdpStats,
};
use paceline::{Error, Pool};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const LOOPBACKS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

/// A datagram's bytes, its source, and its length.
type Noted = (Vec<u8>, SocketAddr, usize);

/// What the handlers of one test have seen.
#[derive(Clone, Default)]
struct Seen {
    datagrams: Arc<Mutex<Vec<Noted>>>,
    count: Count,
    batches: Arc<Mutex<Vec<usize>>>,
    errors: Arc<Mutex<Vec<ErrorKind>>>,
    reasons: Arc<Mutex<Vec<Reason>>>,
    closed: Count,
}

impl Seen {
    #[track_caller]
    fn reason(&self) -> Reason {
        self.closed.until(1);
        let reasons = self.reasons.lock().unwrap();
        assert_eq!(reasons.len(), 1);
        reasons[0]
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        self.datagrams.lock().unwrap().iter().map(|(bytes, ..)| bytes.clone()).collect()
    }
}

/// Notes what comes, and passes it to a closure.
struct Noting<F>(Seen, F);

impl<F> DatagramHandler for Noting<F>
where
    F: FnMut(&UdpSocket, Datagrams<'_>) + Send + 'static,
{
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
        self.0.batches.lock().unwrap().push(datagrams.len());
        for datagram in &datagrams {
            let noted = (datagram.bytes.to_vec(), datagram.from, datagram.length);
            self.0.datagrams.lock().unwrap().push(noted);
        }
        (self.1)(socket, datagrams);
        self.0.count.add(datagrams.len() as u64);
    }

    fn error(&mut self, _: &UdpSocket, kind: ErrorKind) {
        self.0.errors.lock().unwrap().push(kind);
    }

    fn close(&mut self, socket: &UdpSocket, reason: Reason) {
        assert!(!socket.is_open());
        self.0.reasons.lock().unwrap().push(reason);
        self.0.closed.up();
    }
}

fn noting(builder: UdpBuilder) -> (UdpSocket, Seen) {
    let seen = Seen::default();
    let nothing = |_: &UdpSocket, _: Datagrams<'_>| ();
    (builder.serve(Noting(seen.clone(), nothing)).unwrap(), seen)
}

fn at(pool: &Pool, address: &str) -> UdpBuilder {
    UdpSocket::builder(pool).bind(address)
}

fn client(address: &str) -> std::net::UdpSocket {
    let client = std::net::UdpSocket::bind(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// Sends so many of one byte, which nobody receives now, and waits until they are there. (A kernel that is
/// busy delivers later, and those that were sent from different CPUs in another order.)
fn send_and_wait(client: &std::net::UdpSocket, socket: &UdpSocket, many: u8) {
    thread::scope(|scope| {
        scope.spawn(|| {
            allow_cpus(&allowed_cpus()[..1]);
            client.send_to(&[0], socket.address()).unwrap();
            until("the first of them", || waiting(socket) > 0);
            let each = waiting(socket);
            (1..many).for_each(|index| {
                client.send_to(&[index], socket.address()).unwrap();
            });
            until("the others", || waiting(socket) == each * u64::from(many));
        });
    });
}

/// Bytes of the kernel's that hold datagrams for it.
fn waiting(socket: &UdpSocket) -> u64 {
    let file = if socket.address().is_ipv4() { "/proc/net/udp" } else { "/proc/net/udp6" };
    let port = format!(":{:04X}", socket.address().port());
    // A line can be passed over while sockets come and go: the table is not read in one piece.
    loop {
        let table = std::fs::read_to_string(file).unwrap();
        let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if let Some(line) = table.lines().map(fields).find(|fields| fields[1].ends_with(&port)) {
            return u64::from_str_radix(line[4].split_once(':').unwrap().1, 16).unwrap();
        }
    }
}

/// All that had arrived is handled.
#[track_caller]
fn end(socket: &UdpSocket) -> UdpStats {
    let report = socket.drain(LONG);
    assert!(report.drained && !report.requested, "{report:?}");
    report.stats
}

#[test]
fn an_echo_of_datagrams() {
    let _guard = hang_guard();
    for address in LOOPBACKS {
        let (pool, seen) = (pool(2), Seen::default());
        let echo = |socket: &UdpSocket, datagrams: Datagrams<'_>| {
            for datagram in &datagrams {
                socket.send_to(datagram.bytes, datagram.from).unwrap();
            }
        };
        let socket = at(&pool, address).serve(Noting(seen.clone(), echo)).unwrap();
        let client = client(address);
        let mut buffer = vec![0; 1 << 16];
        for size in [0, 1, 100, 1472, 9000, 65_000] {
            let bytes: Vec<_> = (0..size).map(|at| at as u8).collect();
            client.send_to(&bytes, socket.address()).unwrap();
            let (count, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..count], from), (&bytes[..], socket.address()));
        }
        let source = client.local_addr().unwrap();
        assert!(seen.datagrams.lock().unwrap().iter().all(|(_, from, _)| *from == source));
        let stats = end(&socket);
        assert_eq!(seen.reason(), Reason::Drained);
        let bytes = 1 + 100 + 1472 + 9000 + 65_000;
        assert_eq!((stats.received, stats.received_bytes), (6, bytes));
        assert_eq!((stats.sent, stats.sent_bytes), (6, bytes));
        assert_eq!((stats.truncated, stats.errors, stats.refused, stats.failed), (0, 0, 0, 0));
        drop(socket);
        finish(&pool);
    }
}

/// Goal: what has arrived together is shown together, as many as were asked for. Method: the first
/// datagram's hook waits until the others are there.
#[test]
fn batches_are_as_large_as_they_may_be() {
    let _guard = hang_guard();
    for (batch, expected) in [(1, vec![1; 11]), (4, vec![1, 4, 4, 2]), (64, vec![1, 10])] {
        let (pool, seen, gate) = (pool(1), Seen::default(), Gate::new());
        let waits = gate.clone();
        let wait = move |_: &UdpSocket, _: Datagrams<'_>| waits.wait();
        let builder = at(&pool, "127.0.0.1:0").batch(batch);
        let socket = builder.serve(Noting(seen.clone(), wait)).unwrap();
        let client = client("127.0.0.1:0");
        client.send_to(b"first", socket.address()).unwrap();
        gate.until_entered(1);
        send_and_wait(&client, &socket, 10);
        gate.open();
        seen.count.until(11);
        assert_eq!(*seen.batches.lock().unwrap(), expected);
        let order: Vec<_> = (0..10).map(|index| vec![index]).collect();
        assert_eq!(seen.bytes()[1..], order);
        end(&socket);
    }
}

#[test]
fn what_is_too_long_is_truncated_and_says_so() {
    let _guard = hang_guard();
    for address in LOOPBACKS {
        let pool = pool(1);
        let (socket, seen) = noting(at(&pool, address).max_datagram(5));
        let client = client(address);
        for bytes in [&b"1234"[..], b"12345", b"123456", b"1234567"] {
            client.send_to(bytes, socket.address()).unwrap();
        }
        seen.count.until(4);
        let seen: Vec<_> =
            seen.datagrams.lock().unwrap().iter().map(|(b, _, l)| (b.clone(), *l)).collect();
        let full = b"12345".to_vec();
        let expected = [(b"1234".to_vec(), 4), (full.clone(), 5), (full.clone(), 6), (full, 7)];
        assert_eq!(seen, expected);
        let stats = end(&socket);
        assert_eq!((stats.truncated, stats.received_bytes), (2, 22));
    }
}

#[test]
fn a_connected_socket_hears_its_peer_only() {
    let _guard = hang_guard();
    for address in LOOPBACKS {
        let pool = pool(1);
        let (peer, stranger) = (client(address), client(address));
        let (socket, seen) = noting(UdpSocket::builder(&pool).connect(peer.local_addr().unwrap()));
        assert_eq!(socket.peer(), Some(peer.local_addr().unwrap()));
        assert!(socket.address().ip().is_loopback(), "the system has chosen");
        stranger.send_to(b"strange", socket.address()).unwrap();
        socket.send(b"hello").unwrap();
        let mut buffer = [0; 9];
        assert_eq!(peer.recv_from(&mut buffer).unwrap(), (5, socket.address()));
        peer.send_to(b"hi", socket.address()).unwrap();
        seen.count.until(1);
        assert_eq!(end(&socket).received, 1);
        assert_eq!(seen.bytes(), [b"hi"]);
    }
}

/// Nobody listens at the peer: the kernel is told so, and tells.
#[test]
fn errors_are_told_and_the_socket_goes_on() {
    in_child(|| {
        for address in LOOPBACKS {
            let pool = pool(1);
            let peer = client(address);
            let to = peer.local_addr().unwrap();
            drop(peer);
            let (socket, seen) = noting(UdpSocket::builder(&pool).connect(to));
            socket.send(b"anybody?").unwrap();
            until("the error", || !seen.errors.lock().unwrap().is_empty());
            assert_eq!(*seen.errors.lock().unwrap(), [ErrorKind::ConnectionRefused]);
            let peer = std::net::UdpSocket::bind(to).unwrap();
            peer.send_to(b"now", socket.address()).unwrap();
            seen.count.until(1);
            assert_eq!(end(&socket).errors, 1);
        }
    });
}

#[test]
fn a_batch_is_sent_in_order() {
    const MANY: usize = 150;
    let _guard = hang_guard();
    for address in LOOPBACKS {
        let pool = pool(1);
        let (from, _) = noting(at(&pool, address));
        let (to, seen) = noting(at(&pool, address));
        let numbers: Vec<_> = (0..MANY).map(|number| number.to_be_bytes()).collect();
        let all: Vec<_> = numbers.iter().map(|bytes| (&bytes[..], to.address())).collect();
        assert_eq!(from.send_batch(&all).unwrap(), MANY);
        assert_eq!(from.send_batch(&[]).unwrap(), 0);
        seen.count.until(MANY as u64);
        assert_eq!(seen.bytes(), numbers);
        let stats = end(&from);
        assert_eq!((stats.sent, stats.sent_bytes), (MANY as u64, 8 * MANY as u64));
        end(&to);
    }
}

/// Goal: of a batch with one that cannot be sent, those before it are sent, and the error is its own.
#[test]
fn a_batch_stops_where_one_cannot_be_sent() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (from, _) = noting(at(&pool, "127.0.0.1:0"));
    let (to, seen) = noting(at(&pool, "127.0.0.1:0"));
    let too_long = vec![0; 70_000];
    let all = [(&b"a"[..], to.address()), (&too_long, to.address()), (b"b", to.address())];
    // More than go out in one call.
    let many = [&all[..2], &[all[2]; 100]].concat();
    assert_eq!(from.send_batch(&many).unwrap(), 1);
    let error = from.send_batch(&all[1..]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot send to {}: ", to.address())), "{error}");
    assert_eq!(from.send_batch(&all[2..]).unwrap(), 1);
    seen.count.until(2);
    assert_eq!(seen.bytes(), [b"a", b"b"]);
    assert_eq!(end(&from).failed, 1);
    end(&to);
}

#[test]
fn many_threads_send_by_one_socket() {
    const THREADS: u8 = 4;
    const EACH: u8 = 100;
    let _guard = hang_guard();
    let pool = pool(2);
    let (to, seen) = noting(at(&pool, "127.0.0.1:0").receive_buffer(1 << 20));
    let (from, _) = noting(at(&pool, "127.0.0.1:0"));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (from, to) = (from.clone(), to.address());
            thread::spawn(move || {
                for number in 0..EACH {
                    from.send_to(&[thread, number], to).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    seen.count.until(u64::from(THREADS) * u64::from(EACH));
    for thread in 0..THREADS {
        let own = seen.bytes().into_iter().filter(|bytes| bytes[0] == thread);
        assert!(own.map(|bytes| bytes[1]).eq(0..EACH), "in the order of their thread");
    }
    end(&from);
    end(&to);
}

#[test]
fn a_group_is_joined_and_left() {
    const LOOPBACK: u32 = 1;
    let _guard = hang_guard();
    let pool = pool(1);
    let group: IpAddr = Ipv4Addr::new(239, 255, 77, 7).into();
    let (member, seen) = noting(UdpSocket::builder(&pool).bind("0.0.0.0:0"));
    let to = SocketAddr::new(group, member.address().port());
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    member.join_multicast(group, LOOPBACK).unwrap();
    sender.send_to(b"to all", to).unwrap();
    seen.count.until(1);
    let again = member.join_multicast(group, LOOPBACK).unwrap_err().to_string();
    assert!(again.starts_with("cannot join 239.255.77.7: "), "{again}");
    member.leave_multicast(group, LOOPBACK).unwrap();
    sender.send_to(b"to nobody", to).unwrap();
    // Behind it in the same queue.
    sender.send_to(b"to one", (Ipv4Addr::LOCALHOST, member.address().port())).unwrap();
    seen.count.until(2);
    assert_eq!(seen.bytes(), [&b"to all"[..], b"to one"]);
    let no_group = member.join_multicast(Ipv4Addr::LOCALHOST.into(), LOOPBACK).unwrap_err();
    assert!(matches!(no_group, Error::Os { .. }));
    end(&member);

    // Over IPv6, and without an echo to this host.
    let group: IpAddr = "ff12::77:7".parse().unwrap();
    let (member, seen) = noting(UdpSocket::builder(&pool).bind("[::]:0"));
    member.join_multicast(group, LOOPBACK).unwrap();
    member.leave_multicast(group, LOOPBACK).unwrap();
    assert!(matches!(member.leave_multicast(group, LOOPBACK), Err(Error::Os { .. })));
    end(&member);
    assert_eq!(seen.count.get(), 0);
}

#[test]
fn broadcasting_must_be_allowed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (receiver, seen) = noting(UdpSocket::builder(&pool).bind("0.0.0.0:0"));
    let to = SocketAddr::from(([127, 255, 255, 255], receiver.address().port()));
    let (forbidden, _) = noting(at(&pool, "127.0.0.1:0"));
    let Err(Error::Os { source, .. }) = forbidden.send_to(b"x", to) else { panic!() };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied);
    let (allowed, _) = noting(at(&pool, "127.0.0.1:0").broadcast(true));
    allowed.send_to(b"to all", to).unwrap();
    seen.count.until(1);
    for socket in [receiver, forbidden, allowed] {
        end(&socket);
    }
}

#[test]
fn several_sockets_may_share_a_port() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (first, one) = noting(at(&pool, "127.0.0.1:0").reuse_port(true));
    let address = first.address();
    assert!(matches!(UdpSocket::builder(&pool).bind(address).serve(Quiet), Err(Error::Os { .. })));
    let (second, other) = noting(UdpSocket::builder(&pool).bind(address).reuse_port(true));
    // The kernel deals by the source: enough of them, and both get some.
    until("both have some", || {
        client("127.0.0.1:0").send_to(b"x", address).unwrap();
        one.count.get() > 0 && other.count.get() > 0
    });
    end(&first);
    end(&second);
}

struct Quiet;

impl DatagramHandler for Quiet {
    fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {}
}

// --- ends -----------------------------------------------------------------------------------------

#[test]
fn after_close_nothing_is_sent_and_the_port_is_free() {
    in_child(|| {
        for address in LOOPBACKS {
            let pool = pool(1);
            let (socket, seen) = noting(at(&pool, address));
            let to = socket.address();
            socket.close().unwrap();
            assert!(!socket.is_open());
            let stale = |error| matches!(error, Error::Stale { what: "socket" });
            assert!(stale(socket.send_to(b"x", to).unwrap_err()));
            assert!(stale(socket.send_batch(&[(b"x", to)]).unwrap_err()));
            assert!(stale(socket.join_multicast(Ipv4Addr::LOCALHOST.into(), 0).unwrap_err()));
            assert!(stale(socket.close().unwrap_err()));
            socket.wait().unwrap();
            assert_eq!(seen.reason(), Reason::Local);
            std::net::UdpSocket::bind(to).unwrap();
            assert!(socket.drain(LONG).drained, "there is nothing left");
        }
    });
}

#[test]
fn the_last_clone_closes_and_the_hooks_do_not_count() {
    let _guard = hang_guard();
    let (pool, seen) = (pool(1), Seen::default());
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let keeping = move |socket: &UdpSocket, _: Datagrams<'_>| {
        *keep.lock().unwrap() = Some(socket.clone());
    };
    let socket = at(&pool, "127.0.0.1:0").serve(Noting(seen.clone(), keeping)).unwrap();
    let clone = socket.clone();
    client("127.0.0.1:0").send_to(b"x", socket.address()).unwrap();
    seen.count.until(1);
    drop(socket);
    assert!(clone.is_open());
    drop(clone);
    assert_eq!(seen.reason(), Reason::CutOff);
    assert!(!kept.lock().unwrap().take().unwrap().is_open());
}

/// Goal: a drain handles all that has arrived. Method: the first hook waits until the rest has come
/// and the drain has begun.
#[test]
fn a_drain_handles_what_has_arrived() {
    let _guard = hang_guard();
    for address in LOOPBACKS {
        let (pool, seen, gate) = (pool(2), Seen::default(), Gate::new());
        let waits = gate.clone();
        let wait = move |_: &UdpSocket, _: Datagrams<'_>| waits.wait();
        let socket = at(&pool, address).batch(3).serve(Noting(seen.clone(), wait)).unwrap();
        let client = client(address);
        client.send_to(b"first", socket.address()).unwrap();
        gate.until_entered(1);
        send_and_wait(&client, &socket, 100);
        let drains = thread::spawn({
            let socket = socket.clone();
            move || socket.drain(LONG)
        });
        gate.open();
        let report = drains.join().unwrap();
        assert!(report.drained);
        assert_eq!((report.stats.received, seen.reason()), (101, Reason::Drained));
    }
}

#[test]
fn what_is_not_handled_in_time_is_cut_off() {
    let _guard = hang_guard();
    let (pool, seen, gate) = (pool(2), Seen::default(), Gate::new());
    let waits = gate.clone();
    let wait = move |_: &UdpSocket, _: Datagrams<'_>| waits.wait();
    let socket = at(&pool, "127.0.0.1:0").batch(1).serve(Noting(seen.clone(), wait)).unwrap();
    let client = client("127.0.0.1:0");
    for _ in 0..2 {
        client.send_to(b"x", socket.address()).unwrap();
    }
    gate.until_entered(1);
    let report = socket.drain(TICK);
    assert!(!report.drained && !report.requested);
    assert!(!socket.is_open());
    gate.open();
    assert_eq!(seen.reason(), Reason::CutOff);
    socket.wait().unwrap();
    assert_eq!(seen.count.get(), 1, "the second is dropped");
}

#[test]
fn a_drain_inside_a_hook_is_a_request() {
    let _guard = hang_guard();
    let (pool, seen) = (pool(1), Seen::default());
    let drains = |socket: &UdpSocket, _: Datagrams<'_>| {
        assert!(matches!(socket.wait(), Err(Error::WouldDeadlock)));
        let UdpReport { drained: false, requested: true, .. } = socket.drain(LONG) else {
            panic!()
        };
    };
    let socket = at(&pool, "127.0.0.1:0").serve(Noting(seen.clone(), drains)).unwrap();
    client("127.0.0.1:0").send_to(b"x", socket.address()).unwrap();
    socket.wait().unwrap();
    assert_eq!((seen.reason(), seen.count.get()), (Reason::Drained, 1));
}

#[test]
fn a_hook_may_close_its_socket() {
    let _guard = hang_guard();
    let (pool, seen, gate) = (pool(1), Seen::default(), Gate::new());
    let waits = gate.clone();
    let closes = move |socket: &UdpSocket, _: Datagrams<'_>| {
        waits.wait();
        socket.close().unwrap();
    };
    let builder = at(&pool, "127.0.0.1:0").batch(1);
    let socket = builder.serve(Noting(seen.clone(), closes)).unwrap();
    let client = client("127.0.0.1:0");
    for _ in 0..9 {
        client.send_to(b"x", socket.address()).unwrap();
    }
    gate.open();
    socket.wait().unwrap();
    assert_eq!((seen.reason(), seen.count.get()), (Reason::Local, 1), "what is behind is dropped");
}

#[test]
fn a_panic_closes_the_socket() {
    let _guard = hang_guard();
    let (pool, seen) = (pool(1), Seen::default());
    let panics = |_: &UdpSocket, _: Datagrams<'_>| quiet_panic("on purpose");
    let socket = at(&pool, "127.0.0.1:0").serve(Noting(seen.clone(), panics)).unwrap();
    client("127.0.0.1:0").send_to(b"x", socket.address()).unwrap();
    socket.wait().unwrap();
    assert_eq!(seen.reason(), Reason::Panicked);
    assert!(!socket.is_open());
    drop(socket);
    finish(&pool);
}

#[test]
fn a_pool_that_ends_ends_its_sockets() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (socket, seen) = noting(at(&pool, "127.0.0.1:0"));
    finish(&pool);
    assert_eq!(seen.reason(), Reason::PoolEnded);
    assert!(!socket.is_open());
    socket.wait().unwrap();
    assert!(matches!(at(&pool, "127.0.0.1:0").serve(Quiet), Err(Error::ShutDown)));
}

/// Goal: whoever sends while the socket is closed gets an answer, and every socket ends once.
#[test]
fn closing_races_with_senders_and_arrivals() {
    let _guard = hang_guard();
    let pool = pool(2);
    for round in 0..200_u32 {
        let (socket, seen) = noting(at(&pool, "127.0.0.1:0"));
        let to = socket.address();
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let socket = socket.clone();
                thread::spawn(move || {
                    let mut sent = 0;
                    // To itself, so that there are arrivals.
                    while socket.send_to(b"x", to).is_ok() {
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        seen.count.until(u64::from(round % 7));
        match round % 3 {
            0 => socket.close().unwrap(),
            1 => drop(socket.drain(LONG)),
            _ => drop(socket.drain(Duration::ZERO)),
        }
        let sent: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
        socket.wait().unwrap();
        let stats = socket.stats();
        assert_eq!((stats.sent, stats.received), (sent, seen.count.get()));
        assert!(stats.received <= sent);
        seen.reason();
    }
    finish(&pool);
}

// --- bad input ------------------------------------------------------------------------------------

#[test]
fn what_cannot_be_is_named() {
    let _guard = hang_guard();
    let pool = pool(1);
    let error = |builder: UdpBuilder| builder.serve(Quiet).unwrap_err().to_string();
    let here = || at(&pool, "127.0.0.1:0");
    for (builder, expected) in [
        (here().batch(0), "batch is 0, but must be 1 to 64"),
        (here().batch(65), "batch is 65, but must be 1 to 64"),
        (here().max_datagram(0), "max_datagram is 0, but must be 1 to 65535"),
        (here().multicast_ttl(256), "multicast_ttl is 256, but must be 0 to 255"),
        (here().send_buffer(0), "send_buffer is 0, but must be 1 to 1073741824"),
        (
            at(&pool, "unix:/tmp/x"),
            "address is unix:/tmp/x, but must be an IP address with a port, or *:port",
        ),
        (
            UdpSocket::builder(&pool),
            "address is missing, but must be told: what to bind, or whom to connect to",
        ),
    ] {
        assert_eq!(error(builder), expected);
    }
    let taken = client("127.0.0.1:0").local_addr().unwrap();
    let (socket, _) = noting(UdpSocket::builder(&pool).bind(taken));
    let again = error(UdpSocket::builder(&pool).bind(taken));
    assert!(again.starts_with(&format!("cannot bind {taken}: ")), "{again}");
    let unconnected = socket.send(b"x").unwrap_err().to_string();
    assert_eq!(unconnected, "peer is missing, but must be told when the socket is built: connect");
    let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = UdpSocket::builder(&pool).bind_to(stream).serve(Quiet).unwrap_err().to_string();
    assert!(refused.ends_with("it is not one for UDP datagrams"), "{refused}");
}
