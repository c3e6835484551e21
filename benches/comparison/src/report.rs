//! What was measured, the table of its medians, and the bars.

use std::collections::BTreeMap;

use crate::stats::{self, Limit, Verdict};

/// Every value of a run: one series per scenario, peer and metric, one value per round.
#[derive(Default)]
pub struct Results(BTreeMap<Key, Vec<f64>>);

type Key = (String, String, &'static str);

/// A column of a table: the metric's name and how many decimals it deserves.
#[derive(Clone, Copy)]
pub struct Column {
    pub metric: &'static str,
    pub decimals: usize,
}

impl Results {
    /// Adds one round's value. A round that failed adds NaN, so that the rounds stay aligned.
    pub fn add(&mut self, scenario: &str, peer: &str, metric: &'static str, value: f64) {
        self.0.entry((scenario.to_owned(), peer.to_owned(), metric)).or_default().push(value);
    }

    /// The values by round; empty if the peer did not take part.
    pub fn series(&self, scenario: &str, peer: &str, metric: &'static str) -> &[f64] {
        self.0.get(&(scenario.to_owned(), peer.to_owned(), metric)).map_or(&[], Vec::as_slice)
    }

    /// A Markdown table of medians, with a row for each peer that was measured.
    pub fn table(&self, scenario: &str, peers: &[&str], columns: &[Column]) -> String {
        let head = ["".to_owned()].into_iter().chain(columns.iter().map(|c| c.metric.to_owned()));
        let mut rows = vec![head.collect::<Vec<_>>()];
        for peer in peers {
            let medians: Vec<f64> = columns
                .iter()
                .map(|c| stats::median(self.series(scenario, peer, c.metric)))
                .collect();
            if medians.iter().all(|m| m.is_nan()) {
                continue;
            }
            let cells = medians.iter().zip(columns).map(|(m, c)| number(*m, c.decimals));
            rows.push([(*peer).to_owned()].into_iter().chain(cells).collect());
        }
        markdown(&rows)
    }
}

/// A number with thousands set apart, or a dash where nothing was measured.
fn number(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "–".into();
    }
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) && digit != '-' {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// Rows of equal length as an aligned Markdown table: the first row is the head, the first column
/// is flush left.
fn markdown(rows: &[Vec<String>]) -> String {
    let columns = rows[0].len();
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (line, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            let cell = if column == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
            text.push_str(&format!("| {cell} "));
        }
        text.push_str("|\n");
        if line == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if column == 0 { "-" } else { ":" };
                text.push_str(&format!("|{}{end}", "-".repeat(width + 1)));
            }
            text.push_str("|\n");
        }
    }
    text
}

/// One thing that must be reached: a figure of each round (most often a ratio) and its limit.
pub struct Bar {
    pub what: String,
    pub limit: Limit,
    pub rounds: Vec<f64>,
}

impl Bar {
    /// A bar on the ratio `ours / theirs` of each round.
    pub fn ratio(what: impl Into<String>, limit: Limit, ours: &[f64], theirs: &[f64]) -> Self {
        let rounds = ours.iter().zip(theirs).map(|(o, t)| o / t).collect();
        Self { what: what.into(), limit, rounds }
    }

    pub fn absolute(what: impl Into<String>, limit: Limit, ours: &[f64]) -> Self {
        Self { what: what.into(), limit, rounds: ours.to_vec() }
    }

    fn row(&self) -> Vec<String> {
        let limit = match self.limit {
            Limit::AtLeast(bar) => format!("≥ {bar}"),
            Limit::AtMost(bar) => format!("≤ {bar}"),
        };
        if stats::median(&self.rounds).is_nan() {
            return vec![self.what.clone(), limit, "–".into(), "–".into(), "not measured".into()];
        }
        let (low, high) = stats::interval(&self.rounds);
        let verdict = match self.limit.judge((low, high)) {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::WithinNoise => "within noise",
        };
        let median = number(stats::median(&self.rounds), 3);
        let range = format!("{} … {}", number(low, 3), number(high, 3));
        vec![self.what.clone(), limit, median, range, verdict.into()]
    }
}

/// The bars as a table, the verdict last.
pub fn bars(bars: &[Bar]) -> String {
    let head = ["bar (median of the rounds' ratios)", "limit", "median", "interval", "verdict"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(bars.iter().map(Bar::row));
    markdown(&rows)
}

/// The end of a run: an error if anything could not be measured.
pub fn outcome(failures: usize) -> Result<(), String> {
    if failures > 0 { Err(format!("{failures} measurements failed")) } else { Ok(()) }
}

/// Round by round, the largest (or smallest) value of several series.
pub fn best(series: &[&[f64]], choose: fn(f64, f64) -> f64) -> Vec<f64> {
    let present: Vec<&&[f64]> = series.iter().filter(|s| !s.is_empty()).collect();
    let rounds = present.iter().map(|s| s.len()).min().unwrap_or(0);
    // f64::min and f64::max leave NaN out, so a peer's failed round does not void the others'.
    (0..rounds).map(|round| present.iter().map(|s| s[round]).fold(f64::NAN, choose)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_in_thousands() {
        assert_eq!(number(1234567.0, 0), "1 234 567");
        assert_eq!(number(999.5, 1), "999.5");
        assert_eq!(number(-1234.0, 0), "-1 234");
        assert_eq!(number(f64::NAN, 2), "–");
    }

    #[test]
    fn best_skips_absent_peers_and_failed_rounds() {
        let series: [&[f64]; 3] = [&[1.0, f64::NAN], &[], &[3.0, 2.0]];
        assert_eq!(best(&series, f64::max), [3.0, 2.0]);
        assert_eq!(best(&series, f64::min), [1.0, 2.0]);
    }

    #[test]
    fn a_failed_round_leaves_the_others_aligned() {
        let mut results = Results::default();
        for value in [1.0, f64::NAN, 3.0] {
            results.add("s", "a", "m", value);
            results.add("s", "b", "m", 2.0);
        }
        let bar = Bar::ratio(
            "",
            Limit::AtLeast(0.4),
            results.series("s", "a", "m"),
            results.series("s", "b", "m"),
        );
        assert_eq!(stats::median(&bar.rounds), 1.0);
    }
}
