//! Which CPUs this thread may use, and pinning it to one.
//!
//! The masks are `core_affinity`'s, which are those of the C library: 1024 CPUs. On a kernel that
//! counts more the mask cannot be read, and CPUs from 1024 on cannot be pinned to.

use core_affinity::CoreId;
use std::io;

/// CPUs that a mask has bits for.
const MASK_BITS: usize = libc::CPU_SETSIZE as usize;

/// The CPUs that the calling thread may run on, in ascending order. They need not start at 0, and
/// they are the thread's own: its siblings may have others.
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    match core_affinity::get_core_ids() {
        Some(ids) => Ok(ids.into_iter().map(|core| core.id).collect()),
        None => Err(io::Error::last_os_error()),
    }
}

/// Binds the calling thread to one CPU, which may lie outside its present mask: isolated CPUs do.
/// The kernel refuses a CPU that is offline or outside the thread's cpuset.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= MASK_BITS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    match core_affinity::set_for_current(CoreId { id: cpu }) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Goal: pinning binds the calling thread to that CPU, and nobody else.
    #[test]
    fn a_pinned_thread_is_allowed_one_cpu() {
        let before = allowed().unwrap();
        let last = *before.last().unwrap();
        let pinned = std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
            // The mask can be left again, which is what makes isolated CPUs reachable.
            for cpu in before {
                pin(cpu).unwrap();
            }
        });
        pinned.join().unwrap();
        assert!(allowed().unwrap().contains(&last));
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        for cpu in [MASK_BITS - 1, MASK_BITS, usize::MAX] {
            let before = allowed().unwrap();
            assert_eq!(pin(cpu).unwrap_err().raw_os_error(), Some(libc::EINVAL), "CPU {cpu}");
            assert_eq!(allowed().unwrap(), before);
        }
    }
}
