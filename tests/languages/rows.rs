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
            ("pool/join", "a pool inside an event loop of the program"),
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
            ("server/frames", "where a message ends: delimiter, length, fixed size"),
            ("server/drain", "a graceful end of a server"),
            ("server/datagrams", "datagrams of UDP in batches"),
            ("http/routes", "HTTP/1.1: routes with parameters, bodies, JSON, errors"),
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
            ("workers/delayed", "delayed, rate-limited and keyed tasks"),
            ("workers/periodic", "periodic tasks"),
            ("workers/scaling", "active threads by load"),
            ("workers/middleware", "middleware around attempts"),
            ("workers/health", "health, metrics, figures of the program's own"),
            ("workers/shutdown", "the end in phases, with hooks and a report"),
        ],
    },
];

/// A row, a language, and why it has no program in it.
pub const HOLES: &[(&str, &str, &str)] =
    &[("pool/sets", "Python", "its threads share one handle set")];
