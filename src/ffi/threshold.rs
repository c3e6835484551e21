//! Thresholds: whether figures rise above limits or fall below them, and who is told.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, call, call_void, consumed, nanos, out, usable,
};
use super::callback::pace_drop_fn;
use super::hub::pace_hub_t;
use super::message::lend;
use super::metric::{labels_of, pace_label_t, text};
use super::notice::{PACE_SEVERITY_WARNING, number_of, severity_of};
use super::owner::pair;
use super::sized::{self, InOut};
use super::status::*;
use super::values::pace_text_t;
use super::workers::pace_workers_t;
use crate::hub::{Threshold, Watch};
use crate::pool::Shared;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::sync::Arc;

/// The number of a counter or gauge; of a distribution, how many values it has.
pub const PACE_THRESHOLD_NUMBER: u32 = 0;
/// How much that grows in a second, from one look to the next.
pub const PACE_THRESHOLD_RATE: u32 = 1;
/// A quantile of a distribution.
pub const PACE_THRESHOLD_QUANTILE: u32 = 2;

/// A limit for a figure. Call pace_threshold_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_threshold_t {
    /// The size of the struct in bytes, as pace_threshold_init() sets it.
    pub struct_size: u32,
    /// What of the figure: PACE_THRESHOLD_. Default: its number.
    pub part: u32,
    /// How bad it is: PACE_SEVERITY_. Default: a warning.
    pub severity: u32,
    /// Crossed when the figure is below the limit. Default: above it.
    pub below: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// The name of the figure, as pace_hub_metrics() with PACE_METRICS_JSON has it: "paceline_hub_waiting",
    /// say. It must be set.
    pub metric: *const c_char,
    /// Of the first that has all of these. Default: of the first.
    pub labels: *const pace_label_t,
    /// The number of elements of `labels`, up to 16.
    pub label_count: usize,
    /// The limit: a finite number, in the unit of the metric.
    pub limit: f64,
    /// Back when the figure is not beyond this, which lies before the limit. NaN (default): the limit itself.
    pub back_at: f64,
    /// Which quantile is compared, 0 to 1, if `part` is PACE_THRESHOLD_QUANTILE; otherwise not used.
    pub quantile: f64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_threshold_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_threshold_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("below", core::mem::offset_of!(pace_threshold_t, below))];
    const RESERVED: &'static [usize] = &[13, 14, 15];
}

const DEFAULTS: pace_threshold_t = pace_threshold_t {
    struct_size: size_of::<pace_threshold_t>() as u32,
    part: PACE_THRESHOLD_NUMBER,
    severity: PACE_SEVERITY_WARNING,
    below: false,
    reserved: [0; 3],
    metric: ptr::null(),
    labels: ptr::null(),
    label_count: 0,
    limit: 0.0,
    back_at: f64::NAN,
    quantile: 0.0,
};

/// A threshold was crossed, or the figure came back. The text is lent to the function that gets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_crossing_t {
    /// As people read it: "crossed at 1203: paceline_hub_waiting above 1000".
    pub message: pace_text_t,
    /// The value of the metric that was compared with the limit.
    pub figure: f64,
    /// Which of the thresholds: 0 for the first.
    pub threshold: usize,
    /// As bad as the threshold says; coming back is PACE_SEVERITY_INFO.
    pub severity: u32,
    /// True if the limit was crossed, false if the value has come back.
    pub crossed: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
}

/// Called when a threshold is crossed and when its figure is back, on a thread of the pool, by one at a time.
pub type pace_crossing_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, crossing: *const pace_crossing_t)>;

/// What a watch has done. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_watch_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// How many thresholds are crossed now.
    pub crossed: u32,
    /// How often it has looked.
    pub looks: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_watch_stats_t {
    const FIRST: usize = 16;
    const NAME: &'static str = "pace_watch_stats_t";
}

/// A thread that compares metrics with thresholds, from time to time.
pub struct pace_watch_t {
    watch: Watch,
    shared: Arc<Shared>,
}

/// Fills in the defaults; `size` is sizeof *threshold.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_threshold_init(
    threshold: InOut<pace_threshold_t>,
    size: usize,
) -> pace_status_t {
    call(|| threshold.init(size, DEFAULTS, "threshold"))
}

