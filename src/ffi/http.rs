//! The HTTP server: routes, settings, start, end.
//!
//! A `pace_http_t` gathers routes until it is started. They are kept, so that a start that failed can
//! be tried again.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, Text, call, call_void, callback, consumed, optional_out, out,
    usable,
};
use super::callback::{pace_conn_id_t, pace_drop_fn};
use super::http_options::{builder as builder_of, pace_http_options_t};
use super::owner::{Owner, pair};
use super::pool::pace_pool_t;
use super::remote::lookup;
use super::request::{self, pace_request_t, text_of};
use super::response::{self, pace_response_t};
use super::server::pace_server_t;
use super::sized::{self, In, InOut};
use super::status::*;
use super::values::pace_text_t;
use crate::Pool;
use crate::cq::internal::Core;
use crate::http::{
    AccessLog, Http, HttpBuilder, HttpStats, Next, Patterns, Request, RequestBody, RequestEnd,
    Requests, Response,
};
use crate::log::Log;
use crate::ops::Ops;
use crate::pool::Shared;
use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// An HTTP/1.1 server on a pool: its routes, and when it was started, its listeners and connections.
///
/// One request of a connection is in work at a time; what a client sends ahead waits, so answers come
/// in the order of the requests.
pub struct pace_http_t {
    pool: Pool,
    routes: Mutex<Routes>,
    running: OnceLock<Running>,
    /// Where what is attached goes: to one completion queue.
    pub(super) attached: OnceLock<(Weak<Core>, Arc<Requests>)>,
}

/// The handler of a route. It runs on a thread of the pool, for many connections at once. The request
/// is lent, with its whole body; the response is given.
pub type pace_request_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        request: *const pace_request_t,
        response: *mut pace_response_t,
    ),
>;

/// The rest of a request's way, in a middleware: pace_next_run(). Good while the middleware runs, on that thread.
pub struct pace_next_t {
    _opaque: (),
}

/// A middleware: code around the handlers of requests. It runs on a thread of the pool, for many connections at once. The
/// request is lent; the response is given. It goes on by pace_next_run(), with the response, to which it may have added
/// headers: they are sent with every answer, errors of the server included. Or it answers by itself, and the handler
/// is not called; a body that is streamed is dropped then. pace_request_pattern() says which route it is.
pub type pace_around_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        request: *const pace_request_t,
        response: *mut pace_response_t,
        next: *mut pace_next_t,
    ),
>;

/// What has become of a request. It is lent for the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_http_end_t {
    /// The status of the answer. 0: no whole answer has left, as the connection has ended before, or its body
    /// broke off.
    pub status: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// As it was sent: GET. Empty if it is not known, as of a malformed request.
    pub method: pace_text_t,
    /// As it was sent: /hello/you?loud=1. Empty if it is not known; one that was refused for its length is cut.
    pub target: pace_text_t,
    /// How long it took, in nanoseconds, from the head, or from the first bytes of a head that came in parts, until the
    /// answer was complete. What the peer has not taken yet may still be queued.
    pub duration_ns: u64,
    /// The other end, as pace_conn_peer() tells it.
    pub peer: pace_text_t,
}

/// Told of the end of a request. It runs on a thread of the pool.
pub type pace_http_end_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, end: *const pace_http_end_t)>;

/// The head of a request whose body is streamed is there. The request is lent; the response is given.
/// *body, NULL beforehand, is what the other two hooks are called with. If it stays NULL they are not
/// called, and what comes of the body is dropped, up to max_body.
///
/// A peer that waits for "100 Continue" is told so when this has returned and *body is not NULL, or before
/// the head of an answer that is begun by pace_response_stream(). It is not told if this has answered by
/// pace_response_send(), or *body is NULL: then the answer, whenever it comes, is the final one, and the
/// connection closes behind it.
pub type pace_request_begin_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        request: *const pace_request_t,
        response: *mut pace_response_t,
        body: *mut *mut c_void,
    ),
>;

/// A part of the body has come. Answers how many of its bytes were taken, from the front. The rest is
/// shown again after pace_server_conn_resume(), which may come before this has returned; until the rest was
/// taken, nothing is read from the connection. More than `size` counts as a failure, and closes the connection.
pub type pace_request_data_fn =
    Option<unsafe extern "C" fn(body: *mut c_void, bytes: *const c_void, size: usize) -> usize>;

