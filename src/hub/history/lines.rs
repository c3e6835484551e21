//! Messages as lines of JSON: what people and other programs read.
//!
//! A line is an object with `sequence`, `time` (RFC 3339, in nanoseconds), `key`, `priority`, `headers` (pairs
//! of name and value, in order) if there are any, and the payload: `payload` if it is text, else
//! `payload_base64`.

use crate::error::{Error, Result};
use crate::hub::history::log::Sink;
use crate::hub::history::query::Query;
use crate::hub::history::record::nanos;
use crate::hub::keys::key::{Key, check_any_key, check_pattern};
use crate::hub::message::{Headers, Payload, Priority, Stored};
use crate::rotate::{RotatingFile, place_of};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
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
    ///
    /// Several histories may write one file, in one process or in several: they take turns by a lock. If a symbolic
    /// link leads to the file, what it leads to is rotated. A character device, and what a link in `/proc` leads to, is
    /// written and never rotated. A pipe is refused: its reader could hold up whoever commits.
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
        let is_pipe = fs::metadata(&self.path).is_ok_and(|file| file.file_type().is_fifo());
        if is_pipe {
            let value = format!("{}, a pipe", self.path.display());
            return Err(Error::invalid("the file of lines", value, "a regular file or a device"));
        }
        let file = RotatingFile::new(self.path.clone(), self.max_size, self.files)?;
        let lost = Arc::<Lost>::default();
        Ok((Lines { file, path: self.path.clone(), lost: Arc::clone(&lost) }, lost))
    }
}

/// Lines that could not be written.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) lines: AtomicU64,
    pub(super) last: Mutex<Option<String>>,
    /// Why the last batch was not written. None: it was.
    pub(super) now: Mutex<Option<String>>,
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
    fn write(&mut self, _: u64, records: &[Stored], _: u64) -> Result<u64> {
        let before = self.lost.lines.load(Relaxed);
        for record in records {
            let added = self.file.add((to_line(record) + "\n").as_bytes());
            self.check(added);
        }
        let written = self.file.write_out();
        self.check(written);
        let now = self.file.failure().map(str::to_owned);
        *self.lost.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(self.lost.lines.load(Relaxed) - before)
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
fn from_line(line: &Value) -> core::result::Result<Stored, String> {
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
    })
}

/// What was read of a file of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinesRead {
    /// Messages that were asked for.
    pub messages: usize,
    /// Lines that are no JSON, and were skipped: a process that was killed, a full disk or a loss of power tears
    /// lines.
    pub torn: usize,
}

/// Calls `each` with the messages of a file of lines that the query asks for, in their order. Says how many there
/// were, and how many torn lines were skipped. Reads one file; those that were rotated away are files of their own.
///
/// # Errors
/// [`Error::Invalid`] for a query of what is no pattern. [`Error::Os`] names the path and, for a line of JSON that is no message, its number and what is wrong with it.
/// What was before it has been given to `each`. What `each` returns.
pub fn read_lines(
    path: impl AsRef<Path>,
    query: &Query,
    mut each: impl FnMut(Stored) -> Result<()>,
) -> Result<LinesRead> {
    check_pattern(&query.pattern)?;
    let path = path.as_ref();
    let failed = |error| Error::os(format!("read lines from {}", path.display()), error);
    let file = File::open(path).map_err(failed)?;
    let mut read = LinesRead::default();
    for (number, line) in (1..).zip(BufReader::new(file).split(b'\n')) {
        let line = line.map_err(failed)?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Ok(line) = serde_json::from_slice(&line) else {
            read.torn += 1;
            continue;
        };
        let stored = from_line(&line).map_err(|reason| {
            let reason = io::Error::new(io::ErrorKind::InvalidData, reason);
            Error::os(format!("read line {number} of {}", path.display()), reason)
        })?;
        if read.messages < query.limit && query.selects(&stored) {
            read.messages += 1;
            each(stored)?;
        }
    }
    Ok(read)
}

