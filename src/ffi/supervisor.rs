//! Supervision: what becomes of handlers that fail, and of their messages.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, Handle, Result, call, call_void, consumed, nanos, out, usable};
use super::callback::pace_drop_fn;
use super::message::{self, NOTHING, lend, pace_message_t, pace_subscription_t};
use super::owner::Owner;
use super::retry::{pace_retry_t, retry_of};
use super::status::*;
use super::values::{PACE_FOREVER, PACE_UNLIMITED32, pace_text_t};
use crate::hub::{
    self, Intensity, Message, OnFailure, Renew, Restart, RestartStrategy, Supervisor, Told,
};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use std::sync::Arc;

/// A message that its handler has failed at for good is kept among the hub's dead letters.
pub const PACE_ON_EXHAUSTED_DEAD_LETTER: u32 = 0;
/// It is dropped, and counted as failed.
pub const PACE_ON_EXHAUSTED_DISCARD: u32 = 1;

/// A failure restarts the handler that failed.
pub const PACE_RESTART_ONE_FOR_ONE: u32 = 0;
/// It restarts all handlers of the supervisor, each before its next message.
pub const PACE_RESTART_ONE_FOR_ALL: u32 = 1;

/// Counts the restarts of several subscriptions, and suspends all of them for a while when there are too many.
pub struct pace_supervisor_t {
    supervisor: Supervisor,
}

/// Called when a handler is restarted, with the user_data of the handler, on the thread that runs it, before
/// its next message: after it has answered PACE_EPANIC. `failure` is the reason that it gave; its text is NULL when
/// another of the supervisor has answered so, and after a suspension. `count` is how often it was restarted, this
/// time included.
pub type pace_restart_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, failure: pace_text_t, count: u64)>;

/// Makes what a handler gets as its user_data: anew for the first message after each restart. Its own user_data is the
/// one that the handler was registered with. It answers PACE_OK with *handler_data, or anything else and no data; it may
/// say why with pace_message_fail(). If it fails, the message that waits for the handler has failed as if its handler had
/// answered PACE_EPANIC, and the next message has it called again.
pub type pace_factory_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, handler_data: *mut *mut c_void) -> pace_status_t,
>;

/// Makes a supervisor. `strategy` is PACE_RESTART_. More than `restarts` (0 to 100,000, or
/// PACE_UNLIMITED32) in a span of `within_ns` (1 ns to 100 years) suspend its subscriptions: what
/// waits for them, and what comes, becomes dead letters until the suspension ends. Its time is as
/// suspension_ns and longest_suspension_ns of pace_subscription_options_t say.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_supervisor_new(
    strategy: u32,
    restarts: u32,
    within_ns: u64,
    suspension_ns: u64,
    longest_suspension_ns: u64,
    supervisor: Option<&mut MaybeUninit<*mut pace_supervisor_t>>,
) -> pace_status_t {
    call(|| {
        let strategy = match strategy {
            PACE_RESTART_ONE_FOR_ONE => RestartStrategy::OneForOne,
            PACE_RESTART_ONE_FOR_ALL => RestartStrategy::OneForAll,
            other => return Err(Failure::invalid("strategy", other, "PACE_RESTART_")),
        };
        let to = out(supervisor, "supervisor")?;
        let times = Times { restarts, within_ns, suspension_ns, longest_suspension_ns };
        let supervisor = Supervisor::new(strategy, times.intensity())?;
        to.set(Box::into_raw(Box::new(pace_supervisor_t { supervisor })));
        Ok(())
    })
}

/// Whether its subscriptions are suspended.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_supervisor_is_suspended(
    supervisor: Option<&pace_supervisor_t>,
    suspended: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let supervisor = usable(supervisor)?;
        out(suspended, "suspended")?.set(supervisor.supervisor.is_suspended());
        Ok(())
    })
}

/// Frees what names a supervisor. Its subscriptions keep it. NULL is a no-op.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_supervisor_free(supervisor: Option<Box<pace_supervisor_t>>) {
    call_void(|| drop(consumed(supervisor)));
}

impl Handle for pace_supervisor_t {
    const NAME: &'static str = "supervisor";

    fn is_forked(&self) -> bool {
        false
    }
}

/// What the options of subscriptions and of replays say about failures.
pub(super) struct Care<'a> {
    pub(super) retry: &'a pace_retry_t,
    pub(super) on_exhausted: u32,
    pub(super) times: Times,
    pub(super) supervisor: *const pace_supervisor_t,
}

/// How many restarts are too many, and for how long they suspend.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) restarts: u32,
    pub(super) within_ns: u64,
    pub(super) suspension_ns: u64,
    pub(super) longest_suspension_ns: u64,
}

impl Times {
    fn intensity(self) -> Intensity {
        let intensity = match self.restarts {
            PACE_UNLIMITED32 => Intensity::unlimited(),
            restarts => Intensity::new(restarts, nanos(self.within_ns)),
        };
        self.suspend(intensity)
    }

