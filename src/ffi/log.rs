//! The structured log: what all components tell, to a callback, a file that is rotated, or the host of a completion queue.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Failure, Out, Result, call, call_void, nanos};
use super::callback::pace_drop_fn;
use super::owner::pair;
use super::settings::{change, change_text, load};
use super::sized::{self, InOut, Room};
use super::status::*;
use crate::Error;
use crate::admin::LogSettings;
use crate::log::{Component, Level, Levels, Log, Record, Value};
use crate::queue::Outbox;
use crate::sys::fork::ForkGuard;
use core::cell::RefCell;
use core::ffi::{c_char, c_void};
use core::ptr;
use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::UNIX_EPOCH;

/// As a level: nothing is told.
pub const PACE_LOG_OFF: u32 = 0;
/// Something does not work.
pub const PACE_LOG_ERROR: u32 = 1;
/// Something was lost, refused or late, or will be.
pub const PACE_LOG_WARN: u32 = 2;
/// Something began, ended or changed, as it was asked to.
pub const PACE_LOG_INFO: u32 = 3;
/// One request, connection or task did not get what it wanted.
pub const PACE_LOG_DEBUG: u32 = 4;
/// Steps of the library's own.
pub const PACE_LOG_TRACE: u32 = 5;

/// The pool: its threads, its handlers, its end.
pub const PACE_LOG_POOL: u32 = 0;
/// Listeners, connections and datagram sockets.
pub const PACE_LOG_NET: u32 = 1;
/// The HTTP server.
pub const PACE_LOG_HTTP: u32 = 2;
/// Worker pools.
pub const PACE_LOG_TASK: u32 = 3;
/// Hubs: subscriptions, publishers, thresholds.
pub const PACE_LOG_HUB: u32 = 4;
/// Histories of hubs, and their archives.
pub const PACE_LOG_HISTORY: u32 = 5;
/// Webhooks.
pub const PACE_LOG_WEBHOOK: u32 = 6;
/// What systemd is told.
pub const PACE_LOG_SERVICE: u32 = 7;
/// The log itself.
pub const PACE_LOG_LOG: u32 = 8;

/// A field has its value in u64: a count, an identifier, a time in nanoseconds.
pub const PACE_LOG_U64: u32 = 0;
/// In i64: a number that may be negative.
pub const PACE_LOG_I64: u32 = 1;
/// In f64: a figure.
pub const PACE_LOG_F64: u32 = 2;
/// In text.
pub const PACE_LOG_TEXT: u32 = 3;

/// A field of a record.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_log_field_t {
    /// Its name. Times end in _ns, and are in nanoseconds.
    pub name: *const c_char,
    /// Where its value is: PACE_LOG_U64 …
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
    /// The value, or zero.
    pub u64: u64,
    /// The value, or zero.
    pub i64: i64,
    /// The value, or zero.
    pub f64: f64,
    /// The value, or NULL.
    pub text: *const c_char,
}

/// Something that a component tells. Texts are UTF-8; what was NUL in them is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_log_record_t {
    /// When, since 1970 (UTC).
    pub time_ns: u64,
    /// How much it matters: PACE_LOG_ERROR …
    pub level: u32,
    /// Who tells it: PACE_LOG_POOL …
    pub component: u32,
    /// What happened: a name that stays, as "accept.paused".
    pub event: *const c_char,
    /// The name of the pool that it happened in.
    pub pool: *const c_char,
    /// For people: a sentence without the fields.
    pub message: *const c_char,
    /// What belongs to it.
    pub fields: *const pace_log_field_t,
    /// How many fields.
    pub field_count: usize,
}

/// Called for each record, on the log's own thread. What it points to is good during the call. What it causes
/// itself is not logged, or it might never end.
pub type pace_log_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, record: *const pace_log_record_t)>;

/// Settings of a log. Call pace_log_config_init(), change what you like, call pace_log_new().
#[repr(C)]
pub struct pace_log_config_t {
    /// Set by pace_log_config_init().
    pub struct_size: u32,
    /// How many records may wait to be told, 1 to 2^20, rounded up to a power of two. Default 8192. What comes
    /// while so many wait is dropped, counted, and told by a record "log.dropped".
    pub capacity: u32,
    /// Which records are made: "info,net=debug,hub=off". A level for all, then those of components that differ;
    /// what comes later wins. NULL: "info".
    pub levels: *const c_char,
    /// The file that lines of JSON are appended to: UTF-8, and copied. NULL (default): none. Several logs may write
    /// one file, in one process or in several. A character device, a pipe and what a link in /proc leads to, as
    /// /dev/stdout, are written and never rotated; a directory, a block device and a socket are refused.
    pub file: *const c_char,
    /// How large the file may become, 1 KiB to 1 TiB; then it is renamed to file.1, that to file.2, and so
    /// on. Default 64 MiB.
    pub max_size: u64,
    /// How many files are kept, the one that is written included: 1 to 1000. Default 4.
    pub files: u32,
    /// How many records may wait for a completion queue (pace_cq_log), up to 2^20; 0 (default): none can be attached.
    /// What comes while so many wait is lost to it, and counted as dropped.
    pub cq_capacity: u32,
    /// Told of each record. NULL (default): nobody is.
    pub on_record: pace_log_fn,
    /// What it is given.
    pub user_data: *mut c_void,
    /// Runs once after the last call. NULL: nothing.
    pub drop: pace_drop_fn,
}

