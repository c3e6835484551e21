//! The kinds of values.

use crate::bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use std::collections::VecDeque;

pub type List = VecDeque<Bytes>;
/// In the order in which the fields came.
pub type Fields = IndexMap<Bytes, Bytes, RandomState>;

/// Three words, and one more allocation for all but short texts.
pub enum Value {
    Text(Bytes),
    List(Box<List>),
    Fields(Box<Fields>),
}

impl Value {
    #[inline]
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(bytes.into())
    }

    /// As the command TYPE says it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Fields(_) => "hash",
        }
    }
}
