//! How the hub tells of itself: whoever finds something out calls these.

use crate::hub::core::{Core, Work};
use crate::hub::handle::Hub;
use crate::hub::keys::key::is_reserved;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::system::notice::{
    Burst, DAILY, ErrorFilter, ErrorRecord, Listener, Loses, Notice, NoticeStats, Severity, lock,
};
use crate::log::{Component, Level};
use crate::pool::Timer;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::clock;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};

/// Tells what has happened, to those who want to hear it, and to the list of errors. `pattern` is that of
/// the subscription that it happened to.
#[inline]
pub(in crate::hub) fn tell(
    core: &Core,
    severity: Severity,
    pattern: Option<&str>,
    make: impl FnOnce() -> Notice,
) {
    let due = severity > Severity::Info || is_logged(core, Level::Info);
    tell_if(core, due, pattern, make);
}

/// The same, and if it is `due` though nobody wants to hear it.
#[inline]
fn tell_if(core: &Core, due: bool, pattern: Option<&str>, make: impl FnOnce() -> Notice) {
    // Relaxed: who subscribes beside an event may hear of it or not.
    let heard = core.notices.heard.load(Relaxed) > 0;
    if heard || due {
        tell_now(core, make(), heard && !pattern.is_some_and(is_reserved));
    }
}

/// Whether notices of this level are told by the log.
fn is_logged(core: &Core, level: Level) -> bool {
    let log = &core.shared.log;
    log.is_on(Component::Hub, level) || log.is_on(Component::History, level)
}

#[cold]
fn tell_now(core: &Core, notice: Notice, heard: bool) {
    notice.log(&core.shared.log, heard);
    let time = clock::unix_nanos();
    if notice.severity > Severity::Info {
        core.notices.record(&notice, time);
    }
    // Not in the condition: the lock would be held to the end of the block.
    let list = heard && lock(&core.notices.queue).push((notice, time));
    if list {
        core.call(core.ready.push(Work::Notices));
    }
}

/// Something was lost, and counted. Not under the lock that counts.
#[inline]
pub(in crate::hub) fn lost<L: Loses + 'static>(core: &Core, loser: &Arc<L>) {
    if loser.burst().open() {
        lost_first(core, Arc::<L>::clone(loser));
    }
}

#[cold]
fn lost_first(core: &Core, loser: Arc<dyn Loses>) {
    tell_losses(core, &*loser);
    let mut bursts = lock(&core.notices.bursts);
    bursts.open.push(Arc::downgrade(&loser));
    let arms = !core::mem::replace(&mut bursts.armed, true);
    drop(bursts);
    if arms {
        arm_bursts(core);
    }
}

fn tell_losses(core: &Core, loser: &dyn Loses) -> bool {
    let count = loser.burst().untold(loser.losses());
    if count > 0 {
        tell(core, Severity::Warning, None, || loser.notice(count));
    }
    count > 0
}

fn arm_bursts(core: &Core) {
    let me = Weak::clone(&core.me);
    let look = move || {
        if let Some(core) = me.upgrade() {
            look_at_bursts(&core);
        }
    };
    let armed = Timer::after(&core.shared, core.notices.interval, look, |_| ());
    if armed.is_err() {
        // The next burst tries again.
        lock(&core.notices.bursts).armed = false;
    }
}

fn look_at_bursts(core: &Core) {
    let open = core::mem::take(&mut lock(&core.notices.bursts).open);
    let goes_on = |loser: &Weak<dyn Loses>| {
        let Some(loser) = loser.upgrade() else { return false };
        let told = tell_losses(core, &*loser);
        if loser.is_over() {
            return false;
        }
        told || (loser.burst().close(|| loser.losses()) > 0 && tell_losses(core, &*loser))
    };
    let mut left: Vec<_> = open.into_iter().filter(goes_on).collect();
    let mut bursts = lock(&core.notices.bursts);
    bursts.open.append(&mut left);
    bursts.armed = !bursts.open.is_empty();
    let arms = bursts.armed;
    drop(bursts);
    if arms {
        arm_bursts(core);
    }
}

