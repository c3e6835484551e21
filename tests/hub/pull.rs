//! Mailboxes that the host empties.

use crate::common::{Gate, LONG, hang_guard, quiet_panic, readable, until};
use crate::kit::{hub, settle};
use paceline::Error;
use paceline::cq::CompletionQueue;
use paceline::hub::{
    Acknowledged, AfterCrash, Balance, DeadFilter, DeadReason, ErrorFilter, Failure, Headers, Hub,
    Intensity, Mailbox, Message, OnFailure, Overflow, Received, RestartStrategy, Supervisor,
    Unsubscribe, Unsubscribed,
};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

fn text(message: &Received) -> String {
    String::from_utf8(message.payload().to_vec()).unwrap()
}

#[test]
fn messages_wait_until_they_are_taken() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a.*", 3).unwrap();
    assert_eq!(mailbox.try_recv().unwrap(), None);
    for number in 0..5 {
        assert_eq!(hub.publish("a.b", number.to_string()).is_ok(), number < 3);
    }
    assert_eq!(mailbox.stats().rejected, 2);
    assert_eq!(text(&mailbox.try_recv().unwrap().unwrap()), "0");
    let mut batch = Vec::new();
    assert_eq!(mailbox.recv_batch(&mut batch, 10).unwrap(), 2);
    assert_eq!(batch.iter().map(text).collect::<Vec<_>>(), ["1", "2"]);
    let _ = hub.publish("a.b", "5").unwrap();
    let next = mailbox.recv_timeout(Duration::ZERO).unwrap();
    assert_eq!((text(&next), next.lost_before()), ("5".into(), 2));
    assert!(matches!(mailbox.recv_timeout(Duration::from_millis(1)), Err(Error::TimedOut)));
    drop(mailbox);
    assert_eq!(hub.publish("a.b", "").unwrap().matched, 0);
    settle(&hub);
}

/// Goal: only a thread that has got something is a host that handles, and may go on in a drain.
#[test]
fn who_has_found_nothing_has_nothing_to_finish() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a", 1).unwrap();
    assert_eq!(mailbox.try_recv().unwrap(), None);
    let gate = Gate::new();
    let wait = gate.clone();
    hub.pool().post(move || wait.wait()).unwrap();
    gate.until_entered(1);
    let pool = hub.pool().clone();
    let ending = thread::spawn(move || pool.shutdown(LONG));
    until("the refusal", || matches!(hub.publish("b", ""), Err(Error::ShutDown)));
    gate.open();
    assert!(ending.join().unwrap().drained);
}

/// Goal: nobody sleeps through a message. Method: pullers that wait without an end, and publishers; every
/// message is taken once.
#[test]
fn waiting_pullers_get_everything_once() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a", 1 << 20).unwrap();
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut batch = Vec::new();
                while let Ok(_some) = mailbox.recv_batch_timeout(&mut batch, 16, Duration::MAX) {
                    for message in batch.drain(..) {
                        sum.fetch_add(text(&message).parse::<u64>().unwrap(), SeqCst);
                    }
                }
            });
        }
        for number in 1..=3000u64 {
            assert_eq!(hub.publish("a", number.to_string()).unwrap().enqueued, 1);
        }
        until("an empty mailbox", || mailbox.stats().waiting == 0);
        assert_eq!(mailbox.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    });
    assert_eq!(sum.load(SeqCst), 3000 * 3001 / 2);
    settle(&hub);
}

fn is_readable(descriptor: i32) -> bool {
    readable(descriptor, 0)
}

#[test]
fn the_descriptor_is_readable_while_something_waits() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a", 10).unwrap();
    let descriptor = mailbox.descriptor().unwrap().as_raw_fd();
    assert!(!is_readable(descriptor));
    let _ = hub.publish("a", "").unwrap();
    assert!(is_readable(descriptor));
    let mut batch = Vec::new();
    mailbox.recv_batch(&mut batch, 10).unwrap();
    assert!(!is_readable(descriptor));
    // Asked for when something waits already.
    let _ = hub.publish("a", "").unwrap();
    assert!(is_readable(mailbox.descriptor().unwrap().as_raw_fd()));
    assert_eq!(mailbox.unsubscribe(Unsubscribe::Drain).unwrap(), Unsubscribed::Later);
    assert_eq!(mailbox.recv_batch(&mut batch, 10).unwrap(), 1);
    assert!(is_readable(descriptor), "its end is worth a look");
    assert!(matches!(mailbox.recv_batch(&mut batch, 10), Err(Error::Stale { what: "mailbox" })));
    settle(&hub);
}

