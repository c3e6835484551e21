//! What a program holds of a worker pool.

use crate::pool::Pool;
use crate::task::common::Common;
use core::fmt;
use std::sync::Arc;

/// A worker pool over a [`Pool`], whose threads run its tasks beside everything else. Clones are the
/// same worker pool. What it has of its own, some 6 KB and what is known of its names, is the pool's, and is
/// freed when that is gone and the last of its tasks' handles.
///
/// ```
/// use paceline::{Lane, Pool};
/// use paceline::task::{Attempt, Fault, Retry, Status, WorkerPool};
/// use std::time::Duration;
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let workers = WorkerPool::new(&pool);
/// let task = workers
///     .task("resize", |attempt: &Attempt| match attempt.number() {
///         1 => Err(Fault::new("the disk was busy")),
///         _ => Ok(640 * 480),
///     })
///     .lane(Lane::High)
///     .retry(Retry::fixed(2, Duration::from_millis(1)))
///     .timeout(Duration::from_secs(2))
///     .submit()
///     .expect("an open pool");
/// let report = task.wait()?;
/// assert_eq!((report.status, report.attempts), (Status::Completed, 2));
/// assert_eq!(report.result.unwrap(), 307_200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct WorkerPool {
    pub(super) pool: Pool,
    pub(super) common: Arc<Common>,
    #[expect(dead_code, reason = "held")]
    pub(super) handles: Arc<Handles>,
}

/// What all clones of one worker pool have. When the last of them is gone nobody can end the worker
/// pool any more: what waits for a host ends, and attempts that are out have failed.
pub(super) struct Handles(pub(super) Arc<Common>);

impl Drop for Handles {
    fn drop(&mut self) {
        if !self.0.shared.is_forked() {
            self.0.wait_lists.attempts.end();
            self.0.wait_lists.attempts.abandon();
            self.0.is_left.store(true, crate::sync::atomic::Ordering::Relaxed);
        }
    }
}

impl WorkerPool {
    /// The pool whose threads run the tasks.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("pool", &self.pool).finish_non_exhaustive()
    }
}
