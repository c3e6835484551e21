//! What was measured: tables of medians, the bars, and all of it as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stats::{self, Judgement, Limit};

/// Every value of a run: one series per scenario, peer and metric, one value per round. It keeps what it prints.
#[derive(Default)]
pub struct Results {
    values: BTreeMap<Key, Vec<f64>>,
    scenarios: Vec<Value>,
    bars: Vec<Bar>,
}

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
        self.values.entry((scenario.to_owned(), peer.to_owned(), metric)).or_default().push(value);
    }

    /// The values by round; empty if the peer did not take part.
    pub fn series(&self, scenario: &str, peer: &str, metric: &'static str) -> &[f64] {
        self.values.get(&(scenario.to_owned(), peer.to_owned(), metric)).map_or(&[], Vec::as_slice)
    }

    /// Prints a scenario's medians, and keeps its rounds for `json`.
    pub fn print(&mut self, scenario: &str, what: &str, peers: &[&str], columns: &[Column]) {
        println!("### {scenario}: {what}\n\n{}", self.table(scenario, peers, columns));
        let metrics = |peer: &str| -> BTreeMap<&str, Vec<f64>> {
            let metrics = columns.iter().map(|c| (c.metric, self.series(scenario, peer, c.metric)));
            metrics.map(|(metric, rounds)| (metric, rounded(rounds))).collect()
        };
        let rows = peers.iter().map(|peer| json!({ "subject": peer, "rounds": metrics(peer) }));
        let measured = rows.filter(|row| {
            let mut all = row["rounds"].as_object().into_iter().flat_map(|r| r.values());
            all.any(|rounds| rounds.as_array().is_some_and(|r| r.iter().any(Value::is_number)))
        });
        let rows: Vec<Value> = measured.collect();
        let column = |c: &Column| json!({ "metric": c.metric, "decimals": c.decimals });
        let columns: Vec<Value> = columns.iter().map(column).collect();
        let scenario = json!({ "name": scenario, "what": what, "columns": columns, "rows": rows });
        self.scenarios.push(scenario);
    }

    /// Prints the bars, unless the run was too short to judge anything, and keeps them for `json`.
    pub fn judge(&mut self, bars: Vec<Bar>, quick: bool) {
        if !quick && !bars.is_empty() {
            let head =
                ["bar (median of the rounds' ratios)", "limit", "median", "interval", "verdict"];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(bars.iter().map(Bar::row));
            println!("{}", markdown(&rows));
        }
        self.bars.extend(bars);
    }

    /// The scenarios and the bars, as printed so far, with every round. A round that failed is null.
    pub fn json(&self) -> (Value, Value) {
        (self.scenarios.clone().into(), self.bars.iter().map(Bar::json).collect())
    }

    /// A Markdown table of medians, with a row for each peer that was measured.
    fn table(&self, scenario: &str, peers: &[&str], columns: &[Column]) -> String {
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
pub fn number(value: f64, decimals: usize) -> String {
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

/// Six digits are more than any of these figures is worth.
fn rounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| format!("{value:.5e}").parse().unwrap_or(f64::NAN)).collect()
}

/// JSON whose values of up to a hundred characters have a line each.
pub fn pretty(value: &Value, indent: usize) -> String {
    let flat = value.to_string();
    let inner = " ".repeat(indent + 1);
    let lines: Vec<String> = match value {
        Value::Array(items) if flat.len() > 100 => {
            items.iter().map(|item| format!("{inner}{}", pretty(item, indent + 1))).collect()
        }
        Value::Object(fields) if flat.len() > 100 => {
            let line =
                |(name, field)| format!("{inner}{}: {}", json!(name), pretty(field, indent + 1));
            fields.iter().map(line).collect()
        }
        _ => return flat,
    };
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    format!("{open}\n{}\n{}{close}", lines.join(",\n"), " ".repeat(indent))
}

/// Rows of equal length as an aligned Markdown table: the first row is the head, the first column
/// is flush left.
pub fn markdown(rows: &[Vec<String>]) -> String {
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

    fn limit(&self) -> String {
        match self.limit {
            Limit::AtLeast(bar) => format!("≥ {bar}"),
            Limit::AtMost(bar) => format!("≤ {bar}"),
        }
    }

    fn verdict(&self) -> &'static str {
        if stats::median(&self.rounds).is_nan() {
            return "not measured";
        }
        match self.limit.judge(stats::interval(&self.rounds)) {
            Judgement::Pass => "PASS",
            Judgement::Fail => "FAIL",
            Judgement::WithinNoise => "within noise",
        }
    }

    fn row(&self) -> Vec<String> {
        let (low, high) = stats::interval(&self.rounds);
        let range = match low.is_nan() {
            true => "–".into(),
            false => format!("{} … {}", number(low, 3), number(high, 3)),
        };
        let median = number(stats::median(&self.rounds), 3);
        vec![self.what.clone(), self.limit(), median, range, self.verdict().into()]
    }

    fn json(&self) -> Value {
        let (low, high) = stats::interval(&self.rounds);
        let figures = rounded(&[stats::median(&self.rounds), low, high]);
        json!({
            "what": self.what,
            "limit": self.limit(),
            "rounds": rounded(&self.rounds),
            "median": figures[0],
            "interval": figures[1..],
            "verdict": self.verdict(),
        })
    }
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
    fn json_has_every_round_and_the_verdicts() {
        let mut results = Results::default();
        for value in [1.0, f64::NAN, 1_234_567.0] {
            results.add("s", "a", "m", value);
        }
        results.print(
            "s",
            "three rounds",
            &["a", "absent"],
            &[Column { metric: "m", decimals: 1 }],
        );
        results.judge(vec![Bar::absolute("small", Limit::AtMost(2.0), &[1.0, 0.5])], true);
        let (scenarios, bars) = results.json();
        let rows = json!([{ "subject": "a", "rounds": { "m": [1.0, null, 1_234_570.0] } }]);
        let columns = json!([{ "metric": "m", "decimals": 1 }]);
        let scenario =
            json!({ "name": "s", "what": "three rounds", "columns": columns, "rows": rows });
        assert_eq!(scenarios, json!([scenario]));
        assert_eq!(bars[0]["verdict"], "PASS");
        assert_eq!(bars[0]["interval"], json!([0.5, 1.0]));
        assert_eq!(pretty(&scenarios, 0).parse::<Value>().unwrap(), scenarios);
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
