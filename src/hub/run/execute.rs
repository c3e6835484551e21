//! How messages come to handlers: services, runs, and the hub's strand.

use crate::Flow;
use crate::contain::Contained;
use crate::hub::channel::reading::NextWork;
use crate::hub::channel::segment::{AT_ONCE, Following, SEGMENT, Taken};
use crate::hub::core::{Core, Strand, Work};
use crate::hub::group::dispatch::finished;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::lent::Lent;
use crate::hub::mailbox::mail::{Back, Close};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::outcome::Handled;
use crate::hub::publish::notices::run_notices;
use crate::hub::run::depth::InHandler;
use crate::hub::run::inline::{call_handler, failed_alone, lend_shared};
use crate::hub::supervise::burial::bury_of;
use crate::hub::supervise::dead::DeadReason;
use crate::hub::supervise::failure_policy::After;
use crate::hub::supervise::failures::{failed_at, suspend_all};
use crate::pool::{Timer, TurnClock};
use crate::sync::atomic::Ordering::Release;
use crate::trace::{self, Name};
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// A run looks out for more while fewer than so many wait for their turn.
const AWAITING: usize = 16;

/// What one service needs.
pub(in crate::hub) struct Service {
    core: Weak<Core>,
    number: usize,
    /// What its runs for no subscription are called.
    name: Name,
    /// What a run has taken. It is kept, so that taking allocates nothing.
    batch: VecDeque<Entry>,
    turn: TurnClock,
}

impl Service {
    pub(in crate::hub) fn new(core: Weak<Core>, number: usize) -> Self {
        Self {
            core,
            number,
            name: Name::new("hub"),
            batch: VecDeque::new(),
            turn: TurnClock::new(),
        }
    }

    pub(in crate::hub) fn serve(&mut self) -> Flow {
        let Some(core) = self.core.upgrade().map(Contained::new) else { return Flow::Done };
        core.ready.begin();
        self.turn.begin();
        while !self.turn.was_over() {
            if core.shared.must_stop() {
                core.ready.stop(self.number);
                return Flow::Wait;
            }
            let Some((work, call)) = core.ready.pop(self.number) else { return Flow::Wait };
            core.call(call);
            self.turn.begin_share();
            // What is dropped with the last reference to it, a handler that has ended say, is the program's, and may
            // panic. A service that unwound would be lost to the hub.
            let again = catch_unwind(AssertUnwindSafe(|| self.perform(&core, work)));
            let again = again.unwrap_or_else(|panic| {
                core.shared.log_panic("handler", panic);
                None
            });
            if let Some(work) = again {
                core.call(core.ready.push_back(self.number, work));
            }
        }
        core.ready.yields();
        Flow::Again
    }

    /// Does a piece of the hub's work; what is to be put on the list again.
    fn perform(&mut self, core: &Arc<Core>, work: Work) -> Option<Work> {
        match work {
            Work::Mailbox(subscriber) => serve(subscriber, core, &mut self.batch, &mut self.turn),
            Work::Replay(replay) => {
                let again = Arc::clone(&replay).run(core, &mut self.turn);
                again.then_some(Work::Replay(replay))
            }
            Work::Strand => run_strand(core, &mut self.turn).then_some(Work::Strand),
            Work::Notices => {
                trace::runs(self.name);
                let again = run_notices(core);
                self.turn.is_over();
                again.then_some(Work::Notices)
            }
            Work::Reply(ended) => {
                trace::runs(self.name);
                ended.call();
                core.shared.end_if_forked();
                self.turn.is_over();
                None
            }
        }
    }
}

/// What a run leaves.
enum Left {
    /// Nothing that it knows of.
    Nothing,
    /// There may be more in the mailbox.
    More,
}

/// Serves the mailbox for a while. Answers what is to be put on the ready list again.
fn serve(
    subscriber: Arc<Subscriber>,
    core: &Arc<Core>,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) -> Option<Work> {
    match run(&subscriber, core, batch, turn) {
        Left::Nothing => None,
        Left::More => Some(Work::Mailbox(subscriber)),
    }
}

