//! How far the messages of a subscription have begun, and whether it rests or closes.

use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32};

/// See the head of the file. Written by the run; publishers look at it without the mailbox's lock.
pub(in crate::hub) struct Progress {
    /// How many of the messages that a run took have begun: they do not wait any more.
    pub(in crate::hub) begun: AtomicU32,
    /// In the ring, the last bits of the first position of which the message has not begun.
    pub(in crate::hub) started: AtomicU32,
    /// What a run has taken and not begun is to be discarded.
    pub(in crate::hub) closing: AtomicBool,
    /// It is in the ring and is to be called when something comes. The channel's lock guards it.
    pub(in crate::hub) resting: AtomicBool,
}

impl Progress {
    /// `begun` is `u32::MAX` if whatever is taken has begun.
    pub(in crate::hub) fn new(begun: u32) -> Self {
        let (begun, started) = (AtomicU32::new(begun), AtomicU32::new(0));
        let (closing, resting) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { begun, started, closing, resting }
    }

    #[inline]
    pub(in crate::hub) fn is_closing(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closing.load(Acquire)
    }

    /// The message at this position of the ring begins: it does not wait any more.
    #[inline]
    pub(in crate::hub) fn start(&self, position: u64) {
        // Release: pairs with the Acquire in `started`.
        self.started.store((position as u32).wrapping_add(1), Release);
    }

    /// Up to where messages have begun, which is not far from the position `next` of the cursor.
    pub(in crate::hub) fn started(&self, next: u64) -> u64 {
        // Acquire: pairs with the Release in `start`.
        near(next, self.started.load(Acquire))
    }
}

/// The position with these last bits that is next to another.
fn near(position: u64, bits: u32) -> u64 {
    let ahead = (position as u32).wrapping_sub(bits) as i32;
    position.wrapping_sub(i64::from(ahead) as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_told_by_its_last_bits() {
        for position in [0, 5, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 3, 7 << 32] {
            for other in [0, 1, 128, 1 << 20] {
                let before = u64::saturating_sub(position, other);
                assert_eq!(near(position, before as u32), before);
                assert_eq!(near(before, position as u32), position);
            }
        }
    }
}
