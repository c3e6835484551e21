//! Handlers that never return hold up nobody but themselves.

mod common;

use common::{Count, Fd, Gate, LONG, OnDrop, hang_guard, settled, until};
use paceline::{Error, Flow, Pool};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    /// The index of a pool thread.
    static INDEX: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// What a stuck handler works on: it must stay as it is as long as the handler runs.
struct InUse {
    bytes: Vec<u8>,
    stuck: Arc<Mutex<Vec<usize>>>,
    _dropped: OnDrop,
}

impl InUse {
    fn new(dropped: &Count, stuck: &Arc<Mutex<Vec<usize>>>) -> Self {
        Self { bytes: vec![0x5a; 4096], stuck: Arc::clone(stuck), _dropped: dropped.on_drop() }
    }

    /// Tells which thread this is, waits at the gate, and finds everything as it was.
    fn get_stuck(&self, gate: &Gate) {
        self.stuck.lock().unwrap().push(INDEX.get());
        gate.wait();
        assert!(self.bytes.iter().all(|&byte| byte == 0x5a), "freed while in use");
    }
}

/// A descriptor whose handler counts the bytes that it reads.
fn counting(pool: &Pool, bytes: &Count) -> Fd {
    let (read, write) = Fd::pipe();
    let bytes = bytes.clone();
    let handle = pool.register(read, move |fd, _| {
        bytes.add(fd.drain() as u64);
        Flow::Wait
    });
    handle.unwrap().detach();
    write
}

/// Seven threads of eight get stuck in every kind of code that a pool runs: two tasks, two
/// handlers, a strand, a one-shot and a periodic timer. Says which threads, and returns what keeps
/// the descriptors open.
fn block_seven(pool: &Pool, gate: &Gate, dropped: &Count) -> (Vec<usize>, Vec<Fd>) {
    let indices = Arc::default();
    let stuck = || (gate.clone(), InUse::new(dropped, &indices));
    for _ in 0..2 {
        let (gate, in_use) = stuck();
        pool.post(move || in_use.get_stuck(&gate)).unwrap();
    }
    let mut writers = Vec::new();
    for _ in 0..2 {
        let ((gate, in_use), (read, write)) = (stuck(), Fd::pipe());
        let handler = move |fd: &mut Fd, _| {
            in_use.get_stuck(&gate);
            assert_eq!(fd.drain(), 1);
            Flow::Wait
        };
        pool.register(read, handler).unwrap().detach();
        write.write(b"!").unwrap();
        writers.push(write);
    }
    let (strand_gate, in_use) = stuck();
    pool.strand().unwrap().post(move || in_use.get_stuck(&strand_gate)).unwrap();
    let (once_gate, in_use) = stuck();
    pool.after(Duration::from_millis(1), move || in_use.get_stuck(&once_gate)).unwrap();
    let (every_gate, in_use) = stuck();
    let periodic = pool.every(Duration::from_millis(1), move || {
        in_use.get_stuck(&every_gate);
        Flow::Wait
    });
    periodic.unwrap().detach();
    gate.until_entered(7);
    (indices.lock().unwrap().clone(), writers)
}

#[test]
fn the_one_thread_that_is_left_serves_everything_and_shutdown_frees_nothing_in_use() {
    let _guard = hang_guard();
    let stopped = Count::new();
    let stops = stopped.clone();
    let builder = Pool::builder().threads(8).on_start(|index| INDEX.set(index));
    let pool = builder.on_stop(move |_| stops.up()).build().unwrap();
    let (gate, dropped) = (Gate::new(), Count::new());
    let (stuck, _writers) = block_seven(&pool, &gate, &dropped);

    // Tasks, results, descriptors, timers and strands go on.
    let (tasks, bytes) = (Count::new(), Count::new());
    for _ in 0..1000 {
        let tasks = tasks.clone();
        pool.post(move || tasks.up()).unwrap();
    }
    assert_eq!(pool.submit(|| 6 * 7).unwrap().wait().unwrap(), 42);
    let writers: Vec<Fd> = (0..50).map(|_| counting(&pool, &bytes)).collect();
    for _ in 0..3 {
        let before = bytes.get();
        writers.iter().for_each(|fd| assert_eq!(fd.write(b"0123").unwrap(), 4));
        bytes.until(before + 200);
    }
    let fired = Count::new();
    let fires = fired.clone();
    pool.after(Duration::from_millis(1), move || fires.up()).unwrap();
    fired.until(1);
    pool.strand().unwrap().submit(|| ()).unwrap().wait().unwrap();
    tasks.until(1000);

    // The deadline passes; the stuck threads are named, and what they use is left alone.
    let report = pool.shutdown(Duration::from_millis(20));
    assert!(!report.drained && !report.requested, "{report:?}");
    // The eighth may be named too, if the machine did not let it run in time.
    assert!(stuck.iter().all(|index| report.stuck.contains(index)), "{stuck:?}, {report:?}");
    assert_eq!(report.cancelled, 0, "{report:?}");
    assert_eq!((gate.entered(), dropped.get()), (7, 0));
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
    // Two tasks, the strand's and the timer's; handlers of handles are not in the books.
    assert_eq!(audit.in_flight, 4, "{audit:?}");

    // Released, they end by themselves.
    gate.open();
    stopped.until(8);
    dropped.until(7);
    assert!(pool.shutdown(LONG).stuck.is_empty());
    settled(&pool);
    assert_eq!(pool.audit().cancelled, 0);
}

