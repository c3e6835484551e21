//! Who is handed empty tasks, and gives handles for them.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;
use std::iter;
use std::time::Duration;

use paceline::task::{TaskHandle, TaskType, WorkerPool};
use paceline::{Lane, Pool};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;

use crate::submit::work;

/// One way of handing in tasks.
pub trait Peer {
    /// Hands in `count` empty tasks one by one. Of the handles at most `KEPT` stay unredeemed.
    fn submit(&mut self, count: usize);

    /// Redeems the handles that are left.
    fn settle(&mut self) {}
}

pub const WORKERS: usize = 2;

/// The time limit that no task comes near.
pub const LIMIT: Duration = Duration::from_secs(2);

/// Handles that wait to be redeemed. When there are so many the older half is: the youngest of it
/// first, so that nobody waits for each of them.
const KEPT: usize = 4096;

pub const POST: &str = "paceline post";
pub const TASK: &str = "paceline task";
pub const TOKIO: &str = "tokio";

type Make = fn() -> Box<dyn Peer>;

pub const ALL: [(&str, Make); 5] = [
    (POST, || Box::new(Posts(pool()))),
    ("paceline submit", || Box::new(Submits { pool: pool(), kept: Kept::default() })),
    ("paceline task without a limit", || Box::new(Tasks::new(false))),
    (TASK, || Box::new(Tasks::new(true))),
    (TOKIO, || Box::new(Spawns { runtime: runtime(), kept: Kept::default() })),
];

pub fn pool() -> Pool {
    let pool = Pool::builder().threads(WORKERS).lane_capacity(work::IN_FLIGHT).build();
    pool.expect("two threads can be started")
}

pub fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build();
    runtime.expect("two threads can be started")
}

/// Handles in the order of their tasks.
struct Kept<H>(VecDeque<H>);

impl<H> Default for Kept<H> {
    fn default() -> Self {
        Self(VecDeque::with_capacity(KEPT + work::BURST))
    }
}

impl<H> Kept<H> {
    fn add(&mut self, handle: H, redeem: impl FnOnce(H, Drain<'_, H>)) {
        self.0.push_back(handle);
        if self.0.len() >= KEPT {
            self.redeem(KEPT / 2, redeem);
        }
    }

    fn redeem_all(&mut self, redeem: impl FnOnce(H, Drain<'_, H>)) {
        self.redeem(self.0.len(), redeem);
    }

    /// Gives the oldest `count` to `redeem`, the youngest of them apart.
    fn redeem(&mut self, count: usize, redeem: impl FnOnce(H, Drain<'_, H>)) {
        let Some(last) = count.checked_sub(1) else { return };
        let youngest = self.0.remove(last).expect("so many are kept");
        redeem(youngest, self.0.drain(..last));
    }
}

/// Fire and forget: what the others are compared with.
struct Posts(Pool);

impl Peer for Posts {
    fn submit(&mut self, count: usize) {
        for _ in 0..count {
            self.0.post(work::tick).expect("an open pool");
        }
    }
}

/// The core's own handle: no name, no limit, no report.
struct Submits {
    pool: Pool,
    kept: Kept<paceline::Task<()>>,
}

impl Submits {
    fn redeem(youngest: paceline::Task<()>, others: Drain<'_, paceline::Task<()>>) {
        for task in iter::once(youngest).chain(others) {
            task.wait().expect("it ran");
        }
    }
}

impl Peer for Submits {
    fn submit(&mut self, count: usize) {
        for _ in 0..count {
            let task = self.pool.submit(work::tick).expect("an open pool");
            self.kept.add(task, Self::redeem);
        }
    }

    fn settle(&mut self) {
        self.kept.redeem_all(Self::redeem);
    }
}

/// A worker pool's task, with a lane, a handle and, if `limited`, a time limit.
struct Tasks {
    /// It ends when this is dropped.
    _pool: Pool,
    kind: TaskType,
    limited: bool,
    kept: Kept<TaskHandle<()>>,
}

impl Tasks {
    fn new(limited: bool) -> Self {
        let pool = pool();
        let kind = WorkerPool::new(&pool).task_type("tick").build().expect("plain settings");
        Self { _pool: pool, kind, limited, kept: Kept::default() }
    }

    fn redeem(youngest: TaskHandle<()>, others: Drain<'_, TaskHandle<()>>) {
        for task in iter::once(youngest).chain(others) {
            let report = task.wait().expect("outside of the pool");
            report.result.expect("it completed");
        }
    }
}

impl Peer for Tasks {
    fn submit(&mut self, count: usize) {
        for _ in 0..count {
            let task = self.kind.task(|_| work::tick()).lane(Lane::High);
            let task = if self.limited { task.timeout(LIMIT) } else { task };
            self.kept.add(task.submit().expect("an open pool"), Self::redeem);
        }
    }

    fn settle(&mut self) {
        self.kept.redeem_all(Self::redeem);
    }
}

/// What one writes with tokio for the same.
struct Spawns {
    runtime: Runtime,
    kept: Kept<Spawned>,
}

type Spawned = JoinHandle<Result<(), Elapsed>>;

impl Spawns {
    fn redeem(runtime: &Runtime) -> impl FnOnce(Spawned, Drain<'_, Spawned>) {
        |youngest, others| {
            runtime.block_on(async {
                for handle in iter::once(youngest).chain(others) {
                    let joined = handle.await.expect("it did not panic");
                    joined.expect("it was in time");
                }
            });
        }
    }
}

impl Peer for Spawns {
    fn submit(&mut self, count: usize) {
        let _inside = self.runtime.enter();
        for _ in 0..count {
            let handle = self.runtime.spawn(tokio::time::timeout(LIMIT, async { work::tick() }));
            self.kept.add(handle, Self::redeem(&self.runtime));
        }
    }

    fn settle(&mut self) {
        self.kept.redeem_all(Self::redeem(&self.runtime));
    }
}
