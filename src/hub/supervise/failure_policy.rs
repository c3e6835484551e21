//! What is known of a subscription besides its mailbox: its filter, and how its failures are dealt with.
//!
//! Most subscriptions need none of it. It is made with them if they are given settings, and else at their
//! first failure.

use crate::error::{Error, Result};
use crate::hub::filter::Filter;
use crate::hub::mailbox::entry::Tried;
use crate::hub::mailbox::failure::Failure;
use crate::hub::message::Stored;
use crate::hub::supervise::supervisor::{
    Decision, FailedAttempt, Intensity, OnFailure, RestartDecision, Supervisor,
};
use crate::hub::system::notice::Burst;
use crate::metrics::{Histogram, Unit};
use crate::pool::contain;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sys::clock;
use core::time::Duration;
use std::sync::Arc;

/// A restart of a handler, as `on_restart` is told of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Restart<'a> {
    /// Why: what the handler panicked with. None when another of its supervisor panicked, or after a
    /// suspension.
    pub failure: Option<&'a str>,
    /// How often this subscription was restarted, this time included.
    pub count: u64,
}

type OnRestart = dyn Fn(&Restart<'_>) + Send + Sync;

/// What a subscription is given to deal with failures.
#[derive(Default)]
pub(in crate::hub) struct FailureSettings {
    pub(in crate::hub) filter: Option<Filter>,
    pub(in crate::hub) on_failure: OnFailure,
    pub(in crate::hub) intensity: Option<Intensity>,
    pub(in crate::hub) supervisor: Option<Supervisor>,
    pub(in crate::hub) on_restart: Option<Arc<OnRestart>>,
    /// Set at each restart, if a factory makes the handler anew.
    pub(in crate::hub) stale: Option<Arc<AtomicBool>>,
    pub(in crate::hub) measured: bool,
}

impl FailureSettings {
    /// `can_wait`: there is a mailbox in which a message can wait for its next attempt.
    pub(in crate::hub) fn check(&self, whose: HandlerOf, can_wait: bool) -> Result<()> {
        self.on_failure.check()?;
        let allowed = match whose {
            HandlerOf::Hub => None,
            HandlerOf::Host
                if self.on_failure == OnFailure::default() && !self.tells_restarts() =>
            {
                None
            }
            HandlerOf::Host => {
                Some("left out, but for restarts: the host itself tries messages again")
            }
            HandlerOf::Nobody if self.is_unsupervised() => None,
            HandlerOf::Nobody => {
                Some("left out: a mailbox that is pulled has no handler that could fail")
            }
        };
        if let Some(allowed) = allowed {
            return Err(Error::invalid("supervision", "set", allowed));
        }
        if self.on_failure.has_retries() && !can_wait {
            let allowed = "without retries: an execution other than Serial and Concurrent has no \
                           place to wait for them";
            return Err(Error::invalid("on_failure", "with retries", allowed));
        }
        if self.intensity.is_some() && self.supervisor.is_some() {
            let allowed = "not set beside a supervisor, which has its own";
            return Err(Error::invalid("intensity", "set", allowed));
        }
        Ok(())
    }

    fn is_plain(&self) -> bool {
        self.filter.is_none() && self.is_unsupervised() && !self.is_measured()
    }

    fn is_measured(&self) -> bool {
        self.measured
    }

    fn is_unsupervised(&self) -> bool {
        self.on_failure == OnFailure::default()
            && self.intensity.is_none()
            && self.supervisor.is_none()
            && !self.tells_restarts()
    }

    fn tells_restarts(&self) -> bool {
        self.on_restart.is_some() || self.stale.is_some()
    }
}

/// Who runs a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum HandlerOf {
    Hub,
    /// The host of an acknowledged mailbox.
    Host,
    Nobody,
}

/// See the head of the file.
pub(in crate::hub) struct FailurePolicy {
    settings: FailureSettings,
    supervisor: Supervisor,
    /// The supervisor's epoch that the handler knows.
    seen: AtomicU64,
    restarts: AtomicU64,
    /// Messages that did not pass the filter, and those of which its predicate panicked.
    filtered: AtomicU64,
    filter_panics: AtomicU64,
    /// Of losses by a full mailbox.
    burst: Burst,
    measured: Option<Measured>,
}

/// How long messages wait, and how long the handler takes for one.
struct Measured {
    latency: Histogram,
    handling: Histogram,
}

/// A call of a handler: measures, if that is wanted, how long it takes until this is dropped.
pub(in crate::hub) struct Handling<'a> {
    times: Option<(&'a Histogram, u64)>,
}

impl Drop for Handling<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((times, began)) = self.times {
            times.record(clock::now().saturating_sub(began));
        }
    }
}

/// What is to be done about a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum After {
    /// The message is delivered once more after this delay.
    Retry(Duration),
    /// It has become a dead letter.
    Dead,
    /// It is dropped.
    Discard,
    /// It has become a dead letter, and so do all others: the subscription is suspended.
    Suspend,
}

impl FailurePolicy {
    /// None if there is nothing to be kept.
    pub(in crate::hub) fn new(settings: FailureSettings) -> Result<Option<Box<Self>>> {
        if settings.is_plain() {
            Ok(None)
        } else {
            Self::with(settings).map(|policy| Some(Box::new(policy)))
        }
    }

