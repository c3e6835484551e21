//! Submitted work: four lanes of tasks, and the local queues that hold what was claimed from them.
//!
//! # The problem
//!
//! A worker that claims sixteen tasks by one CAS pays a sixteenth of the price, but then fifteen
//! tasks wait behind the first, and the first may never return. So claiming must not mean owning.
//!
//! # The idea
//!
//! What a worker has claimed and not begun lies in its [`LocalQueue`]: a few tasks and one word that says
//! which of them are left. The owner takes one by a CAS on that word, and anybody else can take them
//! all by another. The owner runs a task where it lies: nobody else uses its place before the owner
//! fills the local queue again.
//!
//! ```text
//!   lane NORMAL   │ · │ · │ · │ · │ t │ t │ t │ t │ · │     claim: one CAS on the head, then all are
//!                                 head             tail    moved, and the first is the owner's
//!   A's queue     │   │ t │ t │ t │   │   │   │   │
//!                       next  len 3                    { installs:47, stealing:1, next:8, len:8 }
//!
//!   A:       next    { i, 0, next, len } → { i, 0, next + 1, len − 1 }    takes one
//!   anyone:  steal   { i, 0, next, len } → { i, 1, next, len }            moves them to its own local queue
//!                                        → { i, 0, 0, 0 }                 gives the local queue back
//! ```
//!
//! | the word | what it means | left by |
//! |---|---|---|
//! | len = 0 | empty and the owner's | `install` by the owner |
//! | len > 0 | the tasks next … next + len − 1 belong to whoever changes the word | `next` by the owner, `steal` by anyone, each by CAS |
//! | stealing | a thief moves the tasks: neither they nor their places are anybody else's | a store by that thief |
//!
//! # Invariants
//!
//! 1. A task is in one lane, or one local queue, or one thread. It leaves a local queue by the CAS that shortens it
//!    or marks it as being stolen.
//! 2. Only the owner fills a local queue, and only one that is empty and not being stolen, after it has run
//!    or dropped what it took.
//! 3. No user code runs between claiming and installing, or between stealing and installing; so a
//!    claimed task that nobody can reach is at most a few instructions from being reachable.
//! 4. `Empty` is answered only if each lane was seen empty during the call (mpmc, invariant 5).
//!
//! Neither `next` nor `steal` looks at a task before its CAS, so it does not matter if the word was
//! changed and changed back meanwhile: it tells the truth about what is there now.
//!
//! # Orderings
//!
//! | store | partner | carries |
//! |---|---|---|
//! | `install`, Release | Acquire CAS in `steal` | the tasks |
//! | the end of `steal`, Release | Acquire load in `is_free` | the end of the reads, before the places are written again |
//! | `next`, Relaxed CAS | | the owner's own writes |
//!
//! # Why not leave the tasks in the lane's slots
//!
//! That saves a copy, and a first version did it. But a slot that comes back late stops all
//! producers one lap later, and slots that come back one by one are taken one by one by a producer
//! that waits for room, on the very line the worker is busy with. Moved at once, they come
//! back as a run.
//!
//! # Fairness
//!
//! Each claim is of the most urgent lane that has a task, unless the [`Turn`] of a lower one has come. A lane's turn
//! comes when the thread has claimed so often from the lanes above it while it had a task:
//!
//! | lane | its turn comes after | and is so many claims |
//! |---|---|---|
//! | HIGH | 8 of CRITICAL | 5 and 4, by turns |
//! | NORMAL | 13 and 12 of the two above | 2 and 3, by turns |
//! | LOW | 15 of all others | 1 |
//!
//! So, when all lanes are full, of 64 claims 32 are of CRITICAL, 18 of HIGH, 10 of NORMAL and 4 of LOW; no claim is
//! wasted when some lane is empty; and of a few tasks of each lane all of a higher one come first. Two bounds follow, by counting, whatever is posted to the lanes above. A claim
//! takes at most 64 tasks, and only of tasks so cheap that 64 of them take some 20 µs.
//!
//! 1. Of 17 claims in a row of one thread, one is of LOW if that has work: a task with k before it in
//!    LOW is claimed by the 17 (k + 1)th claim at the latest.
//! 2. While a lane below CRITICAL is *aged* (something has waited in it for `Builder::ageing`; see
//!    `pool::ageing`), every fourth claim is of it, or of each of the aged lanes in turn: of
//!    4 × aged lanes claims in a row, one is of it. That pays where LOW holds many tasks: without it
//!    the last of a thousand waits for sixteen thousand others, with it for three thousand. CRITICAL
//!    keeps three eighths of all claims.
#![allow(unsafe_code, reason = "the tasks in a local belong to whoever changed its word")]

