//! The table of commands.

use super::{Call, Outcome, hashes, keys, lists, server, strings};

/// What the server knows of a command.
pub struct Command {
    /// Up to 8 letters, in lower case.
    pub name: &'static str,
    /// Words of a request with the name; negative: at least so many.
    pub arity: i8,
    pub flags: &'static [&'static str],
    pub keys: Keys,
    pub group: &'static str,
    pub summary: &'static str,
    pub run: fn(&mut Call) -> Outcome,
}

impl Command {
    #[inline]
    pub fn admits(&self, words: usize) -> bool {
        let arity = isize::from(self.arity);
        if arity < 0 { words >= arity.unsigned_abs() } else { words == arity.unsigned_abs() }
    }
}

/// Which words of a request are keys; all zero: none.
#[derive(Clone, Copy)]
pub struct Keys {
    pub first: i8,
    /// Negative: counted from the end.
    pub last: i8,
    pub step: i8,
}

const NONE: Keys = Keys { first: 0, last: 0, step: 0 };
const ONE: Keys = Keys { first: 1, last: 1, step: 1 };
const ALL: Keys = Keys { first: 1, last: -1, step: 1 };
const PAIRS: Keys = Keys { first: 1, last: -1, step: 2 };

const READ: &[&str] = &["readonly"];
const FAST_READ: &[&str] = &["readonly", "fast"];
const WRITE: &[&str] = &["write", "denyoom"];
const FAST_WRITE: &[&str] = &["write", "denyoom", "fast"];
const REMOVE: &[&str] = &["write"];
const FAST_REMOVE: &[&str] = &["write", "fast"];
const FAST: &[&str] = &["fast"];
const OTHER: &[&str] = &[];

macro_rules! commands {
    ($($group:literal { $($name:literal $arity:literal $flags:ident $keys:ident $run:path, $summary:literal;)* })*) => {
        &[$($(Command {
            name: $name,
            arity: $arity,
            flags: $flags,
            keys: $keys,
            group: $group,
            summary: $summary,
            run: $run,
        },)*)*]
    };
}

pub static TABLE: &[Command] = commands! {
    "string" {
        "append"   3 FAST_WRITE  ONE   strings::append, "Appends to a text";
        "decr"     2 FAST_WRITE  ONE   strings::decr,   "Takes one from a number";
        "decrby"   3 FAST_WRITE  ONE   strings::decrby, "Takes from a number";
        "get"      2 FAST_READ   ONE   strings::get,    "Answers a text";
        "incr"     2 FAST_WRITE  ONE   strings::incr,   "Adds one to a number";
        "incrby"   3 FAST_WRITE  ONE   strings::incrby, "Adds to a number";
        "mget"    -2 FAST_READ   ALL   strings::mget,   "Answers several texts";
        "mset"    -3 WRITE       PAIRS strings::mset,   "Sets several texts at once";
        "set"     -3 WRITE       ONE   strings::set,    "Sets a text, and when it expires";
        "strlen"   2 FAST_READ   ONE   strings::strlen, "Answers the length of a text";
    }
    "generic" {
        "del"     -2 REMOVE      ALL   keys::del,       "Removes keys";
        "exists"  -2 FAST_READ   ALL   keys::exists,    "Counts the keys that are there";
        "expire"  -3 FAST_REMOVE ONE   keys::expire,    "Sets in how many seconds a key expires";
        "keys"     2 READ        NONE  keys::keys,      "Answers the keys that are as a pattern says";
        "persist"  2 FAST_REMOVE ONE   keys::persist,   "Keeps a key that would expire";
        "pexpire" -3 FAST_REMOVE ONE   keys::pexpire,   "Sets in how many milliseconds a key expires";
        "pttl"     2 FAST_READ   ONE   keys::pttl,      "Answers in how many milliseconds a key expires";
        "ttl"      2 FAST_READ   ONE   keys::ttl,       "Answers in how many seconds a key expires";
        "type"     2 FAST_READ   ONE   keys::kind,      "Answers what kind of value a key has";
        "unlink"  -2 FAST_REMOVE ALL   keys::del,       "Removes keys";
    }
    "list" {
        "llen"     2 FAST_READ   ONE   lists::llen,     "Answers the length of a list";
        "lpop"    -2 FAST_REMOVE ONE   lists::lpop,     "Takes items from the front of a list";
        "lpush"   -3 FAST_WRITE  ONE   lists::lpush,    "Puts items before a list";
        "lrange"   4 READ        ONE   lists::lrange,   "Answers a part of a list";
        "rpop"    -2 FAST_REMOVE ONE   lists::rpop,     "Takes items from the end of a list";
        "rpush"   -3 FAST_WRITE  ONE   lists::rpush,    "Puts items behind a list";
    }
    "hash" {
        "hdel"    -3 FAST_REMOVE ONE   hashes::hdel,    "Removes fields of a hash";
        "hget"     3 FAST_READ   ONE   hashes::hget,    "Answers a field of a hash";
        "hgetall"  2 READ        ONE   hashes::hgetall, "Answers a hash";
        "hlen"     2 FAST_READ   ONE   hashes::hlen,    "Counts the fields of a hash";
        "hset"    -4 FAST_WRITE  ONE   hashes::hset,    "Sets fields of a hash";
    }
    "connection" {
        "echo"     2 FAST        NONE  server::echo,    "Answers its argument";
        "ping"    -1 FAST        NONE  server::ping,    "Answers PONG, or its argument";
        "quit"    -1 FAST        NONE  server::quit,    "Ends the connection";
        "select"   2 FAST        NONE  server::select,  "Chooses the database, which is 0";
    }
    "server" {
        "command" -1 OTHER       NONE  server::command, "Answers what is in this table";
        "config"  -2 OTHER       NONE  server::config,  "Answers settings";
        "dbsize"   1 FAST_READ   NONE  keys::dbsize,    "Counts the keys";
        "flushall" -1 REMOVE     NONE  keys::flush,     "Removes all keys";
        "flushdb" -1 REMOVE      NONE  keys::flush,     "Removes all keys";
        "info"    -1 OTHER       NONE  server::info,    "Answers what the server knows of itself";
    }
};

