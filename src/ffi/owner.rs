//! Whose is user_data, and when does its `drop` run?
//!
//! # The problem
//!
//! A registration moves user_data to the library, but only if it succeeds. Between the moment when a
//! handler is in its slot and the moment when the registering call returns, another thread may run
//! it, drop it (it answered "done"), or, in a pool that is shutting down, drop it without ever having
//! run it. And the call may fail after all of that. `drop` must run once after the last call, or,
//! after a failure, not at all, with no call coming any more.
//!
//! # The word
//!
//! | state | the handler | the registering call |
//! |---|---|---|
//! | PENDING | in its slot, not run yet | has not returned |
//! | ENTERED | runs, or has run | has not returned; it can only succeed now |
//! | KEPT | in its slot | succeeded |
//! | UNDROPPED | is gone and never ran; its `drop` is owed | has not returned; it decides |
//! | RETURNED | never runs: user_data is the caller's again | failed |
//! | DROPPED | is gone, and `drop` has run | |
//!
//! ```text
//!              enter             keep
//!   PENDING ──────────► ENTERED ──────► KEPT ── end ──► DROPPED
//!      │ └── keep ──────────────────────►┘                ▲ ▲
//!      │ end                    ENTERED ── end ───────────┘ │
//!      ├─────────► UNDROPPED ── keep ───────────────────────┘
//!      └── give_back ──► RETURNED ◄── give_back ── UNDROPPED
//! ```
//!
//! Every change is a compare-exchange with AcqRel: whoever runs `drop` sees all that the handler did.
#![allow(unsafe_code, reason = "user_data is a pointer of C's")]

use super::callback::pace_drop_fn;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use core::ffi::c_void;
use std::sync::Arc;

const PENDING: u32 = 0;
const ENTERED: u32 = 1;
const KEPT: u32 = 2;
const UNDROPPED: u32 = 3;
const RETURNED: u32 = 4;
const DROPPED: u32 = 5;

struct Shared {
    state: AtomicU32,
    /// What it is called, once that is known.
    id: AtomicU64,
    data: *mut c_void,
    drop: pace_drop_fn,
}

// SAFETY: the header demands that callbacks and user_data may be used by any thread.
unsafe impl Send for Shared {}
// SAFETY: as above; the state is atomic, the rest never changes.
unsafe impl Sync for Shared {}

impl Shared {
    /// Changes the state by `step` until the compare-exchange succeeds; the state before.
    fn change(&self, step: impl Fn(u32) -> u32) -> u32 {
        let mut now = self.state.load(Acquire);
        loop {
            match self.state.compare_exchange(now, step(now), AcqRel, Acquire) {
                Ok(before) => return before,
                Err(other) => now = other,
            }
        }
    }

    fn run_drop(&self) {
        if let Some(drop) = self.drop {
            // SAFETY: the state lets one caller come here, and no call is running or will be.
            unsafe { drop(self.data) }
        }
    }
}

/// Both sides of user_data that is being registered.
pub(crate) fn pair(data: *mut c_void, drop: pace_drop_fn) -> (Registration, Owner) {
    let shared =
        Arc::new(Shared { state: AtomicU32::new(PENDING), id: AtomicU64::new(0), data, drop });
    (Registration(Arc::clone(&shared)), Owner(shared))
}

/// The side of the registering call.
#[must_use]
pub(crate) struct Registration(Arc<Shared>);

impl Registration {
    /// What `Owner::is_called` was told, on this thread.
    pub(crate) fn id(&self) -> u64 {
        self.0.id.load(Relaxed)
    }

    /// The call succeeds.
    pub(crate) fn keep(self) {
        let before = self.0.change(|state| match state {
            PENDING | ENTERED => KEPT,
            _ => DROPPED,
        });
        if before == UNDROPPED {
            self.0.run_drop();
        }
    }

    /// The call fails. False: it cannot any more, because the handler has run.
    pub(crate) fn give_back(&self) -> bool {
        let before = self.0.change(|state| match state {
            PENDING | UNDROPPED => RETURNED,
            ENTERED => KEPT,
            other => other,
        });
        matches!(before, PENDING | UNDROPPED)
    }
}

/// The side of the handler, which is dropped with it.
pub(crate) struct Owner(Arc<Shared>);

impl Owner {
    /// The registering thread tells what the handler is called.
    pub(crate) fn is_called(&self, id: u64) {
        self.0.id.store(id, Relaxed);
    }

    /// The user_data for a call that cannot come too late: of a failed registration, all are over
    /// before it fails.
    pub(crate) fn data(&self) -> *mut c_void {
        self.0.data
    }

    /// The user_data for a call. None: it has been given back.
    pub(crate) fn enter(&self) -> Option<*mut c_void> {
        if self.0.state.load(Acquire) != KEPT {
            let before = self.0.change(|state| if state == PENDING { ENTERED } else { state });
            if before == RETURNED {
                return None;
            }
        }
        Some(self.0.data)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let before = self.0.change(|state| match state {
            PENDING => UNDROPPED,
            RETURNED => RETURNED,
            _ => DROPPED,
        });
        if matches!(before, ENTERED | KEPT) {
            self.0.run_drop();
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | user_data of C's | `drop` forgotten when the handler ends before the call returns | it never runs |

    use super::*;
    use core::sync::atomic::AtomicUsize;
    use core::sync::atomic::Ordering::Relaxed;
    use loom::thread;

    unsafe extern "C" fn count(data: *mut c_void) {
        // SAFETY: `data` is the count of the model that is running.
        unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Relaxed);
    }

    /// The handler runs or does not, and is dropped, while the call ends this way or that: `drop`
    /// runs once if the call succeeded, and else never, and then no handler has run.
    #[test]
    fn drop_runs_once_or_never() {
        for (runs, succeeds) in [(false, false), (false, true), (true, false), (true, true)] {
            loom::model(move || {
                let drops = Box::new(AtomicUsize::new(0));
                let data = core::ptr::from_ref(&*drops).cast_mut().cast();
                let (registration, owner) = pair(data, Some(count));
                let handler = thread::spawn(move || runs && owner.enter().is_some());
                let kept = succeeds || !registration.give_back();
                if succeeds {
                    registration.keep();
                }
                let has_run = handler.join().unwrap();
                assert_eq!(drops.load(Relaxed), usize::from(kept));
                assert!(kept || !has_run, "it has run, though the call failed");
            });
        }
    }
}
