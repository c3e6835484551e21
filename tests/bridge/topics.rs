//! Keys at most once.

use crate::broker::{broker, connected};
use crate::common::{hang_guard, until};
use paceline::Pool;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::{Headers, Hub, Mailbox, Priority, Received};
use std::time::Duration;

pub fn hub() -> Hub {
    Hub::new(&Pool::builder().threads(2).build().unwrap()).unwrap()
}

pub fn next(mailbox: &Mailbox) -> Received {
    mailbox.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Publishes until one has come over: a subscription at the broker begins some time after the connection.
pub fn warm_up(from: &Hub, key: &str, to: &Mailbox) {
    until("a message over the bridge", || {
        let _ = from.publish(key, "warm").unwrap();
        to.recv_timeout(Duration::from_millis(20)).is_ok()
    });
    while to.recv_timeout(Duration::from_millis(100)).is_ok() {}
}

/// Goal: payload, headers and priority come over, in order, and local subscribers of the exporter get them as ever.
#[test]
fn what_is_exported_here_is_published_there() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let (local, remote) =
        (here.mailbox("orders.>", 10_000).unwrap(), there.mailbox("orders.>", 10_000).unwrap());
    let out = connected(Bridge::nats(&here, broker.url()).export("orders.>"));
    let _back = connected(Bridge::nats(&there, broker.url()).import("orders.>"));
    warm_up(&here, "orders.warm", &remote);
    while local.try_recv().unwrap().is_some() {}
    let large = vec![7_u8; 100_000];
    let headers = Headers::new([("trace", "17"), ("b:c", "two\nlines")]).unwrap();
    let _ = here
        .message("orders.eu")
        .payload(large.clone())
        .headers(headers)
        .priority(Priority::High)
        .publish()
        .unwrap();
    for number in 0..1000 {
        let _ = here.publish("orders.us", format!("{number}")).unwrap();
    }
    let _ = here.publish("other", "stays").unwrap();
    let first = next(&remote);
    assert_eq!((first.key().as_str(), first.payload() == &large[..]), ("orders.eu", true));
    assert_eq!(
        (first.headers().get("trace"), first.headers().get("b:c")),
        (Some("17"), Some("two\nlines"))
    );
    assert_eq!(first.priority(), Priority::High);
    assert!(first.headers().get("Paceline-Origin").is_some());
    for number in 0..1000 {
        assert_eq!(next(&remote).payload(), format!("{number}").as_str());
    }
    let mine = next(&local);
    assert_eq!(mine.headers().get("Paceline-Origin"), None);
    (0..1000).for_each(|_| drop(next(&local)));
    assert!(remote.recv_timeout(Duration::from_millis(50)).is_err());
    let stats = out.stats();
    assert_eq!(
        (stats.exports[0].waiting, stats.exports[0].dropped, stats.exports[0].refused),
        (0, 0, 0)
    );
    assert_eq!(out.close(Duration::from_secs(10)), 0);
}

/// Goal: a prefix before exported keys, taken off by who imports.
#[test]
fn a_prefix_is_put_before_keys_and_taken_off() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let remote = there.mailbox(">", 1000).unwrap();
    let _out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a.*").prefix("eu.shop.")));
    let _back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("a.*").prefix("eu.shop."))
            .import("eu.>"),
    );
    until("both", || {
        let _ = here.publish("a.b", "x").unwrap();
        std::thread::sleep(Duration::from_millis(10));
        remote.stats().waiting > 0
    });
    // The second import has the same message: its id is in the window, so it is one or the other.
    let key = next(&remote).key().as_str().to_owned();
    assert!(key == "a.b" || key == "eu.shop.a.b", "{key}");
}

/// Goal: three processes in a ring, each of which exports and imports the same, circulate nothing; each gets what the
/// others publish once, and its own not again.
#[test]
fn nothing_circulates_in_a_ring() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let hubs = [hub(), hub(), hub()];
    let mailboxes = hubs.each_ref().map(|hub| hub.mailbox("ring.>", 10_000).unwrap());
    let bridges = hubs
        .each_ref()
        .map(|hub| connected(Bridge::nats(hub, broker.url()).export("ring.>").import("ring.>")));
    for (from, hub) in hubs.iter().enumerate() {
        for (to, mailbox) in mailboxes.iter().enumerate() {
            if from != to {
                warm_up(hub, "ring.warm", mailbox);
            }
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    mailboxes.iter().for_each(|mailbox| while mailbox.try_recv().unwrap().is_some() {});
    for (number, hub) in hubs.iter().enumerate() {
        for index in 0..100 {
            let _ = hub.publish("ring.a", format!("{number}:{index}")).unwrap();
        }
    }
    for mailbox in &mailboxes {
        let mut seen: Vec<String> = (0..300)
            .map(|_| String::from_utf8(next(mailbox).payload().to_vec()).unwrap())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 300);
        assert!(mailbox.recv_timeout(Duration::from_millis(100)).is_err());
    }
    for bridge in &bridges {
        let stats = bridge.stats();
        assert!(stats.imports[0].turned_back >= 100, "{stats:?}");
        assert!(stats.exports[0].turned_back >= 200, "{stats:?}");
    }
}

