//! Turns: with as many endless backlogs as members, whatever else becomes ready begins after a turn and one handler of
//! each (`pool/turn.rs`).
//!
//! The members have their whole loop. A backlog is a service that always has more, and whose handler lasts as long as a
//! turn, by the model's clock. The first of them makes a timer due and posts a task to the first lane and to the last.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | endless backlogs | `poll_due` does not look whether the turn is over | the timer begins too late |
//! |  | the clock is not read when an activation has more to do | likewise |
//! |  | a turn that nobody can lead after does not begin anew, and one that was led does not either | likewise |
//! |  | activations are drawn as long as there are some | the tasks begin too late |

use super::explore;
use super::fixture::Fixture;
use crate::Flow;
use crate::pool::service;
use crate::pool::slots::Start;
use crate::pool::{Key, Shared};
use crate::queue::Lane;
use core::time::Duration;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Longer than a turn, and than a tick of the timers' wheel.
const HANDLER: Duration = Duration::from_millis(3);
const LONG: u64 = u64::MAX - 1;

/// What has begun, in plain memory.
#[derive(Default)]
struct Seen {
    /// Handlers of backlogs.
    ran: AtomicUsize,
    /// How many of those had run when each of the others began.
    began: [OnceLock<usize>; 3],
}

impl Seen {
    fn note(self: &Arc<Self>, which: usize) -> impl FnOnce() + Send + use<> {
        let seen = Arc::clone(self);
        move || assert!(seen.began[which].set(seen.ran.load(Relaxed)).is_ok(), "it began twice")
    }

    fn have_all_begun(&self) -> bool {
        self.began.iter().all(|began| began.get().is_some())
    }
}

/// By the first handler: `Timer::after`, and posts.
fn make_ready(shared: &Shared, timer: Key, seen: &Arc<Seen>) {
    let slots = &shared.ready.handles.slots;
    slots.slot(timer.index).set_deadline(shared.now());
    slots.publish(timer, Start::Armed);
    shared.ready.handles.sets[0].arm(slots, timer.index, shared.now());
    for (which, lane) in [(1, Lane::Critical), (2, Lane::Low)] {
        assert!(shared.try_post(lane, seen.note(which)).is_ok());
    }
}

/// Goal: with so many members, and as many endless backlogs, a timer that is due, an urgent task and one of the last lane
/// begin after `most` handlers of these.
fn all_begin(members: usize, most: usize) {
    explore(1, move || {
        let fixture = Fixture::new(members, 4);
        let seen = Arc::new(Seen::default());
        let timer = fixture.timer_of(seen.note(0));
        for _ in 0..members {
            let (shared, script, seen) =
                (Arc::downgrade(&fixture.shared), fixture.script(), Arc::clone(&seen));
            let backlog = move || {
                let shared = shared.upgrade().expect("the members have it");
                if seen.ran.fetch_add(1, Relaxed) == 0 {
                    make_ready(&shared, timer, &seen);
                }
                script.advance(HANDLER);
                if seen.have_all_begun() { Flow::Done } else { Flow::Again }
            };
            service::call(&fixture.shared, service::open(&fixture.shared, backlog).unwrap());
        }
        let threads: Vec<_> = (0..members).map(|me| fixture.start(me)).collect();
        fixture.shared.drain(LONG);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let began = seen.began.each_ref().map(|began| began.get().copied());
        if seen.ran.load(Relaxed) > 0 {
            for (what, began) in ["timer", "urgent task", "last task"].iter().zip(began) {
                let began = began.unwrap_or_else(|| panic!("the {what} has not begun"));
                assert!(began <= most, "the {what} began after {began} handlers");
            }
        }
    });
}

#[test]
fn one_member_with_an_endless_backlog_serves_all() {
    all_begin(1, 3);
}

#[test]
fn two_members_with_endless_backlogs_serve_all() {
    all_begin(2, 6);
}
