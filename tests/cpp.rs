//! The C++ wrapper: its own tests, checked under every compiler that is here and every standard, and run
//! as the oldest of them by one compiler and the newest by the other; and its examples, by the line that each of them shows.
#![cfg(all(not(loom), feature = "capi"))]
#![allow(unsafe_code, reason = "a signal ends the server")]

#[path = "common/header.rs"]
mod header;
#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// After this a test gives up, and fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// What must not warn.
const STRICT: &str = "-Wall -Wextra -Wpedantic -Wundef -Wshadow -Wconversion -Wsign-conversion \
                      -Wold-style-cast -Werror";

/// The parts of the tests that become one translation unit, for the time that the framework takes.
const PARTS: [&str; 24] = [
    "values.cpp",
    "tasks.cpp",
    "handles.cpp",
    "rings.cpp",
    "hosts.cpp",
    "exceptions.cpp",
    "outcomes.cpp",
    "thrown.cpp",
    "ends.cpp",
    "movable.cpp",
    "empty.cpp",
    "durations.cpp",
    "servers.cpp",
    "http.cpp",
    "datagrams.cpp",
    "framing.cpp",
    "workers.cpp",
    "hub.cpp",
    "texts.cpp",
    "lifetimes.cpp",
    "log.cpp",
    "cq.cpp",
    "bridge.cpp",
    "durable.cpp",
];

