//! What is published and delivered: payload, headers, and what the hub adds.
//!
//! ```text
//!   publish ──► Stored { sequence, time, key, headers, payload, priority }   once, shared by all
//!                  │
//!                  ├─► Message { &Stored, lost_before, attempt }              what a handler is lent
//!                  └─► Received { Stored, lost_before }                       what a puller takes
//! ```
//!
//! A payload of up to [`INLINE`] bytes lies in the stored message itself; a larger one is allocated once,
//! and every mailbox that has it shares it.

use crate::error::{Error, Result};
use crate::hub::keys::key::Key;
use crate::hub::outcome::{Handled, Outcome};
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Payloads of up to so many bytes are stored without an allocation.
pub const INLINE: usize = 46;

/// The most headers of a message.
pub(crate) const MAX_HEADERS: usize = 64;
/// The most bytes of all names and values of a message's headers.
const MAX_HEADER_BYTES: usize = 65_536;

/// The bytes of a message. Clones share what does not lie inline.
#[derive(Clone)]
pub struct Payload(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline { len: u8, bytes: [u8; INLINE] },
    Shared(Arc<[u8]>),
}

impl Payload {
    /// A payload without bytes.
    pub const EMPTY: Payload = Payload(Bytes::Inline { len: 0, bytes: [0; INLINE] });

    /// Copies the bytes.
    #[inline]
    pub fn new(from: &[u8]) -> Self {
        if from.len() > INLINE {
            return Self(Bytes::Shared(from.into()));
        }
        let mut bytes = [0; INLINE];
        bytes[..from.len()].copy_from_slice(from);
        Self(Bytes::Inline { len: from.len() as u8, bytes })
    }

    /// Whether the bytes lie elsewhere.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.0, Bytes::Shared(_))
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Payload {
    fn from(bytes: &[u8; N]) -> Self {
        Self::new(bytes)
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(&bytes)
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::new(text.as_bytes())
    }
}

/// Shared as it is, without a copy, if it does not fit inline.
impl From<Arc<[u8]>> for Payload {
    fn from(bytes: Arc<[u8]>) -> Self {
        if bytes.len() > INLINE { Self(Bytes::Shared(bytes)) } else { Self::new(&bytes) }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Payload {}

/// Compares with bytes and text, in either order.
macro_rules! equals_bytes {
    ($(<$($size:ident)?> $other:ty;)*) => { $(
        impl$(<const $size: usize>)? PartialEq<$other> for Payload {
            fn eq(&self, other: &$other) -> bool {
                let other: &[u8] = other.as_ref();
                self.as_slice() == other
            }
        }

        impl$(<const $size: usize>)? PartialEq<Payload> for $other {
            fn eq(&self, other: &Payload) -> bool {
                other == self
            }
        }
    )* };
}

equals_bytes! {
    <> [u8]; <> &[u8]; <N> [u8; N]; <N> &[u8; N]; <> Vec<u8>;
    <> str; <> &str; <> String;
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({:?})", String::from_utf8_lossy(self))
    }
}

/// Names and values beside a payload, in the order in which they were given; a name may come more than
/// once. Clones are the same headers: those that many messages have are made once.
///
/// ```
/// use paceline::hub::Headers;
/// # fn main() -> paceline::Result<()> {
/// let headers = Headers::new([("content-type", "text/plain"), ("trace", "17")])?;
/// assert_eq!((headers.len(), headers.get("trace")), (2, Some("17")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Option<Arc<Pairs>>);

#[derive(Default)]
struct Pairs {
    list: Vec<(Box<str>, Box<str>)>,
    /// Of a message that is tracked.
    outcome: Option<Outcome>,
}

impl PartialEq for Pairs {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Pairs {}

impl Headers {
    /// None.
    pub const NONE: Headers = Headers(None);

    /// These pairs of name and value.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than 64 of them, more than 65536 bytes in all, or a name that is
    /// empty or has blanks or control characters in it.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let mut list = Vec::new();
        let mut bytes = 0;
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                let allowed = "not empty, and without blanks and control characters";
                return Err(Error::invalid("the name of a header", format!("{name:?}"), allowed));
            }
            bytes += name.len() + value.len();
            list.push((name.into(), value.into()));
            if list.len() > MAX_HEADERS {
                let allowed = format!("up to {MAX_HEADERS}");
                return Err(Error::invalid("the number of headers", list.len(), allowed));
            }
            if bytes > MAX_HEADER_BYTES {
                let allowed = format!("up to {MAX_HEADER_BYTES} bytes");
                return Err(Error::invalid("the size of the headers", bytes, allowed));
            }
        }
        Ok(Self((!list.is_empty()).then(|| Arc::new(Pairs { list, outcome: None }))))
    }

