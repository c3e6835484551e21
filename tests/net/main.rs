//! What the stream server promises, over TCP and Unix sockets alike.
#![cfg(all(feature = "net", not(loom)))]

#[path = "../common/mod.rs"]
mod common;
mod kit;

mod basics;
mod ends;
mod limits;
mod output;
