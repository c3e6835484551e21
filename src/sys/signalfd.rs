//! Signals as a descriptor.
#![allow(unsafe_code, reason = "signalfd(2), pthread_sigmask(3)")]

use super::fd::check;
use super::unconfined::note_watched;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A thread that a signal can reach.
pub(crate) struct Through {
    pub(crate) id: i32,
    pub(crate) name: String,
}

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
            0 => {
                note_watched(signals);
                Ok(Self { fd })
            }
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Another thread of the process that does not block all of these, and one that it lets through. A thread that ends
    /// meanwhile, and a process that cannot be read about (`/proc`), let none through.
    pub(crate) fn let_through(signals: &[i32]) -> Option<(i32, Through)> {
        // SAFETY: the call has no arguments and cannot fail.
        let own = unsafe { libc::gettid() };
        let threads = std::fs::read_dir("/proc/self/task").ok()?;
        threads.flatten().find_map(|thread| {
            let id = thread.file_name().to_str()?.parse::<i32>().ok()?;
            if id == own {
                return None;
            }
            let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
            let (signal, name) = let_through_by(&status, signals)?;
            Some((signal, Through { id, name }))
        })
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

/// The first of `signals` that a thread does not block, by its `status` in `/proc`, and the thread's name. None: it blocks
/// all of them, or is ending. The kernel writes the state first and the signals later: of a thread that has gone in
/// between it says that it runs, that its process has no threads, and that it blocks nothing.
fn let_through_by(status: &str, signals: &[i32]) -> Option<(i32, String)> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has_gone = field("Threads:") == Some("0");
    if has_gone || field("State:").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return None;
    }
    let blocked = u64::from_str_radix(field("SigBlk:")?, 16).ok()?;
    let signal = signals.iter().find(|&&signal| blocked >> (signal - 1) & 1 == 0)?;
    Some((*signal, field("Name:").unwrap_or_default().to_owned()))
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says of a thread, as far as it matters here.
    fn status(state: &str, threads: u32, blocked: u64) -> String {
        format!(
            "Name:\tone\nState:\t{state}\nThreads:\t{threads}\nSigPnd:\t0\nSigBlk:\t{blocked:016x}\n"
        )
    }

    #[test]
    fn a_thread_lets_through_what_it_does_not_block_while_it_is_there() {
        let (signals, blocked) = ([libc::SIGHUP, libc::SIGURG], 1 << (libc::SIGHUP - 1));
        let through = Some((libc::SIGURG, "one".into()));
        assert_eq!(let_through_by(&status("R (running)", 2, blocked), &signals), through);
        assert_eq!(let_through_by(&status("S (sleeping)", 2, u64::MAX), &signals), None);
        assert_eq!(let_through_by(&status("X (dead)", 2, 0), &signals), None);
        assert_eq!(let_through_by(&status("Z (zombie)", 2, 0), &signals), None);
        assert_eq!(let_through_by(&status("R (running)", 0, 0), &signals), None, "it has gone");
        assert_eq!(let_through_by("", &signals), None);
    }
}
