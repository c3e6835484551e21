//! Host threads: taking part for a while, and a descriptor for hosts with a loop of their own.

use super::worker::Worker;
use super::{Pool, Shared, context};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::store_load_barrier;
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

impl Pool {
    /// Makes the calling thread a member of the pool for `time`: it leads, follows and runs handlers
    /// as the pool's own threads do. Returns how many handlers and tasks it has run. With a time of
    /// zero it runs what is ready when it is called, and returns. The thread is not pinned.
    ///
    /// # Errors
    /// [`Error::Full`] when `max_joined` host threads are here already, [`Error::Invalid`] inside a
    /// handler, [`Error::ShutDown`], [`Error::Forked`].
    pub fn join(&self, time: Duration) -> Result<u64> {
        let shared = self.shared();
        shared.check_open()?;
        if crate::thread_state::is_member() {
            let allowed = "called by a thread that is not in a pool";
            return Err(Error::invalid("join", "called inside a handler", allowed));
        }
        shared.outbox.joined.fetch_add(1, AcqRel);
        let ran = shared.take_part(time, |mut worker| {
            if time.is_zero() {
                worker.run_ready()
            } else {
                worker.run()
            };
            worker.ran()
        });
        shared.outbox.joined.fetch_sub(1, AcqRel);
        ran
    }

    /// A descriptor that becomes readable when there is something to do, for hosts that wait in a
    /// loop of their own and then call [`join`](Self::join) with a time of zero. Never read it.
    /// It belongs to the pool. For a pool of no threads and one handle set.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pool has threads of its own or a source without descriptors.
    pub fn pollable(&self) -> Result<BorrowedFd<'_>> {
        let shared = self.shared();
        shared.check_open()?;
        if shared.crew.threads > 0 {
            let allowed = "0 for a pool that a host polls";
            return Err(Error::invalid("threads", shared.crew.threads, allowed));
        }
        let Some(fd) = shared.sets[0].source.pollable() else {
            return Err(Error::invalid("source", "without descriptors", "epoll"));
        };
        shared.hosted.store(true, Relaxed);
        // Against *promote, then see whether somebody polls* in a host that leaves.
        store_load_barrier();
        shared.refresh_alarm();
        Ok(fd)
    }
}

impl Shared {
    /// Lends the calling thread a seat for `time`.
    pub(crate) fn take_part<R>(
        self: &Arc<Self>,
        time: Duration,
        part: impl FnOnce(Worker<'_>) -> R,
    ) -> Result<R> {
        let capacity = self.crew.members.len() - self.crew.threads;
        let seat = self
            .crew
            .take_seat()
            .ok_or(Error::Full { what: "seats for host threads", capacity })?;
        let until = self.now().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.arrive();
        // Until it has left: destructors that run while this thread sweeps up are inside.
        let _member = context::enter(self, seat);
        // One less than "never leaves", which is for the pool's own threads.
        let result = part(Worker::new(self, seat, until.min(u64::MAX - 1)));
        if self.hosted.load(Relaxed) {
            self.refresh_alarm();
        }
        self.leave();
        Ok(result)
    }

    /// Gets the pollable descriptor ready for the time when nobody is in the pool: readable at the
    /// next deadline, and rung by whoever publishes work.
    ///
    /// Nobody is forgotten if the set is led meanwhile:
    ///
    /// * A member leads: it refreshes when it leaves, after what the caller published.
    /// * Another thread refreshes: it arms the bell, and *then* looks. Whoever publishes passes a
    ///   barrier, and *then* rings. So either that thread sees the new work or timer and rings for
    ///   itself, or the ring finds the bell armed. A timer that is not the earliest needs neither: it
    ///   is taken in when the earliest is due.
    /// * A member has tried to lead in vain because this thread did, and sleeps: it is called.
    pub(crate) fn refresh_alarm(&self) {
        let Some(mut lead) = self.sets[0].try_lead(self.refresher()) else { return };
        let earliest = lead.take_in_timers(&self.slots);
        // Without descriptors left for a timer the host must come by itself: nothing better is
        // possible, and the next call tries again.
        let _ = lead.set.source.set_alarm((earliest != u64::MAX).then_some(earliest));
        lead.set.source.arm();
        if self.has_unclaimed() || lead.has_new_timers() || !self.outbox.is_empty() {
            lead.set.source.ring();
        }
        lead.promote();
        // Against *announce sleep, then look for an offered set*.
        store_load_barrier();
        self.crew.wake_to_lead();
    }

    /// A number that no member has, for whoever leads only to refresh the alarm.
    fn refresher(&self) -> usize {
        self.crew.members.len()
    }

    /// Waits while a thread refreshes the alarm, which takes some system calls: a host that looks once
    /// and leaves would miss what it came for.
    pub(crate) fn await_refresh(&self) {
        while self.sets[0].leader() == Some(self.refresher()) {
            std::thread::yield_now();
        }
    }
}
