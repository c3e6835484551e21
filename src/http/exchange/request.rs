//! What a handler sees of a request.

use crate::http::message::form;
use crate::http::message::head::Head;
use crate::net::{Address, Conn, ConnId, ConnRef};
use core::fmt;
use matchit::Params;
use std::borrow::Cow;

/// The parts of a path that stand for names in a pattern.
pub(crate) struct PathParams<'r, 'p> {
    found: Params<'r, 'p>,
    /// What they are decoded, in order. Empty if the path is not encoded.
    decoded: Vec<String>,
}

impl<'r, 'p> PathParams<'r, 'p> {
    /// None: one of them is no text.
    #[inline]
    pub(crate) fn decode(found: Params<'r, 'p>, path: &str) -> Option<Self> {
        let decoded = match path.contains('%') {
            true => found.iter().map(|(_, value)| decoded(value)).collect::<Option<_>>()?,
            false => Vec::new(),
        };
        Some(Self { found, decoded })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut decoded = self.decoded.iter();
        let pair = move |(name, value)| (name, decoded.next().map_or(value, String::as_str));
        self.found.iter().map(pair)
    }
}

/// With what is percent-encoded decoded. None: digits are missing, it is not UTF-8, or it has a NUL, which
/// would end the text for many that it is handed on to.
#[cold]
fn decoded(text: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [byte, behind @ ..] = rest {
        (*byte != b'%').then(|| bytes.push(*byte));
        rest = behind;
        if *byte == b'%' {
            let [high, low, behind @ ..] = rest else { return None };
            bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// A request, for as long as its handler runs.
///
/// ```
/// use paceline::{Pool, http::{Http, Request, Response}};
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .route("GET", "/hello/{name}", |request: &Request<'_>, response: Response| {
///         let name = request.param("name").unwrap_or_default();
///         match request.query_pairs().find(|(key, _)| key == "polite") {
///             Some(_) => response.text(format!("Good day to you, {name}.\n")),
///             None => response.text(format!("Hello, {name}!\n")),
///         }
///     })
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
pub struct Request<'a> {
    pub(crate) head: &'a Head<'a, 'a>,
    /// None: the route's pattern has none.
    pub(crate) params: Option<&'a PathParams<'a, 'a>>,
    pub(crate) body: &'a [u8],
    pub(crate) conn: &'a Conn,
    /// That of the route.
    pub(crate) pattern: &'a Option<String>,
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

    /// The names and values of the query, decoded as a browser's form encodes them
    /// (`application/x-www-form-urlencoded`): `+` is a space, and what is percent-encoded is decoded. A pair
    /// without `=` has an empty value. What is not UTF-8 is replaced by U+FFFD. There are no more than the
    /// target has room for ([`max_target`](crate::http::HttpBuilder::max_target)).
    ///
    /// ```no_run
    /// # use paceline::http::{Request, Response};
    /// # let handler =
    /// |request: &Request, response: Response| {
    ///     let page = request.query_pairs().find(|(name, _)| name == "page");
    ///     response.text(page.map_or("1".into(), |(_, page)| page))
    /// }
    /// # ;
    /// ```
    pub fn query_pairs(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        form::pairs(self.query().unwrap_or_default())
    }

    /// The pattern of the route that it came by, as it was set: `/hello/{name}`. None: no route has taken it,
    /// and it is a [fallback](crate::http::HttpBuilder::fallback)'s, or a middleware sees it before that.
    pub fn pattern(&self) -> Option<&'a str> {
        self.pattern.as_deref()
    }

    /// The body as a value, from JSON. The `Content-Type` is not looked at.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) says what is wrong with the body, and where: answer with 400.
    #[cfg(feature = "http")]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> crate::Result<T> {
        serde_json::from_slice(self.body()).map_err(|error| {
            let value = format!("{} bytes ({error})", self.body().len());
            crate::Error::invalid("body", value, "JSON of what is expected")
        })
    }

    /// 0 or 1, of HTTP/1. A later minor version is served as 1 (RFC 9110, 2.5), and counts as that.
    pub fn version(&self) -> u8 {
        self.head.is_1_1.into()
    }

    /// The value of the first header of this name, upper or lower case. None: there is none, or it is
    /// not UTF-8; see [`headers`](Self::headers).
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.head.pairs();
        let (_, value) = fields.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        core::str::from_utf8(value).ok()
    }

    /// All headers, in order, with the white space around their values removed.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.head.pairs()
    }

    /// The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
    /// was encoded stays in its part, since routes are matched with the path as it was sent, which is
    /// [`path`](Self::path). A request with a part that cannot be decoded (to UTF-8 without NUL) has no
    /// handler: it is answered with 400.
    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.params().find(|(of, _)| *of == name).map(|(_, value)| value)
    }

    /// All such parts, in order.
    pub fn params(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.params.into_iter().flat_map(PathParams::iter)
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
/// ([`route_streaming`](crate::http::HttpBuilder::route_streaming)), which has been given the response.
pub trait RequestBody: Send + 'static {
    /// A part of the body. Answers how many bytes of it were taken, from the front. The rest is shown
    /// again after [`ConnRef::resume`], which may come before this has returned; until the rest was taken, nothing is
    /// read from the connection.
    fn data(&mut self, bytes: &[u8]) -> usize;

    /// The body was whole. Without this, dropped: it will never be.
    fn end(self: Box<Self>);

    /// Whether the body is wanted at once; asked once, when the factory has returned. False: a peer that
    /// waits for `100 Continue` before it sends its body is not told, and the body is not waited for; the
    /// connection rests until the answer, or until [`ConnRef::resume`]. Default: true.
    fn is_wanted(&self) -> bool {
        true
    }
}

impl RequestBody for Box<dyn RequestBody> {
    fn data(&mut self, bytes: &[u8]) -> usize {
        (**self).data(bytes)
    }
    fn end(self: Box<Self>) {
        (*self).end();
    }
    fn is_wanted(&self) -> bool {
        (**self).is_wanted()
    }
}

/// None drops what comes: the request has been answered already, or will be without its body.
impl<B: RequestBody> RequestBody for Option<B> {
    fn data(&mut self, bytes: &[u8]) -> usize {
        self.as_mut().map_or(bytes.len(), |body| body.data(bytes))
    }
    fn end(self: Box<Self>) {
        if let Some(body) = *self {
            Box::new(body).end();
        }
    }
    fn is_wanted(&self) -> bool {
        self.as_ref().is_some_and(B::is_wanted)
    }
}
