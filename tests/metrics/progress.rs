//! What figures say of a pool that makes no progress.

use super::number;
use crate::common::{Gate, hang_guard, until};
use paceline::metrics::{Registry, Snapshot, SystemFigures};
use paceline::{Pin, Pool};
use std::time::{Duration, SystemTime};

#[test]
fn threads_that_are_blocked_and_a_set_without_a_leader_are_in_the_figures() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).pin(Pin::None).build().unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "p");
    let of = |snapshot: &Snapshot, name: &str| number(snapshot, name, &[("pool", "p")]);
    let names = [
        "paceline_blocked_threads",
        "paceline_set_leaderless_seconds",
        "paceline_timers_overdue",
        "paceline_oldest_waiting_seconds",
    ];
    until("it is well", || {
        let snapshot = registry.snapshot();
        names.iter().all(|name| of(&snapshot, name) == 0.0)
    });
    let gate = Gate::new();
    for _ in 0..2 {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(2);
    let timer = pool.after(Duration::from_millis(1), || ()).unwrap();
    until("nobody leads, and a timer is due", || {
        let snapshot = registry.snapshot();
        of(&snapshot, names[0]) == 2.0
            && names[1..].iter().all(|name| of(&snapshot, name) > 0.0)
            && of(&snapshot, names[2]) == 1.0
    });
    // So late it is at least, when a leader finds it.
    let late = of(&registry.snapshot(), names[3]);
    gate.open();
    until("it is well again", || {
        let snapshot = registry.snapshot();
        names.iter().all(|name| of(&snapshot, name) == 0.0)
    });
    until("it has fired", || !timer.is_pending());
    let snapshot = registry.snapshot();
    let lateness =
        snapshot.sample("paceline_timer_lateness_seconds", &[("pool", "p"), ("set", "0")]);
    let lateness = lateness.and_then(|value| value.distribution()).unwrap();
    assert!(lateness.count() >= 1);
    // A value is off by less than a sixteenth.
    assert!(lateness.quantile(1.0) > late * 0.93, "{} after {late}", lateness.quantile(1.0));
}

#[test]
fn the_start_of_the_process_is_in_the_figures_of_the_system() {
    let registry = Registry::new();
    SystemFigures::new().attach(&registry);
    let started = number(&registry.snapshot(), "process_start_time_seconds", &[]);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    // The kernel counts from its start, in steps of 10 ms, and tells that in seconds.
    assert!((now - 86_400.0..=now + 2.0).contains(&started), "{started}, now {now}");
}
