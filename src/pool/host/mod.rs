//! Threads of a host: they take part for a while, or take events from completion queues.

mod alarm;
mod held;
mod hosted;
mod hosts;
mod join;
mod outbox;

pub(crate) use alarm::{Alarm, await_refresh, refresh_alarm};
pub(crate) use held::{abandon, complete, hand_out};
pub(crate) use hosts::Hosts;
pub(crate) use join::{pollable, take_part, wait_for};
pub use outbox::HandleId;
pub(crate) use outbox::{Event, Outbox};
