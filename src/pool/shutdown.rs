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
//! Whether all of it has ended is looked at in the counters, when the pool has stopped: the report says `drained` unless
//! something was lost since the end began (`end.rs`), which is counted there, or a thread is stuck. That a listener has
//! found no thread to end on loses nothing: it takes in who waits, to be counted among the connections, and ends where
//! the pool is stopped.
//!
//! Refusal is atomic with acceptance: the close bits are in each lane's tail word, so a task is either
//! accepted before and then run or counted as cancelled, or refused. Whoever is last to leave sweeps;
//! if a handler never returns, the caller of `shutdown` sweeps what that handler does not use, and
//! the rest stays allocated for it.

use super::end::{DRAIN_LOOK, PoolReport, Remains};
use super::host::take_part;
use super::log;
use super::shared::Shared;
use super::slots::{Key, Payload};
use crate::contain::contain;
use crate::queue::{Claimed, LocalQueue, Taken, Turn};
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sync::store_load_barrier;
use crate::sys::thread::JoinHandle;
use core::time::Duration;
use crossbeam_queue::SegQueue;
use std::sync::Arc;

/// How long threads may take to leave after the drain, before they are called stuck.
const GRACE: u64 = 100_000_000;

/// How long the end of a pool's last owner drains at most.
const LAST_DRAIN: Duration = Duration::from_secs(30);

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

impl Shared {
    pub(super) fn shut_down(self: &Arc<Self>, drain: u64, threads: &Threads) -> PoolReport {
        let deadline = self.now().saturating_add(drain).min(u64::MAX - 1);
        // So that none of them takes its counts along.
        let _parts: Vec<_> = self.end.parts().collect();
        self.drain(deadline);
        if self.is_inside() {
            return PoolReport { requested: true, ..PoolReport::default() };
        }
        self.wait_for_members(deadline);
        let report = self.end.report(&self.counters, || self.ready.members.stuck());
        // By the machine's clock, whatever the pool's is.
        threads.reap(crate::sys::clock::now());
        log::stopped(&self.log, &report, self.ready.members.threads);
        report
    }

    /// The end of the last owner, who is the only one that could have taken what waits for hosts.
    pub(crate) fn end_with_owner(self: &Arc<Self>, threads: &Threads) -> PoolReport {
        self.hosts.close();
        self.counters.dropped.fetch_add(self.hosts.sweep(), Relaxed);
        self.shut_down(LAST_DRAIN.as_nanos() as u64, threads)
    }

    /// Waits until the last member has left, sees to it that the drain ends in time even if every
    /// member is stuck, and sweeps. Where no thread is left that could run what was accepted, this one does.
    fn wait_for_members(self: &Arc<Self>, deadline: u64) {
        loop {
            let epoch = self.ready.handles.changed.epoch();
            let now = self.now();
            let is_empty = self.ready.members.present() == 0;
            let is_alone = is_empty && self.hosts.is_delivered() && !self.hosts.are_elsewhere();
            // A member of another pool stays that.
            let may_take_part = !crate::thread_state::is_member() && !self.end.is_stopping();
            if now < deadline && is_alone && may_take_part && !self.run_alone(deadline) {
                // Another thread does so.
                continue;
            }
            if now >= deadline || is_alone {
                self.stop();
            } else if is_empty {
                // Hosts are busy elsewhere, and it may be over by what other threads do.
                self.stop_if_drained();
            }
            if self.ready.members.present() == 0 && self.end.is_stopping()
                || now >= deadline.saturating_add(GRACE)
            {
                break;
            }
            let next = match now < deadline {
                true if is_empty => deadline.min(now.saturating_add(DRAIN_LOOK)),
                true => deadline,
                false => deadline.saturating_add(GRACE),
            };
            self.ready.handles.changed.wait(epoch, Some(Duration::from_nanos(next - now)));
        }
        self.sweep();
    }

    /// No host comes back: the calling thread runs what was accepted, until `deadline`, or until nothing is ready and some
    /// of the rest is what only a host could end. False: another host has come meanwhile, and has the place.
    fn run_alone(self: &Arc<Self>, deadline: u64) -> bool {
        // Under a clock that only this thread could move nothing becomes due.
        let stands_still = self.ready.handles.sets.clock().is_manual();
        let time = if stands_still { Duration::ZERO } else { Duration::from_nanos(DRAIN_LOOK) };
        while !self.end.is_stopping() && self.now() < deadline {
            let ran = take_part(self, time, |mut worker| {
                if stands_still {
                    worker.run_ready()
                } else {
                    worker.run()
                }
                worker.ran()
            });
            match ran {
                Ok(1..) => {}
                Ok(0) if stands_still || self.end.parts().any(|part| part.needs_host()) => break,
                Ok(0) => {}
                Err(_full) => return false,
            }
        }
        true
    }

    /// Whether nothing more may begin. A drain whose time is over is ended here: members that find
    /// work all the time come to no other place where they would notice.
    #[inline]
    pub(crate) fn must_stop(&self) -> bool {
        self.end.must_stop(|| self.stop_if_late())
    }

    #[cold]
    fn stop_if_late(&self) -> bool {
        let late = self.end.drain_is_over(self.now());
        if late {
            self.stop();
        }
        late
    }

    /// Refuses work from outside and lets members finish what was accepted, until `deadline`.
    pub(crate) fn drain(&self, deadline: u64) {
        log::draining(&self.log, deadline.saturating_sub(self.now()));
        self.end.set_deadline(deadline, &self.counters);
        self.ready.tasks.close_outside();
        self.hosts.close_outside();
        self.end.begin_drain();
        store_load_barrier();
        self.rooms.dismiss();
        if !self.end.drain_is_over(self.now()) {
            self.end.parts().for_each(|part| part.begin_drain());
        }
        if !self.stop_if_drained() {
            // Leaders must take the deadline into account.
            self.ready.handles.sets.ring_all();
            self.ready.members.stop_all();
        }
    }

