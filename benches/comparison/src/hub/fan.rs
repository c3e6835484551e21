//! One publisher and some subscribers. A burst is published, and over when every subscriber has counted
//! all of it; so no peer loses anything, and each is measured from the first publish to the last handler.
//!
//! Who waits for that looks for a moment, as a wake-up would take longer than the rest of a short burst, and then
//! sleeps: a thread that looks for milliseconds takes a CPU from those whose deliveries are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use paceline::Pool;
use paceline::hub::{Hub, Key, Message, Overflow, Publisher, Subscription};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::broadcast;

use super::PATIENCE;

#[derive(Clone, Copy)]
pub struct Shape {
    pub subscribers: usize,
    pub capacity: usize,
    pub burst: u64,
}

/// One way of publishing.
pub trait Peer {
    /// Publishes messages with these numbers.
    fn publish(&mut self, numbers: std::ops::Range<u64>);
}

pub const OURS: &str = "paceline";
pub const BATCHES: &str = "paceline, batches of 32";
pub const TOKIO: &str = "tokio broadcast";
pub const CROSSBEAM: &str = "crossbeam bounded, thread";
pub const ZEROMQ: &str = "ZeroMQ inproc";

type Make = fn(Shape, &Arc<Finished>) -> Result<Box<dyn Peer>, String>;

pub const ALL: [(&str, Make); if cfg!(has_zmq) { 5 } else { 4 }] = [
    (OURS, |shape, finished| Ok(Box::new(Ours::new(shape, finished, false)))),
    (BATCHES, |shape, finished| Ok(Box::new(Ours::new(shape, finished, true)))),
    (TOKIO, |shape, finished| Ok(Box::new(Broadcast::new(shape, finished)))),
    (CROSSBEAM, |shape, finished| Ok(Box::new(Channel::new(shape, finished)))),
    #[cfg(has_zmq)]
    (ZEROMQ, |shape, finished| Ok(Box::new(zmq::Sockets::new(shape, finished)?))),
];

/// So long the end of a burst is looked for without sleep.
const LOOK: Duration = Duration::from_micros(100);

/// How many subscribers have counted the whole burst, and who is woken when all have.
pub struct Finished {
    count: AtomicUsize,
    all: usize,
    publisher: Thread,
}

impl Finished {
    /// By the publisher.
    fn of(all: usize) -> Self {
        Self { count: AtomicUsize::new(0), all, publisher: std::thread::current() }
    }

    fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    fn one(&self) {
        if self.count.fetch_add(1, Ordering::Release) + 1 == self.all {
            self.publisher.unpark();
        }
    }

    /// By the publisher: until all have counted.
    fn wait(&self) -> Result<(), String> {
        let start = Instant::now();
        while self.count.load(Ordering::Acquire) < self.all {
            if start.elapsed() < LOOK {
                std::thread::yield_now();
            } else if start.elapsed() < PATIENCE {
                std::thread::park_timeout(PATIENCE);
            } else {
                let count = self.count.load(Ordering::Relaxed);
                return Err(format!("{count} of {} subscribers got all", self.all));
            }
        }
        Ok(())
    }
}

/// What a subscriber counts with.
struct Counter {
    left: u64,
    burst: u64,
    finished: Arc<Finished>,
}

impl Counter {
    fn new(shape: Shape, finished: &Arc<Finished>) -> Self {
        Self { left: shape.burst, burst: shape.burst, finished: Arc::clone(finished) }
    }

    #[inline]
    fn count(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.burst;
            self.finished.one();
        }
    }
}

/// Millions of deliveries per second.
pub fn rate(make: Make, shape: Shape, window: Duration) -> Result<f64, String> {
    let finished = Arc::new(Finished::of(shape.subscribers));
    let mut peer = make(shape, &finished)?;
    let mut next = 0;
    let mut burst = |peer: &mut dyn Peer| {
        finished.reset();
        peer.publish(next..next + shape.burst);
        next += shape.burst;
        finished.wait()
    };
    for _ in 0..3 {
        burst(&mut *peer)?;
    }
    let (start, mut bursts) = (Instant::now(), 0u64);
    while start.elapsed() < window {
        burst(&mut *peer)?;
        bursts += 1;
    }
    let deliveries = bursts * shape.burst * shape.subscribers as u64;
    Ok(deliveries as f64 / start.elapsed().as_secs_f64() / 1e6)
}

