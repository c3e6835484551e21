//! How each kind of source gives what it has.

use super::GROUP;
use super::entry::{Entry, EntryKind, Held, MessageBatch, OpenAttempt};
use super::mail::Mail;
use super::queue::Core;
use crate::net::{ConnHost, UdpHost};
use crate::pool::HostOutbox;
use crate::queue::{Outbox, Store};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::Attempts;
use core::time::Duration;
use std::sync::{Arc, Weak};

/// What can be attached to a completion queue. It raises its attachment whenever it has something where it had nothing, and
/// when it is over.
pub(crate) trait Source: Send + Sync {
    /// Appends up to `most` entries, at least 1, without waiting.
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought;

    /// Whether whoever waits is told that it is over.
    fn tells_end(&self) -> bool {
        true
    }

    /// Nothing new begins. It is asked once more after this.
    fn pool_has_stopped(&self) {}

    /// Nobody takes anything any more. What waits, and what comes, would wait for ever.
    fn close(&self) {}
}

/// What a source has given.
pub(crate) enum Brought {
    /// So many; whether there may be more now, or the end.
    Some { count: usize, more: bool },
    /// Nothing, and nothing ever again.
    Over,
}

/// So many are made room for at once as a rule.
const TOGETHER: usize = 64;

/// Of an outbox: each item as an entry.
pub(crate) fn bring_of<T, S: Store<T>>(
    outbox: &Outbox<T, S>,
    most: usize,
    each: impl FnMut(T),
) -> Brought {
    let mut items = Vec::with_capacity(most.min(TOGETHER));
    match outbox.take(&mut items, most, Duration::ZERO) {
        Some(count) => {
            items.into_iter().for_each(each);
            // The end may have come while it was listed for these: it is not told again.
            Brought::Some { count, more: count == most || outbox.is_over() }
        }
        None => Brought::Over,
    }
}

/// Descriptors, timers and tokens.
pub(super) struct Events {
    pub(super) outbox: Arc<HostOutbox>,
    pub(super) core: Weak<Core>,
}

impl Source for Events {
    fn bring(&self, _: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        let Some(core) = self.core.upgrade() else { return Brought::Over };
        let mut events = Vec::with_capacity(most.min(TOGETHER));
        let Some((count, more)) = self.outbox.bring(&mut events, most) else {
            core.pool_has_stopped();
            return Brought::Over;
        };
        out.reserve(count);
        for event in events {
            let tag = event.tag;
            out.push(Entry::new(tag, EntryKind::Event(Held::new(event, &core.shared))));
        }
        Brought::Some { count, more }
    }

    fn tells_end(&self) -> bool {
        false
    }
}

/// What is told by entries that need no source of their own.
pub(super) struct Notes(pub(super) Arc<Outbox<Entry>>);

impl Source for Notes {
    fn bring(&self, _: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        bring_of(&self.0, most, |entry| out.push(entry))
    }

    fn tells_end(&self) -> bool {
        false
    }

    fn pool_has_stopped(&self) {
        self.0.end();
    }
}

/// The connections of a server.
pub(crate) struct Conns(pub(crate) Arc<ConnHost>);

impl Source for Conns {
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        bring_of(&self.0.outbox, most, |event| {
            out.push(Entry::new(tag, EntryKind::Conn(event)));
        })
    }

    fn close(&self) {
        drop(self.0.outbox.close());
    }
}

/// What comes to a datagram socket.
pub(crate) struct Datagrams(pub(crate) Arc<UdpHost>);

impl Source for Datagrams {
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        let host = &self.0;
        bring_of(&host.outbox, most, |event| {
            host.has_taken(&event);
            out.push(Entry::new(tag, EntryKind::Datagram(event)));
        })
    }

    fn close(&self) {
        drop(self.0.outbox.close());
    }
}

/// The attempts of a worker pool's tasks, with the tags of these.
pub(crate) struct Tasks(pub(crate) Arc<Attempts>);

impl Source for Tasks {
    fn bring(&self, _: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        let mut events = Vec::new();
        let Some(count) = self.0.bring(&mut events, most) else { return Brought::Over };
        out.extend(events.into_iter().map(|event| {
            let attempt = OpenAttempt::new(&self.0, event);
            Entry::new(event.tag(), attempt.map_or_else(|ended| ended, EntryKind::Attempt))
        }));
        Brought::Some { count, more: count > 0 }
    }
}

/// The messages of a mailbox or a replay.
pub(crate) struct Mailed {
    mail: Mail,
    /// Nobody will serve it any more.
    stopped: AtomicBool,
}

impl Mailed {
    pub(crate) fn new(mail: Mail) -> Self {
        Self { mail, stopped: AtomicBool::new(false) }
    }
}

impl Source for Mailed {
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        let mut brought = 0;
        loop {
            let room = (most - brought).min(GROUP);
            let Some((messages, count, more)) = self.mail.take(room) else {
                return match brought {
                    0 => Brought::Over,
                    count => Brought::Some { count, more: true },
                };
            };
            if count > 0 {
                let batch = MessageBatch { messages, len: count, mail: self.mail.clone() };
                out.push(Entry::new(tag, EntryKind::Messages(batch)));
            }
            brought += count;
            // Relaxed: it is set before this is listed again, which orders it.
            if brought == 0 && self.stopped.load(Relaxed) {
                return Brought::Over;
            }
            if count == 0 || !more || brought == most {
                return Brought::Some { count: brought, more: more && count > 0 };
            }
        }
    }

    fn pool_has_stopped(&self) {
        self.stopped.store(true, Relaxed);
    }
}
