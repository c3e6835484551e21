//! Threads of the pool, straight from pthreads.
//!
//! `std::thread::Builder` aborts the process when the new thread finds no memory for its signal
//! stack, and it lets signals reach the thread before it could block them. Here a failure is an
//! error with the system's reason, and a thread runs its first instruction with signals blocked.
//!
//! A thread announces its end in a futex word, so that waiting for it can have a deadline on the
//! monotonic clock: `pthread_timedjoin_np` only knows the wall clock, which may jump.
#![allow(unsafe_code, reason = "pthreads, signal masks and prctl(2)")]

use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sys::clock;
use crate::sys::futex::Futex;
use crate::sys::unconfined::Inherited;
use core::ffi::{c_int, c_ulong, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The kernel keeps 16 bytes of a name, the last of them 0.
const NAME_LEN: usize = 16;

/// What `std` gives its threads.
const DEFAULT_STACK: usize = 2 << 20;

/// The kernel may end a timed wait this much late in order to save a wake-up. Its default, 50 µs, is
/// several ticks of a timer wheel and a quarter of a watch period.
const TIMER_SLACK_NS: c_ulong = 1;

/// The signals that a thread causes by itself, and the profiler's: blocking the former would turn a
/// fault into a silent kill, and every other signal belongs to the host's threads.
const OPEN_SIGNALS: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGPROF,
];

/// `ended` turns from RUNNING to ENDED once, when the closure has returned.
const RUNNING: u32 = 0;
const ENDED: u32 = 1;

/// Everything that a new thread needs; it travels through `pthread_create` as one pointer.
struct Start {
    name: [u8; NAME_LEN],
    ended: Arc<Futex>,
    body: Box<dyn FnOnce() + Send>,
    host: Inherited,
}

/// A running thread. Dropping it detaches the thread. In a forked child, where the thread does not
/// exist, it must be forgotten.
pub(crate) struct JoinHandle {
    /// None once it has been joined.
    thread: Option<libc::pthread_t>,
    ended: Arc<Futex>,
}

// SAFETY: a pthread_t names the thread for the whole process.
unsafe impl Send for JoinHandle {}
// SAFETY: a shared handle only reads an atomic word.
unsafe impl Sync for JoinHandle {}

/// Starts a thread that runs `body`: named (cut to 15 bytes), with a stack of at least `stack_size`
/// bytes (default 2 MiB) and a guard page, with all signals blocked that it does not cause itself,
/// and with timed waits that end as exactly as the kernel can. A panic in `body` ends the thread and
/// nothing else.
pub(crate) fn spawn(
    name: &str,
    stack_size: Option<usize>,
    body: Box<dyn FnOnce() + Send>,
) -> io::Result<JoinHandle> {
    #[cfg(test)]
    injected::failure()?;
    let attributes = Attributes::with_stack(stack_size.unwrap_or(DEFAULT_STACK))?;
    let ended = Arc::new(Futex::new(RUNNING));
    let blocked = BlockedSignals::new()?;
    let host = Inherited::of_caller(blocked.before);
    let start = Start { name: cut(name), ended: ended.clone(), body, host };
    let thread = create(&attributes, Box::new(start))?;
    Ok(JoinHandle { thread: Some(thread), ended })
}

/// What the kernel has counted for the calling thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Processor time in nanoseconds, user and system.
    pub(crate) cpu: u64,
    /// Times that it gave the processor up of its own accord, because it waited for something.
    pub(crate) voluntary_switches: u64,
}

/// One system call, about 0.3 µs.
pub(crate) fn usage() -> Usage {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for one rusage; the call cannot fail for the calling thread, and
    // zeroes are a valid answer if it did.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let nanos =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        cpu: nanos(usage.ru_utime) + nanos(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
    }
}

/// The kernel's number of the calling thread.
pub(crate) fn id() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Whether a thread of this process has this kernel number.
pub(crate) fn is_alive(id: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody; it is only looked whether it could be.
    id != 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, 0) } == 0
}

