//! The word of a task, and what lies beside it.
//!
//! # The word
//!
//! ```text
//! { …, notify: 1, waiting: 1, late: 1, asked: 1, status: 3 }
//! ```
//!
//! | status | set by | from |
//! |---|---|---|
//! | PENDING | submit | |
//! | RUNNING | `begin`, by the thread that runs the attempt | PENDING, RETRYING |
//! | RETRYING | `retry`, by the thread whose attempt has failed | RUNNING |
//! | an end | `end`, by anybody | any but an end |
//!
//! ```text
//!             begin            end(Completed | Failed)
//!   PENDING ─────────► RUNNING ───────────────────────►┐
//!      │                │   ▲                          ├─ an end: never left
//!      │         retry  ▼   │ begin                    │
//!      │              RETRYING                         │
//!      └────────────────┴───┴── end(Cancelled | TimedOut | Rejected) ──►┘
//! ```
//!
//! `asked` and `late` only speak to the function, through its token; they decide nothing.
//!
//! # Invariants
//!
//! 1. Whoever's compare-exchange sets an end, and nobody else, tells observers, waiters and callbacks.
//! 2. The function is called only between a `begin` that succeeded and the `retry` or return that
//!    follows it on the same thread, and the closure is with that thread. So attempts do not overlap.
//! 3. The value is put in place before `end` by the thread of the attempt; it is taken by the handle
//!    after it has seen the end. If another end came first the value is dropped where it was made.
//!
//! # Orderings
//!
//! An end is set with Release and read with Acquire: the value, and what the report says. A waiter sets
//! `waiting` by a read-modify-write of the same word before it sleeps, so no wake-up is lost; the same
//! for `notify`.

use super::attempt::Fault;
use super::kind::{KindInner, Limits};
use super::report::Status;
use crate::pool::contain;
use crate::queue::Lane;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sys::futex::Futex;
use core::task::Waker;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const STATUS: u32 = 0b111;
const ASKED: u32 = 1 << 3;
const LATE: u32 = 1 << 4;
const WAITING: u32 = 1 << 5;
const NOTIFY: u32 = 1 << 6;

/// Nobody, as a worker's number.
const NOBODY: u32 = u32::MAX;

/// What does not depend on the type of the value.
pub(crate) struct Head {
    word: Futex,
    pub(super) kind: Arc<KindInner>,
    pub(super) id: u64,
    pub(super) lane: Lane,
    pub(super) limits: Limits,
    pub(super) max_attempts: u32,
    /// When it was submitted, in nanoseconds of the pool's clock.
    pub(super) submitted: u64,
    attempts: AtomicU32,
    worker: AtomicU32,
    /// Of the attempt that runs, or of the last one.
    began: AtomicU64,
    /// u64::MAX: none.
    attempt_deadline: AtomicU64,
    queue_time: AtomicU64,
    run_time: AtomicU64,
    notify: Mutex<Vec<Notify>>,
}

/// Who is told of the end.
pub(super) enum Notify {
    Waker(Waker),
    Callback(Box<dyn FnOnce() + Send>),
}

impl Head {
    pub(super) fn status(&self) -> Status {
        // Acquire: pairs with `end`.
        Status::from_bits(self.word.load(Acquire))
    }

    pub(super) fn is_ended(&self) -> bool {
        self.status().is_end()
    }

