//! Connections, by their names: for other threads, other connections, and later.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, optional_out, out, usable};
use super::callback::{pace_conn_id_t, pace_drop_fn};
use super::conn::{CLOSED, number_of, put_address, with_pieces, write_owned};
use super::server::pace_server_t;
use super::status::*;
use super::values::pace_piece_t;
use crate::net::{ConnId, ConnRef};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;

/// Writes, in order, without waiting: what the kernel takes is sent at once, the rest is queued.
/// *wrote is a PACE_WRITE_STATUS_ number; `wrote` may be NULL.
///
/// PACE_ESTALE if the connection has ended, is to be closed, or its peer is gone; PACE_EFULL if the
/// queue would exceed its maximum: none of it was taken. An answer whose request was not admitted, by
/// pace_conn_admit(), comes too late if meanwhile the connection's idle time is over, its peer has finished, or the
/// server drains.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_write(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    bytes: *const c_void,
    size: usize,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = find(server, conn)?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = optional_out(wrote);
        to.set(number_of(conn.write(bytes)?));
        Ok(())
    })
}

/// Writes all `count` pieces as one. Otherwise as pace_server_conn_write().
///
/// PACE_ESTALE, PACE_EFULL as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_write_vectored(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    pieces: *const pace_piece_t,
    count: usize,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = find(server, conn)?;
        let to = optional_out(wrote);
        // SAFETY: as the header demands.
        let wrote = unsafe { with_pieces(pieces, count, |pieces| conn.write_vectored(pieces)) }?;
        to.set(number_of(wrote));
        Ok(())
    })
}

/// As pace_conn_write_owned().
///
/// PACE_ESTALE, PACE_EFULL as for pace_server_conn_write().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_write_owned(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    bytes: *const c_void,
    size: usize,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = find(server, conn)?;
        // SAFETY: as the header demands.
        unsafe { write_owned(bytes, size, user_data, drop, wrote, |lent| conn.write_foreign(lent)) }
    })
}

/// As pace_conn_write_tracked(); the hook runs where the connection's hooks run.
///
/// PACE_ESTALE, PACE_EFULL as for pace_server_conn_write().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_write_tracked(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    bytes: *const c_void,
    size: usize,
    token: u64,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let conn = find(server, conn)?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = optional_out(wrote);
        to.set(number_of(conn.write_tracked(bytes, token)?));
        Ok(())
    })
}

/// As pace_conn_shutdown_write().
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_shutdown_write(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.shutdown_write()?))
}

/// As pace_conn_close().
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_close(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.close()?))
}

/// As pace_conn_abort(). The hook `close` follows on a thread of the pool.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_abort(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.abort()?))
}

/// As pace_conn_pause(), but a run that is on may still give `data` bytes once, and of the calls of this and of
/// pace_server_conn_resume(), by all threads, the last one counts: whoever hands something over to a thread
/// that resumes pauses before.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_pause(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.pause()?))
}

/// Ends a pause, also one that a hook, which runs now, is about to make. What was not consumed is shown again,
/// and nothing is read before that.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_resume(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.resume()?))
}

/// Has the hook `notified` of a connection called, soon. Several calls may become one; none is lost,
/// unless the connection ends before.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_notify(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| Ok(find(server, conn)?.notify()?))
}

/// Whether a connection has not ended. A name of which nothing is known gives false.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_is_open(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    is_open: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let server = usable(server)?;
        let to = out(is_open, "is_open")?;
        to.set(lookup(server, conn).is_ok_and(|conn| conn.is_open()));
        Ok(())
    })
}

/// How many bytes wait to be sent.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_conn_queued(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    queued: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let conn = find(server, conn)?;
        let to = out(queued, "queued")?;
        to.set(conn.queued());
        Ok(())
    })
}

/// As pace_conn_peer().
///
/// PACE_EINVAL as there, PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_peer(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { put_address(find(server, conn)?.peer(), text, size) })
}

/// As pace_conn_local().
///
/// PACE_EINVAL as there, PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_conn_local(
    server: Option<&pace_server_t>,
    conn: pace_conn_id_t,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    call(|| {
        let local = find(server, conn)?.local().ok_or(CLOSED)?;
        // SAFETY: as the header demands.
        unsafe { put_address(&local, text, size) }
    })
}

const STALE: Failure = Failure::plain(PACE_ESTALE, c"this connection has ended, or never was one");

#[inline]
fn find(server: Option<&pace_server_t>, conn: pace_conn_id_t) -> Result<ConnRef> {
    lookup(usable(server)?, conn)
}

#[inline]
pub(super) fn lookup(server: &pace_server_t, conn: pace_conn_id_t) -> Result<ConnRef> {
    let bits = conn.id.checked_sub(1).ok_or(STALE)?;
    server.server.conn(ConnId::from_bits(bits)).map_err(|_| STALE)
}
