//! No descriptors: a set that only rings, mailboxes, timers and tasks feed.
//!
//! Nothing here makes a system call while there is work. A leader that has none looks at its
//! doorbell for a few microseconds, during which it can be called without a system call, and then
//! sleeps on the doorbell's own futex.
//!
//! Looking is worth its price only when work comes in bursts. After [`VAIN`] looks in a row that
//! nobody answered, the next [`REST`] waits sleep at once: a lone event then finds a leader that
//! has not wasted its time slice.

use super::Events;
use super::doorbell::{Doorbell, Wait};
use crate::sync::SpinWait;
use core::time::Duration;
use std::io;

/// Rounds of one look; each pauses twice as long as the one before, so this is about 3 µs.
const ROUNDS: u32 = if cfg!(loom) { 1 } else { 7 };
const VAIN: u8 = 2;
const REST: u8 = 14;

/// A set without descriptors.
#[derive(Debug)]
pub(crate) struct RingSource {
    bell: Doorbell,
}

impl RingSource {
    pub(super) fn new() -> Self {
        Self { bell: Doorbell::new() }
    }

    /// Why nothing can be registered here.
    pub(super) fn refusal() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "this handle set has no descriptors")
    }

    #[inline]
    pub(super) fn wait(&self, events: &mut Events, timeout: Option<u64>) -> usize {
        if timeout != Some(0) && !self.look(events) {
            self.bell.fall_asleep(timeout.map(Duration::from_nanos));
        }
        events.set_rung(self.bell.is_rung());
        events.len()
    }

    /// Looks out for a ring. True if one came.
    fn look(&self, events: &mut Events) -> bool {
        if events.vain_looks >= VAIN {
            events.vain_looks = (events.vain_looks + 1) % (VAIN + REST);
            return self.bell.is_rung();
        }
        let mut spin = SpinWait::new();
        let rung = (0..ROUNDS).any(|_| {
            spin.back_off();
            self.bell.is_rung()
        });
        events.vain_looks = if rung { 0 } else { events.vain_looks + 1 };
        rung
    }

    #[inline]
    pub(super) fn arm(&self) {
        self.bell.arm(Wait::Looking);
    }

    #[inline]
    pub(super) fn ring(&self) -> bool {
        let sound = self.bell.ring();
        if sound {
            self.bell.sound();
        }
        sound
    }

    pub(super) fn bell(&self) -> &Doorbell {
        &self.bell
    }
}
