//! One model per race. loom runs each through every interleaving (up to three preemptions) and
//! every value that a load may return, and reports unsynchronized access to a slot, a deadlock (a
//! lost wake-up), or a failed assertion.
//!
//! Capacities are 1 to 4, so that positions wrap within a few operations.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | ring: push, pop, wrap, drop | a slot published, or given back, or the head moved, Relaxed | a value is read while it is written; "empty" after one's own push |
//! | batch claims | a slot's state loaded Relaxed | a value is read while it is written |
//! | local queues | `install`, or the end of `steal`, Relaxed | a task is read while it is written, or its place written while it is read |
//! | activations | the stack's push, a chain's `install`, or the surplus ring's tail Relaxed | an object is taken twice, or never |

use crate::queue::Origin::{Inside, Outside};
use crate::queue::activations::{Chain, NONE};
use crate::queue::{
    CLOSED_ALL, Claimed, Erased, IntrusiveStack, Lane, Links, LocalChain, LocalQueue, MpmcRing,
    PopError, Queue, Surplus, TaskQueue, Turn,
};
use core::time::Duration;
use loom::sync::atomic::{AtomicBool, AtomicU32};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const BOUND: usize = 3;

fn model(bound: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(body);
}

fn ring<T>(capacity: usize) -> Arc<MpmcRing<T>> {
    Arc::new(MpmcRing::new("capacity", capacity).unwrap())
}

/// A value whose drops are counted by plain memory, so that the count costs the model nothing.
struct Counted(u32, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Relaxed);
    }
}

/// Pops until something comes or the ring is empty.
fn pop<T>(ring: &MpmcRing<T>) -> Option<T> {
    loop {
        match ring.try_pop() {
            Ok(value) => return Some(value),
            Err(PopError::Empty) => return None,
            Err(PopError::Busy) => thread::yield_now(),
        }
    }
}

/// Two producers of two values each and a consumer, on two slots: what was accepted comes out once,
/// in order per producer, or is dropped with the ring.
#[test]
fn push_and_pop_and_wrap_and_drop() {
    model(BOUND, || {
        let ring = ring(2);
        let drops = Arc::new(AtomicUsize::new(0));
        let producers: Vec<_> = [10, 20]
            .map(|first| {
                let (ring, drops) = (ring.clone(), drops.clone());
                thread::spawn(move || {
                    let push = |value| ring.try_push(Counted(value, drops.clone()), Outside);
                    [first, first + 1].into_iter().filter(|&value| push(value).is_ok()).count()
                })
            })
            .into();
        let popped: Vec<u32> = (0..3).filter_map(|_| pop(&ring).map(|value| value.0)).collect();
        let pushed: usize = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        for first in [10, 20] {
            let of_one = popped.iter().filter(|&&value| value / 10 * 10 == first);
            assert!(of_one.is_sorted_by(|a, b| a < b));
        }
        assert_eq!(ring.tail(), pushed as u64);
        assert_eq!(ring.len(), pushed - popped.len());
        assert_eq!(drops.load(Relaxed), popped.len() + 4 - pushed);
        drop(ring);
        assert_eq!(drops.load(Relaxed), 4);
    });
}

/// One slot, handed to and fro: the write of the next lap never meets the read of the last.
#[test]
fn one_slot_is_reused_only_after_it_was_read() {
    model(BOUND, || {
        let ring = ring(1);
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                (1..=3).filter(|&value| ring.try_push(value, Outside).is_ok()).count()
            })
        };
        let popped: Vec<u32> = (0..3).filter_map(|_| pop(&ring)).collect();
        let pushed = producer.join().unwrap();
        assert!(popped.is_sorted_by(|a, b| a < b));
        assert_eq!(popped.len() + ring.len(), pushed);
    });
}

/// Batches against batches, round the end of the array: each value is claimed by one consumer.
#[test]
fn batches_are_claimed_once() {
    model(BOUND, || {
        let ring = ring(2);
        ring.try_push(0, Outside).unwrap();
        assert_eq!(ring.try_pop(), Ok(0));
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut next = 0;
                let mut make = || {
                    next += 1;
                    next
                };
                let first = ring.push_batch_with(2, Outside, &mut make).unwrap();
                first + ring.push_batch_with(1, Outside, &mut make).unwrap_or(0)
            })
        };
        let consume = |ring: &MpmcRing<u32>| {
            let mut out = Vec::new();
            let _ = ring.pop_batch(2, |value| out.push(value));
            out
        };
        let consumer = {
            let ring = ring.clone();
            thread::spawn(move || consume(&ring))
        };
        let mut all = consume(&ring);
        all.extend(consumer.join().unwrap());
        let pushed = producer.join().unwrap();
        all.extend(std::iter::from_fn(|| pop(&ring)));
        all.sort_unstable();
        assert_eq!(all, (1..=pushed as u32).collect::<Vec<_>>());
    });
}

