//! Makes the header of the C interface from `src/ffi`, into `OUT_DIR`. The one in `include` is a copy,
//! which `tests/header.rs` compares and renews.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "capi")]
    header::write();
}

#[cfg(feature = "capi")]
mod header {
    use cbindgen::{Builder, Config, DocumentationLength, DocumentationStyle, Language, Style};
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    const SOURCES: &str = "src/ffi";

    /// In the order of the header: a file of `src/ffi`, and what its section is called.
    const SECTIONS: &[(&str, &str)] = &[
        ("status", "Version, status, errors"),
        ("callback", "Ids and callbacks"),
        ("log", "The log: what all components tell"),
        ("pool", "The pool"),
        ("task", "Tasks"),
        ("strand", "Strands: serial execution without locks"),
        ("handle", "Handles: descriptors and periodic timers"),
        ("timer", "Timers that run once"),
        ("ring", "Rings: fixed-size events with a handler on the pool"),
        ("queue", "Queues: without a pool"),
        ("signals", "Signals of the process"),
        ("host", "Host threads: joining"),
        ("pull", "Host threads: pulling events as data"),
        ("conn", "Connections: hooks, and what they may call"),
        ("filter", "Filters: between a socket and its hooks"),
        ("listener", "Listeners: where, and the settings of their connections"),
        ("inherited", "Sockets that a supervisor has opened"),
        ("server", "Servers: listeners and connections"),
        ("remote", "Connections, by name from any thread"),
        ("framing", "Connections: where a message ends"),
        ("net_pull", "Servers whose events are pulled as data"),
        ("request", "HTTP: what is asked"),
        ("response", "HTTP: what is answered"),
        ("requests", "HTTP: requests that are pulled as data"),
        ("http", "HTTP: servers and routes"),
        ("udp", "Datagram sockets"),
        ("udp_pull", "Datagram sockets that are pulled as data"),
        ("attempt", "Worker pools: what a task's function is given"),
        ("middleware", "Worker pools: what runs around attempts"),
        ("task_status", "Worker pools: how a task stands"),
        ("workers", "Worker pools"),
        ("retry", "How what has failed is tried again"),
        ("task_type", "Worker pools: task types, and their settings"),
        ("work_task", "Worker pools: tasks"),
        ("task_fd", "Worker pools: a descriptor that tells of ends"),
        ("work_pull", "Worker pools: attempts that are pulled as data"),
        ("periodic", "Worker pools: tasks that run again and again"),
        ("work_stats", "Worker pools: statistics, health, figures"),
        ("metric", "Worker pools: figures of a program's own"),
        ("message", "The hub: messages"),
        ("history", "The hub: what it keeps"),
        ("hub", "The hub: keys and publishing"),
        ("together", "The hub: messages that everybody takes, or nobody"),
        ("publisher", "The hub: publishers with limits"),
        ("message_filter", "The hub: filters of messages"),
        ("supervisor", "The hub: supervision"),
        ("subscription", "The hub: subscriptions"),
        ("mailbox", "The hub: mailboxes that the host empties"),
        ("dead", "The hub: dead letters"),
        ("ask", "The hub: requests"),
        ("replies", "The hub: replies that the host pulls"),
        ("replay", "The hub: queries and replays"),
        ("notice", "The hub: what it tells of itself"),
        ("figures", "The hub: its figures"),
        ("threshold", "The hub: thresholds of figures"),
        ("webhook", "Webhooks: notices, or anything else, by HTTP POST"),
        ("service", "Services of systemd"),
    ];
    const LAST: (&str, &str) = ("stats", "Statistics and books");

    pub(super) fn write() {
        println!("cargo:rerun-if-changed={SOURCES}");
        let read = |path: &str| fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut header = read("src/ffi/overview.h");
        for (file, title) in SECTIONS.iter().chain(&[LAST]) {
            let path = format!("{SOURCES}/{file}.rs");
            header.push_str(&heading(title));
            let source = read(&path);
            header.push_str(&introduction(&source));
            header.push_str(&section(Path::new(&path), &source));
        }
        header.push_str(
            "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif /* PACELINE_H */\n",
        );
        let directory = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        fs::write(directory.join("paceline.h"), header).expect("OUT_DIR can be written to");
    }

    fn heading(title: &str) -> String {
        format!("\n/* {} {title} */\n\n", "-".repeat(92 - title.len()))
    }

    /// What a file says at the head of its section: its lines that begin with `//#`.
    fn introduction(source: &str) -> String {
        let lines: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//#")).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("/*{}\n */\n\n", lines.join("\n *")),
        }
    }

    /// One section. cbindgen sorts by kind, and would separate what belongs together, so each file is
    /// a run of its own; types of other files are known to it by name only.
    fn section(path: &Path, source: &str) -> String {
        let mut config = Config {
            language: Language::C,
            style: Style::Both,
            no_includes: true,
            documentation_style: DocumentationStyle::Doxy,
            documentation_length: DocumentationLength::Full,
            usize_is_size_t: true,
            line_length: 100,
            tab_width: 4,
            ..Config::default()
        };
        config.export.include = types(source);
        let bindings = Builder::new().with_config(config).with_src(path).generate();
        let mut text = Vec::new();
        bindings.unwrap_or_else(|e| panic!("{}: {e}", path.display())).write(&mut text);
        tidy(&String::from_utf8(text).expect("sources are UTF-8"))
    }

    /// The types that a file defines, used in it or not.
    fn types(source: &str) -> Vec<String> {
        let name = |line: &str| {
            let rest = line.strip_prefix("pub struct ").or(line.strip_prefix("pub type "))?;
            Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
        };
        source.lines().filter_map(name).collect()
    }

    /// `#define NAME -1` in parentheses, as macros must be.
    fn parenthesized(line: &str) -> String {
        match line.strip_prefix("#define ").and_then(|rest| rest.split_once(" -")) {
            Some((name, number)) => format!("#define {name} (-{number})"),
            None => line.to_owned(),
        }
    }

    /// Types are named as their typedefs everywhere, whether cbindgen knows them or not. A comment of
    /// one line is one line.
    fn tidy(text: &str) -> String {
        let lines: Vec<_> = text.trim().lines().collect();
        let mut tidied = String::new();
        let mut rest = lines.as_slice();
        while let [line, after @ ..] = rest {
            let indent = line.len() - line.trim_start().len();
            if let ["/**", one, "*/", ..] = [
                line.trim(),
                after.first().map_or("", |line| line.trim()),
                after.get(1).map_or("", |line| line.trim()),
            ] {
                let text = one.trim_start_matches("* ");
                tidied.push_str(&format!("{}/** {text} */\n", &line[..indent]));
                rest = &after[2..];
                continue;
            }
            let is_definition = line.starts_with("typedef struct");
            let line = if is_definition {
                (*line).to_owned()
            } else {
                line.replace("struct pace_", "pace_")
            };
            tidied.push_str(&parenthesized(&line));
            tidied.push('\n');
            rest = after;
        }
        tidied
    }
}
