//! What the hub delivers, as C sees it, and what C publishes.
//!
//! A message is shown through a struct of the library's, filled from the stored message: no copy of
//! its payload is made. Its headers are listed only if it has some.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result};
use super::sized::{self, InOut};
use super::values::{pace_field_t, pace_piece_t, pace_text_t};
use crate::hub::{
    self, Advice, Headers, MAX_HEADERS, MAX_PAYLOAD, Message, Payload, Priority, Stored,
};
use core::ffi::{c_char, c_void};
use core::ptr;

/// A message's priority: delivered after all others that wait in the mailbox.
pub const PACE_PRIORITY_LOW: i32 = -1;
/// A message's priority, unless it is set.
pub const PACE_PRIORITY_NORMAL: i32 = 0;
/// A message's priority: delivered before normal ones that wait in the mailbox.
pub const PACE_PRIORITY_HIGH: i32 = 1;
/// A message's priority: delivered before all others that wait in the mailbox.
pub const PACE_PRIORITY_CRITICAL: i32 = 2;

/// Names a subscription of a hub, until it is unsubscribed or its hub is freed. 0 names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_subscription_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// A message. What it points to is lent: to a handler until it returns, of a completion queue's entry until that is
/// completed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_message_t {
    /// The number of this message in its hub: 1 for the first. Those of one publisher's messages grow.
    pub sequence: u64,
    /// When it was published: nanoseconds since 1970, by the clock of the system.
    pub time_ns: u64,
    /// The lag mark: how many messages this subscription has lost since the one before.
    pub lost_before: u64,
    /// What it was published with, without a NUL behind it.
    pub key: pace_text_t,
    /// The bytes of the message, which are not aligned. NULL if there are none.
    pub payload: *const c_void,
    /// The size of the payload, in bytes.
    pub size: usize,
    /// Its headers, in order. NULL if it has none.
    pub headers: *const pace_field_t,
    /// The number of elements of `headers`.
    pub header_count: usize,
    /// The message's priority, PACE_PRIORITY_LOW to PACE_PRIORITY_CRITICAL.
    pub priority: i32,
    /// Which attempt at this message it is: 1 unless the handler has failed at it before.
    pub attempt: u32,
    /// Whose it is; of no name if a completion queue has brought it.
    pub subscription: pace_subscription_t,
}

/// The handler of a subscription. *outcome is PACE_EFAILED beforehand; set it to 0 when the message has
/// been dealt with. Whatever is not 0 is a failure, for which pace_message_fail() may give the reason. What becomes
/// of the message then is said by `retry` and `on_exhausted` of the subscription. PACE_EPANIC says that the handler itself
/// is broken, as a panic of a handler in Rust does: the handler is restarted, and suspended when that happens too
/// often. No other failure suspends it.
pub type pace_message_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, message: *const pace_message_t, outcome: *mut i32),
>;

/// What is published beside a payload. Call pace_publication_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_publication_t {
    /// The size of the struct in bytes, as pace_publication_init() sets it.
    pub struct_size: u32,
    /// The message's priority, PACE_PRIORITY_LOW to PACE_PRIORITY_CRITICAL. Default: PACE_PRIORITY_NORMAL.
    pub priority: i32,
    /// Up to 64 names and values, of up to 65536 bytes in all, in UTF-8. Default none.
    pub headers: *const pace_field_t,
    /// The number of elements of `headers`, 0 to 64.
    pub header_count: usize,
    /// Room for later versions; zero.
    pub reserved: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_publication_t {
    const FIRST: usize = 32;
    const NAME: &'static str = "pace_publication_t";
    const RESERVED: &'static [usize] = &[24, 25, 26, 27, 28, 29, 30, 31];
}

pub(super) const PLAIN: pace_publication_t = pace_publication_t {
    struct_size: size_of::<pace_publication_t>() as u32,
    priority: PACE_PRIORITY_NORMAL,
    headers: ptr::null(),
    header_count: 0,
    reserved: 0,
};

/// Fills in the defaults; `size` is sizeof *publication.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_publication_init(
    publication: InOut<pace_publication_t>,
    size: usize,
) -> super::status::pace_status_t {
    boundary::call(|| publication.init(size, PLAIN, "publication"))
}

/// The reason why the handler that runs on this thread fails at its message, up to 1024 bytes of it; it
/// is copied, and what is not UTF-8 in it is replaced by U+FFFD. Without one the number in *outcome is the
/// reason. Does nothing for a message that is dealt with.
///
/// PACE_EINVAL for a reason that is NULL; PACE_ESTALE outside a handler of a hub.
///
/// Threads: the handler's. In handlers: in one of a hub; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_fail(reason: *const c_char) -> super::status::pace_status_t {
    boundary::call(|| {
        boundary::check(reason, "reason")?;
        // SAFETY: as the header demands.
        let reason = unsafe { boundary::words(reason) };
        reason::set(&reason)
    })
}

