//! A queue of durable tasks: what is submitted, asked, cancelled.

use super::job::{DurableReport, DurableStatus};
use super::pulled::{Desk, OpenJob};
use super::table::Table;
use super::wire::{
    MOST_FAILURE, Options, check_task, headers_of, id_in, is_token, lane_name, lane_of, new_id,
    report_of, stream_name,
};
use super::work::{Known, Workshop};
use crate::bridge::handle::AT_DROP;
use crate::bridge::question::{Found, What, Which};
use crate::bridge::waiters::{PendingStore, Place};
use crate::bridge::wire::Origin;
use crate::bridge::{Bridge, BridgeStats};
use crate::error::{Error, Result};
use crate::hub::{Headers, Hub};
use crate::queue::Lane;
use core::fmt;
use core::time::Duration;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// How long a submission waits to be stored, unless set.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a worker may take to say that it has a task.
const CONTROL_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the broker may take to say what a stream has.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take at the least to say what the stream of results has.
const LEAST_LOOK: Duration = Duration::from_millis(500);
/// How often who waits for a result asks the stream for it, should it have come while the connection was lost.
const LOOK: Duration = Duration::from_secs(2);

/// A queue of tasks that outlive the process, kept by a broker; see
/// [`WorkerPool::durable`](crate::task::WorkerPool::durable). Clones are the same queue: the last one that is dropped ends
/// it, as [`close`](Self::close) does.
#[derive(Clone)]
pub struct DurableQueue {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) name: String,
    pub(super) hub: Hub,
    pub(super) bridge: Bridge,
    pub(super) shop: Arc<Workshop>,
    pub(super) table: Arc<Table>,
    pub(super) desk: Arc<Desk>,
    pub(super) origin: String,
    /// Ends the thread of schedules.
    pub(super) end: Arc<(Mutex<bool>, Condvar)>,
}

impl Inner {
    pub(super) fn stream(&self, what: &str) -> String {
        stream_name(&self.name, what)
    }

    /// As [`DurableQueue::close`].
    fn close(&self, timeout: Duration) -> u64 {
        if self.hub.shared().is_forked() {
            // Its locks may be the parent's.
            return 0;
        }
        *self.end.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.1.notify_all();
        self.desk.end();
        self.shop.close();
        // A request to cancel that waits still is nothing that was to be stored.
        let left = self.bridge.close_stores(timeout);
        self.table.end();
        left
    }
}

/// The token of keys that names the submitter: that of its hub.
pub(super) fn origin_of(hub: &Hub) -> String {
    Origin::of(hub.number()).as_str().to_owned()
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _left = self.close(AT_DROP);
    }
}

impl DurableQueue {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Submits a task with default settings: it is accepted when this returns, which means that the broker has stored it.
    /// See [`task`](Self::task).
    ///
    /// # Errors
    /// As [`Submission::submit`].
    pub fn submit(&self, name: &str, arguments: impl Into<Vec<u8>>) -> Result<DurableTask> {
        self.task(name).arguments(arguments).submit()
    }

