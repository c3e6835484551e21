//! A webhook: what it is given is posted to a URL, as JSON, by a thread of its own.
//!
//! ```text
//!   post ──► queue (bounded) ──► thread ──POST──► 2xx: delivered
//!     └─ full: dropped              ▲  └────────► 408, 429, 5xx, no answer in time ─► tried again ─┐
//!                                   └──────────────────── after a delay ◄──────────────────────────┘
//! ```
//!
//! A request takes as long as somebody else's server likes. On the pool it would hold up handlers, so there is
//! one thread, which is made with the webhook, before there is anything to tell; none comes later. What it
//! cannot keep up with is dropped at once and counted, and so is what all attempts have failed at: whoever
//! posts never waits. Bodies go out one after the other, in order.

use crate::error::{Error, Result};
use crate::hub::{Hub, Message, Subscription};
use crate::log::{Component, Level, Logger};
use crate::pool::Pool;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::fork::ForkGuard;
use crate::sys::thread::without_signals;
use crate::time::{Backoff, Retry};
use core::fmt;
use core::time::Duration;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;
use ureq::http::Uri;
use ureq::{Agent, Proxy};

/// What is dropped by an answer is read up to here, so that its connection can be used again.
const MOST_READ: u64 = 64 << 10;

/// The longest time that a server may ask to wait, as others wait behind it.
const MOST_WAIT: Duration = Duration::from_secs(60 * 60);

/// Settings of a [`Webhook`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug)]
pub struct WebhookBuilder {
    url: String,
    headers: Vec<(String, String)>,
    capacity: usize,
    timeout: Duration,
    retry: Retry,
    proxy: Option<String>,
    log: Logger,
}

impl WebhookBuilder {
    /// How many bodies may wait, 1 to 65 536; default 1024. What comes while so many wait is dropped.
    pub fn capacity(mut self, bodies: usize) -> Self {
        self.capacity = bodies;
        self
    }

    /// How long one attempt may take, from looking the host up to the end of the answer: 1 ms to 5 minutes;
    /// default 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How an attempt that failed is followed by others; default: 5 of them, after 1 s, and twice as long
    /// after each other. An answer with `Retry-After` in seconds makes it wait for at least that time, up to one hour.
    /// Others wait behind it meanwhile.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// One more header of each request: a token, say.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Goes by this proxy: `http://proxy.example:3128`. Default: none; the environment is not asked.
    pub fn proxy(mut self, url: &str) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// What fails is told to the log of this pool. Default: to the one that is
    /// [installed](crate::log::Log::install), or to none.
    pub fn log_of(mut self, pool: &Pool) -> Self {
        self.log = pool.shared().log.clone();
        self
    }

    /// Starts it: its thread is the only one, and is created here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and what is allowed; [`Error::Os`] if the thread cannot
    /// be created. That nobody listens at the URL is no error: it is tried for each body.
    pub fn build(self) -> Result<Webhook> {
        check_url(&self.url)?;
        if !(1..=1 << 16).contains(&self.capacity) {
            return Err(Error::invalid("capacity", self.capacity, "1 to 65536"));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(300)).contains(&self.timeout) {
            let timeout = format!("{:?}", self.timeout);
            return Err(Error::invalid("timeout", timeout, "1 ms to 5 minutes"));
        }
        self.retry.check()?;
        for (name, value) in &self.headers {
            check_header(name, value)?;
        }
        let proxy = match &self.proxy {
            Some(url) => Some(proxy_of(url)?),
            None => None,
        };
        // Not all of the URL: its path may be a secret.
        let host = self.url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
        let host = host.unwrap_or_default();
        let fork = ForkGuard::new().map_err(|e| Error::os("map a page that tells of a fork", e))?;
        let (bodies, waiting) = sync_channel(self.capacity);
        let (alive, end) = channel();
        let counts = Arc::new(Counts::default());
        let config = Agent::config_builder()
            .timeout_global(Some(self.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy)
            .user_agent(concat!("paceline/", env!("CARGO_PKG_VERSION")));
        let poster = Poster {
            agent: config.build().into(),
            url: self.url,
            headers: self.headers,
            retry: self.retry,
            counts: Arc::clone(&counts),
            end,
            log: self.log.clone(),
            host: host.clone(),
        };
        let thread = thread::Builder::new().name("paceline-hook".into());
        let spawned = without_signals(|| thread.spawn(move || poster.run(&waiting)));
        spawned.map_err(|error| Error::os("start the thread of the webhook", error))?;
        Ok(Webhook {
            inner: Arc::new(Inner {
                fork,
                bodies,
                counts,
                log: self.log,
                host,
                _alive: Mutex::new(alive),
            }),
        })
    }
}

fn check_url(url: &str) -> Result<()> {
    let parsed = url.parse::<Uri>().ok();
    let is_good = |url: &Uri| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.host().is_some_and(|host| !host.is_empty())
    };
    match parsed.as_ref().is_some_and(is_good) {
        true => Ok(()),
        false => Err(Error::invalid("url", format!("{url:?}"), "http:// or https:// and a host")),
    }
}

