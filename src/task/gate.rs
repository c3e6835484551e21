//! Tasks that wait because as many of their name run as may, or have started as often as they may.
//!
//! A job that is about to begin needs a *place*, if its name has a bound on those that run, and a token
//! of the [`Tokens`], if it has a rate: so the rate is one of starts, however long the lanes are. Without
//! them it goes into the gate, which lets it back into its lane when it may begin.
//!
//! ```text
//!   lane ─► a place, a token? ─── yes, and nobody older waits ───► attempt ──┐ its place is free
//!     ▲             └── no ─► line, by age ─┐                                │
//!     └──── let go, with a place ◄──────────┴── a token is there: one timer ─┴── per name
//! ```
//!
//! No thread waits with it, and the threads go on with tasks of other names. A place is kept from when
//! its job is let go, or begins, until the function has returned, or the job is dropped. Between two
//! attempts a task has none. One whose attempts are pulled has none once it has ended: its host may never
//! come back.
//!
//! # Invariants
//!
//! 1. Every start takes a token. So the bound of `time/rate.rs` holds for starts. Nobody is let go for a token
//!    that somebody else was let go for.
//! 2. Places that are free, and jobs that have one, are together as many as may run.
//! 3. A job that was not let go begins only if no older one of its name is in the line: the young cannot
//!    starve the old. One that was let go, and finds its token gone, gives its place back and takes its
//!    old place in the line.
//! 4. If a place is free and somebody waits then somebody is letting go, or there is no token, `armed` is
//!    set, and a [`Wake`] is on its way.
//! 5. While a job waits for a place a `Wake` is in a timer that never comes. Any of them, dropped unrun
//!    because the pool stops, ends who is in the line.
//!
//! # Orderings
//!
//! All of the line under its lock, which is held for a few steps, never while a job is let go or dropped.
//! One thread at a time lets go; others only note that a place is free, and it looks again before it
//! stops. So letting go does not recurse, though what is let go may end at once and free its place.

use super::record::{Head, Place};
use super::task_type::TaskTypeInner;
use super::waiting::{Parked, Waits};
use crate::error::{Error, Result};
use crate::pool::{Timer, contain};
use crate::queue::{Lane, Run};
use crate::sync::{Mutex, MutexGuard};
use crate::time::{MAX_DELAY, Rate, Tokens};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// See the head of the file.
pub(super) struct Gate {
    tokens: Option<Tokens>,
    most_waiting: usize,
    line: Line<Parked>,
}

impl Gate {
    /// For a name with one of the two bounds at least. New tasks are refused once `most_waiting` wait.
    pub(super) fn new(
        rate: Option<Rate>,
        max_running: Option<u32>,
        most_waiting: usize,
    ) -> Result<Self> {
        let tokens = rate.map(Tokens::new).transpose()?;
        Ok(Self { tokens, most_waiting, line: Line::new(max_running) })
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting() >= self.most_waiting
    }

    /// How many are in the line.
    pub(super) fn waiting(&self) -> usize {
        self.line.lock().waiting.len()
    }

