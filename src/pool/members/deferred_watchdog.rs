//! A place to sleep for the one follower that is the watch most often.
//!
//! # The problem
//!
//! A lone request must have a watch before its handler runs, because the handler might block. To wake
//! a follower for that, which then sets a time-out, looks once and goes back to sleep, takes several
//! times the CPU of a small request. But nearly always the handler is back long before the first
//! look would be due, and all of it was for nothing.
//!
//! # The idea
//!
//! One follower sleeps on a timer descriptor instead of its futex. Such a sleeper can be *made* the
//! watch without being woken: the reason is left in its parker, and the alarm is set for the time of
//! its first look. When the leader goes back to its source before that, and all is quiet, it takes
//! alarm, reason and watch back. Two system calls, and nobody was woken.
//!
//! This pays when requests are rare. When they come so often that the watch stays on anyway, it is
//! woken and ticks as usual (`SPARSE`).
//!
//! A call gets a sleeper out of bed by an alarm for *now*, which takes the kernel some 15 µs longer
//! than waking a futex: an interrupt is set up, and waited for. So the bed is for a member that was
//! the watch when it was last awake; one that was called to search sleeps on its futex, since more
//! posts are likely to come.
//!
//! # Rules
//!
//! 1. At most one member is in bed (`owner`).
//! 2. A call for any other reason than a left one sets the alarm for *now*, after the reason is in
//!    the parker.
//! 3. Whoever leaves a reason sets the alarm *before*; whoever takes one back clears the alarm
//!    *before*. Both then change the parker by a CAS that fails if a call came in between, and on
//!    failure the alarm is set for now again. So no call's alarm is ever overwritten for good.
//! 4. An alarm that goes off without a reason is harmless: the sleeper looks around and lies down.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Parker, Wakes};
use crate::sys::timerfd::TimerFd;

/// A watch is told later only if none was needed for so long, in nanoseconds.
const SPARSE: u64 = 1_000_000;
/// When the first look of a watch that is told later is due.
pub(crate) const FIRST_LOOK: u64 = 1_000_000;

/// The bed, if the pool has one.
#[derive(Default)]
pub(crate) struct DeferredWatchdog {
    timer: Option<TimerFd>,
    /// Who is in it, plus one.
    owner: AtomicU32,
    /// Who is the watch without knowing it, plus one.
    told_later: AtomicU32,
    /// When a watch was last needed.
    needed_at: AtomicU64,
}

impl DeferredWatchdog {
    /// Without descriptors to spare there is no bed, and everybody sleeps on futexes.
    pub(crate) fn new() -> Self {
        // loom cannot stop a thread in a system call: there, everybody sleeps on futexes.
        let timer = if cfg!(loom) { None } else { TimerFd::bed().ok() };
        Self { timer, ..Self::default() }
    }

    /// Parks here. None: there is no timer descriptor, or another member is here. `prefer` is told when this member can
    /// be made the watch without being woken, and when it cannot any more.
    pub(crate) fn park(&self, parker: &Parker, me: usize, prefer: impl Fn(bool)) -> Option<Wakes> {
        let timer = self.timer.as_ref()?;
        let mine = me as u32 + 1;
        self.owner.compare_exchange(0, mine, AcqRel, Relaxed).ok()?;
        prefer(true);
        let wakes = parker.park_in_bed(timer);
        prefer(false);
        self.told_later.store(0, Relaxed);
        self.owner.store(0, Release);
        Some(wakes)
    }

    /// When a watch that is needed at `now` may be told later: what to give to `arm_watch`.
    pub(crate) fn first_look(&self, now: u64) -> Option<u64> {
        let before = self.needed_at.swap(now, Relaxed);
        let sparse = now.saturating_sub(before) >= SPARSE;
        (sparse && self.owner.load(Relaxed) != 0).then(|| now + FIRST_LOOK)
    }

    /// Leaves the reason to watch with a member in bed, and sets the alarm. False: wake it instead.
    pub(crate) fn tell_later(&self, parker: &Parker, member: usize, look_at: u64) -> bool {
        let Some(timer) = &self.timer else { return false };
        if self.owner.load(Acquire) != member as u32 + 1 || timer.set(look_at).is_err() {
            return false;
        }
        let left = parker.leave_in_bed(Wakes::WATCH);
        if left {
            self.told_later.store(member as u32 + 1, Release);
        }
        // If it failed the caller wakes the member, which sets the alarm for now (rule 3).
        left
    }

    /// Whether a member is the watch without knowing it. A hint.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.told_later.load(Relaxed) != 0
    }

    /// Who that is, once: its alarm is cleared, and the reason in its parker is the caller's to take back.
    pub(crate) fn take_back(&self) -> Option<usize> {
        let (Some(timer), told @ 1..) = (&self.timer, self.told_later.swap(0, AcqRel)) else {
            return None;
        };
        let _ = timer.clear();
        Some(told as usize - 1)
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
