//! What is kept of a publisher: its settings, and what it has published.

use crate::hub::keys::key::Pattern;
use crate::hub::publish::settings::Mode;
use crate::hub::system::notice::{Burst, Loses, Notice, Severity};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::time::Tokens;
use serde_json::json;

pub(in crate::hub) struct PublisherInner {
    pub(in crate::hub) name: Box<str>,
    pub(in crate::hub) allowed: Box<[Pattern]>,
    pub(in crate::hub) tokens: Option<Tokens>,
    pub(in crate::hub) if_full: Mode,
    pub(in crate::hub) counts: PublisherCounts,
    pub(in crate::hub) refused: AtomicU64,
    /// Of these, those beyond the quota.
    pub(in crate::hub) beyond: AtomicU64,
    pub(in crate::hub) burst: Burst,
}

/// What was published; `PublisherStats` says what each is.
#[derive(Default)]
pub(in crate::hub) struct PublisherCounts {
    /// PublisherCounts as published and as enqueued: for one subscriber, one change instead of two.
    both: AtomicU64,
    published: AtomicU64,
    enqueued: AtomicU64,
    lost: AtomicU64,
}

/// What a publisher has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PublisherStats {
    /// Messages that were published.
    pub published: u64,
    /// Messages that were not: beyond the quota, of a key that is not allowed, or invalid.
    pub refused: u64,
    /// The sum of what receipts called enqueued.
    pub enqueued: u64,
    /// The sum of what receipts called dropped and rejected.
    pub lost: u64,
}

impl PublisherCounts {
    #[inline]
    pub(in crate::hub) fn add(&self, published: u64, enqueued: u64, lost: u64) {
        let add = |count: &AtomicU64, more| _ = count.fetch_add(more, Relaxed);
        if enqueued == published {
            add(&self.both, published);
        } else {
            add(&self.published, published);
            add(&self.enqueued, enqueued);
        }
        if lost > 0 {
            add(&self.lost, lost);
        }
    }
}

impl PublisherInner {
    pub(in crate::hub) fn stats(&self) -> PublisherStats {
        let PublisherCounts { both, published, enqueued, lost } = &self.counts;
        let both = both.load(Relaxed);
        PublisherStats {
            published: published.load(Relaxed) + both,
            refused: self.refused.load(Relaxed),
            enqueued: enqueued.load(Relaxed) + both,
            lost: lost.load(Relaxed),
        }
    }

    pub(in crate::hub) fn figures(&self) -> PublisherFigures {
        PublisherFigures { name: self.name.to_string(), stats: self.stats() }
    }
}

impl Loses for PublisherInner {
    fn burst(&self) -> &Burst {
        &self.burst
    }

    fn losses(&self) -> u64 {
        self.beyond.load(Relaxed)
    }

    fn notice(&self, count: u64) -> Notice {
        Notice {
            event: "publisher.refused",
            severity: Severity::Warning,
            origin: format!("publisher {}", self.name),
            message: format!("{count} refused beyond its quota"),
            fields: json!({ "publisher": self.name, "count": count }),
        }
    }
}

/// One publisher.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PublisherFigures {
    /// Its name.
    pub name: String,
    /// Its counts.
    pub stats: PublisherStats,
}
