//! Which member a host thread becomes: as long as others leave it that, the one that it was before. So what a member
//! has done is what one thread has done, also of threads that come and go for each wait.

use super::{Member, Members};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::fork::ForkGuard;
use crate::sys::thread;
use crate::trace::Name;
use core::cell::Cell;

thread_local! {
    /// The kernel's number of this thread, in the process of which it is, once it was asked for, and which member it
    /// was last, of whatever pool.
    static LAST: Cell<Option<(ForkGuard, u32, usize)>> = const { Cell::new(None) };
}

impl Members {
    /// A free member for the calling thread to become: the one it was, else one that none has been, else any.
    /// `process`: the one that the pool is of.
    pub(crate) fn take_for_host(&self, process: ForkGuard) -> Option<usize> {
        let known = LAST.try_with(Cell::get).unwrap_or_default();
        // A child made by fork has the place, and another number.
        let known = known.filter(|(process, ..)| !process.is_child());
        let (_, own, last) = known.unwrap_or_else(|| (process, thread::id(), 0));
        let is =
            |member: usize, thread: u32| self.members[member].kernel_thread.load(Relaxed) == thread;
        let places = self.threads..self.members.len();
        let take = |member: &usize| self.members[*member].take();
        let taken = Some(last)
            .filter(|last| places.contains(last) && is(*last, own) && take(last))
            .or_else(|| places.clone().find(|&member| is(member, own) && take(&member)))
            .or_else(|| places.clone().find(|&member| is(member, 0) && take(&member)))
            // Those that have come first, and come back, are the last to lose theirs.
            .or_else(|| places.rev().find(take))?;
        self.members[taken].kernel_thread.store(own, Relaxed);
        let _over = LAST.try_with(|place| place.set(Some((process, own, taken))));
        Some(taken)
    }

    /// The calling thread waits for what a completion queue brings: it handles nothing.
    pub(crate) fn host_waits(&self) {
        if let Some(member) = self.host_here() {
            member.outside.store(0, Relaxed);
        }
    }

    /// The calling thread handles, outside the pool, what it was brought. If it only `looked`, it does so if it did before.
    pub(crate) fn host_handles(&self, looked: bool) {
        let Some(member) = self.host_here() else { return };
        let before = member.outside.load(Relaxed);
        if !looked || before != 0 {
            member.outside.store(before.wrapping_add(1).max(1), Relaxed);
        }
    }

    /// What this thread, or the calling one (0), handles outside the pool has this name until it waits again. False: there
    /// is no such host, or it handles nothing.
    pub(crate) fn name_host(&self, thread: u32, name: &str) -> bool {
        let thread = if thread == 0 { thread::id() } else { thread };
        // A thread may have had other places before.
        let outside = |member: &Member| match member.kernel_thread.load(Relaxed) == thread {
            true => Some(member.outside.load(Relaxed)).filter(|&outside| outside != 0),
            false => None,
        };
        let mut hosts = self.members[self.threads..].iter();
        let found = hosts.find_map(|member| outside(member).map(|outside| (member, outside)));
        let Some((member, outside)) = found else { return false };
        let named = u64::from(outside) << 32 | u64::from(Name::new(name).bits());
        member.named.store(named, Relaxed);
        true
    }

    /// The member that the calling thread was last, unless another has become that since.
    fn host_here(&self) -> Option<&Member> {
        let (_, own, last) = LAST.try_with(Cell::get).unwrap_or_default()?;
        let member = self.members.get(last).filter(|_| last >= self.threads)?;
        (member.kernel_thread.load(Relaxed) == own).then_some(member)
    }
}
