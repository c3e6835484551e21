//! A connection that speaks HTTP: one request after another, its body, its answer.

pub(crate) mod cycle;
pub(crate) mod handler;
mod hook;
mod incoming;
