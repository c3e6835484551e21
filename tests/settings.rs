//! Settings: layers, the one table, and every message word for word.
#![cfg(feature = "config")]

mod common;

use common::until;
use paceline::admin::{Kind, Layers, Settings};
use paceline::{Error, Pin, Pool, Promotion, SourceKind};
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, process};

/// A folder of its own, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("paceline-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The messages for a file of this name and text, without the folder.
    fn complaints(&self, name: &str, text: impl AsRef<[u8]>) -> Vec<String> {
        complaints(Settings::layers().file(self.write(name, text)), &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn complaints(layers: Layers, folder: &std::path::Path) -> Vec<String> {
    match layers.build() {
        Ok(_) => vec![],
        Err(error) => {
            let Error::Settings { problems } = &error else { panic!("{error:?}") };
            let folder = format!("{}/", folder.display());
            let lines: Vec<_> =
                problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect();
            assert_eq!(error.to_string().replace(&folder, ""), lines.join("\n"));
            lines
        }
    }
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

/// Name, text, and all messages.
const BAD: &[(&str, &str, &[&str])] = &[
    ("a.yaml", "pool: {threads: 2000}", &["a.yaml: pool.threads is 2000, but must be 0 to 1024"]),
    (
        "a.json",
        r#"{"pool": {"threads": -1}}"#,
        &["a.json: pool.threads is -1, but must be 0 to 1024"],
    ),
    (
        "a.yaml",
        "pool: {threads: four}",
        &["a.yaml: pool.threads is \"four\", but must be 0 to 1024"],
    ),
    ("a.yaml", "pool: {threads: '4'}", &["a.yaml: pool.threads is \"4\", but must be 0 to 1024"]),
    ("a.yaml", "pool: {threads: 2.5}", &["a.yaml: pool.threads is 2.5, but must be 0 to 1024"]),
    ("a.yaml", "pool:\n  threads:\n", &["a.yaml: pool.threads is null, but must be 0 to 1024"]),
    (
        "a.yaml",
        "pool: {threads: 99999999999999999999999}",
        &["a.yaml: pool.threads is 1e23, but must be 0 to 1024"],
    ),
    (
        "a.yaml",
        "pool: {stack_size: 1 kB, name: ''}",
        &[
            "a.yaml: pool.stack_size is \"1 kB\", but must be 64 KiB to 4 GiB, in bytes or with a unit",
            "a.yaml: pool.name is \"\", but must be a text without NUL of at least one byte",
        ],
    ),
    (
        "a.yaml",
        "pool: {watch_period: 200, spin: 1h}",
        &[
            "a.yaml: pool.watch_period is 200, but must be 10us to 1s, with a unit, as \"5ms\"",
            "a.yaml: pool.spin is \"1h\", but must be 0s to 100ms, with a unit, as \"5ms\"",
        ],
    ),
    (
        "a.yaml",
        "pool: {promotion: lazy, source: [], pin_strict: yes}",
        &[
            "a.yaml: pool.promotion is \"lazy\", but must be deferred or eager",
            "a.yaml: pool.source is [], but must be epoll or ring",
            "a.yaml: pool.pin_strict is \"yes\", but must be true or false",
        ],
    ),
    (
        "a.yaml",
        "pool: {pin: [0, -2]}",
        &["a.yaml: pool.pin is [0, -2], but must be none, compact, spread or a list of CPUs like \
           0,2,4-7"],
    ),
    (
        "a.yaml",
        "pool: {pin: far}",
        &["a.yaml: pool.pin is \"far\", but must be none, compact, spread or a list of CPUs like \
           0,2,4-7"],
    ),
    (
        "a.yaml",
        "pool: {thread: 2, colour: red}\npol: {}\nkitchen: {}",
        &[
            "a.yaml: pool.thread is not a setting; did you mean pool.threads?",
            "a.yaml: pool.colour is not a setting",
            "a.yaml: pol is not a setting; did you mean pool?",
            "a.yaml: kitchen is not a setting",
        ],
    ),
    ("a.yaml", "pool: 4", &["a.yaml: pool is 4, but must be a section of settings"]),
    (
        "a.yaml",
        "pool: {name: {}}",
        &["a.yaml: pool.name is a section, but must be a text without NUL \
       of at least one byte"],
    ),
    (
        "a.yaml",
        "pool:\n  threads: 2\n  threads: 3\npool:\n  spin: 1us\n",
        &["a.yaml: pool is given more than once", "a.yaml: pool.threads is given more than once"],
    ),
    (
        "a.json",
        r#"{"pool": {"threads": 2, "threads": 2}}"#,
        &["a.json: pool.threads is given more than once"],
    ),
    (
        "a.yaml",
        "pool: {threads: 0, max_joined: 0}",
        &["a.yaml: pool.threads is 0, but must be 1 to 1024, or 0 with max_joined of at least 1"],
    ),
    (
        "a.yaml",
        "pool: {threads: 4, leaders: 4}",
        &["a.yaml: pool.leaders is 4, but must be 1 to 3, which is below the 4 threads"],
    ),
    (
        "a.yaml",
        "pool: &p {threads: 2}\nworkers: {<<: *p}",
        &[
            "a.yaml: merge keys (<<) are not supported: write the settings out, at line 2, column 11",
        ],
    ),
    (
        "a.yaml",
        "bridge: {servers: [], password: 42, token: {}, permit: [1]}",
        &[
            "a.yaml: bridge.servers is [], but must be a list of texts, or one text with commas between them",
            "a.yaml: bridge.password is ***, but must be a text without NUL of at least one byte",
            "a.yaml: bridge.token is ***, but must be a text without NUL of at least one byte",
            "a.yaml: bridge.permit is [1], but must be a list of texts, or one text with commas between them",
        ],
    ),
    (
        "a.yaml",
        "bridge: {servers: \"nats://joe:secret@a\\0\"}",
        &[
            "a.yaml: bridge.servers is \"nats://a\\0\", but must be a list of texts, or one text with commas between them",
        ],
    ),
    (
        "a.yaml",
        "bridge:\n  exports: [{pattern: a, bufer: 1}, {prefix: 'eu.'}, {pattern: b, buffer: 0}, [], 'c.>']\n  imports: 7",
        &[
            "a.yaml: bridge.exports[0].bufer is not a setting; did you mean bridge.exports[0].buffer?",
            "a.yaml: bridge.exports[1].pattern is unset, but must be set",
            "a.yaml: bridge.exports[2].buffer is 0, but must be 1 to 16777216",
            "a.yaml: bridge.exports[3].pattern is [], but must be a text without NUL of at least one byte",
            "a.yaml: bridge.imports is 7, but must be a list of patterns and of sections, or patterns with commas \
             between them",
        ],
    ),
    (
        "a.yaml",
        "bridge:\n  imports:\n  - {pattern: a, stream: A}\n  - {pattern: b, retries: 1, pattern: c}\n  - {pattern: d, \
         stream: D, durable: d, start_at: noon}",
        &[
            "a.yaml: bridge.imports[0].durable is unset, but must be set, as there is a stream",
            "a.yaml: bridge.imports[1].pattern is given more than once",
            "a.yaml: bridge.imports[1].retries is set, but must be unset, as there is no stream",
            "a.yaml: bridge.imports[2].start_at is \"noon\", but must be first, new, a number in the stream, or a time \
             as 2026-11-28T06:00:00Z",
        ],
    ),
    (
        "a.yaml",
        "bridge: {user: joe}",
        &["a.yaml: bridge.password is unset, but must be set, as bridge.user is set"],
    ),
    (
        "a.yaml",
        "bridge: {password: secret}",
        &["a.yaml: bridge.user is unset, but must be set, as bridge.password is set"],
    ),
    (
        "a.yaml",
        "bridge: {user: joe, password: secret, password_file: /a}",
        &["a.yaml: bridge.password_file is set, but must be unset, as bridge.password is set"],
    ),
    (
        "a.yaml",
        "bridge: {token: secret, nkey_file: /a}",
        &["a.yaml: bridge.nkey_file is set, but must be unset, as bridge.token is set"],
    ),
    (
        "a.yaml",
        "bridge: {tls_certificate: /a}",
        &["a.yaml: bridge.tls_key is unset, but must be set, as bridge.tls_certificate is set"],
    ),
    ("a.toml", "threads = 4", &["a.toml: its name must end in .json, .yaml or .yml"]),
    ("a.yaml", "- pool", &["a.yaml: it is [\"pool\"], but must be sections of settings"]),
    ("a.json", "{\"pool\": ", &["a.json: EOF while parsing a value at line 1 column 9"]),
    ("a.yaml", "pool: {threads", &["a.yaml: unclosed bracket '{' at line 1, column 7"]),
];

#[test]
fn every_bad_file_is_told_word_for_word() {
    let folder = Folder::new("bad");
    let mut wrong = vec![];
    for (name, text, expected) in BAD {
        let complaints = folder.complaints(name, text);
        if complaints != *expected {
            wrong.push(format!("{text}\n   {complaints:#?}\n   {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let folder = Folder::new("unreadable");
    let missing = Settings::layers().file(folder.0.join("none.yaml"));
    assert_eq!(
        complaints(missing, &folder.0),
        ["none.yaml: No such file or directory (os error 2)"]
    );
    assert_eq!(
        folder.complaints("bytes.yaml", [0xff, 0xfe, 0xfd]),
        ["bytes.yaml: stream did not contain valid UTF-8"]
    );
    let large = format!("# {}\n", "x".repeat(1 << 20));
    assert_eq!(folder.complaints("large.yaml", large), ["large.yaml: it is larger than 1 MiB"]);
    fs::create_dir(folder.0.join("d.json")).unwrap();
    let directory = Settings::layers().file(folder.0.join("d.json"));
    assert_eq!(complaints(directory, &folder.0), ["d.json: Is a directory (os error 21)"]);
}

/// An alias that stands for much is refused before it is written out.
#[test]
fn a_bomb_of_aliases_is_refused() {
    let folder = Folder::new("bomb");
    let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (name, before) in ('b'..='z').zip('a'..) {
        let of = format!("*{before}");
        text += &format!("{name}: &{name} [{}]\n", vec![of; 9].join(","));
    }
    let complaints = folder.complaints("bomb.yaml", text);
    assert!(complaints[0].starts_with("bomb.yaml: "), "{complaints:?}");
    assert!(complaints[0].contains("what aliases stand for"), "{complaints:?}");
}

#[test]
fn all_problems_of_all_layers_are_told_at_once() {
    let folder = Folder::new("layers");
    let (first, second) = (
        folder.write("one.yaml", "pool: {threads: -1, thread: 4}"),
        folder.write("two.json", r#"{"pool": {"spin": 4}}"#),
    );
    let layers = Settings::layers()
        .file(first)
        .file(second)
        .variables([
            pair("PACELINE_POOL_SPIN", "1h"),
            pair("PACELINE_POOL_THREADS", "four"),
            pair("PACELINE_POOL_THREAD", "4"),
            pair("PACELINE_BLESS", "1"),
            pair("PACELINE_POOLS", "1"),
            pair("HOME", "/"),
        ])
        .set("pool.threads", 5000)
        .set("pool.treads", 4);
    assert_eq!(
        complaints(layers, &folder.0),
        [
            "one.yaml: pool.threads is -1, but must be 0 to 1024",
            "one.yaml: pool.thread is not a setting; did you mean pool.threads?",
            "two.json: pool.spin is 4, but must be 0s to 100ms, with a unit, as \"5ms\"",
            "PACELINE_POOL_SPIN: pool.spin is \"1h\", but must be 0s to 100ms, with a unit, as \"5ms\"",
            "PACELINE_POOL_THREADS: pool.threads is \"four\", but must be 0 to 1024",
            "the environment: PACELINE_POOL_THREAD is not a setting; did you mean \
             PACELINE_POOL_THREADS?",
            "set: pool.threads is 5000, but must be 0 to 1024",
            "set: pool.treads is not a setting; did you mean pool.threads?",
        ]
    );
}

/// In whatever order they are added.
#[test]
fn code_wins_over_the_environment_over_later_files_over_earlier_ones() {
    let folder = Folder::new("order");
    let one = folder.write("one.yaml", "pool: {threads: 1, max_joined: 1, spin: 1us, name: one}");
    let two = folder.write("two.yml", "pool: {threads: 2, max_joined: 2, spin: 2us}");
    let settings = Settings::layers()
        .set("pool.threads", 4)
        .variables([pair("PACELINE_POOL_THREADS", "3"), pair("PACELINE_POOL_MAX_JOINED", "3")])
        .file(one)
        .file(two)
        .build()
        .unwrap();
    let pool = &settings.pool;
    assert_eq!((pool.threads, pool.max_joined), (Some(4), Some(3)));
    assert_eq!((pool.spin, pool.name.as_deref()), (Some(Duration::from_micros(2)), Some("one")));
    assert_eq!(pool.leaders, None);
}

const EVERYTHING: &str = r#"
pool:
  threads: 2
  max_joined: 3
  leaders: 1
  source: ring
  promotion: eager
  watch_period: 1ms 500us
  pin: [0]
  pin_strict: false
  spin: 10us
  lane_capacity: 64
  strand_capacity: 32
  max_handles: 512
  name: rider
  stack_size: 256 KiB
"#;

#[test]
fn everything_that_can_be_set_arrives_in_the_pool() {
    let folder = Folder::new("everything");
    let settings = Settings::layers().file(folder.write("all.yaml", EVERYTHING)).build().unwrap();
    let pool = &settings.pool;
    assert!(matches!(pool.source, Some(SourceKind::Ring)));
    assert_eq!(pool.promotion, Some(Promotion::Eager));
    assert_eq!(pool.watch_period, Some(Duration::from_micros(1500)));
    assert_eq!(pool.pin, Some(Pin::List(vec![0])));
    let shown = format!("{:?}", settings.pool_builder());
    for part in [
        "threads: Some(2)",
        "max_joined: 3",
        "leaders: Some(1)",
        "source: Ring",
        "promotion: Eager",
        "watch_period: 1.5ms",
        "pin: Some(List([0]))",
        "spin: 10µs",
        "lane_capacity: 64",
        "strand_capacity: 32",
        "max_handles: 512",
        "name: \"rider\"",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let pool = settings.pool_builder().pin(Pin::None).build().unwrap();
    assert_eq!(pool.stats().threads.len(), 2 + 3);
    let name = pool.submit(|| fs::read_to_string("/proc/thread-self/comm").unwrap()).unwrap();
    let name = name.wait().unwrap();
    assert!(name.starts_with("rider-"), "{name}");
    until("rest", || pool.audit().in_flight == 0 && pool.audit().balances());
}

#[test]
fn json_says_the_same_as_yaml() {
    let folder = Folder::new("json");
    let json =
        r#"{"pool": {"threads": 2, "pin": "0,2-3", "stack_size": 262144, "pin_strict": true}}"#;
    let settings = Settings::layers().file(folder.write("a.json", json)).build().unwrap();
    let pool = settings.pool;
    assert_eq!((pool.threads, pool.pin), (Some(2), Some(Pin::List(vec![0, 2, 3]))));
    assert_eq!((pool.stack_size, pool.pin_strict), (Some(262_144), Some(true)));
}

/// Goal: a mark that editors put first is no part of what a file says.
#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = Folder::new("mark");
    for (name, text) in
        [("a.json", r#"{"pool": {"threads": 3}}"#), ("a.yaml", "pool: {threads: 3}")]
    {
        let path = folder.write(name, format!("\u{feff}{text}"));
        let settings = Settings::layers().file(path).build().unwrap();
        assert_eq!(settings.pool.threads, Some(3), "{name}");
    }
}

/// Goal: who passes all variables on, set or not, sets nothing by those that are not.
#[test]
fn a_variable_that_is_empty_is_not_set() {
    for field in Settings::fields() {
        let layers = Settings::layers().variables([pair(&field.variable(), "")]);
        let settings = layers.build().unwrap();
        assert_eq!(
            format!("{settings:?}"),
            format!("{:?}", Settings::default()),
            "{}",
            field.key()
        );
    }
    let misspelt = Settings::layers().variables([pair("PACELINE_POOL_THRAEDS", "")]);
    assert!(misspelt.build().is_err(), "it is told all the same");
}

#[test]
fn empty_files_and_no_layers_set_nothing() {
    let folder = Folder::new("empty");
    for text in ["", "# nothing\n", "{}", "pool: {}"] {
        let settings = Settings::layers().file(folder.write("a.yaml", text)).build().unwrap();
        assert_eq!(
            format!("{:?}", settings.pool_builder()),
            format!("{:?}", Pool::builder()),
            "{text}"
        );
    }
}

/// In a child of this process that has them.
#[test]
fn variables_are_read_from_the_environment() {
    const SET: [(&str, &str); 5] = [
        ("PACELINE_POOL_THREADS", "3"),
        ("PACELINE_POOL_PIN", "spread"),
        ("PACELINE_POOL_PIN_STRICT", "false"),
        ("PACELINE_POOL_STACK_SIZE", "1MiB"),
        ("PACELINE_POOL_WATCH_PERIOD", "2ms"),
    ];
    if std::env::var_os(SET[0].0).is_none() {
        let child = process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "variables_are_read_from_the_environment", "--nocapture"])
            .envs(SET)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let pool = Settings::layers().environment().build().unwrap().pool;
    assert_eq!((pool.threads, pool.pin), (Some(3), Some(Pin::Spread)));
    assert_eq!((pool.pin_strict, pool.stack_size), (Some(false), Some(1 << 20)));
    assert_eq!(pool.watch_period, Some(Duration::from_millis(2)));
}

/// The ends of each range are what a pool takes, and what lies beyond is what it refuses: the table and
/// the builder cannot drift apart.
#[test]
fn the_table_and_the_builder_agree_on_every_range() {
    let accepts = |key: &str, value: String| {
        let roomy = Settings::layers().set("pool.threads", 1024).set("pool.max_joined", 1);
        roomy.set(key, value).build()
    };
    let builder = |name: &str, value: u64| {
        let (builder, count) = (Pool::builder().threads(0).max_joined(1), value as usize);
        let nanos = Duration::from_nanos(value);
        match name {
            "max_joined" => builder.threads(1).max_joined(count),
            "threads" => builder.threads(count),
            "lane_capacity" => builder.lane_capacity(count),
            "strand_capacity" => builder.strand_capacity(count),
            "max_handles" => builder.max_handles(count),
            "stack_size" => builder.stack_size(count),
            "watch_period" => builder.watch_period(nanos),
            "spin" => builder.spin(nanos),
            "max_turn" => builder.max_turn(nanos),
            other => panic!("{other} is not looked at"),
        }
    };
    for field in Settings::fields().filter(|field| field.section == "pool") {
        let (low, high, text): (_, _, fn(u64) -> String) = match field.kind {
            Kind::Count { low, high } | Kind::Bytes { low, high } => (low, high, |n| n.to_string()),
            Kind::Time { low, high } => {
                (low.as_nanos() as u64, high.as_nanos() as u64, |n| format!("{n}ns"))
            }
            _ => continue,
        };
        let key = field.key();
        for value in [low, high] {
            assert!(accepts(&key, text(value)).is_ok(), "{key} {value}");
        }
        for value in low.checked_sub(1).into_iter().chain([high + 1]) {
            assert!(accepts(&key, text(value)).is_err(), "{key} {value}");
            // How many leaders there may be depends on the threads.
            if field.name != "leaders" {
                let refused = builder(field.name, value).build();
                assert!(
                    matches!(&refused, Err(Error::Invalid { name, .. }) if *name == field.name),
                    "{key} {value}: {refused:?}"
                );
            }
        }
    }
}

/// As above, for the logs.
#[test]
fn the_table_and_the_builders_of_logs_agree_on_every_range() {
    let settings = Settings::default();
    let log = |name: &str, value: u64| {
        let builder = settings.log_builder().facade(false);
        let built = match name {
            "max_size" => builder.max_size(value as usize).build(),
            "files" => builder.files(value as usize).build(),
            "capacity" => builder.capacity(value as usize).build(),
            other => panic!("{other} is not looked at"),
        };
        built.is_ok()
    };
    for field in Settings::fields() {
        if field.section != "log" {
            continue;
        }
        let (Kind::Count { low, high } | Kind::Bytes { low, high }) = field.kind else { continue };
        for (value, is_good) in [(low - 1, false), (low, true), (high, true), (high + 1, false)] {
            let set = Settings::layers().set(&field.key(), value).build();
            assert_eq!(set.is_ok(), is_good, "{} {value}", field.key());
            assert_eq!(log(field.name, value), is_good, "{} {value}", field.key());
        }
    }
}

/// As above, for worker pools.
#[test]
fn the_table_and_the_builder_of_worker_pools_agree_on_every_range() {
    let pool = Pool::builder().threads(2).build().unwrap();
    let builder = |name: &str, value: u64| {
        let builder = Settings::default().worker_pool_builder(&pool);
        match name {
            "max_droppable" => builder.max_droppable(value as usize),
            "max_waiting" => builder.max_waiting(value as usize),
            other => panic!("{other} is not looked at"),
        }
    };
    for field in Settings::fields().filter(|field| field.section == "workers") {
        // How many threads may be active depends on the pool.
        let Kind::Count { low, high } = field.kind else { continue };
        for (value, is_good) in [(low - 1, false), (low, true), (high, true), (high + 1, false)] {
            let set = Settings::layers().set(&field.key(), value).build();
            assert_eq!(set.is_ok(), is_good, "{} {value}", field.key());
            if field.name != "min_active" {
                assert_eq!(builder(field.name, value).build().is_ok(), is_good, "{value}");
            }
        }
    }
}

#[test]
fn a_worker_pool_is_built_from_its_section() {
    let folder = Folder::new("workers");
    let pool = Pool::builder().threads(2).build().unwrap();
    let text = "workers: {min_active: 2, full: drop_oldest, max_droppable: 7, max_waiting: 16}";
    let settings = Settings::layers().file(folder.write("a.yaml", text)).build().unwrap();
    let builder = settings.worker_pool_builder(&pool);
    assert_eq!(
        format!("{builder:?}"),
        "WorkerPoolBuilder { max_waiting: 16, full: DropOldest, max_droppable: Some(7), scaling: \
         Some(Scaling { min_active: 2, high: 2ms, low: 200µs, percentile: 95, period: 20ms, \
         patience: 10 }), .. }"
    );
    assert!(builder.build().is_ok());
    for (text, full) in [("wait", "Wait("), ("reject", "Reject"), ("run_here", "RunHere")] {
        let settings = Settings::layers().set("workers.full", text).build().unwrap();
        let builder = format!("{:?}", settings.worker_pool_builder(&pool));
        assert!(builder.contains(&format!("full: {full}")), "{builder}");
    }
    assert_eq!(
        folder.complaints("b.json", r#"{"workers": {"full": "drop", "min_active": 0}}"#),
        [
            "b.json: workers.full is \"drop\", but must be wait or reject or run_here or drop_oldest",
            "b.json: workers.min_active is 0, but must be 1 to 1024",
        ]
    );
}

#[test]
fn a_log_is_built_from_its_section() {
    let folder = Folder::new("log");
    let text = "log: {levels: 'warn,net=debug', facade: false, file: b.log, max_size: 2 MiB, files: 7, \
                capacity: 32}";
    let settings = Settings::layers().file(folder.write("a.yaml", text)).build().unwrap();
    assert_eq!(
        format!("{:?}", settings.log_builder()),
        "LogBuilder { settings: Settings { facade: false, file: Some(\"b.log\"), max_size: 2097152, \
         files: 7, capacity: 32 }, levels: Levels(warn,net=debug), .. }"
    );
}

#[test]
fn levels_come_from_the_environment_and_are_named_if_they_are_wrong() {
    let levels = |text: &str| {
        Settings::layers().variables([("PACELINE_LOG_LEVELS".into(), text.into())]).build()
    };
    let good = levels("info,net=debug").unwrap().log.levels.unwrap();
    assert_eq!(good.to_string(), "info,net=debug");
    let wrong = levels("info,nte=debug").unwrap_err().to_string();
    assert_eq!(
        wrong,
        "PACELINE_LOG_LEVELS: log.levels is \"info,nte=debug\", but must be levels (off, error, warn, info, \
         debug, trace), one for all and one for each of pool, net, http, task, hub, history, webhook, \
         service, log, as info,net=debug"
    );
}

/// Takes what comes.
struct Nothing;
impl paceline::net::ConnHandler for Nothing {
    fn data(&mut self, _: &paceline::net::Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

const SERVICE: &str = r#"
pool: {threads: 2, name: rider}
workers: {max_waiting: 16}
tasks: {lane: high, timeout: 2s, retries: 3, retry_growth: fixed, retry_delay: 1ms, full: reject}
hub: {max_payload: 8 B, dead_letters: 5}
history: {pattern: "a.>", keep_count: 2}
server: {address: "127.0.0.1:0", max_connections: 7, output_low: 1, output_high: 2}
http: {max_body: 3, head_timeout: 1s}
webhook: {url: "http://127.0.0.1:9/", capacity: 4, retries: 0}
log: {levels: warn, facade: false}
"#;

/// Goal: a whole service comes out of one file, and of the environment over it. Method: each part is built, and does what
/// was set, or shows it.
#[test]
fn a_service_is_built_from_one_file_and_the_environment() {
    use paceline::hub::history::Query;
    use paceline::task::Attempt;
    let folder = Folder::new("service");
    let settings = Settings::layers()
        .file(folder.write("a.yaml", SERVICE))
        .variables([pair("PACELINE_TASKS_RETRIES", "1"), pair("PACELINE_HUB_MAX_PAYLOAD", "4")])
        .build()
        .unwrap();
    let pool = settings.pool_builder().build().unwrap();
    let workers = settings.worker_pool_builder(&pool).build().unwrap();
    let task_type = settings.task_type(&workers, "fails").build().unwrap();
    let task = task_type.submit(|_: &Attempt<'_>| Err::<(), _>("no")).unwrap();
    assert_eq!(task.wait().unwrap().attempts, 2);
    let shown = format!("{:?}", settings.task_type(&workers, "shown"));
    for part in ["lane: High", "attempt: 2000000000,", "full: Some(Reject)"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }

    let hub = settings.hub_builder(&pool).build().unwrap();
    assert!(hub.publish("a.b", b"12345").is_err(), "the environment wins");
    for number in 0..5u8 {
        let _ = hub.publish("a.b", &[number]).unwrap();
    }
    assert_eq!(hub.query(&Query::of("a.b")).unwrap().len(), 2);
    assert!(hub.query(&Query::of("b")).is_err());

    let server = settings.server_builder(&pool).serve(|_: &_| Nothing).unwrap();
    assert_eq!(server.addresses().len(), 1);
    #[cfg(feature = "http")]
    {
        let http = settings.http_builder(&pool).serve().unwrap();
        assert_eq!(http.addresses().len(), 1);
    }
    #[cfg(feature = "webhook")]
    assert!(settings.webhook_builder().unwrap().build().is_ok());
    assert!(pool.shutdown(common::LONG).drained);

    let nothing = Settings::default();
    #[cfg(feature = "webhook")]
    assert!(nothing.webhook_builder().is_none());
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = nothing.hub_builder(&pool).build().unwrap();
    assert!(hub.history_stats().is_empty());
}

/// Goal: what the table lets through, the builders take. Method: the ends of each range, one after the other.
#[test]
fn what_services_may_be_set_to_is_taken() {
    let folder = Folder::new("ends");
    let ends = |field: &paceline::admin::Field| match field.kind {
        Kind::Count { low, high } | Kind::Bytes { low, high } => {
            [low.to_string(), high.to_string()]
        }
        Kind::Time { low, high } => {
            [format!("{}ns", low.as_nanos()), format!("{}s", high.as_secs())]
        }
        Kind::Choice(all) => [all[0].into(), (*all.last().unwrap()).into()],
        Kind::Flag => ["true".into(), "false".into()],
        _ => match field.name {
            "address" => ["127.0.0.1:0".into(), "[::1]:0".into()],
            "url" | "proxy" => ["http://127.0.0.1:9".into(), "http://localhost:9".into()],
            "pattern" => [">".into(), "a.*".into()],
            _ => {
                [folder.0.join("x").display().to_string(), folder.0.join("y").display().to_string()]
            }
        },
    };
    let pool = Pool::builder().threads(1).build().unwrap();
    let workers = Settings::default().worker_pool_builder(&pool).build().unwrap();
    let mut looked = 0;
    for field in Settings::fields() {
        if ["pool", "workers", "log", "bridge"].contains(&field.section)
            || field.name == "archive" && !cfg!(feature = "archive")
        {
            continue;
        }
        for value in ends(field) {
            let key = field.key();
            let set = |layers: Layers| layers.set(&key, &value);
            let base = match field.section {
                "server" | "http" => Settings::layers().set("server.address", "127.0.0.1:0"),
                "webhook" => Settings::layers().set("webhook.url", "http://127.0.0.1:9"),
                "tasks" => Settings::layers().set("tasks.retries", 1),
                _ => Settings::layers(),
            };
            let base = match field.name {
                // They depend on each other.
                "output_low" | "output_high" => base
                    .set("server.output_low", 0)
                    .set("server.output_max", 1u64 << 40)
                    .set("server.output_high", 1u64 << 40),
                "output_max" => base.set("server.output_low", 0).set("server.output_high", 1),
                "archive_count" | "archive_bytes" | "archive_age" if !cfg!(feature = "archive") => {
                    base
                }
                _ => base,
            };
            if (field.name, value.as_str()) == ("output_low", "1099511627776")
                || (field.name, value.as_str()) == ("max_unconsumed", "1")
            {
                continue;
            }
            let settings =
                set(base).build().unwrap_or_else(|error| panic!("{key} {value}: {error}"));
            let failed = match field.section {
                "tasks" => settings.task_type(&workers, &format!("{key}{value}")).build().err(),
                "hub" | "history" => settings.hub_builder(&pool).build().err(),
                "server" => settings.server_builder(&pool).serve(|_: &_| Nothing).err(),
                #[cfg(feature = "http")]
                "http" => settings.http_builder(&pool).serve().err(),
                #[cfg(feature = "webhook")]
                "webhook" => settings.webhook_builder().unwrap().build().err(),
                _ => None,
            };
            assert!(failed.is_none(), "{key} {value}: {failed:?}");
            looked += 1;
        }
    }
    assert!(looked > 100, "{looked}");
}

/// Below and above the ends of a range, and at them, with whether that is in it.
fn around(kind: Kind) -> Option<Vec<(u64, bool)>> {
    let (low, high) = match kind {
        Kind::Count { low, high } | Kind::Bytes { low, high } => (low, high),
        Kind::Time { low, high } => {
            (low.as_nanos().try_into().ok()?, high.as_nanos().try_into().ok()?)
        }
        _ => return None,
    };
    let below = low.checked_sub(1).map(|below| (below, false));
    Some(below.into_iter().chain([(low, true), (high, true), (high + 1, false)]).collect())
}

/// A file of JSON that says this of one rule of a bridge.
fn rule(section: &str, name: &str, value: u64, kind: Kind) -> String {
    let value = match kind {
        Kind::Time { .. } => format!("\"{value}ns\""),
        _ => value.to_string(),
    };
    let durable = if section == "bridge.imports" { r#", "durable": "d""# } else { "" };
    let list = section.trim_start_matches("bridge.");
    format!(
        r#"{{"bridge": {{"{list}": [{{"pattern": "a", "stream": "A", "{name}": {value}{durable}}}]}}}}"#
    )
}

/// As above, for bridges and their rules.
#[cfg(feature = "nats")]
#[test]
fn the_table_and_the_builders_of_bridges_agree_on_every_range() {
    use paceline::bridge::{Bridge, Export, Import, NatsSettings};
    let folder = Folder::new("bridges");
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = paceline::hub::Hub::new(&pool).unwrap();
    let opens = |section: &str, name: &str, value: u64| {
        let (count, nanos) = (value as usize, Duration::from_nanos(value));
        let nats = NatsSettings::new("nats://127.0.0.1:1");
        let (export, import) = (Export::new("a"), Import::new("a"));
        let stored = export.clone().at_least_once("A");
        let taken = import.clone().at_least_once("A", "d");
        let plain = || Bridge::nats(&hub, "nats://127.0.0.1:1");
        let builder = match (section, name) {
            ("bridge", "connect_timeout") => {
                Bridge::nats(&hub, nats.connect_timeout(nanos)).export("a")
            }
            ("bridge", "ping_interval") => {
                Bridge::nats(&hub, nats.ping_interval(nanos)).export("a")
            }
            ("bridge", "window") => plain().export("a").window(nanos, 1),
            ("bridge", "window_count") => plain().export("a").window(Duration::from_secs(1), count),
            ("bridge.exports", "buffer") => plain().export(export.buffer(count)),
            ("bridge.exports", "in_flight") => plain().export(stored.in_flight(count)),
            ("bridge.imports", "buffer") => plain().import(import.buffer(count)),
            ("bridge.imports", "in_flight") => plain().import(taken.in_flight(count)),
            ("bridge.imports", "request_timeout") => plain().import(import.request_timeout(nanos)),
            ("bridge.imports", "ack_wait") => plain().import(taken.ack_wait(nanos)),
            ("bridge.imports", "handle_timeout") => plain().import(taken.handle_timeout(nanos)),
            other => panic!("{other:?} is not looked at"),
        };
        builder.open().is_ok()
    };
    let of_bridges = Settings::fields().filter(|field| field.section == "bridge");
    let mut looked = 0;
    for field in of_bridges.chain(Settings::rule_fields()) {
        let Some(values) = around(field.kind) else { continue };
        let low = values.iter().find(|(_, is_good)| *is_good).unwrap().0;
        for (value, is_good) in values {
            let key = format!("{} {value}", field.key());
            let set = match (field.section, field.kind) {
                ("bridge", Kind::Time { .. }) => {
                    Settings::layers().set(&field.key(), format!("{value}ns"))
                }
                ("bridge", _) => Settings::layers().set(&field.key(), value),
                (section, kind) => {
                    let text = rule(section, field.name, value, kind);
                    Settings::layers().file(folder.write("a.json", text))
                }
            };
            assert_eq!(set.build().is_ok(), is_good, "{key}");
            // What delays retries and reconnects has no limit in a program, nor has what may be without one.
            let is_free = field.name.starts_with("re") && field.name != "request_timeout";
            let has_no_end = ["request_timeout", "handle_timeout"].contains(&field.name);
            if is_free || has_no_end && value > low {
                continue;
            }
            assert_eq!(opens(field.section, field.name, value), is_good, "{key}");
            looked += 1;
        }
    }
    assert_eq!(looked, 8 * 4 + 3 + 2 * 2);
}

/// Goal: all that a file says of a bridge is in the typed settings, and the environment wins.
#[test]
fn a_bridge_is_set_by_its_section() {
    let folder = Folder::new("bridge");
    let text = r#"
bridge:
  servers: ["nats://a:4222", "tls://joe:secret@b"]
  user: joe
  password_file: /run/password
  tls_required: true
  permit: "orders.>, jobs.>"
  exports:
  - plain
  - {pattern: "orders.>", prefix: "eu.", buffer: 7, overflow: conflate, stream: ORDERS, in_flight: 1}
  imports:
  - {pattern: "jobs.>", stream: JOBS, durable: worker, start_at: 7, retries: 3, retry_growth: fixed}
  - {pattern: "prices.*", group: desks, request_timeout: 2s}
"#;
    let settings = Settings::layers()
        .file(folder.write("a.yaml", text))
        .variables([
            pair("PACELINE_BRIDGE_IMPORTS", "other.*, more"),
            pair("PACELINE_BRIDGE_NAME", "shop"),
        ])
        .build()
        .unwrap();
    let bridge = &settings.bridge;
    assert_eq!(bridge.servers.as_deref().unwrap(), ["nats://a:4222", "tls://joe:secret@b"]);
    assert_eq!(bridge.permit.as_deref().unwrap(), ["orders.>", "jobs.>"]);
    assert_eq!((bridge.name.as_deref(), bridge.tls_required), (Some("shop"), Some(true)));
    let exports = bridge.exports.as_deref().unwrap();
    assert_eq!(
        exports.iter().map(|it| it.pattern.as_deref().unwrap()).collect::<Vec<_>>(),
        ["plain", "orders.>"]
    );
    assert_eq!((exports[1].buffer, exports[1].in_flight), (Some(7), Some(1)));
    let imports = bridge.imports.as_deref().unwrap();
    assert_eq!(
        imports.iter().map(|it| it.pattern.as_deref().unwrap()).collect::<Vec<_>>(),
        ["other.*", "more"]
    );
    let shown = format!("{settings:?}");
    assert!(shown.contains("nats://a:4222") && !shown.contains("secret"), "{shown}");
}

/// docs/SETTINGS.md is made from the table.
#[test]
fn the_documented_table_is_the_table() {
    let mut text = String::from(
        "# Settings\n\nMade from the tables in [src/admin/settings](../src/admin/settings) by \
         `PACELINE_BLESS=1 cargo test --test settings`.\n\nFiles are JSON or YAML: sections, and in them \
         settings. What code sets wins over the\nenvironment, that over files, later files over earlier \
         ones, and those over the defaults. A byte order mark\nat the start of a file is skipped, and merge \
         keys of YAML (`<<`) are refused. A variable that is set but empty counts as\nnot set.\n\n```yaml\n# service.yaml\npool:\n  \
         threads: 4\nworkers:\n  full: reject\nops:\n  address: 127.0.0.1:9090\n```\n\nIn Python three defaults are others: \
         `pool.pin` is none, `pool.watch_period` 1ms, and `workers.full` reject.\n\n| key | variable | allowed | default | |\n\
         |---|---|---|---|---|\n",
    );
    for field in Settings::fields() {
        let (key, variable) = (field.key(), field.variable());
        let (allowed, default, about) = (field.kind, field.default, field.about);
        text += &format!("| `{key}` | `{variable}` | {allowed} | {default} | {about} |\n");
    }
    text += "\n## The rules of a bridge\n\nThe lists `bridge.exports` and `bridge.imports` have a rule in each entry: a \
             pattern, or a section with a\n`pattern`. A variable has patterns with commas between them.\n\n| key | allowed \
             | default | |\n|---|---|---|---|\n";
    for field in Settings::rule_fields() {
        let (section, name, kind) = (field.section, field.name, field.kind);
        let (default, about) = (field.default, field.about);
        text += &format!("| `{section}[].{name}` | {kind} | {default} | {about} |\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/SETTINGS.md");
    if std::env::var_os("PACELINE_BLESS").is_some() {
        fs::write(path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), text, "PACELINE_BLESS=1 renews it");
}
