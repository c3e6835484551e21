//! How many threads are active: between a least number and all of the pool's, by how long tasks wait.
//!
//! ```text
//!   wait of the tasks that began ─┐
//!   tasks that wait ──────────────┼─► Controller::step, once per period ─► Pool::set_active
//!   threads that are stuck ───────┘
//! ```
//!
//! # The rule
//!
//! | what was seen in a period | what follows |
//! |---|---|
//! | the percentile of the waits is above `high`, or tasks wait and none began | half as many again, at least one more |
//! | it is below `low`, and nothing waits | after `patience` such periods in a row, one less |
//! | anything else | nothing, and the count of quiet periods begins anew |
//!
//! A stuck thread is no help, so it is not counted: each lets another one be active.
//!
//! # Why it does not swing
//!
//! 1. Between `low` and `high` nothing changes: a wait that one thread more brings down to there is
//!    left alone.
//! 2. The way up is quick, the way down slow: after a rise nothing falls for `patience` periods, and a
//!    fall is one thread at a time.
//!
//! # Who looks
//!
//! A timer of the pool, once per period. While every active thread is inside a long task no timer runs:
//! so one of the threads that are parked aside looks too, with a time-out. When nothing is left to
//! do, and the number is the least, both end; the next submission begins it again. A pool at rest makes
//! no wake-ups.
//!
//! ```text
//!                begin: a timer is armed, the thread that is parked aside and asks is called
//!   RESTS ──────────────────────────────────────────────────────────────────────► LOOKS
//!     ▲                                                                             │
//!     └──────── one of the two sees nothing to do; the other ends at its look ──────┘
//! ```
//!
//! Whoever has it rest looks once more whether something waits, as a submission that saw LOOKS begins nothing. If so
//! it begins as a submission does, and not just goes on: the other may have seen RESTS meanwhile, and have ended. What a
//! thread has taken out of a lane, and not put into its own queue yet, is seen by its role: so nothing rests while one
//! is at a task.

use crate::error::{Error, Result};
use crate::log::Component;
use crate::pool::{Overseer, Shared, Timer};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::store_load_barrier;
use crate::task::arena::{Arena, pin};
use crate::task::attempt::guard::Guard;
use core::time::Duration;
use std::sync::{Arc, Mutex, Weak};

/// Settings of how many threads are active; see
/// [`WorkerPoolBuilder::scaling`](super::WorkerPoolBuilder::scaling).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// The least number of active threads, at least 1. Default 1.
    pub min_active: usize,
    /// More threads when the percentile of the waits in the queue is above this. Default 2 ms.
    pub high: Duration,
    /// Fewer when it is below this, at most half of `high`. Default 200 µs.
    pub low: Duration,
    /// Which percentile, 1 to 100. Default 95.
    pub percentile: u32,
    /// How often it is looked at, 1 ms to 1 h. Default 20 ms.
    pub period: Duration,
    /// How many quiet periods in a row it takes for one thread less, at least 1. Default 10.
    pub patience: u32,
}

impl Default for Scaling {
    fn default() -> Self {
        Self {
            min_active: 1,
            high: Duration::from_millis(2),
            low: Duration::from_micros(200),
            percentile: 95,
            period: Duration::from_millis(20),
            patience: 10,
        }
    }
}

impl Scaling {
    pub(super) fn validate(&self, least: usize, most: usize) -> Result<()> {
        let wrong =
            |name, value: String, allowed: String| Err(Error::invalid(name, value, allowed));
        if !(least..=most).contains(&self.min_active) {
            return wrong("min_active", self.min_active.to_string(), format!("{least} to {most}"));
        }
        if self.high.is_zero() {
            return wrong("high", format!("{:?}", self.high), "more than 0".into());
        }
        if self.low > self.high / 2 {
            let allowed = format!("0 to {:?}, which is half of high", self.high / 2);
            return wrong("low", format!("{:?}", self.low), allowed);
        }
        if !(1..=100).contains(&self.percentile) {
            return wrong("percentile", self.percentile.to_string(), "1 to 100".into());
        }
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(3600));
        if !(short..=long).contains(&self.period) {
            return wrong("period", format!("{:?}", self.period), format!("{short:?} to {long:?}"));
        }
        if self.patience == 0 {
            return wrong("patience", "0".into(), "at least 1".into());
        }
        Ok(())
    }
}

