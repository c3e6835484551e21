//! The slot word: no event is lost, a handler runs on one thread at a time, and whoever is late
//! touches nobody else's tenancy.
//!
//! The table, its words and the ready stack are the real ones; `Bench` takes the steps of
//! `Handles::{finish, end_registering, abandon, close, dispose, bury, take_once}`, `Worker::run_activation`, `Handle::fetch` and
//! the expiry in `Leadership::sort_out`, without an event source. loom reports a payload that two
//! threads are in.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | handle word | the CAS of whoever brings readiness, or of the claim, Relaxed | an event is not seen |
//! |  | the CAS at a handler's end Relaxed | two runners in one handler |
//! | deregister against a handler | the look whether it is handed over Relaxed | the payload is taken while the handler is in it |
//! | against a stale ready entry | the closer's last CAS Relaxed | the next tenant moves in while the closer is in |
//! | timer: cancel against fire | the claim's CAS Relaxed | a closure is taken while it is written |
//! | a pause by the answer against a resume | the resume of a handler that runs is not remembered | it is not called again |
//! |  | it is remembered beyond its run | a pause ends without a resume |
//! | generation reuse | no generation in the CAS | the next tenant hears what was meant for the last one |
#![allow(unsafe_code, reason = "payloads are taken by the rules that are modelled here")]

use super::explore;
use crate::pool::Flow;
use crate::pool::slots::{
    Activity, Claim, Close, Expire, Finish, Key, Payload, Seized, SlotTable, Start, Traits,
};
use crate::queue::{Erased, IntrusiveStack};
use crate::source::Ready;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::futex::Futex;
use core::any::Any;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// What happened to one tenant, in plain memory, so that counting costs the models nothing.
#[derive(Default)]
struct Record {
    runs: AtomicUsize,
    drops: AtomicUsize,
}

impl Record {
    fn runs(&self) -> usize {
        self.runs.load(Relaxed)
    }

    fn drops(&self) -> usize {
        self.drops.load(Relaxed)
    }
}

/// A payload: a handler that takes in all that is there whenever it runs.
struct Probe {
    record: Arc<Record>,
    input: Arc<[Datum; 2]>,
    answer: Flow,
}

/// What an event announces.
struct Datum {
    there: AtomicBool,
    seen: std::sync::atomic::AtomicBool,
}

impl Datum {
    fn new() -> Self {
        Self { there: AtomicBool::new(false), seen: std::sync::atomic::AtomicBool::new(false) }
    }
}

impl Activity for Probe {
    fn run(&mut self, _: Ready) -> Flow {
        self.record.runs.fetch_add(1, Relaxed);
        if self.answer == Flow::Pause {
            // Others may resume it from now on.
            self.input[1].there.store(true, Relaxed);
        }
        for datum in &*self.input {
            // Relaxed: that the word orders it is what is to be shown.
            datum.seen.fetch_or(datum.there.load(Relaxed), Relaxed);
        }
        self.answer
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.record.drops.fetch_add(1, Relaxed);
    }
}

/// A slot table with its ready work.
struct Bench {
    slots: SlotTable,
    stack: IntrusiveStack,
    changed: Futex,
    /// Closed timers whose entries are still about.
    dead: AtomicUsize,
    yields: bool,
}

impl Bench {
    fn new() -> Self {
        Self {
            slots: SlotTable::new(4),
            stack: IntrusiveStack::new(),
            changed: Futex::new(0),
            dead: AtomicUsize::new(0),
            yields: false,
        }
    }

    fn let_to(&self, answer: Flow, start: Start) -> (Key, Arc<Record>, Arc<[Datum; 2]>) {
        self.let_with(Traits::default(), answer, start)
    }

