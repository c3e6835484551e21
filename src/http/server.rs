//! The HTTP server: its settings, its start, and its end.

use super::connection::handler::HttpHandler;
use super::exchange::request::{Request, RequestBody};
use super::exchange::response::Response;
use super::service::HttpService;
use super::service::limits::{HttpLimits, of_outgoing};
use super::service::middleware::{Middleware, Next};
use super::service::returned::{HandlerResult, conclude};
use super::service::routes::{Route, Routes, WholeHandler};
use super::telemetry::access_log::AccessLog;
use super::telemetry::counters::Counters;
use super::telemetry::stats::HttpStats;
use super::telemetry::{EndHook, RequestEnd, Telemetry};
use crate::error::{Error, Result};
use crate::net::server::settings::Protocol;
use crate::net::stream::figures;
use crate::net::stream::limits::{Limits, UNSET_SIZE, UNSET_TIME};
use crate::net::{Address, ConnId, Listen, Server, ServerBuilder};
use crate::pool::Pool;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// What connections beyond the maximum are sent.
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\
                       Connection: close\r\nRetry-After: 1\r\n\r\n";

/// Settings of an HTTP server; see [`Http::builder`].
///
/// ```
/// use paceline::{Pool, http::{Http, Next, Request, RequestEnd, Response}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .max_body(1 << 20)
///     .head_timeout(Duration::from_secs(5))
///     .around(|request: &Request<'_>, response: Response, next: Next<'_>| {
///         next.run(request, response.header("Server", "example"));
///     })
///     .on_end(|end: &RequestEnd<'_>| println!("{} {} {:?}", end.method, end.target, end.status))
///     .route("GET", "/", |_: &Request<'_>, response: Response| response.text("root\n"))
///     .fallback(|_: &Request<'_>, response: Response| response.status(404).text("no such page\n"))
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct HttpBuilder {
    server: ServerBuilder,
    limits: HttpLimits,
    routes: Vec<(String, String, Route)>,
    middleware: Vec<Box<Middleware>>,
    fallback: Option<Box<WholeHandler>>,
    on_end: Option<Box<EndHook>>,
    access_log: Option<AccessLog>,
}

impl HttpBuilder {
    /// Listens here, too: an address, or a [`Listen`] with settings of its own, of which
    ///
    /// - `idle_timeout` is its [`keep_alive_timeout`](Self::keep_alive_timeout), and `read_timeout` its
    ///   [`head_timeout`](Self::head_timeout);
    /// - `max_requests` bounds requests in work on its connections, beyond the [`max_requests`](Self::max_requests)
    ///   of all; what other protocols [admit](crate::net::Conn::admit) on them after an upgrade counts, too;
    /// - `max_unconsumed` is [`max_head`](Self::max_head) + 128 KiB if it is not set, which is also the
    ///   least that it may be;
    /// - `busy` is an error, since a request beyond the maximum is answered with 503.
    pub fn listen(mut self, place: impl Into<Listen>) -> Self {
        self.server = self.server.listen(place);
        self
    }

    /// Settings of the stream server beneath, under their names there: defaults of its listeners, which
    /// are then as described at [`listen`](Self::listen), and of outgoing connections. To set an
    /// `idle_timeout` or a `read_timeout` is an error: they are called
    /// [`keep_alive_timeout`](Self::keep_alive_timeout) and [`head_timeout`](Self::head_timeout) here, and
    /// are not for outgoing connections, which have [their own](ServerBuilder::outgoing).
    pub fn server(mut self, settings: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        self.server = settings(self.server);
        self
    }

