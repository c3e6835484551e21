//! Completion queues: how an entry is completed.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{Advice, fault, message_of};
use super::boundary::{self, Failure, Out as Give, Result, call, nanos, out, usable};
use super::callback::{
    PACE_FLOW_AGAIN, PACE_FLOW_DONE, PACE_FLOW_PAUSE, PACE_FLOW_WAIT, pace_conn_id_t,
};
use super::conn::{BUSY, name as conn_name, number_of, pace_admission_t};
use super::conn_event::kinds;
use super::cq::{NOT_OUT, State, open, pace_cq_t};
use super::cq_entry::{Answer, Answered, Item, Out};
use super::server::pace_server_t;
use super::status::*;
use super::task_status::number_of as number_of_status;
use crate::cq::internal::{Core, Done, Entry, EntryKind, Internal, Parts, Table, Told};
use crate::http::{Exchange, HttpEvent, Response, Whose};
use crate::net::{ConnEvent, WriteStatus};
use crate::{Error, Flow};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::sync::{Arc, Weak};

/// A connection whose time was over goes on: the time begins anew.
pub const PACE_CQ_KEEP: u32 = 1;
/// A connection that was opened is not wanted: it is sent the completion's bytes, and closed.
pub const PACE_CQ_REFUSE: u32 = 2;
/// A connection: after what is queued, tell the peer that no more is sent.
pub const PACE_CQ_FINISH: u32 = 4;
/// A connection: close it after what is queued. A request: no more requests follow on its connection.
pub const PACE_CQ_CLOSE: u32 = 8;
/// A connection: close it at once. A request: it gets no answer, or no more of one, and its connection is closed at once.
pub const PACE_CQ_ABORT: u32 = 16;
/// A connection: only write and close; the entry stays out, and is completed by another completion.
pub const PACE_CQ_HOLD: u32 = 32;
/// What handles the entry has failed. A connection is closed at once, with PACE_REASON_PANICKED. A request gets a 500,
/// or its answer breaks off; that is counted in pace_http_stats_t.panics. An attempt has failed. A message becomes a dead
/// letter.
pub const PACE_CQ_FAIL: u32 = 64;
/// A request: its answer's body goes on; other completions of the same token write its next pieces, and the last one is
/// without this.
pub const PACE_CQ_MORE: u32 = 128;
/// A request: the body is a short page about the status in the form that the request wants most, as
/// pace_response_error() has it. `bytes` do not matter.
pub const PACE_CQ_ERROR_PAGE: u32 = 256;
/// An attempt that failed: another one may help, but not before after_ns.
pub const PACE_CQ_AFTER: u32 = 512;
/// An attempt that failed: no other one will help.
pub const PACE_CQ_PERMANENT: u32 = 1024;
/// A message: it is brought once more, with the next attempt's number, after what is listed already.
pub const PACE_CQ_RETRY: u32 = 2048;

const KNOWN: u32 = 2 * PACE_CQ_RETRY - 1;

/// How an entry is completed. All zero but `token` says: it is dealt with. For a request that is no answer, and its peer
/// gets a 500.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_completion_t {
    /// Which entry it is for: the token of that.
    pub token: u64,
    /// What else is to be done: PACE_CQ_KEEP to PACE_CQ_RETRY, added up; 0 for nothing.
    pub flags: u32,
    /// A request: its status, 200 to 599; later pieces of a body have none. A descriptor or tick: PACE_FLOW_, as a
    /// handler's answer. A message that failed: after how many attempts, of the host's own counting; 0: none.
    pub answer: u32,
    /// A connection: what is written to it first. A request: the body, or its next piece. May be NULL if `size` is 0.
    pub bytes: *const c_void,
    /// How many bytes there are at `bytes`.
    pub size: usize,
    /// A request: lines of headers, each ended by CR LF: "Name: value". May be NULL if `headers_size` is 0. Later pieces
    /// have none.
    pub headers: *const c_void,
    /// How many bytes the lines have.
    pub headers_size: usize,
    /// A connection: how many of the last bytes that the entry lent are not consumed; they come again, followed by more.
    /// A request with PACE_CQ_MORE: the whole body's length, or PACE_CQ_UNKNOWN. Otherwise 0.
    pub length: u64,
    /// An attempt with PACE_CQ_AFTER: nanoseconds.
    pub after_ns: u64,
    /// An attempt or a message that failed: what went wrong, for the report: UTF-8, and copied. NULL: nothing is known.
    pub message: *const c_char,
    /// An attempt that failed: a number of your own other than 0, or 0 for PACE_EFAILED. Without PACE_CQ_FAIL 0.
    pub error: i32,
    /// Out: what has become of a connection's or a body's bytes, PACE_WRITE_STATUS_. PACE_WRITE_STATUS_UNWANTED: the peer
    /// gets no body; end it with a completion without PACE_CQ_MORE. Of an attempt: how its task stands now,
    /// PACE_TASK_RETRYING or an end.
    pub status: u32,
    /// Out: what has become of it. PACE_ESTALE: nothing of this token is out, or the connection or task has ended.
    /// PACE_EFULL: there was no room for the bytes, none of which was taken. PACE_EINVAL: flags that stand for nothing, or
    /// more bytes than there are. After the last two of a connection, and of a body that goes on, the entry is still out;
    /// otherwise it is completed. A request whose answer cannot be (PACE_EINVAL) gets a 500.
    pub result: i32,
    /// Not used: zero for now.
    pub reserved: u32,
}

