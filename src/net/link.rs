//! What a connection shares with other threads: its output, and what they call it for.
//!
//! # The problem
//!
//! Other threads write, close, resume and abort a connection whose handler may be running, resting,
//! or gone. Nothing that they ask for may be missed, and nobody may wait for the handler.
//!
//! # The word
//!
//! `calls` is a set of bits. A caller sets its bit and, if the word was empty, *pokes*: it makes the
//! connection's slot runnable. The connection takes all bits at the start of each run.
//!
//! ```text
//!   caller:  publish (under the output's lock) ─► calls |= bit ─► was 0: poke the slot
//!   run:     claim the slot ─► bits = calls.swap(0) ─► look at what they stand for
//! ```
//!
//! # Invariants
//!
//! 1. A bit that is set has a run after it. Whoever found the word empty pokes; whoever did not comes
//!    before the swap of the run that the first one's poke, still to come or done, brings about.
//! 2. A poke of a running slot is kept by the slot word (invariant 4 of the pool's slots), so a bit
//!    that is set after the swap brings another run.
//! 3. After `close` nothing reaches the socket: the output has given it up, under its lock. The connection
//!    owns the descriptor, and closes it only behind that.
//!
//! # Orderings
//!
//! The caller's `fetch_or` is a Release that pairs with the Acquire of `take`: a run that sees
//! the bit sees what was published before it.

use super::address::Address;
use super::books::Origin;
use super::conn::ConnId;
use super::filter::Filter;
use super::output::{End, Output, State, Unwritten, Wire};
use super::server::Service;
use super::socket::SendEnd;
use crate::error::Error;
use crate::pool::{Key, Shared, Timer};
use crate::source::Ready;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use crate::sync::{Mutex, MutexGuard, store_load_barrier};
use crate::sys::fork::ForkGuard;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use socket2::Socket;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// What a connection is called for: bits of one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Calls(pub(crate) u32);

impl Calls {
    pub(super) const NONE: Calls = Calls(0);
    /// Its output was changed by another thread in a way that the handler must see.
    pub(super) const OUTPUT: Calls = Calls(1);
    /// Its alarm has gone off.
    pub(super) const ALARM: Calls = Calls(1 << 1);
    /// Reading goes on.
    pub(super) const RESUME: Calls = Calls(1 << 2);
    /// The server drains; or a request has ended while it does.
    pub(super) const DRAIN: Calls = Calls(1 << 3);
    /// Close at once.
    pub(super) const ABORT: Calls = Calls(1 << 4);
    /// Close at once: the drain's time is over.
    pub(super) const CUT: Calls = Calls(1 << 5);
    /// Its handler is to be told that something has happened elsewhere.
    pub(crate) const NOTIFY: Calls = Calls(1 << 6);

    pub(super) fn has(self, other: Calls) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// See *The word* above.
pub(super) struct CallWord(AtomicU32);

impl CallWord {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for a run. True: the caller pokes the slot.
    #[must_use]
    pub(super) fn call(&self, call: Calls) -> bool {
        // Release: pairs with the Acquire in `take`.
        self.0.fetch_or(call.0, Release) == 0
    }

    pub(super) fn is_called(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// By a run: all that it is called for.
    #[inline]
    pub(super) fn take(&self) -> Calls {
        if self.0.load(Relaxed) == 0 {
            // A bit that comes now finds the word empty, and its poke is still to come.
            return Calls(0);
        }
        // Acquire: pairs with the Release in `call`.
        Calls(self.0.swap(0, Acquire))
    }
}

/// How a pulled connection stands to its host; others are always IDLE. See [`super::pulled`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Hosted {
    /// It has nothing to do with it.
    Idle,
    /// An event is out, or bytes are about to be put back.
    Out,
    /// The same, and nothing is to be read before that has changed.
    Full,
}

/// The part of a link that threads race for.
#[repr(C)]
pub(crate) struct Outlet<W> {
    pub(super) calls: CallWord,
    /// Mirrors the output's `pressed`, for a look without the lock. It may be late: reading pauses a
    /// little later then.
    pressed: AtomicBool,
    output: Mutex<Output<W>>,
}

impl<W: Wire> Outlet<W> {
    pub(super) fn new(wire: W, blocked: bool) -> Self {
        Self {
            calls: CallWord::new(),
            pressed: AtomicBool::new(false),
            output: Mutex::new(Output::new(wire, blocked)),
        }
    }