    fn let_with(
        &self,
        traits: Traits,
        answer: Flow,
        start: Start,
    ) -> (Key, Arc<Record>, Arc<[Datum; 2]>) {
        let record = Arc::new(Record::default());
        let input = Arc::new([Datum::new(), Datum::new()]);
        let probe = Probe { record: record.clone(), input: input.clone(), answer };
        let payload = Payload::activity(Box::new(probe));
        let Ok(key) = self.slots.allocate(traits, -1, payload) else { panic!("no slot is free") };
        self.slots.publish(key, start);
        (key, record, input)
    }

    fn arm_once(&self) -> (Key, Arc<Record>) {
        let record = Arc::new(Record::default());
        let probe = Counted(record.clone());
        let work = move || {
            probe.0.runs.fetch_add(1, Relaxed);
        };
        let traits = Traits { timer: true, once: true, ..Traits::default() };
        let Ok(key) = self.slots.allocate(traits, -1, Payload::Once(Erased::new(work))) else {
            panic!("no slot is free")
        };
        self.slots.publish(key, Start::Armed);
        (key, record)
    }

    /// A kernel event, as the leader sorts it out.
    fn ready(&self, key: Key, ready: Ready) {
        if self.slots.slot(key.index).ready(key.generation, ready) {
            self.stack.push(key.index, &self.slots);
        }
    }

    fn bring(&self, key: Key, datum: &Datum) {
        datum.there.store(true, Relaxed);
        self.ready(key, Ready::READABLE);
    }

    fn end_registering(&self, key: Key) {
        self.end_owning(key, Flow::Wait);
    }

    fn end_owning(&self, key: Key, flow: Flow) {
        match self.slots.slot(key.index).finish(flow, Ready::NONE, || true) {
            Finish::Rests => {}
            Finish::Announce => {
                self.changed.fetch_add(1, AcqRel);
                self.changed.wake(i32::MAX);
            }
            Finish::Queued => self.stack.push(key.index, &self.slots),
            Finish::Close => self.dispose(key.index),
            other => panic!("{other:?}"),
        }
    }

    /// Runs one activation, if there is one: `Worker::run_activation`.
    fn run_next(&self) -> bool {
        let mut chain = self.stack.take_all(&self.slots);
        let Some(index) = chain.pop(&self.slots) else { return false };
        assert!(chain.is_empty(), "one slot has one entry");
        let slot = self.slots.slot(index);
        let mut ready = match slot.claim() {
            Claim::Run(ready) => ready,
            Claim::Free => {
                self.bury(index);
                return true;
            }
            Claim::Nothing => return true,
        };
        if slot.traits().once {
            self.run_once(index);
            return true;
        }
        loop {
            // SAFETY: the slot was claimed and is not finished yet.
            let flow = unsafe {
                slot.payload(|payload| match payload {
                    Payload::Activity(activity, _) => activity.run(ready),
                    _ => panic!("not a handler"),
                })
            };
            match slot.finish(flow, ready, || self.yields) {
                Finish::More(more) => ready = more,
                Finish::Queued => break self.stack.push(index, &self.slots),
                Finish::Close => break self.dispose(index),
                Finish::Announce => {
                    self.changed.fetch_add(1, AcqRel);
                    break self.changed.wake(i32::MAX);
                }
                // Its leader's part is played by the model.
                Finish::Rests | Finish::Armed => break,
            }
        }
        true
    }

    fn run_once(&self, index: u32) {
        let payload = self.take_payload(index);
        self.slots.free(index);
        match payload {
            Payload::Once(closure) => closure.run(),
            _ => panic!("not a one-shot timer"),
        }
    }

    fn take_payload(&self, index: u32) -> Payload {
        // SAFETY: the caller has claimed or closed the slot.
        unsafe {
            self.slots.slot(index).payload(|payload| core::mem::replace(payload, Payload::Empty))
        }
    }

    fn dispose(&self, index: u32) {
        drop(self.take_payload(index));
        self.slots.free(index);
    }

    fn bury(&self, index: u32) {
        if self.slots.slot(index).traits().timer {
            self.dead.fetch_sub(1, Relaxed);
        }
        self.slots.free(index);
    }

