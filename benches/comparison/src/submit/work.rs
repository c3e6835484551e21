//! The tasks that every pool is given, and how the harness counts them.
//!
//! The empty task increments a counter of the thread that executes it: an increment that all
//! workers shared would cost more than a good pool does. The C++ pools call the same functions
//! through the C names below.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_utils::CachePadded;

/// The most tasks that a run has posted and not executed; bounded pools get it as their capacity.
pub const IN_FLIGHT: usize = 8192;
/// Tasks posted between two looks at the clock.
pub const BURST: usize = 256;

const MAX_THREADS: usize = 64;
static EXECUTED: [CachePadded<AtomicU64>; MAX_THREADS] =
    [const { CachePadded::new(AtomicU64::new(0)) }; MAX_THREADS];
/// Counters in use in this run.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Tells a thread that outlives a run (oneTBB keeps its workers) to take a new counter.
static RUN: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(0));
static POSTED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
static ENOUGH: CachePadded<AtomicBool> = CachePadded::new(AtomicBool::new(false));
/// The task that posts from inside has seen `ENOUGH`: nothing of the run is left once all is executed.
static ENDED: CachePadded<AtomicBool> = CachePadded::new(AtomicBool::new(false));
/// When the last `started` task began, in nanoseconds since `origin`; 0 while it has not.
static STARTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static COUNTER: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
}

/// The empty task.
pub fn tick() {
    let (run, mut index) = COUNTER.get();
    if run != RUN.load(Ordering::Relaxed) {
        index = take_counter();
    }
    let counter = &EXECUTED[index];
    // Only this thread writes it. Release: pairs with the Acquire in `executed`.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

#[cold]
fn take_counter() -> usize {
    let index = THREADS.fetch_add(1, Ordering::Relaxed);
    COUNTER.set((RUN.load(Ordering::Relaxed), index));
    index
}

/// Begins a run. Only while no task is in flight.
pub fn begin() {
    for counter in &EXECUTED {
        counter.store(0, Ordering::Relaxed);
    }
    THREADS.store(0, Ordering::Relaxed);
    POSTED.store(0, Ordering::Relaxed);
    ENOUGH.store(false, Ordering::Relaxed);
    ENDED.store(false, Ordering::Relaxed);
    RUN.fetch_add(1, Ordering::Relaxed);
}

pub fn executed() -> u64 {
    let threads = THREADS.load(Ordering::Relaxed).min(MAX_THREADS);
    // Acquire: pairs with the Release in `tick`.
    EXECUTED[..threads].iter().map(|counter| counter.load(Ordering::Acquire)).sum()
}

pub fn posted() -> u64 {
    POSTED.load(Ordering::Relaxed)
}

pub fn in_flight() -> usize {
    posted().saturating_sub(executed()) as usize
}

/// Ends the run: `go_on` answers no from now on.
pub fn enough() {
    ENOUGH.store(true, Ordering::Relaxed);
}

pub fn ended() -> bool {
    ENDED.load(Ordering::Acquire)
}

/// Announces `count` tasks that the caller is about to post; false when it is enough.
pub fn go_on(count: usize) -> bool {
    if ENOUGH.load(Ordering::Relaxed) {
        // Release: pairs with the Acquire in `ended`, after which `POSTED` no longer changes.
        ENDED.store(true, Ordering::Release);
        return false;
    }
    POSTED.fetch_add(count as u64, Ordering::Relaxed);
    true
}

/// One turn of the task that posts from inside: posts a burst if there is room for it, and says
/// whether to come back. What is in flight, that task included, fits into `IN_FLIGHT`.
pub fn burst(mut post_tick: impl FnMut()) -> bool {
    if in_flight() + BURST < IN_FLIGHT {
        if !go_on(BURST) {
            return false;
        }
        for _ in 0..BURST {
            post_tick();
        }
    }
    true
}

/// Announces tasks whatever the time.
pub fn announce(count: usize) {
    POSTED.fetch_add(count as u64, Ordering::Relaxed);
}

/// The task of the wake-up measurement.
pub fn started() {
    STARTED.store(now(), Ordering::Release);
}

/// The time since the last `started` task was awaited; `None` while it has not begun.
pub fn take_start() -> Option<u64> {
    Some(STARTED.swap(0, Ordering::Acquire)).filter(|start| *start != 0)
}

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The same for the pools behind the C interface (cpp/shim.hpp).
mod exported {
    #[unsafe(no_mangle)]
    extern "C" fn comparison_tick() {
        super::tick();
    }

    #[unsafe(no_mangle)]
    extern "C" fn comparison_started() {
        super::started();
    }

    #[unsafe(no_mangle)]
    extern "C" fn comparison_go_on(count: usize) -> bool {
        super::go_on(count)
    }

    #[unsafe(no_mangle)]
    extern "C" fn comparison_in_flight() -> usize {
        super::in_flight()
    }
}
