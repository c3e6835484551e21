//! What connections cost in memory: idle ones, and those of hostile peers; and that worker pools leave nothing behind.
//!
//! The allocator counts the bytes that live. Each test is a process of its own, so that they are the
//! server's and its pool's. Clients have a table of descriptors of their own, so that ten thousand of
//! them fit beside the server's ends.
#![cfg(all(feature = "http", not(loom)))]
#![allow(unsafe_code, reason = "an allocator that counts, and a thread's own descriptors")]

mod common;
#[path = "net/kit.rs"]
#[allow(dead_code, reason = "made for more tests than these")]
mod kit;

use common::{Count, LONG, finish, in_child, limit, until};
use kit::*;
use paceline::Pool;
use paceline::cq::CompletionQueue;
use paceline::http::{Http, Request, Response};
use paceline::net::{Address, Conn, ConnHandler, ConnId, ConnRef, Server};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
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

/// Clients in a thread with descriptors of its own, treated so once all are connected. They stay until
/// the sender is dropped.
fn clients(
    address: &Address,
    many: usize,
    treat: impl FnOnce(&mut [Client]) + Send + 'static,
) -> (mpsc::Sender<()>, thread::JoinHandle<()>) {
    let ((ready, told), (stop, stopped)) = (mpsc::channel(), mpsc::channel());
    let address = address.clone();
    let clients = thread::spawn(move || {
        // SAFETY: from here on this thread has a table of its own, with the same descriptors.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
        let connect = |_| Client::with_buffers(&address, Some(1)).unwrap();
        let mut clients: Vec<_> = (0..many).map(connect).collect();
        treat(&mut clients);
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
            let (stop, clients) = clients(&server.addresses()[0], many, |clients| {
                for client in clients {
                    client.send("\n");
                    client.expect([7; 1000]);
                }
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

/// Goal: the same of an HTTP server. Method: four thousand connections, on each of which a request has been answered.
#[test]
fn an_idle_connection_of_http_takes_up_to_a_kibibyte() {
    in_child(|| {
        let many = as_many_as(4000);
        for kind in [Kind::Tcp, Kind::Abstract] {
            let pool = Pool::builder().threads(2).build().unwrap();
            let before = LIVE.load(SeqCst);
            let root = |_: &Request, response: Response| response.send("root");
            let builder = Http::builder(&pool).listen(kind.address()).route("GET", "/", root);
            let server = builder.serve().unwrap();
            let (stop, clients) = clients(&server.addresses()[0], many, |clients| {
                for client in clients {
                    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                    let (mut answer, mut size) = ([0; 500], 0);
                    while !answer[..size].ends_with(b"root") {
                        size += client.0.read(&mut answer[size..]).unwrap();
                    }
                }
            });
            assert_eq!(server.server().stats().open, many);
            let each = LIVE.load(SeqCst).saturating_sub(before) / many;
            assert!(each <= 1024, "{each} bytes for each of {many} connections");
            drop(stop);
            clients.join().unwrap();
            assert!(server.drain(LONG));
            drop(server);
            finish(&pool);
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
                .stall_timeout(LONG)
                .serve(move |_| Answering(inner.clone()))
                .unwrap();
            let before = LIVE.load(SeqCst);
            PEAK.store(before, SeqCst);
            let endless = |clients: &mut [Client]| {
                clients.iter_mut().for_each(|client| client.send([b'x'; UNCONSUMED]));
            };
            let (stop, clients) = clients(&server.addresses()[0], MANY, endless);
            full.until(MANY as u64);
            let (live, most) = (LIVE.load(SeqCst) - before, PEAK.load(SeqCst) - before);
            let bound = bound(MANY, UNCONSUMED, OUTPUT);
            assert!(most <= bound, "{most} bytes, more than {bound}");
            // What was queued at first, the kernel has taken some of since.
            let hostile = MANY * (OUTPUT / 2 + UNCONSUMED);
            assert!(live >= hostile, "{live} bytes: they were not hostile");
            drop(stop);
            clients.join().unwrap();
            let _report = server.drain(Duration::ZERO);
            drop(server);
            finish(&pool);
        }
    });
}

/// What [`until`] waits for here must hold on to nothing: `LIVE`, less what lived before.
fn grown_since(before: usize) -> usize {
    LIVE.load(SeqCst).saturating_sub(before)
}

/// Goal: a thousand clients of an HTTP server whose heads never end, and a thousand that ask and never
/// read, cost what the formula says and no more. Method: the heads drip until all that they may have is
/// there; the others ask until the server reads no more of any of them; the most that ever lived.
#[test]
fn hostile_clients_of_http_stay_below_the_formula() {
    const MANY: usize = 1000;
    const MAX_HEAD: usize = 8 << 10;
    const HIGH: usize = 32 << 10;
    const ANSWER: usize = 2000;
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    in_child(|| {
        let many = as_many_as(2 * MANY) / 2;
        for kind in [Kind::Tcp, Kind::Abstract] {
            let pool = Pool::builder().threads(2).build().unwrap();
            let asking: Arc<Mutex<HashMap<ConnId, ConnRef>>> = Arc::default();
            let inner = Arc::clone(&asking);
            let before = LIVE.load(SeqCst);
            PEAK.store(before, SeqCst);
            let server = Http::builder(&pool)
                .listen(kind.address())
                .max_head(MAX_HEAD)
                .head_timeout(LONG)
                .server(|server| {
                    let server = server.output_marks(HIGH / 2, HIGH, 1 << 20).stall_timeout(LONG);
                    server.send_buffer(1)
                })
                .route("GET", "/", move |request: &Request, response: Response| {
                    let conn = request.conn();
                    inner.lock().unwrap().insert(conn.id(), conn);
                    response.send([7; ANSWER])
                })
                .serve()
                .unwrap();
            let address = &server.addresses()[0];

            // A block of the allocator for each: 1 KiB and what has come, grown by doubling.
            let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: ";
            let endless = move |clients: &mut [Client]| {
                clients.iter_mut().for_each(|client| client.send(head));
                for _ in 0..MAX_HEAD / 512 - 1 {
                    clients.iter_mut().for_each(|client| client.send([b'x'; 512]));
                }
            };
            let (stop_slow, slow) = clients(address, many, endless);
            let sent = MAX_HEAD - 512 + head.len();
            until("all heads are there", || grown_since(before) >= many * sent);
            let most = PEAK.load(SeqCst) - before;
            let heads = many * (1024 + 2 * sent) + 2 * (128 << 10);
            assert!(most <= heads, "{most} bytes for heads, more than {heads}");

            let asked = Arc::clone(&asking);
            let deaf = move |clients: &mut [Client]| {
                let burst = REQUEST.repeat(100);
                let mut at = vec![0; clients.len()];
                until("nobody is read from any more", || {
                    for (client, at) in clients.iter_mut().zip(&mut at) {
                        client.0.set_nonblocking(true).unwrap();
                        while let Ok(count) = client.0.write(&burst[*at..]) {
                            *at = (*at + count) % REQUEST.len();
                        }
                    }
                    let pressed = |conn: &&ConnRef| conn.queued() >= HIGH / 2;
                    asked.lock().unwrap().values().filter(pressed).count() == clients.len()
                });
            };
            let (stop_deaf, deaf) = clients(address, many, deaf);
            let most = PEAK.load(SeqCst) - before;
            let bound = heads + bound(many, MAX_HEAD + (128 << 10), HIGH + ANSWER);
            assert!(most <= bound, "{most} bytes, more than {bound}");
            assert!(grown_since(before) >= many * (sent + HIGH / 2), "they were not hostile");
            drop((stop_slow, stop_deaf));
            slow.join().unwrap();
            deaf.join().unwrap();
            asking.lock().unwrap().clear();
            assert!(server.drain(LONG));
            drop(server);
            finish(&pool);
        }
    });
}

/// Goal: nothing is left of a worker pool when its pool is gone and the handles of its tasks, in whatever order
/// they go. Method: many of them, each with tasks of all sorts, and with handles that outlive it.
#[test]
fn worker_pools_leave_nothing_behind() {
    use paceline::task::{Attempt, Rate, Retry, Scaling, WorkerPool};
    const MANY: usize = 100;
    let round = |held: &mut Vec<_>| {
        // An attempt that outlives its pool.
        let mut out = Vec::new();
        let pool = Pool::builder().threads(2).pin(paceline::Pin::None).build().unwrap();
        let others = WorkerPool::new(&pool);
        let workers = WorkerPool::builder(&pool).scaling(Scaling::default()).build().unwrap();
        let kind = workers
            .task_type("bounded")
            .max_running(1)
            .rate(Rate::new(100, Duration::from_millis(1)));
        let kind = kind.timeout(LONG).retry(Retry::fixed(1, Duration::ZERO)).build().unwrap();
        held.push(kind.submit(|attempt: &Attempt<'_>| attempt.number() as usize).unwrap());
        held.push(others.task("delayed", |_: &Attempt<'_>| 0_usize).delay(LONG).submit().unwrap());
        let tagged = others.task_type("tagged").build().unwrap();
        for tag in 0..3 {
            drop(tagged.task_tagged(tag).key(7).submit().unwrap());
        }
        let queue = CompletionQueue::new(&pool).unwrap();
        queue.workers(&others, 9).unwrap();
        queue.wait(&mut out, 1, LONG).unwrap();
        assert!(others.stats().in_flight > 0);
        held[0].is_done();
    };
    in_child(|| {
        let mut held = Vec::new();
        let mut live = [0; 2];
        for live in &mut live {
            for _ in 0..MANY {
                round(&mut held);
                // Those of the round before outlive their pools by one.
                held.drain(..held.len() - 2);
            }
            *live = LIVE.load(SeqCst);
        }
        let each = live[1].saturating_sub(live[0]) / MANY;
        assert!(each < 64, "{each} bytes are left of each");
    });
}
