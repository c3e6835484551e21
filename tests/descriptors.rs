//! Handles: any descriptor, edge and level, and what a handler may answer.

mod common;

use common::{Count, Fd, Gate, drain, finish, hang_guard, in_child_blocking, until};
use paceline::{Error, Flow, Handle, HandleOptions, Interest, Pool, Ready};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (server, client)
}

fn unix_pair() -> (UnixStream, UnixStream) {
    let (server, client) = UnixStream::pair().unwrap();
    server.set_nonblocking(true).unwrap();
    (server, client)
}

/// Registers a pipe whose handler counts bytes.
fn counting(pool: &Pool, options: HandleOptions, bytes: &Count) -> (Handle<Fd>, Fd) {
    let (read, write) = Fd::pipe();
    let bytes = bytes.clone();
    let handler = move |fd: &mut Fd, _| {
        bytes.add(fd.drain() as u64);
        Flow::Wait
    };
    (pool.register_with(read, options, handler).unwrap(), write)
}

/// Whatever was written to other descriptors of the pool before this has been harvested when it
/// returns, and their handlers were called if they are to be: one thread, one set, and the kernel
/// reports in the order in which descriptors became ready.
fn in_turn(pool: &Pool) {
    let bytes = Count::new();
    let (handle, write) = counting(pool, HandleOptions::new(), &bytes);
    write.write(b"!").unwrap();
    bytes.until(1);
    handle.deregister().unwrap();
    pool.submit(|| ()).unwrap().wait().unwrap();
}

/// Registers `io` in both ways, and triggers it some times; each time the handler must be called and
/// take `amount`.
fn every_way<S: AsFd + Send + 'static>(
    pool: &Pool,
    make: impl Fn() -> S,
    take: fn(&S) -> usize,
    trigger: impl Fn(&S) -> Box<dyn FnMut()>,
    amount: usize,
) {
    for options in [HandleOptions::new(), HandleOptions::new().level()] {
        let io = make();
        let (taken, mut trigger) = (Count::new(), trigger(&io));
        let count = taken.clone();
        let handler = move |io: &mut S, ready: Ready| {
            if ready.is_readable() {
                count.add(take(io) as u64);
            }
            Flow::Wait
        };
        let options = options.interest(Interest::READABLE);
        let handle = pool.register_with(io, options, handler).unwrap();
        for round in 1..=20 {
            trigger();
            taken.until(round * amount as u64);
        }
        assert_eq!(taken.get(), 20 * amount as u64);
        drop(handle);
    }
}

#[test]
fn sockets_pipes_and_events_of_every_kind_are_served_in_both_modes() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    // The far end is kept by the trigger, which is made from the near one's address or twin.
    let tcp = Mutex::new(None);
    every_way(
        &pool,
        || {
            let (server, client) = tcp_pair();
            *tcp.lock().unwrap() = Some(client);
            server
        },
        |stream| drain(stream),
        |_| {
            let mut client = tcp.lock().unwrap().take().unwrap();
            Box::new(move || client.write_all(b"0123456789").unwrap())
        },
        10,
    );
    let unix = Mutex::new(None);
    every_way(
        &pool,
        || {
            let (server, client) = unix_pair();
            *unix.lock().unwrap() = Some(client);
            server
        },
        |stream| drain(stream),
        |_| {
            let mut client = unix.lock().unwrap().take().unwrap();
            Box::new(move || client.write_all(b"01234").unwrap())
        },
        5,
    );
    every_way(
        &pool,
        || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        },
        |socket| std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).sum(),
        |socket| {
            let (to, from) =
                (socket.local_addr().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
            Box::new(move || assert_eq!(from.send_to(b"datagram", to).unwrap(), 8))
        },
        8,
    );
    let datagrams = Mutex::new(None);
    every_way(
        &pool,
        || {
            let (near, far) = UnixDatagram::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            *datagrams.lock().unwrap() = Some(far);
            near
        },
        |socket| std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).sum(),
        |_| {
            let far = datagrams.lock().unwrap().take().unwrap();
            Box::new(move || assert_eq!(far.send(b"unix").unwrap(), 4))
        },
        4,
    );
    let pipe = Mutex::new(None);
    every_way(
        &pool,
        || {
            let (read, write) = Fd::pipe();
            *pipe.lock().unwrap() = Some(write);
            read
        },
        Fd::drain,
        |_| {
            let write = pipe.lock().unwrap().take().unwrap();
            Box::new(move || assert_eq!(write.write(b"abc").unwrap(), 3))
        },
        3,
    );
    every_way(
        &pool,
        Fd::eventfd,
        |counter| {
            let mut count = [0; 8];
            counter.read(&mut count).map_or(0, |_| u64::from_ne_bytes(count) as usize)
        },
        |counter| {
            let twin = counter.duplicate();
            Box::new(move || assert_eq!(twin.write(&7_u64.to_ne_bytes()).unwrap(), 8))
        },
        7,
    );
    finish(&pool);
    assert_eq!(pool.stats().handles, 0);
}

