//! Recycled records with two typed ends: what lies between a task's handle and its closure, when the
//! task may run more than once, and others than these two may bring it to an end.
//!
//! # The word
//!
//! ```text
//! { generation: 32, attempt: 8, …, noted: 1, taken: 1, odd: 1, plain: 1, overtaken: 1, returned: 1, filed: 1, parked: 1, let: 1, ending: 1,
//!   handle left: 1, runner left: 1, value: 1, notify: 1, waiting: 1, late: 1, asked: 1, status: 3 }
//! ```
//!
//! | status | set by | from |
//! |---|---|---|
//! | PENDING | whoever frees the record | any |
//! | RUNNING | `begin`, by the thread that runs the attempt | PENDING, RETRYING |
//! | RETRYING | `retry`, by the thread whose attempt has failed; `overtake`, by anybody | RUNNING |
//! | an end | the runner (`finish`), or anybody (`end_if`) | any but an end |
//!
//! ```text
//!             begin             finish(value)
//!   PENDING ─────────► RUNNING ───────────────►┐
//!      │                │   ▲                  ├─ an end ──the last one leaves──► free
//!      │         retry  ▼   │ begin            │
//!      │              RETRYING                 │
//!      └────────────────┴───┴──── end_if ─────►┘
//! ```
//!
//! `asked` and `late` speak to the function only; they decide nothing here.
//!
//! # Where it lies
//!
//! A record is one line of the cache: it goes to the thread that runs the task and comes back with what
//! became of it, and time is what a line takes from one core's cache to another's. What few tasks need
//! lies in the record's *annex*: the room, and whatever the tenant says. A success without a value, that
//! of most tasks, takes no room: `plain` in the word says all of it.
//!
//! # Waiting for its time
//!
//! While a task waits for its time its closure lies in the room, and the record's index in a wheel: so
//! it takes no more memory than its record and the annex. Two marks say so. Whoever clears `parked` has the closure,
//! and with it the runner: whoever takes the index out of the wheel, or whoever ends the task, who leaves
//! the index behind. `filed` is cleared by the holder of the wheel alone.
//!
//! ```text
//!   park ─► parked, filed ──unfile──► neither: the closure is the caller's
//!                  │
//!                  └─unpark─► filed ──unfile──► neither: freed, if both ends have left
//! ```
//!
//! # Overtaking
//!
//! A task that allows it gets its next attempt though the last one has not returned. Then the runner
//! passes to who overtakes, and the attempt that returns must ask whether it is the runner still:
//!
//! ```text
//!   RUNNING(n) ──claim: returned──► its runner goes on: finish or retry
//!       └────overtake: overtaken, attempt + 1──► RETRYING ─► RUNNING(n + 2) …   claim(n): no
//! ```
//!
//! One of `claim` and `overtake` changes the word first. `overtaken` keeps the record until the last of
//! those attempts has returned. The attempt's number in the word wraps; who claims compares the whole one,
//! too, which is noted before `begin`.
//!
//! # How many attempts
//!
//! The tenant notes the number of an attempt before it begins, since the attempt may be over a moment later. An
//! end that comes in between finds one too many. `odd` is set if as many have begun, so whoever asks can tell.
//!
//! # Invariants
//!
//! 1. One compare-exchange sets an end. Who made it, and nobody else, counts and tells; nobody does of a task that
//!    was not taken in (`forget`).
//! 2. A closure is called only after a `begin` that succeeded, by the one thread that has the runner.
//! 3. The room is the runner's until it has set an end with `value`, then the handle's. An end that
//!    came first leaves it with the runner, which drops what it put there.
//!    `taken` says that the handle has done so; it is the handle's alone, who may go without setting it.
//! 4. A record is freed by the one change that makes "runner left, handle left, not ending, not filed, not
//!    overtaken" true, and the generation grows with it: so nothing that is late touches the next tenant. A
//!    handle that sees the runner gone and none of these marks is alone, and needs no read-modify-write.
//! 5. Whoever ends a task without being its runner marks the word as `ending` by the same change, and
//!    takes the mark back when all have been told: the record cannot be freed under it. Its times are noted after
//!    that change, and before `noted`, which whoever makes a report of it waits for.
//! 6. A closure that is parked is taken by the one change that clears the mark.
//! 7. There is one runner: `overtake` makes it anew by a change that only an attempt which has not
//!    claimed allows, and an attempt that was overtaken uses its own no more.
//!
//! # Orderings
//!
//! An end is set with Release and seen with Acquire: the value, and what the report says; by whoever is not the
//! runner `noted` is set so, too, for the report's sake. Leaving is Release, and freeing Acquire. A waiter reads
//! the epoch, sets `waiting` by a read-modify-write, and then sleeps on the epoch, which changes after an end that
//! saw the mark: no wake-up is lost. `parked` is set with Release and cleared with Acquire: the closure.
#![allow(unsafe_code, reason = "the value is handed over through a word")]

