//! How a subscription ends.

use crate::hub::core::Core;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::{Close, Phase};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::system::notice::Severity;
use crate::hub::system::tell::tell_of;
use crate::pool::contain;
use serde_json::json;
use std::sync::Arc;

/// Does what closing has left to do. True: it has ended.
pub(in crate::hub) fn finish(
    subscriber: &Arc<Subscriber>,
    core: &Core,
    close: Close<Handler>,
) -> bool {
    let Close::Now(handler) = close else { return subscriber.mail().phase() == Phase::Ended };
    let _panicked = contain(|| drop(handler));
    // Under one lock, so that whoever adds the counters up finds these once, and whoever sees the end
    // sees all of it.
    let mut ended = core.lock_ended();
    core.router.leave(subscriber);
    let counters = subscriber.mail().ended();
    ended.add(&counters);
    drop(ended);
    core.notices.unlisten(subscriber.channel.pattern());
    tell_of(subscriber, core, "subscription.ended", Severity::Info, || {
        let lost = counters.dropped + counters.rejected;
        let message = format!("{} delivered, {lost} lost", counters.delivered);
        (message, json!({ "delivered": counters.delivered, "lost_messages": lost }))
    });
    core.announce();
    true
}
