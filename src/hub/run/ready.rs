//! Which mailboxes have something to do, and who serves them.
//!
//! A subscription has no slot of the pool: there may be a million. The hub keeps one list of the mailboxes
//! that are to be served, and has a few *services*, which are slots of the pool that work the list off: as
//! many as the pool has threads, so that every thread can serve.
//!
//! # Invariants
//!
//! 1. If the list is not empty, a service is called and has not begun, or none rests: then each of them
//!    looks at the list again before it does.
//! 2. A service that takes something from the list and leaves something there has another one called before
//!    it begins: what is in the list never waits behind a handler that does not return.
//! 3. What is *held* will be put there later, by a timer: it is counted from before its run ends until, under one
//!    lock, it is put there; so nobody who looks finds it in neither place. Or until somebody takes it back.
//!
//! # Shelves
//!
//! What waits lies on shelves, one for each service, so that mailboxes which are neighbours in memory, and in
//! the list of their channel, are not served by two threads at once: their lines would go from one processor
//! to the other with each message. A service takes the first of its own shelf; if that is empty the last of
//! another one, away from where its service is. What lies there has a stamp, which grows with each push: so what
//! has waited for more pushes than there are things that wait is found (within eight turns), and is next for whoever
//! comes.
//!
//! All of it is under one lock, held for a push or a pop. That the list is looked at before a service rests,
//! and that it is then seen resting by the next push, is the lock's doing; that a call is never lost, the
//! slot's (`pool/service.rs`).

use crate::pool::Remains;
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::PoisonError;

/// See the head of the file. `W` is what is to be served.
pub(in crate::hub) struct Ready<W> {
    list: Mutex<List<W>>,
}

struct List<W> {
    waiting: Shelves<W>,
    /// Services that rest.
    resting: Vec<usize>,
    /// Services that are called and have not begun.
    called: usize,
    /// What will be put there later.
    held: usize,
    /// No later than the first of those is due, by the pool's clock.
    first_due: u64,
}

/// A service that the caller has to call.
pub(in crate::hub) type Call = Option<usize>;

impl<W> Ready<W> {
    /// With so many services, all of which rest.
    pub(in crate::hub) fn new(services: usize) -> Self {
        let list = List {
            waiting: Shelves::new(services),
            resting: (0..services).rev().collect(),
            called: 0,
            held: 0,
            first_due: 0,
        };
        Self { list: Mutex::new(list) }
    }

    /// Puts something at the end of a shelf, in turns.
    #[must_use]
    pub(in crate::hub) fn push(&self, work: W) -> Call {
        let mut list = self.lock();
        list.waiting.push(work);
        list.call_for_what_waits()
    }

    /// A service puts something at the end of its own.
    #[must_use]
    pub(in crate::hub) fn push_back(&self, service: usize, work: W) -> Call {
        let mut list = self.lock();
        list.waiting.push_to(service, work);
        list.call_for_what_waits()
    }

    /// Puts some of `count` there, in order, by their places among these: neighbours lie on the same shelf.
    #[must_use]
    pub(in crate::hub) fn push_all(
        &self,
        count: usize,
        work: impl Iterator<Item = (usize, W)>,
    ) -> Call {
        let mut list = self.lock();
        let shelves = list.waiting.shelves.len();
        for (place, work) in work {
            list.waiting.put((place * shelves / count).min(shelves - 1), work);
        }
        list.waiting.stamp += 1;
        list.call_for_what_waits()
    }

    /// Something will be put there at `due`, by the pool's clock.
    pub(in crate::hub) fn hold(&self, due: u64) {
        let mut list = self.lock();
        list.first_due = if list.held == 0 { due } else { list.first_due.min(due) };
        list.held += 1;
    }

    /// So many that were held will not be put there, or have nobody who must be told.
    pub(in crate::hub) fn let_go(&self, count: usize) {
        if count > 0 {
            self.lock().held -= count;
        }
    }

    /// Puts something there that was held.
    #[must_use]
    pub(in crate::hub) fn push_due(&self, work: W) -> Call {
        let mut list = self.lock();
        list.held -= 1;
        list.waiting.push(work);
        list.call_for_what_waits()
    }

    /// A service begins.
    pub(in crate::hub) fn begin(&self) {
        self.lock().called -= 1;
    }

    /// A service asks for the first of the list, which may come with another service to be called. None:
    /// it rests from now on.
    pub(in crate::hub) fn pop(&self, service: usize) -> Option<(W, Call)> {
        let mut list = self.lock();
        let Some(work) = list.waiting.pop(service) else {
            list.resting.push(service);
            return None;
        };
        // It enters a handler, as far as anybody knows.
        let call = if list.waiting.is_empty() { None } else { list.call_one() };
        Some((work, call))
    }

    /// A service lets others have their turn, and will begin again without being called.
    pub(in crate::hub) fn yields(&self) {
        self.lock().called += 1;
    }

    /// A service rests though there may be something in the list, because the pool stops.
    pub(in crate::hub) fn stop(&self, service: usize) {
        self.lock().resting.push(service);
    }

    /// How many wait.
    pub(in crate::hub) fn len(&self) -> usize {
        self.lock().waiting.count
    }

