//! Hosts that pull: events as data, completed by the next pull, never lost, never twice at once.

mod common;

use common::{hang_guard, until};
use paceline::{Error, Event, EventKind, Flow, HandleOptions, Interest, Pool, Rejected};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

fn hosted(places: usize) -> Pool {
    Pool::builder().threads(0).max_joined(places).build().unwrap()
}

/// Both kinds of pools: the host's threads are its members, or sleep beside its own threads.
fn both() -> [Pool; 2] {
    [hosted(8), Pool::builder().threads(2).build().unwrap()]
}

fn pull(pool: &Pool, most: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let count = pool.pull(&mut events, most, LONG).unwrap();
    assert_eq!(count, events.len());
    events
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

#[test]
fn tokens_come_out_in_order_and_the_books_balance() {
    let _guard = hang_guard();
    for pool in both() {
        pool.post_pulled(1).unwrap();
        pool.post_pulled_batch(&[2, 3, 4]).unwrap();
        assert_eq!(pool.audit().in_flight, 4);
        let mut tokens = Vec::new();
        while tokens.len() < 4 {
            let events = pull(&pool, 2);
            assert!(events.len() <= 2);
            assert!(events.iter().all(|event| event.kind == EventKind::Posted));
            tokens.extend(events.iter().map(|event| event.token));
        }
        assert_eq!(tokens, [1, 2, 3, 4]);
        let audit = pool.audit();
        assert!(audit.balances(), "{audit:?}");
        assert_eq!((audit.accepted, audit.completed, audit.in_flight), (4, 4, 0));
    }
}

#[test]
fn a_pull_without_time_comes_back_empty() {
    let _guard = hang_guard();
    for pool in both() {
        let mut events = Vec::new();
        assert_eq!(pool.pull(&mut events, 8, Duration::ZERO).unwrap(), 0);
        assert_eq!(pool.pull(&mut events, 8, Duration::from_millis(5)).unwrap(), 0);
        pool.post_pulled(7).unwrap();
        assert_eq!(pool.pull(&mut events, 8, Duration::ZERO).unwrap(), 1);
    }
}

#[test]
fn a_post_reaches_a_sleeping_host() {
    let _guard = hang_guard();
    for pool in both() {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| pull(&pool, 8));
            // Asleep or not yet: both must do.
            thread::sleep(Duration::from_millis(20));
            pool.post_pulled(5).unwrap();
            assert_eq!(sleeper.join().unwrap()[0].token, 5);
        });
    }
}

/// Goal: while one thread has a descriptor's event, no other gets one of it; what arrives meanwhile
/// comes after the completion.
#[test]
fn a_held_descriptor_waits_for_its_completion() {
    let _guard = hang_guard();
    for pool in both() {
        let (ours, mut theirs) = pair();
        let handle = pool
            .register_pulled(ours, HandleOptions::new().interest(Interest::READABLE).level(), 9)
            .unwrap();
        theirs.write_all(b"x").unwrap();
        let first = pull(&pool, 8)[0];
        assert_eq!((first.token, first.handle), (9, handle.id()));
        let EventKind::Ready(ready) = first.kind else { panic!("{first:?}") };
        assert!(ready.is_readable());
        theirs.write_all(b"y").unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut events = Vec::new();
                pool.pull(&mut events, 8, Duration::from_millis(50)).unwrap()
            });
            assert_eq!(other.join().unwrap(), 0);
        });
        // The next pull completes the first. Nothing was read, so it is ready still.
        assert_eq!(pull(&pool, 8)[0].token, 9);
        assert!(matches!(handle.deregister(), Err(Error::Closing)));
        pool.pull_done().unwrap();
        until("it", || pool.stats().handles == 0);
    }
}