fn proxy_of(url: &str) -> Result<Proxy> {
    Proxy::new(url)
        .map_err(|_| Error::invalid("proxy", format!("{url:?}"), "the URL of an HTTP proxy"))
}

fn check_header(name: &str, value: &str) -> Result<()> {
    use ureq::http::header::{HeaderName, HeaderValue};
    if name.parse::<HeaderName>().is_err() {
        return Err(Error::invalid("the name of a header", format!("{name:?}"), "a token of HTTP"));
    }
    if value.parse::<HeaderValue>().is_err() {
        // It may be a secret.
        let value = format!("that of {name}");
        return Err(Error::invalid("the value of a header", value, "visible ASCII and blanks"));
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    posted: AtomicU64,
    delivered: AtomicU64,
    retried: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// What a webhook has done. At rest posted = delivered + failed + dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookStats {
    /// Bodies that it was given.
    pub posted: u64,
    /// Those that were answered with success (2xx).
    pub delivered: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Those that were given up: every attempt failed, or the answer was that no other would help.
    pub failed: u64,
    /// Those that found no room, or waited when it was dropped.
    pub dropped: u64,
    /// What the last attempt that failed has failed of.
    pub last_error: Option<String>,
}

enum Job {
    Post(Vec<u8>),
    Flush(SyncSender<()>),
}

struct Inner {
    fork: ForkGuard,
    bodies: SyncSender<Job>,
    counts: Arc<Counts>,
    log: Logger,
    host: String,
    /// Dropped with the last clone, which the thread notices though it waits for its next attempt.
    _alive: Mutex<std::sync::mpsc::Sender<()>>,
}

/// Posts JSON to a URL. Clones are the same one; when the last is dropped its thread ends after the attempt that
/// is under way, and what waits is dropped: [`flush`](Self::flush) before. In a forked child nothing is posted.
///
/// ```no_run
/// use paceline::Pool;
/// use paceline::admin::Webhook;
/// use paceline::hub::{Hub, Threshold};
/// use paceline::metrics::Registry;
/// use std::time::Duration;
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let registry = Registry::new();
/// let hub = Hub::builder(&pool).metrics(&registry, "main").build()?;
/// let webhook = Webhook::builder("https://alerts.example/paceline").build()?;
/// let crossings = webhook.clone();
/// let _watch = hub
///     .watch(&registry, Duration::from_secs(1))
///     .threshold(Threshold::above("paceline_hub_waiting", 1e6))
///     .on_crossing(move |crossing| {
///         crossings.post(crossing.to_json());
///     })
///     .start()?;
/// let _suspensions = webhook.forward(&hub, "$SYS.subscription.suspended")?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Webhook {
    inner: Arc<Inner>,
}

impl Webhook {
    /// Settings of one that posts to this URL.
    pub fn builder(url: &str) -> WebhookBuilder {
        let backoff = Backoff::exponential(Duration::from_secs(1));
        WebhookBuilder {
            url: url.into(),
            headers: Vec::new(),
            capacity: 1024,
            timeout: Duration::from_secs(10),
            retry: Retry::new(5, backoff),
            proxy: None,
            log: Logger::for_nobodys_pool(),
        }
    }

    /// Posts this: it should be JSON. False: there was no room, and it was dropped. Any thread; it never waits.
    pub fn post(&self, json: impl Into<Vec<u8>>) -> bool {
        if self.is_forked() {
            return false;
        }
        self.inner.counts.posted.fetch_add(1, Relaxed);
        let has_room = self.inner.bodies.try_send(Job::Post(json.into())).is_ok();
        if !has_room {
            self.inner.counts.dropped.fetch_add(1, Relaxed);
            self.inner.log.debug(Component::Webhook, "webhook.dropped", |record| {
                record.with("host", self.inner.host.as_str()).say("there was no room for a body");
            });
        }
        has_room
    }

