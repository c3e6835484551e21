//! The two clocks: time that only goes forward, and the processor time of this thread.
#![allow(unsafe_code, reason = "clock_gettime(2)")]

/// Nanoseconds of `CLOCK_MONOTONIC`: from boot, without the time spent suspended. It costs about
/// 20 ns and no system call.
#[inline]
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds that this thread has run. A system call.
pub(crate) fn thread_cpu_time() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Linux, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_agrees_with_std() {
        let before = (std::time::Instant::now(), now());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let elapsed = now() - before.1;
        assert!(elapsed >= 2_000_000);
        assert!(u128::from(elapsed) <= before.0.elapsed().as_nanos());
    }

    #[test]
    fn processor_time_counts_work_and_not_sleep() {
        let start = thread_cpu_time();
        while thread_cpu_time() == start {}
        let (worked, at) = (thread_cpu_time(), now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_cpu_time() - worked < now() - at);
    }
}
