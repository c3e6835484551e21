//! Host threads: joining for a while, driving a pool without threads, and a descriptor for hosts
//! that wait in a loop of their own.

mod common;

use common::{Count, Fd, Gate, LONG, Random, finish, hang_guard, settled, until};
use paceline::{Error, Flow, Pool, Rejected, SourceKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(2);

/// A pool that only hosts drive.
fn hosted(seats: usize) -> Pool {
    Pool::builder().threads(0).max_joined(seats).build().unwrap()
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
                    Ok(()) | Err(Rejected::Full(_)) => thread::yield_now(),
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
fn there_are_as_many_seats_as_were_asked_for() {
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
        assert_eq!(refused.to_string(), "all 2 seats for host threads are in use");
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
fn a_pool_that_nobody_drives_cancels_what_it_has_at_shutdown() {
    let _guard = hang_guard();
    let pool = hosted(1);
    let tasks: Vec<_> = (0..10).map(|_| pool.submit(|| ()).unwrap()).collect();
    let report = pool.shutdown(LONG);
    assert_eq!((report.drained, report.cancelled), (false, 10), "{report:?}");
    assert!(tasks.into_iter().all(|task| matches!(task.wait(), Err(Error::Cancelled))));
    assert!(matches!(pool.join(TURN), Err(Error::ShutDown)));
    assert!(matches!(pool.post(|| ()), Err(Rejected::ShutDown(_))));
    settled(&pool);
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
            roles.filter(|&role| role != paceline::Role::Away).count() == 2
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
