//! A subscription, and how it ends.

use crate::error::{Error, Result};
use crate::hub::core::Core;
use crate::hub::mailbox::closing::close;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::run::depth::is_in_handler;
use crate::hub::system::stats::SubscriptionStats;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// How to unsubscribe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Unsubscribe {
    /// What waits is discarded, and a handler that runs is not waited for.
    #[default]
    Async,
    /// Takes no more messages; those that wait are delivered still, for another attempt too. Dropping the
    /// [`Subscription`] discards what is left of them; see [`Subscription::drain`].
    Drain,
    /// As `Async`, and waits until no handler runs. Inside a handler, and on a thread of the pool, it does not wait.
    Sync,
}

/// What unsubscribing has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Unsubscribed {
    /// No handler runs or will run, and it has been dropped.
    Now,
    /// The handler runs, or messages are left to be delivered; it is dropped after the last.
    Later,
}

/// A subscription. Dropping it unsubscribes as [`Unsubscribe::Sync`]: messages that wait are discarded, and on a thread
/// outside the pool the drop returns when no handler runs and the handler has been dropped. Inside a handler, and on a
/// thread of the pool, it does not wait; nor does it after `unsubscribe(Unsubscribe::Async)`.
/// [`detach`](Self::detach) keeps the subscription.
///
/// ```
/// use paceline::{Pool, hub::{Hub, Message, Unsubscribe, Unsubscribed}};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let subscription = hub.subscribe("a", |_: &Message<'_>| println!("it came"))?;
/// hub.publish("a", "x")?;
/// // Takes nothing more, and returns when no handler runs: what its handler uses may go now.
/// assert_eq!(subscription.unsubscribe(Unsubscribe::Sync)?, Unsubscribed::Now);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    pub(in crate::hub) core: Arc<Core>,
    pub(in crate::hub) subscriber: Arc<Subscriber>,
    pub(in crate::hub) detached: bool,
}

impl Subscription {
    /// Its number, which no other subscription of the hub has or had.
    pub fn id(&self) -> u64 {
        self.subscriber.id
    }

    /// What it has subscribed to.
    pub fn pattern(&self) -> &str {
        self.subscriber.channel.pattern()
    }

    /// Its counts, as they are now.
    pub fn stats(&self) -> SubscriptionStats {
        SubscriptionStats::of(&self.subscriber)
    }

    /// How long messages took from publishing to its handler, each attempt by itself. None unless it is
    /// [measured](crate::hub::SubscriptionBuilder::measured).
    #[cfg(feature = "metrics")]
    pub fn latency(&self) -> Option<crate::metrics::Distribution> {
        self.subscriber.policy().and_then(|policy| policy.latency())
    }

    /// Ends the subscription; any thread, any number of times.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let ended = close(&self.subscriber, &self.core, how == Unsubscribe::Drain);
        let waits = how == Unsubscribe::Sync && !is_in_handler() && !self.core.is_inside();
        match ended || (waits && self.wait_for_end()) {
            true => Ok(Unsubscribed::Now),
            false => Ok(Unsubscribed::Later),
        }
    }

    /// Ends the subscription as [`Unsubscribe::Drain`], and waits for up to `within` until all that waits has been
    /// handled, what waits for another attempt included. What is left then is discarded; a handler that still
    /// runs is not waited for. Says how many messages had not begun by then: 0 if all were handled.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] inside a handler or on a thread of the pool; [`Error::Forked`].
    pub fn drain(&self, within: Duration) -> Result<u64> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        if is_in_handler() || self.core.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        let before = self.stats().discarded;
        close(&self.subscriber, &self.core, true);
        let deadline = Instant::now().checked_add(within);
        let has_ended = || self.subscriber.mail().phase() == Phase::Ended;
        if !self.core.wait_for(deadline, has_ended) {
            close(&self.subscriber, &self.core, false);
        }
        // What a run has taken and not begun is discarded when the handler returns.
        let now = self.stats();
        Ok(now.discarded - before + now.waiting)
    }

    fn wait_for_end(&self) -> bool {
        self.core.wait_until(|| self.subscriber.mail().phase() == Phase::Ended);
        true
    }

    /// The same one, which does not end when this is dropped.
    pub(crate) fn share(&self) -> Self {
        let (core, subscriber) = (Arc::clone(&self.core), Arc::clone(&self.subscriber));
        Self { core, subscriber, detached: true }
    }

    /// Lets it last as long as its hub. A handler that has a clone of the hub, to reply with, say, makes the hub last as
    /// long as itself, and so both would for ever: keep the subscription of such a handler, and drop it at the end.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // One that was ended by name before is not waited for.
        if !self.detached && !self.core.shared.is_forked() && !self.subscriber.is_closing() {
            let pulled = self.subscriber.puller().is_some();
            let how = if pulled { Unsubscribe::Async } else { Unsubscribe::Sync };
            let _ended = self.unsubscribe(how);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id())
            .field("pattern", &self.pattern())
            .finish_non_exhaustive()
    }
}
