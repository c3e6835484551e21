//! Signals of the process, handled on the pool.
//!
//! A signal handler of the old kind may call next to nothing. Here signals are blocked and read from a
//! descriptor, as any event: the handler may do what handlers of the pool may.

use super::Pool;
use super::handle::{Handle, HandleOptions};
use super::handler::Flow;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::source::Interest;
use crate::sync::{Condvar, Mutex};
use crate::sys::signalfd::{SignalFd, Through};
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, PoisonError, Weak};

/// Watches for signals while it lives: see [`Signals::new`]. Dropped, it watches no more; the signals
/// stay blocked, so that one that comes late does not end the process.
///
/// ```
/// use paceline::{Pool, Signals};
/// use std::time::Duration;
///
/// fn main() -> paceline::Result<()> {
///     // First in `main`: SIGTERM and SIGINT are blocked in this thread, and in those that it starts.
///     let pool = Pool::new()?;
///     let signals = Signals::shut_down(&pool, Duration::from_secs(10))?;
///     // … servers …
/// # pool.shutdown(Duration::ZERO);
///     signals.wait(); // until a signal has begun the shutdown, or the pool was shut down otherwise
///     Ok(())
/// }
/// ```
#[must_use = "dropped, it watches for nothing"]
pub struct Signals {
    arrived: Arc<Arrived>,
    _handle: Handle<SignalFd>,
}

/// What has come and was not waited for.
#[derive(Default)]
struct Arrived {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By number.
    signals: u128,
    closed: bool,
}

impl Arrived {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// Dropped with the handler, when the pool ends or the signals are let go.
struct Notifier(Arc<Arrived>);

impl Drop for Notifier {
    fn drop(&mut self) {
        self.0.change(|state| state.closed = true);
    }
}

impl Signals {
    /// Blocks `signals` (numbers as `libc::SIGTERM`) in the calling thread, and from then on calls
    /// `handler` on the pool with each that is sent to the process. Signals of one number that come
    /// before it is called are one, as ever.
    ///
    /// Call it in the main thread before others are started, as these inherit what it blocks. A thread that does not
    /// block a signal would get it as if this were not here, which ends the process by default. The pool's own threads
    /// block all that matter. Two of these should not share a signal: each signal goes to one of them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number that is no signal, cannot be blocked (KILL, STOP) or is a thread's
    /// own fault (SEGV and its like), and if another thread does not block one of the signals: its id and name are
    /// in the error; otherwise as [`Pool::register`].
    pub fn new<F>(pool: &Pool, signals: &[i32], mut handler: F) -> Result<Signals>
    where
        F: FnMut(i32) + Send + 'static,
    {
        pool.shared().check_open()?;
        signals.iter().try_for_each(|&signal| check(signal))?;
        if signals.is_empty() {
            return Err(Error::invalid("signals", "none", "at least one"));
        }
        if let Some((signal, Through { id, name })) = SignalFd::let_through(signals) {
            let value = format!("{signal}, which thread {id} ({name}) does not block");
            let allowed = "blocked by all other threads: make Signals before they are started, or have them block it \
                           (pthread_sigmask)";
            return Err(Error::invalid("signal", value, allowed));
        }
        let fd = SignalFd::block(signals)
            .map_err(|error| Error::os("open a descriptor for signals (signalfd)", error))?;
        let arrived = Arc::new(Arrived::default());
        let notifier = Notifier(Arc::clone(&arrived));
        let options = HandleOptions::new().interest(Interest::READABLE);
        let handle = pool.register_with(fd, options, move |fd, _| {
            while let Some(signal) = fd.take() {
                handler(signal);
                notifier.0.change(|state| state.signals |= 1 << signal);
            }
            Flow::Wait
        })?;
        Ok(Self { arrived, _handle: handle })
    }

    /// SIGTERM and SIGINT begin to shut the pool down: from then on it refuses work from outside, and
    /// runs what it has accepted for up to `drain`. Whoever wants to know how it went waits for the
    /// signal and calls [`Pool::shutdown`] too:
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn main() -> paceline::Result<()> {
    /// let drain = Duration::from_secs(10);
    /// let pool = paceline::Pool::new()?;
    /// let signals = paceline::Signals::shut_down(&pool, drain)?;
    /// // … serve …
    /// signals.wait();
    /// let report = pool.shutdown(drain);
    /// # let _ = report; Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shut_down(pool: &Pool, drain: Duration) -> Result<Signals> {
        let shared: Weak<Shared> = Arc::downgrade(pool.shared());
        let drain = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX);
        Self::new(pool, &[libc::SIGTERM, libc::SIGINT], move |_| {
            if let Some(shared) = shared.upgrade() {
                shared.drain(shared.now().saturating_add(drain).min(u64::MAX - 1));
            }
        })
    }

    /// Waits for a signal whose handler has run and that no thread has waited for, and returns its number;
    /// the lowest, if several have come. None: the pool has ended. Not for handlers, which it would hold
    /// up.
    pub fn wait(&self) -> Option<i32> {
        let mut state = self.arrived.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.signals != 0 {
                let signal = state.signals.trailing_zeros();
                state.signals &= state.signals - 1;
                return Some(signal as i32);
            }
            if state.closed {
                return None;
            }
            state = self.arrived.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn check(signal: i32) -> Result<()> {
    let never = [libc::SIGKILL, libc::SIGSTOP];
    let own = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGABRT,
        // Pool threads do not block it, for the sake of profilers.
        libc::SIGPROF,
    ];
    let is_signal = (1..=libc::SIGRTMAX()).contains(&signal);
    if is_signal && !never.contains(&signal) && !own.contains(&signal) {
        return Ok(());
    }
    let allowed = "the number of a signal other than KILL, STOP, PROF and those of faults";
    Err(Error::invalid("signal", signal, allowed))
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}
