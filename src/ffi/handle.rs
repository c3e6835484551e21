//! Handles: registered descriptors and periodic timers.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Failure, Out, Result, call, callback, nanos, out, usable};
use super::callback::{
    PACE_FLOW_AGAIN, PACE_FLOW_DONE, PACE_FLOW_PAUSE, PACE_FLOW_WAIT, PACE_READY_ERROR,
    PACE_READY_HANG_UP, PACE_READY_PRIORITY, PACE_READY_READ_CLOSED, PACE_READY_READABLE,
    PACE_READY_WRITABLE, pace_drop_fn, pace_handle_t, pace_ready_fn, pace_tick_fn,
};
use super::owner::{Owner, Registration, pair};
use super::pool::pace_pool_t;
use super::sized::{self, InOut};
use super::status::*;
use crate::pool::{Activity, Key, next_multiple};
use crate::trace::{self, Name};
use crate::{Error, Flow, Handle, HandleOptions, Interest, Ready};
use core::any::Any;
use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd, RawFd};

/// The handler is called when there is data to read, and when the peer sends no more.
pub const PACE_INTEREST_READABLE: u32 = 1;
/// The handler is called for urgent data of a TCP socket, and for a change of a sysfs or cgroup file.
pub const PACE_INTEREST_PRIORITY: u32 = 2;
/// The handler is called when there is room to write, and when a connection attempt has ended.
pub const PACE_INTEREST_WRITABLE: u32 = 4;

/// How a descriptor is waited for. Call pace_handle_options_init() first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_handle_options_t {
    /// The size of the struct in bytes, as pace_handle_options_init() sets it.
    pub struct_size: u32,
    /// PACE_INTEREST_ bits. Default: reading and writing. Errors and hang-ups are always reported.
    pub interest: u32,
    /// Level-triggered: the handler is called again as long as the descriptor is ready, so it need
    /// not read until EAGAIN, and the descriptor may be in blocking mode. Costs a system call per
    /// event. Default: edge-triggered.
    pub level: bool,
    /// The handler may block: another thread is called to lead before each run.
    pub may_block: bool,
    /// Begin paused, as pace_handle_pause() does. Default false.
    pub paused: bool,
    /// Room for later versions; zero.
    pub reserved: u8,
}

/// Fills options with the defaults: pace_handle_options_init(&options, sizeof options).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_handle_options_init(
    options: InOut<pace_handle_options_t>,
    size: usize,
) -> pace_status_t {
    let defaults = pace_handle_options_t {
        struct_size: 0,
        interest: PACE_INTEREST_READABLE | PACE_INTEREST_WRITABLE,
        level: false,
        may_block: false,
        paused: false,
        reserved: 0,
    };
    call(|| options.init(size, defaults, "options"))
}

/// Calls `ready` whenever `fd` becomes ready; the first call reports what is ready already. `options`
/// of NULL means edge-triggered, for reading and writing. An edge-triggered `fd` must be non-blocking.
///
/// The descriptor stays the caller's: close it after `drop` has run, or in `drop`. If it is closed before, this handle is
/// closed as soon as another descriptor of its number is registered: `drop` runs then, and the log has a warning,
/// pool.closed_registered.
///
/// PACE_EINVAL if `fd` is negative, or in blocking mode; PACE_EOS if it cannot be waited for (regular
/// files cannot) or is registered already; PACE_EFULL when all max_handles are in use;
/// PACE_ESHUTDOWN; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_register(
    pool: Option<&pace_pool_t>,
    fd: i32,
    options: *const pace_handle_options_t,
    ready: pace_ready_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    handle: Option<&mut MaybeUninit<pace_handle_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let borrowed = Borrowed::new(fd)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let call = callback(ready, "ready")?;
        let to = out(handle, "handle")?;
        let (registration, owner) = pair(user_data, drop);
        let made = pool.pool.register_activity(borrowed, options.lent(), false, |_| {
            Box::new(Descriptor { owner, call, fd, handle: NO_HANDLE })
        });
        conclude(made, &registration, to).map(|()| registration.keep())
    })
}

