//! What runs around each attempt: for tracing, limits of one's own, or looking at failures.
//!
//! ```text
//!   first.before ─► second.before ─► function ─► second.on_error, after ─► first.on_error, after
//!                        └─ refuses: neither the function nor its own on_error and after ─┘
//! ```

use crate::contain::Contained;
use crate::pool::{contain, discard, message_of};
use crate::task::attempt::fault::Fault;
use crate::task::attempt::{Attempt, Middleware};
use crate::task::common::TaskTypeInner;
use crate::task::result::observe::tell_middleware;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs `work`, and what is around it.
#[cold]
pub(in crate::task) fn around<T>(
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
pub(in crate::task) fn caught<T>(f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let fault = Fault::panicked(message_of(&*panic));
        discard(panic);
        Err(fault)
    })
}
