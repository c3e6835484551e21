//! Completion queues: events as data, for hosts that cannot be called back. `src/cq` says how they work.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Failure, Out as Give, Result, TIMED_OUT, call, call_void, nanos,
};
use super::callback::{pace_handle_t, pace_timer_t};
use super::cq_answer;
use super::cq_entry::{Item, Out, Seen, Slots, pace_cq_entry_t, put, rows, see};
use super::cq_figures::Part;
use super::handle::{Borrowed, name, options_of, pace_handle_options_t};
use super::pool::{open as open_pool, pace_pool_t};
use super::sized::{self, Room};
use super::status::*;
use super::timer;
use crate::cq::internal::{
    Attachment, Brought, Core, Entry, EntryKind, Internal, NOT_YET, Parts, Source, Table, Told,
};
use crate::pool::Timer;
use crate::queue::Line;
use crate::sys::clock;
use crate::{Handle, Pool, SourceKind};
use core::cell::Cell;
use core::mem::offset_of;
use core::slice;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Where sources put what happens, and hosts take it as data. Whatever can have a callback can be attached to one with a
/// tag instead.
///
/// **What an entry lends** (the bytes and texts that it points to) stays where it is until its token is completed, by
/// whatever thread, and the source brings nothing more of what must not overlap until then: a connection, a descriptor
/// and a request have one entry out at a time.
///
/// **Who is gone** without completing is found out by the lease, if there is one: then the token is stale, and the entry
/// is brought to another thread with PACE_CQ_AGAIN. Not datagrams, which may be lost anyhow, and not a request whose
/// answer has begun, which breaks off. From then on nothing that the entry lends may be read any more: renew it in time,
/// or copy first (`leased_when_renewed`).
///
/// **The counters** (pace_cq_stats) add up: brought = completed + withdrawn + out.
pub struct pace_cq_t {
    pub(super) core: Arc<Core>,
    pub(super) pool: Pool,
    pub(super) state: Arc<State>,
    _part: Arc<Part>,
}

/// Settings of a completion queue. Call pace_cq_config_init(), change what you like, call pace_cq_new().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_config_t {
    /// The size of the struct, set by pace_cq_config_init().
    pub struct_size: u32,
    /// In a pool without threads: threads that wait sleep beside the queue, as they do in a pool with threads, and others
    /// do the pool's work (pace_pool_join(), or another queue). They are none of its max_joined, a drain does not wait for
    /// them, and pace_cq_fd() is the queue's own. Default: false.
    pub beside: bool,
    /// The lease of an entry begins when it is renewed for the first time, and not when it is brought: for hosts that copy
    /// what an entry lends before they work on it, and may be held up meanwhile. Default: false.
    pub leased_when_renewed: bool,
    /// Not used: zero for now.
    pub reserved: [u8; 2],
    /// Nanoseconds, at least 1 ms: an entry that is neither completed nor renewed (pace_cq_renew) for so long is taken
    /// from whoever has it. 0 (default): never.
    pub lease_ns: u64,
}

/// What a completion queue has counted. At any time brought = completed + withdrawn + out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_stats_t {
    /// Set by the caller: sizeof the struct.
    pub struct_size: u32,
    /// Not used: zero for now.
    pub reserved: u32,
    /// Entries with a token that pace_cq_wait() has given, each time that it did.
    pub brought: u64,
    /// Of these, those that were completed.
    pub completed: u64,
    /// Of these, those whose lease was over.
    pub withdrawn: u64,
    /// Of these, those that are out now.
    pub out: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_cq_config_t {
    const FIRST: usize = 16;
    const NAME: &'static str = "pace_cq_config_t";
    const FLAGS: &'static [(&'static str, usize)] = &[("beside", 4), ("leased_when_renewed", 5)];
    const RESERVED: &'static [usize] = &[6, 7];
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_cq_stats_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_cq_stats_t";
    const RESERVED: &'static [usize] = &[4, 5, 6, 7];
}

const _: () = assert!(
    size_of::<pace_cq_stats_t>() == 40 && offset_of!(pace_cq_config_t, lease_ns) == 8,
    "the first version"
);

const DEFAULTS: pace_cq_config_t = pace_cq_config_t {
    struct_size: size_of::<pace_cq_config_t>() as u32,
    beside: false,
    leased_when_renewed: false,
    reserved: [0; 2],
    lease_ns: 0,
};

