//! The HTTP servers that are written in Rust: one file each, one trait.
//!
//! Every server, whatever its language, gives the same answer to `GET /`: status 200, a body of 64
//! bytes, `Content-Length` and `Date`, and as little else as it can be made to send. A server prints
//! `listening on ADDR` and serves until it is killed. To the line `heap` on its standard input it
//! says how many bytes its allocator has given out.

mod actix;
mod floor;
mod hyper_server;
mod paceline_server;

use std::io::{self, BufRead};
use std::net::{SocketAddr, TcpListener};

use crate::sys;

pub const BODY: &[u8; 64] = &[b'x'; 64];

/// An HTTP server. `serve` returns only on an error that ends it.
trait Server {
    fn serve(&self, address: SocketAddr, threads: usize) -> io::Result<()>;
}

fn server(name: &str) -> Option<&'static dyn Server> {
    Some(match name {
        "paceline" => &paceline_server::Paceline,
        "floor" => &floor::Floor,
        "hyper" => &hyper_server::Hyper,
        "actix-web" => &actix::Actix,
        _ => return None,
    })
}

/// The body of the child process.
pub fn run(name: &str, address: SocketAddr, threads: usize) -> io::Result<()> {
    let server = server(name).ok_or_else(|| io::Error::other(format!("no server {name:?}")))?;
    sys::raise_open_files(20_000)?;
    std::thread::spawn(report_heap);
    server.serve(address, threads)
}

/// Listens and says where.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = sys::listen(address)?;
    announce(listener.local_addr()?);
    Ok(listener)
}

fn announce(address: SocketAddr) {
    println!("listening on {address}");
}

fn report_heap() {
    for _ in io::stdin().lock().lines().map_while(Result::ok) {
        println!("{}", sys::heap_bytes());
    }
}
