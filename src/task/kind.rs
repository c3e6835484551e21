//! A name with its settings and its counters.

use super::attempt::{Attempt, Outcome};
use super::handle::Task;
use super::retry::Retry;
use super::stats::KindStats;
use super::submit::{self, TaskBuilder};
use super::{Common, WorkerPool};
use crate::error::{Error, Rejected, Result};
use crate::queue::Lane;
use crate::time::MAX_DELAY;
use core::fmt;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Times in nanoseconds; u64::MAX: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// From submission to the first attempt.
    pub(crate) queue: u64,
    /// Of each attempt.
    pub(crate) attempt: u64,
    /// From submission to the end.
    pub(crate) overall: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue: u64::MAX, attempt: u64::MAX, overall: u64::MAX }
    }
}

/// What all tasks of a name have unless they say otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) lane: Lane,
    pub(crate) retry: Retry,
    pub(crate) limits: Limits,
}

/// What the tasks of one name share.
pub(crate) struct KindInner {
    name: Arc<str>,
    common: Arc<Common>,
    pub(crate) settings: Settings,
    pub(crate) stats: KindStats,
}

impl KindInner {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    /// What it shares with the other kinds of its worker pool.
    #[inline]
    pub(crate) fn common(&self) -> &Common {
        &self.common
    }
}

/// A task's name with the settings and statistics that all tasks of that name share; see
/// [`WorkerPool::kind`]. Clones are the same.
#[derive(Clone)]
pub struct Kind {
    inner: Arc<KindInner>,
}

impl Kind {
    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// A task with settings of its own, to be submitted.
    pub fn task<F, R>(&self, work: F) -> TaskBuilder<F>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        TaskBuilder::new(Arc::clone(&self.inner), work)
    }

    /// Submits a task with the kind's settings.
    ///
    /// # Errors
    /// As [`TaskBuilder::submit`].
    pub fn submit<F, R>(&self, work: F) -> Result<Task<R::Value>, Rejected<F>>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        self.task(work).submit()
    }

    /// Runs `work` once, in the kind's lane: no handle, no limits, no retries, and it costs what
    /// [`Pool::post`](crate::Pool::post) costs. It is counted in the pool's books, not in the kind's.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    #[inline]
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        submit::post(&self.inner, work)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Settings of a [`Kind`].
#[must_use = "a builder does nothing until `build`"]
pub struct KindBuilder<'a> {
    pool: &'a WorkerPool,
    name: &'a str,
    settings: Settings,
    wrong: Option<Error>,
}

impl<'a> KindBuilder<'a> {
    pub(super) fn new(pool: &'a WorkerPool, name: &'a str) -> Self {
        Self { pool, name, settings: Settings::default(), wrong: None }
    }

    /// Where its tasks queue. Default: [`Lane::Normal`].
    pub fn lane(mut self, lane: Lane) -> Self {
        self.settings.lane = lane;
        self
    }

    /// How failed attempts are followed by others. Default: [`Retry::none`].
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings.retry = retry;
        self
    }

    /// How long each attempt may take: more than zero, up to 100 years. Default: no limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.attempt = self.check("timeout", limit);
        self
    }

    /// How long a task may wait for its first attempt. Default: no limit.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.queue = self.check("queue_timeout", limit);
        self
    }

    /// How long a task may take in all, from its submission to its end. Default: no limit.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.settings.limits.overall = self.check("deadline", limit);
        self
    }

    fn check(&mut self, name: &'static str, limit: Duration) -> u64 {
        if limit.is_zero() || limit > MAX_DELAY {
            let wrong =
                || Error::invalid(name, format!("{limit:?}"), "more than 0, up to 100 years");
            self.wrong.get_or_insert_with(wrong);
        }
        nanos(limit)
    }

    /// The kind.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a setting that is out of its range, or if a kind of this name exists with
    /// other settings.
    pub fn build(self) -> Result<Kind> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let inner = self.pool.kinds.find_or(self.name, || self.settings.clone(), &self.pool.common);
        if inner.settings != self.settings {
            let allowed = "a name without a kind, or the settings that its kind has";
            return Err(Error::invalid("kind", self.name, allowed));
        }
        Ok(Kind { inner })
    }
}

impl fmt::Debug for KindBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The kinds of a worker pool, by name. They live as long as it does.
#[derive(Default)]
pub(crate) struct Kinds(RwLock<HashMap<Box<str>, Arc<KindInner>>>);

impl Kinds {
    pub(super) fn find_or_make(&self, name: &str, common: &Arc<Common>) -> Arc<KindInner> {
        self.find_or(name, Settings::default, common)
    }

    fn find_or(
        &self,
        name: &str,
        settings: impl FnOnce() -> Settings,
        common: &Arc<Common>,
    ) -> Arc<KindInner> {
        if let Some(found) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(found);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kind = all.entry(name.into()).or_insert_with(|| {
            Arc::new(KindInner {
                name: name.into(),
                common: Arc::clone(common),
                settings: settings(),
                stats: KindStats::default(),
            })
        });
        Arc::clone(kind)
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<Arc<KindInner>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: Vec<_> = all.values().cloned().collect();
        kinds.sort_by(|a, b| a.name.cmp(&b.name));
        kinds
    }
}
