//! The floor: what one edge-triggered epoll loop per thread costs that counts the ends of requests
//! and sends as many copies of one fixed answer, without looking at anything else.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use memchr::memmem::Finder;

use super::{BODY, Server, listen};
use crate::sys::{self, Epoll};

/// The listener's token; a connection's is an address and so never zero.
const LISTENER: u64 = 0;
const READ_BUFFER: usize = 32 * 1024;
const END: &[u8] = b"\r\n\r\n";
/// So many bytes of an end can have come with an earlier read.
const CARRY: usize = END.len() - 1;
/// Copies of the answer that lie ready to be sent at once.
const COPIES: usize = 64;

pub struct Floor;

impl Server for Floor {
    fn serve(&self, address: SocketAddr, threads: usize) -> io::Result<()> {
        let listener = listen(address)?;
        listener.set_nonblocking(true)?;
        let loops: Vec<Epoll> = (0..threads).map(|_| Epoll::new()).collect::<io::Result<_>>()?;
        let loops = Arc::new(loops);
        for index in 1..threads {
            let loops = Arc::clone(&loops);
            std::thread::spawn(move || Loop::new().run(&loops[index], || unreachable!()));
        }
        loops[0].add(listener.as_raw_fd(), libc::EPOLLIN as u32, LISTENER)?;
        let mut next = 0;
        Loop::new().run(&loops[0], || deal(listener.as_raw_fd(), &loops, &mut next))
    }
}

/// Hands every connection that waits to the next loop.
fn deal(listener: RawFd, loops: &[Epoll], next: &mut usize) {
    while let Ok(fd) = sys::accept(listener) {
        let raw = fd.as_raw_fd();
        let connection = Box::new(Connection { fd, carry: [0; CARRY], unsent: Vec::new() });
        let token = Box::into_raw(connection);
        *next += 1;
        if loops[*next % loops.len()].add(raw, sys::EDGE, token as u64).is_err() {
            // SAFETY: the epoll refused the token, so nobody else has it.
            drop(unsafe { Box::from_raw(token) });
        }
    }
}

struct Connection {
    fd: OwnedFd,
    /// The last bytes that were read.
    carry: [u8; CARRY],
    unsent: Vec<u8>,
}

/// What a thread needs to serve.
struct Loop {
    buffer: Vec<u8>,
    answers: Vec<u8>,
    answer: usize,
    end: Finder<'static>,
}

impl Loop {
    fn new() -> Self {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: 64\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        let answer = [head.as_bytes(), BODY].concat();
        Self {
            buffer: vec![0; READ_BUFFER],
            answers: answer.repeat(COPIES),
            answer: answer.len(),
            end: Finder::new(END),
        }
    }

    fn run(&mut self, epoll: &Epoll, mut accept: impl FnMut()) -> io::Result<()> {
        let mut events = sys::events(256);
        loop {
            let ready = epoll.wait(&mut events)?;
            for event in &events[..ready] {
                if event.u64 == LISTENER {
                    accept();
                    continue;
                }
                let connection = event.u64 as *mut Connection;
                // SAFETY: one of `deal`'s boxes, live until the line below drops it; only this
                // loop ever has its events.
                if self.serve(unsafe { &mut *connection }, event.events).is_err() {
                    // SAFETY: as above; closing the descriptor ends its events, so this is the last.
                    drop(unsafe { Box::from_raw(connection) });
                }
            }
        }
    }

    /// Reads until the socket is drained; an error ends the connection.
    fn serve(&mut self, connection: &mut Connection, ready: u32) -> io::Result<()> {
        connection.flush()?;
        loop {
            let fd = connection.fd.as_raw_fd();
            match sys::recv(fd, &mut self.buffer[CARRY..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.buffer[..CARRY].copy_from_slice(&connection.carry);
                    let requests = self.end.find_iter(&self.buffer[..CARRY + n]).count();
                    connection.carry.copy_from_slice(&self.buffer[n..n + CARRY]);
                    self.answer(connection, requests)?;
                    if n < self.buffer.len() - CARRY && ready & sys::GONE == 0 {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&self, connection: &mut Connection, mut requests: usize) -> io::Result<()> {
        while requests > 0 {
            let copies = requests.min(COPIES);
            connection.send(&self.answers[..copies * self.answer])?;
            requests -= copies;
        }
        Ok(())
    }
}

impl Connection {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        match sys::send(self.fd.as_raw_fd(), bytes) {
            Ok(sent) => self.unsent.extend_from_slice(&bytes[sent..]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent.extend_from_slice(bytes);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match sys::send(self.fd.as_raw_fd(), &self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
