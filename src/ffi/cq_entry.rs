//! Completion queues: what an entry is.
//!
//! An entry shows what the table of the queue keeps: its pointers go there, and stay good until the entry is completed.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::errno;
use super::callback::{pace_conn_id_t, pace_handle_t};
use super::conn::{name as conn_name, number_of_reason, number_of_timeout};
use super::handle::name as handle_name;
use super::log::{Laid, pace_log_record_t};
use super::message::{list, pace_message_t, pace_subscription_t, show};
use super::status::{PACE_ECANCELLED, PACE_ETIMEDOUT, PACE_OK, pace_status_t};
use super::task_status::number_of as number_of_status;
use super::udp::{as_data as address, pace_ip_t};
use super::values::pace_field_t;
use crate::EventKind;
use crate::cq::internal::{EntryKind, Held, Internal, Mail, OpenAttempt, Parts, Told};
use crate::http::{self, AttachedRequest, Body, Exchange, Upload};
use crate::hub::{Messages, Received};
use crate::net::{ConnEvent, ConnEventKind, UdpEvent};
use crate::task::Status;
use core::ffi::c_void;
use core::mem::{MaybeUninit, zeroed};
use core::ptr;
use core::slice::IterMut;
use std::sync::Arc;

/// A descriptor is ready (pace_cq_register): `detail.ready`. Its next entry comes after this one was completed.
pub const PACE_CQ_READY: u32 = 1;
/// A periodic timer is due (pace_cq_every): `detail.ready` has its handle. Ticks that come before it was completed are
/// skipped.
pub const PACE_CQ_TICK: u32 = 2;
/// A timer that runs once is due (pace_cq_after). Nothing to complete.
pub const PACE_CQ_TIMER: u32 = 3;
/// A tag was posted (pace_cq_post). Nothing to complete.
pub const PACE_CQ_TASK: u32 = 4;
/// Something happened to a connection: `detail.conn` says what, and `bytes` is what has arrived. The connection's next
/// entry comes after this one was completed.
pub const PACE_CQ_CONN: u32 = 5;
/// A request of an HTTP route: `detail.request`, and `bytes` is the request as one block (pace_cq_request_t). It
/// stays out until its answer is complete.
pub const PACE_CQ_REQUEST: u32 = 6;
/// A part of a request's body, which pace_cq_read() asked for: `bytes`; `detail.request.request` is the token of the
/// request.
pub const PACE_CQ_BODY: u32 = 7;
/// The end of such a body, which is whole. Nothing to complete.
pub const PACE_CQ_BODY_END: u32 = 8;
/// The end of such a body, which will never be whole: the peer is gone, or broke the protocol. Nothing to complete.
pub const PACE_CQ_BODY_BROKEN: u32 = 9;
/// The output of an answer's body was above its high mark (PACE_WRITE_STATUS_ABOVE_HIGH_MARK), and has fallen to the low
/// mark: its next piece may be written. Nothing to complete.
pub const PACE_CQ_BODY_WRITABLE: u32 = 10;
/// A request of an HTTP server has ended (pace_cq_http_ends): `bytes` is a block that says how.
pub const PACE_CQ_REQUEST_ENDED: u32 = 11;
/// A datagram has arrived: `bytes`, and `detail.datagram`.
pub const PACE_CQ_DATAGRAM: u32 = 12;
/// An error came to a datagram socket instead, which goes on: `detail.datagram.os_error`. Nothing to complete.
pub const PACE_CQ_DATAGRAM_ERROR: u32 = 13;
/// An attempt of a worker pool's task has begun: `detail.attempt`. Its task runs until it is completed.
pub const PACE_CQ_ATTEMPT: u32 = 14;
/// A task of a worker pool has ended otherwise than by the completion of an attempt, which may be out still and is to
/// be completed all the same: `detail.attempt.status`. Nothing to complete.
pub const PACE_CQ_TASK_ENDED: u32 = 15;
/// A message of a mailbox or a replay: `detail.message`, and `bytes` is its payload.
pub const PACE_CQ_MESSAGE: u32 = 16;
/// What became of a request of the hub: `status` is PACE_OK and `detail.message` the reply, or it is PACE_ETIMEDOUT, or
/// PACE_ECANCELLED if it was given up or its hub was freed; then there is nothing to complete.
pub const PACE_CQ_REPLY: u32 = 17;
/// A record of a log: `detail.record`.
pub const PACE_CQ_RECORD: u32 = 18;
/// A signal of the process: `detail.signal`. Nothing to complete.
pub const PACE_CQ_SIGNAL: u32 = 19;
/// The source of this tag brings nothing more: it was closed, freed or drained. Nothing to complete.
pub const PACE_CQ_ENDED: u32 = 20;
/// The client of a request has gone before it has its answer (pace_cq_watch_client): `detail.request.request` is the token
/// of the request, which is to be completed all the same. Nothing to complete.
pub const PACE_CQ_CLIENT_GONE: u32 = 21;

