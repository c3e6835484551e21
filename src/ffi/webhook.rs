//! Webhooks: what is posted to a URL.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]
#![cfg_attr(not(feature = "webhook"), allow(dead_code, reason = "there is no webhook then"))]

use super::boundary::{
    self, Failure, Handle, Result, Text, call, call_void, consumed, optional_out, out, usable,
};
use super::hub::pace_hub_t;
use super::retry::{NO_RETRY, PACE_RETRY_DEFAULT, pace_retry_t};
use super::settings::{Retries, change, change_retry, change_text, change_time, load};
use super::sized::{self, In, InOut};
use super::status::*;
use super::subscription::Named;
use super::values::pace_field_t;

use crate::admin::WebhookSettings;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;

/// Posts JSON to a URL, from a thread of its own.
pub struct pace_webhook_t {
    #[cfg(feature = "webhook")]
    webhook: crate::admin::Webhook,
}

/// Settings of a webhook. Call pace_webhook_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_webhook_options_t {
    /// The size of the struct in bytes, as pace_webhook_options_init() sets it.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// How many bodies may wait, 1 to 65536; what comes while so many wait is dropped. Default 1024.
    pub capacity: u64,
    /// How long one attempt may take, from looking the host up to the end of the answer: 1 ms to 5 minutes.
    /// Default 10 s.
    pub timeout_ns: u64,
    /// How an attempt that failed is followed by others; others wait behind it meanwhile. Default: 5 of them,
    /// after 1 s, and twice as long after each other.
    pub retry: pace_retry_t,
    /// More headers of each request: a token, say. They are copied. Default none.
    pub headers: *const pace_field_t,
    /// The number of elements of `headers`.
    pub header_count: usize,
    /// Goes by this proxy: "http://proxy.example:3128". NULL (default): none; the environment is not asked.
    pub proxy: *const c_char,
    /// What is posted to, if pace_webhook_new() is given no URL: http:// or https://. Default NULL.
    pub url: *const c_char,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_webhook_options_t {
    const FIRST: usize = 96;
    const NAME: &'static str = "pace_webhook_options_t";
    const RESERVED: &'static [usize] = &[4, 5, 6, 7];
}

const DEFAULTS: pace_webhook_options_t = pace_webhook_options_t {
    struct_size: size_of::<pace_webhook_options_t>() as u32,
    reserved: 0,
    capacity: 1024,
    timeout_ns: 10_000_000_000,
    retry: NO_RETRY,
    headers: ptr::null(),
    header_count: 0,
    proxy: ptr::null(),
    url: ptr::null(),
};

/// What a webhook has done. Set struct_size to sizeof the struct before the call. At rest posted = delivered +
/// failed + dropped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_webhook_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Bodies that it was given.
    pub posted: u64,
    /// Those that were answered with success (2xx).
    pub delivered: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Those that were given up: every attempt failed, or the answer was that no other would help.
    pub failed: u64,
    /// Those that found no room.
    pub dropped: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_webhook_stats_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_webhook_stats_t";
}

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_webhook_options_init(
    options: InOut<pace_webhook_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Changes options to what the section `webhook` of a file of settings says, as pace_pool_config_load() does for
/// `pool`.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_webhook_options_load(
    options: InOut<pace_webhook_options_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(options, path, environment, "options", |options, said| {
                said_of(options, said.webhook)
            })
        }
    })
}

fn said_of(options: &mut pace_webhook_options_t, webhook: WebhookSettings) {
    change_text(&mut options.url, "webhook.url", webhook.url);
    change_text(&mut options.proxy, "webhook.proxy", webhook.proxy);
    change(&mut options.capacity, webhook.capacity);
    change_time(&mut options.timeout_ns, webhook.timeout);
    let (delay, cap) = (webhook.retry_delay, webhook.retry_cap);
    let is_new = options.retry.shape == PACE_RETRY_DEFAULT && delay.or(cap).is_some();
    let retries = webhook.retries.or(is_new.then_some(5));
    let said = Retries { retries, growth: None, delay, cap, within: None };
    change_retry(&mut options.retry, &said, [Duration::from_secs(1), Duration::ZERO]);
}

/// Makes a webhook that posts to this URL, http:// or https://, or that of the options if `url` is NULL, and the one
/// thread that does it. Bodies go out
/// one after the other, in order. That nobody listens there is no error: it is tried for each body. `options`
/// may be NULL.
///
/// PACE_EUNSUPPORTED: the library was built without the feature `webhook`. PACE_EINVAL names the setting;
/// PACE_EOS if the thread cannot be created; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_webhook_new(
    url: Text,
    options: In<pace_webhook_options_t>,
    webhook: Option<&mut MaybeUninit<*mut pace_webhook_t>>,
) -> pace_status_t {
    call(|| {
        let options = match options.is_null() {
            true => DEFAULTS,
            false => options.read("options")?,
        };
        let named = url.is_null();
        boundary::check(if named { options.url } else { c"".as_ptr() }, "url")?;
        // SAFETY: not NULL where it is asked, and as the header demands.
        let url =
            // SAFETY: not NULL, and as the header demands.
            if named { unsafe { boundary::text(options.url, "url") }? } else { url.get("url")? };
        let to = out(webhook, "webhook")?;
        // SAFETY: as the header demands.
        to.set(Box::into_raw(Box::new(unsafe { make(url, &options) }?)));
        Ok(())
    })
}

