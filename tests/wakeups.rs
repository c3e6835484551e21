//! Wake-ups: hardly any while there is work, and none at all when there is none.

mod common;

use common::{Count, Fd, Gate, Tid, finish, hang_guard, threads_named, until};
use paceline::{Flow, Pool};
use std::thread;
use std::time::Duration;

/// Goal: while the queue never runs empty, at most one wake-up per thousand tasks. Method: the queue
/// is filled behind threads that are kept busy, so that it cannot run empty before the last task;
/// every system call that wakes a thread is counted.
#[test]
fn a_queue_that_never_runs_empty_wakes_hardly_anybody() {
    let _guard = hang_guard();
    const TASKS: u64 = 200_000;
    for threads in [2, 8] {
        let builder = Pool::builder().threads(threads).lane_capacity(1 << 18);
        let pool = builder.build().unwrap();
        let (gate, done) = (Gate::new(), Count::new());
        for _ in 0..threads {
            let visitor = gate.clone();
            pool.post(move || visitor.wait()).unwrap();
        }
        gate.until_entered(threads as u64);
        let before = pool.stats().wakes;
        let tasks = |count: u64| {
            let done = done.clone();
            (0..count).map(move |_| {
                let done = done.clone();
                move || done.up()
            })
        };
        pool.post_batch(tasks(TASKS / 2)).unwrap();
        gate.open();
        // The other half comes while the first is being worked off, as long as there is much left.
        let mut left = TASKS / 2;
        while left > 0 && done.get() < TASKS / 4 {
            pool.post_batch(tasks(10)).unwrap();
            left -= 10;
        }
        let posted = TASKS - left;
        done.until(posted);
        let wakes = pool.stats().wakes - before;
        assert!(wakes * 1000 <= posted, "{wakes} wake-ups for {posted} tasks, {threads} threads");
        finish(&pool);
    }
}

/// Goal: the same for work that comes from inside.
#[test]
fn tasks_that_post_each_other_wake_hardly_anybody() {
    let _guard = hang_guard();
    const TASKS: u64 = 100_000;
    let pool = Pool::builder().threads(2).build().unwrap();
    let done = Count::new();
    let before = pool.stats().wakes;
    for _ in 0..100 {
        let (inner, done) = (pool.clone(), done.clone());
        pool.post(move || chain(&inner, &done, TASKS)).unwrap();
    }
    done.until(TASKS);
    let wakes = pool.stats().wakes - before;
    // The first hundred, from outside, may each wake somebody.
    assert!(wakes <= 100 + TASKS / 1000, "{wakes} wake-ups");
    finish(&pool);
}

/// Posts itself again until `limit` have run in all.
fn chain(pool: &Pool, done: &Count, limit: u64) {
    done.up();
    if done.get() < limit {
        let (inner, count) = (pool.clone(), done.clone());
        // Refused for a moment if a thread was preempted in the middle of a push: the others go on.
        let _full = pool.post(move || chain(&inner, &count, limit));
    }
}

/// Goal: a pool at rest makes no wake-ups, whatever it did before and whatever it waits for. Method:
/// the kernel counts how often each thread gave up its CPU; there comes a time of half a second in which that does not
/// change. A thread that wakes again and again leaves no such time, and one that has work to end yet only puts it off.
#[test]
fn a_pool_at_rest_stays_at_rest() {
    let _guard = hang_guard();
    for (name, leaders) in [("rest1", 1), ("rest3", 3)] {
        let pool = Pool::builder().threads(8).leaders(leaders).name(name).build().unwrap();
        let (done, gate) = (Count::new(), Gate::new());
        // It waits for descriptors and for timers that are far off.
        let mut handles = Vec::new();
        for _ in 0..20 {
            let ((read, write), bytes) = (Fd::pipe(), done.clone());
            let handler = move |fd: &mut Fd, _| {
                bytes.add(fd.drain() as u64);
                Flow::Wait
            };
            handles.push((pool.register(read, handler).unwrap(), write));
        }
        let timer = pool.after(Duration::from_secs(3600), || ()).unwrap();
        // It has worked, and its watch was needed: six threads were stuck for a while.
        for _ in 0..6 {
            let visitor = gate.clone();
            pool.post(move || visitor.wait()).unwrap();
        }
        gate.until_entered(6);
        for (_, write) in &handles {
            write.write(b"12345").unwrap();
        }
        for _ in 0..1000 {
            let done = done.clone();
            pool.post(move || done.up()).unwrap();
        }
        done.until(1100);
        gate.open();
        until_at_rest(name);
        assert_eq!(pool.stats().watch, None);
        assert!(timer.cancel());
        drop(handles);
        finish(&pool);
    }
}

/// A thread that is stuck, with nothing else to do, costs nothing either once that is known.
#[test]
fn a_stuck_handler_keeps_nobody_awake() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).name("stuck").build().unwrap();
    let gate = Gate::new();
    for _ in 0..2 {
        let visitor = gate.clone();
        pool.post(move || visitor.wait()).unwrap();
    }
    gate.until_entered(2);
    until_at_rest("stuck");
    gate.open();
    finish(&pool);
}

/// Waits until no thread of a pool wakes for half a second.
fn until_at_rest(name: &str) {
    let prefix = format!("{name}-");
    let switches = || threads_named(&prefix).into_iter().map(Tid::voluntary_switches).sum::<u64>();
    until("nobody wakes any more", || {
        let before = switches();
        thread::sleep(Duration::from_millis(500));
        switches() == before
    });
}
