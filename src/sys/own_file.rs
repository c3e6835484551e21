//! A file that belongs to the process that opened it.
//!
//! A forked child has copies of its parent's descriptors, and with them a part in the locks of those open files: they are held
//! until the last copy is closed. A child that outlives its parent would keep them for as long as it lives. So the files whose
//! locks say "this process has it" are in a list, and in a child each of them is replaced by one that leads nowhere, as long
//! as that is made by fork(2) of the C library. The number stays taken: whatever the child still believes of it does no harm.
//!
//! The list has a fixed length, as the child may only look at memory that no lock guards. A file that finds no room there is
//! as any other.
#![allow(unsafe_code, reason = "pthread_atfork, and what is safe in a forked child")]

use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::sync::Once;

/// So many files there may be.
const MOST: usize = 1024;
const NONE: i32 = -1;

/// Descriptors, or [`NONE`].
static LIST: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: File,
    place: Option<&'static AtomicI32>,
}

impl OwnFile {
    pub(crate) fn new(file: File) -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: the handler only does what is safe in a forked child.
            let _without_memory_for_it = unsafe { libc::pthread_atfork(None, None, Some(let_go)) };
        });
        let number = file.as_raw_fd();
        // Release: pairs with nothing but the fork, which copies what this thread and others have written.
        let is_taken =
            |place: &&AtomicI32| place.compare_exchange(NONE, number, Release, Relaxed).is_ok();
        let place = LIST.iter().find(is_taken);
        Self { file, place }
    }
}

impl Deref for OwnFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Before the number is another file's.
        if let Some(place) = self.place {
            place.store(NONE, Release);
        }
    }
}

/// In the child.
extern "C" fn let_go() {
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path ends with its zero.
    let nowhere = unsafe { libc::open(c"/dev/null".as_ptr(), flags) };
    for place in &LIST {
        let number = place.load(Acquire);
        if number != NONE && nowhere >= 0 {
            // SAFETY: a number that is a file of ours becomes another name of one that was just opened.
            unsafe { libc::dup3(nowhere, number, libc::O_CLOEXEC) };
        }
    }
    if nowhere >= 0 {
        // SAFETY: it was opened above.
        unsafe { libc::close(nowhere) };
    }
}
