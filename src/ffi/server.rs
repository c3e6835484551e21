//! Servers: listeners and connections.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    Failure, Handle, Result, Text, call, call_void, consumed, nanos, out, usable,
};
use super::callback::pace_conn_id_t;
use super::conn::{Handler, Hooks, name, pace_conn_hooks_t, put_address};
use super::filter::Filters;
use super::listener::{all_listeners, outgoing, pace_listener_options_t};
use super::pool::pace_pool_t;
use super::sized::{self, InOut};
use super::status::*;
use crate::net::{ListenerStats, Server, ServerBuilder, ServerStats};
use crate::{Error, Pool};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::ffi::CString;
use std::sync::Arc;

/// Listeners and connections on a pool.
pub struct pace_server_t {
    pub(super) server: Server,
    pub(super) pool: Pool,
    /// Connections that come find them as long as this is here. None: their handlers are
    /// not C's.
    pub(super) _hooks: Option<Arc<Hooks>>,
}

/// Called once each time that accepting pauses because descriptors or memory have run out, or the socket
/// accepts no more (whoever shares it may have shut it down), with what to log. It is tried again every
/// 50 ms.
pub type pace_exhausted_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, message: *const c_char)>;

/// Settings of a server. Call pace_server_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_server_options_t {
    /// The size of the struct in bytes, as pace_server_options_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Where to listen: an array of structs of one size.
    pub listeners: *const pace_listener_options_t,
    /// How many. Default 0: such a server only connects.
    pub listener_count: usize,
    /// Settings of outgoing connections, and of no listener: max_connections of them at once, and what
    /// else is about connections. Its address and fd are not looked at; what is about accepting (refusal,
    /// backlog, socket_mode, v6_only, reuse_port, filter) must have its default. NULL: the defaults.
    pub outgoing: *const pace_listener_options_t,
    /// An outgoing connection must be made within this, at least 1 ms. Default 10 s.
    pub connect_timeout_ns: u64,
    /// Called with the user_data of the server's hooks. NULL: nothing.
    pub on_exhausted: pace_exhausted_fn,
}

/// How a drain went. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_drain_report_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Everything ended within the time; nothing was cut off.
    pub drained: bool,
    /// It was called inside a handler, so it was only a request.
    pub requested: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 2],
    /// Connections that have been cut off.
    pub cut_off: u64,
    /// Connections that are open still.
    pub open: u64,
}

/// What a server has done so far. The counts add up exactly while no connection begins or ends. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_server_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether everything that began has ended or is open.
    pub balances: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Connections that came and were let in.
    pub accepted: u64,
    /// Connections that were begun by pace_server_connect().
    pub connected: u64,
    /// Connections beyond the maximum; not counted as accepted.
    pub turned_away: u64,
    /// Connections whose sockets are open.
    pub open: u64,
    /// Connections that have ended with PACE_REASON_PEER: the peer had finished, and everything was sent.
    pub closed_peer: u64,
    /// Connections that have ended with PACE_REASON_LOCAL: closed here, and everything was sent.
    pub closed_local: u64,
    /// Connections that have ended with PACE_REASON_ABORTED: aborted here, what was queued is lost.
    pub closed_aborted: u64,
    /// Connections that have ended with PACE_REASON_REFUSED, by the hook `open`.
    pub closed_refused: u64,
    /// Connections that have ended with PACE_REASON_TIMED_OUT: one of their times was over.
    pub closed_timed_out: u64,
    /// Connections that have ended with PACE_REASON_FAILED: their socket has failed.
    pub closed_failed: u64,
    /// Connections that have ended with PACE_REASON_UNCONSUMED: more than max_unconsumed bytes waited.
    pub closed_unconsumed: u64,
    /// Connections that have ended with PACE_REASON_PANICKED: a hook has failed.
    pub closed_panicked: u64,
    /// Connections that have ended with PACE_REASON_DRAINED: the server drained, and everything was sent.
    pub closed_drained: u64,
    /// Connections that have ended with PACE_REASON_CUT_OFF: the time of the drain was over.
    pub closed_cut_off: u64,
    /// Connections that have ended with PACE_REASON_POOL_ENDED: the pool has shut down, or had no room.
    pub closed_pool_ended: u64,
    /// Hooks `close` that have failed, after whatever reason.
    pub panics_in_close: u64,
    /// Times that accepting paused for want of descriptors or memory, or since the socket accepted no more.
    pub exhausted: u64,
    /// Requests that were admitted, by pace_conn_admit() or as requests of HTTP.
    pub requests: u64,
    /// Admitted requests that were answered.
    pub answered: u64,
    /// Admitted requests that were dropped, or whose connection had ended.
    pub requests_aborted: u64,
    /// Requests beyond the maximum, which were not admitted.
    pub busy: u64,
    /// Admitted requests that have not ended yet.
    pub in_work: u64,
}