use super::erased::{ClosureType, Erased, Run};
use super::mpmc::{CLOSED_ALL, CLOSED_OUTSIDE, MpmcRing, Origin, PopError, PushError};
use crate::Result;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{CachePadded, UnsafeCell};
use core::mem::{ManuallyDrop, MaybeUninit};

/// How urgent a task is. Each lane is a queue of its own, so a full lane never refuses another's
/// tasks.
///
/// Tasks leave a lane in the order in which they were accepted. A thread takes several at once, and other threads take
/// over some of those that it has not begun, so with more threads than one they do not start in exactly that order; a
/// [`Strand`](crate::Strand) keeps one. A thread that looks for its next task picks the most
/// urgent lane that has one, with these exceptions, so that no lane starves: after 8 picks of `Critical` up to 5 are
/// of `High`, after 13 picks of those two up to 3 are of `Normal`, and after 15 picks of all others one is of `Low`.
/// So when all lanes have work, of 64 picks 32 are of `Critical`, 18 of `High`, 10 of `Normal` and 4 of `Low`; and of
/// 17 picks in a row one is of `Low`.
///
/// A pick takes up to 64 tasks of its lane if these take some 20 µs together; a more urgent task that comes meanwhile
/// waits for them. When something has waited in a lane for longer than
/// [`Builder::ageing`](crate::Builder::ageing), every fourth pick is of such lanes, in turn. Several threads pick
/// each for itself.
///
/// ```
/// use paceline::{Lane, Pool};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// pool.lane(Lane::Low).post(|| println!("some day"))?;
/// let urgent = pool.lane(Lane::Critical).submit(|| "at once")?;
/// assert_eq!(urgent.wait()?, "at once");
/// # Ok(())
/// # }
/// ```
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

/// When a lane's turn comes, and when it is over. HIGH and NORMAL gain and lose one by turns.
const HIGH_FROM: u8 = 8;
const HIGH_TO: u8 = 13;
const NORMAL_FROM: u8 = 13;
const NORMAL_TO: u8 = 15;
const LOW_FROM: u8 = 15;

/// Which lane was taken from, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Picked {
    /// Those above it had nothing.
    First(Lane),
    /// It was its turn.
    InTurn(Lane),
    /// Something had waited there for too long.
    ForAge(Lane),
}

impl Picked {
    fn lane(self) -> Lane {
        match self {
            Self::First(lane) | Self::InTurn(lane) | Self::ForAge(lane) => lane,
        }
    }
}

/// What a worker has claimed while the lanes below had something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Claims of CRITICAL while HIGH waits, and then those of HIGH.
    high: u8,
    /// Claims of the two above NORMAL while that waits, and then those of NORMAL.
    normal: u8,
    /// Claims of all lanes above LOW while that waits.
    low: u8,
    /// Claims, by 6 bits, for the aged lanes; and above them whether HIGH has one less now, and NORMAL one more.
    claims: u8,
    /// The lane of the last claim.
    pub(crate) claimed: Lane,
}

impl Turn {
    const CLAIMS: u8 = 0x3f;
    const ODD: u8 = 0x80;

    /// 1 in every other round.
    #[inline(always)]
    fn odd(self) -> u8 {
        self.claims >> 7
    }

    /// Takes from the lane whose turn it is, or else from the most urgent one that has something. What was taken is
    /// to be [noted](Self::note).
    #[inline(always)]
    pub(crate) fn pick<T>(
        &mut self,
        aged: Aged,
        mut take: impl FnMut(Lane) -> Option<T>,
    ) -> Option<(T, Picked)> {
        let (first, for_age) = self.first(aged);
        if let Some(lane) = first {
            match take(lane) {
                Some(taken) if for_age => return Some((taken, Picked::ForAge(lane))),
                Some(taken) => return Some((taken, Picked::InTurn(lane))),
                None if for_age => {}
                None => self.pass(lane),
            }
        }
        for lane in Lane::ALL {
            if Some(lane) != first
                && let Some(taken) = take(lane)
            {
                return Some((taken, Picked::First(lane)));
            }
        }
        None
    }