#[test]
fn a_signalfd_is_a_descriptor_like_any_other() {
    in_child_blocking(&[libc::SIGUSR2], || {
        let _guard = hang_guard();
        let pool = Pool::builder().threads(2).build().unwrap();
        every_way(
            &pool,
            || Fd::signalfd(libc::SIGUSR2),
            |fd| std::iter::from_fn(|| fd.read(&mut [0; 128]).ok()).sum(),
            |_| {
                Box::new(|| {
                    #[allow(unsafe_code, reason = "sends this process a signal that it blocks")]
                    // SAFETY: every thread blocks the signal, so that it waits to be read.
                    let result = unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) };
                    assert_eq!(result, 0);
                })
            },
            size_of::<libc::signalfd_siginfo>(),
        );
        finish(&pool);
    });
}

#[test]
fn what_is_ready_at_registration_is_reported() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (server, mut client) = unix_pair();
    client.write_all(b"early").unwrap();
    let first = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&first);
    let handle = pool.register(server, move |stream: &mut UnixStream, ready| {
        seen.lock().unwrap().get_or_insert((ready, drain(stream)));
        Flow::Wait
    });
    until("the first call", || first.lock().unwrap().is_some());
    let (ready, bytes) = first.lock().unwrap().unwrap();
    assert!(ready.is_readable() && ready.is_writable() && !ready.is_read_closed(), "{ready:?}");
    assert_eq!(bytes, 5);
    drop(handle);
    finish(&pool);
}

/// Goal: room to write is reported when there is some again. Method: a handler that writes a
/// megabyte through a socket whose buffer is far smaller, to a peer that reads slowly.
#[test]
fn a_handler_that_writes_is_called_when_there_is_room() {
    let _guard = hang_guard();
    const TOTAL: usize = 1 << 20;
    let pool = Pool::builder().threads(2).build().unwrap();
    let (server, mut client) = unix_pair();
    let mut left = TOTAL;
    let handler = move |stream: &mut UnixStream, _| {
        while left > 0 {
            match stream.write(&[7; 4096][..left.min(4096)]) {
                Ok(count) => left -= count,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    return Flow::Wait;
                }
            }
        }
        Flow::Done
    };
    pool.register(server, handler).unwrap().detach();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), TOTAL);
    finish(&pool);
}

