//! Everything at once, at random, with a shutdown in the middle: the books balance, and each thing
//! that was begun ends exactly once.
//!
//! The seed is in the message of a failure; which thread runs when is the machine's own chance.

mod common;

use common::{Count, Fd, Gate, LONG, Random, hang_guard, quiet_panic, settled, until};
use paceline::{
    Error, Flow, Handle, HandleOptions, Interest, Lane, Pool, Promotion, Ready, Rejected, Strand,
    Task, Timer, promote_new_leader,
};
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

/// What became of everything, counted by the closures themselves and by those who wait.
#[derive(Clone, Default)]
struct Ledger {
    accepted: Count,
    ran: Count,
    dropped: Count,
    /// Closures that were made: each must be dropped once, run or not.
    made: Count,
    tasks: Count,
    resolved: Count,
}

/// A registered pipe, and how many bytes went in and came out.
struct Pipe {
    handle: Handle<Fd>,
    write: Fd,
    sent: u64,
    read: Count,
}

impl Pipe {
    fn send(&mut self, count: usize) {
        self.sent += self.write.write(&[7; 100][..count]).unwrap_or(0) as u64;
    }

    /// What the handler has not read is still in the pipe, unless a shutdown closed it first.
    fn close(self) {
        match self.handle.deregister() {
            Ok(fd) => assert_eq!(fd.drain() as u64 + self.read.get(), self.sent),
            Err(Error::Stale { .. }) => assert!(self.read.get() <= self.sent),
            Err(other) => panic!("{other}"),
        }
    }
}

