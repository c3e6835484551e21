//! Channels: who subscribes to a pattern, the routes from keys to them, and the ring that they share.

pub(in crate::hub) mod appending;
pub(in crate::hub) mod cursor;
pub(in crate::hub) mod reading;
pub(in crate::hub) mod ring;
pub(in crate::hub) mod route;
pub(in crate::hub) mod router;
pub(in crate::hub) mod segment;