/// Whoever has pushed finds something, or `Busy`, until it or another has popped as much.
#[test]
fn never_empty_after_ones_own_push() {
    model(BOUND, || {
        let ring = ring(2);
        let push_then_pop = |ring: &MpmcRing<u32>, value| {
            ring.try_push(value, Outside).unwrap();
            assert!(pop(ring).is_some());
        };
        let other = {
            let ring = ring.clone();
            thread::spawn(move || push_then_pop(&ring, 1))
        };
        push_then_pop(&ring, 2);
        other.join().unwrap();
        assert!(ring.is_empty());
    });
}

/// The same across threads: a push that happened before the look is seen.
#[test]
fn never_empty_after_a_push_that_happened_before() {
    model(BOUND, || {
        let ring = ring(2);
        let told = Arc::new(AtomicBool::new(false));
        let slow = {
            let ring = ring.clone();
            thread::spawn(move || ring.try_push(1, Outside).unwrap())
        };
        let teller = {
            let (ring, told) = (ring.clone(), told.clone());
            thread::spawn(move || {
                ring.try_push(2, Outside).unwrap();
                told.store(true, Release);
            })
        };
        if told.load(Acquire) {
            assert_ne!(ring.try_pop(), Err(PopError::Empty));
        }
        slow.join().unwrap();
        teller.join().unwrap();
    });
}

/// Whoever has popped from a full ring finds room, or one slot not back yet, until others have pushed
/// as much.
#[test]
fn never_full_after_ones_own_pop() {
    model(BOUND, || {
        let ring = ring(2);
        assert_eq!(ring.push_batch_with(2, Inside, || 0), Ok(2));
        let pop_then_push = |ring: &MpmcRing<u32>| {
            assert!(pop(ring).is_some());
            while ring.try_push(1, Inside).is_err() {
                assert!(!ring.is_full());
                thread::yield_now();
            }
        };
        let other = {
            let ring = ring.clone();
            thread::spawn(move || pop_then_push(&ring))
        };
        pop_then_push(&ring);
        other.join().unwrap();
        assert!(ring.is_full());
    });
}

/// The same of the queue, which waits for the slot.
#[test]
fn push_waits_for_a_slot_that_is_being_read() {
    model(BOUND, || {
        let queue = queue(2);
        assert_eq!(queue.push_batch_copied(&[1, 2]), 2);
        let pop_then_push = |queue: &Queue<u32>| {
            assert!(queue.pop().is_some());
            queue.push(3).unwrap();
        };
        let other = {
            let queue = queue.clone();
            thread::spawn(move || pop_then_push(&queue))
        };
        pop_then_push(&queue);
        other.join().unwrap();
        assert_eq!(queue.len(), 2);
    });
}

/// Close against push: what was accepted is what the closer drains, and nothing comes later.
#[test]
fn close_is_atomic_with_acceptance() {
    model(BOUND, || {
        let ring = ring(2);
        let pushers: Vec<_> = [1, 2]
            .map(|value| {
                let ring = ring.clone();
                thread::spawn(move || ring.try_push(value, Outside).is_ok())
            })
            .into();
        ring.close(CLOSED_ALL);
        let drained = std::iter::from_fn(|| pop(&ring)).count();
        let accepted = pushers.into_iter().map(|pusher| pusher.join().unwrap());
        assert_eq!(accepted.filter(|&accepted| accepted).count(), drained);
        assert!(ring.is_empty());
    });
}

/// A queue and how often each of its tasks has run.
struct Tasks {
    queue: TaskQueue,
    runs: Arc<Vec<AtomicUsize>>,
}

impl Tasks {
    fn new(capacity: usize, count: usize) -> Arc<Self> {
        let runs = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
        Arc::new(Self { queue: TaskQueue::new(capacity).unwrap(), runs })
    }

    fn push(&self, id: usize) -> bool {
        let runs = self.runs.clone();
        let work = move || {
            runs[id].fetch_add(1, Relaxed);
        };
        self.queue.push_work(Lane::Critical, work, Inside).is_ok()
    }

    fn run_all(&self, local: &LocalQueue) {
        while let Some(task) = local.next() {
            assert!(task.run_caught().is_ok());
        }
    }

