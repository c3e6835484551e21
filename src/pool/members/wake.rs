//! Who is parked, who searches, who watches: one word, and every wake is one CAS on it.
//!
//! # The problem
//!
//! A thread that publishes work must wake a parked one if, and only if, no thread is already on the way to
//! look for work. If "who is parked" and "does a thread search" are two words, there is a moment when
//! a submitter sees a searcher that has just given up, or claims the search and then finds none to
//! wake while a second submitter relies on it. Either way work lies beside parked threads. In one
//! word these states cannot be told apart from a consistent one.
//!
//! # The word (one per group of up to 48 members)
//!
//! ```text
//! { searching: 1, watch: 6, idle: 48 }        watch: 0 none, 1..=48 member + 1, 63 a polling leader
//! ```
//!
//! | a member is | idle bit | watch | its own futex says |
//! |---|---|---|---|
//! | awake | 0 | no | |
//! | idle (announced, then parked) | 1 | no | nothing yet |
//! | the watch (in a timed park) | 0 | yes | WATCH, when it was made the watch |
//! | woken | 0 | no | SEARCH or LEAD, and `searching` is set for SEARCH |
//!
//! ```text
//!            announce                wake_one: idle bit → searching
//!   awake ────────────► idle ─────────────────────────────────► woken, searching
//!     ▲  ▲   retract     │  arm_watch: idle bit → watch               │
//!     │  └───────────────┤                                            │ stop_searching,
//!     │     leave_watch  ▼        wake_one, when no idle bit is left  │ then scan
//!     └─────────────── watch ──────────────────────────────────►──────┘
//! ```
//!
//! # Rules
//!
//! 1. Whoever takes an idle bit (or the watch field) away from another member owes it an `unpark`
//!    with the reason; whoever finds its own bit taken has been woken and waits for that reason.
//!    A member that is made the watch and then called away is owed both, and they may come in
//!    either order: so a call says if it took the watch, and the member waits for the news that it
//!    had it. Otherwise that would come late and pass for a later watch.
//! 2. `searching` is set by the CAS that takes the bit and cleared by the member that was woken, on
//!    every path: when it found work, when it found none, and before it parks or waits at a source.
//! 3. Whoever clears `searching` scans the queues *afterwards*. Work published while the mark stood
//!    woke no member, and this scan is what finds it.
//! 4. Whoever announces itself idle scans afterwards too.
//!
//! # Orderings
//!
//! *Publish, barrier, read this word* (submitter) races with *change this word, barrier, scan*
//! (rules 3 and 4). `store_load_barrier` stands on both sides, so at least one sees the other. All
//! changes of the word are AcqRel read-modify-writes, so that they form one chain; the loads that
//! decide not to wake may be Relaxed because the barrier precedes them.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{CachePadded, store_load_barrier};

/// Members per word: what is left of 64 bits beside the two other fields, rounded down to a size
/// that divides well.
pub(crate) const GROUP: usize = 48;

const IDLE: u64 = (1 << GROUP) - 1;
const WATCH_SHIFT: u32 = 48;
const WATCH: u64 = 0x3f << WATCH_SHIFT;
const LEADER_WATCHES: u64 = 0x3f << WATCH_SHIFT;
const SEARCHING: u64 = 1 << 63;

#[inline]
fn bit(member: usize) -> u64 {
    1 << member
}

#[inline]
fn watch_field(member: usize) -> u64 {
    (member as u64 + 1) << WATCH_SHIFT
}

/// The member in the watch field, if a member holds the watch.
#[inline]
fn watching_member(word: u64) -> Option<usize> {
    match word & WATCH {
        0 | LEADER_WATCHES => None,
        field => Some((field >> WATCH_SHIFT) as usize - 1),
    }
}

/// Who is to be unparked, and why. Not doing it loses a thread, hence `must_use`.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub(crate) enum Called {
    /// No member needs waking: one searches already, or none is parked.
    Nobody,
    /// This member was taken off the word; unpark it with the reason that the call stands for.
    Member(usize),
    /// No member is parked, so a polling leader has the watch from now on: ring it.
    Leader,
}

/// A parked member that was taken off the word. Not unparking it loses a thread, hence `must_use`.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
#[must_use]
pub(crate) struct Taken {
    pub(crate) member: usize,
    /// It was the watch, which it must be told.
    pub(crate) was_watch: bool,
}

