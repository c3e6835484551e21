//! What the stream server promises, over TCP and Unix sockets alike.
//!
//! A process that is being started has, for a moment, all descriptors of this one. So tests that look
//! whether a socket is closed run in a process of their own, where no others are started.
#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod kit;

mod abuse;
mod basics;
mod completions;
mod ends;
mod files;
mod filter;
mod fork;
mod limits;
mod listeners;
mod notices;
mod options;
mod output;
mod pauses;
mod udp;
mod udp_completions;
