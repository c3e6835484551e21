//! Events of hosted handles on their way: handed out, completed, or given up with their host.

use super::outbox::Outbox;
use crate::pool::handler::{EventKind, Flow};
use crate::pool::shared::Shared;
use crate::pool::slots::{Finish, Key, Payload, with_claimed};
use crate::source::Ready;
use crate::sync::atomic::Ordering::Relaxed;

/// What a handler's return is to other handles. The caller has the event of `key`, which is spent with this.
pub(crate) fn complete(shared: &Shared, key: Key, kind: EventKind, flow: Flow) {
    let kept = if let EventKind::Ready(ready) = kind { ready } else { Ready::NONE };
    if shared.ready.handles.finish(key.index, flow, kept, || true) == Finish::Queued {
        shared.ready.notify(shared.is_inside());
    }
}

/// The host that takes the events of this outbox is gone. Handles whose events wait end now, others with their next
/// event; tokens that wait are dropped, and counted as that.
pub(crate) fn abandon(outbox: &Outbox, shared: &Shared) {
    let left = outbox.leave();
    shared.counters.dropped.fetch_add(outbox.sweep(), Relaxed);
    for event in left {
        if let Some(key) = event.handle {
            complete(shared, key, event.kind, Flow::Done);
        }
    }
    shared.recheck_drain();
}

/// Hands a claimed slot out to the host that it was registered for.
pub(crate) fn hand_out(index: u32, readiness: Ready, shared: &Shared, inside: bool) {
    let slot = shared.ready.handles.slots.slot(index);
    let (kind, tag, outbox) = with_claimed(slot, |payload| match payload {
        Payload::Activity(activity, _) => activity.hand_out(readiness),
        Payload::Once(_) | Payload::Empty => unreachable!("not a hosted handle"),
    });
    let key = Key { index, generation: slot.generation() };
    // From here on a host may complete it (invariant 2 of `hosted.rs`), unless there is none any more.
    if outbox.put(kind, tag, key) {
        shared.hosts.call(&shared.ready, inside);
    } else {
        complete(shared, key, kind, Flow::Done);
    }
}
