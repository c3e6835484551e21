//! In steady state nothing is allocated: not per task, not per event, not per timer.
//!
//! The allocator counts, on the threads that a test marks: its own and its pool's. Each test warms
//! its pool up, so that what is kept for re-use has been made, and then counts over thousands of
//! rounds.
#![allow(unsafe_code, reason = "an allocator that counts")]

mod common;

use common::{Count, Fd, finish, hang_guard, until};
use paceline::{Builder, Flow, HandleOptions, Interest, Lane, Pool, ThreadRole, ThreadStats};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

struct Counting;

thread_local! {
    /// Where this thread's allocations are counted.
    static COUNTED: Cell<*const AtomicU64> = const { Cell::new(std::ptr::null()) };
}

fn count() {
    // SAFETY: `Allocations` outlives all threads that it has marked.
    if let Some(count) = unsafe { COUNTED.try_with(Cell::get).unwrap_or_default().as_ref() } {
        count.fetch_add(1, SeqCst);
    }
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of one test. Never freed, since threads may outlive the test.
#[derive(Clone, Copy)]
struct Allocations(&'static AtomicU64);

impl Allocations {
    fn new() -> Self {
        Self(Box::leak(Box::default()))
    }

    fn mark_this_thread(self) {
        COUNTED.set(self.0);
    }

    /// A pool whose threads are marked, and the calling thread too.
    fn of_pool(builder: Builder) -> (Pool, Self) {
        let allocations = Self::new();
        let builder = builder.max_joined(0).on_start(move |_| allocations.mark_this_thread());
        let pool = builder.build().unwrap();
        // A thread makes what it needs when it starts.
        let has_begun = |thread: &ThreadStats| thread.role != ThreadRole::Away;
        until("all threads have begun", || pool.stats().threads.iter().all(has_begun));
        allocations.mark_this_thread();
        (pool, allocations)
    }

    /// How many allocations so many `round`s make when all that is kept for re-use has been made. Which thread does
    /// what is chance, and one may do it for its first time late: so the fewest of some times that are counted.
    fn in_steady_state(self, rounds: u64, mut round: impl FnMut(u64)) -> u64 {
        const TIMES: usize = 10;
        (0..rounds).for_each(&mut round);
        let mut fewest = u64::MAX;
        for _ in 0..TIMES {
            let before = self.0.load(SeqCst);
            (0..rounds).for_each(&mut round);
            fewest = fewest.min(self.0.load(SeqCst) - before);
            if fewest == 0 {
                break;
            }
        }
        fewest
    }
}

/// Waits without allocating.
fn wait_for(count: &Count, target: u64) {
    until("a count", || count.get() >= target);
}

fn eight() -> Builder {
    Pool::builder().threads(8).lane_capacity(1024)
}

#[test]
fn the_allocator_counts() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let here = allocations.in_steady_state(1, |_| drop(std::hint::black_box(Box::new(7))));
    assert_eq!(here, 1);
    // A closure of 100 bytes does not fit a slot, and what it makes is made on the pool.
    let large = [0_u8; 100];
    let there = allocations.in_steady_state(1, |_| {
        let work = move || std::hint::black_box(vec![large[0]; 10]).len();
        assert_eq!(pool.submit(work).unwrap().wait().unwrap(), 10);
    });
    assert_eq!(there, 2);
    finish(&pool);
}

#[test]
fn posting_and_running_tasks_allocates_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let (done, mut sent) = (Count::new(), 0);
    let made = allocations.in_steady_state(100, |round| {
        for number in 0..500 {
            let done = done.clone();
            let lane = Lane::ALL[number % 4];
            let capture = [round; 4];
            pool.lane(lane).post(move || done.add(u64::from(capture[0] == round))).unwrap();
        }
        sent += 500;
        wait_for(&done, sent);
    });
    assert_eq!(made, 0);
    finish(&pool);
}

#[test]
fn posting_batches_allocates_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let (done, mut sent) = (Count::new(), 0);
    let made = allocations.in_steady_state(100, |_| {
        let tasks = (0..500).map(|_| {
            let done = done.clone();
            move || done.up()
        });
        pool.post_batch(tasks).unwrap();
        sent += 500;
        wait_for(&done, sent);
    });
    assert_eq!(made, 0);
    finish(&pool);
}

