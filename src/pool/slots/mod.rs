//! Where handles, strands, timers and rings live: type-stable slots, each governed by one word.
//!
//! # The problem
//!
//! A kernel event names its handle by a number that was given out long ago. By the time the event is
//! looked at, the handle may have been closed, its slot freed and let to another, and several
//! threads may hold such an event, a queue entry and a `deregister` for it at once. One word per slot
//! settles all of it, and every transition is a CAS that includes the generation, so nothing that is
//! late can touch the next tenant.
//!
//! # The word
//!
//! ```text
//! { generation: 32, …: 1, resumed: 1, told: 1, staged: 1, state: 4, waited: 1, paused: 1, …: 14, ready: 8 }
//! ```
//!
//! | state | the object | entries that name the slot | who owns the payload |
//! |---|---|---|---|
//! | FREE | none | the free list | the table |
//! | IDLE | waits for readiness | none | no thread runs it |
//! | ARMED | a timer that waits, or a handle that waits for a time alone | one, in a timer intake or wheel; *staged*: none | no thread runs it |
//! | QUEUED | runnable: an activation | one, in ready work | no thread runs it |
//! | RUNNING | its handler runs, or it is being registered or seized | none | the runner, or who registers or seizes it |
//! | CLOSING | its handler runs, to be closed after | none | the runner |
//! | ORPHAN | being closed | one | the closer |
//! | DEAD | closed | one; its finder frees the slot | none, it is empty |
//! | CLOSED | being closed | none | the closer, who frees the slot |
//!
//! ```text
//!            ready            claim            close
//!   ┌─ IDLE ───────► QUEUED ───────► RUNNING ───────► CLOSING ──────┐ return of the handler
//!   │   ▲  ARMED ──►   │ ▲  requeue   │ │                           ▼
//!   │   └───┼──────────┼─┴────────────┘ └─ done ─────────────────► CLOSED ──► FREE
//!   │       └─ close ──┴───────► ORPHAN ── closer done ──► DEAD ── entry found ──► FREE
//!   └────── close ───────────────────│──────── entry found first ──► CLOSED
//! ```
//!
//! A handle that is *paused* is not claimed: what arrives is kept in `ready`. Its handler can pause it by its answer, which
//! others may have resumed while it ran: so that is remembered (*resumed*), and a pause by an answer ends at once if it
//! was resumed during the run. A pause by another thread that comes after that stays.
//!
//! A *withdrawal* is a close that leaves a slot alone whose handler runs. Who *seizes* a handle that waits is its runner,
//! without running it.
//!
//! # Invariants
//!
//! 1. At most one entry in any queue, stack, intake or wheel names a slot, and a slot with an entry is
//!    never freed: so the one `next` link serves every list, and lists need no reclamation scheme.
//! 2. The payload is touched only by its owner of the table above.
//! 3. Freeing adds one to the generation. A generation returns after 2^32 tenancies of one slot.
//! 4. Readiness that arrives in any state but FREE, ORPHAN, DEAD, CLOSED is kept in `ready` until a
//!    claim takes it. Nothing else clears it, so no event is lost.
//! 5. *resumed* is there in RUNNING only: a run begins and ends without it.
//!
//! # Orderings
//!
//! Whoever gives the payload up changes the word with Release, whoever becomes its owner with
//! Acquire: `finish` → `claim`, `publish` → `claim`, `finish` → `close`, `close` → `free` → `allocate`
//! (through the free list). Every change is a read-modify-write, so a Release sequence is never broken.
#![allow(unsafe_code, reason = "the payload's owner is decided by the word")]

use crate::queue::{ClosureType, Erased, Run};
use crate::source::Ready;
use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use crate::time::WheelEntries;
use crate::trace::Name;
use core::any::Any;
use std::os::fd::RawFd;
use std::sync::Arc;

mod descriptors;
mod handles;
mod slab;

pub(crate) use handles::{Abandoned, Handles, with_claimed};
pub(crate) use slab::{Entry, Slab};

use super::handler::{EventKind, Flow};
use crate::contain::contain;

const STATE_SHIFT: u32 = 24;
const STATE: u64 = 0xf << STATE_SHIFT;
const FREE: u64 = 0;
const IDLE: u64 = 1 << STATE_SHIFT;
const ARMED: u64 = 2 << STATE_SHIFT;
const QUEUED: u64 = 3 << STATE_SHIFT;
const RUNNING: u64 = 4 << STATE_SHIFT;
const CLOSING: u64 = 5 << STATE_SHIFT;
const ORPHAN: u64 = 6 << STATE_SHIFT;
const DEAD: u64 = 7 << STATE_SHIFT;
const CLOSED: u64 = 8 << STATE_SHIFT;

