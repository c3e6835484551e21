//! What the hub keeps of a subscription.

use crate::hub::channel::cursor::RingCursor;
use crate::hub::channel::route::{Channel, Identity};
use crate::hub::channel::segment::{Following, Taken};
use crate::hub::group::members::SharedGroup;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::{Mail, Offer};
use crate::hub::mailbox::progress::Progress;
use crate::hub::mailbox::puller::Puller;
use crate::hub::mailbox::rules::Rules;
use crate::hub::message::Stored;
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::trace::{self, Name};
use std::sync::{Arc, OnceLock, PoisonError};

/// What the hub keeps of a subscription.
pub(in crate::hub) struct Subscriber {
    pub(in crate::hub) id: u64,
    pub(in crate::hub) channel: Arc<Channel>,
    /// Where its channel has it.
    pub(in crate::hub) place: AtomicU32,
    pub(in crate::hub) rules: Arc<Rules>,
    pub(in crate::hub) progress: Progress,
    pub(in crate::hub) cursor: RingCursor,
    pub(in crate::hub) mail: Mutex<Mail<Handler>>,
    pub(in crate::hub) extra: OnceLock<Box<Extra>>,
}

/// What most subscriptions do without.
pub(in crate::hub) struct Extra {
    pub(in crate::hub) identity: Option<Identity>,
    pub(in crate::hub) puller: Option<Puller>,
    pub(in crate::hub) policy: OnceLock<Box<FailurePolicy>>,
    pub(in crate::hub) group: Option<Arc<SharedGroup<Subscriber>>>,
    /// Publishers wait here for room.
    pub(in crate::hub) room: Condvar,
}

impl Extra {
    fn none() -> Box<Self> {
        Box::new(Self {
            identity: None,
            puller: None,
            policy: OnceLock::new(),
            group: None,
            room: Condvar::new(),
        })
    }

    /// Whether there is nothing in it.
    pub(in crate::hub) fn is_empty(&self) -> bool {
        let Self { identity, puller, policy, group, room: _ } = self;
        identity.is_none() && puller.is_none() && policy.get().is_none() && group.is_none()
    }
}

impl Subscriber {
    /// What its runs are called: its pattern.
    #[inline]
    pub(in crate::hub) fn name(&self) -> Name {
        trace::of_text(&self.channel.pattern)
    }

    pub(in crate::hub) fn id(&self) -> u64 {
        self.id
    }

    /// What is known of it besides its mailbox, if anything.
    #[inline]
    pub(in crate::hub) fn policy(&self) -> Option<&FailurePolicy> {
        self.extra()?.policy.get().map(|policy| &**policy)
    }

    /// The group that it shares messages in.
    #[inline]
    pub(in crate::hub) fn group(&self) -> Option<&Arc<SharedGroup<Subscriber>>> {
        self.extra()?.group.as_ref()
    }

    pub(in crate::hub) fn policy_or_default(&self) -> &FailurePolicy {
        self.extra.get_or_init(Extra::none).policy.get_or_init(FailurePolicy::of_default)
    }

    #[inline]
    fn extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// Where publishers wait for room.
    pub(in crate::hub) fn room(&self) -> &Condvar {
        &self.extra.get_or_init(Extra::none).room
    }

    /// There is room, or an end. Whoever waits was counted under the mailbox's lock, after it had asked for
    /// the place to wait at.
    pub(in crate::hub) fn notify_room(&self) {
        if let Some(extra) = self.extra() {
            extra.room.notify_all();
        }
    }

    pub(in crate::hub) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(in crate::hub) fn identity(&self) -> Option<Identity> {
        self.extra()?.identity
    }

    pub(in crate::hub) fn puller(&self) -> Option<&Puller> {
        self.extra()?.puller.as_ref()
    }

    pub(in crate::hub) fn mail(&self) -> MutexGuard<'_, Mail<Handler>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(in crate::hub) fn is_closing(&self) -> bool {
        self.progress.is_closing()
    }
}

impl Subscriber {
    /// Something has come into the ring for those who pull.
    pub(in crate::hub) fn call_pullers(&self) {
        // Invariant 8.
        drop(self.mail());
        if let Some(puller) = self.puller() {
            puller.notify();
        }
    }

    /// Where its channel has it among those in the ring. Under the channel's lock.
    pub(in crate::hub) fn place(&self) -> usize {
        self.place.load(Relaxed) as usize
    }

    /// Whether something is in the ring for those who pull. Under the mailbox's lock.
    pub(in crate::hub) fn is_called(&self) -> bool {
        self.cursor.is_in_ring() && !self.progress.resting.load(Relaxed)
    }

    /// Up to where messages have begun, which is not far from the cursor.
    pub(in crate::hub) fn started(&self) -> u64 {
        self.progress.started(self.cursor.next())
    }

    /// Says what became of messages that a run has taken from the ring, and takes those that have been appended
    /// behind them in the same segment, up to `most`. Answers what was lost before the first. None: there is
    /// nothing, or the run has to come by the channel's lock.
    pub(in crate::hub) fn stream(
        &self,
        taken: &mut Taken,
        settled: &mut Settled,
        most: usize,
    ) -> Option<u64> {
        let more = taken.more().min(most);
        let mut mail = self.mail();
        mail.settle(&core::mem::take(settled));
        let lost = mail.stream(&self.cursor, more)?;
        self.progress.begun.store(0, Relaxed);
        drop(mail);
        taken.advance(more);
        Some(lost)
    }

    /// Goes on to the next of the segments that a run has taken, having said what became of the messages in this
    /// one. False: there is none. Publishers that wait for room are told.
    pub(in crate::hub) fn turn_over(
        &self,
        taken: &mut Taken,
        following: &mut Following,
        settled: &mut Settled,
    ) -> bool {
        if following.count == 0 {
            return false;
        }
        let mut mail = self.mail();
        mail.settle(&core::mem::take(settled));
        self.progress.begun.store(0, Relaxed);
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            self.notify_room();
        }
        taken.turn_over(following);
        true
    }

    /// Offers a message to a mailbox that has just come from the ring, because it was full there.
    pub(in crate::hub) fn offer_detached(&self, stored: &Stored) -> Offer {
        let mut mail = self.mail();
        // Acquire: as in `keep_room`.
        let begun = self.progress.begun.load(Acquire);
        // It is scheduled, for it had something in the ring.
        mail.offer(&self.rules, begun, stored, false)
    }
}

// With the counts of its `Arc` and the allocator's word that is 160 bytes. One or two references to it are in the lists
// of its channel: an idle subscription is to cost up to 200.
#[cfg(all(test, target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Subscriber>() <= 136);