    /// Posts the payloads of all messages of a hub that the pattern matches, until the subscription is dropped:
    /// `$SYS.>` for all that the hub tells of itself.
    ///
    /// # Errors
    /// As [`Hub::subscribe`].
    pub fn forward(&self, hub: &Hub, pattern: &str) -> Result<Subscription> {
        let webhook = self.clone();
        hub.subscribe(pattern, move |message: &Message<'_>| {
            webhook.post(&**message.payload());
        })
    }

    /// Waits until everything that was posted before has been delivered or given up. Any thread; it blocks.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Forked`].
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        let start = Instant::now();
        let left = || timeout.checked_sub(start.elapsed()).ok_or(Error::TimedOut);
        let (done, told) = sync_channel(1);
        while let Err(error) = self.inner.bodies.try_send(Job::Flush(done.clone())) {
            match error {
                TrySendError::Full(_) => thread::sleep(left()?.min(Duration::from_millis(1))),
                TrySendError::Disconnected(_) => return Err(Error::ShutDown),
            }
        }
        told.recv_timeout(left()?).map_err(|_| Error::TimedOut)
    }

    /// Whether this is a child of the process that made it.
    pub(crate) fn is_forked(&self) -> bool {
        self.inner.fork.is_child()
    }

    /// What it has done so far. Any thread.
    pub fn stats(&self) -> WebhookStats {
        let counts = &*self.inner.counts;
        let last_error = counts.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        WebhookStats {
            posted: counts.posted.load(Relaxed),
            delivered: counts.delivered.load(Relaxed),
            retried: counts.retried.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            dropped: counts.dropped.load(Relaxed),
            last_error: last_error.clone(),
        }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// What came of an attempt that was not delivered.
struct Failed {
    why: String,
    /// Another attempt may help.
    again: bool,
    /// What the server asks to wait before it.
    after: Option<Duration>,
}

/// What the thread has.
struct Poster {
    agent: Agent,
    url: String,
    headers: Vec<(String, String)>,
    retry: Retry,
    counts: Arc<Counts>,
    /// Disconnected when nobody has the webhook any more.
    end: Receiver<()>,
    log: Logger,
    host: String,
}

impl Poster {
    fn run(self, waiting: &Receiver<Job>) {
        let mut number = 0;
        while let Ok(job) = waiting.recv() {
            match job {
                Job::Post(_) if self.is_over(Duration::ZERO) => self.drop_one(),
                Job::Post(body) => {
                    number += 1;
                    self.deliver(&body, number);
                }
                Job::Flush(done) => drop(done.try_send(())),
            }
        }
    }

    fn drop_one(&self) {
        self.counts.dropped.fetch_add(1, Relaxed);
    }

    /// Waits; true: nobody has the webhook any more.
    fn is_over(&self, delay: Duration) -> bool {
        matches!(self.end.recv_timeout(delay), Err(RecvTimeoutError::Disconnected))
    }

    fn deliver(&self, body: &[u8], number: u64) {
        let start = Instant::now();
        let mut attempts = 0;
        while let Err(Failed { why, again, after }) = self.attempt(body) {
            attempts += 1;
            let next = match again {
                true => self.retry.next(attempts, start.elapsed(), after, number).ok(),
                false => None,
            };
            let (level, event) = match next {
                Some(_) => (Level::Info, "webhook.retried"),
                None => (Level::Warn, "webhook.failed"),
            };
            self.log.log(Component::Webhook, level, event, |record| {
                record.with("host", self.host.as_str()).with("attempt", attempts).say(why.as_str());
            });
            *self.counts.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            let Some(delay) = next else {
                self.counts.failed.fetch_add(1, Relaxed);
                return;
            };
            if self.is_over(delay) {
                return self.drop_one();
            }
            self.counts.retried.fetch_add(1, Relaxed);
        }
        self.counts.delivered.fetch_add(1, Relaxed);
    }

    fn attempt(&self, body: &[u8]) -> core::result::Result<(), Failed> {
        let mut request = self.agent.post(&self.url).header("Content-Type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let failed =
            |error: ureq::Error| Failed { why: error.to_string(), again: true, after: None };
        let mut answer = request.send(body).map_err(failed)?;
        let status = answer.status();
        let asked = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let after = asked.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        // To its end, or the connection is of no more use.
        let _rest = answer.body_mut().with_config().limit(MOST_READ).read_to_vec();
        match status.as_u16() {
            200..=299 => Ok(()),
            code => {
                let again = matches!(code, 408 | 429 | 500..);
                let after = after.map(|time| time.min(MOST_WAIT));
                Err(Failed { why: format!("the answer was {status}"), again, after })
            }
        }
    }
}
