//! Slots for those who stand on the pool and keep ready work of their own: a *service* is a slot that
//! they call when there is some, and that runs a function of theirs.
//!
//! A call is never lost, as for any activation: the slot becomes QUEUED by it, or is RUNNING and runs
//! once more.
//!
//! One that is *timed* says at the end of each run when it is to run again by itself, and has its slot for
//! that, too: so it never waits for a timer to be free. While it waits for that time calls are not heard.

use super::slots::{Activity, Key};
use super::slots::{NEVER, Payload, Start, Traits};
use super::{Flow, Shared};
use crate::error::Error;
use crate::error::Result;
use crate::source::Ready;
use core::any::Any;

struct Service<F>(F);

impl<F: FnMut() -> Flow + Send + 'static> Activity for Service<F> {
    fn run(&mut self, _: Ready) -> Flow {
        (self.0)()
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

struct Timed<F> {
    serve: F,
    next: u64,
}

impl<F: FnMut() -> u64 + Send + 'static> Activity for Timed<F> {
    fn run(&mut self, _: Ready) -> Flow {
        self.next = (self.serve)();
        Flow::Wait
    }

    fn next_deadline(&mut self, _now: u64) -> u64 {
        self.next
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl Shared {
    /// Lets a slot to a function that runs, on one thread at a time, whenever it is called.
    pub(crate) fn open_service<F>(&self, serve: F) -> Result<Key>
    where
        F: FnMut() -> Flow + Send + 'static,
    {
        self.let_slot(Box::new(Service(serve)))
    }

    /// As `open_service`; `serve` says at which instant of the pool's clock it is to run again by itself.
    /// [`NEVER`]: only when it is called.
    pub(crate) fn open_timed_service<F>(&self, serve: F) -> Result<Key>
    where
        F: FnMut() -> u64 + Send + 'static,
    {
        let traits =
            Traits { set: self.pick_set(), timer: true, service: true, ..Traits::default() };
        let payload = Payload::Activity(Box::new(Timed { serve, next: NEVER }));
        let key = self.allocate(traits, -1, payload)?;
        self.slots.publish(key, Start::Idle);
        if self.is_too_late() {
            drop(self.close(key, false));
            return Err(Error::ShutDown);
        }
        Ok(key)
    }

    /// Has the service run, once more if it runs now.
    pub(crate) fn call_service(&self, key: Key) {
        if self.slots.slot(key.index).activate(key.generation) {
            self.push_activation(key.index);
        }
    }

    /// Ends the service; its function is dropped here, or by its run.
    pub(crate) fn close_service(&self, key: Key) {
        drop(self.close(key, false));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::pool::{Pin, Pool};
    use core::time::Duration;
    use std::sync::Arc;

    fn pool() -> Pool {
        Pool::builder().threads(1).pin(Pin::None).build().unwrap()
    }

    #[test]
    #[cfg(feature = "capi")]
    fn no_number_from_outside_names_a_timed_service() {
        let pool = pool();
        let key = pool.shared().open_timed_service(|| NEVER).unwrap();
        assert!(pool.handle_by_key(key).is_none());
        assert!(pool.timer_by_key(key).is_none());
    }

    #[test]
    fn a_pool_that_has_stopped_opens_no_timed_service() {
        let pool = pool();
        let _report = pool.shutdown(Duration::ZERO);
        let held = Arc::new(());
        let inner = Arc::clone(&held);
        let opened = pool.shared().open_timed_service(move || {
            let _held = &inner;
            NEVER
        });
        assert!(matches!(opened, Err(Error::ShutDown)));
        assert_eq!(Arc::strong_count(&held), 1, "what it has is dropped at once");
    }
}
