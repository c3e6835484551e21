//! A peer on the broker that means harm.

use crate::broker::{Broker, connected};
use crate::common::{hang_guard, in_child, until};
use crate::raw::{Raw, message};
use crate::topics::hub;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::Message;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What this process has allocated, in MB. Its code does not count: that comes in as it first runs.
fn allocated() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Goal: what is malformed, too large, forged or too much is counted and costs bounded memory; handlers see none of the
/// headers that are the hub's own, no key that is the hub's own, and replies go to nothing of the broker's.
#[test]
fn a_hostile_peer_is_counted_and_bounded() {
    let _guard = hang_guard();
    in_child(|| {
        // On a slow machine the broker would hang up on whoever does not read so fast, after 10 s or 64 MB.
        let patient = "write_deadline: \"1h\"\nmax_pending: 4294967296";
        let Some(broker) = Broker::start(patient) else { return };
        let (here, there) = (hub(), hub());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&seen);
        let replier = there.clone();
        let _handler = there
            .subscribe("p.>", move |message: &Message<'_>| {
                for name in ["Reply-To", "Paceline-Receipt"] {
                    let value = message.headers().get(name);
                    assert!(value.is_none_or(|text| text.starts_with("_INBOX.")), "{value:?}");
                }
                if replier.reply(message, "an answer").is_err() {
                    list.lock().unwrap().push(message.key().to_string());
                }
            })
            .unwrap();
        let back = connected(
            Bridge::nats(&there, broker.url())
                .import(Import::new(">").buffer(1000).request_timeout(Duration::from_secs(2))),
        );
        let out = connected(
            Bridge::nats(&here, broker.url()).export(Export::new("kept").at_least_once("KEPT")),
        );
        out.publish(here.message("kept")).unwrap().wait(Duration::from_secs(60)).unwrap();
        let mut raw = Raw::connect(&broker.url());
        until("it listens", || {
            raw.publish("p.first", b"");
            raw.sync();
            !seen.lock().unwrap().is_empty()
        });
        let before = back.stats();
        let many = "h: 1\r\n".repeat(2000);
        let mut bad = 0;
        for (subject, headers) in [("_INBOX.a", ""), ("p.many", &many), ("p.\u{85}", "")] {
            raw.publish_with(subject, None, headers, b"x");
            bad += 1;
        }
        for reply in ["$JS.API.STREAM.DELETE.KEPT", "$SYS.REQ.USER.INFO"] {
            raw.publish_with("p.steal", Some(reply), "", b"");
            bad += 1;
        }
        until("what is bad is counted", || {
            back.stats().imports[0].refused >= before.imports[0].refused + bad
        });
        let forged = "Nats-Msg-Id: one\r\nPaceline-Receipt: 1\r\nReply-To: p.trap\r\nPaceline-Priority: x\r\n\
            Paceline-Headers: [[\"Reply-To\",\"p.trap\"],[\"Paceline-Receipt\",\"1\"]]\r\nPaceline-Origin: me\r\n";
        raw.publish_with("p.forged", None, forged, b"x");
        raw.publish_with("p.forged", None, forged, b"x");
        until("one of them came before", || back.stats().imports[0].duplicates == 1);
        // Large ones, requests, and small ones, as fast as they go. The first time they take what the allocator keeps.
        let large = message("p.large", None, "", &vec![b'x'; 1_000_000]);
        let requests = message("p.ask", Some("nobody.listens"), "", b"x").repeat(1000);
        let small = message("p.small", None, "", b"x").repeat(1000);
        let mut flood = |last: &str| {
            (0..200).for_each(|_| raw.write(&large));
            (0..50).for_each(|_| raw.write(&requests));
            (0..1000).for_each(|_| raw.write(&small));
            raw.sync();
            until("it still listens", || {
                raw.publish(last, b"");
                raw.sync();
                seen.lock().unwrap().iter().any(|key| key == last)
            });
        };
        flood("p.once");
        let before = allocated();
        flood("p.again");
        // Half of what the large ones have.
        let grown = allocated().saturating_sub(before);
        assert!(grown < 100, "it has grown by {grown} MB");
        let stats = back.stats();
        assert!(stats.lost > 0 && stats.requests_in <= 10_000, "{stats:?}");
        assert_eq!(
            (stats.connects, seen.lock().unwrap().iter().any(|key| !key.starts_with("p."))),
            (1, false)
        );
        assert!(raw.request("$JS.API.STREAM.INFO.KEPT", "").contains("\"messages\":1,"));
    });
}
