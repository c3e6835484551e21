//! Clients, handlers and servers for the tests.

use crate::common::{Count, LONG, PATIENCE};
use paceline::Pool;
use paceline::net::{
    Address, Conn, ConnHandler, ConnRef, Reason, Server, ServerBuilder, ServerStats, ToAddress,
};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const TICK: Duration = Duration::from_millis(50);

/// The kinds of stream that everything is tested over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tcp,
    Tcp6,
    Unix,
    Abstract,
}

pub const KINDS: [Kind; 4] = [Kind::Tcp, Kind::Tcp6, Kind::Unix, Kind::Abstract];

/// A name that nobody else uses.
pub fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("paceline-net-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst))
}

impl Kind {
    pub fn address(self) -> Address {
        match self {
            Kind::Tcp => "127.0.0.1:0".to_address().unwrap(),
            Kind::Tcp6 => "[::1]:0".to_address().unwrap(),
            Kind::Unix => Address::Unix(std::env::temp_dir().join(unique())),
            Kind::Abstract => Address::Abstract(unique().into_bytes()),
        }
    }
}

pub fn pool(threads: usize) -> Pool {
    Pool::builder().threads(threads).build().unwrap()
}

/// A blocking client with a time-out, so that no test hangs in a read.
pub struct Client(pub Socket);

