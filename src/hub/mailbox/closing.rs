//! How a subscription is closed: what waits is worked off, or discarded.

use crate::hub::core::Core;
use crate::hub::group::dispatch::{finished, leave};
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::outcome::Handled;
use crate::sync::atomic::Ordering::Release;
use std::sync::Arc;

/// Closes the mailbox. True: it has ended.
pub(in crate::hub) fn close(subscriber: &Arc<Subscriber>, core: &Core, drain: bool) -> bool {
    if !drain {
        // Release: pairs with the Acquire in `is_closing`.
        subscriber.progress.closing.store(true, Release);
    }
    if let Some(group) = subscriber.group() {
        leave(group, core, subscriber.id());
    }
    // Under the channel's lock, so that it does not come back to the ring in between.
    let mut state = subscriber.rules.shared.then(|| subscriber.channel.lock());
    if let Some(state) = &mut state
        && subscriber.cursor.is_in_ring()
    {
        subscriber.channel.close(state, subscriber, !drain);
        state.ring.release(core);
    }
    let mut mail = subscriber.mail();
    let held = mail.held_later();
    let (close, discarded) = mail.close(drain);
    let let_go = held - mail.held_later();
    drop(mail);
    drop(state);
    core.let_go(let_go);
    for entry in &discarded {
        entry.stored.spoil(Handled::Lost);
        finished(subscriber, core, &entry.stored);
    }
    drop(discarded);
    subscriber.notify_room();
    if let Some(puller) = subscriber.puller() {
        puller.notify_end();
    }
    finish(subscriber, core, close)
}

/// The pool ends: the mailbox takes no more messages.
pub(in crate::hub) fn shut(subscriber: &Arc<Subscriber>, core: &Core) {
    // Under the channel's lock, so that it does not come back to the ring in between.
    let mut state = subscriber.rules.shared.then(|| subscriber.channel.lock());
    if let Some(state) = &mut state
        && subscriber.cursor.is_in_ring()
    {
        subscriber.channel.detach(state, subscriber);
        state.ring.release(core);
    }
    subscriber.mail().shut();
}
