//! The structured log: what each component tells, where it goes, and that it holds up and breaks nobody.
#![allow(unsafe_code, reason = "puts a file in the place of the standard output")]

mod common;

use common::{
    Count, Gate, LONG, PATIENCE, Random, finish, forked, hang_guard, in_child, in_child_blocking,
    limit, lowest_free, quiet_panic, said_in_child, until,
};
use paceline::log::{Component, Level, Levels, Log, LogBuilder, Record, Value};
use paceline::task::{Attempt, Fault, Retry, Status, WorkerPool};
use paceline::{Error, Pool};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use std::{env, process};

/// A folder of its own, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("paceline-log-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All records that a log has told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Record>>>);

impl Told {
    /// A log of these levels, and what it tells.
    fn log(levels: &str) -> (Log, Self) {
        let told = Self::default();
        (told.build(quiet().levels(levels.parse().unwrap())), told)
    }

    fn build(&self, builder: LogBuilder) -> Log {
        let place = self.clone();
        builder
            .callback(move |record| place.0.lock().unwrap().push(record.clone()))
            .build()
            .unwrap()
    }

    fn all(&self) -> Vec<Record> {
        self.0.lock().unwrap().clone()
    }

    fn of(&self, event: &str) -> Vec<Record> {
        self.all().into_iter().filter(|record| record.event == event).collect()
    }

    /// Waits for a record of this event, and returns the first.
    #[track_caller]
    fn until(&self, event: &str) -> Record {
        until(event, || !self.of(event).is_empty());
        self.of(event).remove(0)
    }

    /// Who told which event, at which level, without repetitions.
    fn events(&self) -> BTreeMap<&'static str, (Component, Level)> {
        let one = |record: Record| (record.event, (record.component, record.level));
        self.all().into_iter().map(one).collect()
    }
}

/// Only the callback and the file.
fn quiet() -> LogBuilder {
    Log::builder().facade(false)
}

fn pool(log: &Log) -> Pool {
    Pool::builder().threads(2).name("test").log(log).build().unwrap()
}

#[track_caller]
fn field(record: &Record, name: &str) -> Value {
    let found = record.fields.iter().find(|(its, _)| its == name);
    found.unwrap_or_else(|| panic!("no {name} in {record:?}")).1.clone()
}

#[track_caller]
fn number(record: &Record, name: &str) -> u64 {
    match field(record, name) {
        Value::U64(number) => number,
        other => panic!("{name} is {other:?}"),
    }
}