/// Fills options with the defaults: pace_server_options_init(&options, sizeof options).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_options_init(
    options: InOut<pace_server_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, SERVER, "options"))
}

/// Starts a server: its connections get `hooks`. `options` and all that they point to are copied;
/// NULL means a server that only connects. If one listener fails, none is left, and no hook was called.
///
/// PACE_EINVAL names the setting, its value and its bounds; PACE_EOS names the address that could not
/// be listened on, and the reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN;
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_new(
    pool: Option<&pace_pool_t>,
    options: *const pace_server_options_t,
    hooks: *const pace_conn_hooks_t,
    server: Option<&mut MaybeUninit<*mut pace_server_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?.pool.clone();
        let to = out(server, "server")?;
        // SAFETY: as the header demands.
        let (registration, hooks) = unsafe { Hooks::read(hooks, pool.shared()) }?;
        // SAFETY: as the header demands.
        let started = unsafe { builder(&pool, options, Some(&hooks)) }.and_then(|made| {
            let (builder, filters) = made;
            let hooks = Arc::downgrade(&hooks);
            Ok((builder.serve(move |_| Handler::new(hooks.upgrade()))?, filters))
        });
        match started {
            Ok((server, filters)) => {
                to.set(Box::into_raw(Box::new(pace_server_t {
                    server,
                    pool,
                    _hooks: Some(hooks),
                })));
                filters.keep();
                registration.keep();
                Ok(())
            }
            Err(failure) => {
                registration.give_back();
                Err(failure)
            }
        }
    })
}

/// Where it listens, as text: with an `index` in the order of its listeners, and the port that it got.
/// It lies in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE is enough for every address.
///
/// PACE_EINVAL if `size` is not enough, or there is no such listener.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_address(
    server: Option<&pace_server_t>,
    index: usize,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    call(|| {
        let addresses = usable(server)?.server.addresses();
        // SAFETY: as the header demands.
        unsafe { put_address(listener(addresses, index)?, text, size) }
    })
}

/// Connects, with hooks of its own, to an address as in pace_listener_options_t. It returns at once;
/// the hook `open` comes when the connection is there, or else `close`. What is written before is sent
/// then. *conn is its name, or 0 if it has ended already.
///
/// PACE_EINVAL for an address that is none, or no `hooks`; PACE_EOS if the attempt failed at once;
/// PACE_EFULL when as many outgoing connections are open as may be, or the pool has no room;
/// PACE_ESHUTDOWN if the server drains; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_server_connect(
    server: Option<&pace_server_t>,
    address: Text,
    hooks: *const pace_conn_hooks_t,
    conn: Option<&mut MaybeUninit<pace_conn_id_t>>,
) -> pace_status_t {
    call(|| {
        let server = usable(server)?;
        let address = address.get("address")?;
        let to = out(conn, "conn")?;
        // SAFETY: as the header demands.
        let (registration, hooks) = unsafe { Hooks::read(hooks, server.pool.shared()) }?;
        let conn = match server.server.connect(address, Handler::new(Some(hooks))) {
            Ok(conn) => name(conn.id()),
            Err(error) if registration.give_back() => return Err(error.into()),
            // Its hooks have been told already.
            Err(_) => pace_conn_id_t { id: 0 },
        };
        to.set(conn);
        registration.keep();
        Ok(())
    })
}