    /// The output, for a few steps that run no code of the user.
    #[inline(always)] // It is a few instructions, of which some go away with what follows.
    pub(crate) fn lock(&self) -> impl DerefMut<Target = Output<W>> + '_ {
        Held(Some(self.locked()))
    }

    fn locked(&self) -> MutexGuard<'_, Output<W>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f` on the output, as with [`lock`](Self::lock), which is for what happens seldom.
    #[inline(always)] // Of plain runs.
    fn with<R>(&self, f: impl FnOnce(&mut Output<W>) -> R) -> R {
        let mut output = self.locked();
        let result = f(&mut output);
        if output.has_rare() {
            // Its end tidies up.
            drop(Held(Some(output)));
        }
        result
    }

    /// The same. Afterwards everybody can see whether it presses.
    #[inline]
    pub(crate) fn change<R>(&self, f: impl FnOnce(&mut Output<W>) -> R) -> (R, bool) {
        self.with(|output| {
            let result = f(output);
            let pressed = output.is_pressed();
            if pressed != self.pressed.load(Relaxed) {
                self.pressed.store(pressed, Relaxed);
            }
            (result, pressed)
        })
    }

    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Relaxed)
    }

    /// By the handler, which flushes before it rests. Answers whether the output presses.
    #[inline]
    pub(super) fn gather(&self, bytes: &[u8]) -> Result<bool, Unwritten> {
        let (written, pressed) = self.change(|output| output.gather(bytes));
        written.map(|()| pressed)
    }

    /// By any other thread: what was not sent at once, whether it presses, and whether the
    /// connection is to be poked since it has something to look after.
    pub(super) fn write(
        &self,
        token: Option<u64>,
        write: impl FnOnce(&mut Output<W>) -> Result<(), Unwritten>,
    ) -> Result<Written, Unwritten> {
        let (written, pressed) = self.change(|output| {
            let before = output.queued();
            write(output)?;
            if let Some(token) = token {
                output.track(token);
            }
            // A stall must be watched from its start, a tracked end be told, a failure be seen.
            let state = output.state();
            let calls = state.tracked || state.broken.is_some() || before == 0 && state.queued > 0;
            Ok((state.queued, calls))
        });
        let (queued, calls) = written?;
        let poke = calls && self.calls.call(Calls::OUTPUT);
        Ok(Written { queued, pressed, poke })
    }

    /// By the handler: sends what waits. `unblock`: the wire said that it has room.
    pub(super) fn flush(&self, unblock: bool) -> State {
        let flush = |output: &mut Output<W>| {
            if unblock {
                output.unblock();
            }
            output.flush();
            let state = output.state();
            output.forget_fall();
            state
        };
        self.change(flush).0
    }

    /// By the handler: sends what waits, if that and all about it is as usual. False: [`flush`](Self::flush)
    /// is to be called.
    #[inline]
    pub(super) fn send_plainly(&self) -> bool {
        self.with(Output::send_plainly)
    }

    /// Ends the output after what is queued. True: the caller pokes the slot.
    #[must_use]
    pub(super) fn end(&self, end: End) -> bool {
        let (changed, _) = self.change(|output| output.end(end));
        changed && self.calls.call(Calls::OUTPUT)
    }

    /// By the handler, when it ends: from here on nothing reaches the wire, and no filter is called.
    pub(super) fn close(&self) -> (Option<W>, Option<Box<dyn Filter>>) {
        self.change(Output::close).0
    }
}

/// An output under its lock. What it has spent is dropped when the lock is free: that may call code of the
/// user, which may want the output.
struct Held<'a, W>(Option<MutexGuard<'a, Output<W>>>);

