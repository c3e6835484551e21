//! What a pool's figures are read from.

use crate::Pool;
use crate::metrics::{Registry, SystemFigures};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The file systems that are told of, and the registry of a pool without a worker pool.
#[derive(Default)]
pub(super) struct Figures {
    disks: Arc<Mutex<Vec<PathBuf>>>,
    own: OnceLock<Registry>,
}

impl Figures {
    pub(super) fn registry(&self, pool: &Pool) -> &Registry {
        self.own.get_or_init(|| {
            let registry = Registry::new();
            self.attach(&registry, pool, pool.shared().log.pool());
            registry
        })
    }

    /// Puts the figures of the pool, called `name`, of the process, and of file systems into a registry.
    pub(super) fn attach(&self, registry: &Registry, pool: &Pool, name: &str) {
        SystemFigures::new().attach(registry);
        pool.attach_metrics(registry, name);
        let disks = Arc::clone(&self.disks);
        registry.collect(move |collector| {
            lock(&disks).iter().for_each(|path| collector.disk(path));
            true
        });
    }

    pub(super) fn add_disk(&self, path: &Path) {
        let mut disks = lock(&self.disks);
        if !disks.iter().any(|other| other == path) {
            disks.push(path.into());
        }
    }
}

fn lock(disks: &Mutex<Vec<PathBuf>>) -> MutexGuard<'_, Vec<PathBuf>> {
    disks.lock().unwrap_or_else(PoisonError::into_inner)
}
