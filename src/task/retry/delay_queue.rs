//! Tasks that wait for their time.
//!
//! A server may have a million of them: delayed ones, and those that are to be tried again. So one takes
//! no more than its record. Its closure lies in the record's room (`record/word.rs`), and the record's
//! index in a wheel. One timer of the pool, the *alarm*, is armed for the earliest of all.
//!
//! ```text
//!   put ─► wheel ──alarm──► key, lane
//!            │
//!            └─ its task ends: the closure is dropped; the index stays until its time, or until
//!               a sweep takes out all that were left so
//! ```
//!
//! While every timer is in use the *keeper* stands in for the alarm: a service of the pool, which has had its
//! slot since the first of them slept. It looks every [`LOOK`], or when the alarm was due, until there is a timer.
//! So who sleeps may be woken later by as much. If there was no slot for it, the alarm goes round through a lane.
//!
//! # Invariants
//!
//! 1. The wheel is touched under the lock, and so are `parked`, set, and `filed`. No code of the user
//!    runs under it: closures are dropped, and go on, after it.
//! 2. While the wheel is not empty an alarm is on its way that is due no later than the wheel asks
//!    for, and it is the one whose number is `number`; or `stands_in` is set. Other alarms find that they are
//!    not, and do nothing.
//! 3. An alarm that is dropped unrun though its number is right says that the pool stops: all that
//!    sleep end. So does a keeper that is dropped while it stands in.
//! 4. While `stands_in` is set so is `kept`, or somebody is about to call the keeper: it comes.

use crate::error::Error;
use crate::pool::{Key, NEVER, Shared, Timer, contain, current, service};
use crate::queue::{Lane, Run};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, MutexGuard};
use crate::task::record::word::{Meta, Parcel, Parks, Record};
use crate::time::{MAX_DELAY, Wheel};
use core::marker::PhantomData;
use core::time::Duration;
use std::sync::{Arc, OnceLock, PoisonError};

/// How often a keeper looks, this one and that of leases.
pub(in crate::task) const LOOK: u64 = 100_000_000;

/// After so many were taken out before their time it is looked whether a sweep is worth it.
const SWEEP_AFTER: usize = 1024;

/// See the head of the file. It lasts as long as the wait lists that it belongs to.
pub(in crate::task) struct DelayQueue<M> {
    filed: Mutex<Filed>,
    keeper: OnceLock<Key>,
    /// Indices in the wheel that are not left behind. Who takes one out may count it late.
    asleep: AtomicUsize,
    /// How many were left behind so far.
    left: AtomicUsize,
    records: PhantomData<fn(M)>,
}

struct Filed {
    /// None: nobody has slept yet, or the pool has stopped.
    wheel: Option<Wheel>,
    /// When the alarm is due.
    at: u64,
    number: u64,
    /// The alarm's timer, as soon as that is known.
    key: Option<Key>,
    /// There was no timer for the alarm.
    stands_in: bool,
    /// The keeper runs, was called, or will run by itself.
    kept: bool,
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
        self.stands_in = false;
        Rearm { at, number: self.number, old: self.key.take() }
    }

    /// When the wheel asks to be looked at.
    fn next<M: Meta>(&self) -> u64 {
        let wheel = self.wheel.as_ref();
        wheel.and_then(|wheel| wheel.next_deadline(M::table())).unwrap_or(NEVER)
    }
}

