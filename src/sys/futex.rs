//! A 32-bit word that threads can sleep on. Private futexes; a signal never ends a wait early.
#![allow(unsafe_code, reason = "futex(2) has no wrapper in libc")]

use crate::sync::atomic::AtomicU32;
use core::ops::Deref;
use core::time::Duration;

/// An atomic word with a kernel wait queue. It dereferences to the word.
#[derive(Debug)]
pub(crate) struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    queue: stand_in::Queue,
}

impl Deref for Futex {
    type Target = AtomicU32;

    #[inline(always)]
    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}

impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(value),
            #[cfg(loom)]
            queue: stand_in::Queue::default(),
        }
    }
}

#[cfg(not(loom))]
impl Futex {
    /// Sleeps while the word is `expected`, at most for `timeout` (monotonic clock; none is for
    /// ever). False if it timed out. A true answer may be spurious: read the word.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) -> bool {
        // FUTEX_WAIT_BITSET takes an absolute deadline, so a signal cannot stretch the wait.
        let deadline = timeout.and_then(deadline_after);
        let deadline = deadline.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        loop {
            // SAFETY: the word and `deadline` outlive the call; the kernel only reads them.
            let slept = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.word.as_ptr(),
                    libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                    expected,
                    deadline,
                    core::ptr::null::<u32>(),
                    libc::FUTEX_BITSET_MATCH_ANY,
                ) == 0
            };
            if slept {
                return true;
            }
            // SAFETY: errno is this thread's own.
            match unsafe { *libc::__errno_location() } {
                libc::EINTR => {}
                libc::ETIMEDOUT => return false,
                _ => return true, // EAGAIN: the word had already changed
            }
        }
    }

    /// Wakes up to `count` sleepers.
    pub(crate) fn wake(&self, count: i32) {
        // SAFETY: the kernel uses the address as a key and never dereferences it for a wake.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                count,
            );
        }
    }
}

/// None when the deadline lies beyond what the clock can say: that is "for ever".
#[cfg(not(loom))]
fn deadline_after(timeout: Duration) -> Option<libc::timespec> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let nanos = now.tv_nsec + i64::from(timeout.subsec_nanos());
    let secs = i64::try_from(timeout.as_secs()).ok()?;
    Some(libc::timespec {
        tv_sec: now.tv_sec.checked_add(secs)?.checked_add(nanos / 1_000_000_000)?,
        tv_nsec: nanos % 1_000_000_000,
    })
}

/// loom has no futex. A lock and a condition variable compare and sleep in one step as the kernel
/// does, and a wake that never comes is then reported by loom as a deadlock.
#[cfg(loom)]
mod stand_in {
    use super::{Duration, Futex};
    use loom::sync::{Condvar, Mutex, atomic::Ordering::Relaxed};

    #[derive(Debug)]
    pub(super) struct Queue {
        lock: Mutex<()>,
        changed: Condvar,
    }

    impl Default for Queue {
        fn default() -> Self {
            Self { lock: Mutex::new(()), changed: Condvar::new() }
        }
    }

    impl Futex {
        /// With a timeout this may end at once, which is the freedom that a timeout has.
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) -> bool {
            if timeout.is_some() {
                loom::thread::yield_now();
                return self.word.load(Relaxed) != expected;
            }
            let guard = self.queue.lock.lock().unwrap();
            if self.word.load(Relaxed) == expected {
                drop(self.queue.changed.wait(guard).unwrap());
            }
            true
        }

        pub(crate) fn wake(&self, _count: i32) {
            drop(self.queue.lock.lock().unwrap());
            self.queue.changed.notify_all();
        }
    }
}
