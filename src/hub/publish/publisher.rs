//! Publishers with a name: what they may publish, how often, and what they have published.
//!
//! This guards against mistakes. It is no boundary of security: all of it is one address space, and
//! whoever has the hub can publish without a publisher.

use crate::error::receipt::Receipt;
use crate::error::{Error, Result};
use crate::hub::handle::Hub;
use crate::hub::keys::key::{Key, Pattern};
use crate::hub::message::{Headers, Payload, Priority};
use crate::hub::publish::publisher_stats::{PublisherCounts, PublisherInner, PublisherStats};
use crate::hub::publish::publishing::{
    ToKey, admit, check_room, check_size, publish, publish_batch, to_result,
};
use crate::hub::publish::settings::{Mode, PublishOptions};
use crate::hub::system::notice::Burst;
use crate::hub::system::tell::lost;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::time::{Rate, Tokens};
use core::fmt;
use std::sync::{Arc, PoisonError};

/// Settings of a [`Publisher`].
#[must_use = "a builder does nothing until `build`"]
pub struct PublisherBuilder<'a> {
    hub: &'a Hub,
    name: &'a str,
    quota: Option<Rate>,
    allowed: Vec<&'a str>,
    if_full: Mode,
}

impl<'a> PublisherBuilder<'a> {
    /// How many messages it may publish in which time; default: no limit.
    pub fn quota(mut self, rate: Rate) -> Self {
        self.quota = Some(rate);
        self
    }

    /// Allows keys that match this pattern. Called several times, it allows those of all of them; never
    /// called, all.
    pub fn allow(mut self, pattern: &'a str) -> Self {
        self.allowed.push(pattern);
        self
    }

    /// Does not wait for room in mailboxes that [let publishers wait](crate::hub::Overflow::Block): they refuse. Default: it
    /// waits, where that is allowed.
    pub fn no_wait(mut self) -> Self {
        self.if_full = Mode::NoWait;
        self
    }

    /// A publisher with these settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern or rate.
    pub fn build(self) -> Result<Publisher> {
        let allowed = self.allowed.into_iter().map(Pattern::new).collect::<Result<_>>()?;
        let tokens = self.quota.map(Tokens::new).transpose()?;
        let inner = PublisherInner {
            name: self.name.into(),
            allowed,
            tokens,
            if_full: self.if_full,
            counts: PublisherCounts::default(),
            refused: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
            burst: Burst::default(),
        };
        let inner = Arc::new(inner);
        let publishers = &self.hub.core.publishers;
        let mut publishers = publishers.lock().unwrap_or_else(PoisonError::into_inner);
        if publishers.len() == publishers.capacity() {
            publishers.retain(|publisher| publisher.strong_count() > 0);
        }
        publishers.push(Arc::downgrade(&inner));
        drop(publishers);
        Ok(Publisher { hub: self.hub.clone(), inner })
    }
}

/// A publisher with a name; clones are the same one. Any thread.
///
/// ```
/// use paceline::{Error, Pool, hub::Hub};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let sensor = hub.publisher("sensor 1").allow("temperature.*").build()?;
/// sensor.publish("temperature.roof", "21.5")?;
/// assert!(matches!(sensor.publish("orders.eu", "x"), Err(Error::Invalid { .. })));
/// assert_eq!(sensor.stats().refused, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Publisher {
    hub: Hub,
    inner: Arc<PublisherInner>,
}

impl Publisher {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// As [`Hub::publish`].
    ///
    /// # Errors
    /// As there; [`Error::Invalid`] for a key that is not allowed, [`Error::Full`] beyond the quota.
    #[inline]
    pub fn publish(&self, key: impl ToKey, payload: impl Into<Payload>) -> Result<Receipt> {
        let options = PublishOptions { if_full: self.inner.if_full, ..PublishOptions::default() };
        self.publish_draft(&key, &mut payload.into(), &options)
    }

    /// As [`publish`](Self::publish), with headers and a priority.
    ///
    /// # Errors
    /// As there.
    pub fn publish_with(
        &self,
        key: impl ToKey,
        mut payload: Payload,
        headers: Headers,
        priority: Priority,
    ) -> Result<Receipt> {
        let options = PublishOptions { headers, priority, if_full: self.inner.if_full };
        self.publish_draft(&key, &mut payload, &options)
    }

    /// The same, with what is done where mailboxes are full.
    pub(crate) fn publish_as(
        &self,
        key: &Key,
        mut payload: Payload,
        headers: Headers,
        priority: Priority,
        if_full: Mode,
    ) -> Result<Receipt> {
        let if_full = self.inner.if_full.max(if_full);
        self.publish_draft(key, &mut payload, &PublishOptions { headers, priority, if_full })
    }