/// What a log has done. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_log_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Records that its thread has taken.
    pub told: u64,
    /// Records that found no room, to be told or among those for a completion queue.
    pub dropped: u64,
    /// Lines that could not be written.
    pub errors: u64,
    /// The last of these errors, or NULL. Good until this thread asks again, or ends.
    pub last_error: *const c_char,
    /// Records that were put where a completion queue takes them from (pace_cq_log), whether or not it has.
    pub queued: u64,
}

/// A structured log: a thread of its own, which is created with it.
pub struct pace_log_t {
    log: Log,
    fork: ForkGuard,
    hosted: Option<Arc<Hosted>>,
}

/// Records that wait for a completion queue.
struct Hosted {
    records: Arc<Outbox<Record>>,
    capacity: usize,
    pushed: AtomicU64,
    dropped: AtomicU64,
}

/// Fills a configuration with the defaults. `size` is sizeof *config.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_config_init(
    config: *mut pace_log_config_t,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { sized::init(config, size, DEFAULTS, "config") })
}

/// Changes a configuration to what the section `log` of a file of settings says, as pace_pool_config_load() does for
/// `pool`.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_config_load(
    config: InOut<pace_log_config_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(config, path, environment, "config", |config, said| said_of(config, said.log))
        }
    })
}

fn said_of(config: &mut pace_log_config_t, log: LogSettings) {
    change_text(&mut config.file, "log.file", log.file);
    change_text(&mut config.levels, "log.levels", log.levels.map(|levels| levels.to_string()));
    change(&mut config.max_size, log.max_size);
    change(&mut config.files, log.files);
    change(&mut config.capacity, log.capacity);
}

/// Starts a log. A `config` of NULL means the defaults. Give it to pools as pace_pool_config_t.log, which keep
/// it: servers, worker pools and hubs tell what happens by the log of their pool. That its file cannot be opened
/// is no error: it is tried again for each line, and counted.
///
/// PACE_EINVAL names the field, its value and what is allowed; PACE_EVERSION; PACE_EOS if the thread cannot be
/// created.
///
/// Threads: any. In handlers: yes; it creates a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_new(
    config: *const pace_log_config_t,
    log: *mut *mut pace_log_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(log, "log") }?;
        let config = match config.is_null() {
            true => DEFAULTS,
            // SAFETY: not NULL, and as the header demands.
            false => unsafe { sized::read(config, "config") }?,
        };
        let fork = ForkGuard::new().map_err(|e| Error::os("map a page that tells of a fork", e))?;
        let max_size = usize::try_from(config.max_size).unwrap_or(usize::MAX);
        let mut builder = Log::builder()
            .facade(false)
            .max_size(max_size)
            .files(config.files as usize)
            .capacity(config.capacity as usize);
        if !config.levels.is_null() {
            // SAFETY: not NULL, and as the header demands.
            builder = builder.levels(unsafe { boundary::text(config.levels, "levels") }?.parse()?);
        }
        if !config.file.is_null() {
            // SAFETY: not NULL, and as the header demands.
            builder = builder.file(unsafe { boundary::text(config.file, "file") }?);
        }
        let hosted = match config.cq_capacity {
            0 => None,
            count if count <= 1 << 20 => Some(Arc::new(Hosted {
                records: Arc::new(Outbox::new()),
                capacity: count as usize,
                pushed: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
            })),
            count => return Err(Failure::invalid("cq_capacity", count, "0 to 1048576")),
        };
        let (registration, owner) = pair(config.user_data, config.drop);
        let (on_record, closes) = (config.on_record, hosted.clone().map(Closes));
        builder = builder.callback(move |record| {
            if let Some(Closes(hosted)) = &closes {
                let may = |waiting: &VecDeque<Record>| waiting.len() < hosted.capacity;
                match hosted.records.put_if(may, record.clone(), |record| record) {
                    Ok(()) => hosted.pushed.fetch_add(1, Relaxed),
                    Err(_) => hosted.dropped.fetch_add(1, Relaxed),
                };
            }
            if let Some(on_record) = on_record {
                let laid = Laid::new(record);
                // SAFETY: as the header demands, the function takes what came with it.
                unsafe { on_record(owner.data(), &laid.record) };
            }
        });
        match builder.build() {
            Ok(log) => {
                registration.keep();
                to.set(Box::into_raw(Box::new(pace_log_t { log, fork, hosted })));
                Ok(())
            }
            Err(error) => {
                // There is no thread that could have called it.
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// The records that wait.
///
/// # Safety
///
/// As [`open`].
pub(super) unsafe fn outbox_of(log: *const pace_log_t) -> Result<Arc<Outbox<Record>>> {
    // SAFETY: as the caller promises.
    let log = unsafe { open(log) }?;
    let none = || Failure::invalid("cq_capacity", 0, "1 to 1048576, for records as data");
    Ok(Arc::clone(&log.hosted.as_ref().ok_or_else(none)?.records))
}

/// Closes the queue of records for a host when the log's thread lets go of it.
struct Closes(Arc<Hosted>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.records.end();
    }
}

/// Makes it the log of all pools that are made from now on without one of their own, for as long as the process
/// lives, which keeps it: whoever writes the program may, libraries should not.
///
/// PACE_EFULL: there is one already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_install(log: *mut pace_log_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        Ok(unsafe { open(log) }?.log.install()?)
    })
}

