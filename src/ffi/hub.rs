//! The event hub: keys and publishing.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Handle, Result, Text, call, call_void, consumed, nanos, out, usable,
};
use super::history::{history_of, pace_history_options_t};
use super::message::{lend, pace_publication_t, payload, payload_of, slice, terms};
use super::pool::pace_pool_t;
use super::registry::Registry;
use super::settings::{change, change_time, load};
use super::sized::{self, In, InOut, Room};
use super::status::*;
use super::subscription::Named;
use super::values::{pace_piece_t, pace_text_t};
use crate::admin::HubSettings;
use crate::hub::{Hub, HubBuilder, Key, Mode, Payload, Receipt};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;

/// Keyed publish/subscribe on a pool.
pub struct pace_hub_t {
    pub(super) hub: Hub,
    pub(super) subscriptions: Registry<Named>,
    /// Of its own figures alone.
    pub(super) figures: crate::metrics::Registry,
    /// What they are labelled with.
    pub(super) name: String,
}

/// A key of a hub that was looked up once. Publishing with it is faster than with its text.
pub struct pace_key_t {
    pub(super) hub: Hub,
    pub(super) key: Key,
}

/// Settings of a hub. Call pace_hub_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_hub_options_t {
    /// The size of the struct in bytes, as pace_hub_options_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The largest payload, 1 byte to 1 GiB. Default 16 MiB.
    pub max_payload: u64,
    /// How many dead letters are kept, 1 to 10,000,000; then the oldest is forgotten for the newest. 0
    /// (default): 10,000.
    pub dead_letters: u64,
    /// What is kept of its messages; queries and replays ask the first that keeps all they want. Default none.
    pub histories: *const pace_history_options_t,
    /// How many, up to 31.
    pub history_count: usize,
    /// The label `hub` of its figures, UTF-8. It is copied. NULL (default): "main".
    pub name: *const c_char,
    /// How many errors are kept for pace_hub_errors(), 1 to 1,000,000; then the oldest is forgotten for the
    /// newest. 0 (default): 1024.
    pub errors: u64,
    /// How often losses of the same kind are told under $SYS., 1 ms to 1 hour. 0 (default): each second. The
    /// first of a burst is told at once.
    pub notice_interval_ns: u64,
    /// Of so many keys, up to 1,000,000, it is counted how often each was published, and of others the sum.
    /// 0 (default): of none, which costs nothing.
    pub count_keys: u64,
    /// How often its statistics are published under $SYS.hub.statistics, and written to the log of the pool: 10 ms to
    /// 1 day. 0 (default): never.
    pub stats_interval_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_hub_options_t {
    const FIRST: usize = 16;
    const NAME: &'static str = "pace_hub_options_t";
    const RESERVED: &'static [usize] = &[4, 5, 6, 7];
}

const DEFAULTS: pace_hub_options_t = pace_hub_options_t {
    struct_size: size_of::<pace_hub_options_t>() as u32,
    reserved: 0,
    max_payload: 16 << 20,
    dead_letters: 0,
    histories: ptr::null(),
    history_count: 0,
    name: ptr::null(),
    errors: 0,
    notice_interval_ns: 0,
    count_keys: 0,
    stats_interval_ns: 0,
};

/// Publishing does not wait for room in mailboxes that let publishers wait: they refuse, and it answers PACE_EFULL. For
/// threads that must not be held up, as those of an event loop.
pub const PACE_PUBLISH_NO_WAIT: u32 = 1;
/// There is no receipt: `receipt` is NULL. What mailboxes drop, and what becomes dead letters because subscriptions are
/// suspended, is not seen by this publisher then. A message that is refused is an error still.
pub const PACE_PUBLISH_NO_RECEIPT: u32 = 2;
/// If publishing would have to wait for room, it publishes nothing and answers PACE_ETIMEDOUT at once.
/// pace_key_await_room() waits for room. For hosts that hold a lock of their own while they publish, which handlers
/// need.
pub const PACE_PUBLISH_TRY: u32 = 4;

/// All of PACE_PUBLISH_, and those of what publishes several.
pub(super) const ANY_FLAG: u32 = NO_TRY | PACE_PUBLISH_TRY;
pub(super) const NO_TRY: u32 = PACE_PUBLISH_NO_WAIT | PACE_PUBLISH_NO_RECEIPT;

