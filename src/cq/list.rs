//! The list of sources that have something.
//!
//! # States of a source
//!
//! | state | it has something | it is listed | left by |
//! |---|---|---|---|
//! | QUIET | no | no | the first that comes: it raises the attachment |
//! | LISTED | yes, or had | once | a waiter, who takes it off the list |
//! | TAKEN | perhaps | no | that waiter: back to the list if it left something, else QUIET |
//! | OVER | never again | no | nobody: its last entry is [`EntryKind::Ended`](super::EntryKind::Ended) |
//!
//! # Invariants
//!
//! 1. A source that has something, or is over and has not said so, is in the list, once, or with a waiter who looks after
//!    taking it off. Who puts the first thing in, and who ends it, raises the attachment after that; who takes some and
//!    leaves some, or the end, lists it again. A raise while it is listed does nothing: so an end that comes then is found
//!    by who takes the rest. All are ordered by the source's own lock, or its word (`queue/pollable.rs`), and `listed`.
//! 2. No listed source lies beside waiters: the list is an [`Outbox`], which calls as many as are needed.
//! 3. A source may be listed in vain, which costs one look.
//! 4. The queue is over when it is closed, or when its pool has stopped and every source is over.
//! 5. No lock of the queue is held while a source is asked.

use super::entry::{Entry, EntryKind};
use super::source::{Brought, Source};
use crate::queue::{Line, Outbox};
use crate::sync::atomic::Ordering::AcqRel;
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where a source is listed, and calls those who wait beside the list.
pub(super) trait Lists: Send + Sync {
    fn list(&self, attachment: Arc<Attachment>);
    /// So many were taken off.
    fn unlist(&self, count: usize);
    /// When a host has last waited.
    fn asked_at(&self) -> u64;
}

/// See the head of the file.
pub(super) struct List {
    pub(super) ready: Outbox<Arc<Attachment>>,
    /// How many are in the list, or about to be.
    pub(super) listed: AtomicUsize,
}

/// A source that is attached, and the tag that its entries have.
pub(crate) struct Attachment {
    tag: u64,
    to: Weak<dyn Lists>,
    me: Weak<Attachment>,
    /// The queue is not over before it is.
    counts: bool,
    /// It is in the list, or about to be.
    listed: AtomicBool,
    /// None: it is over.
    source: Mutex<Option<Arc<dyn Source>>>,
}

impl Line for Attachment {
    fn raise(&self) {
        if let (Some(to), Some(attachment)) = (self.to.upgrade(), self.me.upgrade()) {
            attachment.list(&*to);
        }
    }

    fn lower(&self) {}

    fn asked_at(&self) -> u64 {
        self.to.upgrade().map_or(0, |to| to.asked_at())
    }
}

impl Attachment {
    pub(super) fn new(
        to: &Weak<dyn Lists>,
        tag: u64,
        source: Arc<dyn Source>,
        counts: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            tag,
            to: Weak::clone(to),
            me: Weak::clone(me),
            counts,
            listed: AtomicBool::new(false),
            source: Mutex::new(Some(source)),
        })
    }

    /// Puts it into the list, unless it is there.
    pub(super) fn list(self: Arc<Self>, to: &dyn Lists) {
        // AcqRel: pairs with the change in `look`. If it is there already, who takes it off sees what was put into the
        // source before this.
        if !self.listed.swap(true, AcqRel) {
            to.list(self);
        }
    }

    pub(super) fn source(&self) -> Option<Arc<dyn Source>> {
        self.lock().clone()
    }

    /// Its source; None: it was over before.
    pub(super) fn end(&self) -> Option<Arc<dyn Source>> {
        // Not under the lock: a source may run code of the user's when it goes.
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Source>>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a wait ends.
pub(super) enum Found {
    Entries(usize),
    /// Sources were listed, and gave nothing.
    Nothing,
    Over,
}

impl List {
    pub(super) fn new() -> Self {
        Self { ready: Outbox::new(), listed: AtomicUsize::new(0) }
    }

    /// Takes of what is listed, or is listed within `time`. Its descriptor is left to [`Outbox::settle`].
    pub(super) fn look(
        &self,
        to: &dyn Lists,
        attachments: &mut Vec<Arc<Attachment>>,
        out: &mut Vec<Entry>,
        most: usize,
        time: Duration,
    ) -> Found {
        /// So many sources share a batch.
        const SHARES: usize = 32;
        attachments.clear();
        let Some(count) = self.ready.take_some(attachments, most.min(SHARES), time) else {
            return Found::Over;
        };
        to.unlist(count);
        let mut found = 0;
        for (place, attachment) in attachments.drain(..).enumerate() {
            // AcqRel: pairs with the change in `list`. What comes from now on lists it again.
            attachment.listed.swap(false, AcqRel);
            let share = (most - found).div_ceil(count - place);
            if share == 0 {
                attachment.list(to);
                continue;
            }
            let Some(source) = attachment.source() else { continue };
            match source.bring(attachment.tag, out, share) {
                Brought::Some { count, more } => {
                    found += count;
                    if more {
                        attachment.list(to);
                    }
                }
                Brought::Over => {
                    if attachment.end().is_some() {
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
}
