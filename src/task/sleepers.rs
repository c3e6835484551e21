//! Tasks that wait for their time.
//!
//! A server may have a million of them: delayed ones, and those that are to be tried again. So one takes
//! no more than its record. Its closure lies in the record's room (`pool/record.rs`), and the record's
//! index in a wheel. One timer of the pool, the *alarm*, is armed for the earliest of all.
//!
//! ```text
//!   put ─► wheel ──alarm──► key, lane
//!            │
//!            └─ its task ends: the closure is dropped; the index stays until its time, or until
//!               a sweep takes out all that were left so
//! ```
//!
//! # Invariants
//!
//! 1. The wheel is touched under the lock, and so are `parked`, set, and `filed`. No code of the user
//!    runs under it: closures are dropped, and go on, after it.
//! 2. While the wheel is not empty an alarm is on its way that is due no later than the wheel asks
//!    for, and it is the one whose number is `number`. Others find that they are not, and do nothing.
//! 3. An alarm that is dropped unrun though its number is right says that the pool stops: all that
//!    sleep end.

use super::record::{self, Head, Record, TaskMeta};
use crate::error::{Error, Result};
use crate::pool::record::{Parcel, Parks};
use crate::pool::{Key, Shared, contain, current};
use crate::queue::{Lane, Run};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::time::{MAX_DELAY, Wheel};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NEVER: u64 = u64::MAX;

/// After so many were taken out before their time it is looked whether a sweep is worth it.
const SWEEP_AFTER: usize = 1024;

/// See the head of the file. It lasts as long as the lobby that it belongs to.
pub(super) struct Sleepers {
    filed: Mutex<Filed>,
    /// Indices in the wheel that are not left behind. Who takes one out may count it late.
    asleep: AtomicUsize,
    /// How many were left behind so far.
    left: AtomicUsize,
}

struct Filed {
    /// None: nobody has slept yet, or the pool has stopped.
    wheel: Option<Wheel>,
    /// When the alarm is due.
    at: u64,
    number: u64,
    /// The alarm's timer, as soon as that is known.
    key: Option<Key>,
    stopped: bool,
}

/// What is to be done after the lock.
struct Rearm {
    at: u64,
    number: u64,
    old: Option<Key>,
}

impl Filed {
    /// Another alarm takes the place of the last.
    fn rearm(&mut self, at: u64) -> Rearm {
        self.at = at;
        self.number += 1;
        Rearm { at, number: self.number, old: self.key.take() }
    }

    /// When the wheel asks to be looked at.
    fn next(&self) -> u64 {
        let wheel = self.wheel.as_ref();
        wheel.and_then(|wheel| wheel.next_deadline(record::table())).unwrap_or(NEVER)
    }
}

impl Sleepers {
    pub(super) fn new() -> Self {
        let filed = Filed { wheel: None, at: NEVER, number: 0, key: None, stopped: false };
        Self { filed: Mutex::new(filed), asleep: AtomicUsize::new(0), left: AtomicUsize::new(0) }
    }

