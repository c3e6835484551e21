//! What holds for the store in either language: its replies are those of the table, wherever requests are cut, and
//! those of the real redis-server; and it holds out against clients that mean it no good.

use crate::common::{Random, unread, until};
use crate::kit::{Client, Redis, Server, encoded};
use crate::table::RAW;
use std::io::{Read, Write};

/// Requests, words with blanks between them, and their replies.
type Commands = [(&'static str, &'static str)];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

#[track_caller]
fn assert_same(what: &str, ours: &[u8], theirs: &[u8]) {
    assert_eq!(text(ours), text(theirs), "{what:?}");
    assert_eq!(ours, theirs, "{what:?}");
}

/// Whether a reply is that of the table: see there.
#[track_caller]
fn assert_is(line: &str, reply: &[u8], expected: &str) {
    let Some(most) = expected.strip_prefix(":<=") else {
        return assert_same(line, reply, expected.as_bytes());
    };
    let number = |text: &str| text.trim_matches([':', '\r', '\n']).parse::<u64>().ok();
    let told = number(&text(reply)).filter(|told| Some(*told) <= number(most));
    assert!(told.is_some_and(|told| told > 0), "{line:?}: {} is not {expected}", text(reply));
}

/// A server that nobody has used says what the table says.
pub fn assert_replies(server: &Server, tables: &[&Commands]) {
    let mut client = server.connect();
    for &(line, expected) in tables.iter().copied().flatten() {
        assert_is(line, &client.say(line), expected);
    }
    assert_same("the end", &client.say("QUIT"), b"+OK\r\n");
    assert_same("the end", &client.rest(), b"");
    for (stream, expected) in RAW {
        let mut client = server.connect();
        client.send(stream);
        assert_same(&text(stream), &client.rest(), expected);
    }
}

/// Goal: it does not matter where a stream is cut. Method: a Unix socket tells its sender what has not been read yet,
/// so that each piece is known to come by itself. The streams that come near the end of the protocol are cut at every
/// byte, and all commands into pieces of up to seven.
pub fn assert_cuts_do_not_matter(server: &Server, tables: &[&Commands]) {
    for (stream, expected) in RAW {
        for cut in 1..stream.len() {
            let (first, rest) = stream.split_at(cut);
            let mut client = server.connect_unix();
            client.write_all(first).expect("the server reads");
            until("it has been read", || unread(&client) == 0);
            // What is wrong in the first part may have ended it.
            let _ = client.write_all(rest);
            let mut replies = Vec::new();
            client.read_to_end(&mut replies).expect("the connection ends well");
            assert_same(&format!("{} at {cut}", text(stream)), &replies, expected);
        }
    }
    let lines = || tables.iter().copied().flatten();
    let stream: Vec<u8> = lines().flat_map(|(line, _)| encoded(&words(line))).collect();
    let mut rest = &stream[..];
    let mut random = Random::new(1);
    let mut sends = server.connect_unix();
    let mut client = Client::new(sends.try_clone().expect("a socket can be cloned"));
    assert_same("the start", &client.say("FLUSHALL"), b"+OK\r\n");
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(7) as usize));
        sends.write_all(piece).expect("the server reads");
        until("it has been read", || unread(&sends) == 0);
        rest = behind;
    }
    lines().for_each(|(line, expected)| assert_is(line, &client.reply(), expected));
}

