//! What the HTTP server promises, over TCP and Unix sockets alike.
#![cfg(all(feature = "http", not(loom)))]

#[path = "../common/mod.rs"]
mod common;
mod http_kit;
#[allow(dead_code, reason = "the stream server's tests use the rest")]
#[path = "../net/kit.rs"]
mod kit;

mod access_log;
mod basics;
mod bodies;
mod clients;
mod ends;
mod framing;
mod gone;
mod middleware;
mod upgraded;
