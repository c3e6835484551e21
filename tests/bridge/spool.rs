//! Exports whose messages wait in the archive of the hub's history.

use crate::broker::{Broker, broker, connected};
use crate::common::{Random, hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::history::{ArchiveOptions, Durability, History, Limits};
use paceline::hub::{Hub, Message, Overflow};
use paceline::{Error, Pool};
use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// What a child is to do.
const ROLE: &str = "PACELINE_SPOOL_ROLE";
/// Where nobody listens.
const NOWHERE: &str = "nats://127.0.0.1:1";

/// A directory for one test, which is removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("paceline-spool-{name}-{}", std::process::id()));
        let _there_is_none = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

/// A hub with an archive in this directory, as a process begins with it.
fn hub_with_archive(directory: &Path, keep: Limits) -> (Pool, Hub) {
    let pool = Pool::builder().threads(2).build().unwrap();
    let archive = ArchiveOptions::at(directory.join("archive")).keep(keep);
    let archive = archive.durability(Durability::Process);
    // So that what is read comes from the file, as after a long time without a broker.
    let history = History::of("orders.>")
        .keep(Limits::of_count(10))
        .archive(archive)
        .commit(64, Duration::from_millis(5));
    let hub = Hub::builder(&pool).history(history).build().unwrap();
    (pool, hub)
}

fn spooled(directory: &Path) -> Export {
    Export::new("orders.>").at_least_once("ORDERS").spool(directory.join("spool"))
}

fn publish(hub: &Hub, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let _ = hub.publish("orders.a", number.to_string().as_str()).unwrap();
    }
}

/// What the stream has, in order, by an import of another hub.
fn stored(broker: &Broker, count: usize) -> Vec<u64> {
    let there = hub();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let note = move |message: &Message<'_>| {
        let text = String::from_utf8_lossy(message.payload());
        list.lock().unwrap().push(text.parse().unwrap());
    };
    let _handler = there.subscribe("orders.>", note).unwrap();
    // A repetition that the stream has taken is to be seen.
    let import = Import::new("orders.>").at_least_once("ORDERS", "look");
    let _back = connected(Bridge::nats(&there, broker.url()).import(import).window(LIMIT, 0));
    until("all of the stream", || seen.lock().unwrap().len() >= count);
    let seen = seen.lock().unwrap();
    seen.clone()
}

/// Goal: what waits for the broker outlives the process, and is stored once and in order. Method: three lives of a process,
/// by turns without a broker and with one; the last publishes meanwhile.
#[test]
fn what_waits_outlives_the_process() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = Directory::new("lives");
    for life in 0..2 {
        let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
        let bridge = Bridge::nats(&hub, NOWHERE).export(spooled(&directory.0)).open().unwrap();
        publish(&hub, life * 500..(life + 1) * 500);
        let waiting = bridge.stats().exports[0].waiting;
        assert_eq!(waiting, (life + 1) * 500);
        assert_eq!(bridge.close(Duration::ZERO), 0, "nothing is lost");
        drop(bridge);
        hub.flush_histories().unwrap();
        assert!(pool.shutdown(LIMIT).drained);
    }
    for life in 2..4 {
        let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
        let bridge = connected(Bridge::nats(&hub, broker.url()).export(spooled(&directory.0)));
        publish(&hub, life * 500..(life + 1) * 500);
        let last = bridge.publish(hub.message("orders.b").payload((10_000 + life).to_string()));
        last.unwrap().wait(LIMIT).unwrap();
        bridge.flush(LIMIT).unwrap();
        let stats = bridge.stats().exports[0].clone();
        assert_eq!((stats.waiting, stats.in_flight, stats.dropped), (0, 0, 0));
        assert_eq!(stats.stored, if life == 2 { 1501 } else { 501 }, "only what is new");
        drop(bridge);
        assert!(pool.shutdown(LIMIT).drained);
    }
    let expected: Vec<u64> = (0..1500).chain([10_002]).chain(1500..2000).chain([10_003]).collect();
    assert_eq!(stored(&broker, expected.len()), expected);
}