/// Fills in the defaults; `size` is sizeof *config.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_config_init(
    config: *mut pace_cq_config_t,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { sized::init(config, size, DEFAULTS, "config") })
}

/// Makes a completion queue for a pool and all that stands on it. `config` may be NULL: the defaults. A pool may have
/// any number of queues.
///
/// In a pool with threads of its own these do the work, and hosts sleep in pace_cq_wait() until there is something. In
/// one without, the threads that wait are the pool's threads meanwhile: they lead, follow, and run whatever has a
/// handler; unless the queue is `beside`. If `pool` is NULL the queue is `beside`, and for what
/// needs no pool of its own: logs (pace_cq_log) and requests of hubs (pace_cq_request).
///
/// PACE_EINVAL for a lease below 1 ms; PACE_EVERSION; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_new(
    pool: *mut pace_pool_t,
    config: *const pace_cq_config_t,
    cq: *mut *mut pace_cq_t,
) -> pace_status_t {
    call(|| {
        let pool = match pool.is_null() {
            true => None,
            // SAFETY: as the header demands.
            false => Some(unsafe { open_pool(pool) }?.pool.clone()),
        };
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(cq, "cq") }?;
        let config = match config.is_null() {
            true => DEFAULTS,
            // SAFETY: as the header demands.
            false => unsafe { sized::read(config, "config") }?,
        };
        if !(config.lease_ns == 0 || config.lease_ns >= 1_000_000) {
            return Err(Failure::invalid(
                "lease_ns",
                config.lease_ns,
                "0, or at least 1000000 (1 ms)",
            ));
        }
        let beside = config.beside || pool.is_none();
        let pool = pool.map_or_else(pool_of_nobody, Ok)?;
        let core = Core::new(pool.shared(), beside)?;
        let (table, again) = (Table::new(), VecDeque::new());
        let leased = Mutex::new(Leased { table, again, watched: false });
        let state = Arc::new(State {
            leased,
            lease: config.lease_ns,
            begins_renewed: config.leased_when_renewed,
            attachment: OnceLock::new(),
        });
        let attachment = core.attach_aside(Arc::new(Again(Arc::downgrade(&state))));
        state.attachment.get_or_init(|| attachment);
        let _part = Part::of(&state, pool.shared());
        to.set(Box::into_raw(Box::new(pace_cq_t { core, pool, state, _part })));
        Ok(())
    })
}

/// *fd is readable while pace_cq_wait() may find something, for a loop of the host's own, which then calls that with a
/// time of 0. In a pool without threads, unless the queue is `beside`, it is readable for what the pool has to do, too. It belongs to the queue: never
/// read or close it.
///
/// PACE_EOS if there are no descriptors left; PACE_EINVAL for a pool without threads whose source has none.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_fd(cq: *mut pace_cq_t, fd: *mut i32) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(fd, "fd") }?;
        to.set(cq.core.descriptor()?.as_raw_fd());
        Ok(())
    })
}

/// Waits for up to `timeout_ns` for entries, and takes up to `max` of them. PACE_OK: *got is 1 or more. Sources take
/// turns; the entries of one source come in its order. Several threads may wait: each entry goes to one of them. In a
/// pool without threads the caller takes part meanwhile, as in pace_pool_join().
///
/// A drain of the pool waits for a thread that waits here to come back, until the queue is closed; not for the thread
/// that drains.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the queue was closed, or its pool has stopped and all sources have
/// ended; PACE_EINVAL for a `max` of 0; PACE_EDEADLOCK in a handler, and on a thread of the pool, unless the time is 0;
/// PACE_EFULL when max_joined threads are in a pool without threads.
///
/// Threads: any but the pool's own. In handlers: with a time of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_wait(
    cq: *mut pace_cq_t,
    entries: *mut pace_cq_entry_t,
    max: usize,
    timeout_ns: u64,
    got: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        boundary::check(entries, "entries")?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(got, "got") }?;
        if max == 0 {
            return Err(Failure::invalid("max", 0, "at least 1"));
        }
        let mut taken = TAKEN.try_with(Cell::take).unwrap_or_default();
        let waited = cq.core.wait(&mut taken, max, nanos(timeout_ns));
        let most = max.min(isize::MAX as usize / size_of::<pace_cq_entry_t>());
        // SAFETY: as the header demands, there is room for `max`, and a slice may have so many.
        let mut slots = unsafe { slice::from_raw_parts_mut(entries.cast(), most) }.iter_mut();
        cq.state.lend(&cq.core, &mut taken, &mut slots);
        let count = most - slots.len();
        let _ = TAKEN.try_with(|place| place.set(taken));
        match (count, waited) {
            (0, Ok(_)) => Err(TIMED_OUT),
            (0, Err(error)) => Err(error.into()),
            (some, _) => {
                to.set(some);
                Ok(())
            }
        }
    })
}

