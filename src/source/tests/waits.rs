//! Waits end when they should, and not before (promise 6 of the contract).

use super::super::{Events, Interest, Ready, Source};
use super::kernel::Storm;
use crate::sys::clock;
use crate::sys::eventfd::EventFd;
use std::os::fd::AsFd;
use std::thread;

fn descriptors_and_memory() -> [Source; 2] {
    [Source::epoll().unwrap(), Source::in_memory()]
}

#[test]
fn no_time_out_is_early() {
    for source in descriptors_and_memory() {
        for nanos in [1, 999, 50_000, 999_999, 1_000_001, 3_000_000] {
            let mut events = Events::with_capacity(4);
            source.arm();
            let start = clock::now();
            assert_eq!(source.wait(&mut events, 4, Some(nanos)).unwrap(), 0);
            assert!(clock::now() - start >= nanos, "{nanos} ns");
            assert!(!events.is_rung() && !source.disarm());
        }
    }
}

/// Goal: a storm of signals neither fails a wait, nor ends the caller's deadline early, nor keeps it
/// from ever coming. Method: a signal every 100 µs at the waiting thread, waits of 1 ms that go on
/// for what is left until 20 ms have passed.
#[test]
fn a_storm_of_signals_ends_waits_but_moves_no_deadline() {
    for source in descriptors_and_memory() {
        let (before, storm) = (Storm::strikes(), Storm::begin());
        let deadline = clock::now() + 20_000_000;
        let mut events = Events::with_capacity(4);
        while let Some(left) = deadline.checked_sub(clock::now()).filter(|&left| left > 0) {
            source.arm();
            let count = source.wait(&mut events, 4, Some(left.min(1_000_000))).unwrap();
            assert_eq!((count, events.is_rung(), source.disarm()), (0, false, false));
        }
        drop(storm);
        assert!(Storm::strikes() > before, "no signal came");
    }
}

/// Goal: promise 5. Method: the leader already waits, for ever, when another thread registers.
#[test]
fn registering_takes_effect_on_a_wait_under_way() {
    let (source, counter) = (Source::epoll().unwrap(), EventFd::new().unwrap());
    counter.signal();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !source.is_armed() {
                thread::yield_now();
            }
            source.register(counter.as_fd(), 5, Interest::READABLE, false).unwrap();
        });
        let mut events = Events::with_capacity(4);
        source.arm();
        while source.wait(&mut events, 4, None).unwrap() == 0 {}
        assert!(events.iter().eq([(5, Ready::READABLE)]));
    });
}
