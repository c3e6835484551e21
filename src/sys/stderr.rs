//! The standard error stream, for lines that nobody waits for.
#![allow(unsafe_code, reason = "poll(2), write(2) and the mask of one signal")]

use core::mem::MaybeUninit;
use core::ptr;

/// Writes a line of at most `PIPE_BUF` bytes, if there is room for it. False: there was none, or the stream is
/// closed, or its reader has gone; no signal tells of that.
pub(crate) fn write(line: &[u8]) -> bool {
    let mut stream = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one pollfd, which lives during the call; it does not wait.
    let ready = unsafe { libc::poll(&mut stream, 1, 0) };
    if ready != 1 || stream.revents & libc::POLLOUT == 0 {
        return false;
    }
    without_sigpipe(|| {
        // SAFETY: the bytes are there for the call.
        let written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        usize::try_from(written).is_ok_and(|written| written == line.len())
    })
}

/// A write to a pipe without a reader sends this thread a signal that would end the process. It is blocked
/// meanwhile, and taken off if it has come by this.
fn without_sigpipe(write: impl FnOnce() -> bool) -> bool {
    let mut pipe = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: each set is initialised by the call that it is given to first, and these cannot fail for sets that are
    // valid.
    unsafe {
        libc::sigemptyset(pipe.as_mut_ptr());
        libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
        libc::sigemptyset(pending.as_mut_ptr());
        libc::sigpending(pending.as_mut_ptr());
        let was_pending = libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1;
        if libc::pthread_sigmask(libc::SIG_BLOCK, pipe.as_ptr(), before.as_mut_ptr()) != 0 {
            return false;
        }
        let written = write();
        if !written && !was_pending {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(pipe.as_ptr(), ptr::null_mut(), &now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        written
    }
}