    /// What a drain that ends at `deadline` still has to wait for.
    pub(in crate::hub) fn remains(&self, deadline: u64) -> Remains {
        let list = self.lock();
        let is_empty = list.waiting.is_empty();
        let rests = list.resting.len() == list.waiting.shelves.len();
        match list.held {
            _ if !(is_empty && rests) => Remains::Work,
            0 => Remains::Nothing,
            _ if list.first_due > deadline => Remains::Later,
            _ => Remains::Work,
        }
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, List<W>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What waits. See the head of the file.
struct Shelves<W> {
    /// Each with its stamp.
    shelves: Box<[VecDeque<(u64, W)>]>,
    /// How much lies on all of them.
    count: usize,
    /// Where the next thing goes that belongs nowhere.
    next: usize,
    /// Of the next push.
    stamp: u64,
    /// Pops until somebody looks what has waited for too long; 0: something has.
    until_look: u32,
}

/// So often somebody looks what has waited for too long.
const LOOK: u32 = 8;

impl<W> Shelves<W> {
    fn new(count: usize) -> Self {
        let shelves = (0..count).map(|_| VecDeque::new()).collect();
        Self { shelves, count: 0, next: 0, stamp: 0, until_look: LOOK }
    }

    pub(in crate::hub) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, work: W) {
        self.next = (self.next + 1) % self.shelves.len();
        self.push_to(self.next, work);
    }

    fn push_to(&mut self, shelf: usize, work: W) {
        self.put(shelf, work);
        self.stamp += 1;
    }

    /// Puts something there at the same time as what comes next.
    fn put(&mut self, shelf: usize, work: W) {
        self.count += 1;
        self.shelves[shelf].push_back((self.stamp, work));
    }

    fn pop(&mut self, own: usize) -> Option<W> {
        if self.count == 0 {
            return None;
        }
        let overdue = self.overdue();
        let first = self.shelves[overdue.unwrap_or(own)].pop_front();
        let found = first.or_else(|| self.shelves.iter_mut().find_map(VecDeque::pop_back));
        self.count -= 1;
        found.map(|(_, work)| work)
    }

    /// The shelf whose first has waited for too long, if somebody has to look and there is one.
    fn overdue(&mut self) -> Option<usize> {
        self.until_look = self.until_look.saturating_sub(1);
        if self.until_look > 0 {
            return None;
        }
        let firsts = self.shelves.iter().enumerate();
        let stamps = firsts.filter_map(|(shelf, works)| Some((works.front()?.0, shelf)));
        let (stamp, shelf) = stamps.min()?;
        let overdue = self.stamp - stamp > self.count as u64;
        self.until_look = if overdue { 0 } else { LOOK };
        overdue.then_some(shelf)
    }
}

impl<W> List<W> {
    fn call_for_what_waits(&mut self) -> Call {
        if self.waiting.is_empty() { None } else { self.call_one() }
    }

    /// Calls a service, unless one is called already or all are at work.
    fn call_one(&mut self) -> Call {
        if self.called > 0 {
            return None;
        }
        let call = self.resting.pop();
        self.called += usize::from(call.is_some());
        call
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_on_one_shelf() {
        let ready = Ready::new(2);
        let call = ready.push_all(6, (0..6).map(|place| (place, place)));
        assert!(call.is_some());
        ready.begin();
        let pop = |service| ready.pop(service).map(|(work, _)| work);
        // Each its own, in order; and then the last of the other one.
        assert_eq!([pop(0), pop(1), pop(0), pop(1)], [Some(0), Some(3), Some(1), Some(4)]);
        assert_eq!([pop(1), pop(1), pop(1)], [Some(5), Some(2), None]);
    }

    /// Goal: nothing waits for long beside a shelf that never gets empty. Method: one service works, on something
    /// that is there again each time; the others are stuck, and things lie on their shelves.
    #[test]
    fn what_lies_on_the_shelf_of_a_service_that_is_stuck_has_its_turn() {
        for (services, stuck) in [(2, 100), (8, 100), (64, 1000), (64, 1)] {
            let ready = Ready::new(services);
            let others = (0..stuck).map(|number| (number % (services - 1) + 1, number));
            let _call = ready.push_all(services, others);
            ready.begin();
            let hot = usize::MAX;
            let _called = ready.push_back(0, hot);
            let (mut turns, mut served) = (0, Vec::new());
            while served.len() < stuck {
                let (work, _) = ready.pop(0).expect("there is some");
                match work == hot {
                    true => {
                        turns += 1;
                        let most = stuck + 1 + LOOK as usize;
                        assert!(turns <= most, "{services} services, {stuck}: {turns}");
                        let _called = ready.push_back(0, hot);
                    }
                    false => served.push(work),
                }
            }
            served.sort_unstable();
            assert!(served.into_iter().eq(0..stuck));
        }
    }

    #[test]
    fn what_is_held_is_waited_for_until_its_time() {
        let ready = Ready::<&str>::new(2);
        assert_eq!(ready.remains(9), Remains::Nothing);
        ready.hold(10);
        let remains = [9, 10].map(|deadline| ready.remains(deadline));
        assert_eq!(remains, [Remains::Later, Remains::Work]);
        ready.let_go(1);
        assert_eq!(ready.remains(10), Remains::Nothing);
    }
}
