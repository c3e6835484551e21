//! Where a server listens, and the settings of the connections that come there.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, nanos};
use super::filter::{self, Filters, pace_filter_hooks_t};
use super::settings::{change, change_text, change_time, load};
use super::sized::{self, InOut};
use super::status::*;
use super::values::{PACE_DEFAULT, PACE_FOREVER, PACE_UNLIMITED};
use crate::admin::ServerSettings;
use crate::net::{Listen, Outgoing};
use crate::pool::Shared;
use core::ffi::{c_char, c_void};
use core::fmt::Display;
use core::mem::offset_of;
use core::ptr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A place to listen at, and the settings of its connections. Call pace_listener_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_listener_options_t {
    /// The size of the struct in bytes, as pace_listener_options_init() sets it.
    pub struct_size: u32,
    /// A socket that listens already, opened by a parent or a supervisor. It stays the caller's, who
    /// may close it at once. What is settled when a socket is opened stays as it is: backlog, v6_only
    /// and reuse_port. Default −1: the address is used.
    pub fd: i32,
    /// "127.0.0.1:80", "[::1]:80", "*:80" (all of IPv6 and IPv4), "unix:/run/socket", or "unix:@name"
    /// in the abstract namespace. Port 0 is a free port, which pace_server_address() tells. The file
    /// of a Unix socket is made, replaced if nobody listens there any more (which is not for two
    /// servers to try at the same moment), and removed at the end, if it is still this one.
    pub address: *const c_char,
    /// Connections at once, 1 to 2^24; more are sent the refusal and closed. Default 2^20.
    pub max_connections: u64,
    /// What connections beyond the maximum are sent. NULL: nothing.
    pub refusal: *const c_void,
    /// Its size, up to 65536.
    pub refusal_size: usize,
    /// Admitted requests at once over all connections, at least 1; see pace_conn_admit(). Default
    /// PACE_UNLIMITED: no limit.
    pub max_requests: u64,
    /// What a request beyond the maximum is answered with. NULL: nothing.
    pub busy: *const c_void,
    /// Its size, up to 65536.
    pub busy_size: usize,
    /// Bytes that a hook may leave unconsumed, at least 1. With more its connection is closed. Default
    /// 2^20. A hook sees up to 65536 beyond it once.
    pub max_unconsumed: u64,
    /// Marks of the output queue, in bytes: low < high <= max. Above high reading of that connection
    /// pauses until it has fallen to low. Default 65536.
    pub output_low: u64,
    /// The high mark of a connection's output, in bytes, at which its hooks should stop writing. Default
    /// 262144.
    pub output_high: u64,
    /// A write that would exceed this is refused. Default 2^24.
    pub output_max: u64,
    /// A connection on which nothing was sent or received for so long, at least 1 ms, and with no
    /// request in work, has timed out. If only other threads write to it, it may take twice as long.
    /// Default PACE_FOREVER: no limit. A hook that answers later has to admit the request, by pace_conn_admit(): otherwise
    /// this time runs while the answer is worked on, and the connection may be closed before it is written.
    pub idle_timeout_ns: u64,
    /// The rest of a message of which a part was not consumed must come within this, at least 1 ms,
    /// however much of it comes meanwhile. Default PACE_FOREVER: no limit.
    pub read_timeout_ns: u64,
    /// A peer that takes nothing of what is queued for it for so long, at least 1 ms, has stalled.
    /// Default 30 s.
    pub stall_timeout_ns: u64,
    /// How long a peer that was told the end may take to end too; what it sends meanwhile is dropped.
    /// Without it, closing can destroy what was just sent. Default 2 s; 0: none.
    pub linger_ns: u64,
    /// TCP asks silent peers whether they are there, first after this time: 1 s to 32767 s, in whole
    /// seconds, to which it is rounded up. Default 0: it does not.
    pub keep_alive_ns: u64,
    /// Bytes that the kernel buffers for sending, up to 2^30 (it doubles them). Default 0: the
    /// system's.
    pub send_buffer: u64,
    /// The size of the kernel's buffer for receiving (SO_RCVBUF), in bytes, up to 2^30 (it doubles them). 0
    /// (default): the kernel chooses.
    pub receive_buffer: u64,
    /// Mode of the file of a Unix socket, up to 0777; who connects needs to be allowed to write.
    /// PACE_DEFAULT: 0777 less the process's umask.
    pub socket_mode: u32,
    /// Connections that may wait to be accepted, 1 to 2^20; the kernel has a limit of its own
    /// (net.core.somaxconn). Default 4096.
    pub backlog: u32,
    /// TCP sends small writes at once. Default.
    pub no_delay: bool,
    /// An IPv6 listener takes no IPv4. Default: "[::]" takes both.
    pub v6_only: bool,
    /// Several processes may listen on the same port; the kernel deals connections out. Default: no.
    pub reuse_port: bool,
    /// What happens when the peer has finished: it sends no more, and may still read. By default (false) such a
    /// connection is closed by itself, when its admitted requests have ended and everything is sent. With true it
    /// stays open until its hooks close it: for protocols in which one direction ends before the other, as with a
    /// proxy.
    pub allow_half_open: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 4],
    /// What turns the bytes of connections that are accepted here, TLS as a rule. What it points to is
    /// copied. NULL: nothing. Outgoing connections have none.
    pub filter: *const pace_filter_hooks_t,
}

