//! Everything at once, from everywhere: whatever is called in whatever order, every handler is closed
//! once, the counters balance, and nobody hangs.

use crate::common::{Count, LONG, Random, finish, hang_guard, in_child, open_descriptors, until};
use crate::kit::*;
use paceline::Error;
use paceline::net::{
    Accept, Admission, Conn, ConnHandler, ConnRef, Reason, Server, Timeout, TimeoutAction,
};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What all handlers of a test share.
#[derive(Clone, Default)]
struct World {
    begun: Count,
    closed: Count,
    conns: Arc<Mutex<Vec<ConnRef>>>,
    requests: Arc<Mutex<Vec<Admission>>>,
    seed: Arc<AtomicU64>,
}

impl World {
    fn random(&self) -> Random {
        Random::new(self.seed.fetch_add(1, SeqCst))
    }

    fn any(&self, random: &mut Random) -> Option<ConnRef> {
        let conns = self.conns.lock().unwrap();
        let last = conns.len().checked_sub(1)? as u64;
        Some(conns[random.below(last + 1) as usize].clone())
    }
}

/// Does anything in every hook, to its own connection and to others.
struct Wild {
    world: World,
    random: Random,
    inside: AtomicBool,
    begun: bool,
    ended: bool,
}

impl Wild {
    fn new(world: &World) -> Self {
        let random = world.random();
        let inside = AtomicBool::new(false);
        Self { world: world.clone(), random, inside, begun: false, ended: false }
    }

    /// Every hook passes here: no two at once, and none after `close`.
    fn hook<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        assert!(!self.inside.swap(true, SeqCst) && !self.ended);
        if !std::mem::replace(&mut self.begun, true) {
            self.world.begun.up();
        }
        let result = act(self);
        self.inside.store(false, SeqCst);
        result
    }

    fn act(&mut self, conn: &Conn) {
        match self.random.below(24) {
            0..5 => drop(conn.write(&[1; 3000])),
            5..7 => drop(conn.write_owned(vec![2; 100_000])),
            7..9 => drop(conn.write_tracked(b"tracked", 7)),
            9 => drop(conn.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(&[3; 500])])),
            10 => conn.flush(),
            11 => conn.shutdown_write(),
            12 => conn.close(),
            13 => conn.abort(),
            14 => conn.pause(),
            15 => conn.resume(),
            16 => conn.set_deadline(Some(Duration::from_micros(self.random.below(3000)))),
            17 => self.world.requests.lock().unwrap().extend(conn.admit()),
            18..20 => elsewhere(&self.world, &mut self.random),
            20 => self.world.conns.lock().unwrap().push(conn.handle()),
            _ => {}
        }
    }
}

/// What any thread may do.
fn elsewhere(world: &World, random: &mut Random) {
    let Some(conn) = world.any(random) else { return };
    let result = match random.below(16) {
        0..4 => conn.write(&[4; 2000]).map(drop),
        4 => conn.write_owned(vec![5; 50_000]).map(drop),
        5 => conn.write_tracked(b"from elsewhere", 9).map(drop),
        6 => conn.close(),
        7 => conn.abort(),
        8 => conn.pause(),
        9..11 => conn.resume(),
        11..13 => conn.notify(),
        13 => conn.shutdown_write(),
        14 => {
            let request = world.requests.lock().unwrap().pop();
            request.into_iter().for_each(Admission::answered);
            Ok(())
        }
        _ => {
            let _looks = (conn.is_open(), conn.queued(), conn.local(), conn.id());
            Ok(())
        }
    };
    let known = matches!(result, Ok(()) | Err(Error::Stale { .. } | Error::Full { .. }));
    assert!(known, "{result:?}");
}

