//! One echo connection, for the servers that learn of readiness and do the I/O themselves.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::Slow;
use crate::sys;

/// A non-blocking connection and what could not be sent back yet.
pub struct Connection {
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

impl Connection {
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, unsent: Vec::new() }
    }

    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Echoes until the socket is drained or blocked. A read that does not fill the buffer has
    /// drained the socket, which saves the read that would say EAGAIN, unless the peer is going.
    pub fn echo(&mut self, ready: u32, buffer: &mut [u8], slow: Slow) -> Next {
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
