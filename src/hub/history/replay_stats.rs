//! What a replay has done.

/// What a replay has done.
///
/// matched = delivered + failed + dead_lettered + discarded + waiting + running
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReplayStats {
    /// Messages that were read for it, and dead letters that were delivered to it again.
    pub matched: u64,
    /// Messages that the handler could deal with.
    pub delivered: u64,
    /// Those that it failed at for good, and that were not made dead letters.
    pub failed: u64,
    /// Those that have become dead letters.
    pub dead_lettered: u64,
    /// Those that were read and had not begun when it ended.
    pub discarded: u64,
    /// Those that were read and have not begun, or wait for another attempt.
    pub waiting: u64,
    /// Those that are being handled now.
    pub running: u64,
    /// Those that were no longer kept when their turn came.
    pub lost: u64,
    /// The greatest sequence that the handler was done with; 0 for none.
    pub last: u64,
    /// How often the handler was restarted.
    pub restarts: u64,
    /// Of `matched`, dead letters that were delivered again.
    pub redelivered: u64,
}

/// What is known of a replay to a handler that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayFigures {
    /// Its number.
    pub id: u64,
    /// What it replays.
    pub pattern: String,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Its counts.
    pub stats: ReplayStats,
}
