//! A descriptor that is readable while a queue may have something, for hosts with a loop of their own.
//!
//! # The problem
//!
//! A host sleeps in its own `poll` and must hear of what others push. A signal per push would cost a
//! system call per item. One per burst is enough, if no burst is missed, and if the descriptor does
//! not stay readable beside an empty queue, for then the host spins.
//!
//! # The word
//!
//! | state | the descriptor | who may change it |
//! |---|---|---|
//! | OFF | there is none | the first who asks for it: QUIET |
//! | QUIET | not readable | a pusher, who finds it so: RINGING |
//! | RINGING | about to be readable | that pusher, having raised it: LOUD |
//! | LOUD | readable | a popper, who found nothing: CLEARING |
//! | CLEARING | about to be unreadable | that popper, having lowered it: QUIET, and then it looks again |
//!
//! ```text
//!   OFF ──► QUIET ──push──► RINGING ──raised──► LOUD ──pop finds nothing──► CLEARING
//!             ▲                                                                │ lowered
//!             └────────────────────────────────────────────────────────────────┘
//!               then: barrier, look again, and ring if there is something
//! ```
//!
//! # Invariants
//!
//! 1. The descriptor is raised only in RINGING and lowered only in CLEARING, each by one thread: no
//!    raise is undone by a lowering that began before it, and none comes late.
//! 2. Whenever something is in the queue, or it is closed, and no thread is between its two steps, the
//!    word is LOUD (or OFF).
//! 3. A pop that finds nothing in LOUD, with the queue open, makes it unreadable. In RINGING it leaves
//!    that to the next: a host comes once for nothing. A *listener*, which is told instead of being made readable,
//!    is told after LOUD, so that the look which this causes finds LOUD and clears it, or is told again.
//!
//! Invariant 2 rests on *push, then look at the word* against *set QUIET, then look at the queue*,
//! with a barrier in both places: at least one of the two sees the other. A pusher that sees RINGING,
//! LOUD or CLEARING may leave: in the first two the descriptor is or becomes readable, and in the last
//! the popper has not looked again yet, by the same barriers.
//!
//! # Orderings
//!
//! The word carries no data, the descriptor's count is the kernel's. Release and Acquire on the word
//! keep a raise in front of the LOUD that tells of it, and a lowering in front of its QUIET.
use super::standalone::barrier_after_cas;
use crate::error::{Error, Result};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::store_load_barrier;
use crate::sys::eventfd::EventFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

const OFF: u32 = 0;
const QUIET: u32 = 1;
const RINGING: u32 = 2;
const LOUD: u32 = 3;
const CLEARING: u32 = 4;

/// What can be made readable and unreadable again, or is told alone: a listener is raised once for each time that
/// there may be something, and looks for itself.
pub(crate) trait Line: Send + Sync {
    fn raise(&self);
    fn lower(&self);

    /// Whether it is only told, and may be told late: then a raise needs no lowering, and none undoes it.
    fn is_told(&self) -> bool {
        false
    }

    /// When a host has last asked for what this tells of, as `clock` has it; 0: never.
    fn asked_at(&self) -> u64 {
        0
    }
}

impl Line for EventFd {
    fn raise(&self) {
        self.signal();
    }

    fn lower(&self) {
        self.clear();
    }
}

/// A descriptor, or a listener.
pub(crate) enum Wire {
    Descriptor(EventFd),
    Listener(Arc<dyn Line>),
}

impl Wire {
    pub(crate) fn descriptor() -> Result<Self> {
        let made = EventFd::new().map_err(|error| Error::os("create an eventfd", error));
        made.map(Self::Descriptor)
    }

    /// To be polled.
    pub(crate) fn as_fd(&self) -> Result<BorrowedFd<'_>> {
        match self {
            Self::Descriptor(fd) => Ok(fd.as_fd()),
            Self::Listener(_) => Err(Error::invalid(
                "a descriptor",
                "of what is attached to a completion queue",
                "that of the queue",
            )),
        }
    }
}

impl From<Arc<dyn Line>> for Wire {
    fn from(listener: Arc<dyn Line>) -> Self {
        Self::Listener(listener)
    }
}

impl Line for Wire {
    fn raise(&self) {
        match self {
            Self::Descriptor(fd) => fd.raise(),
            Self::Listener(listener) => listener.raise(),
        }
    }

    fn lower(&self) {
        match self {
            Self::Descriptor(fd) => fd.lower(),
            Self::Listener(listener) => listener.lower(),
        }
    }

    fn is_told(&self) -> bool {
        matches!(self, Self::Listener(_))
    }

