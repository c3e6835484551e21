//! What every descriptor has in common. To duplicate one, use `BorrowedFd::try_clone_to_owned`, which
//! is already CLOEXEC.
#![allow(unsafe_code, reason = "fcntl(2), flock(2), poll(2)")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

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

/// Reads and writes on this open file wait from now on.
pub(crate) fn set_blocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_GETFL takes no pointer, and a borrowed descriptor is open.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: F_SETFL takes a number.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) })
        .map(drop)
}

/// Whether one of these has something to read now, or has ended. Numbers that are no open descriptors have not.
pub(crate) fn is_any_readable(descriptors: impl Iterator<Item = RawFd>) -> bool {
    let events = libc::POLLIN | libc::POLLPRI | libc::POLLRDHUP;
    let mut all: Vec<_> = descriptors.map(|fd| libc::pollfd { fd, events, revents: 0 }).collect();
    // SAFETY: there are so many valid entries, and the call does not wait.
    let found = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 0) };
    found > 0 && all.iter().any(|one| one.revents & !libc::POLLNVAL != 0)
}

/// What the peer of a stream socket has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    There,
    /// It sends no more. Whether it still reads cannot be seen.
    Finished,
    /// It has reset the connection, or closed a Unix socket: nothing reaches it any more.
    Gone,
}

/// Looks without reading, so what the peer has sent before stays where it is.
pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> Peer {
    let mut one = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: there is one valid entry, and the call does not wait.
    let found = unsafe { libc::poll(&raw mut one, 1, 0) };
    match one.revents {
        _ if found <= 0 => Peer::There,
        events if events & (libc::POLLERR | libc::POLLHUP) != 0 => Peer::Gone,
        events if events & libc::POLLRDHUP != 0 => Peer::Finished,
        _ => Peer::There,
    }
}

/// Takes the lock of this open file, if nobody has it. True, too, on a file system that has no locks.
pub(crate) fn try_lock(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: it takes no pointer, and a borrowed descriptor is open.
    match check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) => {
            !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        }
        Ok(_) => true,
    }
}

/// Gives the lock back, for all copies of the descriptor, those in forked children included.
pub(crate) fn unlock(fd: BorrowedFd<'_>) {
    // SAFETY: as above.
    let _there_may_be_none = unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_UN) };
}

/// Locks these bytes of this open file for reading. Unlike the locks of a process, which go when it closes any descriptor of
/// the file, this one stays until this open file is closed. False: somebody else has it for writing, or there are no locks.
#[cfg(feature = "archive")]
pub(crate) fn lock_range(fd: BorrowedFd<'_>, first: i64, length: i64) -> bool {
    // SAFETY: zero is a value of every field.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_type = libc::F_RDLCK as _;
    (range.l_start, range.l_len) = (first as _, length as _);
    // SAFETY: `range` lives, and a borrowed descriptor is open.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) == 0 }
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
