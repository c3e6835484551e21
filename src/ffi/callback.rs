//! Names of small objects, and what the library calls.
#![allow(non_camel_case_types, reason = "the names of the C interface")]

use core::ffi::c_void;

/// Call me when something happens. For an edge-triggered descriptor this promises that the last
/// operation saw EAGAIN: what is left unread now is not reported again.
pub const PACE_FLOW_WAIT: i32 = 0;
/// There is more to do: call me again, after others had their turn.
pub const PACE_FLOW_AGAIN: i32 = 1;
/// Do not call me before pace_handle_resume(), which counts from the start of the call that is answered
/// here. What arrives meanwhile is kept. See pace_handle_pause() for the one
/// exception.
pub const PACE_FLOW_PAUSE: i32 = 2;
/// I am through: deregister, and run `drop`.
pub const PACE_FLOW_DONE: i32 = 3;

/// Data, a connection to accept, an expiry or a count can be read.
pub const PACE_READY_READABLE: u32 = 1;
/// Out-of-band data of a TCP socket, or a change of a sysfs or cgroup file.
pub const PACE_READY_PRIORITY: u32 = 2;
/// There is room to write, or a connection attempt has ended.
pub const PACE_READY_WRITABLE: u32 = 4;
/// An error is pending (SO_ERROR), or nobody reads the other end of a pipe. Always reported.
pub const PACE_READY_ERROR: u32 = 8;
/// Both directions are closed, or nobody writes the other end of a pipe. Data may be left to read.
/// Always reported.
pub const PACE_READY_HANG_UP: u32 = 16;
/// The peer will send no more; writing to it may still work. Data may be left to read. Reported to
/// whoever is interested in reading.
pub const PACE_READY_READ_CLOSED: u32 = 32;

/// Names a task that was submitted, until it is waited for or detached. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_task_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Names a strand, until it is closed. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_strand_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Names a registered descriptor or periodic timer, until it is deregistered or its handler answers
/// PACE_FLOW_DONE. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_handle_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Names a one-shot timer, until it has run or was cancelled. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_timer_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Names a connection of a server, until it has ended. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_conn_id_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Gives user_data back. It runs exactly once, after the last call that gets that user_data has
/// returned, on whatever thread that is; and not at all if the registering call fails, for then
/// user_data is still the caller's. It must not block. NULL: nobody needs to know.
pub type pace_drop_fn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// A task, or what a one-shot timer runs. *outcome is PACE_EFAILED beforehand; set it to 0 for
/// success, or to a number of your own, which pace_task_wait() hands over. Whatever is not 0 counts
/// as failed in the counters.
pub type pace_task_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, outcome: *mut i32)>;

/// A task with its argument inline: `bytes` is its own copy of what was posted, aligned to 8, and
/// gone when it returns. *outcome is as for pace_task_fn.
pub type pace_bytes_fn =
    Option<unsafe extern "C" fn(bytes: *mut c_void, size: usize, outcome: *mut i32)>;

/// The handler of a descriptor. `ready` are PACE_READY_ bits that have come since the last call. It
/// answers with a PACE_FLOW_ number; any other counts as a panic and closes the handle. It runs on
/// one thread at a time.
pub type pace_ready_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, handle: pace_handle_t, fd: i32, ready: u32) -> i32,
>;

/// The handler of a periodic timer. It answers with a PACE_FLOW_ number; any other counts as a panic
/// and closes the handle. It runs on one thread at a time.
pub type pace_tick_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, handle: pace_handle_t) -> i32>;

/// The handler of a ring. Event i of `count` begins at (const char *)events + i * stride, aligned to
/// 8. They are gone when it returns.
pub type pace_events_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        events: *const c_void,
        stride: usize,
        count: usize,
    ),
>;

/// Called on a thread of the pool when it starts or stops, with its index.
pub type pace_thread_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, thread: u32)>;

/// Called for a handler or task that takes longer than the limit: once while it still runs, or when
/// it returns if that is earlier. It must be quick.
pub type pace_slow_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, thread: u32, elapsed_ns: u64, running: bool),
>;
