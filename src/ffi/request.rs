//! What a handler of HTTP sees of a request.
//!
//! A `pace_request_t *` is the address of a [`Request`], good while its handler runs.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Result, Text, call, out};
use super::callback::pace_conn_id_t;
use super::conn::{name as name_of, put_address};
use super::status::*;
use super::values::{pace_field_t, pace_piece_t, pace_text_t};
use crate::http::{Request, decode, split};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;

/// A request, for as long as its handler runs: good for that call only, and on that thread.
pub struct pace_request_t {
    _opaque: (),
}

/// As it was sent: GET. Methods distinguish upper and lower case.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_method(
    request: *const pace_request_t,
    method: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, method, "method", |request| Some(request.method())) }
}

/// As it was sent: /hello/you?loud=1, or http://host/hello/you.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_target(
    request: *const pace_request_t,
    target: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, target, "target", |request| Some(request.target())) }
}

/// The target's path, which routes are matched with, as it was sent: percent-encoded, and with
/// whatever dots it has.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_path(
    request: *const pace_request_t,
    path: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, path, "path", |request| Some(request.path())) }
}

/// What follows the first question mark of the target. query->text is NULL if there is none.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_query(
    request: *const pace_request_t,
    query: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, query, "query", |request| request.query()) }
}

/// 0 or 1, of HTTP/1. A later minor version is served as 1 (RFC 9110, 2.5), and told as that.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_version(
    request: *const pace_request_t,
    version: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { ask(request, version, "version", |request| request.version().into()) }
}

/// The value of the first header of this name, upper or lower case. value->text is NULL if there is
/// none, or it is not UTF-8.
///
/// PACE_EINVAL for a name that is not UTF-8.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_header(
    request: *const pace_request_t,
    name: Text,
    value: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { find(request, name, value, |request, name| request.header(name)) }
}

/// Copies up to `capacity` headers, in order, with the white space around their values removed. *count
/// is how many there are, which may be more. `headers` may be NULL if `capacity` is 0.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_headers(
    request: *const pace_request_t,
    headers: *mut pace_field_t,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let request = unsafe { open(request) }?;
        let fields = request.headers().map(|(name, value)| (name.as_bytes(), value));
        // SAFETY: as the header demands.
        unsafe { put_fields(fields, headers, capacity, "headers", count) }
    })
}

/// The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
/// was encoded stays in its part, since routes are matched with the path as it was sent, which is
/// pace_request_path(). A request with a part that cannot be decoded (to UTF-8 without NUL) has no
/// handler: it is answered with 400. value->text is NULL if there is none.
///
/// PACE_EINVAL for a name that is not UTF-8.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_param(
    request: *const pace_request_t,
    name: Text,
    value: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { find(request, name, value, |request, name| request.param(name)) }
}

/// All such parts, in order. Otherwise as pace_request_headers().
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_params(
    request: *const pace_request_t,
    params: *mut pace_field_t,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let request = unsafe { open(request) }?;
        let fields = request.params().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        // SAFETY: as the header demands.
        unsafe { put_fields(fields, params, capacity, "params", count) }
    })
}

/// The pattern of the route that it came by, as pace_http_route() was told: "/hello/{name}". pattern->text is NULL if
/// no route has taken it.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_pattern(
    request: *const pace_request_t,
    pattern: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, pattern, "pattern", |request| request.pattern()) }
}

/// The names and values of a query (pace_request_query()), or of a form's body, decoded as
/// application/x-www-form-urlencoded: "+" is a space, and what is percent-encoded is decoded. A pair without "="
/// has an empty value. Values are bytes; UTF-8 as a rule, and there may be NUL in them.
///
/// `room` has `size` bytes, as the query has: the decoded texts lie there. Copies up to `capacity` pairs, in order;
/// *count is how many there are, which may be more. `pairs` may be NULL if `capacity` is 0, and then `room`, too.
///
/// PACE_EINVAL if `query` is NULL and `size` is not 0.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_query_pairs(
    query: *const c_char,
    size: usize,
    room: *mut c_char,
    pairs: *mut pace_field_t,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let query = unsafe { boundary::bytes(query.cast(), size, 1, "query") }?;
        let count = out(count, "count")?;
        if capacity > 0 {
            boundary::check(pairs, "pairs")?;
            boundary::check(room, "room")?;
        }
        let (mut used, mut there) = (0, 0);
        let mut put = |text: &[u8]| {
            // SAFETY: what was decoded is no longer than it was, so all of them fit into `size` bytes.
            let place = unsafe { room.cast::<u8>().add(used) };
            let mut length = 0;
            for byte in decode(text) {
                // SAFETY: as above.
                unsafe { place.add(length).write(byte) };
                length += 1;
            }
            used += length;
            pace_text_t { text: place.cast(), size: length }
        };
        for (name, value) in split(query) {
            if there < capacity {
                let pair = pace_field_t { name: put(name), value: put(value) };
                // SAFETY: there is room for `capacity` of them.
                unsafe { pairs.add(there).write(pair) };
            }
            there += 1;
        }
        count.set(there);
        Ok(())
    })
}

