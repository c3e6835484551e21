//! Requests, and replies to them.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Result, TIMED_OUT, call, callback, nanos, optional_out, out, usable,
};
use super::callback::pace_drop_fn;
use super::hub::{answer, pace_hub_t, pace_key_t, pace_receipt_t, room};
use super::message::{
    PLAIN, lend_to, list, pace_message_t, pace_publication_t, pace_subscription_t, payload, show,
    slice, terms, text_of,
};
use super::owner::pair;
use super::sized::{self, InOut};
use super::status::*;
use super::values::pace_field_t;
use crate::hub::{Key, Publication, RequestError, Stored};
use core::cell::RefCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Publishes a request, and waits for up to `timeout_ns` for the reply of whoever is first. The header
/// Reply-To is added to those of `publication`, which may be NULL. *reply stays where it is until this thread
/// asks again, or ends.
///
/// PACE_ENORESPONDERS: nobody subscribes to the key; PACE_EFULL: none of those who do has taken it, because
/// they are full or suspended, or as pace_key_publish(); PACE_ETIMEDOUT: a reply that comes later is lost.
/// PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK on a thread of the pool, if no other is left.
///
/// Threads: any. In handlers: yes. It waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_request(
    key: Option<&pace_key_t>,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
    timeout_ns: u64,
    reply: Option<&mut MaybeUninit<pace_message_t>>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        let to = out(reply, "reply")?;
        // SAFETY: as the header demands.
        let message = unsafe { request_of(key, publication, bytes, size) }?;
        let stored = message.request(nanos(timeout_ns)).and_then(|pending| pending.wait());
        let stored = stored.map_err(failure)?;
        to.set(keep(stored)?);
        Ok(())
    })
}

thread_local! {
    /// The last reply that this thread was shown, and its headers.
    static KEPT: RefCell<Option<(Stored, Vec<pace_field_t>)>> = const { RefCell::new(None) };
}

/// Shows a reply, and keeps it where this thread's last one is. While the thread ends there is no such place any more.
fn keep(reply: Stored) -> Result<pace_message_t> {
    let shown = KEPT.try_with(|kept| {
        drop(kept.replace(Some((reply, Vec::new()))));
        // From where it stays: a short payload lies in the reply itself.
        kept.borrow_mut().as_mut().map(|(reply, fields)| {
            fields.extend(list(reply.headers()));
            show(reply, 0, pace_subscription_t { id: 0 }, fields)
        })
    });
    shown.ok().flatten().ok_or(TIMED_OUT)
}

/// Names a request whose function is still to be called. Numbers are given once in a hub.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct pace_asked_t {
    /// An opaque number, to be copied and compared.
    pub id: u64,
}

/// Called once with the reply to a request, which is lent until it returns, and PACE_OK; or with NULL and
/// PACE_ETIMEDOUT. On a thread of the pool.
pub type pace_reply_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        status: pace_status_t,
        reply: *const pace_message_t,
    ),
>;

/// As pace_key_request(), and waits for nothing: a thread of the pool calls `on_reply`, once. It may be called
/// before this returns. `asked` may be NULL. `timeout_ns` counts from now; PACE_FOREVER: without an end.
/// `drop` runs after the call; and without a call if the request is given up by pace_hub_give_up(), or when the
/// hub is freed before a reply came.
///
/// If this is refused neither is called: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the pool
/// are in use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a
/// handler.
///
/// Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_request_async(
    key: Option<&pace_key_t>,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
    timeout_ns: u64,
    on_reply: pace_reply_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    asked: Option<&mut MaybeUninit<pace_asked_t>>,
) -> pace_status_t {
    call(|| {
        let key = usable(key)?;
        let to = optional_out(asked);
        let on_reply = callback(on_reply, "on_reply")?;
        // SAFETY: as the header demands.
        let message = unsafe { request_of(key, publication, bytes, size) }?;
        let (registration, owner) = pair(user_data, drop);
        let then = move |reply: core::result::Result<Stored, RequestError>| {
            let Some(data) = owner.enter() else { return };
            match reply {
                // SAFETY: as the header demands, the function takes what came with it; the reply lives
                // until it returns.
                Ok(reply) => lend_to(&reply, |shown| unsafe { on_reply(data, PACE_OK, shown) }),
                // SAFETY: as above.
                Err(_) => unsafe { on_reply(data, PACE_ETIMEDOUT, core::ptr::null()) },
            }
        };
        match message.request_then(nanos(timeout_ns), then) {
            Ok(asked) => {
                to.set(pace_asked_t { id: asked.number() });
                registration.keep();
                Ok(())
            }
            Err(error) => {
                registration.give_back();
                Err(failure(error))
            }
        }
    })
}

/// Gives a request up. *given_up, which may be NULL: its function will never be called, and `drop` has run.
/// Otherwise it is being called, or was.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_give_up(
    hub: Option<&pace_hub_t>,
    asked: pace_asked_t,
    given_up: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let to = optional_out(given_up);
        to.set(hub.hub.give_up(asked.id));
        Ok(())
    })
}

/// Replies to a request, which may be a copy of the message that came. Any thread may, any number of times:
/// the first reply counts. `receipt` may be NULL; its `enqueued` is 1 also if nobody waits any more.
///
/// PACE_EINVAL if the message is no request; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_reply(
    hub: Option<&pace_hub_t>,
    request: *const pace_message_t,
    bytes: *const c_void,
    size: usize,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        // SAFETY: as the header demands.
        let request = unsafe { boundary::borrow(request, "request") }?;
        let room = room(receipt)?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        // SAFETY: as the header demands.
        let fields = unsafe { slice(request.headers, request.header_count, "headers") }?;
        for field in fields {
            // SAFETY: as the header demands.
            if unsafe { text_of(&field.name, "the name of a header") }? == REPLY_TO {
                // SAFETY: as the header demands.
                let inbox = unsafe { text_of(&field.value, "the value of a header") }?;
                return answer(room, hub.hub.publish(inbox, payload));
            }
        }
        Err(Failure::invalid("the message", "not a request", "one with a Reply-To header"))
    })
}

/// # Safety
///
/// As the header demands of a publication, which may be NULL, and its payload.
pub(super) unsafe fn request_of<'a>(
    key: &'a pace_key_t,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
) -> Result<Publication<'a, &'a Key>> {
    let publication = match publication.is_null() {
        true => PLAIN,
        // SAFETY: as the caller promises.
        false => unsafe { sized::read(publication, "publication") }?,
    };
    // SAFETY: as the caller promises.
    let (priority, headers) = unsafe { terms(&publication) }?;
    // SAFETY: as the caller promises.
    let payload = unsafe { payload(bytes, size) }?;
    let message = key.hub.message(&key.key).priority(priority);
    Ok(message.headers(headers).payload(payload))
}

/// The header that names where the reply goes.
const REPLY_TO: &str = "Reply-To";

pub(super) fn failure(error: RequestError) -> Failure {
    match error {
        RequestError::NoResponders => Failure::told(PACE_ENORESPONDERS, error.to_string()),
        RequestError::Refused(_) => Failure::told(PACE_EFULL, error.to_string()),
        RequestError::TimedOut => TIMED_OUT,
        RequestError::Hub(error) => error.into(),
    }
}
