//! Drains, panics, floods and storms: nothing is lost, and nothing is left.

use crate::common::{
    Count, Gate, LONG, Random, finish, hang_guard, in_child, limit, open_descriptors, quiet_panic,
    skipped, until, vanish,
};
use crate::kit::*;
use paceline::net::{
    Accept, Admission, Conn, ConnHandler, ConnRef, Reason, Server, Timeout, WriteStatus,
};
use paceline::{Error, Pool};
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn a_drain_closes_idle_connections_and_the_listener() {
    in_child(|| {
        for kind in KINDS {
            let pool = pool(2);
            let (server, log) = echo(&pool, kind, |builder| builder);
            let address = server.addresses()[0].clone();
            let clients: Vec<_> = (0..20).map(|_| Client::connect(&address)).collect();
            log.opened.until(20);
            let waiter = thread::spawn({
                let server = server.clone();
                move || server.wait()
            });
            let reader = thread::spawn(move || {
                clients.into_iter().for_each(|mut client| assert!(client.rest().is_empty()));
            });
            let report = server.drain(LONG);
            assert!(report.drained && !report.requested && report.stats.balances(), "{report:?}");
            assert_eq!(report.stats.closed.drained, 20);
            waiter.join().unwrap().unwrap();
            reader.join().unwrap();
            assert!(Client::try_connect(&address).is_err());
            finish(&pool);
        }
    });
}

/// Goal: a connection that rests holds the end of the pool up by nothing, though its client does not close its side, and
/// counts as drained. Method: a linger beyond the drain.
#[test]
fn the_end_of_a_pool_does_not_wait_for_clients_that_rest() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder.linger(2 * LONG));
        let mut clients: Vec<_> = (0..3).map(|_| Client::connect(&server.addresses()[0])).collect();
        log.opened.until(3);
        let report = pool.shutdown(LONG);
        let counts = (report.drained, report.connections, report.cancelled);
        assert_eq!(counts, (true, 0, 0), "{report:?}");
        let stats = server.stats();
        assert_eq!((stats.closed.drained, stats.closed.total(), stats.open), (3, 3, 0));
        clients.iter_mut().for_each(|client| assert!(client.rest().is_empty()));
    }
}

/// Writes down its errors and its end, in order.
struct Writes(Log, Arc<Mutex<Vec<String>>>);

impl ConnHandler for Writes {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    /// "p" pauses, and "w" is answered with more than the kernel takes.
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        match bytes {
            b"p" => conn.pause(),
            b"w" => drop(conn.write(&vec![0; 8 << 20]).unwrap()),
            _ => {}
        }
        self.0.notified.up();
        bytes.len()
    }

    fn error(&mut self, _: &Conn, kind: ErrorKind) {
        self.1.lock().unwrap().push(format!("error {kind:?}"));
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.1.lock().unwrap().push(format!("close {reason:?}"));
        self.0.close(reason);
    }
}

/// Goal: a socket's failure is told, once and before the end; what is no failure is not. Method: resets while
/// nothing happens, while output waits, and during a pause; an orderly end; and ends by this side.
#[test]
fn a_peers_reset_is_an_error_and_then_the_end() {
    let _guard = hang_guard();
    let reset = ["error ConnectionReset", "close Failed(ConnectionReset)"];
    for kind in [Kind::Tcp, Kind::Tcp6] {
        let (pool, log, told) = (pool(2), Log::new(), Arc::new(Mutex::new(Vec::new())));
        let (inner, writes) = (log.clone(), Arc::clone(&told));
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Writes(inner.clone(), Arc::clone(&writes))).unwrap();
        let mut ended = 0;
        let mut ends = |first: &str, end: &dyn Fn(Client, ConnRef), expected: &[&str]| {
            let mut client = Client::connect(&server.addresses()[0]);
            let conn = log.conn(ended);
            client.send(first);
            log.notified.until(ended as u64 + 1);
            end(client, conn);
            ended += 1;
            log.closed.until(ended as u64);
            assert_eq!(core::mem::take(&mut *told.lock().unwrap()), expected, "{first}");
        };
        ends("x", &|client, _| client.reset(), &reset);
        ends("w", &|client, _| client.reset(), &reset);
        // What comes before it is not lost by a pause, so it is seen when that ends.
        let after_pause = |client: Client, conn: ConnRef| {
            client.reset();
            conn.resume().unwrap();
        };
        ends("p", &after_pause, &reset);
        ends("x", &|client, _| drop(client), &["close Peer"]);
        ends("x", &|_client, conn| conn.close().unwrap(), &["close Local"]);
        ends("x", &|_client, conn| conn.abort().unwrap(), &["close Aborted"]);
        let stats = end(&server);
        assert_eq!((stats.closed.failed, stats.closed.total()), (3, 6));
    }
}

