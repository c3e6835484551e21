//! How much a history keeps.

use crate::error::{Error, Result};
use crate::time::MAX_DELAY;
use core::time::Duration;

/// How much is kept, by number, size and age; each applies by itself, and what is oldest goes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Limits {
    pub(super) count: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// In nanoseconds.
    pub(super) age: Option<u64>,
}

impl Limits {
    /// No limit at all: memory or disk is what ends it.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// The last so many messages.
    pub fn of_count(messages: u64) -> Self {
        Self::unlimited().count(messages)
    }

    /// At most so many messages. 0 keeps none.
    pub fn count(mut self, messages: u64) -> Self {
        self.count = Some(messages);
        self
    }

    /// At most so many bytes. In memory a message counts with its payload, its headers, and 96 bytes. On
    /// disk it is the size of the file, in which a message takes what SQLite makes of it.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Nothing that is older, up to 100 years.
    pub fn age(mut self, age: Duration) -> Self {
        self.age = Some(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    pub(super) fn check(&self, name: &'static str) -> Result<()> {
        let longest = u64::try_from(MAX_DELAY.as_nanos()).unwrap_or(u64::MAX);
        match self.age {
            Some(age) if age > longest => {
                let age = format!("an age of {:?}", Duration::from_nanos(age));
                Err(Error::invalid(name, age, "up to 100 years"))
            }
            _ => Ok(()),
        }
    }
}
