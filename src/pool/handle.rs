//! Handles: registered descriptors and periodic timers.

use super::Pool;
use super::handler::Flow;
use super::host::HandleId;
use super::shared::Shared;
use super::slots::{Abandoned, Activity, Close, Handles, Key, NEVER, Payload, Slot, Start, Traits};
use crate::error::{Error, Result};
use crate::source::{Interest, Ready};
use crate::time::MAX_DELAY;
use crate::trace::Name;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

/// How a descriptor is waited for; see [`Pool::register_with`].
///
/// ```
/// use paceline::{Flow, HandleOptions, Interest, Pool};
/// use std::io::Read;
/// use std::os::unix::net::UnixStream;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new()?;
/// let (inside, _outside) = UnixStream::pair()?;
/// inside.set_nonblocking(true)?;
/// // Called again as long as something is left to read; its handler may block for long.
/// let options = HandleOptions::new().interest(Interest::READABLE).level().may_block();
/// let handle = pool.register_with(inside, options, |stream, _ready| {
///     let mut bytes = [0; 64];
///     match stream.read(&mut bytes) {
///         Ok(0) => Flow::Done,
///         _ => Flow::Wait,
///     }
/// })?;
/// assert!(handle.is_open());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct HandleOptions {
    interest: Interest,
    level: bool,
    may_block: bool,
    paused: bool,
    timed: bool,
    lent: bool,
}

impl Default for HandleOptions {
    fn default() -> Self {
        Self {
            interest: Interest::BOTH,
            level: false,
            may_block: false,
            paused: false,
            timed: false,
            lent: false,
        }
    }
}

impl HandleOptions {
    /// Edge-triggered, for reading and writing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the handler wants to hear of. Default: [`Interest::BOTH`].
    pub fn interest(mut self, interest: Interest) -> Self {
        self.interest = interest;
        self
    }

    /// Level-triggered: the handler is called again as long as the descriptor is ready, so it need
    /// not read until EAGAIN. Costs one system call per event; for libraries that own their
    /// descriptors (libpq, libcurl …). Default: edge-triggered.
    pub fn level(mut self) -> Self {
        self.level = true;
        self
    }

    /// The handler may block: another thread is called to lead before each run. Default: no.
    pub fn may_block(mut self) -> Self {
        self.may_block = true;
        self
    }

    /// Registers paused, as [`Handle::pause`] pauses: what happens before [`Handle::resume`] is kept. Default: no.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Its activity says at the end of each run when it is to run [by itself](Activity::next_deadline).
    /// It has its slot for that, so it never waits for a timer to be free. While it waits for that time
    /// readiness is kept, and does not make it run.
    pub(crate) fn timed(mut self) -> Self {
        self.timed = true;
        self
    }

    /// The descriptor is the program's, which may close it behind the pool's back.
    pub(crate) fn lent(mut self) -> Self {
        self.lent = true;
        self
    }
}

/// Something registered with a pool: a descriptor, with `S` what owns it, or a periodic timer.
///
/// Dropping it deregisters and drops `S`; [`detach`](Self::detach) lets it live on until its handler
/// returns [`Flow::Done`] or the pool shuts down. All methods may be called by any thread, also from
/// handlers.
///
/// ```
/// use paceline::{Flow, Pool};
/// use std::os::unix::net::UnixDatagram;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new()?;
/// let (inside, outside) = UnixDatagram::pair()?;
/// inside.set_nonblocking(true)?;
/// let echo = pool.register(inside, |socket, _ready| {
///     let mut bytes = [0; 64];
///     while let Ok(size) = socket.recv(&mut bytes) {
///         let _sent = socket.send(&bytes[..size]);
///     }
///     Flow::Wait
/// })?;
/// outside.send(b"ping")?;
/// let mut bytes = [0; 64];
/// assert_eq!(outside.recv(&mut bytes)?, 4);
/// let _socket = echo.deregister()?; // when no handler runs
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a Handle deregisters it; use `detach` to let it live on"]
pub struct Handle<S> {
    shared: Arc<Shared>,
    /// None once it has been deregistered or detached.
    key: Option<Key>,
    owns: PhantomData<fn() -> S>,
}

impl<S> Handle<S> {
    fn new(shared: &Arc<Shared>, key: Key) -> Self {
        Self { shared: Arc::clone(shared), key: Some(key), owns: PhantomData }
    }

