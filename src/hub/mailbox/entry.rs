//! A message as it waits in a mailbox.

use crate::hub::message::Stored;

/// A message that waits.
#[derive(Clone, Debug)]
pub(in crate::hub) struct Entry {
    pub(in crate::hub) stored: Stored,
    /// Losses between the one before it and this.
    pub(in crate::hub) lost: u64,
    /// The place in the order of all that were offered to this mailbox.
    pub(in crate::hub) number: u64,
    /// The attempts that have failed.
    pub(in crate::hub) tried: Option<Box<Tried>>,
}

/// Attempts at a message that have failed.
#[derive(Clone, Copy, Debug)]
pub(in crate::hub) struct Tried {
    pub(in crate::hub) attempts: u32,
    /// When the first did, by the monotonic clock.
    pub(in crate::hub) first: u64,
}

impl Entry {
    /// One that comes from the channel's ring. There it had no number; it gets one that no other has.
    pub(in crate::hub) fn of_ring(stored: &Stored, lost: u64) -> Self {
        let number = stored.sequence | 1 << 63;
        Self { stored: stored.clone(), lost, number, tried: None }
    }
}
