//! A message of the hub as a message of the broker, and back.
//!
//! | hub | broker |
//! |---|---|
//! | key | subject, behind the prefix of the rule |
//! | payload | payload |
//! | headers | headers; those that NATS could not carry as they are: one header with all of them as JSON |
//! | priority other than normal | header `Paceline-Priority` |
//! | number in its hub | header `Nats-Msg-Id`, unless the publisher has given it one: origin.number.check, of the prefix too |
//! | header `Paceline-Redelivered` | how often it was delivered before, to any process of the durable name |
//! | a request's inbox | the reply subject, which is the bridge's own |
//!
//! # Origins
//!
//! The *origin* names the hub that a message was published in: 24 hexadecimal digits, of which 16 are the process's by
//! chance. It is the first part of the message's id; beside an id of the publisher's, or of a spool (`spool.rs`), it has a header of
//! its own. What
//! comes from the broker has it in its header `Paceline-Origin` in the hub, "elsewhere" if it has none: so whoever asks
//! can know, and no bridge exports it again. The check makes an id of another's next message hard to guess: a peer that
//! forges it could have the broker or a window drop that message as a duplicate.

use crate::hub::{Headers, Payload, Priority, Stored};
use async_nats::header::{HeaderName, HeaderValue, NATS_MESSAGE_ID};
use async_nats::{HeaderMap, Subject};
use bytes::Bytes;
use core::hash::BuildHasher;
use core::str::FromStr;
use std::hash::{DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

/// In the hub: where a message comes from that another process has published.
pub(super) const ORIGIN: &str = "Paceline-Origin";
/// In the hub: the number by which a publisher waits for a message to be stored. It does not go out.
pub(super) const RECEIPT: &str = "Paceline-Receipt";
/// In the hub: how often a message of a stream has come before, to any process of its durable name. It does not go out, and
/// nobody else's comes in.
pub(super) const REDELIVERED: &str = "Paceline-Redelivered";
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The stream that is to store it.
pub(super) const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
const PRIORITY: &str = "Paceline-Priority";
const OTHER_HEADERS: &str = "Paceline-Headers";
/// The origin of what has no mark.
const ELSEWHERE: &str = "elsewhere";
const ORIGIN_LENGTH: usize = 24;

const ORIGIN_NAME: HeaderName = HeaderName::from_static(ORIGIN);
const PRIORITY_NAME: HeaderName = HeaderName::from_static(PRIORITY);
const OTHERS_NAME: HeaderName = HeaderName::from_static(OTHER_HEADERS);

/// The hub that messages are published in, as others see it.
pub(super) struct Origin {
    text: String,
    secret: u128,
}

impl Origin {
    pub(super) fn of(hub: u32) -> Self {
        static SECRET: OnceLock<RandomState> = OnceLock::new();
        // A fork is another process.
        let process = SECRET.get_or_init(RandomState::new).hash_one(std::process::id());
        let chance = RandomState::new();
        let [high, low] = [0, 1].map(|half: u8| u128::from(chance.hash_one(half)));
        Self { text: format!("{process:016x}{hub:08x}"), secret: high << 64 | low }
    }

    /// One that was written down. None: it is none.
    pub(super) fn again(text: &str, secret: u128) -> Option<Self> {
        is_origin(text).then(|| Self { text: text.to_owned(), secret })
    }

    pub(super) fn secret(&self) -> u128 {
        self.secret
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Of the message with this number that goes out with this prefix: two rules may have one stream.
    fn id(&self, sequence: u64, prefix: &str) -> String {
        let mut check = DefaultHasher::new();
        (self.secret, sequence, prefix).hash(&mut check);
        let check = check.finish();
        format!("{}.{sequence}.{check:016x}", self.text)
    }
}

/// Whether another process has published it.
pub(super) fn is_imported(message: &Stored) -> bool {
    message.headers().get(ORIGIN).is_some()
}

/// The subject of a message that goes out.
pub(super) fn subject_of(prefix: &str, message: &Stored) -> Subject {
    match prefix {
        "" => Subject::from(message.key().as_str()),
        prefix => Subject::from(format!("{prefix}{}", message.key().as_str())),
    }
}

/// The payload of a message that goes out.
pub(super) fn bytes_of(payload: &Payload) -> Bytes {
    Bytes::copy_from_slice(payload)
}

/// The headers of a message that goes out. Its id is made of `ids`, or of the origin.
pub(super) fn headers_of(
    message: &Stored,
    prefix: &str,
    origin: &Origin,
    ids: Option<&Origin>,
) -> HeaderMap {
    let mut map = HeaderMap::new();
    let mut others: Vec<(&str, &str)> = Vec::new();
    let mut has_id = false;
    for (name, value) in message.headers().iter() {
        match name {
            "Reply-To" | ORIGIN | PRIORITY | OTHER_HEADERS | RECEIPT | REDELIVERED => continue,
            MESSAGE_ID => has_id = true,
            _ => {}
        }
        let is_plain = !value.starts_with([' ', '\t']) && !value.ends_with([' ', '\t']);
        match (HeaderName::from_str(name), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) if is_plain => map.append(name, value),
            _ => others.push((name, value)),
        }
    }
    if !others.is_empty() {
        let json = serde_json::to_string(&others).unwrap_or_default();
        map.insert(OTHERS_NAME, HeaderValue::from(ascii(&json)));
    }
    if has_id || ids.is_some() {
        map.insert(ORIGIN_NAME, origin.as_str());
    }
    if !has_id {
        let id = ids.unwrap_or(origin).id(message.sequence(), prefix);
        map.insert(NATS_MESSAGE_ID, id.as_str());
    }
    match message.priority() {
        Priority::Normal => {}
        Priority::Low => map.insert(PRIORITY_NAME, "low"),
        Priority::High => map.insert(PRIORITY_NAME, "high"),
        Priority::Critical => map.insert(PRIORITY_NAME, "critical"),
    }
    map
}

/// JSON with escapes for all that is not ASCII, so that it is one line in any reader.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            ' '..='~' => text.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    text
}

