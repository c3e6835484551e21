//! Times, maxima, and what happens beyond them.

use crate::common::{
    Count, Gate, LONG, hang_guard, in_child, limit, lowest_free, until, with_longer_ticks,
};
use crate::kit::*;
use paceline::net::{
    Accept, Address, Admission, Conn, ConnHandler, Listen, Outgoing, Reason, Server, ServerBuilder,
    Timeout, TimeoutAction, ToAddress, WriteStatus,
};
use paceline::{Error, Pool, Timer};
use std::fs::File;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_idle_connection_times_out_and_a_busy_one_does_not() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a busy connection stays", |tick| {
            let pool = pool(2);
            let (server, log) = echo(&pool, kind, |builder| builder.idle_timeout(tick * 8));
            let mut client = Client::connect(&server.addresses()[0]);
            let mut idle = Client::connect(&server.addresses()[0]);
            let mut stays = (0..12).all(|_| {
                thread::sleep(tick);
                client.try_echo("still here")
            });
            assert!(idle.rest().is_empty());
            stays &= client.try_echo("still here");
            assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Idle));
            drop((client, idle));
            end(&server);
            stays
        });
    }
}

/// Writes of other threads keep a connection alive.
#[test]
fn a_connection_that_is_only_written_to_is_not_idle() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a connection that is written to stays", |tick| {
            let pool = pool(2);
            let (server, log) = echo(&pool, kind, |builder| builder.idle_timeout(tick * 8));
            let mut client = Client::connect(&server.addresses()[0]);
            let conn = log.conn(0);
            let stays = (0..12).all(|_| {
                thread::sleep(tick);
                conn.write(b"news").is_ok() && client.try_expect("news")
            });
            assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Idle));
            drop(client);
            end(&server);
            stays
        });
    }
}

/// Consumes lines only.
fn lines(conn: &Conn, bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    conn.write(&bytes[..end]).unwrap();
    end
}

/// Goal: dripping bytes does not keep a message that never ends alive, and whole ones do.
#[test]
fn a_message_must_come_in_time() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address()).read_timeout(TICK * 4);
        let server = builder.serve(move |_| OnData(inner.clone(), lines)).unwrap();
        let mut good = Client::connect(&server.addresses()[0]);
        let slow = Client::connect(&server.addresses()[0]);
        while log.closed.get() == 0 {
            good.send("a line\n");
            good.expect("a line\n");
            let _ = slow.0.send(b"x");
            thread::sleep(TICK);
        }
        assert_eq!(log.reasons.lock().unwrap()[..], [Reason::TimedOut(Timeout::Read)]);
        drop((good, slow));
        end(&server);
    }
}

/// Goal: whoever notifies a connection does not give its peer more time for the rest of a message. Method: it ends
/// though no two notifications were further apart than that time.
#[test]
fn notifications_do_not_keep_a_part_of_a_message_alive() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("notifications come often enough", |tick| {
            let (pool, log) = (pool(2), Log::new());
            let inner = log.clone();
            let builder = Server::builder(&pool).listen(kind.address()).read_timeout(tick * 4);
            let server = builder.serve(move |_| OnData(inner.clone(), lines)).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            client.send("a part");
            let conn = log.conn(0);
            let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
            until("its time is over", || {
                thread::sleep(tick / 20);
                // It is gone when its time is over.
                let _ = conn.notify();
                longest = longest.max(last.elapsed());
                last = Instant::now();
                log.closed.get() == 1
            });
            assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Read), "{kind:?}");
            end(&server);
            longest < tick * 2
        });
    }
}

