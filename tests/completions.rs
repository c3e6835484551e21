//! What a pool itself brings to a completion queue: descriptors, timers and tags, never lost, never twice at once.

mod common;

use common::{hang_guard, until};
use paceline::cq::{CompletionQueue, Entry, EntryKind, Held};
use paceline::{Error, EventKind, Flow, HandleOptions, Interest, Pool, Rejected};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

fn hosted(places: usize) -> Pool {
    Pool::builder().threads(0).max_joined(places).build().unwrap()
}

fn queue_of(pool: Pool) -> (Pool, CompletionQueue) {
    let queue = CompletionQueue::new(&pool).unwrap();
    (pool, queue)
}

/// Both kinds of pools: the host's threads are its members, or sleep beside its own threads.
fn both() -> [(Pool, CompletionQueue); 2] {
    [hosted(8), Pool::builder().threads(2).build().unwrap()].map(queue_of)
}

fn wait(queue: &CompletionQueue, most: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let count = queue.wait(&mut entries, most, LONG).unwrap();
    assert_eq!(count, entries.len());
    entries
}

fn one(queue: &CompletionQueue) -> (u64, Held) {
    let entry = wait(queue, 1).remove(0);
    match entry.kind {
        EntryKind::Event(held) => (entry.tag, held),
        other => panic!("{other:?}"),
    }
}

fn kind(entry: &Entry) -> EventKind {
    match &entry.kind {
        EntryKind::Event(held) => held.kind(),
        other => panic!("{other:?}"),
    }
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

#[test]
fn tags_come_out_in_order_and_the_counters_balance() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        queue.post(&[1]).unwrap();
        queue.post(&[2, 3, 4]).unwrap();
        assert_eq!(pool.audit().in_flight, 4);
        let mut tags = Vec::new();
        while tags.len() < 4 {
            let entries = wait(&queue, 2);
            assert!(entries.len() <= 2);
            assert!(entries.iter().all(|entry| kind(entry) == EventKind::Posted));
            tags.extend(entries.iter().map(|entry| entry.tag));
        }
        assert_eq!(tags, [1, 2, 3, 4]);
        let audit = pool.audit();
        assert!(audit.balances(), "{audit:?}");
        assert_eq!((audit.accepted, audit.completed, audit.in_flight), (4, 4, 0));
    }
}

#[test]
fn a_wait_without_time_comes_back_empty() {
    let _guard = hang_guard();
    for (_pool, queue) in both() {
        let mut entries = Vec::new();
        assert_eq!(queue.wait(&mut entries, 8, Duration::ZERO).unwrap(), 0);
        assert_eq!(queue.wait(&mut entries, 8, Duration::from_millis(5)).unwrap(), 0);
        queue.post(&[7]).unwrap();
        assert_eq!(queue.wait(&mut entries, 8, Duration::ZERO).unwrap(), 1);
    }
}

#[test]
fn a_post_reaches_a_sleeping_host() {
    let _guard = hang_guard();
    for (_pool, queue) in both() {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| wait(&queue, 8).remove(0).tag);
            // Asleep or not yet: both must do.
            thread::sleep(Duration::from_millis(20));
            queue.post(&[5]).unwrap();
            assert_eq!(sleeper.join().unwrap(), 5);
        });
    }
}

/// Goal: a tag that only wakes is no task: no counter has it, no drain waits for it, no room limits it.
#[test]
fn a_queue_is_woken_by_what_is_no_task() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| wait(&queue, 1).remove(0).tag);
            thread::sleep(Duration::from_millis(20));
            queue.wake(5).unwrap();
            assert_eq!(sleeper.join().unwrap(), 5);
        });
        queue.wake(6).unwrap();
        assert_eq!(pool.audit().accepted, 0);
        let report = pool.shutdown(Duration::ZERO);
        assert_eq!((report.drained, report.cancelled), (true, 0));
        assert!(matches!(queue.wake(7), Err(Error::ShutDown)));
        assert_eq!(one(&queue).0, 6);
        assert!(matches!(queue.wait(&mut Vec::new(), 1, LONG), Err(Error::ShutDown)));
    }
}

