//! What a bridge has counted, and how it is.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Counters of one rule, each of which only grows but for `in_flight`.
#[derive(Default)]
pub(super) struct Counters {
    /// Exports: handed to the connection. Imports: published in the hub.
    pub(super) passed: AtomicU64,
    /// Stored by the broker; acknowledged to it.
    pub(super) settled: AtomicU64,
    /// Sent or delivered again.
    pub(super) again: AtomicU64,
    /// Dead letters of imports; ended by the broker's refusal.
    pub(super) dead: AtomicU64,
    /// Not carried: too large, with headers that cannot be carried, no key.
    pub(super) refused: AtomicU64,
    /// Dropped, as they were there before.
    pub(super) duplicates: AtomicU64,
    /// Not carried, as they come from where they would go.
    pub(super) turned_back: AtomicU64,
    /// Requests that nobody waited for any more when their turn came.
    pub(super) late: AtomicU64,
    pub(super) in_flight: AtomicU64,
    /// What waits at the broker.
    pub(super) lag: AtomicU64,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// What became of the messages of one export.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExportStats {
    /// Its pattern.
    pub pattern: String,
    /// The stream that stores its messages; none: at most once.
    pub stream: Option<String>,
    /// Messages that wait for the broker; with a spool, records of its history that it has not looked at, those of other keys
    /// included.
    pub waiting: u64,
    /// Messages that were handed to the connection.
    pub sent: u64,
    /// At least once: those that the broker has stored.
    pub stored: u64,
    /// Messages that were taken on and not handed to the connection, or, at least once, of which the broker has not said
    /// that they are stored.
    pub in_flight: u64,
    /// At least once: how often one was sent again.
    pub sent_again: u64,
    /// Messages that a full buffer has dropped or refused.
    pub dropped: u64,
    /// Messages that the broker does not take: they are larger than it allows, or the stream has refused them for good.
    pub refused: u64,
    /// Requests that nobody waited for any more when their turn came.
    pub late: u64,
    /// Messages that another process has published: they do not go out again.
    pub turned_back: u64,
}

/// What became of the messages of one import.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ImportStats {
    /// Its pattern.
    pub pattern: String,
    /// The stream that its messages are taken from; none: at most once.
    pub stream: Option<String>,
    /// Messages that were published in the hub.
    pub published: u64,
    /// At least once: those that were acknowledged.
    pub acknowledged: u64,
    /// At least once: those that the hub has, and that are not acknowledged.
    pub in_flight: u64,
    /// At least once: how often the broker was asked to send one again.
    pub again: u64,
    /// At least once: those that have become dead letters past the last attempt.
    pub dead: u64,
    /// At least once: those that the stream has for it still, when last heard of.
    pub lag: u64,
    /// Messages that came before within the window.
    pub duplicates: u64,
    /// Messages that this hub has published itself.
    pub turned_back: u64,
    /// Messages that the hub does not take: too large, too many headers, a subject that is no key.
    pub refused: u64,
}

/// How a [`Bridge`](super::Bridge) is, and what it has carried. Exact while nothing is under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BridgeStats {
    /// Whether it is connected.
    pub connected: bool,
    /// Why not, or what the broker has refused last.
    pub reason: Option<String>,
    /// The name of the server that it is connected to, or was last.
    pub server: String,
    /// How often it has connected.
    pub connects: u64,
    /// Requests that wait for a reply from elsewhere.
    pub requests_out: u64,
    /// Requests from elsewhere that wait for a reply of this hub.
    pub requests_in: u64,
    /// Messages from the broker that came while the buffer of their import was full, at the least: in a flood the client
    /// does not tell of each.
    pub lost: u64,
    /// In the order in which they were given.
    pub exports: Vec<ExportStats>,
    /// In the order in which they were given.
    pub imports: Vec<ImportStats>,
}

impl fmt::Display for BridgeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.reason, self.connected) {
            (None, true) => write!(f, "connected to {}", self.server),
            (Some(reason), true) => write!(f, "connected to {}; {reason}", self.server),
            (reason, false) => {
                write!(f, "not connected: {}", reason.as_deref().unwrap_or("not yet"))
            }
        }
    }
}
