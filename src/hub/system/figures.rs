//! What a hub is doing: all its figures as values, as JSON, in a registry, and in lines of the log.
//!
//! Nothing is counted for this that is not counted anyhow (`stats.rs`), but for two things that are asked
//! for: how often each key was published ([`HubBuilder::count_keys`]), and how long messages of a subscription
//! wait ([`SubscriptionBuilder::measured`](crate::hub::SubscriptionBuilder::measured)).

use crate::error::{Error, Result};
use crate::hub::core::Core;
use crate::hub::handle::Hub;
use crate::hub::history::replay_stats::ReplayFigures;
use crate::hub::history::settings::HistoryStats;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::rules::Execution;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::publish::publisher_stats::{PublisherFigures, PublisherStats};
use crate::hub::supervise::dead::DeadStats;
use crate::hub::system::key_counts::{KeyCounts, KeyFigures};
use crate::hub::system::notice::{Notice, NoticeStats, Severity};
use crate::hub::system::stats::{HubAudit, SubscriptionStats, audit, for_each_subscriber};
use crate::hub::system::tell::tell;
use crate::log::{Component, Level};
use crate::metrics::{Collector, Registry};
use crate::pool::Timer;
use crate::sys::clock;
use core::time::Duration;
use serde_json::{Value, json};
use std::sync::PoisonError;
use std::sync::Weak;
use std::time::SystemTime;

/// Everything that a hub knows of itself at one moment; see [`Hub::stats`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HubStats {
    /// When, by the clock of the system.
    pub time: SystemTime,
    /// When, by a clock that is never set.
    at: u64,
    /// The counters of all subscriptions, those that have ended included.
    pub audit: HubAudit,
    /// How many keys are known.
    pub keys: u64,
    /// Each subscription that has not ended, by its number.
    pub subscriptions: Vec<SubscriptionFigures>,
    /// Each replay to a handler that has not ended, by its number.
    pub replays: Vec<ReplayFigures>,
    /// Each publisher that somebody has.
    pub publishers: Vec<PublisherFigures>,
    /// How often each key was published, if [that is counted](crate::hub::HubBuilder::count_keys), by key.
    pub key_counts: Vec<KeyFigures>,
    /// What became of dead letters.
    pub dead_letters: DeadStats,
    /// What it has told of itself.
    pub notices: NoticeStats,
    /// What each history has done.
    pub histories: Vec<HistoryStats>,
}

/// One subscription.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriptionFigures {
    /// Its number.
    pub id: u64,
    /// What it has subscribed to.
    pub pattern: String,
    /// Where its handler runs.
    pub execution: Execution,
    /// How many messages may wait.
    pub capacity: u64,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Its counts; `waiting` is the depth of its mailbox.
    pub stats: SubscriptionStats,
    /// How long messages took from publishing to its handler, or to who pulls, if that is
    /// [measured](crate::hub::SubscriptionBuilder::measured).
    #[cfg(feature = "metrics")]
    pub latency: Option<crate::metrics::Distribution>,
    /// How long its handler took for each message, within 6 %, if that is measured. Of a mailbox that is pulled there is
    /// nothing.
    #[cfg(feature = "metrics")]
    pub handling: Option<crate::metrics::Distribution>,
}

/// How many subscriptions that are not measured have figures in a registry: as many as a family has room for.
const MAX_OTHERS: usize = 1000;

/// What a hub did in each second between two [`HubStats`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct HubRates {
    /// How long that was.
    pub seconds: f64,
    /// Messages published.
    pub published: f64,
    /// Messages that handlers have dealt with, or pullers have taken.
    pub delivered: f64,
    /// Messages that handlers failed at for good, dead letters included.
    pub failed: f64,
    /// Messages that full mailboxes have dropped or refused.
    pub lost: f64,
}

