//! What a handler of HTTP answers with: at once, later, or piece by piece.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Failure, Result, Text, call, call_void, callback, optional_out, out,
};
use super::callback::{PACE_FLOW_AGAIN, PACE_FLOW_DONE, pace_drop_fn};
use super::conn::{Handler, Hooks, number_of, pace_conn_hooks_t};
use super::owner::{Owner, pair};
use super::status::*;
use crate::http::{Body, Response, is_inside_any};
use crate::pool::Shared;
use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::sync::Arc;

/// As the length of a body that is streamed: it is not known.
pub const PACE_LENGTH_UNKNOWN: u64 = u64::MAX;

/// The answer to a request. It belongs to whoever holds it: the handler, or any thread later; until it
/// is completed the connection's next request waits. pace_response_send(), pace_response_send_as(),
/// pace_response_text(), pace_response_error(), pace_next_run(), pace_response_stream(), pace_response_upgrade(), pace_response_fail() and pace_response_free() complete it:
/// it is gone then, whatever they answer, unless that is PACE_EFORKED or PACE_EINVAL for an argument.
pub struct pace_response_t {
    response: Option<Response>,
    /// The pool's, which lives as long as the response does, in its route.
    shared: *const Arc<Shared>,
}

/// The body of an answer, written piece by piece by whoever holds it. It belongs to one thread at a
/// time.
pub struct pace_body_t {
    _opaque: (),
}

/// Called, in a run of the connection, each time that a body's output has fallen to its low mark.
pub type pace_body_writable_fn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// Writes the next part of a body. Answers PACE_FLOW_AGAIN to be called again, or PACE_FLOW_DONE when
/// the body is finished; anything else resets the connection. The body is only lent.
pub type pace_body_produce_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, body: *mut pace_body_t) -> i32>;

/// The status, 200 to 599; without this it is 200. Another one is an error of what completes the
/// response.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_status(
    response: *mut pace_response_t,
    status: u32,
) -> pace_status_t {
    let status = u16::try_from(status).unwrap_or(u16::MAX);
    // SAFETY: as the header demands.
    call(|| unsafe { change(response, |response| response.status(status)) })
}

/// Adds a header. Content-Length, Transfer-Encoding, Connection and Date are the library's
/// own. One that is not allowed is an error of what completes the response.
///
/// PACE_EINVAL if a text is NULL, or the name is not UTF-8.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_header(
    response: *mut pace_response_t,
    name: Text,
    value: *const c_char,
) -> pace_status_t {
    call(|| {
        boundary::check(value, "value")?;
        let name = name.get("name")?;
        // SAFETY: not NULL, and as the header demands.
        let value = unsafe { core::ffi::CStr::from_ptr(value) }.to_bytes();
        // SAFETY: as the header demands.
        unsafe { change(response, |response| response.header(name, value)) }
    })
}

/// No more requests follow on this connection.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_close(response: *mut pace_response_t) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { change(response, Response::close) })
}

/// Completes the response with this body.
///
/// PACE_EINVAL names the status or header that was not allowed, and PACE_EFULL tells of a body that is
/// larger than a connection's output may be (stream it): then the peer gets a 500. PACE_ESTALE: the
/// connection has ended, or the library has answered already, as it does when a body does not come.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_send(
    response: *mut pace_response_t,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        // SAFETY: as the header demands.
        Ok(unsafe { take(response) }?.send(bytes)?)
    })
}

/// As pace_response_send(), of a text with Content-Type: text/plain; charset=utf-8 unless it has
/// another.
///
/// PACE_EINVAL (also for what is not UTF-8), PACE_EFULL, PACE_ESTALE as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_text(
    response: *mut pace_response_t,
    text: Text,
) -> pace_status_t {
    call(|| {
        let text = text.get("text")?;
        // SAFETY: as the header demands.
        Ok(unsafe { take(response) }?.text(text)?)
    })
}

/// As pace_response_send(), with this Content-Type unless it has another: a media type, as "application/json".
///
/// PACE_EINVAL (also if the type is NULL or not UTF-8), PACE_EFULL, PACE_ESTALE as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_send_as(
    response: *mut pace_response_t,
    content_type: Text,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let content_type = content_type.get("content_type")?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        // SAFETY: as the header demands.
        Ok(unsafe { take(response) }?.send_as(content_type, bytes)?)
    })
}

