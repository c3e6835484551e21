//! Handlers that a factory makes, anew for the first message after each restart.
//!
//! A restart marks the handler as stale, on the thread that runs it or before the next message under its mailbox's
//! lock. Before its next message the stale one is dropped and another is made. If that fails the message has failed
//! as if the handler had panicked at it: so it is tried again or becomes a dead letter, this restart counts, too many
//! suspend the subscription, and the next message has the factory called again.

use crate::hub::mailbox::failure::{Answer, Failure};
use crate::hub::message::Message;
use crate::pool::contain;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// What a handler has answered.
pub(crate) type Told = Result<(), Failure>;

/// What is served by handlers of a factory's making: a subscription, or a replay.
pub(crate) trait Renew: Sized {
    type Served;

    /// Each restart sets this.
    fn renews(&mut self, stale: Arc<AtomicBool>);
    fn serve_all(
        self,
        handler: impl FnMut(&Message<'_>) -> Told + Send + 'static,
    ) -> crate::Result<Self::Served>;

    /// By what a factory, which may fail, has made first, and what it makes later.
    fn serve_renewed<M, F, A>(mut self, first: F, factory: M) -> crate::Result<Self::Served>
    where
        M: FnMut() -> Result<F, Failure> + Send + 'static,
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer + 'static,
    {
        let stale = Arc::new(AtomicBool::new(false));
        self.renews(Arc::clone(&stale));
        self.serve_all(renewed(first, factory, stale))
    }
}

/// `first`, and what `factory` makes once that is stale.
fn renewed<M, F, A>(
    first: F,
    mut factory: M,
    stale: Arc<AtomicBool>,
) -> impl FnMut(&Message<'_>) -> Told + Send + 'static
where
    M: FnMut() -> Result<F, Failure> + Send + 'static,
    F: FnMut(&Message<'_>) -> A + Send + 'static,
    A: Answer + 'static,
{
    let mut handler = Some(first);
    move |message: &Message<'_>| {
        if handler.is_none() || stale.load(Relaxed) {
            let before = handler.take();
            let _panicked = contain(|| drop(before));
            stale.store(false, Relaxed);
            handler = Some(factory()?);
        }
        let Some(handler) = &mut handler else { unreachable!("it was made") };
        handler(message).into_failure().map_or(Ok(()), Err)
    }
}
