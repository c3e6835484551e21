//! The count of what one hook of a connection has done.

use crate::http::service::HttpService;
use crate::http::service::routes::Endpoint;
use crate::http::telemetry::Timing;
use crate::http::telemetry::counters::Tally;
use crate::sys::clock;
use core::cell::Cell;
use core::ops::Deref;

/// The service, and what a hook of the connection has counted for it so far. That is entered in the
/// counters when the hook ends, before its answers leave, and not request by request: many may come with
/// one read.
pub(crate) struct Hook<'s> {
    service: &'s HttpService,
    tally: Cell<Tally>,
    /// Of a request that began in this hook and has not ended.
    timing: Cell<Timing>,
}

impl<'s> Hook<'s> {
    #[inline]
    pub(crate) fn of(service: &'s HttpService) -> Self {
        Self { service, tally: Cell::default(), timing: Cell::default() }
    }

    /// A request begins, for this endpoint if there is one.
    #[inline]
    pub(crate) fn begin_timing(&self, endpoint: Option<&Endpoint>) {
        if self.service.measures() {
            let route = endpoint.map_or(u32::MAX, |endpoint| endpoint.number);
            self.timing.set(Timing { began: clock::now(), route });
        }
    }

    /// Of the request that is in hand; it has not begun here if there is no time.
    #[inline]
    pub(crate) fn timing(&self) -> Timing {
        self.timing.get()
    }

    /// It has ended with this status; None: without a whole answer.
    #[inline]
    pub(crate) fn end_timing(&self, timing: Timing, status: Option<u16>) {
        if timing.began != 0 {
            self.service.record_time(timing, status);
            self.timing.set(Timing::default());
        }
    }

    #[inline]
    pub(crate) fn tally(&self, count: impl FnOnce(&mut Tally)) {
        let mut tally = self.tally.get();
        count(&mut tally);
        self.tally.set(tally);
    }
}

impl Deref for Hook<'_> {
    type Target = HttpService;

    #[inline]
    fn deref(&self) -> &HttpService {
        self.service
    }
}

impl Drop for Hook<'_> {
    #[inline(always)] // It is a few instructions of each request.
    fn drop(&mut self) {
        self.service.telemetry.counters.add(self.tally.get());
    }
}
