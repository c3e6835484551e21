//! Dead letters: messages that a subscription could not deal with, kept with the reason.
//!
//! They are a bounded list of the hub: when it is full the oldest one is forgotten for the newest, and
//! counted. So what they cost is bounded, and what becomes of each is known:
//!
//! buried = held + forgotten + removed

use super::key::{Pattern, is_reserved};
use super::mailbox::{Offer, Phase};
use super::message::Stored;
use super::notice::Burst;
use super::subscribe::{Execution, Subscriber};
use super::{Core, Hub, Work};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::Acquire;
use crate::sync::{Mutex, MutexGuard};
use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// Why a message has become a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeadReason {
    /// The handler has failed at it for good.
    Failed,
    /// The handler has panicked at it for good.
    Panicked,
    /// The subscription was suspended.
    Suspended,
}

/// A message that a subscription could not deal with.
#[derive(Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub(super) number: u64,
    pub(super) stored: Stored,
    pub(super) reason: DeadReason,
    pub(super) failure: Option<Arc<str>>,
    pub(super) attempts: u32,
    pub(super) subscription: u64,
    pub(super) pattern: Arc<str>,
    /// Nanoseconds since 1970.
    pub(super) died: u64,
    pub(super) origin: Origin,
}

/// The subscription, or the replay, that a letter was for.
#[derive(Clone)]
pub(super) struct Origin(Weak<dyn Recipient>);

/// Whoever dead letters are delivered to again.
pub(super) trait Recipient: Send + Sync {
    /// Takes one, which is read only.
    fn redeliver(self: Arc<Self>, core: &Core, stored: &Stored) -> Result<(), Unfit>;
}

/// Why a dead letter stays one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unfit {
    /// It is not taken now.
    Refused,
    /// Whom it was for has ended.
    Orphaned,
}

impl Origin {
    pub(super) fn of<R: Recipient + 'static>(recipient: &Arc<R>) -> Self {
        let recipient: Weak<R> = Arc::downgrade(recipient);
        Self(recipient)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for Origin {}

impl DeadLetter {
    /// Its number: 1 for the hub's first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The message, as it was published.
    pub fn message(&self) -> &Stored {
        &self.stored
    }

    /// Why it is dead.
    pub fn reason(&self) -> DeadReason {
        self.reason
    }

    /// What the handler said at its last attempt, or panicked with.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// How often the handler was called with it: 0 if it came to a suspended subscription.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The number of the subscription that it was for.
    pub fn subscription(&self) -> u64 {
        self.subscription
    }

    /// The pattern of that subscription.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// When it died, by the clock of the system, which may be set back.
    pub fn died(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.died)
    }
}

impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("number", &self.number)
            .field("message", &self.stored)
            .field("reason", &self.reason)
            .field("failure", &self.failure())
            .field("attempts", &self.attempts)
            .field("subscription", &self.subscription)
            .finish_non_exhaustive()
    }
}

/// Which dead letters: those that all of its conditions hold for. Default: all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    key: Option<Pattern>,
    subscription: Option<u64>,
    reason: Option<DeadReason>,
    numbers: Option<(u64, u64)>,
    since: Option<u64>,
    limit: Option<usize>,
}

impl DeadFilter {
    /// All.
    pub fn all() -> Self {
        Self::default()
    }

    /// Whose key this pattern matches.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern.
    pub fn key(mut self, pattern: &str) -> Result<Self> {
        self.key = Some(Pattern::new(pattern)?);
        Ok(self)
    }

    /// That were for this subscription.
    #[must_use]
    pub fn subscription(mut self, id: u64) -> Self {
        self.subscription = Some(id);
        self
    }