/// Goal: whatever a client sends, it gets an error or nothing, memory is not taken before bytes come, and others are
/// served as before.
pub fn assert_holds_out(server: &Server) {
    const LONG: usize = 70_000;
    let mut other = server.connect();
    assert_same("SET", &other.say("SET kept value"), b"+OK\r\n");
    let before = server.peak();
    let endless = |front: &str| [front.as_bytes(), &[b'1'; LONG]].concat();
    let errors = [
        (endless(""), "too big inline request"),
        (endless("*"), "too big mbulk count string"),
        (endless("*1\r\n$"), "too big bulk count string"),
        (encoded(&[b"PING"]).repeat(3)[..41].to_vec(), ""),
    ];
    for (stream, why) in errors {
        let mut client = server.connect();
        client.send(&stream);
        let expected = match why {
            "" => "+PONG\r\n+PONG\r\n".to_owned(),
            _ => format!("-ERR Protocol error: {why}\r\n"),
        };
        if why.is_empty() {
            client.finish();
        }
        assert_same(why, &client.rest(), expected.as_bytes());
    }
    // What a reply quotes is cut off, and its line breaks do not end it.
    let mut client = server.connect();
    for (words, begin) in [
        ([&b"CONFIG"[..], &[b'x'; 2000]], "-ERR unknown subcommand 'xxx"),
        ([&b"CONFIG"[..], &b"\r\n+OK\r\n".repeat(300)], "-ERR unknown subcommand '  +OK  "),
        ([&[b'y'; 2000][..], b"a"], "-ERR unknown command 'yyy"),
        ([&b"\r\n+OK\r\n".repeat(300)[..], &b"\r\n".repeat(300)], "-ERR unknown command '  +OK  "),
    ] {
        let reply = text(&client.ask(&words));
        assert!(reply.starts_with(begin) && reply.len() < 400, "{reply:?}");
        assert_same("the next", &client.say("PING"), b"+PONG\r\n");
    }
    // Much is announced, and nothing comes.
    let announcements =
        ["*2147483647\r\n", "*1\r\n$536870912\r\n", "*2147483647\r\n$536870912\r\nx"];
    let silent: Vec<_> = announcements
        .iter()
        .cycle()
        .take(300)
        .map(|announced| {
            let mut client = server.connect();
            client.send(announced.as_bytes());
            client
        })
        .collect();
    garbage(server, 400);
    assert_same("GET", &other.say("GET kept"), b"$5\r\nvalue\r\n");
    let grown = server.peak().saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes for clients that only announce");
    drop(silent);
}

/// What often occurs, to be put together at random. None of it changes what is kept.
const PARTS: [&[u8]; 22] = [
    b"*1\r\n$4\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"PING\r\n",
    b"echo 'it\\'s'\n",
    b"echo \"\\x41\\n\"\r\n",
    b"CONFIG a\r\n",
    b"nosuch a b\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*2\r\n",
    b"*",
    b"$",
    b"$3\r\n",
    b"$0\r\n\r\n",
    b"$4\r\nPING\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b"\"",
    b"-1",
    b"\xff ",
];

/// A stream of garbage. The same number gives the same.
pub fn garbage_of(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..1 + random.below(12)).flat_map(|_| PARTS[random.below(22) as usize]).copied().collect()
}

/// All that a server replies to a stream that then ends.
pub fn replies_to(server: &Server, stream: &[u8]) -> Vec<u8> {
    let mut client = server.connect();
    client.send(stream);
    client.finish();
    client.rest()
}

/// Replies to garbage are replies: each begins as one, and ends.
fn garbage(server: &Server, streams: u64) {
    for seed in 0..streams {
        let stream = garbage_of(seed);
        let replies = replies_to(server, &stream);
        let is_whole = replies.is_empty() || replies.ends_with(b"\r\n");
        assert!(is_whole, "{:?}: {:?}", text(&stream), text(&replies));
    }
}

/// All commands, one after the other and in one piece, and all that breaks the protocol.
pub fn assert_replies_are_those_of_redis(server: &Server, tables: &[&Commands]) {
    let redis = Redis::start();
    let lines = || tables.iter().copied().flatten().map(|(line, _)| *line).chain(["QUIT"]);
    let (mut ours, mut theirs) = (server.connect(), redis.connect());
    for line in lines() {
        assert_same(line, &ours.say(line), &theirs.say(line));
    }
    assert_same("the end", &ours.rest(), &theirs.rest());

    let all = lines().fold("FLUSHALL\r\n".to_owned(), |text, line| text + line + "\r\n");
    for raw in RAW.iter().map(|(stream, _)| *stream).chain([all.as_bytes()]) {
        let replies = |mut client: Client| {
            client.send(raw);
            client.rest()
        };
        assert_same(&text(raw), &replies(server.connect()), &replies(redis.connect()));
    }
    for seed in 0..200 {
        let stream = garbage_of(seed);
        let mut client = redis.connect();
        client.send(&stream);
        client.finish();
        assert_same(&text(&stream), &replies_to(server, &stream), &client.rest());
    }
}

/// Goal: no web page has a browser carry out commands here. Method: what a browser sends for a form, whose body
/// is lines of commands; the connection ends without a reply to them.
pub fn assert_http_is_refused(server: &Server) {
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: here\r\n", "host: a\r\n"] {
        let mut client = server.connect();
        client.send(format!("{head}Content-Length: 20\r\n\r\nSET stolen 1\r\n").as_bytes());
        client.finish();
        let rest = client.rest();
        assert!(!rest.windows(3).any(|three| three == b"+OK"), "{}", rest.escape_ascii());
        let mut other = server.connect();
        other.send(b"EXISTS stolen\r\n");
        assert_eq!(other.reply(), b":0\r\n", "{head:?}");
    }
}
