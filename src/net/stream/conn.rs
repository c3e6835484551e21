//! What users see of a connection: the handler that they write, and its two ends.

use super::connection::Connection;
use super::output_buffer::Foreign;
use super::output_buffer::{End, OutputBuffer, OutputState, Unwritten};
use super::socket::{self, SendHalf};
use super::status::{Accept, ConnId, Reason, Timeout, TimeoutAction, WriteStatus};
use crate::error::{Error, Result};
use crate::net::address::Address;
use crate::net::bounds::nanos;
use crate::net::calls::Calls;
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
    /// dropped. With [`allow_half_open`](crate::net::ServerBuilder::allow_half_open) nothing is closed by itself, and
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

const STALE: Error = Error::Stale { what: "connection" };

pub(crate) fn refused(connection: &Connection, unwritten: Unwritten) -> Error {
    let capacity = connection.origin.limits.marks.max;
    match unwritten {
        Unwritten::Closed => STALE,
        Unwritten::Full => Error::Full { what: "bytes of a connection's output", capacity },
    }
}

/// A connection inside its handler's hooks. What is written here is gathered, and sent when the hook
/// returns, at 64 KiB, or by [`flush`](Self::flush).
pub struct Conn {
    pub(crate) connection: Arc<Connection>,
    /// Something was written or ended since the last flush.
    pub(crate) touched: Cell<bool>,
    /// When the handler wants to be called, on the monotonic clock; `u64::MAX`: never.
    pub(crate) deadline: Cell<u64>,
    /// Nothing is read before a request is answered, and what the peer has sent behind it is worth nothing if the
    /// peer has gone.
    pub(crate) answers_first: Cell<bool>,
    /// While it is idle, it makes room for others when few places are left.
    pub(crate) gives_way: Cell<bool>,
    /// What the handler of a hosted connection, notified, brings from whoever has completed an event.
    pub(crate) answer: Cell<Option<Box<Answer>>>,
}

/// What a host has answered, for the connection to carry out.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Nothing,
    /// These bytes were not consumed.
    PutBack(Vec<u8>),
    /// It is not wanted: send this, and close.
    Refuse(Vec<u8>),
    End(Reason),
}