/// The length of a body that is not known: it is sent in chunks.
pub const PACE_CQ_UNKNOWN: u64 = u64::MAX;

/// Completes `count` entries, in order, whatever threads have taken them. Each says in `result` what has become of it; the
/// status of the call is the first of them that is not PACE_OK.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_complete(
    cq: *mut pace_cq_t,
    completions: *mut pace_cq_completion_t,
    count: usize,
) -> pace_status_t {
    let mut first = PACE_OK;
    let status = call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands. This refuses NULL, and more than a slice may have.
        if unsafe { boundary::array(completions, count, "completions") }?.is_empty() {
            return Ok(());
        }
        // SAFETY: found good above.
        let completions = unsafe { core::slice::from_raw_parts_mut(completions, count) };
        for completion in completions {
            completion.result = call(|| {
                // SAFETY: as the header demands of what it points to.
                unsafe { complete(cq, completion) }
            });
            if first == PACE_OK {
                first = completion.result;
            }
        }
        Ok(())
    });
    if status == PACE_OK { first } else { status }
}

/// Asks for the next part of a request's body that is read in parts (pace_cq_route): PACE_CQ_BODY, or its end, comes when it
/// is there. Nothing is read from the connection beyond what was asked for, so a peer is never faster than its host; one
/// that waits for "100 Continue" is told so by the first call. When the request was answered to the end, no part comes
/// any more.
///
/// PACE_ESTALE: no such request is out, its answer is complete, or the end was told.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_read(cq: *mut pace_cq_t, token: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        let upload = match cq.state.lock().table.get(token) {
            Some(Item { out: Out::Request(request), .. }) => request.upload.clone(),
            // Another thread writes a piece of its answer.
            Some(Item { out: Out::Busy(_, upload), .. }) => upload.clone(),
            _ => None,
        };
        if upload.is_some_and(|upload| upload.ask()) { Ok(()) } else { Err(NO_BODY) }
    })
}

/// Has PACE_CQ_CLIENT_GONE brought once if the client of a request goes before it has its answer: it has reset or closed its
/// connection, or sends no more, unless its listener allows peers to be half open. If it has gone, that comes now. A
/// client that has only finished sending still gets an answer; of one that goes before the body of its request is whole
/// PACE_CQ_BODY_BROKEN tells instead.
///
/// PACE_ESTALE: no such request is out, or its answer is complete.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_watch_client(cq: *mut pace_cq_t, token: u64) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        let (exchange, tag) = exchange_of(cq, token)?;
        let (core, whose) = (Arc::downgrade(&cq.core), Whose { number: token, tag });
        exchange.on_gone(Box::new(move || tell(&core, whose, HttpEvent::Gone(whose))));
        Ok(())
    })
}

/// Sets *is_gone to whether the client of a request has gone, as pace_response_is_client_gone().
///
/// PACE_ESTALE: no such request is out, or its answer is complete.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_is_client_gone(
    cq: *mut pace_cq_t,
    token: u64,
    is_gone: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        let to = out(is_gone, "is_gone")?;
        to.set(exchange_of(cq, token)?.0.is_client_gone());
        Ok(())
    })
}

/// Of a request that is out, with the tag of its route.
fn exchange_of(cq: &pace_cq_t, token: u64) -> Result<(Arc<Exchange>, u64)> {
    match cq.state.lock().table.get(token) {
        Some(Item { out: Out::Request(request), tag, .. }) => {
            Some((Arc::clone(request.answer.exchange()), *tag))
        }
        // Another thread writes a piece of its answer.
        Some(Item { out: Out::Busy(exchange, _), tag, .. }) => {
            exchange.as_ref().map(|exchange| (Arc::clone(exchange), *tag))
        }
        _ => None,
    }
    .ok_or(NOT_OUT)
}

