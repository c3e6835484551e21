//! What stands between a socket and its handler: TLS, compression, a trace.
//!
//! ```text
//!   socket ──► received ──plain──► the handler's `data`
//!                  │ wire (answers of its own: a handshake)
//!   socket ◄───────┴───wire◄── written ◄── whoever writes, on any thread
//! ```
//!
//! A filter lives in the output, under its lock, since any thread may write and what they write leaves
//! in the order in which it was turned. So its methods never run on two threads at once, and must not
//! reach for their own connection, which would wait for itself.

use std::io;

/// Turns the bytes of a connection, both ways. One object per connection, made by the factory that
/// [`Listen::filter`](crate::net::Listen::filter) was given. Handlers, those of HTTP too, and everybody who
/// writes through a [`ConnRef`](crate::net::ConnRef) see plain bytes; marks and maxima of the output count
/// what leaves.
///
/// Its methods run under a lock of the connection: they must neither block nor use the connection.
/// A `Vec` that they are given is to be appended to.
pub trait Filter: Send + 'static {
    /// These bytes have come. What the handler is to see goes to `plain`, and what the peer is to be
    /// answered to `wire`. It takes all of them, and keeps what it cannot turn yet.
    ///
    /// # Errors
    /// The connection ends with [`Reason::Failed`](crate::net::Reason::Failed), when what was put into
    /// `plain` has been shown and what is in `wire` was tried.
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        wire: &mut Vec<u8>,
    ) -> io::Result<FilterRead>;

    /// These bytes were written. What is to leave goes to `wire`; bytes that cannot be turned yet it
    /// keeps, and gives them out in [`received`](Self::received). What it still keeps when the
    /// connection closes is lost.
    ///
    /// # Errors
    /// The write says [`Error::Stale`](crate::Error::Stale), and the connection ends with
    /// [`Reason::Failed`](crate::net::Reason::Failed): what was to follow would be behind a gap.
    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()>;

    /// Nothing more will be written: its last words to the peer. Called once at most.
    fn finish(&mut self, wire: &mut Vec<u8>) {
        let _ = wire;
    }

    /// The socket has ended though the filter did not say [`FilterRead::Ended`].
    ///
    /// # Errors
    /// If that is not how peers end: then the connection fails, and the handler is not told that its
    /// peer has finished.
    fn cut_off(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether plain bytes may still come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterRead {
    /// They may.
    Open,
    /// The peer has said that it sends no more. The handler's `finished` follows.
    Ended,
}