/// The whole body. Empty where it is streamed.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_body(
    request: *const pace_request_t,
    body: Option<&mut MaybeUninit<pace_piece_t>>,
) -> pace_status_t {
    let piece = |request: &Request<'_>| {
        let body = request.body();
        pace_piece_t { bytes: body.as_ptr().cast::<c_void>(), size: body.len() }
    };
    // SAFETY: as the header demands.
    unsafe { ask(request, body, "body", piece) }
}

/// The protocol that it asks to upgrade to. protocol->text is NULL if it asks for none.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_upgrade(
    request: *const pace_request_t,
    protocol: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { tell(request, protocol, "protocol", |request| request.upgrade()) }
}

/// The name of its connection.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_conn(
    request: *const pace_request_t,
    conn: Option<&mut MaybeUninit<pace_conn_id_t>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    unsafe { ask(request, conn, "conn", |request| name_of(request.id())) }
}

/// The other end, as pace_conn_peer().
///
/// PACE_EINVAL as there.
///
/// Threads: the handler's. In handlers: in this request's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_peer(
    request: *const pace_request_t,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { put_address(open(request)?.peer(), text, size) })
}

const NO_TEXT: pace_text_t = pace_text_t { text: ptr::null(), size: 0 };

/// What C gets of a request.
pub(super) fn as_argument(request: &Request<'_>) -> *const pace_request_t {
    ptr::from_ref(request).cast()
}

/// # Safety
///
/// It is NULL, or the one of a handler that is running on this thread.
pub(super) unsafe fn open<'a>(request: *const pace_request_t) -> Result<&'a Request<'a>> {
    // SAFETY: as the caller promises: it came from `as_argument`.
    unsafe { boundary::borrow(request.cast::<Request<'a>>(), "request") }
}

pub(super) fn text_of(bytes: &[u8]) -> pace_text_t {
    pace_text_t { text: bytes.as_ptr().cast(), size: bytes.len() }
}

/// # Safety
///
/// As [`open`], and `to` is NULL or can be written to.
unsafe fn ask<T>(
    request: *const pace_request_t,
    to: Option<&mut MaybeUninit<T>>,
    name: &str,
    what: impl FnOnce(&Request<'_>) -> T,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the caller promises.
        let request = unsafe { open(request) }?;
        let to = out(to, name)?;
        to.set(what(request));
        Ok(())
    })
}

/// # Safety
///
/// As [`ask`].
unsafe fn tell(
    request: *const pace_request_t,
    to: Option<&mut MaybeUninit<pace_text_t>>,
    name: &str,
    what: impl for<'a> FnOnce(&Request<'a>) -> Option<&'a str>,
) -> pace_status_t {
    let text =
        |request: &Request<'_>| what(request).map_or(NO_TEXT, |text| text_of(text.as_bytes()));
    // SAFETY: as the caller promises.
    unsafe { ask(request, to, name, text) }
}

/// # Safety
///
/// As [`ask`], and `name` is NULL or ends with NUL.
unsafe fn find(
    request: *const pace_request_t,
    name: Text,
    value: Option<&mut MaybeUninit<pace_text_t>>,
    what: impl for<'a> FnOnce(&Request<'a>, &str) -> Option<&'a str>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the caller promises.
        let request = unsafe { open(request) }?;
        let name = name.get("name")?;
        let to = out(value, "value")?;
        to.set(what(request, name).map_or(NO_TEXT, |text| text_of(text.as_bytes())));
        Ok(())
    })
}

/// # Safety
///
/// If `capacity` is not zero, `to` is NULL or has room for as many; `count` is NULL or can be written
/// to.
unsafe fn put_fields<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    to: *mut pace_field_t,
    capacity: usize,
    name: &str,
    count: Option<&mut MaybeUninit<usize>>,
) -> Result {
    let count = out(count, "count")?;
    if capacity > 0 {
        boundary::check(to, name)?;
    }
    let mut there = 0;
    for (name, value) in fields {
        if there < capacity {
            let field = pace_field_t { name: text_of(name), value: text_of(value) };
            // SAFETY: there is room for `capacity` of them.
            unsafe { to.add(there).write(field) };
        }
        there += 1;
    }
    count.set(there);
    Ok(())
}