/// What is answered by a send that fails.
const ILL_FATED: usize = 4321;

/// Answers anything by so many bytes, and closes if it was told to. Tells of its end.
struct Answers(Log, Arc<Mutex<Vec<String>>>);

impl ConnHandler for Answers {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let _ = conn.write(&[b'x'; ILL_FATED]);
        if bytes.contains(&b'c') {
            conn.close();
        }
        bytes.len()
    }

    fn error(&mut self, _: &Conn, kind: ErrorKind) {
        self.1.lock().unwrap().push(format!("error {kind:?}"));
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.1.lock().unwrap().push(format!("close {reason:?}"));
        self.0.close(reason);
    }
}

/// Sends a request whose answer fails, to a server of its own, and says how the client sees that end. The socket is
/// sound otherwise, and the client does nothing more.
fn one_failed_send(
    kind: Kind,
    request: &str,
    expected: ErrorKind,
    prepare: impl FnOnce(&Client),
) -> (Vec<u8>, bool) {
    let (pool, log, told) = (pool(2), Log::new(), Arc::new(Mutex::new(Vec::new())));
    let (inner, tells) = (log.clone(), Arc::clone(&told));
    let builder = Server::builder(&pool).listen(kind.address());
    let server = builder.serve(move |_| Answers(inner.clone(), Arc::clone(&tells))).unwrap();
    let mut client = Client::connect(&server.addresses()[0]);
    prepare(&client);
    client.send(request);
    assert_eq!(log.reason(0), Reason::Failed(expected), "{kind:?} {request}");
    let ends = [format!("error {expected:?}"), format!("close Failed({expected:?})")];
    assert_eq!(*told.lock().unwrap(), ends);
    let rest = client.rest_or_reset();
    let stats = end(&server);
    assert_eq!((stats.closed.failed, stats.closed.total()), (1, 1));
    rest
}

/// Goal: a send that fails ends its connection, with the cause, though reading never tells of an end; and the peer
/// does not take what it has for the whole. Method: a peer that writes and does not read, over a Unix socket; and in
/// a process of its own a kernel that has no memory for sends of one length.
#[test]
fn a_send_that_fails_ends_the_connection() {
    in_child(|| {
        let _guard = hang_guard();
        for request in ["r", "rc"] {
            for kind in [Kind::Unix, Kind::Abstract] {
                one_failed_send(kind, request, ErrorKind::BrokenPipe, |client| {
                    client.0.shutdown(std::net::Shutdown::Read).unwrap();
                });
            }
        }
        fail_sends(ILL_FATED as u32, libc::ENOBUFS);
        let expected = std::io::Error::from_raw_os_error(libc::ENOBUFS).kind();
        for request in ["r", "rc"] {
            for kind in KINDS {
                let (rest, reset) = one_failed_send(kind, request, expected, |_| {});
                let tcp = matches!(kind, Kind::Tcp | Kind::Tcp6);
                assert_eq!((rest.len(), reset), (0, tcp), "{kind:?} {request}");
            }
        }
    });
}

