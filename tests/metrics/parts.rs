//! What one call puts into a registry: a pool, and all that stands on it.

use super::number;
use crate::common::{hang_guard, until};
use crate::text::accepted_by_parsers;
use paceline::Pool;
use paceline::http::{Http, Request, Response};
use paceline::hub::{Hub, Message};
use paceline::metrics::{Registry, Snapshot, SystemFigures, Value};
use paceline::net::{Address, Conn, ConnHandler, DatagramHandler, Datagrams, Server, UdpSocket};
use paceline::task::{Fault, WorkerPool};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

/// Names that text formats must escape.
const ODD: &str = "a \"b\"\\\nc {d=\"e\"} 1 #";

struct Echo;

impl ConnHandler for Echo {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        conn.write(bytes).unwrap();
        bytes.len()
    }
}

impl DatagramHandler for Echo {
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
        for datagram in datagrams {
            socket.send_to(datagram.bytes, datagram.from).unwrap();
        }
    }
}

/// What the server answers, after which it closes.
fn ask(address: &Address, head: &str) -> String {
    let mut client = TcpStream::connect(address.tcp().unwrap()).unwrap();
    client
        .write_all(format!("{head} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn run_one(workers: &WorkerPool, name: &str) {
    let task = workers.task(name, |_| Ok::<_, Fault>(())).submit().unwrap();
    task.wait().unwrap().result.unwrap();
}

/// How many requests of a route ended with such a status.
fn times(snapshot: &Snapshot, route: &str, status: &str) -> u64 {
    let labels = [("route", route), ("status", status)];
    let found = snapshot.sample("paceline_http_request_seconds", &labels);
    found.and_then(Value::distribution).map_or(0, |times| times.count())
}

#[test]
fn one_call_gives_the_figures_of_all_parts_and_parsers_accept_them() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).max_joined(1).build().unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, ODD);
    SystemFigures::new().attach(&registry);

    let server = Server::builder(&pool).listen("127.0.0.1:0").serve(|_| Echo).unwrap();
    let kept = Mutex::new(None::<Response>);
    let http = Http::builder(&pool)
        .listen("127.0.0.1:0")
        .listen("127.0.0.1:0")
        .route("GET", "/item/{id}", |_: &Request<'_>, response: Response| response.text("it"))
        .route("GET", "/later", move |_: &Request<'_>, response: Response| {
            let _earlier = kept.lock().unwrap().replace(response);
            let response = std::mem::take(&mut *kept.lock().unwrap()).unwrap();
            std::thread::spawn(move || response.status(503).text("later").unwrap());
        })
        .serve()
        .unwrap();
    let udp = UdpSocket::builder(&pool).bind("127.0.0.1:0").serve(Echo).unwrap();
    let workers = WorkerPool::builder(&pool).metrics(&registry, ODD).build().unwrap();
    let unnamed = WorkerPool::new(&pool);
    let hub = Hub::new(&pool).unwrap();
    let handler = |_: &Message<'_>| ();
    let measured = hub.subscription("odd.>").measured().serve(handler).unwrap();
    let plain = hub.subscribe("odd.*", handler).unwrap();

    // Times of requests are measured from the first snapshot on that finds the server.
    assert_eq!(registry.snapshot().failures, 0);
    let (first, second) = (&http.addresses()[0], &http.addresses()[1]);
    for address in [first, second, first] {
        assert!(ask(address, "GET /item/7").ends_with("it"));
    }
    assert!(ask(first, "GET /nowhere").starts_with("HTTP/1.1 404"));
    // What is measured of one request is not of the next on its connection, which has no good head.
    let two = "/nowhere HTTP/1.1\r\nHost: h\r\n\r\nGET /bad\"target";
    assert!(ask(first, &format!("GET {two}")).contains("HTTP/1.1 400"));
    assert!(ask(first, "GET /later").starts_with("HTTP/1.1 503"));
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(b"four", udp.address()).unwrap();
    assert_eq!(client.recv(&mut [0; 9]).unwrap(), 4);
    let mut open = TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    run_one(&workers, ODD);
    run_one(&unnamed, "other");
    assert_eq!(hub.publish("odd.\"key\"", b"payload").unwrap().matched, 2);
    until("delivery", || measured.stats().delivered == 1 && plain.stats().delivered == 1);
    until("the ends of connections", || http.stats().server.open == 0);

    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 0);
    let pool_label = ("pool", ODD);
    let of = |name: &str, labels: &[(&str, &str)]| number(&snapshot, name, labels);
    assert!(of("paceline_set_terms", &[pool_label, ("set", "0")]) >= 1.0);
    assert!(of("paceline_set_leader", &[pool_label, ("set", "0")]) >= -1.0);
    let states = &snapshot.family("paceline_thread_state").unwrap().samples;
    assert_eq!(states.len(), 3, "two threads, and the place of one that may join: {states:?}");

    let server = server.addresses()[0].to_string();
    let of_server = [pool_label, ("server", &server), ("listener", &server)];
    assert_eq!(of("paceline_server_connections", &of_server), 1.0);
    assert_eq!(of("paceline_server_queued_bytes", &of_server[..2]), 0.0);
    let (first, second) = (first.to_string(), second.to_string());
    let of_http = [pool_label, ("server", &*first)];
    let by_peer = [of_http[1], ("listener", &*second), ("reason", "local")];
    assert_eq!(of("paceline_server_closed", &by_peer), 1.0);
    assert_eq!(of("paceline_http_requests", &of_http), 7.0);
    assert_eq!(of("paceline_http_answered", &[of_http[1], ("status", "2xx")]), 3.0);
    assert_eq!(of("paceline_http_answered", &[of_http[1], ("status", "5xx")]), 1.0);
    assert_eq!(of("paceline_http_refused", &[of_http[1], ("cause", "not_found")]), 2.0);
    assert_eq!(times(&snapshot, "/item/{id}", "2xx"), 3);
    assert_eq!(times(&snapshot, "/later", "5xx"), 1);
    assert_eq!(times(&snapshot, "", "4xx"), 2);

    let socket = udp.address().to_string();
    assert_eq!(of("paceline_udp_received_bytes", &[pool_label, ("socket", &socket)]), 4.0);
    assert_eq!(of("paceline_udp_sent", &[("socket", &*socket)]), 1.0);
    assert_eq!(of("paceline_task_completed", &[("workers", ODD), ("task_type", ODD)]), 1.0);
    let waits = snapshot.sample("paceline_task_queue_seconds", &[("workers", ODD)]);
    assert!(waits.and_then(Value::distribution).is_some());
    assert_eq!(of("paceline_task_completed", &[("task_type", "other")]), 1.0);
    let id = measured.id().to_string();
    for name in ["handling", "latency"] {
        let name = format!("paceline_hub_subscription_{name}_seconds");
        let found = snapshot.sample(&name, &[("subscription", &id), ("pattern", "odd.>")]);
        assert_eq!(found.and_then(Value::distribution).unwrap().count(), 1, "{name}");
        assert_eq!(snapshot.family(&name).unwrap().samples.len(), 1, "only what is measured");
    }
    let id = plain.id().to_string();
    assert_eq!(of("paceline_hub_subscription_delivered", &[("subscription", &id)]), 1.0);
    assert_eq!(of("paceline_hub_subscription_suspended", &[("subscription", &id)]), 0.0);
    accepted_by_parsers(&snapshot);

    drop((unnamed, udp, http));
    until("parts that are gone have no figures", || {
        let snapshot = registry.snapshot();
        snapshot.family("paceline_udp_sent").is_none()
            && snapshot.family("paceline_http_requests").is_none()
            && snapshot.sample("paceline_task_completed", &[("task_type", "other")]).is_none()
    });
}

