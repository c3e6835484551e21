//! The task cell: its result is dropped once, it is freed once, and nobody waits for ever.
//!
//! Both ends and the table are the real ones. A result counts its drops in plain memory; the cell's
//! `UnsafeCell` lets loom see a result that is read before it is written.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | task handle | `finished` set Relaxed | the result is read while it is written |
//! |  | `detached` set Relaxed | the cell's next tenant meets the last one |

use super::explore;
use crate::Error;
use crate::pool::Task;
use crate::pool::tasks::cell::{Cells, Completer, Outcome};
use crate::sys::fork::ForkGuard;
use loom::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

/// A result.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// One task with its two ends, in a table of two cells.
struct Case {
    table: Arc<Cells>,
    made: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Case {
    fn new() -> Self {
        let case = Self {
            table: Arc::new(Cells::new(2, ForkGuard::new().unwrap())),
            made: Arc::default(),
            dropped: Arc::default(),
        };
        case.cells_are_free();
        case
    }

    fn pair(&self) -> (Completer<Counted>, Task<Counted>) {
        Task::pair(&self.table).expect("a free cell")
    }

    /// What a worker does with the completer's closure: `Wrapped::run`.
    fn run(&self, completer: Completer<Counted>) -> thread::JoinHandle<bool> {
        let (made, dropped) = (self.made.clone(), self.dropped.clone());
        thread::spawn(move || {
            let runs = completer.begin();
            if runs {
                made.fetch_add(1, Relaxed);
                let outcome: Outcome<Counted> = Ok(Counted(dropped));
                completer.finish(outcome);
            }
            runs
        })
    }

    /// Every result was dropped once, and both cells are on the free list once. The table makes its
    /// cells here too, because loom does not see that the `OnceLock` of a chunk orders their making.
    fn cells_are_free(&self) {
        assert_eq!(self.made.load(Relaxed), self.dropped.load(Relaxed));
        let both = [0, 1].map(|_| Task::<()>::pair(&self.table).expect("both are free"));
        assert!(Task::<()>::pair(&self.table).is_none());
        drop(both);
    }
}

/// Goal: a waiter gets the result, and does not sleep through it. Method: `wait` against the run.
#[test]
fn a_waiter_gets_the_result() {
    explore(3, || {
        let case = Case::new();
        let (completer, task) = case.pair();
        let worker = case.run(completer);
        drop(task.wait().unwrap());
        assert!(worker.join().unwrap());
        case.cells_are_free();
    });
}

/// Goal: whichever end leaves last drops the result and frees the cell. Method: the handle is
/// dropped while the task ends; a second task takes the free cell at once.
#[test]
fn the_last_end_frees_the_cell() {
    explore(3, || {
        let case = Case::new();
        let (completer, task) = case.pair();
        let worker = case.run(completer);
        drop(task);
        let (next_completer, next) = case.pair();
        let next_worker = case.run(next_completer);
        drop(next.wait().unwrap());
        worker.join().unwrap();
        next_worker.join().unwrap();
        case.cells_are_free();
    });
}

/// Goal: a task runs or was cancelled, never both; a waiter hears of either. Method: `cancel` by a
/// thread that then waits, against the run, which may be given up before it begins.
#[test]
fn cancel_against_begin() {
    explore(3, || {
        let case = Case::new();
        let (completer, task) = case.pair();
        let worker = case.run(completer);
        let cancelled = task.cancel();
        let result = task.wait();
        assert_eq!(cancelled, matches!(result, Err(Error::Cancelled)));
        assert_eq!(cancelled, !worker.join().unwrap());
        drop(result);
        case.cells_are_free();
    });
}

/// Goal: a wait that times out may be taken up again, and a closure that is dropped unrun (the pool
/// stops) ends the wait. Method: both ends against each other, with a time-out that may come at once.
#[test]
fn a_dropped_closure_ends_the_wait() {
    explore(3, || {
        let case = Case::new();
        let (completer, mut task) = case.pair();
        let sweeper = thread::spawn(move || drop(completer));
        let first = task.wait_timeout(core::time::Duration::from_nanos(1));
        assert!(matches!(first, Err(Error::TimedOut | Error::Cancelled)));
        if matches!(first, Err(Error::TimedOut)) {
            assert!(matches!(task.wait(), Err(Error::Cancelled)));
        } else {
            drop(task);
        }
        sweeper.join().unwrap();
        case.cells_are_free();
    });
}

/// A future's executor: a thread that sleeps until it is woken.
struct Sleeper(thread::Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Goal: a future that is polled while its task ends is woken or sees the end. Method: an executor
/// that parks between polls; a lost wake-up is a deadlock.
#[test]
fn a_future_is_woken() {
    explore(3, || {
        let case = Case::new();
        let (completer, mut task) = case.pair();
        let worker = case.run(completer);
        let waker = Waker::from(Arc::new(Sleeper(thread::current())));
        let mut context = Context::from_waker(&waker);
        let result = loop {
            match Pin::new(&mut task).poll(&mut context) {
                Poll::Ready(result) => break result,
                Poll::Pending => thread::park(),
            }
        };
        drop(result.unwrap());
        drop(task);
        worker.join().unwrap();
        case.cells_are_free();
    });
}