#[test]
fn again_calls_back_behind_the_others_until_all_is_done() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (log, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::new());
    let visitor = gate.clone();
    pool.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    let handles: Vec<_> = (0..2)
        .map(|number| {
            let (read, write) = Fd::pipe();
            write.write(&[0; 50]).unwrap();
            let log = Arc::clone(&log);
            // One byte at a time: nothing is written any more, so only `Again` brings the next.
            let handler = move |fd: &mut Fd, ready: Ready| {
                assert!(ready.is_readable());
                match fd.read(&mut [0; 1]) {
                    Ok(_) => {
                        log.lock().unwrap().push(number);
                        Flow::Again
                    }
                    Err(_) => Flow::Wait,
                }
            };
            (pool.register(read, handler).unwrap(), write)
        })
        .collect();
    gate.open();
    until("every byte is read", || log.lock().unwrap().len() == 100);
    // They take turns: neither runs twice while the other waits.
    let both = |log: &[i32]| log.iter().filter(|&&number| number == 0).count();
    let log = log.lock().unwrap();
    assert!((45..=55).contains(&both(&log)) && (20..=30).contains(&both(&log[..50])), "{log:?}");
    drop(handles);
    finish(&pool);
}

/// Goal: a level-triggered handler that takes what it likes and waits is called until nothing is
/// left; its descriptor may block.
#[test]
fn a_level_triggered_handler_need_not_read_everything() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let (read, write) = Fd::blocking_pipe();
    let bytes = Count::new();
    let count = bytes.clone();
    let options = HandleOptions::new().level().interest(Interest::READABLE);
    let handle = pool.register_with(read, options, move |fd: &mut Fd, _| {
        // It is called only when there is a byte, so this never blocks.
        count.add(fd.read(&mut [0; 1]).unwrap() as u64);
        Flow::Wait
    });
    write.write(&[0; 100]).unwrap();
    bytes.until(100);
    write.write(&[0; 100]).unwrap();
    bytes.until(200);
    // Paused, it keeps what comes; resumed, it goes on.
    let handle = handle.unwrap();
    handle.pause().unwrap();
    write.write(&[0; 100]).unwrap();
    handle.resume().unwrap();
    bytes.until(300);
    drop(handle);
    finish(&pool);
}

#[test]
fn nothing_is_delivered_in_a_pause_and_nothing_is_lost_by_it() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let bytes = Count::new();
    let (handle, write) = counting(&pool, HandleOptions::new().paused(), &bytes);
    write.write(b"12345").unwrap();
    in_turn(&pool);
    assert_eq!(bytes.get(), 0, "registered paused");
    handle.resume().unwrap();
    bytes.until(5);
    handle.pause().unwrap();
    handle.pause().unwrap();
    write.write(b"12345").unwrap();
    in_turn(&pool);
    assert_eq!(bytes.get(), 5, "paused");
    // No new edge comes; what was kept is delivered.
    handle.resume().unwrap();
    bytes.until(10);
    drop(handle);
    finish(&pool);
}

#[test]
fn a_handler_that_pauses_itself_is_called_again_after_resume_only() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (read, write) = Fd::pipe();
    let calls = Count::new();
    let called = calls.clone();
    let handler = move |fd: &mut Fd, _| {
        called.up();
        // One byte only: the others are left in the pipe.
        let _byte = fd.read(&mut [0; 1]);
        Flow::Pause
    };
    let handle = pool.register(read, handler).unwrap();
    write.write(b"123").unwrap();
    calls.until(1);
    for round in 1..4 {
        write.write(b"4").unwrap();
        in_turn(&pool);
        assert_eq!(calls.get(), round);
        handle.resume().unwrap();
        calls.until(round + 1);
    }
    drop(handle);
    finish(&pool);
}

/// Goal: a handler that pauses itself is called again after a resume that came while it ran. Method: a handler that takes
/// one byte, waits until it has been resumed, and pauses; level and edge.
#[test]
fn a_resume_that_comes_before_the_pause_is_not_lost() {
    const BYTES: u64 = 100;
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    for options in [HandleOptions::new(), HandleOptions::new().level()] {
        let (read, write) = Fd::pipe();
        let (begun, resumed) = (Count::new(), Count::new());
        let (begins, may_pause) = (begun.clone(), resumed.clone());
        let handler = move |fd: &mut Fd, _| {
            if fd.read(&mut [0; 1]).is_err() {
                return Flow::Wait;
            }
            begins.up();
            may_pause.until(begins.get());
            Flow::Pause
        };
        let handle = pool.register_with(read, options, handler).unwrap();
        assert_eq!(write.write(&[0; BYTES as usize]).unwrap(), BYTES as usize);
        for call in 1..=BYTES {
            begun.until(call);
            handle.resume().unwrap();
            resumed.up();
        }
        drop(handle);
    }
    finish(&pool);
}

