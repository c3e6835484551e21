//! Groups: subscriptions that share the messages of their pattern, so that each goes to one of them.
//!
//! # Whose a message is
//!
//! | balance | the member |
//! |---|---|
//! | round robin | the next one, in the order in which they joined |
//! | least loaded | the one for which least waits; of equal ones the next |
//! | random | any, evenly, by a sequence that the seed fixes (SplitMix64) |
//! | by key, by header | the owner of the key, or of the header's value |
//!
//! The owner is found by rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase
//! hit rates", IEEE/ACM Transactions on Networking, 1998): each member draws a number from the key and its
//! own, and the highest owns it. So when a member joins it takes over its share from each of the others, and
//! when one leaves its keys are spread; no other key moves.
//!
//! # The fence
//!
//! A key that moves must not be worked on by two members at once, nor out of order: the new owner gets
//! nothing before the old one has finished with all that it had got.
//!
//! | state of a key | in the table | a message of it |
//! |---|---|---|
//! | free | nothing | goes to its owner, which holds the key |
//! | held by m, n open | m, n | goes to m, if m is the owner still |
//! | moving, n open at m | m, n, what waits | waits |
//!
//! ```text
//!              enter                        enter, and the owner is another
//!   free ─────────────────► held(m, n) ──────────────────────────────────► moving(m, n)
//!    ▲                        │ ▲ ▲ enter: n + 1; finish: n - 1              │ finish: n - 1
//!    └── finish, n = 1 ───────┘ └─┴───────────────────────────────── n = 0 ──┘
//!                                    what waits goes to the owner of now, in order
//! ```
//!
//! A message is *open* from when it is put into the mailbox of a member until its handler has returned for
//! good, retries included, or it was given up otherwise.
//!
//! # Invariants
//!
//! 1. All open messages of a key are with one member.
//! 2. Messages of a key reach mailboxes in the order in which they entered: whoever decides puts them there
//!    before it lets go of the group's lock. (With the lock released in between, a message that entered later
//!    could overtake those that waited.)
//! 3. A key with nothing open and nothing waiting is not in the table, so the table is as large as the keys
//!    in work.
//! 4. `waiting` is the number of all messages that wait, and never above `most`.
//!
//! # Orderings
//!
//! Everything is under the group's lock, for a few steps, and never while code of the user runs. What the
//! old owner's handler did happens before `finish`, and that before the new one's begins.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::BuildHasher;

/// Which member of a group gets a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one for which the fewest messages wait.
    LeastLoaded,
    /// Any, evenly. The same seed gives the same sequence of draws.
    Random(u64),
    /// All messages of a key go to one member, in order. When the members change some keys move; the new
    /// member of a key gets nothing of it before the old one has finished.
    ByKey,
    /// As `ByKey`, by the value of the first header of this name. Messages without it go by their key.
    ByHeader(Box<str>),
}

/// What a message goes by; see [`Group::hash`].
pub(in crate::hub) type Hash = u64;

/// The members and the table of keys. `M` names a member, `T` is a message that waits.
pub(in crate::hub) struct Group<M, T> {
    balance: Balance,
    hasher: RandomState,
    members: Vec<Member<M>>,
    /// Whose turn it is.
    next: usize,
    draws: u64,
    keys: HashMap<Hash, Held<M, T>>,
    waiting: usize,
    most: usize,
}

struct Member<M> {
    id: M,
    number: u64,
}

struct Held<M, T> {
    by: M,
    open: usize,
    waiting: VecDeque<T>,
}

/// What is to be done with a message that has come.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::hub) enum Route<M, T> {
    /// It goes to this member: the caller puts it into its mailbox now, and `finish`es it at its end.
    To(M, T),
    /// It waits for its key to move.
    Waits,
    /// Too many wait already.
    Full(T),
    /// There is no member.
    Nobody(T),
}

impl<M: Copy + PartialEq, T> Group<M, T> {
    /// In which up to `most` messages wait for their keys to move.
    pub(in crate::hub) fn new(balance: Balance, most: usize) -> Self {
        Self {
            draws: if let Balance::Random(seed) = balance { seed } else { 0 },
            balance,
            hasher: RandomState::new(),
            members: Vec::new(),
            next: 0,
            keys: HashMap::new(),
            waiting: 0,
            most,
        }
    }

    /// Whether messages have owners, and so must be finished.
    pub(in crate::hub) fn is_fenced(&self) -> bool {
        matches!(self.balance, Balance::ByKey | Balance::ByHeader(_))
    }