/// ARMED, and no leader has seen it (`leader/staging.rs`).
const STAGED: u64 = 1 << 28;
/// PAUSED, and the handler has been told in this pause of what [passes one](PASSES_PAUSE).
const TOLD: u64 = 1 << 29;
/// RUNNING, and resumed since the run began.
const RESUMED: u64 = 1 << 30;
const WAITED: u64 = 1 << 23;
const PAUSED: u64 = 1 << 22;
const READY: u64 = 0xff;
/// Readiness that reaches the handler of an edge-triggered handle even while it is paused, once in each pause: the
/// kernel may report one hang-up several times. Nothing reaches a level-triggered one, whose state would be reported
/// again and again.
const PASSES_PAUSE: u64 = (Ready::ERROR.bits() | Ready::HANG_UP.bits()) as u64;
const GENERATION_SHIFT: u32 = 32;

/// The deadline of a timer that rests IDLE: it runs when it is called.
pub(crate) const NEVER: u64 = u64::MAX;

/// A slot and which of its tenants is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Key {
    /// As the kernel carries it: `{ generation: 32, index: 32 }`.
    pub(crate) fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_token(token: u64) -> Self {
        Self { index: token as u32, generation: (token >> 32) as u32 }
    }
}

/// What a slot runs when it is activated.
pub(crate) trait Activity: Send {
    /// Runs the handler once. `ready` is what arrived since the last run.
    fn run(&mut self, ready: Ready) -> Flow;
    /// Told its slot and tenancy before another thread can know them.
    fn let_to(&mut self, _key: Key) {}
    /// The descriptor that it has now, which a handler may have exchanged.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
    /// What its runs are called.
    fn name(&self) -> Name {
        Name::of::<Self>()
    }
    /// Gives back what was registered, when the handle is deregistered.
    fn into_io(self: Box<Self>) -> Box<dyn Any + Send>;
    /// For hosted handles: what happened, the host's tag, and where the host takes it.
    fn hand_out(&self, _ready: Ready) -> (EventKind, u64, Arc<dyn Takes>) {
        unreachable!("not hosted")
    }
    /// For periodic timers and what is timed: when the next run is due, asked after each run. [`NEVER`]: when
    /// something happens.
    fn next_deadline(&mut self, _now: u64) -> u64 {
        unreachable!("only timers have deadlines")
    }
}

/// Where a host takes the events of hosted handles.
pub(crate) trait Takes: Send + Sync {
    /// What has happened to `key`, whose runner is who takes it from here. False: the host is gone.
    fn put(&self, kind: EventKind, tag: u64, key: Key) -> bool;
}

/// A slot's content, owned as the table in the module's head says.
pub(crate) enum Payload {
    Empty,
    /// Runs any number of times, under this name.
    Activity(Box<dyn Activity>, Name),
    /// A one-shot timer's closure: runs once, and its slot is freed before it does.
    Once(Erased),
}

// The name lies beside the tag: it makes no slot larger.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Payload>() <= 64);

impl Payload {
    /// Of a one-shot timer.
    pub(crate) fn closure_type(&self) -> Option<ClosureType> {
        match self {
            Self::Once(task) => Some(task.closure_type()),
            Self::Activity(..) | Self::Empty => None,
        }
    }

    pub(crate) fn activity(activity: Box<dyn Activity>) -> Self {
        let name = activity.name();
        Self::Activity(activity, name)
    }

    /// Whether its descriptor is still `number`. If a handler has closed the one that was registered,
    /// the number may be another one's by now.
    pub(crate) fn still_has(&self, number: RawFd) -> bool {
        let Self::Activity(activity, _) = self else { return false };
        contain(|| activity.descriptor()) == Some(Some(number))
    }
}

