//! Timers: never early, in order, cancelled or postponed at any moment, and no bursts.

mod common;

use common::{Count, Fd, Gate, LONG, Random, finish, hang_guard, settled, until};
use paceline::{Error, Flow, Pool, SourceKind, Timer};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Arms a timer that reports if it is early.
fn punctual(pool: &Pool, delay: Duration, fired: &Count, early: &Count) -> Timer {
    let (fired, early, armed) = (fired.clone(), early.clone(), Instant::now());
    let work = move || {
        if armed.elapsed() < delay {
            early.up();
        }
        fired.up();
    };
    pool.after(delay, work).unwrap()
}

#[test]
fn ten_thousand_random_timers_fire_once_each_and_none_early() {
    let _guard = hang_guard();
    for (threads, source) in [(8, SourceKind::Epoll), (2, SourceKind::Ring)] {
        let pool = Pool::builder().threads(threads).source(source).build().unwrap();
        let (fired, early) = (Count::new(), Count::new());
        thread::scope(|scope| {
            for seed in 0..4 {
                let (pool, fired, early) = (&pool, &fired, &early);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..2500 {
                        // From nothing at all to 300 ms, the short ones more often.
                        let nanos = random.below(300_000_000) >> random.below(30);
                        punctual(pool, Duration::from_nanos(nanos), fired, early);
                    }
                });
            }
        });
        fired.until(10_000);
        finish(&pool);
        assert_eq!((fired.get(), early.get()), (10_000, 0));
        assert_eq!(pool.audit().completed, 10_000);
    }
}

#[test]
fn timers_of_one_set_run_in_the_order_of_their_deadlines() {
    let _guard = hang_guard();
    // Where the first is due before the last is armed, they are not in one look: again, with more time.
    let lead = [50, 500, 5000].map(Duration::from_millis);
    assert!(lead.into_iter().any(are_in_order), "500 timers could not be armed within {lead:?}");
}

/// A timer is due its delay after it is armed, which is between two looks at the clock. Of two timers the one that is
/// certainly due first runs first. False: it took longer than `lead` to arm them.
fn are_in_order(lead: Duration) -> bool {
    let pool = Pool::builder().threads(1).build().unwrap();
    let (log, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::new());
    // The only thread is busy until all of them are overdue, so that one look finds them all.
    let visitor = gate.clone();
    pool.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    let mut order: Vec<u64> = (0..500).collect();
    let mut random = Random::new(1);
    for index in (1..order.len()).rev() {
        order.swap(index, random.below(index as u64 + 1) as usize);
    }
    let start = Instant::now();
    let mut due = vec![(Duration::ZERO, Duration::ZERO); order.len()];
    for &number in &order {
        let log = Arc::clone(&log);
        // 20 µs apart, whenever they are armed.
        let before = start.elapsed();
        let delay = (lead + Duration::from_micros(20 * number)).saturating_sub(before);
        pool.after(delay, move || log.lock().unwrap().push(number)).unwrap();
        due[number as usize] = (before + delay, start.elapsed() + delay);
    }
    let armed_in_time = start.elapsed() < lead;
    while start.elapsed() < lead + Duration::from_millis(20) {
        thread::yield_now();
    }
    gate.open();
    until("all have run", || log.lock().unwrap().len() == 500);
    let log = log.lock().unwrap();
    // The wheel's ticks are shorter.
    let tick = Duration::from_micros(10);
    let mut last = Duration::ZERO;
    for &number in log.iter() {
        let (earliest, latest) = due[number as usize];
        assert!(last <= latest + tick || !armed_in_time, "{number} is late: {log:?} {due:?}");
        last = last.max(earliest);
    }
    drop(log);
    finish(&pool);
    armed_in_time
}

#[test]
fn a_cancelled_timer_never_runs_and_its_closure_is_dropped_at_once() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (ran, dropped) = (Count::new(), Count::new());
    let (count, held) = (ran.clone(), dropped.on_drop());
    let timer = pool.after(Duration::from_secs(3600), move || {
        let _held = &held;
        count.up();
    });
    let timer = timer.unwrap();
    assert!(timer.is_pending());
    let twin = timer.clone();
    assert!(timer.cancel() && !timer.cancel() && !twin.cancel());
    assert!(!twin.is_pending() && !twin.postpone(LONG));
    assert_eq!((ran.get(), dropped.get()), (0, 1));
    let count = ran.clone();
    let fired = pool.after(Duration::ZERO, move || count.up()).unwrap();
    ran.until(1);
    assert!(!fired.cancel() && !fired.is_pending() && !fired.postpone(LONG));
    finish(&pool);
    let audit = pool.audit();
    assert_eq!((audit.accepted, audit.completed, audit.cancelled), (2, 1, 1), "{audit:?}");
}

