//! The chat: names, one order for all, and a reader who does not read.

use super::kit::{KINDS, Server, Stream, run};
use std::io::{BufRead, BufReader, Write};
use std::thread;

struct Guest(BufReader<Stream>);

impl Guest {
    fn come(server: &Server, name: &str) -> Self {
        let mut guest = Self(BufReader::new(server.connect()));
        guest.expect("* your name?");
        guest.say(name);
        guest
    }

    fn welcome(server: &Server, name: &str) -> Self {
        let mut guest = Self::come(server, name);
        guest.expect(&format!("* welcome, {name}"));
        guest
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("the server reads");
    }

    /// The next line; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server writes UTF-8, or ends in good order");
        line.trim_end().to_owned()
    }

    #[track_caller]
    fn expect(&mut self, line: &str) {
        assert_eq!(self.line(), line);
    }
}

#[test]
fn guests_come_talk_and_leave() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let server = Server::start(kind, "chat", &["--threads", "2"]);
        let mut ann = Guest::welcome(&server, "ann");
        let mut bob = Guest::welcome(&server, "bob");
        ann.expect("* bob has joined");
        ann.say("hello\r");
        bob.expect("ann: hello");
        bob.say("\x1b[31mhello \u{1F44B}");
        ann.expect("bob: [31mhello \u{1F44B}");
        bob.say("/quit");
        bob.say("this is not said any more");
        bob.expect("* bye");
        bob.expect("");
        ann.expect("* bob has left");
        drop(ann);
        let books = server.stop("TERM");
        assert_eq!(books, "2 joined and said 2 lines; slow readers missed 0\n");
    }
}

#[test]
fn names_are_short_and_nobody_elses() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let server = Server::start(kind, "chat", &["--threads", "2"]);
        let mut ann = Guest::welcome(&server, "ann");
        let mut other = Guest::come(&server, "ann");
        other.expect("* somebody has that name; yours?");
        other.say(&"x".repeat(33));
        other.expect("* a name has 1 to 32 characters; yours?");
        other.say("");
        other.expect("* a name has 1 to 32 characters; yours?");
        other.say(&"ä".repeat(32));
        other.expect(&format!("* welcome, {}", "ä".repeat(32)));
        ann.expect(&format!("* {} has joined", "ä".repeat(32)));
        ann.say("/quit");
        other.expect("* ann has left");
        Guest::welcome(&server, "ann");
    }
}

#[test]
fn a_line_may_have_1024_bytes() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let server = Server::start(kind, "chat", &[]);
        let (mut ann, mut bob) = (Guest::welcome(&server, "ann"), Guest::welcome(&server, "bob"));
        ann.expect("* bob has joined");
        bob.say(&"x".repeat(1024));
        ann.expect(&format!("bob: {}", "x".repeat(1024)));
        bob.say(&"x".repeat(1025));
        bob.expect("* too long a line");
        bob.expect("");
        ann.expect("* bob has left");
    }
}

/// Goal: whoever reads gets every line in order, and whoever does not misses only what it is told.
/// Method: two authors and three readers go in step, so that those never lag by more than the mark;
/// another reads nothing before all is said, which is far more than buffers hold.
#[test]
fn a_slow_reader_harms_nobody() {
    const LINES: usize = 8_000;
    const STEP: usize = 16;
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let server = Server::start(kind, "chat", &["--threads", "2"]);
        let mut slow = Guest::welcome(&server, "slow");
        let mut readers: Vec<_> =
            (0..3).map(|n| Guest::welcome(&server, &format!("r{n}"))).collect();
        let mut authors = ["a", "b"].map(|name| Guest::welcome(&server, name));
        for (came_before, reader) in readers.iter_mut().rev().enumerate() {
            (0..came_before + 2).for_each(|_| assert!(reader.line().ends_with("has joined")));
        }
        let text = "x".repeat(900);
        for first in (0..LINES).step_by(STEP) {
            for author in &mut authors {
                (first..first + STEP).for_each(|number| author.say(&format!("{number} {text}")));
            }
            thread::scope(|scope| {
                let readings = readers.iter_mut().map(|reader| {
                    scope.spawn(|| (0..2 * STEP).map(|_| reader.line()).collect::<Vec<_>>())
                });
                let seen: Vec<_> =
                    readings.collect::<Vec<_>>().into_iter().map(|r| r.join()).collect();
                let seen: Vec<_> = seen.into_iter().map(|lines| lines.expect("no panic")).collect();
                assert!(seen.iter().all(|lines| *lines == seen[0]), "they have read the same");
                for author in ["a", "b"] {
                    let lines = seen[0].iter().filter(|line| line.starts_with(author));
                    let expected = (first..first + STEP).map(|n| format!("{author}: {n} {text}"));
                    assert!(lines.cloned().eq(expected), "{author} from {first}");
                }
            });
            authors.iter_mut().for_each(|author| drop((0..STEP).map(|_| author.line()).last()));
        }
        (0..5).for_each(|_| assert!(slow.line().ends_with("has joined")));
        let (mut got, mut missed) = (0, 0);
        while got + missed < 2 * LINES {
            let line = slow.line();
            match line.strip_prefix("* you have missed ") {
                Some(told) => {
                    missed += told.trim_end_matches(" lines").parse::<usize>().expect("a number")
                }
                None => got += usize::from(line.starts_with("a: ") || line.starts_with("b: ")),
            }
        }
        assert_eq!(got + missed, 2 * LINES);
        assert!(missed > 0, "buffers have held everything");
        let books = server.stop("INT");
        assert_eq!(
            books,
            format!("6 joined and said {} lines; slow readers missed {missed}\n", 2 * LINES)
        );
    }
}

#[test]
fn the_end_is_told() {
    if super::is_missing() {
        return;
    }
    for kind in KINDS {
        let server = Server::start(kind, "chat", &[]);
        let mut ann = Guest::welcome(&server, "ann");
        let reading = thread::spawn(move || {
            ann.expect("* the chat closes");
            ann.expect("");
        });
        server.stop("TERM");
        reading.join().expect("it was told");
    }
}

#[test]
fn a_flag_that_is_missing_is_named() {
    if super::is_missing() {
        return;
    }
    let output = run("chat", &["--threads", "2"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "chat: --listen is missing\n");
}
