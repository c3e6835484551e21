//! The files of Unix sockets, and sockets that others have opened.
#![allow(unsafe_code, reason = "puts descriptors where a supervisor would, and sets the umask")]

use crate::common::{RAN, hang_guard, in_child, is_child};
use crate::kit::*;
use paceline::Error;
use paceline::net::{self, Address, Listen, Server, ToAddress};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn path() -> PathBuf {
    let Address::Unix(path) = Kind::Unix.address() else { unreachable!() };
    path
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn serve(listen: impl Into<Listen>) -> paceline::Result<(paceline::Pool, Server)> {
    let pool = pool(1);
    let server = Server::builder(&pool).listen(listen).serve(|_| Echo(Log::new()))?;
    Ok((pool, server))
}

fn answers(address: &Address) {
    let mut client = Client::connect(address);
    client.send("x");
    client.expect("x");
}

#[test]
fn the_file_has_the_mode_that_was_asked_for() {
    in_child(|| {
        // SAFETY: the process is this test's own.
        unsafe { libc::umask(0o027) };
        let path = path();
        let (_pool, server) = serve(path.as_path()).unwrap();
        assert_eq!(mode(&path), 0o750);
        end(&server);
        for wanted in [0o600, 0o666, 0o777] {
            let (_pool, server) = serve(Listen::on(path.as_path()).socket_mode(wanted)).unwrap();
            assert_eq!(mode(&path), wanted);
            answers(&server.addresses()[0]);
            end(&server);
        }
        let wrong = serve(Listen::on(path.as_path()).socket_mode(0o1777)).unwrap_err();
        assert_eq!(wrong.to_string(), "socket_mode is 0o1777, but must be 0 to 0o777");
    });
}

#[test]
fn what_is_no_left_over_socket_is_not_replaced() {
    let _guard = hang_guard();
    let (file, datagrams, full) = (path(), path(), path());
    fs::write(&file, "precious").unwrap();
    let _datagrams = std::os::unix::net::UnixDatagram::bind(&datagrams).unwrap();
    // Somebody listens there, and does not accept.
    let listener =
        socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    listener.bind(&socket2::SockAddr::unix(&full).unwrap()).unwrap();
    listener.listen(0).unwrap();
    let _waits = UnixStream::connect(&full).unwrap();
    for path in [&file, &datagrams, &full] {
        let error = serve(path.as_path()).unwrap_err().to_string();
        let expected = format!("cannot listen on unix:{}: ", path.display());
        assert!(error.starts_with(&expected), "{error}");
        assert!(path.exists());
        fs::remove_file(path).unwrap();
    }
}

/// A server that drains for long does not take its successor's file away.
#[test]
fn only_the_own_file_is_removed() {
    let _guard = hang_guard();
    let path = path();
    let (_old_pool, old) = serve(path.as_path()).unwrap();
    fs::remove_file(&path).unwrap();
    let (_new_pool, new) = serve(path.as_path()).unwrap();
    end(&old);
    answers(&new.addresses()[0]);
    end(&new);
    assert!(!path.exists());
}

#[test]
fn if_one_listener_fails_no_file_is_left() {
    let _guard = hang_guard();
    let (pool, path) = (pool(1), path());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let failed = Server::builder(&pool)
        .listen(path.as_path())
        .listen(taken.local_addr().unwrap())
        .serve(|_| Echo(Log::new()));
    assert!(matches!(failed, Err(Error::Os { .. })));
    assert!(!path.exists());
}

// --- from a supervisor ----------------------------------------------------------------------------

/// This test again, as a supervisor would start it: these sockets from 3 on, and the variables.
fn supervised(test: &str, sockets: Vec<OwnedFd>, names: &str) {
    let program = std::env::current_exe().unwrap();
    let script = "LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program).args([test, "--exact", "--nocapture", "--quiet"]);
    command.env("PACELINE_TEST_CHILD", test).env("LISTEN_FDS", sockets.len().to_string());
    command.env("LISTEN_FDNAMES", names).stdout(std::process::Stdio::null());
    // SAFETY: between fork and exec only calls are made that are safe in a signal handler.
    unsafe { command.pre_exec(move || put_from_three(&sockets)) };
    assert_eq!(command.status().unwrap().code(), Some(RAN));
}

/// First above all of their places, so that none is overwritten.
fn put_from_three(sockets: &[OwnedFd]) -> io::Result<()> {
    let put = |from: i32, to: i32| {
        // SAFETY: numbers only.
        if unsafe { libc::dup2(from, to) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    (100..).zip(sockets).try_for_each(|(to, socket)| put(socket.as_raw_fd(), to))?;
    (3..).zip(100..).take(sockets.len()).try_for_each(|(to, from)| put(from, to))
}

#[test]
fn a_supervisors_sockets_are_taken_once() {
    let _guard = hang_guard();
    let test = "files::a_supervisors_sockets_are_taken_once";
    if !is_child(test) {
        assert!(net::inherited().unwrap().is_empty(), "nobody has passed any");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (path, udp) = (path(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let unix = UnixListener::bind(&path).unwrap();
        supervised(test, vec![tcp.into(), unix.into(), udp.into()], "web:admin:datagrams");
        assert!(path.exists(), "it is the supervisor's");
        return fs::remove_file(path).unwrap();
    }
    let mut sockets = net::inherited().unwrap();
    assert!(net::inherited().unwrap().is_empty());
    let names: Vec<_> = sockets.iter().map(|socket| socket.name().to_owned()).collect();
    assert_eq!(names, ["web", "admin", "datagrams"]);
    let datagrams = OwnedFd::from(sockets.pop().unwrap());
    for fd in 3..6 {
        // SAFETY: a number only.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC, "{fd}");
    }
    let pool = pool(1);
    let mut builder = Server::builder(&pool);
    for socket in sockets {
        builder = builder.listen(socket);
    }
    let server = builder.serve(|_| Echo(Log::new())).unwrap();
    server.addresses().iter().for_each(answers);
    end(&server);
    // A socket of datagrams is told from one that listens.
    let refused = Server::builder(&pool).listen_on(datagrams).serve(|_| Echo(Log::new()));
    assert!(matches!(refused, Err(Error::Os { .. })));
    std::process::exit(RAN);
}

#[test]
fn what_a_supervisor_did_not_pass_is_an_error() {
    let _guard = hang_guard();
    let test = "files::what_a_supervisor_did_not_pass_is_an_error";
    if !is_child(test) {
        let no_socket = fs::File::open("/dev/null").unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        return supervised(test, vec![tcp.into(), no_socket.into()], "a:b");
    }
    let error = net::inherited().unwrap_err().to_string();
    assert!(error.starts_with("cannot inherit descriptor 4: "), "{error}");
    std::process::exit(RAN);
}

#[test]
fn addresses_may_be_given_in_any_form() {
    let _guard = hang_guard();
    let name = unique();
    let text = format!("unix:@{name}");
    let forms: [Listen; 4] = [
        text.as_str().into(),
        text.clone().into(),
        text.to_address().unwrap().into(),
        Listen::on(&text).max_connections(3),
    ];
    for listen in forms {
        let (_pool, server) = serve(listen).unwrap();
        assert_eq!(server.addresses()[0].to_string(), text);
        end(&server);
    }
}
