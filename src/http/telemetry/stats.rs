//! What a server has counted, for users: requests begun = answered + refused + aborted + in work.

use crate::net::ServerStats;

/// Requests that were answered by handlers, by the class of their status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Answered {
    /// 101.
    pub upgraded: u64,
    /// 200 to 299.
    pub successful: u64,
    /// 300 to 399.
    pub redirected: u64,
    /// 400 to 499.
    pub client_errors: u64,
    /// 500 to 599.
    pub server_errors: u64,
}

impl Answered {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { upgraded, successful, redirected, client_errors, server_errors } = self;
        upgraded + successful + redirected + client_errors + server_errors
    }
}

/// Requests that were answered by the library in a handler's place, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Refused {
    /// 400: it was malformed.
    pub bad_request: u64,
    /// 404: no route has this path.
    pub not_found: u64,
    /// 405: no route with this path has this method.
    pub method_not_allowed: u64,
    /// 408: its head or its body did not come in time.
    pub timed_out: u64,
    /// 413.
    pub body_too_large: u64,
    /// 414.
    pub target_too_long: u64,
    /// 417: it expected something else than `100-continue`.
    pub expectation: u64,
    /// 431: too many headers, or too long.
    pub head_too_large: u64,
    /// 500: its handler panicked.
    pub panicked: u64,
    /// 500: its response was dropped, or could not be sent.
    pub unanswered: u64,
    /// 501: nothing knows its method, or its transfer coding.
    pub not_implemented: u64,
    /// 503: as many were in work as may be.
    pub busy: u64,
    /// 505: another major version of HTTP.
    pub version: u64,
}

impl Refused {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { bad_request, not_found, method_not_allowed, timed_out, body_too_large, .. } =
            self;
        let Self { target_too_long, expectation, head_too_large, panicked, unanswered, .. } = self;
        let Self { not_implemented, busy, version, .. } = self;
        let malformed = bad_request + target_too_long + head_too_large + version + expectation;
        let unserved = not_found + method_not_allowed + not_implemented + busy;
        malformed + unserved + timed_out + body_too_large + panicked + unanswered
    }
}

/// Requests whose answers did not leave, or not whole, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Aborted {
    /// The peer went, or the socket failed.
    pub disconnected: u64,
    /// The peer took nothing of what was queued for it.
    pub timed_out: u64,
    /// The answer's body was dropped before its end.
    pub unfinished: u64,
    /// The host closed the connection.
    pub closed: u64,
    /// The drain's time was over, or the pool ended.
    pub cut_off: u64,
}

impl Aborted {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { disconnected, timed_out, unfinished, closed, cut_off } = self;
        disconnected + timed_out + unfinished + closed + cut_off
    }
}

/// The counters of an [`Http`](crate::http::Http) server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HttpStats {
    /// Requests whose head was judged, or that were given up.
    pub begun: u64,
    /// Answered by handlers.
    pub answered: Answered,
    /// Answered by the library.
    pub refused: Refused,
    /// Not answered, or not to the end.
    pub aborted: Aborted,
    /// Begun and not ended: their bodies are coming, or their answers.
    pub in_work: usize,
    /// Handlers, bodies and hooks that panicked.
    pub panics: u64,
    /// The connections beneath. What it says of requests is of those that count at their listener: all
    /// of a listener with a `max_requests` of its own, and what other protocols admit after an upgrade.
    pub server: ServerStats,
}

impl HttpStats {
    /// Whether everything that began has ended or is in work. The answer is exact while no request is being handled.
    pub fn balances(&self) -> bool {
        let ended = self.answered.total() + self.refused.total() + self.aborted.total();
        self.begun == ended + self.in_work as u64 && self.server.balances()
    }
}
