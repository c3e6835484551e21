//! Requests as data, for hosts that cannot be called back.
//!
//! The handler of a pulled route copies the request into one block and puts it, with its response,
//! into an outbox. One request of a connection is in work at a time, so there are no more of them than
//! connections. A request that nobody answers answers itself with 500 when it is dropped, as any
//! response does.
//!
//! A block is made for readers that pay for each step: eight numbers of 32 bits in the machine's
//! order, a pair of lengths for each parameter and each header, and then the texts themselves.
//!
//! | number | what |
//! |---|---|
//! | 0, 1, 2, 3 | lengths of method, target, path, query; [`NONE`]: there is no query |
//! | 4 | the minor version |
//! | 5, 6 | how many parameters and headers there are |
//! | 7 | where the body begins; it is the rest |

use super::request::Request;
use super::response::Response;
use crate::error::Result;
use crate::net::ConnRef;
use crate::net::outbox::Outbox;
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// In the place of a length.
const NONE: u32 = u32::MAX;

/// What waits for a host.
pub(crate) enum Pulled {
    Request(PulledRequest),
    /// The output of this answer's body pressed, and has fallen to the low mark.
    Writable(u64),
}

/// A request, and what it is answered with.
pub(crate) struct PulledRequest {
    /// What its route was given.
    pub(crate) route: u32,
    pub(crate) conn: ConnRef,
    pub(crate) block: Vec<u8>,
    pub(crate) response: Response,
}

/// Where the requests of pulled routes wait.
pub(crate) struct Requests {
    outbox: Outbox<Pulled>,
}

impl Requests {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { outbox: Outbox::new() })
    }

    /// A handler for a route, whose requests will have this number.
    pub(crate) fn handler(
        self: &Arc<Self>,
        route: u32,
    ) -> impl Fn(&Request<'_>, Response) + Send + Sync + 'static {
        let requests = Arc::clone(self);
        move |request, response| {
            let (conn, block) = (request.conn(), block_of(request));
            let pulled = PulledRequest { route, conn, block, response };
            // Nobody pulls any more: its drop answers.
            drop(requests.outbox.put(Pulled::Request(pulled)));
        }
    }

    /// A body's output has fallen.
    pub(crate) fn tell_writable(&self, number: u64) {
        drop(self.outbox.put(Pulled::Writable(number)));
    }

    /// As [`PulledServer::pull`](crate::net::PulledServer::pull). None: it has ended.
    pub(crate) fn pull(&self, out: &mut Vec<Pulled>, most: usize, time: Duration) -> Option<usize> {
        self.outbox.take(out, most, time)
    }

    pub(crate) fn pollable(&self) -> Result<BorrowedFd<'_>> {
        self.outbox.pollable()
    }

    /// No more requests come; those that are there are pulled still.
    pub(crate) fn end(&self) {
        self.outbox.end();
    }

    /// Nobody pulls any more.
    pub(crate) fn close(&self) {
        drop(self.outbox.close());
    }
}

fn block_of(request: &Request<'_>) -> Vec<u8> {
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
    number(request.version().into());
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
