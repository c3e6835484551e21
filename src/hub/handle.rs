//! The hub itself: a handle to what its parts share.

use crate::hub::core::Core;
use crate::pool::Pool;
use core::fmt;
use std::sync::Arc;

/// An event hub over a [`Pool`], whose threads run its handlers beside everything else. Clones are the same
/// hub.
///
/// ```
/// use paceline::Pool;
/// use paceline::hub::{Hub, Message};
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let hub = Hub::new(&pool)?;
/// let (tell, told) = std::sync::mpsc::channel();
/// let _orders = hub.subscribe("orders.*.created", move |message: &Message<'_>| {
///     tell.send(message.key().to_string()).unwrap();
/// })?;
/// let receipt = hub.publish("orders.eu.created", "42")?;
/// assert_eq!((receipt.matched, receipt.enqueued), (1, 1));
/// assert_eq!(told.recv().unwrap(), "orders.eu.created");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Hub {
    pub(in crate::hub) pool: Pool,
    pub(in crate::hub) core: Arc<Core>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("published", &self.core.published()).finish_non_exhaustive()
    }
}
