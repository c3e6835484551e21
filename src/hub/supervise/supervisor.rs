//! What becomes of a handler that fails, and of the message that it failed at.
//!
//! # The message
//!
//! ```text
//!   delivered ◄── attempt ──► failed ──► retries left? ── yes ─► delay ─► attempt
//!                                             └── no ─► dead letter, or discarded
//! ```
//!
//! # The handler
//!
//! It is *restarted* whenever it has panicked, for a panic may have left what it keeps half changed:
//! `on_restart` runs before the next message. An error that it returns is no restart, whatever becomes of the
//! message: bad messages do not switch a sound handler off. The mailbox stays what it was.
//!
//! ```text
//!             restart, up to the intensity
//!              ┌────────┐
//!              ▼        │             one more
//!            SERVING ───┴───────────────────────────────► SUSPENDED
//!              ▲                                              │
//!              └───── resume, or the suspension's time is over ┘
//! ```
//!
//! A suspended subscription is not served, and its mail goes to the dead letters: what waits at once,
//! what comes when it comes.
//!
//! A suspension lasts for a while, and each for twice as long as the one before, up to a limit. It is as short as
//! the first again after the handlers have been sound for as long as the last one lasted.
//!
//! # The intensity
//!
//! It is counted as the supervisors of Erlang/OTP count it (`lib/stdlib/src/supervisor.erl`,
//! `add_restart`): a restart at `now` is kept with those at or after `now - within`, itself included, and
//! more than `restarts` of them are too many. OTP counts whole seconds and we count nanoseconds.
//!
//! # Invariants
//!
//! 1. No span of `within`, its ends included, has more than `restarts` restarts that were allowed.
//! 2. A window keeps no more than `restarts` times.
//! 3. A suspension ends by `resume`, or by its own timer, which knows its number; either begins with an empty
//!    window. One of an intensity that suspends for good has no timer.

use crate::error::{Error, Result};
use crate::pool::{Shared, Timer};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard};
use crate::sys::clock;
use crate::time::{GiveUp, MAX_DELAY, Retry};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// What becomes of a message that a handler has failed at for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnExhausted {
    /// It is kept among the hub's dead letters.
    #[default]
    DeadLetter,
    /// It is dropped, and counted as failed.
    Discard,
}

/// What happens to a message that a handler fails at, by an error that it returns or by a panic. Default: it becomes
/// a dead letter at once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OnFailure {
    retry: Retry,
    on_exhausted: OnExhausted,
}

impl OnFailure {
    /// It becomes a dead letter.
    pub fn dead_letter() -> Self {
        Self { retry: Retry::none(), on_exhausted: OnExhausted::DeadLetter }
    }

    /// It is dropped, and counted as failed.
    pub fn discard() -> Self {
        Self { retry: Retry::none(), on_exhausted: OnExhausted::Discard }
    }

    /// It is tried again before that. A serial handler gets no other message until then, so that the order
    /// holds.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    pub(in crate::hub) fn has_retries(&self) -> bool {
        self.retry.attempts() > 1
    }

    pub(in crate::hub) fn check(&self) -> Result<()> {
        self.retry.check()
    }

    /// What comes after a failed attempt. `seed` fixes the jitter of the delays.
    pub(in crate::hub) fn judge(&self, failed: &FailedAttempt, seed: u64) -> Decision {
        let elapsed = Duration::from_nanos(failed.elapsed);
        let next = match failed.is_permanent {
            true => Err(GiveUp::Attempts),
            false => self.retry.next(failed.attempts, elapsed, failed.retry_after, seed),
        };
        match (next, self.on_exhausted) {
            (Ok(delay), _) => Decision::Retry(delay),
            (Err(_), OnExhausted::DeadLetter) => Decision::DeadLetter,
            (Err(_), OnExhausted::Discard) => Decision::Discard,
        }
    }
}

/// What is known of a message when an attempt at it has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) struct FailedAttempt {
    /// Attempts that have failed, this one included.
    pub(in crate::hub) attempts: u32,
    /// Nanoseconds since the first of them began.
    pub(in crate::hub) elapsed: u64,
    /// The handler has panicked.
    pub(in crate::hub) is_panic: bool,
    /// The handler has said that no other attempt will help.
    pub(in crate::hub) is_permanent: bool,
    /// How long the handler has asked to wait.
    pub(in crate::hub) retry_after: Option<Duration>,
}

