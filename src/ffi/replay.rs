//! What histories have kept: queries, and replays that go on with what is published.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Failure, Out, Result, call, call_void, callback};
use super::callback::pace_drop_fn;
use super::hub::{open as open_hub, pace_hub_t};
use super::mailbox::{MailboxOf, open as open_mailbox, pace_mailbox_t};
use super::message::{self, lend, lend_to, pace_message_fn, pace_message_t, pace_subscription_t};
use super::owner::pair;
use super::retry::{NO_RETRY, pace_retry_t};
use super::sized::{self, Room};
use super::status::*;
use super::subscription::{pattern_of, way};
use super::supervisor::{
    Care, Factory, PACE_ON_EXHAUSTED_DEAD_LETTER, Times, pace_factory_fn, pace_restart_fn,
    pace_supervisor_t, restart_notifier,
};
use super::values::pace_text_t;
use crate::hub::history::{Query, Replay, ReplayBuilder, ReplayFrom, ReplayStats};
use crate::hub::{Intensity, Message, OnFailure, Stored, Unsubscribed};
use crate::pool::Shared;
use core::ffi::{c_char, c_void};
use core::mem::offset_of;
use core::ptr;
use core::time::Duration;
use std::sync::Arc;
use std::time::SystemTime;

/// With the oldest message that is kept; `at` is not looked at.
pub const PACE_REPLAY_BEGINNING: u32 = 0;
/// With the message of the number `at`, or the next one that there is.
pub const PACE_REPLAY_SEQUENCE: u32 = 1;
/// With the first that was published at `at` or later: nanoseconds since 1970.
pub const PACE_REPLAY_TIME: u32 = 2;
/// With the last `at` messages that are kept.
pub const PACE_REPLAY_LAST: u32 = 3;
/// With the next message; `at` is not looked at.
pub const PACE_REPLAY_NOW: u32 = 4;

/// Which messages of a history are asked for. Set struct_size to sizeof the struct, and what is not asked about
/// to zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_query_t {
    /// sizeof the struct.
    pub struct_size: u32,
    /// With a limit: the newest ones, and not the oldest; they come in their order all the same.
    pub newest: bool,
    /// Zero.
    pub reserved: [u8; 3],
    /// Of keys that this pattern matches. NULL: all (">").
    pub pattern: *const c_char,
    /// With this number or a later one.
    pub first: u64,
    /// With this number or an earlier one. 0: any.
    pub last: u64,
    /// Published at this time or later: nanoseconds since 1970.
    pub since_ns: u64,
    /// Published at this time or before. 0: any.
    pub until_ns: u64,
    /// At most so many. 0: all.
    pub limit: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_query_t {
    const FIRST: usize = 56;
    const NAME: &'static str = "pace_query_t";
    const FLAGS: &'static [(&'static str, usize)] = &[("newest", 4)];
    const RESERVED: &'static [usize] = &[5, 6, 7];
}

/// Called for a message that was asked for, in the thread that asks.
pub type pace_record_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, message: *const pace_message_t)>;

/// What a history has done since its hub was made. Texts are lent to the function that gets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_history_stats_t {
    /// Of which keys.
    pub pattern: pace_text_t,
    /// Messages that it took.
    pub recorded: u64,
    /// Those that are in memory.
    pub in_memory: u64,
    /// How many bytes those count for.
    pub memory_bytes: u64,
    /// Those that wait to be written.
    pub waiting: u64,
    /// Commits that were made.
    pub commits: u64,
    /// Messages that are on no disk and never will be: see PACE_DISK_GIVE_UP, and without an archive those of lines_lost.
    pub given_up: u64,
    /// Commits that failed, to be tried again.
    pub errors: u64,
    /// How often a replay could not read the archive.
    pub read_errors: u64,
    /// Every message of this run of the hub with a sequence up to this is in the archive. Messages that were given up
    /// are not, so it stays below the first of them. 0: there is none.
    pub durable: u64,
    /// Lines that could not be written.
    pub lines_lost: u64,
    /// The last of the errors, until a commit has been made. Empty: none.
    pub last_error: pace_text_t,
    /// The last of the read errors. Empty: none.
    pub last_read_error: pace_text_t,
    /// Why the last line was lost. Empty: none was.
    pub last_lines_error: pace_text_t,
}

