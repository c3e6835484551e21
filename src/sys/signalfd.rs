//! Signals as a descriptor.
#![allow(unsafe_code, reason = "signalfd(2), pthread_sigmask(3)")]

use super::fd::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Readable while one of its signals is pending for the process. Never blocks, CLOEXEC.
#[derive(Debug)]
pub(crate) struct SignalFd {
    fd: OwnedFd,
}

impl SignalFd {
    /// Blocks `signals`, valid ones, in the calling thread, and opens a descriptor for them.
    pub(crate) fn block(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: a set is plain bits, and is emptied before it is used.
        let mut set = unsafe { core::mem::zeroed() };
        // SAFETY: `set` is writable.
        unsafe { libc::sigemptyset(&mut set) };
        for &signal in signals {
            // SAFETY: `set` is writable; an impossible number is an error.
            check(unsafe { libc::sigaddset(&mut set, signal) })?;
        }
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: `set` is readable for the length of the call.
        let fd = check(unsafe { libc::signalfd(-1, &set, flags) })?;
        // SAFETY: `fd` is open, and nobody else knows its number.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: `set` is readable; what was blocked before is not asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, core::ptr::null_mut()) } {
            0 => Ok(Self { fd }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Takes one pending signal. None: none is.
    pub(crate) fn take(&mut self) -> Option<i32> {
        // SAFETY: plain numbers.
        let mut info: libc::signalfd_siginfo = unsafe { core::mem::zeroed() };
        let size = size_of_val(&info);
        // SAFETY: `info` is writable for `size` bytes; the kernel writes whole entries only.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (got == size as isize).then_some(info.ssi_signo as i32)
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
