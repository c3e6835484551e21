//! How components log: the handle that a pool gives to all that stands on it.

use super::faults;
use super::record::{Component, Level, Record};
use super::sinks::Log;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// What a pool logs by, and all that stands on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logger {
    to: Option<Arc<To>>,
}

/// Where the records of one pool go.
#[derive(Debug)]
struct To {
    /// None: only faults are written, to the standard error stream.
    log: Option<Log>,
    pool: Arc<str>,
    /// What was logged once, by bits.
    logged: AtomicU32,
}

impl Logger {
    pub(crate) fn new(log: Option<&Log>, pool: &str) -> Self {
        let log = log.or(Log::installed()).cloned();
        Self { to: Some(Arc::new(To { log, pool: pool.into(), logged: AtomicU32::new(0) })) }
    }

    /// For the same pool, by another log.
    pub(crate) fn to(&self, log: &Log) -> Self {
        Self::new(Some(log), self.pool())
    }

    /// The name of the pool.
    pub(crate) fn pool(&self) -> &str {
        self.to.as_ref().map_or("", |to| &*to.pool)
    }

    /// Whether records go to a log.
    #[cfg(feature = "http")]
    pub(crate) fn has_log(&self) -> bool {
        self.logs_to().is_some()
    }

    /// That of what stands on no pool.
    #[cfg(any(feature = "capi", feature = "webhook"))]
    pub(crate) fn for_nobodys_pool() -> Self {
        Self::new(None, "")
    }

    /// Whether this is logged for the first time; `what` is a bit. It is not logged otherwise. Without a log, too.
    pub(crate) fn is_first(&self, what: u32) -> bool {
        self.to.as_ref().is_some_and(|to| to.logged.fetch_or(what, Relaxed) & what == 0)
    }

    /// Whether a record of this level would be logged, for those that are made in another way.
    pub(crate) fn is_on(&self, component: Component, level: Level) -> bool {
        self.logs_to().is_some_and(|(_, log)| log.is_on(component, level))
    }

    /// The log itself.
    pub(crate) fn log_in_use(&self) -> Option<&Log> {
        self.logs_to().map(|(_, log)| log)
    }

    #[inline(always)]
    fn logs_to(&self) -> Option<(&To, &Log)> {
        let to = self.to.as_deref()?;
        Some((to, to.log.as_ref()?))
    }

    /// Logs a record if the level is on for the component: one relaxed load, and nothing is made if it is off. Without a
    /// log a fault is a line on the standard error stream.
    #[inline(always)]
    pub(crate) fn log(
        &self,
        component: Component,
        level: Level,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.log_unless(false, component, level, event, fill);
    }

    /// The same; without a log, nothing is written if a hook of the program has heard of it (`heard`).
    #[inline(always)]
    pub(crate) fn log_unless(
        &self,
        heard: bool,
        component: Component,
        level: Level,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        let is_logged = match self.logs_to() {
            Some((_, log)) => log.is_on(component, level),
            None => level <= Level::Warn && !heard,
        };
        if is_logged {
            let mut fill = Some(fill);
            self.log_now(component, level, event, &mut |record| {
                if let Some(fill) = fill.take() {
                    fill(record);
                }
            });
        }
    }

    /// Compiled once for all callers.
    #[cold]
    #[inline(never)]
    fn log_now(
        &self,
        component: Component,
        level: Level,
        event: &'static str,
        fill: &mut dyn FnMut(&mut Record),
    ) {
        let pool = match self.logs_to() {
            Some((to, log)) => return log.emit(&to.pool, component, level, event, fill),
            None => self.to.as_ref().map_or("", |to| &*to.pool),
        };
        faults::log(component, level, event, pool, fill);
    }

    pub(crate) fn error(
        &self,
        who: Component,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.log(who, Level::Error, event, fill);
    }

    pub(crate) fn warn(&self, who: Component, event: &'static str, fill: impl FnOnce(&mut Record)) {
        self.log(who, Level::Warn, event, fill);
    }

    pub(crate) fn info(&self, who: Component, event: &'static str, fill: impl FnOnce(&mut Record)) {
        self.log(who, Level::Info, event, fill);
    }

    pub(crate) fn debug(
        &self,
        who: Component,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.log(who, Level::Debug, event, fill);
    }

    /// Whether everything that passes the levels goes to the `log` facade.
    pub(crate) fn uses_facade(&self) -> bool {
        self.logs_to().is_some_and(|(_, log)| log.uses_facade())
    }
}
