//! Who subscribes to what: channels, the trie of patterns, and the routes of keys.
//!
//! A *channel* is all subscriptions of one pattern. That of a key is all that the hub keeps of the key, too, so
//! that publishing with it goes from there to the mailboxes without a step between. A key's *route* is the channels
//! whose patterns match it: its own, and those of patterns with wildcards. The latter are kept with the key
//! and made anew when the *generation*, which changes with the set of such patterns, is not the one they
//! were made in. So a subscription to a key, or to a pattern that somebody has subscribed to already, changes
//! no route at all, and a new pattern costs each key a look into the trie at its next message.
//!
//! # Invariants
//!
//! 1. A publication that begins after a subscription was made finds it: it is in the key's channel, or the
//!    generation was changed, before `join` returns; and the list was `STALE` before.
//! 2. Routes are made under the router's lock, so an older one never replaces a newer one.

use super::handler::Handler;
use super::key::{Key, Token, is_reserved, pattern_tokens};
use super::mailbox::Mail;
use super::ring::Ring;
use super::subscribe::Subscriber;
use crate::pool::contain;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{CachePadded, Mutex, MutexGuard};
use arc_swap::{ArcSwapOption, Guard};
use core::ops::Deref;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};

/// How many patterns without subscriptions are kept before they are thrown out.
const EMPTY_PATTERNS: usize = 64;

/// See the head of the file. In the order in which a publication needs it: there may be a million, of which no
/// cache has the next one.
#[repr(C)]
pub(super) struct Channel {
    /// Of a key: the hub's number, and [`RESERVED`] if the key is one of the hub's own.
    hub: u32,
    /// Of a key: which histories take it, as `history/keep.rs` has found out; 0 before that.
    takers: AtomicU32,
    /// [`STALE`]; [`SHARED`] for each that may be in the ring: they come and go, so where they are is known under the
    /// lock alone; and [`APART`] for each other.
    watch: AtomicU64,
    route: Route,
    /// Those on their own, for publishers; made of `state` by the first of them after a change.
    own: ArcSwapOption<Vec<Arc<Subscriber>>>,
    state: Mutex<State>,
    pattern: Box<str>,
}

/// In `Channel::hub`.
const RESERVED: u32 = 1 << 31;
/// In `Channel::watch`: `own` is not what `state` has.
const STALE: u64 = 1;
/// In `Channel::watch`, so many times each.
const SHARED: u64 = 1 << 1;
const APART: u64 = 1 << 32;

/// What a subscription counts as.
fn kind_of(subscriber: &Subscriber) -> u64 {
    if subscriber.rules.shared { SHARED } else { APART }
}

/// Who subscribes to a channel. Each is in the ring or in one of the two lists; see `ring.rs`.
#[derive(Default)]
pub(super) struct State {
    pub(super) ring: Ring,
    seldom: Option<Box<Seldom>>,
}

/// What most channels do without.
#[derive(Default)]
struct Seldom {
    /// Those that are on their own.
    own: Vec<Arc<Subscriber>>,
    /// Those that take no more messages and have not ended: of interest only to whoever adds up the books.
    closed: Vec<Arc<Subscriber>>,
    /// What those that must be unique are told apart by.
    identities: BTreeSet<Identity>,
}

impl State {
    fn seldom(&mut self) -> &mut Seldom {
        self.seldom.get_or_insert_default()
    }

    /// Those that are on their own.
    #[inline]
    pub(super) fn own(&self) -> &[Arc<Subscriber>] {
        self.seldom.as_ref().map_or(&[], |seldom| &seldom.own)
    }

    /// How many subscribe, if all who take messages are in the ring; 0: they are not.
    #[inline]
    pub(super) fn all_in_ring(&self) -> u64 {
        if self.own().is_empty() { self.ring.members().len() as u64 } else { 0 }
    }

    fn closed(&self) -> &[Arc<Subscriber>] {
        self.seldom.as_ref().map_or(&[], |seldom| &seldom.closed)
    }

