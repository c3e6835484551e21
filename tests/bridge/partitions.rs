//! Three hosts, as network namespaces: the broker, a publisher and an importer, whose links go down and up.

use crate::common::{Random, hang_guard, skipped, until};
use crate::crash::{Process, notes, start_by};
use std::collections::HashSet;
use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Namespaces joined by a bridge of the kernel's; gone when dropped.
struct Hosts(u32);

impl Hosts {
    /// None: they cannot be made here.
    fn new(number: u32) -> Option<Self> {
        let hosts = Self(number);
        let name = hosts.switch();
        let mut made = ip(&format!("link add {name} type bridge"))
            && ip(&format!("addr add {}/24 dev {name}", hosts.address(254)))
            && ip(&format!("link set {name} up"));
        for host in 1..=3 {
            let (space, outer, inner) = (hosts.space(host), hosts.link(host), format!("i{host}"));
            let address = hosts.address(host);
            made = made
                && ip(&format!("netns add {space}"))
                && ip(&format!("link add {outer} type veth peer name {inner} netns {space}"))
                && ip(&format!("link set {outer} master {name} up"))
                && ip(&format!("-n {space} addr add {address}/24 dev {inner}"))
                && ip(&format!("-n {space} link set {inner} up"));
        }
        made.then_some(hosts)
    }

    fn switch(&self) -> String {
        format!("plb{}", self.0)
    }

    fn space(&self, host: u32) -> String {
        format!("pl{}-{host}", self.0)
    }

    fn link(&self, host: u32) -> String {
        format!("plv{}-{host}", self.0)
    }

    fn address(&self, host: u32) -> String {
        format!("10.217.{}.{host}", self.0 % 250)
    }

    fn on(&self, host: u32, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host), program]);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 1..=3 {
            ip(&format!("netns del {}", self.space(host)));
        }
        ip(&format!("link del {}", self.switch()));
    }
}

fn ip(words: &str) -> bool {
    let mut run = Command::new("ip");
    run.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success())
}

/// Goal: what was acknowledged is handled, and with one message out at a time in order, whichever links go down and up.
#[test]
fn links_that_go_down_lose_nothing() {
    let _guard = hang_guard();
    if Command::new("nats-server").arg("--version").output().is_err() {
        return skipped("there is no nats-server");
    }
    let Some(hosts) = Hosts::new(std::process::id() % 10_000) else {
        return skipped("network namespaces cannot be made");
    };
    let directory = std::env::temp_dir().join(hosts.switch());
    fs::create_dir_all(&directory).unwrap();
    let mut broker = hosts.on(1, "nats-server");
    broker.args(["-a", "0.0.0.0", "-p", "4222", "-js", "-sd"]).arg(directory.join("store"));
    let broker = broker.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let broker = Process::new(broker.unwrap());
    let address = format!("{}:4222", hosts.address(1));
    until("the broker", || TcpStream::connect(&address).is_ok());
    let program = std::env::current_exe().unwrap();
    let play = |host, role: &str| {
        let command = hosts.on(host, program.to_str().unwrap());
        Process::new(start_by(command, &format!("{role} 1 nats://{address}"), &directory))
    };
    let noted = |name: &str| notes(&directory.join(name)).into_iter().map(|note| note.1);
    let publisher = play(2, "publish 0 1");
    let count = || noted("stored").count();
    until("the first", || count() > 0);
    let importers = [play(3, "import 0 2"), play(3, "import 1 3")];
    let rounds = std::env::var("PACELINE_BRIDGE_KILLS").map_or(4, |text| text.parse().unwrap());
    let mut random = Random::new(u64::from(std::process::id()));
    for _ in 0..rounds {
        let link = hosts.link(1 + random.below(3) as u32);
        assert!(ip(&format!("link set {link} down")));
        std::thread::sleep(Duration::from_millis(100 + random.below(900)));
        assert!(ip(&format!("link set {link} up")));
        let before = count();
        until("it goes on", || count() > before);
    }
    drop(publisher);
    let stored: Vec<u64> = noted("stored").collect();
    until("all that was acknowledged is dealt with", || {
        let ended: HashSet<u64> = noted("handled").chain(noted("dead")).collect();
        stored.iter().all(|number| ended.contains(number))
    });
    for key in [0, 1] {
        let mut known = HashSet::new();
        let firsts = noted("handled").filter(|number| number % 2 == key && known.insert(*number));
        assert!(firsts.is_sorted());
    }
    drop((importers, broker));
    fs::remove_dir_all(&directory).unwrap();
}