    fn close(&self, key: Key, wait: bool) -> (Close, Option<Payload>) {
        let slot = self.slots.slot(key.index);
        let closed = slot.close(key.generation, wait);
        (closed, (closed == Close::Mine).then(|| self.take_closed(key)))
    }

    /// `Shared::end_here`, up to the run.
    fn withdraw(&self, key: Key) -> Option<Payload> {
        self.slots.slot(key.index).withdraw(key.generation).then(|| self.take_closed(key))
    }

    /// `Handles::abandon`, of a handle that has its descriptor still.
    fn abandon(&self, key: Key) -> Option<Payload> {
        match self.slots.slot(key.index).seize(key.generation)? {
            Seized::Closed => Some(self.take_closed(key)),
            Seized::Running => {
                let payload = self.take_payload(key.index);
                self.end_owning(key, Flow::Done);
                Some(payload)
            }
        }
    }

    fn take_closed(&self, key: Key) -> Payload {
        let slot = self.slots.slot(key.index);
        let payload = self.take_payload(key.index);
        let timer = slot.traits().timer;
        if timer {
            self.dead.fetch_add(1, Relaxed);
        }
        if slot.closer_done() {
            if timer {
                self.dead.fetch_sub(1, Relaxed);
            }
            self.slots.free(key.index);
        }
        payload
    }

    /// `Handle::deregister` outside of handlers.
    fn deregister(&self, key: Key) -> Option<Payload> {
        let (closed, payload) = self.close(key, true);
        if closed != Close::Running {
            return payload;
        }
        let slot = self.slots.slot(key.index);
        loop {
            let epoch = self.changed.load(Acquire);
            if slot.is_handed_over(key.generation) {
                let payload = self.take_payload(key.index);
                self.slots.free(key.index);
                return Some(payload);
            }
            self.changed.wait(epoch, None);
        }
    }

    /// A timer of this set is due: the expiry in `Leadership::sort_out`.
    fn expire(&self, key: Key) {
        match self.slots.slot(key.index).expire() {
            Expire::Queue => self.stack.push(key.index, &self.slots),
            Expire::Free => self.bury(key.index),
            Expire::Nothing => {}
        }
    }

    /// Runs what is left, and sees that every slot was freed exactly once.
    fn is_empty_after_all(&self) {
        while self.run_next() {}
        assert_eq!(self.slots.in_use(), 0);
        assert_eq!(self.dead.load(Relaxed), 0);
        let taken = core::iter::from_fn(|| {
            self.slots.allocate(Traits::default(), -1, Payload::Empty).ok().map(|key| key.index)
        });
        let mut taken: Vec<_> = taken.collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3], "each slot is on the free list once");
    }
}

struct Counted(Arc<Record>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Relaxed);
    }
}

fn spawn<R: 'static>(
    bench: &Arc<Bench>,
    body: impl FnOnce(&Bench) -> R + 'static,
) -> thread::JoinHandle<R> {
    let bench = bench.clone();
    thread::spawn(move || body(&bench))
}

/// Goal: each event after the last claim leads to another run, which sees what it announces, and no
/// two runs overlap. Method: two events from two threads against a runner, which requeues or goes on.
fn every_event_is_seen(yields: bool) {
    explore(3, move || {
        let bench = Arc::new(Bench { yields, ..Bench::new() });
        let (key, record, input) = bench.let_to(Flow::Wait, Start::Idle);
        let bringers = [0, 1].map(|which| {
            let input = input.clone();
            spawn(&bench, move |bench| bench.bring(key, &input[which]))
        });
        bench.run_next();
        bench.run_next();
        bringers.into_iter().for_each(|bringer| bringer.join().unwrap());
        while bench.run_next() {}
        assert!(input.iter().all(|datum| datum.seen.load(Relaxed)));
        assert!((1..=2).contains(&record.runs()));
        drop(bench.deregister(key));
        bench.is_empty_after_all();
    });
}

