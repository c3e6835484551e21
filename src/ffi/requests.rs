//! Requests that are pulled: data for hosts that cannot be called back.
//!
//! What is out lies in a table, by numbers. A request leaves it when it is
//! answered; an answer whose body goes on puts the body in its place. Bodies of requests that are
//! streamed lie in a table of their own, since they may be read on while the answer is written.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Failure, Out, Result, TIMED_OUT, call, call_void, nanos};
use super::callback::pace_conn_id_t;
use super::conn::{name, number_of};
use super::cq_answer::with_headers;
use super::pool::{open as open_pool, pace_pool_t};
use super::status::*;
use crate::http::{Body, Pulled, PulledRequest, Requests, Response, Upload, Whose};
use crate::net::WriteStatus;
use crate::{Error, Pool};
use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr;
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A request of a route.
pub const PACE_REQUEST_EVENT_REQUEST: u32 = 0;
/// The output of a body that goes on pressed (PACE_WRITE_STATUS_ABOVE_HIGH_MARK), and has fallen to the low
/// mark: its next piece may be written.
pub const PACE_REQUEST_EVENT_WRITABLE: u32 = 1;
/// A part of the body of a streamed request, after pace_requests_read().
pub const PACE_REQUEST_EVENT_PART: u32 = 2;
/// The end of such a body, which is whole. So is that of a request without a body.
pub const PACE_REQUEST_EVENT_END: u32 = 3;
/// The end of such a body, which will never be whole: the peer is gone, or broke the protocol.
pub const PACE_REQUEST_EVENT_BROKEN: u32 = 4;
/// A request of a server has ended: see pace_http_on_end_pulled().
pub const PACE_REQUEST_EVENT_ENDED: u32 = 5;

/// The body goes on: other answers to the same request write its next pieces, and the last one is
/// without this.
pub const PACE_ANSWER_MORE: u32 = 1;
/// No more requests follow on this connection.
pub const PACE_ANSWER_CLOSE: u32 = 2;
/// In an answer's flags: its body is a short page about its status in the form that the request wants most, as
/// pace_response_error() has it. `bytes` do not matter.
pub const PACE_ANSWER_ERROR: u32 = 4;

/// The length of a body that is not known: it is sent in chunks.
pub const PACE_LENGTH_UNKNOWN: u64 = u64::MAX;

/// Where the requests of routes wait for host threads; see pace_http_route_pulled().
pub struct pace_requests_t {
    pub(super) requests: Arc<Requests>,
    pool: Pool,
    table: Mutex<Table>,
}

/// One event. A request's bytes stay where they are until it is answered.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_request_event_t {
    /// Names the request until it is answered. Not 0.
    pub request: u64,
    /// The connection that it came from; 0 for others than PACE_REQUEST_EVENT_REQUEST.
    pub conn: pace_conn_id_t,
    /// PACE_REQUEST_EVENT_.
    pub kind: u32,
    /// The number of its route; 0 for others than PACE_REQUEST_EVENT_REQUEST.
    pub route: u32,
    /// PACE_REQUEST_EVENT_PART: the part, which stays where it is until the thread that has pulled it
    /// pulls requests again, or ends. Otherwise the request as one block, in which `head` numbers of 32 bits come first: the lengths of method,
    /// target, path and query (UINT32_MAX: there is none), the minor version of HTTP/1 in its lower 16 bits,
    /// with the status of a request that no route has taken in its upper ones, how many parameters and headers there are, and where the body begins, which is the rest. Then the
    /// lengths of name and value of each parameter and of each header; then all these texts, in the
    /// same order, and the body.
    pub bytes: *const c_void,
    /// The block's size.
    pub size: usize,
}

/// What a request is answered with, or the next piece of an answer's body.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_answer_t {
    /// Which.
    pub request: u64,
    /// With PACE_ANSWER_MORE, the whole body's length, or PACE_LENGTH_UNKNOWN. Otherwise, and for later
    /// pieces, it does not matter.
    pub length: u64,
    /// Lines of headers, each ended by CR LF: "Name: value". May be NULL if `headers_size` is 0. Later
    /// pieces have none.
    pub headers: *const c_void,
    /// Their size.
    pub headers_size: usize,
    /// The body, or its next piece. May be NULL if `size` is 0.
    pub bytes: *const c_void,
    /// Its size.
    pub size: usize,
    /// 200 to 599. Later pieces have none.
    pub status: u32,
    /// PACE_ANSWER_ bits.
    pub flags: u32,
    /// Out: a PACE_WRITE_STATUS_ number, for pieces with PACE_ANSWER_MORE. PACE_WRITE_STATUS_UNWANTED: the peer gets no
    /// body; end it with an answer without PACE_ANSWER_MORE.
    pub wrote: u32,
    /// Out: what has become of it. PACE_ESTALE: no such request is out, or its connection has ended.
    /// PACE_EINVAL: the status or a header cannot be; then the peer gets a 500. Or there are flags that
    /// stand for nothing; then the request is still out. PACE_EFULL: there was no room for it. The peer
    /// gets a 500; of a body that has begun nothing was taken, and it may be tried again.
    pub outcome: i32,
}

