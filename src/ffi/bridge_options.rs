//! How a bridge reaches its broker, and which keys it carries how.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]
#![cfg_attr(
    not(feature = "nats"),
    allow(dead_code, unused_imports, reason = "there is no bridge then")
)]

use super::boundary::{self, Failure, Result, call, nanos};
use super::retry::{NO_RETRY, pace_retry_t, retry_of};
use super::sized::{self, InOut};
use super::status::*;
use super::subscription::{PACE_OVERFLOW_DEFAULT, overflow_of};
use super::values::PACE_FOREVER;
#[cfg(feature = "nats")]
use crate::bridge::{Export, Import, NatsSettings, StartAt};
use crate::time::{Backoff, Jitter};
use core::ffi::c_char;
use core::mem::offset_of;
use core::ptr;
use core::time::Duration;
use std::time::SystemTime;

/// An import begins with the first message that the stream has.
pub const PACE_START_AT_FIRST: u32 = 0;
/// An import begins with what is stored from now on.
pub const PACE_START_AT_NEW: u32 = 1;
/// An import begins with the message of the number start_sequence in the stream, or the next that there is.
pub const PACE_START_AT_SEQUENCE: u32 = 2;
/// An import begins with the first message that was stored at start_time_ns or later.
pub const PACE_START_AT_TIME: u32 = 3;

/// How a bridge reaches its broker, and what it is called. Call pace_bridge_options_init() first. Of user, token, token_file,
/// nkey_file and credentials_file one at the most is set. Secrets are neither told by errors nor by statistics and logs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_bridge_options_t {
    /// The size of the struct in bytes, as pace_bridge_options_init() sets it.
    pub struct_size: u32,
    /// Refuses a connection without TLS. Default: TLS where the address is tls:// or the broker asks for it.
    pub require_tls: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Addresses, separated by commas: "nats://host:port" or "tls://host:port", each maybe with user:password@ or token@
    /// before the host. Of several servers, one cluster, any one is used. Default NULL, which is refused.
    pub servers: *const c_char,
    /// What health, figures, notices and the live page call the bridge. Default NULL: "nats".
    pub name: *const c_char,
    /// What the broker's own tools call the connection. Default NULL: "paceline".
    pub connection_name: *const c_char,
    /// Logs in by this name and `password` or `password_file`. Default NULL: as the address says, or not at all.
    pub user: *const c_char,
    /// The password of `user`. Default NULL: an empty one.
    pub password: *const c_char,
    /// Logs in by a token. Default NULL.
    pub token: *const c_char,
    /// Logs in by the nkey whose seed is the text of this file, which is read at each connection. Default NULL.
    pub nkey_file: *const c_char,
    /// Logs in by the JWT and nkey in this file of the broker's tools (.creds), which is read at each connection.
    /// Default NULL.
    pub credentials_file: *const c_char,
    /// Trusts the certificates in this PEM file. Default NULL: those that the system trusts.
    pub root_certificates: *const c_char,
    /// Shows the broker this certificate, a PEM file of its chain; with client_key. Default NULL.
    pub client_certificate: *const c_char,
    /// The PEM file of the key of client_certificate. Default NULL.
    pub client_key: *const c_char,
    /// How long an attempt to connect may take, in nanoseconds: 10 ms to 1 day. Default 5 s.
    pub connect_timeout_ns: u64,
    /// How often the broker is asked for a sign of life, in nanoseconds: 10 ms to 1 day. A connection without one for
    /// twice as long is given up. Default 10 s.
    pub ping_interval_ns: u64,
    /// How long it waits before the first attempt to connect again, in nanoseconds; twice as long each time, half of it by
    /// chance, so that not all who lost a broker come back at once. Default 50 ms.
    pub reconnect_first_ns: u64,
    /// How long it waits at most before an attempt to connect again, in nanoseconds. Default 10 s.
    pub reconnect_cap_ns: u64,
    /// How long ids of messages are kept, in nanoseconds: a message from the broker whose id is among them is dropped. The
    /// broker's streams that the bridge makes drop what comes twice within the same time. Default 2 minutes.
    pub window_ns: u64,
    /// How many ids of messages are kept at most. Default 100,000.
    pub window_count: u64,
    /// The password of `user` is the text of this file, which is read at each connection; in place of `password`. Default
    /// NULL.
    pub password_file: *const c_char,
    /// Logs in by the token that is the text of this file, which is read at each connection. Default NULL.
    pub token_file: *const c_char,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_options_t {
    const FIRST: usize = 144;
    const NAME: &'static str = "pace_bridge_options_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("require_tls", offset_of!(pace_bridge_options_t, require_tls))];
    const RESERVED: &'static [usize] = &[5, 6, 7];
}

