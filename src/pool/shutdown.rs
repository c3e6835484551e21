//! The end of a pool: refuse, drain, stop, sweep.
//!
//! ```text
//!   open ──drain(deadline)──► draining ──everything ended, or the deadline──► stopping ──► gone
//!          refuses outside               members notice it before they        refuses all
//!                                        park, and leaders by their time-out
//! ```
//!
//! Everything: tasks, and what each *part* of the pool has left to do. Servers take nothing new, answer what they have
//! taken, and close their connections; worker pools run what waits, retries within the deadline included; hubs deliver
//! what was published; rings hand out their events. Until all of them are through, handlers may go on to submit, publish
//! and send datagrams: so it does not matter which part another one needs.
//!
//! Whether all of it has ended is looked at in the books, when the pool has stopped: the report says `drained` unless
//! something was lost since the end began ([`Before`]), which is counted there, or a thread is stuck. That a listener has
//! found no thread to end on loses nothing: it takes in who waits, to be counted among the connections, and ends where
//! the pool is stopped.
//!
//! Refusal is atomic with acceptance: the close bits are in each lane's tail word, so a task is either
//! accepted before and then run or counted as cancelled, or refused. Whoever is last to leave sweeps;
//! if a handler never returns, the caller of `shutdown` sweeps what that handler does not use, and
//! the rest stays allocated for it.

use super::shared::{DRAIN_LOOK, Served};
use super::{Pool, Shared, context};
use crate::contain::Contained;
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sys::thread::JoinHandle;
use core::time::Duration;
use crossbeam_queue::SegQueue;
use std::sync::{Arc, Weak};

/// How long threads may take to leave after the drain, before they are called stuck.
const GRACE: u64 = 100_000_000;

/// How long the end of a pool's last owner drains at most.
const LAST_DRAIN: Duration = Duration::from_secs(30);

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct PoolReport {
    /// Everything that had been accepted has ended: nothing was cut off, cancelled or left, and no handler still runs.
    /// If it is false, the counts say what was.
    pub drained: bool,
    /// This was called inside a handler, so it was only a request: the pool shuts down when its
    /// handlers have returned.
    pub requested: bool,
    /// Tasks that were accepted and will not run, and one-shot timers that were not due. (These do not count against
    /// `drained`.) This and what follows is what has come about since the first shutdown of the pool began.
    pub cancelled: u64,
    /// Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
    /// host has pulled and not completed.
    pub worker_tasks: u64,
    /// Of servers: connections that were cut off, as they were not through.
    pub connections: u64,
    /// Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
    /// be handled.
    pub left: u64,
    /// Indices of threads whose handlers have not returned. They end when those do.
    pub stuck: Vec<usize>,
}

/// The pool's own threads, to be joined once.
pub(crate) struct Threads(SegQueue<JoinHandle>);

impl Threads {
    pub(crate) fn new(threads: Vec<JoinHandle>) -> Self {
        let all = SegQueue::new();
        threads.into_iter().for_each(|thread| all.push(thread));
        Self(all)
    }

    /// Joins those that have left, and lets the others go.
    fn reap(&self, now: u64) {
        while let Some(thread) = self.0.pop() {
            match thread.join_until(now + GRACE) {
                Ok(()) => {}
                Err(stuck) => stuck.detach(),
            }
        }
    }
}

impl Pool {
    /// Shuts the pool down: refuses new work from outside and lets everything that was accepted end, for up to
    /// `drain`. Then it cancels what has not begun, closes all handles, and ends the threads.
    ///
    /// Everything: servers stop accepting, answer the requests that they have taken, and close their connections, as by
    /// their own `drain`; worker pools run their tasks, with the retries; hubs and rings deliver what was published; tasks
    /// run. A retry, or a delayed task of a worker pool, that is due only after the drain is not waited for; nor is a
    /// one-shot timer that is not due. A connection that is not through after the drain is cut off, and counted.
    /// Datagram sockets stay open to the end, so that late answers can be sent.
    ///
    /// It returns when all handlers have returned, or 100 ms after the drain at the latest; threads
    /// that are still inside a handler then are reported as stuck, and nothing that they use is
    /// freed. Inside a handler it is only a request and returns at once. Calling it again is
    /// harmless.
    ///
    /// A pool without threads is drained by the hosts that are in it now: those that [join](Self::join) until the
    /// last of them leaves, and those that [pull](Self::pull) until they end, or say that they are
    /// [done](Self::pull_done).
    ///
    /// The end of a pool's last owner does the same, for up to 30 s.
    pub fn shutdown(&self, drain: Duration) -> PoolReport {
        let shared = self.shared();
        if shared.is_forked() {
            return PoolReport::default();
        }
        let drain = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX);
        shared.shut_down(drain, self.threads())
    }

    /// What the last owner's end does, for owners in other languages.
    #[cfg(feature = "capi")]
    pub(crate) fn end_with_owner(&self) -> PoolReport {
        match self.shared().is_forked() {
            true => PoolReport::default(),
            false => self.shared().end_with_owner(self.threads()),
        }
    }

    /// Shuts the pool down without a drain: what has not begun is cancelled. Otherwise as
    /// [`shutdown`](Self::shutdown).
    pub fn stop_now(&self) -> PoolReport {
        self.shutdown(Duration::ZERO)
    }
}