/// In an entry's flags: it was brought before, to a thread that neither completed nor renewed it within the lease.
pub const PACE_CQ_AGAIN: u32 = 1;

/// One thing that happened. What it points to stays where it is until its token is completed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_cq_entry_t {
    /// PACE_CQ_READY to PACE_CQ_ENDED: what happened, and which part of `detail` holds.
    pub kind: u32,
    /// PACE_CQ_AGAIN if it was brought before; otherwise 0.
    pub flags: u32,
    /// What names the entry until it is completed by pace_cq_complete() or pace_cq_done(). 0: there is nothing to
    /// complete.
    pub token: u64,
    /// What was given with the source.
    pub tag: u64,
    /// The bytes that the kind speaks of. NULL if there are none.
    pub bytes: *const c_void,
    /// How many bytes there are.
    pub size: usize,
    /// PACE_CQ_REPLY: what became of the request. Other kinds: PACE_OK.
    pub status: pace_status_t,
    /// Not used: zero for now.
    pub reserved: u32,
    /// More, as the kind has it.
    pub detail: pace_cq_detail_t,
}

/// What an entry has besides its bytes: the member that its kind names.
#[repr(C)]
#[derive(Clone, Copy)]
pub union pace_cq_detail_t {
    /// What is ready, for PACE_CQ_READY and PACE_CQ_TICK.
    pub ready: pace_cq_ready_t,
    /// What happened to which connection, for PACE_CQ_CONN.
    pub conn: pace_cq_conn_t,
    /// Whose it is, for PACE_CQ_REQUEST and the kinds of bodies.
    pub request: pace_cq_request_t,
    /// Where it comes from, for PACE_CQ_DATAGRAM and PACE_CQ_DATAGRAM_ERROR.
    pub datagram: pace_cq_datagram_t,
    /// Which task it is, for PACE_CQ_ATTEMPT and PACE_CQ_TASK_ENDED.
    pub attempt: pace_cq_attempt_t,
    /// The message or the reply, for PACE_CQ_MESSAGE and PACE_CQ_REPLY.
    pub message: pace_message_t,
    /// The record of a log, for PACE_CQ_RECORD.
    pub record: pace_log_record_t,
    /// The number of the signal, as SIGTERM, for PACE_CQ_SIGNAL.
    pub signal: i32,
}

/// A descriptor that is ready, or a periodic timer that is due.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_ready_t {
    /// The handle that was registered.
    pub handle: pace_handle_t,
    /// PACE_READY_ bits of a descriptor; 0 for a timer.
    pub ready: u32,
    /// Not used: zero for now.
    pub reserved: u32,
}

/// What has happened to a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_conn_t {
    /// Which connection, for the functions whose names begin with pace_server_conn_.
    pub conn: pace_conn_id_t,
    /// What happened: a PACE_CONN_EVENT_ number.
    pub event: u32,
    /// CLOSED: a PACE_REASON_ number. TIMED_OUT: a PACE_TIMEOUT_ number. Otherwise 0.
    pub detail: u32,
    /// WRITTEN: the token of the tracked write. CLOSED: a PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for
    /// PACE_REASON_FAILED. Otherwise 0.
    pub number: u64,
}

