//! Connections: the hooks that C writes, and what they may call.
//!
//! A hook is given a `pace_conn_t *`, which lies on the stack of the call and is gone after it. What
//! lasts is the [`Handler`], one per connection: the hooks, which it shares with others, and the
//! user_data that it gives them.
//#
//# How to answer later. A hook that cannot answer at once admits the request by pace_conn_admit(), notes the connection's
//# name by pace_conn_id(), and returns. Any thread then writes the answer by pace_server_conn_write(), and ends the
//# request by pace_admission_answered(). While a request is in work its connection is not idle, it is not closed when its
//# peer finishes, and a drain waits for it. Without the admission the connection may be closed before the answer comes:
//# when its idle_timeout_ns is over, its peer has finished, or the server drains; the write then gives PACE_ESTALE. To
//# take a name alone admits nothing: many names are taken to push to a connection at any time, as to a subscriber, and
//# nobody could tell when such a request had ended.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, call, callback, consumed, errno, nanos, optional_out, out,
    usable,
};
use super::callback::{pace_conn_id_t, pace_drop_fn};
use super::owner::{Owner, Registration, pair};
use super::sized::{self, InOut};
use super::status::*;
use super::values::{PACE_ADDRESS_SIZE, PACE_FOREVER, pace_piece_t};
use crate::net::{
    Accept, Address, Admission, Conn, ConnHandler, ConnId, Foreign, Reason, Timeout, TimeoutAction,
    WriteStatus,
};
use crate::pool::Shared;
use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::io::{ErrorKind, IoSlice};
use std::panic::resume_unwind;
use std::sync::Arc;

/// The peer had finished, and everything was sent.
pub const PACE_REASON_PEER: u32 = 0;
/// It was closed here, and everything was sent.
pub const PACE_REASON_LOCAL: u32 = 1;
/// It was aborted: what was queued is lost.
pub const PACE_REASON_ABORTED: u32 = 2;
/// The open hook did not want it.
pub const PACE_REASON_REFUSED: u32 = 3;
/// A time was over: the detail is a PACE_TIMEOUT_ number.
pub const PACE_REASON_TIMED_OUT: u32 = 4;
/// The socket failed: the detail is an errno.
pub const PACE_REASON_FAILED: u32 = 5;
/// More than max_unconsumed bytes were not consumed.
pub const PACE_REASON_UNCONSUMED: u32 = 6;
/// A hook failed: by pace_conn_fail(), or by an answer that is none.
pub const PACE_REASON_PANICKED: u32 = 7;
/// The server drained, and everything was sent.
pub const PACE_REASON_DRAINED: u32 = 8;
/// The drain's time was over, or the server was freed: what was queued is lost.
pub const PACE_REASON_CUT_OFF: u32 = 9;
/// The pool has shut down, or had no room for it.
pub const PACE_REASON_POOL_ENDED: u32 = 10;

/// An outgoing connection was not made.
pub const PACE_TIMEOUT_CONNECT: u32 = 0;
/// Nothing was sent or received.
pub const PACE_TIMEOUT_IDLE: u32 = 1;
/// A part of a message waits for its rest.
pub const PACE_TIMEOUT_READ: u32 = 2;
/// The peer takes nothing of what is queued for it.
pub const PACE_TIMEOUT_STALL: u32 = 3;
/// The one that was set by pace_conn_set_deadline().
pub const PACE_TIMEOUT_DEADLINE: u32 = 4;

/// All of it is with the kernel.
pub const PACE_WRITE_STATUS_SENT: u32 = 0;
/// Some waits in the queue. Inside a hook it always does: it is tried when the hook returns.
pub const PACE_WRITE_STATUS_QUEUED: u32 = 1;
/// The same, and the queue is above its high mark: nothing is read from this connection before it has
/// fallen to the low mark. Whoever can should write no more until the hook `writable`.
pub const PACE_WRITE_STATUS_ABOVE_HIGH_MARK: u32 = 2;
/// None of it: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205 or 304).
/// All that follows would be dropped, too, so there is nothing more to produce.
pub const PACE_WRITE_STATUS_UNWANTED: u32 = 3;

