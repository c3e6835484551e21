//! What stands on several parts of the crate at once: settings from files and the environment, the log of what
//! became of tasks, what systemd is told, and webhooks.

#[cfg(feature = "log")]
mod outcomes;
#[cfg(feature = "config")]
mod settings;
#[cfg(feature = "systemd")]
mod systemd;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "log")]
pub use outcomes::{
    LOG_TARGET, Outcome, OutcomeEvent, OutcomeLog, OutcomeLogBuilder, OutcomeLogStats,
};
#[cfg(all(feature = "config", feature = "tasks"))]
pub use settings::WorkerSettings;
#[cfg(feature = "config")]
pub use settings::{Field, Kind, Layers, PoolSettings, Settings};
#[cfg(all(feature = "config", feature = "log"))]
pub use settings::{LogSettings, OutcomeSettings};
#[cfg(feature = "systemd")]
pub use systemd::Service;
#[cfg(feature = "webhook")]
pub use webhook::{Webhook, WebhookBuilder, WebhookStats};