#[track_caller]
fn text(record: &Record, name: &str) -> String {
    match field(record, name) {
        Value::Text(text) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Tells so many records at debug, each on the calling thread.
fn tell(pool: &Pool, count: usize) {
    for number in 0..count {
        let now = pool.stats().active;
        pool.set_active(if now == 1 { 2 } else { 1 }).unwrap();
        assert_ne!(pool.stats().active, now, "{number}");
    }
}

fn lines(path: &Path) -> Vec<Json> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a torn line");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// --- what components tell ---------------------------------------------------------------------------

#[test]
fn a_pool_tells_of_its_life() {
    let _guard = hang_guard();
    let before = SystemTime::now();
    let (log, told) = Told::log("debug");
    let slow = Count::new();
    let seen = slow.clone();
    let builder = Pool::builder().threads(2).name("test").log(&log);
    let pool = builder.on_slow(Duration::from_micros(10), move |_| seen.up()).build().unwrap();
    pool.post(|| quiet_panic("a task's fault")).unwrap();
    let mut tick = Some(());
    let handle = pool.every(Duration::from_millis(1), move || match tick.take() {
        Some(()) => paceline::Flow::Wait,
        None => quiet_panic("a handler's fault"),
    });
    until("both panics", || told.of("pool.panicked").len() == 2);
    let gate = Gate::new();
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    gate.until_entered(1);
    slow.until(1);
    gate.open();
    tell(&pool, 2);
    drop(handle);
    let report = pool.shutdown(LONG);
    assert!(report.drained);
    log.close(PATIENCE).unwrap();
    let all = told.all();
    let position = |event| all.iter().position(|record| record.event == event).unwrap();
    let order = ["pool.started", "pool.panicked", "pool.active", "pool.draining", "pool.stopping"];
    let order = order.map(position);
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(all.last().unwrap().event, "pool.stopped");
    for record in &all {
        assert_eq!((record.component, &*record.pool), (Component::Pool, "test"));
        assert!(!record.message.is_empty() && before <= record.time);
    }
    let started = &told.of("pool.started")[0];
    assert_eq!((number(started, "threads"), number(started, "sets")), (2, 1));
    let mut panics: Vec<_> = told
        .of("pool.panicked")
        .iter()
        .map(|one| (text(one, "what"), one.message.clone()))
        .collect();
    panics.sort();
    let expected = [("task", "a task's fault"), ("timer", "a handler's fault")];
    assert_eq!(panics, expected.map(|(what, says)| (what.to_owned(), says.to_owned())));
    assert!(told.of("pool.panicked").iter().all(|one| number(one, "thread") < 2));
    assert!(told.events().keys().any(|event| matches!(*event, "pool.slow" | "pool.was_slow")));
    let stopped = told.of("pool.stopped");
    assert_eq!((stopped.len(), told.of("pool.draining").len()), (1, 1));
    assert_eq!((number(&stopped[0], "drained"), number(&stopped[0], "stuck")), (1, 0));
    let count = |level| all.iter().filter(|record| record.level == level).count();
    assert_eq!((count(Level::Error), count(Level::Trace)), (2, 0));
}

#[test]
fn a_thread_that_does_not_come_back_is_told() {
    let _guard = hang_guard();
    let (log, told) = Told::log("info");
    let pool = pool(&log);
    let gate = Gate::new();
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    gate.until_entered(1);
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!(report.stuck.len(), 1);
    let stuck = told.until("pool.thread_stuck");
    assert_eq!((stuck.level, number(&stuck, "thread")), (Level::Error, report.stuck[0] as u64));
    gate.open();
}

#[test]
fn a_host_that_is_elsewhere_is_no_fault() {
    let _guard = hang_guard();
    let (log, told) = Told::log("trace");
    let pool = Pool::builder().threads(0).max_joined(1).log(&log).build().unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    let host = std::thread::spawn({
        let pool = pool.clone();
        move || pool.join(PATIENCE)
    });
    gate.until_entered(1);
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!(report.stuck.len(), 1);
    told.until("pool.stopped");
    assert_eq!(told.of("pool.thread_stuck").len(), 0);
    gate.open();
    host.join().unwrap().unwrap();
}

#[test]
fn a_server_tells_of_listeners_and_of_connections_that_fare_badly() {
    use paceline::net::{Conn, ConnHandler, Server};
    struct Faulty;
    impl ConnHandler for Faulty {
        fn data(&mut self, _: &Conn, _: &[u8]) -> usize {
            quiet_panic("a connection's fault")
        }
    }
    let _guard = hang_guard();
    let (log, told) = Told::log("debug,net=trace");
    let pool = pool(&log);
    let builder = Server::builder(&pool).listen("127.0.0.1:0").max_connections(1);
    let server = builder.serve(|_| Faulty).unwrap();
    let address = server.addresses()[0].to_string();
    let mut first = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
    until("the first", || server.stats().open == 1);
    let second = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
    let refused = told.until("connection.refused");
    assert_eq!((refused.level, number(&refused, "max_connections")), (Level::Debug, 1));
    assert_eq!(text(&refused, "peer"), second.local_addr().unwrap().to_string());
    first.write_all(b"x").unwrap();
    let closed = told.until("connection.closed");
    assert_eq!((closed.level, &*closed.message), (Level::Debug, "Panicked"));
    assert_eq!(text(&closed, "peer"), first.local_addr().unwrap().to_string());
    assert_eq!(told.until("pool.panicked").message, "a connection's fault");
    until("its seat is free", || server.stats().open == 0);
    let third = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
    until("the third", || server.stats().open == 1);
    assert!(!server.drain(Duration::ZERO).drained);
    log.flush(PATIENCE).unwrap();
    for event in ["listener.opened", "listener.closed", "connection.refused", "connection.closed"] {
        assert_eq!(text(&told.of(event)[0], "address"), address);
    }
    let draining = &told.of("server.draining")[0];
    assert_eq!((number(draining, "connections"), number(draining, "time_ns")), (1, 0));
    assert_eq!(number(&told.of("server.cut_off")[0], "connections"), 1);
    assert_eq!(number(&told.of("server.drained")[0], "drained"), 0);
    let events = told.events();
    let level = |event| events[event];
    assert_eq!(level("listener.opened"), (Component::Net, Level::Info));
    assert_eq!(level("listener.closed"), (Component::Net, Level::Info));
    assert_eq!(level("server.cut_off"), (Component::Net, Level::Warn));
    assert_eq!(level("server.drained"), (Component::Net, Level::Info));
    drop(third);
    finish(&pool);
}

/// Goal: a server without descriptors says once that it pauses, and once that it goes on.
#[test]
fn a_server_without_descriptors_says_so_once() {
    in_child(|| {
        use paceline::net::{Conn, ConnHandler, Server};
        struct Ignores;
        impl ConnHandler for Ignores {
            fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
                bytes.len()
            }
        }
        let (log, told) = Told::log("info");
        let pool = pool(&log);
        let server = Server::builder(&pool).listen("127.0.0.1:0").serve(|_| Ignores).unwrap();
        let address = server.addresses()[0].tcp().unwrap();
        let first = TcpStream::connect(address).unwrap();
        until("the first", || server.stats().open == 1);
        // The client's end of the next one takes the last descriptor.
        let before = limit(libc::RLIMIT_NOFILE, lowest_free() + 1);
        let second = TcpStream::connect(address).unwrap();
        let paused = told.until("accept.paused");
        assert_eq!((paused.level, paused.component), (Level::Warn, Component::Net));
        assert_eq!(text(&paused, "address"), server.addresses()[0].to_string());
        assert!(paused.message.contains("Too many open files"), "{paused}");
        // It looks again, and has no more to say.
        until("other looks", || {
            pool.stats().threads.iter().map(|one| one.handled).sum::<u64>() > 8
        });
        assert_eq!(told.of("accept.paused").len(), 1);
        limit(libc::RLIMIT_NOFILE, before);
        assert_eq!(told.until("accept.resumed").level, Level::Info);
        until("the second", || server.stats().open == 2);
        drop((first, second));
        log.flush(PATIENCE).unwrap();
        assert_eq!((told.of("accept.paused").len(), told.of("accept.resumed").len()), (1, 1));
        let _ = server.drain(LONG);
        finish(&pool);
    });
}

#[test]
#[cfg(feature = "http")]
fn http_tells_of_what_it_answers_in_a_handlers_place() {
    use paceline::http::{Http, Request, Response};
    let _guard = hang_guard();
    let (log, told) = Told::log("off,http=debug");
    let pool = pool(&log);
    let server = Http::builder(&pool)
        .listen("127.0.0.1:0")
        .route("GET", "/bad", |_: &Request, _: Response| quiet_panic("a route's fault"))
        .route("GET", "/good", |_: &Request, response: Response| response.text("ok"))
        .route("GET", "/none", |_: &Request, response: Response| drop(response))
        .route("GET", "/mark", |_: &Request, response: Response| {
            response.text("no number".parse::<u32>()?.to_string())?;
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .route("GET", "/late", |_: &Request, response: Response| {
            response.text("ok").map_err(|error| error.to_string())?;
            Err::<(), _>("it is answered already".to_owned())
        })
        .serve()
        .unwrap();
    let ask = |line: &str| {
        let mut client = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
        write!(client, "{line}\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer[9..12].parse::<u64>().unwrap()
    };
    let asked = [
        ("GET /good HTTP/1.1", 200, ""),
        ("GET /nowhere HTTP/1.1", 404, "NotFound"),
        ("POST /good HTTP/1.1", 405, "MethodNotAllowed"),
        ("GET  /good HTTP/1.1", 400, "BadRequest"),
        ("GET /bad HTTP/1.1", 500, "Panicked"),
        ("GET /none?secret=1 HTTP/1.1", 500, "Unanswered"),
        ("GET /late HTTP/1.1", 200, ""),
        ("GET /mark HTTP/1.1", 500, "Unanswered"),
    ];
    for (line, status, _) in asked {
        assert_eq!(ask(line), status, "{line}");
    }
    until("all refusals", || told.of("request.refused").len() == 4);
    log.flush(PATIENCE).unwrap();
    let refused = told.of("request.refused");
    let refused = refused.iter().map(|one| (number(one, "status"), one.message.clone()));
    let expected = asked[1..5].iter().map(|(_, status, says)| (*status, says.to_string()));
    assert!(refused.eq(expected), "{:?}", told.all());
    // Each names its request, as far as it could be read.
    let named = |one| (text(one, "method").to_owned(), text(one, "path").to_owned());
    let whole = told.of("request.refused");
    let names: Vec<_> = whole.iter().filter(|one| one.message != "BadRequest").map(named).collect();
    let names: Vec<_> = names.iter().map(|(method, path)| format!("{method} {path}")).collect();
    assert_eq!(names, ["GET /nowhere", "POST /good", "GET /bad"]);
    let panicked = told.of("handler.panicked");
    assert_eq!(&*panicked[0].message, "a route's fault");
    // What `?` returns is a failure, too, if nothing was answered.
    assert_eq!(&*panicked[1].message, "invalid digit found in string");
    assert_eq!((panicked.len(), named(&panicked[1])), (2, ("GET".into(), "/mark".into())));
    assert_eq!((server.stats().panics, server.stats().refused.unanswered), (2, 2));
    assert_eq!(named(&panicked[0]), ("GET".into(), "/bad".into()));
    assert!(text(&panicked[0], "peer").starts_with("127.0.0.1:"));
    let unanswered = told.until("request.unanswered");
    assert_eq!(named(&unanswered), ("GET".into(), "/none".into()));
    let events = told.events();
    assert_eq!(events["request.refused"], (Component::Http, Level::Debug));
    assert_eq!(events["handler.panicked"], (Component::Http, Level::Error));
    assert_eq!(events["request.unanswered"], (Component::Http, Level::Warn));
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(server.drain(LONG));
    finish(&pool);
}

#[test]
fn a_worker_pool_tells_of_failures_stuck_threads_and_its_end() {
    use paceline::task::{Middleware, Phases, Scaling};
    struct Faulty;
    impl Middleware for Faulty {
        fn after(&self, attempt: &Attempt<'_>) {
            if attempt.name() == "around" {
                quiet_panic("a middleware's fault")
            }
        }
    }
    let _guard = hang_guard();
    let (log, told) = Told::log("debug");
    let pool = pool(&log);
    let scaling = Scaling { period: Duration::from_millis(1), ..Scaling::default() };
    let builder = WorkerPool::builder(&pool).middleware(Arc::new(Faulty)).scaling(scaling);
    let workers = builder.build().unwrap();
    let end = |task: paceline::task::TaskHandle<()>| drop(task.wait());
    let twice = |attempt: &Attempt<'_>| match attempt.number() {
        1 => Err(Fault::new("once")),
        _ => Ok(()),
    };
    let retry = Retry::fixed(3, Duration::from_millis(1));
    end(workers.task("twice", twice).retry(retry).submit().unwrap());
    let never = |_: &Attempt<'_>| Err::<(), _>(Fault::permanent("never"));
    end(workers.task("never", never).submit().unwrap());
    let panics = |_: &Attempt<'_>| -> () { quiet_panic("a task's fault") };
    end(workers.task("panics", panics).submit().unwrap());
    end(workers.task("around", |_: &Attempt<'_>| ()).submit().unwrap());
    let gate = Gate::new();
    let held = gate.clone();
    let late = workers.task("late", move |_: &Attempt<'_>| held.wait());
    let late = late.timeout(Duration::from_millis(1)).submit().unwrap();
    gate.until_entered(1);
    end(late);
    let stuck = told.until("task.stuck");
    // The stuck thread's place is made up for, if there were not more at work before.
    let scaled = told.until("workers.scaled");
    gate.open();
    let returned = told.until("task.returned");
    assert_eq!(number(&stuck, "thread"), number(&returned, "thread"));
    assert!(number(&stuck, "elapsed_ns") >= 1_000_000);
    let report = workers.shutdown(Phases { drain: LONG, ..Phases::default() });
    assert!(report.drained);
    // Which is no news.
    let _ = workers.shutdown(Phases::default());
    log.flush(PATIENCE).unwrap();
    for (event, level, name, says) in [
        ("task.retried", Level::Debug, "twice", "once"),
        ("task.failed", Level::Debug, "never", "never"),
        ("task.panicked", Level::Error, "panics", "a task's fault"),
        ("middleware.panicked", Level::Error, "around", "a middleware has panicked"),
        ("task.stuck", Level::Warn, "late", "an attempt has not returned though its time is over"),
        ("task.returned", Level::Info, "late", "an attempt has returned after its task had ended"),
    ] {
        let [record] = &told.of(event)[..] else { panic!("{event}: {:?}", told.of(event)) };
        assert_eq!(
            (record.level, text(record, "name"), &*record.message),
            (level, name.into(), says)
        );
        assert_eq!(record.component, Component::Task);
    }
    assert_ne!(number(&scaled, "before"), number(&scaled, "threads"));
    for event in ["workers.draining", "workers.stopping", "workers.stopped"] {
        assert_eq!((told.of(event).len(), told.of(event)[0].level), (1, Level::Info), "{event}");
    }
    assert_eq!(number(&told.of("workers.stopped")[0], "drained"), 1);
    finish(&pool);
}

#[test]
fn a_hub_tells_by_the_log_what_it_tells_of_itself() {
    use paceline::hub::{Failure, Hub, Message, OnFailure, Overflow, Rate};
    let _guard = hang_guard();
    let (log, told) = Told::log("debug");
    let pool = pool(&log);
    let hub = Hub::new(&pool).unwrap();
    let full = hub.subscription("full").capacity(1).overflow(Overflow::DropNewest).pull().unwrap();
    let _ = hub.publish("full", "one").unwrap();
    assert_eq!(hub.publish("full", "too many").unwrap().dropped, 1);
    let lost = told.until("subscription.overflow");
    assert_eq!((number(&lost, "count"), text(&lost, "pattern")), (1, "full".into()));
    let faulty = |_: &Message<'_>| -> Result<(), Failure> { quiet_panic("a handler's fault") };
    let faulty =
        hub.subscription("bad").on_failure(OnFailure::dead_letter()).serve(faulty).unwrap();
    for _ in 0..4 {
        let _ = hub.publish("bad", "x").unwrap();
    }
    assert_eq!(
        text(&told.until("subscription.restarted"), "failure"),
        "panicked: a handler's fault"
    );
    assert_eq!(text(&told.until("subscription.suspended"), "pattern"), "bad");
    let one = Rate::new(1, LONG);
    let publisher = hub.publisher("greedy").quota(one).build().unwrap();
    until("a refusal", || publisher.publish("full", "x").is_err());
    assert_eq!(text(&told.until("publisher.refused"), "publisher"), "greedy");
    drop((full, faulty));
    until("the ends", || told.of("subscription.ended").len() == 2);
    let events = told.events();
    for (event, level) in [
        ("subscription.started", Level::Debug),
        ("subscription.ended", Level::Debug),
        ("subscription.overflow", Level::Warn),
        ("subscription.restarted", Level::Warn),
        ("subscription.suspended", Level::Error),
        ("publisher.refused", Level::Warn),
    ] {
        assert_eq!(events[event], (Component::Hub, level), "{event}");
    }
    assert!(lost.fields.iter().any(|(name, _)| name == "origin"));
    drop(hub);
    finish(&pool);
}

// --- levels -----------------------------------------------------------------------------------------

#[test]
fn levels_hold_for_each_component_and_may_change() {
    let _guard = hang_guard();
    let (log, told) = Told::log("info,pool=warn");
    let pool = pool(&log);
    tell(&pool, 2);
    log.set_levels(log.levels().with(Component::Pool, Level::Debug));
    tell(&pool, 3);
    log.set_levels(Levels::OFF);
    tell(&pool, 4);
    log.flush(PATIENCE).unwrap();
    assert_eq!((told.all().len(), told.of("pool.active").len()), (3, 3));
    assert_eq!(log.stats().told, 3);
}

/// Goal: what is below the level is not even made. Method: the only thing that counts is what the log is given.
#[test]
fn nothing_is_made_below_the_level() {
    let _guard = hang_guard();
    let (log, _told) = Told::log("off,net=trace");
    let pool = pool(&log);
    tell(&pool, 10);
    finish(&pool);
    log.close(PATIENCE).unwrap();
    let stats = log.stats();
    assert_eq!((stats.told, stats.dropped), (0, 0));
}

/// Goal: in a log that its worker pool was given, each task has one end, whatever became of it, with its figures; the
/// pool's own log has none. Method: tasks of every status but rejected.
#[test]
fn each_end_of_a_task_is_in_the_log_of_its_worker_pool() {
    let _guard = hang_guard();
    let ((pools, of_pool), (log, told)) = (Told::log("debug"), Told::log("info,task=debug"));
    let pool = pool(&pools);
    let workers = WorkerPool::builder(&pool).log(&log).build().unwrap();
    let mut tasks = vec![];
    for number in 0..12 {
        let work = move |attempt: &Attempt<'_>| match number {
            0 if attempt.number() == 1 => Err(Fault::new("once \"more\"\n")),
            8.. => Err(Fault::permanent("never")),
            _ => Ok(()),
        };
        let retry = Retry::fixed(5, Duration::from_millis(1));
        tasks.push(workers.task("count", work).retry(retry).submit().unwrap());
    }
    let late = workers.task("late", |_: &Attempt<'_>| ()).delay(LONG).submit().unwrap();
    assert!(late.cancel());
    let slow = |attempt: &Attempt<'_>| {
        while !attempt.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let slow = workers.task("slow", slow).timeout(Duration::from_millis(5)).retry(Retry::none());
    tasks.push(slow.submit().unwrap());
    tasks.into_iter().for_each(|task| drop(task.wait()));
    assert_eq!(late.wait().unwrap().status, Status::Cancelled);
    let ends = || {
        let events = ["task.completed", "task.failed", "task.cancelled", "task.timed_out"];
        events.map(|event| told.of(event).len())
    };
    until("the ends", || ends() == [8, 4, 1, 1]);
    let retried = told.until("task.retried");
    assert_eq!((&*retried.message, number(&retried, "attempt")), ("once \"more\"\n", 1));
    for end in told.of("task.completed").iter().chain(&told.of("task.failed")) {
        assert_eq!((end.level, &*end.pool, &*text(end, "name")), (Level::Debug, "test", "count"));
        assert!(number(end, "id") > 0 && number(end, "attempts") >= 1 && number(end, "thread") < 2);
        assert!(number(end, "queue_ns") < u64::MAX && number(end, "run_ns") < u64::MAX, "{end}");
    }
    assert!(told.of("task.failed").iter().all(|end| end.message == "never"));
    assert!(of_pool.all().iter().all(|record| record.component != Component::Task));
}

// --- sinks ------------------------------------------------------------------------------------------

/// Goal: whatever a message has in it, its line is one line of good JSON that says the same.
#[test]
fn lines_are_json_whatever_is_in_them() {
    let _guard = hang_guard();
    let folder = Folder::new("odd");
    let path = folder.0.join("odd.log");
    let log = quiet().file(&path).levels("info".parse().unwrap()).build().unwrap();
    let name = "a \"pool\"\\";
    let pool = Pool::builder().threads(1).name(name).log(&log).build().unwrap();
    let every: String = (0..=0x300).chain(0xFFFD..0x1_0010).filter_map(char::from_u32).collect();
    let odd = [every, "\r\n\t\0\u{2028}\u{7f}".into(), "\"}\n{\"".into(), String::new()];
    for text in odd.clone() {
        pool.post(move || std::panic::resume_unwind(Box::new(text))).unwrap();
    }
    until("what was told", || log.stats().told == 1 + 4);
    log.flush(PATIENCE).unwrap();
    let lines = lines(&path);
    let panics: Vec<_> = lines.iter().filter(|line| line["event"] == "pool.panicked").collect();
    assert_eq!((lines.len(), panics.len()), (5, 4));
    for (line, text) in panics.iter().zip(&odd) {
        assert_eq!((line["message"].as_str(), line["pool"].as_str()), (Some(&**text), Some(name)));
        let is_time = |time: &str| time.len() == 30 && time.ends_with('Z');
        assert!(line["time"].as_str().is_some_and(is_time), "{line}");
        assert_eq!((&line["level"], &line["component"]), (&"error".into(), &"pool".into()));
        assert_eq!(line["fields"], serde_json::json!({ "what": "task", "thread": 0 }));
        assert_eq!(line.as_object().unwrap().len(), 7);
    }
}

#[test]
fn files_are_rotated_and_no_record_is_lost() {
    let _guard = hang_guard();
    let folder = Folder::new("rotated");
    let path = folder.0.join("all.log");
    let builder = quiet().file(&path).max_size(2048).files(100);
    let log = builder.levels(Levels::all(Level::Debug)).build().unwrap();
    let pool = pool(&log);
    tell(&pool, 50);
    finish(&pool);
    log.close(PATIENCE).unwrap();
    let names = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = names.collect();
    assert!(files.len() > 3, "{files:?}");
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() <= 2048));
    let all: Vec<_> = files.iter().flat_map(|file| lines(file)).collect();
    let stats = log.stats();
    assert_eq!((all.len() as u64, stats.dropped, stats.errors), (stats.told, 0, 0));
    assert_eq!(all.iter().filter(|line| line["event"] == "pool.active").count(), 50);
}

/// Goal: what finds no room is counted exactly, and the log says so itself. Method: its thread stands still
/// while a known number is told, at random more often than there is room.
#[test]
fn losses_are_counted_exactly_and_told() {
    let _guard = hang_guard();
    let mut random = Random::new(11);
    for _ in 0..20 {
        let (told, gate) = (Told::default(), Gate::new());
        let (place, held) = (told.clone(), gate.clone());
        let builder = quiet().capacity(8).levels("off,pool=debug".parse().unwrap());
        let log = builder.callback(move |record| {
            held.wait();
            place.0.lock().unwrap().push(record.clone());
        });
        let log = log.build().unwrap();
        let pool = pool(&log);
        gate.until_entered(1);
        // It is at the first one, of the start.
        let count = random.below(30) as usize;
        tell(&pool, count);
        let dropped = count.saturating_sub(8) as u64;
        assert_eq!(log.stats().dropped, dropped, "{count}");
        gate.open();
        log.flush(PATIENCE).unwrap();
        assert_eq!(log.stats().told + dropped, 1 + count as u64);
        let reports = told.of("log.dropped");
        assert_eq!(reports.iter().map(|one| number(one, "count")).sum::<u64>(), dropped);
        assert_eq!(told.all().len() as u64, log.stats().told + reports.len() as u64);
        assert!(reports.iter().all(|one| one.component == Component::Log));
    }
}

#[test]
fn a_full_disk_is_counted_and_stops_nobody() {
    let _guard = hang_guard();
    let told = Told::default();
    let log = told.build(quiet().file("/dev/full").levels("off,pool=debug".parse().unwrap()));
    let pool = pool(&log);
    tell(&pool, 5);
    log.flush(PATIENCE).unwrap();
    let stats = log.stats();
    assert_eq!((stats.told, stats.dropped, stats.errors, told.all().len()), (6, 0, 6, 6));
    assert_eq!(stats.last_error.as_deref(), Some("No space left on device (os error 28)"));
}

/// Goal: a disk that is full takes nothing from others who write the same file, and tears no line; what of a batch is
/// whole is kept, and only the rest is counted as lost. Method: a limit of the size of files, in a child.
#[test]
fn a_write_that_fails_takes_nothing_from_others() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("others");
        let path = folder.0.join("all.log");
        let log = quiet().file(&path).levels("off,pool=debug".parse().unwrap()).build().unwrap();
        let pool = pool(&log);
        log.flush(PATIENCE).unwrap();
        let mut other = File::options().append(true).open(&path).unwrap();
        (0..81).for_each(|number| writeln!(other, "{{\"other\":{number}}}").unwrap());
        limit(libc::RLIMIT_FSIZE, fs::metadata(&path).unwrap().len() + 1000);
        tell(&pool, 30);
        log.flush(PATIENCE).unwrap();
        limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        tell(&pool, 1);
        log.flush(PATIENCE).unwrap();
        let (all, stats) = (lines(&path), log.stats());
        let others = all.iter().filter(|line| line["other"].is_number()).count();
        assert_eq!(others, 81);
        assert!(stats.errors > 0 && stats.errors < 30, "{stats:?}");
        assert_eq!((all.len() - others) as u64 + stats.errors, stats.told);
        finish(&pool);
    });
}

#[test]
fn a_callback_that_panics_is_counted_and_the_others_are_told() {
    let _guard = hang_guard();
    let folder = Folder::new("panics");
    let path = folder.0.join("all.log");
    let builder = quiet().file(&path).levels("off,pool=debug".parse().unwrap());
    let log = builder.callback(|_| quiet_panic("a callback's fault")).build().unwrap();
    let pool = pool(&log);
    tell(&pool, 5);
    log.flush(PATIENCE).unwrap();
    let stats = log.stats();
    assert_eq!((stats.told, stats.errors, lines(&path).len()), (6, 6, 6));
    assert_eq!(stats.last_error.as_deref(), Some("a callback panicked"));
}

/// Goal: a callback that uses what it logs does not keep the log busy for ever, and may not wait for it.
#[test]
fn what_a_callback_causes_is_not_logged() {
    let _guard = hang_guard();
    let (place, said) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(vec![])));
    let (own, errors) = (place.clone(), said.clone());
    let builder = quiet().levels("off,pool=debug".parse().unwrap()).callback(move |_| {
        if let Some((pool, log)) = &*own.lock().unwrap() {
            tell(pool, 2);
            let log: &Log = log;
            errors.lock().unwrap().push((log.flush(LONG), log.close(LONG)));
        }
    });
    let log = builder.build().unwrap();
    let pool = pool(&log);
    log.flush(PATIENCE).unwrap();
    *place.lock().unwrap() = Some((pool.clone(), log.clone()));
    for count in 1..=2 {
        // Without a look at what it is then: the callback changes it, and changes it back.
        pool.set_active(count).unwrap();
        log.flush(PATIENCE).unwrap();
        assert_eq!(log.stats().told, 1 + count as u64);
    }
    let said = said.lock().unwrap();
    let refused = |one: &_| matches!(one, (Err(Error::WouldDeadlock), Err(Error::WouldDeadlock)));
    assert!(said.len() == 2 && said.iter().all(refused), "{said:?}");
    drop(said);
    place.lock().unwrap().take();
}

