//! `Task`: the result of submitted work, waited for, awaited, cancelled or let go.

mod common;

use common::{Count, Gate, LONG, finish, hang_guard, quiet_panic, settled, until};
use paceline::{Error, Pool, Rejected, Task};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Keeps a pool's only thread busy until the gate opens.
fn block(pool: &Pool) -> Gate {
    let gate = Gate::new();
    let visitor = gate.clone();
    pool.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    gate
}

fn single() -> Pool {
    Pool::builder().threads(1).build().unwrap()
}

#[test]
fn a_result_of_any_size_comes_back() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    #[repr(align(128))]
    #[derive(PartialEq, Debug, Clone)]
    struct Wide([u8; 300]);
    let text = String::from("text");
    pool.submit(|| ()).unwrap().wait().unwrap();
    assert_eq!(pool.submit(|| u128::MAX).unwrap().wait().unwrap(), u128::MAX);
    assert_eq!(pool.submit(move || text).unwrap().wait().unwrap(), "text");
    let wide = Wide([7; 300]);
    let capture = wide.clone();
    assert_eq!(pool.submit(move || capture).unwrap().wait().unwrap(), wide);
    let numbers: Vec<_> = (0..1000).map(|number| pool.submit(move || number).unwrap()).collect();
    for (number, task) in numbers.into_iter().enumerate() {
        assert_eq!(task.wait().unwrap(), number);
    }
    finish(&pool);
}

#[test]
fn a_wait_can_time_out_and_go_on_later() {
    let _guard = hang_guard();
    let pool = single();
    let gate = block(&pool);
    let mut task = pool.submit(|| 7).unwrap();
    assert!(!task.is_done());
    assert!(matches!(task.wait_timeout(Duration::ZERO), Err(Error::TimedOut)));
    assert!(matches!(task.wait_timeout(Duration::from_millis(2)), Err(Error::TimedOut)));
    gate.open();
    assert_eq!(task.wait_timeout(LONG).unwrap(), 7);
    assert!(task.is_done());
    assert!(matches!(task.wait_timeout(LONG), Err(Error::Stale { .. })));
    assert!(matches!(task.wait(), Err(Error::Stale { .. })));
    finish(&pool);
}

#[test]
fn cancel_stops_what_has_not_begun_and_nothing_else() {
    let _guard = hang_guard();
    let pool = single();
    let (ran, dropped) = (Count::new(), Count::new());
    let gate = block(&pool);
    let (count, on_drop) = (ran.clone(), dropped.on_drop());
    let queued = pool.submit(move || {
        let _on_drop = &on_drop;
        count.up();
    });
    let queued = queued.unwrap();
    assert!(queued.cancel() && queued.cancel(), "cancelling twice is the same");
    gate.open();
    assert!(matches!(queued.wait(), Err(Error::Cancelled)));
    assert_eq!((ran.get(), dropped.get()), (0, 1));

    let (inside, visitor) = (Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), visitor.clone());
    let running = pool.submit(move || {
        entered.open();
        wait.wait();
        7
    });
    let running = running.unwrap();
    inside.wait();
    assert!(!running.cancel(), "it runs already");
    visitor.open();
    assert_eq!(running.wait().unwrap(), 7);
    let ended = pool.submit(|| ()).unwrap();
    until("it ends", || ended.is_done());
    assert!(!ended.cancel(), "it has ended");
    finish(&pool);
    let audit = pool.audit();
    assert_eq!((audit.cancelled, audit.completed), (1, 3), "{audit:?}");
}

/// Goal: a closure runs if and only if `cancel` said false. Method: 20,000 races.
#[test]
fn cancel_against_begin_has_one_winner() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (ran, mut cancelled) = (Count::new(), 0);
    for round in 0..20_000 {
        let count = ran.clone();
        let task = pool.submit(move || count.up()).unwrap();
        for _ in 0..round % 50 {
            std::hint::spin_loop();
        }
        let before = task.cancel();
        match task.wait() {
            Ok(()) => assert!(!before),
            Err(Error::Cancelled) => assert!(before),
            Err(other) => panic!("{other}"),
        }
        cancelled += u64::from(before);
    }
    finish(&pool);
    assert_eq!(ran.get() + cancelled, 20_000);
    assert_eq!(pool.audit().cancelled, cancelled);
}

