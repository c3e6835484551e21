//! The doorbell from many threads, on every backend.

use super::super::{Events, ScriptedSource, Source};
use crate::sync::store_load_barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

const RINGERS: u64 = 8;
const EACH: u64 = 20_000;

/// Goal: no ring is lost, and a sound needs an arming. Method: a leader that blocks for ever
/// whenever it sees nothing new, and eight threads that publish, some with pauses so that it really
/// blocks. A lost ring hangs the test.
fn no_ring_is_lost(source: &Source) {
    let (published, sounds) = (AtomicU64::new(0), AtomicU64::new(0));
    let armings = thread::scope(|scope| {
        for ringer in 0..RINGERS {
            let (published, sounds) = (&published, &sounds);
            scope.spawn(move || {
                for turn in 0..EACH {
                    published.fetch_add(1, Relaxed);
                    store_load_barrier();
                    sounds.fetch_add(u64::from(source.ring()), Relaxed);
                    if turn % 64 == ringer {
                        thread::yield_now();
                    }
                }
            });
        }
        lead_until(source, &published, RINGERS * EACH)
    });
    assert!(sounds.into_inner() <= armings);
}

/// Returns how often the leader armed the bell.
fn lead_until(source: &Source, published: &AtomicU64, count: u64) -> u64 {
    let (mut events, mut seen, mut armings) = (Events::with_capacity(1), 0, 0);
    while seen < count {
        source.arm();
        armings += 1;
        let now = published.load(Relaxed);
        if now == seen {
            assert_eq!(source.wait(&mut events, 1, None).unwrap(), 0);
        }
        source.disarm();
        seen = now.max(published.load(Relaxed));
    }
    armings
}

#[test]
fn epoll() {
    no_ring_is_lost(&Source::epoll().unwrap());
}

#[test]
fn in_memory() {
    no_ring_is_lost(&Source::in_memory());
}

#[test]
fn scripted() {
    no_ring_is_lost(&Source::scripted(&ScriptedSource::new()));
}

/// Goal: a bell and an event in one harvest are both reported, with room for one only.
#[test]
fn a_ring_takes_no_event_away() {
    use super::super::Interest;
    use crate::sys::eventfd::EventFd;
    use std::os::fd::AsFd;

    let (source, counter) = (Source::epoll().unwrap(), EventFd::new().unwrap());
    source.register(counter.as_fd(), 3, Interest::READABLE, false).unwrap();
    source.arm();
    assert!(source.ring());
    counter.signal();
    let (mut events, mut rung, mut tokens) = (Events::with_capacity(1), 0, Vec::new());
    for _ in 0..3 {
        source.wait(&mut events, 1, Some(0)).unwrap();
        rung += u32::from(events.is_rung());
        tokens.extend(events.iter().map(|(token, _)| token));
    }
    assert_eq!((rung, tokens), (1, vec![3]));
}
