//! Publishing: from a key and a payload to what every mailbox does with them.

use super::care::Care;
use super::dead::DeadReason;
use super::execute::Inline;
use super::key::{self, Key};
use super::mailbox::{Offer, Overflow, Phase};
use super::message::{Draft, Headers, Payload, Priority, Stored};
use super::route::{Channel, Snapshot};
use super::subscribe::{Execution, Subscriber};
use super::{Core, Hub, NAP, SHORT_NAP, Work};
use crate::error::receipt::{Receipt, Refused, Told};
use crate::error::{Error, Result};
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::time::Duration;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What stands for a key: a [`Key`], which costs nothing, or its text, which is looked up.
pub trait ToKey: private::ToKey {}

mod private {
    use super::{Hub, Key, Result};

    pub trait ToKey {
        /// Lends the key, if users may publish with it. (One that is handed on, or is owned in some cases, is written
        /// to memory in pieces and read whole, which the processor waits for.)
        fn with_key<R>(&self, hub: &Hub, f: impl FnOnce(&Key) -> Result<R>) -> Result<R>;
    }
}

impl ToKey for Key {}
impl ToKey for str {}
impl ToKey for String {}
impl<T: ToKey + ?Sized> ToKey for &T {}

impl private::ToKey for Key {
    #[inline]
    fn with_key<R>(&self, hub: &Hub, f: impl FnOnce(&Key) -> Result<R>) -> Result<R> {
        if !hub.core.keys.owns(self) {
            return Err(Error::invalid("key", format!("{self:?}"), "a key of this hub"));
        }
        if self.channel().is_reserved() {
            key::check_key(self.as_str())?;
        }
        f(self)
    }
}

impl private::ToKey for str {
    fn with_key<R>(&self, hub: &Hub, f: impl FnOnce(&Key) -> Result<R>) -> Result<R> {
        key::check_key(self)?;
        f(&hub.core.keys.intern(self))
    }
}

impl private::ToKey for String {
    fn with_key<R>(&self, hub: &Hub, f: impl FnOnce(&Key) -> Result<R>) -> Result<R> {
        self.as_str().with_key(hub, f)
    }
}

impl<T: private::ToKey + ?Sized> private::ToKey for &T {
    #[inline]
    fn with_key<R>(&self, hub: &Hub, f: impl FnOnce(&Key) -> Result<R>) -> Result<R> {
        (**self).with_key(hub, f)
    }
}

/// How many messages of a batch are put together before they are appended.
const CHUNK: usize = 32;

/// What is published with a key besides its payload.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub(super) headers: Headers,
    pub(super) priority: Priority,
    pub(super) if_full: Mode,
}

/// What a publisher does where a mailbox that lets publishers wait is full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Mode {
    /// It waits for room, where that is allowed.
    #[default]
    Wait,
    /// It is refused.
    NoWait,
    /// It publishes nothing: [`Error::TimedOut`].
    #[cfg_attr(not(feature = "capi"), allow(dead_code, reason = "for hosts of the C interface"))]
    Try,
}

/// What an offer comes to in that case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IfFull {
    Wait,
    Refuse,
    /// It is [`Offer::Full`].
    Answer,
    /// The message was accepted before, and is taken.
    Exceed,
}

/// A message that is being put together; see [`Hub::message`].
///
/// ```
/// use paceline::{Pool, hub::{Headers, Hub, Priority}};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let receipt = hub
///     .message("orders.eu")
///     .payload("order 1")
///     .headers(Headers::new([("trace", "17")])?)
///     .priority(Priority::High)
///     .publish()?;
/// assert!(receipt.is_complete());
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is published before `publish`"]
pub struct Publication<'a, K> {
    pub(super) hub: &'a Hub,
    pub(super) key: K,
    pub(super) payload: Payload,
    pub(super) terms: Terms,
}

