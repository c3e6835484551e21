//! What a pool is built from. Every field is checked before anything is started.

use super::handler::SlowReport;
use super::members::GROUP;
use super::placement::Pin;
use crate::error::{Error, Result};
use crate::log::Logger;
use crate::queue::{LANES, Lane};
use crate::source::ScriptedSource;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// When a leader hands leadership on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Promotion {
    /// The default: leadership is *offered*, and whoever is free next takes it; a watch sees to it
    /// that an offer never waits longer than two watch periods. No thread is woken in the common
    /// case.
    #[default]
    Deferred,
    /// A follower is woken to lead before each event is handled. For handlers that always block.
    Eager,
}

/// What the pool waits at.
#[derive(Clone, Debug, Default)]
pub enum SourceKind {
    /// Linux epoll: descriptors, timers, tasks. The default.
    #[default]
    Epoll,
    /// No descriptors: rings, timers and tasks only, without a system call while busy.
    Ring,
    /// A script under a manual clock, for tests.
    Scripted(ScriptedSource),
}

pub(crate) type Hook = Arc<dyn Fn(usize) + Send + Sync>;
pub(crate) type SlowHook = Arc<dyn Fn(&SlowReport) + Send + Sync>;

/// The most threads that one pool may have.
pub(crate) const MAX_THREADS: usize = 1024;
/// The most threads that may be reserved for one lane: they share a wake word.
pub(crate) const MAX_RESERVED: usize = GROUP;
/// The most host threads that may take part at once.
pub(crate) const MAX_JOINED: usize = 1024;
/// Slots that one pool can grow to: handles, strands, timers and rings together.
const DEFAULT_MAX_HANDLES: usize = 1 << 22;

/// Settings of a [`Pool`](super::Pool); see [`Pool::builder`](super::Pool::builder).
///
/// ```
/// use paceline::{Pin, Pool, Promotion};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::builder()
///     .name("io")
///     .threads(2)
///     .pin(Pin::None)
///     .promotion(Promotion::Deferred)
///     .lane_capacity(1024)
///     .build()?;
/// pool.submit(|| println!("on a thread with the name io-0 or io-1"))?.wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    pub(crate) threads: Option<usize>,
    /// By lane.
    pub(crate) reserved: [usize; LANES],
    pub(crate) max_joined: usize,
    pub(crate) leaders: Option<usize>,
    pub(crate) source: SourceKind,
    pub(crate) promotion: Promotion,
    pub(crate) watch_period: Duration,
    pub(crate) pin: Option<Pin>,
    pub(crate) pin_strict: bool,
    pub(crate) spin: Duration,
    pub(crate) max_turn: Duration,
    pub(crate) ageing: Option<Duration>,
    pub(crate) lane_capacity: usize,
    pub(crate) strand_capacity: usize,
    pub(crate) max_handles: usize,
    pub(crate) name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    pub(crate) on_slow: Option<(Duration, SlowHook)>,
    pub(crate) log: Option<crate::log::Log>,
    /// It never logs, whatever log is installed.
    pub(crate) is_silent: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            threads: None,
            reserved: [0; LANES],
            max_joined: 4,
            leaders: None,
            source: SourceKind::Epoll,
            promotion: Promotion::Deferred,
            watch_period: Duration::from_micros(200),
            pin: None,
            pin_strict: false,
            spin: Duration::ZERO,
            max_turn: Duration::from_millis(1),
            ageing: Some(Duration::from_secs(1)),
            lane_capacity: 8192,
            strand_capacity: 1024,
            max_handles: DEFAULT_MAX_HANDLES,
            name: "paceline".into(),
            stack_size: None,
            on_start: None,
            on_stop: None,
            on_slow: None,
            log: None,
            is_silent: false,
        }
    }
}

impl Builder {
    /// Number of pool threads, 0 to 1024. Default: the CPUs that this thread may use, or what the
    /// cgroup quota allows if that is less. 0 makes a pool that only host threads drive
    /// ([`Pool::join`](super::Pool::join)); it needs `max_joined` of at least 1.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Adds `threads` threads, 0 to 48, that run nothing but tasks of `lane`. Default: none.
    ///
    /// They come on top of [`threads`](Self::threads), which must be at least 1. So with every
    /// ordinary thread inside a long task, as many tasks of `lane` as threads are reserved still
    /// start at once. A reserved thread leads, and watches, while no ordinary one can, but handles
    /// no event: what it harvests is for the ordinary threads. They are the last of the pool's
    /// threads by index. Asked again for the same lane, the later number counts.
    pub fn reserve(mut self, lane: Lane, threads: usize) -> Self {
        self.reserved[lane as usize] = threads;
        self
    }

