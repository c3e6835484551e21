//! The queue as Rust has it: entries are values, and completed when they are dropped.

use super::entry::{Entry, EntryKind};
use super::list::Attachment;
use super::mail::Mail;
use super::queue::{Core, Promise};
use super::source::{Conns, Datagrams, Mailed, Source, Tasks};
use crate::error::{Rejected, Result};
use crate::hub::history::ReplayMailbox;
use crate::hub::{HostMailbox, Mailbox};
use crate::net::{Server, ServerBuilder, UdpBuilder, UdpSocket, Wanted};
use crate::pool::{Handle, HandleOptions, Pool, Timer};
use crate::task::{Attempts, TaskHandle, WorkerPool};
use core::fmt;
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A queue that sources put what happens into, as data, for threads of the program's own. Clones are the same queue. All
/// methods may be called by any thread; several threads may wait, and each entry goes to one of them.
///
/// ```
/// use paceline::{Pool, cq::{CompletionQueue, EntryKind}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let queue = CompletionQueue::new(&Pool::new()?)?;
/// queue.after(Duration::from_millis(1), 7)?;
/// let mut entries = Vec::new();
/// queue.wait(&mut entries, 32, Duration::from_secs(10))?;
/// assert!(entries[0].tag == 7 && matches!(entries[0].kind, EntryKind::Event(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CompletionQueue {
    core: Arc<Core>,
    pool: Pool,
}

impl CompletionQueue {
    /// A queue for a pool and all that stands on it. In a pool without threads of its own, threads that wait are its
    /// threads meanwhile.
    ///
    /// # Errors
    /// [`Error::ShutDown`](crate::Error::ShutDown), [`Error::Forked`](crate::Error::Forked).
    pub fn new(pool: &Pool) -> Result<Self> {
        Ok(Self { core: Core::new(pool.shared(), false)?, pool: pool.clone() })
    }

    /// Appends up to `most` entries (messages that come together are one) to `entries`, and waits for the first for up
    /// to `time`; says how many came, 0 if none did in time. Sources take turns; the entries of one come in its order.
    ///
    /// # Errors
    /// [`Error::ShutDown`](crate::Error::ShutDown) when it was closed, or its pool has stopped and all sources have ended. [`Error::Invalid`](crate::Error::Invalid) for
    /// a `most` of 0. [`Error::WouldDeadlock`](crate::Error::WouldDeadlock) on a thread of the pool, unless `time` is zero. [`Error::Full`](crate::Error::Full) when
    /// `max_joined` threads are in a pool without threads. [`Error::Forked`](crate::Error::Forked).
    pub fn wait(&self, entries: &mut Vec<Entry>, most: usize, time: Duration) -> Result<usize> {
        self.core.wait(entries, most, time)
    }

