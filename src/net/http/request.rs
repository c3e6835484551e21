//! What a handler sees of a request.

use super::head::Head;
use crate::net::{Address, Conn, ConnId, ConnRef};
use core::fmt;
use matchit::Params;

/// A request, for as long as its handler runs.
pub struct Request<'a> {
    pub(super) head: &'a Head<'a, 'a>,
    /// None: the route's pattern has none.
    pub(super) params: Option<&'a Params<'a, 'a>>,
    pub(super) body: &'a [u8],
    pub(super) conn: &'a Conn,
}

impl<'a> Request<'a> {
    /// As it was sent: `GET`. Methods distinguish upper and lower case.
    pub fn method(&self) -> &'a str {
        self.head.method
    }

    /// As it was sent: `/hello/you?loud=1`, or `http://host/hello/you`.
    pub fn target(&self) -> &'a str {
        self.head.target
    }

    /// The target's path, which routes are matched with, as it was sent: percent-encoded, and with
    /// whatever dots it has.
    pub fn path(&self) -> &'a str {
        self.head.path
    }

    /// What follows the first question mark of the target. None: there is none.
    pub fn query(&self) -> Option<&'a str> {
        self.head.query
    }

    /// 0 or 1, of HTTP/1. A later minor version is served as 1 (RFC 9110, 2.5), and told as that.
    pub fn version(&self) -> u8 {
        self.head.is_1_1.into()
    }

    /// The value of the first header of this name, upper or lower case. None: there is none, or it is
    /// not UTF-8; see [`headers`](Self::headers).
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.head.fields.iter();
        let (_, value) = fields.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        core::str::from_utf8(value).ok()
    }

    /// All headers, in order, with the white space around their values removed.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.head.fields.iter()
    }

    /// The part of the path that stands for this name in the route's pattern, as it was sent.
    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.params?.get(name)
    }

    /// All such parts, in order.
    pub fn params(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.params.into_iter().flat_map(Params::iter)
    }

    /// The whole body. Empty where it is streamed.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The protocol that it asks to upgrade to.
    pub fn upgrade(&self) -> Option<&'a str> {
        self.head.upgrade
    }

    /// The name of its connection.
    pub fn id(&self) -> ConnId {
        self.conn.id()
    }

    /// The other end.
    pub fn peer(&self) -> &'a Address {
        self.conn.peer()
    }

    /// Its connection, for later.
    pub fn conn(&self) -> ConnRef {
        self.conn.handle()
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut request = f.debug_struct("Request");
        request.field("method", &self.method()).field("target", &self.target());
        request.finish_non_exhaustive()
    }
}

/// What takes the body of a request as it comes. Made by the factory of a route
/// ([`route_streaming`](super::HttpBuilder::route_streaming)), which has been given the response.
pub trait RequestBody: Send + 'static {
    /// A part of the body. Answers how many bytes of it were taken, from the front. The rest is shown
    /// again after [`ConnRef::resume`]; until then nothing is read from the connection.
    fn data(&mut self, bytes: &[u8]) -> usize;

    /// The body was whole. Without this, dropped: it will never be.
    fn end(self: Box<Self>);
}

impl RequestBody for Box<dyn RequestBody> {
    fn data(&mut self, bytes: &[u8]) -> usize {
        (**self).data(bytes)
    }
    fn end(self: Box<Self>) {
        (*self).end();
    }
}

/// None drops what comes: the request has been answered already.
impl<B: RequestBody> RequestBody for Option<B> {
    fn data(&mut self, bytes: &[u8]) -> usize {
        self.as_mut().map_or(bytes.len(), |body| body.data(bytes))
    }
    fn end(self: Box<Self>) {
        if let Some(body) = *self {
            Box::new(body).end();
        }
    }
}