/// Goal: a part of a message that its server has held back has all of its time afterwards. Method: a pause that is
/// longer than that time, and the rest a while after it.
#[test]
fn the_peer_is_not_to_blame_for_a_pause() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("the rest comes in time", |tick| {
            let (pool, log, paused) = (pool(2), Log::new(), Count::new());
            let (inner, count) = (log.clone(), paused.clone());
            let data = move |conn: &Conn, bytes: &[u8]| match bytes.strip_prefix(b"wait\n") {
                // Not before a part of the next line is there.
                Some(b"") => 0,
                Some(_) => {
                    conn.pause();
                    count.up();
                    5
                }
                None => lines(conn, bytes),
            };
            let builder = Server::builder(&pool).listen(kind.address()).read_timeout(tick * 4);
            let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            client.send("wait\na part");
            paused.until(1);
            thread::sleep(tick * 8);
            log.conn(0).resume().unwrap();
            thread::sleep(tick);
            let in_time = client.0.send(b" and its rest\n").is_ok()
                && client.try_expect("a part and its rest\n");
            drop(client);
            let expected = if in_time { Reason::Peer } else { Reason::TimedOut(Timeout::Read) };
            assert_eq!(log.reason(0), expected);
            end(&server);
            in_time
        });
    }
}

/// Goal: what comes keeps a connection alive, though nothing is answered.
#[test]
fn a_connection_that_only_sends_is_not_idle() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a connection that sends stays", |tick| {
            let (pool, log) = (pool(2), Log::new());
            let inner = log.clone();
            let builder = Server::builder(&pool).listen(kind.address()).idle_timeout(tick * 8);
            let taking = |_: &Conn, bytes: &[u8]| bytes.len();
            let server = builder.serve(move |_| OnData(inner.clone(), taking)).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            let stays = (0..12).all(|_| {
                thread::sleep(tick);
                log.closed.get() == 0 && client.0.send(b"news").is_ok()
            });
            assert!(client.rest_or_reset().0.is_empty());
            assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Idle));
            drop(client);
            end(&server);
            stays
        });
    }
}

/// Goal: a time that is kept begins anew. Method: a handler that keeps, and does nothing else, is not asked more
/// often than the time has passed.
#[test]
fn a_time_that_is_kept_begins_anew() {
    struct Keeping(Count);
    impl ConnHandler for Keeping {
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            bytes.len()
        }
        fn timeout(&mut self, _: &Conn, _: Timeout) -> TimeoutAction {
            self.0.up();
            TimeoutAction::Keep
        }
    }
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, asked) = (pool(1), Count::new());
        let inner = asked.clone();
        let builder = Server::builder(&pool).listen(kind.address()).idle_timeout(TICK);
        let server = builder.serve(move |_| Keeping(inner.clone())).unwrap();
        let start = Instant::now();
        let client = Client::connect(&server.addresses()[0]);
        asked.until(4);
        let passed = start.elapsed();
        assert!(passed >= TICK * 4, "{kind:?}: asked {} times in {passed:?}", asked.get());
        drop(client);
        end(&server);
    }
}

struct Patient(Log, u32);

impl ConnHandler for Patient {
    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        assert_eq!(kind, Timeout::Idle);
        self.1 += 1;
        conn.write(format!("{} ", self.1).as_bytes()).unwrap();
        if self.1 == 3 {
            conn.write(b"bye").unwrap();
            conn.close();
        }
        TimeoutAction::Keep
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn a_handler_may_wait_longer_or_say_good_bye() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address()).idle_timeout(TICK);
        let server = builder.serve(move |_| Patient(inner.clone(), 0)).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        assert_eq!(client.rest(), b"1 2 3 bye");
        drop(client);
        assert_eq!(log.reason(0), Reason::Local);
        end(&server);
    }
}

#[test]
fn connections_beyond_the_maximum_are_told_and_closed() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) =
            echo(&pool, kind, |builder| builder.max_connections(3).refusal("full house"));
        let address = &server.addresses()[0];
        let mut inside: Vec<_> = (0..3).map(|_| Client::connect(address)).collect();
        log.opened.until(3);
        for _ in 0..50 {
            let mut outside = Client::connect(address);
            assert_eq!(outside.rest(), b"full house");
        }
        for client in &mut inside {
            client.send("x");
            client.expect("x");
        }
        drop(inside.pop());
        until("a free seat", || server.stats().open == 2);
        let mut late = Client::connect(address);
        late.send("y");
        late.expect("y");
        drop((late, inside));
        let stats = end(&server);
        assert_eq!((stats.accepted, stats.turned_away), (4, 50));
    }
}