impl Shared {
    fn shut_down(&self, drain: u64, threads: &Threads) -> PoolReport {
        let deadline = self.now().saturating_add(drain).min(u64::MAX - 1);
        // So that none of them takes its counts along.
        let _parts: Vec<_> = self.parts().collect();
        self.drain(deadline);
        if context::is_inside(self) {
            return PoolReport { requested: true, ..PoolReport::default() };
        }
        self.wait_for_members(deadline);
        let report = self.report();
        // By the machine's clock, whatever the pool's is.
        threads.reap(crate::sys::clock::now());
        self.tell_end(&report);
        report
    }

    /// The end of the last owner, who is the only one that could have pulled what waits to be pulled.
    pub(crate) fn end_with_owner(&self, threads: &Threads) -> PoolReport {
        self.outbox.close();
        self.dropped.fetch_add(self.outbox.sweep(), Relaxed);
        self.shut_down(LAST_DRAIN.as_nanos() as u64, threads)
    }

    /// Waits until the last member has left, sees to it that the drain ends in time even if every
    /// member is stuck, and sweeps.
    fn wait_for_members(&self, deadline: u64) {
        loop {
            let epoch = self.changed.load(Acquire);
            let now = self.now();
            let nobody = self.present() == 0;
            if now >= deadline || nobody && self.outbox.is_delivered() && !self.has_pullers() {
                self.stop();
            } else if nobody {
                // Hosts that pull are busy elsewhere, and it may be over by what other threads do.
                self.stop_if_drained();
            }
            if self.present() == 0 && self.is_stopping() || now >= deadline.saturating_add(GRACE) {
                break;
            }
            let next = match now < deadline {
                true if nobody => deadline.min(now.saturating_add(DRAIN_LOOK)),
                true => deadline,
                false => deadline.saturating_add(GRACE),
            };
            self.changed.wait(epoch, Some(Duration::from_nanos(next - now)));
        }
        self.sweep();
    }

    /// What has become of everything, by now.
    fn report(&self) -> PoolReport {
        let before = self.before.get_or_init(|| Before::of(self));
        let (worker_tasks, connections) = before.lost_in_parts(self);
        let dropped = self.dropped.load(Relaxed) - before.dropped;
        let undue = self.undue.load(Relaxed) - before.undue;
        let (left, stuck) = (self.left_in_parts(), self.stuck());
        // A thread that has nothing more to do may just not have been given a processor yet.
        let all_have_ended = stuck.is_empty() || self.ended_drained();
        PoolReport {
            drained: all_have_ended && dropped + worker_tasks + connections + left == 0,
            requested: false,
            cancelled: dropped + undue,
            worker_tasks,
            connections,
            left,
            stuck,
        }
    }

    /// The pool's own threads that have not left.
    fn stuck(&self) -> Vec<usize> {
        let members = self.crew.members.iter().enumerate();
        members
            .filter(|(_, member)| member.role() != super::ThreadRole::Away)
            .map(|(index, _)| index)
            .collect()
    }
}

/// What had been lost when the end of the pool began.
pub(crate) struct Before {
    dropped: u64,
    undue: u64,
    /// Tasks cancelled, and connections cut off, by part.
    parts: Vec<(Weak<dyn Served>, u64, u64)>,
}

impl Before {
    pub(super) fn of(shared: &Shared) -> Self {
        let part = |part: Contained<Arc<dyn Served>>| {
            (Arc::downgrade(&part), part.cancelled(), part.cut_off())
        };
        Self {
            dropped: shared.dropped.load(Relaxed),
            undue: shared.undue.load(Relaxed),
            parts: shared.parts().map(part).collect(),
        }
    }

    /// Tasks of worker pools, and connections, that have been lost since. Parts that came later had lost none.
    fn lost_in_parts(&self, shared: &Shared) -> (u64, u64) {
        let lost = |part: Contained<Arc<dyn Served>>| {
            let is_it =
                |known: &Weak<dyn Served>| core::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(&part));
            let known = self.parts.iter().find(|(known, ..)| is_it(known));
            let (cancelled, cut_off) =
                known.map_or((0, 0), |&(_, cancelled, cut_off)| (cancelled, cut_off));
            (
                part.cancelled().saturating_sub(cancelled) + part.out(),
                part.cut_off().saturating_sub(cut_off),
            )
        };
        shared.parts().map(lost).fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1))
    }
}

/// Shuts the pool down when the last [`Pool`] is dropped: whatever was accepted ends first, within [`LAST_DRAIN`].
pub(crate) struct Life {
    pub(crate) shared: Arc<Shared>,
    pub(crate) threads: Threads,
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            // The threads are not here, and locks may be held for ever: nothing is touched or freed.
            core::mem::forget(Arc::clone(&self.shared));
            core::mem::forget(core::mem::replace(&mut self.threads, Threads::new(Vec::new())));
        } else {
            let _ = self.shared.end_with_owner(&self.threads);
        }
    }
}