    /// How many messages wait for their keys to move.
    pub(in crate::hub) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a member, with a number that no other has.
    pub(in crate::hub) fn join(&mut self, id: M, number: u64) {
        self.members.push(Member { id, number });
    }

    /// Takes a member out. What is open with it stays so until it is finished. When it was the last one,
    /// what waits comes back: nobody is left to get it.
    pub(in crate::hub) fn leave(&mut self, id: M) -> Vec<T> {
        if let Some(place) = self.members.iter().position(|member| member.id == id) {
            self.members.remove(place);
            if place < self.next {
                self.next -= 1;
            }
        }
        let mut left = Vec::new();
        if self.members.is_empty() {
            for held in self.keys.values_mut() {
                left.extend(held.waiting.drain(..));
            }
            self.waiting = 0;
        }
        left
    }

    /// What stands for a key, or for a header's value.
    pub(in crate::hub) fn hash(&self, text: &str) -> Hash {
        self.hasher.hash_one(text)
    }

    /// Says where a message goes. `load` tells how much waits for a member.
    pub(in crate::hub) fn enter(
        &mut self,
        key: Hash,
        message: T,
        load: impl Fn(M) -> usize,
    ) -> Route<M, T> {
        if self.members.is_empty() {
            return Route::Nobody(message);
        }
        if self.is_fenced() {
            return self.enter_fenced(key, message);
        }
        let place = match self.balance {
            Balance::LeastLoaded => self.least_loaded(load),
            Balance::Random(_) => self.draw(),
            _ => self.next % self.members.len(),
        };
        self.next = (place + 1) % self.members.len();
        Route::To(self.members[place].id, message)
    }

    fn enter_fenced(&mut self, key: Hash, message: T) -> Route<M, T> {
        let owner = self.owner(key);
        match self.keys.entry(key) {
            Entry::Vacant(free) => {
                let by = owner.expect("there is a member");
                free.insert(Held { by, open: 1, waiting: VecDeque::new() });
                Route::To(by, message)
            }
            Entry::Occupied(mut held) => {
                let held = held.get_mut();
                if held.waiting.is_empty() && owner == Some(held.by) {
                    held.open += 1;
                    return Route::To(held.by, message);
                }
                if self.waiting >= self.most {
                    return Route::Full(message);
                }
                self.waiting += 1;
                held.waiting.push_back(message);
                Route::Waits
            }
        }
    }

    /// A message of the key is no longer open. What comes back has waited for that, and goes to this member
    /// now, in order: the caller puts it into its mailbox.
    pub(in crate::hub) fn finish(&mut self, key: Hash) -> Option<(M, VecDeque<T>)> {
        let Entry::Occupied(mut entry) = self.keys.entry(key) else { return None };
        let held = entry.get_mut();
        held.open -= 1;
        if held.open > 0 {
            return None;
        }
        let waiting = core::mem::take(&mut held.waiting);
        self.waiting -= waiting.len();
        let owner = if waiting.is_empty() { None } else { self.owner(key) };
        let Some(owner) = owner else {
            self.keys.remove(&key);
            return None;
        };
        let open = waiting.len();
        self.keys.insert(key, Held { by: owner, open, waiting: VecDeque::new() });
        Some((owner, waiting))
    }

    /// The member that a key belongs to, by rendezvous hashing.
    fn owner(&self, key: Hash) -> Option<M> {
        let drawn = |member: &Member<M>| mix(key ^ mix(member.number));
        let best = self.members.iter().max_by_key(|member| (drawn(member), member.number));
        best.map(|member| member.id)
    }

    fn least_loaded(&self, load: impl Fn(M) -> usize) -> usize {
        let count = self.members.len();
        let from_next = (0..count).map(|step| (self.next + step) % count);
        let least = from_next.min_by_key(|&place| load(self.members[place].id));
        least.expect("there is a member")
    }

    fn draw(&mut self) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        self.draws = self.draws.wrapping_add(GOLDEN);
        let drawn = u128::from(mix(self.draws));
        // As `between` of `time/backoff.rs`.
        ((drawn * self.members.len() as u128) >> 64) as usize
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn group(balance: Balance, members: u64) -> Group<u64, u64> {
        let mut group = Group::new(balance, 100);
        (0..members).for_each(|member| group.join(member, member));
        group
    }