    fn claim_and_run_one(&self, local: &LocalQueue, max: usize) -> bool {
        let task = match self.queue.claim(local, &mut Turn::default(), max) {
            Claimed::Some(task) => task,
            Claimed::Empty | Claimed::Busy => return false,
        };
        assert!(task.run_caught().is_ok());
        true
    }

    fn assert_each_ran(&self, times: usize) {
        assert!(self.runs.iter().all(|runs| runs.load(Relaxed) == times));
    }
}

/// The owner works its local queue off while a thief takes the rest of it, and a producer reuses the slots
/// at once: every task runs once.
#[test]
fn hand_next_against_steal() {
    model(BOUND, || {
        let tasks = Tasks::new(4, 5);
        (0..4).for_each(|id| assert!(tasks.push(id)));
        let queues = Arc::new([LocalQueue::new(), LocalQueue::new()]);
        assert!(tasks.claim_and_run_one(&queues[0], 4));
        let thief = {
            let (tasks, queues) = (tasks.clone(), queues.clone());
            thread::spawn(move || {
                if let Some(task) = queues[0].steal(&queues[1]) {
                    task.run();
                }
                tasks.run_all(&queues[1]);
            })
        };
        let producer = {
            let tasks = tasks.clone();
            thread::spawn(move || assert!(tasks.push(4)))
        };
        tasks.run_all(&queues[0]);
        thief.join().unwrap();
        producer.join().unwrap();
        assert!(tasks.claim_and_run_one(&queues[0], 4));
        tasks.assert_each_ran(1);
    });
}

/// A thief looks while the owner is still claiming and installing, and the owner claims again
/// after it was robbed: the thief finds nothing or what is whole.
#[test]
fn hand_install_against_steal() {
    model(BOUND, || {
        let tasks = Tasks::new(4, 4);
        let queues = Arc::new([LocalQueue::new(), LocalQueue::new()]);
        (0..2).for_each(|id| assert!(tasks.push(id)));
        let thief = {
            let (tasks, queues) = (tasks.clone(), queues.clone());
            thread::spawn(move || {
                if let Some(task) = queues[0].steal(&queues[1]) {
                    task.run();
                }
                tasks.run_all(&queues[1]);
            })
        };
        assert!(tasks.claim_and_run_one(&queues[0], 2));
        tasks.run_all(&queues[0]);
        (2..4).for_each(|id| assert!(tasks.push(id)));
        assert!(tasks.claim_and_run_one(&queues[0], 2));
        tasks.run_all(&queues[0]);
        thief.join().unwrap();
        // While its local queue was being stolen the owner claimed only one.
        while tasks.claim_and_run_one(&queues[0], 2) {
            tasks.run_all(&queues[0]);
        }
        tasks.assert_each_ran(1);
    });
}

/// A thief whose own local queue is being robbed keeps its fingers off others, until that queue is free.
#[test]
fn hand_steal_while_being_robbed() {
    model(BOUND, || {
        let tasks = Tasks::new(4, 5);
        let queues = Arc::new([LocalQueue::new(), LocalQueue::new(), LocalQueue::new()]);
        (0..3).for_each(|id| assert!(tasks.push(id)));
        assert!(tasks.claim_and_run_one(&queues[2], 3));
        (3..5).for_each(|id| assert!(tasks.push(id)));
        assert!(tasks.claim_and_run_one(&queues[0], 2));
        let robber = {
            let (tasks, queues) = (tasks.clone(), queues.clone());
            thread::spawn(move || {
                if let Some(task) = queues[0].steal(&queues[1]) {
                    task.run();
                }
                tasks.run_all(&queues[1]);
            })
        };
        tasks.run_all(&queues[0]);
        if let Some(task) = queues[2].steal(&queues[0]) {
            task.run();
        }
        tasks.run_all(&queues[0]);
        robber.join().unwrap();
        tasks.run_all(&queues[2]);
        tasks.assert_each_ran(1);
    });
}

/// The links of a few objects, each guarded by a mark that says whether it is queued.
struct Objects {
    links: Vec<AtomicU32>,
    taken: Vec<AtomicUsize>,
}

