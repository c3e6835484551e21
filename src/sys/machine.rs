//! What the kernel knows of this process, of the machine and of file systems: proc(5), sysconf(3), statvfs(3).
#![allow(unsafe_code, reason = "getrlimit(2), statvfs(3), sysconf(3)")]

use std::ffi::CString;
use std::io::{self, Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, mem};

/// Of this process.
pub(crate) struct Process {
    /// CPU time in seconds.
    pub(crate) user: f64,
    pub(crate) system: f64,
    /// When it was started, in seconds after the machine's start.
    pub(crate) started: f64,
    pub(crate) resident_bytes: f64,
    pub(crate) threads: f64,
}

/// A network interface: its name, what it has received, and what it has sent.
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) bytes: f64,
    pub(crate) errors: f64,
    pub(crate) drops: f64,
}

/// CPU time of the machine in seconds, and when it was started, in seconds since 1970.
#[derive(Debug, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) idle: f64,
    pub(crate) started: f64,
}

/// In bytes.
pub(crate) struct Space {
    /// What processes without privileges may still use.
    pub(crate) free: u64,
    pub(crate) total: u64,
}

pub(crate) fn process() -> io::Result<Process> {
    process_of(&fs::read_to_string("/proc/self/stat")?).ok_or_else(|| unlike("/proc/self/stat"))
}

pub(crate) fn interfaces() -> io::Result<Vec<Interface>> {
    interfaces_of(&fs::read_to_string("/proc/net/dev")?).ok_or_else(|| unlike("/proc/net/dev"))
}

pub(crate) fn cpu() -> io::Result<Cpu> {
    cpu_of(&fs::read_to_string("/proc/stat")?).ok_or_else(|| unlike("/proc/stat"))
}

/// The average of the last minute.
pub(crate) fn load() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    number(text.split(' ').next()).ok_or_else(|| unlike("/proc/loadavg"))
}

/// In bytes. None: the kernel does not say it.
pub(crate) fn memory() -> io::Result<impl Fn(&str) -> Option<f64>> {
    let text = fs::read_to_string("/proc/meminfo")?;
    Ok(move |name: &str| memory_of(&text, name))
}

/// How many descriptors are open.
pub(crate) fn descriptors() -> io::Result<usize> {
    // That of the directory itself is not one of them.
    Ok(fs::read_dir("/proc/self/fd")?.count().saturating_sub(1))
}

/// How many descriptors may be open. None: any number.
pub(crate) fn most_descriptors() -> io::Result<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is writable.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let limit = (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur);
    if result == 0 { Ok(limit) } else { Err(Error::last_os_error()) }
}

/// Of the file system that `path` is on.
pub(crate) fn space(path: &Path) -> io::Result<Space> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: of numbers.
    let mut stat: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: a C string, and a place for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(Error::last_os_error());
    }
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Space { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
}

fn unlike(path: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("{path} is not as proc(5) says"))
}

fn number(text: Option<&str>) -> Option<f64> {
    text?.parse().ok()
}

fn process_of(stat: &str) -> Option<Process> {
    // The second field is the program's name, which may have anything in it. That behind it is the third.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |which: usize| number(fields.get(which - 3).copied());
    Some(Process {
        user: seconds(field(14)?),
        system: seconds(field(15)?),
        started: seconds(field(22)?),
        resident_bytes: field(24)? * sysconf(libc::_SC_PAGESIZE),
        threads: field(20)?,
    })
}

fn interfaces_of(text: &str) -> Option<Vec<Interface>> {
    // Two lines of titles.
    text.lines().skip(2).map(interface_of).collect()
}

fn interface_of(line: &str) -> Option<Interface> {
    let (name, counts) = line.split_once(':')?;
    let counts: Vec<_> = counts.split_ascii_whitespace().collect();
    let traffic = |from: usize| {
        let count = |at: usize| number(counts.get(from + at).copied());
        // Bytes, packets, errors, drops.
        Some(Traffic { bytes: count(0)?, errors: count(2)?, drops: count(3)? })
    };
    Some(Interface { name: name.trim().into(), received: traffic(0)?, sent: traffic(8)? })
}

