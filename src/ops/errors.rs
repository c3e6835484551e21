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

/// As a line of the log has it, and how many were equal.
fn of((record, times): &(Record, u64)) -> Json {
    let shown = from_str(&record.to_json()).or_else(|_| to_value(&record.message));
    let mut shown: Json = shown.unwrap_or_default();
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("times".into(), json!(times));
    }
    shown
}