/// Goal: of `cancel` and firing, one wins. Method: ten thousand timers that are due about when they
/// are cancelled.
/// Adds to a count when it is dropped.
struct Told(Count);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.up();
    }
}

#[test]
fn slots_are_in_the_books_whoever_cancels_their_timers() {
    const HOUR: Duration = Duration::from_secs(3600);
    let _guard = hang_guard();
    // Nobody leads, so all of them stay with the thread that armed them.
    let pool = Pool::builder().threads(0).max_joined(1).max_handles(1 << 14).build().unwrap();
    let dropped = Count::new();
    for round in 1..=5 {
        let arm = |number| {
            let told = Told(dropped.clone());
            match number % 2 {
                0 => pool.after(HOUR, move || drop(told)),
                // It holds nothing that must be dropped.
                _ => pool.after(HOUR, move || _ = number),
            }
        };
        let mut here: Vec<Timer> = (0..400).map(|number| arm(number).unwrap()).collect();
        assert_eq!((pool.stats().handles, dropped.get()), (400, 400 * round - 200));
        let elsewhere = here.split_off(150);
        thread::scope(|scope| {
            scope.spawn(|| {
                let own = pool.after(HOUR, || ()).unwrap();
                assert!(elsewhere.iter().all(Timer::cancel));
                assert!(own.cancel());
            });
        });
        assert!(!elsewhere.iter().any(Timer::cancel));
        assert!(here.iter().all(Timer::cancel));
        assert_eq!((pool.stats().handles, dropped.get()), (0, 400 * round));
    }
    assert!(pool.audit().balances());
}

#[test]
fn cancel_against_fire_has_one_winner() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let (ran, cancelled, dropped) = (Count::new(), Count::new(), Count::new());
    thread::scope(|scope| {
        for seed in 0..4 {
            let (pool, ran, cancelled, dropped) = (&pool, &ran, &cancelled, &dropped);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..2500 {
                    let (count, held) = (ran.clone(), dropped.on_drop());
                    let work = move || {
                        let _held = held;
                        count.up();
                    };
                    let delay = Duration::from_nanos(random.below(60_000));
                    let timer = pool.after(delay, work).unwrap();
                    for _ in 0..random.below(3000) {
                        std::hint::spin_loop();
                    }
                    if timer.cancel() {
                        cancelled.up();
                    }
                }
            });
        }
    });
    until("the rest has run", || ran.get() + cancelled.get() == 10_000);
    finish(&pool);
    assert_eq!((ran.get() + cancelled.get(), dropped.get()), (10_000, 10_000));
    let audit = pool.audit();
    assert_eq!((audit.completed, audit.cancelled), (ran.get(), cancelled.get()));
}

#[test]
fn a_postponed_timer_keeps_to_its_new_time_and_an_earlier_one_is_not_taken() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (fired, early) = (Count::new(), Count::new());
    let armed = Instant::now();
    let (count, too_early) = (fired.clone(), early.clone());
    let new = Duration::from_millis(40);
    let timer = pool.after(Duration::from_millis(5), move || {
        if armed.elapsed() < new {
            too_early.up();
        }
        count.up();
    });
    let timer = timer.unwrap();
    // On a machine that stalls it may have fired already; then there is nothing to postpone.
    let postponed = timer.postpone(new);
    if postponed {
        assert!(timer.postpone(Duration::ZERO), "pending; an earlier time changes nothing");
    }
    fired.until(1);
    assert!(early.get() == 0 || !postponed);
    // Put off again and again, it does not run.
    let count = fired.clone();
    let busy = pool.after(LONG, move || count.up()).unwrap();
    for _ in 0..10_000 {
        assert!(busy.postpone(LONG));
    }
    assert!(busy.cancel());
    finish(&pool);
    assert_eq!(fired.get(), 1);
}