    /// Whether every task that was accepted has ended, and every one-shot timer that is due. Callers
    /// have changed their own role, and passed a barrier, before they ask; whoever ends something
    /// asks, so the last one gets the answer.
    ///
    /// The order of the looks is what makes it true. A task moves from a lane, or a timer from its
    /// slot, to a member whose role says so *before*: so lanes and slots come first. A member may
    /// rob one that was not looked at yet, and both seem to have nothing: so there must be an instant
    /// at which all of them rest ([`Members::rest`](super::members::Members::rest)). What rests has posted before it came to that: so
    /// what the strands and the rings hold, and what the lanes have accepted, come last.
    pub(crate) fn is_drained(&self) -> bool {
        if !self.end.is_draining() {
            return false;
        }
        let accepted = self.ready.tasks.accepted();
        self.ready.tasks.is_empty()
            && !self.ready.handles.has_due_timers()
            && self.ready.members.rest()
            && self.counters.in_strands.load(Acquire) == 0
            && self.hosts.is_delivered()
            && self.end.remains() < Remains::Work
            && self.ready.tasks.accepted() == accepted
    }

    /// A thread outside has taken back what a drain may have waited for.
    pub(crate) fn recheck_drain(&self) {
        store_load_barrier();
        self.stop_if_drained();
    }

    /// Whether whoever sweeps up may have missed what the caller has just published: then that is the
    /// caller's to take back.
    pub(crate) fn is_too_late(&self) -> bool {
        // Against *stop, then sweep*.
        store_load_barrier();
        self.end.is_stopping()
    }

    /// Ends it if all that was accepted has ended. Callers as those of `is_drained`.
    pub(crate) fn stop_if_drained(&self) -> bool {
        let accepted = self.ready.tasks.accepted();
        let drained = self.is_drained();
        if drained {
            self.refuse_all();
            // What a handler has posted meanwhile is seen here. Members are not looked at again: the
            // one that looks for work now would pass for one that runs it.
            let nothing_new = self.ready.tasks.accepted() == accepted
                && self.hosts.is_delivered()
                && self.end.remains() == Remains::Nothing;
            self.finish(nothing_new);
        }
        drained
    }

    /// Ends it: nothing new begins.
    pub(crate) fn stop(&self) {
        self.refuse_all();
        self.finish(self.is_drained() && self.end.remains() == Remains::Nothing);
    }

    /// Before the last look: a handler that posts now is refused, or what it posted is seen. (Into a
    /// strand it may still get a task, which is cancelled, and counted as that.)
    fn refuse_all(&self) {
        self.ready.tasks.close_all();
        self.hosts.close();
        self.end.parts().for_each(|part| part.close());
    }

    fn finish(&self, drained: bool) {
        if !self.end.begin_stop() {
            return;
        }
        log::stopping(&self.log, drained);
        self.end.set_drained(drained);
        store_load_barrier();
        self.ready.handles.sets.ring_all();
        self.ready.members.stop_all();
        self.rooms.dismiss();
        self.ready.handles.changed.announce();
    }

    /// Drops everything that will not run any more. What a stuck handler uses is left alone: its own
    /// state, and the tasks behind it in its strand. Tasks in the stuck member's local queue are taken out of
    /// it, as any thread may.
    pub(crate) fn sweep(&self) {
        // Against *publish, then see that the pool goes on* in `is_too_late`'s callers.
        store_load_barrier();
        let _sweeping = self.begin_sweep();
        // No timer was due when a drain was through, whatever becomes due until the last member has left.
        let drained = self.end.ended_drained();
        let now = self.now();
        let mut turn = Turn::default();
        let local = LocalQueue::new();
        loop {
            match self.ready.tasks.claim(&local, &mut turn, 1) {
                Claimed::Some(task) => self.counters.cancel(task.into_task()),
                Claimed::Busy => std::thread::yield_now(),
                Claimed::Empty => break,
            }
        }
        for member in &*self.ready.members {
            let mut left = member.local.steal(&local);
            while let Some(task) = left {
                self.counters.cancel(task);
                left = local.next().map(Taken::into_task);
            }
        }
        self.counters.dropped.fetch_add(self.hosts.sweep(), Relaxed);
        for index in self.ready.handles.slots.indices() {
            let Some(slot) = self.ready.handles.slots.get(index) else { continue };
            let key = Key { index, generation: slot.generation() };
            let of_the_library = slot.traits().service;
            let is_due = !drained && (slot.is_due_timer() || slot.deadline() <= now);
            let (_, payload) = self.ready.handles.close(key, false);
            if matches!(payload, Some(Payload::Once(_))) {
                let count = match is_due {
                    _ if of_the_library => &self.counters.timers_cancelled,
                    true => &self.counters.dropped,
                    false => &self.counters.undue,
                };
                count.fetch_add(1, Relaxed);
            }
            let _panicked = contain(|| drop(payload));
        }
        self.drop_kept();
    }

    /// A member leaves. The last one of a stopped pool sweeps up; so does the first one, because a
    /// handler may wait for what will not run, and then never leave.
    pub(crate) fn leave(&self) {
        loop {
            let present = self.ready.members.present();
            if self.end.is_stopping() && (present == 1 || self.end.is_first_to_leave()) {
                self.sweep();
            }
            // Of two that leave at once, one finds that it is the last.
            if self.ready.members.depart_from(present) {
                return self.ready.handles.changed.announce();
            }
        }
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