    /// Has `work` run in `delay` from now, unless its task ends before. Otherwise it comes back.
    pub(super) fn put<W: Parks<TaskMeta>>(
        &'static self,
        shared: &Arc<Shared>,
        delay: Duration,
        work: W,
    ) -> core::result::Result<(), (Error, W)> {
        if let Err(error) = check(shared, delay) {
            return Err((error, work));
        }
        let now = shared.now();
        let due = now.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(NEVER - 1));
        let mut filed = self.lock();
        if filed.stopped {
            return Err((Error::ShutDown, work));
        }
        let record = match Record::park(work) {
            Ok(record) => record,
            Err(ended) => {
                drop(filed);
                let _panicked = contain(|| drop(ended));
                return Ok(());
            }
        };
        let wheel = filed.wheel.get_or_insert_with(|| Wheel::new(now));
        wheel.insert(record::table(), record.index(), due);
        self.asleep.fetch_add(1, Relaxed);
        let rearm = (due < filed.at).then(|| filed.rearm(due));
        drop(filed);
        if let Some(rearm) = rearm {
            self.arm(shared, rearm);
        }
        Ok(())
    }

    fn arm(&'static self, shared: &Arc<Shared>, Rearm { at, number, old }: Rearm) {
        let key = if at == NEVER { None } else { self.set_alarm(shared, at, number) };
        let mut filed = self.lock();
        let superseded = filed.number != number;
        if !superseded {
            filed.key = key;
        }
        drop(filed);
        // Neither has the number any more: dropped, they do nothing.
        for key in old.into_iter().chain(key.filter(|_| superseded)) {
            shared.cancel_timer(key);
        }
    }

    fn set_alarm(&'static self, shared: &Arc<Shared>, at: u64, number: u64) -> Option<Key> {
        let alarm = Alarm { sleepers: Some(self), number };
        let mut key = None;
        let armed = shared.at_or_back(at, alarm, |named| key = Some(named));
        if let Err((Error::Full { .. }, alarm)) = armed {
            // Every timer is in use. Going round through a lane wastes work, but not the tasks.
            go_round(shared, alarm);
        }
        key
    }

    /// Takes those out that are due, arms the alarm for the next, and lets them go on.
    fn wake(&'static self, shared: &Arc<Shared>, number: u64) {
        let mut awake = Vec::new();
        let mut filed = self.lock();
        if filed.number != number {
            return;
        }
        filed.key = None;
        let now = shared.now();
        if let Some(wheel) = &mut filed.wheel {
            wheel.advance(record::table(), now, |index| {
                awake.push(index);
                None
            });
        }
        let next = filed.next();
        let rearm = filed.rearm(next);
        drop(filed);
        self.arm(shared, rearm);
        self.each(awake, Parcel::run);
    }

    /// Gives what was parked in each record to `then`.
    fn each(&self, indices: Vec<u32>, then: impl Fn(Parcel)) {
        for index in indices {
            if let Some(parcel) = record_of(index).unfile() {
                self.asleep.fetch_sub(1, Relaxed);
                let _panicked = contain(|| then(parcel));
            }
        }
    }

    /// A task has ended, and its closure was taken out here. Its index stays in the wheel.
    pub(super) fn drop_taken(&'static self, head: Head, parcel: Parcel) {
        let was_last = self.asleep.fetch_sub(1, Relaxed) == 1;
        let left = self.left.fetch_add(1, Relaxed);
        let _panicked = contain(|| drop(parcel));
        if (was_last || left.is_multiple_of(SWEEP_AFTER))
            && let Some(common) = head.kind().common()
        {
            self.sweep(&common.shared);
        }
    }

    /// Takes out what was left behind, if that is more than half of all.
    #[cold]
    fn sweep(&'static self, shared: &Arc<Shared>) {
        let mut dead = Vec::new();
        let mut filed = self.lock();
        let asleep = self.asleep.load(Relaxed);
        let Some(wheel) = filed.wheel.as_mut().filter(|wheel| wheel.len() > 2 * asleep) else {
            return;
        };
        wheel.sweep(record::table(), |index| {
            let is_dead = !record_of(index).is_parked();
            if is_dead {
                dead.push(index);
            }
            is_dead
        });
        let rearm = (wheel.len() == 0).then(|| filed.rearm(NEVER));
        drop(filed);
        if let Some(rearm) = rearm {
            self.arm(shared, rearm);
        }
        self.each(dead, drop);
    }

    /// The pool stops: nobody will come for them.
    fn stop(&'static self, number: u64) {
        let mut filed = self.lock();
        if filed.number != number {
            return;
        }
        filed.stopped = true;
        let mut all = Vec::new();
        if let Some(mut wheel) = filed.wheel.take() {
            wheel.sweep(record::table(), |index| {
                all.push(index);
                true
            });
        }
        drop(filed);
        self.each(all, drop);
    }

    fn lock(&self) -> MutexGuard<'_, Filed> {
        self.filed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(shared: &Shared, delay: Duration) -> Result<()> {
    shared.check_open()?;
    match delay > MAX_DELAY {
        true => Err(Error::invalid("delay", format!("{delay:?}"), "up to 100 years")),
        false => Ok(()),
    }
}

fn record_of(index: u32) -> &'static Record {
    record::table().get(index).expect("an index that was given out")
}

/// Posts the alarm to whichever lane has room; without any it is dropped, as if the pool stopped.
#[cold]
fn go_round(shared: &Shared, mut alarm: Alarm) {
    for lane in Lane::ALL.into_iter().rev() {
        match shared.try_post(lane, alarm) {
            Ok(()) => return,
            Err(rejected) => alarm = rejected.into_inner(),
        }
    }
}

/// Wakes sleepers when it runs.
struct Alarm {
    /// None: it has run.
    sleepers: Option<&'static Sleepers>,
    number: u64,
}

impl Run for Alarm {
    fn run(mut self) {
        if let (Some(sleepers), Some((shared, _))) = (self.sleepers.take(), current()) {
            sleepers.wake(&shared, self.number);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(sleepers) = self.sleepers {
            sleepers.stop(self.number);
        }
    }
}
