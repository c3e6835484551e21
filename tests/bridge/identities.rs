//! When two messages are one: what an id says, and which stream has stored it.

use crate::broker::{broker, connected};
use crate::common::{hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::Message;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Makes a stream as another program does.
fn make(raw: &mut Raw, name: &str, subjects: &str, more: &str) {
    let config = format!("{{\"name\":{name:?},\"subjects\":[{subjects}]{more}}}");
    let answer = raw.request(&format!("$JS.API.STREAM.CREATE.{name}"), &config);
    assert!(!answer.contains("\"error\""), "{answer}");
}

/// Goal: an id of somebody else's that a stream has stored twice, as its own window was over, is two messages.
#[test]
fn what_a_stream_has_stored_as_new_is_handled_as_new() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    make(&mut raw, "S", "\"k\"", ",\"duplicate_window\":100000000");
    let there = hub();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let _handler = there
        .subscribe("k", move |message: &Message<'_>| {
            list.lock().unwrap().push(String::from_utf8_lossy(message.payload()).into_owned());
        })
        .unwrap();
    let bridge = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("k").at_least_once("S", "d")),
    );
    let mut stored = || raw.request("$JS.API.STREAM.INFO.S", "").contains("\"messages\":2");
    let mut other = Raw::connect(&broker.url());
    until("it is stored twice", || {
        other.publish_with("k", None, "Nats-Msg-Id: order-17\r\n", b"x");
        other.sync();
        stored()
    });
    until("both are dealt with", || {
        let imports = &bridge.stats().imports[0];
        imports.acknowledged + imports.duplicates >= 2
    });
    assert_eq!(*seen.lock().unwrap(), ["x", "x"]);
}

/// Goal: two exports of one key into one stream store two messages: they have two subjects.
#[test]
fn two_prefixes_are_two_messages() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    make(&mut raw, "S", "\"a.k\",\"b.k\"", "");
    let here = hub();
    let rule = |prefix| Export::new("k").prefix(prefix).at_least_once("S");
    let bridge = connected(Bridge::nats(&here, broker.url()).export(rule("a.")).export(rule("b.")));
    let _ = here.publish("k", "x").unwrap();
    until("both are stored", || bridge.stats().exports.iter().all(|export| export.stored == 1));
    let info = raw.request("$JS.API.STREAM.INFO.S", "");
    assert!(info.contains("\"messages\":2"), "{info}");
}

/// Goal: what another stream than the rule's would store is not stored, and said not to be; nothing is lost by that.
#[test]
fn another_stream_stores_nothing_in_place_of_the_rules() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    make(&mut raw, "MINE", "\"nowhere\"", "");
    make(&mut raw, "OTHER", "\"x.k\"", "");
    let here = hub();
    let rule = Export::new("k").prefix("x.").at_least_once("MINE");
    let bridge = connected(Bridge::nats(&here, broker.url()).export(rule));
    let pending = bridge.publish(here.message("k").payload("x")).unwrap();
    until("it is said", || {
        let reason = bridge.stats().reason.unwrap_or_default();
        reason.contains("MINE") && reason.contains("expected stream")
    });
    let info = raw.request("$JS.API.STREAM.INFO.OTHER", "");
    assert!(info.contains("\"messages\":0"), "{info}");
    assert!(raw.request("$JS.API.STREAM.DELETE.OTHER", "").contains("true"));
    let config = "{\"name\":\"MINE\",\"subjects\":[\"x.k\"]}";
    assert!(!raw.request("$JS.API.STREAM.UPDATE.MINE", config).contains("\"error\""));
    pending.wait(LIMIT).unwrap();
    assert_eq!((bridge.stats().exports[0].stored, bridge.stats().exports[0].refused), (1, 0));
}
