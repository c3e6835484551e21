//! A service of systemd: the manager is told when the process is ready, that it lives, and when it stops.
//!
//! ```text
//!   start ──READY=1──► timer of the pool, twice in WatchdogSec=: is_well? ──its answer──┐
//!                      timer of a thread apart, as often: is the pool dead? ────────────┤
//!                                                                                       ▼
//!                             well ── yes ──► WATCHDOG=1        no ──► nothing, and STATUS= tells it once
//!   drop ──STOPPING=1
//! ```
//!
//! It is well as long as the last answer was yes, none has been awaited for `dead_after`, and the pool is not dead by the
//! rule of `pool/progress.rs`, which is also that of `/health/live`. The function is asked on a thread of the pool. But
//! the watchdog is fed from a thread apart: so a pool whose threads all compute for longer than the watchdog's time is not
//! ended, though no thread comes round to the question. That thread judges the pool before it feeds: so a pool that
//! starves, or has ended, and a process that is stopped, are not well whatever is asked.

use crate::error::{Error, Result};
use crate::log::{Component, Logger};
use crate::pool::{Flow, Handle, Pin, Pool, Shared};
use core::time::Duration;
use sd_notify::NotifyState;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// What is told when it is not well any more, and when it is again.
const NOT_WELL: &str = "not well: the watchdog is not fed";
const WELL: &str = "well again";

/// This process as a service of systemd, which counts as ready from [`start`](Self::start) on and as stopping
/// when this is dropped. Drop it before the drain: a unit has `TimeoutStopSec=` for that.
///
/// The unit needs `Type=notify`, and `WatchdogSec=` if it is to be started again when it is not well:
/// `examples/systemd/paceline.service` is one. Where no systemd has started the process, nothing is told and
/// nothing runs.
///
/// ```
/// use paceline::Pool;
/// use paceline::admin::Service;
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// // Listeners are open, files are read: now.
/// let service = Service::start(&pool, || true)?;
/// service.status("serving 3 tenants")?;
/// drop(service);
/// # Ok(()) }
/// ```
///
/// With a worker pool, a thread that comes back from nowhere is a reason to start again:
///
/// ```
/// # use paceline::Pool;
/// # use paceline::admin::Service;
/// #
/// # fn main() -> paceline::Result<()> {
/// use paceline::task::{Health, WorkerPool};
/// # let pool = Pool::new()?;
/// let workers = WorkerPool::builder(&pool).build()?;
/// let service = Service::start(&pool, move || workers.health().health != Health::Stuck)?;
/// # drop(service);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping it tells systemd that the process stops"]
pub struct Service {
    watchdog: Option<Watchdog>,
    log: Logger,
}

impl Service {
    /// Tells systemd that the process is ready. If the unit has a watchdog, a thread of the pool asks `is_well` twice in
    /// its time from then on, or as soon as one is free. The watchdog is fed while the last answer was true, and the
    /// pool does not starve: while not something has waited, and nothing has begun or ended on any thread, for 30 s, or for
    /// `dead_after` of the pool's operations endpoint if it has one. A thread of the service's own looks at that.
    /// A panic in `is_well` is an answer for good: no.
    ///
    /// # Errors
    /// [`Error::Os`] if systemd cannot be told; [`Error::Full`] when all `max_handles` of the pool are in use,
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn start(pool: &Pool, is_well: impl FnMut() -> bool + Send + 'static) -> Result<Self> {
        let watchdog = match sd_notify::watchdog_enabled() {
            Some(time) => Some(Watchdog::begin(pool, time, is_well)?),
            None => None,
        };
        tell(&[NotifyState::Ready])?;
        let log = pool.shared().log.clone();
        log.info(Component::Service, "service.ready", |record| {
            record.with("watchdog", u64::from(watchdog.is_some())).say("systemd was told READY=1");
        });
        Ok(Self { watchdog, log })
    }

