//! One echo connection, for the servers that learn of readiness and do the I/O themselves.
//!
//! An epoll carries a connection as its token: a leaked box, which is dropped when the connection
//! ends. Whoever got the event is the only one who may touch it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::Slow;
use crate::sys::{self, Epoll};

/// The listener's token; a connection's is an address and so never zero.
pub const LISTENER: u64 = 0;
pub const ONESHOT_READ: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;
const ONESHOT_WRITE: u32 = (libc::EPOLLOUT | libc::EPOLLONESHOT) as u32;

/// A non-blocking connection and what could not be sent back yet.
struct Connection {
    fd: OwnedFd,
    unsent: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Everything that arrived went back: wait for more.
    Read,
    /// The peer's window is full: wait until there is room.
    Write,
    Close,
}

/// Accepts every connection that waits and registers each under its token.
pub fn admit(listener: RawFd, mut register: impl FnMut(RawFd, u64) -> io::Result<()>) {
    while let Ok(fd) = sys::accept(listener) {
        let raw = fd.as_raw_fd();
        let connection = Box::into_raw(Box::new(Connection { fd, unsent: Vec::new() }));
        if register(raw, connection as u64).is_err() {
            // SAFETY: the epoll refused the token, so nobody else has it.
            drop(unsafe { Box::from_raw(connection) });
        }
    }
}

/// Echoes on the connection that an event is for, and drops it if it has ended.
///
/// # Safety
/// The token is one of `admit`'s, and no other thread can have an event for it at the same time.
pub unsafe fn serve(token: u64, ready: u32, buffer: &mut [u8], slow: Slow) -> (RawFd, Next) {
    let pointer = token as *mut Connection;
    // SAFETY: a live box, and by the caller's promise ours alone.
    let connection = unsafe { &mut *pointer };
    let (fd, next) = (connection.fd(), connection.echo(ready, buffer, slow));
    if next == Next::Close {
        // SAFETY: as above; closing the descriptor ends its events, so this is the last.
        drop(unsafe { Box::from_raw(pointer) });
    }
    (fd, next)
}

/// `serve`, and re-arms the connection.
///
/// # Safety
/// As `serve`; the connection is registered with ONESHOT, which is what keeps others away.
pub unsafe fn serve_once(
    epoll: &Epoll,
    (token, ready): (u64, u32),
    buffer: &mut [u8],
    slow: Slow,
) -> io::Result<()> {
    // SAFETY: the caller's promise is passed on.
    match unsafe { serve(token, ready, buffer, slow) } {
        (fd, Next::Read) => epoll.modify(fd, ONESHOT_READ, token),
        (fd, Next::Write) => epoll.modify(fd, ONESHOT_WRITE, token),
        (_, Next::Close) => Ok(()),
    }
}

impl Connection {
    fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Echoes until the socket is drained or blocked. A read that does not fill the buffer has
    /// drained the socket, which saves the read that would say EAGAIN, unless the peer is going.
    fn echo(&mut self, ready: u32, buffer: &mut [u8], slow: Slow) -> Next {
        let going = ready & sys::GONE != 0;
        loop {
            match self.flush() {
                Ok(true) => {}
                Ok(false) => return Next::Write,
                Err(_) => return Next::Close,
            }
            match sys::recv(self.fd(), buffer) {
                Ok(0) => return Next::Close,
                Ok(n) => {
                    slow.hold(&buffer[..n]);
                    if self.send(&buffer[..n]).is_err() {
                        return Next::Close;
                    }
                    if n < buffer.len() && !going && self.unsent.is_empty() {
                        return Next::Read;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Next::Close,
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = match sys::send(self.fd(), bytes) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// True when nothing is left to send.
    fn flush(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match sys::send(self.fd(), &self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
