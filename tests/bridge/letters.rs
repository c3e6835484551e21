//! Dead letters of imports, which the broker keeps.

use crate::broker::{Broker, broker, connected};
use crate::common::{hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::Retry;
use paceline::bridge::{Bridge, Import};
use paceline::hub::{Hub, Mailbox, Message};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The letters that the broker has, and that come, as any program can read them.
pub fn mailbox_of_letters(broker: &Broker) -> (Bridge, Mailbox) {
    let there = hub();
    let mailbox = there.mailbox("paceline.imports.>", 1000).unwrap();
    let rule = Import::new("paceline.imports.>").at_least_once("paceline_dead", "reader");
    (connected(Bridge::nats(&there, broker.url()).import(rule)), mailbox)
}

/// The subject, payload, failure and attempts of the letters that the broker has, which are so many.
pub fn letters(broker: &Broker, count: usize) -> Vec<[String; 4]> {
    let (_bridge, mailbox) = mailbox_of_letters(broker);
    let mut letters = Vec::new();
    until("the letters are here", || {
        while let Ok(Some(letter)) = mailbox.try_recv() {
            let header = |name| letter.headers().get(name).unwrap_or_default().to_owned();
            assert_eq!(header("Nats-Msg-Id"), "");
            letters.push([
                header("Paceline-Subject"),
                String::from_utf8_lossy(letter.payload()).into_owned(),
                header("Paceline-Failure"),
                header("Paceline-Attempts"),
            ]);
        }
        letters.len() >= count
    });
    letters
}

/// An import of two attempts, whose handler fails at "fails" each time, and at "late" the first time.
fn failing(broker: &Broker, hub: &Hub) -> Bridge {
    let failed = AtomicU32::new(0);
    let handler = move |message: &Message<'_>| match &message.payload()[..] {
        b"fails" => Err("it never\nworks"),
        b"late" if failed.fetch_add(1, Relaxed) == 0 => Err("not yet"),
        _ => Ok(()),
    };
    hub.subscribe("k.*", handler).unwrap().detach();
    let rule = Import::new("k.*").at_least_once("K", "d");
    let rule = rule.retry(Retry::fixed(1, Duration::from_millis(10)));
    connected(Bridge::nats(hub, broker.url()).import(rule))
}

/// Goal: a message at which its handler has failed as often as it may is kept by the broker, with its headers and why; one
/// that succeeds at the last attempt is not.
#[test]
fn what_an_import_fails_at_for_good_is_kept_by_the_broker() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let here = hub();
    let bridge = failing(&broker, &here);
    let mut raw = Raw::connect(&broker.url());
    until("the consumer", || raw.request("$JS.API.CONSUMER.INFO.K.d", "").contains("\"config\""));
    raw.publish_with("k.fails", None, "shop: a\r\nNats-Msg-Id: 1\r\n", b"fails");
    raw.publish("k.late", b"late");
    raw.publish("k.calm", b"calm");
    until("all have ended", || {
        let stats = &bridge.stats().imports[0];
        (stats.dead, stats.acknowledged, stats.in_flight) == (1, 2, 0)
    });
    let letter = ["k.fails", "fails", "it never works", "2"].map(str::to_owned);
    assert_eq!(letters(&broker, 1), [letter]);
    let kept = raw.request("$JS.API.STREAM.INFO.paceline_dead", "");
    assert!(kept.contains("\"messages\":1,"), "{kept}");
    let subjects = r#"{"last_by_subj":"paceline.imports.K.d.>"}"#;
    let kept = raw.request("$JS.API.STREAM.MSG.GET.paceline_dead", subjects);
    assert!(kept.contains("\"subject\":\"paceline.imports.K.d.1-"), "{kept}");
}

/// Goal: a letter that the broker cannot store while it is away is stored when it is back.
#[test]
fn a_letter_outlives_the_connection() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let here = hub();
    let bridge = failing(&broker, &here);
    let mut raw = Raw::connect(&broker.url());
    until("the consumer", || raw.request("$JS.API.CONSUMER.INFO.K.d", "").contains("\"config\""));
    // Nobody can store a letter in a stream of this kind.
    let memory = r#"{"name":"paceline_dead","subjects":["paceline.imports.>"],"storage":"memory"}"#;
    raw.request("$JS.API.STREAM.CREATE.paceline_dead", memory);
    raw.publish("k.fails", b"fails");
    until("it has failed", || here.dead_letter_stats().held == 1);
    raw.request("$JS.API.STREAM.DELETE.paceline_dead", "");
    broker.kill();
    broker.start_again();
    let letter = ["k.fails", "fails", "it never works", "2"].map(str::to_owned);
    assert_eq!(letters(&broker, 1), [letter]);
    until("it has ended", || bridge.stats().imports[0].in_flight == 0);
}
