//! Why a handler could not deal with a message, and what handlers may answer.

use core::fmt;
use core::time::Duration;

/// Why a handler could not deal with a message.
pub struct Failure {
    message: Box<str>,
    advice: Advice,
}

/// What a failure means for the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
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
    pub(crate) fn crashed(message: impl fmt::Display) -> Self {
        Self::with(message, Advice::Panicked)
    }

    pub(crate) fn with(message: impl fmt::Display, advice: Advice) -> Self {
        Self { message: message.to_string().into(), advice }
    }

    /// Whether the handler has panicked.
    pub fn is_panic(&self) -> bool {
        self.advice == Advice::Panicked
    }

    pub(in crate::hub) fn is_permanent(&self) -> bool {
        self.advice == Advice::Permanent
    }

    pub(in crate::hub) fn asked_delay(&self) -> Option<Duration> {
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
