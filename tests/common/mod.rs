//! What the tests share: guards against hanging, gates, children of the test process, books.
//!
//! No test asserts on how long something took. Whoever waits for something here waits for up to five
//! minutes, which no healthy run comes near on a machine that is busy with other things, and then ends
//! the process with the test's name.
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(unsafe_code, reason = "what std has no function for: masks, limits, signals, polling")]

mod skipped;

use paceline::Pool;
#[allow(unused_imports, reason = "as above")]
pub use skipped::skipped;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What nothing healthy comes near.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A drain that lasts as long as it has to: the hang guard is shorter.
pub const LONG: Duration = Duration::from_secs(600);

/// What a log has told, without its fields.
pub type Events = Arc<Mutex<Vec<(paceline::log::Component, paceline::log::Level, &'static str)>>>;

/// A log of these levels that nobody else reads, and what it tells.
pub fn log_of_events(levels: &str) -> (paceline::log::Log, Events) {
    let events = Events::default();
    let keep = Arc::clone(&events);
    let log = paceline::log::Log::builder().facade(false).levels(levels.parse().unwrap());
    let log = log.callback(move |record| {
        keep.lock().unwrap().push((record.component, record.level, record.event));
    });
    (log.build().unwrap(), events)
}

// --- guards ---------------------------------------------------------------------------------------

/// Ends the process, loudly, unless it is dropped in time.
pub struct HangGuard {
    _alive: mpsc::Sender<()>,
}

/// The first line of every test that could hang.
pub fn hang_guard() -> HangGuard {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let (alive, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("HANG: {test} has not ended after {PATIENCE:?}");
            std::process::abort();
        }
    });
    HangGuard { _alive: alive }
}

/// Waits until `condition` holds. It gives up before whoever waits for this process does, and says why.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE / 2, "this never came: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// For what has to come before a time is over, which other work of the machine may prevent: an attempt
/// with a tick of 50 ms and, while that is too short, others with longer ones.
#[track_caller]
pub fn with_longer_ticks(what: &str, mut attempt: impl FnMut(Duration) -> bool) {
    for tick in [50, 200, 1000, 5000].map(Duration::from_millis) {
        if attempt(tick) {
            return;
        }
    }
    panic!("however long it may take, this fails: {what}");
}

// --- gates and counters ---------------------------------------------------------------------------

/// Threads wait at it until it is opened, once and for all. A test that fails opens it, so that its
/// pool can end: declare gates after pools.
#[derive(Clone, Default)]
pub struct Gate {
    inner: Arc<GateInner>,
}

#[derive(Default)]
struct GateInner {
    open: Mutex<bool>,
    changed: Condvar,
    entered: AtomicU64,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Blocks until `open`.
    pub fn wait(&self) {
        self.inner.entered.fetch_add(1, SeqCst);
        let mut open = self.inner.open.lock().unwrap();
        while !*open {
            open = self.inner.changed.wait(open).unwrap();
        }
    }

    /// Comes, and blocks until `count` threads have come.
    pub fn wait_for(&self, count: u64) {
        self.inner.entered.fetch_add(1, SeqCst);
        self.until_entered(count);
    }

    pub fn open(&self) {
        *self.inner.open.lock().unwrap() = true;
        self.inner.changed.notify_all();
    }

    /// How many threads have come.
    pub fn entered(&self) -> u64 {
        self.inner.entered.load(SeqCst)
    }

    /// Waits until `count` threads have come.
    #[track_caller]
    pub fn until_entered(&self, count: u64) {
        until("the gate's visitors", || self.entered() >= count);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if thread::panicking() {
            self.open();
        }
    }
}

/// A shared count.
#[derive(Clone, Default, Debug)]
pub struct Count(Arc<AtomicU64>);

impl Count {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn up(&self) {
        self.add(1);
    }

    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, SeqCst);
    }

    /// Counts one more, and says how many that are.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, SeqCst) + 1
    }

    pub fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }

    #[track_caller]
    pub fn until(&self, count: u64) {
        until("a count", || self.get() >= count);
    }

    /// A value that counts its drop.
    pub fn on_drop(&self) -> OnDrop {
        OnDrop(self.clone())
    }
}

/// See [`Count::on_drop`].
#[derive(Debug)]
pub struct OnDrop(Count);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.up();
    }
}

