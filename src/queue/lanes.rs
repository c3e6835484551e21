//! Submitted work: four lanes of tasks, and the hands that hold what was claimed from them.
//!
//! # The problem
//!
//! A worker that claims sixteen tasks by one CAS pays a sixteenth of the price, but then fifteen
//! tasks wait behind the first, and the first may never return. So claiming must not mean owning.
//!
//! # The idea
//!
//! Claimed tasks stay in their slots. What a worker has of them is a [`Hand`]: one word that says
//! which slots, and that anybody can change.
//!
//! ```text
//!   lane NORMAL   │ · │ · │ t │ t │ t │ t │ t │ t │ t │ · │      hand of worker A
//!                          ╰─────┬─────╯   ↑           ↑         { lane:2, len:16, position:46 }
//!                         A's hand, len 3  head        tail
//!
//!   A:      next    { NORMAL, 3, 2 } → { NORMAL, 2, 3 }   and takes slot 2
//!   anyone: steal   { NORMAL, 3, 2 } → { 0 }              and takes slots 2, 3, 4
//! ```
//!
//! | the word | what it means | left by |
//! |---|---|---|
//! | 0 | empty: only the owner may change it | `install`, a plain store by the owner |
//! | len > 0 | the slots position … position + len − 1 of the lane belong to whoever changes the word | `next` by the owner, `steal` by anyone, each one CAS |
//!
//! # Invariants
//!
//! 1. A claimed slot is in exactly one hand, or being taken by exactly one thread. It leaves a hand
//!    by the CAS that shortens or empties it.
//! 2. Only the owner fills a hand, and only an empty one.
//! 3. No user code runs between claiming and installing, or between stealing and installing; so a
//!    claimed task that nobody can reach is at most a few instructions from being reachable.
//! 4. `Empty` is answered only if each lane was seen empty during the call (mpmc, invariant 5).
//!
//! A CAS cannot succeed on a word that was emptied and filled alike in the meantime: a position is
//! claimed once, and its 46 bits take eight days to come round at 10^8 tasks per second.
//!
//! # Orderings
//!
//! | store | partner | carries |
//! |---|---|---|
//! | `install`, Release | Acquire CAS in `steal` | the claim, and the tasks as the claimer saw them |
//! | `next`, Relaxed CAS | | the owner's own slots |
//!
//! # Fairness
//!
//! Each claim looks first at the lane that [`PICKS`] names for the worker's turn, then at the
//! others from the top. So CRITICAL gets half of the picks when all lanes are full, LOW at least
//! one in sixteen, and no pick is wasted when some lane is empty.
#![allow(unsafe_code, reason = "takes slots of the rings by the claims in the hands")]

use super::erased::{Erased, Run};
use super::mpmc::{CLOSED_ALL, CLOSED_OUTSIDE, MpmcRing, Origin, PopError, PushError};
use crate::Result;
use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// How urgent a task is. Each lane is a queue of its own, so a full lane never refuses another's
/// tasks.
///
/// Within a lane tasks start in the order they were accepted. Between lanes the higher one is
/// preferred but never starves the lower: when all have work, of 64 picks 32 go to `Critical`, 18
/// to `High`, 10 to `Normal` and 4 to `Low`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Lane {
    /// Before everything else: for the few tasks that others wait for.
    Critical = 0,
    /// Before ordinary work.
    High = 1,
    /// Ordinary work.
    #[default]
    Normal = 2,
    /// What can wait while there is anything else to do.
    Low = 3,
}

impl Lane {
    /// All lanes, the most urgent first.
    pub const ALL: [Lane; LANES] = [Lane::Critical, Lane::High, Lane::Normal, Lane::Low];
}

pub(crate) const LANES: usize = 4;
const WEIGHTS: [u32; LANES] = [32, 18, 10, 4];
const TICKS: usize = 64;

/// Which lane is looked at first, by turn. Each lane's turns are spread as evenly as they go.
const PICKS: [Lane; TICKS] = spread(WEIGHTS);

/// Smooth weighted round robin, as nginx does it: each tick every lane earns its weight, and the
/// richest is picked and pays for it.
const fn spread(weights: [u32; LANES]) -> [Lane; TICKS] {
    let mut picks = [Lane::Critical; TICKS];
    let mut earned = [0i32; LANES];
    let mut tick = 0;
    while tick < TICKS {
        let mut richest = 0;
        let mut lane = 0;
        while lane < LANES {
            earned[lane] += weights[lane] as i32;
            if earned[lane] > earned[richest] {
                richest = lane;
            }
            lane += 1;
        }
        earned[richest] -= TICKS as i32;
        picks[tick] = Lane::ALL[richest];
        tick += 1;
    }
    picks
}

/// A worker's place in the table of picks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn(u8);