#[test]
fn submitting_and_waiting_allocates_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let made = allocations.in_steady_state(5000, |round| {
        let capture = [round; 3];
        let task = pool.submit(move || [capture[0], capture[1], capture[2], 7]).unwrap();
        assert_eq!(task.wait().unwrap(), [round, round, round, 7]);
        // Cancelled or let go, it is the same.
        let _either = pool.submit(move || round).unwrap().cancel();
        drop(pool.submit(move || round).unwrap());
    });
    assert_eq!(made, 0);
    finish(&pool);
}

#[test]
fn tasks_that_tasks_post_allocate_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let (done, shared) = (Count::new(), Arc::new(pool.clone()));
    let mut sent = 0;
    let made = allocations.in_steady_state(500, |_| {
        let (inner, done_inside) = (Arc::clone(&shared), done.clone());
        let outer = move || {
            for _ in 0..10 {
                let done = done_inside.clone();
                inner.post(move || done.up()).unwrap();
            }
        };
        pool.post(outer).unwrap();
        sent += 10;
        wait_for(&done, sent);
    });
    assert_eq!(made, 0);
    finish(&pool);
}

#[test]
fn strands_allocate_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let strands: Vec<_> = (0..4).map(|_| pool.strand().unwrap()).collect();
    let (done, mut sent) = (Count::new(), 0);
    let made = allocations.in_steady_state(100, |_| {
        for number in 0..400 {
            let done = done.clone();
            strands[number % 4].post(move || done.up()).unwrap();
        }
        sent += 400;
        wait_for(&done, sent);
    });
    assert_eq!(made, 0);
    drop(strands);
    finish(&pool);
}

#[test]
fn arming_cancelling_and_firing_timers_allocates_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let (done, mut sent) = (Count::new(), 0);
    let mut round = |number: u64| {
        for fraction in 0..20 {
            let done = done.clone();
            let delay = Duration::from_micros(number % 50 * fraction);
            drop(pool.after(delay, move || done.up()).unwrap());
        }
        for _ in 0..20 {
            let timer = pool.after(Duration::from_secs(3600), || ()).unwrap();
            assert!(timer.postpone(Duration::from_secs(7200)) && timer.cancel());
        }
        sent += 20;
        wait_for(&done, sent);
    };
    // Cancelled timers stay in their slots until they are swept out, so that their number goes up
    // and down; warm up until it has been as high as it gets.
    for number in 0..500 {
        round(number);
    }
    let made = allocations.in_steady_state(300, round);
    assert_eq!(made, 0);
    finish(&pool);
}

#[test]
fn periodic_timers_allocate_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let runs = Count::new();
    let timers: Vec<_> = (1..=10)
        .map(|number| {
            let runs = runs.clone();
            let handler = move || {
                runs.up();
                Flow::Wait
            };
            pool.every(Duration::from_micros(50 * number), handler).unwrap()
        })
        .collect();
    let made = allocations.in_steady_state(20, |_| {
        let before = runs.get();
        wait_for(&runs, before + 100);
    });
    assert_eq!(made, 0);
    drop(timers);
    finish(&pool);
}

/// Events of pipes and eventfds, edge- and level-triggered, one and many at a time.
#[test]
fn events_allocate_nothing() {
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight().leaders(2));
    let bytes = Count::new();
    let edge = HandleOptions::new().interest(Interest::READABLE);
    let handles: Vec<_> = (0..40)
        .map(|number| {
            let ((read, write), bytes) = (Fd::pipe(), bytes.clone());
            let handler = move |fd: &mut Fd, _| {
                let mut buffer = [0; 64];
                while let Ok(count) = fd.read(&mut buffer) {
                    bytes.add(count as u64);
                }
                Flow::Wait
            };
            let options = if number % 2 == 0 { edge } else { edge.level() };
            (pool.register_with(read, options, handler).unwrap(), write)
        })
        .collect();
    let counter = Fd::eventfd();
    let (bell, counted) = (counter.duplicate(), bytes.clone());
    let handler = move |fd: &mut Fd, _| {
        let mut count = [0; 8];
        if fd.read(&mut count).is_ok() {
            counted.add(u64::from_ne_bytes(count));
        }
        Flow::Wait
    };
    let event = pool.register(counter, handler).unwrap();
    let mut sent = 0;
    let made = allocations.in_steady_state(200, |round| {
        for (_, write) in handles.iter().take(1 + round as usize % 40) {
            write.write(b"12345").unwrap();
            sent += 5;
        }
        bell.write(&7_u64.to_ne_bytes()).unwrap();
        sent += 7;
        wait_for(&bytes, sent);
        let (handle, _) = &handles[round as usize % 40];
        handle.pause().unwrap();
        handle.resume().unwrap();
    });
    assert_eq!(made, 0);
    drop((handles, event));
    finish(&pool);
}