    /// Of a subscription: what it was offered in the ring, and what waits for it there.
    fn in_ring(&self, subscriber: &Subscriber) -> (u64, u64) {
        (self.ring.offered(subscriber), self.ring.waiting(subscriber))
    }
}

/// Takes a subscription out of the list where it has its place; false if that is another's.
fn take(list: &mut Vec<Arc<Subscriber>>, subscriber: &Arc<Subscriber>) -> bool {
    let place = subscriber.place.load(Relaxed);
    if !list.get(place as usize).is_some_and(|other| Arc::ptr_eq(other, subscriber)) {
        return false;
    }
    drop(list.swap_remove(place as usize));
    if let Some(moved) = list.get(place as usize) {
        moved.place.store(place, Relaxed);
    }
    true
}

/// Adds a subscription to a list, where it has its place then.
fn add(list: &mut Vec<Arc<Subscriber>>, subscriber: &Arc<Subscriber>) {
    subscriber.place.store(list.len() as u32, Relaxed);
    list.push(Arc::clone(subscriber));
}

/// What tells a unique subscription from others: two hashes of what the program calls it by.
pub(super) type Identity = (u64, u64);

impl Channel {
    fn new(pattern: &str, hub: u32) -> Arc<Self> {
        Arc::new(Self {
            hub,
            takers: AtomicU32::new(0),
            watch: AtomicU64::new(0),
            route: Route::default(),
            own: ArcSwapOption::empty(),
            state: Mutex::new(State::default()),
            pattern: pattern.into(),
        })
    }

    /// That of a key, in the hub of this number.
    pub(super) fn of_key(key: &str, hub: u32) -> Arc<Self> {
        Self::new(key, if is_reserved(key) { hub | RESERVED } else { hub })
    }

    fn of_pattern(pattern: &str) -> Arc<Self> {
        Self::new(pattern, 0)
    }

    #[inline]
    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Of a key: the number of its hub.
    #[inline]
    pub(super) fn hub(&self) -> u32 {
        self.hub & !RESERVED
    }

    /// Of a key: whether it is one of the hub's own.
    #[inline]
    pub(super) fn is_reserved(&self) -> bool {
        self.hub & RESERVED != 0
    }

    /// Relaxed: it stands for nothing else, and everybody finds the same.
    #[inline]
    pub(super) fn takers(&self) -> u32 {
        self.takers.load(Relaxed)
    }

    pub(super) fn set_takers(&self, takers: u32) {
        self.takers.store(takers, Relaxed);
    }

    /// How many subscriptions there are.
    pub(super) fn count(&self) -> usize {
        let state = self.lock();
        state.ring.members().len() + state.own().len() + state.closed().len()
    }

