//! The slab's free list: no entry has two tenants, though indices come back (ABA).
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! |  | no tag in the free list's head | an entry is given out twice |
#![allow(unsafe_code, reason = "the entries' tenants write to them")]

use super::explore;
use crate::pool::slots::{Entry, Slab};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use loom::thread;
use std::sync::Arc;

struct Bed {
    link: AtomicU32,
    guest: UnsafeCell<u32>,
}

impl Entry for Bed {
    const CHUNK: usize = 3;

    fn new(_: u32) -> Self {
        Self { link: AtomicU32::new(0), guest: UnsafeCell::new(0) }
    }

    fn link(&self) -> &AtomicU32 {
        &self.link
    }
}

// SAFETY: `use_bed` is called by the entry's one tenant, which is what the models show.
unsafe impl Sync for Bed {}

/// loom reports it if somebody else is in.
fn use_bed(beds: &Slab<Bed>, index: u32) {
    // SAFETY: only the tenant comes here.
    beds[index].guest.with_mut(|guest| unsafe { *guest += 1 });
}

fn stay(beds: &Slab<Bed>) -> u32 {
    let index = beds.take().expect("a bed for each");
    use_bed(beds, index);
    index
}

/// Three entries on the free list. They are made here, because loom does not see that the `OnceLock`
/// of a chunk orders its making.
fn three_free() -> Arc<Slab<Bed>> {
    let beds = Arc::new(Slab::new(3));
    let all = [0, 1, 2].map(|_| beds.take().unwrap());
    all.into_iter().for_each(|index| beds.give_back(index));
    beds
}

/// Goal: a pop that was overtaken by "pop, pop, push the first back" (the classic ABA) does not
/// install the stale next. Method: three free entries, one thread that pops while another pops two
/// and returns the first; each tenant writes its entry.
#[test]
fn a_recycled_head_is_not_mistaken() {
    explore(3, || {
        let beds = three_free();
        let other = {
            let beds = beds.clone();
            thread::spawn(move || {
                let first = stay(&beds);
                let second = stay(&beds);
                beds.give_back(first);
                second
            })
        };
        let one = stay(&beds);
        let second = other.join().unwrap();
        let two = stay(&beds);
        assert!(one != two && one != second && two != second);
        assert_eq!(beds.take(), None);
    });
}

/// Goal: what one tenant did happens before the next one's tenancy, also through a push by a third
/// in between. Method: three threads take, write and give back; loom checks the accesses.
#[test]
fn a_tenancy_ends_before_the_next_begins() {
    explore(3, || {
        let beds = three_free();
        let threads = [0, 1].map(|_| {
            let beds = beds.clone();
            thread::spawn(move || {
                let index = stay(&beds);
                beds.give_back(index);
            })
        });
        beds.give_back(stay(&beds));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(beds.indices().len(), 3);
    });
}
