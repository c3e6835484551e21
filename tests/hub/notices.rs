//! What a hub tells of itself under `$SYS.`, and the errors that it keeps.

use crate::common::{hang_guard, quiet_panic, until};
use crate::kit::{at_rest, hub, pool, settle, told};
use paceline::hub::{
    DeadFilter, ErrorFilter, Failure, Hub, HubBuilder, Intensity, Mailbox, Message, Overflow, Rate,
    Received, Severity, Unsubscribe,
};
use serde_json::Value;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const MILLI: Duration = Duration::from_millis(1);

fn hub_with(settings: impl FnOnce(HubBuilder<'_>) -> HubBuilder<'_>) -> Hub {
    settings(Hub::builder(&pool(2)).notice_interval(MILLI)).build().unwrap()
}

/// What a listener has heard so far.
struct Ear {
    mailbox: Mailbox,
    heard: Vec<(String, Value)>,
}

impl Ear {
    fn new(hub: &Hub, pattern: &str) -> Self {
        Self { mailbox: hub.mailbox(pattern, 100_000).unwrap(), heard: Vec::new() }
    }

    fn listen(&mut self) {
        let mut batch: Vec<Received> = Vec::new();
        self.mailbox.recv_batch(&mut batch, 10_000).unwrap();
        for message in batch {
            let notice: Value = serde_json::from_slice(message.payload()).unwrap();
            assert_eq!(
                message.key().as_str(),
                format!("$SYS.{}", notice["event"].as_str().unwrap())
            );
            for name in ["event", "severity"] {
                assert_eq!(message.headers().get(name), notice[name].as_str());
            }
            self.heard.push((message.key().to_string(), notice));
        }
    }

    /// Waits for a notice with this key.
    fn until(&mut self, key: &str) -> Value {
        let mut found = None;
        until(key, || {
            self.listen();
            found = self.heard.iter().find(|(heard, _)| heard == key).cloned();
            found.is_some()
        });
        found.unwrap().1
    }

    /// The sum of the counts of all notices with this key.
    fn count(&mut self, key: &str) -> u64 {
        self.listen();
        let counts = self.heard.iter().filter(|(heard, _)| heard == key);
        counts.map(|(_, notice)| notice["count"].as_u64().unwrap()).sum()
    }

    fn keys(&mut self) -> Vec<&str> {
        self.listen();
        self.heard.iter().map(|(key, _)| key.as_str()).collect()
    }
}

#[test]
fn the_life_of_a_subscription_is_told() {
    let _guard = hang_guard();
    let hub = hub_with(|builder| builder);
    let mut ear = Ear::new(&hub, "$SYS.>");
    let panics = |_: &Message<'_>| -> Result<(), Failure> { quiet_panic("on purpose") };
    let intensity = Intensity::new(1, HOUR).resume_after(HOUR, HOUR);
    let subscription = hub.subscription("a.*").intensity(intensity).serve(panics).unwrap();
    let started = ear.until("$SYS.subscription.started");
    assert_eq!(started["subscription"], subscription.id());
    assert_eq!((&started["pattern"], &started["severity"]), (&"a.*".into(), &"info".into()));
    assert_eq!((&started["lost"], started["time"].as_str().map(str::len)), (&0.into(), Some(24)));
    let _ = hub.publish("a.b", "1").unwrap();
    let restarted = ear.until("$SYS.subscription.restarted");
    assert_eq!(
        (&restarted["count"], &restarted["failure"]),
        (&1.into(), &"panicked: on purpose".into())
    );
    let _ = hub.publish("a.b", "2").unwrap();
    let suspended = ear.until("$SYS.subscription.suspended");
    assert_eq!((&suspended["severity"], &suspended["waited"]), (&"error".into(), &0.into()));
    assert_eq!(suspended["resumes_in_ms"], 3_600_000);
    assert!(subscription.resume());
    ear.until("$SYS.subscription.resumed");
    let _now_or_later = subscription.unsubscribe(Unsubscribe::Async).unwrap();
    let ended = ear.until("$SYS.subscription.ended");
    let origin = format!("subscription {} (a.*)", subscription.id());
    assert_eq!((&ended["origin"], &ended["delivered"]), (&origin.clone().into(), &0.into()));
    // Those that went wrong are kept, in order.
    let errors = hub.errors(&ErrorFilter::all());
    let events: Vec<_> = errors.iter().map(|error| (error.event, error.severity)).collect();
    assert_eq!(
        events,
        [
            ("subscription.restarted", Severity::Warning),
            ("subscription.suspended", Severity::Error)
        ]
    );
    assert_eq!((errors[0].number, &errors[0].origin), (1, &origin));
    assert_eq!(errors[0].message, "restart 1: panicked: on purpose");
    drop(ear);
    settle(&hub);
}

/// Goal: each loss is in one notice's count, whatever the overflow policy and however the mailbox came to be
/// full. Method: publishers beside each other, a short interval, and pauses in which bursts end.
#[test]
fn every_loss_by_a_full_mailbox_is_told_once() {
    let _guard = hang_guard();
    for overflow in [Overflow::Reject, Overflow::DropNewest, Overflow::DropOldest] {
        let hub = hub_with(|builder| builder);
        let mut ear = Ear::new(&hub, "$SYS.subscription.overflow");
        let full = hub.subscription("a").capacity(1).overflow(overflow).pull().unwrap();
        let slow = hub
            .subscription("a")
            .capacity(1)
            .overflow(overflow)
            .serve(|_: &Message<'_>| std::thread::yield_now())
            .unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 0..300 {
                        let message = hub.message("a").payload("x").no_wait();
                        assert_eq!(told(message.publish()).matched, 2);
                        if number % 100 == 99 {
                            std::thread::sleep(5 * MILLI);
                        }
                    }
                });
            }
        });
        let lost = |stats: paceline::hub::SubscriptionStats| stats.dropped + stats.rejected;
        let _rest = full.try_recv().unwrap();
        at_rest_but(&hub, &ear);
        let all = lost(full.stats()) + lost(slow.stats());
        assert!(all >= 500, "{all}");
        until("all losses are told", || ear.count("$SYS.subscription.overflow") == all);
        let kept = hub.errors(&ErrorFilter::all().event("subscription.overflow").limit(1));
        assert!(kept[0].message.starts_with("the mailbox was full: "), "{kept:?}");
        drop(ear);
        settle(&hub);
    }
}

