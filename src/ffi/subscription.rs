//! Subscriptions to a hub.
//!
//! Its name is given out before it is made, so that a handler which runs at once knows it:
//!
//! | stage | |
//! |---|---|
//! | `Coming` | named; `pace_hub_subscribe` is making it |
//! | `There` | made |
//! | `Unwanted` | unsubscribed; if it was `Coming` (by its own handler), it is as soon as it is made |
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, callback, nanos, optional_out, usable};
use super::callback::pace_drop_fn;
use super::hub::pace_hub_t;
use super::message::{self, pace_message_fn, pace_subscription_t};
use super::message_filter::{open as open_filter, pace_message_filter_t};
use super::owner::pair;
use super::retry::{NO_RETRY, pace_retry_t};
use super::sized::{self, InOut};
use super::status::*;
use super::supervisor::{
    Care, Factory, PACE_ON_EXHAUSTED_DEAD_LETTER, Times, pace_factory_fn, pace_restart_fn,
    pace_supervisor_t, restart_notifier,
};
use super::values::PACE_FOREVER;
use crate::hub::{
    Balance, Execution, Overflow, Subscription, SubscriptionBuilder, SubscriptionStats,
    Unsubscribe, Unsubscribed,
};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of, replace};
use core::ptr;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// On the pool, never on two threads at once, in the order of its mailbox.
pub const PACE_EXECUTION_SERIAL: u32 = 0;
/// In the publisher's thread, before publishing returns, with no mailbox. Several publishers may be in
/// it at once.
pub const PACE_EXECUTION_INLINE: u32 = 1;
/// On up to `threads` threads of the pool at once. Messages begin in the order of the mailbox.
pub const PACE_EXECUTION_CONCURRENT: u32 = 2;
/// On the pool, one at a time with all others of its hub that have this, whatever their keys, in the one
/// order in which the messages were published.
pub const PACE_EXECUTION_STRAND: u32 = 3;

/// A message for a full mailbox is refused: publishing fails with PACE_EFULL.
pub const PACE_OVERFLOW_REJECT: u32 = 0;
/// A message for a full mailbox is dropped, and counted.
pub const PACE_OVERFLOW_DROP_NEWEST: u32 = 1;
/// When the mailbox is full, the message that has waited longest in it is dropped for the new one.
pub const PACE_OVERFLOW_DROP_OLDEST: u32 = 2;
/// At most one message per key waits, in a full mailbox and in any other: a newer message replaces the older
/// one.
pub const PACE_OVERFLOW_CONFLATE: u32 = 3;
/// A publisher waits for room in a full mailbox for up to block_ns; then its message is refused. It is
/// refused at once where publishers do not wait: on threads of any pool, in handlers, and with
/// PACE_PUBLISH_NO_WAIT.
pub const PACE_OVERFLOW_BLOCK: u32 = 4;
/// A handler's mailbox is as with PACE_OVERFLOW_BLOCK without a limit, and one without a handler as with
/// PACE_OVERFLOW_REJECT, because the thread that empties it may be the one that publishes.
pub const PACE_OVERFLOW_DEFAULT: u32 = 5;

/// What waits is discarded, and a handler that runs is not waited for.
pub const PACE_UNSUBSCRIBE_ASYNC: u32 = 0;
/// Takes no more messages; those that wait are delivered still.
pub const PACE_UNSUBSCRIBE_DRAIN: u32 = 1;
/// As ASYNC, and waits until no handler runs. Inside a handler it does not wait.
pub const PACE_UNSUBSCRIBE_SYNC: u32 = 2;

/// A message goes to one member of the group after the other.
pub const PACE_BALANCE_ROUND_ROBIN: u32 = 0;
/// A message goes to the member of the group for which the fewest messages wait.
pub const PACE_BALANCE_LEAST_LOADED: u32 = 1;
/// A message goes to any member of the group, evenly distributed.
pub const PACE_BALANCE_RANDOM: u32 = 2;
/// All messages of a key go to one member, in order; when the members change some keys move, and the new
/// member of a key gets nothing of it before the old one has finished. For serial execution.
pub const PACE_BALANCE_BY_KEY: u32 = 3;
/// As PACE_BALANCE_BY_KEY, by the value of the first header of a name; messages without it go by their key.
pub const PACE_BALANCE_BY_HEADER: u32 = 4;

