//! The histories of a hub.

use super::query::{Query, covers};
use super::settings::{History, HistoryStats, Kept};
use crate::error::{Error, Result};
use crate::hub::key::Key;
use crate::hub::message::Stored;
use crate::hub::{Core, Hub};
use crate::pool::Shared;
use std::sync::{Arc, OnceLock, Weak};

/// The most histories of a hub: so many bits are in a key's record.
const MOST: usize = 31;
/// In a key's record: it is known which histories take it.
const KNOWN: u32 = 1 << MOST;

/// All histories of a hub; they are there from the beginning.
pub(in crate::hub) struct Histories {
    kept: Box<[Kept]>,
    shared: Arc<Shared>,
    hub: Arc<OnceLock<Weak<Core>>>,
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
    pub(in crate::hub) fn belong_to(&self, hub: &Weak<Core>) {
        let _there_is_one = self.hub.set(Weak::clone(hub));
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
        let known = key.channel().takers();
        Takers(if known & KNOWN != 0 { known & !KNOWN } else { self.find_takers(key) })
    }

    #[cold]
    fn find_takers(&self, key: &Key) -> u32 {
        let bit = |(number, kept): (usize, &Kept)| {
            u32::from(kept.pattern.matches(key.as_str())) << number
        };
        let takers = self.kept.iter().enumerate().map(bit).sum();
        key.channel().set_takers(takers | KNOWN);
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

    /// All of them, whatever becomes of each.
    fn flush(&self) -> Result<()> {
        let flushed = self.kept.iter().map(|kept| kept.log.flush()).fold(Ok(()), Result::and);
        flushed.and(match self.given_up() {
            0 => Ok(()),
            messages => Err(Error::GivenUp { messages }),
        })
    }

    fn given_up(&self) -> u64 {
        self.kept.iter().map(|kept| kept.log.given_up()).sum()
    }

    fn stats(&self) -> Vec<HistoryStats> {
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

impl Core {
    /// Makes the key of a message from an archive one of this hub.
    pub(super) fn own_key(&self, stored: &mut Stored) {
        if !self.keys.owns(&stored.key) {
            stored.key = self.keys.intern(stored.key.as_str());
        }
    }
}

impl Hub {
    /// What a [history](History) has kept that the query asks for, in order. The history's pattern must match
    /// all that the query's does. It reads the disk in the calling thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no history keeps all that the pattern matches; [`Error::Os`] names the archive and
    /// what is wrong with it; [`Error::Forked`].
    pub fn query(&self, query: &Query) -> Result<Vec<Stored>> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let kept = self.core.histories.covering(query.pattern.as_str())?;
        let mut found = kept.log.query(query)?;
        found.iter_mut().for_each(|stored| self.core.own_key(stored));
        Ok(found)
    }

    /// Commits everything that was published before the call to all archives. If it returns `Ok`, every message that
    /// the hub's histories have taken before the call is on disk. It writes in the calling thread, beside commits of
    /// the pool's.
    ///
    /// # Errors
    /// [`Error::Os`] names the archive and what is wrong; what could not be written is tried again later.
    /// [`Error::GivenUp`] says how many messages were given up since the hub was built
    /// ([`WhenFull::GiveUp`](super::WhenFull::GiveUp)), or lost with lines that could not be written where there is
    /// no archive; all others are on disk then. Since these stay lost, so does each later flush: if the number has not
    /// grown, whatever was published between the two is on disk. Lines that could not be written beside an archive are
    /// no error ([`HistoryStats::lines_lost`]). [`Error::Forked`].
    pub fn flush_histories(&self) -> Result<()> {
        match self.core.shared.is_forked() {
            true => Err(Error::Forked),
            false => {
                let flushed = self.core.histories.flush();
                self.core.histories.kept.iter().for_each(Kept::tell_health);
                flushed
            }
        }
    }

    /// How many messages all histories have given up.
    #[cfg(feature = "capi")]
    pub(crate) fn messages_given_up(&self) -> u64 {
        self.core.histories.given_up()
    }

    /// What each history has done, in the order in which they were given to the builder.
    pub fn history_stats(&self) -> Vec<HistoryStats> {
        self.core.histories.stats()
    }
}
