//! One line for each request, at its end.
//!
//! What a client sends is in it: its line, `Referer` and `User-Agent`. So whatever could end a line or a quoted text,
//! and in the combined format whatever is not printable ASCII, is escaped: no client can forge a line.

use crate::error::{Error, Result};
use crate::http::message::head::Head;
use crate::log::{Component, Log, Logger, Record};
use crate::net::Address;
use crate::sys::clock;
use core::fmt;
use core::fmt::Write as _;
use core::time::Duration;
use serde_json::json;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// An access log of an HTTP server: one line for each request, at its end, answered or not; see
/// [`HttpBuilder::access_log`](crate::http::HttpBuilder::access_log).
///
/// It goes to the pool's log, to [another one](Self::log), or to [a writer](Self::writer). In a log it is a record
/// `request.ended` of the component `http`, at level info: in the combined format its message is the line, in JSON it has
/// fields, which the log's file has as JSON.
///
/// ```
/// use paceline::http::{AccessLog, Http, Request, Response};
/// use paceline::{Pool, log::Log};
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// // Lines in Apache's format, written by the log's thread.
/// let lines = Log::builder().facade(false).callback(|record| println!("{}", record.message)).build()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .access_log(AccessLog::combined().log(&lines))
///     .route("GET", "/", |_: &Request<'_>, response: Response| response.text("root\n"))
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[must_use = "it is no server's before `access_log`"]
pub struct AccessLog {
    is_json: bool,
    to: To,
}

enum To {
    /// None: the pool's.
    Log(Option<Log>),
    Writer(Box<dyn Write + Send>),
}

impl AccessLog {
    /// Apache's combined format: `127.0.0.1 - - [28/Nov/2026:02:44:19 +0000] "GET /a HTTP/1.1" 200 12 "referer" "agent"`.
    /// The time is that of the request's beginning, in UTC; the size is that of the body, `-` for none; the status is `-`
    /// if no whole answer has left. Quotes and backslashes are escaped by a backslash, what is not printable ASCII as
    /// `\xhh`.
    pub fn combined() -> Self {
        Self { is_json: false, to: To::Log(None) }
    }

    /// JSON with `time` (RFC 3339, of the request's beginning), `peer`, `method`, `target`, `version` (`1.1`), `status`,
    /// `bytes` (of the answer's body), `duration_ns`, `referer` and `user_agent`. What is not known is null, and in a log
    /// left out.
    pub fn json() -> Self {
        Self { is_json: true, to: To::Log(None) }
    }

    /// To this log. Default: the pool's.
    pub fn log(mut self, log: &Log) -> Self {
        self.to = To::Log(Some(log.clone()));
        self
    }

    /// To a writer, which gets one line at a time, with its end. It is called on the thread that ends the request, which waits
    /// for it: a [log](Self::log) has a thread for that. What it fails at is lost, and logged once.
    pub fn writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.to = To::Writer(Box::new(writer));
        self
    }

    /// For a server of a pool with this log.
    pub(crate) fn open(self, log: &Logger) -> Result<Opened> {
        let sink = match self.to {
            To::Log(Some(to)) => Sink::Log(log.to(&to)),
            To::Log(None) if log.has_log() => Sink::Log(log.clone()),
            To::Log(None) => {
                let allowed = "to a pool that has a log, or with a log or a writer of its own";
                return Err(Error::invalid("access_log", "without a log", allowed));
            }
            To::Writer(writer) => Sink::Writer(Mutex::new((writer, false))),
        };
        Ok(Opened { is_json: self.is_json, sink })
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("is_json", &self.is_json).finish_non_exhaustive()
    }
}

/// That of a server.
pub(crate) struct Opened {
    is_json: bool,
    sink: Sink,
}

enum Sink {
    Log(Logger),
    /// And whether it has failed.
    Writer(Mutex<(Box<dyn Write + Send>, bool)>),
}

/// What is noted of a request's head.
#[derive(Default)]
pub(crate) struct Noted {
    is_1_1: bool,
    referer: Option<Box<[u8]>>,
    user_agent: Option<Box<[u8]>>,
}

impl Noted {
    pub(crate) fn of(head: &Head<'_, '_>) -> Self {
        let field = |name: &str| {
            let found = head.pairs().find(|(its, _)| its.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.into())
        };
        let (referer, user_agent) = (field("referer"), field("user-agent"));
        Self { is_1_1: head.is_1_1, referer, user_agent }
    }
}

/// A request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) peer: &'a Address,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    /// None: there was no good head.
    pub(crate) noted: Option<&'a Noted>,
    pub(crate) status: Option<u16>,
    /// Of the body.
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
}

impl Opened {
    pub(crate) fn write(&self, log: &Logger, ended: &Ended<'_>) {
        match &self.sink {
            Sink::Log(log) => log.info(Component::Http, "request.ended", |record| {
                match self.is_json {
                    true => ended.fill(record),
                    false => drop(record.say(ended.combined())),
                };
            }),
            Sink::Writer(writer) => {
                let mut line = if self.is_json { ended.json() } else { ended.combined() };
                line.push('\n');
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                let (to, has_failed) = &mut *writer;
                if let Err(error) = to.write_all(line.as_bytes())
                    && !core::mem::replace(has_failed, true)
                {
                    drop(writer);
                    log.error(Component::Http, "access_log.failed", |record| {
                        record
                            .with("error", error.to_string())
                            .say("lines of the access log are lost");
                    });
                }
            }
        }
    }
}

