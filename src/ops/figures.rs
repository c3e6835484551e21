//! What a person wants to see of all figures, each second: rates, quantiles, what waits and what lags.

use super::tables::Tables;
use crate::metrics::{Distribution, Family, Labels, Sample, Snapshot};
use serde_json::{Value as Json, json};

/// How many subscriptions, mailboxes and lanes are shown of those that wait most.
const MOST_SHOWN: usize = 10;

/// The families of one card of the page.
struct Card {
    name: &'static str,
    /// Counters, or histograms, which are summed.
    counts: &'static [&'static str],
    /// The histogram of their times.
    times: &'static str,
    /// That of how long they waited before.
    waits: &'static str,
    /// Counters of those that failed; a label, if only series that have it count.
    fails: &'static [(&'static str, Option<(&'static str, &'static str)>)],
}

const CARDS: [Card; 5] = [
    Card {
        name: "requests",
        counts: &["paceline_http_requests"],
        times: "paceline_http_request_seconds",
        waits: "",
        fails: &[
            ("paceline_http_answered", Some(("status", "5xx"))),
            ("paceline_http_refused", Some(("cause", "panicked"))),
            ("paceline_http_refused", Some(("cause", "unanswered"))),
            ("paceline_http_refused", Some(("cause", "busy"))),
        ],
    },
    Card {
        name: "tasks",
        counts: &["paceline_task_completed", "paceline_task_failed"],
        times: "paceline_task_run_seconds",
        waits: "paceline_task_queue_seconds",
        fails: &[("paceline_task_failed", None), ("paceline_task_timed_out", None)],
    },
    Card {
        name: "messages",
        counts: &["paceline_hub_delivered"],
        times: "paceline_hub_subscription_handling_seconds",
        waits: "paceline_hub_subscription_latency_seconds",
        fails: &[("paceline_hub_failed", None), ("paceline_hub_dead_lettered", None)],
    },
    Card {
        name: "runs",
        counts: &["paceline_thread_handled", "paceline_thread_tasks"],
        times: "",
        waits: "",
        fails: &[("paceline_thread_panics", None)],
    },
    Card {
        name: "timers",
        counts: &["paceline_timer_lateness_seconds"],
        // How late they were.
        times: "paceline_timer_lateness_seconds",
        waits: "",
        fails: &[],
    },
];

/// Gauges of what waits, with the label that names it.
const WAITING: [(&str, &str); 3] = [
    ("paceline_lane_tasks", "lane"),
    ("paceline_task_waiting", "task_type"),
    ("paceline_hub_subscription_waiting", "pattern"),
];

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Figures {
    before: Snapshot,
    tables: Tables,
}

impl Figures {
    /// What was there before does not count.
    pub(super) fn since(before: Snapshot) -> Self {
        Self { before, tables: Tables::default() }
    }

    /// What has come since the last call, `seconds` ago; `at` is the observer's clock.
    pub(super) fn since_last(&mut self, now: Snapshot, seconds: f64, at: u64) -> Json {
        let cards = CARDS.iter().map(|card| (card.name.to_owned(), self.card(&now, card, seconds)));
        let cards: serde_json::Map<_, _> = cards.collect();
        let gauge = |name| now.sample(name, &[]).and_then(|value| value.number());
        let cpu = total(&now, "process_cpu_seconds") - total(&self.before, "process_cpu_seconds");
        let tables = self.tables.show(&now, &self.before, seconds, at);
        let json = json!({
            "cards": cards,
            "waiting": waiting(&now, &self.tables),
            "waiting_in_all": WAITING.iter().map(|(name, _)| total(&now, name)).sum::<f64>(),
            "tables": tables,
            "process": {
                "cpu": (cpu / seconds).max(0.0),
                "memory": gauge("process_resident_memory_bytes"),
                "descriptors": gauge("process_open_fds"),
            },
        });
        self.before = now;
        json
    }

