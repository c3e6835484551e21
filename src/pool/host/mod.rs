//! Threads of a host: they take part for a while, or pull events as data.

mod alarm;
mod held;
mod hosts;
mod join;
mod outbox;
mod pull;

pub(crate) use alarm::{Alarm, await_refresh, refresh_alarm};
pub(crate) use held::{abandon, complete, hand_out, has_pullers};
pub(crate) use hosts::Hosts;
pub(crate) use join::{pollable, take_part};
pub(crate) use outbox::Outbox;
pub use outbox::{Event, HandleId};