/// Completes `count` entries with nothing to say, whatever threads have taken them: what a callback does that returns at
/// once. All bytes of a connection are consumed, a descriptor is watched on, an attempt has succeeded, a message is
/// dealt with, and a request that was not answered gets a 500. Only their tokens are looked at: those of 0 are passed
/// over, and so is what is completed already, so a batch can be given back as it came.
///
/// PACE_ESTALE if one of them was not out.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_done(
    cq: *mut pace_cq_t,
    entries: *const pace_cq_entry_t,
    count: usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands. This refuses NULL, and more than a slice may have.
        let entries = unsafe { boundary::array(entries, count, "entries") }?;
        cq_answer::done(&cq.state, entries.iter().map(|entry| entry.token))
    })
}

/// Says that the host still works on an entry: its lease begins anew, and so does the time of an attempt.
///
/// PACE_ESTALE: it is not out.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_renew(cq: *mut pace_cq_t, token: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        let (mut table, now) = (cq.state.lock(), clock::now());
        if !table.table.renew(token, now) {
            return Err(NOT_OUT);
        }
        let watches = cq.state.lease > 0 && !core::mem::replace(&mut table.watched, true);
        if watches {
            drop(table);
            cq.state.watch(&cq.core, now);
            table = cq.state.lock();
        }
        if let Some(Item { out: Out::Attempt(attempt), .. }) = table.table.get(token) {
            attempt.heartbeat()?;
        }
        Ok(())
    })
}

/// What the queue has counted.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_stats(
    cq: *mut pace_cq_t,
    stats: *mut pace_cq_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        let state = cq.state.lock();
        let Table { brought, completed, withdrawn, .. } = state.table;
        let out = state.table.out();
        drop(state);
        room.fill(pace_cq_stats_t {
            struct_size: 0,
            reserved: 0,
            brought,
            completed,
            withdrawn,
            out,
        });
        Ok(())
    })
}

/// Closes the queue: nothing is brought any more, and every thread that waits gets PACE_ESHUTDOWN. What is out can be
/// completed still. Sources that are attached stay as they are; what they have, and what comes, nobody takes: a request
/// gets a 500, and a connection goes on as if its events were completed with nothing to say. Handles of pace_cq_register()
/// and pace_cq_every() end with what happens to them next, if they are not deregistered before; tags that nobody has taken
/// are dropped, and counted as cancelled tasks of the pool.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_close(cq: *mut pace_cq_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { open(cq) }?.core.close();
        Ok(())
    })
}

/// Closes the queue, and frees it. What is out is withdrawn, as if its handler had failed: a request gets a 500, an
/// attempt has failed, a message becomes a dead letter of its subscription; a connection goes on. NULL: nothing.
///
/// Threads: any, as long as no other uses the queue any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_free(cq: *mut pace_cq_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_cq_new` and is used by nobody else.
        if unsafe { open(cq) }.is_ok() {
            // SAFETY: as above.
            let cq = unsafe { Box::from_raw(cq) };
            cq.core.close();
            let mut left = Vec::new();
            cq.state.lock().table.lapse(u64::MAX, &mut left);
            left.into_iter().for_each(|(item, left)| cq_answer::withdraw(item, left));
            let again = core::mem::take(&mut cq.state.lock().again);
            again.into_iter().for_each(|item| cq_answer::withdraw(item, Parts::first(1)));
        }
    });
}

/// As pace_pool_register(), and what happens comes as PACE_CQ_READY with `tag`. An edge-triggered descriptor must have
/// been read until EAGAIN before an entry is completed.
///
/// PACE_EINVAL, PACE_EOS, PACE_EFULL, PACE_ESHUTDOWN, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_register(
    cq: *mut pace_cq_t,
    fd: i32,
    options: *const pace_handle_options_t,
    tag: u64,
    handle: *mut pace_handle_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        let fd = Borrowed::new(fd)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(handle, "handle") }?;
        to.set(let_go(cq.pool.register_for(&cq.core.events, fd, options, tag)?));
        Ok(())
    })
}

