//! One table of names for the process. A name is a number there: so what runs can be told in a word.
//!
//! A name gets its place when something is made that it names, or when that first runs; it is looked up by its text,
//! and never goes. Room is bounded: [`PLACES`] names of up to [`LONGEST`] bytes. A name that finds none of the
//! [`PROBES`] places free that its hash leads to is [`Name::OTHER`]. No lock is taken, so nothing that is held up in
//! here holds up a thread of a pool.

use crate::sys::code::symbol_at;
use core::any::type_name;
use core::cell::Cell;
use core::fmt;
// Not those of loom: they are static, and no model runs into them.
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::OnceLock;

const PLACES: usize = 4096;
/// Places that are looked at for one name.
const PROBES: usize = 16;
/// In bytes; longer names are cut.
const LONGEST: usize = 200;

static TABLE: [OnceLock<&'static str>; PLACES] = [const { OnceLock::new() }; PLACES];

/// A name in the table; [`NONE`](Self::NONE): no name.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Name(u32);

impl Name {
    pub(crate) const NONE: Self = Self(0);
    /// What found no room in the table.
    pub(crate) const OTHER: Self = Self(1);
    const FIRST: u32 = 2;

    pub(crate) fn new(text: &str) -> Self {
        let text = &text[..end_of(text)];
        if text.is_empty() {
            return Self::NONE;
        }
        let first = hash(text);
        for place in (0..PROBES).map(|probe| (first + probe) % PLACES) {
            let there = TABLE[place].get_or_init(|| Box::leak(text.into()));
            if *there == text {
                return Self(place as u32 + Self::FIRST);
            }
        }
        Self::OTHER
    }

    /// The name of a type.
    pub(crate) fn of<T: ?Sized>() -> Self {
        Self::new(type_name::<T>())
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// None: no name.
    pub(crate) fn text(self) -> Option<&'static str> {
        match self {
            Self::NONE => None,
            Self::OTHER => Some("(other)"),
            Self(number) => TABLE.get((number - Self::FIRST) as usize)?.get().copied(),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().unwrap_or("-"))
    }
}

/// Where it is cut.
fn end_of(text: &str) -> usize {
    (0..=LONGEST.min(text.len())).rfind(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

/// FNV-1a.
fn hash(text: &str) -> usize {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as usize % PLACES
}

const REMEMBERED: usize = 64;

thread_local! {
    /// By addresses.
    static NAMES: [Cell<(usize, Name)>; REMEMBERED] =
        const { [const { Cell::new((0, Name::NONE)) }; REMEMBERED] };
}

/// A name that belongs to an address, if this thread remembers that it `holds`; else it is made.
#[inline]
fn remembered(
    address: usize,
    holds: impl FnOnce(Name) -> bool,
    make: impl FnOnce() -> Name,
) -> Name {
    let place = (address >> 4) % REMEMBERED;
    match NAMES.try_with(|names| names[place].get()) {
        Ok((there, name)) if there == address && holds(name) => name,
        _ => {
            let name = make();
            let _ends = NAMES.try_with(|names| names[place].set((address, name)));
            name
        }
    }
}

/// The name of what has a function of its own, at this address.
#[inline]
pub(crate) fn of_function(address: usize, text: impl FnOnce() -> &'static str) -> Name {
    remembered(address, |_| true, || Name::new(text()))
}

/// Functions of other languages that have run, by address. Only added to: a program has few.
static CODE: [Code; CODES] =
    [const { Code { address: AtomicUsize::new(0), name: AtomicU32::new(0) } }; CODES];
const CODES: usize = 1024;

/// The address is claimed by a compare-exchange; then the name is stored, once it is known. Whoever finds none there yet
/// looks it up, too, and stores the same.
struct Code {
    address: AtomicUsize,
    name: AtomicU32,
}

/// The name of a function of another language, from what the dynamic linker knows of its address.
pub(crate) fn of_code(address: usize) -> Name {
    let first = (address >> 4) % CODES;
    for place in (0..PROBES).map(|probe| &CODE[(first + probe) % CODES]) {
        let there = match place.address.compare_exchange(0, address, Relaxed, Relaxed) {
            Ok(_) => address,
            Err(there) => there,
        };
        if there == address {
            return match Name(place.name.load(Relaxed)) {
                Name::NONE => look_up(address, &place.name),
                name => name,
            };
        }
    }
    Name::OTHER
}

#[cold]
fn look_up(address: usize, name: &AtomicU32) -> Name {
    let found = symbol_at(address).map_or(Name::OTHER, |symbol| Name::new(&symbol));
    name.store(found.0, Relaxed);
    found
}

/// The name of something that there may be more of than names, and that may be freed: so it keeps none. `text` stays
/// where it is as long as that lives.
#[inline]
pub(crate) fn of_text(text: &str) -> Name {
    let text = &text[..end_of(text)];
    // Another text may lie there now, and share the name of all that found no room.
    let holds = |name: Name| name == Name::OTHER || name.text() == Some(text);
    remembered(text.as_ptr().addr(), holds, || Name::new(text))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_text_has_one_name() {
        let name = Name::new("tcp 127.0.0.1:8080");
        assert_eq!(Name::new("tcp 127.0.0.1:8080"), name);
        assert_eq!(name.text(), Some("tcp 127.0.0.1:8080"));
        assert_ne!(Name::new("tcp 127.0.0.1:8081"), name);
        assert_eq!(Name::from_bits(name.bits()), name);
    }

    #[test]
    fn no_text_is_no_name() {
        assert_eq!(Name::new(""), Name::NONE);
        assert_eq!(Name::NONE.text(), None);
        assert_eq!(Name::from_bits(u32::MAX).text(), None, "a number that is no name's");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "ü".repeat(LONGEST);
        let text = Name::new(&long).text().unwrap();
        assert!(long.starts_with(text) && text.len() == LONGEST);
    }

    /// Goal: names are bounded, and each that has a place keeps it. Method: more of them than there is room for.
    #[test]
    fn what_finds_no_room_is_another() {
        let names: Vec<_> = (0..2 * PLACES).map(|number| format!("crowd {number}")).collect();
        let given: Vec<_> = names.iter().map(|text| Name::new(text)).collect();
        assert!(given.contains(&Name::OTHER));
        assert_eq!(Name::OTHER.text(), Some("(other)"));
        for (text, name) in names.iter().zip(given) {
            assert!(name == Name::OTHER || name.text() == Some(text), "{text}: {name:?}");
        }
    }

    #[test]
    fn functions_at_one_place_are_told_apart() {
        let far = 16 * REMEMBERED;
        for _ in 0..2 {
            assert_eq!(of_function(far, || "one").text(), Some("one"));
            assert_eq!(of_function(2 * far, || "two").text(), Some("two"));
        }
        assert_eq!(of_function(2 * far, || unreachable!("remembered")).text(), Some("two"));
    }

    #[test]
    fn a_function_has_one_name_wherever_it_is_asked_for() {
        let atoi = libc::atoi as *const () as usize;
        let asked: Vec<_> = (0..4).map(|_| std::thread::spawn(move || of_code(atoi))).collect();
        for name in asked.into_iter().map(|asked| asked.join().unwrap()) {
            assert_eq!(name.text(), Some("atoi"));
        }
        assert_eq!(of_code(2).text(), Some("(other)"));
    }

    #[test]
    fn a_text_in_the_place_of_another_has_its_own_name() {
        let mut place = *b"names: a";
        for last in *b"abab" {
            place[7] = last;
            let text = core::str::from_utf8(&place).unwrap();
            assert_eq!(of_text(text).text(), Some(text));
            assert_eq!(of_text(text).text(), Some(text));
        }
    }
}