/// From the hook `open`: the connection is wanted.
pub const PACE_ACCEPT_YES: i32 = 0;
/// From the hook `open`: it is not. It is sent what the hook has written, and closed.
pub const PACE_ACCEPT_REFUSE: i32 = 1;

/// From the hook `timeout`: close at once, with PACE_REASON_TIMED_OUT.
pub const PACE_TIMEOUT_ACTION_CLOSE: i32 = 0;
/// From the hook `timeout`: go on; the time begins anew, but a deadline is unset. Also the answer of a
/// hook that has called pace_conn_close() to send a last message.
pub const PACE_TIMEOUT_ACTION_KEEP: i32 = 1;

/// A connection inside one of its hooks: good for that call only, and on that thread. What is written
/// by it is gathered, and sent when the hook returns, at 64 KiB, or by pace_conn_flush().
pub struct pace_conn_t {
    conn: *const Conn,
    shared: *const Shared,
    /// What the next hook is given.
    data: Cell<*mut c_void>,
    failed: Cell<bool>,
}

/// A request in work; see pace_conn_admit().
pub struct pace_admission_t {
    admission: Admission,
    shared: Arc<Shared>,
}

impl pace_admission_t {
    /// Given to the host.
    pub(super) fn give(admission: Admission, shared: Arc<Shared>) -> *mut Self {
        Box::into_raw(Box::new(Self { admission, shared }))
    }
}

/// The hook `open`: the connection is there. Called once, before all others but `close`. Answers with
/// a PACE_ACCEPT_ number; any other counts as a failure of the hook. Without one all are wanted.
pub type pace_conn_open_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t) -> i32>;

/// The hook `data`: bytes have arrived. Answers how many of them it has consumed, from the front: it
/// should take all that it can. The rest is shown again, followed by more, when more has come (or when
/// reading goes on after a pause or after output has drained). It grows up to max_unconsumed. More
/// than `size` counts as a failure of the hook.
///
/// Nothing is read, and this is not called, while the output is above its high mark (PACE_WRITE_STATUS_ABOVE_HIGH_MARK),
/// after pace_conn_pause(), and after pace_conn_close().
pub type pace_conn_data_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        conn: *mut pace_conn_t,
        bytes: *const c_void,
        size: usize,
    ) -> usize,
>;

/// Hooks that are told only that something has happened; what, is said at the field.
pub type pace_conn_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t)>;

/// The hook `written`: all bytes up to and including a pace_conn_write_tracked() with this token have
/// been given to the kernel. Not called for bytes that were lost with the connection.
pub type pace_conn_written_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t, token: u64)>;

/// The hook `timeout`: a time is over, PACE_TIMEOUT_. Answers with a PACE_TIMEOUT_ACTION_ number; any other
/// counts as a failure of the hook. Without one the connection is closed.
pub type pace_conn_timeout_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t, kind: u32) -> i32>;

/// The hook `error`: the socket failed; `close` follows. `os_error` is the errno of that kind of
/// failure, EIO for those that have none of their own.
pub type pace_conn_error_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t, os_error: i32)>;

/// The hook `close`: the end, exactly once, and the last call with this user_data: the place to free
/// it. An outgoing connection that could not be made comes here without `open`. `detail` is a
/// PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for PACE_REASON_FAILED, else 0.
pub type pace_conn_close_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, conn: *mut pace_conn_t, reason: u32, detail: i32),
>;