#[test]
fn gcc_as_cpp17() {
    // Optimized, because only then it warns of what may be used before it is set.
    run_tests("g++", "c++17", "-O1");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn gcc_as_cpp20() {
    check_tests("g++", "c++20");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn gcc_as_cpp23() {
    check_tests("g++", "c++2b");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn clang_as_cpp17() {
    check_tests("clang++", "c++17");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn clang_as_cpp20() {
    check_tests("clang++", "c++20");
}

/// With sanitizers where clang has their libraries.
#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn clang_as_cpp23() {
    run_tests("clang++", "c++2b", if has_sanitizers() { SANITIZED } else { "" });
}

/// The library itself is not instrumented here; its memory comes from the same malloc all the same.
const SANITIZED: &str = "-fsanitize=address,undefined -fno-sanitize-recover=undefined";

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn the_sanitizer_sees_into_tasks() {
    if !has_sanitizers() {
        return;
    }
    let sources = [source("bindings/cpp/tests/use_after_free.cpp")];
    let flags = format!("-std=c++17 -O0 {SANITIZED}");
    let program = build("clang++", &flags, &sources, "use_after_free");
    let Output { status, stderr, .. } = Command::new(program).output().expect("it starts");
    let told = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && told.contains("heap-use-after-free"), "{status}\n{told}");
}

/// Whether clang++ can make sanitized programs; says so if not.
fn has_sanitizers() -> bool {
    !is_missing("clang++", "#include <new>") && links("clang++", SANITIZED)
}

/// Whether a compiler has the libraries of a sanitizer; says so if not.
fn links(compiler: &str, flags: &str) -> bool {
    let name = format!("links-{compiler}-{}", flags.len());
    let (unit, program) = (scratch(&format!("{name}.cpp")), scratch(&name));
    fs::write(&unit, "int main() {}").expect("the scratch directory can be written to");
    let mut command = Command::new(compiler);
    command.args(flags.split_whitespace()).arg(unit).arg("-o").arg(program);
    let links = command.output().is_ok_and(|output| output.status.success());
    if !links {
        skipped(format!("{compiler} has no libraries for {flags}"));
    }
    links
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn without_exceptions() {
    for compiler in ["g++", "clang++"] {
        if is_missing(compiler, "#include <new>") {
            continue;
        }
        let sources = [source("bindings/cpp/tests/without_exceptions.cpp")];
        let flags = "-std=c++17 -fno-exceptions -fno-rtti";
        let program = build(compiler, flags, &sources, &format!("without_exceptions-{compiler}"));
        assert_eq!(printed(&mut Command::new(program)), "42\n");
    }
}

/// ThreadSanitizer does not see how the library orders threads; the headers tell it.
#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn a_program_that_is_right_has_no_report_of_thread_sanitizer() {
    let flags = "-std=c++17 -O1 -fsanitize=thread";
    if is_missing("g++", "#include <new>") || !links("g++", flags) {
        return;
    }
    let sources = [source("bindings/cpp/tests/threads_sanitized.cpp")];
    let program = build("g++", flags, &sources, "threads_sanitized");
    assert_eq!(printed(&mut Command::new(program)), "42\n");
}

/// Goal: a plugin that includes the headers can be unloaded. Method: a program loads one, which has a pool, unloads it, and
/// asks whether it is gone.
#[test]
fn a_plugin_is_unloaded() {
    if is_missing("g++", "#include <new>") {
        return;
    }
    let plugin = "#include <paceline.hpp>\nextern \"C\" int run() {\n\
         auto pool = paceline::Pool::create(paceline::Config().set_threads(1).set_pin(\"none\")).value();\n\
         paceline::on_unhandled([](std::exception_ptr) {});\n\
         pool.post([] { throw 1; }).value();\n\
         auto hub = paceline::Hub::create(pool).value();\n\
         auto subscription = hub.subscribe(\"a\", [](const paceline::Message &) {}).value();\n\
         pool.after(std::chrono::milliseconds(1), [] {}).value().wait().value();\n\
         int answer = pool.submit([] { return 42; }).value().wait().value();\n\
         paceline::on_unhandled({});\n\
         return answer;\n}\n";
    let loader = "#include <dlfcn.h>\n#include <iostream>\nint main(int, char **arguments) {\n\
         void *plugin = dlopen(arguments[1], RTLD_NOW);\n\
         auto run = reinterpret_cast<int (*)()>(dlsym(plugin, \"run\"));\n\
         std::cout << run() << ' ' << dlclose(plugin) << ' ';\n\
         std::cout << (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == nullptr) << std::endl;\n}\n";
    let unit = |name: &str, text: &str| {
        let unit = scratch(name);
        fs::write(&unit, text).expect("the scratch directory can be written to");
        unit
    };
    let flags = "-std=c++17 -O2 -shared -fPIC";
    let plugin = build("g++", flags, &[unit("plugin.cpp", plugin)], "plugin.so");
    let loader = build("g++", "-std=c++17", &[unit("loader.cpp", loader)], "loader");
    assert_eq!(printed(Command::new(loader).arg(plugin)), "42 0 1\n");
}

/// The error's text is the last that a program without exceptions says.
#[test]
fn without_exceptions_an_error_is_told_before_the_program_aborts() {
    if is_missing("g++", "#include <new>") {
        return;
    }
    let text = "#include <paceline/pool.hpp>\nint main() {\n\
                (void)paceline::Pool::create(paceline::Config().set_threads(100000)).value();\n}\n";
    let unit = scratch("aborts.cpp");
    fs::write(&unit, text).expect("the scratch directory can be written to");
    let program = build("g++", "-std=c++17 -fno-exceptions", &[unit], "aborts");
    let Output { status, stderr, .. } = Command::new(program).output().expect("it starts");
    let told = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && told.contains("threads is 100000"), "{status}: {told}");
}

/// A library and a program that are compiled by different standards hand each other results.
#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn a_library_of_an_older_standard_links_with_a_program_of_a_newer_one() {
    for compiler in ["g++", "clang++"] {
        if is_missing(compiler, "#include <new>") {
            continue;
        }
        let part = |name: &str, standard: &str, text: &str| {
            let unit = scratch(&format!("{name}-{compiler}.cpp"));
            fs::write(&unit, text).expect("the scratch directory can be written to");
            let object = unit.with_extension("o");
            let mut command = Command::new(compiler);
            command.args(["-c", &format!("-std={standard}")]).arg(&unit).arg("-o").arg(&object);
            for directory in ["include", "bindings/cpp"] {
                command.arg("-I").arg(source(directory));
            }
            assert_eq!(printed(&mut command), "");
            object
        };
        let declared = "#include <paceline/pool.hpp>\npaceline::Result<int> answer();\n";
        let library = "paceline::Result<int> answer() { return 42; }\n";
        let program = "int main() { return answer().value() == 42 ? 0 : 1; }\n";
        let objects = [
            part("older", "c++17", &format!("{declared}{library}")),
            part("newer", "c++2b", &format!("{declared}{program}")),
        ];
        let program = build(compiler, "", &objects, &format!("standards-{compiler}"));
        assert_eq!(printed(&mut Command::new(program)), "");
    }
}

