//! Several messages at once: everybody takes theirs, or nobody gets any.
//!
//! # The problem
//!
//! Messages of several keys go to many mailboxes, and each has a lock of its own. That one of them refuses is
//! known when it is offered its message; and then others have theirs already, and may have handled it. To
//! hold all locks at once would need an order among them, and would hold up everybody else.
//!
//! # The phases
//!
//! | phase | what happens | what may end it |
//! |---|---|---|
//! | LOOK | who subscribes to the keys now | a key that cannot be promised anything |
//! | KEEP | each mailbox keeps room for its messages | a full one that would refuse: all room is released |
//! | PUBLISH | each message gets its number, is recorded, and takes its room | nothing |
//!
//! ```text
//!            keep_room                  offer_kept
//!   no room ──────────► Kept ────────────────────────► it waits in the mailbox
//!                         └── release_room (dropped) ─► no room
//! ```
//!
//! # Invariants
//!
//! 1. Room that is kept is given to nobody else. (`mailbox/mail.rs`, invariant 5)
//! 2. Each [`Kept`] is taken or released, once: it is a value, and dropping it releases.
//! 3. One mailbox's lock at a time. So nobody waits for anybody: of two who want the same last places both may be
//!    refused, but never do both wait.
//! 4. A subscription that shares its channel's ring is out of it from KEEP until it has its messages, so that
//!    those that are in the ring are before them. (`channel/ring.rs`)
//!
//! Who subscribes after LOOK does not get the messages, and who has ended meanwhile takes none: neither is a
//! refusal. A filter looks at a message with its number, which it has in PUBLISH only: until then room is
//! kept as if it passed.

use crate::error::receipt::{Receipt, Told};
use crate::error::{Error, Result};
use crate::hub::channel::route::{Channel, channel_of, shared_channel_of};
use crate::hub::core::{Core, Work};
use crate::hub::handle::Hub;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::mail::{Offer, Room};
use crate::hub::mailbox::rules::Execution;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::{Payload, Stored};
use crate::hub::publish::enqueue::{bury_offered, count, refused};
use crate::hub::publish::publishing::{
    Publication, ToKey, admit, check_size, draft, offer, to_result,
};
use crate::hub::publish::settings::{IfFull, PublishOptions};
use crate::hub::run::depth::is_too_deep;
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::hub::system::figures::count_key;
use crate::hub::system::tell::lost_by;
use crate::sync::atomic::Ordering::Acquire;
use std::sync::Arc;

/// More messages than this are not published together.
pub(crate) const MOST: usize = 1024;

/// Room in a mailbox for one message, until it is taken or this is dropped.
struct Kept(Option<Arc<Subscriber>>);

impl Kept {
    fn subscriber(&self) -> &Arc<Subscriber> {
        self.0.as_ref().expect("it was not taken")
    }

    /// The caller takes the room.
    fn take(mut self) -> Arc<Subscriber> {
        self.0.take().expect("it was not taken")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(subscriber) = self.0.take() else { return };
        let mut mail = subscriber.mail();
        mail.release_room();
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            subscriber.notify_room();
        }
    }
}

/// One who is to get a message.
enum Target {
    /// Its mailbox has room.
    Kept(Kept),
    /// It has no mailbox.
    Inline(Arc<Subscriber>),
}

impl Target {
    fn subscriber(&self) -> &Arc<Subscriber> {
        match self {
            Self::Kept(kept) => kept.subscriber(),
            Self::Inline(subscriber) => subscriber,
        }
    }
}

/// One of the messages.
struct Part {
    key: Key,
    payload: Payload,
    options: PublishOptions,
    targets: Vec<Target>,
}

impl Hub {
    /// Publishes up to 1024 messages, of one key or several: every mailbox takes its own of them, or nobody gets
    /// any. They are in order for each subscription; messages of others may come in between. Who subscribes
    /// meanwhile may miss them.
    ///
    /// What counts as taking: a mailbox that drops or conflates by its own rules has taken a message, a suspended
    /// subscription's becomes a dead letter, and one of a handler that runs in this thread is handled, well or
    /// not. A filter's subscription must have room also for what the filter keeps away. Groups, which choose
    /// who gets a message when it comes, cannot promise anything.
    ///
    /// It takes longer than to publish one by one, and subscriptions that share a channel's ring leave it for
    /// this. Any thread, any handler; it does not wait for room in mailboxes, but where a history on disk has none
    /// ([`WhenFull`](crate::hub::history::WhenFull)).
    ///
    /// ```
    /// use paceline::hub::Hub;
    /// use paceline::{Error, Pool};
    ///
    /// # fn main() -> paceline::Result<()> {
    /// let pool = Pool::new()?;
    /// let hub = Hub::new(&pool)?;
    /// let debits = hub.mailbox("debit", 10)?;
    /// let credits = hub.mailbox("credit", 1)?;
    /// let transfer = |amount: &str| {
    ///     let both = ["debit", "credit"].map(|key| hub.message(key).payload(amount));
    ///     hub.publish_all(both)
    /// };
    /// assert_eq!(transfer("17")?.enqueued, 2);
    /// assert!(matches!(transfer("4"), Err(Error::MailboxFull { .. })));
    /// assert_eq!((debits.stats().waiting, credits.stats().waiting), (1, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::MailboxFull`]: that mailbox would refuse. [`Error::Full`]: a history has no room. [`Error::Invalid`] as
    /// [`publish`](Self::publish), for a key that a group subscribes to, a message of another hub, and
    /// more than 1024 messages. [`Error::ShutDown`], [`Error::Forked`]. Nobody got anything then.
    pub fn publish_all<'a, K: ToKey>(
        &self,
        messages: impl IntoIterator<Item = Publication<'a, K>>,
    ) -> Result<Receipt> {
        let core = &*self.core;
        core.check_open()?;
        let mut parts = Vec::new();
        for message in messages {
            parts.push(self.part(message)?);
            if parts.len() > MOST {
                return Err(Error::invalid("the number of messages", "more", "up to 1024"));
            }
        }
        for part in &mut parts {
            keep(core, part)?;
        }
        let mut sum = Told::default();
        for part in parts {
            sum.add(publish_part(core, part));
        }
        to_result(core, sum)
    }

    fn part<K: ToKey>(&self, message: Publication<'_, K>) -> Result<Part> {
        let Publication { hub, key, payload, options } = message;
        if !Arc::ptr_eq(&hub.core, &self.core) {
            return Err(Error::invalid("a message", "of another hub", "of this one"));
        }
        check_size(&self.core, payload.len())?;
        let key = key.with_key(self, |key| Ok(key.clone()))?;
        admit(&self.core, &key)?;
        Ok(Part { key, payload, options, targets: Vec::new() })
    }
}