/// Calls `tick` every `period_ns`, first after one period: 1000 (1 µs) to 100 years. Runs that were
/// missed are skipped. The handle is deregistered as any other.
///
/// PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_every(
    pool: Option<&pace_pool_t>,
    period_ns: u64,
    tick: pace_tick_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    handle: Option<&mut MaybeUninit<pace_handle_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let call = callback(tick, "tick")?;
        let to = out(handle, "handle")?;
        let (registration, owner) = pair(user_data, drop);
        let made = pool.pool.register_periodic(nanos(period_ns), false, |period, due| {
            Box::new(Periodic { owner, call, handle: NO_HANDLE, period, due })
        });
        conclude(made, &registration, to).map(|()| registration.keep())
    })
}

/// Holds further calls of the handler back; what arrives meanwhile is kept, and delivered after
/// pace_handle_resume(). The handler of a level-triggered descriptor is not called at all. That of an
/// edge-triggered one is still told of an error or a hang-up, once in each pause. A run that has begun is not
/// interrupted.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_handle_pause(
    pool: Option<&pace_pool_t>,
    handle: pace_handle_t,
) -> pace_status_t {
    call(|| with(usable(pool)?, handle, Handle::pause)?.map_err(Failure::from))
}

/// Ends a pause, also one that the callback, which runs now, asks for by PACE_FLOW_PAUSE when it returns. What
/// was kept is delivered. Of this and pace_handle_pause(), by all threads, the last call counts.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_handle_resume(
    pool: Option<&pace_pool_t>,
    handle: pace_handle_t,
) -> pace_status_t {
    call(|| with(usable(pool)?, handle, Handle::resume)?.map_err(Failure::from))
}

/// Deregisters. When this returns PACE_OK, the handler does not run and never will, and `drop` has
/// run. From outside the pool's threads it waits for a handler that is running.
///
/// PACE_ECLOSING: the handler runs, and this was called inside a handler of the same pool (waiting
/// could deadlock), or another thread deregisters the handle already, or its event is out. It
/// closes when the handler returns, or the event is completed, and `drop` runs then. PACE_ESTALE: it
/// is closed already.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_handle_deregister(
    pool: Option<&pace_pool_t>,
    handle: pace_handle_t,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        match find(pool, handle)?.close_and_drop() {
            Err(Error::Stale { .. }) if with(pool, handle, Handle::is_open)? => {
                Err(Error::Closing.into())
            }
            other => other.map_err(Failure::from),
        }
    })
}

/// Whether a handle is registered still. An id whose handle is gone gives false.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_handle_is_open(
    pool: Option<&pace_pool_t>,
    handle: pace_handle_t,
    is_open: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = out(is_open, "is_open")?;
        to.set(with(pool, handle, Handle::is_open).unwrap_or(false));
        Ok(())
    })
}

/// The bits are the core's own.
const _: () = {
    assert!(PACE_READY_READABLE == Ready::READABLE.bits() as u32);
    assert!(PACE_READY_PRIORITY == Ready::PRIORITY.bits() as u32);
    assert!(PACE_READY_WRITABLE == Ready::WRITABLE.bits() as u32);
    assert!(PACE_READY_ERROR == Ready::ERROR.bits() as u32);
    assert!(PACE_READY_HANG_UP == Ready::HANG_UP.bits() as u32);
    assert!(PACE_READY_READ_CLOSED == Ready::READ_CLOSED.bits() as u32);
    assert!(PACE_INTEREST_READABLE == Interest::READABLE.bits() as u32);
    assert!(PACE_INTEREST_PRIORITY == Interest::PRIORITY.bits() as u32);
    assert!(PACE_INTEREST_WRITABLE == Interest::WRITABLE.bits() as u32);
};

const NO_HANDLE: pace_handle_t = pace_handle_t { id: 0 };
const STALE: Failure = Failure::plain(PACE_ESTALE, c"this handle is closed, or never was one");

pub(super) fn name(key: Key) -> pace_handle_t {
    pace_handle_t { id: key.token() + 1 }
}

pub(super) fn key(id: u64) -> Option<Key> {
    id.checked_sub(1).map(Key::from_token)
}

fn find(pool: &pace_pool_t, handle: pace_handle_t) -> Result<Handle<()>> {
    key(handle.id).and_then(|key| pool.pool.handle_by_key(key)).ok_or(STALE)
}

/// Uses a handle that C goes on to name.
fn with<R>(
    pool: &pace_pool_t,
    handle: pace_handle_t,
    user: impl FnOnce(&Handle<()>) -> R,
) -> Result<R> {
    let handle = find(pool, handle)?;
    let result = user(&handle);
    handle.detach();
    Ok(result)
}