    /// Requests of this method whose path matches this pattern go to this handler, with their whole
    /// body. A pattern is a path with parameters: `/hello/{name}` for one segment, `/files/{*path}` for
    /// all that follows. It is matched with the path as it was sent; handlers get parameters
    /// [decoded](Request::param).
    ///
    /// Each method is routed by itself: of the patterns of a method the closest one is taken, whatever other
    /// methods have there. GET serves HEAD too, where HEAD has no route of its own. Without a route the
    /// answer is 405 if other methods have one for the path, and else 404.
    ///
    /// OPTIONS without a route is answered with 204 and the methods that the path has routes for (`Allow`).
    /// The pattern `*` with OPTIONS is for the whole server (`OPTIONS *`), which without such a route
    /// names the methods of all routes. CONNECT has no routes: it is answered with 501.
    ///
    /// The handler runs on a thread of the pool, for many connections at once. It returns nothing, or a `Result`: that of
    /// [`Response::send`], as a rule. If it returns `Err` without having answered, as by `?`, the client gets a 500, and
    /// the log has the error's text; see [`HandlerResult`].
    pub fn route<R: HandlerResult>(
        mut self,
        method: &str,
        pattern: &str,
        handler: impl Fn(&Request<'_>, Response) -> R + Send + Sync + 'static,
    ) -> Self {
        let handler = Box::new(move |request: &Request<'_>, response: Response| {
            conclude(handler(request, response));
        });
        self.routes.push((method.into(), pattern.into(), Route::Whole(handler)));
        self
    }

    /// The same for requests whose body is taken as it comes, by what the factory makes for each when
    /// its head is there. The factory may answer at once, without the body, and make None: what
    /// comes of the body is then dropped, up to `max_body`.
    ///
    /// A peer that waits for `100 Continue` (RFC 9110, 10.1.1) is told so when the factory has returned
    /// what takes the body, or before the head of an answer that is begun by [`Response::stream`]. It is
    /// not told if the answer is one of [`Response::send`] and comes from the factory, or later where that
    /// has made None: then it is the final one, and the connection closes behind it.
    pub fn route_streaming<B: RequestBody>(
        mut self,
        method: &str,
        pattern: &str,
        factory: impl Fn(&Request<'_>, Response) -> B + Send + Sync + 'static,
    ) -> Self {
        let factory = Box::new(move |request: &Request<'_>, response: Response| {
            let body = factory(request, response);
            let is_wanted = body.is_wanted();
            (Box::new(body) as Box<dyn RequestBody>, is_wanted)
        });
        self.routes.push((method.into(), pattern.into(), Route::Streaming(factory)));
        self
    }

