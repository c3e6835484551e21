//! What can go wrong, in one type.

pub(crate) mod receipt;

use core::fmt;
use receipt::Receipt;
use std::io;

/// Every failure that paceline reports. Refused work comes back in a [`Rejected`] or a [`QueueFull`](crate::QueueFull), which
/// convert into this by `?`; the work is dropped then.
///
/// A message names the thing, its value and what would be right.
///
/// ```
/// # fn main() -> paceline::Result<()> {
/// let pool = paceline::Pool::new()?;
/// pool.post(|| ())?; // a `Rejected` becomes an `Error`
/// let refused = paceline::Pool::builder().threads(5000).build().unwrap_err();
/// assert_eq!(refused.to_string(), "threads is 5000, but must be 0 to 1024");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting or an argument is out of its range; nothing was started or changed.
    Invalid {
        /// The field or argument, as the user wrote it.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What would be right.
        allowed: String,
    },
    /// The operating system refused.
    Os {
        /// What was being done, with its object: "register descriptor 7".
        doing: String,
        /// The system's own error.
        source: io::Error,
    },
    /// The pool has been shut down.
    ShutDown,
    /// The process was forked; a pool works only in the process that built it. A child that a handler
    /// or task forks must not return from it: it is aborted.
    Forked,
    /// No other thread is left that could do what this call would wait for.
    WouldDeadlock,
    /// The wait ended before what it waited for.
    TimedOut,
    /// As [`TimedOut`](Self::TimedOut), where it is known why: a bridge, or a queue of durable tasks, has no broker, or the
    /// broker refuses what it asks for. What was accepted before stays so.
    Broker {
        /// What stands in the way: "nats://broker:4222: authorization violation".
        reason: String,
    },
    /// The handler is running; its slot closes when it returns.
    Closing,
    /// The task panicked.
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The task was cancelled before it began, or the pool stopped.
    Cancelled,
    /// The thing has ended, was closed, or was taken already.
    Stale {
        /// What is stale.
        what: &'static str,
    },
    /// All places of this kind are taken.
    Full {
        /// What is full.
        what: &'static str,
        /// How many there are.
        capacity: usize,
    },
    /// A lane, a queue or the like has no room at this moment, and the work was not accepted.
    NoRoom(NoRoom),
    /// A message was published, and a subscription has refused it because its mailbox is full. Others may have taken
    /// it: the receipt says so.
    MailboxFull {
        /// What is full: "the mailbox of subscription 7 (orders.>)". Of several, the first.
        mailbox: Box<str>,
        /// How many messages it holds.
        capacity: usize,
        /// What became of the message with all subscriptions; of a batch, of all of its messages.
        receipt: Box<Receipt>,
    },
    /// Messages that a hub's histories took are not on disk and never will be: more waited for the disk than may.
    GivenUp {
        /// How many, since the hub was built.
        messages: u64,
    },
    /// Settings from files, the environment or code are wrong; all that is wrong with them.
    Settings {
        /// In the order of the layers' calls.
        problems: Vec<Problem>,
    },
}