/// Called for a history of a hub, in the thread that asks.
pub type pace_history_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, stats: *const pace_history_stats_t)>;

/// Settings of a replay. Call pace_replay_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_replay_options_t {
    /// Set by pace_replay_options_init().
    pub struct_size: u32,
    /// Where it begins: PACE_REPLAY_. Default: with the oldest message that is kept.
    pub from: u32,
    /// See PACE_REPLAY_.
    pub at: u64,
    /// How a message that the handler fails at is tried again; it gets no other until then. Default: not at all.
    pub retry: pace_retry_t,
    /// What then becomes of it: PACE_ON_EXHAUSTED_. Default: it becomes a dead letter.
    pub on_exhausted: u32,
    /// With within_ns: more restarts than so many, 0 to 100,000, or PACE_UNLIMITED32, in any such span
    /// suspend the replay: what comes stays in the history until the suspension ends. A handler is restarted when it
    /// has answered PACE_EPANIC; other failures are no restarts.
    pub restarts: u32,
    /// 1 ns to 100 years. 0 (default): 3 restarts in 5 seconds, whatever `restarts` says.
    pub within_ns: u64,
    /// Counts restarts together with others, replays or subscriptions, in place of the two above. Default NULL:
    /// alone.
    pub supervisor: *const pace_supervisor_t,
    /// As that of pace_subscription_options_t. Default NULL.
    pub on_restart: pace_restart_fn,
    /// How long the first suspension lasts, as that of pace_subscription_options_t; PACE_FOREVER: until
    /// pace_replay_resume(). 0 (default): 1 second.
    pub suspension_ns: u64,
    /// How long a suspension lasts at most. 0 (default): 60 seconds, or suspension_ns if that is longer.
    pub longest_suspension_ns: u64,
    /// Makes what the handler gets as its user_data, anew after each restart, as that of pace_subscription_options_t.
    /// Default NULL.
    pub factory: pace_factory_fn,
    /// Takes back what the factory has made, as that of pace_subscription_options_t. Default NULL.
    pub drop_handler: pace_drop_fn,
    /// For mailboxes of a host that runs a handler of its own, as that of pace_subscription_options_t; the replay is among
    /// the figures of its hub then. Default: what was brought counts as delivered.
    pub acknowledged: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 7],
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_replay_options_t {
    const FIRST: usize = 88;
    const NAME: &'static str = "pace_replay_options_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("acknowledged", offset_of!(pace_replay_options_t, acknowledged))];
    const RESERVED: &'static [usize] = {
        const NEXT: usize = offset_of!(pace_replay_options_t, reserved);
        &[NEXT, NEXT + 1, NEXT + 2, NEXT + 3, NEXT + 4, NEXT + 5, NEXT + 6]
    };
}

const DEFAULTS: pace_replay_options_t = pace_replay_options_t {
    struct_size: size_of::<pace_replay_options_t>() as u32,
    from: PACE_REPLAY_BEGINNING,
    at: 0,
    retry: NO_RETRY,
    on_exhausted: PACE_ON_EXHAUSTED_DEAD_LETTER,
    restarts: 0,
    within_ns: 0,
    supervisor: ptr::null(),
    on_restart: None,
    suspension_ns: 0,
    longest_suspension_ns: 0,
    factory: None,
    drop_handler: None,
    acknowledged: false,
    reserved: [0; 7],
};

