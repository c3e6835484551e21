//! Messages of several keys, for everybody or nobody.

use crate::common::{Count, Gate, hang_guard, until};
use crate::kit::{Log, at_rest, hub, settle, told};
use paceline::Error;
use paceline::hub::{
    Balance, Execution, Failure, Filter, Headers, Hub, Message, OnFailure, Overflow, Retry,
    Unsubscribe,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

fn together<'a>(hub: &'a Hub, keys: &[&'a str]) -> paceline::Result<paceline::hub::Receipt> {
    hub.publish_all(keys.iter().map(|&key| hub.message(key).payload(key)))
}

/// Goal: one full mailbox, and nobody gets anything, nothing is counted, and what was kept is free again.
#[test]
fn one_refusal_is_a_refusal_of_all() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (first, log) = (hub.mailbox("a", 2).unwrap(), Log::default());
    let into = log.clone();
    let shared = hub.subscribe("a", move |message: &Message<'_>| into.note(message)).unwrap();
    let last = hub.mailbox("b", 1).unwrap();
    let receipt = together(&hub, &["a", "b"]).unwrap();
    assert_eq!((receipt.sequence, receipt.matched, receipt.enqueued), (2, 3, 3));
    for _ in 0..3 {
        let refused = together(&hub, &["a", "b"]).unwrap_err();
        assert!(matches!(refused, Error::MailboxFull { capacity: 1, .. }), "{refused}");
    }
    until("it was handled", || log.len() == 1);
    assert_eq!((first.stats().waiting, first.stats().rejected), (1, 0));
    assert_eq!((last.stats().waiting, last.stats().rejected), (1, 0));
    assert_eq!(at_rest_but(&hub, 2).published, 2, "numbers are not given to what nobody gets");
    assert_eq!(hub.publish("a", "more").unwrap().enqueued, 2, "room that was kept is free again");
    assert!(matches!(together(&hub, &["a"]), Err(Error::MailboxFull { capacity: 2, .. })));
    assert!(matches!(together(&hub, &["b", "b"]), Err(Error::MailboxFull { .. })));
    until("it was handled", || log.len() == 2);
    assert_eq!(shared.stats().matched, 2);
    drop((first, last, shared));
    settle(&hub);
}

fn at_rest_but(hub: &Hub, waiting: u64) -> paceline::hub::HubAudit {
    until("nothing runs", || hub.audit().running == 0 && hub.audit().waiting == waiting);
    hub.audit()
}

/// Goal: what takes by its own rules is no refusal: inline handlers, those that drop or conflate, filters that let
/// nothing in, suspended and ended ones.
#[test]
fn who_never_refuses_does_not_refuse() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let into = log.clone();
    let inline = hub
        .subscription("a")
        .execution(Execution::Inline)
        .serve_shared(move |message: &Message<'_>| into.note(message))
        .unwrap();
    let lossy = [Overflow::DropNewest, Overflow::DropOldest, Overflow::Conflate]
        .map(|overflow| hub.subscription("a").capacity(1).overflow(overflow).pull().unwrap());
    let filtered =
        hub.subscription("a").capacity(1).filter(Filter::header("to", "nobody")).pull().unwrap();
    let strand =
        hub.subscription("a").execution(Execution::Strand).serve(|_: &Message<'_>| ()).unwrap();
    for _ in 0..2 {
        let receipt = together(&hub, &["a"]).unwrap();
        assert_eq!((receipt.matched, receipt.rejected), (5, 0), "{receipt:?}");
    }
    assert_eq!(log.len(), 2);
    assert_eq!(lossy.each_ref().map(|one| one.stats().dropped), [1, 1, 1]);
    assert_eq!((filtered.stats().filtered, filtered.stats().waiting), (2, 0));
    let to_nobody = Headers::new([("to", "nobody")]).unwrap();
    let message = || hub.message("a").headers(to_nobody.clone());
    assert_eq!(hub.publish_all([message()]).unwrap().matched, 6);
    let full = hub.publish_all([message()]);
    assert!(matches!(full, Err(Error::MailboxFull { capacity: 1, .. })));
    drop((filtered, lossy, inline, strand));
    settle(&hub);
}

#[test]
fn what_cannot_be_promised_is_refused_with_its_name() {
    let _guard = hang_guard();
    let hub = hub(1);
    let refused = |messages: Vec<paceline::hub::Publication<'_, &'static str>>| {
        hub.publish_all(messages).unwrap_err().to_string()
    };
    let group = hub.subscription("g").group("workers", Balance::RoundRobin).pull().unwrap();
    assert_eq!(
        refused(vec![hub.message("g")]),
        "a key is g, which a group subscribes to, but must be one without groups"
    );
    assert_eq!(
        refused((0..1025).map(|_| hub.message("a")).collect()),
        "the number of messages is more, but must be up to 1024"
    );
    let other = Hub::new(hub.pool()).unwrap();
    assert_eq!(
        refused(vec![other.message("a")]),
        "a message is of another hub, but must be of this one"
    );
    assert!(refused(vec![hub.message("a"), hub.message("a b")]).contains("a b"));
    assert_eq!(together(&hub, &[]).unwrap(), Default::default());
    assert_eq!(hub.audit().published, 0);
    drop((group, other));
    settle(&hub);
}

/// Goal: what comes between the keeping of room and the messages takes no room that is kept, and is in order before
/// them, also if its subscription was in the ring of its channel, or might have come back to it meanwhile. Method:
/// the first of two messages has a handler in the publisher's thread, which publishes in between; the pool has
/// one thread, and a handler that holds it.
#[test]
fn what_comes_between_is_before_them_and_takes_no_room_of_theirs() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (log, gate) = (Log::default(), Gate::new());
    let (into, holds) = (log.clone(), gate.clone());
    let _ring = hub.subscribe("b", move |message: &Message<'_>| into.note(message)).unwrap();
    let tight = hub.mailbox("c", 1).unwrap();
    let _held = hub.subscribe("held", move |_: &Message<'_>| holds.wait()).unwrap();
    let (inner, held) = (hub.clone(), gate.clone());
    let between = hub
        .subscription("a")
        .execution(Execution::Inline)
        .serve_shared(move |_: &Message<'_>| {
            assert_eq!(told(inner.publish("c", "alone")).rejected, 1);
            let _ = inner.publish("b", "alone").unwrap();
            // The only thread gets to it when it has left the first.
            let _ = inner.publish("held", "").unwrap();
            held.until_entered(1);
            let _ = inner.publish("b", "behind it").unwrap();
        })
        .unwrap();
    let receipt = together(&hub, &["a", "b", "c"]).unwrap();
    assert_eq!((receipt.matched, receipt.enqueued), (3, 3));
    gate.open();
    until("all were handled", || log.len() == 3);
    assert_eq!(log.lines(), ["alone", "behind it", "b"]);
    assert_eq!((tight.stats().waiting, tight.stats().rejected), (1, 1));
    assert_eq!(between.stats().delivered, 1, "no assertion of it failed");
    drop((tight, between));
    settle(&hub);
}

/// Goal: under way with everything else: of pairs that publishers bring together each subscription gets both or
/// neither, in order, whatever others publish, subscribe, fail at and refuse. Method: handlers in the ring of
/// their channel, so that they leave it and come back all the time, and that fail and try again. The right one
/// begins when it has refused for a while and the left one has not: what one would get alone then is too much.
#[test]
fn both_or_neither_beside_everything_else() {
    const PAIRS: u64 = 400;
    const REFUSED: u64 = 50;
    let _guard = hang_guard();
    let hub = hub(3);
    let sums = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let refused = Count::new();
    let handlers: Vec<_> = sums
        .iter()
        .zip(["left", "right"])
        .map(|(sum, key)| {
            let (sum, mut last) = (Arc::clone(sum), [0u64; 4]);
            let mut waits = (key == "right").then(|| refused.clone());
            hub.subscription(key)
                .capacity(3)
                .on_failure(
                    OnFailure::dead_letter().retry(Retry::fixed(3, Duration::from_micros(10))),
                )
                .serve(move |message: &Message<'_>| {
                    if let Some(refused) = waits.take() {
                        refused.until(REFUSED);
                    }
                    let text = String::from_utf8_lossy(message.payload()).into_owned();
                    let Some((who, number)) = text.split_once(' ') else { return Ok(()) };
                    let (who, number): (usize, u64) =
                        (who.parse().unwrap(), number.parse().unwrap());
                    if number.is_multiple_of(7) && message.attempt() == 1 {
                        return Err(Failure::new("once more"));
                    }
                    assert!(number > last[who], "{number} after {}", last[who]);
                    last[who] = number;
                    sum.fetch_add(number, SeqCst);
                    Ok(())
                })
                .unwrap()
        })
        .collect();
    let gate = Gate::new();
    let taken: u64 = thread::scope(|scope| {
        let pairs = |who: usize| {
            let (hub, gate, refused) = (&hub, gate.clone(), refused.clone());
            move || {
                gate.wait_for(4);
                let mut taken = 0;
                for number in 1..=PAIRS {
                    let text = format!("{who} {number}");
                    let both = ["left", "right"].map(|key| hub.message(key).payload(text.clone()));
                    match hub.publish_all(both) {
                        Ok(receipt) => {
                            assert!(receipt.matched >= 2 && receipt.rejected == 0, "{receipt:?}");
                            taken += number;
                        }
                        Err(Error::MailboxFull { .. }) => {
                            refused.up();
                            thread::yield_now();
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                taken
            }
        };
        let publishers = [scope.spawn(pairs(0)), scope.spawn(pairs(1))];
        let (noise, gates) = (&hub, [gate.clone(), gate.clone()]);
        let [one, two] = gates;
        scope.spawn(move || {
            one.wait_for(4);
            (0..PAIRS).for_each(|_| drop(noise.publish("right", "alone")));
        });
        scope.spawn(move || {
            two.wait_for(4);
            for _ in 0..50 {
                let passer_by = noise.subscribe("left", |_: &Message<'_>| ()).unwrap();
                let _later = passer_by.unsubscribe(Unsubscribe::Drain).unwrap();
            }
        });
        publishers.map(|publisher| publisher.join().unwrap()).iter().sum()
    });
    let audit = at_rest(&hub);
    assert_eq!(audit.dead_lettered, 0, "{:?}", hub.errors(&Default::default()));
    assert_eq!(sums.each_ref().map(|sum| sum.load(SeqCst)), [taken; 2]);
    assert!(taken > 0);
    drop(handlers);
    settle(&hub);
}