#[test]
fn a_log_that_is_closed_has_told_everything_and_let_go() {
    let _guard = hang_guard();
    let (dropped, gate, told) = (Count::new(), Gate::new(), Count::new());
    let (held, on_drop, seen) = (gate.clone(), dropped.on_drop(), told.clone());
    let builder = quiet().levels("off,pool=debug".parse().unwrap()).callback(move |_| {
        let _owned = &on_drop;
        held.wait();
        seen.up();
    });
    let log = builder.build().unwrap();
    let pool = pool(&log);
    tell(&pool, 3);
    assert!(matches!(log.flush(Duration::ZERO), Err(Error::TimedOut)));
    assert!(matches!(log.close(Duration::ZERO), Err(Error::TimedOut)));
    // From here on nothing is taken.
    tell(&pool, 5);
    gate.open();
    log.close(PATIENCE).unwrap();
    assert_eq!((told.get(), dropped.get(), log.stats().told), (4, 1, 4));
    log.flush(PATIENCE).unwrap();
    log.close(PATIENCE).unwrap();
    finish(&pool);
    assert_eq!((told.get(), dropped.get()), (4, 1));
}

/// Goal: a log ends with the last that has it, and tells before what waits.
#[test]
fn a_log_that_is_dropped_lives_as_long_as_its_pools() {
    let _guard = hang_guard();
    let (dropped, told) = (Count::new(), Count::new());
    let (on_drop, seen) = (dropped.on_drop(), told.clone());
    let builder = quiet().levels("off,pool=info".parse().unwrap()).callback(move |_| {
        let _owned = &on_drop;
        seen.up();
    });
    let log = builder.build().unwrap();
    let pool = pool(&log);
    drop(log);
    finish(&pool);
    told.until(3);
    assert_eq!(dropped.get(), 0, "the pool is there");
    drop(pool);
    dropped.until(1);
    assert_eq!(told.get(), 3);
}