/// Goal: while one thread has a descriptor's entry, no other gets one of it; what arrives meanwhile
/// comes after the completion.
#[test]
fn a_descriptor_whose_entry_is_out_waits_for_its_completion() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        let (ours, mut theirs) = pair();
        let handle = queue
            .register(ours, HandleOptions::new().interest(Interest::READABLE).level(), 9)
            .unwrap();
        theirs.write_all(b"x").unwrap();
        let (tag, first) = one(&queue);
        assert_eq!((tag, first.handle()), (9, handle.id()));
        let EventKind::Ready(ready) = first.kind() else { panic!("{first:?}") };
        assert!(ready.is_readable());
        theirs.write_all(b"y").unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut entries = Vec::new();
                queue.wait(&mut entries, 8, Duration::from_millis(50)).unwrap()
            });
            assert_eq!(other.join().unwrap(), 0);
        });
        // Nothing was read, so it is ready still.
        drop(first);
        let (tag, second) = one(&queue);
        assert_eq!(tag, 9);
        assert!(matches!(handle.deregister(), Err(Error::Closing)));
        drop(second);
        until("it", || pool.stats().handles == 0);
    }
}

#[test]
fn a_completion_gives_the_answer() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        let (ours, mut theirs) = pair();
        let mut reader = ours.try_clone().unwrap();
        let handle = queue.register(ours, HandleOptions::new(), 1).unwrap();
        theirs.write_all(b"ab").unwrap();
        let mut got = Vec::new();
        while got.len() < 2 {
            let (_, held) = one(&queue);
            let mut byte = [0];
            // One byte at a time, though edge-triggered: Again brings the next.
            got.extend(reader.read(&mut byte).ok().map(|_| byte[0]));
            held.complete(Flow::Again);
        }
        assert_eq!(got, b"ab");
        one(&queue).1.complete(Flow::Done);
        assert!(!handle.is_open());
        until("it", || pool.stats().handles == 0);
    }
}

#[test]
fn timers_are_brought() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        let timer = queue.after(Duration::from_millis(1), 3).unwrap();
        let ticks = queue.every(Duration::from_millis(1), 4).unwrap();
        let mut seen = [0; 2];
        while seen[0] == 0 || seen[1] < 3 {
            for entry in wait(&queue, 8) {
                match kind(&entry) {
                    EventKind::Timer => seen[0] += 1,
                    EventKind::Tick => seen[1] += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(seen[0], 1);
        assert!(!timer.is_pending());
        // It may lie in the queue once more: then it ends when that is completed.
        if ticks.deregister().is_err() {
            drop(wait(&queue, 8));
        }
        let cancelled = queue.after(LONG, 5).unwrap();
        assert!(cancelled.cancel());
        until("it", || pool.audit().balances());
    }
}

/// Goal: an entry may be completed by another thread than the one that took it, and a thread that ends completes what it
/// drops.
#[test]
fn a_thread_that_ends_completes_what_it_had() {
    let _guard = hang_guard();
    let (_pool, queue) = queue_of(Pool::builder().threads(1).build().unwrap());
    let (ours, mut theirs) = pair();
    let level = HandleOptions::new().interest(Interest::READABLE).level();
    let _handle = queue.register(ours, level, 2).unwrap();
    theirs.write_all(b"x").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(one(&queue).0, 2)).join().unwrap();
        let taken = scope.spawn(|| one(&queue).1).join().unwrap();
        taken.complete(Flow::Wait);
    });
    assert_eq!(one(&queue).0, 2);
}

