//! Deadlines: the timer wheel that each handle set's leader turns.

mod wheel;

pub(crate) use wheel::{Wheel, WheelEntries, WheelLinks};
