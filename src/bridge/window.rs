//! Ids of messages that have come, for as long as one of them may come again.

use core::hash::BuildHasher;
use core::time::Duration;
use std::collections::{HashSet, VecDeque};
use std::hash::RandomState;
use std::time::Instant;

/// The ids of the last so many messages, of the last so much time. Ids are kept as hashes of 64 bits with a key of the
/// process's own, so that a window of 100 000 takes a message wrongly for a duplicate once in 10^14.
pub(super) struct Window {
    hasher: RandomState,
    seen: HashSet<u64>,
    order: VecDeque<(Instant, u64)>,
    lasts: Duration,
    most: usize,
}

impl Window {
    pub(super) fn new(lasts: Duration, most: usize) -> Self {
        let hasher = RandomState::new();
        Self { hasher, seen: HashSet::new(), order: VecDeque::new(), lasts, most }
    }

    /// Whether an id is noted.
    pub(super) fn has(&self, id: &str) -> bool {
        self.seen.contains(&self.hasher.hash_one(id))
    }

    /// Notes an id. False: it is noted already.
    pub(super) fn note(&mut self, id: &str, now: Instant) -> bool {
        if self.most == 0 {
            return true;
        }
        while let Some((at, oldest)) = self.order.front()
            && (now.duration_since(*at) > self.lasts || self.order.len() >= self.most)
        {
            self.seen.remove(oldest);
            self.order.pop_front();
        }
        let hash = self.hasher.hash_one(id);
        if !self.seen.insert(hash) {
            return false;
        }
        self.order.push_back((now, hash));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_within_the_window_and_memory_is_bounded() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut window = Window::new(second, 3);
        assert!(window.note("a", now) && !window.note("a", now + second));
        assert!(window.note("a", now + 3 * second), "its time is over");
        let last = now + 3 * second;
        assert!(window.note("b", last) && window.note("c", last) && window.note("d", last));
        assert!(!window.note("c", last) && window.note("a", last), "three are kept");
        assert_eq!((window.seen.len(), window.order.len()), (3, 3));
    }

    #[test]
    fn a_window_of_none_drops_none() {
        let mut window = Window::new(Duration::ZERO, 0);
        assert!(window.note("a", Instant::now()) && window.note("a", Instant::now()));
    }
}
