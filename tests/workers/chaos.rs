//! Everything at once, and the books balance.
//!
//! Threads outside and tasks inside submit tasks with random lanes, limits, keys, delays, policies for
//! full lanes and names, of which some are limited in rate, in retries or in how many run. They succeed, fail, panic, oversleep, listen or do not,
//! and submit others; some are cancelled, waited for, called back or forgotten. In the middle of it the
//! worker pool is shut down. At the end `audit()` balances exactly with nothing in flight, every handle
//! has resolved exactly once, every closure is gone, no key has had two tasks at a time, and no name more
//! than it may.
//!
//! All decisions are drawn from a seed, which is printed if the test fails. To repeat it, or to run more:
//!
//! ```console
//! $ PACELINE_CHAOS_SEED=17 cargo test --test workers chaos
//! $ PACELINE_CHAOS_TASKS=1000000 cargo test --release --test workers chaos -- --nocapture
//! ```

use super::common::{Random, quiet_panic, until};
use paceline::task::{
    Attempt, Backoff, EndRecord, Fault, MissedTick, Observer, OverloadPolicy, Phases, Rate, Retry,
    RetryBudget, Status, TaskType, WorkerPool,
};
use paceline::{Lane, Pool};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SUBMITTERS: u64 = 3;
const KEYS: usize = 16;
/// How many of one name may run, and where it is among the kinds.
const MAX_RUNNING: u32 = 2;
const BOUNDED: usize = 4;
const MICRO: Duration = Duration::from_micros(1);
/// What no healthy run comes near, however many tasks it has.
const PATIENCE: Duration = Duration::from_secs(3600);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// What is counted beside the books of the worker pool.
#[derive(Default)]
struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    /// By the observer, by status.
    told: [AtomicU64; 8],
    /// By those who hold handles, of which each must resolve once.
    handles: AtomicU64,
    resolved: AtomicU64,
    called_back: AtomicU64,
    callbacks: AtomicU64,
    /// Closures that live.
    closures: AtomicU64,
    /// Tasks of a key that run at this moment.
    keys: [AtomicU32; KEYS],
    overlaps: AtomicU64,
    /// Attempts that run at this moment of the name that has a bound.
    bounded: AtomicU32,
}

struct Told(Arc<Tally>);

impl Observer for Told {
    fn on_end(&self, end: &EndRecord<'_>) {
        self.0.told[end.status as usize].fetch_add(1, SeqCst);
    }
}

/// A closure's life, and its turn at a key.
struct Life(Arc<Tally>);

impl Life {
    fn new(tally: &Arc<Tally>) -> Self {
        tally.closures.fetch_add(1, SeqCst);
        Self(Arc::clone(tally))
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.closures.fetch_sub(1, SeqCst);
    }
}

/// What tasks are made of.
#[derive(Clone)]
struct Stage {
    workers: WorkerPool,
    kinds: Arc<Vec<TaskType>>,
    tally: Arc<Tally>,
    waiting: Arc<Mutex<Vec<paceline::task::TaskHandle<u64>>>>,
}

impl Stage {
    fn new(pool: &Pool, seed: u64) -> Self {
        let tally = Arc::<Tally>::default();
        let told = Arc::new(Told(Arc::clone(&tally)));
        let workers = WorkerPool::builder(pool).observe(told).seed(seed).max_droppable(20);
        let workers = workers.build().unwrap();
        let backoff = Backoff::exponential(20 * MICRO).cap(500 * MICRO);
        let kinds = vec![
            workers.task_type("plain").build().unwrap(),
            workers.task_type("retried").retry(Retry::new(3, backoff.clone())).build().unwrap(),
            workers
                .task_type("budgeted")
                .retry(Retry::new(9, backoff))
                .retry_budget(RetryBudget::new(0.5).burst(50))
                .build()
                .unwrap(),
            workers
                .task_type("limited")
                .rate(Rate::per_second(1_000_000).burst(4))
                .retry(Retry::fixed(1, Duration::ZERO))
                .build()
                .unwrap(),
            workers
                .task_type("bounded")
                .max_running(MAX_RUNNING)
                .retry(Retry::fixed(1, 20 * MICRO))
                .build()
                .unwrap(),
        ];
        Self { workers, kinds: Arc::new(kinds), tally, waiting: Arc::default() }
    }

