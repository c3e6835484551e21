//! What a descriptor is watched for, and what it turned out to be ready for.
//!
//! ```text
//! bits   5 READ_CLOSED   4 HANG_UP   3 ERROR   2 WRITABLE   1 PRIORITY   0 READABLE
//! ```
//!
//! Bits 0 to 4 are where epoll has them, so that a harvest is translated by a mask and a shift.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// What a descriptor is ready for: a set of flags.
///
/// Readiness is a hint that something *may* be done without waiting. The operation itself tells,
/// by succeeding, by failing, or by `WouldBlock`.
///
/// ```
/// # use paceline::Ready;
/// let ready = Ready::READABLE | Ready::READ_CLOSED;
/// assert!(ready.is_readable() && !ready.is_writable());
/// assert_eq!(format!("{ready:?}"), "READABLE | READ_CLOSED");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ready(u8);

impl Ready {
    /// Nothing.
    pub const NONE: Ready = Ready(0);
    /// Data, a connection to accept, an expiry or a count can be read.
    pub const READABLE: Ready = Ready(1 << 0);
    /// Out-of-band data of a TCP socket, or a change of a sysfs or cgroup file.
    pub const PRIORITY: Ready = Ready(1 << 1);
    /// There is room to write, or a connection attempt has ended.
    pub const WRITABLE: Ready = Ready(1 << 2);
    /// An error is pending (`SO_ERROR`), or nobody reads the other end of a pipe. Always reported.
    pub const ERROR: Ready = Ready(1 << 3);
    /// Both directions are closed, or nobody writes the other end of a pipe. Data may be left to
    /// read. Always reported.
    pub const HANG_UP: Ready = Ready(1 << 4);
    /// The peer will send no more; writing to it may still work. Data may be left to read.
    /// Reported to whoever is interested in reading.
    pub const READ_CLOSED: Ready = Ready(1 << 5);

    const NAMES: [&'static str; 6] =
        ["READABLE", "PRIORITY", "WRITABLE", "ERROR", "HANG_UP", "READ_CLOSED"];
    const READ: Ready =
        Ready(Self::READABLE.0 | Self::READ_CLOSED.0 | Self::HANG_UP.0 | Self::ERROR.0);
    const WRITE: Ready = Ready(Self::WRITABLE.0 | Self::HANG_UP.0 | Self::ERROR.0);

    /// Whether a read will not wait: there is data, the end of it, or an error to be told about. So
    /// a handler that only ever reads while this holds learns how its descriptor ends.
    #[inline]
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.intersects(Self::READ)
    }

    /// Whether a write will not wait: there is room, or an error to be told about.
    #[inline]
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.intersects(Self::WRITE)
    }

    /// Whether there is data, and nothing but data and room.
    #[inline]
    pub(crate) const fn is_only_room_and_data(self) -> bool {
        self.0 & !Self::WRITABLE.0 == Self::READABLE.0
    }

    /// Whether the peer has finished sending: [`READ_CLOSED`](Self::READ_CLOSED) or
    /// [`HANG_UP`](Self::HANG_UP). Data sent before that may be left to read.
    #[inline]
    #[must_use]
    pub const fn is_read_closed(self) -> bool {
        self.intersects(Ready(Self::READ_CLOSED.0 | Self::HANG_UP.0))
    }

    /// Whether both directions are closed.
    #[inline]
    #[must_use]
    pub const fn is_hang_up(self) -> bool {
        self.intersects(Self::HANG_UP)
    }

    /// Whether an error is pending.
    #[inline]
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.intersects(Self::ERROR)
    }

    /// Whether urgent data or a changed attribute is there.
    #[inline]
    #[must_use]
    pub const fn is_priority(self) -> bool {
        self.intersects(Self::PRIORITY)
    }

    /// Whether no flag is set.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every flag of `other` is set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Ready) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as an integer below 64.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The flags in `bits`; others are dropped.
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Ready(bits & 0x3f)
    }

    #[inline]
    const fn intersects(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Ready {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Ready(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(f, self.0)
    }
}

/// What a descriptor is watched for. Errors and hang-ups are reported whatever is asked for.
///
/// ```
/// # use paceline::Interest;
/// assert_eq!(Interest::READABLE | Interest::WRITABLE, Interest::BOTH);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Reading, and the end of what the peer sends.
    pub const READABLE: Interest = Interest(Ready::READABLE.0);
    /// Writing.
    pub const WRITABLE: Interest = Interest(Ready::WRITABLE.0);
    /// Reading and writing. Edge-triggered, this costs nothing over either alone.
    pub const BOTH: Interest = Interest(Ready::READABLE.0 | Ready::WRITABLE.0);
    /// Urgent data of a TCP socket, or a change of a sysfs or cgroup file.
    pub const PRIORITY: Interest = Interest(Ready::PRIORITY.0);

    /// The flags as an integer below 8.
    #[inline]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// The inverse of [`bits`](Self::bits).
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Interest(bits & (Self::BOTH.0 | Self::PRIORITY.0))
    }

    #[inline]
    pub(crate) const fn contains(self, other: Interest) -> bool {
        self.0 & other.0 == other.0
    }

    /// What can be reported to whoever has this interest.
    pub(crate) fn reportable(self) -> Ready {
        let closed = if self.0 & Self::READABLE.0 != 0 { Ready::READ_CLOSED } else { Ready::NONE };
        Ready(self.0) | Ready::ERROR | Ready::HANG_UP | closed
    }
}

impl BitOr for Interest {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Interest(self.0 | other.0)
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(f, self.0)
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, bits: u8) -> fmt::Result {
    if bits == 0 {
        return f.write_str("NONE");
    }
    let names = Ready::NAMES.iter().enumerate().filter(|(bit, _)| bits & 1 << bit != 0);
    for (position, (_, name)) in names.enumerate() {
        f.write_str(if position == 0 { "" } else { " | " })?;
        f.write_str(name)?;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_naive_reader_and_a_naive_writer_are_told_about_errors() {
        for ready in [Ready::ERROR, Ready::HANG_UP] {
            assert!(ready.is_readable() && ready.is_writable(), "{ready:?}");
        }
        assert!(Ready::READ_CLOSED.is_readable() && !Ready::READ_CLOSED.is_writable());
        assert!(!Ready::PRIORITY.is_readable() && !Ready::PRIORITY.is_writable());
        assert!(!Ready::WRITABLE.is_readable() && !Ready::READABLE.is_writable());
    }

    #[test]
    fn debug_prints_names() {
        assert_eq!(format!("{:?}", Ready::NONE), "NONE");
        assert_eq!(format!("{:?}", Ready::READABLE | Ready::ERROR), "READABLE | ERROR");
        assert_eq!(format!("{:?}", Interest::BOTH), "READABLE | WRITABLE");
    }

    #[test]
    fn bits_go_round() {
        for bits in 0..64 {
            assert_eq!(Ready::from_bits(bits).bits(), bits);
        }
        assert_eq!(Ready::from_bits(0xff).bits(), 0x3f);
        let all = Interest::BOTH | Interest::PRIORITY;
        assert_eq!(Interest::from_bits(all.bits()), all);
    }

    #[test]
    fn only_readers_hear_of_the_end_of_reading() {
        assert!(Interest::READABLE.reportable().contains(Ready::READ_CLOSED));
        assert!(!Interest::WRITABLE.reportable().contains(Ready::READ_CLOSED));
        assert!(Interest::PRIORITY.reportable().contains(Ready::ERROR | Ready::HANG_UP));
    }
}
