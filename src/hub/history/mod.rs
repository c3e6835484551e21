//! History: what was published, kept in memory and on disk, to be replayed and asked for.
//!
//! ```text
//!   publish ─► log ──► memory ───────────────┐
//!               │                            ├──► replay, query, export
//!               └─ timer ─► commit ─► archive┘
//!                                  └► lines of JSON
//! ```
//!
//! A hub may have several histories, each of the keys that its pattern matches. Publishers put a reference
//! to the message into a [log](self) under a short lock; everything on disk is done later, on threads of the
//! pool. `History::archive` keeps messages in a file of SQLite (feature `archive`), from which they can be
//! replayed after a restart; [`History::lines`] writes them to files that are rotated, for others to read.
//!
//! | file | what is in it |
//! |---|---|
//! | `log.rs` | positions, commits, cursors: read this first |
//! | `memory.rs`, `limits.rs` | the ring of the latest, and how much is kept |
//! | `archive.rs` | the file of SQLite |
//! | `lines.rs` | lines of JSON |
//! | `query.rs` | what can be asked for |
//! | `replay.rs` | who replays |
//! | `settings.rs`, `keep.rs` | what users ask for, and all histories of a hub |

#[cfg(feature = "archive")]
mod archive;
mod keep;
mod limits;
mod lines;
mod log;
mod memory;
mod query;
mod record;
mod replay;
mod settings;
#[cfg(test)]
mod testing;

#[cfg(feature = "archive")]
pub use archive::{Archive, ArchiveOptions, Durability};
pub use limits::Limits;
pub use lines::{LinesOptions, LinesRead, read_lines};
pub use log::WhenFull;
pub use query::Query;
pub use replay::{Replay, ReplayBuilder, ReplayFigures, ReplayFrom, ReplayMailbox, ReplayStats};
pub use settings::{History, HistoryStats};

pub(super) use keep::Histories;
pub(super) use replay::Replaying;
