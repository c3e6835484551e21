//! A purse against the pool's end: each reference is given up once, by whomever.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | references at hand: a turn against the pool's end | no barrier in a turn, before the look at the end or behind it; none between closing and the look who is busy | a reference is given up twice, or never |
//! |  | no barrier where a purse is opened; it is shut by a store instead of an exchange | likewise |

use super::explore;
use crate::pool::purse::Purse;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, heavy_barrier, store_load_barrier};
use loom::thread;
use std::sync::atomic::AtomicU32;

/// A pool, of which there is its end and how many references are out. In plain memory, which costs the models nothing.
#[derive(Default)]
struct Pool {
    ends: AtomicBool,
    purse: Option<Purse>,
    out: AtomicU32,
}

impl Pool {
    fn new() -> Arc<Self> {
        Arc::new(Self { purse: Some(Purse::new()), ..Self::default() })
    }

    fn purse(&self) -> &Purse {
        self.purse.as_ref().unwrap()
    }

    fn give_up(&self, references: u32) {
        self.out.fetch_sub(references, Relaxed);
    }

    /// `Own::claim`.
    fn open(&self) {
        self.purse().open();
        if self.ends.load(Relaxed) {
            self.give_up(self.purse().shut());
        }
    }

    /// `Own::lend`.
    fn arm(&self) {
        let turn = self.purse().take();
        self.out.fetch_add(u32::from(!turn.done), Relaxed);
        self.give_up(turn.left);
    }

    /// `staging::give_back`.
    fn forget(&self) {
        let turn = self.purse().put();
        self.give_up(u32::from(!turn.done) + turn.left);
    }

    /// `Shared::end`.
    fn end(&self) {
        self.ends.store(true, Relaxed);
        store_load_barrier();
        self.purse().close();
        if heavy_barrier() {
            self.give_up(self.purse().collect());
        }
    }
}

/// Goal: what an owner puts in and takes out while the pool ends is given up, and nothing twice. Method: turns of
/// both kinds against the end; then the count.
#[test]
fn an_end_leaves_no_reference_in_a_purse() {
    explore(3, || {
        let pool = Pool::new();
        pool.open();
        (0..3).for_each(|_| pool.arm());
        pool.forget();
        let ending = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.end())
        };
        pool.forget();
        pool.arm();
        pool.forget();
        ending.join().unwrap();
        assert_eq!(pool.out.load(Relaxed), 1);
        pool.forget();
        assert_eq!(pool.out.load(Relaxed), 0);
    });
}

/// Goal: a thread that comes while the pool ends keeps nothing. Method: it opens its purse against the end.
#[test]
fn no_purse_is_opened_behind_the_end() {
    explore(3, || {
        let pool = Pool::new();
        let ending = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.end())
        };
        pool.open();
        pool.arm();
        pool.forget();
        ending.join().unwrap();
        assert_eq!(pool.out.load(Relaxed), 0);
    });
}

/// Goal: an owner that leaves while the pool ends takes along what its purse holds, or leaves it to the end. Method:
/// both against each other.
#[test]
fn an_owner_that_leaves_empties_its_purse() {
    explore(3, || {
        let pool = Pool::new();
        pool.open();
        pool.arm();
        pool.forget();
        let ending = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.end())
        };
        pool.give_up(pool.purse().shut());
        ending.join().unwrap();
        assert_eq!(pool.out.load(Relaxed), 0);
    });
}
