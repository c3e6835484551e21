//! What the live page is told.

use super::client::{Events, get};
use super::common::{Gate, hang_guard, until};
use paceline::cq::CompletionQueue;
use paceline::http::{Http, Request, Response};
use paceline::hub::{Hub, Message, Overflow};
use paceline::ops::Ops;
use paceline::task::{Fault, Phases, WorkerPool};
use paceline::{Error, Pin, Pool};
use serde_json::Value;
use std::time::Duration;

fn pool(threads: usize) -> Pool {
    Pool::builder().name("watched").threads(threads).pin(Pin::None).build().unwrap()
}

fn thread(event: &Value, state: &str) -> Option<Value> {
    let threads = event["threads"].as_array().unwrap();
    threads.iter().find(|thread| thread["state"] == state).cloned()
}

#[test]
fn an_idle_pool_has_one_leader_and_followers() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    let _first = events.next();
    let event = events.next();
    assert_eq!(event["threads"].as_array().unwrap().len(), 2, "{event}");
    assert_eq!(thread(&event, "leading").unwrap()["thread"], event["leaders"][0]);
    assert!(thread(&event, "following").is_some() || thread(&event, "watching").is_some());
    assert_eq!(event["health"]["ready"], true);
    assert_eq!(event["blocked"].as_array().unwrap().len(), 0);
    for thread in event["threads"].as_array().unwrap() {
        let strip = thread["strip"].as_str().unwrap();
        assert!(!strip.is_empty() && strip.bytes().all(|it| b"LHFWBP-".contains(&it)), "{strip}");
    }
}

/// All threads are blocked: the page still loads, and says so.
#[test]
fn a_pool_whose_threads_are_all_blocked_is_shown_as_that() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops =
        Ops::builder(&pool).blocked_after(Duration::from_millis(100)).serve("127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let gate = Gate::new();
    for _ in 0..2 {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(2);
    until("it is told", || get(at, "/health/live").body.matches(" is blocked in ").count() == 2);
    assert_eq!(get(at, "/").status, 200);
    let mut events = Events::open(at, "/events").ok().unwrap();
    let event = loop {
        let event = events.next();
        if event["blocked"].as_array().unwrap().len() == 2 {
            break event;
        }
    };
    assert_eq!(event["health"]["live"], true, "nothing waits");
    let summary = event["summary"].as_str().unwrap();
    assert!(summary.starts_with("2 of 2 blocked, by "), "{summary}");
    assert!(summary.contains(" · no leader for "), "{summary}");
    assert!(event["leaderless"][0].as_f64().unwrap() > 0.0, "{event}");
    // A closure is called as the function that it stands in.
    let name = event["blocked"][0]["name"].as_str().unwrap();
    assert!(name.ends_with("a_pool_whose_threads_are_all_blocked_is_shown_as_that"), "{name}");
    let _timer = pool.after(Duration::from_millis(1), || ()).unwrap();
    let event = loop {
        let event = events.next();
        if event["summary"].as_str().unwrap().contains("a timer that is due has waited for ") {
            break event;
        }
    };
    assert_eq!(event["overdue_timers"], 1);
    assert!(event["threads"].as_array().unwrap().iter().all(|thread| thread["state"] == "blocked"));
    gate.open();
    until("it is well again", || get(at, "/health/live").body == "ok\n");
    let mut late = 0.0_f64;
    loop {
        let event = events.next();
        late = late.max(event["figures"]["cards"]["timers"]["p99"].as_f64().unwrap_or(0.0));
        if event["blocked"].as_array().unwrap().is_empty() && late > 0.1 {
            break;
        }
    }
}

/// A thread of the program's that waits at a completion queue handles what it was brought outside the pool.
#[test]
fn a_host_that_is_blocked_outside_the_pool_is_shown() {
    let _guard = hang_guard();
    let pool = pool(0);
    let ops =
        Ops::builder(&pool).blocked_after(Duration::from_millis(100)).serve("127.0.0.1:0").unwrap();
    let queue = CompletionQueue::new(&pool).unwrap();
    let gate = Gate::new();
    let (visitor, hosted) = (gate.clone(), queue.clone());
    let host = std::thread::spawn(move || {
        let mut entries = Vec::new();
        while hosted.wait(&mut entries, 8, Duration::from_secs(600)).is_ok() {
            if !entries.is_empty() {
                visitor.wait();
            }
            entries.clear();
        }
    });
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    while thread(&events.next(), "leading").is_none() {}
    queue.post(&[7]).unwrap();
    gate.until_entered(1);
    let blocked = loop {
        if let Some(blocked) = thread(&events.next(), "blocked") {
            break blocked;
        }
    };
    assert_eq!((&blocked["thread"], &blocked["running"]), (&0.into(), &Value::Null));
    // Whoever knows what it handles says so.
    let host_id = pool.stats().threads[0].native_id.unwrap();
    pool.name_host(host_id, "orders.shipped").unwrap();
    assert_eq!(pool.stats().threads[0].running, Some("orders.shipped"));
    let event = loop {
        let event = events.next();
        if event["blocked"][0]["name"] == "orders.shipped" {
            break event;
        }
    };
    assert!(
        event["summary"].as_str().unwrap().contains("blocked, by orders.shipped for "),
        "{event}"
    );
    let stale = pool.name_host(0, "this one").unwrap_err();
    assert!(matches!(stale, Error::Stale { .. }), "{stale}");
    gate.open();
    while thread(&events.next(), "leading").is_none() {}
    // It waits again: what it had is no longer what it handles.
    assert!(pool.name_host(host_id, "orders.shipped").is_err());
    queue.close();
    host.join().unwrap();
    // Its thread has ended: it handles nothing.
    while thread(&events.next(), "away").is_none() {}
}

/// A first report would show all that was since the start as of its second.
#[test]
fn what_was_before_the_first_viewer_is_in_no_rate() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    for _ in 0..200 {
        pool.submit(|| ()).unwrap().wait().unwrap();
    }
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    let event = events.next();
    let card = &event["figures"]["cards"]["runs"];
    let ran = card["rate"].as_f64().unwrap() * event["seconds"].as_f64().unwrap();
    assert!(ran < 100.0 && card["total"].as_f64() >= Some(200.0), "{card}");
    let terms = event["threads"].as_array().unwrap().iter().map(|it| it["terms"].as_u64().unwrap());
    assert!(terms.sum::<u64>() < 100, "{event}");
}

