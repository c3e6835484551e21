//! The figures of a server's connections, for a registry.

use super::stats::{Closed, ListenerStats, ServerStats};
use crate::metrics::Collector;
use crate::net::address::Address;

/// What a server without a listener is called, and the `listener` of connections that are begun here.
const OUTGOING: &str = "outgoing";

/// What the figures of a server call it, before numbers: its first address.
pub(crate) fn name_of(first: Option<&Address>) -> String {
    first.map_or_else(|| OUTGOING.into(), Address::to_string)
}

/// What a server has counted, of which `outgoing` is not of its listeners, and how many bytes are queued.
pub(super) fn collect(
    to: &mut Collector,
    (pool, server): (&str, &str),
    stats: &ServerStats,
    outgoing: &ListenerStats,
    queued: usize,
) {
    for listener in &stats.listeners {
        collect_listener(to, [("pool", pool), ("server", server)], listener);
    }
    if outgoing.accepted > 0 || stats.listeners.is_empty() {
        collect_listener(to, [("pool", pool), ("server", server)], outgoing);
    }
    let help = "Bytes that are queued for the peers of a server";
    let labels = [("pool", pool), ("server", server)];
    to.gauge("paceline_server_queued_bytes", help, &labels, queued as f64);
}

fn collect_listener(to: &mut Collector, [pool, server]: [(&str, &str); 2], stats: &ListenerStats) {
    let listener = match &stats.address {
        Address::Unnamed => OUTGOING.into(),
        address => address.to_string(),
    };
    let labels = [pool, server, ("listener", &listener)];
    let mut counter = |name: &str, help: &str, count: u64| {
        to.counter(&format!("paceline_server_{name}"), help, &labels, count as f64);
    };
    counter("begun", "Connections that came and were let in, or were begun here", stats.accepted);
    counter("turned_away", "Connections beyond the maximum", stats.turned_away);
    counter(
        "exhausted",
        "Times that accepting paused, as nothing was left for it",
        stats.exhausted,
    );
    counter("panics_in_close", "Hooks for the end that panicked", stats.panics_in_close);
    counter("requests", "Requests that were admitted", stats.requests);
    counter("requests_answered", "Of these, those that were answered", stats.answered);
    counter("requests_aborted", "Of these, those that were not", stats.requests_aborted);
    counter("requests_busy", "Requests beyond the maximum", stats.busy);
    let mut gauge = |name: &str, help: &str, figure: usize| {
        to.gauge(&format!("paceline_server_{name}"), help, &labels, figure as f64);
    };
    gauge("connections", "Connections whose sockets are open", stats.open);
    gauge("requests_in_work", "Requests that were admitted and have not ended", stats.in_work);
    for (reason, count) in by_reason(&stats.closed) {
        let labels = [pool, server, ("listener", &listener), ("reason", reason)];
        let help = "Connections that have ended, by reason";
        to.counter("paceline_server_closed", help, &labels, count as f64);
    }
}

fn by_reason(closed: &Closed) -> [(&'static str, u64); 11] {
    [
        ("peer", closed.peer),
        ("local", closed.local),
        ("aborted", closed.aborted),
        ("refused", closed.refused),
        ("timed_out", closed.timed_out),
        ("failed", closed.failed),
        ("unconsumed", closed.unconsumed),
        ("panicked", closed.panicked),
        ("drained", closed.drained),
        ("cut_off", closed.cut_off),
        ("pool_ended", closed.pool_ended),
    ]
}
