//! Everything that a pool can be asked for may be asked for inside its handlers, and nothing there
//! waits for the pool itself.

mod common;

use common::{Count, Fd, Gate, LONG, finish, hang_guard, settled, until};
use paceline::{Error, Flow, Lane, Pool, PoolReport, Rejected, Strand};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[test]
fn a_handler_can_post_submit_and_wait() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).build().unwrap();
    let posted = Count::new();
    let (inner, count) = (pool.clone(), posted.clone());
    let outer = pool.submit(move || {
        let mut sum = 0;
        for number in 0..100 {
            let count = count.clone();
            inner.post(move || count.up()).unwrap();
            sum += inner.submit(move || number).unwrap().wait().unwrap();
        }
        let lanes = Lane::ALL.map(|lane| inner.lane(lane).submit(move || lane).unwrap());
        (sum, lanes.map(|task| task.wait().unwrap()))
    });
    assert_eq!(outer.unwrap().wait().unwrap(), (4950, Lane::ALL));
    posted.until(100);
    finish(&pool);
    assert_eq!(pool.audit().completed, 1 + 200 + 4);
}

#[test]
fn a_handler_can_register_arm_and_make_strands() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (read, write) = Fd::pipe();
    let (bytes, fired, on_strand) = (Count::new(), Count::new(), Count::new());
    let (inner, count, fires, strands) =
        (pool.clone(), bytes.clone(), fired.clone(), on_strand.clone());
    let setup = pool.submit(move || {
        let handler = move |fd: &mut Fd, _| {
            count.add(fd.drain() as u64);
            Flow::Wait
        };
        inner.register(read, handler).unwrap().detach();
        let again = fires.clone();
        inner.after(Duration::ZERO, move || fires.up()).unwrap();
        let periodic = inner.every(Duration::from_millis(1), move || {
            again.up();
            if again.get() < 4 { Flow::Wait } else { Flow::Done }
        });
        periodic.unwrap().detach();
        inner.strand().unwrap().post(move || strands.up()).unwrap();
    });
    setup.unwrap().wait().unwrap();
    write.write(b"12345").unwrap();
    bytes.until(5);
    fired.until(4);
    on_strand.until(1);
    finish(&pool);
}

/// Goal: drain refuses the outside only. Method: each link of a chain posts the next one, long after
/// the shutdown began; chains are short enough that the moment at which the last thread finds
/// nothing to do falls into many of them.
#[test]
fn what_handlers_post_while_the_pool_drains_still_runs() {
    let _guard = hang_guard();
    for round in 0..60 {
        let pool = Pool::builder().threads(4).build().unwrap();
        let (links, gate) = (Count::new(), Gate::new());
        let (inner, count, opened) = (pool.clone(), links.clone(), gate.clone());
        let first = move || {
            opened.wait();
            link(&inner, &count, 500);
        };
        pool.post(first).unwrap();
        gate.until_entered(1);
        let report = std::thread::scope(|scope| {
            let shutdown = scope.spawn(|| pool.shutdown(LONG));
            until("the outside is refused", || {
                matches!(pool.try_post(|| ()), Err(Rejected::ShutDown(_)))
            });
            gate.open();
            shutdown.join().unwrap()
        });
        assert!(report.drained, "round {round}: {report:?}, {} links", links.get());
        assert_eq!(links.get(), 501, "round {round}: {report:?}");
        settled(&pool);
    }
}

/// Counts, and posts the next link; a refusal ends the chain early.
fn link(pool: &Pool, links: &Count, left: u64) {
    links.up();
    if left > 0 {
        let (inner, count) = (pool.clone(), links.clone());
        let _refused = pool.post(move || link(&inner, &count, left - 1));
    }
}

#[track_caller]
fn shut_down_from(start: impl FnOnce(&Pool, mpsc::Sender<PoolReport>)) {
    let pool = Pool::builder().threads(4).build().unwrap();
    let after = Count::new();
    let (sender, reports) = mpsc::channel();
    for _ in 0..100 {
        let after = after.clone();
        pool.post(move || after.up()).unwrap();
    }
    start(&pool, sender);
    let request = reports.recv().unwrap();
    assert!(request.requested && request.stuck.is_empty(), "{request:?}");
    until("the pool refuses", || pool.post(|| ()).is_err());
    finish(&pool);
    assert_eq!(after.get(), 100);
    let roles = pool.stats().threads.into_iter().map(|thread| thread.role);
    assert!(roles.into_iter().all(|role| role == paceline::ThreadRole::Away));
}