/// What was seen in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The percentile of the waits of the tasks that began, in nanoseconds. None: none began.
    pub(crate) wait: Option<u64>,
    /// Tasks that wait now.
    pub(crate) queued: usize,
    /// Threads that do not come back.
    pub(crate) stuck: usize,
}

/// Decides. It knows no clock and no thread: a step is a period.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    scaling: Scaling,
    all: usize,
    /// Wanted, stuck ones not counted.
    wanted: usize,
    quiet: u32,
}

impl Controller {
    pub(crate) fn new(scaling: Scaling, all: usize) -> Self {
        Self { scaling, all, wanted: scaling.min_active.min(all), quiet: 0 }
    }

    /// How many threads are to be active from now on.
    pub(crate) fn step(&mut self, seen: Seen) -> usize {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (high, low) = (nanos(self.scaling.high), nanos(self.scaling.low));
        let jammed = seen.wait.is_none() && seen.queued > 0;
        if jammed || seen.wait.is_some_and(|wait| wait > high) {
            self.quiet = 0;
            self.wanted = (self.wanted + (self.wanted / 2).max(1)).min(self.all);
        } else if seen.queued == 0 && seen.wait.is_none_or(|wait| wait < low) {
            self.quiet += 1;
            if self.quiet >= self.scaling.patience {
                self.quiet = 0;
                self.wanted = (self.wanted - 1).max(self.scaling.min_active.min(self.all));
            }
        } else {
            self.quiet = 0;
        }
        (self.wanted + seen.stuck).min(self.all)
    }

    /// Whether it has nothing to take back.
    fn is_least(&self) -> bool {
        self.wanted == self.scaling.min_active.min(self.all)
    }
}

/// Waits in the queue, counted by size: four classes for each power of two, so a percentile is right to
/// a fifth.
pub(crate) struct Waits([AtomicU32; Waits::CLASSES]);

impl Waits {
    const CLASSES: usize = 4 * 64;

    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU32::new(0)))
    }

    fn class(wait: u64) -> usize {
        let wait = wait.max(4);
        let power = wait.ilog2();
        (power as usize) * 4 + (wait >> (power - 2) & 3) as usize
    }

    /// The largest wait of a class.
    fn most(class: usize) -> u64 {
        let (power, quarter) = (class as u32 / 4, class as u64 % 4);
        if power < 2 {
            return 4;
        }
        let end = (u128::from(4 + quarter + 1) << (power - 2)) - 1;
        u64::try_from(end).unwrap_or(u64::MAX)
    }

    pub(crate) fn note(&self, wait: u64) {
        self.0[Self::class(wait)].fetch_add(1, Relaxed);
    }

    /// A percentile of what was noted since the last time.
    pub(crate) fn take(&self, percentile: u32) -> Option<u64> {
        let counts = core::array::from_fn::<u64, { Self::CLASSES }, _>(|class| {
            match self.0[class].load(Relaxed) {
                0 => 0,
                _ => u64::from(self.0[class].swap(0, AcqRel)),
            }
        });
        let all: u64 = counts.iter().sum();
        let mut left = (all * u64::from(percentile)).div_ceil(100);
        if all == 0 {
            return None;
        }
        for (class, count) in counts.into_iter().enumerate() {
            if count >= left {
                return Some(Self::most(class));
            }
            left -= count;
        }
        unreachable!("the counts add up")
    }
}

/// Whether somebody looks, or is about to. See the head of the file.
struct Looks(AtomicBool);