impl<W> Deref for Held<'_, W> {
    type Target = Output<W>;

    #[inline]
    fn deref(&self) -> &Output<W> {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl<W> DerefMut for Held<'_, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Output<W> {
        self.0.as_mut().expect("held until it is dropped")
    }
}

impl<W> Held<'_, W> {
    #[cold]
    fn tidy_up(&mut self) {
        let spent = self.take_spent();
        self.0 = None;
        drop(spent);
    }
}

impl<W> Drop for Held<'_, W> {
    #[inline]
    fn drop(&mut self) {
        if self.has_rare() {
            self.tidy_up();
        }
    }
}

/// What became of a write by another thread.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Written {
    pub(super) queued: usize,
    pub(super) pressed: bool,
    pub(super) poke: bool,
}

/// A pool in which something of ours lives, and which that does not keep alive.
pub(super) struct Home {
    shared: Weak<Shared>,
    fork: ForkGuard,
}

impl Home {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), fork: shared.fork_guard() }
    }

    /// Makes a slot runnable; a running one runs again.
    fn poke(&self, key: Option<Key>) {
        // Readiness is a hint, so a wrong one does no harm: the run finds out.
        self.activate(key, |slot, generation| slot.ready(generation, Ready::WRITABLE));
    }

    fn activate(&self, key: Option<Key>, change: impl FnOnce(&crate::pool::Slot, u32) -> bool) {
        if self.is_forked() {
            return;
        }
        let (Some(shared), Some(key)) = (self.shared.upgrade(), key) else { return };
        if change(shared.ready.handles.slots.slot(key.index), key.generation) {
            shared.push_activation(key.index);
        }
    }

    /// Cancels a timer there.
    pub(super) fn cancel(&self, timer: Key) {
        if !self.is_forked()
            && let Some(shared) = self.shared.upgrade()
        {
            Timer::cancel_key(&shared, timer);
        }
    }

    /// Whether this is a child of the process that built the pool. Then no lock may be taken: whoever
    /// held it in the parent holds it here for ever.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.fork.is_child()
    }
}

/// Where one of few things of ours lives.
pub(super) struct Place {
    home: Home,
    key: OnceLock<Key>,
}

impl Place {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { home: Home::new(shared), key: OnceLock::new() }
    }

    pub(super) fn set(&self, key: Key) {
        self.key.get_or_init(|| key);
    }

    pub(super) fn key(&self) -> Option<Key> {
        self.key.get().copied()
    }

    /// Makes the slot runnable; a running one runs again.
    pub(super) fn poke(&self) {
        self.home.poke(self.key());
    }

    /// Ends a pause, and makes the slot runnable.
    pub(super) fn resume(&self) {
        let resume = |slot: &crate::pool::Slot, generation| slot.resume(generation) == Some(true);
        self.home.activate(self.key(), resume);
        self.poke();
    }

    /// See [`Home::is_forked`].
    pub(super) fn is_forked(&self) -> bool {
        self.home.is_forked()
    }

    /// As [`Shared::end_here`], for what lives here.
    pub(super) fn end_here(&self) {
        if let (Some(shared), Some(key)) = (self.home.shared.upgrade(), self.key()) {
            shared.end_here(key);
        }
    }

    /// As [`Shared::wait_outside`], for what lives here.
    pub(super) fn wait_outside(&self, ended: impl FnMut(Duration) -> bool) {
        if let Some(shared) = self.home.shared.upgrade() {
            shared.wait_outside(|| self.key(), ended);
        }
    }
}

/// Whether a connection is read from: it is, it is not, or it is again since [`Link::resume`].
const FLOWING: u8 = 0;
const PAUSED: u8 = 1;
const RESUMED: u8 = 2;