/// Name, and what it prints.
const EXAMPLES: [(&str, &str); 6] = [
    (
        "hello",
        "a task says 42\n\
         ten tasks say [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]\n\
         a timer says that 20 ms have passed: true\n\
         drained: true, the books balance: true\n",
    ),
    (
        "ring",
        "station  readings  lowest    mean highest\n\
         harbour    100000     8.0    14.0    20.0\n\
         airport    100000     5.0    11.0    17.0\n\
         summit     100000    -9.0    -3.0     3.0\n",
    ),
    (
        "worker",
        "status       tasks\n\
         COMPLETED       95\n\
         FAILED           4\n\
         TIMED_OUT        1\n\
         the squares add up to 312524\n\
         4 failed, because std::runtime_error: there is no such number\n\
         attempts that were followed by another: 93\n\
         the periodic task ran at least 3 times\n\
         clean-up: the backend is told goodbye\n\
         drained: true, stuck: 0\n\
         the books balance: true\n",
    ),
    (
        "hub",
        "the roof may not publish for the room: true\n\
         drained: true\n\
         \u{20}          matched  delivered   dead  restarts\n\
         adds          2000       2000      0         0\n\
         alarm           24         24      0         0\n\
         checks        2000       1998      2         0\n\
         the display has lost some: true\n\
         it was told of each: true\n\
         the sum is 19048, and there were 24 alarms\n\
         dead letter of temperature.roof after 2 attempts: colder than cold can be\n\
         dead letter of temperature.room after 2 attempts: colder than cold can be\n\
         the books balance: true\n",
    ),
    (
        "hub_history",
        "archives: yes\n\
         replayed: order 1, order 2, order 3, order 4\n\
         the last two: order 3, order 4\n\
         recorded: true\n",
    ),
    (
        "embed",
        "a message: hello\ntick 1\ntick 2\ntick 3\n\
         game over after 3 ticks and 1 message\n",
    ),
];

#[test]
fn examples_print_what_those_in_c_do() {
    if is_missing("c++", "#include <new>") {
        return;
    }
    for (name, says) in EXAMPLES {
        assert_eq!(printed(&mut Command::new(build_example(name))), says, "{name}");
    }
}

