//! Tasks that may be dropped to make room for others, the oldest of the least lane first.

use crate::error::{NoRoom, Rejected};
use crate::queue::LANES;
use crate::queue::Lane;
use crate::sync::Mutex;
use crate::sync::MutexGuard;
use std::collections::VecDeque;
use std::sync::PoisonError;
/// See the head of the file. `W` is what may be dropped.
pub(in crate::task) struct Lists<W> {
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
    pub(in crate::task) fn new(most: usize) -> Self {
        let list = || List { waiting: VecDeque::new(), tickets: 0 };
        let lanes = core::array::from_fn(|_| list());
        Self { most, all: Mutex::new(All { count: 0, lanes }) }
    }

    /// Takes a task in: `make` yields it, `post` puts a ticket into its lane. Who had to go for it is
    /// the answer. Refused, nothing has changed, and `make` was not called.
    pub(in crate::task) fn enter(
        &self,
        lane: Lane,
        make: impl FnOnce() -> W,
        post: impl FnOnce() -> Result<(), Rejected<()>>,
    ) -> Result<Option<W>, Rejected<()>> {
        let mut all = self.lock();
        let is_full = all.count >= self.most;
        let mut goes = is_full
            .then(|| all.lowest(lane).ok_or(Rejected::Full((), self.no_room())))
            .transpose()?;
        let list = &mut all.lanes[lane as usize];
        let staying = list.waiting.len() - usize::from(goes == Some(lane));
        if list.tickets <= staying {
            match post() {
                Ok(()) => list.tickets += 1,
                // The lane is full: the ticket of its own oldest is the one there is.
                Err(Rejected::Full((), _)) if staying > 0 => goes = Some(lane),
                Err(rejected) => return Err(rejected),
            }
        }
        let oldest = goes.and_then(|lane| all.take(lane));
        all.lanes[lane as usize].waiting.push_back(make());
        all.count += 1;
        Ok(oldest)
    }

    /// Somebody has come to a ticket: who goes for it.
    pub(in crate::task) fn leave(&self, lane: Lane) -> Option<W> {
        let mut all = self.lock();
        all.lanes[lane as usize].tickets -= 1;
        all.take(lane)
    }

    #[cold]
    fn no_room(&self) -> NoRoom {
        let helps = "a larger lane_capacity, or tasks of lower lanes that may be dropped";
        NoRoom::new("the list of tasks that may be dropped", self.most, helps)
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
                    if posted { Ok(()) } else { Err(Rejected::Full((), lists.no_room())) }
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