/// Goal: of the members of a group one gets each message; who is in none gets all.
#[test]
fn a_group_shares_messages_between_processes() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (from, one, other, all) = (hub(), hub(), hub(), hub());
    let boxes = [&one, &other, &all].map(|hub| hub.mailbox("jobs.>", 10_000).unwrap());
    let _out = connected(Bridge::nats(&from, broker.url()).export("jobs.>"));
    let shared = || Import::new("jobs.>").group("workers");
    let _one = connected(Bridge::nats(&one, broker.url()).import(shared()));
    let _other = connected(Bridge::nats(&other, broker.url()).import(shared()));
    let _all = connected(Bridge::nats(&all, broker.url()).import("jobs.>"));
    for mailbox in &boxes {
        warm_up(&from, "jobs.warm", mailbox);
    }
    std::thread::sleep(Duration::from_millis(100));
    boxes.iter().for_each(|mailbox| while mailbox.try_recv().unwrap().is_some() {});
    for number in 0..400 {
        let _ = from.publish("jobs.a", format!("{number}")).unwrap();
    }
    (0..400).for_each(|_| drop(next(&boxes[2])));
    until("all of the group", || boxes[0].stats().waiting + boxes[1].stats().waiting == 400);
    assert!(boxes[0].stats().waiting > 0 && boxes[1].stats().waiting > 0);
}

/// Goal: what was published while there was no broker comes when there is one, and what a full buffer has dropped is
/// counted. The bridge starts without a broker.
#[test]
fn without_a_broker_messages_wait_and_losses_are_counted() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let remote = there.mailbox("a", 1000).unwrap();
    let back = connected(Bridge::nats(&there, broker.url()).import("a"));
    broker.kill();
    until("the loss", || !back.is_connected());
    assert!(back.stats().reason.is_some());
    let out =
        Bridge::nats(&here, broker.url()).export(Export::new("a").buffer(100)).open().unwrap();
    for number in 0..150 {
        let _ = here.publish("a", format!("{number}")).unwrap();
    }
    assert_eq!((out.stats().exports[0].waiting, out.stats().exports[0].dropped), (100, 50));
    assert!(!out.is_connected());
    broker.start_again();
    until("both are back", || back.is_connected());
    // The exporter may connect before the importer has subscribed: then at most once is not at all.
    until("the exporter", || out.is_connected());
    out.flush(Duration::from_secs(60)).unwrap();
    until("one more", || {
        let _ = here.publish("a", "more").unwrap();
        remote.recv_timeout(Duration::from_millis(20)).is_ok()
    });
    assert_eq!(back.stats().connects, 2);
}

#[test]
fn bad_rules_are_told_why() {
    let hub = hub();
    let message = |builder: paceline::bridge::BridgeBuilder| match builder.open() {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let nats = || Bridge::nats(&hub, "nats://127.0.0.1:1");
    for (builder, told) in [
        (nats(), "an export or an import"),
        (nats().export("$SYS.>"), "the pattern of an export"),
        (nats().export("_INBOX.>"), "the pattern of an export"),
        (nats().import("a..b"), "pattern"),
        (nats().export(Export::new("a").prefix("b")), "prefix"),
        (nats().export(Export::new("a").at_least_once("a.b")), "stream"),
        (nats().export(Export::new("a").at_least_once("A").in_flight(0)), "in_flight"),
        (nats().import(Import::new("a").group("x").at_least_once("A", "b")), "group"),
        (nats().permit("b.>").export("b.x").import("c"), "within"),
        (
            nats().import("a.*").import(Import::new("a.b").at_least_once("A", "b")),
            "another promise",
        ),
        (Bridge::nats(&hub, "http://x").export("a"), "the address of a broker"),
    ] {
        let text = message(builder);
        assert!(text.contains(told), "{told}: {text}");
    }
}