#[test]
fn settings_out_of_range_are_named() {
    for (builder, says) in [
        (quiet().max_size(1023), "max_size is 1023, but must be 1024 to 1099511627776"),
        (quiet().files(0), "files is 0, but must be 1 to 1000"),
        (quiet().capacity(0), "capacity is 0, but must be 1 to 1048576"),
    ] {
        assert_eq!(builder.build().unwrap_err().to_string(), says);
    }
}

/// Keeps what this file's tests log.
struct Kept;

static KEPT: Mutex<Vec<(String, log::Level, String)>> = Mutex::new(Vec::new());

impl log::Log for Kept {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let record = (record.target().to_owned(), record.level(), record.args().to_string());
        KEPT.lock().unwrap().push(record);
    }

    fn flush(&self) {}
}

#[test]
fn the_facade_is_told_under_the_component() {
    in_child(|| {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        let log = Log::builder().build().unwrap();
        let pool = pool(&log);
        pool.post(|| quiet_panic("a \"fault\"")).unwrap();
        until("the panic", || KEPT.lock().unwrap().len() == 2);
        finish(&pool);
        log.close(PATIENCE).unwrap();
        let kept = KEPT.lock().unwrap();
        let [started, panicked, draining, stopped] = &kept[..] else { panic!("{kept:?}") };
        assert_eq!(started.2, "pool.started: the pool has started threads=2 reserved=0 sets=1");
        assert_eq!((panicked.1, &*panicked.0), (log::Level::Error, "paceline::pool"));
        assert!(panicked.2.starts_with("pool.panicked: a \"fault\" what=task thread="));
        assert!(
            draining.2.starts_with("pool.draining: ") && stopped.2.starts_with("pool.stopped: ")
        );
        assert!([started, draining, stopped].iter().all(|one| one.1 == log::Level::Info));
    });
}

