//! `set_active`: threads are set aside and called back, and nothing is forgotten in between.

mod common;

use common::{Count, Fd, Gate, LONG, Random, finish, hang_guard, settled, threads_named, until};
use paceline::{Error, Flow, Lane, Pool, SourceKind, ThreadRole, ThreadState};
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// The index of a pool thread.
    static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn parked(pool: &Pool) -> usize {
    pool.stats().threads.iter().filter(|thread| thread.role == ThreadRole::Parked).count()
}

/// Goal: only active threads run anything, whatever it is. Method: the number goes up and down while
/// tasks, a descriptor and a timer go on; once the others are parked, each thread that runs something
/// is one of the first.
#[test]
fn threads_that_are_set_aside_run_nothing() {
    let _guard = hang_guard();
    const THREADS: usize = 6;
    for source in [SourceKind::Epoll, SourceKind::Ring] {
        let descriptors = matches!(source, SourceKind::Epoll);
        let builder = Pool::builder().threads(THREADS).source(source);
        let pool = builder.on_start(|index| INDEX.set(index)).build().unwrap();
        for active in [1, 4, 2, 6, 1, 5, 3] {
            pool.set_active(active).unwrap();
            until("the others park", || parked(&pool) == THREADS - active);
            assert_eq!(pool.stats().active, active);
            let (highest, done) = (Count::new(), Count::new());
            let note = {
                let (highest, done) = (highest.clone(), done.clone());
                move || {
                    if INDEX.get() >= active {
                        highest.up();
                    }
                    done.up();
                }
            };
            let ticks = note.clone();
            let timer = pool.every(Duration::from_micros(500), move || {
                ticks();
                Flow::Wait
            });
            let mut ends = Vec::new();
            if descriptors {
                let ((read, write), reads) = (Fd::pipe(), note.clone());
                let handle = pool.register(read, move |fd, _| {
                    if fd.drain() > 0 {
                        reads();
                    }
                    Flow::Wait
                });
                write.write(b"!").unwrap();
                ends.push((handle.unwrap(), write));
            }
            for number in 0..400 {
                let note = note.clone();
                pool.lane(Lane::ALL[number % 4]).post(note).unwrap();
            }
            done.until(410);
            drop((timer, ends));
            assert_eq!(highest.get(), 0, "{active} are active");
        }
        finish(&pool);
    }
}

/// Goal: a thread that is set aside costs nothing. Method: its switches are counted while the others
/// are busy.
#[test]
fn a_parked_thread_is_left_alone() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).name("aside").build().unwrap();
    until("all are named", || threads_named("aside-").len() == 4);
    pool.set_active(1).unwrap();
    until("the others park", || parked(&pool) == 3);
    let switches = || {
        let aside = threads_named("aside-").into_iter();
        let aside = aside.filter(|tid| tid.name().is_some_and(|name| name != "aside-0"));
        aside.map(|tid| tid.voluntary_switches()).collect::<Vec<_>>()
    };
    let before = switches();
    let ran = Count::new();
    for _ in 0..50 {
        for _ in 0..100 {
            let ran = ran.clone();
            pool.post(move || ran.up()).unwrap();
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    ran.until(5000);
    // They say that they park just before they do, so once each.
    let calls = before.iter().zip(switches()).map(|(before, after)| after - before);
    assert!(calls.clone().all(|calls| calls <= 1), "{:?}", calls.collect::<Vec<_>>());
    finish(&pool);
}

/// Goal: nothing is lost, and nothing stays behind, however the number changes. Method: random numbers
/// while tasks are posted from outside and inside, events arrive, and some tasks block.
#[test]
fn a_number_that_changes_all_the_time_loses_nothing() {
    let _guard = hang_guard();
    for (threads, leaders, reserved) in [(2, 1, 0), (5, 3, 0), (4, 1, 1)] {
        let builder = Pool::builder().threads(threads).leaders(leaders);
        let pool = builder.reserve(Lane::Critical, reserved).build().unwrap();
        let least = if leaders == 1 { 1 } else { leaders as u64 + 1 };
        let (ran, bytes) = (Count::new(), Count::new());
        let (read, write) = Fd::pipe();
        let count = bytes.clone();
        let handle = pool.register(read, move |fd, _| {
            count.add(fd.drain() as u64);
            Flow::Wait
        });
        let mut random = Random::new(7);
        for round in 1..=400 {
            let active = least + random.below(threads as u64 - least + 1);
            pool.set_active(active as usize).unwrap();
            for number in 0..20 {
                let (ran, inner) = (ran.clone(), pool.clone());
                let post = move || {
                    if number == 7 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    let more = ran.clone();
                    inner.post(move || more.up()).unwrap();
                    ran.up();
                };
                pool.lane(Lane::ALL[number % 4]).post(post).unwrap();
            }
            write.write(b"!").unwrap();
            if round % 8 == 0 {
                ran.until(40 * round);
                bytes.until(round);
            }
        }
        drop(handle);
        finish(&pool);
    }
}

/// Goal: when the one active thread is set aside from a blocking wait's point of view, another one
/// works in its place. Method: one active thread waits for a task that it has submitted, which does
/// the same, as deep as the pool has threads.
#[test]
fn a_thread_that_waits_inside_lends_its_place() {
    let _guard = hang_guard();
    const THREADS: usize = 4;
    fn nested(pool: &Pool, depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        let inner = pool.clone();
        1 + pool.submit(move || nested(&inner, depth - 1)).unwrap().wait().unwrap()
    }
    let pool = Pool::builder().threads(THREADS).build().unwrap();
    for _ in 0..50 {
        pool.set_active(1).unwrap();
        until("the others park", || parked(&pool) == THREADS - 1);
        let inner = pool.clone();
        let task = pool.submit(move || nested(&inner, THREADS - 1)).unwrap();
        assert_eq!(task.wait().unwrap(), THREADS - 1);
    }
    finish(&pool);
}

/// Goal: a shutdown calls everybody back, and a drain ends whoever is set aside. Method: all but one
/// thread are parked, and tasks wait for each other.
#[test]
fn a_shutdown_calls_everybody_back() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(3).build().unwrap();
    pool.set_active(1).unwrap();
    until("the others park", || parked(&pool) == 2);
    let gate = Gate::new();
    for _ in 0..3 {
        let gate = gate.clone();
        // Each of them needs a thread of its own.
        pool.post(move || gate.wait_for(3)).unwrap();
    }
    gate.until_entered(1);
    assert_eq!(gate.entered(), 1);
    let report = pool.shutdown(LONG);
    assert!(report.drained && report.stuck.is_empty(), "{report:?}");
    settled(&pool);
    assert!(matches!(pool.set_active(1), Err(Error::ShutDown)));
}

