//! Where events wait for a host thread, and where host threads wait for events.
//!
//! # The problem
//!
//! Threads of the pool put events in; they must not wait, and a system call for each event would cost
//! more than the event. Threads of the host take batches out and sleep while there is nothing; a host
//! with a loop of its own sleeps elsewhere, beside a descriptor.
//!
//! # The shape
//!
//! A queue under a lock, and two counts: how many threads are `asleep`, and how many of those have
//! been `called` and have not come back yet.
//!
//! ```text
//!   put:   push ─► asleep > called? called += 1, notify one            (else somebody comes anyway)
//!   take:  something there? take it, and call another if some is left ─► done
//!          nothing there?   asleep += 1, wait, asleep -= 1, called -= 1, look again
//! ```
//!
//! # Invariants
//!
//! 1. While something is in the queue, either nobody is asleep, or somebody has been called who has
//!    not looked yet. *Put* calls, and so does *take* when it leaves something behind. Calls are
//!    anonymous: who comes back for another reason takes a call along, and looks in its place.
//! 2. The descriptor, once somebody has asked for it, is readable if and only if something is in the
//!    queue or all is over. It is raised and lowered under the lock.
//! 3. It is over when the source has ended and nothing that `entered` is left. What is in the queue
//!    then is still taken out.
//!
//! All of it is ordered by the lock.

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::sys::eventfd::EventFd;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// See the head of the file.
pub(super) struct Outbox<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    bell: OnceLock<EventFd>,
}

struct State<T> {
    items: VecDeque<T>,
    asleep: usize,
    called: usize,
    /// What may still put something in.
    live: usize,
    /// Nothing new will enter.
    ended: bool,
    /// Nobody takes anything out any more.
    closed: bool,
}

impl<T> State<T> {
    fn is_over(&self) -> bool {
        self.closed || self.ended && self.live == 0
    }

    /// True: somebody is to be notified.
    fn call(&mut self) -> bool {
        let calls = self.asleep > self.called;
        self.called += usize::from(calls);
        calls
    }
}

impl<T> Outbox<T> {
    pub(super) fn new() -> Self {
        let state = State {
            items: VecDeque::new(),
            asleep: 0,
            called: 0,
            live: 0,
            ended: false,
            closed: false,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new(), bell: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts one in. Err: nobody takes it any more.
    pub(super) fn put(&self, item: T) -> core::result::Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        if state.items.len() == 1 {
            self.raise();
        }
        let calls = state.call();
        drop(state);
        if calls {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Appends up to `most` to `out`, and waits for the first up to `time`; says how many. None: it is
    /// over, and nothing is left.
    pub(super) fn take(&self, out: &mut Vec<T>, most: usize, time: Duration) -> Option<usize> {
        // A time that no clock reaches is for ever.
        let until = (!time.is_zero()).then(|| Instant::now().checked_add(time));
        let mut state = self.lock();
        loop {
            let count = most.min(state.items.len());
            if count > 0 {
                out.extend(state.items.drain(..count));
                self.leave(state);
                return Some(count);
            }
            if state.is_over() {
                return None;
            }
            let left = match until {
                None => return Some(0),
                Some(None) => None,
                Some(Some(until)) => match until.saturating_duration_since(Instant::now()) {
                    Duration::ZERO => return Some(0),
                    left => Some(left),
                },
            };
            state.asleep += 1;
            state = self.sleep(state, left);
            state.asleep -= 1;
            // Its own call, or another's that it looks in the place of (invariant 1).
            state.called = state.called.saturating_sub(1);
        }
    }

    /// Some were taken out: lowers the bell, or calls another for the rest.
    fn leave(&self, mut state: MutexGuard<'_, State<T>>) {
        if state.items.is_empty() {
            if !state.is_over() {
                self.lower();
            }
        } else if state.call() {
            drop(state);
            self.arrived.notify_one();
        }
    }

    fn sleep<'a>(
        &self,
        state: MutexGuard<'a, State<T>>,
        left: Option<Duration>,
    ) -> MutexGuard<'a, State<T>> {
        match left {
            None => self.arrived.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(left) => {
                let woken = self.arrived.wait_timeout(state, left);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
        }
    }

    /// Something comes that may put items in until it has left.
    pub(super) fn enter(&self) {
        self.lock().live += 1;
    }

    /// It puts nothing in any more.
    pub(super) fn left(&self) {
        let mut state = self.lock();
        state.live -= 1;
        self.tell_if_over(state);
    }

    /// Nothing new enters.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.tell_if_over(state);
    }

    /// Refuses what is put in from now on; gives back what nobody took.
    pub(super) fn close(&self) -> VecDeque<T> {
        let mut state = self.lock();
        state.closed = true;
        let left = core::mem::take(&mut state.items);
        self.tell_if_over(state);
        left
    }

    fn tell_if_over(&self, state: MutexGuard<'_, State<T>>) {
        if state.is_over() {
            self.raise();
            drop(state);
            self.arrived.notify_all();
        }
    }

    /// A descriptor that is readable while there is something to take, or all is over.
    pub(super) fn pollable(&self) -> Result<BorrowedFd<'_>> {
        if self.bell.get().is_none() {
            let made = EventFd::new().map_err(|error| Error::os("make an eventfd", error))?;
            let state = self.lock();
            // Of two that come at once, one has made its own for nothing.
            if self.bell.set(made).is_ok() && (!state.items.is_empty() || state.is_over()) {
                self.raise();
            }
        }
        Ok(self.bell.get().expect("set above or by another").as_fd())
    }

    fn raise(&self) {
        if let Some(bell) = self.bell.get() {
            bell.signal();
        }
    }

    fn lower(&self) {
        if let Some(bell) = self.bell.get() {
            bell.clear();
        }
    }
}

/// The descriptor stays out of this: it is raised and lowered under the lock, beside the queue.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    const FOR_EVER: Duration = Duration::MAX;

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn taker(outbox: &Arc<Outbox<u32>>, most: usize) -> thread::JoinHandle<Vec<u32>> {
        let outbox = Arc::clone(outbox);
        thread::spawn(move || {
            let mut out = Vec::new();
            outbox.take(&mut out, most, FOR_EVER);
            out
        })
    }

    /// Goal: of two that sleep, or are about to, each gets one of two items (invariant 1). Method: a
    /// call that is missed leaves one asleep for ever, which loom reports as a deadlock.
    #[test]
    fn no_item_lies_beside_a_sleeper() {
        check(|| {
            let outbox = Arc::new(Outbox::new());
            let takers = [taker(&outbox, 1), taker(&outbox, 1)];
            outbox.put(1).unwrap();
            outbox.put(2).unwrap();
            let mut got: Vec<_> =
                takers.into_iter().flat_map(|each| each.join().unwrap()).collect();
            got.sort_unstable();
            assert_eq!(got, [1, 2]);
        });
    }

    /// Goal: who sleeps is told of the end, whoever of the source and the last that entered comes
    /// last, and what was put in before is taken (invariant 3).
    #[test]
    fn the_end_is_told_and_loses_nothing() {
        check(|| {
            let outbox = Arc::new(Outbox::new());
            outbox.enter();
            let ender = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || outbox.end())
            };
            let last = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || {
                    outbox.put(1).unwrap();
                    outbox.left();
                })
            };
            let mut out = Vec::new();
            while outbox.take(&mut out, 1, FOR_EVER).is_some() {}
            assert_eq!(out, [1]);
            ender.join().unwrap();
            last.join().unwrap();
        });
    }
}
