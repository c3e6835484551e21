//! A shop as a service: an HTTP API with JSON, an upload and server-sent events; jobs that are retried until a deadline; a
//! hub with a history between them; settings from a file, a log, an operations page with health, and an orderly end.
//!
//! ```text
//! cargo run --release -p examples --example service
//! curl -i http://127.0.0.1:8080/orders -d '{"item": "tea", "quantity": 2}'
//! curl -i http://127.0.0.1:8080/orders/1
//! curl -i http://127.0.0.1:8080/orders/1/receipt -T README.md
//! curl -N http://127.0.0.1:8080/events
//! ```
//!
//! The bank is busy twice for an order of "flaky", refuses "stolen", and never answers about "stuck". The operations page is
//! at http://127.0.0.1:9090/. SIGTERM or Ctrl-C ends the service: it completes the orders that it has accepted, sends the
//! readers of events the last ones, and exits with 0. An argument names another file of settings than service.yaml.

use paceline::admin::Settings;
use paceline::http::{AccessLog, Body, Request, RequestBody, Response};
use paceline::hub::history::{Query, Replay, ReplayFrom};
use paceline::hub::{Hub, Message};
use paceline::net::WriteStatus;
use paceline::ops::Ops;
use paceline::task::{Attempt, Fault, Phases, Status, TaskType};
use paceline::{Flow, Signals};
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const MAX_RECEIPT: usize = 64 << 10;
/// How long each part of the end may take.
const DRAIN: Duration = Duration::from_secs(30);
/// The key of the message that ends the streams of events.
const THE_END: &str = "orders.end";

/// A stream of events that a client reads. `None` when it has ended.
type Stream = Arc<Mutex<Option<Body>>>;

struct Shop {
    hub: Hub,
    charge: TaskType,
    /// As JSON; order 1 is the first.
    orders: Mutex<Vec<Value>>,
    readers: Mutex<Vec<(Stream, Replay)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shop {
    /// Changes the state of an order, and publishes the order.
    fn change(&self, id: usize, state: &str, attempts: Option<u32>) {
        let mut orders = lock(&self.orders);
        let order = &mut orders[id - 1];
        order["state"] = state.into();
        if let Some(attempts) = attempts {
            order["attempts"] = attempts.into();
        }
        let payload = order.to_string();
        drop(orders);
        // It fails only when the pool has ended.
        let _ = self.hub.publish(format!("orders.{id}"), payload);
    }

    /// An attempt to charge for an order. It may block its thread as long as it likes: no request waits for it.
    fn charge(&self, id: usize, item: &str, attempt: &Attempt<'_>) -> Result<(), Fault> {
        self.change(id, "charging", Some(attempt.number()));
        match item {
            "flaky" if attempt.number() < 3 => Err(Fault::new("the bank is busy")),
            "stolen" => Err(Fault::permanent("the card is stolen")),
            "stuck" => {
                while !attempt.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(Fault::new("the bank has not answered"))
            }
            _ => Ok(()),
        }
    }

    fn create(&'static self, request: &Request<'_>, response: Response) -> paceline::Result<()> {
        let Ok(Value::Object(body)) = request.json::<Value>() else {
            return refuse(response, 400, "body", "must be a JSON object");
        };
        let item = body.get("item").and_then(Value::as_str);
        let Some(item) = item.filter(|item| !item.is_empty()).map(str::to_owned) else {
            return refuse(response, 422, "item", "must be a text that is not empty");
        };
        let quantity = body.get("quantity").and_then(Value::as_u64);
        let Some(quantity) = quantity.filter(|quantity| (1..=1000).contains(quantity)) else {
            return refuse(response, 422, "quantity", "must be a whole number from 1 to 1000");
        };
        let mut orders = lock(&self.orders);
        let id = orders.len() + 1;
        let order = json!({ "id": id, "item": item, "quantity": quantity, "state": "accepted", "attempts": 0 });
        orders.push(order.clone());
        drop(orders);
        self.change(id, "accepted", None);
        let work = move |attempt: &Attempt<'_>| self.charge(id, &item, attempt);
        let Ok(task) = self.charge.submit(work) else {
            self.change(id, "cancelled", None);
            return refuse(response, 503, "order", "cannot be taken now");
        };
        task.on_end(move |status| match status {
            Status::Completed => self.change(id, "paid", None),
            Status::Failed => self.change(id, "declined", None),
            Status::TimedOut => self.change(id, "late", None),
            _ => self.change(id, "cancelled", None),
        });
        response.status(201).header("Location", format!("/orders/{id}")).json(&order)
    }

    fn list(&self, response: Response) -> paceline::Result<()> {
        response.json(&json!({ "orders": *lock(&self.orders) }))
    }

    /// The order that the path names, or `None`, and then the answer was 404.
    fn find(&self, request: &Request<'_>, response: Response) -> Option<(Value, Response)> {
        let id = request.param("id").and_then(|id| id.parse().ok()).unwrap_or(0_usize);
        if let Some(order) = lock(&self.orders).get(id.wrapping_sub(1)) {
            return Some((order.clone(), response));
        }
        // It fails only if the client has gone.
        let _ = refuse(response, 404, "id", "names no order");
        None
    }

    fn show(&self, request: &Request<'_>, response: Response) -> paceline::Result<()> {
        self.find(request, response).map_or(Ok(()), |(order, response)| response.json(&order))
    }

    fn receipt(&self, request: &Request<'_>, response: Response) -> Option<Receipt> {
        let (_, response) = self.find(request, response)?;
        Some(Receipt { response: Some(response), size: 0, sums: (1, 0) })
    }

    /// Server-sent events: what has happened since the event that the client has seen last, and what happens from now on.
    fn events(&self, request: &Request<'_>, response: Response) -> paceline::Result<()> {
        let seen = request.header("Last-Event-ID").and_then(|id| id.parse().ok()).unwrap_or(0_u64);
        // An id that no event has had yet is of another time: then all events are new.
        let known = self.hub.query(&Query::of("orders.*").sequences(seen..=u64::MAX).limit(1))?;
        let from = ReplayFrom::Sequence(if known.is_empty() { 1 } else { seen + 1 });
        let response = response.header("Content-Type", "text/event-stream");
        let mut body = response.header("Cache-Control", "no-store").stream(None)?;
        if body.write(b": the orders of the shop\n\n")? == WriteStatus::Unwanted {
            return body.finish(); // The answer to HEAD has no body.
        }
        let stream = Arc::new(Mutex::new(Some(body)));
        let to = Arc::clone(&stream);
        let replay = self.hub.replay("orders.*", from).serve(move |message: &Message<'_>| {
            if message.key().as_str() == THE_END {
                return lock(&to).take().map_or(Ok(()), Body::finish);
            }
            let data = String::from_utf8_lossy(message.payload());
            write(&to, &format!("id: {}\nevent: order\ndata: {data}\n\n", message.sequence()));
            Ok(())
        })?;
        lock(&self.readers).push((stream, replay));
        Ok(())
    }
}

