//! The count of what one hook of a connection has done.

use crate::http::service::HttpService;
use crate::http::telemetry::counters::Tally;
use core::cell::Cell;
use core::ops::Deref;

/// The service, and what a hook of the connection has counted for it so far. That is entered in the
/// counters when the hook ends, before its answers leave, and not request by request: many may come with
/// one read.
pub(crate) struct Hook<'s> {
    service: &'s HttpService,
    tally: Cell<Tally>,
}

impl<'s> Hook<'s> {
    #[inline]
    pub(crate) fn of(service: &'s HttpService) -> Self {
        Self { service, tally: Cell::default() }
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