impl Ended<'_> {
    fn began(&self) -> SystemTime {
        clock::with_a_form(
            SystemTime::now().checked_sub(self.duration).unwrap_or(SystemTime::UNIX_EPOCH),
        )
    }

    fn version(&self) -> Option<&'static str> {
        self.noted.map(|noted| if noted.is_1_1 { "1.1" } else { "1.0" })
    }

    /// `Referer` and `User-Agent`.
    fn fields(&self) -> [Option<&[u8]>; 2] {
        self.noted
            .map_or([None; 2], |noted| [noted.referer.as_deref(), noted.user_agent.as_deref()])
    }

    fn combined(&self) -> String {
        let time = humantime::format_rfc3339_seconds(self.began()).to_string();
        let [year, month, day] = [&time[..4], &time[5..7], &time[8..10]];
        let month = month.parse::<usize>().map_or("", |month| MONTHS[(month - 1) % 12]);
        let peer = match self.peer {
            Address::Tcp(address) => address.ip().to_string(),
            _ => "-".into(),
        };
        let mut line = format!("{peer} - - [{day}/{month}/{year}:{} +0000] \"", &time[11..19]);
        match self.method {
            "" => line.push('-'),
            method => {
                escape(&mut line, method.as_bytes());
                line.push(' ');
                escape(&mut line, self.target.as_bytes());
            }
        }
        // Into memory: it cannot fail.
        let _ = self.version().map_or(Ok(()), |version| write!(line, " HTTP/{version}"));
        let number = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
        let bytes = Some(self.bytes).filter(|bytes| *bytes > 0);
        let _ = write!(line, "\" {} {}", number(self.status.map(u64::from)), number(bytes));
        for field in self.fields() {
            line.push_str(" \"");
            escape(&mut line, field.unwrap_or(b"-"));
            line.push('"');
        }
        line
    }

    fn json(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let [referer, user_agent] = self.fields().map(|field| field.map(text));
        let line = json!({
            "time": humantime::format_rfc3339_nanos(self.began()).to_string(),
            "peer": self.peer.to_string(),
            "method": known(self.method), "target": known(self.target), "version": self.version(),
            "status": self.status, "bytes": self.bytes, "duration_ns": self.nanos(),
            "referer": referer, "user_agent": user_agent,
        });
        let mut escaped = String::new();
        for letter in line.to_string().chars() {
            match letter {
                // JSON has them as they are, and a terminal or a viewer may act on them. They are in texts alone.
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
                }
                letter => escaped.push(letter),
            }
        }
        escaped
    }

    fn fill(&self, record: &mut Record) {
        record.say("a request has ended").with("peer", self.peer.to_string());
        for (name, text) in [("method", self.method), ("target", self.target)] {
            if !text.is_empty() {
                record.with(name, text);
            }
        }
        if let Some(version) = self.version() {
            record.with("version", version);
        }
        if let Some(status) = self.status {
            record.with("status", status);
        }
        record.with("bytes", self.bytes).with("duration_ns", self.nanos());
        for (name, field) in ["referer", "user_agent"].into_iter().zip(self.fields()) {
            if let Some(value) = field {
                record.with(name, String::from_utf8_lossy(value).into_owned());
            }
        }
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX)
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// As Apache writes what a client has sent.
fn escape(line: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(byte.into());
            }
            b' '..=b'~' => line.push(byte.into()),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What stands in the quotes of a line, unescaped by rules of the format's own reader.
    fn quoted(line: &str) -> Vec<Vec<u8>> {
        let (mut texts, mut bytes) = (vec![], line.bytes());
        while bytes.by_ref().any(|byte| byte == b'"') {
            let mut text = vec![];
            loop {
                match bytes.next().expect("quotes end") {
                    b'"' => break,
                    b'\\' => match bytes.next().unwrap() {
                        b'x' => {
                            let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                            let hex = core::str::from_utf8(&hex).unwrap();
                            text.push(u8::from_str_radix(hex, 16).unwrap());
                        }
                        byte => text.push(byte),
                    },
                    byte => text.push(byte),
                }
            }
            texts.push(text);
        }
        texts
    }

    proptest! {
        /// Goal: nothing that a client sends ends a line or a text, and all of it can be read back.
        #[test]
        fn no_client_forges_a_line(
            method in "[A-Z]{1,4}|\\PC{1,4}",
            target in ".{1,20}",
            referer in prop::collection::vec(any::<u8>(), 0..20),
            agent in ".{0,20}|[\"\\\\\n\r\u{85}\u{2028} ]{0,10}",
        ) {
            let noted = Noted {
                is_1_1: true,
                referer: Some(referer.clone().into()),
                user_agent: Some(agent.as_bytes().into()),
            };
            let ended = Ended {
                peer: &Address::Unnamed,
                method: &method,
                target: &target,
                noted: Some(&noted),
                status: Some(200),
                bytes: 7,
                duration: Duration::ZERO,
            };
            let line = ended.combined();
            prop_assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
            let request = format!("{method} {target} HTTP/1.1").into_bytes();
            prop_assert_eq!(quoted(&line), [request, referer, agent.clone().into_bytes()]);
            let line = ended.json();
            let forges = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
            prop_assert!(!line.contains(forges), "{line:?}");
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read["user_agent"].as_str(), Some(&*agent));
            prop_assert_eq!(read["target"].as_str(), Some(&*target));
        }
    }
}
