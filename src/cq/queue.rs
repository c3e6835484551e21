//! The list of sources that have something, and how hosts wait for it.
//!
//! # States of a source
//!
//! | state | it has something | it is listed | left by |
//! |---|---|---|---|
//! | QUIET | no | no | the first that comes: it raises the attachment |
//! | LISTED | yes, or had | once or more | a waiter, who takes it off the list |
//! | TAKEN | perhaps | no | that waiter: back to the list if it left something, else QUIET |
//! | OVER | never again | no | nobody: its last entry is [`EntryKind::Ended`](super::EntryKind::Ended) |
//!
//! # Invariants
//!
//! 1. A source that has something is listed, or with a waiter who looks after taking it off the list. Who puts the
//!    first thing in raises the attachment after that; who takes some and leaves some lists it again. Both are ordered by
//!    the source's own lock, or its word (`queue/pollable.rs`).
//! 2. No listed source lies beside waiters. In a pool with threads the list is an [`Outbox`], which calls as many as
//!    are needed. In one without the waiters are members: who lists passes a barrier and looks who is parked; who
//!    parks passes one and looks at `listed`.
//! 3. A source may be listed in vain, which costs one look.
//! 4. The queue is over when it is closed, or when its pool has stopped and every source is over.
//! 5. No lock of the queue is held while a source is asked.

use super::entry::{Entry, EntryKind};
use super::source::{Brought, Events, Notes, Source};
use crate::error::{Error, Result};
use crate::pool::{Deadline, HostOutbox, Shared, pollable, take_part};
use crate::queue::{Line, Outbox};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::store_load_barrier;
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A completion queue.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    /// The list.
    ready: Outbox<Arc<Attachment>>,
    /// How many are in the list, or about to be.
    listed: AtomicUsize,
    /// What the pool itself has for this host.
    pub(crate) events: Arc<HostOutbox>,
    /// What is told here without a source: whoever will tell something has entered.
    notes: Arc<Outbox<Entry>>,
    all: Mutex<Vec<Weak<Attachment>>>,
}

/// A source that is attached, and the tag that its entries have.
pub(crate) struct Attachment {
    tag: u64,
    core: Weak<Core>,
    me: Weak<Attachment>,
    /// The queue is not over before it is.
    counts: bool,
    /// None: it is over.
    source: Mutex<Option<Arc<dyn Source>>>,
}

impl Line for Attachment {
    fn raise(&self) {
        if let (Some(core), Some(attachment)) = (self.core.upgrade(), self.me.upgrade()) {
            core.list(attachment);
        }
    }

    fn lower(&self) {}
}

impl Attachment {
    fn source(&self) -> Option<Arc<dyn Source>> {
        self.lock().clone()
    }

