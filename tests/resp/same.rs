//! The same requests to the real redis-server: the replies are the same bytes.

use crate::kit::{Client, Redis, Server};

/// Requests on one connection, in order, words with blanks between them.
const COMMANDS: &str = "\
PING
ping hello
PING a b
ECHO x
ECHO
ECHO a b
NOSUCH
nosuch a bb ccc
NOSUCH aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb cccccccccccccccccccccccccc ddd
SET a 1
GET a
get A
GET
GET a b
SET a
SET a 1 2
SET a 1 EX
SET a 1 EX x
SET a 1 EX 0
SET a 1 EX -1
SET a 1 PX 0
SET a 1 EX 9223372036854775807
SET a 1 PX 9223372036854775807
SET a 1 EX 9223372036854775
SET a 1 EX 100 PX 100
SET a 1 NX XX
SET a 1 XX NX
SET a 1 KEEPTTL EX 1
SET a 1 EX 1 KEEPTTL
SET a 1 EXAT 0
SET a 1 EXAT 1
GET a
SET a 1 PXAT 1
EXISTS a
SET a 2 NX
SET a 3 NX
GET a
SET a 4 XX
SET b 4 XX
EXISTS b
SET a 5 GET
SET nothing 5 GET
SET nothing 6 NX GET
GET nothing
DEL nothing
SET a 1 ex 100
TTL a
SET a 2 keepttl
TTL a
SET a 3
TTL a
TTL b
PTTL a
PTTL b
EXPIRE a 100
TTL a
EXPIRE a 50 NX
EXPIRE a 50 GT
TTL a
EXPIRE a 50 LT
TTL a
EXPIRE a 70 XX
EXPIRE b 70
EXPIRE a 70 NX XX
EXPIRE a 70 GT LT
EXPIRE a 90 XX GT
EXPIRE a 70 FOO
EXPIRE a x
EXPIRE a
EXPIRE a 9223372036854775807
EXPIRE a -9223372036854775808
EXPIRE a 9223372036854774
PEXPIRE a 9223372036854775807
PEXPIRE a 100000
TTL a
PERSIST a
PERSIST a
PERSIST b
EXPIRE a 10 LT
PERSIST a
EXPIRE a 10 GT
EXPIRE a -1
EXISTS a
SET a 10
INCR a
INCRBY a 5
INCRBY a -20
DECR a
DECRBY a 3
INCRBY a x
INCRBY a
INCRBY a 1.5
INCRBY a +1
INCRBY a 01
DECRBY a -9223372036854775808
INCR new
TTL new
SET s hello
INCR s
SET s 9223372036854775807
INCR s
DECR s
SET s -9223372036854775808
DECR s
INCRBY s -1
SET s 00
INCR s
SET s -0
INCR s
SET s -
INCR s
SET s 12345678901234567890
INCR s
SET s 1 EX 100
INCR s
TTL s
MSET x 1 y 2 x 3
MGET x y z
MGET
MSET a
MSET a 1 b
MGET x x
EXISTS x y z x
EXISTS
DEL x y z
DEL
TYPE s
TYPE l
STRLEN s
STRLEN none
APPEND s world
APPEND t new
GET s
LPUSH l a
LPUSH l b c d
RPUSH l e
LLEN l
LRANGE l 0 -1
LRANGE l 1 2
LRANGE l -2 -1
LRANGE l -100 100
LRANGE l 3 1
LRANGE l 10 20
LRANGE l -1 -3
LRANGE l x 1
LRANGE l 0
LRANGE l 0 9223372036854775807
LRANGE l -9223372036854775808 -9223372036854775808
LRANGE none 0 -1
LRANGE s 0 -1
LPUSH s a
LPUSH l
LPOP l
RPOP l
LPOP l 2
LPOP l 0
LPOP l x
LPOP l -1
LPOP l 1 2
LPOP l 10
LPOP l
LPOP l 1
EXISTS l
LLEN s
LPOP s
TYPE none
HSET h f 1
HSET h f 2 g 3 i 4
HSET h f
HSET h f 1 g
HSET h
HGET h f
HGET h none
HGET none f
HGET s f
HGETALL h
HGETALL none
HGETALL s
HGETALL
HSET s f v
HLEN h
HLEN none
HDEL h g none
HGETALL h
HSET h g 9
HGETALL h
HDEL h f g i
EXISTS h
HDEL none f
HDEL s f
GET l2
LPUSH l2 a
GET l2
INCR l2
APPEND l2 x
STRLEN l2
MGET l2 s
SET l2 x GET
SET l2 x
GET l2
HSET h2 f v
LPUSH h2 a
TYPE h2
DEL h2
CONFIG
CONFIG GET
CONFIG FOO
CONFIG GET save
CONFIG GET appendonly
CONFIG GET appen?only
CONFIG GET [a-b]ppendonl[y]
CONFIG GET no-such-setting
COMMAND FOO
SELECT 0
SELECT x
SELECT
SELECT -1
DBSIZE
DBSIZE x
FLUSHALL x
FLUSHALL SYNC
DBSIZE
KEYS *
SET hello 1
KEYS h?llo
KEYS h[^e]llo
KEYS h[a-f]llo
KEYS h*o
KEYS *l*l*
KEYS x*
KEYS
QUIT";