/// Settings of a subscription. Call pace_subscription_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_subscription_options_t {
    /// The size of the struct in bytes, as pace_subscription_options_init() sets it.
    pub struct_size: u32,
    /// Where the handler runs: PACE_EXECUTION_SERIAL (default) to PACE_EXECUTION_STRAND.
    pub execution: u32,
    /// For PACE_EXECUTION_CONCURRENT: 1 to 1024. Otherwise not looked at.
    pub threads: u32,
    /// PACE_OVERFLOW_: what happens to a message for a full mailbox. Default: PACE_OVERFLOW_DEFAULT, by which nothing is
    /// lost unseen.
    pub overflow: u32,
    /// How many messages may wait, 1 to 2^24. Default 1024.
    pub capacity: u64,
    /// For PACE_OVERFLOW_BLOCK: how long a publisher waits at most. Otherwise not looked at. Default: PACE_FOREVER.
    pub block_ns: u64,
    /// For a mailbox: the subscription ends when no thread has waited at its completion queue for so long, 1 ms to
    /// 100 years. Default 0: never.
    pub lease_ns: u64,
    /// Delivers messages by their priority. Default: in the order of publishing alone.
    pub by_priority: bool,
    /// For mailboxes of a host that runs a handler of its own: what was taken counts as running until the host says what
    /// became of it, by pace_mailbox_acknowledge() or pace_mailbox_bury(), and the subscription ends after the last.
    /// Default: what was taken counts as delivered.
    pub acknowledged: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 6],
    /// How a message that the handler fails at is tried again; a serial handler gets no other until then.
    /// For serial and concurrent execution. Default: not at all.
    pub retry: pace_retry_t,
    /// What then becomes of it: PACE_ON_EXHAUSTED_. Default: it becomes a dead letter.
    pub on_exhausted: u32,
    /// With within_ns: more restarts than so many, 0 to 100,000, or PACE_UNLIMITED32, in any such span
    /// suspend the subscription: what waits, and what comes, becomes dead letters until the suspension ends. A
    /// handler is restarted when it has answered PACE_EPANIC; other failures are no restarts.
    pub restarts: u32,
    /// 1 ns to 100 years. 0 (default): 3 restarts in 5 seconds, whatever `restarts` says.
    pub within_ns: u64,
    /// Counts restarts together with others, in place of the two above, suspension_ns and longest_suspension_ns.
    /// Default NULL: alone.
    pub supervisor: *const pace_supervisor_t,
    /// Called when the handler is restarted, with its user_data: after it has answered PACE_EPANIC, when
    /// another of its supervisor has, and after a suspension. Default NULL.
    pub on_restart: pace_restart_fn,
    /// Which messages come into the mailbox; it can be freed then. Default NULL: all.
    pub filter: *const pace_message_filter_t,
    /// Shares the messages with all subscriptions of this pattern that have the same group, 1 to 255 bytes:
    /// each goes to one of them. Not for inline and strand execution, nor with a filter. Default NULL: none.
    pub group: *const c_char,
    /// For PACE_BALANCE_BY_HEADER: the name of the header.
    pub balance_header: *const c_char,
    /// For PACE_BALANCE_RANDOM: the same seed gives the same sequence.
    pub balance_seed: u64,
    /// Which member gets a message: PACE_BALANCE_; all of a group have the same. Default: round robin.
    pub balance: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
    /// Measures how long messages take from publishing to the handler, or until they are brought: latencies of
    /// pace_subscription_stats_t, and of pace_hub_metrics(). Each thread that serves it takes 43 KB for that.
    /// The clock is that of the system; should it be set back, messages that wait then count as 0.
    /// PACE_EUNSUPPORTED without the feature `metrics`. Default: not measured, which costs nothing.
    pub measured: bool,
    /// Room for later versions; zero.
    pub reserved3: [u8; 7],
    /// How long the first suspension lasts, 1 ms to 100 years; each lasts twice as long as the one before, up to
    /// longest_suspension_ns, and is as short as the first again when the handler was sound for as long as the last
    /// suspension lasted. PACE_FOREVER: until pace_hub_resume(). 0 (default): 1 second.
    pub suspension_ns: u64,
    /// How long a suspension lasts at most, 1 ms to 100 years. 0 (default): 60 seconds, or suspension_ns if that is
    /// longer.
    pub longest_suspension_ns: u64,
    /// Refuses the subscription if its pattern has one of the same name, UTF-8, whatever language it was made in. It is
    /// copied. Default NULL: none.
    pub unique: *const c_char,
    /// Makes what the handler gets as its user_data: once before the call that subscribes returns, which is
    /// PACE_EFAILED if it fails then, and anew after each restart. So no handler is called again with what it had when
    /// it crashed. The user_data of that call is the factory's and on_restart's. For serial and strand execution.
    /// Default NULL: the handler gets the user_data of that call.
    pub factory: pace_factory_fn,
    /// Takes back what the factory has made: before another one is made, and when the subscription has ended, or could not
    /// be made. Default NULL.
    pub drop_handler: pace_drop_fn,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_subscription_options_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_subscription_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("by_priority", offset_of!(pace_subscription_options_t, by_priority)),
        ("acknowledged", offset_of!(pace_subscription_options_t, acknowledged)),
        ("measured", offset_of!(pace_subscription_options_t, measured)),
    ];
    const RESERVED: &'static [usize] = {
        const NEXT: usize = offset_of!(pace_subscription_options_t, reserved3);
        let last = [NEXT, NEXT + 1, NEXT + 2, NEXT + 3, NEXT + 4, NEXT + 5, NEXT + 6];
        &[42, 43, 44, 45, 46, 47, last[0], last[1], last[2], last[3], last[4], last[5], last[6]]
    };
}