impl Objects {
    fn new(count: usize) -> Self {
        Self {
            links: (0..count).map(|_| AtomicU32::new(NONE)).collect(),
            taken: (0..count).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn take(&self, index: u32) {
        self.taken[index as usize].fetch_add(1, Relaxed);
    }

    fn take_all_of(&self, mut chain: Chain) -> Vec<u32> {
        let order: Vec<u32> = std::iter::from_fn(|| chain.pop(self)).collect();
        order.iter().for_each(|&index| self.take(index));
        order
    }

    fn taken(&self) -> Vec<usize> {
        self.taken.iter().map(|taken| taken.load(Relaxed)).collect()
    }
}

impl Links for Objects {
    fn next(&self, index: u32) -> &AtomicU32 {
        &self.links[index as usize]
    }
}

/// Two pushers, one of which brings a chain, against a taker who pushes what it took again: the
/// next taker finds every object, the older of a pusher's objects first.
#[test]
fn stack_push_against_take_all() {
    model(BOUND, || {
        let parts = Arc::new((IntrusiveStack::new(), Objects::new(4)));
        let single = {
            let parts = parts.clone();
            thread::spawn(move || {
                parts.0.push(0, &parts.1);
                parts.0.push(1, &parts.1);
            })
        };
        let chain = {
            let parts = parts.clone();
            thread::spawn(move || {
                parts.1.next(3).store(2, Relaxed);
                parts.0.push_chain(3, 2, &parts.1);
            })
        };
        let (stack, objects) = &*parts;
        let first = objects.take_all_of(stack.take_all(objects));
        if let Some(&again) = first.first() {
            stack.push(again, objects);
        }
        single.join().unwrap();
        chain.join().unwrap();
        let second = objects.take_all_of(stack.take_all(objects));
        for order in [&first, &second] {
            let place = |index| order.iter().position(|&other| other == index);
            let in_order = |older, younger| match (place(older), place(younger)) {
                (Some(older), Some(younger)) => older < younger,
                _ => true,
            };
            assert!(first.first() == Some(&0) || in_order(0, 1));
            assert!(first.first() == Some(&2) || in_order(2, 3));
        }
        let twice = first.first().copied();
        for (index, &taken) in objects.taken().iter().enumerate() {
            assert_eq!(taken, if Some(index as u32) == twice { 2 } else { 1 });
        }
    });
}

/// The owner pops its chain, and makes what it popped runnable again, while a thief takes the rest:
/// every object is taken once per activation.
#[test]
fn chain_pop_against_steal() {
    model(BOUND, || {
        let parts =
            Arc::new((IntrusiveStack::new(), Objects::new(3), [0, 1].map(|_| LocalChain::new())));
        let (stack, objects, queues) = &*parts;
        (0..3).for_each(|index| stack.push(index, objects));
        queues[0].install(stack.take_all(objects));
        let thief = {
            let parts = parts.clone();
            thread::spawn(move || {
                let (stack, objects, queues) = &*parts;
                let Some(first) = queues[0].steal(&queues[1], objects) else { return 0 };
                objects.take(first);
                // Runnable again at once: its link changes while the owner may still read it.
                stack.push(first, objects);
                while let Some(index) = queues[1].pop(objects) {
                    objects.take(index);
                }
                1
            })
        };
        let mut pushed = 3;
        if let Some(first) = queues[0].pop(objects) {
            objects.take(first);
            stack.push(first, objects);
            pushed += 1;
        }
        while let Some(index) = queues[0].pop(objects) {
            objects.take(index);
        }
        // Robbed or done: the next chain is the owner's alone.
        queues[0].install(stack.take_all(objects));
        while let Some(index) = queues[0].pop(objects) {
            objects.take(index);
        }
        pushed += thief.join().unwrap();
        objects.take_all_of(stack.take_all(objects));
        assert_eq!(objects.taken().iter().sum::<usize>(), pushed);
        assert!(objects.taken().iter().all(|&taken| (1..=3).contains(&taken)));
    });
}

/// A thief looks while the owner installs: it takes nothing or the whole chain, links and all.
#[test]
fn chain_install_against_steal() {
    model(BOUND, || {
        let parts =
            Arc::new((IntrusiveStack::new(), Objects::new(2), [0, 1].map(|_| LocalChain::new())));
        let thief = {
            let parts = parts.clone();
            thread::spawn(move || {
                let (_, objects, queues) = &*parts;
                if let Some(first) = queues[0].steal(&queues[1], objects) {
                    objects.take(first);
                }
                while let Some(index) = queues[1].pop(objects) {
                    objects.take(index);
                }
            })
        };
        let (stack, objects, queues) = &*parts;
        (0..2).for_each(|index| stack.push(index, objects));
        queues[0].install(stack.take_all(objects));
        while let Some(index) = queues[0].pop(objects) {
            objects.take(index);
        }
        thief.join().unwrap();
        assert_eq!(objects.taken(), [1, 1]);
    });
}

/// A leader fills the room it saw, twice round a ring of two, against two poppers: every entry comes
/// out once, and everything it had room for fits.
#[test]
fn surplus_push_against_pop() {
    model(BOUND, || {
        let surplus = Arc::new(Surplus::new("surplus", 2).unwrap());
        let consumer = {
            let surplus = surplus.clone();
            thread::spawn(move || [surplus.pop(), surplus.pop()])
        };
        let mut pushed = 0;
        let mut popped = Vec::new();
        for _ in 0..2 {
            let entries: Vec<u64> = (pushed..pushed + surplus.room() as u64).collect();
            assert_eq!(surplus.push_batch(&entries), entries.len());
            pushed += entries.len() as u64;
            popped.extend(surplus.pop());
        }
        popped.extend(consumer.join().unwrap().into_iter().flatten());
        popped.extend(std::iter::from_fn(|| surplus.pop()));
        popped.sort_unstable();
        assert_eq!(popped, (0..pushed).collect::<Vec<_>>());
    });
}

/// Leadership moves on between two pushes: a popper sees both leaders' entries.
#[test]
fn surplus_of_two_leaders() {
    model(BOUND, || {
        let surplus = Arc::new(Surplus::new("surplus", 2).unwrap());
        let offered = Arc::new(AtomicBool::new(false));
        let consumer = {
            let surplus = surplus.clone();
            thread::spawn(move || [surplus.pop(), surplus.pop()])
        };
        let second = {
            let (surplus, offered) = (surplus.clone(), offered.clone());
            thread::spawn(move || offered.load(Acquire) && surplus.push_batch(&[2]) == 1)
        };
        assert_eq!(surplus.push_batch(&[1]), 1);
        offered.store(true, Release);
        let expected = if second.join().unwrap() { vec![1, 2] } else { vec![1] };
        let mut popped: Vec<u64> = consumer.join().unwrap().into_iter().flatten().collect();
        popped.extend(std::iter::from_fn(|| surplus.pop()));
        assert_eq!(popped, expected);
    });
}

fn queue<T>(capacity: usize) -> Arc<Queue<T>> {
    Arc::new(Queue::new(capacity).unwrap())
}

/// A consumer that would sleep for ever against a push: a lost wake-up is a deadlock here.
#[test]
fn pop_timeout_loses_no_wake() {
    model(BOUND, || {
        let queue = queue(1);
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || queue.push(7).unwrap())
        };
        assert_eq!(queue.pop_timeout(Duration::MAX), Some(7));
        producer.join().unwrap();
    });
}