/// Waits until the server has drained, or its pool has shut down.
///
/// PACE_EDEADLOCK on a thread of its pool.
///
/// Threads: any but the pool's. In handlers: no.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_wait(server: Option<&pace_server_t>) -> pace_status_t {
    call(|| Ok(usable(server)?.server.wait()?))
}

/// Stops accepting, after those that wait already; lets every connection answer what has arrived, and
/// closes it when its admitted requests have ended and everything is sent. What is not through after
/// `time_ns` is cut off. `report` may be NULL.
///
/// It returns when all sockets are closed, or 1 s after `time_ns` at the latest. Inside a handler of
/// the pool it is only a request, and returns at once.
///
/// PACE_EVERSION: report->struct_size was not set.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_drain(
    server: Option<&pace_server_t>,
    time_ns: u64,
    report: InOut<pace_drain_report_t>,
) -> pace_status_t {
    call(|| {
        let server = usable(server)?;
        let room = match report.is_null() {
            true => None,
            false => Some(report.room("report")?),
        };
        let report = server.server.drain(nanos(time_ns));
        if let Some(room) = room {
            room.fill(pace_drain_report_t {
                struct_size: 0,
                drained: report.drained,
                requested: report.requested,
                reserved: [0; 2],
                cut_off: report.stats.closed.cut_off,
                open: report.stats.open as u64,
            });
        }
        Ok(())
    })
}

/// What it has counted; the counters add up at rest.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_stats(
    server: Option<&pace_server_t>,
    stats: InOut<pace_server_stats_t>,
) -> pace_status_t {
    call(|| {
        let server = usable(server)?;
        stats.room("stats")?.fill(server_counters(&server.server.stats()));
        Ok(())
    })
}

/// The counters of one listener: `index` as for pace_server_address(). Nothing is connected there.
///
/// PACE_EINVAL for another `index`; PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_listener_stats(
    server: Option<&pace_server_t>,
    index: usize,
    stats: InOut<pace_server_stats_t>,
) -> pace_status_t {
    call(|| {
        let server = usable(server)?;
        let room = stats.room("stats")?;
        room.fill(listener_counters(listener(&server.server.stats().listeners, index)?));
        Ok(())
    })
}

/// Stops at once: listeners end, and connections are cut off. It waits for nothing, and the server is
/// still there. pace_server_drain() first for an orderly end.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_cut_off(server: Option<&pace_server_t>) -> pace_status_t {
    call(|| {
        usable(server)?.server.cut_off();
        Ok(())
    })
}

/// Stops as pace_server_free() does: listeners end, connections are cut off, and it waits for their hooks. The server is
/// still there. pace_server_drain() first for an orderly end.
///
/// Threads: any. In handlers, and on threads of the pool: yes, it never waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_stop(server: Option<&pace_server_t>) -> pace_status_t {
    call(|| {
        usable(server)?.server.stop();
        Ok(())
    })
}

/// Frees a server: its listeners end, and its connections are cut off. It waits until each of them has had its hook
/// `close`, from a thread of the pool, and no hook runs; `drop` of the hooks runs after the last. It does not wait if
/// pace_server_cut_off() was called before. Call pace_server_drain() first for an orderly end. A server may be
/// freed before or after its pool. NULL is a no-op. In a forked child it does nothing.
///
/// Threads: any, as long as no other uses the server any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_server_free(server: Option<Box<pace_server_t>>) {
    call_void(|| drop(consumed(server)));
}