pub(super) const DEFAULTS: pace_bridge_options_t = pace_bridge_options_t {
    struct_size: size_of::<pace_bridge_options_t>() as u32,
    require_tls: false,
    reserved: [0; 3],
    servers: ptr::null(),
    name: ptr::null(),
    connection_name: ptr::null(),
    user: ptr::null(),
    password: ptr::null(),
    token: ptr::null(),
    nkey_file: ptr::null(),
    credentials_file: ptr::null(),
    root_certificates: ptr::null(),
    client_certificate: ptr::null(),
    client_key: ptr::null(),
    connect_timeout_ns: 5_000_000_000,
    ping_interval_ns: 10_000_000_000,
    reconnect_first_ns: 50_000_000,
    reconnect_cap_ns: 10_000_000_000,
    window_ns: 120_000_000_000,
    window_count: 100_000,
    password_file: ptr::null(),
    token_file: ptr::null(),
};

/// How keys go from the hub to the broker. Call pace_bridge_export_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_bridge_export_options_t {
    /// The size of the struct in bytes, as pace_bridge_export_options_init() sets it.
    pub struct_size: u32,
    /// PACE_OVERFLOW_: what becomes of a message for a full buffer. Local subscribers get it in any case. Default:
    /// PACE_OVERFLOW_DEFAULT, by which the oldest one is dropped, and counted; with a stream the publisher waits for room
    /// for up to 10 seconds, where it may wait, and publishing fails then with PACE_EFULL.
    pub overflow: u32,
    /// What is put before the key, to make the broker's subject of it: whole tokens with a dot behind each, "eu.shop.".
    /// Default NULL: nothing.
    pub prefix: *const c_char,
    /// At least once: the stream of the broker's JetStream that stores each message, made if there is none of this name. A
    /// message is sent again until the broker says that it is stored. Requests are not stored. Default NULL: at most once.
    pub stream: *const c_char,
    /// How many messages wait for the broker, 1 to 2^24. Default 65536.
    pub buffer: u64,
    /// For PACE_OVERFLOW_BLOCK: how long a publisher waits at most. Otherwise not looked at. Default: PACE_FOREVER.
    pub block_ns: u64,
    /// At least once: how many messages may be under way to the broker at the same time, 1 to 65536. With 1 each is stored
    /// before the next is sent. Default 256.
    pub in_flight: u64,
    /// At least once: messages wait for the broker in the archive of the hub's history instead of memory, and are sent though
    /// the process ends or dies meanwhile. The hub needs a history with an archive of all keys of the pattern. This file,
    /// made if it is not there, is where the bridge keeps how far the broker has stored them; it belongs to that archive, and
    /// to one bridge at a time. `buffer` and `overflow` mean nothing then; requests are not carried. Default NULL: they wait
    /// in memory.
    pub spool: *const c_char,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_export_options_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_bridge_export_options_t";
}

pub(super) const EXPORT: pace_bridge_export_options_t = pace_bridge_export_options_t {
    struct_size: size_of::<pace_bridge_export_options_t>() as u32,
    overflow: PACE_OVERFLOW_DEFAULT,
    prefix: ptr::null(),
    stream: ptr::null(),
    buffer: 65_536,
    block_ns: PACE_FOREVER,
    in_flight: 256,
    spool: ptr::null(),
};