#[test]
fn the_echo_example_echoes() {
    if is_missing("c++", "#include <new>") {
        return;
    }
    let arguments = ["--listen", "127.0.0.1:0", "--threads", "2"];
    let mut server = Command::new(build_example("echo"));
    let mut server = server.args(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").expect("an address");

    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.set_read_timeout(Some(PATIENCE)).expect("a socket has time-outs");
    let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    let (mut writer, all) = (connection.try_clone().expect("a second one"), sent.clone());
    let writing = thread::spawn(move || {
        writer.write_all(&all).expect("the server reads");
        writer.shutdown(Shutdown::Write).expect("it is open");
    });
    let mut received = Vec::new();
    connection.read_to_end(&mut received).expect("the server answers, and closes");
    writing.join().expect("all was written");
    assert!(received == sent, "{} bytes came back", received.len());

    let pid = i32::try_from(server.id()).expect("process ids are small");
    // SAFETY: it is our child, and has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn the_readme_shows_a_program_and_what_it_prints() {
    if is_missing("c++", "#include <new>") {
        return;
    }
    let readme = fs::read_to_string(source("bindings/cpp/README.md")).expect("it is there");
    let block = |language: &str| {
        let (_, rest) =
            readme.split_once(&format!("```{language}\n")).expect("it has such a block");
        rest.split_once("```").expect("the block ends").0
    };
    let unit = scratch("readme.cpp");
    fs::write(&unit, block("cpp")).expect("the scratch directory can be written to");
    let program = build("c++", &format!("-std=c++17 {STRICT}"), &[unit], "readme");
    assert_eq!(printed(&mut Command::new(program)), block("text"));
}

/// What the wrapper does without: the text of a response and one with a media type, which it sends as it sends other
/// bodies, and an end that waits for nothing.
const LATER: [&str; 4] =
    ["pace_mailbox_bury", "pace_response_text", "pace_response_send_as", "pace_server_cut_off"];

#[test]
fn every_function_of_the_header_is_used() {
    let header = header::C.whole();
    let wrapper = header::CPP.whole();
    let words = |text: &str| {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        text.split(word)
            .filter(|word| word.starts_with("pace_"))
            .map(str::to_owned)
            .collect::<HashSet<_>>()
    };
    let (known, used) = (words(&header), words(&wrapper));
    let is_function = |name: &&String| {
        let is_later = LATER.iter().any(|section| name.starts_with(section));
        !is_later && header.contains(&format!("{name}("))
    };
    let unused: Vec<_> = known.difference(&used).filter(is_function).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

/// The functions of the wrapper that take a parameter, and its members, whose declaration has one of these words,
/// as "Pool::after". What is the wrapper's own, or private, is left out.
fn declared_with(words: &[&str]) -> BTreeSet<String> {
    let wrapper = header::CPP.whole();
    let (mut class, mut statement, mut found) = ("", String::new(), BTreeSet::new());
    let (mut is_detail, mut is_private) = (false, false);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for line in wrapper.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let declares = |word: &str| line.starts_with(word) || line.contains(&format!("> {word}"));
        if line.starts_with("namespace detail") || line.starts_with("} // namespace detail") {
            is_detail = line.starts_with('n');
        } else if !line.starts_with(' ') && (declares("class ") || declares("struct ")) {
            class = line.split(['{', ':', ';']).next().unwrap_or_default().trim_end();
            class = class.rsplit(' ').next().unwrap_or_default();
            class = class.split('<').next().unwrap_or_default();
            is_private = false;
        } else if ["public:", "protected:", "private:"].contains(&line) {
            is_private = line == "private:";
            continue;
        } else if !line.starts_with(' ') && line.contains('(') {
            class = "";
        }
        statement.push_str(line.trim_start());
        statement.push(' ');
        // A declaration ends, and so does what stands before the body of a function or of a type.
        if !line.ends_with([';', '{', '}', ':']) {
            continue;
        }
        let declared = std::mem::take(&mut statement);
        // Posting is what a LaneRef is.
        let is_own = is_detail && class != "Posting" || is_private || class == "Duration";
        if is_own || declared.starts_with("using ") || declared.starts_with("const auto ") {
            continue;
        }
        for (at, _) in words.iter().flat_map(|word| declared.match_indices(word)) {
            let before = &declared[..at];
            let opened = before.matches('(').count() > before.matches(')').count();
            let is_method = opened || declared[at..].starts_with("virtual ");
            let names: Vec<_> = if is_method {
                let until = if opened { before } else { &declared[at..] };
                until.split('(').take(1).collect()
            } else {
                // After the type of a member, which may have parentheses of its own.
                let names = declared[at..].rsplit('>').next().unwrap_or_default();
                let names = names.split(['(', ';']).next().unwrap_or_default().split(',');
                names.map(|name| name.split(['{', '=']).next().unwrap_or_default().trim()).collect()
            };
            let is_part = before.ends_with(is_word) || before.ends_with(['<', ':']);
            for name in names.into_iter().filter(|_| !is_part) {
                let name = name.rsplit([' ', '&', '*']).next().unwrap_or_default();
                // Destructors, and definitions outside of the class, which has declared them.
                if name.contains(['~', ':']) {
                    continue;
                }
                if !name.is_empty() && name != class && !name.ends_with('_') {
                    let path = if class.is_empty() { String::new() } else { format!("{class}::") };
                    found.insert(path + name);
                }
            }
        }
    }
    found
}

/// The names that a test says, as "Pool::after", KEEPS(Config, spin), or SETS(Config, set_spin, spin).
fn said_in(test: &str) -> BTreeSet<String> {
    let quoted = test.split('"').skip(1).step_by(2).map(str::to_owned);
    let is_name =
        |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
    let settings = test.lines().filter_map(|line| {
        let given = line.trim_start();
        let given = given.strip_prefix("KEEPS(").or_else(|| given.strip_prefix("SETS("))?;
        let mut parts = given.trim_end_matches([')', ';']).split(", ");
        Some(format!("{}::{}", parts.next()?, parts.next()?))
    });
    quoted.filter(is_name).chain(settings).collect()
}

#[test]
fn every_function_that_takes_a_duration_is_tested_with_the_longest() {
    let found = declared_with(&["Duration ", "std::optional<Duration> "]);
    let said = said_in(include_str!("../bindings/cpp/tests/durations.cpp"));
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 90 && missing.is_empty(), "of {}: {missing:?}", found.len());
}