impl<K: ToKey> Publication<'_, K> {
    /// Its headers; none unless set.
    pub fn headers(mut self, headers: Headers) -> Self {
        self.terms.headers = headers;
        self
    }

    /// Its priority, for mailboxes that regard it.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.terms.priority = priority;
        self
    }

    /// Its bytes; none unless set.
    pub fn payload(mut self, payload: impl Into<Payload>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Does not wait for room in mailboxes that [let publishers wait](Overflow::Block): they refuse, and publishing fails
    /// with [`Error::MailboxFull`]. For threads that must not be held up, as those of an async runtime. Default: it
    /// waits, where that is allowed.
    pub fn no_wait(mut self) -> Self {
        self.terms.if_full = Mode::NoWait;
        self
    }

    /// What is done where mailboxes are full.
    #[cfg(feature = "capi")]
    pub(crate) fn if_full(mut self, mode: Mode) -> Self {
        self.terms.if_full = mode;
        self
    }

    /// Publishes it.
    ///
    /// # Errors
    /// As [`Hub::publish`].
    pub fn publish(self) -> Result<Receipt> {
        let mut payload = self.payload;
        self.hub.publish_with(&self.key, &mut payload, &self.terms)
    }
}

impl Hub {
    /// Publishes a message. It is stored once, shared by all who get it; a payload of up to
    /// [`INLINE`](super::INLINE) bytes is not even allocated. Any thread, any handler.
    ///
    /// It waits while a mailbox that [lets publishers wait](Overflow::Block) is full, which is the default of handlers'
    /// mailboxes; but not on a thread of any pool or in a handler, nor where the hub's pool has no threads and nobody drives
    /// it: there it fails instead, see [`Publication::no_wait`]. A publisher that holds a lock which the handler takes
    /// waits for ever. It also waits if a history on disk has no room: by default it writes there then, or
    /// waits for up to 10 seconds ([`WhenFull`](super::history::WhenFull)).
    ///
    /// # Errors
    /// [`Error::MailboxFull`]: a mailbox was full and has refused it, and publishing was not allowed to wait, or its
    /// overflow policy is to refuse, or the time to wait was over. All others have got it: its receipt says so.
    ///
    /// Nobody got it otherwise. [`Error::Invalid`] for a bad key, one of another hub, and a payload beyond
    /// `max_payload`. [`Error::ShutDown`] and [`Error::Forked`]. [`Error::Full`] if a history on disk had no room in
    /// time.
    #[inline]
    pub fn publish(&self, key: impl ToKey, payload: impl Into<Payload>) -> Result<Receipt> {
        self.publish_with(&key, &mut payload.into(), &Terms::default())
    }

    /// Publishes several messages of one key, in order. The receipt is the sum of theirs.
    ///
    /// # Errors
    /// As [`publish`](Self::publish). [`Error::MailboxFull`]: all were published, and the receipt says how many
    /// deliveries were refused. Otherwise those before the one that was refused were published.
    pub fn publish_batch<P: Into<Payload>>(
        &self,
        key: impl ToKey,
        payloads: impl IntoIterator<Item = P>,
    ) -> Result<Receipt> {
        self.publish_batch_as(key, payloads, Mode::Wait)
    }

    /// The same, with what is done where mailboxes are full.
    pub(crate) fn publish_batch_as<P: Into<Payload>>(
        &self,
        key: impl ToKey,
        payloads: impl IntoIterator<Item = P>,
        if_full: Mode,
    ) -> Result<Receipt> {
        self.core.check_open()?;
        key.with_key(self, |key| {
            let terms = Terms { if_full, ..Terms::default() };
            let (told, _, end) = self.core.publish_batch(key, payloads, &terms, || Ok(()));
            end.and_then(|()| self.core.result(told))
        })
    }

    /// Waits for up to `timeout` until nobody who gets messages with the key would have a publisher wait. False: it
    /// took longer, or the pool has ended. [`Error::MailboxFull`]: the publisher, which has `waited` for so long before,
    /// has waited for as long as a mailbox lets it.
    #[cfg(feature = "capi")]
    pub(crate) fn wait_for_room(
        &self,
        key: &Key,
        timeout: Duration,
        waited: Duration,
    ) -> Result<bool> {
        self.core.check_open()?;
        if !self.core.may_wait(Mode::Wait) {
            return Ok(self.core.first_full(key).is_none());
        }
        let begun = Instant::now();
        let deadline = begun.checked_add(timeout);
        while let Some(full) = self.core.first_full(key) {
            let stops = self.core.shared.must_stop();
            let patience = match full.rules.overflow {
                Overflow::Block(time) => {
                    time.saturating_sub(waited.saturating_add(begun.elapsed()))
                }
                _ => Duration::MAX,
            };
            if patience.is_zero() {
                let refused = Some(full.refused());
                return Told { refused, ..Told::default() }.result().map(|_| false);
            }
            let left =
                deadline.map_or(NAP, |at| at.saturating_duration_since(Instant::now()).min(NAP));
            if left.is_zero() || stops {
                return Ok(false);
            }
            full.wait_for_room(left.min(SHORT_NAP).min(patience));
        }
        Ok(true)
    }