/// The last call for a body, exactly once: it was whole, or it never will be.
pub type pace_request_end_fn = Option<unsafe extern "C" fn(body: *mut c_void, is_whole: bool)>;

/// What takes the body of a request as it comes. Call pace_request_body_hooks_init() first. No hook may be
/// NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_request_body_hooks_t {
    /// The size of the struct in bytes, as pace_request_body_hooks_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Called once when the head of a request is complete, before its body. It must not be NULL.
    pub begin: pace_request_begin_fn,
    /// Called with each part of the body, as it comes. It must not be NULL.
    pub data: pace_request_data_fn,
    /// Called once when the body is complete, or will never be. It must not be NULL.
    pub end: pace_request_end_fn,
}

/// The counters of an HTTP server: begun = answered + refused + aborted + in work. The counts add up
/// exactly while no request is being handled. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_http_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether everything that began has ended or is in work, connections included.
    pub balances: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Requests whose head was judged, or that were given up.
    pub begun: u64,
    /// Begun and not ended: their bodies are coming, or their answers.
    pub in_work: u64,
    /// Requests that were answered by handlers with the status 101.
    pub answered_upgraded: u64,
    /// Requests that were answered by handlers with a status from 200 to 299.
    pub answered_successful: u64,
    /// Requests that were answered by handlers with a status from 300 to 399.
    pub answered_redirected: u64,
    /// Requests that were answered by handlers with a status from 400 to 499.
    pub answered_client_errors: u64,
    /// Requests that were answered by handlers with a status from 500 to 599.
    pub answered_server_errors: u64,
    /// Requests that the library has answered with 400, because they were malformed.
    pub refused_bad_request: u64,
    /// Requests that the library has answered with 404: no route has their path.
    pub refused_not_found: u64,
    /// Requests that the library has answered with 405: no route with their path has their method.
    pub refused_method_not_allowed: u64,
    /// Requests that the library has answered with 408: the head or the body did not come in time.
    pub refused_timed_out: u64,
    /// Requests that the library has answered with 413: the body is larger than max_body.
    pub refused_body_too_large: u64,
    /// Requests that the library has answered with 414: the target is longer than max_target.
    pub refused_target_too_long: u64,
    /// Requests that the library has answered with 417: they expect something else than 100-continue.
    pub refused_expectation: u64,
    /// Requests that the library has answered with 431: too many headers, or too long ones.
    pub refused_head_too_large: u64,
    /// Requests that the library has answered with 500, because their handler has failed.
    pub refused_panicked: u64,
    /// Requests that the library has answered with 500, because their response was freed or could not be
    /// sent.
    pub refused_unanswered: u64,
    /// Requests that the library has answered with 501: their method or transfer coding is unknown.
    pub refused_not_implemented: u64,
    /// Requests that the library has answered with 503: as many as may be were in work.
    pub refused_busy: u64,
    /// Requests that the library has answered with 505: they are of another major version of HTTP.
    pub refused_version: u64,
    /// Requests without a whole answer, because the peer has gone or the socket has failed.
    pub aborted_disconnected: u64,
    /// Requests without a whole answer, because the peer took nothing of what was queued for it.
    pub aborted_timed_out: u64,
    /// Requests without a whole answer, because its body was freed before the end.
    pub aborted_unfinished: u64,
    /// Requests without a whole answer, because the program has closed the connection.
    pub aborted_closed: u64,
    /// Requests without a whole answer, because the time of the drain was over or the pool has ended.
    pub aborted_cut_off: u64,
    /// Handlers, bodies and hooks that have failed.
    pub panics: u64,
}

/// Fills hooks with NULL: pace_request_body_hooks_init(&hooks, sizeof hooks).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_request_body_hooks_init(
    hooks: InOut<pace_request_body_hooks_t>,
    size: usize,
) -> pace_status_t {
    let none = pace_request_body_hooks_t {
        struct_size: 0,
        reserved: 0,
        begin: None,
        data: None,
        end: None,
    };
    call(|| hooks.init(size, none, "hooks"))
}

