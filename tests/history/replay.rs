//! Stored and then live, without a gap, without one twice.

use super::*;
use crate::common::{Count, Gate, hang_guard, in_child, open_descriptors, quiet_panic};
use paceline::Error;
use paceline::hub::history::{Limits, LinesOptions, Replay, ReplayFrom};
use paceline::hub::{
    Acknowledged, AfterCrash, DeadFilter, ErrorFilter, Execution, HubAudit, Intensity, OnFailure,
    Redelivered, RestartStrategy, Retry, Severity, Supervisor, Unsubscribe, Unsubscribed,
};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

/// How many messages each of the publishers of a test under load publishes.
const LOAD: u64 = 20_000;

fn all_kept(pattern: &str) -> History {
    History::of(pattern).keep(Limits::unlimited())
}

/// Publishes from three threads, to `a.0`, `a.1` and `b`, and calls `join` meanwhile, again and again. Says
/// what was published to which key, by sequence.
pub(super) fn under_load(hub: &Hub, mut join: impl FnMut(u64)) -> Vec<(u64, &'static str)> {
    let done = Count::new();
    let mut published: Vec<_> = thread::scope(|scope| {
        let publishers = ["a.0", "a.1", "b"].map(|name| {
            let (hub, done) = (hub.clone(), done.clone());
            scope.spawn(move || {
                let key = hub.key(name).unwrap();
                let publish = |number: u64| {
                    (hub.publish(&key, &number.to_le_bytes()).unwrap().sequence, name)
                };
                let published: Vec<_> = (0..LOAD).map(publish).collect();
                done.up();
                published
            })
        });
        let mut round = 0;
        while done.get() < 3 {
            join(round);
            round += 1;
            thread::yield_now();
        }
        assert!(round > 3, "nobody joined");
        publishers.into_iter().flat_map(|publisher| publisher.join().unwrap()).collect()
    });
    published.sort_unstable();
    published
}

/// Goal: whoever joins while publishers are at full speed gets, of his pattern, every message from where he
/// asked to begin, each once, in order. Method: replays from all kinds of places, against the list of what
/// the receipts said.
pub(super) fn joins(history: History) {
    let pool = pool(2);
    let hub = hub(&pool, history);
    let first = hub.publish("a.0", "first").unwrap().sequence;
    let mut replays = Vec::new();
    let published = under_load(&hub, |round| {
        if replays.len() >= 40 {
            return thread::sleep(Duration::from_millis(1));
        }
        let now = hub.publish("b", "now").unwrap().sequence;
        let pattern = if round % 2 == 0 { "a.*" } else { ">" };
        let from = match round % 5 {
            0 => ReplayFrom::Beginning,
            1 => ReplayFrom::Sequence(now / 2),
            2 => ReplayFrom::Last(100),
            3 => ReplayFrom::Time(SystemTime::now()),
            _ => ReplayFrom::Now,
        };
        let got = Got::default();
        let replay = hub.replay(pattern, from).serve(got.handler()).unwrap();
        replays.push((pattern, from, now, got, replay));
    });
    let last = hub.publish("a.0", "last").unwrap().sequence;
    let mut all = published;
    let known = |all: &[(u64, &str)]| all.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>();
    // What was published beside the publishers is what is missing between theirs.
    let theirs = known(&all);
    let others = (first..=last).filter(|sequence| theirs.binary_search(sequence).is_err());
    let others: Vec<_> =
        others.map(|n| (n, if n == first || n == last { "a.0" } else { "b" })).collect();
    all.extend(others);
    all.sort_unstable();
    for (pattern, from, now, got, replay) in replays {
        got.until_has(last);
        assert_eq!(hub.history_stats()[0].last_read_error, None);
        assert_eq!(replay.stats().lost, 0);
        assert_eq!(replay.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
        let got = got.sequences();
        let wanted = |(_, key): &&(u64, &str)| pattern == ">" || key.starts_with("a.");
        let all: Vec<u64> = all.iter().filter(wanted).map(|(sequence, _)| *sequence).collect();
        let begin = all.iter().position(|sequence| *sequence == got[0]).unwrap();
        assert_eq!(got, all[begin..], "{pattern} {from:?}");
        let before = all.iter().filter(|sequence| **sequence <= now).count();
        match from {
            ReplayFrom::Beginning => assert_eq!(begin, 0),
            ReplayFrom::Sequence(sequence) => {
                assert_eq!(begin, all.iter().filter(|other| **other < sequence).count());
            }
            ReplayFrom::Last(count) => {
                assert!(begin + count >= before.min(count), "{begin} {before}")
            }
            // Nothing that was before it.
            ReplayFrom::Now => assert!(begin >= before),
            _ => {}
        }
    }
    finish(&pool);
}

#[test]
fn memory_is_joined_to_what_is_live() {
    let _guard = hang_guard();
    joins(all_kept(">"));
}

/// Goal: a replay that is slower than a small ring knows exactly what it has lost.
#[test]
fn what_the_ring_let_go_of_is_told() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, History::of(">").keep(Limits::of_count(64)));
    let first = hub.publish("a.0", "first").unwrap().sequence;
    let got = Got::default();
    let replay = hub.replay(">", ReplayFrom::Beginning).serve(got.handler()).unwrap();
    got.until_has(first);
    under_load(&hub, |_| thread::sleep(Duration::from_millis(1)));
    let last = hub.publish("a.0", "last").unwrap().sequence;
    got.until_has(last);
    let (mut next, mut lost) = (first, 0);
    for (sequence, lost_before) in got.all() {
        // All sequences are of this history, so a gap is a loss.
        assert_eq!(sequence, next + lost_before);
        (next, lost) = (sequence + 1, lost + lost_before);
    }
    assert_eq!(next, last + 1);
    let stats = replay.stats();
    assert_eq!((stats.lost, stats.delivered + lost), (lost, last - first + 1));
    assert_eq!(stats.last, last);
    drop(replay);
    finish(&pool);
}

