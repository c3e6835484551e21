//! Which attempt of a task is the next one.
//!
//! The broker counts deliveries, of which many begin nothing: a worker had no room, or was stopped in order. So a mark at the
//! broker says how many attempts of a task have begun: the last message of its subject in the stream `paceline_Q_began`,
//! until the task has ended, or for 30 days.
//!
//! | what happens | the mark |
//! |---|---|
//! | the first delivery begins, and the task may be tried again | none: it costs nothing |
//! | any other attempt begins, also the first if there is one only | n, stored before the handler is called |
//! | a delivery is given back before it began | as many as had begun before |
//! | a process dies | as it was |
//!
//! What comes again without a mark has begun once, in its first delivery, for each other beginning has one; and where the
//! first has one, too, it has not begun. So attempts are what has begun, with one exception: a task that may be tried again,
//! and waited in a process that died before its first attempt, counts that as one. It never ends for that: a task is buried
//! before it begins only by its mark, if that counts as many as are allowed.
//!
//! The thread that is to call the handler waits for the broker to store the mark. If that takes too long the task is given
//! back.

use super::line::Line;
use crate::bridge::question::{What, Which};
use crate::error::Result;
use crate::hub::Headers;
use core::time::Duration;
use std::sync::mpsc::sync_channel;

/// For how long a mark is kept that nobody has deleted.
pub(super) const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// How long the broker may take to store one.
const LIMIT: Duration = Duration::from_secs(5);

/// One delivery of a task.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    /// 1 for the first.
    pub(super) number: u32,
    /// Its first delivery was too early, unless nobody took it in time.
    pub(super) is_delayed: bool,
    /// How many attempts there may be.
    pub(super) most: u32,
}

impl Delivery {
    /// Which one it is of those in which it may begin; 0: one before.
    fn turn(self) -> u32 {
        self.number - u32::from(self.is_delayed)
    }

    /// Whether a mark is to be stored before it begins.
    pub(super) fn begins_with_mark(self) -> bool {
        self.turn() != 1 || self.most == 1
    }

    /// How many attempts have begun before it, by what the mark says.
    pub(super) fn begun(self, mark: Option<u32>) -> u32 {
        mark.unwrap_or(u32::from(self.turn() > 1 && self.most > 1))
    }
}

impl Line {
    /// Stores that so many attempts of a task have begun.
    pub(super) fn mark(&self, id: &str, begun: u32, then: impl FnOnce(bool) + Send + 'static) {
        let (key, payload) = (format!("began.{}.{id}", self.queue), begun.to_string());
        self.publish_then(&key, Headers::default(), payload.as_bytes(), move |stored| {
            then(stored.is_ok());
        });
    }

    /// The same; false: it is not stored in time.
    pub(super) fn mark_and_wait(&self, id: &str, begun: u32) -> bool {
        let (tell, told) = sync_channel(1);
        self.mark(id, begun, move |is_stored| {
            // Nobody waits any more.
            let _gone = tell.try_send(is_stored);
        });
        told.recv_timeout(LIMIT).unwrap_or(false)
    }

    /// What the mark of a task says, if it has one.
    pub(super) fn marked(&self, id: &str, told: impl FnOnce(Result<Option<u32>>) + Send + 'static) {
        self.ask("began", What::Get(self.mark_of(id)), move |found| {
            let number = |payload: &[u8]| core::str::from_utf8(payload).ok()?.parse().ok();
            told(found.map(|found| found.and_then(|found| number(&found.payload))));
        });
    }

    /// A task has ended.
    pub(super) fn unmark(&self, id: &str) {
        self.ask("began", What::Delete(self.mark_of(id)), |_| ());
    }

    /// Whether the result of a task is stored.
    pub(super) fn has_result(&self, id: &str, told: impl FnOnce(Result<bool>) + Send + 'static) {
        let which = Which::Last(format!("paceline.results.{}.*.{id}", self.queue));
        self.ask("results", What::Get(which), move |found| {
            told(found.map(|found| found.is_some()))
        });
    }

    fn mark_of(&self, id: &str) -> Which {
        Which::Last(format!("paceline.began.{}.{id}", self.queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each row of the table at the head: whether it begins with a mark, and what counts without one, and with one.
    #[test]
    fn what_began_counts() {
        let seen = |number, is_delayed, most| {
            let delivery = Delivery { number, is_delayed, most };
            (delivery.begins_with_mark(), delivery.begun(None), delivery.begun(Some(3)))
        };
        assert_eq!(seen(1, false, 2), (false, 0, 3));
        assert_eq!(seen(2, false, 2), (true, 1, 3));
        assert_eq!(seen(9, false, 2), (true, 1, 3));
        assert_eq!(seen(1, false, 1), (true, 0, 3));
        assert_eq!(seen(9, false, 1), (true, 0, 3));
        // The first delivery was too early, or nobody took it in time.
        assert_eq!(seen(1, true, 2), (true, 0, 3));
        assert_eq!(seen(2, true, 2), (false, 0, 3));
        assert_eq!(seen(3, true, 2), (true, 1, 3));
    }
}
