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
//!   take:  something there? take it ─► done
//!          nothing there?   asleep += 1, wait, asleep -= 1, called -= 1, look again
//! ```
//!
//! # Invariants
//!
//! 1. While somebody is asleep who has not been called, there are no more items than calls: for each
//!    somebody is on the way who has not looked yet. Who falls asleep has seen none; *put* adds one of
//!    both, unless all who sleep have been called; who comes back takes one call along, and at least one
//!    item if there is one. So *take* may leave something behind without a call. Calls are anonymous:
//!    who comes back for another reason, since its time is over, say, looks in the place of the called.
//! 2. The descriptor, once somebody has asked for it, is readable if and only if something is in the
//!    queue or all is over. It is raised and lowered under the lock. After `take_some` it may stay readable beside an empty
//!    queue, until `settle`: who puts some back at once spares two system calls.
//! 3. It is over when the source has ended and nothing that `entered` is left. What is in the queue
//!    then is still taken out.
//!
//! All of it is ordered by the lock.

use super::pollable::Line;
use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::sys::eventfd::EventFd;
use core::marker::PhantomData;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Where the items lie, and in which order they are taken.
pub(crate) trait Store<T>: Default {
    fn len(&self) -> usize;
    fn push(&mut self, item: T);
    /// Appends the next `count` to `out`. There are as many.
    fn take(&mut self, count: usize, out: &mut Vec<T>);

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// In the order in which they were put in.
impl<T> Store<T> for VecDeque<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn take(&mut self, count: usize, out: &mut Vec<T>) {
        out.extend(self.drain(..count));
    }
}

/// See the head of the file.
pub(crate) struct Outbox<T, S = VecDeque<T>> {
    state: Mutex<State<S>>,
    arrived: Condvar,
    bell: OnceLock<EventFd>,
    /// The completion queue that brings what is here: raised when the descriptor is or soon afterwards, and never
    /// lowered.
    listener: OnceLock<Arc<dyn Line>>,
    item: PhantomData<fn(T) -> T>,
}

struct State<S> {
    items: S,
    asleep: usize,
    called: usize,
    /// What may still put something in.
    live: usize,
    /// Nothing new will enter.
    ended: bool,
    /// Nobody takes anything out any more.
    closed: bool,
    /// The descriptor is readable.
    rung: bool,
}

impl<S> State<S> {
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

impl<T, S: Store<T>> Outbox<T, S> {
    pub(crate) fn new() -> Self {
        let state = State {
            items: S::default(),
            asleep: 0,
            called: 0,
            live: 0,
            ended: false,
            closed: false,
            rung: false,
        };
        let (state, arrived) = (Mutex::new(state), Condvar::new());
        let (bell, listener) = (OnceLock::new(), OnceLock::new());
        Self { state, arrived, bell, listener, item: PhantomData }
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts one in. Err: nobody takes it any more.
    pub(crate) fn put(&self, item: T) -> core::result::Result<(), T> {
        self.put_if(|_| true, item, |item| item)
    }

    /// Puts in what `make` makes of `given`, if `may` allows it by what is there. Err: it does not, or
    /// nobody takes it any more.
    pub(crate) fn put_if<G>(
        &self,
        may: impl FnOnce(&S) -> bool,
        given: G,
        make: impl FnOnce(G) -> T,
    ) -> core::result::Result<(), G> {
        let mut state = self.lock();
        if state.closed || !may(&state.items) {
            return Err(given);
        }
        let first = state.items.is_empty();
        state.items.push(make(given));
        if first {
            self.ring(&mut state);
        }
        let calls = state.call();
        drop(state);
        if calls {
            self.arrived.notify_one();
        }
        if first {
            // Not under the lock, which who is called wants at once.
            self.tell_listener();
        }
        Ok(())
    }

    /// Appends up to `most`, at least 1, to `out`, and waits for the first up to `time`; says how many.
    /// None: it is over, and nothing is left.
    pub(crate) fn take(&self, out: &mut Vec<T>, most: usize, time: Duration) -> Option<usize> {
        self.take_then(out, most, time, Self::settle_under)
    }

    /// As [`take`](Self::take), and leaves the descriptor to [`settle`](Self::settle).
    pub(crate) fn take_some(&self, out: &mut Vec<T>, most: usize, time: Duration) -> Option<usize> {
        self.take_then(out, most, time, |_, _| ())
    }

    /// The descriptor is made unreadable if nothing is there.
    pub(crate) fn settle(&self) {
        if self.bell.get().is_some() {
            self.settle_under(&mut self.lock());
        }
    }

    fn settle_under(&self, state: &mut State<S>) {
        if state.items.is_empty()
            && !state.is_over()
            && let Some(bell) = self.bell.get()
            && core::mem::take(&mut state.rung)
        {
            bell.clear();
        }
    }

    fn take_then(
        &self,
        out: &mut Vec<T>,
        most: usize,
        time: Duration,
        then: impl FnOnce(&Self, &mut State<S>),
    ) -> Option<usize> {
        debug_assert!(most > 0, "who takes nothing must not take a call along (invariant 1)");
        let mut too_late = time.is_zero();
        // A time that no clock reaches is for ever.
        let until = if too_late { None } else { Instant::now().checked_add(time) };
        let mut state = self.lock();
        loop {
            let count = most.min(state.items.len());
            if count > 0 {
                state.items.take(count, out);
                then(self, &mut state);
                return Some(count);
            }
            if state.is_over() {
                return None;
            }
            if too_late {
                return Some(0);
            }
            state.asleep += 1;
            (state, too_late) = self.sleep(state, until);
            state.asleep -= 1;
            // Its own call, or another's that it looks in the place of (invariant 1).
            state.called = state.called.saturating_sub(1);
        }
    }

    /// Changes what is there; it does not become more, so there are calls enough.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state.items);
        self.settle_under(&mut state);
        result
    }