/// Processor time in nanoseconds of the thread of this process that has this number. None: there is none.
pub(crate) fn cpu_time_of(id: u32) -> Option<u64> {
    /// Of one thread, as the scheduler counts: how the kernel writes its clocks of threads.
    const PER_THREAD_SCHED: i32 = 6;
    let clock = (!i32::try_from(id).ok()? << 3) | PER_THREAD_SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; a number that names no thread is refused.
    let refused = unsafe { libc::clock_gettime(clock, &mut time) } != 0;
    (!refused).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

impl JoinHandle {
    /// Waits until the thread is gone.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            // SAFETY: the thread was never detached, and taking it out means joining it once.
            let error = unsafe { libc::pthread_join(thread, ptr::null_mut()) };
            debug_assert_eq!(error, 0, "a thread cannot join itself");
        }
    }

    /// Waits until the thread is gone, or gives the handle back at `deadline_ns` (monotonic). The
    /// destructors of its thread-local values run after its body, and are waited for without limit.
    /// If one of these calls this for its own thread, it gets the handle back at once.
    pub(crate) fn join_until(self, deadline_ns: u64) -> Result<(), Self> {
        if self.is_current() {
            return Err(self);
        }
        while !self.has_ended() {
            let left = deadline_ns.saturating_sub(clock::now());
            if left == 0 {
                return Err(self);
            }
            self.ended.wait(RUNNING, Some(Duration::from_nanos(left)));
        }
        self.join();
        Ok(())
    }

    fn is_current(&self) -> bool {
        // SAFETY: no arguments; a pthread_t that was neither joined nor detached names its thread.
        self.thread
            .is_some_and(|thread| unsafe { libc::pthread_equal(thread, libc::pthread_self()) != 0 })
    }

    /// Lets the thread end by itself.
    pub(crate) fn detach(self) {
        drop(self);
    }

    /// Whether the thread's body has returned.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release in `run`; all that the body did happened before.
        self.ended.load(Acquire) == ENDED
    }
}

impl Drop for JoinHandle {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // SAFETY: the thread was neither joined nor detached before.
            unsafe { libc::pthread_detach(thread) };
        }
    }
}

fn create(attributes: &Attributes, start: Box<Start>) -> io::Result<libc::pthread_t> {
    let start = Box::into_raw(start);
    let mut thread = MaybeUninit::uninit();
    // SAFETY: `run` takes `start` over if, and only if, the call succeeds.
    let error =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), &attributes.0, run, start.cast()) };
    if let Err(error) = check(error) {
        // SAFETY: no thread was created, so the box is still this function's.
        drop(unsafe { Box::from_raw(start) });
        return Err(error);
    }
    // SAFETY: written by the call that succeeded.
    Ok(unsafe { thread.assume_init() })
}

/// The first function of every thread.
extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `create` made this pointer from a box and gave it to this thread alone.
    let Start { name, ended, body, host } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    // SAFETY: `cut` ends the name with a 0. It names the calling thread, which exists.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr().cast()) };
    // SAFETY: changes how late this thread's own timed waits may end, and nothing else.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) };
    host.keep();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        mem::forget(payload); // its destructor might panic, and nothing is left to contain that
    }
    // Release: pairs with the Acquire in `has_ended`.
    ended.store(ENDED, Release);
    ended.wake(i32::MAX);
    ptr::null_mut()
}

/// The longest prefix of whole characters that fits, ended by a 0.
fn cut(name: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    let fits = |&end: &usize| name.is_char_boundary(end);
    let len = (0..NAME_LEN.min(name.len() + 1)).rev().find(fits).unwrap_or(0);
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    bytes
}

struct Attributes(libc::pthread_attr_t);

impl Attributes {
    fn with_stack(size: usize) -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: initialises what it is given.
        check(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: the call above succeeded.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        // SAFETY: no arguments of consequence; unknown names answer -1.
        let (page, least) = unsafe {
            (libc::sysconf(libc::_SC_PAGESIZE), libc::sysconf(libc::_SC_THREAD_STACK_MIN))
        };
        let size = size.max(usize::try_from(least).unwrap_or(0));
        let size = size.checked_next_multiple_of(page.max(1) as usize).unwrap_or(size);
        // SAFETY: the attributes are initialised.
        check(unsafe { libc::pthread_attr_setstacksize(&mut attributes.0, size) })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `with_stack`, and destroyed once.
        unsafe { libc::pthread_attr_destroy(&mut self.0) };
    }
}

/// Creates a thread by `create` that blocks the signals that those of a pool do: they are for the program,
/// or for who watches for them.
pub(crate) fn without_signals<R>(create: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    let _blocked = BlockedSignals::new()?;
    create()
}

