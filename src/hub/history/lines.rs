//! Messages as lines of JSON: what people and other programs read.
//!
//! A line is an object with `sequence`, `time` (RFC 3339, in nanoseconds), `key`, `priority`, `headers` (pairs
//! of name and value, in order) if there are any, and the payload: `payload` if it is text, else
//! `payload_base64`.

use super::log::Sink;
use super::query::Query;
use super::record::nanos;
use crate::error::{Error, Result};
use crate::hub::key::{Key, check_any_key};
use crate::hub::message::{Headers, Payload, Priority, Stored};
use crate::rotate::RotatingFile;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a history writes lines of JSON besides.
#[derive(Clone, Debug)]
#[must_use]
pub struct LinesOptions {
    path: PathBuf,
    max_size: u64,
    files: usize,
}

impl LinesOptions {
    /// Appends to this file. Default: it is rotated at 64 MiB, and 4 files are kept.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), max_size: 64 << 20, files: 4 }
    }

    /// How large the file may become, 1 KiB to 1 TiB; then it is renamed to `path.1`, that to `path.2`, and
    /// so on. A line that is longer gets a file for itself.
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// How many files are kept, the one that is written included: 1 to 1000.
    pub fn files(mut self, files: usize) -> Self {
        self.files = files;
        self
    }

    pub(super) fn open(&self) -> Result<(Lines, Arc<Lost>)> {
        if !(1 << 10..=1u64 << 40).contains(&self.max_size) {
            let allowed = "1024 to 1099511627776";
            return Err(Error::invalid("the lines' max_size", self.max_size, allowed));
        }
        if !(1..=1000).contains(&self.files) {
            return Err(Error::invalid("the lines' files", self.files, "1 to 1000"));
        }
        let file = RotatingFile::new(self.path.clone(), self.max_size, self.files);
        let lost = Arc::<Lost>::default();
        Ok((Lines { file, path: self.path.clone(), lost: Arc::clone(&lost) }, lost))
    }
}

/// Lines that could not be written.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) lines: AtomicU64,
    pub(super) last: Mutex<Option<String>>,
}

/// Writes lines. What the disk refuses is lost and counted; nobody waits for it.
pub(super) struct Lines {
    file: RotatingFile,
    path: PathBuf,
    lost: Arc<Lost>,
}

impl Lines {
    fn check(&self, written: core::result::Result<(), crate::rotate::Lost>) {
        if let Err(lost) = written {
            self.lost.lines.fetch_add(lost.lines, Relaxed);
            let told = format!("cannot write lines to {}: {}", self.path.display(), lost.error);
            *self.lost.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        }
    }
}

impl Sink for Lines {
    fn write(&mut self, _: u64, records: &[Stored], _: u64) -> Result<()> {
        for record in records {
            let added = self.file.add((to_line(record) + "\n").as_bytes());
            self.check(added);
        }
        let written = self.file.write_out();
        self.check(written);
        Ok(())
    }
}

const PRIORITIES: [&str; 4] = ["low", "normal", "high", "critical"];

/// The line, without its end.
pub(super) fn to_line(stored: &Stored) -> String {
    let mut line = Map::new();
    line.insert("sequence".into(), stored.sequence.into());
    let time = humantime::format_rfc3339_nanos(stored.time()).to_string();
    line.insert("time".into(), time.into());
    line.insert("key".into(), stored.key.as_str().into());
    line.insert("priority".into(), PRIORITIES[stored.priority as usize].into());
    if !stored.headers.is_empty() {
        let pairs = stored.headers.iter().map(|(name, value)| json!([name, value]));
        line.insert("headers".into(), pairs.collect());
    }
    match core::str::from_utf8(&stored.payload) {
        Ok(text) => line.insert("payload".into(), text.into()),
        Err(_) => line.insert("payload_base64".into(), STANDARD.encode(&*stored.payload).into()),
    };
    Value::from(line).to_string()
}

