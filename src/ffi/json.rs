//! JSON for programs that have no library for it: values out of a body, and texts for one.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, Text, call, out};
use super::status::pace_status_t;
use super::work_stats::give;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use serde_json::Value;

/// There is nothing at this place.
pub const PACE_JSON_NONE: u32 = 0;
/// There is the value null at this place.
pub const PACE_JSON_NULL: u32 = 1;
/// There is the value true or false at this place.
pub const PACE_JSON_BOOL: u32 = 2;
/// There is a number at this place.
pub const PACE_JSON_NUMBER: u32 = 3;
/// There is a text at this place.
pub const PACE_JSON_TEXT: u32 = 4;
/// There is an array at this place.
pub const PACE_JSON_ARRAY: u32 = 5;
/// There is an object at this place.
pub const PACE_JSON_OBJECT: u32 = 6;

/// What stands at this place of a JSON text, as the body of a request: PACE_JSON_. The place is a JSON pointer (RFC 6901):
/// "" for the whole, "/item" for a member, "/lines/0/price" for one in an array. If several members have the same name,
/// the last one counts. Each call reads the JSON from its beginning, so this is for small ones.
///
/// PACE_EINVAL if `json` is not JSON: pace_last_error() says what is wrong, and where.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_json_kind(
    json: *const c_void,
    size: usize,
    pointer: Text,
    kind: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let kind = out(kind, "kind")?;
        // SAFETY: as the header demands.
        let json = unsafe { read(json, size) }?;
        kind.set(match json.pointer(pointer.get("pointer")?) {
            None => PACE_JSON_NONE,
            Some(Value::Null) => PACE_JSON_NULL,
            Some(Value::Bool(_)) => PACE_JSON_BOOL,
            Some(Value::Number(_)) => PACE_JSON_NUMBER,
            Some(Value::String(_)) => PACE_JSON_TEXT,
            Some(Value::Array(_)) => PACE_JSON_ARRAY,
            Some(Value::Object(_)) => PACE_JSON_OBJECT,
        });
        Ok(())
    })
}

/// The text at this place of a JSON text, as pace_json_kind() has it: decoded, in UTF-8, with a NUL behind it. *needed
/// says how many bytes it takes, with the NUL, also for PACE_EFULL: `room` is less; no text takes more than `size` + 1. There
/// may be NUL in it, too. `text` may be NULL if `room` is 0.
///
/// PACE_EINVAL if `json` is not JSON, or there is no text at this place; PACE_EFULL.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_json_text(
    json: *const c_void,
    size: usize,
    pointer: Text,
    text: *mut c_char,
    room: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let needed = out(needed, "needed")?;
        // SAFETY: as the header demands.
        let json = unsafe { read(json, size) }?;
        let pointer = pointer.get("pointer")?;
        let found = json.pointer(pointer);
        let Some(Value::String(found)) = found else {
            return Err(other(pointer, found, "a text"));
        };
        // SAFETY: as the header demands.
        unsafe { give(found, text, room, needed) }
    })
}

/// The number at this place of a JSON text, as pace_json_kind() has it. Whole numbers up to 2^53 are exact.
///
/// PACE_EINVAL if `json` is not JSON, or there is no number at this place.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_json_number(
    json: *const c_void,
    size: usize,
    pointer: Text,
    number: Option<&mut MaybeUninit<f64>>,
) -> pace_status_t {
    call(|| {
        let number = out(number, "number")?;
        // SAFETY: as the header demands.
        let json = unsafe { read(json, size) }?;
        let pointer = pointer.get("pointer")?;
        let found = json.pointer(pointer);
        let none = || other(pointer, found, "a number");
        number.set(found.and_then(Value::as_f64).ok_or_else(none)?);
        Ok(())
    })
}

/// A text of `size` bytes as JSON: with quotes around it, and what JSON does not allow in them escaped, and with a NUL
/// behind it. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `room` is less; no text takes more
/// than 6 * `size` + 3. `json` may be NULL if `room` is 0.
///
/// PACE_EINVAL if the text is not UTF-8; PACE_EFULL.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_json_quote(
    text: *const c_char,
    size: usize,
    json: *mut c_char,
    room: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let needed = out(needed, "needed")?;
        // SAFETY: as the header demands.
        let text = unsafe { boundary::bytes(text.cast(), size, 1, "text") }?;
        let text =
            str::from_utf8(text).map_err(|wrong| Failure::invalid("text", wrong, "UTF-8"))?;
        // SAFETY: as the header demands.
        unsafe { give(&Value::from(text).to_string(), json, room, needed) }
    })
}

/// # Safety
///
/// `json` points to as many bytes, or is NULL, which is refused.
unsafe fn read(json: *const c_void, size: usize) -> Result<Value> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(json, size, 1, "json") }?;
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::invalid("json", format_args!("{} bytes ({error})", bytes.len()), "JSON")
    })
}

/// The error for what stands there in place of what is asked for. It may be long, and a secret.
fn other(pointer: &str, found: Option<&Value>, allowed: &str) -> Failure {
    let found = match found {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    let name = if pointer.is_empty() { "json" } else { pointer };
    Failure::invalid(name, found, allowed)
}
