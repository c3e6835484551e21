//! Lanes: the higher is preferred, none starves, and no busy lane starves descriptors and timers.

mod common;

use common::{Count, Fd, Gate, finish, hang_guard, until};
use paceline::{Flow, Lane, Pool};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Goal: when all lanes are full, of 64 picks 32 go to CRITICAL, 18 to HIGH, 10 to NORMAL and 4 to
/// LOW, and each lane is first in, first out. Method: one thread, kept busy while every lane is
/// filled; then its order is the table's. A host thread of a pool without threads claims one task
/// at a time, so each pick is a task.
#[test]
fn full_lanes_are_served_by_their_weights_and_in_order() {
    let _guard = hang_guard();
    const EACH: u64 = 640;
    let pool = Pool::builder().threads(0).max_joined(1).lane_capacity(1024).build().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    for lane in Lane::ALL {
        for number in 0..EACH {
            let log = Arc::clone(&log);
            pool.lane(lane).post(move || log.lock().unwrap().push((lane, number))).unwrap();
        }
    }
    let mut ran = 0;
    while ran < 4 * EACH {
        ran += pool.join(Duration::ZERO).unwrap();
    }
    let log = std::mem::take(&mut *log.lock().unwrap());
    // CRITICAL, the first lane to run empty, lasts for 20 rounds of the table.
    for round in log.chunks(64).take(19) {
        let picks = Lane::ALL.map(|lane| round.iter().filter(|&&(of, _)| of == lane).count());
        assert_eq!(picks, [32, 18, 10, 4]);
    }
    for lane in Lane::ALL {
        let order = log.iter().filter(|&&(of, _)| of == lane).map(|&(_, number)| number);
        assert!(order.eq(0..EACH), "{lane:?}");
    }
    finish(&pool);
}

/// Goal: of a few tasks of each lane all of a higher one come before those of a lower one, in whatever order they were
/// posted, and whatever has run before. Method: a host thread that runs one task at a time, or a thread that is kept
/// busy until all are posted, with tasks that are claimed together and such that are too long for that; in each order
/// of the lanes.
#[test]
fn of_a_few_tasks_the_more_urgent_come_first() {
    let _guard = hang_guard();
    let host = Pool::builder().threads(0).max_joined(1);
    let host = host.max_turn(Duration::from_secs(1)).build().unwrap();
    let own = Pool::builder().threads(1).build().unwrap();
    for before in 0..24u64 {
        // An order of the lanes for each number.
        let (mut left, mut number, mut lanes) = (Lane::ALL.to_vec(), before as usize, Vec::new());
        for choices in (1..=Lane::ALL.len()).rev() {
            lanes.push(left.remove(number % choices));
            number /= choices;
        }
        for (pool, is_host, spin) in [(&host, true, 0), (&own, false, 0), (&own, false, 100)] {
            let gate = Gate::new();
            let blocker = gate.clone();
            if is_host {
                (0..before).for_each(|_| pool.post(|| ()).unwrap());
                assert_eq!(pool.join(Duration::ZERO).unwrap(), before);
            } else {
                pool.post(move || blocker.wait()).unwrap();
                gate.until_entered(1);
            }
            let log = Arc::new(Mutex::new(Vec::new()));
            for &lane in &lanes {
                for _ in 0..5 {
                    let log = Arc::clone(&log);
                    let work = move || {
                        let end = Instant::now() + Duration::from_micros(spin);
                        while Instant::now() < end {}
                        log.lock().unwrap().push(lane);
                    };
                    pool.lane(lane).post(work).unwrap();
                }
            }
            if is_host {
                pool.join(Duration::ZERO).unwrap();
            } else {
                gate.open();
                until("all have run", || log.lock().unwrap().len() == 20);
            }
            let log = log.lock().unwrap();
            assert!(log.is_sorted(), "{lanes:?} after {before}: {log:?}");
        }
    }
    finish(&host);
    finish(&own);
}

/// A task that posts itself again until it is told to stop: into its own lane, or into the next one
/// that takes it. (A thread that was preempted in the middle of a push or a pop can make a lane look
/// full for a moment.)
fn forever(pool: &Pool, lane: usize, stop: &Count, ran: &Count) {
    ran.up();
    if stop.get() == 0 {
        let (inner, stop, ran) = (pool.clone(), stop.clone(), ran.clone());
        let mut work = move || forever(&inner, lane, &stop, &ran);
        for next in 0..ENDLESS.len() {
            match pool.lane(ENDLESS[(lane + next) % ENDLESS.len()]).post(work) {
                Ok(()) => return,
                Err(rejected) => work = rejected.into_inner(),
            }
        }
        panic!("no lane takes it");
    }
}

