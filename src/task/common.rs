//! What all tasks of one worker pool share, and what those of one task type do.

use crate::contain::Contained;
use crate::log::Logger;
use crate::pool::Shared;
use crate::source::Clock;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::fork::ForkGuard;
use crate::sys::futex::Futex;
use crate::task::admission::droppable::Lists;
use crate::task::admission::keyed::Keys;
use crate::task::admission::limiter::Limiter;
use crate::task::arena::Arena;
use crate::task::attempt::Middleware;
use crate::task::attempt::attempts::Attempts;
use crate::task::attempt::guard::Guard;
use crate::task::counters::{Event, TaskTypeStats};
use crate::task::record::{HostJob, Parked, TaskMeta};
use crate::task::result::observer::Observer;
use crate::task::result::report::Status;
use crate::task::retry::budget::Budget;
use crate::task::retry::delay_queue::DelayQueue;
use crate::task::scaling::{Scaler, Waits};
use crate::task::settings::{OverloadPolicy, Settings};
use crate::task::stamp;
use crate::trace;
use core::borrow::Borrow;
use core::ffi::CStr;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// The life of a worker pool, in order.
pub(crate) const OPEN: u32 = 0;
pub(crate) const DRAINING: u32 = 1;
pub(crate) const STOPPING: u32 = 2;

/// What all tasks of one worker pool share.
pub(crate) struct Common {
    pub(crate) shared: Arc<Shared>,
    /// The log of the pool, or the one that the worker pool was given.
    pub(crate) log: Logger,
    pub(crate) logs_ends: bool,
    pub(crate) observers: Box<[Contained<Arc<dyn Observer>>]>,
    pub(super) middleware: Box<[Contained<Arc<dyn Middleware>>]>,
    pub(super) arena: Arc<Arena>,
    pub(crate) guard: &'static Guard,
    pub(super) wait_lists: &'static WaitLists,
    /// What is done when a lane is full, unless a task type says otherwise.
    pub(super) full: OverloadPolicy,
    pub(crate) scaler: Option<Arc<Scaler>>,
    pub(super) hooks: Hooks,
    pub(super) task_types: TaskTypes,
    pub(super) phase: AtomicU32,
    /// When it was made, by the pool's clock.
    pub(super) made: u64,
    /// Changes when something has ended that a shutdown may wait for.
    pub(super) changed: Futex,
    /// What its figures call it.
    pub(super) name: OnceLock<String>,
    /// No handle is left: it has no figures any more.
    pub(super) is_left: AtomicBool,
}

impl Common {
    #[inline]
    pub(super) fn note_submission(&self, taken: bool) {
        if let (Some(scaler), true) = (&self.scaler, taken) {
            scaler.note_submission(&self.shared);
        }
    }

    /// A task has ended.
    pub(super) fn note_end(&self) {
        if self.phase() != OPEN {
            self.changed.fetch_add(1, AcqRel);
            self.changed.wake(i32::MAX);
        }
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase.load(Acquire)
    }
}

pub(super) type Hook = Box<dyn FnOnce() + Send>;

/// What is run at the end, the last one first.
#[derive(Default)]
pub(super) struct Hooks(Mutex<Vec<(String, Contained<Hook>)>>);

impl Hooks {
    pub(super) fn push(&self, name: &str, hook: Hook) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((name.to_owned(), Contained::new(hook)));
    }

    pub(super) fn pop(&self) -> Option<(String, Hook)> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        last.map(|(name, hook)| (name, hook.into_inner()))
    }
}

/// What the waiting tasks of a worker pool share. It lasts as long as the task types that refer to it.
pub(crate) struct WaitLists {
    pub(super) keys: Keys<Parked>,
    /// Tasks that may be dropped for others.
    pub(super) lists: Lists<Parked>,
    pub(super) attempts: Attempts<Box<dyn HostJob>>,
    pub(super) delay_queue: DelayQueue<TaskMeta>,
    /// How many tasks may wait for the rate of each name.
    pub(super) most: usize,
    seed: u64,
    draws: AtomicU64,
}

impl WaitLists {
    pub(super) fn new(most: usize, droppable: usize, queued: usize, seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        let (keys, lists, attempts) =
            (Keys::new(most), Lists::new(droppable), Attempts::new(queued));
        let delay_queue = DelayQueue::new();
        Self { keys, lists, attempts, delay_queue, most, seed, draws: AtomicU64::new(0) }
    }

    /// A seed of its own for the jitter of one retry.
    pub(super) fn draw(&self) -> u64 {
        let number = self.draws.fetch_add(1, Relaxed);
        self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95)
    }
}

/// A name, with a NUL at its end. It lasts as long as the process, once for each name, since reports, which
/// have it, do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name(&'static str);

impl Name {
    fn new(name: &str) -> Self {
        static NAMES: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
        let name = format!("{name}\0");
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(name.as_str()).copied();
        known.unwrap_or_else(|| {
            let new = Self(name.leak());
            names.insert(new);
            new
        })
    }

    fn as_str(self) -> &'static str {
        &self.0[..self.0.len() - 1]
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.0
    }
}