/// Payloads that lie in their messages, for subscriptions of each kind, by text and by key.
#[test]
fn publishing_allocates_nothing() {
    use paceline::hub::{Execution, Hub, Message};
    let _guard = hang_guard();
    let (pool, allocations) = Allocations::of_pool(eight());
    let hub = Hub::new(&pool).unwrap();
    let handled = Count::new();
    let subscribe = |pattern, execution| {
        let handled = handled.clone();
        let settings = hub.subscription(pattern).capacity(4096).execution(execution);
        settings.serve_shared(move |_: &Message<'_>| handled.up()).unwrap()
    };
    let mut subscriptions: Vec<_> =
        (0..4).map(|_| subscribe("plain.key", Execution::Serial)).collect();
    let kinds = [Execution::Serial, Execution::Inline, Execution::Concurrent(2), Execution::Strand];
    subscriptions.extend(kinds.map(|execution| subscribe("mixed.*", execution)));
    let keys = [hub.key("plain.key").unwrap(), hub.key("mixed.key").unwrap()];
    let publisher = hub.publisher("test").build().unwrap();
    let mut sent = 0;
    let mut round = |messages: u64| {
        for number in 0..messages {
            let payload = [number as u8; paceline::hub::INLINE];
            for key in &keys {
                let receipt = match number % 3 {
                    0 => hub.publish(key, &payload),
                    1 => hub.publish(key.as_str(), &payload),
                    _ => publisher.publish(key, &payload),
                };
                assert_eq!(receipt.unwrap().enqueued, 4);
            }
            let batch = [payload; 2];
            assert_eq!(hub.publish_batch(&keys[0], &batch).unwrap().enqueued, 8);
        }
        sent += 16 * messages;
        wait_for(&handled, sent);
    };
    // More at once than there will be: where messages wait has been made as large as it will be.
    (0..20).for_each(|_| round(1000));
    let made = allocations.in_steady_state(300, |_| round(10));
    assert_eq!(made, 0);
    drop(subscriptions);
    finish(&pool);
}

/// Requests that their handlers answer at once, with a header of theirs and a parameter of the path.
#[cfg(feature = "http")]
#[test]
fn answering_requests_allocates_nothing() {
    use paceline::http::{Http, Request, Response};
    use std::io::{Read, Write};
    let _guard = hang_guard();
    // One thread: another would get its buffers whenever it first answers.
    let (pool, allocations) = Allocations::of_pool(Pool::builder().threads(1));
    let answer = |request: &Request, response: Response| {
        let name = request.param("name").unwrap();
        response.header("X-Length", b"4").send(name.as_bytes())
    };
    let builder = Http::builder(&pool).listen("127.0.0.1:0").route("GET", "/{name}", answer);
    let server = builder.serve().unwrap();
    let mut client = std::net::TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
    let made = allocations.in_steady_state(2000, |round| {
        let request = b"GET /abcd HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n";
        let pipelined = round as usize % 2 + 1;
        for _ in 0..pipelined {
            client.write_all(request).unwrap();
        }
        let (mut answers, mut got) = ([0; 2000], 0);
        while answers[..got].windows(8).filter(|end| end == b"\r\n\r\nabcd").count() < pipelined {
            got += client.read(&mut answers[got..]).unwrap();
        }
    });
    assert_eq!(made, 0);
    drop((client, server));
    finish(&pool);
}