impl Conn {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            touched: Cell::new(false),
            deadline: Cell::new(u64::MAX),
            answers_first: Cell::new(false),
            gives_way: Cell::new(false),
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
        match self.connection.reach()?.gather(bytes) {
            Ok(false) => Ok(WriteStatus::Queued),
            Ok(true) => Ok(WriteStatus::AboveHighMark),
            Err(unwritten) => Err(refused(&self.connection, unwritten)),
        }
    }

    /// Writes all pieces as one. Errors as [`write`](Self::write).
    ///
    /// # Errors
    /// As there.
    pub fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<WriteStatus> {
        self.touched.set(true);
        let output = self.connection.reach()?;
        let (written, pressed) = output.change(|output| output.gather_vectored(pieces));
        written.map_err(|unwritten| refused(&self.connection, unwritten))?;
        Ok(if pressed { WriteStatus::AboveHighMark } else { WriteStatus::Queued })
    }

    /// Writes without copying, for large buffers. It is tried at once, after what was gathered.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_owned(&self, bytes: Vec<u8>) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.connection, None, |output| output.write_owned(bytes))
    }

    /// The same of bytes of somebody else's. What is left in `bytes` is not needed any more, or, if this
    /// fails, was not taken.
    pub(crate) fn write_foreign<F: Foreign>(&self, bytes: &mut Option<F>) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.connection, None, |output| output.write_foreign(bytes))
    }

    /// Writes, and has [`written`](ConnHandler::written) called with `token` when all of it, and all
    /// before it, has been given to the kernel.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_tracked(&self, bytes: &[u8], token: u64) -> Result<WriteStatus> {
        self.touched.set(true);
        write(&self.connection, Some(token), |output| output.gather(bytes))
    }

    /// Sends what was gathered now, before a long computation for example.
    pub fn flush(&self) {
        self.touched.set(true);
        if let Ok(output) = self.connection.reach() {
            output.lock().flush();
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
        if let Ok(output) = self.connection.reach() {
            output.lock().end(end);
        }
    }

    /// Closes at once. What is queued is lost; a TCP peer sees a reset.
    pub fn abort(&self) {
        self.connection.call(Calls::ABORT);
    }

    /// Reads no more, and calls `data` no more, before [`resume`](Self::resume) or [`ConnRef::resume`]. What the peer has
    /// sent is not lost meanwhile, and that it has ended, or was reset, is seen behind that, or by a write that fails.
    ///
    /// A resume that comes while the hook runs ends this pause, whichever of the two comes first. So whoever takes what
    /// the hook hands over may resume at once.
    pub fn pause(&self) {
        self.connection.output.calls.pause();
    }

    /// For how long it may be idle, in nanoseconds.
    pub(crate) fn idle_limit(&self) -> u64 {
        let origin = &self.connection.origin;
        if self.gives_way.get() { origin.idle_that_gives_way() } else { origin.limits.idle }
    }

    /// Ends a pause, when the hook has returned. What was not consumed is shown again, and nothing is read before that.
    /// A resume that comes before `data` is called does not end a pause that `data` makes.
    pub fn resume(&self) {
        self.connection.call(Calls::RESUME);
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
        admit(&self.connection, |busy| self.write(busy))
    }

    /// For other threads, and for later.
    pub fn handle(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.connection) }
    }

    /// Its name.
    pub fn id(&self) -> ConnId {
        self.connection.id()
    }

    /// The other end.
    pub fn peer(&self) -> &Address {
        &self.connection.peer
    }

    /// This end. None: it is closed.
    pub fn local(&self) -> Option<Address> {
        local(&self.connection)
    }

    /// Made by [`Server::connect`](crate::net::Server::connect).
    pub fn is_outgoing(&self) -> bool {
        self.connection.is_outgoing
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.connection.reach().map_or(0, |output| output.lock().queued())
    }

    /// The server drains.
    pub fn is_draining(&self) -> bool {
        self.connection.service.is_draining()
    }

    pub(crate) fn flush_state(&self, unblock: bool) -> OutputState {
        self.touched.set(false);
        self.connection.output.flush(unblock)
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
    pub(crate) connection: Arc<Connection>,
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
        write(&self.connection, None, |output| output.write_through(pieces))
    }

    /// Writes; what is not sent at once is queued without being copied.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_owned(&self, bytes: Vec<u8>) -> Result<WriteStatus> {
        write(&self.connection, None, |output| output.write_owned(bytes))
    }

    /// As [`Conn::write_foreign`].
    pub(crate) fn write_foreign<F: Foreign>(&self, bytes: &mut Option<F>) -> Result<WriteStatus> {
        write(&self.connection, None, |output| output.write_foreign(bytes))
    }

    /// As [`Conn::write_tracked`]; the hook runs in the connection's handler.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_tracked(&self, bytes: &[u8], token: u64) -> Result<WriteStatus> {
        let pieces = [IoSlice::new(bytes)];
        write(&self.connection, Some(token), |output| output.write_through(&pieces))
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
        self.connection.call(Calls::ABORT);
        Ok(())
    }

    /// Reads no more, and calls `data` no more, before [`resume`](Self::resume); a run that is on may still give it data
    /// once. Of these two calls, by all threads, the last one counts: whoever hands something over to a thread that
    /// resumes pauses before. (A hook calls [`Conn::pause`], which may come behind the resume.)
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn pause(&self) -> Result<()> {
        self.check_open()?;
        self.connection.output.calls.pause_from_outside();
        Ok(())
    }

    /// Ends a pause, also one that a hook, which runs now, is about to make. What was not consumed is shown again, and
    /// nothing is read before that.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn resume(&self) -> Result<()> {
        self.check_open()?;
        self.connection.call(Calls::RESUME);
        Ok(())
    }

    /// Has [`notified`](ConnHandler::notified) called, in the connection's handler, soon. Several
    /// calls may become one; none is lost, unless the connection ends before.
    ///
    /// # Errors
    /// As [`shutdown_write`](Self::shutdown_write).
    pub fn notify(&self) -> Result<()> {
        self.check_open()?;
        self.connection.call(Calls::NOTIFY);
        Ok(())
    }

    /// As [`Conn::admit`], while an event of it is out: then no drain thinks that it is through.
    pub(crate) fn admit(&self) -> Option<Admission> {
        admit(&self.connection, |busy| self.write(busy))
    }

    /// Its name.
    pub fn id(&self) -> ConnId {
        self.connection.id()
    }

    /// The other end.
    pub fn peer(&self) -> &Address {
        &self.connection.peer
    }

    /// This end. None: it is closed.
    pub fn local(&self) -> Option<Address> {
        local(&self.connection)
    }

    /// Whether it has not ended. In a forked child it has.
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.connection.reach().map_or(0, |output| output.lock().queued())
    }

    /// About how much the kernel keeps for its peer from now on; more waits here, and is among what is
    /// [queued](Self::queued).
    pub(crate) fn set_send_buffer(&self, bytes: usize) {
        if let Ok(output) = self.connection.reach() {
            output.lock().wire().inspect(|wire| wire.set_send_buffer(bytes));
        }
    }

    fn end(&self, end: End) -> Result<()> {
        self.check_open()?;
        if self.connection.reach()?.end(end) {
            self.connection.poke();
        }
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.connection.reach()?.lock().wire().is_some() { Ok(()) } else { Err(STALE) }
    }
}

