//! All keys of a hub, by their text.
//!
//! A key's channel is kept as long as anybody has the key or subscribes to it by name. Others are thrown out when
//! their part of the table has doubled, so that the table is as large as the keys in use.

use crate::hub::channel::route::Channel;
use crate::hub::keys::key::Key;
use crate::sync::{CachePadded, Mutex, MutexGuard};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, PoisonError};

/// Keys are spread over so many tables, so that threads seldom meet.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };
/// A table of so few keys is not swept.
const SMALL: usize = 1024;

/// See the head of the file.
pub(in crate::hub) struct Keys {
    /// The hub's number, which its channels carry.
    hub: u32,
    hasher: RandomState,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

struct Shard {
    keys: HashSet<ByText>,
    sweep_at: usize,
}

struct ByText(Key);

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for ByText {}

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        self.0.as_str()
    }
}

impl Keys {
    /// The number of its hub.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for the bridge"))]
    pub(in crate::hub) fn hub(&self) -> u32 {
        self.hub
    }

    pub(in crate::hub) fn new(hub: u32) -> Self {
        let shard = || Shard { keys: HashSet::new(), sweep_at: SMALL };
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(shard()))).collect();
        Self { hub, hasher: RandomState::new(), shards }
    }

    /// Whether this key is one of these.
    #[inline]
    pub(in crate::hub) fn owns(&self, key: &Key) -> bool {
        key.record().hub() == self.hub
    }

    /// The key of a text that was checked.
    pub(in crate::hub) fn intern(&self, text: &str) -> Key {
        let mut shard = self.shard(text);
        if let Some(known) = shard.keys.get(text) {
            return known.0.clone();
        }
        if shard.keys.len() >= shard.sweep_at {
            shard.sweep();
        }
        let key = Key::of(Channel::of_key(text, self.hub));
        shard.keys.insert(ByText(key.clone()));
        key
    }

    /// All keys.
    pub(in crate::hub) fn all(&self) -> Vec<Key> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            all.extend(shard.keys.iter().map(|known| known.0.clone()));
        }
        all
    }

    /// How many keys are known.
    pub(in crate::hub) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).keys.len()).sum()
    }

    fn shard(&self, text: &str) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(text) as usize;
        lock(&self.shards[hash % self.shards.len()])
    }
}

impl Shard {
    #[cold]
    fn sweep(&mut self) {
        // Who subscribes has a reference, too.
        self.keys.retain(|known| Arc::strong_count(known.0.record()) > 1);
        self.sweep_at = SMALL.max(2 * self.keys.len());
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_key_and_unused_ones_are_thrown_out() {
        let keys = Keys::new(7);
        let kept = keys.intern("kept");
        assert_eq!(kept, keys.intern("kept"));
        assert!(keys.owns(&kept) && !keys.owns(&Key::detached("kept")));
        for number in 0..10 * SHARDS * SMALL {
            keys.intern(&format!("key.{number}"));
        }
        assert!(keys.len() <= 2 * SHARDS * SMALL, "{}", keys.len());
        assert!(keys.all().contains(&kept));
    }
}
