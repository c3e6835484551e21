//! Where attempts that a host takes wait, and those that are out.

use crate::pool::Key;
use crate::pool::Timer;
use crate::pool::contain;
use crate::queue::Aged;
use crate::queue::Lane;
use crate::queue::Outbox;
use crate::queue::Store;
use crate::queue::Turn;
use crate::sync::Mutex;
use crate::sync::MutexGuard;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::attempt::guard::Begun;
use crate::task::attempt::guard::NEVER;
use crate::task::attempt::guard::Watch;
use crate::task::result::report::Status;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::PoisonError;

/// The name of an attempt that is out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AttemptId(pub(crate) u64);

/// What a worker pool has for its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskEvent {
    /// An attempt has begun. It is out until it is completed. `task` is the task's number; `number` is 1 for its first
    /// attempt.
    Attempt { id: AttemptId, tag: u64, task: u64, number: u32 },
    /// A task has ended otherwise than by the completion of an attempt. An attempt of it may be out still,
    /// and is to be completed all the same.
    End { tag: u64, task: u64, status: Status },
}

impl TaskEvent {
    /// The task's.
    pub(crate) fn tag(&self) -> u64 {
        match *self {
            Self::Attempt { tag, .. } | Self::End { tag, .. } => tag,
        }
    }
}

// --- where they wait --------------------------------------------------------------------------------

pub(in crate::task) enum Item<J> {
    Job(Lane, J),
    End(TaskEvent),
}

/// Ends first, which are old news; then jobs, in the order of lanes.
pub(in crate::task) struct Waiting<J> {
    ends: VecDeque<TaskEvent>,
    lanes: [VecDeque<J>; Lane::ALL.len()],
    turn: Turn,
    len: usize,
    /// No more jobs come.
    shut: bool,
}

impl<J> Default for Waiting<J> {
    fn default() -> Self {
        let (ends, lanes) = (VecDeque::new(), Lane::ALL.map(|_| VecDeque::new()));
        Self { ends, lanes, turn: Turn::default(), len: 0, shut: false }
    }
}

impl<J> Store<Item<J>> for Waiting<J> {
    fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, item: Item<J>) {
        self.len += 1;
        match item {
            Item::End(end) => self.ends.push_back(end),
            Item::Job(lane, job) => self.lanes[lane as usize].push_back(job),
        }
    }

    fn take(&mut self, count: usize, out: &mut Vec<Item<J>>) {
        for _ in 0..count {
            out.extend(self.pop());
        }
        self.len -= count;
    }
}

impl<J> Waiting<J> {
    /// As a thread of the pool claims.
    fn pop(&mut self) -> Option<Item<J>> {
        if let Some(end) = self.ends.pop_front() {
            return Some(Item::End(end));
        }
        let from = |lane: Lane| self.lanes[lane as usize].pop_front().map(|job| (lane, job));
        let ((lane, job), picked) = self.turn.pick(Aged::NONE, from)?;
        self.turn.note(picked, |lane| !self.lanes[lane as usize].is_empty());
        Some(Item::Job(lane, job))
    }

    /// No more jobs come: those that are there.
    fn shut(&mut self) -> Vec<J> {
        self.shut = true;
        let jobs: Vec<_> = self.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect();
        self.len -= jobs.len();
        jobs
    }
}

/// An attempt that is out. `J` is its job.
pub(in crate::task) struct Open<J> {
    pub(in crate::task) job: J,
    pub(in crate::task) begun: Begun,
    pub(in crate::task) timer: Option<Timer>,
    pub(in crate::task) lease: Option<Lease>,
}

/// How long a host may be silent.
pub(in crate::task) struct Lease {
    pub(in crate::task) time: u64,
    /// When it gave the last sign of life.
    pub(in crate::task) heard: u64,
    /// What looks next, and when.
    pub(in crate::task) timer: Option<(u64, Timer)>,
}

impl Lease {
    pub(in crate::task) fn due(&self) -> u64 {
        self.heard.saturating_add(self.time)
    }
}

