//! Requests and replies.
//!
//! A request is a message with a header that names an *inbox*: a key that nobody else uses. Whoever replies
//! publishes with that key. The hub subscribes once, to all inboxes, inline; a reply finds its request by the
//! number in the key. So a request costs an entry in a table, and no subscription.
//!
//! # The states of a request
//!
//! ```text
//!              reply                     taken by who waits
//!   WAITING ───────────────► ANSWERED ────────────────────────► gone
//!      └── time or pool over, or dropped ─────────────────────► gone: a reply is late from now on
//! ```
//!
//! Of a request with a *function* the entry is the right to call it. Three may want it:
//!
//! ```text
//!             reply ───────────► called with the reply ──┐
//!   in table ─ time over ──────► called with TimedOut ───┼─► on the pool, by way of the ready list
//!             given up, or the hub has gone ─► dropped   ┘
//! ```
//!
//! A function of the library's own, which puts the reply where a host pulls it, is called by who replies.
//!
//! # Invariants
//!
//! 1. The first reply is the answer; every other is counted as late, and dropped.
//! 2. A request is in the table exactly while somebody waits for it: its entry is taken out by whoever
//!    stops waiting, answered or not.
//! 3. A reply that was accepted wakes who waits: it is stored under the lock under which the waiter looks
//!    before it sleeps.
//! 4. A request's function is called at most once: by whoever takes its entry out of the table, under the
//!    table's lock. One of a user runs on the pool alone, so that no replier has a stranger on its stack.

use super::message::{Headers, Message, Payload, Stored};
use super::publish::{Publication, ToKey};
use super::subscribe::Execution;
use super::{Core, Hub, NAP, Work};
use crate::error::Error;
use crate::error::receipt::Receipt;
use crate::pool::{self, Timer};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::MAX_DELAY;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Instant;

/// What the keys of inboxes begin with. (NATS names them so.)
pub(super) const INBOX: &str = "_INBOX.";
/// The header that names the inbox.
pub(super) const REPLY_TO: &str = "Reply-To";
/// All inboxes.
const INBOXES: &str = "_INBOX.*";

/// All requests of a hub that somebody waits for.
#[derive(Default)]
pub(super) struct Requests {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    late: AtomicU64,
    /// The hub has subscribed to the inboxes.
    subscribed: Mutex<bool>,
}

/// What a request is told the end by.
enum Open {
    Slot(Arc<Slot>),
    Function(Then),
}

/// Is called with the reply, or why there is none.
type Function = Box<dyn FnOnce(Result<Stored, RequestError>) + Send>;

/// The function of a request.
pub(super) struct Then {
    function: Function,
    /// Ends its time, once that is known.
    timer: Option<Timer>,
    /// Whoever replies calls it: it is the library's, and never waits.
    is_own: bool,
}

/// A function, and what it is to be called with.
pub(super) struct Ended {
    function: Function,
    with: Result<Stored, RequestError>,
}

impl Ended {
    /// On the pool. A panic is its own affair.
    pub(super) fn call(self) {
        let _panicked = pool::contain(|| (self.function)(self.with));
    }
}

/// Where the reply to one request comes.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    reply: Option<Stored>,
    waker: Option<Waker>,
    /// Nothing is waited for any more, and the waker was woken for that.
    over: Option<Over>,
}

/// Why a request is not waited for any more.
#[derive(Clone, Copy)]
enum Over {
    Time,
    Pool,
}

impl Requests {
    /// Opens a request.
    pub(super) fn open(self: &Arc<Self>) -> Waiting {
        let number = self.next();
        let slot = Arc::new(Slot::default());
        self.lock().insert(number, Open::Slot(Arc::clone(&slot)));
        Waiting { requests: Arc::clone(self), number, slot }
    }

    fn next(&self) -> u64 {
        self.last.fetch_add(1, Relaxed) + 1
    }

