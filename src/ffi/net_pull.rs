//! Servers whose events are pulled: data for hosts that cannot be called back.
//!
//! The core's events are values that complete themselves when they are dropped. C names them by
//! numbers, so they lie in a table, and each thread has a list of what it has pulled.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Failure, Out, Result, TIMED_OUT, call, call_void, nanos};
use super::callback::pace_conn_id_t;
use super::conn::{BUSY, name, number_of, number_of_reason, number_of_timeout, pace_admission_t};
use super::pool::{open as open_pool, pace_pool_t};
use super::server::{builder, pace_server_options_t, pace_server_t};
use super::status::*;
use crate::net::{ConnEvent, ConnEventKind, ConnHandler, PulledServer, Wanted};
use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};
use core::ptr;
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The connection is there. It may be refused.
pub const PACE_CONN_EVENT_OPENED: u32 = 0;
/// Bytes have arrived.
pub const PACE_CONN_EVENT_DATA: u32 = 1;
/// The peer sends no more. Afterwards the connection is closed by itself, when its admitted requests have ended and
/// everything is sent, unless allow_half_open of its pace_listener_options_t is set.
pub const PACE_CONN_EVENT_FINISHED: u32 = 2;
/// The output pressed, and has fallen to the low mark.
pub const PACE_CONN_EVENT_WRITABLE: u32 = 3;
/// All bytes up to and including a tracked write with this token have been given to the kernel.
pub const PACE_CONN_EVENT_WRITTEN: u32 = 4;
/// A time is over. Unwanted, or if it is not kept, the connection is closed at once.
pub const PACE_CONN_EVENT_TIMED_OUT: u32 = 5;
/// The server drains.
pub const PACE_CONN_EVENT_DRAINING: u32 = 6;
/// The end, and the connection's last event.
pub const PACE_CONN_EVENT_CLOSED: u32 = 7;

/// PACE_CONN_EVENT_OPENED is wanted.
pub const PACE_WANTED_OPENED: u32 = 1;
/// PACE_CONN_EVENT_FINISHED is.
pub const PACE_WANTED_FINISHED: u32 = 2;
/// PACE_CONN_EVENT_WRITABLE is.
pub const PACE_WANTED_WRITABLE: u32 = 4;
/// PACE_CONN_EVENT_WRITTEN is.
pub const PACE_WANTED_WRITTEN: u32 = 8;
/// PACE_CONN_EVENT_TIMED_OUT is.
pub const PACE_WANTED_TIMED_OUT: u32 = 16;
/// PACE_CONN_EVENT_DRAINING is.
pub const PACE_WANTED_DRAINING: u32 = 32;
/// PACE_CONN_EVENT_CLOSED is.
pub const PACE_WANTED_CLOSED: u32 = 64;
/// All of them.
pub const PACE_WANTED_ALL: u32 = 127;

/// PACE_CONN_EVENT_TIMED_OUT: the connection goes on; the time begins anew.
pub const PACE_COMPLETE_KEEP: u32 = 1;
/// PACE_CONN_EVENT_OPENED: it is not wanted: it is sent the completion's bytes, and closed.
pub const PACE_COMPLETE_REFUSE: u32 = 2;
/// After what is queued, tell the peer that no more is sent.
pub const PACE_COMPLETE_FINISH: u32 = 4;
/// Close after what is queued.
pub const PACE_COMPLETE_CLOSE: u32 = 8;
/// Close at once.
pub const PACE_COMPLETE_ABORT: u32 = 16;
/// Only write and close: the event stays out, also after the next pull of the thread that has it, and
/// is completed by another completion.
pub const PACE_COMPLETE_HOLD: u32 = 32;

/// What handles the event has failed: close at once, with PACE_REASON_PANICKED. With
/// PACE_CONN_EVENT_CLOSED that is counted in pace_server_stats_t.panics_in_close.
pub const PACE_COMPLETE_FAIL: u32 = 64;

/// All bytes of an event.
pub const PACE_CONSUMED_ALL: u64 = u64::MAX;

/// A server whose connections have no hooks: what happens to them is pulled.
pub struct pace_pulled_t {
    server: pace_server_t,
    shared: Arc<Shared>,
}

