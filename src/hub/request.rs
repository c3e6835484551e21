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
//!      └── time over, or dropped ─────────────────────────────► gone: a reply is late from now on
//! ```
//!
//! # Invariants
//!
//! 1. The first reply is the answer; every other is counted as late, and dropped.
//! 2. A request is in the table exactly while somebody waits for it: its entry is taken out by whoever
//!    stops waiting, answered or not.
//! 3. A reply that was accepted wakes who waits: it is stored under the lock under which the waiter looks
//!    before it sleeps.

use super::message::{Headers, Message, Payload, Stored};
use super::publish::{Publication, ToKey};
use super::receipt::Receipt;
use super::subscribe::Execution;
use super::{Core, Hub};
use crate::error::Error;
use crate::pool;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::MAX_DELAY;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
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
    open: Mutex<HashMap<u64, Arc<Slot>>>,
    late: AtomicU64,
    /// The hub has subscribed to the inboxes.
    subscribed: Mutex<bool>,
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
    /// The time is over, and the waker was woken for that.
    over: bool,
}

impl Requests {
    /// Opens a request.
    pub(super) fn open(self: &Arc<Self>) -> Waiting {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        let slot = Arc::new(Slot::default());
        self.lock().insert(number, Arc::clone(&slot));
        Waiting { requests: Arc::clone(self), number, slot }
    }

    /// A message with the key of an inbox. False: nobody waits for it.
    pub(super) fn reply(&self, reply: &Stored) -> bool {
        let number = reply.key.as_str().strip_prefix(INBOX).and_then(|text| text.parse().ok());
        let slot = number.and_then(|number: u64| self.lock().get(&number).cloned());
        let accepted = slot.is_some_and(|slot| slot.answer(reply));
        if !accepted {
            self.late.fetch_add(1, Relaxed);
        }
        accepted
    }

    /// How many requests somebody waits for.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// How many replies came when nobody waited for them.
    pub(super) fn late(&self) -> u64 {
        self.late.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

    /// Waits for the reply until then; without a time, for as long as it takes.
    pub(super) fn wait(&self, until: Option<Instant>) -> Option<Stored> {
        let mut state = self.slot.lock();
        loop {
            if let Some(reply) = state.reply.clone() {
                return Some(reply);
            }
            let Some(until) = until else {
                state = self.slot.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.slot.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The reply, if it is there, or None if the time is over; else the waker is woken when one of them
    /// is.
    fn poll(&self, waker: &Waker) -> Poll<Option<Stored>> {
        let mut state = self.slot.lock();
        if state.reply.is_some() || state.over {
            return Poll::Ready(state.reply.clone());
        }
        state.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Says that the time is over.
    fn ender(&self) -> impl FnOnce() + Send + use<> {
        let slot = Arc::clone(&self.slot);
        move || {
            let mut state = slot.lock();
            state.over = true;
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.number);
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
    /// A timer wakes whoever awaits it.
    armed: bool,
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

    /// How many requests wait for their replies, and how many replies came too late, or twice.
    pub fn request_counts(&self) -> (usize, u64) {
        (self.core.requests.len(), self.core.requests.late())
    }

    /// Subscribes to the inboxes, before the first request.
    fn open_inboxes(&self) -> crate::Result<()> {
        let requests = &self.core.requests;
        let mut subscribed = requests.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if !*subscribed {
            let replies = Arc::clone(requests);
            let builder = self.subscription(INBOXES).execution(Execution::Inline);
            let subscription = builder.serve_shared(move |reply: &Message<'_>| {
                let _late = replies.reply(reply.stored());
            })?;
            subscription.detach();
            *subscribed = true;
        }
        Ok(())
    }
}

impl<K: ToKey> Publication<'_, K> {
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
        let receipt = self.headers(headers).publish()?;
        match receipt {
            Receipt { matched: 0, .. } => Err(RequestError::NoResponders),
            Receipt { enqueued: 0, .. } => Err(RequestError::Refused(receipt)),
            _ => Ok(PendingReply { core: Arc::clone(&hub.core), waiting, until, armed: false }),
        }
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
    /// [`RequestError::TimedOut`], or [`Error::WouldDeadlock`] in [`RequestError::Hub`].
    pub fn wait(self) -> Result<Stored, RequestError> {
        if let Some(reply) = self.waiting.wait(Some(Instant::now())) {
            return Ok(reply);
        }
        let is_own = |shared: &pool::Shared| core::ptr::eq(shared, &*self.core.shared);
        let reply = pool::blocking(is_own, || self.waiting.wait(self.until))?;
        reply.ok_or(RequestError::TimedOut)
    }

    /// Has whoever awaits it woken when its time is over.
    fn arm(&mut self) -> Result<(), RequestError> {
        let Some(until) = self.until.filter(|_| !self.armed) else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now()).min(MAX_DELAY);
        let timer = self.core.shared.after_or_back(left, self.waiting.ender(), |_| ());
        timer.map_err(|(error, _)| error)?;
        self.armed = true;
        Ok(())
    }
}

impl Future for PendingReply {
    type Output = Result<Stored, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.waiting.poll(context.waker()) {
            Poll::Ready(reply) => Poll::Ready(reply.ok_or(RequestError::TimedOut)),
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
        assert!(requests.reply(&message(&second.inbox(), "b")));
        assert!(!requests.reply(&message(&second.inbox(), "c")));
        assert!(!requests.reply(&message("_INBOX.x", "c")));
        assert!(!requests.reply(&message("_INBOX.99", "c")));
        assert_eq!(second.wait(None).unwrap().payload(), &Payload::from("b"));
        assert_eq!(first.wait(Some(Instant::now())), None);
        let inbox = first.inbox();
        drop((first, second));
        assert!(!requests.reply(&message(&inbox, "d")));
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
                    assert!(replies.reply(&message(inbox, inbox)));
                }
            });
            for _ in 0..2 {
                let (tell, requests) = (tell.clone(), Arc::clone(&requests));
                scope.spawn(move || {
                    let open: Vec<Waiting> = (0..REQUESTS).map(|_| requests.open()).collect();
                    open.iter().for_each(|waiting| tell.send(waiting.inbox()).unwrap());
                    for waiting in open {
                        let reply = waiting.wait(None).unwrap();
                        assert_eq!(reply.payload(), &Payload::from(waiting.inbox()));
                    }
                });
            }
        });
        assert_eq!((requests.len(), requests.late()), (0, 0));
    }

    #[test]
    fn a_waker_is_woken_by_the_reply_and_by_the_time() {
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
        assert!(waiting.poll(&waker) == Poll::Ready(None));
        let waiting = requests.open();
        assert!(waiting.poll(&waker).is_pending());
        assert!(requests.reply(&message(&waiting.inbox(), "b")));
        assert_eq!(count.0.load(Relaxed), 2);
        assert!(matches!(waiting.poll(&waker), Poll::Ready(Some(_))));
    }
}
