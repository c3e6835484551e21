//! Histories: what a hub keeps of its messages, in memory and on disk.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, nanos};
use super::settings::{change, change_text, change_time, load};
use super::sized::{self, InOut};
use super::status::*;
use super::values::{PACE_FOREVER, PACE_UNLIMITED};
use crate::admin::HistorySettings;
use crate::hub::Stored;
use crate::hub::history::{History, Limits, LinesOptions, WhenFull};
use core::ffi::c_char;
use core::mem::offset_of;
use core::ptr;

/// When more waits for the disk than may, the archive goes without what has waited longest. Publishers never wait. The
/// lost messages are counted, told by the notice history.given_up, and make pace_hub_flush() fail.
pub const PACE_DISK_GIVE_UP: u32 = 0;
/// When more waits for the disk than may, a publisher writes a batch itself, unless another thread is at it. If there is
/// still no room, because the disk is slow or fails, it waits, for up to disk_wait_ns, and its publication is refused
/// then: PACE_EFULL. On threads of the pool, and in handlers, it does not wait for a disk that fails, and is refused at
/// once. A history of keys under $SYS. gives up nevertheless: notices have no publisher that could wait.
pub const PACE_DISK_WAIT: u32 = 1;

/// What a hub keeps of the messages that a pattern matches. Call pace_history_options_init() first. Each limit
/// applies by itself, and what is oldest goes first; PACE_UNLIMITED: no limit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_history_options_t {
    /// The size of the struct in bytes, as pace_history_options_init() sets it.
    pub struct_size: u32,
    /// What happens when more waits for the disk than may: PACE_DISK_GIVE_UP or PACE_DISK_WAIT (default).
    pub when_full: u32,
    /// The pattern of the keys whose messages are kept. NULL (default): all keys, as ">".
    pub pattern: *const c_char,
    /// How many messages are kept in memory. Default 1024.
    pub keep_count: u64,
    /// How many bytes: payload, headers, and 96 for each message. Default PACE_UNLIMITED: no limit.
    pub keep_bytes: u64,
    /// For how long, up to 100 years. Default PACE_FOREVER: no limit.
    pub keep_age_ns: u64,
    /// A file of SQLite that keeps them, too; not ":memory:". The hub's sequences go on where it ends. It is closed when the hub
    /// is gone, which is when its last handler has returned: who opens it again ends the pool first. Default
    /// NULL: none. PACE_EUNSUPPORTED if the library was built without the feature `archive`.
    pub archive: *const c_char,
    /// How many messages the archive keeps. PACE_UNLIMITED (default): no limit.
    pub archive_count: u64,
    /// How large the file of the archive may become, in bytes. PACE_UNLIMITED (default): no limit.
    pub archive_bytes: u64,
    /// How long the archive keeps a message, in nanoseconds: up to 100 years, or PACE_FOREVER (default)
    /// without a limit.
    pub archive_age_ns: u64,
    /// A file that lines of JSON are appended to. The hub does not read them again; those that the disk refuses
    /// are lost and counted, and if there is no archive they are given up. Several histories may write one file. It may
    /// be a device, as pace_log_config_t.file, and is no pipe. Default NULL: none.
    pub lines: *const c_char,
    /// How large that becomes before it is renamed to `.1`, 1 KiB to 1 TiB. Default 64 MiB.
    pub lines_max_size: u64,
    /// How many such files are kept, 1 to 1000. Default 4.
    pub lines_files: u32,
    /// What waits is written when it is so many messages, 1 to 65536. Default 1024.
    pub commit_messages: u32,
    /// And after so long in any case, up to an hour. Default 10 ms.
    pub commit_delay_ns: u64,
    /// How many messages may wait for the disk, commit_messages to 2^32. Default 65536.
    pub waiting_messages: u64,
    /// How many bytes, 1 MiB to 1 TiB. Default 64 MiB.
    pub waiting_bytes: u64,
    /// For PACE_DISK_WAIT: up to 100 years. Default 10 s.
    pub disk_wait_ns: u64,
    /// A commit of the archive counts as durable when the file was written, and not only when the disk has it:
    /// it outlives the process, and not a loss of power. Default false.
    pub process_only: bool,
    /// Reads the whole archive when it is opened, and refuses it if it is damaged. Default false.
    pub check: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 6],
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_history_options_t {
    const FIRST: usize = 136;
    const NAME: &'static str = "pace_history_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("process_only", offset_of!(pace_history_options_t, process_only)),
        ("check", offset_of!(pace_history_options_t, check)),
    ];
    const RESERVED: &'static [usize] = &[130, 131, 132, 133, 134, 135];
}