    /// How many host threads may be inside [`Pool::join`](super::Pool::join) at once, 0 to 1024. Default 4.
    pub fn max_joined(mut self, max_joined: usize) -> Self {
        self.max_joined = max_joined;
        self
    }

    /// Number of handle sets, each with one leader at a time: 1 to one less than the threads (1 for
    /// a pool of one or none). Default: 1 for up to 8 threads, then one per 8.
    pub fn leaders(mut self, leaders: usize) -> Self {
        self.leaders = Some(leaders);
        self
    }

    /// What the pool waits at. Default: epoll.
    pub fn source(mut self, source: SourceKind) -> Self {
        self.source = source;
        self
    }

    /// When a leader hands leadership on. Default: deferred.
    pub fn promotion(mut self, promotion: Promotion) -> Self {
        self.promotion = promotion;
        self
    }

    /// How often the watch looks for stuck work while handlers are slow, 10 µs to 1 s. Default
    /// 200 µs; it relaxes to 2 ms, or to this period if that is longer, while they are quick.
    pub fn watch_period(mut self, period: Duration) -> Self {
        self.watch_period = period;
        self
    }

    /// Where threads are pinned. Default: [`Pin::Compact`] if the pool leaves a usable CPU free and
    /// no CPU quota below the usable CPUs is in force; else [`Pin::None`], because a pinned thread
    /// cannot go out of the way of others that need its CPU.
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Whether a failure to pin is an error of [`build`](Self::build) or only a flag in the
    /// statistics. Default: a flag.
    pub fn pin_strict(mut self, strict: bool) -> Self {
        self.pin_strict = strict;
        self
    }

    /// How long a leader polls its source before it blocks there, 0 to 100 ms. Default 0.
    /// Polling burns a CPU per handle set and saves a wake-up of some microseconds.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// How long a thread works on ready work before it looks at everything that waits: the event source, timers that are
    /// due, more urgent lanes, and then the rest of the ready work in order. 10 µs to 1 s. Default 1 ms.
    ///
    /// A strand, a ring, a connection or a subscription with a backlog leaves the thread after that time, once the handler
    /// that runs has returned, and goes behind what waits. So with as many backlogs as threads every other kind of work is
    /// late by about this time and one handler, for each backlog that is in front of it.
    pub fn max_turn(mut self, time: Duration) -> Self {
        self.max_turn = time;
        self
    }

    /// Room of each task lane, 2 to 2^24 tasks of 64 bytes, rounded up to a power of two. Default
    /// 8192.
    pub fn lane_capacity(mut self, tasks: usize) -> Self {
        self.lane_capacity = tasks;
        self
    }

    /// After how long a wait in a lane every fourth pick is of that lane, 1 ms to 1 h; none: never. It is
    /// noticed between one and two times this, and lasts until what has waited is gone. Default 1 s.
    pub fn ageing(mut self, after: impl Into<Option<Duration>>) -> Self {
        self.ageing = after.into();
        self
    }

    /// Room of each strand, as `lane_capacity`. Default 1024.
    pub fn strand_capacity(mut self, tasks: usize) -> Self {
        self.strand_capacity = tasks;
        self
    }

    /// How many handles, strands, timers and rings may exist at once, and beside them how many tasks
    /// with a result, 1 to 2^24. Default 2^22. It is rounded up, to 1024 and to 256; memory is taken
    /// as they appear. A worker pool takes up to two of them, for as long as the pool is there.
    pub fn max_handles(mut self, handles: usize) -> Self {
        self.max_handles = handles;
        self
    }

