//! How often a task is tried, and after which delay.

use core::time::Duration;

/// How a failed attempt is followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    delay: Duration,
}

impl Default for Retry {
    /// None.
    fn default() -> Self {
        Self::none()
    }
}

impl Retry {
    /// One attempt, and no other.
    #[must_use]
    pub const fn none() -> Self {
        Self { attempts: 1, delay: Duration::ZERO }
    }

    /// Up to `attempts` attempts (at least 1, the first one included), each `delay` after the last.
    #[must_use]
    pub const fn fixed(attempts: u32, delay: Duration) -> Self {
        Self { attempts: if attempts == 0 { 1 } else { attempts }, delay }
    }

    /// The most attempts.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait after `made` attempts. None: that was the last one.
    pub(super) fn delay_after(&self, made: u32) -> Option<Duration> {
        (made < self.attempts).then_some(self.delay)
    }
}
