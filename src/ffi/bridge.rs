//! Bridges: keys of a hub, between processes, over a NATS broker.
//!
//! Without the feature `nats` no bridge can be made, so that the functions of bridges have no body then ([`of_nats`]).
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]
#![cfg_attr(
    not(feature = "nats"),
    allow(dead_code, unused_imports, unused_variables, reason = "there is no bridge then")
)]

use super::boundary::{
    Failure, Handle, Result, Text, call, call_void, callback, consumed, nanos, optional_out, out,
    usable,
};
use super::bridge_options::{
    EXPORT, IMPORT, pace_bridge_export_options_t, pace_bridge_import_options_t,
    pace_bridge_options_t,
};
#[cfg(feature = "nats")]
use super::bridge_options::{export_of, import_of, optional, settings_of, whole};
use super::callback::pace_drop_fn;
use super::hub::{PACE_PUBLISH_NO_WAIT, PACE_PUBLISH_TRY, mode_of, pace_hub_t};
use super::message::{NOTHING, PLAIN, lend, pace_publication_t, payload, terms};
use super::owner::pair;
#[cfg(feature = "nats")]
use super::settings::of_files;
use super::sized::{self, In, InOut};
use super::status::*;
use super::values::pace_text_t;
use super::work_stats::give;
#[cfg(feature = "nats")]
use crate::bridge::{Bridge, BridgeBuilder, PendingStore};
#[cfg(feature = "nats")]
use crate::error::Error;
use crate::hub::Hub;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Carries keys between the hubs of several processes and hosts, over a NATS broker that people run already.
pub struct pace_bridge_t {
    hub: Hub,
    /// Until it is open.
    #[cfg(feature = "nats")]
    builder: Mutex<Option<BridgeBuilder>>,
    #[cfg(feature = "nats")]
    open: OnceLock<Open>,
}

/// A message that was published, and that the broker is to store.
pub struct pace_pending_store_t {
    hub: Hub,
    /// None: its end is told to a function.
    #[cfg(feature = "nats")]
    pending: Mutex<Option<Arc<PendingStore>>>,
}

/// How a bridge is, and what it has carried. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_bridge_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether the bridge is connected to a broker now.
    pub connected: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// How often the bridge has connected to a broker.
    pub connects: u64,
    /// Requests that wait for a reply from elsewhere.
    pub requests_out: u64,
    /// Requests from elsewhere that wait for a reply of this hub.
    pub requests_in: u64,
    /// Messages from the broker that came while the buffer of their import was full.
    pub lost: u64,
    /// The number of its exports, for pace_bridge_export_stats().
    pub exports: u64,
    /// The number of its imports, for pace_bridge_import_stats().
    pub imports: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_stats_t {
    const FIRST: usize = 56;
    const NAME: &'static str = "pace_bridge_stats_t";
}

/// What became of the messages of one export. Set struct_size to sizeof the struct before the call. Its texts live as long
/// as the bridge.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_bridge_export_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The pattern of its keys.
    pub pattern: pace_text_t,
    /// The stream that stores its messages; stream.text is NULL with at most once.
    pub stream: pace_text_t,
    /// Messages that wait for the broker; with a spool, records of its history that it has not looked at, those of other keys
    /// included.
    pub waiting: u64,
    /// Messages that were handed to the connection.
    pub sent: u64,
    /// At least once: those that the broker has stored.
    pub stored: u64,
    /// At least once: those that were sent and of which the broker has not said that they are stored.
    pub in_flight: u64,
    /// At least once: how often one was sent again.
    pub sent_again: u64,
    /// Messages that a full buffer has dropped or refused.
    pub dropped: u64,
    /// Messages that the broker does not take: they are larger than it allows, or the stream has refused them for good.
    pub refused: u64,
    /// Requests that nobody waited for any more when their turn came.
    pub late: u64,
    /// Messages that another process has published: they do not go out again.
    pub turned_back: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_export_stats_t {
    const FIRST: usize = 112;
    const NAME: &'static str = "pace_bridge_export_stats_t";
}

