//! The timeline of a pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Handle, call, call_void, consumed, nanos, out, usable};
use super::message::lend;
use super::pool::pace_pool_t;
use super::status::*;
use super::values::pace_text_t;
use crate::pool::KEPT_RECORDS;
use core::mem::MaybeUninit;

/// What the threads of a pool did for a while, as text.
pub struct pace_trace_t {
    json: String,
}

/// Records for time_ns, up to one hour, what each thread of the pool does: terms of leadership, waits, handlers and tasks by name with how
/// long they took, parking, and who woke, relieved or rescued whom. The calling thread sleeps meanwhile; on a thread of the
/// pool, another one leads. A thread keeps its last `records` records, 64 to 2^24, of 32 bytes each; 0: 65,536. Older ones
/// are counted. Free the trace with pace_trace_free().
///
/// PACE_EINVAL for other numbers and times, and if the pool is recorded already; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes; it blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_trace(
    pool: Option<&pace_pool_t>,
    time_ns: u64,
    records: u32,
    trace: Option<&mut MaybeUninit<*mut pace_trace_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = out(trace, "trace")?;
        let records = if records == 0 { KEPT_RECORDS } else { records as usize };
        let json = pool.pool.trace_up_to(nanos(time_ns), records)?.to_json();
        to.set(Box::into_raw(Box::new(pace_trace_t { json })));
        Ok(())
    })
}

/// The trace as JSON of the Trace Event format, which https://ui.perfetto.dev and chrome://tracing open. It is the trace's,
/// and lives as long.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_trace_json(
    trace: Option<&pace_trace_t>,
    json: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    call(|| {
        let trace = usable(trace)?;
        out(json, "json")?.set(lend(&trace.json));
        Ok(())
    })
}

/// Frees a trace. NULL is a no-op.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes.
#[unsafe(no_mangle)]
pub extern "C" fn pace_trace_free(trace: Option<Box<pace_trace_t>>) {
    call_void(|| drop(consumed(trace)));
}

impl Handle for pace_trace_t {
    const NAME: &'static str = "trace";

    /// It is text, which a child has, too.
    fn is_forked(&self) -> bool {
        false
    }
}