impl<M: Meta> DelayQueue<M> {
    pub(in crate::task) fn new() -> Self {
        let filed = Filed {
            wheel: None,
            at: NEVER,
            number: 0,
            key: None,
            stands_in: false,
            kept: false,
            stopped: false,
        };
        let (asleep, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (filed, keeper) = (Mutex::new(filed), OnceLock::new());
        Self { filed, keeper, asleep, left, records: PhantomData }
    }

    /// Has `work` run in `delay` from now, unless its task ends before. Otherwise it comes back.
    pub(in crate::task) fn put<W: Parks<M>>(
        &'static self,
        shared: &Arc<Shared>,
        delay: Duration,
        work: W,
    ) -> Result<(), (Error, W)> {
        let now = match self.open(shared) {
            Ok(now) => now,
            Err(error) => return Err((error, work)),
        };
        let filed = self.lock();
        if filed.stopped {
            return Err((Error::ShutDown, work));
        }
        match Record::park(work) {
            Ok(record) => self.file(shared, filed, record.index(), now, delay),
            Err(ended) => {
                drop(filed);
                let _panicked = contain(|| drop(ended));
            }
        }
        Ok(())
    }

    /// Has the keeper ready. The time now, unless the pool takes nothing any more.
    fn open(&'static self, shared: &Arc<Shared>) -> crate::Result<u64> {
        shared.check_open()?;
        if self.keeper.get().is_none() {
            self.open_keeper(shared);
        }
        Ok(shared.now())
    }

    fn file(
        &'static self,
        shared: &Arc<Shared>,
        mut filed: MutexGuard<'_, Filed>,
        index: u32,
        now: u64,
        delay: Duration,
    ) {
        let due = now.saturating_add(delay.min(MAX_DELAY).as_nanos() as u64);
        let wheel = filed.wheel.get_or_insert_with(|| Wheel::new(now));
        wheel.insert(M::table(), index, due);
        self.asleep.fetch_add(1, Relaxed);
        let rearm = (due < filed.at).then(|| filed.rearm(due));
        drop(filed);
        if let Some(rearm) = rearm {
            self.arm(shared, rearm);
        }
    }

    fn arm(&'static self, shared: &Arc<Shared>, Rearm { at, number, old }: Rearm) {
        let key = if at == NEVER { None } else { self.set_alarm(shared, at, number) };
        let mut filed = self.lock();
        let superseded = filed.number != number;
        // None: it may be known already, by the keeper that has it armed.
        if let Some(key) = key
            && !superseded
        {
            filed.key = Some(key);
        }
        drop(filed);
        // Neither has the number any more: dropped, they do nothing.
        for key in old.into_iter().chain(key.filter(|_| superseded)) {
            Timer::cancel_key(shared, key);
        }
    }

    fn set_alarm(&'static self, shared: &Arc<Shared>, at: u64, number: u64) -> Option<Key> {
        let alarm = Alarm { delay_queue: Some(self), number };
        let mut key = None;
        let armed = Timer::at(shared, at, alarm, |named| key = Some(named));
        if let Err((Error::Full { .. }, alarm)) = armed {
            match self.keeper.get() {
                Some(&keeper) => self.leave_to_keeper(shared, keeper, alarm),
                // Every timer was in use then, too. This wastes work, but not the tasks.
                None => go_round(shared, alarm),
            }
        }
        key
    }

    #[cold]
    fn open_keeper(&'static self, shared: &Shared) {
        let one_at_a_time = self.lock();
        if self.keeper.get().is_none() {
            let keeper = Keeper(self);
            if let Ok(key) = service::open_timed(shared, move || keeper.run()) {
                self.keeper.set(key).expect("it is set under this lock only");
            }
        }
        drop(one_at_a_time);
    }

    #[cold]
    fn leave_to_keeper(&'static self, shared: &Shared, keeper: Key, mut alarm: Alarm<M>) {
        alarm.delay_queue = None;
        let mut filed = self.lock();
        if filed.number != alarm.number {
            return;
        }
        filed.stands_in = true;
        let was_kept = core::mem::replace(&mut filed.kept, true);
        drop(filed);
        if !was_kept {
            service::call(shared, keeper);
        }
        // The keeper may have gone before it stood in.
        if shared.is_too_late() {
            self.stop(alarm.number);
        }
    }

    /// The keeper runs. When it is to look again.
    fn stand_in(&'static self, shared: &Arc<Shared>) -> u64 {
        let mut filed = self.lock();
        if filed.stands_in {
            let (at, number) = (filed.at, filed.number);
            if at <= shared.now() {
                drop(filed);
                self.wake(shared, number);
            } else {
                // There may be a timer by now.
                filed.stands_in = false;
                drop(filed);
                self.arm(shared, Rearm { at, number, old: None });
            }
            filed = self.lock();
        }
        filed.kept = filed.stands_in;
        match filed.kept {
            true => filed.at.min(shared.now().saturating_add(LOOK)),
            false => NEVER,
        }
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
            wheel.advance(M::table(), now, |index| {
                awake.push(index);
                None
            });
        }
        let next = filed.next::<M>();
        let rearm = filed.rearm(next);
        drop(filed);
        self.arm(shared, rearm);
        self.each(awake, Parcel::run);
    }

