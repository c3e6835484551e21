//! Replies that the host pulls, and the ends of requests that have none.
//!
//! A request that is told of here is in the hub's table as one with a function is. Its *ticket* lies behind
//! `owner.rs`, which runs the `drop` of the ticket once if the request was accepted, and else never: so each
//! request that was accepted has exactly one row, be it answered, late, given up, or alive when its hub goes.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::ask::{failure, pace_asked_t, request_of};
use super::boundary::{self, FORKED, Failure, Out, Result, TIMED_OUT, call, call_void, nanos};
use super::hub::{open as open_hub, open_key, pace_hub_t, pace_key_t};
use super::mailbox::lend_through;
use super::message::{NOTHING, pace_message_t, pace_publication_t, pace_subscription_t};
use super::owner::pair;
use super::status::*;
use crate::hub::{Received, RequestError, Stored};
use crate::pool::Shared;
use crate::queue::Outbox;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use core::ffi::c_void;
use core::ptr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Weak};

/// Where replies wait to be pulled, for any number of requests.
pub struct pace_replies_t {
    outbox: Arc<Outbox<Row>>,
    shared: Arc<Shared>,
}

/// What became of a request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_reply_t {
    /// As it was given with the request.
    pub token: u64,
    /// PACE_OK; PACE_ETIMEDOUT; PACE_ECANCELLED: it was given up, or its hub was freed.
    pub status: pace_status_t,
    /// Zero.
    pub reserved: u32,
    /// With PACE_OK the reply, which is lent until this thread pulls or asks again; else all zero.
    pub message: pace_message_t,
}

struct Row {
    token: u64,
    status: pace_status_t,
    reply: Option<Stored>,
}

/// A request that will have a row.
struct Ticket {
    /// Gone when nobody can pull any more.
    outbox: Weak<Outbox<Row>>,
    token: u64,
    is_told: AtomicBool,
}

impl Ticket {
    fn tell(&self, status: pace_status_t, reply: Option<Stored>) {
        // Relaxed: the call and the drop behind it are ordered by the owner's word.
        self.is_told.store(true, Relaxed);
        if let Some(outbox) = self.outbox.upgrade() {
            let _closed = outbox.put(Row { token: self.token, status, reply });
        }
    }
}

/// # Safety
///
/// `ticket` came from a box, and nothing uses it any more.
unsafe extern "C" fn end(ticket: *mut c_void) {
    // SAFETY: as the caller promises.
    let ticket = unsafe { Box::from_raw(ticket.cast::<Ticket>()) };
    if !ticket.is_told.load(Relaxed) {
        ticket.tell(PACE_ECANCELLED, None);
    }
}

/// Makes a place for replies to requests of this hub.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replies_new(
    hub: *mut pace_hub_t,
    replies: *mut *mut pace_replies_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(replies, "replies") }?;
        let shared = Arc::clone(hub.hub.pool().shared());
        to.set(Box::into_raw(Box::new(pace_replies_t { outbox: Arc::new(Outbox::new()), shared })));
        Ok(())
    })
}

/// As pace_key_request_async(), and no function is called: what becomes of the request is pulled, once, with this
/// token. Whoever replies puts it there, so it does not wait for a thread of the pool. `timeout_ns` counts from
/// now, and its end is told by the pool; PACE_FOREVER: without an end. `asked` may be NULL; it is for
/// pace_hub_give_up().
///
/// If this is refused nothing will be pulled: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the
/// pool are in use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a
/// handler.
///
/// Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_key_request_pulled(
    key: *const pace_key_t,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
    timeout_ns: u64,
    replies: *const pace_replies_t,
    token: u64,
    asked: *mut pace_asked_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let key = unsafe { open_key(key) }?;
        // SAFETY: as the header demands.
        let replies = unsafe { open(replies) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(asked, "asked") }?;
        // SAFETY: as the header demands.
        let message = unsafe { request_of(key, publication, bytes, size) }?;
        let outbox = Arc::downgrade(&replies.outbox);
        let ticket = Box::new(Ticket { outbox, token, is_told: AtomicBool::new(false) });
        let ticket: *mut c_void = Box::into_raw(ticket).cast();
        let (registration, owner) = pair(ticket, Some(end));
        let then = move |reply: core::result::Result<Stored, RequestError>| {
            let Some(ticket) = owner.enter() else { return };
            // SAFETY: it was made above, and lives as long as the owner.
            let ticket = unsafe { &*ticket.cast::<Ticket>() };
            match reply {
                Ok(reply) => ticket.tell(PACE_OK, Some(reply)),
                Err(_) => ticket.tell(PACE_ETIMEDOUT, None),
            }
        };
        match message.request_told(nanos(timeout_ns), then) {
            Ok(asked) => {
                to.set(pace_asked_t { id: asked.number() });
                registration.keep();
                Ok(())
            }
            Err(error) => {
                if registration.give_back() {
                    // SAFETY: it was made above, and given back: nothing uses it.
                    drop(unsafe { Box::from_raw(ticket.cast::<Ticket>()) });
                }
                Err(failure(error))
            }
        }
    })
}

