//! A body on its way in: collected for its handler, or fed to what takes it as it comes.

use crate::http::exchange::request::RequestBody;
use crate::http::message::chunks::{BodyReader, Length};

/// A body on its way in.
pub(crate) struct Incoming {
    pub(crate) reader: BodyReader,
    /// Bytes of data that were taken.
    pub(crate) total: u64,
    /// Of them, those since its rate was looked at last.
    pub(crate) lately: u64,
    /// Whoever takes it has held it back since then.
    pub(crate) held: bool,
}

impl Incoming {
    pub(crate) fn new(length: Length) -> Self {
        Self { reader: BodyReader::new(length), total: 0, lately: 0, held: false }
    }

    pub(crate) fn took(&mut self, count: usize) {
        self.reader.took(count);
        self.total += count as u64;
        self.lately += count as u64;
    }
}

/// A request whose body is not whole.
pub(crate) struct Collect {
    pub(crate) incoming: Incoming,
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// A request whose body somebody takes as it comes.
pub(crate) struct Feed {
    pub(crate) incoming: Incoming,
    pub(crate) to: Box<dyn RequestBody>,
}
