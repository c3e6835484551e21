//! Hubs: handlers, filters, codecs, requests, replays, supervision, thresholds.

use crate::charge::{Bang, Charge, Driver, panics};
use crate::common::{Count, LONG, until};
use paceline::Pool;
use paceline::hub::history::{History, ReplayFrom};
use paceline::hub::{
    Answer, Codec, Failure, Filter, Hub, Message, OnFailure, RequestError, Stored, Text, Threshold,
};
use paceline::metrics::Registry;
use std::time::Duration;

/// It panics but for the first time, when it makes a handler that panics.
fn factory(bang: Bang) -> impl FnMut() -> Box<dyn FnMut(&Message<'_>) + Send> + Send {
    let (charge, mut is_first) = (bang.charge(), true);
    move || {
        if !core::mem::replace(&mut is_first, false) {
            charge.go();
        }
        let charge = bang.charge();
        Box::new(move |_: &Message<'_>| charge.go())
    }
}

pub const DRIVERS: &[(&str, Driver)] = &[
    ("Hub::subscribe", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let charge = bang.charge();
        let subscription =
            hub.subscribe("a", move |_: &Message<'_>| -> () { charge.go() }).unwrap();
        still_serves(&hub);
        let _in_drop = panics(|| drop(subscription));
    }),
    ("SubscriptionBuilder::serve", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let charge = bang.charge();
        let builder = hub.subscription("a").on_failure(OnFailure::discard());
        builder.serve(move |_: &Message<'_>| -> () { charge.go() }).unwrap().detach();
        still_serves(&hub);
    }),
    ("SubscriptionBuilder::serve_factory", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let made = hub.subscription("a").serve_factory(factory(bang)).unwrap();
        still_serves(&hub);
        still_serves(&hub);
        let _in_drop = panics(|| drop(made));
    }),
    ("ReplayBuilder::serve_factory", |pool, bang| {
        let hub = Hub::builder(pool).history(History::of("a")).build().unwrap();
        let made = hub.replay("a", ReplayFrom::Beginning).serve_factory(factory(bang)).unwrap();
        still_serves(&hub);
        still_serves(&hub);
        let _in_drop = panics(|| drop(made));
    }),
    ("SubscriptionBuilder::serve_shared", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let charge = bang.charge();
        let builder = hub.subscription("a");
        builder.serve_shared(move |_: &Message<'_>| -> () { charge.go() }).unwrap().detach();
        still_serves(&hub);
    }),
    ("SubscriptionBuilder::on_restart", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let charge = bang.charge();
        let builder = hub.subscription("a").on_restart(move |_| charge.go());
        builder.serve(move |_: &Message<'_>| -> () { bang.go() }).unwrap().detach();
        still_serves(&hub);
    }),
    ("ReplayBuilder::on_restart", |pool, bang| {
        let hub = Hub::builder(pool).history(History::of("a")).build().unwrap();
        let charge = bang.charge();
        let builder = hub.replay("a", ReplayFrom::Beginning).on_restart(move |_| charge.go());
        builder.serve(move |_: &Message<'_>| -> () { bang.go() }).unwrap().detach();
        still_serves(&hub);
    }),
    ("ReplayBuilder::serve", |pool, bang| {
        let hub = Hub::builder(pool).history(History::of("a")).build().unwrap();
        let _ = hub.publish("a", "before").unwrap();
        let charge = bang.charge();
        let builder = hub.replay("a", ReplayFrom::Beginning);
        let replay = builder.serve(move |_: &Message<'_>| -> () { charge.go() }).unwrap();
        still_serves(&hub);
        let _in_drop = panics(|| drop(replay));
    }),
    ("Publication::request_then", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let told = Count::new();
        let mute = hub.mailbox("mute", 8).unwrap();
        for time in [Duration::from_millis(1), LONG] {
            let (charge, tell) = (bang.charge_once(), told.clone());
            let then = move |_: Result<Stored, RequestError>| {
                tell.up();
                charge.go()
            };
            let asked = hub.message("mute").request_then(time, then).unwrap();
            let request = mute.recv_timeout(LONG).unwrap();
            if time == LONG {
                let _replied = hub.reply(&request.into_stored(), "reply");
            }
            drop(asked);
        }
        told.until(2);
        still_serves(&hub);
    }),
    ("Filter::predicate", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let charge = bang.charge();
        let filter = Filter::predicate(move |_| charge.go());
        let builder = hub.subscription("a").filter(filter);
        builder.serve(|_: &Message<'_>| ()).unwrap().detach();
        still_serves(&hub);
    }),
    ("WatchBuilder::on_crossing", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let registry = Registry::new();
        registry.gauge("heat", "Of the test", &[]).unwrap().set(7.0);
        let charge = bang.charge();
        let builder = hub.watch(&registry, Duration::from_millis(1));
        let builder = builder.threshold(Threshold::above("heat", 1.0));
        let watch = builder.on_crossing(move |_| charge.go()).start().unwrap();
        until("it has looked on", || watch.panics() == 1 && watch.looks() > 2);
        still_serves(&hub);
        let _in_drop = panics(|| drop(watch));
    }),
    ("Topic::subscribe", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let topic = hub.topic::<String, _>("a", Text).unwrap();
        let charge = bang.charge();
        let handler = move |_: String, _: &Message<'_>| -> () { charge.go() };
        topic.subscribe(handler).unwrap().detach();
        let _ = topic.publish(&"!".to_owned()).unwrap();
        still_serves(&hub);
    }),
    ("Topic::handler", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        let topic = hub.topic::<String, _>("a", Text).unwrap();
        let charge = bang.charge();
        let handler = topic.handler(move |_: String, _: &Message<'_>| -> () { charge.go() });
        hub.subscription("a").serve(handler).unwrap().detach();
        let _ = topic.publish(&"!".to_owned()).unwrap();
        still_serves(&hub);
    }),
    ("Codec::encode", |pool, bang| codec(pool, bang, "encode")),
    ("Codec::decode", |pool, bang| codec(pool, bang, "decode")),
    ("Answer::into_failure", |pool, bang| {
        let hub = Hub::new(pool).unwrap();
        hub.subscribe("a", move |_: &Message<'_>| OddAnswer(bang)).unwrap().detach();
        still_serves(&hub);
    }),
];