/// Goal: what is sent again after a process has died has the id of the first time, so the stream has it once. Method: the
/// number in the file is set back, as a kill leaves it behind.
#[test]
fn what_is_sent_again_is_stored_once() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = Directory::new("again");
    let mut early = Vec::new();
    for life in 0..2 {
        if life == 1 {
            fs::write(directory.0.join("spool"), &early).unwrap();
        }
        let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
        let bridge = connected(Bridge::nats(&hub, broker.url()).export(spooled(&directory.0)));
        publish(&hub, life * 10..life * 10 + 5);
        bridge.flush(LIMIT).unwrap();
        if life == 0 {
            until("it is noted", || {
                early = fs::read(directory.0.join("spool")).unwrap();
                !early.ends_with(b" 00000000000000000000\n")
            });
        }
        publish(&hub, life * 10 + 5..life * 10 + 10);
        bridge.flush(LIMIT).unwrap();
        let sent = bridge.stats().exports[0].sent;
        assert!(sent >= if life == 0 { 10 } else { 15 }, "{sent}");
        drop(bridge);
        assert!(pool.shutdown(LIMIT).drained);
    }
    assert_eq!(stored(&broker, 20), (0..20).collect::<Vec<_>>());
}

/// Goal: what the history lets go of before it was sent is counted. Method: it keeps ten, and the broker is away, from the
/// beginning or from the first message on.
#[test]
fn what_the_archive_lets_go_of_is_counted() {
    let _guard = hang_guard();
    for was_there in [true, false] {
        let Some(mut broker) = broker() else { return };
        let directory = Directory::new("lost");
        let (pool, hub) = hub_with_archive(&directory.0, Limits::of_count(10));
        if !was_there {
            broker.kill();
        }
        let rule = Bridge::nats(&hub, broker.url()).export(spooled(&directory.0));
        let bridge = rule.open().unwrap();
        if was_there {
            publish(&hub, 0..1);
            bridge.flush(LIMIT).unwrap();
            broker.kill();
            until("it is away", || !bridge.is_connected());
        }
        publish(&hub, 1..1000);
        hub.flush_histories().unwrap();
        broker.start_again();
        bridge.flush(LIMIT).unwrap();
        let stats = bridge.stats().exports[0].clone();
        assert!(stats.dropped > 0, "{stats:?}");
        assert_eq!(stats.dropped + stats.stored, 999 + u64::from(was_there), "{stats:?}");
        drop(bridge);
        assert!(pool.shutdown(LIMIT).drained);
    }
}

/// Goal: what the history lets go of while no bridge runs is counted by the next one, and nothing else. Method: it keeps ten.
#[test]
fn what_is_let_go_of_without_a_bridge_is_counted() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = Directory::new("alone");
    for (life, is_exported) in [(0, true), (1, false), (2, true), (3, true)] {
        let (pool, hub) = hub_with_archive(&directory.0, Limits::of_count(10));
        let open = || connected(Bridge::nats(&hub, broker.url()).export(spooled(&directory.0)));
        let bridge = is_exported.then(open);
        if life < 2 {
            publish(&hub, life * 1000..life * 1000 + 1000 * life + 5);
        }
        hub.flush_histories().unwrap();
        if let Some(bridge) = bridge {
            bridge.flush(LIMIT).unwrap();
            let stats = bridge.stats().exports[0].clone();
            match life {
                2 => {
                    assert!(stats.dropped > 0, "{stats:?}");
                    assert_eq!(stats.dropped + stats.stored, 1005, "{stats:?}");
                }
                _ => assert_eq!((stats.dropped, stats.stored), (0, 5 * u64::from(life == 0))),
            }
            assert_eq!(bridge.close(LIMIT), 0);
        }
        hub.close_histories().unwrap();
        drop(hub);
        assert!(pool.shutdown(LIMIT).drained);
    }
}

