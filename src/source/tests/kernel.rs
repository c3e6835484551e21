//! What the tests ask of the kernel that the library never does.
#![allow(unsafe_code, reason = "signals, pipes and timers of the tests")]

use std::io::{self, PipeReader, PipeWriter};
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A connected pair, both ends nonblocking and without delay.
pub(super) fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for end in [&near, &far] {
        end.set_nonblocking(true).unwrap();
        end.set_nodelay(true).unwrap();
    }
    (near, far)
}

/// A pipe whose reading end never blocks.
pub(super) fn pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    // SAFETY: F_SETFL takes an integer, and the descriptor is open.
    let answer = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(answer, 0);
    (reader, writer)
}

/// Sends one urgent byte.
pub(super) fn send_urgent(socket: &TcpStream) {
    // SAFETY: one readable byte for the length of the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
    assert_eq!(sent, 1);
}

/// Makes `close` send a reset instead of an orderly end.
pub(super) fn reset_on_close(socket: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: `linger` is readable for the length of the call, and its size is given.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            mem::size_of_val(&linger) as libc::socklen_t,
        )
    };
    assert_eq!(answer, 0);
}

fn signal_set(signal: i32) -> libc::sigset_t {
    // SAFETY: a zeroed set is writable memory of the right size; both calls only write to it.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        set
    }
}

/// A signalfd for a signal that is blocked in this thread.
pub(super) fn signal_fd(signal: i32) -> OwnedFd {
    let set = signal_set(signal);
    // SAFETY: `set` is readable for the length of the calls; the descriptor is new and ours.
    unsafe {
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, core::ptr::null_mut()), 0);
        let fd = libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        assert!(fd >= 0);
        OwnedFd::from_raw_fd(fd)
    }
}

/// Sends a signal to the calling thread.
pub(super) fn raise(signal: i32) {
    // SAFETY: the signal is blocked or has a handler, as each caller sees to.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// Reads and drops everything.
pub(super) fn drain(fd: &impl AsFd) {
    let mut buffer = [0u8; 256];
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: `buffer` is writable for the length of each call.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_interruption(_signal: i32) {
    INTERRUPTIONS.fetch_add(1, Relaxed);
}

/// Interrupts the calling thread with a signal every 100 µs, until dropped.
pub(super) struct Storm(libc::timer_t);

impl Storm {
    pub(super) fn begin() -> Self {
        let signal = libc::SIGRTMIN() + 5;
        // SAFETY: every structure is zeroed, filled and writable for the length of its call; the
        // handler only adds to an atomic, which is safe in a signal handler.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = count_interruption as *const () as libc::sighandler_t;
            assert_eq!(libc::sigaction(signal, &action, core::ptr::null_mut()), 0);
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let every = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            let period = libc::itimerspec { it_interval: every, it_value: every };
            assert_eq!(libc::timer_settime(timer, 0, &period, core::ptr::null_mut()), 0);
            Self(timer)
        }
    }

    /// How many signals have hit the thread.
    pub(super) fn strikes() -> u64 {
        INTERRUPTIONS.load(Relaxed)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // SAFETY: the timer exists until here.
        unsafe { libc::timer_delete(self.0) };
    }
}
