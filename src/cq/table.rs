//! What is out: entries that were brought and are not completed, by tokens.
//!
//! # States of a place
//!
//! | state | its value | left by |
//! |---|---|---|
//! | FREE | none | `put`: OUT, with a generation that it has not had for long |
//! | OUT | here, and lent to whoever waited | `claim`: BUSY; `finish` of its last part: FREE; `lapse`: FREE, and the value goes back to be brought again |
//! | BUSY | with the thread that completes it | that thread: `give_back`: OUT, or `finish`: FREE |
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

/// So many things one place lends at most.
const PARTS: u32 = 64;
const INDEX_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 40;
const GENERATIONS: u32 = 1 << 24;

/// Values `T` that are out.
pub(crate) struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    pub(crate) brought: u64,
    pub(crate) completed: u64,
    pub(crate) withdrawn: u64,
}

struct Place<T> {
    generation: u32,
    /// Bits of what is not done. None: the place is free.
    left: u64,
    since: u64,
    /// None while it is free or busy.
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

/// A place and a bit.
#[derive(Clone, Copy)]
struct Token {
    index: usize,
    generation: u32,
    bit: u64,
}

impl Token {
    fn of(number: u64) -> Option<Self> {
        let part = (number & 0xff) as u32;
        let index = (number >> INDEX_SHIFT) as u32;
        let generation = (number >> GENERATION_SHIFT) as u32;
        (part < PARTS).then(|| Self { index: index as usize, generation, bit: 1 << part })
    }
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), brought: 0, completed: 0, withdrawn: 0 }
    }

    /// Lends a value whose things are the bits of `left`, at least one. The token of its thing 0; that of thing n is
    /// greater by n.
    pub(crate) fn put(&mut self, value: T, left: u64, now: u64) -> u64 {
        self.brought += u64::from(left.count_ones());
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, left: 0, since: 0, value: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        // Never 0, so no token is.
        place.generation = place.generation % (GENERATIONS - 1) + 1;
        (place.left, place.since, place.value) = (left, now, Some(value));
        u64::from(place.generation) << GENERATION_SHIFT | u64::from(index) << INDEX_SHIFT
    }

    fn place(&mut self, token: Token) -> Option<&mut Place<T>> {
        let place = self.places.get_mut(token.index)?;
        (place.generation == token.generation && place.left & token.bit != 0).then_some(place)
    }

    /// What a token names, unless a thread is about to complete it.
    pub(crate) fn get(&mut self, token: u64) -> Option<&mut T> {
        self.place(Token::of(token)?)?.value.as_mut()
    }

    /// Takes a value out of the table for the caller, who gives it back or finishes it. None: the token is stale, or
    /// another thread has it.
    pub(crate) fn claim(&mut self, token: u64) -> Option<T> {
        self.place(Token::of(token)?)?.value.take()
    }

    /// What the caller has claimed is out again.
    pub(crate) fn give_back(&mut self, token: u64, value: T, now: u64) {
        if let Some(place) = Token::of(token).and_then(|token| self.place(token)) {
            place.since = now;
            place.value = Some(value);
        }
    }

    /// One thing is done: one that is out, or that the caller has claimed, whose value it has.
    pub(crate) fn finish(&mut self, token: u64, claimed: bool) -> Done<T> {
        let Some(token) = Token::of(token) else { return Done::Stale };
        let Some(place) = self.place(token).filter(|place| claimed == place.value.is_none()) else {
            return Done::Stale;
        };
        place.left &= !token.bit;
        let value = if place.left == 0 { place.value.take() } else { None };
        let over = place.left == 0;
        self.completed += 1;
        if over {
            self.leave(token.index);
        }
        value.map_or(Done::Part, Done::Last)
    }

    fn leave(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.generation = place.generation % (GENERATIONS - 1) + 1;
        self.free.push(index as u32);
    }

    /// Who has this is not gone.
    pub(crate) fn renew(&mut self, token: u64, now: u64) -> bool {
        let place = Token::of(token).and_then(|token| self.place(token));
        place.map(|place| place.since = now).is_some()
    }

    /// Withdraws what is out and has been since `before` or longer, and gives it to the caller with the bits that were not
    /// done; says since when the oldest of the others is out.
    pub(crate) fn lapse(&mut self, before: u64, lapsed: &mut Vec<(T, u64)>) -> Option<u64> {
        let mut oldest = None::<u64>;
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            if place.since > before && place.value.is_some() {
                oldest = Some(oldest.map_or(place.since, |oldest| oldest.min(place.since)));
                continue;
            }
            let Some(value) = place.value.take() else { continue };
            let left = core::mem::take(&mut place.left);
            self.withdrawn += u64::from(left.count_ones());
            self.leave(index);
            lapsed.push((value, left));
        }
        oldest
    }

    pub(crate) fn out(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.left.count_ones())).sum()
    }
}
