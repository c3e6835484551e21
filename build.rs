//! Makes the headers of the C interface from `src/ffi`, into `OUT_DIR`. Those in `include` are copies, which
//! `tests/header` compares and renews.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "header")]
    header::write();
}

#[cfg(feature = "header")]
mod header {
    use cbindgen::{Builder, Config, DocumentationLength, DocumentationStyle, Language, Style};
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    const SOURCES: &str = "src/ffi";

    /// In the header that needs no other. cbindgen sees no macros.
    const TIMES: &str = "\
        /** Milliseconds as nanoseconds: PACE_MS(20). */\n\
        #define PACE_MS(n) ((uint64_t)(n) * 1000000)\n\n\
        /** Seconds as nanoseconds: PACE_SEC(30). */\n\
        #define PACE_SEC(n) ((uint64_t)(n) * 1000000000)\n";

    /// A header of `include/paceline`.
    struct Topic {
        name: &'static str,
        about: &'static str,
        /// In their order: a file of `src/ffi`, and what its section is called.
        sections: &'static [(&'static str, &'static str)],
    }

    /// A header includes only headers that stand before it.
    const TOPICS: &[Topic] = &[
        Topic {
            name: "core",
            about: "what all headers share",
            sections: &[
                ("status", "Version, status, errors"),
                ("values", "Limits, texts and pieces"),
                ("callback", "Ids and callbacks"),
                ("retry", "How what has failed is tried again"),
            ],
        },
        Topic {
            name: "log",
            about: "the structured log",
            sections: &[("log", "The log: what all components tell")],
        },
        Topic {
            name: "pool",
            about: "pools of threads: tasks, strands, descriptors, timers, rings, signals",
            sections: &[
                ("pool", "The pool"),
                ("task", "Tasks"),
                ("strand", "Strands: serial execution without locks"),
                ("handle", "Handles: descriptors and periodic timers"),
                ("timer", "Timers that run once"),
                ("ring", "Rings: fixed-size events with a handler on the pool"),
                ("signals", "Signals of the process"),
                ("host", "Host threads: joining"),
                ("stats", "Statistics and books"),
            ],
        },
        Topic {
            name: "queue",
            about: "queues between threads, without a pool",
            sections: &[("queue", "Queues: without a pool")],
        },
        Topic {
            name: "net",
            about: "stream servers and their connections",
            sections: &[
                ("conn", "Connections: hooks, and what they may call"),
                ("filter", "Filters: between a socket and its hooks"),
                ("listener", "Listeners: where, and the settings of their connections"),
                ("inherited", "Sockets that a supervisor has opened"),
                ("server", "Servers: listeners and connections"),
                ("remote", "Connections, by name from any thread"),
                ("framing", "Connections: where a message ends"),
            ],
        },
        Topic {
            name: "http",
            about: "HTTP/1.1 servers",
            sections: &[
                ("request", "HTTP: what is asked"),
                ("response", "HTTP: what is answered"),
                ("http_options", "HTTP: settings of servers"),
                ("http", "HTTP: servers and routes"),
                ("access_log", "HTTP: access logs"),
                ("json", "HTTP: JSON in and out"),
            ],
        },
        Topic { name: "udp", about: "datagram sockets", sections: &[("udp", "Datagram sockets")] },
        Topic {
            name: "workers",
            about: "worker pools: tasks with priorities, retries, limits in time and results",
            sections: &[
                ("attempt", "Worker pools: what a task's function is given"),
                ("middleware", "Worker pools: what runs around attempts"),
                ("task_status", "Worker pools: how a task stands"),
                ("workers", "Worker pools"),
                ("task_type", "Worker pools: task types, and their settings"),
                ("work_task", "Worker pools: tasks"),
                ("work_tagged", "Worker pools: tasks whose attempts come to a completion queue"),
                ("periodic", "Worker pools: tasks that run again and again"),
                ("work_stats", "Worker pools: statistics, health, figures"),
                ("metric", "Worker pools: figures of a program's own"),
            ],
        },
        Topic {
            name: "hub",
            about: "the event hub: keyed publish/subscribe, requests, supervision",
            sections: &[
                ("message", "The hub: messages"),
                ("history", "The hub: what it keeps"),
                ("hub", "The hub: keys and publishing"),
                ("publish_all", "The hub: messages that all take, or none"),
                ("publisher", "The hub: publishers with limits"),
                ("message_filter", "The hub: filters of messages"),
                ("supervisor", "The hub: supervision"),
                ("subscription", "The hub: subscriptions"),
                ("mailbox", "The hub: mailboxes that the host empties"),
                ("dead", "The hub: dead letters"),
                ("ask", "The hub: requests"),
                ("notice", "The hub: what it tells of itself"),
            ],
        },
        Topic {
            name: "history",
            about: "the hub's history: queries, replays, export and import, archives",
            sections: &[
                ("replay", "The hub: queries and replays"),
                ("archive", "Histories: export and import, and archives without a hub"),
            ],
        },
        Topic {
            name: "ops",
            about: "operation: endpoints, figures, timelines, thresholds, webhooks, systemd",
            sections: &[
                ("ops", "Operations endpoints: a live page, figures and health by HTTP"),
                ("pool_figures", "Pools: their figures, and those of file systems"),
                ("timeline", "Pools: what each thread does, as a timeline"),
                ("figures", "The hub: its figures"),
                ("threshold", "The hub: thresholds of figures"),
                ("webhook", "Webhooks: notices, or anything else, by HTTP POST"),
                ("service", "Services of systemd"),
            ],
        },
        Topic {
            name: "bridge",
            about: "bridges: keys of a hub, between processes, over a NATS broker",
            sections: &[
                ("bridge_options", "Bridges: how the broker is reached, and rules"),
                ("bridge", "Bridges: keys between processes, over a broker"),
                ("job", "Durable tasks: their attempts"),
                ("durable", "Durable tasks: a queue that outlives the process"),
            ],
        },
        Topic {
            name: "cq",
            about: "completion queues: what happens as data, for hosts that cannot be called back",
            sections: &[
                ("conn_event", "Connections: what a completion queue tells of them"),
                ("cq_entry", "Completion queues: what is brought"),
                ("cq", "Completion queues: waiting"),
                ("cq_answer", "Completion queues: completing"),
                ("cq_sources", "Completion queues: what is attached"),
            ],
        },
    ];

