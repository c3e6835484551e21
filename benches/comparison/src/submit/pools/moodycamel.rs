//! Stands for the fastest queue that C++ offers: workers on moodycamel's BlockingConcurrentQueue.

use std::ffi::{c_int, c_void};

use super::{TaskPool, WORKERS};
use crate::submit::work;

unsafe extern "C" {
    fn moodycamel_pool_new(workers: c_int) -> *mut c_void;
    fn moodycamel_pool_free(pool: *mut c_void);
    fn moodycamel_pool_post(pool: *mut c_void, count: usize);
    fn moodycamel_pool_post_batches(pool: *mut c_void, batches: usize, size: usize);
    fn moodycamel_pool_post_inside(pool: *mut c_void);
    fn moodycamel_pool_post_started(pool: *mut c_void);
}

/// A live pool of cpp/shim_moodycamel.cpp.
pub struct Moodycamel(*mut c_void);

// SAFETY: the pool's functions may be called by any thread.
unsafe impl Sync for Moodycamel {}

impl Moodycamel {
    pub fn new() -> Self {
        // SAFETY: gives a new pool, which `drop` frees.
        Self(unsafe { moodycamel_pool_new(WORKERS as c_int) })
    }
}

impl TaskPool for Moodycamel {
    fn post(&self, count: usize) {
        // SAFETY: the pool is live.
        unsafe { moodycamel_pool_post(self.0, count) }
    }

    fn post_batches(&self, batches: usize, size: usize) -> bool {
        // SAFETY: the pool is live, and a batch is no longer than the shim's buffer.
        unsafe { moodycamel_pool_post_batches(self.0, batches, size.min(work::BURST)) };
        true
    }

    fn post_inside(&self) {
        // SAFETY: the pool is live.
        unsafe { moodycamel_pool_post_inside(self.0) }
    }

    fn post_started(&self) {
        // SAFETY: the pool is live.
        unsafe { moodycamel_pool_post_started(self.0) }
    }

    fn allocations_counted(&self) -> bool {
        false
    }
}

impl Drop for Moodycamel {
    fn drop(&mut self) {
        // SAFETY: the pool is live and idle; nobody has it after this.
        unsafe { moodycamel_pool_free(self.0) }
    }
}
