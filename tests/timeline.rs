//! The timeline of a pool: what it shows, what it loses, and that its JSON is of the Trace Event format.
#![cfg(not(loom))]

mod common;

use common::{Count, Gate, finish, hang_guard, until};
use paceline::hub::Hub;
use paceline::task::{Attempt, WorkerPool};
use paceline::{Error, Flow, Pool, Trace};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the format has, with the types that it prescribes. What it does not know is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document {
    display_time_unit: String,
    other_data: Figures,
    trace_events: Vec<Event>,
}

#[derive(Deserialize)]
struct Figures {
    records: usize,
    lost: u64,
    recorded_seconds: f64,
    whole_seconds: f64,
    summary: String,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
struct Event {
    ph: char,
    name: String,
    cat: Option<String>,
    pid: u32,
    tid: u32,
    ts: Option<f64>,
    dur: Option<f64>,
    s: Option<char>,
    id: Option<u64>,
    bp: Option<char>,
    #[serde(default)]
    args: BTreeMap<String, serde_json::Value>,
}

impl Event {
    fn is(&self, category: &str) -> bool {
        self.cat.as_deref() == Some(category)
    }

    /// In nanoseconds.
    fn span(&self) -> (u64, u64) {
        let nanos = |micros: f64| (micros * 1000.0).round() as u64;
        let at = nanos(self.ts.unwrap());
        (at, at + self.dur.map_or(0, nanos))
    }
}

/// What a trace shows, having been held to the format.
fn read(trace: &Trace) -> Vec<Event> {
    let document: Document = serde_json::from_str(&trace.to_json()).unwrap();
    assert_eq!(document.display_time_unit, "ns");
    assert_eq!(document.other_data.records, trace.records());
    assert_eq!(document.other_data.lost, trace.lost());
    assert_eq!(document.other_data.recorded_seconds, trace.recorded().as_secs_f64());
    assert_eq!(document.other_data.whole_seconds, trace.whole().as_secs_f64());
    assert!(trace.whole() <= trace.recorded());
    let is_whole = document.other_data.summary.starts_with("all of ");
    assert_eq!(is_whole, trace.lost() == 0, "{}", document.other_data.summary);
    assert_eq!(is_whole, trace.whole() == trace.recorded());
    let events = document.trace_events;
    let mut last = 0.0;
    for event in &events {
        assert_eq!(event.pid, 1, "{event:?}");
        if event.ph == 'M' {
            assert!(event.ts.is_none() && event.args["name"].is_string(), "{event:?}");
            continue;
        }
        let at = event.ts.unwrap();
        assert!(at >= last && event.cat.is_some(), "{event:?}");
        last = at;
        match event.ph {
            'X' => assert!(event.dur.is_some(), "{event:?}"),
            'i' => assert_eq!((event.s, event.dur), (Some('t'), None), "{event:?}"),
            's' => assert!(event.id.is_some() && event.bp.is_none(), "{event:?}"),
            'f' => assert!(event.id.is_some() && event.bp == Some('e'), "{event:?}"),
            _ => panic!("{event:?}"),
        }
    }
    check_flows(&events);
    check_nesting(&events);
    events
}

/// Each arrow has one beginning, and one end that is not before it.
fn check_flows(events: &[Event]) {
    let of = |phase: char| {
        let flows = events.iter().filter(move |event| event.ph == phase);
        flows.map(|event| (event.id.unwrap(), event.span().0)).collect::<BTreeMap<_, _>>()
    };
    let (begun, ended) = (of('s'), of('f'));
    assert!(begun.keys().eq(ended.keys()), "{begun:?} {ended:?}");
    assert!(begun.iter().all(|(id, at)| *at <= ended[id]), "{begun:?} {ended:?}");
}

/// Spans of a thread are apart, or one is within the other.
fn check_nesting(events: &[Event]) {
    let mut threads = BTreeMap::<u32, Vec<&Event>>::new();
    for event in events.iter().filter(|event| event.ph == 'X') {
        threads.entry(event.tid).or_default().push(event);
    }
    for spans in threads.values() {
        let mut open: Vec<&Event> = Vec::new();
        for &span in spans {
            let (at, end) = span.span();
            while open.last().is_some_and(|around| around.span().1 <= at) {
                open.pop();
            }
            if let Some(around) = open.last() {
                assert!(end <= around.span().1, "{span:?} is not within {around:?}");
            }
            open.push(span);
        }
    }
}

fn pool() -> Pool {
    Pool::builder().threads(2).build().unwrap()
}

/// Goal: everything that a pool does is there. Method: some of it is done.
#[test]
fn a_trace_shows_what_threads_did() {
    let _guard = hang_guard();
    let pool = pool();
    until("the other one sleeps", || pool.stats().parked == 1);
    let recording = pool.record().unwrap();
    let hub = Hub::builder(&pool).build().unwrap();
    let seen = Count::new();
    let heard = seen.clone();
    let _subscription = hub.subscribe("orders.*", move |_| heard.up()).unwrap();
    let _receipt = hub.publish("orders.new", b"1").unwrap();
    seen.until(1);
    // A thread that is awake would take the lead by itself.
    until("the other one sleeps again", || pool.stats().parked == 1);
    let (gate, ran) = (Gate::new(), Count::new());
    let (held, count) = (gate.clone(), ran.clone());
    let soon = Duration::from_millis(1);
    let _blocks = pool.after(soon, move || held.wait()).unwrap();
    gate.until_entered(1);
    // Leadership lies where nobody takes it: the watch steps in.
    let _other = pool.after(soon, move || count.up()).unwrap();
    ran.until(1);
    gate.open();
    pool.submit(|| ()).unwrap().wait().unwrap();
    let events = read(&recording.finish());
    let has = |category: &str| events.iter().any(|event| event.is(category));
    for category in ["lead", "wait", "handle", "run", "park", "watch", "wake", "rescue"] {
        assert!(has(category), "{category}: {events:?}");
    }
    let harvest = |event: &Event| event.is("lead") && event.args["harvest"].as_u64() >= Some(1);
    assert!(events.iter().any(harvest), "{events:?}");
    let run = events.iter().find(|event| event.is("run") && event.name == "orders.*");
    assert!(run.is_some(), "{events:?}");
    let rescue = events.iter().find(|event| event.is("rescue")).unwrap();
    assert!(rescue.args["runs"].as_str().unwrap().contains("a_trace_shows"), "{rescue:?}");
    assert!(events.iter().any(|event| event.ph == 'f'), "{events:?}");
    finish(&pool);
}

/// Goal: what blocks is there though it has not ended, once, with its name and all of its time. Method: it begins before
/// the recording, and ends after it.
#[test]
fn a_handler_that_blocks_is_a_long_span() {
    let _guard = hang_guard();
    let pool = pool();
    let gate = Gate::new();
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    gate.until_entered(1);
    let recording = pool.record().unwrap();
    let time = Duration::from_millis(20);
    std::thread::sleep(time);
    let events = read(&recording.finish());
    gate.open();
    let long: Vec<_> = events.iter().filter(|event| event.is("handle")).collect();
    assert_eq!(long.len(), 1, "{events:?}");
    let (at, end) = long[0].span();
    assert!(u128::from(end - at) >= time.as_nanos(), "{long:?}");
    assert!(long[0].name.contains("a_handler_that_blocks"), "{long:?}");
    finish(&pool);
}

#[test]
fn what_finds_no_room_is_counted() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let recording = pool.record_up_to(64).unwrap();
    let ran = Count::new();
    for _ in 0..1000 {
        let count = ran.clone();
        pool.post(move || count.up()).unwrap();
    }
    ran.until(1000);
    let trace = recording.finish();
    let events = read(&trace);
    assert!(trace.lost() >= 1000 - 64, "{}", trace.lost());
    let handled = events.iter().filter(|event| event.is("handle")).count();
    assert!(handled <= 64 && trace.records() <= 3 * 64, "{handled} {}", trace.records());
    // The thread's track begins with what is missing there, up to the first record that is not.
    let gaps: Vec<_> = events.iter().filter(|event| event.is("lost") && event.tid == 1).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let others =
        events.iter().filter(|event| event.ph == 'X' && event.tid == 1 && !event.is("lost"));
    let first = others.map(|event| event.span().0).min().unwrap();
    assert_eq!(gaps[0].span(), (0, first));
    assert!(trace.whole().as_nanos() + u128::from(first) <= trace.recorded().as_nanos());
    finish(&pool);
}