    /// A task of this name, to be submitted. Whichever process has a handler for the name runs it; if none has, it waits.
    pub fn task(&self, name: &str) -> Submission<'_> {
        let options = Options::default();
        let (name, arguments) = (name.to_owned(), Vec::new());
        Submission { queue: self, name, arguments, options, timeout: SUBMIT_TIMEOUT }
    }

    /// The task of this id, as [`DurableTask::id`] has given it, maybe to another process. It need not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no id.
    pub fn find(&self, id: &str) -> Result<DurableTask> {
        lane_of(id)?;
        Ok(DurableTask { queue: self.clone(), id: id.to_owned(), is_duplicate: false })
    }

    /// Takes up to `most` tasks of the names that a host runs itself ([`DurableBuilder::task_pulled`]), those of the most
    /// urgent lane first; waits for the first of them for up to `timeout`. None have come if it answers none. Any number of
    /// threads, but not of the pool, which would stand still.
    ///
    /// [`DurableBuilder::task_pulled`]: super::DurableBuilder::task_pulled
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the queue has ended.
    pub fn take(&self, most: usize, timeout: Duration) -> Result<Vec<OpenJob>> {
        self.inner.desk.take(most, timeout, true)
    }

    /// As [`take`](Self::take), for a host whose tasks wait before they are run: [`OpenJob::begin`] begins each. Until then it
    /// can be cancelled, [`close`](Self::close) gives it back, and if the process ends it has had no attempt.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the queue has ended.
    pub fn take_waiting(&self, most: usize, timeout: Duration) -> Result<Vec<OpenJob>> {
        self.inner.desk.take(most, timeout, false)
    }

    /// Has no attempt of a task begin. True: none runs, and none will begin; its result is CANCELLED. False: an attempt runs,
    /// or it has ended, or there is none of this id. An attempt that runs goes on; if it fails, others need not follow.
    ///
    /// Workers are asked first, then the task is deleted at the broker, so it takes up to a second. A worker that has the
    /// task, has not begun it, and cannot be reached while this is called may run it all the same.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no id. [`Error::TimedOut`], or [`Error::Broker`]: neither a worker nor the broker has answered, so that it
    /// may run. [`Error::ShutDown`]; [`Error::WouldDeadlock`] in a function that the queue calls.
    pub fn cancel(&self, id: &str) -> Result<bool> {
        let lane = lane_of(id)?;
        let inner = &self.inner;
        if let Some(is_cancelled) = self.ask_workers(id) {
            return Ok(is_cancelled);
        }
        let (stream, lane) = (inner.stream(lane_name(lane)), lane_name(lane));
        let which = Which::Last(format!("paceline.tasks.{}.{lane}.*.{id}", inner.name));
        let task = inner.bridge.ask(&stream, What::Delete(which), ASK_TIMEOUT)?;
        match &task {
            Some(task) => self.tell_cancelled(id, task),
            // It may have come to a worker meanwhile, which has struck it.
            None => return Ok(self.ask_workers(id) == Some(true)),
        }
        Ok(true)
    }

    /// Has no worker begin it. None: none has it.
    fn ask_workers(&self, id: &str) -> Option<bool> {
        let inner = &self.inner;
        match inner.shop.cancel(id) {
            Known::WillNotBegin => return Some(true),
            Known::Begun => return Some(false),
            Known::Unknown => {}
        }
        let asked = inner.hub.request(format!("control.{}", inner.name), id, CONTROL_TIMEOUT);
        match asked.ok()?.payload() as &[u8] {
            b"held" => Some(true),
            b"begun" => Some(false),
            _ => None,
        }
    }

    /// Stores the result of a task that no worker has.
    fn tell_cancelled(&self, id: &str, task: &Found) {
        let reply = task.headers.get("Paceline-Reply").map(|value| value.as_str().to_owned());
        let Some(reply) = reply.filter(|text| is_token(text)) else { return };
        let report = DurableReport {
            id: id.to_owned(),
            status: DurableStatus::Cancelled,
            value: Vec::new(),
            failure: Some("cancelled before it began".into()),
            attempts: 0,
        };
        if let Ok(headers) = headers_of(&report, MOST_FAILURE) {
            let key = format!("results.{}.{reply}.{id}", self.inner.name);
            // Not stored, it is cancelled all the same.
            let _told = self.inner.hub.message(key).headers(headers).no_wait().publish();
            self.inner.shop.told(&reply, report);
        }
    }

    /// Up to `most` tasks that have failed for good, the oldest first, from this number on.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`], if the broker does not answer; [`Error::ShutDown`]; [`Error::WouldDeadlock`] in a function that the
    /// queue calls.
    pub fn dead(&self, from: u64, most: usize) -> Result<Vec<DeadTask>> {
        let stream = self.inner.stream("dead");
        let subject = format!("paceline.dead.{}.>", self.inner.name);
        let mut dead = Vec::new();
        let mut next = from.max(1);
        while dead.len() < most {
            let which = What::Get(Which::From(subject.clone(), next));
            let Some(found) = self.inner.bridge.ask(&stream, which, ASK_TIMEOUT)? else { break };
            next = found.sequence + 1;
            let text = |name: &str| found.headers.get(name).map(|value| value.as_str().to_owned());
            dead.push(DeadTask {
                number: found.sequence,
                name: found.subject.rsplit('.').next().unwrap_or_default().to_owned(),
                id: text("Paceline-Task").unwrap_or_default(),
                arguments: found.payload.to_vec(),
                failure: text("Paceline-Failure").unwrap_or_default(),
                attempts: text("Paceline-Ran").and_then(|text| text.parse().ok()).unwrap_or(0),
            });
        }
        Ok(dead)
    }

    /// Submits a task that has failed for good once more, as a new one, and forgets the dead one, unless the broker is away
    /// by then.
    ///
    /// # Errors
    /// [`Error::Stale`] if there is none of this number; as [`dead`](Self::dead) and [`Submission::submit`].
    pub fn resubmit(&self, number: u64) -> Result<DurableTask> {
        let dead = self.dead(number, 1)?.into_iter().find(|dead| dead.number == number);
        let dead = dead.ok_or(Error::Stale { what: "dead task" })?;
        let task =
            self.task(&dead.name).arguments(dead.arguments).unique(&format!("dead-{}", dead.id));
        let task = task.submit()?;
        // The new one is accepted in any case.
        let _stays = self.forget(number);
        Ok(task)
    }

    /// Forgets a task that has failed for good.
    ///
    /// # Errors
    /// [`Error::Stale`] if there is none of this number; as [`dead`](Self::dead).
    pub fn forget(&self, number: u64) -> Result<()> {
        let (stream, what) = (self.inner.stream("dead"), What::Delete(Which::Number(number)));
        let found = self.inner.bridge.ask(&stream, what, ASK_TIMEOUT)?;
        found.map(drop).ok_or(Error::Stale { what: "dead task" })
    }

    /// How its connection is, and what it has carried: tasks out are exports, tasks in are imports.
    pub fn stats(&self) -> BridgeStats {
        self.inner.bridge.stats()
    }

    /// Why nothing is stored or comes: it is not connected, or what the broker has refused last. None: all is well, or it has not
    /// tried yet.
    pub fn reason(&self) -> Option<String> {
        self.inner.bridge.reason()
    }

    /// Whether it is connected to a broker.
    pub fn is_connected(&self) -> bool {
        self.inner.bridge.is_connected()
    }

    /// As [`Bridge::wait_connected`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_connected(&self, timeout: Duration) -> Result<()> {
        self.inner.bridge.wait_connected(timeout)
    }

    /// Ends it: it takes no more tasks, gives back those that have not begun, and waits until the others have ended, for up
    /// to `timeout`. What has not ended then is run again elsewhere, or later. Answers how many submissions, results and dead
    /// letters were not stored: 0 as a rule. A handler that calls it waits in vain for its own task; in a function that the queue calls it does
    /// not wait.
    pub fn close(&self, timeout: Duration) -> u64 {
        self.inner.close(timeout)
    }
}