const DEFAULTS: pace_history_options_t = pace_history_options_t {
    struct_size: size_of::<pace_history_options_t>() as u32,
    when_full: PACE_DISK_WAIT,
    pattern: ptr::null(),
    keep_count: 1024,
    keep_bytes: PACE_UNLIMITED,
    keep_age_ns: PACE_UNLIMITED,
    archive: ptr::null(),
    archive_count: PACE_UNLIMITED,
    archive_bytes: PACE_UNLIMITED,
    archive_age_ns: PACE_UNLIMITED,
    lines: ptr::null(),
    lines_max_size: 64 << 20,
    lines_files: 4,
    commit_messages: 1024,
    commit_delay_ns: 10_000_000,
    waiting_messages: 65_536,
    waiting_bytes: 64 << 20,
    disk_wait_ns: 10_000_000_000,
    process_only: false,
    check: false,
    reserved: [0; 6],
};

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_history_options_init(
    options: InOut<pace_history_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Changes options to what the section `history` of a file of settings says, as pace_pool_config_load() does for
/// `pool`.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_history_options_load(
    options: InOut<pace_history_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(options, path, environment, "options", |options, said| {
                said_of(options, said.history)
            })
        }
    })
}

fn said_of(options: &mut pace_history_options_t, history: HistorySettings) {
    change_text(&mut options.pattern, "history.pattern", history.pattern);
    change(&mut options.keep_count, history.keep_count);
    change(&mut options.keep_bytes, history.keep_bytes);
    change_time(&mut options.keep_age_ns, history.keep_age);
    change_text(&mut options.archive, "history.archive", history.archive);
    change(&mut options.archive_count, history.archive_count);
    change(&mut options.archive_bytes, history.archive_bytes);
    change_time(&mut options.archive_age_ns, history.archive_age);
    change_text(&mut options.lines, "history.lines", history.lines);
    change(&mut options.lines_max_size, history.lines_max_size);
    change(&mut options.lines_files, history.lines_files);
    change(&mut options.commit_messages, history.commit_messages);
    change(&mut options.process_only, history.process_only);
    change_time(&mut options.commit_delay_ns, history.commit_delay);
    change(&mut options.when_full, history.disk_wait.map(|_| PACE_DISK_WAIT));
    change_time(&mut options.disk_wait_ns, history.disk_wait);
}

/// # Safety
///
/// As the header demands of the options.
pub(super) unsafe fn history_of(options: *const pace_history_options_t) -> Result<History> {
    // SAFETY: as the caller promises.
    let options = unsafe { sized::read(options, "a history") }?;
    // SAFETY: as the caller promises.
    let pattern = unsafe { optional(options.pattern, "pattern") }?.unwrap_or(">");
    let keep = limits(options.keep_count, options.keep_bytes, options.keep_age_ns);
    let history = History::of(pattern)
        .keep(keep)
        .commit(options.commit_messages as usize, nanos(options.commit_delay_ns))
        .waiting(
            options.waiting_messages,
            usize::try_from(options.waiting_bytes).unwrap_or(usize::MAX),
        )
        .when_full(match options.when_full {
            PACE_DISK_GIVE_UP => WhenFull::GiveUp,
            PACE_DISK_WAIT => WhenFull::Wait(nanos(options.disk_wait_ns)),
            other => return Err(Failure::invalid("when_full", other, "0 or 1 (PACE_DISK_)")),
        });
    // SAFETY: as the caller promises.
    let history = match unsafe { optional(options.lines, "lines") }? {
        Some(path) => {
            let lines = LinesOptions::at(path).max_size(options.lines_max_size);
            history.lines(lines.files(options.lines_files as usize))
        }
        None => history,
    };
    // SAFETY: as the caller promises.
    match unsafe { optional(options.archive, "archive") }? {
        Some(path) => archived(history, path, &options),
        None => Ok(history),
    }
}

