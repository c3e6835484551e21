//! Tests with real threads, and models of every race under loom.

#[cfg(not(loom))]
mod activations;
#[cfg(not(loom))]
mod erased;
#[cfg(not(loom))]
mod lanes;
#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod mpmc;
#[cfg(not(loom))]
mod standalone;

#[cfg(not(loom))]
mod counted {
    //! A value that counts how often it was dropped.
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[derive(Clone, Default)]
    pub(super) struct Drops(Arc<AtomicUsize>);

    impl Drops {
        pub(super) fn value(&self) -> Counted {
            Counted(self.0.clone())
        }

        pub(super) fn count(&self) -> usize {
            self.0.load(Relaxed)
        }
    }

    pub(super) struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
