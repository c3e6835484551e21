//! Datagram sockets.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, Text, call, call_void, callback, consumed, errno, nanos,
    optional_out, out, usable,
};
use super::callback::pace_drop_fn;
use super::conn::{number_of_reason, put_address};
use super::owner::{Owner, Registration, pair};
use super::pool::pace_pool_t;
use super::sized::{self, In, InOut};
use super::status::*;
use crate::net::{Address, DatagramHandler, Datagrams, Reason, UdpBuilder, UdpSocket};
use crate::pool::Shared;
use crate::{Error, Pool};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::ptr;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A UDP socket on a pool. Nothing is queued on the way out: what the kernel has no room for is
/// PACE_EFULL to whoever sent it.
pub struct pace_udp_t {
    socket: UdpSocket,
    shared: Arc<Shared>,
}

/// An IP address and a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct pace_ip_t {
    /// The version of the protocol: 4 or 6.
    pub version: u8,
    /// Room for later versions; zero.
    pub reserved: u8,
    /// The number of the port, in the byte order of the host.
    pub port: u16,
    /// The interface's index, for IPv6 addresses of a link; else 0.
    pub scope: u32,
    /// In network order; 4 bytes of them for IPv4, and zeros.
    pub bytes: [u8; 16],
}

/// A datagram that has arrived, or is to be sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_datagram_t {
    /// The bytes of the datagram; of one that has arrived, up to max_datagram.
    pub bytes: *const c_void,
    /// The number of bytes at `bytes`.
    pub size: usize,
    /// The length of the datagram as it was sent; more than `size` if its end is lost. Not used for sending.
    pub length: usize,
    /// Who has sent it, or whom it is for. An IPv4 address looks like ::ffff:0:0/96 on a socket that
    /// takes both.
    pub peer: pace_ip_t,
}

/// Datagrams have arrived, at least one; they are gone when this returns. `udp` is lent: to answer by
/// it, and not to be freed.
pub type pace_udp_data_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        udp: *mut pace_udp_t,
        datagrams: *const pace_datagram_t,
        count: usize,
    ),
>;

/// An error came instead: on a connected socket that nobody listens at its peer, say. The socket goes
/// on. `os_error` is as for pace_conn_error_fn.
pub type pace_udp_error_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, udp: *mut pace_udp_t, os_error: i32)>;

/// The end, exactly once, and the last call. `reason` is a PACE_REASON_ number.
pub type pace_udp_close_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, udp: *mut pace_udp_t, reason: u32)>;

/// What a datagram socket does. Its hooks never run on two threads at once; they run on threads of the
/// pool, and should not block. To receive on several threads, open several sockets with reuse_port. All
/// but `data` may be NULL. Call pace_udp_hooks_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_udp_hooks_t {
    /// The size of the struct in bytes, as pace_udp_hooks_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Called with datagrams that have arrived. It must not be NULL.
    pub data: pace_udp_data_fn,
    /// Called when an error has come instead of a datagram. NULL: no call.
    pub error: pace_udp_error_fn,
    /// Called once when the socket is closed, with the reason. NULL: no call.
    pub close: pace_udp_close_fn,
    /// The first argument of each call of the hooks.
    pub user_data: *mut c_void,
    /// Runs once, after `close`. NULL: nothing.
    pub drop: pace_drop_fn,
}

/// Settings of a datagram socket. Call pace_udp_options_init() first, and set at least one of fd, bind
/// and connect.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_udp_options_t {
    /// The size of the struct in bytes, as pace_udp_options_init() sets it.
    pub struct_size: u32,
    /// A socket for datagrams that is bound already. It stays the caller's, who may close it at once.
    /// Default −1: none.
    pub fd: i32,
    /// Receives here: "127.0.0.1:80", "[::1]:80" or "*:80". Port 0 is a free port, which
    /// pace_udp_address() tells. A socket that sends to a multicast group does so on the interface
    /// whose IPv4 address it is bound to. NULL: anywhere.
    pub bind: *const c_char,
    /// Sends to this peer, and receives from nobody else. NULL: from everybody.
    pub connect: *const c_char,
    /// Datagrams received in one system call, 1 to 64. Default 32.
    pub batch: u32,
    /// Bytes received of a datagram, 1 to 65535; what is longer is truncated, and says so. The socket
    /// has room for a batch of such, which costs memory where datagrams have been. Default 65535.
    pub max_datagram: u32,
    /// Bytes that the kernel buffers for sending, up to 2^30 (it doubles them). Default 0: the
    /// system's.
    pub send_buffer: u64,
    /// The same for receiving; what does not fit is lost.
    pub receive_buffer: u64,
    /// Hops that what it sends to a group may take, 0 to 255. Default 1: the own network.
    pub multicast_ttl: u32,
    /// An IPv6 socket takes no IPv4. Default: "[::]" takes both.
    pub v6_only: bool,
    /// Several sockets may be bound to the same port; the kernel deals datagrams out by their source.
    /// Default: no.
    pub reuse_port: bool,
    /// May send to broadcast addresses. Default: no.
    pub broadcast: bool,
    /// What it sends to a group comes back to members on this host. Default: yes.
    pub multicast_loop: bool,
}