    /// Submits one task, drawn from `random`, and does something with its handle.
    fn submit(&self, random: &mut Random, depth: u32) {
        let key = (random.below(4) == 0).then(|| random.below(KEYS as u64) as usize);
        let number = random.below(self.kinds.len() as u64) as usize;
        let work = self.work(random.next(), key, number == BOUNDED, depth);
        let kind = &self.kinds[number];
        let mut task = kind.task(work).lane(Lane::ALL[random.below(4) as usize]);
        let fulls = [
            OverloadPolicy::Reject,
            OverloadPolicy::Wait(100 * MICRO),
            OverloadPolicy::RunHere,
            OverloadPolicy::DropOldest,
        ];
        if let Some(full) = fulls.get(random.below(8) as usize) {
            task = task.full(*full);
        }
        if let Some(key) = key {
            task = task.key(key);
        }
        if random.below(8) == 0 {
            task = task.delay(MICRO * random.below(2000) as u32);
        }
        if random.below(8) == 0 {
            task = task.timeout(MICRO * (1 + random.below(300) as u32));
        }
        if random.below(16) == 0 {
            task = task.queue_timeout(MICRO * (1 + random.below(3000) as u32));
        }
        if random.below(16) == 0 {
            task = task.deadline(MICRO * (1 + random.below(5000) as u32));
        }
        let submitted = task.submit();
        let tally = &self.tally;
        let Ok(task) = submitted else {
            tally.refused.fetch_add(1, SeqCst);
            return;
        };
        tally.accepted.fetch_add(1, SeqCst);
        if random.below(4) == 0 {
            tally.callbacks.fetch_add(1, SeqCst);
            let tally = Arc::clone(tally);
            task.on_end(move |status| {
                assert!(status.is_end());
                tally.called_back.fetch_add(1, SeqCst);
            });
        }
        if random.below(8) == 0 {
            task.cancel();
        }
        if random.below(4) == 0 {
            return drop(task);
        }
        tally.handles.fetch_add(1, SeqCst);
        let mut waiting = self.waiting.lock().unwrap();
        waiting.push(task);
        // Somebody else's, as often as one's own: cancelled late, or waited for.
        let other = random.below(waiting.len() as u64) as usize;
        let late = (waiting.len() > 256).then(|| waiting.swap_remove(other));
        drop(waiting);
        if let Some(task) = late {
            self.resolve(task, random.below(4) == 0);
        }
    }

    fn work(
        &self,
        seed: u64,
        key: Option<usize>,
        is_bounded: bool,
        depth: u32,
    ) -> impl FnMut(&Attempt<'_>) -> Result<u64, Fault> + Send + 'static {
        let life = Life::new(&self.tally);
        let stage = self.clone();
        let mut random = Random::new(seed);
        move |attempt: &Attempt<'_>| {
            let tally = &life.0;
            let turn = key.map(|key| &tally.keys[key]);
            if turn.is_some_and(|turn| turn.fetch_add(1, SeqCst) != 0) {
                tally.overlaps.fetch_add(1, SeqCst);
            }
            if is_bounded && tally.bounded.fetch_add(1, SeqCst) >= MAX_RUNNING {
                tally.overlaps.fetch_add(1, SeqCst);
            }
            let result = stage.act(&mut random, attempt, depth);
            if is_bounded {
                tally.bounded.fetch_sub(1, SeqCst);
            }
            if let Some(turn) = turn {
                turn.fetch_sub(1, SeqCst);
            }
            match result {
                Act::Value => Ok(u64::from(attempt.number())),
                Act::Fail => Err(Fault::new("chance")),
                Act::Permanent => Err(Fault::permanent("chance, for good")),
                Act::Later => Err(Fault::retry_after("chance, later", 50 * MICRO)),
                Act::Panic => quiet_panic("chance"),
            }
        }
    }

    fn act(&self, random: &mut Random, attempt: &Attempt<'_>, depth: u32) -> Act {
        match random.below(64) {
            0..8 => return Act::Fail,
            8..10 => return Act::Permanent,
            10..12 => return Act::Later,
            12..16 => return Act::Panic,
            16 => std::thread::sleep(MICRO * random.below(300) as u32),
            17 => {
                let start = std::time::Instant::now();
                while !attempt.is_cancelled() && start.elapsed() < 200 * MICRO {
                    std::hint::spin_loop();
                }
            }
            18..24 if depth < 3 => self.submit(random, depth + 1),
            _ => {}
        }
        Act::Value
    }