    /// Opens a request whose end this function is told.
    pub(super) fn open_with(&self, function: Function, is_own: bool) -> u64 {
        let number = self.next();
        self.lock().insert(number, Open::Function(Then { function, timer: None, is_own }));
        number
    }

    /// Its time ends by this timer, unless it has ended already: then the timer comes back.
    fn time(&self, number: u64, timer: Timer) -> Option<Timer> {
        match self.lock().get_mut(&number) {
            Some(Open::Function(then)) => then.timer.replace(timer),
            _ => Some(timer),
        }
    }

    /// Takes a request with a function out: whoever gets it calls or drops it.
    pub(super) fn take(&self, number: u64) -> Option<Then> {
        let mut open = self.lock();
        match open.remove(&number) {
            Some(Open::Function(then)) => Some(then),
            Some(slot) => {
                open.insert(number, slot);
                None
            }
            None => None,
        }
    }

    /// The function of a request, if its time is over now and not before.
    pub(super) fn expire(&self, number: u64) -> Option<Ended> {
        let Then { function, .. } = self.take(number)?;
        Some(Ended { function, with: Err(RequestError::TimedOut) })
    }

    /// A message with the key of an inbox: whom it has reached; None: nobody waits for it.
    pub(super) fn reply(&self, reply: &Stored) -> Option<Reached> {
        let number = reply.key.as_str().strip_prefix(INBOX).and_then(|text| text.parse().ok());
        let reached = number.and_then(|number| self.reach(number, reply));
        if reached.is_none() {
            self.late.fetch_add(1, Relaxed);
        }
        reached
    }

    fn reach(&self, number: u64, reply: &Stored) -> Option<Reached> {
        let mut open = self.lock();
        if let Open::Slot(slot) = open.get(&number)? {
            let slot = Arc::clone(slot);
            drop(open);
            return slot.answer(reply).then_some(Reached::Waiter);
        }
        let Some(Open::Function(then)) = open.remove(&number) else { return None };
        drop(open);
        if let Some(timer) = then.timer {
            let _gone_off = timer.cancel();
        }
        let ended = Ended { function: then.function, with: Ok(reply.clone()) };
        if then.is_own {
            ended.call();
            return Some(Reached::Waiter);
        }
        Some(Reached::Function(ended))
    }