/// Goal: who waits until a message is stored that the archive has let go of is told. Method: it keeps ten, the broker is away.
#[test]
fn who_waits_for_a_message_that_is_gone_is_told() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    broker.kill();
    let directory = Directory::new("gone");
    let (pool, hub) = hub_with_archive(&directory.0, Limits::of_count(10));
    let bridge = Bridge::nats(&hub, broker.url()).export(spooled(&directory.0)).open().unwrap();
    let pending: Vec<_> = (0..2000)
        .map(|number: u64| bridge.publish(hub.message("orders.a").payload(number.to_string())))
        .map(Result::unwrap)
        .collect();
    hub.flush_histories().unwrap();
    broker.start_again();
    let ends: Vec<_> = pending.iter().map(|one| one.wait(LIMIT)).collect();
    let gone = |end: &&paceline::Result<()>| matches!(end, Err(Error::Stale { what: "message" }));
    let count = ends.iter().filter(gone).count() as u64;
    assert!(ends.iter().all(|end| end.is_ok() || gone(&end)), "{ends:?}");
    assert!(ends[0].is_err() && ends[1999].is_ok());
    let stats = bridge.stats().exports[0].clone();
    assert_eq!((stats.dropped, stats.stored), (count, 2000 - count));
    drop(bridge);
    assert!(pool.shutdown(LIMIT).drained);
}

/// Goal: a forked child that outlives its parent keeps neither the spool's lock nor the archive's: another process opens both,
/// and its end has all in the archive's file. Method: a child with a child of its own is killed.
#[test]
fn a_forked_child_keeps_no_lock() {
    if env::var_os(ROLE).is_some() {
        return fork_and_wait();
    }
    let _guard = hang_guard();
    let directory = Directory::new("forked");
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["spool::a_forked_child_keeps_no_lock", "--exact", "--nocapture"])
        .env(ROLE, "fork")
        .current_dir(&directory.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The grandchild lives until this is dropped.
    let _input = child.stdin.take();
    let forked = directory.0.join("forked");
    until("it has forked", || forked.exists());
    end(&mut child);
    let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
    let bridge = Bridge::nats(&hub, NOWHERE).export(spooled(&directory.0)).open().unwrap();
    assert_eq!(bridge.stats().exports[0].waiting, 5);
    drop(bridge);
    hub.close_histories().unwrap();
    assert!(!directory.0.join("archive-wal").exists(), "its end was not the last");
    drop(hub);
    assert!(pool.shutdown(LIMIT).drained);
}

#[allow(unsafe_code, reason = "fork")]
fn fork_and_wait() {
    let (_pool, hub) = hub_with_archive(Path::new("."), Limits::unlimited());
    let _bridge = Bridge::nats(&hub, NOWHERE).export(spooled(Path::new("."))).open().unwrap();
    publish(&hub, 0..5);
    hub.flush_histories().unwrap();
    // SAFETY: the child only makes calls that are safe in one.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: a byte that lives; the read ends when the test has ended.
        unsafe {
            let mut byte = 0_u8;
            libc::read(0, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
    fs::write("forked", "").unwrap();
    loop {
        std::thread::park();
    }
}

/// Goal: messages are found among many of other keys, and what waits for the broker holds up nobody who closes. Method: the
/// bridge is opened behind thousands of them, without a broker and with one.
#[test]
fn a_few_messages_are_found_among_many() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = Directory::new("narrow");
    let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
    let rule = || Export::new("orders.few").at_least_once("FEW").spool(directory.0.join("spool"));
    for number in 0..3 {
        publish(&hub, number * 10_000..(number + 1) * 10_000);
        let _ = hub.publish("orders.few", number.to_string().as_str()).unwrap();
    }
    hub.flush_histories().unwrap();
    let away = Bridge::nats(&hub, NOWHERE).export(rule()).open().unwrap();
    assert_eq!((away.close(LIMIT * 1000), away.stats().exports[0].in_flight), (0, 0));
    let bridge = connected(Bridge::nats(&hub, broker.url()).export(rule()));
    bridge.flush(LIMIT).unwrap();
    assert_eq!(bridge.stats().exports[0].stored, 3);
    drop(bridge);
    assert!(pool.shutdown(LIMIT).drained);
}

/// Goal: what comes from elsewhere does not go out again, and requests do not cross; neither holds up what does.
#[test]
fn neither_imports_nor_requests_go_out() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = Directory::new("turned");
    let (pool, here) = hub_with_archive(&directory.0, Limits::unlimited());
    let bridge = connected(
        Bridge::nats(&here, broker.url())
            .export(spooled(&directory.0))
            .import(Import::new("orders.in").prefix("other.")),
    );
    let there = hub();
    let other = connected(
        Bridge::nats(&there, broker.url()).export(Export::new("orders.in").prefix("other.")),
    );
    let _ = there.publish("orders.in", "1").unwrap();
    other.flush(LIMIT).unwrap();
    let replier = here.clone();
    let reply = move |request: &Message<'_>| replier.reply(request, "7").map(|_| ());
    let _replies = here.subscribe("orders.ask", reply).unwrap();
    let answer = here.request("orders.ask", "2", LIMIT).unwrap();
    assert_eq!(answer.payload(), b"7");
    publish(&here, 3..4);
    bridge.flush(LIMIT).unwrap();
    until("what does not go out", || bridge.stats().exports[0].turned_back == 2);
    assert_eq!(stored(&broker, 1), [3]);
    drop(bridge);
    assert!(pool.shutdown(LIMIT).drained);
}

