//! Requests as data, for hosts that cannot be called back.
//!
//! The handler of an attached route copies the request into one block and puts it, with its response,
//! into an outbox. One request of a connection is in work at a time, so there are no more of them than
//! connections. A request that nobody answers answers itself with 500 when it is dropped, as any
//! response does.
//!
//! # Bodies that are streamed
//!
//! The head comes as a request without a body; parts of the body come one by one, each when the host
//! has asked for it. So what waits for a slow host is one part, and a host that never asks has the
//! peer wait, in the kernel's buffers and its own.
//!
//! ```text
//!             ask                 data: one part goes into the outbox
//!   RESTING ───────► ASKED ─────────────────────────────────────────► RESTING
//!      │               └──── the end ────► reported, over
//!      └── the end: kept, and reported when it is asked for  (data meanwhile: not taken; ask resumes)
//! ```
//!
//! A peer that waits for `100 Continue` gets it when the host asks first.
//!
//! A host that has answered without reading on asks for nothing any more: `forget`, and what still
//! comes is dropped, or limited, by the connection.
//!
//! A block is made for readers that pay for each step: eight numbers of 32 bits in the machine's
//! order, a pair of lengths for each parameter and each header, and then the texts themselves.
//!
//! | number | what |
//! |---|---|
//! | 0, 1, 2, 3 | lengths of method, target, path, query; [`NONE`]: there is no query |
//! | 4 | the minor version, and in the upper half the status of a request that no route has taken |
//! | 5, 6 | how many parameters and headers there are |
//! | 7 | where the body begins; it is the rest |

use super::exchange::Exchange;
use super::exchange::request::{Request, RequestBody};
use super::exchange::response::Response;
use super::telemetry::RequestEnd;
use crate::net::ConnRef;
use crate::queue::Outbox;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::Arc;

/// In the place of a length.
const NONE: u32 = u32::MAX;

/// What waits for a host.
pub(crate) enum HttpEvent {
    Request(AttachedRequest),
    /// The output of this answer's body pressed, and has fallen to the low mark.
    Writable(Whose),
    /// The client of this request has gone.
    Gone(Whose),
    /// A part of this request's body, which was asked for.
    Part(Whose, Vec<u8>),
    /// The end of this request's body; whether it was whole.
    End(Whose, bool),
    /// What has become of a request, as a block, with the tag that was given for such.
    Ended(u64, Vec<u8>),
}

/// A request that a completion queue has brought: its host's name for it, and the tag of its route.
#[derive(Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) number: u64,
    pub(crate) tag: u64,
}

/// Ends of requests that wait for a host, at most. What is refused by the server waits for no host, so only this
/// bounds it.
const MOST_ENDS: usize = 1 << 16;

/// A request, and what it is answered with.
pub(crate) struct AttachedRequest {
    /// What its route was given.
    pub(crate) tag: u64,
    pub(crate) conn: ConnRef,
    pub(crate) block: Vec<u8>,
    pub(crate) response: Response,
    /// The body, if it is streamed.
    pub(crate) upload: Option<Arc<Upload>>,
}

/// Where the requests of attached routes wait for a completion queue.
pub(crate) struct Requests {
    pub(crate) outbox: Outbox<HttpEvent>,
    /// The tag of ends.
    pub(crate) tag_of_ends: AtomicU64,
    /// Ends that wait.
    ends: AtomicUsize,
    /// Ends that found no room since one did.
    lost: AtomicU64,
}

impl Requests {
    pub(crate) fn new() -> Arc<Self> {
        let [lost, tag_of_ends] = [0; 2].map(AtomicU64::new);
        let (outbox, ends) = (Outbox::new(), AtomicUsize::new(0));
        Arc::new(Self { outbox, tag_of_ends, ends, lost })
    }