#[test]
fn replays_begin_where_they_are_asked_to() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a.>"));
    let publish = |key: &str, text: &str| hub.publish(key, text).unwrap().sequence;
    let sequences: Vec<_> = ["a.x", "a.y", "a.x"].map(|key| publish(key, "before")).into();
    until("a later time", || SystemTime::now() > hub.query(&Query::of("a.>")).unwrap()[2].time());
    let time = SystemTime::now();
    let fourth = publish("a.x", "after");
    let begin = |from| {
        let got = Got::default();
        let replay = hub.replay("a.x", from).serve(got.handler()).unwrap();
        (got, replay)
    };
    let beginnings = [
        (begin(ReplayFrom::Beginning), 4),
        (begin(ReplayFrom::Sequence(sequences[1])), 2),
        (begin(ReplayFrom::Sequence(fourth + 100)), 0),
        (begin(ReplayFrom::Time(time)), 1),
        (begin(ReplayFrom::Time(SystemTime::UNIX_EPOCH)), 3),
        (begin(ReplayFrom::Last(2)), 2),
        (begin(ReplayFrom::Last(0)), 0),
        (begin(ReplayFrom::Last(1000)), 3),
        (begin(ReplayFrom::Now), 0),
    ];
    let live = publish("a.x", "live");
    let x: Vec<_> = vec![sequences[0], sequences[2], fourth, live];
    for ((got, replay), stored) in beginnings {
        if stored == 4 {
            got.until_has(live);
            assert_eq!(got.sequences(), x);
        } else if replay.stats().last == 0 && live < fourth + 100 && stored == 0 {
            // The one from far ahead gets nothing; the others the live one.
        } else {
            got.until_has(live);
            assert_eq!(got.sequences(), x[3 - stored..]);
        }
    }
    finish(&pool);
}

#[test]
fn a_handler_that_fails_gets_the_next() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept(">"));
    (0..9).for_each(|_| {
        let _ = hub.publish("a", "").unwrap();
    });
    let mut number = 0;
    let handler = move |_: &Message<'_>| -> Result<(), &'static str> {
        number += 1;
        match number % 3 {
            0 => Err("no"),
            1 => quiet_panic("wanted"),
            _ => Ok(()),
        }
    };
    let builder = hub.replay(">", ReplayFrom::Beginning);
    let builder = builder.on_failure(OnFailure::discard()).intensity(Intensity::unlimited());
    let replay = builder.serve(handler).unwrap();
    until("all are counted", || replay.stats().delivered + replay.stats().failed == 9);
    assert_eq!((replay.stats().failed, replay.stats().restarts), (6, 3));
    drop(replay);
    finish(&pool);
}

/// What a handler was called with: the payload and the attempt. It fails at "fail", panics at "panic", and at "once"
/// the first time.
fn picky(
    calls: &Arc<Mutex<Vec<String>>>,
) -> impl FnMut(&Message<'_>) -> Result<(), &'static str> + use<> {
    let calls = Arc::clone(calls);
    move |message| {
        let text = String::from_utf8(message.payload().to_vec()).unwrap();
        calls.lock().unwrap().push(format!("{text} {}", message.attempt()));
        match (&*text, message.attempt()) {
            ("fail", _) | ("once", 1) => Err("on purpose"),
            ("panic", _) => quiet_panic("wanted"),
            _ => Ok(()),
        }
    }
}

fn audited(hub: &Hub) -> HubAudit {
    until("nothing waits or runs", || hub.audit().waiting + hub.audit().running == 0);
    let audit = hub.audit();
    assert!(audit.is_balanced(), "{audit:?}");
    audit
}

/// Goal: failures of a replay are those of a serial subscription: tried again in order, dead letters, restarts,
/// told, and in the books.
#[test]
fn failures_are_dealt_with_as_those_of_subscriptions() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a.>"));
    let publish = |text: &str| hub.publish("a.x", text).unwrap().sequence;
    let _four = ["1", "once", "fail", "2"].map(publish);
    let (calls, restarted) = (Arc::default(), Count::new());
    let count = restarted.clone();
    let replay = hub
        .replay("a.>", ReplayFrom::Beginning)
        .on_failure(OnFailure::dead_letter().retry(Retry::fixed(1, Duration::from_millis(1))))
        .intensity(Intensity::new(100, HOUR))
        .on_restart(move |_| count.up())
        .serve(picky(&calls))
        .unwrap();
    until("what was kept", || replay.stats().last == 4);
    // It sleeps, and is woken while it holds something.
    let _three = ["panic", "once", "3"].map(publish);
    until("what came", || replay.stats().last == 7);
    let tried = [
        "1 1", "once 1", "once 2", "fail 1", "fail 2", "2 1", "panic 1", "panic 2", "once 1",
        "once 2", "3 1",
    ];
    assert_eq!(*calls.lock().unwrap(), tried);
    let audit = audited(&hub);
    assert_eq!((audit.matched, audit.delivered, audit.dead_lettered), (7, 5, 2));
    let stats = replay.stats();
    assert_eq!((stats.matched, stats.delivered, stats.dead_lettered), (7, 5, 2));
    // Each of two panics counts, and errors do not.
    assert_eq!((stats.restarts, restarted.get()), (2, 2));
    assert_eq!(hub.stats().replays.len(), 1);
    assert_eq!(hub.stats().replays[0].stats, stats);
    let letters = hub.dead_letters(&DeadFilter::all().subscription(replay.id()));
    let told: Vec<_> = letters.iter().map(|one| (one.pattern(), one.attempts())).collect();
    assert_eq!(told, [("a.>", 2), ("a.>", 2)]);
    drop(replay);
    until("its end", || hub.stats().replays.is_empty());
    assert_eq!(audited(&hub), audit, "what has ended is in the books still");
    let again = hub.redeliver(&DeadFilter::all()).unwrap();
    assert_eq!((again.enqueued, again.refused, again.orphaned), (0, 0, 2));
    finish(&pool);
}