    /// A message with headers or a priority, say.
    pub fn message<K: ToKey>(&self, key: K) -> Publication<'_, K> {
        Publication { hub: self, key, payload: Payload::EMPTY, terms: Terms::default() }
    }

    /// Refuses a payload that is too large.
    #[cfg(feature = "capi")]
    pub(crate) fn check_payload_size(&self, size: usize) -> Result<()> {
        self.core.check_size(size)
    }

    #[inline]
    fn publish_with(
        &self,
        key: &impl ToKey,
        payload: &mut Payload,
        terms: &Terms,
    ) -> Result<Receipt> {
        self.core.check_open()?;
        self.core.check_size(payload.len())?;
        key.with_key(self, |key| self.core.publish_with(key, payload, terms))
    }
}

impl Core {
    /// Whether this thread waits for room. Whoever does must not be one who makes it; nor a member of another pool, whose
    /// members may wait for this one.
    pub(super) fn may_wait(&self, if_full: Mode) -> bool {
        if_full == Mode::Wait
            && !crate::thread_state::is_member()
            && !super::execute::is_in_handler()
    }

    /// Refuses a publication that is only tried, if somebody would have it wait.
    #[inline]
    pub(super) fn check_room(&self, key: &Key, terms: &Terms) -> Result<()> {
        if terms.if_full != Mode::Try || self.all_have_room(key) {
            return Ok(());
        }
        if self.first_full(key).is_none() { Ok(()) } else { Err(Error::TimedOut) }
    }

    /// Whether all who get messages with this key are in the ring of its channel, and have room; the quick look.
    fn all_have_room(&self, key: &Key) -> bool {
        if !self.may_push(key) {
            return false;
        }
        let mut state = key.channel().lock();
        state.all_in_ring() > 0 && state.ring.has_room()
    }

    /// Of those who get messages with this key, one that would have a publisher wait; of a group, if all members
    /// would. Filters are not asked.
    fn first_full(&self, key: &Key) -> Option<Arc<Subscriber>> {
        let mut channels: Vec<Arc<Channel>> = vec![Arc::clone(key.channel())];
        self.router.with_patterns(key, |channel| channels.push(Arc::clone(channel)));
        let members: Vec<_> = channels.iter().flat_map(|channel| channel.members()).collect();
        let is_full = |one: &&Arc<Subscriber>| one.has_no_room();
        members
            .iter()
            .find(|one| match one.group() {
                None => is_full(one),
                Some(group) => {
                    let is_same = |other: &&Arc<Subscriber>| {
                        other.group().is_some_and(|its| Arc::ptr_eq(its, group))
                    };
                    members.iter().filter(is_same).all(|other| is_full(&other))
                }
            })
            .cloned()
    }

    #[inline]
    pub(super) fn check_size(&self, size: usize) -> Result<()> {
        match size <= self.max_payload {
            true => Ok(()),
            false => {
                let allowed = format!("up to {} bytes", self.max_payload);
                Err(Error::invalid("the size of the payload", size, allowed))
            }
        }
    }

    /// Waits for room in histories that want it.
    #[inline]
    pub(super) fn admit(&self, key: &Key) -> Result<()> {
        let takers = self.histories.takers(key);
        let may_wait = || !(self.is_inside() || super::execute::is_in_handler());
        if takers.is_nobody() { Ok(()) } else { self.histories.admit(takers, may_wait()) }
    }

    /// Publishes what has been checked, but for what depends on who publishes. (Not a part of each user's function, which
    /// it is longer than: what is called from function to function is written to memory, and read.)
    fn publish_with(&self, key: &Key, payload: &mut Payload, terms: &Terms) -> Result<Receipt> {
        self.check_room(key, terms)?;
        self.admit(key)?;
        self.publish(key, payload, terms)
    }