/// Goal: what cannot be a spool is refused by name, and nothing is changed.
#[test]
fn what_is_no_spool_is_refused() {
    let _guard = hang_guard();
    let directory = Directory::new("refused");
    let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
    let open = |hub: &Hub, rule: Export| match Bridge::nats(hub, NOWHERE).export(rule).open() {
        Ok(_) => String::new(),
        Err(error @ Error::Invalid { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    };
    let path = directory.0.join("spool");
    let cases = [
        (Export::new("orders.>").spool(&path), "stream"),
        (spooled(&directory.0).overflow(Overflow::DropOldest), "overflow"),
        (Export::new("a.>").at_least_once("A").spool(&path), "within that of a history"),
    ];
    for (rule, said) in cases {
        let error = open(&hub, rule);
        assert!(error.contains(said), "{error}");
    }
    let memory = Hub::builder(&pool).history(History::of("orders.>")).build().unwrap();
    let error = open(&memory, spooled(&directory.0));
    assert!(error.contains("with an archive"), "{error}");
    for text in ["", "x", "paceline spool 3 ", &"x".repeat(94)] {
        let other = directory.0.join("other");
        fs::write(&other, text).unwrap();
        let error = open(&hub, Export::new("orders.>").at_least_once("A").spool(&other));
        assert_eq!(error.contains("that a bridge has made"), !text.is_empty(), "{text:?}: {error}");
        assert!(text.is_empty() || fs::read_to_string(&other).unwrap() == text);
    }
    let _first = Bridge::nats(&hub, NOWHERE).export(spooled(&directory.0)).open().unwrap();
    let error = open(&hub, spooled(&directory.0));
    assert!(error.contains("no other bridge"), "{error}");
    drop(_first);
    // Of an archive that has come further.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(" 00000000000000000000", " 00000000000000004711")).unwrap();
    let error = open(&hub, spooled(&directory.0));
    assert!(error.contains("4711"), "{error}");
}

/// Goal: a spool that was made with another archive is refused, as its number says nothing of this one, though this one
/// has come as far; with its own it opens again.
#[test]
fn a_spool_of_another_archive_is_refused() {
    let _guard = hang_guard();
    let own = Directory::new("own");
    for life in 0..2 {
        let (pool, hub) = hub_with_archive(&own.0, Limits::unlimited());
        publish(&hub, 0..60);
        drop(Bridge::nats(&hub, NOWHERE).export(spooled(&own.0)).open().unwrap());
        let other = Directory::new(&format!("other-{life}"));
        let (elsewhere, there) = hub_with_archive(&other.0, Limits::unlimited());
        publish(&there, 0..60);
        let error = Bridge::nats(&there, NOWHERE).export(spooled(&own.0)).open().err().unwrap();
        assert!(error.to_string().contains("belongs to another"), "{error}");
        for (pool, hub) in [(pool, hub), (elsewhere, there)] {
            hub.close_histories().unwrap();
            drop(hub);
            assert!(pool.shutdown(LIMIT).drained);
        }
    }
}

/// Goal: nothing that is durable in the archive is lost, nothing is stored twice, and the order holds, whoever is killed.
/// Method: a process publishes, and notes what its history has on disk; it and the broker are killed by turns.
#[test]
fn a_process_that_is_killed_loses_nothing_durable() {
    if let Ok(role) = env::var(ROLE) {
        return publish_until_killed(&role);
    }
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let directory = Directory::new("killed");
    let kills = env::var("PACELINE_BRIDGE_KILLS").map_or(12, |text| text.parse().unwrap());
    let mut random = Random::new(u64::from(std::process::id()));
    let start = |life: u64, broker: &Broker| start(life, broker, &directory.0);
    let mut publisher = start(0, &broker);
    for kill in 1..=kills {
        std::thread::sleep(Duration::from_millis(20 + random.below(150)));
        if random.below(3) == 0 {
            broker.kill();
            std::thread::sleep(Duration::from_millis(random.below(100)));
            broker.start_again();
        } else {
            end(&mut publisher);
            publisher = start(kill, &broker);
        }
    }
    let durable = || -> Vec<u64> {
        let text = fs::read_to_string(directory.0.join("durable")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| line.parse().unwrap()).collect()
    };
    let before = durable().len();
    until("some more are durable", || durable().len() > before + 3);
    end(&mut publisher);
    let (pool, hub) = hub_with_archive(&directory.0, Limits::unlimited());
    let bridge = connected(Bridge::nats(&hub, broker.url()).export(spooled(&directory.0)));
    bridge.flush(LIMIT).unwrap();
    let last = hub.publish("orders.a", u64::MAX.to_string().as_str()).unwrap();
    assert!(last.sequence > 0);
    bridge.flush(LIMIT).unwrap();
    drop(bridge);
    assert!(pool.shutdown(LIMIT).drained);
    let info = Raw::connect(&broker.url()).request("$JS.API.STREAM.INFO.ORDERS", "");
    let (_, messages) = info.split_once("\"messages\":").unwrap();
    let stored = stored(&broker, messages.split_once(',').unwrap().0.parse().unwrap());
    assert_eq!(stored.last(), Some(&u64::MAX));
    let known: HashSet<u64> = stored.iter().copied().collect();
    assert_eq!(known.len(), stored.len(), "nothing is stored twice");
    let lost: Vec<u64> = durable().into_iter().filter(|number| !known.contains(number)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(stored.is_sorted(), "the order holds");
}

fn start(life: u64, broker: &Broker, directory: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["spool::a_process_that_is_killed_loses_nothing_durable", "--exact"])
        .env(ROLE, format!("{life} {}", broker.url()))
        .current_dir(directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A child, until it is killed or its parent is: publishes numbers of its own, and notes the last of those that are on disk.
fn publish_until_killed(role: &str) {
    let parent = std::os::unix::process::parent_id();
    let (life, url) = role.split_once(' ').unwrap();
    let (_pool, hub) = hub_with_archive(Path::new("."), Limits::unlimited());
    let _bridge = Bridge::nats(&hub, url).export(spooled(Path::new("."))).open().unwrap();
    let mut durable = fs::OpenOptions::new().append(true).create(true).open("durable").unwrap();
    let mut number = life.parse::<u64>().unwrap() * 1_000_000;
    while std::os::unix::process::parent_id() == parent {
        publish(&hub, number..number + 16);
        number += 16;
        hub.flush_histories().unwrap();
        durable.write_all(format!("{}\n", number - 1).as_bytes()).unwrap();
    }
}
