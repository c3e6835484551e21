//! Completion queues: what is attached to them.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::ask::{failure, pace_asked_t, request_of};
use super::boundary::{self, Failure, Out, Result, Text, call, nanos, usable};
use super::callback::{pace_conn_id_t, pace_task_t};
use super::conn::name as conn_name;
use super::conn_event::kinds;
use super::cq::{open, pace_cq_t};
use super::http::{Target, add, add_nowhere, pace_http_t};
use super::hub::{open_key, pace_key_t};
use super::log::{outbox_of, pace_log_t};
use super::mailbox::{open as open_mailbox, pace_mailbox_t};
use super::message::pace_publication_t;
use super::server::{builder, pace_server_options_t, pace_server_t};
use super::signals::pace_signals_t;
use super::sized;
use super::status::*;
use super::udp::{builder as udp_builder, pace_udp_options_t, pace_udp_t};
use super::work_task::key as task_key;
use super::workers::{open as open_workers, pace_workers_t};
use crate::Signals;
use crate::cq::internal::{
    Brought, Conns, Datagrams, Entry, EntryKind, Internal, Mail, Mailed, Promise, Source, Tasks,
    Told, bring_of,
};
use crate::http::{self, Requests};
use crate::hub::{Received, RequestError, Stored};
use crate::log::Record;
use crate::queue::Outbox;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::Attempts;
use core::ffi::{c_char, c_void};
use core::ptr;
use std::sync::Arc;

/// Starts a server, as pace_server_new() does, whose connections come as PACE_CQ_CONN with `tag`. `wanted` says with
/// PACE_WANTED_ bits which of their events besides PACE_CONN_EVENT_DATA; for the rest a connection does what it does
/// without hooks. `on_exhausted` must be NULL. When the server has ended and all its entries were taken, PACE_CQ_ENDED
/// comes.
///
/// While an entry is out no more than one read is taken in from its connection, which is not idle, and a drain waits for
/// it.
///
/// As pace_server_new(); PACE_EINVAL for `wanted`.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_server(
    cq: *mut pace_cq_t,
    options: *const pace_server_options_t,
    wanted: u32,
    tag: u64,
    server: *mut *mut pace_server_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(server, "server") }?;
        let kinds = kinds(wanted)?;
        // SAFETY: as the header demands.
        let (builder, filters) = unsafe { builder(&cq.pool, options, None) }?;
        let (made, host) = builder.serve_to_host(kinds)?;
        let conns = Arc::new(Conns(Arc::clone(&host)));
        cq.core.attach_new(tag, conns, |to| host.outbox.listen(to))?;
        let pool = cq.pool.clone();
        let made = pace_server_t { server: made, pool, _hooks: None };
        to.set(Box::into_raw(Box::new(made)));
        filters.keep();
        Ok(())
    })
}

/// As pace_server_connect(), on a server that is attached to a completion queue: what happens to the connection comes
/// there, with the server's tag and `wanted` of its own. `conn` may be NULL.
///
/// As there; PACE_EINVAL for `wanted`, and for a server that is attached to no queue.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_connect(
    server: Option<&pace_server_t>,
    address: *const c_char,
    wanted: u32,
    conn: *mut pace_conn_id_t,
) -> pace_status_t {
    call(|| {
        let server = &usable(server)?.server;
        // SAFETY: as the header demands.
        let address = unsafe { boundary::text(address, "address") }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(conn, "conn") }?;
        let handler = server.handler(kinds(wanted)?)?;
        to.set(conn_name(server.connect(address, handler)?.id()));
        Ok(())
    })
}

