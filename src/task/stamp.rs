//! The time, for tasks that begin and end by the million.

use crate::sys::clock;
use crate::thread_state::lap;
use std::cell::Cell;

/// So many stamps of one tick are exact.
const EXACT: u32 = 64;
/// Of the others, one in so many is.
const SAMPLED: u32 = 32;
/// What limits times of this length or more may be told by a stamp that is a tick behind.
pub(super) const LONG: u64 = 1_000_000_000;

thread_local! {
    static STAMPS: Stamps = const {
        Stamps {
            tick: Cell::new(0),
            given: Cell::new(0),
            last: Cell::new(0),
            next_lap: Cell::new(u64::MAX),
        }
    };
}

/// Reading the clock takes longer than an empty task. A thread that asks for the time very often within
/// one tick of the kernel's gets the last answer again for most of them.
struct Stamps {
    tick: Cell<u64>,
    given: Cell<u32>,
    last: Cell<u64>,
    /// If this is the thread's lap, it has done nothing since the last answer.
    next_lap: Cell<u64>,
}

/// The time of the machine's clock, which may be behind by up to a tick of the kernel's (1 to 10 ms) if
/// this thread has asked for it more than 64 times within that tick.
#[inline]
pub(super) fn stamp() -> u64 {
    STAMPS.try_with(Stamps::take).unwrap_or_else(|_| clock::now())
}

/// The same for an attempt that ends. `at_once`: nothing of the user's runs between this and the thread's
/// next lap but what begins one.
#[inline]
pub(super) fn stamp_end(at_once: bool) -> u64 {
    if at_once {
        let _gone = STAMPS.try_with(|stamps| stamps.next_lap.set(lap() + 1));
    }
    stamp()
}

/// The same for an attempt that begins on a thread of the pool: when the one before it ended, if they
/// were claimed together.
#[inline]
pub(super) fn stamp_begin() -> u64 {
    let last =
        STAMPS.try_with(|stamps| (stamps.next_lap.get() == lap()).then(|| stamps.last.get()));
    last.ok().flatten().unwrap_or_else(stamp)
}

impl Stamps {
    #[inline(always)]
    fn take(&self) -> u64 {
        let tick = clock::coarse();
        if self.tick.replace(tick) != tick {
            self.given.set(0);
        }
        let given = self.given.get();
        self.given.set(given + 1);
        if given < EXACT || given.is_multiple_of(SAMPLED) {
            self.last.set(clock::now());
        }
        self.last.get()
    }
}
