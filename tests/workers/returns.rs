//! What a task's function may return, and what its errors become.

use super::common::hang_guard;
use super::kit::{pool, settled};
use paceline::task::{Attempt, Fault, Outcome, Plain, Retry, Status, TaskReport, WorkerPool};
use std::error::Error;
use std::fmt;
use std::time::Duration;

type AnyError = Box<dyn Error + Send + Sync>;

fn report<R>(workers: &WorkerPool, returned: fn() -> R) -> TaskReport<R::Value>
where
    R: Outcome + 'static,
{
    let task = workers.task("returns", move |_: &Attempt<'_>| returned());
    task.retry(Retry::fixed(1, Duration::ZERO)).submit().unwrap().wait().unwrap()
}

/// The message of what failed, and how many attempts there were.
fn failure<R: Outcome + 'static>(returned: fn() -> R) -> (String, u32) {
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let TaskReport { status, result, attempts, .. } = report(&workers, returned);
    assert_eq!(status, Status::Failed);
    let Err(fault) = result else { panic!("it failed") };
    settled(&workers);
    (fault.message().into(), attempts)
}

#[derive(Debug)]
struct Full(std::num::ParseIntError);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is full")
    }
}

impl Error for Full {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn full() -> Full {
    Full("x".parse::<u8>().unwrap_err())
}

/// As the error of `anyhow` does: it is no `Error`, and converts into a box of one.
struct Anyhow(AnyError);

impl<E: Error + Send + Sync + 'static> From<E> for Anyhow {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<Anyhow> for AnyError {
    fn from(error: Anyhow) -> Self {
        error.0
    }
}

#[test]
fn whatever_converts_into_a_boxed_error_is_one() {
    const WITH_CAUSE: &str = "the disk is full: invalid digit found in string";
    let _guard = hang_guard();
    let twice = |message: &str| (message.to_owned(), 2);
    assert_eq!(failure(|| Err::<(), &str>("too late")), twice("too late"));
    assert_eq!(failure(|| Err::<(), String>("too late".into())), twice("too late"));
    assert_eq!(failure(|| Err::<(), AnyError>("too late".into())), twice("too late"));
    assert_eq!(failure(|| Err::<(), Full>(full())), twice(WITH_CAUSE));
    assert_eq!(failure(|| -> Result<(), AnyError> { Err(full())? }), twice(WITH_CAUSE));
    assert_eq!(failure(|| -> Result<(), Anyhow> { Err(full())? }), twice(WITH_CAUSE));
    assert_eq!(failure(|| -> Result<(), Fault> { Err(full())? }), twice(WITH_CAUSE));
}

/// What a fault advises holds however it comes: there is no other attempt.
#[test]
fn a_fault_keeps_its_advice_and_its_code_in_a_box() {
    fn never() -> Fault {
        Fault::permanent("never").with_code(7)
    }
    let _guard = hang_guard();
    assert_eq!(failure(|| Err::<(), Fault>(never())), ("never".into(), 1));
    assert_eq!(failure(|| -> Result<(), AnyError> { Err(never())? }), ("never".into(), 1));
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let report = report(&workers, || -> Result<(), AnyError> { Err(never())? });
    let fault = report.result.unwrap_err();
    assert_eq!((fault.code(), fault.is_permanent()), (7, true));
    settled(&workers);
}

#[test]
fn values_of_any_type_are_returned() {
    #[derive(PartialEq, Debug)]
    struct Picture(u32);
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    assert_eq!(report(&workers, || Plain(Picture(3))).result, Ok(Picture(3)));
    assert_eq!(report(&workers, || Ok::<_, String>(Picture(3))).result, Ok(Picture(3)));
    // A result that is the value fails nothing.
    let inner = report(&workers, || Plain(Err::<(), _>(Picture(3))));
    assert_eq!((inner.status, inner.result), (Status::Completed, Ok(Err(Picture(3)))));
    assert_eq!(report(&workers, || "text").result, Ok("text"));
    assert_eq!(report(&workers, || Some(vec![(1u8, "x")])).result, Ok(Some(vec![(1, "x")])));
    settled(&workers);
}
