//! What the hub has counted.

use crate::hub::channel::route::{channel_of, shared_channel_of};
use crate::hub::core::Core;
use crate::hub::group::dispatch::for_each_group;
use crate::hub::handle::Hub;
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::sync::atomic::Ordering::Acquire;
use std::sync::Arc;

/// The counts of one subscription.
///
/// matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SubscriptionStats {
    /// Publications that matched since it began, and dead letters that were delivered again.
    pub matched: u64,
    /// Messages that the handler has dealt with, or a puller has taken.
    pub delivered: u64,
    /// Messages that the handler failed at for good, and that were not made dead letters.
    pub failed: u64,
    /// Messages that have become dead letters.
    pub dead_lettered: u64,
    /// Messages that a full mailbox has dropped, or conflated.
    pub dropped: u64,
    /// Messages that a full mailbox has refused.
    pub rejected: u64,
    /// Messages that waited when the subscription ended.
    pub discarded: u64,
    /// Messages that wait now.
    pub waiting: u64,
    /// Messages that are being handled now, or are about to be.
    pub running: u64,
    /// Of `matched`, dead letters that were delivered again.
    pub redelivered: u64,
    /// Publications that matched the pattern and did not pass the filter; they are in no other count.
    pub filtered: u64,
    /// Of these, those of which a predicate has panicked.
    pub filter_panics: u64,
    /// How often the handler was restarted.
    pub restarts: u64,
    /// Whether it is suspended now, because its handler has panicked too often.
    pub suspended: bool,
}

impl SubscriptionStats {
    pub(in crate::hub) fn of(subscriber: &Subscriber) -> Self {
        subscriber.channel().with_ring(subscriber, |offered, in_ring, mail| {
            let waiting = mail.waiting(subscriber.progress.begun.load(Acquire)) as u64;
            let held = mail.waiting(0) as u64;
            let policy = subscriber.policy();
            let counters = Self::of_counters(&mail.counters());
            Self {
                // It may be less than nothing by itself: see `Mail::offered`.
                matched: counters.matched.wrapping_add(offered),
                waiting: waiting + in_ring,
                running: held - waiting,
                filtered: policy.map_or(0, FailurePolicy::filtered),
                filter_panics: policy.map_or(0, FailurePolicy::filter_panics),
                restarts: policy.map_or(0, FailurePolicy::restarts),
                suspended: mail.phase() == Phase::Suspended,
                ..counters
            }
        })
    }

    fn of_counters(counters: &Counters) -> Self {
        Self {
            matched: counters.offered,
            delivered: counters.delivered,
            failed: counters.failed,
            dropped: counters.dropped,
            rejected: counters.rejected,
            discarded: counters.discarded,
            dead_lettered: counters.dead,
            redelivered: counters.redelivered,
            ..Self::default()
        }
    }
}

/// The counters of a hub. They balance, exactly, whenever nothing is under way:
///
/// matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HubAudit {
    /// Messages that were published.
    pub published: u64,
    /// The sum over all messages of the subscriptions that each matched, dead letters that were delivered again,
    /// and what was read for replays with handlers.
    pub matched: u64,
    /// How many of the `matched` are dead letters that were delivered again, or were read for replays with handlers.
    pub redelivered: u64,
    /// How many of the `matched` handlers have dealt with, or pullers have taken.
    pub delivered: u64,
    /// Those that handlers failed at for good, and that were not made dead letters.
    pub failed: u64,
    /// Those that have become dead letters.
    pub dead_lettered: u64,
    /// Those that full mailboxes have dropped or conflated.
    pub dropped: u64,
    /// Those that full mailboxes have refused.
    pub rejected: u64,
    /// Those that waited when their subscription ended.
    pub discarded: u64,
    /// Those that wait now.
    pub waiting: u64,
    /// Those that are being handled now.
    pub running: u64,
}

impl HubAudit {
    /// Whether every message that matched is accounted for.
    pub fn is_balanced(&self) -> bool {
        let failed = self.failed + self.dead_lettered;
        let ended = self.delivered + failed + self.dropped + self.rejected + self.discarded;
        self.matched == ended + self.waiting + self.running
    }
}

impl Hub {
    /// Adds up all counters. It looks at one subscription after the other, so it is exact only while nothing
    /// is published and no handler runs. Any thread; takes time with the number of keys and subscriptions.
    pub fn audit(&self) -> HubAudit {
        audit(&self.core)
    }

    /// How many subscriptions a key has, those of patterns included.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a bad key.
    pub fn subscriber_count(&self, key: &str) -> crate::Result<usize> {
        crate::hub::keys::key::check_any_key(key)?;
        let key = self.core.keys.intern(key);
        let mut count = channel_of(&key).count();
        self.core.router.with_patterns(channel_of(&key), |channel| count += channel.count());
        Ok(count)
    }

    /// All patterns that somebody subscribes to, with the number of subscriptions, sorted.
    pub fn patterns(&self) -> Vec<(String, usize)> {
        let core = &self.core;
        let keys = core.keys.all().into_iter();
        let own = keys.map(|key| shared_channel_of(&key));
        let channels = own.chain(core.router.channels());
        let counted = channels.map(|channel| (channel.pattern().to_owned(), channel.count()));
        let mut list: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
        list.sort_unstable();
        list
    }

    /// How many keys are known.
    pub fn key_count(&self) -> usize {
        self.core.keys.len()
    }
}

pub(in crate::hub) fn audit(core: &Core) -> HubAudit {
    // Under the lock of the counters of those who ended, so that none is counted twice, or not at all.
    let ended = core.lock_ended();
    let mut sum = SubscriptionStats::of_counters(&ended);
    for_each_subscriber(core, |subscriber| {
        if subscriber.mail().phase() != Phase::Ended {
            let stats = SubscriptionStats::of(subscriber);
            sum.matched += stats.matched;
            sum.delivered += stats.delivered;
            sum.failed += stats.failed;
            sum.dead_lettered += stats.dead_lettered;
            sum.redelivered += stats.redelivered;
            sum.dropped += stats.dropped;
            sum.rejected += stats.rejected;
            sum.discarded += stats.discarded;
            sum.waiting += stats.waiting;
            sum.running += stats.running;
        }
    });
    for (counters, waiting, running) in core.replays().iter().filter_map(|one| one.audit()) {
        sum.matched += counters.offered;
        sum.delivered += counters.delivered;
        sum.failed += counters.failed;
        sum.dead_lettered += counters.dead;
        sum.redelivered += counters.redelivered;
        sum.discarded += counters.discarded;
        sum.waiting += waiting;
        sum.running += running;
    }
    for_each_group(core, |counters, waiting| {
        sum.matched += counters.offered + waiting;
        sum.rejected += counters.rejected;
        sum.discarded += counters.discarded;
        sum.waiting += waiting;
    });
    drop(ended);
    HubAudit {
        published: core.published(),
        matched: sum.matched,
        delivered: sum.delivered,
        failed: sum.failed,
        dead_lettered: sum.dead_lettered,
        redelivered: sum.redelivered,
        dropped: sum.dropped,
        rejected: sum.rejected,
        discarded: sum.discarded,
        waiting: sum.waiting,
        running: sum.running,
    }
}

pub(in crate::hub) fn for_each_subscriber(core: &Core, mut each: impl FnMut(&Arc<Subscriber>)) {
    for key in core.keys.all() {
        channel_of(&key).members().iter().for_each(&mut each);
    }
    for channel in core.router.channels() {
        channel.members().iter().for_each(&mut each);
    }
}