    /// Calls this function around the handler of every request that has a whole head: of all routes, whichever was
    /// set first, of requests that no route takes (404, 405), and of what the library answers to OPTIONS.
    /// Several are called in the order in which they were set, each around all that follow.
    ///
    /// The function goes on by [`Next::run`], with the response that it was given, to which it may have added
    /// headers: they are sent with every answer, errors of the server included. `run` returns when the handler
    /// has, and says with which status the request was answered; a panic of the handler is a 500 there, and is
    /// counted behind the middleware. Or it answers by itself and does not go on: the handler is not called,
    /// and a body that is streamed is dropped.
    ///
    /// [`Request::pattern`] says which route it is. A request that is refused for its head, its body's length or
    /// for want of room (400, 408, 413, 414, 417, 431, 501, 503, 505) is not seen here, but by
    /// [`on_end`](Self::on_end).
    ///
    /// ```no_run
    /// # use paceline::http::{Http, Next, Request, Response};
    /// # fn main() -> paceline::Result<()> {
    /// # let pool = paceline::Pool::new()?;
    /// let server = Http::builder(&pool)
    ///     .listen("127.0.0.1:8080")
    ///     .around(|request: &Request, response: Response, next: Next| {
    ///         if request.header("authorization").is_none() {
    ///             // If it fails, the peer is gone.
    ///             let _ = response.status(401).header("WWW-Authenticate", "Basic").error();
    ///             return;
    ///         }
    ///         next.run(request, response.header("Access-Control-Allow-Origin", "*"));
    ///     })
    ///     .route("GET", "/", |_: &Request, response: Response| response.text("hello"))
    ///     .serve()?;
    /// # Ok(()) }
    /// ```
    ///
    /// It runs on a thread of the pool, for many connections at once. One that panics is counted as a handler is
    /// ([`HttpStats::panics`]).
    pub fn around(
        mut self,
        middleware: impl Fn(&Request<'_>, Response, Next<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.middleware.push(Box::new(middleware));
        self
    }

    /// Requests that no route takes go to this handler, without their body, which is dropped. The response has the
    /// status that they would get otherwise, 404, 405 (with `Allow`), 501, or 400 for a parameter that cannot be
    /// decoded: [`Response::error`] answers as the server does, and [`Response::status`] sets another status. The last
    /// fallback that was set is the one.
    pub fn fallback<R: HandlerResult>(
        mut self,
        handler: impl Fn(&Request<'_>, Response) -> R + Send + Sync + 'static,
    ) -> Self {
        self.fallback =
            Some(Box::new(move |request, response| conclude(handler(request, response))));
        self
    }

    /// Calls this function at the end of each request, once: answered by a handler or refused by the server
    /// (400, 404, 408, 413, 431 and others), or lost with its connection. An access log is [`access_log`](Self::access_log).
    /// Connections that are turned away without having sent a request are none.
    ///
    /// It runs on a thread of the pool, in the connection's run, which waits for it. One that panics is counted
    /// ([`HttpStats::panics`]), and changes nothing else. With it, all requests are counted as
    /// [in work](HttpStats::in_work) from their beginning. The last function that was set is the one.
    pub fn on_end(mut self, hook: impl Fn(&RequestEnd<'_>) + Send + Sync + 'static) -> Self {
        self.on_end = Some(Box::new(hook));
        self
    }

    /// Writes a line for each request at its end, as [`on_end`](Self::on_end) is called: see [`AccessLog`]. With it, all
    /// requests are counted as [in work](HttpStats::in_work) from their beginning. Default: no access log. To serve
    /// without a log to write to is an error.
    pub fn access_log(mut self, log: AccessLog) -> Self {
        self.access_log = Some(log);
        self
    }

    /// Bytes of a request's head, 64 to 1 MiB; beyond: 431. Default 16 KiB.
    pub fn max_head(mut self, bytes: usize) -> Self {
        self.limits.head.bytes = bytes;
        self
    }

    /// Bytes of a request's target, 1 to 1 MiB; beyond: 414. Default 8 KiB.
    pub fn max_target(mut self, bytes: usize) -> Self {
        self.limits.head.target = bytes;
        self
    }

    /// Headers of a request, 1 to 256; beyond: 431. Default 100.
    pub fn max_headers(mut self, headers: usize) -> Self {
        self.limits.head.fields = headers;
        self
    }

    /// A head must be whole within this from its first byte, at least 1 ms; beyond: 408. Default 10 s.
    pub fn head_timeout(mut self, time: Duration) -> Self {
        self.limits.head_time = time;
        self
    }

    /// Bytes of a body that is not streamed, up to 2^40; beyond: 413. Default 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.limits.max_body = bytes;
        self
    }

    /// A body must come at so many bytes per second, taken over each
    /// [`body_timeout`](Self::body_timeout), while it is waited for; below: 408. Default 500, 0: any.
    pub fn body_rate(mut self, bytes_per_second: u64) -> Self {
        self.limits.body_rate = bytes_per_second;
        self
    }

    /// How often the rate of a body is looked at, at least 1 ms. Default 10 s.
    pub fn body_timeout(mut self, time: Duration) -> Self {
        self.limits.body_time = time;
        self
    }

    /// Requests on one connection, at least 1; the last is answered with `Connection: close`. Default:
    /// no limit.
    pub fn keep_alive_requests(mut self, requests: u32) -> Self {
        self.limits.keep_alive_requests = requests;
        self
    }

    /// A connection with no request in work on which nothing came for so long, at least 1 ms, is
    /// closed. Default 60 s.
    pub fn keep_alive_timeout(mut self, time: Duration) -> Self {
        self.limits.keep_alive_time = time;
        self
    }

    /// Requests in work at once over all connections, at least 1; beyond: 503. Default: no limit. A
    /// listener may have a lower one for its own.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.limits.max_requests = requests;
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) names the setting, its value and its bounds, or the route that
    /// cannot be; also if there is no place to [`listen`](Self::listen) at;
    /// otherwise as [`ServerBuilder::serve`].
    pub fn serve(self) -> Result<Http> {
        let Self { server, limits, routes, middleware, fallback, on_end, access_log } = self;
        limits.check()?;
        let routes = Routes::new(routes, middleware, fallback)?;
        if server.listens_nowhere() {
            let allowed = "an address or more: an HTTP server without one gets no requests";
            return Err(Error::invalid("listen", "empty", allowed));
        }
        let defaults = limits.of_listeners(&server.limits)?;
        let pool = server.pool.clone();
        let log = server.pool.shared().log.clone();
        let access_log = access_log.map(|to| to.open(&log)).transpose()?;
        let telemetry = Telemetry { counters: Counters::default(), log, on_end, access_log };
        let service = Arc::new(HttpService::new(limits, routes, telemetry));
        let inner = Arc::clone(&service);
        let check = Box::new(move |limits: &Limits| inner.check_listener(limits));
        let inner = Arc::clone(&service);
        let server = server
            .with_protocol(Protocol { defaults, check })
            .set(|limits| *limits = of_outgoing(limits))
            .serve(move |conn| HttpHandler::new(&inner, conn))?;
        let _first = service.name.set(figures::name_of(server.addresses().first()));
        pool.shared().end.serve(Arc::<HttpService>::downgrade(&service) as _);
        Ok(Http { server, service })
    }
}

impl fmt::Debug for HttpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = f.debug_struct("HttpBuilder");
        builder.field("server", &self.server).field("limits", &self.limits);
        builder.finish_non_exhaustive()
    }
}

