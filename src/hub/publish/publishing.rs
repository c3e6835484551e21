//! Publishing: from a key and a payload to what every mailbox does with them.

use crate::error::receipt::{Receipt, Told};
use crate::error::{Error, Result};
use crate::hub::channel::route::{Channel, Snapshot, channel_of, shared_channel_of};
use crate::hub::core::{Core, Strand, Work};
use crate::hub::group::dispatch::offer_to_group;
use crate::hub::group::members::SharedGroup;
use crate::hub::handle::Hub;
use crate::hub::keys::key::{self, Key};
use crate::hub::mailbox::mail::Offer;
use crate::hub::mailbox::rules::{Execution, Overflow};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::{Draft, Headers, Payload, Priority, Stored};
use crate::hub::naps::NAP;
use crate::hub::naps::SHORT_NAP;
use crate::hub::outcome::{Handled, Outcome};
use crate::hub::publish::enqueue::{
    bury_offered, count, enqueue, gets_on_strand, has_no_room, nap_for_room, refused,
};
use crate::hub::publish::settings::{IfFull, Mode, PublishOptions};
use crate::hub::publish::waiting::{WaitOver, WaitingPublisher};
use crate::hub::run::depth::is_in_handler;
use crate::hub::run::inline::{Inline, deliver_inline};
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::hub::system::figures::count_key;
use crate::hub::system::tell::lost_by;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use core::time::Duration;
use std::sync::Arc;
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
        if self.record().is_reserved() {
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
    pub(in crate::hub) hub: &'a Hub,
    pub(in crate::hub) key: K,
    pub(in crate::hub) payload: Payload,
    pub(in crate::hub) options: PublishOptions,
}

impl<K: ToKey> Publication<'_, K> {
    /// Its headers; none unless set.
    pub fn headers(mut self, headers: Headers) -> Self {
        self.options.headers = headers;
        self
    }

    /// Its priority, for mailboxes that regard it.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.priority = priority;
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
        self.options.if_full = Mode::NoWait;
        self
    }

    /// What is done where mailboxes are full.
    pub(crate) fn if_full(mut self, mode: Mode) -> Self {
        self.options.if_full = mode;
        self
    }

    /// Publishes it, and tells the function what becomes of it, when all who got it have dealt with it. The function
    /// is called on any thread, maybe under locks of the hub: it neither waits nor publishes. If the message
    /// `comes_again`, it becomes no dead letter where a handler fails at it. Answers the receipt also where mailboxes
    /// have refused it.
    ///
    /// # Errors
    /// As [`Hub::publish`], but for `MailboxFull`: then the function is not called.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for the bridge"))]
    pub(crate) fn publish_tracked(
        self,
        comes_again: bool,
        then: impl FnOnce(Handled, &str) + Send + 'static,
    ) -> Result<Receipt> {
        let core = &self.hub.core;
        core.check_open()?;
        check_size(core, self.payload.len())?;
        let mut payload = self.payload;
        self.key.with_key(self.hub, |key| {
            let outcome = Outcome::new(comes_again, then);
            publish_tracked(core, key, &mut payload, &self.options, outcome)
        })
    }

    /// Publishes it.
    ///
    /// # Errors
    /// As [`Hub::publish`].
    pub fn publish(self) -> Result<Receipt> {
        let mut payload = self.payload;
        self.hub.publish_with(&self.key, &mut payload, &self.options)
    }
}

