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
//! pulling threads sleep beside the outbox.
//!
//! # Invariants
//!
//! 1. A held slot is completed once: `unhold` is a CAS on its word that one caller wins. The word
//!    counts the holds, so that a thread that completes its batch late does not complete what
//!    another one has got since.
//! 2. After an event is in the outbox the thread that put it there touches its slot no more.
//! 3. No event lies in the outbox beside sleeping host threads. In a pool with threads the outbox's
//!    lock orders *put* and *sleep*. In one without, a member announces sleep, passes a barrier and
//!    looks at `waiting`; whoever puts stores `waiting`, passes a barrier and looks for sleepers.
//! 4. Tokens that were posted are bounded in number; events of handles are, by the handles.

use super::handle::HandleOptions;
use super::shared::with_claimed;
use super::slots::{Activity, Finish, Key, Payload};
use super::{Flow, Handle, Pool, Shared, Timer, context};
use crate::error::{Error, Rejected, Result};
use crate::source::Ready;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::store_load_barrier;
use core::any::Any;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// Names a handle as long as it is registered; afterwards it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HandleId(pub(crate) Key);

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A descriptor is ready.
    Ready(Ready),
    /// A periodic timer is due.
    Tick,
    /// A one-shot timer is due.
    Timer,
    /// A token was posted.
    Posted,
}

/// One event that was pulled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The value that the host gave when it registered or posted.
    pub token: u64,
    /// What is held until the event is completed: a descriptor's or periodic timer's handle.
    pub handle: Option<HandleId>,
    hold: u16,
}

impl Event {
    fn unheld(kind: EventKind, token: u64) -> Self {
        Self { kind, token, handle: None, hold: 0 }
    }
}

/// Events that wait for a host thread.
pub(crate) struct Outbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// How many events wait; what members look at without the lock.
    waiting: AtomicUsize,
    /// Host threads that take part by [`Pool::join`], which pull nothing.
    pub(crate) joined: AtomicUsize,
    capacity: usize,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Tokens among the events.
    posted: usize,
    sleepers: usize,
    closed_outside: bool,
    closed: bool,
    /// Tokens ever accepted, and handed out.
    accepted: u64,
    delivered: u64,
}

impl Outbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::default(),
            arrived: Condvar::new(),
            waiting: AtomicUsize::new(0),
            joined: AtomicUsize::new(0),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Puts an event in that nothing bounds but the number of its kind.
    fn put(&self, event: Event) {
        let mut state = self.lock();
        state.events.push_back(event);
        self.added(&state, 1);
    }

    /// Puts in as many tokens as fit; says how many. Err: it is closed for this caller.
    fn post(&self, tokens: &[u64], inside: bool) -> core::result::Result<usize, ()> {
        let mut state = self.lock();
        if state.closed || state.closed_outside && !inside {
            return Err(());
        }
        let fit = tokens.len().min(self.capacity - state.posted);
        let event = |&token| Event::unheld(EventKind::Posted, token);
        state.events.extend(tokens[..fit].iter().map(event));
        state.posted += fit;
        state.accepted += fit as u64;
        self.added(&state, fit);
        Ok(fit)
    }

    fn added(&self, state: &State, count: usize) {
        self.waiting.store(state.events.len(), Relaxed);
        if state.sleepers > 0 {
            if count == 1 { self.arrived.notify_one() } else { self.arrived.notify_all() }
        }
    }

    fn take(&self, out: &mut Vec<Event>, most: usize) -> usize {
        if self.is_empty() { 0 } else { self.take_from(&mut self.lock(), out, most) }
    }

    fn take_from(&self, state: &mut State, out: &mut Vec<Event>, most: usize) -> usize {
        let count = most.min(state.events.len());
        let before = out.len();
        out.extend(state.events.drain(..count));
        let posted = out[before..].iter().filter(|event| event.kind == EventKind::Posted).count();
        state.posted -= posted;
        state.delivered += posted as u64;
        self.waiting.store(state.events.len(), Relaxed);
        count
    }

    /// Sleeps beside the outbox until something is in it or `until`.
    fn wait(&self, out: &mut Vec<Event>, most: usize, until: Option<Instant>) -> Option<usize> {
        let mut state = self.lock();
        loop {
            let count = self.take_from(&mut state, out, most);
            if count > 0 {
                return Some(count);
            }
            if state.closed {
                return None;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Some(0);
            }
            state.sleepers += 1;
            state = match left {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let woken = self.arrived.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.sleepers -= 1;
        }
    }

    /// Tokens from outside are refused.
    pub(crate) fn close_outside(&self) {
        self.lock().closed_outside = true;
    }

    /// Everything is refused, and those who sleep here are told.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Whether every token that was accepted has been handed out.
    pub(crate) fn is_delivered(&self) -> bool {
        self.lock().posted == 0
    }

    /// Drops what nobody pulled; says how many tokens were among it.
    pub(crate) fn sweep(&self) -> u64 {
        let mut state = self.lock();
        state.events.clear();
        self.waiting.store(0, Relaxed);
        core::mem::take(&mut state.posted) as u64
    }

    /// Tokens accepted, handed out, and waiting.
    pub(crate) fn books(&self) -> (u64, u64, u64) {
        let state = self.lock();
        (state.accepted, state.delivered, state.posted as u64)
    }
}

