//! What a test leaves out, and why, for everybody to see.

use std::fmt::Display;
use std::io::{self, Write};
use std::thread;

/// Says that the test which calls this, or a part of it, does not run. It is the first word of a line of its own
/// on stderr: libtest keeps back what `println!` and `eprintln!` say in a test that passes, but not what is
/// written as it is here, so the end of `cargo xtask test` lists what did not run.
pub fn skipped(why: impl Display) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {why}\n");
    // Nobody may be there to read it.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
