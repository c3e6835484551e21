//! Messages of several keys: everybody takes theirs, or nobody gets any.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, call, usable};
use super::hub::{
    PACE_PUBLISH_NO_RECEIPT, answer, asked, open_key, pace_hub_t, pace_key_t, pace_receipt_t,
};
use super::message::{PLAIN, pace_publication_t, payload, slice, terms};
use super::sized::{self, InOut};
use super::status::*;
use crate::hub::MOST_TOGETHER;
use core::ffi::c_void;

/// One of the messages that are published together.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_publish_item_t {
    /// The key that the message is published with.
    pub key: *const pace_key_t,
    /// Its headers and priority. NULL: none, and normal.
    pub publication: *const pace_publication_t,
    /// Its payload, which is copied. May be NULL if `size` is 0.
    pub bytes: *const c_void,
    /// The size of the payload in bytes.
    pub size: usize,
}

/// Publishes up to 1024 messages, of one key or several: every mailbox takes its own of them, or nobody gets
/// any. They are in order for each subscription; messages of others may come in between. Who subscribes
/// meanwhile may miss them. The receipt is the sum of theirs. `flags` is 0 or PACE_PUBLISH_NO_RECEIPT.
///
/// A mailbox that drops or conflates by its own rules has taken a message, a suspended subscription's becomes a
/// dead letter, and one of an inline handler is handled, well or not. A mailbox with a filter must have room
/// also for what the filter keeps away. It takes longer than to publish one by one.
///
/// PACE_EFULL: a mailbox would refuse, which pace_last_error() names, or a history has no room. PACE_EINVAL: as
/// pace_key_publish_with(), and for a key that a group subscribes to, a key of another hub, and more than 1024.
/// PACE_EVERSION, PACE_ESHUTDOWN. Nobody got anything then.
///
/// Threads: any. In handlers: yes; it waits only if a history on disk has no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_publish_all(
    hub: Option<&pace_hub_t>,
    messages: *const pace_publish_item_t,
    count: usize,
    flags: u32,
    receipt: InOut<pace_receipt_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        let (_, room) = asked(flags, PACE_PUBLISH_NO_RECEIPT, receipt)?;
        if count > MOST_TOGETHER {
            // Before any is looked at: a count that is wrong tells of messages that are not there.
            return Err(Failure::invalid("count", count, "up to 1024"));
        }
        // SAFETY: as the header demands.
        let messages = unsafe { slice(messages, count, "messages") }?;
        let mut all = Vec::with_capacity(count);
        for message in messages {
            // SAFETY: as the header demands.
            let key = unsafe { open_key(message.key) }?;
            let publication = match message.publication.is_null() {
                true => PLAIN,
                // SAFETY: as the header demands.
                false => unsafe { sized::read(message.publication, "publication") }?,
            };
            // SAFETY: as the header demands.
            let (priority, headers) = unsafe { terms(&publication) }?;
            // SAFETY: as the header demands.
            let payload = unsafe { payload(message.bytes, message.size) }?;
            let message = key.hub.message(&key.key).priority(priority);
            all.push(message.headers(headers).payload(payload));
        }
        answer(room, hub.hub.publish_all(all))
    })
}
