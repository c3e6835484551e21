//! Publishers with a name, a quota and patterns that they may publish with.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Handle, Text, call, call_void, consumed, nanos, out, usable};
use super::hub::{
    ANY_FLAG, NO_TRY, answer, asked, pace_hub_t, pace_key_t, pace_receipt_t, payloads,
};
use super::message::{PLAIN, pace_publication_t, payload, slice, terms};
use super::sized::{self, In, InOut};
use super::status::*;
use super::values::{PACE_UNLIMITED32, pace_piece_t};
use crate::hub::{Publisher, Rate};
use crate::pool::Shared;
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::sync::Arc;

/// A publisher with a name. Its limits guard against mistakes: whoever has the hub can publish without one.
pub struct pace_publisher_t {
    publisher: Publisher,
    shared: Arc<Shared>,
}

/// Settings of a publisher. Call pace_publisher_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_publisher_options_t {
    /// The size of the struct in bytes, as pace_publisher_options_init() sets it.
    pub struct_size: u32,
    /// Does not wait for room in full mailboxes, as PACE_PUBLISH_NO_WAIT. Default: it waits where that is allowed.
    pub no_wait: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// How many messages may be published in quota_per_ns, evenly spread. PACE_UNLIMITED32 (default) or 0: no
    /// limit.
    pub quota: u32,
    /// How many messages may be published at once after a time with fewer, at least 1. Default 1.
    pub quota_burst: u32,
    /// The period of the quota in nanoseconds: 1 ns for each message, up to 100 years. Default one second.
    pub quota_per_ns: u64,
    /// Patterns of the keys that it may publish with. Default none: all keys.
    pub allow: *const *const c_char,
    /// The number of elements of `allow`.
    pub allow_count: usize,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_publisher_options_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_publisher_options_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("no_wait", offset_of!(pace_publisher_options_t, no_wait))];
    const RESERVED: &'static [usize] = &[5, 6, 7];
}

const DEFAULTS: pace_publisher_options_t = pace_publisher_options_t {
    struct_size: size_of::<pace_publisher_options_t>() as u32,
    no_wait: false,
    reserved: [0; 3],
    quota: PACE_UNLIMITED32,
    quota_burst: 1,
    quota_per_ns: 1_000_000_000,
    allow: ptr::null(),
    allow_count: 0,
};

/// What a publisher has done. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_publisher_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Messages that were published by this publisher.
    pub published: u64,
    /// Messages that were refused: beyond the quota, of a key that is not allowed, or invalid.
    pub refused: u64,
    /// The sum of what receipts called enqueued.
    pub enqueued: u64,
    /// The sum of what receipts called dropped and rejected.
    pub lost: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_publisher_stats_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_publisher_stats_t";
}

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_publisher_options_init(
    options: InOut<pace_publisher_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Makes a publisher of this name, which is for people to read and is copied. `options` may be NULL. It may
/// outlive the hub's pointer.
///
/// PACE_EINVAL for a bad pattern or rate; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_publisher_new(
    hub: Option<&pace_hub_t>,
    name: Text,
    options: In<pace_publisher_options_t>,
    publisher: Option<&mut MaybeUninit<*mut pace_publisher_t>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let name = name.get("name")?;
        let options = match options.is_null() {
            true => DEFAULTS,
            false => options.read("options")?,
        };
        let to = out(publisher, "publisher")?;
        let mut builder = hub.hub.publisher(name);
        // SAFETY: as the header demands.
        for &pattern in unsafe { slice(options.allow, options.allow_count, "allow") }? {
            // SAFETY: as the header demands.
            builder = builder.allow(unsafe { boundary::text(pattern, "a pattern of allow") }?);
        }
        if ![0, PACE_UNLIMITED32].contains(&options.quota) {
            let rate = Rate::new(options.quota, nanos(options.quota_per_ns));
            builder = builder.quota(rate.burst(options.quota_burst));
        }
        if options.no_wait {
            builder = builder.no_wait();
        }
        let shared = Arc::clone(hub.hub.pool().shared());
        to.set(Box::into_raw(Box::new(pace_publisher_t { publisher: builder.build()?, shared })));
        Ok(())
    })
}

/// As pace_key_publish_with(). `publication` may be NULL.
///
/// PACE_EINVAL, also for a key that is not allowed; PACE_EFULL beyond the quota, and as pace_key_publish();
/// PACE_EVERSION, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_publisher_publish(
    publisher: Option<&pace_publisher_t>,
    key: Option<&pace_key_t>,
    publication: In<pace_publication_t>,
    bytes: *const c_void,
    size: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let publisher = usable(publisher)?;
        let key = usable(key)?;
        let publication = match publication.is_null() {
            true => PLAIN,
            false => publication.read("publication")?,
        };
        let (mode, room) = asked(flags, ANY_FLAG, receipt)?;
        // SAFETY: as the header demands.
        let (priority, headers) = unsafe { terms(&publication) }?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        answer(room, publisher.publisher.publish_as(&key.key, payload, headers, priority, mode))
    })
}

/// As pace_key_publish_batch(). Each message takes of the quota; those before the first that is beyond it are
/// published.
///
/// PACE_EINVAL: nothing was published; PACE_EFULL beyond the quota, and as pace_key_publish_batch();
/// PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes. It waits as pace_key_publish() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_publisher_publish_batch(
    publisher: Option<&pace_publisher_t>,
    key: Option<&pace_key_t>,
    pieces: *const pace_piece_t,
    count: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let publisher = usable(publisher)?;
        let key = usable(key)?;
        let (mode, room) = asked(flags, NO_TRY, receipt)?;
        // SAFETY: as the header demands.
        let payloads = unsafe { payloads(key, pieces, count) }?;
        answer(room, publisher.publisher.publish_batch_as(&key.key, payloads, mode))
    })
}

/// The counts of a publisher.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_publisher_stats(
    publisher: Option<&pace_publisher_t>,
    stats: InOut<pace_publisher_stats_t>,
) -> pace_status_t {
    call(|| {
        let counts = usable(publisher)?.publisher.stats();
        stats.room("stats")?.fill(pace_publisher_stats_t {
            struct_size: 0,
            reserved: 0,
            published: counts.published,
            refused: counts.refused,
            enqueued: counts.enqueued,
            lost: counts.lost,
        });
        Ok(())
    })
}

/// Frees a publisher. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the publisher any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_publisher_free(publisher: Option<Box<pace_publisher_t>>) {
    call_void(|| drop(consumed(publisher)));
}

impl Handle for pace_publisher_t {
    const NAME: &'static str = "publisher";

    fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }
}
