//! What threads run, by name: in statistics, in reports of slow handlers, and in the log.
#![cfg(not(loom))]

mod common;

use common::{Count, Gate, PATIENCE, hang_guard, until};
use paceline::hub::Hub;
use paceline::log::Log;
use paceline::net::Server;
use paceline::task::{Attempt, WorkerPool};
use paceline::{Flow, Pool, SlowReport, ThreadRole};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the one thread runs that runs anything, while `start` has something block.
fn name_of(pool: &Pool, start: impl FnOnce(Gate)) -> &'static str {
    let gate = Gate::new();
    start(gate.clone());
    gate.until_entered(1);
    let stats = pool.stats();
    let running: Vec<_> = stats.threads.iter().filter_map(|thread| thread.running).collect();
    gate.open();
    assert_eq!(running.len(), 1, "{stats:?}");
    running[0]
}

fn pool() -> Pool {
    Pool::builder().threads(2).build().unwrap()
}

#[test]
fn closures_are_called_by_their_type() {
    fn own_function(gate: &Gate) {
        gate.wait();
    }
    let _guard = hang_guard();
    let pool = pool();
    let in_here = |name: &str| assert!(name.contains("running::closures"), "{name}");
    in_here(name_of(&pool, |gate| pool.post(move || own_function(&gate)).unwrap()));
    in_here(name_of(&pool, |gate| drop(pool.submit(move || own_function(&gate)).unwrap())));
    let strand = pool.strand().unwrap();
    in_here(name_of(&pool, |gate| strand.post(move || own_function(&gate)).unwrap()));
    let soon = Duration::from_millis(1);
    in_here(name_of(&pool, |gate| drop(pool.after(soon, move || own_function(&gate)).unwrap())));
    let tick = |gate: Gate| {
        let tick = move || {
            own_function(&gate);
            Flow::Done
        };
        pool.every(soon, tick).unwrap().detach();
    };
    in_here(name_of(&pool, tick));
    // Idle threads run nothing.
    pool.submit(|| ()).unwrap().wait().unwrap();
    let idle = |role| !matches!(role, ThreadRole::Processing | ThreadRole::Task);
    let stats = pool.stats();
    assert!(stats.threads.iter().all(|thread| thread.running.is_none() || !idle(thread.role)));
}

#[test]
fn a_batch_of_tasks_has_the_name_of_the_one_that_runs() {
    fn of_another_type(tell: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
        move || tell()
    }
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (told, hears) = channel();
    let first = pool.submit({
        let (pool, told) = (pool.clone(), told.clone());
        move || {
            // All of these are claimed at once, and some are of one type.
            for number in 0..8 {
                let (inner, told) = (pool.clone(), told.clone());
                let tell = move || told.send((number, inner.stats().threads[0].running)).unwrap();
                match number % 4 {
                    3 => pool.post(of_another_type(tell)).unwrap(),
                    _ => pool.post(tell).unwrap(),
                }
            }
        }
    });
    first.unwrap().wait().unwrap();
    drop(told);
    let names: Vec<_> = hears.iter().map(|(number, name)| (number, name.unwrap())).collect();
    assert_eq!(names.len(), 8);
    let name = |number: usize| names.iter().find(|(of, _)| *of == number).unwrap().1;
    assert_eq!(name(0), name(5));
    assert_eq!(name(3), name(7));
    assert_ne!(name(0), name(3));
}

#[test]
fn a_connection_is_called_by_the_address_of_its_server() {
    struct Handler(Gate);
    impl paceline::net::ConnHandler for Handler {
        fn data(&mut self, _: &paceline::net::Conn, bytes: &[u8]) -> usize {
            self.0.wait();
            bytes.len()
        }
    }
    let _guard = hang_guard();
    let pool = pool();
    let mut kept = None;
    let mut expected = String::new();
    let name = name_of(&pool, |gate| {
        let serve = move |_: &paceline::net::Conn| Handler(gate.clone());
        let server = Server::builder(&pool).listen("127.0.0.1:0").serve(serve).unwrap();
        let address = server.addresses()[0].to_string();
        let mut client = TcpStream::connect(&address).unwrap();
        client.write_all(b"hello").unwrap();
        expected = format!("tcp {address}");
        kept = Some((server, client));
    });
    assert_eq!(name, expected);
}

