//! The attempts that run, and when their times are over.

use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Release;
use crate::task::record::word::Seen;

pub(in crate::task) const NEVER: u64 = u64::MAX;

/// An attempt that has begun, until it has returned.
pub(in crate::task) struct Begun {
    pub(in crate::task) number: u32,
    /// When its time is over; u64::MAX: never.
    pub(in crate::task) due: u64,
    pub(in crate::task) seen: Seen,
    pub(in crate::task) place: Watched,
    /// It has a place of those that run, which the task may not have any more when it returns.
    pub(in crate::task) has_place: bool,
    /// The pool has stopped, and it was overtaken already: nothing is to be called.
    pub(in crate::task) is_void: bool,
}

/// An attempt that is out with a host, and the time at which it is to be looked at.
#[derive(Clone, Copy)]
pub(in crate::task) struct Watch {
    pub(in crate::task) task: u64,
    pub(in crate::task) begun: Seen,
    pub(in crate::task) at: u64,
}

/// Looks after what runs. It lasts as long as the task types that refer to it.
pub(crate) struct Guard {
    /// When its timer is due; NEVER: it is not armed.
    pub(in crate::task) due: CachePadded<AtomicU64>,
    /// Which task each member runs: its id + 1, or 0.
    pub(in crate::task) places: Box<[CachePadded<AtomicU64>]>,
}

/// Takes a task from its place when the attempt is over.
pub(in crate::task) struct Watched(pub(in crate::task) Option<&'static AtomicU64>);

impl Drop for Watched {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, Release);
        }
    }
}

impl Guard {
    pub(in crate::task) fn new(members: usize) -> Self {
        Self {
            due: CachePadded::new(AtomicU64::new(NEVER)),
            places: (0..members).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }
}