    /// Publishes what has been checked by the long way, where that is seldom done.
    pub(super) fn publish_seldom(&self, key: &Key, payload: &mut Payload, terms: &Terms) -> Told {
        self.count_key(key, 1);
        self.publish_anyhow(key, payload, terms, None)
    }

    /// Publishes what has been checked.
    #[inline(always)]
    pub(super) fn publish(
        &self,
        key: &Key,
        payload: &mut Payload,
        terms: &Terms,
    ) -> Result<Receipt> {
        let mut other = None;
        match self.publish_lean(key, payload, terms, &mut other) {
            (_, 0) => self.result(other.unwrap_or_default()),
            (sequence, members) => Ok(Receipt::of_all(sequence, members)),
        }
    }

    /// What the publisher is told.
    pub(super) fn result(&self, told: Told) -> Result<Receipt> {
        if self.comes_too_late(&told) { Err(Error::ShutDown) } else { told.result() }
    }

    /// Whether nobody has got a message since the pool has ended meanwhile.
    fn comes_too_late(&self, told: &Told) -> bool {
        told.receipt.matched == 0 && self.is_closed()
    }

    /// The same. Answers the message's number, and how many get it; none: what became of it is in `other`.
    // Two numbers are registers. A receipt was written to memory in pieces, and read whole for the caller's, at each
    // step: for that the processor waits until all stores before it are done, those to the lines of the ring among
    // them. (As one function with `publish` it is slower by a tenth.)
    #[inline(always)]
    fn publish_lean(
        &self,
        key: &Key,
        payload: &mut Payload,
        terms: &Terms,
        other: &mut Option<Told>,
    ) -> (u64, u64) {
        let is_recorded = !self.histories.takers(key).is_nobody();
        // A replay sees what was recorded before it subscribed, so whoever records looks for it after that. It is
        // asked for before anything is counted: a count waits for its own line first.
        let ahead = if is_recorded { None } else { key.channel().ahead() };
        self.count_key(key, 1);
        if !is_recorded && ahead.is_none() {
            let (sequence, members) = self.publish_in_ring(key, payload, terms);
            if members > 0 {
                return (sequence, members);
            }
        }
        *other = Some(self.publish_anyhow(key, payload, terms, ahead.as_ref()));
        (0, 0)
    }

    /// The short way: when nobody records it, and all who get it are in the ring of the key's own channel, and have
    /// room. Answers the message's number, and how many get it; none: it was not published.
    #[inline(always)] // A part of `publish`.
    fn publish_in_ring(&self, key: &Key, payload: &mut Payload, terms: &Terms) -> (u64, u64) {
        if !self.may_push(key) {
            return (0, 0);
        }
        let time = crate::sys::clock::unix_nanos();
        let mut state = key.channel().lock();
        let members = state.all_in_ring();
        if members == 0 || !state.ring.has_room() {
            return (0, 0);
        }
        let sequence = self.next_sequence();
        let Terms { ref headers, priority, .. } = *terms;
        state.ring.push(self, Draft { sequence, time, key, headers, payload, priority });
        let call = state.ring.call(self);
        drop(state);
        self.call(call);
        (sequence, members)
    }

    #[inline(never)]
    fn publish_anyhow(
        &self,
        key: &Key,
        payload: &mut Payload,
        terms: &Terms,
        ahead: Option<&Snapshot>,
    ) -> Told {
        let takers = self.histories.takers(key);
        if takers.is_nobody() {
            let stored = self.draft(key, payload, terms).into_stored();
            return self.publish_stored(&stored, terms, ahead);
        }
        let make = || self.draft(key, payload, terms).into_stored();
        let stored = self.histories.record(takers, make);
        let Stored { sequence, time, payload: mut recorded, priority, .. } = stored;
        let payload = &mut recorded;
        let mut draft =
            Some(Draft { sequence, time, key, headers: &terms.headers, payload, priority });
        if self.may_push(key) {
            let members = key.channel().push_one(self, &mut draft);
            if members > 0 {
                let receipt = Receipt::of_all(sequence, members);
                return Told { receipt, ..Told::default() };
            }
        }
        let stored = draft.expect("it was not pushed").into_stored();
        self.publish_stored(&stored, terms, None)
    }

