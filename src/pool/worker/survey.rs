//! Whether anything has been lying around.

use crate::pool::leader::HandleSet;
use crate::pool::ready::ReadyWork;
use crate::queue::LANES;
use crate::trace::Name;

/// What the watch sees at a tick. Two surveys tell whether something has not moved in between:
/// ages are compared, never progress, because one busy thread's progress would hide another that is
/// stuck.
pub(crate) struct Survey {
    heads: [u64; LANES],
    tails: [u64; LANES],
    sets: Box<[SetView]>,
    stack: Option<u32>,
    /// Per member: the ages of its local queue and its chain.
    held: Box<[(Option<u64>, Option<u64>)]>,
    /// Per member: what it runs.
    running: Box<[Option<(Name, u64)>]>,
}

#[derive(Clone, Copy, Default)]
struct SetView {
    vacancy: Option<u64>,
    polled: bool,
    harvests: u64,
    head: u64,
    tail: u64,
}

impl SetView {
    fn of(set: &HandleSet) -> Self {
        Self {
            vacancy: set.vacancy(),
            polled: set.source.is_armed(),
            harvests: set.harvests(),
            head: set.surplus.head(),
            tail: set.surplus.tail(),
        }
    }

    fn is_stuck_since(&self, before: &Self) -> bool {
        let vacant = self.vacancy.is_some() && self.vacancy == before.vacancy;
        vacant || self.head < before.tail
    }

    fn is_quiet_since(&self, before: &Self) -> bool {
        self.polled && self.head == self.tail && self.harvests == before.harvests
    }
}

impl Survey {
    pub(crate) fn new(sets: usize, members: usize) -> Self {
        Self {
            heads: [0; LANES],
            tails: [0; LANES],
            sets: vec![SetView::default(); sets].into(),
            stack: None,
            held: vec![(None, None); members].into(),
            running: vec![None; members].into(),
        }
    }

    /// Looks at everything. Allocates nothing.
    pub(crate) fn take(&mut self, ready: &ReadyWork) {
        self.heads = ready.tasks.heads();
        self.tails = ready.tasks.ages();
        for (view, set) in self.sets.iter_mut().zip(&*ready.handles.sets) {
            *view = SetView::of(set);
        }
        self.stack = ready.handles.stack.age();
        for (held, member) in self.held.iter_mut().zip(&*ready.members) {
            *held = (member.local.age(), member.chain.age());
        }
        for (running, member) in self.running.iter_mut().zip(&*ready.members) {
            *running = member.running();
        }
    }

    /// Something that was there before still is, untouched.
    pub(crate) fn is_stuck_since(&self, before: &Self) -> bool {
        fn same<T: PartialEq>(now: Option<T>, before: Option<T>) -> bool {
            now.is_some() && now == before
        }
        self.heads.iter().zip(&before.tails).any(|(head, tail)| head < tail)
            || self.sets.iter().zip(&before.sets).any(|(now, before)| now.is_stuck_since(before))
            || same(self.stack, before.stack)
            || self
                .held
                .iter()
                .zip(&before.held)
                .any(|(now, before)| same(now.0, before.0) || same(now.1, before.1))
    }

    /// A member that has run the same thing from then to now, and what that is.
    pub(crate) fn held_up_since(&self, before: &Self) -> Option<(usize, Name)> {
        let mut runs = self.running.iter().zip(&before.running).enumerate();
        runs.find_map(|(member, (now, before))| {
            let (name, _) = now.filter(|_| now == before)?;
            Some((member, name))
        })
    }

    /// Every set is polled, nothing is queued, and nothing was harvested in between.
    pub(crate) fn is_quiet_since(&self, before: &Self) -> bool {
        self.heads == self.tails
            && self.stack.is_none()
            && self.sets.iter().zip(&before.sets).all(|(now, before)| now.is_quiet_since(before))
    }
}
