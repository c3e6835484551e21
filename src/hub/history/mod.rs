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
//! | `log.rs`, `pace.rs` | positions, commits, cursors: read this first; when a commit is made |
//! | `memory.rs`, `limits.rs` | the ring of the latest, and how much is kept |
//! | `archive.rs` | the file of SQLite |
//! | `lines.rs` | lines of JSON |
//! | `query.rs` | what can be asked for |
//! | `replay.rs` | who replays |
//! | `settings.rs`, `keep.rs` | what users ask for, and all histories of a hub |

#[cfg(feature = "archive")]
mod archive;
pub(in crate::hub) mod asking;
pub(in crate::hub) mod keep;
mod limits;
mod lines;
mod log;
mod memory;
mod pace;
pub(in crate::hub) mod query;
mod record;
pub(in crate::hub) mod replay;
mod replay_mailbox;
pub(in crate::hub) mod replay_stats;
pub(in crate::hub) mod settings;
#[cfg(test)]
mod testing;
mod turn;

#[cfg(feature = "archive")]
pub use archive::{Archive, ArchiveOptions, Durability};
pub use limits::Limits;
pub use lines::{LinesOptions, LinesRead, read_lines};
pub use pace::WhenFull;
pub use query::Query;
pub use replay::{Replay, ReplayBuilder, ReplayFrom};
pub use replay_mailbox::ReplayMailbox;
pub use replay_stats::{ReplayFigures, ReplayStats};
pub use settings::{History, HistoryStats};