/// Whose request, body or answer it is.
///
/// The block of a PACE_CQ_REQUEST: eight numbers of 32 bits in the machine's order, which are the lengths of method,
/// target, path and query (UINT32_MAX: there is none), the minor version of HTTP/1 in the lower 16 bits with the status
/// of a request that no route has taken in the upper ones, how many parameters and headers there are, and where the body
/// begins, which is the rest. Then the lengths of name and value of each parameter and each header, then all these texts
/// in the same order, and the body.
///
/// The block of a PACE_CQ_REQUEST_ENDED: two numbers of 64 bits, how many nanoseconds it took and how many ends were lost
/// before this one because 65536 waited; four numbers of 32 bits, the status (0: no whole answer has left) and the
/// lengths of method, target and peer; then these texts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_request_t {
    /// PACE_CQ_REQUEST: the connection that it came from. Otherwise 0.
    pub conn: pace_conn_id_t,
    /// The kinds of bodies: the token of the request. Otherwise 0.
    pub request: u64,
}

/// Where a datagram comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_datagram_t {
    /// How many bytes were sent: more than `size` if the end did not fit into max_datagram and is lost.
    pub length: usize,
    /// Who has sent it. An IPv4 address looks like ::ffff:0:0/96 on a socket that takes both.
    pub peer: pace_ip_t,
    /// PACE_CQ_DATAGRAM_ERROR: the errno. Otherwise 0.
    pub os_error: i32,
}

/// Which attempt at which task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_cq_attempt_t {
    /// The task's number, as in its report.
    pub id: u64,
    /// 1 for the first attempt; 0 for an end.
    pub number: u32,
    /// PACE_TASK_: how the task stands.
    pub status: u32,
}

/// What is out, and what lies behind the pointers of its entries.
pub(super) struct Item {
    pub(super) tag: u64,
    pub(super) again: bool,
    pub(super) out: Out,
}

pub(super) enum Out {
    Event(Held),
    Conn(ConnEvent),
    Request(Box<Answered>),
    Bytes(u32, Vec<u8>, u64),
    Datagram(UdpEvent),
    Attempt(OpenAttempt),
    Messages(Box<Group>),
    Record(Laid),
    /// A completion has it. Of a request: itself, and its body, if that is read in parts and has not ended.
    Busy(Option<Arc<Exchange>>, Option<Arc<Upload>>),
}

/// A request whose answer is not complete.
pub(super) struct Answered {
    pub(super) answer: Answer,
    /// Its body, if that is read in parts and has not ended.
    pub(super) upload: Option<Arc<Upload>>,
}

pub(super) enum Answer {
    /// None has begun.
    Request(AttachedRequest),
    /// A body that goes on; whether the host is told when its output has fallen.
    Body(Body, bool),
}

impl Answer {
    pub(super) fn exchange(&self) -> &Arc<Exchange> {
        match self {
            Self::Request(request) => request.response.exchange(),
            Self::Body(body, _) => body.exchange(),
        }
    }
}

impl Item {
    /// One message, or reply.
    pub(super) fn message(tag: u64, message: Received, mail: Option<Mail>, attempt: u32) -> Self {
        let mut single = Messages::default();
        single.push(message);
        Self { tag, again: true, out: Out::Messages(Group::new(single, 1, mail, attempt)) }
    }

    /// For a thread that completes it.
    pub(super) fn take(&mut self) -> Self {
        let (exchange, upload) = match &self.out {
            Out::Request(request) => {
                (Some(Arc::clone(request.answer.exchange())), request.upload.clone())
            }
            _ => (None, None),
        };
        let out = core::mem::replace(&mut self.out, Out::Busy(exchange, upload));
        Self { tag: self.tag, again: self.again, out }
    }

    /// Whether it may be brought to another thread when its lease is over. What may be lost on the way anyhow, and an
    /// answer that is half written, may not.
    pub(super) fn comes_again(&self) -> bool {
        match &self.out {
            Out::Datagram(_) => false,
            Out::Request(request) => matches!(request.answer, Answer::Request(_)),
            _ => true,
        }
    }

    /// Those of its things that are left, each by itself.
    pub(super) fn into_single(self, left: Parts) -> Vec<Item> {
        let Out::Messages(group) = &self.out else {
            return vec![Item { again: true, ..self }];
        };
        let mut items = Vec::new();
        group.each(left, |message| {
            items.push(Self::message(self.tag, message, group.mail.clone(), group.attempt + 1));
        });
        items
    }
}

