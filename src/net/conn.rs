//! What users see of a connection: the handler that they write, and its two ends.

use super::address::Address;
use super::limits::nanos;
use super::link::{Calls, Link};
#[cfg(feature = "capi")]
use super::output::Foreign;
use super::output::{End, Output, State, Unwritten};
use super::socket::SendEnd;
use crate::error::{Error, Result};
use crate::sys::clock;
use core::cell::Cell;
use core::fmt;
use core::time::Duration;
use std::io::{ErrorKind, IoSlice};
use std::sync::Arc;

/// What a connection does. One object per connection, made by the server's factory; its hooks never
/// run on two threads at once, and different connections run in parallel. They run on threads of the
/// pool, and should not block (or call [`promote_new_leader`](crate::promote_new_leader) before).
///
/// A hook that panics closes its connection with [`Reason::Panicked`], and is counted.
///
/// ```
/// use paceline::{Pool, net::{Conn, ConnHandler, Server}};
///
/// struct Echo;
///
/// impl ConnHandler for Echo {
///     fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
///         let _written = conn.write(bytes);
///         bytes.len() // all of it was taken
///     }
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let server = Server::builder(&pool).listen("127.0.0.1:0").serve(|_: &Conn| Echo)?;
/// println!("listening on {}", server.addresses()[0]);
/// # Ok(())
/// # }
/// ```
pub trait ConnHandler: Send + 'static {
    /// The connection is there. Called once, before all others but `close`.
    fn open(&mut self, conn: &Conn) -> Accept {
        let _ = conn;
        Accept::Yes
    }

    /// Bytes have arrived. Answers how many of them it has consumed, from the front: it should take
    /// all that it can. The rest is shown again, followed by more, when more has come (or when
    /// reading goes on after a pause or after output has drained). It grows up to `max_unconsumed`.
    ///
    /// Nothing is read, and this is not called, while the output is above its high mark ([`WriteStatus::AboveHighMark`]),
    /// after [`pause`](Conn::pause), and after [`close`](Conn::close).
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize;

    /// The peer sends no more; it may still read. Called once. The default does nothing.
    ///
    /// Afterwards the connection is closed by itself, when its [admitted](Conn::admit) requests have ended and
    /// everything is sent: so a handler that answers later admits the request. What was not consumed is
    /// dropped. With [`allow_half_open`](super::ServerBuilder::allow_half_open) nothing is closed by itself, and
    /// this or other code of yours calls [`close`](Conn::close).
    fn finished(&mut self, conn: &Conn) {
        let _ = conn;
    }

    /// The output was above its high mark, and has fallen to the low mark.
    fn writable(&mut self, conn: &Conn) {
        let _ = conn;
    }

    /// All bytes up to and including a [`write_tracked`](Conn::write_tracked) with this token have
    /// been given to the kernel. Not called for bytes that were lost with the connection.
    fn written(&mut self, conn: &Conn, token: u64) {
        let _ = (conn, token);
    }

    /// A time is over. Default: close at once.
    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        let _ = (conn, kind);
        TimeoutAction::Close
    }

    /// Another thread has called [`ConnRef::notify`], once or more since this was last called.
    /// Afterwards what was not consumed is shown again. What was written or published before the
    /// call can be seen here.
    fn notified(&mut self, conn: &Conn) {
        let _ = conn;
    }

    /// The server drains: no new connections come, and this one is closed as soon as all that has
    /// arrived is consumed, no admitted request is in work, and everything is sent.
    fn draining(&mut self, conn: &Conn) {
        let _ = conn;
    }

    /// The socket failed; `close` follows.
    fn error(&mut self, conn: &Conn, kind: ErrorKind) {
        let _ = (conn, kind);
    }

    /// The end, exactly once for every handler, and its last call. An outgoing connection that could
    /// not be made comes here without `open`.
    fn close(&mut self, conn: &Conn, reason: Reason) {
        let _ = (conn, reason);
    }
}