/// Opens a datagram socket, as pace_udp_new() does, whose datagrams come as PACE_CQ_DATAGRAM with `tag`. Of what nobody
/// has taken up to `max_waiting` bytes are kept, 128 for each datagram included: 1024 to 2^40. Datagrams beyond that are
/// dropped, and counted (pace_udp_stats_t). When it is closed and all was taken, PACE_CQ_ENDED comes.
///
/// As pace_udp_new(); PACE_EINVAL for `max_waiting`.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_udp(
    cq: *mut pace_cq_t,
    options: *const pace_udp_options_t,
    max_waiting: u64,
    tag: u64,
    udp: *mut *mut pace_udp_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(udp, "udp") }?;
        // SAFETY: as the header demands.
        let options = unsafe { sized::read(options, "options") }?;
        let most = usize::try_from(max_waiting).unwrap_or(usize::MAX);
        // SAFETY: as the header demands.
        let builder = unsafe { udp_builder(&cq.pool, &options) }?;
        let (socket, host) = builder.serve_to_host(most)?;
        let datagrams = Arc::new(Datagrams(Arc::clone(&host)));
        cq.core.attach_new(tag, datagrams, |to| host.outbox.listen(to))?;
        let made = pace_udp_t::new(socket, Arc::clone(&cq.core.shared));
        to.set(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// As pace_http_route(), and requests come as PACE_CQ_REQUEST with `tag`. With `in_parts` a request comes as soon as its
/// head is there, without its body, which pace_cq_read() asks for part by part. All that is attached of one HTTP server
/// goes to one queue. When the server has ended and all was taken, PACE_CQ_ENDED comes once, with the tag that was
/// attached first.
///
/// PACE_EINVAL as for pace_http_route(), and for a second queue.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_route(
    cq: *mut pace_cq_t,
    http: Option<&pace_http_t>,
    method: Text,
    pattern: Text,
    in_parts: bool,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        unsafe { add_attached(cq, http, Some((method, pattern, in_parts)), tag) }
    })
}

/// As pace_http_fallback(), and requests that no route takes come as PACE_CQ_REQUEST with `tag`. Their block says which
/// status they would get; PACE_CQ_ERROR_PAGE with that status answers as the server does.
///
/// PACE_EINVAL as there, and as for pace_cq_route().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_fallback(
    cq: *mut pace_cq_t,
    http: Option<&pace_http_t>,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        unsafe { add_attached(cq, http, None, tag) }
    })
}

/// As pace_http_on_end(), and each end comes as PACE_CQ_REQUEST_ENDED with `tag`.
///
/// PACE_EINVAL as there, and as for pace_cq_route().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_http_ends(
    cq: *mut pace_cq_t,
    http: Option<&pace_http_t>,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        unsafe { add_ends(cq, http, tag) }
    })
}

/// Attempts of tasks that pace_workers_submit_tagged() submits come as PACE_CQ_ATTEMPT with the tags of their tasks, in the
/// order of lanes. When the worker pool was shut down and all was taken, PACE_CQ_ENDED comes with `tag`. An attempt that is out
/// then is completed as ever; other ends that come about later are not brought.
///
/// PACE_EINVAL if they go to another queue already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_workers(
    cq: *mut pace_cq_t,
    workers: *mut pace_workers_t,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let workers = unsafe { open_workers(workers) }?;
        let attempts = Arc::new(Attempts::of(&workers.workers)?);
        let tasks = Arc::new(Tasks(Arc::clone(&attempts)));
        Ok(cq.core.attach_new(tag, tasks, |to| attempts.listen(to))?)
    })
}

/// The end of a task of a worker pool comes as PACE_CQ_TASK_ENDED with `tag`, at once if it has ended.
///
/// PACE_ESTALE; PACE_EBUSY while another thread waits for it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_task(
    cq: *mut pace_cq_t,
    workers: *mut pace_workers_t,
    task: pace_task_t,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let workers = unsafe { open_workers(workers) }?;
        let hold = workers.tasks.hold(task_key(task))?;
        let promise = Promise::new(&cq.core, tag);
        hold.value().on_end(move |status| promise.tell(EntryKind::TaskEnded { task: 0, status }));
        Ok(())
    })
}

