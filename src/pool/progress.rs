//! Whether a pool makes progress, and for how long the oldest thing in it has waited. Health is judged by this alone:
//! the operations endpoint (`ops/health.rs`) and the watchdog of systemd (`admin/systemd.rs`) both ask here.
//!
//! # The rule
//!
//! | the oldest thing that waits has waited for | the last begin or end on any thread was | the pool is |
//! |---|---|---|
//! | nothing waits, or less than `ready_after` | at any time | alive, ready |
//! | `ready_after` or longer | less than `dead_after` ago | alive, not ready |
//! | `ready_after` or longer, and less than `dead_after` | at any time | alive, not ready |
//! | `dead_after` or longer | `dead_after` ago or longer | dead, not ready |
//!
//! How long a handler runs does not matter by itself. So a pool whose threads all compute is alive and ready while
//! nothing waits, and alive while something waits as long as one of them ends what it does within `dead_after`.
//!
//! # What waits
//!
//! | what | how it is seen | its age |
//! |---|---|---|
//! | a task in a lane | positions only grow: a mark is set behind the youngest | of the oldest mark that is not passed |
//! | an activation in a surplus ring | the same | the same |
//! | a task or activation that a thread has claimed and not begun | the age word of its local queue or chain | since that word was first seen |
//! | activations that nobody has claimed | the age word of the stack | since that word was first seen |
//! | a timer that is due while its set has no leader | its slot is ARMED | since its deadline |
//! | an event in a source without a leader | the leadership word says that nobody has led since, the source is readable, and so is a descriptor in it | since that was first seen |
//! | an entry of a completion queue | a source is listed, and no host has taken any since | since that was first seen |
//!
//! A leadership that nobody takes is not by itself something that waits: that is so whenever all threads run handlers,
//! and nothing is late if the source has nothing to say. So the source is asked, without taking anything out of it. It is
//! readable, too, for a ring of its doorbell that came late: so its descriptors are asked as well. (Each of both questions
//! is needed: what a descriptor has to say may have been taken by a leader, and left by its handler.)
//!
//! # What is progress
//!
//! A handler or task began or ended, one that works through messages went on to the next, a host took entries of a
//! completion queue or, through the C interface, completed one. That a thread looks for work, leads, or watches is none.
//!
//! # Sampling
//!
//! Threads write nothing for this. A look compares what it reads with the look before; times are those of looks, so an
//! age is too small by the time between two looks at most.

use super::leader::HandleSet;
use super::members::Member;
use super::shared::Shared;
use super::slots::Slot;
use crate::queue::LANES;
use crate::sys::clock;
use crate::sys::fd::is_any_readable;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the table.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(30);
/// See the table. Long beside the delays of a pool that is well, even if all of its threads compute for a second or two;
/// short beside the 30 s or so after which clients give up.
pub(crate) const READY_AFTER: Duration = Duration::from_secs(5);
/// How long a handler or task may hold its thread before the thread counts as blocked, unless an endpoint says otherwise.
pub(crate) const BLOCKED_AFTER: Duration = Duration::from_millis(500);
/// Marks of a lane; newer ones are not set before the oldest is passed.
const MOST_MARKS: usize = 64;
/// So many marks are set within `ready_after`.
const MARKS_APART: u64 = 16;

/// Something that has waited for some nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Late {
    pub(crate) what: &'static str,
    pub(crate) nanos: u64,
}

/// What the rule says.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Judgement {
    /// The pool is not ready, because of this.
    pub(crate) unready: Option<Late>,
    /// The pool is dead: this waits. And for how many nanoseconds nothing has begun or ended.
    pub(crate) dead: Option<(Late, u64)>,
}

/// What a look has found, for figures.
pub(crate) struct Found {
    /// The oldest thing that waits, for however short a time.
    pub(crate) late: Option<Late>,
    /// Threads that have been in the same handler or task for `blocked_after`.
    pub(crate) blocked: usize,
    /// By handle set: for how many nanoseconds nobody has led it; 0: somebody leads.
    pub(crate) leaderless: Vec<u64>,
    /// Timers that are due in sets without a leader.
    pub(crate) overdue: usize,
}

/// See the module's documentation.
pub(crate) struct Progress {
    state: Mutex<State>,
}

