//! The timer of a connection: one at most, however many times run.

use super::connection::Connection;
use crate::error::Error;
use crate::net::calls::Calls;
use crate::pool::{Key, Timer};
use crate::sys::clock;
use core::time::Duration;
use std::sync::Arc;

pub(crate) const NEVER: u64 = u64::MAX;

/// A timer of the pool, and when it is due: `NEVER` if there is none.
pub(crate) struct Alarm {
    timer: Key,
    pub(crate) at: u64,
}

impl Alarm {
    pub(crate) const NONE: Self = Self { timer: Key { index: 0, generation: 0 }, at: NEVER };

    pub(crate) fn cancel(&mut self, connection: &Connection) {
        let alarm = core::mem::replace(self, Alarm::NONE);
        if alarm.at != NEVER {
            connection.service.pool_ref.cancel(alarm.timer);
        }
    }

    /// In place of the one before.
    pub(crate) fn set(&mut self, connection: &Arc<Connection>, at: u64) {
        self.cancel(connection);
        let weak = Arc::downgrade(connection);
        let ring = move || {
            if let Some(connection) = weak.upgrade() {
                connection.call(Calls::ALARM);
            }
        };
        let delay = Duration::from_nanos(at.saturating_sub(clock::now()));
        let service = &connection.service;
        match service.pool().map(|pool| Timer::after(pool.shared(), delay, ring, |_| ())) {
            Some(Ok(timer)) => *self = Alarm { timer: timer.key(), at },
            // The next run tries again.
            Some(Err((Error::Full { .. }, _))) => service.note_untimed(),
            // The pool ends, or the time is longer than any timer's.
            _ => {}
        }
    }
}
