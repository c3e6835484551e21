//! What every descriptor has in common. To duplicate one, use `BorrowedFd::try_clone_to_owned`, which
//! is already CLOEXEC.
#![allow(unsafe_code, reason = "fcntl(2)")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel's answer as a result: -1 stands for this thread's errno.
#[inline]
pub(super) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn flags(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    // SAFETY: F_GETFL takes no pointer, and a borrowed descriptor is open.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })
}

/// Whether reads and writes on this open file return `WouldBlock` instead of waiting.
pub(crate) fn is_nonblocking(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(flags(fd)? & libc::O_NONBLOCK != 0)
}

/// Sets or clears `O_NONBLOCK`, which all duplicates of the descriptor share.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    let before = flags(fd)?;
    let after = if nonblocking { before | libc::O_NONBLOCK } else { before & !libc::O_NONBLOCK };
    if after != before {
        // SAFETY: F_SETFL takes an integer, and a borrowed descriptor is open.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, after) })?;
    }
    Ok(())
}
