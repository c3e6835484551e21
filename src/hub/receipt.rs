//! What a publisher is told.

/// What became of a publication at the moment of publishing. Each subscription that matched is in exactly
/// one of `enqueued`, `dropped`, `rejected` and `dead_lettered`.
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
    /// Of these, those that have dropped it because their mailbox was full.
    pub dropped: u64,
    /// Of these, those that have refused it because their mailbox was full.
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
