//! A full queue: refused at once inside, waited for outside, and never a closure lost.

mod common;

use common::{Count, Fd, Gate, LONG, finish, hang_guard, settled, until};
use paceline::{Error, Flow, Lane, Pool, Rejected};
use std::thread;
use std::time::Duration;

/// Keeps a pool's threads busy until the gate opens.
fn block(pool: &Pool, threads: u64) -> Gate {
    let gate = Gate::new();
    for _ in 0..threads {
        let visitor = gate.clone();
        pool.post(move || visitor.wait()).unwrap();
    }
    gate.until_entered(threads);
    gate
}

#[test]
fn inside_a_full_lane_hands_the_closure_back_at_once() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).lane_capacity(16).build().unwrap();
    let sum = Count::new();
    let (inner, total) = (pool.clone(), sum.clone());
    let filled = pool.submit(move || {
        for number in 0.. {
            let added = total.clone();
            match inner.post(move || added.add(number)) {
                Ok(()) => {}
                Err(Rejected::Full(work, _)) => {
                    // It is the very closure that was refused, and nothing else has run meanwhile.
                    assert_eq!(total.get(), 0);
                    work();
                    assert_eq!(total.get(), number);
                    return number;
                }
                Err(other) => panic!("{other}"),
            }
        }
        unreachable!()
    });
    assert_eq!(filled.unwrap().wait().unwrap(), 16);
    finish(&pool);
    assert_eq!(sum.get(), (0..=16).sum::<u64>());
    let audit = pool.audit();
    assert_eq!((audit.accepted, audit.rejected), (17, 1), "{audit:?}");
}

#[test]
fn try_post_and_try_submit_never_wait() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).lane_capacity(4).build().unwrap();
    let gate = block(&pool, 2);
    for _ in 0..4 {
        pool.try_post(|| ()).unwrap();
    }
    let word = String::from("mine");
    match pool.try_post(move || drop(word)) {
        Err(Rejected::Full(work, room)) => {
            work();
            assert_eq!((room.what, room.capacity), ("the normal lane of the pool", 4));
            let said = Error::NoRoom(room).to_string();
            assert!(
                said.starts_with(
                    "the normal lane of the pool is full (4); what helps: a larger lane_capacity, "
                ),
                "{said}"
            );
        }
        other => panic!("{other:?}"),
    }
    match pool.try_submit(|| 7) {
        Err(Rejected::Full(work, _)) => assert_eq!(work(), 7),
        other => panic!("{other:?}"),
    }
    // Each lane has room of its own.
    pool.lane(Lane::Low).try_post(|| ()).unwrap();
    gate.open();
    finish(&pool);
    assert_eq!(pool.audit().rejected, 2);
}

#[test]
fn outside_producers_wait_for_room_and_none_is_forgotten() {
    let _guard = hang_guard();
    const PRODUCERS: u64 = 6;
    const EACH: u64 = 5000;
    let pool = Pool::builder().threads(2).lane_capacity(4).build().unwrap();
    let ran = Count::new();
    let gate = block(&pool, 2);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (pool, ran) = (&pool, &ran);
            scope.spawn(move || {
                // Two in each lane, and some by batches.
                let lane = Lane::ALL[producer as usize % 4];
                for _ in 0..EACH / 2 {
                    let ran = ran.clone();
                    pool.lane(lane).post(move || ran.up()).unwrap();
                }
                let tasks = (0..EACH / 2).map(|_| {
                    let ran = ran.clone();
                    move || ran.up()
                });
                pool.lane(lane).post_batch(tasks).unwrap();
            });
        }
        until("the lanes are full", || pool.stats().queued.iter().all(|&queued| queued == 4));
        assert_eq!(ran.get(), 0);
        gate.open();
    });
    finish(&pool);
    assert_eq!(ran.get(), PRODUCERS * EACH);
    assert_eq!(pool.audit().rejected, 0);
}

/// Goal: whoever waits for room in one lane gets it although another lane never falls to half.
/// Method: a full lane whose tasks post themselves again, for ever.
#[test]
fn a_producer_does_not_wait_for_another_lanes_room() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).lane_capacity(8).build().unwrap();
    let (stop, ran) = (Count::new(), Count::new());
    let gate = block(&pool, 1);
    for _ in 0..8 {
        let (inner, stop) = (pool.clone(), stop.clone());
        pool.lane(Lane::High).post(move || again(&inner, &stop)).unwrap();
    }
    thread::scope(|scope| {
        let producer = scope.spawn(|| {
            for _ in 0..1000 {
                let ran = ran.clone();
                pool.post(move || ran.up()).unwrap();
            }
        });
        until("the lane is full", || pool.stats().queued[Lane::Normal as usize] == 8);
        gate.open();
        producer.join().unwrap();
    });
    ran.until(1000);
    stop.up();
    finish(&pool);
}

/// A task that posts itself again until it is told to stop.
fn again(pool: &Pool, stop: &Count) {
    if stop.get() == 0 {
        let (inner, stop) = (pool.clone(), stop.clone());
        pool.lane(Lane::High).post(move || again(&inner, &stop)).unwrap();
    }
}