impl ConnHandler for Box<dyn ConnHandler> {
    fn open(&mut self, conn: &Conn) -> Accept {
        (**self).open(conn)
    }
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        (**self).data(conn, bytes)
    }
    fn finished(&mut self, conn: &Conn) {
        (**self).finished(conn);
    }
    fn writable(&mut self, conn: &Conn) {
        (**self).writable(conn);
    }
    fn written(&mut self, conn: &Conn, token: u64) {
        (**self).written(conn, token);
    }
    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        (**self).timeout(conn, kind)
    }
    fn notified(&mut self, conn: &Conn) {
        (**self).notified(conn);
    }
    fn draining(&mut self, conn: &Conn) {
        (**self).draining(conn);
    }
    fn error(&mut self, conn: &Conn, kind: ErrorKind) {
        (**self).error(conn, kind);
    }
    fn close(&mut self, conn: &Conn, reason: Reason) {
        (**self).close(conn, reason);
    }
}

/// Whether a connection is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is.
    Yes,
    /// It is not: it is sent this and closed, with [`Reason::Refused`].
    Refuse(Vec<u8>),
}

/// What became of bytes that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    /// All of them are with the kernel.
    Sent,
    /// Some wait in the queue. Inside a hook they always do: they are tried when it returns.
    Queued,
    /// The same, and the queue is above its high mark: nothing is read from this connection before
    /// it has fallen to the low mark. Whoever can should write no more until `writable`.
    AboveHighMark,
    /// None of them: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205 or
    /// 304). All that follows would be dropped, too, so there is nothing more to produce.
    Unwanted,
}

/// Which time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timeout {
    /// An outgoing connection was not made.
    Connect,
    /// Nothing was sent or received.
    Idle,
    /// A part of a message waits for its rest.
    Read,
    /// The peer takes nothing of what is queued for it.
    Stall,
    /// The handler's own: [`Conn::set_deadline`].
    Deadline,
}

/// What to do when a time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAction {
    /// Close at once, with [`Reason::TimedOut`].
    Close,
    /// Go on; the time begins anew, but a deadline is unset. Also the answer of a hook that has called
    /// [`close`](Conn::close) to send a last message.
    Keep,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The peer had finished, and everything was sent.
    Peer,
    /// [`close`](Conn::close), and everything was sent.
    Local,
    /// [`abort`](Conn::abort): what was queued is lost.
    Aborted,
    /// The handler did not want it.
    Refused,
    /// A time was over.
    TimedOut(Timeout),
    /// The socket failed.
    Failed(ErrorKind),
    /// More than `max_unconsumed` bytes were not consumed.
    Unconsumed,
    /// A hook panicked.
    Panicked,
    /// The server drained, and everything was sent.
    Drained,
    /// The drain's time was over, or the server was dropped: what was queued is lost.
    CutOff,
    /// The pool has shut down, or had no room for it.
    PoolEnded,
}

/// The name of a connection: the one of its handle in the pool. An id of a connection that has ended
/// is stale; it is not given out again before its place in the pool had 2^32 others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnId(u64);

impl ConnId {
    pub(super) fn new(token: u64) -> Self {
        Self(token)
    }

    /// As a number, for a host in another language.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`to_bits`](Self::to_bits). Any number will do: a wrong one is stale.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

const STALE: Error = Error::Stale { what: "connection" };

pub(crate) fn refused(link: &Link, unwritten: Unwritten) -> Error {
    let capacity = link.origin.limits.marks.max;
    match unwritten {
        Unwritten::Closed => STALE,
        Unwritten::Full => Error::Full { what: "bytes of a connection's output", capacity },
    }
}

/// A connection inside its handler's hooks. What is written here is gathered, and sent when the hook
/// returns, at 64 KiB, or by [`flush`](Self::flush).
pub struct Conn {
    pub(crate) link: Arc<Link>,
    /// Something was written or ended since the last flush.
    pub(crate) touched: Cell<bool>,
    /// When the handler wants to be called, on the monotonic clock; `u64::MAX`: never.
    pub(super) deadline: Cell<u64>,
    /// What a pulled connection's handler, notified, brings from its host.
    pub(super) answer: Cell<Option<Box<Answer>>>,
}

/// What a host has answered, for the connection to carry out.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Nothing,
    /// These bytes were not consumed.
    PutBack(Vec<u8>),
    /// It is not wanted: send this, and close.
    Refuse(Vec<u8>),
    End(Reason),
}