/// Goal: the message of a refusal is not overtaken by a reset. Method: what the client has sent is there before it
/// is refused, since the pool's only thread is busy.
#[test]
fn who_is_turned_away_is_told_even_if_it_has_sent_something() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, gate) = (pool(1), Gate::new());
        let (server, log) =
            echo(&pool, kind, |builder| builder.max_connections(1).refusal("full house"));
        let address = &server.addresses()[0];
        let inside = Client::connect(address);
        log.opened.until(1);
        let stuck = gate.clone();
        pool.post(move || stuck.wait()).unwrap();
        gate.until_entered(1);
        let mut outside = Client::connect(address);
        outside.send("a request");
        gate.open();
        assert_eq!(outside.rest(), b"full house");
        drop((inside, outside));
        assert_eq!(end(&server).turned_away, 1);
    }
}

#[test]
fn more_than_may_be_left_unconsumed_ends_a_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address()).max_unconsumed(1000);
        let server = builder.serve(move |_| OnData(inner.clone(), lines)).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        // As many as may be left.
        let line = [&[b'x'; 1000][..], b"\n"].concat();
        client.send(&line[..1000]);
        thread::sleep(TICK / 5);
        client.send(b"\n");
        client.expect(&line);
        client.send([b'x'; 1001]);
        assert_eq!(log.reason(0), Reason::Unconsumed);
        end(&server);
    }
}

/// Keeps its requests until told otherwise.
struct Slow(Log, Arc<Mutex<Vec<Admission>>>);

impl ConnHandler for Slow {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        for _ in bytes {
            self.1.lock().unwrap().extend(conn.admit());
        }
        bytes.len()
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn requests_beyond_the_maximum_are_answered_with_busy() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, kept) = (pool(2), Log::new(), Arc::new(Mutex::new(Vec::new())));
        let (inner, requests) = (log.clone(), Arc::clone(&kept));
        let builder = Server::builder(&pool).listen(kind.address()).max_requests(2).busy("busy ");
        let server = builder.serve(move |_| Slow(inner.clone(), Arc::clone(&requests))).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("12345");
        client.expect("busy busy busy ");
        let answered = kept.lock().unwrap().pop().unwrap();
        answered.conn().write(b"done ").unwrap();
        answered.answered();
        client.expect("done ");
        client.send("6");
        until("the third", || server.stats().requests == 3);
        kept.lock().unwrap().clear();
        drop(client);
        let stats = end(&server);
        assert_eq!(
            (stats.requests, stats.answered, stats.requests_aborted, stats.busy),
            (3, 1, 2, 3)
        );
    }
}

#[test]
fn a_pause_holds_data_back_and_resume_shows_it() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, seen) = (pool(2), Log::new(), Count::new());
        let (inner, count) = (log.clone(), seen.clone());
        let data = move |conn: &Conn, bytes: &[u8]| {
            // One byte at a time, and a pause after each.
            count.up();
            conn.write(&bytes[..1]).unwrap();
            conn.pause();
            1
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("abc");
        for (index, byte) in [b"a", b"b", b"c"].into_iter().enumerate() {
            client.expect(byte);
            log.settle(&log.conn(0));
            assert_eq!(seen.get(), index as u64 + 1);
            log.conn(0).resume().unwrap();
        }
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}