#[test]
fn work_shows_in_the_rates() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    let _first = events.next();
    for _ in 0..200 {
        pool.submit(|| ()).unwrap().wait().unwrap();
    }
    let mut ran = 0.0;
    // A rate times its seconds is not exact.
    while ran < 199.5 {
        let event = events.next();
        let card = &event["figures"]["cards"]["runs"];
        ran += card["rate"].as_f64().unwrap() * event["seconds"].as_f64().unwrap();
    }
    assert!(ran < 300.0, "{ran} of 200 tasks");
}

fn row(event: &Value, table: &str, name: &str) -> Option<serde_json::Map<String, Value>> {
    let tables = event["figures"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|it| it["name"] == table)?;
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with(name))?;
    let columns = table["columns"].as_array().unwrap().iter();
    let cells = row["cells"].as_array().unwrap();
    let named = columns.map(|column| column["name"].as_str().unwrap().to_owned());
    Some(named.zip(cells.iter().cloned()).collect())
}

/// What waits is shown with the room that there is, its age, and what was lost.
#[test]
fn each_subscription_task_type_and_route_has_a_row() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = Hub::new(&pool).unwrap();
    let lagging = hub.subscription("orders.*").capacity(4).overflow(Overflow::DropOldest);
    let lagging = lagging.pull().unwrap();
    for _ in 0..10 {
        let _ = hub.publish("orders.a", "x").unwrap();
    }
    let workers = WorkerPool::new(&pool);
    workers.task("resize", |_| Ok::<_, Fault>(())).submit().unwrap().wait().unwrap();
    let http = Http::builder(&pool).listen("127.0.0.1:0").route(
        "GET",
        "/broken",
        |_: &Request<'_>, response: Response| response.status(500).text("no"),
    );
    let http = http.serve().unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    let _first = events.next();
    assert_eq!(get(&http.addresses()[0], "/broken").status, 500);
    let (orders, resize, broken) = loop {
        let event = events.next();
        let of = |table: &str, name: &str| row(&event, table, name);
        let shown = (of("subscriptions", "orders.*"), of("task types", "resize"));
        let shown = (shown, of("routes", "GET /broken"));
        if let ((Some(orders), Some(resize)), Some(broken)) = shown
            && orders["oldest"].as_f64().is_some_and(|age| age >= 1.0)
            && broken["5xx"] == 1.0
        {
            break (orders, resize, broken);
        }
    };
    assert_eq!((&orders["waiting"], &orders["capacity"]), (&4.0.into(), &4.0.into()));
    assert_eq!(orders["dropped"], 6.0, "{orders:?}");
    assert_eq!((&resize["waiting"], &resize["oldest"]), (&0.0.into(), &Value::Null));
    assert_eq!(broken["4xx"], 0.0);
    drop(lagging);
}

