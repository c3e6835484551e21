//! The handler of an HTTP connection: hooks of the stream server, for the cycle of requests or an upgraded protocol.

use super::cycle::{RequestCycle, Stage, Step};
use super::hook::Hook;
use crate::http::exchange::Exchange;
use crate::http::service::HttpService;
use crate::net::calls::Calls;
use crate::net::{Conn, ConnHandler, Reason, Timeout, TimeoutAction};
use crate::pool::TurnClock;
use crate::sync::atomic::Ordering::Relaxed;
use std::io::ErrorKind;
use std::sync::Arc;

/// The handler of a connection.
pub(crate) struct HttpHandler {
    service: Arc<HttpService>,
    cycle: RequestCycle,
}

// What malloc(3) gives for this many bytes and no more: an idle connection takes up to 1 KiB.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<HttpHandler>() <= 56);

impl HttpHandler {
    pub(crate) fn new(service: &Arc<HttpService>, conn: &Conn) -> Self {
        conn.gives_way.set(true);
        let some_give_way = &conn.connection.origin.gives_way;
        // It is stored once, as all connections of a listener share its line of the cache.
        if !some_give_way.load(Relaxed) {
            some_give_way.store(true, Relaxed);
        }
        let telemetry = Arc::clone(&service.telemetry);
        let exchange = Arc::new(Exchange::new(Arc::clone(&conn.connection), telemetry));
        Self { service: Arc::clone(service), cycle: RequestCycle::new(exchange) }
    }
}

/// A request is in work, and nothing is read until [`answered`], also if whoever took the body resumes once more behind its
/// end.
pub(super) fn pause_until_answered(conn: &Conn) -> Step {
    conn.pause();
    conn.answers_first.set(true);
    Step::wait(0)
}

pub(super) fn answered(conn: &Conn) {
    conn.connection.output.calls.unpause();
    conn.answers_first.set(false);
}

/// It is not one of HTTP any more.
pub(super) fn begin_other_protocol(conn: &Conn) {
    conn.set_deadline(None);
    conn.gives_way.set(false);
}

impl ConnHandler for HttpHandler {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let Self { service, cycle } = self;
        let service = &Hook::of(service);
        let mut taken = 0;
        let mut turn = TurnClock::new();
        loop {
            let step = cycle.step(service, conn, &bytes[taken..]);
            taken += step.taken;
            if !step.goes_on {
                return taken;
            }
            // The requests behind it have their turn after everything else that waits.
            if taken < bytes.len() && turn.is_over() {
                conn.connection.call(Calls::AGAIN);
                return taken;
            }
        }
    }

    fn finished(&mut self, conn: &Conn) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            return handler.finished(conn);
        }
        self.cycle.peer_finished(&Hook::of(&self.service), conn);
    }

    fn writable(&mut self, conn: &Conn) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            return handler.writable(conn);
        }
        let service = &Hook::of(&self.service);
        self.cycle.call_writable(service, conn);
        self.cycle.look(service, conn);
    }

    fn written(&mut self, conn: &Conn, token: u64) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            handler.written(conn, token);
        }
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            return handler.timeout(conn, kind);
        }
        self.cycle.timeout(&Hook::of(&self.service), conn, kind)
    }

    fn notified(&mut self, conn: &Conn) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            return handler.notified(conn);
        }
        let service = &Hook::of(&self.service);
        if self.cycle.exchange.take_due() {
            self.cycle.call_writable(service, conn);
        }
        self.cycle.look(service, conn);
        if self.cycle.exchange.has_client_left() {
            self.cycle.exchange.tell_gone();
        }
    }

    fn draining(&mut self, conn: &Conn) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            handler.draining(conn);
        }
    }

    fn error(&mut self, conn: &Conn, kind: ErrorKind) {
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            handler.error(conn, kind);
        }
    }

    fn close(&mut self, conn: &Conn, reason: Reason) {
        self.cycle.end(&Hook::of(&self.service), reason);
        if let Stage::Upgraded(handler) = &mut self.cycle.stage {
            handler.close(conn, reason);
        }
    }
}
