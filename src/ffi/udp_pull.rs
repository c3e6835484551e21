//! Datagram sockets that are pulled: data for hosts that cannot be called back.
//!
//! What a thread has pulled stays its own until it pulls again, so nothing has to be named or given
//! back.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Out, Result, TIMED_OUT, call, call_void, errno, nanos};
use super::pool::{open as open_pool, pace_pool_t};
use super::sized;
use super::status::*;
use super::udp::{as_data, builder, pace_ip_t, pace_udp_options_t, pace_udp_t};
use crate::net::{PulledUdp, UdpEvent};
use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A datagram has arrived.
pub const PACE_UDP_EVENT_DATAGRAM: u32 = 0;
/// An error came instead; the socket goes on.
pub const PACE_UDP_EVENT_ERROR: u32 = 1;

/// A datagram socket without hooks: what comes is pulled.
pub struct pace_udp_pulled_t {
    udp: pace_udp_t,
    pulled: PulledUdp,
}

/// What has come to a datagram socket. Its bytes stay where they are until the thread that has pulled it
/// pulls again, from whatever socket, or ends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_udp_event_t {
    /// PACE_UDP_EVENT_.
    pub kind: u32,
    /// ERROR: as for pace_udp_error_fn. DATAGRAM: 0.
    pub os_error: i32,
    /// DATAGRAM: its bytes, up to max_datagram.
    pub bytes: *const c_void,
    /// How many.
    pub size: usize,
    /// How long it was; more than `size` if its end is lost.
    pub length: usize,
    /// Who has sent it. An IPv4 address looks like ::ffff:0:0/96 on a socket that takes both.
    pub peer: pace_ip_t,
}

/// Opens a datagram socket, as pace_udp_new() does, for a host that pulls what comes. Of what it has
/// not pulled up to `max_waiting` bytes are kept, 128 for each datagram included: 1024 to 2^40.
/// Datagrams beyond that are dropped, and counted as such (pace_udp_stats_t).
///
/// As pace_udp_new(); PACE_EINVAL for `max_waiting`.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_pulled_new(
    pool: *mut pace_pool_t,
    options: *const pace_udp_options_t,
    max_waiting: u64,
    pulled: *mut *mut pace_udp_pulled_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = &unsafe { open_pool(pool) }?.pool;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(pulled, "pulled") }?;
        // SAFETY: as the header demands.
        let options = unsafe { sized::read(options, "options") }?;
        let most = usize::try_from(max_waiting).unwrap_or(usize::MAX);
        // SAFETY: as the header demands.
        let pulled = unsafe { builder(pool, &options) }?.serve_pulled(most)?;
        let udp = pace_udp_t::new(pulled.socket().clone(), Arc::clone(pool.shared()));
        to.set(Box::into_raw(Box::new(pace_udp_pulled_t { udp, pulled })));
        Ok(())
    })
}

/// *udp is the socket itself, for all that takes one but pace_udp_free(): to send by it, for its address,
/// its end and its counters. It lives as long as `pulled`.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_pulled_udp(
    pulled: *mut pace_udp_pulled_t,
    udp: *mut *mut pace_udp_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { open(pulled) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(udp, "udp") }?;
        // SAFETY: it is not NULL; only the place is computed.
        to.set(unsafe { &raw mut (*pulled).udp });
        Ok(())
    })
}

/// Waits for up to `timeout_ns` for events, and takes up to `capacity` of them, in the order in which
/// they came. PACE_OK: *count is 1 or more.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the socket is closed, and all that had come before was
/// pulled; PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_pulled_pull(
    pulled: *mut pace_udp_pulled_t,
    events: *mut pace_udp_event_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = &unsafe { open(pulled) }?.pulled;
        boundary::check(events, "events")?;
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        let mut got = PULLED.try_with(RefCell::take).unwrap_or_default();
        got.clear();
        let result = pulled.pull(&mut got, capacity, nanos(timeout_ns));
        for (index, event) in got.iter().enumerate() {
            // SAFETY: no more than `capacity` were pulled, and there is room for as many.
            unsafe { events.add(index).write(shown(event)) };
        }
        // While the thread ends there is no place any more, and it has nothing.
        let is_kept = PULLED.try_with(|place| place.replace(got)).is_ok();
        match result? {
            some @ 1.. if is_kept => {
                count.set(some);
                Ok(())
            }
            _ => Err(TIMED_OUT),
        }
    })
}

/// *fd is readable while a pull would not wait. It belongs to the socket: never read or close it.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_pulled_pollable(
    pulled: *mut pace_udp_pulled_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(pulled.pulled.pollable()?.as_raw_fd());
        Ok(())
    })
}

/// Closes the socket if that has not been done, and frees it. What nobody has pulled is dropped. NULL is
/// a no-op. In a forked child it does nothing.
///
/// Threads: any, as long as no other uses the socket any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_udp_pulled_free(pulled: *mut pace_udp_pulled_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_udp_pulled_new` and is used by nobody else.
        if unsafe { open(pulled) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(pulled) });
        }
    });
}

thread_local! {
    /// What this thread has pulled last.
    static PULLED: RefCell<Vec<UdpEvent>> = const { RefCell::new(Vec::new()) };
}

/// The socket behind an argument, in the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_udp_pulled_new` and has not been freed.
unsafe fn open<'a>(pulled: *const pace_udp_pulled_t) -> Result<&'a pace_udp_pulled_t> {
    // SAFETY: as the caller promises.
    let pulled = unsafe { boundary::borrow(pulled, "pulled") }?;
    if pulled.udp.is_forked() { Err(FORKED) } else { Ok(pulled) }
}

/// Points into the event.
fn shown(event: &UdpEvent) -> pace_udp_event_t {
    let nobody = pace_ip_t { version: 0, reserved: 0, port: 0, scope: 0, bytes: [0; 16] };
    let kind = PACE_UDP_EVENT_DATAGRAM;
    let nothing = pace_udp_event_t {
        kind,
        os_error: 0,
        bytes: ptr::null(),
        size: 0,
        length: 0,
        peer: nobody,
    };
    match event {
        UdpEvent::Datagram { bytes, from, length } => pace_udp_event_t {
            bytes: bytes.as_ptr().cast(),
            size: bytes.len(),
            length: *length,
            peer: as_data(*from),
            ..nothing
        },
        UdpEvent::Error(error) => {
            pace_udp_event_t { kind: PACE_UDP_EVENT_ERROR, os_error: errno(*error), ..nothing }
        }
    }
}