/// One event of a server. Its bytes stay where they are until it is completed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_conn_event_t {
    /// Names the event until it is completed. Not 0.
    pub event: u64,
    /// The connection.
    pub conn: pace_conn_id_t,
    /// PACE_CONN_EVENT_.
    pub kind: u32,
    /// CLOSED: PACE_REASON_. TIMED_OUT: PACE_TIMEOUT_.
    pub detail: u32,
    /// WRITTEN: the token. CLOSED: a PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for
    /// PACE_REASON_FAILED.
    pub token: u64,
    /// DATA: what has arrived.
    pub bytes: *const c_void,
    /// How many.
    pub size: usize,
}

/// How an event is completed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_completion_t {
    /// Which.
    pub event: u64,
    /// How many of its bytes are consumed, from the front, or PACE_CONSUMED_ALL. The rest comes again,
    /// followed by more.
    pub consumed: u64,
    /// What is written to the connection before. May be NULL if `size` is 0.
    pub bytes: *const c_void,
    /// How many.
    pub size: usize,
    /// PACE_COMPLETE_ bits.
    pub flags: u32,
    /// Out: a PACE_WRITE_STATUS_ number, if something was written.
    pub wrote: u32,
    /// Out: what has become of it. PACE_ESTALE: no such event is out, or, of bytes, the connection has
    /// ended. PACE_EFULL: there was no room for the bytes, none of which was taken. PACE_EINVAL: more
    /// bytes are consumed than there are, or there are flags that stand for nothing. With these two the
    /// event is still out; otherwise it is completed.
    pub outcome: i32,
    /// Zero.
    pub reserved: u32,
}

/// Starts a server, as pace_server_new() does, for a host that pulls what happens. `wanted` says with
/// PACE_WANTED_ bits what of it besides data; for the rest the connection does what it does without
/// hooks. `on_exhausted` must be NULL.
///
/// One event of a connection is out at a time: what happens meanwhile comes after it was completed. So
/// a connection's events come in order, and go to one thread at a time. While an event is out no more
/// than one read is taken in from the connection, it is not idle, and a drain waits for it.
///
/// The pool needs threads of its own, or others that join or pull from it.
///
/// As pace_server_new(); PACE_EINVAL for `wanted`.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_new(
    pool: *mut pace_pool_t,
    options: *const pace_server_options_t,
    wanted: u32,
    pulled: *mut *mut pace_pulled_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open_pool(pool) }?.pool.clone();
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(pulled, "pulled") }?;
        let kinds = kinds(wanted)?;
        // SAFETY: as the header demands.
        let (builder, filters) = unsafe { builder(&pool, options, None) }?;
        let source = builder.serve_pulled(kinds)?;
        let server =
            pace_server_t { server: source.server().clone(), pool, _hooks: None, host: None };
        let shared = Arc::new(Shared { source, table: Mutex::default() });
        to.set(Box::into_raw(Box::new(pace_pulled_t { server, shared })));
        filters.keep();
        Ok(())
    })
}

/// *server is the server itself, for all that takes one but pace_server_free(): its addresses,
/// connections, drain and statistics. It lives as long as `pulled`.
///
/// pace_server_drain() waits for events that are out: a thread that has some completes them before.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_server(
    pulled: *mut pace_pulled_t,
    server: *mut *mut pace_server_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { open(pulled) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(server, "server") }?;
        // SAFETY: it is not NULL; only the place is computed.
        to.set(unsafe { &raw mut (*pulled).server });
        Ok(())
    })
}

/// As pace_server_connect(); what happens to the connection is pulled like that of others, with `wanted`
/// of its own. `conn` may be NULL.
///
/// As there; PACE_EINVAL for `wanted`.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_connect(
    pulled: *mut pace_pulled_t,
    address: *const c_char,
    wanted: u32,
    conn: *mut pace_conn_id_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        boundary::check(address, "address")?;
        // SAFETY: as the header demands, and not NULL.
        let address = unsafe { boundary::text(address, "address") }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(conn, "conn") }?;
        to.set(name(pulled.shared.source.connect(address, kinds(wanted)?)?.id()));
        Ok(())
    })
}

/// Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
/// more. What this thread pulled before, and has not completed or held, is completed first, with all
/// bytes consumed; so is what it has when it ends.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the server has ended, and so have all its events;
/// PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_pull(
    pulled: *mut pace_pulled_t,
    events: *mut pace_conn_event_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        boundary::check(events, "events")?;
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        let mut list = Pulled::take(&pulled.shared);
        pulled.shared.complete_all(&mut list.events);
        let mut got = PULLED.try_with(Cell::take).unwrap_or_default();
        let result = pulled.shared.source.pull(&mut got, capacity, nanos(timeout_ns));
        pulled.shared.enter(&mut got, &mut list.events, |index, event| {
            // SAFETY: no more than `capacity` were pulled, and there is room for as many.
            unsafe { events.add(index).write(event) };
        });
        let _ = PULLED.try_with(|place| place.set(got));
        list.put();
        match result? {
            0 => Err(TIMED_OUT),
            some => {
                count.set(some);
                Ok(())
            }
        }
    })
}

/// Completes `count` events, in order. Each completion says in `outcome` what has become of it; the
/// status is the first of them that is not PACE_OK.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_complete(
    pulled: *mut pace_pulled_t,
    completions: *mut pace_completion_t,
    count: usize,
) -> pace_status_t {
    let mut first = PACE_OK;
    let status = call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        if count == 0 {
            return Ok(());
        }
        boundary::check(completions, "completions")?;
        // SAFETY: as the header demands, there are `count` of them.
        let completions = unsafe { core::slice::from_raw_parts_mut(completions, count) };
        let mut held = pulled.shared.take(completions.iter().map(|each| each.event));
        for (completion, event) in completions.iter_mut().zip(held.drain(..)) {
            // An earlier one of this batch may have put it back: it is held.
            let event = event.or_else(|| pulled.shared.lock().out.remove(&completion.event));
            let outcome = call(|| {
                let event = event.ok_or(NO_SUCH_EVENT)?;
                // SAFETY: as the header demands of its bytes.
                unsafe { complete(&pulled.shared, event, completion) }
            });
            completion.outcome = outcome;
            if first == PACE_OK {
                first = outcome;
            }
        }
        Ok(())
    });
    if status == PACE_OK { first } else { status }
}

/// As pace_conn_admit(), while an event is out: begins a request of its connection, which counts as in work
/// until it was answered or freed, be it after the event was completed.
///
/// PACE_ESTALE: no such event is out. PACE_EFULL: as many are in work as max_requests allows; the
/// server's busy message has been written instead.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_admit(
    pulled: *mut pace_pulled_t,
    event: u64,
    admission: *mut *mut pace_admission_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(admission, "admission") }?;
        // Not under the lock: the busy message may go through a filter.
        let conn = pulled.shared.lock().out.get(&event).map(|held| held.event.conn().clone());
        let admitted = conn.ok_or(NO_SUCH_EVENT)?.admit();
        let shared = Arc::clone(pulled.server.pool.shared());
        to.set(pace_admission_t::give(admitted.ok_or(BUSY)?, shared));
        Ok(())
    })
}

/// Completes what this thread has pulled, as its next pace_pulled_pull() would.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_done(pulled: *mut pace_pulled_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        let mut list = Pulled::take(&pulled.shared);
        pulled.shared.complete_all(&mut list.events);
        list.put();
        Ok(())
    })
}

/// *fd is readable while a pull would not wait. It belongs to the server: never read or close it.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_pollable(
    pulled: *mut pace_pulled_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pulled = unsafe { open(pulled) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(pulled.shared.source.pollable()?.as_raw_fd());
        Ok(())
    })
}

/// Stops at once: listeners end, connections are cut off, what is out is of no use any more, and pulls
/// say PACE_ESHUTDOWN. It waits for nothing. pace_server_drain() first for an orderly end.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_close(pulled: *mut pace_pulled_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { open(pulled) }?.shared.source.close();
        Ok(())
    })
}

/// Frees it; the server stops, as by pace_server_free(). Events that are out are completed. No thread
/// may be in a call that uses it: pace_server_drain() first makes pulls end. NULL: nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pulled_free(pulled: *mut pace_pulled_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_pulled_new` and is used by nobody else.
        if unsafe { open(pulled) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(pulled) });
        }
    });
}

