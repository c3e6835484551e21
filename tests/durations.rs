//! Every time that a user may give is taken up to its documented maximum, or refused with its range: none is too long
//! for a clock, ends a wait at once, or is called something else.
//!
//! The places are found by reading the sources ([`places`]), so that a new one without a driver fails, and so does a
//! driver without a place. Each is given the longest time that there is.
#![cfg(all(feature = "http", feature = "metrics", not(loom)))]

#[cfg(feature = "nats")]
#[path = "durations/bridges.rs"]
mod bridges;
#[cfg(feature = "nats")]
#[allow(dead_code, reason = "each test binary uses its own part of this")]
#[path = "bridge/broker.rs"]
mod broker;
mod common;
#[path = "common/places.rs"]
mod places;

use common::{Count, LONG, hang_guard, in_child_blocking, until};
use paceline::cq::CompletionQueue;
use paceline::http::Http;
use paceline::hub::history::{History, Limits, ReplayFrom};
use paceline::hub::{
    Execution, Failure, Hub, Intensity, Message, OnFailure, Overflow, Subscription,
};
use paceline::log::Log;
use paceline::metrics::{Registry, Unit};
use paceline::net::{
    Accept, Conn, ConnHandler, DatagramHandler, Datagrams, Outgoing, Server, ServerBuilder,
    UdpSocket,
};
use paceline::ops::Ops;
use paceline::task::{
    Attempt, Fault, MissedTick, OverloadPolicy, Phases, Rate, Status, TaskBuilder, TaskTypeBuilder,
    WorkerPool,
};
use paceline::{
    Backoff, Error, Flow, Jitter, Pool, Queue, Ready, Retry, ScriptedIo, ScriptedSource, Signals,
};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

type Driver = fn(&Pool);

const MAX: Duration = Duration::MAX;
/// The documented maximum of most.
const YEARS: Duration = Duration::from_secs(100 * 366 * 86_400);
const MS: Duration = Duration::from_millis(1);

