//! The end of a pool: refuse, drain, stop, sweep.
//!
//! ```text
//!   open ──drain(deadline)──► draining ──everything ended, or the deadline──► stopping ──► gone
//!          refuses outside               members notice it before they        refuses all
//!                                        park, and leaders by their time-out
//! ```
//!
//! Refusal is atomic with acceptance: the close bits are in each lane's tail word, so a task is either
//! accepted before and then run or counted as cancelled, or refused. Whoever is last to leave sweeps;
//! if a handler never returns, the caller of `shutdown` sweeps what that handler does not use, and
//! the rest stays allocated for it.

use super::{Pool, Shared, context};
use crate::sync::atomic::Ordering::Acquire;
use crate::sys::thread::JoinHandle;
use core::time::Duration;
use crossbeam_queue::SegQueue;
use std::sync::Arc;

/// How long threads may take to leave after the drain, before they are called stuck.
const GRACE: u64 = 100_000_000;

/// How a shutdown went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// Everything that had been accepted ended within the drain's time.
    pub drained: bool,
    /// This was called inside a handler, so it was only a request: the pool shuts down when its
    /// handlers have returned.
    pub requested: bool,
    /// Tasks and one-shot timers that were accepted and will not run.
    pub cancelled: u64,
    /// Events of its rings, and messages that wait in mailboxes of its hubs, which will not be handled: none if
    /// it was drained, but for mailboxes that are pulled.
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
    /// Shuts the pool down: refuses new work from outside, runs what was accepted, and what was
    /// published to its rings and hubs, for up to `drain`, messages that wait for another attempt included,
    /// then cancels what has not begun, closes all handles, and ends the threads. Timers that are
    /// not due are cancelled at once when the drain ends.
    ///
    /// It returns when all handlers have returned, or 100 ms after the drain at the latest; threads
    /// that are still inside a handler then are reported as stuck, and nothing that they use is
    /// freed. Inside a handler it is only a request and returns at once. Calling it again is
    /// harmless.
    ///
    /// A pool without threads is drained by the hosts that are in it now: the drain ends when the
    /// last of them leaves.
    pub fn shutdown(&self, drain: Duration) -> Report {
        let shared = self.shared();
        if shared.is_forked() {
            let stuck = Vec::new();
            return Report { drained: false, requested: false, cancelled: 0, left: 0, stuck };
        }
        shared.ask_to_drain();
        let drain = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX);
        let report = shared.shut_down(drain, self.threads());
        let left = if report.requested { 0 } else { shared.left_in_rings() };
        Report { left, ..report }
    }
}

impl Shared {
    pub(crate) fn shut_down(&self, drain: u64, threads: &Threads) -> Report {
        let deadline = self.now().saturating_add(drain).min(u64::MAX - 1);
        let dropped = self.dropped_outside();
        self.drain(deadline);
        let inside = context::is_inside(self);
        if !inside {
            self.wait_for_members(deadline);
        }
        let report = Report {
            drained: self.ended_drained(),
            requested: inside,
            cancelled: self.dropped_outside() - dropped,
            left: 0,
            stuck: if inside { Vec::new() } else { self.stuck() },
        };
        if !inside {
            // By the machine's clock, whatever the pool's is.
            threads.reap(crate::sys::clock::now());
            self.tell_end(&report);
        }
        report
    }

    /// Waits until the last member has left, sees to it that the drain ends in time even if every
    /// member is stuck, and sweeps.
    fn wait_for_members(&self, deadline: u64) {
        loop {
            let epoch = self.changed.load(Acquire);
            let now = self.now();
            if now >= deadline || self.present() == 0 && self.outbox.is_delivered() {
                self.stop();
            }
            if self.present() == 0 && self.is_stopping() || now >= deadline.saturating_add(GRACE) {
                break;
            }
            let next = if now < deadline { deadline } else { deadline.saturating_add(GRACE) };
            self.changed.wait(epoch, Some(Duration::from_nanos(next - now)));
        }
        self.sweep();
    }

    /// The pool's own threads that have not left.
    fn stuck(&self) -> Vec<usize> {
        let members = self.crew.members.iter().enumerate();
        members
            .filter(|(_, member)| member.role() != super::Role::Away)
            .map(|(index, _)| index)
            .collect()
    }
}

/// Shuts the pool down when the last [`Pool`] is dropped: whatever was accepted runs first.
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
            let _ = self.shared.shut_down(u64::MAX, &self.threads);
        }
    }
}
