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

/// Whether reads and writes on this open file return `WouldBlock` instead of waiting.
pub(crate) fn is_nonblocking(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: F_GETFL takes no pointer, and a borrowed descriptor is open.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    Ok(flags & libc::O_NONBLOCK != 0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn nonblocking_is_seen_as_it_is_set() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        for nonblocking in [false, true, false] {
            socket.set_nonblocking(nonblocking).unwrap();
            assert_eq!(is_nonblocking(socket.as_fd()).unwrap(), nonblocking);
        }
    }
}
