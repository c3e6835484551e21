//! A descriptor for a host that waits in a loop of its own.

use crate::pool::ready::ReadyWork;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::store_load_barrier;

/// Whether there is such a host, for which an alarm is to be set.
pub(crate) struct Alarm(AtomicBool);

impl Alarm {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// From now on it is wanted.
    pub(crate) fn want(&self) {
        self.0.store(true, Relaxed);
        // Against *promote, then see whether a host polls* in a host that leaves.
        store_load_barrier();
    }
}

/// Gets the pollable descriptor ready for the time when no thread is in the pool: readable at the
/// next deadline, and rung by whoever publishes work.
///
/// No thread is forgotten if the set is led meanwhile:
///
/// * A member leads: it refreshes when it leaves, after what the caller published.
/// * Another thread refreshes: it arms the bell, and *then* looks. Whoever publishes passes a
///   barrier, and *then* rings. So either that thread sees the new work or timer and rings for
///   itself, or the ring finds the bell armed. A timer that is not the earliest needs neither: it
///   is taken in when the earliest is due.
/// * A member has tried to lead in vain because this thread did, and is parked: it is called.
pub(crate) fn refresh_alarm(ready: &ReadyWork, waits: impl Fn() -> bool) {
    let Some(mut lead) = ready.handles.sets[0].try_lead(refresher(ready)) else { return };
    let earliest = lead.take_in_timers(&ready.handles.slots);
    // Without descriptors left for a timer the host must come by itself: nothing better is
    // possible, and the next call tries again.
    let _ = lead.set.source.set_alarm((earliest != u64::MAX).then_some(earliest));
    lead.set.source.arm();
    if ready.has_unclaimed() || lead.has_new_timers() || waits() {
        lead.set.source.ring();
    }
    lead.promote();
    // Against *announce parking, then look for an offered set*.
    store_load_barrier();
    ready.members.wake_to_lead();
}

/// Waits while a thread refreshes the alarm, which takes some system calls: a host that looks once
/// and leaves would miss what it came for.
pub(crate) fn await_refresh(ready: &ReadyWork) {
    while ready.handles.sets[0].leader() == Some(refresher(ready)) {
        std::thread::yield_now();
    }
}

/// A number that no member has, for whoever leads only to refresh the alarm.
fn refresher(ready: &ReadyWork) -> usize {
    ready.members.len()
}
