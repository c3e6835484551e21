//! Turns: how long a thread works on what is ready before it looks at everything that waits.
//!
//! # The problem
//!
//! One activation can stand for any amount of work: a strand, a ring, a mailbox, a connection with pipelined requests.
//! If it ended by a number of handlers, slow handlers would make it last for minutes; and with as many of those as the
//! pool has threads, nobody would look at the event source, at timers that are due, or at an urgent lane.
//!
//! # The rule
//!
//! A thread's turn begins when it looks at the event source, or finds that another thread does. It is over after
//! [`Builder::max_turn`](super::Builder::max_turn). Code that calls several handlers one after another asks after each
//! of them whether the turn is over ([`TurnClock::is_over`]). If it is, that code keeps the rest where it is, returns,
//! and goes behind what waits. The thread then, in this order,
//!
//! 1. looks at the event source, unless another thread does, and at the timers that are due there, and runs the first
//!    handler of what that brings;
//! 2. runs one task of a lane above the one that it has claimed tasks of, if there is one;
//! 3. goes on with ready work: a task, something that was harvested, a task, something that became ready otherwise, and
//!    so on, each kind in order. At least one of these runs before the next look at the source.
//!
//! So beside any number of endless backlogs, each kind is reached after some turns and one handler of each. A host that
//! stays for one turn only ([`Pool::join`](super::Pool::join) without time) runs at least one of each kind.
//!
//! | what runs | how it goes behind what waits |
//! |---|---|
//! | tasks, one-shot timers | those that are claimed stay in the local queue, where others can steal them |
//! | a strand, a ring, a connection, a datagram socket | its slot is QUEUED again, on the stack |
//! | subscriptions, replays, the hub's strand | back on the hub's list, and the service's slot on the stack |
//!
//! Within a turn those who stand on one list (subscriptions of a hub, say) have a *share* each: [`TurnClock::share_is_over`].
//!
//! # The clock
//!
//! To read the clock takes 20 to 40 ns, which is more than some handlers take. So handlers that take less than [`QUICK`]
//! on average are measured in groups of up to [`GROUP`], and others one by one. If quick handlers become slow at once, the
//! turn ends late by what is left of one group.

use super::context;
use crate::sys::clock;
use core::cell::Cell;

/// Handlers that take less than so many nanoseconds on average are measured in groups.
const QUICK: u64 = 500;
/// The most handlers between two looks at the clock.
const GROUP: u32 = 32;
/// The most handlers in the first group of a share.
const FIRST_GROUP: u32 = 8;
/// What one of several on a list may do before the next has its share, in nanoseconds: to change between them costs some
/// hundred.
const SHARE: u64 = 20_000;

/// When the turn of a thread is over.
#[derive(Clone, Copy)]
struct End {
    at: u64,
    /// By a clock that a test moves.
    manual: bool,
}

impl End {
    const NEVER: End = End { at: u64::MAX, manual: false };
}

thread_local! {
    /// A thread that is no member of a pool has turns that are never over.
    static END: Cell<End> = const { Cell::new(End::NEVER) };
}

/// The calling thread has begun a turn, which is over at this instant of its pool's clock.
#[inline]
pub(super) fn ends_at(at: u64, manual: bool) {
    // The models of loom share what threads have for themselves.
    if cfg!(not(loom)) {
        END.set(End { at, manual });
    }
}

/// The calling thread is a member no more.
pub(super) fn never_ends() {
    let _ = END.try_with(|end| end.set(End::NEVER));
}

/// Measures handlers that the calling thread runs one after another. It may be kept from one turn to the next.
pub(crate) struct TurnClock {
    /// Handlers until the next look at the clock, and in that group.
    left: u32,
    group: u32,
    /// When the clock was last read; 0: not yet.
    read_at: u64,
    /// What a handler took on average in the last group, in nanoseconds.
    average: u64,
    share_ends: u64,
    over: bool,
}

impl TurnClock {
    pub(crate) fn new() -> Self {
        Self { left: 1, group: 1, read_at: 0, average: QUICK, share_ends: 0, over: false }
    }

    /// A new turn of the thread begins, or what follows is another's run in the same one.
    pub(crate) fn begin(&mut self) {
        self.over = false;
        self.begin_share();
    }

    /// The next of several on a list has its share.
    #[inline]
    pub(crate) fn begin_share(&mut self) {
        // What has passed since the last look is no handler's, and this one's handlers may be slower than the last one's.
        (self.read_at, self.share_ends) = (0, 0);
        (self.left, self.group) = (1, self.group.min(FIRST_GROUP));
    }

    /// A handler has returned: whether the thread's turn is over.
    #[inline(always)] // A part of the loop of a handler's calls.
    pub(crate) fn is_over(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.look()
    }

    /// Whether it was over at the last look.
    #[inline]
    pub(crate) fn was_over(&self) -> bool {
        self.over
    }

    /// Whether this share has lasted long enough, or the turn is over, as far as the last look tells.
    #[inline]
    pub(crate) fn share_is_over(&self) -> bool {
        self.over || self.share_ends != 0 && self.read_at >= self.share_ends
    }

    /// How many handlers of this kind are worth about a share, 1 to `most`.
    #[inline]
    pub(crate) fn batch(&self, most: usize) -> usize {
        usize::try_from(SHARE / self.average).unwrap_or(most).clamp(1, most)
    }

    #[inline(never)]
    fn look(&mut self) -> bool {
        let end = END.try_with(Cell::get).unwrap_or(End::NEVER);
        let now = match end.manual {
            // The models of loom must take the same way each time.
            _ if cfg!(loom) => 1,
            true => manual_now(),
            false => clock::now(),
        };
        if self.read_at != 0 {
            self.average = ((now - self.read_at) / u64::from(self.group)).max(1);
            let quick = self.average < QUICK;
            self.group = if quick { (2 * self.group).min(GROUP) } else { 1 };
        }
        if self.share_ends == 0 {
            self.share_ends = now + SHARE;
        }
        self.over = now >= end.at;
        (self.read_at, self.left) = (now, if self.over { 1 } else { self.group });
        self.over
    }
}

/// The clock of a pool with a scripted source.
#[cold]
fn manual_now() -> u64 {
    context::current().map_or(0, |(shared, _)| shared.now())
}
