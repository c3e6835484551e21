//! A source for tests: it says what a script says, when the test's own clock says so.
//!
//! No kernel, no waiting and no chance are in the way, so a test of a handler is exact: it decides
//! what happens in which order, and every time-out and timer runs by the clock that it moves.
//!
//! One lock guards the whole script, and one condition variable announces every change of it: the
//! leader waits for "something is due", the test in [`settle`](ScriptedSource::settle) for "the leader
//! waits and nothing is due". Both are from the `sync` facade, so models can use this source too.

use super::doorbell::{Doorbell, Wait};
use super::{Events, Interest, Ready};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Arc, Condvar, Mutex};
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::PoisonError;
use std::time::Instant;

#[cfg(loom)]
type Guard<'a> = loom::sync::MutexGuard<'a, Script>;
#[cfg(not(loom))]
type Guard<'a> = std::sync::MutexGuard<'a, Script>;

/// What the clock shows when a script begins. Not zero, so that code may look back from it.
const EPOCH: u64 = 1_000_000_000;

/// How many calls are remembered; older ones are forgotten.
const HISTORY: usize = 65_536;

/// An event source that plays a script under a clock that stands still until the test moves it.
///
/// Clones are handles to the same script: the pool gets one, the test keeps another. Every method may
/// be called from any thread, a handler's included.
///
/// # Testing a handler
///
/// Register [`ScriptedIo`](crate::ScriptedIo)s instead of sockets. Each step of the test is then: say
/// what becomes ready ([`ready`](Self::ready) or [`ready_at`](Self::ready_at)), or move the clock
/// ([`advance`](Self::advance)); wait until the pool has nothing left to do
/// ([`settle`](Self::settle)); look at what the handler did.
///
/// ```
/// use paceline::{Flow, Pool, Ready, ScriptedIo, ScriptedSource, SourceKind};
/// use std::io::{Read, Write};
/// use std::time::Duration;
///
/// // The handler under test, generic over what it reads from.
/// fn shout(io: &mut (impl Read + Write)) -> Flow {
///     let mut line = [0; 64];
///     loop {
///         match io.read(&mut line) {
///             Ok(0) => return Flow::Done,
///             Ok(count) => {
///                 line.make_ascii_uppercase();
///                 io.write_all(&line[..count]).expect("room for what was read");
///             }
///             Err(_) => return Flow::Wait,
///         }
///     }
/// }
///
/// let source = ScriptedSource::new();
/// let kind = SourceKind::Scripted(source.clone());
/// let pool = Pool::builder().threads(1).source(kind).build()?;
/// let io = ScriptedIo::new()?;
/// let handle = pool.register(io.clone(), |io, _ready: Ready| shout(io))?;
///
/// let patience = Duration::from_secs(10);
/// io.feed(b"hello");
/// assert!(source.settle(patience) && io.written().is_empty(), "nobody said that it is ready");
/// source.ready(&io, Ready::READABLE);
/// assert!(source.settle(patience));
/// assert_eq!(io.written(), b"HELLO");
///
/// // An hour passes in no time.
/// let reminder = io.clone();
/// pool.after(Duration::from_secs(3600), move || reminder.feed(b"still there?"))?;
/// source.advance(Duration::from_secs(3599));
/// assert!(source.settle(patience) && io.unread() == 0);
/// source.advance(Duration::from_secs(2));
/// assert!(source.settle(patience) && io.unread() == 12);
/// # handle.deregister()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is ready when
///
/// An event is delivered at the first wait at or after its time, in the order of the times; those of
/// one time in the order in which they were given. It waits for its descriptor to be registered, and
/// for a level-triggered one to be armed, as readiness does in a kernel. Flags outside the
/// registration's interest are dropped. A wait delivers at most one event for each descriptor.
#[derive(Clone)]
pub struct ScriptedSource {
    shared: Arc<Shared>,
}

struct Shared {
    bell: Doorbell,
    /// Changed under the lock only.
    now: AtomicU64,
    script: Mutex<Script>,
    changed: Condvar,
}