/// Messages of a mailbox, also of that of a replay, come as PACE_CQ_MESSAGE with `tag`. They count as delivered when they are brought, and as dead
/// letters when they are completed with PACE_CQ_FAIL. Payloads of up to PACE_CQ_TOGETHER bytes lie one after the other.
/// A lease of the subscription counts whoever waits at the queue as one that takes messages. When the subscription has ended and all was taken, PACE_CQ_ENDED comes.
///
/// PACE_EINVAL if it is attached already, or its descriptor was asked for.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_mailbox(
    cq: *mut pace_cq_t,
    mailbox: *mut pace_mailbox_t,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let mailbox = &unsafe { open_mailbox(mailbox) }?.mailbox;
        let source = Arc::new(Mailed::new(Mail::of(mailbox)));
        Ok(cq.core.attach_new(tag, source, |to| mailbox.listen(to))?)
    })
}

/// As pace_key_request_async(), and what becomes of the request comes as PACE_CQ_REPLY with `tag`, once. Whoever replies
/// puts it there, so it does not wait for a thread of the pool. `timeout_ns` counts from now, and its end is told by the
/// pool; PACE_FOREVER: without an end. `asked` may be NULL; it is for pace_hub_give_up().
///
/// If this is refused nothing will come: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the pool are in
/// use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a handler.
///
/// Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_request(
    cq: *mut pace_cq_t,
    key: *const pace_key_t,
    publication: *const pace_publication_t,
    bytes: *const c_void,
    size: usize,
    timeout_ns: u64,
    tag: u64,
    asked: *mut pace_asked_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let key = unsafe { open_key(key) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(asked, "asked") }?;
        // SAFETY: as the header demands.
        let message = unsafe { request_of(key, publication, bytes, size) }?;
        let promise = Promise::new(&cq.core, tag);
        let [told, accepted] = [false, true].map(AtomicBool::new);
        let open = Arc::new(Asked { promise, told, accepted });
        let told = Arc::clone(&open);
        let then = move |reply: core::result::Result<Stored, RequestError>| {
            let reply = reply.map(|stored| Received { stored, lost_before: 0 });
            told.tell(reply.map_err(|_| true));
        };
        match message.request_told(nanos(timeout_ns), then) {
            Ok(asked) => {
                to.set(pace_asked_t { id: asked.number() });
                Ok(())
            }
            Err(error) => {
                open.accepted.store(false, Relaxed);
                Err(failure(error))
            }
        }
    })
}

/// Records of a log come as PACE_CQ_RECORD with `tag`. Its cq_capacity says how many may wait. When the log is closed
/// and all was taken, PACE_CQ_ENDED comes.
///
/// PACE_EINVAL if cq_capacity is 0, or it is attached already.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_log(
    cq: *mut pace_cq_t,
    log: *mut pace_log_t,
    tag: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let records = unsafe { outbox_of(log) }?;
        let source = Arc::new(Records(Arc::clone(&records)));
        Ok(cq.core.attach_new(tag, source, |to| records.listen(to))?)
    })
}

/// As pace_signals_new(), and each signal comes as PACE_CQ_SIGNAL with `tag`.
///
/// As there.
///
/// Threads: any. In handlers: as there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_cq_signals(
    cq: *mut pace_cq_t,
    numbers: *const i32,
    count: usize,
    tag: u64,
    watch: *mut *mut pace_signals_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let cq = unsafe { open(cq) }?;
        // SAFETY: as the header demands.
        let numbers = unsafe { boundary::array(numbers, count, "numbers") }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(watch, "watch") }?;
        let core = Arc::downgrade(&cq.core);
        let made = Signals::new(&cq.pool, numbers, move |signal| {
            if let Some(core) = core.upgrade() {
                core.note(Entry::new(tag, internal(Told::Signal(signal))));
            }
        })?;
        to.set(pace_signals_t::give(made, cq.pool.clone()));
        Ok(())
    })
}