    /// That died of this.
    #[must_use]
    pub fn reason(mut self, reason: DeadReason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// With these numbers, the ends included.
    #[must_use]
    pub fn numbers(mut self, first: u64, last: u64) -> Self {
        self.numbers = Some((first, last));
        self
    }

    /// That died at this time or later.
    #[must_use]
    pub fn since(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.since = Some(since.as_nanos().try_into().unwrap_or(u64::MAX));
        self
    }

    /// At most so many, the oldest.
    #[must_use]
    pub fn limit(mut self, most: usize) -> Self {
        self.limit = Some(most);
        self
    }

    fn passes(&self, letter: &DeadLetter) -> bool {
        let key = letter.stored.key.as_str();
        self.key.as_ref().is_none_or(|pattern| pattern.matches(key))
            && self.subscription.is_none_or(|id| letter.subscription == id)
            && self.reason.is_none_or(|reason| letter.reason == reason)
            && self.numbers.is_none_or(|(a, b)| (a..=b).contains(&letter.number))
            && self.since.is_none_or(|since| letter.died >= since)
    }
}

/// How many dead letters there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DeadStats {
    /// Messages that have become dead letters.
    pub buried: u64,
    /// Of these, those that are kept now.
    pub held: u64,
    /// Those that were forgotten for newer ones.
    pub forgotten: u64,
    /// Those that were taken out, to be delivered again or not.
    pub removed: u64,
}

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
    /// [`Error::ShutDown`] and [`Error::Forked`].
    pub fn redeliver(&self, filter: &DeadFilter) -> Result<Redelivered> {
        self.core.check_open()?;
        let mut result = Redelivered::default();
        for letter in self.core.dead.remove(filter) {
            let taken = match letter.origin.0.upgrade() {
                Some(recipient) => recipient.redeliver(&self.core, &letter.stored),
                None => Err(Unfit::Orphaned),
            };
            match taken {
                Ok(()) => result.enqueued += 1,
                Err(Unfit::Refused) => result.refused += 1,
                Err(Unfit::Orphaned) => result.orphaned += 1,
            }
            if taken.is_err() {
                self.core.bury_again(letter);
            }
        }
        Ok(result)
    }
}

impl Core {
    fn bury_again(&self, letter: DeadLetter) {
        if self.dead.bury(letter) {
            self.lost(&self.dead);
        }
    }
}

impl Recipient for Subscriber {
    fn redeliver(self: Arc<Self>, core: &Core, stored: &Stored) -> Result<(), Unfit> {
        let subscriber = &self;
        let on_strand = match subscriber.rules.execution {
            Execution::Inline => return Err(Unfit::Refused),
            execution => execution == Execution::Strand,
        };
        let mut strand = on_strand.then(|| core.strand());
        // What it has in its channel's ring is older.
        let mut ring = subscriber.rules.shared.then(|| subscriber.channel().lock());
        if let Some(state) = &mut ring {
            subscriber.channel().part(state, subscriber);
        }
        let mut mail = subscriber.mail();
        // Acquire: as in `Core::offer`.
        let begun = subscriber.begun.load(Acquire);
        let Some(offer) = mail.offer_again(&subscriber.rules, begun, stored) else {
            return Err(match mail.phase() {
                Phase::Open | Phase::Suspended => Unfit::Refused,
                _ => Unfit::Orphaned,
            });
        };
        drop(mail);
        drop(ring);
        let work = match (offer, &mut strand) {
            (Offer::Enqueued { number, .. }, Some(strand)) => {
                strand.append(subscriber, number).then_some(Work::Strand)
            }
            (Offer::Enqueued { schedule: true, .. }, None) => {
                Some(Work::Mailbox(Arc::clone(subscriber)))
            }
            _ => None,
        };
        drop(strand);
        if let Some(work) = work {
            core.call(core.ready.push(work));
        }
        if let Some(puller) = subscriber.puller() {
            puller.notify();
        }
        Ok(())
    }
}

/// The most dead letters that a hub can keep.
const MAX_DEAD: usize = 10_000_000;

/// See the head of the file.
pub(super) struct DeadLetters {
    most: usize,
    graves: Mutex<Graves>,
    pub(super) burst: Burst,
}

#[derive(Default)]
struct Graves {
    list: VecDeque<DeadLetter>,
    /// Of those forgotten, the ones that made room for newer ones.
    pushed_out: u64,
    stats: DeadStats,
}

