//! Groups in a hub: how a message finds a member, and how its end is heard of. (`balance.rs` decides.)
//!
//! A group's members are subscriptions like others, with mailboxes of their own, which publishers reach
//! through the group. Locks are taken in this order: group, mailbox.
//!
//! A member that leaves is out of the group before its mailbox closes; one that is suspended, too, unless it
//! is the last. What it has got already it works off, or it is discarded or dead with its mailbox, and each
//! such message is finished. So the fence holds however a member ends.

use crate::error::{Error, Result};
use crate::hub::core::Core;
use crate::hub::group::balance::{Balance, Route};
use crate::hub::group::members::{MembersState, SharedGroup};
use crate::hub::handle::Hub;
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::mail::Offer;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::Stored;
use crate::hub::publish::enqueue::enqueue;
use crate::hub::publish::settings::IfFull;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

/// The group of this name, which is made if there is none.
pub(in crate::hub) fn group_of(
    core: &Core,
    pattern: &str,
    name: &str,
    balance: &Balance,
) -> Result<Arc<SharedGroup<Subscriber>>> {
    let mut groups = core.groups.lock().unwrap_or_else(PoisonError::into_inner);
    let id = (Box::from(pattern), Box::from(name));
    if let Some(known) = groups.get(&id).and_then(Weak::upgrade) {
        if known.balance != *balance {
            let value = format!("{balance:?} for the group {name:?}");
            let allowed = format!("{:?}, as of its other members", known.balance);
            return Err(Error::invalid("balance", value, allowed));
        }
        return Ok(known);
    }
    groups.retain(|_, group| group.strong_count() > 0);
    let group = Arc::new(SharedGroup::new(balance.clone()));
    groups.insert(id, Arc::downgrade(&group));
    Ok(group)
}

/// What the counters of groups have that those of members have not.
pub(in crate::hub) fn for_each_group(core: &Core, mut each: impl FnMut(&Counters, u64)) {
    let groups: Vec<_> = {
        let groups = core.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.values().filter_map(Weak::upgrade).collect()
    };
    for group in groups {
        let state = group.lock();
        each(&state.counters, state.group.waiting() as u64);
    }
}

impl Hub {
    /// How many messages wait because their keys move from one member of a group to another.
    pub fn moving(&self) -> u64 {
        let mut sum = 0;
        for_each_group(&self.core, |_, waiting| sum += waiting);
        sum
    }
}

/// A message that it had got has come to its end. Not under the mailbox's lock.
#[inline]
pub(in crate::hub) fn finished(subscriber: &Subscriber, core: &Core, stored: &Stored) {
    stored.end_one();
    if let Some(group) = subscriber.group() {
        finished_in(group, core, stored);
    }
}

/// Takes a member out.
pub(in crate::hub) fn leave(group: &SharedGroup<Subscriber>, core: &Core, id: u64) {
    let mut state = group.lock();
    let left = state.leave(id);
    let counters = match state.members.is_empty() {
        true => core::mem::take(&mut state.counters),
        false => Counters::default(),
    };
    drop(state);
    drop(left);
    core.lock_ended().add(&counters);
}

/// Has one member get a message. With `may_wait` it is `Full` when members that let publishers wait are, and the
/// caller comes again.
pub(in crate::hub) fn offer_to_group(
    group: &SharedGroup<Subscriber>,
    core: &Core,
    stored: &Stored,
    may_wait: bool,
) -> Offer {
    let mut state = group.lock();
    if core.is_closed() {
        return Offer::Closed;
    }
    let key = group.key_of(&state.group, stored);
    // A member that is full leaves the message to the others, where it does not belong to one of them.
    let most = if group.is_fenced { 1 } else { state.members.len() };
    for _ in 0..most {
        match offer_to_member(&mut state, core, key, stored.clone(), IfFull::Answer) {
            Offer::Full => {}
            other => return other,
        }
    }
    if !may_wait && most > 0 {
        state.counters.offered += 1;
        state.counters.rejected += 1;
        return Offer::Rejected;
    }
    if most == 0 { Offer::Closed } else { Offer::Full }
}

/// A message that a member had got has come to its end.
fn finished_in(group: &SharedGroup<Subscriber>, core: &Core, stored: &Stored) {
    if !group.is_fenced {
        return;
    }
    let mut state = group.lock();
    // Else what waits for the key is left there, and counted.
    if !core.is_closed() {
        let key = group.key_of(&state.group, stored);
        finish_key(&mut state, core, key);
    }
}

fn offer_to_member(
    state: &mut MembersState<Subscriber>,
    core: &Core,
    key: u64,
    message: Stored,
    if_full: IfFull,
) -> Offer {
    let mut message = message;
    loop {
        let members = &state.members;
        let load = |id| {
            let member = members.get(&id).and_then(Weak::upgrade);
            member.map_or(usize::MAX, |member| member.mail().waiting(0))
        };
        match state.group.enter(key, message, load) {
            Route::To(id, to_member) => match put(state, core, key, id, &to_member, if_full) {
                // It has just ended: another one gets it.
                Offer::Closed => message = to_member,
                offer => return offer,
            },
            Route::Waits => return Offer::Replaced,
            Route::Full(_) => {
                state.counters.offered += 1;
                state.counters.rejected += 1;
                return Offer::Rejected;
            }
            Route::Nobody(_) => return Offer::Closed,
        }
    }
}

/// Puts a message into the mailbox of a member. What is not enqueued there is finished.
fn put(
    state: &mut MembersState<Subscriber>,
    core: &Core,
    key: u64,
    id: u64,
    message: &Stored,
    if_full: IfFull,
) -> Offer {
    let member = state.members.get(&id).and_then(Weak::upgrade);
    let offer = match &member {
        Some(member) => enqueue(core, member, message, if_full),
        None => Offer::Closed,
    };
    if offer == Offer::Closed {
        drop(state.leave(id));
    }
    if !matches!(offer, Offer::Enqueued { .. } | Offer::Replaced) {
        // Nothing waits for the key: messages go to members only then.
        let none = state.group.finish(key);
        debug_assert!(none.is_none());
    }
    offer
}

fn finish_key(state: &mut MembersState<Subscriber>, core: &Core, key: u64) {
    let Some((id, waited)) = state.group.finish(key) else { return };
    let mut again = VecDeque::new();
    for message in waited {
        // It was accepted when it was published.
        if put(state, core, key, id, &message, IfFull::Exceed) == Offer::Closed {
            again.push_back(message);
        }
    }
    for message in again {
        if offer_to_member(state, core, key, message, IfFull::Exceed) == Offer::Closed {
            state.counters.offered += 1;
            state.counters.discarded += 1;
        }
    }
}
