//! The clock of everything: time that only goes forward.
#![allow(unsafe_code, reason = "clock_gettime(2)")]

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

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
#[inline]
pub(crate) fn soon() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + TICK
}

/// The monotonic clock as the kernel's tick has left it: up to a tick behind. A few nanoseconds.
#[inline]
pub(crate) fn coarse() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The longest tick that Linux can be built with: 100 Hz.
pub(crate) const TICK: u64 = 10_000_000;

/// The time since 1970, from the clock that the kernel moves with its tick: a few nanoseconds. Zero
/// while the clock is set to a time before that.
#[cfg(feature = "http")]
pub(crate) fn unix() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut time) };
    since_1970(time)
}

#[inline]
fn since_1970(time: libc::timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec);
    seconds.map_or(Duration::ZERO, |seconds| Duration::new(seconds, time.tv_nsec as u32))
}

/// The nearest time that dates of HTTP and of RFC 3339 have a form for: from 1970 to the end of the year
/// 9999. A clock may be set to any time, and those who write dates panic beyond.
pub(crate) fn with_a_form(time: SystemTime) -> SystemTime {
    time.clamp(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(253_402_300_799))
}

/// Nanoseconds since 1970, by the clock of the system, which may be set back. 0 while it is set to a time
/// before that, and `u64::MAX` after the year 2554.
#[inline]
pub(crate) fn unix_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    u64::try_from(since_1970(time).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what asks for the time of the system lives with whatever that is set to.
    #[cfg(feature = "http")]
    #[test]
    fn a_clock_may_be_set_to_any_time() {
        let at = |tv_sec| since_1970(libc::timespec { tv_sec, tv_nsec: 7 });
        assert_eq!(at(3), Duration::new(3, 7));
        assert_eq!([at(-1), at(i64::MIN)], [Duration::ZERO; 2]);
        let day = Duration::from_secs(86_400);
        let millennia = 3_000_000 * day;
        for (time, written) in [
            (UNIX_EPOCH - day, "1970-01-01T00:00:00"),
            (UNIX_EPOCH + day, "1970-01-02T00:00:00"),
            (UNIX_EPOCH + millennia, "9999-12-31T23:59:59"),
        ] {
            let time = with_a_form(time);
            assert_eq!(humantime::format_rfc3339_seconds(time).to_string(), format!("{written}Z"));
            let _ = httpdate::fmt_http_date(time);
        }
    }

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
