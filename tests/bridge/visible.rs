//! What the operations endpoint shows of bridges.

use crate::broker::{broker, connected};
use crate::client::{Events, get};
use crate::common::{hang_guard, until};
use paceline::Pool;
use paceline::bridge::{Bridge, Export, Import, NatsSettings};
use paceline::hub::{Hub, Message, Received};
use paceline::metrics::Registry;
use paceline::ops::Ops;
use serde_json::Value;
use std::time::Duration;

/// Goal: a process whose broker is away is ready, and says why it is degraded; it is well with a broker. Method: the
/// broker is killed and started again.
#[test]
fn health_says_why_there_is_no_broker() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let ready = || {
        let answer = get(at, "/health/ready");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    };
    assert_eq!(ready(), "ok\n");
    let bridge =
        Bridge::nats(&hub, broker.url()).name("shop").export("a").import("b").open().unwrap();
    until("it is well", || ready() == "ok\n");
    assert!(bridge.is_connected());
    broker.kill();
    until("it is degraded", || ready().contains("bridge \"shop\" has no broker: "));
    assert_eq!(get(at, "/health/live").status, 200);
    broker.start_again();
    until("it is well again", || ready() == "ok\n");
    drop(bridge);
    assert_eq!(ready(), "ok\n");

    let away = Bridge::nats(&hub, "nats://127.0.0.1:1").name("away").export("a").open().unwrap();
    until("it tells of a refused connection", || {
        ready().contains("bridge \"away\" has no broker: nats://127.0.0.1:1: ")
    });
    drop(away);
    assert_eq!(ready(), "ok\n");
}

/// A broker that refuses what a rule asks for is named, though the connection is there.
#[test]
fn health_says_what_the_broker_refuses() {
    let _guard = hang_guard();
    let more = "authorization { users = [ { user: joe, password: pw, permissions: { publish: \"ok.>\" } } ] }";
    let Some(broker) = crate::broker::Broker::start(more) else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let settings = NatsSettings::new(broker.url()).user("joe", "pw");
    let bridge = Bridge::nats(&hub, settings).export("not.ok").open().unwrap();
    bridge.wait_connected(Duration::from_secs(60)).unwrap();
    let _ = hub.publish("not.ok", "x").unwrap();
    until("the refusal is told", || {
        let answer = get(&ops.addresses()[0], "/health/ready");
        answer.status == 200 && answer.body.to_lowercase().contains("permissions violation")
    });
    assert!(bridge.stats().reason.is_some());
}

fn bridge_of(stats: &Value) -> Value {
    stats["bridges"][0].clone()
}

/// Goal: the feed and the statistics have each bridge, with its state and its rules.
#[test]
fn the_live_page_is_told_of_each_bridge() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut events = Events::open(at, "/events").ok().unwrap();
    assert_eq!(events.next()["bridges"], serde_json::json!([]));

    // What it has imported is not acknowledged, as the mailbox waits for that.
    let mailbox = hub.subscription("taken").acknowledged().pull().unwrap();
    let bridge = Bridge::nats(&hub, broker.url())
        .name("shop")
        .export(Export::new("out.>").at_least_once("OUT"))
        .import(Import::new("taken").at_least_once("IN", "shop"))
        .open()
        .unwrap();
    bridge.wait_connected(Duration::from_secs(60)).unwrap();
    let _ = hub.publish("out.a", "x").unwrap();
    bridge.flush(Duration::from_secs(60)).unwrap();
    let there = Hub::new(&Pool::builder().threads(1).build().unwrap()).unwrap();
    let other = Bridge::nats(&there, broker.url())
        .export(Export::new("taken").at_least_once("IN"))
        .open()
        .unwrap();
    let _ = there.publish("taken", "x").unwrap();
    other.flush(Duration::from_secs(60)).unwrap();
    let _held: Received = mailbox.recv_timeout(Duration::from_secs(60)).unwrap();

    let told = loop {
        let told = bridge_of(&events.next());
        if told["exports"][0]["stored"] == 1 && told["imports"][0]["in_flight"] == 1 {
            break told;
        }
    };
    assert_eq!(
        (&told["name"], &told["connected"], &told["connects"]),
        (&"shop".into(), &true.into(), &1.into())
    );
    assert!(!told["server"].as_str().unwrap().is_empty(), "{told}");
    let answer = get(at, "/stats.json");
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    let stats: Value = serde_json::from_str(&answer.body).unwrap();
    let told = bridge_of(&stats);
    let (export, import) = (&told["exports"][0], &told["imports"][0]);
    assert_eq!((&export["pattern"], &export["stream"]), (&"out.>".into(), &"OUT".into()));
    assert_eq!(
        (&export["sent"], &export["waiting"], &export["dropped"]),
        (&1.into(), &0.into(), &0.into())
    );
    assert_eq!(
        (&import["published"], &import["acknowledged"], &import["dead"]),
        (&1.into(), &0.into(), &0.into())
    );
    let families = stats["figures"]["families"].as_array().unwrap();
    assert!(families.iter().any(|family| family["name"] == "paceline_bridge_connected"));
    drop((bridge, other));
    while events.next()["bridges"] != serde_json::json!([]) {}
}