/// What a replay has done. Set struct_size to sizeof the struct before the call.
///
/// matched = delivered + failed + dead_lettered + discarded + waiting + running
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_replay_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Messages that the handler has dealt with.
    pub delivered: u64,
    /// Those that it failed at for good, and that are no dead letters.
    pub failed: u64,
    /// Those that were no longer kept when their turn came.
    pub lost: u64,
    /// The greatest sequence that the handler was done with; 0 for none.
    pub last: u64,
    /// Messages that were read for it, and dead letters that were delivered to it again.
    pub matched: u64,
    /// Those that have become dead letters.
    pub dead_lettered: u64,
    /// Those that were read and had not begun when it ended.
    pub discarded: u64,
    /// Those that were read and have not begun, or wait for another attempt.
    pub waiting: u64,
    /// Those that are being handled now.
    pub running: u64,
    /// How often the handler was restarted.
    pub restarts: u64,
    /// Its number, which no subscription and no other replay of its hub has or had; dead letters tell it.
    pub number: u64,
    /// Whether it is suspended now, because its handler has answered PACE_EPANIC too often.
    pub suspended: bool,
    /// Zero.
    pub reserved2: [u8; 7],
    /// Of `matched`, dead letters that were delivered again.
    pub redelivered: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_replay_stats_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_replay_stats_t";
}

/// A replay to a handler.
pub struct pace_replay_t {
    replay: Replay,
    shared: Arc<Shared>,
}

/// Calls `each` for what the history has kept that the query asks for, in order, in this thread. `query` may be
/// NULL: all; `each` may be NULL: they are only counted. `count` may be NULL. It reads the disk if it must.
///
/// PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read;
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_query(
    hub: *mut pace_hub_t,
    query: *const pace_query_t,
    each: pace_record_fn,
    user_data: *mut c_void,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let query = unsafe { query_of(query) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(count, "count") }?;
        let found = match query {
            Some(query) => hub.hub.query(&query)?,
            None => Vec::new(),
        };
        // SAFETY: as the header demands.
        found.iter().for_each(|stored| unsafe { show_to(each, user_data, stored) });
        to.set(found.len());
        Ok(())
    })
}

/// Calls `each` for every history of the hub, in the order in which they were given, in this thread.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_history_stats(
    hub: *mut pace_hub_t,
    each: pace_history_fn,
    user_data: *mut c_void,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        let each = callback(each, "each")?;
        for stats in hub.hub.history_stats() {
            let text = |text: &Option<String>| text.as_deref().map_or(message::NOTHING, lend);
            let shown = pace_history_stats_t {
                pattern: lend(&stats.pattern),
                recorded: stats.recorded,
                in_memory: stats.in_memory,
                memory_bytes: stats.memory_bytes,
                waiting: stats.waiting,
                commits: stats.commits,
                given_up: stats.given_up,
                errors: stats.errors,
                read_errors: stats.read_errors,
                durable: stats.durable.unwrap_or(0),
                lines_lost: stats.lines_lost,
                last_error: text(&stats.last_error),
                last_read_error: text(&stats.last_read_error),
                last_lines_error: text(&stats.last_error_of_lines),
            };
            // SAFETY: as the header demands; what is shown lives until it returns.
            unsafe { each(user_data, &shown) }
        }
        Ok(())
    })
}

/// Writes everything that was published before the call to all archives, in this thread. PACE_OK: every message that the
/// hub's histories have taken before the call is on disk. Whatever the status is, *given_up is how many messages they
/// have given up since the hub was made; `given_up` may be NULL. These stay lost, so each later flush fails, too: if
/// the number has not grown, whatever was published between the two is on disk.
///
/// PACE_EOS: what could not be written is tried again later. PACE_EGIVENUP: messages were given up, and all others
/// are on disk.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_flush(hub: *mut pace_hub_t, given_up: *mut u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = &unsafe { open_hub(hub) }?.hub;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(given_up, "given_up") }?;
        let flushed = hub.flush_histories();
        to.set(hub.messages_given_up());
        Ok(flushed?)
    })
}

/// Writes everything that was published to all archives, and closes the files of all histories: a copy of an archive has
/// everything then, and another hub can open it at once. What a history with files would record is refused from now on,
/// and so is who asks for what is only on disk: PACE_ESHUTDOWN. pace_hub_free() does it, too. Calling it again is allowed.
///
/// PACE_EOS: what could not be written stays, its file is open, and all goes on as before.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_close_histories(hub: *mut pace_hub_t) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| Ok(unsafe { open_hub(hub) }?.hub.close_histories()?))
}

