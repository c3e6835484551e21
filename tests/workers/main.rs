//! The worker pool: what a task promises to who submits it.

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod ends;
mod kit;
mod limits;
mod shutdown;