#[test]
fn a_shutdown_inside_any_handler_is_a_request() {
    let _guard = hang_guard();
    shut_down_from(|pool, report| {
        let inner = pool.clone();
        pool.post(move || report.send(inner.shutdown(LONG)).unwrap()).unwrap();
    });
    shut_down_from(|pool, report| {
        let inner = pool.clone();
        let strand = pool.strand().unwrap();
        strand.post(move || report.send(inner.shutdown(LONG)).unwrap()).unwrap();
    });
    shut_down_from(|pool, report| {
        let inner = pool.clone();
        let work = move || report.send(inner.shutdown(LONG)).unwrap();
        pool.after(Duration::from_millis(1), work).unwrap();
    });
    shut_down_from(|pool, report| {
        let inner = pool.clone();
        let periodic = pool.every(Duration::from_millis(1), move || {
            report.send(inner.shutdown(LONG)).unwrap();
            Flow::Done
        });
        // Refused, if the handler was quicker than this.
        let _or_shut_down = periodic.map(paceline::Handle::detach);
    });
    shut_down_from(|pool, report| {
        let inner = pool.clone();
        let (read, write) = Fd::pipe();
        write.write(b"!").unwrap();
        let handler = move |_: &mut Fd, _| {
            report.send(inner.shutdown(LONG)).unwrap();
            Flow::Done
        };
        let _or_shut_down = pool.register(read, handler).map(paceline::Handle::detach);
    });
}

/// Goal: the last clone of a pool may go inside one of its own handlers; the pool then ends by
/// itself, having run what it had accepted.
#[test]
fn a_pool_dropped_inside_its_own_handler_ends() {
    let _guard = hang_guard();
    for threads in [1, 2, 8] {
        let (ran, stopped, dropped) = (Count::new(), Count::new(), Count::new());
        let (stops, gate) = (stopped.clone(), Gate::new());
        let pool = Pool::builder().threads(threads).on_stop(move |_| stops.up()).build().unwrap();
        let (last, wait, on_drop) = (pool.clone(), gate.clone(), dropped.on_drop());
        pool.post(move || {
            let _on_drop = on_drop;
            wait.wait();
            drop(last);
        })
        .unwrap();
        gate.until_entered(1);
        let (read, _write) = Fd::pipe();
        let held = dropped.on_drop();
        let handler = move |_: &mut Fd, _| {
            let _held = &held;
            Flow::Wait
        };
        pool.register(read, handler).unwrap().detach();
        for _ in 0..1000 {
            let ran = ran.clone();
            pool.post(move || ran.up()).unwrap();
        }
        drop(pool);
        gate.open();
        stopped.until(threads as u64);
        dropped.until(2);
        assert_eq!(ran.get(), 1000);
    }
}

#[test]
fn when_every_thread_waits_for_a_task_the_last_one_is_told_that_it_would_deadlock() {
    let _guard = hang_guard();
    for threads in [1, 2, 8] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let barrier = Arc::new(std::sync::Barrier::new(threads));
        let waiters: Vec<_> = (0..threads)
            .map(|number| {
                let (inner, barrier) = (pool.clone(), Arc::clone(&barrier));
                let work = move || {
                    // From here on every thread is inside a handler, and runs nothing else.
                    barrier.wait();
                    inner.submit(move || number).unwrap().wait()
                };
                pool.submit(work).unwrap()
            })
            .collect();
        let results: Vec<_> = waiters.into_iter().map(|task| task.wait().unwrap()).collect();
        let refused = results.iter().filter(|r| matches!(r, Err(Error::WouldDeadlock))).count();
        let values = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!((refused, values), (1, threads - 1), "{results:?}");
        finish(&pool);
    }
}

#[test]
fn a_handler_may_wait_for_another_pools_task() {
    let _guard = hang_guard();
    let (one, other) = (Pool::builder().threads(1).build(), Pool::builder().threads(1).build());
    let (one, other) = (one.unwrap(), other.unwrap());
    let inner = other.clone();
    let task = one.submit(move || inner.submit(|| 7).unwrap().wait());
    assert_eq!(task.unwrap().wait().unwrap().unwrap(), 7);
    finish(&one);
    finish(&other);
}

