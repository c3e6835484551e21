//! Pulled events: data for hosts that cannot be called back.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, Result, TIMED_OUT, call, nanos};
use super::callback::{
    PACE_FLOW_AGAIN, PACE_FLOW_DONE, PACE_FLOW_PAUSE, PACE_FLOW_WAIT, pace_handle_t, pace_timer_t,
};
use super::handle::{Borrowed, key, name, options_of, pace_handle_options_t};
use super::pool::{open, pace_pool_t};
use super::status::*;
use super::timer;
use crate::{Event, EventKind, Flow, Handle, HandleId};
use core::cell::Cell;

/// A descriptor is ready: `ready` says for what.
pub const PACE_EVENT_READY: u32 = 0;
/// A periodic timer is due.
pub const PACE_EVENT_TICK: u32 = 1;
/// A one-shot timer is due.
pub const PACE_EVENT_TIMER: u32 = 2;
/// A token was posted.
pub const PACE_EVENT_TASK: u32 = 3;

/// One event as data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_event_t {
    /// PACE_EVENT_.
    pub kind: u32,
    /// PACE_READY_ bits, for PACE_EVENT_READY.
    pub ready: u32,
    /// What was given at the registration.
    pub token: u64,
    /// The handle that is held until the event is completed; 0 for timers that run once and tasks.
    pub handle: pace_handle_t,
}

/// As pace_cq_register(), and `token` comes out of pace_pool_pull() whenever `fd` is ready.
///
/// PACE_EINVAL, PACE_EOS, PACE_EFULL, PACE_ESHUTDOWN, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_register(
    pool: *mut pace_pool_t,
    fd: i32,
    options: *const pace_handle_options_t,
    token: u64,
    handle: *mut pace_handle_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        let fd = Borrowed::new(fd)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(handle, "handle") }?;
        to.set(let_go(pool.pool.register_pulled(fd, options, token)?));
        Ok(())
    })
}

/// As pace_cq_every(), for pace_pool_pull().
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_every(
    pool: *mut pace_pool_t,
    period_ns: u64,
    token: u64,
    handle: *mut pace_handle_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(handle, "handle") }?;
        to.set(let_go(pool.pool.every_pulled(nanos(period_ns), token)?));
        Ok(())
    })
}

/// As pace_pool_after(), for a host that pulls. `timer` may be NULL.
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_after(
    pool: *mut pace_pool_t,
    delay_ns: u64,
    token: u64,
    timer: *mut pace_timer_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(timer, "timer") }?;
        to.set(timer::name(&pool.pool.after_pulled(nanos(delay_ns), token)?));
        Ok(())
    })
}

/// Hands a token to whoever pulls next. Never waits. As many as a lane has room for may lie there; in
/// the counters they count as tasks.
///
/// PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_post(pool: *mut pace_pool_t, token: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        pool.pool.post_pulled(token).map_err(|rejected| Failure::from(&rejected))
    })
}

/// Hands `count` tokens over, in order. *accepted says how many, also for PACE_EFULL and
/// PACE_ESHUTDOWN.
///
/// PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_post_batch(
    pool: *mut pace_pool_t,
    tokens: *const u64,
    count: usize,
    accepted: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        // SAFETY: as the header demands.
        let accepted = unsafe { Out::new(accepted, "accepted") }?;
        // SAFETY: as the header demands.
        let tokens = unsafe { tokens_of(tokens, count) }?;
        match pool.pool.post_pulled_batch(tokens) {
            Ok(()) => {
                accepted.set(count);
                Ok(())
            }
            Err(rejected) => {
                let failure = Failure::from(&rejected);
                accepted.set(rejected.into_inner());
                Err(failure)
            }
        }
    })
}

/// Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
/// more. What this thread pulled before is completed first, as by PACE_FLOW_WAIT. In a pool without
/// threads the caller takes part meanwhile, as in pace_pool_join(): it leads, follows, and runs
/// whatever has a handler.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the pool has stopped, and nothing is left; PACE_EFULL
/// when max_joined threads are here already; PACE_EINVAL for a capacity of 0, or inside a handler.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_pull(
    pool: *mut pace_pool_t,
    events: *mut pace_event_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        boundary::check(events, "events")?;
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        let mut pulled = PULLED.try_with(Cell::take).unwrap_or_default();
        pulled.clear();
        let result = pool.pool.pull(&mut pulled, capacity, nanos(timeout_ns));
        for (index, event) in pulled.iter().enumerate() {
            // SAFETY: no more than `capacity` were pulled, and there is room for as many.
            unsafe { events.add(index).write(as_data(event)) };
        }
        let _ = PULLED.try_with(|place| place.set(pulled));
        match result? {
            0 => Err(TIMED_OUT),
            some => {
                count.set(some);
                Ok(())
            }
        }
    })
}

/// Completes one event early, from any thread, with an answer as a handler's: PACE_FLOW_AGAIN makes it
/// come again after others, PACE_FLOW_DONE deregisters. The thread that pulled it may go on pulling.
///
/// PACE_ESTALE: no event of this handle is held; PACE_EINVAL: `flow` is no PACE_FLOW_ number.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_complete(
    pool: *mut pace_pool_t,
    handle: pace_handle_t,
    flow: i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        let flow = match flow {
            PACE_FLOW_WAIT => Flow::Wait,
            PACE_FLOW_AGAIN => Flow::Again,
            PACE_FLOW_PAUSE => Flow::Pause,
            PACE_FLOW_DONE => Flow::Done,
            other => return Err(Failure::invalid("flow", other, "0 to 3 (PACE_FLOW_)")),
        };
        let held = key(handle.id).ok_or(NOTHING_HELD)?;
        Ok(pool.pool.complete_pulled(HandleId(held), flow)?)
    })
}

/// Completes what this thread has pulled, as its next pace_pool_pull() would. A drain does not wait for
/// another pull of this thread from now on.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pull_done(pool: *mut pace_pool_t) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| Ok(unsafe { open(pool) }?.pool.pull_done()?))
}

const NOTHING_HELD: Failure = Failure::plain(PACE_ESTALE, c"no event of this handle is held");

thread_local! {
    /// Where this thread's events lie on their way, so that a pull allocates nothing once warm.
    static PULLED: Cell<Vec<Event>> = const { Cell::new(Vec::new()) };
}

/// The handle lives on; C names it.
fn let_go<S>(handle: Handle<S>) -> pace_handle_t {
    let id = handle.id();
    handle.detach();
    pace_handle_t { id: id.map_or(0, |id| name(id.0).id) }
}

fn as_data(event: &Event) -> pace_event_t {
    let (kind, ready) = match event.kind {
        EventKind::Ready(ready) => (PACE_EVENT_READY, ready.bits().into()),
        EventKind::Tick => (PACE_EVENT_TICK, 0),
        EventKind::Timer => (PACE_EVENT_TIMER, 0),
        EventKind::Posted => (PACE_EVENT_TASK, 0),
    };
    let handle = pace_handle_t { id: event.handle.map_or(0, |id| name(id.0).id) };
    pace_event_t { kind, ready, token: event.token, handle }
}

/// # Safety
///
/// If `count` is not zero, `tokens` is NULL or points to as many, which live for `'a`.
unsafe fn tokens_of<'a>(tokens: *const u64, count: usize) -> Result<&'a [u64]> {
    // SAFETY: as the caller promises. This refuses NULL, and more than a slice may have.
    let bytes = unsafe { boundary::bytes(tokens.cast(), count, 8, "tokens") }?;
    match bytes.is_empty() {
        true => Ok(&[]),
        false => {
            boundary::check(tokens, "tokens")?;
            // SAFETY: aligned, and as many tokens as bytes were found good for.
            Ok(unsafe { core::slice::from_raw_parts(tokens, count) })
        }
    }
}
