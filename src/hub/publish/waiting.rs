//! A publisher that waits for room.

use crate::hub::core::Core;
use crate::hub::mailbox::mail::{Offer, Phase};
use crate::hub::mailbox::rules::{Execution, Overflow};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::Stored;
use crate::hub::naps::{NAP, SHORT_NAP};
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use core::time::Duration;
use std::sync::PoisonError;
use std::time::Instant;

/// A publisher that waits for room. While it waits for that of a handler, a drain waits for it: it is to be dropped when
/// the message has been offered, and not under a lock.
pub(in crate::hub) struct WaitingPublisher<'a> {
    core: &'a Core,
    /// Whether it counts among the `held_up`.
    counts: bool,
    deadline: Option<Instant>,
    nap: Duration,
    /// How often in turn nobody was there who could make room.
    absent: u8,
}

/// Why a publisher waits no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum WaitOver {
    /// The mailbox's time is over, or nobody could make room: it may be offered once more.
    Time,
    /// The pool stops: what is accepted now would not be handled.
    Pool,
}

impl<'a> WaitingPublisher<'a> {
    pub(in crate::hub) fn new(core: &'a Core, subscriber: &Subscriber) -> Self {
        let timeout = match subscriber.rules.overflow {
            Overflow::Block(timeout) => timeout,
            _ => Duration::ZERO,
        };
        let deadline = Instant::now().checked_add(timeout);
        let mut waiting = Self { core, counts: false, deadline, nap: SHORT_NAP, absent: 0 };
        waiting.count(subscriber.rules.execution != Execution::Pull);
        waiting
    }

    fn count(&mut self, counts: bool) {
        if counts == self.counts {
            return;
        }
        self.counts = counts;
        if counts {
            self.core.held_up.fetch_add(1, AcqRel);
        } else if self.core.held_up.fetch_sub(1, AcqRel) == 1 {
            self.core.shared.recheck_drain();
        }
    }

    /// The next nap, before which it is for this subscription that it waits. Not under a lock: it may be this thread that
    /// ends the drain, for which it looks at the ready list.
    pub(in crate::hub) fn nap(
        &mut self,
        subscriber: &Subscriber,
    ) -> core::result::Result<Duration, WaitOver> {
        /// Hosts come and go.
        const ABSENT: u8 = 4;
        let is_pulled = subscriber.rules.execution == Execution::Pull;
        self.count(!is_pulled);
        if self.core.shared.must_stop() {
            // The end of the pool has not waited for it: it stays counted, for the report.
            self.counts = false;
            return Err(WaitOver::Pool);
        }
        self.absent = match is_pulled || self.core.shared.has_servers() {
            true => 0,
            false => self.absent + 1,
        };
        let left =
            self.deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() || self.absent >= ABSENT {
            return Err(WaitOver::Time);
        }
        let nap = left.min(self.nap);
        self.nap = (self.nap * 2).min(NAP);
        Ok(nap)
    }
}

impl Drop for WaitingPublisher<'_> {
    fn drop(&mut self) {
        self.count(false);
    }
}

/// Waits for room in a mailbox that blocks, and offers the message again.
#[cold]
pub(in crate::hub) fn wait_for_room(
    waiting: &mut WaitingPublisher<'_>,
    subscriber: &Subscriber,
    stored: &Stored,
) -> Offer {
    // Who takes messages tells; that one has begun, which makes room, too, nobody does.
    loop {
        let nap = waiting.nap(subscriber);
        let mut mail = subscriber.mail();
        if nap == Err(WaitOver::Pool) {
            return mail.refuse();
        }
        let begun = subscriber.progress.begun.load(Acquire);
        match mail.offer(&subscriber.rules, begun, stored, true) {
            Offer::Full => {}
            other => return other,
        }
        let Ok(nap) = nap else { return mail.refuse() };
        debug_assert_eq!(mail.phase(), Phase::Open);
        mail.has_waiters = true;
        let waited = subscriber.room().wait_timeout(mail, nap);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
