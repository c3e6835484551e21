//! What a subscription takes of the messages that its pattern matches: tests before the mailbox.
//!
//! A filter is a tree of tests. It is asked by the publisher, from left to right, no further than needed to
//! know the answer: so a rate, which uses up a token whenever it is asked, belongs behind the others.

use crate::error::Result;
use crate::hub::message::Stored;
use crate::pool::contain;
use crate::time::{Rate, Tokens};
use core::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Which messages come into a mailbox. Clones are the same filter: they share the tokens of its rates.
///
/// ```
/// use paceline::hub::{Filter, Rate};
///
/// # fn main() -> paceline::Result<()> {
/// let urgent = Filter::header("kind", "alarm").or(Filter::bytes_at(0, b"!"));
/// let filter = urgent.and(Filter::at_most(Rate::per_second(100).burst(10))?);
/// # let _ = filter; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a filter does nothing until it is given to a subscription"]
pub struct Filter(Arc<Test>);

enum Test {
    Header {
        name: Box<str>,
        value: Box<str>,
    },
    Bytes {
        offset: usize,
        bytes: Box<[u8]>,
    },
    /// Nanoseconds since 1970, the first included and the last not.
    Time {
        from: u64,
        to: u64,
    },
    Rate(Tokens),
    Predicate(Box<Predicate>),
    And(Filter, Filter),
    Or(Filter, Filter),
    Not(Filter),
}

/// None: it cannot tell.
type Predicate = dyn Fn(&Stored) -> Option<bool> + Send + Sync;

impl Filter {
    fn new(test: Test) -> Self {
        Self(Arc::new(test))
    }

    /// Messages that have a header of this name with this value, compared byte for byte.
    pub fn header(name: &str, value: &str) -> Self {
        Self::new(Test::Header { name: name.into(), value: value.into() })
    }

    /// Messages whose payload has these bytes, so many bytes after its beginning.
    pub fn bytes_at(offset: usize, bytes: &[u8]) -> Self {
        Self::new(Test::Bytes { offset, bytes: bytes.into() })
    }

    /// Messages that are published at `from` or later and before `to`, by the clock of the system.
    pub fn published(from: SystemTime, to: SystemTime) -> Self {
        Self::new(Test::Time { from: unix_nanos(from), to: unix_nanos(to) })
    }

    /// No more messages than that. Whichever it is asked about while it has a token passes, and uses it up.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a rate out of its range.
    pub fn at_most(rate: Rate) -> Result<Self> {
        Ok(Self::new(Test::Rate(Tokens::new(rate)?)))
    }

    /// Messages of which the function says yes. It is called by publishers, by several at once, and should
    /// be quick. If it panics the message does not pass.
    pub fn predicate(test: impl Fn(&Stored) -> bool + Send + Sync + 'static) -> Self {
        Self::predicate_or_none(move |message| Some(test(message)))
    }

    /// As [`predicate`](Self::predicate); None counts as a panic does.
    pub(crate) fn predicate_or_none(
        test: impl Fn(&Stored) -> Option<bool> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Test::Predicate(Box::new(test)))
    }

    /// Messages that pass both.
    pub fn and(self, other: Filter) -> Self {
        Self::new(Test::And(self, other))
    }

    /// Messages that pass one of both.
    pub fn or(self, other: Filter) -> Self {
        Self::new(Test::Or(self, other))
    }

    /// Messages that do not pass.
    #[expect(
        clippy::should_implement_trait,
        reason = "beside `and` and `or`, and by value as they are"
    )]
    pub fn not(self) -> Self {
        Self::new(Test::Not(self))
    }

    /// Whether the message passes. `now` tells nanoseconds of the monotonic clock, for rates alone. None:
    /// a predicate has panicked, or could not tell.
    pub(super) fn passes(&self, message: &Stored, now: &impl Fn() -> u64) -> Option<bool> {
        Some(match &*self.0 {
            Test::Header { name, value } => {
                message.headers.iter().any(|(n, v)| n == &**name && v == &**value)
            }
            Test::Bytes { offset, bytes } => {
                let rest = message.payload.get(*offset..);
                rest.is_some_and(|rest| rest.starts_with(bytes))
            }
            Test::Time { from, to } => (*from..*to).contains(&message.time),
            Test::Rate(tokens) => tokens.take(now()).is_ok(),
            Test::Predicate(test) => contain(|| test(message))??,
            Test::And(a, b) => a.passes(message, now)? && b.passes(message, now)?,
            Test::Or(a, b) => a.passes(message, now)? || b.passes(message, now)?,
            Test::Not(a) => !a.passes(message, now)?,
        })
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Test::Header { name, value } => write!(f, "header({name:?}, {value:?})"),
            Test::Bytes { offset, bytes } => write!(f, "bytes_at({offset}, {bytes:?})"),
            Test::Time { from, to } => write!(f, "published({from}, {to})"),
            Test::Rate(_) => f.write_str("at_most(..)"),
            Test::Predicate(_) => f.write_str("predicate(..)"),
            Test::And(a, b) => write!(f, "({a:?} and {b:?})"),
            Test::Or(a, b) => write!(f, "({a:?} or {b:?})"),
            Test::Not(a) => write!(f, "not {a:?}"),
        }
    }
}

