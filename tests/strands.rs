//! A strand runs its tasks one at a time and in order, on whatever thread is free.

mod common;

use common::{Count, Gate, LONG, finish, hang_guard, settled, until};
use paceline::{Error, Pool, Rejected};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn many_producers_on_one_strand_are_serial_and_keep_their_order() {
    let _guard = hang_guard();
    const PRODUCERS: usize = 8;
    const EACH: u64 = 5000;
    let pool = Pool::builder().threads(8).strand_capacity(64).build().unwrap();
    let strand = pool.strand().unwrap();
    let busy = Arc::new(AtomicBool::new(false));
    // Plain loads and stores: two tasks at a time would lose some.
    let total = Arc::new(AtomicU64::new(0));
    let next = Arc::new([const { AtomicU64::new(0) }; PRODUCERS]);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let strand = strand.clone();
            let (busy, total, next) = (busy.clone(), total.clone(), next.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    let (busy, total, next) = (busy.clone(), total.clone(), next.clone());
                    let work = move || {
                        assert!(!busy.swap(true, SeqCst), "two at a time");
                        assert_eq!(next[producer].load(Relaxed), number, "out of order");
                        next[producer].store(number + 1, Relaxed);
                        total.store(total.load(Relaxed) + 1, Relaxed);
                        busy.store(false, SeqCst);
                    };
                    strand.post(work).unwrap();
                }
            });
        }
    });
    drop(strand);
    finish(&pool);
    assert_eq!(total.load(SeqCst), PRODUCERS as u64 * EACH);
    assert_eq!(pool.audit().failed, 0);
}

#[test]
fn strands_do_not_wait_for_each_other() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let stuck = pool.strand().unwrap();
    let gate = Gate::new();
    let visitor = gate.clone();
    stuck.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    let behind = stuck.submit(|| ()).unwrap();
    let logs: Vec<_> = (0..100)
        .map(|_| {
            let (strand, log) = (pool.strand().unwrap(), Arc::new(Mutex::new(Vec::new())));
            for number in 0..100 {
                let log = Arc::clone(&log);
                strand.post(move || log.lock().unwrap().push(number)).unwrap();
            }
            log
        })
        .collect();
    until("the others have run", || logs.iter().all(|log| log.lock().unwrap().len() == 100));
    assert!(logs.iter().all(|log| log.lock().unwrap().iter().copied().eq(0..100)));
    assert!(!behind.is_done());
    gate.open();
    behind.wait().unwrap();
    drop(stuck);
    finish(&pool);
}

#[test]
fn a_strand_ends_by_itself_when_the_last_clone_is_gone_and_its_tasks_have_run() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let strand = pool.strand().unwrap();
    let (gate, ran) = (Gate::new(), Count::new());
    let visitor = gate.clone();
    strand.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    let clone = strand.clone();
    for strand in [&strand, &clone] {
        for _ in 0..100 {
            let ran = ran.clone();
            strand.post(move || ran.up()).unwrap();
        }
    }
    drop(strand);
    drop(clone);
    assert_eq!((ran.get(), pool.stats().handles), (0, 1));
    gate.open();
    ran.until(200);
    until("its slot is free", || pool.stats().handles == 0);
    finish(&pool);
}

#[test]
fn a_strands_task_may_post_to_its_own_strand() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let strand = pool.strand().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (inner, list) = (strand.clone(), Arc::clone(&log));
    let first = move || {
        for number in 0..10 {
            let list = Arc::clone(&list);
            inner.post(move || list.lock().unwrap().push(number)).unwrap();
        }
        list.lock().unwrap().push(100);
    };
    strand.post(first).unwrap();
    until("all have run", || log.lock().unwrap().len() == 11);
    assert!(log.lock().unwrap().iter().copied().eq([100].into_iter().chain(0..10)));
    // The closure above held a clone of its own; it is gone with it.
    drop(strand);
    until("the strand ends", || pool.stats().handles == 0);
    finish(&pool);
}

#[test]
fn results_come_from_strands_and_batches_keep_their_order() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let strand = pool.strand().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let tasks = (0..2000).map(|number| {
        let log = Arc::clone(&log);
        move || log.lock().unwrap().push(number)
    });
    assert_eq!(strand.post_batch(tasks).unwrap(), 2000);
    let count = Arc::clone(&log);
    let length = strand.submit(move || count.lock().unwrap().len()).unwrap();
    assert_eq!(length.wait().unwrap(), 2000);
    assert!(log.lock().unwrap().iter().copied().eq(0..2000));
    drop(strand);
    finish(&pool);
}

#[test]
fn a_shutdown_drains_strands_and_cancels_what_takes_too_long() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (strand, gate, ran) = (pool.strand().unwrap(), Gate::new(), Count::new());
    let visitor = gate.clone();
    strand.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let ran = ran.clone();
            strand.submit(move || ran.up()).unwrap()
        })
        .collect();
    let report = pool.shutdown(Duration::from_millis(5));
    assert_eq!((report.drained, report.stuck.len()), (false, 1), "{report:?}");
    assert!(matches!(strand.post(|| ()), Err(Rejected::ShutDown(_))));
    gate.open();
    until("the thread leaves", || pool.shutdown(LONG).stuck.is_empty());
    for task in tasks {
        assert!(matches!(task.wait(), Err(Error::Cancelled)));
    }
    assert_eq!(ran.get(), 0);
    settled(&pool);
    assert_eq!(pool.audit().cancelled, 100);

    let pool = Pool::builder().threads(2).build().unwrap();
    let strand = pool.strand().unwrap();
    for _ in 0..1000 {
        let ran = ran.clone();
        strand.post(move || ran.up()).unwrap();
    }
    finish(&pool);
    assert_eq!(ran.get(), 1000);
    assert!(matches!(pool.strand(), Err(Error::ShutDown)));
}

#[test]
fn a_drain_waits_for_what_was_accepted() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (strand, ran) = (pool.strand().unwrap(), Count::new());
    for _ in 0..100 {
        let ran = ran.clone();
        strand.post(move || ran.up()).unwrap();
    }
    assert!(strand.drain(LONG));
    assert_eq!(ran.get(), 100);
    assert!(matches!(strand.post(|| ()), Err(Rejected::ShutDown(_))));
    assert!(strand.drain(LONG));

    // It gives up when the time is over, and on a thread of the pool it only asks.
    let (strand, gate) = (pool.strand().unwrap(), Gate::new());
    let (itself, visitor) = (strand.clone(), gate.clone());
    let task = strand.submit(move || {
        let drained = itself.drain(LONG);
        visitor.wait();
        drained
    });
    gate.until_entered(1);
    assert!(!strand.drain(Duration::from_millis(1)));
    gate.open();
    assert!(strand.drain(LONG));
    assert!(!task.unwrap().wait().unwrap());
    finish(&pool);
}

#[test]
fn a_drain_in_a_pool_of_hosts_runs_what_nobody_has_begun() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(0).build().unwrap();
    let (strand, ran) = (pool.strand().unwrap(), Count::new());
    for _ in 0..100 {
        let ran = ran.clone();
        strand.post(move || ran.up()).unwrap();
    }
    pool.post(|| panic!("it is another's")).unwrap();
    assert!(strand.drain(LONG));
    assert_eq!(ran.get(), 100);
    assert_eq!(pool.audit().completed, 100);
    assert_eq!(pool.audit().failed, 0);
}
