//! Bridges as files of settings say them.

use crate::broker::Broker;
use crate::common::{hang_guard, until};
use crate::topics::{hub, next};
use paceline::admin::Settings;
use paceline::bridge::BridgeBuilder;
use std::path::PathBuf;
use std::time::Duration;

/// A file that is gone when this is dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("paceline-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Goal: a service carries what a file says, logs in as it says, and takes a rule more of the program. Method: two bridges
/// of one file each, and a broker that lets in only whoever has the password.
#[test]
fn a_bridge_carries_what_a_file_says() {
    let _guard = hang_guard();
    let more = "authorization { user: joe, password: \"pass word\" }";
    let Some(broker) = Broker::start(more) else { return };
    let password = File::new("password", "pass word\n");
    let common = format!(
        "servers: ['{}'], user: joe, password_file: '{}'",
        broker.url(),
        password.0.display()
    );
    let out = File::new(
        "out.yaml",
        &format!(
            "bridge: {{{common}, name: out, reconnect_cap: 100ms, \
             exports: ['orders.>', {{pattern: 'jobs.>', stream: JOBS, in_flight: 4}}]}}"
        ),
    );
    let back = File::new(
        "back.yaml",
        &format!(
            "bridge: {{{common}, name: back, imports: [{{pattern: 'jobs.>', stream: JOBS, durable: back, retries: 0}}]}}"
        ),
    );
    let (here, there) = (hub(), hub());
    let mailbox = there.mailbox(">", 100).unwrap();
    let settings = |file: &File| Settings::layers().file(&file.0).build().unwrap();
    let builder = |hub, file| BridgeBuilder::from_settings(hub, &settings(file)).unwrap().unwrap();
    let out = builder(&here, &out).open().unwrap();
    let back = builder(&there, &back).import("orders.>").open().unwrap();
    assert_eq!((out.name(), back.name()), ("out", "back"));
    for bridge in [&out, &back] {
        bridge.wait_connected(Duration::from_secs(60)).unwrap();
    }
    let _ = here.publish("jobs.a", "one").unwrap();
    assert_eq!(next(&mailbox).payload(), "one");
    until("a key at most once", || {
        let _ = here.publish("orders.a", "two").unwrap();
        mailbox.recv_timeout(Duration::from_millis(20)).is_ok_and(|it| it.payload() == "two")
    });
    let stats = back.stats();
    assert_eq!(
        (stats.imports[0].pattern.as_str(), stats.imports[0].stream.as_deref()),
        ("jobs.>", Some("JOBS"))
    );
    assert_eq!(
        (stats.imports[1].pattern.as_str(), stats.imports[1].stream.as_deref()),
        ("orders.>", None)
    );
}

#[test]
fn without_servers_there_is_no_bridge() {
    let settings = Settings::layers().set("bridge.exports", "a").build().unwrap();
    assert!(BridgeBuilder::from_settings(&hub(), &settings).unwrap().is_none());
}

#[test]
fn rules_that_are_not_permitted_are_refused() {
    let settings = Settings::layers()
        .set("bridge.servers", "nats://127.0.0.1:1")
        .set("bridge.permit", "orders.>,jobs.>")
        .set("bridge.exports", "orders.eu,prices")
        .build()
        .unwrap();
    let builder = BridgeBuilder::from_settings(&hub(), &settings).unwrap().unwrap();
    let error = builder.open().unwrap_err().to_string();
    assert!(error.contains("\"prices\"") && error.contains("within"), "{error}");
}
