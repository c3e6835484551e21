//! What a handler that rests is called for by other threads: a word of bits.
//!
//! ```text
//!   caller:  publish ─► calls |= bit ─► was 0: poke the slot
//!   run:     claim the slot ─► bits = calls.take() ─► look at what they stand for
//! ```
//!
//! A caller sets its bit and, if the word was empty, *pokes*: it makes the handler's slot runnable. The handler takes
//! all bits at the start of each run.
//!
//! # Pauses
//!
//! Whether a connection is paused is a bit of the same word, which calls for nothing and which a run leaves there. So one
//! change of the word decides about each race between a pause and a resume.
//!
//! ```text
//!              pause                    resume
//!   FLOWING ──────────────► PAUSED ──────────────► PAUSED, RESUME ──┐
//!      ▲                                                            │ the next run takes the calls
//!      └────────────────────────────────────────────────────────────┘
//! ```
//!
//! | who | what becomes of the word |
//! |---|---|
//! | a hook pauses | PAUSED is set, and a RESUME that has come since the run took its calls stays: it ends this pause |
//! | another thread pauses | PAUSED is set, and RESUME is taken back: of its calls the last one counts |
//! | anybody resumes | RESUME is set, as any call, whether or not there is a pause |
//! | a run takes its calls | with RESUME, PAUSED is cleared |
//! | bytes are about to be shown | a RESUME without PAUSED is taken back: it came before there was anything to resume |
//!
//! A pause is *asked* to end by a resume, and *ends* in a run, before anything is shown or read. So what a taker has left
//! is shown to it before more is read, however early the resume comes.
//!
//! # Invariants
//!
//! 1. A bit that is set has a run after it. Whoever found the word empty pokes; whoever did not comes before the
//!    `take` of the run that the first one's poke, still to come or done, brings about.
//! 2. A poke of a running slot is kept by the slot word (invariant 4 of the pool's slots), so a bit that is set after
//!    the change by `take` brings another run.
//! 3. PAUSED is cleared by a run only, between two hooks: nothing is read between a hook that pauses and the next `take`
//!    that finds a RESUME.
//! 4. A RESUME that comes after bytes were shown is there until a run takes it, unless another thread pauses after it.
//!
//! # Orderings
//!
//! The caller's `fetch_or` is a Release that pairs with the Acquire of `take`: a run that sees the bit sees what was
//! published before it. Every change is a read-modify-write, so a Release sequence is never broken. PAUSED publishes
//! nothing: a pause by another thread may be seen late, and then one more hook is given bytes.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// What a connection or a datagram socket is called for: bits of one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Calls(pub(crate) u32);

impl Calls {
    pub(crate) const NONE: Calls = Calls(0);
    /// Its output was changed by another thread in a way that the handler must see.
    pub(crate) const OUTPUT: Calls = Calls(1);
    /// Its alarm has gone off.
    pub(crate) const ALARM: Calls = Calls(1 << 1);
    /// Reading goes on.
    pub(crate) const RESUME: Calls = Calls(1 << 2);
    /// The server drains; or a request has ended while it does.
    pub(crate) const DRAIN: Calls = Calls(1 << 3);
    /// Close at once.
    pub(crate) const ABORT: Calls = Calls(1 << 4);
    /// Close at once: the drain's time is over.
    pub(crate) const CUT: Calls = Calls(1 << 5);
    /// Its `notified` hook is to be called.
    pub(crate) const NOTIFY: Calls = Calls(1 << 6);
    /// What its handler has left because the turn of the thread is over is to be shown again.
    pub(crate) const AGAIN: Calls = Calls(1 << 7);
    /// Nothing is read. It is no call.
    const PAUSED: Calls = Calls(1 << 8);

    pub(crate) fn has(self, other: Calls) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// See the head of the file.
pub(crate) struct CallWord(AtomicU32);

impl CallWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for a run. True: the caller pokes the slot.
    #[must_use]
    pub(crate) fn call(&self, call: Calls) -> bool {
        // Release: pairs with the Acquire in `take`.
        self.0.fetch_or(call.0, Release) & !Calls::PAUSED.0 == 0
    }

    pub(crate) fn is_called(&self) -> bool {
        self.0.load(Relaxed) & !Calls::PAUSED.0 != 0
    }

    /// By a run: all that it is called for. A pause that was resumed ends here.
    #[inline]
    pub(crate) fn take(&self) -> Calls {
        if !self.is_called() {
            // A bit that comes now finds no other, and its poke is still to come.
            return Calls(0);
        }
        // Acquire: pairs with the Release in `call`.
        let before = self.change(Acquire, |word| match Calls(word).has(Calls::RESUME) {
            true => 0,
            false => word & Calls::PAUSED.0,
        });
        Calls(before & !Calls::PAUSED.0)
    }

    fn change(&self, order: Ordering, to: impl Fn(u32) -> u32) -> u32 {
        let mut word = self.0.load(Relaxed);
        loop {
            match self.0.compare_exchange_weak(word, to(word), order, Relaxed) {
                Ok(before) => return before,
                Err(now) => word = now,
            }
        }
    }

