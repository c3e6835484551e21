//! The protocol of mailboxes and of the ready list under every interleaving.
//!
//! Each model has a twin with a fault put in, which must fail: so it is known what the model sees. What lies
//! behind `arc-swap` and `OnceLock` (snapshots) is not modelled: loom does not see inside of them. The segments
//! of the ring have their model in `queue/page.rs`.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | a run's next segment against a publisher | what has begun is read before the mailbox's lock is taken | there is room in a full mailbox |
//! | the hub's mailboxes | a run rests under one lock and gives its handler back under another | the next run finds none |
//! | the end of a subscription beside inline deliveries | runs are not waited for | a handler runs after its end |
//! | the hub's ready list | a service leaves without a look at the list | something is left on it |
//! | a run that takes from the hub's ring without the channel's lock | it does not look at the mailbox, nor whether it is in the ring still | a message is lost or comes twice; a later one comes first; a publisher waits on |
//! | suspending beside the end | a run that finds a suspension stays scheduled; dead messages are counted before they are buried | a message waits for ever; statistics name dead letters that are not there |
//! | what is held for a retry | a timer lets go before it lists | a drain ends too early |
//! | messages together | who has room in one mailbox publishes there at once | one mailbox has it, and the other has not |
//! | an offer beside the end of the pool | mailboxes are not shut, or left to another thread that ends the pool; what is left is counted before they are | a message is accepted, and is not left |
//! | a request with a function: reply, end of time, giving up | the end looks whether it is open, and calls before it takes | it is called twice |

use crate::hub::channel::cursor::RingCursor;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::mail::{Close, Mail, Offer, Phase, Room};
use crate::hub::mailbox::puller::Puller;
use crate::hub::mailbox::rules::{Execution, Overflow, Rules};
use crate::hub::message::{Headers, Payload, Priority, Stored};
use crate::hub::request::requests::{Reached, Requests};
use crate::hub::run::ready::Ready;
use crate::hub::system::notice::Burst;
use crate::pool::Remains;
use crate::queue::{Page, Pen};
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex, UnsafeCell};
use core::time::Duration;
use loom::thread;
use std::collections::VecDeque;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn rules(overflow: Overflow, runs: u32) -> Rules {
    let execution = Execution::Serial;
    Rules {
        execution,
        capacity: 1,
        overflow,
        ranked: false,
        runs,
        acknowledged: false,
        shared: false,
    }
}

fn message(sequence: u64) -> Stored {
    Stored {
        sequence,
        time: 0,
        key: Key::detached("a"),
        headers: Headers::NONE,
        payload: Payload::EMPTY,
        priority: Priority::Normal,
    }
}

fn delivered(count: u64) -> Settled {
    Settled { delivered: count, ..Settled::default() }
}

/// A mailbox, and what its handler touches: two at once, or one after its end, are a violation.
struct Place {
    rules: Rules,
    mail: Mutex<Mail<u32>>,
    data: UnsafeCell<()>,
    told: AtomicU64,
    buried: AtomicU64,
    /// With the fault that a run which finds a suspension stays scheduled.
    deaf: bool,
}

impl Place {
    fn new(overflow: Overflow, runs: u32) -> Arc<Self> {
        Arc::new(Self::of(overflow, runs, false))
    }

    fn of(overflow: Overflow, runs: u32, deaf: bool) -> Self {
        Self {
            rules: rules(overflow, runs),
            mail: Mutex::new(Mail::new(Some(7))),
            data: UnsafeCell::new(()),
            told: AtomicU64::new(0),
            buried: AtomicU64::new(0),
            deaf,
        }
    }

    /// Publishes, and serves if a run is to be scheduled. `torn`: with the fault that a run rests under one
    /// lock and gives the handler back under another.
    fn publish(&self, sequence: u64, torn: bool) {
        let offer = self.mail.lock().unwrap().offer(&self.rules, 0, &message(sequence), false);
        match offer {
            Offer::Enqueued { schedule: true, .. } => while self.run(torn) {},
            Offer::Dead => self.bury(1, false),
            _ => {}
        }
    }

    /// `hasty`: with the fault that what is dead is counted before it is buried.
    fn suspend(&self, hasty: bool) {
        let waited = self.mail.lock().unwrap().suspend().len() as u64;
        if waited > 0 {
            self.bury(waited, hasty);
        }
    }

