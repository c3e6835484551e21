//! Where a message ends.
//!
//! A frame looks at the bytes that a handler was given and finds the first message in them. It keeps
//! no bytes: what is not consumed is shown again, so `data` is a loop.
//!
//! ```
//! use paceline::net::{Conn, Delimited, Frame};
//!
//! # struct Lines { frame: Delimited }
//! # impl Lines {
//! fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
//!     let mut rest = bytes;
//!     loop {
//!         match self.frame.next(rest) {
//!             Frame::Message { body, length } => {
//!                 let _ = conn.write_vectored(&[body, b"\n"].map(std::io::IoSlice::new));
//!                 rest = &rest[length..];
//!             }
//!             Frame::Partial => return bytes.len() - rest.len(),
//!             Frame::TooLong => {
//!                 conn.close();
//!                 return bytes.len();
//!             }
//!         }
//!     }
//! }
//! # }
//! ```

use crate::error::{Error, Result};

/// What was found at the front of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A message.
    Message {
        /// Without its delimiter or its length.
        body: &'a [u8],
        /// How many bytes it takes up, with them: what to consume.
        length: usize,
    },
    /// A part of a message, or nothing: more must come.
    Partial,
    /// A message that is longer than the maximum, or whose length is.
    TooLong,
}

/// Messages that end with a delimiter.
///
/// ```
/// use paceline::net::{Delimited, Frame};
///
/// let mut lines = Delimited::lines(80);
/// assert_eq!(lines.next(b"first\nsec"), Frame::Message { body: b"first", length: 6 });
/// assert_eq!(lines.next(b"sec"), Frame::Partial);
/// ```
#[derive(Clone, Debug)]
pub struct Delimited {
    delimiter: Box<[u8]>,
    max: usize,
    /// So many bytes of the message in front hold no delimiter.
    searched: usize,
}

impl Delimited {
    /// `delimiter` has 1 byte or more; bodies have up to `max` bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty delimiter.
    pub fn new(delimiter: &[u8], max: usize) -> Result<Self> {
        if delimiter.is_empty() {
            return Err(Error::invalid("delimiter", "empty", "1 byte or more"));
        }
        Ok(Self { delimiter: delimiter.into(), max, searched: 0 })
    }

    /// Lines that end with a line feed, of up to `max` bytes.
    pub fn lines(max: usize) -> Self {
        Self { delimiter: [b'\n'].into(), max, searched: 0 }
    }

    /// The first message. What it has searched in vain is not searched again, so `bytes` must begin
    /// with what was [`Partial`](Frame::Partial) before.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Frame<'a> {
        next_delimited(bytes, &self.delimiter, self.max, &mut self.searched)
    }
}

/// See [`Delimited::next`].
pub(crate) fn next_delimited<'a>(
    bytes: &'a [u8],
    delimiter: &[u8],
    max: usize,
    searched: &mut usize,
) -> Frame<'a> {
    // Beyond this, a delimiter would end a body that is too long.
    let end = bytes.len().min(max.saturating_add(delimiter.len()));
    let from = core::mem::take(searched).min(end);
    if let Some(found) = find(&bytes[from..end], delimiter) {
        let body = &bytes[..from + found];
        return Frame::Message { body, length: body.len() + delimiter.len() };
    }
    if end < bytes.len() || end == max.saturating_add(delimiter.len()) {
        return Frame::TooLong;
    }
    // The last bytes may be the beginning of a delimiter.
    *searched = (end + 1).saturating_sub(delimiter.len());
    Frame::Partial
}

fn find(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    let (first, rest) = delimiter.split_first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| byte == first) {
        if bytes[from + at + 1..].starts_with(rest) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Messages of one length.
#[derive(Clone, Copy, Debug)]
pub struct FixedLength(usize);

impl FixedLength {
    /// `length` is 1 or more.
    ///
    /// # Errors
    /// [`Error::Invalid`] for 0.
    pub fn new(length: usize) -> Result<Self> {
        if length == 0 {
            return Err(Error::invalid("length", 0, "1 or more"));
        }
        Ok(Self(length))
    }

    /// The first message; never [`TooLong`](Frame::TooLong).
    pub fn next<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        match bytes.get(..self.0) {
            Some(body) => Frame::Message { body, length: self.0 },
            None => Frame::Partial,
        }
    }
}

/// Messages with their length in front, an unsigned number in network order that does not count
/// itself.
///
/// ```
/// use paceline::net::{Frame, LengthPrefixed};
/// # fn main() -> paceline::Result<()> {
/// let framing = LengthPrefixed::new(2, 1000)?; // two bytes of length, at most 1000 bytes of body
/// let bytes = [0, 2, b'h', b'i', 0];
/// assert_eq!(framing.next(&bytes), Frame::Message { body: b"hi", length: 4 });
/// assert_eq!(framing.next(&bytes[4..]), Frame::Partial);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LengthPrefixed {
    width: usize,
    max: usize,
}

