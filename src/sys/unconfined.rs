//! What a thread of a pool gives to what it starts: the signals that are blocked, and the CPUs that may be used.
//!
//! A thread of a pool blocks the signals that are for the program, and may be pinned to one CPU. Programs and threads
//! that it starts would inherit both: a program that ignores SIGTERM, and threads that share one CPU. So a thread of a
//! pool knows what the thread had that built the pool. A forked child has that again (`pthread_atfork`, where a shell or
//! `exec` may follow); `posix_spawn` and `pthread_create` call nothing, so whoever uses them is *unconfined* meanwhile.
//!
//! Signals that are blocked for a descriptor of ours ([`super::signalfd`]) are let through in what is started: nobody
//! there reads that descriptor.
#![allow(unsafe_code, reason = "signal masks, sched_setaffinity(2), pthread_atfork(3)")]

use crate::sync::atomic::Ordering::Relaxed;
use core::cell::Cell;
use core::mem::{MaybeUninit, size_of};
use core::ptr;
// Of the process, not of a model: no race of ours hangs on them.
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Signals that are blocked for a descriptor: bit n - 1 is signal n.
static WATCHED: AtomicU64 = AtomicU64::new(0);
/// The handler of forks is there.
static REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// On a thread of a pool: what the thread had that built it.
    static HOST: Cell<Option<Inherited>> = const { Cell::new(None) };
    /// What an unconfined thread has otherwise, and how many [`Unconfined`] it has.
    static OWN: Cell<(u32, Option<Inherited>)> = const { Cell::new((0, None)) };
}

/// What threads and programs inherit from the thread that starts them.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    blocked: libc::sigset_t,
    /// None: it could not be read, as on a kernel that counts more CPUs than the mask of the C library.
    cpus: Option<libc::cpu_set_t>,
}

impl Inherited {
    /// Of the calling thread, which blocked these signals until now.
    pub(super) fn of_caller(blocked: libc::sigset_t) -> Self {
        HOST.get().unwrap_or_else(|| Self { blocked, cpus: cpus() })
    }

    /// By a new thread of a pool, before all else.
    pub(super) fn keep(self) {
        HOST.set(Some(self));
        if !REGISTERED.swap(true, Relaxed) {
            // SAFETY: the handler makes system calls for the calling thread, and nothing else.
            let error = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            // Without memory for it the next thread tries again.
            REGISTERED.store(error == 0, Relaxed);
        }
    }

    fn of_thread() -> Self {
        let mut blocked = MaybeUninit::uninit();
        // SAFETY: without a new set the old one is written, and the call cannot fail.
        let blocked = unsafe {
            libc::sigemptyset(blocked.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), blocked.as_mut_ptr());
            blocked.assume_init()
        };
        Self { blocked, cpus: cpus() }
    }

    fn without_watched(mut self) -> Self {
        let watched = WATCHED.load(Relaxed);
        for signal in (1..=64).filter(|signal| watched >> (signal - 1) & 1 == 1) {
            // SAFETY: the set is initialised, and a number that it does not have is an error.
            unsafe { libc::sigdelset(&raw mut self.blocked, signal) };
        }
        self
    }

    fn apply(&self) {
        if let Some(cpus) = &self.cpus {
            // SAFETY: a set of so many bytes. It fails if none of its CPUs may be used any more: then nothing changes.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) };
        }
        // SAFETY: an initialised set, for the calling thread.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.blocked, ptr::null_mut())
        };
    }
}

fn cpus() -> Option<libc::cpu_set_t> {
    let mut cpus = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: a set of so many bytes, all of them zero, which is a value of it.
    unsafe {
        let size = size_of::<libc::cpu_set_t>();
        (libc::sched_getaffinity(0, size, cpus.as_mut_ptr()) == 0).then(|| cpus.assume_init())
    }
}

/// Only system calls and plain words: the other threads are gone, and may have held any lock.
extern "C" fn in_child() {
    let _ = HOST.try_with(|host| {
        if let Some(host) = host.take() {
            host.without_watched().apply();
        }
    });
}

/// These are blocked for a descriptor from now on.
pub(super) fn note_watched(signals: &[i32]) {
    let bits = signals.iter().fold(0, |bits, signal| bits | 1 << (signal - 1));
    WATCHED.fetch_or(bits, Relaxed);
}

/// While it lives, the calling thread has the signals and CPUs of the thread that built its pool. On other threads it
/// does nothing.
pub(crate) struct Unconfined {
    /// It is the calling thread's.
    _own: core::marker::PhantomData<*const ()>,
}

impl Unconfined {
    pub(crate) fn begin() -> Self {
        if let Some(host) = HOST.get() {
            let (depth, own) = OWN.get();
            OWN.set((depth + 1, own.or_else(|| Some(Inherited::of_thread()))));
            host.without_watched().apply();
        }
        Self { _own: core::marker::PhantomData }
    }
}

impl Drop for Unconfined {
    fn drop(&mut self) {
        end_unconfined();
    }
}

/// Ends what an [`Unconfined`] that was forgotten has begun; without one it does nothing.
pub(crate) fn end_unconfined() {
    match OWN.get() {
        (2.., own) => OWN.set((OWN.get().0 - 1, own)),
        (1, Some(own)) => {
            OWN.set((0, None));
            // A forked child has what it was given.
            if HOST.get().is_some() {
                own.apply();
            }
        }
        _ => {}
    }
}