impl Turn {
    #[inline(always)]
    fn pick(&mut self) -> Lane {
        self.0 = self.0.wrapping_add(1);
        PICKS[self.0 as usize % TICKS]
    }
}

/// What a worker gets when it asks for a task.
#[derive(Debug)]
#[must_use]
pub(crate) enum Claimed {
    /// The first of what was claimed; the rest is in the hand.
    Some(Erased),
    /// No lane held an unclaimed task.
    Empty,
    /// Some lane's next slot is being written, and no other lane held a task.
    Busy,
}

/// See the module's documentation.
pub(crate) struct TaskQueue {
    lanes: [MpmcRing<Erased>; LANES],
}

impl TaskQueue {
    /// Room for `lane_capacity` tasks in each lane, rounded up to a power of two.
    pub(crate) fn new(lane_capacity: usize) -> Result<Self> {
        let lane = || MpmcRing::new("lane_capacity", lane_capacity);
        Ok(Self { lanes: [lane()?, lane()?, lane()?, lane()?] })
    }

    #[inline(always)]
    fn ring(&self, lane: Lane) -> &MpmcRing<Erased> {
        &self.lanes[lane as usize]
    }

    /// Appends a task, or gives it back.
    #[inline]
    pub(crate) fn push(
        &self,
        lane: Lane,
        task: Erased,
        origin: Origin,
    ) -> Result<(), PushError<Erased>> {
        self.ring(lane).try_push(task, origin)
    }

    /// Appends a closure, or gives the closure itself back. Boxes it if it does not fit a slot.
    #[inline]
    pub(crate) fn push_work<F: Run>(
        &self,
        lane: Lane,
        work: F,
        origin: Origin,
    ) -> Result<(), PushError<F>> {
        self.push(lane, Erased::new(work), origin).map_err(|refused| {
            // SAFETY: what comes back is what was made from an `F` by `new` above.
            refused.map(|task| unsafe { task.into_inner::<F>() })
        })
    }

    /// Appends up to `count` tasks by one CAS; says how many, at least 1. `make` is called that many
    /// times while the slots hold up all workers: it must be short, and a panic in it aborts.
    #[inline]
    pub(crate) fn push_batch(
        &self,
        lane: Lane,
        count: usize,
        origin: Origin,
        make: impl FnMut() -> Erased,
    ) -> Result<usize, PushError<()>> {
        self.ring(lane).push_batch_with(count, origin, make)
    }

    /// Claims up to `max` (at least 1) contiguous tasks from the lane whose turn it is, or else from
    /// the most urgent lane that has some. The first is returned, the rest goes into `hand`, which
    /// is the caller's own; while that still holds tasks, only one is claimed.
    #[inline]
    pub(crate) fn claim(&self, hand: &Hand, turn: &mut Turn, max: usize) -> Claimed {
        let max = if hand.is_empty() { max.min(Hand::MAX_LEN) } else { 1 };
        let mut busy = false;
        let picked = turn.pick();
        let others = Lane::ALL.into_iter().filter(|&lane| lane != picked);
        for lane in core::iter::once(picked).chain(others) {
            match self.claim_from(lane, hand, max) {
                Ok(task) => return Claimed::Some(task),
                Err(PopError::Busy) => busy = true,
                Err(PopError::Empty) => {}
            }
        }
        if busy { Claimed::Busy } else { Claimed::Empty }
    }

    #[inline]
    fn claim_from(&self, lane: Lane, hand: &Hand, max: usize) -> Result<Erased, PopError> {
        let ring = self.ring(lane);
        let claim = ring.claim(max)?;
        if claim.len > 1 {
            hand.install(lane, claim.start + 1, claim.len - 1);
        }
        // SAFETY: the claim's first position, which did not go into the hand (invariant 1).
        Ok(unsafe { ring.take(claim.start) })
    }

    /// How many tasks of this lane are accepted and unclaimed. Those in hands are not counted.
    pub(crate) fn len(&self, lane: Lane) -> usize {
        self.ring(lane).len()
    }

    /// The room of each lane.
    pub(crate) fn lane_capacity(&self) -> usize {
        self.lanes[0].capacity()
    }

    /// Whether every lane was seen without an unclaimed task.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(MpmcRing::is_empty)
    }

    /// Whether a claim would get a task. Tasks that are still being written do not count: their
    /// producers wake somebody when they are done.
    #[inline]
    pub(crate) fn has_claimable(&self) -> bool {
        self.lanes.iter().any(MpmcRing::is_claimable)
    }

    /// The position after the youngest task of each lane. A task that was queued when this was read
    /// is still unclaimed while the lane's [head](Self::heads) is below it.
    pub(crate) fn ages(&self) -> [u64; LANES] {
        Lane::ALL.map(|lane| self.ring(lane).tail())
    }

    /// The position of the oldest unclaimed task of each lane.
    pub(crate) fn heads(&self) -> [u64; LANES] {
        Lane::ALL.map(|lane| self.ring(lane).head())
    }

    /// How many tasks were ever accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.ages().iter().sum()
    }

    /// Refuses tasks from outside the pool: it drains.
    pub(crate) fn close_outside(&self) {
        self.lanes.iter().for_each(|lane| lane.close(CLOSED_OUTSIDE));
    }

    /// Refuses all tasks: it stops.
    pub(crate) fn close_all(&self) {
        self.lanes.iter().for_each(|lane| lane.close(CLOSED_ALL));
    }
}