use super::table::{Magazine, RecordTable};
use crate::pool::Entry;
use crate::queue::{ErasedIn, Run};
use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sys::futex::Futex;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::time::Duration;
use std::thread::LocalKey;

const STATUS: u64 = 0b111;
pub(crate) const PENDING: u32 = 0;
pub(crate) const RUNNING: u32 = 1;
pub(crate) const RETRYING: u32 = 2;
/// A task that has this number or a greater one has ended.
pub(crate) const FIRST_END: u32 = 3;
const CANCELLED: u32 = 5;
const REJECTED: u32 = 7;

pub(crate) const ASKED: u64 = 1 << 3;
pub(crate) const LATE: u64 = 1 << 4;
const WAITING: u64 = 1 << 5;
const NOTIFY: u64 = 1 << 6;
const VALUE: u64 = 1 << 7;
const RUNNER_LEFT: u64 = 1 << 8;
const HANDLE_LEFT: u64 = 1 << 9;
const ENDING: u64 = 1 << 10;
const LET: u64 = 1 << 11;
const PARKED: u64 = 1 << 12;
const FILED: u64 = 1 << 13;
/// The attempt that runs has returned, and is not overtaken any more.
const RETURNED: u64 = 1 << 14;
/// Attempts that were overtaken have not returned.
const OVERTAKEN: u64 = 1 << 15;
/// The value is one that takes no room.
const PLAIN: u64 = 1 << 16;
/// So many attempts have begun that it is an odd number.
const ODD: u64 = 1 << 17;
/// The handle has taken what the task has come to.
const TAKEN: u64 = 1 << 18;
/// Who ends it has noted what a report says.
const NOTED: u64 = 1 << 19;
/// Somebody is ending it, a wheel has it, or an attempt that was overtaken.
const KEPT: u64 = ENDING | FILED | OVERTAKEN;
/// The number of the attempt, modulo 256: what is late for one does not meet the next.
const ATTEMPT_SHIFT: u32 = 24;
const ATTEMPT: u64 = 0xff << ATTEMPT_SHIFT;
const GENERATION_SHIFT: u32 = 32;

fn status_of(word: u64) -> u32 {
    (word & STATUS) as u32
}

fn is_ended(word: u64) -> bool {
    status_of(word) >= FIRST_END
}

/// What lived in a record at a moment: a tenancy, its status and its attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen(u64);

impl Seen {
    pub(crate) fn status(self) -> u32 {
        status_of(self.0)
    }

    /// Whether a task lives here that has not ended.
    pub(crate) fn is_live(self) -> bool {
        self.0 & LET != 0 && !is_ended(self.0)
    }

    /// Whether a task lives here, which may have ended.
    pub(crate) fn is_let(self) -> bool {
        self.0 & LET != 0
    }

    pub(crate) fn is_tenant(self, generation: u32) -> bool {
        self.0 & LET != 0 && (self.0 >> GENERATION_SHIFT) as u32 == generation
    }

    pub(crate) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// Whether the handle has taken what the task has come to.
    #[inline]
    pub(crate) fn is_taken(self) -> bool {
        self.has(TAKEN)
    }

    /// Whether somebody is ending it who has yet to note what a report says.
    #[inline]
    pub(crate) fn is_unnoted(self) -> bool {
        self.0 & (ENDING | NOTED) == ENDING
    }

    /// Whether `other` is of the same tenancy.
    pub(crate) fn is_same_task(self, other: Seen) -> bool {
        self.0 >> GENERATION_SHIFT == other.0 >> GENERATION_SHIFT
    }

