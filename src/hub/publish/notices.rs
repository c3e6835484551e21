//! Notices are published under `$SYS.`

use crate::hub::core::Core;
use crate::hub::message::Headers;
use crate::hub::publish::publishing::publish_seldom;
use crate::hub::publish::settings::PublishOptions;
use crate::hub::system::notice::{PREFIX, TURN, lock};

/// Publishes what waits to be told. True: there may be more.
pub(in crate::hub) fn run_notices(core: &Core) -> bool {
    for _ in 0..TURN {
        let next = lock(&core.notices.queue).next();
        let Some(((notice, time), lost)) = next else { return false };
        let key = core.keys.intern(&format!("{PREFIX}{}", notice.event));
        // For filters, which do not read payloads. Both are names of ours, which headers may be.
        let headers = Headers::new([("event", notice.event), ("severity", notice.severity.name())]);
        let options = PublishOptions { headers: headers.unwrap_or_default(), ..Default::default() };
        // Whoever does not listen in time loses some, which the next one tells.
        let _told = publish_seldom(core, &key, &mut notice.payload(time, lost), &options);
    }
    true
}
