//! What runs around attempts.

use super::common::{Gate, hang_guard, quiet_panic};
use super::kit::{pool, settled};
use paceline::task::{Attempt, Fault, Middleware, Retry, Status, WorkerPool};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Lines = Arc<Mutex<Vec<String>>>;

/// Writes down what it hears, and does what it is told by the task's name.
struct Scribe(&'static str, Lines);

impl Scribe {
    fn note(&self, what: &str) {
        self.1.lock().unwrap().push(format!("{} {what}", self.0));
    }
}

impl Middleware for Scribe {
    fn before(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
        self.note("before");
        match (self.0, attempt.name(), attempt.number()) {
            ("inner", "refused", 1) => Err(Fault::new("not yet")),
            ("inner", "refused for good", _) => Err(Fault::permanent("never")),
            ("inner", "panics before", _) => quiet_panic("inside"),
            _ => Ok(()),
        }
    }

    fn after(&self, attempt: &Attempt<'_>) {
        self.note("after");
        if attempt.name() == "panics after" {
            quiet_panic("too late to matter");
        }
    }

    fn on_error(&self, attempt: &Attempt<'_>, fault: &Fault) {
        self.note(fault.message());
        if attempt.name() == "panics after" {
            quiet_panic("too late to matter");
        }
    }
}

fn workers(pool: &paceline::Pool) -> (WorkerPool, Lines) {
    let lines = Lines::default();
    let scribe = |name| Arc::new(Scribe(name, Arc::clone(&lines)));
    let builder = WorkerPool::builder(pool).middleware(scribe("outer")).middleware(scribe("inner"));
    (builder.build().unwrap(), lines)
}

fn took(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut lines.lock().unwrap())
}

#[test]
fn it_runs_around_each_attempt_the_first_one_outermost() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (workers, lines) = workers(&pool);
    let inner = Arc::clone(&lines);
    let work = move |attempt: &Attempt<'_>| {
        inner.lock().unwrap().push("function".into());
        if attempt.number() == 1 { Err(Fault::new("once")) } else { Ok(()) }
    };
    let retry = Retry::fixed(1, Duration::ZERO);
    let report = workers.task("t", work).retry(retry).submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Completed, 2));
    let first = ["outer before", "inner before", "function"];
    let failed = ["inner once", "inner after", "outer once", "outer after"];
    let second = ["inner after", "outer after"];
    assert_eq!(took(&lines), [&first[..], &failed, &first, &second].concat());
    settled(&workers);
}

#[test]
fn it_may_refuse_an_attempt() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (workers, lines) = workers(&pool);
    let retry = Retry::fixed(1, Duration::ZERO);
    let task =
        workers.task("refused", |attempt: &Attempt<'_>| attempt.number()).retry(retry.clone());
    assert_eq!(task.submit().unwrap().wait().unwrap().result.unwrap(), 2);
    let refused = ["outer before", "inner before", "outer not yet", "outer after"];
    let passed = ["outer before", "inner before", "inner after", "outer after"];
    assert_eq!(took(&lines), [&refused[..], &passed].concat());
    let task =
        workers.task("refused for good", |_: &Attempt<'_>| ()).retry(retry).submit().unwrap();
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Failed, 1));
    assert_eq!(report.result.unwrap_err().message(), "never");
    settled(&workers);
}

#[test]
fn its_panics_are_its_own() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (workers, lines) = workers(&pool);
    let report =
        workers.task("panics before", |_: &Attempt<'_>| ()).submit().unwrap().wait().unwrap();
    let fault = report.result.unwrap_err();
    assert_eq!(
        (report.status, fault.message(), fault.is_panic()),
        (Status::Failed, "inside", true)
    );
    assert_eq!(took(&lines), ["outer before", "inner before", "outer inside", "outer after"]);
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    let report = workers.task("panics after", fails).submit().unwrap().wait().unwrap();
    assert_eq!(report.result.unwrap_err().message(), "no");
    let report =
        workers.task("panics after", |_: &Attempt<'_>| 7).submit().unwrap().wait().unwrap();
    assert_eq!(report.result.unwrap(), 7);
    settled(&workers);
}

/// A task that never begins has no attempt to run around.
#[test]
fn what_does_not_begin_passes_it_by() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (workers, lines) = workers(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    let second = workers.task("second", |_: &Attempt<'_>| ()).submit().unwrap();
    assert!(second.cancel());
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
    assert_eq!(took(&lines).len(), 4);
}
