//! Host threads: joining for a while, driving a pool without threads, and a descriptor for hosts
//! that wait in a loop of their own.

mod common;

use common::{
    Count, Fd, Gate, LONG, RAN, Random, finish, forked, hang_guard, in_child, settled, until,
};
use paceline::cq::CompletionQueue;
use paceline::{Error, Flow, Pool, Rejected, SourceKind};
use std::any::Any;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(2);

/// A pool that only hosts drive.
fn hosted(places: usize) -> Pool {
    Pool::builder().threads(0).max_joined(places).build().unwrap()
}

/// Tasks of all lanes, a strand, timers and a descriptor: `amount` of each counts once.
fn work_of_every_kind(pool: &Pool, amount: u64, done: &Count) {
    let up = || {
        let done = done.clone();
        move || done.up()
    };
    let strand = pool.strand().unwrap();
    for _ in 0..amount {
        pool.post(up()).unwrap();
        strand.post(up()).unwrap();
        pool.after(Duration::from_micros(100), up()).unwrap();
        let ((read, write), done) = (Fd::pipe(), done.clone());
        write.write(b"!").unwrap();
        let handler = move |fd: &mut Fd, _| {
            done.add(fd.drain() as u64);
            Flow::Done
        };
        pool.register(read, handler).unwrap().detach();
    }
}

#[test]
fn a_host_drives_a_pool_without_threads() {
    let _guard = hang_guard();
    for time in [Duration::ZERO, TURN] {
        let pool = hosted(1);
        let (done, mut ran) = (Count::new(), 0);
        work_of_every_kind(&pool, 50, &done);
        assert_eq!(done.get(), 0, "nobody has joined");
        while done.get() < 200 {
            ran += pool.join(time).unwrap();
        }
        // Each task, timer and descriptor is a run; the strand's tasks and its runs are too.
        assert!(ran >= 200, "{ran}");
        finish(&pool);
    }
}

#[test]
fn join_stays_for_its_time_and_runs_what_comes() {
    let _guard = hang_guard();
    for threads in [0, 2] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let on = Arc::new(Mutex::new(Vec::<ThreadId>::new()));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let host = scope.spawn(|| {
                let time = Duration::from_millis(50);
                let stay = || {
                    let start = Instant::now();
                    let ran = pool.join(time).unwrap();
                    assert!(start.elapsed() >= time, "it left early");
                    ran
                };
                // On a busy machine its time may be over before it, or who posts, comes to anything.
                while stay() == 0 && threads == 0 {}
                over.store(true, SeqCst);
            });
            let host = host.thread().id();
            while !over.load(SeqCst) {
                let on = Arc::clone(&on);
                // Not `post`: it would wait for room for ever once the last host has left a full lane.
                match pool.try_post(move || on.lock().unwrap().push(thread::current().id())) {
                    Ok(()) | Err(Rejected::Full(_, _)) => thread::yield_now(),
                    Err(other) => panic!("{other}"),
                }
            }
            if threads == 0 {
                assert!(on.lock().unwrap().iter().all(|&id| id == host));
            }
        });
        while threads == 0 && pool.audit().in_flight > 0 {
            pool.join(TURN).unwrap();
        }
        finish(&pool);
    }
}

#[test]
fn several_hosts_share_a_pool_without_threads() {
    let _guard = hang_guard();
    const HOSTS: usize = 4;
    let pool = hosted(HOSTS);
    let done = Count::new();
    thread::scope(|scope| {
        for _ in 0..HOSTS {
            scope.spawn(|| {
                while done.get() < 4000 {
                    pool.join(TURN).unwrap();
                }
            });
        }
        for _ in 0..10 {
            work_of_every_kind(&pool, 100, &done);
        }
    });
    assert_eq!(done.get(), 4000);
    finish(&pool);
}