    fn bury(&self, dead: u64, hasty: bool) {
        if !hasty {
            self.buried.fetch_add(dead, SeqCst);
        }
        let close = self.mail.lock().unwrap().buried(dead);
        self.end(close);
        if hasty {
            self.buried.fetch_add(dead, SeqCst);
        }
    }

    fn run(&self, torn: bool) -> bool {
        let mut mail = self.mail.lock().unwrap();
        if self.deaf && mail.phase() == Phase::Suspended {
            return false;
        }
        if !mail.begin() {
            return false;
        }
        let handler = mail.lend();
        drop(mail);
        assert!(handler.is_some(), "the handler is with another run");
        let mut batch: VecDeque<Entry> = VecDeque::new();
        while self.mail.lock().unwrap().take(&self.rules, &mut batch) {
            for entry in batch.drain(..) {
                self.data.with_mut(|_| ());
                self.told.fetch_add(entry.lost, SeqCst);
                self.mail.lock().unwrap().settle(&delivered(1));
            }
        }
        let mut mail = self.mail.lock().unwrap();
        let again = !mail.rest(&self.rules);
        if torn {
            drop(mail);
            mail = self.mail.lock().unwrap();
        }
        let close = mail.leave(handler);
        drop(mail);
        self.end(close);
        again
    }

    /// Delivers on the publisher's thread.
    fn deliver_inline(&self) {
        if self.mail.lock().unwrap().enter_inline().is_err() {
            return;
        }
        self.data.with(|_| ());
        let mut mail = self.mail.lock().unwrap();
        mail.settle(&delivered(1));
        let close = mail.leave(None);
        drop(mail);
        self.end(close);
    }

    fn end(&self, close: Close<u32>) {
        if let Close::Now(handler) = close {
            self.drop_handler(handler);
        }
    }

    fn drop_handler(&self, handler: Option<u32>) {
        assert!(handler.is_some(), "it is dropped once");
        self.data.with_mut(|_| ());
        self.mail.lock().unwrap().ended();
    }

    /// Unsubscribes. `hasty`: with the fault that runs are not waited for.
    fn unsubscribe(&self, hasty: bool) {
        let close = self.mail.lock().unwrap().close(false).0;
        match close {
            Close::Later if hasty => self.data.with_mut(|_| ()),
            close => self.end(close),
        }
    }
}

/// Goal: two publishers; what waits is served, by one run at a time, which finds the handler.
fn serve(torn: bool) {
    let place = Place::new(Overflow::Reject, 1);
    let other = Arc::clone(&place);
    let publisher = thread::spawn(move || other.publish(1, torn));
    place.publish(2, torn);
    publisher.join().unwrap();
    let mail = place.mail.lock().unwrap();
    let counters = mail.counters();
    assert!(mail.is_empty(), "a message waits, and nobody serves it");
    assert_eq!(counters.offered, 2);
    assert_eq!(counters.delivered + counters.rejected, 2);
}

#[test]
fn a_mailbox_is_served_by_one_run_at_a_time() {
    model(|| serve(false));
}

#[test]
#[should_panic(expected = "the handler is with another run")]
fn a_run_that_rests_before_it_gives_the_handler_back_is_found() {
    model(|| serve(true));
}

/// Goal: `Sync`'s promise, of publishing beside unsubscribing: no handler runs after its end, and it is dropped
/// once.
fn unsubscribe(hasty: bool) {
    let place = Place::new(Overflow::Reject, 0);
    let other = Arc::clone(&place);
    let publisher = thread::spawn(move || other.deliver_inline());
    place.unsubscribe(hasty);
    publisher.join().unwrap();
    let mail = place.mail.lock().unwrap();
    assert_eq!(mail.phase(), Phase::Ended);
    assert_eq!(mail.counters().offered, mail.counters().delivered);
}

#[test]
fn no_handler_runs_after_its_end() {
    model(|| unsubscribe(false));
}

#[test]
#[should_panic]
fn an_end_that_does_not_wait_for_runs_is_found() {
    model(|| unsubscribe(true));
}