/// Goal: a server without descriptors pauses, says so once, costs no CPU, and goes on later.
#[test]
fn without_descriptors_accepting_pauses() {
    in_child(|| {
        for kind in KINDS {
            let (pool, said) = (pool(1), Count::new());
            let hook = said.clone();
            let begin = match kind {
                Kind::Tcp => "cannot accept on 127.0.0.1:",
                Kind::Tcp6 => "cannot accept on [::1]:",
                Kind::Unix => "cannot accept on unix:/",
                Kind::Abstract => "cannot accept on unix:@paceline-net-",
            };
            let (server, log) = echo(&pool, kind, |builder| {
                builder.on_exhausted(move |error| {
                    assert!(error.to_string().starts_with(begin), "{error}");
                    hook.up();
                })
            });
            let address = server.addresses()[0].clone();
            let mut first = Client::connect(&address);
            log.opened.until(1);
            let mut clients: Vec<_> =
                (0..3).map(|_| Client::unconnected(&address).unwrap()).collect();
            // Room for one at the server's side.
            let before = limit(libc::RLIMIT_NOFILE, lowest_free() + 1);
            for client in &clients {
                client.reach(&address).unwrap();
            }
            said.until(1);
            let (start, before_it) = (Instant::now(), handled(&pool));
            thread::sleep(TICK * 4);
            assert_eq!((said.get(), server.stats().exhausted), (1, 1), "{kind:?}");
            assert_looks_seldom(&pool, start, before_it);
            first.send("x");
            first.expect("x");
            limit(libc::RLIMIT_NOFILE, before);
            for client in &mut clients {
                client.send("y");
                client.expect("y");
            }
            drop((first, clients));
            end(&server);
        }
    });
}