/// From now on each send of this many bytes fails in this process.
fn fail_sends(length: u32, error: libc::c_int) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let unless = |k, skip| libc::sock_filter {
        jf: skip,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k)
    };
    let mut filter = [
        load(0),
        unless(libc::SYS_sendto as u32, 3),
        // The lower half of the third argument.
        load(16 + 2 * 8),
        unless(length, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    #[allow(unsafe_code, reason = "std has no filters of system calls")]
    // SAFETY: the program is valid and stays in place for the length of the call.
    let result = unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Answers a line by the same line, from another thread and later.
struct Deferred(Log, Pool);

impl ConnHandler for Deferred {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break;
            }
            taken += line.len();
            let (request, line) = (conn.admit().unwrap(), line.to_vec());
            let answer = move || {
                request.conn().write_owned(line).unwrap();
                request.answered();
            };
            let _ = self.1.after(Duration::from_millis(1), answer).unwrap();
        }
        taken
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

/// Goal: every request that was taken is answered, whenever the drain comes. Method: clients send one
/// request after the other until they see the end. The request that was on its way then may have been
/// taken or not; what the server took, and what clients got, must be the same number.
#[test]
fn a_drain_under_load_loses_no_accepted_request() {
    const CLIENTS: usize = 8;
    let _guard = hang_guard();
    for (round, kind) in KINDS.into_iter().cycle().take(12).enumerate() {
        let (pool, log) = (pool(2), Log::new());
        let (inner, own) = (log.clone(), pool.clone());
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Deferred(inner.clone(), own.clone())).unwrap();
        let address = server.addresses()[0].clone();
        let answers = Count::new();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                let (address, answers) = (address.clone(), answers.clone());
                thread::spawn(move || {
                    // The drain may be over before this client has come.
                    let Ok(mut client) = Client::try_connect(&address) else { return };
                    let request = format!("{index} asks\n");
                    let mut answer = vec![0; request.len()];
                    while client.0.write_all(request.as_bytes()).is_ok() {
                        match client.0.read_exact(&mut answer) {
                            Ok(()) => answers.up(),
                            Err(_) => break,
                        }
                        assert_eq!(answer, request.as_bytes());
                    }
                })
            })
            .collect();
        answers.until(10 + 7 * round as u64);
        let report = server.drain(LONG);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert!(report.drained && report.stats.balances(), "{report:?}");
        assert_eq!((report.stats.answered, report.stats.requests_aborted), (answers.get(), 0));
        drop(server);
        finish(&pool);
    }
}

/// Goal: who has asked and sends no more is answered all the same: his connection ends when his requests have, and all
/// is sent. Method: clients that finish behind their request, answered later; and with nothing in work, at once.
#[test]
fn a_peer_that_has_finished_gets_its_answers() {
    const CLIENTS: usize = 50;
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let (inner, own) = (log.clone(), pool.clone());
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Deferred(inner.clone(), own.clone())).unwrap();
        let address = &server.addresses()[0];
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(address)).collect();
        for client in &mut clients {
            client.send("one\n and a part");
            client.0.shutdown(std::net::Shutdown::Write).unwrap();
        }
        for client in &mut clients {
            assert_eq!(client.rest(), b"one\n");
        }
        let silent = Client::connect(address);
        silent.finish();
        log.closed.until(CLIENTS as u64 + 1);
        assert_eq!(log.reason(0), Reason::Peer);
        let stats = end(&server);
        assert_eq!((stats.answered, stats.requests_aborted), (CLIENTS as u64, 0));
        assert_eq!(stats.closed.peer, CLIENTS as u64 + 1);
        finish(&pool);
    }
}

