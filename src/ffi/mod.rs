//! The C interface. Each file is a section of `include/paceline.h`, which is generated from here:
//! `build.rs` hands the files to cbindgen in the order of the header.
//!
//! Functions are translations: check, borrow, call, map. Ownership can be read from the signature.
//!
//! | file | idea |
//! |---|---|
//! | `boundary.rs` | panics, NULL, failures and their texts |
//! | `sized.rs` | structs that may grow |
//! | `registry.rs` | numbers for tasks and strands |
//! | `owner.rs` | whose user_data is while a handler is being registered |
//! | `work.rs` | a task of C's |
//! | `cells.rs` | events and items whose size is known at run time only |
//! | the others | a section of the header each |
//!
//! What C hands over must be what the header says it is: a pointer that is not NULL is good for what
//! is done with it. Each `SAFETY` comment that says "as the header demands" rests on that.

mod boundary;
mod callback;
mod cells;
mod conn;
mod filter;
mod framing;
mod handle;
mod host;
mod http;
mod inherited;
mod listener;
mod net_pull;
mod owner;
mod pool;
mod pull;
mod queue;
mod registry;
mod remote;
mod request;
mod requests;
mod response;
mod ring;
mod server;
mod sized;
mod stats;
mod status;
mod strand;
mod task;
mod timer;
mod udp;
mod udp_pull;
mod work;