/// Keeps the timer that is due last, and gives the other one back: whoever has armed a timer may come here when it has
/// gone off, and the next is kept already.
pub(in crate::task) fn keep_last<T>(kept: &mut Option<(u64, T)>, due: u64, timer: T) -> Option<T> {
    match kept {
        Some((last, _)) if *last > due => Some(timer),
        _ => kept.replace((due, timer)).map(|(_, timer)| timer),
    }
}

/// What is out, by numbers: `{ generation: 32, index + 1: 32 }`.
pub(in crate::task) struct Table<O> {
    pub(in crate::task) places: Vec<(u32, Option<O>)>,
    free: Vec<u32>,
}

impl<O> Table<O> {
    fn put(&mut self, open: O) -> AttemptId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (generation, place) = &mut self.places[index as usize];
        *place = Some(open);
        AttemptId(u64::from(*generation) << 32 | u64::from(index + 1))
    }

    pub(in crate::task) fn place(&mut self, id: AttemptId) -> Option<&mut (u32, Option<O>)> {
        let place = self.places.get_mut((id.0 as u32).checked_sub(1)? as usize)?;
        (u64::from(place.0) == id.0 >> 32).then_some(place)
    }

    pub(in crate::task) fn take(&mut self, id: AttemptId) -> Option<O> {
        let (generation, place) = self.place(id)?;
        let open = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.0 as u32 - 1);
        Some(open)
    }

    pub(in crate::task) fn take_all(&mut self) -> Vec<O> {
        let mut taken = Vec::new();
        for (index, (generation, place)) in self.places.iter_mut().enumerate() {
            if let Some(open) = place.take() {
                *generation = generation.wrapping_add(1);
                self.free.push(index as u32);
                taken.push(open);
            }
        }
        taken
    }
}

/// Both places: of jobs `J`, and of attempts `O`.
pub(in crate::task) struct Desk<J, O> {
    pub(in crate::task) outbox: Outbox<Item<J>, Waiting<J>>,
    /// How many jobs wait.
    pub(in crate::task) waiting: AtomicUsize,
    pub(in crate::task) out: Mutex<Table<O>>,
}

impl<J, O> Desk<J, O> {
    pub(in crate::task) fn new() -> Self {
        let table = Table { places: Vec::new(), free: Vec::new() };
        Self { outbox: Outbox::new(), waiting: AtomicUsize::new(0), out: Mutex::new(table) }
    }

    /// Lets a job wait. Err: no more come.
    pub(in crate::task) fn put<G: Into<J>>(
        &self,
        lane: Lane,
        job: G,
    ) -> core::result::Result<(), G> {
        self.waiting.fetch_add(1, Relaxed);
        let may = |waiting: &Waiting<J>| !waiting.shut;
        let put = self.outbox.put_if(may, job, |job| Item::Job(lane, job.into()));
        if put.is_err() {
            self.waiting.fetch_sub(1, Relaxed);
        }
        put
    }

    pub(in crate::task) fn tell(&self, end: TaskEvent) {
        drop(self.outbox.put(Item::End(end)));
    }

    /// No more jobs come, and those that wait are dropped.
    pub(in crate::task) fn end(&self) {
        for job in self.outbox.change(Waiting::shut) {
            self.waiting.fetch_sub(1, Relaxed);
            let _panicked = contain(|| drop(job));
        }
        self.outbox.end();
    }

    pub(in crate::task) fn lock(&self) -> MutexGuard<'_, Table<O>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` out of where they wait, and begins those that are jobs. None: it is over.
    /// False: nothing was there.
    pub(in crate::task) fn bring(
        &self,
        events: &mut Vec<TaskEvent>,
        most: usize,
        begin: impl Fn(J) -> Option<(O, TaskEvent)>,
    ) -> Option<bool> {
        let mut items = Vec::new();
        let taken = self.outbox.take(&mut items, most, Duration::ZERO)?;
        self.begin(items, events, begin);
        Some(taken > 0)
    }

