//! The figures of an HTTP server, for a registry.

use super::stats::HttpStats;
use crate::metrics::Collector;

pub(crate) fn collect(to: &mut Collector, pool: &str, server: &str, stats: &HttpStats) {
    let HttpStats { answered, refused, aborted, .. } = stats;
    let labels = [("pool", pool), ("server", server)];
    let begun = "Requests whose head was judged, or that were given up";
    to.counter("paceline_http_requests", begun, &labels, stats.begun as f64);
    let panics = "Handlers, bodies and hooks that panicked";
    to.counter("paceline_http_panics", panics, &labels, stats.panics as f64);
    let in_work =
        "Requests that have begun and not ended, beyond those that a handler answers at once";
    to.gauge("paceline_http_in_work", in_work, &labels, stats.in_work as f64);
    let mut by = |name: &str, help: &str, label: &str, counts: &[(&str, u64)]| {
        for &(what, count) in counts {
            let labels = [("pool", pool), ("server", server), (label, what)];
            to.counter(&format!("paceline_http_{name}"), help, &labels, count as f64);
        }
    };
    by(
        "answered",
        "Requests that handlers answered, by the class of their status",
        "status",
        &[
            ("1xx", answered.upgraded),
            ("2xx", answered.successful),
            ("3xx", answered.redirected),
            ("4xx", answered.client_errors),
            ("5xx", answered.server_errors),
        ],
    );
    by(
        "refused",
        "Requests that were answered in a handler's place, by cause",
        "cause",
        &[
            ("bad_request", refused.bad_request),
            ("not_found", refused.not_found),
            ("method_not_allowed", refused.method_not_allowed),
            ("timed_out", refused.timed_out),
            ("body_too_large", refused.body_too_large),
            ("target_too_long", refused.target_too_long),
            ("expectation", refused.expectation),
            ("head_too_large", refused.head_too_large),
            ("panicked", refused.panicked),
            ("unanswered", refused.unanswered),
            ("not_implemented", refused.not_implemented),
            ("busy", refused.busy),
            ("version", refused.version),
        ],
    );
    by(
        "aborted",
        "Requests without a whole answer, by cause",
        "cause",
        &[
            ("disconnected", aborted.disconnected),
            ("timed_out", aborted.timed_out),
            ("unfinished", aborted.unfinished),
            ("closed", aborted.closed),
            ("cut_off", aborted.cut_off),
        ],
    );
}