/// Fills options with the defaults: pace_listener_options_init(&listener, sizeof listener). Set
/// `address` or `fd` then.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_listener_options_init(
    options: InOut<pace_listener_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, LISTENER, "options"))
}

/// Changes options to what the section `server` of a file of settings says, as pace_pool_config_load() does for
/// `pool`. They are those of a
/// listener, of a server of streams or of an HTTP server.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_listener_options_load(
    options: InOut<pace_listener_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(options, path, environment, "options", |options, said| {
                said_of(options, said.server)
            })
        }
    })
}

fn said_of(options: &mut pace_listener_options_t, server: ServerSettings) {
    change_text(&mut options.address, "server.address", server.address);
    change(&mut options.max_connections, server.max_connections);
    change(&mut options.max_requests, server.max_requests);
    change(&mut options.max_unconsumed, server.max_unconsumed);
    change(&mut options.output_low, server.output_low);
    change(&mut options.output_high, server.output_high);
    change(&mut options.output_max, server.output_max);
    change_time(&mut options.idle_timeout_ns, server.idle_timeout);
    change_time(&mut options.read_timeout_ns, server.read_timeout);
    change_time(&mut options.stall_timeout_ns, server.stall_timeout);
    change_time(&mut options.linger_ns, server.linger);
    change_time(&mut options.keep_alive_ns, server.keep_alive);
    change(&mut options.send_buffer, server.send_buffer);
    change(&mut options.receive_buffer, server.receive_buffer);
    change(&mut options.backlog, server.backlog);
    change(&mut options.no_delay, server.no_delay);
    change(&mut options.reuse_port, server.reuse_port);
    change(&mut options.v6_only, server.v6_only);
}

