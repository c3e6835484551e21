//! Version, status codes, and what went wrong.
#![allow(unsafe_code, non_camel_case_types, reason = "the names and symbols of the C interface")]

use super::boundary::{self, call_void};
use crate::log::{Component, Level, Logger, faults};
use core::ffi::{CStr, c_char};

/// The major version of this header's library.
pub const PACE_VERSION_MAJOR: u32 = 0;
/// The minor version of this header's library.
pub const PACE_VERSION_MINOR: u32 = 1;
/// The patch level of this header's library.
pub const PACE_VERSION_PATCH: u32 = 0;

/// What a call answers: PACE_OK, or one of the negative codes.
pub type pace_status_t = i32;

/// Success: the function has done what it says.
pub const PACE_OK: i32 = 0;
/// An argument is NULL or out of its range; pace_last_error() names it.
pub const PACE_EINVAL: i32 = -1;
/// Something bounded is full: a lane, a strand, a ring, a queue, the table of handles, the places for
/// host threads, a connection's output, a server's requests in work.
pub const PACE_EFULL: i32 = -2;
/// The queue is empty, and no time to wait was given; the message is not whole yet.
pub const PACE_EEMPTY: i32 = -3;
/// The operation timed out: the time that it was given is over.
pub const PACE_ETIMEDOUT: i32 = -4;
/// The pool is shut down, or draining; the ring or queue is closed (and, for a pop, empty); the server
/// drains.
pub const PACE_ESHUTDOWN: i32 = -5;
/// This process is a child made by fork: what the parent made works only in the parent.
pub const PACE_EFORKED: i32 = -6;
/// What this id named is gone, or never was.
pub const PACE_ESTALE: i32 = -7;
/// The handler is running, or its event is pulled: the handle closes when that is over.
pub const PACE_ECLOSING: i32 = -8;
/// Waiting here could never end: every other thread of the pool waits already.
pub const PACE_EDEADLOCK: i32 = -9;
/// The task was cancelled, or the pool stopped, before it began.
pub const PACE_ECANCELLED: i32 = -10;
/// A factory has failed. Also the outcome of a task that has not reported another one.
pub const PACE_EFAILED: i32 = -11;
/// A panic inside the library was caught. The pool is intact.
pub const PACE_EPANIC: i32 = -12;
/// A system call failed; pace_last_os_error() says how.
pub const PACE_EOS: i32 = -13;
/// The struct_size of a struct is not one that this library knows.
pub const PACE_EVERSION: i32 = -14;
/// Another thread waits for this task already.
pub const PACE_EBUSY: i32 = -15;
/// No subscription matches the key of a request.
pub const PACE_ENORESPONDERS: i32 = -16;
/// The library was built without the feature that the function needs.
pub const PACE_EUNSUPPORTED: i32 = -17;

/// Messages that the hub's histories took were given up: they are not on disk, and never will be.
pub const PACE_EGIVENUP: i32 = -18;

/// Version of the library that is loaded: major << 16 | minor << 8 | patch.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_version() -> u32 {
    PACE_VERSION_MAJOR << 16 | PACE_VERSION_MINOR << 8 | PACE_VERSION_PATCH
}

/// A sentence about a status: static text, never NULL, also for numbers that are no status.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_strerror(status: pace_status_t) -> *const c_char {
    describe(status).1.as_ptr()
}

/// The name of a status, "PACE_EINVAL" for one: static text, never NULL; "PACE_UNKNOWN" for numbers
/// that are no status.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_status_name(status: pace_status_t) -> *const c_char {
    describe(status).0.as_ptr()
}

/// What this thread's last call that failed had to say: which argument, its value, and what would be
/// right. "" if none has failed. Calls that succeed leave it alone. Valid until this thread's next
/// call that fails, or its end.
///
/// Threads: any, each has its own. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_last_error() -> *const c_char {
    boundary::last_error()
}

/// The errno of this thread's last call that failed, if that was PACE_EOS: never 0 then, but the nearest one
/// where the library has refused something itself, a descriptor of the wrong kind say. Else 0.
///
/// Threads: any, each has its own. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_last_os_error() -> i32 {
    boundary::last_os_error()
}

/// Whether the library keeps silent about faults that no log and no hook is told of. Default: false.
///
/// Without this, a fault of a pool that has no log (pace_pool_config_t.log, pace_log_install()) is one line on the
/// standard error stream: a handler that fails, a suspended subscription, a log's file that cannot be written and
/// the like. Of each kind of fault at most one line is written in 10 seconds, with the number of those that were
/// not. With a log, a fault is a record of it and no line; with a hook for the fault (the on_exhausted of a server,
/// say), neither. It holds for the process.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_quiet(quiet: bool) {
    crate::quiet(quiet);
}