/// As pace_pool_every(), and each tick comes as PACE_CQ_TICK with `tag`. Ticks that come while one is out are skipped.
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_every(
    cq: *mut pace_cq_t,
    period_ns: u64,
    tag: u64,
    handle: *mut pace_handle_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(handle, "handle") }?;
        to.set(let_go(cq.pool.every_for(&cq.core.events, nanos(period_ns), tag)?));
        Ok(())
    })
}

/// As pace_pool_after(), and it comes as PACE_CQ_TIMER with `tag`. `timer` may be NULL.
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_after(
    cq: *mut pace_cq_t,
    delay_ns: u64,
    tag: u64,
    timer: *mut pace_timer_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::optional(timer, "timer") }?;
        to.set(timer::name(&cq.pool.after_for(&cq.core.events, nanos(delay_ns), tag)?));
        Ok(())
    })
}

/// Posts `count` tags, in order, each of which comes as PACE_CQ_TASK. It never waits. As many as a lane of the pool has
/// room for may lie there; in the pool's counters they are tasks. *accepted, which may be NULL, says how many were
/// taken, also for PACE_EFULL and PACE_ESHUTDOWN.
///
/// PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_post(
    cq: *mut pace_cq_t,
    tags: *const u64,
    count: usize,
    accepted: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::optional(accepted, "accepted") }?;
        // SAFETY: as the header demands.
        let tags = unsafe { boundary::array(tags, count, "tags") }?;
        match cq.pool.post_for(&cq.core.events, tags) {
            Ok(()) => {
                to.set(count);
                Ok(())
            }
            Err(rejected) => {
                let failure = Failure::from(&rejected);
                to.set(rejected.into_inner());
                Err(failure)
            }
        }
    })
}

/// Wakes one thread that waits, or the next that would: `tag` comes as PACE_CQ_TASK, as one that was posted. But it is no
/// task: it is in no counter of the pool, and a drain does not wait for it. For a host that calls its threads to a list
/// of its own. It is never refused for want of room: wake once for each thread that sleeps, not for each thing to do.
///
/// PACE_ESHUTDOWN: the queue was closed, or its pool has stopped.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_wake(cq: *mut pace_cq_t, tag: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        Ok(cq.core.wake(tag)?)
    })
}

thread_local! {
    /// Where this thread's entries lie on their way, so that a wait allocates little once warm.
    static TAKEN: Cell<Vec<Entry>> = const { Cell::new(Vec::new()) };
}

pub(super) const NOT_OUT: Failure = Failure::plain(PACE_ESTALE, c"no entry of this token is out");

/// A pool without threads, descriptors and logs, for a queue that stands on none of the host's.
fn pool_of_nobody() -> crate::Result<Pool> {
    let mut least = Pool::builder().threads(0).max_joined(1).source(SourceKind::Ring);
    least = least.lane_capacity(2).strand_capacity(2).max_handles(1);
    least.is_silent = true;
    least.build()
}

/// The handle lives on; C names it.
fn let_go<S>(handle: Handle<S>) -> pace_handle_t {
    let id = handle.id();
    handle.detach();
    pace_handle_t { id: id.map_or(0, |id| name(id.0).id) }
}

/// The queue behind an argument, in the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_cq_new` and has not been freed.
pub(super) unsafe fn open<'a>(cq: *const pace_cq_t) -> Result<&'a pace_cq_t> {
    // SAFETY: as the caller promises.
    let cq = unsafe { boundary::borrow(cq, "cq") }?;
    if cq.core.shared.is_forked() { Err(FORKED) } else { Ok(cq) }
}

// --- what is out -------------------------------------------------------------------------------------

pub(super) struct State {
    leased: Mutex<Leased>,
    /// Nanoseconds; 0: none.
    lease: u64,
    /// An entry has none before it is renewed for the first time.
    begins_renewed: bool,
    /// Where what waits to be brought again is listed.
    attachment: OnceLock<Arc<Attachment>>,
}

