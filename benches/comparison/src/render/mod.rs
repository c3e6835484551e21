//! docs/BENCHMARKS.md and its pictures, made from the JSON that the comparisons write. `page.md` beside this is its prose;
//! `{{…}}` in it stands for what the JSON says:
//!
//! - `{{echo.run}}`, `{{echo.table}}`, `{{echo.behind}}`, `{{echo.bars}}`: where and how `echo` was measured, its table, the
//!   figures in which paceline is behind a rival, and the bars;
//! - `{{echo: c50; paceline; p99 µs}}`: a median; `{{echo: c50; paceline / tokio; p99 µs}}`: a ratio of medians;
//! - `{{machines}}`, `{{versions}}`: of all that took part.
//!
//! Nothing but the standard library, serde_json and two files of this crate is used, since tests/benchmarks.rs of the
//! library includes this module.

mod areas;
mod chart;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::report::{self, number};
use crate::stats;
use areas::{AREAS, Area, Better, Measure, Plot, README, SCALE};
use chart::{Bar, Panel};

const PAGE: &str = include_str!("page.md");

/// What the comparisons wrote, by their names.
pub type Runs = BTreeMap<String, Run>;

/// One comparison, measured in one run or in several with other scenarios, rounds or windows.
#[derive(Default)]
pub struct Run(Vec<Value>);

pub fn read(files: &[PathBuf]) -> Result<Runs, String> {
    let mut files = files.to_vec();
    files.sort();
    let mut runs = Runs::new();
    for file in files {
        let failed = |error: &dyn Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| failed(&error))?;
        let json: Value = text.parse().map_err(|error| failed(&error))?;
        let name = json["comparison"].as_str().ok_or_else(|| failed(&"no comparison wrote it"))?;
        runs.entry(name.to_owned()).or_default().0.push(json);
    }
    Ok(runs)
}

/// The files to write, by their paths in docs.
pub fn render(runs: &Runs) -> Result<Vec<(String, String)>, String> {
    let mut files = vec![("BENCHMARKS.md".to_owned(), wrapped(&fill(PAGE, runs)?))];
    for area in &AREAS {
        let svg = picture(run(runs, area.name)?, &area.plot);
        files.push((format!("benchmarks/{}.svg", area.name), svg));
    }
    files.push(("benchmarks/readme.svg".to_owned(), picture(run(runs, "echo")?, &README)));
    Ok(files)
}

/// The table of `scale`, which is in the guide.
pub fn scale(runs: &Runs) -> Result<String, String> {
    Ok(run(runs, "scale")?.table(&SCALE))
}

fn run<'a>(runs: &'a Runs, name: &str) -> Result<&'a Run, String> {
    runs.get(name).ok_or_else(|| format!("there is no JSON of {name:?}"))
}

/// The template with its references resolved.
fn fill(template: &str, runs: &Runs) -> Result<String, String> {
    let mut parts = template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (reference, rest) = part.split_once("}}").ok_or("a reference without an end")?;
        page +=
            &resolve(reference, runs).map_err(|error| format!("{{{{{reference}}}}}: {error}"))?;
        page += rest;
    }
    Ok(page)
}

/// Paragraphs in lines of up to 120 characters; tables, lists, code and headings as they are.
fn wrapped(page: &str) -> String {
    const WIDTH: usize = 120;
    let mut blocks = Vec::new();
    for block in page.trim_end().split("\n\n") {
        if block.starts_with(['|', '-', '`', '#', '<', '!']) && !block.starts_with("`comparison") {
            blocks.push(block.to_owned());
            continue;
        }
        let (mut lines, mut line) = (String::new(), String::new());
        for word in block.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines += &format!("{}\n", std::mem::take(&mut line));
            }
            line += if line.is_empty() { "" } else { " " };
            line += word;
        }
        blocks.push(lines + &line);
    }
    blocks.join("\n\n") + "\n"
}

