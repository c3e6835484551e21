//! The connection, and the server itself.

use super::{Call, Command, Failure, Outcome, QUOTED, TABLE, find, quoted, wrong_arity};
use crate::pattern;
use crate::replies::Replies;

pub fn ping(call: &mut Call) -> Outcome {
    match call.request.len() {
        1 => call.replies.status(b"PONG"),
        2 => call.replies.bulk(call.key()),
        _ => return Err(Failure::Arity),
    }
    Ok(())
}

pub fn echo(call: &mut Call) -> Outcome {
    call.replies.bulk(call.key());
    Ok(())
}

pub fn quit(call: &mut Call) -> Outcome {
    call.replies.ok();
    call.quits = true;
    Ok(())
}

/// There is one database, number 0.
pub fn select(call: &mut Call) -> Outcome {
    if call.integer(1)? != 0 {
        return Err(Failure::Other(b"ERR DB index is out of range".into()));
    }
    call.replies.ok();
    Ok(())
}

// --- INFO ------------------------------------------------------------------------------------------

pub fn info(call: &mut Call) -> Outcome {
    let mut text = String::new();
    for (name, lines) in call.app.describe() {
        let is_asked = |word: &[u8]| {
            let words: [&str; 4] = [name, "all", "everything", "default"];
            words.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        if call.request.len() == 1 || call.request.from(1).any(is_asked) {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            text += &format!("{separator}# {name}\r\n{lines}");
        }
    }
    call.replies.bulk(text.as_bytes());
    Ok(())
}

// --- CONFIG ----------------------------------------------------------------------------------------

pub fn config(call: &mut Call) -> Outcome {
    if !call.is(1, "get") {
        return Err(unknown_subcommand(call, "CONFIG"));
    }
    if call.request.len() < 3 {
        return Err(Failure::Other(wrong_arity("config|get")));
    }
    let is_asked = |name: &str| {
        let is_like =
            |pattern: &[u8]| pattern::matches(&pattern.to_ascii_lowercase(), name.as_bytes());
        call.request.from(2).any(is_like)
    };
    let settings = call.app.settings();
    let asked: Vec<_> = settings.iter().filter(|(name, _)| is_asked(name)).collect();
    call.replies.array(2 * asked.len());
    for (name, value) in asked {
        call.replies.bulk(name.as_bytes());
        call.replies.bulk(value.as_bytes());
    }
    Ok(())
}

fn unknown_subcommand(call: &Call, command: &str) -> Failure {
    let mut message = b"ERR unknown subcommand '".to_vec();
    message.extend_from_slice(quoted(call.key(), QUOTED));
    message.extend_from_slice(format!("'. Try {command} HELP.").as_bytes());
    Failure::Other(message)
}

// --- COMMAND ---------------------------------------------------------------------------------------

pub fn command(call: &mut Call) -> Outcome {
    let replies = &mut *call.replies;
    match call.request.from(1).next().map(<[u8]>::to_ascii_lowercase).as_deref() {
        None => for_all(replies, |replies, command| describe(replies, Some(command))),
        Some(b"count") => replies.integer(TABLE.len() as i64),
        Some(b"list") => {
            for_all(replies, |replies, command| replies.bulk(command.name.as_bytes()));
        }
        Some(b"info") if call.request.len() > 2 => {
            replies.array(call.request.len() - 2);
            call.request.from(2).for_each(|name| describe(replies, find(name)));
        }
        Some(b"info") => for_all(replies, |replies, command| describe(replies, Some(command))),
        Some(b"docs") => {
            let is_asked = |command: &&Command| {
                let named = |name: &[u8]| name.eq_ignore_ascii_case(command.name.as_bytes());
                call.request.len() == 2 || call.request.from(2).any(named)
            };
            let asked: Vec<_> = TABLE.iter().filter(is_asked).collect();
            replies.array(2 * asked.len());
            asked.into_iter().for_each(|command| document(replies, command));
        }
        Some(_) => return Err(unknown_subcommand(call, "COMMAND")),
    }
    Ok(())
}

fn for_all(replies: &mut Replies, mut tell: impl FnMut(&mut Replies, &Command)) {
    replies.array(TABLE.len());
    TABLE.iter().for_each(|command| tell(replies, command));
}

/// As COMMAND INFO does; null for a command that does not exist.
fn describe(replies: &mut Replies, command: Option<&Command>) {
    let Some(command) = command else { return replies.null_array() };
    replies.array(10);
    replies.bulk(command.name.as_bytes());
    replies.integer(command.arity.into());
    replies.array(command.flags.len());
    command.flags.iter().for_each(|flag| replies.status(flag.as_bytes()));
    [command.keys.first, command.keys.last, command.keys.step]
        .into_iter()
        .for_each(|place| replies.integer(place.into()));
    // Categories, tips, key specifications and subcommands are not told.
    (0..4).for_each(|_| replies.array(0));
}

/// As COMMAND DOCS does, which redis-cli reads for its hints.
fn document(replies: &mut Replies, command: &Command) {
    replies.bulk(command.name.as_bytes());
    replies.array(4);
    for word in ["summary", command.summary, "group", command.group] {
        replies.bulk(word.as_bytes());
    }
}