    /// The lane that is to be looked at before all others, and whether that is for its age.
    #[inline(always)]
    fn first(&mut self, aged: Aged) -> (Option<Lane>, bool) {
        if aged != Aged::NONE {
            let claims = (self.claims + 1) & Self::CLAIMS;
            self.claims = self.claims & Self::ODD | claims;
            if claims.is_multiple_of(AGED_EVERY) {
                return (Some(aged.lane(claims / AGED_EVERY)), true);
            }
        }
        let due = match () {
            () if self.low >= LOW_FROM => Some(Lane::Low),
            () if self.normal >= NORMAL_FROM - self.odd() => Some(Lane::Normal),
            () if self.high >= HIGH_FROM => Some(Lane::High),
            () => None,
        };
        (due, false)
    }

    /// It had nothing, though it was its turn.
    #[inline]
    fn pass(&mut self, lane: Lane) {
        match lane {
            Lane::Critical => {}
            Lane::High => self.high = 0,
            Lane::Normal => self.normal = 0,
            Lane::Low => self.low = 0,
        }
    }

    /// Something was taken. A lane has to wait for its turn only while it `waits`: it has something.
    #[inline(always)]
    pub(crate) fn note(&mut self, picked: Picked, waits: impl Fn(Lane) -> bool) {
        let (lane, in_turn) = match picked {
            Picked::First(lane) => (lane, false),
            Picked::InTurn(lane) => (lane, true),
            // That is beside the turns, but for the bound of LOW.
            Picked::ForAge(Lane::Low) => (Lane::Low, true),
            Picked::ForAge(_) => {
                self.low = LOW_FROM.min(self.low + 1);
                return;
            }
        };
        let odd = self.odd();
        let one_more =
            |lane, count: u8, most| if waits(lane) { count.saturating_add(1).min(most) } else { 0 };
        if lane < Lane::Normal {
            self.normal = one_more(Lane::Normal, self.normal, NORMAL_FROM - odd);
        }
        match lane {
            Lane::Critical => self.high = one_more(Lane::High, self.high, HIGH_FROM),
            Lane::High => {
                let over = !in_turn || self.high + 1 >= HIGH_TO - odd;
                self.high = if over { 0 } else { self.high + 1 };
            }
            Lane::Normal if in_turn => {
                self.normal += 1;
                if self.normal >= NORMAL_TO {
                    self.normal = 0;
                    self.claims ^= Self::ODD;
                }
            }
            Lane::Low if in_turn => {}
            Lane::Normal | Lane::Low => (self.high, self.normal) = (0, 0),
        }
        self.low = match lane {
            Lane::Low => 0,
            _ => one_more(Lane::Low, self.low, LOW_FROM),
        };
    }

    /// For a thread that comes back: its turn goes on where it was.
    pub(crate) fn bits(self) -> u32 {
        u32::from_ne_bytes([self.high, self.normal, self.low, self.claims])
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        let [high, normal, low, claims] = bits.to_ne_bytes();
        Self { high, normal, low, claims, claimed: Lane::default() }
    }
}

/// One claim in so many is of an aged lane.
const AGED_EVERY: u8 = 4;

/// A set of lanes in which something has waited for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Aged(u32);

impl Aged {
    pub(crate) const NONE: Aged = Aged(0);

    pub(crate) fn with(self, lane: Lane) -> Self {
        Self(self.0 | 1 << lane as u32)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn contains(self, lane: Lane) -> bool {
        self.0 & 1 << lane as u32 != 0
    }

    /// Its lanes take turns, the lowest first.
    #[cold]
    fn lane(self, turn: u8) -> Lane {
        let mut left = u32::from(turn) % self.0.count_ones();
        let lowest_first = Lane::ALL.into_iter().rev();
        let mut members = lowest_first.filter(|&lane| self.0 & 1 << lane as u32 != 0);
        loop {
            match (members.next(), left) {
                (Some(lane), 0) => return lane,
                (Some(_), _) => left -= 1,
                (None, _) => return Lane::Low,
            }
        }
    }
}

/// What a worker gets when it asks for a task.
#[must_use]
pub(crate) enum Claimed<'a> {
    /// The first of what was claimed; the rest is in the local queue.
    Some(Taken<'a>),
    /// No lane held an unclaimed task.
    Empty,
    /// Some lane's next slot is being written, and no other lane held a task.
    Busy,
}

/// See the module's documentation.
pub(crate) struct TaskQueue {
    lanes: [MpmcRing<Erased>; LANES],
    /// How many tasks of each lane one claim takes at most: one, if threads are reserved for it, which
    /// could not take them out of a local queue.
    most: [usize; LANES],
    aged: AtomicU32,
}

impl TaskQueue {
    /// Room for `lane_capacity` tasks in each lane, rounded up to a power of two.
    pub(crate) fn new(lane_capacity: usize) -> Result<Self> {
        let lane = || MpmcRing::new("lane_capacity", lane_capacity);
        let most = [LocalQueue::CAPACITY; LANES];
        let aged = AtomicU32::new(0);
        Ok(Self { lanes: [lane()?, lane()?, lane()?, lane()?], most, aged })
    }