    #[inline]
    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Relaxed) + 1
    }

    #[inline]
    pub(super) fn draft<'a>(
        &self,
        key: &'a Key,
        payload: &'a mut Payload,
        terms: &'a Terms,
    ) -> Draft<'a> {
        Draft {
            sequence: self.next_sequence(),
            time: crate::sys::clock::unix_nanos(),
            key,
            headers: &terms.headers,
            payload,
            priority: terms.priority,
        }
    }

    /// Publishes several, each of which is `permit`ted first. Answers the sum of the receipts, how many were
    /// published, and why not more.
    pub(super) fn publish_batch<P: Into<Payload>>(
        &self,
        key: &Key,
        payloads: impl IntoIterator<Item = P>,
        terms: &Terms,
        mut permit: impl FnMut() -> Result<()>,
    ) -> (Told, u64, Result<()>) {
        let (mut sum, mut published) = (Told::default(), 0);
        let mut payloads = payloads.into_iter();
        if !self.histories.takers(key).is_nobody() {
            // Each has its number from the history that records it.
            for payload in payloads {
                let mut payload = payload.into();
                let end = self.check_size(payload.len()).and_then(|()| permit());
                if let Err(error) = end.and_then(|()| self.admit(key)) {
                    return (sum, published, Err(error));
                }
                let told = self.publish_seldom(key, &mut payload, terms);
                if self.comes_too_late(&told) {
                    return (sum, published, Err(Error::ShutDown));
                }
                sum.add(told);
                published += 1;
            }
            return (sum, published, Ok(()));
        }
        loop {
            // Code of the user runs here, and not while a lock is held.
            let mut chunk = [const { Payload::EMPTY }; CHUNK];
            let mut count = 0;
            let mut end = Ok(());
            for place in &mut chunk {
                let Some(payload) = payloads.next() else { break };
                *place = payload.into();
                end = self.check_size(place.len()).and_then(|()| permit());
                if end.is_err() {
                    break;
                }
                count += 1;
            }
            let done = self.publish_chunk(key, &mut chunk[..count], terms, &mut sum);
            published += done as u64;
            if done < count {
                return (sum, published, Err(Error::ShutDown));
            }
            if count < CHUNK {
                return (sum, published, end);
            }
        }
    }

    /// Answers how many were published: all, unless the pool ends.
    fn publish_chunk(
        &self,
        key: &Key,
        chunk: &mut [Payload],
        terms: &Terms,
        sum: &mut Told,
    ) -> usize {
        let count = chunk.len();
        if count == 0 {
            return 0;
        }
        self.count_key(key, count as u64);
        let time = crate::sys::clock::unix_nanos();
        let mut left = count;
        let mut sequence = self.sequence.fetch_add(left as u64, Relaxed);
        let last = sequence + left as u64;
        let mut messages = chunk.iter_mut().map(|payload| {
            sequence += 1;
            let Terms { ref headers, priority, .. } = *terms;
            Draft { sequence, time, key, headers, payload, priority }
        });
        while left > 0 {
            let (pushed, members) = match self.may_push(key) {
                true => key.channel().push_shared(self, &mut messages, left),
                false => (0, 0),
            };
            if pushed > 0 {
                left -= pushed;
                sum.receipt.add(Receipt::of_all(last - left as u64, pushed as u64 * members));
            } else if let Some(draft) = messages.next() {
                let told = self.publish_stored(&draft.into_stored(), terms, None);
                if self.comes_too_late(&told) {
                    break;
                }
                left -= 1;
                sum.add(told);
            }
        }
        count - left
    }

    /// Whether all who get messages with this key may be in its own channel's ring.
    #[inline(always)] // Likewise.
    fn may_push(&self, key: &Key) -> bool {
        key.channel().is_shared() && !self.router.has_listeners(key)
    }

    /// The long way: whoever gets it. `ahead` is what the key's channel has answered by that name, if it was asked.
    fn publish_stored(&self, stored: &Stored, terms: &Terms, mut ahead: Option<&Snapshot>) -> Told {
        let key = &stored.key;
        let mut told = Told::new(stored.sequence);
        let may_wait = self.may_wait(terms.if_full);
        // What was recorded is not to be recorded twice.
        let tries = terms.if_full == Mode::Try && self.histories.takers(key).is_nobody();
        let mut on_strand = false;
        // Those on the strand whose filters it has passed.
        let mut passed = Vec::new();
        // Groups that have got it.
        let mut groups = Vec::new();
        let mut deliver = |channel: &Arc<Channel>| {
            if told.again {
                return;
            }
            let shared = channel.is_shared();
            let tries_ring = tries && told.receipt.matched == 0;
            // The key's own channel is the first.
            let ahead = ahead.take().filter(|_| !shared);
            let loaded = match shared {
                true => channel.offer_shared(self, stored, may_wait, tries_ring, &mut told),
                false => ahead.is_none().then(|| channel.snapshot()),
            };
            for subscriber in ahead.or(loaded.as_ref()).into_iter().flat_map(|own| own.iter()) {
                if told.again {
                    return;
                }
                if subscriber.care().is_some_and(|care| !care.passes(stored)) {
                    continue;
                }
                // Once somebody has got it, it is not published again.
                let if_full = match may_wait {
                    true => IfFull::Wait,
                    false if tries && told.receipt.matched == 0 => IfFull::Answer,
                    false => IfFull::Refuse,
                };
                let answers = if_full == IfFull::Answer;
                if let Some(group) = subscriber.group() {
                    // The first of its members brings it to the group.
                    if !groups.contains(&Arc::as_ptr(group)) {
                        groups.push(Arc::as_ptr(group));
                        let mut offer = group.offer(self, stored, may_wait || answers);
                        if offer == Offer::Full && answers {
                            told.again = true;
                            return;
                        }
                        if offer == Offer::Full {
                            offer = self.wait_for_group(subscriber, group, stored);
                        }
                        count(&mut told, offer, || subscriber.refused());
                    }
                    continue;
                }
                match subscriber.rules.execution {
                    Execution::Strand if subscriber.care().is_some_and(Care::has_filter) => {
                        on_strand = true;
                        passed.push(subscriber.id());
                    }
                    Execution::Strand => on_strand = true,
                    _ => {
                        let offer = self.offer(subscriber, stored, if_full);
                        if offer == Offer::Full && answers {
                            told.again = true;
                            return;
                        }
                        count(&mut told, offer, || subscriber.refused());
                    }
                }
            }
        };
        deliver(key.channel());
        self.router.with_patterns(key, &mut deliver);
        if on_strand && !told.again {
            self.offer_to_strand(stored, &passed, may_wait, &mut told);
        }
        told
    }

    /// Offers the message to one subscription.
    pub(super) fn offer(
        &self,
        subscriber: &Arc<Subscriber>,
        stored: &Stored,
        if_full: IfFull,
    ) -> Offer {
        if subscriber.rules.execution == Execution::Inline {
            return match subscriber.deliver_inline(self, stored) {
                Inline::Delivered => Offer::Replaced,
                Inline::Closed => Offer::Closed,
                Inline::TooDeep => {
                    subscriber.lost(self);
                    Offer::Rejected
                }
                Inline::Dead => {
                    self.bury_offered(subscriber, stored);
                    Offer::Dead
                }
            };
        }
        // It goes last, when the message is in the list.
        let mut waiting = None;
        // Acquire: pairs with the Release in `deliver_batch`.
        let begun = || subscriber.begun.load(Acquire);
        let mut mail = subscriber.mail();
        let lost = mail.losses();
        let rules = &subscriber.rules;
        let mut offer = match if_full {
            IfFull::Exceed if matches!(rules.overflow, Overflow::Block(_)) => {
                mail.offer_accepted(rules, stored)
            }
            _ => {
                mail.offer(rules, begun(), stored, matches!(if_full, IfFull::Wait | IfFull::Answer))
            }
        };
        let mut has_lost = mail.losses() > lost && offer != Offer::Replaced;
        drop(mail);
        if offer == Offer::Full && if_full == IfFull::Wait {
            offer =
                wait_for_room(waiting.insert(Waiting::new(self, subscriber)), subscriber, stored);
            has_lost = offer == Offer::Rejected;
        }
        if has_lost {
            subscriber.lost(self);
        }
        match offer {
            Offer::Enqueued { schedule: true, .. } => {
                self.call(self.ready.push(Work::Mailbox(Arc::clone(subscriber))));
            }
            Offer::Dead => self.bury_offered(subscriber, stored),
            _ => {}
        }
        if let Some(puller) = subscriber.puller() {
            puller.notify();
        }
        offer
    }

    /// Makes what was offered to a suspended subscription a dead letter. Not under a lock.
    #[cold]
    pub(super) fn bury_offered(&self, subscriber: &Arc<Subscriber>, stored: &Stored) {
        subscriber.bury(self, stored, DeadReason::Suspended, None, 0);
        let close = subscriber.mail().buried(1);
        subscriber.finish(self, close);
    }

    /// Offers the message to all subscriptions that are on the strand, at once: so that any two messages
    /// are in the same order for all of them.
    #[cold]
    fn offer_to_strand(&self, stored: &Stored, passed: &[u64], may_wait: bool, told: &mut Told) {
        let (mut schedule, mut dead) = (false, Vec::new());
        // It goes last, when the messages are in the list.
        let mut waiting = None;
        let (mut strand, stops) = match may_wait {
            true => self.strand_with_room(stored, passed, &mut waiting),
            false => (self.strand(), false),
        };
        let mut deliver = |channel: &Arc<Channel>| {
            for subscriber in channel.snapshot().iter() {
                if !subscriber.gets_on_strand(passed) {
                    continue;
                }
                let mut mail = subscriber.mail();
                // Acquire: pairs with the Release where messages begin.
                let begun = subscriber.begun.load(Acquire);
                let lost = mail.losses();
                let offer = match subscriber.rules.overflow {
                    Overflow::Block(_) if stops => mail.refuse(),
                    _ => mail.offer(&subscriber.rules, begun, stored, false),
                };
                drop(mail);
                match offer {
                    Offer::Enqueued { number, .. } => schedule |= strand.append(subscriber, number),
                    Offer::Dead => dead.push(Arc::clone(subscriber)),
                    _ => {}
                }
                if subscriber.mail().losses() > lost && offer != Offer::Replaced {
                    subscriber.lost(self);
                }
                count(told, offer, || subscriber.refused());
            }
        };
        deliver(stored.key.channel());
        self.router.with_patterns(&stored.key, &mut deliver);
        drop(strand);
        if schedule {
            self.call(self.ready.push(Work::Strand));
        }
        dead.iter().for_each(|subscriber| self.bury_offered(subscriber, stored));
    }
}

