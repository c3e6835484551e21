//! Ways in: `post` (no result) and `submit` (a [`Task`] to wait for), singly and in batches, into
//! any lane.

use super::cell::{Completer, Failure};
use super::post::Staged;
use super::task::Task;
use crate::contain::{discard, message_of};
use crate::error::Rejected;
use crate::pool::Pool;
use crate::pool::deadline::Deadline;
use crate::pool::shared::Shared;
use crate::pool::this_thread::{Outcome, report};
use crate::queue::{Lane, Run};
use core::any::type_name;
use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A closure with the end of its task that it must complete.
pub(crate) struct Wrapped<F, T> {
    work: F,
    completer: Completer<T>,
}

impl<F, T> Run for Wrapped<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn name() -> &'static str {
        type_name::<F>()
    }

    fn run(self) {
        let Self { work, completer } = self;
        if !completer.begin() {
            report(Outcome::Cancelled);
            // Dropping the completer tells the waiters; what the closure held is gone by then.
            drop(work);
            return;
        }
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => completer.finish(Ok(value)),
            Err(panic) => {
                report(Outcome::Failed);
                completer.finish(Err(Failure::Panicked(message_of(&*panic))));
                discard(panic);
            }
        }
    }
}

/// Submits by one of the ways to post. The closure comes back out of its wrapping if it is refused.
pub(crate) fn submit_by<F, T>(
    shared: &Shared,
    work: F,
    post: impl FnOnce(Wrapped<F, T>) -> Result<(), Rejected<Wrapped<F, T>>>,
) -> Result<Task<T>, Rejected<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some((completer, task)) = Task::pair(&shared.cells) else {
        return Err(shared.counters.count_rejected(Rejected::Full(work, shared.cells.no_room())));
    };
    match post(Wrapped { work, completer }) {
        Ok(()) => Ok(task),
        Err(rejected) => Err(rejected.map(|wrapped| wrapped.work)),
    }
}

impl Pool {
    /// Runs `work` on the pool. With at most 48 bytes of captures it allocates nothing.
    ///
    /// From outside the pool's threads this waits while the lane is full; inside a handler it never
    /// waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back: `Full` (inside only), `ShutDown` or `Forked`.
    #[inline]
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.shared().post(Lane::Normal, work)
    }

    /// As [`post`](Self::post), and never waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    #[inline]
    pub fn try_post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.shared().try_post(Lane::Normal, work)
    }

    /// Runs `work` on the pool and gives a handle to wait for its value. With at most 24 bytes of
    /// captures, and a value of at most 32 bytes, it allocates nothing once warm.
    ///
    /// # Errors
    /// As [`post`](Self::post); `Full` from outside too, while there are `max_handles` such tasks.
    #[inline]
    pub fn submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.lane(Lane::Normal).submit(work)
    }

    /// As [`submit`](Self::submit), and never waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    #[inline]
    pub fn try_submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.lane(Lane::Normal).try_submit(work)
    }

    /// Posts everything that `work` yields, up to 32 closures by one compare-exchange.
    ///
    /// # Errors
    /// [`Rejected`] holds an iterator over what was not accepted; all before it was.
    #[inline]
    pub fn post_batch<I, F>(&self, work: I) -> Result<(), Rejected<Unposted<I::IntoIter, F>>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() + Send + 'static,
    {
        self.lane(Lane::Normal).post_batch(work)
    }

    /// The same ways in, for another lane than `Normal`.
    #[inline]
    pub fn lane(&self, lane: Lane) -> LaneRef<'_> {
        LaneRef { pool: self, lane }
    }
}

/// One lane of a pool; see [`Pool::lane`].
#[derive(Clone, Copy, Debug)]
pub struct LaneRef<'a> {
    pool: &'a Pool,
    lane: Lane,
}

impl LaneRef<'_> {
    pub(super) fn parts(&self) -> (&Pool, Lane) {
        (self.pool, self.lane)
    }

    /// See [`Pool::post`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.pool.shared().post(self.lane, work)
    }

    /// See [`Pool::try_post`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn try_post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.pool.shared().try_post(self.lane, work)
    }

    /// See [`Pool::submit`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = self.pool.shared();
        submit_by(shared, work, |work| shared.post(self.lane, work))
    }

    /// See [`Pool::try_submit`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn try_submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = self.pool.shared();
        submit_by(shared, work, |work| shared.try_post(self.lane, work))
    }

    /// See [`Pool::post_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn post_batch<I, F>(&self, work: I) -> Result<(), Rejected<Unposted<I::IntoIter, F>>>
    where
        I: IntoIterator<Item = F>,
        F: FnOnce() + Send + 'static,
    {
        let shared = self.pool.shared();
        let inside = shared.is_inside();
        let mut rest = work.into_iter();
        let mut staged = Staged::new();
        loop {
            if staged.len() == 0 {
                staged.fill(&mut rest);
            }
            if staged.len() == 0 {
                return Ok(());
            }
            let mut pushed = shared.push_staged(self.lane, &mut staged, inside);
            if matches!(pushed, Err(Rejected::Full((), _))) && !inside {
                let room = shared.rooms.of(self.lane);
                pushed = room.retry_until(Deadline::NEVER, (), |()| {
                    shared.push_staged(self.lane, &mut staged, false)
                });
            }
            if let Err(rejected) = pushed {
                shared.counters.count_rejected(());
                return Err(rejected.map(|()| Unposted { staged, rest }));
            }
        }
    }
}

#[cfg(feature = "capi")]
impl LaneRef<'_> {
    /// As `post_batch`, of `count` closures that are made where they will lie; of a failure, how many
    /// were not taken. `make` is called once for each that is, and must be as `Shared::push_made` says.
    pub(crate) fn post_made<F>(
        &self,
        count: usize,
        mut make: impl FnMut() -> F,
    ) -> Result<(), Rejected<usize>>
    where
        F: FnOnce() + Send + 'static,
    {
        let shared = self.pool.shared();
        let inside = shared.is_inside();
        let mut left = count;
        let mut pushed = shared.push_made(self.lane, &mut left, inside, &mut make);
        if matches!(pushed, Err(Rejected::Full((), _))) && !inside {
            let room = shared.rooms.of(self.lane);
            pushed = room.retry_until(Deadline::NEVER, (), |()| {
                shared.push_made(self.lane, &mut left, false, &mut make)
            });
        }
        pushed.map_err(|rejected| {
            shared.counters.count_rejected(());
            rejected.map(|()| left)
        })
    }
}

/// What a batch could not post, in order. It is an iterator over the closures.
pub struct Unposted<I, F> {
    staged: Staged<F>,
    rest: I,
}

impl<I: Iterator<Item = F>, F> Iterator for Unposted<I, F> {
    type Item = F;

    fn next(&mut self) -> Option<F> {
        self.staged.next().or_else(|| self.rest.next())
    }
}

impl<I, F> fmt::Debug for Unposted<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unposted(..)")
    }
}