/// Goal: a dead letter of a replay goes to that replay again, behind what it has read and once for each time, as long as
/// it lasts and is not suspended; the books balance all the while. Method: one that sleeps, one that runs, one that is
/// suspended, and one that has ended, with letters of another beside them.
#[test]
fn dead_letters_of_a_replay_are_delivered_to_it_again() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a.>"));
    let publish = |text: &str| hub.publish("a.x", text).unwrap().sequence;
    let _three = ["1", "once", "2"].map(publish);
    let (calls, gate) = (Arc::<Mutex<Vec<String>>>::default(), Gate::new());
    let (works, log, held) = (Arc::<AtomicBool>::default(), Arc::clone(&calls), gate.clone());
    let heals = Arc::clone(&works);
    let replay = hub
        .replay("a.>", ReplayFrom::Beginning)
        .intensity(Intensity::new(1, HOUR).suspend_for_good())
        .serve(move |message: &Message<'_>| {
            let text = String::from_utf8(message.payload().to_vec()).unwrap();
            log.lock().unwrap().push(format!("{text} {}", message.attempt()));
            if text == "held" {
                held.wait();
            }
            let fails = matches!(&*text, "once" | "twice") && !heals.load(SeqCst);
            if fails { quiet_panic("wanted") } else { Ok::<(), &str>(()) }
        })
        .unwrap();
    let other = hub.subscribe("a.>", |_: &Message<'_>| Err::<(), _>("no")).unwrap();
    publish("3");
    until("the letters of both", || hub.dead_letter_stats().held == 2);
    until("its end of the log", || replay.stats().last == 4);
    let mine = DeadFilter::all().subscription(replay.id());
    let told = |again: Redelivered| (again.enqueued, again.refused, again.orphaned);

    // It sleeps, and is woken. What it was done with stays what it was.
    works.store(true, SeqCst);
    assert_eq!(told(hub.redeliver(&mine).unwrap()), (1, 0, 0));
    until("the letter", || replay.stats().delivered == 4);
    let stats = replay.stats();
    assert_eq!((stats.matched, stats.redelivered, stats.dead_lettered, stats.last), (5, 1, 1, 4));
    assert_eq!(*calls.lock().unwrap(), ["1 1", "once 1", "2 1", "3 1", "once 1"]);
    assert!(hub.dead_letters(&mine).is_empty());

    // It runs, and delivers it behind what it has read.
    works.store(false, SeqCst);
    publish("twice");
    until("another letter", || replay.stats().dead_lettered == 2 && replay.is_suspended());
    assert_eq!(told(hub.redeliver(&mine).unwrap()), (0, 1, 0), "it is suspended");
    assert!(replay.resume());
    works.store(true, SeqCst);
    calls.lock().unwrap().clear();
    let _two = ["held", "4"].map(publish);
    gate.until_entered(1);
    assert_eq!(told(hub.redeliver(&mine).unwrap()), (1, 0, 0));
    assert!(hub.audit().is_balanced());
    gate.open();
    until("all of it", || replay.stats().delivered == 7);
    let order = calls.lock().unwrap().clone();
    assert_eq!((&*order[0], order.len()), ("held 1", 3));
    assert!(order.contains(&"twice 1".into()) && order.contains(&"4 1".into()), "{order:?}");
    let audit = audited(&hub);
    let both = replay.stats().redelivered;
    assert_eq!((audit.redelivered, both, replay.stats().waiting), (2, 2, 0));

    // What waits when it ends is discarded; the letters of one that has ended stay, and are nobody else's.
    works.store(false, SeqCst);
    publish("twice");
    until("a letter", || hub.dead_letters(&mine).len() == 1);
    drop(replay);
    until("its end", || hub.stats().replays.is_empty());
    let before = hub.dead_letter_stats();
    assert_eq!(told(hub.redeliver(&mine).unwrap()), (0, 0, 1));
    let after = hub.dead_letter_stats();
    assert_eq!((after.held, after.buried), (before.held, before.buried + 1));
    drop(other);
    assert_eq!(audited(&hub).redelivered, 2);
    finish(&pool);
}