impl fmt::Debug for DurableQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableQueue").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

/// A durable task that has failed for good.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeadTask {
    /// Its number among the dead of its queue.
    pub number: u64,
    /// The task's name.
    pub name: String,
    /// The task's id.
    pub id: String,
    /// What it was submitted with.
    pub arguments: Vec<u8>,
    /// What went wrong at its last attempt.
    pub failure: String,
    /// How many attempts were begun.
    pub attempts: u32,
}

/// A task that is being put together; see [`DurableQueue::task`].
#[must_use = "nothing is submitted before `submit`"]
pub struct Submission<'a> {
    queue: &'a DurableQueue,
    name: String,
    arguments: Vec<u8>,
    options: Options,
    timeout: Duration,
}

impl Submission<'_> {
    /// What its handler is given; nothing unless set.
    pub fn arguments(mut self, arguments: impl Into<Vec<u8>>) -> Self {
        self.arguments = arguments.into();
        self
    }

    /// Which tasks go before which: each lane is a stream, and workers run what they have taken in the order of lanes.
    /// Default: [`Lane::Normal`].
    pub fn lane(mut self, lane: Lane) -> Self {
        self.options.lane = lane;
        self
    }

    /// How long it waits before its first attempt, by the clocks of submitter and worker: up to 100 years. Of each name and
    /// lane 65536 tasks can wait so; more hold up those behind them. Default: not at all.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.delay = delay;
        self
    }

    /// How long it may take from now on, by the clocks of submitter and worker: a worker whose clock is an hour ahead has a task
    /// of a minute time out at once. After that no attempt begins, one that runs is told to end, and the task has TIMED_OUT.
    /// Default: as long as it likes.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.options.deadline = Some(limit);
        self
    }

    /// How many attempts there may be, if those are fewer than the handler's retries allow.
    pub fn attempts(mut self, most: u32) -> Self {
        self.options.attempts = Some(most.max(1));
        self
    }

    /// Submits it once: if one of this name was submitted with this unique id within the queue's window, it is that one,
    /// also if that has ended. 1 to 200 bytes. Default: each submission is a task of its own.
    pub fn unique(mut self, id: &str) -> Self {
        self.options.unique = Some(id.to_owned());
        self
    }

    /// Stores no result: nobody waits for its end.
    pub fn ignore_result(mut self) -> Self {
        self.options.ignores_result = true;
        self
    }

    /// How long [`submit`](Self::submit) waits until the broker has stored it. Default: 30 seconds.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Submits it, and waits until the broker has stored it. Not in a handler, where
    /// [`submit_then`](Self::submit_then) does not wait.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`] with the reason: it is not stored yet, and will be when the broker takes it.
    /// [`Error::Invalid`] for a bad name or
    /// setting, or if the stream refuses it; [`Error::MailboxFull`] if too many wait to be stored; [`Error::ShutDown`].
    pub fn submit(self) -> Result<DurableTask> {
        let (timeout, (tell, told), queue) = (self.timeout, sync_channel(1), self.queue);
        self.submit_then(move |end| {
            // Nobody waits any more.
            let _gone = tell.send(end);
        })?;
        told.recv_timeout(timeout).unwrap_or_else(|_| Err(queue.inner.bridge.late()))
    }

    /// Submits it, and calls the function when the broker has stored it: once, on the bridge's thread, so it is to return
    /// soon.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), but for `TimedOut` and `Broker`; the function is not called then.
    pub fn submit_then(
        self,
        function: impl FnOnce(Result<DurableTask>) + Send + 'static,
    ) -> Result<()> {
        check_task(&self.queue.inner.name, &self.name)?;
        let id = new_id(self.options.lane);
        let order = Order {
            // What it would refuse is refused before an id is claimed.
            headers: self.options.headers(&self.queue.inner.origin)?,
            queue: self.queue.clone(),
            name: self.name,
            arguments: self.arguments,
            unique: self.options.unique,
            is_duplicate: false,
            id,
        };
        match order.unique {
            Some(_) => order.claim(function),
            None => {
                let pending = order.send()?;
                order.when_stored(pending, function);
                Ok(())
            }
        }
    }
}

