//! All keys of a hub, by their text.
//!
//! A key's channel is kept as long as anybody has the key or subscribes to it by name. Others are thrown out when
//! their part of the table has doubled, so that the table is as large as the keys in use.

use super::key::Key;
use super::route::Channel;
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
pub(super) struct Keys {
    /// The hub's number, which its channels carry.
    hub: u32,
    hasher: RandomState,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

struct Shard {
    keys: HashSet<ByText>,
    sweep_at: usize,
}

struct ByText(Arc<Channel>);

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.pattern().hash(state);
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.pattern() == other.0.pattern()
    }
}

impl Eq for ByText {}

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        self.0.pattern()
    }
}

impl Keys {
    pub(super) fn new(hub: u32) -> Self {
        let shard = || Shard { keys: HashSet::new(), sweep_at: SMALL };
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(shard()))).collect();
        Self { hub, hasher: RandomState::new(), shards }
    }

    /// Whether this key is one of these.
    #[inline]
    pub(super) fn owns(&self, key: &Key) -> bool {
        key.channel().hub() == self.hub
    }

    /// The key of a text that was checked.
    pub(super) fn intern(&self, text: &str) -> Key {
        let mut shard = self.shard(text);
        if let Some(known) = shard.keys.get(text) {
            return Key::from_channel(Arc::clone(&known.0));
        }
        if shard.keys.len() >= shard.sweep_at {
            shard.sweep();
        }
        let channel = Channel::of_key(text, self.hub);
        shard.keys.insert(ByText(Arc::clone(&channel)));
        Key::from_channel(channel)
    }

    /// All keys.
    pub(super) fn all(&self) -> Vec<Key> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            all.extend(shard.keys.iter().map(|known| Key::from_channel(Arc::clone(&known.0))));
        }
        all
    }

    /// How many keys are known.
    pub(super) fn len(&self) -> usize {
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
        self.keys.retain(|known| Arc::strong_count(&known.0) > 1);
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
