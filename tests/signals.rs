//! Signals and stopped processes: pool threads take no part, waits go on, timers make no bursts.
#![allow(unsafe_code, reason = "sends signals")]

mod common;

use common::{
    Count, Gate, LONG, RAN, Tid, finish, forked, hang_guard, in_child_blocking, is_child,
    start_child, threads_named, until, wait_for_child,
};
use paceline::{Flow, Pool, Signals};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn pool_threads_block_every_signal_that_they_do_not_cause_themselves() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(8).name("masked").build().unwrap();
    until("all are named", || threads_named("masked-").len() == 8);
    let open = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGABRT,
        libc::SIGPROF,
        // These two nobody can block.
        libc::SIGKILL,
        libc::SIGSTOP,
    ];
    for tid in threads_named("masked-") {
        let blocked = u64::from_str_radix(&tid.status("SigBlk").unwrap(), 16).unwrap();
        for signal in 1..32 {
            let is_blocked = blocked >> (signal - 1) & 1 == 1;
            assert_eq!(is_blocked, !open.contains(&signal), "signal {signal}: {blocked:x}");
        }
    }
    finish(&pool);
}

static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_interrupt(_: libc::c_int) {
    INTERRUPTS.fetch_add(1, SeqCst);
}

/// Interrupts the thread `target` every 100 µs while `body` runs.
fn storm<R>(target: Tid, body: impl FnOnce() -> R) -> R {
    // SAFETY: the handler does nothing but add to a static count. Without SA_RESTART every system
    // call that can be interrupted is.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count_interrupt as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let (over, before) = (AtomicBool::new(false), INTERRUPTS.load(SeqCst));
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                // SAFETY: at worst the thread has ended, and the call says so.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), target.0, libc::SIGUSR1) };
                thread::sleep(Duration::from_micros(100));
            }
        });
        let stop = Stop(&over);
        let result = body();
        drop(stop);
        result
    });
    assert!(INTERRUPTS.load(SeqCst) > before, "no signal came");
    result
}

/// Ends the storm, also when the body panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn a_host_in_join_serves_its_time_in_a_storm_of_signals() {
    let _guard = hang_guard();
    for threads in [0, 2] {
        let pool = Pool::builder().threads(threads).build().unwrap();
        let (done, early) = (Count::new(), Count::new());
        storm(Tid::current(), || {
            for number in 0..200 {
                let (task, timer, early) = (done.clone(), done.clone(), early.clone());
                pool.post(move || task.up()).unwrap();
                let (armed, delay) = (Instant::now(), Duration::from_micros(number * 100));
                let work = move || {
                    if armed.elapsed() < delay {
                        early.up();
                    }
                    timer.up();
                };
                pool.after(delay, work).unwrap();
            }
            let (start, time) = (Instant::now(), Duration::from_millis(100));
            pool.join(time).unwrap();
            assert!(start.elapsed() >= time, "a signal sent the host home");
            until("all is done", || {
                pool.join(Duration::from_millis(1)).unwrap();
                done.get() == 400
            });
        });
        assert_eq!(early.get(), 0);
        finish(&pool);
    }
}

#[test]
fn waits_of_every_kind_go_on_in_a_storm_of_signals() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).lane_capacity(2).build().unwrap();
    let ran = Count::new();
    storm(Tid::current(), || {
        for _ in 0..100 {
            // A result that takes its time, room in a full lane, and a wait that times out.
            let pause = || thread::sleep(Duration::from_micros(300));
            pool.submit(pause).unwrap().wait().unwrap();
            for _ in 0..10 {
                let ran = ran.clone();
                pool.post(move || ran.up()).unwrap();
            }
        }
        let gate = Gate::new();
        let visitor = gate.clone();
        let mut task = pool.submit(move || visitor.wait()).unwrap();
        let (start, time) = (Instant::now(), Duration::from_millis(20));
        assert!(matches!(task.wait_timeout(time), Err(paceline::Error::TimedOut)));
        assert!(start.elapsed() >= time, "a signal ended the wait");
        gate.open();
        task.wait_timeout(LONG).unwrap();
        finish(&pool);
    });
    assert_eq!(ran.get(), 1000);
}

