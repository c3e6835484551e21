//! What the connections of a server share: limits, routes, and how many requests are in work.

pub(crate) mod limits;
pub(crate) mod middleware;
pub(crate) mod routes;

use self::limits::HttpLimits;
use self::routes::Routes;
use crate::error::Result;
use crate::http::telemetry::Telemetry;
use crate::http::telemetry::stats::HttpStats;
use crate::net::ServerStats;
use crate::net::stream::limits::Limits;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Arc;

/// What the connections of a server share.
pub(crate) struct HttpService {
    pub(crate) limits: HttpLimits,
    pub(crate) routes: Routes,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Every request counts as in work from its beginning, since there is a maximum, or its end is reported.
    counts_all: AtomicBool,
    in_work: AtomicUsize,
}

impl HttpService {
    pub(crate) fn new(limits: HttpLimits, routes: Routes, telemetry: Telemetry) -> Self {
        let counts_all = limits.max_requests != usize::MAX || telemetry.on_end.is_some();
        Self {
            limits,
            routes,
            telemetry: Arc::new(telemetry),
            counts_all: AtomicBool::new(counts_all),
            in_work: AtomicUsize::new(0),
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
