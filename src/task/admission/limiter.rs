//! Bounds how many tasks of one name run, and how often they start: the line of those that wait.

use crate::sync::Mutex;
use crate::sync::MutexGuard;
use crate::time::Rate;
use crate::time::Tokens;
use std::collections::BTreeMap;
use std::sync::PoisonError;
/// See the head of the file.
pub(crate) struct Limiter<J> {
    pub(in crate::task) tokens: Option<Tokens>,
    most_waiting: usize,
    pub(in crate::task) line: Line<J>,
}

impl<J> Limiter<J> {
    /// For a name with one of the two bounds at least. New tasks are refused once `most_waiting` wait.
    pub(in crate::task) fn new(
        rate: Option<Rate>,
        max_running: Option<u32>,
        most_waiting: usize,
    ) -> crate::Result<Self> {
        let tokens = rate.map(Tokens::new).transpose()?;
        Ok(Self { tokens, most_waiting, line: Line::new(max_running) })
    }

    pub(in crate::task) fn is_full(&self) -> bool {
        self.waiting() >= self.most_waiting
    }

    /// How many are in the line.
    pub(in crate::task) fn waiting(&self) -> usize {
        self.line.lock().waiting.len()
    }
}

/// When a task was submitted, and in which order those of one moment came.
type Age = (u64, u64);

/// Those who wait, by age, and the places that are free. `W` is what waits.
pub(in crate::task) struct Line<W> {
    /// How many may run. None: as many as there are.
    pub(in crate::task) places: Option<u32>,
    queue: Mutex<Queue<W>>,
}

pub(in crate::task) struct Queue<W> {
    pub(in crate::task) waiting: BTreeMap<Age, W>,
    next: u64,
    /// Not counted without a bound.
    free: u32,
    /// Those that were let go and have not come to begin.
    promised: u64,
    letting_go: bool,
    /// A timer will come for a token.
    pub(in crate::task) armed: bool,
    /// Somebody has waited before.
    is_known: bool,
}

impl<W> Line<W> {
    pub(in crate::task) fn new(places: Option<u32>) -> Self {
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
    pub(in crate::task) fn start(
        &self,
        at: u64,
        was_let_go: bool,
        token: impl FnOnce() -> bool,
    ) -> bool {
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

    pub(in crate::task) fn take_place(&self, queue: &mut Queue<W>) -> bool {
        if self.places.is_none() {
            return true;
        }
        let is_free = queue.free > 0;
        queue.free -= u32::from(is_free);
        is_free
    }

    /// Puts `work` into the line, unless it is `gone` by now: then it is the answer.
    pub(in crate::task) fn wait(&self, at: u64, work: W, gone: impl FnOnce() -> bool) -> Option<W> {
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
    pub(in crate::task) fn leave(&self, had_place: bool, was_let_go: bool) {
        let mut queue = self.lock();
        queue.free += u32::from(had_place);
        queue.promised -= u64::from(was_let_go);
    }

    /// Lets who may go, the oldest first, by `go`. `permits` says whether there is a token beside those
    /// that were promised, or when there will be one: the answer is that time, if the caller is to arm
    /// a timer for it.
    pub(in crate::task) fn let_go<D>(
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

    pub(in crate::task) fn take_out(&self, at: u64, is_it: impl Fn(&W) -> bool) -> Option<W> {
        let mut queue = self.lock();
        let mut of_that_moment = queue.waiting.range((at, 0)..=(at, u64::MAX));
        let age = *of_that_moment.find(|(_, work)| is_it(work))?.0;
        queue.waiting.remove(&age)
    }

    pub(in crate::task) fn take_all(&self) -> impl Iterator<Item = W> {
        let mut queue = self.lock();
        queue.armed = false;
        core::mem::take(&mut queue.waiting).into_values()
    }

    /// True once.
    pub(in crate::task) fn is_first_to_wait(&self) -> bool {
        !core::mem::replace(&mut self.lock().is_known, true)
    }

    pub(in crate::task) fn lock(&self) -> MutexGuard<'_, Queue<W>> {
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
