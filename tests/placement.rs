//! Where threads run: within the mask of whoever builds the pool, pinned as asked, and honestly so.
#![allow(
    unsafe_code,
    reason = "a filter that makes pinning fail, for one child, and a hook of a fork"
)]

mod common;

use common::{
    Count, Tid, all_threads, allow_cpus, allowed_cpus, finish, hang_guard, in_child,
    in_child_blocking, open_descriptors, quiet_panic, skipped, threads_named, until,
};
use paceline::{Error, Pin, Pool, Signals, unconfined};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The CPUs of a pool's threads, by their index, from the kernel.
fn masks(name: &str, threads: usize) -> Vec<String> {
    let prefix = format!("{name}-");
    until("all are named", || threads_named(&prefix).len() == threads);
    let by_index = |index: usize| {
        let tids = threads_named(&prefix);
        let name = format!("{name}-{index}");
        let tid = tids.into_iter().find(|tid| tid.name().as_deref() == Some(&name)).unwrap();
        tid.status("Cpus_allowed_list").unwrap()
    };
    (0..threads).map(by_index).collect()
}

fn cpus(pool: &Pool) -> Vec<Option<usize>> {
    pool.stats().threads.iter().map(|thread| thread.cpu).collect()
}

/// Goal: a pool stays within the mask of the thread that builds it, in every way to pin, and that
/// thread keeps its own. Method: the thread restricts itself to one CPU after the other.
#[test]
fn a_mask_of_one_cpu_is_all_that_a_pool_uses() {
    in_child(|| {
        let _guard = hang_guard();
        let all = allowed_cpus();
        for &cpu in &all {
            allow_cpus(&[cpu]);
            for pin in [None, Some(Pin::None), Some(Pin::Compact), Some(Pin::Spread)] {
                for threads in [1, 4] {
                    let name = format!("m{cpu}");
                    let builder = Pool::builder().threads(threads).max_joined(0).name(name.clone());
                    let builder = match pin.clone() {
                        Some(pin) => builder.pin(pin),
                        None => builder,
                    };
                    let pool = builder.build().unwrap();
                    let done = Count::new();
                    for _ in 0..1000 {
                        let done = done.clone();
                        pool.post(move || done.up()).unwrap();
                    }
                    done.until(1000);
                    assert!(masks(&name, threads).iter().all(|mask| *mask == cpu.to_string()));
                    // The default leaves a pool unpinned that leaves no CPU free.
                    let pinned = matches!(pin, Some(Pin::Compact | Pin::Spread));
                    assert!(cpus(&pool).iter().all(|&own| own == pinned.then_some(cpu)));
                    finish(&pool);
                    until("its threads end", || threads_named(&name).is_empty());
                }
            }
            // By default there are as many threads as CPUs that may be used.
            let pool = Pool::builder().max_joined(0).build().unwrap();
            assert_eq!(pool.stats().threads.len(), 1);
            finish(&pool);
            assert_eq!(allowed_cpus(), [cpu]);
        }
        allow_cpus(&all);
    });
}