/// Panics without the message that std prints, since it is what the test wants.
pub fn quiet_panic(message: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

// --- random numbers -------------------------------------------------------------------------------

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

// --- the end --------------------------------------------------------------------------------------

/// Shuts down; everything that was accepted must end, and the books must balance with nothing left.
#[track_caller]
pub fn finish(pool: &Pool) {
    let report = pool.shutdown(LONG);
    assert!(report.drained, "{report:?}, {:?}", pool.audit());
    assert!(report.stuck.is_empty(), "{report:?}");
    settled(pool);
}

/// The books of a pool whose threads have left.
#[track_caller]
pub fn settled(pool: &Pool) {
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
    assert_eq!(audit.in_flight, 0, "{audit:?}");
}

// --- what the kernel knows of this process ----------------------------------------------------------

/// A thread of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tid(pub u32);

impl Tid {
    pub fn current() -> Self {
        // SAFETY: no arguments, cannot fail.
        Tid(unsafe { libc::syscall(libc::SYS_gettid) } as u32)
    }

    pub fn name(self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/self/task/{}/comm", self.0)).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// A field of its status page. None if it has ended.
    pub fn status(self, field: &str) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/self/task/{}/status", self.0)).ok()?;
        let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().into());
        status.lines().find_map(value)
    }

    /// Times that it gave its CPU up by itself: it blocked, or slept.
    pub fn voluntary_switches(self) -> u64 {
        self.status("voluntary_ctxt_switches").map_or(0, |count| count.parse().unwrap())
    }
}

/// The threads of this process whose names begin so.
pub fn threads_named(prefix: &str) -> Vec<Tid> {
    let named = |tid: &Tid| tid.name().is_some_and(|name| name.starts_with(prefix));
    all_threads().into_iter().filter(named).collect()
}

pub fn all_threads() -> Vec<Tid> {
    let entries = fs::read_dir("/proc/self/task").unwrap();
    let tid = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    entries.map(|entry| Tid(tid(entry).to_str().unwrap().parse().unwrap())).collect()
}

/// How many descriptors are open, not counting the one that looks.
pub fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// The number that the next descriptor gets. Those that are open need not be numbered without gaps: whoever started the
/// tests may have left some.
pub fn lowest_free() -> u64 {
    fs::File::open("/dev/null").unwrap().as_raw_fd() as u64
}

/// Whether a descriptor is readable, or becomes so within so many milliseconds.
pub fn readable(fd: RawFd, milliseconds: libc::c_int) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, for the length of the call.
    unsafe { libc::poll(&mut entry, 1, milliseconds) == 1 }
}

/// Closes a TCP socket without a word to its peer, as when its machine has lost power. It takes a capability.
pub fn vanish(socket: impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads one number.
    let set = unsafe {
        let value = std::ptr::from_ref(&on).cast();
        let fd = socket.as_raw_fd();
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR, value, size_of_val(&on) as u32)
    };
    check(set).map(drop)
}

/// How much of what a Unix socket has sent its peer has not read yet; the kernel's own room counts, so only 0 tells
/// how many bytes it is.
pub fn unread(socket: &impl AsRawFd) -> libc::c_int {
    let mut count = 0;
    // SAFETY: the kernel writes one number.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut count) };
    assert_eq!(asked, 0, "{}", io::Error::last_os_error());
    count
}

/// The CPUs that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a cpu_set_t is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size that it is told.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert_eq!(result, 0);
    // SAFETY: the index is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Restricts the calling thread.
pub fn allow_cpus(cpus: &[usize]) {
    // SAFETY: a cpu_set_t is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: the index is below the set's size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is readable.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Sets a soft limit of this process and returns the one before.
pub fn limit(resource: libc::__rlimit_resource_t, soft: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable, and then readable.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, soft);
        assert_eq!(libc::setrlimit(resource, &limit), 0, "{}", io::Error::last_os_error());
        before
    }
}

