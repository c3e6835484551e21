//! Threads of a host: they take part for a while, or pull events as data.

mod alarm;
mod held;
mod join;
mod outbox;
mod pull;

pub(crate) use alarm::{Alarm, await_refresh, refresh_alarm};
pub(crate) use held::has_pullers;
pub(crate) use outbox::Outbox;
pub use outbox::{Event, HandleId};
