//! A service to look at: an HTTP server, a worker pool and a hub on one pool, a handler that sometimes blocks its thread, a
//! subscription that lags, and the live page that shows all of it.
//!
//! ```text
//! cargo run -p examples --example observe
//! ```
//!
//! Then open the page in a browser. SIGINT and SIGTERM end it.

use paceline::http::{Http, Request, Response};
use paceline::hub::{Hub, Message, Overflow};
use paceline::ops::Ops;
use paceline::task::WorkerPool;
use paceline::{Error, Flow, Pool, Signals};
use std::env;
use std::thread::sleep;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// The handler that sometimes blocks: 2 s of 12.
fn report() -> Flow {
    sleep(2000 * MS);
    Flow::Wait
}

fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let page = arguments.next().unwrap_or("127.0.0.1:9090".into());
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());

    let pool = Pool::builder().name("observe").threads(4).build()?;
    let signals = Signals::shut_down(&pool, 10_000 * MS)?;
    let server = Http::builder(&pool)
        .listen(address)
        .route("GET", "/hello", |_: &Request<'_>, response: Response| response.text("hello\n"))
        .route("GET", "/slow", |_: &Request<'_>, response: Response| {
            // What a handler should not do: others of its thread wait meanwhile, until the watch steps in.
            sleep(3000 * MS);
            response.text("at last\n")
        })
        .serve()?;

    let workers = WorkerPool::builder(&pool).build()?;
    let resize = workers.task_type("resize").build()?;
    let hub = Hub::new(&pool)?;
    let _quick = hub.subscribe("orders.>", |_: &Message| ())?;
    // 66 orders a second, of the 100 that come: it lags, until the oldest are dropped.
    let slow = hub.subscription("orders.*").capacity(500).measured().overflow(Overflow::DropOldest);
    let _slow = slow.serve(|_: &Message| sleep(15 * MS))?;

    let _work = pool.every(10 * MS, move || {
        let _refused = resize.submit(|_| sleep(2 * MS));
        let _receipt = hub.publish("orders.new", b"one more");
        Flow::Wait
    })?;
    let _report = pool.every(12_000 * MS, report)?;

    let ops = Ops::serve(&pool, page)?;
    println!("the live page: http://{}/", ops.addresses()[0]);
    println!("the server: http://{}/hello, and /slow", server.addresses()[0]);
    signals.wait();
    Ok(())
}
