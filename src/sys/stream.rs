//! Stream sockets: recvfrom(2) and sendto(2), without a SIGPIPE.
//!
//! The C library's own functions are points at which a thread may be cancelled, and prepare for that
//! with two locked instructions each, in any process that has threads. Nobody cancels a thread of ours.
#![allow(unsafe_code, reason = "recvfrom(2), sendto(2), a descriptor that is lent")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// A descriptor in the hands of somebody who does not own it, as long as its owner keeps it open. Behind
/// that the number may be another's: whoever lends it takes it back before.
#[derive(Debug)]
pub(crate) struct Lent(RawFd);

impl Lent {
    pub(crate) fn new(fd: BorrowedFd<'_>) -> Self {
        Self(fd.as_raw_fd())
    }
}

impl AsFd for Lent {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open, as above; and no memory depends on it.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// Reads what is there. 0: the peer has finished, or there was no room for anything.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the room is borrowed for the call.
    unsafe { recvfrom(fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) }
}

/// Writes what is taken.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are borrowed for the call.
    unsafe { sendto(fd.as_raw_fd(), bytes.as_ptr(), bytes.len()) }
}

/// # Safety
/// `len` bytes at `buffer` may be written to.
#[cfg(not(paceline_tsan))]
#[inline(always)] // It is a few instructions of each run of a connection.
unsafe fn recvfrom(fd: RawFd, buffer: *mut u8, len: usize) -> io::Result<usize> {
    // SAFETY: as promised; no address is asked for.
    unsafe { ask(libc::SYS_recvfrom, fd, buffer as usize, len, 0) }
}

/// # Safety
/// `len` bytes at `bytes` may be read.
#[cfg(not(paceline_tsan))]
#[inline(always)] // As above.
unsafe fn sendto(fd: RawFd, bytes: *const u8, len: usize) -> io::Result<usize> {
    // SAFETY: as promised; no address is given.
    unsafe { ask(libc::SYS_sendto, fd, bytes as usize, len, libc::MSG_NOSIGNAL) }
}

/// Makes one of the two system calls, without an address.
///
/// # Safety
/// As that call.
#[cfg(all(target_arch = "x86_64", not(any(paceline_tsan, miri))))]
#[inline(always)] // In place it is half of what a call of the C library takes.
unsafe fn ask(
    number: libc::c_long,
    fd: RawFd,
    bytes: usize,
    len: usize,
    flags: i32,
) -> io::Result<usize> {
    let mut answer = number as isize;
    // SAFETY: the kernel changes rax, rcx and r11, and what the caller has promised that it may.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") answer,
            in("edi") fd,
            in("rsi") bytes,
            in("rdx") len,
            in("r10d") flags,
            in("r8") 0_usize,
            in("r9") 0_usize,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags)
        );
    }
    usize::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer as i32))
}

/// # Safety
/// As above.
#[cfg(all(any(not(target_arch = "x86_64"), miri), not(paceline_tsan)))]
unsafe fn ask(
    number: libc::c_long,
    fd: RawFd,
    bytes: usize,
    len: usize,
    flags: i32,
) -> io::Result<usize> {
    // SAFETY: as promised.
    check(unsafe { libc::syscall(number, fd, bytes, len, flags, 0_usize, 0_usize) as isize })
}

#[cfg(any(not(target_arch = "x86_64"), miri, paceline_tsan))]
fn check(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

// ThreadSanitizer knows what is handed over by a socket only if the C library is asked.

/// # Safety
/// As above.
#[cfg(paceline_tsan)]
unsafe fn recvfrom(fd: RawFd, buffer: *mut u8, len: usize) -> io::Result<usize> {
    // SAFETY: as promised.
    check(unsafe { libc::recv(fd, buffer.cast(), len, 0) })
}

/// # Safety
/// As above.
#[cfg(paceline_tsan)]
unsafe fn sendto(fd: RawFd, bytes: *const u8, len: usize) -> io::Result<usize> {
    // SAFETY: as promised.
    check(unsafe { libc::send(fd, bytes.cast(), len, libc::MSG_NOSIGNAL) })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_go_through_and_ends_are_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut buffer = [0; 8];
        let error = receive(ours.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(send(theirs.as_fd(), b"hello").unwrap(), 5);
        assert_eq!(receive(ours.as_fd(), &mut buffer[..2]).unwrap(), 2);
        assert_eq!(receive(ours.as_fd(), &mut buffer[2..]).unwrap(), 3);
        assert_eq!(&buffer[..5], b"hello");
        // Not a close: a child that another test forks would keep the descriptor open for a while.
        theirs.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(receive(ours.as_fd(), &mut buffer).unwrap(), 0);
        assert_eq!(send(ours.as_fd(), b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
