//! The word in which a member of a pool says what it does now.
//!
//! ```text
//! { name: 32, changes: 29, role: 3 }
//! ```
//!
//! Only the member's thread writes it (but for a place that no thread has, which a host's takes by a compare-exchange),
//! so a change is a load and a store. Code that knows better than the pool what runs, a route of a server say, puts its
//! name there through [`runs`]. The next thing that the pool runs puts its own.
//!
//! Every store is a Release: whoever sees with Acquire that a task has ended sees what it did, by whatever change of the
//! word it sees.
#![allow(unsafe_code, reason = "a thread knows its word by its address")]

use super::names::Name;
use super::recorder::{NO_THREAD, Record, Recorder, What};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sys::clock;
use core::cell::Cell;
use core::ptr;

const ROLE: u32 = 0b111;
const NAME_SHIFT: u32 = 32;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Doing {
    word: AtomicU64,
    /// Beside the word, whose line the thread has at hand.
    pub(crate) recorder: Recorder,
}

/// What a look at a thread shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    pub(crate) role: u32,
    pub(crate) name: Name,
    /// Differs if anything has changed between two looks.
    pub(crate) changes: u32,
}

impl Doing {
    /// With role 0.
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0), recorder: Recorder::default() }
    }

    /// Only the owner may call this. Without a name, what has the same role keeps the one that it has.
    #[inline]
    pub(crate) fn set(&self, role: u32, name: Name) {
        let word = self.word.load(Relaxed);
        let same_role = word as u32 & ROLE == role;
        if !same_role || name != Name::NONE && name != name_of(word) {
            self.word.store(changed(word, role, name), Release);
        }
    }

    /// Only the owner may call this. The name before. It is a change also if the name is the same.
    #[inline]
    fn rename(&self, name: Name) -> Name {
        let word = self.word.load(Relaxed);
        self.word.store(changed(word, word as u32 & ROLE, name), Release);
        name_of(word)
    }

    /// Only the owner may call this. The next thing of the same name begins.
    #[inline]
    fn go_on(&self) {
        let word = self.word.load(Relaxed);
        self.word.store(changed(word, word as u32 & ROLE, name_of(word)), Release);
    }

    /// A thread becomes the owner, if the role is `from`.
    pub(crate) fn take(&self, from: u32, to: u32) -> bool {
        let before = self.word.load(Relaxed);
        let taken = changed(before, to, Name::NONE);
        before as u32 & ROLE == from
            && self.word.compare_exchange(before, taken, AcqRel, Relaxed).is_ok()
    }

    #[inline]
    pub(crate) fn look(&self) -> Look {
        let word = self.word.load(Acquire);
        Look { role: word as u32 & ROLE, name: name_of(word), changes: word as u32 }
    }
}

#[inline]
fn name_of(word: u64) -> Name {
    Name::from_bits((word >> NAME_SHIFT) as u32)
}

#[inline]
fn changed(word: u64, role: u32, name: Name) -> u64 {
    let changes = (word as u32 | ROLE).wrapping_add(1) | role;
    u64::from(name.bits()) << NAME_SHIFT | u64::from(changes)
}

thread_local! {
    /// The word of the member that this thread is, or null.
    static HERE: Cell<*const Doing> = const { Cell::new(ptr::null()) };
}

/// This thread says in `doing` what it does.
///
/// # Safety
/// It is there until [`leave`], and this thread is its owner.
pub(crate) unsafe fn enter(doing: &Doing) {
    // Models have all their threads on one.
    if !cfg!(loom) {
        HERE.set(doing);
    }
}

pub(crate) fn leave() {
    HERE.set(ptr::null());
}

#[inline]
fn here(act: impl FnOnce(&Doing) -> Name) -> Name {
    let here = HERE.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: null, or there until `leave`, as `enter` demands.
    unsafe { here.as_ref() }.map_or(Name::NONE, act)
}

/// What this thread of a pool runs from now on has this name. Elsewhere it does nothing.
#[inline]
pub(crate) fn runs(name: Name) {
    here(|doing| {
        let before = doing.rename(name);
        doing.recorder.next(before);
        before
    });
}

/// Whether this thread says what it does there.
pub(crate) fn is_here(doing: &Doing) -> bool {
    ptr::eq(HERE.try_with(Cell::get).unwrap_or(ptr::null()), doing)
}

#[cold]
fn end_within(doing: &Doing, at: u64, name: Name) {
    let lasted = clock::now().saturating_sub(at);
    let (number, other, what) = (0, NO_THREAD, What::Run);
    doing.recorder.record(Record { at, lasted, name, number, other, what });
}

/// What this thread of a pool runs is through with one message, say, and begins with the next: it is not stuck.
#[inline]
pub(crate) fn goes_on() {
    here(|doing| {
        doing.go_on();
        Name::NONE
    });
}

/// As [`runs`], until the guard is dropped: what ran before goes on then.
#[inline]
pub(crate) fn runs_within(name: Name) -> impl Drop {
    /// What ran before; and when this began, if it is recorded.
    struct Before(Name, u64);
    impl Drop for Before {
        #[inline]
        fn drop(&mut self) {
            here(|doing| {
                let name = doing.rename(self.0);
                if self.1 != 0 {
                    end_within(doing, self.1, name);
                }
                name
            });
        }
    }
    let mut at = 0;
    let before = here(|doing| {
        if doing.recorder.is_on() {
            at = clock::now();
        }
        doing.rename(name)
    });
    Before(before, at)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_change_can_be_seen() {
        let doing = Doing::new();
        let (one, two) = (Name::new("doing one"), Name::new("doing two"));
        doing.set(3, one);
        let first = doing.look();
        assert_eq!((first.role, first.name), (3, one));
        doing.set(3, one);
        assert_eq!(doing.look(), first, "nothing has changed");
        doing.set(3, Name::NONE);
        assert_eq!(doing.look(), first, "nothing is known of what runs");
        doing.set(3, two);
        doing.set(3, one);
        let again = doing.look();
        assert_eq!((again.role, again.name), (3, one));
        assert_ne!(again.changes, first.changes);
        doing.set(4, Name::NONE);
        assert_eq!(doing.look().name, Name::NONE);
    }

    #[test]
    fn only_a_free_place_is_taken() {
        let doing = Doing::new();
        assert!(doing.take(0, 3) && !doing.take(0, 3));
        assert_eq!(doing.look().role, 3);
    }

    #[test]
    fn what_ran_before_goes_on_after_a_guard() {
        let doing = Doing::new();
        let (outer, inner) = (Name::new("doing outer"), Name::new("doing inner"));
        doing.set(4, outer);
        runs(inner);
        assert_eq!(doing.look().name, outer, "this thread is no member yet");
        // SAFETY: it leaves below.
        unsafe { enter(&doing) };
        let within = runs_within(inner);
        assert_eq!(doing.look().name, inner);
        drop(within);
        assert_eq!(doing.look().name, outer);
        leave();
    }
}
