//! Everything that a hub knows of itself: values, JSON, a registry, the log.
#![cfg(feature = "metrics")]

use crate::common::{LONG, hang_guard, quiet_panic, until};
use crate::kit::told as kit_told;
use crate::kit::{at_rest, pool, settle, told};
use paceline::hub::{
    Crossing, ErrorFilter, Execution, Failure, Hub, Message, OnFailure, Rate, Severity, Threshold,
};
use paceline::metrics::Registry;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Goal: figures are what happened, in the values and in JSON alike.
#[test]
fn figures_say_what_happened() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = Hub::builder(&pool).count_keys(2).build().unwrap();
    let before = hub.stats();
    let picky = |message: &Message<'_>| match &**message.payload() {
        b"bad" => Err(Failure::new("no")),
        _ => Ok(()),
    };
    let on_failure = OnFailure::discard();
    let served = hub.subscription("a").on_failure(on_failure).measured().serve(picky).unwrap();
    let pulled = hub.subscription("*").capacity(2).measured().pull().unwrap();
    let publisher =
        hub.publisher("p").quota(Rate::new(3, Duration::from_secs(9999)).burst(3)).build().unwrap();
    for payload in ["good", "bad", "good"] {
        assert_eq!(told(publisher.publish("a", payload)).matched, 2);
    }
    assert!(publisher.publish("a", "beyond").is_err());
    assert_eq!(told(hub.publish("b", "")).rejected, 1);
    assert_eq!(told(hub.publish_batch("c", ["", "", ""])).rejected, 3);
    assert!(pulled.try_recv().unwrap().is_some());
    until("the handler has done", || served.stats().delivered == 2 && served.stats().failed == 1);
    let stats = hub.stats();
    assert_eq!((stats.audit.published, stats.audit.matched, stats.audit.rejected), (7, 10, 5));
    assert_eq!(stats.subscriptions.len(), 2);
    let (first, second) = (&stats.subscriptions[0], &stats.subscriptions[1]);
    assert_eq!((first.id, &*first.pattern, first.stats), (served.id(), "a", served.stats()));
    assert_eq!((second.execution, second.capacity, second.stats.waiting), (Execution::Pull, 2, 1));
    let latency = |at: usize| stats.subscriptions[at].latency.as_ref().unwrap().clone();
    assert_eq!((latency(0).count(), latency(1).count()), (3, 1));
    let own = [served.latency(), pulled.latency()].map(|latency| latency.unwrap().count());
    assert_eq!(own, [3, 1]);
    assert!(latency(0).quantile(0.999) > 0.0 && latency(0).quantile(0.5) <= latency(0).max());
    let publisher_stats = stats.publishers[0].stats;
    assert_eq!((&*stats.publishers[0].name, publisher_stats), ("p", publisher.stats()));
    let keys: Vec<_> = stats.key_counts.iter().map(|key| (&*key.key, key.published)).collect();
    assert_eq!(keys, [("", 3), ("a", 3), ("b", 1)], "of a third key only the sum is counted");
    let rates = stats.rates_since(&before);
    assert!(rates.seconds > 0.0);
    assert!((rates.published * rates.seconds - 7.0).abs() < 1e-6, "{rates:?}");
    assert!((rates.lost * rates.seconds - 5.0).abs() < 1e-6, "{rates:?}");

    let json: Value = serde_json::from_str(&stats.to_json()).unwrap();
    assert_eq!((&json["published"], &json["rejected"]), (&7.into(), &5.into()));
    let of_served = &json["subscriptions"][0];
    assert_eq!((&of_served["failed"], &of_served["latency"]["count"]), (&1.into(), &3.into()));
    assert_eq!(
        (&json["publishers"][0]["refused"], &json["key_counts"][1]["published"]),
        (&1.into(), &3.into())
    );
    // What is not asked for is not there.
    let plain = Hub::new(&pool).unwrap();
    let _unmeasured = plain.subscribe("a", |_: &Message<'_>| ()).unwrap();
    let _ = plain.publish("a", "").unwrap();
    at_rest(&plain);
    assert!(
        plain.stats().key_counts.is_empty() && plain.stats().subscriptions[0].latency.is_none()
    );
    drop((pulled, plain));
    settle(&hub);
}