/// Goal: pausing and resuming at any moment loses no byte. Method: a writer, a handler on any of
/// eight threads, and a third party that pauses and resumes without rest.
#[test]
fn pause_and_resume_race_against_traffic_without_a_loss() {
    let _guard = hang_guard();
    const TOTAL: u64 = 200_000;
    let pool = Pool::builder().threads(8).build().unwrap();
    for options in [HandleOptions::new(), HandleOptions::new().level()] {
        let bytes = Count::new();
        let (handle, write) = counting(&pool, options, &bytes);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    handle.pause().unwrap();
                    thread::yield_now();
                    handle.resume().unwrap();
                }
            });
            let mut sent = 0;
            while sent < TOTAL {
                match write.write(&[0; 100]) {
                    Ok(count) => sent += count as u64,
                    Err(_) => thread::yield_now(),
                }
            }
            bytes.until(TOTAL);
            over.store(true, SeqCst);
        });
        assert_eq!(bytes.get(), TOTAL);
        drop(handle);
    }
    finish(&pool);
}

#[test]
fn hang_ups_and_errors_pass_a_pause_but_the_peers_end_does_not() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let register = |io: Fd| {
        let seen = Arc::clone(&seen);
        let options = HandleOptions::new().paused();
        let handler = move |_: &mut Fd, ready| {
            seen.lock().unwrap().push(ready);
            Flow::Wait
        };
        pool.register_with(io, options, handler).unwrap()
    };
    // The writer of a pipe goes: a hang-up. The reader goes: an error.
    let (read, write) = Fd::pipe();
    let reader = register(read);
    drop(write);
    until("the hang-up", || seen.lock().unwrap().iter().any(|ready| ready.is_hang_up()));
    drop(reader);
    let (read, write) = Fd::pipe();
    let writer = register(write);
    drop(read);
    until("the error", || seen.lock().unwrap().iter().any(|ready| ready.is_error()));
    drop(writer);
    // A peer that only ends its sending waits for the pause to end.
    seen.lock().unwrap().clear();
    let (server, client) = tcp_pair();
    let half_closed = register(Fd(server.into()));
    client.shutdown(std::net::Shutdown::Write).unwrap();
    in_turn(&pool);
    assert!(seen.lock().unwrap().is_empty());
    half_closed.resume().unwrap();
    let read_closed = |ready: &Ready| ready.is_read_closed() && !ready.is_hang_up();
    until("the end of sending", || seen.lock().unwrap().iter().any(read_closed));
    drop(half_closed);
    finish(&pool);
}

/// How a handle comes to be paused.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Registered,
    Called,
    Answered,
}

