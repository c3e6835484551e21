//! epoll(7), with time-outs in nanoseconds.
#![allow(unsafe_code, reason = "epoll_create1(2), epoll_ctl(2), epoll_pwait2(2)")]

use super::fd::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

pub(crate) const IN: u32 = libc::EPOLLIN as u32;
pub(crate) const PRI: u32 = libc::EPOLLPRI as u32;
pub(crate) const OUT: u32 = libc::EPOLLOUT as u32;
pub(crate) const ERR: u32 = libc::EPOLLERR as u32;
pub(crate) const HUP: u32 = libc::EPOLLHUP as u32;
pub(crate) const RDHUP: u32 = libc::EPOLLRDHUP as u32;
pub(crate) const EDGE: u32 = libc::EPOLLET as u32;
pub(crate) const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// What the kernel reports: a set of event bits and the token that was given with the descriptor.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct EpollEvent(libc::epoll_event);

impl EpollEvent {
    #[inline]
    pub(crate) const fn new(bits: u32, token: u64) -> Self {
        Self(libc::epoll_event { events: bits, u64: token })
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0.events
    }

    #[inline]
    pub(crate) fn token(self) -> u64 {
        self.0.u64
    }
}

impl Default for EpollEvent {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

/// An epoll instance. Any thread may use it, also while others wait.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
    /// Linux ≥ 5.11, and not filtered away by a sandbox that is older than it.
    counts_nanos: bool,
}

impl Epoll {
    /// Fails when the process or the system is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `fd` is open, and nobody else knows its number.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut epoll = Self { fd, counts_nanos: true };
        epoll.counts_nanos = epoll.wait_nanos(&mut [EpollEvent::default()], 0).is_ok();
        Ok(epoll)
    }

    /// Watches `fd` for the events in `bits`; they will be reported with `token`.
    ///
    /// Fails with `AlreadyExists` if this descriptor of this open file is watched already, with
    /// `PermissionDenied` if such a file cannot be watched (a regular file or a directory), and when
    /// the user's limit of watches is reached.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, bits: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), EpollEvent::new(bits, token))
    }

    /// Replaces what `fd` is watched for, arms it again if it was `ONE_SHOT`, and looks at its state
    /// anew: what is ready is reported once more. `NotFound` if it is not watched.
    pub(crate) fn modify(&self, fd: RawFd, bits: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, EpollEvent::new(bits, token))
    }

    /// Stops watching `fd`, and forgets what it had to report. `NotFound` if it is not watched.
    pub(crate) fn delete(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, EpollEvent::default())
    }

    fn control(&self, what: libc::c_int, fd: RawFd, mut event: EpollEvent) -> io::Result<()> {
        let epoll = self.fd.as_raw_fd();
        // SAFETY: `event` is readable for the length of the call; a number that is not an open
        // descriptor is answered with an error.
        check(unsafe { libc::epoll_ctl(epoll, what, fd, &mut event.0) }).map(drop)
    }

    /// Waits until something is ready, but no longer than `timeout` nanoseconds (`None`: for ever),
    /// and never shorter without an event or a signal. Returns how many of `events` were filled.
    ///
    /// A signal ends the wait with no events, so that a storm of them neither spins in here nor
    /// stretches the wait: the caller knows its deadline and decides.
    #[inline]
    pub(crate) fn wait(
        &self,
        events: &mut [EpollEvent],
        timeout: Option<u64>,
    ) -> io::Result<usize> {
        let answer = match timeout {
            // The older call needs no time-out copied from user space.
            None => self.wait_millis(events, -1),
            Some(0) => self.wait_millis(events, 0),
            Some(nanos) if self.counts_nanos => self.wait_nanos(events, nanos),
            Some(nanos) => self.wait_millis(events, round_up_to_millis(nanos)),
        };
        match answer {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            answer => answer,
        }
    }

    #[inline]
    fn wait_millis(&self, events: &mut [EpollEvent], millis: libc::c_int) -> io::Result<usize> {
        let (first, room) = room(events);
        // SAFETY: the kernel writes at most `room` events from `first` on, which are ours to write.
        let count = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), first, room, millis) };
        check(count).map(|count| count as usize)
    }

    fn wait_nanos(&self, events: &mut [EpollEvent], nanos: u64) -> io::Result<usize> {
        let (first, room) = room(events);
        let timeout = libc::timespec {
            tv_sec: (nanos / NANOS_PER_SEC) as libc::time_t,
            tv_nsec: (nanos % NANOS_PER_SEC) as _,
        };
        // SAFETY: as in `wait_millis`; `timeout` is readable for the length of the call, and a NULL
        // mask of size 0 leaves the signal mask alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                first,
                room,
                &raw const timeout,
                core::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        check(count as libc::c_int).map(|count| count as usize)
    }
}

