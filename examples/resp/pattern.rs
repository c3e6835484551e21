//! Patterns as in KEYS and CONFIG GET.

/// Whether a text is as a pattern says: `?` is any byte, `*` any number of them, `[a-c]` one of a
/// set, `[^a-c]` none of it, and `\` takes away the next byte's meaning.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where to go on if the last star stands for one byte more.
    let mut retry = None;
    loop {
        if let [b'*', after @ ..] = pattern {
            (pattern, retry) = (after, Some((after, text)));
        } else if let Some(after) = step(pattern, text) {
            (pattern, text) = (after, &text[1..]);
        } else if pattern.is_empty() && text.is_empty() {
            return true;
        } else if let Some((after, [_, rest @ ..])) = retry {
            (pattern, text, retry) = (after, rest, Some((after, rest)));
        } else {
            return false;
        }
    }
}

/// The pattern behind its first item, if that is as the first byte of the text.
fn step<'a>(pattern: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    let byte = text.first()?;
    match pattern {
        [b'?', after @ ..] => Some(after),
        [b'[', set @ ..] => in_set(set, *byte),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (literal == byte).then_some(after),
        [] => None,
    }
}

/// What is behind the closing bracket, if the set has the byte.
fn in_set(set: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_inverted, mut set) = match set {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut is_in = false;
    let after = loop {
        set = match set {
            [] => break set,
            [b']', after @ ..] => break after,
            [b'\\', literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
            [low, b'-', high, after @ ..] => {
                is_in |= (low.min(high)..=low.max(high)).contains(&&byte);
                after
            }
            [literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
        };
    };
    (is_in != is_inverted).then_some(after)
}