/// What a connection does. The hooks of one connection never run on two threads at once; different
/// connections run in parallel. They run on threads of the pool, and should not block (or call
/// pace_promote_new_leader() before). All but `data` may be NULL. Call pace_conn_hooks_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_conn_hooks_t {
    /// The size of the struct in bytes, as pace_conn_hooks_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The connection is there. NULL: it is wanted.
    pub open: pace_conn_open_fn,
    /// Bytes have arrived. Not NULL.
    pub data: pace_conn_data_fn,
    /// The peer sends no more; it may still read. Afterwards the connection is closed by itself, with a hook and
    /// without one, when its admitted requests have ended and everything is sent: so a hook that answers later
    /// admits the request, by pace_conn_admit(). What was not consumed is dropped. With allow_half_open of
    /// pace_listener_options_t nothing is closed by itself, and this or other code of yours closes it.
    pub finished: pace_conn_fn,
    /// The output was above its high mark, and has fallen to the low mark.
    pub writable: pace_conn_fn,
    /// Tracked bytes are with the kernel.
    pub written: pace_conn_written_fn,
    /// A time is over. NULL: close at once.
    pub timeout: pace_conn_timeout_fn,
    /// pace_server_conn_notify() was called, once or more since this was last called. Afterwards what
    /// was not consumed is shown again. What was written or published before the call can be seen.
    pub notified: pace_conn_fn,
    /// The server drains: this connection is closed as soon as all that has arrived is consumed, no
    /// admitted request is in work, and everything is sent.
    pub draining: pace_conn_fn,
    /// Called when the socket has failed, before `close`. NULL: only `close` is called.
    pub error: pace_conn_error_fn,
    /// Called once at the end of a connection, with the reason. NULL: no call.
    pub close: pace_conn_close_fn,
    /// What the hooks of a connection are given until pace_conn_set_user_data().
    pub user_data: *mut c_void,
    /// Runs once with `user_data`, after the last call of these hooks: when the server was freed and
    /// its connections have ended, or the connection that was made with them. NULL: nothing.
    pub drop: pace_drop_fn,
}

/// Fills hooks with NULL: pace_conn_hooks_init(&hooks, sizeof hooks).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_hooks_init(
    hooks: InOut<pace_conn_hooks_t>,
    size: usize,
) -> pace_status_t {
    call(|| hooks.init(size, NO_HOOKS, "hooks"))
}

/// Writes, in order, without waiting. *wrote is PACE_WRITE_STATUS_QUEUED or PACE_WRITE_STATUS_ABOVE_HIGH_MARK;
/// `wrote` may be NULL.
///
/// PACE_ESTALE after pace_conn_close() or pace_conn_shutdown_write(), and if the peer is gone;
/// PACE_EFULL if the queue would exceed its maximum: none of it was taken.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_write(
    conn: Option<&pace_conn_t>,
    bytes: *const c_void,
    size: usize,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = inside(conn)?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = optional_out(wrote);
        to.set(number_of(conn.write(bytes)?));
        Ok(())
    })
}

/// Writes all `count` pieces as one. Otherwise as pace_conn_write().
///
/// PACE_ESTALE, PACE_EFULL as there.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_write_vectored(
    conn: Option<&pace_conn_t>,
    pieces: *const pace_piece_t,
    count: usize,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = inside(conn)?;
        let to = optional_out(wrote);
        // SAFETY: as the header demands.
        let wrote = unsafe { with_pieces(pieces, count, |pieces| conn.write_vectored(pieces)) }?;
        to.set(number_of(wrote));
        Ok(())
    })
}

/// Writes without copying, for large buffers. `drop` is called once with `user_data` when the bytes are
/// not needed any more, since they were sent or never will be: perhaps before this returns, on
/// whatever thread that is. It may call what a handler may. If this fails nothing has moved: `drop` does
/// not run. `drop` may be NULL, for bytes that live for ever. Otherwise as pace_conn_write().
///
/// PACE_ESTALE, PACE_EFULL as there.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_write_owned(
    conn: Option<&pace_conn_t>,
    bytes: *const c_void,
    size: usize,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = inside(conn)?;
        // SAFETY: as the header demands.
        unsafe { write_owned(bytes, size, user_data, drop, wrote, |lent| conn.write_foreign(lent)) }
    })
}

/// Writes, and has the hook `written` called with `token` when all of it, and all before it, has been
/// given to the kernel. Otherwise as pace_conn_write().
///
/// PACE_ESTALE, PACE_EFULL as there.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_write_tracked(
    conn: Option<&pace_conn_t>,
    bytes: *const c_void,
    size: usize,
    token: u64,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = inside(conn)?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = optional_out(wrote);
        to.set(number_of(conn.write_tracked(bytes, token)?));
        Ok(())
    })
}