/// Messages that were taken together.
pub(super) struct Group {
    pub(super) messages: Messages,
    /// Where they come from; None: they are replies.
    pub(super) mail: Option<Mail>,
    pub(super) attempt: u32,
    /// The headers of all of them, one after the other. They point into the messages.
    fields: Vec<pace_field_t>,
    /// The payloads of all of them, if none is long.
    payloads: Vec<u8>,
}

// SAFETY: the pointers are to what it owns, and nobody writes there.
unsafe impl Send for Group {}

/// Bytes: if no message of those that were taken together has a longer payload, their payloads lie one after the other,
/// in order and without gaps, so that the host may copy all of them at once. The tokens of messages that were taken
/// together differ in the lowest byte only: each is greater by 1 than the one before it.
pub const PACE_CQ_TOGETHER: usize = 256;

impl Group {
    fn new(messages: Messages, count: usize, mail: Option<Mail>, attempt: u32) -> Box<Self> {
        let (fields, payloads) = (Vec::new(), Vec::new());
        let mut group = Self { messages, mail, attempt, fields, payloads };
        group.gather(count);
        Box::new(group)
    }

    /// Puts the payloads together, if none is long, and lists the headers: a copy of this size costs less than what a
    /// host of another language would do for each message.
    fn gather(&mut self, count: usize) {
        let Self { messages, fields, payloads, .. } = self;
        let mut gathers = true;
        messages.for_each(|message, _| {
            if !message.headers().is_empty() {
                fields.extend(list(message.headers()));
            }
            let payload = message.payload().as_slice();
            gathers &= payload.len() <= PACE_CQ_TOGETHER;
            if gathers {
                if payloads.capacity() == 0 {
                    // Most are as long as the first.
                    payloads.reserve(payload.len() * count);
                }
                payloads.extend_from_slice(payload);
            }
        });
        if !gathers {
            payloads.clear();
        }
    }

    /// Some of them.
    pub(super) fn each(&self, parts: Parts, mut to: impl FnMut(Received)) {
        let mut number = 0;
        self.messages.for_each(|stored, lost_before| {
            if parts.has(number) {
                to(Received { stored: stored.clone(), lost_before });
            }
            number += 1;
        });
    }

    /// Shows all of them; `common` is what they have in common, and has the token of the first.
    fn show(&self, common: &pace_cq_entry_t, slots: &mut Slots<'_>) {
        let name = pace_subscription_t { id: 0 };
        let (mut number, mut first, mut start) = (0, 0, 0);
        self.messages.for_each(|message, lost_before| {
            let last = first + message.headers().len();
            let mut shown = show(message, lost_before, name, &self.fields[first..last]);
            shown.attempt = self.attempt;
            first = last;
            if !self.payloads.is_empty() && shown.size > 0 {
                shown.payload = self.payloads[start..].as_ptr().cast();
                start += shown.size;
            }
            if let Some(slot) = slots.next() {
                slot.write(pace_cq_entry_t {
                    token: common.token + number,
                    bytes: shown.payload,
                    size: shown.size,
                    detail: pace_cq_detail_t { message: shown },
                    ..*common
                });
            }
            number += 1;
        });
    }
}

/// Where a host wants its entries.
pub(super) type Slots<'a> = IterMut<'a, MaybeUninit<pace_cq_entry_t>>;

/// No more are taken than there are slots.
pub(super) fn put(slots: &mut Slots<'_>, entry: pace_cq_entry_t) {
    if let Some(slot) = slots.next() {
        slot.write(entry);
    }
}

/// What an entry of the queue is to the host: an item of the table, or nothing that is to be completed.
pub(super) enum Seen {
    /// Items wait to be brought again.
    Again,
    /// With how many things there are.
    Out(Item, usize),
    Told(pace_cq_entry_t),
}

const fn nothing(kind: u32, tag: u64) -> pace_cq_entry_t {
    // SAFETY: zero is a value of every member.
    let detail = unsafe { zeroed() };
    pace_cq_entry_t {
        kind,
        flags: 0,
        token: 0,
        tag,
        bytes: ptr::null(),
        size: 0,
        status: PACE_OK,
        reserved: 0,
        detail,
    }
}

