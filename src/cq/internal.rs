//! What only hosts of other languages take as data: in Rust it has handlers, or is asked for.

pub(crate) use super::{
    entry::{Entry, EntryKind, Held, OpenAttempt},
    list::Attachment,
    mail::Mail,
    queue::{Core, Promise},
    source::{Brought, Conns, Datagrams, Mailed, Source, Tasks, bring_of},
    table::{Done, NOT_YET, Parts, Table},
};
use crate::http;
use crate::hub::Received;
use crate::log::Record;
use core::fmt;

/// See the head of the file.
pub struct Internal(pub(crate) Told);

pub(crate) enum Told {
    Http(http::HttpEvent),
    /// What became of a request of the hub: its reply, or none: whether it came too late.
    Reply(Result<Received, bool>),
    Record(Record),
    /// A signal of the process.
    Signal(i32),
    /// Things that were out wait to be brought again.
    Again,
}

impl fmt::Debug for Internal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Internal")
    }
}
