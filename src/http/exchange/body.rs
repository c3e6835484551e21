//! The body of an answer that is written piece by piece.

use super::{Exchange, Outcome, Pieces};
use crate::error::{Error, Result};
use crate::http::message::answer_head::{Framing, chunk_line};
use crate::net::{ConnRef, WriteStatus};
use core::fmt;
use std::io::IoSlice;
use std::sync::Arc;

/// The body of an answer, written piece by piece by whoever holds it.
///
/// Dropped before its end, it can never be whole: the connection is reset, so that the peer can tell.
///
/// ```
/// use paceline::{Pool, http::{Http, Request, Response}};
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .route("GET", "/numbers", |_: &Request<'_>, response: Response| {
///         let mut left = 1_000_000;
///         // Called again whenever there is room for more: a slow reader costs no memory.
///         response.stream(None)?.pump(move |body| {
///             left -= 1;
///             body.write(format!("{left}\n").as_bytes())?;
///             Ok(left > 0)
///         });
///         Ok::<_, paceline::Error>(())
///     })
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a Body before its end resets the connection"]
pub struct Body {
    /// None: finished.
    exchange: Option<Arc<Exchange>>,
    /// What may still be written.
    rest: Framing,
    answered: Outcome,
}

impl Body {
    pub(crate) fn new(exchange: Option<Arc<Exchange>>, rest: Framing, answered: Outcome) -> Self {
        Self { exchange, rest, answered }
    }

    /// Whether its client has gone, as [`Response::is_client_gone`](crate::http::Response::is_client_gone): for a body that
    /// has nothing to write for long. (A write to a client that has gone fails, but not always the first one.)
    pub fn is_client_gone(&self) -> bool {
        self.exchange().is_client_gone()
    }

    /// Writes, in order, without waiting. What the peer does not take is queued; with
    /// [`WriteStatus::AboveHighMark`] whoever can should write no more until the output has fallen
    /// ([`on_writable`](Self::on_writable)). [`WriteStatus::Unwanted`]: the peer gets no body (an answer to HEAD,
    /// or with the status 204, 205 or 304), and the bytes were dropped. No mark paces such a body:
    /// [`finish`](Self::finish) it. To write no bytes tells this before the first ones are produced.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more bytes than were announced, [`Error::Full`] if the queue would exceed
    /// its maximum: then nothing of it was taken. [`Error::Stale`] if the connection has ended,
    /// [`Error::Forked`] in a forked child.
    pub fn write(&mut self, bytes: &[u8]) -> Result<WriteStatus> {
        let exchange = self.exchange.as_ref().expect("finishing a body consumes it");
        let piece = IoSlice::new(bytes);
        let wrote = match &mut self.rest {
            Framing::Length(left) => {
                let Some(rest) = left.checked_sub(bytes.len() as u64) else {
                    let allowed = format!("up to the {left} bytes that are left");
                    return Err(Error::invalid("bytes of a body", bytes.len(), allowed));
                };
                exchange.write(Pieces::Borrowed(&[piece])).inspect(|_| *left = rest)
            }
            Framing::Chunked if bytes.is_empty() => exchange.write(Pieces::Borrowed(&[])),
            Framing::Chunked => {
                let mut line = [0; 18];
                let line = IoSlice::new(chunk_line(bytes.len(), &mut line));
                exchange.write(Pieces::Borrowed(&[line, piece, IoSlice::new(b"\r\n")]))
            }
            Framing::Close => exchange.write(Pieces::Borrowed(&[piece])),
            Framing::None => return Ok(WriteStatus::Unwanted),
        };
        wrote.inspect(|_| exchange.note_bytes(bytes.len()))
    }

    /// Ends the body. The connection's next request may come.
    ///
    /// # Errors
    /// [`Error::Invalid`] if fewer bytes were written than were announced: then the connection is
    /// reset. Otherwise as [`write`](Self::write).
    pub fn finish(mut self) -> Result<()> {
        if let Framing::Length(left @ 1..) = self.rest {
            return Err(Error::invalid("bytes left of a body", left, "0 at its end"));
        }
        if self.rest == Framing::Chunked {
            let last = [IoSlice::new(b"0\r\n\r\n")];
            self.exchange().write(Pieces::Borrowed(&last))?;
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(self.answered);
        }
        Ok(())
    }

    /// What writes it has failed: the connection is reset, as when it is dropped, and the failure is
    /// counted ([`HttpStats::panics`](crate::http::HttpStats::panics)).
    pub fn fail(self) {
        self.exchange().count_failure();
    }

    /// Nothing is left that could be sent.
    fn is_over(&self) -> bool {
        matches!(self.rest, Framing::None | Framing::Length(0))
    }

    /// The output is above its high mark, or has not fallen to the low one yet.
    pub fn is_pressed(&self) -> bool {
        self.exchange().connection.output.is_pressed()
    }

    /// Has `hook` called, in a run of the connection, each time that the output has fallen to its low
    /// mark. If the output is not above its high mark now, the hook is called once without delay. It replaces the one
    /// before. It is dropped when the
    /// body is finished or the connection has ended. One that panics ends the connection. In a forked
    /// child it is dropped at once.
    pub fn on_writable(&self, hook: impl FnMut() + Send + 'static) {
        self.exchange().set_writable(Box::new(hook));
    }

    /// Has `produce` write the body, in runs of the connection, as fast as the peer takes it and no
    /// faster. It is called again as long as it says true and there is something left to be sent; with
    /// false the body is finished. So it is not called at all for a body that is not sent (an answer to
    /// HEAD, or with the status 204, 205 or 304), and not again when as many bytes are written as were
    /// announced. If it fails, or panics, the connection is reset.
    ///
    /// One that says true without having written anything is called again at once: what has to wait for
    /// its data should keep the body instead, and write when there are some.
    pub fn pump(self, produce: impl FnMut(&mut Body) -> Result<bool> + Send + 'static) {
        let exchange = Arc::clone(self.exchange());
        let mut pump = Pump { body: Some(self), produce };
        exchange.set_writable(Box::new(move || pump.run()));
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.exchange().connection.is_forked()
    }

    /// Whether code of its request runs on this thread.
    pub(crate) fn is_inside(&self) -> bool {
        self.exchange().is_inside()
    }

    /// The connection that it goes to. To write there would break the protocol.
    pub fn conn(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.exchange().connection) }
    }

    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        self.exchange.as_ref().expect("finishing a body consumes it")
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(Outcome::Unfinished);
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("rest", &self.rest).finish_non_exhaustive()
    }
}

/// Calls of a producer in one run, before others have their turn.
const PUMPED: usize = 16;

struct Pump<F> {
    body: Option<Body>,
    produce: F,
}

impl<F: FnMut(&mut Body) -> Result<bool>> Pump<F> {
    fn run(&mut self) {
        for _ in 0..PUMPED {
            let Some(body) = &mut self.body else { return };
            // What is not sent is not produced: nothing would pace it.
            let goes_on = if body.is_over() { Ok(false) } else { (self.produce)(body) };
            match goes_on {
                Ok(true) if body.is_pressed() => return,
                Ok(true) => {}
                Ok(false) => {
                    // If it does not succeed the connection is reset, and nobody is left to be told.
                    let _ = self.body.take().map(Body::finish);
                    return;
                }
                Err(_) => {
                    self.body = None;
                    return;
                }
            }
        }
        if let Some(body) = &self.body {
            body.exchange().call_soon();
        }
    }
}
