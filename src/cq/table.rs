//! What is out: entries that were brought and are not completed, by tokens.
//!
//! # States of a place
//!
//! | state | its value | left by |
//! |---|---|---|
//! | FREE | none | `put`: OUT, with a generation that it has not had for long |
//! | OUT | here, and lent to whoever waited | `claim`: BUSY; `finish` of its last part: FREE; `lapse`: FREE, and the value goes back to be brought again |
//! | BUSY | here, but for what the thread needs that completes it | that thread: `give_back`: OUT, or `finish`: FREE |
//!
//! ```text
//!   FREE ──put──► OUT ──claim──► BUSY ──finish──► FREE
//!     ▲            │ ▲             │
//!     └── lapse ───┘ └─ give_back ─┘
//! ```
//!
//! A place may lend several things at once (messages that were taken together): it has a bit for each, a token names
//! the place and one bit, and it is left when the last bit is done.
//!
//! # Invariants
//!
//! 1. A token names one thing from `put` until it is done, given up by `lapse`, or withdrawn; afterwards it is stale. Its
//!    generation is the place's, which changes when the place is left.
//! 2. A thing is done once: by who finds its bit set, under the table's lock, and clears it.
//! 3. brought = completed + withdrawn + out, whenever the lock is free. A thing that is brought again counts again.
//! 4. What is BUSY does not lapse: a late completion and the end of a lease are in one order, and the first has it.
//! 5. A value is dropped without the lock: that may run the next handler, or code of the user's.
//!
//! All of it is ordered by the lock that stands around the table.

/// So many things one place lends at most: a token has a byte for which of them it is.
pub(crate) const PARTS: usize = super::GROUP;
const INDEX_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 40;
const GENERATIONS: u32 = 1 << 24;

/// Some of the things of a place, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts([u64; PARTS / 64]);

impl Parts {
    /// The first ones.
    pub(crate) fn first(count: usize) -> Self {
        Self(core::array::from_fn(|word| match count.saturating_sub(64 * word) {
            0 => 0,
            left => u64::MAX >> (64 - left.min(64)),
        }))
    }

    /// The one that a token names.
    pub(crate) fn of(token: u64) -> Self {
        let mut parts = Self::default();
        parts.0[(token >> 6 & 3) as usize] = 1 << (token & 63);
        parts
    }

    pub(crate) fn has(&self, part: usize) -> bool {
        self.0[part / 64] >> (part % 64) & 1 != 0
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; PARTS / 64]
    }

    /// Adds the one that a token names. False: it was there.
    fn add(&mut self, token: u64) -> bool {
        let (word, bit) = (&mut self.0[(token >> 6 & 3) as usize], 1 << (token & 63));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Those of both.
    fn and(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    fn remove(&mut self, others: &Self) {
        self.0.iter_mut().zip(others.0).for_each(|(word, other)| *word &= !other);
    }
}

/// Values `T` that are out.
pub(crate) struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    pub(crate) brought: u64,
    pub(crate) completed: u64,
    pub(crate) withdrawn: u64,
}

/// The time of what has no lease yet: it does not lapse before a [`renew`](Table::renew), unless all does.
pub(crate) const NOT_YET: u64 = u64::MAX - 1;

struct Place<T> {
    generation: u32,
    /// What is not done. None: the place is free.
    left: Parts,
    since: u64,
    /// A thread completes it.
    busy: bool,
    /// None while it is free.
    value: Option<T>,
}

/// What has become of something that was done.
pub(crate) enum Done<T> {
    /// Its token names nothing that is out.
    Stale,
    /// Others of its place are out still.
    Part,
    /// It was the last of its place.
    Last(T),
}

/// A place, and things of it: one, until others of the same place are added.
#[derive(Clone, Copy)]
struct Token {
    index: usize,
    generation: u32,
    parts: Parts,
}

