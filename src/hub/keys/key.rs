//! Keys and patterns: their syntax, and which pattern matches which key.
//!
//! # Syntax
//!
//! A key is tokens with dots between them: `orders.eu.created`. A pattern may have two tokens more:
//! `*` stands for any one token, and `>`, at the end only, for one or more, as in NATS. A token that has `*` or `>` beside
//! other characters is refused: NATS takes it as text, and who writes `orders*` means a wildcard.
//!
//! Keys whose first token begins with `$` are the hub's own: users subscribe to them, and do not publish
//! with them. They are matched only by patterns that spell the first token out, so whoever subscribes to
//! `>` does not hear of himself.
//!
//! # Interning
//!
//! A [`Key`] is a reference to what its hub keeps of that text: a channel, which has who subscribes, so that publishing
//! with a key looks up nothing. The key does not know that: messages and mailboxes are full of keys, and channels are
//! full of both. [`channel_of`](crate::hub::channel::route::channel_of) finds the channel again.

use crate::error::{Error, Result};
use core::any::Any;
use core::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The most bytes of a key or pattern.
pub(crate) const MAX_LENGTH: usize = 255;

/// A key of a hub, made by [`Hub::key`](crate::hub::Hub::key). Clones are the same key; making one costs an
/// increment.
///
/// ```
/// use paceline::{Pool, hub::Hub};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let key = hub.key("orders.eu.created")?; // looked up once
/// assert_eq!(key.tokens().collect::<Vec<_>>(), ["orders", "eu", "created"]);
/// let receipt = hub.publish(&key, "order 1")?;
/// assert_eq!(receipt.matched, 0); // nobody has subscribed to it
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Key {
    record: Arc<dyn KeyRecord>,
}

/// What is kept of a key.
pub(in crate::hub) trait KeyRecord: Any + Send + Sync {
    fn text(&self) -> &str;
    /// The number of its hub.
    fn hub(&self) -> u32;
    /// Which histories take it, as `history/keep.rs` has found out; 0 before that.
    fn takers(&self) -> u32;
    fn set_takers(&self, takers: u32);
    /// Whether it is one of the hub's own.
    fn is_reserved(&self) -> bool;
}

/// Of a key that no hub knows.
struct Detached(Box<str>);

impl KeyRecord for Detached {
    fn text(&self) -> &str {
        &self.0
    }

    fn hub(&self) -> u32 {
        0
    }

    fn takers(&self) -> u32 {
        0
    }

    fn set_takers(&self, _: u32) {}

    fn is_reserved(&self) -> bool {
        is_reserved(&self.0)
    }
}

impl Key {
    /// A key that no hub knows.
    #[allow(dead_code, reason = "what tests of parts without a hub are made with")]
    pub(crate) fn detached(text: &str) -> Self {
        Self::of(Arc::new(Detached(text.into())))
    }

    pub(in crate::hub) fn of(record: Arc<dyn KeyRecord>) -> Self {
        Self { record }
    }

    #[inline]
    pub(in crate::hub) fn record(&self) -> &Arc<dyn KeyRecord> {
        &self.record
    }

    /// Whether both have the same record, which is shorter to find out than that both are equal.
    #[inline]
    pub(in crate::hub) fn is_same(&self, other: &Key) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.record), Arc::as_ptr(&other.record))
    }

    /// The key as it is written.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.record.text()
    }

    /// Its tokens, in order.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.as_str().split('.')
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.as_str() == other.as_str()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.as_str())
    }
}

