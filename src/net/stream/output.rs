//! The output of a connection as all threads share it: the buffer under its lock, and what the handler is called for.
//!
//! # Invariants
//!
//! 1. Whoever changes the output in a way that the handler must see [calls](crate::net::calls) it: after that, and
//!    once the lock is free.
//! 2. After `close` nothing reaches the socket: the output has given it up, under its lock. The connection owns the
//!    descriptor, and closes it only behind that.

use super::filter::Filter;
use super::output_buffer::{End, OutputBuffer, OutputState, Unwritten, Wire};
use crate::net::calls::{CallWord, Calls};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, MutexGuard};
use core::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// The part of a connection that threads race for.
#[repr(C)]
pub(crate) struct SharedOutput<W> {
    pub(crate) calls: CallWord,
    /// Mirrors the output's `pressed`, for a look without the lock. It may be late: reading pauses a
    /// little later then.
    pressed: AtomicBool,
    buffer: Mutex<OutputBuffer<W>>,
}

impl<W: Wire> SharedOutput<W> {
    pub(crate) fn new(wire: W, blocked: bool) -> Self {
        Self {
            calls: CallWord::new(),
            pressed: AtomicBool::new(false),
            buffer: Mutex::new(OutputBuffer::new(wire, blocked)),
        }
    }