/// One call that the pool made; see [`ScriptedSource::history`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ScriptedCall {
    /// A descriptor was registered.
    Registered {
        /// Its number.
        fd: RawFd,
        /// What it is watched for.
        interest: Interest,
        /// Whether each event disarms it.
        level: bool,
    },
    /// A level-triggered descriptor was armed again.
    Rearmed {
        /// Its number.
        fd: RawFd,
    },
    /// A descriptor was deregistered.
    Deregistered {
        /// Its number.
        fd: RawFd,
    },
    /// A leader waited, or only looked if the time-out is zero.
    Waited {
        /// When, since the script began.
        at: Duration,
        /// For how long at most; `None` is for ever.
        timeout: Option<Duration>,
    },
}

struct Script {
    /// In the order of delivery.
    planned: Vec<Planned>,
    registered: BTreeMap<RawFd, Registration>,
    /// The bell was sounded, and no wait has told of it yet.
    rung: bool,
    /// A leader waits until this instant, or for ever.
    waiting: Option<Option<u64>>,
    history: VecDeque<ScriptedCall>,
}

#[derive(Clone, Copy)]
struct Planned {
    at: u64,
    whose: Whose,
    ready: Ready,
}

#[derive(Clone, Copy)]
enum Whose {
    Descriptor(RawFd),
    /// Whether or not anything is registered with it, as a late kernel event may be.
    Token(u64),
}

#[derive(Clone, Copy)]
struct Registration {
    token: u64,
    interest: Interest,
    level: bool,
    armed: bool,
}

impl ScriptedSource {
    /// An empty script. Its clock stands at zero.
    #[must_use]
    pub fn new() -> Self {
        let script = Script {
            planned: Vec::new(),
            registered: BTreeMap::new(),
            rung: false,
            waiting: None,
            history: VecDeque::new(),
        };
        let shared = Shared {
            bell: Doorbell::new(),
            now: AtomicU64::new(EPOCH),
            script: Mutex::new(script),
            changed: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes `io` ready now.
    pub fn ready(&self, io: &impl AsFd, ready: Ready) {
        self.ready_at(self.now(), io, ready);
    }

    /// Makes `io` ready at `at`, counted from the beginning of the script. Only its descriptor's
    /// number is taken note of: `io` may be registered later, earlier, or never.
    pub fn ready_at(&self, at: Duration, io: &impl AsFd, ready: Ready) {
        self.plan(at, Whose::Descriptor(io.as_fd().as_raw_fd()), ready);
    }

    /// Delivers an event at `at` to the registration that `io` has now, also if that is gone by
    /// then: what a kernel event is that had been taken off the queue when its descriptor was
    /// deregistered. A pool must let it come to nothing.
    ///
    /// False if `io` is not registered.
    #[must_use = "false: nothing will be delivered"]
    pub fn late_at(&self, at: Duration, io: &impl AsFd, ready: Ready) -> bool {
        let fd = io.as_fd().as_raw_fd();
        let token = self.lock().registered.get(&fd).map(|registration| registration.token);
        token.map(|token| self.plan(at, Whose::Token(token), ready)).is_some()
    }

    fn plan(&self, at: Duration, whose: Whose, ready: Ready) {
        let at = EPOCH.saturating_add(nanos(at));
        let mut script = self.lock();
        let position = script.planned.partition_point(|planned| planned.at <= at);
        script.planned.insert(position, Planned { at, whose, ready });
        self.shared.changed.notify_all();
    }

    /// Moves the clock forward. Everything that becomes due is delivered in order, by one wait or by
    /// several; timers see the new time only. A timer fires up to 8.2 µs after its time (never
    /// before), so advance a little further than a timer's delay.
    pub fn advance(&self, by: Duration) {
        let _script = self.lock();
        let now = self.now_nanos().saturating_add(nanos(by));
        // Relaxed: whoever needs the time to go with the script holds the lock.
        self.shared.now.store(now, Relaxed);
        self.shared.changed.notify_all();
    }

    /// What the clock shows: the time since the script began.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_nanos() - EPOCH)
    }

    /// Waits until a leader waits here, everything that is due has been delivered, and no ring is
    /// under way. In a pool of one thread every handler has returned by then, and nothing will happen
    /// until the next event, task or advance. (Other threads of a larger pool may still be running
    /// handlers.) Never call it from a handler.
    ///
    /// False if that did not come within `patience`, in real time.
    #[must_use = "false: the pool is still at work"]
    pub fn settle(&self, patience: Duration) -> bool {
        let start = Instant::now();
        let mut script = self.lock();
        while !script.is_at_rest(self.now_nanos()) {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(script, left);
            script = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The numbers of the descriptors that are registered now, in ascending order.
    #[must_use]
    pub fn registered(&self) -> Vec<RawFd> {
        self.lock().registered.keys().copied().collect()
    }

    /// How many events have not been delivered.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.lock().planned.len()
    }

    /// What the pool did since this was last called, oldest first. Only the last 65,536 calls are
    /// kept.
    #[must_use]
    pub fn history(&self) -> Vec<ScriptedCall> {
        self.lock().history.drain(..).collect()
    }

    fn lock(&self) -> Guard<'_> {
        self.shared.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn now_nanos(&self) -> u64 {
        self.shared.now.load(Relaxed)
    }
}

/// The source's side of the contract.
impl ScriptedSource {
    pub(super) fn register(
        &self,
        fd: RawFd,
        token: u64,
        interest: Interest,
        level: bool,
    ) -> io::Result<()> {
        let mut script = self.lock();
        if script.registered.contains_key(&fd) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        script.registered.insert(fd, Registration { token, interest, level, armed: true });
        script.record(ScriptedCall::Registered { fd, interest, level });
        self.shared.changed.notify_all();
        Ok(())
    }

    pub(super) fn rearm(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut script = self.lock();
        let registration = script.registered.get_mut(&fd).ok_or(io::ErrorKind::NotFound)?;
        *registration = Registration { token, interest, level: true, armed: true };
        script.record(ScriptedCall::Rearmed { fd });
        self.shared.changed.notify_all();
        Ok(())
    }

    pub(super) fn deregister(&self, fd: RawFd) -> io::Result<()> {
        let mut script = self.lock();
        script.registered.remove(&fd).ok_or(io::ErrorKind::NotFound)?;
        script.record(ScriptedCall::Deregistered { fd });
        Ok(())
    }

    pub(super) fn wait(&self, events: &mut Events, max: usize, timeout: Option<u64>) -> usize {
        // An advance that comes in between makes it longer.
        let start = self.now_nanos();
        self.wait_until(events, max, timeout.map(|timeout| start.saturating_add(timeout)))
    }

    /// An advance past `deadline` ends it, also if it came before.
    pub(super) fn wait_until(
        &self,
        events: &mut Events,
        max: usize,
        deadline: Option<u64>,
    ) -> usize {
        let mut script = self.lock();
        let start = self.now_nanos();
        let at = Duration::from_nanos(start - EPOCH);
        let timeout = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(start)));
        script.record(ScriptedCall::Waited { at, timeout });
        loop {
            let now = self.now_nanos();
            script.deliver(now, events, max.min(events.capacity()));
            events.set_rung(core::mem::take(&mut script.rung));
            let timed_out = deadline.is_some_and(|deadline| now >= deadline);
            if events.len() > 0 || events.is_rung() || timed_out {
                return events.len();
            }
            script.waiting = Some(deadline);
            self.shared.changed.notify_all();
            script = self.shared.changed.wait(script).unwrap_or_else(PoisonError::into_inner);
            script.waiting = None;
        }
    }

