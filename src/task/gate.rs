//! Tasks that wait because their name has started as often as it may.
//!
//! A job takes a token of the [`Tokens`] when it is about to begin, on the thread that runs it, so that
//! the rate is one of starts, however long the lanes are. Without a token it goes into the gate, which
//! lets it back into its lane when there will be one.
//!
//! ```text
//!   lane ─► token? ─── yes, and nobody older waits ───► attempt
//!     ▲       └── no ─► gate, by age ─┐
//!     └──────── one timer per name ◄──┘
//! ```
//!
//! # Invariants
//!
//! 1. Every start takes a token. So the bound of `rate.rs` holds for starts.
//! 2. A job that was not let go begins only if no older one of its name is in the gate: the young cannot
//!    starve the old.
//! 3. While a job is in the gate `armed` is set, and a [`Wake`] is on its way. Dropped unrun, because
//!    the pool stops, it ends what is in the gate.

use super::kind::KindInner;
use super::rate::{Rate, Tokens};
use super::record::{Head, Place};
use super::waiting::{Parked, Waits};
use crate::error::{Error, Result};
use crate::pool::contain;
use crate::queue::{Lane, Run};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the head of the file.
pub(super) struct Gate {
    tokens: Tokens,
    most: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Age, Parked>,
    armed: bool,
    next: u64,
}

/// When a task was submitted, and in which order those of one moment came.
type Age = (u64, u64);

impl Gate {
    /// In which new tasks are refused once `most` wait.
    pub(super) fn new(rate: Rate, most: usize) -> Result<Self> {
        Ok(Self { tokens: Tokens::new(rate)?, most, queue: Mutex::default() })
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().waiting.len() >= self.most
    }

    /// Lets a task begin now, or keeps its job until it may: then there is no answer.
    pub(super) fn pass<J: Waits + 'static>(&self, head: Head, job: J) -> Option<J> {
        let kind = head.kind();
        let now = kind.clock.now();
        if self.may_pass(head, now) {
            return Some(job);
        }
        // One of two notices an end that comes now: who ends it, or this.
        if head.when_ended(|extras| extras.place = Place::Gate) {
            return None;
        }
        let mut queue = self.lock();
        if head.is_ended() {
            drop(queue);
            return None;
        }
        let age = (head.submitted(), queue.next);
        queue.next += 1;
        queue.waiting.insert(age, Box::new(job));
        let arms = !core::mem::replace(&mut queue.armed, true);
        drop(queue);
        if arms {
            self.arm(kind, now, 0);
        }
        None
    }

    fn may_pass(&self, head: Head, now: u64) -> bool {
        let queue = self.lock();
        let oldest = queue.waiting.first_key_value().map(|(age, _)| age.0);
        let may = head.take_released() || oldest.is_none_or(|oldest| head.submitted() < oldest);
        may && self.tokens.take(now).is_ok()
    }

    /// Takes the job of a task that has ended.
    pub(super) fn take_out(&self, head: Head) -> Option<Parked> {
        let (submitted, id) = (head.submitted(), head.id());
        let mut queue = self.lock();
        let mut of_that_moment = queue.waiting.range((submitted, 0)..=(submitted, u64::MAX));
        let age = *of_that_moment.find(|(_, job)| job.task().id() == id)?.0;
        queue.waiting.remove(&age)
    }

    /// For when there will be a token beside `promised` others.
    fn arm(&self, kind: &'static KindInner, now: u64, promised: u64) {
        let delay = Duration::from_nanos(self.tokens.next(now, promised) - now);
        let wake = Wake { kind: Some(kind) };
        let Some(common) = kind.common() else { return };
        let shared = &common.shared;
        let Err((error, wake)) = shared.after_or_back(delay, wake, |_| ()) else { return };
        if let Error::Full { .. } = error {
            // Every timer is in use. Going round through a lane wastes work, but not the tasks.
            drop(shared.try_post(Lane::Low, wake));
        }
    }

    /// Lets as many go on as there are tokens for.
    fn release(&self, kind: &'static KindInner) {
        let now = kind.clock.now();
        let mut going = Vec::new();
        let mut queue = self.lock();
        for _ in 0..self.tokens.available(now) {
            let Some((_, job)) = queue.waiting.pop_first() else { break };
            job.task().set_released();
            going.push(job);
        }
        queue.armed = !queue.waiting.is_empty();
        let arms = queue.armed;
        drop(queue);
        if arms {
            self.arm(kind, now, going.len() as u64);
        }
        for job in going {
            let _panicked = contain(|| job.go());
        }
    }

    /// The pool stops: nobody will come for them.
    fn drop_all(&self) {
        let mut queue = self.lock();
        queue.armed = false;
        let all = core::mem::take(&mut queue.waiting);
        drop(queue);
        for job in all.into_values() {
            let _panicked = contain(|| drop(job));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a gate when it runs.
struct Wake {
    /// None: it has run.
    kind: Option<&'static KindInner>,
}

impl Run for Wake {
    fn run(mut self) {
        if let Some(kind) = self.kind.take()
            && let Some(gate) = &kind.gate
        {
            gate.release(kind);
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        if let Some(gate) = self.kind.and_then(|kind| kind.gate.as_ref()) {
            gate.drop_all();
        }
    }
}
