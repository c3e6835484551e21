//! What subscribers hand over: handlers, what they may answer, and how one is called.
#![allow(unsafe_code, reason = "runs beside others borrow the handler that their mailbox keeps")]

use crate::hub::mailbox::failure::{Advice, Answer, Failure};
use crate::hub::mailbox::lent::Lent;
use crate::hub::message::Message;
use crate::pool::{discard, message_of};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A handler that was handed over.
pub(in crate::hub) enum Handler {
    /// For one thread at a time.
    Serial(Box<dyn Serial>),
    /// For several threads at once.
    Shared(Box<SharedFn>),
    /// One of those, which a mailbox keeps; see [`lend_shared`](Self::lend_shared).
    Borrowed(&'static SharedFn),
}

/// What handles one message, or some, one after the other: as a loop around what was handed over, so that a message of
/// many costs no call.
// A failure comes in a box, so that the usual answer is a register. One that is written to memory in pieces, and
// then read whole, is waited for, which was half of the time of a delivery.
pub(in crate::hub) trait Serial: Send {
    fn call(&mut self, message: &Message<'_>) -> Option<Box<Failure>>;
    fn call_all(&mut self, messages: &mut Lent<'_>) -> Option<Box<Failure>>;
}

impl<F, A> Serial for F
where
    F: FnMut(&Message<'_>) -> A + Send,
    A: Answer,
{
    #[inline]
    fn call(&mut self, message: &Message<'_>) -> Option<Box<Failure>> {
        self(message).into_failure().map(Box::new)
    }

    fn call_all(&mut self, messages: &mut Lent<'_>) -> Option<Box<Failure>> {
        messages.find_map(|message| self.call(&message))
    }
}

type SharedFn = dyn Fn(&Message<'_>) -> Option<Box<Failure>> + Send + Sync;

impl Handler {
    pub(in crate::hub) fn serial<F, A>(handler: F) -> Self
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        Self::Serial(Box::new(handler))
    }

    pub(in crate::hub) fn shared<F, A>(handler: F) -> Self
    where
        F: Fn(&Message<'_>) -> A + Send + Sync + 'static,
        A: Answer,
    {
        Self::Shared(Box::new(move |message| handler(message).into_failure().map(Box::new)))
    }

    /// Lends one that is for several threads. A count of references is a line that all of them write, and one more
    /// that no cache has.
    ///
    /// # Safety
    /// What is lent is used by a run only that is active, and neither called nor kept after that: the mailbox gives up
    /// its handler when no run is.
    pub(in crate::hub) unsafe fn lend_shared(&self) -> Option<Handler> {
        match self {
            Self::Serial(_) => None,
            Self::Shared(handler) => {
                // SAFETY: as the caller says, this one outlives what is lent; it is in a box, so it does not move.
                Some(Self::Borrowed(unsafe { &*core::ptr::from_ref(&**handler) }))
            }
            &Self::Borrowed(handler) => Some(Self::Borrowed(handler)),
        }
    }

    /// Calls it. A panic is a failure like others.
    #[inline]
    pub(in crate::hub) fn call(&mut self, message: &Message<'_>) -> Option<Box<Failure>> {
        contained(|| match self {
            Self::Serial(handler) => handler.call(message),
            Self::Shared(handler) => handler(message),
            Self::Borrowed(handler) => handler(message),
        })
    }

    /// Calls it with one message after the other, up to the first that it fails at, which is the last that was lent.
    #[inline]
    pub(in crate::hub) fn call_all(&mut self, messages: &mut Lent<'_>) -> Option<Box<Failure>> {
        contained(|| match self {
            Self::Serial(handler) => handler.call_all(messages),
            Self::Shared(handler) => messages.find_map(|message| handler(&message)),
            Self::Borrowed(handler) => messages.find_map(|message| handler(&message)),
        })
    }
}

#[inline]
fn contained(call: impl FnOnce() -> Option<Box<Failure>>) -> Option<Box<Failure>> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = format_args!("panicked: {}", message_of(&*panic));
        let failure = Failure::with(message, Advice::Panicked);
        discard(panic);
        Some(Box::new(failure))
    })
}
