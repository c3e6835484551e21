//! Registrations of every kind of descriptor (promises 1 to 5 of the contract).

use super::super::{Events, Interest, Ready, ScriptedSource, Source};
use super::{kernel, look};
use crate::sys::eventfd::EventFd;
use crate::sys::timerfd::TimerFd;
use std::io::{self, Write};
use std::net::{Shutdown, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::rc::Rc;

/// A descriptor of some kind, and how to make it readable.
struct Kind {
    name: &'static str,
    fd: Box<dyn AsFd>,
    poke: Box<dyn Fn()>,
}

impl Kind {
    fn new(name: &'static str, fd: impl AsFd + 'static, poke: impl Fn() + 'static) -> Self {
        Self { name, fd: Box::new(fd), poke: Box::new(poke) }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        (*self.fd).as_fd()
    }

    /// One of each.
    fn all() -> Vec<Kind> {
        vec![tcp(), udp(), unix_stream(), unix_datagram(), pipe(), eventfd(), timerfd(), signalfd()]
    }
}

fn tcp() -> Kind {
    let (near, far) = kernel::tcp_pair();
    Kind::new("tcp", near, move || (&far).write_all(b"x").unwrap())
}

fn udp() -> Kind {
    let (near, far) =
        (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    near.set_nonblocking(true).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    Kind::new("udp", near, move || assert_eq!(far.send(b"x").unwrap(), 1))
}

fn unix_stream() -> Kind {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    Kind::new("unix stream", near, move || (&far).write_all(b"x").unwrap())
}

fn unix_datagram() -> Kind {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    Kind::new("unix datagram", near, move || assert_eq!(far.send(b"x").unwrap(), 1))
}

fn pipe() -> Kind {
    let (reader, writer) = kernel::pipe();
    Kind::new("pipe", reader, move || (&writer).write_all(b"x").unwrap())
}

fn eventfd() -> Kind {
    let counter = Rc::new(EventFd::new().unwrap());
    Kind::new("eventfd", counter.clone(), move || counter.signal())
}

fn timerfd() -> Kind {
    let timer = Rc::new(TimerFd::new().unwrap());
    Kind::new("timerfd", timer.clone(), move || timer.set(1).unwrap())
}

fn signalfd() -> Kind {
    let signal = libc::SIGRTMIN() + 6;
    Kind::new("signalfd", kernel::signal_fd(signal), move || kernel::raise(signal))
}

const TOKEN: u64 = 0xfeed_0000_0001;

/// Waits for the next harvest, which the kernel may take a moment to bring.
fn next(source: &Source) -> Vec<(u64, Ready)> {
    let mut events = Events::with_capacity(16);
    while source.wait(&mut events, 16, Some(5_000_000_000)).unwrap() == 0 {}
    events.iter().collect()
}

/// Goal: promise 2. Method: one change, two looks; another change, a third.
#[test]
fn edge_triggered_reports_each_change_once() {
    for kind in Kind::all() {
        let source = Source::epoll().unwrap();
        source.register(kind.fd(), TOKEN, Interest::READABLE, false).unwrap();
        assert_eq!(look(&source), [], "{}", kind.name);
        for _ in 0..2 {
            (kind.poke)();
            assert_eq!(next(&source), [(TOKEN, Ready::READABLE)], "{}", kind.name);
            assert_eq!(look(&source), [], "{} was read by nobody, and changed no more", kind.name);
        }
    }
}

/// Goal: promise 3. Method: the same readiness is reported once per arming until it is consumed.
#[test]
fn level_triggered_reports_once_per_arming() {
    for kind in Kind::all() {
        let source = Source::epoll().unwrap();
        source.register(kind.fd(), TOKEN, Interest::READABLE, true).unwrap();
        for _ in 0..2 {
            (kind.poke)();
            assert_eq!(next(&source), [(TOKEN, Ready::READABLE)], "{}", kind.name);
            (kind.poke)();
            assert_eq!(look(&source), [], "{} is disarmed", kind.name);
            source.rearm(kind.fd(), TOKEN, Interest::READABLE).unwrap();
            assert_eq!(next(&source), [(TOKEN, Ready::READABLE)], "{} is unread", kind.name);
            kernel::drain(&kind.fd());
            source.rearm(kind.fd(), TOKEN, Interest::READABLE).unwrap();
            assert_eq!(look(&source), [], "{} is read", kind.name);
        }
    }
}

/// Goal: promise 3, for what is never over. Method: a hang-up, told once per arming by the kernel and by the double.
#[test]
fn a_hang_up_is_reported_once_per_arming() {
    let (reader, writer) = kernel::pipe();
    drop(writer);
    let script = ScriptedSource::new();
    script.ready(&reader, Ready::HANG_UP);
    for (source, brings_it_again) in
        [(Source::epoll().unwrap(), true), (Source::scripted(&script), false)]
    {
        source.register(reader.as_fd(), TOKEN, Interest::READABLE, true).unwrap();
        for _ in 0..2 {
            assert_eq!(look(&source), [(TOKEN, Ready::HANG_UP)]);
            assert_eq!(look(&source), [], "it is disarmed");
            source.rearm(reader.as_raw_fd(), TOKEN, Interest::READABLE).unwrap();
            if !brings_it_again {
                script.ready(&reader, Ready::HANG_UP);
            }
        }
    }
}

#[test]
fn what_is_ready_at_registration_is_a_change() {
    for level in [false, true] {
        for kind in Kind::all() {
            let source = Source::epoll().unwrap();
            (kind.poke)();
            source.register(kind.fd(), TOKEN, Interest::READABLE, level).unwrap();
            assert_eq!(next(&source), [(TOKEN, Ready::READABLE)], "{}", kind.name);
        }
    }
}

/// Goal: promise 5. Method: the open file lives on in a duplicate, which `close` alone would leave
/// registered for ever.
#[test]
fn a_deregistered_descriptor_is_silent_though_a_duplicate_keeps_it_open() {
    for level in [false, true] {
        for kind in Kind::all() {
            let source = Source::epoll().unwrap();
            let duplicate = kind.fd().try_clone_to_owned().unwrap();
            source.register(kind.fd(), TOKEN, Interest::READABLE, level).unwrap();
            (kind.poke)(); // reported to nobody: deregistering forgets it
            source.deregister(kind.fd().as_raw_fd()).unwrap();
            let Kind { name, fd, poke } = kind;
            // A timer or a counter is shared with its poke, so only this holder is closed.
            drop(fd);
            poke();
            assert_eq!(look(&source), [], "{name}");
            drop(duplicate);
        }
    }
}

/// Goal: a number that the kernel gives out again carries the new token, never the old one.
#[test]
fn a_reused_number_has_the_new_token() {
    let source = Source::epoll().unwrap();
    for token in 1..100 {
        let counter = EventFd::new().unwrap();
        source.register(counter.as_fd(), token, Interest::READABLE, false).unwrap();
        counter.signal();
        assert_eq!(look(&source), [(token, Ready::READABLE)]);
        counter.signal();
        source.deregister(counter.as_fd().as_raw_fd()).unwrap();
    }
    assert_eq!(look(&source), []);
}

#[test]
fn tokens_come_back_as_they_were_given() {
    for token in [0, 1, u64::from(u32::MAX), u64::MAX - 1] {
        let (source, counter) = (Source::epoll().unwrap(), EventFd::new().unwrap());
        source.register(counter.as_fd(), token, Interest::READABLE, false).unwrap();
        counter.signal();
        assert_eq!(look(&source), [(token, Ready::READABLE)]);
    }
}

#[test]
fn a_peer_that_ends_or_leaves_is_told_apart() {
    let source = Source::epoll().unwrap();
    let (near, far) = kernel::tcp_pair();
    source.register(near.as_fd(), TOKEN, Interest::READABLE, false).unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&source), [(TOKEN, Ready::READABLE | Ready::READ_CLOSED)]);

    let (near, far) = UnixStream::pair().unwrap();
    source.register(near.as_fd(), TOKEN, Interest::READABLE, false).unwrap();
    drop(far);
    let gone = Ready::READABLE | Ready::READ_CLOSED | Ready::HANG_UP;
    assert_eq!(next(&source), [(TOKEN, gone)]);

    let (reader, writer) = kernel::pipe();
    source.register(reader.as_fd(), TOKEN, Interest::READABLE, false).unwrap();
    drop(writer);
    assert_eq!(next(&source), [(TOKEN, Ready::HANG_UP)]);
}