    /// There are threads that run tasks of these lanes only.
    pub(crate) fn reserving(mut self, lanes: impl Iterator<Item = Lane>) -> Self {
        lanes.for_each(|lane| self.most[lane as usize] = 1);
        self
    }

    /// Whether there are threads that run tasks of this lane only.
    #[inline(always)]
    pub(crate) fn is_reserved(&self, lane: Lane) -> bool {
        self.most[lane as usize] == 1
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
        if const { Erased::fits::<F>() } {
            // SAFETY: `put_inline` makes a task there.
            return unsafe {
                self.ring(lane).try_push_with(work, origin, |place, work| {
                    Erased::put_inline(place, work);
                })
            };
        }
        self.push(lane, Erased::boxed(work), origin).map_err(|refused| {
            // SAFETY: what comes back is what was made from an `F` by `boxed` above, as `new` would.
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

    /// Claims up to `max` (at least 1) contiguous tasks from the most urgent lane that has some, or from a lower one
    /// whose turn it is. The first is returned, the rest goes into `local`; while
    /// that still holds tasks, only one is claimed. Only the local queue's owner may call this, and only
    /// when it has run or dropped what it took before.
    #[inline]
    pub(crate) fn claim<'a>(
        &self,
        local: &'a LocalQueue,
        turn: &mut Turn,
        max: usize,
    ) -> Claimed<'a> {
        let free = local.is_free();
        let mut busy = false;
        // Relaxed: whether it is seen now or at the next claim does not matter.
        let claimed = turn.pick(Aged(self.aged.load(Relaxed)), |lane| {
            let claimed = match free {
                true => self.claim_into(lane, local, max),
                false => self.claim_beside(lane, local),
            };
            claimed.map_err(|error| busy |= matches!(error, PopError::Busy)).ok()
        });
        match claimed {
            Some((task, picked)) => {
                turn.note(picked, |lane| !self.ring(lane).is_empty());
                turn.claimed = picked.lane();
                Claimed::Some(task)
            }
            None if busy => Claimed::Busy,
            None => Claimed::Empty,
        }
    }

    #[inline]
    fn claim_into<'a>(
        &self,
        lane: Lane,
        local: &'a LocalQueue,
        max: usize,
    ) -> Result<Taken<'a>, PopError> {
        let mut count = 0;
        self.ring(lane).pop_batch(max.min(self.most[lane as usize]), |task| {
            // SAFETY: the local queue is free, and no more than its capacity is claimed.
            unsafe { local.put(count, task) };
            count += 1;
        })?;
        local.install(1, count - 1);
        Ok(Taken { place: local.place(0) })
    }