/// Makes a place for requests to wait in. Give it to routes by pace_http_route_pulled().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_new(
    pool: *mut pace_pool_t,
    requests: *mut *mut pace_requests_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open_pool(pool) }?.pool.clone();
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(requests, "requests") }?;
        let made = pace_requests_t { requests: Requests::new(), pool, table: Mutex::default() };
        to.set(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
/// more. A request is out until it was answered, by any thread: nothing else ends it but
/// pace_requests_free(). What a client sends meanwhile waits.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the server has ended, and nothing is left; PACE_EINVAL
/// for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_pull(
    requests: *mut pace_requests_t,
    events: *mut pace_request_event_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        boundary::check(events, "events")?;
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        if capacity == 0 {
            return Err(Failure::invalid("capacity", 0, "at least 1"));
        }
        if timeout_ns > 0 && place.pool.is_inside() {
            return Err(Error::WouldDeadlock.into());
        }
        let mut parts = PARTS.try_with(RefCell::take).unwrap_or_default();
        parts.clear();
        let mut got = Vec::new();
        let pulled = place.requests.pull(&mut got, capacity, nanos(timeout_ns));
        if !got.is_empty() {
            place.pool.shared().note_pulled();
        }
        place.enter(got, &mut parts, |index, event| {
            // SAFETY: no more than `capacity` were pulled, and there is room for as many.
            unsafe { events.add(index).write(event) };
        });
        let is_safe = parts.is_empty() || PARTS.try_with(|place| place.replace(parts)).is_ok();
        match pulled.ok_or(Error::ShutDown)? {
            // A thread that ends has no place for parts any more.
            some @ 1.. if is_safe => {
                count.set(some);
                Ok(())
            }
            _ => Err(TIMED_OUT),
        }
    })
}

/// Gives `count` answers, in order. Each says in `outcome` what has become of it; the status is the
/// first of them that is not PACE_OK.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_answer(
    requests: *mut pace_requests_t,
    answers: *mut pace_answer_t,
    count: usize,
) -> pace_status_t {
    let mut first = PACE_OK;
    let status = call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        if count == 0 {
            return Ok(());
        }
        boundary::check(answers, "answers")?;
        // SAFETY: as the header demands, there are `count` of them.
        let answers = unsafe { core::slice::from_raw_parts_mut(answers, count) };
        let mut held = place.take(answers.iter().map(|each| each.request));
        for (answer, held) in answers.iter_mut().zip(held.drain(..)) {
            // An earlier one of this batch may have put it back: the body goes on.
            let held = held.or_else(|| place.lock().out.remove(&answer.request));
            // SAFETY: as the header demands of its bytes.
            answer.outcome = call(|| unsafe { give(place, held.ok_or(NO_SUCH)?, answer) });
            if first == PACE_OK {
                first = answer.outcome;
            }
        }
        Ok(())
    });
    if status == PACE_OK { first } else { status }
}

/// A request is not answered: the peer gets a 500, or, if its answer has begun, sees it break off.
///
/// PACE_ESTALE: no such request is out.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_drop(
    requests: *mut pace_requests_t,
    request: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        let held = place.lock().out.remove(&request);
        place.forget(request);
        held.map(drop).ok_or(NO_SUCH)
    })
}

/// What was to answer a request has failed: the peer gets a 500, or, if its answer has begun, sees it
/// break off; the connection closes, and the failure is counted in pace_http_stats_t.panics. For one that
/// was answered to the end there is pace_http_fail().
///
/// PACE_ESTALE: no such request is out.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_fail(
    requests: *mut pace_requests_t,
    request: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        let held = place.lock().out.remove(&request);
        place.forget(request);
        match held.ok_or(NO_SUCH)? {
            Held::Request(request) => request.response.fail(),
            Held::Body(going) => going.body.fail(),
        }
        Ok(())
    })
}

