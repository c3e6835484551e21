//! Each listener has settings and counters of its own.

use crate::common::{Count, hang_guard, in_child, until};
use crate::kit::*;
use paceline::Error;
use paceline::net::{Admission, Conn, Listen, Outgoing, Reason, Server, ServerBuilder, Timeout};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server of echoes with these two listeners.
fn two(builder: ServerBuilder, first: Listen, second: Listen) -> (Server, Log) {
    let log = Log::new();
    let inner = log.clone();
    let builder = builder.listen(first).listen(second);
    (builder.serve(move |_| Echo(inner.clone())).unwrap(), log)
}

#[test]
fn each_listener_has_its_own_maximum_and_refusal() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let small = Listen::on(kind.address()).max_connections(1).refusal("one is enough");
        // Told to the server afterwards, and still only for those that have none.
        let builder = Server::builder(&pool).max_connections(2).refusal("two are enough");
        let (server, log) = two(builder, Listen::on(kind.address()), small);
        let [large, small] = server.addresses() else { panic!() };
        let inside = [large, small, large].map(|address| {
            let mut client = Client::connect(address);
            client.send("x");
            client.expect("x");
            client
        });
        assert_eq!(Client::connect(small).rest(), b"one is enough");
        assert_eq!(Client::connect(large).rest(), b"two are enough");
        assert_eq!(Client::connect(large).rest(), b"two are enough");
        drop(inside);
        log.closed.until(3);
        let stats = end(&server);
        let counts: Vec<_> = stats
            .listeners
            .iter()
            .map(|listener| (listener.accepted, listener.turned_away, listener.closed.total()))
            .collect();
        assert_eq!(counts, [(2, 2, 2), (1, 1, 1)]);
        assert_eq!((stats.accepted, stats.turned_away), (3, 3));
        let addresses: Vec<_> = stats.listeners.iter().map(|at| at.address.clone()).collect();
        assert_eq!(addresses, server.addresses());
    }
}

#[test]
fn outgoing_connections_have_a_maximum_of_their_own() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let builder = Server::builder(&pool).max_connections(1).listen(kind.address());
        let server = builder.listen(Listen::on(kind.address()).max_connections(5));
        let server = server.serve(|_| Echo(Log::new())).unwrap();
        let address = server.addresses()[1].clone();
        let log = Log::new();
        let conn = server.connect(&address, Echo(log.clone())).unwrap();
        let full = server.connect(&address, Echo(Log::new())).unwrap_err();
        assert_eq!(full.to_string(), "all 1 outgoing connections are in use");
        log.opened.until(1);
        until("it was accepted, too", || server.stats().open == 2);
        let stats = server.stats();
        assert_eq!((stats.accepted, stats.connected), (1, 1));
        conn.close().unwrap();
        log.closed.until(1);
        end(&server);
    }
}

/// Goal: what outgoing connections are told is theirs alone. Method: both kinds of settings in one server,
/// told in the wrong order, and a listener that has neither.
#[test]
fn outgoing_connections_have_settings_of_their_own() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let server = Server::builder(&pool)
            .outgoing(Outgoing::new().max_connections(2).linger(TICK))
            .outgoing(Outgoing::new().max_connections(1))
            .max_connections(3)
            .listen(kind.address())
            .listen(Listen::on(kind.address()).max_connections(4));
        let server = server.serve(move |_| Echo(inner.clone())).unwrap();
        for (address, most) in server.addresses().iter().zip([3, 4]) {
            let before = log.closed.get();
            let inside: Vec<_> = (0..most)
                .map(|_| {
                    let mut client = Client::connect(address);
                    client.send("x");
                    client.expect("x");
                    client
                })
                .collect();
            assert!(Client::connect(address).rest().is_empty(), "beyond {most}");
            drop(inside);
            log.closed.until(before + most);
        }
        let (there, own) = (&server.addresses()[1], Log::new());
        let conn = server.connect(there, Echo(own.clone())).unwrap();
        let full = server.connect(there, Echo(Log::new())).unwrap_err();
        assert_eq!(full.to_string(), "all 1 outgoing connections are in use");
        conn.close().unwrap();
        own.closed.until(1);
        end(&server);
    }
}

/// Goal: the same of a time. Method: of two ends that are silent only the outgoing one may not be.
#[test]
fn outgoing_connections_have_times_of_their_own() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, own) = (pool(2), Log::new());
        let (server, log) = echo(&pool, kind, |builder| {
            builder
                .outgoing(Outgoing::new().idle_timeout(TICK))
                .idle_timeout(Duration::from_secs(600))
        });
        server.connect(&server.addresses()[0], Echo(own.clone())).unwrap();
        assert_eq!(own.reason(0), Reason::TimedOut(Timeout::Idle));
        assert_eq!(log.reason(0), Reason::Peer);
        assert_eq!(end(&server).closed.timed_out, 1);
    }
}

#[test]
fn settings_of_outgoing_connections_out_of_range_are_named() {
    let pool = pool(1);
    let builder = Server::builder(&pool).outgoing(Outgoing::new().max_connections(0));
    let message = builder.serve(|_| Echo(Log::new())).unwrap_err().to_string();
    assert_eq!(message, "max_connections is 0, but must be 1 to 16777216");
}

