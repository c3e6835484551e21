//! A handler can be tested without a kernel, without waiting and without chance.

use paceline::{
    Flow, HandleOptions, Pool, Ready, ScriptedCall, ScriptedIo, ScriptedSource, SourceKind,
};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(300);

/// A pool of one thread under a script, and what its handlers note down.
struct Stage {
    script: ScriptedSource,
    pool: Pool,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new() -> Self {
        let script = ScriptedSource::new();
        let kind = SourceKind::Scripted(script.clone());
        let pool = Pool::builder().threads(1).source(kind).build().unwrap();
        Self { script, pool, notes: Arc::default() }
    }

    /// Something that notes a line down, with the script's time.
    fn pen(&self) -> impl Fn(&str) + Send + 'static {
        let (script, notes) = (self.script.clone(), Arc::clone(&self.notes));
        move |line| notes.lock().unwrap().push(format!("{:?} {line}", script.now()))
    }

    fn settle(&self) {
        assert!(self.script.settle(PATIENCE));
    }

    /// Lets `by` pass, and everything happen that this brings about.
    fn pass(&self, by: Duration) {
        self.script.advance(by);
        self.settle();
    }

    /// What was noted since this was last called.
    fn notes(&self) -> Vec<String> {
        self.settle();
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.pool.shutdown(PATIENCE).drained);
            assert!(self.pool.audit().balances());
        }
    }
}

fn read(io: &mut ScriptedIo) -> String {
    let mut text = String::new();
    // What could be read before `WouldBlock` is in `text`.
    let _ = io.read_to_string(&mut text);
    text
}

#[test]
fn events_reach_the_handler_in_the_order_of_the_script() {
    let stage = Stage::new();
    let ios = ["a", "b"].map(|name| {
        let (io, pen) = (ScriptedIo::new().unwrap(), stage.pen());
        let handler = move |io: &mut ScriptedIo, ready| {
            pen(&format!("{name} {ready:?} {}", read(io)));
            Flow::Wait
        };
        stage.pool.register(io.clone(), handler).unwrap().detach();
        io
    });
    ios[0].feed(b"hello");
    ios[1].feed(b"you");
    stage.script.ready_at(2 * MS, &ios[0], Ready::READABLE);
    stage.script.ready_at(MS, &ios[1], Ready::READABLE | Ready::READ_CLOSED);
    assert_eq!(stage.notes(), [""; 0]);
    stage.pass(MS);
    assert_eq!(stage.notes(), ["1ms b READABLE | READ_CLOSED you"]);
    stage.pass(5 * MS);
    assert_eq!(stage.notes(), ["6ms a READABLE hello"]);
}

/// A timer is never early, and at most one tick of the wheel (8.2 µs) late: so the clock is always a
/// little past the full millisecond.
#[test]
fn timers_go_by_the_scripts_clock() {
    let stage = Stage::new();
    let pen = stage.pen();
    let _once = stage.pool.after(5 * MS, move || pen("once")).unwrap();
    let (pen, mut left) = (stage.pen(), 3);
    let _every = stage.pool.every(2 * MS, move || {
        pen("every");
        left -= 1;
        if left == 0 { Flow::Done } else { Flow::Wait }
    });
    stage.pass(MS / 100);
    for _ in 0..10 {
        stage.pass(MS);
    }
    let expected = ["2.01ms every", "4.01ms every", "5.01ms once", "6.01ms every"];
    assert_eq!(stage.notes(), expected);
}

#[test]
fn the_history_shows_what_became_of_a_level_triggered_handle() {
    let stage = Stage::new();
    let (io, pen) = (ScriptedIo::new().unwrap(), stage.pen());
    let fd = io.as_fd().as_raw_fd();
    let handler = move |io: &mut ScriptedIo, _| {
        pen(&read(io));
        Flow::Wait
    };
    let handle =
        stage.pool.register_with(io.clone(), HandleOptions::new().level(), handler).unwrap();
    for text in ["one", "two"] {
        io.feed(text.as_bytes());
        stage.script.ready(&io, Ready::READABLE);
        stage.settle();
    }
    assert_eq!(stage.notes(), ["0ns one", "0ns two"]);
    assert_eq!(stage.script.registered(), [fd]);
    handle.deregister().unwrap();
    assert!(stage.script.registered().is_empty());
    let calls: Vec<_> = stage.script.history();
    let count = |call| calls.iter().filter(|&&other| other == call).count();
    assert_eq!(count(ScriptedCall::Rearmed { fd }), 2);
    assert_eq!(count(ScriptedCall::Deregistered { fd }), 1);
}

/// Goal: a paused level-triggered handle is not called, and is not armed again, for a hang-up that would be reported
/// for ever; it is told after the pause.
#[test]
fn a_hang_up_waits_for_the_end_of_a_pause() {
    let stage = Stage::new();
    let (io, pen) = (ScriptedIo::new().unwrap(), stage.pen());
    let handler = move |_: &mut ScriptedIo, ready| {
        pen(&format!("{ready:?}"));
        Flow::Done
    };
    let options = HandleOptions::new().level().paused();
    let handle = stage.pool.register_with(io.clone(), options, handler).unwrap();
    stage.script.ready(&io, Ready::HANG_UP);
    stage.script.ready(&io, Ready::HANG_UP);
    assert_eq!(stage.notes(), [""; 0]);
    assert_eq!(stage.script.undelivered(), 1, "it was armed again");
    handle.resume().unwrap();
    assert_eq!(stage.notes(), ["0ns HANG_UP"]);
}

/// Goal: an event that was under way when its handle was deregistered reaches nobody: neither the
/// old handler nor the next tenant of its place.
#[test]
fn a_late_event_comes_to_nothing() {
    let stage = Stage::new();
    let register = |name: &'static str| {
        let (io, pen) = (ScriptedIo::new().unwrap(), stage.pen());
        let handler = move |_: &mut ScriptedIo, _| {
            pen(name);
            Flow::Wait
        };
        (io.clone(), stage.pool.register(io, handler).unwrap())
    };
    let (io, handle) = register("old");
    assert!(stage.script.late_at(MS, &io, Ready::READABLE));
    handle.deregister().unwrap();
    let (io, handle) = register("new");
    stage.pass(MS);
    assert_eq!((stage.notes(), stage.script.undelivered()), (vec![], 0));
    stage.script.ready(&io, Ready::READABLE);
    assert_eq!(stage.notes(), ["1ms new"]);
    handle.deregister().unwrap();
}

#[test]
fn tasks_and_what_they_post_are_done_when_the_pool_has_settled() {
    let stage = Stage::new();
    let (pen, inner, pool) = (stage.pen(), stage.pen(), stage.pool.clone());
    stage
        .pool
        .post(move || {
            pen("outer");
            pool.post(move || inner("inner")).unwrap();
        })
        .unwrap();
    assert_eq!(stage.notes(), ["0ns outer", "0ns inner"]);
}
