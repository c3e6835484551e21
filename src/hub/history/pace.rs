//! How an archive is written: how much waits for a commit, and what happens when no more may.

#[cfg(doc)]
use crate::error::Error;
use core::time::Duration;

/// What a history does when so many messages wait for its archive or lines that no more may
/// ([`History::waiting`](super::History::waiting)). Default: [`Wait`](Self::Wait) of 10 seconds, so that nothing is
/// lost unless its publisher has got an error.
///
/// Notices under `$SYS.` have no publisher that could wait: a history of them always gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WhenFull {
    /// The history gives up the message that has waited longest: the archive goes without it. Publishers never wait.
    /// Each such message is counted in [`HistoryStats::given_up`](super::HistoryStats::given_up), is told by the
    /// notice `history.given_up`, makes [`Hub::flush_histories`](crate::hub::Hub::flush_histories) fail, and is a gap
    /// for those who read it later. When the disk has room again, the archive goes on.
    GiveUp,
    /// The publisher makes room: it commits a batch in its own thread, unless another thread is at it. If there is still
    /// none, because the disk is slow or fails, it waits, up to this long: 0 to 100 years. Then the publication is
    /// refused with [`Error::Full`]; no subscriber gets it. On a thread of the pool, and in a handler, it does not wait
    /// for a disk that fails: the publication is refused at once.
    Wait(Duration),
}

impl Default for WhenFull {
    fn default() -> Self {
        Self::Wait(Duration::from_secs(10))
    }
}

/// How an archive is written.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// A commit is made when so many wait, or so many bytes, or after such a delay.
    pub(super) batch: u64,
    pub(super) batch_bytes: usize,
    pub(super) delay: Duration,
    /// More do not wait, in number or bytes.
    pub(super) most: u64,
    pub(super) most_bytes: usize,
    pub(super) when_full: WhenFull,
    /// After an error.
    pub(super) retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            batch: 1024,
            batch_bytes: 1 << 20,
            delay: Duration::from_millis(10),
            most: 65_536,
            most_bytes: 64 << 20,
            when_full: WhenFull::default(),
            retry: Duration::from_millis(500),
        }
    }
}
