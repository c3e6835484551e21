//! What only an injected failure shows, or a neighbour inside the crate. Everything else that a pool
//! promises is tested from outside.

use super::end::{Remains, Served};
use super::{Pool, Shared};
use crate::error::Error;
use crate::sys::thread::injected;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak, mpsc};

/// Goal: when a thread cannot be started, those before it end, and nothing of the pool is left.
/// Method: the creation of each thread in turn fails, as it does at the process's limit. The hooks
/// hold witnesses: one of them lives as long as any thread, the other as long as what they share,
/// which owns the descriptors.
#[test]
fn a_pool_that_cannot_start_all_its_threads_stops_those_that_run() {
    const THREADS: usize = 8;
    for leaders in [1, 3] {
        for good in 0..THREADS {
            let (threads, shared) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
            let (started, stopped, held) =
                (Arc::clone(&threads), Arc::clone(&threads), Arc::clone(&shared));
            injected::fail_after(good);
            let result = Pool::builder()
                .threads(THREADS)
                .leaders(leaders)
                .on_start(move |_| _ = started.fetch_add(1, SeqCst))
                .on_stop(move |_| _ = stopped.fetch_add(100, SeqCst))
                .on_slow(Duration::from_secs(1), move |_| drop(Arc::clone(&held)))
                .build();
            let Err(Error::Os { doing, source }) = result else { panic!("{result:?}") };
            assert_eq!(doing, format!("start thread {good}"));
            assert_eq!(source.raw_os_error(), Some(libc::EAGAIN));
            assert_eq!(threads.load(SeqCst), 101 * good, "each that started has stopped");
            assert_eq!((Arc::strong_count(&threads), Arc::strong_count(&shared)), (1, 1));
        }
    }
    let pool = Pool::builder().threads(THREADS).build().expect("the injected failures are used up");
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
}

/// Goal: what a pool asks and closes at its end may call the pool. Method: it opens another one of
/// its kind whenever it is asked or closed.
#[test]
fn what_is_served_may_call_the_pool() {
    struct Neighbour {
        shared: Arc<Shared>,
        asked: AtomicUsize,
        closed: AtomicBool,
    }
    impl Neighbour {
        fn call_the_pool(&self) {
            let another: Weak<Ended> = Weak::new();
            self.shared.end.serve(another);
        }
    }
    impl Served for Neighbour {
        fn remains(&self, _: u64) -> Remains {
            self.asked.fetch_add(1, SeqCst);
            self.call_the_pool();
            Remains::Nothing
        }

        fn close(&self) {
            self.call_the_pool();
            self.closed.store(true, SeqCst);
        }
    }
    struct Ended;
    impl Served for Ended {
        fn remains(&self, _: u64) -> Remains {
            unreachable!("it is gone")
        }

        fn close(&self) {}
    }

    let pool = Pool::builder().threads(2).build().unwrap();
    let (asked, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let neighbour = Arc::new(Neighbour { shared: Arc::clone(pool.shared()), asked, closed });
    let served: Weak<Neighbour> = Arc::downgrade(&neighbour);
    pool.shared().end.serve(served);
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(pool.shutdown(Duration::from_secs(600))));
    let report = end.recv_timeout(Duration::from_secs(60)).expect("the pool ends");
    assert!(report.drained && report.stuck.is_empty(), "{report:?}");
    assert!(neighbour.asked.load(SeqCst) > 0 && neighbour.closed.load(SeqCst));
}