    /// The output, for a few steps that run no code of the user.
    #[inline(always)] // It is a few instructions, of which some go away with what follows.
    pub(crate) fn lock(&self) -> impl DerefMut<Target = OutputBuffer<W>> + '_ {
        Held(Some(self.locked()))
    }

    fn locked(&self) -> MutexGuard<'_, OutputBuffer<W>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f` on the output, as with [`lock`](Self::lock), which is for what happens seldom.
    #[inline(always)] // Of plain runs.
    fn with<R>(&self, f: impl FnOnce(&mut OutputBuffer<W>) -> R) -> R {
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
    pub(crate) fn change<R>(&self, f: impl FnOnce(&mut OutputBuffer<W>) -> R) -> (R, bool) {
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
    pub(crate) fn gather(&self, bytes: &[u8]) -> Result<bool, Unwritten> {
        let (written, pressed) = self.change(|output| output.gather(bytes));
        written.map(|()| pressed)
    }

    /// By any other thread: what was not sent at once, whether it presses, and whether the
    /// connection is to be poked since it has something to look after.
    pub(crate) fn write(
        &self,
        token: Option<u64>,
        write: impl FnOnce(&mut OutputBuffer<W>) -> Result<(), Unwritten>,
    ) -> Result<Written, Unwritten> {
        let (written, pressed) = self.change(|output| {
            let before = output.queued();
            write(output)?;
            if let Some(token) = token {
                output.track(token);
            }
            // A stall must be watched from its start, a tracked write be reported, a failure be seen.
            let state = output.state();
            let calls = state.tracked || state.broken.is_some() || before == 0 && state.queued > 0;
            Ok((state.queued, calls))
        });
        let (queued, calls) = written?;
        let poke = calls && self.calls.call(Calls::OUTPUT);
        Ok(Written { queued, pressed, poke })
    }

    /// By the handler: sends what waits. `unblock`: the wire said that it has room.
    pub(crate) fn flush(&self, unblock: bool) -> OutputState {
        let flush = |output: &mut OutputBuffer<W>| {
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
    pub(crate) fn send_plainly(&self) -> bool {
        self.with(OutputBuffer::send_plainly)
    }

    /// Ends the output after what is queued. True: the caller pokes the slot.
    #[must_use]
    pub(crate) fn end(&self, end: End) -> bool {
        let (changed, _) = self.change(|output| output.end(end));
        changed && self.calls.call(Calls::OUTPUT)
    }

    /// By the handler, when it ends: from here on nothing reaches the wire, and no filter is called.
    pub(crate) fn close(&self) -> (Option<W>, Option<Box<dyn Filter>>) {
        self.change(OutputBuffer::close).0
    }
}

/// An output under its lock. What it has spent is dropped when the lock is free: that may call code of the
/// user, which may want the output.
struct Held<'a, W>(Option<MutexGuard<'a, OutputBuffer<W>>>);

impl<W> Deref for Held<'_, W> {
    type Target = OutputBuffer<W>;

    #[inline]
    fn deref(&self) -> &OutputBuffer<W> {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl<W> DerefMut for Held<'_, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut OutputBuffer<W> {
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
pub(crate) struct Written {
    pub(crate) queued: usize,
    pub(crate) pressed: bool,
    pub(crate) poke: bool,
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
    //! | the end of an output | the wire is finished again at each flush, or before the last byte | it comes twice, or is not the last |

    use super::*;
    use crate::net::stream::limits::Marks;
    use crate::sync::Condvar;
    use crate::sync::atomic::AtomicU32;
    use loom::thread;
    use std::io;
    use std::sync::Arc;

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
            let output = Arc::new(SharedOutput::new(Vector::with_room(8), false));
            let runnable = Arc::new(Runnable::default());
            let published = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let callers = [(0, Calls::NOTIFY), (1, Calls::DRAIN)].map(|(index, call)| {
                let (output, runnable) = (Arc::clone(&output), Arc::clone(&runnable));
                let published = Arc::clone(&published);
                thread::spawn(move || {
                    published[index].store(1, Relaxed);
                    if output.calls.call(call) {
                        runnable.poke();
                    }
                })
            });
            let mut missing = Calls::NOTIFY.0 | Calls::DRAIN.0;
            while missing != 0 {
                runnable.claim();
                let calls = output.calls.take();
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
            let output = Arc::new(SharedOutput::new(wire.clone(), false));
            let writer = {
                let output = Arc::clone(&output);
                thread::spawn(move || {
                    let write = |output: &mut OutputBuffer<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"xy")])
                    };
                    output.write(None, write).unwrap().queued
                })
            };
            output.gather(b"a").unwrap();
            output.flush(false);
            output.gather(b"b").unwrap();
            let state = output.flush(false);
            let queued = writer.join().unwrap();
            assert!(state.queued + queued > 0, "the wire had room for one byte");
            wire.make_room();
            assert_eq!(output.flush(true).queued, 0);
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
            let output = Arc::new(SharedOutput::new(wire.clone(), false));
            let writer = {
                let output = Arc::clone(&output);
                thread::spawn(move || {
                    let write = |output: &mut OutputBuffer<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"x")])
                    };
                    output.write(None, write).is_ok()
                })
            };
            drop(output.close());
            let at_close = wire.bytes();
            let written = writer.join().unwrap();
            assert_eq!(wire.bytes(), at_close);
            assert_eq!(at_close, if written { &b"x"[..] } else { b"" });
        });
    }

    /// Goal: the wire is finished once, after all that was accepted. Method: the handler closes while
    /// another thread writes.
    #[test]
    fn the_end_comes_once_and_last() {
        check(|| {
            let wire = Vector::with_room(8);
            let output = Arc::new(SharedOutput::new(wire.clone(), false));
            let writer = {
                let output = Arc::clone(&output);
                thread::spawn(move || {
                    let write = |output: &mut OutputBuffer<Vector>| {
                        output.write_through(&[io::IoSlice::new(b"x")])
                    };
                    output.write(None, write).is_ok()
                })
            };
            output.gather(b"a").unwrap();
            let _poke = output.end(End::Close);
            assert!(output.flush(false).finished);
            let written = writer.join().unwrap();
            let mut bytes = wire.bytes();
            assert_eq!(bytes.pop(), Some(b'.'));
            // Which of both came first is for nobody to say.
            bytes.sort_unstable();
            assert_eq!(bytes, if written { &b"ax"[..] } else { b"a" });
        });
    }
}