impl Handle for pace_server_t {
    const NAME: &'static str = "server";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

const SERVER: pace_server_options_t = pace_server_options_t {
    struct_size: 0,
    reserved: 0,
    listeners: ptr::null(),
    listener_count: 0,
    outgoing: ptr::null(),
    connect_timeout_ns: 10_000_000_000,
    on_exhausted: None,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_server_options_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_server_options_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_server_options_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_drain_report_t {
    const FIRST: usize = 24;
    const NAME: &'static str = "pace_drain_report_t";
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_server_stats_t {
    const FIRST: usize = 184;
    const NAME: &'static str = "pace_server_stats_t";
}

/// # Safety
///
/// As the header demands of `options`.
pub(super) unsafe fn builder(
    pool: &Pool,
    options: *const pace_server_options_t,
    hooks: Option<&Arc<Hooks>>,
) -> Result<(ServerBuilder, Filters)> {
    let builder = Server::builder(pool);
    if options.is_null() {
        return Ok((builder, Filters::default()));
    }
    // SAFETY: as the caller promises.
    let options = unsafe { sized::read(options, "options") }?;
    let mut builder = builder.connect_timeout(nanos(options.connect_timeout_ns));
    if !options.outgoing.is_null() {
        // SAFETY: as the caller promises.
        builder = builder.outgoing(unsafe { outgoing(options.outgoing) }?);
    }
    // SAFETY: as the caller promises.
    let (listeners, filters) =
        unsafe { all_listeners(options.listeners, options.listener_count, pool.shared()) }?;
    for listener in listeners {
        builder = builder.listen(listener);
    }
    match (options.on_exhausted, hooks) {
        (Some(hook), Some(hooks)) => Ok((builder.on_exhausted(exhausted(hook, hooks)), filters)),
        (Some(_), None) => {
            Err(Failure::invalid("on_exhausted", "set", "NULL, where nothing is called back"))
        }
        (None, _) => Ok((builder, filters)),
    }
}

fn exhausted(hook: ExhaustedFn, hooks: &Arc<Hooks>) -> impl Fn(&Error) + Send + Sync + 'static {
    let hooks = Arc::downgrade(hooks);
    move |error| {
        if let Some(hooks) = hooks.upgrade() {
            call_exhausted(hook, hooks.data(), error);
        }
    }
}

type ExhaustedFn = unsafe extern "C" fn(*mut c_void, *const c_char);

pub(super) fn call_exhausted(hook: ExhaustedFn, data: *mut c_void, error: &Error) {
    let text = CString::new(error.to_string()).unwrap_or_default();
    // SAFETY: as the header demands, the hook takes what came with it.
    unsafe { hook(data, text.as_ptr()) }
}

pub(super) fn listener<T>(listeners: &[T], index: usize) -> Result<&T> {
    let allowed = || format!("less than {}", listeners.len());
    listeners.get(index).ok_or_else(|| Failure::invalid("index", index, &allowed()))
}

/// Counters of a server and of a listener have the same fields, but for what is connected.
macro_rules! counters {
    ($stats:expr, $connected:expr) => {{
        let (stats, connected) = ($stats, $connected);
        let closed = &stats.closed;
        pace_server_stats_t {
            struct_size: 0,
            balances: stats.balances(),
            reserved: [0; 3],
            accepted: stats.accepted,
            connected,
            turned_away: stats.turned_away,
            open: stats.open as u64,
            closed_peer: closed.peer,
            closed_local: closed.local,
            closed_aborted: closed.aborted,
            closed_refused: closed.refused,
            closed_timed_out: closed.timed_out,
            closed_failed: closed.failed,
            closed_unconsumed: closed.unconsumed,
            closed_panicked: closed.panicked,
            closed_drained: closed.drained,
            closed_cut_off: closed.cut_off,
            closed_pool_ended: closed.pool_ended,
            panics_in_close: stats.panics_in_close,
            exhausted: stats.exhausted,
            requests: stats.requests,
            answered: stats.answered,
            requests_aborted: stats.requests_aborted,
            busy: stats.busy,
            in_work: stats.in_work as u64,
        }
    }};
}

fn server_counters(stats: &ServerStats) -> pace_server_stats_t {
    counters!(stats, stats.connected)
}

fn listener_counters(stats: &ListenerStats) -> pace_server_stats_t {
    counters!(stats, 0)
}