/// Replays what a history has kept of the keys that the pattern matches, from where `from` (PACE_REPLAY_) and
/// `at` say, and goes on with what is published: each message once, in the order of their sequences. The handler
/// runs on one thread of the pool at a time; a message that it fails at is counted, and the next one comes. What
/// was no longer kept when its turn came is in the lag mark of the next. `drop` runs when the replay has ended.
///
/// PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read;
/// PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_replay(
    hub: *mut pace_hub_t,
    pattern: *const c_char,
    from: u32,
    at: u64,
    handler: pace_message_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    replay: *mut *mut pace_replay_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let pattern = unsafe { pattern_of(pattern) }?;
        let from = start(from, at)?;
        let handler = callback(handler, "handler")?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(replay, "replay") }?;
        // A message at which it fails is counted, and the next one comes.
        let replay = hub.hub.replay(pattern, from);
        let replay = replay.on_failure(OnFailure::discard()).intensity(Intensity::unlimited());
        // SAFETY: as the header demands.
        unsafe { serve(hub, replay, &DEFAULTS, handler, user_data, drop, to) }
    })
}

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_options_init(
    options: *mut pace_replay_options_t,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { sized::init(options, size, DEFAULTS, "options") })
}

/// As pace_hub_replay(), with a handler that is supervised as that of a serial subscription is: what it fails at
/// is tried again, becomes a dead letter or is dropped, and it is restarted, or suspended. `options` may be NULL:
/// from the beginning, dead letters, 3 restarts in 5 seconds. What comes to one that is suspended stays in the
/// history, and is delivered after pace_replay_resume(). A pool that drains waits for messages that are to be
/// tried again.
///
/// As there; PACE_EINVAL for a bad option too.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_replay_supervised(
    hub: *mut pace_hub_t,
    pattern: *const c_char,
    options: *const pace_replay_options_t,
    handler: pace_message_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    replay: *mut *mut pace_replay_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let pattern = unsafe { pattern_of(pattern) }?;
        // SAFETY: as the header demands.
        let options = unsafe { read(options) }?;
        let handler = callback(handler, "handler")?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(replay, "replay") }?;
        // SAFETY: as the header demands.
        let replay = unsafe { configure(hub, pattern, &options) }?;
        // SAFETY: as the header demands.
        unsafe { serve(hub, replay, &options, handler, user_data, drop, to) }
    })
}

/// Ends the suspension of a replay, and of all others of its supervisor: it goes on with the message behind the
/// last that its handler was called with. *resumed, which may be NULL, says whether one was suspended.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_resume(
    replay: *mut pace_replay_t,
    resumed: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let replay = unsafe { open(replay) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(resumed, "resumed") }?;
        to.set(replay.replay.resume());
        Ok(())
    })
}

/// The counts of a replay.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_stats(
    replay: *mut pace_replay_t,
    stats: *mut pace_replay_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let replay = &unsafe { open(replay) }?.replay;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        room.fill(counts_of(&replay.stats(), replay.id(), replay.is_suspended()));
        Ok(())
    })
}

/// Ends a replay. `how` is PACE_UNSUBSCRIBE_; there is nothing to drain. *ended, which may be NULL, says whether
/// no handler runs or will run, and `drop` has run.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there. It waits outside with PACE_UNSUBSCRIBE_SYNC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_end(
    replay: *mut pace_replay_t,
    how: u32,
    ended: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let replay = unsafe { open(replay) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(ended, "ended") }?;
        to.set(replay.replay.unsubscribe(way(how)?)? == Unsubscribed::Now);
        Ok(())
    })
}

/// Ends a replay as PACE_UNSUBSCRIBE_SYNC does, and frees it: it waits until the handler does not run and `drop` has
/// run, unless pace_replay_end() was called before. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the replay any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_free(replay: *mut pace_replay_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        if unsafe { open(replay) }.is_ok() {
            // SAFETY: as the header demands, it came from here and is used by nobody else.
            drop(unsafe { Box::from_raw(replay) });
        }
    });
}

