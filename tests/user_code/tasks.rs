//! Worker pools: functions, middleware, observers, callbacks, policies.

use crate::charge::{Bang, Charge, Driver, panics};
use crate::common::{Count, LONG};
use paceline::Pool;
use paceline::task::{
    Attempt, Backoff, EndRecord, Fault, Middleware, Observer, Outcome, Phases, Retry, Status,
    StuckRecord, TaskHandle, WorkerPool,
};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

pub const DRIVERS: &[(&str, Driver)] = &[
    ("WorkerPool::task", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let retry = Retry::fixed(2, MS);
        let task = workers.task("panics", always(bang)).retry(retry).submit().map_err(drop);
        failed(task.unwrap());
        // A value that no thread waits for is dropped here if it is there already, or else on the pool.
        let value = workers.task("value", move |_: &Attempt<'_>| Held(bang.charge()));
        let value = value.submit().map_err(drop).unwrap();
        let _in_drop = panics(|| drop(value));
        ends(workers);
    }),
    ("TaskType::task", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").build().unwrap();
        failed(kind.task(always(bang)).key("key").submit().map_err(drop).unwrap());
        // One that waits for its time is dropped unrun, by whoever cancels it.
        let waits = kind.task(always(bang)).delay(LONG).submit().map_err(drop).unwrap();
        let _in_drop = panics(|| assert!(waits.cancel()));
        ends(workers);
    }),
    ("TaskType::submit", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").build().unwrap();
        failed(kind.submit(always(bang)).map_err(drop).unwrap());
        ends(workers);
    }),
    ("TaskType::submit_batch", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").build().unwrap();
        let mut tasks = Vec::new();
        kind.submit_batch((0..40).map(|_| always(bang)), &mut tasks).map_err(drop).unwrap();
        tasks.drain(..).for_each(failed);
        // The iterator is the user's, too, and runs here; what it had yielded is dropped by that.
        let breaks = (0..40).map(|number| {
            let charge = bang.charge_once();
            if number == 35 { bang.go() } else { move |_: &Attempt<'_>| -> () { charge.go() } }
        });
        assert!(panics(|| drop(kind.submit_batch(breaks, &mut tasks))));
        ends(workers);
    }),
    ("TaskBuilder::submit", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").build().unwrap();
        let mut tasks = Vec::new();
        let batch = kind.batch().key("key");
        batch.submit((0..40).map(|_| always(bang)), &mut tasks).map_err(drop).unwrap();
        tasks.into_iter().for_each(failed);
        ends(workers);
    }),
    ("TaskType::post", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").build().unwrap();
        kind.post(crate::pools::once(bang)).map_err(drop).unwrap();
        ends(workers);
    }),
    ("TaskType::task_concurrent", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let kind = workers.task_type("kind").overlap_retries(true).build().unwrap();
        let charge = bang.charge();
        let work = move |_: &Attempt<'_>| -> () { charge.go() };
        failed(kind.task_concurrent(work).submit().map_err(drop).unwrap());
        ends(workers);
    }),
    ("TaskHandle::on_end", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let told = Count::new();
        let task =
            workers.task("fine", |_: &Attempt<'_>| ()).delay(MS).submit().map_err(drop).unwrap();
        let (charge, tell) = (bang.charge_once(), told.clone());
        task.on_end(move |_| {
            tell.up();
            charge.go()
        });
        assert_eq!(task.wait().unwrap().status, Status::Completed);
        told.until(1);
        ends(workers);
    }),
    ("WorkerPool::on_shutdown", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let told = Count::new();
        let tell = told.clone();
        workers.on_shutdown("first", move || tell.up());
        workers.on_shutdown("second", crate::pools::once(bang));
        let report = workers.shutdown(Phases::default());
        assert_eq!((report.failed_hooks, told.get()), (vec!["second".to_owned()], 1));
    }),
    ("Outcome::into_result", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let work = move |_: &Attempt<'_>| Odd(bang);
        let task = workers.task("odd", work).submit().map_err(drop).unwrap();
        assert_eq!(task.wait().unwrap().status, Status::Failed);
        ends(workers);
    }),
    ("Middleware::before", |pool, bang| around(pool, bang, "before")),
    ("Middleware::after", |pool, bang| around(pool, bang, "after")),
    ("Middleware::on_error", |pool, bang| around(pool, bang, "on_error")),
    ("Observer::on_end", |pool, bang| {
        around(pool, bang, "on_end");
        dropped_by_the_pool(pool, bang);
    }),
    ("Observer::on_retry", |pool, bang| around(pool, bang, "on_retry")),
    ("Observer::on_stuck", |pool, bang| around(pool, bang, "on_stuck")),
    ("Backoff::custom", |_, bang| {
        let charge = bang.charge_once();
        let backoff = Backoff::custom(move |_| charge.go());
        assert!(panics(|| assert!(backoff.delay(1, 1).is_zero())), "it is the user's own thread");
        let _in_drop = panics(|| drop(backoff));
    }),
    ("Retry::custom", |pool, bang| {
        let workers = WorkerPool::new(pool);
        let charge = bang.charge_once();
        let retry = Retry::custom(3, move |_| charge.go());
        let fails = |_: &Attempt<'_>| Err::<(), _>(Fault::new("on purpose"));
        let task = workers.task("fails", fails).retry(retry).submit().map_err(drop).unwrap();
        failed(task);
        ends(workers);
    }),
];

