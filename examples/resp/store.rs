//! What is stored: maps from keys to values, each with a lock of its own that is held for one look.
//!
//! ```text
//!   key ──hash──► shard: lock │ table │ deadlines ──► taken out when met, or by the sweep
//! ```
//!
//! A key that has expired is gone for everybody who asks, and is taken out then ("lazily"). So that
//! those that nobody asks for go, too, each shard keeps its deadlines in order, and a timer
//! [sweeps](Store::sweep) what is due. A deadline that was changed or dropped stays in that heap until
//! it is due or the heap has twice as many as there are keys that expire.

use crate::bytes::Bytes;
use crate::value::Value;
use crossbeam_utils::CachePadded;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Found;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

/// Parts with a lock of their own. More than threads that can meet.
const SHARDS: usize = 32;

/// Keys taken out by a sweep under one lock.
const SWEEP: usize = 128;

/// A time for keys that do not expire.
pub const NEVER: i64 = i64::MAX;

/// Milliseconds since 1970: deadlines are wall-clock time, as in Redis.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}

struct Entry {
    key: Bytes,
    value: Value,
    expires: i64,
}

impl Entry {
    /// The time is asked for only where it matters.
    #[inline]
    fn has_expired(&self) -> bool {
        self.expires != NEVER && self.expires <= now()
    }
}

#[derive(Default)]
/// One part; what it holds is reached by a [`Place`].
pub struct Shard {
    table: HashTable<Entry>,
    /// Deadlines and the hashes of their keys, the earliest first.
    deadlines: BinaryHeap<Reverse<(i64, u64)>>,
    /// Keys that expire.
    expiring: usize,
    totals: Totals,
}

/// What a store holds, and what has become of it.
#[derive(Clone, Copy, Default)]
pub struct Totals {
    pub keys: usize,
    pub expiring: usize,
    pub expired: u64,
    pub hits: u64,
    pub misses: u64,
}

/// May be used by any thread. No lock is held during a system call.
pub struct Store {
    hasher: RandomState,
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
}

impl Store {
    pub fn new() -> Self {
        Self { hasher: RandomState::default(), shards: std::array::from_fn(|_| Default::default()) }
    }

    #[inline]
    fn shard_of(hash: u64) -> usize {
        // The table uses the lowest and the highest bits.
        (hash >> 40) as usize % SHARDS
    }

    /// A key, with its shard locked.
    #[inline]
    pub fn at<'a>(&'a self, key: &'a [u8]) -> Place<'a, MutexGuard<'a, Shard>> {
        let hash = self.hasher.hash_one(key);
        Place { shard: lock(&self.shards[Self::shard_of(hash)]), hasher: &self.hasher, key, hash }
    }

    /// Locks the shards of several keys, so that what is done with them looks like one step.
    pub fn at_once<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Several<'_> {
        let mut wanted = [false; SHARDS];
        keys.for_each(|key| wanted[Self::shard_of(self.hasher.hash_one(key))] = true);
        // All threads lock them in the same order.
        let shards = std::array::from_fn(|index| wanted[index].then(|| lock(&self.shards[index])));
        Several { hasher: &self.hasher, shards }
    }

    /// Takes out what has expired.
    pub fn sweep(&self) {
        let now = now();
        for shard in &self.shards {
            while lock(shard).sweep(now) {}
        }
    }

    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let totals = shard.totals;
            let full = std::mem::replace(&mut *shard, Shard { totals, ..Shard::default() });
            // What follows may take long.
            drop(shard);
            drop(full);
        }
    }

    pub fn for_each_key(&self, mut visit: impl FnMut(&[u8])) {
        for shard in &self.shards {
            let shard = lock(shard);
            let live = shard.table.iter().filter(|entry| !entry.has_expired());
            live.for_each(|entry| visit(entry.key.as_slice()));
        }
    }

    pub fn totals(&self) -> Totals {
        self.shards.iter().map(|shard| lock(shard).totals()).fold(Totals::default(), |sum, part| {
            Totals {
                keys: sum.keys + part.keys,
                expiring: sum.expiring + part.expiring,
                expired: sum.expired + part.expired,
                hits: sum.hits + part.hits,
                misses: sum.misses + part.misses,
            }
        })
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A command that panicked has left its shard as it is: a map, whatever it holds.
    shard.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Several shards, locked.
pub struct Several<'a> {
    hasher: &'a RandomState,
    shards: [Option<MutexGuard<'a, Shard>>; SHARDS],
}

impl Several<'_> {
    /// One of the keys that they were locked for.
    pub fn at<'b>(&'b mut self, key: &'b [u8]) -> Place<'b, &'b mut Shard> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[Store::shard_of(hash)].as_mut().expect("the key's shard is locked");
        Place { shard, hasher: self.hasher, key, hash }
    }
}

/// Where a key is, or would be.
pub struct Place<'a, S> {
    shard: S,
    hasher: &'a RandomState,
    key: &'a [u8],
    hash: u64,
}

