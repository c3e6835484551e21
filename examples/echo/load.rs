//! The demo's load: one plain epoll thread with many connections, none of which sends its next
//! request before the last one came back. Every byte that comes back is compared.

use crate::server::Slow;
use crate::sys::Epoll;
use hdrhistogram::Histogram;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One request in so many is slow.
pub const ONE_SLOW_IN: u64 = 500;
/// Bytes of a request.
const SIZE: usize = 64;
/// How long the server may be silent before the demo gives up.
const SILENCE: Duration = Duration::from_secs(10);

/// What the load has seen.
pub struct Outcome {
    elapsed: Duration,
    /// Nanoseconds from sending a request until all of it was back.
    latency: Histogram<u64>,
    slow: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.latency.len();
        let rate = requests as f64 / self.elapsed.as_secs_f64();
        let micros = |quantile| self.latency.value_at_quantile(quantile) / 1000;
        writeln!(f, "{requests} requests, {} of them slow; every byte came back", self.slow)?;
        writeln!(
            f,
            "{rate:.0} requests/s   p50 {} µs   p99 {} µs   p99.9 {} µs",
            micros(0.5),
            micros(0.99),
            micros(0.999),
        )
    }
}

/// Keeps `connections` busy for `time`, then waits for what is under way.
pub fn drive(server: SocketAddr, connections: usize, time: Duration) -> io::Result<Outcome> {
    let mut load = Load::connect(server, connections)?;
    let end = load.began + time;
    let mut ready = Vec::new();
    load.requests.iter_mut().try_for_each(|request| request.send(&mut load.sent))?;
    let mut under_way = connections;
    while under_way > 0 {
        load.epoll.wait(&mut ready, SILENCE)?;
        if ready.is_empty() {
            return Err(io::Error::other("the server has stopped answering"));
        }
        for &index in &ready {
            let request = &mut load.requests[index];
            let Some(latency) = request.receive()? else { continue };
            load.latency.saturating_record(latency.as_nanos() as u64);
            if Instant::now() < end {
                request.send(&mut load.sent)?;
            } else {
                under_way -= 1;
            }
        }
    }
    Ok(load.into_outcome())
}

struct Load {
    epoll: Epoll,
    requests: Vec<Request>,
    sent: u64,
    latency: Histogram<u64>,
    began: Instant,
}

impl Load {
    fn connect(server: SocketAddr, connections: usize) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let requests = (0..connections)
            .map(|index| {
                let stream = TcpStream::connect(server)?;
                stream.set_nodelay(true)?;
                epoll.add(&stream, index)?;
                Ok(Request::on(stream))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let longest = SILENCE.as_nanos() as u64;
        let latency = Histogram::new_with_max(longest, 3).map_err(io::Error::other)?;
        Ok(Self { epoll, requests, sent: 0, latency, began: Instant::now() })
    }

    fn into_outcome(self) -> Outcome {
        let elapsed = self.began.elapsed();
        Outcome { elapsed, latency: self.latency, slow: self.sent / ONE_SLOW_IN }
    }
}

/// A connection and the request that is under way on it.
struct Request {
    stream: TcpStream,
    bytes: [u8; SIZE],
    received: usize,
    sent_at: Instant,
}

impl Request {
    fn on(stream: TcpStream) -> Self {
        Self { stream, bytes: [0; SIZE], received: 0, sent_at: Instant::now() }
    }

    /// Sends the next request; `sent` counts those of all connections.
    fn send(&mut self, sent: &mut u64) -> io::Result<()> {
        *sent += 1;
        self.bytes = content(*sent);
        self.received = 0;
        self.sent_at = Instant::now();
        self.stream.write_all(&self.bytes)
    }

    /// Takes what has come back. `Some` when that was the last of it.
    fn receive(&mut self) -> io::Result<Option<Duration>> {
        let mut buffer = [0; SIZE];
        let expected = &self.bytes[self.received..];
        let count = self.stream.read(&mut buffer[..expected.len()])?;
        if count == 0 {
            return Err(io::Error::other("the server has closed a connection"));
        }
        if buffer[..count] != expected[..count] {
            return Err(io::Error::other("something else came back than was sent"));
        }
        self.received += count;
        Ok((self.received == SIZE).then(|| self.sent_at.elapsed()))
    }
}

/// Request number `number`: bytes that differ from those of all others, and a first byte that says
/// whether it is slow.
fn content(number: u64) -> [u8; SIZE] {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = [0; SIZE];
    for (place, word) in bytes.chunks_exact_mut(8).zip(1..) {
        place.copy_from_slice(&(number ^ GOLDEN.wrapping_mul(word)).to_le_bytes());
    }
    bytes[0] = if number.is_multiple_of(ONE_SLOW_IN) { Slow::MARK } else { 0 };
    bytes
}