    fn begin(
        &self,
        items: Vec<Item<J>>,
        events: &mut Vec<TaskEvent>,
        begin: impl Fn(J) -> Option<(O, TaskEvent)>,
    ) {
        let mut begun = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::End(end) => events.push(end),
                Item::Job(_, job) => {
                    self.waiting.fetch_sub(1, Relaxed);
                    begun.extend(begin(job));
                }
            }
        }
        let mut table = self.lock();
        for (open, mut event) in begun {
            let place = table.put(open);
            if let TaskEvent::Attempt { id, .. } = &mut event {
                *id = place;
            }
            events.push(event);
        }
    }

    /// The attempt of that number, which is not out any more.
    pub(in crate::task) fn take(&self, id: AttemptId) -> Option<O> {
        self.lock().take(id)
    }
}

/// Attempts that every timer was in use for.
pub(in crate::task) struct Unwatched {
    /// For their leases.
    pub(in crate::task) ids: Vec<AttemptId>,
    /// For their limits.
    pub(in crate::task) watches: Vec<Watch>,
    /// The earliest of their times.
    pub(in crate::task) due: u64,
    /// The keeper runs, was called, or will run by itself.
    pub(in crate::task) kept: bool,
}

impl Unwatched {
    pub(in crate::task) const NONE: Self =
        Self { ids: Vec::new(), watches: Vec::new(), due: NEVER, kept: false };
}

/// See the head of the file.
pub(crate) struct Attempts<J> {
    pub(in crate::task) desk: Desk<J, Open<J>>,
    /// How many jobs may wait before new tasks are refused.
    pub(in crate::task) most: usize,
    pub(in crate::task) keeper: OnceLock<Key>,
    pub(in crate::task) unwatched: Mutex<Unwatched>,
    /// For those who would submit; who puts a job in is told by the desk.
    pub(in crate::task) over: AtomicBool,
}

