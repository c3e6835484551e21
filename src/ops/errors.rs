//! The last faults of this process, as JSON.

use crate::log::Record;
use crate::log::recent::recent;
use serde_json::{Value as Json, json};
use serde_json::{from_str, to_value};

/// The newest `most`, the newest first.
pub(super) fn newest(most: usize) -> Json {
    let (records, missed) = recent(most);
    let errors: Vec<Json> = records.iter().map(of).collect();
    json!({ "errors": errors, "missed": missed })
}

/// As a line of the log has it.
fn of(record: &Record) -> Json {
    from_str(&record.to_json()).or_else(|_| to_value(&record.message)).unwrap_or_default()
}