/// How to treat a slot; fixed while it is let.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) set: u16,
    pub(crate) may_block: bool,
    pub(crate) level: bool,
    /// A timer, or what has times to run at: it rests ARMED, unless its deadline is [`NEVER`].
    pub(crate) timer: bool,
    /// A one-shot timer: its slot is free before its closure runs.
    pub(crate) once: bool,
    /// It has no handler: its events go to a completion queue.
    pub(crate) hosted: bool,
    /// Its closure can be forgotten.
    pub(crate) plain: bool,
    /// It is of those who stand on the pool: no number of the program's names it.
    pub(crate) service: bool,
    /// Its descriptor is the program's, which may close it behind the pool's back.
    pub(crate) lent: bool,
    /// Interest bits, needed to re-arm level-triggered handles.
    pub(crate) interest: u8,
}

impl Traits {
    /// Whether nothing but its handler is to be run, and one that waits leaves nothing to be done.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        !(self.may_block || self.level || self.timer || self.once || self.hosted)
    }

    fn pack(self) -> u32 {
        u32::from(self.set)
            | u32::from(self.may_block) << 16
            | u32::from(self.level) << 17
            | u32::from(self.timer) << 18
            | u32::from(self.once) << 19
            | u32::from(self.hosted) << 20
            | u32::from(self.plain) << 21
            | u32::from(self.service) << 22
            | u32::from(self.lent) << 23
            | u32::from(self.interest) << 24
    }

    #[inline]
    fn unpack(bits: u32) -> Self {
        Self {
            set: bits as u16,
            may_block: bits & 1 << 16 != 0,
            level: bits & 1 << 17 != 0,
            timer: bits & 1 << 18 != 0,
            once: bits & 1 << 19 != 0,
            hosted: bits & 1 << 20 != 0,
            plain: bits & 1 << 21 != 0,
            service: bits & 1 << 22 != 0,
            lent: bits & 1 << 23 != 0,
            interest: (bits >> 24) as u8,
        }
    }
}

/// What a popped or expired entry turned out to be.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Claim {
    /// The caller runs it, with this readiness.
    Run(Ready),
    /// It had been closed, and the slot must be freed by the caller now.
    Free,
    /// It is being closed, and the closer frees the slot; or it was paused, and rests.
    Nothing,
}

/// What became of a slot after its handler returned.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub(crate) enum Finish {
    /// It rests (IDLE, or paused).
    Rests,
    /// New readiness arrived meanwhile; the caller still runs it.
    More(Ready),
    /// It is QUEUED again: the caller pushes it.
    Queued,
    /// It is ARMED: the caller puts it into a timer intake.
    Armed,
    /// It is CLOSED: the caller drops the payload and frees the slot.
    Close,
    /// It is CLOSED and a thread waits for the payload: the caller wakes the waiters.
    Announce,
}

/// What `close` found.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub(crate) enum Close {
    /// The slot has another tenant or none.
    Stale,
    /// The payload is the caller's; then `closer_done`.
    Mine,
    /// The handler is running; the runner closes it (or hands it over, if the caller waits).
    Running,
}

/// What `seize` made of a slot.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub(crate) enum Seized {
    /// It is RUNNING, and the caller finishes it.
    Running,
    /// It is closed; then `closer_done`.
    Closed,
}

/// A timer that is due.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Expire {
    /// It is QUEUED now: push it.
    Queue,
    /// It was closed: free the slot.
    Free,
    /// It rests paused, or its closer frees it.
    Nothing,
}

/// One type-stable slot. What a run of a handler needs comes first.
#[repr(C)]
pub(crate) struct Slot {
    word: AtomicU64,
    next: AtomicU32,
    traits: AtomicU32,
    /// When a timer is due, in nanoseconds; may be postponed while the wheel holds it.
    deadline: AtomicU64,
    wheel_deadline: AtomicU64,
    payload: UnsafeCell<Payload>,
    descriptor: AtomicI32,
    wheel_link: AtomicU32,
}

