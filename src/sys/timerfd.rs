//! One absolute deadline on the monotonic clock that can be polled as a descriptor. It is for hosts
//! that put the pool's descriptor into a loop of their own: they have no time-out to give to a wait.
#![allow(unsafe_code, reason = "timerfd_create(2)")]

use super::fd::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A timerfd. Never blocks, CLOEXEC.
#[derive(Debug)]
pub(crate) struct TimerFd {
    fd: OwnedFd,
}

impl TimerFd {
    /// A timer without a deadline. Fails when the process or the system is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
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

    /// Whether the deadline has passed since it was set; only the first call says so.
    pub(crate) fn take(&self) -> bool {
        let mut expiries = [0u8; 8];
        // SAFETY: `expiries` is eight writable bytes for the length of the call.
        let read = unsafe {
            libc::read(self.fd.as_raw_fd(), expiries.as_mut_ptr().cast(), expiries.len())
        };
        read == 8
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

    #[test]
    fn a_past_deadline_is_due_at_once_and_taken_once() {
        let timer = TimerFd::new().unwrap();
        assert!(!timer.take());
        timer.set(0).unwrap();
        assert!(timer.take());
        assert!(!timer.take());
    }

    #[test]
    fn clear_forgets_an_expiry() {
        let timer = TimerFd::new().unwrap();
        timer.set(1).unwrap();
        timer.clear().unwrap();
        assert!(!timer.take());
    }

    #[test]
    fn epoll_waits_for_it() {
        let (timer, epoll) = (TimerFd::new().unwrap(), Epoll::new().unwrap());
        epoll.add(timer.as_fd(), IN | EDGE, 7).unwrap();
        timer.set(1).unwrap();
        let mut events = [EpollEvent::default(); 2];
        assert_eq!(epoll.wait(&mut events, None).unwrap(), 1);
        assert_eq!((events[0].token(), events[0].bits()), (7, IN));
        assert!(timer.take());
    }
}
