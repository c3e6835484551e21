//! What is registered: slots, the sets that they are waited for in, and what becomes of a slot when its handler
//! returns or when it is closed.

use super::descriptors::Descriptors;
use super::{Activity, Close, Finish, Key, Payload, Seized, Slot, SlotTable, Start, Traits};
use crate::contain::contain;
use crate::error::{Error, Result};
use crate::pool::handler::Flow;
use crate::pool::leader::HandleSets;
use crate::queue::{Erased, IntrusiveStack};
use crate::source::{Interest, Ready};
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::sys::futex::Futex;
use crate::trace::Name;
use core::time::Duration;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// Runs `f` on the payload of a slot that the caller has claimed and not finished.
#[inline]
#[allow(unsafe_code, reason = "the slot was claimed")]
pub(crate) fn with_claimed<R>(slot: &Slot, f: impl FnOnce(&mut Payload) -> R) -> R {
    // SAFETY: every caller has claimed the slot and not finished it, so the payload is its own.
    unsafe { slot.payload(f) }
}

/// Where threads outside wait until something has changed: a handler has returned, a member has left.
pub(crate) struct Changes(Futex);

impl Changes {
    fn new() -> Self {
        Self(Futex::new(0))
    }

    /// Something that threads outside wait for may have happened.
    pub(crate) fn announce(&self) {
        self.0.fetch_add(1, AcqRel);
        self.0.wake(i32::MAX);
    }

    /// What to wait on: to be read before the look at what is waited for.
    pub(crate) fn epoch(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Waits until a change after `epoch`.
    pub(crate) fn wait(&self, epoch: u32, time: Option<Duration>) {
        self.0.wait(epoch, time);
    }

    /// Waits until a change, unless `ended` holds already.
    pub(crate) fn wait_unless(&self, time: Duration, ended: impl Fn() -> bool) -> bool {
        let epoch = self.epoch();
        ended() || {
            self.wait(epoch, Some(time));
            false
        }
    }
}

/// What has become of a handle whose number is another one's now.
pub(crate) enum Abandoned {
    /// It is closed.
    Closed(Key),
    /// Its handler has exchanged its descriptor, and is to run: the caller pushes it.
    Queued(u32),
}

/// Fields are dropped in order: what was registered, before the sources.
pub(crate) struct Handles {
    pub(crate) slots: SlotTable,
    /// Activations that did not come from a leader's harvest.
    pub(crate) stack: IntrusiveStack,
    pub(crate) sets: HandleSets,
    pub(crate) changed: Changes,
    descriptors: Descriptors,
}

impl Handles {
    pub(crate) fn new(limit: usize, sets: HandleSets) -> Self {
        Self {
            slots: SlotTable::new(limit),
            stack: IntrusiveStack::new(),
            sets,
            changed: Changes::new(),
            descriptors: Descriptors::new(),
        }
    }

    /// A slot for a payload, or an error that says that there is none.
    pub(crate) fn allocate(
        &self,
        traits: Traits,
        descriptor: i32,
        payload: Payload,
    ) -> Result<Key> {
        self.slots.allocate(traits, descriptor, payload).map_err(|_| self.no_slot_left())
    }

    pub(crate) fn no_slot_left(&self) -> Error {
        Error::Full { what: "handles", capacity: self.slots.limit() }
    }

    /// Lets a slot to an activity that waits to be called.
    pub(crate) fn let_slot(&self, activity: Box<dyn Activity>) -> Result<Key> {
        let key = self.allocate(Traits::default(), -1, Payload::activity(activity))?;
        self.slots.publish(key, Start::Idle);
        Ok(key)
    }

    /// Publishes a timer and hands it to its set. `named` is called in between. If the timer is closed by then, its set
    /// finds that out.
    pub(crate) fn arm(&self, key: Key, deadline: u64, named: impl FnOnce(Key)) {
        let slot = self.slots.slot(key.index);
        slot.set_deadline(deadline);
        let set = slot.traits().set;
        self.slots.publish(key, Start::Armed);
        named(key);
        self.sets[set as usize].arm(&self.slots, key.index, deadline);
    }

    /// What the handler of a claimed slot is called.
    #[inline]
    pub(crate) fn name_of(&self, slot: &Slot) -> Name {
        with_claimed(slot, |payload| match payload {
            Payload::Activity(_, name) => *name,
            Payload::Once(_) | Payload::Empty => Name::NONE,
        })
    }