    pub(super) fn write() {
        println!("cargo:rerun-if-changed={SOURCES}");
        let mut texts: Vec<_> = TOPICS.iter().map(text_of).collect();
        let names = Names::of(&texts);
        // Of each topic: those that come with it, and which of these it includes itself.
        let (mut reached, mut includes) = (Vec::<BTreeSet<usize>>::new(), Vec::<Vec<usize>>::new());
        for (topic, text) in texts.iter().enumerate() {
            let needs = names.needs(topic, text);
            let indirect = needs.iter().flat_map(|&other| reached[other].clone()).collect();
            includes.push(needs.difference(&indirect).copied().collect());
            reached.push(&needs | &indirect);
        }
        names.share_handles(&mut texts, &reached);

        let directory = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        let directory = directory.join("include");
        // What it holds of an earlier run may have another name now.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("paceline")).expect("OUT_DIR can be written to");
        let put = |name: &str, text: String| {
            fs::write(directory.join(name), text).expect("OUT_DIR can be written to");
        };
        put("paceline.h", umbrella());
        for ((topic, text), includes) in TOPICS.iter().zip(&texts).zip(&includes) {
            put(&format!("paceline/{}.h", topic.name), header(topic, text, includes));
        }
    }

    fn read(path: &str) -> String {
        fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// The header that includes all others.
    fn umbrella() -> String {
        let mut text = read("src/ffi/overview.h") + "#ifndef PACELINE_H\n#define PACELINE_H\n\n";
        for Topic { name, about, .. } in TOPICS {
            let include = format!("#include \"paceline/{name}.h\"");
            text.push_str(&format!("{include:<30} /* {about} */\n"));
        }
        text + "\n#endif /* PACELINE_H */\n"
    }

    fn header(topic: &Topic, text: &str, includes: &[usize]) -> String {
        let Topic { name, about, .. } = topic;
        let guard = format!("PACELINE_{}_H", name.to_uppercase());
        let include = |&other: &usize| format!("#include \"{}.h\"\n", TOPICS[other].name);
        let includes: String = match includes {
            [] => {
                format!("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n{TIMES}")
            }
            others => others.iter().map(include).collect(),
        };
        format!(
            "/* paceline/{name}.h: {about}.\n *\n\
             \x20* Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all\n\
             \x20* functions.\n */\n\
             #ifndef {guard}\n#define {guard}\n\n{includes}\n\
             #ifdef __cplusplus\nextern \"C\" {{\n#endif\n{text}\n\
             #ifdef __cplusplus\n}} /* extern \"C\" */\n#endif\n\n#endif /* {guard} */\n"
        )
    }

    fn text_of(topic: &Topic) -> String {
        let mut text = String::new();
        for (file, title) in topic.sections {
            let path = format!("{SOURCES}/{file}.rs");
            let source = read(&path);
            text.push_str(&heading(title));
            text.push_str(&introduction(&source));
            text.push_str(&section(Path::new(&path), &source));
        }
        text
    }

    /// What the headers define.
    struct Names {
        /// The topic of each constant, and of each type whose definition is needed where it is used.
        defined: BTreeMap<String, usize>,
        /// The topic of each type that is used by pointers only.
        handles: BTreeMap<String, usize>,
    }

    impl Names {
        fn of(texts: &[String]) -> Self {
            let mut names = Self { defined: BTreeMap::new(), handles: BTreeMap::new() };
            for (topic, text) in texts.iter().enumerate() {
                for line in code(text).lines() {
                    if let Some(name) = handle(line) {
                        names.handles.insert(name.to_owned(), topic);
                    } else if let Some(name) = definition(line) {
                        names.defined.insert(name.to_owned(), topic);
                    }
                }
            }
            names
        }

        /// The other topics that a topic needs: those that define a type of its declarations, or a constant that its
        /// text names.
        fn needs(&self, topic: usize, text: &str) -> BTreeSet<usize> {
            let code = code(text);
            let types = words(&code).filter(|word| word.starts_with("pace_"));
            let constants = words(text).filter(|word| word.starts_with("PACE_"));
            let mut needs = BTreeSet::from([0]);
            for word in types.chain(constants) {
                needs.extend(self.place(word).inspect(|&other| {
                    let [one, other_name] = [topic, other].map(|topic| TOPICS[topic].name);
                    assert!(
                        other <= topic,
                        "{one}.h names {word}, which is defined later, in {other_name}.h: move one of the two"
                    );
                }));
            }
            needs.remove(&topic);
            needs
        }

        /// Where a name is defined. One that ends with an underscore stands for all that begin so, of which one is
        /// enough: the first.
        fn place(&self, word: &str) -> Option<usize> {
            let all = self.defined.range(word.to_owned()..);
            let all = all.take_while(|(name, _)| match word.ends_with('_') {
                true => name.starts_with(word),
                false => *name == word,
            });
            all.map(|(_, &topic)| topic).min()
        }

        /// Takes the handles that are named where their header is not included to the first header.
        fn share_handles(&self, texts: &mut [String], reached: &[BTreeSet<usize>]) {
            let mut shared = BTreeSet::new();
            for (topic, text) in texts.iter().enumerate() {
                let code = code(text);
                let foreign = words(&code).filter_map(|word| self.handles.get_key_value(word));
                shared.extend(
                    foreign.filter(|(_, at)| **at != topic && !reached[topic].contains(at)),
                );
            }
            let mut moved = String::new();
            for (name, &topic) in shared {
                let declaration = format!("typedef struct {name} {name};\n\n");
                let at = texts[topic].find(&declaration).expect("it is declared in this form");
                let from = texts[topic][..at].rfind("\n\n").map_or(0, |before| before + 2);
                moved.push_str(&texts[topic][from..at + declaration.len()]);
                texts[topic].replace_range(from..at + declaration.len(), "");
            }
            texts[0].push_str(&heading("Handles that several headers name"));
            texts[0].push_str(moved.trim_end());
            texts[0].push('\n');
        }
    }

    /// The name of a type of which only pointers are used.
    fn handle(line: &str) -> Option<&str> {
        let (name, again) =
            line.strip_prefix("typedef struct ")?.strip_suffix(';')?.split_once(' ')?;
        (name == again).then_some(name)
    }

    /// The name that a line defines: a constant, a struct, a union or a type of functions.
    fn definition(line: &str) -> Option<&str> {
        let kinds = ["#define ", "typedef struct ", "typedef union "].into_iter();
        let rest = match kinds.filter_map(|kind| line.strip_prefix(kind)).next() {
            Some(rest) => rest,
            None => {
                let rest = line.strip_prefix("typedef ")?;
                rest.split_once("(*").or(rest.split_once(' ')).map(|(_, name)| name)?
            }
        };
        words(rest).next()
    }

    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    }

