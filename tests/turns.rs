//! No backlog keeps a thread: each kind of work goes behind what waits after a turn (`Builder::max_turn`).
#![cfg(all(feature = "http", not(loom)))]
#![allow(unsafe_code, reason = "raises a signal")]

mod common;

use common::{Count, Fd, Gate, LONG, finish, hang_guard, in_child_blocking, until};
use paceline::cq::{CompletionQueue, EntryKind};
use paceline::http::{Http, Request, Response};
use paceline::hub::history::{History, Limits, ReplayFrom};
use paceline::hub::{
    Execution, Failure, Hub, Message, OnFailure, Overflow, Retry, SubscriptionBuilder,
};
use paceline::net::{Address, Conn, ConnHandler, DatagramHandler, Datagrams, Server, UdpSocket};
use paceline::task::{Attempt, WorkerPool};
use paceline::{Flow, HandleOptions, Lane, Pin, Pool, Ring, Signals};
use std::any::Any;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 2;
/// Handlers of one backlog: far more than run before everything else is served.
const HANDLERS: u64 = 20_000;
const MS: Duration = Duration::from_millis(1);

/// What the handlers of a backlog do, until the test has seen enough.
#[derive(Clone)]
struct Work {
    ran: Count,
    enough: Arc<AtomicBool>,
    /// It computes instead of sleeping.
    busy: Option<Duration>,
    /// What one of the handlers does, which has this number.
    probe: Arc<OnceLock<Probe>>,
}

type Probe = (u64, Box<dyn Fn() + Send + Sync>);

impl Work {
    fn new(busy: Option<Duration>) -> Self {
        Self { ran: Count::new(), enough: Arc::default(), busy, probe: Arc::default() }
    }

