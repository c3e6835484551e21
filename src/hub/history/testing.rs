//! What the unit tests of histories share.

use crate::hub::keys::key::Key;
use crate::hub::message::{Headers, Payload, Priority, Stored};
#[cfg(not(loom))]
use std::{fs, path::PathBuf};

/// A message without headers, of normal priority.
pub(super) fn plain(sequence: u64, time: u64, key: &str, payload: &[u8]) -> Stored {
    Stored {
        sequence,
        time,
        key: Key::detached(key),
        headers: Headers::NONE,
        payload: Payload::new(payload),
        priority: Priority::Normal,
    }
}

#[cfg(not(loom))]
/// A folder of its own that goes with it.
pub(super) struct Folder(pub(super) PathBuf);

#[cfg(not(loom))]
impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("paceline-history-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _of_a_run_before = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

#[cfg(not(loom))]
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
