//! What loom shows of completion queues.
//!
//! The list, the outboxes and the table are the real ones. The pool is left out: in one with threads hosts sleep beside
//! the list alone; in one without they are its members, whose sleep `pool/models` has.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | two waiters beside one source | who leaves something does not list the source again | deadlock |
//! | a completion against a source's end | the end is told by each who finds it; it is not counted; the queue is over before the last item was taken; who takes the rest does not look for the end | a subtraction below zero; deadlock; an item is lost; deadlock |
//! | a lease that runs out beside a late completion | what is busy lapses; the bits of what lapsed stay | both have it; the counters |
//! | a close with entries out | nobody is told | deadlock |

use super::entry::{Entry, EntryKind};
use super::list::{Attachment, Found, List, Lists};
use super::source::{Brought, Source, bring_of};
use super::table::{Done, Table};
use crate::queue::Outbox;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::AcqRel;
use crate::task::Status;
use core::time::Duration;
use loom::thread;
use std::sync::{Arc, Weak};

const FOR_EVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A queue, a source of numbers, and the table.
struct Fixture {
    list: List,
    table: Mutex<Table<u64>>,
}

impl Lists for Fixture {
    fn list(&self, attachment: Arc<Attachment>) {
        self.list.listed.fetch_add(1, AcqRel);
        if self.list.ready.put(attachment).is_err() {
            self.unlist(1);
        }
    }

    fn unlist(&self, count: usize) {
        self.list.listed.fetch_sub(count, AcqRel);
    }

    fn asked_at(&self) -> u64 {
        0
    }
}

struct Numbers(Arc<Outbox<u64>>);

impl Source for Numbers {
    fn bring(&self, tag: u64, out: &mut Vec<Entry>, most: usize) -> Brought {
        bring_of(&self.0, most, |task| {
            let status = Status::Completed;
            out.push(Entry::new(tag, EntryKind::TaskEnded { task, status }));
        })
    }
}

impl Fixture {
    fn new() -> Arc<Self> {
        Arc::new(Self { list: List::new(), table: Mutex::new(Table::new()) })
    }

    fn source(self: &Arc<Self>) -> Arc<Outbox<u64>> {
        let numbers = Arc::new(Outbox::new());
        let to: Weak<dyn Lists> = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Lists>));
        self.list.ready.enter();
        let source = Arc::new(Numbers(Arc::clone(&numbers)));
        numbers.listen(Attachment::new(&to, 7, source, true));
        numbers
    }

    /// What a waiter gets, each with its token, until it has so many or all is over; and how often it heard of an end.
    fn wait(&self, most: usize, share: usize) -> (Vec<(u64, u64)>, usize) {
        let (mut attachments, mut entries) = (Vec::new(), Vec::new());
        let (mut got, mut ends) = (Vec::new(), 0);
        while got.len() < most {
            match self.list.look(self, &mut attachments, &mut entries, share, FOR_EVER) {
                Found::Entries(_) => {}
                Found::Nothing => continue,
                Found::Over => break,
            }
            for entry in entries.drain(..) {
                match entry.kind {
                    EntryKind::TaskEnded { task, .. } => {
                        let token = self.table.lock().unwrap().put(task, 1, 0);
                        got.push((task, token));
                    }
                    _ => ends += 1,
                }
            }
        }
        (got, ends)
    }

    fn finish(&self, token: u64) -> bool {
        !matches!(self.table.lock().unwrap().finish(token, false), Done::Stale)
    }

    fn balances(&self) -> (u64, u64, u64, u64) {
        let table = self.table.lock().unwrap();
        let (brought, completed, withdrawn) = (table.brought, table.completed, table.withdrawn);
        assert_eq!(brought, completed + withdrawn + table.out());
        (brought, completed, withdrawn, table.out())
    }
}

/// Goal: each of two items is brought once, to waiters that sleep or are about to, and no item lies beside one that
/// sleeps. Method: an item that is missed leaves a waiter asleep for ever, which loom reports as a deadlock.
#[test]
fn two_waiters_share_a_source() {
    check(|| {
        let queue = Fixture::new();
        let numbers = queue.source();
        let waiter = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.wait(1, 1).0)
        };
        let putter = thread::spawn(move || {
            numbers.put(1).unwrap();
            numbers.put(2).unwrap();
        });
        let mut got = queue.wait(1, 1).0;
        got.extend(waiter.join().unwrap());
        putter.join().unwrap();
        got.sort_unstable();
        assert_eq!(got.iter().map(|&(item, _)| item).collect::<Vec<_>>(), [1, 2]);
        assert!(got.iter().all(|&(_, token)| queue.finish(token)));
        assert_eq!(queue.balances(), (2, 2, 0, 0));
    });
}

/// Goal: a source that ends while something of it is out loses nothing, its end is told once, to one of two waiters, and
/// the queue is over then for both. Method: as above.
#[test]
fn an_end_is_told_once_beside_completions() {
    check(|| {
        let queue = Fixture::new();
        let numbers = queue.source();
        queue.list.ready.end();
        numbers.enter();
        numbers.put(1).unwrap();
        let waiter = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let (got, ends) = queue.wait(usize::MAX, 2);
                got.iter().for_each(|&(_, token)| assert!(queue.finish(token)));
                (got.len(), ends)
            })
        };
        numbers.end();
        numbers.left();
        let (got, ends) = queue.wait(usize::MAX, 2);
        got.iter().for_each(|&(_, token)| assert!(queue.finish(token)));
        let (others, others_ends) = waiter.join().unwrap();
        assert_eq!((got.len() + others, ends + others_ends), (1, 1));
        assert_eq!(queue.balances(), (1, 1, 0, 0));
    });
}

/// Goal: of a lease that runs out and a late completion one has the entry, also of one that another thread is about to
/// complete. Method: both at once, and the counters.
#[test]
fn a_lease_and_a_late_completion_do_not_both_have_it() {
    check(|| {
        let queue = Fixture::new();
        let token = queue.table.lock().unwrap().put(5, 1, 0);
        let completes = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                // As an answer that is given outside of the lock.
                let claimed = queue.table.lock().unwrap().claim(token).is_some();
                claimed && matches!(queue.table.lock().unwrap().finish(token, true), Done::Last(_))
            })
        };
        let mut lapsed = Vec::new();
        let _oldest = queue.table.lock().unwrap().lapse(0, &mut lapsed);
        let completed = completes.join().unwrap();
        assert!(completed != (lapsed.len() == 1), "one of both has it");
        assert!(!queue.finish(token), "the token is stale");
        let (brought, completions, withdrawn, out) = queue.balances();
        assert_eq!((brought, completions + withdrawn, out), (1, 1, 0));
    });
}

/// Goal: a close tells who waits, refuses what comes later, and leaves what is out to be completed. Method: as above.
#[test]
fn a_close_leaves_what_is_out() {
    check(|| {
        let queue = Fixture::new();
        let numbers = queue.source();
        numbers.put(1).unwrap();
        let waiter = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.wait(2, 1).0)
        };
        let _left = queue.list.ready.close();
        let _late = numbers.put(2);
        let got = waiter.join().unwrap();
        let out = got.len() as u64;
        assert_eq!(queue.balances(), (out, 0, 0, out));
        assert!(got.iter().all(|&(_, token)| queue.finish(token)));
        assert_eq!(queue.balances(), (out, out, 0, 0));
    });
}
