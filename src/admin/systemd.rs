//! A service of systemd: the manager is told when the process is ready, that it lives, and when it stops.
//!
//! ```text
//!   start ──READY=1──► timer of the pool ──► is it well? ── yes ──► WATCHDOG=1
//!                          ▲                     └── no ──► nothing, and STATUS= tells it once
//!                          └──── half of WatchdogSec= ────┘
//!   drop ──STOPPING=1
//! ```
//!
//! The watchdog is fed by a timer of the pool and not by a thread of its own, which would go on though no
//! thread of the pool came back from its handler. So a pool that is stuck as a whole, or a process that is
//! stopped, is not well whatever is asked; that single parts are well is what the function says.

use crate::error::{Error, Result};
use crate::log::{Component, Logger};
use crate::pool::{Flow, Handle, Pool};
use core::time::Duration;
use sd_notify::NotifyState;
use std::io;

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
    watchdog: Option<Handle<()>>,
    log: Logger,
}

impl Service {
    /// Tells systemd that the process is ready. If the unit has a watchdog, the pool asks `is_well` twice in
    /// its time from then on, and feeds it when the answer is true. A panic in it is an answer for good: no.
    ///
    /// # Errors
    /// [`Error::Os`] if systemd cannot be told; [`Error::Full`] when all `max_handles` of the pool are in use,
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn start(pool: &Pool, is_well: impl FnMut() -> bool + Send + 'static) -> Result<Self> {
        let watchdog = match sd_notify::watchdog_enabled() {
            Some(time) => Some(feed(pool, time, is_well)?),
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
        let _told = sd_notify::notify(&[NotifyState::Stopping]);
        self.log.info(Component::Service, "service.stopping", |record| {
            record.say("systemd was told STOPPING=1");
        });
    }
}

/// Twice in the watchdog's time. What cannot be told is missed by the watchdog, too.
fn feed(
    pool: &Pool,
    time: Duration,
    mut is_well: impl FnMut() -> bool + Send + 'static,
) -> Result<Handle<()>> {
    let mut was_well = true;
    let log = pool.shared().log.clone();
    pool.every((time / 2).max(Duration::from_millis(1)), move || {
        let well = is_well();
        let _told = match (was_well, well) {
            (true, true) => sd_notify::notify(&[NotifyState::Watchdog]),
            (false, true) => sd_notify::notify(&[NotifyState::Watchdog, NotifyState::Status(WELL)]),
            (true, false) => sd_notify::notify(&[NotifyState::Status(NOT_WELL)]),
            (false, false) => Ok(()),
        };
        match (was_well, well) {
            (false, true) => log.info(Component::Service, "service.well", |record| {
                record.say(WELL);
            }),
            (true, false) => log.error(Component::Service, "service.not_well", |record| {
                record.say(NOT_WELL);
            }),
            _ => {}
        }
        was_well = well;
        Flow::Wait
    })
}

fn tell(states: &[NotifyState<'_>]) -> Result<()> {
    let failed = |error: io::Error| Error::os("tell systemd by NOTIFY_SOCKET", error);
    sd_notify::notify(states).map_err(failed)
}
