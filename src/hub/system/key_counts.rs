//! How often each key was published, for a hub that counts it.

use crate::error::{Error, Result};
use crate::hub::keys::key::{Key, is_reserved};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{CachePadded, Mutex};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;

/// One key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KeyFigures {
    /// The key; empty for the sum of all that were not counted on their own.
    pub key: String,
    /// How many messages were published with it.
    pub published: u64,
}

/// How often keys were published. Any number of threads.
pub(in crate::hub) struct KeyCounts {
    most: usize,
    counted: AtomicUsize,
    hasher: RandomState,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

impl KeyCounts {
    pub(in crate::hub) fn new(most: usize) -> Result<Option<Self>> {
        if most > MAX_KEYS {
            return Err(Error::invalid("count_keys", most, format!("up to {MAX_KEYS}")));
        }
        let shards = || (0..SHARDS).map(|_| CachePadded::default()).collect();
        let hasher = RandomState::new();
        let new = || Self { most, counted: AtomicUsize::new(0), hasher, shards: shards() };
        Ok((most > 0).then(new))
    }

    pub(in crate::hub) fn add(&self, key: &Key, published: u64) {
        if is_reserved(key.as_str()) {
            return;
        }
        let shard = &self.shards[self.hasher.hash_one(key) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = shard.counts.get_mut(key) {
            *count += published;
        } else if self.counted.fetch_add(1, Relaxed) < self.most {
            shard.counts.insert(key.clone(), published);
        } else {
            self.counted.fetch_sub(1, Relaxed);
            shard.others += published;
        }
    }

    pub(in crate::hub) fn all(&self) -> Vec<KeyFigures> {
        let mut all = Vec::new();
        let mut others = 0;
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            others += shard.others;
            all.extend(shard.counts.iter().map(|(key, count)| (key.clone(), *count)));
        }
        let figures = |(key, published): (Key, u64)| KeyFigures { key: key.to_string(), published };
        let mut all: Vec<_> = all.into_iter().map(figures).collect();
        if others > 0 {
            all.push(KeyFigures { key: String::new(), published: others });
        }
        all.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        all
    }
}

/// The most keys that are counted.
const MAX_KEYS: usize = 1_000_000;

/// Counts of keys are spread over so many tables.
const SHARDS: usize = 16;

#[derive(Default)]
struct Shard {
    counts: HashMap<Key, u64>,
    /// Those of keys for which there was no place.
    others: u64,
}
