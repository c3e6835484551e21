//! Several handle sets: each is served by whoever is free, whatever became of its last leader.

mod common;

use common::{Count, Fd, Gate, finish, hang_guard, until};
use paceline::{Flow, Handle, Pool};
use std::time::Duration;

const SETS: usize = 3;

/// Pipes whose handlers count bytes; they are dealt out to the sets in turn.
fn pipes(pool: &Pool, count: usize, bytes: &Count) -> Vec<(Handle<Fd>, Fd)> {
    (0..count)
        .map(|_| {
            let ((read, write), bytes) = (Fd::pipe(), bytes.clone());
            let handler = move |fd: &mut Fd, _| {
                bytes.add(fd.drain() as u64);
                Flow::Wait
            };
            (pool.register(read, handler).unwrap(), write)
        })
        .collect()
}

/// Writes to each pipe and waits until all was read, some times.
fn served(pipes: &[(Handle<Fd>, Fd)], bytes: &Count) {
    for _ in 0..20 {
        let before = bytes.get();
        pipes.iter().for_each(|(_, fd)| assert_eq!(fd.write(b"12345").unwrap(), 5));
        bytes.until(before + 5 * pipes.len() as u64);
    }
}

#[test]
fn handles_are_dealt_out_and_every_set_is_served() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).leaders(SETS).build().unwrap();
    let (bytes, fired) = (Count::new(), Count::new());
    let pipes = pipes(&pool, 30, &bytes);
    let timers: Vec<_> = (0..SETS)
        .map(|_| {
            let fired = fired.clone();
            let handler = move || {
                fired.up();
                Flow::Wait
            };
            pool.every(Duration::from_micros(200), handler).unwrap()
        })
        .collect();
    served(&pipes, &bytes);
    fired.until(30);
    let stats = pool.stats();
    assert_eq!(stats.sets.len(), SETS);
    assert!(stats.sets.iter().all(|set| set.harvests > 0), "{stats:?}");
    assert_eq!(stats.handles, 30 + SETS as u64);
    drop((pipes, timers));
    finish(&pool);
}

/// Goal: a set whose leader is stuck in a handler is served by others. Method: of four threads three
/// get stuck, each in a handler of another set; the one that is left serves all three.
#[test]
fn a_set_whose_leader_is_stuck_is_served_by_others() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(SETS + 1).leaders(SETS).build().unwrap();
    let (bytes, gate, fired) = (Count::new(), Gate::new(), Count::new());
    let pipes = pipes(&pool, 30, &bytes);
    served(&pipes, &bytes);
    let stuck: Vec<_> = (0..SETS as u64)
        .map(|number| {
            let ((read, write), visitor) = (Fd::pipe(), gate.clone());
            let handler = move |fd: &mut Fd, _| {
                visitor.wait();
                fd.drain();
                Flow::Wait
            };
            let handle = pool.register(read, handler).unwrap();
            write.write(b"!").unwrap();
            // One after the other: the sets of those that are stuck have no leader of their own.
            gate.until_entered(number + 1);
            served(&pipes, &bytes);
            (handle, write)
        })
        .collect();
    for _ in 0..2 * SETS {
        let fired = fired.clone();
        pool.after(Duration::from_millis(1), move || fired.up()).unwrap();
    }
    fired.until(2 * SETS as u64);
    served(&pipes, &bytes);
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
    gate.open();
    drop((stuck, pipes));
    finish(&pool);
}

/// Goal: at most one thread waits at a set, whatever happens to leadership. Method: heavy traffic on
/// all sets with threads that get stuck and free again; each handler's count must add up, and the
/// sets are all led at rest or offered.
#[test]
fn leadership_survives_threads_that_come_and_go() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).leaders(SETS).build().unwrap();
    let bytes = Count::new();
    let pipes = pipes(&pool, 12, &bytes);
    for _ in 0..50 {
        let gate = Gate::new();
        for _ in 0..6 {
            let visitor = gate.clone();
            pool.post(move || visitor.wait()).unwrap();
        }
        served(&pipes[..4], &bytes);
        gate.until_entered(6);
        served(&pipes[4..], &bytes);
        gate.open();
    }
    until("the tasks end", || pool.audit().in_flight == 0);
    drop(pipes);
    finish(&pool);
}