/// What becomes of a message that was failed at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum Decision {
    /// It is delivered once more after this delay.
    Retry(Duration),
    DeadLetter,
    Discard,
    /// It becomes a dead letter, and the subscription is suspended.
    Suspend,
}

/// How many panics of a handler are too many, and for how long it is suspended then. A handler that returns an error
/// has not panicked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intensity {
    restarts: u32,
    within: Duration,
    /// How long the first suspension lasts, and the longest; none: until `resume`.
    suspension: Option<(Duration, Duration)>,
}

/// The first suspension, and the longest, unless told otherwise.
const SUSPENSION: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The most restarts that an intensity can allow: their times are kept.
const MAX_RESTARTS: u32 = 100_000;

impl Intensity {
    /// Up to `restarts` (0 to 100 000) in each span of `within` (1 ns to 100 years). With 0 the first
    /// panic suspends.
    pub fn new(restarts: u32, within: Duration) -> Self {
        Self { restarts, within, suspension: Some(SUSPENSION) }
    }

    /// Any number of restarts: no panic suspends.
    pub fn unlimited() -> Self {
        Self::new(u32::MAX, Duration::from_nanos(1))
    }

    /// How long a suspension lasts: `first`, and each time twice as long as the time before, up to `longest`; both
    /// 1 ms to 100 years. After the handler has run for as long as the last suspension lasted without a panic too
    /// many, the next one lasts for `first` again. Default: 1 second, up to 60 seconds.
    #[must_use]
    pub fn resume_after(mut self, first: Duration, longest: Duration) -> Self {
        self.suspension = Some((first, longest));
        self
    }

    /// A suspension lasts until [`Subscription::resume`](crate::hub::Subscription::resume) is called.
    #[must_use]
    pub fn suspend_for_good(mut self) -> Self {
        self.suspension = None;
        self
    }

    fn is_unlimited(&self) -> bool {
        self.restarts == u32::MAX
    }

    fn check(&self) -> Result<()> {
        if self.restarts > MAX_RESTARTS && !self.is_unlimited() {
            let allowed = format!("up to {MAX_RESTARTS}");
            return Err(Error::invalid("intensity's restarts", self.restarts, allowed));
        }
        if !(Duration::from_nanos(1)..=MAX_DELAY).contains(&self.within) {
            let within = format!("{:?}", self.within);
            return Err(Error::invalid("intensity's time", within, "1 nanosecond to 100 years"));
        }
        let (first, longest) = self.suspension.unwrap_or(SUSPENSION);
        let valid = Duration::from_millis(1)..=MAX_DELAY;
        if first > longest || !valid.contains(&first) || !valid.contains(&longest) {
            let times = format!("{first:?} up to {longest:?}");
            let allowed = "1 millisecond to 100 years, the first no longer than the longest";
            return Err(Error::invalid("the time of a suspension", times, allowed));
        }
        Ok(())
    }
}

/// 3 in 5 seconds; then suspended for 1 second, and each time for twice as long, up to 60 seconds.
impl Default for Intensity {
    fn default() -> Self {
        Self::new(3, Duration::from_secs(5))
    }
}

/// The restarts of the last while. See the head of the file.
#[derive(Debug)]
struct Window {
    intensity: Intensity,
    times: VecDeque<u64>,
}

impl Window {
    fn new(intensity: Intensity) -> Self {
        Self { intensity, times: VecDeque::new() }
    }

    /// Counts a restart at `now`, if it is not one too many. Times do not go back.
    fn allows(&mut self, now: u64) -> bool {
        if self.intensity.is_unlimited() {
            return true;
        }
        let threshold = now.saturating_sub(self.intensity.within.as_nanos() as u64);
        while self.times.front().is_some_and(|&time| time < threshold) {
            self.times.pop_front();
        }
        let allowed = self.times.len() < self.intensity.restarts as usize;
        if allowed {
            self.times.push_back(now);
        }
        allowed
    }
}

/// Whom a failure restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RestartStrategy {
    /// The handler that failed.
    #[default]
    OneForOne,
    /// All handlers of the supervisor: each before its next message.
    OneForAll,
}