/// A function that always panics.
fn always(bang: Bang) -> impl FnMut(&Attempt<'_>) + Send + 'static {
    let charge = bang.charge();
    move |_: &Attempt<'_>| charge.go()
}

#[track_caller]
fn failed<T: Send + 'static>(task: TaskHandle<T>) {
    assert_eq!(task.wait().map(|report| report.status).unwrap(), Status::Failed);
}

/// What it was made of may panic when it is dropped, here.
fn ends(workers: WorkerPool) {
    assert!(workers.shutdown(Phases::default()).drained);
    let audit = workers.audit();
    assert!(audit.balances(), "{audit:?}");
    let _in_drop = panics(|| drop(workers));
}

/// A value.
struct Held(#[allow(dead_code, reason = "it is dropped")] Charge);

impl Outcome for Held {
    type Value = Held;
    fn into_result(self) -> Result<Held, Fault> {
        Ok(self)
    }
}

struct Odd(Bang);

impl Outcome for Odd {
    type Value = ();
    fn into_result(self) -> Result<(), Fault> {
        self.0.go()
    }
}

/// Panics in one of its methods.
struct Around {
    place: &'static str,
    charge: Charge,
    told: Count,
}

impl Around {
    fn at(&self, place: &str) {
        if self.place == place {
            self.told.up();
            self.charge.go()
        }
    }
}

impl Middleware for Around {
    fn before(&self, _: &Attempt<'_>) -> Result<(), Fault> {
        self.at("before");
        Ok(())
    }
    fn after(&self, _: &Attempt<'_>) {
        self.at("after");
    }
    fn on_error(&self, _: &Attempt<'_>, _: &Fault) {
        self.at("on_error");
    }
}

impl Observer for Around {
    fn on_end(&self, _: &EndRecord<'_>) {
        self.at("on_end");
    }
    fn on_retry(&self, _: &str, _: u64, _: u32, _: &str, _: Duration) {
        self.at("on_retry");
    }
    fn on_stuck(&self, _: &StuckRecord<'_>) {
        self.at("on_stuck");
    }
}

/// A task that fails twice, outlives its time, and has middleware and an observer that panic.
fn around(pool: &Pool, bang: Bang, place: &'static str) {
    let told = Count::new();
    let one = Arc::new(Around { place, charge: bang.charge_once(), told: told.clone() });
    let builder = WorkerPool::builder(pool).middleware(Arc::clone(&one) as _).observe(one);
    let workers = builder.build().unwrap();
    let seen = told.clone();
    let work = move |_: &Attempt<'_>| {
        if place == "on_stuck" {
            seen.until(1);
        }
        Err::<(), _>(Fault::new("on purpose"))
    };
    let task = workers.task("fails", work).retry(Retry::fixed(2, MS));
    let task = if place == "on_stuck" { task.timeout(MS) } else { task };
    let task = task.submit().map_err(drop).unwrap();
    let report = task.wait().unwrap();
    assert!(matches!(report.status, Status::Failed | Status::TimedOut), "{:?}", report.status);
    told.until(1);
    ends(workers);
}

/// Its destructor panics.
struct Last {
    told: Count,
    goes_on: Count,
    _charge: Charge,
}

impl Observer for Last {
    fn on_end(&self, _: &EndRecord<'_>) {
        self.told.up();
        self.goes_on.until(1);
    }
}

/// The worker pool goes while an observer of its runs: that thread lets go of the observer, as the last one.
fn dropped_by_the_pool(pool: &Pool, bang: Bang) {
    let (told, goes_on) = (Count::new(), Count::new());
    let (_charge, [told_too, goes_on_too]) = (bang.charge(), [told.clone(), goes_on.clone()]);
    let observer = Last { told: told_too, goes_on: goes_on_too, _charge };
    let workers = WorkerPool::builder(pool).observe(Arc::new(observer)).build().unwrap();
    let task = workers.task("ends", |_: &Attempt<'_>| ()).submit().map_err(drop).unwrap();
    told.until(1);
    drop((workers, task));
    goes_on.up();
}
