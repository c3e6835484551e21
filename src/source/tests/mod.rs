//! The contract of `source`, promise by promise, with a real kernel and real threads.

mod descriptors;
mod hosts;
mod kernel;
mod rings;
mod scripted;
mod waits;

use super::{Events, Ready, Source};

/// What one wait that does not block brings.
fn look(source: &Source) -> Vec<(u64, Ready)> {
    let mut events = Events::with_capacity(16);
    source.wait(&mut events, 16, Some(0)).unwrap();
    events.iter().collect()
}