/// What became of the messages of one import. Set struct_size to sizeof the struct before the call. Its texts live as long
/// as the bridge.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_bridge_import_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The pattern of its keys.
    pub pattern: pace_text_t,
    /// The stream that its messages are taken from; stream.text is NULL with at most once.
    pub stream: pace_text_t,
    /// Messages that were published in the hub.
    pub published: u64,
    /// At least once: those that were acknowledged.
    pub acknowledged: u64,
    /// At least once: those that the hub has, and that are not acknowledged.
    pub in_flight: u64,
    /// At least once: how often the broker was asked to send one again.
    pub again: u64,
    /// At least once: those that have become dead letters past the last attempt.
    pub dead: u64,
    /// At least once: those that the stream has for it still, when last heard of.
    pub lag: u64,
    /// Messages that came before within the window.
    pub duplicates: u64,
    /// Messages that this hub has published itself.
    pub turned_back: u64,
    /// Messages that the hub does not take: too large, too many headers, a subject that is no key.
    pub refused: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_import_stats_t {
    const FIRST: usize = 112;
    const NAME: &'static str = "pace_bridge_import_stats_t";
}

/// Called once when the broker has stored a message, or never will: with what pace_pending_store_wait() answers, for which
/// pace_last_error() has the reason. On the thread of the bridge, which carries nothing meanwhile.
pub type pace_stored_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, status: pace_status_t)>;

/// What a function of a bridge does, if the library was built with the feature.
macro_rules! of_nats {
    ($body:block) => {{
        #[cfg(not(feature = "nats"))]
        {
            let text = "the library was built without the feature `nats`";
            Err(Failure::told(PACE_EUNSUPPORTED, text.to_owned()))
        }
        #[cfg(feature = "nats")]
        $body
    }};
}
pub(super) use of_nats;

/// Makes a bridge between a hub and a broker, which carries nothing before it has rules, pace_bridge_export() and
/// pace_bridge_import(), and is open: pace_bridge_open(). It may outlive the hub's pointer.
///
/// PACE_EUNSUPPORTED: the library was built without the feature `nats`. PACE_EINVAL names the setting; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_new(
    hub: Option<&pace_hub_t>,
    options: In<pace_bridge_options_t>,
    bridge: Option<&mut MaybeUninit<*mut pace_bridge_t>>,
) -> pace_status_t {
    call(|| {
        let hub = &usable(hub)?.hub;
        let options = options.read("options")?;
        let to = out(bridge, "bridge")?;
        of_nats!({
            // SAFETY: as the header demands.
            let mut builder = Bridge::nats(hub, unsafe { settings_of(&options) }?)
                .window(nanos(options.window_ns), whole(options.window_count));
            // SAFETY: as the header demands.
            if let Some(name) = unsafe { optional(options.name, "name") }? {
                builder = builder.name(name);
            }
            to.set(boxed(hub, builder));
            Ok(())
        })
    })
}

#[cfg(feature = "nats")]
fn boxed(hub: &Hub, builder: BridgeBuilder) -> *mut pace_bridge_t {
    Box::into_raw(Box::new(pace_bridge_t {
        hub: hub.clone(),
        builder: Mutex::new(Some(builder)),
        open: OnceLock::new(),
    }))
}

/// Makes a bridge as the section `bridge` of files of settings says, with its rules: JSON or YAML files by their names, of
/// which later ones win. With `environment` the variables of this process win over them. The program may add rules, and
/// opens the bridge: pace_bridge_open(). The texts are copied.
///
/// PACE_EINVAL tells all that is wrong in the settings, each with its file, key and value, and that bridge.servers is not
/// set; PACE_EUNSUPPORTED: the library was built without the feature `nats`.
///
/// Threads: any. In handlers: yes; it reads files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_load(
    hub: Option<&pace_hub_t>,
    settings: *const *const c_char,
    count: usize,
    environment: bool,
    bridge: Option<&mut MaybeUninit<*mut pace_bridge_t>>,
) -> pace_status_t {
    call(|| {
        let hub = &usable(hub)?.hub;
        let to = out(bridge, "bridge")?;
        of_nats!({
            // SAFETY: as the header demands.
            let settings = unsafe { of_files(settings, count, environment) }?;
            let builder = BridgeBuilder::from_settings(hub, &settings)?
                .ok_or_else(|| Error::invalid("bridge.servers", "unset", "set"))?;
            to.set(boxed(hub, builder));
            Ok(())
        })
    })
}

/// Carries the keys that the pattern matches from the hub to the broker: each message goes to every other process that
/// imports its key. A key that several exports match goes out by each. `options` may be NULL: at most once.
///
/// PACE_EINVAL if the bridge is open already; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_export(
    bridge: Option<&pace_bridge_t>,
    pattern: Text,
    options: In<pace_bridge_export_options_t>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let pattern = pattern.get("pattern")?;
        let options = if options.is_null() { EXPORT } else { options.read("options")? };
        of_nats!({
            // SAFETY: as the header demands.
            let rule = unsafe { export_of(pattern, &options) }?;
            bridge.change(|builder| builder.export(rule))
        })
    })
}

