//! HTTP over TLS, with rustls as the client, which checks the certificate; and what curl makes of it.

use crate::kit::{self, Kind, PATIENCE, Server};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

type Stream = StreamOwned<ClientConnection, kit::Stream>;

struct Site {
    server: Server,
    certificate: PathBuf,
}

impl Site {
    fn start(name: &str) -> Self {
        let certificate = kit::own_path(&format!("tls-{name}.pem"));
        let mut command = super::program("tls");
        command.args(["--threads", "2", "--certificate"]).arg(&certificate);
        Self { server: Server::spawn(Kind::Tcp, command), certificate }
    }

    fn session(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(&self.certificate).expect("it was written");
        roots.add(certificate).expect("a certificate");
        let config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        ClientConnection::new(Arc::new(config), name).expect("a good configuration")
    }

    fn connect(&self) -> Stream {
        StreamOwned::new(self.session(rustls::ALL_VERSIONS), self.server.connect())
    }

    /// What its books say at the end.
    fn books(mut self) -> String {
        self.server.end("TERM")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It fails if the example has not come so far.
        let _ = fs::remove_file(&self.certificate);
    }
}

/// A request whose answer ends with the connection.
fn request(stream: &mut Stream, head: &str, body: &[u8]) {
    let head = format!("{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body).expect("the server reads");
}

/// The body of the answer. An end without `close_notify` would be an error.
fn body(stream: &mut impl Read) -> Vec<u8> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it ends as it must");
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{:?}", answer[..end].escape_ascii());
    answer.split_off(end + 4)
}

fn counted(count: usize) -> Vec<u8> {
    (0..count).map(|place| (place % 251) as u8).collect()
}

#[test]
fn requests_are_answered_in_both_versions() {
    let site = Site::start("versions");
    for (version, number) in [
        (&rustls::version::TLS12, ProtocolVersion::TLSv1_2),
        (&rustls::version::TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let mut stream = StreamOwned::new(site.session(&[version]), site.server.connect());
        request(&mut stream, "GET /hello/you", b"");
        assert_eq!(body(&mut stream), b"Hello, you!\n");
        assert_eq!(stream.conn.protocol_version(), Some(number));
    }
    let expected = "2 requests: 2 answered, 0 refused, 0 aborted; 0 connections failed\n";
    assert_eq!(site.books(), expected);
}

#[test]
fn a_connection_serves_many_requests_and_bodies_of_any_size() {
    let site = Site::start("bodies");
    let mut stream = site.connect();
    for _ in 0..100 {
        stream.write_all(b"GET /hello/again HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("open");
        let mut answer = Vec::new();
        while !answer.ends_with(b"Hello, again!\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer comes");
            answer.push(byte[0]);
        }
    }
    for size in [0, 1, 16 << 10, (16 << 10) + 1, 1 << 20] {
        let (mut stream, bytes) = (site.connect(), counted(size));
        request(&mut stream, "POST /echo", &bytes);
        assert!(body(&mut stream) == bytes, "{size}");
    }
}

/// A socket that gives and takes one byte at a time.
struct Dribble(kit::Stream);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let some = buffer.len().min(1);
        self.0.read(&mut buffer[..some])
    }
}

impl Write for Dribble {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn records_may_come_byte_by_byte() {
    let site = Site::start("bytes");
    let socket = site.server.connect();
    socket.set_nodelay(true).expect("it is open");
    let mut stream = StreamOwned::new(site.session(rustls::ALL_VERSIONS), Dribble(socket));
    stream
        .write_all(b"GET /hello/slowly HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("the server reads");
    assert_eq!(body(&mut stream), b"Hello, slowly!\n");
}

/// Goal: back-pressure goes through the filter. Method: many clients that want much and read late.
#[test]
fn slow_readers_cost_little_and_get_everything() {
    const MUCH: usize = 16 << 20;
    let site = Site::start("slow");
    request(&mut site.connect(), "GET /bytes/1000000", b"");
    let before = site.server.allocated();
    let mut streams: Vec<_> = (0..10).map(|_| site.connect()).collect();
    streams.iter_mut().for_each(|stream| request(stream, &format!("GET /bytes/{MUCH}"), b""));
    site.server.until_it_rests();
    let grown = site.server.allocated().saturating_sub(before);
    assert!(grown < 10 * MUCH / 8, "{grown} bytes for 10 responses");
    let mut first = streams.swap_remove(0);
    assert!(body(&mut first) == counted(MUCH));
}

#[test]
fn who_does_not_speak_tls_or_is_cut_off_fails_alone() {
    let site = Site::start("failures");
    let mut plain = site.server.connect();
    plain.write_all(b"GET /hello/you HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is open");
    let mut answer = Vec::new();
    // An alert, which a reset may overtake.
    let end = plain.read_to_end(&mut answer);
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    assert!(answer.is_empty() || answer[0] == 21, "{}", answer.escape_ascii());

    let mut cut = site.connect();
    request(&mut cut, "GET /bytes/0", b"");
    assert!(body(&mut cut).is_empty());
    let mut cut = site.connect();
    cut.write_all(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhal")
        .expect("it is open");
    cut.flush().expect("it is open");
    // Without close_notify.
    drop(cut);

    let mut good = site.connect();
    request(&mut good, "GET /hello/you", b"");
    assert_eq!(body(&mut good), b"Hello, you!\n");
    let expected = "3 requests: 2 answered, 0 refused, 1 aborted; 2 connections failed\n";
    assert_eq!(site.books(), expected);
}

#[test]
fn curl_checks_the_certificate() {
    if Command::new("curl").arg("--version").output().is_err() {
        return crate::skipped("curl is not installed");
    }
    let site = Site::start("curl");
    let (_, port) = site.server.address.rsplit_once(':').expect("it is TCP");
    let curl = |arguments: &[&str]| {
        let limit = PATIENCE.as_secs().to_string();
        let url = format!("https://localhost:{port}/bytes/3000000");
        let resolve = format!("localhost:{port}:127.0.0.1");
        let mut command = Command::new("curl");
        command.args(["-s", "-m", &limit, "--resolve", &resolve, &url]).args(arguments);
        command.output().expect("curl starts")
    };
    let certificate = site.certificate.to_str().expect("a readable path");
    assert!(curl(&["--cacert", certificate]).stdout == counted(3_000_000));
    assert_eq!(curl(&[]).status.code(), Some(60), "nobody vouches for it");
    assert!(curl(&["-k", "--tls-max", "1.2"]).stdout == counted(3_000_000));
}