struct State {
    dead_after: u64,
    ready_after: u64,
    blocked_after: u64,
    /// The look before.
    last: Option<Look>,
}

struct Look {
    /// When something was last seen to have begun or ended.
    moved_at: u64,
    threads: Vec<Thread>,
    lanes: [Marks; LANES],
    sets: Vec<Set>,
    stack: Still,
    /// By member: its local queue, and its chain.
    held: Vec<[Still; 2]>,
    /// By address: completion queues, with what each has given and taken back, and what lies there.
    queues: HashMap<usize, (u64, Still)>,
}

/// What a thread does, and how much it has done.
#[derive(Clone, Copy, Default)]
struct Thread {
    at_work: Option<u64>,
    ran: u64,
    /// When it was first seen as it is.
    since: u64,
}

#[derive(Default)]
struct Set {
    surplus: Marks,
    source: Still,
    leaderless: Still,
}

/// Since when something has been as it is.
#[derive(Clone, Copy, Default)]
struct Still {
    value: Option<u64>,
    since: u64,
}

/// Positions of a queue behind what was the youngest, and when that was.
#[derive(Default)]
pub(crate) struct Marks(VecDeque<(u64, u64)>);

impl Progress {
    pub(crate) fn new() -> Self {
        let state = State {
            dead_after: nanos(DEAD_AFTER),
            ready_after: nanos(READY_AFTER),
            blocked_after: nanos(BLOCKED_AFTER),
            last: None,
        };
        Self { state: Mutex::new(state) }
    }

    /// What is judged by from now on.
    pub(crate) fn set_limits(&self, dead_after: Duration, ready_after: Duration) {
        let mut state = self.lock();
        (state.dead_after, state.ready_after) = (nanos(dead_after), nanos(ready_after));
    }

    /// How long a thread must have been in the same handler or task to be counted as blocked, from now on.
    pub(crate) fn set_blocked_after(&self, time: Duration) {
        self.lock().blocked_after = nanos(time);
    }

    #[cfg(feature = "systemd")]
    pub(crate) fn dead_after(&self) -> Duration {
        Duration::from_nanos(self.lock().dead_after)
    }

    /// Looks at the pool, and judges it. Any thread.
    pub(crate) fn look(&self, shared: &Shared) -> Judgement {
        let mut state = self.lock();
        let now = clock::now();
        let apart = state.ready_after / MARKS_APART;
        let mut look = state.last.take().unwrap_or_else(|| Look::first(shared, now));
        let late = look.again(shared, now, apart);
        let judgement = state.judge(late, now.saturating_sub(look.moved_at));
        state.last = Some(look);
        judgement
    }

    /// Looks at the pool, and says what there is. Any thread.
    pub(crate) fn find(&self, shared: &Shared) -> Found {
        let mut state = self.lock();
        let now = clock::now();
        let apart = state.ready_after / MARKS_APART;
        let mut look = state.last.take().unwrap_or_else(|| Look::first(shared, now));
        let late = look.again(shared, now, apart);
        let is_blocked = |thread: &&Thread| {
            thread.at_work.is_some() && now.saturating_sub(thread.since) >= state.blocked_after
        };
        let blocked = look.threads.iter().filter(is_blocked).count();
        let leaderless = look.sets.iter().map(|set| set.leaderless.lasts(now)).collect();
        let overdue = overdue(shared).count();
        state.last = Some(look);
        Found { late, blocked, leaderless, overdue }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The rule. `still`: for how long nothing has begun or ended.
    fn judge(&self, late: Option<Late>, still: u64) -> Judgement {
        let waits = |limit| late.filter(|late| late.nanos >= limit);
        Judgement {
            unready: waits(self.ready_after),
            dead: waits(self.dead_after).filter(|_| still >= self.dead_after).map(|it| (it, still)),
        }
    }
}

impl Look {
    fn first(shared: &Shared, now: u64) -> Self {
        let (sets, members) = (&shared.ready.handles.sets, &shared.ready.members);
        Self {
            moved_at: now,
            threads: vec![Thread::default(); members.len()],
            lanes: Default::default(),
            sets: sets.iter().map(|_| Set::default()).collect(),
            stack: Still::default(),
            held: vec![Default::default(); members.len()],
            queues: HashMap::new(),
        }
    }

