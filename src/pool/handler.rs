//! What a handler is told, and what it answers.

use crate::source::Ready;
use core::time::Duration;

/// What a handler answers.
///
/// ```
/// use paceline::{Flow, Pool};
/// use std::sync::mpsc;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let (ticks, ticked) = mpsc::channel();
/// let mut left = 3;
/// pool.every(Duration::from_millis(1), move || {
///     let _receiver_may_be_gone = ticks.send(left);
///     left -= 1;
///     if left == 0 { Flow::Done } else { Flow::Wait } // three calls, then it is deregistered
/// })?
/// .detach();
/// assert_eq!(ticked.iter().collect::<Vec<_>>(), [3, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Flow {
    /// Call me when something happens. For an edge-triggered descriptor this promises that the last
    /// operation saw EAGAIN (or `WouldBlock`): what is left unread now is not reported again.
    Wait,
    /// There is more to do: call me again, after others had their turn.
    Again,
    /// Do not call me before [`Handle::resume`](super::Handle::resume), which counts from the start of the call that is
    /// answered here. What arrives meanwhile is kept. See [`Handle::pause`](super::Handle::pause) for the one exception.
    Pause,
    /// I am through: deregister, and drop what was registered.
    Done,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A descriptor is ready.
    Ready(Ready),
    /// A periodic timer is due.
    Tick,
    /// A one-shot timer is due.
    Timer,
    /// A token was posted.
    Posted,
}

/// A handler or task that took longer than the limit of [`Builder::on_slow`](super::Builder::on_slow).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowReport {
    /// The index of the thread.
    pub thread: usize,
    /// What runs: the type of the handler or of the task's closure, the address of a server, the method and pattern of
    /// an HTTP route, the name of a worker pool's task type, or the pattern of a subscription.
    pub name: Option<&'static str>,
    /// How long it has taken so far.
    pub elapsed: Duration,
    /// It has not returned yet.
    pub running: bool,
}
