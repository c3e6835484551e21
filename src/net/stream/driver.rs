//! The activity of a connection: what it does when it runs.
//!
//! Only the thread that has claimed the connection's slot touches what is in this file; whatever other
//! threads want arrives as calls and as bytes in the output ([`Connection`]).
//!
//! ```text
//!  CONNECTING ──edge──► NEW ──open: accept──► OPEN ──close, flushed──► LINGERING ──┐
//!      │                 └────open: refuse──────┤  (told the peer)                  ├──► ended: Flow::Done
//!      └── failed, timeout ─────────────────────┴── failed, timeout, abort … ───────┘
//! ```
//!
//! Each run is a flat list of steps. A step that ends the connection answers with the [`Reason`] as
//! its error, so that there is one place where connections end.
//!
//! # Invariants
//!
//! 1. `readable` is set by an edge and cleared only by EAGAIN, a short read, or the end: an edge that
//!    comes while reading is held back (output pressed, pause) is kept here.
//! 2. Before a run returns [`Flow::Wait`], what its hooks have gathered was flushed.
//! 3. A *plain* run begins and ends with nothing that waits, nothing that was called for and no time but
//!    those that only move away from the alarm. It is what a connection does most of its life, so it is
//!    written out in one piece, and takes the steps of the others as soon as it meets anything else.
//! 4. `close` is called once for a handler: by [`Driver::end`], which takes the handler out.

use super::alarm::{Alarm, NEVER};
use super::conn::{Answer, Conn, ConnHandler};
use super::connection::Connection;
use super::filter::FilterRead;
use super::input::{Input, ReadBuffer};
use super::output_buffer::{End, OutputBuffer, OutputState};
use super::service::Permit;
use super::socket;
use super::status::{Accept, Phase, Reason, Timeout, TimeoutAction};
use crate::contain::contain;
use crate::error::Result;
use crate::net::calls::Calls;
use crate::pool::{Activity, Flow, HandleOptions, Key, Pool, TurnClock};
use crate::source::Ready;
use crate::sync::store_load_barrier;
use crate::sys::clock;
use crate::trace::Name;
use core::any::Any;
use socket2::Socket;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Reads in one run, before others have their turn, unless the thread's turn is over earlier.
const READS: usize = 16;

/// The activity in the slot. What each run looks at comes first.
#[repr(C)]
pub(crate) struct Driver {
    conn: Conn,
    /// None before `open`, and after the end.
    handler: Option<Box<dyn ConnHandler>>,
    input: Input,
    /// None: closed.
    socket: Option<Socket>,
    phase: Phase,
    readable: bool,
    /// The peer has finished or the socket has failed, and reading will say so.
    ending: bool,
    /// Reading has said so.
    peer_done: bool,
    closing: bool,
    /// Bytes that come are turned by a filter, which is with the output.
    filtered: bool,
    /// The filter has seen that the peer has finished, which is reported when the handler may be shown what came before.
    ends_inside: bool,
    draining: bool,
    /// What was not consumed is to be shown again, though nothing has come.
    again: bool,
    /// The handler's `notified` is to be called.
    notified: bool,
    /// Something was queued at the last look: an edge for writing matters. (Data that arrive bring one
    /// along each time.) Another thread whose write leaves something in an empty queue calls.
    unsent: bool,
    /// The last run has left nothing behind: all of the above is as it is between two requests.
    plain: bool,
    broken: Option<ErrorKind>,
    ended: bool,
    /// How it ends if nothing else happens; None: as usual.
    reason: Option<Reason>,
    /// When the last byte came or went. Of a connection that is not open: when connecting or lingering began.
    active: u64,
    /// When the part of a message that waits for its rest began.
    partial: u64,
    alarm: Alarm,
    /// Since when nothing that is queued has moved, as the output said last; 0 while nothing is.
    still_since: u64,
    /// The same, or when the handler was last called for it.
    still: u64,
    /// Bytes that the output had accepted when that was last looked at.
    accepted: u64,
}

// What malloc(3) gives in 144 bytes: an idle connection is this, its `Connection`, its slot and its handler.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Driver>() <= 136);