/// Two consumers, two pushes: each wakes somebody.
#[test]
fn each_push_wakes_a_consumer() {
    // Bound 2 ends in seconds; with 3, the yields of two sleepers and a pusher go past the length
    // of an execution that loom allows.
    model(2, || {
        let queue = queue(2);
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop_timeout(Duration::MAX).unwrap())
        };
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(1).unwrap();
                queue.push(2).unwrap();
            })
        };
        let sum = queue.pop_timeout(Duration::MAX).unwrap() + consumer.join().unwrap();
        producer.join().unwrap();
        assert_eq!(sum, 3);
    });
}

/// A producer that waits for room against a pop.
#[test]
fn push_timeout_loses_no_wake() {
    model(BOUND, || {
        let queue = queue(1);
        queue.push(1).unwrap();
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop())
        };
        queue.push_timeout(2, Duration::MAX).unwrap();
        assert_eq!(consumer.join().unwrap(), Some(1));
        assert_eq!(queue.pop(), Some(2));
    });
}

/// Close against a sleeping consumer and a push: it ends, and what was accepted came out.
#[test]
fn close_wakes_those_who_wait() {
    model(BOUND, || {
        let queue = queue(1);
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || queue.push(7).is_ok())
        };
        let closer = {
            let queue = queue.clone();
            thread::spawn(move || queue.close())
        };
        let popped = queue.pop_timeout(Duration::MAX);
        closer.join().unwrap();
        assert_eq!(producer.join().unwrap(), popped.is_some());
    });
}

/// A task's captures reach the thread that runs it.
#[test]
fn a_task_carries_what_was_written_before() {
    model(BOUND, || {
        let tasks = Arc::new(TaskQueue::new(1).unwrap());
        let written = Arc::new(AtomicU32::new(0));
        let runner = {
            let tasks = tasks.clone();
            thread::spawn(move || {
                if let Claimed::Some(task) =
                    tasks.claim(&LocalQueue::new(), &mut Turn::default(), 1)
                {
                    assert!(task.run_caught().is_ok());
                }
            })
        };
        // Relaxed: only the queue orders this.
        written.store(1, Relaxed);
        let task = Erased::new(move || assert_eq!(written.load(Relaxed), 1));
        assert!(tasks.push(Lane::Critical, task, Outside).is_ok());
        runner.join().unwrap();
    });
}