pub(super) const DEFAULTS: pace_subscription_options_t = pace_subscription_options_t {
    struct_size: size_of::<pace_subscription_options_t>() as u32,
    execution: PACE_EXECUTION_SERIAL,
    threads: 1,
    overflow: PACE_OVERFLOW_DEFAULT,
    capacity: 1024,
    block_ns: PACE_FOREVER,
    lease_ns: 0,
    by_priority: false,
    acknowledged: false,
    reserved: [0; 6],
    retry: NO_RETRY,
    on_exhausted: PACE_ON_EXHAUSTED_DEAD_LETTER,
    restarts: 0,
    within_ns: 0,
    supervisor: ptr::null(),
    on_restart: None,
    filter: ptr::null(),
    group: ptr::null(),
    balance_header: ptr::null(),
    balance_seed: 0,
    balance: PACE_BALANCE_ROUND_ROBIN,
    reserved2: 0,
    measured: false,
    reserved3: [0; 7],
    suspension_ns: 0,
    longest_suspension_ns: 0,
    unique: ptr::null(),
    factory: None,
    drop_handler: None,
};

/// The counts of one subscription. Set struct_size to sizeof the struct before the call.
///
/// matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_subscription_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Publications that matched since it began.
    pub matched: u64,
    /// Messages that the handler has dealt with, or a completion queue has brought.
    pub delivered: u64,
    /// Messages that the handler failed at for good.
    pub failed: u64,
    /// Messages that have become dead letters.
    pub dead_lettered: u64,
    /// Messages that a full mailbox has dropped, or conflated.
    pub dropped: u64,
    /// Messages that a full mailbox has refused.
    pub rejected: u64,
    /// Messages that waited when the subscription ended.
    pub discarded: u64,
    /// Messages that wait in the mailbox now.
    pub waiting: u64,
    /// Messages that are being handled now, or are about to be.
    pub running: u64,
    /// Of those that matched, messages that were dead letters before.
    pub redelivered: u64,
    /// Publications of its pattern that its filters kept away; they do not count as matched.
    pub filtered: u64,
    /// How often it was restarted.
    pub restarts: u64,
    /// Its number, which no other subscription of its hub has or had; dead letters tell it.
    pub number: u64,
    /// Whether it is suspended now, because its handler has answered PACE_EPANIC too often.
    pub suspended: bool,
    /// Room for later versions; zero.
    pub reserved2: [u8; 7],
    /// Of `filtered`, those at which a test has failed.
    pub filter_failures: u64,
    /// If it is measured: how many messages have come to the handler, each attempt by itself, or were
    /// brought by a completion queue; otherwise 0, as what follows.
    pub latencies: u64,
    /// The mean latency: nanoseconds from publishing to the handler.
    pub latency_mean_ns: u64,
    /// The latency in nanoseconds that half of the messages did not exceed, to two significant digits.
    pub latency_p50_ns: u64,
    /// The latency in nanoseconds that 90 % of the messages did not exceed, to two significant digits.
    pub latency_p90_ns: u64,
    /// The latency in nanoseconds that 99 % of the messages did not exceed, to two significant digits.
    pub latency_p99_ns: u64,
    /// The latency in nanoseconds that 99.9 % of the messages did not exceed, to two significant digits.
    pub latency_p999_ns: u64,
    /// The longest latency of a message, in nanoseconds.
    pub latency_max_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_subscription_stats_t {
    const FIRST: usize = 104;
    const NAME: &'static str = "pace_subscription_stats_t";
}

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_subscription_options_init(
    options: InOut<pace_subscription_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Subscribes to a key ("orders.eu.created") or a pattern: `*` stands for one token, a final `>` for one
/// or more, and neither stands beside other characters of its token. `options` may be NULL: serial, 1024 messages. The handler may run before this returns.
/// `subscription` may be NULL: it lasts as long as the hub then. `drop` runs when the subscription has
/// ended and no handler runs.
///
/// PACE_EINVAL for a bad pattern or option, or a second subscription of the same `unique`; PACE_EFULL when
/// 2^20 subscriptions have names; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_subscribe(
    hub: Option<&pace_hub_t>,
    pattern: *const c_char,
    options: *const pace_subscription_options_t,
    handler: pace_message_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    subscription: Option<&mut MaybeUninit<pace_subscription_t>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        // SAFETY: as the header demands.
        let options = unsafe { read(options) }?;
        // SAFETY: as the header demands.
        let pattern = unsafe { pattern_of(pattern) }?;
        let handler = callback(handler, "handler")?;
        let to = optional_out(subscription);
        let alone = matches!(options.execution, PACE_EXECUTION_SERIAL | PACE_EXECUTION_STRAND);
        if options.factory.is_some() && !alone {
            let allowed = "PACE_EXECUTION_SERIAL or _STRAND with a factory";
            return Err(Failure::invalid("execution", options.execution, allowed));
        }
        // SAFETY: as the header demands.
        let mut builder = unsafe { configure(hub.hub.subscription(pattern), &options) }?;
        let entry = Named::default();
        let name = pace_subscription_t { id: hub.subscriptions.reserve()?.fill(entry.clone()) };
        let (registration, owner) = pair(user_data, drop);
        let owner = Arc::new(owner);
        if let Some(on_restart) = options.on_restart {
            // SAFETY: as the header demands, the function takes what came with it.
            builder = builder.on_restart(unsafe { restart_notifier(on_restart, &owner) });
        }
        let made = if let Some(make) = options.factory {
            // SAFETY: as the header demands, the functions take what came with them, and what this makes.
            unsafe { Factory::new(make, options.drop_handler, handler, &owner, name) }
                .serve(builder)
        } else {
            let run = move |message: &crate::hub::Message<'_>| {
                message::handle(handler, owner.data(), message, name)
            };
            let made = if alone { builder.serve(run) } else { builder.serve_shared(run) };
            made.map_err(Failure::from)
        };
        match made {
            Ok(made) => {
                entry.arrived(made);
                to.set(name);
                registration.keep();
                Ok(())
            }
            Err(error) => {
                let _nothing = hub.subscriptions.take(name.id);
                registration.give_back();
                Err(error)
            }
        }
    })
}