/// Carries the keys that the pattern matches from the broker to the hub, as if a local publisher published them. `options`
/// may be NULL: at most once, to each process that imports them.
///
/// PACE_EINVAL if the bridge is open already; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_import(
    bridge: Option<&pace_bridge_t>,
    pattern: Text,
    options: In<pace_bridge_import_options_t>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let pattern = pattern.get("pattern")?;
        let options = if options.is_null() { IMPORT } else { options.read("options")? };
        of_nats!({
            // SAFETY: as the header demands.
            let rule = unsafe { import_of(pattern, &options) }?;
            bridge.change(|builder| builder.import(rule))
        })
    })
}

/// Refuses rules whose keys are not all matched by a pattern that is permitted: for rules that come from elsewhere than the
/// program. Without this all keys are permitted, but for the hub's own and inboxes, which never cross.
///
/// PACE_EINVAL if the bridge is open already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_permit(
    bridge: Option<&pace_bridge_t>,
    pattern: Text,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let pattern = pattern.get("pattern")?;
        of_nats!({ bridge.change(|builder| builder.permit(pattern)) })
    })
}

/// Opens a bridge: subscribes in the hub, and begins to connect, on a thread of its own. It does not wait for the broker,
/// which may come later. If it fails, it may be tried again.
///
/// PACE_EINVAL names the address, pattern or setting, its value and what would be right, also without a rule, and if the
/// bridge is open already; PACE_EOS if the thread cannot be created; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_open(bridge: Option<&pace_bridge_t>) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        of_nats!({
            let mut builder = bridge.builder.lock().unwrap_or_else(PoisonError::into_inner);
            let made = builder.clone().ok_or(OPEN)?.open()?;
            *builder = None;
            bridge.open.get_or_init(|| Open::new(made));
            Ok(())
        })
    })
}

/// Waits until a bridge is connected, for up to `timeout_ns`. Nothing needs that: what is published before waits.
///
/// PACE_ETIMEDOUT; PACE_ESHUTDOWN if the bridge has ended; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_wait_connected(
    bridge: Option<&pace_bridge_t>,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        of_nats!({ Ok(bridge.open()?.bridge.wait_connected(nanos(timeout_ns))?) })
    })
}

/// Publishes a message in the hub, and says when the broker has stored it: *pending, which is to be freed. Local subscribers
/// do not wait for that. The key needs an export at least once that drops nothing. `publication` may be NULL. `flags` is 0,
/// PACE_PUBLISH_NO_WAIT or PACE_PUBLISH_TRY.
///
/// PACE_EINVAL for a bad key or payload, a key without such an export, and before the bridge is open; PACE_EFULL: the buffer
/// of an export, or a mailbox of the hub, was full and has refused it; PACE_ETIMEDOUT with PACE_PUBLISH_TRY; PACE_EVERSION,
/// PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_publish(
    bridge: Option<&pace_bridge_t>,
    key: Text,
    publication: In<pace_publication_t>,
    bytes: *const c_void,
    size: usize,
    flags: u32,
    pending: Option<&mut MaybeUninit<*mut pace_pending_store_t>>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let mode = mode_of(flags, PACE_PUBLISH_NO_WAIT | PACE_PUBLISH_TRY)?;
        let key = key.get("key")?;
        let publication =
            if publication.is_null() { PLAIN } else { publication.read("publication")? };
        let to = out(pending, "pending")?;
        // SAFETY: as the header demands.
        let (priority, headers) = unsafe { terms(&publication) }?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        of_nats!({
            let message = bridge.hub.message(key).priority(priority).headers(headers);
            let message = message.payload(payload).if_full(mode);
            let pending = bridge.open()?.bridge.publish(message)?;
            to.set(Box::into_raw(Box::new(pace_pending_store_t {
                hub: bridge.hub.clone(),
                pending: Mutex::new(Some(Arc::new(pending))),
            })));
            Ok(())
        })
    })
}

/// Waits for up to `timeout_ns` until the broker has stored a message. Several threads may.
///
/// PACE_ETIMEDOUT: it is not stored yet, and will be; pace_last_error() says why, if that is known. PACE_EINVAL: the stream does not take it, for the reason that
/// pace_last_error() says. PACE_ESHUTDOWN: the bridge has ended before. PACE_EBUSY: a function is called for it,
/// pace_pending_store_then().
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pending_store_wait(
    pending: Option<&pace_pending_store_t>,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let pending = usable(pending)?;
        of_nats!({
            // The lock is not held while it waits.
            let waited = pending.lock().as_ref().map(Arc::clone).ok_or(TOLD)?;
            Ok(waited.wait(nanos(timeout_ns))?)
        })
    })
}

