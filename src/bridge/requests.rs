//! Requests across the broker.
//!
//! A request of this hub goes out with a reply subject of the bridge's own, under which its inbox in the hub is noted.
//! A message from elsewhere that has a reply subject is a request in the hub, whose reply goes back there. That nobody
//! is there to reply is said at once, by the broker, or by a member of a group whose hub has no subscription for it;
//! it is said with the headers that NATS services have for errors.

use super::session::{Lost, Session, taken};
use super::shared::Exporting;
use super::stats::count;
use super::wire::{bytes_of, headers_of, is_imported, read, subject_of};
use crate::hub::{RequestError, Stored};
use async_nats::{Client, HeaderMap, Message, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use futures_util::StreamExt;
use std::collections::HashMap;
use tokio::sync::mpsc;

/// How many requests may wait for replies in each direction.
const MOST: usize = 10_000;
const ERROR_CODE: &str = "Nats-Service-Error-Code";
const ERROR: &str = "Nats-Service-Error";
const NO_RESPONDERS: &str = "503";

/// Those of one connection.
pub(super) struct Requests {
    /// What subjects of replies begin with.
    prefix: String,
    last: Cell<u64>,
    /// The inboxes in the hub.
    out: RefCell<HashMap<u64, String>>,
    replies: RefCell<Option<Subscriber>>,
    answer: mpsc::UnboundedSender<Answer>,
    answers: RefCell<Option<mpsc::UnboundedReceiver<Answer>>>,
}

/// To whom, and what; None: nothing is said.
type Answer = (Subject, Option<Result<Stored, RequestError>>);

impl Requests {
    pub(super) async fn new(client: &Client) -> Result<Self, Lost> {
        let prefix = format!("{}.", client.new_inbox());
        let replies = client.subscribe(format!("{prefix}*")).await?;
        let (answer, answers) = mpsc::unbounded_channel();
        Ok(Self {
            prefix,
            last: Cell::new(0),
            out: RefCell::default(),
            replies: RefCell::new(Some(replies)),
            answer,
            answers: RefCell::new(Some(answers)),
        })
    }

    /// Sends a request of the hub.
    pub(super) async fn send(
        &self,
        session: &Session<'_>,
        exporting: &Exporting,
        message: &Stored,
        inbox: &str,
    ) -> Result<(), Lost> {
        let (hub, counters) = (&session.shared.hub, &exporting.counters);
        if is_imported(message) {
            // It came from elsewhere, and would go back.
            count(&counters.turned_back);
            hub.refuse_request(inbox);
            return Ok(());
        }
        if !self.has_room(session) {
            count(&counters.refused);
            hub.refuse_request(inbox);
            return Ok(());
        }
        if !hub.awaits_reply(inbox) {
            // It has waited here for longer than whoever asked.
            count(&counters.late);
            return Ok(());
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        self.out.borrow_mut().insert(number, inbox.to_owned());
        session.shared.requests_out.store(self.out.borrow().len() as u64, Relaxed);
        let reply = format!("{}{number}", self.prefix);
        let headers = headers_of(message, "", &session.shared.origin, None);
        let payload = bytes_of(message.payload());
        let subject = subject_of(&exporting.rule.prefix, message);
        let client = &session.client;
        let sent = client.publish_with_reply_and_headers(subject, reply, headers, payload).await;
        if taken(sent)? {
            count(&counters.passed);
        } else {
            count(&counters.refused);
            self.out.borrow_mut().remove(&number);
            hub.refuse_request(inbox);
        }
        Ok(())
    }

    /// Whether one more may wait: those that nobody waits for any more are forgotten first.
    fn has_room(&self, session: &Session<'_>) -> bool {
        let mut out = self.out.borrow_mut();
        if out.len() >= MOST {
            out.retain(|_, inbox| session.shared.hub.awaits_reply(inbox));
        }
        out.len() < MOST
    }

    /// Brings replies to those who wait for them.
    pub(super) async fn receive(&self, session: &Session<'_>) -> Result<(), Lost> {
        let replies = self.replies.borrow_mut().take();
        let Some(mut replies) = replies else { return Ok(()) };
        while let Some(reply) = replies.next().await {
            let number = reply.subject.strip_prefix(self.prefix.as_str());
            let number = number.and_then(|text| text.parse::<u64>().ok());
            let inbox = number.and_then(|number| self.out.borrow_mut().remove(&number));
            session.shared.requests_out.store(self.out.borrow().len() as u64, Relaxed);
            if let Some(inbox) = inbox {
                bring(session, &inbox, &reply);
            }
        }
        Err(Lost("the replies have ended".into()))
    }

    /// A message from elsewhere that wants a reply.
    pub(super) fn ask(
        &self,
        session: &Session<'_>,
        (key, payload): (&str, &[u8]),
        incoming: super::wire::Incoming,
        reply: Subject,
        (timeout, is_in_group): (Duration, bool),
    ) -> bool {
        let shared = session.shared;
        // A reply goes with this bridge's rights: not to what the broker itself listens to.
        if reply.starts_with('$') || shared.requests_in.load(Relaxed) >= MOST as u64 {
            return false;
        }
        shared.requests_in.fetch_add(1, Relaxed);
        let (answer, to) = (self.answer.clone(), reply.clone());
        let asked = shared
            .hub
            .message(key)
            .payload(payload)
            .headers(incoming.headers)
            .priority(incoming.priority)
            .request_told(timeout, move |end| {
                // The connection is gone, and with it who asked over it.
                let _gone = answer.send((to, Some(end)));
            });
        if let Err(error) = asked {
            let is_alone = matches!(error, RequestError::NoResponders) && !is_in_group;
            let _gone = self.answer.send((reply, (!is_alone).then_some(Err(error))));
        }
        true
    }

    /// Sends the hub's replies.
    pub(super) async fn answer(&self, session: &Session<'_>) -> Result<(), Lost> {
        let answers = self.answers.borrow_mut().take();
        let Some(mut answers) = answers else { return Ok(()) };
        session.shared.requests_in.store(0, Relaxed);
        while let Some((to, end)) = answers.recv().await {
            session.shared.requests_in.fetch_sub(1, Relaxed);
            let (headers, payload) = match end {
                None | Some(Err(RequestError::TimedOut)) => continue,
                Some(Ok(reply)) => (
                    headers_of(&reply, "", &session.shared.origin, None),
                    bytes_of(reply.payload()),
                ),
                Some(Err(error)) => (refusal(&error.to_string()), Bytes::new()),
            };
            let client = &session.client;
            if !taken(client.publish_with_headers(to.clone(), headers, payload).await)? {
                let headers = refusal("the reply is larger than the broker allows");
                client.publish_with_headers(to, headers, Bytes::new()).await?;
            }
        }
        Ok(())
    }
}

/// The headers of a reply that says why there is none.
fn refusal(reason: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ERROR_CODE, NO_RESPONDERS);
    headers.insert(ERROR, reason.replace(['\r', '\n'], " ").as_str());
    headers
}

/// A reply from elsewhere.
fn bring(session: &Session<'_>, inbox: &str, reply: &Message) {
    let hub = &session.shared.hub;
    let error = reply.headers.as_ref().and_then(|headers| headers.get(ERROR_CODE));
    if reply.status == Some(StatusCode::NO_RESPONDERS)
        || error.is_some_and(|code| code.as_str() == NO_RESPONDERS) && reply.payload.is_empty()
    {
        return hub.refuse_request(inbox);
    }
    let Ok(incoming) = read(reply.headers.as_ref(), &session.shared.origin) else {
        return hub.refuse_request(inbox);
    };
    // The inbox is served inline, so there is no mailbox to be full.
    let _ended = hub
        .message(inbox)
        .payload(&reply.payload[..])
        .headers(incoming.headers)
        .no_wait()
        .publish();
}
