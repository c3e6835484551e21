//! A barrier that one thread has every thread of the process pass.
#![allow(unsafe_code, reason = "membarrier(2)")]

use std::io;

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
const EVERY_THREAD: libc::c_int = 1 << 3;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED`.
const REGISTER: libc::c_int = 1 << 4;

/// Asks the kernel (Linux 4.14) to have [`every_thread_passes`] at hand. In a process that has several threads the
/// first time takes some milliseconds, later ones take nothing.
///
/// # Errors
/// Whatever the kernel, or a filter of system calls, says.
pub(crate) fn register() -> io::Result<()> {
    call(REGISTER)
}

/// When it returns, every running thread of the process has passed a full barrier since the call, and so have all
/// others. About half a microsecond, and as much for each other processor where one of them runs.
///
/// # Errors
/// As [`register`]; nobody need have passed anything then.
pub(crate) fn every_thread_passes() -> io::Result<()> {
    call(EVERY_THREAD)
}

fn call(command: libc::c_int) -> io::Result<()> {
    const NO_FLAGS: libc::c_uint = 0;
    const NO_CPU: libc::c_int = 0;
    // SAFETY: it takes numbers only, and changes no memory.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, NO_FLAGS, NO_CPU) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