/// What one worker has claimed and not yet begun. See the module's documentation.
///
/// A hand belongs to one [`TaskQueue`] and to one thread at a time, its owner.
#[derive(Debug)]
pub(crate) struct Hand {
    word: CachePadded<AtomicU64>,
}

/// `{ lane:2, len:16, position:46 }`
#[derive(Clone, Copy)]
struct Held {
    lane: Lane,
    position: u64,
    len: usize,
}

const POSITION_BITS: u32 = 46;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
const LEN_BITS: u32 = 16;
const LEN_MASK: u64 = (1 << LEN_BITS) - 1;

impl Held {
    #[inline(always)]
    fn pack(self) -> u64 {
        if self.len == 0 {
            return 0;
        }
        (self.lane as u64) << (POSITION_BITS + LEN_BITS)
            | (self.len as u64) << POSITION_BITS
            | self.position & POSITION_MASK
    }

    #[inline(always)]
    fn unpack(word: u64) -> Option<Self> {
        (word != 0).then(|| Self {
            lane: Lane::ALL[(word >> (POSITION_BITS + LEN_BITS)) as usize],
            len: (word >> POSITION_BITS & LEN_MASK) as usize,
            position: word & POSITION_MASK,
        })
    }

    /// All but the first.
    #[inline(always)]
    fn rest(self) -> Self {
        Self { position: self.position + 1, len: self.len - 1, ..self }
    }
}

impl Hand {
    /// The most that one hand holds.
    pub(crate) const MAX_LEN: usize = LEN_MASK as usize;

    pub(crate) fn new() -> Self {
        Self { word: CachePadded::new(AtomicU64::new(0)) }
    }

    /// Takes the oldest task of the hand. The owner alone may call this.
    #[inline]
    pub(crate) fn next(&self, queue: &TaskQueue) -> Option<Erased> {
        let mut word = self.word.load(Relaxed);
        loop {
            let held = Held::unpack(word)?;
            // Relaxed: the owner claimed these slots itself, and their states carry the tasks.
            match self.word.compare_exchange(word, held.rest().pack(), Relaxed, Relaxed) {
                // SAFETY: the CAS took the first position out of the hand (invariant 1).
                Ok(_) => return Some(unsafe { queue.ring(held.lane).take(held.position) }),
                Err(now) => word = now,
            }
        }
    }

    /// Takes all of this hand: the oldest task is returned, the rest goes into `own`, the caller's
    /// own hand, which is empty. Any thread may call this.
    pub(crate) fn steal(&self, own: &Hand, queue: &TaskQueue) -> Option<Erased> {
        debug_assert!(own.is_empty());
        let mut word = self.word.load(Relaxed);
        loop {
            let held = Held::unpack(word)?;
            // Acquire: pairs with the Release in `install`.
            match self.word.compare_exchange(word, 0, Acquire, Relaxed) {
                Ok(_) => {
                    let rest = held.rest();
                    own.install(rest.lane, rest.position, rest.len);
                    // SAFETY: the CAS took all positions; this one did not go into `own`.
                    return Some(unsafe { queue.ring(held.lane).take(held.position) });
                }
                Err(now) => word = now,
            }
        }
    }

    /// Fills the hand. Only its owner may call this, and only on an empty hand (invariant 2).
    #[inline]
    fn install(&self, lane: Lane, position: u64, len: usize) {
        debug_assert!(self.is_empty());
        // Release: pairs with the Acquire in `steal`.
        self.word.store(Held { lane, position, len }.pack(), Release);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.word.load(Relaxed) == 0
    }

    /// How many tasks are in it.
    pub(crate) fn len(&self) -> usize {
        Held::unpack(self.word.load(Relaxed)).map_or(0, |held| held.len)
    }

    /// The lane its tasks came from, so that its owner can look whether a more urgent one has work.
    pub(crate) fn lane(&self) -> Option<Lane> {
        Held::unpack(self.word.load(Relaxed)).map(|held| held.lane)
    }

    /// A value that stays the same while nothing is taken from a hand that is not empty, and that
    /// does not come back; none if the hand is empty. Two equal ages a while apart mean that
    /// these tasks are stuck behind whatever their owner is doing.
    pub(crate) fn age(&self) -> Option<u64> {
        Some(self.word.load(Acquire)).filter(|&word| word != 0)
    }
}
