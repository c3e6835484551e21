//! Stands for the least that a pool of threads can do: one epoll that all of them wait at, one event per wait. The kernel
//! wakes one of those that wait, the one that came last. EPOLLONESHOT, as in `textbook`.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use super::connection::{self, LISTENER, ONESHOT_READ};
use super::{Options, READ_BUFFER, Server, Slow};
use crate::sys::{self, Epoll};

pub struct SharedEpoll;

impl Server for SharedEpoll {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let epoll = Arc::new(Epoll::new()?);
        let fd = listener.as_raw_fd();
        epoll.add(fd, ONESHOT_READ, LISTENER)?;
        for _ in 1..options.threads {
            let epoll = Arc::clone(&epoll);
            std::thread::spawn(move || work(&epoll, fd, options.slow));
        }
        work(&epoll, fd, options.slow)
    }
}

fn work(epoll: &Epoll, listener: RawFd, slow: Slow) -> io::Result<()> {
    let mut events = sys::events(1);
    let mut buffer = vec![0; READ_BUFFER];
    loop {
        epoll.wait(&mut events)?;
        match events[0].u64 {
            LISTENER => {
                connection::admit(listener, |fd, token| epoll.add(fd, ONESHOT_READ, token));
                epoll.modify(listener, ONESHOT_READ, LISTENER)?;
            }
            // SAFETY: one of `admit`'s, registered with ONESHOT.
            token => unsafe {
                let event = (token, events[0].events);
                connection::serve_once(epoll, event, &mut buffer, slow)?;
            },
        }
    }
}