impl DeadLetters {
    /// Of which at most so many are kept, 0 to 10 000 000.
    pub(super) fn new(most: usize) -> Result<Self> {
        if most > MAX_DEAD {
            return Err(Error::invalid("dead_letters", most, format!("up to {MAX_DEAD}")));
        }
        Ok(Self { most, graves: Mutex::default(), burst: Burst::default() })
    }

    /// Keeps a letter, and gives it its number. Messages of the hub itself are counted and not kept, so
    /// that a subscriber to them who fails cannot push out those of users. True: another one was forgotten
    /// for it.
    pub(super) fn bury(&self, mut letter: DeadLetter) -> bool {
        let kept = self.most > 0 && !is_reserved(letter.stored.key.as_str());
        let mut graves = self.lock();
        graves.stats.buried += 1;
        letter.number = graves.stats.buried;
        let mut forgotten = Some(letter);
        if kept {
            let full = graves.list.len() >= self.most;
            let oldest = if full { graves.list.pop_front() } else { None };
            graves.list.extend(core::mem::replace(&mut forgotten, oldest));
        }
        let pushed_out = kept && forgotten.is_some();
        graves.pushed_out += u64::from(pushed_out);
        graves.stats.forgotten += u64::from(forgotten.is_some());
        // What is forgotten is dropped outside the lock.
        drop(graves);
        pushed_out
    }

    /// Clones of those that the filter names, the oldest first.
    pub(super) fn query(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        let graves = self.lock();
        let found = graves.list.iter().filter(|letter| filter.passes(letter));
        found.take(filter.limit.unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Takes those out that the filter names, the oldest first.
    pub(super) fn remove(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        let mut graves = self.lock();
        let mut left = filter.limit.unwrap_or(usize::MAX);
        let (mut removed, mut kept) = (Vec::new(), VecDeque::new());
        for letter in core::mem::take(&mut graves.list) {
            if left > 0 && filter.passes(&letter) {
                left -= 1;
                removed.push(letter);
            } else {
                kept.push_back(letter);
            }
        }
        graves.list = kept;
        graves.stats.removed += removed.len() as u64;
        removed
    }

    pub(super) fn pushed_out(&self) -> u64 {
        self.lock().pushed_out
    }

    pub(super) fn stats(&self) -> DeadStats {
        let graves = self.lock();
        DeadStats { held: graves.list.len() as u64, ..graves.stats }
    }

    fn lock(&self) -> MutexGuard<'_, Graves> {
        self.graves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::key::Key;
    use super::super::message::{Headers, Payload, Priority};
    use super::*;
    use proptest::prelude::*;

    fn letter(key: &str, reason: DeadReason, subscription: u64, died: u64) -> DeadLetter {
        let stored = Stored {
            sequence: died,
            time: died,
            key: Key::detached(key),
            headers: Headers::NONE,
            payload: Payload::EMPTY,
            priority: Priority::Normal,
        };
        let pattern = Arc::from(">");
        let failure = Some("no".into());
        let origin = Origin(Weak::<Subscriber>::new());
        DeadLetter {
            number: 0,
            stored,
            reason,
            failure,
            attempts: 1,
            subscription,
            pattern,
            died,
            origin,
        }
    }

    fn reason() -> impl Strategy<Value = DeadReason> {
        prop_oneof![Just(DeadReason::Failed), Just(DeadReason::Suspended)]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Bury(bool, DeadReason, u64),
        Query(DeadFilter),
        Remove(DeadFilter),
    }

    fn filter() -> impl Strategy<Value = DeadFilter> {
        let key = prop::option::of(prop_oneof![Just("a.*"), Just("b"), Just(">")]);
        let key = key.prop_map(|text| text.map(|text| Pattern::new(text).unwrap()));
        let numbers = prop::option::of((0u64..20, 0u64..20));
        let parts = (key, prop::option::of(0u64..3), prop::option::of(reason()), numbers);
        (parts, prop::option::of(0u64..20), prop::option::of(0usize..4)).prop_map(
            |((key, subscription, reason, numbers), since, limit)| DeadFilter {
                key,
                subscription,
                reason,
                numbers,
                since,
                limit,
            },
        )
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<bool>(), reason(), 0u64..3).prop_map(|(a, r, s)| Step::Bury(a, r, s)),
            1 => filter().prop_map(Step::Query),
            1 => filter().prop_map(Step::Remove),
        ]
    }

