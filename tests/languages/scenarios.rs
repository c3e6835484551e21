//! Scenarios of the systems that paceline stands for: small programs, the same in four languages, that print what happens.
//! All print the same, but for what is left to the machine.

use super::example_in;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// After this a test gives up, and fails.
const PATIENCE: Duration = Duration::from_secs(120);

const LANGUAGES: [&str; 4] = ["rust", "c", "cpp", "python"];

/// What the scenario prints in each language whose compiler or interpreter is here.
fn printed(name: &str) -> impl Iterator<Item = (&'static str, String)> {
    LANGUAGES.into_iter().filter_map(move |language| {
        let output = example_in(language, name)?.output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_well = output.status.success() && errors.is_empty();
        assert!(is_well, "{name} in {language}: {}\n{errors}", output.status);
        Some((language, String::from_utf8(output.stdout).expect("UTF-8")))
    })
}

/// Which worker has which event is left to the machine; each event is handled once, by one of three workers, while
/// another leads.
#[test]
fn one_worker_leads_while_others_handle() {
    for (language, printed) in printed("roles") {
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

/// Which worker has which task is left to the machine, and so is the order of the tasks. Each is handled once, by the worker
/// that took it, and each worker has one at a time.
#[test]
fn workers_take_turns_at_a_queue() {
    for (language, printed) in printed("turns") {
        // "worker-0", in Python "worker_0".
        let workers = printed.replace("worker_", "worker-");
        let mut busy = BTreeMap::new();
        let mut handled: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        let mut figures = BTreeMap::new();
        let mut lines = workers.lines();
        assert_eq!(lines.next_back(), Some("drained: true"), "{language}");
        for line in lines {
            match line.split(' ').collect::<Vec<_>>()[..] {
                [worker, "leads,", "and", "takes", "task", task] => {
                    assert_eq!(busy.insert(worker, task), None, "{language}: {line}");
                }
                [worker, "has", "handled", "task", task] => {
                    assert_eq!(busy.remove(worker), Some(task), "{language}: {line}");
                    handled.entry(worker).or_default().push(task.parse().expect("a number"));
                }
                [worker, tasks, "tasks"] => {
                    let worker = worker.strip_suffix(':').expect("a worker");
                    figures.insert(worker, tasks.parse::<usize>().expect("a number"));
                }
                _ => panic!("{language} prints {line:?}"),
            }
        }
        assert_eq!(busy, BTreeMap::new(), "{language}");
        assert!(figures.keys().eq(&["worker-0", "worker-1", "worker-2"]), "{language}");
        for (worker, tasks) in figures {
            assert_eq!(handled.get(worker).map_or(0, Vec::len), tasks, "{language}: {worker}");
        }
        let mut tasks = handled.into_values().flatten().collect::<Vec<_>>();
        tasks.sort_unstable();
        assert!(tasks.into_iter().eq(1..=9), "{language}");
    }
}

/// How long it took is left to the machine; all else is the same.
#[test]
fn the_shop_on_a_hub_recovers() {
    const EXPECTED: &str = "\
        subscribers of shop.orders: 1\n\
        packed apples\n\
        the packer was restarted: 1\n\
        packed melons\n\
        packed plums\n\
        new price: apples 3.20\n\
        notice: subscription.restarted\n\
        dead letter: pears, 2 attempts\n\
        packed pears\n\
        redelivered: 1\n\
        replayed: apples\n\
        replayed: pears\n\
        replayed: melons\n\
        replayed: plums\n\
        orders: 5 matched, 4 delivered, 1 restarts\n\
        from publishing to packing, p99: some us\n\
        subscribers of shop.orders: 0\n";
    for (language, printed) in printed("orders") {
        let (before, rest) = printed.split_once("p99: ").expect("its figures");
        let (time, after) = rest.split_once(" us").expect("a unit");
        assert!(time.parse::<u64>().is_ok(), "{language}: {time:?}");
        assert_eq!(format!("{before}p99: some us{after}"), EXPECTED, "{language}");
    }
}

/// A server that ends with its test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Two clients, of which one stays: the drain at SIGTERM closes its connection.
#[test]
fn the_tcp_server_echoes_and_drains() {
    for language in LANGUAGES {
        let Some(mut command) = example_in(language, "tcp") else { continue };
        let command = command.arg("127.0.0.1:0").stdout(Stdio::piped());
        let mut server = Ended(command.spawn().expect("it starts"));
        let mut output = BufReader::new(server.0.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("UTF-8");
        let address = line.trim_end().strip_prefix("listening on ").expect("where it listens");
        let [mut stays, leaves] = [(); 2].map(|()| {
            let mut client = TcpStream::connect(address).expect("it listens");
            client.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
            client.write_all(b"hello").expect("it reads");
            let mut answer = [0; 5];
            client.read_exact(&mut answer).expect("it answers");
            assert_eq!(&answer, b"hello", "{language}");
            client
        });
        drop(leaves);
        let kill = Command::new("kill").arg(server.0.id().to_string()).status();
        assert!(kill.expect("there is kill").success());
        assert_eq!(stays.read(&mut [0; 5]).expect("it closes"), 0, "{language}");
        drop(stays);
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(rest, "drained: true, connections: 2, requests: 2\n", "{language}");
        assert!(server.0.wait().expect("it ends").success(), "{language}");
    }
}
