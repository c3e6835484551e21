//! Space on file systems.

use std::io;
use std::path::Path;

/// In bytes.
pub(crate) struct Space {
    /// What processes without privileges may still use.
    pub(crate) free: u64,
    pub(crate) total: u64,
}

/// Of the file system that `path` is on.
pub(crate) fn space(path: &Path) -> io::Result<Space> {
    let stat = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Space { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
}