impl HubRates {
    fn between(earlier: &HubAudit, later: &HubAudit, nanos: u64) -> Self {
        let seconds = nanos as f64 / 1e9;
        let rate = |count: fn(&HubAudit) -> u64| match nanos {
            0 => 0.0,
            _ => count(later).saturating_sub(count(earlier)) as f64 / seconds,
        };
        Self {
            seconds,
            published: rate(|audit| audit.published),
            delivered: rate(|audit| audit.delivered),
            failed: rate(|audit| audit.failed + audit.dead_lettered),
            lost: rate(|audit| audit.dropped + audit.rejected),
        }
    }
}

impl HubStats {
    /// What it did in each second since an earlier one.
    pub fn rates_since(&self, earlier: &HubStats) -> HubRates {
        HubRates::between(&earlier.audit, &self.audit, self.at.saturating_sub(earlier.at))
    }

    /// As an object of JSON. Times are in seconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let audit = &self.audit;
        let subscriptions: Vec<_> =
            self.subscriptions.iter().map(SubscriptionFigures::json).collect();
        let publisher = |one: &PublisherFigures| {
            let PublisherStats { published, refused, enqueued, lost } = one.stats;
            json!({
                "name": one.name, "published": published, "refused": refused,
                "enqueued": enqueued, "lost": lost,
            })
        };
        let publishers: Vec<_> = self.publishers.iter().map(publisher).collect();
        let key = |one: &KeyFigures| json!({ "key": one.key, "published": one.published });
        let history = |one: &HistoryStats| {
            json!({
                "pattern": one.pattern, "recorded": one.recorded, "in_memory": one.in_memory,
                "waiting": one.waiting, "commits": one.commits, "given_up": one.given_up,
                "errors": one.errors, "last_error": one.last_error, "durable": one.durable,
            })
        };
        let replay = |one: &ReplayFigures| {
            let stats = &one.stats;
            json!({
                "id": one.id, "pattern": one.pattern, "suspended": one.suspended,
                "matched": stats.matched, "delivered": stats.delivered, "failed": stats.failed,
                "dead_lettered": stats.dead_lettered, "discarded": stats.discarded,
                "waiting": stats.waiting, "running": stats.running, "lost": stats.lost,
                "last": stats.last, "restarts": stats.restarts, "redelivered": stats.redelivered,
            })
        };
        json!({
            "time": humantime::format_rfc3339_millis(clock::with_a_form(self.time)).to_string(),
            "published": audit.published, "matched": audit.matched, "redelivered": audit.redelivered,
            "delivered": audit.delivered, "failed": audit.failed,
            "dead_lettered": audit.dead_lettered, "dropped": audit.dropped,
            "rejected": audit.rejected, "discarded": audit.discarded, "waiting": audit.waiting,
            "running": audit.running, "keys": self.keys,
            "subscriptions": subscriptions, "publishers": publishers,
            "replays": self.replays.iter().map(replay).collect::<Vec<_>>(),
            "key_counts": self.key_counts.iter().map(key).collect::<Vec<_>>(),
            "dead_letters": {
                "buried": self.dead_letters.buried, "held": self.dead_letters.held,
                "forgotten": self.dead_letters.forgotten, "removed": self.dead_letters.removed,
            },
            "notices": {
                "told": self.notices.told, "lost": self.notices.lost,
                "errors": self.notices.errors, "forgotten": self.notices.forgotten,
            },
            "histories": self.histories.iter().map(history).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

impl SubscriptionFigures {
    fn of(subscriber: &Subscriber) -> Self {
        // Not within the literal: the lock would be held to its end.
        let suspended = subscriber.mail().phase() == Phase::Suspended;
        Self {
            id: subscriber.id(),
            pattern: subscriber.channel().pattern().into(),
            execution: subscriber.rules.execution,
            capacity: u64::from(subscriber.rules.capacity),
            suspended,
            stats: SubscriptionStats::of(subscriber),
            #[cfg(feature = "metrics")]
            latency: subscriber.policy().and_then(|policy| policy.latency()),
            #[cfg(feature = "metrics")]
            handling: subscriber.policy().and_then(|policy| policy.handling()),
        }
    }

    fn json(&self) -> Value {
        let stats = &self.stats;
        #[cfg_attr(not(feature = "metrics"), allow(unused_mut, reason = "nothing is added"))]
        let mut object = json!({
            "id": self.id, "pattern": self.pattern, "execution": format!("{:?}", self.execution),
            "capacity": self.capacity, "suspended": self.suspended, "matched": stats.matched,
            "delivered": stats.delivered, "failed": stats.failed,
            "dead_lettered": stats.dead_lettered, "dropped": stats.dropped,
            "rejected": stats.rejected, "discarded": stats.discarded, "waiting": stats.waiting,
            "running": stats.running, "redelivered": stats.redelivered, "filtered": stats.filtered,
            "filter_panics": stats.filter_panics, "restarts": stats.restarts,
        });
        #[cfg(feature = "metrics")]
        for (name, times) in [("latency", &self.latency), ("handling", &self.handling)] {
            if let Some(times) = times {
                object[name] = times.json();
            }
        }
        object
    }
}

/// The target of what hubs write to the `log` facade.
pub const HUB_LOG_TARGET: &str = "paceline::hub";

pub(in crate::hub) fn check_stats_interval(every: Option<Duration>) -> Result<()> {
    let range = Duration::from_millis(10)..=Duration::from_secs(86_400);
    match every {
        Some(every) if !range.contains(&every) => {
            Err(Error::invalid("stats_interval", format!("{every:?}"), "10 ms to 1 day"))
        }
        _ => Ok(()),
    }
}

#[inline]
pub(in crate::hub) fn count_key(core: &Core, key: &Key, published: u64) {
    if let Some(counts) = &core.key_counts {
        counts.add(key, published);
    }
}

/// Tells the statistics later, again and again.
pub(in crate::hub) fn tell_stats_later(core: &Core, every: Duration, before: HubAudit, at: u64) {
    let me = std::sync::Weak::clone(&core.me);
    let look = move || {
        let Some(core) = me.upgrade() else { return };
        let (sum, now) = (audit(&core), clock::now());
        tell_stats(&core, &sum, &HubRates::between(&before, &sum, now.saturating_sub(at)));
        tell_stats_later(&core, every, sum, now);
    };
    if let Err((error @ Error::Full { .. }, _)) = Timer::after(&core.shared, every, look, |_| ()) {
        tell(core, Severity::Error, None, || Notice {
            event: "statistics.stopped",
            severity: Severity::Error,
            origin: "statistics".into(),
            message: error.to_string(),
            fields: Value::Null,
        });
    }
}

fn tell_stats(core: &Core, audit: &HubAudit, rates: &HubRates) {
    let (published, delivered) = (audit.published, audit.delivered);
    let lost = audit.dropped + audit.rejected;
    let failed = audit.failed + audit.dead_lettered;
    let line = format!(
        "published {published} ({:.1}/s), delivered {delivered} ({:.1}/s), failed {failed} \
         ({:.1}/s), lost {lost} ({:.1}/s), waiting {}, running {}",
        rates.published, rates.delivered, rates.failed, rates.lost, audit.waiting, audit.running,
    );
    let log = &core.shared.log;
    // A log that tells the facade says it for both.
    if !(log.uses_facade() && log.is_on(Component::Hub, Level::Info)) {
        log::info!(target: HUB_LOG_TARGET, "{line}");
    }
    tell(core, Severity::Info, None, || Notice {
        event: "hub.statistics",
        severity: Severity::Info,
        origin: "statistics".into(),
        message: line,
        fields: json!({
            "seconds": rates.seconds, "published": published, "delivered": delivered,
            "failed": failed, "lost_messages": lost, "waiting": audit.waiting,
            "running": audit.running,
        }),
    });
}

fn all_publishers(core: &Core) -> Vec<PublisherFigures> {
    let mut publishers = core.publishers.lock().unwrap_or_else(PoisonError::into_inner);
    publishers.retain(|publisher| publisher.strong_count() > 0);
    let living: Vec<_> = publishers.iter().filter_map(|one| one.upgrade()).collect();
    drop(publishers);
    living.iter().map(|one| one.figures()).collect()
}

fn all_subscriptions(
    core: &Core,
    mut wants: impl FnMut(&Subscriber) -> bool,
) -> Vec<SubscriptionFigures> {
    let mut all = Vec::new();
    for_each_subscriber(core, |subscriber| {
        if subscriber.mail().phase() != Phase::Ended && wants(subscriber) {
            all.push(SubscriptionFigures::of(subscriber));
        }
    });
    all.sort_unstable_by_key(|one| one.id);
    all
}

fn all_replays(core: &Core) -> Vec<ReplayFigures> {
    let mut all: Vec<_> = core.replays().iter().filter_map(|one| one.figures()).collect();
    all.sort_unstable_by_key(|one| one.id);
    all
}

impl Hub {
    /// All figures, as they are now. Any thread; it takes time with the number of keys and subscriptions, and
    /// looks at one after the other.
    pub fn stats(&self) -> HubStats {
        let core = &self.core;
        HubStats {
            time: SystemTime::now(),
            at: clock::now(),
            audit: self.audit(),
            keys: self.key_count() as u64,
            subscriptions: all_subscriptions(core, |_| true),
            replays: all_replays(core),
            publishers: all_publishers(core),
            key_counts: core.key_counts.as_ref().map_or_else(Vec::new, KeyCounts::all),
            dead_letters: self.dead_letter_stats(),
            notices: self.notice_stats(),
            histories: self.history_stats(),
        }
    }

    /// As [`HubBuilder::metrics`](crate::hub::HubBuilder::metrics), for a hub that is there: into one more registry. Any thread.
    #[cfg(feature = "metrics")]
    pub fn metrics(&self, registry: &Registry, name: &str) {
        attach(registry, name, &self.core);
    }
}

/// As long as the hub lives, which this does not keep alive.
pub(in crate::hub) fn attach(registry: &Registry, name: &str, core: &Core) {
    *core.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.into());
    let (core, name) = (Weak::clone(&core.me), name.to_owned());
    registry.collect(move |collector| {
        let core = core.upgrade();
        core.iter().for_each(|core| collect(collector, Some(&name), core));
        core.is_some()
    });
}

/// Without a name it is called as it was last, or by a number.
pub(in crate::hub) fn collect(collector: &mut Collector, name: Option<&str>, core: &Core) {
    let known = || {
        let mut known = core.name.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| core.shared.end.next_name()).clone()
    };
    let name = name.map_or_else(known, str::to_owned);
    let Some(hub) = collector.enter(core, "hub", &name) else { return };
    let hub = &*hub;
    let audit = audit(core);
    let labels = [("hub", hub)];
    let mut counter = |name: &str, help: &str, count: u64| {
        collector.counter(&format!("paceline_hub_{name}"), help, &labels, count as f64);
    };
    counter("published", "Messages that were published", audit.published);
    counter("matched", "Messages times the subscriptions that they matched", audit.matched);
    counter("delivered", "Of these, those that were dealt with", audit.delivered);
    counter("failed", "Those that handlers failed at for good", audit.failed);
    counter("dead_lettered", "Those that became dead letters", audit.dead_lettered);
    counter("dropped", "Those that full mailboxes dropped", audit.dropped);
    counter("rejected", "Those that full mailboxes refused", audit.rejected);
    counter("discarded", "Those that waited when their subscription ended", audit.discarded);
    let notices = core.notices.stats();
    counter("notices", "What the hub has told of itself", notices.told);
    counter("notices_lost", "What it could not tell", notices.lost);
    counter("errors", "Warnings and errors that it has recorded", notices.errors);
    let mut gauge = |name: &str, help: &str, figure: u64| {
        collector.gauge(&format!("paceline_hub_{name}"), help, &labels, figure as f64);
    };
    gauge("waiting", "Messages that wait in mailboxes", audit.waiting);
    gauge("running", "Messages that are being handled", audit.running);
    gauge("keys", "Keys that are known", core.keys.len() as u64);
    gauge("dead_letters", "Dead letters that are kept", core.dead.stats().held);
    // Publishers of the same name are one here.
    let mut publishers = std::collections::BTreeMap::<String, PublisherStats>::new();
    for one in all_publishers(core) {
        let sum = publishers.entry(one.name).or_default();
        sum.published += one.stats.published;
        sum.refused += one.stats.refused;
        sum.enqueued += one.stats.enqueued;
        sum.lost += one.stats.lost;
    }
    for (name, stats) in &publishers {
        let labels = [("hub", hub), ("publisher", name)];
        let mut counter = |name: &str, help: &str, count: u64| {
            collector.counter(
                &format!("paceline_hub_publisher_{name}"),
                help,
                &labels,
                count as f64,
            );
        };
        counter("published", "Messages that it has published", stats.published);
        counter("refused", "Messages that it could not publish", stats.refused);
        counter("enqueued", "Mailboxes that took them", stats.enqueued);
        counter("lost", "Mailboxes that were full", stats.lost);
    }
    for one in core.histories.stats() {
        let labels = [("hub", hub), ("history", one.pattern.as_str())];
        let mut counter = |name: &str, help: &str, count: u64| {
            let name = format!("paceline_hub_history_{name}");
            collector.counter(&name, help, &labels, count as f64);
        };
        counter("recorded", "Messages that the history has taken", one.recorded);
        counter("given_up", "Those that are on no disk and never will be", one.given_up);
        counter("commits", "Commits that succeeded", one.commits);
        counter("errors", "Commits that failed", one.errors);
        counter("lines_lost", "Lines that could not be written", one.lines_lost);
        let mut gauge = |name: &str, help: &str, figure: u64| {
            let name = format!("paceline_hub_history_{name}");
            collector.gauge(&name, help, &labels, figure as f64);
        };
        gauge("in_memory", "Messages that it keeps in memory", one.in_memory);
        gauge("waiting", "Messages that wait to be committed", one.waiting);
        gauge("failing", "1 if the last commit failed", u64::from(one.last_error.is_some()));
    }
    for one in core.key_counts.as_ref().map_or_else(Vec::new, KeyCounts::all) {
        let labels = [("hub", hub), ("key", one.key.as_str())];
        let help = "Messages that were published with the key";
        collector.counter("paceline_hub_key_published", help, &labels, one.published as f64);
    }
    let (mut others, mut left_out) = (0, 0);
    let is_told = |one: &Subscriber| {
        let is_measured = one.policy().is_some_and(|policy| policy.is_measured());
        let is_told = is_measured || others < MAX_OTHERS;
        (others, left_out) = (others + usize::from(!is_measured), left_out + usize::from(!is_told));
        is_told
    };
    for one in all_subscriptions(core, is_told) {
        collect_subscription(collector, hub, one);
    }
    if left_out > 0 {
        collector.leave_out("paceline_hub_subscription_waiting", left_out);
    }
    for one in all_replays(core) {
        collect_replay(collector, hub, &one);
    }
}

fn collect_replay(collector: &mut Collector, hub: &str, one: &ReplayFigures) {
    let id = one.id.to_string();
    let labels = [("hub", hub), ("replay", &id), ("pattern", &one.pattern)];
    let stats = &one.stats;
    let mut counter = |name: &str, help: &str, count: u64| {
        let name = format!("paceline_hub_replay_{name}");
        collector.counter(&name, help, &labels, count as f64);
    };
    counter("matched", "Messages that were read for it, or delivered to it again", stats.matched);
    counter("delivered", "Of these, those that were dealt with", stats.delivered);
    counter("failed", "Those that its handler failed at for good", stats.failed);
    counter("dead_lettered", "Those that became dead letters", stats.dead_lettered);
    counter(
        "redelivered",
        "Of the matched, those that were dead letters before",
        stats.redelivered,
    );
    counter("lost", "Those that were no longer kept when their turn came", stats.lost);
    counter("restarts", "Restarts of its handler", stats.restarts);
    let mut gauge = |name: &str, help: &str, figure: u64| {
        let name = format!("paceline_hub_replay_{name}");
        collector.gauge(&name, help, &labels, figure as f64);
    };
    gauge("waiting", "Messages that were read and have not begun", stats.waiting);
    gauge("last_sequence", "The greatest sequence that its handler was done with", stats.last);
    gauge("suspended", "1 while it is suspended, else 0", u64::from(one.suspended));
}

fn collect_subscription(collector: &mut Collector, hub: &str, one: SubscriptionFigures) {
    let id = one.id.to_string();
    let labels = [("hub", hub), ("subscription", &id), ("pattern", &one.pattern)];
    let stats = &one.stats;
    let mut counter = |name: &str, help: &str, count: u64| {
        let name = format!("paceline_hub_subscription_{name}");
        collector.counter(&name, help, &labels, count as f64);
    };
    counter("matched", "Messages that matched it", stats.matched);
    counter("delivered", "Of these, those that were dealt with", stats.delivered);
    counter("failed", "Those that its handler failed at for good", stats.failed);
    counter("dead_lettered", "Those that became dead letters", stats.dead_lettered);
    counter("dropped", "Those that its full mailbox dropped", stats.dropped);
    counter("rejected", "Those that its full mailbox refused", stats.rejected);
    counter("restarts", "Restarts of its handler", stats.restarts);
    let mut gauge = |name: &str, help: &str, figure: u64| {
        let name = format!("paceline_hub_subscription_{name}");
        collector.gauge(&name, help, &labels, figure as f64);
    };
    gauge("waiting", "Messages that wait in its mailbox", stats.waiting);
    gauge("capacity", "How many may wait there", one.capacity);
    gauge("suspended", "1 while it is suspended, else 0", u64::from(one.suspended));
    #[cfg(feature = "metrics")]
    let times = [
        ("latency", "From publishing to its handler", one.latency),
        ("handling", "How long its handler took for a message", one.handling),
    ];
    #[cfg(feature = "metrics")]
    for (name, help, times) in times {
        if let Some(times) = times {
            let name = format!("paceline_hub_subscription_{name}_seconds");
            collector.histogram(&name, help, &labels, times);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_up_to_the_limit_and_then_together() {
        assert!(KeyCounts::new(0).unwrap().is_none());
        let counts = KeyCounts::new(2).unwrap().unwrap();
        for (key, published) in [("b", 1), ("a", 2), ("c", 4), ("b", 8), ("$SYS.x", 16), ("d", 32)]
        {
            counts.add(&Key::detached(key), published);
        }
        let all: Vec<_> = counts.all().into_iter().map(|one| (one.key, one.published)).collect();
        assert_eq!(all, [(String::new(), 36), ("a".into(), 2), ("b".into(), 9)]);
        let refused = KeyCounts::new(1_000_001).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), "count_keys is 1000001, but must be up to 1000000");
    }

    #[test]
    fn figures_of_any_time_have_a_text() {
        let pool = crate::Pool::builder().threads(1).build().unwrap();
        let mut stats = Hub::new(&pool).unwrap().stats();
        stats.time = SystemTime::UNIX_EPOCH - core::time::Duration::from_secs(1);
        let text = stats.to_json();
        assert!(text.contains(r#""time":"1970-01-01T00:00:00.000Z""#), "{text}");
    }

    #[test]
    fn rates_are_per_second() {
        let earlier = HubAudit { published: 10, delivered: 1, ..HubAudit::default() };
        let later = HubAudit { published: 40, delivered: 2, dropped: 3, rejected: 1, ..earlier };
        let rates = HubRates::between(&earlier, &later, 2_000_000_000);
        assert_eq!(
            (rates.seconds, rates.published, rates.delivered, rates.lost),
            (2.0, 15.0, 0.5, 2.0)
        );
        assert_eq!(HubRates::between(&earlier, &later, 0), HubRates::default());
    }
}
