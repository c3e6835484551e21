//! The event hub: keyed publish/subscribe inside one process.
//!
//! Publishers hand over a key and a payload; the hub finds the subscriptions; each works through a
//! mailbox of its own in a context of its own, and what one of them does never touches another.
//!
//! ```text
//!                      ┌─ literal ──┐
//!   publish ─► key ─► route ─────────► channels ─► mailboxes ─► ready ─► services ─► handlers
//!             (interned) └─ trie of patterns      (capacity,   (hub's   (slots of
//!                            (generation)          overflow)    list)    the pool)
//! ```
//!
//! # Words
//!
//! | word | what it is | file |
//! |---|---|---|
//! | key | what a message is published with; interned | `keys/` |
//! | pattern | what a subscription asks for: a key, or one with wildcards | `keys/key.rs` |
//! | channel | all subscriptions of one pattern; a key's is all that is kept of it | `channel/route.rs`, `channel/router.rs` |
//! | route | the channels that match a key | `channel/route.rs`, `channel/router.rs` |
//! | stored message | one publication, however many subscribe | `message.rs` |
//! | receipt | what its publisher is told | `receipt.rs`, `publish/` |
//! | subscription | a pattern, a handler and a mailbox | `mailbox/subscribe.rs`, `mailbox/subscriber.rs` |
//! | mailbox | what waits for one subscription; its phases and invariants | `mailbox/mail.rs` |
//! | puller | a thread of the host that takes messages itself | `mailbox/pull.rs` |
//! | ring | where plain subscriptions of a channel read their messages in place | `channel/ring.rs` |
//! | run | one thread serves one mailbox for a while | `run/execute.rs` |
//! | ready list, service | the mailboxes to be served, and the slots of the pool that do it | `run/ready.rs` |
//! | strand | the hub's own serial context: one order over all keys | `run/execute.rs` |
//! | publish_all | messages that all subscriptions take, or none | `publish/all.rs` |
//! | filter | what of the messages comes into the mailbox | `filter.rs` |
//! | supervision | what becomes of handlers that fail, and of their messages | `supervise/supervisor.rs`, `policy.rs` |
//! | group | subscriptions that share the messages of their pattern | `group/` |
//! | request | a message with an inbox to reply to | `request/` |
//! | topic | a key or pattern whose messages are values of one type | `topic.rs` |
//! | dead letter | a message that a subscription could not deal with | `supervise/dead.rs` |
//! | history | what was published, in memory and on disk; replay | `history/mod.rs` |
//! | notice | what the hub tells of itself, under `$SYS.` | `system/notice.rs` |
//! | counters | what has been counted | `system/stats.rs` |
//! | threshold | a limit for a figure of a registry | `system/threshold.rs` |
//! | figures | the counters of all, to be read | `system/figures.rs` |
//!
//! # Invariants
//!
//! 1. Messages of one publisher reach a subscription in the order in which they were published, unless its
//!    mailbox regards priorities, or its handler runs on several threads at once.
//! 2. A handler that is not for several threads is on one at a time. (`mailbox/mail.rs`)
//! 3. After unsubscribing with `Sync` no handler runs, and it has been dropped, once.
//! 4. Conservation: the sum over all messages of the subscriptions they matched = delivered + failed +
//!    dead-lettered + dropped + rejected + discarded + waiting + running. Every message that a full mailbox
//!    has dropped or rejected is in the lag mark of a later one.
//! 5. No lock is held while a handler runs, inline ones included, nor while one is dropped.
//! 6. Publishing takes time with the subscriptions that match, and not with the number of keys or of other
//!    subscriptions.
//!
//! # Floors
//!
//! Each file imports from floors above it in this table alone. One knot is left, of three files: a subscriber knows its
//! channel, which has a ring, which calls its subscribers.
//!
//! | floor | what is there |
//! |---|---|
//! | `keys/`, `outcome.rs`, `message.rs`, `filter.rs` | what is published |
//! | `mailbox/`: rules, mail, handler, lent; `supervise/`: supervisor, dead, failure_policy; `group/members.rs`; `system/notice.rs`; `request/requests.rs`; `run/ready.rs` | the data of each part, which knows no hub |
//! | `channel/`: segment, ring, route, router; `mailbox/subscriber.rs` | who subscribes |
//! | `history/`, but for replays | what was published |
//! | `core.rs` | the parts, as one struct |
//! | `system/tell.rs`, `supervise/burial.rs`, `mailbox/ending.rs`, `publish/enqueue.rs`, `group/dispatch.rs`, `supervise/failures.rs`, `run/`, `publish/` | what parts do with each other: functions that are given the core |
//! | `mailbox/subscribe.rs`, `request/asking.rs`, `history/replay.rs`, `system/`, `topic.rs`, `builder.rs` | what users call |
//! | `bridging.rs` | what a bridge to a broker calls |
//!
//! # What cannot be isolated
//!
//! Handlers share the process. One that crashes it, or writes where it must not, takes all down; one that
//! never returns keeps its thread of the pool until it does. A handler that panics or fails touches
//! nobody else.
//!
//! # What it rests on
//!
//! 1. **A key knows who subscribes.** It is interned: all that is kept of it is one channel, which has those who
//!    subscribe to it by name, and the channels of the patterns that match it, made anew when the set of patterns
//!    has changed (`channel/router.rs`). So publishing takes time with those who get the message, and goes from the key to
//!    the one who alone subscribes inline in one step.
//! 2. **A subscription has no slot of the pool.** The hub has a few services, which are slots, and one list of
//!    mailboxes to be served (`run/ready.rs`), with a shelf for each service, so that neighbours in memory are not
//!    served by two threads at once. A million idle subscriptions are only memory.
//! 3. **A mailbox is a value under a lock** (`mailbox/mail.rs`), held for a few steps, and never while code of the user
//!    runs. Its run takes the handler out of it, so a serial handler cannot be on two threads.
//! 4. **What is tried again stays in front.** A message that a serial handler failed at is held ahead of its
//!    mailbox until its time has come, and nothing passes it; a timer brings it back, and no thread waits. A drain
//!    of the pool, and the end of its last owner, waits for it if its time comes before the deadline.
//! 5. **Restarts are counted as Erlang/OTP counts them** (`supervise/supervisor.rs`): when a message is given up, and at every
//!    panic. Past the intensity nothing is served; all mail of the subscription, or of its supervisor's, becomes
//!    dead letters, which can be delivered again.
//! 6. **A key of a group has one owner, and a fence** (`group/balance.rs`). When the members change a key may move
//!    (rendezvous hashing moves the fewest), and the new owner gets nothing of it before the old one has finished.
//! 7. **An inbox is an entry in a table.** The hub subscribes once to all of them, inline (`request/requests.rs`).
//! 8. **The counters balance**: what matched was delivered, has failed, is a dead letter, was dropped, rejected or
//!    discarded, waits, or runs. A message is a dead letter before it is counted as one.
//! 9. **Plain subscriptions read in place**, mailboxes that the host pulls among them. A message is appended once
//!    to the channel's ring, and each of them reads it there through a cursor, many at a time. Whoever falls behind
//!    by its capacity goes on its own, and comes back when its mailbox is empty: one that is slow holds up nobody
//!    (`channel/ring.rs`). Slots are written again when nobody reads them; what is `unsafe` about that is in `queue/page.rs`.
//!    What a ring needs while messages are in it, it has only then: most of a million channels are idle.