    /// Runs the handler of a claimed slot.
    #[inline]
    pub(crate) fn run_claimed(&self, slot: &Slot, ready: Ready) -> Flow {
        with_claimed(slot, |payload| match payload {
            Payload::Activity(activity, _) => activity.run(ready),
            Payload::Once(_) | Payload::Empty => unreachable!("not a handler"),
        })
    }

    /// Takes a claimed one-shot timer's closure out and frees its slot.
    pub(crate) fn take_once(&self, index: u32) -> Erased {
        let payload = with_claimed(self.slots.slot(index), |payload| {
            core::mem::replace(payload, Payload::Empty)
        });
        self.slots.free(index);
        match payload {
            Payload::Once(closure) => closure,
            Payload::Activity(..) | Payload::Empty => unreachable!("not a one-shot timer"),
        }
    }

    /// Ends the run of a handler as its answer says.
    #[inline]
    pub(crate) fn finish(
        &self,
        index: u32,
        flow: Flow,
        kept: Ready,
        yields: impl Fn() -> bool,
    ) -> Finish {
        let slot = self.slots.slot(index);
        let traits = slot.traits();
        if traits.timer {
            self.set_next_deadline(index);
        } else if traits.level && flow == Flow::Wait {
            self.rearm(index, traits);
        }
        let finish = slot.finish(flow, kept, yields);
        match finish {
            Finish::Rests | Finish::More(_) => {}
            Finish::Queued => self.stack.push(index, &self.slots),
            Finish::Armed => {
                self.sets[traits.set as usize].arm(&self.slots, index, slot.deadline());
            }
            Finish::Close => self.dispose(index),
            Finish::Announce => self.changed.announce(),
        }
        finish
    }

    /// Gives up a slot that was let by [`Start::Registering`]. True: it is QUEUED, and the caller pushes it.
    #[must_use]
    pub(crate) fn end_registering(&self, index: u32, flow: Flow) -> bool {
        match self.slots.slot(index).finish(flow, Ready::NONE, || true) {
            Finish::Rests | Finish::More(_) | Finish::Armed => {}
            Finish::Queued => return true,
            Finish::Close => self.dispose(index),
            Finish::Announce => self.changed.announce(),
        }
        false
    }

    /// Has the source of a slot that was let by [`Start::Registering`] watch its descriptor. What has become of the handle
    /// that had this number before, if there is one still: its descriptor was closed without it.
    pub(crate) fn watch(&self, key: Key, fd: BorrowedFd<'_>) -> io::Result<Option<Abandoned>> {
        let slot = self.slots.slot(key.index);
        let (traits, number) = (slot.traits(), slot.descriptor());
        let interest = Interest::from_bits(traits.interest);
        let watch = |set: u16| {
            let source = &self.sets[set as usize].source;
            source.register(fd, key.token(), interest, traits.level)
        };
        let before = {
            let mut newest = self.descriptors.lock(number);
            let before = newest.get(&number).copied();
            let set = before.map_or(traits.set, |old| self.slots.slot(old.index).traits().set);
            if set != traits.set {
                // Its own set would accept what another one watches.
                watch(set)?;
                self.sets[set as usize].source.deregister(number)?;
            }
            watch(traits.set)?;
            newest.insert(number, key);
            before
        };
        Ok(before.and_then(|old| self.abandon(old, number)))
    }

    /// Closes a handle whose descriptor the program has closed. What was registered is not dropped: that would close the
    /// number, which is another one's by now. None: it is left alone, as it runs, and may end by itself then, or is none of
    /// those that the program names.
    #[cold]
    fn abandon(&self, key: Key, number: RawFd) -> Option<Abandoned> {
        let slot = self.slots.slot(key.index);
        if !slot.traits().lent {
            return None;
        }
        let payload = match slot.seize(key.generation)? {
            Seized::Closed => self.take_closed(key),
            Seized::Running => {
                let has_it = with_claimed(slot, |payload| payload.still_has(number));
                if !has_it {
                    let queued = self.end_registering(key.index, Flow::Wait);
                    return queued.then_some(Abandoned::Queued(key.index));
                }
                let payload =
                    with_claimed(slot, |payload| core::mem::replace(payload, Payload::Empty));
                let _done = self.end_registering(key.index, Flow::Done);
                payload
            }
        };
        let has_it = payload.still_has(number);
        let _panicked = contain(|| match payload {
            Payload::Activity(activity, _) if has_it => core::mem::forget(activity.into_io()),
            other => drop(other),
        });
        Some(Abandoned::Closed(key))
    }