/// What the claim of a unique id is followed by, once its task is stored.
const STORED: &[u8] = b"stored";

/// A task on its way to the broker. One with a unique id claims that first: the stream of claims has one for each name and
/// unique id, which says the task's id, for the window. Who finds it claimed stores the task under that id, unless the claim
/// is followed by a mark that somebody has: who made the claim may have died before.
struct Order {
    queue: DurableQueue,
    id: String,
    name: String,
    arguments: Vec<u8>,
    headers: Headers,
    unique: Option<String>,
    is_duplicate: bool,
}

impl Order {
    fn claim(self, function: impl FnOnce(Result<DurableTask>) + Send + 'static) -> Result<()> {
        let (inner, unique) = (&self.queue.inner, self.unique.as_deref().unwrap_or_default());
        let id = format!("{} {unique}", self.name);
        let key = format!("claims.{}.{}", inner.name, self.id);
        let message = inner.hub.message(key).headers(Headers::new([("Nats-Msg-Id", id)])?);
        inner.bridge.publish(message)?.then_at(move |place| match place {
            Ok(place) if place.is_duplicate => self.follow(place, function),
            Ok(_) => self.publish(function),
            Err(error) => function(Err(error)),
        });
        Ok(())
    }

    /// The unique id is claimed, there.
    fn follow(mut self, place: Place, function: impl FnOnce(Result<DurableTask>) + Send + 'static) {
        let queue = self.queue.clone();
        let of = format!("paceline.claims.{}.", queue.inner.name);
        let claim = What::Get(Which::From(format!("{of}*"), place.sequence));
        let stream = queue.inner.stream("claims");
        queue.inner.bridge.ask_then(&stream.clone(), claim, ASK_TIMEOUT, move |claim| {
            let claim = match claim {
                Ok(claim) => claim.filter(|claim| claim.sequence == place.sequence),
                Err(error) => return function(Err(error)),
            };
            // It is over just now.
            let Some(claim) = claim else { return function(Err(Error::TimedOut)) };
            self.id = id_in(&claim.subject).to_owned();
            self.is_duplicate = true;
            let mark = What::Get(Which::Last(format!("{of}{}", self.id)));
            let queue = self.queue.clone();
            queue.inner.bridge.ask_then(&stream, mark, ASK_TIMEOUT, move |mark| match mark {
                Ok(Some(mark)) if mark.payload == STORED => function(Ok(self.accepted())),
                Ok(_) => self.publish(function),
                Err(error) => function(Err(error)),
            });
        });
    }

    fn publish(self, function: impl FnOnce(Result<DurableTask>) + Send + 'static) {
        match self.send() {
            Ok(pending) => self.when_stored(pending, function),
            Err(error) => function(Err(error)),
        }
    }

