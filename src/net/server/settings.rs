//! What a server is started with: its listeners, and the settings of each.
//!
//! Every setting of a connection is its listener's. A setting of a [`ServerBuilder`] holds for every
//! listener that does not have its own, and for outgoing connections, unless [`Outgoing`] says otherwise.
//!
//! ```text
//!   builder's ──► listeners' defaults ──► a Listen's changes   = the limits of that listener
//!      └────────► an Outgoing's changes                        = the limits of outgoing connections
//! ```

use super::Server;
use super::listener::Opened;
use crate::error::{Error, Result};
use crate::net::address::{Address, ToAddress};
use crate::net::bounds::nanos;
use crate::net::stream::conn::{Conn, ConnHandler};
use crate::net::stream::filter::Filter;
use crate::net::stream::limits::{Limits, Marks};
use crate::net::stream::origin::Origin;
use crate::net::stream::service::{ExhaustedHook, Factory, FilterFactory};
use crate::net::stream::socket::{self, OwnFile};
use crate::pool::Pool;
use core::fmt;
use core::time::Duration;
use socket2::Socket;
use std::io;
use std::os::fd::OwnedFd;

/// Settings of a server; see [`Server::builder`]. Those that a [`Listen`] has too are for listeners
/// that do not have their own, in whatever order they are set, and for outgoing connections, which may
/// have [their own](Self::outgoing), too.
#[must_use]
pub struct ServerBuilder {
    pub(crate) pool: Pool,
    pub(crate) limits: Limits,
    listeners: Vec<Listen>,
    outgoing: Vec<Change>,
    protocol: Option<Protocol>,
    on_exhausted: Option<Box<ExhaustedHook>>,
}

/// A place to listen at, with settings of its own where the server's are not right.
///
/// ```
/// # use paceline::net::{Listen, Server};
/// # use std::time::Duration;
/// # let pool = paceline::Pool::new()?;
/// let builder = Server::builder(&pool)
///     .idle_timeout(Duration::from_secs(60))
///     .listen("127.0.0.1:0")
///     .listen(Listen::on("unix:@admin").max_connections(2).refusal("two are here already\n"));
/// # Ok::<(), paceline::Error>(())
/// ```
#[must_use]
pub struct Listen {
    source: Source,
    changes: Vec<Change>,
    filter: Option<FilterFactory>,
}

/// Settings of outgoing connections where the server's, which are those of its listeners, are not right.
///
/// ```
/// # use paceline::net::{Outgoing, Server};
/// # let pool = paceline::Pool::new()?;
/// let builder = Server::builder(&pool)
///     .listen("127.0.0.1:0")
///     .max_connections(1000)
///     .outgoing(Outgoing::new().max_connections(10));
/// # Ok::<(), paceline::Error>(())
/// ```
#[must_use]
#[derive(Default)]
pub struct Outgoing {
    changes: Vec<Change>,
}

/// What a protocol on the stream server has to say about the limits of listeners.
pub(crate) struct Protocol {
    /// What they have where nothing else is set, in place of the server's.
    pub(crate) defaults: Limits,
    /// An error that names the setting which cannot be so.
    pub(crate) check: Box<Check>,
}

enum Source {
    Bind(Result<Address>),
    Inherited(OwnedFd),
}

/// One setting of a listener, or of outgoing connections.
type Change = Box<dyn FnOnce(&mut Limits) + Send>;

/// An error for limits that a listener cannot have.
type Check = dyn Fn(&Limits) -> Result<()>;

impl Server {
    /// Settings to start a server with.
    pub fn builder(pool: &Pool) -> ServerBuilder {
        ServerBuilder::new(pool)
    }
}

impl ServerBuilder {
    /// Whether it has no place to listen at.
    #[cfg(feature = "http")]
    pub(crate) fn listens_nowhere(&self) -> bool {
        self.listeners.is_empty()
    }