/// What declares a callable of the user's.
const CALLABLES: [&str; 10] = [
    "F &&",
    "C &&work",
    "R &&on_restart",
    "C codec",
    "Unhandled ",
    "ConnFactory ",
    "FilterFactory ",
    "RequestHandler ",
    "BodyFactory ",
    "Function<",
];

#[test]
fn every_place_that_takes_a_callable_takes_what_can_only_be_moved() {
    let found = declared_with(&CALLABLES);
    let said = said_in(include_str!("../bindings/cpp/tests/movable.cpp"));
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 40 && missing.is_empty(), "of {}: {missing:?}", found.len());
}

#[test]
fn every_place_that_takes_a_callable_is_tested_with_an_empty_one() {
    let found = declared_with(&CALLABLES);
    let said = said_in(include_str!("../bindings/cpp/tests/empty.cpp"));
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 40 && missing.is_empty(), "of {}: {missing:?}", found.len());
}

/// Texts go to C through `detail::Text`, as parameters, and through `c_text`, as settings: both refuse a NUL.
#[test]
fn every_text_is_tested_with_a_nul() {
    let said = said_in(include_str!("../bindings/cpp/tests/texts.cpp"));
    let found = declared_with(&["detail::Text &"]);
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 40 && missing.is_empty(), "of {}: {missing:?}", found.len());

    let wrapper = header::CPP.whole();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let settings = ["c_text(", "c_text_if_any(", "c_texts("].map(|call| {
        let given = wrapper.split(call).skip(1);
        given.filter_map(|rest| rest.split(')').next()?.rsplit(|c| !is_word(c)).next()).collect()
    });
    let settings: BTreeSet<&str> =
        settings.iter().flat_map(|some: &Vec<_>| some.iter().copied()).collect();
    // What it is called where it is looped over.
    let elsewhere = ["file", "text", "label", "value", "kept_"];
    let names: BTreeSet<_> = said.iter().filter_map(|name| name.rsplit(':').next()).collect();
    let missing: Vec<_> = settings
        .iter()
        .filter(|name| !names.contains(*name) && !elsewhere.contains(*name))
        .collect();
    assert!(settings.len() > 25 && missing.is_empty(), "of {}: {missing:?}", settings.len());

    // Nothing else is handed to C as a text.
    let parameters: HashSet<_> = wrapper
        .split("detail::Text &")
        .skip(1)
        .filter_map(|rest| rest.split(|c| !is_word(c)).next())
        .collect();
    let mut others = BTreeSet::new();
    for (at, _) in wrapper.match_indices(".c_str()") {
        let name = wrapper[..at].rsplit(|c| !is_word(c)).next().unwrap_or_default();
        if !name.is_empty() && !parameters.contains(name) {
            others.insert(name);
        }
    }
    // An error's own text, a text in core.hpp, and what is for people.
    let own = BTreeSet::from(["text", "text_"]);
    let others: Vec<_> = others.difference(&own).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// What a handler of messages returns is looked at, or the compiler says why it is not.