/// No other attempt helps with the message that the handler of this thread fails at: there is none. Does nothing for a
/// message that is dealt with.
///
/// PACE_ESTALE outside a handler of a hub.
///
/// Threads: the handler's. In handlers: in one of a hub; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_message_permanent() -> super::status::pace_status_t {
    boundary::call(|| reason::advise(Advice::Permanent))
}

/// The message that the handler of this thread fails at is not tried again before `delay_ns` from now, whatever `retry` of
/// the subscription says. Does nothing for a message that is dealt with.
///
/// PACE_ESTALE outside a handler of a hub.
///
/// Threads: the handler's. In handlers: in one of a hub; it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_message_retry_after(delay_ns: u64) -> super::status::pace_status_t {
    boundary::call(|| reason::advise(Advice::After(boundary::nanos(delay_ns))))
}

/// Where a handler's reason and advice lie until it returns.
mod reason {
    use super::super::boundary::{Failure, Result};
    use super::super::status::PACE_ESTALE;
    use crate::hub::Advice;
    use core::cell::RefCell;

    const LONGEST: usize = 1024;
    const NO_HANDLER: Failure =
        Failure::plain(PACE_ESTALE, c"no handler of a hub runs on this thread");

    /// What a handler has said of its failure.
    #[derive(Default)]
    pub(super) struct Said {
        pub(super) reason: Option<Box<str>>,
        pub(super) advice: Option<Advice>,
    }