impl Ledger {
    /// A closure that notes its run and its end, and does something on the way.
    fn work(&self, pool: &Pool, kind: u64) -> impl FnOnce() + Send + 'static {
        self.made.up();
        let (ran, held, pool, ledger) =
            (self.ran.clone(), self.dropped.on_drop(), pool.clone(), self.clone());
        move || {
            let _held = held;
            ran.up();
            match kind % 64 {
                0 => quiet_panic("at random"),
                1 => thread::sleep(Duration::from_micros(300)),
                2 => {
                    promote_new_leader();
                    thread::yield_now();
                }
                3 => ledger.note(pool.post(ledger.work(&pool, 63))),
                4 => {
                    if let Ok(task) = ledger.submit(&pool, 63) {
                        ledger.resolve(task.wait());
                    }
                }
                5 => drop(ledger.arm(&pool, Duration::from_micros(50))),
                _ => {}
            }
        }
    }

    fn note<F>(&self, posted: Result<(), Rejected<F>>) {
        match posted {
            Ok(()) => self.accepted.up(),
            // The closure comes back, and ends here.
            Err(Rejected::Full(work, _) | Rejected::ShutDown(work)) => drop(work),
            Err(Rejected::Forked(_)) => unreachable!("nobody forks"),
        }
    }

    fn submit(&self, pool: &Pool, kind: u64) -> Result<Task<()>, ()> {
        let lane = Lane::ALL[kind as usize % 4];
        let task = pool.lane(lane).submit(self.work(pool, kind)).map_err(drop)?;
        self.accepted.up();
        self.tasks.up();
        Ok(task)
    }

    fn arm(&self, pool: &Pool, delay: Duration) -> Option<Timer> {
        // A refused timer's closure is dropped; the ledger sees that too.
        let timer = pool.after(delay, self.work(pool, 63)).ok()?;
        self.accepted.up();
        Some(timer)
    }

    fn resolve(&self, result: Result<(), Error>) {
        match result {
            Ok(()) | Err(Error::Cancelled | Error::Panicked { .. }) => self.resolved.up(),
            // It goes on without us, and is dropped where it ends.
            Err(Error::WouldDeadlock) => self.resolved.up(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// A pipe whose handler answers at random.
fn register(pool: &Pool, seed: u64) -> Option<Pipe> {
    let ((read, write), count) = (Fd::pipe(), Count::new());
    let bytes = count.clone();
    let mut random = Random::new(seed);
    let handler = move |fd: &mut Fd, _: Ready| match random.below(16) {
        0 => {
            thread::yield_now();
            Flow::Again
        }
        1 => {
            promote_new_leader();
            bytes.add(fd.drain() as u64);
            Flow::Wait
        }
        2 => match fd.read(&mut [0; 3]) {
            Ok(count) => {
                bytes.add(count as u64);
                Flow::Again
            }
            Err(_) => Flow::Wait,
        },
        _ => {
            bytes.add(fd.drain() as u64);
            Flow::Wait
        }
    };
    let options = HandleOptions::new().interest(Interest::READABLE);
    let options = match seed % 4 {
        0 => options.level(),
        1 => options.may_block(),
        _ => options,
    };
    let handle = pool.register_with(read, options, handler).ok()?;
    Some(Pipe { handle, write, sent: 0, read: count })
}

/// One outside thread: does whatever chance says until the pool refuses, and some more.
fn play(pool: &Pool, ledger: &Ledger, shared: &Strand, seed: u64) {
    let mut random = Random::new(seed);
    let mut tasks = VecDeque::new();
    let mut timers = VecDeque::new();
    let mut pipes: Vec<Pipe> = Vec::new();
    let mut periodic = Vec::new();
    let mut refused = 0;
    while refused < 20 {
        let kind = random.next();
        match random.below(100) {
            0..30 => {
                let lane = Lane::ALL[kind as usize % 4];
                let posted = pool.lane(lane).post(ledger.work(pool, kind));
                refused += u32::from(matches!(posted, Err(Rejected::ShutDown(_))));
                ledger.note(posted);
            }
            30..38 => {
                let batch: Vec<_> =
                    (0..random.below(70)).map(|_| ledger.work(pool, random.next())).collect();
                let count = batch.len() as u64;
                let left = match pool.lane(Lane::ALL[kind as usize % 4]).post_batch(batch) {
                    Ok(()) => 0,
                    Err(rejected) => rejected.into_inner().count() as u64,
                };
                ledger.accepted.add(count - left);
            }
            38..50 => tasks.extend(ledger.submit(pool, kind)),
            50..56 => ledger.note(shared.post(ledger.work(pool, kind))),
            56..58 => {
                if let Ok(strand) = pool.strand() {
                    for _ in 0..random.below(10) {
                        ledger.note(strand.try_post(ledger.work(pool, 63)));
                    }
                }
            }
            58..66 => timers.extend(ledger.arm(pool, Duration::from_nanos(kind % 2_000_000))),
            66..70 => {
                let timer: Option<Timer> = timers.pop_front();
                let _either = timer.map(|timer| match kind % 3 {
                    0 => timer.cancel(),
                    1 => timer.postpone(Duration::from_micros(kind % 3000)),
                    _ => timer.is_pending(),
                });
            }
            70..72 if pipes.len() < 20 => pipes.extend(register(pool, kind)),
            72..82 if !pipes.is_empty() => {
                let pipe = kind as usize % pipes.len();
                pipes[pipe].send(kind as usize % 100);
            }
            82..86 if !pipes.is_empty() => {
                let handle = &pipes[kind as usize % pipes.len()].handle;
                let _stale = if kind & 1 == 0 { handle.pause() } else { handle.resume() };
            }
            86..88 if !pipes.is_empty() => {
                pipes.swap_remove(kind as usize % pipes.len()).close();
            }
            88..90 if periodic.len() < 5 => {
                let ran = Count::new();
                let handler = move || {
                    ran.up();
                    if ran.get() < 50 { Flow::Wait } else { Flow::Done }
                };
                periodic.extend(pool.every(Duration::from_micros(100 + kind % 1000), handler));
            }
            90..91 => drop(periodic.pop()),
            91..92 => {
                let _left = pool.join(Duration::from_micros(kind % 500));
            }
            92..98 => resolve(tasks.pop_front(), ledger, kind),
            98 => drop((pool.stats(), pool.audit())),
            _ => thread::yield_now(),
        }
    }
    drop(periodic);
    while let Some(task) = tasks.pop_front() {
        resolve(Some(task), ledger, random.next());
    }
    pipes.into_iter().for_each(Pipe::close);
}

/// Waits for a task, cancels it, or polls it for a while.
fn resolve(task: Option<Task<()>>, ledger: &Ledger, kind: u64) {
    let Some(mut task) = task else { return };
    if kind.is_multiple_of(4) {
        let _either = task.cancel();
    }
    if kind.is_multiple_of(3) {
        loop {
            match task.wait_timeout(Duration::from_micros(100)) {
                Err(Error::TimedOut) => {}
                other => return ledger.resolve(other),
            }
        }
    }
    ledger.resolve(task.wait());
}

fn stress(seed: u64, promotion: Promotion, leaders: usize, drain: Duration) {
    let context = format!("seed {seed}, {promotion:?}, {leaders} leaders, drain {drain:?}");
    let pool = Pool::builder()
        .threads(8)
        .leaders(leaders)
        .promotion(promotion)
        .lane_capacity(256)
        .strand_capacity(64)
        .max_joined(2)
        .build()
        .unwrap();
    let ledger = Ledger::default();
    let strand = pool.strand().unwrap();
    let begun = Instant::now();
    let report = thread::scope(|scope| {
        for player in 0..4 {
            let (pool, ledger, strand) = (&pool, &ledger, strand.clone());
            scope.spawn(move || play(pool, ledger, &strand, seed * 100 + player));
        }
        // How long is chance too; what is asserted does not depend on it.
        while begun.elapsed() < Duration::from_millis(400) {
            thread::sleep(Duration::from_millis(5));
        }
        pool.shutdown(drain)
    });
    drop(strand);
    // A machine that is busy may not have let every thread leave in time.
    until("the last thread leaves", || pool.shutdown(LONG).stuck.is_empty());
    assert!(report.drained || drain < LONG, "{context}: {report:?}");
    settled(&pool);
    let audit = pool.audit();
    assert_eq!(audit.accepted, ledger.accepted.get(), "{context}: {audit:?}");
    assert_eq!(audit.completed + audit.failed, ledger.ran.get(), "{context}: {audit:?}");
    assert_eq!(ledger.dropped.get(), ledger.made.get(), "{context}: {audit:?}");
    assert_eq!(ledger.resolved.get(), ledger.tasks.get(), "{context}: {audit:?}");
}

#[test]
fn a_random_mix_of_everything_ends_with_balanced_books() {
    let _guard = hang_guard();
    stress(1, Promotion::Deferred, 1, LONG);
    stress(2, Promotion::Eager, 1, LONG);
    stress(3, Promotion::Deferred, 3, LONG);
    stress(4, Promotion::Eager, 3, LONG);
}

#[test]
fn a_random_mix_that_is_cut_short_ends_with_balanced_books() {
    let _guard = hang_guard();
    stress(5, Promotion::Deferred, 1, Duration::ZERO);
    stress(6, Promotion::Eager, 3, Duration::ZERO);
    stress(7, Promotion::Deferred, 3, Duration::from_micros(300));
    stress(8, Promotion::Deferred, 1, Duration::from_millis(1));
}

/// A long series of small tasks, timers and strands: the shortest program that uses all of it.
#[test]
fn tasks_timers_and_strands_run_and_the_books_balance() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (ran, gate) = (Count::new(), Gate::new());
    for _ in 0..100_000 {
        let ran = ran.clone();
        pool.post(move || ran.up()).unwrap();
    }
    let opener = gate.clone();
    let timer = pool.after(Duration::from_millis(5), move || opener.open()).unwrap();
    gate.wait();
    let strand = pool.strand().unwrap();
    for _ in 0..10_000 {
        let ran = ran.clone();
        strand.post(move || ran.up()).unwrap();
    }
    assert_eq!(pool.submit(|| 6 * 7).unwrap().wait().unwrap(), 42);
    strand.submit(|| ()).unwrap().wait().unwrap();
    assert!(!timer.is_pending());
    drop(strand);
    common::finish(&pool);
    assert_eq!(ran.get(), 110_000);
}