/// Writes lines to a new file, which is there when all of it is. `next` fills an empty list with some of the
/// messages; it is the end if it leaves it empty.
pub(super) fn write_lines(
    path: &Path,
    mut next: impl FnMut(&mut Vec<Stored>) -> Result<()>,
) -> Result<u64> {
    let failed = |error| Error::os(format!("write lines to {}", path.display()), error);
    // What is no file is not replaced by one, and a link goes on leading where it does.
    let is_file = fs::metadata(path).map_or(true, |there| there.is_file());
    let Some(path) = is_file.then(|| place_of(path)).transpose().map_err(failed)?.flatten() else {
        let allowed = "a regular file, or not there yet";
        return Err(Error::invalid("the file of lines", path.display(), allowed));
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".part");
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
    match written.and_then(|()| fs::rename(&beside, &path).map_err(failed)) {
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

    fn from_text(line: &str) -> core::result::Result<Stored, String> {
        from_line(&serde_json::from_str(line).map_err(|error| error.to_string())?)
    }

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
            prop_assert_eq!(from_text(&to_line(&stored)).unwrap(), stored);
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
            let told = from_text(&bad).unwrap_err();
            assert!(told.starts_with(reason) || told.contains(reason), "{bad}: {told}");
        }
    }

    fn read_all(path: &Path) -> (Vec<u64>, Result<LinesRead>) {
        let mut sequences = Vec::new();
        let read = read_lines(path, &Query::of(">"), |stored| {
            sequences.push(stored.sequence);
            Ok(())
        });
        (sequences, read)
    }

    /// Goal: a part of a line, in the middle or at the end, hides no other line: it is skipped and counted.
    #[test]
    fn torn_lines_are_skipped_and_counted() {
        let folder = Folder::new("torn");
        let path = folder.file("lines");
        let lines: Vec<_> = (1..5).map(|n| to_line(&plain(n, n, "a", b"x"))).collect();
        let torn = &lines[2][..20];
        // The second one has swallowed a whole line, as older files have it; the third is no text.
        let mut text = format!("{}\n{torn}\n{}\n{torn}{}\n", lines[0], lines[1], lines[2]);
        text += &format!("\0\0\0\n\n{}\n{torn}", lines[3]);
        let text: Vec<u8> = text.bytes().map(|byte| if byte == 0 { 0xff } else { byte }).collect();
        fs::write(&path, text).unwrap();
        let (sequences, read) = read_all(&path);
        assert_eq!(sequences, [1, 2, 4]);
        assert_eq!(read.unwrap(), LinesRead { messages: 3, torn: 4 });
    }

    /// Goal: what is whole and no message is not passed over.
    #[test]
    fn a_line_that_is_no_message_is_told() {
        let folder = Folder::new("wrong");
        let path = folder.file("lines");
        let line = to_line(&plain(1, 1, "a", b"x"));
        fs::write(&path, format!("{line}\n{{\"key\": 7}}\n{line}\n")).unwrap();
        let (sequences, read) = read_all(&path);
        assert_eq!(sequences, [1]);
        let told = read.unwrap_err().to_string();
        let expected = format!("cannot read line 2 of {}: time is null", path.display());
        assert!(told.starts_with(&expected), "{told}");
    }

    /// Goal: what is written behind a torn line is read.
    #[test]
    fn lines_behind_a_torn_one_are_read() {
        let folder = Folder::new("behind");
        let path = folder.file("lines");
        let records: Vec<_> = (1..=2).map(|n| plain(n, n, "a", b"x")).collect();
        for record in &records {
            let (mut lines, _) = LinesOptions::at(&path).open().unwrap();
            lines.write(1, core::slice::from_ref(record), 0).unwrap();
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            io::Write::write_all(&mut file, br#"{"key":"a"#).unwrap();
        }
        let (sequences, read) = read_all(&path);
        assert_eq!((sequences, read.unwrap().torn), (vec![1, 2], 2));
    }

    /// Goal: an export replaces neither a device nor a link.
    #[cfg(feature = "archive")]
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = Folder::new("export");
        let path = folder.file("lines");
        for target in ["/dev/null", "/proc/self/fd/0"] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let told = write_lines(&path, |_| Ok(())).unwrap_err().to_string();
            let expected = format!(
                "the file of lines is {}, but must be a regular file, or not there yet",
                path.display()
            );
            assert_eq!(told, expected);
            assert_eq!(fs::read_link(&path).unwrap(), Path::new(target));
            fs::remove_file(&path).unwrap();
        }
        std::os::unix::fs::symlink("real", &path).unwrap();
        let mut records = vec![plain(1, 1, "a", b"x")];
        let one = |out: &mut Vec<Stored>| {
            out.append(&mut records);
            Ok(())
        };
        assert_eq!(write_lines(&path, one).unwrap(), 1);
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("real"));
        assert_eq!(fs::read_to_string(folder.file("real")).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_pipe_is_refused() {
        let folder = Folder::new("pipe");
        let (_reader, writer) = io::pipe().unwrap();
        use std::os::fd::AsRawFd;
        let path = folder.file("lines");
        let target = format!("/proc/self/fd/{}", writer.as_raw_fd());
        std::os::unix::fs::symlink(target, &path).unwrap();
        let refused = LinesOptions::at(&path).open().err().unwrap().to_string();
        let expected = format!(
            "the file of lines is {}, a pipe, but must be a regular file or a device",
            path.display()
        );
        assert_eq!(refused, expected);
    }

    #[test]
    fn lines_are_rotated_and_losses_counted() {
        let folder = Folder::new("rotated");
        let options = LinesOptions::at(folder.file("lines")).max_size(1024).files(3);
        let (mut lines, lost) = options.open().unwrap();
        let records: Vec<_> = (1..=40).map(|n| plain(n, n, "a", b"x")).collect();
        lines.write(1, &records, 0).unwrap();
        let mut read = Vec::new();
        let all = Query::of(">");
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
        assert_eq!(lines.write(1, &records, 0).unwrap(), 40);
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
