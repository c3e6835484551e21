//! What the broker has already: streams and consumers that another program may have made, with another promise, and the
//! servers of a cluster that nobody named.
//!
//! A stream or consumer of a rule's name is used as it is, and looked at each time that the rule is bound to it. What would
//! lose messages is refused: the rule's trouble names the setting, its value and what would be right, and the rule goes on
//! once that is set.

use super::rules::{Keeps, LEAST_ACK_WAIT, StartAt};
use super::session::Lost;
use super::sink::Entry;
use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::{Client, ServerAddr};
use core::cell::RefCell;
use core::time::Duration;

/// So many servers that nobody named are tried beside those that somebody did.
const MOST_SERVERS: usize = 64;

/// Whether a stream keeps what it has said that it stores, until it may go.
pub(super) fn check_stream(found: &stream::Config, keeps: Keeps) -> Result<(), Lost> {
    let refuse = |setting: &str, value: &dyn core::fmt::Debug, right: &str| {
        let value = format!("{value:?}").to_lowercase();
        Err(Lost(format!("stream {:?}: its {setting} is {value}, but must be {right}", found.name)))
    };
    let drops_old = found.discard == DiscardPolicy::Old;
    if found.storage == StorageType::Memory {
        return refuse("storage", &found.storage, "file");
    }
    if found.no_ack {
        return refuse("no_ack", &true, "false: nobody would know what is stored");
    }
    for (limit, value) in [("max_msgs", found.max_messages), ("max_bytes", found.max_bytes)] {
        if value > 0 && drops_old {
            return refuse("discard", &found.discard, &format!("new with {limit} {value}"));
        }
    }
    // Of a queue's own marks the last one of each is to be kept.
    let each = found.max_messages_per_subject;
    let is_marks = matches!(keeps, Keeps::Last(_));
    if each > 0 && !is_marks && (drops_old || !found.discard_new_per_subject) {
        let right = format!("true, and discard new, with max_msgs_per_subject {each}");
        return refuse("discard_new_per_subject", &false, &right);
    }
    if keeps != Keeps::UntilDone {
        return Ok(());
    }
    if found.retention != RetentionPolicy::WorkQueue {
        return refuse("retention", &found.retention, "workqueue for tasks");
    }
    match found.max_age.is_zero() {
        true => Ok(()),
        false => refuse("max_age", &found.max_age, "0 for tasks: they would be lost"),
    }
}

/// Whether a consumer delivers each message of these subjects until it is acknowledged. The answer: after how long it
/// delivers one again of which it has not heard.
pub(super) fn check_consumer(found: &consumer::Config, subject: &str) -> Result<Duration, String> {
    let refuse = |setting: &str, value: &dyn core::fmt::Debug, right: &str| {
        Err(format!("its {setting} is {value:?}, but must be {right}"))
    };
    // With several filters it has this one empty.
    if found.filter_subject != subject {
        return Err(format!("it is of {:?}, and not of {subject:?}", found.filter_subject));
    }
    if found.ack_policy != AckPolicy::Explicit {
        return refuse("ack_policy", &found.ack_policy, "explicit");
    }
    if found.max_deliver > 0 {
        return refuse("max_deliver", &found.max_deliver, "-1: a message would be given up");
    }
    if found.headers_only {
        return refuse("headers_only", &true, "false");
    }
    let ack_wait = found.backoff.iter().copied().fold(found.ack_wait, Duration::min);
    match ack_wait < LEAST_ACK_WAIT {
        true => refuse("ack_wait", &ack_wait, "at least 100 ms"),
        false => Ok(ack_wait),
    }
}

/// Where a consumer begins that is made, of an import that had one when it was bound first, at that time, and has had
/// messages, the last of them this one. What is stored while it is gone is not to be left out.
pub(super) fn begin(
    start: StartAt,
    bound: Option<DateTime>,
    seen: Option<Entry>,
) -> Result<DeliverPolicy, Lost> {
    let last = seen.map(|seen| async_nats::datetime::from_nanos(seen.stored)).transpose()?;
    Ok(match (start, last.or(bound)) {
        (StartAt::New, Some(start_time)) => DeliverPolicy::ByStartTime { start_time },
        _ => super::places::policy(start),
    })
}

/// Servers of the cluster that it has told of, over all connections.
#[derive(Default)]
pub(super) struct Cluster(RefCell<Vec<ServerAddr>>);

impl Cluster {
    /// Those that were named, and those that are known beside them.
    pub(super) fn with(&self, named: Vec<ServerAddr>) -> Vec<ServerAddr> {
        let mut all = named;
        let known = self.0.borrow();
        let more: Vec<_> = known.iter().filter(|one| !all.contains(one)).cloned().collect();
        all.extend(more);
        all
    }

    /// Notes what the server has told over a connection, the last first. A name that asks for TLS stands for all.
    fn note(&self, client: &Client, named: &[ServerAddr]) {
        let scheme = if named.iter().any(ServerAddr::tls_required) { "tls" } else { "nats" };
        let told = client.server_info().connect_urls;
        let told = told.iter().filter_map(|url| format!("{scheme}://{url}").parse().ok());
        let mut known: Vec<ServerAddr> = told.collect();
        let before = self.0.take();
        let before = before.into_iter().filter(|one| !known.contains(one));
        let before: Vec<_> = before.collect();
        known.extend(before);
        known.truncate(MOST_SERVERS);
        self.0.replace(known);
    }
}

/// Notes the servers that a connection has told of when it ends: they may have changed meanwhile.
pub(super) struct Told<'a> {
    pub(super) client: Client,
    pub(super) cluster: &'a Cluster,
    pub(super) named: Vec<ServerAddr>,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.cluster.note(&self.client, &self.named);
    }
}
