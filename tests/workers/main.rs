//! The worker pool: what a task promises to who submits it.

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod chaos;
mod delayed;
mod ends;
mod keyed;
mod kit;
mod limits;
mod periodic;
mod rate;
mod retries;
mod scaling;
mod shutdown;
