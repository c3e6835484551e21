//! A file of lines that is rotated by size.
//!
//! Crates that do this panic, print, or swallow errors when the disk is full; here an error says how many
//! lines are lost, and the next batch tries again.
//!
//! # What the path may be
//!
//! | the path leads to | |
//! |---|---|
//! | a regular file, or nothing yet | it is written, and rotated |
//! | the same by a symbolic link | likewise; what the link leads to is rotated, where it lies |
//! | something by a link in `/proc`, as `/dev/stdout` | it is written, and never rotated: others have it open |
//! | a character device, a pipe | it is written, and never rotated |
//! | a directory, a block device, a socket | refused |
//!
//! A pipe without a reader is an error, and the next batch tries again. One that is full is waited for.
//!
//! # Several writers
//!
//! Any number of these, in any number of processes, may write one path: each batch is written under the lock of
//! flock(2). Under it the writer looks whether the path still leads to the file that it has open, and otherwise opens
//! it anew, so it follows whoever has rotated it. On a file system without such locks there must be one writer.
//!
//! # Invariants
//!
//! 1. A batch begins on a line of its own: if the file does not end in a line's end, one is written first. (What is
//!    torn may come from a process that was killed, or from a loss of power.)
//! 2. What could be written of a batch that failed ends in a whole line: the rest goes, if no other program has written
//!    behind it. Nothing that others have written is ever cut off.

use crate::error::Error;
use crate::sys::fd::{set_blocking, try_lock, unlock};
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Lines are gathered up to so many bytes.
const GATHER: usize = 64 << 10;
/// Another writer that has the lock is waited for.
const LONGEST_LOCK: Duration = Duration::from_secs(5);
/// So often a path may lead to something else than it did a moment ago.
const ATTEMPTS: u32 = 100;
/// So many links may lead to each other.
const MOST_LINKS: u32 = 40;

pub(crate) struct RotatingFile {
    path: PathBuf,
    max: u64,
    keep: usize,
    open: Option<Open>,
    gathered: Vec<u8>,
    lines: u64,
    failure: Option<String>,
}

struct Open {
    file: File,
    is_regular: bool,
    /// Where it lies, if it is to be rotated.
    place: Option<PathBuf>,
    /// Where the last batch has ended; 0 before the first.
    size: u64,
}

/// Lines that are not in the file.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) lines: u64,
    pub(crate) error: io::Error,
}

impl RotatingFile {
    /// Makes the file if it is not there. `keep` files in all.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the path leads to what cannot be a file of lines; [`Error::Os`] if it cannot be there, or not be
    /// written. A pipe without a reader is none: it is opened for each batch until that succeeds.
    pub(crate) fn new(path: PathBuf, max: u64, keep: usize) -> Result<Self, Error> {
        if let Some(what) = fs::metadata(&path).ok().and_then(|it| unfit(it.file_type())) {
            let value = format!("{}, {what}", path.display());
            return Err(Error::invalid("the file of lines", value, FIT));
        }
        // Whoever changes the working directory does not move the file.
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut file =
            Self { path, max, keep, open: None, gathered: Vec::new(), lines: 0, failure: None };
        match file.open() {
            Err(error) if error.raw_os_error() != Some(libc::ENXIO) => {
                Err(Error::os(format!("write lines to {}", file.path.display()), error))
            }
            opened => {
                file.open = opened.ok();
                Ok(file)
            }
        }
    }

    /// Adds a line, which is written when enough are gathered, or by `write_out`.
    pub(crate) fn add(&mut self, line: &[u8]) -> Result<(), Lost> {
        let size = self.size() + (self.gathered.len() + line.len()) as u64;
        let is_full = size > self.max || self.gathered.len() + line.len() > GATHER;
        let written = if is_full { self.write_out() } else { Ok(()) };
        self.gathered.extend_from_slice(line);
        self.lines += 1;
        written
    }