/// The hub, which makes its publisher wait where a mailbox is full.
struct Ours {
    publisher: Publisher,
    key: Key,
    batches: bool,
    _subscriptions: Vec<Subscription>,
}

impl Ours {
    fn new(shape: Shape, finished: &Arc<Finished>, batches: bool) -> Self {
        let pool = Pool::builder().threads(2).build().expect("two threads can be started");
        let hub = Hub::new(&pool).expect("a hub");
        let subscribe = |_| {
            let mut counter = Counter::new(shape, finished);
            let settings = hub.subscription("a.b").capacity(shape.capacity);
            let handler = move |_: &Message<'_>| counter.count();
            settings.overflow(Overflow::Block(PATIENCE)).serve(handler).expect("a subscription")
        };
        let subscriptions = (0..shape.subscribers).map(subscribe).collect();
        let publisher = hub.publisher("bench").build().expect("a publisher");
        let key = hub.key("a.b").expect("a key");
        Self { publisher, key, batches, _subscriptions: subscriptions }
    }
}

impl Peer for Ours {
    fn publish(&mut self, mut numbers: std::ops::Range<u64>) {
        if !self.batches {
            for number in numbers {
                let receipt = self.publisher.publish(&self.key, &number.to_ne_bytes());
                assert!(receipt.expect("an open hub").is_complete());
            }
            return;
        }
        while !numbers.is_empty() {
            let end = (numbers.start + 32).min(numbers.end);
            let batch = numbers.start..end;
            let payloads = batch.map(u64::to_ne_bytes).map(|bytes| (&bytes).into());
            let payloads = payloads.map(|payload: paceline::hub::Payload| payload);
            let receipt = self.publisher.publish_batch(&self.key, payloads);
            assert!(receipt.expect("an open hub").is_complete());
            numbers.start = end;
        }
    }
}

struct Broadcast {
    sender: broadcast::Sender<u64>,
    _runtime: Runtime,
}

impl Broadcast {
    fn new(shape: Shape, finished: &Arc<Finished>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.expect("two threads can be started");
        let (sender, _) = broadcast::channel(shape.capacity);
        for _ in 0..shape.subscribers {
            let mut receiver = sender.subscribe();
            let mut counter = Counter::new(shape, finished);
            runtime.spawn(async move {
                while receiver.recv().await.is_ok() {
                    counter.count();
                }
            });
        }
        Self { sender, _runtime: runtime }
    }
}

impl Peer for Broadcast {
    fn publish(&mut self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.sender.send(number).expect("receivers");
        }
    }
}

/// One subscriber with a thread of its own.
struct Channel {
    sender: Option<crossbeam_channel::Sender<u64>>,
    thread: Option<JoinHandle<()>>,
}

impl Channel {
    fn new(shape: Shape, finished: &Arc<Finished>) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(shape.capacity);
        let mut counter = Counter::new(shape, finished);
        let thread = std::thread::spawn(move || receiver.iter().for_each(|_: u64| counter.count()));
        Self { sender: Some(sender), thread: Some(thread) }
    }
}

impl Peer for Channel {
    fn publish(&mut self, numbers: std::ops::Range<u64>) {
        let sender = self.sender.as_ref().expect("open");
        for number in numbers {
            sender.send(number).expect("a receiver");
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.sender = None;
        let _joined = self.thread.take().map(JoinHandle::join);
    }
}

/// One PUB socket; the SUB sockets are read by one thread, or as many as there are sockets if that is one.
#[cfg(has_zmq)]
mod zmq {
    use super::*;
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::AtomicBool;

    const PUB: c_int = 1;
    const SUB: c_int = 2;
    const SUBSCRIBE: c_int = 6;
    const SNDHWM: c_int = 23;
    const RCVHWM: c_int = 24;
    const DONTWAIT: c_int = 1;
    const MAX_SOCKETS: c_int = 2;

    #[link(name = "zmq")]
    unsafe extern "C" {
        fn zmq_ctx_new() -> *mut c_void;
        fn zmq_ctx_set(context: *mut c_void, option: c_int, value: c_int) -> c_int;
        fn zmq_ctx_term(context: *mut c_void) -> c_int;
        fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
        fn zmq_close(socket: *mut c_void) -> c_int;
        fn zmq_setsockopt(
            socket: *mut c_void,
            option: c_int,
            value: *const c_void,
            len: usize,
        ) -> c_int;
        fn zmq_bind(socket: *mut c_void, address: *const std::ffi::c_char) -> c_int;
        fn zmq_connect(socket: *mut c_void, address: *const std::ffi::c_char) -> c_int;
        fn zmq_send(socket: *mut c_void, data: *const c_void, len: usize, flags: c_int) -> c_int;
        fn zmq_recv(socket: *mut c_void, data: *mut c_void, len: usize, flags: c_int) -> c_int;
    }