#[test]
fn a_handler_of_messages_that_returns_what_means_nothing_does_not_compile() {
    for compiler in ["g++", "clang++"] {
        if is_missing(compiler, "#include <new>") {
            continue;
        }
        let unit = scratch(&format!("returns-{compiler}.cpp"));
        let text = "#include <paceline/hub.hpp>\nvoid f(const paceline::Hub &hub) {\n\
                    (void)hub.subscribe(\"a\", [](const paceline::Message &) { return false; });\n}\n";
        fs::write(&unit, text).expect("the scratch directory can be written to");
        let mut command = Command::new(compiler);
        command.args(["-fsyntax-only", "-std=c++17"]);
        for directory in ["include", "bindings/cpp"] {
            command.arg("-I").arg(source(directory));
        }
        let Output { status, stderr, .. } = command.arg(unit).output().expect("it starts");
        let told = String::from_utf8_lossy(&stderr);
        let why = "a handler of messages returns nothing, a Result or an Error";
        assert!(!status.success() && told.contains(why), "{told}");
    }
}

/// What an object holds is gone when it was moved from. So no function of the wrapper reaches through it without a look
/// whether it is there.
#[test]
fn what_was_moved_from_is_never_reached_through() {
    let wrapper = header::CPP.whole();
    let reaches = ["core_->", "state_->", "server_->", "place_->"];
    // A look, or it has just been made.
    let looks = [
        "core_ ?",
        "(core_)",
        "!core_",
        "server_ ?",
        "(server_)",
        "valid()",
        "(id_.id != 0)",
        "(id_.id == 0)",
        "core_(std::move(core))",
        "detail::shared_of<detail::UdpCore>()",
    ];
    let (mut function, mut found, mut reached) = (String::new(), Vec::new(), 0);
    for line in wrapper.lines().filter(|line| !line.trim_start().starts_with("//")) {
        function.push_str(line);
        function.push('\n');
        // A member function ends, or a declaration or a definition in one line.
        if line != "    }"
            && !(line.starts_with("    ")
                && !line.starts_with("     ")
                && line.ends_with(['}', ';']))
        {
            continue;
        }
        let has = |words: &[&str]| words.iter().any(|word| function.contains(word));
        if has(&reaches) {
            reached += 1;
            if !has(&looks) {
                found.push(std::mem::take(&mut function));
            }
        }
        function.clear();
    }
    assert!(reached > 30 && found.is_empty(), "of {reached}: {}", found.concat());
}

/// Move assignment takes its argument by value, or into an object of its own, so that what was held ends with the
/// statement, and does not live on in what was moved from.
#[test]
fn no_move_assignment_swaps_with_its_argument() {
    let wrapper = header::CPP.whole();
    let bodies: Vec<_> = wrapper
        .split("operator=(")
        .skip(1)
        .map(|text| text.split("\n    }\n").next().unwrap_or_default())
        .collect();
    let swaps = |body: &&&str| body.contains("&&other) noexcept {") && body.contains(", other.");
    let found: Vec<_> = bodies.iter().filter(swaps).collect();
    assert!(bodies.len() > 30 && found.is_empty(), "of {}: {found:?}", bodies.len());
}

/// Whoever adds a class says what its destructor waits for.
#[test]
fn every_class_is_named_where_destructors_are_tested() {
    let wrapper = header::CPP.whole();
    let (mut is_detail, mut found) = (false, BTreeSet::new());
    for line in wrapper.lines() {
        if line.starts_with("namespace detail") || line.starts_with("} // namespace detail") {
            is_detail = line.starts_with('n');
        }
        let defines =
            line.ends_with('{') && (line.starts_with("class ") || line.contains("> class "));
        if defines && !is_detail && !line.starts_with([' ', '/']) {
            let (_, name) = line.rsplit_once("class ").expect("it has the word");
            let name = name.trim_start_matches("[[nodiscard]] ");
            found.insert(name.split([' ', '<']).next().unwrap_or_default().to_owned());
        }
    }
    let said = said_in(include_str!("../bindings/cpp/tests/ends.cpp"));
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 60 && missing.is_empty(), "of {}: {missing:?}", found.len());
}