impl ConnHandler for Wild {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.hook(|wild| {
            wild.world.conns.lock().unwrap().push(conn.handle());
            wild.act(conn);
            match wild.random.below(20) {
                0 => Accept::Refuse(b"no".to_vec()),
                _ => Accept::Yes,
            }
        })
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.hook(|wild| {
            wild.act(conn);
            bytes.len() - wild.random.below(3) as usize % bytes.len()
        })
    }

    fn finished(&mut self, conn: &Conn) {
        self.hook(|wild| {
            wild.act(conn);
            conn.close();
        });
    }

    fn writable(&mut self, conn: &Conn) {
        self.hook(|wild| wild.act(conn));
    }

    fn written(&mut self, conn: &Conn, token: u64) {
        assert!(token == 7 || token == 9);
        // Not everything: a tracked write in here would never come to an end.
        self.hook(|wild| elsewhere(&wild.world, &mut wild.random));
        let _ = conn.queued();
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        self.hook(|wild| {
            wild.act(conn);
            match kind {
                Timeout::Deadline => TimeoutAction::Keep,
                _ => TimeoutAction::Close,
            }
        })
    }

    fn notified(&mut self, conn: &Conn) {
        self.hook(|wild| wild.act(conn));
    }

    fn draining(&mut self, conn: &Conn) {
        self.hook(|wild| wild.act(conn));
    }

    fn close(&mut self, conn: &Conn, _: Reason) {
        assert!(conn.write(b"too late").is_err());
        self.hook(|wild| elsewhere(&wild.world, &mut wild.random));
        self.ended = true;
        self.world.closed.up();
    }
}

impl Drop for Wild {
    fn drop(&mut self) {
        // A connection that could not even be begun gives its handler back unused.
        let was_closed = self.ended || !self.begun || thread::panicking();
        assert!(was_closed, "closed before it is dropped");
    }
}

fn wild(kind: Kind) -> (paceline::Pool, Server, World) {
    let (pool, world) = (pool(3), World::default());
    let inner = world.clone();
    let server = Server::builder(&pool)
        .listen(kind.address())
        .output_marks(5_000, 20_000, 200_000)
        .max_connections(60)
        .refusal("full")
        .max_requests(20)
        .busy("busy")
        .idle_timeout(Duration::from_millis(40))
        .read_timeout(Duration::from_millis(30))
        .stall_timeout(Duration::from_millis(30))
        .linger(Duration::from_millis(10))
        .send_buffer(4000)
        .serve(move |_| Wild::new(&inner))
        .unwrap();
    (pool, server, world)
}

/// A client that sends, reads, ends and resets as it likes, again and again.
fn rude_client(address: &paceline::net::Address, random: &mut Random) {
    use std::io::{Read, Write};
    let Ok(mut client) = Client::try_connect(address) else { return };
    let _ = client.0.set_read_timeout(Some(Duration::from_millis(5)));
    let _ = client.0.set_write_timeout(Some(Duration::from_millis(5)));
    for _ in 0..random.below(8) {
        match random.below(6) {
            0..3 => drop(client.0.write(&vec![6; 1 + random.below(9000) as usize])),
            3..5 => drop(client.0.read(&mut [0; 5000])),
            _ => drop(client.0.shutdown(std::net::Shutdown::Write)),
        }
    }
    if random.below(3) == 0 {
        client.reset();
    }
}

/// Runs clients, outgoing connections and callers until `end` returns.
fn storm(server: &Server, world: &World, end: impl FnOnce()) {
    let running = Arc::new(AtomicBool::new(true));
    let address = &server.addresses()[0];
    thread::scope(|scope| {
        for index in 0..5 {
            let running = Arc::clone(&running);
            scope.spawn(move || {
                let mut random = world.random();
                while running.load(SeqCst) {
                    match index {
                        0..3 => rude_client(address, &mut random),
                        3 => elsewhere(world, &mut random),
                        _ => connect(server, world, &mut random),
                    }
                }
            });
        }
        end();
        running.store(false, SeqCst);
    });
}

fn connect(server: &Server, world: &World, random: &mut Random) {
    match server.connect(&server.addresses()[0], Wild::new(world)) {
        Ok(conn) if random.below(2) == 0 => drop(conn.write(b"hello")),
        Ok(_) => {}
        Err(_) => thread::yield_now(),
    }
    let mut conns = world.conns.lock().unwrap();
    if conns.len() > 100 {
        conns.drain(..50);
    }
}

/// Everything has ended, once, and nothing went wrong in a hook.
#[track_caller]
fn settled(server: &Server, world: &World) {
    until("the last end", || server.stats().open == 0);
    world.requests.lock().unwrap().clear();
    let stats = server.stats();
    assert!(stats.balances() && stats.in_work == 0, "{stats:?}");
    assert_eq!((stats.closed.panicked, stats.panics_in_close), (0, 0), "{stats:?}");
    assert_eq!(world.begun.get(), world.closed.get());
}

