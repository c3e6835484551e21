//! The example `resp`: its parser by itself, and the server with raw clients, by a table of requests and replies,
//! beside the real redis-server, and under redis-cli and redis-benchmark. Tests that need a program that is
//! not installed say "skipped".
#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod kit;
mod parser;
mod same;
mod serving;
mod table;
mod tools;

// The example's own files, for the tests of the parser.
#[path = "../../examples/resp/number.rs"]
mod number;
#[path = "../../examples/resp/request.rs"]
mod request;