pub(super) struct Leased {
    pub(super) table: Table<Item>,
    /// What waits to be brought again, each one thing.
    pub(super) again: VecDeque<Item>,
    /// A timer looks when the next lease is over.
    watched: bool,
}

impl Leased {
    fn lend(&mut self, item: Item, count: usize, now: u64, slots: &mut Slots<'_>) {
        let token = self.table.put(item, count, now);
        if let Some(item) = self.table.get(token) {
            if let Out::Request(request) = &item.out
                && let Some(upload) = &request.upload
            {
                upload.rename(token);
            }
            rows(item, token, slots);
        }
    }
}

impl State {
    pub(super) fn lock(&self) -> MutexGuard<'_, Leased> {
        // Nothing panics while it is held.
        self.leased.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> u64 {
        if self.lease == 0 { 0 } else { clock::now() }
    }

    /// Since when what is lent now is out.
    fn lent_at(&self) -> u64 {
        if self.begins_renewed { NOT_YET } else { self.now() }
    }

    /// Gives what was taken tokens, and shows it.
    fn lend(self: &Arc<Self>, core: &Arc<Core>, taken: &mut Vec<Entry>, slots: &mut Slots<'_>) {
        if taken.is_empty() {
            return;
        }
        let now = self.lent_at();
        let mut state = self.lock();
        let mut again = false;
        for entry in taken.drain(..) {
            let mut ended = None;
            match see(entry, &mut ended) {
                Seen::Again => again = true,
                Seen::Told(told) => {
                    let request = ended.and_then(|request| state.table.get(request));
                    if let Some(Item { out: Out::Request(request), .. }) = request {
                        request.upload = None;
                    }
                    put(slots, told);
                }
                Seen::Out(item, count) => state.lend(item, count, now, slots),
            }
        }
        if again {
            while slots.len() > 0
                && let Some(item) = state.again.pop_front()
            {
                state.lend(item, 1, now, slots);
            }
            again = !state.again.is_empty();
        }
        let begins = self.lease > 0 && !self.begins_renewed;
        let watches = begins && !core::mem::replace(&mut state.watched, true);
        drop(state);
        if again {
            self.call();
        }
        if watches {
            self.watch(core, now);
        }
    }

    /// Looks when a lease that began at `since` is over.
    fn watch(self: &Arc<Self>, core: &Arc<Core>, since: u64) {
        let (state, weak) = (Arc::downgrade(self), Arc::downgrade(core));
        let look = move || {
            if let (Some(state), Some(core)) = (state.upgrade(), weak.upgrade()) {
                state.look(&core);
            }
        };
        let delay = since.saturating_add(self.lease).saturating_sub(clock::now());
        if Timer::after(&core.shared, nanos(delay), look, |_| ()).is_err() {
            // The next that is lent tries again; should the pool stop, nothing lapses.
            self.lock().watched = false;
        }
    }

    fn look(self: &Arc<Self>, core: &Arc<Core>) {
        let mut lapsed = Vec::new();
        let mut state = self.lock();
        let before = clock::now().saturating_sub(self.lease);
        let oldest = state.table.lapse(before, &mut lapsed);
        state.watched = oldest.is_some();
        let mut lost = Vec::new();
        for (item, left) in lapsed {
            match item.comes_again() {
                true => state.again.extend(item.into_single(left)),
                false => lost.push((item, left)),
            }
        }
        let again = !state.again.is_empty();
        drop(state);
        lost.into_iter().for_each(|(item, left)| cq_answer::withdraw(item, left));
        if again {
            self.call();
        }
        if let Some(oldest) = oldest {
            self.watch(core, oldest);
        }
    }

    /// Something waits to be brought again.
    pub(super) fn call(&self) {
        if let Some(attachment) = self.attachment.get() {
            attachment.raise();
        }
    }
}

/// What waits to be brought again, as a source.
struct Again(Weak<State>);

impl Source for Again {
    fn bring(&self, _: u64, out: &mut Vec<Entry>, _: usize) -> Brought {
        let Some(state) = self.0.upgrade() else { return Brought::Over };
        let count = usize::from(!state.lock().again.is_empty());
        out.extend((count > 0).then(|| Entry::new(0, EntryKind::Internal(Internal(Told::Again)))));
        Brought::Some { count, more: false }
    }

    fn tells_end(&self) -> bool {
        false
    }
}
