//! Slots for those who stand on the pool and keep ready work of their own: a *service* is a slot that
//! they call when there is some, and that runs a function of theirs.
//!
//! A call is never lost, as for any activation: the slot becomes QUEUED by it, or is RUNNING and runs
//! once more.
//!
//! One that is *timed* says at the end of each run when it is to run again by itself, and has its slot for
//! that, too: so it never waits for a timer to be free. While it waits for that time calls are not heard.

use super::handler::Flow;
use super::shared::Shared;
use super::slots::{Activity, Key, NEVER, Payload, Start, Traits};
use crate::error::{Error, Result};
use crate::source::Ready;
use crate::trace::Name;
use core::any::Any;

struct Service<F>(F);

impl<F: FnMut() -> Flow + Send + 'static> Activity for Service<F> {
    fn run(&mut self, _: Ready) -> Flow {
        (self.0)()
    }

    fn name(&self) -> Name {
        Name::of::<F>()
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

    fn name(&self) -> Name {
        Name::of::<F>()
    }

    fn next_deadline(&mut self, _now: u64) -> u64 {
        self.next
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// Lets a slot to a function that runs, on one thread at a time, whenever it is called.
pub(crate) fn open<F>(shared: &Shared, serve: F) -> Result<Key>
where
    F: FnMut() -> Flow + Send + 'static,
{
    shared.ready.handles.let_slot(Box::new(Service(serve)))
}

/// As `open`; `serve` says at which instant of the pool's clock it is to run again by itself.
/// [`NEVER`]: only when it is called.
pub(crate) fn open_timed<F>(shared: &Shared, serve: F) -> Result<Key>
where
    F: FnMut() -> u64 + Send + 'static,
{
    let handles = &shared.ready.handles;
    let traits =
        Traits { set: handles.sets.pick(), timer: true, service: true, ..Traits::default() };
    let payload = Payload::activity(Box::new(Timed { serve, next: NEVER }));
    let key = handles.allocate(traits, -1, payload)?;
    handles.slots.publish(key, Start::Idle);
    if shared.is_too_late() {
        drop(handles.close(key, false));
        return Err(Error::ShutDown);
    }
    Ok(key)
}

/// Has the service run, once more if it runs now.
pub(crate) fn call(shared: &Shared, key: Key) {
    call_one(shared, core::iter::once(key));
}

/// Makes the first slot runnable that rests. If all are runnable or running, each of them has
/// been told to run once more.
pub(super) fn call_one(shared: &Shared, keys: impl Iterator<Item = Key>) {
    for key in keys {
        if shared.ready.handles.slots.slot(key.index).activate(key.generation) {
            return shared.push_activation(key.index);
        }
    }
}

/// Ends the service; its function is dropped here, or by its run.
pub(crate) fn close(shared: &Shared, key: Key) {
    drop(shared.ready.handles.close(key, false));
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
        let key = open_timed(pool.shared(), || NEVER).unwrap();
        assert!(pool.handle_by_key(key).is_none());
        assert!(pool.timer_by_key(key).is_none());
    }

    #[test]
    fn a_pool_that_has_stopped_opens_no_timed_service() {
        let pool = pool();
        let _report = pool.shutdown(Duration::ZERO);
        let held = Arc::new(());
        let inner = Arc::clone(&held);
        let opened = open_timed(pool.shared(), move || {
            let _held = &inner;
            NEVER
        });
        assert!(matches!(opened, Err(Error::ShutDown)));
        assert_eq!(Arc::strong_count(&held), 1, "what it has is dropped at once");
    }
}
