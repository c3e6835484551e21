//! What runs around each attempt: for tracing, limits of one's own, or looking at failures.
//!
//! ```text
//!   first.before ─► second.before ─► function ─► second.on_error, after ─► first.on_error, after
//!                        └─ refuses: neither the function nor its own on_error and after ─┘
//! ```

use super::attempt::{Attempt, Fault};
use super::observe::tell_middleware;
use super::task_type::TaskTypeInner;
use crate::contain::Contained;
use crate::pool::{contain, discard, message_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Something that runs around each attempt of every task of a worker pool, on the attempt's own thread
/// and within its time; see [`WorkerPoolBuilder::middleware`](super::WorkerPoolBuilder::middleware). It
/// runs at several threads at once, and should be short.
///
/// ```
/// use paceline::{Pool, task::{Attempt, Fault, Middleware, WorkerPool}};
/// use std::sync::Arc;
///
/// struct NoMondays;
///
/// impl Middleware for NoMondays {
///     fn before(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
///         match attempt.name() {
///             "monday" => Err(Fault::permanent("not on a Monday")),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::builder(&Pool::new()?).middleware(Arc::new(NoMondays)).build()?;
/// let task = workers.task("monday", |_: &Attempt<'_>| Ok::<_, String>(())).submit()?;
/// assert_eq!(task.wait()?.result.unwrap_err().to_string(), "not on a Monday");
/// # Ok(())
/// # }
/// ```
pub trait Middleware: Send + Sync {
    /// Before the function.
    ///
    /// # Errors
    /// A [`Fault`] refuses the attempt, which fails with it as if the function had returned it: so the
    /// task may be tried again. A panic does, too.
    fn before(&self, _attempt: &Attempt<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// After the function, if `before` let the attempt pass, whatever came of it. A panic is dropped.
    fn after(&self, _attempt: &Attempt<'_>) {}

    /// Before `after`, if the attempt has failed: by the function's word or panic, or because another
    /// middleware, between this one and the function, has refused it. A panic is dropped.
    fn on_error(&self, _attempt: &Attempt<'_>, _fault: &Fault) {}
}

/// Runs `work`, and what is around it.
#[cold]
pub(super) fn around<T>(
    task_type: &'static TaskTypeInner,
    attempt: &Attempt<'_>,
    work: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let Some(common) = task_type.common() else { return work() };
    through(task_type, &common.middleware, attempt, work)
}

fn through<T>(
    task_type: &'static TaskTypeInner,
    layers: &[Contained<Arc<dyn Middleware>>],
    attempt: &Attempt<'_>,
    work: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let Some((outer, inner)) = layers.split_first() else { return work() };
    caught(|| outer.before(attempt))?;
    let result = through(task_type, inner, attempt, work);
    if let Err(fault) = &result
        && contain(|| outer.on_error(attempt, fault)).is_none()
    {
        tell_middleware(task_type, "on_error");
    }
    if contain(|| outer.after(attempt)).is_none() {
        tell_middleware(task_type, "after");
    }
    result
}

/// A panic is a fault, too.
#[inline]
pub(super) fn caught<T>(f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let fault = Fault::panicked(message_of(&*panic));
        discard(panic);
        Err(fault)
    })
}
