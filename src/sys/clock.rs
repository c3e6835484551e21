//! The clock of everything: time that only goes forward.
#![allow(unsafe_code, reason = "clock_gettime(2)")]

#[cfg(feature = "net")]
use core::cell::Cell;
#[cfg(feature = "http")]
use core::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`: from boot, without the time spent suspended. It costs about
/// 20 ns and no system call.
#[inline]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; every Linux has this clock, so the call cannot
    // fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock as the kernel's tick has left it, and a tick more, so that it is not before
/// [`now`] unless the kernel itself was held up. A few nanoseconds, for the beginning of times that are
/// long beside a tick.
#[cfg(feature = "net")]
#[inline]
pub(crate) fn soon() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + TICK
}

/// The monotonic clock as the kernel's tick has left it: up to a tick behind. A few nanoseconds.
#[cfg(feature = "tasks")]
#[inline]
pub(crate) fn coarse() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The longest tick that Linux can be built with: 100 Hz.
#[cfg(any(feature = "net", feature = "tasks"))]
pub(crate) const TICK: u64 = 10_000_000;

#[cfg(feature = "net")]
thread_local! {
    /// What [`soon_for_all`] has read; 0: nothing.
    static READ: Cell<u64> = const { Cell::new(0) };
}

/// As [`soon`], for whoever asks [`read_soon`] afterwards on this thread.
#[cfg(feature = "http")]
#[inline]
pub(crate) fn soon_for_all() -> u64 {
    let now = soon();
    READ.set(now);
    now
}

/// As [`soon`], or what has been read for all since [`forget_read`].
#[cfg(feature = "net")]
#[inline]
pub(crate) fn read_soon() -> u64 {
    match READ.get() {
        0 => soon(),
        read => read,
    }
}

#[cfg(feature = "net")]
#[inline]
pub(crate) fn forget_read() {
    READ.set(0);
}

/// The time since 1970, from the clock that the kernel moves with its tick: a few nanoseconds.
#[cfg(feature = "http")]
pub(crate) fn unix() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Nanoseconds since 1970, by the clock of the system, which may be set back.
#[cfg(feature = "hub")]
#[inline]
pub(crate) fn unix_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "net")]
    #[test]
    fn soon_goes_on_and_is_at_most_a_tick_away() {
        let first = soon();
        while soon() == first {
            let read = soon();
            assert!(read <= now() + TICK);
        }
    }

    #[test]
    fn the_monotonic_clock_agrees_with_std() {
        let (std_before, before) = (std::time::Instant::now(), now());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let elapsed = now() - before;
        assert!(elapsed >= 2_000_000);
        assert!(u128::from(elapsed) <= std_before.elapsed().as_nanos());
    }
}
