//! What stands between a socket and its hooks: TLS, compression, a trace.
//!
//! A `pace_sink_t *` is the address of a `Vec`, good while its hook runs.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Result, call, callback};
use super::callback::pace_drop_fn;
use super::conn::{lend, pace_conn_t};
use super::owner::{Owner, Registration, pair};
use super::sized::{self, InOut};
use super::status::*;
use crate::net::{Conn, Filter, FilterRead, Listen};
use crate::pool::Shared;
use core::ffi::c_void;
use core::ptr;
use std::io;
use std::sync::Arc;

/// From `received`: plain bytes may still come.
pub const PACE_FILTER_READ_OPEN: i32 = 0;
/// From `received`: the peer has said that it sends no more; the hook `finished` follows.
pub const PACE_FILTER_READ_ENDED: i32 = 1;

/// Where a hook of a filter puts bytes: good for that call only, and on that thread.
pub struct pace_sink_t {
    _opaque: (),
}

/// Makes the filter of a connection that was accepted. `conn` tells its addresses and its id; nothing
/// may be written, and nothing ended. *filter, NULL beforehand, is what the other hooks are called with.
/// Answers 0; an errno ends the connection with PACE_REASON_FAILED, and nothing of the filter is called.
pub type pace_filter_make_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        conn: *mut pace_conn_t,
        filter: *mut *mut c_void,
    ) -> i32,
>;

/// These bytes have come. What the hook `data` is to see goes to `plain`, and what the peer is to be
/// answered to `wire` (a handshake, say). It takes all of them, and keeps what it cannot turn yet.
/// Answers with a PACE_FILTER_READ_ number; any other, a negative errno as a rule, ends the connection with
/// PACE_REASON_FAILED, when what is in `plain` was shown and what is in `wire` was tried.
pub type pace_filter_received_fn = Option<
    unsafe extern "C" fn(
        filter: *mut c_void,
        bytes: *const c_void,
        size: usize,
        plain: *mut pace_sink_t,
        wire: *mut pace_sink_t,
    ) -> i32,
>;

/// These bytes were written. What is to leave goes to `wire`; what cannot be turned yet it keeps, and
/// gives out in `received`. What it still keeps when the connection closes is lost. Answers 0; anything
/// else is a failure of the connection.
pub type pace_filter_written_fn = Option<
    unsafe extern "C" fn(
        filter: *mut c_void,
        bytes: *const c_void,
        size: usize,
        wire: *mut pace_sink_t,
    ) -> i32,
>;

/// Nothing more will be written: its last words to the peer. Called once at most.
pub type pace_filter_finish_fn =
    Option<unsafe extern "C" fn(filter: *mut c_void, wire: *mut pace_sink_t)>;

/// The socket has ended though `received` did not say PACE_FILTER_READ_ENDED. Answers 0 if peers may end like
/// that; anything else, a negative errno as a rule, is a failure of the connection, and the hook
/// `finished` is not called.
pub type pace_filter_cut_off_fn = Option<unsafe extern "C" fn(filter: *mut c_void) -> i32>;

/// The last call for a filter, exactly once.
pub type pace_filter_free_fn = Option<unsafe extern "C" fn(filter: *mut c_void)>;

/// What turns the bytes of a listener's connections, both ways: see pace_listener_options_t.filter. Hooks
/// of connections, those of HTTP too, and whoever writes see plain bytes; marks and maxima of the output
/// count what leaves.
///
/// The hooks of one filter never run on two threads at once. They run under a lock of the connection,
/// on whatever thread writes or reads: they must neither block nor use the connection. All but `make`,
/// `received` and `written` may be NULL. Call pace_filter_hooks_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_filter_hooks_t {
    /// The size of the struct in bytes, as pace_filter_hooks_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Makes the filter of a connection, before the hook `open`. It must not be NULL.
    pub make: pace_filter_make_fn,
    /// Called with bytes that have come from the peer, to be translated. It must not be NULL.
    pub received: pace_filter_received_fn,
    /// Called with bytes that a hook or another thread has written, to be translated. It must not be NULL.
    pub written: pace_filter_written_fn,
    /// Nothing more will be written. NULL: it has no last words.
    pub finish: pace_filter_finish_fn,
    /// The socket has ended. NULL: peers may end like that.
    pub cut_off: pace_filter_cut_off_fn,
    /// The filter is not needed any more. NULL: nothing.
    pub free: pace_filter_free_fn,
    /// What `make` is given, good until `drop` runs.
    pub user_data: *mut c_void,
    /// Called once with user_data, for each listener with these hooks, when the listener and all filters
    /// that it made are gone: no hook is called any more. If the server does not start it is not called,
    /// and no hook was. NULL: nothing; the end of the server and its connections tells, too, as the `drop`
    /// of their hooks or routes does.
    pub drop: pace_drop_fn,
}

/// Fills hooks with NULL: pace_filter_hooks_init(&hooks, sizeof hooks).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_filter_hooks_init(
    hooks: InOut<pace_filter_hooks_t>,
    size: usize,
) -> pace_status_t {
    let none = pace_filter_hooks_t {
        struct_size: 0,
        reserved: 0,
        make: None,
        received: None,
        written: None,
        finish: None,
        cut_off: None,
        free: None,
        user_data: ptr::null_mut(),
        drop: None,
    };
    call(|| hooks.init(size, none, "hooks"))
}

