//! Whether the watched pool lives and is ready, with reasons.

use super::observer::Observer;
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
            health.unready.push("the pool has ended".into());
            return health;
        };
        if shared.end.is_draining() {
            health.unready.push("the pool is draining".into());
        }
        let blocked = observer.blocked(now);
        for blocked in &blocked {
            let (thread, seconds) = (blocked.thread, blocked.seconds);
            let what = match blocked.name {
                "" => "a handler or task".to_owned(),
                name => format!("{name:?}"),
            };
            health
                .degraded
                .push(format!("thread {thread} is blocked in {what} for {seconds:.1} s"));
        }
        if observer.are_all_blocked(shared.ready.members.threads) {
            health.dead.push("all threads are blocked".into());
            health.unready.push("all threads are blocked".into());
        }
        parts(&shared, &mut health);
        health
    }

    pub(super) fn is_live(&self) -> bool {
        self.dead.is_empty()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.unready.is_empty()
    }

    /// For the page.
    pub(super) fn json(&self) -> Json {
        json!({
            "live": self.is_live(),
            "ready": self.is_ready(),
            "reasons": self.dead.iter().chain(&self.unready).chain(&self.degraded).collect::<Vec<_>>(),
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
