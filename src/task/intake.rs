//! What is done with a task for which its lane has no room.
//!
//! Three of the policies need nothing but the lane. For the fourth, which drops the oldest, tasks must lie
//! where a submitter can take them from. So tasks that may be dropped lie in a list of their own for each
//! lane, and a *ticket* for each lies in the lane itself: a thread that comes to a ticket runs the oldest
//! of its list.
//!
//! ```text
//!   submit ─► list of the lane ──── a ticket is run ───► attempt
//!       │        │
//!       │        └── full, and the oldest ─► dropped: REJECTED
//!       └─ a ticket, unless one is to spare ─► lane
//! ```
//!
//! A list keeps the order of the lane, and who is dropped leaves a ticket to the one who comes in its
//! place. Nobody is dropped who did not agree to it: what was submitted by another policy lies in the
//! lane itself.
//!
//! # Invariants
//!
//! 1. A lane has at least as many tickets as its list has tasks. So none is forgotten; a ticket to spare
//!    runs nothing.
//! 2. `count` is the number of tasks in all lists, and never above `most`.
//! 3. A task is dropped only for one of its own lane or of a higher one.
//! 4. What is dropped leaves its list under the lock, and its closure is dropped after it.
//!
//! # Orderings
//!
//! All under one lock. A ticket is pushed under it too: whoever comes to the ticket finds the task.

use super::attempt::Outcome;
use super::execute::{Body, Job};
use super::report::Status;
use super::waiting::{Lobby, Parked};
use crate::error::Rejected;
use crate::pool::{Deadline, Shared, contain};
use crate::queue::{LANES, Lane, Run};
use crate::sync::{Mutex, MutexGuard};
use crate::time::MAX_DELAY;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::PoisonError;

/// What is done with a task for which its lane has no room.
///
/// It is about lanes only. A task that may not wait for its key, for its rate or its time, or for those
/// of its name that run, because too many do ([`max_waiting`](super::WorkerPoolBuilder::max_waiting)), is given back whatever this says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OverloadPolicy {
    /// It is given back at once.
    Reject,
    /// Its submitter waits for room, for so long at most (`Duration::MAX`: as long as it takes), and
    /// gets it back then. On threads of the pool it is given back at once: they must make the room.
    Wait(Duration),
    /// Its first attempt runs in the submitter's thread, before the submission returns, with all that
    /// applies to attempts, rates and bounds included; others run in the pool. No thread of the pool keeps its time: a timer does.
    /// Inside the pool it is given back at once, as a handler that holds a lock would meet itself.
    RunHere,
    /// The oldest task that waits in the lowest lane is dropped, and ends as
    /// [`Rejected`](Status::Rejected). Only tasks with this policy are dropped, and only for those of
    /// their own lane or of a higher one; if there is none, the new one is given back. They are dropped
    /// once [`max_droppable`](super::WorkerPoolBuilder::max_droppable) of them wait, or when their lane
    /// is full. Never waits. Allocates for each task.
    DropOldest,
}

impl Default for OverloadPolicy {
    /// [`OverloadPolicy::Wait`], as long as it takes.
    fn default() -> Self {
        Self::Wait(Duration::MAX)
    }
}

/// Brings a job to its lane, or does what the policy says.
#[inline]
pub(super) fn take_in<B, T>(
    full: OverloadPolicy,
    shared: &Shared,
    lane: Lane,
    job: Job<B, T>,
) -> Result<(), Rejected<Job<B, T>>>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    if full == OverloadPolicy::DropOldest {
        return enlist(shared, lane, job);
    }
    shared.post_or(lane, job, |job| match full {
        OverloadPolicy::Wait(time) => shared.post_within(lane, job, patience(time)),
        OverloadPolicy::RunHere => {
            job.run_here();
            Ok(())
        }
        OverloadPolicy::Reject | OverloadPolicy::DropOldest => {
            Err(shared.counters.count_rejected(Rejected::Full(job)))
        }
    })
}

/// As [`take_in`], for what has no record.
#[cold]
pub(super) fn post_when_full<F>(
    full: OverloadPolicy,
    shared: &Shared,
    lane: Lane,
    work: F,
) -> Result<(), Rejected<F>>
where
    F: FnOnce() + Send + 'static,
{
    match full {
        OverloadPolicy::Wait(time) => shared.post_within(lane, work, patience(time)),
        OverloadPolicy::RunHere => {
            let _panicked = contain(work);
            Ok(())
        }
        OverloadPolicy::Reject | OverloadPolicy::DropOldest => {
            Err(shared.counters.count_rejected(Rejected::Full(work)))
        }
    }
}

pub(super) fn patience(time: Duration) -> Deadline {
    Deadline::after((time <= MAX_DELAY).then_some(time))
}

