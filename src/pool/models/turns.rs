//! Turns: beside any number of endless backlogs, whatever else becomes ready begins after a turn and one handler of each
//! (`pool/turn.rs`).
//!
//! A member has its whole loop: it is as if all others of the pool had backlogs of their own. A backlog is a service that
//! always has more, and whose handler lasts longer than a turn, by the model's clock. The first of them makes a timer due
//! and posts a task to the first lane and to the last.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | endless backlogs | `poll_due` does not look whether the turn is over | the timer begins too late |
//! |  | activations are drawn as long as there are some | the tasks never begin |

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

/// Goal: beside so many endless backlogs a timer that is due, an urgent task and one of the last lane begin after `most`
/// handlers of these.
fn all_begin(backlogs: usize, most: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    // A member's whole loop, several times.
    builder.max_branches = 20_000;
    builder.check(move || {
        let fixture = Fixture::new(1, 4);
        let seen = Arc::new(Seen::default());
        let timer = fixture.timer_of(seen.note(0));
        for _ in 0..backlogs {
            let (shared, script, seen) =
                (Arc::downgrade(&fixture.shared), fixture.script(), Arc::clone(&seen));
            let backlog = move || {
                let shared = shared.upgrade().expect("the members have it");
                if seen.ran.fetch_add(1, Relaxed) == 0 {
                    make_ready(&shared, timer, &seen);
                }
                script.advance(HANDLER);
                if !seen.have_all_begun() {
                    return Flow::Again;
                }
                shared.drain(LONG);
                Flow::Done
            };
            service::call(&fixture.shared, service::open(&fixture.shared, backlog).unwrap());
        }
        fixture.start(0).join().unwrap();
        let began = seen.began.each_ref().map(|began| began.get().copied());
        for (what, began) in ["timer", "urgent task", "last task"].iter().zip(began) {
            let began = began.unwrap_or_else(|| panic!("the {what} has not begun"));
            assert!(began <= most, "the {what} began after {began} handlers");
        }
    });
}

#[test]
fn beside_one_endless_backlog_all_begin() {
    all_begin(1, 3);
}

#[test]
fn beside_three_endless_backlogs_all_begin() {
    all_begin(3, 5);
}
