//! A server of streams: its settings, its listeners, its start and its end, and its events as data.

mod inherited;
mod listener;
mod pulled;
mod server;
pub(crate) mod settings;

pub use inherited::{Inherited, inherited};
pub use pulled::{ConnEvent, ConnEventKind, PulledServer, Wanted};
pub use server::{DrainReport, Server};
pub use settings::{Listen, Outgoing, ServerBuilder};
