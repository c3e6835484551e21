//! A bridge's statistics in a registry, and as JSON.

use super::stats::{BridgeStats, ExportStats, ImportStats};
use crate::metrics::Collector;
use serde_json::{Value, json};

/// How many rules of each kind JSON has.
const MOST_RULES: usize = 50;

/// The figures of a bridge that is called `bridge` at this snapshot.
pub(super) fn collect(to: &mut Collector, pool: &str, bridge: &str, stats: &BridgeStats) {
    let labels = [("pool", pool), ("bridge", bridge)];
    let mut of = Figures { to, labels: &labels, prefix: "paceline_bridge" };
    of.gauge("connected", "1 while it is connected to a broker, else 0", stats.connected.into());
    of.gauge("requests_out", "Requests that wait for a reply from elsewhere", stats.requests_out);
    of.gauge("requests_in", "Requests from elsewhere that wait for a reply", stats.requests_in);
    of.counter("connects", "How often it has connected", stats.connects);
    of.counter("lost", "Messages that came while the buffer of their import was full", stats.lost);
    for (number, one) in stats.exports.iter().enumerate() {
        let number = number.to_string();
        let rule = [("rule", &*number), ("pattern", &*one.pattern)];
        let labels = [labels[0], labels[1], rule[0], rule[1]];
        export(Figures { to, labels: &labels, prefix: "paceline_bridge_export" }, one);
    }
    for (number, one) in stats.imports.iter().enumerate() {
        let number = number.to_string();
        let rule = [("rule", &*number), ("pattern", &*one.pattern)];
        let labels = [labels[0], labels[1], rule[0], rule[1]];
        import(Figures { to, labels: &labels, prefix: "paceline_bridge_import" }, one);
    }
}

fn export(mut of: Figures<'_>, one: &ExportStats) {
    of.gauge("waiting", "Messages that wait for the broker", one.waiting);
    of.counter("sent", "Messages that were handed to the connection", one.sent);
    of.counter("dropped", "Messages that a full buffer has dropped or refused", one.dropped);
    of.counter("refused", "Messages that the broker does not take", one.refused);
    of.counter("late", "Requests that nobody waited for when their turn came", one.late);
    of.counter("turned_back", "Messages that another process has published", one.turned_back);
    if one.stream.is_some() {
        of.gauge(
            "in_flight",
            "Messages that were sent and are not known to be stored",
            one.in_flight,
        );
        of.counter("stored", "Messages that the broker has stored", one.stored);
        of.counter("sent_again", "How often a message was sent again", one.sent_again);
    }
}

fn import(mut of: Figures<'_>, one: &ImportStats) {
    of.counter("published", "Messages that were published in the hub", one.published);
    of.counter("duplicates", "Messages that came before within the window", one.duplicates);
    of.counter("turned_back", "Messages that this hub has published itself", one.turned_back);
    of.counter("refused", "Messages that the hub does not take", one.refused);
    if one.stream.is_some() {
        of.gauge("in_flight", "Messages that the hub has and are not acknowledged", one.in_flight);
        of.gauge("lag", "Messages that the stream has for it still", one.lag);
        of.counter("acknowledged", "Messages that were acknowledged", one.acknowledged);
        of.counter("again", "How often the broker was asked to send a message again", one.again);
        of.counter("dead", "Messages that became dead letters past the last attempt", one.dead);
    }
}

/// Figures with the same labels.
struct Figures<'a> {
    to: &'a mut Collector,
    labels: &'a [(&'a str, &'a str)],
    prefix: &'static str,
}

impl Figures<'_> {
    fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.to.counter(&format!("{}_{name}", self.prefix), help, self.labels, count as f64);
    }

    fn gauge(&mut self, name: &str, help: &str, figure: u64) {
        self.to.gauge(&format!("{}_{name}", self.prefix), help, self.labels, figure as f64);
    }
}

/// For the live page, and whoever reads figures with the reasons for them.
pub(super) fn json(name: &str, stats: &BridgeStats) -> Value {
    json!({
        "name": name, "connected": stats.connected, "reason": stats.reason, "server": stats.server,
        "connects": stats.connects, "requests_out": stats.requests_out,
        "requests_in": stats.requests_in, "lost": stats.lost,
        "exports": stats.exports.iter().take(MOST_RULES).map(export_json).collect::<Vec<_>>(),
        "imports": stats.imports.iter().take(MOST_RULES).map(import_json).collect::<Vec<_>>(),
    })
}

fn export_json(one: &ExportStats) -> Value {
    json!({
        "pattern": one.pattern, "stream": one.stream, "waiting": one.waiting, "sent": one.sent,
        "stored": one.stored, "in_flight": one.in_flight, "sent_again": one.sent_again,
        "dropped": one.dropped, "refused": one.refused, "late": one.late,
        "turned_back": one.turned_back,
    })
}

fn import_json(one: &ImportStats) -> Value {
    json!({
        "pattern": one.pattern, "stream": one.stream, "published": one.published,
        "acknowledged": one.acknowledged, "in_flight": one.in_flight, "again": one.again,
        "dead": one.dead, "lag": one.lag, "duplicates": one.duplicates,
        "turned_back": one.turned_back, "refused": one.refused,
    })
}