    /// Whether nothing is to be read. A pause that was resumed lasts until a run takes that.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.0.load(Relaxed) & Calls::PAUSED.0 != 0
    }

    /// Whether no run that is called for ends the pause.
    pub(crate) fn stays_paused(&self) -> bool {
        self.0.load(Relaxed) & (Calls::PAUSED.0 | Calls::RESUME.0) == Calls::PAUSED.0
    }

    /// By a hook. A resume that has come since bytes were shown ends this pause.
    pub(crate) fn pause(&self) {
        if !self.is_paused() {
            self.0.fetch_or(Calls::PAUSED.0, Relaxed);
        }
    }

    /// By any thread, whose resume before it does not count any more.
    pub(crate) fn pause_from_outside(&self) {
        self.change(Relaxed, |word| word & !Calls::RESUME.0 | Calls::PAUSED.0);
    }

    /// By a hook, which sees to it itself that what was not consumed is shown again.
    #[cfg(feature = "http")]
    pub(crate) fn unpause(&self) {
        self.0.fetch_and(!Calls::PAUSED.0, Relaxed);
    }

    /// By a run, before it shows all that there is: a resume that came before does not end a pause that comes after.
    pub(crate) fn forget_resume(&self) {
        if self.is_called() {
            // Acquire: as in `take`; what was published before it is looked at now.
            self.change(Acquire, |word| match Calls(word).has(Calls::PAUSED) {
                true => word,
                false => word & !Calls::RESUME.0,
            });
        }
    }
}

/// The slot is a flag with a condition variable, which keeps a poke of a running slot as the slot word does (its own
/// models show that).
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a pause of a hook against a resume | the resume itself clears PAUSED | more is read on top of what was left |
    //! |  | the hook's pause takes RESUME back, or is not made if there is one | it rests for ever, or more is read |
    //! |  | a run that takes RESUME leaves PAUSED | it rests for ever |
    //! | a pause from outside against a run | it leaves RESUME | the run ends the pause that came after it |
    //! |  | PAUSED is stored by the run in a second step | the pause is overwritten |
    //! | a resume against bytes to be shown | it is forgotten though there is a pause | it rests for ever |

    use super::*;
    use crate::sync::{Condvar, Mutex};
    use loom::thread;
    use std::sync::Arc;

    fn check(bound: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound;
        builder.check(model);
    }

    #[derive(Default)]
    struct Flag(Mutex<u32>, Condvar);

    impl Flag {
        fn up(&self) {
            *self.0.lock().unwrap() += 1;
            self.1.notify_one();
        }

        fn take(&self) -> u32 {
            let mut count = self.0.lock().unwrap();
            while *count == 0 {
                count = self.1.wait(count).unwrap();
            }
            core::mem::take(&mut *count)
        }
    }

    struct World {
        calls: CallWord,
        runnable: Flag,
        handed_over: Flag,
    }

    impl World {
        fn new() -> Arc<Self> {
            let (runnable, handed_over) = Default::default();
            Arc::new(Self { calls: CallWord::new(), runnable, handed_over })
        }

        fn call(&self, call: Calls) {
            if self.calls.call(call) {
                self.runnable.up();
            }
        }
    }

    /// A read brings so many parts, of so many.
    const READ: u32 = 2;
    const PARTS: u32 = 4;

    /// What a driver does with what comes, and a hook that takes a part at a time.
    struct Reader<'a> {
        world: &'a World,
        pauses_first: bool,
        unread: u32,
        left: u32,
    }

    impl Reader<'_> {
        fn show(&mut self) {
            let Self { world, pauses_first, .. } = *self;
            world.calls.forget_resume();
            assert!(self.left <= READ, "more was read on top of what was left");
            if pauses_first {
                world.calls.pause();
            }
            self.left -= 1;
            world.handed_over.up();
            if !pauses_first {
                world.calls.pause();
            }
        }

        fn run(&mut self) {
            let mut again = self.world.calls.take().has(Calls::RESUME);
            while core::mem::take(&mut again) && self.left > 0 && !self.world.calls.is_paused() {
                self.show();
            }
            while self.unread > 0 && !self.world.calls.is_paused() {
                let read = self.unread.min(READ);
                (self.unread, self.left) = (self.unread - read, self.left + read);
                self.show();
            }
        }
    }

    /// Goal: a resume that comes when a part was handed over, whether before or after the hook's pause, is not lost, and
    /// nothing is read before the hook was shown what it has left. Method: a taker that resumes for each part; a resume
    /// that is lost leaves the run waiting for ever.
    fn what_is_left_is_shown_before_more_is_read(pauses_first: bool) {
        check(Some(3), move || {
            let world = World::new();
            world.runnable.up();
            let taker = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let mut taken = 0;
                    while taken < PARTS {
                        taken += world.handed_over.take();
                        world.call(Calls::RESUME);
                    }
                })
            };
            let mut reader = Reader { world: &world, pauses_first, unread: PARTS, left: 0 };
            while reader.unread + reader.left > 0 {
                world.runnable.take();
                reader.run();
            }
            taker.join().unwrap();
        });
    }

    #[test]
    fn a_resume_behind_the_pause_is_not_too_early() {
        what_is_left_is_shown_before_more_is_read(true);
    }

    #[test]
    fn a_resume_before_the_pause_is_not_lost() {
        what_is_left_is_shown_before_more_is_read(false);
    }

    /// Goal: of the calls of another thread the last one counts. Method: its resume and its pause, and the reverse,
    /// against runs that take the calls and show bytes.
    #[test]
    fn of_the_calls_from_outside_the_last_one_counts() {
        for pauses in [true, false] {
            check(None, move || {
                let world = World::new();
                let runner = {
                    let world = Arc::clone(&world);
                    thread::spawn(move || {
                        let mut resumed = false;
                        for _ in 0..2 {
                            resumed |= world.calls.take().has(Calls::RESUME);
                            world.calls.forget_resume();
                        }
                        resumed
                    })
                };
                if pauses {
                    world.call(Calls::RESUME);
                    world.calls.pause_from_outside();
                } else {
                    world.calls.pause_from_outside();
                    world.call(Calls::RESUME);
                }
                let resumed = runner.join().unwrap() | world.calls.take().has(Calls::RESUME);
                assert_eq!(world.calls.is_paused(), pauses);
                assert!(resumed || pauses, "it is not shown again");
            });
        }
    }
}
