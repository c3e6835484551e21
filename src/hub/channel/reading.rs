//! How messages leave a channel: a run takes them, a host pulls them, and what a subscription does before it rests.

use crate::hub::channel::route::{Channel, State};
use crate::hub::channel::segment::{AT_ONCE, Following, Taken};
use crate::hub::core::Core;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::{Close, Mail, Phase, Room};
use crate::hub::mailbox::rules::Overflow;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::collections::VecDeque;
use std::sync::Arc;

impl Channel {
    /// Takes a subscription out of the ring, if it is there: what waits comes to its mailbox.
    pub(in crate::hub) fn part(&self, state: &mut State, member: &Arc<Subscriber>) {
        if member.cursor.is_in_ring() {
            self.detach(state, member);
        }
    }

    /// Keeps room in the mailbox of a subscription for a message to come. It is on its own until then: what it
    /// has in the ring is before that message.
    pub(in crate::hub) fn keep_room(&self, member: &Arc<Subscriber>) -> Room {
        let mut state = member.rules.shared.then(|| self.lock());
        if let Some(state) = &mut state {
            self.part(state, member);
        }
        let mut mail = member.mail();
        // Acquire: pairs with the Release where messages begin. Under the lock: a run that turns over changes what it
        // has taken together with what has begun of it.
        let begun = member.progress.begun.load(Acquire);
        mail.keep_room(&member.rules, begun)
    }

    /// Takes what is next for a subscription that shares, up to `most` messages.
    /// Publishers that wait for room are told.
    pub(in crate::hub) fn next(
        &self,
        member: &Arc<Subscriber>,
        batch: &mut VecDeque<Entry>,
        most: usize,
    ) -> NextWork {
        let mut state = self.lock();
        let mut mail = member.mail();
        let waiters = core::mem::take(&mut mail.has_waiters);
        let next = Self::next_of(&mut state, &mut mail, member, batch, most);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        next
    }

    fn next_of(
        state: &mut State,
        mail: &mut Mail<Handler>,
        member: &Arc<Subscriber>,
        batch: &mut VecDeque<Entry>,
        most: usize,
    ) -> NextWork {
        if mail.is_empty() && mail.phase() == Phase::Open && member.cursor.is_in_ring() {
            // What was taken cannot be dropped for what comes; and whose handler fails is likely to give the rest
            // back, which has to be copied then.
            let drops = member.rules.overflow == Overflow::DropOldest;
            let segments = if drops || member.policy().is_some() { 1 } else { AT_ONCE };
            let taken = state.ring.take_several(member, segments, most);
            let Some((taken, following)) = taken else { return NextWork::Nothing };
            member.progress.begun.store(0, Relaxed);
            let lost = mail.take_shared((taken.count + following.count) as u32);
            return NextWork::Ring(taken, following, lost);
        }
        member.progress.begun.store(0, Relaxed);
        match mail.take(&member.rules, batch) {
            true => NextWork::Mailbox,
            false => NextWork::Nothing,
        }
    }

    /// A run whose turn is over gives back the last `count` messages that it took from the ring, and says what became of
    /// the others. False: the subscription has left the ring, or ends, and they are the run's still.
    pub(in crate::hub) fn give_back(
        &self,
        member: &Arc<Subscriber>,
        count: usize,
        settled: &Settled,
    ) -> bool {
        let _state = self.lock();
        let mut mail = member.mail();
        let is_there = member.cursor.is_in_ring() && mail.phase() == Phase::Open;
        if is_there {
            mail.settle(settled);
            mail.give_back_shared(count as u32);
            member.cursor.retreat(count);
        }
        is_there
    }

    /// A run of a subscription that shares has found nothing more, and leaves with the handler. True: something
    /// has come meanwhile. If not it rests, and comes back to the ring if it was on its own. Publishers that wait
    /// for room are told.
    pub(in crate::hub) fn leave_run(
        &self,
        core: &Core,
        member: &Arc<Subscriber>,
        handler: Option<Handler>,
    ) -> (Close<Handler>, bool) {
        let mut state = self.lock();
        let mut mail = member.mail();
        let waiters = core::mem::take(&mut mail.has_waiters);
        let again = match mail.phase() == Phase::Open && mail.is_empty() {
            true if state.ring.waiting(member) > 0 => true,
            true => {
                if !member.cursor.is_in_ring() && !mail.stays_detached() {
                    self.join_ring(&mut state, member, &mut mail);
                }
                // Who has room kept for messages to come is on its own until it has them, and who is shut for good.
                if member.cursor.is_in_ring() {
                    state.ring.rest(member);
                    state.ring.release(core);
                }
                !mail.rest(&member.rules)
            }
            false => !mail.rest(&member.rules),
        };
        let close = mail.leave(handler);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        (close, again)
    }

    /// Takes up to `most` messages for who pulls: `one` is given those of the mailbox, and those of a segment come
    /// back, with what was lost before them. `before` were taken by the same pull. Publishers that wait for room
    /// are told.
    pub(in crate::hub) fn pull(
        &self,
        core: &Core,
        member: &Arc<Subscriber>,
        most: usize,
        before: usize,
        one: impl FnMut(Entry),
    ) -> Pull {
        let mut state = self.lock();
        let mut mail = member.mail();
        let over = mail.is_over();
        let mut count = mail.pull(&member.rules, most, one);
        let is_detached = mail.phase() != Phase::Open || !mail.is_empty() || mail.stays_detached();
        if !is_detached && !member.cursor.is_in_ring() {
            self.join_ring(&mut state, member, &mut mail);
        }
        let mut several = None;
        if count < most && member.cursor.is_in_ring() {
            several = state.ring.take(member, most - count).map(|taken| {
                count += taken.count;
                (mail.pull_shared(&member.rules, taken.count), taken)
            });
        }
        let mut left = !mail.is_empty();
        if member.cursor.is_in_ring() {
            // Release: pairs with the Acquire in `started`.
            member.progress.started.store(member.cursor.next() as u32, Release);
            left |= state.ring.waiting(member) > 0;
            if state.ring.waiting(member) == 0 {
                state.ring.rest(member);
            }
            if before + count == 0 {
                state.ring.release(core);
            }
        }
        let close = mail.end_if_over();
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        Pull { count, several, left, over, close }
    }
}

/// What is next for a run of a subscription that shares.
pub(in crate::hub) enum NextWork {
    /// It has taken messages from its mailbox.
    Mailbox,
    /// It has taken these from the ring; so many were lost before the first.
    Ring(Taken, Following, u64),
    /// Nothing: the run is over.
    Nothing,
}

/// What who pulls has got.
pub(in crate::hub) struct Pull {
    pub(in crate::hub) count: usize,
    /// If the last one pulled lies in the ring: how many were lost before it, and where it lies.
    pub(in crate::hub) several: Option<(u64, Taken)>,
    /// There is more.
    pub(in crate::hub) left: bool,
    /// The subscription takes no more messages.
    pub(in crate::hub) over: bool,
    pub(in crate::hub) close: Close<Handler>,
}