    fn run(&self) {
        let number = self.ran.next();
        if self.is_enough() {
            return;
        }
        if let Some((at, probe)) = self.probe.get()
            && number == *at
        {
            probe();
        }
        match self.busy {
            None => thread::sleep(MS),
            Some(time) => {
                let began = Instant::now();
                while began.elapsed() < time {
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn is_enough(&self) -> bool {
        self.enough.load(SeqCst)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if thread::panicking() {
            self.enough.store(true, SeqCst);
        }
    }
}

fn pool() -> Pool {
    let roomy = Pool::builder().threads(THREADS).pin(Pin::None);
    roomy.lane_capacity(1 << 15).strand_capacity(1 << 15).build().unwrap()
}

/// Makes a backlog for all threads of the pool. What it returns is dropped when the backlog is over.
type Backlog = fn(&Pool, &Work) -> Box<dyn Any>;

/// Each kind of work that can be a backlog.
const BACKLOGS: &[(&str, Backlog)] = &[
    ("posts", |pool, work| {
        for _ in 0..HANDLERS {
            let work = work.clone();
            pool.post(move || work.run()).unwrap();
        }
        Box::new(())
    }),
    ("timers", |pool, work| {
        for _ in 0..HANDLERS {
            let work = work.clone();
            drop(pool.after(Duration::ZERO, move || work.run()).unwrap());
        }
        Box::new(())
    }),
    ("tasks of a worker pool", |pool, work| {
        let workers = WorkerPool::new(pool);
        for _ in 0..HANDLERS {
            let work = work.clone();
            drop(workers.task("slow", move |_: &Attempt<'_>| work.run()).submit().unwrap());
        }
        Box::new(workers)
    }),
    ("strands", |pool, work| {
        let strands = [0; THREADS].map(|_| pool.strand().unwrap());
        for strand in &strands {
            for _ in 0..HANDLERS / THREADS as u64 {
                let work = work.clone();
                strand.post(move || work.run()).unwrap();
            }
        }
        Box::new(strands)
    }),
    ("serial rings", |pool, work| {
        let ring = |_| {
            let work = work.clone();
            Ring::serial(pool, 2, move |_: &[u64]| work.run()).unwrap()
        };
        Box::new([0; THREADS].map(|_| Feeder::of(work, ring(()))))
    }),
    ("a concurrent ring", |pool, work| {
        let handler = work.clone();
        let ring = Ring::concurrent(pool, 1024, move |_: &[u64]| handler.run()).unwrap();
        Box::new([0; THREADS].map(|_| Feeder::of(work, ring.clone())))
    }),
    ("subscriptions", |pool, work| subscriptions(pool, work, THREADS, |settings| settings)),
    ("measured subscriptions that retry", |pool, work| {
        subscriptions(pool, work, THREADS, |settings| {
            settings.measured().on_failure(OnFailure::discard().retry(Retry::fixed(1, MS)))
        })
    }),
    ("subscriptions that retry at once", |pool, work| {
        let hub = Hub::new(pool).unwrap();
        let subscribed = [0; THREADS].map(|_| {
            let work = work.clone();
            let retry = OnFailure::discard().retry(Retry::fixed(u32::MAX, Duration::ZERO));
            let settings = hub.subscription("k").on_failure(retry);
            let handler = move |_: &Message<'_>| {
                work.run();
                if work.is_enough() { Ok(()) } else { Err(Failure::new("not yet")) }
            };
            settings.serve(handler).unwrap()
        });
        let _ = hub.publish("k", "x").unwrap();
        Box::new((subscribed, hub))
    }),
    ("descriptors that make each other ready", |pool, work| {
        let pipes = [0; 2 * THREADS].map(|_| Fd::pipe());
        let (reads, writes): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
        let writes = Arc::new(writes);
        let handles: Vec<_> = reads
            .into_iter()
            .enumerate()
            .map(|(number, read)| {
                let (work, writes) = (work.clone(), Arc::clone(&writes));
                let handle = pool.register(read, move |fd: &mut Fd, _| {
                    if fd.drain() > 0 {
                        work.run();
                        // At the end the other one may be gone.
                        let _sent = writes[number ^ 1].write(b"x");
                    }
                    if work.is_enough() { Flow::Pause } else { Flow::Wait }
                });
                handle.unwrap()
            })
            .collect();
        writes.iter().for_each(|write| assert_eq!(write.write(b"x").unwrap(), 1));
        Box::new((handles, writes))
    }),
    ("a concurrent subscription", |pool, work| {
        let (hub, work) = (Hub::new(pool).unwrap(), work.clone());
        let concurrent = Execution::Concurrent(THREADS as u32);
        let settings = hub.subscription("k").capacity(HANDLERS as usize).execution(concurrent);
        let subscribed = settings.serve_shared(move |_: &Message<'_>| work.run()).unwrap();
        (0..HANDLERS).for_each(|_| {
            let _ = hub.publish("k", "x").unwrap();
        });
        Box::new((subscribed, hub))
    }),
    ("subscriptions on a strand", |pool, work| {
        let hubs = [0; THREADS].map(|_| {
            subscriptions(pool, work, 1, |settings| settings.execution(Execution::Strand))
        });
        Box::new(hubs)
    }),
    ("subscriptions that lag for ever", |pool, work| {
        let hub = Hub::new(pool).unwrap();
        let subscribed = [0; THREADS].map(|_| {
            let work = work.clone();
            let settings = hub.subscription("k").overflow(Overflow::DropOldest);
            settings.serve(move |_: &Message<'_>| work.run()).unwrap()
        });
        let (enough, publishes) = (work.clone(), hub.clone());
        let publisher = thread::spawn(move || {
            while !enough.is_enough() {
                let _ = publishes.publish("k", "x").unwrap();
            }
        });
        Box::new((subscribed, Joined(Some(publisher)), hub))
    }),
    ("replays", |pool, work| {
        let history = History::of(">").keep(Limits::of_count(HANDLERS));
        let hub = Hub::builder(pool).history(history).build().unwrap();
        (0..HANDLERS).for_each(|_| {
            let _ = hub.publish("k", "x").unwrap();
        });
        let replays = [0; THREADS].map(|_| {
            let work = work.clone();
            let replay = hub.replay("k", ReplayFrom::Beginning);
            replay.serve(move |_: &Message<'_>| work.run()).unwrap()
        });
        Box::new((replays, hub))
    }),
    ("pipelined requests", |pool, work| {
        let slow = work.clone();
        let server = Http::builder(pool).listen("127.0.0.1:0").route(
            "GET",
            "/",
            move |_: &Request<'_>, response: Response| {
                slow.run();
                response.text("x")
            },
        );
        let server = server.serve().unwrap();
        let address = address_of(&server.addresses()[0]);
        let clients = [0; THREADS].map(|_| {
            let mut peer = TcpStream::connect(address).unwrap();
            let mut reads = peer.try_clone().unwrap();
            let requests = "GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(HANDLERS as usize / THREADS);
            [
                Joined(Some(thread::spawn(move || drop(peer.write_all(requests.as_bytes()))))),
                Joined(Some(thread::spawn(move || drop(reads.read_to_end(&mut Vec::new()))))),
            ]
        });
        Box::new((server, clients))
    }),
    ("connections", |pool, work| {
        let handler = work.clone();
        let server = Server::builder(pool).listen("127.0.0.1:0");
        let server = server.serve(move |_| Takes(handler.clone())).unwrap();
        let address = address_of(&server.addresses()[0]);
        let clients = [0; THREADS].map(|_| {
            let (enough, mut peer) = (work.clone(), TcpStream::connect(address).unwrap());
            Joined(Some(thread::spawn(move || {
                while !enough.is_enough() && peer.write_all(&[0; 1 << 20]).is_ok() {}
            })))
        });
        Box::new((clients, server))
    }),
    ("datagrams", |pool, work| {
        let sockets = [0; THREADS].map(|_| {
            let socket = UdpSocket::builder(pool).bind("127.0.0.1:0").batch(1);
            let socket = socket.serve(Takes(work.clone())).unwrap();
            let (enough, to) = (work.clone(), socket.address());
            let from = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let sender = thread::spawn(move || {
                while !enough.is_enough() {
                    (0..64).for_each(|_| drop(from.send_to(&[0; 8], to)));
                    thread::sleep(MS);
                }
            });
            (Joined(Some(sender)), socket)
        });
        Box::new(sockets)
    }),
];

/// So many subscriptions, with a backlog each.
fn subscriptions(
    pool: &Pool,
    work: &Work,
    count: usize,
    settle: impl Fn(SubscriptionBuilder<'_>) -> SubscriptionBuilder<'_>,
) -> Box<dyn Any> {
    let hub = Hub::new(pool).unwrap();
    let subscribe = |number: usize| {
        let work = work.clone();
        let key = format!("k.{number}");
        let settings = hub.subscription(&key).capacity(HANDLERS as usize);
        settle(settings).serve(move |_: &Message<'_>| work.run()).unwrap()
    };
    let subscribed: Vec<_> = (0..count).map(subscribe).collect();
    for message in 0..HANDLERS as usize {
        let _ = hub.publish(format!("k.{}", message % count), "x").unwrap();
    }
    Box::new((subscribed, hub))
}

/// Keeps a ring full.
struct Feeder {
    _feeds: Joined,
    _ring: Ring<u64>,
}

impl Feeder {
    fn of(work: &Work, ring: Ring<u64>) -> Self {
        let (work, feeds) = (work.clone(), ring.clone());
        let feeds = move || while !work.is_enough() && feeds.publish(1).is_ok() {};
        Self { _feeds: Joined(Some(thread::spawn(feeds))), _ring: ring }
    }
}

/// A thread that is waited for.
struct Joined(Option<thread::JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        // A test that has failed ends nobody's backlog any more.
        if thread::panicking() {
            return;
        }
        let _panicked = self.0.take().map(thread::JoinHandle::join);
    }
}

/// A handler that takes what comes.
struct Takes(Work);

impl ConnHandler for Takes {
    fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
        self.0.run();
        bytes.len()
    }
}

impl DatagramHandler for Takes {
    fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {
        self.0.run();
    }
}

fn address_of(address: &Address) -> SocketAddr {
    match address {
        Address::Tcp(address) => *address,
        other => panic!("{other} is no address of IP"),
    }
}

/// Goal: what becomes ready while a backlog has all threads runs after a turn or two, and not after a number of handlers
/// that grows with the backlog. Method: one of the handlers makes a descriptor readable, arms a timer that is due, and
/// posts an urgent task; the handlers that run until each of these has begun are counted.
#[test]
fn a_turn_ends_by_time() {
    let _guard = hang_guard();
    for busy in [None, Some(Duration::from_micros(20))] {
        for &(name, backlog) in BACKLOGS {
            let pool = pool();
            ends_by_time(name, &pool, Work::new(busy), backlog);
            assert!(pool.shutdown(LONG).stuck.is_empty(), "{name}");
        }
    }
}

fn ends_by_time(name: &str, pool: &Pool, work: Work, backlog: Backlog) {
    // A turn is 1 ms: one handler that sleeps, or 50 that compute.
    let most = if work.busy.is_none() { 40 } else { 400 };
    let gate = hold(pool);
    let (read, write) = Fd::pipe();
    let began = Arc::new([const { OnceLock::new() }; 3]);
    let note = |index: usize| {
        let (began, ran) = (Arc::clone(&began), work.ran.clone());
        move || assert!(began[index].set(ran.get()).is_ok())
    };
    let (read_it, timed, urgent) = (note(0), note(1), note(2));
    let handle = pool.register(read, move |fd, _| {
        fd.drain();
        read_it();
        Flow::Wait
    });
    let (on, first) = (pool.clone(), 2 * THREADS as u64);
    let probe = move || {
        assert_eq!(write.write(b"x").unwrap(), 1);
        drop(on.after(Duration::ZERO, timed.clone()).unwrap());
        on.lane(Lane::Critical).post(urgent.clone()).unwrap();
    };
    assert!(work.probe.set((first, Box::new(probe))).is_ok());
    let kept = backlog(pool, &work);
    gate.open();
    until(name, || began.iter().all(|began| began.get().is_some()));
    work.enough.store(true, SeqCst);
    for (what, began) in ["a descriptor", "a timer", "a CRITICAL task"].iter().zip(&*began) {
        let handlers = began.get().unwrap() - first;
        // Timers that were due before it come before it.
        let is_in_order = (name, *what) == ("timers", "a timer");
        assert!(
            handlers <= most || is_in_order,
            "{name} ({:?}): {what} after {handlers} handlers",
            work.busy
        );
    }
    drop((handle, kept));
}

/// Keeps all threads of the pool until the gate opens.
fn hold(pool: &Pool) -> Gate {
    let gate = Gate::new();
    for _ in 0..THREADS {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(THREADS as u64);
    gate
}

/// Goal: the README's first promise, for each kind of work: with as many endless backlogs as threads, an HTTP request, a
/// timer, an urgent task and a signal are served. Method: they are asked for when the backlog has all threads; each must
/// be served before half of it is done. (Handlers that sleep leave the CPUs to the client.)
#[test]
fn a_slow_handler_delays_nothing_else_whatever_it_is_and_however_much_of_it_waits() {
    let _guard = hang_guard();
    in_child_blocking(&[libc::SIGTERM], || {
        for busy in [None, Some(Duration::from_micros(20))] {
            for &(name, backlog) in BACKLOGS {
                let pool = pool();
                serves_beside(name, &pool, Work::new(busy), backlog);
                assert!(pool.shutdown(LONG).stuck.is_empty(), "{name}");
            }
        }
    });
}

fn serves_beside(name: &str, pool: &Pool, work: Work, backlog: Backlog) {
    let greet = |_: &Request<'_>, response: Response| response.text("hello");
    let server = Http::builder(pool).listen("127.0.0.1:0").route("GET", "/", greet);
    let server = server.serve().unwrap();
    let (told, signals) = (Count::new(), Count::new());
    let (ticks, noted) = (told.clone(), signals.clone());
    let watched = Signals::new(pool, &[libc::SIGTERM], move |_| noted.up()).unwrap();
    let gate = hold(pool);
    let kept = backlog(pool, &work);
    gate.open();
    until("the backlog has begun", || work.ran.get() >= 2 * THREADS as u64);
    let before = work.ran.get();
    let half = before + HANDLERS / 2;
    let served = |what: &str| {
        let ran = work.ran.get();
        assert!(ran < half, "{name} ({:?}): {what} came after {ran} of {HANDLERS}", work.busy);
    };
    let mut peer = TcpStream::connect(address_of(&server.addresses()[0])).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let timer = pool.every(10 * MS, move || {
        ticks.up();
        Flow::Wait
    });
    // SAFETY: all threads of this process block it, and the pool takes it.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGTERM) }, 0);
    let urgent = pool.lane(Lane::Critical).submit(|| ()).unwrap();
    urgent.wait().unwrap();
    served("a CRITICAL task");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{name}: {answer:?}");
    served("an HTTP request");
    told.until(2);
    served("a timer");
    signals.until(1);
    served("a signal");
    work.enough.store(true, SeqCst);
    drop((timer, watched, kept));
}

/// A pool that is driven by who joins it.
fn hosted() -> Pool {
    let roomy = Pool::builder().threads(0).max_joined(1).pin(Pin::None);
    roomy.lane_capacity(1 << 15).strand_capacity(1 << 15).build().unwrap()
}

/// Goal: who joins a pool without time has it for one turn, and who joins it for a time leaves after that, whatever
/// waits. Method: handlers take at least as long as a turn, so the number that runs in each stay is bounded.
#[test]
fn a_stay_lasts_for_a_turn_or_its_time() {
    let _guard = hang_guard();
    // A stay without time goes once through all that is ready: a few handlers for each of two sources.
    for (stay, most) in [(Duration::ZERO, 8), (5 * MS, 16)] {
        for &(name, backlog) in BACKLOGS {
            let (pool, work) = (hosted(), Work::new(None));
            let kept = backlog(&pool, &work);
            // Behind it, and of its kind: what is left by one stay is not the first of the next.
            let (strand, others) = (pool.strand().unwrap(), Count::new());
            let (one, other) = (others.clone(), others.clone());
            strand.post(move || one.up()).unwrap();
            pool.lane(Lane::Low).post(move || other.up()).unwrap();
            let stays = (0..).map(|_| {
                let before = work.ran.get();
                pool.join(stay).unwrap();
                work.ran.get() - before
            });
            // What comes over a socket comes by and by.
            let ran: Vec<_> = stays.filter(|&ran| ran > 0).take(20).collect();
            assert!(ran.iter().all(|&ran| ran <= most), "{name}, {stay:?}: {ran:?}");
            let is_in_lanes = ["posts", "tasks of a worker pool"].contains(&name);
            assert!(is_in_lanes || others.get() == 2, "{name}, {stay:?}: {others:?}");
            work.enough.store(true, SeqCst);
            // Destructors wait for clients, and these for the server.
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let (over, pool) = (&over, &pool);
                let host = scope.spawn(move || {
                    while !over.load(SeqCst) {
                        pool.join(MS).unwrap();
                    }
                });
                drop(kept);
                over.store(true, SeqCst);
                host.join().unwrap();
            });
        }
    }
}

/// Goal: in a pool without threads no source of a completion queue keeps a host from the others, or from what the pool
/// runs itself. Method: attempts wait without end; a pipe, a timer and a request come before half of them are done.
#[test]
fn a_completion_queue_brings_all_sources_in_turn() {
    let _guard = hang_guard();
    let (pool, asked) = (hosted(), Count::new());
    let answers = asked.clone();
    let server = Http::builder(&pool).listen("127.0.0.1:0").route(
        "GET",
        "/",
        move |_: &Request<'_>, response: Response| {
            answers.up();
            response.text("hello")
        },
    );
    let server = server.serve().unwrap();
    let queue = CompletionQueue::new(&pool).unwrap();
    let workers = WorkerPool::new(&pool);
    queue.workers(&workers, 1).unwrap();
    let slow = workers.task_type("slow").build().unwrap();
    (0..HANDLERS).for_each(|tag| drop(slow.task_tagged(tag).submit().unwrap()));
    let (read, write) = Fd::pipe();
    let pipe = queue.register(read, HandleOptions::new(), u64::MAX).unwrap();
    let ticks = queue.every(MS, u64::MAX - 1).unwrap();
    assert_eq!(write.write(b"x").unwrap(), 1);
    let mut peer = TcpStream::connect(address_of(&server.addresses()[0])).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let (mut attempts, mut of_pipe, mut of_timer) = (0, 0, 0);
    while of_pipe == 0 || of_timer == 0 || asked.get() == 0 {
        let mut entries = Vec::new();
        queue.wait(&mut entries, 8, LONG).unwrap();
        for entry in entries {
            match (entry.tag, entry.kind) {
                (u64::MAX, EntryKind::Event(event)) => {
                    of_pipe += 1;
                    event.complete(Flow::Pause);
                }
                (_, EntryKind::Event(event)) => {
                    of_timer += 1;
                    event.complete(Flow::Wait);
                }
                (_, EntryKind::Attempt(attempt)) => {
                    attempts += 1;
                    attempt.complete(Ok(())).unwrap();
                }
                (_, other) => drop(other),
            }
        }
        thread::sleep(MS);
        let seen = (of_pipe, of_timer, asked.get());
        assert!(attempts < HANDLERS / 2, "pipe, timer, requests: {seen:?}");
    }
    drop((pipe, ticks, queue));
    let report = pool.shutdown(Duration::ZERO);
    assert!(report.stuck.is_empty());
}

/// Goal: requests that wait behind others on their connection while other work has its turn are all answered, in order.
#[test]
fn pipelined_requests_are_all_answered() {
    const REQUESTS: usize = 4000;
    let _guard = hang_guard();
    let (pool, work) = (pool(), Work::new(Some(Duration::from_micros(200))));
    let server = Http::builder(&pool).listen("127.0.0.1:0").route(
        "GET",
        "/{number}",
        move |request: &Request<'_>, response: Response| {
            work.run();
            response.text(request.param("number").unwrap())
        },
    );
    let server = server.serve().unwrap();
    let mut peer = TcpStream::connect(address_of(&server.addresses()[0])).unwrap();
    let mut reads = peer.try_clone().unwrap();
    let request = |number: usize| {
        let last = if number + 1 == REQUESTS { "Connection: close\r\n" } else { "" };
        format!("GET /{number} HTTP/1.1\r\nHost: h\r\n{last}\r\n")
    };
    let requests: String = (0..REQUESTS).map(request).collect();
    let sender = thread::spawn(move || peer.write_all(requests.as_bytes()));
    let mut answers = String::new();
    reads.read_to_string(&mut answers).unwrap();
    sender.join().unwrap().unwrap();
    let bodies = answers.split("HTTP/1.1 200 OK").skip(1);
    let bodies =
        bodies.map(|answer| answer.rsplit("\r\n\r\n").next().unwrap().parse::<usize>().unwrap());
    assert!(bodies.eq(0..REQUESTS));
    finish(&pool);
}

/// Goal: what a run has taken and leaves when its turn is over comes once, in order, and is counted once. Method: turns of
/// 10 µs, and handlers of which some take longer; publishers that wait for room look at what has begun.
#[test]
fn what_a_turn_leaves_comes_once_and_in_order() {
    const MESSAGES: u64 = 30_000;
    let _guard = hang_guard();
    // One that is alone holds segments that only it has not read.
    for (capacity, subscribers) in [(16, 3), (1024, 3), (1024, 1)] {
        let short = Pool::builder().threads(THREADS).pin(Pin::None);
        let pool = short.max_turn(Duration::from_micros(10)).build().unwrap();
        let hub = Hub::new(&pool).unwrap();
        let subscribed: Vec<_> = (0..subscribers)
            .map(|every| {
                let work = Work::new(Some(Duration::from_micros(30)));
                let (next, wrong) = (Count::new(), Count::new());
                let (seen, bad) = (next.clone(), wrong.clone());
                let handler = move |message: &Message<'_>| {
                    let number = u64::from_le_bytes(message.payload()[..].try_into().unwrap());
                    bad.add(u64::from(number != seen.next() - 1));
                    if number % (30 + every) == 0 {
                        work.run();
                    }
                };
                let settings = hub.subscription("k").capacity(capacity);
                let settings = settings.overflow(Overflow::Block(Duration::MAX));
                (settings.serve(handler).unwrap(), next, wrong)
            })
            .collect();
        for number in 0..MESSAGES {
            let _ = hub.publish("k", &number.to_le_bytes()[..]).unwrap();
        }
        for (subscription, next, wrong) in &subscribed {
            next.until(MESSAGES);
            assert_eq!((next.get(), wrong.get()), (MESSAGES, 0));
            until("it is counted", || subscription.stats().delivered == MESSAGES);
            assert_eq!(subscription.stats().waiting, 0);
        }
        drop((subscribed, hub));
        finish(&pool);
    }
}

/// Goal: handlers that are measured in groups, because they are quick, make no long turn of slow ones that come behind
/// them on a hub's list. Method: one thread, and a quick subscription beside a slow one, both with a backlog; handlers of
/// the slow one post tasks, and count how many others of it have run before each begins.
#[test]
fn a_slow_subscription_behind_a_quick_one_ends_its_turn() {
    const MESSAGES: usize = 400;
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).pin(Pin::None).build().unwrap();
    let (hub, gate) = (Hub::new(&pool).unwrap(), Gate::new());
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    let (ran, worst) = (Count::new(), Arc::new(AtomicU64::new(0)));
    let (on, slow, late) = (pool.clone(), ran.clone(), Arc::clone(&worst));
    let handler = move |_: &Message<'_>| {
        let number = slow.next();
        let (since, late) = (slow.clone(), Arc::clone(&late));
        on.post(move || _ = late.fetch_max(since.get() - number, SeqCst)).unwrap();
        thread::sleep(2 * MS);
    };
    let room = |key| hub.subscription(key).capacity(100 * MESSAGES);
    let quick = room("quick").serve(|_: &Message<'_>| ()).unwrap();
    let slow = room("slow").serve(handler).unwrap();
    for number in 0..100 * MESSAGES {
        let _ = hub.publish("quick", "x").unwrap();
        if number % 100 == 0 {
            let _ = hub.publish("slow", "x").unwrap();
        }
    }
    gate.open();
    ran.until(MESSAGES as u64);
    drop((quick, slow, hub));
    finish(&pool);
    assert!(worst.load(SeqCst) <= 4, "a task began after {worst:?} slow handlers");
}