fn run(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) -> Left {
    let shared = subscriber.rules.runs > 1;
    let mut mail = subscriber.mail();
    if !mail.begin() {
        return Left::Nothing;
    }
    let handler = if shared { lend_shared(&mail) } else { mail.lend() };
    drop(mail);
    let Some(mut handler) = handler else { unreachable!("a mailbox that is served has one") };
    let in_handler = InHandler::enter();
    trace::runs(subscriber.name());
    let mut left = match subscriber.rules.shared {
        true => deliver_shared(subscriber, core, &mut handler, batch, turn),
        false if deliver(subscriber, core, &mut handler, batch, turn) => Left::More,
        false => Left::Nothing,
    };
    drop(in_handler);
    let handler = (!shared).then_some(handler);
    let (close, again) = match &left {
        Left::Nothing if subscriber.rules.shared => {
            subscriber.channel().leave_run(core, subscriber, handler)
        }
        Left::Nothing => {
            let mut mail = subscriber.mail();
            let again = !mail.rest(&subscriber.rules);
            (mail.leave(handler), again)
        }
        Left::More => {
            let mut mail = subscriber.mail();
            let waiters = core::mem::take(&mut mail.has_waiters);
            let close = mail.leave(handler);
            drop(mail);
            if waiters {
                subscriber.notify_room();
            }
            (close, false)
        }
    };
    if matches!(close, Close::Now(_)) {
        finish(subscriber, core, close);
    }
    if again {
        left = Left::More;
    }
    left
}

/// Delivers some of what is in the mailbox. False: there was nothing more.
fn deliver(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) -> bool {
    while !turn.share_is_over() {
        let mut mail = subscriber.mail();
        let some = mail.take(&subscriber.rules, batch);
        subscriber.progress.begun.store(0, Release);
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            subscriber.notify_room();
        }
        if !some {
            return false;
        }
        deliver_batch(subscriber, core, handler, batch, turn);
    }
    true
}

/// Delivers some of what is in the mailbox and in the channel's ring.
fn deliver_shared(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) -> Left {
    while !turn.share_is_over() {
        let most = turn.batch(AT_ONCE * SEGMENT);
        let (mut taken, mut following, lost) =
            match subscriber.channel().next(subscriber, batch, most) {
                NextWork::Nothing => return Left::Nothing,
                NextWork::Ring(taken, following, lost) => (taken, following, lost),
                NextWork::Mailbox => {
                    deliver_batch(subscriber, core, handler, batch, turn);
                    continue;
                }
            };
        let all = (&mut taken, &mut following);
        if !deliver_in_place(subscriber, core, handler, all, lost, batch, turn) {
            return Left::Nothing;
        }
    }
    Left::More
}