impl Hub {
    /// Publishes a message. It is stored once, shared by all who get it; a payload of up to
    /// [`INLINE`](crate::hub::INLINE) bytes is not even allocated. Any thread, any handler.
    ///
    /// It waits while a mailbox that [lets publishers wait](Overflow::Block) is full, which is the default of handlers'
    /// mailboxes; but not on a thread of any pool or in a handler, nor where the hub's pool has no threads and nobody drives
    /// it: there it fails instead, see [`Publication::no_wait`]. A publisher that holds a lock which the handler takes
    /// waits for ever. It also waits if a history on disk has no room: by default it writes there then, or
    /// waits for up to 10 seconds ([`WhenFull`](crate::hub::history::WhenFull)).
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
        self.publish_with(&key, &mut payload.into(), &PublishOptions::default())
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
            let options = PublishOptions { if_full, ..PublishOptions::default() };
            let (told, _, end) = publish_batch(&self.core, key, payloads, &options, || Ok(()));
            end.and_then(|()| to_result(&self.core, told))
        })
    }

    /// Waits for up to `timeout` until nobody who gets messages with the key would have a publisher wait. False: it
    /// took longer, or the pool has ended. [`Error::MailboxFull`]: the publisher, which has `waited` for so long before,
    /// has waited for as long as a mailbox lets it.
    pub(crate) fn wait_for_room(
        &self,
        key: &Key,
        timeout: Duration,
        waited: Duration,
    ) -> Result<bool> {
        self.core.check_open()?;
        if !may_wait(&self.core, Mode::Wait) {
            return Ok(first_full(&self.core, key).is_none());
        }
        let begun = Instant::now();
        let deadline = begun.checked_add(timeout);
        while let Some(full) = first_full(&self.core, key) {
            let stops = self.core.shared.must_stop();
            let patience = match full.rules.overflow {
                Overflow::Block(time) => {
                    time.saturating_sub(waited.saturating_add(begun.elapsed()))
                }
                _ => Duration::MAX,
            };
            if patience.is_zero() {
                let refused = Some(refused(&full));
                return Told { refused, ..Told::default() }.result().map(|_| false);
            }
            let left =
                deadline.map_or(NAP, |at| at.saturating_duration_since(Instant::now()).min(NAP));
            if left.is_zero() || stops {
                return Ok(false);
            }
            nap_for_room(&full, left.min(SHORT_NAP).min(patience));
        }
        Ok(true)
    }

    /// A message with headers or a priority, say.
    pub fn message<K: ToKey>(&self, key: K) -> Publication<'_, K> {
        Publication { hub: self, key, payload: Payload::EMPTY, options: PublishOptions::default() }
    }

    /// Refuses a payload that is too large.
    pub(crate) fn check_payload_size(&self, size: usize) -> Result<()> {
        check_size(&self.core, size)
    }

    #[inline]
    fn publish_with(
        &self,
        key: &impl ToKey,
        payload: &mut Payload,
        options: &PublishOptions,
    ) -> Result<Receipt> {
        self.core.check_open()?;
        check_size(&self.core, payload.len())?;
        key.with_key(self, |key| publish_with(&self.core, key, payload, options))
    }
}

/// Whether this thread waits for room. Whoever does must not be one who makes it; nor a member of another pool, whose
/// members may wait for this one.
pub(in crate::hub) fn may_wait(_core: &Core, if_full: Mode) -> bool {
    if_full == Mode::Wait && !crate::thread_state::is_member() && !is_in_handler()
}

/// Refuses a publication that is only tried, if somebody would have it wait.
#[inline]
pub(in crate::hub) fn check_room(core: &Core, key: &Key, options: &PublishOptions) -> Result<()> {
    if options.if_full != Mode::Try || all_have_room(core, key) {
        return Ok(());
    }
    if first_full(core, key).is_none() { Ok(()) } else { Err(Error::TimedOut) }
}

/// Whether all who get messages with this key are in the ring of its channel, and have room; the quick look.
fn all_have_room(core: &Core, key: &Key) -> bool {
    let channel = channel_of(key);
    if !may_push(core, channel) {
        return false;
    }
    let mut state = channel.lock();
    state.all_in_ring() > 0 && state.ring.has_room()
}

