//! Pulling: events as data, for hosts that cannot be called back (an interpreter with a lock of its
//! own, a loop that must stay in charge).
//!
//! # The idea
//!
//! A *pulled* handle has a token instead of a handler. When its turn comes, whoever claimed it puts
//! an event into the *outbox* and leaves the slot RUNNING, as if a handler ran: the host is the
//! handler. A thread of the host takes a batch out by [`Pool::pull`], works on it wherever it likes,
//! and its next pull *completes* the batch, which is what a handler's return is to other handles. So
//! a handle's events go to one thread at a time, and what arrives meanwhile is kept in the slot's
//! word.
//!
//! ```text
//!            claim              pull               next pull, complete, thread's end
//!   QUEUED ────────► HELD, in the outbox ──► HELD, with a host thread ────► as after a handler
//! ```
//!
//! In a pool without threads of its own the host's threads are the members while they pull: they
//! follow, lead, promote, and run what has handlers. In a pool with threads, those do all this, and
//! pulling threads wait beside the outbox.
//!
//! # Invariants
//!
//! 1. A held slot is completed once: `unhold` is a CAS on its word that one caller wins. The word
//!    counts the holds, so that a thread that completes its batch late does not complete what
//!    another one has got since.
//! 2. After an event is in the outbox the thread that put it there touches its slot no more.
//! 3. No event lies in the outbox beside waiting host threads. In a pool with threads the outbox's
//!    lock orders *put* and *wait*. In one without, a member announces parking, passes a barrier and
//!    looks at `waiting`; whoever puts stores `waiting`, passes a barrier and looks who is parked.
//! 4. Tokens that were posted are bounded in number; events of handles are, by the handles.

use super::held::{complete, complete_all, find_held, put_held, take_held};
use super::join::take_part;
use super::outbox::{Event, HandleId, Outbox};
use crate::error::{Error, Rejected, Result};
use crate::pool::Pool;
use crate::pool::handle::{Handle, HandleOptions, next_multiple};
use crate::pool::handler::{EventKind, Flow};
use crate::pool::shared::Shared;
use crate::pool::slots::{Activity, Takes};
use crate::pool::timers::Timer;
use crate::source::Ready;
use core::any::Any;
use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

/// A pulled handle's side in its slot.
struct Pulled<S> {
    io: S,
    descriptor: Option<RawFd>,
    token: u64,
    outbox: Arc<dyn Takes>,
    /// The readiness that was handed out, until it is completed.
    kept: Ready,
    /// For periodic timers, nanoseconds.
    period: u64,
    due: u64,
}

impl<S: Send + 'static> Activity for Pulled<S> {
    fn run(&mut self, _: Ready) -> Flow {
        unreachable!("a pulled handle has no handler")
    }

    fn hand_out(&mut self, ready: Ready) -> (EventKind, u64, Arc<dyn Takes>) {
        self.kept = ready;
        let kind = if self.period == 0 { EventKind::Ready(ready) } else { EventKind::Tick };
        (kind, self.token, Arc::clone(&self.outbox))
    }

    fn kept(&self) -> Ready {
        self.kept
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

impl Pool {
    /// As [`register_with`](Self::register_with), for a host that pulls: there is no handler, and
    /// `token` comes out of [`pull`](Self::pull) whenever `io` is ready. The descriptor is held from
    /// then on: its next event comes after this one was completed. Edge-triggered descriptors must
    /// have been read until EAGAIN before that; level-triggered ones need not.
    ///
    /// [`Handle::deregister`] never waits for a host: while the descriptor is held it gives
    /// [`Error::Closing`], and the handle ends when it is completed.
    ///
    /// # Errors
    /// As [`register_with`](Self::register_with).
    pub fn register_pulled<S>(&self, io: S, options: HandleOptions, token: u64) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
    {
        self.register_for(&self.shared().outbox, io, options, token)
    }

    /// As [`every`](Self::every), for a host that pulls. Ticks that come while one is held are skipped.
    ///
    /// # Errors
    /// As [`every`](Self::every).
    pub fn every_pulled(&self, period: Duration, token: u64) -> Result<Handle<()>> {
        self.every_for(&self.shared().outbox, period, token)
    }

    /// As [`after`](Self::after), for a host that pulls.
    ///
    /// # Errors
    /// As [`after`](Self::after).
    pub fn after_pulled(&self, delay: Duration, token: u64) -> Result<Timer> {
        self.after_for(&self.shared().outbox, delay, token)
    }

    /// Hands a token to whoever pulls next. Never waits. As many tokens as a lane has room for may
    /// lie there. In the counters it is a task, which completes when it is pulled.
    ///
    /// # Errors
    /// [`Rejected`] gives the token back.
    pub fn post_pulled(&self, token: u64) -> Result<(), Rejected<u64>> {
        self.post_pulled_batch(&[token]).map_err(|rejected| rejected.map(|_| token))
    }

    /// Hands several tokens over, in order.
    ///
    /// # Errors
    /// [`Rejected`] says how many were accepted before the refusal.
    pub fn post_pulled_batch(&self, tokens: &[u64]) -> Result<(), Rejected<usize>> {
        self.post_for(&self.shared().outbox, tokens)
    }

    /// Waits for up to `time` for events and appends up to `most` of them to `events`; says how many.
    /// What this thread pulled before is completed first, as by [`Flow::Wait`]. In a pool without
    /// threads of its own this thread takes part meanwhile, as in [`join`](Self::join): it leads,
    /// follows, and runs whatever has a handler.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the pool has stopped, [`Error::Full`] when `max_joined` host threads
    /// are here already, [`Error::Invalid`] for a `most` of 0 or inside a handler, [`Error::Forked`].
    pub fn pull(&self, events: &mut Vec<Event>, most: usize, time: Duration) -> Result<usize> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        if most == 0 {
            return Err(Error::invalid("most", 0, "at least 1"));
        }
        if crate::thread_state::is_member() {
            let allowed = "called by a thread that is not in a pool";
            return Err(Error::invalid("pull", "called inside a handler", allowed));
        }
        let mut held = take_held(shared);
        complete_all(shared, &mut held.holds);
        let before = events.len();
        let pulled = match shared.outbox.take(events, most) {
            0 if shared.end.is_stopping() => Err(Error::ShutDown),
            0 if shared.ready.members.threads > 0 => {
                let until = Instant::now().checked_add(time);
                shared.outbox.wait(events, most, until).ok_or(Error::ShutDown)
            }
            0 => pull_as_member(shared, events, most, time),
            count => Ok(count),
        };
        for event in &events[before..] {
            if let Some(HandleId(key)) = event.handle {
                shared.ready.handles.slots.slot(key.index).pulled(key.generation, event.hold);
                held.holds.push((key, event.hold));
            }
        }
        put_held(held);
        if events.len() > before {
            shared.note_pulled();
        }
        shared.stop_if_drained();
        pulled
    }

    /// Completes what this thread has pulled, as its next [`pull`](Self::pull) would. A drain does not wait for
    /// another pull of this thread from now on.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn pull_done(&self) -> Result<()> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        drop(find_held(shared));
        Ok(())
    }

    /// Completes one event early, from any thread, and with whatever answer: what a handler's return
    /// is to other handles. The thread that pulled it may go on pulling.
    ///
    /// # Errors
    /// [`Error::Stale`] if no event of this handle is held; [`Error::Forked`].
    pub fn complete_pulled(&self, handle: HandleId, flow: Flow) -> Result<()> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        if complete(shared, handle.0, None, flow) {
            Ok(())
        } else {
            Err(Error::Stale { what: "event" })
        }
    }
}

