//! Keys and patterns: what they are made of, and that a key is there once.

pub(in crate::hub) mod intern;
pub(in crate::hub) mod key;
