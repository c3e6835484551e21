//! Dead letters of a hub: listed, removed, delivered again.

use crate::error::Result;
use crate::hub::core::Core;
use crate::hub::handle::Hub;
use crate::hub::supervise::dead::{DeadFilter, DeadLetter, DeadStats, Unfit};
use crate::hub::system::tell::lost;

/// What became of dead letters that were to be delivered again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Redelivered {
    /// They wait in the mailboxes of their subscriptions, or for their replays, again.
    pub enqueued: u64,
    /// They are dead letters still, with new numbers: the mailbox was full, or the subscription is
    /// suspended, or has no mailbox because it is inline. A replay that is suspended, or for which 1024 wait
    /// so, takes none either.
    pub refused: u64,
    /// They are dead letters still, with new numbers: their subscription, or their replay, has ended. Those of a
    /// replay are in its history, too, as long as that keeps them: another replay gets them from there.
    pub orphaned: u64,
}

impl Hub {
    /// Clones of the dead letters that the filter names, the oldest first.
    pub fn dead_letters(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        self.core.dead.query(filter)
    }

    /// How many dead letters there were, and what became of them.
    pub fn dead_letter_stats(&self) -> DeadStats {
        self.core.dead.stats()
    }

    /// Takes dead letters out, the oldest first.
    pub fn remove_dead_letters(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        self.core.dead.remove(filter)
    }

    /// Delivers dead letters once more, each to the subscription or the replay that it was for and to no other,
    /// behind what waits there: for a replay that is what it has read, at most 64 messages. Their attempts are
    /// counted from 1 again. Any thread, any handler; it never waits.
    ///
    /// # Errors
    /// [`Error::ShutDown`](crate::Error::ShutDown) and [`Error::Forked`](crate::Error::Forked).
    pub fn redeliver(&self, filter: &DeadFilter) -> Result<Redelivered> {
        self.core.check_open()?;
        let mut result = Redelivered::default();
        for letter in self.core.dead.remove(filter) {
            let taken = letter.origin.redeliver(&letter.stored);
            match taken {
                Ok(()) => result.enqueued += 1,
                Err(Unfit::Refused) => result.refused += 1,
                Err(Unfit::Orphaned) => result.orphaned += 1,
            }
            if taken.is_err() {
                bury_again(&self.core, letter);
            }
        }
        Ok(result)
    }
}

fn bury_again(core: &Core, letter: DeadLetter) {
    if core.dead.bury(letter) {
        lost(core, &core.dead);
    }
}