/// Sends what was gathered now, before a long computation for example.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_flush(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::flush)
}

/// After what is queued, tells the peer that no more is sent. Reading goes on.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_shutdown_write(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::shutdown_write)
}

/// Closes after what is queued has been sent. Nothing more is read, and `data` is not called any more.
/// The peer is told the end, and may take `linger` to answer with its own.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_close(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::close)
}

/// Closes at once. What is queued is lost; a TCP peer sees a reset.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_abort(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::abort)
}

/// Reads no more, and calls `data` no more, before a resume. What the peer has sent is not lost meanwhile,
/// and that it has ended, or was reset, is seen behind that, or by a write that fails. A resume that comes
/// while the hook runs ends this pause, whichever of the two comes first.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_pause(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::pause)
}

/// Ends a pause, when the hook has returned. What was not consumed is shown again, and nothing is read before
/// that. A resume that comes before `data` is called does not end a pause that `data` makes.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_resume(conn: Option<&pace_conn_t>) -> pace_status_t {
    tell(conn, Conn::resume)
}

/// Has the hook `timeout` called with PACE_TIMEOUT_DEADLINE when this time is over, in place of what was
/// set before; PACE_FOREVER: not at all. A connection has one deadline, which is unset when it comes. To
/// put it off costs no operation of a timer.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_set_deadline(
    conn: Option<&pace_conn_t>,
    time_ns: u64,
) -> pace_status_t {
    let time = (time_ns != PACE_FOREVER).then(|| nanos(time_ns));
    tell(conn, |conn| conn.set_deadline(time))
}

/// Says that this hook has failed. When it returns, the connection is closed with
/// PACE_REASON_PANICKED, and the failure counted. For languages whose exceptions must not leave a hook.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_fail(conn: Option<&pace_conn_t>) -> pace_status_t {
    call(|| {
        usable(conn)?.failed.set(true);
        Ok(())
    })
}

/// What the hooks of this connection are given from the next call on. The one before is still the
/// caller's; `drop` of the hooks runs for the one that they came with. Free it in the hook `close`.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_set_user_data(
    conn: Option<&pace_conn_t>,
    user_data: *mut c_void,
) -> pace_status_t {
    call(|| {
        usable(conn)?.data.set(user_data);
        Ok(())
    })
}

/// Begins a request that is answered later, by any thread. It counts as in work until it was answered or freed.
/// Meanwhile the idle timeout does not run, and neither a drain nor a peer that has finished closes the connection.
///
/// PACE_EFULL: as many are in work as max_requests allows; the server's busy message has been written
/// instead.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_admit(
    conn: Option<&pace_conn_t>,
    admission: Option<&mut MaybeUninit<*mut pace_admission_t>>,
) -> pace_status_t {
    call(|| {
        let inside = usable(conn)?;
        let to = out(admission, "admission")?;
        let admitted = inside.conn().admit().ok_or(BUSY)?;
        // SAFETY: the pool's, which is there while its hook runs, and came out of an `Arc`.
        let shared = unsafe {
            Arc::increment_strong_count(inside.shared);
            Arc::from_raw(inside.shared)
        };
        to.set(pace_admission_t::give(admitted, shared));
        Ok(())
    })
}

/// Ends a request, and frees its admission: it was answered, by what has been written before. If the
/// connection has ended meanwhile it counts as aborted.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_admission_answered(
    admission: Option<Box<pace_admission_t>>,
) -> pace_status_t {
    call(|| {
        consumed(admission)?.admission.answered();
        Ok(())
    })
}

/// Ends a request, and frees its admission: it was not answered, and counts as aborted. NULL is a
/// no-op. In a forked child it does nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_admission_free(admission: Option<Box<pace_admission_t>>) {
    boundary::call_void(|| drop(consumed(admission)));
}

