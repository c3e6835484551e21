//! The hub beside a plain single-threaded model of it: any sequence of operations gives the same receipts,
//! the same deliveries in the same order, and the same lag marks.
//!
//! The pool has no thread of its own: handlers run when the test joins it, and not before.

use crate::common::hang_guard;
use crate::kit::Log;
use crate::kit::told;
use paceline::hub::{
    Execution, Hub, Message, Overflow, Pattern, Priority, Subscription, Unsubscribe,
};
use paceline::{Error, Pool};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

const KEYS: [&str; 5] = ["a", "a.b", "a.c", "a.b.c", "b.b"];
const PATTERNS: [&str; 8] = ["a", "a.b", "a.*", "a.>", ">", "*.b", "b.b", "*.*.c"];

#[derive(Clone, Debug)]
enum Step {
    Subscribe { pattern: usize, capacity: usize, overflow: usize, execution: usize, ranked: bool },
    Unsubscribe { which: usize, drain: bool },
    Publish { key: usize, priority: usize },
    Batch { key: usize, count: u64 },
    Together { keys: Vec<usize> },
    Run,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..PATTERNS.len(), 1..4usize, 0..4usize, 0..4usize, any::<bool>()).prop_map(
            |(pattern, capacity, overflow, execution, ranked)| Step::Subscribe {
                pattern, capacity, overflow, execution, ranked
            }
        ),
        1 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(which, drain)| Step::Unsubscribe { which: which.index(1000), drain }),
        6 => (0..KEYS.len(), 0..4usize).prop_map(|(key, priority)| Step::Publish { key, priority }),
        1 => (0..KEYS.len(), 0..6u64).prop_map(|(key, count)| Step::Batch { key, count }),
        2 => prop::collection::vec(0..KEYS.len(), 0..5).prop_map(|keys| Step::Together { keys }),
        1 => Just(Step::Run),
    ]
}

/// One subscription, in the model.
struct Modelled {
    pattern: Pattern,
    capacity: usize,
    overflow: Overflow,
    execution: Execution,
    ranked: bool,
    open: bool,
    /// What waits: key, priority, number, lost before.
    queue: VecDeque<(usize, usize, u64, u64)>,
    lost: u64,
    lines: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Told {
    matched: u64,
    enqueued: u64,
    dropped: u64,
    rejected: u64,
}

impl Modelled {
    fn offer(&mut self, key: usize, priority: usize, number: u64, told: &mut Told) {
        if !self.open || !self.pattern.matches(KEYS[key]) {
            return;
        }
        told.matched += 1;
        if self.execution == Execution::Inline {
            told.enqueued += 1;
            return self.deliver((key, priority, number, 0));
        }
        if self.overflow == Overflow::Conflate
            && let Some(older) = self.queue.iter_mut().find(|entry| entry.0 == key)
        {
            told.enqueued += 1;
            *older = (key, priority, number, older.3 + 1);
            return;
        }
        if self.queue.len() >= self.capacity {
            match self.overflow {
                Overflow::Reject => {
                    told.rejected += 1;
                    self.lost += 1;
                    return;
                }
                Overflow::DropNewest => {
                    told.dropped += 1;
                    self.lost += 1;
                    return;
                }
                _ => {
                    let at = self.last_place();
                    let oldest = self.queue.remove(at).unwrap();
                    match self.next_place() {
                        Some(next) => self.queue[next].3 += oldest.3 + 1,
                        None => self.lost += oldest.3 + 1,
                    }
                }
            }
        }
        told.enqueued += 1;
        let lost = std::mem::take(&mut self.lost);
        self.queue.push_back((key, priority, number, lost));
    }

    /// Whether it has no room for messages of all these keys, and would refuse one.
    fn refuses(&self, keys: &[usize]) -> bool {
        let count = keys.iter().filter(|&&key| self.pattern.matches(KEYS[key])).count();
        let may = self.open
            && self.execution != Execution::Inline
            && self.overflow == Overflow::Reject
            && count > 0;
        may && self.queue.len() + count > self.capacity
    }

    /// Which one would be delivered next.
    fn next_place(&self) -> Option<usize> {
        let rank = |&place: &usize| if self.ranked { self.queue[place].1 } else { 0 };
        let best = (0..self.queue.len()).map(|place| rank(&place)).max()?;
        (0..self.queue.len()).find(|place| rank(place) == best)
    }

    /// Which one is dropped for another: the first of the least priority.
    fn last_place(&self) -> usize {
        let rank = |place: usize| if self.ranked { self.queue[place].1 } else { 0 };
        let least = (0..self.queue.len()).map(rank).min().unwrap();
        (0..self.queue.len()).find(|&place| rank(place) == least).unwrap()
    }

    fn deliver(&mut self, (key, _, number, lost): (usize, usize, u64, u64)) {
        self.lines.push(format!("{} {number} -{lost}", KEYS[key]));
    }