impl Conn {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            touched: Cell::new(false),
            deadline: Cell::new(u64::MAX),
            answer: Cell::new(None),
        }
    }

    /// Writes, in order, without waiting.
    ///
    /// # Errors
    /// [`Error::Stale`] after `close` or `shutdown_write`, and if the peer is gone. [`Error::Full`]
    /// if the queue would exceed its maximum; then none of it was taken. [`Error::Forked`] in a child
    /// that the hook has forked.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> Result<WriteStatus> {
        self.touched.set(true);
        match self.link.reach()?.gather(bytes) {
            Ok(false) => Ok(WriteStatus::Queued),
            Ok(true) => Ok(WriteStatus::AboveHighMark),
            Err(unwritten) => Err(refused(&self.link, unwritten)),
        }
    }

    /// Writes all pieces as one. Errors as [`write`](Self::write).
    ///
    /// # Errors
    /// As there.
    pub fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<WriteStatus> {
        self.touched.set(true);
        let outlet = self.link.reach()?;
        let (written, pressed) = outlet.change(|output| output.gather_vectored(pieces));
        written.map_err(|unwritten| refused(&self.link, unwritten))?;
        Ok(if pressed { WriteStatus::AboveHighMark } else { WriteStatus::Queued })
    }

    /// Writes without copying, for large buffers. It is tried at once, after what was gathered.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_owned(&self, bytes: Vec<u8>) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.link, None, |output| output.write_owned(bytes))
    }

    /// The same of bytes of somebody else's. What is left in `bytes` is not needed any more, or, if this
    /// fails, was not taken.
    #[cfg(feature = "capi")]
    pub(crate) fn write_foreign<F: Foreign>(&self, bytes: &mut Option<F>) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.link, None, |output| output.write_foreign(bytes))
    }

    /// Writes, and has [`written`](ConnHandler::written) called with `token` when all of it, and all
    /// before it, has been given to the kernel.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_tracked(&self, bytes: &[u8], token: u64) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.link, Some(token), |output| output.gather(bytes))
    }

    /// Sends what was gathered now, before a long computation for example.
    pub fn flush(&self) {
        self.touched.set(true);
        if let Ok(outlet) = self.link.reach() {
            outlet.lock().flush();
        }
    }

    /// After what is queued, tells the peer that no more is sent. Reading goes on.
    pub fn shutdown_write(&self) {
        self.end(End::Finish);
    }

    /// Closes after what is queued has been sent. Nothing more is read, and `data` is not called any
    /// more. The peer is told the end, and may take `linger` to answer with its own.
    pub fn close(&self) {
        self.end(End::Close);
    }

    fn end(&self, end: End) {
        self.touched.set(true);
        if let Ok(outlet) = self.link.reach() {
            outlet.lock().end(end);
        }
    }

    /// Closes at once. What is queued is lost; a TCP peer sees a reset.
    pub fn abort(&self) {
        self.link.call(Calls::ABORT);
    }

    /// Reads no more, and calls `data` no more, before [`ConnRef::resume`]. What the peer has sent is not
    /// lost meanwhile, and that it has ended, or was reset, is seen behind that, or by a write that fails.
    pub fn pause(&self) {
        self.link.pause();
    }

    /// Ends a pause. What was not consumed is shown again.
    pub fn resume(&self) {
        self.link.resume();
    }

    /// Has [`timeout`](ConnHandler::timeout) called with [`Timeout::Deadline`] when this time is
    /// over, in place of what was set before; None: not at all. A connection has one deadline, which
    /// is unset when it comes. To put it off costs no operation of a timer.
    pub fn set_deadline(&self, time: Option<Duration>) {
        let at = time.map_or(u64::MAX, |time| clock::now().saturating_add(nanos(time)));
        self.deadline.set(at);
    }

    /// Begins a request that is answered later, by any thread. It counts as in work until its admission is
    /// dropped. None: as many are in work as its listener allows; then the busy message has been written
    /// instead.
    ///
    /// While a request is in work, its connection does not count as idle, and neither a drain nor a peer that has
    /// finished closes it.
    pub fn admit(&self) -> Option<Admission> {
        admit(&self.link, |busy| self.write(busy))
    }

    /// For other threads, and for later.
    pub fn handle(&self) -> ConnRef {
        ConnRef { link: Arc::clone(&self.link) }
    }

    /// Its name.
    pub fn id(&self) -> ConnId {
        self.link.id()
    }

    /// The other end.
    pub fn peer(&self) -> &Address {
        &self.link.peer
    }

    /// This end. None: it is closed.
    pub fn local(&self) -> Option<Address> {
        local(&self.link)
    }

    /// Made by [`Server::connect`](super::Server::connect).
    pub fn is_outgoing(&self) -> bool {
        self.link.is_outgoing
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.link.reach().map_or(0, |outlet| outlet.lock().queued())
    }

    /// The server drains.
    pub fn is_draining(&self) -> bool {
        self.link.service.is_draining()
    }

    pub(super) fn flush_state(&self, unblock: bool) -> State {
        self.touched.set(false);
        self.link.outlet.flush(unblock)
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn").field("id", &self.id()).field("peer", self.peer()).finish()
    }
}

