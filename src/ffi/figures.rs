//! The figures of a hub: as a struct, as text, and in the registry of a worker pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, call, out, usable};
use super::hub::pace_hub_t;
use super::sized::{self, InOut};
use super::status::*;
use super::work_stats::{give, text_in};
use super::workers::pace_workers_t;
use core::ffi::c_char;
use core::mem::MaybeUninit;

/// Of a hub: an object of JSON with its counters, each subscription, each publisher, the keys that are counted,
/// dead letters, notices and histories. Times are in seconds.
pub const PACE_METRICS_HUB: u32 = 2;

/// What a hub has and has told, beside its counters. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_hub_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The number of keys that the hub knows now.
    pub keys: u64,
    /// Subscriptions that have not ended.
    pub subscriptions: u64,
    /// Of these, those that are suspended.
    pub suspended: u64,
    /// The number of publishers that were made and not freed.
    pub publishers: u64,
    /// The number of dead letters that the hub keeps now.
    pub dead_letters: u64,
    /// Notices that were published under $SYS.
    pub told: u64,
    /// Notices that were not, because too many waited.
    pub lost: u64,
    /// Warnings and errors that were recorded.
    pub errors: u64,
    /// Of these, those that were forgotten for newer ones.
    pub forgotten: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_hub_stats_t {
    const FIRST: usize = 80;
    const NAME: &'static str = "pace_hub_stats_t";
}

/// What a hub has and has told; its counters are pace_hub_audit()'s. It takes time with the number of keys and
/// subscriptions.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_stats(
    hub: Option<&pace_hub_t>,
    stats: InOut<pace_hub_stats_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let room = stats.room("stats")?;
        let stats = hub.hub.stats();
        room.fill(pace_hub_stats_t {
            struct_size: 0,
            reserved: 0,
            keys: stats.keys,
            subscriptions: stats.subscriptions.len() as u64,
            suspended: stats.subscriptions.iter().filter(|one| one.suspended).count() as u64,
            publishers: stats.publishers.len() as u64,
            dead_letters: stats.dead_letters.held,
            told: stats.notices.told,
            lost: stats.notices.lost,
            errors: stats.notices.errors,
            forgotten: stats.notices.forgotten,
        });
        Ok(())
    })
}

/// The figures of a hub as text that ends with NUL: PACE_METRICS_HUB, or its metrics with the label `hub`, as
/// PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS (pace_metrics_format()). *needed says how many bytes it takes, with the NUL, also for
/// PACE_EFULL: `size` is less. `text` may be NULL if `size` is 0. They change from call to call, so ask for
/// some more. It takes time with the number of keys and subscriptions.
///
/// PACE_EFULL; PACE_EINVAL if `format` is none of PACE_METRICS_.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_metrics(
    hub: Option<&pace_hub_t>,
    format: u32,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let needed = out(needed, "needed")?;
        let made = match format {
            PACE_METRICS_HUB => hub.hub.stats().to_json(),
            0..=3 => text_in(format, &hub.figures)?,
            other => return Err(Failure::invalid("format", other, "0 to 3 (PACE_METRICS_)")),
        };
        // SAFETY: as the header demands.
        unsafe { give(&made, text, size, needed) }
    })
}

/// Tells the figures of a hub with those of a worker pool that was made with `metrics`: pace_workers_metrics()
/// has them from then on, for as long as the hub lives.
///
/// PACE_EINVAL if it was made without.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_share_metrics(
    hub: Option<&pace_hub_t>,
    workers: Option<&pace_workers_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let workers = usable(workers)?;
        let none = || Failure::invalid("metrics", "false", "true in the worker pool's settings");
        hub.hub.metrics(workers.registry.as_ref().ok_or_else(none)?, &hub.name);
        Ok(())
    })
}