    /// A text without its comments.
    fn code(text: &str) -> String {
        let parts = text.split("/*").enumerate();
        parts
            .map(|(index, part)| match index {
                0 => part,
                _ => part.split_once("*/").expect("a comment ends").1,
            })
            .collect()
    }

    fn heading(title: &str) -> String {
        format!("\n/* {} {title} */\n\n", "-".repeat(66 - title.len()))
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
            let rest = line.strip_prefix("pub ")?;
            let kinds = ["struct ", "union ", "type "].into_iter();
            let rest = kinds.filter_map(|kind| rest.strip_prefix(kind)).next()?;
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

    /// The types that `src/ffi` has for pointers of C are these, outside of comments.
    fn pointers(line: &str) -> String {
        if line.trim_start().starts_with(['*', '/']) {
            return line.to_owned();
        }
        let mut line = line.replace("(Text ", "(const char *").replace(" Text ", " const char *");
        for (own, is_const) in [("InOut<", ""), ("In<", "const ")] {
            while let Some((before, rest)) = line.split_once(own) {
                let (inner, after) = rest.split_once("> ").expect("a type ends before its name");
                line = format!("{before}{is_const}{inner} *{after}");
            }
        }
        line
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
            let is_definition =
                line.starts_with("typedef struct") || line.starts_with("typedef union");
            let line = if is_definition {
                (*line).to_owned()
            } else {
                pointers(&line.replace("struct pace_", "pace_").replace("union pace_", "pace_"))
            };
            tidied.push_str(&parenthesized(&line));
            tidied.push('\n');
            rest = after;
        }
        tidied
    }
}