/// Ends a subscription, whose name is stale from then on. *ended, which may be NULL, says whether no
/// handler runs or will run, and `drop` has run; otherwise it runs after the last. `how` is
/// PACE_UNSUBSCRIBE_.
///
/// PACE_ESTALE, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there. It waits outside with PACE_UNSUBSCRIBE_SYNC.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_unsubscribe(
    hub: Option<&pace_hub_t>,
    subscription: pace_subscription_t,
    how: u32,
    ended: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = optional_out(ended);
        let how = way(how)?;
        let entry = hub.subscriptions.take(subscription.id)?;
        to.set(entry.unsubscribe(how)? == Unsubscribed::Now);
        Ok(())
    })
}

/// Ends a subscription as PACE_UNSUBSCRIBE_DRAIN does, and waits for up to `within_ns` until all that waits has
/// been handled, what waits for another attempt included. What is left then is discarded, and *discarded, which
/// may be NULL, says how many messages had not begun by then; a handler that still runs is not waited for. The
/// name is stale afterwards; until then it can be asked for its counts, and unsubscribed, which ends the drain.
///
/// PACE_ESTALE; PACE_EDEADLOCK inside a handler or on a thread of the pool: nothing has changed then.
///
/// Threads: any but the pool's. In handlers: no. It waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_subscription_drain(
    hub: Option<&pace_hub_t>,
    subscription: pace_subscription_t,
    within_ns: u64,
    discarded: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = optional_out(discarded);
        let entry = hub.subscriptions.with(subscription.id, Named::clone)?;
        let left = entry.drain(nanos(within_ns))?;
        // Somebody else may have unsubscribed it meanwhile.
        let _ended = hub.subscriptions.take(subscription.id);
        to.set(left);
        Ok(())
    })
}