    /// Threads are called `name-0`, `name-1` …; the kernel shows the first 15 bytes. Default
    /// "paceline".
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Stack of each thread in bytes, 64 KiB to 4 GiB. Default: 2 MiB.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Called on each thread with its index when it starts, before it does anything else.
    pub fn on_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.on_start = Some(Arc::new(hook));
        self
    }

    /// Called on each thread with its index when it stops.
    pub fn on_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.on_stop = Some(Arc::new(hook));
        self
    }

    /// Called for each handler or task that takes longer than `limit` (at least 10 µs): once while it
    /// still runs, at the next look of the watch, or when it returns if that is earlier or no thread
    /// was free to watch. It must be quick and must not block. With this hook the clock is read
    /// around every handler (some 40 ns), and a thread that has nothing to do watches while any runs.
    pub fn on_slow(
        mut self,
        limit: Duration,
        hook: impl Fn(&SlowReport) + Send + Sync + 'static,
    ) -> Self {
        self.on_slow = Some((limit, Arc::new(hook)));
        self
    }

    /// What happens in the pool, and in all that stands on it, is written to this log. Default: to the one that
    /// is [installed](crate::log::Log::install), or to none.
    pub fn log(mut self, log: &crate::log::Log) -> Self {
        self.log = Some(log.clone());
        self
    }

    /// What writes to the log.
    pub(crate) fn logger(&self) -> Logger {
        match self.is_silent {
            true => Logger::default(),
            false => Logger::new(self.log.as_ref(), &self.name),
        }
    }

    /// Checks everything that does not depend on the machine.
    pub(crate) fn validate(&self) -> Result<()> {
        let range = |name, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(Error::invalid(name, value, format!("{low} to {high}")))
            }
        };
        let time = |name, value: Duration, low: Duration, high: Duration| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(Error::invalid(name, format!("{value:?}"), format!("{low:?} to {high:?}")))
            }
        };
        if let Some(threads) = self.threads {
            range("threads", threads, 0, MAX_THREADS)?;
            if threads == 0 && self.max_joined == 0 {
                let allowed = "1 to 1024, or 0 with max_joined of at least 1";
                return Err(Error::invalid("threads", 0, allowed));
            }
        }
        for lane in Lane::ALL {
            let name = ["reserve CRITICAL", "reserve HIGH", "reserve NORMAL", "reserve LOW"];
            range(name[lane as usize], self.reserved[lane as usize], 0, MAX_RESERVED)?;
        }
        let reserved = self.reserved.iter().sum::<usize>();
        if reserved > 0 && self.threads == Some(0) {
            return Err(Error::invalid("reserve", reserved, "0 for a pool without threads"));
        }
        range("max_joined", self.max_joined, 0, MAX_JOINED)?;
        range("lane_capacity", self.lane_capacity, 2, 1 << 24)?;
        range("strand_capacity", self.strand_capacity, 2, 1 << 24)?;
        range("max_handles", self.max_handles, 1, 1 << 24)?;
        if let Some(bytes) = self.stack_size {
            range("stack_size", bytes, 64 << 10, 1 << 32)?;
        }
        let second = Duration::from_secs(1);
        time("watch_period", self.watch_period, Duration::from_micros(10), second)?;
        time("spin", self.spin, Duration::ZERO, Duration::from_millis(100))?;
        time("max_turn", self.max_turn, Duration::from_micros(10), second)?;
        if let Some(after) = self.ageing {
            let (short, long) = (Duration::from_millis(1), Duration::from_secs(3600));
            time("ageing", after, short, long)?;
        }
        if let Some((limit, _)) = &self.on_slow {
            time("on_slow", *limit, Duration::from_micros(10), Duration::from_secs(86_400))?;
        }
        if self.name.is_empty() || self.name.contains('\0') {
            let allowed = "a text without NUL of at least one byte";
            return Err(Error::invalid("name", format!("{:?}", self.name), allowed));
        }
        Ok(())
    }

    /// [`validate`](Self::validate), and the leaders if the number of threads is given.
    #[cfg(feature = "config")]
    pub(crate) fn validate_settings(&self) -> Result<()> {
        self.validate()?;
        self.threads.map_or(Ok(()), |threads| self.resolve_leaders(threads).map(drop))
    }

    /// The number of handle sets for `threads` threads.
    pub(crate) fn resolve_leaders(&self, threads: usize) -> Result<usize> {
        let most = threads.saturating_sub(1).max(1);
        match self.leaders {
            None => Ok(threads.div_ceil(8).clamp(1, most)),
            Some(leaders) if (1..=most).contains(&leaders) => Ok(leaders),
            Some(leaders) => {
                let allowed = if most == 1 {
                    format!("1 for {threads} threads")
                } else {
                    format!("1 to {most}, which is below the {threads} threads")
                };
                Err(Error::invalid("leaders", leaders, allowed))
            }
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("reserved", &self.reserved)
            .field("max_joined", &self.max_joined)
            .field("leaders", &self.leaders)
            .field("source", &self.source)
            .field("promotion", &self.promotion)
            .field("watch_period", &self.watch_period)
            .field("pin", &self.pin)
            .field("pin_strict", &self.pin_strict)
            .field("spin", &self.spin)
            .field("max_turn", &self.max_turn)
            .field("lane_capacity", &self.lane_capacity)
            .field("strand_capacity", &self.strand_capacity)
            .field("max_handles", &self.max_handles)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
