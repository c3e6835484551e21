//! The routes from keys to channels: the trie of patterns.

use crate::hub::channel::route::{Channel, channel_of, shared_channel_of};
use crate::hub::keys::key::{Key, Token, is_reserved, pattern_tokens};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{CachePadded, Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// How many patterns without subscriptions are kept before they are thrown out.
const EMPTY_PATTERNS: usize = 64;

/// See the head of the file.
pub(in crate::hub) struct Router {
    generation: CachePadded<AtomicU64>,
    patterns: Mutex<Patterns>,
}

#[derive(Default)]
struct Patterns {
    trie: Node,
    by_text: HashMap<Box<str>, Arc<Channel>>,
    /// How many of them are without subscriptions.
    empty: usize,
}

/// What follows after some tokens.
#[derive(Default)]
struct Node {
    literal: HashMap<Box<str>, Node>,
    one: Option<Box<Node>>,
    rest: Option<Arc<Channel>>,
    here: Option<Arc<Channel>>,
}

impl Router {
    pub(in crate::hub) fn new() -> Self {
        // A key that was never routed has generation 0.
        Self { generation: CachePadded::new(AtomicU64::new(1)), patterns: Mutex::default() }
    }

    /// Adds a subscription to a key. False: there is one with the same identity, and it was not added.
    pub(in crate::hub) fn join_key(
        &self,
        key: &Key,
        make: impl FnOnce(Arc<Channel>) -> Arc<Subscriber>,
        is_closed: impl FnOnce() -> bool,
    ) -> (Arc<Subscriber>, bool) {
        let subscriber = make(shared_channel_of(key));
        let joined = channel_of(key).join(&subscriber, is_closed);
        (subscriber, joined)
    }

    /// As `join_key`, for a pattern with wildcards.
    pub(in crate::hub) fn join_pattern(
        &self,
        pattern: &str,
        make: impl FnOnce(Arc<Channel>) -> Arc<Subscriber>,
        is_closed: impl FnOnce() -> bool,
    ) -> (Arc<Subscriber>, bool) {
        let mut patterns = self.lock();
        let known = patterns.by_text.get(pattern).cloned();
        let is_new = known.is_none();
        let channel = known.unwrap_or_else(|| Channel::of_pattern(pattern));
        let was_empty = channel.count() == 0;
        let subscriber = make(Arc::clone(&channel));
        let joined = channel.join(&subscriber, is_closed);
        if !joined {
            // Whoever is there already was added with the pattern.
        } else if is_new {
            patterns.add(&channel);
            // Release: pairs with the Acquire in `has_patterns`.
            self.generation.fetch_add(1, Release);
        } else if was_empty {
            patterns.empty -= 1;
        }
        (subscriber, joined)
    }

    /// Takes a subscription out of its channel.
    pub(in crate::hub) fn leave(&self, subscriber: &Arc<Subscriber>) {
        let channel = subscriber.channel();
        if crate::hub::keys::key::is_literal(channel.pattern()) {
            channel.leave(subscriber);
            return;
        }
        let mut patterns = self.lock();
        if channel.leave(subscriber) && channel.count() == 0 {
            patterns.empty += 1;
            if patterns.empty > EMPTY_PATTERNS + patterns.by_text.len() / 2 {
                patterns.sweep();
                self.generation.fetch_add(1, Release);
            }
        }
    }

    /// Calls `each` for the channels of all patterns with wildcards that match a key, whose own channel this is, and that have
    /// subscriptions.
    #[inline]
    pub(in crate::hub) fn with_patterns(&self, own: &Channel, mut each: impl FnMut(&Arc<Channel>)) {
        if self.has_patterns(own)
            && let Some(channels) = &*own.route.patterns.load()
        {
            channels.iter().filter(|channel| channel.is_populated()).for_each(&mut each);
        }
    }

    /// Whether somebody subscribes to patterns with wildcards that match the key.
    #[inline]
    pub(in crate::hub) fn has_listeners(&self, own: &Channel) -> bool {
        self.has_patterns(own) && self.has_populated(own)
    }

    #[cold]
    fn has_populated(&self, own: &Channel) -> bool {
        let mut some = false;
        self.with_patterns(own, |_| some = true);
        some
    }

    /// Whether patterns with wildcards match the key. Those that nobody subscribes to any more are kept for a while.
    #[inline]
    fn has_patterns(&self, own: &Channel) -> bool {
        // Acquire: pairs with the Release where it changes.
        let generation = self.generation.load(Acquire);
        // Acquire: pairs with the Release in `reroute`.
        let mut made = own.route.made.load(Acquire);
        if made >> 1 != generation {
            made = self.reroute(own);
        }
        made & 1 != 0
    }

    #[cold]
    fn reroute(&self, own: &Channel) -> u64 {
        let route = &own.route;
        let patterns = self.lock();
        let generation = self.generation.load(Relaxed);
        let made = route.made.load(Relaxed);
        if made >> 1 == generation {
            return made;
        }
        let mut found = Vec::new();
        patterns.trie.find(own.pattern(), &mut found);
        let made = generation << 1 | u64::from(!found.is_empty());
        route.patterns.store((!found.is_empty()).then(|| Arc::new(found)));
        // Release: pairs with the Acquire in `has_patterns`.
        route.made.store(made, Release);
        made
    }

    /// The channels of all patterns with wildcards.
    pub(in crate::hub) fn channels(&self) -> Vec<Arc<Channel>> {
        self.lock().by_text.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Patterns> {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Patterns {
    pub(in crate::hub) fn add(&mut self, channel: &Arc<Channel>) {
        self.by_text.insert(channel.pattern().into(), Arc::clone(channel));
        self.trie.insert(channel);
    }

    /// Throws out what nobody subscribes to.
    fn sweep(&mut self) {
        self.by_text.retain(|_, channel| channel.count() > 0);
        self.trie = Node::default();
        for channel in self.by_text.values() {
            self.trie.insert(channel);
        }
        self.empty = 0;
    }
}

impl Node {
    fn insert(&mut self, channel: &Arc<Channel>) {
        let mut node = self;
        for token in pattern_tokens(&channel.pattern) {
            node = match token {
                Token::Literal(text) => node.literal.entry(text.into()).or_default(),
                Token::One => node.one.get_or_insert_default(),
                Token::Rest => {
                    node.rest = Some(Arc::clone(channel));
                    return;
                }
            };
        }
        node.here = Some(Arc::clone(channel));
    }

    /// The channels whose patterns match.
    fn find(&self, key: &str, found: &mut Vec<Arc<Channel>>) {
        let is_free = !is_reserved(key);
        self.find_from(Some(key), is_free, found);
    }

    /// `left` is what of the key has not been matched; wildcards match its first token if `is_free`.
    fn find_from(&self, left: Option<&str>, is_free: bool, found: &mut Vec<Arc<Channel>>) {
        let Some(left) = left else {
            found.extend(self.here.clone());
            return;
        };
        let (token, left) = match left.split_once('.') {
            Some((token, left)) => (token, Some(left)),
            None => (left, None),
        };
        if let Some(node) = self.literal.get(token) {
            node.find_from(left, true, found);
        }
        if is_free {
            found.extend(self.rest.clone());
            if let Some(node) = &self.one {
                node.find_from(left, true, found);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hub::keys::key::matches;
    use proptest::prelude::*;

    fn patterns_of(texts: &[String]) -> Patterns {
        let mut patterns = Patterns::default();
        for text in texts {
            if !patterns.by_text.contains_key(&**text) {
                patterns.add(&Channel::of_pattern(text));
            }
        }
        patterns
    }

    proptest! {
        /// Goal: the trie gives the answers of the plain comparison. Method: random patterns over few
        /// tokens, with and without the hub's own, before and after a sweep.
        #[test]
        fn the_trie_agrees_with_each_pattern(
            mut texts in prop::collection::vec("([ab*]|\\$s)(\\.[ab*]){0,3}(\\.>)?", 0..24),
            keys in prop::collection::vec("([ab]|\\$s)(\\.[ab]){0,4}", 1..12),
            rest in any::<bool>(),
        ) {
            texts.extend(rest.then(|| ">".to_owned()));
            let mut patterns = patterns_of(&texts);
            for key in keys {
                let mut found = Vec::new();
                patterns.trie.find(&key, &mut found);
                let mut found: Vec<_> = found.iter().map(|c| c.pattern().to_owned()).collect();
                let mut wanted: Vec<_> =
                    texts.iter().filter(|text| matches(text, &key)).cloned().collect();
                found.sort();
                wanted.sort();
                wanted.dedup();
                prop_assert_eq!(found, wanted);
            }
            patterns.sweep();
            prop_assert_eq!(patterns.by_text.len(), 0);
        }
    }
}