#[test]
fn a_shutdown_sends_waiting_producers_home_with_their_closures() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).lane_capacity(4).build().unwrap();
    let (ran, refused) = (Count::new(), Count::new());
    let gate = block(&pool, 2);
    let strand = pool.strand().unwrap();
    let report = thread::scope(|scope| {
        for producer in 0..8 {
            let (pool, strand, ran, refused) = (&pool, strand.clone(), &ran, &refused);
            scope.spawn(move || {
                for _ in 0..2000 {
                    let count = ran.clone();
                    let work = move || count.up();
                    let posted = if producer < 6 { pool.post(work) } else { strand.post(work) };
                    match posted {
                        Ok(()) => {}
                        Err(Rejected::ShutDown(_)) => refused.up(),
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
        until("the lane is full", || pool.stats().queued[Lane::Normal as usize] == 4);
        let shutdown = scope.spawn(|| pool.shutdown(LONG));
        until("it refuses", || matches!(pool.try_post(|| ()), Err(Rejected::ShutDown(_))));
        gate.open();
        shutdown.join().unwrap()
    });
    assert!(report.drained, "{report:?}");
    assert_eq!(ran.get() + refused.get(), 16_000);
    assert!(refused.get() > 0);
    settled(&pool);
}

#[test]
fn a_batch_inside_gives_back_what_did_not_fit_in_order() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).lane_capacity(64).build().unwrap();
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (inner, list) = (pool.clone(), log.clone());
    let posted = pool.submit(move || {
        let tasks = (0..100).map(|number| {
            let list = list.clone();
            move || list.lock().unwrap().push(number)
        });
        match inner.post_batch(tasks) {
            Err(Rejected::Full(rest, _)) => {
                assert!(list.lock().unwrap().is_empty());
                rest.collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    });
    let rest = posted.unwrap().wait().unwrap();
    assert_eq!(rest.len(), 36);
    until("the others have run", || log.lock().unwrap().len() == 64);
    rest.into_iter().for_each(|work| work());
    assert_eq!(*log.lock().unwrap(), (0..100).collect::<Vec<_>>());
    finish(&pool);
    assert_eq!(pool.audit().accepted, 65);
    match pool.post_batch((0..3).map(|_| || ())) {
        Err(Rejected::ShutDown(rest)) => assert_eq!(rest.count(), 3),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_batch_is_nothing_and_a_large_one_passes_a_small_lane() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).lane_capacity(2).build().unwrap();
    pool.post_batch(std::iter::empty::<fn()>()).unwrap();
    let ran = Count::new();
    let tasks = (0..1000).map(|_| {
        let ran = ran.clone();
        move || ran.up()
    });
    pool.post_batch(tasks).unwrap();
    finish(&pool);
    assert_eq!((ran.get(), pool.audit().accepted), (1000, 1000));
}

#[test]
fn a_full_strand_refuses_inside_and_makes_the_outside_wait() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).strand_capacity(4).build().unwrap();
    let strand = pool.strand().unwrap();
    let (ran, gate) = (Count::new(), Gate::new());
    let visitor = gate.clone();
    strand.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    for _ in 0..4 {
        let ran = ran.clone();
        strand.try_post(move || ran.up()).unwrap();
    }
    assert!(matches!(strand.try_post(|| ()), Err(Rejected::Full(_, _))));
    assert!(matches!(strand.try_submit(|| 7), Err(Rejected::Full(work, _)) if work() == 7));
    let inner = strand.clone();
    let inside = pool.submit(move || matches!(inner.post(|| ()), Err(Rejected::Full(_, _))));
    assert!(inside.unwrap().wait().unwrap());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let ran = ran.clone();
                    strand.post(move || ran.up()).unwrap();
                }
            });
        }
        gate.open();
    });
    drop(strand);
    finish(&pool);
    assert_eq!((ran.get(), pool.audit().rejected), (4004, 3));
}

#[test]
fn handles_timers_and_strands_share_a_limit_that_the_error_names() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_handles(1).strand_capacity(2).build().unwrap();
    let mut strands = Vec::new();
    let error = loop {
        match pool.strand() {
            Ok(strand) => strands.push(strand),
            Err(error) => break error,
        }
    };
    let Error::Full { what: "handles", capacity } = error else { panic!("{error}") };
    assert_eq!(capacity, strands.len());
    assert!(matches!(pool.after(Duration::ZERO, || ()), Err(Error::Full { .. })));
    assert!(matches!(pool.every(LONG, || Flow::Wait), Err(Error::Full { .. })));
    let (read, _write) = Fd::pipe();
    assert!(matches!(pool.register(read, |_, _| Flow::Wait), Err(Error::Full { .. })));
    // What ends makes room.
    drop(strands.pop());
    until("there is room again", || pool.after(Duration::ZERO, || ()).is_ok());
    drop(strands);
    finish(&pool);
}