/// Puts a job into the list of its lane.
#[cold]
fn enlist<B, T>(shared: &Shared, lane: Lane, job: Job<B, T>) -> Result<(), Rejected<Job<B, T>>>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    let lobby = job.head().task_type().lobby;
    let post = || {
        let posted = shared.try_post(lane, Ticket { lobby, lane: Some(lane) });
        posted.map_err(|rejected| rejected.map(Ticket::forget))
    };
    let mut work = Some(job);
    let park =
        |work: &mut Option<_>| -> Parked { Box::new(work.take().expect("it is parked once")) };
    let entered = lobby.lists.enter(lane, || park(&mut work), post);
    match (entered, work) {
        (Ok(dropped), _) => {
            dropped.into_iter().for_each(drop_for_others);
            Ok(())
        }
        (Err(rejected), Some(job)) => Err(rejected.map(|()| job)),
        (Err(_), None) => unreachable!("what is parked is taken in"),
    }
}

fn drop_for_others(oldest: Parked) {
    // If it was cancelled, it has made room without being dropped.
    oldest.task().end_if(Status::Rejected, |_| true);
    let _panicked = contain(|| drop(oldest));
}

/// Stands in a lane for the oldest of its list.
struct Ticket {
    lobby: &'static Lobby,
    /// None: it is used, or was not taken.
    lane: Option<Lane>,
}

impl Ticket {
    fn take(&mut self) -> Option<Parked> {
        self.lane.take().and_then(|lane| self.lobby.lists.leave(lane))
    }

    fn forget(mut self) {
        self.lane = None;
    }
}

impl Run for Ticket {
    fn run(mut self) {
        if let Some(job) = self.take() {
            job.run_now();
        }
    }
}

impl Drop for Ticket {
    /// The pool stops: as many tasks are dropped as tickets.
    fn drop(&mut self) {
        let left = self.take();
        let _panicked = contain(|| drop(left));
    }
}

/// See the head of the file. `W` is what may be dropped.
pub(super) struct Lists<W> {
    most: usize,
    all: Mutex<All<W>>,
}

struct All<W> {
    count: usize,
    lanes: [List<W>; LANES],
}

struct List<W> {
    waiting: VecDeque<W>,
    tickets: usize,
}

impl<W> Lists<W> {
    /// Of which at most so many tasks wait.
    pub(super) fn new(most: usize) -> Self {
        let list = || List { waiting: VecDeque::new(), tickets: 0 };
        let lanes = core::array::from_fn(|_| list());
        Self { most, all: Mutex::new(All { count: 0, lanes }) }
    }

    /// Takes a task in: `make` yields it, `post` puts a ticket into its lane. Who had to go for it is
    /// the answer. Refused, nothing has changed, and `make` was not called.
    fn enter(
        &self,
        lane: Lane,
        make: impl FnOnce() -> W,
        post: impl FnOnce() -> Result<(), Rejected<()>>,
    ) -> Result<Option<W>, Rejected<()>> {
        let mut all = self.lock();
        let is_full = all.count >= self.most;
        let mut goes = is_full.then(|| all.lowest(lane).ok_or(Rejected::Full(()))).transpose()?;
        let list = &mut all.lanes[lane as usize];
        let staying = list.waiting.len() - usize::from(goes == Some(lane));
        if list.tickets <= staying {
            match post() {
                Ok(()) => list.tickets += 1,
                // The lane is full: the ticket of its own oldest is the one there is.
                Err(Rejected::Full(())) if staying > 0 => goes = Some(lane),
                Err(rejected) => return Err(rejected),
            }
        }
        let oldest = goes.and_then(|lane| all.take(lane));
        all.lanes[lane as usize].waiting.push_back(make());
        all.count += 1;
        Ok(oldest)
    }

    /// Somebody has come to a ticket: who goes for it.
    fn leave(&self, lane: Lane) -> Option<W> {
        let mut all = self.lock();
        all.lanes[lane as usize].tickets -= 1;
        all.take(lane)
    }

    fn lock(&self) -> MutexGuard<'_, All<W>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> All<W> {
    fn take(&mut self, lane: Lane) -> Option<W> {
        let oldest = self.lanes[lane as usize].waiting.pop_front()?;
        self.count -= 1;
        Some(oldest)
    }

