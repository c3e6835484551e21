//! The clock of everything: time that only goes forward.
#![allow(unsafe_code, reason = "clock_gettime(2)")]

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_agrees_with_std() {
        let (std_before, before) = (std::time::Instant::now(), now());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let elapsed = now() - before;
        assert!(elapsed >= 2_000_000);
        assert!(u128::from(elapsed) <= std_before.elapsed().as_nanos());
    }
}
