//! Ours, as a user would write it: a route and a handler.

use std::io;
use std::net::SocketAddr;

use paceline::Pool;
use paceline::http::{Http, Request, Response};

use super::{BODY, Server, announce};

pub struct Paceline;

impl Server for Paceline {
    fn serve(&self, address: SocketAddr, threads: usize) -> io::Result<()> {
        let pool = Pool::builder().threads(threads).build().map_err(io::Error::other)?;
        let http = Http::builder(&pool)
            .listen(address)
            .route("GET", "/", |_: &Request<'_>, response: Response| response.send(BODY))
            .serve()
            .map_err(io::Error::other)?;
        announce(address_of(&http)?);
        http.wait().map_err(io::Error::other)
    }
}

fn address_of(http: &Http) -> io::Result<SocketAddr> {
    let address = http.addresses().first().and_then(|address| address.tcp());
    address.ok_or_else(|| io::Error::other("it listens nowhere"))
}