impl LengthPrefixed {
    /// The number has `width` bytes, 1 to 8; bodies have up to `max` bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another width.
    pub fn new(width: usize, max: usize) -> Result<Self> {
        if !(1..=8).contains(&width) {
            return Err(Error::invalid("width", width, "1 to 8"));
        }
        Ok(Self { width, max })
    }

    /// The first message.
    pub fn next<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        let Some((prefix, rest)) = bytes.split_at_checked(self.width) else {
            return Frame::Partial;
        };
        let length = prefix.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        if length > self.max as u64 {
            return Frame::TooLong;
        }
        match rest.get(..length as usize) {
            Some(body) => Frame::Message { body, length: self.width + body.len() },
            None => Frame::Partial,
        }
    }

    /// The number to write in front of a body of this length. None: it is longer than `max`, or than
    /// the number can say.
    pub fn prefix(&self, length: usize) -> Option<impl AsRef<[u8]> + use<>> {
        let fits =
            length <= self.max && (self.width == 8 || (length as u64) >> (8 * self.width) == 0);
        let (bytes, from) = ((length as u64).to_be_bytes(), 8 - self.width);
        fits.then_some(Prefix { bytes, from })
    }
}

struct Prefix {
    bytes: [u8; 8],
    from: usize,
}

impl AsRef<[u8]> for Prefix {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a stream in pieces as a connection does, and collects the bodies.
    fn bodies(
        stream: &[u8],
        cuts: &[usize],
        mut next: impl for<'a> FnMut(&'a [u8]) -> Frame<'a>,
    ) -> Vec<Vec<u8>> {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
        ends.push(stream.len());
        ends.sort_unstable();
        let (mut found, mut from) = (Vec::new(), 0);
        for end in ends {
            loop {
                match next(&stream[from..end]) {
                    Frame::Message { body, length } => {
                        found.push(body.to_vec());
                        from += length;
                    }
                    Frame::Partial => break,
                    Frame::TooLong => panic!("too long"),
                }
            }
        }
        assert_eq!(from, stream.len(), "everything is consumed");
        found
    }

    proptest! {
        /// Goal: wherever a stream is cut, the messages are the same.
        #[test]
        fn messages_do_not_depend_on_cuts(
            messages in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..9), 0..9),
            cuts in proptest::collection::vec(0usize..200, 0..9),
            width in 1usize..9,
        ) {
            let delimiter = [7, 7, 8];
            let mut frame = Delimited::new(&delimiter, 9).unwrap();
            let stream: Vec<u8> = messages.iter().flat_map(|body| [body, &delimiter[..]].concat()).collect();
            prop_assert_eq!(&bodies(&stream, &cuts, |bytes| frame.next(bytes)), &messages);

            let frame = LengthPrefixed::new(width, 9).unwrap();
            let stream: Vec<u8> = messages
                .iter()
                .flat_map(|body| [frame.prefix(body.len()).unwrap().as_ref(), &body[..]].concat())
                .collect();
            prop_assert_eq!(&bodies(&stream, &cuts, |bytes| frame.next(bytes)), &messages);
        }
    }

    #[test]
    fn a_delimiter_may_begin_within_another() {
        let mut frame = Delimited::new(b"aab", 100).unwrap();
        assert_eq!(frame.next(b"xaa"), Frame::Partial);
        assert_eq!(frame.next(b"xaaab"), Frame::Message { body: b"xa", length: 5 });
    }

    #[test]
    fn the_maximum_is_exact() {
        for length in 0..6 {
            let line = [&vec![b'x'; length][..], b"\r\n"].concat();
            let mut frame = Delimited::new(b"\r\n", 4).unwrap();
            let whole = Frame::Message { body: &line[..length], length: length + 2 };
            assert_eq!(frame.next(&line), if length <= 4 { whole } else { Frame::TooLong });
        }
        let mut frame = Delimited::lines(4);
        assert_eq!(frame.next(b"xxxx"), Frame::Partial);
        assert_eq!(frame.next(b"xxxxx"), Frame::TooLong, "no delimiter can save it");
        let frame = LengthPrefixed::new(2, 300).unwrap();
        assert_eq!(frame.next(&[1, 45]), Frame::TooLong);
        assert_eq!(frame.next(&[1, 44]), Frame::Partial);
        assert!(frame.prefix(301).is_none());
        assert!(LengthPrefixed::new(1, 300).unwrap().prefix(256).is_none());
        assert_eq!(
            FixedLength::new(2).unwrap().next(b"abc"),
            Frame::Message { body: b"ab", length: 2 }
        );
    }

    #[test]
    fn arguments_out_of_range_are_named() {
        for (error, expected) in [
            (Delimited::new(b"", 1).unwrap_err(), "delimiter"),
            (FixedLength::new(0).unwrap_err(), "length"),
            (LengthPrefixed::new(0, 1).unwrap_err(), "width"),
            (LengthPrefixed::new(9, 1).unwrap_err(), "width"),
        ] {
            assert!(matches!(error, Error::Invalid { name, .. } if name == expected), "{error}");
        }
    }
}
