//! Every route answers while each kind of the program's own code holds its thread.

use super::client::{Events, ask, connect, get};
use super::common::{Gate, hang_guard};
use paceline::http::{AccessLog, Http, Next, Request, Response};
use paceline::hub::{Filter, Hub, Message};
use paceline::log::Log;
use paceline::net::Address;
use paceline::ops::Ops;
use paceline::task::WorkerPool;
use paceline::{Flow, Pin, Pool};
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

const THREADS: usize = 2;

/// A kind of code, and what makes the pool run it: on all threads, if it may run on several at once. What is returned
/// lives as long as the routes are asked.
type Kind = (&'static str, fn(&Pool, &Gate) -> Box<dyn Send>);

const KINDS: [Kind; 9] = [
    ("a task", |pool, gate| {
        for _ in 0..THREADS {
            let gate = gate.clone();
            pool.post(move || gate.wait()).unwrap();
        }
        Box::new(())
    }),
    ("a timer", |pool, gate| {
        let timer = || {
            let gate = gate.clone();
            pool.every(Duration::from_millis(1), move || {
                gate.wait();
                Flow::Done
            })
        };
        Box::new([timer().unwrap(), timer().unwrap()])
    }),
    ("a worker's task", |pool, gate| {
        let workers = WorkerPool::new(pool);
        let own = gate.clone();
        let held = workers.task_type("held").build().unwrap();
        for _ in 0..THREADS {
            let own = own.clone();
            // It runs without a handle.
            drop(held.submit(move |_| own.wait()).unwrap());
        }
        Box::new((workers, held))
    }),
    ("a route", |pool, gate| {
        let gate = gate.clone();
        serve(Http::builder(pool).route("GET", "/", move |_: &Request<'_>, response: Response| {
            gate.wait();
            response.text("late")
        }))
    }),
    ("a middleware", |pool, gate| {
        let gate = gate.clone();
        let http = Http::builder(pool);
        serve(http.around(move |request: &Request<'_>, response: Response, next: Next<'_>| {
            gate.wait();
            let _status = next.run(request, response);
        }))
    }),
    ("a hook of requests that end", |pool, gate| {
        let gate = gate.clone();
        serve(Http::builder(pool).on_end(move |_| gate.wait()))
    }),
    ("the writer of an access log", |pool, gate| {
        serve(Http::builder(pool).access_log(AccessLog::combined().writer(Held(gate.clone()))))
    }),
    ("a hub's handler", |pool, gate| {
        let hub = Hub::new(pool).unwrap();
        for _ in 0..THREADS {
            let gate = gate.clone();
            hub.subscribe("held", move |_: &Message| gate.wait()).unwrap().detach();
        }
        let _receipt = hub.publish("held", b"").unwrap();
        Box::new(hub)
    }),
    ("a filter's predicate", |pool, gate| {
        let (hub, own) = (Hub::new(pool).unwrap(), gate.clone());
        let held = Filter::predicate(move |_| {
            own.wait();
            true
        });
        hub.subscription("held").filter(held).serve(|_: &Message| ()).unwrap().detach();
        for _ in 0..THREADS {
            let hub = hub.clone();
            pool.post(move || drop(hub.publish("held", b""))).unwrap();
        }
        Box::new(hub)
    }),
];

struct Held(Gate);

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.wait();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server, and as many requests as the pool has threads.
fn serve(http: paceline::http::HttpBuilder) -> Box<dyn Send> {
    let http = http.listen("127.0.0.1:0").serve().unwrap();
    let asking: Vec<TcpStream> = (0..THREADS)
        .map(|_| {
            let mut stream = connect(&http.addresses()[0]);
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    Box::new((http, asking))
}

fn ask_all(at: &Address) {
    for path in [
        "/",
        "/metrics",
        "/stats.json",
        "/health/live",
        "/health/ready",
        "/errors.json",
        "/config",
        "/log-level",
        "/trace?seconds=1",
    ] {
        let status = get(at, path).status;
        assert!(status == 200 || status == 503 && path.starts_with("/health"), "{path}: {status}");
    }
    assert_eq!(ask(at, "PUT /log-level", &[], "debug").status, 403);
    let mut events = Events::open(at, "/events").ok().unwrap();
    let _first = events.next();
    assert!(
        !events.next()["blocked"].as_array().unwrap().is_empty(),
        "nothing is shown as blocked"
    );
}

#[test]
fn every_route_answers_while_code_of_the_program_holds_the_threads() {
    for (kind, hold) in KINDS {
        let _guard = hang_guard();
        println!("{kind} holds its thread");
        let log = Log::builder().facade(false).build().unwrap();
        let pool = Pool::builder().threads(THREADS).pin(Pin::None).log(&log).build().unwrap();
        let ops = Ops::builder(&pool)
            .blocked_after(Duration::from_millis(100))
            .serve("127.0.0.1:0")
            .unwrap();
        let gate = Gate::new();
        let held = hold(&pool, &gate);
        gate.until_entered(1);
        ask_all(&ops.addresses()[0]);
        gate.open();
        drop(held);
    }
}
