//! What a mailbox goes by: its capacity, what happens when it is full, and where its handler runs.

use crate::sync::Mutex;
use core::time::Duration;
use std::sync::{Arc, PoisonError};

/// What happens to a message for a mailbox that is full. By default nothing is lost unseen: a handler's mailbox has
/// its publishers wait ([`Block`](Self::Block) without a limit), and one that is pulled refuses
/// ([`Reject`](Self::Reject)), because the thread that pulls may be the one that publishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Overflow {
    /// It is refused: publishing fails with [`Error::MailboxFull`](crate::Error::MailboxFull).
    Reject,
    /// It is dropped, and its publisher's receipt says `dropped`.
    DropNewest,
    /// The one that has waited for longest is dropped for it; of a mailbox that regards priorities, the
    /// one that would be delivered last.
    DropOldest,
    /// At most one message per key waits, full or not: a newer one takes the place of the older, which
    /// counts as dropped. In a full mailbox the message of another key drops the oldest.
    Conflate,
    /// Its publisher waits for room, for up to this time and not beyond the end of the pool, and then it is refused as by
    /// [`Reject`](Self::Reject). It is refused at once where waiting is not allowed: on a thread of any pool, in a
    /// handler, and by a publisher that [does not wait](crate::hub::Publication::no_wait).
    Block(Duration),
}

/// What a mailbox does; fixed when it is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::hub) struct Rules {
    pub(in crate::hub) execution: Execution,
    pub(in crate::hub) capacity: u32,
    pub(in crate::hub) overflow: Overflow,
    /// Regards priorities.
    pub(in crate::hub) ranked: bool,
    /// How many runs there may be at once; 0: the pool does not serve it.
    pub(in crate::hub) runs: u32,
    /// Who pulls it says what became of each message.
    pub(in crate::hub) acknowledged: bool,
    /// It may share its channel's ring (`channel/ring.rs`): it does nothing that needs its messages one by one.
    pub(in crate::hub) shared: bool,
}

/// Rules in use. Most mailboxes have the same, and keep a reference.
#[derive(Default)]
pub(in crate::hub) struct RuleBook(Mutex<Vec<Arc<Rules>>>);

impl RuleBook {
    /// How many different ones are looked through; those that come after have rules of their own.
    const KNOWN: usize = 16;

    pub(in crate::hub) fn find(&self, rules: Rules) -> Arc<Rules> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|other| ***other == rules) {
            return Arc::clone(same);
        }
        let new = Arc::new(rules);
        if known.len() < Self::KNOWN {
            known.push(Arc::clone(&new));
        }
        new
    }
}

impl Rules {
    /// How many messages a run may take at once. What a run has taken cannot be dropped, overtaken or
    /// conflated any more, and its neighbour cannot have it.
    pub(in crate::hub) fn batch(&self) -> usize {
        let alone = !matches!(self.overflow, Overflow::DropOldest | Overflow::Conflate);
        if alone && !self.ranked && self.runs == 1 { BATCH } else { 1 }
    }
}

/// Where a subscription's handler runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Execution {
    /// On the pool, never on two threads at once, in the order of its mailbox.
    #[default]
    Serial,
    /// In the publisher's thread, before publishing returns, with no mailbox. Several publishers may be in
    /// it at once.
    Inline,
    /// On up to so many threads of the pool at once, 1 to 1024. Messages begin in the order of the mailbox.
    Concurrent(u32),
    /// On the pool, one at a time with all others of its hub that have this, whatever their keys, in the one
    /// order in which the messages were published. Priorities are not regarded.
    Strand,
    /// Nowhere: a thread of the host takes the messages. See [`Mailbox`](crate::hub::Mailbox), which has this.
    Pull,
}

/// How many messages a run takes at once, where that makes no difference to anybody.
pub(in crate::hub) const BATCH: usize = if cfg!(loom) { 2 } else { 32 };
