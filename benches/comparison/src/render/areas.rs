//! What the page shows of each comparison.

pub struct Area {
    /// The comparison's.
    pub name: &'static str,
    /// The subject that is compared with the others.
    pub ours: &'static str,
    pub columns: &'static [Measure],
    pub plot: Plot,
}

#[derive(Clone, Copy)]
pub struct Measure {
    pub scenario: &'static str,
    pub metric: &'static str,
    /// Of the table's column, or the unit under a panel's title.
    pub heading: &'static str,
    pub better: Better,
}

#[derive(Clone, Copy)]
pub enum Better {
    Less,
    More,
}

pub struct Plot {
    pub title: &'static str,
    pub panels: &'static [(Measure, &'static str)],
    /// Who is shown, and under what name.
    pub subjects: &'static [(&'static str, &'static str)],
}

const fn less(scenario: &'static str, metric: &'static str, heading: &'static str) -> Measure {
    Measure { scenario, metric, heading, better: Better::Less }
}

const fn more(scenario: &'static str, metric: &'static str, heading: &'static str) -> Measure {
    Measure { scenario, metric, heading, better: Better::More }
}

const P99: &str = "p99 µs";
const RATE: &str = "req/s";
const CPU: &str = "server CPU µs/req";
const IDLE: &str = "bytes/idle connection";
const DELIVERIES: &str = "M deliveries/s";
const MESSAGES: &str = "k messages/s";
const P50: &str = "p50 µs";

const SERVERS: &[(&str, &str)] = &[
    ("paceline", "paceline"),
    ("tokio", "tokio"),
    ("asio", "Asio"),
    ("libuv", "libuv"),
    ("epoll", "epoll, a loop per thread"),
    ("textbook", "leader/followers, textbook"),
    ("half-sync", "half-sync/half-async"),
    ("io_uring", "io_uring, a loop per thread"),
];

/// The README's picture.
pub const README: Plot = Plot {
    title: "Echo server, 20 000 requests/s, one handler in a hundred blocks for 1 ms",
    panels: &[
        (less("slow-sleep", P99, "99th percentile of latency, µs"), "The 99 % that do not block"),
        (less("slow-sleep", CPU, "of the server's process, µs"), "CPU time per request"),
    ],
    subjects: SERVERS.split_at(6).0,
};

