//! Operations endpoints: a live page, figures and health of a pool, by HTTP.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, Text, call, call_void, consumed, nanos, out, usable,
};
use super::conn::put_address;
use super::http::{Target, add_mounted, pace_http_t};
use super::pool::pace_pool_t;
use super::server::listener;
use super::settings::{change_text, change_time, load, of_files};
use super::sized::{self, In, InOut};
use super::status::*;
use super::workers::pace_workers_t;
use crate::Pool;
use crate::admin::Settings;
use crate::ops::Ops;
use core::ffi::c_char;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::sync::Arc;

/// An operations endpoint: it watches a pool from a thread of its own.
pub struct pace_ops_t {
    ops: Arc<Ops>,
    pool: Pool,
}

/// Settings of an operations endpoint. Call pace_ops_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_ops_options_t {
    /// The size of the struct in bytes, as pace_ops_options_init() sets it.
    pub struct_size: u32,
    /// Whether /config shows variables of the environment, too. Default false.
    pub environment: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Where it listens, if pace_ops_serve() is given no address: "127.0.0.1:9090". Default NULL.
    pub address: *const c_char,
    /// What requests must show as `Authorization: Bearer` and this, of at least 16 visible ASCII characters; only the page
    /// itself, which has no data, is sent without, and whether the pool is well, without reasons. Default NULL: only this
    /// machine is answered, without a proxy between, and nothing can be changed.
    pub token: *const c_char,
    /// How long a handler or task may hold its thread before the thread is shown as blocked, in nanoseconds: 1 ms to one
    /// hour. Default 500 ms. What health says does not depend on it.
    pub blocked_after_ns: u64,
    /// A worker pool that was made with `metrics`: its registry is shown, with the program's own figures. Default NULL:
    /// the figures of the pool, of what stands on it, and of the process.
    pub workers: *const pace_workers_t,
    /// Files of settings that /config shows, with where each value came from. Secrets are masked. Default NULL.
    pub settings: *const *const c_char,
    /// The number of elements of `settings`.
    pub settings_count: usize,
    /// How long the oldest thing that waits in the pool (a task, an event, a timer that is due, an entry of a completion
    /// queue) may wait before the pool is not ready, so that a load balancer sends its requests elsewhere, in nanoseconds:
    /// 1 ms to one hour. Default 5 s, which 0 stands for, too.
    pub ready_after_ns: u64,
    /// For how long something must have waited, and nothing have begun or ended on any thread, before the pool is dead, so
    /// that the process is started anew, in nanoseconds: 1 ms to one hour. Choose it longer than all threads may compute at
    /// a time. Default 30 s, which 0 stands for, too. The watchdog of systemd (pace_service_start()) judges by that of the
    /// pool's endpoint that was made last.
    pub dead_after_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_ops_options_t {
    const FIRST: usize = offset_of!(pace_ops_options_t, ready_after_ns);
    const NAME: &'static str = "pace_ops_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[("environment", 4)];
    const RESERVED: &'static [usize] = &[5, 6, 7];
}

const DEFAULTS: pace_ops_options_t = pace_ops_options_t {
    struct_size: size_of::<pace_ops_options_t>() as u32,
    environment: false,
    reserved: [0; 3],
    address: ptr::null(),
    token: ptr::null(),
    blocked_after_ns: 500_000_000,
    workers: ptr::null(),
    settings: ptr::null(),
    settings_count: 0,
    ready_after_ns: 5_000_000_000,
    dead_after_ns: 30_000_000_000,
};

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_ops_options_init(
    options: InOut<pace_ops_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Changes options to what the section `ops` of a file of settings says, as pace_pool_config_load() does for `pool`.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ops_options_load(
    options: InOut<pace_ops_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        let change = |options: &mut pace_ops_options_t, said: Settings| {
            change_text(&mut options.address, "ops.address", said.ops.address);
            change_text(&mut options.token, "ops.token", said.ops.token);
            change_time(&mut options.blocked_after_ns, said.ops.blocked_after);
            change_time(&mut options.ready_after_ns, said.ops.ready_after);
            change_time(&mut options.dead_after_ns, said.ops.dead_after);
        };
        // SAFETY: as the header demands.
        unsafe { load(options, path, environment, "options", change) }
    })
}