#[test]
fn a_full_queue_gives_tags_back() {
    let _guard = hang_guard();
    let (pool, queue) = queue_of(Pool::builder().threads(1).lane_capacity(4).build().unwrap());
    match queue.post(&[1, 2, 3, 4, 5, 6]) {
        Err(Rejected::Full(4, _)) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(queue.post(&[7]), Err(Rejected::Full(0, _))));
    assert_eq!(wait(&queue, 64).len(), 4);
    queue.post(&[8]).unwrap();
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!((report.drained, report.cancelled), (false, 1));
    assert!(matches!(queue.post(&[9]), Err(Rejected::ShutDown(0))));
    assert!(matches!(queue.wait(&mut Vec::new(), 1, LONG), Err(Error::ShutDown)));
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
}

#[test]
fn a_drain_waits_for_hosts() {
    let _guard = hang_guard();
    for (pool, queue) in both() {
        (0..100).for_each(|tag| queue.post(&[tag]).unwrap());
        thread::scope(|scope| {
            let host = scope.spawn(|| {
                let mut entries = Vec::new();
                while queue.wait(&mut entries, 7, LONG).is_ok() {}
                entries.len()
            });
            let taken_first = pool.audit().completed;
            assert!(pool.shutdown(LONG).drained, "{taken_first}");
            assert_eq!(host.join().unwrap(), 100);
        });
        assert!(pool.audit().balances());
    }
}

#[test]
fn a_handler_and_a_queue_share_a_hosted_pool() {
    let _guard = hang_guard();
    let (pool, queue) = queue_of(hosted(2));
    let ran = std::sync::Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| pool.join(LONG));
        for tag in 0..200 {
            let ran = ran.clone();
            pool.post(move || _ = ran.fetch_add(1, Relaxed)).unwrap();
            queue.post(&[tag]).unwrap();
        }
        let mut tags = Vec::new();
        while tags.len() < 200 {
            tags.extend(wait(&queue, 16).iter().map(|entry| entry.tag));
        }
        assert_eq!(tags, (0..200).collect::<Vec<_>>());
        until("it", || ran.load(Relaxed) == 200);
        let _ = pool.shutdown(LONG);
    });
}

#[test]
fn what_is_wrong_is_said() {
    let _guard = hang_guard();
    let (pool, queue) = queue_of(Pool::builder().threads(1).build().unwrap());
    let nothing = queue.wait(&mut Vec::new(), 0, LONG).unwrap_err();
    assert!(nothing.to_string().contains("most is 0"), "{nothing}");
    let inside = queue.clone();
    let task = pool.submit(move || inside.wait(&mut Vec::new(), 1, LONG)).unwrap();
    assert!(matches!(task.wait().unwrap(), Err(Error::WouldDeadlock)));
}

/// Goal: many posters, many hosts; nothing is lost or doubled.
#[test]
fn nothing_is_lost_under_load() {
    let _guard = hang_guard();
    const POSTERS: u64 = 3;
    const EACH: u64 = 3_000;
    for (pool, queue) in both() {
        let sum = AtomicU64::new(0);
        let count = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut entries = Vec::new();
                    while queue.wait(&mut entries, 16, LONG).is_ok() {
                        for entry in entries.drain(..) {
                            sum.fetch_add(entry.tag, Relaxed);
                            count.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
            for poster in 0..POSTERS {
                let queue = &queue;
                scope.spawn(move || {
                    for tag in poster * EACH..(poster + 1) * EACH {
                        while let Err(rejected) = queue.post(&[tag]) {
                            assert!(matches!(rejected, Rejected::Full(_, _)), "{rejected:?}");
                            thread::yield_now();
                        }
                    }
                });
            }
            until("it", || count.load(Relaxed) == POSTERS * EACH);
            let _ = pool.shutdown(LONG);
        });
        let all = POSTERS * EACH;
        assert_eq!(sum.load(Relaxed), all * (all - 1) / 2);
        assert!(pool.audit().balances());
    }
}

