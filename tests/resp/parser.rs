//! The parser: whatever a stream is cut into, the same requests come out.

use crate::kit::encoded;
use crate::request::{Parsed, Parser, Wrong};
use proptest::prelude::*;

type Requests = Vec<Vec<Vec<u8>>>;

/// Feeds a stream as a connection does: in pieces, with what was not consumed in front. Answers with
/// the requests, and how it went wrong.
fn parse(pieces: &[&[u8]]) -> (Requests, Option<Wrong>) {
    let (mut parser, mut left, mut requests) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        left.extend_from_slice(piece);
        let mut consumed = 0;
        loop {
            let rest = &left[consumed..];
            match parser.next(rest) {
                Parsed::Request(length) => {
                    let request = parser.request(rest);
                    assert_eq!(request.len(), request.from(0).count());
                    requests.push(request.from(0).map(<[u8]>::to_vec).collect());
                    consumed += length;
                }
                Parsed::Nothing(length) => consumed += length,
                Parsed::Partial => break,
                Parsed::Wrong(wrong) => return (requests, Some(wrong)),
            }
        }
        left.drain(..consumed);
        parser.rest();
    }
    (requests, None)
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split('|').map(|word| word.as_bytes().to_vec()).collect()
}

/// What is sent, the requests in it with bars between their words, and how it ends.
const VECTORS: &[(&[u8], &[&str], Option<Wrong>)] = &[
    (b"*1\r\n$4\r\nPING\r\n", &["PING"], None),
    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nv\r\nv\0v*$:+-v\r\n", &["SET|k|v\r\nv\0v*$:+-v"], None),
    (b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", &["GET|", "PING"], None),
    (b"*0\r\n*-1\r\n*-100\r\n*1\r\n$1\r\na\r\n", &["a"], None),
    // What stands where a CR LF should is not looked at, as in Redis.
    (b"*1\r.$1\rxaZZ*1\r\n$1\r\nb\r\n", &["a", "b"], None),
    (b"PING\r\n\r\n\n  \r\nSET  a\t1 \nGET a\r\n", &["PING", "SET|a|1", "GET|a"], None),
    (b"set \"a\\x41\\n\\\"\" 'it\\'s'\r\n", &["set|aA\n\"|it's"], None),
    (b"a\"b c\"\r\n*1\r\n$1\r\nx\r\n", &["ab c", "x"], None),
    (b"a \"\\xzz\\q\"\r\n", &["a|xzzq"], None),
    (b"PING\r\nset \"a\"b\r\n", &["PING"], Some(Wrong::Quotes)),
    (b"set 'a\r\n", &[], Some(Wrong::Quotes)),
    (b"set \"a\\\"\r\n", &[], Some(Wrong::Quotes)),
    (b"*x\r\n", &[], Some(Wrong::Count)),
    (b"*\r\n", &[], Some(Wrong::Count)),
    (b"*+1\r\n", &[], Some(Wrong::Count)),
    (b"*01\r\n", &[], Some(Wrong::Count)),
    (b"*1 \r\n", &[], Some(Wrong::Count)),
    (b"*2147483648\r\n", &[], Some(Wrong::Count)),
    (b"*99999999999999999999\r\n", &[], Some(Wrong::Count)),
    (b"*1\r\nPING\r\n", &[], Some(Wrong::NoLength(b'P'))),
    (b"*1\r\n:1\r\n", &[], Some(Wrong::NoLength(b':'))),
    (b"*1\r\n$-1\r\n", &[], Some(Wrong::Length)),
    (b"*1\r\n$1x\r\n", &[], Some(Wrong::Length)),
    (b"*1\r\n$007\r\n", &[], Some(Wrong::Length)),
    (b"*1\r\n$536870913\r\n", &[], Some(Wrong::Length)),
    (b"*1\r\n$1\r\na\r\n*1\r\n$ 1\r\n", &["a"], Some(Wrong::Length)),
];

#[test]
fn vectors_give_the_same_wherever_they_are_cut() {
    for &(stream, requests, wrong) in VECTORS {
        let shown = String::from_utf8_lossy(stream);
        let expected: Requests = requests.iter().map(|line| words(line)).collect();
        assert_eq!(parse(&[stream]), (expected.clone(), wrong), "{shown:?}, whole");
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(parse(&bytes), (expected.clone(), wrong), "{shown:?}, byte by byte");
        for cut in 0..stream.len() {
            let (first, rest) = stream.split_at(cut);
            assert_eq!(parse(&[first, rest]), (expected.clone(), wrong), "{shown:?}, at {cut}");
        }
    }
}

#[test]
fn lines_and_numbers_have_a_longest_length() {
    const MAX: usize = 64 << 10;
    let long = |front: &str, length: usize| [front.as_bytes(), &vec![b'1'; length]].concat();
    for (front, wrong) in
        [("", Wrong::LongLine), ("*", Wrong::LongCount), ("*1\r\n$", Wrong::LongLength)]
    {
        let fits = long(front, MAX - 8);
        assert_eq!(parse(&[&fits]), (vec![], None), "{wrong:?}");
        let exceeds = long(front, MAX + 8);
        assert_eq!(parse(&[&exceeds]), (vec![], Some(wrong)));
        assert_eq!(parse(&exceeds.chunks(1000).collect::<Vec<_>>()), (vec![], Some(wrong)));
        assert_eq!(parse(&[&[&exceeds[..], b"\r\n"].concat()]), (vec![], Some(wrong)));
    }
}

#[test]
fn a_byte_that_is_wrong_is_shown_as_it_is() {
    assert_eq!(Wrong::NoLength(0xFF).message(), b"expected '$', got '\xFF'");
}

/// Goal: an argument of megabytes that comes in thousands of pieces is not looked at thousands of
/// times. Method: bytes that would make the parser fail if it looked.
#[test]
fn an_argument_is_not_looked_at_before_it_is_whole() {
    let stream = encoded(&[b"SET", b"key", &vec![b'v'; 1 << 20]]);
    let mut parser = Parser::default();
    assert!(matches!(parser.next(&stream[..40]), Parsed::Partial));
    let broken = vec![b'!'; stream.len() - 1];
    for length in (40..stream.len()).step_by(1000) {
        assert!(matches!(parser.next(&broken[..length]), Parsed::Partial));
    }
    let Parsed::Request(length) = parser.next(&stream) else { panic!("it is whole") };
    let request = parser.request(&stream);
    assert_eq!((request[2].len(), length), (1 << 20, stream.len()));
}

proptest! {
    /// Goal: what clients encode comes out, in whatever pieces it arrives.
    #[test]
    fn requests_do_not_depend_on_cuts(
        requests in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..6), 0..6),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let encode = |request: &Vec<Vec<u8>>| {
            encoded(&request.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let stream: Vec<u8> = requests.iter().flat_map(encode).collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.extend([0, stream.len()]);
        ends.sort_unstable();
        let pieces: Vec<&[u8]> = ends.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
        prop_assert_eq!(parse(&pieces), (requests, None));
    }
}
