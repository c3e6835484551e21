//! What is said of a connection: its name, what became of a write, which time is over, and why it has ended.

use std::io::ErrorKind;

/// Whether a connection is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is.
    Yes,
    /// It is not: it is sent this and closed, with [`Reason::Refused`].
    Refuse(Vec<u8>),
}

/// What became of bytes that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    /// All of them are with the kernel.
    Sent,
    /// Some wait in the queue. Inside a hook they always do: they are tried when it returns.
    Queued,
    /// The same, and the queue is above its high mark: nothing is read from this connection before
    /// it has fallen to the low mark. Whoever can should write no more until `writable`.
    AboveHighMark,
    /// None of them: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205 or
    /// 304). All that follows would be dropped, too, so there is nothing more to produce.
    Unwanted,
}

/// Which time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timeout {
    /// An outgoing connection was not made.
    Connect,
    /// Nothing was sent or received.
    Idle,
    /// A part of a message waits for its rest.
    Read,
    /// The peer takes nothing of what is queued for it.
    Stall,
    /// The handler's own: [`Conn::set_deadline`](crate::net::Conn::set_deadline).
    Deadline,
}

/// What to do when a time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAction {
    /// Close at once, with [`Reason::TimedOut`].
    Close,
    /// Go on; the time begins anew, but a deadline is unset. Also the answer of a hook that has called
    /// [`close`](crate::net::Conn::close) to send a last message.
    Keep,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The peer had finished, and everything was sent.
    Peer,
    /// [`close`](crate::net::Conn::close), and everything was sent.
    Local,
    /// [`abort`](crate::net::Conn::abort): what was queued is lost.
    Aborted,
    /// The handler did not want it.
    Refused,
    /// A time was over.
    TimedOut(Timeout),
    /// The socket failed.
    Failed(ErrorKind),
    /// More than `max_unconsumed` bytes were not consumed.
    Unconsumed,
    /// A hook panicked.
    Panicked,
    /// The server drained, and everything was sent.
    Drained,
    /// The drain's time was over, or the server was dropped: what was queued is lost.
    CutOff,
    /// The pool has shut down, or had no room for it.
    PoolEnded,
}

/// The name of a connection: the one of its handle in the pool. An id of a connection that has ended
/// is stale; it is not given out again before its place in the pool had 2^32 others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnId(u64);

impl ConnId {
    pub(crate) fn new(token: u64) -> Self {
        Self(token)
    }

    /// As a number, for a host in another language.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`to_bits`](Self::to_bits). Any number will do: a wrong one is stale.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl Reason {
    /// Whether the peer must not take it for an orderly end.
    pub(crate) fn is_abrupt(self) -> bool {
        use Reason::{Drained, Local, Peer, Refused, TimedOut};
        !matches!(self, Peer | Local | Drained | Refused | TimedOut(Timeout::Idle))
    }
}

/// Where a connection is between its socket and its end; see `driver.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Connecting,
    New,
    Open,
    /// Everything is sent, and the socket is shut down for writing. It is read from, and what comes is dropped: a
    /// descriptor that is closed with unread input makes the kernel send a reset, which can destroy
    /// what the peer has not read yet.
    Lingering,
}
