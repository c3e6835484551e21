//! Requests of a hub: how they are sent, waited for, given up, and replied to.

use crate::error::Error;
use crate::error::receipt::Receipt;
use crate::hub::core::{Core, Work};
use crate::hub::handle::Hub;
use crate::hub::mailbox::rules::Execution;
use crate::hub::message::{Headers, Message, Payload, Stored};
use crate::hub::publish::publishing::{Publication, ToKey};
use crate::hub::request::requests::{
    Ended, Function, INBOX, INBOXES, REPLY_TO, Reached, RequestError, Then, Waiting,
};
use crate::pool::{self, Timer};
use crate::time::MAX_DELAY;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Instant;

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
                    end_request(&core, ended);
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
        let (hub, headers) = (self.hub, self.options.headers.clone());
        hub.open_inboxes()?;
        let waiting = hub.core.requests.open();
        let inbox = waiting.inbox();
        let own = core::iter::once((REPLY_TO, &*inbox));
        let headers = Headers::new(own.chain(headers.iter()))?;
        let until = Instant::now().checked_add(timeout);
        match self.headers(headers).publish_request()? {
            Receipt { matched: 0, .. } => Err(RequestError::NoResponders),
            receipt @ Receipt { enqueued: 0, .. } => Err(RequestError::Refused(receipt)),
            receipt => {
                waiting.taken_by(receipt.enqueued);
                Ok(PendingReply { core: Arc::clone(&hub.core), waiting, until, timer: None })
            }
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
        let (hub, headers) = (self.hub, self.options.headers.clone());
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
            Ok(receipt) => {
                if let Some(ended) = requests.taken(asked.number, receipt.enqueued) {
                    end_request(&hub.core, ended);
                }
            }
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
        let Some(Then { timer, function, .. }) = taken else { return false };
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

/// Has the function of a request called, on the pool.
pub(in crate::hub) fn end_request(core: &Core, ended: Ended) {
    core.call(core.ready.push(Work::Reply(ended)));
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