    /// Whether `other` is of the same attempt.
    pub(crate) fn is_same_attempt(self, other: Seen) -> bool {
        self.0 >> ATTEMPT_SHIFT == other.0 >> ATTEMPT_SHIFT
    }

    fn is_running_in(self, word: u64) -> bool {
        status_of(word) == RUNNING && word & LET != 0 && self.is_same_attempt(Seen(word))
    }
}

/// Whether both ends have left, and nobody else needs it: it must be freed.
fn is_over(word: u64) -> bool {
    word & (RUNNER_LEFT | HANDLE_LEFT | KEPT) == RUNNER_LEFT | HANDLE_LEFT
}

/// What a record holds beside its word, and who hears of its end. Its fields are written again for each
/// tenant, while late ones may still read: so they are atomics.
pub(crate) trait Meta: Default + Send + Sync + Sized + 'static {
    /// What counts the ends; it outlives the record's tenancy.
    type Owner: Copy;
    /// What few tenants need, in the annex.
    type Seldom: Default + Send + Sync;

    fn table() -> &'static RecordTable<Self>;
    /// This thread's few free records of that table.
    fn magazine() -> &'static LocalKey<Magazine<Self>>;
    fn owner(&self) -> Self::Owner;
    /// Whether somebody is to be told of each end.
    fn is_told(owner: Self::Owner) -> bool;
    /// An end was set.
    fn count(owner: Self::Owner, status: u32);
    /// The record is there until this returns. `status` is what has been set; `before` what was.
    fn tell(record: &'static Record<Self>, status: u32, message: Option<&str>);
    /// Code of the program begins to be told of an end, which is counted after that, or has been told.
    fn telling(_owner: Self::Owner, _begins: bool) {}
    /// Calls whoever asked by `Record::ask_to_notify`, and drops what is parked.
    fn notify(record: &'static Record<Self>);
    /// Drops what the tenancy leaves behind.
    fn clear(&self);
    /// The runner goes without having finished. Called before the end is set, if it was not set before.
    fn gone_unrun(_record: &'static Record<Self>) {}
    /// That is its end.
    fn note_unrun(_record: &'static Record<Self>) {}
    /// When it is to be woken; a wheel's while the record is in one.
    fn wake_at(seldom: &Self::Seldom) -> &AtomicU64;
    /// In a forked child no record is given back.
    fn is_forked(owner: Self::Owner) -> bool;
}

/// Room for a small value; a larger one is boxed and its pointer lies here.
const INLINE: usize = 32;

#[repr(C, align(8))]
struct Room(MaybeUninit<[u8; INLINE]>);

const fn fits<V>() -> bool {
    size_of::<V>() <= size_of::<Room>() && align_of::<V>() <= align_of::<Room>()
}

/// A closure in a room, with the runner that it needs.
pub(crate) type Parcel = ErasedIn<{ INLINE - size_of::<usize>() }>;

/// What can be parked.
pub(crate) trait Parks<M>: Run {
    /// The record whose runner it has.
    fn record(&self) -> &'static Record<M>;
}

/// What a task comes to: a value of `Value`, or something else.
pub(crate) trait Yield: Sized {
    type Value;

    fn split(self) -> Result<Self::Value, Self>;
    fn join(value: Self::Value) -> Self;
}

/// One type-stable record.
#[repr(C, align(64))]
pub(crate) struct Record<M> {
    word: AtomicU64,
    index: u32,
    pub(super) link: AtomicU32,
    pub(crate) meta: M,
}

/// The part of a record that few tasks need. It is not a multiple of a line of the cache: there may be a
/// million that wait for their time.
pub(crate) struct Annex<M: Meta> {
    room: UnsafeCell<Room>,
    pub(crate) seldom: M::Seldom,
    epoch: Futex,
}

// SAFETY: the room is touched by one end at a time, as the word says (invariant 3), and only `Send`
// values are put into it; the rest is Sync by itself.
unsafe impl<M: Meta> Sync for Annex<M> {}
// SAFETY: as above.
unsafe impl<M: Meta> Send for Annex<M> {}

impl<M: Meta> Annex<M> {
    pub(super) fn new() -> Self {
        Self {
            room: UnsafeCell::new(Room(MaybeUninit::uninit())),
            seldom: M::Seldom::default(),
            epoch: Futex::new(0),
        }
    }
}

impl<M: Meta> Entry for Record<M> {
    const CHUNK: usize = if cfg!(loom) { 2 } else { 1024 };

    fn new(index: u32) -> Self {
        Self { word: AtomicU64::new(0), index, link: AtomicU32::new(0), meta: M::default() }
    }

    fn link(&self) -> &AtomicU32 {
        &self.link
    }
}

impl<M: Meta> Record<M> {
    /// Which tenancy of which record: no other in this process, until a record has had 2^32 of them.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.word.load(Relaxed) >> GENERATION_SHIFT << GENERATION_SHIFT | u64::from(self.index)
    }

    /// The two ends of a record that the caller has taken, and whose fields it has written.
    #[inline(always)]
    pub(crate) fn publish<V: Yield + Send + 'static>(
        &'static self,
    ) -> (Runner<M, V>, Holder<M, V>) {
        let word = self.word.load(Relaxed);
        // Release: whoever sees the tenancy sees its fields.
        self.word.store(word | LET, Release);
        let runner = Runner { record: self, value: PhantomData };
        (runner, Holder { record: self, value: PhantomData })
    }

    #[inline]
    pub(crate) fn annex(&self) -> &'static Annex<M> {
        M::table().annex(self.index)
    }

    /// The index and the generation of an id.
    pub(crate) fn of_id(id: u64) -> (u32, u32) {
        (id as u32, (id >> GENERATION_SHIFT) as u32)
    }

    #[inline]
    pub(crate) fn status(&self) -> u32 {
        // Acquire: pairs with whoever set the end.
        status_of(self.word.load(Acquire))
    }

    #[inline]
    pub(crate) fn has(&self, flags: u64) -> bool {
        self.word.load(Relaxed) & flags != 0
    }

    /// How many attempts have begun. `noted` loads, with Acquire, how many were noted: each before it began, with
    /// Release.
    #[inline]
    pub(crate) fn begun(&self, noted: impl Fn() -> u32) -> u32 {
        let mut before = noted();
        loop {
            // Acquire: pairs with `begin`. If as many were noted before it and behind it, all of them have begun but
            // perhaps the last.
            let is_odd = self.word.load(Acquire) & ODD != 0;
            let noted = noted();
            if noted == before {
                return noted.saturating_sub(u32::from((noted & 1 != 0) != is_odd));
            }
            before = noted;
        }
    }

    /// Whether the function should give up: it was asked, its time is over, or the task has ended.
    #[inline]
    pub(crate) fn should_stop(&self) -> bool {
        let word = self.word.load(Relaxed);
        word & (ASKED | LATE) != 0 || is_ended(word)
    }

    /// Sets one of `ASKED` and `LATE`. True: it was not set. The caller is one of the ends.
    pub(crate) fn mark(&self, flag: u64) -> bool {
        self.word.fetch_or(flag, Relaxed) & flag == 0
    }

    /// Marks the attempt that `seen` has shown to run. True: it was not marked, and runs. Any thread.
    pub(crate) fn mark_running(&self, seen: Seen, flag: u64) -> bool {
        let mut now = self.word.load(Relaxed);
        while seen.is_running_in(now) && now & flag == 0 {
            match self.word.compare_exchange_weak(now, now | flag, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// What lives here now. Any thread.
    #[inline]
    pub(crate) fn look(&self) -> Seen {
        // Acquire: pairs with `publish`, `begin` and whoever set an end.
        Seen(self.word.load(Acquire))
    }

    /// Sets an end, if `may` allows it by what lives here at that moment, and does all that follows from
    /// it; `note` comes first, with the status before. Any thread. True: it was this call.
    pub(crate) fn end_if(
        &'static self,
        status: u32,
        may: impl Fn(Seen) -> bool,
        note: impl FnOnce(u32),
        message: &str,
    ) -> bool {
        let mut now = self.word.load(Acquire);
        let before = loop {
            if now & LET == 0 || is_ended(now) || !may(Seen(now)) {
                return false;
            }
            let next = now & !STATUS | u64::from(status) | ENDING;
            match self.word.compare_exchange_weak(now, next, AcqRel, Acquire) {
                Ok(before) => break before,
                Err(other) => now = other,
            }
        };
        note(status_of(before));
        // Release: pairs with whoever makes a report.
        self.word.fetch_or(NOTED, Release);
        self.announce(before, status, Some(message));
        // Release: this side is through with the record. Acquire: it may be the last.
        if is_over(self.word.fetch_and(!ENDING, AcqRel) & !ENDING) {
            self.free();
        }
        true
    }

    /// Counts an end, and tells all that are to hear of it. `before` is the word before the end.
    fn announce(&'static self, before: u64, status: u32, message: Option<&str>) {
        let owner = self.meta.owner();
        let is_told = M::is_told(owner);
        let tells = is_told || before & NOTIFY != 0;
        if tells {
            M::telling(owner, true);
        }
        M::count(owner, status);
        if is_told {
            M::tell(self, status, message);
        }
        self.wake(before);
        if before & (NOTIFY | PARKED) != 0 {
            M::notify(self);
        }
        if tells {
            M::telling(owner, false);
        }
    }

    #[inline]
    fn wake(&self, before: u64) {
        if before & WAITING != 0 {
            self.wake_waiters();
        }
    }

    /// At worst it wakes the next tenant's waiters, who look again.
    #[cold]
    fn wake_waiters(&self) {
        let epoch = &self.annex().epoch;
        epoch.fetch_add(1, AcqRel);
        epoch.wake(i32::MAX);
    }

    /// Sleeps until the end, at most for `timeout`. False: it has not come, as far as is known.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> bool {
        let annex = self.annex();
        // Acquire: a wake-up that comes after this load changes the epoch.
        let epoch = annex.epoch.load(Acquire);
        // Acquire: pairs with whoever set the end.
        if is_ended(self.word.fetch_or(WAITING, AcqRel)) {
            return true;
        }
        annex.epoch.wait(epoch, timeout);
        is_ended(self.word.load(Acquire))
    }

    /// What `Meta::notify` calls is in its place. True: the end has come, and nobody else will call it.
    pub(crate) fn ask_to_notify(&self) -> bool {
        // Release: it is in its place. Acquire: pairs with whoever set the end.
        is_ended(self.word.fetch_or(NOTIFY, AcqRel))
    }

    /// # Safety
    /// The caller is the runner, and has set no end with `VALUE`.
    unsafe fn write<V>(&self, value: V) {
        self.annex().room.with_mut(|room| {
            // SAFETY: the room is the runner's (invariant 3); size and alignment are checked.
            unsafe {
                if const { fits::<V>() } {
                    room.cast::<V>().write(value);
                } else {
                    room.cast::<Box<V>>().write(Box::new(value));
                }
            }
        });
    }

    /// Keeps what a task came to, and says how: `PLAIN` if it takes no room.
    ///
    /// # Safety
    /// The caller is the runner, and has set no end with `VALUE`.
    #[inline]
    unsafe fn keep<V: Yield>(&self, value: V) -> u64 {
        let value = match value.split() {
            Ok(value) if const { size_of::<V::Value>() == 0 } => {
                core::mem::forget(value);
                return PLAIN;
            }
            Ok(value) => V::join(value),
            Err(other) => other,
        };
        // SAFETY: as the caller promises.
        unsafe { self.write(value) };
        0
    }

    /// What was kept; `how` says so.
    ///
    /// # Safety
    /// A `V` was kept like that, the room is the caller's (invariant 3), and it is taken only once.
    #[inline]
    unsafe fn regain<V: Yield>(&self, how: u64) -> V {
        if how & PLAIN == 0 {
            // SAFETY: as the caller promises.
            return unsafe { self.take() };
        }
        assert!(size_of::<V::Value>() == 0, "only what has no size is plain");
        // SAFETY: it has no size, so it lies wherever it is aligned; and one was forgotten for this.
        V::join(unsafe { NonNull::<V::Value>::dangling().read() })
    }

    /// # Safety
    /// A `V` was written, the room is the caller's (invariant 3), and it is taken only once.
    unsafe fn take<V>(&self) -> V {
        self.annex().room.with_mut(|room| {
            // SAFETY: as the caller promises.
            unsafe {
                if const { fits::<V>() } {
                    room.cast::<V>().read()
                } else {
                    *room.cast::<Box<V>>().read()
                }
            }
        })
    }

    /// Where it is in the table.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Puts `work`, which has the runner, into the room, and marks the record as being in a wheel. The
    /// caller has the wheel, and puts the index into it. If the task has ended it does not go there, and
    /// the closure comes back, unless whoever ended the task has it.
    pub(crate) fn park<F: Parks<M>>(work: F) -> Result<&'static Self, Option<Parcel>> {
        let record = work.record();
        // SAFETY: the room is the runner's, which is in `work`: nobody else has it until `parked` is
        // cleared (invariant 6).
        unsafe { record.write(Parcel::new(work)) };
        // Release: the closure. Acquire: pairs with whoever set the end.
        if is_ended(record.word.fetch_or(PARKED | FILED, AcqRel)) {
            // Who ended it has not seen the marks, and need not come for the closure.
            return Err(record.unfile());
        }
        Ok(record)
    }

    /// Takes the closure out; the record stays in the wheel. The caller is an end of the task, or is
    /// ending it.
    pub(crate) fn unpark(&self) -> Option<Parcel> {
        // Acquire: pairs with `park`.
        let parked = self.word.fetch_and(!PARKED, AcqRel) & PARKED != 0;
        // SAFETY: this call has cleared the mark (invariant 6).
        parked.then(|| unsafe { self.take::<Parcel>() })
    }

    /// Whether a closure waits here. The caller has the wheel that the record is in.
    pub(crate) fn is_parked(&self) -> bool {
        self.word.load(Relaxed) & PARKED != 0
    }

    /// The wheel has let the index go. Takes the closure out, if it is there still; if it is not the
    /// record may be gone.
    pub(crate) fn unfile(&'static self) -> Option<Parcel> {
        // Acquire: pairs with `park`, and with the leaving of both ends. Release: this side is through.
        let before = self.word.fetch_and(!(PARKED | FILED), AcqRel);
        if before & PARKED != 0 {
            // SAFETY: as above.
            return Some(unsafe { self.take::<Parcel>() });
        }
        if is_over(before & !FILED) {
            self.free();
        }
        None
    }

    /// Makes the task's runner anew, from RUNNING, for its next attempt: RETRYING. None: the attempt that was
    /// seen is over, or returns. `keep_no_more` must be called once the attempts that were overtaken have
    /// returned. Any thread.
    ///
    /// # Safety
    /// `V` is what the task yields, and the runner of the attempt that is overtaken is used only after a
    /// `claim`.
    pub(crate) unsafe fn overtake<V>(&'static self, seen: Seen) -> Option<Runner<M, V>> {
        let mut now = self.word.load(Relaxed);
        while seen.is_running_in(now) && now & RETURNED == 0 {
            let attempt = now.wrapping_add(1 << ATTEMPT_SHIFT) & ATTEMPT;
            // LATE stays until the next attempt begins: it speaks to the one that was overtaken.
            let next = now & !(STATUS | ATTEMPT) | attempt | u64::from(RETRYING) | OVERTAKEN;
            // Acquire: what was noted of the attempt. Release: whoever claims sees it overtaken.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return Some(Runner { record: self, value: PhantomData }),
                Err(other) => now = other,
            }
        }
        None
    }

    /// All attempts that were overtaken have returned.
    pub(crate) fn keep_no_more(&'static self) {
        // Release: this side is through. Acquire: it may be the last.
        if is_over(self.word.fetch_and(!OVERTAKEN, AcqRel) & !OVERTAKEN) {
            self.free();
        }
    }

    /// The caller is the last.
    #[inline]
    fn free(&'static self) {
        self.meta.clear();
        let generation = (self.word.load(Relaxed) >> GENERATION_SHIFT) as u32;
        // Release: pairs with the Acquire of whoever looks at a tenancy from outside. The slab orders
        // it for the next tenant.
        self.word.store(u64::from(generation.wrapping_add(1)) << GENERATION_SHIFT, Release);
        if M::magazine().try_with(|some| some.give_back(self)).is_err() {
            // This thread ends.
            M::table().records.give_back(self.index);
        }
    }

    fn leave(&'static self, side: u64) {
        // Release: this side is through. Acquire: it may be the last.
        if is_over(self.word.fetch_or(side, AcqRel) | side) {
            self.free();
        }
    }
}