    proptest! {
        /// Goal: whatever is buried, asked for and taken, the answers are those of a plain list, the
        /// capacity is kept, and the counts balance. Method: that list beside it.
        #[test]
        fn agrees_with_a_list(most in 0usize..6, steps in prop::collection::vec(step(), 1..60)) {
            let dead = DeadLetters::new(most).unwrap();
            let mut list: Vec<DeadLetter> = Vec::new();
            let (mut buried, mut removed) = (0, 0);
            for step in steps {
                match step {
                    Step::Bury(first, reason, subscription) => {
                        let key = if first { "a.x" } else { "b" };
                        let mut letter = letter(key, reason, subscription, buried);
                        let _ = dead.bury(letter.clone());
                        buried += 1;
                        letter.number = buried;
                        list.push(letter);
                        list.drain(..list.len().saturating_sub(most));
                    }
                    Step::Query(filter) | Step::Remove(filter)
                        if filter.numbers.is_some_and(|(a, b)| a > b) =>
                    {
                        prop_assert_eq!(dead.query(&filter), []);
                    }
                    Step::Query(filter) => {
                        let mut found: Vec<_> =
                            list.iter().filter(|letter| filter.passes(letter)).cloned().collect();
                        found.truncate(filter.limit.unwrap_or(usize::MAX));
                        prop_assert_eq!(dead.query(&filter), found);
                    }
                    Step::Remove(filter) => {
                        let found = dead.query(&filter);
                        prop_assert_eq!(&dead.remove(&filter), &found);
                        list.retain(|letter| !found.contains(letter));
                        removed += found.len() as u64;
                    }
                }
                let stats = dead.stats();
                prop_assert_eq!(stats.held, list.len() as u64);
                prop_assert_eq!((stats.buried, stats.removed), (buried, removed));
                prop_assert_eq!(stats.buried, stats.held + stats.forgotten + stats.removed);
            }
        }
    }

    #[test]
    fn each_condition_of_a_filter_counts() {
        let mut one = letter("a.x", DeadReason::Panicked, 7, 40);
        one.number = 3;
        let time = |nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let table = [
            (DeadFilter::all(), true),
            (DeadFilter::all().key("a.*").unwrap(), true),
            (DeadFilter::all().key("b.*").unwrap(), false),
            (DeadFilter::all().subscription(7), true),
            (DeadFilter::all().subscription(8), false),
            (DeadFilter::all().reason(DeadReason::Panicked), true),
            (DeadFilter::all().reason(DeadReason::Failed), false),
            (DeadFilter::all().numbers(3, 3), true),
            (DeadFilter::all().numbers(4, 9), false),
            (DeadFilter::all().since(time(40)), true),
            (DeadFilter::all().since(time(41)), false),
            (DeadFilter::all().subscription(7).reason(DeadReason::Failed), false),
        ];
        for (filter, passes) in table {
            assert_eq!(filter.passes(&one), passes, "{filter:?}");
        }
    }

    #[test]
    fn the_hubs_own_messages_are_counted_and_not_kept() {
        let dead = DeadLetters::new(4).unwrap();
        let _ = dead.bury(letter("$SYS.x", DeadReason::Failed, 1, 1));
        let stats = dead.stats();
        assert_eq!((stats.buried, stats.held, stats.forgotten), (1, 0, 1));
        let error = DeadLetters::new(MAX_DEAD + 1).err().unwrap().to_string();
        assert_eq!(error, "dead_letters is 10000001, but must be up to 10000000");
    }
}