/// Makes a server without routes, to be given some and started.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_new(
    pool: Option<&pace_pool_t>,
    http: Option<&mut MaybeUninit<*mut pace_http_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?.pool.clone();
        let to = out(http, "http")?;
        let made = pace_http_t {
            pool,
            routes: Mutex::default(),
            running: OnceLock::new(),
            attached: OnceLock::new(),
        };
        to.set(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Requests of this method whose path matches this pattern go to this handler, with their whole body.
/// A pattern is a path with parameters: "/hello/{name}" for one segment, "/files/{*path}" for all that
/// follows. It is matched with the path as it was sent; pace_request_param() gives parameters decoded.
///
/// Each method is routed by itself: of the patterns of a method the closest one is taken, whatever other
/// methods have there. GET serves HEAD too, where HEAD has no route of its own. Without a route the
/// answer is 405 if other methods have one for the path, and else 404. OPTIONS without a route is
/// answered with 204 and the methods that the path has routes for (Allow), "OPTIONS *" with all methods,
/// unless the pattern "*" has a route.
///
/// `drop` runs when the server was freed, and the last connection and the last response are gone.
///
/// PACE_EINVAL if there cannot be such a route, or there is one already, and also when the server has been started.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_route(
    http: Option<&pace_http_t>,
    method: Text,
    pattern: Text,
    handler: pace_request_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let handler = callback(handler, "handler")?;
        // SAFETY: as the header demands.
        unsafe { add(http, method, pattern, Target::Whole(handler), user_data, drop) }
    })
}

/// The same for requests whose body is taken as it comes.
///
/// PACE_EINVAL as there, PACE_EVERSION for hooks.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_route_streaming(
    http: Option<&pace_http_t>,
    method: Text,
    pattern: Text,
    hooks: In<pace_request_body_hooks_t>,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let hooks = hooks.read("hooks")?;
        let target = Target::Streaming {
            begin: callback(hooks.begin, "hooks.begin")?,
            data: callback(hooks.data, "hooks.data")?,
            end: callback(hooks.end, "hooks.end")?,
        };
        // SAFETY: as the header demands.
        unsafe { add(http, method, pattern, target, user_data, drop) }
    })
}

/// Calls this function around the handler of every request that has a whole head: of all routes, of requests that no
/// route takes (404, 405), and of what the library answers to OPTIONS. Several are called in the order in which they
/// were told, each around all that follow. See pace_around_fn.
///
/// A request that is refused for its head, its body's length or for want of room (400, 408, 413, 414, 417, 431, 501,
/// 503, 505) is not seen here, but by pace_http_on_end().
///
/// PACE_EINVAL also when the server has been started.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_around(
    http: Option<&pace_http_t>,
    around: pace_around_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let around = callback(around, "around")?;
        // SAFETY: as the header demands.
        unsafe { add_nowhere(http, Target::Around(around), user_data, drop) }
    })
}

/// Goes on with a request in a middleware, on this thread, and returns when the handler has returned. The response is
/// gone then, whatever this answers, unless that is PACE_EINVAL.
///
/// *status is the status with which the request was answered by then: 500 if the handler has failed without an
/// answer. 0: it will be answered later, or its answer was lost with the connection; pace_http_on_end() tells.
/// `status` may be NULL.
///
/// PACE_EINVAL also if `next` has been run already.
///
/// Threads: the middleware's. In handlers: in a middleware only; it takes what the handler takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_next_run(
    next: *mut pace_next_t,
    request: *const pace_request_t,
    response: *mut pace_response_t,
    status: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        boundary::check(next, "next")?;
        // SAFETY: as the header demands, it is a middleware's that runs on this thread.
        let next = unsafe { &mut *next.cast::<Option<Next<'_>>>() };
        // SAFETY: as the header demands.
        let request = unsafe { request::open(request) }?;
        let to = optional_out(status);
        if next.is_none() {
            return Err(RUN);
        }
        // SAFETY: as the header demands.
        let response = unsafe { response::take(response) }?;
        let status = next.take().and_then(|next| next.run(request, response));
        to.set(status.map_or(0, u32::from));
        Ok(())
    })
}