/// Its name, for other threads and for later.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_id(
    conn: Option<&pace_conn_t>,
    id: Option<&mut MaybeUninit<pace_conn_id_t>>,
) -> pace_status_t {
    ask(conn, id, "id", |conn| name(conn.id()))
}

/// The other end, as text that pace_listener_options_t.address could be: in `size` bytes at `text`,
/// with a NUL. PACE_ADDRESS_SIZE is enough for every address.
///
/// PACE_EINVAL if `size` is not enough.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_peer(
    conn: Option<&pace_conn_t>,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { put_address(inside(conn)?.peer(), text, size) })
}

/// This end. Otherwise as pace_conn_peer().
///
/// PACE_EINVAL as there; PACE_ESTALE in the hook `close`.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_conn_local(
    conn: Option<&pace_conn_t>,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    call(|| {
        let local = inside(conn)?.local().ok_or(CLOSED)?;
        // SAFETY: as the header demands.
        unsafe { put_address(&local, text, size) }
    })
}

/// Whether it was made by pace_server_connect().
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_is_outgoing(
    conn: Option<&pace_conn_t>,
    is_outgoing: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    ask(conn, is_outgoing, "is_outgoing", Conn::is_outgoing)
}

/// Whether its server drains.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_is_draining(
    conn: Option<&pace_conn_t>,
    is_draining: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    ask(conn, is_draining, "is_draining", Conn::is_draining)
}

/// How many bytes wait to be sent.
///
/// Threads: the hook's. In handlers: in hooks of this connection; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_conn_queued(
    conn: Option<&pace_conn_t>,
    queued: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    ask(conn, queued, "queued", Conn::queued)
}

pub(super) const BUSY: Failure =
    Failure::plain(PACE_EFULL, c"as many requests are in work as may be");
pub(super) const CLOSED: Failure = Failure::plain(PACE_ESTALE, c"this connection is closed");

const NO_HOOKS: pace_conn_hooks_t = pace_conn_hooks_t {
    struct_size: 0,
    reserved: 0,
    open: None,
    data: None,
    finished: None,
    writable: None,
    written: None,
    timeout: None,
    notified: None,
    draining: None,
    error: None,
    close: None,
    user_data: ptr::null_mut(),
    drop: None,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_conn_hooks_t {
    const FIRST: usize = 104;
    const NAME: &'static str = "pace_conn_hooks_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = core::mem::offset_of!(pace_conn_hooks_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// --- what C calls -----------------------------------------------------------------------------------

impl pace_conn_t {
    fn conn(&self) -> &Conn {
        // SAFETY: as long as this lives, the hook is being called with it.
        unsafe { &*self.conn }
    }
}

impl Handle for pace_conn_t {
    const NAME: &'static str = "conn";

    fn is_forked(&self) -> bool {
        // SAFETY: the pool's, which is there while its hook runs.
        unsafe { &*self.shared }.is_forked()
    }
}

/// The connection of an argument.
#[inline]
fn inside(conn: Option<&pace_conn_t>) -> Result<&Conn> {
    usable(conn).map(pace_conn_t::conn)
}

/// Bytes of C's. Its drop gives them back.
pub(super) struct Lent {
    bytes: *const [u8],
    user_data: *mut c_void,
    drop: pace_drop_fn,
}

// SAFETY: the header says that `drop` runs on any thread, and nobody changes the bytes before.
unsafe impl Send for Lent {}

impl Foreign for Lent {
    fn bytes(&self) -> &[u8] {
        // SAFETY: as the header demands, until `drop` has run.
        unsafe { &*self.bytes }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: as the header demands; nobody looks at the bytes any more.
            unsafe { drop(self.user_data) }
        }
    }
}

/// # Safety
///
/// The bytes are NULL or can be read until `drop` has run, and `wrote` is NULL or can be written to.
pub(super) unsafe fn write_owned(
    bytes: *const c_void,
    size: usize,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    wrote: Option<&mut MaybeUninit<u32>>,
    write: impl FnOnce(&mut Option<Lent>) -> crate::error::Result<WriteStatus>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
    let to = optional_out(wrote);
    let mut lent = Some(Lent { bytes, user_data, drop });
    let outcome = write(&mut lent);
    if outcome.is_err() {
        // They are the caller's again.
        core::mem::forget(lent.take());
    }
    to.set(number_of(outcome?));
    Ok(())
}

fn tell(conn: Option<&pace_conn_t>, what: impl FnOnce(&Conn)) -> pace_status_t {
    call(|| {
        what(inside(conn)?);
        Ok(())
    })
}

fn ask<T>(
    conn: Option<&pace_conn_t>,
    to: Option<&mut MaybeUninit<T>>,
    name: &str,
    what: impl FnOnce(&Conn) -> T,
) -> pace_status_t {
    call(|| {
        let conn = inside(conn)?;
        let to = out(to, name)?;
        to.set(what(conn));
        Ok(())
    })
}

impl Handle for pace_admission_t {
    const NAME: &'static str = "admission";

    fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }
}

