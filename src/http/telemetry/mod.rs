//! What is counted, logged and reported of requests.

pub(crate) mod access_log;
pub(crate) mod counters;
pub(crate) mod figures;
pub(crate) mod route_times;
pub(crate) mod stats;

use self::access_log::Opened;
use self::counters::Counters;
use crate::http::message::refusal::Refusal;
use crate::log::{Component, Level, Logger, Record, faults};
use crate::net::Address;
use crate::pool::{discard, message_of};
use core::any::Any;
use core::time::Duration;

pub(crate) type EndHook = dyn Fn(&RequestEnd<'_>) + Send + Sync;

/// What has become of a request; see [`HttpBuilder::on_end`](crate::http::HttpBuilder::on_end).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestEnd<'a> {
    /// As it was sent: `GET`. Empty if it is not known, as of a malformed request.
    pub method: &'a str,
    /// As it was sent: `/hello/you?loud=1`. Empty if it is not known; one that was refused for its length is cut.
    pub target: &'a str,
    /// The status of the answer. None: no whole answer has left, as the connection has ended before, or its
    /// body broke off.
    pub status: Option<u16>,
    /// How long it took from the head, or from the first bytes of a head that came in parts, until the answer was
    /// complete. What the peer has not taken yet may still be queued.
    pub duration: Duration,
    /// The other end.
    pub peer: &'a Address,
}

/// What times a request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Timing {
    /// By the clock; 0: it is not measured.
    pub(crate) began: u64,
    /// The number of its route; beyond all: it has none.
    pub(crate) route: u32,
}

/// What is counted and logged of a server's requests, and who is called at their end.
pub(crate) struct Telemetry {
    pub(crate) counters: Counters,
    pub(crate) log: Logger,
    pub(crate) on_end: Option<Box<EndHook>>,
    pub(crate) access_log: Option<Opened>,
}

impl Telemetry {
    /// Whether what is known of a request is reported at its end.
    #[inline]
    pub(crate) fn notes(&self) -> bool {
        self.reports_ends() || self.log.is_on(Component::Http, Level::Error)
    }

    /// Whether each end of a request is reported.
    #[inline]
    pub(crate) fn reports_ends(&self) -> bool {
        self.on_end.is_some() || self.access_log.is_some()
    }

    /// A request was answered in a handler's place, or for want of an answer. `name` says which request it is.
    #[cold]
    pub(crate) fn refused(&self, refusal: Refusal, peer: &Address, name: impl Fn(&mut Record)) {
        self.counters.refused(refusal);
        if refusal == Refusal::Unanswered {
            // A fault of the handler's, which nobody else tells of: by `?` it drops the response, too.
            if let Some(says) = faults::take_text() {
                self.counters.panicked();
                return self.log.error(Component::Http, "handler.panicked", |record| {
                    record.with("peer", peer.to_string()).say(says);
                    name(record);
                });
            }
            return self.log.warn(Component::Http, "request.unanswered", |record| {
                let said = "its response was dropped without an answer: the client got a 500";
                record.with("peer", peer.to_string()).say(said);
                name(record);
            });
        }
        self.log.debug(Component::Http, "request.refused", |record| {
            record
                .with("status", refusal.status())
                .with("peer", peer.to_string())
                .say(format!("{refusal:?}"));
            name(record);
        });
    }

    /// Code of the user has panicked. Drops what it panicked with.
    #[cold]
    pub(crate) fn panicked(
        &self,
        panic: Box<dyn Any + Send>,
        peer: &Address,
        name: impl Fn(&mut Record),
    ) {
        self.counters.panicked();
        self.log.error(Component::Http, "handler.panicked", |record| {
            record.with("peer", peer.to_string()).say(message_of(&*panic));
            name(record);
        });
        discard(panic);
    }

    /// Code of the user has failed elsewhere.
    #[cold]
    pub(crate) fn failed(&self, peer: &Address, name: impl Fn(&mut Record)) {
        self.counters.panicked();
        // Whoever has said so knows it.
        let heard = true;
        self.log.log_unless(heard, Component::Http, Level::Error, "handler.panicked", |record| {
            record.with("peer", peer.to_string()).say("it has failed elsewhere");
            name(record);
        });
    }
}
