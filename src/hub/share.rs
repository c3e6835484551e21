//! Groups in a hub: how a message finds a member, and how its end is heard of. (`group.rs` decides.)
//!
//! A group's members are subscriptions like others, with mailboxes of their own, which publishers reach
//! through the group. Locks are taken in this order: group, mailbox.
//!
//! A member that leaves is out of the group before its mailbox closes; one that is suspended, too, unless it
//! is the last. What it has got already it works off, or it is discarded or dead with its mailbox, and each
//! such message is finished. So the fence holds however a member ends.

use super::group::{Balance, Group, Route};
use super::mailbox::{Books, Offer, Overflow};
use super::message::Stored;
use super::publish::IfFull;
use super::subscribe::{Execution, Subscriber};
use super::{Core, Hub, SubscriptionBuilder};
use crate::error::{Error, Result};
use crate::sync::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, Weak};

/// How many messages of a group may wait for their keys to move.
const MOST_MOVING: usize = 65_536;

/// The groups of a hub by their patterns and names. Those without members are thrown out by the next one.
pub(super) type Groups = Mutex<HashMap<(Box<str>, Box<str>), Weak<Shared>>>;

/// A group in a hub. See the head of the file.
pub(super) struct Shared {
    balance: Balance,
    is_fenced: bool,
    state: Mutex<State>,
}

struct State {
    group: Group<u64, Stored>,
    members: HashMap<u64, Weak<Subscriber>>,
    /// What is in the books of no member.
    books: Books,
}

impl SubscriptionBuilder<'_> {
    /// Shares the messages with all other subscriptions of this pattern that have the same group: each
    /// message goes to one of them. The execution is [`Serial`](Execution::Serial),
    /// [`Concurrent`](Execution::Concurrent), or the mailbox is pulled; there is no filter. By key or header
    /// it is `Serial`, and the overflow policy is [`Reject`](Overflow::Reject) or
    /// [`DropNewest`](Overflow::DropNewest): what drops others would break the order.
    pub fn group(mut self, name: &str, balance: Balance) -> Self {
        self.group = Some((name.into(), balance));
        self
    }

    pub(super) fn check_group(&self) -> Result<()> {
        let Some((name, balance)) = &self.group else { return Ok(()) };
        if name.is_empty() || name.len() > 255 {
            let value = format!("{} bytes long", name.len());
            return Err(Error::invalid("the name of a group", value, "1 to 255 bytes long"));
        }
        let by_key = matches!(balance, Balance::ByKey | Balance::ByHeader(_));
        let serves = match self.execution {
            Execution::Serial => true,
            Execution::Concurrent(_) | Execution::Pull => !by_key,
            _ => false,
        };
        if !serves {
            let execution = format!("{:?}", self.execution);
            let allowed =
                "Serial in a group, or Concurrent or Pull if it goes not by key or header";
            return Err(Error::invalid("execution", execution, allowed));
        }
        let overflow = self.overflow_policy();
        if by_key && matches!(overflow, Overflow::DropOldest | Overflow::Conflate) {
            let overflow = format!("{overflow:?}");
            let allowed = "Block, Reject or DropNewest in a group by key or header";
            return Err(Error::invalid("overflow", overflow, allowed));
        }
        if self.care.filter.is_some() {
            return Err(Error::invalid("filter", "set", "left out in a group"));
        }
        Ok(())
    }
}

impl Core {
    /// The group of this name, which is made if there is none.
    pub(super) fn group_of(
        &self,
        pattern: &str,
        name: &str,
        balance: &Balance,
    ) -> Result<Arc<Shared>> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
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
        let group = Arc::new(Shared::new(balance.clone()));
        groups.insert(id, Arc::downgrade(&group));
        Ok(group)
    }

    /// What the books of groups have that those of members have not.
    pub(super) fn for_each_group(&self, mut each: impl FnMut(&Books, u64)) {
        let groups: Vec<_> = {
            let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.values().filter_map(Weak::upgrade).collect()
        };
        for group in groups {
            let state = group.lock();
            each(&state.books, state.group.waiting() as u64);
        }
    }
}

impl Hub {
    /// How many messages wait because their keys move from one member of a group to another.
    pub fn moving(&self) -> u64 {
        let mut sum = 0;
        self.core.for_each_group(|_, waiting| sum += waiting);
        sum
    }
}

impl Shared {
    fn new(balance: Balance) -> Self {
        let group = Group::new(balance.clone(), MOST_MOVING);
        let is_fenced = group.is_fenced();
        let state = State { group, members: HashMap::new(), books: Books::default() };
        Self { balance, is_fenced, state: Mutex::new(state) }
    }

    /// Adds a member, unless it is one.
    pub(super) fn join(&self, subscriber: &Arc<Subscriber>) {
        let mut state = self.lock();
        let id = subscriber.id();
        if state.members.insert(id, Arc::downgrade(subscriber)).is_none() {
            state.group.join(id, id);
        }
    }