/// Names of Unix sockets have 108 bytes at most, each of which may be shown as four.
const _: () = assert!(PACE_ADDRESS_SIZE > "unix:@".len() + 4 * 108);

/// 0 names none, so names are one more than the core's.
pub(super) fn name(id: ConnId) -> pace_conn_id_t {
    pace_conn_id_t { id: id.to_bits().wrapping_add(1) }
}

pub(super) fn number_of(wrote: WriteStatus) -> u32 {
    match wrote {
        WriteStatus::Sent => PACE_WRITE_STATUS_SENT,
        WriteStatus::Queued => PACE_WRITE_STATUS_QUEUED,
        WriteStatus::AboveHighMark => PACE_WRITE_STATUS_ABOVE_HIGH_MARK,
        WriteStatus::Unwanted => PACE_WRITE_STATUS_UNWANTED,
    }
}

/// # Safety
///
/// `text` is NULL, or `size` bytes can be written there.
pub(super) unsafe fn put_address(address: &Address, text: *mut c_char, size: usize) -> Result {
    boundary::check(text, "text")?;
    let address = address.to_string();
    if size <= address.len() {
        let needed = format!("at least {} for {address}", address.len() + 1);
        return Err(Failure::invalid("size", size, &needed));
    }
    // SAFETY: there is room for the text and its end.
    unsafe {
        text.cast::<u8>().copy_from_nonoverlapping(address.as_ptr(), address.len());
        text.add(address.len()).write(0);
    }
    Ok(())
}

/// So many pieces need no allocation.
const FEW: usize = 16;

