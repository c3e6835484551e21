use crate::queue::activations::{Chain, NONE};
use crate::queue::{IntrusiveStack, Links, LocalChain, Surplus};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::thread;

struct Objects(Vec<AtomicU32>);

impl Objects {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU32::new(NONE)).collect())
    }
}

impl Links for Objects {
    fn next(&self, index: u32) -> &AtomicU32 {
        &self.0[index as usize]
    }
}

fn all(mut chain: Chain, objects: &Objects) -> Vec<u32> {
    std::iter::from_fn(|| chain.pop(objects)).collect()
}

#[test]
fn the_surplus_takes_what_fits_and_gives_it_in_order() {
    let surplus = Surplus::new("surplus", 3).unwrap();
    let mut next_out = 0;
    for lap in 0..10 {
        let entries: Vec<u64> = (lap * 4..lap * 4 + 6).collect();
        assert_eq!(surplus.room(), 4);
        assert_eq!(surplus.push_batch(&entries), 4);
        assert_eq!((surplus.room(), surplus.len()), (0, 4));
        for _ in 0..4 {
            assert_eq!(surplus.pop(), Some(next_out));
            next_out += 1;
        }
        assert_eq!(surplus.pop(), None);
        assert!(surplus.is_empty());
        assert_eq!((surplus.head(), surplus.tail()), (next_out, next_out));
    }
    assert!(Surplus::new("surplus", 0).is_err());
}

/// One producer fills the room it saw; three consumers get every entry once and in order.
#[test]
fn what_the_surplus_had_room_for_always_fits() {
    const COUNT: u64 = 200_000;
    let surplus = Surplus::new("surplus", 16).unwrap();
    let popped = AtomicUsize::new(0);
    let sums = thread::scope(|scope| {
        let consumers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| drain(&surplus, &popped, COUNT as usize))).collect();
        let mut next = 0;
        while next < COUNT {
            let room = surplus.room() as u64;
            let batch: Vec<u64> = (next..COUNT.min(next + room)).collect();
            assert_eq!(surplus.push_batch(&batch), batch.len());
            next += batch.len() as u64;
            if room == 0 {
                thread::yield_now();
            }
        }
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum::<u64>()
    });
    assert_eq!(sums, COUNT * (COUNT - 1) / 2);
}

fn drain(surplus: &Surplus, popped: &AtomicUsize, count: usize) -> u64 {
    let (mut sum, mut last) = (0, None);
    while popped.load(Relaxed) < count {
        match surplus.pop() {
            Some(entry) => {
                assert!(last < Some(entry));
                last = Some(entry);
                sum += entry;
                popped.fetch_add(1, Relaxed);
            }
            None => thread::yield_now(),
        }
    }
    sum
}

#[test]
fn the_stack_gives_the_oldest_first() {
    let (stack, objects) = (IntrusiveStack::new(), Objects::new(8));
    assert!(stack.is_empty() && stack.age().is_none());
    assert!(stack.take_all(&objects).is_empty());
    for index in [3, 1, 4] {
        stack.push(index, &objects);
    }
    // A chain of two, the younger one first.
    objects.next(5).store(2, Relaxed);
    stack.push_chain(5, 2, &objects);
    assert!(!stack.is_empty());
    assert_eq!(all(stack.take_all(&objects), &objects), [3, 1, 4, 2, 5]);
    assert!(stack.is_empty());
}

#[test]
fn the_age_of_a_stack_changes_when_it_is_taken_and_only_then() {
    let (stack, objects) = (IntrusiveStack::new(), Objects::new(4));
    stack.push(0, &objects);
    let age = stack.age();
    stack.push(1, &objects);
    assert!(age.is_some() && stack.age() == age);
    let _ = all(stack.take_all(&objects), &objects);
    stack.push(0, &objects);
    assert_ne!(stack.age(), age);
}

#[test]
fn a_chain_in_hand_is_popped_by_its_owner_or_stolen_whole() {
    let (stack, objects) = (IntrusiveStack::new(), Objects::new(8));
    let (owner, thief) = (LocalChain::new(), LocalChain::new());
    (0..5).for_each(|index| stack.push(index, &objects));
    owner.install(stack.take_all(&objects));
    assert_eq!(owner.pop(&objects), Some(0));
    let age = owner.age();
    assert!(age.is_some());
    assert_eq!(owner.pop(&objects), Some(1));
    assert_ne!(owner.age(), age);
    assert_eq!(owner.steal(&thief, &objects), Some(2));
    assert!(owner.is_empty() && owner.age().is_none() && owner.pop(&objects).is_none());
    assert_eq!(owner.steal(&LocalChain::new(), &objects), None);
    // The robbed owner's next chain is its own.
    stack.push(0, &objects);
    owner.install(stack.take_all(&objects));
    assert_eq!(owner.pop(&objects), Some(0));
    assert_eq!(
        (thief.pop(&objects), thief.pop(&objects), thief.pop(&objects)),
        (Some(3), Some(4), None)
    );
}

/// Every object is activated again and again while workers take chains and rob each other: it is
/// never in two places, so a mark that it is queued never meets itself.
#[test]
fn an_activation_is_in_one_place_at_a_time() {
    const OBJECTS: usize = 12;
    const RUNS: usize = 40_000;
    let (stack, objects) = (IntrusiveStack::new(), Objects::new(OBJECTS));
    let chains: [LocalChain; 4] = std::array::from_fn(|_| LocalChain::new());
    let queued: Vec<_> = (0..OBJECTS).map(|_| AtomicBool::new(true)).collect();
    let runs = AtomicUsize::new(0);
    (0..OBJECTS as u32).for_each(|index| stack.push(index, &objects));
    let left: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..chains.len())
            .map(|own| {
                let (stack, objects, chains, queued, runs) =
                    (&stack, &objects, &chains, &queued, &runs);
                scope.spawn(move || {
                    let mut retired = 0;
                    while runs.load(Relaxed) < RUNS {
                        let Some(index) = next(stack, objects, chains, own) else {
                            thread::yield_now();
                            continue;
                        };
                        assert!(queued[index as usize].swap(false, Relaxed));
                        if runs.fetch_add(1, Relaxed) < RUNS {
                            assert!(!queued[index as usize].swap(true, Relaxed));
                            stack.push(index, objects);
                        } else {
                            retired += 1;
                        }
                    }
                    retired
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let held: usize =
        chains.iter().map(|local| std::iter::from_fn(|| local.pop(&objects)).count()).sum();
    assert_eq!(left + held + all(stack.take_all(&objects), &objects).len(), OBJECTS);
}

fn next(
    stack: &IntrusiveStack,
    objects: &Objects,
    chains: &[LocalChain; 4],
    own: usize,
) -> Option<u32> {
    chains[own]
        .pop(objects)
        .or_else(|| {
            let mut chain = stack.take_all(objects);
            let first = chain.pop(objects)?;
            chains[own].install(chain);
            Some(first)
        })
        .or_else(|| {
            let others = (0..chains.len()).filter(|&other| other != own);
            others.into_iter().find_map(|other| chains[other].steal(&chains[own], objects))
        })
}