/// Puts bytes behind those that are there.
///
/// Threads: the hook's. In handlers: in the filter's hook that was given the sink; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_sink_append(
    sink: *mut pace_sink_t,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let sink = sink.cast::<Vec<u8>>();
        boundary::check(sink, "sink")?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        // SAFETY: not NULL, and as the header demands, lent to a hook that runs on this thread.
        unsafe { &mut *sink }.extend_from_slice(bytes);
        Ok(())
    })
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_filter_hooks_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_filter_hooks_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = core::mem::offset_of!(pace_filter_hooks_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// --- what calls C -----------------------------------------------------------------------------------

type MakeFn = unsafe extern "C" fn(*mut c_void, *mut pace_conn_t, *mut *mut c_void) -> i32;
type ReceivedFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    usize,
    *mut pace_sink_t,
    *mut pace_sink_t,
) -> i32;
type WrittenFn = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut pace_sink_t) -> i32;

/// The hooks of a listener's filters. It goes with the listener and the last of its filters.
struct Table {
    hooks: pace_filter_hooks_t,
    make: MakeFn,
    received: ReceivedFn,
    written: WrittenFn,
    owner: Owner,
}

/// The user_data of a server's filters, which it takes over when it has started. Without that it stays
/// the caller's, since no connection came before.
#[must_use]
#[derive(Default)]
pub(super) struct Filters(Vec<Registration>);

impl Filters {
    pub(super) fn keep(self) {
        self.0.into_iter().for_each(Registration::keep);
    }
}

// SAFETY: the header demands that hooks and user_data may be used by any thread.
unsafe impl Send for Table {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Table {}

/// Connections that are accepted at this listener get filters.
///
/// # Safety
///
/// As the header demands of `hooks`, which is not NULL.
pub(super) unsafe fn set(
    listener: Listen,
    hooks: *const pace_filter_hooks_t,
    shared: &Arc<Shared>,
    filters: &mut Filters,
) -> Result<Listen> {
    // SAFETY: as the caller promises.
    let hooks = unsafe { sized::read(hooks, "filter") }?;
    let make = callback(hooks.make, "filter.make")?;
    let received = callback(hooks.received, "filter.received")?;
    let written = callback(hooks.written, "filter.written")?;
    let (registration, owner) = pair(hooks.user_data, hooks.drop);
    let table = Arc::new(Table { hooks, make, received, written, owner });
    filters.0.push(registration);
    let shared = Arc::clone(shared);
    Ok(listener.filter(move |conn| Table::make(&table, conn, &shared)))
}

impl Table {
    fn make(self: &Arc<Self>, conn: &Conn, shared: &Arc<Shared>) -> Turning {
        let mut own = ptr::null_mut();
        let answer = lend(conn, shared, |conn| {
            // SAFETY: as the header demands, the hook takes what came with it.
            unsafe { (self.make)(self.owner.data(), conn, &mut own) }
        });
        let state = if answer == 0 { Ok(own) } else { Err(answer) };
        Turning { table: Arc::clone(self), state }
    }
}

/// One connection's filter.
struct Turning {
    table: Arc<Table>,
    /// What its hooks are called with; or the errno that there is none for.
    state: core::result::Result<*mut c_void, i32>,
}

// SAFETY: the header demands that hooks and what they are given may be used by any thread.
unsafe impl Send for Turning {}

impl Turning {
    fn filter(&self) -> io::Result<*mut c_void> {
        self.state.map_err(failure)
    }
}

impl Filter for Turning {
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        wire: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        let (filter, plain, wire) = (self.filter()?, sink(plain), sink(wire));
        // SAFETY: as the header demands, the hook takes what `make` has left.
        let answer = unsafe {
            (self.table.received)(filter, bytes.as_ptr().cast(), bytes.len(), plain, wire)
        };
        match answer {
            PACE_FILTER_READ_OPEN => Ok(FilterRead::Open),
            PACE_FILTER_READ_ENDED => Ok(FilterRead::Ended),
            other => Err(failure(other)),
        }
    }

    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let (filter, wire) = (self.filter()?, sink(wire));
        // SAFETY: as above.
        succeeded(unsafe { (self.table.written)(filter, bytes.as_ptr().cast(), bytes.len(), wire) })
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        if let (Some(hook), Ok(filter)) = (self.table.hooks.finish, self.state) {
            // SAFETY: as above.
            unsafe { hook(filter, sink(wire)) }
        }
    }

    fn cut_off(&mut self) -> io::Result<()> {
        let filter = self.filter()?;
        // SAFETY: as above.
        self.table.hooks.cut_off.map_or(Ok(()), |hook| succeeded(unsafe { hook(filter) }))
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        if let (Some(hook), Ok(filter)) = (self.table.hooks.free, self.state) {
            // SAFETY: as above; this is the only time.
            unsafe { hook(filter) }
        }
    }
}

fn sink(bytes: &mut Vec<u8>) -> *mut pace_sink_t {
    ptr::from_mut(bytes).cast()
}

fn succeeded(answer: i32) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(failure(answer)) }
}

/// What the answer of a hook stands for.
fn failure(answer: i32) -> io::Error {
    io::Error::from_raw_os_error(answer.saturating_abs())
}