fn resolve(reference: &str, runs: &Runs) -> Result<String, String> {
    match reference {
        "versions" => return Ok(versions(runs)),
        "machines" => return Ok(machines(runs)),
        _ => {}
    }
    if let Some((name, figure)) = reference.split_once(": ") {
        return run(runs, name)?.inline(figure);
    }
    let (name, part) = reference.split_once('.').ok_or("no such reference")?;
    let area = AREAS.iter().find(|area| area.name == name).ok_or("no such area")?;
    let run = run(runs, name)?;
    match part {
        "run" => Ok(run.description()),
        "table" => Ok(run.table(area.columns)),
        "behind" => Ok(run.behind(area)),
        "bars" => Ok(run.bars()),
        _ => Err("no such part".into()),
    }
}

fn versions(runs: &Runs) -> String {
    let all: BTreeMap<&String, &Value> = runs
        .values()
        .flat_map(|run| &run.0)
        .filter_map(|part| part["machine"]["versions"].as_object())
        .flatten()
        .filter(|(name, _)| *name != "paceline")
        .collect();
    let texts = all.iter().map(|(name, version)| format!("{name} {}", words(version)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Each machine and day, with what was measured there and then.
fn machines(runs: &Runs) -> String {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, run) in runs {
        for part in &run.0 {
            let names = all.entry(machine(part)).or_default();
            if names.last() != Some(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let is_one = all.len() == 1;
    let line = |(machine, names): (String, Vec<&str>)| match is_one {
        true => machine,
        false => format!("{machine} ({})", names.join(", ")),
    };
    all.into_iter().map(line).collect::<Vec<_>>().join("; ")
}

/// A text without its quotes, or whatever else it is.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Run {
    fn scenario(&self, name: &str) -> &Value {
        let mut scenarios = self.0.iter().flat_map(scenarios);
        scenarios.find(|scenario| scenario["name"] == name).unwrap_or(&Value::Null)
    }

    fn rows(&self, scenario: &str) -> &[Value] {
        self.scenario(scenario)["rows"].as_array().map_or(&[], Vec::as_slice)
    }

    fn subjects(&self, scenario: &str) -> impl Iterator<Item = &str> {
        self.rows(scenario).iter().filter_map(|row| row["subject"].as_str())
    }

    /// The figures by round; a round that failed is NaN.
    fn rounds(&self, scenario: &str, subject: &str, metric: &str) -> Vec<f64> {
        let row = self.rows(scenario).iter().find(|row| row["subject"] == subject);
        let rounds = row.and_then(|row| row["rounds"][metric].as_array());
        rounds.into_iter().flatten().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
    }

    fn median(&self, scenario: &str, subject: &str, metric: &str) -> f64 {
        stats::median(&self.rounds(scenario, subject, metric))
    }

    fn decimals(&self, scenario: &str, metric: &str) -> usize {
        let columns = self.scenario(scenario)["columns"].as_array();
        let column = columns.into_iter().flatten().find(|column| column["metric"] == metric);
        column.and_then(|column| column["decimals"].as_u64()).unwrap_or(0) as usize
    }

    /// `scenario; subject; metric` or `scenario; one / other; metric`.
    fn inline(&self, figure: &str) -> Result<String, String> {
        let parts: Vec<&str> = figure.split("; ").collect();
        let [scenario, subject, metric] = parts[..] else {
            return Err("not scenario; subject; metric".into());
        };
        let columns = self.scenario(scenario)["columns"].as_array();
        if columns.is_some_and(|columns| columns.iter().all(|column| column["metric"] != metric)) {
            return Err("no such metric".into());
        }
        Ok(match subject.split_once(" / ") {
            Some((ours, theirs)) => {
                let median = |subject| self.median(scenario, subject, metric);
                number(median(ours) / median(theirs), 2)
            }
            None => number(self.median(scenario, subject, metric), self.decimals(scenario, metric)),
        })
    }

    /// How long it was measured and how quietly, each part by itself.
    fn description(&self) -> String {
        let part = |part: &Value| {
            let names: Vec<&str> =
                scenarios(part).iter().filter_map(|s| s["name"].as_str()).collect();
            let names =
                if self.0.len() > 1 { format!("{}: ", names.join(", ")) } else { String::new() };
            let window = &part["seconds of a window"];
            let others = &part["percent of CPU time used by others"];
            let doubt = doubt(part).map_or(String::new(), |doubt| format!(" **{doubt}**"));
            format!(
                "{names}{} of {window} s; other processes: {others} % of the CPU time.{doubt}",
                rounds(part)
            )
        };
        self.0.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    /// A row for each subject, a column for each measure.
    fn table(&self, columns: &[Measure]) -> String {
        let mut subjects: Vec<&str> = Vec::new();
        for subject in columns.iter().flat_map(|column| self.subjects(column.scenario)) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        let headings = columns.iter().map(|column| column.heading.to_owned());
        let mut rows = vec![std::iter::once(String::new()).chain(headings).collect::<Vec<_>>()];
        for subject in subjects {
            let cells = columns.iter().map(|Measure { scenario, metric, .. }| {
                number(self.median(scenario, subject, metric), self.decimals(scenario, metric))
            });
            rows.push(std::iter::once(subject.to_owned()).chain(cells).collect());
        }
        report::markdown(&rows)
    }

    /// The columns of the table in which the best of the others is better, and by what ratio.
    fn behind(&self, area: &Area) -> String {
        // A floor is no server, and batches are not compared with what goes one by one.
        let is_rival = |name: &&str| {
            !name.starts_with("paceline") && *name != "floor" && !name.ends_with("-x16")
        };
        let mut behind = Vec::new();
        for Measure { scenario, metric, heading, better } in area.columns {
            let median = |subject: &str| self.median(scenario, subject, metric);
            let ours = median(area.ours);
            // How many times worse ours is.
            let times = |rival: &str| match better {
                Better::Less => ours / median(rival),
                Better::More => median(rival) / ours,
            };
            let rivals =
                self.subjects(scenario).filter(is_rival).filter(|rival| !times(rival).is_nan());
            let Some(best) = rivals.max_by(|a, b| times(a).total_cmp(&times(b))) else { continue };
            let (is_worse, ratio) = (times(best) >= 1.005, ours / median(best));
            if is_worse {
                behind.push(format!("{heading} ({ratio:.2} × {best})"));
            }
        }
        match behind.is_empty() {
            true => "**Behind the best rival** in no column.".into(),
            false => format!("**Behind the best rival** in {}.", behind.join(", ")),
        }
    }

    /// How many bars hold, and which do not.
    fn bars(&self) -> String {
        let all = || self.0.iter().filter_map(|part| part["bars"].as_array()).flatten();
        // A part says of each bar of another one that it was not measured.
        let is_measured = |bar: &Value| bar["verdict"] != "not measured";
        let elsewhere = |bar: &Value| all().any(|b| b["what"] == bar["what"] && is_measured(b));
        let bars: Vec<&Value> = all().filter(|bar| is_measured(bar) || !elsewhere(bar)).collect();
        let with = |verdict| bars.iter().filter(move |bar| bar["verdict"] == verdict);
        let figure = |value: &Value| number(value.as_f64().unwrap_or(f64::NAN), 2);
        let mut text = format!("**Bars**: {} of {} hold", with("PASS").count(), bars.len());
        for (verdict, says) in [("within noise", "within noise"), ("not measured", "not measured")]
        {
            match with(verdict).count() {
                0 => {}
                count => text += &format!(", {count} {says}"),
            }
        }
        let missed: Vec<String> = with("FAIL")
            .map(|bar| {
                let interval = &bar["interval"];
                format!(
                    "*{}* {} ({}…{}, bar {})",
                    words(&bar["what"]),
                    figure(&bar["median"]),
                    figure(&interval[0]),
                    figure(&interval[1]),
                    words(&bar["limit"]).replace(' ', ""),
                )
            })
            .collect();
        if missed.is_empty() {
            text + "; none is missed."
        } else {
            text + "; missed: " + &missed.join("; ") + "."
        }
    }
}

fn scenarios(part: &Value) -> &[Value] {
    part["scenarios"].as_array().map_or(&[], Vec::as_slice)
}

fn machine(part: &Value) -> String {
    let machine = &part["machine"];
    let kernel = words(&machine["kernel"]);
    // What a distributor appends to the version says nothing here.
    let kernel = kernel.split('-').next().unwrap_or_default();
    let (cpu, date) = (words(&machine["cpu"]), words(&machine["date"]));
    format!("{cpu}, {} cores, {kernel}, {date}", machine["cores"])
}

fn rounds(part: &Value) -> String {
    match part["rounds"].as_u64() {
        Some(1) => "1 round".into(),
        other => format!("{} rounds", other.unwrap_or(0)),
    }
}

/// Why these figures are not to be believed.
fn doubt(part: &Value) -> Option<&'static str> {
    const BUSY: u64 = 10;
    if part["quick"] == true {
        return Some("A smoke run: its figures mean nothing.");
    }
    let others = part["percent of CPU time used by others"].as_u64();
    others.is_some_and(|percent| percent >= BUSY).then_some("The machine was busy: measure again.")
}

/// A chart of two measures: the best subject first, under the names that the plot gives them.
fn picture(run: &Run, plot: &Plot) -> String {
    let panels = plot.panels.iter().map(|(measure, title)| {
        let Measure { scenario, metric, heading, better } = *measure;
        let mut bars: Vec<Bar> = run
            .subjects(scenario)
            .filter_map(|subject| {
                let (_, label) = plot.subjects.iter().find(|(name, _)| *name == subject)?;
                let value = run.median(scenario, subject, metric);
                let decimals = run.decimals(scenario, metric);
                let is_ours = label.starts_with("paceline");
                (!value.is_nan()).then_some(Bar {
                    label: (*label).to_owned(),
                    value,
                    decimals,
                    is_ours,
                })
            })
            .collect();
        bars.sort_by(|a, b| a.value.total_cmp(&b.value));
        let direction = match better {
            Better::Less => "less is better",
            Better::More => {
                bars.reverse();
                "more is better"
            }
        };
        Panel { title: (*title).to_owned(), unit: format!("{heading}; {direction}"), bars }
    });
    let panels: Vec<Panel> = panels.collect();
    let shows =
        |part: &&Value| scenarios(part).iter().any(|s| s["name"] == plot.panels[0].0.scenario);
    let part = run.0.iter().find(shows).unwrap_or(&Value::Null);
    let doubt = doubt(part).unwrap_or_default();
    let small_print = format!("{}; medians of {}. {doubt}", machine(part), rounds(part));
    let small_print = small_print.trim_end();
    chart::svg(plot.title, &panels, small_print)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AREA: Area = Area {
        name: "fixture",
        ours: "paceline",
        columns: &[
            Measure { scenario: "s", metric: "ns", heading: "time ns", better: Better::Less },
            Measure { scenario: "s", metric: "1/s", heading: "rate 1/s", better: Better::More },
        ],
        plot: Plot {
            title: "time and rate",
            panels: &[(
                Measure { scenario: "s", metric: "1/s", heading: "1/s", better: Better::More },
                "a rate",
            )],
            subjects: &[("paceline", "paceline"), ("rival", "a rival")],
        },
    };

    fn fixture() -> Runs {
        let row = |subject: &str, ns: Value, rate: Value| json!({ "subject": subject, "rounds": { "ns": ns, "1/s": rate } });
        let bar = |what: &str, verdict: &str| json!({ "what": what, "limit": "≤ 1", "median": 1.5, "interval": [1.25, 2.0], "verdict": verdict });
        let run = json!({
            "comparison": "fixture",
            "machine": {
                "cpu": "a CPU", "cores": 2, "kernel": "Linux 6.1.2-x", "date": "2026-01-02",
                "versions": { "rival": "7", "paceline": "0.1.0" },
            },
            "quick": false,
            "rounds": 3,
            "seconds of a window": 0.5,
            "percent of CPU time used by others": 1,
            "scenarios": [{
                "name": "s",
                "what": "a fixture",
                "columns": [{ "metric": "ns", "decimals": 1 }, { "metric": "1/s", "decimals": 0 }],
                "rows": [
                    row("paceline", json!([30.0, null, 10.0]), json!([1000.0, 2000.0, 1500.0])),
                    row("floor", json!([1.0, 1.0, 1.0]), json!([9000.0, 9000.0, 9000.0])),
                    row("rival", json!([10.0, 10.0, 10.0]), json!([500.0, 500.0, 500.0])),
                ],
            }],
            "bars": [bar("one", "PASS"), bar("two", "FAIL"), bar("three", "within noise")],
        });
        let other = json!({ "scenarios": [], "bars": [bar("two", "not measured"), bar("four", "not measured")] });
        Runs::from([("fixture".to_owned(), Run(vec![run, other]))])
    }

    #[test]
    fn a_table_has_the_medians() {
        let table = fixture()["fixture"].table(AREA.columns);
        let rows = [
            "|          | time ns | rate 1/s |",
            "|----------|--------:|---------:|",
            "| paceline |    20.0 |    1 500 |",
            "| floor    |     1.0 |    9 000 |",
            "| rival    |    10.0 |      500 |",
        ];
        assert_eq!(table.lines().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn what_is_behind_and_what_is_missed_is_said() {
        let runs = fixture();
        let run = &runs["fixture"];
        assert_eq!(run.behind(&AREA), "**Behind the best rival** in time ns (2.00 × rival).");
        let bars = "**Bars**: 1 of 4 hold, 1 within noise, 1 not measured; missed: *two* 1.50 (1.25…2.00, bar ≤1).";
        assert_eq!(run.bars(), bars);
        let says = "s: 3 rounds of 0.5 s; other processes: 1 % of the CPU time. ";
        assert!(run.description().starts_with(says), "{}", run.description());
        assert!(
            machines(&runs).contains("a CPU, 2 cores, Linux 6.1.2, 2026-01-02"),
            "{}",
            machines(&runs)
        );
    }

    #[test]
    fn references_are_resolved_or_refused() {
        let runs = fixture();
        let filled = |template: &str| fill(template, &runs);
        assert_eq!(filled("a {{fixture: s; rival; ns}} b").as_deref(), Ok("a 10.0 b"));
        assert_eq!(filled("{{fixture: s; paceline / rival; 1/s}} ×").as_deref(), Ok("3.00 ×"));
        assert_eq!(filled("{{fixture: s; absent; ns}}").as_deref(), Ok("–"));
        assert_eq!(filled("{{versions}}").as_deref(), Ok("rival 7"));
        for wrong in [
            "{{fixture: s; ns}}",
            "{{fixture: s; rival; other}}",
            "{{fixture.nothing}}",
            "{{nothing: s; rival; ns}}",
            "{{echo.table}}",
            "{{",
        ] {
            assert!(filled(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paragraphs_are_wrapped_and_nothing_else() {
        let paragraph = "word ".repeat(30);
        let long = format!("# {paragraph}");
        let page = wrapped(&format!("{}\n\n{paragraph}", long.trim_end()));
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[3]),
            (4, long.trim_end(), "word word word word word word")
        );
    }

    #[test]
    fn a_picture_has_the_best_first_and_no_strangers() {
        let svg = picture(&fixture()["fixture"], &AREA.plot);
        let (ours, theirs) = (svg.find(">paceline<").unwrap(), svg.find(">a rival<").unwrap());
        assert!(ours < theirs, "{svg}");
        assert!(!svg.contains("floor"), "{svg}");
        assert!(
            svg.contains("1/s; more is better") && svg.contains("medians of 3 rounds"),
            "{svg}"
        );
    }
}
