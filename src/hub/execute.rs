//! How messages come to handlers: services, runs, and the hub's strand.

use super::care::{After, Care};
use super::dead::DeadReason;
use super::handler::{Failure, Handler};
use super::mailbox::{Back, Close, Entry, Mail, Offer, Settled};
use super::message::{Message, Stored};
use super::ring::{Following, InPlace, Next, SEGMENT, Taken};
use super::subscribe::Subscriber;
use super::{Core, Strand, Work};
use crate::Flow;
use crate::contain::Contained;
use crate::pool::{Shared, Timer};
use crate::sync::atomic::Ordering::Release;
use core::cell::Cell;
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
/// How deep inline handlers may publish to inline handlers.
pub(super) const MAX_DEPTH: u32 = 16;

thread_local! {
    /// How many handlers of hubs this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is in a handler of a hub.
#[inline]
pub(super) fn is_in_handler() -> bool {
    DEPTH.get() > 0
}

/// Whether an inline handler would be too deep.
pub(super) fn is_too_deep() -> bool {
    DEPTH.get() >= MAX_DEPTH
}

/// In a handler until it is dropped.
struct InHandler;

impl InHandler {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// What one service needs.
pub(super) struct Service {
    core: Weak<Core>,
    number: usize,
    /// What a run has taken. It is kept, so that taking allocates nothing.
    batch: VecDeque<Entry>,
}

impl Service {
    pub(super) fn new(core: Weak<Core>, number: usize) -> Self {
        Self { core, number, batch: VecDeque::new() }
    }

    pub(super) fn serve(&mut self) -> Flow {
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
            Work::Mailbox(subscriber) => subscriber.serve(core, &mut self.batch),
            Work::Replay(replaying) => replaying.run(core).then_some(Work::Replay(replaying)),
            Work::Strand => core.run_strand().then_some(Work::Strand),
            Work::Notices => core.run_notices().then_some(Work::Notices),
            Work::Reply(ended) => {
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

/// What a handler is lent of what its run has taken from the ring: one message after the other. The next is asked
/// for when the handler is done with the one before.
pub(super) struct Lent<'a> {
    messages: InPlace<'a>,
    subscriber: &'a Subscriber,
    care: Option<&'a Care>,
    shared: &'a Shared,
    taken: &'a Taken,
    /// What was lost before the first.
    lost: u64,
    /// How many have begun.
    begun: u32,
}

impl<'a> Lent<'a> {
    fn new(subscriber: &'a Subscriber, core: &'a Core, taken: &'a Taken, lost: u64) -> Self {
        let (messages, care, shared) = (taken.messages(), subscriber.care(), &*core.shared);
        Self { messages, subscriber, care, shared, taken, lost, begun: 0 }
    }

    fn lost_before(&self, index: u32) -> u64 {
        if index == 0 { self.lost } else { 0 }
    }

    /// The one that was lent last, which the handler has failed at.
    fn failed_at(&self) -> Entry {
        let index = self.begun - 1;
        let stored = self.taken.messages().nth(index as usize).expect("it was lent");
        Entry::of_ring(stored, self.lost_before(index))
    }
}

impl<'a> Iterator for Lent<'a> {
    type Item = Message<'a>;

    #[inline(always)] // It is what the loop of a handler's calls does.
    fn next(&mut self) -> Option<Message<'a>> {
        self.shared.end_if_forked();
        if self.subscriber.is_closing() {
            return None;
        }
        let stored = self.messages.next()?;
        let index = self.begun;
        self.begun += 1;
        self.subscriber.start(self.taken.position + u64::from(index));
        // Release: pairs with the Acquire in `SubscriptionStats::of`; what has begun does not wait.
        self.subscriber.begun.store(self.begun, Release);
        if let Some(care) = self.care {
            care.catch_up();
            care.measure(stored.time);
        }
        Some(Message { stored, lost_before: self.lost_before(index), attempt: 1 })
    }
}

/// The handler, for a run that is active beside others. It is dropped before the run leaves.
#[allow(unsafe_code, reason = "as `handler.rs` says")]
fn lend_shared(mail: &Mail<Handler>) -> Option<Handler> {
    // SAFETY: whoever calls has an active run, and lets go of what is lent before `leave`; `end_if_over` alone gives
    // the handler up, when no run is active.
    mail.share(|handler| unsafe { handler.lend_shared() })
}

impl Subscriber {
    /// Serves the mailbox for a while. Answers what is to be put on the ready list again.
    fn serve(self: Arc<Self>, core: &Arc<Core>, batch: &mut VecDeque<Entry>) -> Option<Work> {
        match self.run(core, batch) {
            Left::Nothing => None,
            Left::More => Some(Work::Mailbox(self)),
        }
    }

    fn run(self: &Arc<Self>, core: &Arc<Core>, batch: &mut VecDeque<Entry>) -> Left {
        let shared = self.rules.runs > 1;
        let mut mail = self.mail();
        if !mail.begin() {
            return Left::Nothing;
        }
        let handler = if shared { lend_shared(&mail) } else { mail.lend() };
        drop(mail);
        let Some(mut handler) = handler else { unreachable!("a mailbox that is served has one") };
        let in_handler = InHandler::enter();
        let mut left = match self.rules.shared {
            true => self.deliver_shared(core, &mut handler, batch),
            false if self.deliver(core, &mut handler, batch) => Left::More,
            false => Left::Nothing,
        };
        drop(in_handler);
        let handler = (!shared).then_some(handler);
        let (close, again) = match &left {
            Left::Nothing if self.rules.shared => self.channel().leave_run(core, self, handler),
            Left::Nothing => {
                let mut mail = self.mail();
                let again = !mail.rest(&self.rules);
                (mail.leave(handler), again)
            }
            Left::More => {
                let mut mail = self.mail();
                let waiters = core::mem::take(&mut mail.has_waiters);
                let close = mail.leave(handler);
                drop(mail);
                if waiters {
                    self.notify_room();
                }
                (close, false)
            }
        };
        if matches!(close, Close::Now(_)) {
            self.finish(core, close);
        }
        if again {
            left = Left::More;
        }
        left
    }

    /// Delivers some of what is in the mailbox. False: there was nothing more.
    fn deliver(
        self: &Arc<Self>,
        core: &Arc<Core>,
        handler: &mut Handler,
        batch: &mut VecDeque<Entry>,
    ) -> bool {
        let mut left = MESSAGES;
        while left > 0 {
            let mut mail = self.mail();
            let some = mail.take(&self.rules, batch);
            self.begun.store(0, Release);
            let waiters = core::mem::take(&mut mail.has_waiters);
            drop(mail);
            if waiters {
                self.notify_room();
            }
            if !some {
                return false;
            }
            left = left.saturating_sub(batch.len());
            self.deliver_batch(core, handler, batch);
        }
        true
    }

    /// Delivers some of what is in the mailbox and in the channel's ring.
    fn deliver_shared(
        self: &Arc<Self>,
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
            let (mut taken, mut following, lost) = match self.channel().next(self, batch, left) {
                Next::Nothing => return Left::Nothing,
                Next::Ring(taken, following, lost) => (taken, following, lost),
                Next::Mailbox => {
                    left = left.saturating_sub(batch.len());
                    self.deliver_batch(core, handler, batch);
                    continue;
                }
            };
            let count = taken.count + following.count;
            turn.note(core, count);
            left = left.saturating_sub(count);
            let all = (&mut taken, &mut following);
            match self.deliver_in_place(core, handler, all, lost, batch, left) {
                Some(rest) => left = rest,
                None => return Left::Nothing,
            }
        }
    }

    /// Lends the handler messages where they lie, and up to `left` more that are appended to the same segment
    /// meanwhile. Answers how many of those are left; none, if no messages are left, either.
    fn deliver_in_place(
        self: &Arc<Self>,
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
            let (mut lent, mut failed) = (Lent::new(self, core, taken, lost_before), 0);
            while let Some(failure) = handler.call_all(&mut lent) {
                core.shared.end_if_forked();
                failed += 1;
                let mut entry = lent.failed_at();
                match self.failed(core, &mut entry, &failure) {
                    After::Discard => settled.failed += 1,
                    After::Dead => settled.dead += 1,
                    after => {
                        let begun = lent.begun as usize;
                        settled.delivered += (begun - failed) as u64;
                        batch.extend(taken.rest(begun, following));
                        // Behind what was taken, so before it is given back.
                        self.channel().part(&mut self.channel().lock(), self);
                        self.stop(core, entry, after, settled, batch);
                        return Some(left);
                    }
                }
                // It may have been made for this failure.
                lent.care = self.care();
            }
            let begun = lent.begun as usize;
            settled.delivered += (begun - failed) as u64;
            if begun < taken.count {
                batch.extend(taken.rest(begun, following));
                let mut mail = self.mail();
                mail.settle(&settled);
                let back = mail.put_back(&self.rules, batch);
                drop(mail);
                self.given_back(core, back, batch);
                return Some(left);
            }
            if self.turn_over(taken, following, &mut settled) {
                lost_before = 0;
                continue;
            }
            let more = || taken.more() > 0 || core.ready.len() < AWAITING && taken.await_more();
            if left > 0 && !taken.is_at_end() && !more() {
                self.mail().settle(&settled);
                return None;
            }
            let streamed = self.stream(taken, &mut settled, left);
            match streamed {
                Some(lost) => lost_before = lost,
                None => return Some(left),
            }
            left -= taken.count;
        }
    }

    fn deliver_batch(
        self: &Arc<Self>,
        core: &Arc<Core>,
        handler: &mut Handler,
        batch: &mut VecDeque<Entry>,
    ) {
        let mut settled = Settled::default();
        let mut stopped = None;
        for number in 1.. {
            if self.is_closing() {
                break;
            }
            let Some(mut entry) = batch.pop_front() else { break };
            // Release: pairs with the Acquire in `offer`; what has begun does not wait.
            self.begun.store(number, Release);
            match self.call(core, handler, &entry) {
                None => settled.delivered += 1,
                Some(failure) => match self.failed(core, &mut entry, &failure) {
                    After::Discard => settled.failed += 1,
                    After::Dead => settled.dead += 1,
                    after => {
                        stopped = Some((entry, after));
                        break;
                    }
                },
            }
            self.finished(core, &entry.stored);
        }
        if let Some((entry, after)) = stopped {
            return self.stop(core, entry, after, settled, batch);
        }
        let mut mail = self.mail();
        mail.settle(&settled);
        let back = mail.put_back(&self.rules, batch);
        drop(mail);
        self.given_back(core, back, batch);
    }

    /// Ends a batch before its end, because a message is to be tried again, or all are suspended.
    #[cold]
    fn stop(
        self: &Arc<Self>,
        core: &Arc<Core>,
        entry: Entry,
        after: After,
        mut settled: Settled,
        batch: &mut VecDeque<Entry>,
    ) {
        let number = entry.number;
        if after == After::Suspend {
            self.finished(core, &entry.stored);
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
        let mut mail = self.mail();
        let held = match after {
            After::Retry(_) => mail.hold(entry, is_later),
            _ => {
                settled.dead += 1;
                Ok(())
            }
        };
        mail.settle(&settled);
        let back = mail.put_back(&self.rules, batch);
        drop(mail);
        self.given_back(core, back, batch);
        match (after, held) {
            (After::Retry(_), Err((back, entry))) => {
                core.ready.let_go(usize::from(is_later));
                batch.push_back(entry);
                self.given_back(core, back, batch);
            }
            (After::Retry(delay), Ok(())) if is_later => retry_later(core, self, number, delay),
            (After::Suspend, _) => self.suspend_all(core),
            _ => {}
        }
    }

    /// What the mailbox has not taken back is lost, or dead.
    fn given_back(self: &Arc<Self>, core: &Core, back: Back, batch: &mut VecDeque<Entry>) {
        let dead = if back == Back::Dead { batch.len() as u64 } else { 0 };
        for entry in batch.drain(..) {
            if back == Back::Dead {
                let attempts = entry.tried.as_ref().map_or(0, |tried| tried.attempts);
                self.bury(core, &entry.stored, DeadReason::Suspended, None, attempts);
            }
            self.finished(core, &entry.stored);
        }
        if dead > 0 {
            self.mail().settle(&Settled { dead, ..Settled::default() });
        }
    }

    /// Delivers a message on this thread. False: the subscription has ended.
    pub(super) fn deliver_inline(self: &Arc<Self>, core: &Core, stored: &Stored) -> Inline {
        if is_too_deep() {
            return match self.mail().refuse() {
                Offer::Closed => Inline::Closed,
                Offer::Dead => Inline::Dead,
                _ => Inline::TooDeep,
            };
        }
        let mut mail = self.mail();
        let lost = match mail.enter_inline() {
            Ok(lost) => lost,
            Err(Offer::Dead) => return Inline::Dead,
            Err(_) => return Inline::Closed,
        };
        let handler = lend_shared(&mail);
        drop(mail);
        let Some(mut handler) = handler else { unreachable!("an inline mailbox has a shared one") };
        let failure = {
            let _in_handler = InHandler::enter();
            self.catch_up(stored);
            let message = Message { stored, lost_before: lost, attempt: 1 };
            let failure = handler.call(&message);
            core.shared.end_if_forked();
            failure
        };
        drop(handler);
        let settled = match failure {
            None => Settled { delivered: 1, ..Settled::default() },
            Some(failure) => {
                let mut entry = Entry { stored: stored.clone(), lost, number: 0, tried: None };
                self.failed_alone(core, &mut entry, &failure)
            }
        };
        let mut mail = self.mail();
        mail.settle(&settled);
        let close = mail.leave(None);
        drop(mail);
        self.finish(core, close);
        Inline::Delivered
    }

    /// Delivers the message with this number, if it still waits.
    fn deliver_number(self: &Arc<Self>, core: &Core, number: u64) {
        let mut mail = self.mail();
        let Some(mut entry) = mail.take_number(number) else { return };
        self.begun.store(1, Release);
        let handler = mail.begin_unscheduled().then(|| mail.lend()).flatten();
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            self.notify_room();
        }
        let Some(mut handler) = handler else { unreachable!("it has one unless it has ended") };
        let _in_handler = InHandler::enter();
        let settled = match self.call(core, &mut handler, &entry) {
            None => Settled { delivered: 1, ..Settled::default() },
            Some(failure) => self.failed_alone(core, &mut entry, &failure),
        };
        drop(entry);
        let mut mail = self.mail();
        mail.settle(&settled);
        let close = mail.leave(Some(handler));
        drop(mail);
        self.finish(core, close);
    }
}

impl Subscriber {
    /// Restarts the handler first, if that is due, and measures what the message has waited.
    #[inline]
    fn catch_up(&self, stored: &Stored) {
        if let Some(care) = self.care() {
            care.catch_up();
            care.measure(stored.time);
        }
    }

    /// Calls the handler with a message that waited. Why it could not deal with it, if so.
    #[inline]
    fn call(&self, core: &Core, handler: &mut Handler, entry: &Entry) -> Option<Box<Failure>> {
        self.catch_up(&entry.stored);
        let attempt = entry.tried.as_ref().map_or(1, |tried| tried.attempts + 1);
        let message = Message { stored: &entry.stored, lost_before: entry.lost, attempt };
        let failure = handler.call(&message);
        core.shared.end_if_forked();
        failure
    }

    /// Deals with the failure of a handler whose messages are not tried again.
    #[cold]
    fn failed_alone(
        self: &Arc<Self>,
        core: &Core,
        entry: &mut Entry,
        failure: &Failure,
    ) -> Settled {
        let after = self.failed(core, entry, failure);
        if after == After::Suspend {
            self.suspend_all(core);
        }
        let failed = u64::from(after == After::Discard);
        Settled { delivered: 0, failed, dead: 1 - failed }
    }
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

/// What became of an inline delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inline {
    Delivered,
    Closed,
    /// The subscription is suspended: the caller makes it a dead letter.
    Dead,
    /// Handlers have published to handlers to such a depth that it was refused.
    TooDeep,
}

/// Calls the handler of a replay. Why it could not deal with the message, if so.
pub(super) fn call_in_handler(
    core: &Core,
    handler: &mut Handler,
    message: &Message<'_>,
) -> Option<Box<Failure>> {
    let _in_handler = InHandler::enter();
    let failure = handler.call(message);
    core.shared.end_if_forked();
    failure
}

impl Core {
    /// Works on the strand for a while. True: there may be more.
    fn run_strand(&self) -> bool {
        for _ in 0..MESSAGES {
            let mut strand = self.strand();
            let Some((subscriber, number)) = strand.order.pop_front() else {
                strand.scheduled = false;
                return false;
            };
            drop(strand);
            subscriber.deliver_number(self, number);
        }
        true
    }
}

impl Strand {
    /// Appends. True: the caller puts the strand on the ready list.
    pub(super) fn append(&mut self, subscriber: &Arc<Subscriber>, number: u64) -> bool {
        self.order.push_back((Arc::clone(subscriber), number));
        !core::mem::replace(&mut self.scheduled, true)
    }
}
