//! The few system calls that the standard library has no words for.
#![allow(unsafe_code, reason = "system calls; each wrapper upholds what its call asks for")]

use std::fmt::Display;
use std::io::{self, Write};
use std::mem::MaybeUninit;

/// Turns the C convention of `-1` and `errno` into a `Result`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Prints a line and sees to it that whoever reads the other end of a pipe gets it now.
pub fn print_now(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
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
