//! Heads that were judged before.
//!
//! A client says the same of itself with each request: the fields are the same, byte by byte, and often
//! the first line is, too. So each thread keeps some of the heads that it has judged. Bytes that have come
//! alone and are one of them need not be judged again; if only their first line is another, then that alone
//! is.
//!
//! A judgement depends on the bytes and the limits and on nothing else, and both are compared. So it does
//! not matter whose head it was, and nothing is refused or let through that would not be otherwise.
//!
//! Kept is a head without a body that has come alone, of up to [`LONGEST`] bytes. Each has one of
//! [`PLACES`], told by its last bytes, and takes it from the one before. To keep a head costs more than to
//! judge it. So beyond the first ones it is done at most once in [`RARELY`] requests that were not known: there
//! are clients that never say the same.

use super::head::{Fields, Head, HeadLimits, KnownField, Length, Media};
use super::routes::Noted;
use core::cell::{Cell, RefCell};

const PLACES: usize = 16;

/// In bytes.
const LONGEST: usize = 2 << 10;

const RARELY: u32 = 64;

thread_local! {
    static HERE: RefCell<KnownHeads> = const { RefCell::new(KnownHeads::new()) };
}

/// What is to be done with a head that is known. Functions do it; what is to be done in place, which no
/// closure can be told, is a type.
pub(super) trait Then {
    type Answer;

    fn then(self, head: &mut Head<'_, '_>) -> Self::Answer;
}

impl<R, F: FnOnce(&mut Head<'_, '_>) -> R> Then for F {
    type Answer = R;

    fn then(self, head: &mut Head<'_, '_>) -> R {
        self(head)
    }
}

/// If the bytes are a head that this thread knows, gives it to `then`.
#[inline(always)] // It is most of a request.
pub(super) fn look<T: Then>(bytes: &[u8], limits: &HeadLimits, then: T) -> Option<T::Answer> {
    let found = HERE.try_with(|here| {
        // Code of the user may run in `then`, and what that brings about may look here too.
        here.try_borrow().ok()?.look(bytes, limits, then)
    });
    found.ok()?
}

/// Keeps a head that these bytes are, if that is worth it.
#[inline]
pub(super) fn note(bytes: &[u8], limits: &HeadLimits, head: &Head<'_, '_>) {
    let _ = HERE.try_with(|here| {
        if let Ok(mut here) = here.try_borrow_mut() {
            here.note(bytes, limits, head);
        }
    });
}

/// See the head of the file.
struct KnownHeads {
    places: [Option<Box<KnownHead>>; PLACES],
    /// Requests that were not known since a head was kept last; more at first.
    since: u32,
}

struct KnownHead {
    limits: HeadLimits,
    bytes: Box<[u8]>,
    /// How long its first line is.
    line: usize,
    method: Box<str>,
    target: Box<str>,
    path: Box<str>,
    query: Option<Box<str>>,
    is_1_1: bool,
    fields: Box<[KnownField]>,
    persists: bool,
    expects_continue: bool,
    upgrade: Option<Box<str>>,
    media: Media,
    /// Where its route was found last.
    noted: Cell<Noted>,
}

impl KnownHeads {
    const fn new() -> Self {
        Self { places: [const { None }; PLACES], since: RARELY * PLACES as u32 }
    }

    /// Where a head is kept that ends like this; None: no head does.
    #[inline]
    fn place(bytes: &[u8]) -> Option<usize> {
        let (before, last) = bytes.split_last_chunk::<8>()?;
        let (_, more) = before.split_last_chunk::<4>()?;
        let last = u64::from_le_bytes(*last);
        let mixed = last ^ u64::from(u32::from_le_bytes(*more)).rotate_left(29);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some((mixed >> 60) as usize)
    }

    #[inline(always)] // As above.
    fn look<T: Then>(&self, bytes: &[u8], limits: &HeadLimits, then: T) -> Option<T::Answer> {
        let known = self.places[Self::place(bytes)?].as_deref()?;
        if known.limits != *limits {
            return None;
        }
        let line = if *known.bytes == *bytes {
            None
        } else {
            let line = bytes.len().checked_sub(known.bytes.len() - known.line)?;
            let (line, block) = bytes.split_at(line);
            if *block != known.bytes[known.line..] || bytes.len() > limits.bytes {
                return None;
            }
            Some(line)
        };
        let mut head = known.head();
        if let Some(line) = line {
            head.begin_with(line, limits)?;
            head.noted = None;
        }
        Some(then.then(&mut head))
    }

