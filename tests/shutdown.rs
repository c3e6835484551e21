//! The end of a pool: what was accepted runs, what was refused comes back, and nothing is left.

mod common;

use common::{
    Count, Fd, Gate, LONG, OnDrop, all_threads, finish, hang_guard, in_child, open_descriptors,
    settled, until,
};
use paceline::{Error, Flow, Lane, Pool, Rejected};
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

#[test]
fn a_dropped_pool_runs_what_it_has_accepted() {
    let _guard = hang_guard();
    for threads in [1, 2, 8] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let (ran, gate, dropped) = (Count::new(), Gate::new(), Count::new());
        for _ in 0..threads {
            let visitor = gate.clone();
            pool.post(move || visitor.wait()).unwrap();
        }
        gate.until_entered(threads as u64);
        let strand = pool.strand().unwrap();
        for number in 0..1000 {
            let (count, held) = (ran.clone(), dropped.on_drop());
            let work = move || {
                let _held = &held;
                count.up();
            };
            if number % 2 == 0 {
                pool.lane(Lane::ALL[number % 4]).post(work).unwrap();
            } else {
                strand.post(work).unwrap();
            }
        }
        drop(strand);
        let clone = pool.clone();
        drop(pool);
        assert_eq!(ran.get(), 0, "a clone is left");
        thread::scope(|scope| {
            scope.spawn(|| drop(clone));
            gate.open();
        });
        assert_eq!((ran.get(), dropped.get()), (1000, 1000));
    }
}

/// Goal: no thread that is merely looking for work makes a drain seem unfinished. Method: pools that
/// shut down while their threads start, wake or go to sleep.
#[test]
fn a_pool_with_nothing_to_do_is_drained() {
    let _guard = hang_guard();
    for round in 0..500 {
        let pool = Pool::builder().threads(1 + round % 6).build().unwrap();
        (0..round % 5).for_each(|_| pool.post(|| ()).unwrap());
        finish(&pool);
    }
}

#[test]
fn everything_is_gone_when_shutdown_returns() {
    in_child(|| {
        let _guard = hang_guard();
        drop(Pool::builder().threads(2).build().unwrap());
        until("its threads are gone", || common::threads_named("paceline").is_empty());
        let (threads, descriptors) = (all_threads().len(), open_descriptors());
        let dropped = Count::new();
        for leaders in [1, 3] {
            let pool = Pool::builder().threads(8).leaders(leaders).build().unwrap();
            let mut writers = Vec::new();
            for _ in 0..20 {
                let ((read, write), held) = (Fd::pipe(), dropped.on_drop());
                let handler = move |fd: &mut Fd, _| {
                    let _held = &held;
                    fd.drain();
                    Flow::Wait
                };
                pool.register(read, handler).unwrap().detach();
                write.write(b"!").unwrap();
                writers.push(write);
            }
            let held = dropped.on_drop();
            let periodic = pool.every(Duration::from_micros(100), move || {
                let _held = &held;
                Flow::Wait
            });
            periodic.unwrap().detach();
            let held = dropped.on_drop();
            let timer = pool.after(Duration::from_secs(3600), move || drop(held)).unwrap();
            let report = pool.shutdown(LONG);
            assert!(report.drained && report.stuck.is_empty(), "{report:?}");
            assert_eq!((report.cancelled, timer.is_pending()), (1, false));
            settled(&pool);
            drop((writers, timer, pool));
        }
        assert_eq!(dropped.get(), 2 * 22);
        until("its threads are gone", || all_threads().len() == threads);
        assert_eq!(open_descriptors(), descriptors);
    });
}

#[test]
fn after_a_shutdown_everything_is_refused_and_another_one_is_harmless() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let strand = pool.strand().unwrap();
    let (read, _write) = Fd::pipe();
    let handle = pool.register(read, |_, _| Flow::Wait).unwrap();
    finish(&pool);
    for _ in 0..3 {
        let report = pool.shutdown(LONG);
        assert!(report.drained && !report.requested && report.cancelled == 0, "{report:?}");
    }
    let text = String::from("mine");
    match pool.post(move || drop(text)) {
        Err(Rejected::ShutDown(work)) => work(),
        other => panic!("{other:?}"),
    }
    assert!(matches!(strand.post(|| ()), Err(Rejected::ShutDown(_))));
    assert!(!handle.is_open());
    assert!(matches!(handle.deregister(), Err(Error::Stale { .. })));
    assert!(matches!(pool.strand(), Err(Error::ShutDown)));
    assert_eq!(Error::ShutDown.to_string(), "the pool has been shut down");
}

