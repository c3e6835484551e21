//! Where the one follower parks that is the watch most often: its watch can be deferred.
//!
//! # The problem
//!
//! A lone request must have a watch before its handler runs, because the handler might block. To wake
//! a follower for that, which then sets a time-out, looks once and parks again, takes several
//! times the CPU of a small request. But nearly always the handler is back long before the first
//! look would be due, and all of it was for nothing.
//!
//! # The idea
//!
//! One follower parks on a timer descriptor instead of its futex. Such a follower can be *made* the
//! watch without being woken: the reason is left in its parker, and the alarm is set for the time of
//! its first look. When the leader goes back to its source before that, and all is quiet, it takes
//! alarm, reason and watch back. Two system calls, and no thread was woken.
//!
//! This pays when requests are rare. When they come so often that the watch stays on anyway, it is
//! woken and ticks as usual (`SPARSE`).
//!
//! A call wakes such a follower by an alarm for *now*, which takes the kernel some 15 µs longer
//! than waking a futex: an interrupt is set up, and waited for. So this place is for a member that was
//! the watch when it was last awake; one that was called to search parks on its futex, since more
//! posts are likely to come.
//!
//! # Rules
//!
//! 1. At most one member is parked here (`owner`).
//! 2. A call for any other reason than a left one sets the alarm for *now*, after the reason is in
//!    the parker.
//! 3. Whoever leaves a reason sets the alarm *before*; whoever takes one back clears the alarm
//!    *before*. Both then change the parker by a CAS that fails if a call came in between, and on
//!    failure the alarm is set for now again. So no call's alarm is ever overwritten for good.
//! 4. An alarm that goes off without a reason is harmless: the member looks around and parks again.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Parker, Wakes};
use crate::sys::timerfd::TimerFd;

/// A watch is deferred only if none was needed for so long, in nanoseconds.
const SPARSE: u64 = 1_000_000;
/// When the first look of a deferred watch is due.
pub(crate) const FIRST_LOOK: u64 = 1_000_000;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct DeferredWatchdog {
    timer: Option<TimerFd>,
    /// Who is parked here, plus one.
    owner: AtomicU32,
    /// Who is the watch without knowing it, plus one.
    deferred: AtomicU32,
    /// When a watch was last needed.
    needed_at: AtomicU64,
}

impl DeferredWatchdog {
    /// Without descriptors to spare all members park on futexes.
    pub(crate) fn new() -> Self {
        // loom cannot stop a thread in a system call: there, all members park on futexes.
        let timer = if cfg!(loom) { None } else { TimerFd::blocking().ok() };
        Self { timer, ..Self::default() }
    }

    /// Parks here. None: there is no timer descriptor, or another member is here. `prefer` is told when this member can
    /// be made the watch without being woken, and when it cannot any more.
    pub(crate) fn park(&self, parker: &Parker, me: usize, prefer: impl Fn(bool)) -> Option<Wakes> {
        let timer = self.timer.as_ref()?;
        let mine = me as u32 + 1;
        self.owner.compare_exchange(0, mine, AcqRel, Relaxed).ok()?;
        prefer(true);
        let wakes = parker.park_on(timer);
        prefer(false);
        self.deferred.store(0, Relaxed);
        self.owner.store(0, Release);
        Some(wakes)
    }

    /// When a watch that is needed at `now` may be deferred: what to give to `arm_watch`.
    pub(crate) fn first_look(&self, now: u64) -> Option<u64> {
        let before = self.needed_at.swap(now, Relaxed);
        let sparse = now.saturating_sub(before) >= SPARSE;
        (sparse && self.owner.load(Relaxed) != 0).then(|| now + FIRST_LOOK)
    }

    /// Leaves the reason to watch with the member that is parked here, and sets the alarm. False: wake it instead.
    pub(crate) fn leave_reason(&self, parker: &Parker, member: usize, look_at: u64) -> bool {
        let Some(timer) = &self.timer else { return false };
        if self.owner.load(Acquire) != member as u32 + 1 || timer.set(look_at).is_err() {
            return false;
        }
        let left = parker.leave_reason(Wakes::WATCH);
        if left {
            self.deferred.store(member as u32 + 1, Release);
        }
        // If it failed the caller wakes the member, which sets the alarm for now (rule 3).
        left
    }

    /// Whether a member is the watch without knowing it. A hint.
    #[inline]
    pub(crate) fn is_watch(&self) -> bool {
        self.deferred.load(Relaxed) != 0
    }

    /// Who that is, once: its alarm is cleared, and the reason in its parker is the caller's to take back.
    pub(crate) fn take_back(&self) -> Option<usize> {
        let (Some(timer), watch @ 1..) = (&self.timer, self.deferred.swap(0, AcqRel)) else {
            return None;
        };
        let _ = timer.clear();
        Some(watch as usize - 1)
    }

    /// Sets the alarm for now.
    #[cold]
    pub(crate) fn ring_now(&self) {
        if let Some(timer) = &self.timer {
            // Cannot fail for a timer that exists.
            let _ = timer.set(1);
        }
    }
}