#[cfg(feature = "http")]
#[test]
fn a_request_is_called_by_its_route() {
    let _guard = hang_guard();
    let pool = pool();
    let mut kept = None;
    let name = name_of(&pool, |gate| {
        let http = paceline::http::Http::builder(&pool)
            .listen("127.0.0.1:0")
            .route("GET", "/slow/{id}", move |_, response| {
                gate.wait();
                let _sent = response.text("done");
            })
            .serve()
            .unwrap();
        let mut client = TcpStream::connect(http.addresses()[0].to_string()).unwrap();
        client.write_all(b"GET /slow/7 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        kept = Some((http, client));
    });
    assert_eq!(name, "GET /slow/{id}");
}

#[test]
fn an_attempt_is_called_by_its_task_type() {
    let _guard = hang_guard();
    let pool = pool();
    let workers = WorkerPool::builder(&pool).build().unwrap();
    let name = name_of(&pool, |gate| {
        drop(workers.task("resize", move |_: &Attempt| gate.wait()).submit().unwrap());
    });
    assert_eq!(name, "resize");
}

#[test]
fn the_run_of_a_mailbox_is_called_by_its_pattern() {
    let _guard = hang_guard();
    let pool = pool();
    let hub = Hub::builder(&pool).build().unwrap();
    let mut kept = None;
    let name = name_of(&pool, |gate| {
        kept = Some(hub.subscribe("orders.*", move |_| gate.wait()).unwrap());
        let _receipt = hub.publish("orders.new", b"1").unwrap();
    });
    assert_eq!(name, "orders.*");
}

/// Goal: a report names the handler that is slow. Method: one blocks for longer than the limit.
#[test]
fn a_slow_handler_is_reported_by_name() {
    let _guard = hang_guard();
    let (told, hears) = channel();
    let hook = move |report: &SlowReport| told.send(report.clone()).unwrap_or(());
    let builder = Pool::builder().threads(2).on_slow(Duration::from_millis(1), hook);
    let pool = builder.build().unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    pool.post(move || held.wait()).unwrap();
    let report = hears.recv_timeout(PATIENCE).unwrap();
    assert!(report.running && report.name.unwrap().contains("a_slow_handler"), "{report:?}");
    gate.open();
}

/// Goal: the log names the handler that another thread steps in for, as often as it is asked for. Method: one
/// blocks, and no other thread leads.
#[test]
fn a_rescue_is_told_with_the_name_of_what_is_held_up() {
    let _guard = hang_guard();
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let log = Log::builder().facade(false).levels("warn".parse().unwrap());
    let log = log.callback(move |record| keep.lock().unwrap().push(record.clone()));
    let log = log.build().unwrap();
    let pool = Pool::builder().threads(2).log(&log).build().unwrap();
    let (gate, ran) = (Gate::new(), Count::new());
    // A thread that has only just started would look for work by itself.
    until("the other one sleeps", || pool.stats().parked >= 1);
    let (held, count) = (gate.clone(), ran.clone());
    let soon = Duration::from_millis(1);
    let _blocks = pool.after(soon, move || held.wait()).unwrap();
    gate.until_entered(1);
    let _other = pool.after(soon, move || count.up()).unwrap();
    ran.until(1);
    log.flush(PATIENCE).unwrap();
    gate.open();
    let told = told.lock().unwrap();
    let rescued = told.iter().find(|record| record.event == "pool.rescued").expect("a rescue");
    let name = rescued.fields.iter().find(|(name, _)| name == "name");
    assert!(format!("{name:?}").contains("a_rescue_is_told"), "{rescued:?}");
}