    fn new(pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            limits: Limits::default(),
            listeners: Vec::new(),
            outgoing: Vec::new(),
            protocol: None,
            on_exhausted: None,
        }
    }

    /// Listens here, too: an address, or a [`Listen`] with settings of its own. Port 0 is a free port:
    /// [`Server::addresses`] tells which. The file of a Unix socket is made, replaced if nobody
    /// listens there any more (which is not for two servers to try at the same moment), and removed at
    /// the end, if it is still this one.
    pub fn listen(mut self, place: impl Into<Listen>) -> Self {
        self.listeners.push(place.into());
        self
    }

    /// Accepts from a socket that listens already: [`Listen::inherited`].
    pub fn listen_on(self, socket: impl Into<OwnedFd>) -> Self {
        self.listen(Listen::inherited(socket))
    }

    /// Outgoing connections have these settings, in whatever order they are set, where they would have
    /// the server's. Set twice, both hold, and of one setting the later.
    pub fn outgoing(mut self, settings: Outgoing) -> Self {
        self.outgoing.extend(settings.changes);
        self
    }

    /// An outgoing connection must be made within this, at least 1 ms. Default 10 s.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.limits.connect = nanos(time);
        self
    }

    /// Called once each time that accepting pauses because descriptors or memory have run out, or the
    /// socket accepts no more (whoever shares it may have shut it down), with what to log. It is tried
    /// again every 50 ms.
    pub fn on_exhausted(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_exhausted = Some(Box::new(hook));
        self
    }

    /// Starts. The factory makes a handler for each connection, on the thread that runs it first. A
    /// server without listeners only connects.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and its bounds. [`Error::Os`] names the
    /// address that could not be listened on, and the reason. [`Error::Full`], [`Error::ShutDown`],
    /// [`Error::Forked`] as for any handle. If one listener fails, none is left.
    pub fn serve<H, F>(self, factory: F) -> Result<Server>
    where
        H: ConnHandler,
        F: Fn(&Conn) -> H + Send + Sync + 'static,
    {
        self.start(Box::new(move |conn| Box::new(factory(conn))))
    }

    fn start(self, factory: Box<Factory>) -> Result<Server> {
        let Self { pool, limits, listeners, outgoing, protocol, on_exhausted } = self;
        limits.check()?;
        let outgoing = changed(&limits, outgoing)?;
        let Protocol { defaults, check } = protocol.unwrap_or_else(|| Protocol::plain(limits));
        // Before an address is bound in vain.
        pool.shared().check_open()?;
        let open = |listener: Listen| listener.open(&defaults, &*check);
        let opened: Vec<_> = listeners.into_iter().map(open).collect::<Result<_>>()?;
        let outgoing = Origin::new(outgoing, Address::Unnamed);
        Server::start(&pool, opened, outgoing, factory, on_exhausted)
    }

    /// For a protocol on top.
    #[cfg(feature = "http")]
    pub(crate) fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut Limits) + Send + 'static) -> Self {
        change(&mut self.limits);
        self
    }
}

impl Protocol {
    /// None.
    fn plain(defaults: Limits) -> Self {
        Self { defaults, check: Box::new(|_| Ok(())) }
    }
}

impl Listen {
    /// At this address; see [`ServerBuilder::listen`].
    pub fn on(address: impl ToAddress) -> Self {
        Self { source: Source::Bind(Address::of(address)), changes: Vec::new(), filter: None }
    }

    /// A socket that listens already, opened by a parent or a supervisor. What is settled when a
    /// socket is opened stays as it is: its backlog, `v6_only`, and `reuse_port`.
    pub fn inherited(socket: impl Into<OwnedFd>) -> Self {
        Self { source: Source::Inherited(socket.into()), changes: Vec::new(), filter: None }
    }

    /// Puts a [`Filter`] between the socket of each connection and its handler, made before the handler.
    /// Connections beyond the maximum are closed without the refusal, which nobody would turn.
    pub fn filter<F: Filter>(self, make: impl Fn(&Conn) -> F + Send + Sync + 'static) -> Self {
        let filter = Some(FilterFactory::new(make));
        Self { filter, ..self }.set(|limits| limits.is_filtered = true)
    }