    /// A socket, which one thread at a time uses.
    struct Socket(*mut c_void);

    // SAFETY: ZeroMQ's sockets may pass between threads with a full barrier, which the spawn is.
    unsafe impl Send for Socket {}

    pub struct Sockets {
        context: *mut c_void,
        publisher: Socket,
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    fn checked(result: c_int, what: &str) -> Result<(), String> {
        if result < 0 {
            Err(format!("{what}: {}", std::io::Error::last_os_error()))
        } else {
            Ok(())
        }
    }

    impl Sockets {
        pub fn new(shape: Shape, finished: &Arc<Finished>) -> Result<Self, String> {
            // SAFETY: takes nothing.
            let context = unsafe { zmq_ctx_new() };
            // SAFETY: a live context, here and below; sockets are closed before it ends.
            checked(unsafe { zmq_ctx_set(context, MAX_SOCKETS, 4096) }, "max_sockets")?;
            let publisher = socket(context, PUB, SNDHWM)?;
            // SAFETY: a live socket and a C string.
            checked(unsafe { zmq_bind(publisher.0, c"inproc://hub".as_ptr()) }, "bind")?;
            let mut subscribers = Vec::new();
            for _ in 0..shape.subscribers {
                let one = socket(context, SUB, RCVHWM)?;
                // SAFETY: as above; an empty prefix has no bytes to read.
                unsafe {
                    checked(zmq_setsockopt(one.0, SUBSCRIBE, c"".as_ptr().cast(), 0), "subscribe")?;
                    checked(zmq_connect(one.0, c"inproc://hub".as_ptr()), "connect")?;
                }
                subscribers.push((one, Counter::new(shape, finished)));
            }
            // Subscriptions travel to the publisher as messages do.
            std::thread::sleep(Duration::from_millis(200));
            let stop = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&stop);
            let thread = Some(std::thread::spawn(move || read(subscribers, &seen)));
            Ok(Self { context, publisher, stop, thread })
        }
    }

    /// A socket that holds whole bursts.
    fn socket(context: *mut c_void, kind: c_int, mark: c_int) -> Result<Socket, String> {
        let unlimited: c_int = 0;
        // SAFETY: a live context, and an int of the size given.
        unsafe {
            let socket = zmq_socket(context, kind);
            if socket.is_null() {
                return Err(format!("socket: {}", std::io::Error::last_os_error()));
            }
            let set =
                zmq_setsockopt(socket, mark, (&raw const unlimited).cast(), size_of::<c_int>());
            checked(set, "high-water mark")?;
            Ok(Socket(socket))
        }
    }

    /// Goes round all sockets and takes what each has.
    fn read(mut subscribers: Vec<(Socket, Counter)>, stop: &AtomicBool) {
        let mut buffer = [0u8; 8];
        while !stop.load(Ordering::Relaxed) {
            let mut some = false;
            for (socket, counter) in &mut subscribers {
                // SAFETY: a live socket of this thread, and a buffer of the size given.
                while unsafe { zmq_recv(socket.0, buffer.as_mut_ptr().cast(), 8, DONTWAIT) } >= 0 {
                    counter.count();
                    some = true;
                }
            }
            if !some {
                std::thread::yield_now();
            }
        }
        // SAFETY: nobody uses them any more.
        subscribers.iter().for_each(|(socket, _)| unsafe {
            zmq_close(socket.0);
        });
    }

    impl Peer for Sockets {
        fn publish(&mut self, numbers: std::ops::Range<u64>) {
            for number in numbers {
                let bytes = number.to_ne_bytes();
                // SAFETY: a live socket of this thread, and eight readable bytes.
                unsafe { zmq_send(self.publisher.0, bytes.as_ptr().cast(), bytes.len(), 0) };
            }
        }
    }

    impl Drop for Sockets {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let _joined = self.thread.take().map(JoinHandle::join);
            // SAFETY: the last socket, and then its context.
            unsafe {
                zmq_close(self.publisher.0);
                zmq_ctx_term(self.context);
            }
        }
    }
}
