//! The server: a handler that accepts, and a handler per connection that echoes.
//!
//! Both are edge-triggered: they are told once that something has become possible, so they go on
//! until the kernel says that it is not possible any more, and only then answer [`Flow::Wait`].
//! An idle connection holds no buffer. One that does not read what it asked for is held to one
//! buffer's worth, because nothing more is read from it until that has been sent.

use crate::sys;
use paceline::{Flow, Handle, HandleOptions, Interest, Pool, Ready, Result};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Connections accepted, or reads done, before others have their turn.
const TURN: usize = 64;
/// How long to wait for a descriptor to become free when all are in use.
const RETRY: Duration = Duration::from_millis(50);
/// Read at once. One buffer per thread serves all connections.
const BUFFER: usize = 32 * 1024;

thread_local! {
    static READ_BUFFER: RefCell<[u8; BUFFER]> = const { RefCell::new([0; BUFFER]) };
}

/// Accepts connections until it is dropped.
pub struct Acceptor {
    address: SocketAddr,
    _handle: Arc<OnceLock<Handle<TcpListener>>>,
}

impl Acceptor {
    pub fn start(pool: &Pool, listener: TcpListener, slow: Slow) -> Result<Self, crate::Failure> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        sys::set_backlog(&listener, BACKLOG)?;

        // The handler wants to resume its own handle, so it starts paused until that is in place.
        let handle = Arc::new(OnceLock::new());
        let paused = HandleOptions::new().interest(Interest::READABLE).paused();
        let (inside, own) = (pool.clone(), Arc::downgrade(&handle));
        let registered = pool.register_with(listener, paused, move |listener, _| {
            accept(&inside, listener, slow, &own)
        })?;
        handle.get_or_init(|| registered).resume()?;
        Ok(Self { address, _handle: handle })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts what waits. When descriptors or memory run out, stops for a while instead of spinning.
fn accept(
    pool: &Pool,
    listener: &TcpListener,
    slow: Slow,
    own: &Weak<OnceLock<Handle<TcpListener>>>,
) -> Flow {
    for _ in 0..TURN {
        match sys::accept(listener) {
            Ok(stream) => add(pool, stream, slow),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Flow::Wait,
            Err(error) if sys::is_exhausted(&error) => return retry_later(pool, own.clone()),
            // This connection is gone already; the next may be well.
            Err(_) => {}
        }
    }
    Flow::Again
}

fn retry_later(pool: &Pool, own: Weak<OnceLock<Handle<TcpListener>>>) -> Flow {
    let resume = move || {
        if let Some(handle) = own.upgrade()
            && let Some(handle) = handle.get()
        {
            // It fails only if the pool has closed the handle meanwhile.
            let _ = handle.resume();
        }
    };
    match pool.after(RETRY, resume) {
        Ok(_) => Flow::Pause,
        // The pool is shutting down.
        Err(_) => Flow::Wait,
    }
}

fn add(pool: &Pool, stream: TcpStream, slow: Slow) {
    let mut echo = Echo { unsent: Vec::new(), ending: false, slow };
    // Without delay if it can be had: a socket that is gone says so when it is read.
    let _ = stream.set_nodelay(true);
    if let Ok(handle) = pool.register(stream, move |stream, ready| echo.on_ready(stream, ready)) {
        handle.detach();
    }
}

/// One connection.
struct Echo {
    /// What the peer has no room for yet. Allocated only then.
    unsent: Vec<u8>,
    /// The peer has finished, or the socket has failed: reading goes on until it says so.
    ending: bool,
    slow: Slow,
}

enum Step {
    More,
    Drained,
}

impl Echo {
    fn on_ready(&mut self, stream: &mut TcpStream, ready: Ready) -> Flow {
        self.ending |= ready.is_read_closed() || ready.is_error();
        READ_BUFFER.with_borrow_mut(|buffer| self.echo(stream, buffer))
    }

    fn echo(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> Flow {
        for _ in 0..TURN {
            match self.step(stream, buffer) {
                Ok(Step::More) => {}
                Ok(Step::Drained) => return Flow::Wait,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Flow::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Flow::Done,
            }
        }
        Flow::Again
    }

    /// Reads once and sends that back, unless something is still to be sent.
    fn step(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Step> {
        if !self.unsent.is_empty() {
            self.flush(stream)?;
        }
        let count = stream.read(buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.slow.hold(buffer[0]);
        let sent = match stream.write(&buffer[..count]) {
            Ok(sent) => sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        if sent < count {
            self.unsent.extend_from_slice(&buffer[sent..count]);
            return Ok(Step::More);
        }
        // A stream that gave less than it was asked for has no more: what comes later, its end
        // included, is a new edge. That saves the read that would only say so.
        Ok(if count < buffer.len() && !self.ending { Step::Drained } else { Step::More })
    }

    #[cold]
    fn flush(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let sent = stream.write(&self.unsent)?;
            self.unsent.drain(..sent);
        }
        self.unsent = Vec::new();
        Ok(())
    }
}

/// What a slow request does before it is echoed.
#[derive(Clone, Copy, Debug)]
pub enum Slow {
    /// Keeps its CPU busy.
    Burn,
    /// Sleeps, as code does that waits for a disk or a lock.
    Sleep,
}

impl Slow {
    /// The first byte of a request that is slow.
    pub const MARK: u8 = 0xBB;
    const TIME: Duration = Duration::from_millis(1);

    #[inline]
    fn hold(self, first: u8) {
        if first == Self::MARK {
            self.work();
        }
    }

    #[cold]
    fn work(self) {
        match self {
            Self::Burn => {
                let end = sys::thread_cpu_time() + Self::TIME;
                while sys::thread_cpu_time() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Sleep => std::thread::sleep(Self::TIME),
        }
    }
}