thread_local! {
    /// What this thread has pulled and not completed, by pool.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// As long as it is there, the thread counts as one that comes back to pull, for which a drain waits.
struct Held {
    pool: Weak<Shared>,
    holds: Vec<(Key, u16)>,
}

impl Held {
    fn new(shared: &std::sync::Arc<Shared>) -> Self {
        shared.pullers.fetch_add(1, Relaxed);
        Self { pool: std::sync::Arc::downgrade(shared), holds: Vec::new() }
    }

    fn is_of(&self, shared: &Shared) -> bool {
        core::ptr::eq(self.pool.as_ptr(), shared)
    }
}

impl Drop for Held {
    /// At the thread's end at the latest everything is completed.
    fn drop(&mut self) {
        // A forked child must not touch the parent's registrations.
        if let Some(shared) = self.pool.upgrade().filter(|shared| !shared.is_forked()) {
            shared.complete_all(&mut self.holds);
            shared.pullers.fetch_sub(1, AcqRel);
            shared.announce_change();
        }
    }
}

/// Takes this thread's list for `shared` out, or a new one. Others' lists stay where they are.
fn take_held(shared: &std::sync::Arc<Shared>) -> Held {
    find_held(shared).unwrap_or_else(|| Held::new(shared))
}

fn find_held(shared: &std::sync::Arc<Shared>) -> Option<Held> {
    let found = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        held.retain(|held| held.pool.strong_count() > 0);
        let place = held.iter().position(|held| held.is_of(shared))?;
        Some(held.swap_remove(place))
    });
    found.ok().flatten()
}

fn put_held(held: Held) {
    let mut held = Some(held);
    // While the thread ends there is no list any more, and what is held is completed here and now.
    let _ = HELD.try_with(|list| list.borrow_mut().extend(held.take()));
}

/// A pulled handle's side in its slot.
struct Pulled<S> {
    io: S,
    descriptor: Option<RawFd>,
    token: u64,
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

    fn hand_out(&mut self, ready: Ready) -> (EventKind, u64) {
        self.kept = ready;
        (if self.period == 0 { EventKind::Ready(ready) } else { EventKind::Tick }, self.token)
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
        self.due = super::handle::next_multiple(self.due, self.period, now);
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
        let descriptor = Some(io.as_fd().as_raw_fd());
        let pulled = |io| Pulled { io, descriptor, token, kept: Ready::NONE, period: 0, due: 0 };
        self.register_activity(io, options, true, |io| Box::new(pulled(io)))
    }

    /// As [`every`](Self::every), for a host that pulls. Ticks that come while one is held are skipped.
    ///
    /// # Errors
    /// As [`every`](Self::every).
    pub fn every_pulled(&self, period: Duration, token: u64) -> Result<Handle<()>> {
        self.register_periodic(period, true, |period, due| {
            Box::new(Pulled { io: (), descriptor: None, token, kept: Ready::NONE, period, due })
        })
    }

    /// As [`after`](Self::after), for a host that pulls.
    ///
    /// # Errors
    /// As [`after`](Self::after).
    pub fn after_pulled(&self, delay: Duration, token: u64) -> Result<Timer> {
        let weak = std::sync::Arc::downgrade(self.shared());
        self.after(delay, move || {
            if let Some(shared) = weak.upgrade() {
                shared.put_event(Event::unheld(EventKind::Timer, token));
            }
        })
    }