/// Goal: a server that allows it leaves a connection open whose peer has finished, until it is closed here; a drain does
/// close it. Method: what was not admitted is answered long after the end of the request.
#[test]
fn half_open_connections_stay_if_they_are_allowed() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, finished) = (pool(2), Log::new(), Count::new());
        let (inner, count) = (log.clone(), finished.clone());
        let factory = move |_: &Conn| Staying(inner.clone(), count.clone());
        let builder = Server::builder(&pool).listen(kind.address()).allow_half_open(true);
        let server = builder.serve(factory).unwrap();
        let mut clients: Vec<_> = (0..2).map(|_| Client::connect(&server.addresses()[0])).collect();
        for client in &mut clients {
            client.expect("stay");
            client.0.shutdown(std::net::Shutdown::Write).unwrap();
        }
        finished.until(2);
        // The run in which that was told is over.
        thread::sleep(TICK);
        log.conns.lock().unwrap().iter().for_each(|conn| _ = conn.write(b"late").unwrap());
        clients.iter_mut().for_each(|client| client.expect("late"));
        assert_eq!(log.closed.get(), 0);
        log.conn(0).close().unwrap();
        log.closed.until(1);
        let stats = end(&server);
        assert_eq!((stats.closed.peer, stats.closed.drained), (1, 1), "{stats:?}");
        finish(&pool);
    }
}

/// Keeps a request for ever.
struct Stuck(Log, Arc<Mutex<Vec<Admission>>>);

impl ConnHandler for Stuck {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.1.lock().unwrap().extend(conn.admit());
        bytes.len()
    }

    fn draining(&mut self, conn: &Conn) {
        assert!(conn.is_draining());
        self.0.opened.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn what_is_not_through_in_time_is_cut_off() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, kept) = (pool(2), Log::new(), Arc::new(Mutex::new(Vec::new())));
        let (inner, requests) = (log.clone(), Arc::clone(&kept));
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| Stuck(inner.clone(), Arc::clone(&requests))).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("x");
        until("the request", || server.stats().in_work == 1);
        let draining = thread::spawn({
            let server = server.clone();
            move || server.drain(LONG)
        });
        // It is told, and has its time, which is now over.
        log.opened.until(1);
        let report = server.drain(Duration::ZERO);
        assert!(!report.drained && report.stats.balances(), "{report:?}");
        assert_eq!(log.reason(0), Reason::CutOff);
        let _cut_off = draining.join().unwrap();
        assert_eq!((server.stats().closed.cut_off, log.opened.get()), (1, 1));
        let late = kept.lock().unwrap().pop().unwrap();
        assert!(late.conn().write(b"late").is_err());
        late.answered();
        assert_eq!(server.stats().requests_aborted, 1, "nobody got that answer");
        assert!(server.stats().balances());
    }
}

#[test]
fn a_drain_inside_a_handler_is_a_request() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log) = (pool(2), Log::new());
        let slot = Arc::new(Mutex::new(None::<Server>));
        let (inner, own) = (log.clone(), Arc::clone(&slot));
        let data = move |conn: &Conn, bytes: &[u8]| {
            let server = own.lock().unwrap().take().unwrap();
            assert!(matches!(server.wait(), Err(Error::WouldDeadlock)));
            let report = server.drain(LONG);
            assert!(report.requested && !report.drained);
            conn.write(b"draining").unwrap();
            *own.lock().unwrap() = Some(server);
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        *slot.lock().unwrap() = Some(server.clone());
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("drain");
        assert_eq!(client.rest(), b"draining");
        drop(client);
        server.wait().unwrap();
        assert_eq!(server.stats().closed.drained, 1);
        slot.lock().unwrap().take();
    }
}

#[test]
fn dropping_the_last_server_cuts_off() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder);
        let address = server.addresses()[0].clone();
        let mut client = Client::connect(&address);
        log.opened.until(1);
        drop(server.clone());
        client.send("x");
        client.expect("x");
        drop(server);
        assert_eq!(log.reason(0), Reason::CutOff);
        client.rest_or_reset();
        until("nobody listening", || Client::try_connect(&address).is_err());
        finish(&pool);
    }
}

#[test]
fn a_pool_that_ends_ends_its_servers() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| builder);
        let mut client = Client::connect(&server.addresses()[0]);
        log.opened.until(1);
        let waiter = thread::spawn({
            let server = server.clone();
            move || server.wait()
        });
        let report = pool.stop_now();
        assert_eq!((report.drained, report.connections), (false, 1), "{report:?}");
        assert_eq!(log.reason(0), Reason::PoolEnded);
        waiter.join().unwrap().unwrap();
        client.rest_or_reset();
        let stats = end(&server);
        assert_eq!(stats.closed.pool_ended, 1);
    }
}

