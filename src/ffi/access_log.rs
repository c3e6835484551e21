//! Access logs of HTTP servers.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, Result, call};
use super::http::{Target, add_nowhere, pace_http_t};
use super::log::{log_of, pace_log_t};
use super::status::*;
use crate::http::AccessLog;
use core::ptr;

/// Apache's combined format: 127.0.0.1 - - [28/Nov/2026:02:44:19 +0000] "GET /a HTTP/1.1" 200 12 "referer" "agent". The
/// time is that of the request's beginning, in UTC; the size is that of the body, - for none; the status is - if no whole
/// answer has left. Quotes and backslashes are escaped by a backslash, what is not printable ASCII as \xhh. The default.
pub const PACE_ACCESS_COMBINED: u32 = 0;
/// JSON: fields of the record, peer, method, target, version, status, bytes (of the answer's body), duration_ns, referer
/// and user_agent, as far as they are known.
pub const PACE_ACCESS_JSON: u32 = 1;

/// Tells a log of each request at its end, as pace_http_on_end() does: a record "request.ended" of the component http, at
/// level info. With PACE_ACCESS_COMBINED its message is the line, with PACE_ACCESS_JSON it has fields. What a client has sent
/// is escaped, so that it can forge no line. NULL: the pool's log, and without one pace_http_start() fails. The log may be freed
/// before the server. The last access log that was set is the one.
///
/// PACE_EINVAL also when the server has been started; PACE_EFORKED for a log of the parent process.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_access_log(
    http: Option<&pace_http_t>,
    format: u32,
    log: *const pace_log_t,
) -> pace_status_t {
    call(|| {
        let make = maker(format)?;
        let log = match log.is_null() {
            true => None,
            // SAFETY: not NULL, and as the header demands.
            false => Some(unsafe { log_of(log) }?.clone()),
        };
        // SAFETY: there is no code of the program's.
        unsafe { add_nowhere(http, Target::AccessLog(make, log), ptr::null_mut(), None) }
    })
}

fn maker(format: u32) -> Result<fn() -> AccessLog> {
    match format {
        PACE_ACCESS_COMBINED => Ok(AccessLog::combined),
        PACE_ACCESS_JSON => Ok(AccessLog::json),
        other => Err(Failure::invalid("format", other, "0 or 1 (PACE_ACCESS_)")),
    }
}
