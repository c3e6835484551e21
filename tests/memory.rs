//! What connections cost in memory: idle ones, and those of hostile peers.
//!
//! The allocator counts the bytes that live. Each test is a process of its own, so that they are the
//! server's and its pool's. Clients have a table of descriptors of their own, so that ten thousand of
//! them fit beside the server's ends.
#![cfg(all(feature = "net", not(loom)))]
#![allow(unsafe_code, reason = "an allocator that counts, and a thread's own descriptors")]

mod common;
#[path = "net/kit.rs"]
#[allow(dead_code, reason = "made for more tests than these")]
mod kit;

use common::{Count, in_child, limit};
use kit::*;
use paceline::Pool;
use paceline::net::{Address, Conn, ConnHandler, Server};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

struct Counting;

/// Bytes that live, and the most that ever did.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// What the system's allocator has beside each block.
const BESIDE: usize = 16;

fn came(bytes: usize) {
    let bytes = bytes + BESIDE;
    let live = LIVE.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(live, SeqCst);
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        came(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        came(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        came(size);
        LIVE.fetch_sub(layout.size() + BESIDE, SeqCst);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() + BESIDE, SeqCst);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers a line with a kilobyte. A message that does not end makes it write all that may be queued,
/// and it takes nothing.
struct Answering(Count);

impl ConnHandler for Answering {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        if bytes.last() == Some(&b'\n') {
            conn.write(&[7; 1000]).unwrap();
            return bytes.len();
        }
        if bytes.len() == UNCONSUMED {
            while conn.write(&[7; 1000]).is_ok() {}
            self.0.up();
        }
        0
    }
}

const UNCONSUMED: usize = 16 << 10;

/// As many as the process may have descriptors for, up to this.
fn as_many_as(wanted: usize) -> usize {
    let mut allowed = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut allowed) };
    limit(libc::RLIMIT_NOFILE, allowed.rlim_max);
    wanted.min(allowed.rlim_max as usize - 200)
}

/// Clients in a thread with descriptors of its own, each treated so once it is connected. They stay
/// until the sender is dropped.
fn clients(
    address: &Address,
    many: usize,
    treat: impl Fn(&mut Client) + Send + 'static,
) -> (mpsc::Sender<()>, thread::JoinHandle<()>) {
    let ((ready, told), (stop, stopped)) = (mpsc::channel(), mpsc::channel());
    let address = address.clone();
    let clients = thread::spawn(move || {
        // SAFETY: from here on this thread has a table of its own, with the same descriptors.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
        let mut clients: Vec<_> = (0..many).map(|_| Client::connect(&address)).collect();
        clients.iter_mut().for_each(treat);
        ready.send(()).unwrap();
        let _ = stopped.recv();
    });
    told.recv().unwrap();
    (stop, clients)
}

/// Goal: an idle connection, with a timer that watches it and all that the pool has for both, takes up
/// to 1 KiB. Method: ten thousand that have been served once; what lives more than before they came.
#[test]
fn an_idle_connection_takes_up_to_a_kibibyte() {
    in_child(|| {
        let many = as_many_as(10_000);
        for kind in [Kind::Tcp, Kind::Abstract] {
            let pool = Pool::builder().threads(2).build().unwrap();
            let before = LIVE.load(SeqCst);
            let builder = Server::builder(&pool).listen(kind.address());
            let builder = builder.idle_timeout(Duration::from_secs(600));
            let server = builder.serve(|_| Answering(Count::new())).unwrap();
            let (stop, clients) = clients(&server.addresses()[0], many, |client| {
                client.send("\n");
                client.expect([7; 1000]);
            });
            assert_eq!(server.stats().open, many);
            // The clients' own are a number each.
            let each = LIVE.load(SeqCst).saturating_sub(before) / many;
            assert!(each <= 1024, "{each} bytes for each of {many} connections");
            drop(stop);
            clients.join().unwrap();
            end(&server);
        }
    });
}

/// The formula of docs/ARCHITECTURE.md, for a pool of two threads.
fn bound(connections: usize, max_unconsumed: usize, max_output: usize) -> usize {
    let input = 2 * (max_unconsumed + (64 << 10));
    let output = 2 * max_output + (64 << 10);
    connections * (1024 + input + output) + 2 * (128 << 10)
}

/// Goal: peers that never read, and whose messages do not end, cost what the formula says and no more.
/// Method: until the server takes no more of any of them; the most that ever lived.
#[test]
fn hostile_peers_stay_below_the_formula() {
    const MANY: usize = 400;
    const OUTPUT: usize = 256 << 10;
    in_child(|| {
        as_many_as(2 * MANY);
        for kind in [Kind::Tcp, Kind::Abstract] {
            let pool = Pool::builder().threads(2).build().unwrap();
            let full = Count::new();
            let inner = full.clone();
            let server = Server::builder(&pool)
                .listen(kind.address())
                .max_unconsumed(UNCONSUMED)
                .output_marks(1 << 10, 4 << 10, OUTPUT)
                .send_buffer(1)
                .serve(move |_| Answering(inner.clone()))
                .unwrap();
            let before = LIVE.load(SeqCst);
            PEAK.store(before, SeqCst);
            let endless = |client: &mut Client| client.send([b'x'; UNCONSUMED]);
            let (stop, clients) = clients(&server.addresses()[0], MANY, endless);
            full.until(MANY as u64);
            let (live, most) = (LIVE.load(SeqCst) - before, PEAK.load(SeqCst) - before);
            let bound = bound(MANY, UNCONSUMED, OUTPUT);
            assert!(most <= bound, "{most} bytes, more than {bound}");
            let hostile = MANY * (OUTPUT - 20_000 + UNCONSUMED);
            assert!(live >= hostile, "{live} bytes: they were not hostile");
            drop(stop);
            clients.join().unwrap();
            let _report = server.drain(Duration::ZERO);
        }
    });
}
