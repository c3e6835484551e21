//! Many tasks at once, and a queue that tells of many ends.

use super::common::{Gate, LONG, hang_guard};
use super::kit::{Notes, Stage, pool, settled};
use paceline::cq::{CompletionQueue, EntryKind};
use paceline::task::{
    Attempt, Fault, OverloadPolicy, Phases, Retry, Status, TaskHandle, TaskType, WorkerPool,
};
use paceline::{Lane, Pin, Pool, Rejected};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A worker pool of one thread, which is inside a task, with room for four.
fn held() -> (Pool, WorkerPool, Gate, TaskHandle<()>) {
    let pool = Pool::builder().threads(1).pin(Pin::None).lane_capacity(4).build().unwrap();
    let workers = WorkerPool::builder(&pool).max_droppable(3).build().unwrap();
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    (pool, workers, gate, first)
}

fn kind(workers: &WorkerPool, full: OverloadPolicy) -> TaskType {
    workers.task_type("batch").full(full).build().unwrap()
}

fn ends(tasks: Vec<TaskHandle<()>>) -> Vec<Status> {
    tasks.into_iter().map(|task| task.wait().unwrap().status).collect()
}

#[test]
fn a_batch_is_as_many_tasks() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = kind(&workers, OverloadPolicy::default());
    let mut tasks = Vec::new();
    kind.submit_batch((0..1000).map(|number| move |_: &Attempt<'_>| number), &mut tasks).unwrap();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.wait().unwrap().result.unwrap(), number as i32);
    }
    assert_eq!(kind.stats().accepted, 1000);
    settled(&workers);
}