impl Hub {
    /// What went wrong of late, the oldest first. Any thread.
    ///
    /// Warnings and errors of all that the hub tells under `$SYS.` are kept, whether anybody subscribes to
    /// that or not:
    ///
    /// | event | severity | what it has beside the fields of all |
    /// |---|---|---|
    /// | `subscription.started` | info | `subscription`, `pattern` |
    /// | `subscription.ended` | info | `subscription`, `pattern`, `delivered`, `lost_messages` |
    /// | `subscription.resumed` | info | `subscription`, `pattern` |
    /// | `subscription.overflow` | warning | `subscription`, `pattern`, `count`: messages that it lost |
    /// | `subscription.restarted` | warning | `subscription`, `pattern`, `count`, `failure` |
    /// | `subscription.suspended` | error | `subscription`, `pattern`, `waited`: new dead letters, `resumes_in_ms`: null: when it is resumed |
    /// | `subscription.lapsed` | warning | `subscription`, `pattern`, `lease_ms` |
    /// | `dead.forgotten` | warning | `count`: dead letters that were forgotten for newer ones |
    /// | `publisher.refused` | warning | `publisher`, `count`: messages beyond its quota |
    /// | `history.failed` | error | `pattern`, `error` |
    /// | `history.recovered` | info | `pattern` |
    /// | `history.lines_lost` | warning | `pattern`, `count`: lines that could not be written |
    /// | `history.given_up` | error | `pattern`, `count`: messages that are on no disk and never will be |
    /// | `bridge.connected` | info | `bridge`, `server`, `connects` |
    /// | `bridge.disconnected` | warning | `bridge`, `reason`: why there is no connection; not again while it stays the same |
    /// | `bridge.ended_its_process` | error | `bridge`, `stream`, `durable`, `number`: a message that is a dead letter now |
    /// | `bridge.made_anew` | warning | `bridge`, `stream`, `durable`, `reason`: a consumer whose place was not in the stream |
    /// | `bridge.old_version` | warning | `bridge`, `version`: the broker's, which may forget messages of a stream |
    /// | `bridge.other_ack_wait` | warning | `bridge`, `stream`, `durable`, `ack_wait`: that of a consumer which is there, as it stays |
    /// | `bridge.refused` | error | `bridge`, `reason`: what the broker does not take, or has no room for |
    /// | `bridge.closed` | info | `bridge` |
    /// | `threshold.crossed` | as it says | `threshold`, `metric`, `labels`, `limit`, `figure` |
    /// | `threshold.cleared` | info | likewise |
    /// | `threshold.stopped`, `statistics.stopped` | error | none: the pool has no place for a timer |
    ///
    /// The payload of a notice is an object of JSON with these, and `event`, `time` (RFC 3339), `severity`,
    /// `origin`, `message` (for people), and `lost`: how many notices were lost before this one because too
    /// many waited. Its headers `event` and `severity` say these, too, so that a
    /// [`Filter::header`](crate::hub::Filter::header) chooses. What comes in bursts is told once, and then once in each
    /// [`notice_interval`](crate::hub::HubBuilder::notice_interval) with its count.
    ///
    /// ```
    /// # use paceline::Pool;
    /// # use paceline::hub::{ErrorFilter, Hub, Severity};
    /// # fn main() -> paceline::Result<()> {
    /// # let pool = Pool::new()?;
    /// let hub = Hub::new(&pool)?;
    /// let full = hub.mailbox("a", 1)?;
    /// assert!(hub.publish("a", "one")?.is_complete());
    /// assert!(hub.publish("a", "too many").is_err());
    /// let errors = hub.errors(&ErrorFilter::all().at_least(Severity::Warning));
    /// assert_eq!(errors[0].event, "subscription.overflow");
    /// # drop(full);
    /// # Ok(()) }
    /// ```
    pub fn errors(&self, filter: &ErrorFilter) -> Vec<ErrorRecord> {
        let errors = lock(&self.core.notices.errors);
        let found = errors.list.iter().rev().filter(|error| filter.passes(error));
        let mut found: Vec<_> = found.take(filter.limit.unwrap_or(usize::MAX)).cloned().collect();
        drop(errors);
        found.reverse();
        found
    }

    /// How many notices and errors there were.
    pub fn notice_stats(&self) -> NoticeStats {
        self.core.notices.stats()
    }
}

fn origin(kind: &str, id: u64, pattern: &str) -> String {
    format!("{kind} {id} ({pattern})")
}

pub(in crate::hub) fn notice(
    kind: &str,
    id: u64,
    pattern: &str,
    event: &'static str,
    severity: Severity,
    (message, more): (String, Value),
) -> Notice {
    let mut fields = json!({ "subscription": id, "pattern": pattern });
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    Notice { event, severity, origin: origin(kind, id, pattern), message, fields }
}

/// What a subscription has to tell.
pub(in crate::hub) fn notice_of(
    subscriber: &Subscriber,
    event: &'static str,
    severity: Severity,
    message: String,
    more: Value,
) -> Notice {
    let pattern = subscriber.channel().pattern();
    notice("subscription", subscriber.id(), pattern, event, severity, (message, more))
}

/// Tells what has happened to it.
#[inline]
pub(in crate::hub) fn tell_of(
    subscriber: &Subscriber,
    core: &Core,
    event: &'static str,
    severity: Severity,
    say: impl FnOnce() -> (String, Value),
) {
    // What is no news for a log is not even made for one that is off below that.
    let level = if DAILY.contains(&event) { Level::Debug } else { Level::Info };
    let due = severity > Severity::Info || is_logged(core, level);
    tell_if(core, due, Some(subscriber.channel().pattern()), || {
        let (message, more) = say();
        notice_of(subscriber, event, severity, message, more)
    });
}

/// It has lost messages. Not under its mailbox's lock.
#[cold]
pub(in crate::hub) fn lost_by(subscriber: &Arc<Subscriber>, core: &Core) {
    if !is_reserved(subscriber.channel().pattern()) {
        lost(core, subscriber);
    }
}

impl Loses for Subscriber {
    fn burst(&self) -> &Burst {
        self.policy_or_default().burst()
    }

    fn losses(&self) -> u64 {
        self.mail().losses()
    }

    fn is_over(&self) -> bool {
        self.mail().phase() == Phase::Ended
    }

    fn notice(&self, count: u64) -> Notice {
        let policy = format!("{:?}", self.rules.overflow);
        let message = format!("the mailbox was full: {count} lost by {policy}");
        let more = json!({ "count": count, "overflow": policy });
        notice_of(self, "subscription.overflow", Severity::Warning, message, more)
    }
}

impl Listener for Core {
    fn tell(&self, notice: Notice) {
        tell(self, notice.severity, None, || notice);
    }

    fn lost(&self, loser: Arc<dyn Loses>) {
        if loser.burst().open() {
            lost_first(self, loser);
        }
    }
}