/// Goal: timers of a thread that has ended, more than it could keep to itself, fire, or are cancelled by
/// others, and their slots are free after that. Method: the same by two threads, one after the other.
#[test]
fn timers_outlive_the_thread_that_armed_them() {
    const TIMERS: u64 = 1500;
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let at_rest = pool.stats().handles;
    let (ran, dropped) = (Count::new(), Count::new());
    let mut cancelled = 0;
    for round in 1..=2 {
        let (armed, ran, gone) = (pool.clone(), ran.clone(), dropped.clone());
        let arming = thread::spawn(move || {
            let arm = |number: u64| {
                let (count, held) = (ran.clone(), gone.on_drop());
                let work = move || {
                    let _held = held;
                    count.up();
                };
                armed.after(20 * MILLISECOND + Duration::from_nanos(number % 7), work).unwrap()
            };
            let timers: Vec<Timer> = (0..TIMERS).map(arm).collect();
            // Every third by who armed it.
            timers.iter().step_by(3).filter(|timer| timer.cancel()).count() as u64
                + thread::spawn(move || {
                    timers.iter().skip(1).step_by(3).filter(|t| t.cancel()).count()
                })
                .join()
                .unwrap() as u64
        });
        cancelled += arming.join().unwrap();
        until("the rest has run", || dropped.get() == round * TIMERS);
    }
    until("every slot is free", || pool.stats().handles == at_rest);
    finish(&pool);
    assert_eq!((ran.get(), dropped.get()), (2 * TIMERS - cancelled, 2 * TIMERS));
    let audit = pool.audit();
    assert_eq!((audit.completed, audit.cancelled), (ran.get(), cancelled), "{audit:?}");
}

/// Goal: a pool that has ended is freed when its last timer is, though threads live on that have armed and
/// cancelled many: none keeps it for timers to come. Method: a hook that the pool owns, and two such threads, one of
/// which does nothing after the pool has ended.
#[test]
fn threads_that_had_timers_do_not_keep_the_pool() {
    let _guard = hang_guard();
    let freed = Count::new();
    let held = freed.on_drop();
    let hook = move |_: &paceline::SlowReport| _ = &held;
    let pool = Pool::builder().threads(1).on_slow(LONG, hook).build().unwrap();
    let use_timers = |pool: &Pool| {
        let arm = || pool.after(LONG, || ()).unwrap();
        for _ in 0..3 {
            let timers: Vec<Timer> = (0..100).map(|_| arm()).collect();
            assert!(timers.iter().all(Timer::cancel));
        }
        arm()
    };
    let (armed, over) = (Gate::new(), Gate::new());
    let other = thread::spawn({
        let (armed, over, pool) = (armed.clone(), over.clone(), pool.clone());
        move || {
            drop(use_timers(&pool));
            drop(pool);
            armed.open();
            over.wait();
        }
    });
    let last = use_timers(&pool);
    armed.wait();
    finish(&pool);
    drop(pool);
    assert_eq!(freed.get(), 0, "a timer is left");
    assert!(!last.cancel() && !last.is_pending());
    drop(last);
    until("the pool is freed", || freed.get() == 1);
    over.open();
    other.join().unwrap();
}

#[test]
fn a_dropped_timer_runs_all_the_same() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (ran, large) = (Count::new(), [7_u8; 300]);
    let count = ran.clone();
    // A closure that does not fit a slot, and one from inside another.
    drop(pool.after(MILLISECOND, move || count.add(u64::from(large[0]))).unwrap());
    let (inner, count) = (pool.clone(), ran.clone());
    drop(pool.after(MILLISECOND, move || drop(inner.after(MILLISECOND, move || count.up()))));
    ran.until(8);
    finish(&pool);
}

#[test]
fn delays_and_periods_out_of_range_are_refused() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let century = Duration::from_secs(100 * 365 * 86_400);
    assert!(pool.after(century, || ()).unwrap().cancel());
    let refused = pool.after(Duration::MAX, || ()).unwrap_err().to_string();
    assert!(refused.starts_with("delay is ") && refused.ends_with("up to 100 years"), "{refused}");
    drop(pool.every(century, || Flow::Wait).unwrap());
    for period in [Duration::ZERO, Duration::from_nanos(999), Duration::MAX] {
        let refused = pool.every(period, || Flow::Wait).unwrap_err();
        let Error::Invalid { name: "period", allowed, .. } = refused else { panic!("{refused}") };
        assert_eq!(allowed, "1 microsecond to 100 years");
    }
    finish(&pool);
}