/// Starts an operations endpoint for a pool, at this address or that of the options if `address` is NULL:
/// "127.0.0.1:9090", "unix:/run/ops.sock". Its routes: / is a live page; /metrics, /stats.json, /errors.json, /config,
/// /health/live and /health/ready are for programs: 503 if the pool starves (`dead_after_ns`), or something waits for too
/// long (`ready_after_ns`), else 200, with reasons; /curves.json has the last 15 minutes; /events is what feeds the page,
/// for up to 8 viewers: a ninth takes the place of the oldest; /trace?seconds=3 records a timeline of the next seconds,
/// 1 to 30, which https://ui.perfetto.dev opens; /log-level shows, and by PUT and with a token sets, the levels of the
/// pool's log. It has a thread of its own, so that it answers
/// while all threads of the pool are blocked. `options` may be NULL. Without an address at all it is only to be mounted:
/// pace_http_mount_ops().
///
/// PACE_EINVAL names the setting: an address that other machines can reach needs a token; PACE_EOS if the address cannot
/// be listened on, or the thread cannot be created; PACE_ESHUTDOWN; PACE_EVERSION.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ops_serve(
    pool: Option<&pace_pool_t>,
    address: Text,
    options: In<pace_ops_options_t>,
    ops: Option<&mut MaybeUninit<*mut pace_ops_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let options = match options.is_null() {
            true => DEFAULTS,
            false => options.read("options")?,
        };
        let to = out(ops, "ops")?;
        // SAFETY: as the header demands.
        let address = match address.is_null() {
            // SAFETY: as the header demands.
            true => unsafe { optional(options.address, "address") }?,
            false => Some(address.get("address")?.to_owned()),
        };
        let mut builder = Ops::builder(&pool.pool);
        // SAFETY: as the header demands.
        if let Some(settings) = unsafe { shown(&options) }? {
            builder = builder.showing(&settings);
        }
        // SAFETY: as the header demands.
        let token = unsafe { optional(options.token, "token") };
        // What was given is a secret.
        let hidden = |_| Failure::invalid("token", "no UTF-8", "visible ASCII characters");
        if let Some(token) = token.map_err(hidden)? {
            builder = builder.token(token);
        }
        builder = builder.blocked_after(nanos(options.blocked_after_ns));
        // As in a program that was built before there were these.
        if options.ready_after_ns != 0 {
            builder = builder.ready_after(nanos(options.ready_after_ns));
        }
        if options.dead_after_ns != 0 {
            builder = builder.dead_after(nanos(options.dead_after_ns));
        }
        // SAFETY: as the header demands, it is NULL or a worker pool.
        builder = match unsafe { options.workers.as_ref() } {
            None => builder.filled(pool.figures.registry(&pool.pool)),
            some => builder.filled(usable(some)?.metrics()?),
        };
        let ops = match address {
            Some(address) => builder.serve(address)?,
            None => builder.build()?,
        };
        let ops = pace_ops_t { ops: Arc::new(ops), pool: pool.pool.clone() };
        to.set(Box::into_raw(Box::new(ops)));
        Ok(())
    })
}

/// # Safety
///
/// NULL, or a text that ends with NUL.
unsafe fn optional(text: *const c_char, name: &str) -> Result<Option<String>> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: as the caller promises.
        false => Ok(Some(unsafe { boundary::text(text, name) }?.to_owned())),
    }
}

/// The settings that are to be shown, if any are.
///
/// # Safety
///
/// As the header demands of the options.
unsafe fn shown(options: &pace_ops_options_t) -> Result<Option<Settings>> {
    if !options.environment && options.settings_count == 0 {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    unsafe { of_files(options.settings, options.settings_count, options.environment) }.map(Some)
}

/// Adds the routes of an operations endpoint to an HTTP server that has not been started, behind a prefix: "/ops". Its
/// threads only hand requests over. Without a token, requests of other machines, and those that a proxy has passed on, are
/// answered with 403. While they are all blocked, or the server is full or has no descriptors, the routes do not answer; an
/// endpoint with an address of its own does. The server keeps what it needs of the endpoint; when that is freed, the routes
/// answer with 500.
///
/// PACE_EINVAL if the server was started, or for a prefix that does not begin with `/`, or ends in it.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_http_mount_ops(
    http: Option<&pace_http_t>,
    ops: Option<&pace_ops_t>,
    prefix: Text,
) -> pace_status_t {
    call(|| {
        let ops = usable(ops)?;
        let prefix = prefix.get("prefix")?;
        Ops::check_prefix(prefix)?;
        let target = Target::Ops(Arc::downgrade(&ops.ops));
        // SAFETY: nothing of the program's is kept.
        unsafe { add_mounted(http, prefix, target) }
    })
}

/// Where it listens, as text, with the port that it got. It lies in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE
/// is enough for every address.
///
/// PACE_EINVAL if `size` is not enough, or it is only mounted.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ops_address(
    ops: Option<&pace_ops_t>,
    text: *mut c_char,
    size: usize,
) -> pace_status_t {
    call(|| {
        let addresses = usable(ops)?.ops.addresses();
        if addresses.is_empty() {
            return Err(Failure::invalid("ops", "only mounted", "served at an address"));
        }
        // SAFETY: as the header demands.
        unsafe { put_address(listener(addresses, 0)?, text, size) }
    })
}

/// Ends an operations endpoint: its viewers are sent away, and its thread ends. NULL is a no-op, and in a forked child
/// nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes.
#[unsafe(no_mangle)]
pub extern "C" fn pace_ops_free(ops: Option<Box<pace_ops_t>>) {
    call_void(|| drop(consumed(ops)));
}

impl Handle for pace_ops_t {
    const NAME: &'static str = "ops";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}