/// A connection from anywhere: any thread, and handlers of other connections. Clones are the same
/// connection. Holding one keeps some memory, but neither the connection nor its socket.
#[derive(Clone)]
pub struct ConnRef {
    pub(crate) link: Arc<Link>,
}

impl ConnRef {
    /// Writes, in order, without waiting: what the kernel takes is sent at once, the rest is queued.
    ///
    /// # Errors
    /// [`Error::Stale`] if the connection has ended, is to be closed, or its peer is gone. An answer that was
    /// not [admitted](Conn::admit) comes too late if meanwhile the connection's idle time is over, its peer has
    /// finished, or the server drains.
    /// [`Error::Full`] if the queue would exceed its maximum; then none of it was taken.
    /// [`Error::Forked`] in a forked child.
    pub fn write(&self, bytes: &[u8]) -> Result<WriteStatus> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Writes all pieces as one.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<WriteStatus> {
        write(&self.link, None, |output| output.write_through(pieces))
    }

    /// Writes; what is not sent at once is queued without being copied.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_owned(&self, bytes: Vec<u8>) -> Result<WriteStatus> {
        write(&self.link, None, |output| output.write_owned(bytes))
    }

    /// As [`Conn::write_foreign`].
    #[cfg(feature = "capi")]
    pub(crate) fn write_foreign<F: Foreign>(&self, bytes: &mut Option<F>) -> Result<WriteStatus> {
        write(&self.link, None, |output| output.write_foreign(bytes))
    }

    /// As [`Conn::write_tracked`]; the hook runs in the connection's handler.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_tracked(&self, bytes: &[u8], token: u64) -> Result<WriteStatus> {
        let pieces = [IoSlice::new(bytes)];
        write(&self.link, Some(token), |output| output.write_through(&pieces))
    }

    /// As [`Conn::shutdown_write`].
    ///
    /// # Errors
    /// [`Error::Stale`] if the connection has ended, [`Error::Forked`] in a forked child.
    pub fn shutdown_write(&self) -> Result<()> {
        self.end(End::Finish)
    }

    /// As [`Conn::close`].
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn close(&self) -> Result<()> {
        self.end(End::Close)
    }

    /// As [`Conn::abort`]. The handler's `close` follows on a thread of the pool.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn abort(&self) -> Result<()> {
        self.check_open()?;
        self.link.call(Calls::ABORT);
        Ok(())
    }

    /// As [`Conn::pause`]; a hook that runs now may still be given data once.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn pause(&self) -> Result<()> {
        self.check_open()?;
        self.link.pause();
        Ok(())
    }

    /// Ends a pause. What was not consumed is shown again.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn resume(&self) -> Result<()> {
        self.check_open()?;
        self.link.resume();
        Ok(())
    }

    /// Has [`notified`](ConnHandler::notified) called, in the connection's handler, soon. Several
    /// calls may become one; none is lost, unless the connection ends before.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn notify(&self) -> Result<()> {
        self.check_open()?;
        self.link.call(Calls::NOTIFY);
        Ok(())
    }

    /// As [`Conn::admit`], while an event of it is out: then no drain thinks that it is through.
    pub(crate) fn admit(&self) -> Option<Admission> {
        admit(&self.link, |busy| self.write(busy))
    }

    /// Its name.
    pub fn id(&self) -> ConnId {
        self.link.id()
    }

    /// The other end.
    pub fn peer(&self) -> &Address {
        &self.link.peer
    }

    /// This end. None: it is closed.
    pub fn local(&self) -> Option<Address> {
        local(&self.link)
    }

    /// Whether it has not ended. In a forked child it has.
    pub fn is_open(&self) -> bool {
        self.link.is_open()
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.link.reach().map_or(0, |outlet| outlet.lock().queued())
    }

    fn end(&self, end: End) -> Result<()> {
        self.check_open()?;
        if self.link.reach()?.end(end) {
            self.link.poke();
        }
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.link.reach()?.lock().wire().is_some() { Ok(()) } else { Err(STALE) }
    }
}