impl Looks {
    fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn are_on(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// RESTS → LOOKS. True: the caller arms the timer, and calls the thread that is set aside.
    fn begin(&self) -> bool {
        !self.0.swap(true, AcqRel)
    }

    /// LOOKS → RESTS. False: something waits, and whoever submitted it may count on those who looked.
    fn rest(&self, waits: impl FnOnce() -> bool) -> bool {
        self.0.store(false, Relaxed);
        // Against *post, then see that somebody looks*.
        store_load_barrier();
        !waits()
    }
}

/// The controller at work.
pub(crate) struct Scaler {
    controller: Mutex<Controller>,
    waits: &'static Waits,
    guard: &'static Guard,
    percentile: u32,
    period: Duration,
    next_look: AtomicU64,
    looks: Looks,
    /// The timer that looks, by number: one that was armed before it ends.
    timer: AtomicU64,
    me: Weak<Scaler>,
    pool: Weak<Shared>,
}

impl Scaler {
    /// Takes the number of active threads over.
    pub(crate) fn start(
        scaling: Scaling,
        shared: &Arc<Shared>,
        arena: &Arena,
        guard: &'static Guard,
    ) -> Result<Arc<Self>> {
        scaling.validate(shared.places.least(), shared.places.ordinary())?;
        let scaler = Arc::new_cyclic(|me: &Weak<Scaler>| Self {
            controller: Mutex::new(Controller::new(scaling, shared.places.ordinary())),
            waits: arena.keep(Waits::new()),
            guard,
            percentile: scaling.percentile,
            period: scaling.period,
            next_look: AtomicU64::new(0),
            looks: Looks::new(),
            timer: AtomicU64::new(0),
            me: me.clone(),
            pool: Arc::downgrade(shared),
        });
        let overseer: Arc<dyn Overseer> = Arc::clone(&scaler) as _;
        if !shared.places.let_oversee(&overseer) {
            let allowed = "by one worker pool of a pool";
            return Err(Error::invalid("scaling", "asked for again", allowed));
        }
        shared.places.set_active(scaling.min_active, &shared.ready, &shared.log);
        Ok(scaler)
    }

    /// Where the waits of tasks that begin are counted.
    pub(crate) fn waits(&self) -> &'static Waits {
        self.waits
    }

    /// Ordinary threads that do not come back in time.
    fn stuck(&self, shared: &Shared) -> usize {
        let ordinary = shared.places.ordinary();
        self.guard.stuck(&pin()).iter().filter(|(_, worker)| *worker < ordinary).count()
    }

    /// A task was submitted: from now on somebody looks.
    #[inline]
    pub(crate) fn note_submission(&self, shared: &Arc<Shared>) {
        // Against *rest, then look whether something waits*.
        store_load_barrier();
        if !self.looks.are_on() {
            self.begin_to_look(shared);
        }
    }

    #[cold]
    fn begin_to_look(&self, shared: &Arc<Shared>) {
        if !self.looks.begin() {
            return;
        }
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        self.next_look.store(shared.now().saturating_add(period), Relaxed);
        let timer = self.timer.fetch_add(1, Relaxed) + 1;
        self.arm(shared, self.period, timer);
        shared.places.wake_overseer(&shared.ready.members);
    }

    fn arm(&self, shared: &Arc<Shared>, delay: Duration, timer: u64) {
        let (me, weak) = (self.me.clone(), Arc::downgrade(shared));
        let look = move || {
            if let (Some(me), Some(shared)) = (me.upgrade(), weak.upgrade())
                && me.timer.load(Relaxed) == timer
                && let Some(next) = me.look()
            {
                me.arm(&shared, next, timer);
            }
        };
        let armed = Timer::after(shared, delay, look, |_| ());
        // Without room for a timer the thread that is set aside looks alone.
        drop(armed);
    }
}