/// Places in the index; more than twice as many as there are commands.
const PLACES: usize = 256;
const FREE: u8 = u8::MAX;

/// What [`word`] makes of names, and where their commands are in the table: at what [`place_of`] says
/// of the word, or behind it.
static INDEX: [(u64, u8); PLACES] = {
    let mut index = [(0, FREE); PLACES];
    let mut command = 0;
    while command < TABLE.len() {
        let Some(word) = word(TABLE[command].name.as_bytes()) else { panic!("a name is too long") };
        let mut place = place_of(word);
        while index[place].1 != FREE {
            place = (place + 1) % PLACES;
        }
        index[place] = (word, command as u8);
        command += 1;
    }
    index
};

/// The command of this name, in whatever case.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let wanted = word(name)?;
    let mut place = place_of(wanted);
    loop {
        let (word, command) = INDEX[place];
        let command = TABLE.get(usize::from(command))?;
        if word == wanted && command.name.len() == name.len() {
            return Some(command);
        }
        place = (place + 1) % PLACES;
    }
}

/// The bytes of a name of up to 8, some of them twice if it is shorter, as a number that is the same
/// for all cases: the bit that is set is the difference between a letter's cases. What is not letters
/// has another number than all that are.
#[inline]
const fn word(name: &[u8]) -> Option<u64> {
    let (first, last) = match name {
        [.., _, _, _, _, _, _, _, _, _] | [] => return None,
        [a, b, c, d, ..] => {
            let [.., w, x, y, z] = name else { return None };
            ([*a, *b, *c, *d], [*w, *x, *y, *z])
        }
        [a, .., z] => ([*a, name[1], *z, 0], [0; 4]),
        [a] => ([*a, 0, 0, 0], [0; 4]),
    };
    let (first, last) = (u32::from_le_bytes(first), u32::from_le_bytes(last));
    Some((first as u64 | (last as u64) << 32) | 0x2020_2020_2020_2020)
}

#[inline]
const fn place_of(word: u64) -> usize {
    // Fibonacci hashing: the upper bits of the product depend on all bits.
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}
