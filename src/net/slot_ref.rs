//! How a connection, a listener or a datagram socket reaches its slot in the pool, which it does not keep alive.

use crate::pool::{Key, Shared, Slot, Timer};
use crate::source::Ready;
use crate::sys::fork::ForkGuard;
use core::time::Duration;
use std::sync::{Arc, OnceLock, Weak};

/// A pool in which something of ours lives, and which that does not keep alive.
pub(crate) struct PoolRef {
    shared: Weak<Shared>,
    fork: ForkGuard,
}

impl PoolRef {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), fork: shared.fork_guard() }
    }

    /// Makes a slot runnable; a running one runs again.
    pub(crate) fn poke(&self, key: Option<Key>) {
        // Readiness is a hint, so a wrong one does no harm: the run finds out.
        self.activate(key, |slot, generation| slot.ready(generation, Ready::WRITABLE));
    }

    fn activate(&self, key: Option<Key>, change: impl FnOnce(&Slot, u32) -> bool) {
        if self.is_forked() {
            return;
        }
        let (Some(shared), Some(key)) = (self.shared.upgrade(), key) else { return };
        if change(shared.ready.handles.slots.slot(key.index), key.generation) {
            shared.push_activation(key.index);
        }
    }

    /// Cancels a timer there.
    pub(crate) fn cancel(&self, timer: Key) {
        if !self.is_forked()
            && let Some(shared) = self.shared.upgrade()
        {
            Timer::cancel_key(&shared, timer);
        }
    }

    /// Whether this is a child of the process that built the pool. Then no lock may be taken: whoever
    /// held it in the parent holds it here for ever.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.fork.is_child()
    }
}

/// Where one of few things of ours lives.
pub(crate) struct SlotRef {
    pool_ref: PoolRef,
    key: OnceLock<Key>,
}

impl SlotRef {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { pool_ref: PoolRef::new(shared), key: OnceLock::new() }
    }

    pub(crate) fn set(&self, key: Key) {
        self.key.get_or_init(|| key);
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.key.get().copied()
    }

    /// Makes the slot runnable; a running one runs again.
    pub(crate) fn poke(&self) {
        self.pool_ref.poke(self.key());
    }

    /// Ends a pause, and makes the slot runnable.
    pub(crate) fn resume(&self) {
        let resume = |slot: &Slot, generation| slot.resume(generation) == Some(true);
        self.pool_ref.activate(self.key(), resume);
        self.poke();
    }

    /// See [`PoolRef::is_forked`].
    pub(crate) fn is_forked(&self) -> bool {
        self.pool_ref.is_forked()
    }

    /// As [`Shared::end_here`], for what lives here.
    pub(crate) fn end_here(&self) {
        if let (Some(shared), Some(key)) = (self.pool_ref.shared.upgrade(), self.key()) {
            shared.end_here(key);
        }
    }

    /// As [`Shared::wait_outside`], for what lives here.
    pub(crate) fn wait_outside(&self, ended: impl FnMut(Duration) -> bool) {
        if let Some(shared) = self.pool_ref.shared.upgrade() {
            shared.wait_outside(|| self.key(), ended);
        }
    }
}