    /// How many requests somebody waits for.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// How many replies came when nobody waited for them.
    pub(super) fn late(&self) -> u64 {
        self.late.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a reply has reached.
pub(super) enum Reached {
    /// Who waits for it has been woken, or finds it where it pulls.
    Waiter,
    /// This is to be called.
    Function(Ended),
}

impl Slot {
    fn answer(&self, reply: &Stored) -> bool {
        let mut state = self.lock();
        if state.reply.is_some() {
            return false;
        }
        state.reply = Some(reply.clone());
        let waker = state.waker.take();
        drop(state);
        self.answered.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Says why it is not waited for any more; once.
    fn end(&self, over: Over) {
        let mut state = self.lock();
        let _first = state.over.get_or_insert(over);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What no request has as its number.
const NOBODY: u64 = 0;

/// A request that somebody waits for.
pub(super) struct Waiting {
    requests: Arc<Requests>,
    number: u64,
    slot: Arc<Slot>,
}

impl Waiting {
    /// The key to reply with.
    pub(super) fn inbox(&self) -> String {
        format!("{INBOX}{}", self.number)
    }

    /// The reply, if it is there.
    fn reply(&self) -> Option<Stored> {
        self.slot.lock().reply.clone()
    }

    /// Waits for the reply until then, without a time for as long as it takes, but not beyond the pool's end.
    pub(super) fn wait(
        &self,
        until: Option<Instant>,
        has_ended: impl Fn() -> bool,
    ) -> Result<Stored, RequestError> {
        loop {
            // Not under the lock: it may be this thread that ends the pool, for which others' work may be dropped.
            let ends = has_ended();
            let state = self.slot.lock();
            if let Some(reply) = state.reply.clone() {
                return Ok(reply);
            }
            let left = until.map_or(NAP, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(RequestError::TimedOut);
            }
            if ends {
                return Err(Error::ShutDown.into());
            }
            let waited = self.slot.answered.wait_timeout(state, left.min(NAP));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The reply, if it is there, or why none will come; else the waker is woken when one of them is.
    fn poll(&self, waker: &Waker) -> Poll<Result<Stored, RequestError>> {
        let mut state = self.slot.lock();
        let end = match (&state.reply, state.over) {
            (Some(reply), _) => Ok(reply.clone()),
            (None, Some(Over::Time)) => Err(RequestError::TimedOut),
            (None, Some(Over::Pool)) => Err(Error::ShutDown.into()),
            (None, None) => {
                state.waker = Some(waker.clone());
                return Poll::Pending;
            }
        };
        Poll::Ready(end)
    }

    /// Says that the time is over; or, if it is dropped instead, that the pool is.
    fn ender(&self) -> impl FnOnce() + Send + use<> {
        let ender = Ender(Arc::clone(&self.slot));
        move || ender.0.end(Over::Time)
    }
}

struct Ender(Arc<Slot>);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.end(Over::Pool);
    }
}

impl Waiting {
    /// In a child made by fork, where a lock that another thread had stays locked: nothing is done at the end.
    fn abandon(&mut self) {
        self.number = NOBODY;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.number != NOBODY {
            self.requests.lock().remove(&self.number);
        }
    }
}

/// Why a request has no reply.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody subscribes to the key. It is known at once.
    NoResponders,
    /// Whoever subscribes has not taken it: mailboxes are full, or subscriptions suspended. It is known at
    /// once.
    Refused(Receipt),
    /// The time ran out. A reply may come still; nobody gets it.
    TimedOut,
    /// It was not published, or could not be waited for.
    Hub(Error),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponders => f.write_str("nobody subscribes to the key of the request"),
            Self::Refused(receipt) => {
                write!(f, "none of {} subscriptions has taken the request", receipt.matched)
            }
            Self::TimedOut => f.write_str("no reply came in time"),
            Self::Hub(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Hub(error)
    }
}

/// A reply that is under way: wait for it, or await it. Dropping it gives the request up.
#[must_use = "dropping it gives the request up"]
pub struct PendingReply {
    core: Arc<Core>,
    waiting: Waiting,
    /// None: in more time than there will be.
    until: Option<Instant>,
    /// It wakes whoever awaits it.
    timer: Option<Timer>,
}

impl Hub {
    /// Publishes a request, and waits for up to `timeout` for the reply of whoever is first. It may wait in
    /// handlers and tasks of the pool.
    ///
    /// # Errors
    /// [`RequestError`]; with [`Error::WouldDeadlock`] in it on a thread of the pool if no other one is left.
    pub fn request(
        &self,
        key: impl ToKey,
        payload: impl Into<Payload>,
        timeout: Duration,
    ) -> Result<Stored, RequestError> {
        self.message(key).payload(payload).request(timeout)?.wait()
    }

    /// Replies to a request. Any thread, any number of times: the first reply counts.
    ///
    /// # Errors
    /// As [`Hub::publish`]; [`Error::Invalid`] if the message is not a request.
    pub fn reply(&self, request: &Stored, payload: impl Into<Payload>) -> crate::Result<Receipt> {
        match request.reply_to() {
            Some(inbox) => self.publish(inbox, payload),
            None => {
                Err(Error::invalid("the message", "not a request", "one with a Reply-To header"))
            }
        }
    }

    /// How many requests wait for their replies, none in a child made by fork; and how many replies came too late, or
    /// twice.
    pub fn request_counts(&self) -> (usize, u64) {
        let requests = &self.core.requests;
        (if self.core.shared.is_forked() { 0 } else { requests.len() }, requests.late())
    }

    /// Subscribes to the inboxes, before the first request.
    fn open_inboxes(&self) -> crate::Result<()> {
        // Before any lock, which stays locked in a child made by fork if another thread had it.
        self.core.check_open()?;
        let requests = &self.core.requests;
        let mut subscribed = requests.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if !*subscribed {
            let (replies, core) = (Arc::clone(requests), Weak::clone(&self.core.me));
            let builder = self.subscription(INBOXES).execution(Execution::Inline);
            let subscription = builder.serve_shared(move |reply: &Message<'_>| {
                if let Some(Reached::Function(ended)) = replies.reply(reply.stored())
                    && let Some(core) = core.upgrade()
                {
                    core.end_request(ended);
                }
            })?;
            subscription.detach();
            *subscribed = true;
        }
        Ok(())
    }
}

impl<K: ToKey> Publication<'_, K> {
    /// Publishes a request. It does not wait for room: its time is for the reply. One who has taken it is enough.
    fn publish_request(self) -> crate::Result<Receipt> {
        let published = self.no_wait().publish();
        Receipt::of(&published).map_or(published, Ok)
    }

    /// Publishes it as a request, whose reply is waited for up to `timeout` from now. The header `Reply-To`
    /// is added.
    ///
    /// # Errors
    /// [`RequestError`]
    pub fn request(self, timeout: Duration) -> Result<PendingReply, RequestError> {
        let (hub, headers) = (self.hub, self.terms.headers.clone());
        hub.open_inboxes()?;
        let waiting = hub.core.requests.open();
        let inbox = waiting.inbox();
        let own = core::iter::once((REPLY_TO, &*inbox));
        let headers = Headers::new(own.chain(headers.iter()))?;
        let until = Instant::now().checked_add(timeout);
        match self.headers(headers).publish_request()? {
            Receipt { matched: 0, .. } => Err(RequestError::NoResponders),
            receipt @ Receipt { enqueued: 0, .. } => Err(RequestError::Refused(receipt)),
            _ => Ok(PendingReply { core: Arc::clone(&hub.core), waiting, until, timer: None }),
        }
    }
}

impl<K: ToKey> Publication<'_, K> {
    /// As [`request`](Self::request), and waits for nothing: a thread of the pool calls the function, once, with
    /// the reply or with [`RequestError::TimedOut`]. It may be called before this returns. If this is refused,
    /// it is never called; nor if the request is [given up](Asked::give_up), or the hub or its pool ends first.
    ///
    /// # Errors
    /// [`RequestError`], but not `TimedOut`.
    pub fn request_then(
        self,
        timeout: Duration,
        function: impl FnOnce(Result<Stored, RequestError>) + Send + 'static,
    ) -> Result<Asked, RequestError> {
        self.request_with(timeout, Box::new(function), false)
    }

    /// As [`request_then`](Self::request_then), for a function that never waits and calls nobody: whoever replies
    /// calls it.
    #[cfg(feature = "capi")]
    pub(crate) fn request_told(
        self,
        timeout: Duration,
        function: impl FnOnce(Result<Stored, RequestError>) + Send + 'static,
    ) -> Result<Asked, RequestError> {
        self.request_with(timeout, Box::new(function), true)
    }

    fn request_with(
        self,
        timeout: Duration,
        function: Function,
        is_own: bool,
    ) -> Result<Asked, RequestError> {
        let (hub, headers) = (self.hub, self.terms.headers.clone());
        hub.open_inboxes()?;
        let requests = &hub.core.requests;
        let asked =
            Asked { core: Weak::clone(&hub.core.me), number: requests.open_with(function, is_own) };
        let inbox = format!("{INBOX}{}", asked.number);
        let own = core::iter::once((REPLY_TO, &*inbox));
        let refused = |error: RequestError| match asked.give_up() {
            // Nobody has answered meanwhile.
            true => Err(error),
            false => Ok(()),
        };
        let headers = match Headers::new(own.chain(headers.iter())) {
            Ok(headers) => headers,
            Err(error) => return refused(error.into()).map(|()| asked),
        };
        if let Err(error) = asked.arm(timeout) {
            return refused(error.into()).map(|()| asked);
        }
        match self.headers(headers).publish_request() {
            Err(error) => refused(error.into())?,
            Ok(Receipt { matched: 0, .. }) => refused(RequestError::NoResponders)?,
            Ok(receipt @ Receipt { enqueued: 0, .. }) => refused(RequestError::Refused(receipt))?,
            Ok(_) => {}
        }
        Ok(asked)
    }
}

/// A request whose function is still to be called; see [`Publication::request_then`]. Dropping this changes
/// nothing.
#[derive(Clone)]
pub struct Asked {
    core: Weak<Core>,
    number: u64,
}

impl Asked {
    /// Gives the request up. True: its function will never be called, and was dropped here. False: it is
    /// being called, or was, or the hub has ended, or this is a child made by fork. Any thread; it never waits.
    pub fn give_up(&self) -> bool {
        let core = self.core.upgrade().filter(|core| !core.shared.is_forked());
        let taken = core.and_then(|core| core.requests.take(self.number));
        let Some(Then { timer, function, is_own: _ }) = taken else { return false };
        if let Some(timer) = timer {
            let _gone_off = timer.cancel();
        }
        drop(function);
        true
    }