/// Watches figures from now on, until the watch is freed: looks at them each `every_ns` (1 ms to 1 day), and
/// tells of each of up to 1024 thresholds that is crossed, and when its figure is back: to subscriptions under
/// "$SYS.threshold.", and by `on_crossing`, which may be NULL. They are figures of the hub, or, if `workers` is
/// not NULL, what pace_workers_metrics() tells of that worker pool. A figure that is not there crosses nothing.
/// `drop` runs when the watch was freed, and no call runs any more.
///
/// PACE_EINVAL, also if the worker pool was made without `metrics`; PACE_EVERSION; PACE_EFULL when all
/// max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_watch(
    hub: Option<&pace_hub_t>,
    workers: Option<&pace_workers_t>,
    every_ns: u64,
    thresholds: *const pace_threshold_t,
    count: usize,
    on_crossing: pace_crossing_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    watch: Option<&mut MaybeUninit<*mut pace_watch_t>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let registry = match workers.is_none() {
            true => &hub.figures,
            false => {
                let none =
                    || Failure::invalid("metrics", "false", "true in the worker pool's settings");
                usable(workers)?.registry.as_ref().ok_or_else(none)?
            }
        };
        let to = out(watch, "watch")?;
        let mut builder = hub.hub.watch(registry, nanos(every_ns));
        // SAFETY: as the header demands.
        for threshold in unsafe { read_all(thresholds, count) }? {
            builder = builder.threshold(threshold);
        }
        let (registration, owner) = pair(user_data, drop);
        let builder = builder.on_crossing(move |crossing| {
            let Some(on_crossing) = on_crossing else { return };
            let Some(data) = owner.enter() else { return };
            let message = crossing.to_string();
            let shown = pace_crossing_t {
                message: lend(&message),
                figure: crossing.figure,
                threshold: crossing.place,
                severity: number_of(crossing.severity()),
                crossed: crossing.crossed,
                reserved: [0; 3],
            };
            // SAFETY: as the header demands; what is shown lives until it returns.
            unsafe { on_crossing(data, &shown) }
        });
        match builder.start() {
            Ok(watch) => {
                let shared = Arc::clone(hub.hub.pool().shared());
                to.set(Box::into_raw(Box::new(pace_watch_t { watch, shared })));
                registration.keep();
                Ok(())
            }
            Err(error) => {
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// What a watch has done.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_watch_stats(
    watch: Option<&pace_watch_t>,
    stats: InOut<pace_watch_stats_t>,
) -> pace_status_t {
    call(|| {
        let watch = &usable(watch)?.watch;
        stats.room("stats")?.fill(pace_watch_stats_t {
            struct_size: 0,
            crossed: watch.crossed().len() as u32,
            looks: watch.looks(),
        });
        Ok(())
    })
}

/// Ends a watch, and frees it: it waits until no call runs and `drop` has run. NULL is a no-op, and in a forked child
/// nothing is freed.
///
/// Threads: any, as long as no other uses the watch any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_watch_free(watch: Option<Box<pace_watch_t>>) {
    call_void(|| drop(consumed(watch)));
}

/// The most thresholds of a watch.
const MOST: usize = 1024;

/// The thresholds, each as large as the first says.
///
/// # Safety
///
/// As the header demands of them.
unsafe fn read_all(first: *const pace_threshold_t, count: usize) -> Result<Vec<Threshold>> {
    if !(1..=MOST).contains(&count) {
        return Err(Failure::invalid("count", count, "1 to 1024"));
    }
    boundary::check(first, "thresholds")?;
    // SAFETY: not NULL, and as the caller promises.
    let size = unsafe { first.cast::<u32>().read() } as usize;
    // SAFETY: as the caller promises: an array of structs of this size.
    (0..count).map(|place| unsafe { threshold_of(first.byte_add(place * size)) }).collect()
}

/// # Safety
///
/// As the header demands of a threshold.
unsafe fn threshold_of(threshold: *const pace_threshold_t) -> Result<Threshold> {
    // SAFETY: as the caller promises.
    let raw = unsafe { sized::read(threshold, "thresholds") }?;
    // SAFETY: as the caller promises.
    let metric = unsafe { text(raw.metric, "metric") }?;
    // SAFETY: as the caller promises.
    let labels = unsafe { labels_of(raw.labels, raw.label_count) }?;
    let made = match raw.below {
        true => Threshold::below(metric, raw.limit),
        false => Threshold::above(metric, raw.limit),
    };
    let made = made.labels(&labels).severity(severity_of(raw.severity)?);
    let made = if raw.back_at.is_nan() { made } else { made.back_at(raw.back_at) };
    Ok(match raw.part {
        PACE_THRESHOLD_NUMBER => made,
        PACE_THRESHOLD_RATE => made.rate(),
        PACE_THRESHOLD_QUANTILE => made.quantile(raw.quantile),
        other => return Err(Failure::invalid("part", other, "0 to 2 (PACE_THRESHOLD_)")),
    })
}

impl Handle for pace_watch_t {
    const NAME: &'static str = "watch";

    fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }
}