    fn run(&mut self) {
        while let Some(place) = self.next_place() {
            let entry = self.queue.remove(place).unwrap();
            self.deliver(entry);
        }
    }
}

fn run_all(hub: &Hub) {
    while hub.audit().waiting > 0 {
        hub.pool().join(Duration::from_micros(200)).unwrap();
    }
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let pool = Pool::builder().threads(0).max_joined(1).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let mut modelled: Vec<Modelled> = Vec::new();
    let mut real: Vec<(Subscription, Log)> = Vec::new();
    // Strand: the order of all, as it must come.
    let all = Log::default();
    let mut number = 0;
    for step in steps {
        match step {
            Step::Subscribe { pattern, capacity, overflow, execution, ranked } => {
                let overflow = [
                    Overflow::Reject,
                    Overflow::DropNewest,
                    Overflow::DropOldest,
                    Overflow::Conflate,
                ][overflow];
                let execution = [
                    Execution::Serial,
                    Execution::Inline,
                    Execution::Concurrent(2),
                    Execution::Strand,
                ][execution];
                let ranked = ranked && overflow != Overflow::Conflate;
                let log = Log::default();
                let (into, order) = (log.clone(), all.clone());
                let mut settings =
                    hub.subscription(PATTERNS[pattern]).capacity(capacity).overflow(overflow);
                if ranked {
                    settings = settings.by_priority();
                }
                let subscription = settings
                    .execution(execution)
                    .serve_shared(move |message: &Message<'_>| {
                        let text = String::from_utf8_lossy(message.payload()).into_owned();
                        if execution == Execution::Strand {
                            order.add(text.clone());
                        }
                        into.add(format!("{} {text} -{}", message.key(), message.lost_before()));
                    })
                    .unwrap();
                real.push((subscription, log));
                modelled.push(Modelled {
                    pattern: Pattern::new(PATTERNS[pattern]).unwrap(),
                    capacity,
                    overflow,
                    execution,
                    ranked: ranked && execution != Execution::Strand,
                    open: true,
                    queue: VecDeque::new(),
                    lost: 0,
                    lines: Vec::new(),
                });
            }
            Step::Unsubscribe { which, drain } if !real.is_empty() => {
                let which = which % real.len();
                let how = if drain { Unsubscribe::Drain } else { Unsubscribe::Async };
                let _later = real[which].0.unsubscribe(how).unwrap();
                modelled[which].open = false;
                if !drain {
                    modelled[which].queue.clear();
                }
            }
            Step::Publish { key, priority } => {
                number += 1;
                let publication = hub.message(KEYS[key]).priority(Priority::ALL[priority]);
                let receipt = told(publication.payload(number.to_string()).publish());
                let mut counts = Told::default();
                for one in &mut modelled {
                    one.offer(key, priority, number, &mut counts);
                }
                let answer = Told {
                    matched: receipt.matched,
                    enqueued: receipt.enqueued,
                    dropped: receipt.dropped,
                    rejected: receipt.rejected,
                };
                prop_assert_eq!(answer, counts);
                prop_assert_eq!(receipt.sequence, number);
            }
            Step::Batch { key, count } => {
                let texts = (number + 1..=number + count).map(|number| number.to_string());
                let receipt = told(hub.publish_batch(KEYS[key], texts));
                let mut counts = Told::default();
                for _ in 0..count {
                    number += 1;
                    for one in &mut modelled {
                        one.offer(key, Priority::Normal as usize, number, &mut counts);
                    }
                }
                let answer = Told {
                    matched: receipt.matched,
                    enqueued: receipt.enqueued,
                    dropped: receipt.dropped,
                    rejected: receipt.rejected,
                };
                prop_assert_eq!(answer, counts);
            }
            Step::Together { keys } => {
                let refuses = modelled.iter().any(|one| one.refuses(&keys));
                let texts = (number + 1..).map(|number| number.to_string());
                let messages = keys.iter().zip(texts);
                let messages = messages.map(|(&key, text)| hub.message(KEYS[key]).payload(text));
                let receipt = match hub.publish_all(messages) {
                    Ok(receipt) => receipt,
                    Err(Error::MailboxFull { .. }) => {
                        prop_assert!(refuses);
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                prop_assert!(!refuses, "somebody should have refused: {:?}", receipt);
                let mut counts = Told::default();
                for key in keys {
                    number += 1;
                    for one in &mut modelled {
                        one.offer(key, Priority::Normal as usize, number, &mut counts);
                    }
                    prop_assert_eq!(receipt.sequence.max(number), receipt.sequence);
                }
                let answer = Told {
                    matched: receipt.matched,
                    enqueued: receipt.enqueued,
                    dropped: receipt.dropped,
                    rejected: receipt.rejected,
                };
                prop_assert_eq!(answer, counts);
                prop_assert_eq!(counts.rejected, 0);
            }
            Step::Unsubscribe { .. } => {}
            Step::Run => {
                run_all(&hub);
                modelled.iter_mut().for_each(Modelled::run);
            }
        }
        for (one, (subscription, _)) in modelled.iter().zip(&real) {
            prop_assert_eq!(subscription.stats().waiting, one.queue.len() as u64);
        }
    }
    run_all(&hub);
    modelled.iter_mut().for_each(Modelled::run);
    for (one, (_, log)) in modelled.iter().zip(&real) {
        prop_assert_eq!(&one.lines, &log.lines());
    }
    // Conflation keeps a message's place and renews its content, so only numbers without it are sorted.
    let conflates =
        |one: &Modelled| one.overflow == Overflow::Conflate && one.execution == Execution::Strand;
    if !modelled.iter().any(conflates) {
        let order: Vec<u64> = all.lines().iter().map(|line| line.parse().unwrap()).collect();
        prop_assert!(order.is_sorted(), "the strand's order: {:?}", order);
    }
    let audit = hub.audit();
    prop_assert!(audit.is_balanced(), "{:?}", audit);
    drop(real);
    let audit = hub.audit();
    prop_assert!(audit.is_balanced() && audit.waiting == 0, "{:?}", audit);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_hub_does_as_its_model(steps in prop::collection::vec(step(), 1..60)) {
        let _guard = hang_guard();
        check(steps)?;
    }
}