/// Answers a request with 101, and gives its connection to a server that is attached to a completion queue
/// (pace_cq_server), for a protocol that the request has asked for: what happens to it comes there, with `wanted` as for
/// pace_cq_connect(), beginning with PACE_CONN_EVENT_OPENED. `headers` are lines as those of an answer; NULL if
/// `headers_size` is 0.
///
/// The connection stays the HTTP server's: pace_http_server() is the server of the functions that take *conn, its limits
/// stay in force, and it is drained with that one. The request is completed, whatever this answers, unless that is
/// PACE_EINVAL for an argument that is NULL, `server` or `wanted`. `conn` may be NULL.
///
/// PACE_EINVAL also if the request has asked for no other protocol, or for a header: then the peer gets a 500.
/// PACE_ESTALE: no such request is out, or its connection has ended.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_upgrade(
    cq: *mut pace_cq_t,
    token: u64,
    protocol: *const c_char,
    headers: *const c_void,
    headers_size: usize,
    server: Option<&pace_server_t>,
    wanted: u32,
    conn: *mut pace_conn_id_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let protocol = unsafe { boundary::text(protocol, "protocol") }?;
        // SAFETY: as the header demands.
        let lines = unsafe { boundary::bytes(headers, headers_size, 1, "headers") }?;
        let handler = usable(server)?.server.handler(kinds(wanted)?)?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::optional(conn, "conn") }?;
        let mut state = cq.state.lock();
        let is_whole = matches!(
            state.table.get(token),
            Some(Item { out: Out::Request(request), .. })
                if matches!(request.answer, Answer::Request(_))
        );
        let done = if is_whole { state.table.finish(token, false) } else { Done::Stale };
        drop(state);
        let Done::Last(Item { out: Out::Request(request), .. }) = done else {
            return Err(NOT_OUT);
        };
        request.forget();
        let Answer::Request(request) = request.answer else { return Err(NOT_OUT) };
        let id = conn_name(request.conn.id());
        with_headers(request.response, lines)?.upgrade(protocol, handler)?;
        to.set(id);
        Ok(())
    })
}

/// As pace_conn_admit(), while an entry of a connection is out: begins a request of its connection, which counts as in
/// work until it was answered or freed, be it after the entry was completed.
///
/// PACE_ESTALE: no such entry is out. PACE_EFULL: as many are in work as max_requests allows; the server's busy message
/// has been written instead.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_admit(
    cq: *mut pace_cq_t,
    token: u64,
    admission: *mut *mut pace_admission_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(admission, "admission") }?;
        // Not under the lock: the busy message may go through a filter.
        let conn = match cq.state.lock().table.get(token) {
            Some(Item { out: Out::Conn(event), .. }) => Some(event.conn().clone()),
            _ => None,
        };
        let admitted = conn.ok_or(NOT_OUT)?.admit();
        to.set(pace_admission_t::give(admitted.ok_or(BUSY)?, Arc::clone(&cq.core.shared)));
        Ok(())
    })
}

/// Whether an attempt that is out should be given up: its task was cancelled, its time is over, or the worker pool
/// stops.
///
/// PACE_ESTALE: no attempt of this token is out.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_is_cancelled(
    cq: *mut pace_cq_t,
    token: u64,
    cancelled: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Give::new(cancelled, "cancelled") }?;
        match cq.state.lock().table.get(token) {
            Some(Item { out: Out::Attempt(attempt), .. }) => to.set(attempt.is_cancelled()?),
            _ => return Err(NOT_OUT),
        }
        Ok(())
    })
}

const NO_BODY: Failure = Failure::plain(PACE_ESTALE, c"no body of this request is to be read");

/// Entries that are dealt with, all of them.
pub(super) fn done(state: &State, tokens: impl Iterator<Item = u64>) -> Result {
    let mut over = Vec::new();
    let were_out = state.lock().table.finish_all(tokens.filter(|&token| token != 0), &mut over);
    over.into_iter().for_each(succeed);
    if were_out { Ok(()) } else { Err(NOT_OUT) }
}

/// What its drop does not do.
fn succeed(item: Item) {
    match item.out {
        Out::Attempt(attempt) => drop(attempt.complete(Ok(()))),
        Out::Request(request) => request.forget(),
        _ => {}
    }
}