/// The closure's side. Dropped without `finish` it ends the task as cancelled, unless it has ended.
pub(crate) struct Runner<M: Meta, V> {
    record: &'static Record<M>,
    value: PhantomData<fn(V)>,
}

impl<M: Meta, V: Yield> Runner<M, V> {
    #[inline]
    pub(crate) fn record(&self) -> &'static Record<M> {
        self.record
    }

    /// PENDING or RETRYING → RUNNING. None: it has ended. Release: what was noted of the attempt.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Seen> {
        let word = &self.record.word;
        let mut now = word.load(Relaxed);
        while matches!(status_of(now), PENDING | RETRYING) {
            let attempt = now.wrapping_add(1 << ATTEMPT_SHIFT) & ATTEMPT;
            let next = now & !(STATUS | LATE | ATTEMPT | RETURNED) | attempt | u64::from(RUNNING);
            let next = next ^ ODD;
            match word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return Some(Seen(next)),
                Err(other) => now = other,
            }
        }
        None
    }

    /// The attempt that has begun is none after all.
    #[cold]
    pub(crate) fn unbegin(&self) {
        self.record.word.fetch_xor(ODD, Relaxed);
    }

    /// The attempt that `begun` shows has returned. True: the runner is this one still, and nobody overtakes
    /// it any more. `is_last` compares the attempt's whole number.
    pub(crate) fn claim(&self, begun: Seen, is_last: impl Fn() -> bool) -> bool {
        let word = &self.record.word;
        // Acquire: the number of an attempt that has overtaken this one.
        let mut now = word.load(Acquire);
        loop {
            if !begun.is_same_attempt(Seen(now)) || !is_last() {
                return false;
            }
            if is_ended(now) {
                return true;
            }
            match word.compare_exchange_weak(now, now | RETURNED, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
    }

    /// It was overtaken: another is the runner.
    pub(crate) fn yield_to_other(self) {
        core::mem::forget(self);
    }

    /// RUNNING → RETRYING. False: it has ended.
    pub(crate) fn retry(&self) -> bool {
        let word = &self.record.word;
        let mut now = word.load(Relaxed);
        while status_of(now) == RUNNING {
            let next = now & !(STATUS | LATE | RETURNED) | u64::from(RETRYING);
            match word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// The task's own end, with its value. False: another end came first, and the value is dropped here.
    #[inline]
    pub(crate) fn finish(self, status: u32, value: V, message: Option<&str>) -> bool {
        let record = ManuallyDrop::new(self).record;
        let owner = record.meta.owner();
        let told = M::is_told(owner);
        // SAFETY: this is the runner, and only below it sets an end with `VALUE`.
        let how = unsafe { record.keep(value) };
        let mut now = record.word.load(Relaxed);
        loop {
            if is_ended(now) {
                // SAFETY: another end leaves the room with the runner.
                let unwanted = unsafe { record.regain::<V>(how) };
                record.leave(RUNNER_LEFT);
                crate::thread_state::next_lap();
                let _panicked = crate::pool::contain(|| drop(unwanted));
                return false;
            }
            let lingers = told || now & (NOTIFY | HANDLE_LEFT) != 0;
            let leaving = if lingers { 0 } else { RUNNER_LEFT };
            let wanted = if now & HANDLE_LEFT != 0 { 0 } else { VALUE | how };
            let next = now & !STATUS | u64::from(status) | leaving | wanted;
            // Release: the value. Acquire: it may have been marked by a handle that left.
            match record.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) if lingers => {
                    Self::linger(record, now, how, status, message);
                    return true;
                }
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        // The handle may free the record from here on.
        M::count(owner, status);
        record.wake(now);
        true
    }

    /// After an end with somebody to be told, or without a handle.
    #[cold]
    fn linger(
        record: &'static Record<M>,
        before: u64,
        how: u64,
        status: u32,
        message: Option<&str>,
    ) {
        crate::thread_state::next_lap();
        record.announce(before, status, message);
        // SAFETY: the handle had left, so the room has stayed with the runner.
        let unwanted = (before & HANDLE_LEFT != 0).then(|| unsafe { record.regain::<V>(how) });
        record.leave(RUNNER_LEFT);
        let _panicked = crate::pool::contain(|| drop(unwanted));
    }

    /// Leaves a task that was not taken in after all, and that nobody counts. False: somebody has ended
    /// it meanwhile, and has counted it.
    pub(crate) fn forget(self) -> bool {
        let record = ManuallyDrop::new(self).record;
        let mut now = record.word.load(Relaxed);
        let first = loop {
            if is_ended(now) {
                break false;
            }
            let next = now & !STATUS | u64::from(REJECTED);
            match record.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => break true,
                Err(other) => now = other,
            }
        };
        record.leave(RUNNER_LEFT);
        first
    }
}

impl<M: Meta, V> Drop for Runner<M, V> {
    fn drop(&mut self) {
        let record = self.record;
        M::gone_unrun(record);
        record.end_if(CANCELLED, |_| true, |_| M::note_unrun(record), "it was cancelled");
        record.leave(RUNNER_LEFT);
    }
}

/// The handle's side.
pub(crate) struct Holder<M: Meta, V: Yield> {
    record: &'static Record<M>,
    value: PhantomData<V>,
}

// SAFETY: `&Holder` gives no access to the value, and the record is Sync.
unsafe impl<M: Meta, V: Yield + Send> Sync for Holder<M, V> {}

impl<M: Meta, V: Yield> Holder<M, V> {
    #[inline]
    pub(crate) fn record(&self) -> &'static Record<M> {
        self.record
    }

    /// What the function has come to. None: the end was another's, or had not come when `seen` was. Once.
    #[inline]
    pub(crate) fn take(&mut self, seen: Seen) -> Option<V> {
        // Relaxed: nobody else asks for it.
        if !is_ended(seen.0) || self.record.word.fetch_or(TAKEN, Relaxed) & TAKEN != 0 {
            return None;
        }
        // SAFETY: `VALUE` was seen with Acquire, and `TAKEN` makes this the only time.
        (seen.0 & VALUE != 0).then(|| unsafe { self.record.regain::<V>(seen.0) })
    }

    /// Calls `f` with what is seen, and what the function has come to, as in [`take`](Self::take), and goes.
    ///
    /// # Panics
    /// If the end has not come, or that was taken.
    #[inline(always)]
    pub(crate) fn redeem<R>(self, f: impl FnOnce(&'static Record<M>, Seen, Option<V>) -> R) -> R {
        let seen = self.record.look();
        assert!(is_ended(seen.0) && !seen.is_taken(), "a handle is redeemed once, after the end");
        let this = ManuallyDrop::new(self);
        // SAFETY: `VALUE` was seen with Acquire, nothing was taken, and the handle goes.
        let value = (seen.0 & VALUE != 0).then(|| unsafe { this.record.regain::<V>(seen.0) });
        let result = f(this.record, seen, value);
        this.go(true);
        result
    }

    /// `taken`: what the task has come to, though `TAKEN` does not say so.
    #[inline(always)]
    fn go(&self, taken: bool) {
        let record = self.record;
        if M::is_forked(record.meta.owner()) {
            return;
        }
        // Acquire: the value, and the runner's leaving.
        let word = record.word.load(Acquire);
        match word & (RUNNER_LEFT | KEPT) == RUNNER_LEFT
            && (taken || word & (VALUE | TAKEN) != VALUE)
        {
            true => record.free(),
            false => self.leave(word, taken || word & TAKEN != 0),
        }
    }
}

impl<M: Meta, V: Yield> Drop for Holder<M, V> {
    #[inline]
    fn drop(&mut self) {
        self.go(false);
    }
}

impl<M: Meta, V: Yield> Holder<M, V> {
    /// Somebody else needs the record still, or the value was not taken.
    #[cold]
    fn leave(&self, mut word: u64, taken: bool) {
        let record = self.record;
        let unwanted = loop {
            let is_here = word & VALUE != 0 && !taken;
            // SAFETY: `VALUE` was seen with Acquire, nobody has taken it, and this side has not left.
            let take = || is_here.then(|| unsafe { record.regain::<V>(word) });
            if word & (RUNNER_LEFT | KEPT) == RUNNER_LEFT {
                let unwanted = take();
                record.free();
                break unwanted;
            }
            if word & VALUE != 0 {
                let unwanted = take();
                record.leave(HANDLE_LEFT);
                break unwanted;
            }
            // It is not the last: that was looked at above. Release: this side is through.
            match record.word.compare_exchange_weak(word, word | HANDLE_LEFT, AcqRel, Acquire) {
                Ok(_) => break None,
                Err(other) => word = other,
            }
        };
        // Last, because its destructor may panic.
        drop(unwanted);
    }
}
