//! One-shot timers.

use super::handle::MAX_DELAY;
use super::slots::{Close, Key, Payload, Traits};
use super::{Pool, Shared};
use crate::error::{Error, Result};
use crate::queue::Erased;
use crate::sync::atomic::Ordering::Relaxed;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A closure that waits for its time. Dropping it lets it run; [`cancel`](Self::cancel) does not.
#[derive(Clone)]
pub struct Timer {
    shared: Arc<Shared>,
    key: Key,
}

impl Timer {
    /// Cancels. True: the closure never runs, and has been dropped here. False: it has begun, has
    /// run, or was cancelled before. Any thread; O(1), never blocks.
    pub fn cancel(&self) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        let (closed, payload) = self.shared.close(self.key, false);
        let cancelled = closed == Close::Mine;
        if cancelled {
            self.shared.dropped.fetch_add(1, Relaxed);
        }
        drop(payload);
        cancelled
    }

    /// Puts the timer off until `delay` from now, which must not be earlier than it was due. One
    /// compare-exchange. True: it had not begun; a timer that begins at this very moment may still
    /// run once.
    pub fn postpone(&self, delay: Duration) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        let deadline = self.shared.now().saturating_add(nanos(delay));
        self.shared.slots.slot(self.key.index).postpone(self.key.generation, deadline)
    }

    /// Whether the closure has neither begun nor been cancelled.
    pub fn is_pending(&self) -> bool {
        let slot = self.shared.slots.slot(self.key.index);
        !self.shared.is_forked() && slot.is_open(self.key.generation)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("pending", &self.is_pending()).finish_non_exhaustive()
    }
}

fn nanos(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)
}

impl Pool {
    /// Runs `work` once, `delay` (up to 100 years) from now: never early, and as a rule at most 10 µs
    /// plus the scheduler's delay late. Allocates nothing if the closure has at most 48 bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a longer delay, [`Error::Full`] when all `max_handles` are in use,
    /// [`Error::ShutDown`], [`Error::Forked`]. `work` is dropped.
    pub fn after<F>(&self, delay: Duration, work: F) -> Result<Timer>
    where
        F: FnOnce() + Send + 'static,
    {
        let shared = self.shared();
        shared.check_open()?;
        if delay > MAX_DELAY {
            return Err(Error::invalid("delay", format!("{delay:?}"), "up to 100 years"));
        }
        let traits =
            Traits { set: shared.pick_set(), timer: true, once: true, ..Traits::default() };
        let key = shared.allocate(traits, -1, Payload::Once(Erased::new(work)))?;
        shared.timers_armed.fetch_add(1, Relaxed);
        shared.arm(key, shared.now().saturating_add(nanos(delay)));
        let timer = Timer { shared: Arc::clone(shared), key };
        if shared.is_too_late() {
            timer.cancel();
        }
        Ok(timer)
    }
}