    fn when_stored(
        self,
        pending: PendingStore,
        function: impl FnOnce(Result<DurableTask>) + Send + 'static,
    ) {
        pending.then_at(move |place| function(place.map(|place| self.stored(place))));
    }

    fn send(&self) -> Result<PendingStore> {
        let inner = &self.queue.inner;
        let lane = lane_name(lane_of(&self.id)?);
        let key = format!("tasks.{}.{lane}.{}.{}", inner.name, self.name, self.id);
        // By its id the stream has it once.
        let headers = self.headers.iter().chain([("Nats-Msg-Id", self.id.as_str())]);
        let headers = Headers::new(headers)?;
        inner.bridge.publish(inner.hub.message(key).headers(headers).payload(&self.arguments[..]))
    }

    fn stored(mut self, place: Place) -> DurableTask {
        let inner = &self.queue.inner;
        if self.unique.is_some() {
            let key = format!("claims.{}.{}", inner.name, self.id);
            // Without it the next one with this id stores the task again, which the stream drops.
            let _full = inner.hub.message(key).payload(STORED).no_wait().publish();
        }
        self.is_duplicate &= place.is_duplicate;
        self.accepted()
    }

    fn accepted(self) -> DurableTask {
        DurableTask { queue: self.queue, id: self.id, is_duplicate: self.is_duplicate }
    }
}

/// A task that the broker has stored.
#[derive(Clone)]
pub struct DurableTask {
    queue: DurableQueue,
    id: String,
    is_duplicate: bool,
}

impl DurableTask {
    /// Its id in its queue, for any process: a letter for the lane, and 32 hexadecimal digits that nobody can guess, never
    /// given again. Its handler sees the same.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the broker had it already, by the unique id that it was submitted with.
    pub fn is_duplicate(&self) -> bool {
        self.is_duplicate
    }

    /// As [`DurableQueue::cancel`].
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&self) -> Result<bool> {
        self.queue.cancel(&self.id)
    }

    /// Waits until it has ended, for up to `timeout`: any number of times, and also if it was submitted by another
    /// process. Not in a handler, where [`then`](Self::then) does not wait, and not in a function that the queue calls. With
    /// no time at all it answers what has come here, and does not ask the broker.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`] with the reason, also if it was submitted without a result, if the result is older than results are kept, and
    /// if there is no such task. [`Error::ShutDown`] if the queue has ended before.
    pub fn wait(&self, timeout: Duration) -> Result<DurableReport> {
        let inner = &self.queue.inner;
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            if let Some(report) = inner.table.wait(&self.id, left.min(LOOK)) {
                return Ok(report);
            }
            if timeout.is_zero() {
                return Err(Error::TimedOut);
            }
            if let Some(report) = self.look(timeout.saturating_sub(begun.elapsed())) {
                inner.table.put(report.clone());
                return Ok(report);
            }
            if begun.elapsed() >= timeout {
                return Err(inner.bridge.late());
            }
            inner.bridge.check_open()?;
        }
    }

    /// Calls the function when its result has come: on the thread that brings it, so it is to return soon; or at once, if it
    /// is there; never, if none comes, or the queue ends before. Only for tasks that this queue has submitted. A result that
    /// comes while the connection is lost is found by [`wait`](Self::wait) alone. Until it is called it is kept, with what it
    /// has: that is not to be the last of the queue.
    pub fn then(&self, function: impl FnOnce(DurableReport) + Send + 'static) {
        self.queue.inner.table.then(&self.id, Box::new(function));
    }

    /// Its result, if the stream has it. The answer may take `left`, or a moment.
    fn look(&self, left: Duration) -> Option<DurableReport> {
        let inner = &self.queue.inner;
        let subject = format!("paceline.results.{}.*.{}", inner.name, self.id);
        let what = What::Get(Which::Last(subject));
        let limit = left.clamp(LEAST_LOOK, ASK_TIMEOUT);
        let found = inner.bridge.ask(&inner.stream("results"), what, limit).ok()??;
        let pairs = found.headers.iter().flat_map(|(name, values)| {
            let name: &str = name.as_ref();
            values.iter().map(move |value| (name.to_owned(), value.as_str().to_owned()))
        });
        report_of(&self.id, &Headers::new(pairs).ok()?, &found.payload).ok()
    }
}

impl fmt::Debug for DurableTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTask")
            .field("queue", &self.queue.inner.name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