/// # Safety
///
/// As the header demands of the options.
#[cfg(feature = "webhook")]
unsafe fn make(url: &str, options: &pace_webhook_options_t) -> Result<pace_webhook_t> {
    use super::boundary::nanos;
    use super::message::{slice, text_of};
    use super::retry::retry_of;
    let capacity = usize::try_from(options.capacity).unwrap_or(usize::MAX);
    let mut builder = crate::admin::Webhook::builder(url).capacity(capacity);
    builder = builder.timeout(nanos(options.timeout_ns));
    if let Some(retry) = retry_of(&options.retry, None)? {
        builder = builder.retry(retry);
    }
    // SAFETY: as the caller promises.
    for field in unsafe { slice(options.headers, options.header_count, "headers") }? {
        // SAFETY: as the caller promises.
        let name = unsafe { text_of(&field.name, "the name of a header") }?;
        // SAFETY: as above.
        builder = builder.header(name, unsafe { text_of(&field.value, "the value of a header") }?);
    }
    if !options.proxy.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        builder = builder.proxy(unsafe { boundary::text(options.proxy, "proxy") }?);
    }
    Ok(pace_webhook_t { webhook: builder.build()? })
}

/// # Safety
///
/// None is needed.
#[cfg(not(feature = "webhook"))]
unsafe fn make(_: &str, _: &pace_webhook_options_t) -> Result<pace_webhook_t> {
    let text = "the library was built without the feature `webhook`";
    Err(Failure::told(PACE_EUNSUPPORTED, text.to_owned()))
}

/// Posts these bytes, which are copied and should be JSON.
///
/// PACE_EFULL: there was no room, and it was dropped.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_webhook_post(
    webhook: Option<&pace_webhook_t>,
    json: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let webhook = usable(webhook)?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(json, size, 1, "json") }?;
        webhook.post(bytes)
    })
}

/// Posts the payloads of all messages of a hub that the pattern matches, "$SYS.>" say, until it is unsubscribed,
/// or the hub is freed. `subscription` may be NULL. The subscription keeps what it needs of the webhook.
///
/// PACE_EINVAL for a bad pattern; PACE_EFULL when 2^20 subscriptions have names; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_webhook_forward(
    webhook: Option<&pace_webhook_t>,
    hub: Option<&pace_hub_t>,
    pattern: Text,
    subscription: Option<&mut MaybeUninit<super::message::pace_subscription_t>>,
) -> pace_status_t {
    call(|| {
        let webhook = usable(webhook)?;
        let hub = usable(hub)?;
        let pattern = pattern.get("pattern")?;
        let to = optional_out(subscription);
        let entry = Named::default();
        let name = hub.subscriptions.reserve()?;
        entry.arrived(webhook.forward(hub, pattern)?);
        to.set(super::message::pace_subscription_t { id: name.fill(entry) });
        Ok(())
    })
}

/// Waits for up to `timeout_ns` until everything that was posted before has been delivered or given up.
///
/// PACE_ETIMEDOUT.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_webhook_flush(
    webhook: Option<&pace_webhook_t>,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| usable(webhook)?.flush(timeout_ns))
}

/// What a webhook has done so far.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_webhook_stats(
    webhook: Option<&pace_webhook_t>,
    stats: InOut<pace_webhook_stats_t>,
) -> pace_status_t {
    call(|| {
        let webhook = usable(webhook)?;
        stats.room("stats")?.fill(webhook.stats());
        Ok(())
    })
}

/// What the last attempt that failed has failed of, as text that ends with NUL; without one, nothing but that.
/// *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size` is less. `text` may be NULL if
/// `size` is 0.
///
/// PACE_EFULL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_webhook_last_error(
    webhook: Option<&pace_webhook_t>,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let webhook = usable(webhook)?;
        let needed = out(needed, "needed")?;
        if size > 0 {
            boundary::check(text, "text")?;
        }
        // SAFETY: as the header demands.
        unsafe { super::work_stats::give(&webhook.last_error(), text, size, needed) }
    })
}

/// Frees a webhook. When no subscription has it any more, its thread ends after the attempt that is under way,
/// and what waits is dropped: pace_webhook_flush() before. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_webhook_free(webhook: Option<Box<pace_webhook_t>>) {
    call_void(|| drop(consumed(webhook)));
}

impl Handle for pace_webhook_t {
    const NAME: &'static str = "webhook";

    fn is_forked(&self) -> bool {
        #[cfg(feature = "webhook")]
        if self.webhook.is_forked() {
            return true;
        }
        false
    }
}

#[cfg(feature = "webhook")]
impl pace_webhook_t {
    fn post(&self, json: &[u8]) -> Result {
        let full = Failure::plain(PACE_EFULL, c"there is no room: it was dropped");
        if self.webhook.post(json) { Ok(()) } else { Err(full) }
    }

    fn forward(&self, hub: &pace_hub_t, pattern: &str) -> Result<crate::hub::Subscription> {
        Ok(self.webhook.forward(&hub.hub, pattern)?)
    }

    fn flush(&self, timeout: u64) -> Result {
        Ok(self.webhook.flush(boundary::nanos(timeout))?)
    }

    fn stats(&self) -> pace_webhook_stats_t {
        let stats = self.webhook.stats();
        pace_webhook_stats_t {
            struct_size: 0,
            reserved: 0,
            posted: stats.posted,
            delivered: stats.delivered,
            retried: stats.retried,
            failed: stats.failed,
            dropped: stats.dropped,
        }
    }

    fn last_error(&self) -> String {
        self.webhook.stats().last_error.unwrap_or_default()
    }
}

/// There is none of these.
#[cfg(not(feature = "webhook"))]
impl pace_webhook_t {
    fn post(&self, _: &[u8]) -> Result {
        unreachable!()
    }

    fn forward(&self, _: &pace_hub_t, _: &str) -> Result<crate::hub::Subscription> {
        unreachable!()
    }

    fn flush(&self, _: u64) -> Result {
        unreachable!()
    }

    fn stats(&self) -> pace_webhook_stats_t {
        unreachable!()
    }

    fn last_error(&self) -> String {
        unreachable!()
    }
}
