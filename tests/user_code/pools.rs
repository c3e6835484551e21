//! Pools: tasks, timers, handles, strands, rings, signals, hooks.

use crate::charge::{Bang, Driver, panics};
use crate::common::{Count, Fd, LONG, until};
use crate::is_sound;
use paceline::{
    Error, Flow, HandleOptions, Lane, Pool, Ready, Ring, Signals, Strand, Task, unconfined,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

pub const DRIVERS: &[(&str, Driver)] = &[
    ("Pool::post", |pool, bang| drop(pool.post(once(bang)))),
    ("Pool::try_post", |pool, bang| drop(pool.try_post(once(bang)))),
    ("Pool::submit", |pool, bang| {
        answered(pool.submit(once(bang)).map_err(drop));
        // A value that no thread waits for is dropped here if it is there already, or else on the pool.
        let value = pool.submit(move || bang.charge()).map_err(drop).unwrap();
        let _in_drop = panics(|| drop(value));
    }),
    ("Pool::try_submit", |pool, bang| answered(pool.try_submit(once(bang)).map_err(drop))),
    ("Pool::post_batch", |pool, bang| {
        pool.post_batch((0..40).map(|_| once(bang))).map_err(drop).unwrap();
        // The iterator is the user's, too, and runs here.
        let breaks = (0..40).map(|number| if number == 35 { bang.go() } else { once(bang) });
        assert!(panics(|| drop(pool.post_batch(breaks))));
    }),
    ("LaneRef::post", |pool, bang| drop(pool.lane(Lane::High).post(once(bang)))),
    ("LaneRef::try_post", |pool, bang| drop(pool.lane(Lane::High).try_post(once(bang)))),
    ("LaneRef::submit", |pool, bang| {
        answered(pool.lane(Lane::High).submit(once(bang)).map_err(drop))
    }),
    ("LaneRef::try_submit", |pool, bang| {
        answered(pool.lane(Lane::High).try_submit(once(bang)).map_err(drop));
    }),
    ("LaneRef::post_batch", |pool, bang| {
        pool.lane(Lane::Low).post_batch((0..40).map(|_| once(bang))).map_err(drop).unwrap();
    }),
    ("Pool::scope", |pool, bang| assert!(panics(|| pool.scope(|_| -> () { bang.go() })))),
    ("LaneRef::scope", |pool, bang| {
        assert!(panics(|| pool.lane(Lane::High).scope(|_| -> () { bang.go() })));
    }),
    ("Scope::post", |pool, bang| {
        assert!(panics(|| pool.scope(|scope| (0..3).for_each(|_| scope.post(once(bang))))));
    }),
    ("unconfined", |pool, bang| {
        assert!(panics(|| unconfined(|| -> () { bang.go() })));
        let _ended = pool.post(move || unconfined(once(bang)));
    }),
    ("Strand::post", |pool, bang| on_strand(pool, |strand| drop(strand.post(once(bang))))),
    ("Strand::try_post", |pool, bang| on_strand(pool, |strand| drop(strand.try_post(once(bang))))),
    ("Strand::submit", |pool, bang| {
        on_strand(pool, |strand| answered(strand.submit(once(bang)).map_err(drop)));
    }),
    ("Strand::try_submit", |pool, bang| {
        on_strand(pool, |strand| answered(strand.try_submit(once(bang)).map_err(drop)));
    }),
    ("Strand::post_batch", |pool, bang| {
        on_strand(pool, |strand| drop(strand.post_batch((0..40).map(|_| once(bang)))));
    }),
    ("Pool::after", |pool, bang| {
        let ran = Count::new();
        let told = ran.clone();
        let work = once(bang);
        let _timer = pool.after(MS, move || {
            told.up();
            work();
        });
        ran.until(1);
        // One that is never due is dropped by the end of the pool.
        let _timer = pool.after(LONG, once(bang)).unwrap();
    }),
    ("Pool::every", |pool, bang| {
        let charge = bang.charge();
        pool.every(MS, move || charge.go()).unwrap().detach();
        until("it is closed", || pool.stats().handles == 0);
        let charge = bang.charge();
        let never = move || {
            let _held = &charge;
            Flow::Wait
        };
        pool.every(LONG, never).unwrap().detach();
    }),
    ("Pool::register", |pool, bang| {
        let (read, write) = Fd::pipe();
        let charge = bang.charge();
        pool.register(read, move |_: &mut Fd, _: Ready| charge.go()).unwrap().detach();
        write.write(b"!").unwrap();
        until("it is closed", || pool.stats().handles == 0);
    }),
    ("Pool::register_with", |pool, bang| {
        let (read, write) = Fd::pipe();
        let charge = bang.charge();
        let options = HandleOptions::new().level().may_block();
        let handle = pool.register_with(read, options, move |_: &mut Fd, _: Ready| charge.go());
        write.write(b"!").unwrap();
        until("it is closed", || pool.stats().handles == 0);
        assert!(matches!(handle.unwrap().deregister(), Err(Error::Stale { .. })));
        // One that the pool's end closes.
        let (read, _write) = Fd::pipe();
        let charge = bang.charge();
        let options = HandleOptions::new().level().paused();
        let never = move |_: &mut Fd, _: Ready| {
            let _held = &charge;
            Flow::Wait
        };
        pool.register_with(read, options, never).unwrap().detach();
    }),
    ("Ring::serial", |pool, bang| {
        let charge = bang.charge();
        ring(Ring::serial(pool, 8, move |_: &[u64]| charge.go()).unwrap());
    }),
    ("Ring::concurrent", |pool, bang| {
        let charge = bang.charge();
        ring(Ring::concurrent(pool, 8, move |_: &[u64]| charge.go()).unwrap());
    }),
    ("Signals::new", |pool, bang| {
        let charge = bang.charge();
        let signals = Signals::new(pool, &[libc::SIGUSR1], move |_| charge.go()).unwrap();
        #[allow(unsafe_code, reason = "std sends no signals")]
        // SAFETY: all threads of this process block the signal.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGUSR1);
        }
        assert_eq!(signals.wait(), None);
    }),
    ("Builder::on_start", |_, bang| {
        let charge = bang.charge_once();
        let builder = Pool::builder().threads(2).on_start(move |_| charge.go());
        let own = builder.build().unwrap();
        is_sound(&own);
        let _in_drop = panics(|| drop(own));
    }),
    ("Builder::on_stop", |_, bang| {
        let charge = bang.charge_once();
        let builder = Pool::builder().threads(2).on_stop(move |_| charge.go());
        let own = builder.build().unwrap();
        is_sound(&own);
        let _in_drop = panics(|| drop(own));
    }),
    ("Builder::on_slow", |_, bang| {
        let (charge, told) = (bang.charge_once(), Count::new());
        let tell = told.clone();
        let builder = Pool::builder().threads(2).on_slow(MS, move |_| {
            tell.up();
            charge.go()
        });
        let own = builder.build().unwrap();
        let seen = told.clone();
        own.submit(move || seen.until(1)).unwrap().wait().unwrap();
        is_sound(&own);
        let _in_drop = panics(|| drop(own));
    }),
];

/// Code that is called once, and panics.
pub fn once(bang: Bang) -> impl FnOnce() + Send + 'static {
    let charge = bang.charge_once();
    move || charge.go()
}

fn answered(task: Result<Task<()>, ()>) {
    let error = task.unwrap().wait().unwrap_err();
    assert!(matches!(error, Error::Panicked { .. }), "{error:?}");
}

fn on_strand(pool: &Pool, code: impl FnOnce(&Strand)) {
    let strand = pool.strand().unwrap();
    code(&strand);
    assert_eq!(strand.submit(|| 7).unwrap().wait().unwrap(), 7, "the strand's next task");
}

/// Whoever publishes waits for room: it comes, or a refusal does.
fn ring(ring: Ring<u64>) {
    for number in 0..100 {
        if ring.publish(number).is_err() {
            break;
        }
    }
}