/// Ends the suspension of a subscription now, and of all others of its supervisor: messages that come are
/// delivered again, and those that became dead letters stay so. *resumed, which may be NULL, says whether one
/// was suspended.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_resume(
    hub: Option<&pace_hub_t>,
    subscription: pace_subscription_t,
    resumed: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = optional_out(resumed);
        let entry = hub.subscriptions.with(subscription.id, Named::clone)?;
        to.set(entry.resume());
        Ok(())
    })
}

/// The counts of a subscription, as they are now.
///
/// PACE_ESTALE, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_subscription_stats(
    hub: Option<&pace_hub_t>,
    subscription: pace_subscription_t,
    stats: InOut<pace_subscription_stats_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let room = stats.room("stats")?;
        let entry = hub.subscriptions.with(subscription.id, Named::clone)?;
        room.fill(entry.counts());
        Ok(())
    })
}

pub(super) fn counts(
    stats: SubscriptionStats,
    number: u64,
    suspended: bool,
) -> pace_subscription_stats_t {
    pace_subscription_stats_t {
        struct_size: 0,
        reserved: 0,
        matched: stats.matched,
        delivered: stats.delivered,
        failed: stats.failed,
        dead_lettered: stats.dead_lettered,
        dropped: stats.dropped,
        rejected: stats.rejected,
        discarded: stats.discarded,
        waiting: stats.waiting,
        running: stats.running,
        redelivered: stats.redelivered,
        filtered: stats.filtered,
        restarts: stats.restarts,
        number,
        suspended,
        reserved2: [0; 7],
        filter_failures: stats.filter_panics,
        latencies: 0,
        latency_mean_ns: 0,
        latency_p50_ns: 0,
        latency_p90_ns: 0,
        latency_p99_ns: 0,
        latency_p999_ns: 0,
        latency_max_ns: 0,
    }
}