    /// Lets a task begin now, or keeps its job until it may: then there is no answer.
    pub(super) fn pass<J: Waits + 'static>(&self, head: Head, job: J) -> Option<J> {
        let task_type = head.task_type();
        let was_let_go = head.take_released();
        if was_let_go && self.line.places.is_some() && !head.take_place() {
            // The task has ended, and gave its place up. It does not begin.
            self.line.leave(false, true);
            self.let_go(task_type);
            return Some(job);
        }
        let token = || self.tokens.as_ref().is_none_or(|it| it.take(task_type.clock.now()).is_ok());
        let starts = self.line.start(head.submitted(), was_let_go, token);
        if self.line.places.is_some() {
            head.set_place(starts);
        }
        if starts {
            return Some(job);
        }
        self.keep_waiting(head, job);
        self.let_go(task_type);
        None
    }

    #[cold]
    fn keep_waiting<J: Waits + 'static>(&self, head: Head, job: J) {
        let task_type = head.task_type();
        if self.line.places.is_some() && self.line.is_first_to_wait() {
            self.arm(task_type, MAX_DELAY);
        }
        // One of two notices an end that comes now: who ends it, or this.
        if head.when_ended(|extras| extras.place = Place::Gate) {
            return;
        }
        let ended = self.line.wait(head.submitted(), Box::new(job), || head.is_ended());
        let _panicked = contain(|| drop(ended));
    }

    /// The attempt has returned: its place, if it had one, is free.
    #[inline]
    pub(super) fn leave(&self, head: Head) {
        if head.take_place() {
            self.give_back(head.task_type());
        }
    }

    /// The same for a place that the attempt itself had.
    pub(super) fn give_back(&self, task_type: &'static TaskTypeInner) {
        self.line.leave(true, false);
        self.let_go(task_type);
    }

    /// The job is dropped: what it had or was promised is another's.
    pub(super) fn gone_unrun(&self, head: Head) {
        let (had_place, was_let_go) = (head.take_place(), head.take_released());
        if had_place || was_let_go {
            self.line.leave(had_place, was_let_go);
            self.let_go(head.task_type());
        }
    }

    /// Lets go who may.
    #[cold]
    fn let_go(&self, task_type: &'static TaskTypeInner) {
        let permits = |promised| {
            let Some(tokens) = &self.tokens else { return Ok(()) };
            let now = task_type.clock.now();
            match tokens.available(now) > promised {
                true => Ok(()),
                false => Err(Duration::from_nanos(tokens.next(now, promised) - now)),
            }
        };
        let delay = self.line.let_go(permits, |job| {
            job.task().set_released(self.line.places.is_some());
            let _panicked = contain(|| job.go());
        });
        if let Some(delay) = delay {
            self.arm(task_type, delay);
        }
    }

    fn arm(&self, task_type: &'static TaskTypeInner, delay: Duration) {
        let Some(common) = task_type.common() else { return };
        let shared = &common.shared;
        let wake = Wake { task_type: Some(task_type) };
        let Err((error, mut wake)) = Timer::after(shared, delay, wake, |_| ()) else { return };
        match error {
            // Every timer is in use. Going round through a lane wastes work, but not the tasks.
            Error::Full { .. } if delay < MAX_DELAY => drop(shared.try_post(Lane::Low, wake)),
            // Those who run come by, each when it is through.
            Error::Full { .. } => wake.task_type = None,
            _ => drop(wake),
        }
    }

    /// Takes the job of a task that has ended.
    pub(super) fn take_out(&self, head: Head) -> Option<Parked> {
        let id = head.id();
        self.line.take_out(head.submitted(), |job| job.task().id() == id)
    }

    /// The pool stops: nobody will come for them.
    fn drop_all(&self) {
        for job in self.line.take_all() {
            let _panicked = contain(|| drop(job));
        }
    }
}

/// Opens a gate when it runs.
struct Wake {
    /// None: it has run.
    task_type: Option<&'static TaskTypeInner>,
}

impl Run for Wake {
    fn run(mut self) {
        if let Some(task_type) = self.task_type.take()
            && let Some(gate) = &task_type.gate
        {
            gate.line.lock().armed = false;
            gate.let_go(task_type);
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        if let Some(gate) = self.task_type.and_then(|task_type| task_type.gate.as_ref()) {
            gate.drop_all();
        }
    }
}

/// When a task was submitted, and in which order those of one moment came.
type Age = (u64, u64);

/// Those who wait, by age, and the places that are free. `W` is what waits.
struct Line<W> {
    /// How many may run. None: as many as there are.
    places: Option<u32>,
    queue: Mutex<Queue<W>>,
}

struct Queue<W> {
    waiting: BTreeMap<Age, W>,
    next: u64,
    /// Not counted without a bound.
    free: u32,
    /// Those that were let go and have not come to begin.
    promised: u64,
    letting_go: bool,
    /// A timer will come for a token.
    armed: bool,
    /// Somebody has waited before.
    is_known: bool,
}

impl<W> Line<W> {
    fn new(places: Option<u32>) -> Self {
        let queue = Queue {
            waiting: BTreeMap::new(),
            next: 0,
            free: places.unwrap_or(0),
            promised: 0,
            letting_go: false,
            armed: false,
            is_known: false,
        };
        Self { places, queue: Mutex::new(queue) }
    }

    /// Whether one that was submitted `at` may begin. If so it has a place; if not, it has none, even if
    /// it was let go with one. `token` takes a token.
    fn start(&self, at: u64, was_let_go: bool, token: impl FnOnce() -> bool) -> bool {
        let mut queue = self.lock();
        queue.promised -= u64::from(was_let_go);
        if !was_let_go {
            let oldest = queue.waiting.first_key_value().map(|(age, _)| age.0);
            if oldest.is_some_and(|oldest| oldest <= at) || !self.take_place(&mut queue) {
                return false;
            }
        }
        let starts = token();
        if !starts && self.places.is_some() {
            queue.free += 1;
        }
        starts
    }