#[cfg(feature = "archive")]
mod built {
    use super::{History, Result, Stored, boundary, limits, pace_history_options_t, sized};
    use crate::hub::history::{Archive, ArchiveOptions, Durability, LinesRead, Query};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub struct Opened(Mutex<Archive>);

    impl Opened {
        pub(crate) fn at(path: &str) -> Result<Self> {
            Ok(Self(Mutex::new(Archive::open(path)?)))
        }

        pub(crate) fn query(&self, query: &Query) -> Result<Vec<Stored>> {
            Ok(self.lock().query(query)?)
        }

        pub(crate) fn export(&self, query: &Query, path: &str) -> Result<u64> {
            Ok(self.lock().export(query, path)?)
        }

        fn lock(&self) -> MutexGuard<'_, Archive> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the other one fails")]
    pub(crate) fn archived(
        history: History,
        path: &str,
        options: &pace_history_options_t,
    ) -> Result<History> {
        Ok(history.archive(archive_at(path, options)))
    }

    /// What is said of the archive.
    fn archive_at(path: &str, options: &pace_history_options_t) -> ArchiveOptions {
        let keep = limits(options.archive_count, options.archive_bytes, options.archive_age_ns);
        let process = options.process_only;
        let durability = if process { Durability::Process } else { Durability::Power };
        ArchiveOptions::at(path).keep(keep).durability(durability).check(options.check)
    }

    /// # Safety
    ///
    /// As the header demands of the options.
    pub(crate) unsafe fn import(
        options: *const pace_history_options_t,
        lines: &str,
        query: &Query,
    ) -> Result<LinesRead> {
        // SAFETY: as the caller promises.
        let options = unsafe { sized::read(options, "options") }?;
        // SAFETY: as the caller promises.
        let path = unsafe { boundary::text(options.archive, "archive") }?;
        Ok(Archive::import(&archive_at(path, &options), lines, query)?)
    }
}

#[cfg(not(feature = "archive"))]
mod built {
    use super::{Failure, History, PACE_EUNSUPPORTED, Result, Stored, pace_history_options_t};
    use crate::hub::history::{LinesRead, Query};

    const MISSING: Failure =
        Failure::plain(PACE_EUNSUPPORTED, c"the library was built without the feature `archive`");

    /// There is none.
    pub enum Opened {}

    impl Opened {
        pub(crate) fn at(_: &str) -> Result<Self> {
            Err(MISSING)
        }

        pub(crate) fn query(&self, _: &Query) -> Result<Vec<Stored>> {
            match *self {}
        }

        pub(crate) fn export(&self, _: &Query, _: &str) -> Result<u64> {
            match *self {}
        }
    }

    pub(crate) fn archived(_: History, path: &str, _: &pace_history_options_t) -> Result<History> {
        let text = format!("archive is {path:?}, but the library was built without `archive`");
        Err(Failure::told(PACE_EUNSUPPORTED, text))
    }

    pub(crate) unsafe fn import(
        _: *const pace_history_options_t,
        _: &str,
        _: &Query,
    ) -> Result<LinesRead> {
        Err(MISSING)
    }
}
use built::archived;
pub(super) use built::{Opened, import};

fn limits(count: u64, bytes: u64, age_ns: u64) -> Limits {
    let some = |limit: u64| (limit != PACE_UNLIMITED).then_some(limit);
    let limits = Limits::unlimited();
    let limits = some(count).map_or(limits.clone(), |most| limits.count(most));
    let limits = some(bytes).map_or(limits.clone(), |most| limits.bytes(most));
    // As for times: PACE_FOREVER.
    const { assert!(PACE_UNLIMITED == PACE_FOREVER) };
    some(age_ns).map_or(limits.clone(), |most| limits.age(nanos(most)))
}

/// # Safety
///
/// As the header demands of a text, which may be NULL.
unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>> {
    // SAFETY: as the caller promises.
    if text.is_null() { Ok(None) } else { unsafe { boundary::text(text, name) }.map(Some) }
}