    /// The oldest thing that waits.
    fn again(&mut self, shared: &Shared, now: u64, apart: u64) -> Option<Late> {
        let (hosts_moved, entries) = self.look_at_queues(shared, now);
        let threads = self.threads.iter_mut().zip(shared.ready.members.iter());
        // All are looked at.
        let moved =
            threads.fold(hosts_moved, |moved, (thread, member)| thread.moves(member, now) | moved);
        if moved {
            self.moved_at = now;
        }
        let late = [
            ("a task", self.oldest_task(shared, now, apart)),
            ("an activation", self.oldest_activation(shared, now, apart)),
            ("a timer that is due", overdue(shared).max()),
            ("an event that no thread takes from its source", self.oldest_source(shared, now)),
            ("an entry of a completion queue", entries),
        ];
        let late = late.into_iter().filter_map(|(what, age)| Some(Late { what, nanos: age? }));
        late.max_by_key(|late| late.nanos)
    }

    fn oldest_task(&mut self, shared: &Shared, now: u64, apart: u64) -> Option<u64> {
        let ready = &shared.ready;
        let (heads, tails) = (ready.tasks.heads(), ready.tasks.ages());
        let lanes = self.lanes.iter_mut().zip(heads.into_iter().zip(tails));
        let in_lanes = lanes.filter_map(|(lane, ends)| lane.see(ends, now, apart)).max();
        let held = self.held.iter_mut().zip(ready.members.iter());
        let held = held.filter_map(|([local, _], member)| local.see(member.local.age(), now)).max();
        in_lanes.max(held)
    }

    fn oldest_activation(&mut self, shared: &Shared, now: u64, apart: u64) -> Option<u64> {
        let handles = &shared.ready.handles;
        let stack = self.stack.see(handles.stack.age().map(u64::from), now);
        let sets = self.sets.iter_mut().zip(handles.sets.iter());
        let surplus = sets.filter_map(|(view, set)| {
            view.surplus.see((set.surplus.head(), set.surplus.tail()), now, apart)
        });
        let surplus = surplus.max();
        let held = self.held.iter_mut().zip(shared.ready.members.iter());
        let held = held.filter_map(|([_, chain], member)| chain.see(member.chain.age(), now)).max();
        stack.max(surplus).max(held)
    }

    fn oldest_source(&mut self, shared: &Shared, now: u64) -> Option<u64> {
        let handles = &shared.ready.handles;
        let slots = || handles.slots.indices().filter_map(|index| handles.slots.get(index));
        let has_something = |number: usize, set: &HandleSet| {
            let own = slots().filter(|slot| usize::from(slot.traits().set) == number);
            set.source.is_readable() && is_any_readable(own.filter_map(Slot::waits_for))
        };
        for (view, set) in self.sets.iter_mut().zip(handles.sets.iter()) {
            let _lasts = view.leaderless.see(set.vacancy(), now);
        }
        let sets = self.sets.iter_mut().zip(handles.sets.iter()).enumerate();
        let late = sets.filter_map(|(number, (view, set))| {
            let unattended = set.vacancy().filter(|_| has_something(number, set));
            view.source.see(unattended, now)
        });
        late.max()
    }

    /// Whether a host has taken or completed something, and for how long the oldest entry has waited.
    fn look_at_queues(&mut self, shared: &Shared, now: u64) -> (bool, Option<u64>) {
        let mut before = core::mem::take(&mut self.queues);
        let (mut moved, mut oldest) = (false, None);
        for part in shared.end.parts() {
            let Some((count, waits)) = part.at_hosts() else { continue };
            let address = Arc::as_ptr(&part).addr();
            let (counted, mut still) = before.remove(&address).unwrap_or((count, Still::default()));
            moved |= counted != count;
            oldest = oldest.max(still.see(waits.then_some(count), now));
            self.queues.insert(address, (count, still));
        }
        (moved, oldest)
    }
}

/// By how much each timer is late that nobody is at. Only while a set has no leader timers are looked at: else the
/// leader is at them.
fn overdue(shared: &Shared) -> impl Iterator<Item = u64> {
    let handles = &shared.ready.handles;
    let now = shared.now();
    let indices = handles.sets.is_offered().then(|| handles.slots.indices());
    indices.into_iter().flatten().filter_map(move |index| {
        let slot = handles.slots.get(index)?;
        let deadline = slot.waits_until()?;
        let offered =
            handles.sets.get(slot.traits().set as usize).is_some_and(HandleSet::is_offered);
        (offered && deadline <= now).then(|| now - deadline)
    })
}

impl Thread {
    /// Whether something has begun or ended there since the last look.
    fn moves(&mut self, member: &Member, now: u64) -> bool {
        let (at_work, ran) = (member.at_work(), member.tally.ran());
        let moved = (at_work, ran) != (self.at_work, self.ran);
        if moved {
            *self = Self { at_work, ran, since: now };
        }
        moved
    }
}

impl Still {
    /// For how long it has been like this; None: there is nothing.
    fn see(&mut self, value: Option<u64>, now: u64) -> Option<u64> {
        if value != self.value {
            *self = Self { value, since: now };
        }
        value.map(|_| now.saturating_sub(self.since))
    }