/// Goal: a process that was stopped for two seconds does not make up for the runs that its periodic
/// timer missed. Method: the child notes when its timer runs; in no stretch of time, the stop
/// included, are there more runs than periods.
#[test]
fn a_stopped_process_makes_no_burst_of_timers() {
    const TEST: &str = "a_stopped_process_makes_no_burst_of_timers";
    const PERIOD: Duration = Duration::from_millis(2);
    let _guard = hang_guard();
    if is_child(TEST) {
        runs_over_a_stop(PERIOD);
        std::process::exit(RAN);
    }
    let mut child = start_child(TEST, &[], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.find(|line| line.as_ref().is_ok_and(|line| line == "running"));
    assert!(ready.is_some(), "the child never began");
    let signal = |signal| {
        // SAFETY: the child has not been waited for, so its id is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    };
    signal(libc::SIGSTOP);
    thread::sleep(Duration::from_secs(2));
    signal(libc::SIGCONT);
    wait_for_child(TEST, child);
}

fn runs_over_a_stop(period: Duration) {
    let pool = Pool::builder().threads(2).build().unwrap();
    let runs = std::sync::Arc::new(Mutex::new(Vec::<Instant>::new()));
    let (list, once) = (runs.clone(), Count::new());
    let armed = Instant::now();
    let periodic = pool.every(period, move || {
        list.lock().unwrap().push(Instant::now());
        Flow::Wait
    });
    let fired = once.clone();
    pool.after(Duration::from_secs(1), move || fired.up()).unwrap();
    until("it runs", || runs.lock().unwrap().len() >= 20);
    println!("\nrunning");
    std::io::stdout().flush().unwrap();
    let gap = Duration::from_millis(1500);
    let after_the_stop = |runs: &[Instant]| {
        runs.windows(2).position(|pair| pair[1] - pair[0] > gap).map(|place| runs.len() - place)
    };
    until("a hundred runs after the stop", || {
        after_the_stop(&runs.lock().unwrap()).is_some_and(|count| count > 100)
    });
    periodic.unwrap().deregister().unwrap();
    once.until(1);
    finish(&pool);
    let runs = runs.lock().unwrap();
    // The k-th run is never before k periods have passed, and of any two runs that are n apart at
    // least n - 1 periods lie between: one may be late and the next on time.
    for (index, &run) in runs.iter().enumerate() {
        assert!(run - armed >= period * (index as u32 + 1), "run {index} is early");
    }
    for distance in [2, 5, 20, 100] {
        for pair in runs.windows(distance + 1) {
            let between = pair[distance] - pair[0];
            assert!(between > period * (distance as u32 - 2), "{distance} runs in {between:?}");
        }
    }
}

/// Sends a signal to this process, whichever thread may take it.
fn send(signal: libc::c_int) {
    // SAFETY: no pointers; the signal is blocked in all threads.
    assert_eq!(unsafe { libc::kill(libc::getpid(), signal) }, 0);
}

/// Goal: signals are told to a handler on the pool, and to whoever waits. Method: a forked child has one
/// thread, which blocks them; the pool's threads block all.
#[test]
fn signals_are_told_on_the_pool() {
    let _guard = hang_guard();
    let code = forked(|| {
        let pool = Pool::builder().threads(2).name("told").build().unwrap();
        let (seen, seen_by) = (Count::new(), Count::new());
        let (signals, threads) = (seen.clone(), seen_by.clone());
        let watched = Signals::new(&pool, &[libc::SIGUSR1, libc::SIGUSR2], move |signal| {
            signals.add(signal as u64);
            threads.add(u64::from(thread::current().name().is_none()));
        });
        let watched = watched.unwrap();
        send(libc::SIGUSR1);
        assert_eq!(watched.wait(), Some(libc::SIGUSR1));
        send(libc::SIGUSR2);
        assert_eq!(watched.wait(), Some(libc::SIGUSR2));
        assert_eq!(seen.get(), (libc::SIGUSR1 + libc::SIGUSR2) as u64);
        finish(&pool);
        assert_eq!(watched.wait(), None);
        drop(watched);
        // It is blocked still.
        send(libc::SIGUSR1);
    });
    assert_eq!(code, 0);
}

/// Goal: SIGTERM begins a shutdown that runs what was accepted. Method: a task is at its gate when the
/// signal comes; work from outside is refused, the task ends, and the report says that all is done.
#[test]
fn a_termination_drains_the_pool() {
    let _guard = hang_guard();
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let code = forked(|| {
            let pool = Pool::builder().threads(2).build().unwrap();
            let signals = Signals::shut_down(&pool, LONG).unwrap();
            let (gate, ran) = (Gate::new(), Count::new());
            let (inner, runs, behind) = (gate.clone(), ran.clone(), pool.clone());
            let task = move || {
                inner.wait();
                let more = runs.clone();
                behind.post(move || more.up()).unwrap();
                runs.up();
            };
            pool.post(task).unwrap();
            gate.until_entered(1);
            send(signal);
            assert_eq!(signals.wait(), Some(signal));
            assert!(matches!(pool.post(|| ()), Err(paceline::Rejected::ShutDown(_))));
            gate.open();
            finish(&pool);
            assert_eq!(ran.get(), 2);
        });
        assert_eq!(code, 0);
    }
}

/// Goal: a signal that would end the process, as a thread lets it through, is refused before anything is changed.
/// Method: a child whose threads block it, but for one.
#[test]
fn a_thread_that_lets_a_signal_through_is_named() {
    in_child_blocking(&[libc::SIGUSR1, libc::SIGUSR2], || {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(2).build().unwrap();
        let gate = Gate::new();
        let inner = gate.clone();
        let open = thread::Builder::new().name("lets through".into()).spawn(move || {
            // SAFETY: the set is emptied before it is used.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR2);
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
            }
            inner.wait();
            // SAFETY: it has no arguments.
            unsafe { libc::gettid() }
        });
        gate.until_entered(1);
        let one = Signals::new(&pool, &[libc::SIGUSR1], |_| ()).unwrap();
        let refused = Signals::new(&pool, &[libc::SIGUSR1, libc::SIGUSR2], |_| ()).unwrap_err();
        gate.open();
        let id = open.unwrap().join().unwrap();
        let says = format!(
            "signal is {}, which thread {id} (lets through) does not block, but must be blocked by all other \
             threads: make Signals before they are started, or have them block it (pthread_sigmask)",
            libc::SIGUSR2
        );
        assert_eq!(refused.to_string(), says);
        drop(Signals::new(&pool, &[libc::SIGUSR2], |_| ()).unwrap());
        drop(one);
        finish(&pool);
    });
}

/// Goal: a thread that blocks a signal, and ends while it is looked at, is not said to let the signal through. Method: threads
/// that end one after the other, in a child that looks at them again and again.
#[test]
fn a_thread_that_ends_lets_nothing_through() {
    in_child_blocking(&[libc::SIGUSR1], || {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(1).build().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        thread::spawn(|| ()).join().unwrap();
                    }
                });
            }
            let look = || Signals::new(&pool, &[libc::SIGUSR1], |_| ()).map(drop);
            let looks = (0..3000).try_for_each(|_| look());
            is_over.store(true, SeqCst);
            looks.unwrap();
        });
        finish(&pool);
    });
}

#[test]
fn senseless_signals_are_refused_by_name() {
    let pool = Pool::builder().threads(1).build().unwrap();
    for signal in [0, -1, 1000, libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGPROF] {
        let Err(paceline::Error::Invalid { name, value, .. }) =
            Signals::new(&pool, &[libc::SIGUSR1, signal], |_| ())
        else {
            panic!("{signal}")
        };
        assert_eq!((name, value), ("signal", signal.to_string()));
    }
    assert!(Signals::new(&pool, &[], |_| ()).is_err());
    finish(&pool);
}