/// Goal: what both ends have counted is in a registry, by bridge.
#[test]
fn figures_of_a_bridge_say_what_it_has_carried() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let (here, there) = (Hub::new(&pool).unwrap(), Hub::new(&pool).unwrap());
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let _handler = there.subscribe("a.>", |_: &Message<'_>| ()).unwrap();
    let export = Export::new("a.>").at_least_once("A");
    let out = connected(Bridge::nats(&here, broker.url()).name("out").export(export));
    let import = Import::new("a.>").at_least_once("A", "there");
    let _back = connected(Bridge::nats(&there, broker.url()).name("back").import(import));
    for number in 0..10 {
        let _ = here.publish("a.b", format!("{number}")).unwrap();
    }
    out.flush(Duration::from_secs(60)).unwrap();
    let of = |figure: &str, bridge: &str| {
        let name = format!("paceline_bridge_{figure}");
        let snapshot = registry.snapshot();
        let found = snapshot.sample(&name, &[("bridge", bridge)]);
        found.and_then(paceline::metrics::Value::number).unwrap()
    };
    until("all are acknowledged", || of("import_acknowledged", "back") == 10.0);
    for (figure, bridge, expected) in [
        ("connected", "out", 1.0),
        ("connects", "out", 1.0),
        ("export_sent", "out", 10.0),
        ("export_stored", "out", 10.0),
        ("export_waiting", "out", 0.0),
        ("export_dropped", "out", 0.0),
        ("import_published", "back", 10.0),
        ("import_dead", "back", 0.0),
    ] {
        assert_eq!(of(figure, bridge), expected, "{figure} of {bridge}");
    }
}

/// Goal: what happens to a bridge is told under `$SYS.bridge.`, each once, with its fields; a full buffer of an export is
/// told by its mailbox, under the export's pattern. Method: the broker is killed, started again, and refuses a message.
#[test]
fn notices_tell_what_happens_to_a_bridge() {
    let _guard = hang_guard();
    let more = "authorization { users = [ { user: joe, password: pw, permissions: { publish: \"ok.>\" } } ] }";
    let Some(mut broker) = crate::broker::Broker::start(more) else { return };
    let hub = Hub::new(&Pool::builder().threads(2).build().unwrap()).unwrap();
    let notices = hub.mailbox("$SYS.>", 1000).unwrap();
    let next = |event: &str| loop {
        let notice = notices.recv_timeout(Duration::from_secs(60)).unwrap();
        if notice.key().as_str() == format!("$SYS.{event}") {
            break serde_json::from_slice::<Value>(notice.payload()).unwrap();
        }
    };
    let settings = NatsSettings::new(broker.url()).user("joe", "pw");
    let export = Export::new("ok.>").buffer(1);
    let bridge =
        Bridge::nats(&hub, settings).name("shop").export(export).export("not").open().unwrap();
    let told = next("bridge.connected");
    assert_eq!((&told["bridge"], &told["connects"]), (&"shop".into(), &1.into()));
    assert_eq!(
        (&told["severity"], &told["server"]),
        (&"info".into(), &bridge.stats().server.into())
    );
    let _ = hub.publish("not", "x").unwrap();
    let told = next("bridge.refused");
    assert!(told["reason"].as_str().unwrap().to_lowercase().contains("permissions"), "{told}");
    assert_eq!((&told["severity"], &told["origin"]), (&"error".into(), &"bridge \"shop\"".into()));
    broker.kill();
    let told = next("bridge.disconnected");
    assert_eq!((&told["bridge"], &told["severity"]), (&"shop".into(), &"warning".into()));
    for _ in 0..3 {
        let _ = hub.publish("ok.a", "x").unwrap();
    }
    let told = next("subscription.overflow");
    assert_eq!(told["pattern"], "ok.>");
    broker.start_again();
    assert_eq!(next("bridge.connected")["connects"], 2);
    assert_eq!(bridge.close(Duration::from_secs(60)), 0);
    assert_eq!(next("bridge.closed")["bridge"], "shop");
}