/// What the headers of a message that comes in say.
pub(super) struct Incoming {
    /// For the hub, the mark of the origin among them.
    pub(super) headers: Headers,
    pub(super) priority: Priority,
    pub(super) id: Option<String>,
    /// It is of the hub that it comes to.
    pub(super) is_own: bool,
}

/// Reads the headers of a message that comes to the hub of this origin.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for more headers than a hub carries, or others than it has.
pub(super) fn read(headers: Option<&HeaderMap>, own: &Origin) -> crate::Result<Incoming> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let (mut id, mut origin, mut priority) = (None, None, Priority::Normal);
    for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
        let name: &str = name.as_ref();
        let first = values.first().map(HeaderValue::as_str);
        match name {
            ORIGIN => origin = first.map(str::to_owned),
            PRIORITY => priority = first.map_or(Priority::Normal, priority_of),
            OTHER_HEADERS => {
                let list = first.and_then(|text| serde_json::from_str(text).ok());
                pairs.extend(list.unwrap_or(Vec::<(String, String)>::new()));
            }
            // What is between an export and the broker.
            "Reply-To" | RECEIPT | EXPECTED_STREAM => {}
            _ => {
                if name == MESSAGE_ID {
                    id = first.map(str::to_owned);
                }
                let all = values.iter().map(|value| (name.to_owned(), value.as_str().to_owned()));
                pairs.extend(all);
            }
        }
    }
    let of_id = || {
        let first = id.as_deref()?.split('.').next()?;
        is_origin(first).then(|| first.to_owned())
    };
    let origin = origin.filter(|text| is_origin(text)).or_else(of_id);
    let is_own = origin.as_deref() == Some(own.as_str());
    let mark = origin.unwrap_or_else(|| ELSEWHERE.into());
    // What it must not carry: who has smuggled it into the list of others.
    pairs.retain(|(name, _)| !["Reply-To", ORIGIN, RECEIPT, REDELIVERED].contains(&name.as_str()));
    pairs.push((ORIGIN.into(), mark));
    Ok(Incoming { headers: Headers::new(pairs)?, priority, id, is_own })
}

/// Whether an export has made this id: its origin is known by it, and nobody else's message has it by accident.
pub(super) fn is_made(id: &str) -> bool {
    let mut parts = id.split('.');
    let (origin, number, check) = (parts.next(), parts.next(), parts.next());
    origin.is_some_and(is_origin)
        && number.is_some_and(|number| number.parse::<u64>().is_ok())
        && check.is_some_and(|check| check.len() == 16)
        && parts.next().is_none()
}

fn is_origin(text: &str) -> bool {
    text.len() == ORIGIN_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn priority_of(text: &str) -> Priority {
    match text {
        "low" => Priority::Low,
        "high" => Priority::High,
        "critical" => Priority::Critical,
        _ => Priority::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Hub;
    use crate::pool::Pool;

    /// As it comes to another hub.
    fn through(headers: &[(&str, &str)], priority: Priority) -> Incoming {
        let pool = Pool::builder().threads(1).build().unwrap();
        let hub = Hub::new(&pool).unwrap();
        let mailbox = hub.mailbox("a", 10).unwrap();
        let headers = Headers::new(headers.iter().copied()).unwrap();
        let _ = hub.message("a").headers(headers).priority(priority).publish().unwrap();
        let message = mailbox.try_recv().unwrap().unwrap();
        let map = headers_of(&message, "", &Origin::of(1), None);
        read(Some(&map), &Origin::of(2)).unwrap()
    }

    #[test]
    fn headers_of_any_kind_come_through() {
        let odd = [
            ("a", "plain"),
            ("b:c", "a colon in the name"),
            ("ä", "not ASCII in the name"),
            ("d", "two\r\nlines"),
            ("e", " blanks "),
            ("f", "ü and 🎉 in\nthe value"),
            ("a", "once more"),
        ];
        let came = through(&odd, Priority::Critical);
        let mut expected: Vec<_> = odd.to_vec();
        let mut found: Vec<_> = came.headers.iter().collect();
        found.retain(|(name, _)| ![ORIGIN, MESSAGE_ID].contains(name));
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(came.priority, Priority::Critical);
        assert!(!came.is_own && came.headers.get(ORIGIN) == Some(Origin::of(1).as_str()));
        assert!(came.id.unwrap().starts_with(Origin::of(1).as_str()));
    }

    #[test]
    fn an_id_of_the_publisher_is_carried_and_its_origin_known() {
        let came = through(&[(MESSAGE_ID, "order-17")], Priority::Normal);
        assert_eq!(came.id.as_deref(), Some("order-17"));
        assert_eq!(came.headers.get(ORIGIN), Some(Origin::of(1).as_str()));
    }

    #[test]
    fn what_is_forged_is_taken_as_text() {
        for forged in ["", "x", "00000000000000000000000g", "elsewhere"] {
            let mut map = HeaderMap::new();
            map.insert(ORIGIN_NAME, forged);
            map.insert(OTHERS_NAME, r#"[["Reply-To","x"],["Paceline-Origin","y"],["k","v"]]"#);
            let came = read(Some(&map), &Origin::of(2)).unwrap();
            assert_eq!(came.headers.get(ORIGIN), Some(ELSEWHERE));
            assert_eq!(came.headers.get("k"), Some("v"));
            assert_eq!((came.headers.get("Reply-To"), came.is_own), (None, false));
        }
    }
}