/// Goal: hosts that come and go at any moment leave nothing behind. Method: short stays of four
/// hosts beside two threads of the pool's own, while work of every kind comes in.
#[test]
fn hosts_that_come_and_go_lose_nothing() {
    let _guard = hang_guard();
    for threads in [0, 2] {
        let pool = Pool::builder().threads(threads).max_joined(4).build().unwrap();
        let done = Count::new();
        thread::scope(|scope| {
            for seed in 0..4 {
                let (pool, done) = (&pool, &done);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    while done.get() < 8000 {
                        pool.join(Duration::from_micros(random.below(300))).unwrap();
                    }
                });
            }
            for _ in 0..20 {
                work_of_every_kind(&pool, 100, &done);
            }
        });
        assert_eq!(done.get(), 8000);
        finish(&pool);
    }
}

#[test]
fn there_are_as_many_places_as_were_asked_for() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_joined(2).build().unwrap();
    let gate = Gate::new();
    thread::scope(|scope| {
        for _ in 0..3 {
            let visitor = gate.clone();
            pool.post(move || visitor.wait()).unwrap();
        }
        for _ in 0..2 {
            // One turn may be over before there is a task to take over from the stuck thread.
            scope.spawn(|| while pool.join(TURN).unwrap() == 0 {});
        }
        // The pool's thread and both hosts are inside a handler.
        gate.until_entered(3);
        let refused = pool.join(TURN).unwrap_err();
        assert_eq!(refused.to_string(), "all 2 places for host threads are in use");
        gate.open();
    });
    pool.join(TURN).unwrap();
    finish(&pool);
    let none = Pool::builder().threads(1).max_joined(0).build().unwrap();
    assert!(matches!(none.join(TURN), Err(Error::Full { capacity: 0, .. })));
    finish(&none);
}

#[test]
fn joining_inside_a_handler_is_refused() {
    let _guard = hang_guard();
    let (pool, other) = (Pool::builder().threads(2).build().unwrap(), hosted(1));
    for target in [&pool, &other] {
        let inner = target.clone();
        let inside = pool.submit(move || inner.join(TURN)).unwrap().wait().unwrap();
        assert!(matches!(inside, Err(Error::Invalid { name: "join", .. })), "{inside:?}");
    }
    finish(&pool);
    finish(&other);
}

#[test]
fn a_pool_that_nobody_drives_is_drained_by_who_ends_it() {
    let _guard = hang_guard();
    for time in [Duration::ZERO, LONG] {
        let (pool, strand_ran) = (hosted(1), Count::new());
        let tasks: Vec<_> = (0..10).map(|_| pool.submit(|| ()).unwrap()).collect();
        let (strand, ran) = (pool.strand().unwrap(), strand_ran.clone());
        strand.post(move || ran.up()).unwrap();
        let report = pool.shutdown(time);
        if time.is_zero() {
            assert_eq!((report.drained, report.cancelled), (false, 11), "{report:?}");
            assert!(tasks.into_iter().all(|task| matches!(task.wait(), Err(Error::Cancelled))));
        } else {
            assert_eq!((report.drained, report.cancelled), (true, 0), "{report:?}");
            assert!(tasks.into_iter().all(|task| task.wait().is_ok()));
            assert_eq!(strand_ran.get(), 1);
        }
        is_over(&pool);
    }
}

/// Goal: the end of the last owner of a pool without threads loses nothing that was accepted. Method: the clones of a pool
/// that no host has joined are dropped.
#[test]
fn a_pool_that_nobody_drives_is_drained_by_its_last_owner() {
    let _guard = hang_guard();
    let (pool, ran) = (hosted(1), Count::new());
    for _ in 0..5 {
        let ran = ran.clone();
        pool.post(move || ran.up()).unwrap();
    }
    drop((pool.clone(), pool));
    assert_eq!(ran.get(), 5);
}

