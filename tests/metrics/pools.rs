//! What pools and worker pools tell a registry.

use super::number;
use crate::common::{Gate, hang_guard, until};
use paceline::metrics::{Registry, Value};
use paceline::task::{Attempt, Fault, Retry, WorkerPool};
use paceline::{Lane, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn a_pool_tells_its_books_its_lanes_and_its_threads() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_joined(1).build().unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let main = [("pool", "main")];
    let gate = Gate::new();
    let inside = gate.clone();
    pool.post(move || inside.wait()).unwrap();
    gate.until_entered(1);
    for _ in 0..5 {
        pool.lane(Lane::High).post(|| ()).unwrap();
    }
    let busy = registry.snapshot();
    assert_eq!(number(&busy, "paceline_lane_tasks", &[("pool", "main"), ("lane", "high")]), 5.0);
    assert_eq!(number(&busy, "paceline_tasks_in_flight", &main), 6.0);
    gate.open();
    until("rest", || pool.audit().in_flight == 0 && pool.audit().balances());
    let rest = registry.snapshot();
    for (name, count) in
        [("submitted", 6.0), ("accepted", 6.0), ("completed", 6.0), ("failed", 0.0)]
    {
        assert_eq!(number(&rest, &format!("paceline_tasks_{name}"), &main), count, "{name}");
    }
    let thread = [("pool", "main"), ("thread", "0")];
    assert_eq!(number(&rest, "paceline_thread_tasks", &thread), 6.0);
    assert!(number(&rest, "paceline_thread_led", &thread) >= 1.0);
    assert_eq!(rest.failures, 0);
    assert!(pool.shutdown(Duration::from_secs(60)).drained);
    drop(pool);
    until("the pool is forgotten", || {
        registry.snapshot().family("paceline_tasks_submitted").is_none()
    });
}

/// By CPU time: a thread that computes has some, one that sleeps has next to none.
#[test]
fn a_thread_that_computes_is_utilised() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_joined(0).build().unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let thread = [("pool", "main"), ("thread", "0")];
    let cpu = || number(&registry.snapshot(), "paceline_thread_cpu_seconds", &thread);
    let before = cpu();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    pool.post(move || while !stopped.load(SeqCst) {}).unwrap();
    until("CPU time", || cpu() > before + 0.05);
    let utilisation = number(&registry.snapshot(), "paceline_thread_utilisation", &thread);
    assert!((0.0..=1.0).contains(&utilisation), "{utilisation}");
    stop.store(true, SeqCst);
    assert!(pool.shutdown(Duration::from_secs(60)).drained);
    let after = registry.snapshot();
    assert!(after.sample("paceline_thread_cpu_seconds", &thread).is_none(), "it has ended");
}

#[test]
fn a_worker_pool_tells_the_counts_of_each_kind_and_its_times() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let registry = Registry::new();
    let workers = WorkerPool::builder(&pool).metrics(&registry, "w").build().unwrap();
    let retry = Retry::fixed(5, Duration::from_millis(1));
    let mut tasks = vec![];
    for number in 0..20_u32 {
        let work = move |attempt: &Attempt<'_>| match attempt.number() {
            1 if number < 5 => Err(Fault::new("once more")),
            _ if number >= 15 => Err(Fault::permanent("never")),
            _ => Ok(()),
        };
        let name = if number % 2 == 0 { "even" } else { "odd" };
        tasks.push(workers.task(name, work).retry(retry.clone()).submit().unwrap());
    }
    tasks.into_iter().for_each(|task| drop(task.wait().unwrap()));
    until("the books", || workers.audit().in_flight == 0 && workers.audit().balances());
    let count = |name: &str| {
        let snapshot = registry.snapshot();
        let times = snapshot.sample(name, &[("workers", "w")]).and_then(Value::distribution);
        times.unwrap().count()
    };
    // A waiter may hear of the end before observers do.
    for name in ["paceline_task_queue_seconds", "paceline_task_run_seconds"] {
        until("its times", || count(name) == 20);
    }
    let snapshot = registry.snapshot();
    let of = |name: &str, kind: &str| {
        number(
            &snapshot,
            &format!("paceline_task_{name}"),
            &[("workers", "w"), ("task_type", kind)],
        )
    };
    for (kind, completed, failed, retried) in [("even", 8.0, 2.0, 3.0), ("odd", 7.0, 3.0, 2.0)] {
        assert_eq!(of("submitted", kind), 10.0);
        assert_eq!(of("accepted", kind), 10.0);
        assert_eq!((of("completed", kind), of("failed", kind)), (completed, failed), "{kind}");
        assert_eq!(of("retried", kind), retried, "{kind}");
    }
    assert_eq!(number(&snapshot, "paceline_task_in_flight", &[("workers", "w")]), 0.0);
    assert_eq!(snapshot.failures, 0);
}

#[test]
fn a_registry_without_a_place_refuses_a_worker_pool() {
    let pool = Pool::builder().threads(1).build().unwrap();
    let registry = Registry::new();
    registry.gauge("paceline_task_run_seconds", "", &[]).unwrap();
    let refused = WorkerPool::builder(&pool).metrics(&registry, "w").build().unwrap_err();
    assert!(refused.to_string().contains("paceline_task_run_seconds"), "{refused}");
}
