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

use crate::hub::channel::ring::Ring;
use crate::hub::keys::key::{Key, KeyRecord, is_reserved};
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::Mail;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::pool::contain;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{Mutex, MutexGuard};
use arc_swap::{ArcSwapOption, Guard};
use core::any::Any;
use core::ops::Deref;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// See the head of the file. In the order in which a publication needs it: there may be a million, of which no
/// cache has the next one.
#[repr(C)]
pub(in crate::hub) struct Channel {
    /// Of a key: the hub's number, and [`RESERVED`] if the key is one of the hub's own.
    hub: u32,
    /// Of a key: which histories take it, as `history/keep.rs` has found out; 0 before that.
    takers: AtomicU32,
    /// [`STALE`]; [`SHARED`] for each that may be in the ring: they come and go, so where they are is known under the
    /// lock alone; and [`DETACHED`] for each other.
    watch: AtomicU64,
    pub(in crate::hub) route: Route,
    /// Those on their own, for publishers; made of `state` by the first of them after a change.
    detached: ArcSwapOption<Vec<Arc<Subscriber>>>,
    state: Mutex<State>,
    pub(in crate::hub) pattern: Box<str>,
}

/// In `Channel::hub`.
const RESERVED: u32 = 1 << 31;
/// In `Channel::watch`: `own` is not what `state` has.
const STALE: u64 = 1;
/// In `Channel::watch`, so many times each.
const SHARED: u64 = 1 << 1;
const DETACHED: u64 = 1 << 32;

/// What a subscription counts as.
fn kind_of(subscriber: &Subscriber) -> u64 {
    if subscriber.rules.shared { SHARED } else { DETACHED }
}

/// Who subscribes to a channel. Each is in the ring or in one of the two lists; see `ring.rs`.
#[derive(Default)]
pub(in crate::hub) struct State {
    pub(in crate::hub) ring: Ring,
    seldom: Option<Box<Seldom>>,
}

/// What most channels do without.
#[derive(Default)]
struct Seldom {
    /// Those that are on their own.
    detached: Vec<Arc<Subscriber>>,
    /// Those that take no more messages and have not ended: of interest only to whoever adds up the counters.
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
    pub(in crate::hub) fn detached(&self) -> &[Arc<Subscriber>] {
        self.seldom.as_ref().map_or(&[], |seldom| &seldom.detached)
    }