/// Completes the response with a short page about its status, as the server's own errors have it, in the form that
/// the request's Accept wants most: text ("404 Not Found"), JSON ({"title":"Not Found","status":404}, as RFC 9457
/// has it) or HTML. Content-Type is set accordingly.
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESTALE as for pace_response_send().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_error(response: *mut pace_response_t) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| Ok(unsafe { take(response) }?.error()?))
}

/// Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks with
/// PACE_LENGTH_UNKNOWN. (To a peer that speaks HTTP/1.0 the end of the connection is the end of such a
/// body.) A peer that waits for "100 Continue" before it sends its body is told so first; to answer
/// without that body there is pace_response_send().
///
/// PACE_EINVAL, PACE_ESTALE as for pace_response_send().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_stream(
    response: *mut pace_response_t,
    length: u64,
    body: Option<&mut MaybeUninit<*mut pace_body_t>>,
) -> pace_status_t {
    call(|| {
        let to = out(body, "body")?;
        let length = (length != PACE_LENGTH_UNKNOWN).then_some(length);
        // SAFETY: as the header demands.
        let body = unsafe { take(response) }?.stream(length)?;
        to.set(Box::into_raw(Box::new(body)).cast());
        Ok(())
    })
}

/// Answers with 101, and gives the connection to `hooks`, for a protocol that the request offers
/// (pace_request_upgrade()), in upper or lower case. Its `open` comes next. The server's limits for connections stay in force;
/// the time between requests is now its idle time. If it fails, nothing of `hooks` has moved.
///
/// PACE_EINVAL (also if the request does not offer the protocol: its client has got a 426 with Upgrade then), PACE_ESTALE as for
/// pace_response_send(); PACE_EVERSION for hooks.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_upgrade(
    response: *mut pace_response_t,
    protocol: Text,
    hooks: *const pace_conn_hooks_t,
) -> pace_status_t {
    call(|| {
        let protocol = protocol.get("protocol")?;
        // SAFETY: as the header demands, and the pool's is there as long as the response.
        let shared = unsafe { &*open(response)?.shared };
        // SAFETY: as the header demands.
        let (registration, hooks) = unsafe { Hooks::read(hooks, shared) }?;
        // SAFETY: as the header demands.
        let response = unsafe { take(response) }?;
        match response.upgrade(protocol, Handler::new(Some(hooks))) {
            Err(error) if registration.give_back() => Err(error.into()),
            // If it has failed, its hooks have been told.
            _ => {
                registration.keep();
                Ok(())
            }
        }
    })
}

/// Frees a response that nobody will complete: the peer gets a 500. NULL is a no-op. In a forked child
/// it does nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_free(response: *mut pace_response_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        drop(unsafe { take(response) });
    });
}

/// Sets *is_gone to whether the client of the request has gone: it has reset or closed its connection, or sends no more and
/// its listener does not allow peers to be half open. Whoever works for long asks from time to time; it is one call of
/// the kernel. A client that has only finished sending still gets an answer.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_is_client_gone(
    response: *mut pace_response_t,
    is_gone: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let to = out(is_gone, "is_gone")?;
        let mut gone = true;
        // SAFETY: as the header demands.
        unsafe {
            change(response, |response| {
                gone = response.is_client_gone();
                response
            })
        }?;
        to.set(gone);
        Ok(())
    })
}

/// What was to answer has failed: the peer gets a 500, the connection closes, and the failure is counted in
/// pace_http_stats_t.panics. The response is gone, as by pace_response_free().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_response_fail(response: *mut pace_response_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        let Ok(response) = (unsafe { take(response) }) else { return };
        if response.is_inside() {
            tell_failure("what it held was failed");
            response.fail_inside();
        } else {
            response.fail();
        }
    });
}

/// Says that the handler, the hook of a body or the producer that runs on this thread has failed. When it
/// returns, the connection is closed, after a 500 if it has not begun to answer, and the failure is
/// counted in pace_http_stats_t.panics. `reason` is for the log; what is not UTF-8 in it is replaced by U+FFFD.
/// For languages whose exceptions must not leave a handler.
///
/// PACE_EINVAL for a reason that is NULL; PACE_ESTALE elsewhere.
///
/// Threads: the handler's. In handlers: in a request's own only; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_request_fail(reason: *const c_char) -> pace_status_t {
    call(|| {
        boundary::check(reason, "reason")?;
        // SAFETY: not NULL, and as the header demands.
        let reason = unsafe { boundary::words(reason) };
        if !is_inside_any() {
            return Err(OUTSIDE);
        }
        tell_failure(&reason);
        Ok(())
    })
}

