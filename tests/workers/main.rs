//! The worker pool: what a task promises to who submits it.

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod attempts_out;
mod batch;
mod chaos;
mod delayed;
mod ends;
mod full;
mod keyed;
mod kit;
mod limits;
mod middleware;
mod overlap;
mod periodic;
mod rate;
mod retries;
mod returns;
mod running;
mod scaling;
mod shutdown;
mod workers;