    /// What `systemctl status` shows: one line.
    ///
    /// # Errors
    /// [`Error::Os`] if systemd cannot be told; [`Error::Invalid`] for a text of several lines.
    pub fn status(&self, text: &str) -> Result<()> {
        if text.contains('\n') {
            return Err(Error::invalid("the status", format!("{text:?}"), "one line"));
        }
        tell(&[NotifyState::Status(text)])
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.watchdog = None;
        // Whoever ends without having told it ends all the same.
        let _told = notify(&[NotifyState::Stopping]);
        self.log.info(Component::Service, "service.stopping", |record| {
            record.say("systemd was told STOPPING=1");
        });
    }
}

/// What feeds the watchdog of systemd, until it is dropped.
#[derive(Debug)]
struct Watchdog {
    /// Asks, on the pool.
    _asks: Handle<()>,
    /// Its one thread feeds.
    feeder: Pool,
}

impl Watchdog {
    /// Asks and feeds twice in this time. What cannot be told is missed by the watchdog, too.
    fn begin(
        pool: &Pool,
        time: Duration,
        mut is_well: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self> {
        let period = (time / 2).max(Duration::from_millis(1));
        let (shared, log) = (Arc::downgrade(pool.shared()), pool.shared().log.clone());
        let state = State { shared, log, answer: true, asked: None, was_well: true };
        let state = Arc::new(Mutex::new(state));
        let feeds = Arc::clone(&state);
        let asks = pool.every(period, move || {
            lock(&state).asked = Some(Instant::now());
            let mut answer = Answer { state: &state, is_well: false };
            answer.is_well = is_well();
            drop(answer);
            Flow::Wait
        })?;
        let feeder = Pool::builder().name("paceline-service").threads(1).pin(Pin::None).build()?;
        let timer = feeder.every(period, move || {
            lock(&feeds).tell();
            Flow::Wait
        })?;
        timer.detach();
        Ok(Self { _asks: asks, feeder })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // It has nothing to drain.
        let _report = self.feeder.shutdown(Duration::ZERO);
    }
}

/// What is known of the process.
struct State {
    shared: Weak<Shared>,
    log: Logger,
    /// The last one; until there is one, yes.
    answer: bool,
    /// Since when the next one is awaited of a function that runs.
    asked: Option<Instant>,
    was_well: bool,
}

impl State {
    fn is_well(&self) -> bool {
        let shared = self.shared.upgrade().filter(|shared| !shared.end.is_stopping());
        shared.is_some_and(|shared| {
            let is_late = |asked: Instant| asked.elapsed() >= shared.progress.dead_after();
            let is_dead = shared.progress.look(&shared).dead.is_some();
            self.answer && !is_dead && !self.asked.is_some_and(is_late)
        })
    }

    /// Feeds the watchdog, or not. That it is not well any more, or is again, is told once.
    fn tell(&mut self) {
        let well = self.is_well();
        let _told = match (self.was_well, well) {
            (true, true) => notify(&[NotifyState::Watchdog]),
            (false, true) => notify(&[NotifyState::Watchdog, NotifyState::Status(WELL)]),
            (true, false) => notify(&[NotifyState::Status(NOT_WELL)]),
            (false, false) => Ok(()),
        };
        match (self.was_well, well) {
            (false, true) => self.log.info(Component::Service, "service.well", |record| {
                record.say(WELL);
            }),
            (true, false) => self.log.error(Component::Service, "service.not_well", |record| {
                record.say(NOT_WELL);
            }),
            _ => {}
        }
        self.was_well = well;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer of the function, told when it is dropped: also if the function has panicked.
struct Answer<'a> {
    state: &'a Mutex<State>,
    is_well: bool,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        (state.answer, state.asked) = (self.is_well, None);
        state.tell();
    }
}

fn tell(states: &[NotifyState<'_>]) -> Result<()> {
    let failed = |error: io::Error| Error::os("tell systemd by NOTIFY_SOCKET", error);
    notify(states).map_err(failed)
}

/// As `sd_notify::notify`, which takes an abstract address, "@name", for a file's.
fn notify(states: &[NotifyState<'_>]) -> io::Result<()> {
    let place = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    let Some(name) = place.as_bytes().strip_prefix(b"@") else {
        return sd_notify::notify(states);
    };
    let address = SocketAddr::from_abstract_name(name)?;
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}