#[test]
fn every_event_is_seen_by_going_on() {
    every_event_is_seen(false);
}

#[test]
fn every_event_is_seen_by_requeueing() {
    every_event_is_seen(true);
}

/// Goal: two runners never run one handler at a time, and what the first did happens before the
/// second's run. Method: an event that comes while the first runs; loom checks the payload.
#[test]
fn two_runners_take_turns() {
    explore(3, || {
        let bench = Arc::new(Bench { yields: true, ..Bench::new() });
        let (key, _, input) = bench.let_to(Flow::Wait, Start::Idle);
        bench.bring(key, &input[0]);
        let runner = spawn(&bench, |bench| bench.run_next());
        bench.bring(key, &input[1]);
        bench.run_next();
        runner.join().unwrap();
        while bench.run_next() {}
        assert!(input.iter().all(|datum| datum.seen.load(Relaxed)));
        drop(bench.deregister(key));
        bench.is_empty_after_all();
    });
}

/// Goal: `deregister` returns the payload when the handler runs no more, whatever the handler's run,
/// its entry and a late event do meanwhile; the slot is freed once. Method: a queued handle, a runner
/// and an event against a closer that waits.
#[test]
fn deregister_waits_for_the_handler() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, record, _) = bench.let_to(Flow::Wait, Start::Idle);
        bench.ready(key, Ready::READABLE);
        let runner = spawn(&bench, |bench| bench.run_next());
        let leader = spawn(&bench, move |bench| bench.ready(key, Ready::WRITABLE));
        let payload = bench.deregister(key).expect("nobody else closes it");
        let runs = record.runs();
        assert_eq!(record.drops(), 0);
        drop(payload);
        runner.join().unwrap();
        leader.join().unwrap();
        bench.is_empty_after_all();
        assert_eq!((record.runs(), record.drops()), (runs, 1));
    });
}

/// Goal: a handler that says `Done` while somebody deregisters it (from inside a handler, so without
/// waiting) is dropped once and its slot freed once. Method: as above, without waiting.
#[test]
fn done_against_close() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, record, _) = bench.let_to(Flow::Done, Start::Idle);
        bench.ready(key, Ready::READABLE);
        let runner = spawn(&bench, |bench| bench.run_next());
        let leader = spawn(&bench, move |bench| bench.ready(key, Ready::WRITABLE));
        drop(bench.close(key, false));
        runner.join().unwrap();
        leader.join().unwrap();
        bench.is_empty_after_all();
        assert_eq!(record.drops(), 1);
    });
}

/// Goal: who ends an activity himself has it alone, or it runs, and is open and ends later; no event that names it then
/// meets it. Method: a run, and an event beside it, against a withdrawal, and another one at the end.
#[test]
fn a_withdrawal_meets_no_run() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, record, _) = bench.let_to(Flow::Wait, Start::Idle);
        bench.ready(key, Ready::READABLE);
        let runner = spawn(&bench, |bench| bench.run_next());
        let leader = spawn(&bench, move |bench| bench.ready(key, Ready::WRITABLE));
        let mine = bench.withdraw(key);
        let runs = record.runs();
        runner.join().unwrap();
        leader.join().unwrap();
        while bench.run_next() {}
        match mine {
            Some(payload) => {
                assert_eq!((record.runs(), record.drops()), (runs, 0));
                drop(payload);
                assert!(bench.withdraw(key).is_none());
            }
            None => {
                assert!(record.runs() > 0);
                drop(bench.withdraw(key).expect("nobody has closed it"));
            }
        }
        bench.is_empty_after_all();
        assert_eq!(record.drops(), 1);
    });
}

