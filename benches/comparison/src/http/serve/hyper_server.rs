//! Stands for what most HTTP servers in Rust are made of: hyper on tokio, without a framework. Each
//! thread has a runtime of its own, which serves cheaper than one runtime of many threads, and the
//! connections are dealt out in turn. `pipeline_flush` sends the answers of one read together. There
//! is no timer, and so no deadline for a request's head: the cheapest that hyper can be.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::LocalSet;

use super::{BODY, Server, listen};

pub struct Hyper;

impl Server for Hyper {
    fn serve(&self, address: SocketAddr, threads: usize) -> io::Result<()> {
        let listener = listen(address)?;
        let mut inboxes = Vec::new();
        for _ in 0..threads {
            let (sender, inbox) = unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            std::thread::spawn(move || LocalSet::new().block_on(&runtime, serve_all(inbox)));
            inboxes.push(sender);
        }
        for next in 0.. {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            inboxes[next % threads].send(stream).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

async fn serve_all(mut inbox: UnboundedReceiver<TcpStream>) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.pipeline_flush(true);
    while let Some(stream) = inbox.recv().await {
        let io = TokioIo::new(tokio::net::TcpStream::from_std(stream)?);
        tokio::task::spawn_local(http.serve_connection(io, service_fn(answer)));
    }
    Ok(())
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(BODY))))
}
