//! The pairs of a query or a form: `application/x-www-form-urlencoded` (URL Standard, 5.1).

use std::borrow::Cow;

/// The names and values of this text, decoded.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    split(text.as_bytes()).map(|(name, value)| (to_text(name), to_text(value)))
}

/// The same, encoded as they are.
pub(crate) fn split(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    parts.map(|part| match part.iter().position(|byte| *byte == b'=') {
        Some(at) => (&part[..at], &part[at + 1..]),
        None => (part, &[][..]),
    })
}

/// Its bytes, which are no more than there were. A percent sign without two digits stands for itself.
pub(crate) fn decode(text: &[u8]) -> impl Iterator<Item = u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut rest = text;
    core::iter::from_fn(move || {
        let (first, behind) = rest.split_first()?;
        rest = behind;
        Some(match (*first, behind) {
            (b'+', _) => b' ',
            (b'%', [high, low, behind @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = behind;
                    high << 4 | low
                }
                _ => b'%',
            },
            (byte, _) => byte,
        })
    })
}

fn to_text(text: &[u8]) -> Cow<'_, str> {
    if !text.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return String::from_utf8_lossy(text);
    }
    let decoded: Vec<u8> = decode(text).collect();
    match String::from_utf8(decoded) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let decoded = |text| pairs(text).map(|(a, b)| format!("{a}>{b};")).collect::<String>();
        for (text, expected) in [
            ("", ""),
            ("a=1&b=2", "a>1;b>2;"),
            ("a&b=&=c&&", "a>;b>;>c;"),
            ("a=b=c&a=d", "a>b=c;a>d;"),
            ("a+b=%2B%20%c3%BC&%26=%3d", "a b>+ ü;&>=;"),
            ("a=%&b=%4&c=%zz&d=%4z%41", "a>%;b>%4;c>%zz;d>%4zA;"),
            ("a=%ff%C3&b=%00", "a>\u{fffd}\u{fffd};b>\0;"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }
}