const OUTSIDE: Failure =
    Failure::plain(PACE_ESTALE, c"no handler of a request runs on this thread");

thread_local! {
    /// The code that runs on this thread has said that it failed.
    static FAILED: Cell<bool> = const { Cell::new(false) };
    /// Why.
    static REASON: Cell<String> = const { Cell::new(String::new()) };
}

fn tell_failure(reason: &str) {
    FAILED.set(true);
    // Without a place for it the thread ends, and the failure is counted all the same.
    let _ = REASON.try_with(|place| place.set(reason.into()));
}

/// Runs code of the user. If it says that it has failed this panics, which is caught in the connection's run.
#[inline]
pub(super) fn run<R>(code: impl FnOnce() -> R) -> R {
    let value = code();
    if FAILED.replace(false) {
        fail();
    }
    value
}

/// Runs code of the user where there is nothing left to be closed.
pub(super) fn run_last(code: impl FnOnce()) {
    code();
    FAILED.set(false);
}

#[cold]
fn fail() -> ! {
    resume_unwind(Box::new(REASON.try_with(Cell::take).unwrap_or_default()));
}

/// Writes, in order, without waiting. What the peer does not take is queued; with
/// PACE_WRITE_STATUS_ABOVE_HIGH_MARK whoever can should write no more until the output has fallen
/// (pace_body_on_writable()). PACE_WRITE_STATUS_UNWANTED: the peer gets no body (an answer to HEAD, or with the
/// status 204, 205 or 304), and the bytes were dropped. No mark paces such a body: finish it. To write no
/// bytes tells this before the first ones are produced. *wrote is a PACE_WRITE_STATUS_ number; `wrote` may be
/// NULL.
///
/// PACE_EINVAL for more bytes than were announced, PACE_EFULL if the queue would exceed its maximum:
/// none of it was taken. PACE_ESTALE if the connection has ended.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_write(
    body: *mut pace_body_t,
    bytes: *const c_void,
    size: usize,
    wrote: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let body = unsafe { open_body(body) }?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let to = optional_out(wrote);
        to.set(number_of(body.write(bytes)?));
        Ok(())
    })
}

/// Ends a body, and frees it. The connection's next request may come.
///
/// PACE_EINVAL if fewer bytes were written than were announced: then the connection is reset.
/// Otherwise as pace_body_write().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_finish(body: *mut pace_body_t) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| Ok(unsafe { take_body(body) }?.finish()?))
}

/// Frees a body before its end: it can never be whole, and the connection is reset, so that the peer
/// can tell. NULL is a no-op.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_free(body: *mut pace_body_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        drop(unsafe { take_body(body) });
    });
}

/// What writes a body has failed: the connection is reset, as by pace_body_free(), and the failure is counted
/// in pace_http_stats_t.panics. NULL is a no-op.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_fail(body: *mut pace_body_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        match unsafe { take_body(body) } {
            Ok(body) if body.is_inside() => tell_failure("what it held was failed"),
            Ok(body) => body.fail(),
            Err(_) => {}
        }
    });
}

/// Whether the output is above its high mark, or has not fallen to the low one yet.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_is_pressed(
    body: *mut pace_body_t,
    is_pressed: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let body = unsafe { open_body(body) }?;
        let to = out(is_pressed, "is_pressed")?;
        to.set(body.is_pressed());
        Ok(())
    })
}

/// As pace_response_is_client_gone(), for the answer whose body this is.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_is_client_gone(
    body: *mut pace_body_t,
    is_gone: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let body = unsafe { open_body(body) }?;
        let to = out(is_gone, "is_gone")?;
        to.set(body.is_client_gone());
        Ok(())
    })
}

/// Has `writable` called, in a run of the connection, each time that the output has fallen to its low
/// mark. If the output is not above its high mark now, it is called once without delay. It replaces the one before. `drop` runs when the body
/// is finished or freed, or the connection has ended.
///
/// Threads: any, one at a time. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_on_writable(
    body: *mut pace_body_t,
    writable: pace_body_writable_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let body = unsafe { open_body(body) }?;
        let writable = callback(writable, "writable")?;
        let owner = owned(user_data, drop);
        body.on_writable(move || {
            // SAFETY: as the header demands, the hook takes what came with it.
            run(|| unsafe { writable(owner.data()) });
        });
        Ok(())
    })
}