impl Token {
    fn of(number: u64) -> Self {
        let index = (number >> INDEX_SHIFT) as u32;
        let generation = (number >> GENERATION_SHIFT) as u32;
        Self { index: index as usize, generation, parts: Parts::of(number) }
    }
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), brought: 0, completed: 0, withdrawn: 0 }
    }

    /// Lends a value of so many things, 1 to [`PARTS`]. The token of its thing 0; that of thing n is greater by n.
    pub(crate) fn put(&mut self, value: T, count: usize, now: u64) -> u64 {
        self.brought += count as u64;
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                left: Parts::default(),
                since: 0,
                busy: false,
                value: None,
            });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        // Never 0, so no token is.
        place.generation = place.generation % (GENERATIONS - 1) + 1;
        (place.left, place.since, place.value) = (Parts::first(count), now, Some(value));
        u64::from(place.generation) << GENERATION_SHIFT | u64::from(index) << INDEX_SHIFT
    }

    fn place(&mut self, token: Token) -> Option<&mut Place<T>> {
        let place = self.places.get_mut(token.index)?;
        let is_out = !place.left.and(&token.parts).is_empty();
        (place.generation == token.generation && is_out).then_some(place)
    }

    /// What a token names, or is left of it while a thread completes it.
    pub(crate) fn get(&mut self, token: u64) -> Option<&mut T> {
        self.place(Token::of(token))?.value.as_mut()
    }

    /// What a token names, for the caller to complete: it takes what it needs of it, and gives that back or finishes it.
    /// None: the token is stale, or another thread completes it.
    pub(crate) fn claim(&mut self, token: u64) -> Option<&mut T> {
        let place = self.place(Token::of(token)).filter(|place| !place.busy)?;
        place.busy = true;
        place.value.as_mut()
    }

    /// What the caller has claimed is out again, once `put` has put back what was taken of it.
    pub(crate) fn give_back(&mut self, token: u64, now: u64, put: impl FnOnce(&mut T)) {
        if let Some(place) = self.place(Token::of(token)) {
            (place.since, place.busy) = (now, false);
            place.value.as_mut().map(put);
        }
    }

    /// One thing is done: one that is out, or that the caller has claimed.
    pub(crate) fn finish(&mut self, token: u64, claimed: bool) -> Done<T> {
        let token = Token::of(token);
        let Some(place) = self.place(token).filter(|place| claimed == place.busy) else {
            return Done::Stale;
        };
        place.left.remove(&token.parts);
        let over = place.left.is_empty();
        let value = if over { place.value.take() } else { None };
        self.completed += 1;
        if over {
            self.leave(token.index);
        }
        value.map_or(Done::Part, Done::Last)
    }

    /// Things that are out are done, all that these tokens name; the values of those that were the last of their places
    /// are appended to `over`. False: one of them was not out.
    pub(crate) fn finish_all(
        &mut self,
        tokens: impl Iterator<Item = u64>,
        over: &mut Vec<T>,
    ) -> bool {
        let mut were_out = true;
        let mut tokens = tokens.peekable();
        while let Some(first) = tokens.next() {
            let mut token = Token::of(first);
            while let Some(next) =
                tokens.next_if(|next| next >> INDEX_SHIFT == first >> INDEX_SHIFT)
            {
                were_out &= token.parts.add(next);
            }
            were_out &= self.finish_some(token, over);
        }
        were_out
    }

    fn finish_some(&mut self, token: Token, over: &mut Vec<T>) -> bool {
        let Some(place) = self.place(token).filter(|place| !place.busy) else {
            return false;
        };
        let done = place.left.and(&token.parts);
        place.left.remove(&done);
        if place.left.is_empty() {
            over.extend(place.value.take());
            self.leave(token.index);
        }
        self.completed += done.len();
        done == token.parts
    }

    fn leave(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.generation = place.generation % (GENERATIONS - 1) + 1;
        place.busy = false;
        self.free.push(index as u32);
    }

    /// Who has this is not gone.
    pub(crate) fn renew(&mut self, token: u64, now: u64) -> bool {
        let place = self.place(Token::of(token));
        place.map(|place| place.since = now).is_some()
    }

    /// Withdraws what is out and has been since `before` or longer, and gives it to the caller with those of its things that
    /// were not done; says since when the oldest of the others is out.
    pub(crate) fn lapse(&mut self, before: u64, lapsed: &mut Vec<(T, Parts)>) -> Option<u64> {
        let mut oldest = None::<u64>;
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            if place.busy {
                continue;
            }
            if place.since > before && place.value.is_some() {
                let begun = Some(place.since).filter(|&since| since != NOT_YET);
                oldest = oldest.into_iter().chain(begun).min();
                continue;
            }
            let Some(value) = place.value.take() else { continue };
            let left = core::mem::take(&mut place.left);
            self.withdrawn += left.len();
            self.leave(index);
            lapsed.push((value, left));
        }
        oldest
    }

    pub(crate) fn out(&self) -> u64 {
        self.places.iter().map(|place| place.left.len()).sum()
    }
}
