//! Hosts that put the source's descriptor into a loop of their own.

use super::super::{Events, Interest, Ready, Source};
use super::look;
use crate::sync::store_load_barrier;
use crate::sys;
use crate::sys::epoll::{Epoll, EpollEvent, IN};
use crate::sys::eventfd::EventFd;
use std::os::fd::AsFd;

/// A host's loop around one source.
struct Host {
    source: Source,
    outer: Epoll,
}

impl Host {
    fn new() -> Self {
        let (source, outer) = (Source::epoll().unwrap(), Epoll::new().unwrap());
        outer.add(source.pollable().unwrap(), IN, 1).unwrap();
        Self { source, outer }
    }

    fn is_readable(&self, timeout: u64) -> bool {
        self.outer.wait(&mut [EpollEvent::default()], Some(timeout)).unwrap() == 1
    }

    /// Whether a wait that does not block was rung.
    fn is_rung(&self) -> bool {
        let mut events = Events::with_capacity(1);
        self.source.wait(&mut events, 1, Some(0)).unwrap();
        events.is_rung()
    }
}

#[test]
fn an_event_makes_the_source_readable_until_it_is_harvested() {
    let (host, counter) = (Host::new(), EventFd::new().unwrap());
    host.source.register(counter.as_fd(), 7, Interest::READABLE, false).unwrap();
    assert!(!host.is_readable(0));
    counter.signal();
    assert!(host.is_readable(0) && host.is_readable(0));
    assert_eq!(look(&host.source), [(7, Ready::READABLE)]);
    assert!(!host.is_readable(0), "harvested, although nobody read it");
}

#[test]
fn a_ring_makes_it_readable_while_it_is_armed() {
    let host = Host::new();
    store_load_barrier();
    assert!(!host.source.ring() && !host.is_readable(0), "nobody waits");
    host.source.arm();
    store_load_barrier();
    assert!(host.source.ring() && !host.source.ring());
    assert!(host.is_readable(0));
    assert!(host.is_rung() && host.source.disarm());
    assert!(!host.is_readable(0) && !host.is_rung());
}

/// Goal: the alarm stands in for the time-out of a wait. Method: a deadline that has passed, one
/// that is a moment away, one that is withdrawn, one that is replaced.
#[test]
fn a_deadline_makes_it_readable() {
    let host = Host::new();
    host.source.set_alarm(None).unwrap();
    for delay in [0, 300_000] {
        let deadline = sys::clock::now() + delay;
        host.source.set_alarm(Some(deadline)).unwrap();
        while !host.is_readable(1_000_000_000) {}
        assert!(sys::clock::now() >= deadline);
        assert!(host.is_rung());
        assert!(!host.is_readable(0), "one deadline, one alarm");
    }
    host.source.set_alarm(Some(1)).unwrap();
    host.source.set_alarm(None).unwrap();
    assert!(!host.is_readable(0), "withdrawn");
    host.source.set_alarm(Some(1)).unwrap();
    host.source.set_alarm(Some(u64::MAX)).unwrap();
    assert!(!host.is_readable(0), "replaced by one in 584 years");
}