    /// The value of the first header of this name, which is compared byte for byte.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|pairs| pairs.list.iter()).map(|(name, value)| (&**name, &**value))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |pairs| pairs.list.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|pairs| pairs.list.is_empty())
    }

    /// The same of a message that is tracked.
    pub(in crate::hub) fn tracked(&self, outcome: Outcome) -> Self {
        let list = self.0.as_ref().map(|pairs| pairs.list.clone()).unwrap_or_default();
        Self(Some(Arc::new(Pairs { list, outcome: Some(outcome) })))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Which messages of a mailbox that regards it are delivered first; of equal ones, the first published.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Priority {
    /// After all others.
    Low,
    /// Unless set.
    #[default]
    Normal,
    /// Before normal ones.
    High,
    /// Before all others.
    Critical,
}

impl Priority {
    /// From the least to the greatest.
    pub const ALL: [Priority; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];
}

/// A message as the hub stores it: one, however many subscribe.
#[derive(Clone, PartialEq, Eq)]
#[repr(C)]
pub struct Stored {
    pub(crate) payload: Payload,
    pub(crate) key: Key,
    pub(crate) priority: Priority,
    pub(crate) sequence: u64,
    /// Nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) headers: Headers,
}

impl Stored {
    /// The same once more, with this payload, to be stored elsewhere.
    pub(super) fn to_draft<'a>(&'a self, payload: &'a mut Payload) -> Draft<'a> {
        let Stored { sequence, time, ref key, ref headers, priority, .. } = *self;
        Draft { sequence, time, key, headers, payload, priority }
    }

    /// The number of this message in its hub: 1 for the first. Those of one publisher's messages grow.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When it was published, to within half a microsecond, by the clock of the system, which may be set back.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.time)
    }

    /// What it was published with.
    #[inline]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its headers.
    #[inline]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Its bytes.
    #[inline]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// If it is tracked: who is told what becomes of it.
    #[inline]
    fn outcome(&self) -> Option<&Outcome> {
        self.headers.0.as_ref()?.outcome.as_ref()
    }

    /// One of those who got it has dealt with it. Only who is told of a tracked message regards this.
    #[inline]
    pub(in crate::hub) fn end_one(&self) {
        if let Some(outcome) = self.outcome() {
            outcome.end_one();
        }
    }

    /// One of those who got it has not dealt with it. Before `end_one`.
    #[inline]
    pub(in crate::hub) fn spoil(&self, how: Handled) {
        if let Some(outcome) = self.outcome() {
            outcome.spoil(how);
        }
    }

    /// A handler of one of those who got it has failed for good. Before `end_one`.
    pub(in crate::hub) fn fail(&self, failure: &str) {
        if let Some(outcome) = self.outcome() {
            outcome.fail(failure);
        }
    }

    /// It was published, and so many got it.
    pub(in crate::hub) fn is_published(&self, got: u64) {
        if let Some(outcome) = self.outcome() {
            outcome.published(got);
        }
    }

    /// Nobody is told what becomes of it.
    pub(in crate::hub) fn forget(&self) {
        if let Some(outcome) = self.outcome() {
            outcome.forget();
        }
    }

    /// Whether somebody is told what becomes of it.
    #[inline]
    pub(in crate::hub) fn is_tracked(&self) -> bool {
        self.outcome().is_some()
    }

    /// Whether it comes again if a handler fails at it.
    pub(in crate::hub) fn comes_again(&self) -> bool {
        self.outcome().is_some_and(|outcome| outcome.comes_again)
    }

    /// Its priority.
    #[inline]
    pub fn priority(&self) -> Priority {
        self.priority
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("sequence", &self.sequence)
            .field("key", &self.key.as_str())
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

/// A message that is being published, before it is stored anywhere. It takes the payload out of where it lies,
/// so that that is copied once: a payload that was just written, and is copied, is waited for.
pub(super) struct Draft<'a> {
    pub(super) sequence: u64,
    pub(super) time: u64,
    pub(super) key: &'a Key,
    pub(super) headers: &'a Headers,
    pub(super) payload: &'a mut Payload,
    pub(super) priority: Priority,
}

impl Draft<'_> {
    pub(super) fn into_stored(self) -> Stored {
        Stored {
            sequence: self.sequence,
            time: self.time,
            key: self.key.clone(),
            headers: self.headers.clone(),
            payload: core::mem::take(self.payload),
            priority: self.priority,
        }
    }

    /// Whether storing it keeps more than its place.
    #[inline]
    pub(super) fn is_heavy(&self) -> bool {
        self.payload.is_shared() || self.headers.0.is_some()
    }

    /// Stores it where another message was. The references of that to the same key and headers are kept: so
    /// publishing one key again and again counts none.
    #[inline(always)] // A part of `Ring::push`.
    pub(super) fn write_over(self, place: &mut Option<Stored>) {
        let Some(place) = place else {
            *place = Some(self.into_stored());
            return;
        };
        place.sequence = self.sequence;
        place.time = self.time;
        if !place.key.is_same(self.key) {
            place.key = self.key.clone();
        }
        if place.headers.0.is_some() || self.headers.0.is_some() {
            place.headers = self.headers.clone();
        }
        if place.payload.is_shared() {
            place.payload = Payload::EMPTY;
        }
        // Without what an assignment does: it would look again, and copy it for that.
        core::mem::forget(core::mem::replace(&mut place.payload, core::mem::take(self.payload)));
        place.priority = self.priority;
    }
}