    fn suspend(self, intensity: Intensity) -> Intensity {
        let (first, longest) = (self.suspension_ns, self.longest_suspension_ns);
        match (first, longest) {
            (PACE_FOREVER, _) => intensity.suspend_for_good(),
            (0, 0) => intensity,
            _ => {
                let first = if first == 0 { SECOND } else { first };
                let longest = if longest == 0 { first.max(60 * SECOND) } else { longest };
                intensity.resume_after(nanos(first), nanos(longest))
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;

impl<'a> Care<'a> {
    pub(super) fn policy(&self) -> Result<OnFailure> {
        let policy = match self.on_exhausted {
            PACE_ON_EXHAUSTED_DEAD_LETTER => OnFailure::dead_letter(),
            PACE_ON_EXHAUSTED_DISCARD => OnFailure::discard(),
            other => {
                return Err(Failure::invalid("on_exhausted", other, "0 or 1 (PACE_ON_EXHAUSTED_)"));
            }
        };
        Ok(match retry_of(self.retry, None)? {
            Some(retry) => policy.retry(retry),
            None => policy,
        })
    }

    /// None: the default.
    pub(super) fn intensity(&self) -> Option<Intensity> {
        let Times { within_ns, suspension_ns, longest_suspension_ns, .. } = self.times;
        match within_ns {
            0 if suspension_ns == 0 && longest_suspension_ns == 0 => None,
            0 => Some(self.times.suspend(Intensity::default())),
            _ => Some(self.times.intensity()),
        }
    }

    /// # Safety
    ///
    /// As the header demands of a supervisor, which may be NULL.
    pub(super) unsafe fn supervisor(&self) -> Result<Option<&'a Supervisor>> {
        // SAFETY: as the caller promises.
        Ok(unsafe { self.supervisor.as_ref() }.map(|found| &found.supervisor))
    }
}

/// Makes the handlers of a subscription or replay, one after the other.
pub(super) struct Factory {
    make: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> pace_status_t,
    drop_handler: pace_drop_fn,
    handler: unsafe extern "C" fn(*mut c_void, *const pace_message_t, *mut i32),
    owner: Arc<Owner>,
    name: pace_subscription_t,
}

/// What a factory has made.
struct HandlerData {
    data: *mut c_void,
    drop: pace_drop_fn,
    /// It goes last.
    _owner: Arc<Owner>,
}

// SAFETY: the header demands that what a factory makes may be used by any thread, by one at a time.
unsafe impl Send for HandlerData {}

impl HandlerData {
    // A method, so that closures take all of it.
    fn get(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for HandlerData {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: as the header demands, it takes what the factory has made; no handler has it any more.
            unsafe { drop(self.data) }
        }
    }
}

impl Factory {
    /// # Safety
    ///
    /// As the header demands of the functions, which take what the owner has, and what `make` makes.
    pub(super) unsafe fn new(
        make: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> pace_status_t,
        drop_handler: pace_drop_fn,
        handler: unsafe extern "C" fn(*mut c_void, *const pace_message_t, *mut i32),
        owner: &Arc<Owner>,
        name: pace_subscription_t,
    ) -> Self {
        Self { make, drop_handler, handler, owner: Arc::clone(owner), name }
    }

    /// Fails if the first handler cannot be made.
    pub(super) fn serve<B: Renew>(self, builder: B) -> Result<B::Served> {
        let not_made = |failure: hub::Failure| Failure::told(PACE_EFAILED, failure.message());
        let first = self.next().map_err(not_made)?;
        Ok(builder.serve_renewed(first, move || self.next())?)
    }

    fn next(
        &self,
    ) -> core::result::Result<impl FnMut(&Message<'_>) -> Told + Send + use<>, hub::Failure> {
        let (handler, name, drop) = (self.handler, self.name, self.drop_handler);
        let mut data = core::ptr::null_mut();
        let mut answer = PACE_EFAILED;
        let reason = message::collect(|| {
            // SAFETY: as the caller of `new` promises.
            answer = unsafe { (self.make)(self.owner.data(), &mut data) };
        });
        if answer != PACE_OK {
            let reason = reason.map_or_else(|| format!("it answered {answer}"), String::from);
            let failed = format!("the factory of the handler has failed: {reason}");
            return Err(hub::Failure::crashed(failed));
        }
        let data = HandlerData { data, drop, _owner: Arc::clone(&self.owner) };
        Ok(move |message: &Message<'_>| message::handle(handler, data.get(), message, name))
    }
}

/// What a handler's restarts are told by, which does not keep user_data when the handler has been dropped.
///
/// # Safety
///
/// As the header demands of the function, which takes what the owner has.
pub(super) unsafe fn restart_notifier(
    on_restart: unsafe extern "C" fn(*mut c_void, pace_text_t, u64),
    owner: &Arc<Owner>,
) -> impl Fn(&Restart<'_>) + Send + Sync + 'static {
    let owner = Arc::downgrade(owner);
    move |restart| {
        if let Some(owner) = owner.upgrade() {
            let failure = restart.failure.map_or(NOTHING, lend);
            // SAFETY: as the caller promises.
            unsafe { on_restart(owner.data(), failure, restart.count) }
        }
    }
}
