//! A panic ends the handler or task that it happens in, is counted, and nothing else.

mod common;

use common::{Count, Fd, Gate, LONG, finish, hang_guard, quiet_panic, settled, until};
use paceline::{Error, Flow, Pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

fn panics(pool: &Pool) -> u64 {
    pool.stats().threads.iter().map(|thread| thread.panics).sum()
}

/// The pool's threads are all there: each can be kept busy at the same time.
#[track_caller]
fn all_threads_serve(pool: &Pool, threads: u64) {
    let gate = Gate::new();
    for _ in 0..threads {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(threads);
    gate.open();
}

#[test]
fn tasks_that_panic_are_counted_and_the_pool_goes_on() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).build().unwrap();
    let ran = Count::new();
    for index in 0..3000 {
        let ran = ran.clone();
        let work = move || {
            ran.up();
            if index % 3 == 0 {
                quiet_panic("one in three");
            }
        };
        pool.post(work).unwrap();
    }
    ran.until(3000);
    all_threads_serve(&pool, 8);
    finish(&pool);
    let audit = pool.audit();
    assert_eq!((audit.completed, audit.failed), (2000 + 8, 1000), "{audit:?}");
    assert_eq!(panics(&pool), 1000);
}

#[test]
fn a_task_tells_its_panics_message() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let message = |work: fn()| match pool.submit(work).unwrap().wait() {
        Err(Error::Panicked { message }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(message(|| quiet_panic("a literal")), "a literal");
    let formatted = || std::panic::resume_unwind(Box::new(format!("number {}", 7)));
    assert_eq!(message(formatted), "number 7");
    assert_eq!(message(|| std::panic::resume_unwind(Box::new(7))), "a panic without a message");
    finish(&pool);
    assert_eq!(pool.audit().failed, 3);
}

#[test]
fn a_handler_that_panics_is_closed_and_its_owner_dropped_once() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let (read, write) = Fd::pipe();
    let (dropped, calls) = (Count::new(), Count::new());
    let (on_drop, called) = (dropped.on_drop(), calls.clone());
    let handler = move |_: &mut Fd, _| {
        let _held = &on_drop;
        called.up();
        quiet_panic("in a handler")
    };
    let handle = pool.register(read, handler).unwrap();
    write.write(b"!").unwrap();
    dropped.until(1);
    until("the handle closes", || !handle.is_open());
    assert!(matches!(handle.pause(), Err(Error::Stale { .. })));
    assert!(matches!(handle.deregister(), Err(Error::Stale { .. })));
    // Nobody reads the pipe any more: its owner has been dropped with the handler.
    let broken = || matches!(write.write(b"?"), Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe);
    until("the descriptor closes", broken);
    assert_eq!((calls.get(), dropped.get(), panics(&pool)), (1, 1, 1));
    all_threads_serve(&pool, 4);
    finish(&pool);
    assert_eq!(pool.stats().handles, 0);
}

#[test]
fn timers_and_strands_survive_panics() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let once = pool.after(Duration::ZERO, || quiet_panic("a timer")).unwrap();
    until("the timer has run", || !once.is_pending());
    let periodic = pool.every(Duration::from_micros(10), || quiet_panic("a period")).unwrap();
    until("the periodic timer closes", || !periodic.is_open());
    let strand = pool.strand().unwrap();
    let ran = Count::new();
    for index in 0..100 {
        let ran = ran.clone();
        let work = move || {
            if index % 2 == 0 {
                quiet_panic("on a strand");
            }
            ran.up();
        };
        strand.post(work).unwrap();
    }
    let last = strand.submit(|| quiet_panic("the last")).unwrap();
    let last: Result<(), _> = last.wait();
    assert!(matches!(last, Err(Error::Panicked { message }) if message == "the last"));
    assert_eq!(ran.get(), 50);
    drop(strand);
    finish(&pool);
    assert_eq!(pool.audit().failed, 52);
    assert_eq!(panics(&pool), 53);
}

/// A value that panics when it is dropped.
struct Bomb(Count);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.up();
        if !std::thread::panicking() {
            quiet_panic("while dropping");
        }
    }
}

struct Armed {
    fd: Fd,
    _bomb: Bomb,
}

impl std::os::fd::AsFd for Armed {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[test]
fn destructors_that_panic_take_no_thread_with_them() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let blown = Count::new();
    let bomb = || Bomb(blown.clone());
    // What a closure holds, what it returns to nobody, and what it panics with.
    let held = bomb();
    pool.post(move || drop(held)).unwrap();
    blown.until(1);
    let result = bomb();
    let task = pool.submit(move || result).unwrap();
    // The result is dropped where the second of task and handle ends, which may be here.
    let _here = catch_unwind(AssertUnwindSafe(|| drop(task)));
    blown.until(2);
    let payload = bomb();
    pool.post(move || std::panic::resume_unwind(Box::new(payload))).unwrap();
    blown.until(3);
    // What a handler is through with.
    let (read, write) = Fd::pipe();
    let owner = Armed { fd: read, _bomb: bomb() };
    pool.register(owner, |_, _| Flow::Done).unwrap().detach();
    write.write(b"!").unwrap();
    blown.until(4);
    let held = bomb();
    let periodic = pool.every(Duration::from_micros(10), move || {
        let _held = &held;
        Flow::Done
    });
    periodic.unwrap().detach();
    blown.until(5);
    // What a strand's task and a timer hold.
    let held = bomb();
    pool.strand().unwrap().post(move || drop(held)).unwrap();
    blown.until(6);
    let held = bomb();
    pool.after(Duration::ZERO, move || drop(held)).unwrap();
    blown.until(7);
    all_threads_serve(&pool, 2);
    // What is dropped at the end: a handler, a task that is cancelled, a timer that is not due.
    let (read, _write) = Fd::pipe();
    pool.register(Armed { fd: read, _bomb: bomb() }, |_, _| Flow::Wait).unwrap().detach();
    let held = bomb();
    pool.after(Duration::from_secs(3600), move || drop(held)).unwrap();
    let gate = Gate::new();
    for _ in 0..2 {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(2);
    let held = bomb();
    pool.post(move || drop(held)).unwrap();
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!((report.cancelled, report.stuck.len()), (2, 2), "{report:?}");
    assert_eq!(blown.get(), 10);
    gate.open();
    until("the threads leave", || pool.shutdown(LONG).stuck.is_empty());
    settled(&pool);
}

#[test]
fn hooks_that_panic_take_no_thread_with_them() {
    let _guard = hang_guard();
    let calls = Count::new();
    let hook = |calls: &Count| {
        let calls = calls.clone();
        move |_: usize| {
            calls.up();
            quiet_panic("in a hook")
        }
    };
    let slow = calls.clone();
    let pool = Pool::builder()
        .threads(2)
        .on_start(hook(&calls))
        .on_stop(hook(&calls))
        .on_slow(Duration::from_micros(10), move |_| {
            slow.up();
            quiet_panic("in the slow hook")
        })
        .build()
        .unwrap();
    calls.until(2);
    for _ in 0..20 {
        let task = pool.submit(|| std::thread::sleep(Duration::from_millis(1))).unwrap();
        task.wait().unwrap();
    }
    all_threads_serve(&pool, 2);
    finish(&pool);
    assert!(calls.get() >= 2 + 20 + 2);
}