#[test]
fn every_place_that_takes_code_of_the_user_is_tested_with_what_throws() {
    let others = [
        "std::unique_ptr<ConnHandler>",
        "std::unique_ptr<UdpHandler>",
        "std::vector<std::shared_ptr<Middleware>>",
        "virtual ",
    ];
    let found = declared_with(&[&CALLABLES[..], &others].concat());
    let said = said_in(include_str!("../bindings/cpp/tests/thrown.cpp"));
    let missing: Vec<_> = found.difference(&said).collect();
    assert!(found.len() > 60 && missing.is_empty(), "of {}: {missing:?}", found.len());
    // No trampoline catches in its own way: all go through one function.
    let wrapper = header::CPP.whole();
    assert_eq!(wrapper.matches("    PACELINE_DETAIL_TRY {").count(), 2);
}

/// Goal: a program that needs a pool is not given thousands of lines, and each header can be included alone. Method: the
/// oldest standard of one compiler and the newest of the other, with each header alone and twice.
#[test]
fn each_header_is_small_and_compiles_alone() {
    let topics = header::CPP.topics();
    assert!(topics.len() > 10, "{topics:?}");
    for topic in &topics {
        let lines = header::CPP.text(topic).lines().count();
        assert!(lines < 1200, "{topic}.hpp has {lines} lines of less than 1200");
        let line = format!("#include <paceline/{topic}.hpp>\n");
        fs::write(scratch(&format!("alone-{topic}.cpp")), line.repeat(2))
            .expect("it can be written to");
    }
    let reached: Vec<_> = header::CPP.reached("pool").into_iter().collect();
    assert_eq!(reached, ["core", "enums", "log", "pool", "task"]);
    // What is missing is missing for each compiler, and each has all of them together in other tests.
    if is_missing("g++", "#include <new>") {
        return;
    }
    let mut command = Command::new("g++");
    command.args(["-fsyntax-only", "-std=c++17"]).args(STRICT.split_whitespace());
    for directory in ["include", "bindings/cpp"] {
        command.arg("-I").arg(source(directory));
    }
    let units = topics.iter().map(|topic| scratch(&format!("alone-{topic}.cpp")));
    assert_eq!(printed(command.args(units)), "");
}

/// Names that Qt has as macros are no words of the headers.
#[test]
fn the_headers_stand_macros_of_other_libraries() {
    if is_missing("c++", "#include <new>") {
        return;
    }
    let unit = scratch("macros.cpp");
    let text = "#define forever for (;;)\n#define signals public\n#define slots\n#define emit\n\
                #define foreach(each, all) for (each : all)\n#include <paceline.hpp>\n\
                static_assert(paceline::FOREVER.count() > 0);\n";
    fs::write(&unit, text).expect("the scratch directory can be written to");
    let mut command = Command::new("c++");
    command.args(["-fsyntax-only", "-std=c++17"]);
    for directory in ["include", "bindings/cpp"] {
        command.arg("-I").arg(source(directory));
    }
    assert_eq!(printed(command.arg(unit)), "");
}

/// Builds an example by the line that its head shows, with this build's library.
fn build_example(name: &str) -> PathBuf {
    let path = source(&format!("examples/cpp/{name}.cpp"));
    let text = fs::read_to_string(&path).expect("the example is there");
    let shown = text.lines().find_map(|line| line.strip_prefix("//     c++ "));
    let (libraries, program) = (libraries(), scratch(&format!("example-{name}")));
    let line = shown.expect("its head shows how to build it");
    let (line, output) = line.split_once(" -o ").expect("it names the program");
    assert_eq!(output, name);

    let mut command = Command::new("c++");
    command.current_dir(ROOT).args(STRICT.split_whitespace());
    command.args(line.replace("target/release", &libraries.display().to_string()).split(' '));
    printed(command.arg("-o").arg(&program));
    program
}

#[test]
fn every_part_of_the_tests_is_run() {
    let programs =
        ["main.cpp", "without_exceptions.cpp", "use_after_free.cpp", "threads_sanitized.cpp"];
    let beside = |name: &str| programs.contains(&name);
    let mut found: Vec<_> = fs::read_dir(source("bindings/cpp/tests"))
        .expect("the tests are there")
        .map(|entry| entry.expect("it can be listed").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".cpp") && !beside(name))
        .collect();
    let mut parts = PARTS.map(String::from).to_vec();
    found.sort();
    parts.sort();
    assert_eq!(found, parts);
}