#[test]
fn many_threads_may_shut_down_at_once() {
    let _guard = hang_guard();
    for _ in 0..50 {
        let pool = Pool::builder().threads(4).build().unwrap();
        let ran = Count::new();
        for _ in 0..200 {
            let ran = ran.clone();
            pool.post(move || ran.up()).unwrap();
        }
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let report = pool.shutdown(LONG);
                    assert!(report.drained && report.stuck.is_empty(), "{report:?}");
                    settled(&pool);
                });
            }
        });
        assert_eq!(ran.get(), 200);
    }
}

/// Goal: refusal is atomic with acceptance. Method: producers post while the pool is shut down; each
/// accepted closure runs or is cancelled and dropped, each refused one comes back, and none is both.
#[test]
fn posting_against_a_shutdown_is_all_or_nothing() {
    let _guard = hang_guard();
    for (round, drain) in
        [LONG, Duration::ZERO, Duration::from_micros(200)].into_iter().cycle().take(90).enumerate()
    {
        let pool = Pool::builder().threads(4).lane_capacity(64).build().unwrap();
        let (ran, refused, dropped, begun) =
            (Count::new(), Count::new(), Count::new(), Count::new());
        let strand = pool.strand().unwrap();
        let (accepted, report) = thread::scope(|scope| {
            let producers: Vec<_> = (0..4)
                .map(|producer| {
                    let (pool, strand) = (&pool, strand.clone());
                    let (ran, refused, dropped, begun) = (&ran, &refused, &dropped, &begun);
                    scope.spawn(move || {
                        let mut accepted = 0;
                        begun.up();
                        loop {
                            let (count, held) = (ran.clone(), dropped.on_drop());
                            let work = move || {
                                let _held = held;
                                count.up();
                            };
                            let posted = match producer {
                                0 => pool.post(work).is_ok(),
                                1 => pool.submit(work).is_ok(),
                                2 => strand.post(work).is_ok(),
                                _ => pool.after(Duration::ZERO, work).is_ok(),
                            };
                            if !posted {
                                refused.up();
                                return accepted;
                            }
                            accepted += 1;
                        }
                    })
                })
                .collect();
            begun.until(4);
            thread::sleep(Duration::from_micros(round as u64 * 20));
            let report = pool.shutdown(drain);
            let accepted: u64 = producers.into_iter().map(|thread| thread.join().unwrap()).sum();
            (accepted, report)
        });
        drop(strand);
        // Whoever was called stuck is only held up, and ends.
        until("the last one has left", || pool.audit().in_flight == 0);
        settled(&pool);
        let audit = pool.audit();
        assert_eq!(audit.accepted, accepted, "round {round}: {audit:?} {report:?}");
        assert_eq!(audit.completed, ran.get(), "round {round}: {audit:?}");
        assert_eq!(refused.get(), 4);
        dropped.until(accepted + 4);
        assert_eq!(dropped.get(), accepted + 4, "round {round}: {audit:?} {report:?}");
    }
}

#[test]
fn a_drain_with_a_deadline_gives_what_runs_its_time() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (ran, gate) = (Count::new(), Gate::new());
    for _ in 0..2 {
        let (visitor, count) = (gate.clone(), ran.clone());
        let work = move || {
            visitor.wait();
            count.up();
        };
        pool.post(work).unwrap();
    }
    gate.until_entered(2);
    let last = pool.submit(|| 7).unwrap();
    thread::scope(|scope| {
        let shutdown = scope.spawn(|| pool.shutdown(LONG));
        until("it refuses", || pool.try_post(|| ()).is_err());
        assert!(!shutdown.is_finished(), "two handlers have not returned");
        gate.open();
        assert!(shutdown.join().unwrap().drained);
    });
    assert_eq!((ran.get(), last.wait().unwrap()), (2, 7));
    settled(&pool);
}

thread_local! {
    static KEPT: RefCell<Option<(Pool, OnDrop)>> = const { RefCell::new(None) };
}

/// Goal: the last clone of a pool may go with the thread-local values of one of its threads, when
/// that thread is past everything else.
#[test]
fn a_pool_kept_by_its_own_thread_ends_with_it() {
    in_child(|| {
        let _guard = hang_guard();
        let before = all_threads().len();
        let gone = Count::new();
        for asked_outside in [false, true] {
            let pool = Pool::builder().threads(2).build().unwrap();
            let (keep, held) = (pool.clone(), gone.on_drop());
            let kept = pool.submit(move || KEPT.set(Some((keep, held)))).unwrap();
            kept.wait().unwrap();
            if asked_outside {
                finish(&pool);
            } else {
                let inner = pool.clone();
                pool.post(move || assert!(inner.shutdown(LONG).requested)).unwrap();
            }
            drop(pool);
            until("its threads are gone", || all_threads().len() == before);
        }
        assert_eq!(gone.get(), 2);
    });
}