/// While this lives the calling thread, and any thread that it creates, blocks all signals but
/// OPEN_SIGNALS.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises `set`, and pthread_sigmask `before` if it succeeds.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for signal in OPEN_SIGNALS {
                libc::sigdelset(set.as_mut_ptr(), signal);
            }
            check(libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), before.as_mut_ptr()))?;
            Ok(Self { before: before.assume_init() })
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is the mask that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// pthread functions answer with the error number itself.
fn check(error: c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes thread creation fail in tests as it does when the process has reached its limit. The
/// setting belongs to the thread that creates, so tests that run side by side do not meet.
#[cfg(test)]
#[cfg_attr(loom, allow(dead_code, reason = "no model makes it fail"))]
pub(crate) mod injected {
    use std::{cell::Cell, io};

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Lets `spawns` more calls of `spawn` on this thread succeed; the one after them fails, once.
    pub(crate) fn fail_after(spawns: usize) {
        LEFT.set(Some(spawns));
    }

    pub(super) fn failure() -> io::Result<()> {
        let left = LEFT.take();
        LEFT.set(left.and_then(|left| left.checked_sub(1)));
        match left {
            Some(0) => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const MILLISECOND: u64 = 1_000_000;

    fn spawn_ok(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle {
        spawn(name, None, Box::new(body)).expect("a thread")
    }

    /// Runs `ask` on a new thread and returns its answer.
    fn on_a_thread<T: Send + 'static>(name: &str, ask: fn() -> T) -> T {
        let (answer, answered) = channel();
        spawn_ok(name, move || answer.send(ask()).unwrap()).join();
        answered.recv().unwrap()
    }

    fn own_name() -> String {
        std::fs::read_to_string("/proc/thread-self/comm").unwrap()
    }

    /// The blocked signals of the calling thread, as the kernel sees them.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_bears_its_name_cut_at_a_character() {
        assert_eq!(on_a_thread("pace-7", own_name), "pace-7\n");
        assert_eq!(on_a_thread("a-name-of-many-bytes", own_name), "a-name-of-many-\n");
        assert_eq!(on_a_thread("fourteen-bytesé", own_name), "fourteen-bytes\n");
    }

    #[test]
    fn only_the_open_signals_reach_a_thread_and_the_callers_mask_stays() {
        let before = blocked();
        let inside = on_a_thread("mask", blocked);
        for signal in 1..32 {
            let never_blockable = [libc::SIGKILL, libc::SIGSTOP].contains(&signal);
            let open = never_blockable || OPEN_SIGNALS.contains(&signal);
            assert_eq!(inside >> (signal - 1) & 1 == 0, open, "signal {signal}");
        }
        assert_eq!(blocked(), before);
    }

    #[test]
    fn timed_waits_of_a_thread_are_exact() {
        // SAFETY: reads a setting of the calling thread.
        let slack = on_a_thread("slack", || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) });
        assert_eq!(slack as c_ulong, TIMER_SLACK_NS);
    }

    #[test]
    fn a_join_with_a_deadline_gives_the_handle_back() {
        let (go, gone) = channel();
        let handle = spawn_ok("late", move || gone.recv().unwrap());
        let deadline = clock::now() + MILLISECOND;
        let handle = handle.join_until(deadline).expect_err("it still runs");
        assert!(clock::now() >= deadline && !handle.has_ended());
        go.send(()).unwrap();
        assert!(handle.join_until(u64::MAX).is_ok());
    }

    #[test]
    fn a_panic_ends_one_thread_only() {
        // resume_unwind: a panic without the hook's message.
        spawn_ok("panic", || std::panic::resume_unwind(Box::new("contained"))).join();
    }

    #[test]
    fn a_detached_thread_goes_on() {
        let (done, finished) = channel();
        spawn_ok("detached", move || done.send(()).unwrap()).detach();
        finished.recv().unwrap();
    }

    #[test]
    fn the_stack_is_as_large_as_asked() {
        fn dig(depth: usize) -> usize {
            let frame = std::hint::black_box([depth as u8; 16 << 10]);
            if depth == 0 { 0 } else { dig(depth - 1) + usize::from(frame[0] == depth as u8) }
        }
        let body = || assert_eq!(std::hint::black_box(dig(400)), 400);
        spawn("deep", Some(32 << 20), Box::new(body)).unwrap().join();
        spawn("shallow", Some(1), Box::new(|| {})).unwrap().join();
    }

    /// Goal: a stack that cannot be had is an error, and the body is dropped, not leaked.
    #[test]
    fn a_failed_spawn_drops_its_body() {
        let held = std::sync::Arc::new(());
        let body = held.clone();
        let body = Box::new(move || drop(body));
        let result = spawn("huge", Some(usize::MAX / 4), body);
        assert!(result.is_err());
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
    }

    #[test]
    fn an_injected_failure_strikes_once() {
        injected::fail_after(1);
        let results = [(); 3].map(|()| spawn("nth", None, Box::new(|| {})));
        let codes = results.map(|result| result.err().and_then(|error| error.raw_os_error()));
        assert_eq!(codes, [None, Some(libc::EAGAIN), None]);
    }
}
