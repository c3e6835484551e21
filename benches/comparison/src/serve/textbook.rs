//! Stands for leader/followers as the pattern's paper and most code since have it: a mutex around
//! the demultiplexer, one event per wait, and EPOLLONESHOT so that no other thread takes up a
//! handle that is being served; re-arming it costs a system call per request.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex};

use super::connection::{self, LISTENER, ONESHOT_READ};
use super::{Options, READ_BUFFER, Server, Slow};
use crate::sys::Epoll;

pub struct LeaderFollowers;

impl Server for LeaderFollowers {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(listener.as_raw_fd(), ONESHOT_READ, LISTENER)?;
        let set = Arc::new(Set { epoll, leader: Mutex::new(()), listener: listener.as_raw_fd() });
        for _ in 1..options.threads {
            let set = Arc::clone(&set);
            std::thread::spawn(move || set.work(options.slow));
        }
        set.work(options.slow)
    }
}

struct Set {
    epoll: Epoll,
    /// Held while waiting: its holder is the leader, and releasing it promotes the next.
    leader: Mutex<()>,
    listener: RawFd,
}

impl Set {
    fn work(&self, slow: Slow) -> io::Result<()> {
        let mut buffer = vec![0; READ_BUFFER];
        loop {
            let event = self.lead()?;
            match event.u64 {
                LISTENER => self.accept()?,
                // SAFETY: one of `admit`'s, registered with ONESHOT.
                token => unsafe {
                    let event = (token, event.events);
                    connection::serve_once(&self.epoll, event, &mut buffer, slow)?;
                },
            }
        }
    }

    fn lead(&self) -> io::Result<libc::epoll_event> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }];
        let _leader = self.leader.lock().expect("no leader panics while it waits");
        self.epoll.wait(&mut events)?;
        Ok(events[0])
    }

    fn accept(&self) -> io::Result<()> {
        connection::admit(self.listener, |fd, token| self.epoll.add(fd, ONESHOT_READ, token));
        self.epoll.modify(self.listener, ONESHOT_READ, LISTENER)
    }
}