    /// Writes what is gathered, to a new file if the old one has no room for it.
    pub(crate) fn write_out(&mut self) -> Result<(), Lost> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut kept = 0;
        let written = self.try_write_out(&mut kept);
        let lines = core::mem::take(&mut self.lines);
        self.gathered.clear();
        let failure =
            |error: &io::Error| format!("cannot write to {}: {error}", self.path.display());
        self.failure = written.as_ref().err().map(failure);
        written.map_err(|error| {
            self.open = None;
            Lost { lines: lines - kept, error }
        })
    }

    /// Why it was not written the last time. None: it was.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// If it fails, `kept` lines are in the file nevertheless.
    fn try_write_out(&mut self, kept: &mut u64) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open()?,
            };
            if !open.is_regular {
                write(&open.file, &self.gathered).map_err(|(written, error)| {
                    *kept = lines_in(&self.gathered[..written]);
                    error
                })?;
                self.open = Some(open);
                return Ok(());
            }
            let lock = Lock::of(&open.file)?;
            if !is_at(&self.path, &open.file) {
                continue;
            }
            let size = open.file.metadata()?.len();
            let is_full = size > 0 && size + self.gathered.len() as u64 > self.max;
            if let (true, Some(place)) = (is_full, &open.place) {
                self.rotate(place)?;
                continue;
            }
            // Behind its own last batch it need not look.
            let torn = size != open.size && is_torn(&self.path, size);
            if torn {
                self.gathered.insert(0, b'\n');
            }
            if let Err((written, error)) = write(&open.file, &self.gathered) {
                let whole = self.gathered[..written].iter().rposition(|byte| *byte == b'\n');
                let whole = whole.map_or(0, |at| at + 1);
                let end = size + written as u64;
                let is_last = open.file.metadata().is_ok_and(|file| file.len() == end);
                if whole < written && is_last {
                    // If that fails, too, the next batch begins on a line of its own.
                    let _torn = open.file.set_len(size + whole as u64);
                }
                // That of the torn one is no line.
                *kept = lines_in(&self.gathered[usize::from(torn).min(whole)..whole]);
                return Err(error);
            }
            drop(lock);
            open.size = size + self.gathered.len() as u64;
            self.open = Some(open);
            return Ok(());
        }
        Err(io::Error::other("each time it was opened another program replaced it"))
    }

    fn open(&self) -> io::Result<Open> {
        let mut how = OpenOptions::new();
        // A pipe without a reader is not waited for, and a terminal does not become that of the process.
        how.append(true).create(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = how.open(&self.path)?;
        let kind = file.metadata()?.file_type();
        if let Some(what) = unfit(kind) {
            return Err(io::Error::other(format!("it is {what}, but must be {FIT}")));
        }
        let is_regular = kind.is_file();
        let place = if is_regular { place_of(&self.path)? } else { None };
        if !is_regular {
            set_blocking(file.as_fd())?;
        }
        Ok(Open { file, is_regular, place, size: 0 })
    }

    /// What counts before the file is rotated. 0, if it never is.
    fn size(&self) -> u64 {
        let rotated = self.open.as_ref().filter(|open| open.place.is_some());
        rotated.map_or(0, |open| open.size)
    }

    /// path.2 becomes path.3, path.1 path.2, and path path.1; what would be one too many is replaced.
    fn rotate(&self, path: &Path) -> io::Result<()> {
        if self.keep == 1 {
            return fs::remove_file(path);
        }
        for number in (0..self.keep - 1).rev() {
            match fs::rename(numbered(path, number), numbered(path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut path = path.to_owned().into_os_string();
    path.push(format!(".{number}"));
    path.into()
}

const FIT: &str = "a regular file, a character device or a pipe";

/// What it is, if lines cannot be written to it.
fn unfit(kind: FileType) -> Option<&'static str> {
    match () {
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_block_device() => Some("a block device"),
        () if kind.is_socket() => Some("a socket"),
        () => None,
    }
}

/// Where the file lies that links lead to. None: a link of `/proc` leads to it, as to the standard output.
pub(crate) fn place_of(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        if folder.starts_with("/proc") {
            return Ok(None);
        }
        path = folder.join(path.file_name().unwrap_or_default());
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_it_is_no_link) => return Ok(Some(path)),
        }
    }
    Err(io::Error::other("too many links lead to each other"))
}

fn is_at(path: &Path, file: &File) -> bool {
    let same = |one: fs::Metadata, other: fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|here| same(there, here)))
}

/// Whether a file of this size does not end in a line's end. Not, if it cannot be read.
fn is_torn(path: &Path, size: u64) -> bool {
    let mut last = [b'\n'];
    let _unknown = size > 0
        && File::open(path).and_then(|file| file.read_exact_at(&mut last, size - 1)).is_err();
    last != *b"\n"
}

fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// All of it; or how much of it was written, and why not more.
fn write(mut file: &File, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// The lock of an open file, until it is dropped: a copy of the descriptor in a forked child does not keep it.
struct Lock<'a>(&'a File);

impl<'a> Lock<'a> {
    fn of(file: &'a File) -> io::Result<Self> {
        let begin = Instant::now();
        while !try_lock(file.as_fd()) {
            if begin.elapsed() > LONGEST_LOCK {
                let reason = format!("another program has had its lock for {LONGEST_LOCK:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Self(file))
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        unlock(self.0.as_fd());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("paceline-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn files(&self) -> Vec<(String, String)> {
            let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
            let text = |path: PathBuf| fs::read_to_string(path).unwrap();
            let mut files: Vec<_> = entries
                .map(|entry| (entry.file_name().into_string().unwrap(), text(entry.path())))
                .collect();
            files.sort();
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn writer(folder: &Folder, max: u64, keep: usize) -> RotatingFile {
        RotatingFile::new(folder.0.join("log"), max, keep).unwrap()
    }

    fn add(file: &mut RotatingFile, lines: core::ops::Range<u32>) {
        for line in lines {
            file.add(format!("line {line}\n").as_bytes()).unwrap();
        }
        file.write_out().unwrap();
    }

    fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    /// Goal: no file is larger than asked, the newest lines are kept, in order, each whole.
    #[test]
    fn files_are_rotated_by_size_and_the_oldest_goes() {
        let folder = Folder::new("rotate");
        // Two lines of seven bytes fit.
        let mut file = writer(&folder, 20, 3);
        (0..8).for_each(|line| add(&mut file, line..line + 1));
        let expected = [("log", "line 6\nline 7\n"), ("log.1", "line 4\nline 5\n")];
        let oldest = ("log.2", "line 2\nline 3\n");
        assert_eq!(folder.files(), named(&[expected[0], expected[1], oldest]));
    }

    /// Goal: a batch is cut where a file is full, as single lines would be.
    #[test]
    fn a_batch_is_spread_over_files() {
        let folder = Folder::new("batch");
        let mut file = writer(&folder, 20, 3);
        add(&mut file, 0..5);
        let expected = [("log", "line 4\n"), ("log.1", "line 2\nline 3\n")];
        let oldest = ("log.2", "line 0\nline 1\n");
        assert_eq!(folder.files(), named(&[expected[0], expected[1], oldest]));
    }

    /// Goal: a file that is there is gone on with.
    #[test]
    fn an_old_file_is_appended_to_until_it_is_full() {
        let folder = Folder::new("append");
        fs::write(folder.0.join("log"), "before\n").unwrap();
        let mut file = writer(&folder, 20, 2);
        add(&mut file, 0..1);
        add(&mut file, 1..2);
        assert_eq!(folder.files(), named(&[("log", "line 1\n"), ("log.1", "before\nline 0\n")]));
    }

    #[test]
    fn with_one_file_to_keep_the_old_lines_go() {
        let folder = Folder::new("one");
        let mut file = writer(&folder, 20, 1);
        (0..3).for_each(|line| add(&mut file, line..line + 1));
        assert_eq!(folder.files(), named(&[("log", "line 2\n")]));
    }

    #[test]
    fn a_line_that_is_too_long_gets_a_file_for_itself() {
        let folder = Folder::new("long");
        let mut file = writer(&folder, 20, 9);
        let long = format!("{}\n", "x".repeat(100));
        add(&mut file, 0..1);
        file.add(long.as_bytes()).unwrap();
        add(&mut file, 1..2);
        let files = [("log", "line 1\n"), ("log.1", &*long), ("log.2", "line 0\n")];
        assert_eq!(folder.files(), named(&files));
    }

    /// Goal: errors say how many lines are lost, and when the cause is gone the next lines are written.
    #[test]
    fn what_cannot_be_written_is_lost_and_counted() {
        let folder = Folder::new("lost");
        let path = folder.0.join("not/there/log");
        let refused =
            |path: &Path| RotatingFile::new(path.into(), 1000, 2).err().unwrap().to_string();
        let expected =
            format!("cannot write lines to {}: No such file or directory", path.display());
        assert!(refused(&path).starts_with(&expected), "{}", refused(&path));
        fs::write(folder.0.join("not"), "").unwrap();
        assert!(refused(&path).contains("Not a directory"), "{}", refused(&path));
        fs::remove_file(folder.0.join("not")).unwrap();
        fs::create_dir_all(folder.0.join("not/there")).unwrap();
        let mut file = RotatingFile::new(path, 1000, 2).unwrap();
        fs::remove_dir_all(folder.0.join("not")).unwrap();
        (0..3).for_each(|_| file.add(b"lost\n").unwrap());
        let lost = file.write_out().unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (3, io::ErrorKind::NotFound));
        fs::create_dir_all(folder.0.join("not/there")).unwrap();
        add(&mut file, 0..1);
        assert_eq!(fs::read_to_string(folder.0.join("not/there/log")).unwrap(), "line 0\n");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut file = RotatingFile::new("/dev/full".into(), 1000, 2).unwrap();
        file.add(b"lost\n").unwrap();
        let lost = file.write_out().unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (1, io::ErrorKind::StorageFull));
        file.write_out().unwrap();
    }

    fn make_pipe(path: &Path) {
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a text that ends in NUL.
        #[allow(unsafe_code, reason = "mkfifo(3)")]
        let made = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
        assert_eq!(made, 0, "{}", io::Error::last_os_error());
    }

    /// Goal: what is no regular file is written, and stays where it is, however much is written.
    #[test]
    fn a_pipe_and_a_device_are_never_rotated() {
        let folder = Folder::new("pipe");
        let path = folder.0.join("log");
        make_pipe(&path);
        for keep in [1, 3] {
            let mut file = writer(&folder, 20, keep);
            file.add(b"unread\n").unwrap();
            let lost = file.write_out().unwrap_err();
            let reason = lost.error.raw_os_error();
            assert_eq!((lost.lines, reason), (1, Some(libc::ENXIO)), "no reader is waited for");
            let mut how = OpenOptions::new();
            let mut reader = how.read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
            add(&mut file, 0..9);
            let mut read = vec![0; 9 * 7];
            io::Read::read_exact(&mut reader, &mut read).unwrap();
            assert!(read.ends_with(b"line 7\nline 8\n"));
            assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
            assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        }
        fs::remove_file(&path).unwrap();
        // A device by a link: neither is touched.
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let mut file = writer(&folder, 20, 1);
        add(&mut file, 0..9);
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("/dev/null"));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    /// Goal: a file that the process has open as its standard output, say, is not renamed away from under it. Method:
    /// another descriptor, which stands in `/proc` likewise.
    #[test]
    fn what_a_link_of_proc_leads_to_is_never_rotated() {
        use std::os::fd::AsRawFd;
        let folder = Folder::new("proc");
        let output = File::create(folder.0.join("output")).unwrap();
        let device = folder.0.join("stdout");
        let target = format!("/proc/self/fd/{}", output.as_raw_fd());
        std::os::unix::fs::symlink(&target, &device).unwrap();
        for path in [&device, Path::new(&target)] {
            let mut file = RotatingFile::new(path.to_owned(), 20, 1).unwrap();
            add(&mut file, 0..9);
        }
        assert_eq!(fs::read_to_string(folder.0.join("output")).unwrap().lines().count(), 18);
        assert_eq!(fs::read_link(&device).unwrap(), Path::new(&target));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    /// Goal: lines are gathered, though the file is larger than one that would be rotated.
    #[test]
    fn what_is_never_rotated_is_written_in_batches_at_any_size() {
        use std::os::fd::AsRawFd;
        let folder = Folder::new("batches");
        let output = File::create(folder.0.join("output")).unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", output.as_raw_fd()));
        let mut file = RotatingFile::new(path, 20, 2).unwrap();
        (0..9).for_each(|line| add(&mut file, line..line + 1));
        let size = || output.metadata().unwrap().len();
        assert_eq!(size(), 9 * 7);
        (0..2).for_each(|_| file.add(b"line 9\n").unwrap());
        assert_eq!(size(), 9 * 7, "two lines fit");
        file.write_out().unwrap();
        assert_eq!(size(), 11 * 7);
    }

    /// Goal: a link goes on leading to the log, and the old files are beside what it leads to.
    #[test]
    fn what_a_link_leads_to_is_rotated() {
        let folder = Folder::new("link");
        fs::create_dir(folder.0.join("there")).unwrap();
        let link = folder.0.join("log");
        std::os::unix::fs::symlink("there/real", &link).unwrap();
        let mut file = writer(&folder, 20, 2);
        (0..4).for_each(|line| add(&mut file, line..line + 1));
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("there/real"));
        assert_eq!(fs::read_to_string(&link).unwrap(), "line 2\nline 3\n");
        let old = fs::read_to_string(folder.0.join("there/real.1")).unwrap();
        assert_eq!(old, "line 0\nline 1\n");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn what_can_be_no_file_of_lines_is_refused() {
        let folder = Folder::new("unfit");
        let refused = RotatingFile::new(folder.0.clone(), 20, 2).err().unwrap().to_string();
        let expected = format!(
            "the file of lines is {}, a directory, but must be a regular file, a character device or a pipe",
            folder.0.display()
        );
        assert_eq!(refused, expected);
        let path = folder.0.join("log");
        let _bound = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let refused = RotatingFile::new(path, 20, 2).err().unwrap().to_string();
        assert!(refused.contains("log, a socket, but must be"), "{refused}");
    }

    /// Goal: what a kill or a loss of power has torn swallows no other line.
    #[test]
    fn a_batch_begins_on_a_line_of_its_own() {
        let folder = Folder::new("torn");
        let path = folder.0.join("log");
        fs::write(&path, "whole\ntor").unwrap();
        let mut file = writer(&folder, 1000, 2);
        add(&mut file, 0..1);
        // By another program, while it is open.
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        other.write_all(b"torn, too").unwrap();
        add(&mut file, 1..2);
        other.write_all(b"whole, too\n").unwrap();
        add(&mut file, 2..3);
        let expected = "whole\ntor\nline 0\ntorn, too\nline 1\nwhole, too\nline 2\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    /// Goal: several logs at one path lose no line and tear none, though each rotates. Method: as many threads with
    /// logs of their own, more files than they fill.
    #[test]
    fn several_may_write_one_path() {
        const WRITERS: usize = 4;
        const LINES: usize = 200;
        let folder = Folder::new("several");
        thread::scope(|scope| {
            for number in 0..WRITERS {
                let mut file = writer(&folder, 300, 100);
                scope.spawn(move || {
                    for line in 0..LINES {
                        file.add(format!("{number} {line:04}\n").as_bytes()).unwrap();
                        if line % 5 == 0 {
                            file.write_out().unwrap();
                        }
                    }
                    file.write_out().unwrap();
                });
            }
        });
        let files = folder.files();
        assert!(files.len() > 10 && files.len() < 100, "{}", files.len());
        assert!(files.iter().all(|(_, text)| text.len() <= 300 && text.ends_with('\n')));
        let mut lines: Vec<_> = files.iter().flat_map(|(_, text)| text.lines()).collect();
        lines.sort_unstable();
        let each = |number| (0..LINES).map(move |line| format!("{number} {line:04}"));
        assert!(lines.into_iter().eq((0..WRITERS).flat_map(each)));
    }

    /// Goal: whoever else rotates is followed.
    #[test]
    fn a_file_that_others_have_renamed_is_opened_anew() {
        let folder = Folder::new("renamed");
        let mut file = writer(&folder, 1000, 2);
        add(&mut file, 0..1);
        fs::rename(folder.0.join("log"), folder.0.join("old")).unwrap();
        add(&mut file, 1..2);
        assert_eq!(folder.files(), named(&[("log", "line 1\n"), ("old", "line 0\n")]));
    }

    /// Goal: one who has the lock for good does not hold up others for good.
    #[test]
    fn a_lock_that_stays_is_an_error() {
        let folder = Folder::new("held");
        let mut file = writer(&folder, 1000, 2);
        let holder = File::create(folder.0.join("log")).unwrap();
        assert!(try_lock(holder.as_fd()));
        file.add(b"lost\n").unwrap();
        let lost = file.write_out().unwrap_err();
        assert_eq!(lost.error.to_string(), "another program has had its lock for 5s");
        unlock(holder.as_fd());
        add(&mut file, 0..1);
        assert_eq!(folder.files(), named(&[("log", "line 0\n")]));
    }
}