/// Goal: a serial run beside an unsubscription: what waits is discarded or delivered, and the handler is
/// dropped once, when the run has left.
#[test]
fn a_run_beside_its_end_is_waited_for() {
    model(|| {
        let place = Place::new(Overflow::Reject, 1);
        let other = Arc::clone(&place);
        let publisher = thread::spawn(move || other.publish(1, false));
        place.unsubscribe(false);
        publisher.join().unwrap();
        let mail = place.mail.lock().unwrap();
        let counters = mail.counters();
        assert_eq!(mail.phase(), Phase::Ended);
        assert_eq!(counters.offered, counters.delivered + counters.discarded);
    });
}

/// Goal: full mailboxes: offered = delivered + lost, and every loss is told once. Method: two publishers, of
/// which one also serves; what has not been told is on the next message.
fn overflow(policy: Overflow) {
    let place = Place::new(policy, 1);
    let other = Arc::clone(&place);
    let publisher = thread::spawn(move || (1..3).for_each(|number| other.publish(number, false)));
    place.publish(3, false);
    publisher.join().unwrap();
    place.publish(4, false);
    let counters = place.mail.lock().unwrap().counters();
    let lost = counters.dropped + counters.rejected;
    assert_eq!((counters.offered, counters.delivered), (4, 4 - lost));
    assert_eq!(place.told.load(SeqCst), lost);
}

#[test]
fn rejected_messages_are_told() {
    model(|| overflow(Overflow::Reject));
}

#[test]
fn dropped_newest_messages_are_told() {
    model(|| overflow(Overflow::DropNewest));
}

#[test]
fn dropped_oldest_messages_are_told() {
    model(|| overflow(Overflow::DropOldest));
}

#[test]
fn conflated_messages_are_told() {
    model(|| overflow(Overflow::Conflate));
}

/// Goal: what is put on the ready list is served, though the one service is just about to rest. `deaf`: with
/// the fault that a call which comes while it runs is not heeded.
fn ready(deaf: bool) {
    let ready = Arc::new(Ready::new(1));
    let served = Arc::new(AtomicU64::new(0));
    let push = move |ready: &Ready<u64>, served: &AtomicU64, work: u64| {
        // A service that is called runs, here on the thread that called it.
        if ready.push(work).is_some() {
            ready.begin();
            while let Some((work, call)) = ready.pop(0) {
                served.fetch_add(work, SeqCst);
                assert_eq!(call, None, "it is not called while it runs");
                if deaf {
                    break;
                }
            }
        }
    };
    let (list, count) = (Arc::clone(&ready), Arc::clone(&served));
    let other = thread::spawn(move || push(&list, &count, 1));
    push(&ready, &served, 2);
    other.join().unwrap();
    assert_eq!(served.load(SeqCst), 3, "something is left on the list");
    assert_eq!(ready.remains(0), Remains::Nothing);
}

#[test]
fn the_ready_list_is_worked_off() {
    model(|| ready(false));
}

#[test]
#[should_panic]
fn a_service_that_leaves_without_a_look_is_found() {
    model(|| ready(true));
}

/// Goal: whoever asks whether all is done does not hear so while something is held: what is served once fails, is
/// held, and is served again when a timer puts it there. `torn`: with the fault that the timer lets go of it
/// first, under another lock.
fn held(torn: bool) {
    let (ready, served) = (Arc::new(Ready::new(1)), Arc::new(AtomicU64::new(0)));
    assert_eq!(ready.push(0), Some(0));
    let (list, count) = (Arc::clone(&ready), Arc::clone(&served));
    let other = thread::spawn(move || {
        let serve = || {
            list.begin();
            while let Some((work, _call)) = list.pop(0) {
                if work == 0 {
                    list.hold(0);
                }
                count.fetch_add(work, SeqCst);
            }
        };
        serve();
        let call = match torn {
            true => {
                list.let_go(1);
                list.push(1)
            }
            false => list.push_due(1),
        };
        assert_eq!(call, Some(0));
        serve();
    });
    if ready.remains(0) == Remains::Nothing {
        assert_eq!(served.load(SeqCst), 1, "something is held");
    }
    other.join().unwrap();
    assert_eq!(ready.remains(0), Remains::Nothing);
}

#[test]
fn a_drain_waits_for_what_is_held() {
    model(|| held(false));
}

#[test]
#[should_panic(expected = "something is held")]
fn a_timer_that_lets_go_before_it_lists_is_found() {
    model(|| held(true));
}

