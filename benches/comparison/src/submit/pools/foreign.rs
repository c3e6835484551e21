//! Stand for the pools that C++ programs use: Asio's thread_pool in networking, oneTBB's task_arena
//! for work-stealing, and workers on moodycamel's BlockingConcurrentQueue, the fastest queue there
//! is. Each is a shim in cpp/ behind the same handful of C functions; and so is paceline itself, as C
//! programs use it.

use std::ffi::{c_int, c_void};

use super::{TaskPool, WORKERS};
use crate::submit::work;

/// The functions of one shim.
pub struct Functions {
    new: unsafe extern "C" fn(c_int) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    post: unsafe extern "C" fn(*mut c_void, usize),
    post_inside: unsafe extern "C" fn(*mut c_void),
    post_started: unsafe extern "C" fn(*mut c_void),
    post_batches: Option<unsafe extern "C" fn(*mut c_void, usize, usize)>,
}

macro_rules! functions {
    ($table:ident: $new:ident $free:ident $post:ident $inside:ident $started:ident $($batches:ident)?) => {
        unsafe extern "C" {
            fn $new(workers: c_int) -> *mut c_void;
            fn $free(pool: *mut c_void);
            fn $post(pool: *mut c_void, count: usize);
            fn $inside(pool: *mut c_void);
            fn $started(pool: *mut c_void);
            $(fn $batches(pool: *mut c_void, batches: usize, size: usize);)?
        }

        pub static $table: Functions = Functions {
            new: $new,
            free: $free,
            post: $post,
            post_inside: $inside,
            post_started: $started,
            post_batches: [$(Some($batches as unsafe extern "C" fn(_, _, _)),)? None][0],
        };
    };
}

#[cfg(has_paceline)]
functions!(PACELINE:
    paceline_pool_new paceline_pool_free paceline_pool_post paceline_pool_post_inside
    paceline_pool_post_started paceline_pool_post_batches
);
#[cfg(has_asio)]
functions!(ASIO:
    asio_pool_new asio_pool_free asio_pool_post asio_pool_post_inside asio_pool_post_started
);
#[cfg(has_onetbb)]
functions!(ONETBB:
    onetbb_pool_new onetbb_pool_free onetbb_pool_post onetbb_pool_post_inside
    onetbb_pool_post_started
);
#[cfg(has_moodycamel)]
functions!(MOODYCAMEL:
    moodycamel_pool_new moodycamel_pool_free moodycamel_pool_post moodycamel_pool_post_inside
    moodycamel_pool_post_started moodycamel_pool_post_batches
);

/// A live pool and its functions.
pub struct Foreign {
    pool: *mut c_void,
    functions: &'static Functions,
}

// SAFETY: the functions may be called by any thread.
unsafe impl Sync for Foreign {}

impl Foreign {
    pub fn new(functions: &'static Functions) -> Self {
        // SAFETY: gives a new pool, which `drop` frees.
        Self { pool: unsafe { (functions.new)(WORKERS as c_int) }, functions }
    }
}

impl TaskPool for Foreign {
    fn post(&self, count: usize) {
        // SAFETY: the pool is live.
        unsafe { (self.functions.post)(self.pool, count) }
    }

    fn post_batches(&self, batches: usize, size: usize) -> bool {
        let Some(post_batches) = self.functions.post_batches else { return false };
        // SAFETY: the pool is live, and a batch is no longer than a shim's buffer.
        unsafe { post_batches(self.pool, batches, size.min(work::BURST)) };
        true
    }

    fn post_inside(&self) {
        // SAFETY: the pool is live.
        unsafe { (self.functions.post_inside)(self.pool) }
    }

    fn post_started(&self) {
        // SAFETY: the pool is live.
        unsafe { (self.functions.post_started)(self.pool) }
    }

    fn allocations_counted(&self) -> bool {
        false
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the pool is live and idle; nobody has it after this.
        unsafe { (self.functions.free)(self.pool) }
    }
}