    /// Its number; no other request of its hub has it, or had.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Ends its time, unless that is more than there will be.
    fn arm(&self, timeout: Duration) -> crate::Result<()> {
        let Some(core) = self.core.upgrade().filter(|_| timeout <= MAX_DELAY) else {
            return Ok(());
        };
        let (me, number) = (Weak::clone(&self.core), self.number);
        let over = move || {
            if let Some(ended) = me.upgrade().and_then(|core| core.requests.expire(number)) {
                // A timer's work is on the pool already.
                ended.call();
            }
        };
        let armed = Timer::after(&core.shared, timeout, over, |_| ());
        if let Some(late) = core.requests.time(number, armed.map_err(|(error, _)| error)?) {
            let _gone_off = late.cancel();
        }
        Ok(())
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Hub {
    /// Gives up a request by its [number](Asked::number): see [`Asked::give_up`].
    pub fn give_up(&self, number: u64) -> bool {
        Asked { core: Weak::clone(&self.core.me), number }.give_up()
    }
}

impl Core {
    /// Has the function of a request called, on the pool.
    fn end_request(&self, ended: Ended) {
        self.call(self.ready.push(Work::Reply(ended)));
    }
}

impl Stored {
    /// The key to reply with, if it is a request.
    pub fn reply_to(&self) -> Option<&str> {
        self.headers.get(REPLY_TO)
    }
}

impl PendingReply {
    /// Waits for the reply, for as long as the request allows.
    ///
    /// # Errors
    /// [`RequestError::TimedOut`]; in [`RequestError::Hub`] [`Error::WouldDeadlock`], [`Error::ShutDown`] when
    /// the pool ends first, or [`Error::Forked`].
    pub fn wait(self) -> Result<Stored, RequestError> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked.into());
        }
        if let Some(reply) = self.waiting.reply() {
            return Ok(reply);
        }
        let shared = &*self.core.shared;
        let is_own = |other: &pool::Shared| core::ptr::eq(other, shared);
        pool::blocking(is_own, || self.waiting.wait(self.until, || shared.must_stop()))?
    }