#[test]
fn an_early_completion_gives_the_answer() {
    let _guard = hang_guard();
    for pool in both() {
        let (ours, mut theirs) = pair();
        let mut reader = ours.try_clone().unwrap();
        let handle = pool.register_pulled(ours, HandleOptions::new(), 1).unwrap();
        theirs.write_all(b"ab").unwrap();
        let mut got = Vec::new();
        while got.len() < 2 {
            let event = pull(&pool, 1)[0];
            let mut byte = [0];
            // One byte at a time, though edge-triggered: Again brings the next.
            got.extend(reader.read(&mut byte).ok().map(|_| byte[0]));
            pool.complete_pulled(event.handle.unwrap(), Flow::Again).unwrap();
            assert!(pool.complete_pulled(event.handle.unwrap(), Flow::Wait).is_err());
        }
        assert_eq!(got, b"ab");
        let event = pull(&pool, 1)[0];
        pool.complete_pulled(event.handle.unwrap(), Flow::Done).unwrap();
        assert!(!handle.is_open());
        until("it", || pool.stats().handles == 0);
    }
}

#[test]
fn timers_are_pulled() {
    let _guard = hang_guard();
    for pool in both() {
        let timer = pool.after_pulled(Duration::from_millis(1), 3).unwrap();
        let ticks = pool.every_pulled(Duration::from_millis(1), 4).unwrap();
        let mut seen = [0; 2];
        while seen[0] == 0 || seen[1] < 3 {
            for event in pull(&pool, 8) {
                match event.kind {
                    EventKind::Timer => seen[0] += 1,
                    EventKind::Tick => seen[1] += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(seen[0], 1);
        assert!(!timer.is_pending());
        pool.pull_done().unwrap();
        ticks.deregister().unwrap();
        let cancelled = pool.after_pulled(LONG, 5).unwrap();
        assert!(cancelled.cancel());
        until("it", || pool.audit().balances());
    }
}

#[test]
fn a_thread_that_ends_completes_what_it_had() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (ours, mut theirs) = pair();
    let _handle = pool
        .register_pulled(ours, HandleOptions::new().interest(Interest::READABLE).level(), 2)
        .unwrap();
    theirs.write_all(b"x").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(pull(&pool, 1)[0].token, 2)).join().unwrap();
    });
    assert_eq!(pull(&pool, 1)[0].token, 2);
}

#[test]
fn a_full_outbox_gives_tokens_back() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).lane_capacity(4).build().unwrap();
    match pool.post_pulled_batch(&[1, 2, 3, 4, 5, 6]) {
        Err(Rejected::Full(4)) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(pool.post_pulled(7), Err(Rejected::Full(7))));
    assert_eq!(pull(&pool, 64).len(), 4);
    pool.post_pulled(8).unwrap();
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!((report.drained, report.cancelled), (false, 1));
    assert!(matches!(pool.post_pulled(9), Err(Rejected::ShutDown(9))));
    assert!(matches!(pool.pull(&mut Vec::new(), 1, LONG), Err(Error::ShutDown)));
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
}

#[test]
fn a_drain_waits_for_pullers() {
    let _guard = hang_guard();
    for pool in both() {
        (0..100).for_each(|token| pool.post_pulled(token).unwrap());
        thread::scope(|scope| {
            let puller = scope.spawn(|| {
                let mut events = Vec::new();
                while pool.pull(&mut events, 7, LONG).is_ok() {}
                events.len()
            });
            let pulled_first = pool.audit().completed;
            assert!(pool.shutdown(LONG).drained, "{pulled_first}");
            assert_eq!(puller.join().unwrap(), 100);
        });
        assert!(pool.audit().balances());
    }
}

#[test]
fn a_handler_and_a_puller_share_a_hosted_pool() {
    let _guard = hang_guard();
    let pool = hosted(2);
    let ran = std::sync::Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| pool.join(LONG));
        for token in 0..200 {
            let ran = ran.clone();
            pool.post(move || _ = ran.fetch_add(1, Relaxed)).unwrap();
            pool.post_pulled(token).unwrap();
        }
        let mut tokens = Vec::new();
        while tokens.len() < 200 {
            tokens.extend(pull(&pool, 16).iter().map(|event| event.token));
        }
        assert_eq!(tokens, (0..200).collect::<Vec<_>>());
        until("it", || ran.load(Relaxed) == 200);
        let _ = pool.shutdown(LONG);
    });
}