/// Nobody completes these any more.
pub(super) fn withdraw(item: Item, left: Parts) {
    const GONE: &str = "nobody has completed what was brought to a completion queue";
    match item.out {
        Out::Request(request) => request.forget(),
        Out::Messages(group) => {
            let Some(mail) = &group.mail else { return };
            // Where they come from may be gone, and its messages with it.
            group.each(left, |message| drop(mail.bury(&message.stored, Some(GONE), group.attempt)));
        }
        _ => {}
    }
}

/// # Safety
///
/// What the completion points to is as the header demands.
unsafe fn complete(cq: &pace_cq_t, completion: &mut pace_cq_completion_t) -> Result {
    let (state, token, flags) = (&*cq.state, completion.token, completion.flags);
    if flags & !KNOWN != 0 || completion.reserved != 0 {
        return Err(Failure::invalid("flags", flags, "PACE_CQ_ flags, and reserved 0"));
    }
    let mut leased = state.lock();
    if let Some(Item { out: Out::Messages(_), .. }) = leased.table.get(token) {
        drop(leased);
        // SAFETY: as the caller promises.
        return unsafe { of_message(state, completion) };
    }
    let Some(mut item) = leased.table.claim(token).map(Item::take) else { return Err(NOT_OUT) };
    drop(leased);
    // SAFETY: as the caller promises.
    let (back, result) = unsafe { answer(cq, &mut item, completion) };
    let mut leased = state.lock();
    let result = if back {
        leased.table.give_back(token, state.now(), |out| *out = item);
        watch_body(cq, &mut leased.table, completion);
        result
    } else {
        let _done = leased.table.finish(token, true);
        drop(leased);
        drop(item);
        return result;
    };
    drop(leased);
    result
}

/// Whether the item is still out, and what has become of the completion.
///
/// # Safety
///
/// What the completion points to is as the header demands.
unsafe fn answer(
    cq: &pace_cq_t,
    item: &mut Item,
    completion: &mut pace_cq_completion_t,
) -> (bool, Result) {
    let fails = completion.flags & PACE_CQ_FAIL != 0;
    match item.take().out {
        Out::Event(held) => {
            let flow = match i32::try_from(completion.answer).unwrap_or(-1) {
                PACE_FLOW_WAIT => Flow::Wait,
                PACE_FLOW_AGAIN => Flow::Again,
                PACE_FLOW_PAUSE => Flow::Pause,
                PACE_FLOW_DONE => Flow::Done,
                other => {
                    item.out = Out::Event(held);
                    return (true, Err(Failure::invalid("answer", other, "0 to 3 (PACE_FLOW_)")));
                }
            };
            held.complete(flow);
            (false, Ok(()))
        }
        Out::Conn(mut event) => {
            // SAFETY: as the caller promises.
            let (back, result) = unsafe { of_conn(&mut event, completion) };
            if back {
                item.out = Out::Conn(event);
            }
            (back, result)
        }
        Out::Request(request) => {
            // SAFETY: as the caller promises.
            let (back, result) = unsafe { of_request(*request, completion) };
            let is_back = back.is_some();
            if let Some(request) = back {
                item.out = Out::Request(request);
            }
            (is_back, result)
        }
        Out::Attempt(attempt) => {
            let advice = match completion.flags & (PACE_CQ_AFTER | PACE_CQ_PERMANENT) {
                0 => Advice::Any,
                PACE_CQ_AFTER => Advice::After(nanos(completion.after_ns)),
                PACE_CQ_PERMANENT => Advice::Permanent,
                _ => {
                    item.out = Out::Attempt(attempt);
                    let allowed = "PACE_CQ_AFTER or PACE_CQ_PERMANENT, not both";
                    return (true, Err(Failure::invalid("flags", completion.flags, allowed)));
                }
            };
            let number = if completion.error == 0 { PACE_EFAILED } else { completion.error };
            let ended = match fails {
                // SAFETY: as the caller promises.
                true => Err(fault(number, unsafe { message_of(completion.message) }, advice)),
                false => Ok(()),
            };
            let result = attempt.complete(ended);
            let result = result.map(|status| completion.status = number_of_status(status));
            (false, result.map_err(Failure::from))
        }
        Out::Bytes(..) | Out::Datagram(_) | Out::Record(_) => (false, Ok(())),
        Out::Messages(_) | Out::Busy(..) => {
            let _ = cq;
            (false, Err(NOT_OUT))
        }
    }
}

