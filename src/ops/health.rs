//! Whether the watched pool lives and is ready, with reasons. The rule is that of `pool/progress.rs`.

use super::observer::Observer;
use crate::log::Log;
use crate::pool::Shared;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Weak};

/// What is wrong.
#[derive(Default)]
pub(super) struct Health {
    /// Why the process should be started anew.
    pub(super) dead: Vec<String>,
    /// Why no work should be sent here.
    pub(super) unready: Vec<String>,
    /// What people should know, though work goes on.
    pub(super) degraded: Vec<String>,
}

impl Health {
    pub(super) fn of(pool: &Weak<Shared>, observer: &Observer, now: u64) -> Self {
        let mut health = Self::default();
        let Some(shared) = pool.upgrade().filter(|shared| !shared.end.is_stopping()) else {
            health.dead.push("the pool has ended".into());
            return health;
        };
        if shared.end.is_draining() {
            health.unready.push("the pool is draining".into());
        }
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let judgement = shared.progress.look(&shared);
        if let Some((late, still)) = judgement.dead {
            let (what, waited, still) = (late.what, seconds(late.nanos), seconds(still));
            health.dead.push(format!(
                "the pool starves: {what} has waited for {waited:.1} s, and nothing has begun or ended for {still:.1} s"
            ));
        }
        if let Some(late) = judgement.unready {
            health.unready.push(format!(
                "{} has waited for {:.1} s",
                late.what,
                seconds(late.nanos)
            ));
        }
        for blocked in &observer.blocked(now) {
            let (thread, seconds) = (blocked.thread, blocked.seconds);
            let what = match blocked.name {
                "" => "a handler or task".to_owned(),
                name => format!("{name:?}"),
            };
            health
                .degraded
                .push(format!("thread {thread} is blocked in {what} for {seconds:.1} s"));
        }
        if let Some(reason) = shared.log.log_in_use().and_then(Log::failure) {
            health.degraded.push(format!("the log is not written: {reason}"));
        }
        parts(&shared, &mut health);
        health
    }

    pub(super) fn is_live(&self) -> bool {
        self.dead.is_empty()
    }

    /// What is dead is not ready, whatever the two limits are.
    pub(super) fn is_ready(&self) -> bool {
        self.is_live() && self.unready.is_empty()
    }

    /// Why it is not ready.
    pub(super) fn why_unready(&self) -> impl Iterator<Item = &String> {
        self.dead.iter().chain(&self.unready)
    }

    /// For the page.
    pub(super) fn json(&self) -> Json {
        json!({
            "live": self.is_live(),
            "ready": self.is_ready(),
            "reasons": self.why_unready().chain(&self.degraded).collect::<Vec<_>>(),
        })
    }
}

/// What servers, worker pools and hubs say.
fn parts(shared: &Arc<Shared>, health: &mut Health) {
    for part in shared.end.parts() {
        part.health(&mut |is_ready, reason| match is_ready {
            true => health.degraded.push(reason),
            false => health.unready.push(reason),
        });
    }
}
