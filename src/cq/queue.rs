//! How hosts wait for sources that have something, in a pool with threads and in one without.
//!
//! In a pool with threads, and in a queue beside one without, the list is where hosts sleep (`list`). Otherwise the hosts
//! are the pool's members while they wait: who lists passes a barrier and looks who is parked; who parks passes one and looks at `listed`.

use super::entry::{Entry, EntryKind, Held};
use super::list::{Attachment, Found, List, Lists};
use super::source::{Events, Notes, Source};
use crate::error::{Error, Result};
use crate::pool::{
    Deadline, Event, EventKind, HostOutbox, Remains, Served, Shared, abandon, pollable, take_part,
};
use crate::queue::Outbox;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::store_load_barrier;
use crate::sys::clock;
use crate::sys::epoll::{Epoll, IN};
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// In `waiting`: something was taken once more.
const TAKEN: u64 = 1 << 32;

/// A completion queue.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    /// The threads that wait are the pool's threads meanwhile; otherwise they sleep beside the list.
    takes_part: bool,
    list: List,
    /// What the pool itself has for this host.
    pub(crate) events: Arc<HostOutbox>,
    /// For hosts with a loop of their own, in a pool without threads.
    both: OnceLock<Epoll>,
    /// What is told here without a source: whoever will tell something has entered.
    notes: Arc<Outbox<Entry>>,
    /// How many threads wait, in the lower half; in the upper one, how often one has taken something.
    waiting: AtomicU64,
    /// When one has last come.
    asked_at: AtomicU64,
    /// When a host has last done what the pool had ready.
    served_at: AtomicU64,
    all: Mutex<Vec<Weak<Attachment>>>,
}

impl Core {
    /// `beside`: threads that wait never take part in the pool.
    pub(crate) fn new(shared: &Arc<Shared>, beside: bool) -> Result<Arc<Self>> {
        shared.check_open()?;
        let core = Arc::new(Self {
            shared: Arc::clone(shared),
            takes_part: shared.ready.members.threads == 0 && !beside,
            list: List::new(),
            events: shared.hosts.outbox(),
            both: OnceLock::new(),
            notes: Arc::new(Outbox::new()),
            waiting: AtomicU64::new(0),
            asked_at: AtomicU64::new(clock::now()),
            served_at: AtomicU64::new(0),
            all: Mutex::default(),
        });
        let events = Events { outbox: Arc::clone(&core.events), core: Arc::downgrade(&core) };
        let attachment = core.attach_aside(Arc::new(events));
        core.events.listen(attachment);
        let attachment = core.attach(0, Arc::new(Notes(Arc::clone(&core.notes))));
        core.notes.listen(attachment);
        if core.takes_part {
            shared.hosts.others.fetch_add(1, AcqRel);
        }
        shared.end.serve(Arc::<Self>::downgrade(&core) as _);
        Ok(core)
    }

