//! The last 15 minutes, a sample each 5 seconds, kept whether or not somebody looks.

use super::figures::{merged, total};
use crate::metrics::{Sample, Snapshot};
use core::time::Duration;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::time::SystemTime;

/// Between two samples.
pub(super) const STEP: Duration = Duration::from_secs(5);
/// Samples that are kept.
const KEPT: usize = 180;
/// Task types that have a curve: those that came first.
const MOST_TYPES: usize = 8;

enum Of {
    /// How much came in a second.
    Rate(&'static [&'static str]),
    /// How much there is.
    Now(&'static [&'static str]),
    /// The 99th of a hundred of what came since the last sample, in seconds.
    P99(&'static str),
}

const LINES: [(&str, &str, Of); 9] = [
    ("messages per second", "published", Of::Rate(&["paceline_hub_published"])),
    ("messages per second", "delivered", Of::Rate(&["paceline_hub_delivered"])),
    (
        "messages per second",
        "failed",
        Of::Rate(&["paceline_hub_failed", "paceline_hub_dead_lettered"]),
    ),
    ("waiting", "messages", Of::Now(&["paceline_hub_waiting"])),
    ("waiting", "tasks", Of::Now(&["paceline_lane_tasks", "paceline_task_waiting"])),
    ("requests per second", "requests", Of::Rate(&["paceline_http_requests"])),
    ("handling time, p99", "messages", Of::P99("paceline_hub_subscription_handling_seconds")),
    ("handling time, p99", "tasks", Of::P99("paceline_task_run_seconds")),
    ("handling time, p99", "requests", Of::P99("paceline_http_request_seconds")),
];
/// The chart of the task types.
const TYPES: &str = "tasks per second, by type";

/// Values of one line, the newest last. Those that began later than others are shorter.
#[derive(Default)]
struct Line {
    name: String,
    values: VecDeque<Option<f32>>,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Curves {
    lines: [Line; LINES.len()],
    types: Vec<Line>,
    before: Option<Snapshot>,
    newest: u64,
}

impl Line {
    fn push(&mut self, value: Option<f64>) {
        if self.values.len() == KEPT {
            self.values.pop_front();
        }
        self.values.push_back(value.map(|value| value as f32));
    }
}

impl Curves {
    /// One more sample, `seconds` after the one before. The first one only begins to count.
    pub(super) fn take(&mut self, now: Snapshot, seconds: f64) {
        let Some(before) = self.before.replace(now) else { return };
        let Some(now) = &self.before else { return };
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.newest = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let rate = |name: &str| ((total(now, name) - total(&before, name)) / seconds).max(0.0);
        for ((_, _, of), line) in LINES.iter().zip(&mut self.lines) {
            let there = |names: &[&str]| names.iter().any(|name| now.family(name).is_some());
            line.push(match of {
                Of::Rate(names) => there(names).then(|| names.iter().map(|name| rate(name)).sum()),
                Of::Now(names) => {
                    there(names).then(|| names.iter().map(|name| total(now, name)).sum())
                }
                Of::P99(name) => now
                    .family(name)
                    .and_then(|family| merged(&family.samples, before.family(name)))
                    .filter(|spread| spread.count() > 0)
                    .map(|spread| spread.quantile(0.99)),
            });
        }
        let names = now.family("paceline_task_completed").into_iter().flat_map(|it| &it.samples);
        for sample in names {
            let name = type_of(sample);
            if self.types.len() < MOST_TYPES && !self.types.iter().any(|line| line.name == name) {
                self.types.push(Line { name: name.to_owned(), values: VecDeque::new() });
            }
        }
        for line in &mut self.types {
            let completed = |snapshot: &Snapshot| {
                let family = snapshot.family("paceline_task_completed");
                let samples = family.into_iter().flat_map(|family| &family.samples);
                let own = samples.filter(|sample| type_of(sample) == line.name);
                own.filter_map(|sample| sample.value.number()).sum::<f64>()
            };
            let rate = (completed(now) - completed(&before)) / seconds;
            line.push(Some(rate.max(0.0)));
        }
    }

    /// Charts with their lines; those that never had a value are left out.
    pub(super) fn json(&self) -> Json {
        let fixed =
            LINES.iter().zip(&self.lines).map(|((chart, name, _), line)| (*chart, *name, line));
        let types = self.types.iter().map(|line| (TYPES, line.name.as_str(), line));
        let mut charts: Vec<(&str, Vec<Json>)> = Vec::new();
        for (chart, name, line) in fixed.chain(types) {
            if line.values.iter().all(Option::is_none) {
                continue;
            }
            let at = charts.iter().position(|(other, _)| *other == chart).unwrap_or_else(|| {
                charts.push((chart, Vec::new()));
                charts.len() - 1
            });
            charts[at].1.push(json!({ "name": name, "values": line.values }));
        }
        let charts: Vec<_> = charts
            .into_iter()
            .map(|(name, lines)| json!({ "name": name, "is_time": name.contains("time"), "lines": lines }))
            .collect();
        json!({
            "step": STEP.as_secs(), "most": KEPT, "newest": self.newest, "charts": charts,
        })
    }
}

fn type_of(sample: &Sample) -> &str {
    let found = sample.labels.iter().find(|(name, _)| name == "task_type");
    found.map_or("", |(_, value)| value)
}