/// A puller that is gone without a word loses its subscription; one that pulls does not.
#[test]
fn a_lease_ends_what_nobody_pulls() {
    let _guard = hang_guard();
    let hub = hub(1);
    let leased = |time| hub.subscription("a").lease(time).pull().unwrap();
    let gone = leased(Duration::from_millis(20));
    let kept = leased(Duration::from_secs(100_000));
    let _ = hub.publish("a", "").unwrap();
    until("the end of the lease", || hub.subscriber_count("a").unwrap() == 1);
    assert_eq!(gone.stats().discarded, 1);
    assert!(matches!(gone.try_recv(), Err(Error::Stale { .. })));
    assert!(kept.try_recv().unwrap().is_some());
    let refused = hub.subscription("a").lease(Duration::ZERO).pull();
    assert_eq!(refused.unwrap_err().to_string(), "lease is 0ns, but must be 1 ms to 100 years");
    settle(&hub);
}

/// A thread that waits at a queue takes nothing from the mailbox while there is nothing, and is not gone.
#[test]
fn a_lease_counts_who_waits_at_a_completion_queue() {
    let _guard = hang_guard();
    let hub = hub(1);
    let leased = |key, milliseconds| {
        let lease = Duration::from_millis(milliseconds);
        Arc::new(hub.subscription(key).lease(lease).pull().unwrap())
    };
    let queue = CompletionQueue::new(hub.pool()).unwrap();
    let kept = leased("a", 1000);
    queue.mailbox(&kept, 1).unwrap();
    let waiter = {
        let queue = queue.clone();
        thread::spawn(move || queue.wait(&mut Vec::new(), 1, Duration::MAX).unwrap())
    };
    let gone = leased("b", 2500);
    until("the end of another lease", || hub.subscriber_count("b").unwrap() == 0);
    assert_eq!(hub.subscriber_count("a").unwrap(), 1);
    let _ = hub.publish("a", "x").unwrap();
    assert_eq!(waiter.join().unwrap(), 1);
    until("the end of the lease", || hub.subscriber_count("a").unwrap() == 0);
    drop((kept, gone));
    settle(&hub);
}

/// What a puller cannot deal with becomes a dead letter of its subscription, before or after that has ended, and
/// the books balance at every step.
#[test]
fn a_puller_buries_what_it_took() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a.*", 9).unwrap();
    let _ = hub.publish("a.b", "1").unwrap();
    let _ = hub.publish("a.b", "2").unwrap();
    let one = mailbox.try_recv().unwrap().unwrap();
    let counts = || {
        let stats = mailbox.stats();
        assert!(hub.audit().is_balanced());
        (stats.waiting, stats.delivered, stats.dead_lettered)
    };
    mailbox.bury(&one, Some("no"), 3).unwrap();
    assert_eq!(counts(), (1, 0, 1));
    let twice = mailbox.bury(&one, None, 3).unwrap_err().to_string();
    assert!(twice.contains("taken from this mailbox"), "{twice}");
    let two = mailbox.try_recv().unwrap().unwrap();
    assert_eq!(mailbox.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Now);
    mailbox.bury(&two, None, 0).unwrap();
    assert_eq!(counts(), (0, 0, 2));
    let audit = hub.audit();
    assert_eq!((audit.matched, audit.delivered, audit.dead_lettered), (2, 0, 2));
    let letters = hub.dead_letters(&DeadFilter::all());
    let told: Vec<_> = letters.iter().map(|dead| (dead.reason(), dead.failure())).collect();
    assert_eq!(told, [(DeadReason::Failed, Some("no")), (DeadReason::Suspended, None)]);
    assert_eq!((letters[0].attempts(), letters[0].subscription()), (3, mailbox.id()));
    assert_eq!(letters[0].message().payload(), one.payload());
    let other = hub.mailbox("b", 9).unwrap();
    let foreign = other.bury(&one, None, 1).unwrap_err().to_string();
    assert!(foreign.contains("\"a.b\""), "{foreign}");
    settle(&hub);
}