/// As many timers as the pool has room for, of which none is due; from a thread of the pool, too, since each has
/// a few slots of its own.
fn fill(pool: &Pool) -> Vec<Timer> {
    fn timers(pool: &Pool) -> Vec<Timer> {
        let mut timers = Vec::new();
        loop {
            match pool.after(LONG * 100, || ()) {
                Ok(timer) => timers.push(timer),
                Err(Error::Full { .. }) => return timers,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let mut all = timers(pool);
    let inside = pool.clone();
    all.extend(pool.submit(move || timers(&inside)).unwrap().wait().unwrap());
    all
}

/// What the threads of a pool have handled.
fn handled(pool: &Pool) -> u64 {
    pool.stats().threads.iter().map(|thread| thread.handled).sum()
}

/// A listener that cannot accept looks again every 50 ms, which takes a timer and a run; twice that is allowed since
/// `start`, when `before` had been handled.
#[track_caller]
fn assert_looks_seldom(pool: &Pool, start: Instant, before: u64) {
    // First the runs: this thread may have to wait before it looks at the clock.
    let runs = handled(pool) - before;
    let most = 10 + 4 * start.elapsed().as_millis() as u64 / 50;
    assert!(runs <= most, "{runs} runs");
}

/// A server that has neither descriptors nor room in its pool for a timer, in a process of its own; then the
/// rest. The runs of the pool's thread are counted meanwhile.
fn without_descriptors_and_room(
    rest: impl FnOnce(&Pool, Server, Client, Client, Vec<Timer>, Vec<File>),
) {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_handles(100).build().unwrap();
    let said = Count::new();
    let hook = said.clone();
    let (server, log) = echo(&pool, Kind::Tcp, |builder| builder.on_exhausted(move |_| hook.up()));
    let address = server.addresses()[0].clone();
    let first = Client::connect(&address);
    log.opened.until(1);
    let late = Client::unconnected(&address).unwrap();
    let timers = fill(&pool);
    limit(libc::RLIMIT_NOFILE, lowest_free() + 10);
    let plugs: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    late.reach(&address).unwrap();
    said.until(1);
    let (start, before_it) = (Instant::now(), handled(&pool));
    thread::sleep(TICK * 4);
    until("it has looked again, twice", || handled(&pool) >= before_it + 2);
    assert_looks_seldom(&pool, start, before_it);
    assert_eq!((said.get(), server.stats().exhausted), (1, 1));
    rest(&pool, server, first, late, timers, plugs);
}

#[test]
fn without_descriptors_and_without_room_in_the_pool_accepting_pauses() {
    in_child(|| {
        without_descriptors_and_room(|_, server, first, mut late, timers, plugs| {
            timers.iter().for_each(|timer| assert!(timer.cancel()));
            drop(plugs);
            late.send("y");
            late.expect("y");
            drop((first, late));
            end(&server);
        });
    });
}

#[test]
fn a_server_without_descriptors_and_without_room_in_the_pool_can_be_drained() {
    in_child(|| {
        without_descriptors_and_room(|_, server, first, late, _timers, _plugs| {
            // One of them has a descriptor to give up, with which the other may be taken in.
            end(&server);
            drop((first, late));
        });
    });
}

#[test]
fn a_server_without_descriptors_and_without_room_in_the_pool_ends_with_it() {
    in_child(|| {
        without_descriptors_and_room(|pool, server, first, late, _timers, _plugs| {
            let _report = pool.shutdown(Duration::ZERO);
            server.wait().unwrap();
            assert!(server.stats().balances());
            drop((first, late));
        });
    });
}

/// Goal: a connection for whose time the pool has no timer is not there for ever. Method: all of the pool's
/// slots are in use when its time begins; then somebody comes, or another connection ends.
#[test]
fn without_room_for_its_timer_a_time_is_over_all_the_same() {
    let _guard = hang_guard();
    for comes in [true, false] {
        let (pool, log) =
            (Pool::builder().threads(1).max_handles(100).build().unwrap(), Log::new());
        let inner = log.clone();
        let limited = |conn: &Conn, bytes: &[u8]| {
            conn.set_deadline(Some(TICK));
            let _ = conn.write(bytes);
            bytes.len()
        };
        let builder = Server::builder(&pool).listen("127.0.0.1:0");
        let server = builder.serve(move |_| OnData(inner.clone(), limited)).unwrap();
        let address = &server.addresses()[0];
        let mut silent = Client::connect(address);
        // Each end of one of them is an occasion.
        let mut others: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
        log.opened.until(21);
        let _timers = fill(&pool);
        silent.send("x");
        silent.expect("x");
        until("its time is over", || {
            match comes {
                true => drop(Client::connect(address)),
                false => drop(others.pop()),
            }
            thread::sleep(TICK);
            log.reasons.lock().unwrap().contains(&Reason::TimedOut(Timeout::Deadline))
        });
        assert!(silent.rest_or_reset().0.is_empty());
        drop(others);
        end(&server);
    }
}

/// Goal: a socket that accepts no more costs no CPU, is told of once, and does not keep a drain from its end.
/// Method: the socket is shared with somebody who shuts it down, as another process may.
#[test]
fn a_listener_that_accepts_no_more_pauses() {
    let _guard = hang_guard();
    let (pool, said) = (pool(1), Count::new());
    let hook = said.clone();
    let shared = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::builder(&pool)
        .listen_on(shared.try_clone().unwrap())
        .on_exhausted(move |error| {
            let message = error.to_string();
            assert!(message.contains("accept on 127.0.0.1:"), "{message}");
            assert!(message.contains("Invalid argument"), "{message}");
            hook.up();
        })
        .serve(|_| Echo(Log::new()))
        .unwrap();
    let mut client = Client::connect(&server.addresses()[0]);
    client.send("x");
    client.expect("x");
    socket2::SockRef::from(&shared).shutdown(std::net::Shutdown::Both).unwrap();
    said.until(1);
    let (start, before_it) = (Instant::now(), handled(&pool));
    until("it has looked again, twice", || handled(&pool) >= before_it + 2);
    thread::sleep(TICK * 2);
    assert_looks_seldom(&pool, start, before_it);
    client.send("y");
    client.expect("y");
    assert_eq!((said.get(), server.stats().exhausted), (1, 1));
    drop(client);
    end(&server);
}

#[test]
fn an_outgoing_connection_has_the_same_handler() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, _) = echo(&pool, kind, |builder| builder);
        let (log, got) = (Log::new(), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&got);
        let handler = OnData(log.clone(), move |_: &Conn, bytes: &[u8]| {
            inner.lock().unwrap().extend_from_slice(bytes);
            bytes.len()
        });
        let conn = server.connect(&server.addresses()[0], handler).unwrap();
        // Before or after it is connected.
        conn.write(b"hello ").unwrap();
        log.opened.until(1);
        conn.write(b"again").unwrap();
        until("the echo", || *got.lock().unwrap() == b"hello again");
        conn.close().unwrap();
        assert_eq!(log.reason(0), Reason::Local);
        let stats = end(&server);
        assert_eq!((stats.accepted, stats.connected), (1, 1));
        let late = server.connect(&server.addresses()[0], Echo(Log::new()));
        assert!(matches!(late, Err(Error::ShutDown)));
    }
}