    pub(in crate::hub) fn with(settings: FailureSettings) -> Result<Self> {
        let supervisor = match &settings.supervisor {
            Some(supervisor) => supervisor.clone(),
            None => Supervisor::own(settings.intensity.unwrap_or_default())?,
        };
        Ok(Self {
            measured: settings.measured.then(|| Measured {
                latency: Histogram::new(Unit::Time),
                handling: Histogram::coarse(Unit::Time),
            }),
            settings,
            seen: AtomicU64::new(supervisor.epoch()),
            supervisor,
            restarts: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            filter_panics: AtomicU64::new(0),
            burst: Burst::default(),
        })
    }

    pub(in crate::hub) fn of_default() -> Box<Self> {
        let policy = Self::with(FailureSettings::default());
        Box::new(policy.unwrap_or_else(|_| unreachable!("the default intensity is in its range")))
    }

    pub(in crate::hub) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub(in crate::hub) fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// A message that was published at this time, in nanoseconds since 1970, comes to its handler.
    #[inline]
    pub(in crate::hub) fn measure(&self, published: u64) {
        if let Some(measured) = &self.measured {
            measured.latency.record(clock::unix_nanos().saturating_sub(published));
        }
    }

    /// The handler is called with it.
    #[inline]
    pub(in crate::hub) fn handle(&self) -> Handling<'_> {
        Handling {
            times: self.measured.as_ref().map(|measured| (&measured.handling, clock::now())),
        }
    }

    pub(in crate::hub) fn is_measured(&self) -> bool {
        self.measured.is_some()
    }

    pub(in crate::hub) fn latency(&self) -> Option<crate::metrics::Distribution> {
        self.measured.as_ref().map(|measured| measured.latency.snapshot())
    }

    pub(in crate::hub) fn handling(&self) -> Option<crate::metrics::Distribution> {
        self.measured.as_ref().map(|measured| measured.handling.snapshot())
    }

    pub(in crate::hub) fn burst(&self) -> &Burst {
        &self.burst
    }

    pub(in crate::hub) fn filtered(&self) -> u64 {
        self.filtered.load(Relaxed)
    }

    pub(in crate::hub) fn filter_panics(&self) -> u64 {
        self.filter_panics.load(Relaxed)
    }

    pub(in crate::hub) fn has_filter(&self) -> bool {
        self.settings.filter.is_some()
    }

    /// Whether a message comes into the mailbox.
    pub(in crate::hub) fn passes(&self, message: &Stored) -> bool {
        let Some(filter) = &self.settings.filter else { return true };
        let passes = filter.passes(message, &clock::now);
        if passes != Some(true) {
            self.filtered.fetch_add(1, Relaxed);
        }
        if passes.is_none() {
            self.filter_panics.fetch_add(1, Relaxed);
        }
        passes == Some(true)
    }

    /// Restarts the handler, if others of its supervisor have failed, or it was suspended. Whether it did.
    #[inline]
    pub(in crate::hub) fn catch_up(&self) -> bool {
        let epoch = self.supervisor.epoch();
        let is_late = self.seen.load(Relaxed) != epoch;
        if is_late {
            self.seen.store(epoch, Relaxed);
            self.restarted(None);
        }
        is_late
    }

    /// Has the handler restarted before its next message.
    pub(in crate::hub) fn restart_later(&self) {
        self.seen.store(u64::MAX, Relaxed);
    }

    #[cold]
    fn restarted(&self, failure: Option<&str>) -> u64 {
        let count = self.restarts.fetch_add(1, Relaxed) + 1;
        if let Some(stale) = &self.settings.stale {
            stale.store(true, Relaxed);
        }
        if let Some(on_restart) = &self.settings.on_restart {
            let _panicked = contain(|| on_restart(&Restart { failure, count }));
            crate::log::faults::note_told();
        }
        count
    }

    /// The handler has failed at a message at `now`. If it was restarted: how often by now.
    pub(in crate::hub) fn judge(
        &self,
        seed: u64,
        tried: &mut Tried,
        failure: &Failure,
        now: u64,
    ) -> (Decision, Option<u64>) {
        tried.attempts += 1;
        let failed = FailedAttempt {
            attempts: tried.attempts,
            elapsed: now.saturating_sub(tried.first),
            is_panic: failure.is_panic(),
            is_permanent: failure.is_permanent(),
            retry_after: failure.asked_delay(),
        };
        let decision = self.settings.on_failure.judge(&failed, seed);
        if !failed.is_panic {
            return (decision, None);
        }
        match self.crashed(failure.message(), now) {
            Some(count) => (decision, Some(count)),
            None => (Decision::Suspend, None),
        }
    }

    /// The handler is restarted, how often by now; None: it, and all others of its supervisor, are to be suspended.
    pub(in crate::hub) fn crashed(&self, failure: &str, now: u64) -> Option<u64> {
        let mut seen = self.seen.load(Relaxed);
        match self.supervisor.restart(now, &mut seen) {
            RestartDecision::Restart => {
                self.seen.store(seen, Relaxed);
                Some(self.restarted(Some(failure)))
            }
            RestartDecision::Suspend | RestartDecision::Suspended => None,
        }
    }
}