    /// A level-triggered handle is asked about again. Should that fail, the descriptor is gone, and
    /// there is nothing more to report about it.
    fn rearm(&self, index: u32, traits: Traits) {
        let slot = self.slots.slot(index);
        if !with_claimed(slot, |payload| payload.still_has(slot.descriptor())) {
            return;
        }
        let key = Key { index, generation: slot.generation() };
        let (number, interest) = (slot.descriptor(), Interest::from_bits(traits.interest));
        let newest = self.descriptors.lock(number);
        if newest.get(&number) == Some(&key) {
            let source = &self.sets[traits.set as usize].source;
            let _gone = source.rearm(number, key.token(), interest);
        }
    }

    fn set_next_deadline(&self, index: u32) {
        let slot = self.slots.slot(index);
        let next = with_claimed(slot, |payload| match payload {
            Payload::Activity(activity, _) => activity.next_deadline(self.sets.now()),
            Payload::Once(_) | Payload::Empty => unreachable!("not a periodic timer"),
        });
        slot.set_deadline(next);
    }

    /// Ends a CLOSED slot whose payload no thread waits for: off the source first, then dropped.
    fn dispose(&self, index: u32) {
        let payload = self.take_payload(index);
        let _panicked = contain(|| drop(payload));
        self.slots.free(index);
    }

    /// Frees a closed slot whose entry was found in ready work.
    pub(crate) fn bury(&self, index: u32) {
        let traits = self.slots.slot(index).traits();
        if traits.timer {
            self.sets[traits.set as usize].note_undead();
        }
        self.slots.free(index);
    }

    /// Takes the payload of a slot that this thread has closed, and its descriptor off the source.
    pub(crate) fn take_payload(&self, index: u32) -> Payload {
        let slot = self.slots.slot(index);
        #[allow(unsafe_code, reason = "the slot was closed by this thread")]
        // SAFETY: `close` made the payload the caller's.
        let payload =
            unsafe { slot.payload(|payload| core::mem::replace(payload, Payload::Empty)) };
        let number = slot.descriptor();
        if number >= 0 {
            let has_it = payload.still_has(number);
            let key = Key { index, generation: slot.generation() };
            let mut newest = self.descriptors.lock(number);
            if newest.get(&number) == Some(&key) {
                newest.remove(&number);
                if has_it {
                    // Fails only if the descriptor was closed behind our back: then it is off already.
                    let _gone = self.sets[slot.traits().set as usize].source.deregister(number);
                }
            }
        }
        payload
    }

    /// Closes a slot from anywhere but its own handler. None: it is gone, or it runs and is closed
    /// by its runner.
    pub(crate) fn close(&self, key: Key, wait: bool) -> (Close, Option<Payload>) {
        let Some(slot) = self.slots.get(key.index) else { return (Close::Stale, None) };
        let closed = slot.close(key.generation, wait);
        (closed, (closed == Close::Mine).then(|| self.take_closed(key)))
    }

    /// Takes the payload of a slot that this thread has closed while its handler did not run, and lets the slot go.
    pub(crate) fn take_closed(&self, key: Key) -> Payload {
        let slot = self.slots.slot(key.index);
        let payload = self.take_payload(key.index);
        let timer = slot.traits().timer;
        let set = &self.sets[slot.traits().set as usize];
        if timer {
            set.note_dead();
        }
        if slot.closer_done() {
            if timer {
                set.note_undead();
            }
            self.slots.free(key.index);
        }
        payload
    }

    /// Whether a one-shot timer has left the wheel and not begun.
    pub(crate) fn has_due_timers(&self) -> bool {
        let is_due = |index| self.slots.get(index).is_some_and(Slot::is_due_timer);
        self.slots.indices().any(is_due)
    }

    /// Slots that are let.
    pub(crate) fn slots_in_use(&self) -> u64 {
        self.sets.staged_slots().fold(self.slots.in_use(), u64::wrapping_add)
    }
}