    /// Its name in entries of a [completion queue](crate::cq::CompletionQueue); none once it has been detached.
    pub fn id(&self) -> Option<HandleId> {
        self.key.map(HandleId)
    }

    /// As [`deregister`](Self::deregister), and drops what was registered.
    pub(crate) fn close_and_drop(mut self) -> Result<()> {
        self.close().map(drop)
    }

    /// Lets it live on without this value.
    pub fn detach(mut self) {
        self.key = None;
    }

    /// Holds further calls of the handler back; what arrives meanwhile is kept, and delivered after
    /// [`resume`](Self::resume). The handler of a level-triggered descriptor is not called at all. That of an
    /// edge-triggered one is still told of an error or a hang-up, once in each pause. A run that has begun is not
    /// interrupted. Of this and `resume`, by all threads, the last call counts.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is closed, [`Error::Forked`] in a forked child.
    pub fn pause(&self) -> Result<()> {
        let (slot, key) = self.slot()?;
        if slot.pause(key.generation) { Ok(()) } else { Err(STALE) }
    }

    /// Ends a pause, also one that the handler, which runs now, asks for by [`Flow::Pause`] when it returns. What was kept
    /// is delivered.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub fn resume(&self) -> Result<()> {
        let (slot, key) = self.slot()?;
        let queued = slot.resume(key.generation).ok_or(STALE)?;
        // A level-triggered handle needs no arming here: either it is armed, or its readiness is kept.
        if queued {
            self.shared.push_activation(key.index);
        }
        Ok(())
    }

    /// Whether it is still registered.
    pub fn is_open(&self) -> bool {
        self.slot().is_ok_and(|(slot, key)| slot.is_open(key.generation))
    }

    fn slot(&self) -> Result<(&Slot, Key)> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        let key = self.key.ok_or(STALE)?;
        Ok((self.shared.ready.handles.slots.slot(key.index), key))
    }

    fn close(&mut self) -> Result<Payload> {
        let key = self.key.take().ok_or(STALE)?;
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        // Nobody waits for a host: it may be the thread that calls.
        let hosted = self.shared.ready.handles.slots.slot(key.index).traits().hosted;
        let inside = hosted || self.shared.may_not_wait();
        match self.shared.ready.handles.close(key, !inside) {
            (Close::Mine, payload) => payload.ok_or(STALE),
            (Close::Stale, _) => Err(STALE),
            (Close::Running, _) if inside => Err(Error::Closing),
            (Close::Running, _) => Ok(self.fetch(key)),
        }
    }

    /// Waits until the running handler has returned, and takes the payload over.
    fn fetch(&self, key: Key) -> Payload {
        let shared = &self.shared;
        let Handles { slots, changed, .. } = &shared.ready.handles;
        let slot = slots.slot(key.index);
        loop {
            let epoch = changed.epoch();
            if slot.is_handed_over(key.generation) {
                let payload = shared.ready.handles.take_payload(key.index);
                slots.free(key.index);
                return payload;
            }
            // From a close that waits the runner makes CLOSED, and no other thread touches that.
            changed.wait(epoch, None);
        }
    }
}

const STALE: Error = Error::Stale { what: "handle" };

impl<S: Send + 'static> Handle<S> {
    /// Deregisters and gives back what was registered. When this returns, the handler does not run
    /// and never will again.
    ///
    /// # Errors
    /// [`Error::Closing`] if this is called inside a handler of the same pool while the handler of
    /// this handle runs: waiting could deadlock, so the handle is closed as soon as that handler
    /// returns, and `S` is dropped then. [`Error::Stale`] if it is closed already: its handler
    /// returned [`Flow::Done`] or panicked, or the pool was shut down.
    pub fn deregister(mut self) -> Result<S> {
        let Payload::Activity(activity, _) = self.close()? else { return Err(STALE) };
        let io = activity.into_io().downcast::<S>().map_err(|_| STALE)?;
        Ok(*io)
    }
}

impl<S> Drop for Handle<S> {
    fn drop(&mut self) {
        if self.key.is_some() {
            match self.close() {
                // In a forked child the parent's registration must not be touched.
                Err(Error::Forked) => {}
                closed => drop(closed),
            }
        }
    }
}

impl<S> fmt::Debug for Handle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("open", &self.is_open()).finish_non_exhaustive()
    }
}

