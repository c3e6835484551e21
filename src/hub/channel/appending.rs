//! How messages come to a channel: appended to its ring, for all who are there and have room.

use crate::error::receipt::Told;
use crate::hub::channel::route::{Channel, Snapshot, State};
use crate::hub::channel::segment::{LOOKS, pause};
use crate::hub::core::Core;
use crate::hub::mailbox::rules::Overflow;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::{Draft, Stored};
use crate::hub::publish::enqueue::{count, refused};
use crate::hub::publish::waiting::{WaitOver, WaitingPublisher};
use crate::hub::system::tell::lost_by;
use crate::sync::MutexGuard;
use std::sync::{Arc, PoisonError};

impl Channel {
    /// Appends a message, if everybody is in the ring and has room. Answers for how many subscriptions; none: it was not
    /// taken.
    pub(in crate::hub) fn push_one(&self, core: &Core, draft: &mut Option<Draft<'_>>) -> u64 {
        let mut state = self.lock();
        let members = state.all_in_ring();
        if members == 0 || !state.ring.has_room() {
            return 0;
        }
        if let Some(draft) = draft.take() {
            state.ring.push_seldom(core, draft);
        }
        let call = state.ring.call(core);
        drop(state);
        core.call(call);
        members
    }

    /// Appends as many of the next `most` messages as have room, if everybody is in the ring. Answers how many, and
    /// for how many subscriptions.
    #[inline]
    pub(in crate::hub) fn push_shared<'a>(
        &self,
        core: &Core,
        drafts: &mut impl Iterator<Item = Draft<'a>>,
        most: usize,
    ) -> (usize, u64) {
        let mut state = self.lock();
        let (members, mut pushed) = (state.all_in_ring(), 0);
        if members == 0 {
            return (0, 0);
        }
        let ring = &mut state.ring;
        while pushed < most
            && ring.has_room()
            && let Some(draft) = drafts.next()
        {
            ring.push(core, draft);
            pushed += 1;
        }
        if pushed == 0 {
            return (0, 0);
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        (pushed, members)
    }

    /// Offers a message to all who are in the ring. Who is on his own is answered, to be offered it by the
    /// caller; none, if nobody is. With `tries` nobody gets it where somebody would have the publisher wait.
    pub(in crate::hub) fn offer_shared(
        &self,
        core: &Core,
        stored: &Stored,
        may_wait: bool,
        tries: bool,
        told: &mut Told,
    ) -> Option<Snapshot> {
        // It goes last, when the message is in the list.
        let mut waiting = None;
        let mut state = self.lock();
        if stored.is_tracked() {
            let members: Vec<_> = state.ring.members().to_vec();
            members.iter().for_each(|member| self.detach(&mut state, member));
            return self.snapshot_of(&state);
        }
        let (full, stops) = match state.ring.is_full() {
            true => {
                let (waited, full, stops) = self.wait_for_room(core, state, may_wait, &mut waiting);
                state = waited;
                (full, stops)
            }
            false => (Vec::new(), false),
        };
        let blocks = |member: &Arc<Subscriber>| matches!(member.rules.overflow, Overflow::Block(_));
        if tries && full.iter().any(blocks) {
            told.again = true;
            return None;
        }
        // Before anybody is moved: those who are, are offered it here.
        let own = self.snapshot_of(&state);
        for member in &full {
            self.detach(&mut state, member);
            let offer = match member.rules.overflow {
                Overflow::Block(_) if stops => member.mail().refuse(),
                _ => member.offer_detached(stored),
            };
            count(told, offer, || refused(member));
        }
        let ring = &mut state.ring;
        let members = ring.members().len() as u64;
        if members > 0 {
            told.receipt.matched += members;
            told.receipt.enqueued += members;
            ring.push_seldom(core, stored.to_draft(&mut stored.payload.clone()));
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        full.iter().for_each(|member| lost_by(member, core));
        own
    }

    /// Waits while those who are full let the publisher wait. Answers those who are full then; or, if the pool stops, also
    /// all who let publishers wait, and that it does.
    #[cold]
    fn wait_for_room<'a, 'b>(
        &'a self,
        core: &'b Core,
        mut state: MutexGuard<'a, State>,
        may_wait: bool,
        waiting: &mut Option<WaitingPublisher<'b>>,
    ) -> (MutexGuard<'a, State>, Vec<Arc<Subscriber>>, bool) {
        let blocks = |member: &&Arc<Subscriber>| {
            may_wait && matches!(member.rules.overflow, Overflow::Block(_))
        };
        let (mut look, mut next) = (0, None);
        loop {
            let mut full = state.ring.survey();
            if next == Some(Err(WaitOver::Pool)) {
                let is_full =
                    |one: &Arc<Subscriber>| full.iter().any(|other| Arc::ptr_eq(other, one));
                let others = state.ring.members().iter().filter(blocks);
                let others: Vec<_> = others.filter(|one| !is_full(one)).cloned().collect();
                full.extend(others);
                return (state, full, true);
            }
            let Some(member) = full.iter().find(blocks) else { return (state, full, false) };
            match next {
                None => drop(state),
                Some(Ok(nap)) => {
                    let mut mail = member.mail();
                    mail.has_waiters = true;
                    // Whoever takes messages comes by the mailbox's lock and tells. Room is made when one begins, too,
                    // which nobody tells: hence short naps.
                    drop(state);
                    let waited = member.room().wait_timeout(mail, nap);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Some(Err(_)) => return (state, full, false),
            }
            if look < LOOKS {
                // A handler that is at work has made room before this thread were asleep.
                pause(look);
                look += 1;
            } else {
                // Not under the lock: it may be this thread that ends the drain, for which others' work may be dropped.
                next = Some(
                    waiting.get_or_insert_with(|| WaitingPublisher::new(core, member)).nap(member),
                );
            }
            state = self.lock();
        }
    }
}
