//! What all members of a pool share: its owners, each with a file of its own.

use super::config::{Builder, Promotion};
use super::counters::Counters;
use super::end::End;
use super::handler::Flow;
use super::host::{Alarm, Hosts, refresh_alarm};
use super::leader::{HandleSet, HandleSets};
use super::log;
use super::members::{Members, Places};
use super::placement::Placement;
use super::progress::Progress;
use super::ready::{ReadyWork, Watchdog};
use super::slots::{Handles, Key, Payload};
use super::tasks::{Cells, Rooms};
use super::this_thread;
use crate::contain::contain;
use crate::error::{Error, Result};
use crate::log::Logger;
use crate::queue::TaskQueue;
use crate::source;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::fork::ForkGuard;
use core::any::Any;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Everything that the members of one pool share. Fields are dropped in order: queued closures,
/// which may hold a completer, before the table of cells that completers point into.
pub(crate) struct Shared {
    pub(crate) ready: ReadyWork,
    pub(crate) cells: Arc<Cells>,
    pub(crate) rooms: Rooms,
    pub(crate) counters: Counters,
    pub(crate) places: Places,
    pub(crate) end: End,
    pub(crate) hosts: Hosts,
    pub(crate) alarm: Alarm,
    pub(crate) progress: Progress,
    pub(crate) promotion: Promotion,
    /// How long a leader polls before it blocks, in nanoseconds.
    pub(crate) spin: u64,
    /// How long a thread works on what is ready before it looks at everything that waits, in nanoseconds.
    pub(crate) max_turn: u64,
    pub(crate) strand_capacity: usize,
    pub(crate) log: Logger,
    fork: ForkGuard,
    pub(crate) placement: Placement<'static>,
    /// What those who stand on the pool have it keep.
    kept: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    /// What may be gone only after all else here: so it is the last.
    last: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Shared {
    pub(crate) fn new(
        config: &Builder,
        ordinary: usize,
        sets: Box<[HandleSet]>,
        placement: Placement<'static>,
    ) -> Result<Arc<Self>> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let fork = ForkGuard::new()
            .map_err(|error| Error::os("map a page that tells of a fork", error))?;
        let places = Places::new(ordinary, sets.len());
        let members = Members::new(ordinary, config.reserved, config.max_joined);
        let tasks = TaskQueue::new(config.lane_capacity)?.reserving(members.reserved_lanes());
        let handles = Handles::new(config.max_handles, HandleSets::new(sets));
        let slow_limit = config.on_slow.as_ref().map_or(0, |(limit, _)| nanos(*limit));
        let slow_hook = config.on_slow.as_ref().map(|(_, hook)| Arc::clone(hook));
        let watchdog = Watchdog::new(nanos(config.watch_period), slow_limit, slow_hook);
        let ageing = config.ageing.map_or(u64::MAX, nanos);
        let shared = Arc::new(Self {
            ready: ReadyWork::new(tasks, handles, members, ageing, watchdog),
            cells: Arc::new(Cells::new(config.max_handles, fork)),
            rooms: Rooms::new(),
            counters: Counters::new(),
            places,
            end: End::new(),
            hosts: Hosts::new(config.lane_capacity),
            alarm: Alarm::new(),
            progress: Progress::new(),
            promotion: config.promotion,
            spin: nanos(config.spin),
            max_turn: nanos(config.max_turn),
            strand_capacity: config.strand_capacity,
            log: config.logger(),
            fork,
            placement,
            kept: Mutex::default(),
            last: Mutex::default(),
        });
        if ordinary == 0 {
            shared.cells.are_of_hosts(&shared);
        }
        Ok(shared)
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.ready.now()
    }

