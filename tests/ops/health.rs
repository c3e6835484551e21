//! What health says of a pool that computes, and of one that starves.

use super::client::{Answer, connect, get};
use super::common::{Gate, hang_guard, until, with_longer_ticks};
use paceline::cq::CompletionQueue;
use paceline::http::{Http, Request, Response};
use paceline::net::Address;
use paceline::ops::Ops;
use paceline::{Flow, Lane, Pin, Pool};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(3600);

fn pool() -> Pool {
    Pool::builder().threads(THREADS).pin(Pin::None).build().unwrap()
}

fn watch(pool: &Pool, ready_after: Duration, dead_after: Duration) -> Ops {
    let ops = Ops::builder(pool).blocked_after(SOON).ready_after(ready_after);
    ops.dead_after(dead_after).serve("127.0.0.1:0").unwrap()
}

/// All threads of the pool are in it until the gate is opened.
fn hold(pool: &Pool) -> Gate {
    let gate = Gate::new();
    for _ in 0..THREADS {
        let gate = gate.clone();
        pool.post(move || gate.wait()).unwrap();
    }
    gate.until_entered(THREADS as u64);
    gate
}

fn live(at: &Address) -> Answer {
    get(at, "/health/live")
}

fn ready(at: &Address) -> Answer {
    get(at, "/health/ready")
}

/// Goal: a program that does its work is neither dead nor unready, however long its handlers run. Method: all threads
/// are held for much longer than both limits, and the answers are looked at all the time.
#[test]
fn a_pool_whose_threads_all_compute_is_alive_and_ready_while_nothing_waits() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = watch(&pool, SOON, LATE);
    let at = &ops.addresses()[0];
    let gate = hold(&pool);
    let began = Instant::now();
    until("both threads are shown as blocked, for longer than the limits", || {
        let (live, ready) = (live(at), ready(at));
        assert_eq!((live.status, ready.status), (200, 200), "{} {}", live.body, ready.body);
        let blocked = live.body.matches(" is blocked in ").count();
        blocked == THREADS && began.elapsed() > 5 * LATE
    });
    gate.open();
}

/// Goal: first a load balancer goes elsewhere, and later the process is ended. Method: the same pool is watched with
/// one limit that is soon over and another that is not, and then with both.
#[test]
fn a_pool_that_starves_is_not_ready_and_then_dead() {
    let _guard = hang_guard();
    let pool = pool();
    let http = Http::builder(&pool).listen("127.0.0.1:0");
    let http = http.route("GET", "/", |_: &Request<'_>, response: Response| response.text("late"));
    let http = http.serve().unwrap();
    assert_eq!(get(&http.addresses()[0], "/").status, 200, "it has begun");
    let gate = hold(&pool);
    let patient = watch(&pool, SOON, NEVER);
    let at = &patient.addresses()[0];
    let mut request = connect(&http.addresses()[0]);
    request.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    pool.after(Duration::from_millis(1), || ()).unwrap();
    until("it is not ready", || ready(at).status == 503);
    assert!(ready(at).body.contains(" has waited for "), "{}", ready(at).body);
    assert_eq!(live(at).status, 200);
    let ops = watch(&pool, SOON, LATE);
    let at = &ops.addresses()[0];
    until("it is dead", || live(at).status == 503);
    let dead = live(at).body;
    assert!(dead.contains("\nthe pool starves: ") && dead.contains(" has waited for "), "{dead}");
    assert!(dead.contains(", and nothing has begun or ended for "), "{dead}");
    gate.open();
    until("it is well again", || live(at).status == 200 && ready(at).status == 200);
}

/// What waits while all threads are held, and how health calls it. What is returned lives as long.
type Kind = (&'static str, fn(&Pool) -> Box<dyn Send>);

const KINDS: [Kind; 5] = [
    ("a task", |pool| {
        pool.lane(Lane::Critical).post(|| ()).unwrap();
        Box::new(())
    }),
    ("a timer that is due", |pool| {
        Box::new(pool.every(Duration::from_millis(1), || Flow::Wait).unwrap())
    }),
    ("an event that no thread takes from its source", |pool| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let handle = pool.register(ours, |_, _| Flow::Wait).unwrap();
        theirs.write_all(b"request").unwrap();
        Box::new((handle, theirs))
    }),
    ("an activation", |pool| {
        let strand = pool.strand().unwrap();
        strand.post(|| ()).unwrap();
        Box::new(strand)
    }),
    ("an entry of a completion queue", |pool| {
        let queue = CompletionQueue::new(pool).unwrap();
        queue.post(&[7]).unwrap();
        Box::new(queue)
    }),
];

#[test]
fn whatever_waits_for_too_long_is_named() {
    for (what, wait) in KINDS {
        let _guard = hang_guard();
        println!("{what} waits");
        let pool = pool();
        let ops = watch(&pool, SOON, LATE);
        let at = &ops.addresses()[0];
        let gate = hold(&pool);
        let held = wait(&pool);
        let starves = format!("\nthe pool starves: {what} has waited for ");
        until(what, || live(at).body.contains(&starves));
        assert_eq!(ready(at).status, 503);
        gate.open();
        drop(held);
    }
}

/// Goal: what a host of a completion queue does is progress. Method: something lies in one queue for ever, and a host
/// goes on with what another one brings.
#[test]
fn a_host_that_takes_entries_makes_progress() {
    let _guard = hang_guard();
    let alive = |tick: Duration| {
        let pool = pool();
        let ops = watch(&pool, tick, 4 * tick);
        let at = &ops.addresses()[0];
        let (taken, left) =
            (CompletionQueue::new(&pool).unwrap(), CompletionQueue::new(&pool).unwrap());
        left.post(&[1]).unwrap();
        let began = Instant::now();
        while began.elapsed() < 12 * tick || ready(at).status == 200 {
            taken.post(&[2]).unwrap();
            let mut entries = Vec::new();
            taken.wait(&mut entries, 8, Duration::from_secs(60)).unwrap();
            if live(at).status == 503 {
                return false;
            }
        }
        // Nothing moves any more.
        until("the pool is dead", || live(at).status == 503);
        true
    };
    with_longer_ticks("a pool whose host takes entries is alive", alive);
}

/// Goal: a backlog makes a pool unready, and not dead, as long as it is worked off.
#[test]
fn a_backlog_that_is_worked_off_is_alive_and_not_ready() {
    let _guard = hang_guard();
    let alive = |tick: Duration| {
        let pool = pool();
        let ops = watch(&pool, tick, 4 * tick);
        let at = &ops.addresses()[0];
        for _ in 0..40 {
            pool.post(move || std::thread::sleep(tick / 2)).unwrap();
        }
        let mut was_unready = false;
        while pool.audit().in_flight > THREADS as u64 {
            if live(at).status == 503 {
                return false;
            }
            was_unready |= ready(at).status == 503;
        }
        until("it is ready again", || ready(at).status == 200);
        was_unready
    };
    with_longer_ticks("a pool that works off its backlog is alive", alive);
}
