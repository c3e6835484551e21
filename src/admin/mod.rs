//! What stands on several parts of the crate at once: settings from files and the environment, and the log
//! of what became of tasks.

#[cfg(feature = "log")]
mod outcomes;
#[cfg(feature = "log")]
mod rotate;
#[cfg(feature = "config")]
mod settings;

#[cfg(feature = "log")]
pub use outcomes::{
    LOG_TARGET, Outcome, OutcomeEvent, OutcomeLog, OutcomeLogBuilder, OutcomeLogStats,
};
#[cfg(all(feature = "config", feature = "log"))]
pub use settings::LogSettings;
#[cfg(feature = "config")]
pub use settings::{Field, Kind, Layers, PoolSettings, Settings};
