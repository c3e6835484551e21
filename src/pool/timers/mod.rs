//! One-shot timers.

mod staged;

#[cfg(all(test, loom))]
pub(crate) use staged::Own;

use super::Pool;
use super::shared::Shared;
use super::slots::{Close, Key, Payload, Traits};
use crate::error::{Error, Result};
use crate::queue::{Erased, Run};
use crate::sync::atomic::Ordering::Relaxed;
use crate::time::MAX_DELAY;
use core::any::type_name;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A closure that waits for its time. Dropping it lets it run; [`cancel`](Self::cancel) does not.
///
/// ```
/// use paceline::Pool;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let timer = pool.after(Duration::from_secs(3600), || println!("an hour has passed"))?;
/// assert!(timer.is_pending());
/// assert!(timer.cancel()); // it will not run
/// assert!(!timer.cancel()); // it was cancelled before
/// # Ok(())
/// # }
/// ```
pub struct Timer {
    shared: Arc<Shared>,
    key: Key,
}

impl Timer {
    #[inline]
    fn new(shared: Arc<Shared>, key: Key) -> Self {
        Self { shared, key }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Cancels. True: the closure never runs, and has been dropped here. False: it has begun, has
    /// run, or was cancelled before. Any thread; O(1), never blocks.
    pub fn cancel(&self) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        Self::cancel_key(&self.shared, self.key)
    }

    /// Puts the timer off until `delay` from now, which must not be earlier than it was due; more than 100 years
    /// is taken as 100 years. One compare-exchange. True: it had not begun; a timer that begins at this very moment
    /// may still run once.
    pub fn postpone(&self, delay: Duration) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        let deadline = self.shared.now().saturating_add(nanos_within(delay.min(MAX_DELAY)));
        self.shared.ready.handles.slots.slot(self.key.index).postpone(self.key.generation, deadline)
    }

    /// Whether the closure has neither begun nor been cancelled.
    pub fn is_pending(&self) -> bool {
        let slot = self.shared.ready.handles.slots.slot(self.key.index);
        !self.shared.is_forked() && slot.is_open(self.key.generation)
    }
}

impl Clone for Timer {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.key)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("pending", &self.is_pending()).finish_non_exhaustive()
    }
}

/// Nanoseconds of a delay within the limit.
#[inline]
fn nanos_within(delay: Duration) -> u64 {
    const { assert!(MAX_DELAY.as_nanos() < u64::MAX as u128) };
    delay.as_secs() * 1_000_000_000 + u64::from(delay.subsec_nanos())
}

/// The work of a timer that the program has asked for: it has a number that the program knows, and if the pool ends
/// before it is due it is among what the report counts as cancelled.
pub(crate) struct AskedFor<F>(pub(crate) F);

impl<F: FnOnce() + Send + 'static> Run for AskedFor<F> {
    const ASKED_FOR: bool = true;

    fn name() -> &'static str {
        type_name::<F>()
    }

    #[inline(always)]
    fn run(self) {
        (self.0)()
    }
}

impl Pool {
    /// Runs `work` once, `delay` (up to 100 years) from now: never early, and as a rule at most 10 µs
    /// plus the scheduler's delay late. Allocates nothing if the closure has at most 48 bytes, but for
    /// this thread's first timer in the pool.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a longer delay, [`Error::Full`] when all `max_handles` are in use,
    /// [`Error::ShutDown`], [`Error::Forked`]. `work` is dropped.
    #[inline]
    pub fn after<F>(&self, delay: Duration, work: F) -> Result<Timer>
    where
        F: FnOnce() + Send + 'static,
    {
        Timer::after(self.shared(), delay, AskedFor(work), |_| ()).map_err(|(error, _)| error)
    }

    /// The timer that a number from outside names. None: no timer lives in that slot.
    pub(crate) fn timer_by_key(&self, key: Key) -> Option<Timer> {
        let shared = self.shared();
        let traits = shared.ready.handles.slots.get(key.index)?.traits();
        let is_timer = traits.once && !traits.service;
        is_timer.then(|| Timer::new(Arc::clone(shared), key))
    }
}

