//! Export and import of histories, and archives without a hub.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    Handle, Out, Result, Text, call, call_void, consumed, optional_out, out, usable,
};
use super::history::{Opened, import, pace_history_options_t};
use super::hub::pace_hub_t;
use super::replay::{pace_query_t, pace_record_fn, query_of, show_to};
use super::status::*;
use crate::hub::history::{LinesRead, Query, read_lines};
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// An archive that is read without a hub, or beside one.
pub struct pace_archive_t {
    opened: Opened,
}

impl Handle for pace_archive_t {
    const NAME: &'static str = "archive";

    fn is_forked(&self) -> bool {
        false
    }
}

/// Writes what a history has kept that the query asks for to a new file of lines of JSON, which is there when all of it
/// is; a file that was there is replaced. `query` may be NULL: all; `newest` is not looked at. *count, which may be
/// NULL, says how many. pace_archive_import() makes an archive of such a file, which another hub can go on with.
///
/// PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read, or the
/// file not written; PACE_EVERSION.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_export(
    hub: Option<&pace_hub_t>,
    query: *const pace_query_t,
    path: Text,
    count: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let hub = &usable(hub)?.hub;
        // SAFETY: as the header demands.
        let query = unsafe { wanted(query) }?;
        let path = path.get("path")?;
        let to = optional_out(count);
        to.set(hub.export(&query, path)?);
        Ok(())
    })
}

/// Calls `each` for the messages of a file of lines that the query asks for, in their order, in this thread. `query` may
/// be NULL: all, and its `newest` is not looked at; `each` may be NULL: they are only counted. *messages says how many
/// there were, *torn how many lines are no JSON and were skipped, as a process that was killed leaves them; both may be
/// NULL. It reads one file: those that were rotated away are files of their own.
///
/// PACE_EINVAL; PACE_EOS if it cannot be read, or a line of JSON is no message: what was before it has been given to
/// `each`; PACE_EVERSION.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_lines_read(
    path: Text,
    query: *const pace_query_t,
    each: pace_record_fn,
    user_data: *mut c_void,
    messages: Option<&mut MaybeUninit<u64>>,
    torn: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let path = path.get("path")?;
        // SAFETY: as the header demands.
        let query = unsafe { wanted(query) }?;
        let to = Counts { messages: optional_out(messages), torn: optional_out(torn) };
        to.set(read_lines(path, &query, |stored| {
            // SAFETY: as the header demands.
            unsafe { show_to(each, user_data, &stored) }
            Ok(())
        })?);
        Ok(())
    })
}

/// Opens a file that a hub has made as pace_history_options_t.archive, to be read without a hub, or beside one. It is
/// brought up to date if it is older.
///
/// PACE_EINVAL if it is none; PACE_EOS; PACE_EUNSUPPORTED if the library was built without the feature `archive`.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_archive_open(
    path: Text,
    archive: Option<&mut MaybeUninit<*mut pace_archive_t>>,
) -> pace_status_t {
    call(|| {
        let path = path.get("path")?;
        let to = out(archive, "archive")?;
        to.set(Box::into_raw(Box::new(pace_archive_t { opened: Opened::at(path)? })));
        Ok(())
    })
}

/// As pace_hub_query(), of an archive.
///
/// PACE_EINVAL; PACE_EOS if it cannot be read; PACE_EVERSION.
///
/// Threads: any, which take turns. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_archive_query(
    archive: Option<&pace_archive_t>,
    query: *const pace_query_t,
    each: pace_record_fn,
    user_data: *mut c_void,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let archive = usable(archive)?;
        // SAFETY: as the header demands.
        let query = unsafe { query_of(query) }?;
        let to = optional_out(count);
        let found = match query {
            Some(query) => archive.opened.query(&query)?,
            None => Vec::new(),
        };
        // SAFETY: as the header demands.
        found.iter().for_each(|stored| unsafe { show_to(each, user_data, stored) });
        to.set(found.len());
        Ok(())
    })
}

/// As pace_hub_export(), of an archive.
///
/// PACE_EINVAL; PACE_EOS; PACE_EVERSION.
///
/// Threads: any, which take turns. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_archive_export(
    archive: Option<&pace_archive_t>,
    query: *const pace_query_t,
    path: Text,
    count: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let archive = usable(archive)?;
        // SAFETY: as the header demands.
        let query = unsafe { wanted(query) }?;
        let path = path.get("path")?;
        let to = optional_out(count);
        to.set(archive.opened.export(&query, path)?);
        Ok(())
    })
}

/// Makes a new archive of the messages of a file of lines that the query asks for. Of `options`, what is said of the
/// archive counts: `archive`, which must not be NULL, its limits, `process_only` and `check`. `query` may be NULL: all.
/// The sequences of the lines have to grow, as those of an export do. *messages and *torn are as in pace_lines_read().
///
/// PACE_EINVAL, also if the archive has something in it; PACE_EOS; PACE_EVERSION; PACE_EUNSUPPORTED if the library was
/// built without the feature `archive`. What was put in before a failure stays.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_archive_import(
    options: *const pace_history_options_t,
    lines: Text,
    query: *const pace_query_t,
    messages: Option<&mut MaybeUninit<u64>>,
    torn: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let lines = lines.get("lines")?;
        // SAFETY: as the header demands.
        let query = unsafe { wanted(query) }?;
        let to = Counts { messages: optional_out(messages), torn: optional_out(torn) };
        // SAFETY: as the header demands.
        to.set(unsafe { import(options, lines, &query) }?);
        Ok(())
    })
}

/// Closes an archive. NULL is a no-op.
///
/// Threads: any, as long as no other uses the archive any more. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub extern "C" fn pace_archive_free(archive: Option<Box<pace_archive_t>>) {
    call_void(|| drop(consumed(archive)));
}

/// Where counts of lines go.
struct Counts<'a> {
    messages: Out<'a, u64>,
    torn: Out<'a, u64>,
}

impl Counts<'_> {
    fn set(self, read: LinesRead) {
        self.messages.set(read.messages as u64);
        self.torn.set(read.torn as u64);
    }
}

/// A query of what may be nothing.
///
/// # Safety
///
/// As the header demands of a query, which may be NULL.
unsafe fn wanted(query: *const pace_query_t) -> Result<Query> {
    // SAFETY: as the caller promises.
    Ok(match unsafe { query_of(query) }? {
        Some(query) => query,
        None => Query::of(">").limit(0),
    })
}
