//! Hubs of several processes over a broker: a real one, which the tests start.
#![cfg(feature = "nats")]

mod attempts;
mod broker;
#[cfg(all(feature = "http", feature = "metrics"))]
#[path = "../ops/client.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;
mod crash;
#[path = "../../examples/durable.rs"]
mod example;
mod faults;
mod foreign;
#[cfg(feature = "config")]
mod from_settings;
mod hostile;
mod identities;
mod letters;
#[cfg(all(feature = "config", feature = "http", feature = "metrics"))]
mod login;
mod partitions;
mod places;
mod raw;
mod refusals;
mod requests;
mod room;
#[cfg(feature = "archive")]
mod spool;
mod stored;
mod task_ids;
mod tasks;
mod tasks_hostile;
mod topics;
#[cfg(all(feature = "http", feature = "metrics"))]
mod visible;