    thread_local! {
        /// One for each handler that runs on this thread; inline ones may be within others.
        static SAID: RefCell<Vec<Said>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn set(reason: &str) -> Result {
        let mut end = reason.len().min(LONGEST);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        change(|said| said.reason = Some(reason[..end].into()))
    }

    pub(super) fn advise(advice: Advice) -> Result {
        change(|said| said.advice = Some(advice))
    }

    fn change(change: impl FnOnce(&mut Said)) -> Result {
        let last =
            |all: &RefCell<Vec<Said>>| all.borrow_mut().last_mut().map(change).ok_or(NO_HANDLER);
        SAID.try_with(last).unwrap_or(Err(NO_HANDLER))
    }

    /// Runs a handler, and gives back what it said.
    pub(super) fn collect(run: impl FnOnce()) -> Said {
        let _ = SAID.try_with(|all| all.borrow_mut().push(Said::default()));
        run();
        SAID.try_with(|all| all.borrow_mut().pop()).ok().flatten().unwrap_or_default()
    }
}

/// Runs what makes a handler, and gives back the reason that it left.
pub(super) fn collect(run: impl FnOnce()) -> Option<Box<str>> {
    reason::collect(run).reason
}

/// Runs a handler of C's.
pub(super) fn handle(
    handler: unsafe extern "C" fn(*mut c_void, *const pace_message_t, *mut i32),
    data: *mut c_void,
    message: &Message<'_>,
    subscription: pace_subscription_t,
) -> core::result::Result<(), hub::Failure> {
    let headers = fields(message.headers());
    let mut shown = show(message.stored(), message.lost_before(), subscription, &headers);
    shown.attempt = message.attempt();
    let mut outcome = super::status::PACE_EFAILED;
    let said = reason::collect(|| {
        // SAFETY: as the header demands, the handler takes what came with it; the message lives until
        // it returns.
        unsafe { handler(data, &shown, &mut outcome) }
    });
    if outcome == 0 {
        return Ok(());
    }
    let reason =
        said.reason.map_or_else(|| format!("the handler answered {outcome}"), String::from);
    Err(match (outcome, said.advice) {
        (super::status::PACE_EPANIC, _) => hub::Failure::crashed(reason),
        (_, Some(advice)) => hub::Failure::with(reason, advice),
        (_, None) => hub::Failure::new(reason),
    })
}

/// Shows a message of no subscription to a function.
pub(super) fn lend_to<R>(stored: &Stored, to: impl FnOnce(&pace_message_t) -> R) -> R {
    let headers = fields(stored.headers());
    to(&show(stored, 0, pace_subscription_t { id: 0 }, &headers))
}

/// A message as C sees it; its headers are listed already.
pub(super) fn show(
    stored: &Stored,
    lost_before: u64,
    subscription: pace_subscription_t,
    headers: &[pace_field_t],
) -> pace_message_t {
    let payload = stored.payload().as_slice();
    let nothing = |empty: bool, pointer| if empty { ptr::null() } else { pointer };
    pace_message_t {
        sequence: stored.sequence(),
        time_ns: stored.time,
        lost_before,
        key: lend(stored.key().as_str()),
        payload: nothing(payload.is_empty(), payload.as_ptr().cast()),
        size: payload.len(),
        headers: if headers.is_empty() { ptr::null() } else { headers.as_ptr() },
        header_count: headers.len(),
        priority: match stored.priority() {
            Priority::Low => PACE_PRIORITY_LOW,
            Priority::Normal => PACE_PRIORITY_NORMAL,
            Priority::High => PACE_PRIORITY_HIGH,
            Priority::Critical => PACE_PRIORITY_CRITICAL,
        },
        attempt: 1,
        subscription,
    }
}

/// The list of these headers; what it points to lives as long as they do.
pub(super) fn fields(headers: &Headers) -> Vec<pace_field_t> {
    list(headers).collect()
}

/// Each of these headers; what it points to lives as long as they do.
pub(super) fn list(headers: &Headers) -> impl Iterator<Item = pace_field_t> {
    headers.iter().map(|(name, value)| pace_field_t { name: lend(name), value: lend(value) })
}

/// No text.
pub(super) const NOTHING: pace_text_t = pace_text_t { text: ptr::null(), size: 0 };

pub(super) fn lend(text: &str) -> pace_text_t {
    pace_text_t { text: text.as_ptr().cast(), size: text.len() }
}

/// A payload of C's, copied.
///
/// # Safety
///
/// As many bytes can be read, or there are none.
pub(super) unsafe fn payload(bytes: *const c_void, size: usize) -> Result<Payload> {
    if size > MAX_PAYLOAD {
        // Before it is copied: there may be no memory for what no hub takes.
        return Err(Failure::invalid("the payload's size", size, "up to max_payload of the hub"));
    }
    // SAFETY: as the caller promises.
    Ok(Payload::new(unsafe { boundary::bytes(bytes, size, 1, "payload") }?))
}

/// # Safety
///
/// As for [`payload`].
pub(super) unsafe fn payload_of(piece: &pace_piece_t) -> Result<Payload> {
    // SAFETY: as the caller promises.
    unsafe { payload(piece.bytes, piece.size) }
}

/// The priority and headers of a publication.
///
/// # Safety
///
/// As the header demands of the fields.
pub(super) unsafe fn terms(publication: &pace_publication_t) -> Result<(Priority, Headers)> {
    let priority = priority(publication.priority)?;
    // SAFETY: as the caller promises.
    Ok((priority, unsafe { headers(publication.headers, publication.header_count) }?))
}

/// The headers of a message, copied.
///
/// # Safety
///
/// If `count` is not zero, `fields` is NULL or points to as many, and their texts can be read.
pub(super) unsafe fn headers(fields: *const pace_field_t, count: usize) -> Result<Headers> {
    if count > MAX_HEADERS {
        // Before any is looked at: a count that is wrong tells of headers that are not there.
        return Err(Failure::invalid("header_count", count, &format!("up to {MAX_HEADERS}")));
    }
    // SAFETY: as the caller promises.
    let fields = unsafe { slice(fields, count, "headers") }?;
    let mut pairs = Vec::with_capacity(count);
    for field in fields {
        // SAFETY: as the caller promises.
        let name = unsafe { text_of(&field.name, "the name of a header") }?;
        // SAFETY: as above.
        pairs.push((name, unsafe { text_of(&field.value, "the value of a header") }?));
    }
    Ok(Headers::new(pairs)?)
}

pub(super) fn priority(number: i32) -> Result<Priority> {
    match number {
        PACE_PRIORITY_LOW => Ok(Priority::Low),
        PACE_PRIORITY_NORMAL => Ok(Priority::Normal),
        PACE_PRIORITY_HIGH => Ok(Priority::High),
        PACE_PRIORITY_CRITICAL => Ok(Priority::Critical),
        other => Err(Failure::invalid("priority", other, "PACE_PRIORITY_")),
    }
}

/// # Safety
///
/// If `count` is not zero, `pointer` is NULL or points to as many, which live for `'a`.
pub(super) unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    boundary::check(pointer, name)?;
    let most = isize::MAX as usize / size_of::<T>();
    if count > most {
        return Err(Failure::invalid("count", count, &format!("at most {most}")));
    }
    // SAFETY: as the caller promises, and no more than a slice may have.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// # Safety
///
/// As many bytes can be read, or there are none.
pub(super) unsafe fn text_of<'a>(text: &pace_text_t, name: &str) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(text.text.cast(), text.size, 1, name) }?;
    core::str::from_utf8(bytes)
        .map_err(|_| Failure::invalid(name, format_args!("{bytes:?}"), "UTF-8"))
}