/// What fails at once is an error; what fails later is the handler's `close`, without `open`.
#[test]
fn a_connection_that_cannot_be_made_says_so() {
    in_child(|| {
        let pool = pool(2);
        let server = Server::builder(&pool).serve(|_| Echo(Log::new())).unwrap();
        let nobody = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let log = Log::new();
        server.connect(nobody, Echo(log.clone())).unwrap();
        assert_eq!(log.reason(0), Reason::Failed(ErrorKind::ConnectionRefused));
        assert_eq!(log.opened.get(), 0);
        for missing in [Kind::Unix.address(), Kind::Abstract.address()] {
            let error = server.connect(&missing, Echo(Log::new())).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot connect to {missing}: ")), "{error}");
        }
        let stats = end(&server);
        assert_eq!((stats.connected, stats.closed.failed), (1, 1));
    });
}

/// Method: a listener whose queue is full drops the first packet of further connections.
#[test]
fn a_connection_that_is_not_made_in_time_times_out() {
    let _guard = hang_guard();
    let pool = pool(2);
    let builder = Server::builder(&pool).connect_timeout(TICK * 2);
    let server = builder.serve(|_| Echo(Log::new())).unwrap();
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let log = Log::new();
    let conns: Vec<_> =
        (0..4).map(|_| server.connect(address, Echo(log.clone())).unwrap()).collect();
    // The queue takes one or two.
    log.closed.until(2);
    assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Connect));
    for conn in conns {
        let _ = conn.abort();
    }
    drop(full);
    end(&server);
}

/// A Unix socket does not wait in a queue that is full, so it is known at once.
#[test]
fn a_unix_listener_whose_queue_is_full_refuses_at_once() {
    let _guard = hang_guard();
    for kind in [Kind::Unix, Kind::Abstract] {
        let pool = pool(2);
        let server = Server::builder(&pool).serve(|_| Echo(Log::new())).unwrap();
        let full = Listening::at(kind);
        full.socket.listen(0).unwrap();
        let address = full.address.clone();
        let log = Log::new();
        let conn = server.connect(&address, Echo(log.clone())).unwrap();
        log.opened.until(1);
        let error = server.connect(&address, Echo(Log::new())).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot connect to {address}: ")), "{error}");
        conn.abort().unwrap();
        assert_eq!((log.reason(0), end(&server).connected), (Reason::Aborted, 1));
    }
}

#[test]
fn times_out_of_range_are_named() {
    let _guard = hang_guard();
    let pool = pool(1);
    let short = Duration::from_micros(10);
    for (name, builder) in [
        ("idle_timeout", Server::builder(&pool).idle_timeout(short)),
        ("read_timeout", Server::builder(&pool).read_timeout(short)),
        ("stall_timeout", Server::builder(&pool).stall_timeout(short)),
        ("connect_timeout", Server::builder(&pool).connect_timeout(short)),
    ] {
        let error = builder.serve(|_| Echo(Log::new())).unwrap_err().to_string();
        assert_eq!(error, format!("{name} is 10µs, but must be at least 1 ms, or no limit"));
    }
}

