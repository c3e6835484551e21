//! Slots for those who stand on the pool and keep ready work of their own: a *service* is a slot that
//! they call when there is some, and that runs a function of theirs.
//!
//! A call is never lost, as for any activation: the slot becomes QUEUED by it, or is RUNNING and runs
//! once more.

use super::slots::{Activity, Key};
use super::{Flow, Shared};
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

impl Shared {
    /// Lets a slot to a function that runs, on one thread at a time, whenever it is called.
    pub(crate) fn open_service<F>(&self, serve: F) -> Result<Key>
    where
        F: FnMut() -> Flow + Send + 'static,
    {
        self.let_slot(Box::new(Service(serve)))
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