    /// Whether there are subscriptions that may be in the ring: a publisher then has to look under the lock,
    /// or it would miss one that goes there after this and is not on its own any more.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        // Acquire: pairs with the Release in `join` and `leave`.
        self.watch.load(Acquire) % APART >= SHARED
    }

    /// Whether anybody subscribes.
    #[inline]
    fn is_populated(&self) -> bool {
        // Acquire: as in `is_shared`.
        self.watch.load(Acquire) >= SHARED
    }

    /// Adds a subscription. False: there is one with the same identity.
    pub(super) fn join(
        &self,
        subscriber: &Arc<Subscriber>,
        is_closed: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.lock();
        let identity = subscriber.identity();
        if let Some(identity) = identity
            && !state.seldom().identities.insert(identity)
        {
            return false;
        }
        // Under the lock that the end of the pool takes to find its members: it finds this one, or was there before.
        let is_shut = is_closed();
        if is_shut {
            subscriber.mail().shut();
        }
        match subscriber.rules.shared && !is_shut {
            true => state.ring.join(subscriber, &mut subscriber.mail()),
            false => self.add_own(&mut state, subscriber),
        }
        // Release: pairs with the Acquire in `is_shared` and `is_populated`.
        self.watch.fetch_add(kind_of(subscriber), Release);
        true
    }

    /// Takes a subscription that has ended out; false if it is not there. What it held is not dropped here.
    pub(super) fn leave(&self, subscriber: &Arc<Subscriber>) -> bool {
        let mut state = self.lock();
        let closed = state.seldom.as_mut().map(|seldom| &mut seldom.closed);
        let left = closed.is_some_and(|closed| take(closed, subscriber))
            || self.take_own(&mut state, subscriber);
        if left {
            if let Some(identity) = subscriber.identity() {
                state.seldom().identities.remove(&identity);
            }
            self.watch.fetch_sub(kind_of(subscriber), Release);
        }
        left
    }

    /// Lets go of all subscriptions and messages, when the hub is gone: they lead back here.
    pub(super) fn clear(&self) {
        let state = core::mem::take(&mut *self.lock());
        self.own.store(None);
        let _panicked = contain(|| drop(state));
    }

    fn add_own(&self, state: &mut State, subscriber: &Arc<Subscriber>) {
        add(&mut state.seldom().own, subscriber);
        // Release: pairs with the Acquire in `snapshot`.
        self.watch.fetch_or(STALE, Release);
    }

    fn take_own(&self, state: &mut State, subscriber: &Arc<Subscriber>) -> bool {
        let own = state.seldom.as_mut().map(|seldom| &mut seldom.own);
        let taken = own.is_some_and(|own| take(own, subscriber));
        if taken {
            self.watch.fetch_or(STALE, Release);
        }
        taken
    }

    /// A subscription that was on its own comes back to the ring.
    pub(super) fn join_ring(
        &self,
        state: &mut State,
        subscriber: &Arc<Subscriber>,
        mail: &mut Mail<Handler>,
    ) {
        if self.take_own(state, subscriber) {
            state.ring.join(subscriber, mail);
        }
    }

    /// A subscription in the ring goes on its own, with what waits for it.
    pub(super) fn apart(&self, state: &mut State, subscriber: &Arc<Subscriber>) {
        state.ring.part(subscriber, false);
        self.add_own(state, subscriber);
    }

    /// A subscription in the ring takes no more messages, and with `discard` not those that wait. Publishers do
    /// not meet it again.
    pub(super) fn close(&self, state: &mut State, subscriber: &Arc<Subscriber>, discard: bool) {
        state.ring.part(subscriber, discard);
        add(&mut state.seldom().closed, subscriber);
    }

    /// The subscriptions that are on their own, for a publisher.
    #[inline]
    pub(super) fn snapshot(&self) -> Snapshot {
        // Acquire: pairs with the Release where it is set.
        if self.watch.load(Acquire) & STALE != 0 {
            self.renew(&self.lock());
        }
        Snapshot(self.own.load())
    }

    /// The same, for a publisher that is not there yet: what it needs of them is on its way meanwhile. None: some may
    /// be in the ring.
    #[inline]
    pub(super) fn ahead(&self) -> Option<Snapshot> {
        (!self.is_shared()).then(|| self.snapshot())
    }

    /// The same, for whoever holds the lock. None: there are none.
    pub(super) fn snapshot_of(&self, state: &State) -> Option<Snapshot> {
        self.renew(state);
        (!state.own().is_empty()).then(|| Snapshot(self.own.load()))
    }

    fn renew(&self, state: &State) {
        if self.watch.load(Relaxed) & STALE != 0 {
            let own = state.own();
            self.own.store((!own.is_empty()).then(|| Arc::new(own.to_vec())));
            // After that, and under the lock: whoever sees it sees the list.
            self.watch.fetch_and(!STALE, Release);
        }
    }

    /// All subscriptions, for those who list them.
    pub(super) fn members(&self) -> Vec<Arc<Subscriber>> {
        let state = self.lock();
        state.ring.members().iter().chain(state.own()).chain(state.closed()).cloned().collect()
    }

    /// Of a subscription: what it was offered in the ring, and what waits for it there; with its mailbox.
    pub(super) fn with_ring<R>(
        &self,
        subscriber: &Subscriber,
        f: impl FnOnce(u64, u64, &Mail<Handler>) -> R,
    ) -> R {
        let state = subscriber.rules.shared.then(|| self.lock());
        let mail = subscriber.mail();
        let (offered, waiting) = state.as_ref().map_or((0, 0), |state| state.in_ring(subscriber));
        f(offered, waiting, &mail)
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscriptions of a channel that are on their own, as they were at some moment.
pub(super) struct Snapshot(Guard<Option<Arc<Vec<Arc<Subscriber>>>>>);

impl Deref for Snapshot {
    type Target = [Arc<Subscriber>];

    #[inline]
    fn deref(&self) -> &[Arc<Subscriber>] {
        self.0.as_ref().map_or(&[], |own| own)
    }
}

/// What a key knows of patterns with wildcards.
#[derive(Default)]
#[repr(C)]
struct Route {
    /// `{ generation: 63, some: 1 }`: that in which `patterns` was made, and whether it has any.
    made: AtomicU64,
    patterns: ArcSwapOption<Vec<Arc<Channel>>>,
}

/// See the head of the file.
pub(super) struct Router {
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
    pub(super) fn new() -> Self {
        // A key that was never routed has generation 0.
        Self { generation: CachePadded::new(AtomicU64::new(1)), patterns: Mutex::default() }
    }

    /// Adds a subscription to a key. False: there is one with the same identity, and it was not added.
    pub(super) fn join_key(
        &self,
        key: &Key,
        make: impl FnOnce(Arc<Channel>) -> Arc<Subscriber>,
        is_closed: impl FnOnce() -> bool,
    ) -> (Arc<Subscriber>, bool) {
        let subscriber = make(Arc::clone(key.channel()));
        let joined = key.channel().join(&subscriber, is_closed);
        (subscriber, joined)
    }

    /// As `join_key`, for a pattern with wildcards.
    pub(super) fn join_pattern(
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
    pub(super) fn leave(&self, subscriber: &Arc<Subscriber>) {
        let channel = subscriber.channel();
        if super::key::is_literal(channel.pattern()) {
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

    /// Calls `each` for the channels of all patterns with wildcards that match the key and that somebody subscribes
    /// to.
    #[inline]
    pub(super) fn with_patterns(&self, key: &Key, mut each: impl FnMut(&Arc<Channel>)) {
        if self.has_patterns(key)
            && let Some(channels) = &*key.channel().route.patterns.load()
        {
            channels.iter().filter(|channel| channel.is_populated()).for_each(&mut each);
        }
    }

    /// Whether somebody subscribes to patterns with wildcards that match the key.
    #[inline]
    pub(super) fn has_listeners(&self, key: &Key) -> bool {
        self.has_patterns(key) && self.has_populated(key)
    }

    #[cold]
    fn has_populated(&self, key: &Key) -> bool {
        let mut some = false;
        self.with_patterns(key, |_| some = true);
        some
    }

    /// Whether patterns with wildcards match the key. Those that nobody subscribes to any more are kept for a while.
    #[inline]
    fn has_patterns(&self, key: &Key) -> bool {
        // Acquire: pairs with the Release where it changes.
        let generation = self.generation.load(Acquire);
        // Acquire: pairs with the Release in `reroute`.
        let mut made = key.channel().route.made.load(Acquire);
        if made >> 1 != generation {
            made = self.reroute(key);
        }
        made & 1 != 0
    }

    #[cold]
    fn reroute(&self, key: &Key) -> u64 {
        let route = &key.channel().route;
        let patterns = self.lock();
        let generation = self.generation.load(Relaxed);
        let made = route.made.load(Relaxed);
        if made >> 1 == generation {
            return made;
        }
        let mut found = Vec::new();
        patterns.trie.find(key.as_str(), &mut found);
        let made = generation << 1 | u64::from(!found.is_empty());
        route.patterns.store((!found.is_empty()).then(|| Arc::new(found)));
        // Release: pairs with the Acquire in `has_patterns`.
        route.made.store(made, Release);
        made
    }

    /// The channels of all patterns with wildcards.
    pub(super) fn channels(&self) -> Vec<Arc<Channel>> {
        self.lock().by_text.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Patterns> {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Patterns {
    fn add(&mut self, channel: &Arc<Channel>) {
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
    use crate::hub::key::matches;
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