/// Requests that no route takes go to this handler, without their body, which is dropped. The response has the status
/// that they would get otherwise: 404, 405 (with Allow), 501, or 400 for a parameter that cannot be decoded.
/// pace_response_error() answers as the server does, and pace_response_status() sets another status. The last
/// fallback that was told is the one.
///
/// PACE_EINVAL also when the server has been started.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_fallback(
    http: Option<&pace_http_t>,
    handler: pace_request_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let handler = callback(handler, "handler")?;
        // SAFETY: as the header demands.
        unsafe { add_nowhere(http, Target::Fallback(handler), user_data, drop) }
    })
}

/// Calls this function at the end of each request, once: answered by a handler or refused by the server (400, 404, 408,
/// 413, 431 and others), or lost with its connection. An access log is pace_http_access_log(). Connections that are turned
/// away without having sent a request are none. With it, all requests are counted as in work from their beginning.
/// The last function that was told is the one. It must not block: the connection waits for it.
///
/// PACE_EINVAL also when the server has been started.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_on_end(
    http: Option<&pace_http_t>,
    hook: pace_http_end_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let hook = callback(hook, "hook")?;
        // SAFETY: as the header demands.
        unsafe { add_nowhere(http, Target::OnEnd(hook), user_data, drop) }
    })
}

/// Starts. `options` and all that they point to are copied. If it fails, it may be tried again.
///
/// PACE_EINVAL names the setting, its value and its bounds, or the route that cannot be, also when the
/// server has been started already; PACE_EOS names the address that could not be listened on, and the
/// reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN; PACE_EVERSION.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_start(
    http: Option<&pace_http_t>,
    options: In<pace_http_options_t>,
) -> pace_status_t {
    call(|| {
        let http = usable(http)?;
        let options = options.read("options")?;
        // SAFETY: as the header demands.
        let filters = start(http, || unsafe { builder_of(&http.pool, &options) })?;
        filters.keep();
        Ok(())
    })
}

/// Starts with the defaults at one address, as "127.0.0.1:8080", "[::1]:0" or "unix:/run/shop.sock". "127.0.0.1:0" has a free
/// port, which pace_server_address() of pace_http_server() says.
///
/// As pace_http_start().
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_serve(http: Option<&pace_http_t>, address: Text) -> pace_status_t {
    call(|| {
        let http = usable(http)?;
        let address = address.get("address")?;
        start(http, || Ok((Http::builder(&http.pool).listen(address), ())))
    })
}

/// Serves with the routes that were set. What the builder came with is given back.
fn start<T>(http: &pace_http_t, builder: impl FnOnce() -> Result<(HttpBuilder, T)>) -> Result<T> {
    let routes = http.routes.lock().unwrap_or_else(PoisonError::into_inner);
    if http.running.get().is_some() {
        return Err(STARTED);
    }
    let (mut builder, with) = builder()?;
    for route in &routes.set {
        builder = route.add_to(builder);
    }
    let server = builder.serve()?;
    let beneath =
        pace_server_t { server: server.server().clone(), pool: http.pool.clone(), _hooks: None };
    let attached: Vec<_> = routes.set.iter().filter_map(Route::requests).collect();
    server.server().when_over(move || attached.iter().for_each(|requests| requests.end()));
    http.running.get_or_init(|| Running { server, beneath });
    Ok(with)
}

/// The stream server beneath, for what is done with connections and listeners: pace_server_address(),
/// pace_server_drain(), pace_server_wait(), pace_server_stats(), and pace_server_conn_ functions. It
/// belongs to the HTTP server: do not free it.
///
/// PACE_EINVAL before the start.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_server(
    http: Option<&pace_http_t>,
    server: Option<&mut MaybeUninit<*mut pace_server_t>>,
) -> pace_status_t {
    call(|| {
        let running = running(http)?;
        let to = out(server, "server")?;
        to.set(ptr::from_ref(&running.beneath).cast_mut());
        Ok(())
    })
}