    #[inline]
    fn publish_draft(
        &self,
        key: &impl ToKey,
        payload: &mut Payload,
        options: &PublishOptions,
    ) -> Result<Receipt> {
        let published = self.resolve(key, |key| self.publish_key(key, payload, options));
        self.note_if_refused(&published);
        published
    }

    /// Not a part of each user's function: as `Core::publish_with`.
    fn publish_key(
        &self,
        key: &Key,
        payload: &mut Payload,
        options: &PublishOptions,
    ) -> Result<Receipt> {
        let core = &*self.hub.core;
        check_size(core, payload.len())?;
        check_room(core, key, options)?;
        self.take_token()?;
        admit(core, key)?;
        let published = publish(core, key, payload, options);
        if let Some(receipt) = Receipt::of(&published) {
            self.note(1, receipt.enqueued, receipt.lost());
        }
        published
    }

    /// As [`Hub::publish_batch`]. Each message takes of the quota; those before the first that is refused are
    /// published.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_batch<P: Into<Payload>>(
        &self,
        key: impl ToKey,
        payloads: impl IntoIterator<Item = P>,
    ) -> Result<Receipt> {
        self.publish_batch_as(key, payloads, Mode::Wait)
    }

    /// The same, with what is done where mailboxes are full.
    pub(crate) fn publish_batch_as<P: Into<Payload>>(
        &self,
        key: impl ToKey,
        payloads: impl IntoIterator<Item = P>,
        if_full: Mode,
    ) -> Result<Receipt> {
        let if_full = self.inner.if_full.max(if_full);
        let options = PublishOptions { if_full, ..PublishOptions::default() };
        let published = self.resolve(&key, |key| {
            let permit = || self.take_token();
            let (told, count, end) = publish_batch(&self.hub.core, key, payloads, &options, permit);
            self.note(count, told.receipt.enqueued, told.receipt.lost());
            end.and_then(|()| to_result(&self.hub.core, told))
        });
        self.note_if_refused(&published);
        published
    }

    /// Its counts.
    pub fn stats(&self) -> PublisherStats {
        self.inner.stats()
    }

    /// Lends the key, if it may be published with here and now.
    #[inline]
    fn resolve<R>(&self, key: &impl ToKey, f: impl FnOnce(&Key) -> Result<R>) -> Result<R> {
        let core = &self.hub.core;
        core.check_open()?;
        key.with_key(&self.hub, |key| {
            if !self.inner.allowed.is_empty() {
                self.check_allowed(key)?;
            }
            f(key)
        })
    }

    fn check_allowed(&self, key: &Key) -> Result<()> {
        let allowed = &self.inner.allowed;
        if allowed.iter().any(|pattern| pattern.matches(key.as_str())) {
            return Ok(());
        }
        let list: Vec<_> = allowed.iter().map(Pattern::as_str).collect();
        let rule = format!("one that {:?} may publish: {}", self.name(), list.join(", "));
        Err(Error::invalid("key", format!("{:?}", key.as_str()), rule))
    }

    #[inline]
    fn take_token(&self) -> Result<()> {
        let Some(tokens) = &self.inner.tokens else { return Ok(()) };
        let taken = tokens.take(self.hub.core.shared.now());
        taken.map_err(|_| {
            self.inner.beyond.fetch_add(1, Relaxed);
            lost(&self.hub.core, &self.inner);
            Error::Full { what: "tokens of the publisher's quota", capacity: tokens.burst() }
        })
    }

    #[inline]
    fn note(&self, published: u64, enqueued: u64, lost: u64) {
        self.inner.counts.add(published, enqueued, lost);
    }

    /// PublisherCounts what was not published. What a mailbox has refused was; what was only tried comes again.
    #[inline]
    fn note_if_refused(&self, published: &Result<Receipt>) {
        if Receipt::of(published).is_none() && !matches!(published, Err(Error::TimedOut)) {
            self.inner.refused.fetch_add(1, Relaxed);
        }
    }
}

impl Hub {
    /// Settings of a publisher of this name, which is for people to read.
    pub fn publisher<'a>(&'a self, name: &'a str) -> PublisherBuilder<'a> {
        let allowed = Vec::new();
        PublisherBuilder { hub: self, name, quota: None, allowed, if_full: Mode::Wait }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("name", &self.name()).finish_non_exhaustive()
    }
}
