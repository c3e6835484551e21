//! How a queue of durable tasks is set up.

use super::job::Job;
use super::pulled::Desk;
use super::queue::{DurableQueue, Inner, origin_of};
use super::schedule::{Due, Schedule, seconds};
use super::table::Table;
use super::wire::{check_queue, check_task, lane_name, lane_of, report_of_message, stream_name};
use super::work::{How, Known, Worker, Workshop, run_of};
use crate::bridge::rules::{Keeps, check_name_of};
use crate::bridge::wire::is_imported;
use crate::bridge::{Bridge, Export, Import, NatsSettings};
use crate::error::{Error, Result};
use crate::hub::{Execution, Filter, Hub, Message};
use crate::queue::Lane;
use crate::sys::thread::without_signals;
use crate::task::{Outcome, WorkerPool};
use crate::time::{Backoff, MAX_DELAY, Retry};
use core::time::Duration;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::SystemTime;

const PREFIX: &str = "paceline.";
/// It is part of a unique id.
const MOST_LABEL: usize = 160;
/// How often the thread of schedules looks at the clock, which may be set, and how late a task of a schedule may be.
const LOOK: Duration = Duration::from_secs(60);
/// How many tasks that have ended are known, should the broker not have heard of it.
const KNOWN: usize = 100_000;

impl WorkerPool {
    /// A queue of tasks that outlive the process: a broker has them, and any process with a handler for a task's name runs
    /// it, in its worker pool. The name of the queue has 1 to 182 bytes, that of a task 1 to 200, both together up to 205, without
    /// blanks, control characters, and any of `. * > / \ %`. Without [`DurableBuilder::nats`] the broker is
    /// `nats://127.0.0.1:4222`. See [`DurableBuilder`].
    ///
    /// ```no_run
    /// use paceline::{Pool, bridge::tasks::Job, task::WorkerPool};
    /// use std::time::Duration;
    /// # fn main() -> paceline::Result<()> {
    /// let workers = WorkerPool::new(&Pool::new()?);
    /// let queue = workers
    ///     .durable("pictures")
    ///     .nats("nats://127.0.0.1:4222")
    ///     .task("shrink", |job: &Job<'_>| job.arguments().len().to_string().into_bytes())
    ///     .open()?;
    /// let task = queue.submit("shrink", "a picture")?; // the broker has stored it
    /// let report = task.wait(Duration::from_secs(60))?;
    /// assert_eq!(report.value, b"9");
    /// # Ok(())
    /// # }
    /// ```
    pub fn durable(&self, queue: impl Into<String>) -> DurableBuilder {
        DurableBuilder {
            workers: self.clone(),
            queue: queue.into(),
            settings: NatsSettings::new("nats://127.0.0.1:4222"),
            tasks: Vec::new(),
            desk: Arc::default(),
            schedules: Vec::new(),
            results_last: Duration::from_secs(3600),
            window: Duration::from_secs(120),
            in_flight: 0,
            ack_wait: Duration::from_secs(30),
        }
    }
}

/// Settings of a [`DurableQueue`]. A process that gives it no task handler only submits, and runs no tasks.
#[must_use = "a builder does nothing until `open`"]
pub struct DurableBuilder {
    workers: WorkerPool,
    queue: String,
    settings: NatsSettings,
    tasks: Vec<(String, Retry, How)>,
    desk: Arc<Desk>,
    schedules: Vec<Scheduled>,
    results_last: Duration,
    window: Duration,
    in_flight: usize,
    ack_wait: Duration,
}

struct Scheduled {
    label: String,
    when: String,
    task: String,
    arguments: Vec<u8>,
}

impl DurableBuilder {
    /// The broker. Default: `nats://127.0.0.1:4222`, one on this host.
    pub fn nats(mut self, settings: impl Into<NatsSettings>) -> Self {
        self.settings = settings.into();
        self
    }

