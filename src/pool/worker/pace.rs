//! How long the handlers of one thread take.

use crate::pool::ready::ReadyWork;
use crate::sys::thread::{self, Usage};

/// The clock is read once per so many handlers, and what they may amount to: a read costs 20 to 40 ns, which is nothing
/// beside a handler of ten microseconds, and much beside one of ten nanoseconds. If quick handlers become slow at once,
/// a turn (`pool/turn.rs`) ends late by so many of them.
const CLOCK_EVERY: (u64, u64) = (1, 32);
const CLOCK_WITHIN: u64 = 16_000;

/// Handlers between two polls while work is queued, and what they may amount to: a queue that never
/// runs empty must not starve descriptors and timers, and a poll (about 400 ns) must not cost more
/// than what is handled between two.
const POLL_EVERY: (u64, u64) = (32, 1024);
const POLL_WITHIN: u64 = 20_000;
/// The most tasks that one claim takes, and what they may amount to.
const CLAIM: (u64, u64) = (1, 64);
const CLAIM_WITHIN: u64 = 20_000;

/// One thread's measure of its handlers. No clock is read per handler.
///
/// # Slow, or only held up?
///
/// Handlers that took longer than they should have may have slept, or burned CPU, or they were quick
/// and the scheduler gave the thread's CPU to another. The watch must be fine for the first two;
/// after the third it would only make things worse, because it calls another thread to a machine
/// that is busy already. The clock cannot tell, so a first such reading is a *suspicion*: for a
/// while the kernel's counts for this thread are read with the clock, and a second one is confirmed by
/// CPU time or by a switch that the thread itself asked for. (Without this, two busy cores kept the
/// watch fine all the time, at 12% more CPU per echo.)
pub(crate) struct Pace {
    read_at: u64,
    handled: u32,
    /// Moving average of a handler's time, in nanoseconds.
    average: u64,
    poll_every: u32,
    /// So many handlers run between two looks at the clock.
    clock_every: u32,
    claim: u32,
    suspects_until: u64,
    /// The kernel's counts some moments ago, while there is a suspicion.
    usage: Option<Usage>,
    usage_at: u64,
}

/// How long a suspicion lasts.
const SUSPECT_FOR: u64 = 50_000_000;
/// How old the kernel's counts may be then: reading them costs 0.3 µs.
const USAGE_FRESH: u64 = 500_000;
/// No thread sleeps and comes back within this time.
const SHORTEST_SLEEP: u64 = 1_000;

impl Pace {
    pub(crate) fn new(now: u64) -> Self {
        let mut pace = Self {
            read_at: now,
            handled: 0,
            average: 0,
            poll_every: 0,
            clock_every: 0,
            claim: 0,
            suspects_until: 0,
            usage: None,
            usage_at: 0,
        };
        // Before anything was measured: an ordinary socket handler. The first one is measured alone.
        pace.set_average(4_000);
        pace.clock_every = 1;
        pace
    }

    #[inline]
    pub(crate) fn handled(&mut self) {
        self.handled += 1;
    }

    #[inline]
    pub(crate) fn clock_is_due(&self) -> bool {
        self.handled >= self.clock_every
    }

    /// Takes `now` into account: what has passed since the last reading went into the handlers that
    /// were counted, because the clock is also read before every wait and after it.
    pub(crate) fn read_clock(&mut self, ready: &ReadyWork, now: u64) {
        ready.ageing.note_time(now, &ready.tasks);
        let before = core::mem::replace(&mut self.read_at, now);
        let passed = now.saturating_sub(before);
        let handled = u64::from(core::mem::take(&mut self.handled));
        if handled > 0 {
            let limit = handled * self.average + ready.watchdog.fine_period;
            if passed > limit {
                self.suspect(ready, before, now, limit);
            }
            // One slow handler must not pass for a change of the average; many double it each time.
            let sample = (passed / handled).min(2 * self.average + 200);
            self.set_average((7 * self.average + sample) / 8);
        }
        if self.suspects_until != 0 {
            self.refresh_usage(now, handled == 0 && passed > SHORTEST_SLEEP);
        }
    }

    /// While there is a suspicion, keeps the kernel's counts fresh: after every sleep, whose switches
    /// are no handler's, and often enough in between.
    #[cold]
    fn refresh_usage(&mut self, now: u64, slept: bool) {
        if now >= self.suspects_until {
            self.suspects_until = 0;
            self.usage = None;
        } else if slept || now >= self.usage_at + USAGE_FRESH {
            self.usage = Some(thread::usage());
            self.usage_at = now;
        }
    }

    /// The handlers since `from` took longer than `limit`.
    #[cold]
    fn suspect(&mut self, ready: &ReadyWork, from: u64, now: u64, limit: u64) {
        self.suspects_until = now + SUSPECT_FOR;
        if let Some(before) = self.usage {
            let usage = thread::usage();
            // No more than this can have gone into those before them.
            let earlier = from.saturating_sub(self.usage_at);
            if confirms(before, usage, limit + earlier) {
                ready.watchdog.saw_slow(now);
            }
            (self.usage, self.usage_at) = (Some(usage), now);
        }
    }

    fn set_average(&mut self, average: u64) {
        self.average = average.max(1);
        self.clock_every = (CLOCK_WITHIN / self.average).clamp(CLOCK_EVERY.0, CLOCK_EVERY.1) as u32;
        self.poll_every = (POLL_WITHIN / self.average).clamp(POLL_EVERY.0, POLL_EVERY.1) as u32;
        self.claim = (CLAIM_WITHIN / self.average).clamp(CLAIM.0, CLAIM.1) as u32;
    }

    /// What `count` handlers are likely to take, in nanoseconds.
    #[inline]
    pub(crate) fn expected(&self, count: u64) -> u64 {
        count * self.average
    }

    #[inline]
    pub(crate) fn poll_every(&self) -> u32 {
        self.poll_every
    }

    #[inline]
    pub(crate) fn claim(&self) -> usize {
        self.claim as usize
    }
}

/// Whether a thread has slept between these counts, or used more CPU time than it should have: it was not
/// held up only. (The kernel may correct the time downwards.)
fn confirms(before: Usage, now: Usage, most: u64) -> bool {
    now.voluntary_switches > before.voluntary_switches || now.cpu.saturating_sub(before.cpu) > most
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn usage(cpu: u64, voluntary_switches: u64) -> Usage {
        Usage { cpu, voluntary_switches }
    }

    /// CPU time up to what was due, and being held up by others, prove nothing.
    #[test]
    fn a_suspicion_is_confirmed_by_sleep_or_by_time_on_a_cpu() {
        let before = usage(1_000, 5);
        assert!(!confirms(before, usage(1_000, 5), 0), "held up for as long as one likes");
        assert!(!confirms(before, usage(1_300, 5), 300));
        assert!(confirms(before, usage(1_301, 5), 300));
        assert!(confirms(before, usage(1_000, 6), 300));
        assert!(!confirms(before, usage(900, 5), 0), "the kernel has corrected itself");
    }
}