/// What became of a publication at the moment of publishing. Set struct_size to sizeof the struct before
/// the call. Each subscription that matched is in exactly one of enqueued, dropped, rejected and
/// dead_lettered.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_receipt_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The message's number in its hub; of a batch, that of its last message.
    pub sequence: u64,
    /// Subscriptions whose pattern, and filters, it matched.
    pub matched: u64,
    /// Of these, those that will get it, or have got it (inline).
    pub enqueued: u64,
    /// Of these, those that have dropped it because their mailbox was full.
    pub dropped: u64,
    /// Of these, those that have refused it because their mailbox was full.
    pub rejected: u64,
    /// Of these, those that are suspended: it has become their dead letter.
    pub dead_lettered: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_receipt_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_receipt_t";
}

/// The counters of a hub. Set struct_size to sizeof the struct before the call. They balance, exactly,
/// whenever nothing is under way:
///
/// matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_hub_audit_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether every message that matched is accounted for.
    pub balances: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Messages that were published with any key.
    pub published: u64,
    /// The sum over all messages of the subscriptions that each matched.
    pub matched: u64,
    /// Of `matched`: messages that handlers have finished, or pullers have taken.
    pub delivered: u64,
    /// Of `matched`: messages that handlers have failed at, in the last attempt.
    pub failed: u64,
    /// Of `matched`: messages that have become dead letters.
    pub dead_lettered: u64,
    /// Of `matched`: messages that full mailboxes have dropped or conflated.
    pub dropped: u64,
    /// Of `matched`: messages that full mailboxes have refused.
    pub rejected: u64,
    /// Of `matched`: messages that waited when their subscription ended.
    pub discarded: u64,
    /// Of `matched`: messages that wait in mailboxes now.
    pub waiting: u64,
    /// Of `matched`: messages that are being handled now.
    pub running: u64,
    /// Of those that matched, dead letters that were delivered again.
    pub redelivered: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_hub_audit_t {
    const FIRST: usize = 96;
    const NAME: &'static str = "pace_hub_audit_t";
}

/// Called for each pattern that somebody subscribes to, with the number of its subscriptions.
pub type pace_pattern_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, pattern: pace_text_t, subscriptions: usize),
>;

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_options_init(
    options: InOut<pace_hub_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Changes options to what the section `hub` of a file of settings says, as pace_pool_config_load() does for
/// `pool`. Its histories are loaded by
/// pace_history_options_load().
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_options_load(
    options: InOut<pace_hub_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(options, path, environment, "options", |options, said| said_of(options, said.hub))
        }
    })
}

fn said_of(options: &mut pace_hub_options_t, hub: HubSettings) {
    change(&mut options.max_payload, hub.max_payload);
    change(&mut options.dead_letters, hub.dead_letters);
    change(&mut options.errors, hub.errors);
    change(&mut options.count_keys, hub.count_keys);
    change_time(&mut options.notice_interval_ns, hub.notice_interval);
    change_time(&mut options.stats_interval_ns, hub.stats_interval);
}

/// Makes a hub, whose handlers run on the pool. `options` may be NULL. The pool may be freed before the
/// hub.
///
/// PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN; PACE_EOS if an archive cannot be
/// opened, PACE_EUNSUPPORTED if the library was built without archives; PACE_EVERSION.
///
/// Threads: any. In handlers: yes; it may wait for the disk if it has an archive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_new(
    pool: Option<&pace_pool_t>,
    options: In<pace_hub_options_t>,
    hub: Option<&mut MaybeUninit<*mut pace_hub_t>>,
) -> pace_status_t {
    call(|| {
        let pool = &usable(pool)?.pool;
        let to = out(hub, "hub")?;
        let options = match options.is_null() {
            true => DEFAULTS,
            false => options.read("options")?,
        };
        let most = usize::try_from(options.max_payload).unwrap_or(usize::MAX);
        let builder = Hub::builder(pool).max_payload(most);
        let builder = match options.dead_letters {
            0 => builder,
            most => builder.dead_letters(usize::try_from(most).unwrap_or(usize::MAX)),
        };
        let mut builder = builder;
        // SAFETY: as the header demands.
        for history in unsafe { histories(&options) }? {
            // SAFETY: as the header demands.
            builder = builder.history(unsafe { history_of(history) }?);
        }
        builder = told(builder, &options);
        let name = match options.name.is_null() {
            true => "main".to_owned(),
            // SAFETY: not NULL, and as the header demands.
            false => unsafe { boundary::text(options.name, "name") }?.to_owned(),
        };
        let figures = crate::metrics::Registry::new();
        let builder = builder.metrics(&figures, &name);
        let hub = builder.build()?;
        let fork = hub.pool().shared().fork_guard();
        to.set(Box::into_raw(Box::new(pace_hub_t {
            hub,
            subscriptions: Registry::new(NAMES, fork),
            figures,
            name,
        })));
        Ok(())
    })
}