impl Driver {
    /// An accepted connection; its handler is made when it first runs.
    pub(crate) fn accepted(
        connection: Arc<Connection>,
        socket: Socket,
        permit: Permit<'_>,
    ) -> Self {
        Self::new(connection, socket, permit, None, Phase::New)
    }

    /// A connection that was begun.
    pub(crate) fn outgoing(
        connection: Arc<Connection>,
        socket: Socket,
        permit: Permit<'_>,
        handler: Box<dyn ConnHandler>,
    ) -> Self {
        Self::new(connection, socket, permit, Some(handler), Phase::Connecting)
    }

    fn new(
        connection: Arc<Connection>,
        socket: Socket,
        permit: Permit<'_>,
        handler: Option<Box<dyn ConnHandler>>,
        phase: Phase,
    ) -> Self {
        let now = clock::now();
        permit.keep();
        Self {
            conn: Conn::new(connection),
            handler,
            input: Input::default(),
            socket: Some(socket),
            phase,
            readable: false,
            ending: false,
            peer_done: false,
            closing: false,
            filtered: false,
            ends_inside: false,
            draining: false,
            again: false,
            notified: false,
            unsent: true,
            plain: false,
            broken: None,
            ended: false,
            reason: None,
            active: now,
            partial: now,
            alarm: Alarm::NONE,
            still_since: 0,
            still: 0,
            accepted: 0,
        }
    }

    /// Gives it to the pool. `connection` is its own.
    pub(crate) fn register(self, pool: &Pool, connection: &Connection) -> Result<()> {
        let make = |driver| Box::new(driver) as Box<_>;
        pool.register_activity(self, HandleOptions::new(), false, make)?.detach();
        if connection.is_outgoing {
            // So that the time for connecting runs.
            connection.call(Calls::OUTPUT);
        }
        // Against *drain, then call all that are in the registry*.
        store_load_barrier();
        if connection.service.is_draining() {
            connection.call(Calls::DRAIN);
        }
        if connection.service.is_cut() {
            connection.call(Calls::CUT);
        }
        if connection.output.calls.is_called() {
            // Another thread found it in the registry, and poked a slot that was not published yet.
            connection.poke();
        }
        Ok(())
    }

    #[inline]
    fn socket(&self) -> &Socket {
        self.socket.as_ref().expect("open until the connection is dropped")
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.conn.connection
    }

    // --- a run -----------------------------------------------------------------------------------

    #[inline]
    fn turn(&mut self, ready: Ready) -> Result<Flow, Reason> {
        let is_plain = core::mem::take(&mut self.plain) && ready.is_only_room_and_data();
        if is_plain && !self.connection().output.calls.is_called() {
            self.turn_plainly()
        } else {
            self.turn_fully(ready)
        }
    }

    /// The run in which what has come is one short read, and is consumed and answered. Whatever else
    /// turns up in it is left to the steps of the other.
    #[inline]
    fn turn_plainly(&mut self) -> Result<Flow, Reason> {
        self.readable = true;
        if !self.may_deliver() {
            return self.end_turn(Calls::NONE);
        }
        let mut buffer = ReadBuffer::lend();
        let bytes = buffer.bytes();
        let received = socket::receive(self.socket(), bytes);
        let count = match received {
            Ok(count) if 0 < count && count < bytes.len() => count,
            other => {
                self.note_received(other, bytes)?;
                drop(buffer);
                return self.end_turn(Calls::NONE);
            }
        };
        self.readable = false;
        self.show(&bytes[..count])?;
        let sent = !self.conn.touched.get() || self.connection().output.send_plainly();
        if sent && self.input.is_empty() && self.conn.deadline.get() == NEVER {
            self.conn.touched.set(false);
            self.plain = true;
            buffer.give_back();
            return Ok(Flow::Wait);
        }
        drop(buffer);
        self.attend_touched()?;
        self.end_turn(Calls::NONE)
    }