    fn take_place(&self, queue: &mut Queue<W>) -> bool {
        if self.places.is_none() {
            return true;
        }
        let is_free = queue.free > 0;
        queue.free -= u32::from(is_free);
        is_free
    }

    /// Puts `work` into the line, unless it is `gone` by now: then it is the answer.
    fn wait(&self, at: u64, work: W, gone: impl FnOnce() -> bool) -> Option<W> {
        let mut queue = self.lock();
        if gone() {
            return Some(work);
        }
        let age = (at, queue.next);
        queue.next += 1;
        queue.waiting.insert(age, work);
        None
    }

    /// A place is free again, or one that was let go will not begin. The caller lets go.
    fn leave(&self, had_place: bool, was_let_go: bool) {
        let mut queue = self.lock();
        queue.free += u32::from(had_place);
        queue.promised -= u64::from(was_let_go);
    }

    /// Lets who may go, the oldest first, by `go`. `permits` says whether there is a token beside those
    /// that were promised, or when there will be one: the answer is that time, if the caller is to arm
    /// a timer for it.
    fn let_go<D>(
        &self,
        permits: impl Fn(u64) -> Result<(), D>,
        mut go: impl FnMut(W),
    ) -> Option<D> {
        let mut queue = self.lock();
        if core::mem::replace(&mut queue.letting_go, true) {
            return None;
        }
        let later = loop {
            if queue.waiting.is_empty() || self.places.is_some() && queue.free == 0 {
                break None;
            }
            if let Err(later) = permits(queue.promised) {
                break (!core::mem::replace(&mut queue.armed, true)).then_some(later);
            }
            self.take_place(&mut queue);
            queue.promised += 1;
            let oldest = queue.waiting.pop_first();
            drop(queue);
            oldest.into_iter().for_each(|(_, work)| go(work));
            queue = self.lock();
        };
        queue.letting_go = false;
        later
    }

    fn take_out(&self, at: u64, is_it: impl Fn(&W) -> bool) -> Option<W> {
        let mut queue = self.lock();
        let mut of_that_moment = queue.waiting.range((at, 0)..=(at, u64::MAX));
        let age = *of_that_moment.find(|(_, work)| is_it(work))?.0;
        queue.waiting.remove(&age)
    }

    fn take_all(&self) -> impl Iterator<Item = W> {
        let mut queue = self.lock();
        queue.armed = false;
        core::mem::take(&mut queue.waiting).into_values()
    }

    /// True once.
    fn is_first_to_wait(&self) -> bool {
        !core::mem::replace(&mut self.lock().is_known, true)
    }

    fn lock(&self) -> MutexGuard<'_, Queue<W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACES: u32 = 3;

