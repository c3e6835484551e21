//! The endpoint itself: its settings, its thread, its start and its end.

use super::feed::{Feed, LOOK, TICK};
use super::guard::Guard;
use super::health::Health;
use super::routes;
#[cfg(feature = "config")]
use crate::admin::Settings;
use crate::error::{Error, Result};
use crate::http::{Http, HttpBuilder};
use crate::log::{Component, Levels};
use crate::metrics::{Registry, SystemFigures};
use crate::net::{Address, ToAddress};
use crate::pool::progress::{BLOCKED_AFTER, DEAD_AFTER, READY_AFTER};
use crate::pool::{Flow, Handle, Pin, Pool, Shared};
use core::fmt;
use core::ops::RangeInclusive;
use core::sync::atomic::AtomicUsize;
use core::time::Duration;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Connections that the endpoint's own server has at once; more are turned away.
const MOST_CONNECTIONS: usize = 64;
/// What each of the times here may be.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

/// Settings of an [`Ops`].
#[must_use = "a builder does nothing until `serve` or `build`"]
pub struct OpsBuilder {
    pool: Pool,
    token: Option<String>,
    registry: Option<Registry>,
    /// The registry has the figures of the pool and the process already.
    is_filled: bool,
    blocked_after: Duration,
    ready_after: Duration,
    dead_after: Duration,
    config: Vec<Json>,
}

impl OpsBuilder {
    /// What requests must show: `Authorization: Bearer` and this token, of at least 16 visible ASCII characters. Only
    /// the page itself, which has no data, is sent without, and whether the pool is well, without reasons. Default: none, so
    /// that only this machine is answered, without a proxy between, and nothing can be changed.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A registry that has figures of the program's own, too. The figures of the pool, of what stands on it, and of the
    /// process are put into it, with the pool's name as their label `pool`: give each registry to one endpoint. A collector of
    /// the program's runs on the endpoint's only thread: one that waits holds up the endpoint. Default: one of the
    /// endpoint's own.
    pub fn registry(mut self, registry: &Registry) -> Self {
        self.registry = Some(registry.clone());
        self
    }

    /// One that has the figures of the pool and the process already.
    pub(crate) fn filled(mut self, registry: &Registry) -> Self {
        self.is_filled = true;
        self.registry(registry)
    }

    /// How long a handler or task may hold its thread before the thread is shown as blocked: 1 ms to one hour. Default
    /// 500 ms. What health says does not depend on it.
    pub fn blocked_after(mut self, time: Duration) -> Self {
        self.blocked_after = time;
        self
    }

    /// How long the oldest thing that waits in the pool (a task, an event, a timer that is due, an entry of a completion
    /// queue) may wait before the pool is not ready, so that a load balancer sends its requests elsewhere: 1 ms to one
    /// hour. Default 5 s.
    pub fn ready_after(mut self, time: Duration) -> Self {
        self.ready_after = time;
        self
    }

    /// For how long something must have waited, and nothing have begun or ended on any thread, before the pool is dead, so
    /// that the process is started anew: 1 ms to one hour. Choose it longer than all threads may compute at a time.
    /// Default 30 s. The watchdog of systemd (`admin::Service`) judges by that of the pool's endpoint that was made last.
    pub fn dead_after(mut self, time: Duration) -> Self {
        self.dead_after = time;
        self
    }

    /// Takes what the section `ops` says, but for its address: see [`Ops::from_settings`]. All settings are shown by
    /// `/config` from then on, with where each came from; secrets are masked.
    #[cfg(feature = "config")]
    pub fn settings(mut self, settings: &Settings) -> Self {
        let said = &settings.ops;
        self.token = said.token.clone().or(self.token);
        self.blocked_after = said.blocked_after.unwrap_or(self.blocked_after);
        self.ready_after = said.ready_after.unwrap_or(self.ready_after);
        self.dead_after = said.dead_after.unwrap_or(self.dead_after);
        self.showing(settings)
    }

    /// These settings are shown, and change nothing.
    #[cfg(feature = "config")]
    pub(crate) fn showing(mut self, settings: &Settings) -> Self {
        let shown = settings.shown();
        self.config.extend(
            shown.map(|(key, value, origin)| json!({ "key": key, "value": value, "from": origin })),
        );
        self
    }

    /// Starts at this address, as `127.0.0.1:9090` or `unix:/run/ops.sock`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an address that other machines can reach, unless there is a [`token`](Self::token), and as
    /// [`build`](Self::build); [`Error::Os`] if the address cannot be listened at.
    pub fn serve(self, address: impl ToAddress) -> Result<Ops> {
        let address = address.to_address()?;
        let mut ops = self.build()?;
        ops.endpoint.guard.check_place(&address)?;
        let http = Http::builder(&ops.endpoint.pool)
            .listen(address)
            .server(|server| {
                let server = server.max_connections(MOST_CONNECTIONS);
                server.set(|limits| limits.keeps_descriptor = true)
            })
            .max_body(routes::MOST_LEVELS);
        ops.http = Some(routes::add(http, "", &ops.endpoint).serve()?);
        Ok(ops)
    }