/// Goal: letters that go back and forth while a replay is suspended, resumed and ended are each counted once. Method: a
/// handler that fails at random, threads that redeliver and publish, and the hub's books at the end; letters that are
/// kept are those that died and were not taken out.
#[test]
fn redelivered_letters_balance_while_replays_come_and_go() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(SeqCst) {
                let _again = hub.redeliver(&DeadFilter::all()).unwrap();
                let audit = hub.audit();
                assert!(audit.is_balanced(), "{audit:?}");
            }
        });
        for round in 0..20 {
            let mut calls = 0_u32;
            let handler = move |_: &Message<'_>| {
                calls += 1;
                if calls.is_multiple_of(3) { quiet_panic("wanted") } else { Ok::<(), &str>(()) }
            };
            let replay = hub
                .replay("a", ReplayFrom::Now)
                .intensity(Intensity::new(20, HOUR).suspend_for_good())
                .serve(handler)
                .unwrap();
            for number in 0..100 {
                let _ = hub.publish("a", format!("{number}")).unwrap();
            }
            if round % 2 == 0 {
                until("its suspension", || replay.is_suspended());
                assert!(replay.resume());
            }
            if round == 0 {
                // It has letters, and more of them than suspend it again are delivered by then.
                until("a redelivery", || hub.audit().redelivered > 0);
            }
            drop(replay);
        }
        done.store(true, SeqCst);
    });
    let audit = audited(&hub);
    let letters = hub.dead_letter_stats();
    assert!(audit.redelivered > 0, "{audit:?}");
    assert_eq!(letters.buried, letters.held + letters.removed + letters.forgotten);
    // Each that died is a letter still, unless it was delivered again.
    assert_eq!(audit.dead_lettered, letters.held + audit.redelivered);
    finish(&pool);
}

/// Goal: a pulled replay that has ended keeps no descriptor. Method: some that wait for what is recorded next end, in a
/// process of its own; nothing is recorded after that.
#[test]
fn what_pulled_and_waited_leaves_no_descriptor() {
    let _guard = hang_guard();
    in_child(|| {
        let pool = pool(1);
        let hub = hub(&pool, all_kept("a"));
        let descriptors = open_descriptors();
        for _ in 0..3 {
            let mailbox = hub.replay("a", ReplayFrom::Now).mailbox().unwrap();
            let _descriptor = mailbox.descriptor().unwrap();
            assert_eq!(open_descriptors(), descriptors + 1);
            let mut taken = Vec::new();
            assert_eq!(mailbox.recv_batch_timeout(&mut taken, 1, Duration::ZERO).unwrap(), 0);
        }
        assert_eq!(open_descriptors(), descriptors);
        finish(&pool);
    });
}

/// Goal: what a replay does is in the registry, by replay, and goes when it ends.
#[cfg(feature = "metrics")]
#[test]
fn figures_of_a_replay_are_in_the_registry_while_it_lasts() {
    let _guard = hang_guard();
    let pool = pool(2);
    let registry = paceline::metrics::Registry::new();
    let hub =
        Hub::builder(&pool).history(all_kept("a.>")).metrics(&registry, "main").build().unwrap();
    let _four = ["1", "panic", "panic", "2"].map(|text| hub.publish("a.x", text).unwrap());
    let calls = Arc::default();
    let replays: Vec<_> = (0..2)
        .map(|restarts| {
            hub.replay("a.*", ReplayFrom::Beginning)
                .intensity(Intensity::new(2 * restarts, HOUR).suspend_for_good())
                .serve(picky(&calls))
                .unwrap()
        })
        .collect();
    until("both", || replays[0].is_suspended() && replays[1].stats().last == 4);
    until("its letter", || replays[0].stats().dead_lettered == 1);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 0);
    let figure = |name: &str, at: usize| {
        let id = replays[at].id().to_string();
        let labels = [("hub", "main"), ("replay", &*id), ("pattern", "a.*")];
        let value = snapshot.sample(&format!("paceline_hub_replay_{name}"), &labels);
        value.and_then(|value| value.number())
    };
    for (name, figures) in [
        ("matched", [4.0, 4.0]),
        ("delivered", [1.0, 2.0]),
        ("dead_lettered", [1.0, 2.0]),
        ("failed", [0.0, 0.0]),
        ("redelivered", [0.0, 0.0]),
        ("lost", [0.0, 0.0]),
        ("restarts", [0.0, 2.0]),
        ("waiting", [2.0, 0.0]),
        ("last_sequence", [2.0, 4.0]),
        ("suspended", [1.0, 0.0]),
    ] {
        assert_eq!([figure(name, 0), figure(name, 1)], figures.map(Some), "{name}");
    }
    let text = snapshot.to_prometheus();
    assert!(
        text.contains("paceline_hub_replay_matched_total{hub=\"main\",pattern=\"a.*\""),
        "{text}"
    );
    drop(replays);
    until("their end", || registry.snapshot().family("paceline_hub_replay_matched").is_none());
    finish(&pool);
}

