//! Reserved threads: they run the tasks of one lane and nothing else.
//!
//! # The problem
//!
//! Lanes decide who is next, and no task is next while every thread is inside a long task. A thread
//! that waits for tasks of one lane is free for these whatever happens. But a thread that runs one
//! lane only breaks what all others rely on: that whoever is called runs whatever it finds, and that
//! whoever leads handles what it harvests.
//!
//! # The idea
//!
//! The reserved threads of a lane have a wake word of their own. So a call for ordinary work never
//! takes one of them, and the searching mark of one of them never holds back a call for ordinary
//! work. Everything else follows from what such a thread can do about a thing:
//!
//! | what lies there | who is called | what a reserved thread does that comes across it |
//! |---|---|---|
//! | a task of its lane | a parked reserved one; else as for any task, and a reserved leader is rung too | runs it |
//! | any other task, an activation | ordinary members only | wakes an ordinary parked one, if it finds it stuck |
//! | an offered set | whoever does; a reserved watch if no ordinary member is parked | leads if it finds it stuck, and keeps no event |
//!
//! ```text
//!   post (its lane) ─► reserved, parked ─┐
//!                   └► ordinary, parked ─┴► runs it
//!                   └► polling leader
//!
//!   every ordinary thread busy, a set offered:
//!     reserved follower ──arm──► watch ──stuck for a tick──► leader ──harvest──► all of it is
//!                                                                   ready work; an ordinary parked one
//!                                                                   is called to it
//! ```
//!
//! # Rules
//!
//! 1. Tasks of a reserved lane are claimed one at a time (`queue::lanes`), by any member. So none of them
//!    lies in a local queue, where a reserved thread could not tell it from others.
//! 2. A post to such a lane calls a parked reserved one whatever ordinary members are about. If there is
//!    none, one of them is awake and looks again before it parks, or runs a task of its lane, or
//!    leads, and is rung.
//! 3. A post that relied on the searching mark of an ordinary member is remembered by whoever gives
//!    that mark up for other work: it calls for the lane (`call_reserved`).
//! 4. A reserved thread does not come to lead by itself: an ordinary one would have to be woken for
//!    each event. It leads when it was called to, or when it has found a set offered for two looks of
//!    the watch while no ordinary member is parked.
//! 5. It is the watch only while a set is offered and no ordinary member is parked. What a stuck member
//!    holds is for an ordinary watch, or a polling leader: if there is none no member can take it,
//!    and whoever parks, or goes to the source, looks for it. Whoever did so while a reserved thread
//!    had the watch is called when that ends.
//!
//! # Orderings
//!
//! As everywhere: *publish, barrier, look who is parked* against *announce parking, barrier, look for
//! work*. Rule 5 has a pair of its own: a reserved member *announces parking, barrier, looks whether a
//! set is offered and an ordinary member is parked*; an ordinary member *offers, barrier, looks for a
//! watch* before it runs code of the user, or *announces parking, barrier, looks for an offered set*.

use super::ReadyWork;
use crate::queue::Lane;
use crate::sync::store_load_barrier;

impl ReadyWork {
    /// A searching mark is given up for work: whoever relied on it for a task of a reserved lane is
    /// answered for (rule 3).
    #[cold]
    pub(crate) fn call_reserved(&self) {
        for lane in self.members.reserved_lanes() {
            if self.tasks.is_claimable(lane) {
                self.call_for_lane(lane);
            }
        }
    }

    /// Tasks of a reserved lane were published.
    #[cold]
    pub(crate) fn notify_reserved(&self, lane: Lane, inside: bool) {
        // Against *announce parking, then look for work*.
        store_load_barrier();
        if self.members.wake_reserved(lane) || self.ring_reserved(lane) {
            return;
        }
        self.notify(inside);
    }

    /// Somebody comes for what lies in `lane`. The caller has passed a barrier.
    fn call_for_lane(&self, lane: Lane) {
        if !self.members.wake_reserved(lane)
            && !self.ring_reserved(lane)
            && !self.members.wake_one()
        {
            let _rung = self.ring_a_leader();
        }
    }

    /// A member leaves work behind that no member has claimed.
    pub(crate) fn call_for_unclaimed(&self) {
        for lane in self.members.reserved_lanes() {
            if self.tasks.is_claimable(lane) {
                self.call_for_lane(lane);
            }
        }
        if !self.members.wake_one() {
            let _rung = self.ring_a_leader();
        }
    }

    /// A reserved member is about to park, and has announced it: whatever is left to watch over is
    /// an ordinary parked member's, or an ordinary leader's; if there is none, an offered set is a reserved
    /// one's (rule 5).
    pub(crate) fn see_to_a_watch(&self, me: usize) {
        if !self.members.is_unwatched() {
            return;
        }
        let offered = self.is_offered();
        if self.members.has_parked() || self.is_polling() {
            if offered || self.needs_watch(me) || self.has_unclaimed() {
                self.call_a_watch();
            }
        } else if offered {
            self.members.arm_reserved_watch(None);
        }
    }

    /// Whether a reserved thread has no reason to be the watch (rule 5). It ends its watch then, and
    /// sees to another.
    pub(crate) fn is_better_unwatched(&self) -> bool {
        self.members.has_parked() || !self.is_offered()
    }
}
