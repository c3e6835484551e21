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
//! Who takes a request for others, as a bridge does for those behind a broker, may find out that nobody is there to
//! reply, and *refuses* it. Have all who took it refused it, it ends with NoResponders, in the same way as by its time.
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

use crate::error::Error;
use crate::error::receipt::Receipt;
use crate::hub::message::Stored;
use crate::hub::naps::NAP;
use crate::pool::{self, Timer};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex, MutexGuard};
use core::fmt;
use core::task::{Poll, Waker};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What the keys of inboxes begin with. (NATS names them so.)
pub(in crate::hub) const INBOX: &str = "_INBOX.";
/// The header that names the inbox.
pub(in crate::hub) const REPLY_TO: &str = "Reply-To";
/// All inboxes.
pub(in crate::hub) const INBOXES: &str = "_INBOX.*";

/// All requests of a hub that somebody waits for.
#[derive(Default)]
pub(in crate::hub) struct Requests {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    late: AtomicU64,
    /// The hub has subscribed to the inboxes.
    pub(in crate::hub) subscribed: Mutex<bool>,
}

/// What a request is told the end by.
enum Open {
    Slot(Arc<Slot>),
    Function(Then),
}

/// Is called with the reply, or why there is none.
pub(in crate::hub) type Function = Box<dyn FnOnce(Result<Stored, RequestError>) + Send>;

/// The function of a request.
pub(in crate::hub) struct Then {
    pub(in crate::hub) function: Function,
    /// Ends its time, once that is known.
    pub(in crate::hub) timer: Option<Timer>,
    /// Whoever replies calls it: it is the library's, and never waits.
    pub(in crate::hub) is_own: bool,
    takers: Takers,
}

/// Those who took a request.
#[derive(Default)]
struct Takers {
    /// How many, once that is known.
    all: Option<u64>,
    /// How many of them have refused it.
    refused: u64,
}

impl Takers {
    fn have_all_refused(&self) -> bool {
        self.all.is_some_and(|all| self.refused >= all)
    }
}

/// A function, and what it is to be called with.
pub(in crate::hub) struct Ended {
    function: Function,
    with: Result<Stored, RequestError>,
}

impl Ended {
    /// On the pool. A panic is its own affair.
    pub(in crate::hub) fn call(self) {
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
    takers: Takers,
}

/// Why a request is not waited for any more.
#[derive(Clone, Copy)]
enum Over {
    Time,
    Pool,
    Refused,
}

impl Requests {
    /// Opens a request.
    pub(in crate::hub) fn open(self: &Arc<Self>) -> Waiting {
        let number = self.next();
        let slot = Arc::new(Slot::default());
        self.lock().insert(number, Open::Slot(Arc::clone(&slot)));
        Waiting { requests: Arc::clone(self), number, slot }
    }

    fn next(&self) -> u64 {
        self.last.fetch_add(1, Relaxed) + 1
    }

    /// Opens a request whose end this function is told.
    pub(in crate::hub) fn open_with(&self, function: Function, is_own: bool) -> u64 {
        let number = self.next();
        self.lock().insert(
            number,
            Open::Function(Then { function, timer: None, is_own, takers: Takers::default() }),
        );
        number
    }

    /// Its time ends by this timer, unless it has ended already: then the timer comes back.
    pub(in crate::hub) fn time(&self, number: u64, timer: Timer) -> Option<Timer> {
        match self.lock().get_mut(&number) {
            Some(Open::Function(then)) => then.timer.replace(timer),
            _ => Some(timer),
        }
    }

