//! What runs, by name: interned names, and the word in which a thread of a pool says what it does now.
//!
//! | file | idea |
//! |---|---|
//! | `names.rs` | one table of names for the process: bounded, without a lock |
//! | `recorder.rs` | the spans of a thread, while a recording runs |
//! | `doing.rs` | role and name of what a thread does now, in one word that any thread may read |

mod doing;
mod names;
mod recorder;

pub(crate) use doing::{Doing, enter, goes_on, is_here, leave, runs, runs_within};
pub(crate) use names::{Name, of_code, of_function, of_text};
pub(crate) use recorder::{NO_THREAD, Record, Recorder, Records, What};