/// Lends the handler messages where they lie, and those that are appended to the same segment meanwhile, for its share
/// of the turn. False: no messages are left.
fn deliver_in_place(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    (taken, following): (&mut Taken, &mut Following),
    lost: u64,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) -> bool {
    let mut settled = Settled::default();
    let mut lost_before = lost;
    loop {
        let (mut lent, mut failed) = (
            Lent::new(
                (&subscriber.progress, subscriber.policy()),
                (&core.shared, turn),
                taken,
                lost_before,
            ),
            0,
        );
        while let Some(failure) = handler.call_all(&mut lent) {
            core.shared.end_if_forked();
            failed += 1;
            let mut entry = lent.failed_at();
            match failed_at(subscriber, core, &mut entry, &failure) {
                After::Discard => settled.failed += 1,
                After::Dead => settled.dead += 1,
                after => {
                    lent.stops();
                    let begun = lent.begun as usize;
                    settled.delivered += (begun - failed) as u64;
                    batch.extend(taken.rest(begun, following));
                    // Behind what was taken, so before it is given back.
                    subscriber.channel().part(&mut subscriber.channel().lock(), subscriber);
                    stop(subscriber, core, entry, after, settled, batch);
                    return true;
                }
            }
            // It may have been made for this failure.
            lent.policy = subscriber.policy();
        }
        let begun = lent.end();
        settled.delivered += (begun - failed) as u64;
        let rest = taken.count - begun + following.count;
        if begun < taken.count || turn.was_over() && rest > 0 {
            let gives_back = turn.was_over();
            if gives_back && subscriber.channel().give_back(subscriber, rest, &settled) {
                return true;
            }
            batch.extend(taken.rest(begun, following));
            let mut mail = subscriber.mail();
            mail.settle(&settled);
            let back = mail.put_back(&subscriber.rules, batch);
            drop(mail);
            given_back(subscriber, core, back, batch);
            return true;
        }
        if subscriber.turn_over(taken, following, &mut settled) {
            lost_before = 0;
            continue;
        }
        let more = || taken.more() > 0 || core.ready.len() < AWAITING && taken.await_more();
        let goes_on = !turn.share_is_over();
        if goes_on && !taken.is_at_end() && !more() {
            subscriber.mail().settle(&settled);
            return false;
        }
        let most = if goes_on { turn.batch(SEGMENT) } else { 0 };
        let streamed = subscriber.stream(taken, &mut settled, most);
        match streamed {
            Some(lost) => lost_before = lost,
            None => return true,
        }
    }
}

fn deliver_batch(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    batch: &mut VecDeque<Entry>,
    turn: &mut TurnClock,
) {
    let mut settled = Settled::default();
    let mut stopped = None;
    for number in 1.. {
        if subscriber.is_closing() {
            break;
        }
        let Some(mut entry) = batch.pop_front() else { break };
        // Release: pairs with the Acquire in `offer`; what has begun does not wait.
        subscriber.progress.begun.store(number, Release);
        match call_handler(subscriber, core, handler, &entry) {
            None => settled.delivered += 1,
            Some(failure) => match failed_at(subscriber, core, &mut entry, &failure) {
                After::Discard => settled.failed += 1,
                After::Dead => settled.dead += 1,
                after => {
                    turn.is_over();
                    stopped = Some((entry, after));
                    break;
                }
            },
        }
        finished(subscriber, core, &entry.stored);
        if turn.is_over() {
            break;
        }
    }
    if let Some((entry, after)) = stopped {
        return stop(subscriber, core, entry, after, settled, batch);
    }
    let mut mail = subscriber.mail();
    mail.settle(&settled);
    let back = mail.put_back(&subscriber.rules, batch);
    drop(mail);
    given_back(subscriber, core, back, batch);
}

/// Ends a batch before its end, because a message is to be tried again, or all are suspended.
#[cold]
fn stop(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    entry: Entry,
    after: After,
    mut settled: Settled,
    batch: &mut VecDeque<Entry>,
) {
    let number = entry.number;
    if after == After::Suspend {
        finished(subscriber, core, &entry.stored);
    }
    let later = match after {
        After::Retry(delay) if !delay.is_zero() => Some(delay),
        _ => None,
    };
    let is_later = later.is_some();
    if let Some(delay) = later {
        // Before anybody can take it back.
        core.ready.hold(core.shared.now_and(delay));
    }
    let mut mail = subscriber.mail();
    let held = match after {
        After::Retry(_) => mail.hold(entry, is_later),
        _ => {
            settled.dead += 1;
            Ok(())
        }
    };
    mail.settle(&settled);
    let back = mail.put_back(&subscriber.rules, batch);
    drop(mail);
    given_back(subscriber, core, back, batch);
    match (after, held) {
        (After::Retry(_), Err((back, entry))) => {
            core.ready.let_go(usize::from(is_later));
            batch.push_back(entry);
            given_back(subscriber, core, back, batch);
        }
        (After::Retry(delay), Ok(())) if is_later => retry_later(core, subscriber, number, delay),
        (After::Suspend, _) => suspend_all(subscriber, core),
        _ => {}
    }
}

