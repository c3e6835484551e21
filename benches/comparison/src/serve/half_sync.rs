//! Stands for half-sync/half-async: one thread waits for all connections and puts the ready ones on
//! a queue under a mutex; workers take them from there, do the I/O and re-arm. Threads: the workers,
//! and the waiting one beside them.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex};

use super::connection::{self, LISTENER, ONESHOT_READ};
use super::{Options, READ_BUFFER, Server, Slow};
use crate::sys::{self, Epoll};

pub struct HalfSync;

impl Server for HalfSync {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared { epoll: Epoll::new()?, queue: Queue::default() });
        for _ in 0..options.threads {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.work(options.slow));
        }
        shared.wait(&listener)
    }
}

struct Shared {
    epoll: Epoll,
    queue: Queue,
}

/// A ready connection: its token and what it is ready for.
type Ready = (u64, u32);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Ready>,
    idle_workers: usize,
}

impl Queue {
    /// Puts a whole harvest in under one lock and wakes no more workers than can use it.
    fn push_batch(&self, batch: impl Iterator<Item = Ready>) {
        let mut state = self.state.lock().expect("no holder panics");
        state.ready.extend(batch);
        let wake = state.ready.len().min(state.idle_workers);
        drop(state);
        for _ in 0..wake {
            self.filled.notify_one();
        }
    }

    fn pop(&self) -> Ready {
        let mut state = self.state.lock().expect("no holder panics");
        loop {
            if let Some(ready) = state.ready.pop_front() {
                return ready;
            }
            state.idle_workers += 1;
            state = self.filled.wait(state).expect("no holder panics");
            state.idle_workers -= 1;
        }
    }
}

impl Shared {
    fn wait(&self, listener: &TcpListener) -> io::Result<()> {
        self.epoll.add(listener.as_raw_fd(), libc::EPOLLIN as u32, LISTENER)?;
        let mut events = sys::events(256);
        loop {
            let ready = self.epoll.wait(&mut events)?;
            let ready = &events[..ready];
            if ready.iter().any(|event| event.u64 == LISTENER) {
                self.accept(listener);
            }
            let connections = ready.iter().filter(|event| event.u64 != LISTENER);
            self.queue.push_batch(connections.map(|event| (event.u64, event.events)));
        }
    }

    fn accept(&self, listener: &TcpListener) {
        let epoll = &self.epoll;
        connection::admit(listener.as_raw_fd(), |fd, token| epoll.add(fd, ONESHOT_READ, token));
    }

    fn work(&self, slow: Slow) -> io::Result<()> {
        let mut buffer = vec![0; READ_BUFFER];
        loop {
            let ready = self.queue.pop();
            // SAFETY: one of `admit`'s, and ONESHOT puts it on the queue once at a time.
            unsafe { connection::serve_once(&self.epoll, ready, &mut buffer, slow)? };
        }
    }
}
