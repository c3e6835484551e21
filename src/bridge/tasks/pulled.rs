//! Tasks that a host takes as data, on threads of its own.

use super::work::Taken;
use crate::error::{Error, Result};
use crate::queue::Lane;
use crate::task::Fault;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where tasks wait for a host.
#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// By lane.
    waiting: [VecDeque<Arc<Taken>>; Lane::ALL.len()],
    has_ended: bool,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: nothing is taken any more.
    pub(super) fn put(&self, lane: Lane, taken: Arc<Taken>) -> bool {
        let mut state = self.lock();
        if state.has_ended {
            return false;
        }
        state.waiting[lane as usize].push_back(taken);
        drop(state);
        self.arrived.notify_one();
        true
    }

    /// Takes up to `most`, those of the most urgent lane first, and begins them, if so asked; waits for the first for up to
    /// `timeout`.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when no more come.
    pub(super) fn take(
        &self,
        most: usize,
        timeout: Duration,
        begins: bool,
    ) -> Result<Vec<OpenJob>> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            let next =
                core::iter::from_fn(|| state.waiting.iter_mut().find_map(VecDeque::pop_front));
            let taken: Vec<_> = next.take(most).collect();
            if !taken.is_empty() {
                // Not under the lock: what was cancelled ends here, of which its submitter's function may be told.
                drop(state);
                let begun = taken.into_iter().filter(|taken| !begins || taken.begin());
                let jobs: Vec<_> = begun.map(|taken| OpenJob { taken: Some(taken) }).collect();
                if !jobs.is_empty() {
                    return Ok(jobs);
                }
                state = self.lock();
                continue;
            }
            if state.has_ended {
                return Err(Error::ShutDown);
            }
            let left = until.map_or(Duration::from_secs(3600), |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || most == 0 {
                return Ok(Vec::new());
            }
            state =
                self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whoever waits is told that no more come; what waits is run elsewhere.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        self.arrived.notify_all();
        waiting.into_iter().flatten().for_each(|taken| taken.give_back());
    }
}

/// A durable task that a host has taken, and is to [complete](Self::complete) or [fail](Self::fail), on any thread.
/// Dropping it gives it back: it is run again, by this process or another, and this attempt does not count.
#[must_use = "dropping it gives the task back"]
pub struct OpenJob {
    /// None: it was completed.
    taken: Option<Arc<Taken>>,
}

impl OpenJob {
    fn taken(&self) -> &Taken {
        self.taken.as_ref().expect("it is taken out when it ends")
    }

    /// Begins the attempt of a task of [`take_waiting`](super::DurableQueue::take_waiting), once. False: it is not to be run,
    /// as it was cancelled, its time is over, or it was given back: drop it then. It waits for the broker, up to five seconds,
    /// unless this is the first attempt of several.
    pub fn begin(&self) -> bool {
        self.begins()()
    }

    /// The same for who cannot keep it borrowed meanwhile.
    pub(crate) fn begins(&self) -> impl FnOnce() -> bool + use<> {
        let taken = self.taken.clone();
        move || taken.is_some_and(|taken| taken.begin())
    }

    /// As [`Job::id`](super::Job::id).
    pub fn id(&self) -> &str {
        &self.taken().id
    }

    /// As [`Job::name`](super::Job::name).
    pub fn name(&self) -> &str {
        &self.taken().name
    }

    /// As [`Job::arguments`](super::Job::arguments).
    pub fn arguments(&self) -> &[u8] {
        &self.taken().arguments
    }

    /// As [`Job::number`](super::Job::number).
    pub fn number(&self) -> u32 {
        self.taken().number
    }

    /// How long it may take still, if it was submitted with a deadline.
    pub fn time_left(&self) -> Option<Duration> {
        let until = self.taken().until?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// As [`Job::is_cancelled`](super::Job::is_cancelled).
    pub fn is_cancelled(&self) -> bool {
        self.taken().is_to_end()
    }

    /// It has succeeded, with this value.
    pub fn complete(mut self, value: impl Into<Vec<u8>>) {
        if let Some(taken) = self.taken.take() {
            taken.close(Ok(value.into()));
        }
    }

    /// The attempt has failed.
    pub fn fail(mut self, fault: Fault) {
        if let Some(taken) = self.taken.take() {
            taken.close(Err(fault));
        }
    }
}

impl Drop for OpenJob {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            taken.give_back();
        }
    }
}

impl fmt::Debug for OpenJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenJob")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}
