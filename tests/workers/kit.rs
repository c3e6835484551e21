//! A pool with its worker pool, whose books balance at the end.

use super::common::until;
use paceline::cq::{CompletionQueue, EntryKind, OpenAttempt};
use paceline::task::{Attempt, Status, WorkerPool};
use paceline::{Builder, Pool, ScriptedSource, SourceKind, Timer};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// `threads` threads that are not pinned.
pub fn pool(threads: usize) -> Pool {
    Pool::builder().threads(threads).pin(paceline::Pin::None).build().unwrap()
}

/// The books balance, and nothing is under way.
#[track_caller]
pub fn settled(workers: &WorkerPool) {
    until("the end of all tasks", || workers.audit().in_flight == 0);
    until("balanced books", || workers.audit().balances());
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

/// A worker pool whose clock is turned by the test.
pub struct Stage {
    script: ScriptedSource,
    pub pool: Pool,
    pub workers: WorkerPool,
}

impl Stage {
    /// With one thread.
    pub fn new() -> Self {
        Self::with(1)
    }

    pub fn with(threads: usize) -> Self {
        Self::of(Pool::builder().threads(threads))
    }

    /// Of such a pool.
    pub fn of(builder: Builder) -> Self {
        let script = ScriptedSource::new();
        let kind = SourceKind::Scripted(script.clone());
        let pool = builder.source(kind).build().unwrap();
        let workers = WorkerPool::new(&pool);
        Self { script, pool, workers }
    }

    /// Lets everything happen that can without time passing.
    pub fn settle(&self) {
        assert!(self.script.settle(Duration::from_secs(60)));
    }

    /// Lets `by` pass while the thread is busy. What is returned lets everything happen.
    pub fn pass_without_settling(&self, by: Duration) -> impl FnOnce() + '_ {
        self.script.advance(by);
        || self.settle()
    }

    /// Lets everything happen that can, then `by` pass, and everything happen that this brings about. What
    /// reads the clock on the pool's thread has read it by then.
    pub fn pass(&self, by: Duration) {
        self.settle();
        self.script.advance(by);
        self.settle();
    }
}

/// Where tasks note down what they are, in the order in which they run.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<u32>>>);

impl Notes {
    /// A function that notes `number` down.
    pub fn pen(&self, number: u32) -> impl FnMut(&Attempt<'_>) + Send + 'static {
        let notes = self.clone();
        move |_: &Attempt<'_>| notes.add(number)
    }

    pub fn add(&self, number: u32) {
        self.0.lock().unwrap().push(number);
    }

    /// What was noted since this was last called.
    pub fn take(&self) -> Vec<u32> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A worker pool by the test's clock, whose pool has room for few handles and tasks of a lane.
pub fn small_stage() -> Stage {
    Stage::of(Pool::builder().threads(1).max_handles(8).lane_capacity(2))
}

/// Arms timers until all are in use.
pub fn use_up_timers(pool: &Pool) -> Vec<Timer> {
    core::iter::from_fn(|| pool.after(1000 * HOUR, || ()).ok()).collect()
}

/// A host that takes the attempts of a worker pool's tasks from a completion queue.
pub struct Host(pub CompletionQueue);

/// The end of a task that a host is told of: its tag, its number, and how it has ended.
pub type End = (u64, u64, Status);

impl Host {
    pub fn of(workers: &WorkerPool) -> Self {
        let queue = CompletionQueue::new(workers.pool()).unwrap();
        queue.workers(workers, u64::MAX).unwrap();
        Self(queue)
    }

    /// What is there now: attempts with the tags of their tasks, and ends.
    #[track_caller]
    pub fn all(&self) -> (Vec<(u64, OpenAttempt)>, Vec<End>) {
        let (mut entries, mut attempts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        while self.0.wait(&mut entries, 7, Duration::ZERO).unwrap() > 0 {}
        for entry in entries {
            match entry.kind {
                EntryKind::Attempt(attempt) => attempts.push((entry.tag, attempt)),
                EntryKind::TaskEnded { task, status } => ends.push((entry.tag, task, status)),
                other => panic!("{other:?}"),
            }
        }
        (attempts, ends)
    }

    /// The attempts that are there now, and no end.
    #[track_caller]
    pub fn attempts(&self) -> Vec<(u64, OpenAttempt)> {
        let (attempts, ends) = self.all();
        assert_eq!(ends, []);
        attempts
    }

    /// The ends that are there now, and no attempt.
    #[track_caller]
    pub fn ends(&self) -> Vec<End> {
        let (attempts, ends) = self.all();
        assert!(attempts.is_empty(), "{attempts:?}");
        ends
    }

    /// The attempts that are there now, which are as many.
    #[track_caller]
    pub fn some<const MANY: usize>(&self) -> [OpenAttempt; MANY] {
        let attempts: Vec<_> = self.attempts().into_iter().map(|(_, attempt)| attempt).collect();
        attempts.try_into().unwrap()
    }

    /// The one attempt that is there, or will be at once.
    #[track_caller]
    pub fn one(&self) -> OpenAttempt {
        let mut entries = Vec::new();
        self.0.wait(&mut entries, 7, HOUR).unwrap();
        match entries.pop().map(|entry| entry.kind) {
            Some(EntryKind::Attempt(attempt)) if entries.is_empty() => attempt,
            other => panic!("{other:?} after {entries:?}"),
        }
    }

    /// Hands over each entry until the worker pool has ended, or another thread has seen that.
    pub fn until_ended(&self, mut each: impl FnMut(u64, EntryKind)) {
        let mut entries = Vec::new();
        while self.0.wait(&mut entries, 32, HOUR).is_ok() {
            for entry in entries.drain(..) {
                match entry.kind {
                    EntryKind::Ended => self.0.close(),
                    kind => each(entry.tag, kind),
                }
            }
        }
    }
}