/// Nanoseconds since 1970; 0 for what was before, and the greatest number for what is too late.
fn unix_nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hub::keys::key::Key;
    use crate::hub::message::{Headers, Payload, Priority};
    use core::time::Duration;
    use proptest::prelude::*;

    fn stored(headers: &[(&str, &str)], payload: &[u8], time: u64) -> Stored {
        Stored {
            sequence: 1,
            time,
            key: Key::detached("a.b"),
            headers: Headers::new(headers.iter().copied()).unwrap(),
            payload: Payload::new(payload),
            priority: Priority::Normal,
        }
    }

    fn passes(filter: &Filter, message: &Stored) -> bool {
        filter.passes(message, &|| 1).expect("no predicate panics")
    }

    #[test]
    fn each_test_answers_as_it_says() {
        let time = |nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let message = stored(&[("a", "1"), ("a", "2")], b"hello", 50);
        let table = [
            (Filter::header("a", "2"), true),
            (Filter::header("a", "3"), false),
            (Filter::header("A", "1"), false),
            (Filter::bytes_at(0, b"hel"), true),
            (Filter::bytes_at(3, b"lo"), true),
            (Filter::bytes_at(3, b"lo!"), false),
            (Filter::bytes_at(5, b""), true),
            (Filter::bytes_at(6, b""), false),
            (Filter::bytes_at(usize::MAX, b"x"), false),
            (Filter::published(time(50), time(51)), true),
            (Filter::published(time(0), time(50)), false),
            (Filter::published(time(51), time(90)), false),
            (Filter::predicate(|message| message.payload().len() == 5), true),
            (Filter::predicate(|message| message.key().as_str() == "b"), false),
        ];
        for (filter, answer) in table {
            assert_eq!(passes(&filter, &message), answer, "{filter:?}");
        }
    }

    #[test]
    fn a_rate_is_kept_and_shared_by_clones() {
        let filter = Filter::at_most(Rate::per_second(1).burst(2)).unwrap();
        let clone = filter.clone();
        let message = stored(&[], b"", 0);
        let now = core::cell::Cell::new(5_000_000_000);
        let ask = |filter: &Filter| filter.passes(&message, &|| now.get()).unwrap();
        assert_eq!([ask(&filter), ask(&clone), ask(&filter)], [true, true, false]);
        now.set(6_000_000_000);
        assert_eq!([ask(&filter), ask(&clone)], [true, false]);
        assert!(Filter::at_most(Rate::per_second(0)).is_err());
    }

    #[test]
    fn what_is_decided_asks_no_further() {
        let once = || Filter::at_most(Rate::per_second(1)).unwrap();
        let (no, yes) = (Filter::header("a", "2"), Filter::header("a", "1"));
        let message = stored(&[("a", "1")], b"", 0);
        let (rate, other) = (once(), once());
        assert!(!passes(&no.and(rate.clone()), &message));
        assert!(passes(&yes.clone().or(other.clone()), &message));
        assert!(passes(&yes.and(rate), &message), "the token is there still");
        assert!(passes(&other, &message));
    }

    #[test]
    fn a_predicate_that_panics_does_not_pass() {
        let bad = Filter::predicate(|_| panic!("on purpose"));
        let message = stored(&[], b"", 0);
        assert_eq!(bad.clone().passes(&message, &|| 1), None);
        assert_eq!(bad.not().passes(&message, &|| 1), None);
    }

    /// A tree of tests beside the function it stands for.
    fn tree() -> impl Strategy<Value = (Filter, fn_tree::Tree)> {
        let leaf =
            (0u8..4).prop_map(|byte| (Filter::bytes_at(0, &[byte]), fn_tree::Tree::Is(byte)));
        leaf.prop_recursive(4, 24, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|((f, a), (g, b))| {
                    (f.and(g), fn_tree::Tree::And(Box::new(a), Box::new(b)))
                }),
                (inner.clone(), inner.clone()).prop_map(|((f, a), (g, b))| {
                    (f.or(g), fn_tree::Tree::Or(Box::new(a), Box::new(b)))
                }),
                inner.prop_map(|(f, a)| (f.not(), fn_tree::Tree::Not(Box::new(a)))),
            ]
        })
    }

    mod fn_tree {
        #[derive(Clone, Debug)]
        pub(super) enum Tree {
            Is(u8),
            And(Box<Tree>, Box<Tree>),
            Or(Box<Tree>, Box<Tree>),
            Not(Box<Tree>),
        }

        impl Tree {
            pub(super) fn of(&self, byte: u8) -> bool {
                match self {
                    Self::Is(wanted) => byte == *wanted,
                    Self::And(a, b) => a.of(byte) & b.of(byte),
                    Self::Or(a, b) => a.of(byte) | b.of(byte),
                    Self::Not(a) => !a.of(byte),
                }
            }
        }
    }

    proptest! {
        /// Goal: combinations are those of logic. Method: the same tree, evaluated in full.
        #[test]
        fn combinations_are_those_of_logic((filter, tree) in tree(), byte in 0u8..5) {
            prop_assert_eq!(passes(&filter, &stored(&[], &[byte], 0)), tree.of(byte), "{:?}", filter);
        }
    }
}