/// Counts what became of an offer; `by` says whose it was.
pub(super) fn count(told: &mut Told, offer: Offer, by: impl FnOnce() -> Refused) {
    let Told { receipt, refused, .. } = told;
    receipt.matched += u64::from(offer != Offer::Closed);
    match offer {
        Offer::Closed => {}
        Offer::Enqueued { .. } | Offer::Replaced => receipt.enqueued += 1,
        Offer::Dropped => receipt.dropped += 1,
        Offer::Dead => receipt.dead_lettered += 1,
        Offer::Rejected | Offer::Full => {
            receipt.rejected += 1;
            if refused.is_none() {
                *refused = Some(by());
            }
        }
    }
}

impl Subscriber {
    /// What has refused a message, for people.
    #[cold]
    pub(super) fn refused(&self) -> Refused {
        let name = format!("subscription {} ({})", self.id(), self.channel().pattern());
        match (self.rules.execution, self.group()) {
            (Execution::Inline, _) => {
                let depth = super::execute::MAX_DEPTH as usize;
                (format!("the stack of inline handlers before {name}").into(), depth)
            }
            (_, None) => (format!("the mailbox of {name}").into(), self.rules.capacity as usize),
            (_, Some(_)) => {
                let mailbox = format!("each mailbox that may have it in the group of {name}");
                (mailbox.into(), self.rules.capacity as usize)
            }
        }
    }