/// What it has counted; the counters add up at rest.
///
/// PACE_EINVAL before the start; PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_stats(
    http: Option<&pace_http_t>,
    stats: InOut<pace_http_stats_t>,
) -> pace_status_t {
    call(|| {
        let running = running(http)?;
        stats.room("stats")?.fill(counters(&running.server.stats()));
        Ok(())
    })
}

/// What has answered a request of this connection has failed after that: the connection closes when all that
/// is queued was sent, and the failure is counted in pace_http_stats_t.panics. Before that it is for
/// pace_response_fail() or pace_body_fail(), and for a completion that fails (pace_cq_complete); in a handler, for pace_request_fail().
///
/// PACE_EINVAL before the start. PACE_ESTALE if the connection has ended: then nothing is counted.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_fail(
    http: Option<&pace_http_t>,
    conn: pace_conn_id_t,
) -> pace_status_t {
    call(|| {
        let running = running(http)?;
        let conn = lookup(&running.beneath, conn)?;
        Ok(running.server.fail(conn.id())?)
    })
}

/// Frees a server: its listeners end, and its connections are cut off, as by pace_server_free(), which says what it
/// waits for; drain it first for an orderly end. NULL is a no-op. In a forked child it does nothing.
///
/// Threads: any, as long as no other uses the server any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_http_free(http: Option<Box<pace_http_t>>) {
    call_void(|| drop(consumed(http)));
}

const STARTED: Failure = Failure::plain(PACE_EINVAL, c"http has been started already");
const RUN: Failure = Failure::plain(PACE_EINVAL, c"next has been run already");
const NOT_STARTED: Failure = Failure::plain(PACE_EINVAL, c"http has not been started");

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_request_body_hooks_t {
    const FIRST: usize = 32;
    const NAME: &'static str = "pace_request_body_hooks_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_request_body_hooks_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_http_stats_t {
    const FIRST: usize = 216;
    const NAME: &'static str = "pace_http_stats_t";
}

struct Running {
    server: Http,
    beneath: pace_server_t,
}

