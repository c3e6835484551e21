//! How a message is published: with what headers and priority, and what happens where there is no room.

use crate::hub::message::{Headers, Priority};

/// What is published with a key besides its payload.
#[derive(Clone, Debug, Default)]
pub(in crate::hub) struct PublishOptions {
    pub(in crate::hub) headers: Headers,
    pub(in crate::hub) priority: Priority,
    pub(in crate::hub) if_full: Mode,
}

/// What a publisher does where a mailbox that lets publishers wait is full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Mode {
    /// It waits for room, where that is allowed.
    #[default]
    Wait,
    /// It is refused.
    NoWait,
    /// It publishes nothing: [`Error::TimedOut`].
    Try,
}

/// What an offer comes to in that case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum IfFull {
    Wait,
    Refuse,
    /// It is [`Offer::Full`].
    Answer,
    /// The message was accepted before, and is taken.
    Exceed,
}