    /// An attachment for a source, which is to raise it from now on.
    pub(crate) fn attach(self: &Arc<Self>, tag: u64, source: Arc<dyn Source>) -> Arc<Attachment> {
        self.list.ready.enter();
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
        let to: Weak<dyn Lists> = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Lists>));
        let attachment = Attachment::new(&to, tag, source, counts);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|attachment| {
                attachment.upgrade().is_some_and(|attachment| attachment.source().is_some())
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
        if attachment.end().is_some() {
            self.list.ready.left();
        }
        let allowed =
            "one that is attached to no completion queue, and whose descriptor nobody asked for";
        Err(Error::invalid("source", "given away already", allowed))
    }

    /// Appends up to `most` entries, at least 1, to `out`, and waits for the first for up to `time`; says how many.
    /// In a pool without threads the caller takes part meanwhile, unless it sleeps beside the queue.
    pub(crate) fn wait(&self, out: &mut Vec<Entry>, most: usize, time: Duration) -> Result<usize> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        if most == 0 {
            return Err(Error::invalid("most", 0, "at least 1"));
        }
        let inside = crate::thread_state::is_member();
        if !time.is_zero() && (inside || self.shared.may_not_wait()) {
            return Err(Error::WouldDeadlock);
        }
        if self.takes_part || self.shared.ready.members.threads > 0 {
            self.events.served_here();
        }
        // Relaxed: leases are looked at much later.
        self.asked_at.store(clock::now(), Relaxed);
        let members = &self.shared.ready.members;
        if time.is_zero() {
            members.host_handles(true);
            let found = self.find(out, most, time);
            if matches!(found, Ok(1..)) {
                self.waiting.fetch_add(TAKEN, Relaxed);
            }
            return found;
        }
        members.host_waits();
        self.waiting.fetch_add(1, Relaxed);
        let waited = self.find(out, most, time);
        let has_taken = matches!(waited, Ok(1..));
        if has_taken {
            members.host_handles(false);
        }
        self.asked_at.store(clock::now(), Relaxed);
        let taken = if has_taken { TAKEN } else { 0 };
        // Release: pairs with the Acquire in `asked_at`, which then finds the time that was stored above. One less waits.
        self.waiting.fetch_add(taken.wrapping_sub(1), Release);
        waited
    }

    fn find(&self, out: &mut Vec<Entry>, most: usize, time: Duration) -> Result<usize> {
        let inside = crate::thread_state::is_member();
        let deadline = Deadline::after(Some(time));
        let mut attachments = Vec::new();
        let mut wait = Duration::ZERO;
        // Without time the pool's work is looked at once.
        let mut has_looked = self.serve_if_due(most)? && time.is_zero();
        loop {
            match self.look(&mut attachments, out, most, wait) {
                Found::Entries(count) => {
                    self.shared.note_host();
                    if self.list.listed.load(Relaxed) > 0 {
                        self.shared.hosts.call(&self.shared.ready, false);
                    }
                    self.shared.stop_if_drained();
                    return Ok(count);
                }
                Found::Over => return Err(Error::ShutDown),
                Found::Nothing => {}
            }
            let left = deadline.left().unwrap_or(Duration::MAX);
            if self.takes_part && !self.shared.end.is_stopping() && !inside && !has_looked {
                take_part(&self.shared, left, |mut worker| {
                    worker.host(&self.list.listed, most, left.is_zero());
                })?;
                self.shared.stop_if_drained();
                has_looked = left.is_zero();
            } else if left.is_zero() {
                return Ok(0);
            } else {
                wait = left;
            }
        }
    }

    /// Sources that always have something must not keep a host from the pool's own work: after each turn of the pool's it
    /// runs what is ready there. Whether it did.
    fn serve_if_due(&self, most: usize) -> Result<bool> {
        let may = self.takes_part && !self.shared.end.is_stopping();
        if !may || crate::thread_state::is_member() || self.list.listed.load(Relaxed) == 0 {
            return Ok(false);
        }
        // Relaxed: a host that sees it late looks once more.
        let (now, served_at) = (clock::now(), self.served_at.load(Relaxed));
        if now < served_at.saturating_add(self.shared.max_turn) {
            return Ok(false);
        }
        self.served_at.store(now, Relaxed);
        match take_part(&self.shared, Duration::ZERO, |mut worker| {
            worker.host(&self.list.listed, most, true);
        }) {
            // Others are there for it.
            Ok(()) | Err(Error::Full { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn look(
        &self,
        attachments: &mut Vec<Arc<Attachment>>,
        out: &mut Vec<Entry>,
        most: usize,
        time: Duration,
    ) -> Found {
        let found = self.list.look(self, attachments, out, most, time);
        // Who got as many as it wanted comes again, and most often finds more.
        if !matches!(found, Found::Entries(count) if count >= most) {
            self.list.ready.settle();
        }
        found
    }

    /// The pool has stopped: sources that do not hear of it look once more.
    pub(super) fn pool_has_stopped(&self) {
        self.list.ready.end();
        for attachment in self.all_attachments() {
            if let Some(source) = attachment.source() {
                source.pool_has_stopped();
                attachment.list(self);
            }
        }
    }

    /// Something that needs no source of its own has happened.
    pub(crate) fn note(&self, entry: Entry) {
        drop(self.notes.put(entry));
    }

    /// Brings a tag that is no task of the pool.
    pub(crate) fn wake(&self, tag: u64) -> Result<()> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        if self.shared.end.is_stopping() {
            return Err(Error::ShutDown);
        }
        let event = Held::new(Event::unheld(EventKind::Posted, tag), &self.shared);
        self.notes.put(Entry::new(tag, EntryKind::Event(event))).map_err(|_| Error::ShutDown)
    }

    fn all_attachments(&self) -> Vec<Arc<Attachment>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Nothing is brought any more, and those who wait are told.
    pub(crate) fn close(&self) {
        let left = self.list.ready.close();
        self.unlist(left.len());
        abandon(&self.events, &self.shared);
        drop(self.notes.close());
        for attachment in self.all_attachments() {
            if let Some(source) = attachment.end() {
                source.close();
            }
        }
        self.shared.ready.handles.changed.announce();
        if self.takes_part {
            // Those who wait are members, and leave for what they find listed: from now on always something.
            self.list.listed.fetch_add(1, AcqRel);
            // Against *announce parking, then look at `listed`*.
            store_load_barrier();
            self.shared.ready.handles.sets.ring_all();
            self.shared.ready.members.stop_all();
        }
    }

    /// Readable while a wait would not sleep.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        let listed = self.list.ready.pollable()?;
        if !self.takes_part {
            return Ok(listed);
        }
        // The pool has something to do, or another of its hosts has found something for this one.
        if self.both.get().is_none() {
            let failed = |error| Error::os("watch a pool and a list together (epoll)", error);
            let both = Epoll::new().map_err(failed)?;
            both.add(listed, IN, 0).map_err(failed)?;
            both.add(pollable(&self.shared)?, IN, 0).map_err(failed)?;
            // Of two that come at once, one has made its own for nothing.
            let _second = self.both.set(both);
        }
        Ok(self.both.get().expect("set above or by another").as_fd())
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

impl Lists for Core {
    fn list(&self, attachment: Arc<Attachment>) {
        if !self.takes_part {
            drop(self.list.ready.put(attachment));
            return;
        }
        self.list.listed.fetch_add(1, AcqRel);
        self.shared.hosts.listed.fetch_add(1, AcqRel);
        match self.list.ready.put(attachment) {
            Ok(()) => self.shared.hosts.call(&self.shared.ready, self.shared.is_inside()),
            Err(_) => self.unlist(1),
        }
    }

    fn unlist(&self, count: usize) {
        if !self.takes_part {
            return;
        }
        self.list.listed.fetch_sub(count, AcqRel);
        self.shared.hosts.listed.fetch_sub(count, AcqRel);
    }

    fn asked_at(&self) -> u64 {
        // Acquire: pairs with the Release in `wait`.
        match self.waiting.load(Acquire) % TAKEN {
            0 => self.asked_at.load(Relaxed),
            _ => clock::now(),
        }
    }
}

/// For the health of the pool alone, whose end closes what it has for the queue.
impl Served for Core {
    fn remains(&self, _deadline: u64) -> Remains {
        Remains::Nothing
    }

    fn at_hosts(&self) -> Option<(u64, bool)> {
        Some((self.waiting.load(Relaxed) / TAKEN, !self.list.ready.is_empty()))
    }

    fn close(&self) {}
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.takes_part {
            self.shared.hosts.others.fetch_sub(1, AcqRel);
        }
        // In a child made by fork all of it is the parent's.
        if !self.shared.is_forked() {
            self.close();
        }
    }
}
