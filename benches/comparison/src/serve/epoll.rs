//! Stands for what an expert writes by hand: one edge-triggered epoll loop per thread, connections
//! dealt out in turn so that every loop has the same share (nginx, memcached and Seastar do so).

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use super::connection::{self, LISTENER};
use super::{Options, READ_BUFFER, Server, Slow};
use crate::sys::{self, Epoll};

pub struct LoopPerThread;

impl Server for LoopPerThread {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let loops: Vec<Epoll> =
            (0..options.threads).map(|_| Epoll::new()).collect::<io::Result<_>>()?;
        let loops = Arc::new(loops);
        for index in 1..options.threads {
            let loops = Arc::clone(&loops);
            std::thread::spawn(move || run(&loops[index], options.slow, || unreachable!()));
        }
        let fd = listener.as_raw_fd();
        loops[0].add(fd, libc::EPOLLIN as u32, LISTENER)?;
        let mut next = 0;
        run(&loops[0], options.slow, || deal(fd, &loops, &mut next))
    }
}

fn run(epoll: &Epoll, slow: Slow, mut accept: impl FnMut()) -> io::Result<()> {
    let mut events = sys::events(256);
    let mut buffer = vec![0; READ_BUFFER];
    loop {
        let ready = epoll.wait(&mut events)?;
        for event in &events[..ready] {
            match event.u64 {
                LISTENER => accept(),
                // SAFETY: one of `admit`'s, and only this loop ever sees its events.
                token => drop(unsafe { connection::serve(token, event.events, &mut buffer, slow) }),
            }
        }
    }
}

/// Hands each new connection to the next loop. The loop waits already: adding to its epoll is all
/// it takes.
fn deal(listener: RawFd, loops: &[Epoll], next: &mut usize) {
    connection::admit(listener, |fd, token| {
        *next += 1;
        loops[*next % loops.len()].add(fd, sys::EDGE, token)
    });
}