impl Overseer for Scaler {
    fn look(&self) -> Option<Duration> {
        let shared = &self.pool.upgrade()?;
        if !self.looks.are_on() {
            return None;
        }
        // Whoever else is at it looks for both.
        let Ok(mut controller) = self.controller.try_lock() else { return Some(self.period) };
        let now = shared.now();
        let due = self.next_look.load(Relaxed);
        if now < due {
            return Some(Duration::from_nanos(due - now));
        }
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        self.next_look.store(now.saturating_add(period), Relaxed);
        let seen = Seen {
            wait: self.waits.take(self.percentile),
            queued: shared.ready.waiting_tasks(),
            stuck: self.stuck(shared),
        };
        let active = controller.step(seen);
        let before = shared.places.active();
        if active != before {
            shared.log.info(Component::Task, "workers.scaled", |record| {
                record
                    .with("before", before)
                    .with("threads", active)
                    .with("queued", seen.queued)
                    .with("stuck", seen.stuck)
                    .say("the number of active threads follows the load");
            });
            shared.places.set_active(active, &shared.ready, &shared.log);
        }
        // The timer's own look is a task.
        let has_tasks = || shared.ready.has_tasks(shared.member_here());
        if controller.is_least() && seen == Seen::default() && !has_tasks() {
            drop(controller);
            if !self.looks.rest(has_tasks) {
                self.begin_to_look(shared);
            }
            return None;
        }
        Some(self.period)
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | the timer and the thread that is set aside look, one has it rest, and a task is submitted | who finds that something waits goes on alone | the other has ended, and nobody begins it again |
    //! |  | no look whether something waits | nobody looks |

    use super::*;
    use crate::pool::models::explore;
    use crate::sync::atomic::AtomicUsize;
    use loom::thread;

    /// What they look after, and whether each of them comes again.
    struct Place {
        looks: Looks,
        waiting: AtomicUsize,
        timers: AtomicUsize,
        called: AtomicBool,
    }

    impl Place {
        fn begin(&self) {
            if self.looks.begin() {
                self.timers.fetch_add(1, AcqRel);
                self.call();
            }
        }

        /// As a parker is.
        fn call(&self) {
            self.called.swap(true, AcqRel);
        }

        /// Whether whoever looks comes again.
        fn look(&self) -> bool {
            if !self.looks.are_on() {
                return false;
            }
            if self.waiting.load(Relaxed) > 0 {
                return true;
            }
            if !self.looks.rest(|| self.waiting.load(Relaxed) > 0) {
                self.begin();
            }
            false
        }

        fn submit(&self) {
            self.waiting.store(1, Relaxed);
            store_load_barrier();
            if !self.looks.are_on() {
                self.begin();
            }
        }
    }

    /// Goal: while a task waits, the timer and the thread that is set aside both come again. Method: each looks once, as
    /// a task is submitted.
    #[test]
    fn both_look_while_something_waits() {
        explore(3, || {
            let place = Arc::new(Place {
                looks: Looks::new(),
                waiting: AtomicUsize::new(0),
                timers: AtomicUsize::new(0),
                called: AtomicBool::new(false),
            });
            place.begin();
            let aside = Arc::clone(&place);
            let aside = thread::spawn(move || {
                // It was called for what it sees.
                aside.called.swap(false, AcqRel);
                if aside.look() {
                    aside.call();
                }
            });
            let timer = Arc::clone(&place);
            let timer = thread::spawn(move || {
                let comes_again = timer.look();
                if !comes_again {
                    timer.timers.fetch_sub(1, AcqRel);
                }
            });
            place.submit();
            aside.join().unwrap();
            timer.join().unwrap();
            assert!(place.looks.are_on());
            assert!(place.called.load(Relaxed), "the thread that is set aside comes again");
            assert!(place.timers.load(Relaxed) > 0, "the timer comes again");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn scaling(min_active: usize, patience: u32) -> Scaling {
        Scaling { min_active, patience, ..Scaling::default() }
    }

    fn waits(wait: u64) -> Seen {
        Seen { wait: Some(wait), ..Seen::default() }
    }

    /// A period: what began, what waits, what is stuck.
    fn any_seen() -> impl Strategy<Value = Seen> {
        let wait = prop::option::of(prop_oneof![0..MS / 5, MS / 5..2 * MS, 2 * MS..100 * MS]);
        (wait, 0..3_usize, 0..3_usize).prop_map(|(wait, queued, stuck)| Seen {
            wait,
            queued,
            stuck,
        })
    }

    proptest! {
        /// The number is in its range whatever happens, and one fall follows another, or a rise, only
        /// after `patience` periods.
        #[test]
        fn it_stays_in_range_and_falls_slowly(
            all in 1..40_usize,
            min in 1..40_usize,
            patience in 1..8_u32,
            periods in prop::collection::vec(any_seen(), 1..200),
        ) {
            let min = min.min(all);
            let mut controller = Controller::new(scaling(min, patience), all);
            let mut since_change = patience;
            let mut before = controller.wanted;
            for seen in periods {
                let active = controller.step(seen);
                prop_assert!((min..=all).contains(&active));
                prop_assert_eq!(active, (controller.wanted + seen.stuck).min(all));
                since_change += 1;
                if controller.wanted < before {
                    prop_assert_eq!(controller.wanted, before - 1);
                    prop_assert!(since_change >= patience, "{} of {}", since_change, patience);
                }
                if controller.wanted != before {
                    since_change = 0;
                }
                before = controller.wanted;
            }
        }

        /// Waits between the two limits change nothing, in whatever order they come.
        #[test]
        fn nothing_changes_between_the_limits(
            start in 1..40_usize,
            periods in prop::collection::vec((MS / 5..=2 * MS, 0..5_usize), 1..100),
        ) {
            let mut controller = Controller::new(scaling(1, 1), 40);
            controller.wanted = start;
            for (wait, queued) in periods {
                let seen = Seen { wait: Some(wait), queued, stuck: 0 };
                prop_assert_eq!(controller.step(seen), start);
            }
        }

        /// A jam is answered by all threads within a logarithm of periods, and quiet by the least
        /// number within `patience` periods for each thread.
        #[test]
        fn it_arrives(all in 1..200_usize, patience in 1..5_u32, jammed: bool) {
            let mut controller = Controller::new(scaling(1, patience), all);
            let seen = if jammed { Seen { queued: 1, ..Seen::default() } } else { waits(3 * MS) };
            for _ in 0..15 {
                controller.step(seen);
            }
            prop_assert_eq!(controller.wanted, all);
            for _ in 0..patience * (all as u32 - 1) {
                prop_assert!(controller.step(Seen::default()) <= all);
            }
            prop_assert!(controller.is_least());
        }

        /// A load that n threads carry within the limits finds its number and stays there: a model of
        /// waits that fall with each thread.
        #[test]
        fn it_settles(needed in 2..30_usize, start in 1..30_usize) {
            let mut controller = Controller::new(scaling(1, 3), 30);
            controller.wanted = start;
            let wait = |active: usize| if active < needed { 5 * MS } else { MS };
            for _ in 0..20 {
                let active = controller.wanted;
                controller.step(waits(wait(active)));
            }
            let settled = controller.wanted;
            prop_assert!(settled >= needed);
            for _ in 0..100 {
                prop_assert_eq!(controller.step(waits(wait(settled))), settled);
            }
        }

        /// A percentile is at least the exact one, and at most a quarter above it.
        #[test]
        fn percentiles_are_right_to_a_class(
            mut values in prop::collection::vec(any::<u64>().prop_map(|bits| bits >> (bits % 60)), 1..300),
            percentile in 1..=100_u32,
        ) {
            let noted = Waits::new();
            values.iter().for_each(|&wait| noted.note(wait));
            values.sort_unstable();
            let rank = (values.len() * percentile as usize).div_ceil(100);
            let exact = values[rank - 1];
            let answer = noted.take(percentile).unwrap();
            prop_assert!(answer >= exact, "{} < {}", answer, exact);
            prop_assert!(answer <= exact.saturating_add(exact / 4).max(8), "{} > {}", answer, exact);
            prop_assert_eq!(noted.take(percentile), None);
        }
    }

    #[test]
    fn stuck_threads_do_not_count() {
        let mut controller = Controller::new(scaling(2, 10), 8);
        let stuck = |stuck| Seen { wait: Some(MS), queued: 0, stuck };
        assert_eq!([0, 1, 5, 8, 0].map(|count| controller.step(stuck(count))), [2, 3, 7, 8, 2]);
    }
}