/// Goal: a listener's times are its own. Method: the same silence on two listeners, of which one
/// allows it; the one that does not ends first, and the other one is there afterwards.
#[test]
fn each_listener_has_its_own_times() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let builder = Server::builder(&pool).idle_timeout(Duration::from_secs(600));
        let strict = Listen::on(kind.address()).idle_timeout(TICK);
        let (server, log) = two(builder, Listen::on(kind.address()), strict);
        let [patient, strict] = server.addresses() else { panic!() };
        let mut stays = Client::connect(patient);
        log.opened.until(1);
        let mut goes = Client::connect(strict);
        assert!(goes.rest().is_empty());
        assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Idle));
        stays.send("x");
        stays.expect("x");
        drop((stays, goes));
        let stats = end(&server);
        assert_eq!([0, 1].map(|at| stats.listeners[at].closed.timed_out), [0, 1]);
    }
}

/// Goal: the times for a message's rest and for a peer that does not read are the listener's, too.
#[test]
fn reading_and_stalling_are_limited_by_the_listener() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let never = |conn: &Conn, bytes: &[u8]| {
            if bytes.len() == 2 {
                let _ = conn.write(&vec![0; 1 << 20]);
            }
            bytes.len() & !1
        };
        let builder = Server::builder(&pool)
            .listen(Listen::on(kind.address()).read_timeout(TICK))
            .listen(Listen::on(kind.address()).stall_timeout(TICK).send_buffer(1));
        let server = builder.serve(move |_| OnData(inner.clone(), never)).unwrap();
        let [reads, stalls] = server.addresses() else { panic!() };
        let mut half = Client::connect(reads);
        half.send("x");
        assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Read));
        let mut silent = Client::with_buffers(stalls, Some(1)).unwrap();
        silent.send("xx");
        assert_eq!(log.reason(1), Reason::TimedOut(Timeout::Stall));
        drop((half, silent));
        end(&server);
    }
}

#[test]
fn each_listener_has_its_own_requests_in_work() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let kept = Arc::new(Mutex::new(Vec::<Admission>::new()));
        let (inner, requests) = (log.clone(), Arc::clone(&kept));
        let data = move |conn: &Conn, bytes: &[u8]| {
            for _ in bytes {
                requests.lock().unwrap().extend(conn.admit());
            }
            bytes.len()
        };
        let builder = Server::builder(&pool)
            .busy("full ")
            .listen(Listen::on(kind.address()).max_requests(1))
            .listen(Listen::on(kind.address()).max_requests(2).busy("fuller "));
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        let clients: Vec<_> = server
            .addresses()
            .iter()
            .zip(["full full ", "fuller "])
            .map(|(address, answer)| {
                let mut client = Client::connect(address);
                client.send("123");
                client.expect(answer);
                client
            })
            .collect();
        until("both", || server.stats().in_work == 3);
        kept.lock().unwrap().drain(..).for_each(Admission::answered);
        drop(clients);
        let stats = end(&server);
        let counts = [0, 1].map(|at| (stats.listeners[at].answered, stats.listeners[at].busy));
        assert_eq!(counts, [(1, 2), (2, 1)]);
    }
}

#[test]
fn a_listeners_setting_out_of_range_is_named_and_nothing_listens() {
    in_child(|| {
        let pool = pool(1);
        let address = Kind::Abstract.address();
        let failed = Server::builder(&pool)
            .listen(&address)
            .listen(Listen::on("127.0.0.1:0").backlog(0))
            .serve(|_| Echo(Log::new()));
        assert_eq!(failed.unwrap_err().to_string(), "backlog is 0, but must be 1 to 1048576");
        assert!(Client::try_connect(&address).is_err());
        let failed = Server::builder(&pool).listen(Listen::on("nonsense").backlog(1));
        let failed = failed.serve(|_| Echo(Log::new()));
        assert!(matches!(failed, Err(Error::Invalid { name: "address", .. })));
    });
}

/// Goal: the refused ones cost nothing that stays, and the others are served meanwhile.
#[test]
fn a_flood_over_one_listeners_maximum_leaves_the_other_alone() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let flooded = Listen::on(kind.address()).max_connections(3).refusal("no");
        let (server, log) = two(Server::builder(&pool), Listen::on(kind.address()), flooded);
        let addresses = server.addresses().to_vec();
        let inside: Vec<_> = (0..3).map(|_| Client::connect(&addresses[1])).collect();
        log.opened.until(3);
        let refused = Count::new();
        let floods: Vec<_> = (0..3)
            .map(|_| {
                let (address, refused) = (addresses[1].clone(), refused.clone());
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        assert_eq!(Client::connect(&address).rest(), b"no");
                        refused.up();
                    }
                })
            })
            .collect();
        let mut good = Client::connect(&addresses[0]);
        while refused.get() < 300 {
            good.send("still served");
            good.expect("still served");
        }
        floods.into_iter().for_each(|flood| flood.join().unwrap());
        drop((inside, good));
        let stats = end(&server);
        assert_eq!([0, 1].map(|at| stats.listeners[at].turned_away), [0, 300]);
    }
}
