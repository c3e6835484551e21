//! Statistics, and the counters that must balance.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, call, usable};
use super::pool::pace_pool_t;
use super::sized::{InOut, Sized};
use super::status::*;
use super::values::PACE_NONE;
use crate::{SetStats, ThreadRole, ThreadStats};

/// A place that no host thread has taken, or a thread that has ended.
pub const PACE_ROLE_AWAY: u32 = 0;
/// Parked until another thread wakes it.
pub const PACE_ROLE_FOLLOWER: u32 = 1;
/// Parked with a timer, to look for stuck work.
pub const PACE_ROLE_WATCH: u32 = 2;
/// Leads a handle set, or looks for work.
pub const PACE_ROLE_LEADER: u32 = 3;
/// The thread runs a handler.
pub const PACE_ROLE_PROCESSING: u32 = 4;
/// The thread runs a task.
pub const PACE_ROLE_TASK: u32 = 5;
/// Set aside by pace_pool_set_active(), or by a worker pool's scaling: it costs nothing.
pub const PACE_ROLE_PARKED: u32 = 6;

/// A snapshot of a pool. Counts are since the start and never fall. Set struct_size to sizeof the
/// struct before the call, here and below.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_pool_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Rows for pace_pool_thread_stats(): pool threads, then places for host threads.
    pub threads: u32,
    /// The number of handle sets: rows for pace_pool_set_stats().
    pub sets: u32,
    /// Threads that are parked now.
    pub parked: u32,
    /// Which thread is the watch now, or PACE_NONE.
    pub watch: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Handles, strands, timers and rings that exist now.
    pub handles: u64,
    /// System calls made to wake threads.
    pub wakes: u64,
    /// Tasks that wait in each lane.
    pub queued: [u64; 4],
}

/// What one thread has done.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_thread_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// What it is doing now: PACE_ROLE_.
    pub role: u32,
    /// The CPU it is pinned to, or PACE_NONE.
    pub cpu: u32,
    /// Pinning was asked for and failed.
    pub pin_failed: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// How often the thread has become the leader.
    pub terms: u64,
    /// How often the thread has taken leadership over from another thread.
    pub handovers: u64,
    /// Times that it stepped in as the watch because something was stuck.
    pub rescues: u64,
    /// Events that it harvested as leader.
    pub events: u64,
    /// The number of handlers that the thread has run.
    pub handled: u64,
    /// Tasks that it ran or found cancelled.
    pub tasks: u64,
    /// Tasks that did not report success, and handlers whose answer was none.
    pub panics: u64,
    /// Times that it took over work that another thread had claimed.
    pub stolen: u64,
    /// How often the thread has parked.
    pub parked: u64,
    /// How often the thread, as the watch, has looked for stuck work.
    pub ticks: u64,
    /// The kernel's number of the thread, as top -H has it. Of a host thread's place: of the thread that has it, or had it
    /// last. 0: no thread has run there, or the pool's own has ended.
    pub native_id: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
}

/// What one handle set is doing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_set_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// The thread that leads it now, or PACE_NONE.
    pub leader: u32,
    /// Terms that were led so far.
    pub harvests: u64,
    /// Activations that wait in its surplus ring.
    pub surplus: u64,
}

/// The counters. At rest they balance exactly: submitted = accepted + rejected, and accepted = completed +
/// failed + cancelled + in_flight. While the pool works they may be apart by what happens meanwhile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_audit_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether the counters balance: no task is lost.
    pub balances: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Tasks and one-shot timers that were handed in.
    pub submitted: u64,
    /// Of `submitted`: those that the pool has taken.
    pub accepted: u64,
    /// Of `submitted`: those that were given back.
    pub rejected: u64,
    /// Of `accepted`: tasks that have run and reported success.
    pub completed: u64,
    /// Of `accepted`: tasks that have run and reported a failure, or nothing.
    pub failed: u64,
    /// Of `accepted`: those that will never run.
    pub cancelled: u64,
    /// Of `accepted`: those that wait or run now; counted, not derived.
    pub in_flight: u64,
}

