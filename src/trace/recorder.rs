//! What a thread has done, span by span, while a recording runs.
//!
//! ```text
//!              start: a ring, then `on`                     finish: not `on`, then the ring is taken,
//!                        │                                   with the span that is open
//!   thread:  ── looks for work ──┬─ begin ── code, or a wait ── end: into the ring ──┐
//!                                └───────────────────────────────────────────────────┘
//! ```
//!
//! A thread's spans are of two levels: an *outer* one, for what the pool runs or waits for, and within it *inner* ones
//! that follow each other, for what the code itself says that [runs](super::runs) next. Spans that are within these in
//! turn are recorded by their guards.
//!
//! # Invariants
//!
//! 1. A ring is written by the thread that it belongs to, under the lock that whoever finishes takes it out by. Both
//!    hold it for some stores, and no code of the user runs meanwhile: so no reader looks at what is being written.
//! 2. A span that was begun ends in the ring, or is handed over as open, but never both: its thread ends it under the
//!    lock, and whoever finishes looks at it under the lock.
//! 3. The ring is allocated when a recording starts, and freed when that is finished. The oldest records go first;
//!    those that have gone are counted.
//!
//! Nothing is recorded: one load of `on`, which lies beside the word that a thread changes for each thing it runs.

use super::names::Name;
use crate::sys::clock;
// Not loom's: what is behind a lock races with nothing, and the rest is what one thread says of itself.
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// No thread.
pub(crate) const NO_THREAD: u16 = u16::MAX;

/// What a record tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A term of leadership. `number`: activations that it has brought.
    Lead,
    /// A leader's wait at its source.
    Wait,
    /// A handler, or a task.
    Handle,
    /// What the code of a handler or task says that it runs.
    Run,
    /// Parked without work.
    Park,
    /// The watch.
    Watch,
    /// Set aside.
    Aside,
    /// An instant: `other` was woken by this thread.
    Wake,
    /// An instant: leadership was `other`'s before.
    HandOver,
    /// An instant: stepped in for `other`, which is held up by what has the name.
    Rescue,
    /// An instant: took over what `other` had claimed.
    Steal,
}

impl What {
    pub(crate) fn is_instant(self) -> bool {
        matches!(self, Self::Wake | Self::HandOver | Self::Rescue | Self::Steal)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// By the monotonic clock, in nanoseconds.
    pub(crate) at: u64,
    /// In nanoseconds.
    pub(crate) lasted: u64,
    pub(crate) name: Name,
    pub(crate) number: u16,
    pub(crate) other: u16,
    pub(crate) what: What,
}

/// The records of one thread.
#[derive(Debug)]
pub(crate) struct Records {
    ring: Vec<Record>,
    most: usize,
    /// All that were ever put here.
    count: u64,
}

impl Records {
    fn new(most: usize) -> Self {
        Self { ring: Vec::with_capacity(most), most, count: 0 }
    }

    fn push(&mut self, record: Record) {
        match self.ring.len() < self.most {
            true => self.ring.push(record),
            false => self.ring[(self.count % self.most as u64) as usize] = record,
        }
        self.count += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.ring.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// From when on all are here, by the clock of the records; None: all are.
    pub(crate) fn whole_since(&self) -> Option<u64> {
        if self.lost() == 0 {
            return None;
        }
        // A record is made at its end: those that have gone ended before the oldest one that is here.
        self.ring.iter().map(|record| record.at + record.lasted).min()
    }

    /// Those that have gone for newer ones.
    pub(crate) fn lost(&self) -> u64 {
        self.count - self.ring.len() as u64
    }
}

/// See the head of the file. Only the thread that it belongs to records.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    on: AtomicBool,
    /// When the outer span began; 0: none is open.
    outer_at: AtomicU64,
    /// The name of the outer span.
    outer: AtomicU32,
    /// When the inner span began; 0: none is open.
    inner_at: AtomicU64,
    records: Mutex<Option<Records>>,
}

impl Recorder {
    /// A recording starts, which began at `now`. `is_busy`: the thread runs or waits for something, since before.
    pub(crate) fn start(&self, now: u64, most: usize, is_busy: bool, name: Name) {
        let mut records = self.lock();
        *records = Some(Records::new(most));
        self.inner_at.store(0, Relaxed);
        self.outer.store(name.bits(), Relaxed);
        // What the thread begins at this moment is its own to say.
        self.outer_at.store(if is_busy { now } else { 0 }, Relaxed);
        self.on.store(true, Relaxed);
    }