#[test]
fn a_dropped_task_runs_and_its_result_is_dropped_once() {
    let _guard = hang_guard();
    let pool = single();
    let (ran, dropped) = (Count::new(), Count::new());
    let gate = block(&pool);
    for _ in 0..100 {
        let (count, result) = (ran.clone(), dropped.on_drop());
        let work = move || {
            count.up();
            result
        };
        drop(pool.submit(work).unwrap());
    }
    assert_eq!(dropped.get(), 0);
    gate.open();
    dropped.until(100);
    // Dropped after its end, and after its end was waited for.
    let result = dropped.on_drop();
    let ended = pool.submit(move || result).unwrap();
    until("it ends", || ended.is_done());
    assert_eq!(dropped.get(), 100);
    drop(ended);
    assert_eq!(dropped.get(), 101);
    let result = dropped.on_drop();
    drop(pool.submit(move || result).unwrap().wait().unwrap());
    finish(&pool);
    assert_eq!((ran.get(), dropped.get()), (100, 102));
}

#[test]
fn tasks_outlive_the_pool_that_ran_them() {
    let _guard = hang_guard();
    let pool = single();
    let done = pool.submit(|| String::from("kept")).unwrap();
    let gate = block(&pool);
    let cancelled: Task<()> = pool.submit(|| unreachable!("it is cancelled")).unwrap();
    assert!(cancelled.cancel());
    gate.open();
    drop(pool);
    assert_eq!(done.wait().unwrap(), "kept");
    assert!(matches!(cancelled.wait(), Err(Error::Cancelled)));
}

#[test]
fn many_threads_wait_for_their_tasks() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    thread::scope(|scope| {
        for waiter in 0..8 {
            let pool = &pool;
            scope.spawn(move || {
                for number in 0..2000 {
                    let task = pool.submit(move || waiter * 10_000 + number).unwrap();
                    assert_eq!(task.wait().unwrap(), waiter * 10_000 + number);
                }
            });
        }
    });
    finish(&pool);
    assert_eq!(pool.audit().completed, 16_000);
}

#[test]
fn after_shutdown_a_closure_comes_back() {
    let _guard = hang_guard();
    let pool = single();
    finish(&pool);
    assert!(matches!(pool.submit(|| 7), Err(Rejected::ShutDown(work)) if work() == 7));
    assert!(matches!(pool.try_submit(|| 7), Err(Rejected::ShutDown(work)) if work() == 7));
    assert!(matches!(pool.post(|| ()), Err(Rejected::ShutDown(_))));
    settled(&pool);
    assert_eq!(pool.audit().rejected, 3);
}

// --- as a future ----------------------------------------------------------------------------------

/// Wakes a thread, and counts how often.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
    wakes: Count,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wakes.up();
        self.woken.store(true, SeqCst);
        self.thread.unpark();
    }
}

fn unparker() -> Arc<Unpark> {
    let thread = thread::current();
    Arc::new(Unpark { thread, woken: AtomicBool::new(false), wakes: Count::new() })
}

/// The smallest executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let unpark = unparker();
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !unpark.woken.swap(false, SeqCst) {
            thread::park();
        }
    }
}