/// Waits until nothing waits but what the listener has not taken.
fn at_rest_but(hub: &Hub, ear: &Ear) {
    until("nothing else waits or runs", || {
        let audit = hub.audit();
        audit.running == 0 && audit.waiting == ear.mailbox.stats().waiting
    });
}

#[test]
fn what_the_hub_forgets_and_refuses_is_told() {
    let _guard = hang_guard();
    let hub = hub_with(|builder| builder.dead_letters(2));
    let mut ear = Ear::new(&hub, "$SYS.>");
    let fails = |_: &Message<'_>| Err::<(), _>(Failure::new("no"));
    let _bad = hub.subscription("a").intensity(Intensity::unlimited()).serve(fails).unwrap();
    for _ in 0..7 {
        let _ = hub.publish("a", "").unwrap();
    }
    until("five are forgotten", || ear.count("$SYS.dead.forgotten") == 5);
    assert_eq!(hub.dead_letters(&DeadFilter::all()).len(), 2);

    let strict = hub.publisher("strict").quota(Rate::new(1, HOUR)).build().unwrap();
    let refused = (0..5).filter(|_| strict.publish("b", "").is_err()).count() as u64;
    until("all refusals are told", || ear.count("$SYS.publisher.refused") == refused);
    assert_eq!(refused, 4);
    let errors = hub.errors(&ErrorFilter::all().origin("publisher strict"));
    assert_eq!(errors[0].message, "1 refused beyond its quota");

    let leased = hub.subscription("c").lease(MILLI).pull().unwrap();
    let lapsed = ear.until("$SYS.subscription.lapsed");
    assert_eq!((&lapsed["subscription"], &lapsed["lease_ms"]), (&leased.id().into(), &1.into()));
    drop(ear);
    settle(&hub);
}