    /// Runs the tasks of this name in this process. The handler returns bytes, or what becomes bytes, or a `Result`: an
    /// error, or a panic, fails the attempt, and is followed by another after half a second, then twice as long each time,
    /// ten in all. Settings of the name's [task type](WorkerPool::task_type), such as its time-out, count for each attempt;
    /// its retries do not, nor what it does when its lane is full: a task without room comes again after a moment.
    ///
    /// A result that the broker's stream does not take, as it is too large, say, fails the task for good. A handler that
    /// keeps the queue itself, to submit other tasks, keeps it open until it is [closed](DurableQueue::close).
    pub fn task<R>(
        self,
        name: impl Into<String>,
        handler: impl Fn(&Job<'_>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Outcome,
        R::Value: Into<Vec<u8>>,
    {
        self.task_with(name, usual_retry(), handler)
    }

    /// The same, with these retries, of all processes together. An attempt whose process ends in it counts: a task that has had
    /// as many as it may is a dead one, and does not begin again.
    pub fn task_with<R>(
        mut self,
        name: impl Into<String>,
        retry: Retry,
        handler: impl Fn(&Job<'_>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Outcome,
        R::Value: Into<Vec<u8>>,
    {
        self.tasks.push((name.into(), retry, How::Call(run_of(handler))));
        self
    }

    /// Takes the tasks of this name for a host, which runs them on threads of its own: see [`DurableQueue::take`].
    pub fn task_pulled(mut self, name: impl Into<String>, retry: Retry) -> Self {
        self.tasks.push((name.into(), retry, How::Pull(Arc::clone(&self.desk))));
        self
    }

    /// Submits a task at times of the calendar, in the manner of cron, by UTC: "30 3 * * 1-5" is half past three from Monday
    /// to Friday. All processes with a schedule of this label submit one task together for each time. What comes due while
    /// none of them runs is not submitted later. Their clocks are to differ by less than the [window](Self::window), or some
    /// times have two tasks. The label: 1 to 160 bytes, without what names of tasks have not.
    pub fn schedule(
        mut self,
        label: impl Into<String>,
        when: impl Into<String>,
        task: impl Into<String>,
        arguments: impl Into<Vec<u8>>,
    ) -> Self {
        let (label, when, task) = (label.into(), when.into(), task.into());
        self.schedules.push(Scheduled { label, when, task, arguments: arguments.into() });
        self
    }

    /// How long results are kept, 1 second to 100 years. Default: one hour.
    pub fn results_last(mut self, time: Duration) -> Self {
        self.results_last = time;
        self
    }

    /// For how long a unique id is known, as long as the broker's streams are made by this process: 100 ms to 1 day.
    /// Default: 2 minutes.
    pub fn window(mut self, time: Duration) -> Self {
        self.window = time;
        self
    }

    /// How many tasks of each name and lane this process may have taken and not ended, 1 to 65536. More keep threads busy;
    /// fewer leave more to other processes. Default, and 0: twice the pool's threads.
    pub fn in_flight(mut self, tasks: usize) -> Self {
        self.in_flight = tasks;
        self
    }

    /// After how long without a sign of life the broker gives a task to another process, 100 ms to 1 day, where this process
    /// is the first with a handler for the task's name. Default: 30 seconds.
    pub fn ack_wait(mut self, wait: Duration) -> Self {
        self.ack_wait = wait;
        self
    }

    /// Opens it, and begins to connect.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad name, setting or schedule; [`Error::ShutDown`]; [`Error::Os`].
    pub fn open(mut self) -> Result<DurableQueue> {
        check_queue(&self.queue)?;
        let schedules = self.take_schedules()?;
        let queue = &*self.queue;
        self.check()?;
        let hub = Hub::new(self.workers.pool())?;
        let origin = origin_of(&hub);
        let table = Arc::<Table>::default();
        let shop = Arc::new(Workshop::new(queue, &hub, &table));
        self.subscribe(&hub, &origin, &table, &shop)?;
        let mut bridge = Bridge::nats(&hub, self.settings.clone())
            .name(format!("tasks {queue}"))
            .window(self.window, KNOWN)
            .vital()
            .export(Export::new(format!("control.{queue}")).prefix(PREFIX))
            .export(kept(
                format!("claims.{queue}.*"),
                stream_name(queue, "claims"),
                Keeps::For(self.window),
            ))
            .export(kept(format!("dead.{queue}.>"), stream_name(queue, "dead"), Keeps::All))
            .export(kept(
                format!("results.{queue}.>"),
                stream_name(queue, "results"),
                Keeps::For(self.results_last),
            ))
            .import(Import::new(format!("results.{queue}.{origin}.*")).prefix(PREFIX));
        if !self.tasks.is_empty() {
            let marks = format!("began.{queue}.*");
            let keeps = Keeps::Last(super::attempts::KEPT);
            bridge = bridge
                .import(Import::new(format!("control.{queue}")).prefix(PREFIX))
                .export(kept(marks, stream_name(queue, "began"), keeps));
        }
        for lane in Lane::ALL {
            let (stream, lane_name) = (stream_name(queue, lane_name(lane)), lane_name(lane));
            let all = format!("tasks.{queue}.{lane_name}.>");
            bridge = bridge.export(kept(all.clone(), stream.clone(), Keeps::UntilDone));
            for (name, retry, how) in &self.tasks {
                let import = Import::new(format!("tasks.{queue}.{lane_name}.{name}.*"))
                    .prefix(PREFIX)
                    .at_least_once(stream.clone(), name.clone())
                    .of_stream(format!("{PREFIX}{all}"), Keeps::UntilDone)
                    .in_flight(self.most_in_flight(&hub))
                    .ack_wait(self.ack_wait)
                    // An attempt may take as long as its own limits allow.
                    .handle_timeout(Duration::MAX);
                let worker = Worker {
                    shop: Arc::clone(&shop),
                    name: name.clone(),
                    lane,
                    retry: retry.clone(),
                    task_type: self.workers.task_type_of(name),
                    how: how.clone(),
                };
                bridge = bridge.import_to(import, Arc::new(worker));
            }
        }
        let bridge = bridge.open()?;
        shop.line.open(bridge.downgrade());
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let desk = self.desk;
        let inner = Inner { name: self.queue, hub, bridge, shop, table, desk, origin, end };
        let queue = DurableQueue { inner: Arc::new(inner) };
        if !schedules.is_empty() {
            spawn(&queue, schedules)?;
        }
        Ok(queue)
    }

    fn most_in_flight(&self, hub: &Hub) -> usize {
        match self.in_flight {
            0 => 2 * hub.shared().ready.members.len().max(1),
            tasks => tasks,
        }
    }

    fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        for (name, retry, _) in &self.tasks {
            check_task(&self.queue, name)?;
            retry.check()?;
            if !names.insert(name) {
                let allowed = "one handler for each name";
                return Err(Error::invalid(
                    "the name of a task",
                    format!("{name:?} twice"),
                    allowed,
                ));
            }
        }
        if !(Duration::from_secs(1)..=MAX_DELAY).contains(&self.results_last) {
            let value = format!("{:?}", self.results_last);
            return Err(Error::invalid("results_last", value, "1 second to 100 years"));
        }
        Ok(())
    }

    fn take_schedules(&mut self) -> Result<Vec<(Schedule, Scheduled)>> {
        let queue = self.queue.clone();
        let parse = |one: Scheduled| {
            check_name_of("the label of a schedule", &one.label, MOST_LABEL)?;
            check_task(&queue, &one.task)?;
            let schedule = Schedule::new(&one.when)?;
            match schedule.next(SystemTime::now()) {
                Some(_) => Ok((schedule, one)),
                None => {
                    let value = format!("{:?}", one.when);
                    Err(Error::invalid("schedule", value, "one with a time that comes"))
                }
            }
        };
        core::mem::take(&mut self.schedules).into_iter().map(parse).collect()
    }

    /// Results come to the table, and what others want to cancel to the workers.
    fn subscribe(
        &self,
        hub: &Hub,
        origin: &str,
        table: &Arc<Table>,
        shop: &Arc<Workshop>,
    ) -> Result<()> {
        let queue = &self.queue;
        let table = Arc::clone(table);
        hub.subscription(&format!("results.{queue}.{origin}.*"))
            // Those that this process has published need not be stored yet.
            .filter(is_from_elsewhere())
            .execution(Execution::Inline)
            .serve_shared(move |message: &Message<'_>| {
                if let Ok(report) = report_of_message(message) {
                    table.put(report);
                }
            })?
            .detach();
        let shop = Arc::downgrade(shop);
        hub.subscription(&format!("control.{queue}"))
            .filter(is_from_elsewhere())
            .execution(Execution::Inline)
            .serve_shared(move |message: &Message<'_>| {
                let Some(shop) = Weak::upgrade(&shop) else { return };
                // Any peer may say anything, at any length.
                let id = core::str::from_utf8(message.payload()).unwrap_or_default();
                if lane_of(id).is_err() {
                    return;
                }
                let known: &[u8] = match shop.cancel(id) {
                    Known::WillNotBegin => b"held",
                    Known::Begun => b"begun",
                    Known::Unknown => return,
                };
                // Who has asked does not wait any more.
                let _late = shop.line.hub.reply(message, known);
            })?
            .detach();
        Ok(())
    }
}

/// Unless a handler has its own.
pub(crate) fn usual_retry() -> Retry {
    Retry::new(9, Backoff::exponential(Duration::from_millis(500)))
}

fn kept(pattern: String, stream: String, keeps: Keeps) -> Export {
    Export::new(pattern).prefix(PREFIX).at_least_once(stream).keeps(keeps)
}

fn is_from_elsewhere() -> Filter {
    Filter::predicate(is_imported)
}

/// The thread of schedules. It ends with the queue.
fn spawn(queue: &DurableQueue, schedules: Vec<(Schedule, Scheduled)>) -> Result<()> {
    let (inner, end) = (Arc::downgrade(&queue.inner), Arc::clone(&queue.inner.end));
    let run = move || {
        let (list, schedules): (Vec<_>, Vec<_>) = schedules.into_iter().unzip();
        let mut due = Due::new(list, SystemTime::now());
        loop {
            let ended = end.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = SystemTime::now();
            let next = due.first(now).filter(|_| !*ended);
            let Some(next) = next else { return };
            if let Ok(left) = next.duration_since(now)
                && !left.is_zero()
            {
                let _woken = end.1.wait_timeout(ended, left.min(LOOK));
                continue;
            }
            drop(ended);
            let Some(inner) = inner.upgrade() else { return };
            let queue = DurableQueue { inner };
            // Not for each time of a day that the clock has leapt over.
            for index in due.take(next, now - LOOK) {
                let one: &Scheduled = &schedules[index];
                let id = format!("schedule.{}.{}", one.label, seconds(next));
                let task = queue.task(&one.task).arguments(one.arguments.clone()).unique(&id);
                // It waits in the mailbox if there is no broker; if that is full it is counted there.
                let _full = task.ignore_result().submit_then(|_| ());
            }
        }
    };
    let thread = thread::Builder::new().name("paceline-cron".into());
    let spawned = without_signals(|| thread.spawn(run));
    spawned.map(drop).map_err(|error| Error::os("start the thread of schedules", error))
}