/// What a hub tells of itself.
fn told<'a>(builder: HubBuilder<'a>, options: &pace_hub_options_t) -> HubBuilder<'a> {
    let whole = |count| usize::try_from(count).unwrap_or(usize::MAX);
    let builder = builder.count_keys(whole(options.count_keys));
    let builder = match options.errors {
        0 => builder,
        most => builder.errors(whole(most)),
    };
    let builder = match options.notice_interval_ns {
        0 => builder,
        interval => builder.notice_interval(nanos(interval)),
    };
    match options.stats_interval_ns {
        0 => builder,
        interval => builder.stats_interval(nanos(interval)),
    }
}

/// The histories of a hub, each as large as the first says.
///
/// # Safety
///
/// As the header demands of the options.
unsafe fn histories(options: &pace_hub_options_t) -> Result<Vec<*const pace_history_options_t>> {
    let (first, count) = (options.histories, options.history_count);
    if count == 0 {
        return Ok(Vec::new());
    }
    boundary::check(first, "histories")?;
    if count > 31 {
        return Err(boundary::Failure::invalid("history_count", count, "up to 31"));
    }
    // SAFETY: not NULL, and as the caller promises.
    let size = unsafe { first.cast::<u32>().read() } as usize;
    // SAFETY: as the caller promises: an array of structs of this size.
    Ok((0..count).map(|place| unsafe { first.byte_add(place * size) }).collect())
}

/// The most subscriptions of C's that a hub has names for.
const NAMES: usize = 1 << 20;

/// Frees a hub, and unsubscribes all that have a name or were never given one. It waits until no handler of a
/// subscription that has a name runs and `drop` has run; of those without a name `drop` tells. Keys and mailboxes may be
/// freed later. Its histories are closed as by pace_hub_close_histories(). NULL is a no-op, and in a forked child nothing is
/// freed.
///
/// Threads: any, as long as no other uses the hub any more. In handlers, and on threads of the pool: yes, it never waits
/// there but for the disk.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_free(hub: Option<Box<pace_hub_t>>) {
    call_void(|| {
        if let Ok(freed) = consumed(hub) {
            let hub = freed.hub.clone();
            drop(freed);
            // Keys and mailboxes may have it for longer. What cannot be written is told by the log when they are gone.
            let _told_later = hub.close_histories();
        }
    });
}

/// Looks a key up. Keys are tokens with dots between them, without blanks, `*`, `>` and control
/// characters; those that begin with `$` are the hub's.
///
/// PACE_EINVAL for a bad key.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_key(
    hub: Option<&pace_hub_t>,
    text: Text,
    key: Option<&mut MaybeUninit<*mut pace_key_t>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = out(key, "key")?;
        let key = hub.hub.key(text.get("key")?)?;
        to.set(Box::into_raw(Box::new(pace_key_t { hub: hub.hub.clone(), key })));
        Ok(())
    })
}

/// The text of a key. It lives as long as the key.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_key_text(
    key: Option<&pace_key_t>,
    text: Option<&mut MaybeUninit<pace_text_t>>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        out(text, "text")?.set(lend(key.key.as_str()));
        Ok(())
    })
}

/// Frees a key. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the key any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_key_free(key: Option<Box<pace_key_t>>) {
    call_void(|| drop(consumed(key)));
}

/// Publishes `size` bytes, which are copied once, however many subscribe. `flags` is 0 or PACE_PUBLISH_. The receipt says
/// what became of the message with each subscription; it may be NULL with PACE_PUBLISH_NO_RECEIPT only.
///
/// It waits while a mailbox that lets publishers wait (PACE_OVERFLOW_BLOCK) is full, which is the default of handlers'
/// mailboxes; but not beyond the end of the pool, nor on a thread of any pool or in a handler, where it fails instead. If
/// a history on disk has no room it writes there, or waits for that, by default for up to 10 seconds (PACE_DISK_WAIT).
///
/// PACE_EFULL: a mailbox was full and has refused it, and pace_last_error() names it; all others have got it, which the
/// receipt says. Or, with a receipt in which `matched` is 0, a history on disk had no room, and nobody got it.
/// PACE_EINVAL for a payload beyond max_payload, and NULL for the receipt; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes; it waits there only if a history on disk has no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_publish(
    key: Option<&pace_key_t>,
    bytes: *const c_void,
    size: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        let (mode, room) = asked(flags, ANY_FLAG, receipt)?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        answer(room, key.hub.message(&key.key).payload(payload).if_full(mode).publish())
    })
}

