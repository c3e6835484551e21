//! The text for Prometheus.

use crate::common::skipped;
use paceline::metrics::{Registry, Snapshot, SystemFigures, TextFormat, Unit};
use proptest::prelude::*;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What must be escaped, and what need not.
const AWKWARD: [&str; 7] =
    ["plain", "a \"quoted\" one", "back\\slash", "two\nlines", "{a=\"b\"} 1", "ü→😀", ""];

fn awkward() -> Registry {
    let registry = Registry::new();
    for (index, text) in AWKWARD.into_iter().enumerate() {
        let labels = [("text", text), ("index", &index.to_string())];
        registry
            .counter("awkward", "Help with \\ and \"quotes\"\nand lines", &labels)
            .unwrap()
            .inc();
    }
    registry.gauge("level", "Level", &[]).unwrap().set(-0.125);
    registry.gauge("no_number", "", &[]).unwrap().set(f64::NAN);
    registry.gauge("no_end", "", &[]).unwrap().set(f64::INFINITY);
    registry
}

#[test]
fn the_text_is_as_expected() {
    let registry = Registry::new();
    registry.counter("hits", "Hits", &[("a", "x\"\\\ny")]).unwrap().add(3);
    let waits = registry.histogram("wait_seconds", "Waits", &[("q", "1")], Unit::Time).unwrap();
    waits.record_time(Duration::from_micros(3));
    waits.record_time(Duration::from_millis(4));
    waits.record_time(Duration::from_secs(100));
    let text = registry.snapshot().to_text(TextFormat::OpenMetrics);
    let expected = [
        "# HELP hits Hits",
        "# TYPE hits counter",
        "hits_total{a=\"x\\\"\\\\\\ny\"} 3.0",
        "# HELP wait_seconds Waits",
        "# TYPE wait_seconds histogram",
        "# UNIT wait_seconds seconds",
        "wait_seconds_sum{q=\"1\"} 100.004003",
        "wait_seconds_count{q=\"1\"} 3",
        "wait_seconds_bucket{le=\"0.000001\",q=\"1\"} 0",
        "wait_seconds_bucket{le=\"0.0000025\",q=\"1\"} 0",
        "wait_seconds_bucket{le=\"0.000005\",q=\"1\"} 1",
        "wait_seconds_bucket{le=\"0.0025\",q=\"1\"} 1",
        "wait_seconds_bucket{le=\"0.005\",q=\"1\"} 2",
        "wait_seconds_bucket{le=\"50.0\",q=\"1\"} 2",
        "wait_seconds_bucket{le=\"+Inf\",q=\"1\"} 3",
        "# TYPE wait_seconds_quantile summary",
        "wait_seconds_quantile{q=\"1\",quantile=\"0.999\"} 100.0",
        "# EOF",
    ];
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|it| it == line), "{line} in its place in\n{text}");
    }
    // The older format has the same samples, and other lines around them.
    let older = registry.snapshot().to_prometheus();
    let samples = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(samples(&older), samples(&text));
    assert!(older.starts_with("# HELP hits_total Hits\n# TYPE hits_total counter\nhits_total{"));
    assert!(!older.contains("# UNIT") && !older.contains("# EOF"), "{older}");
}

/// Goal: a collector gets the format that it asks for, with its media type. Method: what Prometheus, a browser
/// and curl send.
#[test]
fn the_format_is_the_one_that_is_wanted() {
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                      application/openmetrics-text;version=0.0.1;q=0.4,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let older = "text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5";
    for (accept, expected) in [
        (None, "text/plain; version=0.0.4; charset=utf-8"),
        (Some("*/*"), "text/plain; version=0.0.4; charset=utf-8"),
        (Some(browser), "text/plain; version=0.0.4; charset=utf-8"),
        (Some(older), "text/plain; version=0.0.4; charset=utf-8"),
        (Some(prometheus), "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        assert_eq!(TextFormat::negotiate(accept).media_type(), expected, "{accept:?}");
    }
}

/// Debian's package is for the system's own Python, which need not be the first on the path.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import prometheus_client.openmetrics.parser"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let python = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if python.is_none() {
        skipped("no python3 has prometheus_client");
    }
    python
}

/// A sample as a parser has understood it: name and labels, value, help.
type Understood = BTreeMap<(String, BTreeMap<String, String>), (f64, String)>;

