//! The part of a history that is on disk: a file of SQLite.
//!
//! # The file
//!
//! | table | what is in it |
//! |---|---|
//! | `messages` | a row for each record, by position |
//! | `keys` | each key once |
//! | `gaps` | positions that were given up, from `first` to below `next` |
//! | `state` | what outlives the rows: the `next` position, the last `sequence`, whether it was `closed`, an `id` by chance |
//!
//! `application_id` tells it from databases of others, and `user_version` is how many of [`STEPS`] it has been
//! through. An older file goes through the rest when it is opened; a newer one is refused.
//!
//! # Who does what
//!
//! One [`Writer`] commits batches, each a transaction: all of it is on disk, or none. Any number of
//! [`Reader`]s read beside it, each through a connection of its own, since in WAL mode neither waits for the
//! other. Retention is a part of each commit, bounded, so that no commit grows long.
//!
//! A second writer of the same file meets positions that are taken: its commit fails, and says so.
//!
//! # The file beside the file
//!
//! What is committed is in `-wal` first. SQLite removes that when it closes the last connection, and knows the others by
//! locks of their processes. Those are gone when a process opens and closes the file by itself, and then the `-wal` is
//! removed under the writer, whose commits nobody finds any more. So a writer has [locks of its own](Locks), and looks
//! after each commit whether the `-wal` is still there: if it is not, the commit goes to the file itself.

use crate::error::{Error, Result};
use crate::hub::history::limits::Limits;
use crate::hub::history::lines::{LinesRead, read_lines, write_lines};
use crate::hub::history::log::{Gaps, Page, Shelf, Sink};
use crate::hub::history::query::{Query, literal_part};
use crate::hub::keys::key::{Key, check_pattern};
use crate::hub::message::{Headers, Payload, Priority, Stored};
use crate::sys::fd::lock_range;
use crate::sys::own_file::OwnFile;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior,
};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "pace".
const APPLICATION: i64 = 0x7061_6365;

/// What makes a file of each version from one of the version before; the first makes it from nothing.
const STEPS: [&str; 2] = [
    "CREATE TABLE keys(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
     CREATE TABLE messages(
         position INTEGER PRIMARY KEY,
         sequence INTEGER NOT NULL,
         time INTEGER NOT NULL,
         key INTEGER NOT NULL REFERENCES keys(id),
         priority INTEGER NOT NULL,
         headers TEXT,
         payload BLOB NOT NULL
     );
     CREATE INDEX messages_by_key ON messages(key, position);
     CREATE UNIQUE INDEX messages_by_sequence ON messages(sequence);
     CREATE INDEX messages_by_time ON messages(time);
     CREATE TABLE state(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE gaps(first INTEGER PRIMARY KEY, next INTEGER NOT NULL);",
];

/// One commit lets at most so many rows go beyond those that it brings.
const STEP: u64 = 1024;

/// One read looks at no more rows than this, however few of them are asked for.
const LOOK: usize = 4096;

/// More sequences than anybody can have seen of what a kill took away.
const LEAP: u64 = 1 << 32;

/// The size to which a `-wal` that has grown beyond it shrinks again: SQLite goes on at its beginning at about that.
const WAL: u32 = 4 << 20;

/// Keys whose numbers a writer remembers.
const KEYS: usize = 1 << 16;

/// When a commit is on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When the machine may lose its power: each commit waits for the disk.
    #[default]
    Power,
    /// When the process may be killed, but the machine goes on: commits do not wait for the disk. After a loss
    /// of power the last commits may be missing; the file is whole.
    Process,
}

/// Where an archive is, and how much it keeps.
#[derive(Clone, Debug)]
#[must_use]
pub struct ArchiveOptions {
    pub(super) path: PathBuf,
    pub(super) keep: Limits,
    durability: Durability,
    check: bool,
}

impl ArchiveOptions {
    /// The file; it is made if it is not there. Beside it SQLite keeps `-wal` and `-shm`. An empty path and
    /// `:memory:`, which SQLite takes for no file, are refused: [`History::keep`](super::History::keep) is for memory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let keep = Limits::unlimited();
        Self { path: path.into(), keep, durability: Durability::Power, check: false }
    }

    /// What is kept; a file that has been larger keeps its size. Default: everything.
    pub fn keep(mut self, keep: Limits) -> Self {
        self.keep = keep;
        self
    }

    /// When a commit counts as durable. Default: [`Durability::Power`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Reads the whole file when it is opened, and refuses it if it is damaged. Default: false; damage is then
    /// told by the call that meets it.
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    pub(super) fn open(&self) -> Result<(Writer, Reader)> {
        self.keep.check("the archive's limit")?;
        let writer = Writer::open(self)?;
        let reader = Reader::open(&self.path)?;
        Ok((writer, reader))
    }
}

/// An archive that is read without a hub, or beside one.
pub struct Archive {
    reader: Reader,
}

