//! Those who pull a mailbox: how they are told, and when one has pulled last.

use crate::hub::message::Stored;
use crate::queue::{Pollable, Wire};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use crate::sync::{Condvar, Mutex, MutexGuard, store_load_barrier};
use crate::sys::clock;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::PoisonError;

/// What a subscription that is pulled has more than others.
pub(in crate::hub) struct Puller {
    pub(in crate::hub) pollable: Pollable<Wire>,
    /// Pullers wait here for messages.
    arrived: Condvar,
    /// How many do. Counted under the mailbox's lock, and looked at after a push under it: who has not seen
    /// the message has been counted before.
    sleepers: AtomicUsize,
    /// When somebody pulled last.
    pub(in crate::hub) pulled_at: AtomicU64,
    /// Of messages that are acknowledged: those that were taken and are not.
    hand: Mutex<Hand>,
}

/// Messages that the host has taken and not acknowledged.
#[derive(Default)]
struct Hand {
    count: u64,
    /// So many of them, the oldest, are not in the list.
    unlisted: u64,
    /// In a group by key or header, and in a hub that tracks messages: which, in order.
    messages: VecDeque<Stored>,
}

impl Puller {
    pub(in crate::hub) fn new() -> Self {
        Self {
            pollable: Pollable::new(),
            arrived: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            pulled_at: AtomicU64::new(clock::now()),
            hand: Mutex::default(),
        }
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many messages were taken that are to be acknowledged, and in a group by key or header, and once the hub
    /// tracks messages, these.
    pub(in crate::hub) fn take(&self, count: u64, messages: Vec<Stored>) {
        let mut hand = self.hand();
        hand.count += count;
        if messages.is_empty() {
            hand.unlisted = hand.count;
        }
        hand.messages.extend(messages);
    }

    /// The oldest `count` of these are acknowledged. None: there are not so many.
    pub(in crate::hub) fn let_go(&self, count: u64) -> Option<Vec<Stored>> {
        let mut hand = self.hand();
        hand.count = hand.count.checked_sub(count)?;
        let unlisted = hand.unlisted.min(count);
        hand.unlisted -= unlisted;
        let listed = hand.messages.len().min((count - unlisted) as usize);
        Some(hand.messages.drain(..listed).collect())
    }

    /// One of these is acknowledged: this one, which may be a copy of what was taken. Answers what was taken, if it is
    /// listed. None: there is none.
    pub(in crate::hub) fn let_one_go(&self, message: &Stored) -> Option<Stored> {
        let mut hand = self.hand();
        hand.count = hand.count.checked_sub(1)?;
        let place = hand.messages.iter().position(|taken| taken.sequence == message.sequence);
        match place.and_then(|place| hand.messages.remove(place)) {
            Some(taken) => Some(taken),
            None => {
                hand.unlisted = hand.unlisted.saturating_sub(1);
                Some(message.clone())
            }
        }
    }

    /// How many there are.
    pub(in crate::hub) fn in_hand(&self) -> u64 {
        self.hand().count
    }

    /// A message has come, or the mailbox has closed. Called without the mailbox's lock.
    pub(in crate::hub) fn notify(&self) {
        // Against *set QUIET, then look at the queue* (`queue/pollable.rs`).
        store_load_barrier();
        self.pollable.pushed();
        // Relaxed: the lock that the push has held orders them. Nobody sleeps as a rule, and a call to the
        // kernel costs more than the message.
        if self.sleepers.load(Relaxed) > 0 {
            self.arrived.notify_one();
        }
    }

    /// Something is left behind what was taken, and a notice may have met one of several who sleep.
    pub(in crate::hub) fn notify_next(&self) {
        // Relaxed: whoever counts itself after this looks for itself.
        if self.sleepers.load(Relaxed) > 0 {
            self.arrived.notify_one();
        }
    }

    /// Sleeps until it is notified, or for so long.
    pub(in crate::hub) fn sleep<'a, T>(
        &self,
        mail: MutexGuard<'a, T>,
        nap: Duration,
    ) -> MutexGuard<'a, T> {
        self.sleepers.fetch_add(1, Relaxed);
        let mail = self.arrived.wait_timeout(mail, nap).unwrap_or_else(PoisonError::into_inner).0;
        self.sleepers.fetch_sub(1, Relaxed);
        mail
    }

    pub(in crate::hub) fn notify_end(&self) {
        self.notify();
        self.arrived.notify_all();
    }
}