    /// Whether it is on the strand and gets a message whose filters have let it pass to these.
    fn gets_on_strand(&self, passed: &[u64]) -> bool {
        self.rules.execution == Execution::Strand
            && (!self.care().is_some_and(Care::has_filter) || passed.contains(&self.id()))
    }

    /// Whether it would have a publisher wait for room.
    fn has_no_room(&self) -> bool {
        if !matches!(self.rules.overflow, Overflow::Block(_)) {
            return false;
        }
        self.channel().with_ring(self, |_, in_ring, mail| {
            // Acquire: pairs with the Release where messages begin.
            let begun = self.begun.load(Acquire);
            let room = u64::from(self.rules.capacity).saturating_sub(mail.waiting(begun) as u64);
            mail.has_no_room(&self.rules, begun) || mail.phase() == Phase::Open && in_ring >= room
        })
    }

    /// Sleeps until somebody tells of room, or for so long.
    fn wait_for_room(&self, nap: Duration) {
        let mut mail = self.mail();
        mail.has_waiters = true;
        drop(self.room().wait_timeout(mail, nap).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Core {
    /// Waits for room in a group, and offers the message again.
    #[cold]
    fn wait_for_group(
        &self,
        member: &Arc<Subscriber>,
        group: &Arc<super::share::Shared>,
        stored: &Stored,
    ) -> Offer {
        let mut waiting = Waiting::new(self, member);
        loop {
            let nap = waiting.nap(member);
            if nap == Err(Over::Pool) {
                return group.refuse();
            }
            match group.offer(self, stored, nap.is_ok()) {
                Offer::Full => {}
                other => return other,
            }
            // Any of its members may make room, and none tells.
            std::thread::sleep(nap.unwrap_or_default().min(SHORT_NAP));
        }
    }

    /// The strand, when all who are on it and get this message have room, or no longer wait. Whether the pool stops
    /// instead.
    #[cold]
    fn strand_with_room<'a>(
        &'a self,
        stored: &Stored,
        passed: &[u64],
        waiting: &mut Option<Waiting<'a>>,
    ) -> (MutexGuard<'a, super::Strand>, bool) {
        loop {
            if waiting.is_some() && self.shared.must_stop() {
                return (self.strand(), true);
            }
            let strand = self.strand();
            let mut full = None;
            let mut look = |channel: &Arc<Channel>| {
                let members = channel.snapshot();
                let on_strand = |one: &&Arc<Subscriber>| one.gets_on_strand(passed);
                let found = members.iter().filter(on_strand).find(|one| one.has_no_room());
                full = full.take().or(found.map(Arc::clone));
            };
            look(stored.key.channel());
            self.router.with_patterns(&stored.key, &mut look);
            let Some(full) = full else { return (strand, false) };
            drop(strand);
            match waiting.get_or_insert_with(|| Waiting::new(self, &full)).nap(&full) {
                Ok(nap) => full.wait_for_room(nap),
                Err(over) => return (self.strand(), over == Over::Pool),
            }
        }
    }
}

/// A publisher that waits for room. While it waits for that of a handler, a drain waits for it: it is to be dropped when
/// the message has been offered, and not under a lock.
pub(super) struct Waiting<'a> {
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
pub(super) enum Over {
    /// The mailbox's time is over, or nobody could make room: it may be offered once more.
    Time,
    /// The pool stops: what is accepted now would not be handled.
    Pool,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(core: &'a Core, subscriber: &Subscriber) -> Self {
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
    pub(super) fn nap(&mut self, subscriber: &Subscriber) -> core::result::Result<Duration, Over> {
        /// Hosts come and go.
        const ABSENT: u8 = 4;
        let is_pulled = subscriber.rules.execution == Execution::Pull;
        self.count(!is_pulled);
        if self.core.shared.must_stop() {
            // The end of the pool has not waited for it: it stays counted, for the report.
            self.counts = false;
            return Err(Over::Pool);
        }
        self.absent = match is_pulled || self.core.shared.has_servers() {
            true => 0,
            false => self.absent + 1,
        };
        let left =
            self.deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() || self.absent >= ABSENT {
            return Err(Over::Time);
        }
        let nap = left.min(self.nap);
        self.nap = (self.nap * 2).min(NAP);
        Ok(nap)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count(false);
    }
}

/// Waits for room in a mailbox that blocks, and offers the message again.
#[cold]
fn wait_for_room(waiting: &mut Waiting<'_>, subscriber: &Subscriber, stored: &Stored) -> Offer {
    // Who takes messages tells; that one has begun, which makes room, too, nobody does.
    loop {
        let nap = waiting.nap(subscriber);
        let mut mail = subscriber.mail();
        if nap == Err(Over::Pool) {
            return mail.refuse();
        }
        let begun = subscriber.begun.load(Acquire);
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