#[test]
fn what_a_full_lane_does_not_take_comes_back_in_order() {
    let _guard = hang_guard();
    let (_pool, workers, gate, first) = held();
    let kind = kind(&workers, OverloadPolicy::Reject);
    let (notes, mut tasks) = (Notes::default(), Vec::new());
    let submitted = kind.submit_batch((0..50).map(|number| notes.pen(number)), &mut tasks);
    let Err(Rejected::Full(rest, _)) = submitted else { panic!("there is no room") };
    assert_eq!(tasks.len(), 4);
    let stats = kind.stats();
    assert_eq!((stats.accepted, stats.rejected), (4, 1));
    gate.open();
    assert_eq!(ends(tasks), [Status::Completed; 4]);
    let tasks: Vec<_> = rest.map(|work| until_taken(&kind, work)).collect();
    assert_eq!(ends(tasks), [Status::Completed; 46]);
    assert_eq!(notes.take(), (0..50).collect::<Vec<_>>());
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

fn until_taken(kind: &TaskType, work: impl FnMut(&Attempt<'_>) + Send + 'static) -> TaskHandle<()> {
    kind.task(work).full(OverloadPolicy::default()).submit().unwrap()
}

#[test]
fn a_batch_waits_for_room_or_runs_here() {
    let _guard = hang_guard();
    let (_pool, workers, gate, first) = held();
    let here = workers.task_type("here").full(OverloadPolicy::RunHere).build().unwrap();
    let (notes, mut tasks) = (Notes::default(), Vec::new());
    here.submit_batch((0..40).map(|number| notes.pen(number)), &mut tasks).unwrap();
    assert_eq!(notes.take(), (4..40).collect::<Vec<_>>());
    let (waits, time) =
        (OverloadPolicy::Wait(Duration::MAX), OverloadPolicy::Wait(Duration::from_millis(1)));
    let late = workers.task_type("late").full(time).build().unwrap();
    let refused = late.submit_batch([notes.pen(0)], &mut tasks);
    let Err(Rejected::Full(rest, _)) = refused else { panic!("there is no room") };
    assert_eq!(rest.count(), 1);
    let waits = kind(&workers, waits);
    std::thread::scope(|scope| {
        let inner = notes.clone();
        let waiter = scope.spawn(move || {
            let mut tasks = Vec::new();
            waits.submit_batch((0..100).map(|number| inner.pen(number)), &mut tasks).unwrap();
            tasks
        });
        gate.open();
        assert_eq!(ends(waiter.join().unwrap()), [Status::Completed; 100]);
    });
    assert_eq!(ends(tasks), [Status::Completed; 40]);
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

#[test]
fn a_batch_drops_the_oldest() {
    let _guard = hang_guard();
    let (_pool, workers, gate, first) = held();
    let kind = kind(&workers, OverloadPolicy::DropOldest);
    let (notes, mut tasks) = (Notes::default(), Vec::new());
    kind.submit_batch((0..10).map(|number| notes.pen(number)), &mut tasks).unwrap();
    gate.open();
    let ends = ends(tasks);
    assert_eq!(ends[..7], [Status::Rejected; 7]);
    assert_eq!(ends[7..], [Status::Completed; 3]);
    assert_eq!(notes.take(), [7, 8, 9]);
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: what a batch is told holds for each of its tasks. Method: a lane above the kind's, so they pass one
/// that waits; two attempts, a limit that is over before they begin, a key, and a delay.
#[test]
fn a_batch_has_settings_of_its_own() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let workers = &stage.workers;
    let kind = workers.task_type("batch").lane(Lane::Low).build().unwrap();
    let (gate, notes) = (Gate::new(), Notes::default());
    let inner = gate.clone();
    let first = kind.submit(move |_: &Attempt<'_>| inner.wait()).unwrap();
    gate.until_entered(1);
    let last = kind.submit(notes.pen(99)).unwrap();
    let pens = || (0..3).map(|number| notes.pen(number));

    let mut high = Vec::new();
    kind.batch().lane(Lane::High).submit(pens(), &mut high).unwrap();
    let mut tried = Vec::new();
    let fails = (0..40).map(|_| |_: &Attempt<'_>| Err::<(), _>(Fault::new("no")));
    let twice = Retry::fixed(1, Duration::ZERO);
    kind.batch().lane(Lane::High).retry(twice).submit(fails, &mut tried).unwrap();
    let mut late = Vec::new();
    kind.batch().queue_timeout(HOUR).submit(pens(), &mut late).unwrap();
    let mut keyed = Vec::new();
    kind.batch().key("one").submit(pens(), &mut keyed).unwrap();
    let mut delayed = Vec::new();
    kind.batch().delay(HOUR * 3).submit(pens(), &mut delayed).unwrap();

    let settle = stage.pass_without_settling(HOUR * 2);
    gate.open();
    settle();
    assert_eq!(ends(high), [Status::Completed; 3]);
    assert_eq!(last.wait().unwrap().status, Status::Completed);
    for task in tried {
        let report = task.wait().unwrap();
        assert_eq!((report.status, report.attempts), (Status::Failed, 2));
    }
    assert_eq!(ends(late), [Status::TimedOut; 3]);
    assert_eq!(ends(keyed), [Status::Completed; 3]);
    assert_eq!(notes.take(), [0, 1, 2, 99, 0, 1, 2]);
    assert!(delayed.iter().all(|task| task.status() == Status::Pending));
    stage.pass(HOUR * 2);
    assert_eq!(ends(delayed), [Status::Completed; 3]);
    assert_eq!(notes.take(), [0, 1, 2]);
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(workers);
}

#[test]
fn a_batch_of_a_key_waits_for_it() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = kind(&workers, OverloadPolicy::default());
    let (gate, notes) = (Gate::new(), Notes::default());
    let inner = gate.clone();
    let first = kind.task(move |_: &Attempt<'_>| inner.wait()).key("one").submit().unwrap();
    gate.until_entered(1);
    let mut tasks = Vec::new();
    kind.batch().key("one").submit((0..9).map(|number| notes.pen(number)), &mut tasks).unwrap();
    let other = kind.submit(notes.pen(99)).unwrap();
    assert_eq!(other.wait().unwrap().status, Status::Completed);
    assert_eq!(notes.take(), [99], "the key is held");
    gate.open();
    assert_eq!(ends(tasks), [Status::Completed; 9]);
    assert_eq!(notes.take(), (0..9).collect::<Vec<_>>());
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

#[test]
fn a_batch_that_comes_too_late_comes_back_whole() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = kind(&workers, OverloadPolicy::default());
    assert!(workers.shutdown(Phases::default()).drained);
    let (notes, mut tasks) = (Notes::default(), Vec::new());
    let refused = kind.submit_batch((0..50).map(|number| notes.pen(number)), &mut tasks);
    let Err(Rejected::ShutDown(rest)) = refused else { panic!("it is too late") };
    assert_eq!(rest.count(), 50);
    assert!(tasks.is_empty());
    settled(&workers);
}

#[test]
fn one_queue_tells_of_many_ends() {
    let _guard = hang_guard();
    let (pool, workers, gate, first) = held();
    let queue = CompletionQueue::new(&pool).unwrap();
    queue.task(&first, 9);
    let tasks: Vec<_> = (0..3)
        .map(|_| workers.task("t", |_: &Attempt<'_>| ()).submit().unwrap())
        .inspect(|task| queue.task(task, task.id()))
        .collect();
    let mut entries = Vec::new();
    assert_eq!(queue.wait(&mut entries, 9, Duration::ZERO).unwrap(), 0);
    assert!(tasks[2].cancel());
    assert_eq!(queue.wait(&mut entries, 9, LONG).unwrap(), 1);
    gate.open();
    while entries.len() < 4 {
        assert!(queue.wait(&mut entries, 9, LONG).unwrap() > 0);
    }
    // It has ended.
    queue.task(&first, 10);
    assert_eq!(queue.wait(&mut entries, 9, Duration::ZERO).unwrap(), 1);
    let seen: Vec<_> = entries
        .into_iter()
        .map(|entry| match entry.kind {
            EntryKind::TaskEnded { task: 0, status } => (entry.tag, status),
            other => panic!("{other:?}"),
        })
        .collect();
    let [one, two, three] = [0, 1, 2].map(|at: usize| tasks[at].id());
    let done = Status::Completed;
    let told = [(three, Status::Cancelled), (9, done), (one, done), (two, done), (10, done)];
    assert_eq!(seen, told);
}