/// A descriptor with its handler.
struct Descriptor<S, F> {
    io: S,
    handler: F,
}

impl<S, F> Activity for Descriptor<S, F>
where
    S: AsFd + Send + 'static,
    F: FnMut(&mut S, Ready) -> Flow + Send,
{
    fn run(&mut self, ready: Ready) -> Flow {
        (self.handler)(&mut self.io, ready)
    }

    fn name(&self) -> Name {
        Name::of::<F>()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.io.as_fd().as_raw_fd())
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.io)
    }
}

/// A periodic timer with its handler.
struct Periodic<F> {
    handler: F,
    period: u64,
    due: u64,
}

impl<F: FnMut() -> Flow + Send> Activity for Periodic<F> {
    fn run(&mut self, _: Ready) -> Flow {
        (self.handler)()
    }

    fn name(&self) -> Name {
        Name::of::<F>()
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }

    fn next_deadline(&mut self, now: u64) -> u64 {
        self.due = next_multiple(self.due, self.period, now);
        self.due
    }
}

/// The next multiple of the period that is not over: missed runs are skipped, not made up.
pub(crate) fn next_multiple(due: u64, period: u64, now: u64) -> u64 {
    let missed = now.saturating_sub(due) / period;
    due.saturating_add(period.saturating_mul(missed + 1))
}

impl Pool {
    /// Calls `handler` whenever `io` becomes ready, edge-triggered, for reading and writing.
    ///
    /// `io` must be non-blocking, because the handler has to go on until it sees EAGAIN before it
    /// returns [`Flow::Wait`]; see [`Flow`]. The first call reports what is ready already. The
    /// handler runs on one thread at a time. It must leave `io` with the descriptor that it has:
    /// another one put in its place is not waited for. If the descriptor is closed otherwise, the handle is closed as soon
    /// as another one of its number is registered, and the log has a warning, `pool.closed_registered`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the descriptor is in blocking mode. [`Error::Os`] if it cannot be
    /// waited for (regular files cannot) or is registered already. [`Error::Full`] when all
    /// `max_handles` are in use, [`Error::ShutDown`], [`Error::Forked`]. `io` is dropped.
    pub fn register<S, F>(&self, io: S, handler: F) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
        F: FnMut(&mut S, Ready) -> Flow + Send + 'static,
    {
        self.register_with(io, HandleOptions::default(), handler)
    }

    /// As [`register`](Self::register), with options.
    ///
    /// # Errors
    /// As [`register`](Self::register); level-triggered descriptors may be in blocking mode.
    pub fn register_with<S, F>(
        &self,
        io: S,
        options: HandleOptions,
        handler: F,
    ) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
        F: FnMut(&mut S, Ready) -> Flow + Send + 'static,
    {
        let make = |io| -> Box<dyn Activity> { Box::new(Descriptor { io, handler }) };
        self.register_activity(io, options.lent(), false, make)
    }

    /// Registers what `activity` makes of `io`.
    pub(crate) fn register_activity<S: AsFd>(
        &self,
        io: S,
        options: HandleOptions,
        hosted: bool,
        activity: impl FnOnce(S) -> Box<dyn Activity>,
    ) -> Result<Handle<S>> {
        let shared = self.shared();
        shared.check_open()?;
        let descriptor = io.as_fd().as_raw_fd();
        let failed = |error| Error::os(format!("register descriptor {descriptor}"), error);
        if !options.level && !crate::sys::fd::is_nonblocking(io.as_fd()).map_err(failed)? {
            let value = format!("descriptor {descriptor} in blocking mode");
            return Err(Error::invalid("io", value, "non-blocking (O_NONBLOCK) or level()"));
        }
        let traits = Traits {
            set: shared.ready.handles.sets.pick(),
            may_block: options.may_block,
            level: options.level,
            interest: options.interest.bits(),
            timer: options.timed,
            hosted,
            lent: options.lent,
            ..Traits::default()
        };
        let payload = Payload::activity(activity(io));
        let key = shared.ready.handles.allocate(traits, descriptor, payload)?;
        let slot = shared.ready.handles.slots.slot(key.index);
        if options.timed {
            // It rests until it has run.
            slot.set_deadline(NEVER);
        }
        // Whoever finds the activity elsewhere may have its slot made runnable from now on. A run that ended
        // it would close the descriptor, whose number may be another one's then: so none begins before the
        // source knows it.
        shared.ready.handles.slots.publish(key, Start::Registering { paused: options.paused });
        #[allow(unsafe_code, reason = "the descriptor lives in the slot now")]
        // SAFETY: the payload, and with it the descriptor, is this thread's until `end_registering`.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
        match shared.ready.handles.watch(key, fd) {
            Ok(None) => {}
            Ok(Some(Abandoned::Closed(old))) => {
                super::log::closed_registered(&shared.log, descriptor, old);
            }
            Ok(Some(Abandoned::Queued(index))) => shared.push_activation(index),
            Err(error) => {
                slot.forget_descriptor();
                let _queued = shared.ready.handles.end_registering(key.index, Flow::Done);
                return Err(failed(error));
            }
        }
        if shared.ready.handles.end_registering(key.index, Flow::Wait) {
            shared.push_activation(key.index);
        }
        if shared.is_too_late() {
            drop(shared.ready.handles.close(key, false));
            return Err(Error::ShutDown);
        }
        Ok(Handle::new(shared, key))
    }

