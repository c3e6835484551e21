//! Event sources: what a leader waits on.
//!
//! # The contract
//!
//! A [`Source`] belongs to one handle set. It holds registrations, each a descriptor with a *token*
//! that the pool chose, and a doorbell for everything that no descriptor announces. Every backend
//! keeps these promises, and the pool relies on nothing else:
//!
//! 1. **Tokens come back as they were given**, and the source never looks into them. A harvest may
//!    hold a token whose descriptor has been deregistered since; telling it from the slot's next
//!    tenant is the pool's business (the token carries a generation).
//! 2. **Edge-triggered** registrations report each change once. Whatever is ready at registration is
//!    a change. Several changes may be reported as one, but never as none.
//! 3. **Level-triggered** registrations report once and are disarmed by it, until `rearm`; whatever is
//!    ready then is reported again. So one readiness is never in two threads' hands.
//! 4. Errors and hang-ups are reported whatever the interest.
//! 5. `register`, `rearm`, `deregister` and `ring` may be called by any thread at any time, also
//!    while the leader waits, and take effect on that wait. After `deregister` has returned, no wait
//!    that *begins* later reports the token, even if the file stays open through a duplicate. So
//!    deregister before closing.
//! 6. `wait` is called by the set's leader only: the pool's `Leadership` is the evidence, and here the
//!    set's one [`Events`] buffer is. It returns when there are events, when the bell was rung, after
//!    the time-out, which is never cut short, or at once on a signal, with nothing. It allocates
//!    nothing. A time-out of 0 looks and does not wait; `None` is for ever.
//! 7. `wait_until` ends at an instant of the source's clock. A clock that a test turns may be turned by an
//!    hour between the caller's look at it and the wait: the wait ends all the same.
//! 8. A wait that may block stands between `arm` and `disarm` (see [`doorbell`]). With a
//!    time-out of 0 neither is needed.
//!
//! Nothing in this says that an event *is* readiness of a descriptor: a completion (io_uring) is a
//! token with other flags, and fits.

mod clock;
pub(crate) mod doorbell;
mod epoll;
mod events;
mod ready;
mod ring;
mod scripted;
mod scripted_io;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use clock::Clock;
pub(crate) use events::Events;
pub use ready::{Interest, Ready};
pub use scripted::{ScriptedCall, ScriptedSource};
pub use scripted_io::ScriptedIo;

use crate::sys::fd::is_any_readable;
use doorbell::Doorbell;
use epoll::EpollSource;
use ring::RingSource;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The token that a source uses for its own bell; no registration may have it.
const OWN_TOKEN: u64 = u64::MAX;

/// One handle set's event source: the place where the backend is chosen.
pub(crate) enum Source {
    Epoll(EpollSource),
    Ring(RingSource),
    Scripted(ScriptedSource),
}

impl Source {
    /// Linux descriptors. Fails when the process or the system is out of descriptors.
    pub(crate) fn epoll() -> io::Result<Self> {
        EpollSource::new().map(Self::Epoll)
    }

    /// No descriptors, and no system call while there is work.
    pub(crate) fn in_memory() -> Self {
        Self::Ring(RingSource::new())
    }

    /// Whatever the script says, when the test's clock says so. One set only.
    pub(crate) fn scripted(script: &ScriptedSource) -> Self {
        Self::Scripted(script.clone())
    }

    /// The clock that this source's time-outs are measured by.
    pub(crate) fn clock(&self) -> Clock {
        match self {
            Self::Epoll(_) | Self::Ring(_) => Clock::Monotonic,
            Self::Scripted(script) => Clock::Manual(script.clone()),
        }
    }

    /// Watches `fd`, edge-triggered, or `level`-triggered and disarmed by each event.
    ///
    /// Fails with `AlreadyExists` if it is watched already, `PermissionDenied` if such a file cannot
    /// be watched, `Unsupported` if this source has no descriptors, or when a limit is reached.
    pub(crate) fn register(
        &self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        level: bool,
    ) -> io::Result<()> {
        debug_assert_ne!(token, OWN_TOKEN);
        match self {
            Self::Epoll(source) => source.register(fd, token, interest, level),
            Self::Ring(_) => Err(RingSource::refusal()),
            Self::Scripted(source) => source.register(fd.as_raw_fd(), token, interest, level),
        }
    }