    /// Starts without a server of its own: to be [mounted](Ops::mount).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a setting out of its range; [`Error::Os`] if its thread cannot be made;
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn build(self) -> Result<Ops> {
        let Self { pool, token, registry, is_filled, config, .. } = self;
        let Self { blocked_after, ready_after, dead_after, .. } = self;
        for (name, time) in [
            ("blocked_after", blocked_after),
            ("ready_after", ready_after),
            ("dead_after", dead_after),
        ] {
            if !TIMES.contains(&time) {
                return Err(Error::invalid(name, format!("{time:?}"), "1 ms to 1 hour"));
            }
        }
        let guard = Guard::new(token)?;
        let shared = pool.shared();
        shared.check_open()?;
        let registry = registry.unwrap_or_default();
        let name = shared.log.pool().to_owned();
        if !is_filled {
            pool.attach_metrics(&registry, &name);
            SystemFigures::new().attach(&registry);
        }
        let own = Pool::builder().name("paceline-ops").threads(1).pin(Pin::None).build()?;
        let nanos = u64::try_from(blocked_after.as_nanos()).unwrap_or(u64::MAX);
        let feed = Feed::new(shared, registry.clone(), nanos);
        let endpoint = Arc::new(Endpoint {
            watched: Arc::downgrade(shared),
            name,
            pool: own,
            registry,
            guard,
            feed: Mutex::new(feed),
            under_way: AtomicUsize::new(0),
            timelines: AtomicUsize::new(0),
            config,
            looks: Mutex::new(None),
        });
        endpoint.begin_ticks()?;
        shared.progress.set_limits(dead_after, ready_after);
        shared.progress.set_blocked_after(blocked_after);
        Ok(Ops { endpoint, http: None })
    }
}

impl fmt::Debug for OpsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpsBuilder")
            .field("has_token", &self.token.is_some())
            .field("blocked_after", &self.blocked_after)
            .field("ready_after", &self.ready_after)
            .field("dead_after", &self.dead_after)
            .finish_non_exhaustive()
    }
}

/// What routes answer with.
pub(super) struct Endpoint {
    pub(super) watched: Weak<Shared>,
    pub(super) name: String,
    /// The endpoint's own, with one thread.
    pub(super) pool: Pool,
    pub(super) registry: Registry,
    pub(super) guard: Guard,
    feed: Mutex<Feed>,
    pub(super) under_way: AtomicUsize,
    /// Those of them that are timelines.
    pub(super) timelines: AtomicUsize,
    config: Vec<Json>,
    /// The timer of the looks, paused while nobody watches.
    looks: Mutex<Option<Handle<()>>>,
}