/// Changes which records are made from now on: a text as in pace_log_config_t.levels.
///
/// PACE_EINVAL: it is none; nothing was changed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_set_levels(
    log: *mut pace_log_t,
    levels: *const c_char,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let log = unsafe { open(log) }?;
        // SAFETY: as the header demands.
        let levels: Levels = unsafe { boundary::text(levels, "levels") }?.parse()?;
        log.log.set_levels(levels);
        Ok(())
    })
}

/// The level of a component, PACE_LOG_POOL …: PACE_LOG_OFF, or up to which level it tells.
///
/// PACE_EINVAL: there is no such component.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_level(
    log: *mut pace_log_t,
    component: u32,
    level: *mut u32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let (log, to) = (unsafe { open(log) }?, unsafe { Out::new(level, "level") }?);
        let Some(component) = Component::ALL.get(component as usize) else {
            return Err(Failure::invalid("component", component, "0 to 8 (PACE_LOG_POOL …)"));
        };
        to.set(log.log.levels().of(*component).map_or(PACE_LOG_OFF, number_of));
        Ok(())
    })
}

/// Waits for up to `timeout_ns` until everything that happened before was told and written.
///
/// PACE_ETIMEDOUT; PACE_EDEADLOCK inside its own callback.
///
/// Threads: any but the log's. In handlers: it holds one up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_flush(log: *mut pace_log_t, timeout_ns: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        Ok(unsafe { open(log) }?.log.flush(nanos(timeout_ns))?)
    })
}

/// Turns all levels off and waits for up to `timeout_ns` until everything that was told is written, the callback
/// has been called for the last time, its `drop` has run, and the thread ends. Closing again only waits.
///
/// PACE_ETIMEDOUT: it goes on until it is through; PACE_EDEADLOCK inside its own callback.
///
/// Threads: any but the log's. In handlers: it holds one up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_close(log: *mut pace_log_t, timeout_ns: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        Ok(unsafe { open(log) }?.log.close(nanos(timeout_ns))?)
    })
}

/// What a log has done so far.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_stats(
    log: *mut pace_log_t,
    stats: *mut pace_log_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let log = unsafe { open(log) }?;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        let stats = log.log.stats();
        let hosted = log.hosted.as_deref();
        let (queued, lost) = hosted
            .map_or((0, 0), |hosted| (hosted.pushed.load(Relaxed), hosted.dropped.load(Relaxed)));
        room.fill(pace_log_stats_t {
            struct_size: 0,
            reserved: 0,
            told: stats.told,
            dropped: stats.dropped + lost,
            errors: stats.errors,
            last_error: stats.last_error.map_or(ptr::null(), |text| keep(&ERROR, &text)),
            queued,
        });
        Ok(())
    })
}

/// Frees a log. When the last pool that uses it is gone too, its thread tells what waits, and ends. With on_record
/// whoever frees the last of these waits until `drop` has run; without it a process that ends does not wait for what is
/// to be written: pace_log_close() before. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers, and on threads of a pool or of the log: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_log_free(log: *mut pace_log_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_log_new` and is used by nobody else.
        if unsafe { open(log) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(log) });
        }
    });
}

/// The name of a level, "warn"; of PACE_LOG_OFF "off"; of another number "?".
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_log_level_name(level: u32) -> *const c_char {
    let names = [c"off", c"error", c"warn", c"info", c"debug", c"trace"];
    names.get(level as usize).copied().unwrap_or(c"?").as_ptr()
}

