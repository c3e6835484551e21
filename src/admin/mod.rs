//! What stands on several parts of the crate at once: settings from files and the environment, what
//! systemd is told, and webhooks.

#[cfg(feature = "config")]
mod settings;
#[cfg(feature = "systemd")]
mod systemd;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "config")]
pub use settings::{
    BridgeSettings, ExportSettings, Field, Growth, HistorySettings, HttpSettings, HubSettings,
    ImportSettings, Kind, Layers, LogSettings, OpsSettings, PoolSettings, ServerSettings, Settings,
    TaskSettings, WebhookSettings, WorkerSettings,
};
#[cfg(feature = "systemd")]
pub use systemd::Service;
#[cfg(feature = "webhook")]
pub use webhook::{Webhook, WebhookBuilder, WebhookStats};
