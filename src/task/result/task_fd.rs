//! A descriptor that tells of the ends of tasks.

use crate::error::{Error, Result};
use crate::sys::eventfd::EventFd;
use crate::task::result::handle::TaskHandle;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

/// A descriptor for a loop of one's own: it becomes readable when a task ends that it was given to, and
/// stays so until [`take`](Self::take). One may serve many tasks. Clones are the same. It is an eventfd
/// that never blocks, closed when the last clone is dropped and those tasks have ended.
///
/// ```
/// use paceline::Pool;
/// use paceline::task::{Attempt, TaskFd, WorkerPool};
///
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::new(&Pool::new()?);
/// let ends = TaskFd::new()?;
/// let mut task = workers.task("t", |_: &Attempt| 7).submit().expect("an open pool");
/// task.tell(&ends);
/// while ends.take() == 0 {
///     // poll(2) with `ends.as_raw_fd()`, and whatever else there is to wait for
/// }
/// assert_eq!(task.poll_report().unwrap().result.unwrap(), 7);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TaskFd(Arc<EventFd>);

impl TaskFd {
    /// A descriptor that is not readable yet.
    ///
    /// # Errors
    /// [`Error::Os`] when the process or the system is out of descriptors.
    pub fn new() -> Result<Self> {
        let fd = EventFd::new().map_err(|error| Error::os("make an eventfd", error))?;
        Ok(Self(Arc::new(fd)))
    }

    /// How many ends it has told of since this was last called; it is not readable until the next. Any
    /// thread, never blocks.
    pub fn take(&self) -> u64 {
        self.0.take()
    }
}

impl AsFd for TaskFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TaskFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl<T: Send + 'static> TaskHandle<T> {
    /// Has `fd` tell of this task's end; at once, if it has ended. Each call counts as one.
    pub fn tell(&self, fd: &TaskFd) {
        let fd = fd.clone();
        self.on_end(move |_| fd.0.signal());
    }

    /// A descriptor of its own that becomes readable when the task ends.
    ///
    /// # Errors
    /// As [`TaskFd::new`].
    pub fn event_fd(&self) -> Result<TaskFd> {
        let fd = TaskFd::new()?;
        self.tell(&fd);
        Ok(fd)
    }
}
