//! Histories of a hub: asked, written out, counted.

use crate::error::{Error, Result};
use crate::hub::core::Core;
use crate::hub::handle::Hub;
use crate::hub::history::lines::write_lines;
use crate::hub::history::query::Query;
use crate::hub::history::settings::{HistoryStats, Kept};
use crate::hub::message::Stored;
use std::path::Path;

/// Makes the key of a message from an archive one of this hub.
pub(super) fn own_key(core: &Core, stored: &mut Stored) {
    if !core.keys.owns(&stored.key) {
        stored.key = core.keys.intern(stored.key.as_str());
    }
}

impl Hub {
    /// What a [history](crate::hub::history::History) has kept that the query asks for, in order. The history's pattern must match
    /// all that the query's does. It reads the disk in the calling thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no history keeps all that the pattern matches; [`Error::Os`] names the archive and
    /// what is wrong with it; [`Error::Forked`].
    pub fn query(&self, query: &Query) -> Result<Vec<Stored>> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let kept = self.core.histories.covering(&query.pattern)?;
        let mut found = kept.log.query(query)?;
        found.iter_mut().for_each(|stored| own_key(&self.core, stored));
        Ok(found)
    }

    /// Writes what a history has kept that the query asks for to a new file of
    /// [lines](crate::hub::history::read_lines), which is there when all of it is. Says how many. As
    /// [`query`](Self::query), and [`Query::last`] counts as [`Query::limit`]. It holds some messages at a time only.
    /// `Archive::import` (feature `archive`) makes an archive of the file, which another hub can go on with.
    ///
    /// # Errors
    /// As [`query`](Self::query); [`Error::Invalid`] and [`Error::Os`] also name the file and what is wrong with it.
    pub fn export(&self, query: &Query, path: impl AsRef<Path>) -> Result<u64> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let query = Query { newest: false, ..query.clone() };
        let kept = self.core.histories.covering(&query.pattern)?;
        let pages = kept.log.pages(&query)?;
        write_lines(path.as_ref(), pages)
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

    /// Commits everything that was published, and closes the files of all histories: a copy of an archive's file has
    /// everything then, and another hub can open it at once. What a history with files would record is refused from now
    /// on with [`Error::ShutDown`], and so is who asks for what is only on disk. Without this call it is done when the hub
    /// is gone. Calling it again is allowed.
    ///
    /// # Errors
    /// [`Error::Os`] names the archive and what is wrong: if it could not be written, it stays open, and all goes on as
    /// before. [`Error::Forked`].
    pub fn close_histories(&self) -> Result<()> {
        match self.core.shared.is_forked() {
            true => Err(Error::Forked),
            false => self.core.histories.close_files(),
        }
    }

    /// How many messages all histories have given up.
    pub(crate) fn messages_given_up(&self) -> u64 {
        self.core.histories.given_up()
    }

    /// What each history has done, in the order in which they were given to the builder.
    pub fn history_stats(&self) -> Vec<HistoryStats> {
        self.core.histories.stats()
    }
}
