//! Host threads: taking part for a while, and a descriptor for hosts with a loop of their own.

use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::pool::context;
use crate::pool::deadline::Deadline;
use crate::pool::shared::Shared;
use crate::pool::worker::Worker;
use crate::sync::atomic::Ordering::AcqRel;
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

impl Pool {
    /// Makes the calling thread a member of the pool for `time`: it leads, follows and runs handlers
    /// as the pool's own threads do. Returns how many handlers and tasks it has run. It returns when the time is over and
    /// the handler that runs then has returned. With a time of zero it runs what is ready when it is called, for up to one
    /// turn ([`Builder::max_turn`](crate::Builder::max_turn)); what is left is for the next call. The thread is not pinned.
    ///
    /// # Errors
    /// [`Error::Full`] when `max_joined` host threads are here already, [`Error::Invalid`] inside a
    /// handler, [`Error::ShutDown`], [`Error::Forked`].
    pub fn join(&self, time: Duration) -> Result<u64> {
        join(self.shared(), time)
    }

    /// A descriptor that becomes readable when there is something to do, for hosts that wait in a
    /// loop of their own and then call [`join`](Self::join) with a time of zero. Never read it.
    /// It belongs to the pool. For a pool of no threads and one handle set.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pool has threads of its own or a source without descriptors.
    pub fn pollable(&self) -> Result<BorrowedFd<'_>> {
        let shared = self.shared();
        shared.check_open()?;
        if shared.ready.members.threads > 0 {
            let allowed = "0 for a pool that a host polls";
            return Err(Error::invalid("threads", shared.ready.members.threads, allowed));
        }
        pollable(shared)
    }

    /// The page, statistics and health call by this name what a host thread handles outside the pool, of what a wait at a
    /// completion queue has brought it, until it waits again. `thread` is the kernel's number of the thread
    /// (`gettid`), 0 for the calling one. Any thread may call this, so that a host can name what it handles when
    /// somebody looks. An empty name: none. Names are kept for as long as the process; there is room for some 4,000.
    ///
    /// # Errors
    /// [`Error::Stale`] if the thread is no host of this pool, or handles nothing; [`Error::ShutDown`], [`Error::Forked`].
    pub fn name_host(&self, thread: u32, name: &str) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        match shared.ready.members.name_host(thread, name) {
            true => Ok(()),
            false => Err(Error::Stale { what: "host thread's work" }),
        }
    }
}

#[cfg(feature = "capi")]
impl Pool {
    /// See [`wait_for`].
    pub(crate) fn wait_for(
        &self,
        time: Option<Duration>,
        ended: impl FnMut(Option<Duration>) -> Result<bool>,
    ) -> Result<bool> {
        wait_for(self.shared(), time, ended)
    }
}

/// Waits for what the pool is to bring about, until `ended`, which waits for up to the time that it is given, says so. In
/// a pool without threads of its own this thread takes part meanwhile, since it may be the only one.
pub(crate) fn wait_for(
    shared: &Arc<Shared>,
    time: Option<Duration>,
    mut ended: impl FnMut(Option<Duration>) -> Result<bool>,
) -> Result<bool> {
    /// After this it looks again at what is ready.
    const LOOK_AGAIN: Duration = Duration::from_millis(1);
    if shared.places.ordinary() > 0 || crate::thread_state::is_member() {
        return ended(time);
    }
    let deadline = Deadline::after(time);
    while !ended(Some(Duration::ZERO))? {
        if deadline.is_over() {
            return Ok(false);
        }
        // If there is no place, others are there. If the pool has ended, so has what is waited for.
        let _ran = join(shared, Duration::ZERO);
        let step = deadline.left().map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN));
        if ended(Some(step))? {
            break;
        }
    }
    Ok(true)
}

fn join(shared: &Arc<Shared>, time: Duration) -> Result<u64> {
    shared.check_open()?;
    if crate::thread_state::is_member() {
        let allowed = "called by a thread that is not in a pool";
        return Err(Error::invalid("join", "called inside a handler", allowed));
    }
    shared.hosts.others.fetch_add(1, AcqRel);
    let ran = take_part(shared, time, |mut worker| {
        if time.is_zero() {
            worker.run_ready()
        } else {
            worker.run()
        };
        worker.ran()
    });
    shared.hosts.others.fetch_sub(1, AcqRel);
    ran
}

/// See [`Pool::pollable`].
pub(crate) fn pollable(shared: &Shared) -> Result<BorrowedFd<'_>> {
    let Some(fd) = shared.ready.handles.sets[0].source.pollable() else {
        return Err(Error::invalid("source", "without descriptors", "epoll"));
    };
    shared.alarm.want();
    shared.refresh_alarm();
    Ok(fd)
}

/// Makes the calling thread a member for `time`.
pub(crate) fn take_part<'a, R>(
    shared: &'a Arc<Shared>,
    time: Duration,
    part: impl FnOnce(Worker<'a>) -> R,
) -> Result<R> {
    let capacity = shared.ready.members.len() - shared.ready.members.threads;
    let member = shared
        .ready
        .members
        .take_for_host(shared.fork_guard())
        .ok_or(Error::Full { what: "places for host threads", capacity })?;
    let until = shared.now().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    shared.ready.members.arrive();
    // Until it has left: destructors that run while this thread sweeps up are inside.
    let _member = context::enter(shared, member);
    // One less than "never leaves", which is for the pool's own threads.
    let result = part(Worker::new(shared, member, until.min(u64::MAX - 1)));
    shared.refresh_alarm();
    shared.leave();
    Ok(result)
}