    /// Waits for a task, after cancelling it perhaps.
    fn resolve(&self, mut task: paceline::task::TaskHandle<u64>, cancels: bool) {
        if cancels {
            task.cancel();
        }
        // Inside, a wait may have to be refused: then somebody else does it.
        match task.wait_timeout(Duration::from_millis(50)) {
            Ok(report) => {
                assert!(report.status.is_end());
                assert_eq!(report.result.is_ok(), report.status == Status::Completed);
                assert!(task.wait_timeout(Duration::ZERO).is_err(), "it resolved twice");
                self.tally.resolved.fetch_add(1, SeqCst);
            }
            Err(_) => self.waiting.lock().unwrap().push(task),
        }
    }

    fn resolve_all(&self) {
        loop {
            let Some(task) = self.waiting.lock().unwrap().pop() else { return };
            self.resolve(task, false);
        }
    }
}

enum Act {
    Value,
    Fail,
    Permanent,
    Later,
    Panic,
}

/// Says how to repeat a run that fails.
struct Seeded(u64);

impl Drop for Seeded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("PACELINE_CHAOS_SEED={} repeats the decisions", self.0);
        }
    }
}

#[test]
fn chaos() {
    let seed = setting("PACELINE_CHAOS_SEED", 0x5eed);
    let tasks = setting("PACELINE_CHAOS_TASKS", 6000);
    let _seeded = Seeded(seed);
    let rounds = 3;
    for round in 0..rounds {
        run(seed.wrapping_add(round), tasks / rounds);
    }
}

fn run(seed: u64, tasks: u64) {
    let pool = Pool::builder().threads(4).pin(paceline::Pin::None).lane_capacity(64);
    let pool = pool.build().unwrap();
    let stage = Stage::new(&pool, seed);
    let ticking = stage.workers.task("periodic", |_: &Attempt<'_>| ()).key(0usize);
    let ticking = ticking.every(300 * MICRO, MissedTick::Coalesce).unwrap();
    std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|submitter| {
                let stage = &stage;
                let mut random = Random::new(seed ^ submitter << 32);
                scope.spawn(move || {
                    for _ in 0..tasks / SUBMITTERS {
                        stage.submit(&mut random, 0);
                    }
                })
            })
            .collect();
        // In the middle: a quarter of what is submitted from outside comes too late.
        let taken = || stage.tally.accepted.load(SeqCst) + stage.tally.refused.load(SeqCst);
        while taken() < tasks * 3 / 4 && !submitters.iter().all(|one| one.is_finished()) {
            std::thread::yield_now();
        }
        let drain = Duration::from_micros(Random::new(seed).below(20_000));
        let phases = Phases { drain, stop: PATIENCE, ..Phases::default() };
        let report = stage.workers.shutdown(phases);
        assert!(report.stuck.is_empty(), "{report:?}");
    });
    drop(ticking);
    stage.resolve_all();
    until("the closures' end", || stage.tally.closures.load(SeqCst) == 0);
    // An end is counted first and told then, by whoever has brought it about.
    let told = || stage.tally.told.iter().map(|told| told.load(SeqCst)).sum::<u64>();
    until("each end was told", || told() == stage.workers.audit().accepted);
    check(&stage);
    let report = pool.shutdown(PATIENCE);
    assert!(report.drained && pool.audit().balances(), "{:?}", pool.audit());
}

/// The worker pool's books, the observer's and those of the handles say the same.
fn check(stage: &Stage) {
    let (tally, audit) = (&stage.tally, stage.workers.audit());
    assert!(audit.balances(), "{audit:?}");
    assert_eq!(audit.in_flight, 0, "{audit:?}");
    let count = |count: &AtomicU64| count.load(SeqCst);
    let told = |status: Status| count(&tally.told[status as usize]);
    assert_eq!(audit.completed, told(Status::Completed));
    assert_eq!(audit.failed, told(Status::Failed));
    assert_eq!(audit.cancelled, told(Status::Cancelled));
    assert_eq!(audit.timed_out, told(Status::TimedOut));
    assert_eq!(audit.dropped, told(Status::Rejected));
    // The rest is the periodic task's.
    let periodic = stage.workers.stats().task_types;
    let periodic = periodic.iter().find(|kind| kind.name == "periodic").unwrap();
    assert_eq!(audit.accepted - periodic.accepted, count(&tally.accepted));
    assert_eq!(audit.rejected - periodic.rejected, count(&tally.refused));
    assert_eq!(count(&tally.handles), count(&tally.resolved), "a handle has not resolved once");
    assert_eq!(count(&tally.callbacks), count(&tally.called_back));
    assert_eq!(count(&tally.overlaps), 0, "more tasks of a key or a name ran at once than may");
    for status in [Status::Completed, Status::Cancelled] {
        assert!(told(status) > 0, "not one task was {status}");
    }
}