/// The counts, and the latencies of one that is measured.
pub(super) fn with_latency(
    counts: pace_subscription_stats_t,
    latency: Option<crate::metrics::Distribution>,
) -> pace_subscription_stats_t {
    let Some(latency) = latency else { return counts };
    let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
    let quantile = |part| nanos(latency.quantile(part));
    pace_subscription_stats_t {
        latencies: latency.count(),
        latency_mean_ns: nanos(latency.mean()),
        latency_p50_ns: quantile(0.5),
        latency_p90_ns: quantile(0.9),
        latency_p99_ns: quantile(0.99),
        latency_p999_ns: quantile(0.999),
        latency_max_ns: nanos(latency.max()),
        ..counts
    }
}

/// # Safety
///
/// As the header demands of options, which may be NULL.
pub(super) unsafe fn read(
    options: *const pace_subscription_options_t,
) -> Result<pace_subscription_options_t> {
    // SAFETY: as the caller promises.
    if options.is_null() { Ok(DEFAULTS) } else { unsafe { sized::read(options, "options") } }
}

/// # Safety
///
/// As the header demands of a text.
pub(super) unsafe fn pattern_of<'a>(pattern: *const c_char) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    unsafe { boundary::text(pattern, "pattern") }
}

/// None: the default.
pub(super) fn overflow_of(overflow: u32, block_ns: u64) -> Result<Option<Overflow>> {
    Ok(match overflow {
        PACE_OVERFLOW_REJECT => Some(Overflow::Reject),
        PACE_OVERFLOW_DROP_NEWEST => Some(Overflow::DropNewest),
        PACE_OVERFLOW_DROP_OLDEST => Some(Overflow::DropOldest),
        PACE_OVERFLOW_CONFLATE => Some(Overflow::Conflate),
        PACE_OVERFLOW_BLOCK => Some(Overflow::Block(nanos(block_ns))),
        PACE_OVERFLOW_DEFAULT => None,
        other => return Err(Failure::invalid("overflow", other, "PACE_OVERFLOW_")),
    })
}

/// # Safety
///
/// As the header demands of what the options point to, for `'a`.
pub(super) unsafe fn configure<'a>(
    builder: SubscriptionBuilder<'a>,
    options: &pace_subscription_options_t,
) -> Result<SubscriptionBuilder<'a>> {
    let execution = match options.execution {
        PACE_EXECUTION_SERIAL => Execution::Serial,
        PACE_EXECUTION_INLINE => Execution::Inline,
        PACE_EXECUTION_CONCURRENT => Execution::Concurrent(options.threads),
        PACE_EXECUTION_STRAND => Execution::Strand,
        other => return Err(Failure::invalid("execution", other, "PACE_EXECUTION_")),
    };
    let overflow = overflow_of(options.overflow, options.block_ns)?;
    let capacity = usize::try_from(options.capacity).unwrap_or(usize::MAX);
    let builder = builder.execution(execution).capacity(capacity);
    let builder = match overflow {
        Some(overflow) => builder.overflow(overflow),
        None => builder,
    };
    let builder = if options.by_priority { builder.by_priority() } else { builder };
    let builder = if options.measured { builder.measured() } else { builder };
    let builder = match options.unique.is_null() {
        true => builder,
        // SAFETY: not NULL, and as the caller promises.
        false => builder.unique(unsafe { boundary::text(options.unique, "unique") }?),
    };
    if options.reserved2 != 0 {
        return Err(Failure::invalid("reserved2", options.reserved2, "zero"));
    }
    let &pace_subscription_options_t {
        retry, on_exhausted, restarts, within_ns, supervisor, ..
    } = options;
    let &pace_subscription_options_t { suspension_ns, longest_suspension_ns, .. } = options;
    let times = Times { restarts, within_ns, suspension_ns, longest_suspension_ns };
    let care = Care { retry: &retry, on_exhausted, times, supervisor };
    let builder = builder.on_failure(care.policy()?);
    let builder = match care.intensity() {
        None => builder,
        Some(intensity) => builder.intensity(intensity),
    };
    // SAFETY: as the caller promises.
    let builder = match unsafe { care.supervisor() }? {
        None => builder,
        Some(supervisor) => builder.supervisor(supervisor),
    };
    let builder = match options.filter.is_null() {
        true => builder,
        // SAFETY: as the caller promises.
        false => builder.filter(unsafe { open_filter(options.filter, "filter") }?),
    };
    if options.group.is_null() {
        return Ok(builder);
    }
    let balance = match options.balance {
        PACE_BALANCE_ROUND_ROBIN => Balance::RoundRobin,
        PACE_BALANCE_LEAST_LOADED => Balance::LeastLoaded,
        PACE_BALANCE_RANDOM => Balance::Random(options.balance_seed),
        PACE_BALANCE_BY_KEY => Balance::ByKey,
        PACE_BALANCE_BY_HEADER => {
            // SAFETY: as the caller promises.
            let header = unsafe { boundary::text(options.balance_header, "balance_header") }?;
            Balance::ByHeader(header.into())
        }
        other => return Err(Failure::invalid("balance", other, "0 to 4 (PACE_BALANCE_)")),
    };
    // SAFETY: not NULL, and as the caller promises.
    Ok(builder.group(unsafe { boundary::text(options.group, "group") }?, balance))
}

