//! Stream sockets: recv(2) and send(2), without a SIGPIPE.
#![allow(unsafe_code, reason = "recv(2), send(2), a descriptor that is lent")]

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
    check(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Writes what is taken.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let (start, len) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: the bytes are borrowed for the call.
    check(unsafe { libc::send(fd.as_raw_fd(), start, len, libc::MSG_NOSIGNAL) })
}

fn check(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
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
