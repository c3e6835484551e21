//! Results that have come, and those who wait for one.

use super::job::DurableReport;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many results are kept that nobody has asked for yet, the last ones. The stream has all of them.
const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

type Then = Box<dyn FnOnce(DurableReport) + Send>;

#[derive(Default)]
struct State {
    come: HashMap<String, DurableReport>,
    order: VecDeque<String>,
    /// Who is told of which.
    then: HashMap<String, Vec<Then>>,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A result has come. The first counts.
    pub(super) fn put(&self, report: DurableReport) {
        let mut state = self.lock();
        if state.come.contains_key(&report.id) {
            return;
        }
        if state.order.len() >= MOST
            && let Some(oldest) = state.order.pop_front()
        {
            state.come.remove(&oldest);
        }
        state.order.push_back(report.id.clone());
        let told = state.then.remove(&report.id).unwrap_or_default();
        state.come.insert(report.id.clone(), report.clone());
        drop(state);
        self.changed.notify_all();
        for then in told {
            let _panicked = crate::pool::contain(|| then(report.clone()));
        }
    }

    /// Waits until the result of this task has come, for up to `timeout`.
    pub(super) fn wait(&self, id: &str, timeout: Duration) -> Option<DurableReport> {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(report) = state.come.get(id) {
                return Some(report.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls the function when it has come, at once if it has.
    pub(super) fn then(&self, id: &str, function: Then) {
        let mut state = self.lock();
        match state.come.get(id).cloned() {
            Some(report) => {
                drop(state);
                let _panicked = crate::pool::contain(|| function(report));
            }
            None => state.then.entry(id.to_owned()).or_default().push(function),
        }
    }
}