fn understood(json: &Json) -> Understood {
    let sample = |sample: &Json| {
        let text = |json: &Json| json.as_str().unwrap().to_owned();
        let labels = sample[1].as_object().unwrap().iter();
        let labels = labels.map(|(name, value)| (name.clone(), text(value))).collect();
        ((text(&sample[0]), labels), (text(&sample[2]).parse().unwrap(), text(&sample[3])))
    };
    let samples = json.as_array().unwrap();
    let understood: Understood = samples.iter().map(sample).collect();
    assert_eq!(understood.len(), samples.len(), "no sample comes twice");
    understood
}

/// By the parser of the format. Says also which type each family has.
fn parse(python: &str, format: &str, text: &str) -> (Understood, Json) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/metrics/parse.py");
    let mut parser = Command::new(python)
        .args([script, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    parser.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let told = parser.wait_with_output().unwrap();
    assert!(told.status.success(), "{}\n{text}", String::from_utf8_lossy(&told.stderr));
    let json: Json = serde_json::from_slice(&told.stdout).unwrap();
    (understood(&json["samples"]), json["types"].clone())
}

/// By Prometheus's own check of names, types and help texts, and by the parsers of both formats.
pub fn accepted_by_parsers(snapshot: &Snapshot) {
    let text = snapshot.to_prometheus();
    let check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match check {
        Ok(mut check) => {
            check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let told = check.wait_with_output().unwrap();
            let told = (told.status.code(), String::from_utf8_lossy(&told.stderr).into_owned());
            assert_eq!(told, (Some(0), String::new()), "{text}");
        }
        Err(_) => skipped("no promtool: it is in Debian's package prometheus"),
    }
    let Some(python) = python() else { return };
    let (classic, _) = parse(python, "prometheus", &text);
    let (exact, _) = parse(python, "openmetrics", &snapshot.to_text(TextFormat::OpenMetrics));
    assert_eq!(format!("{classic:?}"), format!("{exact:?}"));
}

#[test]
fn the_official_parser_understands_what_was_meant() {
    let Some(python) = python() else { return };
    let registry = awkward();
    let waits = registry.histogram("wait_seconds", "Waits", &[("q", "a\"b")], Unit::Time).unwrap();
    for micros in 1..=1000 {
        waits.record_time(Duration::from_micros(micros));
    }
    SystemFigures::new().disk("/").attach(&registry);
    let snapshot = registry.snapshot();
    let (classic, types) = parse(python, "prometheus", &snapshot.to_prometheus());
    let exact = snapshot.to_text(TextFormat::OpenMetrics);
    let (samples, exact_types) = parse(python, "openmetrics", &exact);
    // A value may be no number, which does not equal itself.
    assert_eq!(format!("{classic:?}"), format!("{samples:?}"));
    for types in [types, exact_types] {
        let of = |name: &str| types[name].as_str().unwrap_or("none").to_owned();
        let told = ["awkward", "level", "wait_seconds", "wait_seconds_quantile"].map(of);
        assert_eq!(told, ["counter", "gauge", "histogram", "summary"]);
        let all = types.as_object().unwrap();
        let known = ["counter", "gauge", "histogram", "summary"];
        assert!(all.values().all(|of| known.contains(&of.as_str().unwrap())), "{types:#}");
    }
    let sample = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let found = samples.get(&(name.into(), labels));
        found.unwrap_or_else(|| panic!("{name} in {samples:#?}")).clone()
    };
    for (index, text) in AWKWARD.into_iter().enumerate() {
        let index = index.to_string();
        let (value, help) = sample("awkward_total", &[("text", text), ("index", &index)]);
        assert_eq!((value, help.as_str()), (1.0, "Help with \\ and \"quotes\"\nand lines"));
    }
    assert_eq!(sample("level", &[]).0, -0.125);
    assert!(sample("no_number", &[]).0.is_nan());
    assert_eq!(sample("no_end", &[]).0, f64::INFINITY);
    let q = ("q", "a\"b");
    assert_eq!(sample("wait_seconds_count", &[q]).0, 1000.0);
    for (bound, count) in
        [("0.00001", 10.0), ("0.0001", 100.0), ("0.001", 1000.0), ("+Inf", 1000.0)]
    {
        assert_eq!(sample("wait_seconds_bucket", &[q, ("le", bound)]).0, count);
    }
    assert!((sample("wait_seconds_sum", &[q]).0 - 0.5005).abs() < 1e-9);
    let p99 = sample("wait_seconds_quantile", &[q, ("quantile", "0.99")]).0;
    assert!((p99 / 990e-6 - 1.0).abs() < 0.01, "{p99}");
    // Every figure of the snapshot has arrived; a histogram has 24 buckets, +Inf, sum, count and four
    // quantiles.
    let numbers = snapshot.families.iter().flat_map(|family| &family.samples);
    let expected: usize =
        numbers.map(|sample| if sample.value.number().is_some() { 1 } else { 24 + 3 + 4 }).sum();
    assert_eq!(samples.len(), expected);
}

