//! Tasks that come from the broker are run by the worker pool.

use super::job::{DurableReport, DurableStatus, Job};
use super::pulled::Desk;
use super::queue::origin_of;
use super::table::Table;
use super::wire::{MOST_FAILURE, Orders, headers_of, id_in, lane_of};
use crate::bridge::sink::{Arrival, End, Sink, Tell};
use crate::bridge::waiters::Waiters;
use crate::bridge::wire::{ORIGIN, RECEIPT};
use crate::error::{Error, Rejected, Result};
use crate::hub::{Headers, Hub};
use crate::pool::message_of;
use crate::queue::Lane;
use crate::task::{Attempt, Fault, Outcome, OverloadPolicy, Status, TaskType};
use crate::time::Retry;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
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
    pub(super) queue: String,
    pub(super) hub: Hub,
    origin: String,
    table: Arc<Table>,
    pub(super) waiters: Mutex<Option<Arc<Waiters>>>,
    cancelled: Mutex<Cancelled>,
}

/// Tasks that are not to begin, and those that have come: by their id.
#[derive(Default)]
struct Cancelled {
    /// Whether it has come since, and was struck.
    ids: HashMap<String, bool>,
    order: VecDeque<String>,
    /// Whether it has begun.
    here: HashMap<String, bool>,
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
        let (queue, hub, table) = (queue.to_owned(), hub.clone(), Arc::clone(table));
        let origin = origin_of(&hub);
        Self { queue, hub, origin, table, waiters: Mutex::default(), cancelled: Mutex::default() }
    }

    /// A result that is stored, for this submitter, if it is of this process: the broker does not send it here.
    pub(super) fn told(&self, reply: &str, report: DurableReport) {
        if reply == self.origin {
            self.table.put(report);
        }
    }

    fn cancelled(&self) -> std::sync::MutexGuard<'_, Cancelled> {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a task not begin, if it has not.
    pub(super) fn cancel(&self, id: &str) -> Known {
        let mut cancelled = self.cancelled();
        let known = match cancelled.here.get(id) {
            Some(true) => return Known::Begun,
            Some(false) => Known::WillNotBegin,
            None if cancelled.ids.get(id) == Some(&true) => return Known::WillNotBegin,
            None => Known::Unknown,
        };
        if cancelled.ids.insert(id.to_owned(), false).is_none() {
            cancelled.order.push_back(id.to_owned());
        }
        if cancelled.order.len() > MOST_CANCELLED
            && let Some(oldest) = cancelled.order.pop_front()
        {
            cancelled.ids.remove(&oldest);
        }
        known
    }

    /// The first look at a task, and the one when it would begin. False: it was cancelled.
    fn may_begin(&self, id: &str, begins: bool) -> bool {
        let mut cancelled = self.cancelled();
        let struck = cancelled.ids.get_mut(id).map(|struck| *struck = true);
        let may = struck.is_none();
        cancelled.here.insert(id.to_owned(), begins && may);
        may
    }

    fn has_begun(&self, id: &str) -> bool {
        self.cancelled().here.get(id) == Some(&true)
    }

    fn left(&self, id: &str) {
        self.cancelled().here.remove(id);
    }

    /// Publishes something that is to be stored, and tells when it is, or that it is not.
    fn publish_then(
        &self,
        key: &str,
        headers: Headers,
        payload: &[u8],
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(waiters) = waiters else { return then(Err(Error::ShutDown)) };
        let (number, pending) = waiters.open();
        let message = self.hub.message(key).headers(headers).payload(payload).no_wait();
        let published = message
            .with_header(RECEIPT, &number.to_string(), |_| ())
            .and_then(|(message, ())| message.publish());
        match published {
            Ok(_) => {
                pending.expect(1);
                pending.then_at(move |end| then(end.map(drop)));
            }
            Err(error) => then(Err(error)),
        }
    }
}

/// Takes the tasks of one name from the stream of one lane.
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