    #[inline]
    pub(super) fn arm(&self) {
        self.shared.bell.arm(Wait::Blocking);
    }

    pub(super) fn ring(&self) -> bool {
        let sound = self.shared.bell.ring();
        if sound {
            self.lock().rung = true;
            self.shared.changed.notify_all();
        }
        sound
    }

    pub(super) fn bell(&self) -> &Doorbell {
        &self.shared.bell
    }
}

impl Script {
    fn record(&mut self, call: ScriptedCall) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(call);
    }

    /// Moves what is due into `events`, in order, up to the second event of one descriptor.
    fn deliver(&mut self, now: u64, events: &mut Events, max: usize) {
        while events.len() < max
            && let Some((position, token, ready)) = self.next_due(now)
            && events.iter().all(|(delivered, _)| delivered != token)
        {
            let planned = self.planned.remove(position);
            self.disarm(planned.whose);
            events.push(token, ready);
        }
    }

    /// The first event that can be delivered. Those that nobody is interested in are dropped.
    fn next_due(&mut self, now: u64) -> Option<(usize, u64, Ready)> {
        let registered = &self.registered;
        self.planned.retain(|planned| planned.at > now || planned.interests(registered));
        let due = self.planned.iter().take_while(|planned| planned.at <= now).enumerate();
        due.into_iter().find_map(|(position, planned)| {
            planned.target(registered).map(|(token, ready)| (position, token, ready))
        })
    }

    fn disarm(&mut self, whose: Whose) {
        if let Whose::Descriptor(fd) = whose
            && let Some(registration) = self.registered.get_mut(&fd)
        {
            registration.armed = !registration.level;
        }
    }

    /// Whether a leader waits for something that only the test can bring about.
    fn is_at_rest(&mut self, now: u64) -> bool {
        let waits = |deadline: Option<u64>| deadline.is_none_or(|deadline| now < deadline);
        self.waiting.is_some_and(waits) && !self.rung && self.next_due(now).is_none()
    }
}

