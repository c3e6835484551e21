//! Tasks that come from the broker are run by the worker pool.

use super::attempts::Delivery;
use super::job::{DurableReport, DurableStatus, Job};
use super::line::Line;
use super::pulled::Desk;
use super::queue::origin_of;
use super::table::Table;
use super::wire::{MOST_FAILURE, Orders, headers_of, id_in, lane_of};
use crate::bridge::sink::{Arrival, End, Sink, Tell};
use crate::bridge::wire::ORIGIN;
use crate::error::{Error, Rejected, Result};
use crate::hub::{Headers, Hub};
use crate::pool::message_of;
use crate::queue::Lane;
use crate::task::{Attempt, Fault, Outcome, OverloadPolicy, Status, TaskType};
use crate::time::Retry;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// How long a task stays away that the worker pool has no room for.
const NO_ROOM: Duration = Duration::from_millis(200);
/// So many bytes of a failure, and whether the arguments, a dead letter has: the next one if the stream does not take the
/// one before, which is too large, say.
const LETTERS: [(usize, bool); 3] = [(MOST_FAILURE, true), (64, true), (MOST_FAILURE, false)];
/// How many cancelled tasks are kept in mind.
const MOST_CANCELLED: usize = 10_000;

/// What runs the tasks of one name.
pub(super) type Run = dyn Fn(&Job<'_>) -> core::result::Result<Vec<u8>, Fault> + Send + Sync;

/// What a handler returned, as bytes.
pub(super) fn run_of<R>(handler: impl Fn(&Job<'_>) -> R + Send + Sync + 'static) -> Arc<Run>
where
    R: Outcome,
    R::Value: Into<Vec<u8>>,
{
    Arc::new(move |job| handler(job).into_result().map(Into::into))
}

/// What all workers of a queue in this process share.
pub(super) struct Workshop {
    pub(super) line: Line,
    origin: String,
    table: Arc<Table>,
    held: Mutex<Held>,
}

/// Tasks that have come, and those that are not to begin: by their id.
#[derive(Default)]
struct Held {
    here: HashMap<String, Here>,
    /// Of those that were cancelled, whether it has come since, and was struck.
    cancelled: HashMap<String, bool>,
    order: VecDeque<String>,
    /// None begins any more.
    is_closing: bool,
}

struct Here {
    taken: Weak<Taken>,
    has_begun: bool,
}

/// What a worker knows of a task that is to be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// It is here, and will not begin.
    WillNotBegin,
    /// It is here, and has begun.
    Begun,
    /// It is not here, and will not begin if it comes.
    Unknown,
}

impl Workshop {
    pub(super) fn new(queue: &str, hub: &Hub, table: &Arc<Table>) -> Self {
        let (line, table) = (Line::new(queue, hub), Arc::clone(table));
        Self { line, origin: origin_of(hub), table, held: Mutex::default() }
    }

    /// A result that is stored, for this submitter, if it is of this process: the broker does not send it here.
    pub(super) fn told(&self, reply: &str, report: DurableReport) {
        if reply == self.origin {
            self.table.put(report);
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what has come and not begun, and all that comes from now on.
    pub(super) fn close(&self) {
        let mut held = self.held();
        held.is_closing = true;
        let waits = |here: &Here| !here.has_begun;
        let waiting: Vec<_> = held.here.extract_if(|_, here| waits(here)).collect();
        drop(held);
        waiting
            .iter()
            .filter_map(|(_, here)| here.taken.upgrade())
            .for_each(|taken| taken.give_back());
    }

    /// Has a task not begin, if it has not.
    pub(super) fn cancel(&self, id: &str) -> Known {
        let mut held = self.held();
        let known = match held.here.get(id).map(|here| here.has_begun) {
            Some(true) => return Known::Begun,
            Some(false) => Known::WillNotBegin,
            None if held.cancelled.get(id) == Some(&true) => return Known::WillNotBegin,
            None => Known::Unknown,
        };
        if held.cancelled.insert(id.to_owned(), false).is_none() {
            held.order.push_back(id.to_owned());
        }
        if held.order.len() > MOST_CANCELLED
            && let Some(oldest) = held.order.pop_front()
        {
            held.cancelled.remove(&oldest);
        }
        known
    }

    /// The first look at a task.
    fn comes(&self, taken: &Arc<Taken>) -> May {
        let mut held = self.held();
        if held.is_closing {
            return May::Back;
        }
        let here = Here { taken: Arc::downgrade(taken), has_begun: false };
        held.here.insert(taken.id.clone(), here);
        held.strike(&taken.id)
    }

    /// The look when it would begin.
    fn begins(&self, id: &str) -> May {
        let mut held = self.held();
        // Otherwise it was given back.
        if !held.here.contains_key(id) {
            return May::Back;
        }
        let may = held.strike(id);
        if let Some(here) = held.here.get_mut(id) {
            here.has_begun = may == May::Begin;
        }
        may
    }

    fn is_cancelled(&self, id: &str) -> bool {
        self.held().cancelled.contains_key(id)
    }

    fn has_begun(&self, id: &str) -> bool {
        self.held().here.get(id).is_some_and(|here| here.has_begun)
    }

    fn left(&self, id: &str) {
        self.held().here.remove(id);
    }
}

/// Whether a task may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    Begin,
    /// It was cancelled.
    Never,
    /// It is for another process.
    Back,
}

impl Held {
    fn strike(&mut self, id: &str) -> May {
        match self.cancelled.get_mut(id) {
            Some(struck) => {
                *struck = true;
                May::Never
            }
            None => May::Begin,
        }
    }
}

/// Takes the tasks of one name from the stream of one lane.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) shop: Arc<Workshop>,
    pub(super) name: String,
    pub(super) lane: Lane,
    pub(super) retry: Retry,
    pub(super) task_type: TaskType,
    pub(super) how: How,
}

/// Who runs tasks of a name.
#[derive(Clone)]
pub(super) enum How {
    Call(Arc<Run>),
    Pull(Arc<Desk>),
}

/// A task as it has come from the stream.
struct Visit {
    id: String,
    arguments: bytes::Bytes,
    headers: Headers,
    delivered: u32,
    /// That of the stream.
    number: u64,
}

/// One task that has come.
pub(super) struct Taken {
    shop: Arc<Workshop>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: bytes::Bytes,
    headers: Headers,
    pub(super) number: u32,
    /// Whether the broker is to be told that this attempt begins: see `attempts.rs`.
    begins_with_mark: bool,
    /// Whether it counts as begun though nobody has called its handler.
    counts: AtomicBool,
    has_mark: AtomicBool,
    /// What becomes of it is decided: the first who says so tells.
    is_over: AtomicBool,
    /// When its deadline is over.
    pub(super) until: Option<Instant>,
    reply: Option<String>,
    /// After this attempt, if it fails.
    again: Option<Duration>,
    /// What its handler came to.
    said: Mutex<Option<core::result::Result<Vec<u8>, Fault>>>,
    tell: Mutex<Option<Tell>>,
}

impl Sink for Worker {
    fn offer(&self, arrival: &Arrival, tell: Tell) -> Result<()> {
        let id = id_in(&arrival.key).to_owned();
        if lane_of(&id)? != self.lane {
            return Err(Error::invalid("the id of a task", format!("{id:?}"), "one of its lane"));
        }
        let visit = Visit {
            arguments: arrival.payload.clone(),
            headers: arrival.incoming.headers.clone(),
            delivered: arrival.delivered,
            number: arrival.entry.number,
            id,
        };
        if visit.delivered == 1 {
            return self.take(visit, None, tell);
        }
        let worker = self.clone();
        self.shop.line.marked(&visit.id.clone(), move |mark| match mark {
            Ok(mark) => {
                // It was given back then.
                let _ended = worker.take(visit, mark, tell);
            }
            Err(_) => tell(End::Away(NO_ROOM)),
        });
        Ok(())
    }

    fn takes_own(&self) -> bool {
        true
    }
}

impl Worker {
    fn take(&self, visit: Visit, mark: Option<u32>, tell: Tell) -> Result<()> {
        let orders = Orders::read(&visit.headers);
        let most = orders.attempts.unwrap_or(u32::MAX).clamp(1, self.retry.attempts());
        let (number, is_delayed) = (visit.delivered, orders.is_delayed);
        let delivery = Delivery { number, is_delayed, most };
        let begun = delivery.begun(mark);
        let number = begun.saturating_add(1);
        let retry = self.retry.next(number, Duration::ZERO, None, visit.number).ok();
        let taken = Arc::new(Taken {
            shop: Arc::clone(&self.shop),
            id: visit.id,
            name: self.name.clone(),
            arguments: visit.arguments,
            headers: visit.headers,
            number,
            begins_with_mark: delivery.begins_with_mark(),
            counts: AtomicBool::new(!delivery.begins_with_mark()),
            has_mark: AtomicBool::new(mark.is_some()),
            is_over: AtomicBool::new(false),
            until: orders.left.and_then(|left| Instant::now().checked_add(left)),
            reply: orders.reply,
            again: retry.filter(|_| number < most),
            said: Mutex::new(None),
            tell: Mutex::new(Some(tell)),
        });
        if begun >= most {
            taken.bury_unless_ended(begun);
            return Ok(());
        }
        match self.shop.comes(&taken) {
            May::Back => {
                taken.give_back();
                return Ok(());
            }
            _ if taken.is_late() => {
                taken.never_begins(DurableStatus::TimedOut);
                return Ok(());
            }
            May::Never => {
                taken.never_begins(DurableStatus::Cancelled);
                return Ok(());
            }
            May::Begin => {}
        }
        if let Some(early) = orders.early {
            taken.away(early);
            return Ok(());
        }
        match &self.how {
            How::Call(run) => self.submit(run, taken, orders.left),
            How::Pull(desk) => match desk.put(self.lane, Arc::clone(&taken)) {
                true => Ok(()),
                false => {
                    taken.give_back();
                    Err(Error::ShutDown)
                }
            },
        }
    }

    fn submit(&self, run: &Arc<Run>, taken: Arc<Taken>, left: Option<Duration>) -> Result<()> {
        let (run, its) = (Arc::clone(run), Arc::clone(&taken));
        let work = move |attempt: &Attempt<'_>| -> core::result::Result<(), Fault> {
            if !its.begin() {
                return Ok(());
            }
            let job = Job {
                id: &its.id,
                name: &its.name,
                arguments: &its.arguments,
                number: its.number,
                attempt,
            };
            let result = catch_unwind(AssertUnwindSafe(|| run(&job)));
            let result = result.unwrap_or_else(|panic| {
                let failure = format!("panicked: {}", message_of(&*panic));
                its.say(Err(Fault::new(failure)));
                resume_unwind(panic)
            });
            let failed = result.as_ref().err().map(|fault| Fault::new(fault.message()));
            its.say(result);
            failed.map_or(Ok(()), Err)
        };
        let builder = self.task_type.task(work).lane(self.lane);
        // It neither waits nor runs on the bridge's thread, and the broker counts the attempts.
        let builder = builder.full(OverloadPolicy::Reject).retry(Retry::none());
        let builder = match left {
            Some(left) => builder.deadline(left.max(Duration::from_millis(1))),
            None => builder,
        };
        match builder.submit() {
            Ok(handle) => {
                handle.on_end(move |status| taken.ended(status));
                Ok(())
            }
            Err(Rejected::ShutDown(_) | Rejected::Forked(_)) => {
                taken.give_back();
                Err(Error::ShutDown)
            }
            Err(_) => {
                taken.give_back();
                Ok(())
            }
        }
    }
}