/// Goal: a suspended replay misses nothing but what it has failed at. Method: a supervisor that it shares with a
/// subscription, which fails; and one that fails itself.
#[test]
fn a_suspended_replay_goes_on_where_it_was() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a.>"));
    let publish = |key: &str, text: &str| hub.publish(key, text).unwrap().sequence;
    let intensity = Intensity::new(0, HOUR).suspend_for_good();
    let supervisor = Supervisor::new(RestartStrategy::OneForAll, intensity).unwrap();
    let calls = Arc::default();
    let replay =
        hub.replay("a.>", ReplayFrom::Now).supervisor(&supervisor).serve(picky(&calls)).unwrap();
    let other = hub
        .subscription("b")
        .supervisor(&supervisor)
        .serve(|_: &Message<'_>| -> Result<(), &str> { quiet_panic("wanted") })
        .unwrap();
    publish("a.x", "1");
    until("the first", || replay.stats().delivered == 1);
    publish("b", "");
    until("the suspension", || replay.is_suspended() && other.is_suspended());
    publish("a.x", "2");
    assert!(replay.resume() && !other.is_suspended());
    until("what came meanwhile", || replay.stats().delivered == 2);
    let _three = ["3", "panic", "4"].map(|text| publish("a.x", text));
    until("its own suspension", || replay.is_suspended() && other.is_suspended());
    until("it was counted", || replay.stats().dead_lettered == 1);
    let last = publish("a.x", "5");
    assert!(other.resume());
    until("the last", || replay.stats().last == last);
    assert_eq!(*calls.lock().unwrap(), ["1 1", "2 1", "3 1", "panic 1", "4 1", "5 1"]);
    assert_eq!(audited(&hub).dead_lettered, 2);
    drop((replay, other));
    finish(&pool);
}

/// Goal: one that is detached lasts as long as its hub, though nothing else refers to it while it is suspended or
/// holds a message back; and no longer.
#[test]
fn a_detached_replay_lasts_as_long_as_its_hub() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept("a.>"));
    let (calls, dropped) = (Arc::default(), Count::new());
    let (mut picky, on_drop) = (picky(&calls), dropped.on_drop());
    let handler = move |message: &Message<'_>| {
        let _held = &on_drop;
        picky(message)
    };
    let moment = Duration::from_millis(5);
    let builder = hub
        .replay("a.>", ReplayFrom::Now)
        .on_failure(OnFailure::dead_letter().retry(Retry::fixed(2, moment)));
    builder
        .intensity(Intensity::new(0, HOUR).resume_after(moment, moment))
        .serve(handler)
        .unwrap()
        .detach();
    for text in ["panic", "1", "once", "2", "panic", "panic", "3"] {
        let _ = hub.publish("a.x", text).unwrap();
    }
    until("the last", || calls.lock().unwrap().last().is_some_and(|last| last == "3 1"));
    finish(&pool);
    assert_eq!(dropped.get(), 0);
    drop(hub);
    dropped.until(1);
}

/// Goal: one that holds a message back ends at once when it is closed, and a drain does not wait for it any more.
#[test]
fn a_replay_that_holds_a_message_back_ends() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept("a.>"));
    let _ = hub.publish("a.x", "fail").unwrap();
    let _ = hub.publish("a.x", "1").unwrap();
    let (calls, dropped) = (Arc::default(), Count::new());
    let (mut picky, on_drop) = (picky(&calls), dropped.on_drop());
    let replay = hub
        .replay("a.>", ReplayFrom::Beginning)
        .on_failure(OnFailure::discard().retry(Retry::fixed(1, HOUR)))
        .serve(move |message: &Message<'_>| {
            let _held = &on_drop;
            picky(message)
        })
        .unwrap();
    until("it is held", || replay.stats().waiting == 2 && calls.lock().unwrap().len() == 1);
    assert!(hub.audit().is_balanced());
    assert!(replay.unsubscribe(Unsubscribe::Sync).is_ok());
    assert_eq!((dropped.get(), replay.stats().discarded), (1, 2));
    assert_eq!(audited(&hub).discarded, 2);
    finish(&pool);
}

/// Goal: `Sync` returns after the handler, which is dropped once; inside a handler nobody waits.
#[test]
fn a_replay_ends_once() {
    let _guard = hang_guard();
    let pool = pool(2);
    let hub = hub(&pool, all_kept(">"));
    let (gate, dropped) = (Gate::new(), Count::new());
    let (entered, on_drop) = (gate.clone(), dropped.on_drop());
    let handler = move |_: &Message<'_>| {
        let _owned = &on_drop;
        entered.wait();
    };
    let _ = hub.publish("a", "1").unwrap();
    let _ = hub.publish("a", "2").unwrap();
    let replay = hub.replay(">", ReplayFrom::Beginning).serve(handler).unwrap();
    gate.until_entered(1);
    assert_eq!(replay.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
    assert_eq!(dropped.get(), 0);
    gate.open();
    assert_eq!(replay.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    assert_eq!((dropped.get(), gate.entered()), (1, 1));
    assert_eq!(replay.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    // One that sleeps is ended by who says so.
    let on_drop = dropped.on_drop();
    let handler = move |_: &Message<'_>| {
        let _owned = &on_drop;
    };
    let replay = hub.replay("none", ReplayFrom::Now).serve(handler).unwrap();
    drop(replay);
    dropped.until(2);
    finish(&pool);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn a_replay_may_end_itself() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept(">"));
    let own: Arc<Mutex<Option<paceline::hub::history::Replay>>> = Arc::default();
    let (mine, called) = (Arc::clone(&own), Count::new());
    let count = called.clone();
    let handler = move |_: &Message<'_>| {
        if let Some(replay) = &*mine.lock().unwrap() {
            assert_eq!(replay.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Later);
        }
        count.up();
    };
    *own.lock().unwrap() = Some(hub.replay(">", ReplayFrom::Now).serve(handler).unwrap());
    let _ = hub.publish("a", "1").unwrap();
    called.until(1);
    let _ = hub.publish("a", "2").unwrap();
    let end = own.lock().unwrap().take().unwrap();
    assert_eq!(end.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    assert_eq!(called.get(), 1);
    finish(&pool);
}

