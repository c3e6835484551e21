//! Where a message ends.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, Result, call, out};
use super::status::*;
use crate::net::{FixedLength, Frame, LengthPrefixed, next_delimited};
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// The first message of some bytes. It points into them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_frame_t {
    /// Without its delimiter or its length.
    pub body: *const c_void,
    /// How many bytes the body has.
    pub size: usize,
    /// How many bytes the message takes up, with its delimiter or its length: what to consume.
    pub length: usize,
}

/// Finds the first message that ends with a delimiter of one byte or more; bodies have up to `max`
/// bytes. *searched, 0 in the beginning, is how many bytes hold no delimiter, so that what was searched
/// in vain is not searched again: `bytes` must begin with what gave PACE_EEMPTY before.
///
/// PACE_EEMPTY: a part of a message, or nothing; more must come. PACE_EFULL: the message is longer than
/// `max`. PACE_EINVAL for an empty delimiter.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_frame_delimited(
    bytes: *const c_void,
    size: usize,
    delimiter: *const c_void,
    delimiter_size: usize,
    max: usize,
    searched: *mut usize,
    frame: Option<&mut MaybeUninit<pace_frame_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        // SAFETY: as the header demands.
        let delimiter = unsafe { boundary::bytes(delimiter, delimiter_size, 1, "delimiter") }?;
        if delimiter.is_empty() {
            return Err(Failure::invalid("delimiter_size", 0, "1 or more"));
        }
        boundary::check(searched, "searched")?;
        let to = out(frame, "frame")?;
        // SAFETY: not NULL, aligned, and as the header demands.
        put(next_delimited(bytes, delimiter, max, unsafe { &mut *searched }), to)
    })
}

/// Finds the first message with its length in front: an unsigned number of `width` bytes, 1 to 8, in
/// network order, that does not count itself. Bodies have up to `max` bytes.
///
/// PACE_EEMPTY, PACE_EFULL as for pace_frame_delimited(); PACE_EINVAL for another width.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_frame_prefixed(
    bytes: *const c_void,
    size: usize,
    width: usize,
    max: usize,
    frame: Option<&mut MaybeUninit<pace_frame_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = out(frame, "frame")?;
        put(LengthPrefixed::new(width, max)?.next(bytes), to)
    })
}

/// Finds the first of messages that are all of `length` bytes, 1 or more.
///
/// PACE_EEMPTY as for pace_frame_delimited(); PACE_EINVAL for a length of 0.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_frame_fixed(
    bytes: *const c_void,
    size: usize,
    length: usize,
    frame: Option<&mut MaybeUninit<pace_frame_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = out(frame, "frame")?;
        put(FixedLength::new(length)?.next(bytes), to)
    })
}

const PARTIAL: Failure = Failure::plain(PACE_EEMPTY, c"the message is not whole yet");
const TOO_LONG: Failure = Failure::plain(PACE_EFULL, c"the message is longer than the maximum");

fn put(found: Frame<'_>, to: Out<pace_frame_t>) -> Result {
    match found {
        Frame::Message { body, length } => {
            to.set(pace_frame_t { body: body.as_ptr().cast(), size: body.len(), length });
            Ok(())
        }
        Frame::Partial => Err(PARTIAL),
        Frame::TooLong => Err(TOO_LONG),
    }
}
