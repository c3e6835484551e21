//! A barrier that costs one side nothing, and the other a system call.
//!
//! [`store_load_barrier`](super::store_load_barrier) on both sides of a store-then-load race costs both some
//! nanoseconds. Where one side comes by a million times before the other does once, the first takes the
//! [light](light_barrier) one, which only the compiler heeds, and the second the [heavy](heavy_barrier) one: it
//! has the kernel stop every thread at a point of its program, with a full barrier there.
//!
//! ```text
//!   light side:  store A ─ light ─ load B          heavy side:  store B ─ heavy ─ load A
//! ```
//!
//! The point lies before the light side's load, which then sees B, or after its store, and then the heavy side's
//! load sees A. So a light and a heavy barrier are what two full ones would be. **Two light ones order nothing**,
//! nor does a light one beside a full one.
//!
//! Source: `membarrier(2)`; asymmetric fences of P1202. For tools, which do not see what the kernel does, both are
//! full barriers, which is what a pair of them amounts to.

#[cfg(not(any(loom, miri, paceline_tsan)))]
use crate::sys::membarrier;

/// Whether there is a [`heavy_barrier`]. It may take some milliseconds, once in a process with several threads.
pub(crate) fn is_asymmetric() -> bool {
    #[cfg(not(any(loom, miri, paceline_tsan)))]
    return membarrier::register().is_ok();
    #[cfg(any(loom, miri, paceline_tsan))]
    true
}

/// Orders what comes before it ahead of what comes after it for whoever passes a [`heavy_barrier`] meanwhile.
#[inline(always)]
pub(crate) fn light_barrier() {
    #[cfg(not(any(loom, miri, paceline_tsan)))]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    #[cfg(any(loom, miri, paceline_tsan))]
    super::store_load_barrier();
}

/// A full barrier for all threads of the process. False: it was none for others, since something has forbidden the
/// system call in the meantime.
#[must_use]
pub(crate) fn heavy_barrier() -> bool {
    super::store_load_barrier();
    #[cfg(not(any(loom, miri, paceline_tsan)))]
    return membarrier::every_thread_passes().is_ok();
    #[cfg(any(loom, miri, paceline_tsan))]
    true
}