/// Goal: a notice causes none. Method: listeners that lose, fail, are suspended and end; then nothing is told
/// any more.
#[test]
fn a_notice_never_causes_a_notice() {
    let _guard = hang_guard();
    let hub = hub_with(|builder| builder);
    let full = hub.subscription("$SYS.>").capacity(1).pull().unwrap();
    let panics = |_: &Message<'_>| -> Result<(), Failure> { quiet_panic("no") };
    let intensity = Intensity::new(1, HOUR).suspend_for_good();
    let bad = hub.subscription("$SYS.>").intensity(intensity).serve(panics).unwrap();
    for _ in 0..10 {
        drop(hub.mailbox("a", 1).unwrap());
    }
    // Ten started, and ten ended.
    until("all but the first find it full", || full.stats().rejected == 19);
    until("the listener is suspended", || bad.is_suspended());
    let _now_or_later = bad.unsubscribe(Unsubscribe::Sync).unwrap();
    // A listener's own failures are kept with the errors.
    until("the errors", || !hub.errors(&ErrorFilter::all().at_least(Severity::Error)).is_empty());
    assert!(hub.errors(&ErrorFilter::all().event("subscription.overflow")).is_empty());
    // One more, and it is the last.
    drop(hub.mailbox("a", 1).unwrap());
    until("the last two", || full.stats().rejected == 21);
    assert!(full.try_recv().unwrap().is_some());
    at_rest(&hub);
    assert_eq!(hub.notice_stats().told, 22);
    settle(&hub);
}

#[test]
fn who_does_not_listen_hears_nothing_and_pays_nothing() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mut all = Ear::new(&hub, ">");
    drop(hub.mailbox("a", 1).unwrap());
    let stats = hub.notice_stats();
    assert_eq!((stats.told, stats.lost, hub.audit().published), (0, 0, 0));
    // It begins and ends with the subscription.
    let mut ear = Ear::new(&hub, "$SYS.subscription.*");
    drop(hub.mailbox("a", 1).unwrap());
    ear.until("$SYS.subscription.ended");
    assert_eq!(ear.keys(), ["$SYS.subscription.started", "$SYS.subscription.ended"]);
    drop(ear);
    let told = hub.notice_stats().told;
    drop(hub.mailbox("a", 1).unwrap());
    assert_eq!((hub.notice_stats().told, told), (2, 2));
    assert!(all.keys().is_empty(), "nobody hears of himself by >");
    settle(&hub);
}

#[test]
fn errors_are_bounded_and_found_by_filters() {
    let _guard = hang_guard();
    let hub = hub_with(|builder| builder.errors(3));
    let panics = |_: &Message<'_>| -> Result<(), Failure> { quiet_panic("no") };
    let intensity = Intensity::new(4, HOUR).suspend_for_good();
    let bad = hub.subscription("a").intensity(intensity).serve(panics).unwrap();
    for _ in 0..5 {
        let _ = hub.publish("a", "").unwrap();
    }
    until("it is suspended", || bad.is_suspended());
    until("all are recorded", || hub.notice_stats().errors == 5);
    let stats = hub.notice_stats();
    assert_eq!((stats.errors, stats.forgotten, stats.told), (5, 2, 0));
    let numbers = |filter: ErrorFilter| -> Vec<u64> {
        hub.errors(&filter).iter().map(|error| error.number).collect()
    };
    let first = hub.errors(&ErrorFilter::all())[0].clone();
    assert_eq!(numbers(ErrorFilter::all()), [3, 4, 5]);
    assert_eq!(numbers(ErrorFilter::all().limit(2)), [4, 5]);
    assert_eq!(numbers(ErrorFilter::all().after(4)), [5]);
    assert_eq!(numbers(ErrorFilter::all().at_least(Severity::Error)), [5]);
    assert_eq!(numbers(ErrorFilter::all().event("subscription.r")), [3, 4]);
    assert_eq!(numbers(ErrorFilter::all().since(first.time)), [3, 4, 5]);
    assert!(numbers(ErrorFilter::all().since(first.time + HOUR)).is_empty());
    assert!(numbers(ErrorFilter::all().origin("publisher")).is_empty());
    let refused = Hub::builder(hub.pool()).errors(1_000_001).build().map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "errors is 1000001, but must be up to 1000000");
    settle(&hub);
}
