//! Messages that a handler is lent where they lie in a ring.

use crate::hub::channel::segment::{InPlace, Taken};
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::progress::Progress;
use crate::hub::message::Message;
use crate::hub::supervise::failure_policy::{FailurePolicy, Handling};
use crate::pool::{Shared, TurnClock};
use crate::sync::atomic::Ordering::Release;
use crate::trace;

/// What a handler is lent of what its run has taken from the ring: one message after the other. The next is asked
/// for when the handler is done with the one before.
pub(in crate::hub) struct Lent<'a> {
    messages: InPlace<'a>,
    progress: &'a Progress,
    pub(in crate::hub) policy: Option<&'a FailurePolicy>,
    shared: &'a Shared,
    turn: &'a mut TurnClock,
    taken: &'a Taken,
    /// What was lost before the first.
    lost: u64,
    /// How many have begun.
    pub(in crate::hub) begun: u32,
    /// Of the one that was lent last.
    handling: Option<Handling<'a>>,
}

impl<'a> Lent<'a> {
    /// Of a subscription with this progress and failure policy, in this pool, until the thread's turn is over.
    pub(in crate::hub) fn new(
        (progress, policy): (&'a Progress, Option<&'a FailurePolicy>),
        (shared, turn): (&'a Shared, &'a mut TurnClock),
        taken: &'a Taken,
        lost: u64,
    ) -> Self {
        let messages = taken.messages();
        Self { messages, progress, policy, shared, turn, taken, lost, begun: 0, handling: None }
    }

    /// The handler has failed at the one that was lent last, and its run ends.
    pub(in crate::hub) fn stops(&mut self) {
        self.turn.is_over();
    }

    /// The handler is through. Says how many have begun.
    pub(in crate::hub) fn end(self) -> usize {
        self.begun as usize
    }

    fn lost_before(&self, index: u32) -> u64 {
        if index == 0 { self.lost } else { 0 }
    }

    /// The one that was lent last, which the handler has failed at.
    pub(in crate::hub) fn failed_at(&mut self) -> Entry {
        self.handling = None;
        let index = self.begun - 1;
        let stored = self.taken.messages().nth(index as usize).expect("it was lent");
        Entry::of_ring(stored, self.lost_before(index))
    }
}

impl<'a> Iterator for Lent<'a> {
    type Item = Message<'a>;

    #[inline(always)] // It is what the loop of a handler's calls does.
    fn next(&mut self) -> Option<Message<'a>> {
        self.shared.end_if_forked();
        self.handling = None;
        if self.progress.is_closing() || self.begun > 0 && self.turn.is_over() {
            return None;
        }
        let stored = self.messages.next()?;
        let index = self.begun;
        self.begun += 1;
        self.progress.start(self.taken.position + u64::from(index));
        // Release: pairs with the Acquire in `SubscriptionStats::of`; what has begun does not wait.
        self.progress.begun.store(self.begun, Release);
        trace::goes_on();
        if let Some(policy) = self.policy {
            policy.catch_up();
            policy.measure(stored.time);
            self.handling = Some(policy.handle());
        }
        Some(Message { stored, lost_before: self.lost_before(index), attempt: 1 })
    }
}
