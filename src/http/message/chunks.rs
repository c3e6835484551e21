//! Where a body ends: so many bytes, or chunks (RFC 9112, 7.1).
//!
//! Bytes in, pieces out. Framing is taken as it is seen; data is only shown, and taken by
//! [`BodyReader::took`], so that whoever gets it can hold a part back.
//!
//! Read as strictly as the head: a size is 1 to 16 hexadecimal digits, extensions are as their grammar
//! says, every line ends with CR LF. What extensions and trailer fields say is dropped.

use super::refusal::Refusal;

/// Bytes that the line of a chunk's size may have, extensions and all.
const MAX_LINE: u32 = 256;

/// Bytes of a chunk's line that are nothing to speak of: a size, and a short extension.
const SPARED: u64 = 16;

/// Bytes of all other lines that are more than twice the data beside them. Chunks may be small, but a body
/// that is nearly all extensions is only there to be read.
const MAX_EXCESS: u64 = 16 << 10;

/// Bytes that the trailer may have.
const MAX_TRAILER: u32 = 8 << 10;

/// How long a body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    Known(u64),
    Chunked,
}

/// What comes next in a body.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Piece<'a> {
    /// More must come.
    Partial,
    /// At least one byte.
    Data(&'a [u8]),
    /// The body is over.
    End,
}

/// A body that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyReader {
    /// So many bytes are still to come.
    Known(u64),
    Chunked(Chunks),
}

impl BodyReader {
    pub(crate) fn new(length: Length) -> Self {
        match length {
            Length::Known(bytes) => Self::Known(bytes),
            Length::Chunked => Self::Chunked(Chunks::default()),
        }
    }

    /// Takes framing from the front, and shows what follows it. Says how many bytes it took.
    pub(crate) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), Refusal> {
        match self {
            Self::Known(0) => Ok((0, Piece::End)),
            Self::Known(left) => Ok((0, piece(bytes, *left))),
            Self::Chunked(chunks) => chunks.next(bytes),
        }
    }

    /// So many bytes of the data shown last are taken.
    pub(crate) fn took(&mut self, count: usize) {
        match self {
            Self::Known(left) => *left -= count as u64,
            Self::Chunked(chunks) => chunks.took(count),
        }
    }
}

fn piece(bytes: &[u8], left: u64) -> Piece<'_> {
    if bytes.is_empty() {
        return Piece::Partial;
    }
    Piece::Data(&bytes[..usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())])
}

/// Which byte is expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expects {
    /// A digit of a size; so many were there.
    Size(u8),
    Extension(Extension),
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// A trailer field, or the last line.
    Field,
    Name,
    Value,
    ValueLf,
    LastLf,
    Nothing,
}

/// Which part of an extension (RFC 9112, 7.1.1). White space is taken where the grammar has it, as it must
/// be (RFC 9110, 5.6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extension {
    /// The semicolon, behind white space.
    Semicolon,
    /// The first byte of a name.
    Name,
    InName,
    /// White space behind a name.
    BehindName,
    /// The first byte of a value.
    Value,
    InValue,
    Quoted,
    /// The byte behind a backslash.
    Escaped,
    BehindQuoted,
}

impl Extension {
    /// None: no extension has this byte here.
    fn take(self, byte: u8) -> Option<Expects> {
        use Extension::*;
        let next = match (self, byte) {
            (InName | InValue | BehindQuoted, b'\r') => return Some(Expects::SizeLf),
            (Quoted, b'"') => BehindQuoted,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, byte) if is_text(byte) => Quoted,
            (Name | InName, byte) if is_token(byte) => InName,
            (Value | InValue, byte) if is_token(byte) => InValue,
            (Value, b'"') => Quoted,
            (InName | BehindName, b'=') => Value,
            (Semicolon | InName | BehindName | InValue | BehindQuoted, b';') => Name,
            (Semicolon | Name | BehindName | Value, b' ' | b'\t') => self,
            (InName, b' ' | b'\t') => BehindName,
            (InValue | BehindQuoted, b' ' | b'\t') => Semicolon,
            _ => return None,
        };
        Some(Expects::Extension(next))
    }
}

/// See the head of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunks {
    /// What is left of the chunk; before that, its size so far.
    left: u64,
    /// Bytes of the line, or of the trailer.
    line: u32,
    /// Up to [`MAX_EXCESS`].
    excess: u64,
    expects: Expects,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { left: 0, line: 0, excess: 0, expects: Expects::Size(0) }
    }
}

impl Chunks {
    fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), Refusal> {
        for (at, byte) in bytes.iter().enumerate() {
            match self.expects {
                Expects::Data => return Ok((at, piece(&bytes[at..], self.left))),
                Expects::Nothing => return Ok((at, Piece::End)),
                _ => self.take(*byte)?,
            }
        }
        let end = self.expects == Expects::Nothing;
        Ok((bytes.len(), if end { Piece::End } else { Piece::Partial }))
    }

    fn took(&mut self, count: usize) {
        self.left -= count as u64;
        if self.left == 0 {
            self.expects = Expects::DataCr;
        }
    }

    /// One byte of framing.
    fn take(&mut self, byte: u8) -> Result<(), Refusal> {
        use Expects::*;
        self.expects = match (self.expects, byte) {
            (Size(digits), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 16 => {
                self.left = self.left << 4 | u64::from(hexadecimal(byte));
                Size(digits + 1)
            }
            (Size(1..), b'\r') => SizeLf,
            (Size(1..), byte) => Self::extension(self::Extension::Semicolon, byte)?,
            (Extension(part), byte) => Self::extension(part, byte)?,
            (SizeLf, b'\n') if self.left == 0 => self.begin(Field),
            (SizeLf, b'\n') => {
                self.weigh()?;
                self.begin(Data)
            }
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => Size(0),
            (Field, b'\r') => LastLf,
            (Field | Name, byte) if is_token(byte) => Name,
            (Name, b':') => Value,
            (Value, b'\r') => ValueLf,
            (Value, byte) if is_text(byte) => Value,
            (ValueLf, b'\n') => Field,
            (LastLf, b'\n') => Nothing,
            _ => return Err(Refusal::BadRequest),
        };
        self.count()
    }

    fn extension(part: Extension, byte: u8) -> Result<Expects, Refusal> {
        part.take(byte).ok_or(Refusal::BadRequest)
    }

    fn begin(&mut self, what: Expects) -> Expects {
        self.line = 0;
        what
    }

    /// A line is over, and the data that it announces.
    fn weigh(&mut self) -> Result<(), Refusal> {
        let allowed = SPARED.saturating_add(self.left.saturating_mul(2));
        self.excess = (self.excess + u64::from(self.line)).saturating_sub(allowed);
        if self.excess > MAX_EXCESS { Err(Refusal::BadRequest) } else { Ok(()) }
    }

    fn count(&mut self) -> Result<(), Refusal> {
        self.line += 1;
        match self.expects {
            Expects::Size(_) | Expects::Extension(_) if self.line > MAX_LINE => {
                Err(Refusal::BadRequest)
            }
            Expects::Name | Expects::Value if self.line > MAX_TRAILER => Err(Refusal::HeadTooLarge),
            _ => Ok(()),
        }
    }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// What a field's value may hold.
pub(crate) fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// What a field's name may hold.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
