use super::counted::Drops;
use crate::queue::Origin::{Inside, Outside};
use crate::queue::{Claimed, Erased, Lane, LocalQueue, PushError, TaskQueue, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

/// A queue whose tasks report who they are.
struct Reporting {
    queue: TaskQueue,
    sender: mpsc::Sender<(Lane, u32)>,
    reports: mpsc::Receiver<(Lane, u32)>,
}

impl Reporting {
    fn new(capacity: usize) -> Self {
        let (sender, reports) = mpsc::channel();
        Self { queue: TaskQueue::new(capacity).unwrap(), sender, reports }
    }

    fn push(&self, lane: Lane, ids: std::ops::Range<u32>) {
        for id in ids {
            let report = self.sender.clone();
            let work = move || report.send((lane, id)).unwrap();
            assert!(self.queue.push_work(lane, work, Outside).is_ok());
        }
    }

    fn run(&self, task: Erased) -> (Lane, u32) {
        task.run();
        self.reports.recv().unwrap()
    }

    fn claim(&self, local: &LocalQueue, turn: &mut Turn, max: usize) -> (Lane, u32) {
        match self.queue.claim(local, turn, max) {
            Claimed::Some(task) => self.run(task.into_task()),
            Claimed::Empty | Claimed::Busy => panic!("nothing was claimed"),
        }
    }
}

#[test]
fn a_batch_is_claimed_in_order_and_stays_stealable() {
    let lanes = Reporting::new(16);
    lanes.push(Lane::Normal, 0..10);
    let (mine, thief, mut turn) = (LocalQueue::new(), LocalQueue::new(), Turn::default());
    assert_eq!(lanes.claim(&mine, &mut turn, 6), (Lane::Normal, 0));
    assert_eq!((mine.len(), lanes.queue.len(Lane::Normal)), (5, 4));
    assert_eq!(lanes.run(mine.next().unwrap().into_task()), (Lane::Normal, 1));

    let age = mine.age();
    assert!(age.is_some() && age == mine.age());
    assert_eq!(lanes.run(mine.steal(&thief).unwrap()), (Lane::Normal, 2));
    assert_eq!((mine.len(), mine.age(), thief.len()), (0, None, 3));
    assert!(mine.next().is_none());
    assert!(mine.steal(&LocalQueue::new()).is_none());

    // The robbed owner goes on with what is left in the lane.
    assert_eq!(lanes.claim(&mine, &mut turn, 9), (Lane::Normal, 6));
    for id in 3..6 {
        assert_eq!(lanes.run(thief.next().unwrap().into_task()), (Lane::Normal, id));
    }
    assert!(thief.is_empty());
    assert!(lanes.queue.is_empty());
    assert_eq!(mine.len(), 3);
}

#[test]
fn with_tasks_in_hand_only_one_more_is_claimed() {
    let lanes = Reporting::new(16);
    lanes.push(Lane::Low, 0..4);
    let (local, mut turn) = (LocalQueue::new(), Turn::default());
    assert_eq!(lanes.claim(&local, &mut turn, 3), (Lane::Low, 0));
    lanes.push(Lane::Critical, 0..4);
    assert_eq!(lanes.claim(&local, &mut turn, 3), (Lane::Critical, 0));
    assert_eq!(local.len(), 2);
    assert_eq!(lanes.queue.len(Lane::Critical), 3);
}

#[test]
fn every_lane_gets_its_picks() {
    let lanes = Reporting::new(64);
    Lane::ALL.into_iter().for_each(|lane| lanes.push(lane, 0..64));
    let (local, mut turn) = (LocalQueue::new(), Turn::default());
    let mut picks = [0; 4];
    for _ in 0..64 {
        picks[lanes.claim(&local, &mut turn, 1).0 as usize] += 1;
    }
    assert_eq!(picks, [32, 18, 10, 4]);
}

#[test]
fn no_pick_is_wasted_on_an_empty_lane() {
    let lanes = Reporting::new(64);
    lanes.push(Lane::High, 0..64);
    lanes.push(Lane::Low, 0..64);
    let (local, mut turn) = (LocalQueue::new(), Turn::default());
    let mut picks = [0; 4];
    for _ in 0..64 {
        picks[lanes.claim(&local, &mut turn, 1).0 as usize] += 1;
    }
    assert_eq!(picks, [0, 60, 0, 4]);
    for _ in 0..64 {
        let _ = lanes.claim(&local, &mut turn, 1);
    }
    assert!(matches!(lanes.queue.claim(&local, &mut turn, 1), Claimed::Empty));
}

#[test]
fn ages_say_what_is_still_unclaimed() {
    let lanes = Reporting::new(8);
    lanes.push(Lane::Normal, 0..2);
    let seen = lanes.queue.ages();
    assert_eq!(seen, [0, 0, 2, 0]);
    let (local, mut turn) = (LocalQueue::new(), Turn::default());
    let _ = lanes.claim(&local, &mut turn, 1);
    lanes.push(Lane::Normal, 2..4);
    assert!(lanes.queue.heads()[2] < seen[2]);
    let _ = lanes.claim(&local, &mut turn, 1);
    assert!(lanes.queue.heads()[2] >= seen[2]);
    assert_eq!(lanes.queue.accepted(), 4);
}

/// Goal: a closure of any shape that is refused comes back whole, one that is taken is run or dropped, and what it has
/// captured is dropped once. Method: shapes that fill a slot, that lie in a box for their size or their alignment, and
/// one without a size.
#[test]
fn a_refused_closure_comes_back() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    struct Sizeless;
    impl Drop for Sizeless {
        fn drop(&mut self) {
            LEFT.fetch_add(1, Relaxed);
        }
    }
    #[repr(align(64))]
    struct Wide;

    let drops = Drops::default();
    comes_back(|| drops.count(), || drops.value());
    comes_back(|| drops.count(), || (drops.value(), [7; 5]));
    comes_back(|| drops.count(), || (drops.value(), [7; 6]));
    comes_back(|| drops.count(), || (drops.value(), Wide));
    comes_back(|| LEFT.load(Relaxed), || Sizeless);
}

