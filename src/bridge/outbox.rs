//! Where the messages of an export wait for the broker: in a mailbox of the hub, or in its archive.

use super::rules::Export;
use super::spool::Spool;
use super::wire::Origin;
use crate::error::Result;
use crate::hub::{Acknowledged, HostMailbox, Hub, Mailbox, Received, Unsubscribe};
use crate::queue::Line;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// See the head of this file.
pub(super) enum Outbox {
    Memory(Mailbox),
    Spool(Box<Spool>),
}

/// Messages that were taken and are not sent.
pub(super) type Taken = VecDeque<Received>;

/// Rung by the outbox when a message may wait, or it has ended.
#[derive(Default)]
pub(super) struct Bell(pub(super) Notify);

impl Line for Bell {
    fn raise(&self) {
        self.0.notify_one();
    }

    fn lower(&self) {}
}

/// What waits, and what became of the rest.
pub(super) struct Waiting {
    pub(super) waiting: u64,
    /// At least once: taken, and not stored.
    pub(super) running: u64,
    pub(super) dropped: u64,
}

impl Outbox {
    /// From now on messages wait here, and the bell tells of each.
    pub(super) fn open(hub: &Hub, rule: &Export, bell: &Arc<Bell>) -> Result<Self> {
        let outbox = match &rule.spool {
            Some(path) => Self::Spool(Box::new(Spool::open(hub, &rule.pattern, path)?)),
            None => {
                let mailbox = hub.subscription(&rule.pattern).capacity(rule.buffer);
                let mailbox = mailbox.overflow(rule.overflow_policy());
                Self::Memory(match rule.stream {
                    Some(_) => mailbox.acknowledged().pull()?,
                    None => mailbox.pull()?,
                })
            }
        };
        outbox.mailbox().listen(Arc::<Bell>::clone(bell));
        Ok(outbox)
    }

    fn mailbox(&self) -> &dyn HostMailbox {
        match self {
            Self::Memory(mailbox) => mailbox,
            Self::Spool(spool) => &spool.replay,
        }
    }

    /// Takes what waits, up to so many, without waiting. None: nothing more comes.
    pub(super) fn take(&self, into: &mut Taken, most: usize) -> Option<usize> {
        let mut batch = Vec::new();
        let taken = match self {
            Self::Memory(mailbox) => mailbox.recv_batch(&mut batch, most),
            Self::Spool(spool) => spool.replay.recv_some(&mut batch, most),
        };
        into.extend(batch);
        taken.ok()
    }

    /// As many of those that were taken have come to their end, `last` the sequence of the last that has nothing before it
    /// that has not.
    pub(super) fn ended(&self, delivered: u64, last: Option<u64>) {
        // It may have ended: nobody counts any more.
        let done = Acknowledged { delivered, ..Acknowledged::default() };
        let _ended = self.mailbox().acknowledge(done);
        if let (Self::Spool(spool), Some(sequence)) = (self, last) {
            spool.stored(sequence);
        }
    }

    /// Nothing is to be done just now.
    pub(super) fn rest(&self) {
        if let Self::Spool(spool) = self {
            spool.note();
        }
    }

    /// What is wrong with it.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Memory(_) => None,
            Self::Spool(spool) => spool.failure(),
        }
    }

    /// Messages that are lost if nobody takes them.
    pub(super) fn at_risk(&self) -> u64 {
        let counts = self.counts();
        match self {
            Self::Memory(_) => counts.waiting + counts.running,
            Self::Spool(_) => counts.running,
        }
    }

    /// Nothing more comes here. What waits is taken first; in an archive it stays for the next bridge.
    pub(super) fn drain(&self) -> Result<()> {
        self.mailbox().unsubscribe(Unsubscribe::Drain).map(drop)
    }

    /// Nobody takes anything any more; what that makes of what waits is in the answer: it is lost.
    pub(super) fn close(&self, in_hand: u64) -> u64 {
        let (running, at_risk) = (self.counts().running, self.at_risk());
        // It may have ended.
        let _ended = self.mailbox().unsubscribe(Unsubscribe::Async);
        let discarded = Acknowledged { discarded: running, ..Acknowledged::default() };
        let _forked = self.mailbox().acknowledge(discarded);
        match self {
            Self::Memory(_) => at_risk + in_hand,
            Self::Spool(spool) => {
                spool.close();
                0
            }
        }
    }

    pub(super) fn counts(&self) -> Waiting {
        match self {
            Self::Memory(mailbox) => {
                let stats = mailbox.stats();
                Waiting {
                    waiting: stats.waiting,
                    running: stats.running,
                    dropped: stats.dropped + stats.rejected + stats.discarded,
                }
            }
            Self::Spool(spool) => {
                let stats = spool.replay.stats();
                let waiting = spool.replay.behind();
                Waiting { waiting, running: stats.running, dropped: stats.lost }
            }
        }
    }

    /// What the ids of messages are made of, if not of the hub's own origin.
    pub(super) fn ids(&self) -> Option<&Origin> {
        match self {
            Self::Memory(_) => None,
            Self::Spool(spool) => Some(&spool.ids),
        }
    }

    /// Stands for all that was published until now, for [`is_past`](Self::is_past).
    pub(super) fn mark(&self, hub: &Hub) -> u64 {
        match self {
            Self::Memory(mailbox) => mailbox.stats().matched,
            Self::Spool(_) => hub.published(),
        }
    }

    /// Whether all up to the mark has come to its end, but for `in_hand` that are taken and not sent.
    pub(super) fn is_past(&self, mark: u64, in_hand: u64) -> bool {
        match self {
            Self::Memory(mailbox) => {
                let now = mailbox.stats();
                // What was thrown away at the end waits no more, and was not sent.
                now.matched - now.waiting - now.discarded >= mark + now.running + in_hand
            }
            Self::Spool(spool) => spool.reached() >= mark || spool.replay.is_idle(),
        }
    }
}
