//! The text of a key or pattern: a short one lies in place, since there may be a million of them.
#![allow(unsafe_code, reason = "that the bytes of a text are one is not asked again at each look")]

use core::ops::Deref;

/// Texts of up to so many bytes lie in place.
const SHORT: usize = 22;

/// See the head of the file.
pub(super) struct Text(Bytes);

enum Bytes {
    /// The first `len` are UTF-8.
    Short {
        len: u8,
        bytes: [u8; SHORT],
    },
    Long(Box<str>),
}

impl Text {
    pub(super) fn new(text: &str) -> Self {
        if text.len() > SHORT {
            return Self(Bytes::Long(text.into()));
        }
        let mut bytes = [0; SHORT];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self(Bytes::Short { len: text.len() as u8, bytes })
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match &self.0 {
            // SAFETY: these bytes were copied from a text, and nothing writes them after that.
            Bytes::Short { len, bytes } => unsafe {
                core::str::from_utf8_unchecked(&bytes[..usize::from(*len)])
            },
            Bytes::Long(text) => text,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_was_made_of() {
        for len in 0..2 * SHORT {
            let text: String = "aä.b€".chars().cycle().take(len).collect();
            assert_eq!(&*Text::new(&text), text);
        }
        assert_eq!(size_of::<Text>(), 24);
    }
}