/// Goal: who ends a pool without threads waits for what it can run, a retry that is due later, say, and not for what only a
/// host could end that does not come. Method: drains without end.
#[test]
fn who_ends_a_pool_that_nobody_drives_waits_for_what_it_can_do() {
    use paceline::task::{Attempt, Fault, Retry, WorkerPool};
    let _guard = hang_guard();
    for takes in [None, Some(true), Some(false)] {
        let (pool, tries) = (hosted(2), Count::new());
        let workers = WorkerPool::new(&pool);
        let queue = CompletionQueue::new(&pool).unwrap();
        let mut entries = Vec::new();
        if let Some(takes) = takes {
            queue.workers(&workers, 1).unwrap();
            let tagged = workers.task_type("tagged").build().unwrap();
            drop(tagged.task_tagged(1).submit().unwrap());
            // One that is out, or one that nobody has taken.
            while takes && queue.wait(&mut entries, 1, Duration::ZERO).unwrap() == 0 {}
        } else {
            let again = tries.clone();
            let work = move |_: &Attempt<'_>| match again.next() {
                3 => Ok(()),
                _ => Err(Fault::new("not yet")),
            };
            let task = workers.task("again", work).retry(Retry::fixed(2, 20 * TURN));
            drop(task.submit().unwrap());
        }
        let report = pool.shutdown(LONG);
        let lost = u64::from(takes.is_some());
        assert_eq!((report.drained, report.worker_tasks), (lost == 0, lost), "{report:?}");
        assert_eq!(tries.get(), 3 * (1 - lost));
        drop((entries, queue));
    }
}

fn is_over(pool: &Pool) {
    assert!(matches!(pool.join(TURN), Err(Error::ShutDown)));
    assert!(matches!(pool.post(|| ()), Err(Rejected::ShutDown(_))));
    settled(pool);
}

#[test]
fn a_shutdown_sends_hosts_home_after_the_drain() {
    let _guard = hang_guard();
    let pool = hosted(2);
    let done = Count::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| pool.join(LONG).unwrap());
        }
        until("they have come", || {
            let roles = pool.stats().threads.into_iter().map(|thread| thread.role);
            roles.filter(|&role| role != paceline::ThreadRole::Away).count() == 2
        });
        for _ in 0..1000 {
            let done = done.clone();
            pool.post(move || done.up()).unwrap();
        }
        finish(&pool);
    });
    assert_eq!(done.get(), 1000);
}

#[test]
fn a_host_may_shut_the_pool_down_from_inside() {
    let _guard = hang_guard();
    let pool = hosted(1);
    let inner = pool.clone();
    let timer = pool.after(Duration::from_secs(3600), || ()).unwrap();
    pool.post(move || assert!(inner.shutdown(LONG).requested)).unwrap();
    pool.join(LONG).unwrap();
    assert!(!timer.is_pending(), "the last to leave sweeps up");
    settled(&pool);
}

/// Goal: a wait inside a handler does not rely on hosts, which may leave at any time, and a host's
/// own wait relies on the pool's threads.
#[test]
fn waits_rely_on_the_pools_own_threads_only() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let gate = Gate::new();
    thread::scope(|scope| {
        let host = scope.spawn(|| pool.join(LONG));
        let visitor = gate.clone();
        let own = pool.submit(move || {
            visitor.wait();
            thread::current().id()
        });
        gate.until_entered(1);
        // Of the two that take part one is at the gate, so this runs on the other.
        let inner = pool.clone();
        let outer = pool.submit(move || {
            let result = inner.submit(|| 7).unwrap().wait();
            (thread::current().id(), result)
        });
        let outer = outer.unwrap();
        until("it waits, or was refused", || outer.is_done() || pool.stats().queued[2] == 1);
        gate.open();
        own.unwrap().wait().unwrap();
        let (id, result) = outer.wait().unwrap();
        if id == host.thread().id() {
            assert_eq!(result.unwrap(), 7);
        } else {
            assert!(matches!(result, Err(Error::WouldDeadlock)), "{result:?}");
        }
        finish(&pool);
        let _left = host.join().unwrap();
    });
}