/// Asks for the next part of a streamed request's body (pace_http_route_pulled_streaming()): a
/// PACE_REQUEST_EVENT_PART, or its end, is pulled when it is there. Nothing is read from the
/// connection beyond what was asked for, so a peer is never faster than its host; one that waits for
/// "100 Continue" is told so by the first call. When
/// the request was answered to the end, or dropped, no part comes any more.
///
/// PACE_ESTALE: no streamed request of this name is out, its answer is complete, or the end was told.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_read(
    requests: *mut pace_requests_t,
    request: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        let upload = place.lock().bodies.get(&request).map(Arc::clone).ok_or(NO_SUCH_BODY)?;
        if upload.ask() { Ok(()) } else { Err(NO_SUCH_BODY) }
    })
}

/// *fd is readable while a pull would not wait. It belongs to this: never read or close it.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_pollable(
    requests: *mut pace_requests_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let place = unsafe { open(requests) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(place.requests.pollable()?.as_raw_fd());
        Ok(())
    })
}

/// Ends it at once: pulls say PACE_ESHUTDOWN, and requests that nobody has pulled, and those that come
/// later, are dropped as by pace_requests_drop(). It waits for nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_close(requests: *mut pace_requests_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { open(requests) }?.requests.close();
        Ok(())
    })
}

/// Frees it. Requests that are out, and those that come later, are dropped as by
/// pace_requests_drop(). No thread may be in a call that uses it. NULL: nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_requests_free(requests: *mut pace_requests_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_requests_new` and is used by nobody else.
        if unsafe { open(requests) }.is_ok() {
            // SAFETY: as above.
            let place = unsafe { Box::from_raw(requests) };
            place.requests.close();
        }
    });
}