const LISTENER: pace_listener_options_t = pace_listener_options_t {
    struct_size: 0,
    fd: -1,
    address: ptr::null(),
    max_connections: 1 << 20,
    refusal: ptr::null(),
    refusal_size: 0,
    max_requests: PACE_UNLIMITED,
    busy: ptr::null(),
    busy_size: 0,
    max_unconsumed: 1 << 20,
    output_low: 64 << 10,
    output_high: 256 << 10,
    output_max: 16 << 20,
    idle_timeout_ns: PACE_FOREVER,
    read_timeout_ns: PACE_FOREVER,
    stall_timeout_ns: 30_000_000_000,
    linger_ns: 2_000_000_000,
    keep_alive_ns: 0,
    send_buffer: 0,
    receive_buffer: 0,
    socket_mode: PACE_DEFAULT,
    backlog: 4096,
    no_delay: true,
    v6_only: false,
    reuse_port: false,
    allow_half_open: false,
    reserved: [0; 4],
    filter: ptr::null(),
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_listener_options_t {
    const FIRST: usize = 168;
    const NAME: &'static str = "pace_listener_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("no_delay", offset_of!(pace_listener_options_t, no_delay)),
        ("v6_only", offset_of!(pace_listener_options_t, v6_only)),
        ("reuse_port", offset_of!(pace_listener_options_t, reuse_port)),
        ("allow_half_open", offset_of!(pace_listener_options_t, allow_half_open)),
    ];
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_listener_options_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

/// What is told to a [`Listen`], or to [`Outgoing`], which have the same words: all that is not the
/// default, since the defaults of Rust and of a server on top are others in places.
macro_rules! tell {
    ($to:expr, $options:expr) => {{
        let options: &pace_listener_options_t = $options;
        let mut to = $to;
        tell!(@ to, options, max_connections, |value| size(value));
        tell!(@ to, options, max_requests, |value| size(value));
        tell!(@ to, options, max_unconsumed, |value| size(value));
        tell!(@ to, options, idle_timeout_ns => idle_timeout, |value| nanos(value));
        tell!(@ to, options, read_timeout_ns => read_timeout, |value| nanos(value));
        tell!(@ to, options, stall_timeout_ns => stall_timeout, |value| nanos(value));
        tell!(@ to, options, linger_ns => linger, |value| nanos(value));
        tell!(@ to, options, keep_alive_ns => keep_alive, |value| nanos(value));
        tell!(@ to, options, send_buffer, |value| size(value));
        tell!(@ to, options, receive_buffer, |value| size(value));
        tell!(@ to, options, no_delay, |value| value);
        tell!(@ to, options, allow_half_open, |value| value);
        let marks = [options.output_low, options.output_high, options.output_max];
        if marks != [LISTENER.output_low, LISTENER.output_high, LISTENER.output_max] {
            let [low, high, max] = marks.map(size);
            to = to.output_marks(low, high, max);
        }
        // SAFETY: as the header demands.
        let busy = unsafe { boundary::bytes(options.busy, options.busy_size, 1, "busy") }?;
        if busy.is_empty() { to } else { to.busy(busy) }
    }};
    (@ $to:ident, $options:ident, $field:ident, |$value:ident| $as:expr) => {
        tell!(@ $to, $options, $field => $field, |$value| $as)
    };
    (@ $to:ident, $options:ident, $field:ident => $word:ident, |$value:ident| $as:expr) => {
        if $options.$field != LISTENER.$field {
            let $value = $options.$field;
            $to = $to.$word($as);
        }
    };
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What outgoing connections, and they alone, are told.
///
/// # Safety
///
/// As the header demands of `options`.
pub(super) unsafe fn outgoing(options: *const pace_listener_options_t) -> Result<Outgoing> {
    // SAFETY: as the caller promises.
    let options = unsafe { sized::read(options, "outgoing") }?;
    // SAFETY: as the caller promises.
    let refusal = unsafe { refusal(&options) }?;
    let bytes = format!("{} bytes", refusal.len());
    is_default("refusal", bytes, refusal.is_empty(), "NULL")?;
    is_default("filter", "set", options.filter.is_null(), "NULL")?;
    let backlog = LISTENER.backlog;
    is_default("backlog", options.backlog, options.backlog == backlog, &backlog.to_string())?;
    let mode = format!("{:#o}", options.socket_mode);
    is_default("socket_mode", mode, options.socket_mode == PACE_DEFAULT, "PACE_DEFAULT")?;
    is_default("v6_only", true, !options.v6_only, "false")?;
    is_default("reuse_port", true, !options.reuse_port, "false")?;
    Ok(tell!(Outgoing::new(), &options))
}

/// What is about accepting would have no effect on what is made here.
fn is_default(name: &str, value: impl Display, is_default: bool, default: &str) -> Result {
    if is_default {
        return Ok(());
    }
    let allowed = format!("{default} in outgoing: it is for connections that are accepted");
    Err(Failure::invalid(name, value, &allowed))
}

/// All listeners of an array, whose structs are as large as the first says, and what their filters own.
///
/// # Safety
///
/// As the header demands of `listeners`.
pub(super) unsafe fn all_listeners(
    listeners: *const pace_listener_options_t,
    count: usize,
    shared: &Arc<Shared>,
) -> Result<(Vec<Listen>, Filters)> {
    let mut filters = Filters::default();
    if count == 0 {
        return Ok((Vec::new(), filters));
    }
    // SAFETY: as the caller promises, the first is there.
    let first = unsafe { sized::read(listeners, "listeners") }?;
    let stride = first.struct_size as usize;
    let most = isize::MAX as usize / stride;
    if count > most {
        return Err(Failure::invalid("listener_count", count, &format!("at most {most}")));
    }
    // SAFETY: as the caller promises, there are as many.
    let listener = |index: usize| unsafe {
        listener(listeners.byte_add(index * stride), stride, shared, &mut filters)
    };
    let listeners = (0..count).map(listener).collect::<Result<_>>()?;
    Ok((listeners, filters))
}

/// # Safety
///
/// As the header demands of one of `listeners`.
unsafe fn listener(
    options: *const pace_listener_options_t,
    stride: usize,
    shared: &Arc<Shared>,
    filters: &mut Filters,
) -> Result<Listen> {
    // SAFETY: as the caller promises.
    let options = unsafe { sized::read(options, "listeners") }?;
    if options.struct_size as usize != stride {
        let allowed = format!("that of the first of its array, {stride}");
        return Err(Failure::invalid("struct_size", options.struct_size, &allowed));
    }
    // SAFETY: as the caller promises.
    let place = unsafe { place(&options) }?;
    let mut listener = tell!(place, &options);
    tell!(@ listener, options, socket_mode, |value| value);
    tell!(@ listener, options, backlog, |value| i32::try_from(value).unwrap_or(i32::MAX));
    tell!(@ listener, options, v6_only, |value| value);
    tell!(@ listener, options, reuse_port, |value| value);
    // SAFETY: as the caller promises.
    let refusal = unsafe { refusal(&options) }?;
    if !refusal.is_empty() {
        listener = listener.refusal(refusal);
    }
    match options.filter.is_null() {
        true => Ok(listener),
        // SAFETY: not NULL, and as the caller promises.
        false => unsafe { filter::set(listener, options.filter, shared, filters) },
    }
}

/// # Safety
///
/// As the header demands of `options`.
unsafe fn place(options: &pace_listener_options_t) -> Result<Listen> {
    if options.fd >= 0 {
        // SAFETY: not −1. The header demands that it is open; if it is not, system calls fail.
        let fd = unsafe { BorrowedFd::borrow_raw(options.fd) };
        let failed =
            |error| crate::Error::os(format!("duplicate descriptor {}", options.fd), error);
        return Ok(Listen::inherited(fd.try_clone_to_owned().map_err(failed)?));
    }
    // SAFETY: as the caller promises.
    Ok(Listen::on(unsafe { boundary::text(options.address, "address") }?))
}

/// What is sent to connections that are too many.
///
/// # Safety
///
/// As the header demands of `options`.
unsafe fn refusal<'a>(options: &pace_listener_options_t) -> Result<&'a [u8]> {
    // SAFETY: as the caller promises.
    unsafe { boundary::bytes(options.refusal, options.refusal_size, 1, "refusal") }
}
