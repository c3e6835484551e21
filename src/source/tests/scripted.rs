//! The test double keeps the contract too.

use super::super::{Events, Interest, Ready, ScriptedCall, ScriptedIo, ScriptedSource, Source};
use super::look;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn script() -> (ScriptedSource, Source) {
    let script = ScriptedSource::new();
    let source = Source::scripted(&script);
    (script, source)
}

fn register(source: &Source, io: &ScriptedIo, token: u64, level: bool) {
    source.register(io.as_fd(), token, Interest::READABLE, level).unwrap();
}

#[test]
fn events_come_in_the_order_of_their_times_and_not_before() {
    let (script, source) = script();
    let (a, b) = (ScriptedIo::new().unwrap(), ScriptedIo::new().unwrap());
    register(&source, &a, 1, false);
    register(&source, &b, 2, false);
    script.ready_at(3 * MS, &a, Ready::READABLE);
    script.ready_at(2 * MS, &b, Ready::READABLE);
    script.ready_at(2 * MS, &a, Ready::READABLE | Ready::READ_CLOSED);
    assert_eq!(look(&source), []);
    script.advance(2 * MS);
    let (readable, closed) = (Ready::READABLE, Ready::READABLE | Ready::READ_CLOSED);
    assert_eq!(look(&source), [(2, readable), (1, closed)]);
    assert_eq!(look(&source), []);
    script.advance(MS);
    assert_eq!(look(&source), [(1, readable)]);
    assert_eq!((script.undelivered(), script.now()), (0, 3 * MS));
}

#[test]
fn one_event_of_a_descriptor_in_each_wait() {
    let (script, source) = script();
    let (a, b) = (ScriptedIo::new().unwrap(), ScriptedIo::new().unwrap());
    register(&source, &a, 1, false);
    register(&source, &b, 2, false);
    for io in [&a, &a, &b] {
        script.ready(io, Ready::READABLE);
    }
    assert_eq!(look(&source), [(1, Ready::READABLE)]);
    assert_eq!(look(&source), [(1, Ready::READABLE), (2, Ready::READABLE)]);
}

#[test]
fn readiness_waits_for_registration_and_for_arming() {
    let (script, source) = script();
    let io = ScriptedIo::new().unwrap();
    script.ready(&io, Ready::READABLE);
    script.ready(&io, Ready::READABLE);
    assert_eq!(look(&source), []);
    register(&source, &io, 1, true);
    assert_eq!(look(&source), [(1, Ready::READABLE)]);
    assert_eq!(look(&source), [], "disarmed");
    source.rearm(io.as_fd(), 1, Interest::READABLE).unwrap();
    assert_eq!(look(&source), [(1, Ready::READABLE)]);
    source.deregister(io.as_fd()).unwrap();
    script.ready(&io, Ready::READABLE);
    assert_eq!((look(&source), script.registered()), (vec![], vec![]));
}

#[test]
fn only_what_is_of_interest_and_errors_are_reported() {
    let (script, source) = script();
    let io = ScriptedIo::new().unwrap();
    register(&source, &io, 1, false);
    script.ready(&io, Ready::WRITABLE);
    assert_eq!((look(&source), script.undelivered()), (vec![], 0));
    script.ready(&io, Ready::WRITABLE | Ready::ERROR);
    assert_eq!(look(&source), [(1, Ready::ERROR)]);
}

#[test]
fn a_late_event_is_delivered_though_its_registration_is_gone() {
    let (script, source) = script();
    let io = ScriptedIo::new().unwrap();
    assert!(!script.late_at(MS, &io, Ready::READABLE));
    register(&source, &io, 77, false);
    assert!(script.late_at(MS, &io, Ready::READABLE));
    source.deregister(io.as_fd()).unwrap();
    register(&source, &io, 78, false);
    script.advance(MS);
    assert_eq!(look(&source), [(77, Ready::READABLE)]);
}

#[test]
fn refusals_are_those_of_the_kernel() {
    let (_, source) = script();
    let io = ScriptedIo::new().unwrap();
    let kind = |answer: io::Result<()>| answer.unwrap_err().kind();
    let unknown = source.rearm(io.as_fd(), 1, Interest::BOTH);
    assert_eq!(kind(unknown), io::ErrorKind::NotFound);
    assert_eq!(kind(source.deregister(io.as_fd())), io::ErrorKind::NotFound);
    register(&source, &io, 1, false);
    let again = source.register(io.as_fd(), 2, Interest::BOTH, false);
    assert_eq!(kind(again), io::ErrorKind::AlreadyExists);
}

#[test]
fn the_history_tells_what_was_asked_for() {
    let (script, source) = script();
    let io = ScriptedIo::new().unwrap();
    let fd = io.as_fd().as_raw_fd();
    register(&source, &io, 1, true);
    script.advance(MS);
    look(&source);
    source.rearm(fd, 1, Interest::READABLE).unwrap();
    source.deregister(fd).unwrap();
    let expected = [
        ScriptedCall::Registered { fd, interest: Interest::READABLE, level: true },
        ScriptedCall::Waited { at: MS, timeout: Some(Duration::ZERO) },
        ScriptedCall::Rearmed { fd },
        ScriptedCall::Deregistered { fd },
    ];
    assert_eq!(script.history(), expected);
    assert_eq!(script.history(), []);
}

/// Goal: `settle` returns when, and only when, the leader waits and nothing is due; a time-out runs
/// by the script's clock. Method: a leader in another thread that takes notes.
#[test]
fn settle_and_time_outs_go_by_the_scripts_clock() {
    let (script, source) = script();
    let io = ScriptedIo::new().unwrap();
    register(&source, &io, 1, false);
    assert!(!script.settle(Duration::ZERO), "no leader waits");
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let (mut events, mut notes) = (Events::with_capacity(4), Vec::new());
            for timeout in [Some(MS), Some(2 * MS), None] {
                let timeout = timeout.map(|timeout| timeout.as_nanos() as u64);
                source.arm();
                let count = source.wait(&mut events, 4, timeout).unwrap();
                notes.push((script.now(), count, source.disarm()));
            }
            notes
        });
        assert!(script.settle(PATIENCE));
        script.advance(MS / 2); // too little for the first wait
        assert!(script.settle(PATIENCE));
        script.ready(&io, Ready::READABLE);
        assert!(script.settle(PATIENCE)); // in the second wait, until 2.5 ms
        script.advance(2 * MS);
        assert!(script.settle(PATIENCE)); // in the third
        crate::sync::store_load_barrier();
        assert!(source.ring());
        let half = MS / 2;
        let expected = [(half, 1, false), (2 * MS + half, 0, false), (2 * MS + half, 0, true)];
        assert_eq!(leader.join().unwrap(), expected);
    });
}
