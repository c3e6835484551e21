//! One absolute deadline on the monotonic clock, behind a descriptor.
//!
//! As an alarm it is polled: for hosts that put the pool's descriptor into a loop of their own and
//! have no time-out to give to a wait. A thread can also park on it: unlike a futex's, its time-out
//! can be set and taken back while the thread is parked, without waking it.
#![allow(unsafe_code, reason = "timerfd_create(2)")]

use super::fd::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A timerfd, CLOEXEC.
#[derive(Debug)]
pub(crate) struct TimerFd {
    fd: OwnedFd,
}

impl TimerFd {
    /// A timer without a deadline. Fails when the process or the system is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_flags(libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
    }

    /// The same, for threads to [wait](Self::wait) on.
    pub(crate) fn blocking() -> io::Result<Self> {
        Self::with_flags(libc::TFD_CLOEXEC)
    }

    /// Waits until the deadline has passed, or until a signal; for ever if there is none. Only on a
    /// timer that is [blocking](Self::blocking).
    pub(crate) fn wait(&self) {
        let mut expiries = 0u64;
        // SAFETY: the buffer has the eight bytes that a timerfd writes. However the call ends, the
        // caller looks why it is awake.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut expiries).cast(), 8) };
    }

    fn with_flags(flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: `fd` is open, and nobody else knows its number.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Becomes readable at `deadline`, in nanoseconds of the monotonic clock, at once if that has
    /// passed. It replaces the deadline before it, and an expiry that nobody took is forgotten.
    pub(crate) fn set(&self, deadline: u64) -> io::Result<()> {
        // A zero would disarm the timer, and every other instant of the past means "now".
        self.set_time(deadline.max(1))
    }

    /// Forgets the deadline, and an expiry that nobody took.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.set_time(0)
    }

    fn set_time(&self, nanos: u64) -> io::Result<()> {
        let time = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (nanos / NANOS_PER_SEC) as libc::time_t,
                tv_nsec: (nanos % NANOS_PER_SEC) as _,
            },
        };
        let fd = self.fd.as_raw_fd();
        // SAFETY: `time` is readable for the length of the call; NULL asks for no old value.
        let answer = unsafe {
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &time, core::ptr::null_mut())
        };
        check(answer).map(drop)
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::epoll::{EDGE, Epoll, EpollEvent, IN};

    fn watched() -> (TimerFd, Epoll) {
        let (timer, epoll) = (TimerFd::new().unwrap(), Epoll::new().unwrap());
        epoll.add(timer.as_fd(), IN | EDGE, 7).unwrap();
        (timer, epoll)
    }

    fn fired(epoll: &Epoll, timeout: Option<u64>) -> bool {
        epoll.wait(&mut [EpollEvent::default()], timeout).unwrap() == 1
    }

    /// Goal: each deadline is an edge of its own, though nobody reads the timer.
    #[test]
    fn a_deadline_that_has_passed_fires_at_once_and_once() {
        let (timer, epoll) = watched();
        assert!(!fired(&epoll, Some(0)));
        for deadline in [0, 1, crate::sys::clock::now()] {
            timer.set(deadline).unwrap();
            assert!(fired(&epoll, None));
            assert!(!fired(&epoll, Some(0)));
        }
    }

    #[test]
    fn clear_and_set_forget_what_was_there() {
        let (timer, epoll) = watched();
        timer.set(1).unwrap();
        timer.clear().unwrap();
        assert!(!fired(&epoll, Some(0)));
        timer.set(1).unwrap();
        timer.set(u64::MAX).unwrap();
        assert!(!fired(&epoll, Some(0)));
    }
}