/// Goal: what the hub has always told the facade it tells once, whether there is a log or not.
#[test]
fn the_hubs_lines_reach_the_facade_once() {
    in_child(|| {
        use paceline::hub::Hub;
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        let (quiet_log, told) = Told::log("info");
        let logs = [None, Some(quiet_log), Some(Log::builder().build().unwrap())];
        for log in logs {
            let builder = Pool::builder().threads(2);
            let pool = match &log {
                Some(log) => builder.log(log).build().unwrap(),
                None => builder.build().unwrap(),
            };
            KEPT.lock().unwrap().clear();
            let hub =
                Hub::builder(&pool).stats_interval(Duration::from_millis(10)).build().unwrap();
            let _ = hub.publish("a", "b").unwrap();
            let of_hub = || {
                let kept = KEPT.lock().unwrap();
                let lines = kept.iter().filter(|(target, ..)| target == "paceline::hub");
                lines.cloned().collect::<Vec<_>>()
            };
            until("two lines", || of_hub().len() >= 2);
            drop(hub);
            finish(&pool);
            let lines = of_hub();
            assert!(lines.iter().all(|(_, level, _)| *level == log::Level::Info));
            let count = |start: &str| lines.iter().filter(|line| line.2.starts_with(start)).count();
            let (plain, records) = (count("published 1 ("), count("hub.statistics: published 1 ("));
            assert_eq!(plain + records, lines.len(), "{lines:?}");
            let tells_facade = log.is_some_and(|log| format!("{log:?}").contains("facade: true"));
            assert_eq!((plain == 0, records == 0), (tells_facade, !tells_facade), "{lines:?}");
        }
        assert!(!told.of("hub.statistics").is_empty());
    });
}

