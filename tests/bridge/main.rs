//! Hubs of several processes over a broker: a real one, which the tests start.
#![cfg(feature = "nats")]

mod broker;
#[path = "../common/mod.rs"]
mod common;
mod requests;
mod stored;
mod topics;