/// A snapshot of a pool.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_stats(
    pool: Option<&pace_pool_t>,
    stats: InOut<pace_pool_stats_t>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let room = stats.room("stats")?;
        let stats = pool.pool.stats();
        room.fill(pace_pool_stats_t {
            struct_size: 0,
            threads: stats.threads.len() as u32,
            sets: stats.sets.len() as u32,
            parked: stats.parked,
            watch: or_none(stats.watch),
            reserved: 0,
            handles: stats.handles,
            wakes: stats.wakes,
            queued: stats.queued.map(|queued| queued as u64),
        });
        Ok(())
    })
}

/// What one thread has done: `thread` is 0 to pace_pool_stats_t.threads - 1.
///
/// PACE_EINVAL for another `thread`; PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_thread_stats(
    pool: Option<&pace_pool_t>,
    thread: u32,
    stats: InOut<pace_thread_stats_t>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let room = stats.room("stats")?;
        let threads = pool.pool.stats().threads;
        let row = threads.get(thread as usize);
        room.fill(thread_row(row.ok_or_else(|| no_row("thread", thread, threads.len()))?));
        Ok(())
    })
}

/// What one handle set is doing: `set` is 0 to pace_pool_stats_t.sets - 1.
///
/// PACE_EINVAL for another `set`; PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_set_stats(
    pool: Option<&pace_pool_t>,
    set: u32,
    stats: InOut<pace_set_stats_t>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let room = stats.room("stats")?;
        let sets = pool.pool.stats().sets;
        let row = sets.get(set as usize);
        room.fill(set_row(row.ok_or_else(|| no_row("set", set, sets.len()))?));
        Ok(())
    })
}

/// What it has counted; the counters add up at rest.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_audit(
    pool: Option<&pace_pool_t>,
    audit: InOut<pace_audit_t>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let room = audit.room("audit")?;
        let audit = pool.pool.audit();
        room.fill(pace_audit_t {
            struct_size: 0,
            balances: audit.balances(),
            reserved: [0; 3],
            submitted: audit.submitted,
            accepted: audit.accepted,
            rejected: audit.rejected,
            completed: audit.completed,
            failed: audit.failed,
            cancelled: audit.cancelled,
            in_flight: audit.in_flight,
        });
        Ok(())
    })
}

#[cold]
pub(super) fn no_row(name: &str, index: u32, rows: usize) -> Failure {
    Failure::invalid(name, index, &format!("less than {rows}"))
}

fn or_none(index: Option<usize>) -> u32 {
    index.and_then(|index| u32::try_from(index).ok()).unwrap_or(PACE_NONE)
}

pub(super) fn number_of(role: ThreadRole) -> u32 {
    match role {
        ThreadRole::Away => PACE_ROLE_AWAY,
        ThreadRole::Follower => PACE_ROLE_FOLLOWER,
        ThreadRole::Parked => PACE_ROLE_PARKED,
        ThreadRole::Watch => PACE_ROLE_WATCH,
        ThreadRole::Leader => PACE_ROLE_LEADER,
        ThreadRole::Processing => PACE_ROLE_PROCESSING,
        ThreadRole::Task => PACE_ROLE_TASK,
    }
}

fn thread_row(row: &ThreadStats) -> pace_thread_stats_t {
    pace_thread_stats_t {
        struct_size: 0,
        role: number_of(row.role),
        cpu: or_none(row.cpu),
        pin_failed: row.pin_failed,
        reserved: [0; 3],
        terms: row.terms,
        handovers: row.handovers,
        rescues: row.rescues,
        events: row.events,
        handled: row.handled,
        tasks: row.tasks,
        panics: row.panics,
        stolen: row.stolen,
        parked: row.parked,
        ticks: row.ticks,
        native_id: row.native_id.unwrap_or(0),
        reserved2: 0,
    }
}

fn set_row(row: &SetStats) -> pace_set_stats_t {
    pace_set_stats_t {
        struct_size: 0,
        leader: or_none(row.leader),
        harvests: row.harvests,
        surplus: row.surplus as u64,
    }
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl Sized for pace_pool_stats_t {
    const FIRST: usize = 72;
    const NAME: &'static str = "pace_pool_stats_t";
}

// SAFETY: as above.
unsafe impl Sized for pace_thread_stats_t {
    const FIRST: usize = 96;
    const NAME: &'static str = "pace_thread_stats_t";
}

// SAFETY: as above.
unsafe impl Sized for pace_set_stats_t {
    const FIRST: usize = 24;
    const NAME: &'static str = "pace_set_stats_t";
}

// SAFETY: as above.
unsafe impl Sized for pace_audit_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_audit_t";
}