    /// True: the time is over.
    fn sleep<'a>(
        &'a self,
        state: MutexGuard<'a, State<S>>,
        until: Option<Instant>,
    ) -> (MutexGuard<'a, State<S>>, bool) {
        let Some(until) = until else {
            let woken = self.arrived.wait(state);
            return (woken.unwrap_or_else(|poisoned| poisoned.into_inner()), false);
        };
        #[cfg(loom)]
        {
            // loom has no time: it is over as soon as others have had their turn.
            let _ = until;
            drop(state);
            (self.lock(), true)
        }
        #[cfg(not(loom))]
        {
            let left = until.saturating_duration_since(Instant::now());
            let woken = self.arrived.wait_timeout(state, left);
            let (state, ended) = woken.unwrap_or_else(|poisoned| poisoned.into_inner());
            (state, ended.timed_out())
        }
    }

    /// Something comes that may put items in until it has left.
    pub(crate) fn enter(&self) {
        self.lock().live += 1;
    }

    /// It puts nothing in any more.
    pub(crate) fn left(&self) {
        let mut state = self.lock();
        state.live -= 1;
        self.tell_if_over(state);
    }

    /// Nothing new enters.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.tell_if_over(state);
    }

    /// Refuses what is put in from now on; gives back what nobody took.
    pub(crate) fn close(&self) -> S {
        let mut state = self.lock();
        state.closed = true;
        let left = core::mem::take(&mut state.items);
        self.tell_if_over(state);
        left
    }

    /// Whether nothing lies here.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Whether nothing comes any more, be something left or not.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    fn tell_if_over(&self, mut state: MutexGuard<'_, State<S>>) {
        if state.is_over() {
            self.raise(&mut state);
            drop(state);
            self.arrived.notify_all();
        }
    }

    /// A descriptor that is readable while there is something to take, or all is over.
    pub(crate) fn pollable(&self) -> Result<BorrowedFd<'_>> {
        if self.bell.get().is_none() {
            let made = EventFd::new().map_err(|error| Error::os("make an eventfd", error))?;
            let mut state = self.lock();
            // Of two that come at once, one has made its own for nothing.
            if self.bell.set(made).is_ok() && (!state.items.is_empty() || state.is_over()) {
                self.raise(&mut state);
            }
        }
        Ok(self.bell.get().expect("set above or by another").as_fd())
    }

    /// From now on `line` is raised when something is put in where nothing is, and when all is over. False: another
    /// listens already.
    pub(crate) fn listen(&self, line: Arc<dyn Line>) -> bool {
        let mut state = self.lock();
        let first = self.listener.set(line).is_ok();
        if first && (!state.items.is_empty() || state.is_over()) {
            self.raise(&mut state);
        }
        first
    }

    fn raise(&self, state: &mut State<S>) {
        self.ring(state);
        self.tell_listener();
    }

    fn ring(&self, state: &mut State<S>) {
        if let Some(bell) = self.bell.get()
            && !core::mem::replace(&mut state.rung, true)
        {
            bell.signal();
        }
    }

    fn tell_listener(&self) {
        if let Some(listener) = self.listener.get() {
            listener.raise();
        }
    }
}

