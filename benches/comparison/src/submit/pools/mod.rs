//! The pools that empty tasks are submitted to: one file each, one trait.

mod channel;
mod mutex;
mod paceline_pool;
mod rayon_pool;
mod tokio_pool;

#[cfg(any(has_paceline, has_asio, has_onetbb, has_moodycamel))]
mod foreign;

/// What is measured of a pool. Loops over single posts are the pool's own, so that what is measured
/// is one post after another and no call through this trait.
pub trait TaskPool: Sync {
    /// Posts `count` empty tasks one by one, from a thread outside.
    fn post(&self, count: usize);

    /// Posts `batches` times `size` empty tasks, each batch by one call; false if the pool has no
    /// such call.
    fn post_batches(&self, batches: usize, size: usize) -> bool {
        let _ = (batches, size);
        false
    }

    /// Posts a task that posts empty ones from inside for as long as `work::go_on` says so, and
    /// keeps their number in flight below `work::IN_FLIGHT`.
    fn post_inside(&self);

    /// Posts the task that notes its start.
    fn post_started(&self);

    /// True if `post` waits for room by itself.
    fn bounded(&self) -> bool {
        false
    }

    /// False where tasks are allocated by another language's allocator, which nobody counts.
    fn allocations_counted(&self) -> bool {
        true
    }

    /// Wake-ups of workers so far, if the pool counts them.
    fn wake_ups(&self) -> Option<u64> {
        None
    }
}

pub const WORKERS: usize = 2;

/// paceline through its C interface.
pub const OURS_IN_C: &str = "paceline in C";

type Make = fn() -> Box<dyn TaskPool>;

/// Every pool that was built, by name.
pub fn all() -> Vec<(&'static str, Make)> {
    vec![
        ("paceline", || Box::new(paceline_pool::Paceline::new())),
        #[cfg(has_paceline)]
        (OURS_IN_C, || Box::new(foreign::Foreign::new(&foreign::PACELINE))),
        ("rayon", || Box::new(rayon_pool::Rayon::new())),
        ("tokio", || Box::new(tokio_pool::Tokio::new())),
        ("channel-bounded", || Box::new(channel::Channel::bounded())),
        ("channel-unbounded", || Box::new(channel::Channel::unbounded())),
        ("mutex", || Box::new(mutex::MutexPool::new())),
        #[cfg(has_asio)]
        ("asio", || Box::new(foreign::Foreign::new(&foreign::ASIO))),
        #[cfg(has_onetbb)]
        ("onetbb", || Box::new(foreign::Foreign::new(&foreign::ONETBB))),
        #[cfg(has_moodycamel)]
        ("moodycamel", || Box::new(foreign::Foreign::new(&foreign::MOODYCAMEL))),
    ]
}