impl Archive {
    /// Opens a file that a hub has made; it is brought up to date if it is older.
    ///
    /// # Errors
    /// [`Error::Os`] and [`Error::Invalid`] name the path and what is wrong.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        bring_up_to_date(&mut connection, path)?;
        Ok(Self { reader: Reader::open(path)? })
    }

    /// What the query asks for, in order.
    ///
    /// # Errors
    /// [`Error::Os`] names the path and what is wrong with the file.
    pub fn query(&self, query: &Query) -> Result<Vec<Stored>> {
        let mut found = Vec::new();
        let Some((first, last)) = self.reader.extent(query)? else { return Ok(found) };
        let (mut from, mut below) = (first, last + 1);
        while from < below && found.len() < query.limit {
            let page = self.reader.read(query, from, below, query.limit - found.len())?;
            found.extend(page.records.into_iter().map(|(_, stored)| stored));
            *(if query.newest { &mut below } else { &mut from }) = page.next;
        }
        if query.newest {
            found.reverse();
        }
        Ok(found)
    }

    /// Writes what the query asks for to a new file of [lines](super::read_lines), which is there when all
    /// of it is. Says how many. [`Query::last`] counts as [`Query::limit`].
    ///
    /// # Errors
    /// [`Error::Os`] names the path and what is wrong.
    pub fn export(&self, query: &Query, path: impl AsRef<Path>) -> Result<u64> {
        let query = Query { newest: false, ..query.clone() };
        let (mut from, below) = match self.reader.extent(&query)? {
            Some((first, last)) => (first, last + 1),
            None => (0, 0),
        };
        let mut left = query.limit;
        write_lines(path.as_ref(), |records| {
            while records.is_empty() && from < below && left > 0 {
                let page = self.reader.read(&query, from, below, left.min(LOOK))?;
                from = page.next;
                left -= page.records.len();
                records.extend(page.records.into_iter().map(|(_, stored)| stored));
            }
            Ok(())
        })
    }

    /// Puts the messages of a file of [lines](super::read_lines) that the query asks for into a new archive.
    /// Their sequences have to grow. Says how many there were, and how many torn lines were skipped.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the archive has something in it, or a sequence does not grow; [`Error::Os`] names
    /// the path and what is wrong. What was put in before stays.
    pub fn import(
        options: &ArchiveOptions,
        lines: impl AsRef<Path>,
        query: &Query,
    ) -> Result<LinesRead> {
        let (mut writer, _) = options.open()?;
        if writer.next() != 1 {
            // Else its sequences would leap, as after a kill.
            writer.end()?;
            let path = options.path.display();
            return Err(Error::invalid("the archive", path, "a new one, to import into"));
        }
        let (mut batch, mut last, mut now) = (Vec::new(), 0, 0);
        let mut add = |stored: Option<Stored>| {
            let is_last = stored.is_none();
            if let Some(stored) = stored {
                if stored.sequence <= last {
                    let allowed = format!("above {last}, that of the line before it");
                    return Err(Error::invalid("a line's sequence", stored.sequence, allowed));
                }
                last = stored.sequence;
                now = now.max(stored.time);
                batch.push(stored);
            }
            if is_last || batch.len() == LOOK {
                writer.write(writer.next(), &batch, now)?;
                batch.clear();
            }
            Ok(())
        };
        let read = read_lines(lines, query, |stored| add(Some(stored)))?;
        add(None)?;
        writer.end()?;
        Ok(read)
    }
}

impl core::fmt::Debug for Archive {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Archive").field("path", &self.reader.path).finish_non_exhaustive()
    }
}

/// Commits records to the file.
pub(super) struct Writer {
    /// Before the connection: as long as they are there, it cannot remove the `-wal` at its end.
    locks: Locks,
    connection: Connection,
    path: PathBuf,
    keep: Limits,
    keys: HashMap<Box<str>, i64>,
    next: u64,
    last_sequence: u64,
    /// No other archive has it.
    pub(super) id: u64,
}

impl Writer {
    fn open(options: &ArchiveOptions) -> Result<Self> {
        let path = &options.path;
        let failed = |error| trouble("open", path, &error);
        let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = connect(path, create)?;
        bring_up_to_date(&mut connection, path)?;
        let synchronous = match options.durability {
            Durability::Power => "FULL",
            Durability::Process => "NORMAL",
        };
        prepare(&connection, synchronous).map_err(failed)?;
        if options.check {
            check(&connection, path)?;
        }
        let next = state(&connection, "next").map_err(failed)?.unwrap_or(1);
        let mut last_sequence = state(&connection, "sequence").map_err(failed)?.unwrap_or(0);
        if state(&connection, "closed").map_err(failed)? == Some(0) {
            last_sequence = last_sequence.saturating_add(LEAP);
            // So that the next one leaps further, though nothing may come to be committed before.
            set_state(&connection, "sequence", last_sequence).map_err(failed)?;
        }
        set_state(&connection, "closed", 0).map_err(failed)?;
        let id = match state(&connection, "id").map_err(failed)? {
            Some(id) => id,
            None => RandomState::new().hash_one(()),
        };
        set_state(&connection, "id", id).map_err(failed)?;
        Ok(Self {
            id,
            locks: Locks::of(&connection),
            connection,
            path: path.clone(),
            keep: options.keep.clone(),
            keys: HashMap::new(),
            next,
            last_sequence,
        })
    }

    /// The position of the next record.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The sequence that a hub begins with, so that no number comes twice: the one behind the last; and
    /// far behind it if the file was not closed, as what was never committed may have been seen.
    pub(super) fn first_sequence(&self) -> u64 {
        self.last_sequence + 1
    }

    /// All of it is in the file, unless somebody else reads it just now.
    pub(super) fn end(self) -> Result<()> {
        let path = &self.path;
        set_state(&self.connection, "closed", 1).map_err(|error| trouble("close", path, &error))?;
        let _who_reads_it_sees_it_all = checkpoint(&self.connection);
        Ok(())
    }

    fn commit(&mut self, first: u64, records: &[Stored], now: u64) -> rusqlite::Result<()> {
        let next = first + records.len() as u64;
        let highest = records.iter().map(|record| record.sequence).max().unwrap_or(0);
        let last_sequence = self.last_sequence.max(highest);
        let all = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if self.keys.len() > KEYS {
            self.keys.clear();
        }
        if first > self.next {
            let mut add = all.prepare_cached("INSERT INTO gaps VALUES(?1, ?2)")?;
            add.execute((self.next as i64, first as i64))?;
        }
        for (position, record) in (first..).zip(records) {
            insert(&all, &mut self.keys, position, record)?;
        }
        for (name, value) in [("next", next), ("sequence", last_sequence)] {
            set_state(&all, name, value)?;
        }
        retain(&all, &mut self.keys, &self.keep, next, records.len() as u64 + STEP, now)?;
        all.commit()?;
        (self.next, self.last_sequence) = (next, last_sequence);
        Ok(())
    }
}