/// Goal: every loss is told, though the timer is just about to close the burst that its loser sees open.
/// `blind`: with the fault that the timer does not look again.
fn burst(blind: bool) {
    let (burst, lost) = (Arc::new(Burst::default()), Arc::new(AtomicU64::new(1)));
    let told = Arc::new(AtomicU64::new(0));
    assert!(burst.open());
    told.fetch_add(burst.untold(1), SeqCst);
    let (other, other_lost, other_told) = (burst.clone(), lost.clone(), told.clone());
    let loser = thread::spawn(move || {
        let count = other_lost.fetch_add(1, Relaxed) + 1;
        if other.open() {
            other_told.fetch_add(other.untold(count), SeqCst);
        }
    });
    let losses = || if blind { 0 } else { lost.load(Relaxed) };
    if burst.close(losses) > 0 {
        told.fetch_add(burst.untold(lost.load(Relaxed)), SeqCst);
    }
    loser.join().unwrap();
    assert_eq!(told.load(SeqCst), 2, "a loss is told by nobody");
}

#[test]
fn a_loss_beside_the_end_of_its_burst_is_told() {
    model(|| burst(false));
}

#[test]
#[should_panic(expected = "a loss is told by nobody")]
fn a_burst_that_ends_without_a_look_is_found() {
    model(|| burst(true));
}

/// What a run streams from: a segment with one message that the run has taken, and where its subscription is.
struct Stream {
    mail: Mutex<Mail<u32>>,
    cursor: RingCursor,
    page: Arc<Page<u64>>,
}

impl Stream {
    fn new() -> (Arc<Self>, Pen<u64>) {
        let mut pen = Pen::new(3);
        pen.push_with(|slot| *slot = 1);
        let cursor = RingCursor::new();
        cursor.join(0);
        cursor.advance(1);
        let mut mail = Mail::new(Some(7));
        assert_eq!(mail.take_shared(1), 0);
        let page = Arc::clone(pen.page());
        (Arc::new(Self { mail: Mutex::new(mail), cursor, page }), pen)
    }

    /// Takes what comes after so many. `blind`: with the fault that neither the mailbox nor the place in the
    /// ring is looked at.
    fn take(&self, taken: usize, blind: bool) -> Vec<u64> {
        let more = self.page.shown() - taken;
        let mut mail = self.mail.lock().unwrap();
        match blind {
            true => self.cursor.advance(more),
            false if mail.stream(&self.cursor, more).is_none() => return Vec::new(),
            false => {}
        }
        drop(mail);
        self.page.read(taken, more).copied().collect()
    }
}

/// Goal: each message that is appended while the subscription is taken out of the ring comes to its run or to
/// its mailbox, and not to both. Method: the run takes once, beside a publisher that appends and then parts.
fn part(blind: bool) {
    let (stream, mut pen) = Stream::new();
    let other = Arc::clone(&stream);
    let run = thread::spawn(move || other.take(1, blind));
    (2..=3).for_each(|message| pen.push_with(|slot| *slot = message));
    let mail = stream.mail.lock().unwrap();
    let next = stream.cursor.part() as usize;
    drop(mail);
    let mut all = run.join().unwrap();
    all.extend(stream.page.read(next, 3 - next));
    assert_eq!(all, [2, 3], "a message is lost, or comes twice");
}

#[test]
fn what_is_appended_beside_a_part_comes_once() {
    model(|| part(false));
}

#[test]
#[should_panic(expected = "a message is lost, or comes twice")]
fn a_run_that_streams_out_of_the_ring_is_found() {
    model(|| part(true));
}

/// Goal: what a publisher brings to the mailbox is not overtaken by what it appends to the ring afterwards.
fn overtake(blind: bool) {
    let (stream, mut pen) = Stream::new();
    let other = Arc::clone(&stream);
    let run = thread::spawn(move || other.take(1, blind));
    let rules = Rules { capacity: 2, ..rules(Overflow::Reject, 1) };
    let mut mail = stream.mail.lock().unwrap();
    let offer = mail.offer(&rules, 0, &message(2), false);
    drop(mail);
    assert!(matches!(offer, Offer::Enqueued { .. }));
    pen.push_with(|slot| *slot = 3);
    assert!(run.join().unwrap().is_empty(), "the later message comes first");
}

#[test]
fn a_stream_looks_at_the_mailbox_first() {
    model(|| overtake(false));
}

#[test]
#[should_panic(expected = "the later message comes first")]
fn a_stream_that_does_not_look_is_found() {
    model(|| overtake(true));
}