/// Goal: what was harvested together with an event whose handler gets stuck is not stuck with it.
/// Method: 50 descriptors become ready at once, and seven of their handlers never return.
#[test]
fn the_rest_of_a_harvest_is_served_by_others() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).build().unwrap();
    let (gate, served) = (Gate::new(), Count::new());
    let handles: Vec<_> = (0..50)
        .map(|index| {
            let (read, write) = Fd::pipe();
            let (gate, served) = (gate.clone(), served.clone());
            write.write(b"!").unwrap();
            let options = paceline::HandleOptions::new().paused();
            let handler = move |fd: &mut Fd, _| {
                if index % 7 == 3 {
                    gate.wait();
                }
                served.add(fd.drain() as u64);
                Flow::Wait
            };
            (pool.register_with(read, options, handler).unwrap(), write)
        })
        .collect();
    handles.iter().for_each(|(handle, _)| handle.resume().unwrap());
    gate.until_entered(7);
    served.until(43);
    let stats = pool.stats();
    let rescues: u64 = stats.threads.iter().map(|thread| thread.rescues).sum();
    assert!(rescues >= 1, "the watch steps in, nobody else does: {stats:?}");
    gate.open();
    served.until(50);
    drop(handles);
    common::finish(&pool);
}

#[test]
fn when_all_threads_are_blocked_everything_waits_and_nothing_is_lost() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let (gate, done, bytes, fired) = (Gate::new(), Count::new(), Count::new(), Count::new());
    let writer = counting(&pool, &bytes);
    let strand = pool.strand().unwrap();
    for _ in 0..4 {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(4);
    for _ in 0..1000 {
        let (done, also) = (done.clone(), done.clone());
        pool.post(move || done.up()).unwrap();
        strand.post(move || also.up()).unwrap();
    }
    writer.write(b"hello").unwrap();
    let fires = fired.clone();
    pool.after(Duration::ZERO, move || fires.up()).unwrap();
    assert_eq!((done.get(), bytes.get(), fired.get()), (0, 0, 0));
    gate.open();
    done.until(2000);
    bytes.until(5);
    fired.until(1);
    drop(strand);
    common::finish(&pool);
}

#[test]
fn a_shutdown_past_stuck_threads_cancels_what_they_left_behind() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (gate, dropped, ran) = (Gate::new(), Count::new(), Count::new());
    for _ in 0..2 {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(2);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (ran, on_drop) = (ran.clone(), dropped.on_drop());
            let work = move || {
                let _on_drop = on_drop;
                ran.up();
            };
            pool.submit(work).unwrap()
        })
        .collect();
    let timer = pool.after(Duration::from_secs(3600), || ()).unwrap();
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!((report.drained, report.stuck.len()), (false, 2), "{report:?}");
    assert_eq!(report.cancelled, 101);
    assert_eq!((ran.get(), dropped.get()), (0, 100));
    assert!(!timer.is_pending());
    for task in tasks {
        assert!(matches!(task.wait(), Err(Error::Cancelled)));
    }
    let audit = pool.audit();
    assert!(audit.balances() && audit.in_flight == 2, "{audit:?}");
    gate.open();
    until("the stuck threads leave", || pool.shutdown(LONG).stuck.is_empty());
    settled(&pool);
    assert_eq!(pool.audit().cancelled, 101);
}