impl Handle for pace_http_t {
    const NAME: &'static str = "http";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

fn running(http: Option<&pace_http_t>) -> Result<&Running> {
    usable(http)?.running.get().ok_or(NOT_STARTED)
}

// --- routes -----------------------------------------------------------------------------------------

pub(super) type RequestFn =
    unsafe extern "C" fn(*mut c_void, *const pace_request_t, *mut pace_response_t);
pub(super) type BeginFn = unsafe extern "C" fn(
    *mut c_void,
    *const pace_request_t,
    *mut pace_response_t,
    *mut *mut c_void,
);
pub(super) type DataFn = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> usize;
pub(super) type EndFn = unsafe extern "C" fn(*mut c_void, bool);
pub(super) type AroundFn = unsafe extern "C" fn(
    *mut c_void,
    *const pace_request_t,
    *mut pace_response_t,
    *mut pace_next_t,
);
pub(super) type OnEndFn = unsafe extern "C" fn(*mut c_void, *const pace_http_end_t);

pub(super) enum Target {
    Whole(RequestFn),
    Streaming { begin: BeginFn, data: DataFn, end: EndFn },
    Attached { requests: Arc<Requests>, tag: u64 },
    AttachedStreaming { requests: Arc<Requests>, tag: u64 },
    // Those below have no method and no pattern.
    Around(AroundFn),
    Fallback(RequestFn),
    FallbackAttached { requests: Arc<Requests>, tag: u64 },
    OnEnd(OnEndFn),
    OnEndAttached(Arc<Requests>),
    AccessLog(fn() -> AccessLog, Option<Log>),
    // And this has a prefix for its pattern.
    Ops(Weak<Ops>),
}

#[derive(Default)]
struct Routes {
    set: Vec<Route>,
    /// So that a wrong pattern is refused when it is set.
    patterns: Patterns,
}

struct Route {
    method: String,
    pattern: String,
    target: Target,
    context: Arc<Context>,
}

/// What the calls of a route have in common. Every response keeps it, by way of its server.
struct Context {
    owner: Owner,
    shared: Arc<Shared>,
}

// SAFETY: the header demands that handlers and user_data may be used by any thread.
unsafe impl Send for Context {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Context {}

/// # Safety
///
/// As the header demands of the arguments.
pub(super) unsafe fn add(
    http: Option<&pace_http_t>,
    method: Text,
    pattern: Text,
    target: Target,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> Result {
    usable(http)?;
    let method = method.get("method")?.to_owned();
    let pattern = pattern.get("pattern")?.to_owned();
    let check = |patterns: &mut Patterns| patterns.add(&method, &pattern).map_err(Failure::from);
    // SAFETY: as the caller promises.
    unsafe { keep(http, check, (method.clone(), pattern.clone()), target, user_data, drop) }
}

/// # Safety
///
/// As the header demands of the arguments.
pub(super) unsafe fn add_mounted(
    http: Option<&pace_http_t>,
    prefix: &str,
    target: Target,
) -> Result {
    // SAFETY: as the caller promises; there is no code of the program's.
    unsafe { keep(http, |_| Ok(()), (String::new(), prefix.into()), target, ptr::null_mut(), None) }
}

/// # Safety
///
/// As the header demands of the arguments.
pub(super) unsafe fn add_nowhere(
    http: Option<&pace_http_t>,
    target: Target,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> Result {
    // SAFETY: as the caller promises.
    unsafe { keep(http, |_| Ok(()), <_>::default(), target, user_data, drop) }
}

/// # Safety
///
/// As the header demands of the arguments.
unsafe fn keep(
    http: Option<&pace_http_t>,
    check: impl FnOnce(&mut Patterns) -> Result,
    (method, pattern): (String, String),
    target: Target,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> Result {
    let http = usable(http)?;
    let mut routes = http.routes.lock().unwrap_or_else(PoisonError::into_inner);
    if http.running.get().is_some() {
        return Err(STARTED);
    }
    check(&mut routes.patterns)?;
    let (registration, owner) = pair(user_data, drop);
    registration.keep();
    let context = Arc::new(Context { owner, shared: Arc::clone(http.pool.shared()) });
    routes.set.push(Route { method, pattern, target, context });
    Ok(())
}

impl Route {
    fn requests(&self) -> Option<Arc<Requests>> {
        match &self.target {
            Target::Attached { requests, .. }
            | Target::AttachedStreaming { requests, .. }
            | Target::FallbackAttached { requests, .. }
            | Target::OnEndAttached(requests) => Some(Arc::clone(requests)),
            _ => None,
        }
    }

    fn add_to(&self, builder: HttpBuilder) -> HttpBuilder {
        let context = Arc::clone(&self.context);
        match &self.target {
            &Target::Whole(handler) => {
                let handle = move |request: &Request<'_>, response: Response| {
                    context.handle(handler, request, response);
                };
                builder.route(&self.method, &self.pattern, handle)
            }
            &Target::Fallback(handler) => builder.fallback(move |request, response| {
                context.handle(handler, request, response);
            }),
            Target::FallbackAttached { requests, tag } => builder.fallback(requests.handler(*tag)),
            &Target::Around(around) => builder.around(move |request, response, next| {
                let (request, response) = context.arguments(request, response);
                let mut next = Some(next);
                let next = ptr::from_mut(&mut next).cast();
                // SAFETY: as the header demands, the middleware takes what came with it.
                response::run(|| unsafe { around(context.owner.data(), request, response, next) });
            }),
            Target::Ops(ops) => match ops.upgrade() {
                Some(ops) => ops.add_to(builder, &self.pattern),
                None => builder,
            },
            Target::AccessLog(make, log) => builder.access_log(match log {
                Some(log) => make().log(log),
                None => make(),
            }),
            Target::OnEndAttached(requests) => {
                let requests = Arc::clone(requests);
                builder.on_end(move |end| requests.put_end(end))
            }
            &Target::OnEnd(hook) => builder.on_end(move |end| {
                let peer = end.peer.to_string();
                let end = as_data(end, &peer);
                // SAFETY: as the header demands, the hook takes what came with it.
                response::run(|| unsafe { hook(context.owner.data(), &end) });
            }),
            &Target::Streaming { begin, data, end } => {
                let make = move |request: &Request<'_>, response: Response| {
                    let (request, response) = context.arguments(request, response);
                    let mut body = ptr::null_mut();
                    response::run(|| {
                        // SAFETY: as above.
                        unsafe { begin(context.owner.data(), request, response, &mut body) };
                        (!body.is_null()).then(|| Upload { body, data, end, over: false })
                    })
                };
                builder.route_streaming(&self.method, &self.pattern, make)
            }
            Target::Attached { requests, tag } => {
                builder.route(&self.method, &self.pattern, requests.handler(*tag))
            }
            Target::AttachedStreaming { requests, tag } => {
                builder.route_streaming(&self.method, &self.pattern, requests.streaming(*tag))
            }
        }
    }
}

fn as_data(end: &RequestEnd<'_>, peer: &str) -> pace_http_end_t {
    pace_http_end_t {
        status: end.status.map_or(0, u32::from),
        reserved: 0,
        method: text_of(end.method.as_bytes()),
        target: text_of(end.target.as_bytes()),
        duration_ns: u64::try_from(end.duration.as_nanos()).unwrap_or(u64::MAX),
        peer: text_of(peer.as_bytes()),
    }
}

impl Context {
    #[inline]
    fn handle(&self, handler: RequestFn, request: &Request<'_>, response: Response) {
        let (request, response) = self.arguments(request, response);
        // SAFETY: as the header demands, the handler takes what came with it.
        response::run(|| unsafe { handler(self.owner.data(), request, response) });
    }

    #[inline]
    fn arguments(
        &self,
        request: &Request<'_>,
        response: Response,
    ) -> (*const pace_request_t, *mut pace_response_t) {
        // SAFETY: the response keeps its server, which keeps its routes, which keep this.
        let response = unsafe { response::as_argument(response, &raw const self.shared) };
        (request::as_argument(request), response)
    }
}

/// The body of a request, as it comes.
struct Upload {
    body: *mut c_void,
    data: DataFn,
    end: EndFn,
    /// `end` was called.
    over: bool,
}

// SAFETY: the header demands that hooks and what they are given may be used by any thread.
unsafe impl Send for Upload {}

impl RequestBody for Upload {
    fn data(&mut self, bytes: &[u8]) -> usize {
        // SAFETY: as the header demands, the hook takes what `begin` has left.
        let hook = || unsafe { (self.data)(self.body, bytes.as_ptr().cast(), bytes.len()) };
        let taken = response::run(hook);
        if taken > bytes.len() {
            resume_unwind(Box::new("a hook has taken more than there was"));
        }
        taken
    }

    fn end(mut self: Box<Self>) {
        self.over = true;
        // SAFETY: as above; it is not called again.
        response::run(|| unsafe { (self.end)(self.body, true) });
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.over {
            // SAFETY: as above; this is the only time.
            response::run_last(|| unsafe { (self.end)(self.body, false) });
        }
    }
}

fn counters(stats: &HttpStats) -> pace_http_stats_t {
    let HttpStats { answered, refused, aborted, .. } = stats;
    pace_http_stats_t {
        struct_size: 0,
        balances: stats.balances(),
        reserved: [0; 3],
        begun: stats.begun,
        in_work: stats.in_work as u64,
        answered_upgraded: answered.upgraded,
        answered_successful: answered.successful,
        answered_redirected: answered.redirected,
        answered_client_errors: answered.client_errors,
        answered_server_errors: answered.server_errors,
        refused_bad_request: refused.bad_request,
        refused_not_found: refused.not_found,
        refused_method_not_allowed: refused.method_not_allowed,
        refused_timed_out: refused.timed_out,
        refused_body_too_large: refused.body_too_large,
        refused_target_too_long: refused.target_too_long,
        refused_expectation: refused.expectation,
        refused_head_too_large: refused.head_too_large,
        refused_panicked: refused.panicked,
        refused_unanswered: refused.unanswered,
        refused_not_implemented: refused.not_implemented,
        refused_busy: refused.busy,
        refused_version: refused.version,
        aborted_disconnected: aborted.disconnected,
        aborted_timed_out: aborted.timed_out,
        aborted_unfinished: aborted.unfinished,
        aborted_closed: aborted.closed,
        aborted_cut_off: aborted.cut_off,
        panics: stats.panics,
    }
}