/// One task that has come.
pub(super) struct Taken {
    shop: Arc<Workshop>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: bytes::Bytes,
    headers: Headers,
    pub(super) number: u32,
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
        let orders = Orders::read(&arrival.incoming.headers);
        let id = id_in(&arrival.key).to_owned();
        if lane_of(&id)? != self.lane {
            return Err(Error::invalid("the id of a task", format!("{id:?}"), "one of its lane"));
        }
        // The first delivery of a task with a delay was too early.
        let number = arrival.delivered.saturating_sub(u32::from(orders.is_delayed)).max(1);
        let most = orders.attempts.unwrap_or(u32::MAX).max(1);
        let retry = self.retry.next(number, Duration::ZERO, None, arrival.entry.number).ok();
        let taken = Arc::new(Taken {
            shop: Arc::clone(&self.shop),
            name: self.name.clone(),
            arguments: arrival.payload.clone(),
            headers: arrival.incoming.headers.clone(),
            number,
            until: orders.left.and_then(|left| Instant::now().checked_add(left)),
            reply: orders.reply,
            again: retry.filter(|_| number < most),
            said: Mutex::new(None),
            tell: Mutex::new(Some(tell)),
            id,
        });
        if orders.left == Some(Duration::ZERO) {
            taken.end(
                DurableStatus::TimedOut,
                Err("the deadline was over before it began".into()),
                number - 1,
            );
            return Ok(());
        }
        if !self.shop.may_begin(&taken.id, false) {
            taken.end(
                DurableStatus::Cancelled,
                Err("cancelled before it began".into()),
                number - 1,
            );
            return Ok(());
        }
        if let Some(early) = orders.early {
            taken.tell(End::Away(early));
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

    fn takes_own(&self) -> bool {
        true
    }
}

impl Worker {
    fn submit(&self, run: &Arc<Run>, taken: Arc<Taken>, left: Option<Duration>) -> Result<()> {
        let (run, its) = (Arc::clone(run), Arc::clone(&taken));
        let work = move |attempt: &Attempt<'_>| -> core::result::Result<(), Fault> {
            if !its.shop.may_begin(&its.id, true) {
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
                taken.tell(End::Away(NO_ROOM));
                Err(Error::ShutDown)
            }
            Err(_) => {
                taken.tell(End::Away(NO_ROOM));
                Ok(())
            }
        }
    }
}

impl Taken {
    fn say(&self, result: core::result::Result<Vec<u8>, Fault>) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// A host begins it. False: it was cancelled, or its time is over, and has ended.
    pub(super) fn begin(self: &Arc<Self>) -> bool {
        let attempts = self.number - 1;
        if self.is_late() {
            let failure = "the deadline was over before it began".into();
            Arc::clone(self).end(DurableStatus::TimedOut, Err(failure), attempts);
            return false;
        }
        if !self.shop.may_begin(&self.id, true) {
            let failure = "cancelled before it began".into();
            Arc::clone(self).end(DurableStatus::Cancelled, Err(failure), attempts);
            return false;
        }
        true
    }

    /// Whether its deadline is over.
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether a host that has begun it is to give it up.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_late() || self.shop.hub.check_open().is_err()
    }

    /// A host is done with it.
    pub(super) fn close(self: Arc<Self>, result: core::result::Result<Vec<u8>, Fault>) {
        let number = self.number;
        match result {
            Ok(value) => self.end(DurableStatus::Completed, Ok(value), number),
            Err(fault) => self.failed(fault.message().to_owned(), advice_of(&fault)),
        }
    }

    /// It is to be run again, here or elsewhere.
    pub(super) fn give_back(&self) {
        self.tell(End::Away(NO_ROOM));
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
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (number, has_begun) = (self.number, self.shop.has_begun(&self.id));
        match (status, said) {
            (Status::Completed, Some(Ok(value))) => {
                self.end(DurableStatus::Completed, Ok(value), number);
            }
            // Its function has found that it is not to begin.
            (Status::Completed, _) => {
                self.end(
                    DurableStatus::Cancelled,
                    Err("cancelled before it began".into()),
                    number - 1,
                );
            }
            (Status::TimedOut, _) if self.is_late() => {
                let (failure, attempts) = match has_begun {
                    true => ("the deadline was over before it ended", number),
                    false => ("the deadline was over before it began", number - 1),
                };
                self.end(DurableStatus::TimedOut, Err(failure.into()), attempts);
            }
            (Status::Failed | Status::TimedOut, Some(Err(fault))) => {
                self.failed(fault.message().to_owned(), advice_of(&fault));
            }
            (Status::TimedOut, _) if has_begun => {
                self.failed("it has taken too long".into(), Advice::Again);
            }
            // The pool ends, or had no room: another process, or a later one, has it run.
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
        let key = format!("dead.{}.{}", self.shop.queue, self.name);
        let (shop, arguments) = (Arc::clone(&self.shop), self.arguments.clone());
        let arguments = if has_arguments { &arguments[..] } else { &[] };
        shop.publish_then(&key, headers, arguments, move |stored| match stored {
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
        let Some(reply) = &self.reply else { return self.tell(end) };
        let key = format!("results.{}.{reply}.{}", self.shop.queue, self.id);
        let Ok(headers) = headers_of(&report, MOST_FAILURE) else { return self.tell(end) };
        let (shop, reply) = (Arc::clone(&self.shop), reply.clone());
        let value = bytes::Bytes::from(core::mem::take(&mut report.value));
        let kept = value.clone();
        shop.publish_then(&key, headers, &value, move |stored| match stored {
            Ok(()) => {
                self.tell(end);
                report.value = kept.into();
                self.shop.told(&reply, report);
            }
            Err(error) if is_refusal(&error) && report.status == DurableStatus::Completed => {
                let failure = format!("its result of {} bytes is not stored: {error}", kept.len());
                self.end(DurableStatus::Failed, Err(failure), report.attempts);
            }
            Err(error) if is_refusal(&error) => self.tell(end),
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
