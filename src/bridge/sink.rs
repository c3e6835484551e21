//! Where messages from a stream go, and what is to become of each at the broker.

use super::wire::{Incoming, REDELIVERED};
use crate::error::Result;
use crate::hub::{Handled, Headers, Hub, Mode};
use bytes::Bytes;
use core::time::Duration;

/// A message of a stream: its number there, and when it was stored, in nanoseconds since 1970. A broker that was killed may
/// give a number again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) stored: i128,
}

/// A message that has come from a stream.
pub(super) struct Arrival {
    /// Where the stream has it.
    pub(super) entry: Entry,
    /// How often it has come: 1 at first.
    pub(super) delivered: u32,
    /// The same without those times that this process has had no handler try it.
    pub(super) attempt: u32,
    pub(super) key: String,
    pub(super) payload: Bytes,
    pub(super) incoming: Incoming,
    /// When it comes again if a handler fails at it; None: it does not.
    pub(super) again: Option<Duration>,
    /// It is to be alone with the hub: it has come before, and no attempt is left after this one. See `letters.rs`.
    pub(super) is_alone: bool,
}

/// Why a message is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) failure: Box<str>,
    pub(super) attempts: u32,
}

/// What the broker is told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It was dealt with.
    Done,
    /// It is to come again after this time, as somebody has failed at it.
    Again(Duration),
    /// It is to come again after this time, as nobody has tried.
    Away(Duration),
    /// It is to come no more.
    Never,
    /// The same, and the broker keeps its letter.
    Dead(Death),
}

/// How long a message that nobody subscribes to, or that no mailbox had room for, stays away.
pub(super) const ABSENT: Duration = Duration::from_secs(1);

/// Is told the end of a message; once.
pub(super) type Tell = Box<dyn FnOnce(End) + Send>;

/// Takes messages of a stream.
pub(super) trait Sink: Send + Sync {
    /// Takes one, and tells later what became of it; neither waits.
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut): there is no room, and it may be offered again.
    /// [`Error::ShutDown`](crate::Error::ShutDown): nothing is taken any more. Otherwise it never is.
    fn offer(&self, arrival: &Arrival, tell: Tell) -> Result<()>;

    /// Whether it takes what this process has published.
    fn takes_own(&self) -> bool {
        false
    }
}

/// Those who subscribe.
impl Sink for Hub {
    fn offer(&self, arrival: &Arrival, tell: Tell) -> Result<()> {
        let again = arrival.again;
        let (headers, attempts) =
            (marked(&arrival.incoming.headers, arrival.delivered), arrival.attempt);
        let _receipt = self
            .message(arrival.key.as_str())
            .payload(&arrival.payload[..])
            .headers(headers)
            .priority(arrival.incoming.priority)
            .if_full(Mode::Try)
            .publish_tracked(again.is_some(), move |how, failure| {
                tell(match (how, again) {
                    (Handled::Done, _) => End::Done,
                    (Handled::Failed, Some(delay)) => End::Again(delay),
                    (Handled::Failed, None) => {
                        End::Dead(Death { failure: failure.into(), attempts })
                    }
                    (Handled::Lost, _) => End::Away(ABSENT),
                });
            })?;
        Ok(())
    }
}

/// With a mark if it has come before. One that has as many headers as a message may have stays without.
fn marked(headers: &Headers, delivered: u32) -> Headers {
    let before = delivered.saturating_sub(1);
    let marked = (before > 0).then(|| {
        let count = before.to_string();
        Headers::new(headers.iter().chain([(REDELIVERED, count.as_str())])).ok()
    });
    marked.flatten().unwrap_or_else(|| headers.clone())
}