/// Why no member was called.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum NotCalled {
    /// A searcher is on its way.
    Searching,
    /// No thread of this group is parked.
    NoneParked,
}

/// Who looks after the others, or could.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchers {
    pub(crate) watched: bool,
    /// A member is parked, be it the watch. A hint.
    pub(crate) parked: bool,
}

/// The wake word of one group. Members are numbered 0..48 within it.
#[derive(Debug)]
pub(crate) struct WakeWord {
    word: CachePadded<AtomicU64>,
    /// Who is made the watch first, as a bit: whoever can be without being woken.
    preferred: AtomicU64,
}

impl WakeWord {
    pub(crate) fn new() -> Self {
        Self { word: CachePadded::new(AtomicU64::new(0)), preferred: AtomicU64::new(0) }
    }

    /// Announces `me` as idle. The barrier is included; scan the queues next (rule 4).
    pub(crate) fn announce(&self, me: usize) {
        let before = self.word.fetch_or(bit(me), AcqRel);
        debug_assert_eq!(before & bit(me), 0);
        // Against *publish, then read the word* in `wake_one`'s callers.
        store_load_barrier();
    }

    /// Takes the announcement back. False: another thread was quicker and has called `me` (rule 1).
    #[must_use]
    pub(crate) fn retract(&self, me: usize) -> bool {
        self.word.fetch_and(!bit(me), AcqRel) & bit(me) != 0
    }

    /// Calls one parked member to search, unless one searches already. The caller has published its
    /// work and passed a barrier; unpark the answer with `Wakes::SEARCH`.
    #[inline]
    pub(crate) fn wake_one(&self) -> Result<Taken, NotCalled> {
        // Relaxed: the caller's barrier orders it after the publication.
        let word = self.word.load(Relaxed);
        if word & SEARCHING != 0 {
            return Err(NotCalled::Searching);
        }
        if word & IDLE == 0 && watching_member(word).is_none() {
            return Err(NotCalled::NoneParked);
        }
        self.take_parked(word, SEARCHING)
    }

    /// Calls one parked member to lead; it owes no search. Unpark the answer with `Wakes::LEAD`.
    pub(crate) fn wake_to_lead(&self) -> Result<Taken, NotCalled> {
        self.take_parked(self.word.load(Relaxed), 0)
    }

    /// Takes the lowest idle bit (so that the hot threads stay hot), or the watch when no idle
    /// member is left, and sets `mark` in the same step.
    #[cold]
    fn take_parked(&self, mut word: u64, mark: u64) -> Result<Taken, NotCalled> {
        loop {
            if word & mark != 0 {
                return Err(NotCalled::Searching);
            }
            let (taken, rest) = if word & IDLE != 0 {
                let member = (word & IDLE).trailing_zeros() as usize;
                (Taken { member, was_watch: false }, word & !bit(member))
            } else if let Some(member) = watching_member(word) {
                (Taken { member, was_watch: true }, word & !WATCH)
            } else {
                return Err(NotCalled::NoneParked);
            };
            match self.word.compare_exchange_weak(word, rest | mark, AcqRel, Relaxed) {
                Ok(_) => return Ok(taken),
                Err(now) => word = now,
            }
        }
    }

    /// Gives up the searching mark. The barrier is included; scan the queues next (rule 3).
    pub(crate) fn stop_searching(&self) {
        let before = self.word.fetch_and(!SEARCHING, AcqRel);
        debug_assert_ne!(before & SEARCHING, 0);
        // Against *publish, then see the mark and wake none*.
        store_load_barrier();
    }

    /// Claims the searching mark for a thread that is awake and about to spin for work. The same
    /// duties follow as from being woken with SEARCH.
    pub(crate) fn start_searching(&self) -> bool {
        self.word.fetch_or(SEARCHING, AcqRel) & SEARCHING == 0
    }

    /// Whether arming could do anything: there is no watch. One relaxed load for the hot path; the
    /// caller has passed a barrier since it published what the watch is to look after.
    #[inline]
    pub(crate) fn is_unwatched(&self) -> bool {
        self.word.load(Relaxed) & WATCH == 0
    }

    /// As `is_unwatched` and `has_parked`, by one load.
    #[inline]
    pub(crate) fn watchers(&self) -> Watchers {
        let word = self.word.load(Relaxed);
        let parked = word & IDLE != 0 || watching_member(word).is_some();
        Watchers { watched: word & WATCH != 0, parked }
    }

