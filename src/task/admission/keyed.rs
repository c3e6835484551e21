//! One task at a time per key, in order, and no thread waits for its turn.
//!
//! # The states of a key
//!
//! | state | in the table | who may dispatch a task of the key |
//! |---|---|---|
//! | free | nothing | whoever enters |
//! | held | a queue of those that wait | the one that holds it, when it leaves |
//!
//! ```text
//!            enter: goes                       leave, nobody waits
//!   free ───────────────────► held ──────────────────────────────────► free
//!                            │ ▲  ▲ leave: the first that waits goes, and holds the key from now on
//!        enter: waits at the ┘ └──┘
//!        end of the queue
//! ```
//!
//! A task holds its key from when it goes until its closure is dropped: through all of its attempts and
//! the delays between them, or the order would be lost; and after its end, if its function has not
//! returned by then, or two would run at once. Handing the key over costs whoever leaves a push into
//! a lane. What was cancelled while it waited gets its turn like the others, and ends it at once.
//!
//! # Invariants
//!
//! 1. At most one task of a key is dispatched at a time.
//! 2. Tasks of a key are dispatched in the order in which they entered.
//! 3. A key with nobody in it is not in the table, so the table is as large as the keys in use.
//! 4. `waiting` is the number of tasks in all queues, and never above `most`.
//!
//! # Orderings
//!
//! Enter and leave of one key hold the same lock for a few steps, never while a task runs or is dropped.
//! What one task did happens before the next begins. `waiting` is Relaxed: it only bounds.

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{CachePadded, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;

/// Keys are spread over so many tables, so that threads seldom meet.
const SHARDS: usize = if cfg!(loom) { 1 } else { 16 };

/// See the head of the file. `W` is what waits for its turn.
pub(in crate::task) struct Keys<W> {
    hasher: RandomState,
    shards: [CachePadded<Mutex<Shard<W>>>; SHARDS],
    waiting: AtomicUsize,
    most: usize,
}

/// Keys by their hash. Two that collide take turns: nothing worse.
type Shard<W> = HashMap<u64, VecDeque<W>>;

/// What became of a task that came to its key.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::task) enum Entered<W> {
    /// It holds the key: the caller dispatches it, and `leave`s after it.
    Goes(W),
    /// It has its place in the queue.
    Waits,
    /// Too many wait already.
    Full(W),
}

impl<W> Keys<W> {
    /// Of which at most so many tasks wait.
    pub(in crate::task) fn new(most: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            shards: core::array::from_fn(|_| CachePadded::new(Mutex::new(HashMap::new()))),
            waiting: AtomicUsize::new(0),
            most,
        }
    }

    /// What stands for a key.
    pub(in crate::task) fn hash(&self, key: &(impl Hash + ?Sized)) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Brings `work` to its key; `park` makes of it what can wait.
    pub(in crate::task) fn enter<V>(
        &self,
        key: u64,
        work: V,
        park: impl FnOnce(V) -> W,
    ) -> Entered<V> {
        match self.shard(key).entry(key) {
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                Entered::Goes(work)
            }
            Entry::Occupied(mut held) if self.reserve() => {
                held.get_mut().push_back(park(work));
                Entered::Waits
            }
            Entry::Occupied(_) => Entered::Full(work),
        }
    }

    /// Gives the key up. Who is answered holds it now.
    pub(in crate::task) fn leave(&self, key: u64) -> Option<W> {
        let mut shard = self.shard(key);
        let next = shard.get_mut(&key).and_then(VecDeque::pop_front);
        match next {
            Some(_) => {
                self.waiting.fetch_sub(1, Relaxed);
            }
            None => {
                shard.remove(&key);
            }
        }
        next
    }

    /// How many wait for their turn.
    #[cfg(test)]
    pub(in crate::task) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    fn reserve(&self) -> bool {
        let room = |waiting| (waiting < self.most).then_some(waiting + 1);
        self.waiting.fetch_update(Relaxed, Relaxed, room).is_ok()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard<W>> {
        let shard = &self.shards[key as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MOST: usize = 8;

    proptest! {
        /// Goal: invariants 1 to 4. Method: a list per key beside it, whose first holds the key.
        #[test]
        fn agrees_with_lists(steps in prop::collection::vec((0u64..5, any::<bool>()), 1..200)) {
            let keys = Keys::new(MOST);
            let mut lists: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
            for (number, (key, enters)) in steps.into_iter().enumerate() {
                let list = lists.entry(key).or_default();
                if enters {
                    let entered = keys.enter(key, number, |number| number);
                    if list.is_empty() {
                        prop_assert_eq!(entered, Entered::Goes(number));
                        list.push_back(number);
                    } else if entered == Entered::Waits {
                        list.push_back(number);
                    } else {
                        prop_assert_eq!(entered, Entered::Full(number));
                        prop_assert_eq!(keys.waiting(), MOST);
                    }
                } else if list.pop_front().is_some() {
                    prop_assert_eq!(keys.leave(key), list.front().copied());
                }
                let waiting: usize = lists.values().map(|list| list.len().saturating_sub(1)).sum();
                prop_assert_eq!(keys.waiting(), waiting);
                let held = lists.values().filter(|list| !list.is_empty()).count();
                let known: usize = keys.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
                prop_assert_eq!(known, held);
            }
        }
    }

    #[test]
    fn equal_keys_have_equal_hashes() {
        let keys = Keys::<()>::new(1);
        assert_eq!(keys.hash("account 7"), keys.hash(&String::from("account 7")));
        assert_ne!(keys.hash("account 7"), keys.hash("account 8"));
    }
}

/// Each has been seen to fail when the look at the queue and the removal of the key were not under one lock: a task
/// that comes in between is lost.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::{Arc, UnsafeCell};
    use loom::thread;

    const KEY: u64 = 7;

    /// What runs one task after the other, and what each leaves behind for the next.
    struct Place {
        keys: Keys<u32>,
        ran: UnsafeCell<()>,
        order: Mutex<Vec<u32>>,
    }

    impl Place {
        fn new(most: usize) -> Arc<Self> {
            Arc::new(Self {
                keys: Keys::new(most),
                ran: UnsafeCell::new(()),
                order: Mutex::new(Vec::new()),
            })
        }

        /// A submission, and all that the thread is handed by it.
        fn submit(&self, task: u32) {
            let mut next = match self.keys.enter(KEY, task, |task| task) {
                Entered::Goes(task) => Some(task),
                Entered::Waits => None,
                Entered::Full(_) => panic!("there is room"),
            };
            while let Some(task) = next {
                // Two at once, or one that does not see what the other did, are a violation.
                self.ran.with_mut(|_| ());
                self.order.lock().unwrap().push(task);
                next = self.keys.leave(KEY);
            }
        }
    }

    /// Goal: the hand-over loses nobody and lets nobody pass, whoever leaves while others enter.
    /// Method: two threads that submit two tasks each, for one key.
    #[test]
    fn the_key_is_handed_over() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let place = Place::new(4);
            let other = Arc::clone(&place);
            let submitter = thread::spawn(move || (2..4).for_each(|task| other.submit(task)));
            (0..2).for_each(|task| place.submit(task));
            submitter.join().unwrap();
            let order = place.order.lock().unwrap();
            let of = |first: u32| order.iter().filter(move |&&task| task / 2 == first).copied();
            assert_eq!(of(0).chain(of(1)).collect::<Vec<_>>(), [0, 1, 2, 3]);
            assert_eq!(place.keys.waiting(), 0);
            assert!(place.keys.shard(KEY).is_empty());
        });
    }
}