#[test]
fn the_end_of_the_pool_wakes_pullers() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.subscription("a").overflow(Overflow::DropOldest).pull().unwrap();
    thread::scope(|scope| {
        let puller = scope.spawn(|| mailbox.recv_timeout(Duration::MAX));
        thread::sleep(Duration::from_millis(5));
        assert!(hub.pool().shutdown(LONG).drained);
        assert!(matches!(puller.join().unwrap(), Err(Error::ShutDown)));
    });
}

/// Goal: whoever pulls may be the one to find out that the time to drain is over. Method: the only thread of the pool asks
/// for the end, and is held then.
#[test]
fn a_puller_may_end_the_drain() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.mailbox("a", 8).unwrap();
    let (gate, pool) = (Gate::new(), hub.pool().clone());
    let visitor = gate.clone();
    let held = move || {
        assert!(pool.shutdown(Duration::from_millis(1)).requested);
        visitor.wait();
    };
    hub.pool().post(held).unwrap();
    gate.until_entered(1);
    assert!(matches!(mailbox.recv_timeout(LONG), Err(Error::ShutDown)));
    gate.open();
    until("its thread has left", || hub.pool().shutdown(LONG).stuck.is_empty());
}

/// Goal: mailboxes of one key have the same messages wherever these lie: in the channel's ring, or in the mailbox of
/// one that fell behind; each loss is told once, and a hand that is left with handlers is in nobody's way.
/// Method: pulled by different numbers, over the ends of segments; one is slow, and refuses, drops or blocks.
#[test]
fn pullers_beside_handlers_get_the_same_in_order() {
    let _guard = hang_guard();
    let hub = hub(1);
    let handled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&handled);
    let handler = hub.subscribe("a", move |_| {
        count.fetch_add(1, SeqCst);
    });
    let _handler = handler.unwrap();
    let fast = hub.mailbox("a", 400).unwrap();
    let slow = hub.subscription("a").capacity(150).overflow(Overflow::DropOldest).pull().unwrap();
    let (mut quick, mut late, mut lost) = (Vec::new(), Vec::new(), 0);
    for round in 0..20u64 {
        let numbers = (round * 100..).take(100).map(|number| number.to_string());
        let receipt = hub.publish_batch("a", numbers).unwrap();
        assert_eq!((receipt.matched, receipt.rejected), (300, 0));
        while fast.recv_batch(&mut quick, 33).unwrap() > 0 {}
        if round % 3 == 2 {
            let before = late.len();
            assert_eq!(slow.recv_batch(&mut late, 1000).unwrap(), 150);
            lost += late[before..].iter().map(Received::lost_before).sum::<u64>();
        }
        until("it is handled", || handled.load(SeqCst) == (round + 1) * 100);
    }
    let numbers = |from: &[Received]| from.iter().map(|m| text(m).parse().unwrap()).collect();
    let (all, some): (Vec<u64>, Vec<u64>) = (numbers(&quick), numbers(&late));
    assert_eq!(all, (0..2000).collect::<Vec<_>>());
    assert!(some.is_sorted() && quick.iter().all(|message| message.lost_before() == 0));
    let stats = slow.stats();
    // The last two rounds wait, but for what had no room.
    assert_eq!((stats.delivered, stats.waiting, stats.dropped), (900, 150, 950));
    assert_eq!(lost, 900);
    assert_eq!((fast.stats().delivered, fast.stats().waiting), (2000, 0));
    drop(slow);
    settle(&hub);
}