/// Name, labels, value.
type Written = (String, BTreeMap<String, String>, f64);

/// One sample as the grammar of the format has it, read letter by letter. It knows nothing of what wrote it.
fn sample_of(line: &str) -> Option<Written> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let name_of = |text: &str| -> Option<(String, usize)> {
        let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
        let starts_well = text.starts_with(|c: char| is_of_name(c) && !c.is_ascii_digit());
        starts_well.then(|| (text[..end].to_owned(), end))
    };
    let (name, end) = name_of(line)?;
    let mut rest = &line[end..];
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, end) = name_of(rest)?;
            rest = rest[end..].strip_prefix("=\"")?;
            let mut value = String::new();
            let mut letters = rest.char_indices();
            let end = loop {
                match letters.next()? {
                    (end, '"') => break end + 1,
                    (_, '\\') => value.push(match letters.next()?.1 {
                        'n' => '\n',
                        letter @ ('\\' | '"') => letter,
                        _ => return None,
                    }),
                    (_, letter) => value.push(letter),
                }
            };
            labels.insert(label, value).is_none().then_some(())?;
            match (rest[end..].strip_prefix(','), rest[end..].strip_prefix('}')) {
                (Some(more), _) => rest = more,
                (None, behind) => break rest = behind?,
            }
        }
    }
    Some((name, labels, rest.strip_prefix(' ')?.parse().ok()?))
}

/// The samples and help texts of a text whose every line is one that the format knows.
fn read(text: &str) -> (Vec<Written>, Vec<String>) {
    let (mut samples, mut helps) = (vec![], vec![]);
    for line in text.strip_suffix("# EOF\n").unwrap_or(text).split_terminator('\n') {
        match line.strip_prefix("# ") {
            Some(comment) => match comment.split_once(' ') {
                Some(("HELP", help)) => helps.push(help.split_once(' ').unwrap().1.to_owned()),
                Some(("TYPE" | "UNIT", _)) => {}
                _ => panic!("{line:?} in {text}"),
            },
            None => samples.push(sample_of(line).unwrap_or_else(|| panic!("{line:?} in {text}"))),
        }
    }
    (samples, helps)
}

proptest! {
    /// Goal: whatever names, help texts and labels are, the text has what was accepted, and nothing else. Method:
    /// arbitrary texts, and an independent reader of the grammar.
    #[test]
    fn no_name_and_no_label_breaks_the_format(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,6}|\\PC{0,6}",
        label in "[a-zA-Z_][a-zA-Z0-9_]{0,6}|\\PC{0,6}",
        value in ".{0,12}|[\"\\\\\n\r{}=,# ]{0,12}",
        help in ".{0,12}|[\"\\\\\n\r]{0,12}",
        figure in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
    ) {
        let registry = Registry::new();
        let (of, is, about) = (name.clone(), label.clone(), help.clone());
        let text = value.clone();
        registry.collect(move |collector| {
            collector.gauge(&of, &about, &[(&*is, &*text)], figure);
            true
        });
        let snapshot = registry.snapshot();
        let accepted = snapshot.family(&name).is_some();
        prop_assert_eq!(accepted, snapshot.failures == 0);
        for format in [TextFormat::Prometheus, TextFormat::OpenMetrics] {
            let written = snapshot.to_text(format);
            let (samples, helps) = read(&written);
            let labels = BTreeMap::from([(label.clone(), value.clone())]);
            let expected: Vec<_> =
                accepted.then(|| (name.clone(), labels, figure)).into_iter().collect();
            prop_assert_eq!(samples, expected);
            prop_assert_eq!(helps.len(), usize::from(accepted));
        }
        let json: Json = serde_json::from_str(&snapshot.to_json()).unwrap();
        if accepted {
            let sample = &json["families"][0]["samples"][0];
            prop_assert_eq!(&sample["labels"][&label], &Json::from(value));
        }
    }
}