const DRIVERS: &[(&str, Driver)] = &[
    // Settings of a pool.
    ("Builder::ageing", |_| refused(Pool::builder().ageing(MAX).build(), "1ms to 3600s")),
    ("Builder::max_turn", |_| refused(Pool::builder().max_turn(MAX).build(), "1s")),
    ("Builder::spin", |_| refused(Pool::builder().spin(MAX).build(), "100ms")),
    ("Builder::watch_period", |_| refused(Pool::builder().watch_period(MAX).build(), "to 1s")),
    ("Builder::on_slow", |_| {
        let builder = Pool::builder().threads(1);
        refused(builder.on_slow(MAX, |_| ()).build(), "86400s");
    }),
    // Others.
    ("OpsBuilder::blocked_after", |pool| {
        refused(Ops::builder(pool).blocked_after(MAX).build(), "1 ms to 1 hour");
    }),
    ("OpsBuilder::ready_after", |pool| {
        refused(Ops::builder(pool).ready_after(MAX).build(), "1 ms to 1 hour");
    }),
    ("OpsBuilder::dead_after", |pool| {
        refused(Ops::builder(pool).dead_after(MAX).build(), "1 ms to 1 hour");
    }),
    // Timers.
    ("Pool::after", |pool| {
        refused(pool.after(MAX, || ()), "100 years");
        assert!(pool.after(YEARS, || unreachable!("it is not due")).unwrap().cancel());
    }),
    ("Pool::trace", |pool| {
        refused(pool.trace(MAX), "1 hour");
        assert!(pool.trace(MS).is_ok());
    }),
    ("Pool::every", |pool| {
        refused(pool.every(MAX, || Flow::Done), "100 years");
        drop(pool.every(YEARS, || unreachable!("it is not due")).unwrap());
    }),
    ("CompletionQueue::after", |pool| {
        let queue = CompletionQueue::new(pool).unwrap();
        refused(queue.after(MAX, 1), "100 years");
        assert!(queue.after(YEARS, 1).unwrap().cancel());
    }),
    ("CompletionQueue::every", |pool| {
        let queue = CompletionQueue::new(pool).unwrap();
        refused(queue.every(MAX, 1), "100 years");
        drop(queue.every(YEARS, 1).unwrap());
    }),
    ("CompletionQueue::wait", |pool| {
        let queue = CompletionQueue::new(pool).unwrap();
        let _timer = queue.after(20 * MS, 7).unwrap();
        assert_eq!(queue.wait(&mut Vec::new(), 1, MAX).unwrap(), 1);
        let workers = WorkerPool::new(pool);
        queue.workers(&workers, 8).unwrap();
        thread::scope(|scope| {
            later(scope, || {
                let kind = workers.task_type("tagged").build().unwrap();
                drop(kind.task_tagged(1).submit().map_err(drop).unwrap());
            });
            assert_eq!(queue.wait(&mut Vec::new(), 1, MAX).unwrap(), 1);
        });
        let _report = workers.shutdown(Phases { drain: MS, stop: MS, clean_up: MAX });
    }),
    ("Timer::postpone", |pool| {
        let timer = pool.after(LONG, || unreachable!("it is not due")).unwrap();
        assert!(timer.postpone(MAX) && timer.is_pending() && timer.cancel());
    }),
    // Waits.
    ("Pool::join", |_| {
        let pool = Pool::builder().threads(0).max_joined(1).build().unwrap();
        let inside = pool.clone();
        pool.post(move || drop(inside.shutdown(MAX))).map_err(drop).unwrap();
        assert!(pool.join(MAX).unwrap() >= 1);
    }),
    ("Pool::shutdown", |_| {
        let pool = Pool::builder().threads(1).build().unwrap();
        pool.post(|| thread::sleep(20 * MS)).unwrap();
        assert!(pool.shutdown(MAX).drained);
    }),
    ("Signals::shut_down", |_| {
        let pool = Pool::builder().threads(1).build().unwrap();
        let signals = Signals::shut_down(&pool, MAX).unwrap();
        pool.post(|| thread::sleep(20 * MS)).unwrap();
        #[allow(unsafe_code, reason = "std sends no signals")]
        // SAFETY: all threads of this process block the signal.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGTERM);
        }
        assert_eq!(signals.wait(), Some(libc::SIGTERM));
        assert!(pool.shutdown(MAX).drained);
    }),
    ("Task::wait_timeout", |pool| {
        let mut task = pool.submit(|| thread::sleep(20 * MS)).unwrap();
        task.wait_timeout(MAX).unwrap();
        let workers = WorkerPool::new(pool);
        let work = |_: &Attempt<'_>| thread::sleep(20 * MS);
        let mut task = workers.task("slow", work).submit().map_err(drop).unwrap();
        assert_eq!(task.wait_timeout(MAX).unwrap().status, Status::Completed);
    }),
    ("TaskHandle::wait_timeout", |pool| {
        let task_type = WorkerPool::new(pool).task_type("slow").build().unwrap();
        let slow = |_: &Attempt<'_>| thread::sleep(20 * MS);
        let mut task = task_type.submit(slow).unwrap();
        task.wait_timeout(MAX).unwrap();
    }),
    ("Queue::pop_timeout", |_| {
        let queue = Queue::new(2).unwrap();
        thread::scope(|scope| {
            later(scope, || queue.push(7).unwrap());
            assert_eq!(queue.pop_timeout(MAX), Some(7));
        });
    }),
    ("Queue::push_timeout", |_| {
        let queue = Queue::new(2).unwrap();
        while queue.push(7).is_ok() {}
        thread::scope(|scope| {
            later(scope, || assert_eq!(queue.pop(), Some(7)));
            queue.push_timeout(8, MAX).unwrap();
        });
    }),
    // A scripted source.
    ("ScriptedSource::advance", |_| {
        let script = ScriptedSource::new();
        script.advance(MAX);
        assert!(script.now() > YEARS);
    }),
    ("ScriptedSource::ready_at", |_| {
        let (script, io) = (ScriptedSource::new(), ScriptedIo::new().unwrap());
        script.ready_at(MAX, &io, Ready::READABLE);
        assert_eq!(script.undelivered(), 1);
    }),
    ("ScriptedSource::late_at", |_| {
        let (script, io) = (ScriptedSource::new(), ScriptedIo::new().unwrap());
        assert!(!script.late_at(MAX, &io, Ready::READABLE));
    }),
    ("ScriptedSource::settle", |_| {
        let script = ScriptedSource::new();
        let kind = paceline::SourceKind::Scripted(script.clone());
        let pool = Pool::builder().threads(1).source(kind).build().unwrap();
        assert!(script.settle(MAX));
        assert!(pool.shutdown(MAX).drained);
    }),
    // Policies: no delay is longer than 100 years.
    ("Backoff::fixed", |_| longest(Backoff::fixed(MAX))),
    ("Backoff::linear", |_| longest(Backoff::linear(MAX))),
    ("Backoff::exponential", |_| longest(Backoff::exponential(MAX).jitter(Jitter::None))),
    ("Backoff::random", |_| longest(Backoff::random(MAX..=MAX))),
    ("Backoff::custom", |_| longest(Backoff::custom(|_| MAX))),
    ("Backoff::cap", |_| longest(Backoff::fixed(MAX).cap(MAX))),
    ("Retry::fixed", |_| next(Retry::fixed(3, MAX))),
    ("Retry::linear", |_| next(Retry::linear(3, MAX))),
    ("Retry::random", |_| next(Retry::random(3, MAX..=MAX))),
    ("Retry::custom", |pool| {
        next(Retry::custom(3, |_| MAX));
        // The task waits, and does not end.
        let workers = WorkerPool::new(pool);
        let fails = |_: &Attempt<'_>| Err::<(), _>(Fault::new("on purpose"));
        let task = workers.task("fails", fails).retry(Retry::custom(3, |_| MAX));
        waits(task.submit().map_err(drop).unwrap());
    }),
    ("Retry::within", |_| next(Retry::fixed(3, MAX).within(MAX))),
    ("Retry::next", |_| {
        let retry = Retry::fixed(3, MS);
        assert_eq!(retry.next(1, MAX, Some(MAX), 1).unwrap(), YEARS);
    }),
    ("Rate::new", |pool| {
        let workers = WorkerPool::new(pool);
        refused(workers.task_type("kind").rate(Rate::new(1, MAX)).build(), "100 years");
        drop(workers.task_type("kind").rate(Rate::new(1, YEARS)).build().unwrap());
    }),
    ("Fault::retry_after", |pool| {
        let workers = WorkerPool::new(pool);
        let fails = |_: &Attempt<'_>| Err::<(), _>(Fault::retry_after("later", MAX));
        let task = workers.task("fails", fails).retry(Retry::fixed(3, MS));
        waits(task.submit().map_err(drop).unwrap());
    }),
    // Tasks.
    ("TaskTypeBuilder::timeout", |pool| kind(pool, |kind, limit| kind.timeout(limit))),
    ("TaskTypeBuilder::queue_timeout", |pool| kind(pool, |kind, limit| kind.queue_timeout(limit))),
    ("TaskTypeBuilder::deadline", |pool| kind(pool, |kind, limit| kind.deadline(limit))),
    ("TaskTypeBuilder::soft_timeout", |pool| kind(pool, |kind, limit| kind.soft_timeout(limit))),
    ("TaskTypeBuilder::lease", |pool| kind(pool, |kind, limit| kind.lease(limit))),
    ("TaskTypeBuilder::grace", |pool| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").grace(MAX).timeout(YEARS).build().unwrap();
        let task = kind.submit(|_: &Attempt<'_>| ()).map_err(drop).unwrap();
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }),
    ("TaskBuilder::timeout", |pool| task(pool, |task| task.timeout(MAX))),
    ("TaskBuilder::queue_timeout", |pool| task(pool, |task| task.queue_timeout(MAX))),
    ("TaskBuilder::deadline", |pool| task(pool, |task| task.deadline(MAX))),
    ("TaskBuilder::soft_timeout", |pool| task(pool, |task| task.soft_timeout(MAX))),
    ("TaskBuilder::grace", |pool| task(pool, |task| task.timeout(MAX).grace(MAX))),
    ("TaskBuilder::delay", |pool| {
        let workers = WorkerPool::new(pool);
        let task = workers.task("late", |_: &Attempt<'_>| -> () { unreachable!("it is not due") });
        let task: paceline::task::TaskHandle<()> = task.delay(MAX).submit().map_err(drop).unwrap();
        assert_eq!(task.status(), Status::Pending);
        assert!(task.cancel());
    }),
    ("TaskBuilder::every", |pool| {
        let workers = WorkerPool::new(pool);
        let task = || workers.task("tick", |_: &Attempt<'_>| ());
        refused(task().every(MAX, MissedTick::Skip), "100 years");
        refused(task().delay(MAX).every(LONG, MissedTick::Skip), "100 years");
        drop(task().delay(YEARS).every(YEARS, MissedTick::Skip).unwrap());
    }),
    // Logs and figures.
    ("Log::flush", |_| {
        let log = Log::builder().facade(false).build().unwrap();
        log.flush(MAX).unwrap();
        log.close(MAX).unwrap();
    }),
    ("Log::close", |_| {
        let log = Log::builder().facade(false).callback(|_| ()).build().unwrap();
        log.close(MAX).unwrap();
        log.flush(MAX).unwrap();
    }),
    #[cfg(feature = "webhook")]
    ("WebhookBuilder::timeout", |_| {
        let builder = paceline::admin::Webhook::builder("http://127.0.0.1:9/");
        refused(builder.timeout(MAX).build(), "5 minutes");
    }),
    #[cfg(feature = "webhook")]
    ("Webhook::flush", |_| {
        let builder = paceline::admin::Webhook::builder("http://127.0.0.1:9/");
        builder.build().unwrap().flush(MAX).unwrap();
    }),
    ("Histogram::record_time", |_| {
        let times = Registry::new().histogram("times", "Of the test", &[], Unit::Time).unwrap();
        times.record_time(MAX);
        assert_eq!(times.snapshot().count(), 1);
    }),
    // Hubs.
    ("HubBuilder::stats_interval", |pool| {
        refused(Hub::builder(pool).stats_interval(MAX).build(), "10 ms to 1 day");
    }),
    ("HubBuilder::notice_interval", |pool| {
        refused(Hub::builder(pool).notice_interval(MAX).build(), "1 ms to 1 hour");
    }),
    ("Hub::watch", |pool| {
        let hub = Hub::new(pool).unwrap();
        refused(hub.watch(&Registry::new(), MAX).start(), "1 ms to 1 day");
    }),
    ("Hub::request", |pool| {
        let hub = answering(pool);
        drop(hub.0.request("ask", "?", MAX).unwrap());
    }),
    ("Publication::request", |pool| {
        let hub = answering(pool);
        drop(hub.0.message("ask").payload("?").request(MAX).unwrap().wait().unwrap());
    }),
    ("Publication::request_then", |pool| {
        let (hub, told) = (answering(pool), Count::new());
        let tell = told.clone();
        let then = move |reply: Result<_, _>| {
            assert!(reply.is_ok());
            tell.up();
        };
        let _asked = hub.0.message("ask").payload("?").request_then(MAX, then).unwrap();
        told.until(1);
    }),
    ("Failure::retry_after", |pool| {
        let (hub, ran) = (Hub::new(pool).unwrap(), Count::new());
        let count = ran.clone();
        let policy = OnFailure::dead_letter().retry(Retry::fixed(3, MS));
        let builder = hub.subscription("a").on_failure(policy);
        let subscription = builder
            .serve(move |_: &Message<'_>| {
                count.up();
                Err::<(), _>(Failure::retry_after("later", MAX))
            })
            .unwrap();
        let _ = hub.publish("a", "!").unwrap();
        ran.until(1);
        until("it waits", || subscription.stats().waiting == 1);
        assert_eq!((ran.get(), subscription.stats().dead_lettered), (1, 0));
        assert_eq!(subscription.drain(MS).unwrap(), 1);
    }),
    ("Intensity::new", |pool| {
        let hub = Hub::new(pool).unwrap();
        let builder = hub.subscription("a").intensity(Intensity::new(3, MAX));
        refused(builder.serve(|_: &Message<'_>| ()), "100 years");
        let builder = hub.subscription("a").intensity(Intensity::new(3, YEARS));
        drop(builder.serve(|_: &Message<'_>| ()).unwrap());
    }),
    ("Intensity::resume_after", |pool| {
        let hub = Hub::new(pool).unwrap();
        let intensity = |longest| Intensity::default().resume_after(MS, longest);
        let builder = hub.subscription("a").intensity(intensity(MAX));
        refused(builder.serve(|_: &Message<'_>| ()), "100 years");
        let builder = hub.subscription("a").intensity(intensity(YEARS));
        drop(builder.serve(|_: &Message<'_>| ()).unwrap());
    }),
    ("SubscriptionBuilder::lease", |pool| {
        let hub = Hub::new(pool).unwrap();
        let builder = |lease| hub.subscription("a").execution(Execution::Pull).lease(lease);
        refused(builder(MAX).pull(), "100 years");
        drop(builder(YEARS).pull().unwrap());
    }),
    ("Subscription::drain", |pool| {
        let hub = Hub::new(pool).unwrap();
        let slow = |_: &Message<'_>| thread::sleep(20 * MS);
        let builder = hub.subscription("a").overflow(Overflow::Block(MAX));
        let subscription = builder.serve(slow).unwrap();
        let _ = hub.publish("a", "!").unwrap();
        assert_eq!(subscription.drain(MAX).unwrap(), 0);
    }),
    ("Mailbox::suspend", |pool| {
        let mailbox = Hub::new(pool).unwrap().mailbox("a", 8).unwrap();
        let allowed = "up to 100 years";
        assert!(mailbox.suspend(Some(MAX)).unwrap_err().to_string().contains(allowed));
    }),
    ("Mailbox::recv_timeout", |pool| {
        let hub = Hub::new(pool).unwrap();
        let mailbox = hub.mailbox("a", 8).unwrap();
        thread::scope(|scope| {
            later(scope, || assert_eq!(hub.publish("a", "!").unwrap().matched, 1));
            drop(mailbox.recv_timeout(MAX).unwrap());
        });
    }),
    ("Mailbox::recv_batch_timeout", |pool| {
        let hub = Hub::new(pool).unwrap();
        let mailbox = hub.mailbox("a", 8).unwrap();
        thread::scope(|scope| {
            later(scope, || assert_eq!(hub.publish("a", "!").unwrap().matched, 1));
            assert_eq!(mailbox.recv_batch_timeout(&mut Vec::new(), 8, MAX).unwrap(), 1);
        });
    }),
    ("ReplayMailbox::suspend", |pool| {
        let hub = Hub::builder(pool).history(History::of("a")).build().unwrap();
        let mailbox = hub.replay("a", ReplayFrom::Beginning).mailbox().unwrap();
        let allowed = "up to 100 years";
        assert!(mailbox.suspend(Some(MAX)).unwrap_err().to_string().contains(allowed));
    }),
    ("ReplayMailbox::recv_batch_timeout", |pool| {
        let hub = Hub::builder(pool).history(History::of("a")).build().unwrap();
        let mailbox = hub.replay("a", ReplayFrom::Beginning).mailbox().unwrap();
        thread::scope(|scope| {
            later(scope, || assert!(hub.publish("a", "!").unwrap().sequence > 0));
            let mut messages = Vec::new();
            while mailbox.recv_batch_timeout(&mut messages, 8, MAX).unwrap() == 0 {}
        });
    }),
    ("History::commit", |pool| {
        let history = History::of("a").commit(8, MAX);
        refused(Hub::builder(pool).history(history).build(), "up to an hour");
    }),
    ("Limits::age", |pool| {
        let keep =
            |age| Hub::builder(pool).history(History::of("a").keep(Limits::unlimited().age(age)));
        refused(keep(MAX).build(), "100 years");
        drop(keep(YEARS).build().unwrap());
    }),
    // Servers.
    ("idle_timeout", |pool| echoes(Server::builder(pool).idle_timeout(MAX))),
    ("read_timeout", |pool| echoes(Server::builder(pool).read_timeout(MAX))),
    ("stall_timeout", |pool| echoes(Server::builder(pool).stall_timeout(MAX))),
    ("linger", |pool| echoes(Server::builder(pool).linger(MAX))),
    ("keep_alive", |pool| {
        let builder = Server::builder(pool).listen("127.0.0.1:0").keep_alive(MAX);
        refused(builder.serve(|_: &Conn| Echo), "1 s to 32767 s");
        let builder = Server::builder(pool).outgoing(Outgoing::new().keep_alive(MAX));
        refused(builder.serve(|_: &Conn| Echo), "1 s to 32767 s");
    }),
    ("ServerBuilder::connect_timeout", |pool| {
        let server = echoes_at(Server::builder(pool).connect_timeout(MAX).listen("127.0.0.1:0"));
        let address = server.addresses()[0].clone();
        let conn = server.connect(address, Echo).unwrap();
        until("both ends are there", || server.stats().accepted == 1);
        conn.close().unwrap();
        assert!(server.drain(MAX).drained);
    }),
    ("Conn::set_deadline", |pool| echoes(Server::builder(pool))),
    ("Server::drain", |pool| echoes(Server::builder(pool))),
    ("Strand::drain", |pool| {
        let strand = pool.strand().unwrap();
        strand.post(|| thread::sleep(20 * MS)).unwrap();
        assert!(strand.drain(MAX));
    }),
    ("UdpSocket::drain", |pool| {
        let socket = UdpSocket::builder(pool).bind("127.0.0.1:0").serve(Nothing).unwrap();
        let _report = socket.drain(MAX);
    }),
    ("HttpBuilder::head_timeout", |pool| http(Http::builder(pool).head_timeout(MAX))),
    ("HttpBuilder::body_timeout", |pool| {
        http(Http::builder(pool).body_timeout(MAX).body_rate(u64::MAX))
    }),
    ("HttpBuilder::keep_alive_timeout", |pool| http(Http::builder(pool).keep_alive_timeout(MAX))),
    ("Http::drain", |pool| http(Http::builder(pool))),
];

fn drivers() -> Vec<(&'static str, Driver)> {
    [
        DRIVERS,
        #[cfg(feature = "nats")]
        bridges::DRIVERS,
    ]
    .concat()
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, range: &str) {
    let error = result.err().expect("it is refused");
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert!(error.to_string().contains(range), "{error} does not say {range}");
}

fn later<'scope>(scope: &'scope thread::Scope<'scope, '_>, act: impl FnOnce() + Send + 'scope) {
    scope.spawn(move || {
        // So that it is waited for, as a rule.
        thread::sleep(20 * MS);
        act();
    });
}

fn serves(pool: &Pool) {
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
}

#[track_caller]
fn longest(backoff: Backoff) {
    assert_eq!(backoff.delay(1, 1), YEARS);
    assert_eq!(backoff.delay(u32::MAX, 1), YEARS);
}

#[track_caller]
fn next(retry: Retry) {
    assert_eq!(retry.next(1, Duration::ZERO, None, 1).unwrap(), YEARS);
}

/// It has failed once, and waits for its next attempt.
#[track_caller]
fn waits(task: paceline::task::TaskHandle<()>) {
    until("it waits", || task.status() == Status::Retrying);
    assert!(task.cancel());
}

fn kind(pool: &Pool, set: impl Fn(TaskTypeBuilder<'_>, Duration) -> TaskTypeBuilder<'_>) {
    let workers = WorkerPool::new(pool);
    refused(set(workers.task_type("refused"), MAX).build(), "100 years");
    let kind = set(workers.task_type("kind"), YEARS).build().unwrap();
    let task = kind.submit(|_: &Attempt<'_>| ()).map_err(drop).unwrap();
    assert_eq!(task.wait().unwrap().status, Status::Completed);
}

type Work = fn(&Attempt<'_>);

fn task(pool: &Pool, set: impl Fn(TaskBuilder<'_, Work>) -> TaskBuilder<'_, Work>) {
    let workers = WorkerPool::new(pool);
    let work: Work = |_| thread::sleep(5 * MS);
    let task = set(workers.task("task", work)).full(OverloadPolicy::Wait(MAX));
    let task = task.submit().map_err(drop).unwrap();
    assert_eq!(task.wait().unwrap().status, Status::Completed);
}

fn answering(pool: &Pool) -> (Hub, Subscription) {
    let hub = Hub::new(pool).unwrap();
    let replier = hub.clone();
    let answer = move |message: &Message<'_>| {
        thread::sleep(20 * MS);
        let reply_to = message.headers().get("Reply-To").unwrap().to_owned();
        let _ = replier.publish(&reply_to, "!").unwrap();
    };
    let subscription = hub.subscribe("ask", answer).unwrap();
    (hub, subscription)
}

struct Echo;

impl ConnHandler for Echo {
    fn open(&mut self, conn: &Conn) -> Accept {
        conn.set_deadline(Some(MAX));
        Accept::Yes
    }
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let _ = conn.write(bytes);
        bytes.len()
    }
}

fn echoes_at(builder: ServerBuilder) -> Server {
    builder.serve(|_: &Conn| Echo).unwrap()
}

/// A connection lives while nothing happens, is served, and ends.
fn echoes(builder: ServerBuilder) {
    use std::io::{Read, Write};
    let server = echoes_at(builder.listen("127.0.0.1:0"));
    let paceline::net::Address::Tcp(address) = server.addresses()[0].clone() else {
        unreachable!("it is TCP")
    };
    let mut client = std::net::TcpStream::connect(address).unwrap();
    for _ in 0..2 {
        thread::sleep(5 * MS);
        client.write_all(b"!").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
    }
    drop(client);
    assert!(server.drain(MAX).drained);
}

fn http(builder: paceline::http::HttpBuilder) {
    use std::io::{Read, Write};
    let http = builder.listen("127.0.0.1:0");
    let http = http.route("PUT", "/", |_, response| response.text("fine")).serve().unwrap();
    let paceline::net::Address::Tcp(address) = http.addresses()[0].clone() else {
        unreachable!("it is TCP")
    };
    let mut client = std::net::TcpStream::connect(address).unwrap();
    for part in ["PUT / HTTP/1.1\r\nHost: a\r\n", "Content-Length: 5\r\n\r\nhe", "llo"] {
        client.write_all(part.as_bytes()).unwrap();
        thread::sleep(5 * MS);
    }
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(client);
    assert!(http.drain(MAX));
}

struct Nothing;

impl DatagramHandler for Nothing {
    fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {}
}

#[test]
fn every_place_that_takes_a_time_has_a_driver() {
    let takes = |signature: &str| {
        let taken = signature.rsplit_once(" -> ").map_or(signature, |(taken, _)| taken);
        taken.contains("Duration")
    };
    let functions = places::functions();
    let found = functions.iter().filter(|place| !place.is_of_trait && takes(&place.signature));
    let found: BTreeSet<&str> = found.map(|place| &*place.name).collect();
    let driven: BTreeSet<&str> = drivers().iter().map(|(place, _)| *place).collect();
    assert!(found.len() > 60, "the sources were not understood: {found:?}");
    let forgotten: Vec<_> = found.difference(&driven).collect();
    assert!(forgotten.is_empty(), "places without a driver: {forgotten:?}");
    let gone: Vec<_> = driven.difference(&found).collect();
    assert!(gone.is_empty(), "drivers without a place: {gone:?}");
}

#[test]
fn the_longest_time_is_taken_or_refused_with_its_range() {
    in_child_blocking(&[libc::SIGTERM, libc::SIGINT], || {
        let _guard = hang_guard();
        let mut failed = Vec::new();
        for (place, drive) in drivers() {
            eprintln!("{place}");
            let driven = std::panic::catch_unwind(|| {
                let pool = Pool::builder().threads(2).build().unwrap();
                drive(&pool);
                serves(&pool);
                assert!(pool.shutdown(LONG).drained);
                let audit = pool.audit();
                assert!(audit.balances(), "{audit:?}");
            });
            if driven.is_err() {
                failed.push(place);
            }
        }
        assert!(failed.is_empty(), "{failed:?}");
    });
}
