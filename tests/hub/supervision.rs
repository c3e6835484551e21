//! Handlers that fail: retries, dead letters, restarts, suspension; and filters.

use crate::common::{Count, Gate, LONG, Random, hang_guard, quiet_panic, until};
use crate::kit::{self, Log, at_rest, hub, settle, text, told};
use paceline::hub::history::{History, ReplayFrom};
use paceline::hub::{
    DeadFilter, DeadReason, ErrorFilter, Execution, Failure, Filter, Headers, Hub, Intensity,
    Message, OnFailure, Rate, RestartStrategy, Retry, Subscription, Supervisor, Text, Unsubscribe,
    Unsubscribed,
};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const MILLI: Duration = Duration::from_millis(1);

/// More than so many restarts suspend, however long the test takes, until it resumes.
fn at_most(restarts: u32) -> Intensity {
    Intensity::new(restarts, HOUR).suspend_for_good()
}

/// A handler that fails at "fail", panics at "panic", and notes what came and which attempt it was.
fn picky(log: &Log) -> impl FnMut(&Message<'_>) -> Result<(), Failure> + Send + 'static {
    let log = log.clone();
    move |message: &Message<'_>| {
        log.add(format!("{} {}", text(message), message.attempt()));
        match &*text(message) {
            "fail" => Err(Failure::new("on purpose")),
            "never" => Err(Failure::permanent("no use")),
            "panic" => quiet_panic("at the disco"),
            _ => Ok(()),
        }
    }
}

#[test]
fn what_fails_is_tried_again_in_order_and_touches_nobody_else() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (bad_log, good_log) = (Log::default(), Log::default());
    let retry = Retry::fixed(2, MILLI);
    let bad = hub
        .subscription("a")
        .on_failure(OnFailure::discard().retry(retry))
        .intensity(at_most(100))
        .serve(picky(&bad_log))
        .unwrap();
    let good = good_log.clone();
    let _good = hub.subscribe("a", move |message: &Message<'_>| good.note(message)).unwrap();
    let all = ["x", "fail", "never", "panic", "y", "z"];
    for payload in all {
        assert!(hub.publish("a", payload).unwrap().is_complete());
    }
    at_rest(&hub);
    assert_eq!(good_log.lines(), all);
    let tried = [
        "x 1", "fail 1", "fail 2", "fail 3", "never 1", "panic 1", "panic 2", "panic 3", "y 1",
        "z 1",
    ];
    assert_eq!(bad_log.lines(), tried);
    let stats = bad.stats();
    assert_eq!((stats.delivered, stats.failed, stats.dead_lettered), (3, 3, 0));
    // Each of three panics counts, and errors do not.
    assert_eq!(stats.restarts, 3);
    settle(&hub);
}

/// Goal: no handler is called again after it has panicked, and a factory that panics is a restart that has failed, whose
/// message is dealt with like that of a handler that panics. Method: handlers that note their own number and how many
/// messages they had, in a subscription of each execution that a factory may have, and in a replay.
#[test]
fn a_factory_makes_handlers_anew() {
    let _guard = hang_guard();
    for way in ["serial", "strand", "replay"] {
        let hub = Hub::builder(&kit::pool(2)).history(History::of(">")).build().unwrap();
        let (log, failing, made) = (Log::default(), Arc::new(AtomicBool::new(false)), Count::new());
        let (seen, is_failing, makes) = (log.clone(), failing.clone(), made.clone());
        let factory = move || {
            if is_failing.load(SeqCst) {
                quiet_panic("no parts");
            }
            makes.up();
            let (seen, number, mut messages, mut has_panicked) =
                (seen.clone(), makes.get(), 0, false);
            move |message: &Message<'_>| {
                assert!(!has_panicked, "it is called again");
                messages += 1;
                seen.add(format!("{number}.{messages} {}", text(message)));
                has_panicked = message.payload() == b"panic";
                if has_panicked {
                    quiet_panic("at the disco");
                }
            }
        };
        let policy = OnFailure::dead_letter();
        let publish = |payloads: &[&str]| {
            for payload in payloads {
                assert!(hub.publish("a", *payload).is_ok());
            }
        };
        let restarts: Box<dyn Fn() -> u64> = if way == "replay" {
            let replay = hub.replay("a", ReplayFrom::Now).on_failure(policy);
            let replay = replay.intensity(at_most(100)).serve_factory(factory).unwrap();
            Box::new(move || replay.stats().restarts)
        } else {
            let strand = if way == "strand" { Execution::Strand } else { Execution::Serial };
            let builder = hub.subscription("a").on_failure(policy).execution(strand);
            let made = builder.intensity(at_most(100)).serve_factory(factory).unwrap();
            Box::new(move || made.stats().restarts)
        };
        let dead = |count| until("dead letters", || hub.stats().dead_letters.held == count);
        assert_eq!(made.get(), 1);
        publish(&["x", "panic", "y", "z", "panic"]);
        dead(2);
        until("two restarts", || restarts() == 2);
        failing.store(true, SeqCst);
        publish(&["lost"]);
        dead(3);
        until("a failed restart", || restarts() == 3);
        failing.store(false, SeqCst);
        publish(&["end"]);
        let all = ["1.1 x", "1.2 panic", "2.1 y", "2.2 z", "2.3 panic", "3.1 end"];
        until("the last message", || log.len() == all.len());
        assert_eq!(log.lines(), all, "{way}");
        let letters = hub.dead_letters(&DeadFilter::all());
        assert_eq!(letters[2].failure(), Some("panicked: no parts"));
        assert_eq!(letters[2].reason(), DeadReason::Panicked);
    }
}