/// What the tasks of one name share. It is part of its worker pool's arena, so that a task need not count
/// references to it.
pub(crate) struct TaskTypeInner {
    name: Name,
    /// The same without the NUL, for each report.
    plain_name: &'static str,
    /// What its attempts are called in the timeline.
    pub(super) runs: trace::Name,
    common: Weak<Common>,
    pub(crate) settings: Settings,
    pub(crate) stats: TaskTypeStats,
    /// Somebody observes the ends.
    pub(super) told: bool,
    /// Something runs around attempts.
    pub(super) has_middleware: bool,
    /// Its tasks have other limits than that of their attempts.
    pub(super) has_limits: bool,
    /// The phase of the worker pool.
    pub(super) phase: AtomicU32,
    pub(super) clock: Clock,
    pub(super) fork: ForkGuard,
    pub(super) guard: &'static Guard,
    pub(super) wait_lists: &'static WaitLists,
    /// Tasks of this name that wait for its rate, or for those that run.
    pub(super) limiter: Option<Limiter<Parked>>,
    pub(super) budget: Option<Budget>,
    /// What is done when a lane is full.
    pub(super) full: OverloadPolicy,
    /// Where waits in the queue are counted, if somebody adapts to them.
    pub(super) waits: Option<&'static Waits>,
    /// The address of what its pool shares.
    home: usize,
}

impl TaskTypeInner {
    #[inline]
    pub(crate) fn name(&self) -> &'static str {
        self.plain_name
    }

    /// As C has it.
    pub(crate) fn c_name(&self) -> &'static CStr {
        CStr::from_bytes_until_nul(self.name.0.as_bytes()).unwrap_or_default()
    }

    /// What it shares with the other task types of its worker pool. None: pool and worker pool are gone.
    pub(crate) fn common(&self) -> Option<Arc<Common>> {
        self.common.upgrade()
    }

    pub(super) fn is_of(&self, common: &Common) -> bool {
        core::ptr::eq(self.common.as_ptr(), common)
    }

    /// Whether its tasks run in that pool. The address is only compared.
    pub(super) fn is_in(&self, shared: &Shared) -> bool {
        self.home == core::ptr::from_ref(shared).addr()
    }

    #[inline]
    pub(crate) fn phase(&self) -> u32 {
        self.phase.load(Relaxed)
    }

    pub(super) fn enter(&self, phase: u32) {
        self.phase.fetch_max(phase, AcqRel);
    }

    /// The time of the pool's clock: exactly if a time that is short begins with it, else as
    /// [`stamp::stamp`] tells it.
    #[inline]
    pub(super) fn stamp(&self, limit: u64) -> u64 {
        match &self.clock {
            Clock::Monotonic if limit >= stamp::LONG => stamp::stamp(),
            clock => clock.now(),
        }
    }

    /// The same for an attempt that begins on a thread of the pool.
    #[inline]
    pub(super) fn stamp_begin(&self, limit: u64) -> u64 {
        match &self.clock {
            Clock::Monotonic if limit >= stamp::LONG => stamp::stamp_begin(),
            clock => clock.now(),
        }
    }

    /// The same for an attempt that ends; see [`stamp::stamp_end`].
    #[inline]
    pub(super) fn stamp_end(&self, at_once: bool) -> u64 {
        match &self.clock {
            Clock::Monotonic => stamp::stamp_end(at_once),
            clock @ Clock::Manual(_) => clock.now(),
        }
    }

    /// Whether the retry budget allows one more at `now`.
    pub(super) fn affords_retry(&self, now: u64) -> bool {
        let Some(budget) = &self.budget else { return true };
        let affords = budget.take(now, self.stats.get(Event::Accepted));
        if !affords {
            self.stats.count(Event::RetryRefused);
        }
        affords
    }

    /// A task of this task type has ended. Called once for each.
    #[inline]
    pub(super) fn ended(&self, status: Status) {
        self.stats.ended(status);
        if self.phase() != OPEN
            && let Some(common) = self.common()
        {
            common.note_end();
        }
    }
}

/// The task types of a worker pool, by name.
#[derive(Default)]
pub(crate) struct TaskTypes(RwLock<HashMap<Box<str>, &'static TaskTypeInner>>);

impl TaskTypes {
    pub(super) fn find_or_make(&self, name: &str, common: &Arc<Common>) -> &'static TaskTypeInner {
        self.find_or(name, Settings::default, common)
    }

    pub(super) fn find_or(
        &self,
        name: &str,
        settings: impl FnOnce() -> Settings,
        common: &Arc<Common>,
    ) -> &'static TaskTypeInner {
        if let Some(found) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return found;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.into()).or_insert_with(|| {
            let settings = settings();
            let Settings { budget, rate, max_running, limits, .. } = settings;
            let clock = common.shared.ready.handles.sets.clock().clone();
            let checked = "settings that were checked";
            let kept = Name::new(name);
            common.arena.keep(TaskTypeInner {
                plain_name: kept.as_str(),
                runs: trace::Name::new(name),
                name: kept,
                common: Arc::downgrade(common),
                full: settings.full.unwrap_or(common.full),
                budget: budget.map(|budget| Budget::new(budget, clock.now()).expect(checked)),
                limiter: (rate.is_some() || max_running.is_some()).then(|| {
                    Limiter::new(rate, max_running, common.wait_lists.most).expect(checked)
                }),
                settings,
                stats: TaskTypeStats::default(),
                told: common.logs_ends || !common.observers.is_empty(),
                has_middleware: !common.middleware.is_empty(),
                has_limits: limits.queue & limits.overall & limits.soft != u64::MAX,
                // A shutdown tells all task types that exist, under this lock, after it has entered.
                phase: AtomicU32::new(common.phase()),
                clock,
                fork: common.shared.fork_guard(),
                guard: common.guard,
                wait_lists: common.wait_lists,
                waits: common.scaler.as_ref().map(|scaler| scaler.waits()),
                home: Arc::as_ptr(&common.shared).addr(),
            })
        })
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<&'static TaskTypeInner> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut task_types: Vec<_> = all.values().copied().collect();
        task_types.sort_unstable_by_key(|task_type| task_type.name);
        task_types
    }
}
