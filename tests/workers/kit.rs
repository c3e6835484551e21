//! A pool with its worker pool, whose books balance at the end.

use super::common::until;
use paceline::Pool;
use paceline::task::WorkerPool;

/// `threads` threads that are not pinned.
pub fn pool(threads: usize) -> Pool {
    Pool::builder().threads(threads).pin(paceline::Pin::None).build().unwrap()
}

/// The books balance, and nothing is under way.
#[track_caller]
pub fn settled(workers: &WorkerPool) {
    until("the end of all tasks", || workers.audit().in_flight == 0);
    until("balanced books", || workers.audit().balances());
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}