/// Takes up to `capacity` of what has become of requests, and waits for up to `timeout_ns` for the first. Each
/// goes to one of those who pull. What the rows point to stays where it is until this thread pulls or asks again,
/// or ends.
///
/// PACE_ETIMEDOUT: nothing came; PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless
/// the time is 0.
///
/// Threads: any. In handlers: yes, with a time of 0. It waits otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replies_pull(
    replies: *const pace_replies_t,
    rows: *mut pace_reply_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let replies = unsafe { open(replies) }?;
        boundary::check(rows, "rows")?;
        if capacity == 0 {
            return Err(Failure::invalid("capacity", 0, "at least 1"));
        }
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        if timeout_ns > 0 && replies.shared.may_not_wait() {
            return Err(crate::Error::WouldDeadlock.into());
        }
        let mut taken = Vec::new();
        replies.outbox.take(&mut taken, capacity, nanos(timeout_ns));
        if taken.is_empty() {
            return Err(TIMED_OUT);
        }
        let mut answered = Vec::with_capacity(taken.len());
        for (index, Row { token, status, .. }) in taken.iter().enumerate() {
            let row = pace_reply_t { token: *token, status: *status, reserved: 0, message: NONE };
            // SAFETY: no more than `capacity` were taken, and there is room for as many.
            unsafe { rows.add(index).write(row) };
            answered.extend((*status == PACE_OK).then_some(index));
        }
        let total = taken.len();
        let lent = lend_through(
            |into| {
                let replies = taken.into_iter().filter_map(|row| row.reply);
                replies.for_each(|stored| into.push(Received { stored, lost_before: 0 }));
                Ok(answered.len())
            },
            // SAFETY: as above; it was written.
            |nth, shown| unsafe { (*rows.add(answered[nth])).message = shown },
        )?;
        match lent == answered.len() {
            true => count.set(total),
            // The thread ends, and has no place for them.
            false => return Err(TIMED_OUT),
        }
        Ok(())
    })
}

/// *fd is readable while a pull would not wait. It belongs to `replies`: never read or close it.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replies_pollable(
    replies: *const pace_replies_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let replies = unsafe { open(replies) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(replies.outbox.pollable()?.as_raw_fd());
        Ok(())
    })
}

/// Frees it. Requests that are still open go on; nobody is told of them. NULL is a no-op, and in a forked child
/// nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_replies_free(replies: *mut pace_replies_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        if unsafe { open(replies) }.is_ok() {
            // SAFETY: as the header demands, it came from here and is used by nobody else.
            drop(unsafe { Box::from_raw(replies) });
        }
    });
}

/// No message.
const NONE: pace_message_t = pace_message_t {
    sequence: 0,
    time_ns: 0,
    lost_before: 0,
    key: NOTHING,
    payload: ptr::null(),
    size: 0,
    headers: ptr::null(),
    header_count: 0,
    priority: 0,
    attempt: 0,
    subscription: pace_subscription_t { id: 0 },
};

/// # Safety
///
/// As the header demands of replies.
unsafe fn open<'a>(replies: *const pace_replies_t) -> Result<&'a pace_replies_t> {
    // SAFETY: as the caller promises.
    let replies = unsafe { boundary::borrow(replies, "replies") }?;
    if replies.shared.is_forked() { Err(FORKED) } else { Ok(replies) }
}