/// What is registered for an outbox.
impl Pool {
    pub(crate) fn register_for<S>(
        &self,
        outbox: &Arc<Outbox>,
        io: S,
        options: HandleOptions,
        token: u64,
    ) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
    {
        let descriptor = Some(io.as_fd().as_raw_fd());
        let outbox = Arc::<Outbox>::clone(outbox);
        self.register_activity(io, options, true, |io| {
            Box::new(Pulled { io, descriptor, token, outbox, kept: Ready::NONE, period: 0, due: 0 })
        })
    }

    pub(crate) fn every_for(
        &self,
        outbox: &Arc<Outbox>,
        period: Duration,
        token: u64,
    ) -> Result<Handle<()>> {
        let outbox = Arc::<Outbox>::clone(outbox);
        self.register_periodic(period, true, |period, due| {
            let (io, descriptor, kept) = ((), None, Ready::NONE);
            Box::new(Pulled { io, descriptor, token, outbox, kept, period, due })
        })
    }

    pub(crate) fn after_for(
        &self,
        outbox: &Arc<Outbox>,
        delay: Duration,
        token: u64,
    ) -> Result<Timer> {
        let (weak, outbox) = (Arc::downgrade(self.shared()), Arc::clone(outbox));
        self.after(delay, move || {
            if let Some(shared) = weak.upgrade()
                && outbox.push(Event::unheld(EventKind::Timer, token))
            {
                shared.hosts.call(&shared.ready, shared.is_inside());
            }
        })
    }

    pub(crate) fn post_for(
        &self,
        outbox: &Outbox,
        tokens: &[u64],
    ) -> core::result::Result<(), Rejected<usize>> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Rejected::Forked(0));
        }
        let posted = outbox.post(tokens, shared.is_inside());
        if posted.is_ok_and(|some| some > 0) {
            shared.hosts.call(&shared.ready, false);
        }
        let refused = match posted {
            Ok(all) if all == tokens.len() => return Ok(()),
            Ok(some) => Rejected::Full(some),
            Err(()) => Rejected::ShutDown(0),
        };
        Err(shared.counters.count_rejected(refused))
    }
}

fn pull_as_member(
    shared: &Arc<Shared>,
    events: &mut Vec<Event>,
    most: usize,
    time: Duration,
) -> Result<usize> {
    let outbox = &*shared.outbox;
    let count = take_part(shared, time, |mut worker| {
        worker.pull(&outbox.waiting, most, time.is_zero());
        outbox.take(events, most)
    })?;
    if !outbox.is_empty() {
        shared.hosts.call(&shared.ready, false);
    }
    if count == 0 && shared.end.is_stopping() { Err(Error::ShutDown) } else { Ok(count) }
}