/// An HTTP/1.1 server on a pool. Clones are the same server; when the last one is dropped it stops, and
/// connections are cut off. [`drain`](Self::drain) first for an orderly end. All methods may be called
/// by any thread.
///
/// One request of a connection is in work at a time; what a client sends ahead waits, so answers come
/// in the order of the requests.
///
/// ```
/// use paceline::Pool;
/// use paceline::http::{Http, Request, Response};
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .route("GET", "/hello/{name}", |request: &Request, response: Response| {
///         response.text(format!("Hello, {}!\n", request.param("name").unwrap_or("you")))
///     })
///     .route("POST", "/echo", |request: &Request, response: Response| response.send(request.body()))
///     .serve()?;
/// println!("listening on {}", server.addresses()[0]);
/// # use std::io::{Read, Write};
/// # let mut client = std::net::TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
/// # client.write_all(b"GET /hello/you HTTP/1.0\r\n\r\n").unwrap();
/// # let mut answer = String::new();
/// # client.read_to_string(&mut answer).unwrap();
/// # assert!(answer.ends_with("\r\n\r\nHello, you!\n"), "{answer}");
/// # server.drain(std::time::Duration::from_secs(10));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Http {
    server: Server,
    service: Arc<HttpService>,
}

impl Http {
    /// Settings to start a server with.
    pub fn builder(pool: &Pool) -> HttpBuilder {
        HttpBuilder {
            server: Server::builder(pool).refusal(REFUSAL).set(|limits| {
                (limits.idle, limits.read) = (UNSET_TIME, UNSET_TIME);
                limits.max_unconsumed = UNSET_SIZE;
            }),
            limits: HttpLimits::default(),
            routes: Vec::new(),
            middleware: Vec::new(),
            fallback: None,
            on_end: None,
            access_log: None,
        }
    }

    /// Where it listens; see [`Server::addresses`].
    pub fn addresses(&self) -> &[Address] {
        self.server.addresses()
    }

    /// Stops accepting, answers what has arrived, and closes; see [`Server::drain`]. The last answer on
    /// each connection says `Connection: close`. True: everything ended within the time.
    pub fn drain(&self, time: Duration) -> bool {
        self.server.drain(time).drained
    }

    /// Waits until it has drained; see [`Server::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&self) -> Result<()> {
        self.server.wait()
    }

    /// The counts of the server's requests so far. They add up exactly while no request is being handled.
    pub fn stats(&self) -> HttpStats {
        self.service.stats(self.server.stats())
    }

    /// What has answered a request of this connection has failed after that: the connection closes when
    /// all that is queued was sent, and the failure is counted ([`HttpStats::panics`]). Before that, it is
    /// for the [`Response`] or [`Body`](super::Body) to [`fail`](Response::fail).
    ///
    /// # Errors
    /// [`Error::Stale`](crate::Error::Stale) if the connection has ended,
    /// [`Error::Forked`](crate::Error::Forked) in a forked child; then nothing is counted.
    pub fn fail(&self, conn: ConnId) -> Result<()> {
        let conn = self.server.conn(conn)?;
        self.service.telemetry.failed(conn.peer(), |_| {});
        conn.close()
    }

    /// The stream server beneath.
    pub fn server(&self) -> &Server {
        &self.server
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}
