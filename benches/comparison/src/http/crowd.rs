//! Clients that harm: those that send the head of a request byte by byte, and those that send
//! requests and read no answer. And those that are merely there.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::serve::BODY;
use crate::sys::{self, Buffers};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// A head that takes longer than any run, at a byte per pace.
const SLOW_HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const PACE: Duration = Duration::from_secs(1);
const FILL_LIMIT: Duration = Duration::from_secs(3);
/// What the kernel may keep for a client that does not read. The segments' size counts as well: by
/// it the kernel chooses how much it keeps at the server's end.
const SMALL: Buffers = Buffers { bytes: 4096, segment: 536 };

/// Connections that have each been served one request and are silent since.
pub fn idle(address: SocketAddr, count: usize) -> io::Result<Vec<TcpStream>> {
    let mut idle = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(REQUEST)?;
        read_answer(&mut stream)?;
        idle.push(stream);
    }
    Ok(idle)
}

fn read_answer(stream: &mut TcpStream) -> io::Result<()> {
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    while !answer.ends_with(BODY) {
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            n => answer.extend_from_slice(&buffer[..n]),
        }
    }
    Ok(())
}

/// Hostile clients at work; they go when it is dropped.
pub struct Hostile {
    stop: Arc<AtomicBool>,
    slow: Option<JoinHandle<()>>,
    _deaf: Vec<TcpStream>,
}

impl Hostile {
    /// `each` of either kind. On return those that do not read have filled every buffer between
    /// them and the server.
    pub fn begin(address: SocketAddr, each: usize) -> io::Result<Self> {
        let slow: Vec<TcpStream> =
            (0..each).map(|_| connect(address)).collect::<io::Result<_>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let slow = std::thread::spawn(move || drip(slow, &stopped));
        let deaf: Vec<TcpStream> = (0..each).map(|_| deaf(address)).collect::<io::Result<_>>()?;
        fill(&deaf);
        Ok(Self { stop, slow: Some(slow), _deaf: deaf })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(slow) = self.slow.take() {
            slow.join().expect("dripping does not panic");
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn deaf(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = sys::connect_with(address, SMALL)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// A byte on every connection each `PACE`, spread over it. A server may have closed any of them.
fn drip(streams: Vec<TcpStream>, stop: &AtomicBool) {
    let gap = PACE / streams.len().max(1) as u32;
    for position in 0.. {
        let byte = SLOW_HEAD.get(position).unwrap_or(&b'x');
        for mut stream in &streams {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let _ = stream.write(std::slice::from_ref(byte));
            std::thread::sleep(gap);
        }
    }
}

/// Sends requests until nobody takes any more for a while. Some servers never say no.
fn fill(streams: &[TcpStream]) {
    let burst = REQUEST.repeat(64);
    let mut cut = vec![0; streams.len()];
    let end = Instant::now() + FILL_LIMIT;
    let mut quiet = 0;
    while quiet < 5 && Instant::now() < end {
        let mut sent = 0;
        for (mut stream, cut) in streams.iter().zip(&mut cut) {
            while let Ok(n) = stream.write(&burst[*cut..]) {
                sent += n;
                *cut = (*cut + n) % REQUEST.len();
            }
        }
        quiet = if sent == 0 { quiet + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(20));
    }
}