impl<S: std::ops::DerefMut<Target = Shard>> Place<'_, S> {
    #[inline]
    fn entry(&mut self) -> Option<&mut Entry> {
        let (hash, key) = (self.hash, self.key);
        // Looked up twice where it is there and expires, for the borrow checker's sake.
        if self.shard.table.find(hash, |entry| is(entry, key))?.has_expired() {
            self.shard.totals.expired += 1;
            self.shard.remove(hash, |entry| is(entry, key));
            return None;
        }
        self.shard.table.find_mut(hash, |entry| is(entry, key))
    }

    /// The value, to be changed in place.
    #[inline]
    pub fn value_mut(&mut self) -> Option<&mut Value> {
        Some(&mut self.entry()?.value)
    }

    /// The value, for a command that reads; hits and misses are counted.
    #[inline]
    pub fn value(&mut self) -> Option<&Value> {
        let (hash, key) = (self.hash, self.key);
        let shard = &mut *self.shard;
        match shard.table.find(hash, |entry| is(entry, key)) {
            Some(entry) if !entry.has_expired() => {
                shard.totals.hits += 1;
                Some(&entry.value)
            }
            _ => {
                shard.totals.misses += 1;
                None
            }
        }
    }

    /// When it expires. None: it is not there.
    pub fn expires(&mut self) -> Option<i64> {
        Some(self.entry()?.expires)
    }

    /// Sets the value and when it expires. Answers with the old value, which is best dropped when
    /// the lock is not held.
    pub fn set(&mut self, value: Value, expires: i64) -> Option<Value> {
        self.put(expires, value, |old, value| Some(std::mem::replace(old, value)), |value| value)
    }

    /// The same of a text. A short one takes the place of another short one, which is not answered.
    #[inline]
    pub fn set_text(&mut self, text: &[u8], expires: i64) -> Option<Value> {
        let replace = |old: &mut Value, text| {
            if let Value::Text(old) = old
                && old.replace(text)
            {
                return None;
            }
            Some(std::mem::replace(old, Value::text(text)))
        };
        self.put(expires, text, replace, Value::text)
    }

    #[inline]
    fn put<V>(
        &mut self,
        expires: i64,
        value: V,
        replace: impl FnOnce(&mut Value, V) -> Option<Value>,
        make: impl FnOnce(V) -> Value,
    ) -> Option<Value> {
        let (hash, key) = (self.hash, self.key);
        let hasher = self.hasher;
        let shard = &mut *self.shard;
        let rehash = |entry: &Entry| hasher.hash_one(entry.key.as_slice());
        let (old, before) = match shard.table.entry(hash, |entry| is(entry, key), rehash) {
            Found::Occupied(mut found) => {
                let entry = found.get_mut();
                let before = std::mem::replace(&mut entry.expires, expires);
                (replace(&mut entry.value, value), before)
            }
            Found::Vacant(free) => {
                free.insert(Entry { key: key.into(), value: make(value), expires });
                (None, NEVER)
            }
        };
        shard.note_expiry(hash, before, expires);
        old
    }

    /// Changes when it expires; [`NEVER`] is a time, too. False: it is not there.
    pub fn set_expires(&mut self, expires: i64) -> bool {
        let Some(entry) = self.entry() else { return false };
        let before = std::mem::replace(&mut entry.expires, expires);
        let hash = self.hash;
        self.shard.note_expiry(hash, before, expires);
        true
    }

    /// Takes it out, and answers with its value.
    pub fn remove(&mut self) -> Option<Value> {
        self.entry()?;
        let (hash, key) = (self.hash, self.key);
        self.shard.remove(hash, |entry| is(entry, key))
    }
}

#[inline]
fn is(entry: &Entry, key: &[u8]) -> bool {
    entry.key.as_slice() == key
}

impl Shard {
    fn remove(&mut self, hash: u64, is: impl FnMut(&Entry) -> bool) -> Option<Value> {
        let (entry, _) = self.table.find_entry(hash, is).ok()?.remove();
        self.expiring -= usize::from(entry.expires != NEVER);
        Some(entry.value)
    }

    #[inline]
    fn note_expiry(&mut self, hash: u64, before: i64, after: i64) {
        if before != after {
            self.change_expiry(hash, before, after);
        }
    }

    #[cold]
    fn change_expiry(&mut self, hash: u64, before: i64, after: i64) {
        self.expiring -= usize::from(before != NEVER);
        if after == NEVER {
            return;
        }
        self.expiring += 1;
        self.deadlines.push(Reverse((after, hash)));
        if self.deadlines.len() > 2 * self.expiring + SWEEP {
            let table = &self.table;
            self.deadlines.retain(|Reverse((at, hash))| {
                table.find(*hash, |entry| entry.expires == *at).is_some()
            });
        }
    }

    /// Takes out some of what is due. True: there may be more.
    fn sweep(&mut self, now: i64) -> bool {
        for _ in 0..SWEEP {
            match self.deadlines.peek() {
                Some(Reverse((at, _))) if *at <= now => {}
                _ => return false,
            }
            if let Some(Reverse((at, hash))) = self.deadlines.pop()
                && self.remove(hash, |entry| entry.expires == at).is_some()
            {
                self.totals.expired += 1;
            }
        }
        true
    }

    fn totals(&self) -> Totals {
        Totals { keys: self.table.len(), expiring: self.expiring, ..self.totals }
    }
}