/// Publishes, to the place that panics and to others, and sees it through.
fn still_serves(hub: &Hub) {
    let seen = Count::new();
    let see = seen.clone();
    let other = hub.subscribe("*", move |_: &Message<'_>| see.up()).unwrap();
    for round in 1..=5 {
        let _ = hub.publish("a", "!").unwrap();
        seen.until(round);
    }
    drop(other);
    until("all is handled", || {
        let audit = hub.audit();
        audit.is_balanced() && audit.waiting == 0 && audit.running == 0
    });
}

/// Panics in one of its methods.
struct Odd {
    place: &'static str,
    charge: Charge,
}

impl Odd {
    fn at(&self, place: &str) {
        if self.place == place {
            self.charge.go()
        }
    }
}

impl Codec<String> for Odd {
    fn encode(&self, value: &String, into: &mut Vec<u8>) -> Result<(), Failure> {
        self.at("encode");
        into.extend_from_slice(value.as_bytes());
        Ok(())
    }
    fn decode(&self, bytes: &[u8]) -> Result<String, Failure> {
        self.at("decode");
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    }
}

fn codec(pool: &Pool, bang: Bang, place: &'static str) {
    let hub = Hub::new(pool).unwrap();
    let topic = hub.topic("a", Odd { place, charge: bang.charge_once() }).unwrap();
    let subscription = topic.subscribe(|_: String, _: &Message<'_>| ()).unwrap();
    let publish = || assert_eq!(topic.publish(&"!".to_owned()).unwrap().matched, 1);
    assert_eq!(panics(publish), place == "encode", "it is the user's own thread");
    still_serves(&hub);
    let _in_drop = panics(|| drop((subscription, topic)));
}

struct OddAnswer(Bang);

impl Answer for OddAnswer {
    fn into_failure(self) -> Option<Failure> {
        self.0.go()
    }
}