/// Goal: no foreign work runs on the stack of a handler that waits or posts. Method: a mutex that
/// every task takes, and that is held across every call.
#[test]
fn no_other_work_runs_on_a_handlers_stack() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).lane_capacity(8).build().unwrap();
    let lock = Arc::new(Mutex::new(0));
    let done = Count::new();
    for _ in 0..200 {
        let (inner, lock, done) = (pool.clone(), Arc::clone(&lock), done.clone());
        let work = move || {
            let mut held = lock.lock().unwrap();
            for _ in 0..10 {
                let (lock, ran) = (Arc::clone(&lock), done.clone());
                let inside = move || {
                    *lock.lock().unwrap() += 1;
                    ran.up();
                };
                match inner.post(inside) {
                    Ok(()) => {}
                    Err(Rejected::Full(_, _)) => done.up(),
                    Err(other) => panic!("{other}"),
                }
            }
            *held += 1;
        };
        pool.post(work).unwrap();
    }
    done.until(2000);
    finish(&pool);
    let rejected = pool.audit().rejected;
    assert_eq!(*lock.lock().unwrap(), 200 + 2000 - rejected);
}

/// Posts itself again for as long as the pool takes it.
fn flood(pool: &Pool) {
    let inner = pool.clone();
    let _refused = pool.post(move || flood(&inner));
}

fn flood_strand(strand: &Strand) {
    let inner = strand.clone();
    let _refused = strand.post(move || flood_strand(&inner));
}

/// Goal: a drain that a handler asked for ends in time, though no thread ever comes to rest.
#[test]
fn a_requested_drain_ends_though_handlers_post_for_ever() {
    let _guard = hang_guard();
    for threads in [1, 3] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let strand = pool.strand().unwrap();
        (0..10).for_each(|_| flood(&pool));
        flood_strand(&strand);
        let inner = pool.clone();
        let request = pool.submit(move || inner.shutdown(Duration::from_millis(5))).unwrap();
        assert!(request.wait().unwrap().requested);
        until("the pool stops", || pool.audit().in_flight == 0);
        assert!(!pool.shutdown(LONG).drained);
        settled(&pool);
    }
}

/// Goal: whoever waits for a task that will not run any more is told, inside and outside, though
/// another handler never returns.
#[test]
fn waiting_for_what_a_stop_cancelled_ends() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let gate = Gate::new();
    let stuck = gate.clone();
    pool.post(move || stuck.wait()).unwrap();
    gate.until_entered(1);
    let (inner, (sender, answers)) = (pool.clone(), mpsc::channel());
    pool.post(move || {
        let (here, outside) = (inner.submit(|| 7).unwrap(), inner.submit(|| 7).unwrap());
        assert!(inner.shutdown(Duration::ZERO).requested);
        sender.send((here.wait(), outside)).unwrap();
    })
    .unwrap();
    let (inside, outside) = answers.recv().unwrap();
    assert!(matches!(inside, Err(Error::Cancelled)), "{inside:?}");
    assert!(matches!(outside.wait(), Err(Error::Cancelled)));
    gate.open();
    let _ = pool.shutdown(LONG);
    settled(&pool);
}

/// Shuts its pool down when it is dropped.
struct ShutsDown(Option<Pool>, mpsc::Sender<PoolReport>);

impl Drop for ShutsDown {
    fn drop(&mut self) {
        let pool = self.0.take().unwrap();
        self.1.send(pool.shutdown(LONG)).unwrap();
    }
}

/// Goal: what a pool that stops drops on its own threads may be its last clone, or shut it down.
#[test]
fn destructors_that_run_at_the_end_are_inside() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (sender, reports) = mpsc::channel();
    let (asks, last) = (ShutsDown(Some(pool.clone()), sender), pool.clone());
    pool.after(LONG, move || drop(asks)).unwrap();
    let held = Count::new();
    let (read, _write) = Fd::pipe();
    let on_drop = held.on_drop();
    let handler = move |_: &mut Fd, _| {
        let _held = (&last, &on_drop);
        Flow::Wait
    };
    pool.register(read, handler).unwrap().detach();
    let (inner, gate) = (pool.clone(), Gate::new());
    let visitor = gate.clone();
    pool.post(move || {
        visitor.wait();
        assert!(inner.shutdown(Duration::ZERO).requested);
    })
    .unwrap();
    drop(pool);
    gate.open();
    assert!(reports.recv().unwrap().requested);
    held.until(1);
}
