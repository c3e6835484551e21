//! Data comes and goes; connections begin and end.

use crate::common::{finish, hang_guard, in_child, until};
use crate::kit::*;
use paceline::net::{Accept, Conn, ConnHandler, ConnId, Reason, Server, ToAddress, WriteStatus};
use paceline::{Error, net::Address};
use std::io::IoSlice;
use std::thread;

#[test]
fn an_echo_over_every_kind_of_socket() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder);
        let mut client = Client::connect(&server.addresses()[0]);
        for size in [1, 64, 5000, 65536, 300_000] {
            let bytes = pattern(size);
            let mut reader = Client(client.0.try_clone().unwrap());
            let sent = bytes.clone();
            let sender = thread::spawn(move || {
                client.send(sent);
                client
            });
            reader.expect(&bytes);
            client = sender.join().unwrap();
        }
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        let stats = end(&server);
        assert_eq!((stats.accepted, stats.closed.peer), (1, 1));
        drop(server);
        finish(&pool);
    }
}

#[test]
fn other_threads_write_in_order_and_stale_ids_are_errors() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder);
        let mut client = Client::connect(&server.addresses()[0]);
        let conn = log.conn(0);
        assert_eq!(conn.write(b"one ").unwrap(), WriteStatus::Sent);
        let by_id = server.conn(ConnId::from_bits(conn.id().to_bits())).unwrap();
        by_id.write_owned(b"two ".to_vec()).unwrap();
        conn.write_vectored(&[IoSlice::new(b"three"), IoSlice::new(b" ")]).unwrap();
        client.expect("one two three ");
        conn.close().unwrap();
        assert!(client.rest().is_empty());
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        let stale = |error| matches!(error, Error::Stale { what: "connection" });
        until("the end", || !conn.is_open());
        assert!(stale(conn.write(b"late").unwrap_err()));
        assert!(stale(conn.close().unwrap_err()));
        assert!(stale(conn.abort().unwrap_err()));
        assert!(stale(conn.resume().unwrap_err()));
        assert!(stale(server.conn(conn.id()).unwrap_err()));
        assert!(stale(server.conn(ConnId::from_bits(u64::MAX)).unwrap_err()));
        end(&server);
    }
}

struct Refusing(Log);

impl ConnHandler for Refusing {
    fn open(&mut self, _: &Conn) -> Accept {
        Accept::Refuse(b"not you".to_vec())
    }

    fn data(&mut self, _: &Conn, _: &[u8]) -> usize {
        panic!("refused connections have no data")
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn a_handler_may_refuse() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Refusing(inner.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("hello");
        assert_eq!(client.rest(), b"not you");
        drop(client);
        assert_eq!(log.reason(0), Reason::Refused);
        assert_eq!(end(&server).closed.refused, 1);
    }
}

#[test]
fn listening_fails_with_the_address_and_the_reason() {
    let _guard = hang_guard();
    let pool = pool(1);
    for kind in KINDS {
        let (server, _) = echo(&pool, kind, |builder| builder);
        let taken = server.addresses()[0].clone();
        let again = Server::builder(&pool).listen(&taken).serve(|_| Echo(Log::new()));
        let message = again.unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot listen on {taken}: ")), "{message}");
        end(&server);
    }

    let server = Server::builder(&pool).listen("nonsense").serve(|_| Echo(Log::new()));
    assert!(matches!(server, Err(Error::Invalid { name: "address", .. })));
    let server = Server::builder(&pool).max_connections(0).serve(|_| Echo(Log::new()));
    let message = server.unwrap_err().to_string();
    assert_eq!(message, "max_connections is 0, but must be 1 to 16777216");
    let server = Server::builder(&pool).output_marks(5, 5, 9).serve(|_| Echo(Log::new()));
    let message = server.unwrap_err().to_string();
    assert_eq!(message, "output_marks is 5 / 5 / 9, but must be low < high <= max");
}

#[test]
fn v6_listeners_take_v4_unless_told_not_to() {
    let _guard = hang_guard();
    let pool = pool(1);
    for v6_only in [false, true] {
        let builder = Server::builder(&pool).listen("*:0").v6_only(v6_only);
        let server = builder.serve(|_| Echo(Log::new())).unwrap();
        let port = server.addresses()[0].tcp().unwrap().port();
        assert_ne!(port, 0);
        let address = format!("127.0.0.1:{port}").to_address().unwrap();
        assert_eq!(Client::try_connect(&address).is_ok(), !v6_only);
    }
}

#[test]
fn the_file_of_a_unix_socket_is_removed_and_a_left_over_one_replaced() {
    in_child(|| {
        let pool = pool(1);
        let Address::Unix(path) = Kind::Unix.address() else { unreachable!() };
        // As a server that was killed leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let server =
            Server::builder(&pool).listen(path.as_path()).serve(|_| Echo(Log::new())).unwrap();
        let second = Server::builder(&pool).listen(path.as_path()).serve(|_| Echo(Log::new()));
        assert!(matches!(second, Err(Error::Os { .. })), "somebody listens here");
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("x");
        client.expect("x");
        drop(client);
        end(&server);
        assert!(!path.exists());
    });
}

/// Limit: sun_path has 108 bytes, one of which is a zero before a name or behind a path.
#[test]
fn unix_addresses_longer_than_the_limit_are_refused_with_their_length() {
    let _guard = hang_guard();
    let pool = pool(1);
    let mut name = format!("paceline-net-{}-", std::process::id()).into_bytes();
    name.resize(107, b'x');
    let longest = Address::Abstract(name.clone());
    let server = Server::builder(&pool).listen(&longest).serve(|_| Echo(Log::new())).unwrap();
    assert_eq!(server.addresses(), [longest]);
    name.push(b'x');
    let path = format!("/tmp/{}", "x".repeat(103));
    for (address, allowed) in [
        (Address::Unix(path.into()), "(108 bytes), but must be a path of 1 to 107 bytes"),
        (Address::Abstract(name), "(108 bytes), but must be a name of up to 107 bytes"),
    ] {
        let told = format!("address is {address} {allowed}");
        let listening = Server::builder(&pool).listen(&address).serve(|_| Echo(Log::new()));
        assert_eq!(listening.err().unwrap().to_string(), told);
        assert_eq!(server.connect(address, Echo(Log::new())).err().unwrap().to_string(), told);
    }
    end(&server);
}

#[test]
fn a_listener_can_be_inherited() {
    let _guard = hang_guard();
    let pool = pool(1);
    for kind in KINDS {
        let listener = Listening::at(kind);
        let inherited = listener.socket.try_clone().unwrap();
        let server = Server::builder(&pool).listen_on(inherited);
        let server = server.serve(|_| Echo(Log::new())).unwrap();
        assert_eq!(server.addresses(), std::slice::from_ref(&listener.address));
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("x");
        client.expect("x");
        drop(client);
        end(&server);
        // Whoever has opened it has made its file, and removes it.
        if let Address::Unix(path) = &listener.address {
            assert!(path.exists());
        }
    }

    let (stream, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let refused = Server::builder(&pool).listen_on(stream).serve(|_| Echo(Log::new()));
    assert!(matches!(refused, Err(Error::Os { .. })));
}