    #[inline]
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether the calling thread is a member.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        this_thread::is_inside(self.address())
    }

    /// The calling thread's number, if it is a member.
    #[inline]
    pub(crate) fn member_here(&self) -> Option<usize> {
        this_thread::member_of(self.address())
    }

    /// Something of this pool, or of what stands on it, was taken by this thread, which handles it from here on.
    pub(crate) fn note_host(&self) {
        this_thread::note_host(self.address());
    }

    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.fork.is_child()
    }

    /// For those who must be able to ask when the pool is gone.
    pub(crate) fn fork_guard(&self) -> ForkGuard {
        self.fork
    }

    /// Keeps something until the pool has been swept up.
    pub(crate) fn keep(&self, what: Arc<dyn Any + Send + Sync>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Keeps something until no thread of the pool is left, nor anything else of it.
    pub(crate) fn keep_to_the_end(&self, what: Arc<dyn Any + Send + Sync>) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Code of the user has returned. In a child that it forked there is nothing to return to: this
    /// thread would run again what the parent runs, and take the parent's events.
    #[inline]
    pub(crate) fn end_if_forked(&self) {
        if self.is_forked() {
            std::process::abort();
        }
    }

    /// The instant that is `delay` from now.
    pub(crate) fn now_and(&self, delay: Duration) -> u64 {
        self.now().saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
    }

    /// An error unless this process built the pool and it is open to this thread: while it drains, to handlers, and to
    /// hosts that have taken what they handle.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_forked() {
            Err(Error::Forked)
        } else if self.end.is_open_to(false) || self.is_open_to_handlers() {
            Ok(())
        } else {
            Err(Error::ShutDown)
        }
    }

    #[cold]
    fn is_open_to_handlers(&self) -> bool {
        self.end.is_open_to(self.is_inside() || this_thread::is_host(self.address()))
    }

    /// Drops what was to be kept until the pool has been swept up.
    pub(super) fn drop_kept(&self) {
        let kept = core::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let _panicked = contain(|| drop(kept));
    }

    /// This thread sweeps the pool up until the guard is dropped.
    pub(super) fn begin_sweep(&self) -> impl Drop + use<> {
        this_thread::sweep(self.address())
    }

    /// An activation that this thread has made QUEUED.
    pub(crate) fn push_activation(&self, index: u32) {
        self.ready.push_activation(index, self.is_inside());
    }

    /// Publishes a timer and hands it to its set. `named` is called in between. If the timer is closed by then, its set
    /// finds that out.
    pub(crate) fn arm(&self, key: Key, deadline: u64, named: impl FnOnce(Key)) {
        self.ready.handles.arm(key, deadline, named);
        self.refresh_alarm();
    }

    /// Sets the alarm anew, if there is a host that it is for.
    #[inline]
    pub(super) fn refresh_alarm(&self) {
        if self.alarm.is_wanted() {
            let waits = || self.hosts.listed.load(Relaxed) > 0;
            refresh_alarm(&self.ready, waits);
        }
    }

    // --- code of the user ------------------------------------------------------------------------

    /// Code of the user has panicked, on this thread. Drops what it panicked with.
    #[cold]
    pub(crate) fn log_panic(&self, what: &'static str, panic: Box<dyn Any + Send>) {
        log::panicked(&self.log, what, self.member_here(), panic);
    }

    /// Code of another language's has failed, and nothing of ours will.
    pub(crate) fn log_unhandled(&self, says: &str) {
        log::unhandled(&self.log, self.member_here(), says);
    }

    /// Runs a hook of the user, on any thread. A panic of it is logged, and ends nothing.
    pub(crate) fn run_hook(&self, hook: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(hook)) {
            self.log_panic("hook", panic);
        }
    }

    // --- what destructors wait for -----------------------------------------------------------------

    /// What a destructor waits for (docs/GUIDE.md): until `ended`, which waits for up to the time that it is given, says
    /// so. A member does not wait, since two of them could wait for each other; nor does who sweeps the pool
    /// up, since that is to end though a handler is stuck. Nor does any thread once the pool has stopped and no member is
    /// left that could bring the end about.
    ///
    /// Where hosts drive the pool, they come and go, and the only one may be the thread that calls. So nothing is left
    /// to them that they have not begun: this thread [ends](Self::end_here) the `activities`, which have been told to
    /// end, and waits only for those that run.
    pub(crate) fn wait_outside<K: IntoIterator<Item = Key>>(
        &self,
        activities: impl Fn() -> K,
        mut ended: impl FnMut(Duration) -> bool,
    ) {
        const LOOK_AGAIN: Duration = Duration::from_millis(100);
        /// One that has run is not told of, if its host leaves before it runs again.
        const HAS_RUN: Duration = Duration::from_millis(1);
        if self.places.ordinary() > 0 {
            while !self.may_not_wait() && self.has_servers() && !ended(LOOK_AGAIN) {}
            return;
        }
        while !self.may_not_wait() {
            activities().into_iter().for_each(|key| self.end_here(key));
            if ended(HAS_RUN) {
                return;
            }
        }
    }

    /// Has an activity that was told to end do so on this thread, unless a member runs it now: it is taken off its slot,
    /// so that no other thread can begin it, runs until it has nothing more to do, and is dropped.
    pub(crate) fn end_here(&self, key: Key) {
        let Some(slot) = self.ready.handles.slots.get(key.index) else { return };
        if !slot.withdraw(key.generation) {
            return;
        }
        let mut payload = self.ready.handles.take_closed(key);
        if let Payload::Activity(activity, _) = &mut payload {
            self.run_hook(|| while activity.run(source::Ready::NONE) == Flow::Again {});
        }
        let _panicked = contain(|| drop(payload));
    }

    /// Whether there is a member, or one to come, that could do what is waited for.
    pub(crate) fn has_servers(&self) -> bool {
        self.ready.members.present() > 0 || self.places.ordinary() > 0 && !self.end.is_stopping()
    }

    /// Whether this thread is one that must not wait for what the pool's threads do: a member, or who sweeps up.
    #[inline]
    pub(crate) fn may_not_wait(&self) -> bool {
        self.is_inside() || this_thread::sweeps(self.address())
    }
}
