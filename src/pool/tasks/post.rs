//! Closures on their way into a lane.

use crate::error::{NoRoom, Rejected, Result};
use crate::pool::deadline::Deadline;
use crate::pool::shared::Shared;
use crate::queue::{Erased, Lane, Origin, PushError, Run};

impl Shared {
    /// Pushes a closure without waiting for room.
    #[inline]
    pub(crate) fn try_post<F: Run>(&self, lane: Lane, work: F) -> Result<(), Rejected<F>> {
        let inside = self.is_inside();
        match self.push(lane, work, inside) {
            Ok(()) => Ok(()),
            Err(rejected) => Err(self.counters.count_rejected(rejected)),
        }
    }

    /// Pushes a closure; from outside, waits for room.
    #[inline]
    pub(crate) fn post<F: Run>(&self, lane: Lane, work: F) -> Result<(), Rejected<F>> {
        self.post_or(lane, work, |work| self.post_within(lane, work, Deadline::NEVER))
    }

    /// Pushes a closure; from outside, `full` says what becomes of one for which there is no room.
    #[inline]
    pub(crate) fn post_or<F: Run>(
        &self,
        lane: Lane,
        work: F,
        full: impl FnOnce(F) -> Result<(), Rejected<F>>,
    ) -> Result<(), Rejected<F>> {
        let inside = self.is_inside();
        match self.push(lane, work, inside) {
            Ok(()) => Ok(()),
            Err(Rejected::Full(work, _)) if !inside => full(work),
            Err(rejected) => Err(self.counters.count_rejected(rejected)),
        }
    }

    #[inline]
    fn push<F: Run>(&self, lane: Lane, work: F, inside: bool) -> Result<(), Rejected<F>> {
        if self.is_forked() {
            return Err(Rejected::Forked(work));
        }
        let origin = if inside { Origin::Inside } else { Origin::Outside };
        match self.ready.tasks.push_work(lane, work, origin) {
            Ok(()) => {
                self.ready.notify_task(lane, inside);
                Ok(())
            }
            Err(PushError::Full(work)) => Err(Rejected::Full(work, self.no_room(lane))),
            Err(PushError::Closed(work)) => Err(Rejected::ShutDown(work)),
        }
    }

    /// Waits for room, from outside, until the deadline.
    #[cold]
    pub(crate) fn post_within<F: Run>(
        &self,
        lane: Lane,
        work: F,
        deadline: Deadline,
    ) -> Result<(), Rejected<F>> {
        let push = |work| self.push(lane, work, false);
        let result = self.rooms.of(lane).retry_until(deadline, work, push);
        result.map_err(|rejected| self.counters.count_rejected(rejected))
    }

    /// How many tasks each lane has room for.
    pub(crate) fn lane_capacity(&self) -> usize {
        self.ready.tasks.lane_capacity()
    }

    /// That a lane is full.
    #[cold]
    pub(crate) fn no_room(&self, lane: Lane) -> NoRoom {
        let what = match lane {
            Lane::Critical => "the critical lane of the pool",
            Lane::High => "the high lane of the pool",
            Lane::Normal => "the normal lane of the pool",
            Lane::Low => "the low lane of the pool",
        };
        let helps = "a larger lane_capacity, more threads, or to submit outside of handlers and tasks, \
                     where that waits for room";
        NoRoom::new(what, self.lane_capacity(), helps)
    }

    /// Pushes up to `STAGE` closures at once; what was refused stays in `staged`.
    pub(crate) fn push_staged<F: Run>(
        &self,
        lane: Lane,
        staged: &mut Staged<F>,
        inside: bool,
    ) -> Result<(), Rejected<()>> {
        let mut left = staged.len();
        let next = || staged.next().expect("as many as were counted");
        self.push_made(lane, &mut left, inside, next)
    }

    /// Posts `left` closures, which is counted down. `make` is called once for each that is taken, and
    /// runs while slots are claimed: no code of the user, and short.
    #[inline]
    pub(crate) fn push_made<F: Run>(
        &self,
        lane: Lane,
        left: &mut usize,
        inside: bool,
        mut make: impl FnMut() -> F,
    ) -> Result<(), Rejected<()>> {
        if self.is_forked() {
            return Err(Rejected::Forked(()));
        }
        let origin = if inside { Origin::Inside } else { Origin::Outside };
        while *left > 0 {
            let count = (*left).min(STAGE);
            match self.ready.tasks.push_batch(lane, count, origin, || Erased::new(make())) {
                Ok(pushed) => {
                    *left -= pushed;
                    self.ready.notify_task(lane, inside);
                }
                Err(PushError::Full(())) => return Err(Rejected::Full((), self.no_room(lane))),
                Err(PushError::Closed(())) => return Err(Rejected::ShutDown(())),
            }
        }
        Ok(())
    }
}

/// The most closures that one CAS pushes.
const STAGE: usize = 32;

/// Closures on their way into a lane.
pub(crate) struct Staged<F> {
    closures: [Option<F>; STAGE],
    from: usize,
    to: usize,
}

impl<F> Staged<F> {
    pub(crate) fn new() -> Self {
        Self { closures: [const { None }; STAGE], from: 0, to: 0 }
    }

    /// Fills up from `rest`, once it is empty. Code of the user runs here, and not while slots are
    /// claimed.
    pub(crate) fn fill(&mut self, rest: &mut impl Iterator<Item = F>) {
        debug_assert_eq!(self.len(), 0);
        (self.from, self.to) = (0, 0);
        for (place, closure) in self.closures.iter_mut().zip(rest) {
            *place = Some(closure);
            self.to += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }
}

impl<F> Iterator for Staged<F> {
    type Item = F;

    #[inline]
    fn next(&mut self) -> Option<F> {
        let place = self.closures[..self.to].get_mut(self.from)?;
        self.from += 1;
        place.take()
    }
}
