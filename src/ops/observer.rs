//! What the threads of a pool are seen doing, look by look.

use crate::pool::{Shared, ThreadRole};
use serde_json::{Value as Json, json};

/// What one look at a thread found: a letter of the strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Away,
    Following,
    Watching,
    Leading,
    Handling,
    Blocked,
    SetAside,
}

impl Seen {
    fn letter(self) -> char {
        match self {
            Self::Away => '-',
            Self::Following => 'F',
            Self::Watching => 'W',
            Self::Leading => 'L',
            Self::Handling => 'H',
            Self::Blocked => 'B',
            Self::SetAside => 'P',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Following => "following",
            Self::Watching => "watching",
            Self::Leading => "leading",
            Self::Handling => "handling",
            Self::Blocked => "blocked",
            Self::SetAside => "set aside",
        }
    }
}

/// One thread, as it was seen last.
struct Thread {
    word: u64,
    /// When the word was first seen as it is now, in nanoseconds of the observer's clock.
    since: u64,
    seen: Seen,
    running: Option<&'static str>,
    strip: String,
    tally: Tally,
}

/// The name of a closure is that of the function that it stands in.
fn shown(name: &'static str) -> &'static str {
    match name.trim_end_matches("::{{closure}}") {
        "" => name,
        function => function,
    }
}

/// Counts of a thread at the last report.
#[derive(Clone, Copy, Default)]
struct Tally {
    terms: u64,
    handovers: u64,
    rescues: u64,
}

/// A handler that has been running for long.
pub(super) struct Blocked {
    pub(super) thread: usize,
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

/// See the module's documentation.
pub(super) struct Observer {
    blocked_after: u64,
    threads: Vec<Thread>,
    /// Looks that a strip may have: more are not kept, should reports stay away.
    most_looks: usize,
}

impl Observer {
    pub(super) fn new(blocked_after: u64, most_looks: usize) -> Self {
        Self { blocked_after, threads: Vec::new(), most_looks }
    }

    /// Looks at all threads once.
    pub(super) fn look(&mut self, shared: &Shared, now: u64) {
        let members = &shared.ready.members;
        if self.threads.is_empty() {
            self.threads = members.iter().map(|_| Thread::new(now)).collect();
        }
        for (thread, member) in self.threads.iter_mut().zip(members.iter()) {
            let (role, word) = member.observe();
            if word != thread.word || thread.seen == Seen::Away {
                (thread.word, thread.since) = (word, now);
                thread.running = None;
            }
            let lasts = now.saturating_sub(thread.since);
            thread.seen = match role {
                ThreadRole::Away => Seen::Away,
                ThreadRole::Follower => Seen::Following,
                ThreadRole::Watch => Seen::Watching,
                ThreadRole::Leader => Seen::Leading,
                ThreadRole::Parked => Seen::SetAside,
                ThreadRole::Processing | ThreadRole::Task if lasts >= self.blocked_after => {
                    Seen::Blocked
                }
                ThreadRole::Processing | ThreadRole::Task => Seen::Handling,
            };
            if matches!(thread.seen, Seen::Handling | Seen::Blocked) {
                thread.running = member.shown().map(shown);
            }
            if thread.strip.len() < self.most_looks {
                thread.strip.push(thread.seen.letter());
            }
        }
    }

    /// The handlers that block a thread now, the longest first.
    pub(super) fn blocked(&self, now: u64) -> Vec<Blocked> {
        let blocked = self.threads.iter().enumerate();
        let mut blocked: Vec<_> = blocked
            .filter(|(_, thread)| thread.seen == Seen::Blocked)
            .map(|(index, thread)| Blocked {
                thread: index,
                name: thread.running.unwrap_or_default(),
                seconds: thread.lasts(now),
            })
            .collect();
        blocked.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        blocked
    }

    /// What every thread did since the last report; threads that no host takes, and none has taken, are left out.
    pub(super) fn report(&mut self, shared: &Shared, now: u64) -> Vec<Json> {
        let members = shared.ready.members.iter();
        let threads = self.threads.iter_mut().zip(members).enumerate();
        threads
            .filter_map(|(index, (thread, member))| {
                let strip = core::mem::take(&mut thread.strip);
                let before = thread.tally;
                let tally = &member.tally;
                thread.tally = Tally {
                    terms: tally.terms.get(),
                    handovers: tally.handovers.get(),
                    rescues: tally.rescues.get(),
                };
                let is_a_place = index >= shared.ready.members.threads;
                if is_a_place && thread.seen == Seen::Away && thread.tally.terms == 0 {
                    return None;
                }
                Some(json!({
                    "thread": index,
                    "strip": strip,
                    "state": thread.seen.name(),
                    "seconds": thread.lasts(now),
                    "running": thread.running,
                    "terms": thread.tally.terms - before.terms,
                    "handovers": thread.tally.handovers - before.handovers,
                    "rescues": thread.tally.rescues - before.rescues,
                }))
            })
            .collect()
    }
}

impl Blocked {
    pub(super) fn json(&self) -> Json {
        json!({ "thread": self.thread, "name": self.name, "seconds": self.seconds })
    }
}

impl Thread {
    fn new(now: u64) -> Self {
        Self {
            word: 0,
            since: now,
            seen: Seen::Away,
            running: None,
            strip: String::new(),
            tally: Tally::default(),
        }
    }

    fn lasts(&self, now: u64) -> f64 {
        now.saturating_sub(self.since) as f64 / 1e9
    }
}
