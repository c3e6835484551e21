//! Stream sockets: recvfrom(2) and sendto(2), without a SIGPIPE.
//!
//! The C library's own functions are points at which a thread may be cancelled, and prepare for that
//! with two locked instructions each, in any process that has threads. Nobody cancels a thread of ours.
#![allow(unsafe_code, reason = "recvfrom(2), sendto(2), a descriptor that is lent")]

#[cfg(not(paceline_tsan))]
use core::ptr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// A descriptor in the hands of somebody who does not own it, as long as its owner keeps it open. Behind
/// that the number may be another's: whoever lends it takes it back before.
#[derive(Debug)]
pub(crate) struct Lent(RawFd);

impl Lent {
    pub(crate) fn new(fd: BorrowedFd<'_>) -> Self {
        Self(fd.as_raw_fd())
    }
}

impl AsFd for Lent {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open, as above; and no memory depends on it.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// Reads what is there. 0: the peer has finished, or there was no room for anything.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the room is borrowed for the call.
    check(unsafe { recvfrom(fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) })
}

/// Writes what is taken.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are borrowed for the call.
    check(unsafe { sendto(fd.as_raw_fd(), bytes.as_ptr(), bytes.len()) })
}

#[inline]
fn check(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// # Safety
/// `len` bytes at `buffer` may be written to.
#[cfg(not(paceline_tsan))]
#[inline]
unsafe fn recvfrom(fd: i32, buffer: *mut u8, len: usize) -> isize {
    let none = ptr::null_mut::<u8>();
    // SAFETY: as promised; no address is asked for.
    unsafe { libc::syscall(libc::SYS_recvfrom, fd, buffer, len, 0, none, none) as isize }
}

/// # Safety
/// `len` bytes at `bytes` may be read.
#[cfg(not(paceline_tsan))]
#[inline]
unsafe fn sendto(fd: i32, bytes: *const u8, len: usize) -> isize {
    let (flags, none) = (libc::MSG_NOSIGNAL, ptr::null::<u8>());
    // SAFETY: as promised; no address is given.
    unsafe { libc::syscall(libc::SYS_sendto, fd, bytes, len, flags, none, 0_usize) as isize }
}

// ThreadSanitizer knows what is handed over by a socket only if the C library is asked.

/// # Safety
/// As above.
#[cfg(paceline_tsan)]
unsafe fn recvfrom(fd: i32, buffer: *mut u8, len: usize) -> isize {
    // SAFETY: as promised.
    unsafe { libc::recv(fd, buffer.cast(), len, 0) }
}

/// # Safety
/// As above.
#[cfg(paceline_tsan)]
unsafe fn sendto(fd: i32, bytes: *const u8, len: usize) -> isize {
    // SAFETY: as promised.
    unsafe { libc::send(fd, bytes.cast(), len, libc::MSG_NOSIGNAL) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_go_through_and_ends_are_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut buffer = [0; 8];
        let error = receive(ours.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(send(theirs.as_fd(), b"hello").unwrap(), 5);
        assert_eq!(receive(ours.as_fd(), &mut buffer[..2]).unwrap(), 2);
        assert_eq!(receive(ours.as_fd(), &mut buffer[2..]).unwrap(), 3);
        assert_eq!(&buffer[..5], b"hello");
        // Not a close: a child that another test forks would keep the descriptor open for a while.
        theirs.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(receive(ours.as_fd(), &mut buffer).unwrap(), 0);
        assert_eq!(send(ours.as_fd(), b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