/// Has a function called when the broker has stored a message, or never will; at once, in this thread, if that is known.
/// `drop` runs after it. The handle is to be freed in any case, also before the function is called.
///
/// PACE_EBUSY: another thread waits for it, or a function is called for it already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pending_store_then(
    pending: Option<&pace_pending_store_t>,
    stored: pace_stored_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let pending = usable(pending)?;
        let stored = callback(stored, "stored")?;
        of_nats!({
            let mut place = pending.lock();
            let mine = Arc::try_unwrap(place.take().ok_or(TOLD)?);
            let mine = mine.map_err(|shared| {
                *place = Some(shared);
                Failure::plain(PACE_EBUSY, c"another thread waits for this message already")
            })?;
            core::mem::drop(place);
            let (registration, owner) = pair(user_data, drop);
            mine.then(move |end| {
                // The reason is left for pace_last_error() of this thread.
                let status = call(|| end.map_err(Failure::from));
                if let Some(data) = owner.enter() {
                    // SAFETY: as the header demands, the function takes what came with it.
                    unsafe { stored(data, status) }
                }
            });
            registration.keep();
            Ok(())
        })
    })
}

/// Frees what pace_bridge_publish() gave. The message is not called back: it is stored all the same. NULL is a no-op, and in
/// a forked child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pending_store_free(pending: Option<Box<pace_pending_store_t>>) {
    call_void(|| drop(consumed(pending)));
}

/// Waits until all that was published before is handed to the connection, and, at least once, stored by the broker: for up
/// to `timeout_ns`.
///
/// PACE_ETIMEDOUT; PACE_ESHUTDOWN if the bridge has ended; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_flush(
    bridge: Option<&pace_bridge_t>,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        of_nats!({ Ok(bridge.open()?.bridge.flush(nanos(timeout_ns))?) })
    })
}

/// How a bridge is, and what it has carried. Exact while nothing is under way.
///
/// PACE_EINVAL before it is open; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_stats(
    bridge: Option<&pace_bridge_t>,
    stats: InOut<pace_bridge_stats_t>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let room = stats.room("stats")?;
        of_nats!({
            room.fill(stats_of(&bridge.open()?.bridge.stats()));
            Ok(())
        })
    })
}

/// The name of the server that a bridge is connected to, or was last, as text that ends with NUL; before it has connected,
/// nothing but that. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size` is less. `text` may be
/// NULL if `size` is 0.
///
/// PACE_EFULL; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_server(
    bridge: Option<&pace_bridge_t>,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let needed = out(needed, "needed")?;
        of_nats!({
            let server = bridge.open()?.bridge.stats().server;
            // SAFETY: as the header demands.
            unsafe { give(&server, text, size, needed) }
        })
    })
}

/// Why a bridge is not connected, or what the broker has refused last; nothing if all is well. Otherwise as
/// pace_bridge_server().
///
/// PACE_EFULL; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_bridge_reason(
    bridge: Option<&pace_bridge_t>,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let needed = out(needed, "needed")?;
        of_nats!({
            let reason = bridge.open()?.bridge.stats().reason.unwrap_or_default();
            // SAFETY: as the header demands.
            unsafe { give(&reason, text, size, needed) }
        })
    })
}

/// What became of the messages of an export: 0 is the first that pace_bridge_export() was given.
///
/// PACE_EINVAL for an index that is too large, and before the bridge is open; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_export_stats(
    bridge: Option<&pace_bridge_t>,
    index: usize,
    stats: InOut<pace_bridge_export_stats_t>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let room = stats.room("stats")?;
        of_nats!({
            let open = bridge.open()?;
            let rule = at(&open.exports, index, "exports")?;
            let now = open.bridge.stats();
            let now = at(&now.exports, index, "exports")?;
            room.fill(pace_bridge_export_stats_t {
                struct_size: 0,
                reserved: 0,
                pattern: lend(&rule.pattern),
                stream: rule.stream.as_deref().map_or(NOTHING, lend),
                waiting: now.waiting,
                sent: now.sent,
                stored: now.stored,
                in_flight: now.in_flight,
                sent_again: now.sent_again,
                dropped: now.dropped,
                refused: now.refused,
                late: now.late,
                turned_back: now.turned_back,
            });
            Ok(())
        })
    })
}