#[test]
fn a_task_can_be_awaited() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let sum = block_on(async {
        let mut sum = 0;
        for number in 0..5000 {
            sum += pool.submit(move || number).unwrap().await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 4999 * 5000 / 2);
    let failed = block_on(pool.submit(|| quiet_panic("awaited")).unwrap());
    let failed: Result<(), _> = failed;
    assert!(matches!(failed, Err(Error::Panicked { message }) if message == "awaited"));
    finish(&pool);
}

/// Goal: a future that is polled with a new waker wakes that one, once, and not the old one.
#[test]
fn the_last_waker_is_woken() {
    let _guard = hang_guard();
    let pool = single();
    let gate = block(&pool);
    let mut task = pool.submit(|| 7).unwrap();
    let (old, new) = (unparker(), unparker());
    for unpark in [&old, &new] {
        let waker = Waker::from(Arc::clone(unpark));
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    gate.open();
    new.wakes.until(1);
    let noop = Waker::noop();
    let result = Pin::new(&mut task).poll(&mut Context::from_waker(noop));
    assert!(matches!(result, Poll::Ready(Ok(7))));
    assert_eq!((old.wakes.get(), new.wakes.get()), (0, 1));
    let again = Pin::new(&mut task).poll(&mut Context::from_waker(noop));
    assert!(matches!(again, Poll::Ready(Err(Error::Stale { .. }))));
    finish(&pool);
}

/// Goal: no task keeps a waker that nobody waits with any more.
#[test]
fn wakers_are_let_go() {
    let _guard = hang_guard();
    let pool = single();
    let gate = block(&pool);
    let polled = || {
        let mut task = pool.submit(|| ()).unwrap();
        let unpark = unparker();
        let watch: Weak<Unpark> = Arc::downgrade(&unpark);
        let waker = Waker::from(unpark);
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
        (task, watch)
    };
    let (dropped, watch) = polled();
    drop(dropped);
    assert!(watch.upgrade().is_none(), "its task was dropped");
    let (finished, watch) = polled();
    gate.open();
    finished.wait().unwrap();
    until("its task has ended", || watch.upgrade().is_none());
    finish(&pool);
}

/// Goal: no wake-up is lost between `Pending` and the end of the task. Method: 20,000 races.
#[test]
fn polling_against_the_end_loses_no_wake_up() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    for round in 0..20_000_u32 {
        let task = pool.submit(move || round).unwrap();
        for _ in 0..round % 64 {
            std::hint::spin_loop();
        }
        assert_eq!(block_on(task).unwrap(), round);
    }
    finish(&pool);
}

/// Waits for a gate, or panics, when its last clone goes or it is woken.
struct Rude {
    gate: Option<Gate>,
}

impl Wake for Rude {
    fn wake(self: Arc<Self>) {
        quiet_panic("woken")
    }
}

impl Drop for Rude {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.wait();
        }
    }
}

/// Goal: code of the user that belongs to a waker runs under no lock. Method: a waker whose end waits
/// for something that the pool can only do once the waker's task has ended.
#[test]
fn a_waker_that_takes_its_time_to_go_holds_nobody_up() {
    let _guard = hang_guard();
    let pool = single();
    let busy = block(&pool);
    let mut task = pool.submit(|| 7).unwrap();
    let gate = Gate::new();
    let waker = Waker::from(Arc::new(Rude { gate: Some(gate.clone()) }));
    assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    thread::scope(|scope| {
        scope.spawn(move || drop(task));
        gate.until_entered(1);
        busy.open();
        assert_eq!(pool.submit(|| 8).unwrap().wait().unwrap(), 8);
        gate.open();
    });
    finish(&pool);
}

/// A value to panic with, or to capture, whose end is a panic of its own.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        quiet_panic("dropped")
    }
}

/// Goal: no two panics of the user meet on one thread, which would end the process: a waker's and
/// that of what a task panicked with, or of what a cancelled closure held.
#[test]
fn wakers_that_panic_end_nothing() {
    let _guard = hang_guard();
    let pool = single();
    for cancelled in [false, true] {
        let busy = block(&pool);
        let held = Box::new(PanicsOnDrop);
        let mut task: Task<()> = pool.submit(move || std::panic::resume_unwind(held)).unwrap();
        let waker = Waker::from(Arc::new(Rude { gate: None }));
        assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(!cancelled || task.cancel());
        busy.open();
        let ended = task.wait();
        assert!(matches!(ended, Err(Error::Panicked { .. } | Error::Cancelled)), "{ended:?}");
        assert_eq!(pool.submit(|| 8).unwrap().wait().unwrap(), 8);
    }
    finish(&pool);
}