    /// For how long it has been as it was seen last; 0: there was nothing.
    fn lasts(&self, now: u64) -> u64 {
        self.value.map_or(0, |_| now.saturating_sub(self.since))
    }
}

impl Marks {
    /// For how long, at least, the oldest has waited in a queue between these positions.
    pub(crate) fn see(&mut self, (head, tail): (u64, u64), now: u64, apart: u64) -> Option<u64> {
        let marks = &mut self.0;
        while marks.front().is_some_and(|&(end, _)| head >= end) {
            marks.pop_front();
        }
        let is_new = |&(end, at): &(u64, u64)| tail > end && now.saturating_sub(at) >= apart;
        if head < tail && marks.len() < MOST_MARKS && marks.back().is_none_or(is_new) {
            marks.push_back((tail, now));
        }
        marks.front().map(|&(_, at)| now.saturating_sub(at))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// The table at the head of the file, row by row.
    #[test]
    fn the_rule_is_as_its_table_says() {
        let state = State { last: None, ..Progress::new().state.into_inner().unwrap() };
        for (waits, still, ready, alive) in [
            (None, 1000, true, true),
            (Some(4), 1000, true, true),
            (Some(5), 1, false, true),
            (Some(1000), 29, false, true),
            (Some(29), 1000, false, true),
            (Some(30), 30, false, false),
        ] {
            let late = waits.map(|seconds| Late { what: "a task", nanos: seconds * SECOND });
            let judgement = state.judge(late, still * SECOND);
            let judged = (judgement.unready.is_none(), judgement.dead.is_none());
            assert_eq!(judged, (ready, alive), "{waits:?} s, still for {still} s");
        }
    }

    proptest! {
        /// On a virtual clock, with a look at each step: the age of a queue's oldest is never too great, and too small by
        /// the time between two looks and two marks at most, as long as there are fewer marks than may be.
        #[test]
        fn the_age_of_a_queue_is_that_of_its_oldest(
            steps in prop::collection::vec((0..3_u64, 0..3_u64, 1..100_u64), 1..300),
        ) {
            const APART: u64 = 50;
            let (mut marks, mut queue, mut now) = (Marks::default(), VecDeque::new(), 0);
            let (mut head, mut tail) = (0, 0);
            for (come, go, passed) in steps {
                for _ in 0..come {
                    queue.push_back(now);
                    tail += 1;
                }
                for _ in 0..go {
                    head += u64::from(queue.pop_front().is_some());
                }
                now += passed;
                let age = marks.see((head, tail), now, APART);
                let oldest: Option<u64> = queue.front().map(|came| now - came);
                prop_assert!(age <= oldest, "{:?} for {:?}", age, oldest);
                if marks.0.len() < MOST_MARKS {
                    let least = oldest.unwrap_or_default().saturating_sub(100 + APART + 100);
                    prop_assert!(age.unwrap_or_default() >= least, "{:?} for {:?}", age, oldest);
                }
            }
        }
    }

    #[test]
    fn what_changes_is_young() {
        let mut still = Still::default();
        assert_eq!(still.see(None, 5), None);
        assert_eq!(still.see(Some(1), 10), Some(0));
        assert_eq!(still.see(Some(1), 30), Some(20));
        assert_eq!(still.see(Some(2), 40), Some(0));
        assert_eq!(still.see(None, 50), None);
        assert_eq!(still.see(Some(2), 60), Some(0));
    }
}
