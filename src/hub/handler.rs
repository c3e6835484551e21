//! What subscribers hand over: handlers, what they may answer, and how one is called.
#![allow(unsafe_code, reason = "runs beside others borrow the handler that their mailbox keeps")]

use super::execute::Lent;
use super::message::Message;
use crate::pool::{discard, message_of};
use core::fmt;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a handler could not deal with a message.
pub struct Failure {
    message: Box<str>,
    advice: Advice,
}

/// What a failure means for the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Advice {
    /// It may succeed.
    Transient,
    /// There is no use in one.
    Permanent,
    /// It may succeed, not before this time has passed.
    After(Duration),
    /// The handler panicked.
    Panicked,
}

impl Failure {
    /// With this reason.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::with(message, Advice::Transient)
    }

    /// One that no other attempt will mend: there is none.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::with(message, Advice::Permanent)
    }

    /// One that another attempt may mend, not earlier than `delay` from now.
    pub fn retry_after(message: impl fmt::Display, delay: Duration) -> Self {
        Self::with(message, Advice::After(delay))
    }

    /// The handler has crashed in its own language: it counts as a panic.
    #[cfg(feature = "capi")]
    pub(crate) fn crashed(message: impl fmt::Display) -> Self {
        Self::with(message, Advice::Panicked)
    }

    fn with(message: impl fmt::Display, advice: Advice) -> Self {
        Self { message: message.to_string().into(), advice }
    }

    /// Whether the handler has panicked.
    pub fn is_panic(&self) -> bool {
        self.advice == Advice::Panicked
    }

    pub(super) fn is_permanent(&self) -> bool {
        self.advice == Advice::Permanent
    }

    pub(super) fn asked_delay(&self) -> Option<Duration> {
        if let Advice::After(delay) = self.advice { Some(delay) } else { None }
    }

    /// The reason.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?})", self.message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<crate::Error> for Failure {
    fn from(error: crate::Error) -> Self {
        Self::new(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for Failure {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self::new(error)
    }
}

/// What a handler may answer: nothing, or whether it could deal with the message.
pub trait Answer {
    /// Why it could not, if so.
    fn into_failure(self) -> Option<Failure>;
}

impl Answer for () {
    #[inline]
    fn into_failure(self) -> Option<Failure> {
        None
    }
}

impl<E: Into<Failure>> Answer for Result<(), E> {
    #[inline]
    fn into_failure(self) -> Option<Failure> {
        self.err().map(Into::into)
    }
}

/// A handler that was handed over.
pub(super) enum Handler {
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
pub(super) trait Serial: Send {
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
    pub(super) fn serial<F, A>(handler: F) -> Self
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        Self::Serial(Box::new(handler))
    }

    pub(super) fn shared<F, A>(handler: F) -> Self
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
    pub(super) unsafe fn lend_shared(&self) -> Option<Handler> {
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
    pub(super) fn call(&mut self, message: &Message<'_>) -> Option<Box<Failure>> {
        contained(|| match self {
            Self::Serial(handler) => handler.call(message),
            Self::Shared(handler) => handler(message),
            Self::Borrowed(handler) => handler(message),
        })
    }

    /// Calls it with one message after the other, up to the first that it fails at, which is the last that was lent.
    #[inline]
    pub(super) fn call_all(&mut self, messages: &mut Lent<'_>) -> Option<Box<Failure>> {
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
