//! What the headers of a task and of its result say.

use super::job::{DurableReport, DurableStatus};
use crate::bridge::rules::check_name_of;
use crate::error::{Error, Result};
use crate::hub::{Headers, Stored};
use crate::queue::Lane;
use crate::sys::clock;
use core::hash::BuildHasher;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::hash::RandomState;

/// Where the result goes: the submitter's part of the key. Without it nobody wants one.
const REPLY: &str = "Paceline-Reply";
/// Not before this time, in milliseconds since 1970.
const NOT_BEFORE: &str = "Paceline-Not-Before";
/// Not after this one.
const DEADLINE: &str = "Paceline-Deadline";
/// The most attempts.
const ATTEMPTS: &str = "Paceline-Attempts";
const STATUS: &str = "Paceline-Status";
const FAILURE: &str = "Paceline-Failure";
const RAN: &str = "Paceline-Ran";
const TASK: &str = "Paceline-Task";
/// So much of what went wrong is told.
pub(super) const MOST_FAILURE: usize = 4096;

/// The name of a stream has up to 200 bytes: beside the queue's name that of `paceline_QUEUE_critical` has 18.
const MOST_QUEUE: usize = 182;
/// So has that of a consumer, which is the task's.
const MOST_TASK: usize = 200;
/// A key of a hub has up to 255: beside both names that of `tasks.QUEUE.critical.NAME.ID` has 50.
const MOST_BOTH: usize = 205;

/// # Errors
/// [`Error::Invalid`]
pub(super) fn check_queue(name: &str) -> Result<()> {
    check_name_of("the name of a queue", name, MOST_QUEUE)
}

/// # Errors
/// [`Error::Invalid`]
pub(super) fn check_task(queue: &str, name: &str) -> Result<()> {
    check_name_of("the name of a task", name, MOST_TASK.min(MOST_BOTH - queue.len()))
}

/// What a task is submitted with beside its name and arguments.
#[derive(Clone, Default)]
pub(super) struct Options {
    pub(super) lane: Lane,
    pub(super) delay: Duration,
    pub(super) deadline: Option<Duration>,
    pub(super) attempts: Option<u32>,
    pub(super) unique: Option<String>,
    pub(super) ignores_result: bool,
}

fn now_millis() -> u64 {
    clock::unix_nanos() / 1_000_000
}

impl Options {
    /// The headers of a task whose result goes to this origin.
    pub(super) fn headers(&self, origin: &str) -> Result<Headers> {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let begin = now_millis().saturating_add(millis(self.delay));
        if !self.delay.is_zero() {
            pairs.push((NOT_BEFORE, begin.to_string()));
        }
        if let Some(deadline) = self.deadline {
            pairs.push((DEADLINE, now_millis().saturating_add(millis(deadline)).to_string()));
        }
        if let Some(attempts) = self.attempts {
            pairs.push((ATTEMPTS, attempts.to_string()));
        }
        let is_good = |unique: &String| {
            (1..=200).contains(&unique.len()) && !unique.contains(|c: char| c.is_control())
        };
        if let Some(unique) = self.unique.as_ref().filter(|unique| !is_good(unique)) {
            let allowed = "1 to 200 bytes without control characters";
            return Err(Error::invalid("the unique id of a task", format!("{unique:?}"), allowed));
        }
        if !self.ignores_result {
            pairs.push((REPLY, origin.to_owned()));
        }
        Headers::new(pairs)
    }
}

/// What a worker reads of them.
pub(super) struct Orders {
    pub(super) reply: Option<String>,
    pub(super) attempts: Option<u32>,
    /// How long until it may begin.
    pub(super) early: Option<Duration>,
    /// How long until it is too late; None: it never is.
    pub(super) left: Option<Duration>,
    pub(super) is_delayed: bool,
}

impl Orders {
    pub(super) fn read(headers: &Headers) -> Self {
        let number = |name| headers.get(name).and_then(|text| text.parse::<u64>().ok());
        let now = now_millis();
        let until = |at: u64| Duration::from_millis(at.saturating_sub(now));
        let not_before = number(NOT_BEFORE);
        Self {
            // It becomes a token of a key.
            reply: headers.get(REPLY).filter(|text| is_token(text)).map(str::to_owned),
            attempts: number(ATTEMPTS).and_then(|count| u32::try_from(count).ok()),
            early: not_before.map(until).filter(|left| !left.is_zero()),
            left: number(DEADLINE).map(until),
            is_delayed: not_before.is_some(),
        }
    }
}

pub(super) fn is_token(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// An id for a task of this lane that nobody can guess, and that is never given again, by a fork neither.
pub(super) fn new_id(lane: Lane) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let here = (std::process::id(), clock::unix_nanos(), LAST.fetch_add(1, Relaxed));
    let [high, low] = [(); 2].map(|()| RandomState::new().hash_one(here));
    format!("{}{high:016x}{low:016x}", &lane_name(lane)[..1])
}

/// The lane of the task of this id.
pub(super) fn lane_of(id: &str) -> Result<Lane> {
    let is_hex = |digits: &str| {
        digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let lane = id
        .get(1..)
        .filter(|digits| is_hex(digits))
        .and_then(|_| Lane::ALL.into_iter().find(|lane| lane_name(*lane).starts_with(&id[..1])));
    lane.ok_or_else(|| {
        Error::invalid("the id of a task", format!("{id:?}"), "one that `id` has given")
    })
}

/// The id of the task that a message with this key is of, or is the result of.
pub(super) fn id_in(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

pub(super) fn stream_name(queue: &str, what: &str) -> String {
    format!("paceline_{queue}_{what}")
}

pub(super) fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Critical => "critical",
        Lane::High => "high",
        Lane::Normal => "normal",
        Lane::Low => "low",
    }
}

/// The headers of a result, with so much of its failure. Its id has the stream take one result for each task.
pub(super) fn headers_of(report: &DurableReport, most: usize) -> Result<Headers> {
    let mut pairs = vec![
        (TASK, report.id.clone()),
        (STATUS, report.status.as_str().to_owned()),
        (RAN, report.attempts.to_string()),
        ("Nats-Msg-Id", format!("result-{}", report.id)),
    ];
    if let Some(failure) = &report.failure {
        let end = (0..=most.min(failure.len())).rev().find(|at| failure.is_char_boundary(*at));
        pairs.push((FAILURE, failure[..end.unwrap_or(0)].to_owned()));
    }
    Headers::new(pairs)
}

/// The result of this task that has come.
///
/// # Errors
/// [`Error::Invalid`] for something else, or that of another task.
pub(super) fn report_of(id: &str, headers: &Headers, payload: &[u8]) -> Result<DurableReport> {
    let text = |name: &str| headers.get(name).unwrap_or_default().to_owned();
    let status: DurableStatus = text(STATUS).parse()?;
    if text(TASK) != id {
        return Err(Error::invalid("the task of a result", text(TASK), id.to_owned()));
    }
    Ok(DurableReport {
        id: id.to_owned(),
        status,
        value: if status == DurableStatus::Completed { payload.to_vec() } else { Vec::new() },
        failure: headers.get(FAILURE).map(str::to_owned),
        attempts: text(RAN).parse().unwrap_or(0),
    })
}

/// A result that has come to the hub.
pub(super) fn report_of_message(message: &Stored) -> Result<DurableReport> {
    report_of(id_in(message.key().as_str()), message.headers(), message.payload())
}