/// Writes to a stream of events. False if it has ended, as when its client has gone.
fn write(stream: &Mutex<Option<Body>>, text: &str) -> bool {
    let mut body = lock(stream);
    drop(body.take_if(|body| body.write(text.as_bytes()).is_err()));
    body.is_some()
}

/// Answers with an error that names the field and says what would be right.
fn refuse(response: Response, status: u16, field: &str, error: &str) -> paceline::Result<()> {
    response.status(status).json(&json!({ "field": field, "error": error }))
}

/// An upload, counted and summed up (Adler-32) as it comes. It is never in memory as a whole.
struct Receipt {
    response: Option<Response>,
    size: usize,
    sums: (u32, u32),
}

impl RequestBody for Receipt {
    fn data(&mut self, bytes: &[u8]) -> usize {
        self.size += bytes.len();
        for &byte in bytes {
            self.sums.0 = (self.sums.0 + u32::from(byte)) % 65521;
            self.sums.1 = (self.sums.1 + self.sums.0) % 65521;
        }
        if let Some(response) = self.response.take_if(|_| self.size > MAX_RECEIPT) {
            let _ = refuse(response, 413, "receipt", "must have up to 65536 bytes");
        }
        bytes.len()
    }

    fn end(self: Box<Self>) {
        let adler32 = format!("{:08x}", self.sums.1 << 16 | self.sums.0);
        if let Some(response) = self.response {
            let _ = response.json(&json!({ "size": self.size, "adler32": adler32 }));
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or("examples/service/service.yaml".into());
    let settings = Settings::layers().file(file).environment().build()?;
    let log = settings.log_builder().build()?;
    let pool = settings.pool_builder().log(&log).build()?;
    let signals = Signals::new(&pool, &[libc::SIGTERM, libc::SIGINT], |_| ())?;
    let workers = settings.worker_pool_builder(&pool).build()?;
    let hub = settings.hub_builder(&pool).build()?;
    let charge = settings.task_type(&workers, "charge").build()?;
    let shop = Shop { hub, charge, orders: Mutex::default(), readers: Mutex::default() };
    let shop: &Shop = Box::leak(Box::new(shop)); // Handlers and jobs refer to it until the process ends.
    let http = settings
        .http_builder(&pool)
        .access_log(AccessLog::json())
        .route("POST", "/orders", |request: &_, response| shop.create(request, response))
        .route("GET", "/orders", |_: &Request<'_>, response| shop.list(response))
        .route("GET", "/orders/{id}", |request: &_, response| shop.show(request, response))
        .route_streaming("PUT", "/orders/{id}/receipt", |request: &_, response| {
            shop.receipt(request, response)
        })
        .route("GET", "/events", |request: &_, response| shop.events(request, response))
        .serve()?;
    let ops = Ops::from_settings(&pool, &settings)?.ok_or("ops.address is not set")?;
    // Readers that have gone are noticed when they are written to.
    let _heartbeat = pool.every(Duration::from_secs(15), || {
        lock(&shop.readers).retain(|(stream, _)| write(stream, ": still here\n\n"));
        Flow::Wait
    })?;
    #[cfg(feature = "systemd")]
    let systemd = paceline::admin::Service::start(&pool, || true)?;
    println!("the shop: http://{}/orders", http.addresses()[0]);
    println!("the live page: http://{}/", ops.addresses()[0]);

    signals.wait();
    #[cfg(feature = "systemd")]
    drop(systemd);
    // Orders are refused from here on, and those that were accepted are completed.
    let jobs = workers.shutdown(Phases { drain: DRAIN, ..Phases::default() });
    // Their last states are published. Behind them comes what ends the streams of events, which the server waits for.
    shop.hub.publish(THE_END, "")?;
    let is_answered = http.drain(DRAIN);
    let report = pool.shutdown(DRAIN);
    let is_drained = jobs.drained && is_answered && report.drained;
    println!("drained: {is_drained}, orders: {}", lock(&shop.orders).len());
    log.close(Duration::from_secs(5))?;
    Ok(if is_drained { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