impl Sink for Writer {
    fn write(&mut self, first: u64, records: &[Stored], now: u64) -> Result<u64> {
        // Some of it is committed if only the look for the `-wal` has failed.
        let known = self.next.saturating_sub(first).min(records.len() as u64);
        let records = &records[known as usize..];
        let committed = match records.is_empty() {
            true => Ok(()),
            false => self.commit(first + known, records, now),
        };
        let found = committed.and_then(|()| self.locks.see_to_wal(&self.connection));
        found.map(|()| 0).map_err(|error| {
            // Numbers of keys that were new in it are gone with it.
            self.keys.clear();
            trouble("write to", &self.path, &error)
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.end()
    }
}

/// Keeps other programs from taking themselves for the last that has the file, whatever becomes of the locks of this
/// process.
struct Locks {
    /// A forked child has no part in them.
    _files: [Option<OwnFile>; 2],
    /// The path of the `-wal`, and which file that is.
    wal: PathBuf,
    is: Option<(u64, u64)>,
}

impl Locks {
    /// The bytes that SQLite locks: those for readers of the file, and one of the `-shm` that says that it is in use.
    const BYTES: [(&str, i64, i64); 2] = [("", 0x4000_0002, 510), ("-shm", 128, 1)];

    fn of(connection: &Connection) -> Self {
        let path = connection.path().unwrap_or_default();
        let lock = |(suffix, first, length)| {
            let file = OwnFile::new(File::open(format!("{path}{suffix}")).ok()?);
            lock_range(file.as_fd(), first, length).then_some(file)
        };
        let wal = PathBuf::from(format!("{path}-wal"));
        Self { _files: Self::BYTES.map(lock), is: which(&wal), wal }
    }

    fn see_to_wal(&self, connection: &Connection) -> rusqlite::Result<()> {
        match which(&self.wal) == self.is {
            true => Ok(()),
            false => checkpoint(connection),
        }
    }
}

fn which(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Brings all that is committed into the file itself.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let all = "PRAGMA wal_checkpoint(TRUNCATE)";
    match connection.query_row(all, (), |row| row.get::<_, bool>(0))? {
        false => Ok(()),
        true => {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            let reason = "the -wal beside it was removed, and somebody reads it".to_owned();
            Err(rusqlite::Error::SqliteFailure(busy, Some(reason)))
        }
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    // Each connection would have a database of its own there, which no other sees and which goes with it.
    if ["", ":memory:"].iter().any(|name| path == Path::new(name)) {
        let allowed = "the path of a file: what is only in memory needs no archive";
        return Err(Error::invalid("the archive", format!("{path:?}"), allowed));
    }
    let failed = |error| trouble("open", path, &error);
    // Each connection is behind a lock, or with one thread.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    Ok(connection)
}

fn set_state(connection: &Connection, name: &str, value: u64) -> rusqlite::Result<()> {
    let mut set = connection.prepare_cached("INSERT OR REPLACE INTO state VALUES(?1, ?2)")?;
    set.execute((name, value as i64)).map(drop)
}

fn prepare(connection: &Connection, synchronous: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    // Who reads for long has the `-wal` grow meanwhile.
    connection.pragma_update(None, "journal_size_limit", WAL)?;
    // Keys that no message has any more.
    connection.execute(
        "DELETE FROM keys WHERE NOT EXISTS (SELECT 1 FROM messages WHERE messages.key = keys.id)",
        (),
    )?;
    Ok(())
}

/// Takes the file through the steps that it has not been through.
fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<()> {
    let failed = |error| trouble("open", path, &error);
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id").map_err(failed)?;
    let version = number("user_version").map_err(failed)?;
    let tables = "SELECT count(*) FROM sqlite_master";
    let tables: i64 = connection.query_row(tables, (), |row| row.get(0)).map_err(failed)?;
    let is_new = application == 0 && version == 0 && tables == 0;
    if !is_new && application != APPLICATION {
        let value = format!("{} with the application id {application}", path.display());
        let allowed = format!("a file that is new, or a hub's, with the id {APPLICATION}");
        return Err(Error::invalid("the archive", value, allowed));
    }
    let Some(steps) = usize::try_from(version).ok().and_then(|done| STEPS.get(done..)) else {
        let value = format!("{} of version {version}", path.display());
        let allowed = format!("of version 1 to {}; a newer paceline has written it", STEPS.len());
        return Err(Error::invalid("the archive", value, allowed));
    };
    if steps.is_empty() {
        return Ok(());
    }
    let all =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    for step in steps {
        all.execute_batch(step).map_err(failed)?;
    }
    all.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    all.pragma_update(None, "user_version", STEPS.len() as i64).map_err(failed)?;
    all.commit().map_err(failed)
}

fn check(connection: &Connection, path: &Path) -> Result<()> {
    let found = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => {
            let damage = io::Error::new(io::ErrorKind::InvalidData, format!("damaged: {found}"));
            Err(Error::os(format!("open the archive {}", path.display()), damage))
        }
        Err(error) => Err(trouble("open", path, &error)),
    }
}

fn state(connection: &Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    let mut find = connection.prepare_cached("SELECT value FROM state WHERE name = ?1")?;
    find.query_row([name], |row| Ok(row.get::<_, i64>(0)? as u64)).optional()
}

fn insert(
    all: &Transaction<'_>,
    keys: &mut HashMap<Box<str>, i64>,
    position: u64,
    record: &Stored,
) -> rusqlite::Result<()> {
    let key = match keys.get(record.key.as_str()) {
        Some(&known) => known,
        None => {
            let found = number_of(all, record.key.as_str())?;
            keys.insert(record.key.as_str().into(), found);
            found
        }
    };
    let headers = (!record.headers.is_empty()).then(|| {
        let pairs = record.headers.iter().map(|(name, value)| [name, value].into());
        serde_json::Value::Array(pairs.collect()).to_string()
    });
    all.prepare_cached("INSERT INTO messages VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute((
        position as i64,
        record.sequence as i64,
        record.time as i64,
        key,
        record.priority as u8,
        headers,
        record.payload.as_slice(),
    ))?;
    Ok(())
}

fn number_of(all: &Transaction<'_>, key: &str) -> rusqlite::Result<i64> {
    let mut find = all.prepare_cached("SELECT id FROM keys WHERE key = ?1")?;
    if let Some(found) = find.query_row([key], |row| row.get(0)).optional()? {
        return Ok(found);
    }
    all.prepare_cached("INSERT INTO keys(key) VALUES(?1)")?.execute([key])?;
    Ok(all.last_insert_rowid())
}

/// Lets go of the oldest rows, `most` at most, as long as there is more than is to be kept, and of keys that were only theirs.
fn retain(
    all: &Transaction<'_>,
    keys: &mut HashMap<Box<str>, i64>,
    keep: &Limits,
    next: u64,
    most: u64,
    now: u64,
) -> rusqlite::Result<()> {
    let one = |sql: &str, value: i64| {
        let mut find = all.prepare_cached(sql)?;
        find.query_row([value], |row| row.get::<_, Option<i64>>(0))
    };
    let oldest = one("SELECT min(position) FROM messages WHERE position >= ?1", 0)?;
    let Some(oldest) = oldest.map(|oldest| oldest as u64) else { return Ok(()) };
    let mut from = oldest;
    if let Some(count) = keep.count {
        from = from.max(next.saturating_sub(count));
    }
    if let Some(age) = keep.age {
        // Times are nearly in order, so this stops at the first that is young enough.
        let young = "SELECT position FROM messages WHERE time >= ?1 ORDER BY position LIMIT 1";
        let young = all
            .prepare_cached(young)?
            .query_row([now.saturating_sub(age) as i64], |row| row.get::<_, i64>(0))
            .optional()?;
        from = from.max(young.map_or(next, |young| young as u64));
    }
    if let Some(bytes) = keep.bytes {
        let used = in_use(all)?;
        // As many as would be that large if all were of one size.
        let part = used.saturating_sub(bytes) as f64 / used as f64;
        from = from.max(oldest + (part * (next - oldest) as f64).ceil() as u64);
    }
    let from = from.min(oldest + most).min(next);
    if from > oldest {
        all.prepare_cached("DELETE FROM gaps WHERE next <= ?1")?.execute([from as i64])?;
        let mut of =
            all.prepare_cached("DELETE FROM messages WHERE position < ?1 RETURNING key")?;
        let of = of.query_map([from as i64], |row| row.get::<_, i64>(0))?;
        for key in of.collect::<rusqlite::Result<HashSet<_>>>()? {
            let none = "NOT EXISTS (SELECT 1 FROM messages WHERE messages.key = keys.id)";
            let unused = format!("DELETE FROM keys WHERE id = ?1 AND {none} RETURNING key");
            let mut unused = all.prepare_cached(&unused)?;
            let gone = unused.query_map([key], |row| row.get::<_, String>(0))?;
            gone.collect::<rusqlite::Result<Vec<_>>>()?.iter().for_each(|gone| {
                keys.remove(gone.as_str());
            });
        }
    }
    Ok(())
}

/// Bytes of the file that hold something.
fn in_use(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    Ok((pages * number("page_size")?) as u64)
}

/// Reads the file.
pub(super) struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let failed = |error| trouble("open", path, &error);
        connection.pragma_update(None, "query_only", true).map_err(failed)?;
        // Reads what the tables are: the first look into a file takes locks that later ones do not.
        state(&connection, "next").map_err(failed)?;
        Ok(Self { connection, path: path.into() })
    }

    fn rows(&self, query: &Query, from: u64, below: u64, most: usize) -> rusqlite::Result<Page> {
        let below = below.min(i64::MAX as u64);
        let (prefix, is_whole) = literal_part(&query.pattern);
        let key = match is_whole {
            true => {
                let mut find =
                    self.connection.prepare_cached("SELECT id FROM keys WHERE key = ?1")?;
                let key: Option<i64> = find.query_row([prefix], |row| row.get(0)).optional()?;
                let Some(key) = key else {
                    let next = if query.newest { from } else { below };
                    return Ok(Page { records: Vec::new(), next });
                };
                Some(key)
            }
            false => None,
        };
        // Only with an equality is the index by keys the better way to go along positions.
        let of_key = if key.is_some() { "m.key = ?4" } else { "?4 IS NULL" };
        let order = if query.newest { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT m.position, m.sequence, m.time, k.key, m.priority, m.headers, m.payload \
             FROM messages m JOIN keys k ON k.id = m.key \
             WHERE m.position >= ?1 AND m.position < ?2 AND {of_key} \
             ORDER BY m.position {order} LIMIT ?3"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((from as i64, below as i64, LOOK as i64, key))?;
        let (mut records, mut looked, mut last) = (Vec::new(), 0, None);
        while records.len() < most
            && let Some(row) = rows.next()?
        {
            let (position, record) = record_of(row)?;
            if query.selects(&record) {
                records.push((position, record));
            }
            looked += 1;
            last = Some(position);
        }
        // It goes on behind the last row if there may be more.
        let is_cut = looked == LOOK || records.len() == most;
        let next = match last {
            Some(last) if is_cut && query.newest => last,
            Some(last) if is_cut => last + 1,
            _ if query.newest => from,
            _ => below,
        };
        Ok(Page { records, next })
    }

    /// The first and the last position that can have what is asked for. None: there is none.
    fn find_extent(&self, query: &Query) -> rusqlite::Result<Option<(u64, u64)>> {
        let bound = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let one = |sql: &str, value: u64| -> rusqlite::Result<Option<u64>> {
            let mut find = self.connection.prepare_cached(sql)?;
            let found: Option<i64> = find.query_row([bound(value)], |row| row.get(0)).optional()?;
            Ok(found.map(|found| found as u64))
        };
        // Sequences grow with positions, times need not.
        let first = "SELECT position FROM messages WHERE sequence >= ?1 ORDER BY sequence LIMIT 1";
        let last =
            "SELECT position FROM messages WHERE sequence <= ?1 ORDER BY sequence DESC LIMIT 1";
        let first = one(first, *query.sequences.start())?;
        let last = one(last, *query.sequences.end())?;
        let (Some(mut first), Some(mut last)) = (first, last) else { return Ok(None) };
        if query.times != (0..=u64::MAX) {
            let within =
                "SELECT min(position), max(position) FROM messages WHERE time BETWEEN ?1 AND ?2";
            let times = (bound(*query.times.start()), bound(*query.times.end()));
            let mut find = self.connection.prepare_cached(within)?;
            let found: (Option<i64>, Option<i64>) =
                find.query_row(times, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let (Some(from), Some(to)) = found else { return Ok(None) };
            (first, last) = (first.max(from as u64), last.min(to as u64));
        }
        Ok((first <= last).then_some((first, last)))
    }
}

impl Reader {
    /// What limits have let go of is a gap as well, and what was given up and is ahead of the next commit.
    fn missing(&self, from: u64, below: u64) -> rusqlite::Result<Gaps> {
        let mut oldest = self.connection.prepare_cached("SELECT min(position) FROM messages")?;
        let oldest: Option<i64> = oldest.query_row((), |row| row.get(0))?;
        let oldest = oldest.map_or(below, |oldest| (oldest as u64).min(below));
        let mut gaps: Vec<_> = (from < oldest).then_some((from, oldest)).into_iter().collect();
        let overlapping =
            "SELECT first, next FROM gaps WHERE first < ?2 AND next > ?1 ORDER BY first";
        let mut statement = self.connection.prepare_cached(overlapping)?;
        let from = from.max(oldest);
        let bound = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut rows = statement.query((bound(from), bound(below)))?;
        while let Some(row) = rows.next()? {
            let (first, next) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
            gaps.push((first.max(from), next.min(below)));
        }
        let next = state(&self.connection, "next")?.unwrap_or(1).max(from);
        gaps.extend((next < below).then_some((next, below)));
        Ok(gaps)
    }

    /// In one transaction: a commit in between may let go of what was read.
    fn rows_and_gaps(
        &self,
        query: &Query,
        from: u64,
        below: u64,
        most: usize,
    ) -> rusqlite::Result<(Page, Gaps)> {
        let snapshot = self.connection.unchecked_transaction()?;
        let page = self.rows(query, from, below, most)?;
        let gaps = self.missing(from, page.next)?;
        snapshot.finish()?;
        Ok((page, gaps))
    }
}

impl Shelf for Reader {
    fn read(&self, query: &Query, from: u64, below: u64, most: usize) -> Result<Page> {
        self.rows(query, from, below, most).map_err(|error| trouble("read", &self.path, &error))
    }

    fn read_with_gaps(
        &self,
        query: &Query,
        from: u64,
        below: u64,
        most: usize,
    ) -> Result<(Page, Gaps)> {
        let read = self.rows_and_gaps(query, from, below, most);
        read.map_err(|error| trouble("read", &self.path, &error))
    }

    fn extent(&self, query: &Query) -> Result<Option<(u64, u64)>> {
        check_pattern(&query.pattern)?;
        self.find_extent(query).map_err(|error| trouble("read", &self.path, &error))
    }
}

fn record_of(row: &Row<'_>) -> rusqlite::Result<(u64, Stored)> {
    let damaged = |column, what: String| {
        let kind = rusqlite::types::Type::Null;
        rusqlite::Error::FromSqlConversionFailure(column, kind, what.into())
    };
    let priority: u8 = row.get(4)?;
    let priority = Priority::ALL.get(usize::from(priority)).copied();
    let headers = match row.get_ref(5)?.as_str_or_null()? {
        None => Headers::NONE,
        Some(text) => {
            let pairs = serde_json::from_str::<Vec<(String, String)>>(text);
            let pairs = pairs.map_err(|error| damaged(5, format!("headers: {error}")))?;
            Headers::new(pairs).map_err(|error| damaged(5, error.to_string()))?
        }
    };
    let record = Stored {
        sequence: row.get::<_, i64>(1)? as u64,
        time: row.get::<_, i64>(2)? as u64,
        key: Key::detached(row.get_ref(3)?.as_str()?),
        priority: priority.ok_or_else(|| damaged(4, "no such priority".into()))?,
        headers,
        payload: Payload::new(row.get_ref(6)?.as_blob()?),
    };
    Ok((row.get::<_, i64>(0)? as u64, record))
}

/// "cannot open the archive /var/log/a: unable to open database file".
/// What the system says of a file that SQLite cannot open, or of the `-wal` that it makes beside it.
fn why_not_open(path: &Path) -> Option<io::Error> {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let mut all = File::options();
    let open = all.read(true).append(true).create(true);
    open.open(path).err().or_else(|| open.open(&wal).err())
}

fn trouble(doing: &str, path: &Path, error: &rusqlite::Error) -> Error {
    use io::ErrorKind;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => ErrorKind::StorageFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::InvalidData,
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => ErrorKind::PermissionDenied,
        Some(ErrorCode::CannotOpen) => {
            if let Some(error) = why_not_open(path) {
                return Error::os(format!("{doing} the archive {}", path.display()), error);
            }
            ErrorKind::NotFound
        }
        Some(ErrorCode::ConstraintViolation) => ErrorKind::AlreadyExists,
        _ => ErrorKind::Other,
    };
    let reason = match kind {
        ErrorKind::AlreadyExists => format!("{error}: is another hub writing to it?"),
        _ => error.to_string(),
    };
    Error::os(format!("{doing} the archive {}", path.display()), io::Error::new(kind, reason))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Folder, plain};
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::time::SystemTime;

    fn open(options: &ArchiveOptions) -> (Writer, Reader) {
        options.open().unwrap()
    }

    fn everything() -> Query {
        Query::of(">")
    }

    /// All that a query finds, read in pages of two.
    fn all(reader: &Reader, query: &Query) -> Vec<(u64, Stored)> {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = reader.read(query, from, u64::MAX, 2).unwrap();
            found.extend(page.records);
            if page.next >= i64::MAX as u64 {
                return found;
            }
            assert!(page.next > from);
            from = page.next;
        }
    }

    fn all_backwards(reader: &Reader, query: &Query) -> Vec<(u64, Stored)> {
        let query = query.clone().last(usize::MAX);
        let (mut found, mut below) = (Vec::new(), u64::MAX);
        while below > 1 {
            let page = reader.read(&query, 1, below, 2).unwrap();
            found.extend(page.records);
            assert!(page.next < below);
            below = page.next;
        }
        found.reverse();
        found
    }

    fn positions(reader: &Reader) -> Vec<u64> {
        all(reader, &everything()).into_iter().map(|(position, _)| position).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = Folder::new("roundtrip");
        let (mut writer, reader) = open(&ArchiveOptions::at(folder.file("a")));
        let mut rich = plain(7, 1 << 60, "ä.ö", &[0, 255, 10]);
        rich.headers = Headers::new([("a", "1"), ("b", "\"\n"), ("a", "")]).unwrap();
        rich.priority = Priority::Critical;
        let long = plain(8, 5, "long", &[3; 100_000]);
        let written = [plain(3, 4, "a", b""), rich, long];
        writer.write(1, &written, 0).unwrap();
        let found = all(&reader, &everything());
        assert_eq!(found, (1..).zip(written).collect::<Vec<_>>());
    }

    #[test]
    fn it_goes_on_where_it_was_closed() {
        let folder = Folder::new("reopen");
        let options = ArchiveOptions::at(folder.file("a"));
        let (mut writer, reader) = open(&options);
        assert_eq!((writer.next(), writer.first_sequence()), (1, 1));
        writer.write(1, &[plain(4, 0, "a", b""), plain(5, 0, "a", b"")], 0).unwrap();
        drop(reader);
        writer.end().unwrap();
        let (writer, reader) = open(&options);
        assert_eq!((writer.next(), writer.first_sequence()), (3, 6));
        // Not closed: others may have seen numbers that never came here.
        drop((writer, reader));
        assert_eq!(open(&options).0.first_sequence(), 6 + LEAP);
        assert_eq!(open(&options).0.first_sequence(), 6 + 2 * LEAP);
    }

    #[test]
    fn the_next_position_outlives_the_rows() {
        let folder = Folder::new("outlives");
        let options = ArchiveOptions::at(folder.file("a")).keep(Limits::of_count(0));
        let (mut writer, reader) = open(&options);
        writer.write(1, &[plain(9, 0, "a", b"")], 0).unwrap();
        assert!(positions(&reader).is_empty());
        drop(reader);
        writer.end().unwrap();
        let (writer, _) = open(&options);
        assert_eq!((writer.next(), writer.first_sequence()), (2, 10));
    }

    #[test]
    fn only_so_many_are_kept() {
        let folder = Folder::new("count");
        let options = ArchiveOptions::at(folder.file("a")).keep(Limits::of_count(3));
        let (mut writer, reader) = open(&options);
        for position in 1..=10 {
            writer.write(position, &[plain(position, 0, "a", b"")], 0).unwrap();
        }
        assert_eq!(positions(&reader), [8, 9, 10]);
        assert_eq!(reader.missing(5, 11).unwrap(), [(5, 8)]);
        assert!(reader.missing(9, 11).unwrap().is_empty());
    }

    #[test]
    fn only_what_is_young_is_kept() {
        let folder = Folder::new("age");
        let keep = Limits::unlimited().age(Duration::from_nanos(10));
        let (mut writer, reader) = open(&ArchiveOptions::at(folder.file("a")).keep(keep));
        for time in 1..=20 {
            writer.write(time, &[plain(time, time, "a", b"")], time).unwrap();
        }
        assert_eq!(positions(&reader), (10..=20).collect::<Vec<_>>());
    }

    /// Goal: the part of the file that is in use stays near the limit, and the newest are there.
    #[test]
    fn only_so_many_bytes_are_kept() {
        let folder = Folder::new("bytes");
        let keep = Limits::unlimited().bytes(1 << 20);
        let (mut writer, reader) = open(&ArchiveOptions::at(folder.file("a")).keep(keep));
        let mut most = 0;
        for round in 0..100 {
            let first = 1 + round * 100;
            let batch: Vec<_> =
                (first..first + 100).map(|n| plain(n, 0, "a", &[7; 1000])).collect();
            writer.write(first, &batch, 0).unwrap();
            most = most.max(in_use(&writer.connection).unwrap());
        }
        // A commit lets go after it has brought its own.
        assert!(most < (1 << 20) + (1 << 19), "{most}");
        assert_eq!(positions(&reader).last(), Some(&10_000));
    }

    #[test]
    fn gaps_are_known() {
        let folder = Folder::new("gaps");
        let (mut writer, reader) = open(&ArchiveOptions::at(folder.file("a")));
        for (first, count) in [(1, 2), (5, 1), (6, 1), (9, 1)] {
            let records: Vec<_> = (first..first + count).map(|n| plain(n, 0, "a", b"")).collect();
            writer.write(first, &records, 0).unwrap();
        }
        assert_eq!(reader.missing(1, 10).unwrap(), [(3, 5), (7, 9)]);
        assert_eq!(reader.missing(4, 8).unwrap(), [(4, 5), (7, 8)]);
        assert!(reader.missing(5, 7).unwrap().is_empty());
        // What will be written behind a gap is not there yet.
        assert_eq!(reader.missing(8, 12).unwrap(), [(8, 9), (10, 12)]);
    }

    /// Goal: who reads while commits let go of what is old gets each position or knows that it was lost, and
    /// none is both. Method: a writer that keeps few, beside a reader that goes along.
    #[test]
    fn what_goes_while_it_is_read_is_lost_or_read() {
        let folder = Folder::new("going");
        let options = ArchiveOptions::at(folder.file("a")).keep(Limits::of_count(20));
        let (mut writer, reader) = open(&options.durability(Durability::Process));
        let next = AtomicU64::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for first in (1..6000).step_by(3) {
                    let batch: Vec<_> = (first..first + 3).map(|n| plain(n, 0, "a", b"")).collect();
                    writer.write(first, &batch, 0).unwrap();
                    next.store(first + 3, Release);
                }
            });
            let mut from = 1;
            while from < 6000 {
                let below = next.load(Acquire);
                let (page, gaps) = reader.read_with_gaps(&everything(), from, below, 8).unwrap();
                let lost = gaps.iter().flat_map(|(first, next)| *first..*next);
                let mut known: Vec<_> =
                    page.records.iter().map(|(at, _)| *at).chain(lost).collect();
                known.sort_unstable();
                assert_eq!(known, (from..page.next).collect::<Vec<_>>());
                from = page.next;
            }
        });
    }

    /// Goal: a full disk is an error that says so, nothing of the batch is there, and when there is room the
    /// same batch can be written. Method: SQLite is allowed so many pages.
    #[test]
    fn a_full_disk_is_told_and_overcome() {
        let folder = Folder::new("full");
        let (mut writer, reader) = open(&ArchiveOptions::at(folder.file("a")));
        let before = [plain(1, 0, "before", b"")];
        writer.write(1, &before, 0).unwrap();
        let pages = |count: u32| {
            let set = format!("PRAGMA max_page_count = {count}");
            writer.connection.query_row(&set, (), |_| Ok(())).unwrap();
        };
        pages(20);
        let batch: Vec<_> = (2..200).map(|n| plain(n, 0, "new.key", &[7; 1000])).collect();
        let error = writer.write(2, &batch, 0).unwrap_err();
        let message = error.to_string();
        let path = folder.file("a");
        let expected =
            format!("cannot write to the archive {}: database or disk is full", path.display());
        assert_eq!(message, expected);
        let Error::Os { source, .. } = error else { panic!("{message}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(positions(&reader), [1]);
        writer.connection.query_row("PRAGMA max_page_count = 10000", (), |_| Ok(())).unwrap();
        writer.write(2, &batch, 0).unwrap();
        assert_eq!(positions(&reader), (1..200).collect::<Vec<_>>());
        assert!(
            all(&reader, &everything())[1..].iter().all(|(_, it)| it.key.as_str() == "new.key")
        );
    }

    /// Goal: keys that no kept message has are not kept either, and one that comes again is found under its name.
    #[test]
    fn keys_go_with_their_messages() {
        let folder = Folder::new("keys");
        let (mut writer, reader) =
            open(&ArchiveOptions::at(folder.file("a")).keep(Limits::of_count(10)));
        for n in 1..=3000 {
            let key = if n % 1000 == 0 { "often".to_owned() } else { format!("k.{}", n % 1500) };
            writer.write(n, &[plain(n, 0, &key, b"")], 0).unwrap();
        }
        let keys = "SELECT count(*) FROM keys";
        let keys: i64 = writer.connection.query_row(keys, (), |row| row.get(0)).unwrap();
        assert_eq!(keys, 10);
        let found = all(&reader, &Query::of("often"));
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [3000]);
        let names = all(&reader, &everything()).into_iter().map(|(_, it)| it.key.to_string());
        assert!(names.take(9).eq((1491..1500).map(|n| format!("k.{n}"))));
    }

    /// Goal: a `-wal` that has grown behind a reader shrinks when the reader is through.
    #[test]
    fn a_wal_shrinks_again() {
        let folder = Folder::new("shrinks");
        let path = folder.file("a");
        let (mut writer, _reader) = open(&ArchiveOptions::at(&path));
        let mut next = 1;
        let mut write = || {
            let batch: Vec<_> = (next..next + 100).map(|n| plain(n, 0, "a", &[7; 1000])).collect();
            writer.write(next, &batch, 0).unwrap();
            next += 100;
            fs::metadata(folder.file("a-wal")).unwrap().len()
        };
        let reads = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        reads.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
        while write() < 3 * u64::from(WAL) {}
        reads.execute_batch("COMMIT").unwrap();
        let _grown = [write(), write()];
        let size = write();
        assert!(size < 2 * u64::from(WAL), "{size}");
    }

    /// Goal: what is committed is found by whoever opens the file, though somebody has removed the `-wal`. Method: also
    /// while a reader keeps the commit from going to the file: it is refused then, and goes there when it comes again.
    #[test]
    fn what_is_committed_without_its_wal_is_in_the_file() {
        let folder = Folder::new("wal");
        let path = folder.file("a");
        let (mut writer, _reader) = open(&ArchiveOptions::at(&path));
        writer.connection.busy_timeout(Duration::ZERO).unwrap();
        let found = || {
            fs::copy(&path, folder.file("copy")).unwrap();
            positions(&Reader::open(&folder.file("copy")).unwrap())
        };
        writer.write(1, &[plain(1, 0, "a", b"")], 0).unwrap();
        let reads = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        reads.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
        fs::remove_file(folder.file("a-wal")).unwrap();
        let batch: Vec<_> = (2..5).map(|n| plain(n, 0, "a", b"")).collect();
        let told = writer.write(2, &batch[..2], 0).unwrap_err().to_string();
        assert!(told.ends_with("the -wal beside it was removed, and somebody reads it"), "{told}");
        reads.execute_batch("COMMIT").unwrap();
        writer.write(2, &batch, 0).unwrap();
        assert_eq!(found(), [1, 2, 3, 4]);
        writer.write(5, &[plain(5, 0, "a", b"")], 0).unwrap();
        assert_eq!(found(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_second_writer_is_told() {
        let folder = Folder::new("second");
        let options = ArchiveOptions::at(folder.file("a"));
        let (mut one, _) = open(&options);
        let (mut two, reader) = open(&options);
        one.write(1, &[plain(1, 0, "one", b"")], 0).unwrap();
        let message = two.write(1, &[plain(1, 0, "two", b"")], 0).unwrap_err().to_string();
        assert!(message.ends_with("is another hub writing to it?"), "{message}");
        assert_eq!(all(&reader, &everything())[0].1.key.as_str(), "one");
    }

    fn refusal(options: &ArchiveOptions) -> String {
        match options.open() {
            Ok(_) => panic!("it was opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn files_of_others_are_refused() {
        let folder = Folder::new("others");
        let path = folder.file("a");
        fs::write(&path, "this is a text, and it is long enough to be looked at ".repeat(100))
            .unwrap();
        let options = ArchiveOptions::at(&path);
        let expected =
            format!("cannot open the archive {}: file is not a database", path.display());
        assert_eq!(refusal(&options), expected);
        fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs(a)").unwrap();
        let expected = format!(
            "the archive is {} with the application id 0, but must be a file that is new, or a hub's, with \
             the id 1885430629",
            path.display()
        );
        assert_eq!(refusal(&options), expected);
        let nowhere = folder.file("not/there");
        let expected =
            format!("cannot open the archive {}: No such file or directory", nowhere.display());
        assert!(refusal(&ArchiveOptions::at(nowhere)).starts_with(&expected));
    }

    /// Goal: a file of each version before is brought up to date, and nothing in it is lost.
    #[test]
    fn older_files_are_brought_up_to_date() {
        for version in 1..STEPS.len() {
            let folder = Folder::new("older");
            let path = folder.file("a");
            let old = Connection::open(&path).unwrap();
            STEPS[..version].iter().for_each(|step| old.execute_batch(step).unwrap());
            old.pragma_update(None, "application_id", APPLICATION).unwrap();
            old.pragma_update(None, "user_version", version as i64).unwrap();
            old.execute_batch(
                "INSERT INTO keys VALUES(1, 'old'); INSERT INTO state VALUES('next', 2);
                 INSERT INTO messages VALUES(1, 77, 5, 1, 1, NULL, x'00ff');",
            )
            .unwrap();
            drop(old);
            let (mut writer, reader) = open(&ArchiveOptions::at(&path));
            writer.write(4, &[plain(78, 6, "new", b"")], 0).unwrap();
            let found = all(&reader, &everything());
            assert_eq!(found, [(1, plain(77, 5, "old", &[0, 255])), (4, plain(78, 6, "new", b""))]);
            assert_eq!(reader.missing(1, 5).unwrap(), [(2, 4)]);
            let now: i64 = writer
                .connection
                .pragma_query_value(None, "user_version", |row| row.get(0))
                .unwrap();
            assert_eq!(now, STEPS.len() as i64);
        }
    }

    #[test]
    fn newer_files_are_refused() {
        let folder = Folder::new("newer");
        let path = folder.file("a");
        drop(open(&ArchiveOptions::at(&path)));
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let expected = format!(
            "the archive is {} of version 99, but must be of version 1 to 2; a newer paceline has written it",
            path.display()
        );
        assert_eq!(refusal(&ArchiveOptions::at(&path)), expected);
    }

    /// Goal: what is exported and imported again is the same, but for what was not asked for.
    #[test]
    fn archives_become_lines_and_lines_archives() {
        let folder = Folder::new("export");
        let options = ArchiveOptions::at(folder.file("a"));
        let (mut writer, _) = open(&options);
        let key = |n: u64| if n.is_multiple_of(3) { "other" } else { "a.b" };
        let mut records: Vec<_> = (1..=5000).map(|n| plain(n, n, key(n), &[n as u8; 3])).collect();
        records[0].headers = Headers::new([("n", "v")]).unwrap();
        writer.write(1, &records, 0).unwrap();
        let archive = Archive::open(folder.file("a")).unwrap();
        let asked = Query::of("a.*").sequences(1..=4900);
        let wanted: Vec<_> = records.into_iter().filter(|record| asked.selects(record)).collect();
        assert_eq!(archive.query(&asked).unwrap(), wanted);
        let lines = folder.file("lines");
        assert_eq!(archive.export(&asked, &lines).unwrap(), wanted.len() as u64);
        let copy = ArchiveOptions::at(folder.file("copy"));
        assert_eq!(Archive::import(&copy, &lines, &everything()).unwrap().messages, wanted.len());
        let copied = Archive::open(folder.file("copy")).unwrap();
        assert_eq!(copied.query(&everything()).unwrap(), wanted);
        assert_eq!(copied.query(&everything().last(7)).unwrap(), wanted[wanted.len() - 7..]);
        assert_eq!(copied.query(&everything().limit(7)).unwrap(), wanted[..7]);
        let twice = Archive::import(&copy, &lines, &everything()).unwrap_err().to_string();
        let expected = format!(
            "the archive is {}, but must be a new one, to import into",
            folder.file("copy").display()
        );
        assert_eq!(twice, expected);
        assert!(!folder.file("lines.part").exists());
    }

    #[test]
    fn lines_out_of_order_are_not_imported() {
        let folder = Folder::new("order");
        let lines = folder.file("lines");
        let line = |n| super::super::lines::to_line(&plain(n, n, "a", b""));
        fs::write(&lines, format!("{}\n{}\n", line(5), line(5))).unwrap();
        let options = ArchiveOptions::at(folder.file("a"));
        let told = Archive::import(&options, &lines, &everything()).unwrap_err().to_string();
        assert_eq!(told, "a line's sequence is 5, but must be above 5, that of the line before it");
    }

    /// Goal: damage in the middle of a file is told, by the opening if it was asked to look, else by who meets
    /// it, with the path; nothing panics, and no row that never was is given out.
    #[test]
    fn damage_is_told() {
        let folder = Folder::new("damage");
        let path = folder.file("a");
        let options = ArchiveOptions::at(&path);
        let (mut writer, reader) = open(&options);
        let batch: Vec<_> = (1..2000).map(|n| plain(n, n, "a", &[7; 100])).collect();
        writer.write(1, &batch, 0).unwrap();
        drop((writer, reader));
        let mut bytes = fs::read(&path).unwrap();
        let pages = bytes.len() / 4096;
        assert!(pages > 40, "{pages}");
        // Not the first pages, which say what the tables are.
        for page in (12..pages).step_by(2) {
            bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        }
        fs::write(&path, bytes).unwrap();
        let message = refusal(&options.clone().check(true));
        let expected = format!("cannot open the archive {}: ", path.display());
        assert!(message.starts_with(&expected), "{message}");
        let told = match Reader::open(&path).unwrap().read(&everything(), 1, u64::MAX, usize::MAX) {
            Ok(page) => panic!("{} rows of a damaged file", page.records.len()),
            Err(error) => error.to_string(),
        };
        let expected = format!("cannot read the archive {}: ", path.display());
        assert!(told.starts_with(&expected), "{told}");
    }

    #[derive(Clone, Debug)]
    struct Asked {
        pattern: &'static str,
        sequences: Option<(u64, u64)>,
        times: Option<(u64, u64)>,
    }

    const PATTERNS: &[&str] = &[">", "a", "a.>", "a.*", "*.b", "a.b", "c"];
    const KEYS: &[&str] = &["a", "a.b", "a.c", "x.b", "a.b.c"];

    fn asked() -> impl Strategy<Value = Asked> {
        let range = || prop::option::of((0u64..40, 0u64..40));
        let parts = (prop::sample::select(PATTERNS), range(), range());
        parts.prop_map(|(pattern, sequences, times)| Asked { pattern, sequences, times })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Goal: queries find what a filter over everything finds, forwards and backwards, in pages.
        #[test]
        fn queries_agree_with_a_filter(
            written in prop::collection::vec(
                (1u64..3, 0u64..40, prop::sample::select(KEYS)),
                0..30,
            ),
            asked in prop::collection::vec(asked(), 1..12),
        ) {
            static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let folder = Folder::new(&format!("query-{number}"));
            let options = ArchiveOptions::at(folder.file("a")).durability(Durability::Process);
            let (mut writer, reader) = open(&options);
            let mut sequence = 0;
            let records: Vec<_> = written.iter().map(|(step, time, key)| {
                sequence += step;
                plain(sequence, *time, key, b"")
            }).collect();
            if !records.is_empty() {
                writer.write(1, &records, 0).unwrap();
            }
            for asked in asked {
                let mut query = Query::of(asked.pattern);
                if let Some((first, last)) = asked.sequences {
                    query = query.sequences(first..=last);
                }
                if let Some((first, last)) = asked.times {
                    let at = |time| SystemTime::UNIX_EPOCH + Duration::from_nanos(time);
                    query = query.since(at(first)).until(at(last));
                }
                let expected: Vec<_> = (1u64..)
                    .zip(records.iter().cloned())
                    .filter(|(_, record)| query.selects(record))
                    .collect();
                prop_assert_eq!(&all(&reader, &query), &expected);
                prop_assert_eq!(&all_backwards(&reader, &query), &expected);
                let extent = reader.extent(&query).unwrap();
                for (position, _) in expected {
                    let (first, last) = extent.unwrap();
                    prop_assert!(first <= position && position <= last);
                }
            }
        }
    }
}
