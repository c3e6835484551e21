//! The tables of the page: routes, task types, subscriptions, hubs, histories and connections, each row from the figures
//! of one of them.

use super::figures::merged;
use crate::metrics::{Family, Sample, Snapshot};
use crate::pool::progress::Marks;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};

/// Rows of a table; those with the most in its first column are shown.
const MOST_ROWS: usize = 50;
/// Between two marks of an age, in nanoseconds.
const APART: u64 = 500_000_000;

/// Where a figure comes from.
enum Of {
    /// As it is now, all series of a row together.
    Now(&'static str),
    /// How much of it came in a second.
    Rate(&'static str),
    /// How many times a histogram has, in a second.
    Times(&'static str),
    /// How many it has with this label, so far.
    TimesWith(&'static str, &'static str, &'static str),
    /// A quantile of what came since the last report.
    Quantile(&'static str, f64),
    /// For how long, at least, the oldest of a queue has waited: what came in, and what waits.
    Age(&'static str, &'static str),
}

struct Table {
    name: &'static str,
    /// The family that has a series for each row.
    rows: &'static str,
    /// The labels that name a row; the last ones are its text.
    by: &'static [&'static str],
    columns: &'static [(&'static str, Of)],
}

const TABLES: [Table; 6] = [
    Table {
        name: "routes",
        rows: "paceline_http_request_seconds",
        by: &["server", "method", "route"],
        columns: &[
            ("per s", Of::Times("paceline_http_request_seconds")),
            ("4xx", Of::TimesWith("paceline_http_request_seconds", "status", "4xx")),
            ("5xx", Of::TimesWith("paceline_http_request_seconds", "status", "5xx")),
            ("p50", Of::Quantile("paceline_http_request_seconds", 0.5)),
            ("p99", Of::Quantile("paceline_http_request_seconds", 0.99)),
        ],
    },
    Table {
        name: "task types",
        rows: "paceline_task_accepted",
        by: &["workers", "task_type"],
        columns: &[
            ("completed per s", Of::Rate("paceline_task_completed")),
            ("running", Of::Now("paceline_task_running")),
            ("waiting", Of::Now("paceline_task_waiting")),
            ("oldest", Of::Age("paceline_task_accepted", "paceline_task_waiting")),
            ("failed", Of::Now("paceline_task_failed")),
            ("timed out", Of::Now("paceline_task_timed_out")),
            ("rejected", Of::Now("paceline_task_rejected")),
            ("dropped", Of::Now("paceline_task_dropped")),
        ],
    },
    Table {
        name: "subscriptions",
        rows: "paceline_hub_subscription_waiting",
        by: &["hub", "subscription", "pattern"],
        columns: &[
            ("waiting", Of::Now("paceline_hub_subscription_waiting")),
            ("capacity", Of::Now("paceline_hub_subscription_capacity")),
            (
                "oldest",
                Of::Age("paceline_hub_subscription_matched", "paceline_hub_subscription_waiting"),
            ),
            ("delivered per s", Of::Rate("paceline_hub_subscription_delivered")),
            ("p99", Of::Quantile("paceline_hub_subscription_handling_seconds", 0.99)),
            ("failed", Of::Now("paceline_hub_subscription_failed")),
            ("dropped", Of::Now("paceline_hub_subscription_dropped")),
            ("rejected", Of::Now("paceline_hub_subscription_rejected")),
        ],
    },
    Table {
        name: "hubs and dead letters",
        rows: "paceline_hub_published",
        by: &["hub"],
        columns: &[
            ("published per s", Of::Rate("paceline_hub_published")),
            ("delivered per s", Of::Rate("paceline_hub_delivered")),
            ("waiting", Of::Now("paceline_hub_waiting")),
            ("failed", Of::Now("paceline_hub_failed")),
            ("dead letters kept", Of::Now("paceline_hub_dead_letters")),
            ("dead so far", Of::Now("paceline_hub_dead_lettered")),
            ("dropped", Of::Now("paceline_hub_dropped")),
        ],
    },
    Table {
        name: "histories",
        rows: "paceline_hub_history_recorded",
        by: &["hub", "history"],
        columns: &[
            ("recorded per s", Of::Rate("paceline_hub_history_recorded")),
            ("in memory", Of::Now("paceline_hub_history_in_memory")),
            ("to commit", Of::Now("paceline_hub_history_waiting")),
            ("given up", Of::Now("paceline_hub_history_given_up")),
            ("failed commits", Of::Now("paceline_hub_history_errors")),
        ],
    },
    Table {
        name: "connections",
        rows: "paceline_server_connections",
        by: &["server", "listener"],
        columns: &[
            ("open", Of::Now("paceline_server_connections")),
            ("new per s", Of::Rate("paceline_server_begun")),
            ("requests in work", Of::Now("paceline_server_requests_in_work")),
            ("turned away", Of::Now("paceline_server_turned_away")),
            ("pauses of accept", Of::Now("paceline_server_exhausted")),
        ],
    },
];

/// The values of the labels that name a row.
type Key = Vec<String>;

/// What is known of rows from one report to the next.
#[derive(Default)]
pub(super) struct Tables {
    marks: HashMap<(&'static str, Key), Marks>,
    /// In seconds, as last shown.
    ages: HashMap<(&'static str, Key), f64>,
}

impl Tables {
    /// What has come since `before`, `seconds` ago; `at` is the observer's clock.
    pub(super) fn show(
        &mut self,
        now: &Snapshot,
        before: &Snapshot,
        seconds: f64,
        at: u64,
    ) -> Json {
        let mut marks = core::mem::take(&mut self.marks);
        self.ages.clear();
        let shown = TABLES.iter().filter_map(|table| {
            let rows = now.family(table.rows)?;
            let mut keys: Vec<Key> = rows.samples.iter().map(|it| key(table, it)).collect();
            keys.dedup();
            keys.sort_unstable();
            keys.dedup();
            let mut cells: Vec<(Key, Vec<Option<f64>>)> =
                keys.into_iter().map(|key| (key, Vec::new())).collect();
            for (_, of) in table.columns {
                let found = column(table, of, now, before, seconds);
                for (key, row) in &mut cells {
                    let mut value = found.get(key).copied();
                    if let (Of::Age(..), Some(head)) = (of, value) {
                        let tail = match *of {
                            Of::Age(put, _) => sum(table, put, key, now),
                            _ => head,
                        };
                        let place = (table.name, key.clone());
                        let mut kept = marks.remove(&place).unwrap_or_default();
                        let age =
                            kept.see((head as u64, tail as u64), at, APART).filter(|age| *age > 0);
                        value = age.map(|nanos| nanos as f64 / 1e9);
                        self.ages.extend(value.map(|age| (place.clone(), age)));
                        self.marks.insert(place, kept);
                    }
                    row.push(value);
                }
            }
            cells.sort_by(|(_, a), (_, b)| b[0].unwrap_or(0.0).total_cmp(&a[0].unwrap_or(0.0)));
            let left_out = cells.len().saturating_sub(MOST_ROWS);
            cells.truncate(MOST_ROWS);
            let is_time = |of: &Of| matches!(of, Of::Quantile(..) | Of::Age(..));
            let columns = table.columns.iter();
            let columns = columns.map(|(name, of)| json!({ "name": name, "is_time": is_time(of) }));
            let rows =
                cells.iter().map(|(key, row)| json!({ "name": text(table, key), "cells": row }));
            Some(json!({
                "name": table.name,
                "columns": columns.collect::<Vec<_>>(),
                "rows": rows.collect::<Vec<_>>(),
                "left_out": left_out,
            }))
        });
        shown.collect()
    }

    /// How long the oldest has waited, at least, in what this series is of; None: nothing does, or it is not known.
    pub(super) fn age(&self, sample: &Sample) -> Option<f64> {
        let has_label = |name: &&str| sample.labels.iter().any(|(label, _)| label == name);
        let ages = TABLES.iter().filter(|table| table.by.iter().all(has_label));
        ages.filter_map(|table| self.ages.get(&(table.name, key(table, sample))).copied()).next()
    }
}

fn label<'a>(sample: &'a Sample, name: &str) -> &'a str {
    let found = sample.labels.iter().find(|(label, _)| label == name);
    found.map_or("", |(_, value)| value)
}

fn key(table: &Table, sample: &Sample) -> Key {
    table.by.iter().map(|name| label(sample, name).to_owned()).collect()
}

/// Without what only tells it from others of the same name: the hub, the server, a number.
fn text(table: &Table, key: &Key) -> String {
    match table.name {
        "routes" => key[1..].join(" "),
        "subscriptions" => format!("{} #{}", key[2], key[1]),
        _ => key[key.len().saturating_sub(1)..].join(" "),
    }
}

fn samples(family: Option<&Family>) -> &[Sample] {
    family.map_or(&[], |family| &family.samples)
}

fn sum(table: &Table, family: &str, of: &Key, snapshot: &Snapshot) -> f64 {
    let samples = samples(snapshot.family(family)).iter();
    samples.filter(|it| key(table, it) == *of).filter_map(|it| it.value.number()).sum()
}

/// By row; of an age, how much has gone out of the queue.
fn column(
    table: &Table,
    of: &Of,
    now: &Snapshot,
    before: &Snapshot,
    seconds: f64,
) -> BTreeMap<Key, f64> {
    let mut found: BTreeMap<Key, f64> = BTreeMap::new();
    let mut add = |snapshot: &Snapshot, family: &str, times: f64, count: bool| {
        for sample in samples(snapshot.family(family)) {
            let value = match (count, sample.value.distribution()) {
                (true, Some(spread)) => Some(spread.count() as f64),
                _ => sample.value.number(),
            };
            if let Some(value) = value {
                *found.entry(key(table, sample)).or_default() += value * times;
            }
        }
    };
    match *of {
        Of::Now(family) => add(now, family, 1.0, false),
        Of::Rate(family) | Of::Times(family) => {
            let is_spread = matches!(of, Of::Times(_));
            add(now, family, 1.0 / seconds, is_spread);
            add(before, family, -1.0 / seconds, is_spread);
            // What has ended meanwhile was in the last one only.
            found.values_mut().for_each(|rate| *rate = rate.max(0.0));
        }
        Of::TimesWith(family, name, value) => {
            for sample in samples(now.family(family)) {
                let count = sample.value.distribution().map_or(0, |spread| spread.count());
                let counted = if label(sample, name) == value { count as f64 } else { 0.0 };
                *found.entry(key(table, sample)).or_default() += counted;
            }
        }
        Of::Quantile(family, at) => {
            let mut groups: BTreeMap<Key, Vec<&Sample>> = BTreeMap::new();
            for sample in samples(now.family(family)) {
                groups.entry(key(table, sample)).or_default().push(sample);
            }
            for (key, group) in groups {
                let spread = merged(group, before.family(family));
                if let Some(spread) = spread.filter(|spread| spread.count() > 0) {
                    found.insert(key, spread.quantile(at));
                }
            }
        }
        Of::Age(put, waits) => {
            add(now, put, 1.0, false);
            add(now, waits, -1.0, false);
            found.values_mut().for_each(|gone| *gone = gone.max(0.0));
        }
    }
    found
}
