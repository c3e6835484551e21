//! A file of lines that is rotated by size.
//!
//! Crates that do this panic, print, or swallow errors when the disk is full; here an error says how many
//! lines are lost, and the next batch tries again. A file never ends in a part of a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// Lines are gathered up to so many bytes.
const GATHER: usize = 64 << 10;

pub(crate) struct RotatingFile {
    path: PathBuf,
    max: u64,
    keep: usize,
    open: Option<Open>,
    gathered: Vec<u8>,
    lines: u64,
}

struct Open {
    file: File,
    /// What is in it.
    size: u64,
}

/// Lines that are not in the file.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) lines: u64,
    pub(crate) error: io::Error,
}

impl RotatingFile {
    /// Opens nothing yet. `keep` files in all.
    pub(crate) fn new(path: PathBuf, max: u64, keep: usize) -> Self {
        Self { path, max, keep, open: None, gathered: Vec::new(), lines: 0 }
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
        let written = self.try_write_out();
        let lines = core::mem::take(&mut self.lines);
        self.gathered.clear();
        written.map_err(|error| {
            self.open = None;
            Lost { lines, error }
        })
    }

    fn try_write_out(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut open = self.take_open()?;
        if open.size > 0 && open.size + self.gathered.len() as u64 > self.max {
            drop(open);
            self.rotate()?;
            open = self.take_open()?;
        }
        if let Err(error) = open.file.write_all(&self.gathered) {
            // What is there of a line goes; if that fails too, there is nothing more to be done.
            let _as_it_was = open.file.set_len(open.size);
            return Err(error);
        }
        open.size += self.gathered.len() as u64;
        self.open = Some(open);
        Ok(())
    }

    fn take_open(&mut self) -> io::Result<Open> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => {
                let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
                let size = file.metadata()?.len();
                Ok(Open { file, size })
            }
        }
    }

    fn size(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.size)
    }

    /// path.2 becomes path.3, path.1 path.2, and path path.1; what would be one too many is replaced.
    fn rotate(&self) -> io::Result<()> {
        if self.keep == 1 {
            return fs::remove_file(&self.path);
        }
        for number in (0..self.keep - 1).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
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
        let mut file = RotatingFile::new(folder.0.join("log"), 20, 3);
        (0..8).for_each(|line| add(&mut file, line..line + 1));
        let expected = [("log", "line 6\nline 7\n"), ("log.1", "line 4\nline 5\n")];
        let oldest = ("log.2", "line 2\nline 3\n");
        assert_eq!(folder.files(), named(&[expected[0], expected[1], oldest]));
    }

    /// Goal: a batch is cut where a file is full, as single lines would be.
    #[test]
    fn a_batch_is_spread_over_files() {
        let folder = Folder::new("batch");
        let mut file = RotatingFile::new(folder.0.join("log"), 20, 3);
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
        let mut file = RotatingFile::new(folder.0.join("log"), 20, 2);
        add(&mut file, 0..1);
        add(&mut file, 1..2);
        assert_eq!(folder.files(), named(&[("log", "line 1\n"), ("log.1", "before\nline 0\n")]));
    }

    #[test]
    fn with_one_file_to_keep_the_old_lines_go() {
        let folder = Folder::new("one");
        let mut file = RotatingFile::new(folder.0.join("log"), 20, 1);
        (0..3).for_each(|line| add(&mut file, line..line + 1));
        assert_eq!(folder.files(), named(&[("log", "line 2\n")]));
    }

    #[test]
    fn a_line_that_is_too_long_gets_a_file_for_itself() {
        let folder = Folder::new("long");
        let mut file = RotatingFile::new(folder.0.join("log"), 20, 9);
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
        let mut file = RotatingFile::new(folder.0.join("not/there/log"), 1000, 2);
        (0..3).for_each(|_| file.add(b"lost\n").unwrap());
        let lost = file.write_out().unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (3, io::ErrorKind::NotFound));
        fs::create_dir_all(folder.0.join("not/there")).unwrap();
        add(&mut file, 0..1);
        assert_eq!(fs::read_to_string(folder.0.join("not/there/log")).unwrap(), "line 0\n");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut file = RotatingFile::new("/dev/full".into(), 1000, 2);
        file.add(b"lost\n").unwrap();
        let lost = file.write_out().unwrap_err();
        assert_eq!((lost.lines, lost.error.kind()), (1, io::ErrorKind::StorageFull));
        file.write_out().unwrap();
    }
}