/// Goal: a factory that always fails suspends its subscription, as a handler that always panics does.
#[test]
fn failed_restarts_suspend() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (made, log) = (Count::new(), Log::default());
    let (makes, seen) = (made.clone(), log.clone());
    let factory = move || {
        makes.up();
        if (2..4).contains(&makes.get()) {
            quiet_panic("no parts");
        }
        let (seen, is_first) = (seen.clone(), makes.get() == 1);
        move |message: &Message<'_>| {
            seen.note(message);
            if is_first {
                quiet_panic("at the disco");
            }
        }
    };
    let builder = hub.subscription("a").intensity(at_most(2));
    let subscription = builder.serve_factory(factory).unwrap();
    for payload in ["1", "2", "3"] {
        let _ = told(hub.publish("a", payload));
    }
    until("its suspension", || subscription.is_suspended());
    assert_eq!(made.get(), 3);
    assert!(subscription.resume());
    let _ = told(hub.publish("a", "4"));
    at_rest(&hub);
    assert_eq!((log.lines(), made.get()), (vec!["1".into(), "4".into()], 4));
    assert_eq!(subscription.stats().restarts, 3);
    settle(&hub);
}

#[test]
fn dead_letters_say_why_and_are_delivered_again() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (log, other_log, mended) = (Log::default(), Log::default(), Count::new());
    let (seen, is_mended) = (log.clone(), mended.clone());
    let bad = hub
        .subscription("a.*")
        .on_failure(OnFailure::dead_letter().retry(Retry::fixed(1, Duration::ZERO)))
        .intensity(at_most(100))
        .serve(move |message: &Message<'_>| {
            seen.note(message);
            match message.payload()[0] {
                _ if is_mended.get() > 0 => Ok(()),
                b'p' => quiet_panic("at the disco"),
                b'f' => Err("on purpose"),
                _ => Ok(()),
            }
        })
        .unwrap();
    let other = other_log.clone();
    let _other = hub.subscribe("a.b", move |message: &Message<'_>| other.note(message)).unwrap();
    for (key, payload) in [("a.b", "f1"), ("a.c", "ok"), ("a.c", "p2"), ("a.b", "f3")] {
        let _ = hub.publish(key, payload).unwrap();
    }
    at_rest(&hub);
    let letters = hub.dead_letters(&DeadFilter::all());
    let told: Vec<_> = letters
        .iter()
        .map(|letter| {
            assert_eq!((letter.subscription(), letter.pattern()), (bad.id(), "a.*"));
            let payload = String::from_utf8(letter.message().payload().to_vec()).unwrap();
            (letter.number(), payload, letter.reason(), letter.failure(), letter.attempts())
        })
        .collect();
    let on_purpose = Some("on purpose");
    assert_eq!(
        told,
        [
            (1, "f1".into(), DeadReason::Failed, on_purpose, 2),
            (2, "p2".into(), DeadReason::Panicked, Some("panicked: at the disco"), 2),
            (3, "f3".into(), DeadReason::Failed, on_purpose, 2),
        ]
    );
    assert!(letters.iter().all(|letter| letter.died() >= letter.message().time()));
    mended.up();
    let before = log.len();
    let again = hub.redeliver(&DeadFilter::all().key("a.b").unwrap()).unwrap();
    assert_eq!((again.enqueued, again.refused, again.orphaned), (2, 0, 0));
    at_rest(&hub);
    assert_eq!(log.lines()[before..], ["f1", "f3"]);
    assert_eq!(other_log.lines(), ["f1", "f3"], "it is for nobody else");
    let stats = bad.stats();
    assert_eq!((stats.matched, stats.delivered, stats.dead_lettered), (6, 3, 3));
    assert_eq!((stats.redelivered, hub.dead_letter_stats().held), (2, 1));
    assert_eq!(bad.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    drop(bad);
    let orphaned = hub.redeliver(&DeadFilter::all()).unwrap();
    assert_eq!((orphaned.enqueued, orphaned.orphaned), (0, 1));
    assert_eq!(hub.remove_dead_letters(&DeadFilter::all()).len(), 1);
    assert_eq!(hub.audit().redelivered, 2);
    settle(&hub);
}

#[test]
fn too_many_restarts_suspend_and_resume_goes_on() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (log, restarts, gate) = (Log::default(), Log::default(), Gate::new());
    let (told, inside) = (restarts.clone(), gate.clone());
    let mut handler = picky(&log);
    let subscription = hub
        .subscription("a")
        .intensity(at_most(2))
        .on_restart(move |restart| told.add(format!("{:?} {}", restart.failure, restart.count)))
        .serve(move |message: &Message<'_>| {
            inside.wait();
            handler(message)
        })
        .unwrap();
    for payload in ["panic", "x", "fail", "panic", "panic", "y", "panic", "z"] {
        let _ = hub.publish("a", payload).unwrap();
    }
    assert!(!subscription.is_suspended() && !subscription.resume());
    gate.open();
    until("the subscription is suspended", || subscription.is_suspended());
    at_rest(&hub);
    assert_eq!(log.lines(), ["panic 1", "x 1", "fail 1", "panic 1", "panic 1"]);
    let suspended = DeadFilter::all().reason(DeadReason::Suspended);
    // They do not wait any more a moment before they are among the dead letters.
    until("what waited is dead", || hub.dead_letters(&suspended).len() == 3);
    let receipt = hub.publish("a", "late").unwrap();
    assert_eq!((receipt.matched, receipt.enqueued, receipt.dead_lettered), (1, 0, 1));
    let stats = subscription.stats();
    assert_eq!((stats.delivered, stats.dead_lettered, stats.restarts), (1, 8, 2));
    assert!(stats.suspended);
    let letters = hub.dead_letters(&suspended);
    let payloads: Vec<_> = letters.iter().map(|letter| letter.message().payload()).collect();
    assert_eq!(payloads, ["y", "panic", "z", "late"].each_ref());
    assert!(letters.iter().all(|letter| letter.attempts() == 0 && letter.failure().is_none()));
    let refused = hub.redeliver(&suspended).unwrap();
    assert_eq!((refused.enqueued, refused.refused), (0, 4));
    assert!(subscription.resume() && !subscription.is_suspended());
    let again = hub.redeliver(&suspended).unwrap();
    assert_eq!((again.enqueued, again.refused), (4, 0));
    at_rest(&hub);
    assert_eq!(log.lines()[5..], ["y 1", "panic 1", "z 1", "late 1"]);
    let panicked = "Some(\"panicked: at the disco\")";
    let wanted = [
        format!("{panicked} 1"),
        format!("{panicked} 2"),
        "None 3".into(),
        format!("{panicked} 4"),
    ];
    assert_eq!(restarts.lines(), wanted);
    settle(&hub);
}