#[test]
fn what_is_wrong_is_said() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    assert!(pool.pull(&mut Vec::new(), 0, LONG).unwrap_err().to_string().contains("most is 0"));
    let inside = pool.clone();
    let task = pool.submit(move || inside.pull(&mut Vec::new(), 1, LONG)).unwrap();
    assert!(task.wait().unwrap().unwrap_err().to_string().contains("inside a handler"));
}

/// Goal: many posters, many pullers, sockets and tokens at once; nothing is lost or doubled.
#[test]
fn nothing_is_lost_under_load() {
    let _guard = hang_guard();
    const POSTERS: u64 = 3;
    const EACH: u64 = 3_000;
    for pool in both() {
        let sum = AtomicU64::new(0);
        let count = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut events = Vec::new();
                    while pool.pull(&mut events, 16, LONG).is_ok() {
                        for event in events.drain(..) {
                            sum.fetch_add(event.token, Relaxed);
                            count.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
            for poster in 0..POSTERS {
                let pool = &pool;
                scope.spawn(move || {
                    for token in poster * EACH..(poster + 1) * EACH {
                        while let Err(rejected) = pool.post_pulled(token) {
                            assert!(matches!(rejected, Rejected::Full(_)), "{rejected:?}");
                            thread::yield_now();
                        }
                    }
                });
            }
            until("it", || count.load(Relaxed) == POSTERS * EACH);
            let _ = pool.shutdown(LONG);
        });
        let all = POSTERS * EACH;
        assert_eq!(sum.load(Relaxed), all * (all - 1) / 2);
        assert!(pool.audit().balances());
    }
}

/// Goal: a forked child that ends does not complete what its parent has pulled: it would arm the
/// descriptor anew in the epoll instance that both share, and the parent would harvest it again.
#[test]
#[allow(unsafe_code, reason = "a fork")]
fn a_forked_child_completes_nothing() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let level = HandleOptions::new().interest(Interest::READABLE).level();
    let (ours, mut theirs) = pair();
    let _held = pool.register_pulled(ours, level, 1).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(pull(&pool, 1)[0].token, 1);
    let harvested = || pool.stats().threads.iter().map(|thread| thread.events).sum::<u64>();
    let before = harvested();
    // SAFETY: the child only ends; that runs the destructors of this thread's locals.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::exit(0) };
    }
    // SAFETY: a plain call on the child of above.
    assert_eq!(unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) }, child);
    // A ring of the doorbell is no event, and a task makes the leader look at the source once more.
    for _ in 0..100 {
        pool.submit(|| ()).unwrap().wait().unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(harvested(), before, "the child armed what its parent holds");
}

/// Goal: a drain waits for hosts that are busy between two pulls, as long as something is left to do; not for those that
/// are done. Method: a host that has pulled, and pulls again when the drain has begun; what is left is a task, which
/// only a pull runs.
#[test]
fn a_drain_waits_for_hosts_between_two_pulls() {
    let _guard = hang_guard();
    for comes_back in [true, false] {
        let pool = hosted(2);
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (pulled, has_pulled) = std::sync::mpsc::channel();
        let (host, ran) = (pool.clone(), std::sync::Arc::new(AtomicUsize::new(0)));
        let host = thread::spawn(move || {
            host.pull(&mut Vec::new(), 1, Duration::ZERO).unwrap();
            pulled.send(()).unwrap();
            wait.recv().unwrap();
            if !comes_back {
                return host.pull_done().unwrap();
            }
            while host.pull(&mut Vec::new(), 1, LONG).is_ok() {}
        });
        has_pulled.recv().unwrap();
        let count = std::sync::Arc::clone(&ran);
        pool.post(move || _ = count.fetch_add(1, Relaxed)).unwrap();
        let ending = {
            let pool = pool.clone();
            thread::spawn(move || pool.shutdown(LONG))
        };
        until("it refuses", || pool.strand().is_err());
        thread::sleep(Duration::from_millis(20));
        assert!(!ending.is_finished());
        go_on.send(()).unwrap();
        let report = ending.join().unwrap();
        assert_eq!(
            (report.drained, ran.load(Relaxed)),
            (comes_back, comes_back.into()),
            "{report:?}"
        );
        host.join().unwrap();
    }
}
