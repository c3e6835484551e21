//! The histories of a hub.

use crate::error::{Error, Result};
use crate::hub::history::query::covers;
use crate::hub::history::settings::{History, HistoryStats, Kept};
use crate::hub::keys::key::{Key, check_pattern};
use crate::hub::message::Stored;
use crate::hub::system::notice::Listener;
use crate::pool::Shared;
use std::sync::{Arc, OnceLock, Weak};

/// The most histories of a hub: so many bits are in a key's record.
const MOST: usize = 31;
/// In a key's record: it is known which histories take it.
const KNOWN: u32 = 1 << MOST;

/// All histories of a hub; they are there from the beginning.
pub(in crate::hub) struct Histories {
    pub(in crate::hub) kept: Box<[Kept]>,
    shared: Arc<Shared>,
    hub: Arc<OnceLock<Weak<dyn Listener>>>,
}

/// The histories that take a key: a bit for each.
#[derive(Clone, Copy)]
pub(in crate::hub) struct Takers(u32);

impl Takers {
    #[inline]
    pub(in crate::hub) fn is_nobody(self) -> bool {
        self.0 == 0
    }
}

impl Histories {
    pub(in crate::hub) fn open(histories: Vec<History>, shared: &Arc<Shared>) -> Result<Self> {
        if histories.len() > MOST {
            return Err(Error::invalid("the number of histories", histories.len(), "up to 31"));
        }
        let hub = Arc::new(OnceLock::new());
        let open = |history: History| history.open(shared, &hub);
        let kept = histories.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self { kept, shared: Arc::clone(shared), hub })
    }

    /// The hub that is told when an archive cannot be written.
    pub(in crate::hub) fn belong_to(&self, hub: Weak<dyn Listener>) {
        let _there_is_one = self.hub.set(hub);
    }

    /// What a hub's sequences begin with, so that none comes twice in an archive.
    pub(in crate::hub) fn first_sequence(&self) -> u64 {
        self.kept.iter().map(|kept| kept.first_sequence).max().unwrap_or(1)
    }

    /// Which histories take this key, of this hub.
    #[inline]
    pub(in crate::hub) fn takers(&self, key: &Key) -> Takers {
        if self.kept.is_empty() {
            return Takers(0);
        }
        let known = key.record().takers();
        Takers(if known & KNOWN != 0 { known & !KNOWN } else { self.find_takers(key) })
    }

    #[cold]
    fn find_takers(&self, key: &Key) -> u32 {
        let bit = |(number, kept): (usize, &Kept)| {
            u32::from(kept.pattern.matches(key.as_str())) << number
        };
        let takers = self.kept.iter().enumerate().map(bit).sum();
        key.record().set_takers(takers | KNOWN);
        takers
    }

    /// Makes room or waits for it where a history wants that, before a message is numbered.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing must be published.
    #[inline]
    pub(in crate::hub) fn admit(&self, takers: Takers, may_wait: bool) -> Result<()> {
        self.of(takers.0).try_for_each(|kept| kept.log.admit(may_wait))
    }

    /// Records the message that `make` makes and numbers.
    #[inline]
    pub(in crate::hub) fn record(&self, takers: Takers, make: impl FnOnce() -> Stored) -> Stored {
        match takers.0 {
            0 => make(),
            bits => self.record_in(bits, &mut Some(make)),
        }
    }

    /// Each under the locks of those before it, so that sequences grow in all of them.
    fn record_in(&self, bits: u32, make: &mut Option<impl FnOnce() -> Stored>) -> Stored {
        let first = &self.kept[bits.trailing_zeros() as usize];
        let others = bits & (bits - 1);
        first.log.record(|| match others {
            0 => make.take().map(|make| make()).unwrap_or_else(|| unreachable!("it is made once")),
            others => self.record_in(others, make),
        })
    }

    fn of(&self, bits: u32) -> impl Iterator<Item = &Kept> {
        let has_bit = move |(number, kept)| (bits >> number & 1 != 0).then_some(kept);
        self.kept.iter().enumerate().filter_map(has_bit)
    }

    /// The first history that keeps all that the pattern matches.
    pub(super) fn covering(&self, pattern: &str) -> Result<&Kept> {
        check_pattern(pattern)?;
        let covering = |kept: &&Kept| covers(kept.pattern.as_str(), pattern);
        self.kept.iter().find(covering).ok_or_else(|| {
            let patterns: Vec<_> = self.kept.iter().map(|kept| kept.pattern.as_str()).collect();
            let allowed = match patterns.is_empty() {
                true => "asked of a hub with a history".to_owned(),
                false => format!("within that of a history: {}", patterns.join(", ")),
            };
            Error::invalid("the pattern", format!("{pattern:?}"), allowed)
        })
    }

    /// The id of the archive of the history that [covers](Self::covering) this pattern, if it has one.
    #[cfg(feature = "nats")]
    pub(in crate::hub) fn archive_of(&self, pattern: &str) -> Result<Option<u64>> {
        Ok(self.covering(pattern)?.archive)
    }

    /// All of them, whatever becomes of each.
    pub(in crate::hub) fn flush(&self) -> Result<()> {
        let flushed = self.kept.iter().map(|kept| kept.log.flush()).fold(Ok(()), Result::and);
        flushed.and(match self.given_up() {
            0 => Ok(()),
            messages => Err(Error::GivenUp { messages }),
        })
    }

    /// All of them, whatever becomes of each.
    pub(in crate::hub) fn close_files(&self) -> Result<()> {
        self.kept.iter().map(|kept| kept.log.close_files()).fold(Ok(()), Result::and)
    }

    pub(in crate::hub) fn given_up(&self) -> u64 {
        self.kept.iter().map(|kept| kept.log.given_up()).sum()
    }

    /// Those with files, for the live page.
    pub(in crate::hub) fn shown(&self) -> Vec<serde_json::Value> {
        let on_disk = self.kept.iter().filter(|kept| kept.log.has_files());
        let shown = on_disk.map(|kept| {
            let stats = kept.stats();
            serde_json::json!({
                "pattern": stats.pattern, "reason": kept.failure(), "waiting": stats.waiting,
                "recorded": stats.recorded, "given_up": stats.given_up,
            })
        });
        shown.collect()
    }

    /// The patterns of those that are not written just now, and why.
    pub(in crate::hub) fn failures(&self) -> impl Iterator<Item = (&str, String)> {
        self.kept.iter().filter_map(|kept| Some((kept.pattern.as_str(), kept.failure()?)))
    }

    pub(in crate::hub) fn stats(&self) -> Vec<HistoryStats> {
        self.kept.iter().map(Kept::stats).collect()
    }
}

impl Drop for Histories {
    /// What waits is committed. If it cannot be, only the log of the pool is left to be told.
    fn drop(&mut self) {
        for kept in &self.kept {
            match self.shared.is_forked() {
                // Neither locks nor files of the parent's are touched, and none is closed.
                true => core::mem::forget(Arc::clone(&kept.log)),
                false => {
                    if let Err(error) = kept.log.close() {
                        kept.log_loss(&self.shared.log, &error);
                    }
                }
            }
        }
    }
}
