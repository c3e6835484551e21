//! Is this still the process that built the pool?
//!
//! A forked child has the pool's memory and none of its threads. Every call on a pool asks first,
//! so the question must cost one load. The answer lies on a page of its own that the kernel empties
//! in the child (`MADV_WIPEONFORK`, Linux 4.14); where the kernel has no such thing a
//! `pthread_atfork` handler empties a word instead, which a bare `clone` would miss.
//!
//! ```text
//!   process A: page 1 ── fork ──► child B: page 0 ── builds a pool ──► page 2 ── fork ──► page 0
//!   guard of A's pool: 1 = 1          1 ≠ 0: forked                    1 ≠ 2: forked
//!   guard of B's pool:                                                 2 = 2               2 ≠ 0
//! ```
//!
//! The epochs are never used twice along one line of descent, since the counter they come from is
//! an ordinary word that each child inherits.
#![allow(unsafe_code, reason = "mmap, madvise, pthread_atfork")]

#[cfg(not(loom))]
pub(crate) use real::ForkGuard;
#[cfg(loom)]
pub(crate) use stand_in::ForkGuard;

#[cfg(not(loom))]
mod real {
    use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
    use crate::sync::atomic::{AtomicPtr, AtomicU64};
    use core::ptr;
    use std::io;

    /// Not yet in any process, or emptied by a fork.
    const NO_EPOCH: u64 = 0;

    /// The word that a fork empties. Mapped once, never unmapped, inherited by children.
    static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
    /// The last epoch given out on this line of descent.
    static LAST_EPOCH: AtomicU64 = AtomicU64::new(NO_EPOCH);
    /// The word where the kernel cannot empty a page.
    static FALLBACK: AtomicU64 = AtomicU64::new(NO_EPOCH);

    /// Remembers the process that it was made in.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct ForkGuard {
        word: &'static AtomicU64,
        epoch: u64,
    }

    impl ForkGuard {
        pub(crate) fn new() -> io::Result<Self> {
            let word = word()?;
            Ok(Self { word, epoch: epoch(word) })
        }

        /// Whether this is a child of the process that made the guard.
        #[inline(always)]
        pub(crate) fn is_child(self) -> bool {
            // Relaxed: within one process the word never changes once a guard exists.
            self.word.load(Relaxed) != self.epoch
        }
    }

    /// This process's epoch, a new one if it has none.
    fn epoch(word: &AtomicU64) -> u64 {
        let current = word.load(Relaxed);
        if current != NO_EPOCH {
            return current;
        }
        let fresh = LAST_EPOCH.fetch_add(1, Relaxed) + 1;
        // Relaxed: the value is all that is shared. Whoever comes second takes the first one's.
        word.compare_exchange(NO_EPOCH, fresh, Relaxed, Relaxed)
            .map_or_else(|first| first, |_| fresh)
    }

    fn word() -> io::Result<&'static AtomicU64> {
        // Acquire: pairs with the Release below, so that the page is seen as it was prepared.
        let known = WORD.load(Acquire);
        let word = if known.is_null() { publish(prepare()?) } else { known };
        // SAFETY: never null here, and what it points to is never freed.
        Ok(unsafe { &*word })
    }

    /// Makes `prepared` the word of this process, unless another thread was faster; its page then
    /// stays behind unused. No lock: a fork in the middle of it would leave the lock held for ever.
    fn publish(prepared: *mut AtomicU64) -> *mut AtomicU64 {
        // Release: pairs with the Acquire in `word`, as does the Acquire here if we lost.
        match WORD.compare_exchange(ptr::null_mut(), prepared, AcqRel, Acquire) {
            Ok(_) => prepared,
            Err(first) => first,
        }
    }

    fn prepare() -> io::Result<*mut AtomicU64> {
        match wiped_page() {
            Some(word) => Ok(word),
            None => fallback(),
        }
    }

    fn wiped_page() -> Option<*mut AtomicU64> {
        let len = size_of::<AtomicU64>(); // the kernel rounds up to a page
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping touches nothing that exists.
        let page = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the whole mapping is ours, and nobody has seen it yet.
        if unsafe { libc::madvise(page, len, libc::MADV_WIPEONFORK) } != 0 {
            // SAFETY: as above.
            unsafe { libc::munmap(page, len) };
            return None;
        }
        Some(page.cast())
    }

    fn fallback() -> io::Result<*mut AtomicU64> {
        // SAFETY: the handler only stores to a static word, which is safe in a forked child.
        match unsafe { libc::pthread_atfork(None, None, Some(forget_epoch)) } {
            0 => Ok(ptr::from_ref(&FALLBACK).cast_mut()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    extern "C" fn forget_epoch() {
        FALLBACK.store(NO_EPOCH, Relaxed); // Relaxed: the child has one thread
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use core::ffi::c_int;

        /// Runs `body` in a forked child, which may only load, store and exit, and returns the
        /// status that it answers with.
        fn in_child(body: impl FnOnce() -> c_int) -> c_int {
            // SAFETY: the child calls nothing but `body` and _exit.
            match unsafe { libc::fork() } {
                0 => {
                    let status = body();
                    // SAFETY: ends the child without running anything of the parent's.
                    unsafe { libc::_exit(status) }
                }
                child => wait_for(child),
            }
        }

        fn wait_for(child: libc::pid_t) -> c_int {
            assert!(child > 0, "fork");
            let mut status = 0;
            // SAFETY: `status` is valid to write to.
            while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
                assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
            }
            assert!(libc::WIFEXITED(status));
            libc::WEXITSTATUS(status)
        }

        /// Bit 0: the parent's guard says child. Bit 1: the own guard says child. Bit 2: the
        /// grandchild's answer about both was not "child".
        fn ask(word: &'static AtomicU64, parents: ForkGuard) -> c_int {
            let before = parents.is_child();
            let own = ForkGuard { word, epoch: epoch(word) };
            let after = parents.is_child();
            let grandchild =
                in_child(|| c_int::from(own.is_child()) + c_int::from(parents.is_child()));
            c_int::from(before && after)
                | c_int::from(own.is_child()) << 1
                | c_int::from(grandchild != 2) << 2
        }

        #[test]
        fn a_child_is_known_and_can_start_afresh() {
            let guard = ForkGuard::new().unwrap();
            let word = word().unwrap();
            assert!(!guard.is_child());
            assert!(!ptr::eq(word, &FALLBACK), "this kernel empties pages");
            assert_eq!(in_child(|| ask(word, guard)), 1);
            assert!(!guard.is_child());
        }

        #[test]
        fn the_fallback_knows_a_child_too() {
            // SAFETY: the fallback is a static.
            let word = unsafe { &*fallback().unwrap() };
            let guard = ForkGuard { word, epoch: epoch(word) };
            assert!(!guard.is_child());
            assert_eq!(in_child(|| ask(word, guard)), 1);
            assert!(!guard.is_child());
        }

        #[test]
        fn guards_of_one_process_agree() {
            let threads = [(); 4].map(|()| std::thread::spawn(ForkGuard::new));
            let epochs = threads.map(|thread| thread.join().unwrap().unwrap().epoch);
            assert!(epochs.iter().all(|&epoch| epoch == epochs[0] && epoch != NO_EPOCH));
        }
    }
}

/// loom knows no processes.
#[cfg(loom)]
mod stand_in {
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct ForkGuard;

    impl ForkGuard {
        pub(crate) fn new() -> std::io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn is_child(self) -> bool {
            false
        }
    }
}
