//! What the connections of a server share: limits, routes, and how many requests are in work.

pub(crate) mod limits;
pub(crate) mod middleware;
pub(crate) mod returned;
pub(crate) mod routes;

use self::limits::HttpLimits;
use self::routes::Routes;
use crate::error::Result;
use crate::http::telemetry::stats::HttpStats;
use crate::http::telemetry::{Telemetry, Timing};
use crate::http::telemetry::{figures, route_times::RouteTimes};
use crate::metrics::Collector;
use crate::net::ServerStats;
use crate::net::stream::limits::Limits;
use crate::pool::{Remains, Served};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Arc;
use std::sync::OnceLock;

/// What the connections of a server share.
pub(crate) struct HttpService {
    pub(crate) limits: HttpLimits,
    pub(crate) routes: Routes,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Every request counts as in work from its beginning, since there is a maximum, or its end is reported.
    counts_all: AtomicBool,
    in_work: AtomicUsize,
    /// None: nobody has asked for figures yet.
    times: OnceLock<RouteTimes>,
    /// What figures call the server: its first address.
    pub(crate) name: OnceLock<String>,
}

impl HttpService {
    pub(crate) fn new(limits: HttpLimits, routes: Routes, telemetry: Telemetry) -> Self {
        let counts_all = limits.max_requests != usize::MAX || telemetry.reports_ends();
        Self {
            limits,
            routes,
            telemetry: Arc::new(telemetry),
            counts_all: AtomicBool::new(counts_all),
            in_work: AtomicUsize::new(0),
            times: OnceLock::new(),
            name: OnceLock::new(),
        }
    }

    /// Whether requests are timed.
    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.times.get().is_some()
    }

    /// A request has ended with this status; None: without a whole answer.
    pub(crate) fn record_time(&self, timing: Timing, status: Option<u16>) {
        if let Some(times) = self.times.get() {
            times.record(timing.route, timing.began, status);
        }
    }

    pub(crate) fn stats(&self, server: ServerStats) -> HttpStats {
        self.telemetry.counters.stats(self.in_work.load(Relaxed), server)
    }

    /// Before anything listens.
    pub(crate) fn check_listener(&self, limits: &Limits) -> Result<()> {
        if limits.max_requests != usize::MAX {
            self.counts_all.store(true, Relaxed);
        }
        self.limits.check_listener(limits)
    }

    /// Whether every request is counted as in work from its beginning, since there is a maximum, of the server
    /// or of a listener, or its end is reported.
    #[inline]
    pub(crate) fn counts_all(&self) -> bool {
        self.counts_all.load(Relaxed)
    }

    /// False: as many are in work as may be.
    pub(crate) fn begin_work(&self) -> bool {
        let fits = self.in_work.fetch_add(1, Relaxed) < self.limits.max_requests;
        if !fits {
            self.end_work();
        }
        fits
    }

    pub(crate) fn end_work(&self) {
        self.in_work.fetch_sub(1, Relaxed);
    }
}

/// The server beneath is what the end of the pool is about: this is a part for its figures alone.
impl Served for HttpService {
    fn remains(&self, _deadline: u64) -> Remains {
        Remains::Nothing
    }

    fn close(&self) {}

    fn figures(&self, to: &mut Collector, pool: &str) {
        let times = self.times.get_or_init(|| RouteTimes::new(&self.routes));
        let name = self.name.get().map_or("", String::as_str);
        let Some(server) = to.enter(self, "http", name) else { return };
        figures::collect(to, pool, &server, &self.stats(ServerStats::default()));
        times.collect(to, pool, &server, &self.routes);
    }
}
