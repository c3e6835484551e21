//! The clock of a handle set: the machine's, or a test's.

use super::ScriptedSource;
use crate::sys;

/// Tells the time in nanoseconds. Clones tell the same time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The kernel's monotonic clock.
    Monotonic,
    /// A test moves it.
    Manual(ScriptedSource),
}

impl Clock {
    pub(crate) fn is_manual(&self) -> bool {
        matches!(self, Self::Manual(_))
    }

    /// Nanoseconds since some fixed point of the past, never 0.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Monotonic => sys::clock::now(),
            Self::Manual(script) => script.now_nanos(),
        }
    }
}