/// Goal: one log for all pools of a process that have none of their own.
#[test]
fn the_installed_log_is_that_of_all_pools_without_one() {
    in_child(|| {
        let (log, told) = Told::log("info");
        let (other, own) = Told::log("info");
        let before = Pool::builder().threads(1).name("before").build().unwrap();
        log.install().unwrap();
        let again = other.install().unwrap_err();
        assert_eq!(again.to_string(), "all 1 places for the log of the process are in use");
        let after = Pool::builder().threads(1).name("after").build().unwrap();
        let with_own = Pool::builder().threads(1).name("own").log(&other).build().unwrap();
        [before, after, with_own].iter().for_each(finish);
        log.close(PATIENCE).unwrap();
        other.close(PATIENCE).unwrap();
        let pools =
            |told: &Told| told.all().iter().map(|one| one.pool.to_string()).collect::<Vec<_>>();
        assert_eq!((pools(&told), pools(&own)), (vec!["after".into(); 3], vec!["own".into(); 3]));
    });
}

// --- the process ------------------------------------------------------------------------------------

#[test]
fn in_a_forked_child_a_log_does_nothing() {
    in_child(|| {
        let folder = Folder::new("forked");
        let path = folder.0.join("all.log");
        let told = Told::default();
        let log = told.build(quiet().file(&path).capacity(4).levels(Levels::all(Level::Trace)));
        let pool = pool(&log);
        log.flush(PATIENCE).unwrap();
        let before = fs::read(&path).unwrap();
        let (its_log, its_pool) = (log.clone(), pool.clone());
        let child = forked(move || {
            assert!(matches!(its_log.flush(LONG), Err(Error::Forked)));
            assert!(matches!(its_log.close(LONG), Err(Error::Forked)));
            let own = Pool::builder().threads(2).log(&its_log).build().unwrap();
            // More than would find room.
            tell(&own, 10);
            finish(&own);
            let stats = its_log.stats();
            assert_eq!((stats.told, stats.dropped), (1, 0));
            drop((own, its_pool, its_log));
        });
        assert_eq!(child, 0);
        assert_eq!((fs::read(&path).unwrap(), told.all().len()), (before, 1));
        log.set_levels(Levels::default());
        finish(&pool);
        log.close(PATIENCE).unwrap();
        assert_eq!(lines(&path).len(), 3);
    });
}