/// # Safety
///
/// The completion's texts are as the header demands.
unsafe fn of_message(state: &State, completion: &pace_cq_completion_t) -> Result {
    let token = completion.token;
    let (fails, retries) =
        (completion.flags & PACE_CQ_FAIL != 0, completion.flags & PACE_CQ_RETRY != 0);
    let mut leased = state.lock();
    let mut taken = None;
    if (fails || retries)
        && let Some(Item { out: Out::Messages(group), tag, .. }) = leased.table.get(token)
    {
        let (part, tag) = (Parts::of(token), *tag);
        let mut found = None;
        group.each(part, |message| found = Some(message));
        taken = found.map(|message| (message, group.mail.clone(), group.attempt, tag));
    }
    let done = leased.table.finish(token, false);
    let mut calls = false;
    let mut buried = None;
    match taken {
        Some((message, mail, attempt, tag)) if retries && !fails => {
            leased.again.push_back(Item::message(tag, message, mail, attempt + 1));
            calls = true;
        }
        other => buried = other,
    }
    drop(leased);
    if calls {
        state.call();
    }
    match done {
        Done::Stale => Err(NOT_OUT),
        Done::Part | Done::Last(_) => match buried {
            Some((message, Some(mail), ..)) => {
                // SAFETY: as the caller promises.
                let failure = unsafe { message_of(completion.message) };
                Ok(mail.bury(&message.stored, failure.as_deref(), completion.answer)?)
            }
            _ => Ok(()),
        },
    }
}

/// # Safety
///
/// The completion's bytes are as the header demands.
unsafe fn of_conn(event: &mut ConnEvent, completion: &mut pace_cq_completion_t) -> (bool, Result) {
    let has = |flag| completion.flags & flag != 0;
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(completion.bytes, completion.size, 1, "bytes") };
    let lent = event.bytes().len();
    let checked = bytes.and_then(|bytes| {
        let left = usize::try_from(completion.length).unwrap_or(usize::MAX);
        let Some(consumed) = lent.checked_sub(left) else {
            let allowed = format!("at most {lent}, as many bytes as the entry has lent");
            return Err(Failure::invalid("length", left, &allowed));
        };
        event.consume(consumed)?;
        Ok(bytes)
    });
    let bytes = match checked {
        Ok(bytes) => bytes,
        Err(failure) => return (true, Err(failure)),
    };
    let mut result = Ok(());
    if has(PACE_CQ_REFUSE) {
        event.refuse(bytes);
    } else if !bytes.is_empty() {
        match event.conn().write(bytes) {
            Ok(wrote) => completion.status = number_of(wrote),
            Err(error @ Error::Full { .. }) => return (true, Err(error.into())),
            Err(error) => result = Err(error.into()),
        }
    }
    let conn = event.conn();
    // An end that is not needed any more is none that failed.
    if has(PACE_CQ_FINISH) {
        let _ = conn.shutdown_write();
    }
    if has(PACE_CQ_CLOSE) {
        let _ = conn.close();
    }
    if has(PACE_CQ_ABORT) {
        let _ = conn.abort();
    }
    if has(PACE_CQ_KEEP) {
        event.keep();
    }
    if has(PACE_CQ_FAIL) {
        event.fail();
    }
    (has(PACE_CQ_HOLD), result)
}

impl Answered {
    /// Nobody reads its body any more.
    fn forget(&self) {
        if let Some(upload) = &self.upload {
            upload.forget();
        }
    }
}