    /// The lowest lane with a task, not above `lane`.
    fn lowest(&self, lane: Lane) -> Option<Lane> {
        let not_above = Lane::ALL.into_iter().filter(|&other| other as usize >= lane as usize);
        not_above.rev().find(|&other| !self.lanes[other as usize].waiting.is_empty())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: usize = 6;
    /// Tickets that a lane has room for.
    const ROOM: usize = 4;

    proptest! {
        /// Goal: invariants 1 to 3, and nobody is lost. Method: beside it a list of all that wait, in
        /// their order, and a count of tickets for each lane.
        #[test]
        fn agrees_with_a_list(steps in prop::collection::vec((0usize..LANES, any::<bool>()), 1..200)) {
            let lists = Lists::new(MOST);
            let mut waiting: Vec<(Lane, usize)> = Vec::new();
            let mut tickets = [0; LANES];
            for (number, (lane, enters)) in steps.into_iter().enumerate() {
                let lane_of = Lane::ALL[lane];
                let oldest = |waiting: &[(Lane, usize)], lane| {
                    waiting.iter().position(|(of, _)| *of == lane)
                };
                if !enters {
                    if tickets[lane] > 0 {
                        tickets[lane] -= 1;
                        let expected = oldest(&waiting, lane_of).map(|at| waiting.remove(at).1);
                        prop_assert_eq!(lists.leave(lane_of), expected);
                    }
                    continue;
                }
                let mut posted = false;
                let entered = lists.enter(lane_of, || number, || {
                    posted = tickets[lane] < ROOM;
                    if posted { Ok(()) } else { Err(Rejected::Full(())) }
                });
                tickets[lane] += usize::from(posted);
                match entered {
                    Ok(Some(dropped)) => {
                        let at = waiting.iter().position(|(_, other)| *other == dropped).unwrap();
                        let (of, _) = waiting[at];
                        prop_assert_eq!(oldest(&waiting, of), Some(at));
                        if waiting.len() == MOST && !(of == lane_of && tickets[lane] == ROOM) {
                            let lowest = waiting.iter().map(|(of, _)| *of).max();
                            prop_assert_eq!(lowest, Some(of));
                        }
                        prop_assert!(of >= lane_of);
                        waiting.remove(at);
                        waiting.push((lane_of, number));
                    }
                    Ok(None) => {
                        prop_assert!(waiting.len() < MOST);
                        waiting.push((lane_of, number));
                    }
                    Err(_) => {
                        let own = oldest(&waiting, lane_of).is_some();
                        let lower = waiting.iter().any(|(of, _)| *of >= lane_of);
                        prop_assert!(!own && (tickets[lane] == ROOM || !lower));
                    }
                }
                for lane in Lane::ALL {
                    let waits = waiting.iter().filter(|(of, _)| *of == lane).count();
                    let list = &lists.lock().lanes[lane as usize];
                    prop_assert_eq!((list.waiting.len(), list.tickets), (waits, tickets[lane as usize]));
                    prop_assert!(list.tickets >= waits);
                }
                prop_assert_eq!(lists.lock().count, waiting.len());
            }
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
    //! | tasks that may be dropped | a ticket is not counted, or not used up | a task is left without a ticket |
    //! |  | the oldest goes under one lock, and the new one comes under another | likewise |
    //! |  | who goes is counted still | the list is full for ever |

    use super::*;
    use crate::sync::Arc;
    use loom::thread;

    /// A list with room for one, the lane with its tickets, and what became of each task.
    struct Place {
        lists: Lists<usize>,
        lane: Mutex<VecDeque<()>>,
        fates: [Mutex<Vec<&'static str>>; 2],
    }

    impl Place {
        fn submit(&self, task: usize) {
            let post = || {
                self.lane.lock().unwrap().push_back(());
                Ok(())
            };
            match self.lists.enter(Lane::Low, || task, post) {
                Ok(dropped) => dropped.into_iter().for_each(|other| self.note(other, "dropped")),
                Err(_) => self.note(task, "refused"),
            }
        }

        /// A thread comes to the lane.
        fn run(&self) {
            let ticket = self.lane.lock().unwrap().pop_front();
            if ticket.is_some()
                && let Some(task) = self.lists.leave(Lane::Low)
            {
                self.note(task, "run");
            }
        }

        fn note(&self, task: usize, fate: &'static str) {
            self.fates[task].lock().unwrap().push(fate);
        }
    }

    /// Goal: whoever is dropped, and whenever a ticket is run, each task has one fate, and none is left
    /// behind without a ticket. Method: two submitters, the later one of which drops the other's task if
    /// it still waits, and a thread that comes to a ticket meanwhile.
    #[test]
    fn each_task_has_one_fate() {
        loom::model(|| {
            let place = Arc::new(Place {
                lists: Lists::new(1),
                lane: Mutex::new(VecDeque::new()),
                fates: [Mutex::new(Vec::new()), Mutex::new(Vec::new())],
            });
            let (other, runner) = (Arc::clone(&place), Arc::clone(&place));
            let submitter = thread::spawn(move || other.submit(1));
            let worker = thread::spawn(move || runner.run());
            place.submit(0);
            submitter.join().unwrap();
            worker.join().unwrap();
            place.run();
            place.run();
            assert_eq!(place.lists.lock().count, 0);
            for fate in &place.fates {
                assert_eq!(fate.lock().unwrap().len(), 1);
            }
        });
    }
}
