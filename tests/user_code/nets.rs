//! Servers: handlers, filters, factories, datagrams, HTTP.

use crate::charge::{Bang, Charge, Driver, panics};
use crate::common::{Count, LONG, until};
use paceline::Pool;
use paceline::http::{Http, HttpBuilder, Next, Request, RequestBody, RequestEnd, Response};
use paceline::net::{
    Accept, Address, Conn, ConnHandler, Datagrams, Filter, FilterRead, Listen, Reason, Server,
    ServerBuilder, Timeout, TimeoutAction, ToAddress, UdpSocket,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// An error that cannot be shown.
struct Shown(Bang);

impl std::fmt::Display for Shown {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.go()
    }
}

pub const DRIVERS: &[(&str, Driver)] = &[
    ("ServerBuilder::serve", |pool, bang| {
        let charge = bang.charge();
        let factory = move |_: &Conn| -> Hooks { charge.go() };
        let server = Server::builder(pool).listen("127.0.0.1:0").serve(factory).unwrap();
        one_connection(&server.addresses()[0], "data");
        ends(&server);
        let _in_drop = panics(|| drop(server));
    }),
    ("ConnHandler::open", |pool, bang| connection(pool, bang, "open")),
    ("ConnHandler::data", |pool, bang| connection(pool, bang, "data")),
    ("ConnHandler::finished", |pool, bang| connection(pool, bang, "finished")),
    ("ConnHandler::writable", |pool, bang| connection(pool, bang, "writable")),
    ("ConnHandler::written", |pool, bang| connection(pool, bang, "written")),
    ("ConnHandler::timeout", |pool, bang| connection(pool, bang, "timeout")),
    ("ConnHandler::notified", |pool, bang| connection(pool, bang, "notified")),
    ("ConnHandler::draining", |pool, bang| connection(pool, bang, "draining")),
    ("ConnHandler::error", |pool, bang| connection(pool, bang, "error")),
    ("ConnHandler::close", |pool, bang| {
        connection(pool, bang, "close");
        pool_end(bang, "close");
    }),
    ("Listen::filter", |pool, bang| {
        let charge = bang.charge();
        let listen = Listen::on("127.0.0.1:0").filter(move |_: &Conn| -> Plain { charge.go() });
        filtered(pool, listen, bang);
    }),
    ("Filter::received", |pool, bang| filter(pool, bang, "received")),
    ("Filter::written", |pool, bang| filter(pool, bang, "written")),
    ("Filter::finish", |pool, bang| filter(pool, bang, "finish")),
    ("Filter::cut_off", |pool, bang| filter(pool, bang, "cut_off")),
    ("ServerBuilder::on_exhausted", |pool, bang| {
        let (charge, told) = (bang.charge(), Count::new());
        let tell = told.clone();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let other: OwnedFd = socket.try_clone().unwrap().into();
        let builder = Server::builder(pool).listen(Listen::inherited(socket));
        let builder = builder.on_exhausted(move |_| {
            tell.up();
            charge.go()
        });
        let server = builder.serve(move |_: &Conn| Hooks::new("", bang)).unwrap();
        // Whoever shares it has shut it down: it accepts no more.
        socket2::SockRef::from(&other).shutdown(Shutdown::Both).unwrap();
        told.until(1);
        // It goes on, and tries again.
        let runs = || pool.stats().threads.iter().map(|thread| thread.handled).sum::<u64>();
        let before = runs();
        until("it tries again", || runs() > before + 1);
        ends(&server);
        let _in_drop = panics(|| drop(server));
    }),
    ("DatagramHandler::data", |pool, bang| datagrams(pool, bang, "data")),
    ("DatagramHandler::error", |pool, bang| datagrams(pool, bang, "error")),
    ("DatagramHandler::close", |pool, bang| datagrams(pool, bang, "close")),
    ("ToAddress::to_address", |pool, bang| {
        assert!(panics(|| drop(Server::builder(pool).listen(Odd(bang)))), "the user's own thread");
    }),
    ("HttpBuilder::server", |pool, bang| {
        let settings = move |_: ServerBuilder| -> ServerBuilder { bang.go() };
        assert!(panics(|| drop(Http::builder(pool).server(settings))), "the user's own thread");
    }),
    ("HttpBuilder::route", |pool, bang| {
        let charge = bang.charge();
        let route = move |_: &Request<'_>, _: Response| -> () { charge.go() };
        http(pool, |builder| builder.route("GET", "/", route), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("HandlerResult::failure", |pool, bang| {
        let route = move |_: &Request<'_>, _: Response| Err::<(), _>(Shown(bang));
        http(pool, |builder| builder.route("GET", "/", route), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("HttpBuilder::around", |pool, bang| {
        let charge = bang.charge();
        let around = move |request: &Request<'_>, response: Response, next: Next<'_>| {
            if request.pattern() == Some("/fine") {
                next.run(request, response);
                return;
            }
            charge.go()
        };
        http(pool, |builder| builder.around(around), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("HttpBuilder::fallback", |pool, bang| {
        let charge = bang.charge();
        let fallback = move |_: &Request<'_>, _: Response| -> () { charge.go() };
        http(pool, |builder| builder.fallback(fallback), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("HttpBuilder::on_end", |pool, bang| {
        let charge = bang.charge();
        let hook = move |end: &RequestEnd<'_>| {
            if end.target == "/" {
                charge.go();
            }
        };
        http(pool, |builder| builder.on_end(hook), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("HttpBuilder::route_streaming", |pool, bang| {
        let charge = bang.charge();
        let route = move |_: &Request<'_>, _: Response| -> Taker { charge.go() };
        http(pool, |builder| builder.route_streaming("PUT", "/", route), PUT);
    }),
    ("RequestBody::data", |pool, bang| body(pool, bang, "data")),
    ("RequestBody::end", |pool, bang| body(pool, bang, "end")),
    ("RequestBody::is_wanted", |pool, bang| body(pool, bang, "is_wanted")),
    ("Body::pump", |pool, bang| {
        let route = move |_: &Request<'_>, response: Response| {
            let charge = bang.charge();
            response.stream(None).unwrap().pump(move |_| charge.go());
        };
        http(pool, |builder| builder.route("GET", "/", route), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
    ("Body::on_writable", |pool, bang| {
        let route = move |_: &Request<'_>, response: Response| {
            let (charge, mut body) = (bang.charge(), response.stream(None).unwrap());
            body.on_writable(move || charge.go());
            while !body.is_pressed() {
                if body.write(&[0; 1 << 16]).is_err() {
                    break;
                }
            }
            // The connection ends while the body is at large.
            std::mem::forget(body);
        };
        http(pool, |builder| builder.route("GET", "/", route), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }),
];

const PUT: &str = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

/// Panics in one of its hooks, and in its destructor.
struct Hooks {
    place: &'static str,
    charge: Charge,
}

impl Hooks {
    fn new(place: &'static str, bang: Bang) -> Self {
        Self { place, charge: bang.charge() }
    }

    fn at(&self, place: &str) {
        if self.place == place {
            self.charge.go()
        }
    }
}

impl ConnHandler for Hooks {
    fn open(&mut self, conn: &Conn) -> Accept {
        if self.place == "notified" {
            conn.handle().notify().unwrap();
        }
        if self.place == "timeout" {
            conn.set_deadline(Some(MS));
        }
        self.at("open");
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.at("data");
        // More than a socket takes, however large the system lets it grow.
        let answer = if self.place == "writable" { 1 << 25 } else { bytes.len() };
        let _ = conn.write_tracked(&vec![0; answer], 7);
        bytes.len()
    }

    fn finished(&mut self, conn: &Conn) {
        self.at("finished");
        conn.close();
    }

    fn writable(&mut self, _: &Conn) {
        self.at("writable");
    }

    fn written(&mut self, _: &Conn, _: u64) {
        self.at("written");
    }

    fn timeout(&mut self, _: &Conn, _: Timeout) -> TimeoutAction {
        self.at("timeout");
        TimeoutAction::Close
    }

    fn notified(&mut self, _: &Conn) {
        self.at("notified");
    }

    fn draining(&mut self, _: &Conn) {
        self.at("draining");
    }

    fn error(&mut self, _: &Conn, _: ErrorKind) {
        self.at("error");
    }

    fn close(&mut self, _: &Conn, _: Reason) {
        self.at("close");
    }
}

/// A client that asks, reads on, and leaves; with a reset if that is the place.
fn one_connection(address: &Address, place: &str) {
    let Address::Tcp(address) = address else { unreachable!("it is TCP") };
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    socket2::SockRef::from(&client).set_recv_buffer_size(1 << 16).unwrap();
    let _ = client.write_all(b"!");
    if place == "error" {
        client.read_exact(&mut [0; 1]).unwrap();
        socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        return;
    }
    let waits_for_the_server = ["open", "data", "timeout", "notified", "written", "writable"];
    if !waits_for_the_server.contains(&place) {
        let _ = client.shutdown(Shutdown::Write);
    }
    let _ = client.read_to_end(&mut Vec::new());
}

fn connection(pool: &Pool, bang: Bang, place: &'static str) {
    let factory = move |_: &Conn| Hooks::new(place, bang);
    let builder =
        Server::builder(pool).listen("127.0.0.1:0").output_marks(1 << 10, 1 << 12, 1 << 26);
    let server = builder.serve(factory).unwrap();
    let address = server.addresses()[0].clone();
    if place == "draining" {
        let Address::Tcp(address) = address else { unreachable!("it is TCP") };
        let client = TcpStream::connect(address).unwrap();
        until("it is accepted", || server.stats().accepted == 1);
        ends(&server);
        return drop(client);
    }
    one_connection(&address, place);
    // Another one: the server goes on.
    one_connection(&address, place);
    until("both have ended", || server.stats().closed.total() == 2);
    ends(&server);
    pool_end(bang, place);
}

/// Goal: the end of the pool ends the server, whatever its handlers do then.
fn pool_end(bang: Bang, place: &'static str) {
    let pool = Pool::builder().threads(2).build().unwrap();
    let factory = move |_: &Conn| Hooks::new(place, bang);
    let server = Server::builder(&pool).listen("127.0.0.1:0").serve(factory).unwrap();
    let Address::Tcp(address) = server.addresses()[0].clone() else { unreachable!("it is TCP") };
    let clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    until("they are accepted", || server.stats().accepted == 3);
    assert!(pool.shutdown(Duration::ZERO).stuck.is_empty());
    ends(&server);
    assert!(pool.audit().balances());
    drop(clients);
}

/// Whoever waits for it is told, and its books balance.
#[track_caller]
fn ends(server: &Server) {
    let _report = server.drain(LONG);
    let _ended = server.wait();
    let stats = server.stats();
    assert_eq!((stats.open, stats.accepted), (0, stats.closed.total()), "{stats:?}");
}

/// A filter that turns nothing.
struct Plain(&'static str, Charge);

impl Plain {
    fn at(&self, place: &str) {
        if self.0 == place {
            self.1.go()
        }
    }
}

impl Filter for Plain {
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        self.at("received");
        plain.extend_from_slice(bytes);
        Ok(FilterRead::Open)
    }

    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        self.at("written");
        wire.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<u8>) {
        self.at("finish");
    }

    fn cut_off(&mut self) -> io::Result<()> {
        self.at("cut_off");
        Ok(())
    }
}

fn filter(pool: &Pool, bang: Bang, place: &'static str) {
    let make = move |_: &Conn| Plain(place, bang.charge());
    filtered(pool, Listen::on("127.0.0.1:0").filter(make), bang);
}

fn filtered(pool: &Pool, listen: Listen, bang: Bang) {
    let server = Server::builder(pool).listen(listen);
    let server = server.serve(move |_: &Conn| Hooks::new("", bang)).unwrap();
    for _ in 0..2 {
        one_connection(&server.addresses()[0], "finished");
    }
    until("both have ended", || server.stats().closed.total() == 2);
    ends(&server);
    let _in_drop = panics(|| drop(server));
}

struct Packets(&'static str, Charge);

impl paceline::net::DatagramHandler for Packets {
    fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {
        if self.0 == "data" {
            self.1.go()
        }
    }

    fn error(&mut self, _: &UdpSocket, _: ErrorKind) {
        if self.0 == "error" {
            self.1.go()
        }
    }

    fn close(&mut self, _: &UdpSocket, _: Reason) {
        if self.0 == "close" {
            self.1.go()
        }
    }
}

fn datagrams(pool: &Pool, bang: Bang, place: &'static str) {
    let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let builder = UdpSocket::builder(pool).bind("127.0.0.1:0");
    let builder = builder.connect(peer.local_addr().unwrap().to_string());
    let socket = builder.serve(Packets(place, bang.charge())).unwrap();
    match place {
        "data" => drop(peer.send_to(b"!", socket.address()).unwrap()),
        "error" => {
            drop(peer);
            socket.send(b"!").unwrap();
        }
        _ => socket.close().unwrap(),
    }
    socket.wait().unwrap();
    // One that the end of its pool closes.
    let pool = Pool::builder().threads(1).build().unwrap();
    let builder = UdpSocket::builder(&pool).bind("127.0.0.1:0");
    let socket = builder.serve(Packets(place, bang.charge())).unwrap();
    assert!(pool.shutdown(Duration::ZERO).stuck.is_empty());
    let _ended = socket.wait();
    assert!(pool.audit().balances());
}

struct Odd(Bang);

impl ToAddress for Odd {
    fn to_address(&self) -> paceline::Result<Address> {
        self.0.go()
    }
}

/// Takes a body.
struct Taker {
    place: &'static str,
    charge: Charge,
    response: Option<Response>,
}

impl RequestBody for Taker {
    fn is_wanted(&self) -> bool {
        if self.place == "is_wanted" {
            self.charge.go()
        }
        true
    }

    fn data(&mut self, bytes: &[u8]) -> usize {
        if self.place == "data" {
            self.charge.go()
        }
        bytes.len()
    }

    fn end(mut self: Box<Self>) {
        let _ = self.response.take().unwrap().text("whole");
        if self.place == "end" {
            self.charge.go()
        }
    }
}

fn body(pool: &Pool, bang: Bang, place: &'static str) {
    let route = move |_: &Request<'_>, response: Response| {
        // `end` takes it along: its own panic drops it.
        Taker { place, charge: bang.charge_once(), response: Some(response) }
    };
    http(pool, |builder| builder.route_streaming("PUT", "/", route), PUT);
}

/// Asks twice, the second time for what goes well, and reads to the end.
fn http(pool: &Pool, route: impl FnOnce(HttpBuilder) -> HttpBuilder, request: &str) {
    let fine = |_: &Request<'_>, response: Response| response.text("fine");
    let builder = route(Http::builder(pool).listen("127.0.0.1:0")).route("GET", "/fine", fine);
    let http = builder.serve().unwrap();
    let Address::Tcp(address) = http.addresses()[0].clone() else { unreachable!("it is TCP") };
    for request in [request, "GET /fine HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"] {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let _ = client.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer);
        if request.contains("fine") {
            read.unwrap();
            assert!(answer.ends_with(b"fine"), "{}", String::from_utf8_lossy(&answer));
        }
    }
    http.drain(LONG);
    let _ended = http.wait();
    ends(http.server());
    let _in_drop = panics(|| drop(http));
}