#[test]
fn hosts_serve_pools_without_descriptors_too() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(0).source(SourceKind::Ring).max_joined(2).build().unwrap();
    let done = Count::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while done.get() < 2000 {
                    pool.join(TURN).unwrap();
                }
            });
        }
        for _ in 0..1000 {
            let (task, timer) = (done.clone(), done.clone());
            pool.post(move || task.up()).unwrap();
            pool.after(Duration::from_micros(50), move || timer.up()).unwrap();
        }
    });
    finish(&pool);
}

// --- a host with a loop of its own ----------------------------------------------------------------

/// Waits until `fd` is readable.
fn poll(fd: BorrowedFd<'_>) {
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    #[allow(unsafe_code, reason = "std has no poll")]
    // SAFETY: one entry, readable and writable.
    let ready = unsafe { libc::poll(&mut entry, 1, -1) };
    assert!(ready == 1 && entry.revents == libc::POLLIN, "{ready}, {:#x}", entry.revents);
}

/// Goal: a host that joins only when the descriptor is readable, for no time at all, misses nothing.
/// Method: it blocks without a time-out in poll(2); work of every kind comes from another thread, at
/// moments when it sleeps and when it does not. One lost wake-up and it never ends.
#[test]
fn a_polling_host_hears_of_everything() {
    let _guard = hang_guard();
    let pool = hosted(1);
    let done = Count::new();
    let fd = pool.pollable().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(3);
            for _ in 0..500 {
                work_of_every_kind(&pool, 1 + random.below(3), &done);
                match random.below(3) {
                    0 => thread::sleep(Duration::from_micros(random.below(300))),
                    1 => thread::yield_now(),
                    _ => {}
                }
            }
            // The last of all says itself that it is there.
            let last = done.clone();
            pool.post(move || last.add(1_000_000)).unwrap();
        });
        while done.get() < 1_000_000 || pool.audit().in_flight > 0 || pool.stats().handles > 0 {
            poll(fd);
            pool.join(Duration::ZERO).unwrap();
        }
    });
    finish(&pool);
    let audit = pool.audit();
    assert_eq!(audit.accepted, audit.completed);
}

#[test]
fn a_polling_host_is_woken_for_each_kind_of_work() {
    let _guard = hang_guard();
    let pool = hosted(1);
    let fd = pool.pollable().unwrap();
    let count = Count::new();
    let turn_until = |target: u64| {
        while count.get() < target {
            poll(fd);
            pool.join(Duration::ZERO).unwrap();
        }
    };
    let up = || {
        let count = count.clone();
        move || count.up()
    };
    // Quiet first, so that each wake-up is the work's own.
    pool.join(Duration::ZERO).unwrap();
    pool.post(up()).unwrap();
    turn_until(1);
    pool.after(TURN, up()).unwrap();
    turn_until(2);
    let ((read, write), bytes) = (Fd::pipe(), count.clone());
    let handler = move |fd: &mut Fd, _| {
        bytes.add(fd.drain() as u64);
        Flow::Wait
    };
    let handle = pool.register(read, handler).unwrap();
    write.write(b"!").unwrap();
    turn_until(3);
    let strand = pool.strand().unwrap();
    for _ in 0..100 {
        strand.post(up()).unwrap();
    }
    turn_until(103);
    let again = count.clone();
    let periodic = pool.every(TURN, move || {
        again.up();
        Flow::Wait
    });
    turn_until(108);
    drop((handle, strand, periodic));
    until("everything has ended", || {
        pool.join(Duration::ZERO).unwrap();
        pool.stats().handles == 0
    });
    finish(&pool);
}

#[test]
fn only_a_pool_without_threads_and_with_descriptors_can_be_polled() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let refused = pool.pollable().unwrap_err().to_string();
    assert_eq!(refused, "threads is 1, but must be 0 for a pool that a host polls");
    finish(&pool);
    assert!(matches!(pool.pollable(), Err(Error::ShutDown)));
    let ring = Pool::builder().threads(0).source(SourceKind::Ring).build().unwrap();
    assert!(matches!(ring.pollable(), Err(Error::Invalid { name: "source", .. })));
    finish(&ring);
}