// SAFETY: the payload is Send, and the word lets one thread at a time touch it (invariant 2).
unsafe impl Sync for Slot {}
// SAFETY: as above; nothing in a slot is tied to a thread.
unsafe impl Send for Slot {}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(FREE),
            next: AtomicU32::new(0),
            traits: AtomicU32::new(0),
            descriptor: AtomicI32::new(-1),
            wheel_link: AtomicU32::new(0),
            wheel_deadline: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            payload: UnsafeCell::new(Payload::Empty),
        }
    }

    #[inline]
    pub(crate) fn traits(&self) -> Traits {
        // Relaxed: written before the slot was published, read by those who hold its key.
        Traits::unpack(self.traits.load(Relaxed))
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.descriptor.load(Relaxed)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    /// Before the timer is armed.
    #[inline]
    pub(crate) fn set_deadline(&self, deadline: u64) {
        // Release: pairs with the Acquire in `postpone`. For the leader, the intake orders it.
        self.deadline.store(deadline, Release);
    }

    /// Puts tenant `generation` off until `deadline`, or leaves it if that is earlier. False: it is no
    /// timer that waits. The leader may see it at any moment: the wheel looks again when the old time
    /// has come.
    pub(crate) fn postpone(&self, generation: u32, deadline: u64) -> bool {
        // Acquire, here and below: whoever sees the next tenant's deadline sees that it is the next.
        let mut before = self.deadline.load(Acquire);
        loop {
            if !self.is_armed(generation) {
                return false;
            }
            if deadline <= before {
                return true;
            }
            // A late call fails here: the next tenant has a deadline of its own.
            match self.deadline.compare_exchange_weak(before, deadline, Relaxed, Acquire) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        (self.word.load(Relaxed) >> GENERATION_SHIFT) as u32
    }

    /// Changes the word of tenant `generation` by `step` until the CAS succeeds. None: another
    /// tenant lives here, or `step` declined.
    #[inline]
    fn change<R>(
        &self,
        generation: u32,
        mut step: impl FnMut(u64) -> Option<(u64, R)>,
    ) -> Option<R> {
        let mut word = self.word.load(Acquire);
        loop {
            if (word >> GENERATION_SHIFT) as u32 != generation {
                return None;
            }
            let (after, result) = step(word)?;
            match self.word.compare_exchange_weak(word, after, AcqRel, Acquire) {
                Ok(_) => return Some(result),
                Err(now) => word = now,
            }
        }
    }

    // --- by whoever brings readiness -----------------------------------------------------------

    /// Adds readiness. True: it became QUEUED, and the caller pushes it.
    #[inline]
    pub(crate) fn ready(&self, generation: u32, ready: Ready) -> bool {
        let bits = u64::from(ready.bits());
        self.change(generation, |word| match word & STATE {
            IDLE if word & PAUSED == 0 || bits & self.passes_pause(word) != 0 => {
                Some((word & !STATE | QUEUED | bits, true))
            }
            IDLE | ARMED | QUEUED | RUNNING => Some((word | bits, false)),
            _ => None,
        })
        .unwrap_or(false)
    }

    /// Makes an object runnable that has work of its own (strand, ring). One relaxed-cost load when
    /// it is queued already. The caller has published the work before and passed a barrier.
    #[inline]
    pub(crate) fn activate(&self, generation: u32) -> bool {
        self.ready(generation, Ready::READABLE)
    }

    // --- staged timers ---------------------------------------------------------------------------

    /// As `SlotTable::free`, for an entry that stays with the caller, who has counted it.
    #[inline]
    pub(crate) fn vacate(&self) {
        let generation = self.generation().wrapping_add(1);
        // Release: what the tenant left behind is complete before the word names no tenant.
        self.word.store(u64::from(generation) << GENERATION_SHIFT | FREE, Release);
    }

    /// Whether tenant `generation` is a timer that no leader has seen.
    pub(crate) fn is_staged(&self, generation: u32) -> bool {
        let word = self.word.load(Acquire);
        (word >> GENERATION_SHIFT) as u32 == generation && word & (STATE | STAGED) == ARMED | STAGED
    }

    /// Takes a staged timer out of its shard. True: the caller puts it into an intake, or a wheel.
    #[must_use]
    pub(crate) fn unstage(&self, generation: u32) -> bool {
        self.change(generation, |word| {
            (word & (STATE | STAGED) == ARMED | STAGED).then_some((word & !STAGED, ()))
        })
        .is_some()
    }

    // --- by the leader, for timers -------------------------------------------------------------

    /// A timer left the wheel because it is due.
    pub(crate) fn expire(&self) -> Expire {
        let mut word = self.word.load(Acquire);
        loop {
            let (after, result) = match word & STATE {
                ARMED if word & PAUSED != 0 => {
                    (word & !STATE | IDLE | u64::from(Ready::READABLE.bits()), Expire::Nothing)
                }
                ARMED => {
                    (word & !STATE | QUEUED | u64::from(Ready::READABLE.bits()), Expire::Queue)
                }
                ORPHAN => (word & !STATE | CLOSED, Expire::Nothing),
                DEAD => return Expire::Free,
                state => unreachable!("a timer entry in state {:#x}", state >> STATE_SHIFT),
            };
            match self.word.compare_exchange_weak(word, after, AcqRel, Acquire) {
                Ok(_) => return result,
                Err(now) => word = now,
            }
        }
    }

    /// Whether the wheel holds this entry for nothing.
    pub(crate) fn is_dead(&self) -> bool {
        self.word.load(Acquire) & STATE == DEAD
    }

    // --- by whoever popped an entry ------------------------------------------------------------

    /// Takes a popped activation: QUEUED → RUNNING, and its readiness.
    #[inline]
    pub(crate) fn claim(&self) -> Claim {
        let mut word = self.word.load(Acquire);
        loop {
            let (after, result) = match word & STATE {
                QUEUED if word & PAUSED != 0 && word & self.passes_pause(word) == 0 => {
                    (word & !STATE | IDLE, Claim::Nothing)
                }
                QUEUED => (begins(word), Claim::Run(Ready::from_bits((word & READY) as u8))),
                ORPHAN => (word & !STATE | CLOSED, Claim::Nothing),
                DEAD => return Claim::Free,
                state => unreachable!("an activation in state {:#x}", state >> STATE_SHIFT),
            };
            match self.word.compare_exchange_weak(word, after, AcqRel, Acquire) {
                Ok(_) => return result,
                Err(now) => word = now,
            }
        }
    }

    // --- by the runner -------------------------------------------------------------------------

    /// The handler of an ordinary handle waits, and sees to it itself that all of its readiness was used:
    /// RUNNING → IDLE. False: something has happened meanwhile, and [`finish`](Self::finish) says what
    /// becomes of it.
    #[inline]
    pub(crate) fn rest(&self) -> bool {
        let word = self.word.load(Relaxed);
        // AcqRel: as every change of hands.
        let after = word & !(STATE | RESUMED) | IDLE;
        word & (STATE | READY) == RUNNING
            && self.word.compare_exchange(word, after, AcqRel, Relaxed).is_ok()
    }

    /// The handler returned `flow`; `kept` is the readiness it was given, which stays with it unless
    /// it saw EAGAIN. If there is new readiness, it is asked whether that `yields`: is queued behind
    /// other work instead of being handled at once.
    #[inline]
    pub(crate) fn finish(&self, flow: Flow, kept: Ready, yields: impl Fn() -> bool) -> Finish {
        let kept = u64::from(kept.bits());
        let timer = self.traits().timer && self.deadline() != NEVER;
        let mut word = self.word.load(Acquire);
        loop {
            let passes =
                if word & PAUSED != 0 || flow == Flow::Pause { self.passes_pause(word) } else { 0 };
            let (after, result) = finish_step(word, flow, kept, passes, &yields, timer);
            match self.word.compare_exchange_weak(word, after, AcqRel, Acquire) {
                Ok(_) => return result,
                Err(now) => word = now,
            }
        }
    }

    /// Runs `f` on the payload.
    ///
    /// # Safety
    /// The caller owns the payload by the table in the module's head: it claimed the slot and has
    /// not finished, or it closed it and has not freed it, or it allocated and has not published it.
    #[inline]
    pub(crate) unsafe fn payload<R>(&self, f: impl FnOnce(&mut Payload) -> R) -> R {
        // SAFETY: the caller is the only owner (invariant 2).
        self.payload.with_mut(|payload| f(unsafe { &mut *payload }))
    }

    // --- by whoever closes ---------------------------------------------------------------------

    /// Closes tenant `generation`. With `wait`, a running handler's payload is left for the caller
    /// to fetch once `is_handed_over`.
    pub(crate) fn close(&self, generation: u32, wait: bool) -> Close {
        self.change(generation, |word| match word & STATE {
            RUNNING => {
                let waited = if wait { WAITED } else { 0 };
                Some((word & !STATE | CLOSING | waited, Close::Running))
            }
            _ => Some((withdrawn(word)?, Close::Mine)),
        })
        .unwrap_or(Close::Stale)
    }

    /// Closes tenant `generation` unless its handler runs, which goes on then. True: the payload is the caller's.
    #[must_use]
    pub(crate) fn withdraw(&self, generation: u32) -> bool {
        self.change(generation, |word| Some((withdrawn(word)?, ()))).is_some()
    }

    /// Takes the payload of tenant `generation` unless its handler runs: to look at it, as a runner that will
    /// [finish](Self::finish), or, if it is QUEUED, as by [`withdraw`](Self::withdraw).
    pub(crate) fn seize(&self, generation: u32) -> Option<Seized> {
        self.change(generation, |word| match word & STATE {
            IDLE => Some((word & !STATE | RUNNING, Seized::Running)),
            _ => Some((withdrawn(word)?, Seized::Closed)),
        })
    }

    /// After `Close::Running` with `wait`: the runner has handed the payload over.
    pub(crate) fn is_handed_over(&self, generation: u32) -> bool {
        let word = self.word.load(Acquire);
        (word >> GENERATION_SHIFT) as u32 == generation && word & STATE == CLOSED
    }

    /// The closer has emptied the payload. True: the slot is free of entries, and the caller frees
    /// it; false: whoever finds the remaining entry does.
    #[must_use]
    pub(crate) fn closer_done(&self) -> bool {
        let mut word = self.word.load(Acquire);
        loop {
            match word & STATE {
                CLOSED => return true,
                ORPHAN => {}
                state => unreachable!("closed in state {:#x}", state >> STATE_SHIFT),
            }
            let after = word & !STATE | DEAD;
            match self.word.compare_exchange_weak(word, after, AcqRel, Acquire) {
                Ok(_) => return false,
                Err(now) => word = now,
            }
        }
    }

    /// Whether tenant `generation` is still registered or running.
    pub(crate) fn is_open(&self, generation: u32) -> bool {
        let word = self.word.load(Acquire);
        (word >> GENERATION_SHIFT) as u32 == generation
            && matches!(word & STATE, IDLE | ARMED | QUEUED | RUNNING | CLOSING)
    }

    /// Whether the timer has neither begun nor been closed.
    pub(crate) fn is_armed(&self, generation: u32) -> bool {
        let word = self.word.load(Acquire);
        (word >> GENERATION_SHIFT) as u32 == generation && word & STATE == ARMED
    }

    /// The deadline of a timer that waits for it, and is not paused. One that is being let to another may have either's.
    pub(crate) fn waits_until(&self) -> Option<u64> {
        let word = self.word.load(Acquire);
        (word & STATE == ARMED && word & PAUSED == 0).then(|| self.deadline())
    }

    /// The descriptor that is waited for here, unless it is paused. It may be closed by now.
    pub(crate) fn waits_for(&self) -> Option<RawFd> {
        let word = self.word.load(Acquire);
        let waits = word & STATE == IDLE && word & PAUSED == 0;
        Some(self.descriptor()).filter(|&descriptor| waits && descriptor >= 0)
    }

    /// Whether a one-shot timer lives here that has neither begun nor been closed.
    pub(crate) fn is_waiting_timer(&self) -> bool {
        let state = self.word.load(Acquire) & STATE;
        matches!(state, ARMED | QUEUED | RUNNING) && self.traits().once
    }

    /// Whether a one-shot timer lives here that is due and has not begun.
    pub(crate) fn is_due_timer(&self) -> bool {
        // Acquire: pairs with the Release in `free`; a runner's role says so before it frees.
        let state = self.word.load(Acquire) & STATE;
        matches!(state, QUEUED | RUNNING) && self.traits().once
    }

    /// The source refused the descriptor: there is nothing to take off it.
    pub(crate) fn forget_descriptor(&self) {
        self.descriptor.store(-1, Relaxed);
    }

    // --- pause ---------------------------------------------------------------------------------

    /// What [passes a pause](PASSES_PAUSE) here, and now.
    fn passes_pause(&self, word: u64) -> u64 {
        if word & TOLD != 0 || self.traits().level { 0 } else { PASSES_PAUSE }
    }

    /// Holds further activations back. False: stale.
    pub(crate) fn pause(&self, generation: u32) -> bool {
        self.change(generation, |word| match word & STATE {
            IDLE | ARMED | QUEUED | RUNNING => Some((word | PAUSED, ())),
            _ => None,
        })
        .is_some()
    }

    /// Ends a pause, also one that the handler that runs asks for when it returns. Some(true): readiness had been held back, the slot is QUEUED, push it.
    pub(crate) fn resume(&self, generation: u32) -> Option<bool> {
        self.change(generation, |word| match word & STATE {
            IDLE if word & READY != 0 => Some((word & !(STATE | PAUSED | TOLD) | QUEUED, true)),
            RUNNING => Some((word & !(PAUSED | TOLD) | RESUMED, false)),
            IDLE | ARMED | QUEUED => Some((word & !(PAUSED | TOLD), false)),
            _ => None,
        })
    }
}

/// A run begins, with all readiness. In a pause, what it is told of has passed that.
#[inline]
fn begins(word: u64) -> u64 {
    let told = if word & PAUSED != 0 { TOLD } else { 0 };
    word & !(STATE | READY | RESUMED) | RUNNING | told
}

/// What a close makes of a slot whose handler does not run. None: it runs, or the slot is closed already.
fn withdrawn(word: u64) -> Option<u64> {
    match word & STATE {
        IDLE => Some(word & !STATE | CLOSED),
        ARMED if word & STAGED != 0 => Some(word & !(STATE | STAGED) | CLOSED),
        ARMED | QUEUED => Some(word & !STATE | ORPHAN),
        _ => None,
    }
}

/// RUNNING or CLOSING → what the handler's answer makes of it. `passes`: what [passes a pause](PASSES_PAUSE), if
/// there is one.
#[inline]
fn finish_step(
    word: u64,
    flow: Flow,
    kept: u64,
    passes: u64,
    yields: impl Fn() -> bool,
    timer: bool,
) -> (u64, Finish) {
    let arrived = word & READY;
    let into = |state: u64, ready: u64| word & !(STATE | READY | RESUMED) | state | ready;
    if word & STATE == CLOSING {
        let finish = if word & WAITED != 0 { Finish::Announce } else { Finish::Close };
        return (into(CLOSED, 0), finish);
    }
    debug_assert_eq!(word & STATE, RUNNING);
    let paused = word & PAUSED != 0;
    // A pause that was resumed before it was made ends at once: what the handler was called for is delivered again.
    let flow = if flow == Flow::Pause && word & RESUMED != 0 { Flow::Again } else { flow };
    match flow {
        Flow::Done => (into(CLOSED, 0), Finish::Close),
        Flow::Pause if timer => (into(ARMED, 0) | PAUSED, Finish::Armed),
        Flow::Wait | Flow::Again if timer => (into(ARMED, 0), Finish::Armed),
        Flow::Pause if arrived & passes != 0 => {
            (into(QUEUED, arrived | kept) | PAUSED, Finish::Queued)
        }
        Flow::Pause => (into(IDLE, arrived | kept) | PAUSED, Finish::Rests),
        Flow::Again if paused && arrived & passes == 0 => {
            (into(IDLE, arrived | kept), Finish::Rests)
        }
        Flow::Again => (into(QUEUED, arrived | kept), Finish::Queued),
        Flow::Wait if arrived == 0 => (into(IDLE, 0), Finish::Rests),
        Flow::Wait if paused && arrived & passes == 0 => (into(IDLE, arrived), Finish::Rests),
        Flow::Wait if yields() => (into(QUEUED, arrived), Finish::Queued),
        Flow::Wait => (begins(word), Finish::More(Ready::from_bits(arrived as u8))),
    }
}

impl Entry for Slot {
    const CHUNK: usize = if cfg!(loom) { 4 } else { 1024 };

    fn new(_: u32) -> Self {
        Self::new()
    }

    fn link(&self) -> &AtomicU32 {
        &self.next
    }
}

/// All slots of a pool.
pub(crate) struct SlotTable {
    slots: Slab<Slot>,
    in_use: AtomicU64,
}

impl SlotTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self { slots: Slab::new(limit), in_use: AtomicU64::new(0) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.slots.limit()
    }

    /// Slots that are let, for statistics.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use.load(Relaxed)
    }

    /// The slot of an index that was given out.
    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index]
    }

    /// The slot that a token from outside names, if that index was ever given out.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index)
    }

    /// Every index that was ever let, for the sweep at shutdown.
    pub(crate) fn indices(&self) -> core::ops::Range<u32> {
        self.slots.indices()
    }

    /// Lets a slot and fills it; no thread sees it before `publish`. The payload comes back when all
    /// slots are in use.
    pub(crate) fn allocate(
        &self,
        traits: Traits,
        descriptor: i32,
        mut payload: Payload,
    ) -> Result<Key, Payload> {
        let Some(index) = self.slots.take() else { return Err(payload) };
        let slot = self.slot(index);
        slot.traits.store(traits.pack(), Relaxed);
        slot.descriptor.store(descriptor, Relaxed);
        let key = Key { index, generation: slot.generation() };
        if let Payload::Activity(activity, _) = &mut payload {
            activity.let_to(key);
        }
        // SAFETY: the slot came off the free list and is not published yet.
        unsafe { slot.payload(|place| *place = payload) };
        self.in_use.fetch_add(1, Relaxed);
        Ok(key)
    }

    /// Takes an entry that is free, and is neither let nor counted yet.
    pub(crate) fn take(&self) -> Option<u32> {
        self.slots.take()
    }

    /// The same, several, by one change of the shared word; none are made anew.
    pub(crate) fn take_free(&self, most: usize, taken: &mut Vec<u32>) {
        self.slots.take_free(most, taken);
    }

    /// Gives vacated entries back.
    pub(crate) fn give_back_all(&self, indices: &[u32]) {
        self.slots.give_back_all(indices);
    }

    /// Lets a taken entry to a timer that no leader is told of, and makes it known. The caller counts it.
    #[inline]
    pub(crate) fn stage<F: Run>(
        &self,
        index: u32,
        set: u16,
        work: F,
        deadline: u64,
        place: u32,
    ) -> Key {
        let plain = const { !core::mem::needs_drop::<F>() && Erased::fits::<F>() };
        let service = const { !F::ASKED_FOR };
        let traits = Traits { set, timer: true, once: true, plain, service, ..Traits::default() };
        let slot = self.slot(index);
        slot.traits.store(traits.pack(), Relaxed);
        slot.descriptor.store(-1, Relaxed);
        slot.wheel_link.store(place, Relaxed);
        slot.set_deadline(deadline);
        let free = slot.word.load(Relaxed);
        // SAFETY: the slot is free and not published yet, and what is free holds nothing to be dropped.
        // `fill` is told the type that `hollow` was.
        unsafe {
            slot.payload(|place| {
                core::ptr::write(place, Payload::Once(Erased::hollow::<F>()));
                let Payload::Once(task) = place else { unreachable!("written just now") };
                task.fill(work);
            });
        }
        // Release: as in `publish`.
        slot.word.store(free | ARMED | STAGED, Release);
        Key { index, generation: (free >> GENERATION_SHIFT) as u32 }
    }

    /// Closes a staged timer, whose place is the caller's, as is its closure if it has to be dropped. Then
    /// `vacate`, or `free`.
    #[inline]
    pub(crate) fn close_staged(
        &self,
        slot: &Slot,
        generation: u32,
        closure: &mut Payload,
    ) -> Option<u32> {
        slot.change(generation, |word| {
            let staged = word & (STATE | STAGED) == ARMED | STAGED;
            staged.then_some((word & !(STATE | STAGED) | CLOSED, ()))
        })?;
        let plain = slot.traits().plain;
        // SAFETY: it was closed just now, by this thread. What is plain need not be dropped.
        unsafe {
            slot.payload(|old| match plain {
                true => core::ptr::write(old, Payload::Empty),
                false => *closure = core::mem::replace(old, Payload::Empty),
            });
        }
        Some(slot.wheel_link.load(Relaxed))
    }

    /// Makes an allocated slot known.
    pub(crate) fn publish(&self, key: Key, start: Start) {
        let state = match start {
            Start::Idle => IDLE,
            Start::Registering { paused: false } => RUNNING,
            Start::Registering { paused: true } => RUNNING | PAUSED,
            Start::Armed => ARMED,
        };
        let word = u64::from(key.generation) << GENERATION_SHIFT | state;
        // Release: the payload is complete before the word says so; pairs with `claim`.
        self.slot(key.index).word.store(word, Release);
    }

    /// Returns a slot whose payload its owner has emptied.
    pub(crate) fn free(&self, index: u32) {
        self.slot(index).vacate();
        self.in_use.fetch_sub(1, Relaxed);
        self.slots.give_back(index);
    }
}

/// The state a slot begins in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    Idle,
    /// The caller is its owner, as a runner is, until it has [finished](Slot::finish): what comes meanwhile
    /// waits.
    Registering {
        paused: bool,
    },
    Armed,
}

impl crate::queue::Links for SlotTable {
    #[inline]
    fn next(&self, index: u32) -> &AtomicU32 {
        self.slot(index).link()
    }
}

impl WheelEntries for SlotTable {
    #[inline]
    fn link(&self, index: u32) -> &AtomicU32 {
        &self.slot(index).wheel_link
    }

    #[inline]
    fn deadline(&self, index: u32) -> &AtomicU64 {
        &self.slot(index).wheel_deadline
    }
}