    /// Claims one task of one lane. As for [`claim`](Self::claim).
    pub(crate) fn claim_of<'a>(&self, lane: Lane, local: &'a LocalQueue) -> Option<Taken<'a>> {
        match local.is_free() {
            true => self.claim_into(lane, local, 1).ok(),
            false => self.claim_beside(lane, local).ok(),
        }
    }

    /// While a thief is busy with the local queue.
    #[cold]
    fn claim_beside<'a>(&self, lane: Lane, local: &'a LocalQueue) -> Result<Taken<'a>, PopError> {
        let task = self.ring(lane).try_pop()?;
        // SAFETY: this place is the owner's always, and it has run or dropped what was there.
        unsafe { local.put(LocalQueue::BESIDE, task) };
        Ok(Taken { place: local.place(LocalQueue::BESIDE) })
    }

    /// In these lanes something has waited for too long.
    pub(crate) fn set_aged(&self, aged: Aged) {
        self.aged.store(aged.0, Relaxed);
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn aged(&self) -> Aged {
        Aged(self.aged.load(Relaxed))
    }

    /// How many tasks of this lane are accepted and unclaimed. Those in local queues are not counted.
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

    /// Where the lanes end, which were all seen without an unclaimed task; None: one was not.
    #[inline]
    pub(crate) fn ends_if_empty(&self) -> Option<[u64; LANES]> {
        let mut ends = [0; LANES];
        for (lane, end) in self.lanes.iter().zip(&mut ends) {
            // The head first: it never passes the tail.
            let head = lane.head();
            *end = lane.tail();
            if *end != head {
                return None;
            }
        }
        Some(ends)
    }

    /// Whether the lanes end there still: if there was no task then, there is none.
    #[inline]
    pub(crate) fn end_at(&self, ends: [u64; LANES]) -> bool {
        self.lanes.iter().zip(ends).all(|(lane, end)| lane.tail() == end)
    }

    /// Whether a claim would get a task. Tasks that are still being written do not count: their
    /// producers wake somebody when they are done.
    #[inline]
    pub(crate) fn has_claimable(&self) -> bool {
        self.lanes.iter().any(MpmcRing::is_claimable)
    }

    /// As [`has_claimable`](Self::has_claimable), of one lane.
    pub(crate) fn is_claimable(&self, lane: Lane) -> bool {
        self.ring(lane).is_claimable()
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
/// A local queue belongs to one thread at a time, its owner. Tasks that are left when it is dropped are
/// dropped.
pub(crate) struct LocalQueue {
    word: CachePadded<AtomicU64>,
    places: [Place; LocalQueue::CAPACITY + 1],
}

/// As a slot of a lane: one line of the cache.
#[cfg_attr(not(loom), repr(align(64)))]
struct Place(UnsafeCell<MaybeUninit<Erased>>);

/// A task that its local queue's owner has taken, where it lies. Dropped, it is dropped unrun.
///
/// While it lives the owner does not fill its local queue.
#[must_use = "a task that is dropped never runs"]
pub(crate) struct Taken<'a> {
    place: &'a Place,
}

impl Taken<'_> {
    /// The type of its closure.
    #[inline]
    pub(crate) fn closure_type(&self) -> ClosureType {
        // SAFETY: it was taken out of the local queue (invariant 1), and is there until it runs.
        self.place.0.with(|task| unsafe { (*task).assume_init_ref() }.closure_type())
    }

    /// Runs it. A panic is the answer.
    #[inline(always)]
    pub(crate) fn run_caught(self) -> std::thread::Result<()> {
        let task = ManuallyDrop::new(self);
        // SAFETY: it was taken out of the local queue (invariant 1), and is not looked at again.
        task.place.0.with_mut(|task| unsafe { Erased::run_there(task.cast()) })
    }

    /// Moves it out.
    #[inline]
    pub(crate) fn into_task(self) -> Erased {
        let task = ManuallyDrop::new(self);
        // SAFETY: it was taken out of the local queue (invariant 1), and is read once.
        task.place.0.with(|task| unsafe { task.read().assume_init() })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `into_task`.
        drop(self.place.0.with(|task| unsafe { task.read().assume_init() }));
    }
}

// SAFETY: a task is touched only by the thread that the word says it belongs to (invariant 1).
unsafe impl Sync for LocalQueue {}

/// `{ installs:47, stealing:1, next:8, len:8 }`
#[derive(Clone, Copy)]
struct Held(u64);

impl Held {
    const STEALING: u64 = 1 << 16;
    const NEXT: u64 = 1 << 8;
    const INSTALL: u64 = 1 << 17;

    #[inline(always)]
    fn len(self) -> usize {
        (self.0 & 0xff) as usize
    }

    #[inline(always)]
    fn next(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    /// Whether there is something that can be taken.
    #[inline(always)]
    fn is_takeable(self) -> bool {
        self.len() > 0 && self.0 & Self::STEALING == 0
    }

    /// All but the first.
    #[inline(always)]
    fn rest(self) -> Self {
        Self(self.0 + Self::NEXT - 1)
    }

    #[inline(always)]
    fn stealing(self) -> Self {
        Self(self.0 | Self::STEALING)
    }

    /// Nothing, since the same install.
    #[inline(always)]
    fn emptied(self) -> Self {
        Self(self.0 & !(Self::INSTALL - 1))
    }

    /// `len` tasks from the place `first` on.
    #[inline(always)]
    fn installed(self, first: usize, len: usize) -> Self {
        let tasks = first as u64 * Self::NEXT + len as u64;
        Self(self.emptied().0.wrapping_add(Self::INSTALL) | tasks)
    }
}

impl LocalQueue {
    /// How many tasks it holds.
    #[cfg(not(loom))]
    pub(crate) const CAPACITY: usize = 64;
    /// loom counts every cell.
    #[cfg(loom)]
    pub(crate) const CAPACITY: usize = 4;
    /// A place that is the owner's always, for the one task that it claims while it is robbed.
    const BESIDE: usize = Self::CAPACITY;

