//! The clock of everything: time that only goes forward.
#![allow(unsafe_code, reason = "clock_gettime(2), and the counter of the processor")]

#[cfg(any(feature = "net", feature = "hub"))]
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
    READ.with(|read| read.set(now));
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
    READ.with(|read| read.set(0));
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

/// The same, or what this thread has read within the last [`TICKS`] of the processor's counter: under half a
/// microsecond ago. Reading that counter costs a third of what the clock does.
///
/// A counter that does not go at one rate for ever is not trusted. If the thread has moved to a processor whose
/// counter is behind, the difference is large, and the clock is read.
#[cfg(feature = "hub")]
#[inline]
pub(crate) fn recent_unix_nanos() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        // SAFETY: every x86-64 has the instruction, and the kernel's own clock uses it.
        let ticks = unsafe { core::arch::x86_64::_rdtsc() };
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

/// Of 2 GHz and more, which such counters have.
#[cfg(all(feature = "hub", target_arch = "x86_64", not(any(loom, miri))))]
const TICKS: u64 = 1000;

#[cfg(all(feature = "hub", target_arch = "x86_64", not(any(loom, miri))))]
thread_local! {
    /// The processor's counter before the clock was read last, and what that said. The counter was 0 when the
    /// machine started, so before the first reading this is long ago.
    static RECENT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Whether the processor's counter goes at one rate, whatever the processor does: CPUID leaf 8000_0007, EDX, bit 8.
#[cfg(all(feature = "hub", target_arch = "x86_64", not(any(loom, miri))))]
fn counts_evenly() -> bool {
    static EVENLY: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *EVENLY.get_or_init(|| {
        use core::arch::x86_64::__cpuid;
        const LEAF: u32 = 0x8000_0007;
        __cpuid(0x8000_0000).eax >= LEAF && __cpuid(LEAF).edx & 1 << 8 != 0
    })
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

    #[cfg(feature = "hub")]
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