fn cpu_of(stat: &str) -> Option<Cpu> {
    let line = |name| stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    // User, nice, system, idle.
    let times: Vec<_> = line("cpu")?.split_ascii_whitespace().collect();
    let time = |at: usize| number(times.get(at).copied()).map(seconds);
    let started = number(line("btime"))?;
    Some(Cpu { user: time(0)?, system: time(2)?, idle: time(3)?, started })
}

fn memory_of(meminfo: &str, name: &str) -> Option<f64> {
    let found = |line: &str| {
        let kibibytes = line.strip_prefix(name)?.strip_prefix(':')?.strip_suffix("kB")?;
        Some(number(Some(kibibytes.trim()))? * 1024.0)
    };
    meminfo.lines().find_map(found)
}

fn seconds(ticks: f64) -> f64 {
    ticks / sysconf(libc::_SC_CLK_TCK)
}

fn sysconf(which: libc::c_int) -> f64 {
    // SAFETY: it only answers, and both that are asked for here are known everywhere.
    unsafe { libc::sysconf(which) as f64 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_anything_in_it() {
        let behind = "R 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 9 18 1200 20 3";
        let process = process_of(&format!("7 (a) b (c)) {behind}")).unwrap();
        let ticks = sysconf(libc::_SC_CLK_TCK);
        assert_eq!((process.user, process.system), (250.0 / ticks, 50.0 / ticks));
        assert_eq!((process.started, process.threads), (1200.0 / ticks, 9.0));
        assert_eq!(process.resident_bytes, 3.0 * sysconf(libc::_SC_PAGESIZE));
        assert!(process_of("7 (short) R 1").is_none() && process_of("").is_none());
    }

    #[test]
    fn interfaces_are_read_with_and_without_a_space() {
        let text = "Inter-| Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    eth0:21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        let found = interfaces_of(text).unwrap();
        let names: Vec<_> = found.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["lo", "eth0"]);
        assert_eq!(found[0].received, Traffic { bytes: 1.0, errors: 3.0, drops: 4.0 });
        assert_eq!(found[1].sent, Traffic { bytes: 29.0, errors: 31.0, drops: 32.0 });
        assert!(interfaces_of("1\n2\neth0: 1 2\n").is_none());
    }

    #[test]
    fn the_sum_of_all_processors_is_read() {
        let ticks = sysconf(libc::_SC_CLK_TCK);
        let cpu = cpu_of("cpu  100 2 300 400 5\ncpu0 1 2 3 4\nbtime 1700000000\n").unwrap();
        let expected =
            Cpu { user: 100.0 / ticks, system: 300.0 / ticks, idle: 400.0 / ticks, started: 1.7e9 };
        assert_eq!(cpu, expected);
        assert!(cpu_of("cpu0 1 2 3 4\nbtime 1\n").is_none());
    }

    #[test]
    fn memory_is_in_kibibytes() {
        let text = "MemTotal:  8 kB\nMemAvailable: 2 kB\n";
        assert_eq!(memory_of(text, "MemTotal"), Some(8192.0));
        assert_eq!(memory_of(text, "MemAvailable"), Some(2048.0));
        assert_eq!(memory_of(text, "Mem"), None);
    }

    #[test]
    fn this_process_is_found() {
        let process = process().unwrap();
        assert!(process.resident_bytes > 0.0 && process.threads >= 1.0);
        assert!(descriptors().unwrap() >= 3);
        assert!(!interfaces().unwrap().is_empty() && cpu().unwrap().started > 1e9);
        assert!(load().unwrap() >= 0.0 && memory().unwrap()("MemTotal").unwrap() > 0.0);
        assert!(most_descriptors().unwrap() != Some(0));
        assert!(space(Path::new("/")).unwrap().total > 0);
        assert!(space(Path::new("/no/such/place")).is_err());
    }
}
