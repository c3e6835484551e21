//! The figures of a datagram socket, for a registry.

use super::socket::UdpStats;
use crate::metrics::Collector;

pub(super) fn collect(to: &mut Collector, pool: &str, socket: &str, stats: &UdpStats) {
    let labels = [("pool", pool), ("socket", socket)];
    let mut counter = |name: &str, help: &str, count: u64| {
        to.counter(&format!("paceline_udp_{name}"), help, &labels, count as f64);
    };
    counter("received", "Datagrams that the handler was given", stats.received);
    counter("received_bytes", "Their bytes", stats.received_bytes);
    counter("truncated", "Datagrams whose end was cut off", stats.truncated);
    counter("receive_errors", "Errors that came instead of datagrams", stats.errors);
    counter(
        "dropped",
        "Datagrams that waited for a completion queue beyond the maximum",
        stats.dropped,
    );
    counter("sent", "Datagrams that the kernel has taken", stats.sent);
    counter("sent_bytes", "Their bytes", stats.sent_bytes);
    counter("send_refused", "Calls that the kernel had no room for", stats.refused);
    counter("send_failed", "Calls that failed for another reason", stats.failed);
}