/// What the mailbox has not taken back is lost, or dead.
fn given_back(subscriber: &Arc<Subscriber>, core: &Core, back: Back, batch: &mut VecDeque<Entry>) {
    let dead = if back == Back::Dead { batch.len() as u64 } else { 0 };
    for entry in batch.drain(..) {
        if back == Back::Dead {
            let attempts = entry.tried.as_ref().map_or(0, |tried| tried.attempts);
            bury_of(subscriber, core, &entry.stored, DeadReason::Suspended, None, attempts);
        } else {
            entry.stored.spoil(Handled::Lost);
        }
        finished(subscriber, core, &entry.stored);
    }
    if dead > 0 {
        subscriber.mail().settle(&Settled { dead, ..Settled::default() });
    }
}

/// Delivers the message with this number, if it still waits.
fn deliver_number(subscriber: &Arc<Subscriber>, core: &Core, number: u64) {
    let mut mail = subscriber.mail();
    let Some(mut entry) = mail.take_number(number) else { return };
    subscriber.progress.begun.store(1, Release);
    let handler = mail.begin_unscheduled().then(|| mail.lend()).flatten();
    let waiters = core::mem::take(&mut mail.has_waiters);
    drop(mail);
    if waiters {
        subscriber.notify_room();
    }
    let Some(mut handler) = handler else { unreachable!("it has one unless it has ended") };
    let _in_handler = InHandler::enter();
    trace::runs(subscriber.name());
    let settled = match call_handler(subscriber, core, &mut handler, &entry) {
        None => Settled { delivered: 1, ..Settled::default() },
        Some(failure) => failed_alone(subscriber, core, &mut entry, &failure),
    };
    finished(subscriber, core, &entry.stored);
    drop(entry);
    let mut mail = subscriber.mail();
    mail.settle(&settled);
    let close = mail.leave(Some(handler));
    drop(mail);
    finish(subscriber, core, close);
}

/// Has a held message tried again after a delay; at once if the pool has no place for a timer.
fn retry_later(core: &Arc<Core>, subscriber: &Arc<Subscriber>, number: u64, delay: Duration) {
    let (core_left, subscriber_left) = (Arc::downgrade(core), Arc::downgrade(subscriber));
    let retry = move || retry_now(&core_left, &subscriber_left, number);
    match Timer::after(&core.shared, delay, retry, |_| ()) {
        Ok(timer) => drop(timer),
        Err((_full, retry)) => retry(),
    }
}

fn retry_now(core: &Weak<Core>, subscriber: &Weak<Subscriber>, number: u64) {
    let (Some(core), Some(subscriber)) = (core.upgrade(), subscriber.upgrade()) else { return };
    let due = subscriber.mail().due(&subscriber.rules, number);
    match due {
        Some(true) => core.call(core.ready.push_due(Work::Mailbox(subscriber))),
        Some(false) => core.ready.let_go(1),
        // Who has taken it back has let it go.
        None => {}
    }
}

/// Works on the strand for a share of the turn. True: there may be more.
fn run_strand(core: &Core, turn: &mut TurnClock) -> bool {
    while !turn.share_is_over() {
        let mut strand = core.strand();
        let Some((subscriber, number)) = strand.order.pop_front() else {
            strand.scheduled = false;
            return false;
        };
        drop(strand);
        deliver_number(&subscriber, core, number);
        turn.is_over();
    }
    true
}

impl Strand {
    /// Appends. True: the caller puts the strand on the ready list.
    pub(in crate::hub) fn append(&mut self, subscriber: &Arc<Subscriber>, number: u64) -> bool {
        self.order.push_back((Arc::clone(subscriber), number));
        !core::mem::replace(&mut self.scheduled, true)
    }
}
