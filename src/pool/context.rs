//! The pool whose member this thread is, and waits inside of it.

use super::Shared;
use super::{this_thread, turn};
use crate::error::{Error, Result};
use crate::sync::store_load_barrier;
use crate::sys::unconfined::Unconfined;
use crate::thread_state::is_member;
use crate::trace;
use core::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static MEMBER: RefCell<Option<(Arc<Shared>, usize)>> = const { RefCell::new(None) };
}

/// Makes this thread a member until the guard is dropped.
pub(crate) fn enter(shared: &Arc<Shared>, member: usize) -> impl Drop + use<> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            this_thread::leave();
            turn::never_ends();
            trace::leave();
            MEMBER.with_borrow_mut(Option::take);
        }
    }
    this_thread::enter(Arc::as_ptr(shared).addr(), member);
    #[allow(unsafe_code, reason = "the word is the member's, and this thread is that")]
    // SAFETY: what is kept in `MEMBER` below is dropped after the guard has said that this thread leaves.
    unsafe {
        trace::enter(&shared.ready.members[member].doing);
    }
    MEMBER.set(Some((Arc::clone(shared), member)));
    Leave
}

/// This thread's pool, and its number there.
pub(crate) fn current() -> Option<(Arc<Shared>, usize)> {
    if !is_member() {
        return None;
    }
    MEMBER.try_with(|member| member.borrow().clone()).ok().flatten()
}

/// Whether this thread is a member of that pool, and the pool stops.
pub(crate) fn stops_around_us(is_own: impl FnOnce(&Shared) -> bool) -> bool {
    // Against *stop, then sweep*: a stop that is not seen here finds what this thread waits for.
    store_load_barrier();
    current().is_some_and(|(shared, _)| is_own(&shared) && shared.must_stop())
}

/// Runs a wait of ours. On a member it hands leadership on first, and refuses when what is waited
/// for is its own pool's and no other member is left that could do it.
pub(crate) fn blocking<R>(
    is_own: impl FnOnce(&Shared) -> bool,
    wait: impl FnOnce() -> R,
) -> Result<R> {
    let Some((shared, member)) = current() else { return Ok(wait()) };
    let _waiting = match is_own(&shared) {
        true => Some(shared.places.begin_wait(member, &shared.ready).ok_or(Error::WouldDeadlock)?),
        false => None,
    };
    shared.ready.promote_for_blocking(Some(member));
    Ok(wait())
}

/// Says "I am about to block": another thread of this thread's pool is called to lead and to take
/// over what this one has claimed. Call it inside a handler or task; elsewhere it does nothing.
///
/// ```
/// use paceline::{Pool, promote_new_leader};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::builder().threads(2).build()?;
/// let task = pool.submit(|| {
///     promote_new_leader(); // what follows may block: another thread leads from now on
///     std::fs::read_to_string("/proc/self/comm")
/// })?;
/// assert!(task.wait()?.is_ok());
/// # Ok(())
/// # }
/// ```
pub fn promote_new_leader() {
    if let Some((shared, member)) = current() {
        shared.ready.promote_for_blocking(Some(member));
    }
}

/// Runs `start` with the signal mask and the CPUs of the thread that built this thread's pool, so that programs and threads
/// that it starts inherit those. A thread of a pool blocks the signals that are for the program and may be pinned to one
/// CPU: a program that is started without this ignores SIGTERM and Ctrl-C, and threads share one CPU. Signals that a
/// [`Signals`](crate::Signals) watches are let through. On a thread that is no pool's it only calls `start`.
///
/// A child of `fork` has all that by itself; [`Command`](std::process::Command) forks only with `pre_exec`.
///
/// ```
/// use paceline::{Pool, unconfined};
/// use std::process::Command;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let task = pool.submit(|| unconfined(|| Command::new("true").spawn())?.wait())?;
/// assert!(task.wait()?.is_ok_and(|status| status.success()));
/// # Ok(())
/// # }
/// ```
pub fn unconfined<R>(start: impl FnOnce() -> R) -> R {
    let _until_the_end = Unconfined::begin();
    start()
}