impl fmt::Debug for ConnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnRef").field("id", &self.id()).field("peer", self.peer()).finish()
    }
}

pub(crate) fn write(
    link: &Link,
    token: Option<u64>,
    write: impl FnOnce(&mut Output<SendEnd>) -> Result<(), Unwritten>,
) -> Result<WriteStatus> {
    let written = link.reach()?.write(token, write).map_err(|unwritten| {
        // Its own run is to see that, whoever has written.
        if link.outlet.lock().is_unturned() {
            link.call(Calls::OUTPUT);
        }
        refused(link, unwritten)
    })?;
    if written.poke {
        link.poke();
    }
    Ok(match written {
        _ if written.pressed => WriteStatus::AboveHighMark,
        _ if written.queued > 0 => WriteStatus::Queued,
        _ => WriteStatus::Sent,
    })
}

fn local(link: &Link) -> Option<Address> {
    super::socket::bound_to(link.reach().ok()?.lock().wire()?).ok()
}

/// See [`Conn::admit`].
fn admit(link: &Arc<Link>, write: impl FnOnce(&[u8]) -> Result<WriteStatus>) -> Option<Admission> {
    if link.origin.begin_request() {
        link.begin_work();
        return Some(Admission { link: Arc::clone(link), answered: false });
    }
    let busy = &link.origin.limits.busy;
    if !busy.is_empty() {
        // Where it has no room either, the peer learns by silence.
        let _ = write(busy);
    }
    None
}

/// A request in work. Dropping it ends the request; see [`Conn::admit`].
#[must_use = "dropping an Admission ends the request as aborted"]
pub struct Admission {
    link: Arc<Link>,
    answered: bool,
}

impl Admission {
    /// The request was answered, by what has been written before. If the connection has ended
    /// meanwhile it counts as aborted.
    pub fn answered(mut self) {
        self.answered = self.link.is_open();
    }

    /// The connection that it came from.
    pub fn conn(&self) -> ConnRef {
        ConnRef { link: Arc::clone(&self.link) }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.link.origin.end_request(self.answered);
        self.link.end_work();
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("conn", &self.link.id()).finish()
    }
}
