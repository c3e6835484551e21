//! `comparison cq`: what an entry of a completion queue costs its host, in batches of 32, beside what the same thread
//! would do without one: an epoll loop written by hand, a mailbox that is read by calls, and a channel.

use std::hint::black_box;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::cq::CompletionQueue;
use paceline::hub::{Hub, Key, Mailbox};
use paceline::{HandleOptions, Interest, Pool};

use crate::options::Plan;
use crate::report::{Column, Results};
use crate::sys::{self, Epoll};

/// Entries that are there at a time, and are taken and completed together.
const BATCH: usize = 32;
const ROUNDS: usize = 200;
const FOREVER: Duration = Duration::MAX;

const CPU: &str = "CPU ns/entry";
const COLUMNS: [Column; 1] = [Column { metric: CPU, decimals: 1 }];

const PACELINE: &str = "paceline";

/// A scenario, what it is, and who takes part.
type Scenario = (&'static str, &'static str, [(&'static str, fn(Duration) -> f64); 2]);

const ALL: [Scenario; 3] = [
    (
        "descriptors",
        "32 descriptors that are always ready, each watched anew after it was handled",
        [(PACELINE, descriptors), ("epoll", epoll)],
    ),
    (
        "messages",
        "messages of 16 bytes to one mailbox, without the publishing",
        [(PACELINE, messages), ("recv_batch", mailbox)],
    ),
    (
        "tags",
        "numbers from the same thread, with the posting",
        [(PACELINE, tags), ("crossbeam-channel", channel)],
    ),
];

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let names = ALL.map(|(name, ..)| name);
    if plan.list {
        println!("scenarios: {}", names.join(", "));
        return Ok(());
    }
    let scenarios = plan.scenarios(&names, &names)?;
    let chosen = || ALL.iter().filter(|(name, ..)| scenarios.contains(name));
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        for (scenario, _, peers) in chosen() {
            for (peer, measure) in peers {
                results.add(scenario, peer, CPU, measure(plan.window));
            }
        }
    }
    for (scenario, what, peers) in chosen() {
        results.print(scenario, what, &peers.map(|(peer, _)| peer), &COLUMNS);
    }
    Ok(())
}

/// CPU nanoseconds of this thread for each entry that `batch` says it has handled, and what `prepare` does is not in it.
fn cost(window: Duration, mut prepare: impl FnMut(), mut batch: impl FnMut() -> usize) -> f64 {
    let (start, mut spent, mut entries) = (Instant::now(), Duration::ZERO, 0);
    while start.elapsed() < window {
        for _ in 0..ROUNDS {
            prepare();
            let before = sys::thread_cpu();
            entries += batch();
            spent += sys::thread_cpu() - before;
        }
    }
    spent.as_nanos() as f64 / entries as f64
}

fn queue(threads: usize) -> (Pool, CompletionQueue) {
    let pool = Pool::builder().threads(threads).build().expect("a pool");
    let queue = CompletionQueue::new(&pool).expect("a queue");
    (pool, queue)
}

/// Takes and completes a batch's entries, which may come in several parts.
fn take(queue: &CompletionQueue, entries: &mut Vec<paceline::cq::Entry>) -> usize {
    let count = queue.wait(entries, BATCH, FOREVER).expect("an open queue");
    entries.clear();
    count
}

fn always_ready() -> Vec<OwnedFd> {
    let ready = || {
        // SAFETY: plain numbers; the descriptor is new, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(1, libc::EFD_NONBLOCK)) };
        assert!(fd.as_raw_fd() >= 0, "no descriptors are left");
        fd
    };
    (0..BATCH).map(|_| ready()).collect()
}

fn descriptors(window: Duration) -> f64 {
    let (_pool, queue) = queue(0);
    let options = HandleOptions::new().interest(Interest::READABLE).level();
    for (tag, fd) in always_ready().into_iter().enumerate() {
        let handle = queue.register(fd, options, tag as u64).expect("a handle");
        handle.detach();
    }
    let mut entries = Vec::with_capacity(BATCH);
    cost(window, || (), || take(&queue, &mut entries))
}

/// Level-triggered and one-shot, as a loop has it whose descriptors are handled by several threads.
fn epoll(window: Duration) -> f64 {
    const WATCHED: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
    let (fds, epoll) = (always_ready(), Epoll::new().expect("an epoll"));
    for (place, fd) in fds.iter().enumerate() {
        epoll.add(fd.as_raw_fd(), WATCHED, place as u64).expect("a descriptor to watch");
    }
    let mut events = sys::events(BATCH);
    let batch = || {
        let count = epoll.wait(&mut events).expect("a wait");
        for event in &events[..count] {
            let place = event.u64;
            let fd = fds[place as usize].as_raw_fd();
            epoll.modify(fd, WATCHED, place).expect("a descriptor that is watched");
        }
        count
    };
    cost(window, || (), batch)
}

fn mail(pool: &Pool) -> (Hub, Key, Mailbox) {
    let hub = Hub::new(pool).expect("a hub");
    let key = hub.key("a").expect("a key");
    let mailbox = hub.subscription("a").pull().expect("a mailbox");
    (hub, key, mailbox)
}

fn publish(hub: &Hub, key: &Key) {
    for _ in 0..BATCH {
        let _ = hub.publish(key, &[0; 16]).expect("an open hub");
    }
}

fn messages(window: Duration) -> f64 {
    let (pool, queue) = queue(1);
    let (hub, key, mailbox) = mail(&pool);
    let mailbox = Arc::new(mailbox);
    queue.mailbox(&mailbox, 1).expect("a source");
    let mut entries = Vec::with_capacity(BATCH);
    let batch = || {
        // Messages that come together are one entry.
        take(&queue, &mut entries);
        BATCH
    };
    cost(window, || publish(&hub, &key), batch)
}

fn mailbox(window: Duration) -> f64 {
    let pool = Pool::builder().threads(1).build().expect("a pool");
    let (hub, key, mailbox) = mail(&pool);
    let mut received = Vec::with_capacity(BATCH);
    let batch = || {
        let count = mailbox.recv_batch(&mut received, BATCH).expect("an open mailbox");
        received.clear();
        count
    };
    cost(window, || publish(&hub, &key), batch)
}

fn tags(window: Duration) -> f64 {
    let (_pool, queue) = queue(1);
    let tags: Vec<u64> = (0..BATCH as u64).collect();
    let mut entries = Vec::with_capacity(BATCH);
    let batch = || {
        queue.post(&tags).expect("there is room");
        let mut count = 0;
        while count < BATCH {
            count += take(&queue, &mut entries);
        }
        count
    };
    cost(window, || (), batch)
}

fn channel(window: Duration) -> f64 {
    let (into, out) = crossbeam_channel::bounded(BATCH);
    let batch = || {
        (0..BATCH).for_each(|number| into.send(number).expect("there is room"));
        out.try_iter().map(black_box).count()
    };
    cost(window, || (), batch)
}
