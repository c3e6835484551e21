//! What an entry of a completion queue tells of a connection, and which of it is wanted.
#![allow(non_camel_case_types, reason = "the names of the C interface")]

use super::boundary::{Failure, Result};
use crate::net::Wanted;

/// pace_cq_conn_t.event: the connection is there. It may be refused (PACE_CQ_REFUSE). Comes first, and only if
/// PACE_WANTED_OPENED is set.
pub const PACE_CONN_EVENT_OPENED: u32 = 0;
/// pace_cq_conn_t.event: bytes have arrived, which are the entry's. What its completion does not consume comes again,
/// followed by more. Comes whatever is wanted.
pub const PACE_CONN_EVENT_DATA: u32 = 1;
/// pace_cq_conn_t.event: the peer sends no more. Afterwards the connection is closed by itself, when its admitted
/// requests have ended and everything is sent, unless allow_half_open of its pace_listener_options_t is set. Comes if
/// PACE_WANTED_FINISHED is set.
pub const PACE_CONN_EVENT_FINISHED: u32 = 2;
/// pace_cq_conn_t.event: the output was above its high mark, and has fallen to the low mark. Comes if
/// PACE_WANTED_WRITABLE is set.
pub const PACE_CONN_EVENT_WRITABLE: u32 = 3;
/// pace_cq_conn_t.event: all bytes up to the end of a tracked write have been given to the kernel; `number` is its
/// token. Comes if PACE_WANTED_WRITTEN is set.
pub const PACE_CONN_EVENT_WRITTEN: u32 = 4;
/// pace_cq_conn_t.event: a time-out has passed; `detail` is its PACE_TIMEOUT_ number. Completed without PACE_CQ_KEEP it
/// closes the connection at once, as it does unless PACE_WANTED_TIMED_OUT is set.
pub const PACE_CONN_EVENT_TIMED_OUT: u32 = 5;
/// pace_cq_conn_t.event: the server drains. The connection closes when its admitted requests have ended and everything
/// is sent. Comes if PACE_WANTED_DRAINING is set.
pub const PACE_CONN_EVENT_DRAINING: u32 = 6;
/// pace_cq_conn_t.event: the connection has ended; `detail` is its PACE_REASON_ number, and `number` may say more. Comes
/// last, once, if PACE_WANTED_CLOSED is set.
pub const PACE_CONN_EVENT_CLOSED: u32 = 7;

/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_OPENED comes for each connection. Without it none is refused.
pub const PACE_WANTED_OPENED: u32 = 1;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_FINISHED comes when a peer sends no more.
pub const PACE_WANTED_FINISHED: u32 = 2;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_WRITABLE comes when output has fallen to the low mark.
pub const PACE_WANTED_WRITABLE: u32 = 4;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_WRITTEN comes for each tracked write.
pub const PACE_WANTED_WRITTEN: u32 = 8;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_TIMED_OUT comes before a connection is closed for a time-out.
pub const PACE_WANTED_TIMED_OUT: u32 = 16;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_DRAINING comes to each connection when the server drains.
pub const PACE_WANTED_DRAINING: u32 = 32;
/// Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_CLOSED comes when a connection has ended.
pub const PACE_WANTED_CLOSED: u32 = 64;
/// All bits of `wanted` in pace_cq_server(): every PACE_CONN_EVENT_ comes.
pub const PACE_WANTED_ALL: u32 = 127;

const _: () = assert!(
    PACE_WANTED_OPENED == Wanted::OPENED.bits()
        && PACE_WANTED_FINISHED == Wanted::FINISHED.bits()
        && PACE_WANTED_WRITABLE == Wanted::WRITABLE.bits()
        && PACE_WANTED_WRITTEN == Wanted::WRITTEN.bits()
        && PACE_WANTED_TIMED_OUT == Wanted::TIMED_OUT.bits()
        && PACE_WANTED_DRAINING == Wanted::DRAINING.bits()
        && PACE_WANTED_CLOSED == Wanted::CLOSED.bits()
        && PACE_WANTED_ALL == Wanted::ALL.bits()
);

pub(super) fn kinds(wanted: u32) -> Result<Wanted> {
    let wrong = || Failure::invalid("wanted", wanted, "0 to 127 (PACE_WANTED_)");
    Wanted::from_bits(wanted).ok_or_else(wrong)
}