// --- descriptors ----------------------------------------------------------------------------------

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn own(result: libc::c_int) -> OwnedFd {
    let fd = check(result).unwrap();
    // SAFETY: the call that gave `fd` has just opened it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Closes a descriptor by its number, which nothing owns.
pub fn close_number(number: i32) {
    // SAFETY: no pointers.
    check(unsafe { libc::close(number) }).unwrap();
}

/// A descriptor of any kind, read and written as a file.
#[derive(Debug)]
pub struct Fd(pub OwnedFd);

impl Fd {
    /// A pipe's two ends, the one for reading first; both are non-blocking.
    pub fn pipe() -> (Fd, Fd) {
        Self::pipe_with(libc::O_NONBLOCK)
    }

    pub fn blocking_pipe() -> (Fd, Fd) {
        Self::pipe_with(0)
    }

    fn pipe_with(flags: libc::c_int) -> (Fd, Fd) {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two numbers.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), flags | libc::O_CLOEXEC) }).unwrap();
        let [read, write] = ends.map(own);
        (Fd(read), Fd(write))
    }

    pub fn eventfd() -> Fd {
        // SAFETY: no pointers.
        Fd(own(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }))
    }

    /// Readable when `signal` is pending; every thread must block it.
    pub fn signalfd(signal: libc::c_int) -> Fd {
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: the set is initialised, then read.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            Fd(own(libc::signalfd(-1, &set, flags)))
        }
    }

    /// A second descriptor of the same open file.
    pub fn duplicate(&self) -> Fd {
        Fd(self.0.try_clone().unwrap())
    }

    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the buffer's length.
        let count = unsafe { libc::read(self.number(), buffer.as_mut_ptr().cast(), buffer.len()) };
        check(count as libc::c_int).map(|count| count as usize)
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the kernel reads at most the slice's length.
        let count = unsafe { libc::write(self.number(), bytes.as_ptr().cast(), bytes.len()) };
        check(count as libc::c_int).map(|count| count as usize)
    }

    /// Reads until there is no more; says how many bytes there were.
    pub fn drain(&self) -> usize {
        let mut total = 0;
        let mut buffer = [0; 4096];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return total,
                Ok(count) => total += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return total,
                Err(error) => panic!("read: {error}"),
            }
        }
    }
}

impl std::os::fd::AsFd for Fd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads until there is no more; says how many bytes there were.
pub fn drain(mut from: impl Read) -> usize {
    let mut total = 0;
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return total,
            Ok(count) => total += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return total,
            Err(error) => panic!("read: {error}"),
        }
    }
}

// --- children -------------------------------------------------------------------------------------

/// Tells a child which test it is.
const CHILD: &str = "PACELINE_TEST_CHILD";

/// What a child ends with that ran its test to the end; a test that is not found ends with 0.
pub const RAN: i32 = 42;

/// Runs `body` in a forked child, which ends by leaving it; 0 if it did not panic.
pub fn forked(body: impl FnOnce()) -> i32 {
    // SAFETY: the child runs only code that this test means to test there.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: without it a child that hangs would outlive the test.
        unsafe { libc::alarm(PATIENCE.as_secs() as u32 / 2) };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err();
        // Destructors of statics and atexit handlers run as in any process that ends.
        std::process::exit(i32::from(panicked));
    }
    let mut status = 0;
    // SAFETY: the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + libc::WTERMSIG(status) }
}

/// Runs `body` in a process of its own, where it can count threads and descriptors, set limits and
/// fork without meeting other tests. The child is this test again. Called by the test itself, since
/// the closure's type is what tells its name.
#[track_caller]
pub fn in_child<F: FnOnce()>(body: F) {
    in_child_blocking(&[], body);
}

/// As [`in_child`], with signals that every thread of the child blocks.
#[track_caller]
pub fn in_child_blocking<F: FnOnce()>(signals: &'static [libc::c_int], body: F) {
    let test = test_of::<F>();
    if is_child(test) {
        body();
        std::process::exit(RAN);
    }
    let child = start_child(test, signals, Stdio::null());
    wait_for_child(test, child);
}

/// `binary::the_test::{{closure}}`: the test in whose body a closure stands.
fn test_of<F>() -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::{{closure}}").expect("a closure");
    path.split_once("::").expect("a test of this binary").1
}

pub fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|name| name == test)
}

/// As [`in_child`]; what the library has said on the child's standard error stream, in lines.
#[track_caller]
pub fn said_in_child<F: FnOnce()>(body: F) -> Vec<String> {
    let test = test_of::<F>();
    if is_child(test) {
        body();
        std::process::exit(RAN);
    }
    let child = child_command(test, &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let told = child.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(RAN), "the child of {test}: {said}");
    said.lines().filter(|line| line.starts_with("paceline: ")).map(str::to_owned).collect()
}

/// Starts this test again as a child.
pub fn start_child(test: &str, signals: &'static [libc::c_int], output: Stdio) -> Child {
    child_command(test, signals).stdout(output).spawn().unwrap()
}

fn child_command(test: &str, signals: &'static [libc::c_int]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--quiet"]).env(CHILD, test);
    // SAFETY: between fork and exec only calls are made that are safe in a signal handler.
    unsafe {
        command.pre_exec(move || {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &signal in signals {
                libc::sigaddset(&mut set, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut())).map(drop)
        });
    }
    command
}

/// Waits for a child's end; kills it if it hangs.
#[track_caller]
pub fn wait_for_child(test: &str, mut child: Child) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(RAN), "the child of {test} ended with {status}");
            return;
        }
        if start.elapsed() >= PATIENCE {
            child.kill().unwrap();
            panic!("HANG: the child of {test} has not ended after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
