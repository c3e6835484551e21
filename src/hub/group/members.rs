//! A group of subscriptions: its members, and what waits while a key moves.

use crate::hub::group::balance::{Balance, Group};
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::mail::Offer;
use crate::hub::message::Stored;
use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

/// How many messages of a group may wait for their keys to move.
pub(in crate::hub) const MOST_MOVING: usize = 65_536;

/// The groups of a hub by their patterns and names. Those without members are thrown out by the next one.
pub(in crate::hub) type Groups<M> = Mutex<HashMap<(Box<str>, Box<str>), Weak<SharedGroup<M>>>>;

/// A group in a hub. See the head of the file.
pub(in crate::hub) struct SharedGroup<M> {
    pub(in crate::hub) balance: Balance,
    pub(in crate::hub) is_fenced: bool,
    pub(in crate::hub) state: Mutex<MembersState<M>>,
}

pub(in crate::hub) struct MembersState<M> {
    pub(in crate::hub) group: Group<u64, Stored>,
    pub(in crate::hub) members: HashMap<u64, Weak<M>>,
    /// What is in the counters of no member.
    pub(in crate::hub) counters: Counters,
}

impl<M> SharedGroup<M> {
    pub(in crate::hub) fn new(balance: Balance) -> Self {
        let group = Group::new(balance.clone(), MOST_MOVING);
        let is_fenced = group.is_fenced();
        let state = MembersState { group, members: HashMap::new(), counters: Counters::default() };
        Self { balance, is_fenced, state: Mutex::new(state) }
    }

    /// Adds a member, unless it is one.
    pub(in crate::hub) fn join(&self, id: u64, member: &Arc<M>) {
        let mut state = self.lock();
        if state.members.insert(id, Arc::downgrade(member)).is_none() {
            state.group.join(id, id);
        }
    }

    /// Takes a member out, unless it is the last one.
    pub(in crate::hub) fn step_back(&self, id: u64) {
        let mut state = self.lock();
        if state.members.len() > 1 {
            let left = state.leave(id);
            drop(state);
            drop(left);
        }
    }

    /// A message that was refused after waiting for room.
    pub(in crate::hub) fn refuse(&self) -> Offer {
        let mut state = self.lock();
        state.counters.offered += 1;
        state.counters.rejected += 1;
        Offer::Rejected
    }

    pub(in crate::hub) fn key_of(&self, group: &Group<u64, Stored>, stored: &Stored) -> u64 {
        match &self.balance {
            Balance::ByKey => group.hash(stored.key.as_str()),
            Balance::ByHeader(name) => {
                let value = stored.headers.get(name);
                group.hash(value.unwrap_or_else(|| stored.key.as_str()))
            }
            _ => 0,
        }
    }

    pub(in crate::hub) fn lock(&self) -> MutexGuard<'_, MembersState<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> MembersState<M> {
    /// What waits for nobody any more comes back, counted, to be dropped outside the lock.
    pub(in crate::hub) fn leave(&mut self, id: u64) -> Vec<Stored> {
        if self.members.remove(&id).is_none() {
            return Vec::new();
        }
        let left = self.group.leave(id);
        self.counters.offered += left.len() as u64;
        self.counters.discarded += left.len() as u64;
        left
    }
}
