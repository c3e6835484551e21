//! Results that have come, and those who wait for one.

use super::job::DurableReport;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many results are kept, the last ones, with so many bytes in all. The stream has all of them.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 << 20;

fn size_of(report: &DurableReport) -> usize {
    report.id.len() + report.value.len() + report.failure.as_ref().map_or(0, String::len)
}

#[derive(Default)]
pub(super) struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

type Then = Box<dyn FnOnce(DurableReport) + Send>;

/// What it has is the user's.
fn drop_contained(function: Then) {
    let _panicked = crate::pool::contain(|| drop(function));
}

#[derive(Default)]
struct State {
    come: HashMap<String, DurableReport>,
    order: VecDeque<String>,
    /// Of those that have come.
    bytes: usize,
    /// Who is told of which.
    then: HashMap<String, Vec<Then>>,
    has_ended: bool,
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
        state.bytes += size_of(&report);
        while (state.order.len() >= MOST || state.bytes > MOST_BYTES)
            && let Some(oldest) = state.order.pop_front()
        {
            let oldest = state.come.remove(&oldest);
            state.bytes -= oldest.as_ref().map_or(0, size_of);
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
            None if state.has_ended => {
                drop(state);
                drop_contained(function);
            }
            None => state.then.entry(id.to_owned()).or_default().push(function),
        }
    }

    /// None comes any more: who waits to be told is not.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let then = core::mem::take(&mut state.then);
        drop(state);
        then.into_values().flatten().for_each(drop_contained);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::tasks::DurableStatus;

    #[test]
    fn results_that_nobody_asks_for_take_bounded_memory() {
        let table = Table::default();
        let put = |number: usize, size: usize| {
            let (id, value) = (format!("n{number}"), vec![0; size]);
            let status = DurableStatus::Completed;
            table.put(DurableReport { id, status, value, failure: None, attempts: 1 });
        };
        (0..100).for_each(|number| put(number, 1 << 20));
        assert!((60..=64).contains(&table.lock().come.len()), "{}", table.lock().come.len());
        assert!(table.wait("n99", Duration::ZERO).is_some());
        // One that is too large alone is there for whoever waits.
        put(100, MOST_BYTES + 1);
        assert!(table.wait("n100", Duration::ZERO).is_some());
        (101..MOST + 201).for_each(|number| put(number, 0));
        let state = table.lock();
        assert_eq!((state.come.len(), state.order.len()), (MOST, MOST));
        assert_eq!(state.bytes, state.come.values().map(size_of).sum::<usize>());
    }
}