    #[inline(never)]
    fn turn_fully(&mut self, ready: Ready) -> Result<Flow, Reason> {
        let calls = self.connection().output.calls.take();
        self.obey(calls)?;
        self.note(ready)?;
        if self.phase == Phase::Connecting && !self.connect()? {
            self.watch_time(calls)?;
            return Ok(Flow::Wait);
        }
        if self.phase == Phase::New {
            self.open()?;
        }
        if core::mem::take(&mut self.notified) && self.phase == Phase::Open {
            self.call_notified()?;
        }
        let has_room = self.unsent && ready.is_writable();
        if has_room || !calls.is_empty() || self.conn.touched.get() {
            self.attend_output(ready.is_writable())?;
        }
        self.end_turn(calls)
    }

    /// From reading on.
    #[inline(never)]
    fn end_turn(&mut self, calls: Calls) -> Result<Flow, Reason> {
        self.receive()?;
        if self.ending && self.conn.answers_first.get() && self.phase == Phase::Open {
            self.look_at_peer()?;
        }
        if self.is_through() {
            self.reason = Some(Reason::Drained);
            self.conn.close();
            self.attend_output(false)?;
        } else if self.is_finished() {
            self.conn.close();
            self.attend_output(false)?;
        }
        self.watch_time(calls)?;
        self.plain = self.is_plain();
        Ok(if self.readable && self.may_read() { Flow::Again } else { Flow::Wait })
    }

    /// Whether the next run may be a plain one, if nothing else happens.
    fn is_plain(&self) -> bool {
        let open = self.phase == Phase::Open && !self.closing && !self.peer_done && !self.ending;
        let quiet = !self.draining && !self.again && !self.notified && self.broken.is_none();
        let empty = self.input.is_empty() && !self.readable && !self.unsent && self.still == 0;
        open && quiet && empty && !self.filtered && self.conn.deadline.get() == NEVER
    }

    fn note(&mut self, ready: Ready) -> Result<(), Reason> {
        if !self.peer_done {
            self.readable |= ready.is_readable();
            self.ending |= ready.is_read_closed() || ready.is_error();
        } else if ready.is_error()
            && let Ok(Some(error)) = self.socket().take_error()
        {
            return Err(self.failed(error.kind()));
        }
        Ok(())
    }

