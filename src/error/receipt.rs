//! What a publisher is told.

use crate::error::{Error, Result};

/// What became of a publication at the moment of publishing. Each subscription that matched is in exactly
/// one of `enqueued`, `dropped`, `rejected` and `dead_lettered`.
///
/// ```
/// use paceline::{Error, Pool, hub::Hub};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let mailbox = hub.mailbox("a", 1)?; // with room for one message
/// assert!(hub.publish("a", "first")?.is_complete());
/// match hub.publish("a", "second") {
///     Err(Error::MailboxFull { receipt, .. }) => assert_eq!((receipt.matched, receipt.rejected), (1, 1)),
///     other => panic!("{other:?}"),
/// }
/// # drop(mailbox);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Receipt {
    /// The message's number in its hub; of a batch, that of its last message.
    pub sequence: u64,
    /// Subscriptions whose pattern, and filters, it matched.
    pub matched: u64,
    /// Of these, those that will get it, or have got it (inline). A full mailbox that drops its oldest
    /// message for this one is among them; what it dropped is in its statistics.
    pub enqueued: u64,
    /// Of these, those that have dropped it because their mailbox was full, as their overflow policy says.
    pub dropped: u64,
    /// Of these, those that have refused it because their mailbox was full. If there is one, publishing has failed
    /// with [`Error::MailboxFull`], which has this receipt.
    pub rejected: u64,
    /// Of these, those that are suspended: the message is among the dead letters.
    pub dead_lettered: u64,
}

impl Receipt {
    /// All of so many will get it.
    #[inline]
    pub(crate) fn of_all(sequence: u64, matched: u64) -> Self {
        Self { sequence, matched, enqueued: matched, ..Self::default() }
    }

    /// Whether everybody who matched will get it.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.enqueued == self.matched
    }

    /// How many of those who matched have dropped or refused it.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.dropped + self.rejected
    }

    /// What became of messages that were not refused as such, refused by mailboxes or not.
    pub(crate) fn of(result: &Result<Receipt>) -> Option<Receipt> {
        match result {
            Ok(receipt) => Some(*receipt),
            Err(Error::MailboxFull { receipt, .. }) => Some(**receipt),
            Err(_) => None,
        }
    }

    /// Adds what became of a later message of the same batch.
    pub(crate) fn add(&mut self, later: Receipt) {
        self.sequence = later.sequence;
        self.matched += later.matched;
        self.enqueued += later.enqueued;
        self.dropped += later.dropped;
        self.rejected += later.rejected;
        self.dead_lettered += later.dead_lettered;
    }
}

/// What a publication has come to, before its publisher is told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) receipt: Receipt,
    /// Who was the first to refuse it.
    pub(crate) refused: Option<Refused>,
    /// It was only tried, would have to wait, and nobody has got it.
    pub(crate) again: bool,
    /// A history has it: it is published, though nobody gets it as the pool ends.
    pub(crate) recorded: bool,
}

/// What is full, and how many messages it holds.
pub(crate) type Refused = (Box<str>, usize);

impl Told {
    pub(crate) fn new(sequence: u64) -> Self {
        Self { receipt: Receipt { sequence, ..Receipt::default() }, ..Told::default() }
    }

    /// Adds what became of a later message of the same batch.
    pub(crate) fn add(&mut self, later: Told) {
        self.receipt.add(later.receipt);
        self.refused = self.refused.take().or(later.refused);
        self.recorded |= later.recorded;
    }

    /// What the publisher is told.
    pub(crate) fn result(self) -> Result<Receipt> {
        if self.again {
            return Err(Error::TimedOut);
        }
        match self.refused {
            None => Ok(self.receipt),
            Some((mailbox, capacity)) => {
                Err(Error::MailboxFull { mailbox, capacity, receipt: Box::new(self.receipt) })
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_the_sum_and_the_last_sequence() {
        let one =
            Receipt { sequence: 4, matched: 2, enqueued: 1, dropped: 1, ..Receipt::default() };
        let mut sum = one;
        sum.add(Receipt {
            sequence: 9,
            matched: 3,
            enqueued: 1,
            dropped: 0,
            rejected: 1,
            dead_lettered: 1,
        });
        let all = Receipt {
            sequence: 9,
            matched: 5,
            enqueued: 2,
            dropped: 1,
            rejected: 1,
            dead_lettered: 1,
        };
        assert_eq!(sum, all);
        assert!(!sum.is_complete());
        assert!(Receipt { dropped: 0, matched: 1, ..one }.is_complete());
    }
}
