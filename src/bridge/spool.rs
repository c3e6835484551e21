//! A spool: the messages of an export wait in the archive of the hub's history, which outlives the process. What is kept
//! here is how far the broker has stored them.
//!
//! # The file
//!
//! One line of a fixed length, so that a new number replaces the old one in one write of one block:
//!
//! ```text
//!   paceline spool 3 <origin, 24 hexadecimal digits> <secret, 32> <id of the archive, 16> <sequence, 20 digits> <position, 20>
//! ```
//!
//! # Invariants
//!
//! 1. All messages of the export up to this sequence are stored by the broker, or never will be.
//! 2. The number on disk is that or an older one, by 100 ms of a process that is killed. What is sent again therefore has
//!    the id of the first time, as the ids are made of what is in this file, and the stream drops it within its window.
//! 3. While a bridge has it, the file is locked: no other one sends the same messages. A forked child does not keep it locked.
//! 4. A number is only used with the archive that it belongs to: one with this id, whose hub has published that much already.
//! 5. The position is that of the first message behind the sequence that the archive had when the sequence was written. What is
//!    not there any more when the next bridge reads on from it has been lost meanwhile.
//!
//! Nothing waits for the disk: after a loss of power the number may be older still, and more is sent again.

use super::wire::Origin;
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::history::ReplayMailbox;
use crate::sys::fd::{try_lock, unlock};
use crate::sys::own_file::OwnFile;
use core::time::Duration;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const HEAD: &str = "paceline spool 3";
/// Where the sequence begins.
const AT: usize = HEAD.len() + 1 + 24 + 1 + 32 + 1 + 16 + 1;
const LENGTH: usize = AT + 20 + 1 + 20 + 1;
/// How old the number on disk may be while more is stored all the time.
const LAG: Duration = Duration::from_millis(100);

/// See the head of this file.
pub(super) struct Spool {
    pub(super) replay: ReplayMailbox,
    /// What the ids of its messages are made of, for all processes that have the file in turn.
    pub(super) ids: Origin,
    path: PathBuf,
    file: OwnFile,
    noted: Mutex<Noted>,
}

/// How far the broker has stored.
struct Noted {
    stored: u64,
    on_disk: u64,
    /// The position that is on disk.
    position: u64,
    /// When that was written, or could not be.
    at: Instant,
    failure: Option<String>,
}

impl Spool {
    /// Opens the file, or makes it, and begins behind what it says.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another bridge has it, if it is none, or is another archive's, and for a hub without an archive
    /// of these keys; [`Error::Os`].
    pub(super) fn open(hub: &Hub, pattern: &str, path: &Path) -> Result<Self> {
        let failed = |error| Error::os(format!("open the spool {}", path.display()), error);
        // Before there is a file.
        let archive = hub.archive_of(pattern)?;
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // Who knows what is in it can guess ids.
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let file = OwnFile::new(file);
        if !try_lock(file.as_fd()) {
            return Err(invalid(path, "one that no other bridge has open"));
        }
        let mut text = String::new();
        let read = (&*file).take(LENGTH as u64 + 1).read_to_string(&mut text);
        let (ids, belongs, stored, position) = match read {
            Ok(0) => (Origin::of(hub.number()), archive, 0, None),
            Ok(_) => parse(&text).ok_or_else(|| not_one(path))?,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(not_one(path)),
            Err(error) => return Err(failed(error)),
        };
        if belongs != archive {
            let allowed = "that of the archive of this hub, and belongs to another; without a file the export begins \
                           with the oldest message";
            return Err(invalid(path, allowed));
        }
        let Some(replay) = hub.replay_archive(pattern, stored)? else {
            let allowed =
                format!("that of the archive of this hub, whose messages do not reach {stored}");
            return Err(invalid(path, &allowed));
        };
        let position = match position {
            Some(position) => {
                replay.begin_at(position);
                position
            }
            None => {
                let position = replay.first_behind(0)?;
                (&*file).write_all(line(&ids, archive, 0, position).as_bytes()).map_err(failed)?;
                file.sync_all().map_err(failed)?;
                position
            }
        };
        let at = Instant::now();
        let noted = Mutex::new(Noted { stored, on_disk: stored, position, at, failure: None });
        Ok(Self { replay, ids, path: path.to_owned(), file, noted })
    }

    /// All up to this sequence is dealt with.
    pub(super) fn stored(&self, sequence: u64) {
        let mut noted = self.noted();
        noted.stored = sequence;
        if noted.at.elapsed() >= LAG {
            self.write(&mut noted);
        }
    }

    /// The sequence up to which all is dealt with.
    pub(super) fn reached(&self) -> u64 {
        self.noted().stored
    }

    /// Brings the number on disk up to date.
    pub(super) fn note(&self) {
        let mut noted = self.noted();
        if noted.stored != noted.on_disk {
            self.write(&mut noted);
        }
    }

    /// Why the number on disk is older than it should be.
    pub(super) fn failure(&self) -> Option<String> {
        self.noted().failure.clone()
    }

    /// The last of this bridge: another one may have the file.
    pub(super) fn close(&self) {
        self.note();
        unlock(self.file.as_fd());
    }

    /// If that fails an older number stays, and it is tried again with the next.
    fn write(&self, noted: &mut Noted) {
        // The old one if the archive is closed: it is before the right one.
        noted.position = self.replay.first_behind(noted.stored).unwrap_or(noted.position);
        let numbers = format!("{:020} {:020}", noted.stored, noted.position);
        let wrote = self.file.write_all_at(numbers.as_bytes(), AT as u64);
        noted.at = Instant::now();
        match wrote {
            Ok(()) => (noted.on_disk, noted.failure) = (noted.stored, None),
            Err(error) => {
                let error = Error::os(format!("write to {}", self.path.display()), error);
                noted.failure = Some(error.to_string());
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(ids: &Origin, archive: u64, stored: u64, position: u64) -> String {
    let (ids, secret) = (ids.as_str(), ids.secret());
    format!("{HEAD} {ids} {secret:032x} {archive:016x} {stored:020} {position:020}\n")
}

fn parse(text: &str) -> Option<(Origin, u64, u64, Option<u64>)> {
    let rest = text.strip_prefix(HEAD)?.strip_prefix(' ')?.strip_suffix('\n')?;
    let mut parts = rest.split(' ');
    let (origin, secret, archive) = (parts.next()?, parts.next()?, parts.next()?);
    let ids = Origin::again(origin, u128::from_str_radix(secret, 16).ok()?)?;
    let archive = u64::from_str_radix(archive, 16).ok()?;
    let (stored, position) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    (line(&ids, archive, stored, position) == text).then_some((
        ids,
        archive,
        stored,
        Some(position),
    ))
}

fn invalid(path: &Path, allowed: &str) -> Error {
    Error::invalid("the file of a spool", format!("{path:?}"), allowed)
}

fn not_one(path: &Path) -> Error {
    let allowed =
        "one that a bridge has made; without a file the export begins with the oldest message";
    invalid(path, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_and_nothing_else_is() {
        let ids = Origin::of(1);
        let text = line(&ids, 815, 4711, 17);
        assert_eq!(text.len(), LENGTH);
        let (again, archive, stored, position) = parse(&text).unwrap();
        assert_eq!((again.as_str(), again.secret()), (ids.as_str(), ids.secret()));
        assert_eq!((archive, stored, position), (815, 4711, Some(17)));
        for length in 0..text.len() {
            assert!(parse(&text[..length]).is_none());
        }
        for odd in [text.replace("spool 3", "spool 2"), text.replace(' ', "  "), text + "x"] {
            assert!(parse(&odd).is_none());
        }
    }
}
