//! A TCP server that echoes, with the limits that a server in production has: 4 threads, 20,000 connections, 120 s without a
//! byte, 10,000 requests. It ends at SIGTERM or Ctrl-C, and drains first. For 20,000 connections: `ulimit -n 20100`.
//!
//! ```text
//! cargo run --release -p examples --example tcp -- 127.0.0.1:3333    # without an address: port 3333 of all addresses
//! nc 127.0.0.1 3333
//! ```

use paceline::net::{Conn, ConnHandler, Listen, Server};
use paceline::{Pool, Signals};
use std::time::Duration;

struct Echo;

impl ConnHandler for Echo {
    fn data(&mut self, conn: &Conn, request: &[u8]) -> usize {
        // One of 10,000; if there is none, the busy message is written.
        if let Some(admission) = conn.admit() {
            conn.write(request).expect("the connection is open");
            admission.answered(); // here at once; another thread may do it later
        }
        request.len()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("*:3333".into());
    let pool = Pool::builder().threads(4).build()?;
    let signals = Signals::new(&pool, &[libc::SIGTERM, libc::SIGINT], |_| ())?;
    let listen = Listen::from(address)
        .idle_timeout(Duration::from_secs(120))
        .max_connections(20_000)
        .refusal("too many connections\n")
        .max_requests(10_000)
        .busy("too many requests\n");
    let server = Server::builder(&pool).listen(listen).serve(|_| Echo)?;
    println!("listening on {}", server.addresses()[0]);
    signals.wait();
    let report = server.drain(Duration::from_secs(10));
    let (drained, stats) = (report.drained, report.stats);
    println!("drained: {drained}, connections: {}, requests: {}", stats.accepted, stats.answered);
    Ok(())
}
