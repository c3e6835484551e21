//! The operations endpoint: what it answers, to whom, and that it answers while the pool it watches cannot.
#![cfg(all(feature = "http", feature = "metrics"))]

#[path = "../common/mod.rs"]
mod common;

mod blocked;
mod client;
mod endpoint;
mod health;
mod hostile;
mod page;
mod watching;
