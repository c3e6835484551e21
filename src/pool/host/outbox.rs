//! Events that wait for a host thread. `pull.rs` describes what pulling is.

use crate::pool::handler::EventKind;
use crate::pool::ready::ReadyWork;
use crate::pool::slots::{Key, Payload, with_claimed};
use crate::source::Ready;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU32, AtomicUsize};
use crate::sync::store_load_barrier;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Names a handle as long as it is registered; afterwards it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HandleId(pub(crate) Key);

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
    pub(crate) hold: u16,
}

impl Event {
    pub(super) fn unheld(kind: EventKind, token: u64) -> Self {
        Self { kind, token, handle: None, hold: 0 }
    }
}

/// Events that wait for a host thread.
pub(crate) struct Outbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// How many events wait; what members look at without the lock.
    waiting: AtomicUsize,
    /// Host threads that take part by [`Pool::join`](crate::Pool::join), which pull nothing.
    pub(crate) joined: AtomicUsize,
    /// Host threads that pull, also between two pulls.
    pub(crate) pullers: AtomicU32,
    capacity: usize,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Tokens among the events.
    posted: usize,
    waiters: usize,
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
            pullers: AtomicU32::new(0),
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
    fn push(&self, event: Event) {
        let mut state = self.lock();
        state.events.push_back(event);
        self.added(&state, 1);
    }

    /// Puts in as many tokens as fit; says how many. Err: it is closed for this caller.
    pub(super) fn post(&self, tokens: &[u64], inside: bool) -> core::result::Result<usize, ()> {
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
        if state.waiters > 0 {
            if count == 1 { self.arrived.notify_one() } else { self.arrived.notify_all() }
        }
    }

    pub(super) fn take(&self, out: &mut Vec<Event>, most: usize) -> usize {
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

    /// Waits beside the outbox until something is in it or `until`.
    pub(super) fn wait(
        &self,
        out: &mut Vec<Event>,
        most: usize,
        until: Option<Instant>,
    ) -> Option<usize> {
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
            state.waiters += 1;
            state = match left {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let woken = self.arrived.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.waiters -= 1;
        }
    }

    /// Tokens from outside are refused.
    pub(crate) fn close_outside(&self) {
        self.lock().closed_outside = true;
    }

    /// Everything is refused, and those who wait here are told.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Whether every token that was accepted has been handed out.
    pub(crate) fn is_delivered(&self) -> bool {
        self.lock().posted == 0
    }

    /// Drops what no host pulled; says how many tokens were among it.
    pub(crate) fn sweep(&self) -> u64 {
        let mut state = self.lock();
        state.events.clear();
        self.waiting.store(0, Relaxed);
        core::mem::take(&mut state.posted) as u64
    }

    /// Tokens accepted, handed out, and waiting.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let state = self.lock();
        (state.accepted, state.delivered, state.posted as u64)
    }

    /// Hands a claimed slot out to the host.
    pub(crate) fn hand_out(&self, index: u32, readiness: Ready, ready: &ReadyWork, inside: bool) {
        let slot = ready.handles.slots.slot(index);
        let (kind, token) = with_claimed(slot, |payload| match payload {
            Payload::Activity(activity) => activity.hand_out(readiness),
            Payload::Once(_) | Payload::Empty => unreachable!("not a pulled handle"),
        });
        let handle = Some(HandleId(Key { index, generation: slot.generation() }));
        let hold = slot.hold();
        // From here on a host thread may complete it (invariant 2).
        self.put(Event { kind, token, handle, hold }, ready, inside);
    }

    /// Puts an event in, and calls a host to it.
    pub(super) fn put(&self, event: Event, ready: &ReadyWork, inside: bool) {
        self.push(event);
        // A member that pulls finds it by itself.
        if !inside || self.joined.load(Relaxed) > 0 {
            self.call_pullers(ready);
        }
    }

    /// Something is in the outbox. In a pool with threads the outbox itself has called.
    pub(super) fn call_pullers(&self, ready: &ReadyWork) {
        if ready.members.threads > 0 {
            return;
        }
        ready.notify_outside();
        // Those who only join would not take it. Against *count as joined, then search or lead*: a
        // mark of theirs that was relied on above is seen here.
        store_load_barrier();
        if self.joined.load(Relaxed) == 0 {
            return;
        }
        ready.handles.sets.ring_all();
        ready.members.stop_all();
    }
}