// --- what an end waits for ---------------------------------------------------------------------------

/// What a destructor must not return before: the code of the user that its object calls, which says so here.
#[derive(Clone, Default)]
struct Code(Arc<State>);

#[derive(Default)]
struct State {
    /// Nothing may be called or dropped any more.
    over: AtomicBool,
    calls: AtomicU64,
    /// Of these, those that were not through before that.
    late: AtomicU64,
    /// Objects that have it.
    held: AtomicU64,
}

/// What a handler has.
struct Part(Code);

impl Part {
    fn call(&self) {
        self.0.0.calls.fetch_add(1, SeqCst);
        thread::yield_now();
        self.0.0.late.fetch_add(self.0.0.over.load(SeqCst).into(), SeqCst);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.0.held.fetch_sub(1, SeqCst);
    }
}

impl Code {
    fn part(&self) -> Part {
        self.0.held.fetch_add(1, SeqCst);
        Part(self.clone())
    }

    fn calls(&self) -> u64 {
        self.0.calls.load(SeqCst)
    }

    fn late(&self) -> u64 {
        self.0.late.load(SeqCst)
    }

    /// The destructor has returned. How many handlers are still there.
    fn is_over(&self) -> u64 {
        self.0.over.store(true, SeqCst);
        self.0.held.load(SeqCst)
    }
}

/// Makes an object that has something to call, and says when it has come to that: then it is dropped.
type Make = fn(&Pool, &Code) -> Box<dyn Any>;

fn serial(pool: &Pool, code: &Code) -> Box<dyn Any> {
    let part = code.part();
    let ring = paceline::Ring::serial(pool, 64, move |_: &[u64]| part.call()).unwrap();
    ring.publish(1).unwrap();
    Box::new(ring)
}

fn concurrent(pool: &Pool, code: &Code) -> Box<dyn Any> {
    let part = code.part();
    let ring = paceline::Ring::concurrent(pool, 64, move |_: &[u64]| part.call()).unwrap();
    (0..10).for_each(|event| ring.publish(event).unwrap());
    Box::new(ring)
}

fn timer(pool: &Pool, code: &Code) -> Box<dyn Any> {
    let part = code.part();
    let timer = pool.every(Duration::from_micros(10), move || {
        part.call();
        Flow::Wait
    });
    Box::new(timer.unwrap())
}

mod served {
    use super::*;
    use paceline::net::{Conn, ConnHandler, DatagramHandler, Datagrams, Reason, Server, UdpSocket};

    impl ConnHandler for Part {
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            self.call();
            bytes.len()
        }
        fn close(&mut self, _: &Conn, reason: Reason) {
            assert_eq!(reason, Reason::CutOff);
            self.call();
        }
    }

    impl DatagramHandler for Part {
        fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {
            self.call();
        }
        fn close(&mut self, _: &UdpSocket, reason: Reason) {
            assert_eq!(reason, Reason::CutOff);
            self.call();
        }
    }

    /// With connections that it has taken in, and one that waits.
    pub fn server(pool: &Pool, code: &Code) -> Box<dyn Any> {
        use std::io::Write;
        let inner = code.clone();
        let server = Server::builder(pool).listen("127.0.0.1:0").serve(move |_| inner.part());
        let server = server.unwrap();
        let connect = || {
            let address = server.addresses()[0].tcp().unwrap();
            let mut client = std::net::TcpStream::connect(address).unwrap();
            client.write_all(b"x").unwrap();
            client
        };
        let clients: Vec<_> = (0..3).map(|_| connect()).collect();
        while code.calls() < 3 {
            pool.join(Duration::ZERO).unwrap();
        }
        let waits = connect();
        Box::new((server, clients, waits))
    }

    pub fn socket(pool: &Pool, code: &Code) -> Box<dyn Any> {
        let socket = UdpSocket::builder(pool).bind("127.0.0.1:0").serve(code.part()).unwrap();
        let to = socket.address();
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", to).unwrap();
        Box::new(socket)
    }
}

