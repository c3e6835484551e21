//! Groups: each message goes to one member, and keys keep their order while members change.

use crate::common::{Count, Gate, Random, hang_guard, quiet_panic, until};
use crate::kit::{Log, at_rest, hub, settle};
use paceline::hub::{
    Balance, Execution, Filter, Headers, Hub, Intensity, Message, OnFailure, Overflow, Retry,
    Subscription, Unsubscribe,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn member(hub: &Hub, balance: Balance, log: &Log) -> Subscription {
    let log = log.clone();
    let builder = hub.subscription("work.>").group("workers", balance);
    builder.serve(move |message: &Message<'_>| log.note(message)).unwrap()
}

#[test]
fn each_message_goes_to_one_member() {
    let _guard = hang_guard();
    for balance in [Balance::RoundRobin, Balance::LeastLoaded, Balance::Random(7), Balance::ByKey] {
        let hub = hub(2);
        let logs = [(); 3].map(|()| Log::default());
        let members = logs.each_ref().map(|log| member(&hub, balance.clone(), log));
        let beside = Log::default();
        let seen = beside.clone();
        let _beside =
            hub.subscribe("work.>", move |message: &Message<'_>| seen.note(message)).unwrap();
        for number in 0..300 {
            let receipt = hub.publish(format!("work.{number}"), number.to_string()).unwrap();
            assert_eq!((receipt.matched, receipt.enqueued), (2, 2));
        }
        at_rest(&hub);
        let mut all: Vec<String> = logs.iter().flat_map(Log::lines).collect();
        all.sort_by_key(|line| line.parse::<u32>().unwrap());
        assert_eq!(all, (0..300).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(beside.len(), 300);
        if balance == Balance::RoundRobin {
            assert!(members.iter().all(|member| member.stats().delivered == 100));
        }
        assert!(logs.iter().all(|log| log.len() > 0), "{balance:?}");
        settle(&hub);
    }
}

#[test]
fn the_least_loaded_is_not_the_one_that_is_stuck() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let inside = gate.clone();
    let balance = Balance::LeastLoaded;
    let stuck = hub.subscription("work.>").group("workers", balance.clone());
    let stuck = stuck.serve(move |_: &Message<'_>| inside.wait()).unwrap();
    let _ = hub.publish("work.x", "x").unwrap();
    gate.until_entered(1);
    let log = Log::default();
    let free = member(&hub, balance, &log);
    for number in 1..=20 {
        let _ = hub.publish("work.x", number.to_string()).unwrap();
        until("it is delivered", || free.stats().delivered + stuck.stats().waiting == number);
    }
    assert!(free.stats().delivered >= 19, "{:?}", free.stats());
    gate.open();
    settle(&hub);
}

/// Goal: the new owner of a key starts when the old one has finished. Method: the old one is held in its
/// handler while others join, until the key has moved.
#[test]
fn a_key_that_moves_waits_for_its_old_owner() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let inside = gate.clone();
    let old = hub.subscription("work.>").group("workers", Balance::ByKey);
    let _old = old.serve(move |_: &Message<'_>| inside.wait()).unwrap();
    let _ = hub.publish("work.x", "0").unwrap();
    gate.until_entered(1);
    let log = Log::default();
    let mut members = Vec::new();
    let mut count = 0;
    while hub.moving() == 0 {
        members.push(member(&hub, Balance::ByKey, &log));
        count += 1;
        assert_eq!(hub.publish("work.x", count.to_string()).unwrap().enqueued, 1);
    }
    count += 1;
    let _ = hub.publish("work.x", count.to_string()).unwrap();
    let (moving, audit) = (hub.moving(), hub.audit());
    assert!(moving == 2 && audit.is_balanced() && audit.waiting >= 2, "{moving} {audit:?}");
    assert_eq!(log.len(), 0, "the old owner has not finished");
    gate.open();
    at_rest(&hub);
    assert_eq!(log.lines(), [(count - 1).to_string(), count.to_string()]);
    assert_eq!(hub.moving(), 0);
    settle(&hub);
}

#[test]
fn what_waits_for_nobody_is_discarded() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let inside = gate.clone();
    let old = hub.subscription("work.>").group("workers", Balance::ByHeader("id".into()));
    let old = old.serve(move |_: &Message<'_>| inside.wait()).unwrap();
    let publish = |hub: &Hub| {
        let headers = Headers::new([("id", "7")]).unwrap();
        hub.message("work.x").headers(headers).publish().unwrap()
    };
    let _ = publish(&hub);
    gate.until_entered(1);
    let _later = old.unsubscribe(Unsubscribe::Drain).unwrap();
    let new = member(&hub, Balance::ByHeader("id".into()), &Log::default());
    assert_eq!((publish(&hub).enqueued, hub.moving()), (1, 1));
    drop(new);
    assert_eq!((hub.moving(), hub.audit().discarded), (0, 1));
    gate.open();
    settle(&hub);
}

#[test]
fn a_suspended_member_leaves_the_work_to_others() {
    let _guard = hang_guard();
    let hub = hub(2);
    let bad = hub.subscription("work.>").group("workers", Balance::RoundRobin);
    let bad = bad.intensity(Intensity::new(0, Duration::from_secs(1)).suspend_for_good());
    let bad = bad.serve(|_: &Message<'_>| -> Result<(), &str> { quiet_panic("no") }).unwrap();
    let log = Log::default();
    let _good = member(&hub, Balance::RoundRobin, &log);
    let _ = hub.publish_batch("work.x", ["1", "2"]).unwrap();
    until("one is suspended", || bad.is_suspended());
    let receipt = hub.publish_batch("work.x", ["3", "4", "5"]).unwrap();
    assert_eq!((receipt.enqueued, receipt.dead_lettered), (3, 0));
    at_rest(&hub);
    assert_eq!(log.lines(), ["2", "3", "4", "5"]);
    assert!(bad.resume());
    let _ = hub.publish_batch("work.x", ["6", "7"]).unwrap();
    at_rest(&hub);
    assert_eq!((log.len(), bad.stats().dead_lettered), (5, 2));
    settle(&hub);
}

#[test]
fn bad_groups_are_named() {
    let _guard = hang_guard();
    let hub = hub(1);
    let _first = member(&hub, Balance::RoundRobin, &Log::default());
    let error = |builder: paceline::hub::SubscriptionBuilder<'_>| {
        builder.serve_shared(|_: &Message<'_>| ()).unwrap_err().to_string()
    };
    let builder = |balance| hub.subscription("work.>").group("workers", balance);
    assert_eq!(
        error(builder(Balance::ByKey)),
        "balance is ByKey for the group \"workers\", but must be RoundRobin, as of its other members"
    );
    assert_eq!(
        error(builder(Balance::RoundRobin).execution(Execution::Strand)),
        "execution is Strand, but must be Serial in a group, or Concurrent if it goes not by key or \
         header, or Pull, which is acknowledged if it does"
    );
    assert_eq!(
        error(hub.subscription("a").group("g", Balance::ByKey).overflow(Overflow::DropOldest)),
        "overflow is DropOldest, but must be Block, Reject or DropNewest in a group by key or header"
    );
    assert_eq!(
        error(builder(Balance::RoundRobin).filter(Filter::header("a", "b"))),
        "filter is set, but must be left out in a group"
    );
    assert_eq!(
        error(hub.subscription("a").group("", Balance::ByKey)),
        "the name of a group is 0 bytes long, but must be 1 to 255 bytes long"
    );
    settle(&hub);
}

/// What the handlers of a group have seen of each key.
#[derive(Default)]
struct Keys {
    last: HashMap<String, u64>,
    inside: HashMap<String, u64>,
    out_of_order: u64,
    together: u64,
    delivered: u64,
}

/// Goal: while members come and go, each key is with one member at a time, in order, and nothing is lost but
/// what the books say. Method: two publishers of eight keys, members that drain or just end, and handlers
/// that fail and are tried again.
#[test]
fn keys_keep_their_order_while_members_change() {
    let _guard = hang_guard();
    let rounds: u64 = std::env::var("PACELINE_HUB_GROUP").map_or(3_000, |n| n.parse().unwrap());
    let hub = hub(3);
    let keys = Arc::new(Mutex::new(Keys::default()));
    let come = |number: u64| {
        let (keys, random) = (Arc::clone(&keys), Mutex::new(Random::new(number)));
        let retry = Retry::fixed(2, Duration::from_micros(50));
        hub.subscription("work.>")
            .group("workers", Balance::ByKey)
            .capacity(1 << 16)
            .on_failure(OnFailure::dead_letter().retry(retry))
            .intensity(Intensity::unlimited())
            .serve(move |message: &Message<'_>| {
                let key = message.key().to_string();
                let sequence = message.sequence();
                let mut seen = keys.lock().unwrap();
                let inside = seen.inside.entry(key.clone()).or_default();
                *inside += 1;
                let together = *inside > 1;
                seen.together += u64::from(together);
                let last = seen.last.insert(key.clone(), sequence).unwrap_or(0);
                seen.out_of_order += u64::from(sequence < last);
                drop(seen);
                std::thread::yield_now();
                let fails = random.lock().unwrap().below(20) == 0;
                let mut seen = keys.lock().unwrap();
                *seen.inside.get_mut(&key).unwrap() -= 1;
                seen.delivered += u64::from(!fails);
                if fails { Err("on purpose") } else { Ok(()) }
            })
            .unwrap()
    };
    let first = come(0);
    let done = Count::new();
    std::thread::scope(|scope| {
        for publisher in 0..2u64 {
            let (hub, done) = (&hub, &done);
            scope.spawn(move || {
                // A key has one publisher, so that its order is that of the sequence numbers.
                let own =
                    [0, 1, 2, 3].map(|key| hub.key(&format!("work.{publisher}.{key}")).unwrap());
                let mut random = Random::new(publisher);
                for _ in 0..rounds {
                    let receipt = hub.publish(&own[random.below(4) as usize], "x").unwrap();
                    assert_eq!((receipt.matched, receipt.enqueued), (1, 1));
                }
                done.up();
            });
        }
        let mut members = Vec::new();
        let mut random = Random::new(7);
        for number in 1.. {
            if done.get() == 2 {
                break;
            }
            members.push(come(number));
            if members.len() > 3 {
                let member = members.swap_remove(random.below(4) as usize);
                let how = [Unsubscribe::Drain, Unsubscribe::Async][random.below(2) as usize];
                let _later = member.unsubscribe(how).unwrap();
                member.detach();
            }
            std::thread::yield_now();
        }
        members.into_iter().for_each(Subscription::detach);
    });
    let audit = at_rest(&hub);
    let seen = keys.lock().unwrap();
    assert_eq!((seen.together, seen.out_of_order), (0, 0));
    assert_eq!((audit.matched, audit.delivered), (2 * rounds, seen.delivered));
    assert_eq!(audit.rejected, 0);
    assert_eq!(hub.moving(), 0);
    drop(seen);
    drop(first);
    settle(&hub);
}