/// Goal: a mailbox that is drained gives out what waits in the channel's ring, and one that is closed discards it.
#[test]
fn what_waits_in_the_ring_is_drained_or_discarded() {
    let _guard = hang_guard();
    let hub = hub(1);
    let [drained, closed] = [(); 2].map(|()| hub.mailbox("a", 10).unwrap());
    let _ = hub.publish_batch("a", ["1", "2", "3"]).unwrap();
    assert_eq!(drained.unsubscribe(Unsubscribe::Drain).unwrap(), Unsubscribed::Later);
    assert_eq!(closed.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Now);
    assert_eq!(hub.publish("a", "4").unwrap().matched, 0);
    let mut left = Vec::new();
    assert_eq!(drained.recv_batch(&mut left, 2).unwrap(), 2);
    assert_eq!(drained.recv_batch(&mut left, 2).unwrap(), 1);
    assert_eq!(left.iter().map(text).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert!(matches!(drained.try_recv(), Err(Error::Stale { .. })));
    assert_eq!((closed.stats().discarded, drained.stats().delivered), (3, 3));
    settle(&hub);
}

fn delivered(count: u64) -> Acknowledged {
    Acknowledged { delivered: count, ..Acknowledged::default() }
}

/// Goal: what the host has taken is running until the host says what became of it, and the subscription ends after the
/// last of it, whether it was read in the ring or waited in the mailbox.
#[test]
fn what_is_acknowledged_runs_until_then() {
    let _guard = hang_guard();
    for by_priority in [false, true] {
        let hub = hub(1);
        let builder = hub.subscription("a").capacity(4).acknowledged().unique("host");
        let mailbox = if by_priority { builder.by_priority() } else { builder }.pull().unwrap();
        assert!(hub.subscription("a").unique("host").pull().is_err());
        let mut taken = Vec::new();
        for number in 0..8 {
            let _ = hub.publish("a", number.to_string()).unwrap();
            if number == 3 {
                // Those in hand take no room.
                assert_eq!(mailbox.recv_batch(&mut taken, 9).unwrap(), 4);
            }
        }
        let stats = mailbox.stats();
        assert_eq!((stats.running, stats.waiting, stats.delivered), (4, 4, 0));
        mailbox.acknowledge(Acknowledged { delivered: 1, failed: 1, discarded: 1 }).unwrap();
        mailbox.bury(&taken[3], Some("no"), 1).unwrap();
        let refused = mailbox.acknowledge(delivered(1)).unwrap_err().to_string();
        assert!(
            refused.starts_with("acknowledged messages is 1, but must be up to 0"),
            "{refused}"
        );
        assert!(mailbox.bury(&taken[3], None, 1).is_err());
        let stats = mailbox.stats();
        assert_eq!((stats.delivered, stats.failed, stats.discarded), (1, 1, 1));
        assert_eq!((stats.running, stats.dead_lettered), (0, 1));
        taken.clear();
        assert_eq!(mailbox.recv_batch(&mut taken, 2).unwrap(), 2);
        assert_eq!(mailbox.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
        assert!(matches!(mailbox.try_recv(), Err(Error::Stale { .. })));
        mailbox.acknowledge(delivered(1)).unwrap();
        assert_eq!(hub.audit().running, 1);
        // What nobody acknowledges any more is discarded.
        drop(mailbox);
        let audit = hub.audit();
        assert_eq!((audit.running, audit.delivered, audit.discarded), (0, 2, 4));
        settle(&hub);
    }
}

/// Goal: a key of a group moves to another member only when the host has dealt with what it has of it.
#[test]
fn hosts_that_acknowledge_share_keys_without_overlap() {
    let _guard = hang_guard();
    let hub = hub(1);
    for (name, balance) in [("keys", Balance::ByKey), ("headers", Balance::ByHeader("h".into()))] {
        let plain = hub.subscription("a.*").group(name, balance.clone()).pull().unwrap_err();
        assert!(plain.to_string().contains("acknowledged"), "{plain}");
        let member = |hub: &Hub| -> Mailbox {
            let member = hub.subscription("a.*").group(name, balance.clone());
            member.acknowledged().pull().unwrap()
        };
        let publish = |key: usize| {
            let header = key.to_string();
            let headers = Headers::new([("h", header.as_str())]).unwrap();
            let _ = hub.message("a.b").headers(headers).payload(header.clone()).publish().unwrap();
            let key = format!("a.{header}");
            let _ = hub.publish(key.as_str(), header).unwrap();
        };
        let first = member(&hub);
        (0..16).for_each(publish);
        let mut held = Vec::new();
        assert_eq!(first.recv_batch(&mut held, 99).unwrap(), 32);
        let second = member(&hub);
        (0..16).for_each(publish);
        // Those keys that move wait for what the first has in hand.
        assert!(hub.moving() > 0 && second.try_recv().unwrap().is_none());
        first.acknowledge(delivered(31)).unwrap();
        first.bury(&held[31], None, 1).unwrap();
        assert_eq!(hub.moving(), 0);
        let mut came = Vec::new();
        let moved = second.recv_batch(&mut came, 99).unwrap();
        assert!(moved > 0 && first.stats().waiting as usize == 32 - moved);
        drop((first, second));
    }
    settle(&hub);
}

/// Goal: handlers of hosts and of the hub have one supervisor. Method: one of the hub's crashes, so that the host's is to be
/// restarted; one of the host's crashes once too often, so that both are suspended, also one of a later mailbox.
#[test]
fn handlers_of_hosts_are_supervised_with_others() {
    let _guard = hang_guard();
    let hub = hub(1);
    let intensity = Intensity::new(1, Duration::from_secs(3600)).suspend_for_good();
    let supervisor = Supervisor::new(RestartStrategy::OneForAll, intensity).unwrap();
    let plain = hub.subscription("a").supervisor(&supervisor);
    assert!(plain.pull().is_err(), "who does not acknowledge has no handler");
    let retried = hub.subscription("a").on_failure(OnFailure::discard()).acknowledged();
    assert!(retried.pull().is_err(), "the host tries again");
    let own = || hub.subscription("a").acknowledged().supervisor(&supervisor).pull().unwrap();
    let mailbox = own();
    let panics = |_: &Message<'_>| -> Result<(), Failure> { quiet_panic("on purpose") };
    let handler = hub.subscription("b").supervisor(&supervisor).serve(panics).unwrap();
    assert!(!mailbox.catch_up());
    let _ = hub.publish("b", "").unwrap();
    until("the crash", || handler.stats().restarts == 1);
    assert!(mailbox.catch_up() && !mailbox.catch_up());
    let suspended = AfterCrash::Suspended { lasts: None };
    assert_eq!(mailbox.crashed("once too often").unwrap(), suspended);
    assert!(mailbox.is_suspended() && handler.is_suspended() && own().is_suspended());
    assert!(handler.resume() && !mailbox.is_suspended());
    assert!(mailbox.catch_up() && mailbox.stats().restarts == 2);
}

/// Goal: what a host says of its handler is where the hub tells of its own: counts, errors and receipts. A suspension
/// ends by itself, and an old one does not end a new one.
#[test]
fn a_host_reports_restarts_and_suspends() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mailbox = hub.subscription("a").acknowledged().pull().unwrap();
    assert_eq!(mailbox.crashed("broken").unwrap(), AfterCrash::Restart);
    assert!(!mailbox.catch_up());
    let _ = hub.publish("a", "1").unwrap();
    assert!(mailbox.suspend(None).unwrap() && !mailbox.suspend(None).unwrap());
    assert_eq!(hub.publish("a", "2").unwrap().dead_lettered, 1);
    assert_eq!(mailbox.try_recv().unwrap(), None);
    let stats = mailbox.stats();
    assert_eq!((stats.restarts, stats.dead_lettered, stats.suspended), (1, 2, true));
    let errors = hub.errors(&ErrorFilter::all());
    let events: Vec<_> = errors.iter().map(|error| error.event).collect();
    let restarted = "subscription.restarted";
    assert_eq!(events, [restarted, "subscription.suspended"]);
    assert_eq!(errors[0].message, "restart 1: broken");
    assert!(mailbox.resume() && !mailbox.resume());
    assert!(mailbox.catch_up() && !mailbox.catch_up());
    let short = Duration::from_millis(1);
    assert!(mailbox.suspend(Some(short)).unwrap());
    until("its end", || !mailbox.stats().suspended);
    assert!(mailbox.suspend(Some(Duration::from_secs(1000))).unwrap() && mailbox.resume());
    assert!(mailbox.suspend(None).unwrap());
    assert!(mailbox.suspend(Some(Duration::MAX)).is_err());
    assert!(mailbox.resume());
    let _ = hub.publish("a", "3").unwrap();
    assert_eq!(text(&mailbox.try_recv().unwrap().unwrap()), "3");
    mailbox.acknowledge(delivered(1)).unwrap();
    drop(mailbox);
    settle(&hub);
}