    /// One step of somebody.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// One comes that was submitted then.
        Comes(u64),
        /// The oldest that runs returns.
        Returns,
        /// So many tokens are there from now on.
        Tokens(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0u64..20).prop_map(Step::Comes),
            3 => Just(Step::Returns),
            1 => (0u64..3).prop_map(Step::Tokens),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        /// Goal: invariants 2 to 4. Method: after each step those who may go have gone, by a list of all
        /// that wait and a count of those that run.
        #[test]
        fn agrees_with_a_list(steps in steps()) {
            let line = Line::new(Some(PLACES));
            let (mut waiting, mut running, mut tokens): (Vec<(u64, usize)>, u32, u64) = (vec![], 0, 1);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Comes(at) => {
                        let older = waiting.iter().any(|(other, _)| *other <= at);
                        let may = !older && running < PLACES && tokens > 0;
                        let starts = line.start(at, false, || tokens > 0);
                        prop_assert_eq!(starts, may);
                        if starts {
                            (running, tokens) = (running + 1, tokens - 1);
                        } else {
                            prop_assert!(line.wait(at, number, || false).is_none());
                            waiting.push((at, number));
                            waiting.sort_unstable();
                        }
                    }
                    Step::Returns if running > 0 => {
                        running -= 1;
                        line.leave(true, false);
                    }
                    Step::Returns => {}
                    Step::Tokens(more) => {
                        tokens = more;
                        line.lock().armed = false;
                    }
                }
                let mut gone = Vec::new();
                let was_armed = line.lock().armed;
                let permits = |promised| if tokens > promised { Ok(()) } else { Err(()) };
                let arms = line.let_go(permits, |work| gone.push(work)).is_some();
                let going = waiting.len().min((PLACES - running) as usize).min(tokens as usize);
                let expected: Vec<_> = waiting.drain(..going).map(|(_, number)| number).collect();
                prop_assert_eq!(&gone, &expected);
                for _ in gone {
                    prop_assert!(line.start(0, true, || true));
                    (running, tokens) = (running + 1, tokens - 1);
                }
                let lacks_token = !waiting.is_empty() && running < PLACES;
                prop_assert_eq!(arms, lacks_token && !was_armed);
                prop_assert_eq!(line.lock().free, PLACES - running);
            }
        }
    }

    #[test]
    fn who_was_let_go_and_has_no_token_gives_its_place_back() {
        let line = Line::new(Some(1));
        assert!(line.wait(5, 5, || false).is_none());
        assert!(line.wait(6, 6, || true).is_some());
        let mut gone = Vec::new();
        let always = |_| Ok::<(), ()>(());
        assert!(line.let_go(always, |work| gone.push(work)).is_none());
        assert_eq!((gone, line.lock().free), (vec![5], 0));
        assert!(!line.start(4, false, || true));
        assert!(!line.start(5, true, || false));
        assert_eq!(line.lock().free, 1);
        // Or it is dropped on its way.
        assert!(line.wait(7, 7, || false).is_none());
        let mut gone = Vec::new();
        assert!(line.let_go(always, |work| gone.push(work)).is_none());
        line.leave(true, true);
        let queue = line.lock();
        assert_eq!((gone, queue.free, queue.promised), (vec![7], 1, 0));
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
    //! | places of those that run | who leaves gives no place back; who was let go takes another | one is left in the line |
    //! |  | who lets go stops under another lock than that of its last look | likewise |
    //! |  | who is let go has no place; a place is taken twice | too many places; two run at once |

    use super::*;
    use crate::sync::{Arc, UnsafeCell};
    use loom::thread;
    use std::collections::VecDeque;

    /// One place, and the lane that those who are let go come back to.
    struct Stage {
        line: Line<u64>,
        lane: Mutex<VecDeque<u64>>,
        runs: UnsafeCell<()>,
        ran: Mutex<Vec<u64>>,
    }

    impl Stage {
        /// One comes to the front of its lane.
        fn comes(&self, task: u64, was_let_go: bool) {
            if self.line.start(task, was_let_go, || true) {
                // Two at once, or one that does not see what the other did, are a violation.
                self.runs.with_mut(|_| ());
                self.ran.lock().unwrap().push(task);
                self.line.leave(true, false);
            } else {
                assert!(self.line.wait(task, task, || false).is_none());
            }
            let permits = |_| Ok::<(), ()>(());
            self.line.let_go(permits, |task| self.lane.lock().unwrap().push_back(task));
        }

        /// Whatever has come back to the lane.
        fn run_lane(&self) {
            loop {
                let next = self.lane.lock().unwrap().pop_front();
                let Some(task) = next else { return };
                self.comes(task, true);
            }
        }
    }

    /// Goal: however returns, arrivals and letting go meet, nobody runs beside another, and nobody is
    /// left in the line beside a free place. Method: two threads, each with a task, then with what is
    /// let go; who comes to an empty lane leaves.
    #[test]
    fn a_place_is_handed_on() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let stage = Arc::new(Stage {
                line: Line::new(Some(1)),
                lane: Mutex::new(VecDeque::new()),
                runs: UnsafeCell::new(()),
                ran: Mutex::new(Vec::new()),
            });
            let other = Arc::clone(&stage);
            let worker = thread::spawn(move || {
                other.comes(1, false);
                other.run_lane();
            });
            stage.comes(0, false);
            stage.run_lane();
            worker.join().unwrap();
            stage.run_lane();
            let mut ran = stage.ran.lock().unwrap().clone();
            ran.sort_unstable();
            assert_eq!(ran, [0, 1]);
            assert!(stage.line.lock().waiting.is_empty());
            assert_eq!(stage.line.lock().free, 1);
        });
    }
}