    /// Arms a level-triggered registration again. The descriptor must still be the registered one;
    /// it may be a plain number, since the pool keeps no borrow of what its handles own.
    pub(crate) fn rearm(&self, fd: impl AsRawFd, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Epoll(source) => source.rearm(fd.as_raw_fd(), token, interest),
            Self::Ring(_) => Err(RingSource::refusal()),
            Self::Scripted(source) => source.rearm(fd.as_raw_fd(), token, interest),
        }
    }

    /// Stops watching `fd`. `NotFound` if it is not watched.
    pub(crate) fn deregister(&self, fd: impl AsRawFd) -> io::Result<()> {
        match self {
            Self::Epoll(source) => source.deregister(fd.as_raw_fd()),
            Self::Ring(_) => Err(RingSource::refusal()),
            Self::Scripted(source) => source.deregister(fd.as_raw_fd()),
        }
    }

    /// Waits as the contract says (6, 8), and returns how many events are in `events`: at most `max`
    /// and its capacity. With a `max` of 0 it returns at once. The time-out is in nanoseconds.
    #[inline]
    pub(crate) fn wait(
        &self,
        events: &mut Events,
        max: usize,
        timeout: Option<u64>,
    ) -> io::Result<usize> {
        events.clear();
        if max == 0 {
            return Ok(0);
        }
        match self {
            Self::Epoll(source) => source.wait(events, max, timeout),
            Self::Ring(source) => Ok(source.wait(events, timeout)),
            Self::Scripted(source) => Ok(source.wait(events, max, timeout)),
        }
    }

    /// The same until `deadline`, an instant of the source's clock (contract 7); u64::MAX: for ever. `now` is
    /// what the caller has read from that clock.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        events: &mut Events,
        max: usize,
        now: u64,
        deadline: u64,
    ) -> io::Result<usize> {
        let deadline = (deadline != u64::MAX).then_some(deadline);
        match self {
            Self::Scripted(source) if max > 0 => {
                events.clear();
                Ok(source.wait_until(events, max, deadline))
            }
            // Between the look at the clock and the wait there are some nanoseconds at most that count.
            _ => self.wait(events, max, deadline.map(|deadline| deadline.saturating_sub(now))),
        }
    }

    /// The leader is about to wait: from now on `ring` calls it. The barrier is included. The leader
    /// looks at the queues once more, and then waits or disarms.
    #[inline]
    pub(crate) fn arm(&self) {
        match self {
            Self::Epoll(source) => source.arm(),
            Self::Ring(source) => source.arm(),
            Self::Scripted(source) => source.arm(),
        }
    }

    /// The leader is awake again, or found work after all. True if it was rung. It looks at the
    /// queues next.
    #[inline]
    pub(crate) fn disarm(&self) -> bool {
        self.bell().disarm()
    }

    /// Calls the leader, if it waits and nobody has called it yet. The caller has published its work
    /// and passed a `store_load_barrier`. True if that took a system call.
    #[inline]
    pub(crate) fn ring(&self) -> bool {
        match self {
            Self::Epoll(source) => source.ring(),
            Self::Ring(source) => source.ring(),
            Self::Scripted(source) => source.ring(),
        }
    }

    /// Whether a leader waits here that nobody has called. A hint: it may be stale at once.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.bell().is_armed()
    }

    /// A descriptor for a host's own loop: readable while a wait would bring something. `None` if
    /// this source has no descriptors.
    pub(crate) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Epoll(source) => Some(source.pollable()),
            Self::Ring(_) | Self::Scripted(_) => None,
        }
    }

    /// Whether a wait would bring something now. Takes nothing. A source without descriptors brings nothing by itself; a
    /// script is not asked.
    pub(crate) fn is_readable(&self) -> bool {
        let pollable = self.pollable();
        pollable.is_some_and(|it| is_any_readable([it.as_raw_fd()].into_iter()))
    }

    /// Makes [`pollable`](Self::pollable) readable at `deadline` too (nanoseconds of the monotonic
    /// clock), in place of the deadline before; `None` for none. A wait reports it as a ring.
    pub(crate) fn set_alarm(&self, deadline: Option<u64>) -> io::Result<()> {
        match self {
            Self::Epoll(source) => source.set_alarm(deadline),
            Self::Ring(_) | Self::Scripted(_) => Err(RingSource::refusal()),
        }
    }

    #[inline]
    fn bell(&self) -> &Doorbell {
        match self {
            Self::Epoll(source) => source.bell(),
            Self::Ring(source) => source.bell(),
            Self::Scripted(source) => source.bell(),
        }
    }
}
