//! Stands for the usual C++ pool of a networking program: Asio's thread_pool.

use std::ffi::{c_int, c_void};

use super::{TaskPool, WORKERS};

unsafe extern "C" {
    fn asio_pool_new(workers: c_int) -> *mut c_void;
    fn asio_pool_free(pool: *mut c_void);
    fn asio_pool_post(pool: *mut c_void, count: usize);
    fn asio_pool_post_inside(pool: *mut c_void);
    fn asio_pool_post_started(pool: *mut c_void);
}

/// A live pool of cpp/shim_asio.cpp.
pub struct Asio(*mut c_void);

// SAFETY: the pool's functions may be called by any thread.
unsafe impl Sync for Asio {}

impl Asio {
    pub fn new() -> Self {
        // SAFETY: gives a new pool, which `drop` frees.
        Self(unsafe { asio_pool_new(WORKERS as c_int) })
    }
}

impl TaskPool for Asio {
    fn post(&self, count: usize) {
        // SAFETY: the pool is live.
        unsafe { asio_pool_post(self.0, count) }
    }

    fn post_inside(&self) {
        // SAFETY: the pool is live.
        unsafe { asio_pool_post_inside(self.0) }
    }

    fn post_started(&self) {
        // SAFETY: the pool is live.
        unsafe { asio_pool_post_started(self.0) }
    }

    fn allocations_counted(&self) -> bool {
        false
    }
}

impl Drop for Asio {
    fn drop(&mut self) {
        // SAFETY: the pool is live and idle; nobody has it after this.
        unsafe { asio_pool_free(self.0) }
    }
}
