//! Stands for the newest kernel interface, written by hand: one io_uring per thread, multishot
//! receives into a ring of provided buffers, and sends straight from those buffers, so that in the
//! common case a request costs no system call of its own. Connections are dealt out in turn.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::{Options, READ_BUFFER, Server, Slow};
use crate::sys;

const ENTRIES: u32 = 1024;
/// Provided buffers per ring, and the distance between two. The odd part spreads the beginnings of
/// the buffers over the sets of the cache.
const BUFFERS: u16 = 512;
const STRIDE: usize = READ_BUFFER + 128;
const GROUP: u16 = 0;

pub struct Uring;

impl Server for Uring {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        let inboxes: Vec<Arc<Inbox>> =
            (0..options.threads).map(|_| Inbox::new().map(Arc::new)).collect::<io::Result<_>>()?;
        for inbox in &inboxes {
            let inbox = Arc::clone(inbox);
            std::thread::spawn(move || {
                if let Err(error) = Loop::new(inbox, options.slow).and_then(Loop::run) {
                    eprintln!("io_uring: {error}");
                    std::process::exit(1);
                }
            });
        }
        for inbox in inboxes.iter().cycle() {
            inbox.put(sys::accept(listener.as_raw_fd())?)?;
        }
        Ok(())
    }
}

/// A ring that does its work when its one thread asks for completions.
fn ring(entries: u32) -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(4 * entries)
        .build(entries)
}

/// Why this machine has no io_uring for us: an old kernel, or no permission.
pub fn probe() -> io::Result<()> {
    ring(1).map(drop)
}

/// New connections for one loop, and the eventfd that its ring reads.
struct Inbox {
    connections: Mutex<Vec<OwnedFd>>,
    bell: OwnedFd,
}