/// Goal: promise 4. Method: interest in priority data alone, and a reset.
#[test]
fn errors_are_reported_whatever_the_interest() {
    let source = Source::epoll().unwrap();
    let (near, far) = kernel::tcp_pair();
    source.register(near.as_fd(), TOKEN, Interest::PRIORITY, false).unwrap();
    kernel::reset_on_close(&far);
    drop(far);
    assert_eq!(next(&source), [(TOKEN, Ready::ERROR | Ready::HANG_UP)]);

    let (reader, writer) = kernel::pipe();
    source.register(writer.as_fd(), TOKEN, Interest::PRIORITY, false).unwrap();
    drop(reader);
    assert_eq!(next(&source), [(TOKEN, Ready::ERROR)]);
}

#[test]
fn each_interest_is_told_of_its_own() {
    let source = Source::epoll().unwrap();
    let (near, far) = kernel::tcp_pair();
    source.register(near.as_fd(), TOKEN, Interest::WRITABLE, false).unwrap();
    assert_eq!(look(&source), [(TOKEN, Ready::WRITABLE)]);
    source.deregister(near.as_raw_fd()).unwrap();

    source.register(near.as_fd(), TOKEN, Interest::BOTH, false).unwrap();
    assert_eq!(look(&source), [(TOKEN, Ready::WRITABLE)]);
    (&far).write_all(b"x").unwrap();
    assert_eq!(next(&source), [(TOKEN, Ready::READABLE | Ready::WRITABLE)]);
    source.deregister(near.as_raw_fd()).unwrap();

    source.register(near.as_fd(), TOKEN, Interest::PRIORITY, false).unwrap();
    assert_eq!(look(&source), [], "the unread byte is not urgent");
    kernel::send_urgent(&far);
    assert_eq!(next(&source), [(TOKEN, Ready::PRIORITY)]);
}