impl fmt::Debug for ConnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnRef").field("id", &self.id()).field("peer", self.peer()).finish()
    }
}

pub(crate) fn write(
    connection: &Connection,
    token: Option<u64>,
    write: impl FnOnce(&mut OutputBuffer<SendHalf>) -> Result<(), Unwritten>,
) -> Result<WriteStatus> {
    let written = connection.reach()?.write(token, write).map_err(|unwritten| {
        // Its own run is to see that, whoever has written.
        if connection.output.lock().is_unturned() {
            connection.call(Calls::OUTPUT);
        }
        refused(connection, unwritten)
    })?;
    if written.poke {
        connection.poke();
    }
    Ok(match written {
        _ if written.pressed => WriteStatus::AboveHighMark,
        _ if written.queued > 0 => WriteStatus::Queued,
        _ => WriteStatus::Sent,
    })
}

fn local(connection: &Connection) -> Option<Address> {
    socket::bound_to(connection.reach().ok()?.lock().wire()?).ok()
}

/// See [`Conn::admit`].
fn admit(
    connection: &Arc<Connection>,
    write: impl FnOnce(&[u8]) -> Result<WriteStatus>,
) -> Option<Admission> {
    if connection.origin.begin_request() {
        connection.begin_work();
        return Some(Admission { connection: Arc::clone(connection), answered: false });
    }
    let busy = &connection.origin.limits.busy;
    if !busy.is_empty() {
        // Where it has no room either, the peer learns by silence.
        let _ = write(busy);
    }
    None
}

/// A request in work. Dropping it ends the request; see [`Conn::admit`].
#[must_use = "dropping an Admission ends the request as aborted"]
pub struct Admission {
    connection: Arc<Connection>,
    answered: bool,
}

impl Admission {
    /// The request was answered, by what has been written before. If the connection has ended
    /// meanwhile it counts as aborted.
    pub fn answered(mut self) {
        self.answered = self.connection.is_open();
    }

    /// The connection that it came from.
    pub fn conn(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.connection) }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.connection.origin.end_request(self.answered);
        self.connection.end_work();
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("conn", &self.connection.id()).finish()
    }
}
