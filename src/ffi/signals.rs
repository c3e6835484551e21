//! Signals of the process.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, call, call_void, callback, consumed, nanos, optional_out, out, usable,
};
use super::callback::pace_drop_fn;
use super::owner::pair;
use super::pool::pace_pool_t;
use super::status::*;
use crate::{Error, Pool, Signals};
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Called on the pool with the number of a signal.
pub type pace_signal_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, signal: i32)>;

/// Watches for signals while it lives.
pub struct pace_signals_t {
    signals: Signals,
    pool: Pool,
}

impl pace_signals_t {
    pub(super) fn give(signals: Signals, pool: Pool) -> *mut Self {
        Box::into_raw(Box::new(Self { signals, pool }))
    }
}

/// Blocks `count` signals (numbers as SIGTERM) in the calling thread, and from then on calls `on_signal` on
/// the pool with each that is sent to the process. Signals of one number that come before it is called are
/// one, as ever. Call it in the main thread before others are started, as these inherit what it blocks. A thread that
/// does not block a signal would get it as if this were not here, which ends the process by default. The pool's own
/// threads block all that matter. Two of these should not share a signal: each of them is told to one.
///
/// PACE_EINVAL for a number that is no signal, cannot be blocked (KILL, STOP) or is a thread's own fault
/// (SEGV and its like), if there is none, and if another thread does not block one of them: its id and name are in
/// pace_last_error(); PACE_ESHUTDOWN; PACE_EFULL when all max_handles of the pool
/// are in use; PACE_EOS.
///
/// Threads: any. In handlers: yes, but it would block them in a thread of the pool, which does so already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_signals_new(
    pool: Option<&pace_pool_t>,
    numbers: *const i32,
    count: usize,
    on_signal: pace_signal_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    watch: Option<&mut MaybeUninit<*mut pace_signals_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        // SAFETY: as the header demands.
        let numbers = unsafe { boundary::array(numbers, count, "numbers") }?;
        let on_signal = callback(on_signal, "on_signal")?;
        let to = out(watch, "watch")?;
        let (registration, owner) = pair(user_data, drop);
        let made = Signals::new(&pool.pool, numbers, move |signal| {
            if let Some(data) = owner.enter() {
                // SAFETY: as the header demands, the function takes what came with it.
                unsafe { on_signal(data, signal) }
            }
        });
        match made {
            Ok(signals) => {
                registration.keep();
                let pool = pool.pool.clone();
                to.set(Box::into_raw(Box::new(pace_signals_t { signals, pool })));
                Ok(())
            }
            Err(error) => {
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// SIGTERM and SIGINT begin to shut the pool down: from then on it refuses work from outside, and runs what
/// it has accepted for up to `drain_for_ns`. pace_signals_wait() and then pace_pool_shutdown() tell how it
/// went.
///
/// As pace_signals_new().
///
/// Threads: any. In handlers: as there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_signals_shut_down(
    pool: Option<&pace_pool_t>,
    drain_for_ns: u64,
    watch: Option<&mut MaybeUninit<*mut pace_signals_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = out(watch, "watch")?;
        let signals = Signals::shut_down(&pool.pool, nanos(drain_for_ns))?;
        let pool = pool.pool.clone();
        to.set(Box::into_raw(Box::new(pace_signals_t { signals, pool })));
        Ok(())
    })
}

/// Waits for a signal whose handler has run and that nobody has waited for; the lowest, if several have
/// come. `signal` may be NULL.
///
/// PACE_ESHUTDOWN: the pool has ended; PACE_EDEADLOCK on a thread of the pool, which it would hold up.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub extern "C" fn pace_signals_wait(
    watch: Option<&pace_signals_t>,
    signal: Option<&mut MaybeUninit<i32>>,
) -> pace_status_t {
    call(|| {
        let signals = usable(watch)?;
        if signals.pool.is_inside() {
            return Err(Error::WouldDeadlock.into());
        }
        let number = signals.signals.wait().ok_or_else(|| Failure::from(Error::ShutDown))?;
        optional_out(signal).set(number);
        Ok(())
    })
}

/// Watches no more. The signals stay blocked, so that one that comes late does not end the process. It waits until no
/// call runs and `drop` has run. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers, and on threads of the pool: yes, it never waits
/// there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_signals_free(watch: Option<Box<pace_signals_t>>) {
    call_void(|| drop(consumed(watch)));
}

impl Handle for pace_signals_t {
    const NAME: &'static str = "watch";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}
