//! A time to give up at.

use core::time::Duration;

/// A time to give up at, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<u64>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(timeout.map(|time| crate::sys::clock::now().saturating_add(nanos(time))))
    }

    pub(crate) fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| crate::sys::clock::now() >= deadline)
    }

    pub(crate) fn left(self) -> Option<Duration> {
        let left = |deadline: u64| deadline.saturating_sub(crate::sys::clock::now());
        self.0.map(|deadline| Duration::from_nanos(left(deadline)))
    }
}