impl Planned {
    /// False if its descriptor is registered, but for other things.
    fn interests(&self, registered: &BTreeMap<RawFd, Registration>) -> bool {
        match self.whose {
            Whose::Token(_) => true,
            Whose::Descriptor(fd) => registered
                .get(&fd)
                .is_none_or(|registration| !registration.reports(self.ready).is_empty()),
        }
    }

    /// Whom it goes to, and what is said, if it can be delivered.
    fn target(&self, registered: &BTreeMap<RawFd, Registration>) -> Option<(u64, Ready)> {
        match self.whose {
            Whose::Token(token) => Some((token, self.ready)),
            Whose::Descriptor(fd) => registered
                .get(&fd)
                .filter(|registration| registration.armed)
                .map(|registration| (registration.token, registration.reports(self.ready))),
        }
    }
}

impl Registration {
    fn reports(&self, ready: Ready) -> Ready {
        Ready::from_bits(ready.bits() & self.interest.reportable().bits())
    }
}

impl Default for ScriptedSource {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ScriptedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedSource").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The end of time for what a u64 cannot hold: 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The double is used in models of what stands on it, so it is one itself: a lost ring or a clock that
/// nobody notices shows as a deadlock.
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | scripted source | no notify in `advance` or `ring`; the clock moved without the lock | the leader sleeps through its time |
    //! |  | `wait_until` counts from the wait, not from the look at the clock | likewise |

    use super::super::Source;
    use super::*;
    use crate::sync::store_load_barrier;
    use loom::thread;

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// Goal: a ring reaches a leader that is about to wait. Method: the leader waits for ever.
    #[test]
    fn a_ring_ends_a_wait() {
        explore(|| {
            let source = Arc::new(Source::scripted(&ScriptedSource::new()));
            let published = Arc::new(AtomicU64::new(0));
            let publisher = {
                let (source, published) = (source.clone(), published.clone());
                thread::spawn(move || {
                    published.store(1, Relaxed);
                    store_load_barrier();
                    source.ring();
                })
            };
            let mut events = Events::with_capacity(1);
            while published.load(Relaxed) == 0 {
                source.arm();
                if published.load(Relaxed) == 0 {
                    source.wait(&mut events, 1, None).unwrap();
                }
                source.disarm();
            }
            publisher.join().unwrap();
        });
    }

    /// Goal: a wait ends when the clock is moved, and no sooner, with what is due then. Method: an event
    /// and the end of the wait at one time.
    #[test]
    fn an_advance_ends_a_wait() {
        explore(|| {
            let script = ScriptedSource::new();
            script.plan(Duration::from_nanos(5), Whose::Token(1), Ready::READABLE);
            let leader = {
                let source = Source::scripted(&script);
                thread::spawn(move || {
                    let mut events = Events::with_capacity(1);
                    source.arm();
                    let count = source.wait(&mut events, 1, Some(5)).unwrap();
                    source.disarm();
                    count
                })
            };
            script.advance(Duration::from_nanos(5));
            assert_eq!(leader.join().unwrap(), 1);
        });
    }

    /// Goal: a wait for a time ends though the clock was moved past it after the leader had read it.
    #[test]
    fn an_advance_before_a_wait_ends_it() {
        explore(|| {
            let script = ScriptedSource::new();
            let leader = {
                let source = Source::scripted(&script);
                thread::spawn(move || {
                    let mut events = Events::with_capacity(1);
                    let now = source.clock().now();
                    source.wait_until(&mut events, 1, now, EPOCH + 5).unwrap()
                })
            };
            script.advance(Duration::from_nanos(5));
            assert_eq!(leader.join().unwrap(), 0);
        });
    }
}
