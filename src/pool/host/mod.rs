//! Threads of a host: they take part for a while, or pull events as data.

mod alarm;
mod held;
mod hosts;
mod join;
mod outbox;
mod pull;

pub(crate) use alarm::{Alarm, await_refresh, refresh_alarm};
pub(crate) use held::{complete, has_pullers};
pub(crate) use hosts::Hosts;
pub(crate) use join::{pollable, take_part};
pub use outbox::{Event, HandleId};
pub(crate) use outbox::{Outbox, hand_out};