/// Goal: what the kernel would refuse is refused here, for listeners and for outgoing connections.
#[test]
fn a_keep_alive_that_the_kernel_would_not_take_is_named() {
    let pool = pool(1);
    let (short, long) = (Duration::from_nanos(999_999_999), Duration::from_millis(32_767_001));
    let refused =
        |builder: ServerBuilder| builder.serve(|_| Echo(Log::new())).unwrap_err().to_string();
    for (time, told) in [(Duration::ZERO, "0ns"), (short, "999.999999ms"), (long, "32767.001s")] {
        let expected = format!("keep_alive is {told}, but must be 1 s to 32767 s");
        assert_eq!(refused(Server::builder(&pool).keep_alive(time)), expected);
        let listen = Listen::on("127.0.0.1:0").keep_alive(time);
        assert_eq!(refused(Server::builder(&pool).listen(listen)), expected);
        let outgoing = Outgoing::new().keep_alive(time);
        assert_eq!(refused(Server::builder(&pool).outgoing(outgoing)), expected);
    }
}

#[test]
fn nobody_waits_while_a_handler_is_stuck() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (log, gate) = (Log::new(), Gate::new());
        let (inner, stuck) = (log.clone(), gate.clone());
        let data = move |conn: &Conn, bytes: &[u8]| {
            if bytes == b"block" {
                conn.write(b"gathered ").unwrap();
                stuck.wait();
            } else {
                conn.write(bytes).unwrap();
            }
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        let mut stuck = Client::connect(&server.addresses()[0]);
        stuck.send("block");
        gate.until_entered(1);
        // Other connections are served, and others write to this one, after what it has gathered.
        let mut other = Client::connect(&server.addresses()[0]);
        other.send("x");
        other.expect("x");
        assert_eq!(log.conn(0).write(b"news").unwrap(), WriteStatus::Sent);
        stuck.expect("gathered news");
        gate.open();
        drop((stuck, other));
        end(&server);
    }
}

#[test]
fn addresses_are_told() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (server, log) = echo(&pool, Kind::Tcp, |builder| builder.listen("[::1]:0"));
    let [v4, v6] = server.addresses() else { panic!() };
    let (a, b) = (Client::connect(v4), Client::connect(v6));
    log.opened.until(2);
    let conns = log.conns.lock().unwrap().clone();
    let first = conns.iter().find(|conn| conn.local().as_ref() == Some(v4)).unwrap();
    let own = a.0.local_addr().unwrap().as_socket().unwrap();
    assert_eq!(*first.peer(), own.to_address().unwrap());
    assert!(conns.iter().any(|conn| conn.local().as_ref() == Some(v6)));
    drop((a, b));
    end(&server);
}

/// A client of a Unix socket has no address unless it has bound itself.
#[test]
fn addresses_of_unix_sockets_are_told() {
    let _guard = hang_guard();
    for kind in [Kind::Unix, Kind::Abstract] {
        let pool = pool(1);
        let (server, log) = echo(&pool, kind, |builder| builder);
        let address = &server.addresses()[0];
        let unnamed = Client::connect(address);
        assert_eq!(*log.conn(0).peer(), Address::Unnamed);
        assert_eq!(log.conn(0).local().as_ref(), Some(address));
        let named = Client::unconnected(address).unwrap();
        let own = Kind::Abstract.address();
        named.0.bind(&kernels(&own).1).unwrap();
        named.reach(address).unwrap();
        assert_eq!(*log.conn(1).peer(), own);
        drop((unnamed, named));
        end(&server);
    }
}

#[test]
fn open_sees_the_connection() {
    struct Picky(Log);
    impl ConnHandler for Picky {
        fn open(&mut self, conn: &Conn) -> Accept {
            assert!(!conn.is_outgoing() && !conn.is_draining());
            assert_eq!(conn.queued(), 0);
            conn.write(b"hello").unwrap();
            self.0.open(conn);
            Accept::Yes
        }
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            bytes.len()
        }
    }
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(1), Log::new());
        let inner = log.clone();
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Picky(inner.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.expect("hello");
        drop(client);
        end(&server);
    }
}
