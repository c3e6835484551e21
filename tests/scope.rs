//! Scopes: tasks that borrow are run once, and have ended with their scope, whatever becomes of the pool.

mod common;

use common::{Count, Gate, finish, forked, hang_guard, in_child, quiet_panic};
use paceline::{Flow, Lane, Pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Sums in a scope what is borrowed, with tasks that post more.
fn sums(pool: &Pool) {
    let numbers: Vec<usize> = (0..1000).collect();
    let (sum, mut squares) = (AtomicUsize::new(0), vec![0; numbers.len()]);
    let given = pool.scope(|scope| {
        for (number, square) in numbers.iter().zip(&mut squares) {
            let sum = &sum;
            scope.post(move || {
                *square = number * number;
                scope.post(move || _ = sum.fetch_add(*number, SeqCst));
            });
        }
        "given"
    });
    assert_eq!((given, sum.load(SeqCst)), ("given", 499_500));
    assert!(squares.iter().enumerate().all(|(number, square)| *square == number * number));
}

/// Goal: it works in any pool and on any thread. Method: pools with threads, and without; with lanes that are full; from
/// outside, in a task and in a timer's handler.
#[test]
fn tasks_that_borrow_have_run_when_their_scope_ends() {
    let _guard = hang_guard();
    for threads in [0, 1, 3] {
        let pool = Pool::builder().threads(threads).lane_capacity(4).build().unwrap();
        sums(&pool);
        let inner = pool.clone();
        pool.submit(move || sums(&inner)).unwrap().wait().unwrap();
        if threads > 0 {
            let (inner, done) = (pool.clone(), Count::new());
            let ran = done.clone();
            let handler = move || {
                sums(&inner);
                ran.up();
                Flow::Done
            };
            let timer = pool.every(Duration::from_micros(10), handler).unwrap();
            done.until(1);
            drop(timer);
        }
        pool.lane(Lane::Low).scope(|scope| scope.post(|| ()));
        finish(&pool);
    }
}

/// Goal: the only thread of a pool can end a scope, though its tasks wait for each other's scopes. Method: nested ones.
#[test]
fn scopes_are_nested() {
    fn count(pool: &Pool, depth: u32, leaves: &AtomicUsize) {
        if depth == 0 {
            leaves.fetch_add(1, SeqCst);
            return;
        }
        pool.scope(|scope| {
            scope.post(|| count(pool, depth - 1, leaves));
            scope.post(|| count(pool, depth - 1, leaves));
        });
    }
    let _guard = hang_guard();
    for threads in [0, 1, 2] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let leaves = AtomicUsize::new(0);
        count(&pool, 7, &leaves);
        assert_eq!(leaves.load(SeqCst), 128);
        finish(&pool);
    }
}

/// Goal: a panic of a task, or of what posts them, comes out of the scope when all tasks have run, and each of their values
/// is dropped.
#[test]
fn a_panic_comes_when_all_have_run() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    for here in [false, true] {
        let (ran, dropped) = (AtomicUsize::new(0), Count::new());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                for number in 0..100 {
                    let (ran, kept) = (&ran, dropped.on_drop());
                    scope.post(move || {
                        let _kept = kept;
                        ran.fetch_add(1, SeqCst);
                        if number % 3 == 0 {
                            quiet_panic("a task's");
                        }
                    });
                }
                if here {
                    quiet_panic("the scope's");
                }
            });
        }));
        let said = *caught.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(said, if here { "the scope's" } else { "a task's" });
        assert_eq!((ran.load(SeqCst), dropped.get()), (100, 100));
    }
    sums(&pool);
    finish(&pool);
}

/// Goal: a scope ends while the pool does, and after it. Method: its pool is shut down while a task runs, and others wait.
#[test]
fn a_scope_outlives_its_pool() {
    let _guard = hang_guard();
    paceline::quiet(true);
    let pool = Pool::builder().threads(1).build().unwrap();
    let (gate, order) = (Gate::new(), Mutex::new(Vec::new()));
    pool.scope(|scope| {
        scope.post(|| gate.wait());
        gate.until_entered(1);
        scope.post(|| order.lock().unwrap().push("waiting"));
        let _report = pool.shutdown(Duration::ZERO);
        scope.post(|| order.lock().unwrap().push("late"));
        gate.open();
    });
    assert_eq!(*order.lock().unwrap(), ["waiting", "late"]);
    sums(&pool);
}

/// Goal: a forked child does not wait for threads of its parent. Method: it is forked inside a scope, while a task runs.
#[test]
fn a_forked_child_ends_its_copy_of_a_scope() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(1).build().unwrap();
        let (gate, ran) = (Gate::new(), AtomicUsize::new(0));
        pool.scope(|scope| {
            scope.post(|| gate.wait());
            gate.until_entered(1);
            scope.post(|| _ = ran.fetch_add(1, SeqCst));
            let child = forked(|| {
                pool.scope(|inner| inner.post(|| _ = ran.fetch_add(10, SeqCst)));
                scope.post(|| _ = ran.fetch_add(100, SeqCst));
                std::process::exit(if ran.load(SeqCst) == 110 { common::RAN } else { 1 });
            });
            assert_eq!(child, common::RAN);
            gate.open();
        });
        assert_eq!(ran.load(SeqCst), 1);
        finish(&pool);
    });
}
