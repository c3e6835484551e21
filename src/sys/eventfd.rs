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

    /// Sets the count to zero: it is not readable before the next signal.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        // SAFETY: `count` is eight writable bytes. The only failure is a count of zero already.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
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
    use crate::sys::epoll::{EDGE, Epoll, EpollEvent, IN};

    /// Goal: what the doorbell builds on. Method: nobody ever reads the counter.
    #[test]
    fn every_signal_is_an_edge_though_the_count_never_falls() {
        let (counter, epoll) = (EventFd::new().unwrap(), Epoll::new().unwrap());
        epoll.add(counter.as_fd(), IN | EDGE, 1).unwrap();
        let mut events = [EpollEvent::default()];
        for _ in 0..3 {
            assert_eq!(epoll.wait(&mut events, Some(0)).unwrap(), 0);
            counter.signal();
            assert_eq!(epoll.wait(&mut events, Some(0)).unwrap(), 1);
        }
    }
}