    /// How many subscribe, if all who take messages are in the ring; 0: they are not.
    #[inline]
    pub(in crate::hub) fn all_in_ring(&self) -> u64 {
        if self.detached().is_empty() { self.ring.members().len() as u64 } else { 0 }
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
pub(in crate::hub) type Identity = (u64, u64);

impl Channel {
    fn new(pattern: &str, hub: u32) -> Arc<Self> {
        Arc::new(Self {
            hub,
            takers: AtomicU32::new(0),
            watch: AtomicU64::new(0),
            route: Route::default(),
            detached: ArcSwapOption::empty(),
            state: Mutex::new(State::default()),
            pattern: pattern.into(),
        })
    }

    /// That of a key, in the hub of this number.
    pub(in crate::hub) fn of_key(key: &str, hub: u32) -> Arc<Self> {
        Self::new(key, if is_reserved(key) { hub | RESERVED } else { hub })
    }

    pub(in crate::hub) fn of_pattern(pattern: &str) -> Arc<Self> {
        Self::new(pattern, 0)
    }

    #[inline]
    pub(in crate::hub) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// How many subscriptions there are.
    pub(in crate::hub) fn count(&self) -> usize {
        let state = self.lock();
        state.ring.members().len() + state.detached().len() + state.closed().len()
    }

    /// Whether there are subscriptions that may be in the ring: a publisher then has to look under the lock,
    /// or it would miss one that goes there after this and is not on its own any more.
    #[inline]
    pub(in crate::hub) fn is_shared(&self) -> bool {
        // Acquire: pairs with the Release in `join` and `leave`.
        self.watch.load(Acquire) % DETACHED >= SHARED
    }

    /// Whether anybody subscribes.
    #[inline]
    pub(in crate::hub) fn is_populated(&self) -> bool {
        // Acquire: as in `is_shared`.
        self.watch.load(Acquire) >= SHARED
    }

    /// Adds a subscription. False: there is one with the same identity.
    pub(in crate::hub) fn join(
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
            false => self.add_detached(&mut state, subscriber),
        }
        // Release: pairs with the Acquire in `is_shared` and `is_populated`.
        self.watch.fetch_add(kind_of(subscriber), Release);
        true
    }

    /// Takes a subscription that has ended out; false if it is not there. What it held is not dropped here.
    pub(in crate::hub) fn leave(&self, subscriber: &Arc<Subscriber>) -> bool {
        let mut state = self.lock();
        let closed = state.seldom.as_mut().map(|seldom| &mut seldom.closed);
        let left = closed.is_some_and(|closed| take(closed, subscriber))
            || self.take_detached(&mut state, subscriber);
        if left {
            if let Some(identity) = subscriber.identity() {
                state.seldom().identities.remove(&identity);
            }
            self.watch.fetch_sub(kind_of(subscriber), Release);
        }
        left
    }

    /// Lets go of all subscriptions and messages, when the hub is gone: they lead back here.
    pub(in crate::hub) fn clear(&self) {
        let state = core::mem::take(&mut *self.lock());
        self.detached.store(None);
        let _panicked = contain(|| drop(state));
    }

    fn add_detached(&self, state: &mut State, subscriber: &Arc<Subscriber>) {
        add(&mut state.seldom().detached, subscriber);
        // Release: pairs with the Acquire in `snapshot`.
        self.watch.fetch_or(STALE, Release);
    }

    fn take_detached(&self, state: &mut State, subscriber: &Arc<Subscriber>) -> bool {
        let own = state.seldom.as_mut().map(|seldom| &mut seldom.detached);
        let taken = own.is_some_and(|own| take(own, subscriber));
        if taken {
            self.watch.fetch_or(STALE, Release);
        }
        taken
    }

    /// A subscription that was on its own comes back to the ring.
    pub(in crate::hub) fn join_ring(
        &self,
        state: &mut State,
        subscriber: &Arc<Subscriber>,
        mail: &mut Mail<Handler>,
    ) {
        if self.take_detached(state, subscriber) {
            state.ring.join(subscriber, mail);
        }
    }

    /// A subscription in the ring goes on its own, with what waits for it.
    pub(in crate::hub) fn detach(&self, state: &mut State, subscriber: &Arc<Subscriber>) {
        state.ring.part(subscriber, false);
        self.add_detached(state, subscriber);
    }

    /// A subscription in the ring takes no more messages, and with `discard` not those that wait. Publishers do
    /// not meet it again.
    pub(in crate::hub) fn close(
        &self,
        state: &mut State,
        subscriber: &Arc<Subscriber>,
        discard: bool,
    ) {
        state.ring.part(subscriber, discard);
        add(&mut state.seldom().closed, subscriber);
    }

    /// The subscriptions that are on their own, for a publisher.
    #[inline]
    pub(in crate::hub) fn snapshot(&self) -> Snapshot {
        // Acquire: pairs with the Release where it is set.
        if self.watch.load(Acquire) & STALE != 0 {
            self.renew(&self.lock());
        }
        Snapshot(self.detached.load())
    }

    /// The same, for a publisher that is not there yet: what it needs of them is on its way meanwhile. None: some may
    /// be in the ring.
    #[inline]
    pub(in crate::hub) fn ahead(&self) -> Option<Snapshot> {
        (!self.is_shared()).then(|| self.snapshot())
    }

    /// The same, for whoever holds the lock. None: there are none.
    pub(in crate::hub) fn snapshot_of(&self, state: &State) -> Option<Snapshot> {
        self.renew(state);
        (!state.detached().is_empty()).then(|| Snapshot(self.detached.load()))
    }

    fn renew(&self, state: &State) {
        if self.watch.load(Relaxed) & STALE != 0 {
            let own = state.detached();
            self.detached.store((!own.is_empty()).then(|| Arc::new(own.to_vec())));
            // After that, and under the lock: whoever sees it sees the list.
            self.watch.fetch_and(!STALE, Release);
        }
    }

    /// All subscriptions, for those who list them.
    pub(in crate::hub) fn members(&self) -> Vec<Arc<Subscriber>> {
        let state = self.lock();
        state.ring.members().iter().chain(state.detached()).chain(state.closed()).cloned().collect()
    }

    /// Of a subscription: what it was offered in the ring, and what waits for it there; with its mailbox.
    pub(in crate::hub) fn with_ring<R>(
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
    pub(in crate::hub) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyRecord for Channel {
    fn text(&self) -> &str {
        &self.pattern
    }

    fn hub(&self) -> u32 {
        self.hub & !RESERVED
    }

    /// Relaxed: it stands for nothing else, and each thread finds out the same.
    fn takers(&self) -> u32 {
        self.takers.load(Relaxed)
    }

    fn set_takers(&self, takers: u32) {
        self.takers.store(takers, Relaxed);
    }

    fn is_reserved(&self) -> bool {
        self.hub & RESERVED != 0
    }
}

/// The channel of a key of a hub.
///
/// # Panics
/// If no hub has made the key.
#[inline]
pub(in crate::hub) fn channel_of(key: &Key) -> &Channel {
    let record: &dyn Any = &**key.record();
    record.downcast_ref().expect("what a hub keeps of a key is its channel")
}

/// The same, to be kept.
pub(in crate::hub) fn shared_channel_of(key: &Key) -> Arc<Channel> {
    let record: Arc<dyn Any + Send + Sync> = Arc::<dyn KeyRecord>::clone(key.record());
    record.downcast().unwrap_or_else(|_| unreachable!("as above"))
}

/// The subscriptions of a channel that are on their own, as they were at some moment.
pub(in crate::hub) struct Snapshot(Guard<Option<Arc<Vec<Arc<Subscriber>>>>>);

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
pub(in crate::hub) struct Route {
    /// `{ generation: 63, some: 1 }`: that in which `patterns` was made, and whether it has any.
    pub(in crate::hub) made: AtomicU64,
    pub(in crate::hub) patterns: ArcSwapOption<Vec<Arc<Channel>>>,
}