/// How keys come from the broker to the hub. Call pace_bridge_import_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_bridge_import_options_t {
    /// The size of the struct in bytes, as pace_bridge_import_options_init() sets it.
    pub struct_size: u32,
    /// At least once: where it begins if the broker does not know `durable` yet, PACE_START_AT_. Default:
    /// PACE_START_AT_FIRST.
    pub start: u32,
    /// What is taken off the front of the broker's subject to make the hub's key of it: that which the exporter puts
    /// there. The pattern is that of the keys. Default NULL: nothing.
    pub prefix: *const c_char,
    /// At most once: shares the messages with all processes that import the same with this group, so that one of them gets
    /// each. Default NULL: each process gets all.
    pub group: *const c_char,
    /// At least once: the stream of the broker's JetStream that messages are taken from, made if there is none of this
    /// name. A message is acknowledged when all the hub's subscriptions that got it have dealt with it. If a handler fails
    /// at it, or no subscription matches, it comes again. With `durable`. Default NULL: at most once.
    pub stream: *const c_char,
    /// At least once: the name under which the broker knows how far the messages have come; all processes share it that
    /// take turns at the same messages. Default NULL.
    pub durable: *const c_char,
    /// How many messages from the broker wait for the hub, 1 to 2^24; what comes while so many wait is lost, and counted.
    /// Default 65536.
    pub buffer: u64,
    /// How long a request from elsewhere waits for the reply of this hub, in nanoseconds. Default 30 s.
    pub request_timeout_ns: u64,
    /// For PACE_START_AT_SEQUENCE: the number of the message in the stream. Otherwise not looked at.
    pub start_sequence: u64,
    /// For PACE_START_AT_TIME: nanoseconds since 1970, by the clock of the system. Otherwise not looked at.
    pub start_time_ns: u64,
    /// At least once: how often, and after which delays, the broker is to send a message again that a handler has failed
    /// at; past the last attempt it becomes a dead letter of the hub, and one that the broker keeps in the stream
    /// `paceline_dead`, and comes no more; so does one that has ended its process in its last attempt. Retries of the
    /// subscription come before that, and count as one attempt. Default: 9 times, after half a second and then twice as
    /// long each time, up to 30 s.
    pub retry: pace_retry_t,
    /// At least once: how many messages may be in the hub and not acknowledged, 1 to 65536. Default 256.
    pub in_flight: u64,
    /// At least once: after how long the broker sends a message again of which it has not heard, in nanoseconds: 100 ms to
    /// 1 day. While a handler works the bridge tells the broker so three times as often. Default 30 s.
    pub ack_wait_ns: u64,
    /// At least once: for how long it tells that at most, in nanoseconds. Then the broker sends the message again, though a
    /// handler may be at it still. Default: one hour.
    pub handle_timeout_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_bridge_import_options_t {
    const FIRST: usize = 136;
    const NAME: &'static str = "pace_bridge_import_options_t";
}

pub(super) const IMPORT: pace_bridge_import_options_t = pace_bridge_import_options_t {
    struct_size: size_of::<pace_bridge_import_options_t>() as u32,
    start: PACE_START_AT_FIRST,
    prefix: ptr::null(),
    group: ptr::null(),
    stream: ptr::null(),
    durable: ptr::null(),
    buffer: 65_536,
    request_timeout_ns: 30_000_000_000,
    start_sequence: 0,
    start_time_ns: 0,
    retry: NO_RETRY,
    in_flight: 256,
    ack_wait_ns: 30_000_000_000,
    handle_timeout_ns: 3_600_000_000_000,
};

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_options_init(
    options: InOut<pace_bridge_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Fills in the defaults of an export; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_export_options_init(
    options: InOut<pace_bridge_export_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, EXPORT, "options"))
}

/// Fills in the defaults of an import; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_bridge_import_options_init(
    options: InOut<pace_bridge_import_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, IMPORT, "options"))
}

/// # Safety
///
/// NULL, or a text that ends with NUL, for `'a`.
pub(super) unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: not NULL, and as the caller promises.
        false => Ok(Some(unsafe { boundary::text(text, name) }?)),
    }
}

