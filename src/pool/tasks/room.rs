//! Producers that wait for room: while a lane is full, or while their strand is.

use crate::error::Rejected;
use crate::pool::deadline::Deadline;
use crate::queue::{LANES, Lane, TaskQueue};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::store_load_barrier;
use crate::sys::futex::Futex;

/// Where producers wait while a lane is full, or while their strand is.
pub(crate) struct Room {
    waiters: AtomicU32,
    epoch: Futex,
}

impl Room {
    fn new() -> Self {
        Self { waiters: AtomicU32::new(0), epoch: Futex::new(0) }
    }

    /// Whether a producer waits. The caller has made room and passed a barrier.
    #[inline]
    fn is_wanted(&self) -> bool {
        self.waiters.load(Relaxed) != 0
    }

    #[cold]
    fn call(&self) {
        self.epoch.fetch_add(1, AcqRel);
        self.epoch.wake(i32::MAX);
    }

    /// Waits until there may be room and tries again, as long as the answer is `Full`, until the deadline.
    #[cold]
    pub(crate) fn retry_until<W>(
        &self,
        deadline: Deadline,
        mut work: W,
        mut attempt: impl FnMut(W) -> Result<(), Rejected<W>>,
    ) -> Result<(), Rejected<W>> {
        self.waiters.fetch_add(1, AcqRel);
        let result = loop {
            // Acquire: a wake-up that comes after this load changes the epoch, and is not lost.
            let epoch = self.epoch.load(Acquire);
            // Against *make room, then look for waiters* in [`Rooms::made_room`].
            store_load_barrier();
            match attempt(work) {
                Err(Rejected::Full(back, _)) if !deadline.is_over() => work = back,
                other => break other,
            }
            self.epoch.wait(epoch, deadline.left());
        };
        self.waiters.fetch_sub(1, AcqRel);
        result
    }
}

/// Where producers wait, by what they wait for.
pub(crate) struct Rooms {
    /// By lane.
    lanes: [Room; LANES],
    /// Room in a strand.
    pub(crate) strands: Room,
}

impl Rooms {
    pub(crate) fn new() -> Self {
        Self { lanes: core::array::from_fn(|_| Room::new()), strands: Room::new() }
    }

    pub(crate) fn of(&self, lane: Lane) -> &Room {
        &self.lanes[lane as usize]
    }

    /// Tasks have left their slots: wakes producers that wait for room in a lane that has fallen to
    /// half, so that a producer and a consumer do not wake each other for every task.
    #[inline]
    pub(crate) fn made_room(&self, tasks: &TaskQueue) {
        // Against *announce waiting, then try to push* in `Room::retry_until`.
        store_load_barrier();
        if self.lanes.iter().any(Room::is_wanted) {
            self.call_producers(tasks);
        }
    }

    #[cold]
    fn call_producers(&self, tasks: &TaskQueue) {
        let half = tasks.lane_capacity() / 2;
        for lane in Lane::ALL {
            let room = self.of(lane);
            if room.is_wanted() && tasks.len(lane) <= half {
                room.call();
            }
        }
    }

    /// A strand has run some of its tasks.
    pub(crate) fn made_room_in_strand(&self) {
        store_load_barrier();
        if self.strands.is_wanted() {
            self.strands.call();
        }
    }

    /// Calls every producer, because there will be no room.
    pub(crate) fn dismiss(&self) {
        self.lanes.iter().for_each(Room::call);
        self.strands.call();
    }
}
