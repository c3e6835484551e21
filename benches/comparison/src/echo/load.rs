//! The load generator: one thread, one epoll, any number of connections, every byte verified.
//!
//! What a connection sends is a stream cut from one long repeating pattern, each connection
//! starting elsewhere in it. So a message needs no building, and an answer is checked by one
//! comparison wherever the network cuts it; a byte that is lost, doubled, reordered or another
//! connection's shows. Pattern bytes are below 0x80: only the first byte of a slow request is 0xBB.
//!
//! *Closed loop*: each connection has `depth` requests on the way at all times. *Open loop*:
//! requests have fixed times, whatever the server does, and latency counts from the time a request
//! was due, so that a server which falls behind cannot hide it.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::serve::{SLOW_MARK, SLOW_TIME};
use crate::sys::{self, Epoll};

/// Length of the repeating part of the pattern: a prime, so that no message size divides it.
const PERIOD: usize = 65_521;
/// The longest piece that is sent or compared at once.
const CHUNK: usize = 64 * 1024;
/// No answer at all for so long means that the server hangs.
const STALLED: Duration = Duration::from_secs(5);

/// Requests at fixed times: `per_second` of them, one in `slow_one_in` slow.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub per_second: u32,
    /// Gaps drawn from an exponential distribution instead of equal ones.
    pub random: bool,
    pub slow_one_in: Option<u32>,
}

pub struct Load {
    epoll: Epoll,
    events: sys::Events,
    connections: Vec<Connection>,
    size: usize,
    pattern: Vec<u8>,
    buffer: Vec<u8>,
    start: Instant,
    random: Random,
    /// Of answers since the last `begin_window`: in nanoseconds, slow requests left out.
    pub latency: Histogram<u64>,
    /// Answers since the last `begin_window`, slow ones included.
    pub completed: u64,
    outstanding: usize,
    /// Where the search for a free connection goes on.
    next: usize,
}

struct Connection {
    fd: OwnedFd,
    /// Positions in this connection's stream.
    sent: u64,
    wanted: u64,
    received: u64,
    /// When each outstanding request was sent, or due.
    stamps: VecDeque<u64>,
    /// The outstanding request is a slow one; it is the only one then.
    slow: bool,
}

impl Load {
    pub fn new(size: usize) -> io::Result<Self> {
        sys::sharpen_timers();
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut pattern: Vec<u8> = (0..PERIOD).map(|_| random.next() as u8 & 0x7F).collect();
        pattern.extend_from_within(..);
        pattern.extend_from_within(..CHUNK);
        Ok(Self {
            epoll: Epoll::new()?,
            events: sys::events(1024),
            connections: Vec::new(),
            size,
            pattern,
            buffer: vec![0; CHUNK],
            start: Instant::now(),
            random,
            latency: Histogram::new_with_bounds(1_000, 60_000_000_000, 3).expect("valid bounds"),
            completed: 0,
            outstanding: 0,
            next: 0,
        })
    }

    /// Opens `count` more connections and sees one request answered on each, so that the server
    /// has accepted them all.
    pub fn connect(&mut self, address: SocketAddr, count: usize) -> io::Result<()> {
        let first = self.connections.len();
        for _ in 0..count {
            self.open(address)?;
        }
        for index in first..self.connections.len() {
            let now = self.now();
            self.request(index, now)?;
        }
        self.drain()
    }