/// Waits for up to `time_ns` until nobody who gets messages with the key would have a publisher wait for room; see
/// PACE_PUBLISH_TRY. `waited_ns`: for how long the same publication has waited before, 0 at first. On a thread of a pool
/// and in a handler it does not wait.
///
/// PACE_ETIMEDOUT; PACE_EFULL: with `waited_ns` it has waited for as long as a full mailbox has publishers wait
/// (`block_ns`), so that it is to be published with PACE_PUBLISH_NO_WAIT; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits there. It waits outside.
#[unsafe(no_mangle)]
pub extern "C" fn pace_key_await_room(
    key: Option<&pace_key_t>,
    time_ns: u64,
    waited_ns: u64,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        match key.hub.wait_for_room(&key.key, nanos(time_ns), nanos(waited_ns))? {
            true => Ok(()),
            false => Err(boundary::TIMED_OUT),
        }
    })
}

/// As pace_key_publish(), with the text of the key, which is looked up.
///
/// PACE_EINVAL for a bad key, or a payload beyond max_payload; PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_publish(
    hub: Option<&pace_hub_t>,
    key: Text,
    bytes: *const c_void,
    size: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let (mode, room) = asked(flags, ANY_FLAG, receipt)?;
        let key = key.get("key")?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        answer(room, hub.hub.message(key).payload(payload).if_full(mode).publish())
    })
}

/// As pace_key_publish(), with headers and a priority.
///
/// PACE_EINVAL, PACE_EFULL as pace_key_publish(), PACE_EVERSION, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_publish_with(
    key: Option<&pace_key_t>,
    publication: In<pace_publication_t>,
    bytes: *const c_void,
    size: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        let publication = publication.read("publication")?;
        let (mode, room) = asked(flags, ANY_FLAG, receipt)?;
        // SAFETY: as the header demands.
        let (priority, headers) = unsafe { terms(&publication) }?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        let message =
            key.hub.message(&key.key).priority(priority).headers(headers).payload(payload);
        answer(room, message.if_full(mode).publish())
    })
}

/// Publishes several messages of one key, in order. The receipt is the sum of theirs. `flags` is 0, PACE_PUBLISH_NO_WAIT
/// or PACE_PUBLISH_NO_RECEIPT.
///
/// PACE_EINVAL: nothing was published; PACE_EFULL: mailboxes have refused some, and the receipt says how many; or, with a
/// receipt in which `matched` is 0, a history on disk had no room for all of them, and those before were published;
/// PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_publish_batch(
    key: Option<&pace_key_t>,
    pieces: *const pace_piece_t,
    count: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        let (mode, room) = asked(flags, NO_TRY, receipt)?;
        // SAFETY: as the header demands.
        let payloads = unsafe { payloads(key, pieces, count) }?;
        answer(room, key.hub.publish_batch_as(&key.key, payloads, mode))
    })
}

/// Adds up all counters. Exact only while nothing is published and no handler runs; takes time with the
/// number of keys and subscriptions.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_audit(
    hub: Option<&pace_hub_t>,
    audit: InOut<pace_hub_audit_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let room = audit.room("audit")?;
        let audit = hub.hub.audit();
        room.fill(pace_hub_audit_t {
            struct_size: 0,
            balances: audit.is_balanced(),
            reserved: [0; 3],
            published: audit.published,
            matched: audit.matched,
            delivered: audit.delivered,
            failed: audit.failed,
            dead_lettered: audit.dead_lettered,
            dropped: audit.dropped,
            rejected: audit.rejected,
            discarded: audit.discarded,
            waiting: audit.waiting,
            running: audit.running,
            redelivered: audit.redelivered,
        });
        Ok(())
    })
}

/// How many subscriptions a key has, those of patterns included.
///
/// PACE_EINVAL for a bad key.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_subscriber_count(
    hub: Option<&pace_hub_t>,
    key: Text,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = out(count, "count")?;
        to.set(hub.hub.subscriber_count(key.get("key")?)?);
        Ok(())
    })
}

