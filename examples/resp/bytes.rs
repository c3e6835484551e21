//! Keys and values: bytes that live in place while they are few, and in one allocation otherwise.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// So many bytes live in place. With them, their number and the tag it makes 24 bytes.
const IN_PLACE: usize = 22;

/// Cloning copies short ones and shares long ones.
#[derive(Clone)]
pub enum Bytes {
    Short { length: u8, bytes: [u8; IN_PLACE] },
    Long(Arc<[u8]>),
}

impl Bytes {
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length).min(IN_PLACE)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Puts few bytes in the place of few. False: others are to be made.
    #[inline]
    pub fn replace(&mut self, from: &[u8]) -> bool {
        match self {
            Self::Short { length, bytes } if from.len() <= IN_PLACE => {
                bytes[..from.len()].copy_from_slice(from);
                *length = from.len() as u8;
                true
            }
            _ => false,
        }
    }
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(from: &[u8]) -> Self {
        if from.len() > IN_PLACE {
            return Self::Long(from.into());
        }
        let mut bytes = [0; IN_PLACE];
        bytes[..from.len()].copy_from_slice(from);
        Self::Short { length: from.len() as u8, bytes }
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Hash for Bytes {
    /// As the slice: maps with these keys are asked with slices.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}