/// Goal: a handle that is taken from its owner is dropped once, and does not run afterwards; who deregisters it meanwhile,
/// and waits, is not left waiting. Method: an event and its run, and a deregistration that waits, beside that.
#[test]
fn an_abandoned_handle_ends_once() {
    explore(2, || {
        let bench = Arc::new(Bench::new());
        let (key, record, _) = bench.let_to(Flow::Wait, Start::Idle);
        let runner = spawn(&bench, move |bench| {
            bench.ready(key, Ready::READABLE);
            bench.run_next();
        });
        let owner = spawn(&bench, move |bench| drop(bench.deregister(key)));
        let mine = bench.abandon(key);
        let runs = record.runs();
        let is_mine = mine.is_some();
        drop(mine);
        runner.join().unwrap();
        owner.join().unwrap();
        while bench.run_next() {}
        bench.is_empty_after_all();
        assert_eq!(record.drops(), 1);
        assert!(!is_mine || record.runs() == runs);
    });
}

/// Goal: a handler that is made runnable while it is being registered neither runs nor is dropped before
/// that is through, and then runs; a sweep in between ends it. Method: an event and a runner, whose handler is
/// through at once, beside whoever registers it, and in a second model a close.
fn registering_comes_first(closes: bool) {
    explore(3, move || {
        let bench = Arc::new(Bench::new());
        let start = Start::Registering { paused: false };
        let (key, record, _) = bench.let_to(Flow::Done, start);
        let other = spawn(&bench, move |bench| {
            if closes {
                drop(bench.close(key, false));
            }
            bench.ready(key, Ready::WRITABLE);
            bench.run_next();
        });
        // The source learns its number.
        assert_eq!((record.runs(), record.drops()), (0, 0));
        bench.end_registering(key);
        other.join().unwrap();
        while bench.run_next() {}
        bench.is_empty_after_all();
        assert_eq!((record.runs(), record.drops()), (usize::from(!closes), 1));
    });
}

#[test]
fn registering_comes_before_the_first_run() {
    registering_comes_first(false);
}

#[test]
fn registering_comes_before_a_close() {
    registering_comes_first(true);
}

/// Goal: events, closes and pauses for a tenant that has gone do nothing to the next one in its slot.
/// Method: late calls with the old key while the slot is freed and let again.
#[test]
fn the_late_do_not_touch_the_next_tenant() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (old, gone, _) = bench.let_to(Flow::Wait, Start::Idle);
        let late = spawn(&bench, move |bench| {
            bench.ready(old, Ready::READABLE);
            let slot = bench.slots.slot(old.index);
            slot.pause(old.generation);
            drop(bench.close(old, false));
        });
        let runner = spawn(&bench, |bench| bench.run_next());
        drop(bench.close(old, false));
        let (new, next, _) = bench.let_to(Flow::Wait, Start::Idle);
        late.join().unwrap();
        runner.join().unwrap();
        while bench.run_next() {}
        assert_eq!((gone.drops(), next.runs(), next.drops()), (1, 0, 0));
        assert_eq!(bench.slots.slot(new.index).resume(new.generation), Some(false));
        assert!(matches!(bench.close(new, false), (Close::Mine, Some(Payload::Activity(..)))));
        bench.is_empty_after_all();
    });
}

/// Goal: who finds a stale entry frees the slot, and the closer is through with it by then. Method: a
/// handle that is queued, closed against its entry's finder, who lets the slot again at once.
#[test]
fn the_finder_of_a_stale_entry_lets_the_slot_again() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, gone, _) = bench.let_to(Flow::Done, Start::Idle);
        bench.ready(key, Ready::READABLE);
        let finder = spawn(&bench, |bench| {
            bench.run_next();
            bench.let_to(Flow::Done, Start::Idle)
        });
        drop(bench.close(key, false));
        let (next, _, _) = finder.join().unwrap();
        assert_eq!(gone.drops(), 1);
        drop(bench.close(next, false));
        bench.is_empty_after_all();
    });
}