impl Timer {
    /// Cancels the timer with this key, as [`cancel`](Self::cancel).
    pub(crate) fn cancel_key(shared: &Arc<Shared>, key: Key) -> bool {
        let mut closure = Payload::Empty;
        if staged::cancel(shared, key, &mut closure) {
            return true;
        }
        cancel_shared(shared, key)
    }

    /// As [`Pool::after`]; if that fails the work comes back. `named` is told the timer's key when it can
    /// be cancelled already, and cannot fire yet.
    #[inline]
    pub(crate) fn after<F: Run>(
        shared: &Arc<Shared>,
        delay: Duration,
        work: F,
        named: impl FnOnce(Key),
    ) -> Result<Self, (Error, F)> {
        if delay > MAX_DELAY {
            return Err((refuse(shared, delay), work));
        }
        let deadline = shared.now().saturating_add(nanos_within(delay));
        Self::at(shared, deadline, work, named)
    }

    /// The same at an instant of the pool's clock.
    #[inline]
    pub(crate) fn at<F: Run>(
        shared: &Arc<Shared>,
        deadline: u64,
        work: F,
        named: impl FnOnce(Key),
    ) -> Result<Self, (Error, F)> {
        let mut given = Some((work, named));
        if let Some(token) = arm_staged(shared, deadline, &mut given) {
            return Ok(Self::new(Arc::clone(shared), Key::from_token(token)));
        }
        let key = arm_shared(shared, deadline, given)?;
        Ok(Self::new(Arc::clone(shared), key))
    }
}

#[inline(never)]
fn cancel_shared(shared: &Shared, key: Key) -> bool {
    let (closed, payload) = shared.ready.handles.close(key, false);
    let cancelled = closed == Close::Mine;
    if cancelled {
        shared.counters.timers_cancelled.fetch_add(1, Relaxed);
    }
    drop(payload);
    cancelled
}

#[cold]
fn refuse(shared: &Shared, delay: Duration) -> Error {
    let invalid = || Error::invalid("delay", format!("{delay:?}"), "up to 100 years");
    shared.check_open().err().unwrap_or_else(invalid)
}

/// Arms a timer in this thread's shard, if it has one and the pool is open. Not part of its caller, so that only the
/// key has to come back: as its token, which two registers hold, where an `Option<Key>` is written to memory in pieces
/// and read whole.
#[inline(never)]
fn arm_staged<F: Run, N: FnOnce(Key)>(
    shared: &Arc<Shared>,
    deadline: u64,
    given: &mut Option<(F, N)>,
) -> Option<u64> {
    shared.check_open().ok()?;
    let token = staged::arm(shared, deadline, given)?;
    // It has passed the barrier that `is_too_late` has.
    if shared.end.is_stopping() {
        Timer::cancel_key(shared, Key::from_token(token));
    }
    Some(token)
}

#[inline(never)]
fn arm_shared<F: Run, N: FnOnce(Key)>(
    shared: &Arc<Shared>,
    deadline: u64,
    given: Option<(F, N)>,
) -> Result<Key, (Error, F)> {
    let (work, named) = given.expect("nothing was taken");
    if let Err(error) = shared.check_open() {
        return Err((error, work));
    }
    let handles = &shared.ready.handles;
    let set = handles.sets.pick();
    let traits =
        Traits { set, timer: true, once: true, service: !F::ASKED_FOR, ..Traits::default() };
    let key = match handles.slots.allocate(traits, -1, Payload::Once(Erased::new(work))) {
        Ok(key) => key,
        Err(Payload::Once(work)) => {
            #[allow(unsafe_code, reason = "the closure comes back")]
            // SAFETY: what comes back is what `Erased::new` made of an `F` above.
            let work = unsafe { work.into_inner::<F>() };
            return Err((handles.no_slot_left(), work));
        }
        Err(_) => unreachable!("it comes back as it was"),
    };
    shared.counters.timers_armed.fetch_add(1, Relaxed);
    shared.arm(key, deadline, named);
    if shared.is_too_late() {
        Timer::cancel_key(shared, key);
    }
    Ok(key)
}
