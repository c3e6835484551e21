//! Dead letters: messages that a subscription could not deal with, kept with the reason.
//!
//! They are a bounded list of the hub: when it is full the oldest one is forgotten for the newest, and
//! counted. So what they cost is bounded, and what becomes of each is known:
//!
//! buried = held + forgotten + removed

use crate::error::{Error, Result};
use crate::hub::keys::key::{Pattern, is_reserved};
use crate::hub::message::Stored;
use crate::hub::system::notice::{Burst, Loses, Notice, Severity};
use crate::sync::{Mutex, MutexGuard};
use core::fmt;
use core::time::Duration;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

/// How many the live page may show.
pub(crate) const MOST_SHOWN: usize = 50;

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
    pub(in crate::hub) number: u64,
    pub(in crate::hub) stored: Stored,
    pub(in crate::hub) reason: DeadReason,
    pub(in crate::hub) failure: Option<Arc<str>>,
    pub(in crate::hub) attempts: u32,
    pub(in crate::hub) subscription: u64,
    pub(in crate::hub) pattern: Arc<str>,
    /// Nanoseconds since 1970.
    pub(in crate::hub) died: u64,
    pub(in crate::hub) origin: Origin,
}

/// Delivers a dead letter again to what it was for: a subscription or a replay, which it does not keep.
#[derive(Clone)]
pub(in crate::hub) struct Origin(Arc<Redeliver>);

type Redeliver = dyn Fn(&Stored) -> core::result::Result<(), Unfit> + Send + Sync;

/// Why a dead letter stays one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum Unfit {
    /// It is not taken now.
    Refused,
    /// Whom it was for has ended.
    Orphaned,
}

impl Origin {
    pub(in crate::hub) fn new(
        redeliver: impl Fn(&Stored) -> Result<(), Unfit> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(redeliver))
    }

    pub(in crate::hub) fn redeliver(&self, stored: &Stored) -> Result<(), Unfit> {
        (self.0)(stored)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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

/// The most dead letters that a hub can keep.
const MAX_DEAD: usize = 10_000_000;

/// See the head of the file.
pub(in crate::hub) struct DeadLetters {
    most: usize,
    graves: Mutex<Graves>,
    pub(in crate::hub) burst: Burst,
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
    pub(in crate::hub) fn new(most: usize) -> Result<Self> {
        if most > MAX_DEAD {
            return Err(Error::invalid("dead_letters", most, format!("up to {MAX_DEAD}")));
        }
        Ok(Self { most, graves: Mutex::default(), burst: Burst::default() })
    }

    /// Keeps a letter, and gives it its number. Messages of the hub itself are counted and not kept, so
    /// that a subscriber to them who fails cannot push out those of users. True: another one was forgotten
    /// for it.
    pub(in crate::hub) fn bury(&self, mut letter: DeadLetter) -> bool {
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
    pub(in crate::hub) fn query(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        let graves = self.lock();
        let found = graves.list.iter().filter(|letter| filter.passes(letter));
        found.take(filter.limit.unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Takes those out that the filter names, the oldest first.
    pub(in crate::hub) fn remove(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
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

    pub(in crate::hub) fn pushed_out(&self) -> u64 {
        self.lock().pushed_out
    }

    /// The newest, without what is in their messages; says how many there are.
    pub(in crate::hub) fn show(&self, to: &mut Vec<serde_json::Value>) -> usize {
        let graves = self.lock();
        let held = graves.list.len();
        let newest: Vec<DeadLetter> = graves.list.iter().rev().take(MOST_SHOWN).cloned().collect();
        drop(graves);
        to.extend(newest.iter().map(|letter| {
            json!({
                "number": letter.number, "key": letter.stored.key().as_str(), "pattern": letter.pattern(),
                "reason": format!("{:?}", letter.reason).to_lowercase(),
                "failure": letter.failure().map(|failure| failure.chars().take(200).collect::<String>()),
                "attempts": letter.attempts, "died": letter.died / 1_000_000,
            })
        }));
        held
    }

    pub(in crate::hub) fn stats(&self) -> DeadStats {
        let graves = self.lock();
        DeadStats { held: graves.list.len() as u64, ..graves.stats }
    }

    fn lock(&self) -> MutexGuard<'_, Graves> {
        self.graves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hub::keys::key::Key;
    use crate::hub::message::{Headers, Payload, Priority};
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
        let origin = Origin::new(|_| Err(Unfit::Orphaned));
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

impl Loses for DeadLetters {
    fn burst(&self) -> &Burst {
        &self.burst
    }

    fn losses(&self) -> u64 {
        self.pushed_out()
    }

    fn notice(&self, count: u64) -> Notice {
        let message = format!("{count} forgotten for newer ones");
        let (event, origin) = ("dead.forgotten", "dead letters".into());
        let fields = json!({ "count": count });
        Notice { event, severity: Severity::Warning, origin, message, fields }
    }
}
