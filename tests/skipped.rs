//! That a test is skipped is said where everybody sees it.

#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::env;
use std::process::Command;

/// Goal: it is seen though the test passes, and its output is captured. Method: this test once more, as cargo runs
/// it, in a process that is told to skip it.
#[test]
fn what_is_skipped_is_seen_though_output_is_captured() {
    const CHILD: &str = "PACELINE_TEST_SKIPS";
    const NAME: &str = "what_is_skipped_is_seen_though_output_is_captured";
    if env::var_os(CHILD).is_some() {
        eprintln!("this is kept back");
        println!("and this");
        return skipped("there is no moon");
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut again = Command::new(env::current_exe().unwrap());
    // Whoever runs the tests may have asked for all that they say.
    let output = again.args([NAME, "--exact"]).env(CHILD, "1").env_remove("RUST_TEST_NOCAPTURE");
    let output = output.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("1 passed") && !out.contains("and this"), "{out}{err}");
    assert_eq!(err, format!("skipped: {NAME}: there is no moon\n"));
}