/// Goal: what arrives during a pause is delivered after it, and not before. Method: an event and a
/// runner against pause and resume.
#[test]
fn a_pause_keeps_events() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, _, input) = bench.let_to(Flow::Wait, Start::Idle);
        let slot = bench.slots.slot(key.index);
        let leader = {
            let input = input.clone();
            spawn(&bench, move |bench| bench.bring(key, &input[0]))
        };
        let runner = spawn(&bench, |bench| bench.run_next());
        assert!(slot.pause(key.generation));
        if slot.resume(key.generation) == Some(true) {
            bench.stack.push(key.index, &bench.slots);
        }
        leader.join().unwrap();
        runner.join().unwrap();
        while bench.run_next() {}
        assert!(input[0].seen.load(Relaxed));
        drop(bench.deregister(key));
        bench.is_empty_after_all();
    });
}

/// Goal: a pause holds back a run that is queued and has not begun, and errors pass it. Method: the
/// transitions in a row.
#[test]
fn a_pause_holds_back_what_is_queued() {
    explore(1, || {
        let bench = Bench::new();
        let (key, record, _) = bench.let_to(Flow::Again, Start::Idle);
        let slot = bench.slots.slot(key.index);
        bench.ready(key, Ready::READABLE);
        assert!(slot.pause(key.generation));
        while bench.run_next() {}
        assert_eq!(record.runs(), 0);
        bench.ready(key, Ready::HANG_UP);
        bench.run_next();
        assert_eq!(record.runs(), 1);
        while bench.run_next() {}
        assert_eq!(record.runs(), 1, "what it had seen before does not pass the pause again");
        bench.ready(key, Ready::HANG_UP);
        while bench.run_next() {}
        assert_eq!(record.runs(), 1, "the kernel's second report of it does not, either");
        assert_eq!(slot.resume(key.generation), Some(true));
        bench.stack.push(key.index, &bench.slots);
        bench.run_next();
        assert_eq!(record.runs(), 2);
        drop(bench.close(key, false));
        bench.is_empty_after_all();
    });
}

/// Goal: a level-triggered handle whose peer has hung up is silent once it is paused, and is told of it after the
/// pause. Method: a source that reports the hang-up again after each run, as it does when it is armed again, and a
/// runner against the pause; then runs for as long as there are any, which would not end.
#[test]
fn a_paused_level_triggered_handle_is_silent() {
    explore(3, || {
        let bench = Arc::new(Bench { yields: true, ..Bench::new() });
        let traits = Traits { level: true, ..Traits::default() };
        let (key, record, _) = bench.let_with(traits, Flow::Wait, Start::Idle);
        let run_and_arm = move |bench: &Bench, record: &Record| {
            let before = record.runs();
            bench.run_next();
            if record.runs() > before {
                bench.ready(key, Ready::HANG_UP);
            }
            record.runs() > before
        };
        let runner = {
            let record = record.clone();
            bench.ready(key, Ready::HANG_UP);
            spawn(&bench, move |bench| run_and_arm(bench, &record))
        };
        let slot = bench.slots.slot(key.index);
        assert!(slot.pause(key.generation));
        runner.join().unwrap();
        let begun = record.runs();
        assert!(begun <= 1);
        assert!(!run_and_arm(&bench, &record), "it runs in the pause");
        assert_eq!(slot.resume(key.generation), Some(true));
        bench.stack.push(key.index, &bench.slots);
        assert!(run_and_arm(&bench, &record), "it was not told after the pause");
        drop(bench.close(key, false));
        bench.is_empty_after_all();
    });
}