#[test]
fn pullers_share_what_comes() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept(">"));
    (0..10).for_each(|_| {
        let _ = hub.publish("a", "stored").unwrap();
    });
    let mailbox = hub.replay(">", ReplayFrom::Beginning).mailbox().unwrap();
    let mut taken = Vec::new();
    assert_eq!(mailbox.recv_batch(&mut taken, 4).unwrap(), 4);
    assert_eq!(mailbox.recv_batch_timeout(&mut taken, 100, Duration::ZERO).unwrap(), 6);
    assert_eq!(mailbox.recv_batch(&mut taken, 4).unwrap(), 0);
    assert_eq!(mailbox.recv_batch_timeout(&mut taken, 4, Duration::from_millis(1)).unwrap(), 0);
    let total = Count::new();
    let sequences: Vec<u64> = thread::scope(|scope| {
        let pullers = [0, 1, 2].map(|_| {
            scope.spawn(|| {
                let mut taken = Vec::new();
                while total.get() < 3000 {
                    let wait = Duration::from_millis(5);
                    total.add(mailbox.recv_batch_timeout(&mut taken, 7, wait).unwrap() as u64);
                }
                taken.iter().map(|received| received.sequence()).collect::<Vec<_>>()
            })
        });
        (0..3000).for_each(|_| {
            let _ = hub.publish("a", "live").unwrap();
        });
        pullers.into_iter().flat_map(|puller| puller.join().unwrap()).collect()
    });
    let mut sequences = [taken.iter().map(|taken| taken.sequence()).collect(), sequences].concat();
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=3010).collect::<Vec<_>>());
    let (tell, told) = std::sync::mpsc::channel();
    pool.post(move || {
        let result = mailbox.recv_batch_timeout(&mut Vec::new(), 1, Duration::from_secs(1));
        tell.send(matches!(result, Err(Error::WouldDeadlock))).unwrap();
    })
    .unwrap();
    assert!(told.recv().unwrap());
    finish(&pool);
}

/// Goal: what a host says of the handler that it runs for a replay is where the hub tells of its own handlers. Method:
/// messages are acknowledged, buried and given up; restarts and suspensions are told, and nothing is lost by them.
#[test]
fn a_host_answers_for_what_is_replayed_to_it() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept(">"));
    let publish = || hub.publish("a", "").unwrap().sequence;
    let first = publish();
    for _ in 0..4 {
        publish();
    }
    let plain = hub.replay(">", ReplayFrom::Beginning).on_failure(OnFailure::discard());
    assert!(plain.acknowledged().mailbox().is_err());
    let mailbox = hub.replay("a", ReplayFrom::Beginning).acknowledged();
    let mailbox = mailbox.intensity(Intensity::new(1, HOUR).suspend_for_good()).mailbox().unwrap();
    let mut taken = Vec::new();
    assert_eq!(mailbox.recv_batch(&mut taken, 9).unwrap(), 5);
    let stats = mailbox.stats();
    assert_eq!((stats.running, stats.delivered, stats.last), (5, 0, 0));
    let done = |delivered, failed, discarded| Acknowledged { delivered, failed, discarded };
    mailbox.acknowledge(done(1, 1, 1)).unwrap();
    let refused = mailbox.acknowledge(done(3, 0, 0)).unwrap_err().to_string();
    assert!(refused.contains("acknowledged messages is 3, but must be up to 2"), "{refused}");
    assert!(mailbox.bury(&taken[0].clone().into_stored(), None, 1).is_err(), "it is not in hand");
    assert_eq!(mailbox.stats().last, first + 1, "the third was thrown away");
    mailbox.bury(&taken[4].clone().into_stored(), Some("no"), 2).unwrap();
    let figures = hub.stats().replays.remove(0);
    assert_eq!((figures.id, figures.stats), (mailbox.id(), mailbox.stats()));
    let stats = figures.stats;
    assert_eq!((stats.delivered, stats.failed, stats.discarded), (1, 1, 1));
    assert_eq!((stats.dead_lettered, stats.running, stats.last), (1, 1, first + 4));
    assert!(hub.audit().is_balanced());

    assert_eq!(mailbox.crashed("broken").unwrap(), AfterCrash::Restart);
    let suspended = AfterCrash::Suspended { lasts: None };
    assert_eq!(mailbox.crashed("too often").unwrap(), suspended);
    assert!(!mailbox.suspend(None).unwrap(), "it is");
    assert!(mailbox.is_suspended() && hub.stats().replays[0].suspended);
    assert_eq!(hub.redeliver(&DeadFilter::all()).unwrap().refused, 1);
    let kept = publish();
    assert_eq!(mailbox.recv_batch(&mut taken, 9).unwrap(), 0);
    assert!(mailbox.resume() && !mailbox.resume());
    assert!(mailbox.catch_up() && !mailbox.catch_up());
    assert_eq!(mailbox.recv_batch_timeout(&mut taken, 9, HOUR).unwrap(), 1);
    assert_eq!(taken[5].sequence(), kept);
    assert!(mailbox.suspend(Some(Duration::MAX)).is_err());
    assert!(mailbox.suspend(Some(Duration::from_millis(1))).unwrap());
    until("the suspension is over", || !mailbox.is_suspended());
    let errors = hub.errors(&ErrorFilter::all());
    let events: Vec<_> = errors.iter().map(|error| error.event).collect();
    let suspended = "subscription.suspended";
    assert_eq!(events, ["subscription.restarted", suspended, suspended]);
    assert_eq!(errors[0].origin, format!("replay {} (a)", mailbox.id()));
    assert_eq!(mailbox.stats().restarts, 2);

    // What is in hand at the end has its end still, or is thrown away with the mailbox.
    mailbox.end().unwrap();
    mailbox.acknowledge(done(1, 0, 0)).unwrap();
    assert!(hub.audit().running == 1 && hub.stats().replays.len() == 1);
    drop(mailbox);
    let audit = audited(&hub);
    assert_eq!((audit.matched, audit.delivered, audit.discarded), (6, 2, 2));
    assert!(hub.stats().replays.is_empty());
    finish(&pool);
}