    /// Hands a token to whoever pulls next. Never waits. As many tokens as a lane has room for may
    /// lie there. In the books it counts as a task, which completes when it is pulled.
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
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Rejected::Forked(0));
        }
        let refused = match shared.outbox.post(tokens, context::is_inside(shared)) {
            Ok(all) if all == tokens.len() => {
                shared.call_pullers();
                return Ok(());
            }
            Ok(some) => {
                if some > 0 {
                    shared.call_pullers();
                }
                Rejected::Full(some)
            }
            Err(()) => Rejected::ShutDown(0),
        };
        Err(shared.count_rejected(refused))
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
        shared.complete_all(&mut held.holds);
        let before = events.len();
        let pulled = match shared.outbox.take(events, most) {
            0 if shared.is_stopping() => Err(Error::ShutDown),
            0 if shared.crew.threads > 0 => {
                let until = Instant::now().checked_add(time);
                shared.outbox.wait(events, most, until).ok_or(Error::ShutDown)
            }
            0 => shared.pull_as_member(events, most, time),
            count => Ok(count),
        };
        for event in &events[before..] {
            if let Some(HandleId(key)) = event.handle {
                shared.slots.slot(key.index).pulled(key.generation, event.hold);
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
        if shared.complete(handle.0, None, flow) {
            Ok(())
        } else {
            Err(Error::Stale { what: "event" })
        }
    }
}

impl Shared {
    /// Whether another thread has pulled, and has neither ended since nor said that it is done: it comes back.
    pub(super) fn has_pullers(&self) -> bool {
        let own =
            HELD.try_with(|held| held.borrow().iter().filter(|held| held.is_of(self)).count());
        // Acquire: pairs with the AcqRel at the end of a puller: what it has done is seen.
        self.pullers.load(Acquire) as usize > own.unwrap_or(0)
    }

    /// Hands a claimed slot out to the host.
    pub(crate) fn hand_out(&self, index: u32, ready: Ready) {
        let slot = self.slots.slot(index);
        let (kind, token) = with_claimed(self.slots.slot(index), |payload| match payload {
            Payload::Activity(activity) => activity.hand_out(ready),
            Payload::Once(_) | Payload::Empty => unreachable!("not a pulled handle"),
        });
        let handle = Some(HandleId(Key { index, generation: slot.generation() }));
        let hold = slot.hold();
        // From here on a host thread may complete it (invariant 2).
        self.put_event(Event { kind, token, handle, hold });
    }

    fn put_event(&self, event: Event) {
        self.outbox.put(event);
        // A member that pulls finds it by itself.
        if !context::is_inside(self) || self.outbox.joined.load(Relaxed) > 0 {
            self.call_pullers();
        }
    }

    /// Something is in the outbox. In a pool with threads the outbox itself has called.
    fn call_pullers(&self) {
        if self.crew.threads > 0 {
            return;
        }
        self.notify_outside();
        // Those who only join would not take it. Against *count as joined, then search or lead*: a
        // mark of theirs that was relied on above is seen here.
        store_load_barrier();
        if self.outbox.joined.load(Relaxed) == 0 {
            return;
        }
        for set in &self.sets {
            set.source.ring();
        }
        self.crew.stop_all();
    }

    fn pull_as_member(
        self: &std::sync::Arc<Self>,
        events: &mut Vec<Event>,
        most: usize,
        time: Duration,
    ) -> Result<usize> {
        let count = self.take_part(time, |mut worker| {
            worker.pull(most, time.is_zero());
            self.outbox.take(events, most)
        })?;
        if !self.outbox.is_empty() {
            self.call_pullers();
        }
        if count == 0 && self.is_stopping() { Err(Error::ShutDown) } else { Ok(count) }
    }

    fn complete_all(&self, holds: &mut Vec<(Key, u16)>) {
        for (key, hold) in holds.drain(..) {
            // Somebody may have completed it early.
            self.complete(key, Some(hold), Flow::Wait);
        }
    }

    /// False: no such event of this tenant is with the host.
    fn complete(&self, key: Key, hold: Option<u16>, flow: Flow) -> bool {
        let Some(slot) = self.slots.get(key.index) else { return false };
        if !slot.unhold(key.generation, hold) {
            return false;
        }
        let kept = with_claimed(self.slots.slot(key.index), |payload| match payload {
            Payload::Activity(activity) => activity.kept(),
            Payload::Once(_) | Payload::Empty => unreachable!("not a pulled handle"),
        });
        if self.finish(key.index, flow, kept, || true) == Finish::Queued {
            self.notify(context::is_inside(self));
        }
        true
    }
}