const _: () = assert!(
    PACE_WANTED_OPENED == Wanted::OPENED.bits()
        && PACE_WANTED_FINISHED == Wanted::FINISHED.bits()
        && PACE_WANTED_WRITABLE == Wanted::WRITABLE.bits()
        && PACE_WANTED_WRITTEN == Wanted::WRITTEN.bits()
        && PACE_WANTED_TIMED_OUT == Wanted::TIMED_OUT.bits()
        && PACE_WANTED_DRAINING == Wanted::DRAINING.bits()
        && PACE_WANTED_CLOSED == Wanted::CLOSED.bits()
        && PACE_WANTED_ALL == Wanted::ALL.bits()
);

pub(super) fn kinds(wanted: u32) -> Result<Wanted> {
    let wrong = || Failure::invalid("wanted", wanted, "0 to 127 (PACE_WANTED_)");
    Wanted::from_bits(wanted).ok_or_else(wrong)
}

/// A handler for a connection of another server: what happens to it is pulled here.
///
/// # Safety
///
/// As [`open`].
pub(super) unsafe fn handler_of(
    pulled: *const pace_pulled_t,
    wanted: u32,
) -> Result<impl ConnHandler + use<>> {
    // SAFETY: as the caller promises.
    let pulled = unsafe { open(pulled) }?;
    Ok(pulled.shared.source.handler(kinds(wanted)?))
}

const NO_SUCH_EVENT: Failure = Failure::plain(PACE_ESTALE, c"no such event is out");

/// In the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_pulled_new` and has not been freed.
unsafe fn open<'a>(pulled: *const pace_pulled_t) -> Result<&'a pace_pulled_t> {
    // SAFETY: as the caller promises.
    let pulled = unsafe { boundary::borrow(pulled, "pulled") }?;
    if pulled.server.pool.shared().is_forked() { Err(FORKED) } else { Ok(pulled) }
}

// --- events and their numbers ------------------------------------------------------------------------

/// What is out. Dropped before its source, so that completions find it.
struct Shared {
    table: Mutex<Table>,
    source: PulledServer,
}

#[derive(Default)]
struct Table {
    /// The last number that was given.
    last: u64,
    out: HashMap<u64, Held>,
}

struct Held {
    event: ConnEvent,
    /// The next pull of the thread that has it does not complete it.
    stays: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what was pulled numbers, and shows it.
    fn enter(
        &self,
        got: &mut Vec<ConnEvent>,
        list: &mut Vec<u64>,
        mut show: impl FnMut(usize, pace_conn_event_t),
    ) {
        if got.is_empty() {
            return;
        }
        let mut table = self.lock();
        for (index, event) in got.drain(..).enumerate() {
            table.last += 1;
            let number = table.last;
            show(index, as_data(number, &event));
            table.out.insert(number, Held { event, stays: false });
            list.push(number);
        }
    }

    fn take(&self, numbers: impl Iterator<Item = u64>) -> Vec<Option<Held>> {
        let mut table = self.lock();
        numbers.map(|number| table.out.remove(&number)).collect()
    }

    /// What a thread has pulled and neither completed nor held.
    fn complete_all(&self, list: &mut Vec<u64>) {
        if list.is_empty() {
            return;
        }
        let mut table = self.lock();
        let mut left = Vec::new();
        for number in list.drain(..) {
            if table.out.get(&number).is_some_and(|held| !held.stays) {
                left.extend(table.out.remove(&number));
            }
        }
        // Dropping them may write, and hand out what comes next.
        drop(table);
        drop(left);
    }

    fn put_back(&self, number: u64, held: Held) {
        self.lock().out.insert(number, held);
    }
}