/// The crate's result.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    pub(crate) fn invalid(
        name: &'static str,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self::Invalid { name, value: value.to_string(), allowed: allowed.into() }
    }

    pub(crate) fn os(doing: impl Into<String>, source: io::Error) -> Self {
        Self::Os { doing: doing.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { name, value, allowed } => {
                write!(f, "{name} is {value}, but must be {allowed}")
            }
            Self::Os { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::ShutDown => f.write_str("the pool has been shut down"),
            Self::Forked => f.write_str("this process was forked; build a pool of its own here"),
            Self::WouldDeadlock => {
                f.write_str("waiting here would deadlock: every other pool thread is waiting too")
            }
            Self::TimedOut => f.write_str("the time ran out"),
            Self::Broker { reason } => write!(f, "the time ran out; of the broker: {reason}"),
            Self::Closing => f.write_str("the handler is running; it closes when it returns"),
            Self::Panicked { message } => write!(f, "the task panicked: {message}"),
            Self::Cancelled => f.write_str("the task was cancelled"),
            Self::Stale { what } => write!(f, "this {what} has ended, was closed, or was taken"),
            Self::Full { what, capacity } => write!(f, "all {capacity} {what} are in use"),
            Self::NoRoom(room) => room.fmt(f),
            Self::MailboxFull { mailbox, capacity, receipt } => {
                write!(f, "{mailbox} is full ({capacity} messages); ")?;
                let Receipt { matched, enqueued, rejected, .. } = **receipt;
                match matched {
                    0 => f.write_str("nothing was published"),
                    _ => write!(
                        f,
                        "of {matched} deliveries {rejected} were refused and {enqueued} accepted; more \
                         capacity helps, an overflow policy that drops, or one that waits where the publisher \
                         may: outside of handlers and of the threads of pools"
                    ),
                }
            }
            Self::GivenUp { messages } => write!(
                f,
                "{messages} messages of histories are not on disk: they were given up, or their \
                 lines could not be written"
            ),
            Self::Settings { problems } => {
                for (index, problem) in problems.iter().enumerate() {
                    let line = if index == 0 { "" } else { "\n" };
                    write!(f, "{line}{problem}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What has no room for more, and what helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NoRoom {
    /// What is full: "the normal lane of the pool".
    pub what: &'static str,
    /// How much it holds. 0: it is not known.
    pub capacity: usize,
    /// What would help: "a larger lane_capacity, more threads, …".
    pub helps: &'static str,
}

impl NoRoom {
    pub(crate) const fn new(what: &'static str, capacity: usize, helps: &'static str) -> Self {
        Self { what, capacity, helps }
    }

    /// Of a worker pool: tasks that wait for their key, their rate or their turn.
    pub(crate) const TASKS_WAIT: Self = Self::new(
        "the line of tasks that wait for their key or their rate",
        0,
        "a higher rate or max_running, or to submit less",
    );
    /// Of a worker pool: records.
    pub(crate) const TASKS_OPEN: Self = Self::new(
        "the place for tasks with handles",
        16_777_216,
        "to wait for tasks that were submitted",
    );
    /// Of a pool: timers.
    pub(crate) const TIMERS: Self =
        Self::new("the place for handles and timers of the pool", 0, "a larger max_handles");
    /// Of a queue that is none of a pool's.
    pub(crate) const QUEUE: Self =
        Self::new("the queue", 0, "a larger capacity, or to push with a time to wait");
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, capacity, helps } = self;
        match capacity {
            0 => write!(f, "{what} is full; what helps: {helps}"),
            _ => write!(f, "{what} is full ({capacity}); what helps: {helps}"),
        }
    }
}

/// Work that was not accepted, handed back.
///
/// ```
/// use paceline::{Pool, Rejected};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// pool.shutdown(Duration::ZERO);
/// match pool.submit(|| 42) {
///     Err(Rejected::ShutDown(work)) => assert_eq!(work(), 42), // the closure comes back
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rejected<F> {
    /// There is no room, and this says where.
    Full(F, NoRoom),
    /// The pool takes no more work.
    ShutDown(F),
    /// The process was forked since the pool was built.
    Forked(F),
}

impl<F> Rejected<F> {
    /// The work itself.
    pub fn into_inner(self) -> F {
        match self {
            Self::Full(work, _) | Self::ShutDown(work) | Self::Forked(work) => work,
        }
    }

    pub(crate) fn map<G>(self, f: impl FnOnce(F) -> G) -> Rejected<G> {
        match self {
            Self::Full(work, room) => Rejected::Full(f(work), room),
            Self::ShutDown(work) => Rejected::ShutDown(f(work)),
            Self::Forked(work) => Rejected::Forked(f(work)),
        }
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_, room) => return room.fmt(f),
            Self::ShutDown(_) => "the pool has been shut down",
            Self::Forked(_) => "this process was forked; build a pool of its own here",
        })
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_, room) => return write!(f, "Full(.., {room})"),
            Self::ShutDown(_) => "ShutDown(..)",
            Self::Forked(_) => "Forked(..)",
        })
    }
}

impl<F> std::error::Error for Rejected<F> {}

/// The work is dropped.
impl<F> From<Rejected<F>> for Error {
    fn from(rejected: Rejected<F>) -> Self {
        match rejected {
            Rejected::Full(_, room) => Self::NoRoom(room),
            Rejected::ShutDown(_) => Self::ShutDown,
            Rejected::Forked(_) => Self::Forked,
        }
    }
}

/// One thing that is wrong with settings. Its text names where it stands, its key, its value and what
/// would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A file cannot be read, or is not what its name says.
    Unreadable {
        /// The file.
        origin: String,
        /// Why.
        reason: String,
    },
    /// There is no such setting.
    Unknown {
        /// The file, "the environment", or "set".
        origin: String,
        /// The key or variable.
        key: String,
        /// A known one that is like it.
        nearest: Option<String>,
    },
    /// A file gives the same key more than once.
    Repeated {
        /// The file.
        origin: String,
        /// The key.
        key: String,
    },
    /// The value is of the wrong type, or out of its range.
    Wrong {
        /// The file, the variable, or "set".
        origin: String,
        /// The key.
        key: String,
        /// The value as it was written.
        value: String,
        /// What would be right.
        allowed: String,
    },
}

/// An address without what logs in, which stands before its host.
#[cfg(any(feature = "config", feature = "nats"))]
pub(crate) fn without_login(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    format!("{scheme}{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { origin, reason } => write!(f, "{origin}: {reason}"),
            Self::Unknown { origin, key, nearest } => {
                write!(f, "{origin}: {key} is not a setting")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest}?"),
                    None => Ok(()),
                }
            }
            Self::Repeated { origin, key } => write!(f, "{origin}: {key} is given more than once"),
            Self::Wrong { origin, key, value, allowed } => {
                write!(f, "{origin}: {key} is {value}, but must be {allowed}")
            }
        }
    }
}