/// Calls `user` with pieces as the kernel takes them.
///
/// # Safety
///
/// If `count` is not zero, `pieces` is NULL or points to as many, each with its bytes.
pub(super) unsafe fn with_pieces<R>(
    pieces: *const pace_piece_t,
    count: usize,
    user: impl FnOnce(&[IoSlice<'_>]) -> crate::Result<R>,
) -> Result<R> {
    // SAFETY: as the caller promises. This refuses NULL, and more than a slice may have.
    let bytes =
        unsafe { boundary::bytes(pieces.cast(), count, size_of::<pace_piece_t>(), "pieces") }?;
    if bytes.is_empty() {
        return Ok(user(&[])?);
    }
    boundary::check(pieces, "pieces")?;
    // SAFETY: aligned, and as many as bytes were found good for.
    let pieces = unsafe { core::slice::from_raw_parts(pieces, count) };
    let mut few = [IoSlice::new(&[]); FEW];
    let mut many = Vec::new();
    let slices = match few.get_mut(..count) {
        Some(few) => few,
        None => {
            many.resize(count, IoSlice::new(&[]));
            &mut many[..]
        }
    };
    for (slice, piece) in slices.iter_mut().zip(pieces) {
        // SAFETY: as the caller promises.
        *slice = IoSlice::new(unsafe { boundary::bytes(piece.bytes, piece.size, 1, "bytes") }?);
    }
    Ok(user(slices)?)
}

// --- what calls C -----------------------------------------------------------------------------------

/// Lends a connection to a call that has no user_data of its hooks.
pub(super) fn lend<R>(
    conn: &Conn,
    shared: &Arc<Shared>,
    call: impl FnOnce(*mut pace_conn_t) -> R,
) -> R {
    let inside = pace_conn_t {
        conn,
        shared: Arc::as_ptr(shared),
        data: Cell::new(ptr::null_mut()),
        failed: Cell::new(false),
    };
    call((&raw const inside).cast_mut())
}

/// The hooks of a server, or of one outgoing connection.
pub(super) struct Hooks {
    table: pace_conn_hooks_t,
    data: DataFn,
    owner: Owner,
    shared: Arc<Shared>,
}

type DataFn = unsafe extern "C" fn(*mut c_void, *mut pace_conn_t, *const c_void, usize) -> usize;

// SAFETY: the header demands that hooks and user_data may be used by any thread.
unsafe impl Send for Hooks {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Hooks {}

impl Hooks {
    /// # Safety
    ///
    /// `hooks` is NULL or a struct as its first field says.
    pub(super) unsafe fn read(
        hooks: *const pace_conn_hooks_t,
        shared: &Arc<Shared>,
    ) -> Result<(Registration, Arc<Self>)> {
        // SAFETY: as the caller promises.
        let table = unsafe { sized::read(hooks, "hooks") }?;
        let data = callback(table.data, "hooks.data")?;
        let (registration, owner) = pair(table.user_data, table.drop);
        let shared = Arc::clone(shared);
        Ok((registration, Arc::new(Self { table, data, owner, shared })))
    }

    /// The user_data of the server's own hooks, for a call that belongs to no connection.
    pub(super) fn data(&self) -> *mut c_void {
        self.owner.data()
    }
}

/// One connection's: what the server calls, and where its hooks have left their user_data.
pub(super) struct Handler {
    /// None: the server has been freed, and the connection came too late.
    hooks: Option<Arc<Hooks>>,
    data: *mut c_void,
}

// SAFETY: the header demands that user_data may be used by any thread.
unsafe impl Send for Handler {}

impl Handler {
    pub(super) fn new(hooks: Option<Arc<Hooks>>) -> Self {
        let data = hooks.as_ref().map_or(ptr::null_mut(), |hooks| hooks.owner.data());
        Self { hooks, data }
    }

    /// Calls a hook. None: there is nobody to call.
    #[inline]
    fn call<R>(
        &mut self,
        conn: &Conn,
        hook: impl FnOnce(&Hooks, *mut c_void, *mut pace_conn_t) -> R,
    ) -> Option<R> {
        let hooks = self.hooks.as_deref()?;
        hooks.owner.enter()?;
        let shared = Arc::as_ptr(&hooks.shared);
        let inside =
            pace_conn_t { conn, shared, data: Cell::new(self.data), failed: Cell::new(false) };
        let answer = hook(hooks, self.data, (&raw const inside).cast_mut());
        self.data = inside.data.get();
        if inside.failed.get() {
            fail("a hook has failed");
        }
        Some(answer)
    }

    /// Calls a hook that answers nothing. None: there is none.
    fn tell(
        &mut self,
        conn: &Conn,
        hook: impl FnOnce(&pace_conn_hooks_t) -> pace_conn_fn,
    ) -> Option<()> {
        self.call(conn, |hooks, data, inside| {
            // SAFETY: as the header demands, a hook takes what came with it.
            hook(&hooks.table).map(|hook| unsafe { hook(data, inside) })
        })?
    }
}

/// Caught where connections run, which closes this one and counts it; no hook prints anything.
#[cold]
fn fail(why: &'static str) -> ! {
    resume_unwind(Box::new(why))
}

impl ConnHandler for Handler {
    fn open(&mut self, conn: &Conn) -> Accept {
        let accept = self.call(conn, |hooks, data, inside| match hooks.table.open {
            // SAFETY: as the header demands, a hook takes what came with it.
            Some(hook) => unsafe { hook(data, inside) },
            None => PACE_ACCEPT_YES,
        });
        match accept.unwrap_or(PACE_ACCEPT_REFUSE) {
            PACE_ACCEPT_YES => Accept::Yes,
            PACE_ACCEPT_REFUSE => Accept::Refuse(Vec::new()),
            _ => fail("the answer of a hook is no PACE_ACCEPT_ number"),
        }
    }

    #[inline]
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let consumed = self.call(conn, |hooks, data, inside| {
            // SAFETY: as above.
            unsafe { (hooks.data)(data, inside, bytes.as_ptr().cast(), bytes.len()) }
        });
        match consumed.unwrap_or(0) {
            more if more > bytes.len() => fail("a hook has consumed more than there was"),
            consumed => consumed,
        }
    }

    fn finished(&mut self, conn: &Conn) {
        let _ = self.tell(conn, |hooks| hooks.finished);
    }

    fn writable(&mut self, conn: &Conn) {
        let _ = self.tell(conn, |hooks| hooks.writable);
    }

    fn written(&mut self, conn: &Conn, token: u64) {
        self.call(conn, |hooks, data, inside| {
            // SAFETY: as above.
            hooks.table.written.map(|hook| unsafe { hook(data, inside, token) })
        });
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        let action = self.call(conn, |hooks, data, inside| match hooks.table.timeout {
            // SAFETY: as above.
            Some(hook) => unsafe { hook(data, inside, number_of_timeout(kind)) },
            None => PACE_TIMEOUT_ACTION_CLOSE,
        });
        match action.unwrap_or(PACE_TIMEOUT_ACTION_CLOSE) {
            PACE_TIMEOUT_ACTION_CLOSE => TimeoutAction::Close,
            PACE_TIMEOUT_ACTION_KEEP => TimeoutAction::Keep,
            _ => fail("the answer of a hook is no PACE_TIMEOUT_ACTION_ number"),
        }
    }

    fn notified(&mut self, conn: &Conn) {
        let _ = self.tell(conn, |hooks| hooks.notified);
    }

    fn draining(&mut self, conn: &Conn) {
        let _ = self.tell(conn, |hooks| hooks.draining);
    }

    fn error(&mut self, conn: &Conn, kind: ErrorKind) {
        self.call(conn, |hooks, data, inside| {
            // SAFETY: as above.
            hooks.table.error.map(|hook| unsafe { hook(data, inside, errno(kind)) })
        });
    }

    fn close(&mut self, conn: &Conn, reason: Reason) {
        let (number, detail) = number_of_reason(reason);
        self.call(conn, |hooks, data, inside| {
            // SAFETY: as above.
            hooks.table.close.map(|hook| unsafe { hook(data, inside, number, detail) })
        });
    }
}

pub(super) fn number_of_timeout(kind: Timeout) -> u32 {
    match kind {
        Timeout::Connect => PACE_TIMEOUT_CONNECT,
        Timeout::Idle => PACE_TIMEOUT_IDLE,
        Timeout::Read => PACE_TIMEOUT_READ,
        Timeout::Stall => PACE_TIMEOUT_STALL,
        Timeout::Deadline => PACE_TIMEOUT_DEADLINE,
    }
}

/// A reason and its detail.
pub(super) fn number_of_reason(reason: Reason) -> (u32, i32) {
    match reason {
        Reason::Peer => (PACE_REASON_PEER, 0),
        Reason::Local => (PACE_REASON_LOCAL, 0),
        Reason::Aborted => (PACE_REASON_ABORTED, 0),
        Reason::Refused => (PACE_REASON_REFUSED, 0),
        Reason::TimedOut(kind) => (PACE_REASON_TIMED_OUT, number_of_timeout(kind) as i32),
        Reason::Failed(kind) => (PACE_REASON_FAILED, errno(kind)),
        Reason::Unconsumed => (PACE_REASON_UNCONSUMED, 0),
        Reason::Panicked => (PACE_REASON_PANICKED, 0),
        Reason::Drained => (PACE_REASON_DRAINED, 0),
        Reason::CutOff => (PACE_REASON_CUT_OFF, 0),
        Reason::PoolEnded => (PACE_REASON_POOL_ENDED, 0),
    }
}
