//! What a completion queue gives.

use super::mail::Mail;
use crate::error::Result;
use crate::hub::{Messages, Stored};
use crate::net::{ConnEvent, UdpEvent};
use crate::pool::{Event, EventKind, Flow, HandleId, Shared, complete};
use crate::task::{AttemptId, Attempts, Fault, Status, TaskEvent};
use core::fmt;
use std::sync::Arc;

/// One thing that happened, and the tag of its source.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// What was given when the source was attached, or the tag was posted.
    pub tag: u64,
    /// What happened.
    pub kind: EntryKind,
}

impl Entry {
    pub(crate) fn new(tag: u64, kind: EntryKind) -> Self {
        Self { tag, kind }
    }
}

/// What happened. Dropping it completes it, with the answer of a handler that says nothing: the descriptor is watched
/// on, all bytes of the connection are consumed, the messages are dealt with. A dropped attempt has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EntryKind {
    /// A descriptor is ready, or a timer is due, or a tag was posted.
    Event(Held),
    /// Something happened to a connection.
    Conn(ConnEvent),
    /// Something came to a datagram socket.
    Datagram(UdpEvent),
    /// An attempt of a worker pool's task has begun.
    Attempt(OpenAttempt),
    /// A task has ended otherwise than by the completion of an attempt, or was asked about.
    TaskEnded {
        /// The task's number; 0 for one that was asked about.
        task: u64,
        /// How it ended.
        status: Status,
    },
    /// Up to 256 messages that were taken together.
    Messages(MessageBatch),
    /// The source brings nothing more.
    Ended,
    /// What only the C interface has.
    #[cfg(feature = "capi")]
    #[doc(hidden)]
    Internal(super::internal::Internal),
}

/// An event of the pool. A descriptor's or periodic timer's next comes after this one was completed. Dropping it
/// completes it with [`Flow::Wait`].
pub struct Held {
    event: Event,
    /// Where its handle is; None: nothing is held.
    shared: Option<Arc<Shared>>,
}

impl Held {
    pub(super) fn new(event: Event, shared: &Arc<Shared>) -> Self {
        let shared = event.handle.map(|_| Arc::clone(shared));
        Self { event, shared }
    }

    /// What happened.
    pub fn kind(&self) -> EventKind {
        self.event.kind
    }

    /// What is held until it is completed: a descriptor's or periodic timer's handle.
    pub fn handle(&self) -> Option<HandleId> {
        self.event.handle.map(HandleId)
    }

    /// Completes it with the answer of a handler.
    pub fn complete(mut self, flow: Flow) {
        self.end(flow);
    }

    fn end(&mut self, flow: Flow) {
        if let (Some(handle), Some(shared)) = (self.event.handle.take(), self.shared.take())
            && !shared.is_forked()
        {
            complete(&shared, handle, self.event.kind, flow);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end(Flow::Wait);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.event).finish()
    }
}

/// An attempt that is out. Its task runs until it is completed; dropping it is a failure.
pub struct OpenAttempt {
    attempts: Option<Arc<Attempts>>,
    id: AttemptId,
    task: u64,
    number: u32,
}

impl OpenAttempt {
    /// None: it is the end of a task.
    pub(super) fn new(
        attempts: &Arc<Attempts>,
        event: TaskEvent,
    ) -> core::result::Result<Self, EntryKind> {
        match event {
            TaskEvent::Attempt { id, task, number, .. } => {
                Ok(Self { attempts: Some(Arc::clone(attempts)), id, task, number })
            }
            TaskEvent::End { task, status, .. } => Err(EntryKind::TaskEnded { task, status }),
        }
    }

    /// The task's number, as in its report.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// 1 for the first attempt.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Completes it, and says what its task is then: `Completed`, `Failed`, `Cancelled`, `TimedOut`, or `Retrying` if
    /// another attempt will come. Any thread, never waits.
    ///
    /// # Errors
    /// [`Error::Stale`](crate::Error::Stale) if its task has ended meanwhile, or its lease; [`Error::Forked`](crate::Error::Forked).
    pub fn complete(mut self, result: core::result::Result<(), Fault>) -> Result<Status> {
        let attempts = self.attempts.take().expect("taken here and when it is dropped");
        attempts.complete(self.id, result)
    }

    /// Whether it should be given up: its task was cancelled, its time is over, or the worker pool stops.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn is_cancelled(&self) -> Result<bool> {
        self.source().is_cancelled(self.id)
    }

    /// It still makes progress: its time and its lease begin anew.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn heartbeat(&self) -> Result<()> {
        self.source().heartbeat(self.id)
    }

    fn source(&self) -> &Attempts {
        self.attempts.as_ref().expect("taken when it is gone")
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        if let Some(attempts) = self.attempts.take() {
            let fault =
                Fault::new("nobody has completed the attempt that a completion queue brought");
            // Its task may have ended, or this is a child made by fork.
            let _stale = attempts.complete(self.id, Err(fault));
        }
    }
}

impl fmt::Debug for OpenAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAttempt")
            .field("task", &self.task)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Messages that were taken together of a mailbox or a replay. They count as delivered.
pub struct MessageBatch {
    pub(crate) messages: Messages,
    pub(crate) len: usize,
    pub(crate) mail: Mail,
}

impl MessageBatch {
    /// Every message, in order, and how many the subscription has lost before it.
    pub fn messages(&self) -> Vec<(&Stored, u64)> {
        let mut all = Vec::with_capacity(self.len());
        self.messages.for_each(|message, lost_before| all.push((message, lost_before)));
        all
    }

    /// How many there are, 1 to 256.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes one of them a dead letter of the subscription, as [`Mailbox::bury`](crate::hub::Mailbox::bury) does.
    ///
    /// # Errors
    /// As there; [`Error::Stale`](crate::Error::Stale) if the mailbox is gone.
    pub fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()> {
        self.mail.bury(message, failure, attempts)
    }
}

impl fmt::Debug for MessageBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBatch").field("len", &self.len()).finish_non_exhaustive()
    }
}