/// Counts the restarts of one or more subscriptions, and suspends all of them when there are too many.
/// A subscription that is given none has one of its own. Clones are the same supervisor.
///
/// ```
/// use paceline::{Pool, hub::{Hub, Intensity, Message, RestartStrategy, Supervisor}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// // More than five panics in a minute suspend both subscriptions, for a second at first.
/// let intensity = Intensity::new(5, Duration::from_secs(60))
///     .resume_after(Duration::from_secs(1), Duration::from_secs(60));
/// let supervisor = Supervisor::new(RestartStrategy::OneForAll, intensity)?;
/// let serve = |pattern| hub.subscription(pattern).supervisor(&supervisor).serve(|_: &Message<'_>| ());
/// let both = (serve("orders.>")?, serve("payments.>")?);
/// assert!(!supervisor.is_suspended());
/// # drop(both);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    strategy: RestartStrategy,
    /// Those that have been given this supervisor. The lock is held while all of them are suspended or
    /// resumed, so that the one is through before the other begins.
    members: Mutex<Vec<Find>>,
    state: Mutex<State>,
    /// How many restarts of all there were.
    epoch: AtomicU64,
}

/// What a supervisor suspends and resumes: a subscription or a replay, with its hub.
pub(in crate::hub) trait Supervised {
    /// True: it was not suspended before, and has not ended.
    fn suspend(&self) -> bool;
    /// True: it was suspended.
    fn resume(&self) -> bool;
}

/// Finds something that is supervised, if it is still there.
pub(in crate::hub) type Find = Arc<dyn Fn() -> Option<Box<dyn Supervised>> + Send + Sync>;

struct State {
    window: Window,
    suspended: bool,
    /// How often it was suspended.
    suspensions: u64,
    /// The last of these for which there is a timer.
    timed: u64,
    /// How long it lasts, or lasted; None: until it is resumed, or there was none.
    lasts: Option<Duration>,
    /// When it ended.
    resumed: u64,
}

impl State {
    /// There were too many restarts.
    fn suspend(&mut self, now: u64) {
        let Intensity { within, suspension, .. } = self.window.intensity;
        let sound = Duration::from_nanos(now.saturating_sub(self.resumed));
        let before = self.lasts.filter(|lasts| sound <= *lasts.max(&within));
        self.suspend_for(
            suspension
                .map(|(first, longest)| before.map_or(first, |before| (before * 2).min(longest))),
        );
    }

    fn suspend_for(&mut self, lasts: Option<Duration>) {
        self.suspended = true;
        self.suspensions += 1;
        self.lasts = lasts;
    }
}

/// What a supervisor says of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum RestartDecision {
    /// The handler is restarted and goes on.
    Restart,
    /// There were too many: all subscriptions of the supervisor are suspended by the caller.
    Suspend,
    /// They have been suspended before.
    Suspended,
}

