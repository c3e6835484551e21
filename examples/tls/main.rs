//! HTTP over TLS: rustls between the sockets and the HTTP server.
//!
//! ```text
//! cargo run --release -p tls-example --example tls -- --listen 127.0.0.1:8443 --certificate /tmp/certificate.pem
//! curl --cacert /tmp/certificate.pem https://localhost:8443/hello/you
//! ```
//!
//! The library knows nothing of TLS. [`Tls`] is a [`Filter`] of a listener: bytes that come go through
//! it before HTTP sees them, and what anybody writes goes through it before it leaves. Back-pressure
//! stays what it is, since the output's marks count the bytes that leave.
//!
//! The certificate is made at the start, for `localhost` and 127.0.0.1, and signed by itself.

#[path = "../common/mod.rs"]
mod common;

use common::{Failure, address, number, print_now, set};
use lexopt::Arg::{Long, Short};
use paceline::http::{Http, Request, Response};
use paceline::net::{Filter, FilterRead, Listen};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const HELP: &str = "\
HTTP over TLS: GET /hello/{name}, GET /bytes/{count}, POST /echo.

Usage: tls --listen ADDR [--certificate PATH] [--threads N]

  --listen ADDR        where to listen: 127.0.0.1:8443, *:8443; port 0 takes a free one
  --certificate PATH   where to write the certificate, for clients that want to check it
  --threads N          threads of the pool; default: one per CPU
  --help               this text";

const DRAIN: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    common::exit("tls", run())
}

fn run() -> Result<(), Failure> {
    let (mut listen, mut certificate, mut threads) = (None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => set("listen", &mut listen, address, &mut parser)?,
            Long("certificate") => set("certificate", &mut certificate, path, &mut parser)?,
            Long("threads") => set("threads", &mut threads, number, &mut parser)?,
            Long("help") | Short('h') => return Ok(print_now(HELP)?),
            other => return Err(other.unexpected().into()),
        }
    }
    let listen = listen.ok_or(lexopt::Error::from("--listen is missing"))?;
    let config = configure(certificate)?;
    common::raise_open_files()?;
    let pool = common::pool(threads).build()?;
    let server = Http::builder(&pool)
        .listen(Listen::on(listen).filter(move |_| Tls::new(&config)))
        .route("GET", "/hello/{name}", |request: &Request<'_>, response: Response| {
            response.text(format!("Hello, {}!\n", request.param("name").unwrap_or("you")))
        })
        .route("GET", "/bytes/{count}", bytes)
        .route("POST", "/echo", |request: &Request<'_>, response: Response| {
            response.send(request.body())
        })
        .serve()?;
    common::serve_until_interrupted(&pool, server.addresses())?;
    let drained = server.drain(DRAIN);
    let books = server.stats();
    print_now(format_args!(
        "{} requests: {} answered, {} refused, {} aborted; {} connections failed",
        books.begun,
        books.answered.total(),
        books.refused.total(),
        books.aborted.total(),
        books.server.closed.failed,
    ))?;
    if drained { Ok(()) } else { Err("not everybody was through".into()) }
}

fn path(text: &str) -> Result<PathBuf, String> {
    Ok(text.into())
}

/// A certificate of our own, and what rustls does with it.
fn configure(certificate: Option<PathBuf>) -> Result<Arc<ServerConfig>, Failure> {
    let own = rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])?;
    if let Some(path) = certificate {
        std::fs::write(path, own.cert.pem())?;
    }
    let key = own.signing_key.serialize_der().try_into()?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// So many bytes, as fast as the peer takes them: each is its place, modulo 251.
fn bytes(request: &Request<'_>, response: Response) -> paceline::Result<()> {
    let Some(count) = request.param("count").and_then(|count| count.parse().ok()) else {
        return response.status(400).text("a number of bytes is wanted\n");
    };
    let mut at: u64 = 0;
    response.stream(Some(count))?.pump(move |body| {
        let end = count.min(at + (16 << 10));
        let piece: Vec<u8> = (at..end).map(|place| (place % 251) as u8).collect();
        body.write(&piece)?;
        at = end;
        Ok(at < count)
    });
    Ok(())
}

/// The TLS session of a connection.
struct Tls(ServerConnection);

impl Tls {
    fn new(config: &Arc<ServerConfig>) -> Self {
        Self(ServerConnection::new(Arc::clone(config)).expect("the configuration is complete"))
    }

    /// What has been decrypted, and whether there may be more.
    fn decrypt(&mut self, plain: &mut Vec<u8>) -> io::Result<FilterRead> {
        let failed = |error| io::Error::new(ErrorKind::InvalidData, error);
        let state = self.0.process_new_packets().map_err(failed)?;
        let from = plain.len();
        plain.resize(from + state.plaintext_bytes_to_read(), 0);
        self.0.reader().read_exact(&mut plain[from..])?;
        Ok(if state.peer_has_closed() { FilterRead::Ended } else { FilterRead::Open })
    }

    /// What the peer is to be sent: records, answers of the handshake, alerts.
    fn send(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(wire)?;
        }
        Ok(())
    }
}

impl Filter for Tls {
    fn received(
        &mut self,
        mut bytes: &[u8],
        plain: &mut Vec<u8>,
        wire: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        let mut inflow = Ok(FilterRead::Open);
        while !bytes.is_empty() && matches!(inflow, Ok(FilterRead::Open)) {
            self.0.read_tls(&mut bytes)?;
            inflow = self.decrypt(plain);
        }
        // A failure, too, has something to say.
        self.send(wire)?;
        inflow
    }

    fn written(&mut self, mut bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            // Before the end of the handshake the session keeps up to 64 KiB.
            match self.0.writer().write(bytes)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
            self.send(wire)?;
        }
        Ok(())
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        self.0.send_close_notify();
        // To a vector nothing fails.
        let _ = self.send(wire);
    }

    /// Whoever ends without saying so may have been cut off by somebody else.
    fn cut_off(&mut self) -> io::Result<()> {
        Err(ErrorKind::UnexpectedEof.into())
    }
}