pub fn kernels(address: &Address) -> (Domain, SockAddr) {
    match address {
        Address::Tcp(tcp) => (Domain::for_address(*tcp), (*tcp).into()),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path).unwrap()),
        Address::Abstract(name) => {
            let path = [b"\0", name.as_slice()].concat();
            (Domain::UNIX, SockAddr::unix(String::from_utf8(path).unwrap()).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

impl Client {
    pub fn connect(address: &Address) -> Client {
        Self::try_connect(address).unwrap()
    }

    pub fn try_connect(address: &Address) -> io::Result<Client> {
        Self::with_buffers(address, None)
    }

    /// Buffers as small as the kernel allows, if asked for.
    pub fn with_buffers(address: &Address, bytes: Option<usize>) -> io::Result<Client> {
        let client = Self::unconnected(address)?;
        if let Some(bytes) = bytes {
            client.0.set_recv_buffer_size(bytes)?;
            client.0.set_send_buffer_size(bytes)?;
        }
        client.reach(address)?;
        Ok(client)
    }

    /// The socket only.
    pub fn unconnected(address: &Address) -> io::Result<Client> {
        Socket::new(kernels(address).0, Type::STREAM, None).map(Client)
    }

    /// Connects what is not connected yet.
    pub fn reach(&self, address: &Address) -> io::Result<()> {
        match self.0.connect(&kernels(address).1) {
            // The peer was faster than this thread; whoever reads is told the same.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            connected => connected?,
        }
        self.0.set_read_timeout(Some(PATIENCE / 2))?;
        self.0.set_write_timeout(Some(PATIENCE / 2))
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    #[track_caller]
    pub fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let mut got = vec![0; bytes.as_ref().len()];
        self.0.read_exact(&mut got).unwrap();
        assert!(got == bytes.as_ref(), "{} bytes differ", got.len());
    }

    /// Sends, and gets the same back: false if the peer has ended.
    pub fn try_echo(&mut self, bytes: &str) -> bool {
        self.0.write_all(bytes.as_bytes()).is_ok() && self.try_expect(bytes)
    }

    /// False if the peer has ended before.
    #[track_caller]
    pub fn try_expect(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let mut got = vec![0; bytes.as_ref().len()];
        let came = self.0.read_exact(&mut got).is_ok();
        assert!(!came || got == bytes.as_ref(), "{} bytes differ", got.len());
        came
    }

    /// Everything up to the end.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Everything up to the end, which may be a reset.
    pub fn rest_or_reset(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let reset = match self.0.read_to_end(&mut rest) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no end came"),
            Err(_) => true,
        };
        (rest, reset)
    }

    pub fn finish(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    /// Ends with a reset, if it is TCP.
    pub fn reset(self) {
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }
}

/// A listener of the test's own, which no server accepts from.
pub struct Listening {
    pub socket: Socket,
    pub address: Address,
}

impl Listening {
    pub fn at(kind: Kind) -> Listening {
        let address = kind.address();
        let socket = Client::unconnected(&address).unwrap().0;
        socket.bind(&kernels(&address).1).unwrap();
        socket.listen(128).unwrap();
        let tcp = socket.local_addr().unwrap().as_socket();
        Listening { socket, address: tcp.map_or(address, Address::Tcp) }
    }

    pub fn accept(&self) -> Client {
        let client = Client(self.socket.accept().unwrap().0);
        client.0.set_read_timeout(Some(PATIENCE / 2)).unwrap();
        client.0.set_write_timeout(Some(PATIENCE / 2)).unwrap();
        client
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What the handlers of one test have seen.
#[derive(Clone, Default)]
pub struct Log {
    pub opened: Count,
    pub closed: Count,
    pub notified: Count,
    pub reasons: Arc<Mutex<Vec<Reason>>>,
    pub conns: Arc<Mutex<Vec<ConnRef>>>,
}

impl Log {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self, conn: &Conn) {
        self.conns.lock().unwrap().push(conn.handle());
        self.opened.up();
    }

    pub fn close(&self, reason: Reason) {
        self.reasons.lock().unwrap().push(reason);
        self.closed.up();
    }

    #[track_caller]
    pub fn conn(&self, index: usize) -> ConnRef {
        self.opened.until(index as u64 + 1);
        self.conns.lock().unwrap()[index].clone()
    }

    /// Waits until a run of the connection has ended that had not begun before: what was to happen
    /// without anything new from outside has happened. For tests of one connection.
    #[track_caller]
    pub fn settle(&self, conn: &ConnRef) {
        // The second one's hook comes after the first one's run.
        for _ in 0..2 {
            let before = self.notified.get();
            conn.notify().unwrap();
            self.notified.until(before + 1);
        }
    }

    #[track_caller]
    pub fn reason(&self, index: usize) -> Reason {
        self.closed.until(index as u64 + 1);
        self.reasons.lock().unwrap()[index]
    }
}

/// Sends back what comes, and keeps the log.
pub struct Echo(pub Log);

impl ConnHandler for Echo {
    fn open(&mut self, conn: &Conn) -> paceline::net::Accept {
        self.0.open(conn);
        paceline::net::Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        // It fails when the peer is gone: then reading says so, too.
        let _ = conn.write(bytes);
        bytes.len()
    }

    fn notified(&mut self, _: &Conn) {
        self.0.notified.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

/// A handler of a closure for `data`, which keeps the log.
pub struct OnData<F>(pub Log, pub F);

impl<F> ConnHandler for OnData<F>
where
    F: FnMut(&Conn, &[u8]) -> usize + Send + 'static,
{
    fn open(&mut self, conn: &Conn) -> paceline::net::Accept {
        self.0.open(conn);
        paceline::net::Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        (self.1)(conn, bytes)
    }

    fn notified(&mut self, _: &Conn) {
        self.0.notified.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

/// A server of echoes with these settings.
pub fn echo(
    pool: &Pool,
    kind: Kind,
    settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> (Server, Log) {
    let log = Log::new();
    let inner = log.clone();
    let builder = settings(Server::builder(pool).listen(kind.address()));
    (builder.serve(move |_| Echo(inner.clone())).unwrap(), log)
}

/// Drains, and the counters must balance with nothing left.
#[track_caller]
pub fn end(server: &Server) -> ServerStats {
    let report = server.drain(LONG);
    assert!(report.drained, "{report:?}");
    assert!(report.stats.balances(), "{report:?}");
    assert_eq!((report.stats.open, report.stats.in_work), (0, 0), "{report:?}");
    report.stats
}

/// Bytes that tell their place.
pub fn pattern(length: usize) -> Vec<u8> {
    let mut random = crate::common::Random::new(length as u64);
    (0..length).map(|_| random.next() as u8).collect()
}