/// What a line says, or what is wrong with it.
pub(super) fn from_line(line: &str) -> core::result::Result<Stored, String> {
    let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let text = |name: &str| line[name].as_str();
    let missing = |name: &str, what: &str| format!("{name} is {}, but must be {what}", line[name]);
    let time = text("time").and_then(|time| humantime::parse_rfc3339(time).ok());
    let time =
        time.ok_or_else(|| missing("time", "a time as in 2026-01-31T12:00:00.000000000Z"))?;
    let key = text("key").ok_or_else(|| missing("key", "a key"))?;
    check_any_key(key).map_err(|error| error.to_string())?;
    let priority = match text("priority") {
        None => Priority::Normal,
        Some(name) => {
            let place = PRIORITIES.iter().position(|known| *known == name);
            let allowed = "low, normal, high or critical";
            Priority::ALL[place.ok_or_else(|| missing("priority", allowed))?]
        }
    };
    let headers = match &line["headers"] {
        Value::Null => Headers::NONE,
        pairs => {
            let pairs: Vec<(String, String)> = serde_json::from_value(pairs.clone())
                .map_err(|_| missing("headers", "pairs of name and value"))?;
            Headers::new(pairs).map_err(|error| error.to_string())?
        }
    };
    let payload = match (text("payload"), text("payload_base64")) {
        (Some(text), _) => Payload::from(text),
        (None, Some(encoded)) => {
            let bytes = STANDARD.decode(encoded);
            bytes.map_err(|error| format!("payload_base64: {error}"))?.into()
        }
        (None, None) => Err(missing("payload", "a text, unless there is a payload_base64"))?,
    };
    let sequence = line["sequence"].as_u64().filter(|sequence| *sequence <= i64::MAX as u64);
    Ok(Stored {
        sequence: sequence.ok_or_else(|| missing("sequence", "a number"))?,
        time: nanos(time),
        key: Key::detached(key),
        headers,
        payload,
        priority,
        near: Default::default(),
        far: Default::default(),
    })
}

/// Calls `each` with the messages of a file of lines that the query asks for, in their order. Says how many.
/// Reads one file; those that were rotated away are files of their own.
///
/// # Errors
/// [`Error::Os`] names the path and, for a line that is none, its number and what is wrong with it. What was
/// before it has been given to `each`.
pub fn read_lines(
    path: impl AsRef<Path>,
    query: &Query,
    mut each: impl FnMut(Stored) -> Result<()>,
) -> Result<usize> {
    let path = path.as_ref();
    let failed = |error| Error::os(format!("read lines from {}", path.display()), error);
    let file = File::open(path).map_err(failed)?;
    let mut count = 0;
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let stored = from_line(&line.map_err(failed)?).map_err(|reason| {
            let reason = io::Error::new(io::ErrorKind::InvalidData, reason);
            Error::os(format!("read line {number} of {}", path.display()), reason)
        })?;
        if count < query.limit && query.selects(&stored) {
            count += 1;
            each(stored)?;
        }
    }
    Ok(count)
}