/// What is still out, and what has become of the completion.
///
/// # Safety
///
/// The completion's bytes are as the header demands.
unsafe fn of_request(
    request: Answered,
    completion: &mut pace_cq_completion_t,
) -> (Option<Box<Answered>>, Result) {
    let has = |flag| completion.flags & flag != 0;
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(completion.bytes, completion.size, 1, "bytes") };
    let Answered { answer, upload } = request;
    let forget = || {
        if let Some(upload) = &upload {
            upload.forget();
        }
    };
    let over = |result| {
        forget();
        (None, result)
    };
    let is_whole = !has(PACE_CQ_MORE) || has(PACE_CQ_ERROR_PAGE);
    if has(PACE_CQ_FAIL | PACE_CQ_ABORT) || is_whole && matches!(answer, Answer::Request(_)) {
        // Before the answer is complete: its connection may go on then, on another thread, and the body's end would be
        // told of a request that is not out any more.
        forget();
    }
    let (mut body, watched) = match answer {
        Answer::Request(request) => {
            if has(PACE_CQ_FAIL) {
                request.response.fail();
                return over(Ok(()));
            }
            if has(PACE_CQ_ABORT) {
                request.response.abort();
                return over(Ok(()));
            }
            let is_nothing = completion.answer == 0 && !has(PACE_CQ_MORE | PACE_CQ_ERROR_PAGE);
            if is_nothing && completion.size == 0 && completion.headers_size == 0 {
                // Its drop answers.
                return over(Ok(()));
            }
            // SAFETY: as the caller promises.
            let response = unsafe { begin(request.response, completion) };
            if has(PACE_CQ_ERROR_PAGE) {
                return over(response.and_then(|response| Ok(response.error()?)));
            }
            if !has(PACE_CQ_MORE) {
                return over(response.and_then(|response| Ok(response.send(bytes?)?)));
            }
            let length = (completion.length != PACE_CQ_UNKNOWN).then_some(completion.length);
            match response.and_then(|response| Ok(response.stream(length)?)) {
                Ok(body) => (body, false),
                // Its peer has got a 500.
                Err(failure) => return over(Err(failure)),
            }
        }
        Answer::Body(body, watched) => {
            if has(PACE_CQ_FAIL) {
                body.fail();
                return over(Ok(()));
            }
            if has(PACE_CQ_ABORT) {
                return over(Ok(()));
            }
            (body, watched)
        }
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        // A piece that cannot be breaks the body off.
        Err(failure) => return over(Err(failure)),
    };
    let result = match body.write(bytes) {
        Ok(wrote) => {
            completion.status = number_of(wrote);
            if !has(PACE_CQ_MORE) {
                forget();
                return over(body.finish().map_err(Failure::from));
            }
            Ok(())
        }
        Err(error @ Error::Full { .. }) => Err(error.into()),
        Err(error) => return over(Err(error.into())),
    };
    (Some(Box::new(Answered { answer: Answer::Body(body, watched), upload })), result)
}

/// Has the host told when a body may go on, after it can be found.
fn watch_body(cq: &pace_cq_t, table: &mut Table<Item>, completion: &pace_cq_completion_t) {
    if completion.status != number_of(WriteStatus::AboveHighMark) || completion.result != 0 {
        return;
    }
    let token = completion.token;
    if let Some(Item { out: Out::Request(request), tag, .. }) = table.get(token)
        && let Answer::Body(body, watched) = &mut request.answer
        && !core::mem::replace(watched, true)
    {
        let telling =
            Telling { core: Arc::downgrade(&cq.core), whose: Whose { number: token, tag: *tag } };
        body.on_writable(move || telling.tell());
    }
}

/// Tells the host that a body may go on; at the latest when nothing else does any more, for then it is
/// for the host to find out that the connection has ended.
struct Telling {
    core: Weak<Core>,
    whose: Whose,
}

impl Telling {
    fn tell(&self) {
        tell(&self.core, self.whose, HttpEvent::Writable(self.whose));
    }
}

fn tell(core: &Weak<Core>, whose: Whose, event: HttpEvent) {
    if let Some(core) = core.upgrade() {
        let kind = EntryKind::Internal(Internal(Told::Http(event)));
        core.note(Entry::new(whose.tag, kind));
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.tell();
    }
}

/// # Safety
///
/// The completion's headers are as the header demands.
unsafe fn begin(response: Response, completion: &pace_cq_completion_t) -> Result<Response> {
    // SAFETY: as the caller promises.
    let lines =
        unsafe { boundary::bytes(completion.headers, completion.headers_size, 1, "headers") }?;
    let status = u16::try_from(completion.answer).unwrap_or(0);
    let mut response = response.status(status);
    if completion.flags & PACE_CQ_CLOSE != 0 {
        response = response.close();
    }
    with_headers(response, lines)
}

/// Adds lines of headers, each of which ends with CR LF.
pub(super) fn with_headers(mut response: Response, lines: &[u8]) -> Result<Response> {
    let mut rest = lines;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let line = &rest[..end];
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(end);
        let field = core::str::from_utf8(&line[..colon]).unwrap_or_default();
        let value = line.get(colon + 1..).unwrap_or_default();
        response = response.header(field, value.trim_ascii());
        rest = &rest[end + 2..];
    }
    match rest.is_empty() {
        true => Ok(response),
        false => Err(Failure::invalid("headers", "without an end", "lines that end with CR LF")),
    }
}
