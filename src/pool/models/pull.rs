//! A held slot: the host is its handler. It is completed once, by one of those that may; what arrives
//! while it is held is not lost; and the payload is with one thread at a time.
//!
//! The outbox is loom's mutex around a queue, as the real one is std's. The steps are those of
//! `Outbox::hand_out`, `held::complete`, `Handles::{finish, close, dispose}` and `Pool::pull`.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | pulled events | the hold's number not compared | a late completion takes the next event away |
//! |  | PULLED not required | an event is completed that nobody has got |
//! |  | an `unhold` that does not clear | an event is completed twice |
#![allow(unsafe_code, reason = "payloads are taken by the rules that are modelled here")]

use super::explore;
use crate::pool::Flow;
use crate::pool::slots::{Activity, Claim, Close, Finish, Key, Payload, SlotTable, Start, Traits};
use crate::queue::IntrusiveStack;
use crate::source::Ready;
use core::any::Any;
use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use std::sync::Arc;

struct Silent;

impl Activity for Silent {
    fn run(&mut self, _: Ready) -> Flow {
        unreachable!("pulled")
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

struct Bench {
    slots: SlotTable,
    stack: IntrusiveStack,
    outbox: Mutex<Vec<(Key, u16)>>,
    meeting: AtomicUsize,
}

impl Bench {
    /// A slot that is ready once.
    fn new() -> (Arc<Self>, Key) {
        let bench = Self {
            slots: SlotTable::new(4),
            stack: IntrusiveStack::new(),
            outbox: Mutex::new(Vec::new()),
            meeting: AtomicUsize::new(0),
        };
        let traits = Traits { pulled: true, ..Traits::default() };
        let Ok(key) = bench.slots.allocate(traits, -1, Payload::Activity(Box::new(Silent))) else {
            panic!("no slot is free")
        };
        bench.slots.publish(key, Start::Idle);
        bench.ready(key);
        (Arc::new(bench), key)
    }

    fn ready(&self, key: Key) {
        self.meet();
        if self.slots.slot(key.index).ready(key.generation, Ready::READABLE) {
            self.stack.push(key.index, &self.slots);
        }
    }

    /// A member: claims what is ready and hands it out.
    fn hand_out_all(&self) {
        let mut chain = self.stack.take_all(&self.slots);
        while let Some(index) = chain.pop(&self.slots) {
            let slot = self.slots.slot(index);
            match slot.claim() {
                Claim::Run(_) => {
                    // The kept readiness is written here, with the payload in hand.
                    self.touch(index);
                    let key = Key { index, generation: slot.generation() };
                    let hold = slot.hold();
                    self.outbox.lock().unwrap().push((key, hold));
                }
                Claim::Free => self.slots.free(index),
                Claim::Nothing => {}
            }
        }
    }

    fn pull(&self) -> Option<(Key, u16)> {
        let (key, hold) = self.outbox.lock().unwrap().pop()?;
        self.meet();
        self.slots.slot(key.index).pulled(key.generation, hold);
        self.meet();
        Some((key, hold))
    }

    /// Two threads that pass here do so in either order. loom remembers only the last access to a word,
    /// so a thread that only looks at it is not tried behind one that looks and then changes it.
    fn meet(&self) {
        self.meeting.fetch_add(1, Relaxed);
    }

    fn complete(&self, key: Key, hold: Option<u16>, flow: Flow) -> bool {
        let slot = self.slots.slot(key.index);
        self.meet();
        if !slot.unhold(key.generation, hold) {
            return false;
        }
        self.touch(key.index);
        match slot.finish(flow, Ready::READABLE, || true) {
            Finish::Queued => self.stack.push(key.index, &self.slots),
            Finish::Close => {
                self.empty(key.index);
                self.slots.free(key.index);
            }
            Finish::Rests => {}
            other => panic!("{other:?}"),
        }
        true
    }

    fn close(&self, key: Key) -> Close {
        self.meet();
        let slot = self.slots.slot(key.index);
        let closed = slot.close(key.generation, false);
        if closed == Close::Mine {
            self.empty(key.index);
            if slot.closer_done() {
                self.slots.free(key.index);
            }
        }
        closed
    }

    /// loom complains if anybody else is in the payload.
    fn touch(&self, index: u32) {
        // SAFETY: the caller is the runner by the word, which is what is to be shown.
        unsafe {
            self.slots.slot(index).payload(|payload| assert!(!matches!(payload, Payload::Empty)))
        }
    }

    fn empty(&self, index: u32) {
        // SAFETY: the caller has closed the slot.
        drop(unsafe {
            self.slots.slot(index).payload(|it| core::mem::replace(it, Payload::Empty))
        });
    }
}

/// Two threads complete the same event while new readiness comes: one of them does, and the readiness
/// makes it runnable again.
#[test]
fn completion_against_completion_and_readiness() {
    explore(3, || {
        let (bench, key) = Bench::new();
        bench.hand_out_all();
        assert!(!bench.complete(key, None, Flow::Wait), "nobody has got it yet");
        let (_, hold) = bench.pull().unwrap();
        let early = {
            let bench = bench.clone();
            thread::spawn(move || bench.complete(key, None, Flow::Wait))
        };
        let kernel = {
            let bench = bench.clone();
            thread::spawn(move || bench.ready(key))
        };
        let late = bench.complete(key, Some(hold), Flow::Wait);
        assert!(late != early.join().unwrap());
        kernel.join().unwrap();
        bench.hand_out_all();
        assert!(bench.pull().is_some(), "the readiness was lost");
    });
}

/// A thread that completes its batch late meets the next event, which another thread has got.
#[test]
fn a_late_completion_leaves_the_next_event_alone() {
    explore(3, || {
        let (bench, key) = Bench::new();
        bench.hand_out_all();
        let (_, first) = bench.pull().unwrap();
        assert!(bench.complete(key, None, Flow::Again));
        let other = {
            let bench = bench.clone();
            thread::spawn(move || {
                bench.hand_out_all();
                bench.pull().expect("it was to come again").1
            })
        };
        assert!(!bench.complete(key, Some(first), Flow::Wait));
        let second = other.join().unwrap();
        assert!(bench.complete(key, Some(second), Flow::Wait));
    });
}

/// Closing against completing: the payload is dropped once, and the slot is free afterwards.
#[test]
fn close_against_completion() {
    explore(3, || {
        let (bench, key) = Bench::new();
        bench.hand_out_all();
        let (_, hold) = bench.pull().unwrap();
        let closer = {
            let bench = bench.clone();
            thread::spawn(move || bench.close(key))
        };
        assert!(bench.complete(key, Some(hold), Flow::Wait));
        assert!(matches!(closer.join().unwrap(), Close::Mine | Close::Running));
        assert!(!bench.slots.slot(key.index).is_open(key.generation));
        assert_eq!(bench.slots.in_use(), 0);
    });
}