/// Goal: a forked child that ends does not complete what its parent has out: it would arm the
/// descriptor anew in the epoll instance that both share, and the parent would harvest it again.
#[test]
#[allow(unsafe_code, reason = "a fork")]
fn a_forked_child_completes_nothing() {
    let _guard = hang_guard();
    let (pool, queue) = queue_of(Pool::builder().threads(1).build().unwrap());
    let level = HandleOptions::new().interest(Interest::READABLE).level();
    let (ours, mut theirs) = pair();
    let _handle = queue.register(ours, level, 1).unwrap();
    theirs.write_all(b"x").unwrap();
    let (tag, out) = one(&queue);
    assert_eq!(tag, 1);
    let harvested = || pool.stats().threads.iter().map(|thread| thread.events).sum::<u64>();
    let before = harvested();
    // SAFETY: the child only drops what it has, asks for what is its parent's, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(out);
        let is_refused = matches!(queue.wake(1), Err(Error::Forked));
        // SAFETY: as above.
        unsafe { libc::exit(i32::from(!is_refused)) };
    }
    let mut status = 0;
    // SAFETY: a plain call on the child of above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child could wake its parent's hosts");
    // A ring of the doorbell is no event, and a task makes the leader look at the source once more.
    for _ in 0..100 {
        pool.submit(|| ()).unwrap().wait().unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(harvested(), before, "the child armed what its parent holds");
}

/// Goal: who takes entries without waiting is a host, too: what it handles may need the pool while that drains. Method: a
/// task that only a wait runs holds the drain up; the entry is one that the pool finds in that very call.
#[test]
fn a_host_that_never_waits_may_use_a_pool_that_drains() {
    let _guard = hang_guard();
    let (pool, queue) = queue_of(hosted(1));
    let (ours, mut theirs) = pair();
    let level = HandleOptions::new().interest(Interest::READABLE).level();
    let _handle = queue.register(ours, level, 1).unwrap();
    theirs.write_all(b"x").unwrap();
    let mut entries = Vec::new();
    assert_eq!(queue.wait(&mut entries, 1, Duration::ZERO).unwrap(), 1);
    pool.post(|| ()).unwrap();
    let ending = {
        let pool = pool.clone();
        thread::spawn(move || pool.shutdown(LONG))
    };
    let refuses = || thread::scope(|scope| scope.spawn(|| pool.strand().is_err()).join().unwrap());
    until("it refuses others", refuses);
    assert!(pool.strand().is_ok());
    drop(entries);
    while queue.wait(&mut Vec::new(), 1, LONG).is_ok() {}
    assert!(ending.join().unwrap().drained);
}

/// Goal: a drain waits for hosts that are busy between two waits, as long as something is left to do; when their queue is
/// closed, the thread that drains does it. Method: a host that has waited, and waits again when the drain has begun; what
/// is left is a task.
#[test]
fn a_drain_waits_for_hosts_between_two_waits() {
    let _guard = hang_guard();
    for comes_back in [true, false] {
        let (pool, queue) = queue_of(hosted(2));
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (waited, has_waited) = std::sync::mpsc::channel();
        let ran = std::sync::Arc::new(AtomicUsize::new(0));
        let host = thread::spawn(move || {
            queue.wait(&mut Vec::new(), 1, Duration::ZERO).unwrap();
            waited.send(()).unwrap();
            wait.recv().unwrap();
            if !comes_back {
                return queue.close();
            }
            while queue.wait(&mut Vec::new(), 1, LONG).is_ok() {}
        });
        has_waited.recv().unwrap();
        let count = std::sync::Arc::clone(&ran);
        pool.post(move || _ = count.fetch_add(1, Relaxed)).unwrap();
        let ending = {
            let pool = pool.clone();
            thread::spawn(move || pool.shutdown(LONG))
        };
        until("it refuses", || pool.strand().is_err());
        thread::sleep(Duration::from_millis(20));
        assert!(!ending.is_finished());
        go_on.send(()).unwrap();
        let report = ending.join().unwrap();
        assert_eq!((report.drained, ran.load(Relaxed)), (true, 1), "{report:?}");
        host.join().unwrap();
    }
}
