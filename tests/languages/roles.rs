//! The example that shows who leads and who handles, in four languages.
//!
//! Which worker has which event is left to the machine; each event is handled once, by one of three workers, while another
//! leads.

use super::example_in;
use std::collections::BTreeSet;

#[test]
fn one_worker_leads_while_others_handle() {
    for language in ["rust", "c", "cpp", "python"] {
        let Some(mut command) = example_in(language, "roles") else { continue };
        let output = command.output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language}: {}\n{told}", output.status);
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let mut events = BTreeSet::new();
        for line in printed.lines() {
            let words: Vec<_> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let ["worker", worker, "handles", "event", event, "worker", leader, "leads"] =
                words[..]
            else {
                panic!("{language} prints {line:?}");
            };
            for each in [worker, leader] {
                assert!(["1", "2", "3"].contains(&each), "{language} prints {line:?}");
            }
            assert_ne!(worker, leader, "{language}");
            assert!(events.insert(event.parse::<u32>().expect("a number")), "{language}: twice");
        }
        assert_eq!(events, (1..=10).collect(), "{language}");
    }
}