fn comes_back<V: Send + 'static>(dropped: impl Fn() -> usize, value: impl Fn() -> V) {
    let before = dropped();
    let dropped = || dropped() - before;
    let queue = TaskQueue::new(1).unwrap();
    let work = || {
        let value = value();
        move || {
            assert!(std::ptr::from_ref(&value).is_aligned());
            std::panic::resume_unwind(Box::new(value))
        }
    };
    assert!(queue.push_work(Lane::Normal, work(), Outside).is_ok());
    let Err(PushError::Full(back)) = queue.push_work(Lane::Normal, work(), Outside) else {
        panic!("a full lane accepted")
    };
    assert_eq!(dropped(), 0);
    assert!(Erased::new(back).run_caught().is_err_and(|value| value.is::<V>()));
    assert_eq!(dropped(), 1);
    let local = LocalQueue::new();
    let Claimed::Some(task) = queue.claim(&local, &mut Turn::default(), 1) else {
        panic!("nothing was claimed")
    };
    assert!(task.run_caught().is_err_and(|value| value.is::<V>()));
    assert_eq!(dropped(), 2);
    assert!(queue.push_work(Lane::High, work(), Outside).is_ok());
    queue.close_outside();
    assert!(matches!(queue.push_work(Lane::Low, work(), Outside), Err(PushError::Closed(_))));
    assert!(queue.push_work(Lane::Low, work(), Inside).is_ok());
    queue.close_all();
    assert!(matches!(queue.push_work(Lane::Critical, work(), Inside), Err(PushError::Closed(_))));
    assert_eq!((dropped(), queue.accepted()), (4, 3));
    drop(queue);
    assert_eq!(dropped(), 6);
}

#[test]
fn a_batch_of_tasks_goes_in_as_far_as_there_is_room() {
    let queue = TaskQueue::new(4).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<_> = (0..6)
        .map(|_| {
            let runs = runs.clone();
            Erased::new(move || {
                runs.fetch_add(1, Relaxed);
            })
        })
        .collect();
    let mut make = tasks.drain(..);
    assert_eq!(queue.push_batch(Lane::Normal, 6, Outside, || make.next().unwrap()), Ok(4));
    assert_eq!(make.len(), 2);
    let (local, mut turn) = (LocalQueue::new(), Turn::default());
    let Claimed::Some(first) = queue.claim(&local, &mut turn, 4) else { panic!("nothing claimed") };
    assert!(first.run_caught().is_ok());
    while let Some(task) = local.next() {
        assert!(task.run_caught().is_ok());
    }
    assert_eq!(runs.load(Relaxed), 4);
}

/// Four workers claim batches, work them off and rob each other; each task runs exactly once.
#[test]
fn every_task_runs_once_while_hands_are_robbed() {
    const TASKS: usize = 60_000;
    let queue = TaskQueue::new(256).unwrap();
    let queues: [LocalQueue; 4] = std::array::from_fn(|_| LocalQueue::new());
    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..TASKS).map(|_| AtomicUsize::new(0)).collect());
    let pushed_all = AtomicBool::new(false);
    thread::scope(|scope| {
        for own in 0..queues.len() {
            let (queue, queues, pushed_all) = (&queue, &queues, &pushed_all);
            scope.spawn(move || work(queue, queues, own, pushed_all));
        }
        for id in 0..TASKS {
            let runs = runs.clone();
            let mut task = Erased::new(move || {
                runs[id].fetch_add(1, Relaxed);
            });
            while let Err(back) = queue.push(Lane::ALL[id % 4], task, Outside) {
                let (PushError::Full(same) | PushError::Closed(same)) = back;
                task = same;
                thread::yield_now();
            }
        }
        pushed_all.store(true, Relaxed);
    });
    assert!(runs.iter().all(|runs| runs.load(Relaxed) == 1));
    assert_eq!(queue.accepted(), TASKS as u64);
}

fn work(queue: &TaskQueue, queues: &[LocalQueue; 4], own: usize, pushed_all: &AtomicBool) {
    let (local, mut turn) = (&queues[own], Turn::default());
    loop {
        let done = pushed_all.load(Relaxed);
        while let Some(task) = local.next() {
            assert!(task.run_caught().is_ok());
        }
        match queue.claim(local, &mut turn, 16) {
            Claimed::Some(task) => assert!(task.run_caught().is_ok()),
            Claimed::Busy => thread::yield_now(),
            Claimed::Empty => match rob(queues, own) {
                Some(task) => task.run(),
                None if done && queue.is_empty() => return,
                None => thread::yield_now(),
            },
        }
    }
}

fn rob(queues: &[LocalQueue; 4], own: usize) -> Option<Erased> {
    let others = (0..queues.len()).filter(|&other| other != own);
    others.into_iter().find_map(|other| queues[other].steal(&queues[own]))
}
