//! What 100 hosts ask of their bridges and of the brokers: arithmetic with costs that were measured.
//!
//! Assumptions:
//!
//! - Every host publishes the same, and every message is imported by [`FAN_OUT`] hosts, evenly spread; one subscriber of the
//!   publishing host gets it, too.
//! - A host has one bridge. All CPU time that its process spends on messages counts as if the bridge's thread spent it.
//! - A broker has [`CORES`] cores as fast as those that were measured, and a full-duplex link of [`LINK`]; 70 % of each is used.
//! - A stream stores one message after the other, as fast as one core can: sharding a key's traffic by a token makes more of them.
//! - Clients and the leaders of streams are spread evenly over the servers of a cluster. A message that goes from one server to
//!   another costs what one at most once costs to send, and to receive; a follower stores it at the cost of the leader.
//! - Behind a leaf node are [`LEAF`] hosts. [`HOME`] of what they publish is imported by hosts of the same leaf, and stored
//!   there; the rest goes through the centre to other leaves.
//! - Acknowledgements go the other way than messages, and are counted with them.

/// Hosts.
pub const HOSTS: f64 = 100.0;
/// Hosts that import a message.
pub const FAN_OUT: f64 = 3.0;
/// Cores of a broker.
pub const CORES: f64 = 8.0;
/// Bytes per second of a broker's link, in each direction: 10 Gbit/s.
pub const LINK: f64 = 1.25e9;
/// Hosts behind one leaf node.
pub const LEAF: f64 = 10.0;
/// The share of the messages that stay behind their leaf node.
pub const HOME: f64 = 0.9;
/// The share of a core, or of a link, that is to be used.
const USED: f64 = 0.7;

/// Of one message. CPU time in seconds; `broker` is the broker's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    pub local: f64,
    pub most: Rule,
    pub least: Rule,
}

/// At most once, or at least once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    pub export: f64,
    pub import: f64,
    /// The broker takes it from a client, and stores it at least once.
    pub broker_in: f64,
    /// The broker sends it to one client.
    pub broker_out: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
}

/// How the brokers are laid out.
#[derive(Clone, Copy)]
pub struct Layout {
    pub name: &'static str,
    /// None: at most once.
    pub stored: Option<Stored>,
    /// Servers of the centre.
    pub servers: f64,
    pub has_leaves: bool,
}

#[derive(Clone, Copy)]
pub struct Stored {
    pub streams: f64,
    pub replicas: f64,
}

const fn layout(
    name: &'static str,
    stored: Option<Stored>,
    servers: f64,
    has_leaves: bool,
) -> Layout {
    Layout { name, stored, servers, has_leaves }
}

const fn stored(streams: f64, replicas: f64) -> Option<Stored> {
    Some(Stored { streams, replicas })
}

pub const LAYOUTS: [Layout; 7] = [
    layout("at most once, 1 server", None, 1.0, false),
    layout("at most once, 3 servers", None, 3.0, false),
    layout("at most once, 3 servers, leaves", None, 3.0, true),
    layout("at least once, 1 server, 1 stream", stored(1.0, 1.0), 1.0, false),
    layout("at least once, 1 server, 10 streams", stored(10.0, 1.0), 1.0, false),
    layout("at least once, 3 servers, 10 streams × 3", stored(10.0, 3.0), 3.0, false),
    layout("at least once, the same, leaves", stored(10.0, 3.0), 3.0, true),
];

/// Of one server, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub messages_in: f64,
    pub messages_out: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// Cores.
    pub cpu: f64,
}

impl Load {
    fn takes(&mut self, messages: f64, rule: &Rule) {
        self.messages_in += messages;
        self.bytes_in += messages * rule.bytes_in;
        self.cpu += messages * rule.broker_in;
    }

    fn sends(&mut self, messages: f64, rule: &Rule) {
        self.messages_out += messages;
        self.bytes_out += messages * rule.bytes_out;
        self.cpu += messages * rule.broker_out;
    }
}

impl Costs {
    fn rule(&self, layout: &Layout) -> &Rule {
        if layout.stored.is_some() { &self.least } else { &self.most }
    }

    /// Cores of a host that publishes so many messages per second.
    pub fn host(&self, layout: &Layout, rate: f64) -> f64 {
        let rule = self.rule(layout);
        rate * (rule.export + FAN_OUT * rule.import + self.local)
    }

    /// Each server of a cluster that so many messages per second come to.
    fn cluster(&self, layout: &Layout, messages: f64) -> Load {
        let (servers, mut load) = (layout.servers, Load::default());
        let each = messages / servers;
        let elsewhere = 1.0 - 1.0 / servers;
        let hops = match layout.stored {
            // One to each other server that has one who imports it.
            None => {
                load.takes(each, &self.most);
                load.sends(each * FAN_OUT, &self.most);
                (servers - 1.0) * (1.0 - elsewhere.powf(FAN_OUT))
            }
            // To the leader, and from it to the servers of those who import it.
            Some(Stored { replicas, .. }) => {
                load.takes(each * replicas, &self.least);
                load.sends(each * (replicas - 1.0), &self.most);
                load.sends(each * FAN_OUT, &self.least);
                elsewhere * (1.0 + FAN_OUT)
            }
        };
        load.takes(each * hops, &self.most);
        load.sends(each * hops, &self.most);
        load
    }