/// A pattern that has been checked. A key is a pattern, too: the one that matches itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: Arc<str>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong with it.
    pub fn new(text: &str) -> Result<Self> {
        check_pattern(text)?;
        Ok(Self { text: text.into() })
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it has no wildcards, and so matches one key.
    pub fn is_literal(&self) -> bool {
        is_literal(&self.text)
    }

    /// Whether it matches this key.
    pub fn matches(&self, key: &str) -> bool {
        matches(&self.text, key)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

/// One token of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'a> {
    Literal(&'a str),
    /// `*`
    One,
    /// `>`
    Rest,
}

/// The tokens of a pattern that was checked.
pub(crate) fn pattern_tokens(pattern: &str) -> impl Iterator<Item = Token<'_>> {
    pattern.split('.').map(|token| match token {
        "*" => Token::One,
        ">" => Token::Rest,
        literal => Token::Literal(literal),
    })
}

pub(crate) fn is_literal(pattern: &str) -> bool {
    pattern_tokens(pattern).all(|token| matches!(token, Token::Literal(_)))
}

/// Whether the key is one of the hub's own.
pub(crate) fn is_reserved(key: &str) -> bool {
    key.starts_with('$')
}

/// Whether a checked pattern matches a checked key. (The trie of all patterns gives the same answers;
/// this one is for a single pattern.)
pub(crate) fn matches(pattern: &str, key: &str) -> bool {
    let mut tokens = key.split('.');
    let mut first = true;
    for wanted in pattern_tokens(pattern) {
        let Some(token) = tokens.next() else { return false };
        let is_free = !(core::mem::take(&mut first) && is_reserved(key));
        match wanted {
            Token::Literal(literal) if literal == token => {}
            Token::One if is_free => {}
            Token::Rest if is_free => return true,
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// Checks a key that somebody publishes with.
pub(crate) fn check_key(key: &str) -> Result<()> {
    check_any_key(key)?;
    if is_reserved(key) {
        let allowed = "without $ at its start: such keys are the hub's own";
        return Err(invalid("key", key, allowed));
    }
    Ok(())
}

/// Checks a key that the hub itself publishes with, or that somebody asks about.
pub(crate) fn check_any_key(key: &str) -> Result<()> {
    check_tokens("key", key)?;
    match key.contains(WILDCARDS) {
        false => Ok(()),
        true => Err(invalid("key", key, "without * and >, which are of patterns")),
    }
}

pub(crate) fn check_pattern(pattern: &str) -> Result<()> {
    check_tokens("pattern", pattern)?;
    let is_mixed = |token: &&str| token.len() > 1 && token.contains(WILDCARDS);
    if let Some(token) = pattern.split('.').find(is_mixed) {
        let wildcard = if token.contains('*') { '*' } else { '>' };
        let allowed = format!(
            "with {wildcard} as a token of its own, as in \"a.{wildcard}\", not \"{token}\""
        );
        return Err(invalid("pattern", pattern, &allowed));
    }
    let mut tokens = pattern_tokens(pattern);
    match tokens.find(|token| *token == Token::Rest).and_then(|_| tokens.next()) {
        None => Ok(()),
        Some(_) => Err(invalid("pattern", pattern, "without > before its last token")),
    }
}

/// What stands for tokens in patterns.
const WILDCARDS: [char; 2] = ['*', '>'];

fn check_tokens(name: &'static str, text: &str) -> Result<()> {
    if text.is_empty() || text.len() > MAX_LENGTH {
        let allowed = format!("1 to {MAX_LENGTH} bytes long");
        return Err(invalid(name, text, &allowed));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(invalid(name, text, "without blanks and control characters"));
    }
    if text.split('.').any(str::is_empty) {
        let allowed = "without empty tokens: no dot at an end, no two in a row";
        return Err(invalid(name, text, allowed));
    }
    Ok(())
}

/// Long values are shown by their beginning and their length.
fn invalid(name: &'static str, value: &str, allowed: &str) -> Error {
    const SHOWN: usize = 40;
    let shown = match value.char_indices().nth(SHOWN) {
        Some((end, _)) if value.len() > MAX_LENGTH => {
            format!("{:?}… of {} bytes", &value[..end], value.len())
        }
        _ => format!("{value:?}"),
    };
    Error::invalid(name, shown, allowed)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bad_keys_are_told_why() {
        let long = "a".repeat(MAX_LENGTH + 1);
        let long_shown = format!("{:?}… of 256 bytes", "a".repeat(40));
        let table = [
            ("", "key is \"\", but must be 1 to 255 bytes long".to_owned()),
            (&long, format!("key is {long_shown}, but must be 1 to 255 bytes long")),
            ("a b", "key is \"a b\", but must be without blanks and control characters".into()),
            ("a\n", "key is \"a\\n\", but must be without blanks and control characters".into()),
            (
                "a\u{7f}",
                "key is \"a\\u{7f}\", but must be without blanks and control characters".into(),
            ),
            (
                ".a",
                "key is \".a\", but must be without empty tokens: no dot at an end, no two in a row"
                    .into(),
            ),
            (
                "a.",
                "key is \"a.\", but must be without empty tokens: no dot at an end, no two in a row"
                    .into(),
            ),
            (
                "a..b",
                "key is \"a..b\", but must be without empty tokens: no dot at an end, no two in a row"
                    .into(),
            ),
            (
                "a.*.b",
                "key is \"a.*.b\", but must be without * and >, which are of patterns".into(),
            ),
            ("a.>", "key is \"a.>\", but must be without * and >, which are of patterns".into()),
            ("a*", "key is \"a*\", but must be without * and >, which are of patterns".into()),
            (
                "$SYS.x",
                "key is \"$SYS.x\", but must be without $ at its start: such keys are the hub's own"
                    .into(),
            ),
        ];
        for (key, message) in table {
            assert_eq!(check_key(key).unwrap_err().to_string(), message);
        }
        let message = check_pattern("a.>.b").unwrap_err().to_string();
        assert_eq!(message, "pattern is \"a.>.b\", but must be without > before its last token");
        for (pattern, wildcard) in
            [("orders*", '*'), ("a.b*.c", '*'), (">>", '>'), ("*b.>", '*'), ("a>", '>')]
        {
            let message = check_pattern(pattern).unwrap_err().to_string();
            let told =
                format!("with {wildcard} as a token of its own, as in \"a.{wildcard}\", not ");
            assert!(message.contains(&told), "{message}");
        }
        let message = Pattern::new("a.").unwrap_err().to_string();
        assert!(message.starts_with("pattern is \"a.\", but must be without empty tokens"));
    }

    #[test]
    fn good_keys_and_patterns_are_accepted() {
        for key in ["a", "a.b", "ä.ö", "a$.b", &"a".repeat(255)] {
            assert!(check_key(key).is_ok(), "{key}");
            assert!(Pattern::new(key).unwrap().is_literal(), "{key}");
        }
        for pattern in ["*", ">", "a.*", "*.b.>", "$SYS.>", "*.*.*"] {
            assert!(!Pattern::new(pattern).unwrap().is_literal(), "{pattern}");
        }
        assert!(check_any_key("$SYS.hub").is_ok());
    }

    #[test]
    fn patterns_match_as_they_say() {
        let table = [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a.b.c", false),
            ("a.b.c", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("*.b", "a.b", true),
            ("a.>", "a.b", true),
            ("a.>", "a.b.c.d", true),
            ("a.>", "a", false),
            (">", "a", true),
            (">", "a.b", true),
            ("*.>", "a.b", true),
            ("*.>", "a", false),
            (">", "$SYS.x", false),
            ("*.x", "$SYS.x", false),
            ("$SYS.>", "$SYS.x", true),
            ("$SYS.*", "$SYS.x", true),
        ];
        for (pattern, key, answer) in table {
            assert_eq!(matches(pattern, key), answer, "{pattern} on {key}");
        }
    }
}
