//! A stand-in for a socket, for tests.

use crate::sync::{Arc, Mutex};
use crate::sys::eventfd::EventFd;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::PoisonError;

/// What a [`ScriptedSource`](super::ScriptedSource) can say is ready, and a handler can read from
/// and write to, without a kernel: bytes that the test feeds come out of `read`, and what is written
/// is kept for the test. Neither ever waits: they fail with `WouldBlock`, as a nonblocking socket.
///
/// Clones are the same stand-in: register one, keep another. Feeding it does not make it ready; the
/// script does, so that a test can also say "ready" when nothing is there to read.
///
/// The descriptor (an eventfd that nothing happens to) serves as a key only; one is used up each.
#[derive(Clone)]
pub struct ScriptedIo {
    shared: Arc<Shared>,
}

struct Shared {
    fd: EventFd,
    bytes: Mutex<Bytes>,
}

struct Bytes {
    to_read: VecDeque<u8>,
    ended: bool,
    written: Vec<u8>,
    room: usize,
}

impl ScriptedIo {
    /// Nothing to read, and room for everything that is written. Fails when the process or the
    /// system is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let bytes =
            Bytes { to_read: VecDeque::new(), ended: false, written: Vec::new(), room: usize::MAX };
        let shared = Shared { fd: EventFd::new()?, bytes: Mutex::new(bytes) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Adds bytes to be read.
    pub fn feed(&self, bytes: &[u8]) {
        self.with(|state| state.to_read.extend(bytes));
    }

    /// Once what was fed has been read, reads return 0: the peer sends no more.
    pub fn end(&self) {
        self.with(|state| state.ended = true);
    }

    /// Lets writes take `bytes` more in all, and then fail with `WouldBlock`.
    pub fn set_room(&self, bytes: usize) {
        self.with(|state| state.room = bytes);
    }

    /// Takes what has been written since this was last called.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        self.with(|state| std::mem::take(&mut state.written))
    }

    /// How many fed bytes have not been read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.with(|state| state.to_read.len())
    }

    fn with<R>(&self, change: impl FnOnce(&mut Bytes) -> R) -> R {
        change(&mut self.shared.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Read for ScriptedIo {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|state| {
            if state.to_read.is_empty() && !state.ended {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            state.to_read.read(buffer)
        })
    }
}

impl Write for ScriptedIo {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|state| {
            let count = bytes.len().min(state.room);
            if count == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            state.room -= count;
            state.written.extend(&bytes[..count]);
            Ok(count)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for ScriptedIo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

impl fmt::Debug for ScriptedIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedIo")
            .field("fd", &self.as_fd().as_raw_fd())
            .field("unread", &self.unread())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_fed_then_blocks_then_ends() {
        let mut io = ScriptedIo::new().unwrap();
        io.feed(b"abcd");
        let mut buffer = [0; 3];
        assert_eq!(io.read(&mut buffer).unwrap(), 3);
        assert_eq!(&buffer, b"abc");
        assert_eq!(io.unread(), 1);
        assert_eq!(io.read(&mut buffer).unwrap(), 1);
        assert_eq!(io.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        io.clone().end();
        assert_eq!(io.read(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn writes_until_there_is_no_room() {
        let mut io = ScriptedIo::new().unwrap();
        io.set_room(5);
        assert_eq!(io.write(b"abc").unwrap(), 3);
        assert_eq!(io.write(b"def").unwrap(), 2);
        assert_eq!(io.write(b"f").unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(io.written(), b"abcde");
        assert!(io.written().is_empty());
    }
}
