//! The hub's history, as its users see it: replay and query, from memory and, with the feature `archive`,
//! from disk.

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "archive")]
#[path = "../../examples/hub_history.rs"]
mod example;
mod replay;

#[cfg(all(feature = "archive", feature = "http", feature = "metrics"))]
#[allow(dead_code, reason = "the tests of the operations endpoint use the rest")]
#[path = "../ops/client.rs"]
mod client;

use common::{LONG, until};
use paceline::Pool;
use paceline::hub::history::{History, Query};
use paceline::hub::{Hub, Message, Stored};
use std::sync::{Arc, Mutex};

fn pool(threads: usize) -> Pool {
    Pool::builder().threads(threads).pin(paceline::Pin::None).build().unwrap()
}

fn hub(pool: &Pool, history: History) -> Hub {
    Hub::builder(pool).history(history).build().unwrap()
}

fn everything() -> Query {
    Query::of(">")
}

fn text(stored: &Stored) -> String {
    String::from_utf8(stored.payload().to_vec()).unwrap()
}

fn texts(stored: &[Stored]) -> Vec<String> {
    stored.iter().map(text).collect()
}

/// What a replay has brought: sequences with the losses before each.
#[derive(Clone, Default)]
struct Got(Arc<Mutex<Vec<(u64, u64)>>>);

impl Got {
    fn handler(&self) -> impl FnMut(&Message<'_>) + use<> {
        let got = self.clone();
        move |message| got.add(message.sequence(), message.lost_before())
    }

    fn add(&self, sequence: u64, lost_before: u64) {
        self.0.lock().unwrap().push((sequence, lost_before));
    }

    fn all(&self) -> Vec<(u64, u64)> {
        self.0.lock().unwrap().clone()
    }

    fn sequences(&self) -> Vec<u64> {
        self.all().into_iter().map(|(sequence, _)| sequence).collect()
    }

    fn until_has(&self, sequence: u64) {
        until("a message of a replay", || {
            self.0.lock().unwrap().last().is_some_and(|(last, _)| *last >= sequence)
        });
    }
}

/// The end of a test: nothing of the hub runs on.
fn finish(pool: &Pool) {
    let report = pool.shutdown(LONG);
    assert!(report.drained, "{report:?}");
}
