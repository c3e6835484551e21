//! Sockets that a supervisor has opened.
//!
//! The core gives all of them at once, once. C takes as many as it has room for, so the rest waits
//! here.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, call, out};
use super::status::*;
use crate::net::{Inherited, inherited};
use core::ffi::c_char;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// As many bytes hold the name of every inherited socket, with its NUL.
pub const PACE_INHERITED_NAME_SIZE: usize = 256;

/// A socket from a supervisor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_inherited_t {
    /// The socket. It is the caller's, who closes it: when the server that listens on it was made
    /// (pace_listener_options_t.fd), or the datagram socket that it was made into
    /// (pace_udp_options_t.fd), or later.
    pub fd: i32,
    /// What the supervisor calls it: the unit, or its FileDescriptorName=; "unknown" if it has no name.
    pub name: [c_char; PACE_INHERITED_NAME_SIZE],
}

/// Takes up to `capacity` of the sockets that systemd, or whoever speaks its protocol (LISTEN_PID,
/// LISTEN_FDS, LISTEN_FDNAMES; see sd_listen_fds(3)), has passed to this process, in their order. *count
/// is how many; 0 when none are left, if there were none, or if they were meant for another process. A
/// socket is given once. They are set not to be inherited further. `sockets` may be NULL if `capacity`
/// is 0. Call it early, while nobody in this process could have closed them.
///
/// PACE_EINVAL names the variable that makes no sense; PACE_EOS names a descriptor that is not open, or
/// no socket: then none was taken.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_inherited_take(
    sockets: *mut pace_inherited_t,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let count = out(count, "count")?;
        if capacity > 0 {
            boundary::check(sockets, "sockets")?;
        }
        let own = std::process::id();
        let owner = OWNER.load(Relaxed);
        if owner != 0 && owner != own {
            // A forked child: they are its parent's, and so may the lock be.
            count.set(0);
            return Ok(());
        }
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.extend(inherited()?);
        OWNER.store(own, Relaxed);
        let taken = capacity.min(left.len());
        for (index, socket) in left.drain(..taken).enumerate() {
            // SAFETY: there is room for `capacity` of them.
            unsafe { sockets.add(index).write(given(socket)) };
        }
        count.set(taken);
        Ok(())
    })
}

/// Those that nobody has taken, and whose they are: a process's number, or 0.
static LEFT: Mutex<VecDeque<Inherited>> = Mutex::new(VecDeque::new());
static OWNER: AtomicU32 = AtomicU32::new(0);

fn given(socket: Inherited) -> pace_inherited_t {
    let mut name = [0; PACE_INHERITED_NAME_SIZE];
    // The protocol allows 255 bytes; the last one stays the NUL.
    let room = &mut name[..PACE_INHERITED_NAME_SIZE - 1];
    for (place, &byte) in room.iter_mut().zip(socket.name().as_bytes()) {
        *place = byte as c_char;
    }
    pace_inherited_t { fd: OwnedFd::from(socket).into_raw_fd(), name }
}