impl Taken {
    fn say(&self, result: core::result::Result<Vec<u8>, Fault>) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// It begins now, unless that is false: then it has ended, or was given back.
    pub(super) fn begin(self: &Arc<Self>) -> bool {
        let may = match self.is_late() {
            true => None,
            false => Some(self.shop.begins(&self.id)),
        };
        if may == Some(May::Begin) && self.is_marked() {
            return true;
        }
        match may {
            None => self.never_begins(DurableStatus::TimedOut),
            Some(May::Never) => self.never_begins(DurableStatus::Cancelled),
            Some(May::Begin | May::Back) => self.give_back(),
        }
        false
    }

    /// Whether the broker knows of this attempt what it must.
    fn is_marked(&self) -> bool {
        if self.begins_with_mark {
            self.counts.store(true, Relaxed);
            self.has_mark.store(true, Relaxed);
            return self.shop.line.mark_and_wait(&self.id, self.number);
        }
        true
    }

    /// Whether it is to be decided here what becomes of it.
    fn decides(&self) -> bool {
        !self.is_over.swap(true, Relaxed)
    }

    fn never_begins(self: &Arc<Self>, status: DurableStatus) {
        if !self.decides() {
            return;
        }
        let failure = match status {
            DurableStatus::Cancelled => "cancelled before it began",
            _ => "the deadline was over before it began",
        };
        Arc::clone(self).end(status, Err(failure.into()), self.number - 1);
    }