/// What clients send that break the protocol, or come near it; each on a connection of its own.
const RAW: &[&[u8]] = &[
    b"PING\r\nQUIT\r\n",
    b"\r\n\n  \r\nPING\nQUIT\n",
    b"set \"a b\" 'c d'\r\nget \"a\\x20b\"\r\nQUIT\r\n",
    b"set \"a\r\n",
    b"PING\r\nget 'a'b\r\n",
    b"*0\r\n*-1\r\n*1\r\n$4\r\nQUIT\r\n",
    b"*1\r\n$4\r\nPING\r\n*x\r\n",
    b"*\r\n",
    b"*01\r\n",
    b"*2147483648\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$536870913\r\n",
    b"*2\r\n$4\r\nPING\r\n$99999999999999999999\r\n",
    b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nQUIT\r\n",
    b"*2\r\n$3\r\nfoo\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nQUIT\r\n",
    b"*1\r\n$0\r\n\r\n*1\r\n$4\r\nQUIT\r\n",
    b"QUIT now\r\n",
];

#[track_caller]
fn assert_same(what: &str, ours: &[u8], theirs: &[u8]) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(ours), text(theirs), "{what:?}");
    assert_eq!(ours, theirs, "{what:?}");
}

/// Those that do not begin with what one of both servers cannot do, or what depends on the moment.
fn lines<'a>(without: &'a [&'a str]) -> impl Iterator<Item = &'static str> + 'a {
    let is_left_out = |line: &&str| without.iter().any(|start| line.starts_with(start));
    COMMANDS.lines().filter(move |line| !line.starts_with("PTTL a") && !is_left_out(line))
}

/// All commands, one after the other and in one piece, and all that breaks the protocol.
pub fn assert_replies_are_those_of_redis(server: &Server, without: &[&str]) {
    let redis = Redis::start();
    let (mut ours, mut theirs) = (server.connect(), redis.connect());
    for line in lines(without) {
        assert_same(line, &ours.say(line), &theirs.say(line));
    }
    assert_same("the end", &ours.rest(), &theirs.rest());

    let all = lines(without).fold("FLUSHALL\r\n".to_owned(), |text, line| text + line + "\r\n");
    for raw in RAW.iter().copied().chain([all.as_bytes()]) {
        let replies = |mut client: Client| {
            client.send(raw);
            client.rest()
        };
        let shown = String::from_utf8_lossy(raw);
        assert_same(&shown, &replies(server.connect()), &replies(redis.connect()));
    }
}
