//! What stands on several parts of the crate at once: settings from files and the environment, the log of what
//! became of tasks, what systemd is told, and webhooks.

mod outcomes;
#[cfg(feature = "config")]
mod settings;
#[cfg(feature = "systemd")]
mod systemd;
#[cfg(feature = "webhook")]
mod webhook;

pub use outcomes::{
    LOG_TARGET, Outcome, OutcomeEvent, OutcomeLog, OutcomeLogBuilder, OutcomeLogStats,
};
#[cfg(feature = "config")]
pub use settings::{
    Field, Kind, Layers, LogSettings, OutcomeSettings, PoolSettings, Settings, WorkerSettings,
};
#[cfg(feature = "systemd")]
pub use systemd::Service;
#[cfg(feature = "webhook")]
pub use webhook::{Webhook, WebhookBuilder, WebhookStats};