    /// So many attempts have begun, and no more are allowed: the process of the last one has ended in it, or has not told the
    /// broker how it ended.
    fn bury_unless_ended(self: Arc<Self>, begun: u32) {
        let (shop, id) = (Arc::clone(&self.shop), self.id.clone());
        shop.line.has_result(&id, move |has_result| match has_result {
            Ok(true) => self.finish(End::Done),
            Ok(false) => {
                let failure = format!("its process ended in attempt {begun}");
                self.end(DurableStatus::Failed, Err(failure), begun);
            }
            Err(_) => self.tell(End::Away(NO_ROOM)),
        });
    }

    /// Whether its deadline is over.
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether a host that has begun it is to give it up.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_late() || self.shop.line.hub.check_open().is_err()
    }

    /// A host is done with it.
    pub(super) fn close(self: Arc<Self>, result: core::result::Result<Vec<u8>, Fault>) {
        if !self.decides() {
            return;
        }
        let number = self.number;
        match result {
            Ok(value) => self.end(DurableStatus::Completed, Ok(value), number),
            Err(fault) => self.failed(fault.message().to_owned(), advice_of(&fault)),
        }
    }

    /// It is to be run again, here or elsewhere.
    pub(super) fn give_back(self: &Arc<Self>) {
        self.away(NO_ROOM);
    }

    /// The same, after this time. It has not begun.
    fn away(self: &Arc<Self>, time: Duration) {
        if self.shop.is_cancelled(&self.id) {
            // Nobody else knows.
            return self.never_begins(DurableStatus::Cancelled);
        }
        if !self.decides() {
            return;
        }
        self.shop.left(&self.id);
        let tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(tell) = tell else { return };
        match self.counts.load(Relaxed) {
            true => self.shop.line.mark(&self.id, self.number - 1, move |_| tell(End::Away(time))),
            false => tell(End::Away(time)),
        }
    }

    /// It has ended for good, and comes no more.
    fn finish(&self, end: End) {
        self.tell(end);
        if self.has_mark.load(Relaxed) {
            self.shop.line.unmark(&self.id);
        }
    }

    /// Tells the broker, once.
    fn tell(&self, end: End) {
        self.shop.left(&self.id);
        let tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = tell {
            tell(end);
        }
    }

    /// The worker pool is done with it.
    fn ended(self: Arc<Self>, status: Status) {
        let has_begun = self.shop.has_begun(&self.id);
        let is_late = status == Status::TimedOut && self.is_late();
        if !has_begun && !is_late {
            // The pool ends, or had no room: another process, or a later one, has it run.
            return self.give_back();
        }
        if !self.decides() {
            return;
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take();
        let number = self.number;
        match (status, said) {
            (Status::Completed, Some(Ok(value))) => {
                self.end(DurableStatus::Completed, Ok(value), number);
            }
            _ if is_late => {
                let (failure, attempts) = match has_begun {
                    true => ("the deadline was over before it ended", number),
                    false => ("the deadline was over before it began", number - 1),
                };
                self.end(DurableStatus::TimedOut, Err(failure.into()), attempts);
            }
            (Status::Failed | Status::TimedOut, Some(Err(fault))) => {
                self.failed(fault.message().to_owned(), advice_of(&fault));
            }
            (Status::TimedOut, _) => {
                self.failed("it has taken too long".into(), Advice::Again);
            }
            // The pool ends.
            _ => self.tell(End::Away(NO_ROOM)),
        }
    }

    fn failed(self: Arc<Self>, failure: String, advice: Advice) {
        let again = match (advice, self.again) {
            (Advice::Never, _) | (_, None) => None,
            (Advice::After(delay), Some(_)) => Some(delay),
            (Advice::Again, Some(delay)) => Some(delay),
        };
        match again {
            Some(delay) => self.tell(End::Again(delay)),
            None => {
                let number = self.number;
                self.end(DurableStatus::Failed, Err(failure), number);
            }
        }
    }

    /// It has ended for good: its dead letter and its result are stored, then the broker is told.
    fn end(
        self: Arc<Self>,
        status: DurableStatus,
        result: core::result::Result<Vec<u8>, String>,
        attempts: u32,
    ) {
        let (value, failure) = match result {
            Ok(value) => (value, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let report = DurableReport { id: self.id.clone(), status, value, failure, attempts };
        match status {
            DurableStatus::Failed => self.bury(report, 0),
            _ => self.reply(report),
        }
    }

    /// Stores its dead letter: this one of [`LETTERS`], or the next.
    fn bury(self: Arc<Self>, report: DurableReport, letter: usize) {
        let Some(&(most, has_arguments)) = LETTERS.get(letter) else { return self.reply(report) };
        let headers = headers_of(&report, most).and_then(|own| {
            let its = self.headers.iter().filter(|_| has_arguments);
            let all = own.iter().chain(its);
            let is_kept = |name: &str| !name.starts_with("Nats-") && name != ORIGIN;
            Headers::new(
                all.filter(|(name, _)| is_kept(name))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect::<Vec<_>>(),
            )
        });
        let Ok(headers) = headers else { return self.bury(report, letter + 1) };
        let key = format!("dead.{}.{}", self.shop.line.queue, self.name);
        let (shop, arguments) = (Arc::clone(&self.shop), self.arguments.clone());
        let arguments = if has_arguments { &arguments[..] } else { &[] };
        shop.line.publish_then(&key, headers, arguments, move |stored| match stored {
            Ok(()) => self.reply(report),
            Err(error) if is_refusal(&error) => self.bury(report, letter + 1),
            Err(_) => self.tell(End::Away(NO_ROOM)),
        });
    }

    fn reply(self: Arc<Self>, mut report: DurableReport) {
        let end = match report.status {
            DurableStatus::Completed => End::Done,
            _ => End::Never,
        };
        let Some(reply) = &self.reply else { return self.finish(end) };
        let key = format!("results.{}.{reply}.{}", self.shop.line.queue, self.id);
        let Ok(headers) = headers_of(&report, MOST_FAILURE) else { return self.finish(end) };
        let (shop, reply) = (Arc::clone(&self.shop), reply.clone());
        let value = bytes::Bytes::from(core::mem::take(&mut report.value));
        let kept = value.clone();
        shop.line.publish_then(&key, headers, &value, move |stored| match stored {
            Ok(()) => {
                self.finish(end);
                report.value = kept.into();
                self.shop.told(&reply, report);
            }
            Err(error) if is_refusal(&error) && report.status == DurableStatus::Completed => {
                let failure = format!("its result of {} bytes is not stored: {error}", kept.len());
                self.end(DurableStatus::Failed, Err(failure), report.attempts);
            }
            Err(error) if is_refusal(&error) => self.finish(end),
            Err(_) => self.tell(End::Away(NO_ROOM)),
        });
    }
}

/// Whether another attempt to publish it would fail as well.
fn is_refusal(error: &Error) -> bool {
    !matches!(error, Error::MailboxFull { .. } | Error::TimedOut | Error::ShutDown | Error::Forked)
}

/// What a failure means for the next attempt.
#[derive(Clone, Copy)]
enum Advice {
    Again,
    After(Duration),
    Never,
}

fn advice_of(fault: &Fault) -> Advice {
    match (fault.is_permanent(), fault.delay()) {
        (true, _) => Advice::Never,
        (false, Some(delay)) => Advice::After(delay),
        (false, None) => Advice::Again,
    }
}