/// A connection as everybody but its handler knows it. What each run looks at comes first.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) outlet: Outlet<SendEnd>,
    pub(crate) service: Arc<Service>,
    pub(crate) origin: Arc<Origin>,
    /// Requests admitted and not ended.
    in_work: AtomicU32,
    /// [`FLOWING`], [`PAUSED`] or [`RESUMED`].
    paused: AtomicU8,
    /// A [`Hosted`].
    hosted: AtomicU8,
    pub(super) is_outgoing: bool,
    /// The peer has finished, and the connection is closed when nothing is in work.
    finishing: AtomicBool,
    key: OnceLock<Key>,
    pub(crate) peer: Address,
}

// With the counts of its references, what malloc(3) gives in 192 bytes.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Link>() <= 168);

impl Link {
    pub(super) fn new(
        service: &Arc<Service>,
        origin: &Arc<Origin>,
        socket: &Socket,
        peer: Address,
        is_outgoing: bool,
    ) -> Self {
        Self {
            outlet: Outlet::new(SendEnd::of(socket, origin), is_outgoing),
            service: Arc::clone(service),
            origin: Arc::clone(origin),
            in_work: AtomicU32::new(0),
            paused: AtomicU8::new(FLOWING),
            hosted: AtomicU8::new(Hosted::Idle as u8),
            is_outgoing,
            finishing: AtomicBool::new(false),
            key: OnceLock::new(),
            peer,
        }
    }

    /// Before anybody else can know it.
    pub(super) fn let_to(&self, key: Key) {
        self.key.get_or_init(|| key);
    }

    pub(super) fn key(&self) -> Option<Key> {
        self.key.get().copied()
    }

    pub(super) fn id(&self) -> ConnId {
        ConnId::new(self.key().map_or(u64::MAX, Key::token))
    }

    /// Makes its slot runnable; a running one runs again.
    pub(super) fn poke(&self) {
        self.service.home.poke(self.key());
    }

    /// See [`Home::is_forked`].
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.service.home.is_forked()
    }

    /// Asks for a run.
    pub(crate) fn call(&self, call: Calls) {
        if self.outlet.calls.call(call) {
            self.poke();
        }
    }

    /// The outlet, for users, who may be in a forked child.
    #[inline]
    pub(super) fn reach(&self) -> Result<&Outlet<SendEnd>, Error> {
        if self.is_forked() { Err(Error::Forked) } else { Ok(&self.outlet) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.reach().is_ok_and(|outlet| outlet.lock().wire().is_some())
    }

    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        // Relaxed: a resume is followed by a call, whose Release and Acquire order it.
        self.paused.load(Relaxed) == PAUSED
    }

    pub(super) fn pause(&self) {
        self.paused.store(PAUSED, Relaxed);
    }

    /// By the handler, which sees to it itself that what was not consumed is shown again.
    #[cfg(feature = "http")]
    pub(crate) fn unpause(&self) {
        self.paused.store(FLOWING, Relaxed);
    }

    /// By the handler, before code that may have the connection resumed before it is paused.
    #[cfg(feature = "http")]
    pub(crate) fn await_resume(&self) {
        // It fails if there is no resume to forget. Acquire: pairs with the Release in `resume`, so
        // that the code which comes next sees what went before the one that is forgotten.
        let _ = self.paused.compare_exchange(RESUMED, FLOWING, Acquire, Relaxed);
    }

    /// By the handler, behind it.
    #[cfg(feature = "http")]
    pub(crate) fn pause_unless_resumed(&self) {
        if self.paused.compare_exchange(FLOWING, PAUSED, Relaxed, Relaxed) == Err(RESUMED) {
            self.call(Calls::RESUME);
        }
    }

    pub(super) fn resume(&self) {
        // Release: pairs with the Acquire in `await_resume`.
        if self.paused.swap(RESUMED, Release) == PAUSED {
            self.call(Calls::RESUME);
        }
    }

    pub(super) fn in_work(&self) -> u32 {
        // Acquire: pairs with the Release half in `end_work`: what the request wrote is queued.
        self.in_work.load(Acquire)
    }

    pub(crate) fn begin_work(&self) {
        self.in_work.fetch_add(1, Relaxed);
    }

    pub(crate) fn end_work(&self) {
        self.in_work.fetch_sub(1, AcqRel);
        self.call_if_ending();
    }

    /// Something has ended that a drain waits for, or the end of a connection whose peer has finished.
    pub(super) fn call_if_ending(&self) {
        // Against *drain, or finish, then look at what is in work*: one of both sees the other.
        store_load_barrier();
        if self.service.is_draining() {
            self.call(Calls::DRAIN);
        } else if self.finishing.load(Relaxed) {
            self.call(Calls::OUTPUT);
        }
    }

    /// By the handler: the peer has finished. It looks at what is in work afterwards.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Relaxed);
        // Against *end a request, then look whether it finishes*.
        store_load_barrier();
    }

    #[inline]
    pub(super) fn is_hosted(&self) -> bool {
        self.hosted() != Hosted::Idle
    }

    /// Whether nothing is to be read for now.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.is_paused() || self.hosted() == Hosted::Full
    }

    #[inline]
    fn hosted(&self) -> Hosted {
        // Acquire: pairs with the Release in `set_hosted`: IDLE comes after what the host has written.
        match self.hosted.load(Acquire) {
            0 => Hosted::Idle,
            1 => Hosted::Out,
            _ => Hosted::Full,
        }
    }

    /// Under the lock of the connection's ledger. Answers with what it was, and what it is.
    pub(super) fn set_hosted(&self, now: Hosted) -> (Hosted, Hosted) {
        let before = self.hosted();
        if before != now {
            // Release: pairs with the Acquire in `hosted`.
            self.hosted.store(now as u8, Release);
        }
        (before, now)
    }
}