    /// Calls `handler` every `period` (1 µs to 100 years), first after one period, until it returns
    /// [`Flow::Done`] or the handle is deregistered. Runs that were missed are skipped. Other
    /// answers than `Done` and `Pause` mean "go on".
    ///
    /// # Errors
    /// [`Error::Invalid`] for a period out of range; [`Error::Full`], [`Error::ShutDown`],
    /// [`Error::Forked`].
    pub fn every<F>(&self, period: Duration, handler: F) -> Result<Handle<()>>
    where
        F: FnMut() -> Flow + Send + 'static,
    {
        Handle::every(self.shared(), Duration::ZERO, period, handler)
    }

    /// See [`Handle::periodic`].
    pub(crate) fn register_periodic(
        &self,
        period: Duration,
        hosted: bool,
        activity: impl FnOnce(u64, u64) -> Box<dyn Activity>,
    ) -> Result<Handle<()>> {
        Handle::periodic(self.shared(), Duration::ZERO, period, hosted, activity)
    }
}

#[cfg(feature = "capi")]
impl Pool {
    /// The handle that a number from outside names, to be detached again after use. None: neither a
    /// descriptor nor a periodic timer lives in that slot.
    pub(crate) fn handle_by_key(&self, key: Key) -> Option<Handle<()>> {
        let slot = self.shared().ready.handles.slots.get(key.index)?;
        let traits = slot.traits();
        let is_timer = traits.timer && !(traits.once || traits.service);
        let is_handle = slot.descriptor() >= 0 || is_timer;
        is_handle.then(|| Handle::new(self.shared(), key))
    }
}

const MIN_PERIOD: Duration = Duration::from_micros(1);

impl Handle<()> {
    /// As [`Pool::every`], with the first call `delay` later.
    pub(crate) fn every<F>(
        shared: &Arc<Shared>,
        delay: Duration,
        period: Duration,
        handler: F,
    ) -> Result<Self>
    where
        F: FnMut() -> Flow + Send + 'static,
    {
        Self::periodic(shared, delay, period, false, |period, due| {
            Box::new(Periodic { handler, period, due })
        })
    }

    /// Registers what `activity` makes of the period and the first deadline, `delay` (of a valid length)
    /// and a period from now.
    pub(crate) fn periodic(
        shared: &Arc<Shared>,
        delay: Duration,
        period: Duration,
        hosted: bool,
        activity: impl FnOnce(u64, u64) -> Box<dyn Activity>,
    ) -> Result<Self> {
        shared.check_open()?;
        if !(MIN_PERIOD..=MAX_DELAY).contains(&period) {
            let allowed = "1 microsecond to 100 years";
            return Err(Error::invalid("period", format!("{period:?}"), allowed));
        }
        let period = period.as_nanos() as u64;
        let due = shared.now().saturating_add(delay.as_nanos() as u64).saturating_add(period);
        let handles = &shared.ready.handles;
        let traits = Traits { set: handles.sets.pick(), timer: true, hosted, ..Traits::default() };
        let payload = Payload::activity(activity(period, due));
        let key = handles.allocate(traits, -1, payload)?;
        shared.arm(key, due, |_| ());
        if shared.is_too_late() {
            drop(handles.close(key, false));
            return Err(Error::ShutDown);
        }
        Ok(Self::new(shared, key))
    }
}