fn internal(told: Told) -> EntryKind {
    EntryKind::Internal(Internal(told))
}

/// Records that wait.
struct Records(Arc<Outbox<Record>>);

impl Source for Records {
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        bring_of(&self.0, most, |record| out.push(Entry::new(tag, internal(Told::Record(record)))))
    }

    fn close(&self) {
        drop(self.0.close());
    }
}

/// Tells what became of a request once, and at the latest that no reply will come.
struct Asked {
    promise: Promise,
    told: AtomicBool,
    /// It was accepted: its drop tells that it was given up.
    accepted: AtomicBool,
}

impl Asked {
    fn tell(&self, reply: core::result::Result<Received, bool>) {
        // Relaxed: the call and the drop behind it are ordered by whoever owns this.
        self.told.store(true, Relaxed);
        self.promise.tell(internal(Told::Reply(reply)));
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.told.load(Relaxed) && self.accepted.load(Relaxed) {
            self.tell(Err(false));
        }
    }
}

/// The requests of an HTTP server's routes, with the tags of these.
pub(super) struct Requested(pub(super) Arc<Requests>);

impl Source for Requested {
    fn bring(&self, _: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        bring_of(&self.0.outbox, most, |event| {
            let tag = match &event {
                http::HttpEvent::Request(request) => request.tag,
                http::HttpEvent::Writable(whose)
                | http::HttpEvent::Gone(whose)
                | http::HttpEvent::Part(whose, _)
                | http::HttpEvent::End(whose, _) => whose.tag,
                http::HttpEvent::Ended(tag, _) => {
                    self.0.has_taken_end();
                    *tag
                }
            };
            out.push(Entry::new(tag, internal(Told::Http(event))));
        })
    }

    fn close(&self) {
        self.0.close();
    }
}

/// Where the requests go that are attached to this queue.
fn attached(cq: &pace_cq_t, http: &pace_http_t, tag: u64) -> Result<Arc<Requests>> {
    let (core, requests) = http.attached.get_or_init(|| {
        let requests = Requests::new();
        let attachment = cq.core.attach(tag, Arc::new(Requested(Arc::clone(&requests))));
        requests.outbox.listen(attachment);
        (Arc::downgrade(&cq.core), requests)
    });
    match ptr::eq(core.as_ptr(), &*cq.core) {
        true => Ok(Arc::clone(requests)),
        false => {
            Err(Failure::invalid("cq", "another", "the queue that this server is attached to"))
        }
    }
}

/// A route, or without one what no route takes, whose requests come to a completion queue.
///
/// # Safety
///
/// As the header demands of the arguments.
unsafe fn add_attached(
    cq: &pace_cq_t,
    http: Option<&pace_http_t>,
    route: Option<(Text, Text, bool)>,
    tag: u64,
) -> Result {
    let requests = attached(cq, usable(http)?, tag)?;
    match route {
        Some((method, pattern, in_parts)) => {
            let target = match in_parts {
                true => Target::AttachedStreaming { requests, tag },
                false => Target::Attached { requests, tag },
            };
            // SAFETY: as the caller promises.
            unsafe { add(http, method, pattern, target, ptr::null_mut(), None) }
        }
        None => {
            let target = Target::FallbackAttached { requests, tag };
            // SAFETY: as the caller promises.
            unsafe { add_nowhere(http, target, ptr::null_mut(), None) }
        }
    }
}

/// # Safety
///
/// As the header demands of the arguments.
unsafe fn add_ends(cq: &pace_cq_t, http: Option<&pace_http_t>, tag: u64) -> Result {
    let requests = attached(cq, usable(http)?, tag)?;
    requests.tag_of_ends.store(tag, Relaxed);
    // SAFETY: as the caller promises.
    unsafe { add_nowhere(http, Target::OnEndAttached(requests), ptr::null_mut(), None) }
}