/// Goal: one publisher of bad messages does not switch a sound handler off. Method: good messages between many that
/// the handler refuses by an error, and that a typed topic cannot decode; all good ones are handled, every bad one is
/// a dead letter, and nothing is restarted.
#[test]
fn bad_messages_do_not_suspend_a_sound_handler() {
    const BAD: usize = 200;
    let _guard = hang_guard();
    let hub = hub(2);
    let (log, values) = (Log::default(), Log::default());
    let plain = hub.subscribe("plain", picky(&log)).unwrap();
    let topic = hub.topic("typed", Text).unwrap();
    let into = values.clone();
    let typed = topic.subscribe(move |text: String, _: &Message<'_>| into.add(text)).unwrap();
    for _ in 0..BAD {
        let _ = hub.publish("plain", "fail").unwrap();
        let _ = hub.publish("plain", "good").unwrap();
        let _ = hub.publish("typed", b"\xff").unwrap();
        let _ = hub.publish("typed", "good").unwrap();
    }
    at_rest(&hub);
    assert_eq!(values.lines(), vec!["good"; BAD]);
    assert_eq!(log.lines(), ["fail 1", "good 1"].repeat(BAD));
    for subscription in [plain, typed] {
        let stats = subscription.stats();
        assert_eq!((stats.delivered, stats.dead_lettered), (BAD as u64, BAD as u64));
        assert_eq!((stats.restarts, stats.suspended), (0, false));
    }
    settle(&hub);
}

/// Goal: a suspended subscription is served again by itself, for as long as its handler is sound, and never silently
/// suspended. Method: a handler that panics until it is mended; it gets messages again without help, and the notices,
/// receipts and statistics say that it was suspended.
#[test]
fn a_suspended_handler_gets_messages_again_by_itself() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (mended, got) = (Count::new(), Count::new());
    let (is_mended, into) = (mended.clone(), got.clone());
    let intensity = Intensity::new(1, HOUR).resume_after(20 * MILLI, 100 * MILLI);
    let subscription = hub
        .subscription("a")
        .intensity(intensity)
        .serve(move |_: &Message<'_>| match is_mended.get() {
            0 => quiet_panic("broken"),
            _ => into.up(),
        })
        .unwrap();
    // It is suspended several times, for longer and longer.
    let suspensions = || {
        let errors = hub.errors(&ErrorFilter::all().event("subscription.suspended"));
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    let mut refused = 0;
    until("three suspensions", || {
        refused += hub.publish("a", "").unwrap().dead_lettered;
        suspensions().len() >= 3
    });
    assert!(suspensions()[0].ends_with("it tries again in 20ms"), "{:?}", suspensions());
    assert!(suspensions()[2].ends_with("it tries again in 80ms"), "{:?}", suspensions());
    until("a receipt says it", || {
        refused += hub.publish("a", "").unwrap().dead_lettered;
        refused > 0
    });
    mended.up();
    until("a message comes", || {
        let _ = hub.publish("a", "").unwrap();
        got.get() > 0
    });
    assert!(!subscription.is_suspended() && !subscription.stats().suspended);
    settle(&hub);
}

