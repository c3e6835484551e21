//! The few system calls that the standard library has no words for.
#![allow(unsafe_code, reason = "system calls; each wrapper upholds what its call asks for")]

use std::io;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Turns the C convention of `-1` and `errno` into a `Result`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Accepts one connection that is non-blocking from the start.
pub fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (fd, nobody) = (listener.as_raw_fd(), std::ptr::null_mut());
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null stands for an address that nobody wants to know.
    let accepted = check(unsafe { libc::accept4(fd, nobody, nobody.cast(), flags) })?;
    // SAFETY: accept4 has just created this descriptor, and nobody else knows it.
    Ok(unsafe { TcpStream::from_raw_fd(accepted) })
}

/// Whether `error` says that descriptors or memory have run out.
pub fn is_exhausted(error: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}

/// Sets how many connections may wait to be accepted.
pub fn set_backlog(listener: &TcpListener, backlog: i32) -> io::Result<()> {
    // SAFETY: the descriptor is a listening socket; listening again only changes the backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), backlog) }).map(drop)
}

/// Allows as many open descriptors as the hard limit does.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit for the kernel to fill.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a live rlimit for the kernel to read.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec; a thread's own clock can always be read.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Blocks `signals` for this thread and those it starts, so that [`wait_for`] can take them.
pub fn block_signals(signals: &[i32]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes what it is given.
    let mut set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    };
    for &signal in signals {
        // SAFETY: `set` is an initialized set.
        check(unsafe { libc::sigaddset(&raw mut set, signal) })?;
    }
    // SAFETY: `set` is an initialized set, and null says that the old one is not wanted.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(set),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Waits until one of `signals`, which are blocked, arrives.
pub fn wait_for(signals: &libc::sigset_t) -> io::Result<()> {
    let mut arrived = 0;
    // SAFETY: both pointers are to live values.
    match unsafe { libc::sigwait(signals, &raw mut arrived) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
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
