//! What host threads have pulled and not completed.

use super::outbox::{HandleId, Outbox};
use crate::pool::handler::Flow;
use crate::pool::shared::Shared;
use crate::pool::slots::{Finish, Key, Payload, with_claimed};
use crate::source::Ready;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// What this thread has pulled and not completed, by pool.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// As long as it is there, the thread counts as one that comes back to pull, for which a drain waits.
pub(super) struct Held {
    pool: Weak<Shared>,
    pub(super) holds: Vec<(Key, u16)>,
}

impl Held {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.outbox.pullers.fetch_add(1, Relaxed);
        Self { pool: Arc::downgrade(shared), holds: Vec::new() }
    }

    fn is_of(&self, shared: &Shared) -> bool {
        core::ptr::eq(self.pool.as_ptr(), shared)
    }
}

impl Drop for Held {
    /// At the thread's end at the latest everything is completed.
    fn drop(&mut self) {
        // A forked child must not touch the parent's registrations.
        if let Some(shared) = self.pool.upgrade().filter(|shared| !shared.is_forked()) {
            complete_all(&shared, &mut self.holds);
            shared.outbox.pullers.fetch_sub(1, AcqRel);
            shared.ready.handles.changed.announce();
        }
    }
}

/// Takes this thread's list for `shared` out, or a new one. Others' lists stay where they are.
pub(super) fn take_held(shared: &Arc<Shared>) -> Held {
    find_held(shared).unwrap_or_else(|| Held::new(shared))
}

pub(super) fn find_held(shared: &Arc<Shared>) -> Option<Held> {
    let found = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        held.retain(|held| held.pool.strong_count() > 0);
        let place = held.iter().position(|held| held.is_of(shared))?;
        Some(held.swap_remove(place))
    });
    found.ok().flatten()
}

pub(super) fn put_held(held: Held) {
    let mut held = Some(held);
    // While the thread ends there is no list any more, and what is held is completed here and now.
    let _ = HELD.try_with(|list| list.borrow_mut().extend(held.take()));
}

/// Whether another thread has pulled, and has neither ended since nor said that it is done: it comes back.
pub(crate) fn has_pullers(shared: &Shared) -> bool {
    let own = HELD.try_with(|held| held.borrow().iter().filter(|held| held.is_of(shared)).count());
    // Acquire: pairs with the AcqRel at the end of a puller: what it has done is seen.
    shared.outbox.pullers.load(Acquire) as usize > own.unwrap_or(0)
}

pub(super) fn complete_all(shared: &Shared, holds: &mut Vec<(Key, u16)>) {
    for (key, hold) in holds.drain(..) {
        // Another thread may have completed it early.
        complete(shared, key, Some(hold), Flow::Wait);
    }
}

/// False: no such event of this tenant is with the host.
pub(crate) fn complete(shared: &Shared, key: Key, hold: Option<u16>, flow: Flow) -> bool {
    let handles = &shared.ready.handles;
    let Some(slot) = handles.slots.get(key.index) else { return false };
    if !slot.unhold(key.generation, hold) {
        return false;
    }
    let kept = with_claimed(slot, |payload| match payload {
        Payload::Activity(activity) => activity.kept(),
        Payload::Once(_) | Payload::Empty => unreachable!("not a pulled handle"),
    });
    if handles.finish(key.index, flow, kept, || true) == Finish::Queued {
        shared.ready.notify(shared.is_inside());
    }
    true
}

/// Nobody will complete this event: its handle ends.
fn end_held(shared: &Shared, key: Key, hold: u16) {
    shared.ready.handles.slots.slot(key.index).pulled(key.generation, hold);
    complete(shared, key, Some(hold), Flow::Done);
}

/// The host that takes the events of this outbox is gone. Handles whose events wait end now, others with their next
/// event; tokens that wait are dropped, and counted as that.
pub(crate) fn abandon(outbox: &Outbox, shared: &Shared) {
    let left = outbox.leave();
    shared.counters.dropped.fetch_add(outbox.sweep(), Relaxed);
    for event in left {
        if let Some(HandleId(key)) = event.handle {
            end_held(shared, key, event.hold);
        }
    }
    shared.recheck_drain();
}

/// Hands a claimed slot out to the host that it was registered for.
pub(crate) fn hand_out(index: u32, readiness: Ready, shared: &Shared, inside: bool) {
    let slot = shared.ready.handles.slots.slot(index);
    let (kind, token, outbox) = with_claimed(slot, |payload| match payload {
        Payload::Activity(activity) => activity.hand_out(readiness),
        Payload::Once(_) | Payload::Empty => unreachable!("not a pulled handle"),
    });
    let key = Key { index, generation: slot.generation() };
    let hold = slot.hold();
    // From here on a host thread may complete it (invariant 2), unless there is none any more.
    if outbox.put(kind, token, key, hold) {
        shared.hosts.call(&shared.ready, inside);
    } else {
        end_held(shared, key, hold);
    }
}