fn of_body(kind: u32, tag: u64, request: u64) -> pace_cq_entry_t {
    let request = pace_cq_request_t { conn: pace_conn_id_t { id: 0 }, request };
    pace_cq_entry_t { detail: pace_cq_detail_t { request }, ..nothing(kind, tag) }
}

/// `ended`: the body of the request of this token has ended.
pub(super) fn see(entry: crate::cq::internal::Entry, ended: &mut Option<u64>) -> Seen {
    let tag = entry.tag;
    let out = match entry.kind {
        EntryKind::Event(held) if held.handle().is_some() => Out::Event(held),
        EntryKind::Event(held) => {
            let kind = match held.kind() {
                EventKind::Posted => PACE_CQ_TASK,
                _ => PACE_CQ_TIMER,
            };
            return Seen::Told(nothing(kind, tag));
        }
        EntryKind::Conn(event) => Out::Conn(event),
        EntryKind::Datagram(UdpEvent::Error(error)) => {
            let mut told = nothing(PACE_CQ_DATAGRAM_ERROR, tag);
            told.detail.datagram.os_error = errno(error);
            return Seen::Told(told);
        }
        EntryKind::Datagram(event) => Out::Datagram(event),
        EntryKind::Attempt(attempt) => Out::Attempt(attempt),
        EntryKind::TaskEnded { task, status } => {
            let mut told = nothing(PACE_CQ_TASK_ENDED, tag);
            let status = number_of_status(status);
            told.detail.attempt = pace_cq_attempt_t { id: task, number: 0, status };
            return Seen::Told(told);
        }
        EntryKind::Messages(batch) => {
            let count = batch.len();
            let group = Group::new(batch.messages, count, Some(batch.mail), 1);
            return Seen::Out(Item { tag, again: false, out: Out::Messages(group) }, count);
        }
        EntryKind::Ended => return Seen::Told(nothing(PACE_CQ_ENDED, tag)),
        EntryKind::Internal(Internal(told)) => match told {
            Told::Http(event) => return see_http(tag, event, ended),
            Told::Reply(Ok(reply)) => {
                return Seen::Out(Item { again: false, ..Item::message(tag, reply, None, 1) }, 1);
            }
            Told::Reply(Err(late)) => {
                let status = if late { PACE_ETIMEDOUT } else { PACE_ECANCELLED };
                return Seen::Told(pace_cq_entry_t { status, ..nothing(PACE_CQ_REPLY, tag) });
            }
            Told::Record(record) => Out::Record(Laid::new(&record)),
            Told::Signal(signal) => {
                let detail = pace_cq_detail_t { signal };
                return Seen::Told(pace_cq_entry_t { detail, ..nothing(PACE_CQ_SIGNAL, tag) });
            }
            Told::Again => return Seen::Again,
        },
    };
    Seen::Out(Item { tag, again: false, out }, 1)
}

fn see_http(tag: u64, event: http::HttpEvent, ended: &mut Option<u64>) -> Seen {
    let out = match event {
        http::HttpEvent::Request(mut request) => {
            let upload = request.upload.take();
            Out::Request(Box::new(Answered { answer: Answer::Request(request), upload }))
        }
        http::HttpEvent::Part(whose, part) => Out::Bytes(PACE_CQ_BODY, part, whose.number),
        http::HttpEvent::Ended(_, block) => Out::Bytes(PACE_CQ_REQUEST_ENDED, block, 0),
        http::HttpEvent::Writable(whose) => {
            return Seen::Told(of_body(PACE_CQ_BODY_WRITABLE, tag, whose.number));
        }
        http::HttpEvent::Gone(whose) => {
            return Seen::Told(of_body(PACE_CQ_CLIENT_GONE, tag, whose.number));
        }
        http::HttpEvent::End(whose, is_whole) => {
            *ended = Some(whose.number);
            let kind = if is_whole { PACE_CQ_BODY_END } else { PACE_CQ_BODY_BROKEN };
            return Seen::Told(of_body(kind, tag, whose.number));
        }
    };
    Seen::Out(Item { tag, again: false, out }, 1)
}