/// Goal: a handler that pauses itself by its answer is called again after a resume that has come since its run began,
/// also before it has returned. Method: a run against a resume, for a handle of each kind.
fn a_resume_ends_a_pause_by_the_answer(traits: Traits) {
    explore(3, move || {
        let bench = Arc::new(Bench::new());
        let start = if traits.timer { Start::Armed } else { Start::Idle };
        let (key, record, input) = bench.let_with(traits, Flow::Pause, start);
        let happens = move |bench: &Bench| match traits.timer {
            true => bench.expire(key),
            false => bench.ready(key, Ready::READABLE),
        };
        happens(&bench);
        let runner = spawn(&bench, |bench| bench.run_next());
        let slot = bench.slots.slot(key.index);
        let has_begun = input[1].there.load(Relaxed);
        if has_begun && slot.resume(key.generation) == Some(true) {
            bench.stack.push(key.index, &bench.slots);
        }
        runner.join().unwrap();
        while bench.run_next() {}
        if traits.timer {
            bench.expire(key);
            while bench.run_next() {}
        }
        assert_eq!(record.runs(), if has_begun { 2 } else { 1 });
        drop(bench.deregister(key));
    });
}

#[test]
fn a_resume_ends_a_pause_by_the_answer_of_an_edge_triggered_handle() {
    a_resume_ends_a_pause_by_the_answer(Traits::default());
}

#[test]
fn a_resume_ends_a_pause_by_the_answer_of_a_level_triggered_handle() {
    a_resume_ends_a_pause_by_the_answer(Traits { level: true, ..Traits::default() });
}

#[test]
fn a_resume_ends_a_pause_by_the_answer_of_a_periodic_timer() {
    a_resume_ends_a_pause_by_the_answer(Traits { timer: true, ..Traits::default() });
}

/// Goal: a resume counts for the run that is on, and for no pause of a later one; and of the calls of others the last one
/// counts. Method: the transitions in a row.
#[test]
fn a_resume_is_remembered_for_one_run() {
    explore(1, || {
        let bench = Bench::new();
        let (key, _, _) = bench.let_to(Flow::Wait, Start::Idle);
        let slot = bench.slots.slot(key.index);
        let finish = |flow| slot.finish(flow, Ready::READABLE, || false);
        let run = Claim::Run(Ready::READABLE);
        assert!(slot.ready(key.generation, Ready::READABLE));
        assert_eq!(slot.claim(), run);
        assert_eq!(slot.resume(key.generation), Some(false));
        assert_eq!(finish(Flow::Pause), Finish::Queued);
        assert_eq!(slot.claim(), run);
        assert_eq!(slot.resume(key.generation), Some(false));
        assert!(!slot.ready(key.generation, Ready::READABLE));
        assert_eq!(finish(Flow::Wait), Finish::More(Ready::READABLE), "a new run");
        assert_eq!(finish(Flow::Pause), Finish::Rests);
        assert!(!slot.ready(key.generation, Ready::READABLE), "it is paused");
        assert_eq!(slot.resume(key.generation), Some(true));
        assert_eq!(slot.claim(), run);
        assert_eq!(slot.resume(key.generation), Some(false));
        assert!(slot.rest());
        assert!(slot.ready(key.generation, Ready::READABLE));
        assert_eq!(slot.claim(), run);
        assert_eq!(slot.resume(key.generation), Some(false));
        assert!(slot.pause(key.generation));
        assert_eq!(finish(Flow::Pause), Finish::Rests);
        assert!(!slot.ready(key.generation, Ready::READABLE), "it is paused");
        drop(bench.close(key, false));
        bench.is_empty_after_all();
    });
}

/// Goal: a one-shot timer's closure runs, or `cancel` takes it, never both and never neither; the
/// slot is freed once, and the count of dead entries comes back. Method: a leader for whom it is due
/// and a runner against `cancel`.
#[test]
fn cancel_against_expiry() {
    explore(3, || {
        let bench = Arc::new(Bench::new());
        let (key, record) = bench.arm_once();
        let leader = spawn(&bench, move |bench| bench.expire(key));
        let runner = spawn(&bench, |bench| bench.run_next());
        let (closed, payload) = bench.close(key, false);
        drop(payload);
        leader.join().unwrap();
        runner.join().unwrap();
        bench.is_empty_after_all();
        assert_eq!(record.runs(), usize::from(closed != Close::Mine));
        assert_eq!(record.drops(), 1);
    });
}