#[test]
fn what_is_in_a_registry_twice_is_told_once() {
    let pool = Pool::builder().threads(1).build().unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let hub = Hub::builder(&pool).metrics(&registry, "hub").build().unwrap();
    hub.metrics(&registry, "again");
    let same = WorkerPool::builder(&pool).metrics(&registry, "w").build().unwrap();
    let name = WorkerPool::builder(&pool).metrics(&registry, "w").build().unwrap();
    for workers in [&same, &name] {
        run_one(workers, "t");
    }
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 0);
    assert_eq!(snapshot.family("paceline_hub_published").unwrap().samples.len(), 1);
    for workers in ["w", "w#2"] {
        assert_eq!(number(&snapshot, "paceline_task_submitted", &[("workers", workers)]), 1.0);
    }
}

#[test]
fn a_family_has_room_for_a_thousand_series_and_says_what_it_left_out() {
    let registry = Registry::new();
    registry.collect(|collector| {
        for user in 0..1500 {
            collector.counter("visits", "Visits", &[("user", &user.to_string())], 1.0);
        }
        collector.gauge("level", "Level", &[], 1.0);
        true
    });
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.family("visits").unwrap().samples.len(), 1000);
    let overflow = snapshot.family("paceline_metrics_overflow").unwrap();
    assert_eq!(overflow.samples.len(), 1);
    assert_eq!(number(&snapshot, "paceline_metrics_overflow", &[("family", "visits")]), 500.0);
    assert_eq!(snapshot.failures, 0);
}

#[test]
fn a_hub_of_many_subscriptions_tells_those_that_are_measured() {
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let subscribe = |number: u32| hub.subscribe(&format!("many.{number}"), |_: &Message<'_>| ());
    let _many: Vec<_> = (0..1200).map(|number| subscribe(number).unwrap()).collect();
    let _one = hub.subscription("one").measured().serve(|_: &Message<'_>| ()).unwrap();
    assert_eq!(hub.publish("one", b"").unwrap().matched, 1);
    let latency = || {
        let snapshot = registry.snapshot();
        let labels = [("pattern", "one")];
        let found = snapshot.sample("paceline_hub_subscription_latency_seconds", &labels);
        found.and_then(Value::distribution).unwrap().count()
    };
    until("its latency", || latency() == 1);
    let snapshot = registry.snapshot();
    let family = [("family", "paceline_hub_subscription_waiting")];
    assert!(number(&snapshot, "paceline_metrics_overflow", &family) >= 200.0);
    assert!(pool.shutdown(Duration::from_secs(60)).drained);
}