/// # Safety
///
/// The completion's bytes are as the header demands.
unsafe fn complete(shared: &Shared, mut held: Held, completion: &mut pace_completion_t) -> Result {
    const KNOWN: u32 = 2 * PACE_COMPLETE_FAIL - 1;
    let flags = completion.flags;
    let has = |flag| flags & flag != 0;
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(completion.bytes, completion.size, 1, "bytes") };
    let consumed = completion.consumed;
    let checked = bytes.and_then(|bytes| {
        if flags & !KNOWN != 0 || completion.reserved != 0 {
            return Err(Failure::invalid("flags", flags, "PACE_COMPLETE_ bits, and reserved 0"));
        }
        if consumed != PACE_CONSUMED_ALL {
            held.event.consume(usize::try_from(consumed).unwrap_or(usize::MAX))?;
        }
        Ok(bytes)
    });
    let bytes = match checked {
        Ok(bytes) => bytes,
        Err(failure) => {
            shared.put_back(completion.event, held);
            return Err(failure);
        }
    };
    let conn = held.event.conn();
    let mut outcome = Ok(());
    if has(PACE_COMPLETE_REFUSE) {
        held.event.refuse(bytes);
    } else if !bytes.is_empty() {
        match conn.write(bytes) {
            Ok(wrote) => completion.wrote = number_of(wrote),
            Err(error @ crate::Error::Full { .. }) => {
                shared.put_back(completion.event, held);
                return Err(error.into());
            }
            Err(error) => outcome = Err(error.into()),
        }
    }
    let conn = held.event.conn();
    // An end that is not needed any more is none that failed.
    if has(PACE_COMPLETE_FINISH) {
        let _ = conn.shutdown_write();
    }
    if has(PACE_COMPLETE_CLOSE) {
        let _ = conn.close();
    }
    if has(PACE_COMPLETE_ABORT) {
        let _ = conn.abort();
    }
    if has(PACE_COMPLETE_KEEP) {
        held.event.keep();
    }
    if has(PACE_COMPLETE_FAIL) {
        held.event.fail();
    }
    if has(PACE_COMPLETE_HOLD) {
        held.stays = true;
        shared.put_back(completion.event, held);
    }
    outcome
}

fn as_data(number: u64, event: &ConnEvent) -> pace_conn_event_t {
    let (kind, detail, token) = match event.kind() {
        ConnEventKind::Opened => (PACE_CONN_EVENT_OPENED, 0, 0),
        ConnEventKind::Data => (PACE_CONN_EVENT_DATA, 0, 0),
        ConnEventKind::Finished => (PACE_CONN_EVENT_FINISHED, 0, 0),
        ConnEventKind::Writable => (PACE_CONN_EVENT_WRITABLE, 0, 0),
        ConnEventKind::Written(token) => (PACE_CONN_EVENT_WRITTEN, 0, token),
        ConnEventKind::TimedOut(kind) => (PACE_CONN_EVENT_TIMED_OUT, number_of_timeout(kind), 0),
        ConnEventKind::Draining => (PACE_CONN_EVENT_DRAINING, 0, 0),
        ConnEventKind::Closed(reason) => {
            let (number, detail) = number_of_reason(reason);
            (PACE_CONN_EVENT_CLOSED, number, detail as u64)
        }
    };
    let bytes = event.bytes();
    let place = if bytes.is_empty() { ptr::null() } else { bytes.as_ptr().cast() };
    let conn = name(event.conn().id());
    pace_conn_event_t { event: number, conn, kind, detail, token, bytes: place, size: bytes.len() }
}

// --- whose they are ----------------------------------------------------------------------------------

thread_local! {
    /// What this thread has pulled, by server.
    static LISTS: RefCell<Vec<Pulled>> = const { RefCell::new(Vec::new()) };
    /// Where this thread's events lie on their way, so that a pull allocates nothing once warm.
    static PULLED: Cell<Vec<ConnEvent>> = const { Cell::new(Vec::new()) };
}

/// What one thread has pulled of one server.
struct Pulled {
    shared: Weak<Shared>,
    events: Vec<u64>,
}

impl Pulled {
    /// Takes this thread's list out, or a new one. Others' lists stay where they are.
    fn take(shared: &Arc<Shared>) -> Self {
        let found = LISTS.try_with(|lists| {
            let mut lists = lists.borrow_mut();
            lists.retain(|list| list.shared.strong_count() > 0);
            let place = lists.iter().position(|list| ptr::eq(list.shared.as_ptr(), &**shared))?;
            Some(lists.swap_remove(place))
        });
        let new = || Self { shared: Arc::downgrade(shared), events: Vec::new() };
        found.ok().flatten().unwrap_or_else(new)
    }

    /// While the thread ends there is no place any more, and what it has is completed here and now.
    fn put(self) {
        let mut list = Some(self);
        let _ = LISTS.try_with(|lists| lists.borrow_mut().extend(list.take()));
    }
}

impl Drop for Pulled {
    /// At the thread's end at the latest everything is completed.
    fn drop(&mut self) {
        // A forked child must not touch the parent's connections.
        if let Some(shared) = self.shared.upgrade()
            && !shared.source.is_forked()
        {
            shared.complete_all(&mut self.events);
        }
    }
}