    /// A handler for a route, whose requests will have this tag.
    pub(crate) fn handler(
        self: &Arc<Self>,
        tag: u64,
    ) -> impl Fn(&Request<'_>, Response) + Send + Sync + 'static {
        let requests = Arc::clone(self);
        move |request, response| {
            requests.put(tag, request, response, None);
        }
    }

    /// The same for a route whose bodies are streamed.
    pub(crate) fn streaming(
        self: &Arc<Self>,
        tag: u64,
    ) -> impl Fn(&Request<'_>, Response) -> Feeding + Send + Sync + 'static {
        let requests = Arc::clone(self);
        move |request, response| {
            let upload = Arc::new(Upload {
                name: AtomicU64::new(0),
                tag,
                requests: Arc::clone(&requests),
                conn: request.conn(),
                exchange: Arc::clone(response.exchange()),
                state: Mutex::new(UploadState::default()),
            });
            requests.put(tag, request, response, Some(Arc::clone(&upload)));
            Feeding { upload, is_whole: false }
        }
    }

    fn put(
        &self,
        tag: u64,
        request: &Request<'_>,
        response: Response,
        upload: Option<Arc<Upload>>,
    ) {
        let (conn, block) = (request.conn(), block_of(request, response.refusal()));
        let attached = AttachedRequest { tag, conn, block, response, upload };
        // The completion queue is closed: its drop answers.
        drop(self.outbox.put(HttpEvent::Request(attached)));
    }

    /// What has become of a request.
    pub(crate) fn put_end(&self, end: &RequestEnd<'_>) {
        if self.ends.fetch_add(1, Relaxed) >= MOST_ENDS {
            self.ends.fetch_sub(1, Relaxed);
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        let lost = self.lost.swap(0, Relaxed);
        let tag = self.tag_of_ends.load(Relaxed);
        drop(self.outbox.put(HttpEvent::Ended(tag, block_of_end(end, lost))));
    }

    /// A completion queue has taken one of them.
    pub(crate) fn has_taken_end(&self) {
        self.ends.fetch_sub(1, Relaxed);
    }

    /// No more requests come; those that are there are brought first.
    pub(crate) fn end(&self) {
        self.outbox.end();
    }

    /// The completion queue is closed.
    pub(crate) fn close(&self) {
        drop(self.outbox.close());
    }
}

/// The body of a request between its connection and a host; see the head of the file.
pub(crate) struct Upload {
    /// What its host calls the request.
    name: AtomicU64,
    tag: u64,
    requests: Arc<Requests>,
    conn: ConnRef,
    exchange: Arc<Exchange>,
    state: Mutex<UploadState>,
}

#[derive(Default)]
struct UploadState {
    /// The host waits for what comes next.
    asked: bool,
    /// The end has come: whether the body was whole.
    ended: Option<bool>,
    /// The host wants no more of it, or has had the end.
    over: bool,
}

impl Upload {
    fn change<R>(&self, change: impl FnOnce(&mut UploadState) -> R) -> R {
        // Nothing panics while it is held.
        change(&mut self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The host calls the request this from now on. Before it asks for anything.
    pub(crate) fn rename(&self, number: u64) {
        // Relaxed: the state's lock, which asking takes, orders it.
        self.name.store(number, Relaxed);
    }

    fn whose(&self) -> Whose {
        Whose { number: self.name.load(Relaxed), tag: self.tag }
    }

    /// The host wants what comes next. False: it has had the end, or wants nothing any more.
    pub(crate) fn ask(&self) -> bool {
        let (goes_on, reported) = self.change(|state| {
            let reported = state.ended.filter(|_| !state.over);
            let goes_on = !state.over;
            state.asked = goes_on && reported.is_none();
            state.over |= reported.is_some();
            (goes_on, reported)
        });
        match reported {
            Some(is_whole) => {
                drop(self.requests.outbox.put(HttpEvent::End(self.whose(), is_whole)))
            }
            // What was not taken is shown again. A connection that has ended has reported that.
            None if goes_on => {
                self.exchange.ask_for_body();
                drop(self.conn.resume());
            }
            None => {}
        }
        goes_on
    }

    /// The host wants no more of it.
    pub(crate) fn forget(&self) {
        let is_whole = self.change(|state| {
            (state.over, state.asked) = (true, false);
            state.ended.is_some()
        });
        if !is_whole {
            // A connection that has ended is no loss.
            drop(self.conn.resume());
        }
    }
}

/// The connection's side of an [`Upload`].
pub(crate) struct Feeding {
    upload: Arc<Upload>,
    is_whole: bool,
}

impl RequestBody for Feeding {
    fn data(&mut self, bytes: &[u8]) -> usize {
        let upload = &self.upload;
        let (asked, over) = upload.change(|state| (core::mem::take(&mut state.asked), state.over));
        match (asked, over) {
            (_, true) => bytes.len(),
            (false, false) => 0,
            (true, false) => {
                let part = HttpEvent::Part(upload.whose(), bytes.to_vec());
                // The completion queue is closed: then nobody asks either.
                drop(upload.requests.outbox.put(part));
                bytes.len()
            }
        }
    }

    fn end(mut self: Box<Self>) {
        self.is_whole = true;
    }

    fn is_wanted(&self) -> bool {
        self.upload.change(|state| state.asked)
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        let (upload, is_whole) = (&self.upload, self.is_whole);
        let reported = upload.change(|state| {
            state.ended = Some(is_whole);
            let reported = core::mem::take(&mut state.asked) && !state.over;
            state.over |= reported;
            reported
        });
        if reported {
            drop(upload.requests.outbox.put(HttpEvent::End(upload.whose(), is_whole)));
        }
    }
}

/// As `pace_cq_request_t` has it.
fn block_of_end(end: &RequestEnd<'_>, lost: u64) -> Vec<u8> {
    let peer = end.peer.to_string();
    let duration = u64::try_from(end.duration.as_nanos()).unwrap_or(u64::MAX);
    let texts = [end.method, end.target, &peer];
    let mut block = Vec::with_capacity(32 + texts.iter().map(|text| text.len()).sum::<usize>());
    block.extend_from_slice(&duration.to_ne_bytes());
    block.extend_from_slice(&lost.to_ne_bytes());
    block.extend_from_slice(&u32::from(end.status.unwrap_or(0)).to_ne_bytes());
    for text in texts {
        block.extend_from_slice(&(text.len() as u32).to_ne_bytes());
    }
    for text in texts {
        block.extend_from_slice(text.as_bytes());
    }
    block
}

fn block_of(request: &Request<'_>, refusal: u16) -> Vec<u8> {
    let (method, target, path) = (request.method(), request.target(), request.path());
    let (query, body) = (request.query(), request.body());
    let params = || request.params().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let headers = || request.headers().map(|(name, value)| (name.as_bytes(), value));
    let (mut pairs, mut text) = ([0, 0], method.len() + target.len() + path.len());
    text += query.map_or(0, str::len);
    params().for_each(|(name, value)| {
        (pairs[0], text) = (pairs[0] + 1, text + name.len() + value.len())
    });
    headers().for_each(|(name, value)| {
        (pairs[1], text) = (pairs[1] + 1, text + name.len() + value.len())
    });
    let start = 4 * (8 + 2 * (pairs[0] + pairs[1])) + text;
    let mut block = Vec::with_capacity(start + body.len());
    let mut number = |number: usize| block.extend_from_slice(&(number as u32).to_ne_bytes());
    number(method.len());
    number(target.len());
    number(path.len());
    number(query.map_or(NONE as usize, str::len));
    number(usize::from(request.version()) | usize::from(refusal) << 16);
    number(pairs[0]);
    number(pairs[1]);
    number(start);
    for (name, value) in params().chain(headers()) {
        number(name.len());
        number(value.len());
    }
    for text in [method, target, path, query.unwrap_or_default()] {
        block.extend_from_slice(text.as_bytes());
    }
    for (name, value) in params().chain(headers()) {
        block.extend_from_slice(name);
        block.extend_from_slice(value);
    }
    block.extend_from_slice(body);
    block
}