/// The descriptor stays out of this: it is raised and lowered under the lock, beside the queue.
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a host's batch: put against sleep | nobody is called; who comes back, or is too late, leaves the call standing | deadlock |
    //! |  | the end is told to one only; it comes before the last has left, or before the rest was taken | deadlock; an item is lost |

    use super::*;
    use loom::thread;

    const FOR_EVER: Duration = Duration::MAX;
    /// Over as soon as others have had their turn.
    const SHORT: Duration = Duration::from_secs(1);

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn taker(
        outbox: &Arc<Outbox<u32>>,
        times: &'static [Duration],
    ) -> thread::JoinHandle<Vec<u32>> {
        let outbox = Arc::clone(outbox);
        thread::spawn(move || {
            let mut out = Vec::new();
            for time in times {
                outbox.take(&mut out, 1, *time);
            }
            out
        })
    }

    fn all_of(takers: impl IntoIterator<Item = thread::JoinHandle<Vec<u32>>>) -> Vec<u32> {
        takers.into_iter().flat_map(|each| each.join().unwrap()).collect()
    }

    /// Goal: of two that sleep, or are about to, each gets one of two items (invariant 1). Method: a
    /// call that is missed leaves one asleep for ever, which loom reports as a deadlock.
    #[test]
    fn no_item_lies_beside_a_sleeper() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
            let takers = [taker(&outbox, &[FOR_EVER]), taker(&outbox, &[FOR_EVER])];
            outbox.put(1).unwrap();
            outbox.put(2).unwrap();
            let mut got = all_of(takers);
            got.sort_unstable();
            assert_eq!(got, [1, 2]);
        });
    }

    /// Goal: who was called once is called again. Method: as above.
    #[test]
    fn a_call_is_used_up() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
            let taker = taker(&outbox, &[FOR_EVER, FOR_EVER]);
            outbox.put(1).unwrap();
            outbox.put(2).unwrap();
            assert_eq!(taker.join().unwrap(), [1, 2]);
        });
    }

    /// Goal: who was called when its time was over anyway uses the call up, too; with nothing more to
    /// come it leaves what it did not take. Method: as above.
    #[test]
    fn a_call_is_used_up_by_who_is_too_late() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
            let taker = taker(&outbox, &[SHORT, FOR_EVER]);
            outbox.put(1).unwrap();
            outbox.put(2).unwrap();
            let mut got = taker.join().unwrap();
            while outbox.take(&mut got, 1, Duration::ZERO) != Some(0) {}
            assert_eq!(got, [1, 2]);
        });
    }

    /// Goal: who comes back since its time is over, and takes what another was called for, lets nothing
    /// lie beside that one (invariant 1). Method: as above.
    #[test]
    fn who_is_too_late_looks_in_the_place_of_the_called() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
            let takers = [taker(&outbox, &[SHORT]), taker(&outbox, &[FOR_EVER])];
            outbox.put(1).unwrap();
            outbox.put(2).unwrap();
            let mut got = all_of(takers);
            while outbox.take(&mut got, 1, Duration::ZERO) != Some(0) {}
            got.sort_unstable();
            assert_eq!(got, [1, 2]);
        });
    }

    /// Goal: all that sleep are told of a close.
    #[test]
    fn a_close_wakes_everybody() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
            let takers = [taker(&outbox, &[FOR_EVER]), taker(&outbox, &[FOR_EVER])];
            outbox.close();
            assert_eq!(outbox.put(1), Err(1));
            assert!(all_of(takers).is_empty());
        });
    }

    /// Goal: who sleeps is told of the end, whoever of the source and the last that entered comes
    /// last, and what was put in before is taken (invariant 3).
    #[test]
    fn the_end_is_told_and_loses_nothing() {
        check(|| {
            let outbox = Arc::new(Outbox::<u32>::new());
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