impl Endpoint {
    pub(super) fn feed(&self) -> MutexGuard<'_, Feed> {
        lock(&self.feed)
    }

    pub(super) fn health(&self) -> Health {
        self.feed().health()
    }

    /// The timers hold the endpoint weakly: it ends with its owner.
    fn begin_ticks(self: &Arc<Self>) -> Result<()> {
        let endpoint = Arc::downgrade(self);
        let tick = self.pool.every(TICK, move || {
            let Some(endpoint) = endpoint.upgrade() else { return Flow::Done };
            endpoint.feed().tick();
            Flow::Wait
        })?;
        tick.detach();
        let endpoint = Arc::downgrade(self);
        let looks = self.pool.every(LOOK, move || {
            let Some(endpoint) = endpoint.upgrade() else { return Flow::Done };
            let mut feed = endpoint.feed();
            feed.look();
            if feed.is_watched() { Flow::Wait } else { Flow::Pause }
        })?;
        *lock(&self.looks) = Some(looks);
        Ok(())
    }

    /// Somebody watches.
    pub(super) fn watch_closely(&self) {
        if let Some(looks) = &*lock(&self.looks) {
            // The pool may have ended.
            let _ended = looks.resume();
        }
    }

    pub(super) fn config(&self) -> Json {
        json!({ "settings": self.config, "log_levels": self.levels().map(|it| it.to_string()) })
    }

    pub(super) fn levels(&self) -> Option<Levels> {
        let shared = self.watched.upgrade()?;
        Some(shared.log.log_in_use()?.levels())
    }

    /// False: there is no log.
    pub(super) fn set_levels(&self, levels: Levels) -> bool {
        let Some(shared) = self.watched.upgrade() else { return false };
        let Some(log) = shared.log.log_in_use() else { return false };
        log.set_levels(levels);
        shared.log.info(Component::Log, "log.levels_changed", |record| {
            record.with("levels", levels.to_string()).say("the levels of the log were changed");
        });
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An operations endpoint: a live page and figures of one pool and all that stands on it, by HTTP, on a thread of its
/// own. It ends when it is dropped. It does not keep the pool alive.
///
/// ```
/// use paceline::{Pool, ops::Ops};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let ops = Ops::serve(&pool, "127.0.0.1:0")?;
/// println!("open http://{}/ in a browser", ops.addresses()[0]);
/// # Ok(())
/// # }
/// ```
///
/// | route | answer |
/// |---|---|
/// | `/` | a live page: who leads, who handles what, what is held up |
/// | `/metrics` | all figures, as OpenMetrics or Prometheus text |
/// | `/health/live` | 503: the pool starves ([`dead_after`](OpsBuilder::dead_after)) or has ended; else 200. With reasons |
/// | `/health/ready` | 503: something waits for too long ([`ready_after`](OpsBuilder::ready_after)), or it drains; else 200. With reasons |
/// | `/stats.json`, `/errors.json`, `/config` | figures, the last faults, settings and their origins |
/// | `/curves.json` | the last 15 minutes: rates, what waits, handling times; a sample each 5 s |
/// | `/events` | server-sent events, one a second, for at most 8 viewers: a ninth takes the place of the oldest |
/// | `/trace?seconds=3` | a [timeline](crate::Trace) of the next seconds, 1 to 30, for <https://ui.perfetto.dev> |
/// | `/log-level` | the levels of the pool's log; PUT, with a token, changes them |
pub struct Ops {
    endpoint: Arc<Endpoint>,
    /// None: it is only mounted.
    http: Option<Http>,
}

impl Ops {
    /// Starts at this address with default settings; see [`OpsBuilder::serve`].
    ///
    /// # Errors
    /// As [`OpsBuilder::serve`].
    pub fn serve(pool: &Pool, address: impl ToAddress) -> Result<Self> {
        Self::builder(pool).serve(address)
    }

    /// Starts as the section `ops` of these settings says, which it shows. None: it has no address.
    ///
    /// # Errors
    /// As [`OpsBuilder::serve`].
    #[cfg(feature = "config")]
    pub fn from_settings(pool: &Pool, settings: &Settings) -> Result<Option<Self>> {
        let builder = Self::builder(pool).settings(settings);
        settings.ops.address.as_ref().map(|address| builder.serve(address.clone())).transpose()
    }

    /// Settings to start from.
    pub fn builder(pool: &Pool) -> OpsBuilder {
        OpsBuilder {
            pool: pool.clone(),
            token: None,
            registry: None,
            is_filled: false,
            blocked_after: BLOCKED_AFTER,
            ready_after: READY_AFTER,
            dead_after: DEAD_AFTER,
            config: Vec::new(),
        }
    }

    /// Adds the routes to a server of the program's, behind a prefix as `/ops`. Its threads only hand requests over. While
    /// they are all blocked, or that server is full or has no descriptors, the endpoint cannot be reached: an endpoint with
    /// an [address of its own](OpsBuilder::serve) has a thread, room and a descriptor for that.
    /// Requests of other machines, and those that a proxy has passed on, are refused with 403, unless there is a token.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a prefix that does not begin with `/`, or ends in it.
    pub fn mount(&self, http: HttpBuilder, prefix: &str) -> Result<HttpBuilder> {
        Self::check_prefix(prefix)?;
        Ok(self.add_to(http, prefix))
    }

    pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
        let is_path = prefix.len() > 1 && prefix.starts_with('/') && !prefix.ends_with('/');
        match is_path && !prefix.contains(['{', '}', '?', '#']) {
            true => Ok(()),
            false => {
                let allowed = "a path as /ops, without parameters";
                Err(Error::invalid("prefix", format!("{prefix:?}"), allowed))
            }
        }
    }

    /// As [`mount`](Self::mount), with a prefix that was checked.
    pub(crate) fn add_to(&self, http: HttpBuilder, prefix: &str) -> HttpBuilder {
        routes::add(http, prefix, &self.endpoint)
    }

    /// Where its own server listens; empty if it is only mounted.
    pub fn addresses(&self) -> &[Address] {
        self.http.as_ref().map_or(&[], Http::addresses)
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ops")
            .field("pool", &self.endpoint.name)
            .field("addresses", &self.addresses())
            .finish_non_exhaustive()
    }
}

impl Drop for Ops {
    fn drop(&mut self) {
        // Its thread holds nothing that others wait for: it has nothing to drain.
        let _report = self.endpoint.pool.shutdown(Duration::ZERO);
        // Viewers that came by a server of the program's, which goes on. Locked: this is called from within a look.
        if let Ok(mut feed) = self.endpoint.feed.try_lock() {
            feed.end();
        }
    }
}
