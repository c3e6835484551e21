//! Reserved threads: a task of their lane starts although every ordinary thread is inside a long one,
//! and everything else goes on as without them.

mod common;

use common::{Count, Fd, Gate, OnDrop, finish, hang_guard, until};
use paceline::{Error, Flow, Lane, Pool, Promotion, ThreadRole};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    /// The index of a pool thread.
    static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// `ordinary` threads, and some for CRITICAL.
fn pool(ordinary: usize, reserved: usize) -> Pool {
    let builder = Pool::builder().threads(ordinary).reserve(Lane::Critical, reserved);
    builder.on_start(|index| INDEX.set(index)).build().unwrap()
}

/// Every ordinary thread waits at the gate.
fn block_all(pool: &Pool, ordinary: u64, gate: &Gate) {
    let before = gate.entered();
    for _ in 0..ordinary {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(before + ordinary);
}

/// Goal: with every ordinary thread stuck, CRITICAL tasks run, and nothing else does. Method: posted
/// one by one, so that each meets a reserved thread that sleeps, watches, leads or is on its way.
#[test]
fn a_task_of_the_lane_starts_while_every_ordinary_thread_is_stuck() {
    let _guard = hang_guard();
    for (ordinary, reserved) in [(1, 1), (2, 1), (3, 2)] {
        let pool = pool(ordinary, reserved);
        let (gate, others) = (Gate::new(), Count::new());
        block_all(&pool, ordinary as u64, &gate);
        for lane in [Lane::High, Lane::Normal, Lane::Low] {
            for _ in 0..10 {
                let others = others.clone();
                pool.lane(lane).post(move || others.up()).unwrap();
            }
        }
        for round in 0..200 {
            let index = pool.lane(Lane::Critical).submit(|| INDEX.get()).unwrap().wait().unwrap();
            assert!((ordinary..ordinary + reserved).contains(&index), "{index}");
            if round % 20 == 0 {
                // Time for it to become the watch, and the leader.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert_eq!(others.get(), 0);
        gate.open();
        others.until(30);
        finish(&pool);
    }
}

/// Goal: as many tasks of the lane as threads are reserved run at once, and those behind them follow.
/// Method: each waits until all of them have started.
#[test]
fn every_reserved_thread_takes_one_at_once() {
    let _guard = hang_guard();
    const RESERVED: u64 = 3;
    let pool = pool(1, RESERVED as usize);
    let (gate, critical, behind) = (Gate::new(), Gate::new(), Count::new());
    block_all(&pool, 1, &gate);
    for _ in 0..20 {
        let critical = critical.clone();
        let before = critical.entered();
        let waits: Vec<_> = (0..RESERVED)
            .map(|_| {
                let critical = critical.clone();
                pool.lane(Lane::Critical).submit(move || {
                    critical.wait_for(before + RESERVED);
                })
            })
            .collect();
        for wait in waits {
            wait.unwrap().wait().unwrap();
        }
    }
    for _ in 0..RESERVED {
        let critical = critical.clone();
        pool.lane(Lane::Critical).post(move || critical.wait()).unwrap();
    }
    critical.until_entered(21 * RESERVED);
    for _ in 0..100 {
        let behind = behind.clone();
        pool.lane(Lane::Critical).post(move || behind.up()).unwrap();
    }
    assert_eq!(behind.get(), 0);
    critical.open();
    behind.until(100);
    gate.open();
    finish(&pool);
}

/// Goal: a batch, and a task posted by a handler that does not return, are started too. Method: the one
/// ordinary thread posts CRITICAL tasks and waits for them without promoting.
#[test]
fn what_a_stuck_handler_posts_starts() {
    let _guard = hang_guard();
    let pool = pool(1, 1);
    let (inner, ran, ended) = (pool.clone(), Count::new(), Count::new());
    let (runs, ends) = (ran.clone(), ended.clone());
    pool.post(move || {
        for round in 1..=50 {
            let counts = runs.clone();
            inner.lane(Lane::Critical).post(move || counts.up()).unwrap();
            runs.until(11 * (round - 1) + 1);
            let batch = (0..10).map(|_| {
                let counts = runs.clone();
                move || counts.up()
            });
            inner.lane(Lane::Critical).post_batch(batch).unwrap();
            runs.until(11 * round);
        }
        ends.up();
    })
    .unwrap();
    ended.until(1);
    finish(&pool);
}

/// Goal: with reserved threads idle, descriptors, timers, strands and tasks of all lanes are served by
/// ordinary threads only, also when reserved ones lead now and then because handlers are slow.
fn ordinary_work_is_for_ordinary_threads(promotion: Promotion) {
    const ORDINARY: usize = 2;
    let builder = Pool::builder().threads(ORDINARY).reserve(Lane::Critical, 2).promotion(promotion);
    let builder = builder.reserve(Lane::Low, 1).stack_size(128 << 10);
    let pool = builder.on_start(|index| INDEX.set(index)).build().unwrap();
    let (seen, bytes, fired, ran) =
        (Arc::new(Mutex::new(Vec::new())), Count::new(), Count::new(), Count::new());
    let note = {
        let seen = Arc::clone(&seen);
        move |what: &'static str, slow: bool| {
            seen.lock().unwrap().push((what, INDEX.get()));
            if slow {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    };
    let (read, write) = Fd::pipe();
    let (notes, count) = (note.clone(), bytes.clone());
    let handle = pool.register(read, move |fd, _| {
        let got = fd.drain() as u64;
        notes("descriptor", count.get() % 16 == 0);
        count.add(got);
        Flow::Wait
    });
    let (notes, fires) = (note.clone(), fired.clone());
    let timer = pool.every(Duration::from_millis(1), move || {
        notes("timer", fires.get() % 16 == 0);
        fires.up();
        Flow::Wait
    });
    let strand = pool.strand().unwrap();
    for round in 1..=100 {
        write.write(b"!").unwrap();
        for lane in Lane::ALL {
            let (notes, runs) = (note.clone(), ran.clone());
            pool.lane(lane)
                .post(move || {
                    let what = ["critical", "high", "normal", "low"][lane as usize];
                    notes(what, false);
                    runs.up();
                })
                .unwrap();
        }
        let (notes, runs) = (note.clone(), ran.clone());
        strand
            .post(move || {
                notes("strand", false);
                runs.up();
            })
            .unwrap();
        bytes.until(round);
        ran.until(5 * round);
    }
    fired.until(50);
    drop((handle, timer));
    for (what, index) in seen.lock().unwrap().drain(..) {
        let may = match what {
            "critical" => index < ORDINARY + 2,
            "low" => index < ORDINARY || index == ORDINARY + 2,
            _ => index < ORDINARY,
        };
        assert!(may, "{what} ran on {index}");
    }
    finish(&pool);
}

#[test]
fn deferred_promotion_keeps_ordinary_work_off_reserved_threads() {
    let _guard = hang_guard();
    ordinary_work_is_for_ordinary_threads(Promotion::Deferred);
}

#[test]
fn eager_promotion_keeps_ordinary_work_off_reserved_threads() {
    let _guard = hang_guard();
    ordinary_work_is_for_ordinary_threads(Promotion::Eager);
}

/// Goal: what a reserved leader harvests reaches the ordinary thread that comes back. Method: the one
/// ordinary thread is stuck until the reserved one leads, then bytes arrive, then it is let go.
#[test]
fn what_a_reserved_leader_harvests_is_handled_by_others() {
    let _guard = hang_guard();
    let pool = pool(1, 1);
    let (read, write) = Fd::pipe();
    let (bytes, index) = (Count::new(), Count::new());
    let (count, by) = (bytes.clone(), index.clone());
    let handle = pool.register(read, move |fd, _| {
        count.add(fd.drain() as u64);
        by.add(INDEX.get() as u64);
        Flow::Wait
    });
    for round in 1..=20 {
        let gate = Gate::new();
        // By a timer, so that it is the leader who gets stuck.
        let stuck = gate.clone();
        pool.after(Duration::ZERO, move || stuck.wait()).unwrap();
        gate.until_entered(1);
        until("the reserved thread leads", || pool.stats().sets[0].leader == Some(1));
        let before = pool.stats().threads[1].events;
        write.write(b"!").unwrap();
        if round % 2 == 0 {
            until("it is harvested", || pool.stats().threads[1].events > before);
        }
        assert_eq!(bytes.get(), round - 1);
        gate.open();
        bytes.until(round);
        // A task of the lane does not depend on who leads now.
        pool.lane(Lane::Critical).submit(|| ()).unwrap().wait().unwrap();
    }
    assert_eq!(index.get(), 0);
    drop(handle);
    finish(&pool);
}

/// Goal: a reserved thread is no help for those who wait inside for ordinary work, and says so.
#[test]
fn a_wait_inside_does_not_count_on_reserved_threads() {
    let _guard = hang_guard();
    let pool = pool(1, 1);
    let inner = pool.clone();
    let result = pool.submit(move || inner.submit(|| 1).unwrap().wait().map_err(|e| e.to_string()));
    let waited = result.unwrap().wait().unwrap();
    assert!(waited.is_err(), "{waited:?}");
    finish(&pool);
}

/// Goal: a pool whose reserved threads are stuck serves the lane by its ordinary ones, and ends by its
/// deadline, with the stuck ones named.
#[test]
fn stuck_reserved_threads_are_named() {
    let _guard = hang_guard();
    let pool = pool(1, 1);
    let (gate, dropped) = (Gate::new(), Count::new());
    block_all(&pool, 1, &gate);
    let (critical, witness): (Gate, OnDrop) = (Gate::new(), dropped.on_drop());
    let stuck = critical.clone();
    pool.lane(Lane::Critical)
        .post(move || {
            stuck.wait();
            drop(witness);
        })
        .unwrap();
    critical.until_entered(1);
    gate.open();
    let index = pool.lane(Lane::Critical).submit(|| INDEX.get()).unwrap().wait().unwrap();
    assert_eq!(index, 0);
    let report = pool.shutdown(Duration::from_millis(20));
    assert_eq!((report.drained, report.stuck.contains(&1)), (false, true), "{report:?}");
    assert_eq!(dropped.get(), 0);
    critical.open();
    dropped.until(1);
}

#[test]
fn senseless_reserves_are_refused_by_name() {
    let build = |threads: usize, lane, reserved| {
        Pool::builder().threads(threads).reserve(lane, reserved).build().map(drop)
    };
    let Err(Error::Invalid { name, value, allowed }) = build(1, Lane::Low, 49) else { panic!() };
    assert_eq!((name, &*value, &*allowed), ("reserve LOW", "49", "0 to 48"));
    let Err(Error::Invalid { name, value, allowed }) = build(0, Lane::High, 2) else { panic!() };
    assert_eq!((name, &*value, &*allowed), ("reserve", "2", "0 for a pool without threads"));
    let pool = Pool::builder().threads(2).reserve(Lane::High, 3).reserve(Lane::High, 1).build();
    let pool = pool.unwrap();
    until("all are there", || {
        let roles = pool.stats().threads.into_iter().map(|thread| thread.role);
        roles.filter(|&role| role != ThreadRole::Away).count() == 3
    });
    finish(&pool);
}
