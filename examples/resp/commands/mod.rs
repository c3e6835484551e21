//! The commands: a table, and one file for each kind.

mod hashes;
mod keys;
mod lists;
mod server;
mod strings;
mod table;

pub use table::{Command, TABLE, find};

use crate::app::App;
use crate::bytes::Bytes;
use crate::number;
use crate::replies::Replies;
use crate::request::Request;
use crate::value::{Fields, List, Value};

/// A request that is being carried out.
pub struct Call<'a, 'c> {
    pub app: &'a App,
    pub request: Request<'a>,
    pub replies: &'a mut Replies<'c>,
    /// The client is to be disconnected after the reply.
    pub quits: bool,
}

/// Why a request was not carried out. It has changed nothing then.
pub enum Failure {
    Unknown,
    Arity,
    WrongType,
    NotInteger,
    Overflow,
    Syntax,
    /// The name of the command.
    ExpireTime(&'static str),
    /// The whole message.
    Other(Vec<u8>),
}

pub type Outcome = Result<(), Failure>;

impl<'a> Call<'a, '_> {
    /// Finds the command, carries it out, and replies.
    #[inline]
    pub fn run(&mut self) {
        let Some(command) = find(&self.request[0]) else { return self.run_unknown() };
        let outcome = match command.admits(self.request.len()) {
            true => (command.run)(self),
            false => Err(Failure::Arity),
        };
        if let Err(failure) = outcome {
            self.fail(Some(command), failure);
        }
    }

    /// A browser that a web page has sent here speaks HTTP. Its request line or its `Host:` ends the connection,
    /// as with Redis, or lines of its body would be carried out.
    #[cold]
    fn run_unknown(&mut self) {
        self.quits = self.is(0, "post") || self.is(0, "host:");
        if !self.quits {
            self.fail(None, Failure::Unknown);
        }
    }

    #[cold]
    fn fail(&mut self, command: Option<&Command>, failure: Failure) {
        let message: &[u8] = match &failure {
            Failure::Unknown => &unknown(self.request),
            Failure::Arity => &wrong_arity(command.map_or("", |command| command.name)),
            Failure::WrongType => {
                b"WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            Failure::NotInteger => b"ERR value is not an integer or out of range",
            Failure::Overflow => b"ERR increment or decrement would overflow",
            Failure::Syntax => b"ERR syntax error",
            Failure::ExpireTime(command) => {
                &format!("ERR invalid expire time in '{command}' command").into_bytes()
            }
            Failure::Other(message) => message,
        };
        self.replies.error(message);
    }

    #[inline]
    fn key(&self) -> &'a [u8] {
        self.request.get(1)
    }

    fn integer(&self, index: usize) -> Result<i64, Failure> {
        number::parse(&self.request[index]).ok_or(Failure::NotInteger)
    }

    /// Whether an argument is this word, in whatever case.
    fn is(&self, index: usize, word: &str) -> bool {
        self.request[index].eq_ignore_ascii_case(word.as_bytes())
    }
}

fn wrong_arity(command: &str) -> Vec<u8> {
    format!("ERR wrong number of arguments for '{command}' command").into_bytes()
}

/// So much of a request is shown in an error, as by Redis.
const QUOTED: usize = 128;

/// What an error shows of a word: up to `most` bytes, and not behind a zero byte, which ends C's strings.
fn quoted(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|byte| *byte == 0).next().unwrap_or(word)
}

fn unknown(request: Request<'_>) -> Vec<u8> {
    let mut message = b"ERR unknown command '".to_vec();
    message.extend_from_slice(quoted(&request[0], QUOTED));
    message.extend_from_slice(b"', with args beginning with: ");
    let start = message.len();
    for argument in request.from(1) {
        let left = QUOTED.saturating_sub(message.len() - start);
        if left == 0 {
            break;
        }
        message.push(b'\'');
        message.extend_from_slice(quoted(argument, left));
        message.extend_from_slice(b"' ");
    }
    message
}

// --- values of the right kind ----------------------------------------------------------------------

fn text(value: &Value) -> Result<&Bytes, Failure> {
    if let Value::Text(text) = value { Ok(text) } else { Err(Failure::WrongType) }
}

fn list(value: &Value) -> Result<&List, Failure> {
    if let Value::List(list) = value { Ok(list) } else { Err(Failure::WrongType) }
}

fn list_mut(value: &mut Value) -> Result<&mut List, Failure> {
    if let Value::List(list) = value { Ok(list) } else { Err(Failure::WrongType) }
}

fn fields(value: &Value) -> Result<&Fields, Failure> {
    if let Value::Fields(fields) = value { Ok(fields) } else { Err(Failure::WrongType) }
}

fn fields_mut(value: &mut Value) -> Result<&mut Fields, Failure> {
    if let Value::Fields(fields) = value { Ok(fields) } else { Err(Failure::WrongType) }
}