/// A supervisor's members are resumed together, whichever of them has found out.
#[test]
fn a_supervisor_resumes_all_of_its_own_by_itself() {
    let _guard = hang_guard();
    let hub = hub(2);
    let intensity = Intensity::new(0, HOUR).resume_after(50 * MILLI, 50 * MILLI);
    let supervisor = Supervisor::new(RestartStrategy::OneForOne, intensity).unwrap();
    let subscribe = |pattern| {
        let builder = hub.subscription(pattern).supervisor(&supervisor);
        builder.serve(picky(&Log::default())).unwrap()
    };
    let all = [subscribe("first"), subscribe("second")];
    for round in 0..3 {
        let _ = hub.publish(["first", "second"][round % 2], "panic").unwrap();
        until("both are suspended", || all.iter().all(Subscription::is_suspended));
        until("both are resumed", || !all.iter().any(Subscription::is_suspended));
        assert!(!supervisor.is_suspended());
    }
    settle(&hub);
}

/// Neither the end of the pool nor that of the subscription waits for the end of a suspension.
#[test]
fn a_suspension_holds_up_no_end() {
    let _guard = hang_guard();
    let hub = hub(1);
    let intensity = Intensity::new(0, HOUR).resume_after(HOUR, HOUR);
    let subscribe = || {
        let builder = hub.subscription("a").intensity(intensity);
        builder.serve(picky(&Log::default())).unwrap()
    };
    let (one, other) = (subscribe(), subscribe());
    let _ = hub.publish("a", "panic").unwrap();
    until("both are suspended", || one.is_suspended() && other.is_suspended());
    assert_eq!(one.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    // The program's own; the ends of suspensions are timers of the library's, and not told.
    let _timer = hub.pool().after(HOUR, || ()).unwrap();
    let report = hub.pool().shutdown(LONG);
    assert_eq!((report.drained, report.cancelled), (true, 1), "{report:?}");
    settle(&hub);
    drop(other);
}

/// Goal: what a subscription leaves is dropped by a thread of the pool, which goes on serving the hub although that
/// panics. Method: more of them than the hub has services.
#[test]
fn a_destructor_that_panics_takes_no_service_from_the_hub() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            quiet_panic("a destructor's fault")
        }
    }
    let _guard = hang_guard();
    let hub = hub(1);
    for _ in 0..20 {
        let (gate, bomb) = (Gate::new(), Bomb);
        let entered = gate.clone();
        let builder = hub.subscription("a").on_restart(move |_| _ = &bomb);
        let subscription = builder.serve(move |_: &Message<'_>| entered.wait()).unwrap();
        let _ = hub.publish("a", "").unwrap();
        gate.until_entered(1);
        assert_eq!(subscription.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
        drop(subscription);
        gate.open();
        at_rest(&hub);
    }
    settle(&hub);
}

#[test]
fn an_inline_handler_is_suspended_too() {
    let _guard = hang_guard();
    let hub = hub(1);
    let subscription = hub
        .subscription("a")
        .execution(Execution::Inline)
        .intensity(at_most(0))
        .serve_shared(|_: &Message<'_>| -> Result<(), Failure> { quiet_panic("on purpose") })
        .unwrap();
    let first = hub.publish("a", "1").unwrap();
    assert_eq!((first.enqueued, first.dead_lettered), (1, 0));
    assert!(subscription.is_suspended());
    let second = hub.publish("a", "2").unwrap();
    assert_eq!((second.enqueued, second.dead_lettered), (0, 1));
    assert_eq!(subscription.stats().dead_lettered, 2);
    settle(&hub);
}

#[test]
fn a_supervisor_restarts_and_suspends_all_of_its_own() {
    let _guard = hang_guard();
    let hub = hub(2);
    let supervisor = Supervisor::new(RestartStrategy::OneForAll, at_most(1)).unwrap();
    let restarts = [Log::default(), Log::default()];
    let subscribe = |pattern, restarts: &Log| {
        let told = restarts.clone();
        let builder = hub.subscription(pattern).supervisor(&supervisor);
        let builder = builder.on_restart(move |restart| told.add(format!("{:?}", restart.failure)));
        builder.serve(picky(&Log::default())).unwrap()
    };
    let first = subscribe("first", &restarts[0]);
    let second = subscribe("second", &restarts[1]);
    let _ = hub.publish("second", "x").unwrap();
    at_rest(&hub);
    let _ = hub.publish("first", "panic").unwrap();
    at_rest(&hub);
    assert_eq!(restarts[0].lines(), ["Some(\"panicked: at the disco\")"]);
    assert_eq!(restarts[1].len(), 0, "it comes before the next message");
    let _ = hub.publish("second", "y").unwrap();
    at_rest(&hub);
    assert_eq!(restarts[1].lines(), ["None"]);
    let _ = hub.publish("second", "panic").unwrap();
    until("both are suspended", || first.is_suspended() && second.is_suspended());
    assert!(supervisor.is_suspended());
    assert_eq!(hub.publish("first", "x").unwrap().dead_lettered, 1);
    assert!(first.resume());
    assert!(!second.is_suspended() && !supervisor.is_suspended() && !second.resume());
    let _ = hub.publish("first", "x").unwrap();
    let _ = hub.publish("second", "x").unwrap();
    at_rest(&hub);
    assert_eq!((first.stats().delivered, second.stats().delivered), (1, 3));
    assert_eq!((restarts[0].len(), restarts[1].len()), (2, 2));
    settle(&hub);
}

#[test]
fn unsubscribing_finds_retries_that_wait() {
    let _guard = hang_guard();
    let hub = hub(2);
    let dropped = Count::new();
    let subscribe = |retry| {
        let on_drop = dropped.on_drop();
        let policy = OnFailure::dead_letter().retry(retry);
        let builder = hub.subscription("a").on_failure(policy).intensity(Intensity::unlimited());
        builder
            .serve(move |message: &Message<'_>| {
                let _on_drop = &on_drop;
                match message.attempt() {
                    1 => Err("not yet"),
                    _ => Ok(()),
                }
            })
            .unwrap()
    };
    let sync = subscribe(Retry::fixed(1, HOUR));
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    until("the first has failed", || sync.stats().waiting == 3 && sync.stats().running == 0);
    assert_eq!(sync.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    assert_eq!((dropped.get(), sync.stats().discarded), (1, 3));
    let drained = subscribe(Retry::fixed(1, MILLI));
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    let _later = drained.unsubscribe(Unsubscribe::Drain).unwrap();
    dropped.until(2);
    assert_eq!(drained.stats().delivered, 3);
    settle(&hub);
}

/// A subscription of which every message fails once, and is tried again after this delay.
fn once_more(hub: &Hub, delay: Duration, failed: &Count) -> Subscription {
    let failed = failed.clone();
    hub.subscription("a")
        .on_failure(OnFailure::dead_letter().retry(Retry::fixed(1, delay)))
        .intensity(Intensity::unlimited())
        .serve(move |message: &Message<'_>| {
            if message.attempt() > 1 {
                return Ok(());
            }
            failed.up();
            Err("not yet")
        })
        .unwrap()
}

#[test]
fn a_drain_waits_for_messages_that_are_held_back() {
    let _guard = hang_guard();
    let (hub, failed) = (hub(2), Count::new());
    let subscription = once_more(&hub, Duration::from_millis(50), &failed);
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    failed.until(1);
    let report = hub.pool().shutdown(LONG);
    assert!(report.drained && report.left == 0, "{report:?}");
    assert_eq!((subscription.stats().delivered, failed.get()), (3, 3));
}

#[test]
fn a_drain_says_at_its_deadline_what_was_not_done() {
    let _guard = hang_guard();
    let (hub, failed) = (hub(2), Count::new());
    let subscription = once_more(&hub, HOUR, &failed);
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    until("the first is held", || {
        let stats = subscription.stats();
        stats.waiting == 3 && stats.running == 0
    });
    let report = hub.pool().shutdown(Duration::from_millis(20));
    assert!(!report.drained && report.stuck.is_empty() && report.left == 3, "{report:?}");
    let audit = hub.audit();
    assert!(audit.is_balanced() && audit.waiting == 3, "{audit:?}");
}

#[test]
fn a_drain_goes_on_when_what_it_waits_for_is_taken_back() {
    let _guard = hang_guard();
    let (hub, failed) = (hub(2), Count::new());
    let subscription = once_more(&hub, LONG / 2, &failed);
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    failed.until(1);
    let report = std::thread::scope(|scope| {
        let shutdown = scope.spawn(|| hub.pool().shutdown(LONG));
        until("the pool drains", || matches!(hub.publish("a", ""), Err(paceline::Error::ShutDown)));
        drop(subscription);
        shutdown.join().unwrap()
    });
    assert!(report.drained && report.left == 0, "{report:?}");
    let audit = hub.audit();
    assert!(audit.is_balanced() && audit.waiting == 0 && audit.delivered == 0, "{audit:?}");
}

/// Neither a drain nor the end of the last owner waits for an attempt beyond its time.
#[test]
fn a_pool_that_is_dropped_does_not_wait_for_retries_beyond_its_drain() {
    let _guard = hang_guard();
    let (hub, failed) = (hub(2), Count::new());
    once_more(&hub, HOUR, &failed).detach();
    let _ = hub.publish("a", "1").unwrap();
    failed.until(1);
    drop(hub);
}

#[test]
fn a_subscription_is_drained_until_its_deadline() {
    let _guard = hang_guard();
    let (hub, failed) = (hub(2), Count::new());
    let all = once_more(&hub, MILLI, &failed);
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    assert_eq!(all.drain(LONG).unwrap(), 0);
    assert_eq!((all.stats().delivered, all.stats().discarded), (3, 0));
    assert_eq!(all.drain(LONG).unwrap(), 0, "it has ended");
    let none = once_more(&hub, HOUR, &failed);
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    failed.until(4);
    assert_eq!(none.drain(Duration::from_millis(20)).unwrap(), 3);
    assert_eq!((none.stats().delivered, none.stats().discarded), (0, 3));
    let (inside, answer) = (std::sync::Arc::new(none), Log::default());
    let (ended, into) = (std::sync::Arc::clone(&inside), answer.clone());
    let _asker = hub
        .subscribe("b", move |_: &Message<'_>| into.add(format!("{:?}", ended.drain(LONG))))
        .unwrap();
    let _ = hub.publish("b", "").unwrap();
    until("the answer", || answer.len() == 1);
    assert_eq!(answer.lines(), ["Err(WouldDeadlock)"]);
    settle(&hub);
}

/// What a run has taken waits as much as what is in the mailbox.
#[test]
fn a_drain_counts_what_lies_behind_a_handler_that_does_not_return() {
    let _guard = hang_guard();
    let (hub, begun, gate) = (hub(2), Count::new(), Gate::new());
    let (counted, closed) = (begun.clone(), gate.clone());
    let held = hub
        .subscribe("a", move |_: &Message<'_>| {
            counted.up();
            closed.wait();
        })
        .unwrap();
    let _ = hub.publish_batch("a", ["1", "2", "3", "4", "5"]).unwrap();
    begun.until(1);
    assert_eq!(held.drain(Duration::ZERO).unwrap(), 4);
    gate.open();
    until("the end", || held.stats().running + held.stats().waiting == 0);
    assert_eq!((held.stats().delivered, held.stats().discarded), (1, 4));
    settle(&hub);
}

/// Goal: whoever reads statistics finds as many dead letters as messages that became some, or more, never fewer,
/// and at rest the same number. Method: subscriptions of all kinds are suspended while much waits, and another
/// thread reads all the time.
#[test]
fn what_is_counted_as_dead_is_a_dead_letter() {
    const ROUNDS: u64 = 50;
    const BEHIND: usize = 300;
    let _guard = hang_guard();
    let hub = hub(3);
    let make = |execution| {
        let builder = hub.subscription("a").execution(execution).intensity(at_most(0));
        builder
            .serve_shared(|message: &Message<'_>| match &**message.payload() {
                b"fail" => quiet_panic("on purpose"),
                _ => Ok::<(), Failure>(()),
            })
            .unwrap()
    };
    let all = [Execution::Serial, Execution::Concurrent(2), Execution::Strand, Execution::Inline]
        .map(make);
    let pulled = hub.mailbox("a", 1000).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !over.load(SeqCst) {
                let dead = hub.audit().dead_lettered;
                let buried = hub.dead_letter_stats().buried;
                assert!(dead <= buried, "{dead} counted, {buried} buried");
            }
        });
        for _ in 0..ROUNDS {
            let batch = ["fail"].into_iter().chain(["behind it"; BEHIND]);
            let _ = hub.publish_batch("a", batch).unwrap();
            let _ = hub.publish_all([hub.message("a").payload("4")]).unwrap();
            while let Some(message) = pulled.try_recv().unwrap() {
                pulled.bury(&message.into_stored(), None, 0).unwrap();
            }
            until("the suspension", || all.iter().all(Subscription::is_suspended));
            for subscription in &all {
                assert!(subscription.resume());
            }
        }
        over.store(true, SeqCst);
        reader.join().unwrap();
    });
    let audit = at_rest(&hub);
    assert_eq!(audit.dead_lettered, hub.dead_letter_stats().buried);
    // Those that the handlers fail at, and those that were pulled.
    let least = ROUNDS * (4 + BEHIND as u64 + 2);
    assert!(audit.dead_lettered >= least, "{audit:?}");
    drop(pulled);
    settle(&hub);
}

