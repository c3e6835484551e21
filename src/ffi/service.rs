//! The process as a service of systemd.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Handle, Result, Text, call, call_void, consumed, out, usable};
use super::callback::pace_drop_fn;
use super::pool::pace_pool_t;
use super::status::*;
use core::ffi::c_void;
use core::mem::MaybeUninit;
#[cfg(feature = "systemd")]
use {
    crate::sync::atomic::{AtomicBool, Ordering::Relaxed},
    std::sync::Arc,
};

/// This process as a service of systemd: ready from its beginning on, stopping when it is freed.
pub struct pace_service_t {
    #[cfg(feature = "systemd")]
    service: crate::admin::Service,
    #[cfg(feature = "systemd")]
    pool: crate::Pool,
}

/// Whether the process is well: 0 for no. Called on a thread of the pool, by one at a time.
pub type pace_well_fn = Option<unsafe extern "C" fn(user_data: *mut c_void) -> i32>;

/// Tells systemd that the process is ready (READY=1). If its unit has a watchdog (WatchdogSec=), a thread of the
/// pool asks `is_well` twice in its time from then on, or as soon as one is free. The watchdog is fed (WATCHDOG=1) while
/// the last answer was not 0 and the pool does not starve: while not something has waited, and nothing has begun or ended on
/// any thread, for 30 s, or for `dead_after_ns` of the pool's operations endpoint if it has one. A thread of the service's
/// own looks at that. NULL: nobody is asked. pace_workers_health() is a good answer. Where no systemd has started the process nothing is told, and nobody
/// is asked. The unit needs Type=notify; examples/systemd/paceline.service is one.
///
/// PACE_EUNSUPPORTED: the library was built without the feature `systemd`. PACE_EOS: systemd cannot be told.
/// or the thread cannot be created; PACE_EFULL when all max_handles of the pool are in use, PACE_ESHUTDOWN. Nobody is asked
/// then.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_service_start(
    pool: Option<&pace_pool_t>,
    is_well: pace_well_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    service: Option<&mut MaybeUninit<*mut pace_service_t>>,
) -> pace_status_t {
    call(|| {
        let pool = &usable(pool)?.pool;
        let to = out(service, "service")?;
        to.set(Box::into_raw(Box::new(start(pool, is_well, user_data, drop)?)));
        Ok(())
    })
}

#[cfg(feature = "systemd")]
fn start(
    pool: &crate::Pool,
    is_well: pace_well_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> Result<pace_service_t> {
    let (registration, owner) = super::owner::pair(user_data, drop);
    // The timer may come before it is known that this succeeds.
    let begun = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&begun);
    let ask = move || match is_well {
        // Relaxed: what the function needs was there before this call.
        Some(is_well) if asks.load(Relaxed) => {
            // SAFETY: as the header demands, it takes what came with it.
            unsafe { is_well(owner.data()) != 0 }
        }
        _ => true,
    };
    match crate::admin::Service::start(pool, ask) {
        Ok(service) => {
            registration.keep();
            begun.store(true, Relaxed);
            Ok(pace_service_t { service, pool: pool.clone() })
        }
        Err(error) => {
            registration.give_back();
            Err(error.into())
        }
    }
}

#[cfg(not(feature = "systemd"))]
fn start(
    _: &crate::Pool,
    _: pace_well_fn,
    _: *mut c_void,
    _: pace_drop_fn,
) -> Result<pace_service_t> {
    let text = "the library was built without the feature `systemd`";
    Err(super::boundary::Failure::told(PACE_EUNSUPPORTED, text.to_owned()))
}

/// What `systemctl status` shows (STATUS=): one line, UTF-8.
///
/// PACE_EINVAL for several lines; PACE_EOS: systemd cannot be told.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_service_status(
    service: Option<&pace_service_t>,
    text: Text,
) -> pace_status_t {
    call(|| {
        let service = usable(service)?;
        tell(service, text.get("text")?)
    })
}

#[cfg(feature = "systemd")]
fn tell(service: &pace_service_t, text: &str) -> Result {
    Ok(service.service.status(text)?)
}

#[cfg(not(feature = "systemd"))]
fn tell(_: &pace_service_t, _: &str) -> Result {
    unreachable!("there is none")
}

/// Tells systemd that the process stops (STOPPING=1), and frees it; nobody asks any more. It belongs before the
/// drain: a unit has TimeoutStopSec= for that. NULL is a no-op, and in a forked child nothing is told or freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes. It waits outside for an `is_well` that
/// runs.
#[unsafe(no_mangle)]
pub extern "C" fn pace_service_free(service: Option<Box<pace_service_t>>) {
    call_void(|| drop(consumed(service)));
}

impl Handle for pace_service_t {
    const NAME: &'static str = "service";

    fn is_forked(&self) -> bool {
        #[cfg(feature = "systemd")]
        if self.pool.shared().is_forked() {
            return true;
        }
        false
    }
}
