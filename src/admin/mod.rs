//! What stands on several parts of the crate at once: settings from files and the environment.

mod settings;

pub use settings::{Field, Kind, Layers, PoolSettings, Settings};