/// The name of a component, "net"; of another number "?".
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_log_component_name(component: u32) -> *const c_char {
    let names =
        [c"pool", c"net", c"http", c"task", c"hub", c"history", c"webhook", c"service", c"log"];
    names.get(component as usize).copied().unwrap_or(c"?").as_ptr()
}

/// The builder of a pool that tells by this log.
///
/// # Safety
///
/// It is NULL, or came from `pace_log_new` and has not been freed.
pub(super) unsafe fn log_of<'a>(log: *const pace_log_t) -> Result<&'a Log> {
    // SAFETY: as the caller promises.
    Ok(&unsafe { open(log) }?.log)
}

/// # Safety
///
/// As above.
unsafe fn open<'a>(log: *const pace_log_t) -> Result<&'a pace_log_t> {
    // SAFETY: as the caller promises.
    let log = unsafe { boundary::borrow(log, "log") }?;
    if log.fork.is_child() { Err(FORKED) } else { Ok(log) }
}

pub(super) type Kept = std::thread::LocalKey<RefCell<CString>>;

thread_local! {
    /// What the last statistics said went wrong.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Puts a text where this thread keeps it until another takes its place.
pub(super) fn keep(place: &'static Kept, text: &str) -> *const c_char {
    let kept = place.try_with(|place| {
        place.replace(as_c(text));
        place.borrow().as_ptr()
    });
    kept.unwrap_or(c"".as_ptr())
}

fn as_c(text: &str) -> CString {
    let mut text = text.as_bytes().to_vec();
    text.retain(|&byte| byte != 0);
    CString::new(text).unwrap_or_default()
}

/// A record as C reads it, and what it points to.
pub(super) struct Laid {
    pub(super) record: pace_log_record_t,
    _fields: Box<[pace_log_field_t]>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers are to what it owns, and nobody writes there.
unsafe impl Send for Laid {}

impl Laid {
    pub(super) fn new(record: &Record) -> Self {
        let mut texts = Vec::with_capacity(3 + 2 * record.fields.len());
        let mut lay = |text: &str| {
            texts.push(as_c(text));
            // What it points to stays where it is when the list grows.
            texts.last().map_or(ptr::null(), |text| text.as_ptr())
        };
        let (event, pool) = (lay(record.event), lay(&record.pool));
        let message = lay(&record.message);
        let field = |(name, value): &(_, Value)| {
            let name: &std::borrow::Cow<'static, str> = name;
            let mut field = pace_log_field_t { name: lay(name), ..NO_FIELD };
            match value {
                Value::U64(value) => field.u64 = *value,
                Value::I64(value) => (field.kind, field.i64) = (PACE_LOG_I64, *value),
                Value::F64(value) => (field.kind, field.f64) = (PACE_LOG_F64, *value),
                Value::Text(text) => (field.kind, field.text) = (PACE_LOG_TEXT, lay(text)),
            }
            field
        };
        let fields: Box<[_]> = record.fields.iter().map(field).collect();
        let time = record.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = pace_log_record_t {
            time_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            level: number_of(record.level),
            component: number_of_component(record.component),
            event,
            pool,
            message,
            fields: fields.as_ptr(),
            field_count: fields.len(),
        };
        Self { record, _fields: fields, _texts: texts }
    }
}

const NO_FIELD: pace_log_field_t = pace_log_field_t {
    name: ptr::null(),
    kind: PACE_LOG_U64,
    reserved: 0,
    u64: 0,
    i64: 0,
    f64: 0.0,
    text: ptr::null(),
};

const fn number_of(level: Level) -> u32 {
    match level {
        Level::Error => PACE_LOG_ERROR,
        Level::Warn => PACE_LOG_WARN,
        Level::Info => PACE_LOG_INFO,
        Level::Debug => PACE_LOG_DEBUG,
        Level::Trace => PACE_LOG_TRACE,
    }
}

/// Also its place in [`Component::ALL`].
const fn number_of_component(component: Component) -> u32 {
    match component {
        Component::Pool => PACE_LOG_POOL,
        Component::Net => PACE_LOG_NET,
        Component::Http => PACE_LOG_HTTP,
        Component::Task => PACE_LOG_TASK,
        Component::Hub => PACE_LOG_HUB,
        Component::History => PACE_LOG_HISTORY,
        Component::Webhook => PACE_LOG_WEBHOOK,
        Component::Service => PACE_LOG_SERVICE,
        Component::Log => PACE_LOG_LOG,
    }
}

const DEFAULTS: pace_log_config_t = pace_log_config_t {
    struct_size: size_of::<pace_log_config_t>() as u32,
    capacity: 8192,
    levels: ptr::null(),
    file: ptr::null(),
    max_size: 64 << 20,
    files: 4,
    cq_capacity: 0,
    on_record: None,
    user_data: ptr::null_mut(),
    drop: None,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_log_config_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_log_config_t";
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_log_stats_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_log_stats_t";
}