/// Goal: a paused handle is silent, level or edge, whatever becomes of its descriptor; the one exception is an
/// error or a hang-up of an edge-triggered one, once. Nothing is lost by it. Method: every kind of descriptor
/// that can end, paused in each way, and then ended; other handles are served many times meanwhile, so that a
/// handle that is called again and again shows. Then it is resumed.
#[test]
fn a_paused_handle_is_silent_whatever_its_descriptor_comes_to() {
    let _guard = hang_guard();
    /// A descriptor, and what ends it. Whether that is an error or a hang-up.
    type End = (&'static str, fn() -> (Fd, Box<dyn FnOnce()>), bool);
    let ends: [End; 7] = [
        (
            "a pipe whose writer goes",
            || {
                let (read, write) = Fd::pipe();
                (read, Box::new(|| drop(write)))
            },
            true,
        ),
        (
            "a pipe whose reader goes",
            || {
                let (read, write) = Fd::pipe();
                (write, Box::new(|| drop(read)))
            },
            true,
        ),
        (
            "a Unix stream whose peer goes",
            || {
                let (near, far) = unix_pair();
                (Fd(near.into()), Box::new(|| drop(far)))
            },
            true,
        ),
        (
            "a TCP stream whose peer resets",
            || {
                let (near, far) = tcp_pair();
                // What is closed with something unread is reset.
                (&near).write_all(b"!").unwrap();
                until("the byte", || far.peek(&mut [0; 1]).unwrap() == 1);
                (Fd(near.into()), Box::new(|| drop(far)))
            },
            true,
        ),
        (
            "a TCP stream that is shut down on both sides",
            || {
                let (near, far) = tcp_pair();
                let here = near.try_clone().unwrap();
                let end = move || {
                    far.shutdown(std::net::Shutdown::Both).unwrap();
                    here.shutdown(std::net::Shutdown::Both).unwrap();
                };
                (Fd(near.into()), Box::new(end))
            },
            true,
        ),
        (
            "a TCP stream whose peer ends its sending",
            || {
                let (near, far) = tcp_pair();
                let end = move || {
                    far.shutdown(std::net::Shutdown::Write).unwrap();
                    // It is not reset: it stays open.
                    std::mem::forget(far);
                };
                (Fd(near.into()), Box::new(end))
            },
            false,
        ),
        (
            "a Unix stream that is written to",
            || {
                let (near, far) = unix_pair();
                let write = move || {
                    (&far).write_all(b"!").unwrap();
                    std::mem::forget(far);
                };
                (Fd(near.into()), Box::new(write))
            },
            false,
        ),
    ];
    let pool = Pool::builder().threads(1).build().unwrap();
    for (name, make, passes) in ends {
        for level in [false, true] {
            for way in [Way::Registered, Way::Called, Way::Answered] {
                let case = format!("{name}, level: {level}, paused: {way:?}");
                let (io, end) = make();
                let (calls, resumed) = (Count::new(), Arc::new(AtomicBool::new(false)));
                let (called, is_resumed) = (calls.clone(), Arc::clone(&resumed));
                let handler = move |_: &mut Fd, _| {
                    called.up();
                    match way {
                        _ if is_resumed.load(SeqCst) => Flow::Done,
                        Way::Answered => Flow::Pause,
                        _ => Flow::Wait,
                    }
                };
                let mut options = HandleOptions::new().interest(Interest::BOTH);
                if level {
                    options = options.level();
                }
                if way == Way::Registered {
                    options = options.paused();
                }
                let handle = pool.register_with(io, options, handler).unwrap();
                in_turn(&pool);
                if way == Way::Called {
                    // Room to write has been reported.
                    handle.pause().unwrap();
                    in_turn(&pool);
                }
                let before = calls.get();
                end();
                (0..50).for_each(|_| in_turn(&pool));
                let meanwhile = calls.get() - before;
                // It pauses itself when it is called for the first time.
                let first = u64::from(way == Way::Answered && before == 0);
                let allowed = u64::from(passes && !level) + first;
                assert!(meanwhile <= allowed, "{case}: called {meanwhile} times in the pause");
                resumed.store(true, SeqCst);
                handle.resume().unwrap();
                in_turn(&pool);
                assert!(calls.get() > 0, "{case}: nothing was told after the pause");
                if level {
                    assert_eq!(calls.get(), before + meanwhile + 1, "{case}: after the pause");
                    assert!(!handle.is_open());
                }
                drop(handle);
            }
        }
    }
    finish(&pool);
}

#[test]
fn done_deregisters_and_drops_once() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(4).build().unwrap();
    let (server, mut client) = unix_pair();
    let (dropped, calls) = (Count::new(), Count::new());
    let (on_drop, called) = (dropped.on_drop(), calls.clone());
    let handler = move |stream: &mut UnixStream, ready: Ready| {
        let _held = &on_drop;
        if ready.is_readable() && drain(stream) > 0 {
            called.up();
            return Flow::Done;
        }
        Flow::Wait
    };
    let handle = pool.register(server, handler).unwrap();
    client.write_all(b"!").unwrap();
    dropped.until(1);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the server's end is closed");
    until("its slot is free", || pool.stats().handles == 0);
    assert!(!handle.is_open());
    assert!(matches!(handle.resume(), Err(Error::Stale { .. })));
    assert!(matches!(handle.deregister(), Err(Error::Stale { .. })));
    finish(&pool);
    assert_eq!((calls.get(), dropped.get()), (1, 1));
}

