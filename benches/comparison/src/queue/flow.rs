//! Drives one queue with as many producers as consumers and counts what comes out.
//!
//! A thread that cannot go on (queue full or empty) spins and then yields, by the same `Backoff`
//! for every queue. Items carry numbers; at the end everything that went in must have come out,
//! by count and by sum.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::{Backoff, CachePadded};

use super::rivals::{Consumer, Item, Producer, Rival};

/// One measurement.
#[derive(Clone, Copy)]
pub struct Flow {
    pub capacity: usize,
    /// Producers, and as many consumers.
    pub threads: usize,
    pub window: Duration,
}

const MAX_THREADS: usize = 4;
/// Nothing arrives for so long although it was sent: it is lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a thread has done so far. Only it writes; the lines are read when a window begins or ends.
#[derive(Default)]
struct Tally {
    items: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    fn add(&self, items: u64, sum: u64) {
        self.items.store(self.items.load(Ordering::Relaxed) + items, Ordering::Relaxed);
        let sum = self.sum.load(Ordering::Relaxed).wrapping_add(sum);
        // Release: pairs with the Acquire in `total`, which then sees the items too.
        self.sum.store(sum, Ordering::Release);
    }
}

#[derive(Default)]
struct Control {
    stop: CachePadded<AtomicBool>,
    producing: CachePadded<AtomicUsize>,
    /// A consumer has waited in vain for what was pushed.
    lost: CachePadded<AtomicBool>,
    pushed: [CachePadded<Tally>; MAX_THREADS],
    popped: [CachePadded<Tally>; MAX_THREADS],
}

fn total(tallies: &[CachePadded<Tally>]) -> (u64, u64) {
    tallies.iter().fold((0, 0), |(items, sum), tally| {
        let more = tally.sum.load(Ordering::Acquire);
        (items + tally.items.load(Ordering::Relaxed), sum.wrapping_add(more))
    })
}

impl Flow {
    /// Items per second through `Q`.
    pub fn run<T: Item, Q: Rival<T>>(self) -> Result<f64, String> {
        let queue = Q::new(self.capacity, self.threads);
        let control = Control::default();
        control.producing.store(self.threads, Ordering::Relaxed);
        let rate = std::thread::scope(|scope| {
            for index in 0..self.threads {
                let (queue, control) = (&queue, &control);
                scope.spawn(move || produce::<T, Q>(queue, control, index));
                scope.spawn(move || consume::<T, Q>(queue, control, index));
            }
            self.watch(&control)
        });
        let (pushed, popped) = (total(&control.pushed), total(&control.popped));
        if pushed == popped {
            Ok(rate)
        } else {
            Err(format!("in (count, sum): {pushed:?}, out: {popped:?}"))
        }
    }

    fn watch(self, control: &Control) -> f64 {
        std::thread::sleep(self.window / 3);
        let (start, before) = (Instant::now(), total(&control.popped).0);
        std::thread::sleep(self.window);
        let (elapsed, after) = (start.elapsed(), total(&control.popped).0);
        control.stop.store(true, Ordering::Relaxed);
        (after - before) as f64 / elapsed.as_secs_f64()
    }
}

fn produce<T: Item, Q: Rival<T>>(queue: &Q, control: &Control, index: usize) {
    let mut producer = queue.producer();
    let mut next = 0u64;
    while !control.stop.load(Ordering::Relaxed) {
        let items: [T; 16] = std::array::from_fn(|i| T::new(next + i as u64));
        let items = &items[..Q::BATCH];
        if !push_all(&mut producer, items, &control.lost) {
            break;
        }
        let sum = items.iter().fold(0, |sum: u64, item| sum.wrapping_add(item.check()));
        control.pushed[index].add(items.len() as u64, sum);
        next += items.len() as u64;
    }
    // Release: pairs with the Acquire in `finished`, after which the tallies are final.
    control.producing.fetch_sub(1, Ordering::Release);
}

/// False if the consumers have given up.
fn push_all<T: Item>(producer: &mut impl Producer<T>, mut items: &[T], lost: &AtomicBool) -> bool {
    let backoff = Backoff::new();
    while !items.is_empty() {
        match producer.push(items) {
            0 if lost.load(Ordering::Relaxed) => return false,
            0 => backoff.snooze(),
            n => items = &items[n..],
        }
    }
    true
}

fn consume<T: Item, Q: Rival<T>>(queue: &Q, control: &Control, index: usize) {
    let mut consumer = queue.consumer();
    let backoff = Backoff::new();
    let mut stopping: Option<Instant> = None;
    loop {
        let mut sum = 0u64;
        let popped = consumer.pop(|item| sum = sum.wrapping_add(item.check()));
        if popped > 0 {
            control.popped[index].add(popped as u64, sum);
            backoff.reset();
        } else if control.stop.load(Ordering::Relaxed) {
            let since = *stopping.get_or_insert_with(Instant::now);
            control.lost.fetch_or(since.elapsed() > PATIENCE, Ordering::Relaxed);
            if finished(control) || control.lost.load(Ordering::Relaxed) {
                return;
            }
            std::thread::yield_now();
        } else {
            backoff.snooze();
        }
    }
}

fn finished(control: &Control) -> bool {
    control.producing.load(Ordering::Acquire) == 0
        && total(&control.pushed).0 == total(&control.popped).0
}
