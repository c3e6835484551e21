//! The figures of completion queues, for a registry.

use super::cq::State;
use crate::cq::internal::Table;
use crate::metrics::Collector;
use crate::pool::{Remains, Served, Shared};
use std::sync::{Arc, OnceLock, Weak};

/// A queue as a part of its pool, for its figures and health alone: the end of the pool closes it as it does its own.
pub(super) struct Part {
    state: Weak<State>,
    shared: Weak<Shared>,
    name: OnceLock<String>,
}

impl Part {
    /// It lasts as long as what is given here is kept.
    pub(super) fn of(state: &Arc<State>, shared: &Arc<Shared>) -> Arc<Self> {
        let part = Arc::new(Self {
            state: Arc::downgrade(state),
            shared: Arc::downgrade(shared),
            name: OnceLock::new(),
        });
        shared.end.serve(Arc::<Self>::downgrade(&part) as _);
        part
    }
}

impl Served for Part {
    fn remains(&self, _deadline: u64) -> Remains {
        Remains::Nothing
    }

    /// What lies in the queue is told by its core.
    fn at_hosts(&self) -> Option<(u64, bool)> {
        Some((self.state.upgrade()?.lock().table.completed, false))
    }

    fn close(&self) {}

    fn figures(&self, to: &mut Collector, pool: &str) {
        let (Some(state), Some(shared)) = (self.state.upgrade(), self.shared.upgrade()) else {
            return;
        };
        let name = self.name.get_or_init(|| shared.end.next_name());
        let Some(queue) = to.enter(self, "queue", name) else { return };
        let labels = [("pool", pool), ("queue", &*queue)];
        let leased = state.lock();
        let Table { brought, completed, withdrawn, .. } = leased.table;
        let (out, again) = (leased.table.out(), leased.again.len());
        drop(leased);
        let mut counter = |name: &str, help: &str, count: u64| {
            to.counter(&format!("paceline_queue_{name}"), help, &labels, count as f64);
        };
        counter("brought", "Entries with a token that a host was given", brought);
        counter("completed", "Of these, those that were completed", completed);
        counter("withdrawn", "Of these, those whose lease was over", withdrawn);
        let help = "Entries that a host has and has not completed";
        to.gauge("paceline_queue_out", help, &labels, out as f64);
        let help = "Entries that were withdrawn and wait to be brought again";
        to.gauge("paceline_queue_again", help, &labels, again as f64);
    }
}
