//! Settings of HTTP servers.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Result, call, nanos};
use super::filter::Filters;
use super::listener::{all_listeners, pace_listener_options_t};
use super::server::{call_exhausted, pace_exhausted_fn};
use super::settings::{change, change_time, load};
use super::sized::{self, InOut};
use super::status::*;
use super::values::{PACE_UNLIMITED, PACE_UNLIMITED32};
use crate::admin::HttpSettings;
use crate::http::{Http, HttpBuilder};
use crate::{Error, Pool};
use core::ffi::{c_char, c_void};
use core::mem::offset_of;
use core::ptr;

/// Settings of an HTTP server. Call pace_http_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_http_options_t {
    /// The size of the struct in bytes, as pace_http_options_init() sets it.
    pub struct_size: u32,
    /// Headers of a request, 1 to 256; beyond: 431. Default 100.
    pub max_headers: u32,
    /// Where to listen: an array of structs of one size. Where idle_timeout_ns and read_timeout_ns have
    /// their defaults, they are keep_alive_timeout_ns and head_timeout_ns; a refusal of NULL is a 503.
    /// max_requests bounds requests in work on the listener's connections, beyond the max_requests of
    /// all; what other protocols admit on them after an upgrade counts, too. max_unconsumed is max_head +
    /// 128 KiB where it has its default, which is also the least that it may be. busy must be NULL, since
    /// a request beyond the maximum is answered with 503.
    pub listeners: *const pace_listener_options_t,
    /// The number of elements of `listeners`.
    pub listener_count: usize,
    /// Bytes of a request's head, 64 to 2^20; beyond: 431. Default 2^14.
    pub max_head: u64,
    /// Bytes of a request's target, 1 to 2^20; beyond: 414. Default 2^13.
    pub max_target: u64,
    /// Bytes of a body that is not streamed, up to 2^40; beyond: 413. Default 2^20.
    pub max_body: u64,
    /// A body must come at so many bytes per second, taken over each body_timeout_ns, while it is
    /// waited for; below: 408. Default 500, 0: any.
    pub body_rate: u64,
    /// Requests in work at once over all connections, at least 1; beyond: 503. Default PACE_UNLIMITED:
    /// no limit. A listener may have a lower one for its own.
    pub max_requests: u64,
    /// A head must be whole within this from its first byte, at least 1 ms; beyond: 408. Default 10 s.
    pub head_timeout_ns: u64,
    /// How often the rate of a body is looked at, at least 1 ms. Default 10 s.
    pub body_timeout_ns: u64,
    /// A connection with no request in work on which nothing came for so long, at least 1 ms, is
    /// closed. Default 60 s.
    pub keep_alive_timeout_ns: u64,
    /// Requests on one connection, at least 1; the last is answered with Connection: close. Default
    /// PACE_UNLIMITED32: no limit.
    pub keep_alive_requests: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Called when accepting pauses, with exhausted_data. NULL: nothing.
    pub on_exhausted: pace_exhausted_fn,
    /// What on_exhausted is given, good until the server was freed.
    pub exhausted_data: *mut c_void,
}

/// Fills options with the defaults: pace_http_options_init(&options, sizeof options).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_options_init(
    options: InOut<pace_http_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Changes options to what the section `http` of a file of settings says, as pace_pool_config_load() does for
/// `pool`. Its listeners are loaded by
/// pace_listener_options_load().
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_options_load(
    options: InOut<pace_http_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(options, path, environment, "options", |options, said| {
                said_of(options, &said.http)
            })
        }
    })
}

fn said_of(options: &mut pace_http_options_t, http: &HttpSettings) {
    change(&mut options.max_head, http.max_head);
    change(&mut options.max_target, http.max_target);
    change(&mut options.max_headers, http.max_headers);
    change(&mut options.max_body, http.max_body);
    change(&mut options.body_rate, http.body_rate);
    change_time(&mut options.head_timeout_ns, http.head_timeout);
    change_time(&mut options.body_timeout_ns, http.body_timeout);
    change_time(&mut options.keep_alive_timeout_ns, http.keep_alive_timeout);
    change(&mut options.keep_alive_requests, http.keep_alive_requests);
    change(&mut options.max_requests, http.max_requests);
}

const DEFAULTS: pace_http_options_t = pace_http_options_t {
    struct_size: 0,
    max_headers: 100,
    listeners: ptr::null(),
    listener_count: 0,
    max_head: 16 << 10,
    max_target: 8 << 10,
    max_body: 1 << 20,
    body_rate: 500,
    max_requests: PACE_UNLIMITED,
    head_timeout_ns: 10_000_000_000,
    body_timeout_ns: 10_000_000_000,
    keep_alive_timeout_ns: 60_000_000_000,
    keep_alive_requests: PACE_UNLIMITED32,
    reserved: 0,
    on_exhausted: None,
    exhausted_data: ptr::null_mut(),
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_http_options_t {
    const FIRST: usize = 112;
    const NAME: &'static str = "pace_http_options_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_http_options_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

/// # Safety
///
/// As the header demands of `options`.
pub(super) unsafe fn builder(
    pool: &Pool,
    options: &pace_http_options_t,
) -> Result<(HttpBuilder, Filters)> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut builder = Http::builder(pool)
        .max_head(size(options.max_head))
        .max_target(size(options.max_target))
        .max_headers(options.max_headers as usize)
        .max_body(size(options.max_body))
        .body_rate(options.body_rate)
        .max_requests(size(options.max_requests))
        .head_timeout(nanos(options.head_timeout_ns))
        .body_timeout(nanos(options.body_timeout_ns))
        .keep_alive_timeout(nanos(options.keep_alive_timeout_ns))
        .keep_alive_requests(options.keep_alive_requests);
    // SAFETY: as the caller promises.
    let (listeners, filters) =
        unsafe { all_listeners(options.listeners, options.listener_count, pool.shared()) }?;
    for listener in listeners {
        builder = builder.listen(listener);
    }
    if let Some(hook) = options.on_exhausted {
        let data = Lent(options.exhausted_data);
        let told = move |error: &Error| call_exhausted(hook, data.get(), error);
        builder = builder.server(|server| server.on_exhausted(told));
    }
    Ok((builder, filters))
}

/// A pointer that is good for as long as it is used, on any thread.
struct Lent(*mut c_void);

// SAFETY: the header demands so.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    fn get(&self) -> *mut c_void {
        self.0
    }
}