    fn note(&mut self, bytes: &[u8], limits: &HeadLimits, head: &Head<'_, '_>) {
        if self.since < RARELY {
            self.since += 1;
            return;
        }
        let alone = bytes.len() == head.size && head.body == Length::Known(0);
        if alone
            && bytes.len() <= LONGEST
            && !head.block.is_empty()
            && let Some(place) = Self::place(bytes)
        {
            self.since -= RARELY;
            self.places[place] = Some(Box::new(KnownHead::new(bytes, limits, head)));
        }
    }
}

const _: () = assert!(PLACES == 1 << (64 - 60));

impl KnownHead {
    #[cold]
    fn new(bytes: &[u8], limits: &HeadLimits, head: &Head<'_, '_>) -> Self {
        Self {
            limits: *limits,
            bytes: bytes.into(),
            line: head.line(),
            method: head.method.into(),
            target: head.target.into(),
            path: head.path.into(),
            query: head.query.map(Box::from),
            is_1_1: head.is_1_1,
            fields: head.fields.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            persists: head.persists,
            expects_continue: head.expects_continue,
            upgrade: head.upgrade.map(Box::from),
            media: head.media,
            noted: Cell::new(Noted::NOWHERE),
        }
    }

    #[inline(always)] // It is long, and would be moved.
    fn head(&self) -> Head<'_, '_> {
        Head {
            method: &self.method,
            target: &self.target,
            path: &self.path,
            query: self.query.as_deref(),
            is_1_1: self.is_1_1,
            fields: Fields::Known(&self.fields),
            block: &self.bytes[self.line..],
            size: self.bytes.len(),
            body: Length::Known(0),
            persists: self.persists,
            expects_continue: self.expects_continue,
            upgrade: self.upgrade.as_deref(),
            media: self.media,
            noted: Some(&self.noted),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::head::{Parsed, Refusal, parse, scratch};
    use super::super::reading::LIMITS;
    use super::*;

    /// What can be seen of a head.
    fn seen(head: &Head<'_, '_>) -> String {
        let fields: Vec<_> = head.fields.iter().collect();
        format!(
            "{:?} {:?} {:?}",
            (head.method, head.target, head.path, head.query, head.is_1_1, fields),
            (head.line(), head.block, head.size, head.body),
            (head.persists, head.expects_continue, head.upgrade, head.media),
        )
    }

    fn judged(bytes: &[u8], limits: &HeadLimits) -> Result<String, Option<Refusal>> {
        match parse(bytes, limits, &mut scratch()) {
            Parsed::Complete(head) => Ok(seen(&head)),
            Parsed::Refused(refusal) => Err(Some(refusal)),
            Parsed::Partial => Err(None),
        }
    }

    fn keep(heads: &mut KnownHeads, bytes: &[u8], limits: &HeadLimits) {
        if let Parsed::Complete(head) = parse(bytes, limits, &mut scratch()) {
            heads.note(bytes, limits, &head);
        }
    }

    /// Goal: a head that is known is what it is found to be without that. Method: each of many bytes after
    /// each of them, good heads and others, with the same limits and with narrower ones.
    #[test]
    fn what_is_known_is_what_would_be_found() {
        let lines = [
            "GET / HTTP/1.1\r\n",
            "GET /b?c HTTP/1.1\r\n",
            "GET / HTTP/1.0\r\n",
            "HEAD / HTTP/1.1\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
            "\r\nGET / HTTP/1.1\r\n",
            "GET /#a HTTP/1.1\r\n",
            "GET / HTTP/1.1\n",
            // As long as one that ends with CR and LF.
            "GET / HTTP/1.1\nX",
            "GET / HTTP/1.1\n\r",
            "\nGET / HTTP/1.1\n",
            "GET / HTTP/1.1 \r\n",
            "GET  / HTTP/1.1\r\n",
            "GET /\r\n",
            "GET / HTTP/2.0\r\n",
            "GET / HTTP/1.2\r\n",
            "GET / HTTP/1.1\r\nX: y\r\n",
            "GET /23456789012345678901234567890 HTTP/1.1\r\n",
            "",
        ];
        let blocks = [
            "Host: a\r\n\r\n",
            "Host: bcdefg\r\n\r\n",
            "Host: a\r\nX: \u{e9}\r\nx:y\t \r\n\r\n",
            "Host: a\r\nConnection: close\r\n\r\n",
            "Connection: keep-alive\r\nHost: a\r\n\r\n",
            "Host: a\r\nExpect: 100-continue\r\n\r\n",
            "Host: a\r\nExpect: 200-ok\r\n\r\n",
            "Host: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "Host: a\r\nContent-Length: 0\r\n\r\n",
            "Host: a\r\nContent-Length: 1\r\n\r\nx",
            "Host: a\r\n\r\nHost: a\r\n\r\n",
            "Host: a\r\nHost: a\r\n\r\n",
            "Host: a\r\n",
            "\r\n",
        ];
        let narrow = HeadLimits { bytes: 60, target: 8, fields: 1 };
        let all: Vec<_> = lines
            .iter()
            .flat_map(|line| blocks.iter().map(move |block| format!("{line}{block}")))
            .collect();
        let (mut known, mut with_another_line) = (0, 0);
        for first in &all {
            let mut heads = KnownHeads::new();
            keep(&mut heads, first.as_bytes(), &LIMITS);
            for second in &all {
                for limits in [&LIMITS, &narrow] {
                    let look =
                        heads.look(second.as_bytes(), limits, |head: &mut Head<'_, '_>| seen(head));
                    let Some(found) = look else { continue };
                    let expected = judged(second.as_bytes(), limits);
                    assert_eq!(Ok(found), expected, "{second:?} after {first:?}");
                    assert_eq!(limits, &LIMITS, "it was judged by others");
                    known += 1;
                    with_another_line += usize::from(first != second);
                }
            }
        }
        assert!(known > 50 && with_another_line > 50, "{known}, {with_another_line}");
    }

    /// Goal: heads that never come again are seldom kept, and those that do are known all the same.
    /// Method: the second of two that change places with many others.
    #[test]
    fn few_heads_are_kept_of_those_that_never_come_again() {
        let head = |name: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {name}\r\n\r\n");
        let mut heads = KnownHeads::new();
        let kept = |heads: &KnownHeads, name: usize| {
            heads.look(head(name).as_bytes(), &LIMITS, |_: &mut Head<'_, '_>| ()).is_some()
        };
        let mut count = 0;
        let others = 100 * RARELY as usize;
        for name in 0..others {
            keep(&mut heads, head(name).as_bytes(), &LIMITS);
            count += usize::from(kept(&heads, name));
        }
        assert_eq!(count, PLACES + (others - PLACES) / (RARELY as usize + 1));
        for _ in 0..=RARELY {
            keep(&mut heads, head(others).as_bytes(), &LIMITS);
        }
        assert!(kept(&heads, others));
    }

    /// Goal: no head takes much room, and none that has a body, or more behind it, is kept.
    #[test]
    fn only_short_heads_that_come_alone_are_kept() {
        let limits = HeadLimits { bytes: 1 << 20, target: 100, fields: 10 };
        let long =
            |len: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(len));
        let frame = long(0).len();
        let cases = [
            (long(LONGEST - frame), true),
            (long(LONGEST - frame + 1), false),
            (long(1) + &long(1), false),
            (String::from("GET / HTTP/1.0\r\n\r\n"), false),
            (String::from("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"), false),
            (String::from("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"), false),
        ];
        for (bytes, expected) in cases {
            let mut heads = KnownHeads::new();
            keep(&mut heads, bytes.as_bytes(), &limits);
            assert_eq!(
                heads.look(bytes.as_bytes(), &limits, |_: &mut Head<'_, '_>| ()).is_some(),
                expected,
                "{bytes:?}"
            );
        }
    }
}