#[test]
fn a_list_is_taken_as_it_is_and_goes_round() {
    in_child(|| {
        let _guard = hang_guard();
        let all = allowed_cpus();
        let list: Vec<usize> = all.iter().rev().copied().collect();
        let threads = list.len() + 2;
        let builder = Pool::builder().threads(threads).max_joined(0).name("list");
        let pool = builder.pin(Pin::List(list.clone())).pin_strict(true).build().unwrap();
        let expected: Vec<_> = list.iter().cycle().take(threads).copied().collect();
        let named: Vec<_> = expected.iter().map(usize::to_string).collect();
        assert_eq!(masks("list", threads), named);
        assert_eq!(cpus(&pool), expected.into_iter().map(Some).collect::<Vec<_>>());
        assert_eq!(allowed_cpus(), all, "the builder's own thread is never pinned");
        finish(&pool);
        // A CPU outside of the builder's mask may be named.
        if let [first, .., last] = all[..] {
            allow_cpus(&[first]);
            let builder = Pool::builder().threads(1).max_joined(0).name("outside");
            let pool = builder.pin(Pin::List(vec![last])).pin_strict(true).build().unwrap();
            assert_eq!(masks("outside", 1), [last.to_string()]);
            finish(&pool);
        }
    });
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_by_name() {
    let _guard = hang_guard();
    for list in [vec![4096], vec![0, usize::MAX]] {
        let refused = Pool::builder().threads(2).pin(Pin::List(list)).build();
        assert!(matches!(refused, Err(Error::Invalid { name: "pin", .. })), "{refused:?}");
    }
}

/// Goal: two pools do not share CPUs while others are free.
#[test]
fn a_second_pool_takes_the_cpus_that_the_first_left() {
    in_child(|| {
        let _guard = hang_guard();
        let all = allowed_cpus();
        if all.len() < 2 {
            return skipped("this machine has one CPU");
        }
        for pin in [Pin::Compact, Pin::Spread] {
            let build = || {
                let builder = Pool::builder().threads(1).max_joined(0);
                builder.pin(pin.clone()).build().unwrap()
            };
            let (one, other) = (build(), build());
            assert_ne!(cpus(&one), cpus(&other));
            let taken = cpus(&one);
            finish(&one);
            drop(one);
            // What a pool had is free again when it has gone.
            let third = build();
            until("its place is free", || {
                cpus(&third) == taken || {
                    let again = build();
                    cpus(&again) == taken
                }
            });
            finish(&other);
            finish(&third);
        }
    });
}

/// Makes `sched_setaffinity` fail in this process from now on, as a sandbox does.
fn forbid_pinning() {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        // The number of the system call; if it is not the one, the next statement is skipped.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                libc::SYS_sched_setaffinity as u32,
            )
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid and stays in place for the length of the call.
    let result = unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn pinning_that_fails_is_an_error_if_strict_and_a_mark_if_not() {
    in_child(|| {
        let _guard = hang_guard();
        drop(Pool::builder().threads(2).build().unwrap());
        until("its threads are gone", || threads_named("paceline").is_empty());
        let (threads, descriptors) = (all_threads().len(), open_descriptors());
        forbid_pinning();
        let builder = Pool::builder().threads(2).max_joined(0).pin(Pin::Compact);
        let refused = builder.clone().pin_strict(true).build();
        let Err(Error::Os { doing, source }) = refused else { panic!("{refused:?}") };
        assert!(doing.starts_with("pin thread ") && doing.contains(" to CPU "), "{doing}");
        assert_eq!(source.raw_os_error(), Some(libc::EPERM));
        until("nothing is left", || all_threads().len() == threads);
        assert_eq!(open_descriptors(), descriptors);
        let pool = builder.build().unwrap();
        until("both tried", || pool.stats().threads.iter().all(|thread| thread.pin_failed));
        assert_eq!(cpus(&pool), [None, None]);
        assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
        finish(&pool);
        assert_eq!(Tid::current().status("Seccomp").as_deref(), Some("2"));
    });
}

/// What a program finds that inherits from whoever starts it.
fn found(program: &mut Command) -> (u64, String) {
    let output = program.arg("/proc/self/status").output().unwrap();
    read(&String::from_utf8(output.stdout).unwrap())
}

/// What is blocked, and where it may run, of a `status` in `/proc`.
fn read(status: &str) -> (u64, String) {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    (u64::from_str_radix(field("SigBlk:"), 16).unwrap(), field("Cpus_allowed_list:").to_owned())
}

fn of_thread() -> (u64, String) {
    read(&std::fs::read_to_string("/proc/thread-self/status").unwrap())
}

/// A task of this pool starts programs, and threads.
fn start_all(pool: &Pool, host: (u64, String)) {
    let task = pool.submit(move || {
        let own = of_thread();
        assert_eq!(found(&mut Command::new("cat")), own);
        let (program, nested, thread) = unconfined(|| {
            let nested = unconfined(|| found(&mut Command::new("cat")));
            let thread = std::thread::spawn(of_thread).join().unwrap();
            (found(&mut Command::new("cat")), nested, thread)
        });
        assert_eq!([&program, &nested, &thread], [&host; 3]);
        assert_eq!(of_thread(), own);
        let mut forks = Command::new("cat");
        // SAFETY: the hook does nothing. That there is one has the child forked.
        unsafe { forks.pre_exec(|| Ok(())) };
        assert_eq!(found(&mut forks), host);
        assert!(std::panic::catch_unwind(|| unconfined(|| quiet_panic("inside"))).is_err());
        assert_eq!(of_thread(), own);
    });
    task.unwrap().wait().unwrap();
}

/// Goal: programs and threads that a task starts have the signals and the CPUs of the host, if they are started as the guide
/// says, and a forked child in any case; the thread of the pool keeps its own.
#[test]
fn what_a_task_starts_has_what_the_host_has() {
    in_child(|| {
        let _guard = hang_guard();
        let host = found(&mut Command::new("cat"));
        let pool = Pool::builder().threads(1).pin(Pin::Compact).build().unwrap();
        start_all(&pool, host);
        finish(&pool);
        // Elsewhere nothing changes.
        let own = of_thread();
        assert_eq!(unconfined(of_thread), own);
    });
}

/// Goal: signals that the library watches are let through there.
#[test]
fn what_a_task_starts_is_not_kept_from_signals_that_are_watched() {
    in_child_blocking(&[libc::SIGHUP], || {
        let _guard = hang_guard();
        let (blocked, cpus) = found(&mut Command::new("cat"));
        let hangup = 1 << (libc::SIGHUP - 1);
        assert_eq!(blocked & hangup, hangup);
        let pool = Pool::builder().threads(1).pin(Pin::Compact).build().unwrap();
        let signals = Signals::new(&pool, &[libc::SIGHUP], |_| {}).unwrap();
        start_all(&pool, (blocked & !hangup, cpus));
        drop(signals);
        finish(&pool);
    });
}