/// Of a pool without a log a line is written for the first only; all of them are shown, and counted.
#[test]
fn each_fault_is_among_the_last_faults() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for what in ["the first of faults", "the second of faults", "the second of faults"] {
        pool.post(move || std::panic::panic_any(what)).unwrap();
    }
    let times = |what: &str| {
        let told: Value = serde_json::from_str(&get(at, "/errors.json").body).unwrap();
        let errors = told["errors"].as_array().unwrap().clone();
        let found = errors.into_iter().find(|error| error["message"] == what);
        found.and_then(|error| error["times"].as_u64()).unwrap_or(0)
    };
    until("all are told", || {
        (times("the first of faults"), times("the second of faults")) == (1, 2)
    });
    let counted = get(at, "/metrics").body;
    let errors =
        counted.lines().find(|line| line.starts_with("paceline_faults_total{level=\"error\"}"));
    let errors = errors.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(errors >= Some(3.0), "{errors:?}");
}

#[test]
fn the_newest_dead_letters_are_shown_without_what_is_in_them() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = Hub::new(&pool).unwrap();
    let failing = hub.subscribe("orders.*", |_: &Message| Err::<(), _>("no stock")).unwrap();
    for number in 0..60 {
        let _ = hub.publish(format!("orders.{number}"), "a secret").unwrap();
    }
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let mut events = Events::open(&ops.addresses()[0], "/events").ok().unwrap();
    let dead = |event: &Value| {
        let tables = event["figures"]["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == "dead letters").cloned()
    };
    // As many as are shown, the newest of them first.
    let (event, table) = loop {
        let event = events.next();
        if let Some(table) = dead(&event).filter(|table| table["left_out"] == 10) {
            break (event, table);
        }
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 50);
    let columns: Vec<_> =
        table["columns"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(columns, ["age", "attempts", "cause", "for"]);
    let newest = row(&event, "dead letters", "orders.59").unwrap();
    assert!(newest["age"].as_f64().unwrap() < 600.0, "{newest:?}");
    assert!(newest["attempts"].as_u64().unwrap() >= 1, "{newest:?}");
    let cause = newest["cause"].as_str().unwrap();
    assert!(cause.starts_with("failed: ") && cause.contains("no stock"), "{cause}");
    assert_eq!(newest["for"], "orders.* letter 60");
    assert!(!event.to_string().contains("a secret"));
    drop(failing);
}

/// Nobody has looked, and what was is there.
#[test]
fn curves_are_kept_while_nobody_looks() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = Hub::new(&pool).unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for _ in 0..100 {
        let _ = hub.publish("orders.a", "x").unwrap();
    }
    let lines = || {
        let curves: Value = serde_json::from_str(&get(at, "/curves.json").body).unwrap();
        let charts = curves["charts"].as_array().unwrap();
        let chart = charts.iter().find(|chart| chart["name"] == "messages per second");
        chart.map(|chart| chart["lines"].clone())
    };
    until("the sample is taken", || lines().is_some());
    let lines = lines().unwrap();
    let names = lines.as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["published", "delivered", "failed"]);
    assert!(lines[0]["values"][0].as_f64().unwrap() > 0.0, "{lines}");
    assert_eq!(lines[2]["values"][0], 0.0);
}

#[test]
fn a_worker_pool_that_drains_is_not_ready() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    assert_eq!(get(at, "/health/ready").status, 200);
    let _report = workers.shutdown(Phases::default());
    let answer = get(at, "/health/ready");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("a worker pool is draining"), "{}", answer.body);
}

/// Who comes later sees what was, and all see the same.
#[test]
fn all_viewers_are_told_the_same() {
    let _guard = hang_guard();
    let pool = pool(2);
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut first = Events::open(at, "/events").ok().unwrap();
    let before = [first.next(), first.next()];
    let mut second = Events::open(at, "/events").ok().unwrap();
    assert_eq!([second.next(), second.next()], before);
    let next = first.next();
    assert_eq!(second.next(), next);
}
