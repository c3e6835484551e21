//! A line chat: what one says, all others read, in the same order.
//!
//! ```text
//! cargo run --release -p examples --example chat -- --listen 127.0.0.1:7000
//! nc 127.0.0.1 7000        # as often as you like
//! ```
//!
//! | line | effect |
//! |---|---|
//! | the first | a name: up to 32 characters, and nobody else's |
//! | `/quit` | leaves |
//! | any other, up to 1024 bytes | `name: line` to all others |
//!
//! **A slow reader harms nobody.** What it does not take waits in its connection's output. Above the
//! high mark (64 KiB) it misses lines; when it has read down to the low mark it is told how many. One
//! that takes nothing at all for 30 s is closed, and has left.

#[path = "../common/mod.rs"]
mod common;

use common::{Failure, address, number, print_now, set};
use lexopt::Arg::{Long, Short};
use paceline::net::{
    Accept, Conn, ConnHandler, ConnRef, Delimited, Frame, Reason, Server, WriteStatus,
};
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HELP: &str = "\
A line chat: what one says, all others read.

Usage: chat --listen ADDR [--threads N]

  --listen ADDR   where to listen: 127.0.0.1:7000, *:7000, unix:/run/chat; port 0 takes a free one
  --threads N     threads of the pool; default: one per CPU
  --help          this text";

/// Bytes of a line, and characters of a name.
const LINE: usize = 1024;
const NAME: usize = 32;
/// Marks of a connection's output: a slow reader misses lines above `HIGH`, and none below `LOW`.
const LOW: usize = 16 << 10;
const HIGH: usize = 64 << 10;
const MAX: usize = 128 << 10;
const DRAIN: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    common::exit("chat", run())
}

fn run() -> Result<(), Failure> {
    let (mut listen, mut threads) = (None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => set("listen", &mut listen, address, &mut parser)?,
            Long("threads") => set("threads", &mut threads, number, &mut parser)?,
            Long("help") | Short('h') => return Ok(print_now(HELP)?),
            other => return Err(other.unexpected().into()),
        }
    }
    let listen = listen.ok_or(lexopt::Error::from("--listen is missing"))?;
    common::raise_open_files()?;
    let pool = common::pool(threads).build()?;
    let room = Arc::new(Room::default());
    let server = Server::builder(&pool).listen(listen).output_marks(LOW, HIGH, MAX).serve({
        let room = Arc::clone(&room);
        move |_| Guest { room: Arc::clone(&room), lines: Delimited::lines(LINE), name: None }
    })?;
    common::serve_until_interrupted(&pool, server.addresses())?;
    let drained = server.drain(DRAIN).drained;
    print_now(&*room)?;
    if drained { Ok(()) } else { Err("not everybody has gone".into()) }
}

// --- a connection ----------------------------------------------------------------------------------

struct Guest {
    room: Arc<Room>,
    lines: Delimited,
    /// None before it has told one that nobody has.
    name: Option<Arc<str>>,
}

impl ConnHandler for Guest {
    fn open(&mut self, conn: &Conn) -> Accept {
        tell(conn, "* your name?\n");
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        loop {
            let flow = match self.lines.next(rest) {
                Frame::Message { body, length } => {
                    rest = &rest[length..];
                    self.line(conn, &printable(body))
                }
                Frame::Partial => return bytes.len() - rest.len(),
                Frame::TooLong => ControlFlow::Break("* too long a line\n"),
            };
            if let ControlFlow::Break(last) = flow {
                tell(conn, last);
                conn.close();
                return bytes.len();
            }
        }
    }

    fn writable(&mut self, conn: &Conn) {
        if let Some(name) = &self.name
            && let Some(missed) = self.room.catch_up(name)
        {
            tell(conn, &format!("* you have missed {missed} lines\n"));
        }
    }

    fn draining(&mut self, conn: &Conn) {
        tell(conn, "* the chat closes\n");
    }

    fn close(&mut self, _: &Conn, _: Reason) {
        if let Some(name) = self.name.take() {
            self.room.leave(&name);
        }
    }
}

impl Guest {
    fn line(&mut self, conn: &Conn, line: &str) -> ControlFlow<&'static str> {
        match &self.name {
            _ if line == "/quit" => return ControlFlow::Break("* bye\n"),
            Some(name) => self.room.say(name, line),
            None if line.is_empty() || line.chars().count() > NAME => {
                tell(conn, "* a name has 1 to 32 characters; yours?\n");
            }
            None => {
                self.name = self.room.enter(line, conn);
                if self.name.is_none() {
                    tell(conn, "* somebody has that name; yours?\n");
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// A write fails if the connection is about to close, or so full that it is to miss things anyway.
fn tell(conn: &Conn, line: &str) {
    let _ = conn.write(line.as_bytes());
}

/// No line may play tricks on the others' terminals.
fn printable(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect()
}

// --- all of them -----------------------------------------------------------------------------------

/// Who is there. A line is written to everybody under the lock, so all read one order; that holds
/// nobody up, since no write waits.
#[derive(Default)]
struct Room(Mutex<Members>);

#[derive(Default)]
struct Members {
    present: HashMap<Arc<str>, Member>,
    joined: u64,
    lines: u64,
    /// Lines that slow readers have missed, each counted once per reader.
    missed: u64,
}

struct Member {
    conn: ConnRef,
    /// Its output was above the high mark at the last line.
    behind: bool,
    missed: u64,
}

impl Room {
    /// None: somebody has that name.
    fn enter(&self, name: &str, conn: &Conn) -> Option<Arc<str>> {
        let mut members = self.lock();
        if members.present.contains_key(name) {
            return None;
        }
        let name: Arc<str> = name.into();
        members.joined += 1;
        members.tell_others(&name, &format!("* {name} has joined\n"));
        let member = Member { conn: conn.handle(), behind: false, missed: 0 };
        members.present.insert(Arc::clone(&name), member);
        tell(conn, &format!("* welcome, {name}\n"));
        Some(name)
    }

    fn leave(&self, name: &str) {
        let mut members = self.lock();
        members.present.remove(name);
        members.tell_others(name, &format!("* {name} has left\n"));
    }

    fn say(&self, name: &str, line: &str) {
        let mut members = self.lock();
        members.lines += 1;
        members.tell_others(name, &format!("{name}: {line}\n"));
    }

    /// Its output has room again: how many lines it has missed, if any.
    fn catch_up(&self, name: &str) -> Option<u64> {
        let mut members = self.lock();
        let member = members.present.get_mut(name)?;
        member.behind = false;
        Some(std::mem::take(&mut member.missed)).filter(|missed| *missed > 0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Members> {
        self.0.lock().expect("nothing under the lock panics")
    }
}

impl Members {
    fn tell_others(&mut self, author: &str, line: &str) {
        for (name, member) in &mut self.present {
            if &**name == author {
                continue;
            }
            if member.behind {
                member.missed += 1;
                self.missed += 1;
                continue;
            }
            // An error: it has ended, and `close` is under way.
            member.behind =
                member.conn.write(line.as_bytes()).ok() == Some(WriteStatus::AboveHighMark);
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Members { joined, lines, missed, .. } = &*self.lock();
        write!(f, "{joined} joined and said {lines} lines; slow readers missed {missed}")
    }
}
