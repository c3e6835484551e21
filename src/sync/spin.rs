//! Busy waiting, bounded.

/// Busy waiting with a bound: each round pauses twice as long as the one before, then yields the
/// CPU, then says that it is time to park.
///
/// It is for waits on another *running* thread. Waiting for the kernel or for user code parks.
#[derive(Debug, Default)]
pub(crate) struct SpinWait {
    round: u32,
}

impl SpinWait {
    /// 2^0 … 2^6 pauses: about 3 µs in all on current machines.
    const PAUSE_ROUNDS: u32 = 7;
    const YIELD_ROUNDS: u32 = 3;

    pub(crate) const fn new() -> Self {
        Self { round: 0 }
    }

    /// Waits one round. Returns false once the wait has been long enough to park instead.
    #[inline]
    pub(crate) fn spin(&mut self) -> bool {
        if self.round >= Self::PAUSE_ROUNDS + Self::YIELD_ROUNDS {
            return false;
        }
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        if self.round < Self::PAUSE_ROUNDS {
            for _ in 0..1u32 << self.round {
                core::hint::spin_loop();
            }
        } else {
            std::thread::yield_now();
        }
        self.round += 1;
        true
    }

    /// Backs off after a lost CAS: pauses, never yields, never gives up.
    #[inline]
    pub(crate) fn back_off(&mut self) {
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        for _ in 0..1u32 << self.round.min(Self::PAUSE_ROUNDS - 1) {
            core::hint::spin_loop();
        }
        self.round += 1;
    }
}