    /// None: there is nothing that it counts.
    fn card(&self, now: &Snapshot, card: &Card, seconds: f64) -> Json {
        if !card.counts.iter().any(|name| now.family(name).is_some()) {
            return Json::Null;
        }
        let sum = |of: &Snapshot| card.counts.iter().map(|name| total(of, name)).sum::<f64>();
        let rate = ((sum(now) - sum(&self.before)) / seconds).max(0.0);
        let quantile = |name, at| {
            let times = merged(&now.family(name)?.samples, self.before.family(name))?;
            (times.count() > 0).then(|| times.quantile(at))
        };
        let failed = |of: &Snapshot| {
            card.fails.iter().map(|(name, with)| some(of, name, *with)).sum::<f64>()
        };
        json!({
            "rate": rate,
            "total": sum(now),
            "p50": quantile(card.times, 0.5),
            "p99": quantile(card.times, 0.99),
            "waits_p99": quantile(card.waits, 0.99),
            "failed": failed(now),
            "failing": ((failed(now) - failed(&self.before)) / seconds).max(0.0),
        })
    }
}

/// Series of a histogram together, since an earlier snapshot of it.
pub(super) fn merged<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    before: Option<&Family>,
) -> Option<Distribution> {
    let mut all: Option<Distribution> = None;
    for sample in samples {
        let Some(found) = sample.value.distribution() else { continue };
        let new = match distribution(before, &sample.labels) {
            Some(before) => found.since(before),
            None => found.clone(),
        };
        all = Some(match all {
            Some(sum) => sum.with(&new),
            None => new,
        });
    }
    all
}

fn distribution<'a>(family: Option<&'a Family>, labels: &Labels) -> Option<&'a Distribution> {
    let samples = &family?.samples;
    let at = samples.binary_search_by(|sample| sample.labels.cmp(labels)).ok()?;
    samples[at].value.distribution()
}

/// The sum of all series of a counter or gauge, or how many times a histogram has.
pub(super) fn total(snapshot: &Snapshot, name: &str) -> f64 {
    some(snapshot, name, None)
}

/// That of the series that have this label, if one is given.
fn some(snapshot: &Snapshot, name: &str, with: Option<(&str, &str)>) -> f64 {
    let samples = snapshot.family(name).into_iter().flat_map(|family| &family.samples);
    let has = |sample: &&Sample| {
        with.is_none_or(|with| {
            sample.labels.iter().any(|(name, value)| (&**name, &**value) == with)
        })
    };
    let count = |sample: &Sample| match sample.value.distribution() {
        Some(times) => Some(times.count() as f64),
        None => sample.value.number(),
    };
    samples.filter(has).filter_map(count).sum()
}

/// What waits most, by name, with the room that there is, the age of the oldest, and what was lost.
fn waiting(now: &Snapshot, tables: &Tables) -> Vec<Json> {
    let mut all: Vec<(&str, &Sample, f64)> = Vec::new();
    for (name, label) in WAITING {
        let samples = now.family(name).into_iter().flat_map(|family| &family.samples);
        for sample in samples {
            let count = sample.value.number().unwrap_or(0.0);
            if count > 0.0 {
                all.push((label, sample, count));
            }
        }
    }
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    let shown = all.into_iter().take(MOST_SHOWN);
    let shown = shown.filter_map(|(kind, sample, count)| {
        let (_, name) = sample.labels.iter().find(|(name, _)| name == kind)?;
        let labels: Vec<_> =
            sample.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        let own = |family: &str| now.sample(family, &labels).and_then(|value| value.number());
        let lost = match kind {
            "pattern" => {
                ["paceline_hub_subscription_dropped", "paceline_hub_subscription_rejected"]
            }
            _ => ["paceline_task_dropped", "paceline_task_rejected"],
        };
        Some(json!({
            "kind": kind,
            "name": name,
            "count": count,
            "capacity": own("paceline_hub_subscription_capacity").filter(|_| kind == "pattern"),
            "oldest": tables.age(sample),
            "lost": lost.into_iter().filter_map(own).sum::<f64>(),
        }))
    });
    shown.collect()
}