#[test]
fn a_periodic_timer_runs_until_it_is_done_or_deregistered() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (runs, endless) = (Count::new(), Count::new());
    let count = runs.clone();
    let done = pool.every(MILLISECOND, move || {
        count.up();
        if count.get() < 5 { Flow::Wait } else { Flow::Done }
    });
    let done = done.unwrap();
    until("it is done", || !done.is_open());
    assert_eq!(runs.get(), 5);
    let count = endless.clone();
    let handle = pool.every(Duration::from_micros(100), move || {
        count.up();
        Flow::Again
    });
    endless.until(20);
    handle.unwrap().deregister().unwrap();
    let last = endless.get();
    // A hundred periods of another timer later it has not run again.
    let count = runs.clone();
    let other = pool.every(Duration::from_micros(100), move || {
        count.up();
        Flow::Wait
    });
    runs.until(105);
    assert_eq!(endless.get(), last);
    drop(other);
    finish(&pool);
}

/// Goal: a periodic timer that pauses itself goes on after a resume that came while it ran.
#[test]
fn a_periodic_timer_that_is_resumed_while_it_runs_goes_on() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (begun, resumed) = (Count::new(), Count::new());
    let (begins, may_pause) = (begun.clone(), resumed.clone());
    let handle = pool.every(MILLISECOND, move || {
        begins.up();
        may_pause.until(begins.get());
        Flow::Pause
    });
    let handle = handle.unwrap();
    for call in 1..=10 {
        begun.until(call);
        handle.resume().unwrap();
        resumed.up();
    }
    begun.until(11);
    resumed.up();
    drop(handle);
    finish(&pool);
}

#[test]
fn a_periodic_timer_can_be_paused_from_both_sides() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (runs, clock) = (Count::new(), Count::new());
    let count = runs.clone();
    let handle = pool.every(MILLISECOND, move || {
        count.up();
        // It pauses itself each second time.
        if count.get() % 2 == 0 { Flow::Pause } else { Flow::Wait }
    });
    let handle = handle.unwrap();
    let ticks = clock.clone();
    let other = pool.every(MILLISECOND, move || {
        ticks.up();
        Flow::Wait
    });
    runs.until(2);
    for round in 1..4 {
        let now = clock.get();
        clock.until(now + 5);
        assert_eq!(runs.get(), 2 * round);
        handle.resume().unwrap();
        runs.until(2 * round + 2);
    }
    handle.pause().unwrap();
    handle.resume().unwrap();
    runs.until(10);
    drop((handle, other));
    finish(&pool);
}

/// Goal: due timers run although descriptors never fall silent, and the other way round.
#[test]
fn timers_and_descriptors_do_not_starve_each_other() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (bytes, runs) = (Count::new(), Count::new());
    let (read, write) = Fd::pipe();
    let echo = write.duplicate();
    let count = bytes.clone();
    // It always finds a byte, since it writes one itself.
    let endless = pool.register(read, move |fd: &mut Fd, _| {
        count.add(fd.drain() as u64);
        echo.write(b"!").unwrap();
        Flow::Wait
    });
    write.write(b"!").unwrap();
    let periodic: Vec<_> = (0..100)
        .map(|_| {
            let count = runs.clone();
            let handler = move || {
                count.up();
                Flow::Wait
            };
            pool.every(Duration::from_micros(50), handler).unwrap()
        })
        .collect();
    runs.until(5000);
    let before = bytes.get();
    bytes.until(before + 1000);
    let before = runs.get();
    runs.until(before + 5000);
    drop((endless, periodic));
    finish(&pool);
}

#[test]
fn timers_that_are_not_due_are_cancelled_by_a_shutdown() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let dropped = Count::new();
    let timers: Vec<_> = (0..100)
        .map(|_| {
            let held = dropped.on_drop();
            pool.after(Duration::from_secs(3600), move || drop(held)).unwrap()
        })
        .collect();
    assert_eq!(pool.audit().in_flight, 100);
    let report = pool.shutdown(LONG);
    assert_eq!((report.drained, report.cancelled, dropped.get()), (true, 100, 100), "{report:?}");
    assert!(timers.iter().all(|timer| !timer.is_pending() && !timer.cancel()));
    settled(&pool);
}
