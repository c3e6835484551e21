//! Messages as bytes: where a head and a body end, what they say, and how the head of an answer is written.

pub(crate) mod answer_head;
pub(crate) mod chunks;
pub(crate) mod form;
pub(crate) mod head;
#[cfg(any(all(test, not(loom)), fuzzing))]
pub(crate) mod reading;
pub(crate) mod refusal;