    /// What other threads, the server and the alarm want.
    fn obey(&mut self, calls: Calls) -> Result<(), Reason> {
        if calls.has(Calls::ABORT) {
            return Err(Reason::Aborted);
        }
        if calls.has(Calls::CUT) {
            return Err(Reason::CutOff);
        }
        self.notified |= calls.has(Calls::NOTIFY);
        let shows_again = calls.has(Calls::RESUME) || calls.has(Calls::AGAIN);
        self.again |= shows_again;
        if shows_again {
            // The peer is not to blame for the pause, nor for other work's turn.
            self.partial = clock::now();
        }
        if calls.has(Calls::DRAIN) && !self.draining {
            self.draining = true;
            // What has arrived and was not reported yet counts.
            self.readable |= !self.peer_done;
            if self.phase == Phase::Open {
                self.handler_and_conn(|handler, conn| handler.draining(conn));
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<bool, Reason> {
        match socket::is_connected(self.socket()) {
            Ok(false) => Ok(false),
            Ok(true) => {
                let connection = self.connection();
                socket::set_options(self.socket(), &connection.peer, &connection.origin.limits);
                self.phase = Phase::New;
                Ok(true)
            }
            Err(error) => Err(self.failed(error.kind())),
        }
    }

    fn open(&mut self) -> Result<(), Reason> {
        if let Some(filter) = self.connection().service.make_filter(&self.conn) {
            self.connection().output.lock().set_filter(filter);
            self.filtered = true;
        }
        if self.handler.is_none() {
            self.handler = Some(self.connection().service.make_handler(&self.conn));
        }
        self.phase = Phase::Open;
        self.active = clock::now();
        // The first edge may have come before the phase: there may be input already.
        let accept = self.handler_and_conn(|handler, conn| handler.open(conn));
        if let Accept::Refuse(message) = accept {
            self.refuse(&message);
        }
        if self.draining && !self.closing {
            self.handler_and_conn(|handler, conn| handler.draining(conn));
        }
        Ok(())
    }

    fn refuse(&mut self, message: &[u8]) {
        self.reason = Some(Reason::Refused);
        // If there is no room for it, there is nothing better to be done.
        let _ = self.conn.write(message);
        self.conn.close();
    }

    fn call_notified(&mut self) -> Result<(), Reason> {
        let again = self.again;
        // What is not here yet cannot be shown again.
        self.again |= !self.input.is_empty();
        self.handler_and_conn(|handler, conn| handler.notified(conn));
        let Some(answer) = self.conn.answer.take() else { return Ok(()) };
        // It was the host that was shown the rest, and nothing has come since.
        self.again = again;
        match *answer {
            Answer::Nothing => {}
            Answer::PutBack(bytes) => {
                self.input.put_back(bytes);
                // What was held back until now was not the peer's fault.
                self.partial = clock::now();
            }
            Answer::Refuse(message) => self.refuse(&message),
            Answer::End(reason) => return Err(reason),
        }
        Ok(())
    }

    #[inline]
    fn handler_and_conn<R>(&mut self, hook: impl FnOnce(&mut dyn ConnHandler, &Conn) -> R) -> R {
        let handler = self.handler.as_deref_mut().expect("an open connection has its handler");
        hook(handler, &self.conn)
    }

    // --- output ----------------------------------------------------------------------------------

    /// Flushes, and calls the hooks for what that has brought about, until nothing new comes of it.
    fn attend_output(&mut self, mut unblock: bool) -> Result<(), Reason> {
        loop {
            let state = self.conn.flush_state(unblock);
            unblock = false;
            self.note_output(state)?;
            if state.tracked {
                self.call_written();
            }
            if state.fell {
                self.again = true;
                self.handler_and_conn(|handler, conn| handler.writable(conn));
            }
            if !self.conn.touched.get() {
                return Ok(());
            }
        }
    }

    fn note_output(&mut self, state: OutputState) -> Result<(), Reason> {
        self.unsent = state.queued > 0;
        if state.still_since != self.still_since {
            (self.still_since, self.still) = (state.still_since, state.still_since);
            self.active = clock::now();
        }
        if let Some(kind) = state.broken
            && self.broken.is_none()
        {
            // What the peer has sent until now is still to be read. The connection ends behind that, whether
            // reading tells of an end or not: what was queued is lost.
            self.broken = Some(kind);
            (self.readable, self.ending) = (true, true);
            let unturned = self.filtered && self.connection().output.lock().is_unturned();
            if unturned
                || self.peer_done
                || self.connection().output.calls.stays_paused()
                || self.phase != Phase::Open
            {
                return Err(self.failed(kind));
            }
        }
        self.closing |= state.end == End::Close;
        if self.closing && state.finished {
            return self.linger();
        }
        Ok(())
    }

    fn call_written(&mut self) {
        loop {
            let token = self.connection().output.lock().take_tracked();
            let Some(token) = token else { return };
            self.handler_and_conn(|handler, conn| handler.written(conn, token));
        }
    }

    /// Everything is sent, and the socket was shut down for writing.
    fn linger(&mut self) -> Result<(), Reason> {
        if self.phase == Phase::Lingering {
            return Ok(());
        }
        if self.peer_done || self.connection().origin.limits.linger == 0 {
            return Err(self.orderly());
        }
        self.phase = Phase::Lingering;
        self.connection().service.lingers();
        self.active = clock::now();
        self.input = Input::default();
        self.readable = true;
        Ok(())
    }

    /// Why it ends, having sent everything.
    fn orderly(&self) -> Reason {
        let usual =
            if self.peer_done && self.phase == Phase::Open { Reason::Peer } else { Reason::Local };
        self.reason.unwrap_or(usual)
    }

    // --- input -----------------------------------------------------------------------------------

    /// Whether the handler may be shown bytes.
    #[inline]
    fn may_deliver(&self) -> bool {
        let connection = self.connection();
        self.phase == Phase::Open
            && !self.closing
            && !connection.output.is_pressed()
            && !connection.is_held()
    }

    /// Whether what comes is read and dropped.
    #[inline]
    fn discards(&self) -> bool {
        self.phase == Phase::Lingering || self.closing && !self.peer_done
    }

    #[inline]
    fn may_read(&self) -> bool {
        self.discards() || self.may_deliver()
    }

    fn receive(&mut self) -> Result<(), Reason> {
        self.show_again()?;
        if self.readable {
            self.read_some()?;
        }
        // What is left over is shown again before that.
        let is_called = self.connection().output.calls.is_called();
        match self.ends_inside && !is_called && self.may_read() {
            true => self.peer_finished(),
            false => Ok(()),
        }
    }

    fn read_some(&mut self) -> Result<(), Reason> {
        let mut buffer = ReadBuffer::lend();
        let mut turn = TurnClock::new();
        for _ in 0..READS {
            // What it is called for comes first: to show what is left over again, say.
            let is_called = self.connection().output.calls.is_called();
            let may = self.readable && !self.ends_inside && self.may_read();
            if !may || turn.was_over() || is_called {
                break;
            }
            self.read(buffer.bytes())?;
            turn.is_over();
        }
        Ok(())
    }

    /// Shows what was not consumed once more, if there is a reason to.
    fn show_again(&mut self) -> Result<(), Reason> {
        if self.input.is_empty() && self.connection().is_hosted() {
            // Its host may put bytes back, and they are what is to be shown again.
            return Ok(());
        }
        while core::mem::take(&mut self.again) && !self.input.is_empty() && self.may_deliver() {
            self.deliver(&[])?;
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Reason> {
        let received = socket::receive(self.socket(), buffer);
        self.note_received(received, buffer)
    }

    /// What a read into this buffer has brought.
    fn note_received(&mut self, received: io::Result<usize>, buffer: &[u8]) -> Result<(), Reason> {
        let discards = self.discards();
        match received {
            Ok(0) => self.socket_ended(),
            Ok(count) => {
                // A stream that gave less than it was asked for has no more: what comes later brings
                // another edge (epoll(7)), unless that was the one for the end.
                self.readable = count == buffer.len() || self.ending;
                if discards {
                    return Ok(());
                }
                if self.filtered {
                    return self.receive_filtered(&buffer[..count]);
                }
                self.deliver(&buffer[..count])?;
                // The output may have pressed and drained at once: what was held back goes on.
                self.show_again()
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => {
                    self.readable = false;
                    // If the output is broken, reading does not say so: the socket is sound but for that send.
                    self.broken.map_or(Ok(()), |kind| Err(self.failed(kind)))
                }
                ErrorKind::Interrupted => Ok(()),
                _ if self.phase == Phase::Lingering => Err(self.orderly()),
                kind => Err(self.failed(kind)),
            },
        }
    }

    /// Shows what the filter makes of bytes that have come.
    #[cold]
    fn receive_filtered(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        let mut plain = Vec::new();
        let turn = |output: &mut OutputBuffer<_>| output.filter_received(bytes, &mut plain);
        let (read, _) = self.connection().output.change(turn);
        // It may have answered.
        self.conn.touched.set(true);
        if plain.is_empty() {
            self.attend_output(false)?;
        } else {
            self.deliver(&plain)?;
            self.show_again()?;
        }
        match read {
            Ok(FilterRead::Open) => Ok(()),
            Ok(FilterRead::Ended) => {
                self.ends_inside = true;
                Ok(())
            }
            Err(error) => Err(self.failed(error.kind())),
        }
    }

    fn socket_ended(&mut self) -> Result<(), Reason> {
        if self.filtered && !self.discards() {
            let cut_off = self.connection().output.lock().filter_cut_off();
            cut_off.map_err(|error| self.failed(error.kind()))?;
        }
        self.peer_finished()
    }

    /// A request is in work, and nothing is read that would say that its peer has gone.
    #[cold]
    fn look_at_peer(&mut self) -> Result<(), Reason> {
        let error = self.socket().take_error().ok().flatten();
        if let Some(kind) = self.broken.or_else(|| error.map(|error| error.kind())) {
            return Err(self.failed(kind));
        }
        // One that sends no more may have got, by another thread, all that it had waited for.
        if self.connection().note_peer_left(self.as_fd()) {
            self.handler_and_conn(|handler, conn| handler.notified(conn));
        }
        self.attend_touched()
    }

    #[inline(never)]
    fn deliver(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        self.connection().output.calls.forget_resume();
        self.show(bytes)?;
        self.attend_touched()
    }

    #[inline]
    fn attend_touched(&mut self) -> Result<(), Reason> {
        if self.conn.touched.get() { self.attend_output(false) } else { Ok(()) }
    }

    /// Shows bytes to the handler, behind what it has not consumed.
    #[inline(always)] // Of plain runs.
    fn show(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        let handler = self.handler.as_deref_mut().expect("an open connection has its handler");
        let was_empty = self.input.is_empty();
        let taken = self.input.feed(bytes, |bytes| handler.data(&self.conn, bytes));
        let limits = &self.conn.connection.origin.limits;
        if limits.idle != NEVER || limits.read != NEVER {
            // If it has answered, that has looked at the clock. The rest waits from the end of its run on.
            let now = clock::soon();
            self.active = now;
            if taken > 0 || was_empty {
                self.partial = now;
            }
        }
        if self.input.len() > limits.max_unconsumed { Err(Reason::Unconsumed) } else { Ok(()) }
    }

    fn peer_finished(&mut self) -> Result<(), Reason> {
        // Another thread may have closed it, and the peer have answered that, before this is called
        // for it.
        let end = self.connection().output.lock().state().end;
        self.closing |= end == End::Close;
        if self.closing {
            self.reason.get_or_insert(Reason::Local);
        }
        (self.peer_done, self.readable, self.ends_inside) = (true, false, false);
        if self.phase == Phase::Lingering {
            return Err(self.orderly());
        }
        if let Some(kind) = self.broken {
            return Err(self.failed(kind));
        }
        if !self.closing {
            self.handler_and_conn(|handler, conn| handler.finished(conn));
            self.connection().finish();
        }
        self.attend_output(false)
    }

    // --- the end ---------------------------------------------------------------------------------

    /// A connection of a server that drains closes when nothing is left to do for it.
    fn is_through(&self) -> bool {
        self.draining
            && self.phase == Phase::Open
            && !self.closing
            && !self.readable
            && self.input.is_empty()
            && !self.connection().is_hosted()
            && self.connection().in_work() == 0
            && self.conn.queued() == 0
    }

    /// A connection whose peer has finished closes when nothing is in work, unless it may be half open.
    fn is_finished(&self) -> bool {
        self.peer_done
            && self.phase == Phase::Open
            && !self.closing
            && !self.connection().origin.limits.allow_half_open
            && !self.connection().is_hosted()
            && self.connection().in_work() == 0
    }

    fn failed(&mut self, kind: ErrorKind) -> Reason {
        if self.handler.is_some() {
            self.handler_and_conn(|handler, conn| handler.error(conn, kind));
        }
        Reason::Failed(kind)
    }

    fn end(&mut self, reason: Reason) {
        if core::mem::replace(&mut self.ended, true) {
            return;
        }
        self.alarm.cancel(&self.conn.connection);
        if reason.is_abrupt() {
            socket::reset_when_closed(self.socket());
        }
        let (_wire, filter) = self.conn.connection.output.close();
        self.input = Input::default();
        let conn = &self.conn;
        // One by one: a destructor that panics while another panic unwinds ends the process.
        let mut sound = contain(|| drop(filter)).is_some();
        if let Some(mut handler) = self.handler.take() {
            sound &= contain(|| handler.close(conn, reason)).is_some();
            sound &= contain(|| drop(handler)).is_some();
        }
        // Counted when the handler is gone: whoever has seen the count has seen `close`.
        self.connection().service.remove(self.connection(), reason, !sound);
    }

    // --- time ------------------------------------------------------------------------------------

    /// Looks whether a time is over, and sees to it that the alarm goes off when the next one is. An
    /// alarm is set earlier, but never put off: when it goes off too early, this sets the next one.
    fn watch_time(&mut self, calls: Calls) -> Result<(), Reason> {
        if calls.has(Calls::ALARM) {
            self.alarm_went_off()?;
        }
        if let Some((due, _)) = self.next_due()
            && due < self.alarm.at
        {
            self.alarm.set(&self.conn.connection, due);
        }
        Ok(())
    }

    fn alarm_went_off(&mut self) -> Result<(), Reason> {
        let now = clock::now();
        if self.alarm.at <= now {
            self.alarm = Alarm::NONE;
        }
        let accepted = self.connection().output.lock().accepted();
        // Other threads write without telling the handler.
        let has_written = core::mem::replace(&mut self.accepted, accepted) != accepted;
        // The time runs from the end of that on, for which nothing calls: so this looks again.
        if self.phase == Phase::Open && (has_written || !self.may_idle()) {
            self.active = now;
        }
        match self.next_due() {
            Some((due, kind)) if due <= now => self.time_is_over(kind),
            _ => Ok(()),
        }
    }

    /// The earliest of the times that run, and what it is for; None: lingering.
    fn next_due(&self) -> Option<(u64, Option<Timeout>)> {
        let limits = &self.connection().origin.limits;
        let due = |runs: bool, since: u64, limit: u64| match runs {
            true => since.saturating_add(limit),
            false => NEVER,
        };
        let next = match self.phase {
            Phase::New => return None,
            Phase::Connecting => (due(true, self.active, limits.connect), Some(Timeout::Connect)),
            Phase::Lingering => (due(true, self.active, limits.linger), None),
            Phase::Open => [
                (due(self.still != 0, self.still, limits.stall), Some(Timeout::Stall)),
                (due(true, self.active, self.conn.idle_limit()), Some(Timeout::Idle)),
                (due(self.waits_for_rest(), self.partial, limits.read), Some(Timeout::Read)),
                (self.conn.deadline.get(), Some(Timeout::Deadline)),
            ]
            .into_iter()
            .min_by_key(|(due, _)| *due)?,
        };
        (next.0 != NEVER).then_some(next)
    }

    fn may_idle(&self) -> bool {
        self.connection().in_work() == 0
            && !self.connection().output.calls.is_paused()
            && !self.connection().is_hosted()
    }

    fn waits_for_rest(&self) -> bool {
        !self.input.is_empty() && self.may_deliver()
    }

    fn time_is_over(&mut self, kind: Option<Timeout>) -> Result<(), Reason> {
        let Some(kind) = kind else { return Err(self.orderly()) };
        if kind == Timeout::Deadline {
            self.conn.deadline.set(NEVER);
        }
        if kind == Timeout::Connect {
            let _ = self.handler_and_conn(|handler, conn| handler.timeout(conn, kind));
            return Err(Reason::TimedOut(kind));
        }
        let action = self.handler_and_conn(|handler, conn| handler.timeout(conn, kind));
        if action == TimeoutAction::Close {
            return Err(Reason::TimedOut(kind));
        }
        let now = clock::now();
        match kind {
            Timeout::Stall => self.still = now,
            Timeout::Read => self.partial = now,
            Timeout::Idle => self.active = now,
            Timeout::Connect | Timeout::Deadline => {}
        }
        self.attend_output(false)
    }
}

impl Activity for Driver {
    fn run(&mut self, ready: Ready) -> Flow {
        match catch_unwind(AssertUnwindSafe(|| self.turn(ready))) {
            Ok(Ok(flow)) => flow,
            Ok(Err(reason)) => {
                self.end(reason);
                Flow::Done
            }
            Err(panic) => {
                self.end(Reason::Panicked);
                // The pool counts it, and closes the slot.
                resume_unwind(panic)
            }
        }
    }

    fn name(&self) -> Name {
        self.connection().origin.name
    }

    fn let_to(&mut self, key: Key) {
        self.connection().let_to(key);
        self.connection().service.enter(self.connection());
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

impl Drop for Driver {
    /// The pool has closed it.
    fn drop(&mut self) {
        let lingers = self.phase == Phase::Lingering;
        self.end(if lingers { self.orderly() } else { Reason::PoolEnded });
        self.socket = None;
        // It is free when the descriptor is.
        drop(Permit::of(self.connection(), lingers));
    }
}
