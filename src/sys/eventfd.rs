//! A counter that epoll can wait for. Never blocks, CLOEXEC.
#![allow(unsafe_code, reason = "eventfd(2)")]

use super::fd::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An eventfd.
#[derive(Debug)]
pub(crate) struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// A counter that stands at zero. Fails when the process or the system is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: `fd` is open, and nobody else knows its number.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Adds one, and so wakes whoever waits for readability, edge-triggered waiters included.
    ///
    /// The only failure is a full counter, which takes 2^64 − 2 calls; it is readable then anyway.
    pub(crate) fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` is eight readable bytes for the length of the call.
        unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes the count and leaves zero; `None` if it was zero.
    pub(crate) fn take(&self) -> Option<u64> {
        let mut count = [0; 8];
        // SAFETY: `count` is eight writable bytes for the length of the call.
        let read =
            unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        (read == 8).then(|| u64::from_ne_bytes(count))
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_and_never_blocks() {
        let counter = EventFd::new().unwrap();
        assert_eq!(counter.take(), None);
        counter.signal();
        counter.signal();
        assert_eq!(counter.take(), Some(2));
        assert_eq!(counter.take(), None);
    }
}