/// Of those who get messages with this key, one that would have a publisher wait; of a group, if all members
/// would. Filters are not asked.
fn first_full(core: &Core, key: &Key) -> Option<Arc<Subscriber>> {
    let mut channels: Vec<Arc<Channel>> = vec![shared_channel_of(key)];
    core.router.with_patterns(channel_of(key), |channel| channels.push(Arc::clone(channel)));
    let members: Vec<_> = channels.iter().flat_map(|channel| channel.members()).collect();
    let is_full = |one: &&Arc<Subscriber>| has_no_room(one);
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
pub(in crate::hub) fn check_size(core: &Core, size: usize) -> Result<()> {
    match size <= core.max_payload {
        true => Ok(()),
        false => {
            let allowed = format!("up to {} bytes", core.max_payload);
            Err(Error::invalid("the size of the payload", size, allowed))
        }
    }
}

/// Waits for room in histories that want it.
#[inline]
pub(in crate::hub) fn admit(core: &Core, key: &Key) -> Result<()> {
    let takers = core.histories.takers(key);
    let may_wait = || !(core.is_inside() || is_in_handler());
    if takers.is_nobody() { Ok(()) } else { core.histories.admit(takers, may_wait()) }
}

/// Publishes what has been checked, but for what depends on who publishes. (Not a part of each user's function, which
/// it is longer than: what is called from function to function is written to memory, and read.)
fn publish_with(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
) -> Result<Receipt> {
    check_room(core, key, options)?;
    admit(core, key)?;
    publish(core, key, payload, options)
}

/// Publishes what has been checked by the long way, where that is seldom done.
pub(in crate::hub) fn publish_seldom(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
) -> Told {
    count_key(core, key, 1);
    publish_anyhow(core, key, payload, options, None)
}

/// Publishes what has been checked.
#[inline(always)]
pub(in crate::hub) fn publish(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
) -> Result<Receipt> {
    let mut other = None;
    match publish_lean(core, key, payload, options, &mut other) {
        (_, 0) => to_result(core, other.unwrap_or_default()),
        (sequence, members) => Ok(Receipt::of_all(sequence, members)),
    }
}

/// What the publisher is told.
pub(in crate::hub) fn to_result(core: &Core, told: Told) -> Result<Receipt> {
    if comes_too_late(core, &told) { Err(Error::ShutDown) } else { told.result() }
}

/// Whether nobody has got a message since the pool has ended meanwhile, and no history has it either.
fn comes_too_late(core: &Core, told: &Told) -> bool {
    told.receipt.matched == 0 && !told.recorded && core.is_closed()
}

/// The same. Answers the message's number, and how many get it; none: what became of it is in `other`.
// Two numbers are registers. A receipt was written to memory in pieces, and read whole for the caller's, at each
// step: for that the processor waits until all stores before it are done, those to the lines of the ring among
// them. (As one function with `publish` it is slower by a tenth.)
#[inline(always)]
fn publish_lean(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
    other: &mut Option<Told>,
) -> (u64, u64) {
    let is_recorded = !core.histories.takers(key).is_nobody();
    // A replay sees what was recorded before it subscribed, so whoever records looks for it after that. It is
    // asked for before anything is counted: a count waits for its own line first.
    let channel = channel_of(key);
    let ahead = if is_recorded { None } else { channel.ahead() };
    count_key(core, key, 1);
    if !is_recorded && ahead.is_none() {
        let (sequence, members) = publish_in_ring(core, (key, channel), payload, options);
        if members > 0 {
            return (sequence, members);
        }
    }
    *other = Some(publish_anyhow(core, key, payload, options, ahead.as_ref()));
    (0, 0)
}

/// The short way: when nobody records it, and all who get it are in the ring of the key's own channel, and have
/// room. Answers the message's number, and how many get it; none: it was not published.
#[inline(always)] // A part of `publish`.
fn publish_in_ring(
    core: &Core,
    (key, channel): (&Key, &Channel),
    payload: &mut Payload,
    options: &PublishOptions,
) -> (u64, u64) {
    if !may_push(core, channel) {
        return (0, 0);
    }
    let time = crate::sys::clock::unix_nanos();
    let mut state = channel.lock();
    let members = state.all_in_ring();
    if members == 0 || !state.ring.has_room() {
        return (0, 0);
    }
    let sequence = next_sequence(core);
    let PublishOptions { ref headers, priority, .. } = *options;
    state.ring.push(core, Draft { sequence, time, key, headers, payload, priority });
    let call = state.ring.call(core);
    drop(state);
    core.call(call);
    (sequence, members)
}

#[inline(never)]
fn publish_anyhow(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
    ahead: Option<&Snapshot>,
) -> Told {
    let takers = core.histories.takers(key);
    if takers.is_nobody() {
        let stored = draft(core, key, payload, options).into_stored();
        return publish_stored(core, &stored, options, ahead);
    }
    let make = || draft(core, key, payload, options).into_stored();
    let stored = core.histories.record(takers, make);
    let Stored { sequence, time, payload: mut recorded, priority, .. } = stored;
    let payload = &mut recorded;
    let mut draft =
        Some(Draft { sequence, time, key, headers: &options.headers, payload, priority });
    let channel = channel_of(key);
    if may_push(core, channel) {
        let members = channel.push_one(core, &mut draft);
        if members > 0 {
            let receipt = Receipt::of_all(sequence, members);
            return Told { receipt, ..Told::default() };
        }
    }
    let stored = draft.expect("it was not pushed").into_stored();
    Told { recorded: true, ..publish_stored(core, &stored, options, None) }
}

#[inline]
fn next_sequence(core: &Core) -> u64 {
    core.sequence.fetch_add(1, Relaxed) + 1
}

#[inline]
pub(in crate::hub) fn draft<'a>(
    core: &Core,
    key: &'a Key,
    payload: &'a mut Payload,
    options: &'a PublishOptions,
) -> Draft<'a> {
    Draft {
        sequence: next_sequence(core),
        time: crate::sys::clock::unix_nanos(),
        key,
        headers: &options.headers,
        payload,
        priority: options.priority,
    }
}