    /// False: it was over before.
    fn end(&self) -> bool {
        // Not under the lock: a source may run code of the user's when it goes.
        let source = self.lock().take();
        source.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Source>>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a wait ends.
enum Found {
    Entries(usize),
    /// Sources were listed, and gave nothing.
    Nothing,
    Over,
}

impl Core {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        shared.check_open()?;
        let core = Arc::new(Self {
            shared: Arc::clone(shared),
            ready: Outbox::new(),
            listed: AtomicUsize::new(0),
            events: shared.hosts.outbox(),
            notes: Arc::new(Outbox::new()),
            all: Mutex::default(),
        });
        let events = Events { outbox: Arc::clone(&core.events), core: Arc::downgrade(&core) };
        let attachment = core.attach_aside(Arc::new(events));
        core.events.listen(attachment);
        let attachment = core.attach(0, Arc::new(Notes(Arc::clone(&core.notes))));
        core.notes.listen(attachment);
        shared.hosts.count_queue(1);
        Ok(core)
    }

    /// An attachment for a source, which is to raise it from now on.
    pub(crate) fn attach(self: &Arc<Self>, tag: u64, source: Arc<dyn Source>) -> Arc<Attachment> {
        self.ready.enter();
        self.attach_as(tag, source, true)
    }

    /// As [`attach`](Self::attach), for a source that the queue does not wait for at its end.
    pub(crate) fn attach_aside(self: &Arc<Self>, source: Arc<dyn Source>) -> Arc<Attachment> {
        self.attach_as(0, source, false)
    }

    fn attach_as(
        self: &Arc<Self>,
        tag: u64,
        source: Arc<dyn Source>,
        counts: bool,
    ) -> Arc<Attachment> {
        let attachment = Arc::new_cyclic(|me| Attachment {
            tag,
            counts,
            core: Arc::downgrade(self),
            me: Weak::clone(me),
            source: Mutex::new(Some(source)),
        });
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|attachment| {
                attachment.upgrade().is_some_and(|attachment| attachment.lock().is_some())
            });
        }
        all.push(Arc::downgrade(&attachment));
        drop(all);
        attachment
    }

    /// Attaches what may have been given away before.
    pub(crate) fn attach_new(
        self: &Arc<Self>,
        tag: u64,
        source: Arc<dyn Source>,
        listen: impl FnOnce(Arc<Attachment>) -> bool,
    ) -> Result<()> {
        let attachment = self.attach(tag, source);
        if listen(Arc::clone(&attachment)) {
            return Ok(());
        }
        if attachment.end() {
            self.ready.left();
        }
        let allowed =
            "one that is attached to no completion queue, and whose descriptor nobody asked for";
        Err(Error::invalid("source", "given away already", allowed))
    }

    fn list(&self, attachment: Arc<Attachment>) {
        self.listed.fetch_add(1, AcqRel);
        self.shared.hosts.listed.fetch_add(1, AcqRel);
        match self.ready.put(attachment) {
            Ok(()) => self.shared.hosts.call(&self.shared.ready, self.shared.is_inside()),
            Err(_) => self.unlist(1),
        }
    }

    fn unlist(&self, count: usize) {
        self.listed.fetch_sub(count, AcqRel);
        self.shared.hosts.listed.fetch_sub(count, AcqRel);
    }

    /// Appends up to `most` entries, at least 1, to `out`, and waits for the first for up to `time`; says how many.
    /// In a pool without threads the caller takes part meanwhile.
    pub(crate) fn wait(&self, out: &mut Vec<Entry>, most: usize, time: Duration) -> Result<usize> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        if most == 0 {
            return Err(Error::invalid("capacity", 0, "at least 1"));
        }
        let inside = crate::thread_state::is_member();
        if !time.is_zero() && (inside || self.shared.may_not_wait()) {
            return Err(Error::WouldDeadlock);
        }
        self.events.served_here();
        let deadline = Deadline::after(Some(time));
        let mut attachments = Vec::new();
        let mut wait = Duration::ZERO;
        loop {
            match self.look(&mut attachments, out, most, wait) {
                Found::Entries(count) => {
                    self.shared.note_pulled();
                    if self.listed.load(Relaxed) > 0 && self.shared.ready.members.threads == 0 {
                        self.shared.hosts.call(&self.shared.ready, false);
                    }
                    self.shared.stop_if_drained();
                    return Ok(count);
                }
                Found::Over => return Err(Error::ShutDown),
                Found::Nothing => {}
            }
            let left = deadline.left().unwrap_or(Duration::MAX);
            if self.shared.ready.members.threads == 0 && !self.shared.end.is_stopping() && !inside {
                take_part(&self.shared, left, |mut worker| {
                    worker.pull(&self.listed, most, left.is_zero());
                })?;
                self.shared.stop_if_drained();
                if left.is_zero() {
                    return match self.look(&mut attachments, out, most, Duration::ZERO) {
                        Found::Entries(count) => Ok(count),
                        Found::Nothing => Ok(0),
                        Found::Over => Err(Error::ShutDown),
                    };
                }
            } else if left.is_zero() {
                return Ok(0);
            } else {
                wait = left;
            }
        }
    }

    /// Takes of what is listed, or is listed within `time`.
    fn look(
        &self,
        attachments: &mut Vec<Arc<Attachment>>,
        out: &mut Vec<Entry>,
        most: usize,
        time: Duration,
    ) -> Found {
        /// So many sources share a batch.
        const SHARES: usize = 32;
        attachments.clear();
        let Some(count) = self.ready.take(attachments, most.min(SHARES), time) else {
            return Found::Over;
        };
        self.unlist(count);
        let mut found = 0;
        for (place, attachment) in attachments.drain(..).enumerate() {
            let share = (most - found).div_ceil(count - place);
            if share == 0 {
                self.list(attachment);
                continue;
            }
            let Some(source) = attachment.source() else { continue };
            match source.bring(attachment.tag, out, share) {
                Brought::Some { count, more } => {
                    found += count;
                    if more {
                        self.list(attachment);
                    }
                }
                Brought::Over => {
                    if attachment.end() {
                        if source.tells_end() {
                            found += 1;
                            out.push(Entry::new(attachment.tag, EntryKind::Ended));
                        }
                        if attachment.counts {
                            self.ready.left();
                        }
                    }
                }
            }
        }
        if found > 0 { Found::Entries(found) } else { Found::Nothing }
    }

    /// The pool has stopped: sources that do not hear of it look once more.
    pub(super) fn pool_has_stopped(&self) {
        self.ready.end();
        for attachment in self.all_attachments() {
            if let Some(source) = attachment.source() {
                source.pool_has_stopped();
                self.list(attachment);
            }
        }
    }

    /// Something that needs no source of its own has happened.
    pub(crate) fn note(&self, entry: Entry) {
        drop(self.notes.put(entry));
    }

    fn all_attachments(&self) -> Vec<Arc<Attachment>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Nothing is brought any more, and those who wait are told.
    pub(crate) fn close(&self) {
        let left = self.ready.close();
        self.unlist(left.len());
        self.events.close();
        self.events.end_service();
        drop(self.notes.close());
        for attachment in self.all_attachments() {
            attachment.end();
        }
        self.shared.ready.handles.changed.announce();
        if self.shared.ready.members.threads == 0 {
            // Those who wait are members, and leave for what they find listed: from now on always something.
            self.listed.fetch_add(1, AcqRel);
            // Against *announce parking, then look at `listed`*.
            store_load_barrier();
            self.shared.ready.handles.sets.ring_all();
            self.shared.ready.members.stop_all();
        }
    }

    /// Readable while a wait would not sleep. In a pool without threads that is the pool's own descriptor.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        if self.shared.ready.members.threads == 0 {
            return pollable(&self.shared);
        }
        self.ready.pollable()
    }
}

/// Something that will be told here, or not. As long as it lives the queue is not over.
pub(crate) struct Promise {
    core: Weak<Core>,
    tag: u64,
}

impl Promise {
    pub(crate) fn new(core: &Arc<Core>, tag: u64) -> Self {
        core.notes.enter();
        Self { core: Arc::downgrade(core), tag }
    }

    pub(crate) fn tell(&self, kind: EntryKind) {
        if let Some(core) = self.core.upgrade() {
            core.note(Entry::new(self.tag, kind));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.notes.left();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.hosts.count_queue(usize::MAX);
        // In a child made by fork all of it is the parent's.
        if !self.shared.is_forked() {
            self.close();
        }
    }
}
