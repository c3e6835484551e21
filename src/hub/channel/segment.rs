//! Segments of a ring: messages one after the other, and what a run takes of them.

use crate::hub::mailbox::entry::Entry;
use crate::hub::message::{Draft, Headers, Payload, Stored};
use crate::queue::{Page, Pen, Shown};

/// Slots of a segment.
pub(in crate::hub) const SEGMENT: usize = if cfg!(loom) { 2 } else { 128 };

/// How many segments a run takes at once at the most: the channel's lock, which all of its runs and publishers
/// need, and the count of references of each segment are what threads that serve it fight for.
pub(in crate::hub) const AT_ONCE: usize = if cfg!(loom) { 2 } else { 5 };

/// What runs read of a segment.
type Messages = Page<Option<Stored>>;

/// Some messages, one after the other.
pub(in crate::hub) struct Segment {
    pub(in crate::hub) pen: Pen<Option<Stored>>,
    /// Some of them keep more than their places: payloads and headers elsewhere.
    pub(in crate::hub) heavy: bool,
}

impl Segment {
    pub(in crate::hub) fn new() -> Self {
        Self { pen: Pen::new(SEGMENT), heavy: false }
    }

    #[inline]
    pub(in crate::hub) fn is_full(&self) -> bool {
        self.pen.is_full()
    }

    #[inline(always)] // A part of `Ring::push`.
    pub(in crate::hub) fn push(&mut self, draft: Draft<'_>) {
        self.heavy |= draft.is_heavy();
        draft.write_over(self.pen.place());
        self.pen.push();
    }

    /// Makes it as good as new, but for what costs nothing to keep; false: somebody reads still.
    pub(in crate::hub) fn reset(&mut self) -> bool {
        let lighten = |place: &mut Option<Stored>| {
            if let Some(stored) = place {
                stored.headers = Headers::NONE;
                stored.payload = Payload::EMPTY;
            }
        };
        let done = if self.heavy { self.pen.reset(lighten) } else { self.pen.reset(|_| ()) };
        self.heavy &= !done;
        done
    }

    /// Whether it may lie about until somebody happens to need it, which what is heavy may not.
    pub(in crate::hub) fn is_worth_keeping(&mut self) -> bool {
        self.reset() || !self.heavy
    }
}

/// Messages of a page, one after the other.
pub(in crate::hub) struct InPlace<'a>(Shown<'a, Option<Stored>>);

impl<'a> Iterator for InPlace<'a> {
    type Item = &'a Stored;

    #[inline(always)] // A part of `Lent::next`.
    fn next(&mut self) -> Option<&'a Stored> {
        Some(self.0.next()?.as_ref().expect("written by `Segment::push`"))
    }
}

/// Messages of a page from an index on, all of which are shown.
#[inline]
pub(in crate::hub) fn read(page: &Messages, from: usize, count: usize) -> InPlace<'_> {
    InPlace(page.read(from, count))
}

/// What a run takes from a segment of the ring.
pub(in crate::hub) struct Taken {
    pub(in crate::hub) page: crate::sync::Arc<Messages>,
    pub(in crate::hub) from: usize,
    pub(in crate::hub) count: usize,
    /// The position of the first.
    pub(in crate::hub) position: u64,
}

/// What it takes with that from the segments behind, from their first messages on.
#[derive(Default)]
pub(in crate::hub) struct Following {
    pub(in crate::hub) count: usize,
    pub(in crate::hub) pages: [Option<crate::sync::Arc<Messages>>; AT_ONCE - 1],
}

impl Following {
    /// The next segment, and how many messages were taken of it. Something was.
    pub(in crate::hub) fn next(&mut self) -> (crate::sync::Arc<Messages>, usize) {
        self.pages.rotate_left(1);
        let next = self.pages.last_mut().and_then(Option::take);
        let count = self.count.min(SEGMENT);
        self.count -= count;
        (next.expect("taken with the messages in it"), count)
    }

    pub(in crate::hub) fn messages(&self) -> impl Iterator<Item = &Stored> {
        let mut left = self.count;
        self.pages.iter().map_while(Option::as_ref).flat_map(move |page| {
            let count = left.min(SEGMENT);
            left -= count;
            read(page, 0, count)
        })
    }
}

/// How often a publisher looks out for room, and a run for messages, before it rests.
pub(in crate::hub) const LOOKS: u32 = 16;

/// So many messages are worth a run at once.
const RIPE: usize = 16;

/// Waits for a moment, after so many looks: most handlers have made room before a thread were asleep.
pub(in crate::hub) fn pause(looks: u32) {
    match looks {
        0..8 => (0..8).for_each(|_| core::hint::spin_loop()),
        _ => std::thread::yield_now(),
    }
}

impl Taken {
    pub(in crate::hub) fn messages(&self) -> InPlace<'_> {
        read(&self.page, self.from, self.count)
    }

    /// How many are shown behind it in its segment.
    #[inline]
    pub(in crate::hub) fn more(&self) -> usize {
        self.page.shown().saturating_sub(self.from + self.count)
    }

    /// Looks out for a moment whether more comes behind it in its segment: to rest and to be called again takes longer
    /// than some messages do. It ends early when there are several, as each look takes the publisher's line from it.
    pub(in crate::hub) fn await_more(&self) -> bool {
        for looks in 0..LOOKS {
            if self.more() >= RIPE {
                break;
            }
            pause(looks);
        }
        self.more() > 0
    }

    /// Whether nothing can come behind it in its segment.
    pub(in crate::hub) fn is_at_end(&self) -> bool {
        self.from + self.count == SEGMENT
    }

    /// Goes on to so many that follow.
    pub(in crate::hub) fn advance(&mut self, count: usize) {
        self.from += self.count;
        self.position += self.count as u64;
        self.count = count;
    }

    /// Goes on to the next segment.
    pub(in crate::hub) fn turn_over(&mut self, following: &mut Following) {
        self.position += self.count as u64;
        (self.page, self.count) = following.next();
        self.from = 0;
    }

    /// What is left after the first so many, for a mailbox.
    pub(in crate::hub) fn rest<'a>(
        &'a self,
        begun: usize,
        following: &'a Following,
    ) -> impl Iterator<Item = Entry> + 'a {
        let left = read(&self.page, self.from + begun, self.count - begun);
        left.chain(following.messages()).map(|stored| Entry::of_ring(stored, 0))
    }
}