pub const AREAS: [Area; 9] = [
    Area {
        name: "echo",
        ours: "paceline",
        columns: &[
            more("c50", RATE, "c50 req/s"),
            less("c50", CPU, "c50 CPU µs"),
            less("c50", P99, "c50 p99 µs"),
            less("c1000", CPU, "c1000 CPU µs"),
            less("idle5000", IDLE, "idle bytes"),
            less("lone", CPU, "lone CPU µs"),
            less("slow-sleep", P99, "sleep p99 µs"),
            less("slow-sleep", CPU, "sleep CPU µs"),
        ],
        plot: Plot {
            title: "Echo servers, 64 bytes, no handler blocks: CPU time per request",
            panels: &[
                (less("c50", CPU, "µs per request"), "50 connections"),
                (less("c1000", CPU, "µs per request"), "1000 connections"),
            ],
            subjects: SERVERS,
        },
    },
    Area {
        name: "http",
        ours: "paceline",
        columns: &[
            more("c50", RATE, "c50 req/s"),
            less("c50", CPU, "c50 CPU µs"),
            less("c500", CPU, "c500 CPU µs"),
            less("c500", P99, "c500 p99 µs"),
            less("x16", CPU, "x16 CPU µs"),
            less("hostile", "times", "hostile, times"),
            less("idle", IDLE, "idle bytes"),
        ],
        plot: Plot {
            title: "HTTP servers with one thread: CPU time per request",
            panels: &[
                (less("c500", CPU, "µs per request"), "500 connections"),
                (less("x16", CPU, "µs per request"), "50 connections, pipelined by 16"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("floor", "floor: fixed bytes"),
                ("hyper", "hyper"),
                ("actix-web", "actix-web"),
                ("nginx", "nginx"),
                ("h2o", "h2o"),
                ("evhttp", "evhttp"),
            ],
        },
    },
    Area {
        name: "resp",
        ours: "paceline",
        columns: &[
            more("set", RATE, "SET req/s"),
            less("set", CPU, "SET CPU µs"),
            less("get", CPU, "GET CPU µs"),
            more("set16", RATE, "SET ×16 req/s"),
            less("set16", CPU, "SET ×16 CPU µs"),
            less("get16", CPU, "GET ×16 CPU µs"),
        ],
        plot: Plot {
            title: "Stores that speak RESP, GET, 50 clients: CPU time per command",
            panels: &[
                (less("get", CPU, "µs per command"), "one by one"),
                (less("get16", CPU, "µs per command"), "pipelined by 16"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("paceline-2", "paceline, two threads"),
                ("redis", "redis"),
                ("floor", "floor: fixed bytes"),
            ],
        },
    },
    Area {
        name: "submit",
        ours: "paceline",
        columns: &[
            less("submit", "one thread ns", "one thread ns"),
            less("submit", "two threads ns", "two threads ns"),
            less("submit", "inside ns", "inside ns"),
            less("submit", "batches of 32 ns", "batch of 32 ns"),
            less("submit", "wake p50 µs", "wake µs"),
            less("submit", "allocations/task", "allocations"),
        ],
        plot: Plot {
            title: "An empty task to two workers, from the first post to the last execution",
            panels: &[
                (less("submit", "one thread ns", "ns per task"), "posted by one thread"),
                (less("submit", "two threads ns", "ns per task"), "posted by two threads"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("paceline in C", "paceline, from C"),
                ("rayon", "rayon"),
                ("tokio", "tokio"),
                ("channel-bounded", "crossbeam, bounded"),
                ("channel-unbounded", "crossbeam, unbounded"),
                ("mutex", "mutex and deque"),
                ("asio", "Asio"),
                ("onetbb", "oneTBB"),
                ("moodycamel", "moodycamel"),
            ],
        },
    },
    Area {
        name: "tasks",
        ours: "paceline task",
        columns: &[
            less("task", "ns/task", "ns"),
            less("task", "CPU ns/task", "CPU ns"),
            less("task", "allocations/task", "allocations"),
        ],
        plot: Plot {
            title: "Tasks with a handle and a time limit; time-outs that nothing needs",
            panels: &[
                (less("task", "ns/task", "ns per task"), "submitted, run and redeemed"),
                (less("timeout", "arm and cancel ns", "ns"), "armed and cancelled"),
            ],
            subjects: &[
                ("paceline task", "paceline task"),
                ("paceline submit", "paceline submit"),
                ("paceline post", "paceline post"),
                ("tokio", "tokio"),
                ("a task's limit", "paceline, a task's limit"),
                ("a timer of the pool", "paceline, a timer"),
                ("tokio's sleep", "tokio's sleep"),
            ],
        },
    },
    Area {
        name: "hub",
        ours: "paceline",
        columns: &[
            more("to-1000", DELIVERIES, "to 1000, M/s"),
            more("to-10", DELIVERIES, "to ten, M/s"),
            more("to-one", DELIVERIES, "to one, M/s"),
        ],
        plot: Plot {
            title: "Publish/subscribe in one process, 8 bytes: deliveries",
            panels: &[
                (more("to-1000", DELIVERIES, "million/s"), "to 1000 subscribers"),
                (more("to-one", DELIVERIES, "million/s"), "to one subscriber"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("paceline, batches of 32", "paceline, batches"),
                ("tokio broadcast", "tokio broadcast"),
                ("crossbeam bounded, thread", "crossbeam bounded"),
                ("ZeroMQ inproc", "ZeroMQ inproc"),
            ],
        },
    },
    Area {
        name: "bridge",
        ours: "paceline",
        columns: &[
            more("at-most-once", MESSAGES, "at most once, k/s"),
            more("at-least-once", MESSAGES, "at least once, k/s"),
            less("alone", P50, "alone p50 µs"),
            less("paced", P50, "paced p50 µs"),
        ],
        plot: Plot {
            title: "Messages of 128 bytes to a NATS broker",
            panels: &[
                (more("at-most-once", MESSAGES, "thousand/s"), "at most once"),
                (more("at-least-once", MESSAGES, "thousand/s"), "at least once, stored on disk"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("async-nats", "async-nats"),
                ("async-nats, one header", "async-nats, one header"),
            ],
        },
    },
    Area {
        name: "durable",
        ours: "paceline",
        columns: &[more("empty", "tasks/s", "tasks/s")],
        plot: Plot {
            title: "Empty tasks that outlive the process, run by one worker process",
            panels: &[(more("empty", "tasks/s", "tasks/s"), "stored before")],
            subjects: &[
                ("paceline", "paceline, on NATS"),
                ("celery", "Celery, on Redis"),
                ("rq", "RQ, on Redis"),
                ("dramatiq", "Dramatiq, on Redis"),
            ],
        },
    },
    Area {
        name: "queue",
        ours: "paceline",
        columns: &[
            more("8x1024", "1p1c", "8 B 1p1c"),
            more("8x1024", "4p4c", "8 B 4p4c"),
            more("56x1024", "4p4c", "56 B 4p4c"),
            more("56x65536", "2p2c", "56 B 2p2c, large"),
        ],
        plot: Plot {
            title: "Queues of 1024 items of 8 bytes",
            panels: &[
                (more("8x1024", "1p1c", "million items/s"), "one producer, one consumer"),
                (more("8x1024", "4p4c", "million items/s"), "four producers, four consumers"),
            ],
            subjects: &[
                ("paceline", "paceline"),
                ("paceline-x16", "paceline, batches of 16"),
                ("ArrayQueue", "ArrayQueue"),
                ("SegQueue", "SegQueue"),
                ("crossbeam-channel", "crossbeam-channel"),
                ("flume", "flume"),
                ("kanal", "kanal"),
                ("disruptor", "disruptor"),
                ("disruptor-x16", "disruptor, batches of 16"),
                ("moodycamel", "moodycamel"),
                ("moodycamel-x16", "moodycamel, batches of 16"),
            ],
        },
    },
];

/// The guide's table of how far bridges go.
pub const SCALE: [Measure; 10] = [
    less("hosts", "host CPU %", "host CPU %"),
    less("hosts", "broker k/s in", "k/s in"),
    less("hosts", "broker k/s out", "k/s out"),
    less("hosts", "broker MB/s in", "MB/s in"),
    less("hosts", "broker MB/s out", "MB/s out"),
    less("hosts", "broker cores", "cores"),
    more("limits", "bridge", "bridge"),
    more("limits", "stream", "stream"),
    more("limits", "broker's cores", "cores' limit"),
    more("limits", "broker's link", "link's limit"),
];