    /// Takes a member out.
    pub(super) fn leave(&self, core: &Core, id: u64) {
        let mut state = self.lock();
        let left = state.leave(id);
        let books = match state.members.is_empty() {
            true => core::mem::take(&mut state.books),
            false => Books::default(),
        };
        drop(state);
        drop(left);
        core.lock_ended().add(&books);
    }

    /// Takes a member out, unless it is the last one.
    pub(super) fn step_back(&self, id: u64) {
        let mut state = self.lock();
        if state.members.len() > 1 {
            let left = state.leave(id);
            drop(state);
            drop(left);
        }
    }

    /// Has one member get a message. With `may_wait` it is `Full` when members that let publishers wait are, and the
    /// caller comes again.
    pub(super) fn offer(&self, core: &Core, stored: &Stored, may_wait: bool) -> Offer {
        let mut state = self.lock();
        if core.is_closed() {
            return Offer::Closed;
        }
        let key = self.key_of(&state.group, stored);
        // A member that is full leaves the message to the others, where it does not belong to one of them.
        let most = if self.is_fenced { 1 } else { state.members.len() };
        for _ in 0..most {
            match state.offer(core, key, stored.clone(), IfFull::Answer) {
                Offer::Full => {}
                other => return other,
            }
        }
        if !may_wait && most > 0 {
            state.books.offered += 1;
            state.books.rejected += 1;
            return Offer::Rejected;
        }
        if most == 0 { Offer::Closed } else { Offer::Full }
    }

    /// A message that was refused after waiting for room.
    pub(super) fn refuse(&self) -> Offer {
        let mut state = self.lock();
        state.books.offered += 1;
        state.books.rejected += 1;
        Offer::Rejected
    }

    /// A message that a member had got has come to its end.
    pub(super) fn finished(&self, core: &Core, stored: &Stored) {
        if !self.is_fenced {
            return;
        }
        let mut state = self.lock();
        // Else what waits for the key is left there, and counted.
        if !core.is_closed() {
            let key = self.key_of(&state.group, stored);
            state.finish(core, key);
        }
    }

    fn key_of(&self, group: &Group<u64, Stored>, stored: &Stored) -> u64 {
        match &self.balance {
            Balance::ByKey => group.hash(stored.key.as_str()),
            Balance::ByHeader(name) => {
                let value = stored.headers.get(name);
                group.hash(value.unwrap_or_else(|| stored.key.as_str()))
            }
            _ => 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What waits for nobody any more comes back, counted, to be dropped outside the lock.
    fn leave(&mut self, id: u64) -> Vec<Stored> {
        if self.members.remove(&id).is_none() {
            return Vec::new();
        }
        let left = self.group.leave(id);
        self.books.offered += left.len() as u64;
        self.books.discarded += left.len() as u64;
        left
    }

    fn offer(&mut self, core: &Core, key: u64, message: Stored, if_full: IfFull) -> Offer {
        let mut message = message;
        loop {
            let members = &self.members;
            let load = |id| {
                let member = members.get(&id).and_then(Weak::upgrade);
                member.map_or(usize::MAX, |member| member.mail().waiting(0))
            };
            match self.group.enter(key, message, load) {
                Route::To(id, to_member) => match self.put(core, key, id, &to_member, if_full) {
                    // It has just ended: another one gets it.
                    Offer::Closed => message = to_member,
                    offer => return offer,
                },
                Route::Waits => return Offer::Replaced,
                Route::Full(_) => {
                    self.books.offered += 1;
                    self.books.rejected += 1;
                    return Offer::Rejected;
                }
                Route::Nobody(_) => return Offer::Closed,
            }
        }
    }

    /// Puts a message into the mailbox of a member. What is not enqueued there is finished.
    fn put(&mut self, core: &Core, key: u64, id: u64, message: &Stored, if_full: IfFull) -> Offer {
        let member = self.members.get(&id).and_then(Weak::upgrade);
        let offer = match &member {
            Some(member) => core.offer(member, message, if_full),
            None => Offer::Closed,
        };
        if offer == Offer::Closed {
            drop(self.leave(id));
        }
        if !matches!(offer, Offer::Enqueued { .. } | Offer::Replaced) {
            // Nothing waits for the key: messages go to members only then.
            let none = self.group.finish(key);
            debug_assert!(none.is_none());
        }
        offer
    }

    fn finish(&mut self, core: &Core, key: u64) {
        let Some((id, waited)) = self.group.finish(key) else { return };
        let mut again = VecDeque::new();
        for message in waited {
            // It was accepted when it was published.
            if self.put(core, key, id, &message, IfFull::Exceed) == Offer::Closed {
                again.push_back(message);
            }
        }
        for message in again {
            if self.offer(core, key, message, IfFull::Exceed) == Offer::Closed {
                self.books.offered += 1;
                self.books.discarded += 1;
            }
        }
    }
}