    /// The recording is finished: what was recorded, with what is open, which is `what`. `name` is what runs now.
    pub(crate) fn finish(&self, what: Option<What>, name: Name) -> Option<Records> {
        self.on.store(false, Relaxed);
        let mut records = self.lock();
        let mut taken = records.take()?;
        if let Some(what) = what {
            // Not before the last record, as that is there.
            self.close(&mut taken, what, name, clock::now());
        }
        Some(taken)
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// The thread begins an outer span.
    #[inline]
    pub(crate) fn begin(&self, name: Name) {
        if self.is_on() {
            self.begin_now(name);
        }
    }

    #[cold]
    fn begin_now(&self, name: Name) {
        self.inner_at.store(0, Relaxed);
        self.outer.store(name.bits(), Relaxed);
        self.outer_at.store(clock::now(), Relaxed);
    }

    /// The thread ends it. `name` is what has run last.
    #[inline]
    pub(crate) fn end(&self, what: What, name: impl FnOnce() -> Name) {
        if self.outer_at.load(Relaxed) != 0 {
            self.end_now(what, name());
        }
    }

    #[cold]
    fn end_now(&self, what: What, name: Name) {
        let now = clock::now();
        let mut records = self.lock();
        if let Some(records) = &mut *records {
            self.close(records, what, name, now);
        }
        self.outer_at.store(0, Relaxed);
        self.inner_at.store(0, Relaxed);
    }

    /// Records what is open, as it is at `now`.
    fn close(&self, records: &mut Records, what: What, name: Name, now: u64) {
        let (outer_at, inner_at) = (self.outer_at.load(Relaxed), self.inner_at.load(Relaxed));
        let span = |at: u64, what, name| {
            let lasted = now.saturating_sub(at);
            Record { at, lasted, name, number: 0, other: NO_THREAD, what }
        };
        if inner_at != 0 {
            records.push(span(inner_at, What::Run, name));
        }
        let outer = Name::from_bits(self.outer.load(Relaxed));
        // A task without a name of its own is one inner span.
        if outer_at != 0 && (inner_at == 0 || outer != Name::NONE) {
            records.push(span(outer_at, what, outer));
        }
    }

    /// The code that runs says what it runs next; before, it was `before`.
    #[inline]
    pub(super) fn next(&self, before: Name) {
        if self.is_on() {
            self.next_now(before);
        }
    }

    #[cold]
    fn next_now(&self, before: Name) {
        if self.outer_at.load(Relaxed) == 0 {
            return;
        }
        let now = clock::now();
        let at = self.inner_at.load(Relaxed);
        if at != 0 {
            self.record(Record {
                at,
                lasted: now.saturating_sub(at),
                name: before,
                number: 0,
                other: NO_THREAD,
                what: What::Run,
            });
        }
        self.inner_at.store(now, Relaxed);
    }

    /// Records something that is over.
    pub(crate) fn record(&self, record: Record) {
        if let Some(records) = &mut *self.lock() {
            records.push(record);
        }
    }

    /// Records something that happens now.
    #[cold]
    pub(crate) fn instant(&self, what: What, other: Option<usize>, name: Name) {
        let other = other.map_or(NO_THREAD, |other| other as u16);
        self.record(Record { at: clock::now(), lasted: 0, name, number: 0, other, what });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Records>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn record(number: u16) -> Record {
        let (name, other) = (Name::NONE, NO_THREAD);
        Record { at: 1, lasted: 0, name, number, other, what: What::Lead }
    }

    #[test]
    fn the_oldest_go_first_and_are_counted() {
        let mut records = Records::new(4);
        (0..10).for_each(|number| records.push(record(number)));
        let mut kept: Vec<_> = records.iter().map(|record| record.number).collect();
        kept.sort_unstable();
        assert_eq!((kept, records.lost()), (vec![6, 7, 8, 9], 6));
    }

    #[test]
    fn nothing_is_recorded_outside_of_a_recording() {
        let recorder = Recorder::default();
        recorder.begin(Name::NONE);
        recorder.end(What::Handle, || Name::NONE);
        recorder.instant(What::Steal, None, Name::NONE);
        recorder.start(clock::now(), 4, false, Name::NONE);
        let records = recorder.finish(None, Name::NONE).unwrap();
        assert_eq!(records.len(), 0);
        assert!(recorder.finish(None, Name::NONE).is_none());
    }

    /// Goal: a span is recorded once, by its end or by the end of the recording. Method: one is open at the end, and ends
    /// in the next recording, where it had begun before.
    #[test]
    fn what_is_open_is_recorded_once() {
        let recorder = Recorder::default();
        let (outer, inner) = (Name::new("recorder outer"), Name::new("recorder inner"));
        let taken = |records: &Records| {
            records.iter().map(|record| (record.what, record.name)).collect::<Vec<_>>()
        };
        recorder.start(clock::now(), 4, false, Name::NONE);
        recorder.begin(outer);
        recorder.next(outer);
        let records = recorder.finish(Some(What::Handle), inner).unwrap();
        assert_eq!(taken(&records), [(What::Run, inner), (What::Handle, outer)]);
        recorder.start(clock::now(), 4, true, outer);
        recorder.end(What::Handle, || inner);
        recorder.end(What::Handle, || inner);
        let records = recorder.finish(None, inner).unwrap();
        assert_eq!(taken(&records), [(What::Handle, outer)]);
    }
}