    /// Gives what was parked in each record to `then`.
    fn each(&self, indices: Vec<u32>, then: impl Fn(Parcel)) {
        for index in indices {
            if let Some(parcel) = record_of::<M>(index).unfile() {
                self.asleep.fetch_sub(1, Relaxed);
                let _panicked = contain(|| then(parcel));
            }
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
        wheel.sweep(M::table(), |index| {
            let is_dead = !record_of::<M>(index).is_parked();
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
            wheel.sweep(M::table(), |index| {
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

impl<M: Meta> DelayQueue<M> {
    /// Whether as many tasks as that sleep, and the first of them beyond `deadline`, by the pool's clock.
    pub(in crate::task) fn all_sleep_beyond(&self, deadline: u64, tasks: u64) -> bool {
        // The wheel may name an instant that is too early, and `asleep` may be too high for a moment: what ends
        // meanwhile has the pool look again.
        let filed = self.lock();
        self.asleep.load(Relaxed) as u64 >= tasks && filed.next::<M>() > deadline
    }

    /// A task has ended, and its closure was taken out here. Its index stays in the wheel.
    /// `shared` is its pool, if that is there still.
    pub(in crate::task) fn drop_taken(
        &'static self,
        parcel: Parcel,
        shared: impl FnOnce() -> Option<Arc<Shared>>,
    ) {
        let was_last = self.asleep.fetch_sub(1, Relaxed) == 1;
        let left = self.left.fetch_add(1, Relaxed);
        let _panicked = contain(|| drop(parcel));
        if (was_last || left.is_multiple_of(SWEEP_AFTER))
            && let Some(shared) = shared()
        {
            self.sweep(&shared);
        }
    }
}

fn record_of<M: Meta>(index: u32) -> &'static Record<M> {
    M::table().get(index).expect("an index that was given out")
}

/// Posts the alarm to whichever lane has room; without any it is dropped, as if the pool stopped.
#[cold]
fn go_round<M: Meta>(shared: &Shared, mut alarm: Alarm<M>) {
    for lane in Lane::ALL.into_iter().rev() {
        match shared.try_post(lane, alarm) {
            Ok(()) => return,
            Err(rejected) => alarm = rejected.into_inner(),
        }
    }
}

/// See the head of the file.
struct Keeper<M: Meta>(&'static DelayQueue<M>);

impl<M: Meta> Keeper<M> {
    fn run(&self) -> u64 {
        current().map_or(NEVER, |(shared, _)| self.0.stand_in(&shared))
    }
}

impl<M: Meta> Drop for Keeper<M> {
    fn drop(&mut self) {
        // None: there was no slot for it, and whoever wanted one has the lock.
        if self.0.keeper.get().is_none() {
            return;
        }
        let filed = self.0.lock();
        let (stands_in, number) = (filed.stands_in, filed.number);
        drop(filed);
        if stands_in {
            self.0.stop(number);
        }
    }
}

/// Wakes delay queue when it runs.
struct Alarm<M: Meta> {
    /// None: it has run.
    delay_queue: Option<&'static DelayQueue<M>>,
    number: u64,
}

impl<M: Meta> Run for Alarm<M> {
    fn run(mut self) {
        if let (Some(delay_queue), Some((shared, _))) = (self.delay_queue.take(), current()) {
            delay_queue.wake(&shared, self.number);
        }
    }
}

impl<M: Meta> Drop for Alarm<M> {
    fn drop(&mut self) {
        if let Some(delay_queue) = self.delay_queue {
            delay_queue.stop(self.number);
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
    //! | delay queue and their keeper, by the real pool | the keeper rests without a last look, or is not called; its slot rests ARMED | somebody is never woken |
    //! |  | another alarm comes, and it stands in still | the keeper looks for ever |
    //! |  | who found no timer forgets the one that the keeper has armed since; an alarm that was superseded is not cancelled | a timer that nobody can cancel |
    //! |  | no look whether it is too late; a keeper that is dropped stops nobody | somebody sleeps on when the pool has ended |

    use super::*;
    use crate::pool::models::explore;
    use crate::pool::models::fixture::Fixture;
    use crate::task::record::models::{CANCELLED, COMPLETED, Case, Noted};
    use loom::thread;

    const HOUR: Duration = Duration::from_secs(3600);
    /// A little longer than the keeper waits.
    const AFTER_LOOK: Duration = Duration::from_nanos(LOOK + LOOK / 10);

    /// The real pool, with a keeper, and with every other slot in use.
    struct Night {
        fixture: Fixture,
        case: Case,
        delay_queue: &'static DelayQueue<Noted>,
        slots: Vec<u32>,
    }

    impl Night {
        /// loom does not see that a `OnceLock` orders anything, so the keeper is there before threads are.
        fn new() -> Self {
            let (fixture, case) = (Fixture::new(1, 1), Case::new(false));
            let delay_queue: &'static DelayQueue<_> = Box::leak(Box::new(DelayQueue::new()));
            delay_queue.open_keeper(&fixture.shared);
            let slots = core::iter::from_fn(|| fixture.shared.ready.handles.slots.take()).collect();
            Self { fixture, case, delay_queue, slots }
        }

        /// A task goes to sleep, or is cancelled.
        fn put(&self, delay: Duration) {
            let put = self.delay_queue.put(&self.fixture.shared, delay, self.case.sleeping());
            if let Err((_, refused)) = put {
                drop(refused);
            }
        }

        /// A member, who ends when nothing is left to be run.
        fn member(&self, first: impl FnOnce(&Shared) + 'static) -> thread::JoinHandle<()> {
            self.fixture.spawn(move |shared, _| {
                first(shared);
                while Fixture::run_next(shared) {}
            })
        }

        /// Once the delay queue are woken the keeper rests.
        fn is_over(self, tasks: usize) {
            assert_eq!(self.case.count(COMPLETED), tasks);
            let filed = self.delay_queue.lock();
            assert!(!filed.kept && !filed.stands_in);
            drop(filed);
            assert!(self.fixture.is_at_rest());
            self.case.settle(tasks);
        }
    }

    /// Goal: who goes to sleep while every timer is in use is woken when it is due, or at the keeper's next look; and
    /// the keeper rests then. Method: two go to sleep, while the keeper looks after the first; then time goes by.
    #[test]
    fn nobody_sleeps_beside_a_keeper_that_rests() {
        for delays in [[Duration::ZERO; 2], [HOUR, Duration::ZERO], [HOUR, HOUR]] {
            explore(3, move || {
                let night = Night::new();
                let _inside = night.fixture.enter();
                night.put(delays[0]);
                let member = night.member(|_| ());
                night.put(delays[1]);
                member.join().unwrap();
                night.fixture.pass(AFTER_LOOK);
                let due = delays.iter().filter(|delay| delay.is_zero()).count();
                assert_eq!(night.case.count(COMPLETED), due);
                night.fixture.pass(HOUR);
                night.is_over(2);
            });
        }
    }

    /// Goal: when there are timers again there is one alarm, and it is known: another one takes its place. Method:
    /// two slots come free as a waiting task is left to the keeper, who looks; then another goes to sleep, who is due before.
    #[test]
    fn an_alarm_of_the_keeper_can_be_cancelled() {
        explore(3, || {
            let night = Night::new();
            let _inside = night.fixture.enter();
            let slots = night.slots[..2].to_vec();
            let member =
                night.member(move |shared| shared.ready.handles.slots.give_back_all(&slots));
            night.put(2 * HOUR);
            night.put(HOUR);
            member.join().unwrap();
            night.fixture.pass(AFTER_LOOK);
            assert!(
                night.fixture.shared.ready.handles.slots_in_use() <= 2,
                "the keeper, and an alarm"
            );
            night.fixture.pass(HOUR);
            assert_eq!(night.case.count(COMPLETED), 1);
            night.fixture.pass(HOUR);
            night.is_over(2);
        });
    }

    /// Goal: whoever sleeps, or goes to sleep, when the pool ends is cancelled. Method: two go to sleep as a member
    /// lets the keeper look, and then ends the pool and sweeps.
    #[test]
    fn nobody_sleeps_when_the_pool_has_ended() {
        for free in [0, 1] {
            explore(3, move || {
                let night = Night::new();
                night.fixture.shared.ready.handles.slots.give_back_all(&night.slots[..free]);
                let _inside = night.fixture.enter();
                let member = night.fixture.spawn(|shared, _| {
                    Fixture::run_next(shared);
                    shared.stop();
                    shared.sweep();
                });
                night.put(2 * HOUR);
                night.put(HOUR);
                member.join().unwrap();
                assert_eq!(night.case.count(CANCELLED), 2);
                night.case.settle(2);
            });
        }
    }
}