#[test]
fn a_pool_is_recorded_once_at_a_time() {
    let _guard = hang_guard();
    let pool = pool();
    let first = pool.record().unwrap();
    let error = pool.record().unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("at a time"));
    drop(first);
    let second = pool.record().unwrap();
    drop(second.finish());
    for records in [0, 63, (1 << 24) + 1] {
        let error = pool.record_up_to(records).unwrap_err();
        assert!(error.to_string().contains(&records.to_string()), "{error}");
    }
    finish(&pool);
    assert!(matches!(pool.record(), Err(Error::ShutDown)));
}

/// On the pool's only thread.
#[test]
fn a_handler_may_wait_for_a_trace() {
    let _guard = hang_guard();
    let pool = pool();
    let inner = pool.clone();
    let trace = pool.submit(move || inner.trace(Duration::from_millis(1)).unwrap());
    let events = read(&trace.unwrap().wait().unwrap());
    assert!(events.iter().any(|event| event.is("handle")));
    finish(&pool);
}

/// Goal: a name may hold anything. Method: that of a task type does, and a parser reads it back.
#[test]
fn names_of_any_kind_come_through() {
    let _guard = hang_guard();
    let pool = pool();
    let workers = WorkerPool::new(&pool);
    let name = "\"quotes\"\\,</script>\u{1}\u{7f}ü\u{2028}{";
    let recording = pool.record().unwrap();
    workers.task(name, |_: &Attempt| ()).submit().unwrap().wait().unwrap();
    pool.submit(|| ()).unwrap().wait().unwrap();
    let events = read(&recording.finish());
    assert!(events.iter().any(|event| event.is("run") && event.name == name), "{events:?}");
    finish(&pool);
}

/// Goal: recordings may start and end at any moment of what threads do. Method: many, beside work of several kinds.
#[test]
fn recordings_that_start_amid_work_are_sound() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(3).build().unwrap();
    let ticks = Count::new();
    let count = ticks.clone();
    let every = pool.every(Duration::from_micros(50), move || {
        count.up();
        Flow::Wait
    });
    let every = every.unwrap();
    let strand = pool.strand().unwrap();
    for round in 1..=50 {
        let recording = pool.record_up_to(4096).unwrap();
        for _ in 0..20 {
            strand.post(|| ()).unwrap();
            pool.post(std::thread::yield_now).unwrap();
        }
        ticks.until(round * 3);
        let _events = read(&recording.finish());
    }
    drop(every);
    finish(&pool);
}