#[cfg(feature = "nats")]
mod bridging;
mod builder;
mod channel;
mod core;
mod filter;
mod group;
mod handle;
pub mod history;
mod keys;
mod mailbox;
mod message;
#[cfg(all(test, loom))]
mod models;
mod naps;
mod outcome;
mod publish;
mod request;
mod run;
mod supervise;
mod system;
mod topic;

pub use crate::error::receipt::Receipt;
pub use crate::time::{Backoff, Jitter, Rate, Retry};
pub use builder::HubBuilder;
pub use filter::Filter;
pub use group::balance::Balance;
pub use handle::Hub;
pub use keys::key::{Key, Pattern};
pub use mailbox::failure::{Answer, Failure};
pub use mailbox::pull::{Acknowledged, Mailbox};
pub use mailbox::rules::Execution;
pub use mailbox::rules::Overflow;
pub use mailbox::subscribe::SubscriptionBuilder;
pub use mailbox::subscription::{Subscription, Unsubscribe, Unsubscribed};
pub use message::{Headers, INLINE, Message, Payload, Priority, Received, Stored};
pub use publish::publisher::{Publisher, PublisherBuilder};
pub use publish::publisher_stats::{PublisherFigures, PublisherStats};
pub use publish::publishing::{Publication, ToKey};
pub use request::asking::{Asked, PendingReply};
pub use request::requests::RequestError;
pub use supervise::dead::{DeadFilter, DeadLetter, DeadReason, DeadStats};
pub use supervise::failure_policy::Restart;
pub use supervise::failures::AfterCrash;
pub use supervise::redelivery::Redelivered;
pub use supervise::supervisor::{Intensity, OnExhausted, OnFailure, RestartStrategy, Supervisor};
pub use system::figures::HUB_LOG_TARGET;
pub use system::figures::{HubRates, HubStats, SubscriptionFigures};
pub use system::key_counts::KeyFigures;
pub use system::notice::{ErrorFilter, ErrorRecord, NoticeStats, Severity};
pub use system::stats::{HubAudit, SubscriptionStats};
#[cfg(feature = "metrics")]
pub use system::threshold::{Crossing, Threshold, Watch, WatchBuilder};
pub use topic::{Codec, Json, Text, Topic};

pub(crate) use self::mailbox::factory::{Renew, Told};
pub(crate) use self::mailbox::pull::{HostMailbox, Messages};
#[cfg_attr(not(feature = "nats"), allow(unused_imports, reason = "for the bridge"))]
pub(crate) use self::outcome::Handled;
pub(crate) use self::publish::settings::Mode;
#[cfg(feature = "nats")]
pub(crate) use self::{
    bridging::{check_crossing, is_inbox, overlap},
    history::query::covers,
};
#[cfg(feature = "capi")]
pub(crate) use self::{
    core::MAX_PAYLOAD, mailbox::failure::Advice, message::MAX_HEADERS,
    publish::all::MOST as MOST_TOGETHER,
};
