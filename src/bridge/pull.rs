//! Asks a consumer of the broker for messages: for no more than there is room for, so that none waits where nobody tells the
//! broker that it is in progress.
//!
//! ```text
//!   after a standstill: another inbox
//!   IDLE ──room: a request for that many──► ASKED: so many may come still ──all have come, its time is over, refused──► IDLE
//! ```

use super::session::Lost;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{PullConsumer, pull::BatchConfig};
use async_nats::{Client, Message, StatusCode, Subject, Subscriber};
use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use futures_util::StreamExt;
use std::time::Instant;

/// How long the broker keeps a request, unless it refuses to for so long.
const EXPIRES: Duration = Duration::from_secs(30);

/// The thread did something else for longer than `ack_wait`, or the process was stopped.
struct StoodStill;

pub(super) struct Pull {
    consumer: PullConsumer,
    inbox: Subject,
    answers: Subscriber,
    /// Of the last request, so many may come still.
    asked: usize,
    /// For how many the broker lets one ask at once.
    most: usize,
    expires: Duration,
    /// When the broker was asked, or has said something, last.
    heard: Instant,
    /// After so long the broker gives a message to another of which it has not heard.
    ack_wait: Duration,
    /// When this thread looked last for what has come.
    looked: Instant,
}

impl Pull {
    pub(super) async fn new(
        context: &Context,
        consumer: PullConsumer,
        ack_wait: Duration,
    ) -> Result<Self, Lost> {
        let inbox = Subject::from(context.client().new_inbox());
        let answers = context.client().subscribe(inbox.clone()).await?;
        let (asked, most, expires, heard) = (0, 256, EXPIRES, Instant::now());
        let looked = heard;
        Ok(Self { consumer, inbox, answers, asked, most, expires, heard, ack_wait, looked })
    }

    /// After how long the broker gives a message to another of which it has not heard.
    pub(super) fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    /// There is room for so many.
    pub(super) async fn ask(&mut self, room: usize) -> Result<(), Lost> {
        if self.asked > 0 || room == 0 {
            return Ok(());
        }
        let (batch, expires) = (room.min(self.most), Some(self.expires));
        let idle_heartbeat = self.expires / 3;
        let request = BatchConfig { batch, expires, idle_heartbeat, ..BatchConfig::default() };
        self.consumer.request_batch(request, self.inbox.clone()).await?;
        (self.asked, self.heard) = (batch, Instant::now());
        Ok(())
    }

    /// The next message; None: it is time to ask again.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Option<Message>, Lost> {
        let (answers, looked, ack_wait) = (&mut self.answers, &mut self.looked, self.ack_wait);
        let come = poll_fn(|context| match looked.elapsed() > ack_wait {
            true => Poll::Ready(Err(StoodStill)),
            false => {
                *looked = Instant::now();
                answers.poll_next_unpin(context).map(Ok)
            }
        });
        // It looks though nothing comes, so that it knows when it has not.
        let Ok(come) = tokio::time::timeout(ack_wait / 10, come).await else {
            // Two of its signs of life have not come.
            return match self.asked > 0 && self.heard.elapsed() > self.expires * 2 / 3 {
                true => Err(Lost("the broker does not answer a request for messages".into())),
                false => Ok(None),
            };
        };
        let Ok(come) = come else {
            // What has come meanwhile, and lies in any buffer, may be with another by now.
            self.inbox = Subject::from(client.new_inbox());
            self.answers = client.subscribe(self.inbox.clone()).await?;
            (self.asked, self.looked) = (0, Instant::now());
            return Ok(None);
        };
        let message = come.ok_or_else(|| Lost("a stream of messages has ended".into()))?;
        self.heard = Instant::now();
        let said = message.description.as_deref().unwrap_or_default();
        let (bound, of) = said.rsplit_once(" of ").unwrap_or_default();
        match (message.status.unwrap_or(StatusCode::OK), bound, of.parse()) {
            (StatusCode::OK, ..) => {
                self.asked = self.asked.saturating_sub(1);
                return Ok(Some(message));
            }
            (StatusCode::IDLE_HEARTBEAT, ..) => return Ok(None),
            (StatusCode::TIMEOUT | StatusCode::NOT_FOUND, ..) => {}
            (StatusCode::REQUEST_TERMINATED, "Exceeded MaxRequestBatch", Ok(most @ 1..)) => {
                self.most = most;
            }
            (StatusCode::REQUEST_TERMINATED, "Exceeded MaxRequestExpires", _)
                if self.expires > Duration::from_secs(1) =>
            {
                self.expires /= 2;
            }
            (status, ..) => return Err(Lost(format!("{status} {said}"))),
        }
        self.asked = 0;
        Ok(None)
    }

    /// What has come and was not taken.
    pub(super) fn rest(&mut self) -> Vec<Message> {
        let mut rest = Vec::new();
        while let Some(Some(message)) = futures_util::FutureExt::now_or_never(self.answers.next()) {
            rest.push(message);
        }
        rest
    }
}
