//! How long handlers take: how often the watch looks, and which handlers are to be reported.

use crate::pool::config::SlowHook;
use crate::pool::members::{Member, Members};
use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// The watch relaxes to this while no handler is slow.
const COARSE_PERIOD: u64 = 2_000_000;
/// How long the watch stays fine after a slow handler.
const FINE_FOR: u64 = 100_000_000;
/// Rescues are told to the log no more often than this.
const TELL_EVERY: u64 = 1_000_000_000;
/// Set in `Member::began` once that run has been reported.
pub(crate) const REPORTED: u64 = 1 << 63;

/// See the module's documentation.
pub(crate) struct Watchdog {
    /// How often the watch looks while it is fine, in nanoseconds.
    pub(crate) fine_period: u64,
    /// Until when the watch is fine.
    fine_until: CachePadded<AtomicU64>,
    /// When a rescue may next be told of.
    tell_at: AtomicU64,
    /// Rescues that were not told of.
    untold: AtomicU64,
    /// Nanoseconds; 0: no reports were asked for.
    pub(crate) slow_limit: u64,
    pub(crate) slow_hook: Option<SlowHook>,
}

impl Watchdog {
    pub(crate) fn new(fine_period: u64, slow_limit: u64, slow_hook: Option<SlowHook>) -> Self {
        let fine_until = CachePadded::new(AtomicU64::new(0));
        let (tell_at, untold) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { fine_period, fine_until, tell_at, untold, slow_limit, slow_hook }
    }

    /// How long the watch parks between two looks now.
    pub(crate) fn period(&self, now: u64) -> u64 {
        if self.is_coarse(now) { self.fine_period.max(COARSE_PERIOD) } else { self.fine_period }
    }

    pub(crate) fn is_coarse(&self, now: u64) -> bool {
        now >= self.fine_until.load(Relaxed)
    }

    /// A handler outlasted the watch period: the watch is fine for a while.
    #[cold]
    pub(crate) fn saw_slow(&self, now: u64) {
        self.fine_until.store(now + FINE_FOR, Relaxed);
    }

    /// A member rescues. Some: the log is to be told now, of so many.
    pub(crate) fn tell_rescue(&self, now: u64) -> Option<u64> {
        let due = self.tell_at.load(Relaxed);
        let is_due = now >= due
            && self.tell_at.compare_exchange(due, now + TELL_EVERY, Relaxed, Relaxed).is_ok();
        let untold = self.untold.fetch_add(1, Relaxed);
        is_due.then(|| self.untold.swap(0, Relaxed).max(untold + 1))
    }

    /// Whether a handler runs that is to be reported if it goes on for too long.
    pub(crate) fn has_unreported(&self, members: &Members) -> bool {
        let unreported = |member: &Member| {
            let began = member.began.load(Relaxed);
            began != 0 && began & REPORTED == 0
        };
        self.slow_limit != 0 && members.iter().any(unreported)
    }

    /// Handlers that run for longer than the limit and have not been reported, by member, with their times. They count
    /// as reported now.
    pub(crate) fn overdue(
        &self,
        members: &Members,
        now: u64,
    ) -> impl Iterator<Item = (usize, u64)> {
        members.iter().enumerate().filter_map(move |(index, member)| {
            let began = member.began.load(Relaxed);
            let elapsed = now.saturating_sub(began);
            // The mark says that this run has been reported; the CAS fails if it ended meanwhile.
            let is_new = began != 0
                && began & REPORTED == 0
                && elapsed > self.slow_limit
                && member.began.compare_exchange(began, began | REPORTED, Relaxed, Relaxed).is_ok();
            is_new.then_some((index, elapsed))
        })
    }

    /// Whether a member's handler runs for longer than the limit.
    pub(crate) fn is_slow(&self, member: &Member, now: impl FnOnce() -> u64) -> bool {
        let began = member.began.load(Relaxed);
        let elapsed = || now().saturating_sub(began & !REPORTED);
        began != 0 && (began & REPORTED != 0 || elapsed() > self.slow_limit)
    }
}