/// Keeps room with all who are to get the message.
fn keep(core: &Core, part: &mut Part) -> Result<()> {
    let mut channels: Vec<Arc<Channel>> = vec![shared_channel_of(&part.key)];
    core.router.with_patterns(channel_of(&part.key), |channel| channels.push(Arc::clone(channel)));
    for channel in channels {
        for subscriber in channel.members() {
            if subscriber.group().is_some() {
                let key = format!("{}, which a group subscribes to", part.key);
                return Err(Error::invalid("a key", key, "one without groups"));
            }
            let full = || Told { refused: Some(refused(&subscriber)), ..Told::default() };
            if subscriber.rules.execution == Execution::Inline {
                if is_too_deep() {
                    return full().result().map(drop);
                }
                part.targets.push(Target::Inline(subscriber));
                continue;
            }
            match channel.keep_room(&subscriber) {
                Room::Kept => part.targets.push(Target::Kept(Kept(Some(subscriber)))),
                Room::Closed => {}
                Room::Full => return full().result().map(drop),
            }
        }
    }
    Ok(())
}

fn publish_part(core: &Core, part: Part) -> Told {
    let Part { key, mut payload, options, targets } = part;
    let takers = core.histories.takers(&key);
    let mut make = || draft(core, &key, &mut payload, &options).into_stored();
    let stored = match takers.is_nobody() {
        true => make(),
        false => core.histories.record(takers, make),
    };
    count_key(core, &key, 1);
    let mut told = Told { recorded: !takers.is_nobody(), ..Told::new(stored.sequence) };
    let mut on_strand = Vec::new();
    for target in targets {
        let subscriber = target.subscriber();
        if subscriber.policy().is_some_and(|policy: &FailurePolicy| !policy.passes(&stored)) {
            continue;
        }
        match target {
            Target::Inline(subscriber) => {
                let offer = offer(core, &subscriber, &stored, IfFull::Refuse);
                count(&mut told, offer, || refused(&subscriber));
            }
            Target::Kept(kept) if kept.subscriber().rules.execution == Execution::Strand => {
                on_strand.push(kept);
            }
            Target::Kept(kept) => {
                let (subscriber, offer) = offer_kept(core, kept, &stored, |_, _| ());
                if offer == Offer::Dead {
                    bury_offered(core, &subscriber, &stored);
                }
                count(&mut told, offer, || refused(&subscriber));
            }
        }
    }
    if !on_strand.is_empty() {
        offer_kept_to_strand(core, on_strand, &stored, &mut told);
    }
    told
}

/// All at once, as [`offer_to_strand`](Core::offer_to_strand) does.
fn offer_kept_to_strand(core: &Core, all: Vec<Kept>, stored: &Stored, told: &mut Told) {
    let (mut schedule, mut dead) = (false, Vec::new());
    let mut strand = core.strand();
    for kept in all {
        let append = |subscriber: &Arc<Subscriber>, number| {
            schedule |= strand.append(subscriber, number);
        };
        let (subscriber, offer) = offer_kept(core, kept, stored, append);
        if offer == Offer::Dead {
            dead.push(Arc::clone(&subscriber));
        }
        count(told, offer, || refused(&subscriber));
    }
    drop(strand);
    if schedule {
        core.call(core.ready.push(Work::Strand));
    }
    dead.iter().for_each(|subscriber| bury_offered(core, subscriber, stored));
}

/// Offers a message to whom it has room with. `enqueued` is told its number there. If it is dead, the caller
/// buries it.
fn offer_kept(
    core: &Core,
    kept: Kept,
    stored: &Stored,
    enqueued: impl FnOnce(&Arc<Subscriber>, u64),
) -> (Arc<Subscriber>, Offer) {
    let subscriber = kept.take();
    let mut mail = subscriber.mail();
    // Acquire: pairs with the Release in `deliver_batch`.
    let begun = subscriber.progress.begun.load(Acquire);
    let lost = mail.losses();
    let offer = mail.offer_kept(&subscriber.rules, begun, stored);
    let has_lost = mail.losses() > lost && offer != Offer::Replaced;
    drop(mail);
    if has_lost {
        lost_by(&subscriber, core);
    }
    if let Offer::Enqueued { schedule, number } = offer {
        enqueued(&subscriber, number);
        if schedule && subscriber.rules.execution != Execution::Strand {
            core.call(core.ready.push(Work::Mailbox(Arc::clone(&subscriber))));
        }
    }
    if let Some(puller) = subscriber.puller() {
        puller.notify();
    }
    (subscriber, offer)
}
