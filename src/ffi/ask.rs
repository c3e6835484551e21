//! Requests, and replies to them.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, TIMED_OUT, call, nanos};
use super::hub::{fill, open, open_key, pace_hub_t, pace_key_t, pace_receipt_t, room};
use super::mailbox::keep;
use super::message::{PLAIN, pace_message_t, pace_publication_t, payload, slice, terms, text_of};
use super::sized;
use super::status::*;
use crate::hub::{Received, RequestError};
use core::ffi::c_void;

/// Publishes a request, and waits for up to `timeout_ns` for the reply of whoever is first. The header
/// Reply-To is added to those of `publication`, which may be NULL. *reply stays where it is until this thread
/// asks or pulls again, or ends.
///
/// PACE_ENORESPONDERS: nobody subscribes to the key; PACE_EFULL: none of those who do has taken it, because
/// they are full or suspended; PACE_ETIMEDOUT: a reply that comes later is lost. PACE_EINVAL, PACE_EVERSION,
/// PACE_ESHUTDOWN; PACE_EDEADLOCK on a thread of the pool, if no other is left.
///
/// Threads: any. In handlers: yes. It waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_request(
    key: *const pace_key_t,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
    timeout_ns: u64,
    reply: *mut pace_message_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let key = unsafe { open_key(key) }?;
        let publication = match publication.is_null() {
            true => PLAIN,
            // SAFETY: as the header demands.
            false => unsafe { sized::read(publication, "publication") }?,
        };
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(reply, "reply") }?;
        // SAFETY: as the header demands.
        let (priority, headers) = unsafe { terms(&publication) }?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        let message = key.hub.message(&key.key).priority(priority);
        let message = message.headers(headers).payload(payload);
        let message = if publication.may_block { message.may_block() } else { message };
        let stored = message.request(nanos(timeout_ns)).and_then(|pending| pending.wait());
        let stored = stored.map_err(failure)?;
        to.set(keep(Received { stored, lost_before: 0 })?);
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
    hub: *mut pace_hub_t,
    request: *const pace_message_t,
    bytes: *const c_void,
    size: usize,
    receipt: *mut pace_receipt_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open(hub) }?;
        // SAFETY: as the header demands.
        let request = unsafe { boundary::borrow(request, "request") }?;
        // SAFETY: as the header demands.
        let room = unsafe { room(receipt) }?;
        // SAFETY: as the header demands.
        let payload = unsafe { payload(bytes, size) }?;
        // SAFETY: as the header demands.
        let fields = unsafe { slice(request.headers, request.header_count, "headers") }?;
        for field in fields {
            // SAFETY: as the header demands.
            if unsafe { text_of(&field.name, "the name of a header") }? == REPLY_TO {
                // SAFETY: as the header demands.
                let inbox = unsafe { text_of(&field.value, "the value of a header") }?;
                fill(room, hub.hub.publish(inbox, payload)?);
                return Ok(());
            }
        }
        Err(Failure::invalid("the message", "not a request", "one with a Reply-To header"))
    })
}

/// The header that names where the reply goes.
const REPLY_TO: &str = "Reply-To";

fn failure(error: RequestError) -> Failure {
    match error {
        RequestError::NoResponders => Failure::told(PACE_ENORESPONDERS, error.to_string()),
        RequestError::Refused(_) => Failure::told(PACE_EFULL, error.to_string()),
        RequestError::TimedOut => TIMED_OUT,
        RequestError::Hub(error) => error.into(),
    }
}
