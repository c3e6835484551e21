//! Events of a pool that wait for a host. `hosted.rs` says what they are.

use crate::pool::handler::EventKind;
use crate::pool::slots::{Key, Takes};
use crate::pool::this_thread;
use crate::queue::Line;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Names a handle as long as it is registered; afterwards it names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HandleId(pub(crate) Key);

/// One event: whoever has it may complete it, once.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// What the host gave when it registered or posted.
    pub(crate) tag: u64,
    /// The handle of a descriptor or periodic timer, whose runner is who has this.
    pub(crate) handle: Option<Key>,
}

impl Event {
    pub(crate) fn unheld(kind: EventKind, tag: u64) -> Self {
        Self { kind, tag, handle: None }
    }
}

/// Events that wait for a host thread.
pub(crate) struct Outbox {
    state: Mutex<State>,
    capacity: usize,
    totals: Arc<Totals>,
    /// The completion queue that brings what waits here; it is raised when there is something, and at the end.
    listener: OnceLock<Arc<dyn Line>>,
    /// The thread that empties it: [`NOBODY`], [`SEVERAL`], or its mark.
    server: AtomicUsize,
}

const NOBODY: usize = 0;
const SEVERAL: usize = usize::MAX;

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Tags among the events.
    posted: usize,
    closed_outside: bool,
    closed: bool,
    /// Its host is gone: what happens to its handles ends them.
    gone: bool,
}

/// Tags of all outboxes of a pool: accepted, handed out, and waiting.
#[derive(Default)]
pub(super) struct Totals {
    accepted: AtomicU64,
    delivered: AtomicU64,
    posted: AtomicU64,
}

impl Totals {
    pub(super) fn get(&self) -> (u64, u64, u64) {
        // Acquire: pairs with the Release of who has taken or put tags.
        (self.accepted.load(Acquire), self.delivered.load(Acquire), self.posted.load(Acquire))
    }
}

impl Takes for Outbox {
    fn put(&self, kind: EventKind, tag: u64, key: Key) -> bool {
        self.push(Event { kind, tag, handle: Some(key) })
    }
}

impl Outbox {
    pub(super) fn new(capacity: usize, totals: Arc<Totals>, closed: (bool, bool)) -> Self {
        let (closed_outside, closed) = closed;
        Self {
            state: Mutex::new(State { closed_outside, closed, ..State::default() }),
            capacity,
            totals,
            listener: OnceLock::new(),
            server: AtomicUsize::new(NOBODY),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in that nothing bounds but the number of its kind.
    /// False: the host is gone.
    pub(super) fn push(&self, event: Event) -> bool {
        let mut state = self.lock();
        if !state.gone {
            state.events.push_back(event);
            self.added(&state, 1);
        }
        !state.gone
    }

    /// Puts in as many tags as fit; says how many. Err: it is closed for this caller.
    pub(super) fn post(&self, tags: &[u64], inside: bool) -> core::result::Result<usize, ()> {
        let mut state = self.lock();
        if state.closed || state.closed_outside && !inside {
            return Err(());
        }
        let fit = tags.len().min(self.capacity - state.posted);
        let event = |&tag| Event::unheld(EventKind::Posted, tag);
        state.events.extend(tags[..fit].iter().map(event));
        state.posted += fit;
        // Before they can be taken: what waits is never more than it seems.
        self.totals.posted.fetch_add(fit as u64, AcqRel);
        self.totals.accepted.fetch_add(fit as u64, AcqRel);
        self.added(&state, fit);
        Ok(fit)
    }

    fn added(&self, state: &State, count: usize) {
        if state.events.len() == count {
            self.raise();
        }
    }

    fn take_from(&self, state: &mut State, out: &mut Vec<Event>, most: usize) -> usize {
        let count = most.min(state.events.len());
        let before = out.len();
        out.extend(state.events.drain(..count));
        let posted = out[before..].iter().filter(|event| event.kind == EventKind::Posted).count();
        state.posted -= posted;
        if posted > 0 {
            self.totals.delivered.fetch_add(posted as u64, AcqRel);
            self.totals.posted.fetch_sub(posted as u64, AcqRel);
        }
        count
    }

    /// From now on `line` is raised when the first event lies here, and when it is closed.
    pub(crate) fn listen(&self, line: Arc<dyn Line>) {
        let state = self.lock();
        let _twice = self.listener.set(line);
        if state.closed || !state.events.is_empty() {
            self.raise();
        }
    }

    /// Takes up to `most` without waiting: how many, and whether there may be more, or the end. None: it is closed, and
    /// nothing is left.
    pub(crate) fn bring(&self, out: &mut Vec<Event>, most: usize) -> Option<(usize, bool)> {
        let mut state = self.lock();
        let count = self.take_from(&mut state, out, most);
        (count > 0 || !state.closed).then_some((count, count == most || state.closed))
    }

    fn raise(&self) {
        if let Some(listener) = self.listener.get() {
            listener.raise();
        }
    }

    /// Tags from outside are refused.
    pub(crate) fn close_outside(&self) {
        self.lock().closed_outside = true;
    }

    /// A thread waits here, and comes back until it closes what it waits at.
    pub(crate) fn is_served_elsewhere(&self) -> bool {
        let server = self.server.load(Relaxed);
        server != NOBODY && server != this_thread::mark() && !self.lock().closed
    }

    pub(crate) fn served_here(&self) {
        let (here, before) = (this_thread::mark(), self.server.load(Relaxed));
        if before != here && before != SEVERAL {
            // Of two that come at once, each sees the other.
            let first = self.server.compare_exchange(NOBODY, here, AcqRel, Relaxed).is_ok();
            if !first {
                self.server.store(SEVERAL, Relaxed);
            }
        }
    }

    /// Its host is gone: nothing comes in any more. Gives what waits; tags are still to be swept.
    pub(super) fn leave(&self) -> VecDeque<Event> {
        self.end_service();
        let mut state = self.lock();
        (state.closed, state.gone) = (true, true);
        self.raise();
        core::mem::take(&mut state.events)
    }

    /// Nobody comes back.
    fn end_service(&self) {
        self.server.store(NOBODY, Relaxed);
    }

    /// Everything is refused, and those who wait here are told.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.raise();
    }

    /// Drops what no host took; says how many tags were among it.
    pub(crate) fn sweep(&self) -> u64 {
        let mut state = self.lock();
        state.events.clear();
        let posted = core::mem::take(&mut state.posted) as u64;
        self.totals.posted.fetch_sub(posted, AcqRel);
        posted
    }
}