/// Goal: who waits for a replay hears that the pool has ended, and gets first what came before.
#[test]
fn who_waits_for_a_replay_hears_of_the_end_of_the_pool() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = hub(&pool, all_kept(">"));
    let replay = hub.replay(">", ReplayFrom::Beginning).mailbox().unwrap();
    let waits = |taken: &mut Vec<_>| replay.recv_batch_timeout(taken, 1, HOUR);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut taken = Vec::new();
            (waits(&mut taken), waits(&mut taken))
        });
        let _ = hub.publish("a", "").unwrap();
        finish(&pool);
        let (first, second) = waiter.join().unwrap();
        assert_eq!(first.unwrap(), 1);
        assert!(matches!(second, Err(Error::ShutDown)), "{second:?}");
    });
}

#[test]
fn what_is_kept_can_be_asked_for() {
    let pool = pool(1);
    let hub = hub(&pool, History::of("a.>").keep(Limits::of_count(4)));
    for (key, text) in
        [("a.x", "1"), ("a.y", "2"), ("b", "no"), ("a.x", "3"), ("a.x", "4"), ("a.y", "5")]
    {
        let _ = hub.publish(key, text).unwrap();
    }
    let ask = |query: Query| texts(&hub.query(&query).unwrap());
    let of = |pattern| Query::of(pattern);
    assert_eq!(ask(of("a.>")), ["2", "3", "4", "5"]);
    assert_eq!(ask(of("a.x")), ["3", "4"]);
    assert_eq!(ask(of("a.>").limit(2)), ["2", "3"]);
    assert_eq!(ask(of("a.>").last(3)), ["3", "4", "5"]);
    assert_eq!(ask(of("a.y").last(1)), ["5"]);
    assert_eq!(ask(of("a.>").sequences(4..=5)), ["3", "4"]);
    assert_eq!(ask(of("a.>").since(SystemTime::UNIX_EPOCH).until(SystemTime::UNIX_EPOCH)), [""; 0]);
    let found = hub.query(&of("a.x")).unwrap();
    // Its key can be published to again.
    let _ = hub.publish(found[0].key(), "again").unwrap();
    assert_eq!(ask(of("a.x").last(1)), ["again"]);
    let stats = &hub.history_stats()[0];
    assert_eq!((stats.recorded, stats.in_memory, stats.durable), (6, 4, None));
    finish(&pool);
}

#[test]
fn a_message_of_several_histories_is_in_each() {
    let pool = pool(1);
    let histories = ["a.>", "*.x", "none"].map(all_kept);
    let builder = histories.into_iter().fold(Hub::builder(&pool), |hub, it| hub.history(it));
    let hub = builder.build().unwrap();
    thread::scope(|scope| {
        for key in ["a.x", "b.x", "a.y"] {
            let hub = &hub;
            scope.spawn(move || {
                (0..500).for_each(|_| {
                    let _ = hub.publish(key, "").unwrap();
                })
            });
        }
    });
    let recorded: Vec<_> = hub.history_stats().iter().map(|stats| stats.recorded).collect();
    assert_eq!(recorded, [1000, 1000, 0]);
    for pattern in ["a.>", "*.x"] {
        let found = hub.query(&Query::of(pattern)).unwrap();
        assert_eq!(found.len(), 1000);
        assert!(found.is_sorted_by(|a, b| a.sequence() < b.sequence()));
    }
    finish(&pool);
}