/// As pace_hub_replay_supervised(), with a mailbox that a completion queue empties (pace_cq_mailbox). Of the options
/// those of supervision are refused, because there is no handler; with `acknowledged` the host's own may have a supervisor, or
/// restarts and suspensions.
///
/// As there.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_replay_mailbox(
    hub: *mut pace_hub_t,
    pattern: *const c_char,
    options: *const pace_replay_options_t,
    mailbox: *mut *mut pace_mailbox_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let pattern = unsafe { pattern_of(pattern) }?;
        // SAFETY: as the header demands.
        let options = unsafe { read(options) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(mailbox, "mailbox") }?;
        if options.on_restart.is_some() || options.factory.is_some() {
            let allowed = "NULL for a mailbox, which has no handler";
            return Err(Failure::invalid("on_restart", "set", allowed));
        }
        // SAFETY: as the header demands.
        let replay = unsafe { configure(hub, pattern, &options) }?;
        let replay = if options.acknowledged { replay.acknowledged() } else { replay };
        let mailbox = MailboxOf::Replay(Arc::new(replay.mailbox()?));
        to.set(pace_mailbox_t::give(mailbox, hub));
        Ok(())
    })
}

/// The counts of a replay to a mailbox. What was brought counts as delivered until it is buried, or with `acknowledged` as
/// running until the host has said what became of it; what is in the history and was not brought is not counted.
///
/// PACE_EINVAL for the mailbox of a subscription; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replay_mailbox_stats(
    mailbox: *mut pace_mailbox_t,
    stats: *mut pace_replay_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open_mailbox(mailbox) }?;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        let MailboxOf::Replay(mailbox) = &mailbox.of else {
            let allowed = "that of a replay; see pace_mailbox_stats";
            return Err(Failure::invalid("mailbox", "of a subscription", allowed));
        };
        room.fill(counts_of(&mailbox.stats(), mailbox.id(), mailbox.is_suspended()));
        Ok(())
    })
}

fn counts_of(counts: &ReplayStats, number: u64, suspended: bool) -> pace_replay_stats_t {
    pace_replay_stats_t {
        struct_size: 0,
        reserved: 0,
        delivered: counts.delivered,
        failed: counts.failed,
        lost: counts.lost,
        last: counts.last,
        matched: counts.matched,
        dead_lettered: counts.dead_lettered,
        discarded: counts.discarded,
        waiting: counts.waiting,
        running: counts.running,
        restarts: counts.restarts,
        number,
        suspended,
        reserved2: [0; 7],
        redelivered: counts.redelivered,
    }
}

/// # Safety
///
/// As the header demands of options, which may be NULL.
unsafe fn read(options: *const pace_replay_options_t) -> Result<pace_replay_options_t> {
    match options.is_null() {
        true => Ok(DEFAULTS),
        // SAFETY: as the caller promises.
        false => unsafe { sized::read(options, "options") },
    }
}

/// All but what has to do with a handler's functions.
///
/// # Safety
///
/// As the header demands of options.
unsafe fn configure<'a>(
    hub: &'a pace_hub_t,
    pattern: &'a str,
    options: &pace_replay_options_t,
) -> Result<ReplayBuilder<'a>> {
    let pace_replay_options_t { on_exhausted, restarts, within_ns, supervisor, .. } = *options;
    let pace_replay_options_t { suspension_ns, longest_suspension_ns, .. } = *options;
    let times = Times { restarts, within_ns, suspension_ns, longest_suspension_ns };
    let care = Care { retry: &options.retry, on_exhausted, times, supervisor };
    let replay = hub.hub.replay(pattern, start(options.from, options.at)?);
    let mut replay = replay.on_failure(care.policy()?);
    if let Some(intensity) = care.intensity() {
        replay = replay.intensity(intensity);
    }
    // SAFETY: as the caller promises.
    if let Some(supervisor) = unsafe { care.supervisor() }? {
        replay = replay.supervisor(supervisor);
    }
    Ok(replay)
}