/// The entries of an item; `token` is that of the first.
pub(super) fn rows(item: &Item, token: u64, slots: &mut Slots<'_>) {
    let flags = if item.again { PACE_CQ_AGAIN } else { 0 };
    let row = |kind| pace_cq_entry_t { flags, token, ..nothing(kind, item.tag) };
    let with_bytes = |row: pace_cq_entry_t, bytes: &[u8]| match bytes.is_empty() {
        true => row,
        false => pace_cq_entry_t { bytes: bytes.as_ptr().cast(), size: bytes.len(), ..row },
    };
    match &item.out {
        Out::Event(held) => {
            let (kind, ready) = match held.kind() {
                EventKind::Ready(ready) => (PACE_CQ_READY, ready.bits().into()),
                _ => (PACE_CQ_TICK, 0),
            };
            let handle = held.handle().map_or(0, |id| handle_name(id.0).id);
            let handle = pace_handle_t { id: handle };
            let ready = pace_cq_ready_t { handle, ready, reserved: 0 };
            put(slots, pace_cq_entry_t { detail: pace_cq_detail_t { ready }, ..row(kind) });
        }
        Out::Conn(event) => {
            let detail = pace_cq_detail_t { conn: of_conn(event) };
            put(slots, with_bytes(pace_cq_entry_t { detail, ..row(PACE_CQ_CONN) }, event.bytes()));
        }
        Out::Request(request) => {
            if let Answer::Request(request) = &request.answer {
                let conn = conn_name(request.conn.id());
                let detail = pace_cq_detail_t { request: pace_cq_request_t { conn, request: 0 } };
                put(
                    slots,
                    with_bytes(pace_cq_entry_t { detail, ..row(PACE_CQ_REQUEST) }, &request.block),
                );
            }
        }
        Out::Bytes(kind, bytes, request) => {
            put(
                slots,
                with_bytes(
                    pace_cq_entry_t { flags, token, ..of_body(*kind, item.tag, *request) },
                    bytes,
                ),
            );
        }
        Out::Datagram(UdpEvent::Datagram { bytes, from, length }) => {
            let datagram =
                pace_cq_datagram_t { length: *length, peer: address(*from), os_error: 0 };
            let detail = pace_cq_detail_t { datagram };
            put(slots, with_bytes(pace_cq_entry_t { detail, ..row(PACE_CQ_DATAGRAM) }, bytes));
        }
        Out::Attempt(attempt) => {
            let status = number_of_status(Status::Running);
            let (id, number) = (attempt.task(), attempt.number());
            let attempt = pace_cq_attempt_t { id, number, status };
            let detail = pace_cq_detail_t { attempt };
            put(slots, pace_cq_entry_t { detail, ..row(PACE_CQ_ATTEMPT) });
        }
        // Errors of sockets are told, and never out.
        Out::Datagram(_) | Out::Busy(..) => {}
        Out::Messages(group) => {
            let kind = if group.mail.is_some() { PACE_CQ_MESSAGE } else { PACE_CQ_REPLY };
            group.show(&row(kind), slots);
        }
        Out::Record(laid) => {
            let detail = pace_cq_detail_t { record: laid.record };
            put(slots, pace_cq_entry_t { detail, ..row(PACE_CQ_RECORD) });
        }
    }
}

fn of_conn(event: &ConnEvent) -> pace_cq_conn_t {
    use super::conn_event::*;
    let (kind, detail, number) = match event.kind() {
        ConnEventKind::Opened => (PACE_CONN_EVENT_OPENED, 0, 0),
        ConnEventKind::Data => (PACE_CONN_EVENT_DATA, 0, 0),
        ConnEventKind::Finished => (PACE_CONN_EVENT_FINISHED, 0, 0),
        ConnEventKind::Writable => (PACE_CONN_EVENT_WRITABLE, 0, 0),
        ConnEventKind::Written(token) => (PACE_CONN_EVENT_WRITTEN, 0, token),
        ConnEventKind::TimedOut(kind) => (PACE_CONN_EVENT_TIMED_OUT, number_of_timeout(kind), 0),
        ConnEventKind::Draining => (PACE_CONN_EVENT_DRAINING, 0, 0),
        ConnEventKind::Closed(reason) => {
            let (number, detail) = number_of_reason(reason);
            (PACE_CONN_EVENT_CLOSED, number, detail as u64)
        }
    };
    pace_cq_conn_t { conn: conn_name(event.conn().id()), event: kind, detail, number }
}