/// One model per race. The wire is a vector with so much room; the slot is a flag with a condition
/// variable, which keeps a poke of a running slot as the slot word does (its own models show that).
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | calls of a connection | the call's bit set Relaxed | a run does not see what it was called for |
    //! | a full wire | what a send took of a write is queued once more | a byte leaves twice |
    //! | close against a write | a closed output still accepts | a write is accepted and goes nowhere |
    //! | the end of an output | the end is told again at each flush, or before the last byte | it comes twice, or is not the last |

    use super::*;
    use crate::net::limits::Marks;
    use crate::sync::{Condvar, Mutex};
    use loom::thread;
    use std::io;

    static MARKS: Marks = Marks { low: 1, high: 2, max: 8 };

    #[derive(Clone)]
    struct Vector(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Vector {
        fn with_room(room: usize) -> Self {
            Self(Arc::new(Mutex::new((Vec::new(), room))))
        }

        fn bytes(&self) -> Vec<u8> {
            self.0.lock().unwrap().0.clone()
        }

        fn make_room(&self) {
            self.0.lock().unwrap().1 = usize::MAX;
        }
    }

    impl Wire for Vector {
        fn send(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
            let mut inner = self.0.lock().unwrap();
            let (taken, room) = &mut *inner;
            if *room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            let count = all.len().min(*room);
            taken.extend(&all[..count]);
            *room -= count;
            Ok(count)
        }

        fn finish(&self) {
            self.0.lock().unwrap().0.push(b'.');
        }

        fn marks(&self) -> &Marks {
            &MARKS
        }
    }

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    #[derive(Default)]
    struct Runnable(Mutex<bool>, Condvar);

    impl Runnable {
        fn poke(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        fn claim(&self) {
            let mut runnable = self.0.lock().unwrap();
            while !core::mem::take(&mut *runnable) {
                runnable = self.1.wait(runnable).unwrap();
            }
        }
    }

    /// Goal: no call is missed (invariants 1 and 2), and whoever sees a bit sees what was published
    /// before it. Method: two callers, one of whom may rely on the other's poke; a call that is
    /// missed leaves the run waiting for ever. All bits are alike: two stand for any.
    #[test]
    fn every_call_has_a_run_that_sees_what_it_is_about() {
        check(|| {
            let outlet = Arc::new(Outlet::new(Vector::with_room(8), false));
            let runnable = Arc::new(Runnable::default());
            let published = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let callers = [(0, Calls::NOTIFY), (1, Calls::DRAIN)].map(|(index, call)| {
                let (outlet, runnable) = (Arc::clone(&outlet), Arc::clone(&runnable));
                let published = Arc::clone(&published);
                thread::spawn(move || {
                    published[index].store(1, Relaxed);
                    if outlet.calls.call(call) {
                        runnable.poke();
                    }
                })
            });
            let mut missing = Calls::NOTIFY.0 | Calls::DRAIN.0;
            while missing != 0 {
                runnable.claim();
                let calls = outlet.calls.take();
                for (index, call) in [(0, Calls::NOTIFY), (1, Calls::DRAIN)] {
                    assert!(!calls.has(call) || published[index].load(Relaxed) == 1);
                }
                missing &= !calls.0;
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    /// Goal: bytes of the handler and of another thread all leave, whole and once, though the wire is
    /// full at some time and its edge comes at any other. Method: room for one byte, until the edge.
    #[test]
    fn a_full_wire_loses_nothing_and_repeats_nothing() {
        check(|| {
            let wire = Vector::with_room(1);
            let outlet = Arc::new(Outlet::new(wire.clone(), false));
            let writer = {
                let outlet = Arc::clone(&outlet);
                thread::spawn(move || {
                    let write = |output: &mut Output<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"xy")])
                    };
                    outlet.write(None, write).unwrap().queued
                })
            };
            outlet.gather(b"a").unwrap();
            outlet.flush(false);
            outlet.gather(b"b").unwrap();
            let state = outlet.flush(false);
            let queued = writer.join().unwrap();
            assert!(state.queued + queued > 0, "the wire had room for one byte");
            wire.make_room();
            assert_eq!(outlet.flush(true).queued, 0);
            let bytes = wire.bytes();
            let place = |byte| bytes.iter().position(|other| *other == byte).unwrap();
            assert_eq!(bytes.len(), 4);
            assert_eq!(place(b'y'), place(b'x') + 1, "a write stays whole");
            assert!(place(b'a') < place(b'b'), "and in order");
        });
    }

    /// Goal: nothing reaches a wire that was given up, and a write that was refused left nothing
    /// (invariant 3). Method: close, and look at the wire before and after the writer's end.
    #[test]
    fn after_close_nothing_is_written() {
        check(|| {
            let wire = Vector::with_room(8);
            let outlet = Arc::new(Outlet::new(wire.clone(), false));
            let writer = {
                let outlet = Arc::clone(&outlet);
                thread::spawn(move || {
                    let write = |output: &mut Output<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"x")])
                    };
                    outlet.write(None, write).is_ok()
                })
            };
            drop(outlet.close());
            let at_close = wire.bytes();
            let written = writer.join().unwrap();
            assert_eq!(wire.bytes(), at_close);
            assert_eq!(at_close, if written { &b"x"[..] } else { b"" });
        });
    }

    /// Goal: the end is told once, after all that was accepted. Method: the handler closes while
    /// another thread writes.
    #[test]
    fn the_end_comes_once_and_last() {
        check(|| {
            let wire = Vector::with_room(8);
            let outlet = Arc::new(Outlet::new(wire.clone(), false));
            let writer = {
                let outlet = Arc::clone(&outlet);
                thread::spawn(move || {
                    let write = |output: &mut Output<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"x")])
                    };
                    outlet.write(None, write).is_ok()
                })
            };
            outlet.gather(b"a").unwrap();
            let _poke = outlet.end(End::Close);
            assert!(outlet.flush(false).finished);
            let written = writer.join().unwrap();
            let mut bytes = wire.bytes();
            assert_eq!(bytes.pop(), Some(b'.'));
            // Which of both came first is for nobody to say.
            bytes.sort_unstable();
            assert_eq!(bytes, if written { &b"ax"[..] } else { b"a" });
        });
    }
}