#[test]
fn several_threads_go_on_beside_a_retry() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let seen = log.clone();
    let subscription = hub
        .subscription("a")
        .execution(Execution::Concurrent(2))
        .on_failure(OnFailure::discard().retry(Retry::fixed(1, HOUR)))
        .serve_shared(move |message: &Message<'_>| match &*text(message) {
            "fail" => Err("on purpose"),
            _ => {
                seen.note(message);
                Ok(())
            }
        })
        .unwrap();
    let _ = hub.publish_batch("a", ["1", "fail", "2", "3"]).unwrap();
    until("the others are delivered", || log.len() == 3);
    until("one waits", || subscription.stats().waiting == 1 && subscription.stats().running == 0);
    let _now = subscription.unsubscribe(Unsubscribe::Sync).unwrap();
    assert_eq!(subscription.stats().discarded, 1);
    settle(&hub);
}

#[test]
fn bad_settings_are_named() {
    let _guard = hang_guard();
    let hub = hub(1);
    let policy = OnFailure::discard().retry(Retry::exponential(3));
    let strand = hub.subscription("a").execution(Execution::Strand).on_failure(policy);
    assert_eq!(
        strand.serve(|_: &Message<'_>| ()).unwrap_err().to_string(),
        "on_failure is with retries, but must be without retries: an execution other than Serial and \
         Concurrent has no place to wait for them"
    );
    let supervisor = Supervisor::new(RestartStrategy::OneForOne, at_most(1)).unwrap();
    let both = hub.subscription("a").supervisor(&supervisor).intensity(at_most(1));
    assert_eq!(
        both.serve(|_: &Message<'_>| ()).unwrap_err().to_string(),
        "intensity is set, but must be not set beside a supervisor, which has its own"
    );
    let error = hub.subscription("a").intensity(Intensity::new(1, Duration::ZERO));
    let error = error.serve(|_: &Message<'_>| ()).unwrap_err().to_string();
    assert_eq!(error, "intensity's time is 0ns, but must be 1 nanosecond to 100 years");
    assert_eq!(
        hub.subscription("a").intensity(at_most(1)).pull().unwrap_err().to_string(),
        "supervision is set, but must be left out: a mailbox that is pulled has no handler that could \
         fail"
    );
    settle(&hub);
}

#[test]
fn filters_decide_before_the_mailbox() {
    let _guard = hang_guard();
    let hub = hub(2);
    let urgent = || Filter::header("kind", "urgent").or(Filter::bytes_at(0, b"!"));
    for execution in [Execution::Serial, Execution::Inline, Execution::Strand] {
        let log = Log::default();
        let seen = log.clone();
        let builder = hub.subscription("a").execution(execution).filter(urgent());
        let subscription = builder.serve_shared(move |m: &Message<'_>| seen.note(m)).unwrap();
        let kind = Headers::new([("kind", "urgent")]).unwrap();
        let mut receipt = hub.publish("a", "1").unwrap();
        assert_eq!(receipt.matched, 0);
        receipt = hub.message("a").headers(kind).payload("2").publish().unwrap();
        assert_eq!((receipt.matched, receipt.enqueued), (1, 1));
        let _ = hub.publish("a", "!3").unwrap();
        at_rest(&hub);
        assert_eq!(log.lines(), ["2", "!3"]);
        let stats = subscription.stats();
        assert_eq!((stats.matched, stats.filtered, stats.filter_panics), (2, 1, 0));
    }
    let rare = Filter::at_most(Rate::new(1, HOUR).burst(3)).unwrap();
    let few = hub.subscription("a").filter(rare).serve(|_: &Message<'_>| ()).unwrap();
    let bad = Filter::predicate(|_| quiet_panic("on purpose"));
    let none = hub.subscription("a").filter(bad).serve(|_: &Message<'_>| ()).unwrap();
    let receipt = hub.publish_batch("a", ["x"; 10]).unwrap();
    assert_eq!((receipt.matched, few.stats().filtered), (3, 7));
    assert_eq!((none.stats().filter_panics, none.stats().matched), (10, 0));
    settle(&hub);
}

/// Goal: whatever fails, is retried, suspended, resumed and delivered again, the books balance, and a serial
/// handler gets nothing between two attempts at a message. Method: two publishers, four subscriptions that
/// fail at random, and a third thread that resumes and redelivers all the time.
#[test]
fn the_books_balance_through_restart_storms() {
    let _guard = hang_guard();
    let rounds: u64 = std::env::var("PACELINE_HUB_STORM").map_or(4_000, |n| n.parse().unwrap());
    let hub = hub(3);
    let supervisor = Supervisor::new(RestartStrategy::OneForAll, at_most(3)).unwrap();
    let (delivered, out_of_order) = (Count::new(), Count::new());
    let subscribe = |number: u64| {
        let (delivered, out_of_order) = (delivered.clone(), out_of_order.clone());
        let random = Mutex::new(Random::new(number));
        let last = AtomicU64::new(0);
        let is_serial = number < 3;
        let retry = Retry::fixed((number % 3) as u32, number as u32 * MILLI / 10);
        let policy = [OnFailure::dead_letter(), OnFailure::discard()][number as usize % 2].clone();
        let builder = hub.subscription("a").capacity(64).on_failure(policy.retry(retry));
        let builder = match number {
            0 | 1 => builder.supervisor(&supervisor),
            2 => builder.intensity(at_most(5)),
            _ => builder.intensity(Intensity::unlimited()).execution(Execution::Concurrent(2)),
        };
        builder
            .serve_shared(move |message: &Message<'_>| {
                let before = last.swap(message.sequence(), SeqCst);
                if is_serial && message.attempt() > 1 && before != message.sequence() {
                    out_of_order.up();
                }
                // Outside of the match, or a panic would poison the lock.
                let draw = random.lock().unwrap().below(50);
                match draw {
                    0 => quiet_panic("on purpose"),
                    1 => return Err(Failure::new("on purpose")),
                    2 => return Err(Failure::permanent("on purpose")),
                    _ => delivered.up(),
                }
                Ok(())
            })
            .unwrap()
    };
    let subscriptions: Vec<_> = (0..4).map(subscribe).collect();
    let matched = Count::new();
    let done = Count::new();
    std::thread::scope(|scope| {
        for publisher in 0..2 {
            let (hub, matched, done) = (&hub, &matched, &done);
            scope.spawn(move || {
                for round in 0..rounds {
                    let message = hub.message("a").payload(format!("{publisher} {round}"));
                    let receipt = told(message.no_wait().publish());
                    let sum = receipt.enqueued + receipt.rejected + receipt.dead_lettered;
                    assert_eq!(receipt.matched, sum);
                    matched.add(receipt.matched);
                    if round % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
                done.up();
            });
        }
        // Until something was delivered again, too: the publishers may be through before anything is dead.
        while done.get() < 2 || hub.audit().redelivered == 0 {
            for subscription in &subscriptions {
                let _was_suspended = subscription.resume();
            }
            hub.redeliver(&DeadFilter::all().limit(32)).unwrap();
            std::thread::sleep(MILLI);
        }
    });
    let audit = at_rest(&hub);
    assert_eq!(audit.matched, matched.get() + audit.redelivered);
    assert_eq!(audit.delivered, delivered.get());
    assert!(audit.dead_lettered > 0 && audit.failed > 0 && audit.redelivered > 0, "{audit:?}");
    assert_eq!(out_of_order.get(), 0);
    let dead = hub.dead_letter_stats();
    assert_eq!(dead.buried, dead.held + dead.forgotten + dead.removed);
    settle(&hub);
}