    pub(crate) fn new() -> Self {
        Self {
            word: CachePadded::new(AtomicU64::new(0)),
            places: core::array::from_fn(|_| Place(UnsafeCell::new(MaybeUninit::uninit()))),
        }
    }

    /// Takes the oldest task of the local queue. The owner alone may call this.
    #[inline]
    pub(crate) fn next(&self) -> Option<Taken<'_>> {
        let mut held = Held(self.word.load(Relaxed));
        while held.is_takeable() {
            // Relaxed: the owner put these tasks here itself.
            match self.word.compare_exchange(held.0, held.rest().0, Relaxed, Relaxed) {
                Ok(_) => return Some(Taken { place: self.place(held.next()) }),
                Err(now) => held = Held(now),
            }
        }
        None
    }

    /// Takes all of this local queue: the oldest task is returned, the rest goes into `own`, the caller's
    /// own local queue. Nothing is taken unless that is free: somebody may be stealing from it, which the
    /// owner cannot tell from an empty local queue by [`next`](Self::next) alone. Any thread may call this.
    pub(crate) fn steal(&self, own: &LocalQueue) -> Option<Erased> {
        if !own.is_free() {
            return None;
        }
        let held = self.begin_to_steal()?;
        let tasks = held.next()..held.next() + held.len();
        // SAFETY: these tasks are the thief's (invariant 1), and its own local queue is free.
        let first = unsafe {
            tasks.clone().skip(1).enumerate().for_each(|(to, from)| own.put(to, self.get(from)));
            self.get(tasks.start)
        };
        if held.len() > 1 {
            own.install(0, held.len() - 1);
        }
        // Release: pairs with the Acquire in `is_free`.
        self.word.store(held.emptied().0, Release);
        Some(first)
    }

    fn begin_to_steal(&self) -> Option<Held> {
        let mut held = Held(self.word.load(Relaxed));
        while held.is_takeable() {
            // Acquire: pairs with the Release in `install`.
            match self.word.compare_exchange(held.0, held.stealing().0, Acquire, Relaxed) {
                Ok(_) => return Some(held),
                Err(now) => held = Held(now),
            }
        }
        None
    }

    /// Makes `len` tasks that were put here, from the place `first` on, takeable. Only the owner may
    /// call this, and only on a free local queue (invariant 2).
    #[inline]
    fn install(&self, first: usize, len: usize) {
        if len == 0 {
            return;
        }
        let held = Held(self.word.load(Relaxed));
        // Release: pairs with the Acquire in `begin_to_steal`.
        self.word.store(held.installed(first, len).0, Release);
    }

    /// # Safety
    ///
    /// The caller is the owner of this local queue, which is free, or the place is `BESIDE`; nothing is
    /// there that was not taken and run.
    #[inline(always)]
    unsafe fn put(&self, place: usize, task: Erased) {
        // SAFETY: the places of a free local queue are its owner's (invariant 2), the other one always.
        self.place(place).0.with_mut(|at| unsafe { at.write(MaybeUninit::new(task)) });
    }

    /// Any number is a place, so that there is no panic on the way of a task.
    #[inline(always)]
    fn place(&self, place: usize) -> &Place {
        &self.places[place.min(Self::BESIDE)]
    }

    /// # Safety
    ///
    /// The task was installed, and the caller's CAS took it (invariant 1).
    #[inline]
    unsafe fn get(&self, place: usize) -> Erased {
        // SAFETY: as promised by the caller, so it is there and is read once.
        self.place(place).0.with(|at| unsafe { at.read().assume_init() })
    }

    /// Whether the owner may fill it.
    #[inline]
    fn is_free(&self) -> bool {
        // Acquire: pairs with the Release at the end of `steal`.
        Held(self.word.load(Acquire)).len() == 0
    }

    /// Whether there is nothing in it. While it is being stolen there is.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tasks are in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        Held(self.word.load(Relaxed)).len()
    }

    /// A value that stays the same while nothing is taken from a local queue that is not empty, and that
    /// does not come back; none if the local queue is empty. Two equal ages a while apart mean that
    /// these tasks are stuck behind whatever their owner is doing.
    pub(crate) fn age(&self) -> Option<u64> {
        Some(Held(self.word.load(Acquire))).filter(|held| held.len() > 0).map(|held| held.0)
    }
}

impl Drop for LocalQueue {
    fn drop(&mut self) {
        while let Some(task) = self.next() {
            drop(task);
        }
    }
}