impl<J> Attempts<J> {
    pub(in crate::task) fn new(most: usize) -> Self {
        let (keeper, unwatched) = (OnceLock::new(), Mutex::new(Unwatched::NONE));
        Self { desk: Desk::new(), most, keeper, unwatched, over: AtomicBool::new(false) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_has_gone_off_replaces_none_that_was_armed_since() {
        let mut kept = None;
        assert_eq!(keep_last(&mut kept, 3, "first"), None);
        assert_eq!(keep_last(&mut kept, 9, "third"), Some("first"));
        assert_eq!(keep_last(&mut kept, 6, "second"), Some("second"));
        assert_eq!(kept, Some((9, "third")));
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
    //! | attempts that a host takes | a job comes in after all were taken out | it is never taken, and its task never ends |
    //! |  | what a shutdown takes out is not dropped, or ends go with it | a host does not hear of an end |
    //! |  | it is over before the ends of what waited are told | likewise |
    //! |  | a number does not change when its attempt is completed | the next attempt is completed by it |
    //! |  | who is refused is counted as waiting | new tasks are refused for nothing |

    use super::*;
    use crate::pool::models::explore;
    use crate::task::record::models::{CANCELLED, COMPLETED, Case, Counted, Noted, TIMED_OUT};
    use crate::task::record::word::{Record, Runner};
    use loom::thread;

    type Place = Desk<Work, Work>;

    const FOR_EVER: Duration = Duration::MAX;

    /// A job of two attempts, the first of which fails. None: the task has ended by it.
    struct Work {
        runner: Option<Runner<Noted, Counted>>,
        value: Option<Counted>,
        failed: bool,
        desk: &'static Place,
    }

    impl Drop for Work {
        fn drop(&mut self) {
            if let Some(runner) = self.runner.take() {
                end(runner.record(), CANCELLED, self.desk);
            }
        }
    }

    /// Another end than that of an attempt.
    fn end(record: &'static Record<Noted>, status: u32, desk: &Place) {
        if record.end_if(status, |_| true, |_| {}, "") {
            desk.tell(TaskEvent::End { tag: 7, task: 7, status: Status::Cancelled });
        }
    }

    fn desk() -> &'static Place {
        Box::leak(Box::new(Desk::new()))
    }

    fn work(case: &Case, runner: Runner<Noted, Counted>, desk: &'static Place) -> Work {
        Work { runner: Some(runner), value: Some(case.value()), failed: false, desk }
    }

    fn begin(work: Work) -> Option<(Work, TaskEvent)> {
        let begun = work.runner.as_ref()?.begin();
        let event = TaskEvent::Attempt { id: AttemptId(0), tag: 7, task: 7, number: 1 };
        begun.is_some().then_some((work, event))
    }

    /// What an attempt has come to: 1 if that was its task's end.
    fn complete(mut work: Work) -> u32 {
        let runner = work.runner.take().expect("it has not ended");
        if work.failed {
            let value = work.value.take().expect("it has not ended");
            return u32::from(runner.finish(COMPLETED, value, None));
        }
        let again = runner.retry();
        work.runner = Some(runner);
        work.failed = true;
        if again {
            let desk = work.desk;
            drop(desk.put(Lane::Normal, work));
        }
        0
    }

    /// How many ends it hears of, by events or by completing, until it is over or (`time` is zero)
    /// nothing is there.
    fn host(desk: &Place, time: Duration) -> u32 {
        let (mut ends, mut last) = (0, None);
        let (mut items, mut events) = (Vec::new(), Vec::new());
        while desk.outbox.take(&mut items, 2, time).is_some_and(|taken| taken > 0) {
            desk.begin(core::mem::take(&mut items), &mut events, begin);
            for event in events.drain(..) {
                match event {
                    TaskEvent::End { .. } => ends += 1,
                    TaskEvent::Attempt { id, .. } => {
                        if let Some(last) = last.replace(id) {
                            assert!(desk.take(last).is_none(), "it was completed");
                        }
                        ends += complete(desk.take(id).expect("it is out"));
                    }
                }
            }
        }
        ends
    }

    fn nothing_is_left(desk: &Place) {
        assert_eq!(desk.waiting.load(Relaxed), 0);
        assert!(desk.lock().places.iter().all(|(_, open)| open.is_none()));
    }

    /// Goal: whatever waits when it is over, whatever is out then and fails, its host hears of the end
    /// before it hears that it is over. Method: a host against a shutdown.
    #[test]
    fn a_shutdown_is_the_last_that_is_heard_of() {
        explore(3, || {
            let (case, desk) = (Case::new(false), desk());
            let (runner, holder) = case.open();
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            let taker = thread::spawn(move || host(desk, FOR_EVER));
            desk.end();
            assert_eq!(taker.join().unwrap(), 1);
            nothing_is_left(desk);
            drop(holder);
            case.settle(1);
        });
    }

    /// Goal: a task whose time is over while it waits, is out or is to be tried again has one end, and is
    /// answered or told of, not both. Method: a time-out and a shutdown beside a host, and another look when all
    /// is through.
    #[test]
    fn an_end_is_answered_or_told_of() {
        explore(2, || {
            let (case, desk) = (Case::new(false), desk());
            let (runner, holder) = case.open();
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            let taker = thread::spawn(move || host(desk, FOR_EVER));
            let guard = thread::spawn(move || {
                end(holder.record(), TIMED_OUT, desk);
            });
            desk.end();
            guard.join().unwrap();
            assert_eq!(taker.join().unwrap() + host(desk, Duration::ZERO), 1);
            nothing_is_left(desk);
            case.settle(1);
        });
    }

    /// Goal: an end that was told is brought next, whoever comes too late meanwhile, and whose
    /// task ends too. Method: a task that was cancelled, and a submission beside a shutdown.
    #[test]
    fn an_end_that_was_told_stays() {
        explore(3, || {
            let (case, desk) = (Case::new(false), desk());
            let ((runner, holder), (late, late_holder)) = (case.open(), case.open());
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            end(holder.record(), CANCELLED, desk);
            let late = work(&case, late, desk);
            let submitter = thread::spawn(move || drop(desk.put(Lane::High, late)));
            desk.end();
            let first = host(desk, Duration::ZERO);
            assert!(first > 0);
            submitter.join().unwrap();
            assert_eq!(desk.waiting.load(Relaxed), 0, "nobody would take it");
            assert_eq!(first + host(desk, Duration::ZERO), 2);
            nothing_is_left(desk);
            drop((holder, late_holder));
            case.settle(2);
        });
    }
}
