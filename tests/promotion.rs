//! Saying that a handler will block: others take over at once, without waiting for the watch.

mod common;

use common::{Count, Fd, Gate, finish, hang_guard, until};
use paceline::{Builder, Flow, HandleOptions, Pool, Promotion, promote_new_leader};
use std::time::Duration;

/// A pool whose watch is so slow that it would be noticed if it had to step in.
fn slow_watch() -> Builder {
    Pool::builder().threads(2).watch_period(Duration::from_secs(1))
}

fn rescues(pool: &Pool) -> u64 {
    pool.stats().threads.iter().map(|thread| thread.rescues).sum()
}

/// A pipe whose handler does as it is told and then waits at the gate.
fn blocking(pool: &Pool, options: HandleOptions, gate: &Gate, first: fn()) -> Fd {
    let ((read, write), visitor) = (Fd::pipe(), gate.clone());
    let handler = move |fd: &mut Fd, _| {
        first();
        visitor.wait();
        fd.drain();
        Flow::Wait
    };
    pool.register_with(read, options, handler).unwrap().detach();
    write
}

/// A pipe whose handler counts bytes.
fn counting(pool: &Pool, bytes: &Count) -> Fd {
    let ((read, write), bytes) = (Fd::pipe(), bytes.clone());
    let handler = move |fd: &mut Fd, _| {
        bytes.add(fd.drain() as u64);
        Flow::Wait
    };
    pool.register(read, handler).unwrap().detach();
    write
}

/// An attempt says how often the watch has stepped in. It may where a thread that was called has had no CPU for a period
/// of the watch, but not each time.
#[track_caller]
fn without_the_watch(mut attempt: impl FnMut() -> u64) {
    assert!((0..5).any(|_| attempt() == 0), "the watch had to step in");
}

/// A thread that has only just started would look for a set to lead by itself.
fn until_one_sleeps(pool: &Pool) {
    until("the other one sleeps", || pool.stats().parked == 1);
}

/// While a handler of `options` blocks, having called `first`, the other thread leads and serves.
#[track_caller]
fn the_other_thread_serves(builder: fn() -> Builder, options: HandleOptions, first: fn()) {
    without_the_watch(|| {
        let pool = builder().build().unwrap();
        let (gate, bytes) = (Gate::new(), Count::new());
        let other = counting(&pool, &bytes);
        let blocks = blocking(&pool, options, &gate, first);
        until_one_sleeps(&pool);
        blocks.write(b"!").unwrap();
        gate.until_entered(1);
        for round in 1..=20 {
            other.write(b"!").unwrap();
            bytes.until(round);
        }
        let rescues = rescues(&pool);
        gate.open();
        finish(&pool);
        rescues
    });
}

#[test]
fn promote_new_leader_hands_leadership_on() {
    let _guard = hang_guard();
    the_other_thread_serves(slow_watch, HandleOptions::new(), promote_new_leader);
}

#[test]
fn a_handle_that_may_block_hands_leadership_on_by_itself() {
    let _guard = hang_guard();
    the_other_thread_serves(slow_watch, HandleOptions::new().may_block(), || ());
}

#[test]
fn eager_promotion_hands_leadership_on_before_every_handler() {
    let _guard = hang_guard();
    let builder = || slow_watch().promotion(Promotion::Eager);
    the_other_thread_serves(builder, HandleOptions::new(), || ());
}

/// The contrast: who says nothing is found out by the watch.
#[test]
fn a_handler_that_says_nothing_is_rescued_by_the_watch() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (gate, bytes) = (Gate::new(), Count::new());
    let other = counting(&pool, &bytes);
    let blocks = blocking(&pool, HandleOptions::new(), &gate, || ());
    until_one_sleeps(&pool);
    blocks.write(b"!").unwrap();
    gate.until_entered(1);
    other.write(b"!").unwrap();
    bytes.until(1);
    assert!(rescues(&pool) >= 1, "{:?}", pool.stats());
    gate.open();
    finish(&pool);
}

/// Goal: what a thread has claimed goes to others when it says that it will block.
#[test]
fn promote_new_leader_in_a_task_calls_somebody_for_the_tasks_behind_it() {
    let _guard = hang_guard();
    without_the_watch(|| {
        let pool = slow_watch().build().unwrap();
        let (gate, ran) = (Gate::new(), Count::new());
        let (visitor, inner, count) = (gate.clone(), pool.clone(), ran.clone());
        let work = move || {
            for _ in 0..100 {
                let count = count.clone();
                inner.post(move || count.up()).unwrap();
            }
            promote_new_leader();
            visitor.wait();
        };
        until_one_sleeps(&pool);
        pool.post(work).unwrap();
        gate.until_entered(1);
        ran.until(100);
        let rescues = rescues(&pool);
        gate.open();
        finish(&pool);
        rescues
    });
}

#[test]
fn outside_of_a_handler_it_does_nothing() {
    let _guard = hang_guard();
    let pool = slow_watch().build().unwrap();
    promote_new_leader();
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
    finish(&pool);
}