#[test]
fn a_storm_of_calls_from_everywhere() {
    in_child(|| {
        for kind in KINDS {
            let before = open_descriptors();
            let (pool, server, world) = wild(kind);
            storm(&server, &world, || world.closed.until(300));
            let _report = server.drain(TICK);
            settled(&server, &world);
            drop(server);
            finish(&pool);
            drop(pool);
            // A thread that takes its time is not waited for.
            until("the descriptors are closed", || open_descriptors() == before);
        }
    });
}

/// The server ends in the middle of it, in one way or another.
#[test]
fn a_server_that_ends_in_a_storm() {
    in_child(|| {
        for (round, kind) in KINDS.into_iter().cycle().take(12).enumerate() {
            let (pool, server, world) = wild(kind);
            storm(&server, &world, || {
                world.closed.until(30);
                match round % 3 {
                    0 => drop(server.drain(TICK)),
                    1 => drop(server.drain(Duration::ZERO)),
                    // Requests are kept for ever, so a drain would not end.
                    _ => drop(pool.stop_now()),
                }
            });
            let _report = server.drain(TICK);
            settled(&server, &world);
            drop(server);
            match round % 3 {
                2 => crate::common::settled(&pool),
                _ => finish(&pool),
            }
        }
    });
}

/// A hook drains its server, and drops the last of it.
#[test]
fn a_hook_that_drops_its_server() {
    struct Dropping(Arc<Mutex<Option<Server>>>, Log, bool);
    impl ConnHandler for Dropping {
        fn open(&mut self, conn: &Conn) -> Accept {
            self.1.open(conn);
            Accept::Yes
        }

        fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
            let _ = conn.write(bytes);
            if let Some(server) = self.0.lock().unwrap().take() {
                if self.2 {
                    let _report = server.drain(LONG);
                }
                drop(server);
            }
            bytes.len()
        }

        fn close(&mut self, _: &Conn, reason: Reason) {
            self.1.close(reason);
        }
    }
    let _guard = hang_guard();
    for (round, kind) in KINDS.into_iter().cycle().take(40).enumerate() {
        let (pool, log, slot) = (pool(2), Log::new(), Arc::new(Mutex::new(None)));
        let (inner, own) = (log.clone(), Arc::clone(&slot));
        let factory = move |_: &Conn| Dropping(Arc::clone(&own), inner.clone(), round % 2 == 0);
        let server = Server::builder(&pool).listen(kind.address()).serve(factory).unwrap();
        let mut clients: Vec<_> = (0..4).map(|_| Client::connect(&server.addresses()[0])).collect();
        *slot.lock().unwrap() = Some(server);
        clients.iter_mut().for_each(|client| drop(client.0.send(b"x")));
        clients.iter_mut().for_each(|client| drop(client.rest_or_reset()));
        // Those that were cut off before they were opened have no handler.
        until("the end of all that had begun", || log.closed.get() == log.opened.get());
        assert!((1..=4).contains(&log.closed.get()));
        finish(&pool);
    }
}

/// Connections to a server of the same pool, whose drain comes while they are being made.
#[test]
fn a_drain_meets_connections_that_are_being_made() {
    let _guard = hang_guard();
    for (round, kind) in KINDS.into_iter().cycle().take(60).enumerate() {
        let pool = pool(2);
        let (server, _) = echo(&pool, kind, |builder| builder.linger(TICK));
        let log = Log::new();
        let begun = thread::scope(|scope| {
            let connects = scope.spawn(|| {
                let connect = |_| server.connect(&server.addresses()[0], Echo(log.clone()));
                let begun = |result: &Result<_, Error>| result.is_ok();
                (0..20).map(connect).take_while(begun).count()
            });
            (0..round * 20).for_each(|_| std::hint::spin_loop());
            let report = server.drain(LONG);
            // One that is being refused has its seat for a moment, so the balance comes later.
            assert!(report.drained, "{report:?}");
            connects.join().unwrap() as u64
        });
        // The drain waited for those that began before it, and none began after.
        let stats = server.stats();
        assert!(stats.balances() && stats.open == 0, "{stats:?}");
        assert_eq!((stats.connected, log.closed.get()), (begun, begun));
        drop(server);
        finish(&pool);
    }
}