/// What a socket has done so far. The counts add up exactly while no datagram is being handled. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_udp_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Datagrams that the hook `data` was given.
    pub received: u64,
    /// The bytes of `received`, with those that were cut off.
    pub received_bytes: u64,
    /// Datagrams whose end was cut off.
    pub truncated: u64,
    /// Errors that came instead of datagrams.
    pub errors: u64,
    /// Datagrams that the kernel has taken.
    pub sent: u64,
    /// The bytes of the datagrams that the kernel has taken.
    pub sent_bytes: u64,
    /// Calls of which the kernel took nothing, since it had no room.
    pub refused: u64,
    /// Calls of which the kernel took nothing, for another reason.
    pub failed: u64,
    /// Datagrams that were received and dropped, since more than `max_waiting` bytes of them waited for a completion
    /// queue (pace_cq_udp()). 0 for a socket with hooks.
    pub dropped: u64,
}

/// Fills hooks with NULL: pace_udp_hooks_init(&hooks, sizeof hooks).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_hooks_init(
    hooks: InOut<pace_udp_hooks_t>,
    size: usize,
) -> pace_status_t {
    let none = pace_udp_hooks_t {
        struct_size: 0,
        reserved: 0,
        data: None,
        error: None,
        close: None,
        user_data: ptr::null_mut(),
        drop: None,
    };
    call(|| hooks.init(size, none, "hooks"))
}

/// Fills options with the defaults: pace_udp_options_init(&options, sizeof options).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_options_init(
    options: InOut<pace_udp_options_t>,
    size: usize,
) -> pace_status_t {
    let defaults = pace_udp_options_t {
        struct_size: 0,
        fd: -1,
        bind: ptr::null(),
        connect: ptr::null(),
        batch: 32,
        max_datagram: 65535,
        send_buffer: 0,
        receive_buffer: 0,
        multicast_ttl: 1,
        v6_only: false,
        reuse_port: false,
        broadcast: false,
        multicast_loop: true,
    };
    call(|| options.init(size, defaults, "options"))
}

/// Reads an address with a port, "127.0.0.1:80", "[::1]:80" or "*:80".
///
/// PACE_EINVAL for text that is none.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_ip_read(
    text: Text,
    ip: Option<&mut MaybeUninit<pace_ip_t>>,
) -> pace_status_t {
    call(|| {
        let to = out(ip, "ip")?;
        to.set(as_data(read_address(text, "text")?));
        Ok(())
    })
}

/// The opposite: text of an address, in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE is enough.
///
/// PACE_EINVAL if `size` is not enough, or the version is not 4 or 6.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ip_text(
    ip: *const pace_ip_t,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let address = address_of(unsafe { boundary::borrow(ip, "ip") }?)?;
        // SAFETY: as the header demands.
        unsafe { put_address(&Address::Tcp(address), text, size) }
    })
}

