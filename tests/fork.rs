//! A forked child: every call says so, touches nothing shared, and the parent does not notice.
#![allow(unsafe_code, reason = "forks")]

mod common;

use common::{Count, Fd, LONG, finish, forked, hang_guard, in_child};
use paceline::{Error, Flow, Handle, Lane, Pool, Rejected, Strand, Task, Timer};
use std::time::Duration;

/// What a pool was asked for before the fork.
struct Things {
    pool: Pool,
    handle: Handle<Fd>,
    periodic: Handle<()>,
    strand: Strand,
    timer: Timer,
    pending: Task<u32>,
}

impl Things {
    /// All of it says that this is a forked child; then all of it is dropped.
    fn say_forked(self) {
        let Self { pool, handle, periodic, strand, timer, mut pending } = self;
        assert!(matches!(pool.post(|| ()), Err(Rejected::Forked(_))));
        assert!(matches!(pool.try_post(|| ()), Err(Rejected::Forked(_))));
        assert!(matches!(pool.submit(|| 7), Err(Rejected::Forked(work)) if work() == 7));
        assert!(matches!(pool.try_submit(|| 7), Err(Rejected::Forked(_))));
        for lane in Lane::ALL {
            assert!(matches!(pool.lane(lane).post(|| ()), Err(Rejected::Forked(_))));
        }
        match pool.post_batch((0..10).map(|_| || ())) {
            Err(Rejected::Forked(rest)) => assert_eq!(rest.count(), 10),
            other => panic!("{other:?}"),
        }
        assert!(matches!(strand.post(|| ()), Err(Rejected::Forked(_))));
        assert!(matches!(strand.submit(|| ()), Err(Rejected::Forked(_))));
        let (read, _write) = Fd::pipe();
        assert!(matches!(pool.register(read, |_, _| Flow::Wait), Err(Error::Forked)));
        assert!(matches!(pool.every(LONG, || Flow::Wait), Err(Error::Forked)));
        assert!(matches!(pool.after(LONG, || ()), Err(Error::Forked)));
        assert!(matches!(pool.strand(), Err(Error::Forked)));
        assert!(matches!(pool.join(LONG), Err(Error::Forked)));
        assert!(matches!(pool.pollable(), Err(Error::Forked)));
        assert!(matches!(handle.pause(), Err(Error::Forked)));
        assert!(matches!(handle.resume(), Err(Error::Forked)));
        assert!(!handle.is_open());
        assert!(matches!(handle.deregister(), Err(Error::Forked)));
        assert!(!timer.cancel() && !timer.postpone(LONG) && !timer.is_pending());
        if !pending.is_done() {
            assert!(matches!(pending.wait_timeout(LONG), Err(Error::Forked)));
            assert!(!pending.cancel());
            assert!(matches!(pending.wait(), Err(Error::Forked)));
        }
        let report = pool.shutdown(LONG);
        assert!(!report.drained && report.stuck.is_empty(), "{report:?}");
        let _looks = (pool.stats(), pool.audit(), format!("{pool:?} {strand:?} {timer:?}"));
        paceline::promote_new_leader();
        drop((strand, periodic, timer, pool));
    }
}

#[test]
fn a_forked_child_is_told_so_and_its_parent_goes_on() {
    in_child(|| {
        let _guard = hang_guard();
        for threads in [8, 0] {
            let pool = Pool::builder().threads(threads).max_joined(1).build().unwrap();
            let (bytes, ticks, fired, on_strand) =
                (Count::new(), Count::new(), Count::new(), Count::new());
            let ((read, write), count) = (Fd::pipe(), bytes.clone());
            let handler = move |fd: &mut Fd, _| {
                count.add(fd.drain() as u64);
                Flow::Wait
            };
            let handle = pool.register(read, handler).unwrap();
            let count = ticks.clone();
            let periodic = pool.every(Duration::from_millis(1), move || {
                count.up();
                Flow::Wait
            });
            let count = fired.clone();
            let timer = pool.after(Duration::from_millis(300), move || count.up()).unwrap();
            let strand = pool.strand().unwrap();
            let gate = common::Gate::new();
            let visitor = gate.clone();
            let pending = pool.submit(move || {
                visitor.wait();
                7
            });
            let things = Things {
                pool,
                handle,
                periodic: periodic.unwrap(),
                strand,
                timer,
                pending: pending.unwrap(),
            };
            let turn = |pool: &Pool| {
                if threads == 0 {
                    pool.join(Duration::from_millis(1)).unwrap();
                }
            };
            // Several children, the pool busy in between.
            let mut things = Some(things);
            for round in 1..=5 {
                write.write(b"!").unwrap();
                let status = forked(|| {
                    things.take().unwrap().say_forked();
                    // A pool of its own works, and so does the child's own child.
                    let own = Pool::builder().threads(2).build().unwrap();
                    assert_eq!(own.submit(|| 7).unwrap().wait().unwrap(), 7);
                    let inherited = own.clone();
                    let grandchild = forked(move || {
                        assert!(matches!(inherited.post(|| ()), Err(Rejected::Forked(_))));
                    });
                    assert_eq!(grandchild, 0);
                    assert_eq!(own.submit(|| 8).unwrap().wait().unwrap(), 8);
                    finish(&own);
                });
                assert_eq!(status, 0, "round {round}");
                let pool = &things.as_ref().unwrap().pool;
                if threads == 0 {
                    // The host would wait at it.
                    gate.open();
                }
                let before = ticks.get();
                common::until("the parent goes on", || {
                    turn(pool);
                    bytes.get() >= round && ticks.get() > before + 2
                });
            }
            gate.open();
            let Things { pool, handle, periodic, strand, timer, pending } = things.take().unwrap();
            assert!(handle.is_open() && periodic.is_open());
            let count = on_strand.clone();
            strand.post(move || count.up()).unwrap();
            common::until("what was armed before fires", || {
                turn(&pool);
                fired.get() == 1 && on_strand.get() == 1 && pending.is_done()
            });
            assert_eq!(pending.wait().unwrap(), 7);
            assert!(!timer.is_pending());
            drop((handle, periodic, strand));
            common::until("the strand ends", || {
                turn(&pool);
                pool.stats().handles == 0
            });
            finish(&pool);
        }
    });
}

/// Goal: a child can be forked at any moment of a busy pool, and end in any way. Method: many
/// children while eight threads work, some of which just leave and some of which drop everything.
#[test]
fn children_forked_under_load_end_by_themselves() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(8).build().unwrap();
        let (done, stop) = (Count::new(), Count::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while stop.get() == 0 {
                        let (task, timer) = (done.clone(), done.clone());
                        pool.post(move || task.up()).unwrap();
                        drop(pool.after(Duration::from_micros(50), move || timer.up()).unwrap());
                    }
                });
            }
            for round in 0..30 {
                let inherited = pool.clone();
                let status = forked(|| {
                    assert!(matches!(inherited.post(|| ()), Err(Rejected::Forked(_))));
                    if round % 2 == 0 {
                        drop(inherited);
                    }
                });
                assert_eq!(status, 0, "round {round}");
            }
            stop.up();
        });
        finish(&pool);
        let audit = pool.audit();
        assert_eq!(audit.completed, done.get());
    });
}