impl AsFd for Epoll {
    /// Readable, to another epoll or poll, while events are there to be waited for.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel takes the room as a positive `int`.
#[inline]
fn room(events: &mut [EpollEvent]) -> (*mut libc::epoll_event, libc::c_int) {
    debug_assert!(!events.is_empty());
    (events.as_mut_ptr().cast(), events.len().min(libc::c_int::MAX as usize) as libc::c_int)
}

/// Rounded up, because a wait must not end early; what an `int` cannot hold is 24 days.
fn round_up_to_millis(nanos: u64) -> libc::c_int {
    nanos.div_ceil(NANOS_PER_MILLI).min(libc::c_int::MAX as u64) as libc::c_int
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::eventfd::EventFd;
    use std::time::{Duration, Instant};

    fn both_calls() -> [Epoll; 2] {
        let coarse = Epoll { counts_nanos: false, ..Epoll::new().unwrap() };
        [Epoll::new().unwrap(), coarse]
    }

    /// Goal: no time-out ends early, in either call. Method: lengths around the millisecond.
    #[test]
    fn time_outs_are_never_early() {
        for epoll in both_calls() {
            for micros in [1, 50, 999, 1000, 1001, 2500] {
                let (start, timeout) = (Instant::now(), Duration::from_micros(micros));
                let count = epoll
                    .wait(&mut [EpollEvent::default()], Some(timeout.as_nanos() as u64))
                    .unwrap();
                assert_eq!(count, 0);
                assert!(start.elapsed() >= timeout, "{timeout:?} took {:?}", start.elapsed());
            }
        }
    }

    #[test]
    fn what_is_ready_ends_any_wait() {
        for epoll in both_calls() {
            let counter = EventFd::new().unwrap();
            epoll.add(counter.as_fd(), IN, 42).unwrap();
            counter.signal();
            for timeout in [None, Some(0), Some(1), Some(u64::MAX)] {
                let mut events = [EpollEvent::default(); 4];
                assert_eq!(epoll.wait(&mut events, timeout).unwrap(), 1, "{timeout:?}");
                assert_eq!((events[0].token(), events[0].bits()), (42, IN));
            }
        }
    }

    #[test]
    fn modify_and_delete_need_a_watched_descriptor() {
        let (epoll, counter) = (Epoll::new().unwrap(), EventFd::new().unwrap());
        let fd = counter.as_fd().as_raw_fd();
        assert_eq!(epoll.modify(fd, IN, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(epoll.delete(fd).unwrap_err().kind(), io::ErrorKind::NotFound);
        epoll.add(counter.as_fd(), IN, 1).unwrap();
        let again = epoll.add(counter.as_fd(), IN, 1).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        epoll.delete(fd).unwrap();
        counter.signal();
        assert_eq!(epoll.wait(&mut [EpollEvent::default()], Some(0)).unwrap(), 0);
    }

    #[test]
    fn a_regular_file_is_refused() {
        let file = std::fs::File::open("Cargo.toml").unwrap();
        let refused = Epoll::new().unwrap().add(file.as_fd(), IN, 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn the_coarse_time_out_rounds_up_and_saturates() {
        assert_eq!(round_up_to_millis(1), 1);
        assert_eq!(round_up_to_millis(1_000_000), 1);
        assert_eq!(round_up_to_millis(1_000_001), 2);
        assert_eq!(round_up_to_millis(u64::MAX), libc::c_int::MAX);
    }
}