/// Builds the tests and runs them.
fn run_tests(compiler: &str, standard: &str, more: &str) {
    let name = format!("{compiler}-{standard}{}", more.replace([' ', ','], ""));
    let Some(unit) = unit_of_all_tests(compiler, &name) else { return };
    let flags = format!("-std={standard} {STRICT} {more}");
    let main = source("bindings/cpp/tests/main.cpp");
    let program = build(compiler, &flags, &[unit, main], &name);
    let text = printed(&mut Command::new(program));
    assert!(text.contains("SUCCESS!"), "{text}");
}

/// Compiles the tests and makes no code, which would take most of the time: whether everything is
/// understood, all templates included, without a warning. What a standard makes of the wrapper beyond
/// that, its neighbours run.
fn check_tests(compiler: &str, standard: &str) {
    let Some(unit) = unit_of_all_tests(compiler, &format!("{compiler}-{standard}")) else { return };
    let mut command = Command::new(compiler);
    command.arg("-fsyntax-only").arg(format!("-std={standard}")).args(STRICT.split_whitespace());
    for directory in ["include", "bindings/cpp"] {
        command.arg("-I").arg(source(directory));
    }
    assert_eq!(printed(command.arg(unit)), "");
}

/// One translation unit of all parts; none where something is missing.
fn unit_of_all_tests(compiler: &str, name: &str) -> Option<PathBuf> {
    if is_missing(compiler, "#include <doctest/doctest.h>") {
        return None;
    }
    let unit = scratch(&format!("{name}.cpp"));
    let tests = source("bindings/cpp/tests");
    let line = |part| format!("#include \"{}\"\n", tests.join(part).display());
    fs::write(&unit, PARTS.map(line).concat()).expect("the scratch directory can be written to");
    Some(unit)
}

/// Compiles and links with the shared library that was built with this test.
fn build(compiler: &str, flags: &str, sources: &[PathBuf], name: &str) -> PathBuf {
    let program = scratch(name);
    let libraries = libraries();
    let mut command = Command::new(compiler);
    command
        .args(flags.split_whitespace())
        // Lines for what a sanitizer tells; and assertions that take less time to compile.
        .args(["-g1", "-DDOCTEST_CONFIG_SUPER_FAST_ASSERTS", "-pthread", "-I"])
        .arg(source("include"))
        .arg("-I")
        .arg(source("bindings/cpp"))
        .args(sources)
        .arg("-L")
        .arg(&libraries)
        .arg("-lpaceline")
        // Before the path that cargo sets, where an older build may lie.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(&program);
    printed(&mut command);
    program
}

/// What a run that went well has printed.
fn printed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && err.is_empty(), "{command:?}: {status}\n{out}{err}");
    out.into_owned()
}

/// Whether a compiler, or the header that is needed, is not here; says so.
fn is_missing(compiler: &str, needed: &str) -> bool {
    let probe = scratch(&format!("probe-{compiler}-{}.cpp", needed.len()));
    fs::write(&probe, needed).expect("the scratch directory can be written to");
    let found = Command::new(compiler).arg("-E").arg(&probe).output();
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let why = match found {
        _ if flags.contains("-Zsanitizer") => "the library is built for a sanitizer".into(),
        Err(_) => format!("there is no {compiler}"),
        Ok(output) if !output.status.success() => format!("{compiler} does not find {needed}"),
        Ok(_) => return false,
    };
    skipped(why);
    true
}

/// Where cargo has put the libraries that belong to this test: beside it.
fn libraries() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let directory = test.parent().expect("it lies in a directory").to_owned();
    assert!(directory.join("libpaceline.so").exists(), "no libpaceline.so in {directory:?}");
    directory
}

fn source(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpp");
    fs::create_dir_all(&directory).expect("cargo's scratch directory can be written to");
    directory.join(name)
}