/// Goal: what has arrived when a drain begins is answered. Method: the pool's only thread is kept busy until the
/// request is there, and the drain has begun.
#[test]
fn what_has_arrived_is_answered_before_a_drain_ends() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, gate) = (pool(1), Gate::new());
        let (server, log) = echo(&pool, kind, |builder| builder);
        let mut client = Client::connect(&server.addresses()[0]);
        log.opened.until(1);
        let stuck = gate.clone();
        pool.post(move || stuck.wait()).unwrap();
        gate.until_entered(1);
        client.send("a request");
        let draining = thread::spawn({
            let server = server.clone();
            move || server.drain(LONG)
        });
        let refuses =
            || matches!(server.connect("127.0.0.1:1", Echo(Log::new())), Err(Error::ShutDown));
        until("the drain has begun", refuses);
        gate.open();
        assert_eq!(client.rest(), b"a request");
        drop(client);
        assert_eq!(draining.join().unwrap().stats.closed.drained, 1);
    }
}

/// Goal: a message of which a part has come when a drain begins is let come to its end, and answered.
#[test]
fn a_drain_waits_for_the_rest_of_a_message() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, seen) = (pool(2), Log::new(), Count::new());
        let (inner, parts) = (log.clone(), seen.clone());
        let whole_lines = move |conn: &Conn, bytes: &[u8]| {
            parts.up();
            if bytes.last() != Some(&b'\n') {
                return 0;
            }
            conn.write(bytes).unwrap();
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), whole_lines.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        client.send("a part");
        seen.until(1);
        let conn = log.conn(0);
        let draining = thread::spawn({
            let server = server.clone();
            move || server.drain(LONG)
        });
        let refuses =
            || matches!(server.connect("127.0.0.1:1", Echo(Log::new())), Err(Error::ShutDown));
        until("the drain has begun", refuses);
        log.settle(&conn);
        client.send(" and its rest\n");
        assert_eq!(client.rest(), b"a part and its rest\n");
        drop(client);
        assert_eq!(draining.join().unwrap().stats.closed.drained, 1);
    }
}

/// A handler that has paused is still busy with something: a drain waits for it, as long as it may.
#[test]
fn a_drain_waits_for_those_that_have_paused() {
    let _guard = hang_guard();
    for kind in KINDS {
        for resumes in [true, false] {
            let (pool, log, said) = (pool(2), Log::new(), Count::new());
            let (inner, drains) = (log.clone(), said.clone());
            let factory = move |_: &Conn| Pausing(inner.clone(), drains.clone());
            let server = Server::builder(&pool).listen(kind.address()).serve(factory).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            client.send("first ");
            let conn = log.conn(0);
            client.expect("first ");
            client.send("second");
            let drain = thread::spawn({
                let server = server.clone();
                move || server.drain(LONG)
            });
            said.until(1);
            log.settle(&conn);
            if resumes {
                conn.resume().unwrap();
                assert_eq!(client.rest(), b"second");
            } else {
                let report = server.drain(Duration::ZERO);
                assert!(!report.drained && report.stats.balances(), "{report:?}");
            }
            let (report, closed) = (drain.join().unwrap(), server.stats().closed);
            assert!(report.stats.balances(), "{report:?}");
            assert_eq!((closed.drained, closed.cut_off), if resumes { (1, 0) } else { (0, 1) });
        }
    }
}

/// Reads no more after each piece, and tells of a drain.
struct Pausing(Log, Count);