impl Inbox {
    fn new() -> io::Result<Self> {
        // SAFETY: plain integers in, a new descriptor out.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and nobody else owns it.
        Ok(Self { connections: Mutex::default(), bell: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    fn put(&self, fd: OwnedFd) -> io::Result<()> {
        self.connections.lock().expect("no holder panics").push(fd);
        let one = 1u64;
        // SAFETY: eight live bytes, as an eventfd wants them.
        match unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), 8) } {
            8 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn take(&self) -> Vec<OwnedFd> {
        std::mem::take(&mut *self.connections.lock().expect("no holder panics"))
    }
}

/// A received chunk that waits to go back: its buffer and its unsent part.
struct Chunk {
    buffer: u16,
    from: usize,
    to: usize,
}

struct Connection {
    fd: OwnedFd,
    /// In order of arrival; the first is being sent.
    chunks: VecDeque<Chunk>,
    ended: bool,
}

const BELL: u64 = u64::MAX;

/// A completion's token: the connection's index, and which of its two operations completed.
fn token(index: usize, sending: bool) -> u64 {
    (index as u64) << 1 | u64::from(sending)
}

struct Loop {
    ring: IoUring,
    buffers: Buffers,
    inbox: Arc<Inbox>,
    rung: Box<u64>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections whose receive ended for want of buffers.
    starved: Vec<usize>,
    slow: Slow,
}

impl Loop {
    fn new(inbox: Arc<Inbox>, slow: Slow) -> io::Result<Self> {
        let ring = ring(ENTRIES)?;
        let buffers = Buffers::new(&ring)?;
        Ok(Self {
            ring,
            buffers,
            inbox,
            rung: Box::new(0),
            connections: Vec::new(),
            free: Vec::new(),
            starved: Vec::new(),
            slow,
        })
    }

    fn run(mut self) -> io::Result<()> {
        self.listen_to_bell()?;
        let mut completed = Vec::new();
        loop {
            self.ring.submit_and_wait(1)?;
            completed.extend(self.ring.completion());
            for entry in completed.drain(..) {
                self.dispatch(&entry)?;
            }
            for index in std::mem::take(&mut self.starved) {
                self.receive(index)?;
            }
        }
    }

    fn dispatch(&mut self, entry: &cqueue::Entry) -> io::Result<()> {
        let index = (entry.user_data() >> 1) as usize;
        match entry.user_data() {
            BELL => {
                self.admit()?;
                self.listen_to_bell()
            }
            token if token & 1 == 0 => self.received(index, entry.result(), entry.flags()),
            _ => self.sent(index, entry.result()),
        }
    }

    fn received(&mut self, index: usize, result: i32, flags: u32) -> io::Result<()> {
        if let (Some(buffer), 1..) = (cqueue::buffer_select(flags), result) {
            let chunk = Chunk { buffer, from: 0, to: result as usize };
            self.slow.hold(self.buffers.bytes(&chunk));
            let connection = self.connection(index);
            connection.chunks.push_back(chunk);
            if connection.chunks.len() == 1 {
                self.send(index)?;
            }
        }
        if cqueue::more(flags) {
            return Ok(());
        }
        match result {
            1.. => self.receive(index),
            _ if result == -libc::ENOBUFS => {
                self.starved.push(index);
                Ok(())
            }
            _ => {
                self.connection(index).ended = true;
                self.close_if_done(index);
                Ok(())
            }
        }
    }

    fn sent(&mut self, index: usize, result: i32) -> io::Result<()> {
        let connection = self.connection(index);
        let chunk = connection.chunks.front_mut().expect("a send has its chunk");
        chunk.from += result.max(0) as usize;
        if result >= 0 && chunk.from < chunk.to {
            return self.send(index);
        }
        let buffer = chunk.buffer;
        connection.chunks.pop_front();
        let more = !connection.chunks.is_empty();
        self.buffers.give_back(buffer);
        if more {
            return self.send(index);
        }
        self.close_if_done(index);
        Ok(())
    }

    fn admit(&mut self) -> io::Result<()> {
        for fd in self.inbox.take() {
            let connection = Connection { fd, chunks: VecDeque::new(), ended: false };
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            self.connections[index] = Some(connection);
            self.receive(index)?;
        }
        Ok(())
    }

    fn close_if_done(&mut self, index: usize) {
        let connection = self.connection(index);
        if connection.ended && connection.chunks.is_empty() {
            self.connections[index] = None;
            self.free.push(index);
        }
    }

    fn connection(&mut self, index: usize) -> &mut Connection {
        self.connections[index].as_mut().expect("an operation in flight keeps its connection")
    }

    fn receive(&mut self, index: usize) -> io::Result<()> {
        let fd = Fd(self.connection(index).fd.as_raw_fd());
        self.push(opcode::RecvMulti::new(fd, GROUP).build().user_data(token(index, false)))
    }

    fn send(&mut self, index: usize) -> io::Result<()> {
        let connection = self.connections[index].as_ref().expect("it has something to send");
        let fd = Fd(connection.fd.as_raw_fd());
        let bytes = self.buffers.bytes(connection.chunks.front().expect("it has a chunk"));
        let send = opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        self.push(send.build().user_data(token(index, true)))
    }

    fn listen_to_bell(&mut self) -> io::Result<()> {
        let bell: RawFd = self.inbox.bell.as_raw_fd();
        let into = (&raw mut *self.rung).cast();
        self.push(opcode::Read::new(Fd(bell), into, 8).build().user_data(BELL))
    }

    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        // SAFETY: what an entry points to (buffers, `rung`) lives as long as the ring, and a
        // buffer is given back only when its send has completed.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

/// Buffers that the kernel picks from, and the ring they are offered on.
struct Buffers {
    memory: Vec<u8>,
    /// A page-aligned mapping, shared with the kernel.
    ring: *mut BufRingEntry,
    tail: u16,
}

impl Buffers {
    fn new(ring: &IoUring) -> io::Result<Self> {
        let length = BUFFERS as usize * size_of::<BufRingEntry>();
        // SAFETY: an anonymous mapping anywhere; it is never unmapped.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is page-aligned, of the size that BUFFERS entries take, and stays.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(page as u64, BUFFERS, GROUP, 0)?;
        }
        let memory = vec![0; BUFFERS as usize * STRIDE];
        let mut buffers = Self { memory, ring: page.cast(), tail: 0 };
        for buffer in 0..BUFFERS {
            buffers.give_back(buffer);
        }
        Ok(buffers)
    }

    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        let start = chunk.buffer as usize * STRIDE;
        &self.memory[start + chunk.from..start + chunk.to]
    }

    fn give_back(&mut self, buffer: u16) {
        let address = self.memory[buffer as usize * STRIDE..].as_ptr() as u64;
        // SAFETY: the slot at the tail is ours until the tail moves past it.
        let entry = unsafe { &mut *self.ring.add((self.tail % BUFFERS) as usize) };
        entry.set_addr(address);
        entry.set_len(READ_BUFFER as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the ring's first entry, which is initialized and shared.
        let tail = unsafe { &*BufRingEntry::tail(self.ring).cast::<AtomicU16>() };
        // Release: pairs with the kernel's acquire of the tail; it then sees the entry.
        tail.store(self.tail, Ordering::Release);
    }
}