pub(super) fn way(how: u32) -> Result<Unsubscribe> {
    match how {
        PACE_UNSUBSCRIBE_ASYNC => Ok(Unsubscribe::Async),
        PACE_UNSUBSCRIBE_DRAIN => Ok(Unsubscribe::Drain),
        PACE_UNSUBSCRIBE_SYNC => Ok(Unsubscribe::Sync),
        other => Err(Failure::invalid("how", other, "PACE_UNSUBSCRIBE_")),
    }
}

/// A subscription that has a name.
#[derive(Clone, Default)]
pub(super) struct Named(Arc<Mutex<Stage>>);

#[derive(Default)]
enum Stage {
    #[default]
    Coming,
    Unwanted(Unsubscribe),
    There(Subscription),
}

impl Named {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has been made.
    pub(super) fn arrived(&self, made: Subscription) {
        let before = replace(&mut *self.stage(), Stage::There(made));
        if let Stage::Unwanted(how) = before {
            // A handler has done this, so nobody waits; in a forked child nothing is to be done.
            let _later = self.unsubscribe(how);
        }
    }

    fn unsubscribe(&self, how: Unsubscribe) -> crate::Result<Unsubscribed> {
        let mut stage = self.stage();
        let made = match replace(&mut *stage, Stage::Unwanted(how)) {
            Stage::There(made) => made,
            Stage::Coming | Stage::Unwanted(_) => return Ok(Unsubscribed::Later),
        };
        drop(stage);
        let unsubscribed = made.unsubscribe(how)?;
        if how == Unsubscribe::Drain {
            // Dropped, it would discard what is being drained.
            made.detach();
        }
        Ok(unsubscribed)
    }

    /// How many messages were discarded.
    fn drain(&self, within: Duration) -> crate::Result<u64> {
        // The lock is not held meanwhile.
        let made = match &*self.stage() {
            Stage::There(made) => made.share(),
            // Its own handler runs it, in the call that makes it; or it was unsubscribed.
            Stage::Coming => return Err(crate::Error::WouldDeadlock),
            Stage::Unwanted(_) => return Ok(0),
        };
        made.drain(within)
    }

    fn counts(&self) -> pace_subscription_stats_t {
        match &*self.stage() {
            Stage::There(made) => {
                let counts = counts(made.stats(), made.id(), made.is_suspended());
                with_latency(counts, made.latency())
            }
            Stage::Coming | Stage::Unwanted(_) => counts(SubscriptionStats::default(), 0, false),
        }
    }

    fn resume(&self) -> bool {
        matches!(&*self.stage(), Stage::There(made) if made.resume())
    }
}