impl ConnHandler for Pausing {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        conn.write(bytes).unwrap();
        if !conn.is_draining() {
            conn.pause();
        }
        bytes.len()
    }

    fn notified(&mut self, _: &Conn) {
        self.0.notified.up();
    }

    fn draining(&mut self, _: &Conn) {
        self.1.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

/// Goal: whoever does not read costs nothing while others are served. Method: count what handlers the
/// pool runs for the others' requests.
#[test]
fn a_thousand_that_never_read_cost_the_healthy_nothing() {
    const MANY: usize = 1000;
    const ROUNDS: u64 = 500;
    in_child(|| {
        limit(libc::RLIMIT_NOFILE, 2 * MANY as u64 + 200);
        for kind in [Kind::Tcp, Kind::Abstract] {
            let pool = pool(2);
            let (server, log) = echo(&pool, kind, |builder| {
                let builder = builder.send_buffer(1).receive_buffer(1).stall_timeout(LONG);
                builder.output_marks(1024, 4096, 1 << 20)
            });
            let address = &server.addresses()[0];
            let greedy: Vec<_> = (0..MANY)
                .map(|_| {
                    let client = Client::with_buffers(address, Some(1)).unwrap();
                    client.0.set_nonblocking(true).unwrap();
                    client
                })
                .collect();
            log.opened.until(MANY as u64);
            let conns = log.conns.lock().unwrap().clone();
            until("all of them press", || {
                for client in &greedy {
                    while client.0.send(&[0; 4096]).is_ok() {}
                }
                // It presses from above the high mark down to the low one: the kernel may take more later.
                let presses =
                    |conn: &ConnRef| matches!(conn.write(b""), Ok(WriteStatus::AboveHighMark));
                conns.iter().all(presses)
            });
            let mut good = Client::connect(address);
            let mut round = || {
                good.send("x");
                good.expect("x");
            };
            round();
            let handled = || pool.stats().threads.iter().map(|thread| thread.handled).sum::<u64>();
            let before = handled();
            (0..ROUNDS).for_each(|_| round());
            let ran = handled() - before;
            // Each of the others may learn now and then that the kernel has found some room. Whoever asks all of them
            // for each request has half a million runs.
            assert!(ran <= 2 * ROUNDS + 20 * MANY as u64, "{ran} runs for {ROUNDS} requests");
            drop((greedy, good));
            end(&server);
        }
    });
}

/// Goal: a pool without room for more handles ends connections at once, and goes on. Method: more
/// clients than the smallest pool has handles; each is served or sees the end, as the counters say.
#[test]
fn a_pool_without_room_ends_connections_at_once() {
    const MANY: usize = 1100;
    in_child(|| {
        limit(libc::RLIMIT_NOFILE, 2 * MANY as u64 + 200);
        for kind in KINDS {
            let pool = Pool::builder().threads(2).max_handles(1).build().unwrap();
            let (server, log) = echo(&pool, kind, |builder| builder);
            let address = &server.addresses()[0];
            let mut clients: Vec<_> = (0..MANY).map(|_| Client::connect(address)).collect();
            until("all were accepted", || server.stats().accepted == MANY as u64);
            until("a handler for each", || server.stats().open as u64 == log.opened.get());
            let stats = server.stats();
            assert_eq!(stats.open, 1023, "1024 handles, of which one listens");
            assert_eq!(stats.closed.pool_ended, (MANY - 1023) as u64);
            clients.retain_mut(|client| {
                let _ = client.0.write(b"x");
                client.0.read_exact(&mut [0]).is_ok()
            });
            assert_eq!(clients.len(), stats.open);
            drop(clients);
            log.closed.until(stats.open as u64);
            let mut late = Client::connect(address);
            late.send("y");
            late.expect("y");
            drop(late);
            end(&server);
        }
    });
}

// --- panics ---------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Factory,
    Open,
    Data,
    Finished,
    Close,
}

struct Panicking(Log, At);

impl Panicking {
    fn here(&self, at: At) {
        if self.1 == at {
            quiet_panic("on purpose");
        }
    }
}

impl ConnHandler for Panicking {
    fn open(&mut self, _: &Conn) -> Accept {
        self.here(At::Open);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let _ = conn.write(b"never sent");
        self.here(At::Data);
        bytes.len()
    }