    /// A descriptor that is readable while a wait would not sleep. It belongs to the queue: never read it.
    ///
    /// # Errors
    /// [`Error::Os`](crate::Error::Os) if there are no descriptors left, [`Error::Forked`](crate::Error::Forked).
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        self.core.descriptor()
    }

    /// Nothing is brought any more, and every thread that waits is told.
    pub fn close(&self) {
        self.core.close();
    }

    /// As [`Pool::register_with`]: entries say when `io` is ready. An edge-triggered descriptor must have been read until
    /// EAGAIN before an entry is completed.
    ///
    /// # Errors
    /// As there.
    pub fn register<S>(&self, io: S, options: HandleOptions, tag: u64) -> Result<Handle<S>>
    where
        S: AsFd + Send + 'static,
    {
        self.pool.register_for(&self.core.events, io, options, tag)
    }

    /// As [`Pool::every`]. Ticks that come while one is not completed are skipped.
    ///
    /// # Errors
    /// As there.
    pub fn every(&self, period: Duration, tag: u64) -> Result<Handle<()>> {
        self.pool.every_for(&self.core.events, period, tag)
    }

    /// As [`Pool::after`].
    ///
    /// # Errors
    /// As there.
    pub fn after(&self, delay: Duration, tag: u64) -> Result<Timer> {
        self.pool.after_for(&self.core.events, delay, tag)
    }

    /// Posts tags, in order, each of which comes as an entry. Never waits. As many as a lane has room for may lie there; in
    /// the pool's counters they are tasks.
    ///
    /// # Errors
    /// [`Rejected`] says how many were accepted before the refusal.
    pub fn post(&self, tags: &[u64]) -> core::result::Result<(), Rejected<usize>> {
        self.pool.post_for(&self.core.events, tags)
    }

    /// Wakes one thread that waits, or the next that would: `tag` comes as an entry, as one that was posted. But it is no task:
    /// it is in no counter of the pool, and a drain does not wait for it. For a program that calls its threads to a list of
    /// its own. It is never refused for want of room: wake once for each thread that sleeps, not for each thing to do.
    ///
    /// # Errors
    /// [`Error::ShutDown`](crate::Error::ShutDown) when the queue was closed, or its pool has stopped; [`Error::Forked`](crate::Error::Forked).
    pub fn wake(&self, tag: u64) -> Result<()> {
        self.core.wake(tag)
    }

    /// Starts a server whose connections come as entries. `wanted` says which of their events besides data.
    ///
    /// # Errors
    /// As [`ServerBuilder::serve`].
    pub fn serve(&self, server: ServerBuilder, wanted: Wanted, tag: u64) -> Result<Server> {
        let (server, host) = server.serve_to_host(wanted)?;
        self.attach(tag, Arc::new(Conns(Arc::clone(&host))), |to| host.outbox.listen(to))?;
        Ok(server)
    }

    /// Opens a datagram socket whose datagrams come as entries. Of what nobody has taken up to `max_waiting` bytes are
    /// kept, 128 for each datagram included: 1024 to 2^40; datagrams beyond that are dropped, and counted.
    ///
    /// # Errors
    /// As [`UdpBuilder::serve`].
    pub fn bind(&self, socket: UdpBuilder, max_waiting: usize, tag: u64) -> Result<UdpSocket> {
        let (socket, host) = socket.serve_to_host(max_waiting)?;
        self.attach(tag, Arc::new(Datagrams(Arc::clone(&host))), |to| host.outbox.listen(to))?;
        Ok(socket)
    }

    /// Attempts of tasks that were made by [`TaskType::task_tagged`](crate::task::TaskType::task_tagged) come as entries
    /// with the tags of their tasks, in the order of lanes; and so do ends of such tasks that are not the answer to a
    /// completion.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if they go to another queue; [`Error::Forked`](crate::Error::Forked).
    pub fn workers(&self, workers: &WorkerPool, tag: u64) -> Result<()> {
        let attempts = Arc::new(Attempts::of(workers)?);
        let source = Arc::new(Tasks(Arc::clone(&attempts)));
        self.attach(tag, source, |to| attempts.listen(to))
    }

    /// The end of a task comes as an entry, at once if it has ended.
    pub fn task<T: Send + 'static>(&self, task: &TaskHandle<T>, tag: u64) {
        let promise = Promise::new(&self.core, tag);
        task.on_end(move |status| promise.tell(EntryKind::TaskEnded { task: 0, status }));
    }

    /// Messages of a mailbox come as entries, until it is dropped.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if it is attached already, or its descriptor was asked for.
    pub fn mailbox(&self, mailbox: &Arc<Mailbox>, tag: u64) -> Result<()> {
        self.mail(Arc::<Mailbox>::clone(mailbox), tag)
    }

    /// As [`mailbox`](Self::mailbox), for a replay.
    ///
    /// # Errors
    /// As there.
    pub fn replay(&self, replay: &Arc<ReplayMailbox>, tag: u64) -> Result<()> {
        self.mail(Arc::<ReplayMailbox>::clone(replay), tag)
    }

    fn mail(&self, mailbox: Arc<dyn HostMailbox>, tag: u64) -> Result<()> {
        let source = Arc::new(Mailed::new(Mail::of(&mailbox)));
        self.attach(tag, source, |to| mailbox.listen(to))
    }

    fn attach(
        &self,
        tag: u64,
        source: Arc<dyn Source>,
        listen: impl FnOnce(Arc<Attachment>) -> bool,
    ) -> Result<()> {
        self.core.attach_new(tag, source, listen)
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue").finish_non_exhaustive()
    }
}
