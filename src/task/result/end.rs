//! What follows from the end of a task: who is told, what is taken back, who is let go.

use crate::pool::contain;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::attempt::tagged;
use crate::task::attempt::waiting;
use crate::task::common::TaskTypeInner;
use crate::task::counters::Event;
use crate::task::record::table::{Magazine, RecordTable};
use crate::task::record::word::Meta;
use crate::task::record::{EXTRAS, Head, MAGAZINE, Place, Record, Seldom, TaskMeta, table};
use crate::task::result::observe;
use crate::task::result::report::Status;
use std::cell::Cell;
use std::sync::Arc;

impl Meta for TaskMeta {
    type Owner = &'static TaskTypeInner;
    type Seldom = Seldom;

    #[inline]
    fn table() -> &'static RecordTable<Self> {
        table()
    }

    #[inline]
    fn magazine() -> &'static std::thread::LocalKey<Magazine<Self>> {
        &MAGAZINE
    }

    #[inline]
    fn owner(&self) -> &'static TaskTypeInner {
        self.task_type.get().expect("a record that is let has a task type")
    }

    #[inline]
    fn is_told(owner: &'static TaskTypeInner) -> bool {
        owner.told
    }

    #[inline]
    fn count(owner: &'static TaskTypeInner, status: u32) {
        owner.ended(Status::from_bits(status));
    }

    fn tell(record: &'static Record, status: u32, message: Option<&str>) {
        observe::tell_end(Head(record), Status::from_bits(status), message);
    }

    fn telling(owner: &'static TaskTypeInner, begins: bool) {
        // What observes ends may do as it likes on this thread, but wait for itself.
        let _ = TELLING.try_with(|own| own.set(if begins { own.get() + 1 } else { own.get() - 1 }));
        owner.stats.count(if begins { Event::Telling } else { Event::Told });
    }

    fn notify(record: &'static Record) {
        notify(Head(record));
    }

    #[inline]
    fn clear(&self) {
        if self.flags.load(Relaxed) & EXTRAS != 0 {
            let extras = self.with_extras(Option::take);
            let _panicked = contain(|| drop(extras));
        }
    }

    fn gone_unrun(record: &'static Record) {
        if let Some(limiter) = &record.meta.owner().limiter {
            limiter.gone_unrun(Head(record));
        }
    }

    fn note_unrun(record: &'static Record) {
        // No attempt runs: one that had begun was revoked, and has no time.
        Head(record).note_end(Status::Pending);
    }

    fn wake_at(seldom: &Seldom) -> &AtomicU64 {
        &seldom.wake_at
    }

    #[inline]
    fn is_forked(owner: &'static TaskTypeInner) -> bool {
        owner.fork.is_child()
    }
}

std::thread_local! {
    /// Of how many ends this thread is telling code of the program now.
    static TELLING: Cell<u64> = const { Cell::new(0) };
}

/// Of how many ends this thread is telling code of the program now.
pub(in crate::task) fn told_here() -> u64 {
    TELLING.try_with(Cell::get).unwrap_or(0)
}

fn notify(head: Head) {
    if let Some(parcel) = head.0.unpark() {
        let task_type = head.task_type();
        let shared = || Some(Arc::clone(&task_type.common()?.shared));
        task_type.wait_lists.delay_queue.drop_taken(parcel, shared);
    }
    if !head.has_extras() {
        return;
    }
    let status = head.status();
    let (waker, callbacks, place, tag) = head.0.meta.with_extras(|extras| match extras {
        Some(extras) => {
            let callbacks = core::mem::take(&mut extras.callbacks);
            let place = core::mem::take(&mut extras.place);
            (extras.waker.take(), callbacks, place, extras.tag.take())
        }
        None => (None, Vec::new(), Place::Elsewhere, None),
    });
    waiting::take_out(head, place);
    if let Some(tag) = tag {
        tagged::tell_end(head, tag, status);
    }
    if let Some(waker) = waker {
        let _panicked = contain(|| waker.wake());
    }
    for callback in callbacks {
        let _panicked = contain(|| callback(status));
    }
}