    fn open(&mut self, address: SocketAddr) -> io::Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        self.epoll.add(stream.as_raw_fd(), sys::EDGE, self.connections.len() as u64)?;
        let at = (self.connections.len() * 7919) as u64;
        self.connections.push(Connection {
            fd: stream.into(),
            sent: at,
            wanted: at,
            received: at,
            stamps: VecDeque::with_capacity(16),
            slow: false,
        });
        Ok(())
    }

    pub fn begin_window(&mut self) {
        self.latency.reset();
        self.completed = 0;
    }

    /// Keeps `depth` requests on the way on each of the first `active` connections.
    pub fn closed(&mut self, active: usize, depth: usize, time: Duration) -> io::Result<()> {
        for index in 0..active {
            while self.connections[index].stamps.len() < depth {
                let now = self.now();
                self.request(index, now)?;
            }
        }
        let end = Instant::now() + time;
        let mut alive = Progress::new(self);
        while let Some(left) = left_until(end) {
            self.harvest(left.min(STALLED / 10), true)?;
            alive.check(self)?;
        }
        Ok(())
    }

    /// Sends requests at their times, each on a connection that has none on the way.
    pub fn open_loop(&mut self, schedule: Schedule, time: Duration) -> io::Result<()> {
        let end = self.now() + time.as_nanos() as u64;
        let mut due = self.now() + self.gap(schedule);
        let mut alive = Progress::new(self);
        loop {
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            while due <= now {
                let Some(index) = self.free_connection() else { break };
                self.connections[index].slow = self.draw_slow(schedule);
                self.request(index, due)?;
                due += self.gap(schedule);
            }
            // Overdue here means that every connection is busy: an answer must come first.
            let next = if due <= now { end } else { due.min(end) };
            self.harvest(Duration::from_nanos(next - now).min(STALLED / 10), false)?;
            alive.check(self)?;
        }
    }

    /// Waits until every request is answered.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut alive = Progress::new(self);
        while self.outstanding > 0 {
            self.harvest(STALLED / 10, false)?;
            alive.check(self)?;
        }
        Ok(())
    }

    fn gap(&mut self, schedule: Schedule) -> u64 {
        let mean = 1e9 / f64::from(schedule.per_second);
        let factor = if schedule.random { -(1.0 - self.random.unit()).ln() } else { 1.0 };
        (mean * factor) as u64
    }

    fn draw_slow(&mut self, schedule: Schedule) -> bool {
        schedule.slow_one_in.is_some_and(|n| self.random.next().is_multiple_of(u64::from(n)))
    }

    fn free_connection(&mut self) -> Option<usize> {
        for _ in 0..self.connections.len() {
            let index = self.next;
            self.next = (self.next + 1) % self.connections.len();
            if self.connections[index].stamps.is_empty() {
                return Some(index);
            }
        }
        None
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn request(&mut self, index: usize, stamp: u64) -> io::Result<()> {
        let connection = &mut self.connections[index];
        connection.stamps.push_back(stamp);
        connection.wanted += self.size as u64;
        self.outstanding += 1;
        if connection.slow { self.send_slow(index) } else { self.flush(index) }
    }

    /// Sends what the connection wants to send and the socket takes.
    fn flush(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        while connection.sent < connection.wanted {
            let from = (connection.sent % PERIOD as u64) as usize;
            let length = ((connection.wanted - connection.sent) as usize).min(CHUNK);
            match sys::send(connection.fd.as_raw_fd(), &self.pattern[from..from + length]) {
                Ok(n) => connection.sent += n as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cold]
    fn send_slow(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let from = (connection.sent % PERIOD as u64) as usize;
        let message = &mut self.buffer[..self.size];
        message.copy_from_slice(&self.pattern[from..from + self.size]);
        message[0] = SLOW_MARK;
        let sent = sys::send(connection.fd.as_raw_fd(), message)?;
        connection.sent += sent as u64;
        if sent == self.size { Ok(()) } else { Err(io::Error::other("a short slow request")) }
    }

    /// Waits for answers once and takes them all; with `refill`, each is followed by a request.
    fn harvest(&mut self, limit: Duration, refill: bool) -> io::Result<()> {
        let ready = self.epoll.wait_for(&mut self.events, limit)?;
        for position in 0..ready {
            let event = self.events[position];
            self.answer(event.u64 as usize, event.events, refill)?;
        }
        Ok(())
    }

    fn answer(&mut self, index: usize, ready: u32, refill: bool) -> io::Result<()> {
        if ready & sys::GONE != 0 {
            return Err(io::Error::other("the server closed a connection"));
        }
        loop {
            let fd = self.connections[index].fd.as_raw_fd();
            match sys::recv(fd, &mut self.buffer) {
                Ok(0) => return Err(io::Error::other("the server closed a connection")),
                Ok(n) => {
                    self.take(index, n, refill)?;
                    if n < self.buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.flush(index)
    }

    /// Verifies `n` received bytes and counts the answers that they complete.
    fn take(&mut self, index: usize, n: usize, refill: bool) -> io::Result<()> {
        let now = self.now();
        self.verify(index, n)?;
        let connection = &mut self.connections[index];
        let start = (index * 7919) as u64;
        let before = (connection.received - start) / self.size as u64;
        connection.received += n as u64;
        let answers = (connection.received - start) / self.size as u64 - before;
        for _ in 0..answers {
            let stamp = connection.stamps.pop_front().expect("verified against what was sent");
            self.completed += 1;
            let took = now.saturating_sub(stamp);
            if !connection.slow {
                self.latency.saturating_record(took);
            } else if Duration::from_nanos(took) < SLOW_TIME {
                return Err(io::Error::other("a slow request was answered too soon"));
            }
            connection.slow = false;
            if refill {
                connection.stamps.push_back(now);
                connection.wanted += self.size as u64;
            } else {
                self.outstanding -= 1;
            }
        }
        Ok(())
    }

    fn verify(&mut self, index: usize, n: usize) -> io::Result<()> {
        let connection = &self.connections[index];
        let wrong = || io::Error::other(format!("connection {index}: wrong bytes came back"));
        if connection.received + n as u64 > connection.sent {
            return Err(wrong());
        }
        let from = (connection.received % PERIOD as u64) as usize;
        if connection.slow && connection.received + self.size as u64 == connection.wanted {
            if self.buffer[0] != SLOW_MARK {
                return Err(wrong());
            }
            self.buffer[0] = self.pattern[from];
        }
        if self.buffer[..n] != self.pattern[from..from + n] {
            return Err(wrong());
        }
        Ok(())
    }
}

fn left_until(end: Instant) -> Option<Duration> {
    Some(end.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Notices a server that has stopped answering.
struct Progress {
    completed: u64,
    since: Instant,
}

impl Progress {
    fn new(load: &Load) -> Self {
        Self { completed: load.completed, since: Instant::now() }
    }

    fn check(&mut self, load: &Load) -> io::Result<()> {
        if load.completed != self.completed || load.outstanding == 0 {
            *self = Self::new(load);
        }
        if self.since.elapsed() > STALLED {
            return Err(io::Error::other("the server stopped answering"));
        }
        Ok(())
    }
}

/// xorshift64: the same requests for every server.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