/// A message that a handler is lent: what is stored, and what only this subscription knows of it.
///
/// ```
/// use paceline::{Pool, hub::{Hub, Message}};
/// use std::sync::mpsc;
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let (seen, saw) = mpsc::channel();
/// let _subscription = hub.subscribe("orders.>", move |message: &Message<'_>| {
///     let text = String::from_utf8_lossy(message.payload()).into_owned();
///     let _receiver_may_be_gone = seen.send((message.key().to_string(), text));
/// })?;
/// hub.publish("orders.eu", "order 1")?;
/// assert_eq!(saw.recv().unwrap(), ("orders.eu".into(), "order 1".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub(crate) stored: &'a Stored,
    pub(crate) lost_before: u64,
    pub(crate) attempt: u32,
}

impl<'a> Message<'a> {
    /// The lag mark: how many messages this subscription has lost since the one that was delivered to
    /// it last. The sum of all is what its statistics call dropped and rejected.
    #[inline]
    pub fn lost_before(&self) -> u64 {
        self.lost_before
    }

    /// Which attempt at this message it is: 1 unless the handler has failed at it before.
    #[inline]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What is stored. A clone of it may be kept.
    #[inline]
    pub fn stored(&self) -> &'a Stored {
        self.stored
    }
}

impl Deref for Message<'_> {
    type Target = Stored;

    #[inline]
    fn deref(&self) -> &Stored {
        self.stored
    }
}

/// A message that a puller has taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    pub(crate) stored: Stored,
    pub(crate) lost_before: u64,
}

impl Received {
    /// As [`Message::lost_before`].
    pub fn lost_before(&self) -> u64 {
        self.lost_before
    }

    /// What is stored.
    pub fn into_stored(self) -> Stored {
        self.stored
    }
}

impl Deref for Received {
    type Target = Stored;

    fn deref(&self) -> &Stored {
        &self.stored
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn small_payloads_lie_inline_and_large_ones_are_shared() {
        for len in [0, 1, INLINE, INLINE + 1, 10_000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let payload = Payload::new(&bytes);
            assert_eq!(&*payload, &*bytes);
            let clone = payload.clone();
            assert_eq!(clone, payload);
            assert_eq!(clone.as_ptr() == payload.as_ptr(), len > INLINE);
        }
        assert_eq!(size_of::<Option<Stored>>(), 96);
    }

    #[test]
    fn payloads_compare_with_bytes_and_text() {
        let payload = Payload::from("abc");
        assert_eq!(payload, *b"abc");
        assert_eq!(payload, b"abc");
        assert_eq!(payload, b"abc".as_slice());
        assert_eq!(payload, *b"abc".as_slice());
        assert_eq!(payload, b"abc".to_vec());
        assert_eq!(payload, "abc");
        assert_eq!(payload, *"abc");
        assert_eq!(payload, "abc".to_owned());
        assert_eq!(b"abc", payload);
        assert_eq!("abc", payload);
        assert_ne!(payload, b"abd");
        assert_ne!(payload, b"ab");
        assert_ne!("abcd", payload);
    }

    #[test]
    fn headers_are_found_by_name_and_bad_ones_refused() {
        let headers = Headers::new([("a", "1"), ("b", "2"), ("a", "3")]).unwrap();
        assert_eq!(
            (headers.get("a"), headers.get("b"), headers.get("c")),
            (Some("1"), Some("2"), None)
        );
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2"), ("a", "3")]);
        assert!(Headers::new::<&str, &str>([]).unwrap().is_empty());
        let refused = |pairs: Vec<(String, String)>| Headers::new(pairs).unwrap_err().to_string();
        assert_eq!(
            refused(vec![("a b".into(), String::new())]),
            "the name of a header is \"a b\", but must be not empty, and without blanks and control \
             characters"
        );
        assert_eq!(
            refused(vec![("a".into(), String::new()); 65]),
            "the number of headers is 65, but must be up to 64"
        );
        assert_eq!(
            refused(vec![("a".into(), "x".repeat(65_536))]),
            "the size of the headers is 65537, but must be up to 65536 bytes"
        );
    }
}