#[test]
fn an_interest_filters_what_is_reported() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let (server, mut client) = tcp_pair();
    let options = HandleOptions::new().interest(Interest::READABLE | Interest::PRIORITY);
    let handle = pool.register_with(server, options, move |stream: &mut TcpStream, ready| {
        log.lock().unwrap().push(ready);
        drain(stream);
        Flow::Wait
    });
    in_turn(&pool);
    assert!(seen.lock().unwrap().is_empty(), "it is writable, but nobody asked");
    client.write_all(b"!").unwrap();
    until("readable", || seen.lock().unwrap().iter().any(|ready| ready.is_readable()));
    // A handler that still reads would read past the urgent byte, and the kernel would forget it.
    in_turn(&pool);
    #[allow(unsafe_code, reason = "std has no out-of-band data")]
    // SAFETY: one readable byte.
    let sent = unsafe {
        use std::os::fd::AsRawFd;
        libc::send(client.as_raw_fd(), [0_u8].as_ptr().cast(), 1, libc::MSG_OOB)
    };
    assert_eq!(sent, 1);
    until("urgent", || seen.lock().unwrap().iter().any(|ready| ready.is_priority()));
    assert!(seen.lock().unwrap().iter().all(|ready| !ready.is_writable()));
    drop(handle);
    finish(&pool);
}

/// Goal: a handler runs on one thread at a time, whoever it is, and sees every byte. Method: 16
/// handles, 4 writers, 8 threads; each handler keeps a plain count and a mark of being inside.
#[test]
fn a_handler_never_runs_twice_at_a_time() {
    let _guard = hang_guard();
    const HANDLES: usize = 16;
    const EACH: u64 = 20_000;
    for promotion in [paceline::Promotion::Deferred, paceline::Promotion::Eager] {
        let pool = Pool::builder().threads(8).promotion(promotion).build().unwrap();
        let total = Count::new();
        let mut writers = Vec::new();
        for _ in 0..HANDLES {
            let ((read, write), inside, total) =
                (Fd::pipe(), AtomicBool::new(false), total.clone());
            let handler = move |fd: &mut Fd, _| {
                assert!(!inside.swap(true, SeqCst), "twice at a time");
                total.add(fd.drain() as u64);
                thread::yield_now();
                inside.store(false, SeqCst);
                Flow::Wait
            };
            pool.register(read, handler).unwrap().detach();
            writers.push(write);
        }
        thread::scope(|scope| {
            for part in writers.chunks(HANDLES / 4) {
                scope.spawn(move || {
                    for fd in part.iter().cycle().take(part.len() * EACH as usize / 10) {
                        while fd.write(&[0; 10]).is_err() {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        total.until(HANDLES as u64 * EACH);
        let panics: u64 = pool.stats().threads.iter().map(|thread| thread.panics).sum();
        assert_eq!((total.get(), panics), (HANDLES as u64 * EACH, 0));
        finish(&pool);
    }
}

#[test]
fn a_detached_handle_lives_until_the_pool_ends() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let bytes = Count::new();
    let (handle, write) = counting(&pool, HandleOptions::new(), &bytes);
    handle.detach();
    write.write(b"12").unwrap();
    bytes.until(2);
    finish(&pool);
    assert_eq!(write.write(b"3").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(pool.stats().handles, 0);
}