/// Publishes several, each of which is `permit`ted first. Answers the sum of the receipts, how many were
/// published, and why not more.
pub(in crate::hub) fn publish_batch<P: Into<Payload>>(
    core: &Core,
    key: &Key,
    payloads: impl IntoIterator<Item = P>,
    options: &PublishOptions,
    mut permit: impl FnMut() -> Result<()>,
) -> (Told, u64, Result<()>) {
    let (mut sum, mut published) = (Told::default(), 0);
    let mut payloads = payloads.into_iter();
    if !core.histories.takers(key).is_nobody() {
        // Each has its number from the history that records it.
        for payload in payloads {
            let mut payload = payload.into();
            let end = check_size(core, payload.len()).and_then(|()| permit());
            if let Err(error) = end.and_then(|()| admit(core, key)) {
                return (sum, published, Err(error));
            }
            let told = publish_seldom(core, key, &mut payload, options);
            if comes_too_late(core, &told) {
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
            end = check_size(core, place.len()).and_then(|()| permit());
            if end.is_err() {
                break;
            }
            count += 1;
        }
        let done = publish_chunk(core, key, &mut chunk[..count], options, &mut sum);
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
    core: &Core,
    key: &Key,
    chunk: &mut [Payload],
    options: &PublishOptions,
    sum: &mut Told,
) -> usize {
    let count = chunk.len();
    if count == 0 {
        return 0;
    }
    count_key(core, key, count as u64);
    let time = crate::sys::clock::unix_nanos();
    let mut left = count;
    let mut sequence = core.sequence.fetch_add(left as u64, Relaxed);
    let last = sequence + left as u64;
    let mut messages = chunk.iter_mut().map(|payload| {
        sequence += 1;
        let PublishOptions { ref headers, priority, .. } = *options;
        Draft { sequence, time, key, headers, payload, priority }
    });
    let channel = channel_of(key);
    while left > 0 {
        let (pushed, members) = match may_push(core, channel) {
            true => channel.push_shared(core, &mut messages, left),
            false => (0, 0),
        };
        if pushed > 0 {
            left -= pushed;
            sum.receipt.add(Receipt::of_all(last - left as u64, pushed as u64 * members));
        } else if let Some(draft) = messages.next() {
            let told = publish_stored(core, &draft.into_stored(), options, None);
            if comes_too_late(core, &told) {
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
fn may_push(core: &Core, channel: &Channel) -> bool {
    channel.is_shared() && !core.router.has_listeners(channel)
}

/// The way of messages that somebody is told the end of: if it is published, also where mailboxes have refused it.
// It is recorded without who is told: what a history keeps has not ended.
pub(in crate::hub) fn publish_tracked(
    core: &Core,
    key: &Key,
    payload: &mut Payload,
    options: &PublishOptions,
    outcome: Outcome,
) -> Result<Receipt> {
    let admitted = check_room(core, key, options).and_then(|()| admit(core, key));
    if let Err(error) = admitted {
        outcome.forget();
        return Err(error);
    }
    count_key(core, key, 1);
    core.begin_to_track();
    let takers = core.histories.takers(key);
    let mut make = || draft(core, key, payload, options).into_stored();
    let recorded = !takers.is_nobody();
    let mut stored = if recorded { core.histories.record(takers, make) } else { make() };
    stored.headers = options.headers.tracked(outcome);
    let told = Told { recorded, ..publish_stored(core, &stored, options, None) };
    if told.again || comes_too_late(core, &told) {
        stored.forget();
        return Err(if told.again { Error::TimedOut } else { Error::ShutDown });
    }
    if told.receipt.rejected > 0 || told.receipt.matched == 0 {
        stored.spoil(Handled::Lost);
    }
    stored.is_published(told.receipt.enqueued);
    Ok(told.receipt)
}

/// The long way: whoever gets it. `ahead` is what the key's channel has answered by that name, if it was asked.
fn publish_stored(
    core: &Core,
    stored: &Stored,
    options: &PublishOptions,
    mut ahead: Option<&Snapshot>,
) -> Told {
    let key = &stored.key;
    let mut told = Told::new(stored.sequence);
    let may_wait = may_wait(core, options.if_full);
    // What was recorded is not to be recorded twice.
    let tries = options.if_full == Mode::Try && core.histories.takers(key).is_nobody();
    let mut on_strand = false;
    // Those on the strand whose filters it has passed.
    let mut passed = Vec::new();
    // Groups that have got it.
    let mut groups = Vec::new();
    let mut deliver = |channel: &Channel| {
        if told.again {
            return;
        }
        let shared = channel.is_shared();
        let tries_ring = tries && told.receipt.matched == 0;
        // The key's own channel is the first.
        let ahead = ahead.take().filter(|_| !shared);
        let loaded = match shared {
            true => channel.offer_shared(core, stored, may_wait, tries_ring, &mut told),
            false => ahead.is_none().then(|| channel.snapshot()),
        };
        for subscriber in ahead.or(loaded.as_ref()).into_iter().flat_map(|own| own.iter()) {
            if told.again {
                return;
            }
            if subscriber.policy().is_some_and(|policy| !policy.passes(stored)) {
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
                    let mut offer = offer_to_group(group, core, stored, may_wait || answers);
                    if offer == Offer::Full && answers {
                        told.again = true;
                        return;
                    }
                    if offer == Offer::Full {
                        offer = wait_for_group(core, subscriber, group, stored);
                    }
                    count(&mut told, offer, || refused(subscriber));
                }
                continue;
            }
            match subscriber.rules.execution {
                Execution::Strand if subscriber.policy().is_some_and(FailurePolicy::has_filter) => {
                    on_strand = true;
                    passed.push(subscriber.id());
                }
                Execution::Strand => on_strand = true,
                _ => {
                    let offer = offer(core, subscriber, stored, if_full);
                    if offer == Offer::Full && answers {
                        told.again = true;
                        return;
                    }
                    count(&mut told, offer, || refused(subscriber));
                }
            }
        }
    };
    let own = channel_of(key);
    deliver(own);
    core.router.with_patterns(own, |channel| deliver(channel));
    if on_strand && !told.again {
        offer_to_strand(core, stored, &passed, may_wait, &mut told);
    }
    told
}

/// Offers the message to all subscriptions that are on the strand, at once: so that any two messages
/// are in the same order for all of them.
#[cold]
fn offer_to_strand(core: &Core, stored: &Stored, passed: &[u64], may_wait: bool, told: &mut Told) {
    let (mut schedule, mut dead) = (false, Vec::new());
    // It goes last, when the messages are in the list.
    let mut waiting = None;
    let (mut strand, stops) = match may_wait {
        true => strand_with_room(core, stored, passed, &mut waiting),
        false => (core.strand(), false),
    };
    let mut deliver = |channel: &Channel| {
        for subscriber in channel.snapshot().iter() {
            if !gets_on_strand(subscriber, passed) {
                continue;
            }
            let mut mail = subscriber.mail();
            // Acquire: pairs with the Release where messages begin.
            let begun = subscriber.progress.begun.load(Acquire);
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
                lost_by(subscriber, core);
            }
            count(told, offer, || refused(subscriber));
        }
    };
    let own = channel_of(&stored.key);
    deliver(own);
    core.router.with_patterns(own, |channel| deliver(channel));
    drop(strand);
    if schedule {
        core.call(core.ready.push(Work::Strand));
    }
    dead.iter().for_each(|subscriber| bury_offered(core, subscriber, stored));
}

/// Waits for room in a group, and offers the message again.
#[cold]
fn wait_for_group(
    core: &Core,
    member: &Arc<Subscriber>,
    group: &Arc<SharedGroup<Subscriber>>,
    stored: &Stored,
) -> Offer {
    let mut waiting = WaitingPublisher::new(core, member);
    loop {
        let nap = waiting.nap(member);
        if nap == Err(WaitOver::Pool) {
            return group.refuse();
        }
        match offer_to_group(group, core, stored, nap.is_ok()) {
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
    core: &'a Core,
    stored: &Stored,
    passed: &[u64],
    waiting: &mut Option<WaitingPublisher<'a>>,
) -> (MutexGuard<'a, Strand>, bool) {
    loop {
        if waiting.is_some() && core.shared.must_stop() {
            return (core.strand(), true);
        }
        let strand = core.strand();
        let mut full = None;
        let mut look = |channel: &Channel| {
            let members = channel.snapshot();
            let on_strand = |one: &&Arc<Subscriber>| gets_on_strand(one, passed);
            let found = members.iter().filter(on_strand).find(|one| has_no_room(one));
            full = full.take().or(found.map(Arc::clone));
        };
        let own = channel_of(&stored.key);
        look(own);
        core.router.with_patterns(own, |channel| look(channel));
        let Some(full) = full else { return (strand, false) };
        drop(strand);
        match waiting.get_or_insert_with(|| WaitingPublisher::new(core, &full)).nap(&full) {
            Ok(nap) => nap_for_room(&full, nap),
            Err(over) => return (core.strand(), over == WaitOver::Pool),
        }
    }
}

/// Offers the message to one subscription.
pub(in crate::hub) fn offer(
    core: &Core,
    subscriber: &Arc<Subscriber>,
    stored: &Stored,
    if_full: IfFull,
) -> Offer {
    if subscriber.rules.execution == Execution::Inline {
        return match deliver_inline(subscriber, core, stored) {
            Inline::Delivered => Offer::Replaced,
            Inline::Closed => Offer::Closed,
            Inline::TooDeep => {
                lost_by(subscriber, core);
                Offer::Rejected
            }
            Inline::Dead => {
                bury_offered(core, subscriber, stored);
                Offer::Dead
            }
        };
    }
    enqueue(core, subscriber, stored, if_full)
}
