//! The few system calls that the load generator and the hand-written servers share.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Edge-triggered reads and writes, registered once for the life of a connection.
pub const EDGE: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
/// After one of these the peer is gone or going: read on until the end shows itself.
pub const GONE: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// The backlog that every server asks for.
const BACKLOG: i32 = 4096;

/// Turns the C convention of `-1` and `errno` into a `Result`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Listens with the common backlog.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // SAFETY: the descriptor is open; a second listen only changes the backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) })?;
    Ok(listener)
}

/// Accepts one connection, non-blocking and without delayed sends.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: accept4 takes null for an address that nobody wants.
    let fd = check(unsafe {
        libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags)
    })?;
    set_nodelay(fd)?;
    // SAFETY: accept4 has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub fn set_nodelay(fd: RawFd) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

fn set_option(fd: RawFd, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option's value is a live c_int of the size given.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })?;
    Ok(())
}

pub fn recv(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    check_size(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel only reads `bytes`.
    check_size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Lifts the limit on open descriptors to `wanted`, or as near to it as the process may.
pub fn raise_open_files(wanted: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    if limit.rlim_cur >= wanted || set_open_files(wanted, limit.rlim_max.max(wanted)).is_ok() {
        return Ok(());
    }
    set_open_files(limit.rlim_max, limit.rlim_max)
}

fn set_open_files(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `limit` is a live rlimit.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    Ok(())
}

/// Lets this thread's timed waits end on time instead of up to 50 µs late.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a plain integer and concerns this thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

pub fn thread_cpu() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID).expect("the thread's own clock is always readable")
}

/// CPU time of every thread of `pid` together, user and system, in nanoseconds' resolution.
pub fn process_cpu(pid: u32) -> io::Result<Duration> {
    let mut id: libc::clockid_t = 0;
    // SAFETY: `id` is a live clockid_t.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut id) } {
        0 => clock(id),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// CPU time of this process and of its children that have ended.
pub fn own_cpu() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(resource_use).iter().sum()
}

fn resource_use(whose: libc::c_int) -> Duration {
    // SAFETY: rusage is plain numbers, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live rusage.
    unsafe { libc::getrusage(whose, &mut usage) };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .sum()
}

fn clock(id: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec.
    check(unsafe { libc::clock_gettime(id, &mut time) })?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

pub fn terminate(pid: u32) {
    // SAFETY: kill takes plain integers; the caller owns this child, so the id is not reused.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGTERM) };
}

/// Asks the kernel to end the calling child when its parent dies: by a signal on which a server that
/// has children of its own ends them too. Safe between fork and exec.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: prctl with plain integers is async-signal-safe.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })?;
    Ok(())
}

/// An epoll instance. Any thread may add to it or change it while another waits.
pub struct Epoll(OwnedFd);

pub type Events = Vec<libc::epoll_event>;

pub fn events(capacity: usize) -> Events {
    vec![libc::epoll_event { events: 0, u64: 0 }; capacity]
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain integers in, a new descriptor out.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just created and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn add(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, token)
    }

    pub fn modify(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` lives through the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &mut event) })?;
        Ok(())
    }

    /// Waits without limit; returns how many of `events` are filled.
    pub fn wait(&self, events: &mut [libc::epoll_event]) -> io::Result<usize> {
        loop {
            // SAFETY: the kernel fills at most `events.len()` entries.
            let filled = check(unsafe {
                libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1)
            });
            match filled {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => return other.map(|n| n as usize),
            }
        }
    }

    /// Waits at most `limit`, exact to the nanosecond.
    pub fn wait_for(&self, events: &mut [libc::epoll_event], limit: Duration) -> io::Result<usize> {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: the kernel fills at most `events.len()` entries and reads one timespec.
        let filled = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as i32,
                &raw const limit,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match check_size(filled as isize) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            other => other,
        }
    }
}

/// Bytes that the C allocator has given out and not got back, in all its arenas.
pub fn heap_bytes() -> usize {
    // SAFETY: mallinfo2 takes nothing and returns plain numbers.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// What a connection may use of the kernel's memory: bytes in each direction, and in one segment.
#[derive(Clone, Copy)]
pub struct Buffers {
    pub bytes: i32,
    pub segment: i32,
}

/// Connects with such buffers; they must be set before.
pub fn connect_with(address: SocketAddr, buffers: Buffers) -> io::Result<TcpStream> {
    let SocketAddr::V4(address) = address else {
        return Err(io::Error::other("only IPv4 addresses are connected to"));
    };
    // SAFETY: socket takes plain integers.
    let fd =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: socket has just given us this descriptor.
    let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, buffers.bytes)?;
    set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, buffers.bytes)?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, buffers.segment)?;
    let name = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: `name` is a live sockaddr_in of the size given.
    check(unsafe {
        libc::connect(fd, (&raw const name).cast(), size_of_val(&name) as libc::socklen_t)
    })?;
    Ok(stream)
}
