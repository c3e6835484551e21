//! Stands for the least that a server can do for `redis-benchmark`: one edge-triggered epoll loop, no
//! store, and no look at a request beyond what tells its answer.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys::{self, Epoll};

const READ_BUFFER: usize = 64 * 1024;

const OK: &[u8] = b"+OK\r\n";
const VALUE: &[u8] = b"$3\r\nxxx\r\n";
const NONE: &[u8] = b"*0\r\n";

/// Announces the address and serves; returns only on an error that ends it.
pub fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on {}", listener.local_addr()?);
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    let own = listener.as_raw_fd();
    epoll.add(own, libc::EPOLLIN as u32, own as u64)?;
    let mut connections = Connections::default();
    let mut events = sys::events(256);
    let (mut input, mut output) = (vec![0; READ_BUFFER], Vec::with_capacity(READ_BUFFER));
    loop {
        let ready = epoll.wait(&mut events)?;
        for event in &events[..ready] {
            let fd = event.u64 as i32;
            if fd == own {
                connections.admit(own, &epoll)?;
            } else if !answer(fd, &mut input, &mut output) {
                connections.0[fd as usize] = None;
            }
        }
    }
}

/// By descriptor.
#[derive(Default)]
struct Connections(Vec<Option<OwnedFd>>);

impl Connections {
    fn admit(&mut self, listener: i32, epoll: &Epoll) -> io::Result<()> {
        while let Ok(connection) = sys::accept(listener) {
            let fd = connection.as_raw_fd();
            epoll.add(fd, sys::EDGE, fd as u64)?;
            if self.0.len() <= fd as usize {
                self.0.resize_with(fd as usize + 1, || None);
            }
            self.0[fd as usize] = Some(connection);
        }
        Ok(())
    }
}

/// Answers what has come. Requests are counted by the stars that begin them: the benchmark's arguments
/// have none, and its answers fit into the socket's buffer. False: the connection has ended.
fn answer(fd: i32, input: &mut [u8], output: &mut Vec<u8>) -> bool {
    let read = match sys::recv(fd, input) {
        Ok(0) => return false,
        Ok(read) => &input[..read],
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
        Err(_) => return false,
    };
    output.clear();
    // Every request of a connection is like its first: `*2 $3 GET …`, `*3 $3 SET …`, or CONFIG.
    let reply = match read.get(8) {
        Some(b'G') => VALUE,
        Some(b'S') => OK,
        _ => NONE,
    };
    for _ in read.iter().filter(|byte| **byte == b'*') {
        output.extend_from_slice(reply);
    }
    sys::send(fd, output).is_ok()
}
