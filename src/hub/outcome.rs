//! What became of one message, told when all who got it have dealt with it.
//!
//! A message that is *tracked* has an outcome beside its headers, which all copies of it share. Each subscription that
//! got it *ends* it once: its handler has returned, it has become a dead letter, or it was discarded.
//!
//! ```text
//!   left:  OPEN ── a subscription ends it: -1 ──► OPEN - ends
//!            └───── published, and n got it: -(OPEN - n) ──► n - ends
//!                                                              │ 0
//!                                                              ▼
//!                                                     told: Done, Failed or Lost, the worst of all
//!   the last copy is dropped before that ───────────► told: Lost
//! ```
//!
//! # Invariants
//!
//! 1. The function of a message that was published is called once, by whoever takes it out under the lock: at the latest
//!    when the last copy goes.
//! 2. It is told `Done` only if each who got the message has ended it and none has spoiled it: whoever spoils it does so
//!    before it ends it, and `left` is changed with `AcqRel`.
//! 3. A tracked message is never in a ring, where nobody knows when it has ended. It has an entry in each mailbox.

use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{OnceLock, PoisonError};

/// More than all who can get a message.
const OPEN: u64 = 1 << 40;

/// What became of a tracked message, from the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Handled {
    /// All who got it have dealt with it.
    Done,
    /// A handler has failed at it for good.
    Failed,
    /// Nobody subscribes, or a subscription has ended or a mailbox was full before a handler had it.
    Lost,
}

type Then = Box<dyn FnOnce(Handled, &str) + Send>;

/// See the head of the file.
pub(in crate::hub) struct Outcome {
    left: AtomicU64,
    worst: AtomicU8,
    /// If it fails it comes again: it becomes no dead letter.
    pub(in crate::hub) comes_again: bool,
    then: Mutex<Option<Then>>,
    /// What the first handler that has failed for good has failed with.
    failure: OnceLock<Box<str>>,
}

impl Outcome {
    /// The function is called once, with a failure if a handler has failed, on any thread, maybe under locks of the hub: it
    /// neither waits nor publishes.
    pub(in crate::hub) fn new(
        comes_again: bool,
        then: impl FnOnce(Handled, &str) + Send + 'static,
    ) -> Self {
        let then = Mutex::new(Some(Box::new(then) as Then));
        let (left, worst) = (AtomicU64::new(OPEN), AtomicU8::new(0));
        Self { left, worst, comes_again, then, failure: OnceLock::new() }
    }

    /// A handler has failed at it for good. To be called before `end_one`.
    pub(in crate::hub) fn fail(&self, failure: &str) {
        self.failure.get_or_init(|| failure.into());
        self.spoil(Handled::Failed);
    }

    /// To be called before `end_one`.
    pub(in crate::hub) fn spoil(&self, how: Handled) {
        // Relaxed: `left` orders it.
        self.worst.fetch_max(how as u8, Relaxed);
    }

    /// One who got it has dealt with it.
    pub(in crate::hub) fn end_one(&self) {
        self.subtract(1);
    }

    /// It was published, and so many got it.
    pub(in crate::hub) fn published(&self, got: u64) {
        self.subtract(OPEN - got);
    }

    fn subtract(&self, count: u64) {
        // A dead letter that is delivered again is ended again, which goes below zero.
        if self.left.fetch_sub(count, AcqRel) == count {
            let worst = match self.worst.load(Relaxed) {
                0 => Handled::Done,
                1 => Handled::Failed,
                _ => Handled::Lost,
            };
            self.tell(worst);
        }
    }

    /// It was not published: nobody is told.
    pub(in crate::hub) fn forget(&self) {
        drop(self.then.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn tell(&self, how: Handled) {
        let then = self.then.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(then) = then {
            then(how, self.failure.get().map_or("", |failure| failure));
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        self.tell(Handled::Lost);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_worst_is_told_once_when_all_have_ended_it() {
        for (ends_first, spoil, told) in [
            (0, None, Handled::Done),
            (1, Some(Handled::Failed), Handled::Failed),
            (2, None, Handled::Done),
        ] {
            let (tell, heard) = channel();
            let outcome = Outcome::new(false, move |how, _| tell.send(how).unwrap());
            (0..ends_first).for_each(|_| outcome.end_one());
            if let Some(how) = spoil {
                outcome.spoil(how);
            }
            outcome.published(2);
            (ends_first..2).for_each(|_| {
                assert!(heard.try_recv().is_err());
                outcome.end_one();
            });
            assert_eq!(heard.try_recv(), Ok(told));
            outcome.end_one();
            drop(outcome);
            assert!(heard.try_recv().is_err());
        }
    }

    #[test]
    fn what_nobody_ends_is_lost_with_its_last_copy() {
        let (tell, heard) = channel();
        let outcome = Outcome::new(false, move |how, _| tell.send(how).unwrap());
        outcome.published(1);
        drop(outcome);
        assert_eq!(heard.try_recv(), Ok(Handled::Lost));
    }
}

#[cfg(all(test, loom))]
mod models {
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | those who end it, and who has published it | `left` changed with Relaxed | a failure is told as success |

    use super::*;
    use crate::sync::atomic::AtomicU32;
    use loom::sync::Arc;
    use loom::thread;

    /// Two end it, one of whom has spoiled it, while it is published: the failure is told, once, by whoever is last.
    #[test]
    fn the_worst_is_told_once_whoever_is_last() {
        loom::model(|| {
            let told = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
            let tells = Arc::clone(&told);
            let outcome = Arc::new(Outcome::new(false, move |how, _| {
                tells.0.fetch_add(1, AcqRel);
                tells.1.store(how as u32, Relaxed);
            }));
            let fails = {
                let outcome = Arc::clone(&outcome);
                thread::spawn(move || {
                    outcome.spoil(Handled::Failed);
                    outcome.end_one();
                })
            };
            let succeeds = {
                let outcome = Arc::clone(&outcome);
                thread::spawn(move || outcome.end_one())
            };
            outcome.published(2);
            fails.join().unwrap();
            succeeds.join().unwrap();
            drop(outcome);
            let (times, how) = (told.0.load(Relaxed), told.1.load(Relaxed));
            assert_eq!((times, how), (1, Handled::Failed as u32));
        });
    }
}
