//! What a completion queue brings of the pool itself: descriptors, timers and tags.
//!
//! # The idea
//!
//! A *hosted* handle has a tag instead of a handler. When its turn comes, whoever claimed it puts an event into the
//! *outbox* of its queue and leaves the slot RUNNING, as if a handler ran: the host is the handler. Completing the event
//! is what a handler's return is to other handles. So a handle has one event out at a time, and what arrives meanwhile
//! is kept in the slot's word.
//!
//! ```text
//!            claim                    wait                   complete
//!   QUEUED ────────► RUNNING, in the outbox ──► RUNNING, with the host ────► as after a handler
//! ```
//!
//! # Invariants
//!
//! 1. An event is a value: of the outbox, then of who took it out, who is the slot's runner by that and completes it once.
//! 2. After an event is in the outbox the thread that put it there touches its slot no more.
//! 3. No event lies in the outbox beside hosts that wait: `cq/queue.rs` says how they are called.
//! 4. Tags that were posted are bounded in number; events of handles are, by the handles.

use super::outbox::{Event, Outbox};
use crate::error::{NoRoom, Rejected, Result};
use crate::pool::Pool;
use crate::pool::handle::{Handle, HandleOptions, next_multiple};
use crate::pool::handler::{EventKind, Flow};
use crate::pool::slots::{Activity, Takes};
use crate::pool::timers::Timer;
use crate::source::Ready;
use core::any::Any;
use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

/// The side in its slot of a handle that has a tag instead of a handler.
struct Hosted<S> {
    io: S,
    descriptor: Option<RawFd>,
    tag: u64,
    outbox: Arc<dyn Takes>,
    /// For periodic timers, nanoseconds.
    period: u64,
    due: u64,
}

impl<S: Send + 'static> Activity for Hosted<S> {
    fn run(&mut self, _: Ready) -> Flow {
        unreachable!("a hosted handle has no handler")
    }

    fn hand_out(&self, ready: Ready) -> (EventKind, u64, Arc<dyn Takes>) {
        let kind = if self.period == 0 { EventKind::Ready(ready) } else { EventKind::Tick };
        (kind, self.tag, Arc::clone(&self.outbox))
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.descriptor
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.io)
    }

    fn next_deadline(&mut self, now: u64) -> u64 {
        self.due = next_multiple(self.due, self.period, now);
        self.due
    }
}

/// What is registered for a completion queue, whose outbox it is.
impl Pool {
    pub(crate) fn register_for<S>(
        &self,
        outbox: &Arc<Outbox>,
        io: S,
        options: HandleOptions,
        tag: u64,
    ) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
    {
        let descriptor = Some(io.as_fd().as_raw_fd());
        let outbox = Arc::<Outbox>::clone(outbox);
        self.register_activity(io, options.lent(), true, |io| {
            Box::new(Hosted { io, descriptor, tag, outbox, period: 0, due: 0 })
        })
    }

    pub(crate) fn every_for(
        &self,
        outbox: &Arc<Outbox>,
        period: Duration,
        tag: u64,
    ) -> Result<Handle<()>> {
        let outbox = Arc::<Outbox>::clone(outbox);
        self.register_periodic(period, true, |period, due| {
            Box::new(Hosted { io: (), descriptor: None, tag, outbox, period, due })
        })
    }

    pub(crate) fn after_for(
        &self,
        outbox: &Arc<Outbox>,
        delay: Duration,
        tag: u64,
    ) -> Result<Timer> {
        let (weak, outbox) = (Arc::downgrade(self.shared()), Arc::clone(outbox));
        self.after(delay, move || {
            if let Some(shared) = weak.upgrade()
                && outbox.push(Event::unheld(EventKind::Timer, tag))
            {
                shared.hosts.call(&shared.ready, shared.is_inside());
            }
        })
    }

    pub(crate) fn post_for(
        &self,
        outbox: &Outbox,
        tags: &[u64],
    ) -> core::result::Result<(), Rejected<usize>> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Rejected::Forked(0));
        }
        let posted = outbox.post(tags, shared.is_inside());
        if posted.is_ok_and(|some| some > 0) {
            shared.hosts.call(&shared.ready, false);
        }
        let refused = match posted {
            Ok(all) if all == tags.len() => return Ok(()),
            Ok(some) => {
                let helps = "a larger lane_capacity of its pool, or to take more from it";
                let capacity = shared.lane_capacity();
                Rejected::Full(some, NoRoom::new("the completion queue", capacity, helps))
            }
            Err(()) => Rejected::ShutDown(0),
        };
        Err(shared.counters.count_rejected(refused))
    }
}