#[test]
fn senseless_numbers_are_refused_by_name() {
    let pool = Pool::builder().threads(4).reserve(Lane::High, 1).build().unwrap();
    let narrow = Pool::builder().threads(4).leaders(2).build().unwrap();
    for (pool, active, range) in
        [(&pool, 0, "1 to 4"), (&pool, 5, "1 to 4"), (&narrow, 2, "3 to 4")]
    {
        let Err(Error::Invalid { name, value, allowed }) = pool.set_active(active) else {
            panic!("{active}")
        };
        assert_eq!((name, value, &*allowed), ("active", active.to_string(), range));
    }
    finish(&pool);
    finish(&narrow);
}

/// Goal: the statistics tell leaders, followers, and those that process, are stuck or parked, from each
/// other.
#[test]
fn statistics_say_what_each_thread_is_doing() {
    let _guard = hang_guard();
    let builder = Pool::builder().threads(3).reserve(Lane::Low, 1).max_joined(1);
    let pool = builder.on_slow(Duration::from_millis(1), |_| {}).build().unwrap();
    let states = || {
        let all = pool.stats();
        let count = |state| all.threads.iter().filter(|thread| thread.state() == state).count();
        use ThreadState::{Away, Follower, Leader, Parked, Processing, Stuck};
        [Leader, Follower, Processing, Stuck, Parked, Away].map(count)
    };
    until("one leads, the others follow", || states() == [1, 3, 0, 0, 0, 1]);
    let gate = Gate::new();
    let stuck = gate.clone();
    pool.post(move || stuck.wait()).unwrap();
    until("one is stuck", || states() == [1, 2, 0, 1, 0, 1]);
    pool.set_active(1).unwrap();
    // The first may be the stuck one: then nobody is left to lead but the reserved thread.
    until("one parks", || states()[4] >= 1);
    pool.set_active(3).unwrap();
    until("nobody parks", || states() == [1, 2, 0, 1, 0, 1]);
    gate.open();
    until("one leads, the others follow", || states() == [1, 3, 0, 0, 0, 1]);
    let reserved: Vec<_> = pool.stats().threads.iter().map(|thread| thread.reserved).collect();
    assert_eq!(reserved, [None, None, None, Some(Lane::Low), None]);
    let running = Gate::new();
    let quick = running.clone();
    let seen = pool.submit({
        let pool = pool.clone();
        move || {
            quick.wait();
            pool.stats().threads.iter().any(|thread| thread.role == ThreadRole::Task)
        }
    });
    running.open();
    assert!(seen.unwrap().wait().unwrap());
    finish(&pool);
}