/// Goal: the library prints nothing but a line for a fault that nobody else is told of, and with a log nothing. Method:
/// in a process of its own, whose standard output and error are one file, a pool and what stands on it meet with trouble
/// of each kind.
#[test]
fn nothing_is_printed_but_faults() {
    in_child(|| {
        let folder = Folder::new("printed");
        let path = folder.0.join("output");
        let file = File::create(&path).unwrap();
        // SAFETY: this process is the test's own.
        let kept = unsafe { [libc::dup(1), libc::dup(2)] };
        for fd in [1, 2] {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), fd) }, fd);
        }
        trouble(&Pool::builder().threads(2).build().unwrap());
        let log = Log::builder().levels(Levels::all(Level::Trace)).build().unwrap();
        trouble(&pool(&log));
        log.close(PATIENCE).unwrap();
        assert!(log.stats().told > 5);
        for (fd, kept) in [1, 2].into_iter().zip(kept) {
            // SAFETY: as above.
            unsafe { libc::dup2(kept, fd) };
        }
        let said = fs::read_to_string(&path).unwrap();
        assert!(
            said.contains(": pool.panicked: a fault what=task ") && said.lines().count() == 1,
            "{said}"
        );
    });
}

fn trouble(pool: &Pool) {
    pool.post(|| quiet_panic("a fault")).unwrap();
    tell(pool, 2);
    {
        let hub = paceline::hub::Hub::new(pool).unwrap();
        let full = hub.mailbox("full", 1).unwrap();
        let _ = hub.publish("full", "x").unwrap();
        for _ in 0..2 {
            assert!(matches!(hub.publish("full", "x"), Err(Error::MailboxFull { .. })));
        }
        drop(full);
    }
    #[cfg(feature = "http")]
    {
        let server = paceline::http::Http::builder(pool).listen("127.0.0.1:0").serve().unwrap();
        let mut client = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(server.drain(LONG));
    }
    finish(pool);
}

// --- without a log --------------------------------------------------------------------------------