fn subscription(pool: &Pool, code: &Code) -> Box<dyn Any> {
    let hub = paceline::hub::Hub::new(pool).unwrap();
    let part = code.part();
    let subscription = hub.subscribe("orders", move |_: &paceline::hub::Message<'_>| part.call());
    let _ = hub.publish_batch("orders", ["x"; 10]).unwrap();
    Box::new((subscription.unwrap(), hub))
}

fn periodic(pool: &Pool, code: &Code) -> Box<dyn Any> {
    use paceline::task::{Attempt, MissedTick, WorkerPool};
    let (workers, part) = (WorkerPool::new(pool), code.part());
    let task = workers.task("again", move |_: &Attempt<'_>| part.call());
    let periodic = task.every(Duration::from_micros(10), MissedTick::Skip).unwrap();
    // A run waits in its lane.
    while periodic.runs() == 0 {
        pool.join(Duration::ZERO).unwrap();
    }
    Box::new((periodic, workers))
}

/// Each with what it is called when nobody drives the pool meanwhile: what its drop promises to handle, and what it
/// promises to call at the end.
const ENDS: &[(&str, Make, u64)] = &[
    ("serial ring", serial, 1),
    ("concurrent ring", concurrent, 1),
    ("timer", timer, 0),
    ("server", served::server, 3),
    ("socket", served::socket, 1),
    ("subscription", subscription, 0),
    ("periodic task", periodic, 0),
];

/// Goal: when a destructor has returned nothing of the object is called any more, though no host is in the pool, and
/// none comes before it has returned. Method: objects with work that hosts have not begun, and a host afterwards.
#[test]
fn an_end_that_no_host_sees_is_an_end() {
    let _guard = hang_guard();
    for &(name, make, least) in ENDS {
        let (pool, code) = (hosted(1), Code::default());
        let object = make(&pool, &code);
        let before = code.calls();
        drop(object);
        assert_eq!(code.is_over(), 0, "{name}: its handlers are still there");
        assert!(code.calls() - before >= least, "{name}: {} calls", code.calls() - before);
        for _ in 0..5 {
            pool.join(Duration::ZERO).unwrap();
        }
        assert_eq!(code.late(), 0, "{name}");
        finish(&pool);
    }
}

/// Goal: an end waits for what a host runs, and nothing begins after it, wherever between two stays of hosts it comes.
/// Method: two hosts in a hurry, which come and go.
#[test]
fn an_end_waits_for_hosts_that_come_and_go() {
    let _guard = hang_guard();
    for &(name, make, _) in ENDS {
        let (pool, over, mut codes) = (hosted(3), AtomicBool::new(false), Vec::new());
        let mut left = 0;
        thread::scope(|scope| {
            for time in [Duration::ZERO, Duration::from_micros(50)] {
                let (pool, over) = (&pool, &over);
                scope.spawn(move || {
                    while !over.load(SeqCst) {
                        pool.join(time).unwrap();
                    }
                });
            }
            for round in 0..100 {
                let code = Code::default();
                let object = make(&pool, &code);
                if round % 2 == 0 {
                    thread::yield_now();
                }
                drop(object);
                left += code.is_over();
                codes.push(code);
            }
            over.store(true, SeqCst);
        });
        assert_eq!(left, 0, "{name}: its handlers were still there");
        assert!(codes.iter().all(|code| code.late() == 0), "{name}: called when it must not be");
        finish(&pool);
    }
}

// --- what the report of an end says ------------------------------------------------------------------

/// Makes what the end of a pool has to do with. Its first value is kept.
type Leave = fn(&Pool) -> Box<dyn Any>;

mod listens {
    use super::*;
    use paceline::net::{Conn, ConnHandler, Server};
    use std::net::TcpStream;

    struct Silent;

    impl ConnHandler for Silent {
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            bytes.len()
        }
    }

    fn serve(pool: &Pool) -> Server {
        Server::builder(pool).listen("127.0.0.1:0").serve(|_| Silent).unwrap()
    }

    fn connect(server: &Server) -> TcpStream {
        TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap()
    }

    pub fn without_clients(pool: &Pool) -> Box<dyn Any> {
        Box::new(serve(pool))
    }

    pub fn with_one_that_waits(pool: &Pool) -> Box<dyn Any> {
        let server = serve(pool);
        Box::new((connect(&server), server))
    }

    pub fn with_one_that_is_served(pool: &Pool) -> Box<dyn Any> {
        let server = serve(pool);
        let client = connect(&server);
        while server.stats().open == 0 {
            let _ran = pool.join(Duration::ZERO).unwrap();
            thread::yield_now();
        }
        Box::new((client, server))
    }
}

/// Goal: a report is never that something was lost, without a count of what. Method: ends that no thread attends to,
/// with things that lose something by that and others that do not; and each asked for twice, by two calls.
#[test]
fn a_report_counts_what_was_lost() {
    let _guard = hang_guard();
    // Whether all is well at the end of a shutdown without time; and of one with time for what the caller can do itself.
    let leaves: &[(&str, Leave, bool, bool)] = &[
        ("nothing", |_| Box::new(()), true, true),
        ("a task", |pool| Box::new(pool.submit(|| ()).unwrap()), false, true),
        (
            "a timer",
            |pool| Box::new(pool.after(Duration::from_secs(3600), || ()).unwrap()),
            true,
            true,
        ),
        (
            "a tag",
            |pool| {
                let queue = paceline::cq::CompletionQueue::new(pool).unwrap();
                queue.post(&[1]).unwrap();
                Box::new(queue)
            },
            false,
            false,
        ),
        (
            "a handle",
            |pool| Box::new(pool.register(Fd::pipe().0, |_, _| Flow::Wait).unwrap()),
            true,
            true,
        ),
        (
            "a ring",
            |pool| {
                let ring = paceline::Ring::serial(pool, 8, |_: &[u64]| ()).unwrap();
                ring.publish(1).unwrap();
                Box::new(ring)
            },
            false,
            true,
        ),
        ("a server", listens::without_clients, true, true),
        ("a client that waits", listens::with_one_that_waits, false, true),
        ("a client", listens::with_one_that_is_served, false, true),
        (
            "a task that is out",
            |pool| {
                let workers = paceline::task::WorkerPool::new(pool);
                let kind = workers.task_type("out").build().unwrap();
                let task = kind.task_tagged(1).submit().unwrap();
                let queue = CompletionQueue::new(pool).unwrap();
                queue.workers(&workers, 2).unwrap();
                let mut entries = Vec::new();
                while queue.wait(&mut entries, 1, Duration::ZERO).unwrap() == 0 {
                    pool.join(Duration::ZERO).unwrap();
                }
                Box::new((task, workers, queue, entries))
            },
            false,
            false,
        ),
    ];
    for &(name, leave, at_once, in_time) in leaves {
        let enough = if in_time { LONG } else { Duration::from_millis(1) };
        for (time, drained) in [(Duration::ZERO, at_once), (enough, in_time)] {
            let pool = hosted(1);
            let left = leave(&pool);
            let report = pool.shutdown(time);
            assert_eq!(report.drained, drained, "{name}, {time:?}: {report:?}");
            let lost = report.worker_tasks + report.connections + report.left;
            let lost = lost + if name == "a timer" { 0 } else { report.cancelled };
            assert_eq!(lost, u64::from(!drained), "{name}, {time:?}: {report:?}");
            assert_eq!(pool.shutdown(time), report, "{name}: another call says the same");
            drop(left);
        }
    }
}

/// A thread that comes and goes is the member that it was: what a member has done is one thread's.
#[test]
fn a_host_that_comes_back_has_the_place_that_it_had() {
    let _guard = hang_guard();
    let pool = hosted(4);
    let turn = Mutex::new(());
    let turns: Vec<u64> = thread::scope(|scope| {
        let hosts: Vec<_> = (0..3)
            .map(|number| {
                let (pool, turn) = (&pool, &turn);
                scope.spawn(move || {
                    let mut ran = 0;
                    for _ in 0..100 * (number + 1) {
                        // Alone, so that the first place is free for each of them, each time.
                        let _turn = turn.lock().unwrap();
                        pool.post(|| ()).unwrap();
                        ran += pool.join(Duration::ZERO).unwrap();
                    }
                    ran
                })
            })
            .collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    });
    assert_eq!(turns, [100, 200, 300]);
    let stats = pool.stats();
    let mut tasks: Vec<_> = stats.threads.iter().map(|thread| thread.tasks).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, [0, 100, 200, 300]);
    let mut ids: Vec<_> = stats.threads.iter().filter_map(|thread| thread.native_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{stats:?}");
    finish(&pool);
}

/// Who finds that others have all places takes one of them: the places are as many as may join at once.
#[test]
fn a_host_takes_the_place_of_one_that_is_away() {
    let _guard = hang_guard();
    let pool = hosted(2);
    let mine = |pool: &Pool| {
        pool.join(Duration::ZERO).unwrap();
        pool.stats().threads.iter().map(|thread| thread.native_id).collect::<Vec<_>>()
    };
    let first = mine(&pool);
    assert!(first[0].is_some() && first[1].is_none(), "{first:?}");
    for _ in 0..4 {
        let other = thread::scope(|scope| scope.spawn(|| mine(&pool)).join().unwrap());
        assert!(other[0] == first[0] && other[1].is_some(), "{other:?}");
    }
    assert_eq!(mine(&pool)[0], first[0]);
    finish(&pool);
}

/// In a child made by fork a host thread is told of by the number that it has there.
#[test]
fn a_host_has_the_number_of_its_own_process() {
    in_child(|| {
        let ids = || {
            let pool = hosted(1);
            pool.join(Duration::ZERO).unwrap();
            let ids: Vec<_> = pool.stats().threads.iter().map(|thread| thread.native_id).collect();
            finish(&pool);
            ids
        };
        let own = || {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            vec![link.file_name().and_then(|name| name.to_str()?.parse().ok())]
        };
        assert_eq!(ids(), own());
        let child = forked(|| {
            assert_eq!(ids(), own());
            std::process::exit(RAN);
        });
        assert_eq!(child, RAN);
    });
}

/// Goal: who waits for a task in a pool without threads takes part, as nobody else may. Method: tasks of the pool and of a
/// worker pool are waited for by the thread that has submitted them, and one that waits for another one. Seen to hang
/// where the wait only slept.
#[test]
fn who_waits_for_a_task_takes_part() {
    let _guard = hang_guard();
    let pool = hosted(1);
    assert_eq!(pool.submit(|| 42).unwrap().wait().unwrap(), 42);
    let mut task = pool.submit(|| 43).unwrap();
    assert!(matches!(task.wait_timeout(Duration::ZERO), Err(Error::TimedOut)));
    assert_eq!(task.wait_timeout(LONG).unwrap(), 43);
    let inner = pool.clone();
    let outer = pool.submit(move || inner.submit(|| ()).unwrap().wait());
    assert!(matches!(outer.unwrap().wait().unwrap(), Err(Error::WouldDeadlock)));
    let failed = pool.submit(|| common::quiet_panic("it fails")).unwrap().wait();
    assert!(matches!(failed, Err(Error::Panicked { .. })));
    let workers = paceline::task::WorkerPool::new(&pool);
    let task = workers.task("t", |_: &paceline::task::Attempt<'_>| 44).submit().unwrap();
    assert_eq!(task.wait().unwrap().result.unwrap(), 44);
    let task = pool.submit(|| ()).unwrap();
    let _report = pool.shutdown(Duration::ZERO);
    assert!(matches!(task.wait(), Err(Error::Cancelled) | Ok(())));
}