    /// Has whoever awaits it woken when its time is over, or the pool is.
    fn arm(&mut self) -> Result<(), RequestError> {
        if self.timer.is_some() {
            return Ok(());
        }
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let left = self.until.map_or(MAX_DELAY, left).min(MAX_DELAY);
        let timer = Timer::after(&self.core.shared, left, self.waiting.ender(), |_| ());
        self.timer = Some(timer.map_err(|(error, _)| error)?);
        Ok(())
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if self.core.shared.is_forked() {
            self.waiting.abandon();
        }
        if let Some(timer) = self.timer.take() {
            timer.cancel();
        }
    }
}

impl Future for PendingReply {
    type Output = Result<Stored, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.core.shared.is_forked() {
            // Its timer is the parent's.
            return Poll::Ready(Err(Error::Forked.into()));
        }
        match self.waiting.poll(context.waker()) {
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending => match self.arm() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReply").field("inbox", &self.waiting.inbox()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::key::Key;
    use super::super::message::{Headers, Payload, Priority};
    use super::*;

    fn message(key: &str, payload: &str) -> Stored {
        Stored {
            sequence: 1,
            time: 1,
            key: Key::detached(key),
            headers: Headers::NONE,
            payload: payload.into(),
            priority: Priority::Normal,
        }
    }

    #[test]
    fn the_first_reply_is_the_answer_and_others_are_late() {
        let requests = Arc::new(Requests::default());
        let (first, second) = (requests.open(), requests.open());
        assert_eq!(requests.len(), 2);
        assert!(requests.reply(&message(&second.inbox(), "b")).is_some());
        assert!(requests.reply(&message(&second.inbox(), "c")).is_none());
        assert!(requests.reply(&message("_INBOX.x", "c")).is_none());
        assert!(requests.reply(&message("_INBOX.99", "c")).is_none());
        assert_eq!(second.reply().unwrap().payload(), &Payload::from("b"));
        assert_eq!(first.reply(), None);
        let inbox = first.inbox();
        drop((first, second));
        assert!(requests.reply(&message(&inbox, "d")).is_none());
        assert_eq!((requests.len(), requests.late()), (0, 4));
    }

    #[test]
    fn replies_reach_those_who_wait_and_no_others() {
        const REQUESTS: usize = 200;
        let requests = Arc::new(Requests::default());
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel::<String>();
            let replies = Arc::clone(&requests);
            scope.spawn(move || {
                let inboxes: Vec<String> = told.iter().take(2 * REQUESTS).collect();
                for inbox in inboxes.iter().rev() {
                    assert!(replies.reply(&message(inbox, inbox)).is_some());
                }
            });
            for _ in 0..2 {
                let (tell, requests) = (tell.clone(), Arc::clone(&requests));
                scope.spawn(move || {
                    let open: Vec<Waiting> = (0..REQUESTS).map(|_| requests.open()).collect();
                    open.iter().for_each(|waiting| tell.send(waiting.inbox()).unwrap());
                    for waiting in open {
                        let reply = waiting.wait(None, || false).unwrap();
                        assert_eq!(reply.payload(), &Payload::from(waiting.inbox()));
                    }
                });
            }
        });
        assert_eq!((requests.len(), requests.late()), (0, 0));
    }

    #[test]
    fn a_waker_is_woken_by_the_reply_and_by_the_time_and_by_the_end() {
        struct Count(AtomicU64);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let requests = Arc::new(Requests::default());
        let waiting = requests.open();
        assert!(waiting.poll(&waker).is_pending());
        (waiting.ender())();
        assert_eq!(count.0.load(Relaxed), 1);
        assert!(matches!(waiting.poll(&waker), Poll::Ready(Err(RequestError::TimedOut))));
        let waiting = requests.open();
        assert!(waiting.poll(&waker).is_pending());
        drop(waiting.ender());
        assert_eq!(count.0.load(Relaxed), 2);
        let end = waiting.poll(&waker);
        assert!(matches!(end, Poll::Ready(Err(RequestError::Hub(Error::ShutDown)))));
        let waiting = requests.open();
        assert!(waiting.poll(&waker).is_pending());
        assert!(requests.reply(&message(&waiting.inbox(), "b")).is_some());
        assert_eq!(count.0.load(Relaxed), 3);
        assert!(matches!(waiting.poll(&waker), Poll::Ready(Ok(_))));
    }
}