    /// Makes sure that there is a watch: an idle member if there is one (unpark it with
    /// `Wakes::WATCH`), else, if `leader_can`, a polling leader (ring it).
    pub(crate) fn arm_watch(&self, leader_can: bool) -> Called {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & WATCH != 0 {
                return Called::Nobody;
            }
            let (after, called) = if word & IDLE != 0 {
                let member = self.next_watch(word & IDLE);
                (word & !bit(member) | watch_field(member), Called::Member(member))
            } else if leader_can {
                (word | LEADER_WATCHES, Called::Leader)
            } else {
                return Called::Nobody;
            };
            match self.word.compare_exchange_weak(word, after, AcqRel, Relaxed) {
                Ok(_) => return called,
                Err(now) => word = now,
            }
        }
    }

    fn next_watch(&self, idle: u64) -> usize {
        match idle & self.preferred.load(Relaxed) {
            0 => highest(idle),
            preferred => highest(preferred),
        }
    }

    /// Makes `member` the first to be made the watch, or no member. A hint.
    pub(crate) fn prefer(&self, member: Option<usize>) {
        self.preferred.store(member.map_or(0, bit), Relaxed);
    }

    /// Takes the watch from a member that is parked and has not been told yet: it is idle again. False:
    /// another thread has taken the watch. The caller scans the queues next, as for rule 4.
    pub(crate) fn relieve_watch(&self, member: usize) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & WATCH == watch_field(member) {
            let after = word & !WATCH | bit(member);
            match self.word.compare_exchange_weak(word, after, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The watch steps in: hands the watch on to an idle member if there is one. None: the watch
    /// had already been taken from `me`, which is a wake (rule 1).
    pub(crate) fn leave_watch(&self, me: usize) -> Option<Called> {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & WATCH != watch_field(me) {
                return None;
            }
            let unwatched = word & !WATCH;
            let (after, called) = if word & IDLE != 0 {
                let member = highest(word & IDLE);
                (unwatched & !bit(member) | watch_field(member), Called::Member(member))
            } else {
                (unwatched, Called::Nobody)
            };
            match self.word.compare_exchange_weak(word, after, AcqRel, Relaxed) {
                Ok(_) => return Some(called),
                Err(now) => word = now,
            }
        }
    }

    /// The watch ends quietly: `me` becomes an idle member. The barrier is included; scan the queues
    /// next (rule 4). False: the watch had already been taken from `me`.
    #[must_use]
    pub(crate) fn end_watch(&self, me: usize) -> bool {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & WATCH != watch_field(me) {
                return false;
            }
            let after = word & !WATCH | bit(me);
            match self.word.compare_exchange_weak(word, after, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // Against *publish, then see a watch and arm none*.
        store_load_barrier();
        true
    }

    /// Whether a polling leader has the watch.
    #[inline]
    pub(crate) fn leader_watches(&self) -> bool {
        self.word.load(Acquire) & WATCH == LEADER_WATCHES
    }

    /// The leader's watch ends. The barrier is included; scan the queues next.
    pub(crate) fn end_leader_watch(&self) {
        let mut word = self.word.load(Relaxed);
        while word & WATCH == LEADER_WATCHES {
            match self.word.compare_exchange_weak(word, word & !WATCH, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        store_load_barrier();
    }

    /// Whether a member is parked here, the watch included. A hint.
    #[inline]
    pub(crate) fn has_parked(&self) -> bool {
        let word = self.word.load(Relaxed);
        word & IDLE != 0 || watching_member(word).is_some()
    }

    /// Members that are idle or the watch, for statistics.
    pub(crate) fn parked(&self) -> u32 {
        let word = self.word.load(Relaxed);
        (word & IDLE).count_ones() + u32::from(watching_member(word).is_some())
    }

    /// Who has the watch, for statistics.
    pub(crate) fn watch(&self) -> Option<usize> {
        watching_member(self.word.load(Relaxed))
    }
}

/// The watch is taken from the other end of the idle bits than searchers are, so that the thread
/// that is woken for work next is not the one that has just been made the watch.
#[inline]
fn highest(idle: u64) -> usize {
    63 - idle.leading_zeros() as usize
}