/// Tells of an exception that has left code of the program, which this thread has caught in the library's place: to
/// the log of its pool, or on the standard error stream (pace_quiet()). For languages whose exceptions must not leave
/// a callback.
///
/// `what` is what the exception says; what is not UTF-8 in it is replaced by U+FFFD. NULL: a hook of the program was
/// told, so that the library need not write a line. `fails`: the callback goes on to answer that it has failed, as a
/// handler by a number that is no PACE_FLOW_ number, and the library tells of that with this text.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_unhandled(what: *const c_char, fails: bool) {
    call_void(|| {
        if what.is_null() {
            return faults::note_told();
        }
        // SAFETY: not NULL, and as the header demands.
        let what = unsafe { boundary::words(what) };
        if fails {
            return faults::note_text(what.into());
        }
        match crate::pool::current() {
            Some((shared, _)) => shared.log_unhandled(&what),
            None => Logger::for_nobodys_pool().error(Component::Pool, "pool.unhandled", |record| {
                record.say(&*what);
            }),
        }
        faults::note_told_of_another();
    });
}

/// Keeps a failure of which the program has told already among the last faults that operations endpoints show, and counts
/// it in their figures. Nothing is logged. For languages with a log of their own.
///
/// `what` is what the failure says; what is not UTF-8 in it is replaced by U+FFFD. Does nothing if NULL. `is_error`: it is
/// an error, and no warning.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_note_fault(what: *const c_char, is_error: bool) {
    call_void(|| {
        if what.is_null() {
            return;
        }
        // SAFETY: not NULL, and as the header demands.
        let what = unsafe { boundary::words(what) };
        let level = if is_error { Level::Error } else { Level::Warn };
        let pool = crate::pool::current().map(|(shared, _)| shared.log.pool().to_owned());
        faults::keep(level, &pool.unwrap_or_default(), &what);
    });
}

fn describe(status: pace_status_t) -> (&'static CStr, &'static CStr) {
    match status {
        PACE_OK => (c"PACE_OK", c"it worked"),
        PACE_EINVAL => (c"PACE_EINVAL", c"an argument is NULL or out of its range"),
        PACE_EFULL => (c"PACE_EFULL", c"there is no room"),
        PACE_EEMPTY => (c"PACE_EEMPTY", c"the queue is empty"),
        PACE_ETIMEDOUT => (c"PACE_ETIMEDOUT", c"the time ran out"),
        PACE_ESHUTDOWN => (c"PACE_ESHUTDOWN", c"it is shut down or closed"),
        PACE_EFORKED => {
            (c"PACE_EFORKED", c"this process was forked; the parent's things work only there")
        }
        PACE_ESTALE => (c"PACE_ESTALE", c"what this id named is gone, or never was"),
        PACE_ECLOSING => (c"PACE_ECLOSING", c"the handler is running; it closes when it returns"),
        PACE_EDEADLOCK => (c"PACE_EDEADLOCK", c"waiting here could never end"),
        PACE_ECANCELLED => (c"PACE_ECANCELLED", c"the task was cancelled before it began"),
        PACE_EFAILED => (c"PACE_EFAILED", c"the task ended without reporting success"),
        PACE_EPANIC => (c"PACE_EPANIC", c"a panic inside the library was caught"),
        PACE_EOS => (c"PACE_EOS", c"a system call failed"),
        PACE_EVERSION => (c"PACE_EVERSION", c"the struct_size is not one that this library knows"),
        PACE_EBUSY => (c"PACE_EBUSY", c"another thread waits for this task already"),
        PACE_ENORESPONDERS => {
            (c"PACE_ENORESPONDERS", c"nobody subscribes to the key of the request")
        }
        PACE_EUNSUPPORTED => (c"PACE_EUNSUPPORTED", c"the library was built without that"),
        PACE_EGIVENUP => (c"PACE_EGIVENUP", c"messages were given up and are not on disk"),
        _ => (c"PACE_UNKNOWN", c"this number is no status of paceline"),
    }
}

const _: () = {
    const fn is(text: &str, number: u32) -> bool {
        text.len() == 1 && text.as_bytes()[0] == b'0' + number as u8
    }
    assert!(is(env!("CARGO_PKG_VERSION_MAJOR"), PACE_VERSION_MAJOR));
    assert!(is(env!("CARGO_PKG_VERSION_MINOR"), PACE_VERSION_MINOR));
    assert!(is(env!("CARGO_PKG_VERSION_PATCH"), PACE_VERSION_PATCH));
};
