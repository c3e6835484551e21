//! Stands for the work-stealing pool that most C++ programs use: a oneTBB task_arena.

use std::ffi::{c_int, c_void};

use super::{TaskPool, WORKERS};

unsafe extern "C" {
    fn onetbb_pool_new(workers: c_int) -> *mut c_void;
    fn onetbb_pool_free(pool: *mut c_void);
    fn onetbb_pool_post(pool: *mut c_void, count: usize);
    fn onetbb_pool_post_inside(pool: *mut c_void);
    fn onetbb_pool_post_started(pool: *mut c_void);
}

/// A live pool of cpp/shim_onetbb.cpp.
pub struct OneTbb(*mut c_void);

// SAFETY: the pool's functions may be called by any thread.
unsafe impl Sync for OneTbb {}

impl OneTbb {
    pub fn new() -> Self {
        // SAFETY: gives a new pool, which `drop` frees.
        Self(unsafe { onetbb_pool_new(WORKERS as c_int) })
    }
}

impl TaskPool for OneTbb {
    fn post(&self, count: usize) {
        // SAFETY: the pool is live.
        unsafe { onetbb_pool_post(self.0, count) }
    }

    fn post_inside(&self) {
        // SAFETY: the pool is live.
        unsafe { onetbb_pool_post_inside(self.0) }
    }

    fn post_started(&self) {
        // SAFETY: the pool is live.
        unsafe { onetbb_pool_post_started(self.0) }
    }

    fn allocations_counted(&self) -> bool {
        false
    }
}

impl Drop for OneTbb {
    fn drop(&mut self) {
        // SAFETY: the pool is live and idle; nobody has it after this.
        unsafe { onetbb_pool_free(self.0) }
    }
}
