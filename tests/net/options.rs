//! Options of sockets, looked at where the kernel keeps them.

use crate::common::{hang_guard, in_child, until};
use crate::kit::*;
use paceline::net::{Address, Listen, Server, ServerBuilder};
use socket2::SockRef;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

/// What the kernel has at the server's end of a connection: its delay, its keep-alive, and its buffers
/// for sending and receiving.
#[derive(Debug, PartialEq)]
struct Options(bool, Option<Duration>, usize, usize);

/// All descriptors of this process.
fn numbers() -> Vec<RawFd> {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    numbers.map(|fd| fd.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// Looks for it among all descriptors of this process, which should be alone here.
#[allow(unsafe_code, reason = "looks at descriptors by number")]
fn options_of(client: SocketAddr) -> Options {
    for number in numbers() {
        // SAFETY: only asked about; a number that is not open any more is an error.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = SockRef::from(&fd);
        let Some(peer) = socket.peer_addr().ok().and_then(|peer| peer.as_socket()) else {
            continue;
        };
        if peer == client {
            let alive = socket.keepalive().unwrap();
            return Options(
                socket.tcp_nodelay().unwrap(),
                alive.then(|| socket.tcp_keepalive_time().unwrap()),
                socket.send_buffer_size().unwrap(),
                socket.recv_buffer_size().unwrap(),
            );
        }
    }
    panic!("no descriptor has {client} at its other end");
}

#[test]
fn options_are_set_at_accepted_and_at_outgoing_connections() {
    in_child(|| {
        let _guard = hang_guard();
        for kind in [Kind::Tcp, Kind::Tcp6] {
            let (pool, log) = (pool(1), Log::new());
            let inner = log.clone();
            let time = Duration::from_secs(600);
            let all = |listen: Listen| listen.no_delay(false).keep_alive(time);
            let server = Server::builder(&pool)
                .send_buffer(20_000)
                .receive_buffer(30_000)
                .listen(kind.address())
                .listen(all(Listen::on(kind.address())).send_buffer(40_000))
                .serve(move |_| Echo(inner.clone()))
                .unwrap();
            let [plain, all] = server.addresses() else { panic!() };
            // Linux doubles what it is told.
            let expected = [
                (plain, Options(true, None, 40_000, 60_000)),
                (all, Options(false, Some(time), 80_000, 60_000)),
            ];
            for (index, (address, options)) in expected.into_iter().enumerate() {
                let client = Client::connect(address);
                log.opened.until(index as u64 + 1);
                let own = client.0.local_addr().unwrap().as_socket().unwrap();
                assert_eq!(options_of(own), options);
            }
            log.closed.until(2);
            // An outgoing one has the server's.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let conn = server.connect(address, Echo(log.clone())).unwrap();
            log.opened.until(3);
            assert_eq!(options_of(address), Options(true, None, 40_000, 60_000));
            conn.close().unwrap();
            drop(listener.accept().unwrap());
            end(&server);
        }
    });
}

/// Goal: what is within the range reaches the kernel. Method: its ends, and a part of a second.
#[test]
fn keep_alive_is_rounded_up_to_whole_seconds() {
    in_child(|| {
        let _guard = hang_guard();
        for (told, had) in [(1_000, 1), (1_001, 2), (32_766_001, 32_767), (32_767_000, 32_767)] {
            let pool = pool(1);
            let time = Duration::from_millis(told);
            let (server, log) = echo(&pool, Kind::Tcp, |builder| builder.keep_alive(time));
            let client = Client::connect(&server.addresses()[0]);
            log.opened.until(1);
            let own = client.0.local_addr().unwrap().as_socket().unwrap();
            assert_eq!(options_of(own).1, Some(Duration::from_secs(had)), "{time:?}");
            drop(client);
            end(&server);
        }
    });
}

/// The send buffers and receive buffers of all sockets here whose other end is at this address, or which
/// are there themselves and are connected.
#[allow(unsafe_code, reason = "looks at descriptors by number")]
fn buffers_of(address: &Address, outgoing: bool) -> Vec<(usize, usize)> {
    let wanted = kernels(address).1;
    let look = |number: RawFd| {
        // SAFETY: only asked about; a number that is not open any more is an error.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = SockRef::from(&fd);
        let (peer, own) = (socket.peer_addr().ok()?, socket.local_addr().ok()?);
        let is_it = if outgoing { peer == wanted } else { own == wanted };
        is_it.then(|| (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap()))
    };
    numbers().into_iter().filter_map(look).collect()
}

/// Goal: buffers of Unix sockets are as they were told, at both kinds of ends. Method: a Unix socket takes over
/// nothing from its listener, so each is looked at where the kernel has it; clients have what the system gives.
#[test]
fn buffers_are_set_at_unix_sockets_too() {
    in_child(|| {
        for kind in [Kind::Unix, Kind::Abstract] {
            let (pool, log) = (pool(1), Log::new());
            let inner = log.clone();
            let server = Server::builder(&pool)
                .send_buffer(20_000)
                .receive_buffer(30_000)
                .listen(kind.address())
                .listen(Listen::on(kind.address()).send_buffer(40_000))
                .serve(move |_| Echo(inner.clone()))
                .unwrap();
            // Linux doubles what it is told.
            for (index, buffers) in [(40_000, 60_000), (80_000, 60_000)].into_iter().enumerate() {
                let address = &server.addresses()[index];
                let client = Client::connect(address);
                log.opened.until(index as u64 + 1);
                assert_eq!(buffers_of(address, false), [buffers], "{address}");
                drop(client);
                log.closed.until(index as u64 + 1);
            }
            let listener = Listening::at(kind);
            let conn = server.connect(&listener.address, Echo(log.clone())).unwrap();
            log.opened.until(3);
            assert_eq!(buffers_of(&listener.address, true), [(40_000, 60_000)]);
            conn.close().unwrap();
            drop(listener.accept());
            end(&server);
        }
    });
}

/// Goal: a small buffer of a Unix socket holds back what its peer does not read.
#[test]
fn a_small_send_buffer_of_a_unix_socket_leaves_the_rest_in_the_output() {
    const BYTES: usize = 100_000;
    let _guard = hang_guard();
    for kind in [Kind::Unix, Kind::Abstract] {
        let pool = pool(1);
        let queued = |small: bool| {
            let settings = |builder: ServerBuilder| match small {
                true => builder.send_buffer(1),
                false => builder.send_buffer(1 << 20),
            };
            let (server, log) = echo(&pool, kind, settings);
            let mut client = Client::connect(&server.addresses()[0]);
            let conn = log.conn(0);
            conn.write(&[b'x'; BYTES]).unwrap();
            let queued = conn.queued();
            client.expect([b'x'; BYTES]);
            drop(client);
            end(&server);
            queued
        };
        // Whoever may have no more than the system's maximum has that, which is more than this.
        assert_eq!(queued(false), 0, "{kind:?}");
        assert!(queued(true) > BYTES - 20_000, "{kind:?}");
    }
}

/// Goal: a program that this process starts has none of its sockets. Method: the kernel says of each, listening,
/// accepted or outgoing, that it is closed then.
#[test]
fn no_socket_is_left_to_programs_that_are_started() {
    in_child(|| {
        for kind in KINDS {
            let (pool, log) = (pool(1), Log::new());
            let inner = log.clone();
            let builder = Server::builder(&pool).listen(kind.address());
            let server = builder.serve(move |_| Echo(inner.clone())).unwrap();
            let conn = server.connect(&server.addresses()[0], Echo(log.clone())).unwrap();
            log.opened.until(2);
            let others = numbers().into_iter().filter(|number| *number > 2);
            let sockets = others.filter(|number| {
                let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
                link.is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
            });
            let flags = sockets.map(|number| {
                let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
                i32::from_str_radix(flags.trim(), 8).unwrap()
            });
            let closed: Vec<_> = flags.map(|flags| flags & libc::O_CLOEXEC != 0).collect();
            assert_eq!(closed, [true; 3], "{kind:?}");
            conn.close().unwrap();
            end(&server);
        }
    });
}

#[test]
fn several_servers_may_share_a_port_if_all_say_so() {
    in_child(|| {
        for kind in [Kind::Tcp, Kind::Tcp6] {
            let pool = pool(2);
            let sharing = |builder: ServerBuilder| builder.reuse_port(true);
            let (first, one) = echo(&pool, kind, sharing);
            let address = first.addresses()[0].clone();
            let alone = Server::builder(&pool).listen(&address).serve(|_| Echo(Log::new()));
            let message = alone.unwrap_err().to_string();
            assert!(message.starts_with(&format!("cannot listen on {address}: ")), "{message}");
            let other = Log::new();
            let inner = other.clone();
            let second = Server::builder(&pool).listen(Listen::on(&address).reuse_port(true));
            let second = second.serve(move |_| Echo(inner.clone())).unwrap();
            // The kernel deals by the client's port: enough of them, and both get some.
            until("both have some", || {
                let mut client = Client::connect(&address);
                client.send("x");
                client.expect("x");
                one.opened.get() > 0 && other.opened.get() > 0
            });
            // When one has ended, the other gets all.
            end(&first);
            for _ in 0..20 {
                let mut client = Client::connect(&address);
                client.send("x");
                client.expect("x");
            }
            end(&second);
        }
    });
}

/// Goal: the backlog is the listener's. Method: without anybody who accepts, a connection beyond it is
/// not made.
#[test]
fn a_backlog_holds_as_many_as_it_was_told() {
    let _guard = hang_guard();
    let pool = pool(1);
    let gate = crate::common::Gate::new();
    let stuck = gate.clone();
    let listen = Listen::on(Kind::Abstract.address()).backlog(3);
    let server = Server::builder(&pool).listen(listen).serve(|_| Echo(Log::new())).unwrap();
    pool.post(move || stuck.wait()).unwrap();
    gate.until_entered(1);
    let address = &server.addresses()[0];
    let connect = |_| {
        let client =
            socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM.nonblocking(), None)
                .unwrap();
        client.connect(&kernels(address).1).map(|()| client)
    };
    let waiting: Vec<_> = (0..8).map(connect).collect();
    // Linux lets one more wait than it was told.
    let made = waiting.iter().filter(|client| client.is_ok()).count();
    gate.open();
    assert_eq!(made, 4);
    until("those that waited", || server.stats().accepted == 4);
    drop(waiting);
    end(&server);
}