    /// The centre's servers, and the leaf nodes, if there are any.
    pub fn brokers(&self, layout: &Layout, rate: f64) -> (Load, Option<Load>) {
        if !layout.has_leaves {
            return (self.cluster(layout, HOSTS * rate), None);
        }
        let (own, mut leaf) = (LEAF * rate, Load::default());
        let (home, away) = (own * HOME, own * (1.0 - HOME));
        leaf.takes(home, self.rule(layout));
        leaf.sends(home * FAN_OUT, self.rule(layout));
        // From its hosts to the centre, and as many for each who imports them from other leaves.
        leaf.takes(away * (1.0 + FAN_OUT), &self.most);
        leaf.sends(away * (1.0 + FAN_OUT), &self.most);
        (self.cluster(layout, HOSTS * rate * (1.0 - HOME)), Some(leaf))
    }

    /// How many messages per second each host may publish: as the hosts' bridges, the streams, the brokers' cores, and their
    /// links allow.
    pub fn limits(&self, layout: &Layout) -> [f64; 4] {
        let (centre, leaf) = self.brokers(layout, 1.0);
        let worst = |of: fn(&Load) -> f64| of(&centre).max(leaf.as_ref().map_or(0.0, of));
        let stream = layout.stored.map_or(f64::INFINITY, |stored| {
            let each = 1.0 / self.least.broker_in;
            let central = if layout.has_leaves { HOSTS * (1.0 - HOME) } else { HOSTS };
            let home = if layout.has_leaves { LEAF * HOME } else { 0.0 };
            // A leaf has one.
            (each * stored.streams / central).min(each / home)
        });
        [
            1.0 / self.host(layout, 1.0),
            stream,
            USED * CORES / worst(|load| load.cpu),
            USED * LINK / worst(|load| load.bytes_in.max(load.bytes_out)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: f64 = 1e-6;
    const MOST: Rule = Rule {
        export: 2.0 * US,
        import: US,
        broker_in: US,
        broker_out: 0.5 * US,
        bytes_in: 200.0,
        bytes_out: 250.0,
    };
    const LEAST: Rule = Rule { export: 4.0 * US, import: 8.0 * US, broker_in: 10.0 * US, ..MOST };
    const COSTS: Costs = Costs { local: US, most: MOST, least: LEAST };

    fn near(one: f64, other: f64) {
        assert!((one / other - 1.0).abs() < 1e-9, "{one} {other}");
    }

    #[test]
    fn one_server_takes_each_and_sends_it_to_those_who_import_it() {
        let (load, leaf) = COSTS.brokers(&LAYOUTS[0], 1000.0);
        assert!(leaf.is_none());
        near(load.messages_in, 100_000.0);
        near(load.messages_out, 300_000.0);
        near(load.bytes_in, 20e6);
        near(load.bytes_out, 75e6);
        near(load.cpu, 0.1 + 0.15);
        near(COSTS.host(&LAYOUTS[0], 1000.0), 6e-3);
        near(COSTS.host(&LAYOUTS[3], 1000.0), 29e-3);
    }

    #[test]
    fn a_cluster_passes_messages_on() {
        let (load, _) = COSTS.brokers(&LAYOUTS[1], 1000.0);
        let hops = 2.0 * (1.0 - 8.0 / 27.0);
        near(load.messages_in * 3.0, 100_000.0 * (1.0 + hops));
        near(load.messages_out * 3.0, 100_000.0 * (3.0 + hops));
        let (load, _) = COSTS.brokers(&LAYOUTS[5], 1000.0);
        let hops = 2.0 / 3.0 * 4.0;
        near(load.messages_in * 3.0, 100_000.0 * (3.0 + hops));
        near(load.messages_out * 3.0, 100_000.0 * (2.0 + 3.0 + hops));
        let one = 3.0 * 10.0 + 2.0 * 0.5 + 3.0 * 0.5 + hops * 1.5;
        near(load.cpu * 3.0, 0.1 * one);
    }

    #[test]
    fn a_leaf_keeps_what_is_its_own() {
        let (centre, leaf) = COSTS.brokers(&LAYOUTS[2], 1000.0);
        let leaf = leaf.expect("a leaf");
        near(leaf.messages_in, 9_000.0 + 1_000.0 * 4.0);
        near(leaf.messages_out, 27_000.0 + 1_000.0 * 4.0);
        let (all, _) = COSTS.brokers(&LAYOUTS[1], 1000.0);
        near(centre.cpu * 10.0, all.cpu);
    }

    #[test]
    fn limits_are_where_the_load_is_all_there_is() {
        let [host, stream, cores, link] = COSTS.limits(&LAYOUTS[0]);
        near(host, 1e6 / 6.0);
        assert!(stream.is_infinite());
        near(COSTS.brokers(&LAYOUTS[0], cores).0.cpu, 0.7 * 8.0);
        near(COSTS.brokers(&LAYOUTS[0], link).0.bytes_out, 0.7 * LINK);
        let [one, ten] = [3, 4].map(|at| COSTS.limits(&LAYOUTS[at])[1]);
        near(one, 100_000.0 / 100.0);
        near(ten, 10.0 * one);
        // Ten hosts store nine tenths in one stream.
        near(COSTS.limits(&LAYOUTS[6])[1], 100_000.0 / 9.0);
    }
}