#[test]
fn a_harvest_is_bounded_and_the_rest_is_not_lost() {
    let source = Source::epoll().unwrap();
    let counters: Vec<_> = (0..10).map(|_| EventFd::new().unwrap()).collect();
    for (token, counter) in counters.iter().enumerate() {
        source.register(counter.as_fd(), token as u64, Interest::READABLE, false).unwrap();
        counter.signal();
    }
    let (mut events, mut seen) = (Events::with_capacity(4), Vec::new());
    for (max, expected) in [(0, 0), (3, 3), (100, 4), (3, 3), (3, 0)] {
        assert_eq!(source.wait(&mut events, max, Some(0)).unwrap(), expected);
        assert_eq!(events.len(), expected);
        seen.extend(events.iter().map(|(token, _)| token));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
}

#[test]
fn refusals_say_why() {
    let (source, counter) = (Source::epoll().unwrap(), EventFd::new().unwrap());
    let (fd, number) = (counter.as_fd(), counter.as_fd().as_raw_fd());
    let kind = |answer: io::Result<()>| answer.unwrap_err().kind();
    assert_eq!(kind(source.rearm(number, 1, Interest::BOTH)), io::ErrorKind::NotFound);
    assert_eq!(kind(source.deregister(number)), io::ErrorKind::NotFound);
    source.register(fd, 1, Interest::BOTH, false).unwrap();
    let again = source.register(fd, 2, Interest::BOTH, false);
    assert_eq!(kind(again), io::ErrorKind::AlreadyExists);
    let file = std::fs::File::open("Cargo.toml").unwrap();
    let regular = source.register(file.as_fd(), 3, Interest::BOTH, false);
    assert_eq!(kind(regular), io::ErrorKind::PermissionDenied);

    let memory = Source::in_memory();
    let nowhere = memory.register(fd, 1, Interest::BOTH, false);
    assert_eq!(kind(nowhere), io::ErrorKind::Unsupported);
    assert_eq!(kind(memory.rearm(number, 1, Interest::BOTH)), io::ErrorKind::Unsupported);
    assert_eq!(kind(memory.deregister(number)), io::ErrorKind::Unsupported);
    assert_eq!(kind(memory.set_alarm(Some(1))), io::ErrorKind::Unsupported);
    assert!(memory.pollable().is_none());
}