/// What becomes of a registration. One that failed when its handler had run already, because the pool
/// is shut down at this moment, has succeeded, and is over.
fn conclude<S>(
    made: crate::Result<Handle<S>>,
    registration: &Registration,
    to: Out<pace_handle_t>,
) -> Result {
    match made {
        Ok(handle) => handle.detach(),
        Err(error) if registration.give_back() => return Err(error.into()),
        Err(_) => {}
    }
    to.set(pace_handle_t { id: registration.id() });
    Ok(())
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_handle_options_t {
    const FIRST: usize = 12;
    const NAME: &'static str = "pace_handle_options_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("level", offset_of!(pace_handle_options_t, level)),
        ("may_block", offset_of!(pace_handle_options_t, may_block)),
        ("paused", offset_of!(pace_handle_options_t, paused)),
    ];
    const RESERVED: &'static [usize] = &[offset_of!(pace_handle_options_t, reserved)];
}

/// # Safety
///
/// `options` is NULL or a struct as its first field says.
pub(super) unsafe fn options_of(options: *const pace_handle_options_t) -> Result<HandleOptions> {
    if options.is_null() {
        return Ok(HandleOptions::default());
    }
    // SAFETY: as the caller promises.
    let options = unsafe { sized::read(options, "options") }?;
    let mut made = HandleOptions::default().interest(interest(options.interest)?);
    if options.level {
        made = made.level();
    }
    if options.may_block {
        made = made.may_block();
    }
    if options.paused {
        made = made.paused();
    }
    Ok(made)
}

fn interest(bits: u32) -> Result<Interest> {
    match u8::try_from(bits) {
        Ok(small @ 0..=7) => Ok(Interest::from_bits(small)),
        _ => Err(Failure::invalid("interest", bits, "PACE_INTEREST_ bits, 0 to 7")),
    }
}

/// A descriptor of the caller's.
pub(super) struct Borrowed(RawFd);

impl Borrowed {
    pub(super) fn new(fd: i32) -> Result<Self> {
        if fd < 0 { Err(Failure::invalid("fd", fd, "0 or more")) } else { Ok(Self(fd)) }
    }
}

impl AsFd for Borrowed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: not −1. The header demands that it stays open; if it does not, system calls fail.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// What a handler of C's has answered.
fn flow(answer: i32) -> Flow {
    match answer {
        PACE_FLOW_WAIT => Flow::Wait,
        PACE_FLOW_AGAIN => Flow::Again,
        PACE_FLOW_PAUSE => Flow::Pause,
        PACE_FLOW_DONE => Flow::Done,
        // Caught by the worker, which counts it and closes the handle; no hook prints anything.
        _ => std::panic::resume_unwind(Box::new("a handler's answer is no PACE_FLOW_ number")),
    }
}

type ReadyFn = unsafe extern "C" fn(*mut c_void, pace_handle_t, i32, u32) -> i32;
type TickFn = unsafe extern "C" fn(*mut c_void, pace_handle_t) -> i32;

/// A descriptor's side in its slot.
struct Descriptor {
    owner: Owner,
    call: ReadyFn,
    fd: RawFd,
    handle: pace_handle_t,
}

impl Activity for Descriptor {
    fn run(&mut self, ready: Ready) -> Flow {
        let Some(data) = self.owner.enter() else { return Flow::Done };
        // SAFETY: as the header demands, the handler takes what came with it.
        flow(unsafe { (self.call)(data, self.handle, self.fd, ready.bits().into()) })
    }

    fn name(&self) -> Name {
        trace::of_code(self.call as *const () as usize)
    }

    fn let_to(&mut self, key: Key) {
        self.handle = name(key);
        self.owner.is_called(self.handle.id);
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.fd)
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// A periodic timer's side in its slot.
struct Periodic {
    owner: Owner,
    call: TickFn,
    handle: pace_handle_t,
    period: u64,
    due: u64,
}

impl Activity for Periodic {
    fn run(&mut self, _: Ready) -> Flow {
        let Some(data) = self.owner.enter() else { return Flow::Done };
        // SAFETY: as the header demands, the handler takes what came with it.
        flow(unsafe { (self.call)(data, self.handle) })
    }

    fn name(&self) -> Name {
        trace::of_code(self.call as *const () as usize)
    }

    fn let_to(&mut self, key: Key) {
        self.handle = name(key);
        self.owner.is_called(self.handle.id);
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }

    fn next_deadline(&mut self, now: u64) -> u64 {
        self.due = next_multiple(self.due, self.period, now);
        self.due
    }
}