    fn finished(&mut self, conn: &Conn) {
        self.here(At::Finished);
        conn.close();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
        self.here(At::Close);
    }
}

#[test]
fn a_panic_closes_its_own_connection_and_is_counted() {
    let _guard = hang_guard();
    for kind in KINDS {
        for at in [At::Factory, At::Open, At::Data, At::Finished, At::Close] {
            let (pool, log) = (pool(2), Log::new());
            let inner = log.clone();
            let builder = Server::builder(&pool).listen(kind.address());
            let factory = move |_: &Conn| {
                let handler = Panicking(inner.clone(), at);
                handler.here(At::Factory);
                handler
            };
            let server = builder.serve(factory).unwrap();
            for _ in 0..3 {
                let mut client = Client::connect(&server.addresses()[0]);
                let _ = client.0.write(b"x");
                if at == At::Close {
                    client.expect("never sent");
                }
                let _ = client.0.shutdown(std::net::Shutdown::Write);
                client.rest_or_reset();
            }
            until("the ends", || server.stats().open == 0);
            let stats = end(&server);
            let expected = match at {
                At::Close => (0, 3, 3),
                At::Factory => (3, 0, 0),
                _ => (3, 3, 0),
            };
            let seen = (stats.closed.panicked, log.closed.get(), stats.panics_in_close);
            assert_eq!(seen, expected, "{at:?}");
            finish(&pool);
        }
    }
}

// --- storms ---------------------------------------------------------------------------------------

/// Goal: whatever clients do, every connection ends once, and descriptors come back.
#[test]
fn a_storm_of_resets_leaves_nothing() {
    in_child(|| {
        for kind in KINDS {
            let pool = pool(2);
            let (server, log) = echo(&pool, kind, |builder| builder.linger(TICK));
            let address = server.addresses()[0].clone();
            let before = open_descriptors();
            let storms: Vec<_> = (0..3)
                .map(|seed| {
                    let address = address.clone();
                    thread::spawn(move || {
                        let mut random = Random::new(seed);
                        for _ in 0..300 {
                            let mut client = Client::connect(&address);
                            let writes = random.below(3);
                            for _ in 0..writes {
                                let _ = client.0.write(&vec![1; 1 + random.below(70_000) as usize]);
                            }
                            match random.below(3) {
                                0 => client.reset(),
                                1 => drop(client),
                                _ if writes == 0 => client.finish(),
                                _ => {
                                    let _ = client.0.read(&mut [0; 100]);
                                    let _ = client.0.shutdown(std::net::Shutdown::Write);
                                }
                            }
                        }
                    })
                })
                .collect();
            storms.into_iter().for_each(|storm| storm.join().unwrap());
            let stats = end(&server);
            // A reset that overtakes the handshake in a busy kernel leaves no connection.
            let overtaken = if matches!(kind, Kind::Tcp | Kind::Tcp6) { 50 } else { 0 };
            assert!((900 - overtaken..=900).contains(&stats.accepted), "{stats:?}");
            assert_eq!(log.closed.get(), log.opened.get());
            let own = stats.closed.peer + stats.closed.failed + stats.closed.drained;
            assert_eq!(own, stats.accepted, "{stats:?}");
            // The listener is gone, too.
            assert_eq!(open_descriptors(), before - 1);
            finish(&pool);
        }
    });
}

/// Goal: those who connect and say nothing, and those who never read, harm nobody.
#[test]
fn half_open_peers_and_those_that_never_read_harm_nobody() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| {
            builder.send_buffer(1).receive_buffer(1).output_marks(4096, 16384, 65536)
        });
        let address = &server.addresses()[0];
        let silent: Vec<_> = (0..100).map(|_| Client::connect(address)).collect();
        let greedy: Vec<_> = (0..50)
            .map(|_| {
                let mut client = Client::with_buffers(address, Some(1)).unwrap();
                client.0.set_nonblocking(true).unwrap();
                while client.0.write(&[0; 4096]).is_ok() {}
                client
            })
            .collect();
        log.opened.until(150);
        let mut good = Client::connect(address);
        for round in 0..200 {
            let bytes = pattern(round);
            good.send(&bytes);
            good.expect(&bytes);
        }
        for conn in log.conns.lock().unwrap().iter() {
            assert!(conn.queued() <= 65536);
        }
        drop((silent, greedy, good));
        end(&server);
    }
}