/// Opens a datagram socket. `options` and all that they point to are copied. If it fails, nothing of
/// `hooks` has moved; unless it fails after the hook `close` was called, because the pool has shut
/// down at this moment: then `drop` has run.
///
/// PACE_EINVAL names the setting, its value and its bounds; PACE_EOS names the address that could not be
/// bound or connected to, and the reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN;
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_new(
    pool: Option<&pace_pool_t>,
    options: In<pace_udp_options_t>,
    hooks: *const pace_udp_hooks_t,
    udp: Option<&mut MaybeUninit<*mut pace_udp_t>>,
) -> pace_status_t {
    call(|| {
        let pool = &usable(pool)?.pool;
        let to = out(udp, "udp")?;
        let options = options.read("options")?;
        // SAFETY: as the header demands.
        let builder = unsafe { builder(pool, &options) }?;
        // SAFETY: as the header demands.
        let (registration, handler) = unsafe { Handler::read(hooks, pool.shared()) }?;
        match builder.serve(handler) {
            Ok(socket) => {
                let shared = Arc::clone(pool.shared());
                to.set(Box::into_raw(Box::new(pace_udp_t::new(socket, shared))));
                registration.keep();
                Ok(())
            }
            Err(error) => {
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// Where it receives, as text, with the port that it got: in `size` bytes at `text`, with a NUL.
/// PACE_ADDRESS_SIZE is enough.
///
/// PACE_EINVAL if `size` is not enough.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_address(
    udp: Option<&pace_udp_t>,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { put_address(&Address::Tcp(usable(udp)?.socket.address()), text, size) })
}

/// Sends a datagram to the peer that the socket is connected to, without waiting and without a queue.
///
/// PACE_EFULL: the kernel has no room, and the datagram is not sent. PACE_EOS names the address, and
/// the reason, which on a connected socket may be an earlier datagram's. PACE_EINVAL if it is not
/// connected; PACE_ESTALE if it is closed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_send(
    udp: Option<&pace_udp_t>,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        // SAFETY: as the header demands.
        Ok(udp.socket.send(unsafe { boundary::bytes(bytes, size, 1, "bytes") }?)?)
    })
}

/// Sends a datagram to a peer. Otherwise as pace_udp_send().
///
/// PACE_EFULL, PACE_EOS, PACE_ESTALE as there; PACE_EINVAL if the address's version is not 4 or 6.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_send_to(
    udp: Option<&pace_udp_t>,
    bytes: *const c_void,
    size: usize,
    to: *const pace_ip_t,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        // SAFETY: as the header demands.
        let to = address_of(unsafe { boundary::borrow(to, "to") }?)?;
        // SAFETY: as the header demands.
        Ok(udp.socket.send_to(unsafe { boundary::bytes(bytes, size, 1, "bytes") }?, to)?)
    })
}

/// Sends datagrams to their peers in order, up to 64 in one system call. *sent is how many the kernel
/// has taken; for the reason why it did not take the next one, try that.
///
/// PACE_EFULL, PACE_EOS, PACE_ESTALE as for pace_udp_send(), if it did not take the first; PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_send_batch(
    udp: Option<&pace_udp_t>,
    datagrams: *const pace_datagram_t,
    count: usize,
    sent: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        let to = out(sent, "sent")?;
        // SAFETY: as the header demands.
        let all = unsafe { all_datagrams(datagrams, count) }?;
        to.set(udp.socket.send_batch(&all)?);
        Ok(())
    })
}

/// Receives what is sent to this group, "239.1.2.3" or "ff02::1", on the interface of this index; 0:
/// the system's choice.
///
/// PACE_EOS names the group, and the reason; PACE_EINVAL for text that is no address; PACE_ESTALE if the
/// socket is closed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_join_multicast(
    udp: Option<&pace_udp_t>,
    group: Text,
    interface: u32,
) -> pace_status_t {
    call(|| Ok(usable(udp)?.socket.join_multicast(read_group(group)?, interface)?))
}

/// The opposite of pace_udp_join_multicast().
///
/// PACE_EOS, PACE_EINVAL, PACE_ESTALE as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_leave_multicast(
    udp: Option<&pace_udp_t>,
    group: Text,
    interface: u32,
) -> pace_status_t {
    call(|| Ok(usable(udp)?.socket.leave_multicast(read_group(group)?, interface)?))
}

/// Closes: from here on nothing is sent, and what has arrived is dropped. The hook `close` follows on a
/// thread of the pool. A hook that is running is not interrupted. The socket is to be freed still.
///
/// PACE_ESTALE if it is closed already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_close(udp: Option<&pace_udp_t>) -> pace_status_t {
    call(|| Ok(usable(udp)?.socket.close()?))
}

/// Whether it is not closed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_is_open(
    udp: Option<&pace_udp_t>,
    is_open: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        out(is_open, "is_open")?.set(udp.socket.is_open());
        Ok(())
    })
}

/// Waits until it has ended: its hook `close` has returned, and its port is free.
///
/// PACE_EDEADLOCK on a thread of its pool.
///
/// Threads: any but the pool's. In handlers: no.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_wait(udp: Option<&pace_udp_t>) -> pace_status_t {
    call(|| Ok(usable(udp)?.socket.wait()?))
}

/// Handles what has arrived, and closes. What is not handled after `time_ns` is dropped. *drained says
/// whether everything was handled; `drained` may be NULL.
///
/// It returns when the socket has ended, or 1 s after `time_ns` at the latest. Inside a handler of the
/// pool it is only a request, and returns at once with false.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_drain(
    udp: Option<&pace_udp_t>,
    time_ns: u64,
    drained: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        let to = optional_out(drained);
        to.set(udp.socket.drain(nanos(time_ns)).drained);
        Ok(())
    })
}