impl Supervisor {
    /// With this strategy and intensity.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an intensity out of its range.
    pub fn new(strategy: RestartStrategy, intensity: Intensity) -> Result<Self> {
        intensity.check()?;
        let state = State {
            window: Window::new(intensity),
            suspended: false,
            suspensions: 0,
            timed: 0,
            lasts: None,
            resumed: 0,
        };
        let members = Mutex::new(Vec::new());
        let inner = Inner { strategy, members, state: Mutex::new(state), epoch: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// For one subscription.
    pub(in crate::hub) fn own(intensity: Intensity) -> Result<Self> {
        Self::new(RestartStrategy::OneForOne, intensity)
    }

    /// Adds a member, which is suspended at once if the others are.
    pub(in crate::hub) fn join(&self, find: Find) {
        // They are dropped after the lock is released.
        let mut kept = Vec::new();
        let mut members = self.members();
        // Those that have gone are thrown out when there are twice as many as the last time.
        if members.len().is_power_of_two() {
            members.retain(|find| find().map(|living| kept.push(living)).is_some());
        }
        if self.is_suspended()
            && let Some(member) = find()
        {
            member.suspend();
            kept.push(member);
        }
        members.push(find);
        drop(members);
    }

    /// Suspends all members, and what was `found` to have panicked too often, if it is none; and has them resumed when
    /// their time has come. True: one of them was not suspended before.
    pub(in crate::hub) fn suspend_members(&self, shared: &Arc<Shared>, found: &Find) -> bool {
        // They are dropped after the lock is released.
        let mut kept = Vec::new();
        let members = self.members();
        if !self.is_suspended() {
            return false;
        }
        kept.extend(found());
        kept.extend(members.iter().filter_map(|find| find()));
        let mut suspended = false;
        kept.iter().for_each(|member| suspended |= member.suspend());
        drop(members);
        self.resume_later(shared, found);
        suspended
    }

    /// The same without regard to restarts: for so long, or until they are resumed. False: they were suspended, or have
    /// ended.
    pub(in crate::hub) fn suspend_for(
        &self,
        shared: &Arc<Shared>,
        lasts: Option<Duration>,
        found: &Find,
    ) -> Result<bool> {
        if let Some(lasts) = lasts.filter(|lasts| *lasts > MAX_DELAY) {
            return Err(Error::invalid("suspension", format!("{lasts:?}"), "up to 100 years"));
        }
        let mut state = self.lock();
        if state.suspended {
            return Ok(false);
        }
        state.suspend_for(lasts);
        drop(state);
        Ok(self.suspend_members(shared, found))
    }

    fn resume_later(&self, shared: &Arc<Shared>, found: &Find) {
        let mut state = self.lock();
        let number = state.suspensions;
        let Some(lasts) = state.lasts.filter(|_| state.suspended && state.timed < number) else {
            return;
        };
        state.timed = number;
        drop(state);
        let (supervisor, found) = (self.clone(), Arc::clone(found));
        let resume = move || {
            supervisor.resume(Some(number), || found().is_some_and(|found| found.resume()));
        };
        match Timer::after(shared, lasts, resume, |_| ()) {
            Ok(timer) => drop(timer),
            Err((Error::Full { .. }, resume)) => resume(),
            // The pool has ended.
            Err(_) => {}
        }
    }

    /// How long the suspension lasts that is now; none: until somebody resumes it.
    pub(in crate::hub) fn suspended_for(&self) -> Option<Duration> {
        self.lock().lasts
    }

    /// Resumes all members; `own` the one that was asked. False: none was suspended.
    pub(in crate::hub) fn resume_members(&self, own: impl FnOnce() -> bool) -> bool {
        self.resume(None, own)
    }

    /// The same, for the suspension of this number only.
    fn resume(&self, number: Option<u64>, own: impl FnOnce() -> bool) -> bool {
        let mut kept = Vec::new();
        let members = self.members();
        if !self.end_suspension(number, clock::now()) && number.is_some() {
            return false;
        }
        let mut resumed = own();
        kept.extend(members.iter().filter_map(|find| find()));
        kept.iter().for_each(|member| resumed |= member.resume());
        drop(members);
        resumed
    }

    fn members(&self) -> MutexGuard<'_, Vec<Find>> {
        self.inner.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its subscriptions are suspended.
    pub fn is_suspended(&self) -> bool {
        self.lock().suspended
    }

    /// How often all handlers were restarted; 0 for [`RestartStrategy::OneForOne`]. A handler whose number is
    /// another is restarted before its next message.
    #[inline]
    pub(in crate::hub) fn epoch(&self) -> u64 {
        // Acquire: pairs with the Release in `restart`; what the one that failed did happened before.
        self.inner.epoch.load(Acquire)
    }

    /// A handler has to be restarted at `now`. `seen` is the epoch that it knows, and then the new one.
    pub(in crate::hub) fn restart(&self, now: u64, seen: &mut u64) -> RestartDecision {
        let mut state = self.lock();
        if state.suspended {
            return RestartDecision::Suspended;
        }
        if !state.window.allows(now) {
            state.suspend(now);
            return RestartDecision::Suspend;
        }
        if self.inner.strategy == RestartStrategy::OneForAll {
            // Under the lock. Release: pairs with the Acquire in `epoch`.
            *seen = self.inner.epoch.load(Relaxed) + 1;
            self.inner.epoch.store(*seen, Release);
        }
        RestartDecision::Restart
    }

    /// Ends a suspension; with a number only that. False: there was none.
    fn end_suspension(&self, number: Option<u64>, now: u64) -> bool {
        let mut state = self.lock();
        if number.is_some_and(|number| number != state.suspensions || !state.suspended) {
            return false;
        }
        state.window.times.clear();
        let was_suspended = core::mem::replace(&mut state.suspended, false);
        if was_suspended {
            state.resumed = now;
        }
        was_suspended
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Supervisor")
            .field("strategy", &self.inner.strategy)
            .field("intensity", &state.window.intensity)
            .field("is_suspended", &state.suspended)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn failed(attempts: u32) -> FailedAttempt {
        FailedAttempt {
            attempts,
            elapsed: 0,
            is_panic: false,
            is_permanent: false,
            retry_after: None,
        }
    }

    proptest! {
        /// Goal: the window answers what OTP's function answers, for any times and intensity. Method: that
        /// function beside it, a list of all restarts that is cut at the threshold and measured. (OTP keeps
        /// the one too many as well, and ends; so the lists are compared up to there, and from there on
        /// both go on without it.)
        #[test]
        fn restarts_are_counted_as_otp_counts_them(
            restarts in 0u32..6,
            within in 1u64..5 * SECOND,
            steps in prop::collection::vec(
                prop_oneof![Just(Some(0)), (0..2 * SECOND).prop_map(Some), Just(None)],
                1..60,
            ),
        ) {
            let within_time = Duration::from_nanos(within);
            let mut window = Window::new(Intensity::new(restarts, within_time));
            let mut kept: Vec<u64> = Vec::new();
            let mut now = 10 * SECOND;
            for step in steps {
                // Without a step: to where the last one is just within.
                now += step.unwrap_or(within);
                let mut with_now = vec![now];
                with_now.extend(kept.iter().take_while(|&&time| time >= now - within));
                let allowed = with_now.len() <= restarts as usize;
                kept = if allowed { with_now } else { with_now[1..].to_vec() };
                prop_assert_eq!(window.allows(now), allowed);
                prop_assert!(window.times.len() <= restarts as usize);
            }
        }

        /// Goal: a message is tried as often as its policy says, and ends as `on_exhausted` says, whether its handler
        /// panics or returns an error.
        #[test]
        fn messages_end_as_their_policy_says(
            retries in 0u32..6,
            discards in any::<bool>(),
            panics in prop::collection::vec(any::<bool>(), 7),
            permanent_at in prop::option::of(1u32..8),
        ) {
            let plain = if discards { OnFailure::discard() } else { OnFailure::dead_letter() };
            let policy = plain.retry(Retry::fixed(retries, Duration::from_millis(2)));
            let end = if discards { Decision::Discard } else { Decision::DeadLetter };
            let attempts = (retries + 1).min(permanent_at.unwrap_or(u32::MAX));
            for attempt in 1..=attempts {
                let is_panic = panics[attempt as usize];
                let is_permanent = permanent_at == Some(attempt);
                let failed = FailedAttempt { is_panic, is_permanent, ..failed(attempt) };
                let decision = policy.judge(&failed, 7);
                let wanted = match attempt < attempts {
                    true => Decision::Retry(Duration::from_millis(2)),
                    false => end,
                };
                prop_assert_eq!(decision, wanted);
            }
        }
    }

    #[test]
    fn the_default_allows_three_restarts_in_five_seconds() {
        let supervisor = Supervisor::new(RestartStrategy::OneForOne, Intensity::default()).unwrap();
        let mut seen = 0;
        let mut restart = |seconds: u64| supervisor.restart(seconds * SECOND, &mut seen);
        assert_eq!([1, 2, 3].map(&mut restart), [RestartDecision::Restart; 3]);
        // The first is one nanosecond too old.
        assert_eq!(supervisor.restart(6 * SECOND + 1, &mut 0), RestartDecision::Restart);
        assert!(!supervisor.is_suspended());
        assert_eq!(supervisor.restart(7 * SECOND, &mut 0), RestartDecision::Suspend);
        assert_eq!(supervisor.restart(70 * SECOND, &mut 0), RestartDecision::Suspended);
        assert!(supervisor.is_suspended());
        let resume = || supervisor.end_suspension(None, 70 * SECOND);
        assert!(resume() && !resume());
        assert_eq!(
            [71; 3].map(|at| supervisor.restart(at * SECOND, &mut 0)),
            [RestartDecision::Restart; 3]
        );
        assert_eq!(supervisor.restart(76 * SECOND, &mut 0), RestartDecision::Suspend);
        assert_eq!((seen, supervisor.epoch()), (0, 0));
    }

    #[test]
    fn one_for_all_tells_the_others() {
        let supervisor = Supervisor::new(RestartStrategy::OneForAll, Intensity::default()).unwrap();
        let (mut first, second) = (supervisor.epoch(), supervisor.epoch());
        assert_eq!(supervisor.restart(SECOND, &mut first), RestartDecision::Restart);
        assert_eq!(first, supervisor.epoch(), "the one that failed has been restarted");
        assert_ne!(second, supervisor.epoch(), "the other has not");
    }

    #[test]
    fn a_handler_that_asks_to_wait_is_waited_for() {
        let policy = OnFailure::dead_letter().retry(Retry::fixed(1, Duration::from_millis(2)));
        let asks = FailedAttempt { retry_after: Some(Duration::from_secs(3)), ..failed(1) };
        assert_eq!(policy.judge(&asks, 0), Decision::Retry(Duration::from_secs(3)));
        let late = OnFailure::discard().retry(Retry::exponential(9).within(Duration::from_secs(1)));
        let over = FailedAttempt { elapsed: SECOND + 1, ..failed(1) };
        assert_eq!(late.judge(&over, 0), Decision::Discard);
    }

    /// Goal: suspensions get longer while the handler is not sound, and as short as the first when it was sound for
    /// as long as the last one lasted; and a timer that comes late ends no other suspension than its own.
    #[test]
    fn suspensions_last_for_twice_as_long_each_time() {
        let seconds = Duration::from_secs;
        let intensity = Intensity::new(0, seconds(1)).resume_after(seconds(2), seconds(7));
        let supervisor = Supervisor::new(RestartStrategy::OneForOne, intensity).unwrap();
        let mut now = 100;
        let mut suspend_after = |sound: u64| {
            now += sound;
            assert_eq!(supervisor.restart(now * SECOND, &mut 0), RestartDecision::Suspend);
            let lasts = supervisor.suspended_for().unwrap();
            now += lasts.as_secs();
            let number = supervisor.lock().suspensions;
            assert!(!supervisor.end_suspension(Some(number - 1), now * SECOND));
            assert!(supervisor.end_suspension(Some(number), now * SECOND));
            assert!(!supervisor.end_suspension(Some(number), now * SECOND));
            lasts.as_secs()
        };
        assert_eq!([1, 1, 1, 1, 1].map(&mut suspend_after), [2, 4, 7, 7, 7]);
        assert_eq!([8, 2, 4, 5].map(&mut suspend_after), [2, 4, 7, 7]);
        let for_good = Intensity::new(0, seconds(1)).suspend_for_good();
        let supervisor = Supervisor::new(RestartStrategy::OneForOne, for_good).unwrap();
        assert_eq!(supervisor.restart(SECOND, &mut 0), RestartDecision::Suspend);
        assert_eq!(supervisor.suspended_for(), None);
    }

    #[test]
    fn intensities_out_of_range_are_named() {
        let error = |restarts, within| {
            let intensity = Intensity::new(restarts, within);
            Supervisor::new(RestartStrategy::OneForOne, intensity).unwrap_err().to_string()
        };
        assert_eq!(
            error(100_001, Duration::from_secs(1)),
            "intensity's restarts is 100001, but must be up to 100000"
        );
        assert_eq!(
            error(1, Duration::ZERO),
            "intensity's time is 0ns, but must be 1 nanosecond to 100 years"
        );
        let milli = Duration::from_millis(1);
        for (first, longest) in
            [(Duration::ZERO, milli), (2 * milli, milli), (milli, Duration::MAX)]
        {
            let intensity = Intensity::default().resume_after(first, longest);
            let error = Supervisor::new(RestartStrategy::OneForOne, intensity).unwrap_err();
            let told = error.to_string();
            assert!(told.starts_with(&format!("the time of a suspension is {first:?}")), "{told}");
        }
    }
}