/// Goal: a peer that is gone without a word is found out: by its silence, or by the first write, which its machine
/// does not know what to do with.
#[test]
fn a_peer_that_is_gone_without_a_word_is_found_out() {
    let _guard = hang_guard();
    for (kind, writes) in [Kind::Tcp, Kind::Tcp6].into_iter().flat_map(|k| [(k, false), (k, true)])
    {
        let pool = pool(2);
        let idle = if writes { LONG } else { TICK };
        let (server, log) = echo(&pool, kind, |builder| builder.idle_timeout(idle));
        let client = Client::connect(&server.addresses()[0]);
        let conn = log.conn(0);
        if let Err(error) = vanish(client.0) {
            return skipped(format_args!("sockets cannot be repaired: {error}"));
        }
        if writes {
            log.settle(&conn);
            assert_eq!(log.closed.get(), 0, "nobody has said so");
            conn.write(b"are you there?").unwrap();
            assert_eq!(log.reason(0), Reason::Failed(ErrorKind::ConnectionReset));
        } else {
            assert_eq!(log.reason(0), Reason::TimedOut(Timeout::Idle));
        }
        end(&server);
    }
}

/// Says something, and stays open when its peer has finished.
struct Staying(Log, Count);

impl ConnHandler for Staying {
    fn open(&mut self, conn: &Conn) -> Accept {
        conn.write(b"stay").unwrap();
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn finished(&mut self, _: &Conn) {
        self.1.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

/// Goal: a peer that has finished, and then breaks off, is gone, though nothing is read or written any more. Method: a
/// Unix socket breaks off when it is closed with bytes unread.
#[test]
fn a_peer_that_breaks_off_after_its_end_is_gone() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, finished) = (pool(2), Log::new(), Count::new());
        let (inner, count) = (log.clone(), finished.clone());
        let factory = move |_: &Conn| Staying(inner.clone(), count.clone());
        let builder = Server::builder(&pool).listen(kind.address()).allow_half_open(true);
        let server = builder.serve(factory).unwrap();
        let client = Client::connect(&server.addresses()[0]);
        client.finish();
        finished.until(1);
        assert_eq!(log.closed.get(), 0);
        client.reset();
        // What Linux calls it, where the peer has finished before.
        let told = match kind {
            Kind::Tcp | Kind::Tcp6 => ErrorKind::BrokenPipe,
            Kind::Unix | Kind::Abstract => ErrorKind::ConnectionReset,
        };
        assert_eq!(log.reason(0), Reason::Failed(told), "{kind:?}");
        assert_eq!(end(&server).closed.failed, 1);
    }
}

/// A broadcast to many, one of whom does not read.
#[test]
fn a_slow_reader_harms_no_broadcast() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, log) = echo(&pool, kind, |builder| {
            builder.send_buffer(1).output_marks(4096, 16384, 65536).stall_timeout(LONG)
        });
        let address = &server.addresses()[0];
        let slow = Client::with_buffers(address, Some(1)).unwrap();
        log.opened.until(1);
        let mut readers: Vec<_> = (0..9).map(|_| Client::connect(address)).collect();
        log.opened.until(10);
        let conns = log.conns.lock().unwrap().clone();
        let mut lost = 0;
        for _ in 0..300 {
            for conn in &conns {
                lost += u64::from(conn.write(&[b'n'; 1000]).is_err());
            }
            readers.iter_mut().for_each(|reader| reader.expect([b'n'; 1000]));
        }
        assert!(lost > 0, "the slow one's queue is full");
        drop((slow, readers));
        end(&server);
    }
}