    fn set(mut self, change: impl FnOnce(&mut Limits) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    fn open(self, defaults: &Limits, check: &Check) -> Result<Opened> {
        let limits = changed(defaults, self.changes)?;
        check(&limits)?;
        let (socket, file, bound) = match self.source {
            Source::Bind(address) => bind(address?, &limits)?,
            Source::Inherited(fd) => adopt(fd)?,
        };
        Ok(Opened { socket, file, origin: Origin::new(limits, bound), filter: self.filter })
    }
}

impl Outgoing {
    /// Nothing but the server's.
    pub fn new() -> Self {
        Self::default()
    }

    fn set(mut self, change: impl FnOnce(&mut Limits) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }
}

fn changed(defaults: &Limits, changes: Vec<Change>) -> Result<Limits> {
    let mut limits = defaults.clone();
    changes.into_iter().for_each(|change| change(&mut limits));
    limits.check()?;
    Ok(limits)
}

fn bind(address: Address, limits: &Limits) -> Result<(Socket, Option<OwnFile>, Address)> {
    let failed = |error: io::Error| Error::os(format!("listen on {address}"), error);
    let (socket, file) = socket::listen(&address, limits).map_err(failed)?;
    let bound = socket::bound_to(&socket).map_err(failed)?;
    Ok((socket, file, bound))
}

fn adopt(fd: OwnedFd) -> Result<(Socket, Option<OwnFile>, Address)> {
    let failed = |error| Error::os("listen on an inherited socket", error);
    let (socket, address) = socket::adopt(fd).map_err(failed)?;
    Ok((socket, None, address))
}

impl<A: ToAddress> From<A> for Listen {
    fn from(address: A) -> Self {
        Self::on(address)
    }
}

/// The settings of connections, that a server has for all of them, and others for their own.
macro_rules! settings_of_connections {
    ($($settings:ty),*) => { $(impl $settings {
        /// Connections at once, 1 to 2^24. Each listener counts its own, and sends more the refusal and
        /// closes them; the server counts its outgoing ones, of which more are
        /// [`Error::Full`]. Default 2^20.
        pub fn max_connections(self, connections: usize) -> Self {
            self.set(move |limits| limits.max_connections = connections)
        }

        /// Admitted requests at once over all connections of a listener, at least 1; see
        /// [`Conn::admit`]. Default: no limit.
        pub fn max_requests(self, requests: usize) -> Self {
            self.set(move |limits| limits.max_requests = requests)
        }

        /// What a request beyond the maximum is answered with, up to 64 KiB. Default: nothing.
        pub fn busy(self, message: impl Into<Vec<u8>>) -> Self {
            let message = message.into();
            self.set(move |limits| limits.busy = message)
        }

        /// Bytes that a handler may leave unconsumed, at least 1. With more its connection is closed.
        /// Default 1 MiB. A handler sees up to 64 KiB beyond it once.
        pub fn max_unconsumed(self, bytes: usize) -> Self {
            self.set(move |limits| limits.max_unconsumed = bytes)
        }

        /// Marks of the output queue, in bytes: `low` < `high` ≤ `max`. Above `high` reading of that
        /// connection pauses until it has fallen to `low`; a write that would exceed `max` is refused.
        /// Default 64 KiB, 256 KiB, 16 MiB.
        pub fn output_marks(self, low: usize, high: usize, max: usize) -> Self {
            self.set(move |limits| limits.marks = Marks { low, high, max })
        }

        /// A connection on which nothing was sent or received for so long, at least 1 ms, and with no
        /// request in work, has timed out; `timeout` is called up to 10 ms late. If only other threads write to it,
        /// it may take twice as long. Default: never.
        ///
        /// A handler that answers later has to [admit](Conn::admit) the request: otherwise this time runs while
        /// the answer is worked on, and the connection may be closed before the answer is written.
        pub fn idle_timeout(self, time: Duration) -> Self {
            self.set(move |limits| limits.idle = nanos(time))
        }

        /// The rest of a message of which a part was not consumed must come within this, at least
        /// 1 ms (`timeout` is called up to 10 ms late), however much of it comes, and whoever notifies the connection,
        /// meanwhile. After a pause it has all of its time again. Default: never.
        pub fn read_timeout(self, time: Duration) -> Self {
            self.set(move |limits| limits.read = nanos(time))
        }

        /// A peer that takes nothing of what is queued for it for so long, at least 1 ms, has stalled.
        /// Default 30 s.
        pub fn stall_timeout(self, time: Duration) -> Self {
            self.set(move |limits| limits.stall = nanos(time))
        }

        /// How long a peer that has been sent the end may take to end too; what it sends meanwhile is
        /// dropped. Without it, closing can destroy what was just sent. Default 2 s, 0: none.
        pub fn linger(self, time: Duration) -> Self {
            self.set(move |limits| limits.linger = nanos(time))
        }

        /// What happens when the peer has finished: it sends no more, and may still read. By default such a
        /// connection is closed by itself, when its [admitted](Conn::admit) requests have ended and everything
        /// is sent. With `true` it stays open until the handler closes it: for protocols in which one
        /// direction ends before the other, as with a proxy. See [`ConnHandler::finished`].
        pub fn allow_half_open(self, on: bool) -> Self {
            self.set(move |limits| limits.allow_half_open = on)
        }

        /// TCP sends small writes at once. Default: yes.
        pub fn no_delay(self, on: bool) -> Self {
            self.set(move |limits| limits.no_delay = on)
        }

        /// TCP asks silent peers whether they are there, first after this time: 1 s to 32,767 s, in
        /// whole seconds, to which it is rounded up. Default: no.
        pub fn keep_alive(self, time: Duration) -> Self {
            self.set(move |limits| limits.keep_alive = Some(time))
        }

        /// Bytes that the kernel buffers for sending (it doubles them). Default: the system's.
        pub fn send_buffer(self, bytes: usize) -> Self {
            self.set(move |limits| limits.send_buffer = Some(bytes))
        }

        /// Bytes that the kernel buffers for receiving (it doubles them). Default: the system's.
        pub fn receive_buffer(self, bytes: usize) -> Self {
            self.set(move |limits| limits.receive_buffer = Some(bytes))
        }
    })* };
}

settings_of_connections!(ServerBuilder, Listen, Outgoing);

/// The settings that are about listening.
macro_rules! settings_of_listeners {
    ($($settings:ty),*) => { $(impl $settings {
        /// What connections beyond the maximum are sent, up to 64 KiB. Default: nothing.
        pub fn refusal(self, message: impl Into<Vec<u8>>) -> Self {
            let message = message.into();
            self.set(move |limits| limits.refusal = message)
        }

        /// Connections that may wait to be accepted, 1 to 2^20; the kernel has a limit of its own
        /// (`net.core.somaxconn`). Default 4096.
        pub fn backlog(self, connections: i32) -> Self {
            self.set(move |limits| limits.backlog = connections)
        }

        /// IPv6 listeners take no IPv4. Default: `[::]` takes both.
        pub fn v6_only(self, on: bool) -> Self {
            self.set(move |limits| limits.v6_only = on)
        }

        /// Several processes may listen on the same port; the kernel deals connections out.
        /// Default: no.
        pub fn reuse_port(self, on: bool) -> Self {
            self.set(move |limits| limits.reuse_port = on)
        }

        /// Mode of the file of a Unix socket, up to 0o777; who connects needs to be allowed to write.
        /// Default: 0o777 less the process's umask.
        pub fn socket_mode(self, mode: u32) -> Self {
            self.set(move |limits| limits.socket_mode = Some(mode))
        }
    })* };
}

settings_of_listeners!(ServerBuilder, Listen);

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.source {
            Source::Bind(address) => format!("{address:?}"),
            Source::Inherited(fd) => format!("{fd:?}"),
        };
        f.debug_struct("Listen").field("place", &place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("settings", &self.changes.len()).finish()
    }
}