/// Goal: a publisher that waits for room is told: a run does not stream past it, but comes by the channel's lock,
/// where it tells.
fn room(blind: bool) {
    let (stream, mut pen) = Stream::new();
    let other = Arc::clone(&stream);
    let run = thread::spawn(move || other.take(1, blind));
    stream.mail.lock().unwrap().has_waiters = true;
    pen.push_with(|slot| *slot = 2);
    assert!(run.join().unwrap().is_empty(), "the publisher waits on");
}

#[test]
fn a_publisher_that_waits_ends_the_stream() {
    model(|| room(false));
}

#[test]
#[should_panic(expected = "the publisher waits on")]
fn a_stream_past_a_publisher_that_waits_is_found() {
    model(|| room(true));
}

/// Goal: a full mailbox is full for a publisher that looks at it while its run turns over to the next segment.
/// Method: the run has taken two messages, one of which has begun and is done. `early`: with the fault that what has
/// begun is read before the mailbox's lock is taken.
fn turn_over(early: bool) {
    let (stream, _pen) = Stream::new();
    assert_eq!(stream.mail.lock().unwrap().take_shared(1), 0);
    let begun = Arc::new(AtomicU64::new(1));
    let (other, run_begun) = (Arc::clone(&stream), Arc::clone(&begun));
    let run = thread::spawn(move || {
        let mut mail = other.mail.lock().unwrap();
        mail.settle(&delivered(1));
        run_begun.store(0, Relaxed);
    });
    let seen = early.then(|| begun.load(Relaxed));
    let mut mail = stream.mail.lock().unwrap();
    let seen = seen.unwrap_or_else(|| begun.load(Relaxed));
    let offer = mail.offer(&rules(Overflow::Reject, 1), seen as u32, &message(3), false);
    drop(mail);
    assert_eq!(offer, Offer::Rejected, "there is room in a full mailbox");
    run.join().unwrap();
}

#[test]
fn a_run_that_turns_over_makes_no_room() {
    model(|| turn_over(false));
}

#[test]
#[should_panic(expected = "there is room in a full mailbox")]
fn a_look_before_the_lock_is_found() {
    model(|| turn_over(true));
}

/// A mailbox in the ring that pullers sleep for, with so many messages there.
struct Bell {
    ring: Mutex<u64>,
    mail: Mutex<()>,
    resting: AtomicBool,
    puller: Puller,
}

impl Bell {
    /// `hasty`: with the fault that who calls does not take the mailbox's lock.
    fn publish(&self, count: u64, hasty: bool) {
        let mut ring = self.ring.lock().unwrap();
        *ring += count;
        if self.resting.swap(false, Relaxed) {
            if !hasty {
                drop(self.mail.lock().unwrap());
            }
            self.puller.notify();
        }
    }

    /// Takes one; sleeps until there is one.
    fn pull(&self) {
        loop {
            let mut ring = self.ring.lock().unwrap();
            if *ring > 0 {
                *ring -= 1;
                let left = *ring > 0;
                self.resting.store(!left, Relaxed);
                drop(ring);
                if left {
                    self.puller.notify_next();
                }
                return;
            }
            drop(ring);
            let mut mail = self.mail.lock().unwrap();
            while self.resting.load(Relaxed) {
                mail = self.puller.sleep(mail, Duration::MAX);
            }
        }
    }
}

/// Goal: pullers do not sleep beside messages. Method: two of them, which take one each, beside a publisher of two.
fn sleep(hasty: bool) {
    let bell = Arc::new(Bell {
        ring: Mutex::new(0),
        mail: Mutex::new(()),
        resting: AtomicBool::new(true),
        puller: Puller::new(),
    });
    let pull = |bell: Arc<Bell>| thread::spawn(move || bell.pull());
    let pullers = [pull(Arc::clone(&bell)), pull(Arc::clone(&bell))];
    bell.publish(2, hasty);
    for puller in pullers {
        puller.join().unwrap();
    }
}