#[test]
fn what_no_history_keeps_is_refused() {
    let pool = pool(1);
    let none = Hub::new(&pool).unwrap();
    assert_eq!(
        none.query(&everything()).unwrap_err().to_string(),
        "the pattern is \">\", but must be asked of a hub with a history"
    );
    let hub = Hub::builder(&pool).history(all_kept("a.*")).history(all_kept("b")).build().unwrap();
    let told = "the pattern is \"a.>\", but must be within that of a history: a.*, b";
    assert_eq!(hub.query(&Query::of("a.>")).unwrap_err().to_string(), told);
    let replay = hub.replay("a.>", ReplayFrom::Now).serve(|_: &Message<'_>| ());
    assert_eq!(replay.unwrap_err().to_string(), told);
    assert!(hub.replay("a..b", ReplayFrom::Now).mailbox().is_err());
    let told =
        "pattern is \"a..b\", but must be without empty tokens: no dot at an end, no two in a row";
    let bad = Query::of("a..b");
    assert_eq!(hub.query(&bad).unwrap_err().to_string(), told);
    assert_eq!(hub.export(&bad, "/").unwrap_err().to_string(), told);
    let read = paceline::hub::history::read_lines("/", &bad, |_| Ok(()));
    assert_eq!(read.unwrap_err().to_string(), told);
    finish(&pool);
}

#[test]
fn settings_out_of_range_are_refused() {
    let pool = pool(1);
    let refused = |history: History| match Hub::builder(&pool).history(history).build() {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    let history = || History::of(">");
    for (history, told) in [
        (
            History::of("a."),
            "pattern is \"a.\", but must be without empty tokens: no dot at an end, no two in a row",
        ),
        (
            history().commit(0, Duration::ZERO),
            "the history's messages of a commit is 0, but must be 1 to 65536",
        ),
        (
            history().commit(1, Duration::from_secs(3601)),
            "the history's delay of a commit is 3601s, but must be up to an hour",
        ),
        (
            history().waiting(7, 1 << 20),
            "the history's waiting messages is 7, but must be 1024 (those of a commit) to 4294967296",
        ),
        (
            history().waiting(1024, 7),
            "the history's waiting bytes is 7, but must be 1048576 to 1099511627776",
        ),
        (
            history().keep(Limits::unlimited().age(Duration::MAX)),
            "the history's limit is an age of 18446744073.709551615s, but must be up to 100 years",
        ),
    ] {
        assert_eq!(refused(history), told);
    }
    let many = (0..32).fold(Hub::builder(&pool), |hub, _| hub.history(history()));
    let told = "the number of histories is 32, but must be up to 31";
    assert_eq!(many.build().unwrap_err().to_string(), told);
    finish(&pool);
}

/// Goal: what sleeps at the end of a history does not keep it, nor itself. Method: replays that are detached or
/// have ended, once they have delivered everything; their handlers are dropped when the hub goes.
#[test]
fn a_hub_that_goes_takes_what_was_replayed_with_it() {
    let _guard = hang_guard();
    let (pool, dropped) = (pool(2), Count::new());
    let hub = hub(&pool, all_kept(">"));
    let last = hub.publish("a", "").unwrap().sequence;
    let replays: Vec<_> = (0..2)
        .map(|_| {
            let (got, on_drop) = (Got::default(), dropped.on_drop());
            let mut add = got.handler();
            let handler = move |message: &Message<'_>| {
                let _held = &on_drop;
                add(message);
            };
            let replay = hub.replay(">", ReplayFrom::Beginning).serve(handler).unwrap();
            got.until_has(last);
            replay
        })
        .collect();
    // As a rule they sleep by then.
    thread::sleep(Duration::from_millis(20));
    replays.into_iter().for_each(Replay::detach);
    assert_eq!(dropped.get(), 0);
    drop(hub);
    dropped.until(2);
    finish(&pool);
}

/// Lines are all that is on disk of such a history, and are not written again.
#[test]
fn a_flush_fails_if_lines_are_lost_and_there_is_no_archive() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).pin(paceline::Pin::None).build().unwrap();
    let lines = LinesOptions::at("/dev/full");
    let hub = Hub::builder(&pool).history(History::of(">").lines(lines)).build().unwrap();
    // Whoever is told may flush.
    let other = hub.clone();
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    let listener = hub.subscription("$SYS.history.given_up").execution(Execution::Inline);
    let _listener = listener
        .serve_shared(move |_: &Message<'_>| tell.store(other.flush_histories().is_err(), SeqCst))
        .unwrap();
    for _ in 0..3 {
        let _ = hub.publish("a", "lost").unwrap();
    }
    let given_up = |messages| matches!(hub.flush_histories(), Err(Error::GivenUp { messages: n }) if n == messages);
    assert!(given_up(3) && given_up(3));
    until("it is told", || told.load(SeqCst));
    let stats = hub.history_stats().remove(0);
    assert_eq!((stats.given_up, stats.lines_lost, stats.waiting), (3, 3, 0));
    let errors = hub.errors(&ErrorFilter::all().event("history.given_up"));
    assert_eq!((&*errors[0].origin, errors[0].severity), ("history >", Severity::Error));
}