/// # Safety
///
/// As the header demands of the options.
#[cfg(feature = "nats")]
pub(super) unsafe fn settings_of(options: &pace_bridge_options_t) -> Result<NatsSettings> {
    // SAFETY: as the caller promises.
    let text = |text, name| unsafe { optional(text, name) };
    // What was given is a secret.
    let secret =
        |given, name| text(given, name).map_err(|_| Failure::invalid(name, "not UTF-8", "UTF-8"));
    boundary::check(options.servers, "servers")?;
    let servers = secret(options.servers, "servers")?.unwrap_or_default();
    let backoff = Backoff::exponential(nanos(options.reconnect_first_ns));
    let backoff = backoff.cap(nanos(options.reconnect_cap_ns)).jitter(Jitter::Equal);
    let mut settings = NatsSettings::new(servers)
        .reconnect(backoff)
        .connect_timeout(nanos(options.connect_timeout_ns))
        .ping_interval(nanos(options.ping_interval_ns));
    if let Some(name) = text(options.connection_name, "connection_name")? {
        settings = settings.name(name);
    }
    let pace_bridge_options_t { user, token, token_file, nkey_file, credentials_file, .. } =
        *options;
    let logins = [user, token, token_file, nkey_file, credentials_file];
    let count = logins.iter().filter(|login| !login.is_null()).count();
    if count > 1 {
        let allowed = "one of user, token, token_file, nkey_file and credentials_file";
        return Err(Failure::invalid("the number of logins", count, allowed));
    }
    let password = secret(options.password, "password")?;
    let password_file = text(options.password_file, "password_file")?;
    settings = match (secret(user, "user")?, password, password_file) {
        (_, Some(_), Some(_)) => {
            let allowed = "NULL, or in place of password";
            return Err(Failure::invalid("password_file", "set with password", allowed));
        }
        (None, Some(_), _) => {
            return Err(Failure::invalid("password", "set without user", "NULL, or with user"));
        }
        (None, _, Some(_)) => {
            return Err(Failure::invalid(
                "password_file",
                "set without user",
                "NULL, or with user",
            ));
        }
        (Some(user), _, Some(path)) => settings.password_file(user, path),
        (Some(user), password, None) => settings.user(user, password.unwrap_or_default()),
        (None, None, None) => settings,
    };
    if let Some(token) = secret(token, "token")? {
        settings = settings.token(token);
    }
    if let Some(path) = text(token_file, "token_file")? {
        settings = settings.token_file(path);
    }
    if let Some(path) = text(options.nkey_file, "nkey_file")? {
        settings = settings.nkey_file(path);
    }
    if let Some(path) = text(options.credentials_file, "credentials_file")? {
        settings = settings.credentials_file(path);
    }
    if let Some(path) = text(options.root_certificates, "root_certificates")? {
        settings = settings.root_certificates(path);
    }
    let certificate = text(options.client_certificate, "client_certificate")?;
    settings = match (certificate, text(options.client_key, "client_key")?) {
        (Some(certificate), Some(key)) => settings.client_certificate(certificate, key),
        (None, None) => settings,
        (Some(_), None) => return Err(Failure::invalid("client_key", "NULL", "set, too")),
        (None, Some(_)) => return Err(Failure::invalid("client_certificate", "NULL", "set, too")),
    };
    Ok(if options.require_tls { settings.require_tls() } else { settings })
}

/// # Safety
///
/// As the header demands of the options.
#[cfg(feature = "nats")]
pub(super) unsafe fn export_of(
    pattern: &str,
    options: &pace_bridge_export_options_t,
) -> Result<Export> {
    // SAFETY: as the caller promises.
    let text = |text, name| unsafe { optional(text, name) };
    let mut rule = Export::new(pattern).buffer(whole(options.buffer));
    rule = rule.in_flight(whole(options.in_flight));
    rule = rule.prefix(text(options.prefix, "prefix")?.unwrap_or_default());
    if let Some(overflow) = overflow_of(options.overflow, options.block_ns)? {
        rule = rule.overflow(overflow);
    }
    if let Some(stream) = text(options.stream, "stream")? {
        rule = rule.at_least_once(stream);
    }
    Ok(match text(options.spool, "spool")? {
        Some(path) => rule.spool(path),
        None => rule,
    })
}

/// # Safety
///
/// As the header demands of the options.
#[cfg(feature = "nats")]
pub(super) unsafe fn import_of(
    pattern: &str,
    options: &pace_bridge_import_options_t,
) -> Result<Import> {
    // SAFETY: as the caller promises.
    let text = |text, name| unsafe { optional(text, name) };
    let mut rule = Import::new(pattern).buffer(whole(options.buffer));
    rule = rule.request_timeout(nanos(options.request_timeout_ns));
    rule = rule.prefix(text(options.prefix, "prefix")?.unwrap_or_default());
    if let Some(group) = text(options.group, "group")? {
        rule = rule.group(group);
    }
    let start = match options.start {
        PACE_START_AT_FIRST => StartAt::First,
        PACE_START_AT_NEW => StartAt::New,
        PACE_START_AT_SEQUENCE => StartAt::Sequence(options.start_sequence),
        PACE_START_AT_TIME => {
            StartAt::Time(SystemTime::UNIX_EPOCH + Duration::from_nanos(options.start_time_ns))
        }
        other => return Err(Failure::invalid("start", other, "0 to 3 (PACE_START_AT_)")),
    };
    rule = match (text(options.stream, "stream")?, text(options.durable, "durable")?) {
        (Some(stream), Some(durable)) => rule.at_least_once(stream, durable),
        (None, None) => return Ok(rule),
        (Some(_), None) => return Err(Failure::invalid("durable", "NULL", "set with stream")),
        (None, Some(_)) => return Err(Failure::invalid("stream", "NULL", "set with durable")),
    };
    if let Some(retry) = retry_of(&options.retry, None)? {
        rule = rule.retry(retry);
    }
    Ok(rule
        .start_at(start)
        .in_flight(whole(options.in_flight))
        .ack_wait(nanos(options.ack_wait_ns))
        .handle_timeout(nanos(options.handle_timeout_ns)))
}

/// What is too large for this machine is too large for the setting.
pub(super) fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
