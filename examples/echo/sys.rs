//! Waiting for many sockets, for the demo's load: the standard library has no words for that.
#![allow(unsafe_code, reason = "system calls; each wrapper upholds what its call asks for")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Turns the C convention of `-1` and `errno` into a `Result`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Waits for many sockets at once, level-triggered; for the demo's load generator.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: a flag in, a descriptor out.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: epoll_create1 has just created this descriptor, and nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Reports `key` whenever `fd` can be read.
    pub fn add(&self, fd: impl AsFd, key: usize) -> io::Result<()> {
        let (epoll, fd) = (self.0.as_raw_fd(), fd.as_fd().as_raw_fd());
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key as u64 };
        // SAFETY: both descriptors are open, and `event` lives through the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) }).map(drop)
    }

    /// Puts the keys of what can be read into `keys`; none after `limit`, or when a signal came.
    pub fn wait(&self, keys: &mut Vec<usize>, limit: Duration) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let (room, limit) = (events.len() as i32, limit.as_millis() as i32);
        // SAFETY: the kernel fills at most `room` entries of `events`.
        let filled =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, limit) };
        keys.clear();
        match check(filled) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
            Ok(filled) => {
                keys.extend(events[..filled as usize].iter().map(|event| event.u64 as usize));
                Ok(())
            }
        }
    }
}