/// Goal: a hub's figures are in the registry of the pool's as long as it lives.
#[test]
fn figures_are_in_a_registry_while_the_hub_lives() {
    let _guard = hang_guard();
    let pool = pool(2);
    let registry = Registry::new();
    let hub = Hub::builder(&pool).metrics(&registry, "main").count_keys(10).build().unwrap();
    let one = hub.subscription("a.*").measured().serve(|_: &Message<'_>| ()).unwrap();
    let _plain = hub.subscribe("a.b", |_: &Message<'_>| ()).unwrap();
    let publishers = ["p", "p"].map(|name| hub.publisher(name).build().unwrap());
    for publisher in &publishers {
        let _ = publisher.publish("a.b", "").unwrap();
    }
    at_rest(&hub);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 0);
    let figure = |name: &str, labels: &[(&str, &str)]| {
        snapshot.sample(name, labels).and_then(|value| value.number())
    };
    assert_eq!(figure("paceline_hub_published", &[("hub", "main")]), Some(2.0));
    assert_eq!(figure("paceline_hub_delivered", &[("hub", "main")]), Some(4.0));
    assert_eq!(figure("paceline_hub_waiting", &[("hub", "main")]), Some(0.0));
    // Publishers of one name are one.
    assert_eq!(figure("paceline_hub_publisher_published", &[("publisher", "p")]), Some(2.0));
    assert_eq!(figure("paceline_hub_key_published", &[("key", "a.b")]), Some(2.0));
    let id = one.id().to_string();
    let labels = [("subscription", &*id), ("pattern", "a.*")];
    assert_eq!(figure("paceline_hub_subscription_delivered", &labels), Some(2.0));
    let others = [("pattern", "a.b")];
    assert_eq!(figure("paceline_hub_subscription_delivered", &others), Some(2.0));
    for name in ["latency", "handling"] {
        let name = format!("paceline_hub_subscription_{name}_seconds");
        let times = snapshot.sample(&name, &labels).unwrap();
        assert_eq!(times.distribution().unwrap().count(), 2);
        assert_eq!(snapshot.family(&name).unwrap().samples.len(), 1, "others are not measured");
    }
    let text = snapshot.to_prometheus();
    assert!(text.contains("paceline_hub_published_total{hub=\"main\"} 2"), "{text}");
    assert!(text.contains("paceline_hub_subscription_latency_seconds_quantile{"), "{text}");
    settle(&hub);
    drop((one, _plain, publishers, hub));
    until("the hub is gone", || registry.snapshot().family("paceline_hub_published").is_none());
}

/// What the `log` facade was told. One per process.
struct Facade(Mutex<Vec<String>>);

static FACADE: Facade = Facade(Mutex::new(Vec::new()));

impl log::Log for Facade {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target() == paceline::hub::HUB_LOG_TARGET {
            self.0.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

#[test]
fn figures_are_logged_again_and_again() {
    let _guard = hang_guard();
    log::set_logger(&FACADE).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    let pool = pool(1);
    let every = Duration::from_millis(10);
    let hub = Hub::builder(&pool).stats_interval(every).build().unwrap();
    let _all = hub.subscribe("a", |_: &Message<'_>| ()).unwrap();
    let _ = hub.publish("a", "").unwrap();
    let has = |count: usize| {
        let wanted = "INFO published 1 (";
        let lines = FACADE.0.lock().unwrap();
        lines
            .iter()
            .filter(|line| line.starts_with(wanted) && line.contains("delivered 1 ("))
            .count()
            >= count
    };
    until("three lines", || has(3));
    let told = hub.mailbox("$SYS.hub.statistics", 100).unwrap();
    let notice = told.recv_timeout(LONG).unwrap();
    let notice: serde_json::Value = serde_json::from_slice(notice.payload()).unwrap();
    assert_eq!((&notice["delivered"], &notice["lost_messages"]), (&1.into(), &0.into()));
    drop(told);
    let refused = Hub::builder(&pool).stats_interval(Duration::ZERO).build().map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "stats_interval is 0ns, but must be 10 ms to 1 day");
    assert!(pool.shutdown(LONG).drained);
}

/// Goal: a threshold is told to all who want to hear it, once when it is crossed and once when its figure is
/// back; a hook that panics harms nobody; who drops the watch hears no more.
#[test]
fn thresholds_are_told_when_crossed_and_when_back() {
    let _guard = hang_guard();
    let pool = pool(2);
    let registry = Registry::new();
    let hub = Hub::builder(&pool).metrics(&registry, "main").build().unwrap();
    let heard = hub.mailbox("$SYS.threshold.*", 100).unwrap();
    let mailbox = hub.mailbox("a", 3).unwrap();
    let gauge = registry.gauge("level", "", &[]).unwrap();
    gauge.set(5.0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let full = Threshold::above("level", 9.0).back_at(4.0).severity(Severity::Error);
    let watch = hub
        .watch(&registry, Duration::from_millis(1))
        .threshold(full.clone())
        .threshold(Threshold::below("level", 1.0).back_at(2.0))
        .threshold(Threshold::above("paceline_hub_rejected", 1.0).labels(&[("hub", "main")]))
        .on_crossing(|_| quiet_panic("in a hook"))
        .on_crossing(move |crossing: &Crossing| {
            tell.lock().unwrap().push((crossing.place, crossing.to_string()))
        })
        .start()
        .unwrap();
    let looked = || {
        let looks = watch.looks();
        // One that began after this call.
        until("two looks", || watch.looks() >= looks + 2);
    };
    looked();
    assert!(watch.crossed().is_empty() && told.lock().unwrap().is_empty());
    for level in [9.5, 5.0, 20.0, 4.5, 4.0, 9.0, 0.5] {
        gauge.set(level);
        looked();
        assert_eq!(
            watch.crossed().first() == Some(&full),
            (4.5..=20.0).contains(&level) && level != 9.0
        );
    }
    assert_eq!(kit_told(hub.publish_batch("a", ["x"; 5])).rejected, 2);
    looked();
    let crossings = [
        "crossed at 9.5: level above 9",
        "back at 4: level above 9",
        "crossed at 0.5: level below 1",
    ];
    let (places, lines): (Vec<_>, Vec<_>) = told.lock().unwrap().iter().cloned().unzip();
    assert_eq!(places, [0, 0, 1, 2]);
    assert_eq!(lines[..3], crossings);
    assert!(lines[3].ends_with("paceline_hub_rejected{hub=\"main\"} above 1"), "{lines:?}");
    assert_eq!((lines.len(), watch.panics()), (4, 4));
    let mut notices = Vec::new();
    until("four notices", || {
        heard.recv_batch(&mut notices, 10).unwrap();
        notices.len() == 4
    });
    let first: Value = serde_json::from_slice(notices[0].payload()).unwrap();
    assert_eq!(notices[0].key().as_str(), "$SYS.threshold.crossed");
    assert_eq!((&first["message"], &first["severity"]), (&crossings[0].into(), &"error".into()));
    assert_eq!((&first["metric"], &first["figure"]), (&"level".into(), &9.5.into()));
    assert_eq!(notices[1].key().as_str(), "$SYS.threshold.cleared");
    let errors = hub.errors(&ErrorFilter::all().event("threshold.").at_least(Severity::Error));
    assert_eq!((errors.len(), &*errors[0].message), (1, crossings[0]));
    let looks = watch.looks();
    drop(watch);
    assert!(looks > 10);
    let refused = hub.watch(&registry, Duration::ZERO).start().unwrap_err().to_string();
    assert_eq!(refused, "the period of a watch is 0ns, but must be 1 ms to 1 day");
    drop((heard, mailbox));
    settle(&hub);
}
