//! Atomics, cells and waiting, behind one facade so that loom can stand in for the machine.
//!
//! Everything above this layer takes its atomics from here. Under `--cfg loom` they are loom's, and
//! a model explores every interleaving and every value a load may legally return.

pub(crate) mod atomic;
mod parker;
mod spin;
mod static_ref;
mod thread_number;

pub(crate) use crossbeam_utils::CachePadded;
#[allow(unused_imports, reason = "which are used, the features say")]
pub(crate) use parker::{Parker, Unparked, Wakes};
pub(crate) use spin::SpinWait;
pub(crate) use static_ref::{Lasting, StaticRef};
#[allow(unused_imports, reason = "which are used, the features say")]
pub(crate) use thread_number::{NUMBERED, UNNUMBERED, thread_number};

#[cfg(loom)]
#[allow(unused_imports, reason = "which are used, the features say")]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(loom))]
#[allow(unused_imports, reason = "which are used, the features say")]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// `core::cell::UnsafeCell` with loom's closure-shaped access, so that one source serves both.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Orders every store before it ahead of every load after it, on this thread.
///
/// This is the only barrier that Release and Acquire cannot give, and each use closes one
/// store-then-load race (Dekker's): *publish, then look for a sleeper* on one side against
/// *announce sleep, then look for work* on the other. With the barrier on both sides at least one
/// of them sees the other's store.
///
/// On x86-64 a locked read-modify-write of the own stack is the same barrier as `mfence` and takes
/// about half the time; the compiler emits `mfence` for `fence(SeqCst)`, hence the instruction.
/// ThreadSanitizer does not understand fences. It gets a read-modify-write of one shared word, which
/// the machine orders as the above, and relaxed, so that the tool sees no order in it: what is handed
/// from thread to thread must be by the Release and Acquire of its own.
#[inline(always)]
pub(crate) fn store_load_barrier() {
    #[cfg(paceline_tsan)]
    {
        static ORDER: atomic::AtomicU32 = atomic::AtomicU32::new(0);
        ORDER.fetch_add(1, atomic::Ordering::Relaxed);
    }
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri, paceline_tsan))))]
    #[allow(unsafe_code, reason = "the one instruction that the language has no name for")]
    // SAFETY: adds zero to the word at the top of the stack: no value changes, and the block is a
    // compiler barrier because it does not claim `nomem`.
    unsafe {
        core::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
    }
    #[cfg(not(any(paceline_tsan, all(target_arch = "x86_64", not(any(loom, miri))))))]
    atomic::fence(atomic::Ordering::SeqCst);
}

/// The same, right after a read-modify-write of this thread: on x86-64 that is the barrier already.
#[inline(always)]
pub(crate) fn barrier_after_change() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri, paceline_tsan))))]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri, paceline_tsan)))))]
    store_load_barrier();
}
