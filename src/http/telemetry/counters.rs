//! Where requests are counted.
//!
//! Each thread counts in a place of its own, if there are not many of them: two threads that count in the same
//! line would wait for each other with every request, and one alone needs no locked instruction.

use super::stats::{Aborted, Answered, HttpStats, Refused};
use crate::http::message::refusal::Refusal;
use crate::net::{Reason, ServerStats};
use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use core::cell::Cell;

/// Why there was no whole answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Abort {
    Disconnected,
    TimedOut,
    Unfinished,
    Closed,
    CutOff,
}

impl Abort {
    pub(crate) fn by(reason: Reason) -> Self {
        match reason {
            Reason::TimedOut(_) => Self::TimedOut,
            Reason::Local | Reason::Aborted | Reason::Refused | Reason::Panicked => Self::Closed,
            Reason::Drained | Reason::CutOff | Reason::PoolEnded => Self::CutOff,
            _ => Self::Disconnected,
        }
    }
}

/// All but the last are of one thread each, which needs no read-modify-write to count there. Threads beyond
/// those count in the last one.
const SHARDS: usize = 16;
const SHARED: usize = SHARDS - 1;

/// Shards that belong to a thread, as bits. Not one of loom's: it decides nothing there.
static TAKEN: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Gives it back when the thread ends.
    static LEASE: Lease = Lease::take();
}

struct Lease(usize);

impl Lease {
    fn take() -> Self {
        // Acquire: pairs with the Release of whoever gives it back, so that its last counts are seen.
        let taken = TAKEN.fetch_update(core::sync::atomic::Ordering::Acquire, Relaxed, |taken| {
            let free = taken.trailing_ones();
            (free < SHARED as u32).then_some(taken | 1 << free)
        });
        Self(taken.map_or(SHARED, |before| before.trailing_ones() as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        SHARD.set(SHARED);
        if self.0 < SHARED {
            TAKEN.fetch_and(!(1 << self.0), core::sync::atomic::Ordering::Release);
        }
    }
}

/// The calling thread's place.
#[inline]
fn shard() -> usize {
    match SHARD.get() {
        usize::MAX => new_shard(),
        shard => shard,
    }
}

#[cold]
fn new_shard() -> usize {
    let shard = LEASE.try_with(|lease| lease.0).unwrap_or(SHARED);
    SHARD.set(shard);
    shard
}

#[derive(Default)]
struct Shard {
    /// Begun, and answered with success in the same run: both in one count.
    served: AtomicU64,
    /// Others that begun.
    begun: AtomicU64,
    answered: [AtomicU64; 5],
    refused: [AtomicU64; Refusal::COUNT],
    aborted: [AtomicU64; 5],
    panics: AtomicU64,
}

/// Where [`Answered::successful`] is counted.
const SUCCESSFUL: usize = 1;

/// What happens to most requests.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) begun: u32,
    pub(crate) successful: u32,
}

#[derive(Default)]
pub(crate) struct Counters {
    shards: [CachePadded<Shard>; SHARDS],
}

impl Counters {
    #[inline(always)] // As `add`.
    fn add_to(&self, counter: impl FnOnce(&Shard) -> &AtomicU64, count: u32) {
        let shard = shard();
        let counter = counter(&self.shards[shard]);
        if shard == SHARED {
            counter.fetch_add(count.into(), Relaxed);
        } else {
            // Nobody else writes there.
            counter.store(counter.load(Relaxed) + u64::from(count), Relaxed);
        }
    }

    pub(crate) fn begun(&self) {
        self.add_to(|here| &here.begun, 1);
    }

    /// What a connection has counted for itself.
    #[inline(always)] // It is a few instructions of each request.
    pub(crate) fn add(&self, tally: Tally) {
        if tally.begun != tally.successful {
            self.add_unequal(tally);
        } else if tally.begun > 0 {
            self.add_to(|here| &here.served, tally.begun);
        }
    }

    #[inline(never)]
    fn add_unequal(&self, tally: Tally) {
        let Tally { begun, successful } = tally;
        let served = begun.min(successful);
        self.add_to(|here| &here.served, served);
        self.add_to(|here| &here.begun, begun - served);
        self.add_to(|here| &here.answered[SUCCESSFUL], successful - served);
    }

    pub(crate) fn answered(&self, status: u16) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.add_to(|here| &here.answered[class], 1);
    }

    pub(crate) fn refused(&self, refusal: Refusal) {
        self.add_to(|here| &here.refused[refusal as usize], 1);
    }

    pub(crate) fn aborted(&self, abort: Abort) {
        self.add_to(|here| &here.aborted[abort as usize], 1);
    }

    pub(crate) fn panicked(&self) {
        self.add_to(|here| &here.panics, 1);
    }

    pub(crate) fn stats(&self, in_work: usize, server: ServerStats) -> HttpStats {
        let sum = |of: &dyn Fn(&Shard) -> &AtomicU64| {
            self.shards.iter().map(|shard| of(shard).load(Relaxed)).sum::<u64>()
        };
        let served = sum(&|shard| &shard.served);
        let answered = |class: usize| sum(&|shard| &shard.answered[class]);
        let refused = |refusal: Refusal| sum(&|shard| &shard.refused[refusal as usize]);
        let aborted = |abort: Abort| sum(&|shard| &shard.aborted[abort as usize]);
        HttpStats {
            begun: sum(&|shard| &shard.begun) + served,
            answered: Answered {
                upgraded: answered(0),
                successful: answered(SUCCESSFUL) + served,
                redirected: answered(2),
                client_errors: answered(3),
                server_errors: answered(4),
            },
            refused: Refused {
                bad_request: refused(Refusal::BadRequest),
                not_found: refused(Refusal::NotFound),
                method_not_allowed: refused(Refusal::MethodNotAllowed),
                timed_out: refused(Refusal::Timeout),
                body_too_large: refused(Refusal::BodyTooLarge),
                target_too_long: refused(Refusal::TargetTooLong),
                expectation: refused(Refusal::Expectation),
                head_too_large: refused(Refusal::HeadTooLarge),
                panicked: refused(Refusal::Panicked),
                unanswered: refused(Refusal::Unanswered),
                not_implemented: refused(Refusal::NotImplemented),
                busy: refused(Refusal::Busy),
                version: refused(Refusal::Version),
            },
            aborted: Aborted {
                disconnected: aborted(Abort::Disconnected),
                timed_out: aborted(Abort::TimedOut),
                unfinished: aborted(Abort::Unfinished),
                closed: aborted(Abort::Closed),
                cut_off: aborted(Abort::CutOff),
            },
            in_work,
            panics: sum(&|shard| &shard.panics),
            server,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use std::thread;

    /// Goal: no count is lost, whether a thread has a place of its own, or one that another had, or shares one.
    /// Method: more threads at once than there are places, and again when those have gone.
    #[test]
    fn every_thread_counts() {
        const THREADS: u32 = 2 * SHARDS as u32;
        const EACH: u32 = 100_000;
        let (counters, all) =
            (Arc::new(Counters::default()), Arc::new(Barrier::new(THREADS as usize)));
        for round in 1..=3 {
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        counters.begun();
                        all.wait();
                        (1..EACH).for_each(|_| counters.begun());
                    });
                }
            });
            let begun = counters.stats(0, ServerStats::default()).begun;
            assert_eq!(begun, u64::from(round * THREADS * EACH));
        }
    }
}