/// The lanes that never run empty.
const ENDLESS: [Lane; 3] = [Lane::Critical, Lane::High, Lane::Normal];

/// Goal: the lowest lane, descriptors and timers are served although the lanes above never run
/// empty. Method: the higher lanes are kept full for ever by tasks that post themselves, on all
/// threads; everything else must happen all the same.
fn endless_lanes_starve_nobody(threads: usize) {
    let pool = Pool::builder().threads(threads).build().unwrap();
    let (stop, endless) = (Count::new(), Count::new());
    for (lane, &named) in ENDLESS.iter().enumerate() {
        for _ in 0..200 {
            let (inner, stop, endless) = (pool.clone(), stop.clone(), endless.clone());
            pool.lane(named).post(move || forever(&inner, lane, &stop, &endless)).unwrap();
        }
    }
    let (low, fired, bytes) = (Count::new(), Count::new(), Count::new());
    for _ in 0..100 {
        let low = low.clone();
        pool.lane(Lane::Low).post(move || low.up()).unwrap();
    }
    let fires = fired.clone();
    let timer = pool.every(Duration::from_micros(500), move || {
        fires.up();
        Flow::Wait
    });
    let (read, write) = Fd::pipe();
    let count = bytes.clone();
    let handle = pool.register(read, move |fd: &mut Fd, _| {
        count.add(fd.drain() as u64);
        Flow::Wait
    });
    for round in 1..=20 {
        write.write(b"!").unwrap();
        bytes.until(round);
    }
    low.until(100);
    fired.until(20);
    assert!(endless.get() > 0);
    stop.up();
    timer.unwrap().deregister().unwrap();
    handle.unwrap().deregister().unwrap();
    finish(&pool);
}

#[test]
fn one_thread_with_endless_work_serves_everything() {
    let _guard = hang_guard();
    endless_lanes_starve_nobody(1);
}

#[test]
fn eight_threads_with_endless_work_serve_everything() {
    let _guard = hang_guard();
    endless_lanes_starve_nobody(8);
}

/// Goal: activations and tasks are drawn one for one, so endless activations starve no task.
#[test]
fn a_handler_that_always_wants_more_starves_no_task() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (gate, calls, order) = (Gate::new(), Count::new(), Arc::new(Mutex::new(Vec::new())));
    let (read, write) = Fd::pipe();
    write.write(b"!").unwrap();
    let (visitor, called) = (gate.clone(), calls.clone());
    let handle = pool.register(read, move |_: &mut Fd, _| {
        if called.get() == 0 {
            visitor.wait();
        }
        called.up();
        Flow::Again
    });
    gate.until_entered(1);
    for _ in 0..100 {
        let (calls, order) = (calls.clone(), Arc::clone(&order));
        pool.post(move || order.lock().unwrap().push(calls.get())).unwrap();
    }
    gate.open();
    until("all tasks have run", || order.lock().unwrap().len() == 100);
    // Between two tasks at most a few calls of the handler: it is behind them in the queue.
    let order = order.lock().unwrap();
    let gaps = order.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.clone().all(|gap| gap <= 8), "{:?}", gaps.collect::<Vec<_>>());
    handle.unwrap().deregister().unwrap();
    drop(order);
    finish(&pool);
}

/// Goal: hosts that stay for a task or two each time serve LOW too. Method: a flood of CRITICAL, one task
/// of LOW, and a host that joins for less than a task takes.
#[test]
fn hosts_that_stay_for_a_moment_starve_no_lane() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(0).max_joined(1).build().unwrap();
    let (critical, low) = (Count::new(), Count::new());
    for _ in 0..200 {
        let critical = critical.clone();
        let work = move || {
            critical.up();
            std::thread::sleep(Duration::from_micros(300));
        };
        pool.lane(Lane::Critical).post(work).unwrap();
    }
    let lows = low.clone();
    pool.lane(Lane::Low).post(move || lows.up()).unwrap();
    while low.get() == 0 {
        pool.join(Duration::from_micros(100)).unwrap();
    }
    assert!(critical.get() <= 17, "{} came before LOW", critical.get());
    while pool.join(Duration::ZERO).unwrap() > 0 {}
    finish(&pool);
}
