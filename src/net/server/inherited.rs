//! Sockets that a supervisor has opened and passed on: the protocol of sd_listen_fds(3).
//!
//! Descriptors from 3 on, `LISTEN_FDS` of them, belong to the process whose number is `LISTEN_PID`;
//! `LISTEN_FDNAMES` names them, separated by colons.
#![allow(unsafe_code, reason = "takes over descriptors by number, as the protocol has it")]

use super::settings::Listen;
use crate::error::{Error, Result};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use socket2::Socket;
use std::env;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The first one's number (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// What the protocol calls those that have no name.
const UNKNOWN: &str = "unknown";

/// A socket from a supervisor; see [`inherited`].
#[derive(Debug)]
pub struct Inherited {
    name: String,
    socket: OwnedFd,
}

impl Inherited {
    /// Its name: the one of the unit, or its `FileDescriptorName=`; "unknown" if it has none.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<Inherited> for OwnedFd {
    fn from(inherited: Inherited) -> Self {
        inherited.socket
    }
}

/// A socket that listens for streams already. For one of datagrams, take the descriptor.
impl From<Inherited> for Listen {
    fn from(inherited: Inherited) -> Self {
        Self::inherited(inherited)
    }
}

/// The sockets that systemd, or whoever speaks its protocol, has passed to this process, in their
/// order. None if there are none, if they were meant for another process, or if they were taken
/// before: a socket is given once. They are set not to be inherited further. Call it early, while
/// nobody in this process could have closed them.
///
/// ```
/// # use paceline::net::{self, Server};
/// # let pool = paceline::Pool::new()?;
/// let mut builder = Server::builder(&pool);
/// for socket in net::inherited()? {
///     builder = builder.listen(socket);
/// }
/// # Ok::<(), paceline::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] names the variable that makes no sense. [`Error::Os`] names a descriptor that
/// is not open, or no socket; then none was taken.
pub fn inherited() -> Result<Vec<Inherited>> {
    // Not one of loom's, which cannot be static.
    static TAKEN: AtomicBool = AtomicBool::new(false);
    // Relaxed, here and below: only one call may find it false, and it orders nothing else.
    if TAKEN.load(Relaxed) {
        return Ok(Vec::new());
    }
    let variable = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let [pid, count, names] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"].map(variable);
    let named = parse(std::process::id(), pid, count, names)?;
    named.iter().try_for_each(|(fd, _)| check(*fd))?;
    if TAKEN.swap(true, Relaxed) {
        return Ok(Vec::new());
    }
    Ok(named.into_iter().map(|(fd, name)| Inherited { name, socket: own(fd) }).collect())
}

/// What is passed, and how it is called.
fn parse(
    own_pid: u32,
    pid: Option<String>,
    count: Option<String>,
    names: Option<String>,
) -> Result<Vec<(RawFd, String)>> {
    let (Some(pid), Some(count)) = (pid, count) else { return Ok(Vec::new()) };
    let wrong = |name, value: String, allowed: &str| Err(Error::invalid(name, value, allowed));
    let Ok(pid) = pid.parse::<u32>() else {
        return wrong("LISTEN_PID", format!("{pid:?}"), "the number of a process");
    };
    let Some(count) = count.parse().ok().filter(|count| (0..1 << 16).contains(count)) else {
        return wrong("LISTEN_FDS", format!("{count:?}"), "a number of descriptors");
    };
    if pid != own_pid {
        return Ok(Vec::new());
    }
    let fds = FIRST..FIRST + count;
    let Some(names) = names else {
        return Ok(fds.map(|fd| (fd, UNKNOWN.into())).collect());
    };
    let named: Vec<_> = fds.zip(names.split(':').map(String::from)).collect();
    if named.len() != count as usize || names.split(':').count() > named.len().max(1) {
        return wrong("LISTEN_FDNAMES", format!("{names:?}"), &format!("{count} names"));
    }
    Ok(named)
}

/// It is an open socket.
fn check(fd: RawFd) -> Result<()> {
    let mut kind: libc::c_int = 0;
    let mut len = size_of_val(&kind) as libc::socklen_t;
    let target = (&raw mut kind).cast();
    // SAFETY: the kernel writes at most `len` bytes, and answers for a number that is not open.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, target, &mut len) } {
        0 => Ok(()),
        _ => Err(Error::os(format!("inherit descriptor {fd}"), io::Error::last_os_error())),
    }
}

fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: it is open, the supervisor gave it to this process, and it is taken once.
    let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // It cannot fail for an open descriptor.
    let _ = socket.set_cloexec(true);
    socket.into()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn parsed(pid: &str, count: &str, names: Option<&str>) -> Result<Vec<(RawFd, String)>> {
        parse(7, Some(pid.into()), Some(count.into()), names.map(String::from))
    }

    #[test]
    fn what_is_passed_is_numbered_and_named() {
        let named = |names: &[&str]| -> Vec<_> {
            (3..).zip(names.iter().map(|name| name.to_string())).collect()
        };
        assert_eq!(parsed("7", "2", None).unwrap(), named(&["unknown", "unknown"]));
        assert_eq!(parsed("7", "2", Some("web:admin")).unwrap(), named(&["web", "admin"]));
        assert_eq!(parsed("7", "1", Some("")).unwrap(), named(&[""]));
        assert_eq!(parsed("7", "0", Some("")).unwrap(), named(&[]));
        assert_eq!(parsed("7", "0", None).unwrap(), named(&[]));
        assert_eq!(parsed("8", "2", None).unwrap(), named(&[]), "another process's");
        assert_eq!(parse(7, None, Some("2".into()), None).unwrap(), named(&[]));
        assert_eq!(parse(7, Some("7".into()), None, None).unwrap(), named(&[]));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (result, expected) in [
            (parsed("x", "1", None), "LISTEN_PID is \"x\", but must be the number of a process"),
            (parsed("7", "-1", None), "LISTEN_FDS is \"-1\", but must be a number of descriptors"),
            (parsed("7", "", None), "LISTEN_FDS is \"\", but must be a number of descriptors"),
            (parsed("7", "2", Some("a")), "LISTEN_FDNAMES is \"a\", but must be 2 names"),
            (parsed("7", "1", Some("a:b")), "LISTEN_FDNAMES is \"a:b\", but must be 1 names"),
        ] {
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }
}