/// What it has counted; the counters add up at rest.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_stats(
    udp: Option<&pace_udp_t>,
    stats: InOut<pace_udp_stats_t>,
) -> pace_status_t {
    call(|| {
        let udp = usable(udp)?;
        let room = stats.room("stats")?;
        let stats = udp.socket.stats();
        room.fill(pace_udp_stats_t {
            struct_size: 0,
            reserved: 0,
            received: stats.received,
            received_bytes: stats.received_bytes,
            truncated: stats.truncated,
            errors: stats.errors,
            sent: stats.sent,
            sent_bytes: stats.sent_bytes,
            refused: stats.refused,
            failed: stats.failed,
            dropped: stats.dropped,
        });
        Ok(())
    })
}

/// Closes a socket if that has not been done, and frees it. It waits until its hook `close` has returned and `drop` has
/// run, unless pace_udp_close() was called before. NULL is a no-op. In a forked child it does nothing.
///
/// Threads: any, as long as no other uses the socket any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_udp_free(udp: Option<Box<pace_udp_t>>) {
    call_void(|| drop(consumed(udp)));
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_udp_hooks_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_udp_hooks_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_udp_hooks_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_udp_options_t {
    const FIRST: usize = 56;
    const NAME: &'static str = "pace_udp_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("v6_only", offset_of!(pace_udp_options_t, v6_only)),
        ("reuse_port", offset_of!(pace_udp_options_t, reuse_port)),
        ("broadcast", offset_of!(pace_udp_options_t, broadcast)),
        ("multicast_loop", offset_of!(pace_udp_options_t, multicast_loop)),
    ];
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_udp_stats_t {
    const FIRST: usize = 72;
    const NAME: &'static str = "pace_udp_stats_t";
}

impl Handle for pace_udp_t {
    const NAME: &'static str = "udp";

    fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }
}

impl pace_udp_t {
    pub(super) fn new(socket: UdpSocket, shared: Arc<Shared>) -> Self {
        Self { socket, shared }
    }
}

/// # Safety
///
/// As the header demands of `options`.
pub(super) unsafe fn builder(pool: &Pool, options: &pace_udp_options_t) -> Result<UdpBuilder> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut builder = UdpSocket::builder(pool)
        .batch(options.batch as usize)
        .max_datagram(options.max_datagram as usize)
        .multicast_ttl(options.multicast_ttl)
        .v6_only(options.v6_only)
        .reuse_port(options.reuse_port)
        .broadcast(options.broadcast)
        .multicast_loop(options.multicast_loop);
    if options.fd >= 0 {
        // SAFETY: not −1. The header demands that it is open; if it is not, system calls fail.
        let fd = unsafe { BorrowedFd::borrow_raw(options.fd) };
        let failed = |error| Error::os(format!("duplicate descriptor {}", options.fd), error);
        builder = builder.bind_to(fd.try_clone_to_owned().map_err(failed)?);
    } else if !options.bind.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        builder = builder.bind(unsafe { boundary::text(options.bind, "bind") }?);
    }
    if !options.connect.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        builder = builder.connect(unsafe { boundary::text(options.connect, "connect") }?);
    }
    if options.send_buffer != 0 {
        builder = builder.send_buffer(size(options.send_buffer));
    }
    if options.receive_buffer != 0 {
        builder = builder.receive_buffer(size(options.receive_buffer));
    }
    Ok(builder)
}

// --- addresses --------------------------------------------------------------------------------------

pub(super) fn as_data(address: SocketAddr) -> pace_ip_t {
    let mut bytes = [0; 16];
    let (version, scope) = match address {
        SocketAddr::V4(v4) => {
            bytes[..4].copy_from_slice(&v4.ip().octets());
            (4, 0)
        }
        SocketAddr::V6(v6) => {
            bytes = v6.ip().octets();
            (6, v6.scope_id())
        }
    };
    pace_ip_t { version, reserved: 0, port: address.port(), scope, bytes }
}

fn address_of(ip: &pace_ip_t) -> Result<SocketAddr> {
    match ip.version {
        4 => {
            let [a, b, c, d, ..] = ip.bytes;
            Ok(SocketAddr::new([a, b, c, d].into(), ip.port))
        }
        6 => Ok(SocketAddrV6::new(Ipv6Addr::from(ip.bytes), ip.port, 0, ip.scope).into()),
        other => Err(Failure::invalid("version", other, "4 or 6")),
    }
}

