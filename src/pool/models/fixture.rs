//! A pool without threads of its own: its real state, by a clock that stands still.

use crate::pool::Strand;
use crate::pool::config::Builder;
use crate::pool::leader::HandleSet;
use crate::pool::placement::{Occupancy, Pin};
use crate::pool::slots::{Claim, Key, Payload, Traits};
use crate::pool::worker::Worker;
use crate::pool::{Audit, Shared, context};
use crate::queue::{Erased, Lane};
use crate::source::{ScriptedSource, Source};
use crate::sys::topology::Topology;
use core::time::Duration;
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What became of closures, in plain memory, so that counting costs the models nothing.
#[derive(Default)]
pub(crate) struct Record {
    runs: AtomicUsize,
    drops: AtomicUsize,
}

impl Record {
    pub(super) fn closure(self: &Arc<Self>) -> impl FnOnce() + Send + use<> {
        struct OnDrop(Arc<Record>);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.drops.fetch_add(1, Relaxed);
            }
        }
        let record = OnDrop(Arc::clone(self));
        move || {
            record.0.runs.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.load(Relaxed)
    }

    fn drops(&self) -> usize {
        self.drops.load(Relaxed)
    }
}

pub(crate) struct Fixture {
    pub(crate) shared: Arc<Shared>,
    script: ScriptedSource,
    pub(super) record: Arc<Record>,
}

impl Fixture {
    /// A pool whose threads are the model's to start.
    pub(crate) fn new(threads: usize, capacity: usize) -> Self {
        Self::with_reserve(threads, 0, capacity)
    }

    /// A pool with threads that run CRITICAL tasks only, the last ones.
    pub(super) fn with_reserve(threads: usize, reserved: usize, capacity: usize) -> Self {
        static MACHINE: OnceLock<Topology> = OnceLock::new();
        let machine = MACHINE.get_or_init(Topology::of_this_machine);
        let config = Builder::default()
            .threads(threads)
            .reserve(Lane::Critical, reserved)
            // Its words would be explored with every reading of the clock.
            .ageing(None)
            .max_joined(0)
            .lane_capacity(capacity)
            .strand_capacity(capacity)
            .max_handles(4);
        let script = ScriptedSource::new();
        let source = Source::scripted(&script);
        let now = source.clock().now();
        let placement =
            Occupancy::of_process().place(&Pin::None, threads + reserved, machine).unwrap();
        let sets = [HandleSet::new(source, now)].into();
        let shared = Shared::new(&config, threads, sets, placement).unwrap();
        Self { shared, script, record: Arc::default() }
    }

    /// A member with its whole loop.
    pub(super) fn start(&self, me: usize) -> thread::JoinHandle<()> {
        self.shared.ready.members.arrive();
        self.spawn(move |shared, _| {
            Worker::new(shared, me, u64::MAX).run();
            shared.leave();
        })
    }

    pub(crate) fn spawn<R: 'static>(
        &self,
        body: impl FnOnce(&Shared, &Arc<Record>) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let (shared, record) = (Arc::clone(&self.shared), Arc::clone(&self.record));
        thread::spawn(move || body(&shared, &record))
    }

    pub(super) fn post(&self) -> bool {
        post(&self.shared, &self.record)
    }

    pub(super) fn strand(&self) -> Strand {
        Strand::open(&self.shared).unwrap()
    }

    /// Lets a slot to a one-shot timer. The first slots of a table are made before threads are, because
    /// loom does not see that the `OnceLock` of a chunk orders their making.
    pub(super) fn timer(&self) -> Key {
        self.timer_of(self.record.closure())
    }

    /// The same, with this closure.
    pub(super) fn timer_of(&self, closure: impl FnOnce() + Send + 'static) -> Key {
        let traits = Traits { timer: true, once: true, ..Traits::default() };
        let payload = Payload::Once(Erased::new(closure));
        let Ok(key) = self.shared.ready.handles.slots.allocate(traits, -1, payload) else {
            panic!("no slot is free")
        };
        key
    }

    /// Runs one activation, if there is one: `Worker::run_activation`.
    pub(crate) fn run_next(shared: &Shared) -> bool {
        let mut chain = shared.ready.handles.stack.take_all(&shared.ready.handles.slots);
        let Some(index) = chain.pop(&shared.ready.handles.slots) else { return false };
        assert!(chain.is_empty(), "one slot has one entry");
        Self::run(shared, index);
        true
    }

    fn run(shared: &Shared, index: u32) {
        match shared.ready.handles.slots.slot(index).claim() {
            Claim::Run(_) if shared.ready.handles.slots.slot(index).traits().once => {
                shared.ready.handles.take_once(index).run()
            }
            Claim::Run(ready) => {
                let flow =
                    shared.ready.handles.run_claimed(shared.ready.handles.slots.slot(index), ready);
                let _ = shared.ready.handles.finish(index, flow, ready, || true);
            }
            Claim::Free => shared.ready.handles.bury(index),
            Claim::Nothing => {}
        }
    }

    /// All of the model's threads are members from now on, until what comes back is dropped.
    pub(crate) fn enter(&self) -> impl Drop + use<> {
        context::enter(&self.shared, 0)
    }

    /// What moves its clock.
    pub(super) fn script(&self) -> ScriptedSource {
        self.script.clone()
    }

    /// Some time later: runs what is ready, and what is due then. No other thread is at work.
    pub(crate) fn pass(&self, time: Duration) {
        self.script.advance(time);
        let (shared, set) = (&*self.shared, &self.shared.ready.handles.sets[0]);
        let mut lead = set.try_lead(0).expect("nobody leads");
        lead.take_in_timers(&shared.ready.handles.slots);
        let harvest =
            lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, shared.now());
        lead.promote();
        let surplus = core::iter::from_fn(|| set.surplus.pop().map(|index| index as u32));
        for index in harvest.first.into_iter().chain(surplus) {
            Self::run(shared, index);
        }
        while Self::run_next(shared) {}
    }

    /// Whether no timer waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        let mut lead = self.shared.ready.handles.sets[0].try_lead(0).expect("nobody leads");
        let earliest = lead.take_in_timers(&self.shared.ready.handles.slots);
        lead.promote();
        earliest == u64::MAX
    }

    /// Every closure has ended once, and the counters say how.
    pub(super) fn is_closed(&self, accepted: usize, refused: usize) {
        let cancelled = Audit::of(&self.shared).cancelled as usize;
        assert_eq!(self.record.runs() + cancelled, accepted);
        assert_eq!(self.record.drops(), accepted + refused);
        assert_eq!(self.shared.counters.in_strands.load(Relaxed), 0);
    }
}

/// Whether a task was accepted. What comes back is dropped here.
pub(super) fn post(shared: &Shared, record: &Arc<Record>) -> bool {
    post_to(Lane::Normal, shared, record)
}

pub(super) fn post_to(lane: Lane, shared: &Shared, record: &Arc<Record>) -> bool {
    shared.try_post(lane, record.closure()).is_ok()
}
