//! What cannot be registered or built is refused with its reason, and leaves nothing behind.

mod common;

use common::{
    Count, Fd, Tid, all_threads, finish, hang_guard, in_child, limit, lowest_free,
    open_descriptors, until,
};
use paceline::{Error, Flow, HandleOptions, Interest, Pool, SourceKind};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

#[track_caller]
fn text<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("it should be refused").to_string()
}

#[test]
fn a_descriptor_in_blocking_mode_is_refused_unless_level_triggered() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (read, write) = Fd::blocking_pipe();
    let number = read.number();
    let refused = text(pool.register(read, |_, _| Flow::Wait));
    let expected = format!(
        "io is descriptor {number} in blocking mode, but must be non-blocking (O_NONBLOCK) or level()"
    );
    assert_eq!(refused, expected);
    assert!(write.write(b"!").is_err(), "the refused end was dropped");
    let (read, write) = Fd::blocking_pipe();
    let bytes = Count::new();
    let count = bytes.clone();
    let options = HandleOptions::new().level().interest(Interest::READABLE);
    let handle = pool.register_with(read, options, move |fd: &mut Fd, _| {
        count.add(fd.read(&mut [0; 8]).unwrap() as u64);
        Flow::Wait
    });
    write.write(b"12").unwrap();
    bytes.until(2);
    drop(handle);
    finish(&pool);
}

#[test]
fn files_and_second_registrations_are_refused_by_the_kernels_word() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let file = File::open("/proc/self/exe").unwrap();
    let number = file.as_raw_fd();
    let options = HandleOptions::new().level();
    let refused = text(pool.register_with(file, options, |_, _| Flow::Wait));
    assert!(refused.starts_with(&format!("cannot register descriptor {number}: ")), "{refused}");
    let (read, _write) = Fd::pipe();
    #[allow(unsafe_code, reason = "the same descriptor twice")]
    // SAFETY: the number stays open until the end of this function.
    let twice = || unsafe { BorrowedFd::borrow_raw(read.number()) };
    let first = pool.register(twice(), |_, _| Flow::Wait).unwrap();
    let refused = pool.register(twice(), |_, _| Flow::Wait);
    let Err(Error::Os { source, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    // What was refused has left the first one alone, and no slot behind.
    assert!(first.is_open());
    assert_eq!(pool.stats().handles, 1);
    drop(first);
    finish(&pool);
}

#[test]
fn a_pool_without_descriptors_refuses_them_and_serves_the_rest() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).source(SourceKind::Ring).build().unwrap();
    let (read, _write) = Fd::pipe();
    assert!(matches!(pool.register(read, |_, _| Flow::Wait), Err(Error::Os { .. })));
    let fired = Count::new();
    let (once, every) = (fired.clone(), fired.clone());
    pool.after(Duration::from_millis(1), move || once.up()).unwrap();
    let periodic = pool.every(Duration::from_millis(1), move || {
        every.up();
        Flow::Wait
    });
    fired.until(5);
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7);
    drop(periodic);
    finish(&pool);
}

#[test]
fn registering_after_shutdown_drops_the_owner() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    finish(&pool);
    let (read, write) = Fd::pipe();
    assert!(matches!(pool.register(read, |_, _| Flow::Wait), Err(Error::ShutDown)));
    assert!(write.write(b"!").is_err());
    assert!(matches!(pool.after(Duration::ZERO, || ()), Err(Error::ShutDown)));
    let every = pool.every(Duration::from_secs(1), || Flow::Wait);
    assert!(matches!(every, Err(Error::ShutDown)));
    assert!(matches!(pool.join(Duration::ZERO), Err(Error::ShutDown)));
}