#[test]
fn pullers_do_not_sleep_beside_messages() {
    model(|| sleep(false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_call_past_a_puller_that_is_about_to_sleep_is_found() {
    model(|| sleep(true));
}

/// Goal: suspending and resuming beside a publisher: each message is delivered, or became a dead letter, and one
/// that was accepted after the end of the suspension is served. `deaf`: with the fault that a run which finds
/// the suspension stays scheduled.
fn resume(deaf: bool) {
    let place = Arc::new(Place::of(Overflow::Reject, 1, deaf));
    let other = Arc::clone(&place);
    let publisher = thread::spawn(move || other.publish(1, false));
    place.suspend(false);
    assert!(place.mail.lock().unwrap().resume());
    place.publish(2, false);
    publisher.join().unwrap();
    let mail = place.mail.lock().unwrap();
    let counters = mail.counters();
    assert!(mail.is_empty(), "a message waits, and nobody serves it");
    assert_eq!((mail.phase(), counters.offered), (Phase::Open, 2));
    assert_eq!(counters.delivered + counters.dead + counters.rejected, 2);
}

#[test]
fn a_suspended_mailbox_takes_nothing_and_a_resumed_one_is_served() {
    model(|| resume(false));
}

#[test]
#[should_panic(expected = "a message waits, and nobody serves it")]
fn a_run_that_ends_in_a_suspension_and_stays_scheduled_is_found() {
    model(|| resume(true));
}

/// Goal: what is counted as dead is a dead letter already, and whoever buries it holds up the end, beside a
/// publisher and an unsubscription. `hasty`: with the fault that it is counted first.
fn bury(hasty: bool) {
    let place = Place::new(Overflow::Reject, 1);
    let _first = place.mail.lock().unwrap().offer(&place.rules, 0, &message(1), false);
    let (one, two) = (Arc::clone(&place), Arc::clone(&place));
    let suspender = thread::spawn(move || one.suspend(hasty));
    let publisher = thread::spawn(move || two.publish(2, false));
    let dead = place.mail.lock().unwrap().counters().dead;
    assert!(place.buried.load(SeqCst) >= dead, "counted and not buried");
    place.unsubscribe(false);
    suspender.join().unwrap();
    publisher.join().unwrap();
    let mail = place.mail.lock().unwrap();
    let counters = mail.counters();
    assert_eq!(mail.phase(), Phase::Ended);
    assert_eq!(
        counters.offered,
        counters.delivered + counters.dead + counters.rejected + counters.discarded
    );
    assert_eq!(place.buried.load(SeqCst), counters.dead);
}

#[test]
fn what_is_counted_as_dead_is_buried() {
    model(|| bury(false));
}

#[test]
#[should_panic(expected = "counted and not buried")]
fn a_message_that_is_dead_before_it_is_buried_is_found() {
    model(|| bury(true));
}

/// Goal: messages for two mailboxes with one place each come to both or to neither, though another publisher
/// wants the same places, in the other order, and a third message comes by itself. Method: room is kept in
/// both, or released. `hasty`: with the fault that who has room in a mailbox publishes there at once.
fn together(hasty: bool) {
    let places = [Place::new(Overflow::Reject, 1), Place::new(Overflow::Reject, 1)];
    let publish = move |places: [Arc<Place>; 2], sequence: u64| {
        let mut kept = Vec::new();
        for place in &places {
            let mut mail = place.mail.lock().unwrap();
            match mail.keep_room(&place.rules, 0) {
                Room::Kept if hasty => drop(mail.offer_kept(&place.rules, 0, &message(sequence))),
                Room::Kept => kept.push(place),
                _ => {
                    drop(mail);
                    for place in kept {
                        place.mail.lock().unwrap().release_room();
                    }
                    return;
                }
            }
        }
        for place in kept {
            let mut mail = place.mail.lock().unwrap();
            let offer = mail.offer_kept(&place.rules, 0, &message(sequence));
            assert!(matches!(offer, Offer::Enqueued { .. }));
        }
    };
    let [first, second] = places.clone();
    let other = thread::spawn(move || publish([second, first], 2));
    publish(places.clone(), 1);
    let alone = {
        let place = &places[0];
        let offer = place.mail.lock().unwrap().offer(&place.rules, 0, &message(3), false);
        matches!(offer, Offer::Enqueued { .. })
    };
    other.join().unwrap();
    let got = places.map(|place| {
        let mut got = Vec::new();
        place.mail.lock().unwrap().pull(&place.rules, 4, |entry| got.push(entry.stored.sequence));
        got
    });
    match alone {
        true => assert_eq!(got, [vec![3], vec![]]),
        false => assert!(got[0] == got[1] && got[0].len() <= 1, "{got:?}"),
    }
}

#[test]
fn messages_together_come_to_all_or_to_none() {
    model(|| together(false));
}

#[test]
#[should_panic]
fn messages_together_that_come_before_all_have_room_are_found() {
    model(|| together(true));
}

/// Goal: the function of a request is called once, or dropped once: a reply, the end of its time, and who gives
/// it up come together. `hasty`: with the fault that the end of the time looks whether the request is open, and
/// calls before it takes.
fn asked(hasty: bool) {
    let requests = Arc::new(Requests::default());
    let called = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = called.clone();
    let number = requests.open_with(
        Box::new(move |_| {
            count.fetch_add(1, Relaxed);
        }),
        false,
    );
    let (replies, gives) = (Arc::clone(&requests), Arc::clone(&requests));
    let inbox = format!("_INBOX.{number}");
    let reply = Stored { key: Key::detached(&inbox), ..message(1) };
    let replier = thread::spawn(move || {
        if let Some(Reached::Function(ended)) = replies.reply(&reply) {
            ended.call();
        }
    });
    let giver = thread::spawn(move || gives.take(number).is_some());
    if hasty && requests.len() == 1 {
        called.fetch_add(1, Relaxed);
        drop(requests.take(number));
    } else if let Some(ended) = requests.expire(number) {
        ended.call();
    }
    replier.join().unwrap();
    let given_up = giver.join().unwrap();
    assert_eq!(called.load(Relaxed) + u64::from(given_up), 1);
    assert_eq!(requests.len(), 0);
}

#[test]
fn a_request_with_a_function_ends_once() {
    model(|| asked(false));
}

#[test]
#[should_panic]
fn a_request_that_ends_before_it_is_taken_is_found() {
    model(|| asked(true));
}

/// What is wrong with an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Mailboxes are not shut.
    Open,
    /// What is left is counted before they are.
    Early,
    /// Who finds that another thread ends the pool leaves the mailboxes to that.
    Hasty,
}

/// Goal: a message that is accepted beside the end of the pool is among what is left then. Method: a publisher that has
/// seen the hub open, beside `Core::close` and the report, by one thread or by two. Nobody serves the mailbox.
fn end(flaw: Flaw, enders: usize) {
    let place = Place::new(Overflow::Reject, 0);
    let closed = Arc::new(AtomicBool::new(false));
    let (other, is_closed) = (Arc::clone(&place), Arc::clone(&closed));
    let publisher = thread::spawn(move || {
        let offer = || other.mail.lock().unwrap().offer(&other.rules, 0, &message(1), false);
        !is_closed.load(Relaxed) && matches!(offer(), Offer::Enqueued { .. })
    });
    let report = move |place: &Place, closed: &AtomicBool| {
        let left = || place.mail.lock().unwrap().waiting(0);
        let was_closed = closed.swap(true, Relaxed);
        let early = left();
        if flaw != Flaw::Open && !(flaw == Flaw::Hasty && was_closed) {
            place.mail.lock().unwrap().shut();
        }
        if flaw == Flaw::Early { early } else { left() }
    };
    let others: Vec<_> = (1..enders)
        .map(|_| {
            let (place, closed) = (Arc::clone(&place), Arc::clone(&closed));
            thread::spawn(move || report(&place, &closed))
        })
        .collect();
    let mut reports = vec![report(&place, &closed)];
    reports.extend(others.into_iter().map(|other| other.join().unwrap()));
    let accepted = usize::from(publisher.join().unwrap());
    assert!(reports.iter().all(|left| *left == accepted), "accepted, and not left");
}

#[test]
fn what_is_accepted_beside_the_end_is_left() {
    model(|| end(Flaw::None, 1));
    model(|| end(Flaw::None, 2));
}

#[test]
#[should_panic(expected = "accepted, and not left")]
fn an_end_that_shuts_no_mailbox_is_found() {
    model(|| end(Flaw::Open, 1));
}

#[test]
#[should_panic(expected = "accepted, and not left")]
fn an_end_that_counts_before_it_shuts_is_found() {
    model(|| end(Flaw::Early, 1));
}

#[test]
#[should_panic(expected = "accepted, and not left")]
fn an_end_that_leaves_mailboxes_to_another_one_is_found() {
    model(|| end(Flaw::Hasty, 2));
}