/// # Safety
///
/// As the header demands of the functions and of what comes with them.
unsafe fn serve(
    hub: &pace_hub_t,
    replay: ReplayBuilder<'_>,
    options: &pace_replay_options_t,
    handler: unsafe extern "C" fn(*mut c_void, *const pace_message_t, *mut i32),
    user_data: *mut c_void,
    drop: pace_drop_fn,
    to: Out<*mut pace_replay_t>,
) -> Result<()> {
    let (registration, owner) = pair(user_data, drop);
    let owner = Arc::new(owner);
    let replay = match options.on_restart {
        None => replay,
        // SAFETY: as the caller promises.
        Some(on_restart) => replay.on_restart(unsafe { restart_notifier(on_restart, &owner) }),
    };
    let name = pace_subscription_t { id: 0 };
    let made = if let Some(make) = options.factory {
        // SAFETY: as the caller promises.
        unsafe { Factory::new(make, options.drop_handler, handler, &owner, name) }.serve(replay)
    } else {
        let run = move |shown: &Message<'_>| message::handle(handler, owner.data(), shown, name);
        replay.serve(run).map_err(Failure::from)
    };
    match made {
        Ok(replay) => {
            let shared = Arc::clone(hub.hub.pool().shared());
            to.set(Box::into_raw(Box::new(pace_replay_t { replay, shared })));
            registration.keep();
            Ok(())
        }
        Err(error) => {
            registration.give_back();
            Err(error)
        }
    }
}

fn start(from: u32, at: u64) -> Result<ReplayFrom> {
    Ok(match from {
        PACE_REPLAY_BEGINNING => ReplayFrom::Beginning,
        PACE_REPLAY_SEQUENCE => ReplayFrom::Sequence(at),
        PACE_REPLAY_TIME => ReplayFrom::Time(time(at)),
        PACE_REPLAY_LAST => ReplayFrom::Last(usize::try_from(at).unwrap_or(usize::MAX)),
        PACE_REPLAY_NOW => ReplayFrom::Now,
        other => return Err(Failure::invalid("from", other, "0 to 4 (PACE_REPLAY_)")),
    })
}

fn time(since_1970: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(since_1970)
}

/// None: it asks for nothing.
///
/// # Safety
///
/// The function takes what came with it.
pub(super) unsafe fn show_to(each: pace_record_fn, user_data: *mut c_void, stored: &Stored) {
    if let Some(each) = each {
        // SAFETY: as the caller promises.
        lend_to(stored, |shown| unsafe { each(user_data, shown) });
    }
}

/// # Safety
///
/// As the header demands of a query, which may be NULL.
pub(super) unsafe fn query_of(query: *const pace_query_t) -> Result<Option<Query>> {
    if query.is_null() {
        return Ok(Some(Query::of(">")));
    }
    // SAFETY: as the caller promises.
    let query = unsafe { sized::read(query, "query") }?;
    let made = match query.pattern.is_null() {
        true => Query::of(">"),
        // SAFETY: as the caller promises.
        false => Query::of(unsafe { pattern_of(query.pattern) }?),
    };
    let end = |last: u64| if last == 0 { u64::MAX } else { last };
    if query.first > end(query.last) || query.since_ns > end(query.until_ns) {
        return Ok(None);
    }
    let made = made.sequences(query.first..=end(query.last));
    let made = made.since(time(query.since_ns)).until(time(end(query.until_ns)));
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    Ok(Some(match (query.limit, query.newest) {
        (0, _) => made,
        (_, true) => made.last(limit),
        (_, false) => made.limit(limit),
    }))
}

/// # Safety
///
/// As the header demands of a replay.
unsafe fn open<'a>(replay: *const pace_replay_t) -> Result<&'a pace_replay_t> {
    // SAFETY: as the caller promises.
    let replay = unsafe { boundary::borrow(replay, "replay") }?;
    if replay.shared.is_forked() { Err(FORKED) } else { Ok(replay) }
}