thread_local! {
    /// Parts of bodies that this thread has pulled last.
    static PARTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

const NO_SUCH: Failure = Failure::plain(PACE_ESTALE, c"no such request is out");
const NO_SUCH_BODY: Failure = Failure::plain(PACE_ESTALE, c"no such request's body is to be read");

/// In the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_requests_new` and has not been freed.
pub(super) unsafe fn open<'a>(requests: *const pace_requests_t) -> Result<&'a pace_requests_t> {
    // SAFETY: as the caller promises.
    let requests = unsafe { boundary::borrow(requests, "requests") }?;
    if requests.pool.shared().is_forked() { Err(FORKED) } else { Ok(requests) }
}

#[derive(Default)]
struct Table {
    out: HashMap<u64, Held>,
    /// Bodies that may still be read.
    bodies: HashMap<u64, Arc<Upload>>,
}

enum Held {
    Request(PulledRequest),
    Body(Going),
}

/// An answer's body that goes on.
struct Going {
    body: Body,
    /// The host is told when its output has fallen.
    watched: bool,
}

/// Tells the host that a body may go on; at the latest when nothing else does any more, for then it is
/// for the host to find out that the connection has ended.
struct Telling {
    requests: Arc<Requests>,
    number: u64,
}

impl Telling {
    fn tell(&self) {
        self.requests.put_writable(Whose { number: self.number, tag: 0 });
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.tell();
    }
}

impl pace_requests_t {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives requests numbers, and shows what was pulled.
    fn enter(
        &self,
        got: Vec<Pulled>,
        parts: &mut Vec<Vec<u8>>,
        mut show: impl FnMut(usize, pace_request_event_t),
    ) {
        if got.is_empty() {
            return;
        }
        let mut table = self.lock();
        for (index, pulled) in got.into_iter().enumerate() {
            match pulled {
                Pulled::Request(mut request) => {
                    let number = request.number;
                    if let Some(upload) = request.upload.take() {
                        table.bodies.insert(number, upload);
                    }
                    show(index, as_data(number, &request));
                    table.out.insert(number, Held::Request(request));
                }
                Pulled::Writable(Whose { number, .. }) => {
                    show(index, plain(number, PACE_REQUEST_EVENT_WRITABLE, &[]));
                }
                Pulled::Part(Whose { number, .. }, part) => {
                    show(index, plain(number, PACE_REQUEST_EVENT_PART, &part));
                    parts.push(part);
                }
                Pulled::Ended(_, block) => {
                    self.requests.pulled_end();
                    show(index, plain(0, PACE_REQUEST_EVENT_ENDED, &block));
                    parts.push(block);
                }
                Pulled::End(Whose { number, .. }, is_whole) => {
                    table.bodies.remove(&number);
                    let kind = match is_whole {
                        true => PACE_REQUEST_EVENT_END,
                        false => PACE_REQUEST_EVENT_BROKEN,
                    };
                    show(index, plain(number, kind, &[]));
                }
            }
        }
    }

    /// The request is answered: nobody reads its body any more.
    fn forget(&self, number: u64) {
        let upload = self.lock().bodies.remove(&number);
        if let Some(upload) = upload {
            upload.forget();
        }
    }

    fn take(&self, numbers: impl Iterator<Item = u64>) -> Vec<Option<Held>> {
        let mut table = self.lock();
        numbers.map(|number| table.out.remove(&number)).collect()
    }

    /// Has the host told when a body may go on, after it can be found.
    fn watch(&self, number: u64) {
        if let Some(Held::Body(going)) = self.lock().out.get_mut(&number)
            && !core::mem::replace(&mut going.watched, true)
        {
            let telling = Telling { requests: Arc::clone(&self.requests), number };
            going.body.on_writable(move || telling.tell());
        }
    }

    fn put_back(&self, number: u64, held: Held) {
        self.lock().out.insert(number, held);
    }
}

fn as_data(number: u64, request: &PulledRequest) -> pace_request_event_t {
    pace_request_event_t {
        request: number,
        conn: name(request.conn.id()),
        kind: PACE_REQUEST_EVENT_REQUEST,
        route: request.tag as u32,
        bytes: request.block.as_ptr().cast(),
        size: request.block.len(),
    }
}

fn plain(number: u64, kind: u32, bytes: &[u8]) -> pace_request_event_t {
    pace_request_event_t {
        request: number,
        conn: pace_conn_id_t { id: 0 },
        kind,
        route: 0,
        bytes: if bytes.is_empty() { ptr::null() } else { bytes.as_ptr().cast() },
        size: bytes.len(),
    }
}

/// # Safety
///
/// The answer's bytes are as the header demands.
unsafe fn give(place: &pace_requests_t, held: Held, answer: &mut pace_answer_t) -> Result {
    const KNOWN: u32 = PACE_ANSWER_MORE | PACE_ANSWER_CLOSE | PACE_ANSWER_ERROR;
    if answer.flags & !KNOWN != 0 {
        place.put_back(answer.request, held);
        return Err(Failure::invalid("flags", answer.flags, "PACE_ANSWER_ bits"));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { boundary::bytes(answer.bytes, answer.size, 1, "bytes") };
    let goes_on = answer.flags & PACE_ANSWER_MORE != 0;
    let going = match held {
        Held::Request(request) => {
            if !goes_on {
                place.forget(answer.request);
            }
            // SAFETY: as the caller promises.
            let response = unsafe { begin(request.response, answer) };
            if answer.flags & PACE_ANSWER_ERROR != 0 {
                place.forget(answer.request);
                return Ok(response?.error()?);
            }
            if !goes_on {
                return Ok(response?.send(bytes?)?);
            }
            let length = (answer.length != PACE_LENGTH_UNKNOWN).then_some(answer.length);
            let begun = response.and_then(|response| Ok(response.stream(length)?));
            // Its peer has got a 500.
            let body = begun.inspect_err(|_| place.forget(answer.request))?;
            Going { body, watched: false }
        }
        Held::Body(going) => going,
    };
    // A piece that cannot be breaks the body off.
    let bytes = bytes.inspect_err(|_| place.forget(answer.request))?;
    proceed(place, going, bytes, answer, goes_on)
}

/// # Safety
///
/// The answer's headers are as the header demands.
unsafe fn begin(response: Response, answer: &pace_answer_t) -> Result<Response> {
    // SAFETY: as the caller promises.
    let lines = unsafe { boundary::bytes(answer.headers, answer.headers_size, 1, "headers") }?;
    let status = u16::try_from(answer.status).unwrap_or(0);
    let mut response = response.status(status);
    if answer.flags & PACE_ANSWER_CLOSE != 0 {
        response = response.close();
    }
    with_headers(response, lines)
}

fn proceed(
    place: &pace_requests_t,
    mut going: Going,
    bytes: &[u8],
    answer: &mut pace_answer_t,
    goes_on: bool,
) -> Result {
    let number = answer.request;
    match going.body.write(bytes) {
        Ok(wrote) => {
            answer.wrote = number_of(wrote);
            if !goes_on {
                place.forget(number);
                return Ok(going.body.finish()?);
            }
            place.put_back(number, Held::Body(going));
            if wrote == WriteStatus::AboveHighMark {
                place.watch(number);
            }
            Ok(())
        }
        Err(error @ Error::Full { .. }) => {
            place.put_back(number, Held::Body(going));
            Err(error.into())
        }
        Err(error) => {
            place.forget(number);
            Err(error.into())
        }
    }
}