/// Has `produce` write the body, in runs of the connection, as fast as the peer takes it and no faster.
/// It is called again as long as it says PACE_FLOW_AGAIN and there is something left to be sent; with
/// PACE_FLOW_DONE the body is finished. So it is not called at all for a body that is not sent (an answer
/// to HEAD, or with the status 204, 205 or 304), and not again when as many bytes are written as were
/// announced. One that says PACE_FLOW_AGAIN without having written anything is called again at once. The
/// body is gone; `drop` runs after the last call.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_body_pump(
    body: *mut pace_body_t,
    produce: pace_body_produce_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        boundary::check(body, "body")?;
        let produce = callback(produce, "produce")?;
        let owner = owned(user_data, drop);
        // SAFETY: as the header demands.
        let body = unsafe { take_body(body) }?;
        body.pump(move |body| {
            let lent = core::ptr::from_mut(body).cast::<pace_body_t>();
            // SAFETY: as the header demands, the producer takes what came with it; a body is lent.
            match run(|| unsafe { produce(owner.data(), lent) }) {
                PACE_FLOW_AGAIN => Ok(true),
                PACE_FLOW_DONE => Ok(false),
                // Caught in the connection's run, which resets it; no hook prints anything.
                _ => resume_unwind(Box::new("a producer has failed")),
            }
        });
        Ok(())
    })
}

const USED: Failure = Failure::plain(PACE_EINVAL, c"response has been completed already");

thread_local! {
    /// A place for the next response, so that one that is answered at once allocates nothing.
    static SPARE: Cell<Option<Box<pace_response_t>>> = const { Cell::new(None) };
}

/// What C gets of a response.
///
/// # Safety
///
/// `shared` lives as long as the response.
#[inline]
pub(super) unsafe fn as_argument(
    response: Response,
    shared: *const Arc<Shared>,
) -> *mut pace_response_t {
    let own = pace_response_t { response: Some(response), shared };
    Box::into_raw(match SPARE.try_with(Cell::take).ok().flatten() {
        Some(mut place) => {
            *place = own;
            place
        }
        None => Box::new(own),
    })
}

/// The response behind an argument, in the process that has it.
///
/// # Safety
///
/// It is NULL, or came from [`as_argument`], was not completed, and is used by nobody else.
#[inline]
unsafe fn open<'a>(response: *mut pace_response_t) -> Result<&'a mut pace_response_t> {
    boundary::check(response, "response")?;
    // SAFETY: not NULL, and as the caller promises.
    let response = unsafe { &mut *response };
    // SAFETY: the pool's is there as long as the response.
    if unsafe { &*response.shared }.is_forked() { Err(FORKED) } else { Ok(response) }
}

/// # Safety
///
/// As [`open`].
#[inline]
unsafe fn change(response: *mut pace_response_t, how: impl FnOnce(Response) -> Response) -> Result {
    // SAFETY: as the caller promises.
    let response = unsafe { open(response) }?;
    response.response = Some(how(response.response.take().ok_or(USED)?));
    Ok(())
}

/// What completes it takes it, and its place is free.
///
/// # Safety
///
/// As [`open`].
#[inline]
pub(super) unsafe fn take(response: *mut pace_response_t) -> Result<Response> {
    // SAFETY: as the caller promises.
    let taken = unsafe { open(response) }?.response.take().ok_or(USED)?;
    // SAFETY: as the caller promises, it was a box.
    let place = unsafe { Box::from_raw(response) };
    let _ = SPARE.try_with(|spare| spare.set(Some(place)));
    Ok(taken)
}

/// # Safety
///
/// It is NULL, or the address of a body that is used by nobody else.
unsafe fn open_body<'a>(body: *mut pace_body_t) -> Result<&'a mut Body> {
    let body = body.cast::<Body>();
    boundary::check(body, "body")?;
    // SAFETY: not NULL, and as the caller promises.
    let body = unsafe { &mut *body };
    if body.is_forked() { Err(FORKED) } else { Ok(body) }
}

/// # Safety
///
/// It is NULL, or came from `pace_response_stream` and is used by nobody else.
unsafe fn take_body(body: *mut pace_body_t) -> Result<Body> {
    // SAFETY: as the caller promises. In a forked child it is not taken.
    let body: *mut Body = unsafe { open_body(body) }?;
    // SAFETY: as the caller promises.
    Ok(*unsafe { Box::from_raw(body) })
}

/// User_data of a registration that cannot fail any more.
fn owned(user_data: *mut c_void, drop: pace_drop_fn) -> Owner {
    let (registration, owner) = pair(user_data, drop);
    registration.keep();
    owner
}