/// What became of the messages of an import: 0 is the first that pace_bridge_import() was given.
///
/// PACE_EINVAL for an index that is too large, and before the bridge is open; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_import_stats(
    bridge: Option<&pace_bridge_t>,
    index: usize,
    stats: InOut<pace_bridge_import_stats_t>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let room = stats.room("stats")?;
        of_nats!({
            let open = bridge.open()?;
            let rule = at(&open.imports, index, "imports")?;
            let now = open.bridge.stats();
            let now = at(&now.imports, index, "imports")?;
            room.fill(pace_bridge_import_stats_t {
                struct_size: 0,
                reserved: 0,
                pattern: lend(&rule.pattern),
                stream: rule.stream.as_deref().map_or(NOTHING, lend),
                published: now.published,
                acknowledged: now.acknowledged,
                in_flight: now.in_flight,
                again: now.again,
                dead: now.dead,
                lag: now.lag,
                duplicates: now.duplicates,
                turned_back: now.turned_back,
                refused: now.refused,
            });
            Ok(())
        })
    })
}

/// Ends a bridge: it takes nothing more from the broker, sends what waits, waits until the hub has dealt with what it has
/// taken, and acknowledges that; for up to `timeout_ns`. What is not acknowledged then comes again, to any process of the
/// same durable name; what waits to be sent is lost, and *left, which may be NULL, says how many that are: 0 as a rule.
///
/// PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_close(
    bridge: Option<&pace_bridge_t>,
    timeout_ns: u64,
    left: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let bridge = usable(bridge)?;
        let to = optional_out(left);
        of_nats!({
            to.set(bridge.open()?.bridge.close(nanos(timeout_ns)));
            Ok(())
        })
    })
}

/// Frees a bridge. One that is open and was not closed ends as by pace_bridge_close() with 2 seconds. NULL is a no-op, and in
/// a forked child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: no. It blocks while messages wait.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_free(bridge: Option<Box<pace_bridge_t>>) {
    call_void(|| drop(consumed(bridge)));
}

const OPEN: Failure = Failure::plain(PACE_EINVAL, c"the bridge is open already");
const NOT_OPEN: Failure = Failure::plain(PACE_EINVAL, c"the bridge is not open yet");
const TOLD: Failure = Failure::plain(PACE_EBUSY, c"a function is called for this message already");

impl Handle for pace_bridge_t {
    const NAME: &'static str = "bridge";

    fn is_forked(&self) -> bool {
        self.hub.pool().shared().is_forked()
    }
}

impl Handle for pace_pending_store_t {
    const NAME: &'static str = "pending";

    fn is_forked(&self) -> bool {
        self.hub.pool().shared().is_forked()
    }
}

#[cfg(feature = "nats")]
pub(super) fn stats_of(now: &crate::bridge::BridgeStats) -> pace_bridge_stats_t {
    pace_bridge_stats_t {
        struct_size: 0,
        connected: now.connected,
        reserved: [0; 3],
        connects: now.connects,
        requests_out: now.requests_out,
        requests_in: now.requests_in,
        lost: now.lost,
        exports: now.exports.len() as u64,
        imports: now.imports.len() as u64,
    }
}

/// A bridge that is open, and the texts of its rules.
#[cfg(feature = "nats")]
struct Open {
    bridge: Bridge,
    exports: Vec<Rule>,
    imports: Vec<Rule>,
}

struct Rule {
    pattern: String,
    stream: Option<String>,
}

#[cfg(feature = "nats")]
impl Open {
    fn new(bridge: Bridge) -> Self {
        let stats = bridge.stats();
        let rule = |(pattern, stream)| Rule { pattern, stream };
        let exports = stats.exports.into_iter().map(|export| (export.pattern, export.stream));
        let imports = stats.imports.into_iter().map(|import| (import.pattern, import.stream));
        Self { exports: exports.map(rule).collect(), imports: imports.map(rule).collect(), bridge }
    }
}

#[cfg(feature = "nats")]
impl pace_bridge_t {
    fn open(&self) -> Result<&Open> {
        self.open.get().ok_or(NOT_OPEN)
    }

    fn change(&self, change: impl FnOnce(BridgeBuilder) -> BridgeBuilder) -> Result {
        let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        *builder = Some(change(builder.take().ok_or(OPEN)?));
        Ok(())
    }
}

#[cfg(feature = "nats")]
impl pace_pending_store_t {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<PendingStore>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at<'a, T>(list: &'a [T], index: usize, name: &str) -> Result<&'a T> {
    list.get(index).ok_or_else(|| {
        let allowed = format!("less than the number of {name}, {}", list.len());
        Failure::invalid("index", index, &allowed)
    })
}