    /// Sets the status if `may` allows it. The word before is the answer.
    fn change(&self, to: Status, may: impl Fn(Status) -> bool) -> Option<u32> {
        let mut now = self.word.load(Relaxed);
        while may(Status::from_bits(now)) {
            let next = now & !STATUS | to as u32;
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(before) => return Some(before),
                Err(other) => now = other,
            }
        }
        None
    }

    /// PENDING or RETRYING → RUNNING, and the number of the attempt. None: it has ended.
    pub(super) fn begin(&self, now: u64, worker: Option<usize>) -> Option<u32> {
        let number = self.attempts.load(Relaxed) + 1;
        if number == 1 {
            self.queue_time.store(now.saturating_sub(self.submitted), Relaxed);
        }
        self.began.store(now, Relaxed);
        self.worker.store(worker.map_or(NOBODY, |worker| worker as u32), Relaxed);
        let waits = |status| matches!(status, Status::Pending | Status::Retrying);
        self.change(Status::Running, waits)?;
        self.attempts.store(number, Relaxed);
        Some(number)
    }

    /// The attempt has returned.
    pub(super) fn note_return(&self, now: u64) {
        let took = now.saturating_sub(self.began.load(Relaxed));
        self.run_time.fetch_add(took, Relaxed);
        self.attempt_deadline.store(u64::MAX, Relaxed);
    }

    /// RUNNING → RETRYING. False: it has ended.
    pub(super) fn retry(&self) -> bool {
        let retries = self.change(Status::Retrying, |status| status == Status::Running).is_some();
        self.word.fetch_and(!LATE, Relaxed);
        retries
    }

    /// Sets an end, if `may` allows it by the status before, which is the answer. Whoever gets one has
    /// bookkeeping to do, and calls `announce`.
    pub(super) fn end_if(&self, status: Status, may: impl Fn(Status) -> bool) -> Option<Status> {
        self.change(status, |now| !now.is_end() && may(now)).map(Status::from_bits)
    }

    /// Wakes who waits for the end.
    pub(super) fn announce(&self) {
        let word = self.word.load(Acquire);
        if word & WAITING != 0 {
            self.word.wake(i32::MAX);
        }
        if word & NOTIFY != 0 {
            self.notify_all();
        }
    }

    #[cold]
    fn notify_all(&self) {
        let all = core::mem::take(&mut *self.notify.lock().unwrap_or_else(PoisonError::into_inner));
        for notify in all {
            let _panicked = contain(|| match notify {
                Notify::Waker(waker) => waker.wake(),
                Notify::Callback(call) => call(),
            });
        }
    }

    /// Has `notify` called at the end, or now if that has come.
    pub(super) fn when_ended(&self, notify: Notify) {
        self.notify.lock().unwrap_or_else(PoisonError::into_inner).push(notify);
        // Release: it is in its place. Acquire: pairs with `end`.
        if Status::from_bits(self.word.fetch_or(NOTIFY, AcqRel)).is_end() {
            self.notify_all();
        }
    }

    /// Asks the function to give up, or the task not to begin.
    pub(super) fn ask(&self) {
        self.word.fetch_or(ASKED, Relaxed);
    }

    /// The attempt's time is over. True for the first who says so.
    pub(super) fn make_late(&self) -> bool {
        self.word.fetch_or(LATE, Relaxed) & LATE == 0
    }

    pub(super) fn is_asked(&self) -> bool {
        self.word.load(Relaxed) & ASKED != 0
    }

    pub(super) fn is_late(&self) -> bool {
        self.word.load(Relaxed) & LATE != 0
    }

    pub(super) fn should_stop(&self) -> bool {
        self.word.load(Relaxed) & (ASKED | LATE) != 0 || self.is_ended()
    }

    pub(super) fn set_attempt_deadline(&self, deadline: u64) {
        self.attempt_deadline.store(deadline, Relaxed);
    }

    pub(super) fn attempt_deadline(&self) -> Option<u64> {
        let deadline = self.attempt_deadline.load(Relaxed);
        (deadline != u64::MAX).then_some(deadline)
    }

    /// Sleeps until the end. False: the time ran out.
    pub(super) fn sleep(&self, timeout: Option<Duration>) -> bool {
        let deadline = crate::pool::Deadline::after(timeout);
        loop {
            // Acquire: pairs with `end`.
            let now = self.word.fetch_or(WAITING, Acquire) | WAITING;
            if Status::from_bits(now).is_end() {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
            self.word.wait(now, deadline.left());
        }
    }

    pub(super) fn attempts(&self) -> u32 {
        self.attempts.load(Relaxed)
    }

    pub(super) fn worker(&self) -> Option<usize> {
        let worker = self.worker.load(Relaxed);
        (worker != NOBODY).then_some(worker as usize)
    }

    pub(super) fn began(&self) -> u64 {
        self.began.load(Relaxed)
    }

    pub(super) fn queue_time(&self) -> Duration {
        Duration::from_nanos(self.queue_time.load(Relaxed))
    }

    pub(super) fn run_time(&self) -> Duration {
        Duration::from_nanos(self.run_time.load(Relaxed))
    }

    /// For an end that is not an attempt's: the times until now.
    pub(super) fn note_times(&self, now: u64, before: Status) {
        match before {
            Status::Running => {
                self.run_time.fetch_add(now.saturating_sub(self.began()), Relaxed);
            }
            _ if self.attempts() == 0 => {
                self.queue_time.store(now.saturating_sub(self.submitted), Relaxed);
            }
            _ => {}
        }
    }
}

/// A task: what its handle and its closure share.
pub(super) struct Record<T> {
    pub(super) head: Head,
    pub(super) value: Mutex<Option<Result<T, Fault>>>,
}

impl<T> Record<T> {
    pub(super) fn new(
        kind: Arc<KindInner>,
        lane: Lane,
        limits: Limits,
        max_attempts: u32,
        submitted: u64,
    ) -> Arc<Self> {
        let head = Head {
            word: Futex::new(Status::Pending as u32),
            id: kind.common().live.next_id(),
            kind,
            lane,
            limits,
            max_attempts,
            submitted,
            attempts: AtomicU32::new(0),
            worker: AtomicU32::new(NOBODY),
            began: AtomicU64::new(0),
            attempt_deadline: AtomicU64::new(u64::MAX),
            queue_time: AtomicU64::new(0),
            run_time: AtomicU64::new(0),
            notify: Mutex::default(),
        };
        Arc::new(Self { head, value: Mutex::default() })
    }
}

/// A record whose value's type is forgotten.
pub(crate) trait AnyRecord: Send + Sync {
    fn head(&self) -> &Head;
}

impl<T: Send> AnyRecord for Record<T> {
    fn head(&self) -> &Head {
        &self.head
    }
}

/// All tasks that have not ended.
#[derive(Default)]
pub(crate) struct Live {
    next: AtomicU64,
    all: Mutex<HashMap<u64, Arc<dyn AnyRecord>>>,
}

impl Live {
    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn add(&self, record: Arc<dyn AnyRecord>) {
        let id = record.head().id;
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(id, record);
    }

    pub(super) fn remove(&self, id: u64) {
        let gone = self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        drop(gone);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn AnyRecord>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
