//! The event hub, as its users see it.

#[path = "../common/mod.rs"]
mod common;

mod ends;
mod execution;
mod figures;
mod groups;
mod kit;
mod notices;
mod overflow;
mod publishing;
mod pull;
mod reference;
mod requests;
mod supervision;
mod together;
mod unsubscribe;
