//! Topics: keys whose messages are values of one type.
//!
//! A [`Codec`] turns values into bytes and back. What cannot be decoded is a failure of the subscription
//! like any other, which no other attempt would mend: by default it becomes a dead letter, and the handler is
//! not called.

use crate::error::receipt::Receipt;
use crate::error::{Error, Result};
use crate::hub::handle::Hub;
use crate::hub::keys::key::{self, Key, Pattern};
use crate::hub::mailbox::failure::{Answer, Failure};
use crate::hub::mailbox::subscribe::SubscriptionBuilder;
use crate::hub::mailbox::subscription::Subscription;
use crate::hub::message::{Message, Payload};
use crate::hub::publish::publishing::ToKey;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

/// Turns values into bytes and back. It may be used by several threads at once.
pub trait Codec<T>: Send + Sync + 'static {
    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// Why it has none.
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Result<(), Failure>;

    /// The value of these bytes.
    ///
    /// # Errors
    /// Why they are none.
    fn decode(&self, bytes: &[u8]) -> Result<T, Failure>;
}

/// Text as UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Text;

impl Codec<String> for Text {
    fn encode(&self, value: &String, into: &mut Vec<u8>) -> Result<(), Failure> {
        into.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, Failure> {
        core::str::from_utf8(bytes).map(str::to_owned).map_err(Failure::permanent)
    }
}

/// JSON, by serde.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Json;

impl<T: serde::Serialize + serde::de::DeserializeOwned> Codec<T> for Json {
    fn encode(&self, value: &T, into: &mut Vec<u8>) -> Result<(), Failure> {
        serde_json::to_writer(into, value).map_err(Failure::permanent)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(bytes).map_err(Failure::permanent)
    }
}

/// A key, or a pattern, whose messages are values of one type. Clones are the same topic.
///
/// ```
/// use paceline::Pool;
/// use paceline::hub::{Hub, Message, Text};
///
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let greetings = hub.topic("greetings", Text)?;
/// let (tell, told) = std::sync::mpsc::channel();
/// let _subscription = greetings.subscribe(move |greeting: String, _: &Message<'_>| {
///     tell.send(greeting).unwrap();
/// })?;
/// assert!(greetings.publish(&"hello".to_owned())?.is_complete());
/// assert_eq!(told.recv().unwrap(), "hello");
/// # Ok(()) }
/// ```
pub struct Topic<T, C> {
    hub: Hub,
    pattern: Pattern,
    /// Unless there are wildcards in it.
    key: Option<Key>,
    codec: Arc<C>,
    values: PhantomData<fn(T) -> T>,
}

impl Hub {
    /// The topic of a key, or of all keys that a pattern matches.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern.
    pub fn topic<T, C: Codec<T>>(&self, pattern: &str, codec: C) -> Result<Topic<T, C>> {
        let pattern = Pattern::new(pattern)?;
        let is_own = pattern.is_literal() && !key::is_reserved(pattern.as_str());
        let key = if is_own { Some(self.key(pattern.as_str())?) } else { None };
        Ok(Topic { hub: self.clone(), pattern, key, codec: Arc::new(codec), values: PhantomData })
    }
}

thread_local! {
    /// What values are encoded in, so that small ones cost no allocation.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The most bytes that are kept for the next value.
const KEPT: usize = 1 << 16;

impl<T, C: Codec<T>> Topic<T, C> {
    /// Publishes a value with the topic's key.
    ///
    /// # Errors
    /// As [`Hub::publish`]; [`Error::Invalid`] if the topic has wildcards, or its codec does not encode the
    /// value.
    pub fn publish(&self, value: &T) -> Result<Receipt> {
        match &self.key {
            Some(key) => self.publish_as(key, value),
            None => {
                let pattern = format!("{:?}", self.pattern.as_str());
                let allowed = "a key that one may publish with; see `publish_to`";
                Err(Error::invalid("the topic's key", pattern, allowed))
            }
        }
    }

    /// Publishes a value with one of the keys that the topic's pattern matches.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and [`Error::Invalid`] for another key.
    pub fn publish_to(&self, key: impl ToKey + AsRef<str>, value: &T) -> Result<Receipt> {
        if !self.pattern.matches(key.as_ref()) {
            let allowed =
                format!("one that the topic's pattern {:?} matches", self.pattern.as_str());
            return Err(Error::invalid("key", format!("{:?}", key.as_ref()), allowed));
        }
        self.publish_as(key, value)
    }

    fn publish_as(&self, key: impl ToKey, value: &T) -> Result<Receipt> {
        let mut buffer = BUFFER.take();
        buffer.clear();
        let encoded = self.codec.encode(value, &mut buffer);
        let payload = Payload::new(&buffer);
        if buffer.capacity() <= KEPT {
            BUFFER.set(buffer);
        }
        encoded.map_err(|failure| {
            let value = format!("refused ({})", failure.message());
            Error::invalid("the value", value, "one that the topic's codec encodes")
        })?;
        self.hub.publish(key, payload)
    }

    /// Subscribes with default settings.
    ///
    /// # Errors
    /// As [`SubscriptionBuilder::serve`].
    pub fn subscribe<F, A>(&self, handler: F) -> Result<Subscription>
    where
        F: FnMut(T, &Message<'_>) -> A + Send + 'static,
        A: Answer + 'static,
        T: 'static,
    {
        self.subscription().serve(self.handler(handler))
    }

    /// Settings of a subscription, to be served by a [`handler`](Self::handler).
    pub fn subscription(&self) -> SubscriptionBuilder<'_> {
        self.hub.subscription(self.pattern.as_str())
    }

    /// A handler of messages, made of one of values.
    pub fn handler<F, A>(
        &self,
        mut handler: F,
    ) -> impl FnMut(&Message<'_>) -> Result<(), Failure> + Send + use<F, A, T, C>
    where
        F: FnMut(T, &Message<'_>) -> A + Send + 'static,
        A: Answer + 'static,
        T: 'static,
    {
        let codec = Arc::clone(&self.codec);
        move |message: &Message<'_>| {
            let value = codec.decode(message.payload())?;
            handler(value, message).into_failure().map_or(Ok(()), Err)
        }
    }
}

impl<T, C> Clone for Topic<T, C> {
    fn clone(&self) -> Self {
        Self {
            hub: self.hub.clone(),
            pattern: self.pattern.clone(),
            key: self.key.clone(),
            codec: Arc::clone(&self.codec),
            values: PhantomData,
        }
    }
}

impl<T, C> fmt::Debug for Topic<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("pattern", &self.pattern.as_str()).finish_non_exhaustive()
    }
}
