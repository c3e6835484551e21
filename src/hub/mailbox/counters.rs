//! What a mailbox has counted, and what a run settles with it.

/// Counts since the subscription began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::hub) struct Counters {
    pub(in crate::hub) offered: u64,
    pub(in crate::hub) delivered: u64,
    pub(in crate::hub) failed: u64,
    pub(in crate::hub) dead: u64,
    pub(in crate::hub) dropped: u64,
    pub(in crate::hub) rejected: u64,
    pub(in crate::hub) discarded: u64,
    /// Of those that were offered, the ones that had been dead letters.
    pub(in crate::hub) redelivered: u64,
}

impl Counters {
    pub(in crate::hub) fn add(&mut self, other: &Counters) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.dead += other.dead;
        self.redelivered += other.redelivered;
        self.dropped += other.dropped;
        self.rejected += other.rejected;
        self.discarded += other.discarded;
    }
}

/// What became of messages that a run had taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::hub) struct Settled {
    pub(in crate::hub) delivered: u64,
    pub(in crate::hub) failed: u64,
    pub(in crate::hub) dead: u64,
}