    fn asked_at(&self) -> u64 {
        match self {
            Self::Descriptor(_) => 0,
            Self::Listener(listener) => listener.asked_at(),
        }
    }
}

/// The word, and the descriptor once somebody has asked for it.
pub(crate) struct Pollable<L = EventFd> {
    state: AtomicU32,
    line: OnceLock<L>,
}

impl<L: Line> Pollable<L> {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(OFF), line: OnceLock::new() }
    }

    /// The descriptor, made by `make` if this is the first demand. `worth_a_look` says whether the
    /// queue has something or is closed.
    pub(crate) fn demand<E>(
        &self,
        make: impl FnOnce() -> core::result::Result<L, E>,
        worth_a_look: impl FnOnce() -> bool,
    ) -> core::result::Result<&L, E> {
        if self.line.get().is_none() {
            // Of two that come at once, one has made its own for nothing.
            let _second = self.line.set(make()?);
            if self.state.compare_exchange(OFF, QUIET, AcqRel, Relaxed).is_ok() {
                self.look_again(worth_a_look);
            }
        }
        Ok(self.line.get().expect("set above or by another"))
    }

    /// From now on `line` is raised. False: something else is.
    pub(crate) fn listen(&self, line: Arc<dyn Line>, worth_a_look: impl FnOnce() -> bool) -> bool
    where
        L: From<Arc<dyn Line>>,
    {
        let first = self.line.set(line.into()).is_ok();
        if first && self.state.compare_exchange(OFF, QUIET, AcqRel, Relaxed).is_ok() {
            self.look_again(worth_a_look);
        }
        first
    }

    /// When a host has last asked its listener; 0: never, or there is none.
    pub(crate) fn asked_at(&self) -> u64 {
        self.line.get().map_or(0, L::asked_at)
    }

    /// Something was pushed by a compare-exchange, or the queue was closed.
    #[inline]
    pub(crate) fn pushed(&self) {
        // Against *set QUIET, then look at the queue* in `look_again`. `Queue` passes one of its own
        // when it looks for sleepers; this one costs nothing on x86-64, and does not rely on that.
        barrier_after_cas();
        if self.state.load(Relaxed) == QUIET {
            self.ring();
        }
    }

    /// A pop has found nothing.
    #[inline]
    pub(crate) fn found_nothing(&self, worth_a_look: impl Fn() -> bool) {
        if self.state.load(Relaxed) == LOUD {
            self.clear(worth_a_look);
        }
    }

    #[cold]
    fn clear(&self, worth_a_look: impl Fn() -> bool) {
        if worth_a_look() {
            // It came after the pop. What is readable stays so; who is told is told again, as no pusher does it while
            // the word is LOUD.
            if self.line.get().is_some_and(L::is_told) {
                self.with_line(L::raise);
            }
            return;
        }
        // Acquire: pairs with the Release in `ring`; the raise is over (invariant 1).
        if self.state.compare_exchange(LOUD, CLEARING, Acquire, Relaxed).is_err() {
            return;
        }
        self.with_line(L::lower);
        // Release: pairs with the Acquire in `ring`; the lowering is over (invariant 1).
        self.state.store(QUIET, Release);
        self.look_again(worth_a_look);
    }

    /// The word has become QUIET.
    fn look_again(&self, worth_a_look: impl FnOnce() -> bool) {
        // Against *push, then look at the word* in `pushed`.
        store_load_barrier();
        if worth_a_look() {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        // Acquire: pairs with the Release in `clear`. Who fails leaves it to who succeeded.
        if self.state.compare_exchange(QUIET, RINGING, Acquire, Relaxed).is_ok() {
            // One that is told looks once: a popper that finds nothing in RINGING leaves the word as it is, so the
            // look that clears it must come after LOUD.
            let is_told = self.line.get().is_some_and(L::is_told);
            if !is_told {
                self.with_line(L::raise);
            }
            // Release: pairs with the Acquire in `clear`.
            self.state.store(LOUD, Release);
            if is_told {
                self.with_line(L::raise);
            }
        }
    }

    /// In every state but OFF there is a line.
    fn with_line(&self, f: impl FnOnce(&L)) {
        if let Some(line) = self.line.get() {
            f(line);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a queue's descriptor | no barrier before the second look; no second look after clearing | a push is missed |
    //! |  | LOUD before the descriptor is raised | the host would spin |
    //! | a listener | not told again of what came after its look; told before LOUD | it sleeps beside an item |

    use super::*;
    use crate::queue::Queue;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    /// A descriptor, or a listener: one word, in one order with everything that the kernel orders.
    struct Fake {
        word: AtomicBool,
        is_told: bool,
    }

    impl Line for Fake {
        fn raise(&self) {
            self.word.swap(true, AcqRel);
        }

        fn lower(&self) {
            if !self.is_told {
                self.word.swap(false, AcqRel);
            }
        }

        fn is_told(&self) -> bool {
            self.is_told
        }
    }

    struct Polled {
        queue: Queue<u32>,
        pollable: Pollable<Fake>,
        is_told: bool,
    }

    impl Polled {
        fn new(is_told: bool) -> Self {
            Self { queue: Queue::new(4).unwrap(), pollable: Pollable::new(), is_told }
        }

        fn is_worth_a_look(&self) -> bool {
            !self.queue.is_empty() || self.queue.is_closed()
        }

        fn demand(&self) -> &Fake {
            let make = || Ok::<_, ()>(Fake { word: AtomicBool::new(false), is_told: self.is_told });
            self.pollable.demand(make, || self.is_worth_a_look()).unwrap()
        }

        fn push(&self, item: u32) {
            self.queue.push(item).unwrap();
            self.pollable.pushed();
        }

        fn pop(&self) -> Option<u32> {
            let item = self.queue.pop();
            if item.is_none() {
                self.pollable.found_nothing(|| self.is_worth_a_look());
            }
            item
        }

        fn is_readable(&self) -> bool {
            self.demand().word.load(Acquire)
        }

        /// What a listener does when it is told.
        fn look(&self) {
            if self.demand().word.swap(false, AcqRel) {
                while self.pop().is_some() {}
            }
        }
    }

    fn model(body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2); // three threads; 3 takes more than some minutes
        builder.check(body);
    }

    /// Whatever the pops that found nothing did, what is left makes the descriptor readable, and
    /// after one more pop that finds nothing it is not.
    #[test]
    fn no_push_is_missed_and_nothing_stays_readable() {
        model(|| {
            let polled = Arc::new(Polled::new(false));
            polled.demand();
            let spawn = |body: fn(&Polled)| {
                let polled = Arc::clone(&polled);
                thread::spawn(move || body(&polled))
            };
            let pusher = spawn(|polled| polled.push(1));
            let popper = spawn(|polled| {
                let _either = (polled.pop(), polled.pop());
            });
            polled.pop();
            pusher.join().unwrap();
            popper.join().unwrap();
            assert!(polled.queue.is_empty() || polled.is_readable(), "a push was missed");
            while polled.pop().is_some() {}
            assert!(!polled.is_readable(), "the host would spin");
        });
    }

    /// A listener that looks whenever it is told finds all that is pushed.
    #[test]
    fn a_listener_never_sleeps_beside_an_item() {
        model(|| {
            let polled = Arc::new(Polled::new(true));
            polled.demand();
            let pusher = {
                let polled = Arc::clone(&polled);
                thread::spawn(move || {
                    polled.push(1);
                    polled.push(2);
                })
            };
            polled.look();
            polled.look();
            pusher.join().unwrap();
            while polled.is_readable() {
                polled.look();
            }
            assert!(polled.queue.is_empty(), "it sleeps beside an item");
        });
    }

    /// The descriptor is asked for while something is pushed, and while the queue is closed.
    #[test]
    fn the_first_demand_misses_nothing() {
        model(|| {
            let polled = Arc::new(Polled::new(false));
            let pusher = {
                let polled = Arc::clone(&polled);
                thread::spawn(move || polled.push(1))
            };
            let closer = {
                let polled = Arc::clone(&polled);
                thread::spawn(move || {
                    polled.demand();
                })
            };
            polled.demand();
            pusher.join().unwrap();
            closer.join().unwrap();
            assert!(polled.is_readable());
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32 as Count;

    /// Told, and counts how often.
    struct Told(Count);

    impl Line for Told {
        fn raise(&self) {
            self.0.fetch_add(1, Relaxed);
        }

        fn lower(&self) {}

        fn is_told(&self) -> bool {
            true
        }
    }

    #[test]
    fn who_is_told_is_told_again_of_what_came_after_its_look() {
        let pollable = Pollable::new();
        let make = || Ok::<_, ()>(Told(Count::new(0)));
        let told = pollable.demand(make, || false).unwrap();
        pollable.pushed();
        assert_eq!(told.0.load(Relaxed), 1);
        // It has found nothing, and then something came, whose pusher found the word LOUD.
        pollable.pushed();
        pollable.found_nothing(|| true);
        assert_eq!(told.0.load(Relaxed), 2);
        pollable.found_nothing(|| false);
        pollable.pushed();
        assert_eq!(told.0.load(Relaxed), 3);
    }
}