/// Calls `each` for every pattern that somebody subscribes to, sorted, in this thread.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_patterns(
    hub: Option<&pace_hub_t>,
    each: pace_pattern_fn,
    user_data: *mut c_void,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let each = boundary::callback(each, "each")?;
        for (pattern, count) in hub.hub.patterns() {
            // SAFETY: as the header demands, it takes what came with it.
            unsafe { each(user_data, lend(&pattern), count) }
        }
        Ok(())
    })
}

impl Handle for pace_hub_t {
    const NAME: &'static str = "hub";

    fn is_forked(&self) -> bool {
        self.hub.pool().shared().is_forked()
    }
}

/// The hub of an argument, in the process that made it.
///
/// # Safety
///
/// As the header demands of a hub.
pub(super) unsafe fn open<'a>(hub: *const pace_hub_t) -> Result<&'a pace_hub_t> {
    // SAFETY: as the caller promises.
    let hub = unsafe { boundary::borrow(hub, "hub") }?;
    if hub.hub.pool().shared().is_forked() { Err(FORKED) } else { Ok(hub) }
}

/// The payloads of a batch, each of which can be published.
///
/// # Safety
///
/// As the header demands of the pieces, which live for `'a`.
pub(super) unsafe fn payloads<'a>(
    key: &pace_key_t,
    pieces: *const pace_piece_t,
    count: usize,
) -> Result<impl Iterator<Item = Payload> + use<'a>> {
    // SAFETY: as the caller promises.
    let pieces: &'a [pace_piece_t] = unsafe { slice(pieces, count, "pieces") }?;
    for piece in pieces {
        if piece.size > 0 {
            boundary::check(piece.bytes, "the bytes of a piece")?;
        }
        key.hub.check_payload_size(piece.size)?;
    }
    // SAFETY: as the caller promises, and none is refused any more.
    Ok(pieces.iter().map(|piece| unsafe { payload_of(piece) }.unwrap_or_default()))
}

impl Handle for pace_key_t {
    const NAME: &'static str = "key";

    fn is_forked(&self) -> bool {
        self.hub.pool().shared().is_forked()
    }
}

/// # Safety
///
/// As the header demands of a key.
pub(super) unsafe fn open_key<'a>(key: *const pace_key_t) -> Result<&'a pace_key_t> {
    // SAFETY: as the caller promises.
    let key = unsafe { boundary::borrow(key, "key") }?;
    if key.hub.pool().shared().is_forked() { Err(FORKED) } else { Ok(key) }
}

/// Where a receipt goes, if there is one.
pub(super) fn room(receipt: InOut<pace_receipt_t>) -> Result<Option<Room<pace_receipt_t>>> {
    if receipt.is_null() { Ok(None) } else { receipt.room("receipt").map(Some) }
}

/// What a publication's flags, of which these are allowed, say of full mailboxes.
pub(super) fn mode_of(flags: u32, allowed: u32) -> Result<Mode> {
    if flags & !allowed != 0 {
        return Err(boundary::Failure::invalid("flags", flags, "0 or PACE_PUBLISH_"));
    }
    Ok(match flags {
        flags if flags & PACE_PUBLISH_TRY != 0 => Mode::Try,
        flags if flags & PACE_PUBLISH_NO_WAIT != 0 => Mode::NoWait,
        _ => Mode::Wait,
    })
}

/// What a publication's flags, of which these are allowed, and its receipt say.
pub(super) fn asked(
    flags: u32,
    allowed: u32,
    receipt: InOut<pace_receipt_t>,
) -> Result<(Mode, Option<Room<pace_receipt_t>>)> {
    let mode = mode_of(flags, allowed)?;
    if flags & PACE_PUBLISH_NO_RECEIPT == 0 {
        receipt.check("receipt")?;
    }
    let room = room(receipt)?;
    Ok((mode, room))
}

/// Fills in what became of a publication, if it has a receipt, and says whether it has failed.
pub(super) fn answer(
    room: Option<Room<pace_receipt_t>>,
    published: crate::Result<Receipt>,
) -> Result<()> {
    fill(room, Receipt::of(&published).unwrap_or_default());
    let _ = published?;
    Ok(())
}

fn fill(room: Option<Room<pace_receipt_t>>, receipt: Receipt) {
    if let Some(room) = room {
        room.fill(pace_receipt_t {
            struct_size: 0,
            reserved: 0,
            sequence: receipt.sequence,
            matched: receipt.matched,
            enqueued: receipt.enqueued,
            dropped: receipt.dropped,
            rejected: receipt.rejected,
            dead_lettered: receipt.dead_lettered,
        });
    }
}