/// A timer fails, and then a thousand tasks, a subscription's handler and an HTTP route, in a pool that has no log of
/// its own; and a log's file cannot be written. Each of the library's tells of it in another way.
fn faults() {
    let pool = Pool::builder().threads(2).name("loud").build().unwrap();
    let timer = pool.every(Duration::from_millis(1), || quiet_panic("a timer's\nfault")).unwrap();
    until("the timer's end", || pool.stats().handles == 0);
    drop(timer);
    (0..1000).for_each(|_| pool.post(|| quiet_panic("a task's fault")).unwrap());
    {
        use paceline::hub::Hub;
        let hub = Hub::new(&pool).unwrap();
        let failing = hub
            .subscribe("a", |_: &paceline::hub::Message| -> () {
                quiet_panic("a subscriber's fault")
            })
            .unwrap();
        for _ in 0..20 {
            let _receipt = hub.publish("a", "x").unwrap();
        }
        until("the failures", || {
            hub.errors(&paceline::hub::ErrorFilter::all().event("subscription.")).len() > 1
        });
        drop(failing);
    }
    #[cfg(feature = "http")]
    {
        let server = paceline::http::Http::builder(&pool)
            .listen("127.0.0.1:0")
            .route("GET", "/bad", |_: &paceline::http::Request, _| quiet_panic("a route's fault"))
            .serve()
            .unwrap();
        let mut client = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
        write!(client, "GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    }
    let _report = pool.shutdown(LONG);
    let lost = quiet().file("/dev/full").levels("off,pool=info".parse().unwrap()).build().unwrap();
    let pool = self::pool(&lost);
    lost.flush(PATIENCE).unwrap();
    assert_eq!(lost.stats().errors, 1);
    finish(&pool);
}

/// Goal: a fault that nobody else is told of is one line for each kind, with the place, the text and the remedy,
/// however many there are.
#[test]
fn without_a_log_each_kind_of_fault_is_one_line() {
    let _guard = hang_guard();
    let said = said_in_child(|| {
        faults();
    });
    let has = |line: &str, words: &[&str]| words.iter().all(|word| line.contains(word));
    let remedy =
        "(give the pool a log to have this there, or call paceline's quiet() to have it nowhere)";
    assert!(said.iter().all(|line| line.ends_with(remedy)), "{said:#?}");
    let about = |event: &str| {
        let of: Vec<_> =
            said.iter().filter(|line| line.contains(&format!(": {event}: "))).collect();
        assert_eq!(of.len(), 1, "{event}: {said:#?}");
        of[0]
    };
    let timer = about("pool.panicked");
    assert!(has(timer, &["a timer's fault what=timer thread=", " pool=loud "]), "{timer}");
    assert!(about("log.failed").contains("No space left on device"), "{said:#?}");
    let mut kinds = 2;
    if true {
        kinds += said.iter().filter(|line| line.contains(": subscription.")).count();
        let failed = said.iter().find(|line| line.contains(": subscription.")).unwrap();
        assert!(has(failed, &["a subscriber's fault", "pattern=a"]), "{failed}");
    }
    if cfg!(feature = "http") {
        kinds += 1;
        let route = about("handler.panicked");
        assert!(has(route, &["a route's fault", "peer=127.0.0.1:"]), "{route}");
    }
    assert_eq!(said.len(), kinds, "{said:#?}");
}

/// Goal: a thread that does not come back is said once, however often the pool is ended.
#[test]
fn without_a_log_a_stuck_thread_is_one_line() {
    let _guard = hang_guard();
    let said = said_in_child(|| {
        let pool = Pool::builder().threads(1).name("held").build().unwrap();
        let gate = Gate::new();
        let held = gate.clone();
        pool.post(move || held.wait()).unwrap();
        gate.until_entered(1);
        for _ in 0..2 {
            assert_eq!(pool.shutdown(Duration::ZERO).stuck, [0]);
        }
        gate.open();
    });
    assert!(said.len() == 1, "{said:#?}");
    let means = "paceline: a handler has not returned until the end of its pool: ";
    assert!(said[0].starts_with(means) && said[0].contains("thread=0 pool=held"), "{said:#?}");
}

/// Goal: with a log that is installed, whatever its levels are, nothing is said but what is the log's own.
#[test]
fn with_a_log_nothing_is_said() {
    let _guard = hang_guard();
    let said = said_in_child(|| {
        quiet().levels("off".parse().unwrap()).build().unwrap().install().unwrap();
        faults();
    });
    assert!(said.len() == 1 && said[0].contains("log.failed"), "{said:#?}");
}

#[test]
fn who_wants_it_quiet_has_it_quiet() {
    let _guard = hang_guard();
    let said = said_in_child(|| {
        paceline::quiet(true);
        faults();
    });
    assert!(said.is_empty(), "{said:#?}");
}

/// Goal: with somebody who listens to the hub's own events, nothing is said of them.
#[test]
fn with_a_hook_nothing_is_said() {
    let _guard = hang_guard();
    let said = said_in_child(|| {
        use paceline::hub::{ErrorFilter, Hub, Message};
        let pool = Pool::builder().threads(1).build().unwrap();
        let hub = Hub::new(&pool).unwrap();
        let heard = Count::new();
        let hears = heard.clone();
        let listening =
            hub.subscribe("$SYS.subscription.>", move |_: &Message| hears.up()).unwrap();
        let failing = hub.subscribe("a", |_: &Message| -> () { quiet_panic("a fault") }).unwrap();
        for _ in 0..20 {
            let _receipt = hub.publish("a", "x").unwrap();
        }
        until("the failures", || {
            hub.errors(&ErrorFilter::all().event("subscription.")).len() > 1 && heard.get() > 1
        });
        drop((listening, failing));
        let _report = pool.shutdown(LONG);
    });
    assert!(said.is_empty(), "{said:#?}");
}

/// Goal: a standard error stream that nobody reads any more, is full, or is closed holds up and ends nothing.
#[test]
fn a_stream_that_takes_nothing_is_left_alone() {
    in_child(|| {
        let _guard = hang_guard();
        // As in a program of C's: such a signal would end the process.
        // SAFETY: no handler of a signal is set here.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written, which belong to this test.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        let at_stderr = |fd| {
            // SAFETY: both are descriptors of this process.
            assert!(unsafe { libc::dup2(fd, libc::STDERR_FILENO) } >= 0);
        };
        at_stderr(ends[1]);
        // SAFETY: nobody else uses this descriptor.
        assert_eq!(unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) }, 0);
        // SAFETY: the bytes are there.
        while unsafe { libc::write(ends[1], [0u8; 4096].as_ptr().cast(), 4096) } > 0 {}
        // SAFETY: as above.
        assert_eq!(unsafe { libc::fcntl(ends[1], libc::F_SETFL, 0) }, 0);
        let fault = |fault: &'static str| {
            let pool = Pool::builder().threads(1).build().unwrap();
            pool.post(move || quiet_panic(fault)).unwrap();
            finish(&pool);
        };
        // Of a kind of its own, or it would be counted only.
        fault("the pipe is full");
        // SAFETY: nobody else uses this descriptor.
        unsafe { libc::close(ends[0]) };
        let lost = quiet().file("/dev/full").build().unwrap();
        finish(&pool(&lost));
        lost.close(PATIENCE).unwrap();
        assert!(lost.stats().errors > 0);
        // SAFETY: nobody writes there any more but the library.
        unsafe { libc::close(libc::STDERR_FILENO) };
        {
            use paceline::hub::{ErrorFilter, Hub, Message};
            let pool = Pool::builder().threads(1).build().unwrap();
            let hub = Hub::new(&pool).unwrap();
            let failing =
                hub.subscribe("a", |_: &Message| -> () { quiet_panic("a fault") }).unwrap();
            for _ in 0..20 {
                let _receipt = hub.publish("a", "x").unwrap();
            }
            until("the failures", || {
                hub.errors(&ErrorFilter::all().event("subscription.")).len() > 1
            });
            drop(failing);
            let _report = pool.shutdown(LONG);
        }
    });
}