fn read_address(text: Text, name: &str) -> Result<SocketAddr> {
    use crate::net::ToAddress;
    let address = text.get(name)?.to_address()?;
    let allowed = "an IP address with a port, or *:port";
    address.tcp().ok_or_else(|| Failure::invalid(name, &address, allowed))
}

fn read_group(text: Text) -> Result<IpAddr> {
    let text = text.get("group")?;
    text.parse().map_err(|_| Failure::invalid("group", text, "an IP address"))
}

/// # Safety
///
/// If `count` is not zero, `datagrams` is NULL or points to as many, each with its bytes.
unsafe fn all_datagrams<'a>(
    datagrams: *const pace_datagram_t,
    count: usize,
) -> Result<Vec<(&'a [u8], SocketAddr)>> {
    let size = size_of::<pace_datagram_t>();
    // SAFETY: as the caller promises. This refuses NULL, and more than a slice may have.
    if unsafe { boundary::bytes(datagrams.cast(), count, size, "datagrams") }?.is_empty() {
        return Ok(Vec::new());
    }
    boundary::check(datagrams, "datagrams")?;
    // SAFETY: aligned, and as many as bytes were found good for.
    let all = unsafe { core::slice::from_raw_parts(datagrams, count) };
    let parts = all.iter().map(|datagram| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { boundary::bytes(datagram.bytes, datagram.size, 1, "bytes") }?;
        Ok((bytes, address_of(&datagram.peer)?))
    });
    parts.collect()
}

// --- what calls C -----------------------------------------------------------------------------------

type DataFn = unsafe extern "C" fn(*mut c_void, *mut pace_udp_t, *const pace_datagram_t, usize);

struct Handler {
    hooks: pace_udp_hooks_t,
    data: DataFn,
    owner: Owner,
    shared: Arc<Shared>,
    /// What hooks are lent, made when the first one is called.
    lent: Option<Box<pace_udp_t>>,
    /// As many datagrams as have come at once, so that none is allocated once warm.
    datagrams: Vec<pace_datagram_t>,
}

// SAFETY: the header demands that hooks and user_data may be used by any thread.
unsafe impl Send for Handler {}

impl Handler {
    /// # Safety
    ///
    /// `hooks` is NULL or a struct as its first field says.
    unsafe fn read(
        hooks: *const pace_udp_hooks_t,
        shared: &Arc<Shared>,
    ) -> Result<(Registration, Self)> {
        // SAFETY: as the caller promises.
        let hooks = unsafe { sized::read(hooks, "hooks") }?;
        let data = callback(hooks.data, "hooks.data")?;
        let (registration, owner) = pair(hooks.user_data, hooks.drop);
        let shared = Arc::clone(shared);
        let made = Self { hooks, data, owner, shared, lent: None, datagrams: Vec::new() };
        Ok((registration, made))
    }

    /// What a hook is given. None: the socket could not be made.
    fn arguments(&mut self, socket: &UdpSocket) -> Option<(*mut c_void, *mut pace_udp_t)> {
        let data = self.owner.enter()?;
        let shared = &self.shared;
        let lent = self
            .lent
            .get_or_insert_with(|| Box::new(pace_udp_t::new(socket.clone(), Arc::clone(shared))));
        Some((data, &raw mut **lent))
    }
}

impl DatagramHandler for Handler {
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
        let Some((data, udp)) = self.arguments(socket) else { return };
        self.datagrams.clear();
        self.datagrams.extend(datagrams.iter().map(|datagram| pace_datagram_t {
            bytes: datagram.bytes.as_ptr().cast(),
            size: datagram.bytes.len(),
            length: datagram.length,
            peer: as_data(datagram.from),
        }));
        // SAFETY: as the header demands, a hook takes what came with it.
        unsafe { (self.data)(data, udp, self.datagrams.as_ptr(), self.datagrams.len()) }
    }

    fn error(&mut self, socket: &UdpSocket, kind: ErrorKind) {
        let hook = self.hooks.error;
        if let (Some(hook), Some((data, udp))) = (hook, self.arguments(socket)) {
            // SAFETY: as above.
            unsafe { hook(data, udp, errno(kind)) }
        }
    }

    fn close(&mut self, socket: &UdpSocket, reason: Reason) {
        let hook = self.hooks.close;
        if let (Some(hook), Some((data, udp))) = (hook, self.arguments(socket)) {
            // SAFETY: as above.
            unsafe { hook(data, udp, number_of_reason(reason).0) }
        }
    }
}
