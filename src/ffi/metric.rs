//! A program's own figures, in the registry of a worker pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, array, call, call_void, consumed, out, usable,
};
use super::status::*;
use super::workers::pace_workers_t;
use crate::Pool;
use crate::metrics::{Counter, Gauge, Histogram, Unit};
use core::ffi::c_char;
use core::mem::MaybeUninit;

/// A number that only grows.
pub const PACE_METRIC_COUNTER: u32 = 0;
/// A number that goes up and down.
pub const PACE_METRIC_GAUGE: u32 = 1;
/// A distribution of times, which are recorded in nanoseconds and read in seconds.
pub const PACE_METRIC_TIMES: u32 = 2;
/// A distribution of amounts of memory or data, in bytes.
pub const PACE_METRIC_BYTES: u32 = 3;
/// A distribution of other whole numbers.
pub const PACE_METRIC_NUMBERS: u32 = 4;

/// A label of a figure: UTF-8, both.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_label_t {
    /// The label's name: letters, digits and underscores.
    pub name: *const c_char,
    /// The label's value: any text in UTF-8.
    pub value: *const c_char,
}

/// A figure of a program's own.
pub struct pace_metric_t {
    instrument: Instrument,
    pool: Pool,
}

enum Instrument {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

/// A figure in the registry of a worker pool that was made with `metrics`: pace_workers_metrics() tells it
/// from then on. `kind` is PACE_METRIC_. A name has letters, digits and underscores, and does not end as
/// text formats end theirs (_total, _sum, ...): the counter "hits" is hits_total there. With the same name and labels it is the same figure. Names,
/// help and labels are UTF-8, and are copied; `labels` are up to 16.
///
/// PACE_EINVAL if it was made without, a name is not one, or belongs to figures of another kind; PACE_EFULL
/// for more than 16384 figures.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_metric(
    workers: Option<&pace_workers_t>,
    kind: u32,
    name: *const c_char,
    help: *const c_char,
    labels: *const pace_label_t,
    label_count: usize,
    metric: Option<&mut MaybeUninit<*mut pace_metric_t>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        // SAFETY: as the header demands.
        let (name, help) = unsafe { (text(name, "name")?, text(help, "help")?) };
        // SAFETY: as the header demands.
        let labels = unsafe { labels_of(labels, label_count) }?;
        let to = out(metric, "metric")?;
        let none = || Failure::invalid("metrics", "false", "true in the worker pool's settings");
        let registry = workers.registry.as_ref().ok_or_else(none)?;
        let histogram = |unit| registry.histogram(name, help, &labels, unit);
        let instrument = match kind {
            PACE_METRIC_COUNTER => Instrument::Counter(registry.counter(name, help, &labels)?),
            PACE_METRIC_GAUGE => Instrument::Gauge(registry.gauge(name, help, &labels)?),
            PACE_METRIC_TIMES => Instrument::Histogram(histogram(Unit::Time)?),
            PACE_METRIC_BYTES => Instrument::Histogram(histogram(Unit::Bytes)?),
            PACE_METRIC_NUMBERS => Instrument::Histogram(histogram(Unit::Count)?),
            other => return Err(Failure::invalid("kind", other, "0 to 4 (PACE_METRIC_)")),
        };
        let pool = workers.workers.pool().clone();
        to.set(Box::into_raw(Box::new(pace_metric_t { instrument, pool })));
        Ok(())
    })
}

/// Counts so many more.
///
/// PACE_EINVAL if it is no counter.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_metric_count(metric: Option<&pace_metric_t>, count: u64) -> pace_status_t {
    call(|| {
        match &usable(metric)?.instrument {
            Instrument::Counter(counter) => counter.add(count),
            _ => return Err(wrong("a counter")),
        }
        Ok(())
    })
}

/// Says what it is now.
///
/// PACE_EINVAL if it is no gauge.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_metric_set(metric: Option<&pace_metric_t>, value: f64) -> pace_status_t {
    call(|| {
        match &usable(metric)?.instrument {
            Instrument::Gauge(gauge) => gauge.set(value),
            _ => return Err(wrong("a gauge")),
        }
        Ok(())
    })
}

/// Says that it is so much more; less, if that is negative.
///
/// PACE_EINVAL if it is no gauge.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_metric_change(
    metric: Option<&pace_metric_t>,
    difference: f64,
) -> pace_status_t {
    call(|| {
        match &usable(metric)?.instrument {
            Instrument::Gauge(gauge) => gauge.add(difference),
            _ => return Err(wrong("a gauge")),
        }
        Ok(())
    })
}

/// Records one value of a distribution.
///
/// PACE_EINVAL if it is none.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_metric_record(metric: Option<&pace_metric_t>, value: u64) -> pace_status_t {
    call(|| {
        match &usable(metric)?.instrument {
            Instrument::Histogram(histogram) => histogram.record(value),
            _ => return Err(wrong("a distribution")),
        }
        Ok(())
    })
}

/// Frees what names a figure, which stays in the registry. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_metric_free(metric: Option<Box<pace_metric_t>>) {
    call_void(|| drop(consumed(metric)));
}

/// More is a number that nobody has meant.
const MOST_LABELS: usize = 16;

#[cold]
fn wrong(allowed: &str) -> Failure {
    Failure::invalid("metric", "of another kind", allowed)
}

/// The names and values of labels.
///
/// # Safety
///
/// As the header demands of labels, which live for `'a`.
pub(super) unsafe fn labels_of<'a>(
    labels: *const pace_label_t,
    count: usize,
) -> Result<Vec<(&'a str, &'a str)>> {
    if count > MOST_LABELS {
        return Err(Failure::invalid("label_count", count, "at most 16"));
    }
    // SAFETY: as the caller promises.
    let labels: &'a [pace_label_t] = unsafe { array(labels, count, "labels") }?;
    let read = |label: &pace_label_t| {
        // SAFETY: as the caller promises.
        unsafe { Ok((text(label.name, "labels.name")?, text(label.value, "labels.value")?)) }
    };
    labels.iter().map(read).collect()
}

/// # Safety
///
/// It is NULL, or ends with NUL.
pub(super) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    unsafe { boundary::text(pointer, name) }
}

impl Handle for pace_metric_t {
    const NAME: &'static str = "metric";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}