    fn to(route: Route<u64, u64>) -> u64 {
        match route {
            Route::To(member, _) => member,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn round_robin_goes_round_while_members_change() {
        let mut group = group(Balance::RoundRobin, 3);
        let next = |group: &mut Group<u64, u64>| to(group.enter(0, 0, |_| 0));
        assert_eq!([(); 4].map(|()| next(&mut group)), [0, 1, 2, 0]);
        assert!(group.leave(0).is_empty());
        assert_eq!([(); 3].map(|()| next(&mut group)), [1, 2, 1]);
        group.join(7, 7);
        assert_eq!([(); 3].map(|()| next(&mut group)), [2, 7, 1]);
        (1..8).for_each(|member| assert!(group.leave(member).is_empty()));
        assert_eq!(group.enter(0, 5, |_| 0), Route::Nobody(5));
    }

    #[test]
    fn the_least_loaded_gets_it_and_equal_ones_take_turns() {
        let mut group = group(Balance::LeastLoaded, 3);
        let loads = [4, 1, 3];
        assert_eq!(to(group.enter(0, 0, |member| loads[member as usize])), 1);
        let equal: Vec<u64> = (0..6).map(|_| to(group.enter(0, 0, |_| 9))).collect();
        assert_eq!(equal, [2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn random_is_even_and_repeatable() {
        let draws = |seed| {
            let mut group = group(Balance::Random(seed), 4);
            (0..8000).map(|_| to(group.enter(0, 0, |_| 0))).collect::<Vec<_>>()
        };
        let first = draws(7);
        assert_eq!(first, draws(7));
        assert_ne!(first, draws(8));
        for member in 0..4 {
            // The deviation of 8000 draws of a quarter is 39.
            let count = first.iter().filter(|&&drawn| drawn == member).count();
            assert!((1800..2200).contains(&count), "{count} of 8000 for member {member}");
        }
    }

    /// Goal: keys are spread evenly, and when a member joins or leaves only those move that it takes or had.
    #[test]
    fn few_keys_move() {
        let mut group = group(Balance::ByKey, 4);
        let owners = |group: &Group<u64, u64>| -> Vec<u64> {
            (0..4000).map(|key| group.owner(group.hash(&format!("key.{key}"))).unwrap()).collect()
        };
        let before = owners(&group);
        for member in 0..4 {
            let count = before.iter().filter(|&&owner| owner == member).count();
            assert!((800..1200).contains(&count), "{count} of 4000 keys for member {member}");
        }
        group.join(4, 4);
        let with = owners(&group);
        for (old, new) in before.iter().zip(&with) {
            assert!(old == new || *new == 4, "a key moved from {old} to {new}");
        }
        let moved = with.iter().filter(|&&owner| owner == 4).count();
        assert!((600..1000).contains(&moved), "{moved} of 4000 keys moved to a fifth member");
        assert!(group.leave(4).is_empty());
        assert_eq!(owners(&group), before);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u64),
        /// Finishes the oldest open message of the member.
        Finish(usize),
        Join,
        Leave(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..3).prop_map(Step::Enter),
            3 => (0usize..4).prop_map(Step::Finish),
            1 => Just(Step::Join),
            1 => (0usize..4).prop_map(Step::Leave),
        ]
    }

    proptest! {
        /// Goal: invariants 1 to 4, and that nothing is lost. Method: a mailbox for each member, which is
        /// worked off in order; the mailbox of one that has left is worked off still.
        #[test]
        fn keys_are_fenced(steps in prop::collection::vec(step(), 1..200)) {
            const MOST: usize = 5;
            let mut group: Group<u64, u64> = Group::new(Balance::ByKey, MOST);
            let mut mailboxes: BTreeMap<u64, VecDeque<(u64, u64)>> = BTreeMap::new();
            let mut entered: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let mut finished: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let (mut members, mut count, mut number) = (Vec::new(), 0, 0);
            let drain = Step::Finish(0);
            let all = steps.into_iter().chain(std::iter::repeat_n(drain, 400));
            for step in all {
                match step {
                    Step::Enter(key) => {
                        number += 1;
                        match group.enter(key, number, |_| 0) {
                            Route::To(member, message) => {
                                mailboxes.entry(member).or_default().push_back((key, message));
                                entered.entry(key).or_default().push(message);
                            }
                            Route::Waits => entered.entry(key).or_default().push(number),
                            Route::Full(_) => prop_assert_eq!(group.waiting(), MOST),
                            Route::Nobody(_) => prop_assert!(members.is_empty()),
                        }
                    }
                    Step::Finish(place) => {
                        mailboxes.retain(|_, mailbox| !mailbox.is_empty());
                        let Some(place) = place.checked_rem(mailboxes.len()) else { continue };
                        let mailbox = mailboxes.values_mut().nth(place).unwrap();
                        let (key, message) = mailbox.pop_front().unwrap();
                        finished.entry(key).or_default().push(message);
                        if let Some((member, messages)) = group.finish(key) {
                            prop_assert!(members.contains(&member));
                            let mailbox = mailboxes.entry(member).or_default();
                            mailbox.extend(messages.into_iter().map(|message| (key, message)));
                        }
                    }
                    Step::Join => {
                        count += 1;
                        members.push(count);
                        group.join(count, count);
                    }
                    Step::Leave(place) => {
                        let Some(place) = place.checked_rem(members.len()) else { continue };
                        for lost in group.leave(members.remove(place)) {
                            entered.values_mut().for_each(|list| list.retain(|&m| m != lost));
                        }
                    }
                }
                // Invariant 1.
                for key in 0..3 {
                    let with = mailboxes.values().filter(|m| m.iter().any(|(k, _)| *k == key));
                    prop_assert!(with.count() <= 1, "key {} is with two members", key);
                }
                let waiting: usize = group.keys.values().map(|held| held.waiting.len()).sum();
                prop_assert_eq!(group.waiting(), waiting);
                prop_assert!(waiting <= MOST);
            }
            entered.retain(|_, list| !list.is_empty());
            prop_assert_eq!(finished, entered);
            prop_assert!(group.keys.is_empty());
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a key of a group that moves | a key goes to its new owner while the old one has open messages | two handlers of the key at once |

    use super::*;
    use crate::sync::{Arc, Mutex, UnsafeCell};
    use loom::thread;

    const KEY: Hash = 7;

    /// Two members with their mailboxes, and what the handlers leave behind for each other.
    struct Place {
        group: Mutex<Group<usize, u32>>,
        mailboxes: [Mutex<VecDeque<u32>>; 2],
        work: UnsafeCell<()>,
        order: Mutex<Vec<u32>>,
    }

    impl Place {
        fn publish(&self, message: u32) {
            let mut group = self.group.lock().unwrap();
            match group.enter(KEY, message, |_| 0) {
                Route::To(member, message) => self.put(member, [message]),
                Route::Waits => {}
                other => panic!("{other:?}"),
            }
        }

        fn put(&self, member: usize, messages: impl IntoIterator<Item = u32>) {
            self.mailboxes[member].lock().unwrap().extend(messages);
        }

        /// A run of a member: the first of its mailbox, and the hand-over after it.
        fn run(&self, member: usize) -> bool {
            let first = self.mailboxes[member].lock().unwrap().pop_front();
            let Some(message) = first else { return false };
            // Two at once, or one that does not see what the other did, are a violation.
            self.work.with_mut(|_| ());
            self.order.lock().unwrap().push(message);
            let mut group = self.group.lock().unwrap();
            if let Some((member, waiting)) = group.finish(KEY) {
                self.put(member, waiting);
            }
            true
        }
    }

    /// Goal: the new owner of a key starts when the old one has finished, sees what it did, and the order
    /// holds. Method: a thread for each of two members, one of which joins between two messages and takes
    /// the key over, while a third thread publishes.
    #[test]
    fn a_key_is_handed_over() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let mut group = Group::new(Balance::ByKey, 4);
            // The second of these numbers owns the key as soon as it has joined.
            let [first, second] = owners();
            group.join(0, first);
            let place = Arc::new(Place {
                group: Mutex::new(group),
                mailboxes: [Mutex::new(VecDeque::new()), Mutex::new(VecDeque::new())],
                work: UnsafeCell::new(()),
                order: Mutex::new(Vec::new()),
            });
            place.publish(0);
            let runs = [0, 1].map(|member| {
                let place = Arc::clone(&place);
                thread::spawn(move || while place.run(member) {})
            });
            place.group.lock().unwrap().join(1, second);
            place.publish(1);
            place.publish(2);
            runs.into_iter().for_each(|run| run.join().unwrap());
            while place.run(0) || place.run(1) {}
            assert_eq!(*place.order.lock().unwrap(), [0, 1, 2]);
            assert!(place.group.lock().unwrap().keys.is_empty());
        });
    }

    fn owners() -> [u64; 2] {
        let drawn = |number: u64| mix(KEY ^ mix(number));
        if drawn(1) < drawn(2) { [1, 2] } else { [2, 1] }
    }
}
