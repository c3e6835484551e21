//! The clock of everything: time that only goes forward.
#![allow(unsafe_code, reason = "clock_gettime(2), and the counter of the processor")]

use core::cell::Cell;
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

thread_local! {
    /// What [`soon_for_all`] has read; 0: nothing.
    static READ: Cell<u64> = const { Cell::new(0) };
}

/// As [`soon`], for whoever asks [`read_soon`] afterwards on this thread.
#[cfg(feature = "http")]
#[inline]
pub(crate) fn soon_for_all() -> u64 {
    let now = soon();
    READ.with(|read| read.set(now));
    now
}

/// As [`soon`], or what has been read for all since [`forget_read`].
#[inline]
pub(crate) fn read_soon() -> u64 {
    match READ.get() {
        0 => soon(),
        read => read,
    }
}

#[inline]
pub(crate) fn forget_read() {
    READ.with(|read| read.set(0));
}

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

/// A time that [`now`] has not passed, by up to [`AHEAD`] and the time that it takes to ask: for deadlines of
/// what must not be early. Two calls on one thread never go back, and what is used again is a nanosecond more each
/// time, so that deadlines say who came first.
///
/// It is what this thread has read within the last [`TICKS`] of the processor's counter, and [`AHEAD`] more: a
/// reading costs three times what the counter does. [`AHEAD`] covers what so many ticks can last, where the kernel
/// itself [takes the time from this counter](is_the_clock): then it is one on all processors, so that a thread that
/// moves takes no old reading for a new one, and its rate is the clock's. Elsewhere this is [`now`].
///
/// The counter was read before the clock, so less has passed since the latter, however long the thread was held
/// up between them. That the processor may read the counter some instructions ahead is covered by counters being
/// faster than they must be.
#[inline]
pub(crate) fn at_least_now() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let ticks = ticks();
        let (then, ahead) = READ_AHEAD.get();
        if ticks.wrapping_sub(then) < TICKS {
            READ_AHEAD.set((then, ahead + 1));
            return ahead;
        }
        read_ahead(ticks)
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    now()
}

/// The same, or what this thread has read within the last [`TICKS`] of the processor's counter: under half a
/// microsecond ago. Reading that counter costs a third of what the clock does.
///
/// A counter that does not go at one rate for ever is not trusted. If the thread has moved to a processor whose
/// counter is behind, the difference is large, and the clock is read.
#[inline]
pub(crate) fn recent_unix_nanos() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let ticks = ticks();
        let (then, nanos) = RECENT.get();
        if ticks.wrapping_sub(then) < TICKS {
            return nanos;
        }
        let nanos = unix_nanos();
        if counts_evenly() {
            RECENT.set((ticks, nanos));
        }
        nanos
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    unix_nanos()
}

#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
use counter::*;

/// The processor's counter, and what was read beside it.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
mod counter {
    use super::now;
    use core::cell::Cell;
    use std::sync::OnceLock;

    /// So long a reading is used again. Of 2 GHz and more, which such counters have, half a microsecond.
    pub(super) const TICKS: u64 = 1000;
    /// No counter that is used takes longer for [`TICKS`], in nanoseconds.
    pub(super) const AHEAD: u64 = 1000;

    thread_local! {
        /// The counter before the clock was read last, and what is said next: what the clock said, [`AHEAD`], and a
        /// nanosecond for each call since, which takes longer. The counter was 0 when the machine started, so before
        /// the first reading this is long ago.
        pub(super) static READ_AHEAD: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
        /// The same of the time since 1970, as it was said.
        pub(super) static RECENT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        // SAFETY: every x86-64 has the instruction, and the kernel's own clock uses it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Reads the clock, `ticks` having been read just now.
    #[inline(never)]
    pub(super) fn read_ahead(ticks: u64) -> u64 {
        let now = now();
        if !is_the_clock() {
            return now;
        }
        READ_AHEAD.set((ticks, now + AHEAD + 1));
        now + AHEAD
    }

    /// Whether the kernel takes the time from the counter, and that makes [`TICKS`] within [`AHEAD`].
    pub(super) fn is_the_clock() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        static IS: OnceLock<bool> = OnceLock::new();
        *IS.get_or_init(|| {
            let source = std::fs::read(SOURCE);
            // Held up within a look, it seems slower than it is.
            source.is_ok_and(|name| name.trim_ascii() == b"tsc") && (0..3).any(|_| is_fast())
        })
    }

    fn is_fast() -> bool {
        let (before, first) = (now(), ticks());
        while now() - before < 20 * AHEAD {}
        let passed = ticks().wrapping_sub(first);
        // No more than this has passed between the readings of the counter.
        passed / TICKS > (now() - before) / AHEAD
    }

    /// Whether the counter goes at one rate, whatever the processor does: CPUID leaf 8000_0007, EDX, bit 8.
    pub(super) fn counts_evenly() -> bool {
        static EVENLY: OnceLock<bool> = OnceLock::new();
        *EVENLY.get_or_init(|| {
            use core::arch::x86_64::__cpuid;
            const LEAF: u32 = 0x8000_0007;
            __cpuid(0x8000_0000).eax >= LEAF && __cpuid(LEAF).edx & 1 << 8 != 0
        })
    }
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

    /// Goal: no deadline that is reckoned from it is early, and none is late by more than it says. Method: the
    /// clock before and after, in bursts that use one reading again, and after pauses.
    #[test]
    fn at_least_now_is_never_behind_and_hardly_ahead() {
        /// As the counter's.
        const AHEAD: u64 = 1_000;
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        let is_the_counter = is_the_clock();
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
        let is_the_counter = false;
        let mut last = 0;
        let mut again = 0;
        for round in 0..100_000 {
            if round % 10_000 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let before = now();
            let at_least = at_least_now();
            let after = now();
            assert!(before <= at_least && at_least <= after + AHEAD, "{before} {at_least} {after}");
            assert!(last < at_least || !is_the_counter && last == at_least, "{last} {at_least}");
            again += u64::from(last + 1 == at_least);
            last = at_least;
        }
        assert!(again > 0 || !is_the_counter);
    }

    #[test]
    fn what_was_read_recently_is_never_ahead_and_hardly_behind() {
        /// Of a counter of 500 MHz, slower than any.
        const MOST: u64 = 2_000;
        let mut last = 0;
        let mut same = 0;
        for round in 0..10_000 {
            if round % 1000 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let before = unix_nanos();
            let (recent, again) = (recent_unix_nanos(), recent_unix_nanos());
            assert!(last <= recent && before <= recent + MOST, "{last} {before} {recent}");
            assert!(recent <= again && again <= unix_nanos());
            same += u64::from(recent == again);
            last = again;
        }
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        assert!(same > 0 || !counts_evenly());
        let _ = same;
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
