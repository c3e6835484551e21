//! What all headers share: limits, and what is lent or handed over in pieces.
#![allow(non_camel_case_types, reason = "the names of the C interface")]

use core::ffi::{c_char, c_void};

/// In a configuration: let the library choose.
pub const PACE_DEFAULT: u32 = u32::MAX;
/// As a time: no limit.
pub const PACE_FOREVER: u64 = u64::MAX;
/// As a count or a size: no limit.
pub const PACE_UNLIMITED: u64 = u64::MAX;
/// As a count of 32 bits: no limit.
pub const PACE_UNLIMITED32: u32 = u32::MAX;
/// In statistics: no thread, no CPU.
pub const PACE_NONE: u32 = u32::MAX;
/// As many bytes hold the text of every address, with its NUL.
pub const PACE_ADDRESS_SIZE: usize = 512;

/// Text that is lent, without a NUL behind it: `printf("%.*s", (int)text.size, text.text)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_text_t {
    /// NULL if there is none.
    pub text: *const c_char,
    /// The length of the text in bytes.
    pub size: usize,
}

/// A header, or a parameter of a request's path.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_field_t {
    /// As it was sent, or as the route's pattern has it.
    pub name: pace_text_t,
    /// Bytes; UTF-8 as a rule.
    pub value: pace_text_t,
}

/// One of several pieces that are written as one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_piece_t {
    /// May be NULL if `size` is 0.
    pub bytes: *const c_void,
    /// The number of bytes at `bytes`.
    pub size: usize,
}