/// Writes lines to a new file, which is there when all of it is.
#[cfg(feature = "archive")]
pub(super) fn write_lines(
    path: &Path,
    mut next: impl FnMut(&mut Vec<Stored>) -> Result<()>,
) -> Result<u64> {
    use std::fs;
    use std::io::{BufWriter, Write};
    let mut beside = path.to_owned().into_os_string();
    beside.push(".part");
    let failed = |error| Error::os(format!("write lines to {}", path.display()), error);
    let mut file = BufWriter::new(File::create(&beside).map_err(failed)?);
    let (mut count, mut records) = (0, Vec::new());
    let written = loop {
        records.clear();
        if let Err(error) = next(&mut records) {
            break Err(error);
        }
        let all = records.iter().try_for_each(|stored| writeln!(file, "{}", to_line(stored)));
        if let Err(error) = all {
            break Err(failed(error));
        }
        count += records.len() as u64;
        if records.is_empty() {
            break file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed);
        }
    };
    drop(file);
    match written.and_then(|()| fs::rename(&beside, path).map_err(failed)) {
        Ok(()) => Ok(count),
        Err(error) => {
            let _there_may_be_none = fs::remove_file(&beside);
            Err(error)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Folder, plain};
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn a_line_is_as_documented() {
        let mut stored = plain(7, 1_000_000_001, "a.b", b"text");
        let expected = r#"{"key":"a.b","payload":"text","priority":"normal","sequence":7,"time":"1970-01-01T00:00:01.000000001Z"}"#;
        assert_eq!(to_line(&stored), expected);
        stored.payload = Payload::new(&[0xff]);
        stored.headers = Headers::new([("n", "v")]).unwrap();
        let line = to_line(&stored);
        assert!(line.contains(r#""headers":[["n","v"]],"key""#), "{line}");
        assert!(line.contains(r#""payload_base64":"/w==""#), "{line}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            sequence in 0..=i64::MAX as u64,
            // To the year 9999, which is as far as RFC 3339 goes.
            time in 0u64..=u64::MAX,
            payload in prop_oneof![prop::collection::vec(any::<u8>(), 0..80), ".*".prop_map(String::into_bytes)],
            headers in prop::collection::vec(("[a-zä\"]{1,4}", ".*"), 0..4),
            priority in 0usize..4,
        ) {
            let mut stored = plain(sequence, time, "ä.b", &payload);
            stored.headers = Headers::new(headers).unwrap();
            stored.priority = Priority::ALL[priority];
            prop_assert_eq!(from_line(&to_line(&stored)).unwrap(), stored);
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told() {
        let good = to_line(&plain(1, 2, "a", b"x"));
        for (from, to, reason) in [
            ("\"a\"", "3", "key is 3, but must be a key"),
            ("\"a\"", "\"a..b\"", "key is \"a..b\", but must be without empty tokens"),
            ("\"x\"", "7", "payload is 7, but must be a text, unless there is a payload_base64"),
            ("\"payload\":\"x\"", "\"payload_base64\":\"?\"", "payload_base64: "),
            (
                "normal",
                "urgent",
                "priority is \"urgent\", but must be low, normal, high or critical",
            ),
            (":1,", ":-1,", "sequence is -1, but must be a number"),
            ("1970", "197", "time is \"197-01-01"),
            ("{", "", "trailing characters"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            let told = from_line(&bad).unwrap_err();
            assert!(told.starts_with(reason) || told.contains(reason), "{bad}: {told}");
        }
    }

    /// Goal: a file that ends in a part of a line gives what is before it, and says where it ends.
    #[test]
    fn a_torn_file_is_told() {
        let folder = Folder::new("torn");
        let path = folder.file("lines");
        let lines: Vec<_> = (1..4).map(|n| to_line(&plain(n, n, "a", b"x"))).collect();
        fs::write(&path, format!("{}\n{}\n{}", lines[0], lines[1], &lines[2][..20])).unwrap();
        let mut read = Vec::new();
        let all = Query::of(">").unwrap();
        let told = read_lines(&path, &all, |stored| {
            read.push(stored.sequence);
            Ok(())
        });
        assert_eq!(read, [1, 2]);
        let told = told.unwrap_err().to_string();
        let expected = format!("cannot read line 3 of {}: EOF while parsing", path.display());
        assert!(told.starts_with(&expected), "{told}");
    }

    #[test]
    fn lines_are_rotated_and_losses_counted() {
        let folder = Folder::new("rotated");
        let options = LinesOptions::at(folder.file("lines")).max_size(1024).files(3);
        let (mut lines, lost) = options.open().unwrap();
        let records: Vec<_> = (1..=40).map(|n| plain(n, n, "a", b"x")).collect();
        lines.write(1, &records, 0).unwrap();
        let mut read = Vec::new();
        let all = Query::of(">").unwrap();
        for name in ["lines.2", "lines.1", "lines"] {
            let path = folder.file(name);
            assert!(fs::metadata(&path).unwrap().len() <= 1024);
            let keep = |stored| {
                read.push(stored);
                Ok(())
            };
            read_lines(path, &all, keep).unwrap();
        }
        assert_eq!(read[..], records[40 - read.len()..]);
        assert!(read.len() > 20, "{}", read.len());
        assert_eq!(lost.lines.load(Relaxed), 0);
        let (mut lines, lost) = LinesOptions::at("/dev/full").open().unwrap();
        lines.write(1, &records, 0).unwrap();
        assert_eq!(lost.lines.load(Relaxed), 40);
        let told = lost.last.lock().unwrap().clone().unwrap();
        assert!(told.starts_with("cannot write lines to /dev/full: No space left"), "{told}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let refused = |options: LinesOptions| match options.open() {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        };
        let options = || LinesOptions::at("x");
        assert_eq!(
            refused(options().max_size(7)),
            "the lines' max_size is 7, but must be 1024 to 1099511627776"
        );
        assert_eq!(refused(options().files(0)), "the lines' files is 0, but must be 1 to 1000");
    }
}
