//! How messages come to handlers: services, runs, and the hub's strand.

use crate::Flow;
use crate::contain::Contained;
use crate::hub::channel::reading::NextWork;
use crate::hub::channel::segment::{Following, SEGMENT, Taken};
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
use crate::pool::Timer;
use crate::sync::atomic::Ordering::Release;
use crate::trace::{self, Name};
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// How many things a service takes from the ready list before other work of the pool has its turn.
const TURNS: usize = 64;
/// How many messages a run delivers before others on the list have their turn.
const MESSAGES: usize = 256;
/// How many more a run delivers whose handler was quick: as often as it has not gone on for [`QUICK_TIME`].
const QUICK: usize = 2 * MESSAGES;
/// In nanoseconds.
const QUICK_TIME: u64 = 10_000;
/// So often, if the time stands still.
const QUICK_ROUNDS: u32 = 16;
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
}

impl Service {
    pub(in crate::hub) fn new(core: Weak<Core>, number: usize) -> Self {
        Self { core, number, name: Name::new("hub"), batch: VecDeque::new() }
    }

    pub(in crate::hub) fn serve(&mut self) -> Flow {
        let Some(core) = self.core.upgrade().map(Contained::new) else { return Flow::Done };
        core.ready.begin();
        for _ in 0..TURNS {
            if core.shared.must_stop() {
                core.ready.stop(self.number);
                return Flow::Wait;
            }
            let Some((work, call)) = core.ready.pop(self.number) else { return Flow::Wait };
            core.call(call);
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
            Work::Mailbox(subscriber) => serve(subscriber, core, &mut self.batch),
            Work::Replay(replay) => Arc::clone(&replay).run(core).then_some(Work::Replay(replay)),
            Work::Strand => run_strand(core).then_some(Work::Strand),
            Work::Notices => {
                trace::runs(self.name);
                run_notices(core).then_some(Work::Notices)
            }
            Work::Reply(ended) => {
                trace::runs(self.name);
                ended.call();
                core.shared.end_if_forked();
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

/// How long a run goes on. To be put on the list and taken from it costs as much as some hundred messages to a
/// handler that only counts them.
#[derive(Default)]
struct Turn {
    /// By the clock, which is read only if there is a backlog.
    began: Option<u64>,
    rounds: u32,
}

impl Turn {
    /// It has taken so many at once.
    fn note(&mut self, core: &Core, count: usize) {
        if count >= SEGMENT && self.began.is_none() {
            self.began = Some(core.shared.now());
        }
    }

    /// How many more it may deliver, having delivered [`MESSAGES`].
    fn more(&mut self, core: &Core) -> usize {
        let Some(began) = self.began else { return 0 };
        self.rounds += 1;
        let quick = self.rounds < QUICK_ROUNDS && core.shared.now() < began + QUICK_TIME;
        if quick { QUICK } else { 0 }
    }
}

/// Serves the mailbox for a while. Answers what is to be put on the ready list again.
fn serve(
    subscriber: Arc<Subscriber>,
    core: &Arc<Core>,
    batch: &mut VecDeque<Entry>,
) -> Option<Work> {
    match run(&subscriber, core, batch) {
        Left::Nothing => None,
        Left::More => Some(Work::Mailbox(subscriber)),
    }
}

fn run(subscriber: &Arc<Subscriber>, core: &Arc<Core>, batch: &mut VecDeque<Entry>) -> Left {
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
        true => deliver_shared(subscriber, core, &mut handler, batch),
        false if deliver(subscriber, core, &mut handler, batch) => Left::More,
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
) -> bool {
    let mut left = MESSAGES;
    while left > 0 {
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
        left = left.saturating_sub(batch.len());
        deliver_batch(subscriber, core, handler, batch);
    }
    true
}

/// Delivers some of what is in the mailbox and in the channel's ring.
fn deliver_shared(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    batch: &mut VecDeque<Entry>,
) -> Left {
    let mut turn = Turn::default();
    let mut left = MESSAGES;
    loop {
        if left == 0 {
            left = turn.more(core);
            if left == 0 {
                return Left::More;
            }
        }
        let (mut taken, mut following, lost) =
            match subscriber.channel().next(subscriber, batch, left) {
                NextWork::Nothing => return Left::Nothing,
                NextWork::Ring(taken, following, lost) => (taken, following, lost),
                NextWork::Mailbox => {
                    left = left.saturating_sub(batch.len());
                    deliver_batch(subscriber, core, handler, batch);
                    continue;
                }
            };
        let count = taken.count + following.count;
        turn.note(core, count);
        left = left.saturating_sub(count);
        let all = (&mut taken, &mut following);
        match deliver_in_place(subscriber, core, handler, all, lost, batch, left) {
            Some(rest) => left = rest,
            None => return Left::Nothing,
        }
    }
}

/// Lends the handler messages where they lie, and up to `left` more that are appended to the same segment
/// meanwhile. Answers how many of those are left; none, if no messages are left, either.
fn deliver_in_place(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    (taken, following): (&mut Taken, &mut Following),
    lost: u64,
    batch: &mut VecDeque<Entry>,
    mut left: usize,
) -> Option<usize> {
    let mut settled = Settled::default();
    let mut lost_before = lost;
    loop {
        let (mut lent, mut failed) = (
            Lent::new(
                (&subscriber.progress, subscriber.policy()),
                &core.shared,
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
                    let begun = lent.begun as usize;
                    settled.delivered += (begun - failed) as u64;
                    batch.extend(taken.rest(begun, following));
                    // Behind what was taken, so before it is given back.
                    subscriber.channel().part(&mut subscriber.channel().lock(), subscriber);
                    stop(subscriber, core, entry, after, settled, batch);
                    return Some(left);
                }
            }
            // It may have been made for this failure.
            lent.policy = subscriber.policy();
        }
        let begun = lent.end();
        settled.delivered += (begun - failed) as u64;
        if begun < taken.count {
            batch.extend(taken.rest(begun, following));
            let mut mail = subscriber.mail();
            mail.settle(&settled);
            let back = mail.put_back(&subscriber.rules, batch);
            drop(mail);
            given_back(subscriber, core, back, batch);
            return Some(left);
        }
        if subscriber.turn_over(taken, following, &mut settled) {
            lost_before = 0;
            continue;
        }
        let more = || taken.more() > 0 || core.ready.len() < AWAITING && taken.await_more();
        if left > 0 && !taken.is_at_end() && !more() {
            subscriber.mail().settle(&settled);
            return None;
        }
        let streamed = subscriber.stream(taken, &mut settled, left);
        match streamed {
            Some(lost) => lost_before = lost,
            None => return Some(left),
        }
        left -= taken.count;
    }
}

fn deliver_batch(
    subscriber: &Arc<Subscriber>,
    core: &Arc<Core>,
    handler: &mut Handler,
    batch: &mut VecDeque<Entry>,
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
                    stopped = Some((entry, after));
                    break;
                }
            },
        }
        finished(subscriber, core, &entry.stored);
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

/// Works on the strand for a while. True: there may be more.
fn run_strand(core: &Core) -> bool {
    for _ in 0..MESSAGES {
        let mut strand = core.strand();
        let Some((subscriber, number)) = strand.order.pop_front() else {
            strand.scheduled = false;
            return false;
        };
        drop(strand);
        deliver_number(&subscriber, core, number);
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
