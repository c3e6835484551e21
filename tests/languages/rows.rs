//! The rows of docs/EXAMPLES.md, and why some cells have no program.

pub struct Area {
    pub name: &'static str,
    /// A name, and what the feature is.
    pub rows: &'static [(&'static str, &'static str)],
}

pub const AREAS: &[Area] = &[
    Area {
        name: "The pool",
        rows: &[
            ("pool/threads", "a fixed pool of threads, made at its start and pinned to CPUs"),
            (
                "pool/leader",
                "one leader for each handle set, and followers; a handler hands the lead on",
            ),
            ("pool/promotion", "promotion: deferred with a watch, or eager"),
            ("pool/sets", "several handle sets; others serve the set of a leader that is stuck"),
            ("pool/source", "a source of events in memory instead of epoll"),
            ("pool/tasks", "tasks with a result and without one, singly and in batches"),
            ("pool/lanes", "four lanes of priority"),
            ("pool/strands", "strands: one task at a time, without locks"),
            ("pool/timers", "timers: once, periodic, put off, cancelled"),
            ("pool/descriptors", "handlers of descriptors: sockets, pipes, eventfds"),
            ("pool/signals", "signals of the process"),
            ("pool/rings", "rings: events of a fixed size, handled in batches"),
            ("pool/queues", "bounded queues for use without a pool"),
            ("pool/executor", "the standard library's executor"),
            ("pool/join", "a pool inside an event loop of the program"),
            ("pool/slow", "a hook that hears of handlers that take too long"),
            ("pool/failures", "user code that fails ends nothing but itself"),
            ("pool/shutdown", "the end: drain, or stop at once; every task is accounted for"),
        ],
    },
    Area {
        name: "Servers",
        rows: &[
            ("server/handlers", "TCP and Unix listeners, a handler with hooks for each connection"),
            ("server/limits", "a maximum of connections with a refusal, an idle time-out"),
            (
                "server/requests",
                "a maximum of requests in work, answered later from another thread",
            ),
            ("server/output", "output that never blocks, slow readers, half-close"),
            ("server/connect", "connections to others"),
            ("server/inherited", "sockets that systemd has opened"),
            ("server/exhausted", "accepting when descriptors run out"),
            ("server/frames", "where a message ends: delimiter, length, fixed size"),
            ("server/drain", "a graceful end of a server"),
            ("server/datagrams", "datagrams of UDP in batches"),
            ("http/routes", "HTTP/1.1: routes with parameters, bodies, JSON, errors"),
            ("http/later", "a response that is sent later, by another thread"),
            ("http/streaming", "bodies that are streamed in and out"),
            ("http/middleware", "middleware, fallback, a hook at the end of each request"),
            ("http/limits", "limits, keep-alive, pipelining"),
            ("http/upgrade", "a change of protocol"),
        ],
    },
    Area {
        name: "Worker pools",
        rows: &[
            ("workers/tasks", "tasks with a report, in batches, and those that nobody waits for"),
            (
                "workers/priorities",
                "priorities, and a thread that is kept free for what is critical",
            ),
            ("workers/full", "bounds, and what is done without room"),
            ("workers/retries", "retries with back-off, permanent failures"),
            ("workers/budget", "a budget for retries"),
            ("workers/timeouts", "limits in time, cancellation"),
            ("workers/stuck", "tasks that do not return are reported"),
            ("workers/delayed", "delayed, rate-limited and keyed tasks"),
            ("workers/periodic", "periodic tasks"),
            ("workers/scaling", "active threads by load"),
            ("workers/middleware", "middleware around attempts"),
            ("workers/health", "health, metrics, figures of the program's own"),
            ("workers/shutdown", "the end in phases, with hooks and a report"),
        ],
    },
    Area {
        name: "The event hub",
        rows: &[
            ("hub/subscribe", "publish and subscribe, patterns, counts, a quiet end"),
            ("hub/execution", "where a handler runs: serial, inline, concurrent, one strand"),
            ("hub/topics", "typed topics with a codec"),
            ("hub/filters", "filters before the mailbox"),
            ("hub/priority", "messages by priority"),
            ("hub/overflow", "bounded mailboxes, and what a full one does"),
            ("hub/groups", "groups that share messages"),
            ("hub/requests", "request and reply"),
            ("hub/together", "several messages that all mailboxes take, or none"),
            ("hub/dead_letters", "retries, dead letters, redelivery"),
            ("hub/supervision", "handlers that are restarted and suspended"),
            ("hub/history", "history in memory, queries, replay without gap or duplicate"),
            ("hub/archive", "an archive on disk, lines of JSON, an archive without a hub"),
            ("hub/publishers", "publishers with quotas and permitted keys"),
            ("hub/notices", "what the hub tells of itself, and its latest errors"),
            ("hub/thresholds", "thresholds of figures"),
        ],
    },
    Area {
        name: "Completion queues: events as data",
        rows: &[
            ("cq/pool", "descriptors, timers and tags of the program's own"),
            ("cq/server", "connections"),
            ("cq/requests", "HTTP requests"),
            ("cq/datagrams", "datagrams"),
            ("cq/attempts", "attempts and ends of tasks"),
            ("cq/messages", "messages and replies of the hub"),
            ("cq/records", "records of the log, and signals"),
            ("cq/leases", "leases: what a thread that is gone has had is brought again"),
        ],
    },
    Area {
        name: "Seeing it and running it",
        rows: &[
            ("ops/log", "a structured log: to a function, to a file that is rotated"),
            ("ops/metrics", "figures of a pool, the process, the disks and a hub"),
            ("ops/settings", "settings from files and the environment"),
            ("ops/service", "a service of systemd, with its watchdog"),
            ("ops/webhook", "notices by HTTP POST"),
        ],
    },
    Area {
        name: "Coroutines",
        rows: &[("async/await", "tasks, requests, messages and handlers with await")],
    },
];

/// A row, a language, and why it has no program in it.
pub const HOLES: &[(&str, &str, &str)] = &[
    ("pool/sets", "Python", "its threads share one handle set"),
    ("pool/executor", "C", "the interface is Python's"),
    ("pool/executor", "C++", "the interface is Python's"),
    ("pool/slow", "Python", "no hook: see `utilisation` in Pool.stats"),
    ("hub/execution", "Python", "handlers run on the threads of the hub, or in an event loop"),
    ("hub/topics", "C", "messages are bytes"),
    ("cq/requests", "Python", "the package is built on it"),
    ("cq/datagrams", "Python", "the package is built on it"),
    ("cq/attempts", "Python", "the package is built on it"),
    ("async/await", "C", "it has no coroutines"),
    ("async/await", "C++", "waits block, and hold up no other thread"),
];