    /// Takes a request with a function out: whoever gets it calls or drops it.
    pub(in crate::hub) fn take(&self, number: u64) -> Option<Then> {
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
    pub(in crate::hub) fn expire(&self, number: u64) -> Option<Ended> {
        let Then { function, .. } = self.take(number)?;
        Some(Ended { function, with: Err(RequestError::TimedOut) })
    }

    /// A message with the key of an inbox: whom it has reached; None: nobody waits for it.
    pub(in crate::hub) fn reply(&self, reply: &Stored) -> Option<Reached> {
        let reached = number_of(reply.key.as_str()).and_then(|number| self.reach(number, reply));
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

    /// Whether somebody waits for the reply to a request with this inbox.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for the bridge"))]
    pub(in crate::hub) fn is_open(&self, inbox: &str) -> bool {
        number_of(inbox).is_some_and(|number| self.lock().contains_key(&number))
    }

    /// So many have taken the request. The function that is to be called then, if all of them have refused it.
    pub(in crate::hub) fn taken(&self, number: u64, by: u64) -> Option<Ended> {
        self.change(number, |takers| takers.all = Some(by))
    }

    /// One of those who took the request with this inbox has found nobody who replies.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for the bridge"))]
    pub(in crate::hub) fn refuse(&self, inbox: &str) -> Option<Ended> {
        self.change(number_of(inbox)?, |takers| takers.refused += 1)
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Takers)) -> Option<Ended> {
        let mut open = self.lock();
        match open.get_mut(&number)? {
            Open::Slot(slot) => {
                let slot = Arc::clone(slot);
                drop(open);
                let mut state = slot.lock();
                change(&mut state.takers);
                let ends = state.takers.have_all_refused();
                drop(state);
                if ends {
                    slot.end(Over::Refused);
                }
                None
            }
            Open::Function(then) => {
                change(&mut then.takers);
                let ends = then.takers.have_all_refused();
                drop(open);
                let Then { function, timer, .. } = ends.then(|| self.take(number)).flatten()?;
                if let Some(timer) = timer {
                    let _gone_off = timer.cancel();
                }
                Some(Ended { function, with: Err(RequestError::NoResponders) })
            }
        }
    }

    /// How many requests somebody waits for.
    pub(in crate::hub) fn len(&self) -> usize {
        self.lock().len()
    }

    /// How many replies came when nobody waited for them.
    pub(in crate::hub) fn late(&self) -> u64 {
        self.late.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request that an inbox belongs to.
fn number_of(inbox: &str) -> Option<u64> {
    inbox.strip_prefix(INBOX).and_then(|text| text.parse().ok())
}

/// Whom a reply has reached.
pub(in crate::hub) enum Reached {
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
        self.answered.notify_one();
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
pub(in crate::hub) struct Waiting {
    requests: Arc<Requests>,
    number: u64,
    slot: Arc<Slot>,
}

impl Waiting {
    /// The key to reply with.
    pub(in crate::hub) fn inbox(&self) -> String {
        format!("{INBOX}{}", self.number)
    }

    /// So many have taken the request.
    pub(in crate::hub) fn taken_by(&self, takers: u64) {
        let _a_function = self.requests.taken(self.number, takers);
    }

    /// The reply, if it is there.
    pub(in crate::hub) fn reply(&self) -> Option<Stored> {
        self.slot.lock().reply.clone()
    }

    /// Waits for the reply until then, without a time for as long as it takes, but not beyond the pool's end.
    pub(in crate::hub) fn wait(
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
            if let Some(Over::Refused) = state.over {
                return Err(RequestError::NoResponders);
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
    pub(in crate::hub) fn poll(&self, waker: &Waker) -> Poll<Result<Stored, RequestError>> {
        let mut state = self.slot.lock();
        let end = match (&state.reply, state.over) {
            (Some(reply), _) => Ok(reply.clone()),
            (None, Some(Over::Time)) => Err(RequestError::TimedOut),
            (None, Some(Over::Pool)) => Err(Error::ShutDown.into()),
            (None, Some(Over::Refused)) => Err(RequestError::NoResponders),
            (None, None) => {
                state.waker = Some(waker.clone());
                return Poll::Pending;
            }
        };
        Poll::Ready(end)
    }

    /// Says that the time is over; or, if it is dropped instead, that the pool is.
    pub(in crate::hub) fn ender(&self) -> impl FnOnce() + Send + use<> {
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
    pub(in crate::hub) fn abandon(&mut self) {
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
    /// Nobody subscribes to the key: neither here, which is known at once, nor behind a bridge that the request was sent
    /// over, which the broker knows.
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

impl Stored {
    /// The key to reply with, if it is a request.
    pub fn reply_to(&self) -> Option<&str> {
        self.headers.get(REPLY_TO)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hub::keys::key::Key;
    use crate::hub::message::{Headers, Payload, Priority};

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