/// Goal: without descriptors a pool is not half built, and a pool that is built goes on. Method: a
/// process that may open no more than it has.
#[test]
fn without_descriptors_building_fails_whole_and_a_running_pool_goes_on() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(2).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, refusals, bytes) = (Count::new(), Count::new(), Count::new());
        let (accepts, refused) = (accepted.clone(), refusals.clone());
        let options = HandleOptions::new().level().interest(Interest::READABLE);
        let acceptor = pool.register_with(listener, options, move |listener, _| {
            match listener.accept() {
                Ok(_) => accepts.up(),
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => refused.up(),
                Err(_) => {}
            }
            Flow::Wait
        });
        let (read, write) = Fd::pipe();
        let client = TcpStream::connect(address).unwrap();
        accepted.until(1);
        until("the accepted one is closed", || is_closed(&client));
        let threads = all_threads().len();

        // One connection is on its way before there is no descriptor left to accept it.
        let _second = TcpStream::connect(address).unwrap();
        accepted.until(2);
        let before = limit(libc::RLIMIT_NOFILE, 0);
        let refused = Pool::builder().threads(8).build();
        let Err(Error::Os { doing, source }) = refused else { panic!("{refused:?}") };
        assert_eq!(doing, "open an event source (epoll, eventfd)");
        assert_eq!(source.raw_os_error(), Some(libc::EMFILE));
        // Registering needs no descriptor.
        let count = bytes.clone();
        let handle = pool.register(read, move |fd: &mut Fd, _| {
            count.add(fd.drain() as u64);
            Flow::Wait
        });
        write.write(b"12345").unwrap();
        bytes.until(5);
        limit(libc::RLIMIT_NOFILE, before);

        // One more than what is open: the first of the two that a source needs is given back.
        limit(libc::RLIMIT_NOFILE, lowest_free() + 1);
        assert!(matches!(Pool::builder().threads(8).build(), Err(Error::Os { .. })));
        // Accepting fails, and the others do not notice.
        limit(libc::RLIMIT_NOFILE, lowest_free() + 1);
        let _third = TcpStream::connect(address).unwrap();
        refusals.until(3);
        write.write(b"12345").unwrap();
        bytes.until(10);
        limit(libc::RLIMIT_NOFILE, before);
        accepted.until(3);
        assert_eq!(all_threads().len(), threads);
        assert!(Pool::builder().threads(8).build().is_ok());
        drop((handle, acceptor));
        finish(&pool);
    });
}

/// Whether the peer of `client` has closed its end.
fn is_closed(client: &TcpStream) -> bool {
    use std::io::Read;
    matches!((&*client).read(&mut [0; 1]), Ok(0) | Err(_))
}

/// Goal: when a thread cannot be started, those before it are stopped and nothing is left. Method: a
/// process whose memory ends before the eighth stack.
#[test]
fn a_pool_whose_threads_cannot_all_be_started_leaves_nothing_behind() {
    in_child(|| {
        let _guard = hang_guard();
        // Warm up whatever is made once.
        drop(Pool::builder().threads(2).build().unwrap());
        until("its threads are gone", || common::threads_named("paceline").is_empty());
        let (threads, descriptors) = (all_threads().len(), open_descriptors());
        let (started, stopped) = (Count::new(), Count::new());
        let (starts, stops) = (started.clone(), stopped.clone());
        let used = Tid::current().status("VmSize").unwrap();
        let used: u64 = used.trim_end_matches(" kB").parse().unwrap();
        const STACK: u64 = 1 << 30;
        let before = limit(libc::RLIMIT_AS, used * 1024 + 4 * STACK);
        let refused = Pool::builder()
            .threads(8)
            .stack_size(STACK as usize)
            .on_start(move |_| starts.up())
            .on_stop(move |_| stops.up())
            .build();
        limit(libc::RLIMIT_AS, before);
        let Err(Error::Os { doing, .. }) = refused else { panic!("{refused:?}") };
        let failed: u64 = doing.strip_prefix("start thread ").unwrap().parse().unwrap();
        assert!((1..8).contains(&failed), "{doing}");
        assert_eq!((started.get(), stopped.get()), (failed, failed));
        until("the threads are gone", || all_threads().len() == threads);
        assert_eq!(open_descriptors(), descriptors);
    });
}
