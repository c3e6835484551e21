//! What the live page is told, each second, and who is told.
//!
//! ```text
//!   no viewer:  a look a second, for /health
//!   a viewer:   20 looks a second ──► each second one event ──► all viewers, and kept for who comes later
//! ```

use super::curves::{self, Curves};
use super::errors;
use super::figures::Figures;
use super::health::Health;
use super::observer::{Blocked, Observer};
use crate::error::Error;
use crate::http::Body;
use crate::metrics::Registry;
use crate::net::WriteStatus;
use crate::pool::progress::Found;
use crate::pool::{Shared, Stats};
use core::time::Duration;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Instant, SystemTime};

/// How many may watch at once; another one takes the place of one of them.
pub(super) const MOST_VIEWERS: usize = 8;
/// Between two looks while somebody watches.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Between two events.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Looks of an event: as many as a late tick may need.
const MOST_LOOKS: usize = 40;
/// Events that are kept, for the strip of who comes later.
const KEPT: usize = 30;
/// Events that a viewer may miss one after another.
const MOST_MISSED: u32 = 30;
/// What the kernel keeps for a viewer, of either kind of server: it would take megabytes for one that never reads, who
/// would be seen to miss events minutes later.
const KERNEL_KEEPS: usize = 32 << 10;
/// Tells a viewer that it should not come back by itself: another would have to go.
const REPLACED: &str = "event: replaced\ndata:\n\n";
/// Bridges that are shown, and histories.
const MOST_BRIDGES: usize = 16;
/// From when on it is said that something waits, or that nobody leads, in nanoseconds.
const LATE: u64 = 100_000_000;
/// Faults of an event.
const ERRORS: usize = 10;
/// Dead letters of an event: the newest.
const DEAD_LETTERS: usize = 50;

/// One who watches.
struct Viewer {
    body: Body,
    missed: u32,
}

/// See the module's documentation.
pub(super) struct Feed {
    pool: Weak<Shared>,
    name: String,
    registry: Registry,
    pub(super) observer: Observer,
    figures: Figures,
    curves: Curves,
    /// When the last sample of them was taken.
    sampled: Instant,
    viewers: Vec<Viewer>,
    kept: VecDeque<Arc<str>>,
    began: Instant,
    last: Instant,
    events: u64,
}

impl Feed {
    pub(super) fn new(pool: &Arc<Shared>, registry: Registry, blocked_after: u64) -> Self {
        let mut curves = Curves::default();
        // What the first sample is compared with.
        curves.take(registry.snapshot(), 1.0);
        Self {
            pool: Arc::downgrade(pool),
            name: pool.log.pool().to_owned(),
            registry,
            observer: Observer::new(blocked_after, MOST_LOOKS),
            figures: Figures::default(),
            curves,
            sampled: Instant::now(),
            viewers: Vec::new(),
            kept: VecDeque::new(),
            began: Instant::now(),
            last: Instant::now(),
            events: 0,
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.viewers.is_empty()
    }

    pub(super) fn viewers(&self) -> usize {
        self.viewers.len()
    }

    /// By the observer's clock, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// One look at all threads.
    pub(super) fn look(&mut self) {
        let now = self.now();
        if let Some(shared) = self.pool.upgrade() {
            self.observer.look(&shared, now);
            // So that what waits is seen to have waited when somebody asks.
            let _judgement = shared.progress.look(&shared);
        }
    }

    pub(super) fn health(&self) -> Health {
        Health::of(&self.pool, &self.observer, self.now())
    }

    /// Another one watches from now on, who gets at once what is kept.
    pub(super) fn admit(&mut self, mut body: Body) {
        // The first one: what was kept is of a time that others have watched.
        if !self.is_watched() {
            self.kept.clear();
            self.figures = Figures::since(self.registry.snapshot());
            self.last = Instant::now();
            let now = self.now();
            if let Some(shared) = self.pool.upgrade() {
                let _until_now = self.observer.report(&shared, now);
            }
        }
        body.conn().set_send_buffer(KERNEL_KEEPS);
        let kept: String = self.kept.iter().map(|text| &**text).collect();
        let written = match body.write(format!("retry: 2000\n\n{kept}").as_bytes()) {
            // More than may wait for one peer: it sees what comes from now on.
            Err(Error::Full { .. }) => body.write(b"retry: 2000\n\n"),
            written => written,
        };
        match written {
            Ok(WriteStatus::Unwanted) => drop(body.finish()),
            Ok(_) => {
                if self.viewers.len() >= MOST_VIEWERS {
                    self.make_room();
                }
                self.viewers.push(Viewer { body, missed: 0 });
            }
            Err(_) => {}
        }
    }

    /// The one that has missed most is sent away, the oldest of several: viewers that never read keep nobody out.
    fn make_room(&mut self) {
        let missed = self.viewers.iter().map(|viewer| viewer.missed).max();
        let Some(at) = self.viewers.iter().position(|it| Some(it.missed) == missed) else { return };
        let mut viewer = self.viewers.remove(at);
        // One that does not read is cut off.
        if viewer.missed == 0 && viewer.body.write(REPLACED.as_bytes()).is_ok() {
            let _gone = viewer.body.finish();
        }
    }

    /// No more is told.
    pub(super) fn end(&mut self) {
        for viewer in self.viewers.drain(..) {
            // It may have gone.
            let _gone = viewer.body.finish();
        }
    }

    /// Tells all viewers what has come since the last time.
    pub(super) fn tick(&mut self) {
        self.look();
        self.sample();
        if !self.is_watched() {
            self.last = Instant::now();
            return;
        }
        let text: Arc<str> = self.event().into();
        self.viewers.retain_mut(|viewer| viewer.tell(&text));
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(text);
    }

    /// A sample of the curves, if one is due.
    fn sample(&mut self) {
        let since = self.sampled.elapsed();
        // A tick may come a little early.
        if since + TICK / 2 >= curves::STEP {
            self.sampled = Instant::now();
            self.curves.take(self.registry.snapshot(), since.as_secs_f64());
        }
    }

    pub(super) fn curves(&self) -> Json {
        self.curves.json()
    }

    /// One event in the format of server-sent events; JSON has no line end in it.
    fn event(&mut self) -> String {
        let seconds = self.last.elapsed().as_secs_f64().max(1e-3);
        self.last = Instant::now();
        self.events += 1;
        let (now, health) = (self.now(), self.health());
        let shared = self.pool.upgrade();
        let threads = shared.as_ref().map(|shared| self.observer.report(shared, now));
        let sets = shared.iter().flat_map(|shared| Stats::of(shared).sets);
        let leaders: Vec<_> = sets.map(|set| set.leader).collect();
        let blocked = self.observer.blocked(now);
        let found = shared.as_ref().map(|shared| shared.progress.find(shared));
        let summary = summary(&threads, &leaders, &blocked, found.as_ref());
        let leaderless = found.as_ref().map(|found| seconds_of(&found.leaderless));
        let late = found.as_ref().and_then(|found| found.late);
        let late =
            late.map(|late| json!({ "what": late.what, "seconds": seconds_of(&[late.nanos])[0] }));
        let blocked: Vec<_> = blocked.iter().map(Blocked::json).collect();
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut figures = self.figures.since_last(self.registry.snapshot(), seconds, now);
        let dead = shared.as_ref().and_then(|shared| dead_letters(shared, time));
        if let Some(tables) = figures["tables"].as_array_mut() {
            tables.extend(dead);
        }
        let event = json!({
            "time": time,
            "pool": self.name,
            "seconds": seconds,
            "threads": threads,
            "summary": summary,
            "leaders": leaders,
            "leaderless": leaderless,
            "late": late,
            "overdue_timers": found.map(|found| found.overdue),
            "blocked": blocked,
            "figures": figures,
            "bridges": shared.as_ref().map(bridges),
            "histories": shared.as_ref().map(histories),
            "errors": errors::newest(ERRORS),
            "health": health.json(),
            "viewers": self.viewers.len(),
        });
        format!("id: {}\ndata: {event}\n\n", self.events)
    }
}

fn seconds_of(nanos: &[u64]) -> Vec<f64> {
    nanos.iter().map(|nanos| *nanos as f64 / 1e9).collect()
}

/// How the pool is, in one sentence: who leads, who is blocked, what is late.
fn summary(
    threads: &Option<Vec<Json>>,
    leaders: &[Option<usize>],
    blocked: &[Blocked],
    found: Option<&Found>,
) -> String {
    let (Some(threads), Some(found)) = (threads, found) else { return "the pool has ended".into() };
    let mut parts = Vec::new();
    let led = leaders.iter().flatten().count();
    match leaders {
        [Some(thread)] => parts.push(format!("thread {thread} leads")),
        _ if led == leaders.len() => parts.push(format!("all {led} handle sets are led")),
        [_] => {}
        _ => parts.push(format!("{led} of {} handle sets are led", leaders.len())),
    }
    let away = threads.iter().filter(|thread| thread["state"] == "away").count();
    if let Some(longest) = blocked.first() {
        let (some, all, name) = (blocked.len(), threads.len() - away, longest.name);
        let name = if name.is_empty() { "a handler" } else { name };
        parts.push(format!("{some} of {all} blocked, by {name} for {:.1} s", longest.seconds));
    } else {
        let handling = threads.iter().filter(|thread| thread["state"] == "handling").count();
        parts.push(format!("{handling} of {} at work", threads.len() - away));
    }
    match found.leaderless.iter().max().filter(|_| led < leaders.len()) {
        Some(nanos) if *nanos >= LATE => {
            parts.push(format!("no leader for {:.1} s", *nanos as f64 / 1e9));
        }
        Some(_) if leaders.len() == 1 => parts.insert(0, "leadership changes hands".into()),
        _ => {}
    }
    if let Some(late) = found.late.filter(|late| late.nanos >= LATE) {
        parts.push(format!("{} has waited for {:.1} s", late.what, late.nanos as f64 / 1e9));
    }
    parts.join(" · ")
}

/// The bridges of a pool, as people see them.
pub(super) fn bridges(pool: &Arc<Shared>) -> Vec<Json> {
    pool.end.parts().filter_map(|part| part.shown()).take(MOST_BRIDGES).collect()
}

/// The newest of all hubs, the newest first, as a table; `now` is in milliseconds since 1970. None: there are none.
fn dead_letters(pool: &Arc<Shared>, now: u64) -> Option<Json> {
    let mut all: Vec<Json> = Vec::new();
    let held: usize = pool.end.parts().map(|part| part.show_dead_letters(&mut all)).sum();
    all.sort_by_key(|letter| core::cmp::Reverse(letter["died"].as_u64()));
    all.truncate(DEAD_LETTERS);
    let text = |letter: &Json, name: &str| letter[name].as_str().unwrap_or_default().to_owned();
    let rows = all.iter().map(|letter| {
        let age = now.saturating_sub(letter["died"].as_u64().unwrap_or(now)) as f64 / 1e3;
        let mut cause = text(letter, "reason");
        if let Some(failure) = letter["failure"].as_str() {
            cause = format!("{cause}: {failure}");
        }
        let of = format!("{} letter {}", text(letter, "pattern"), letter["number"]);
        json!({ "name": text(letter, "key"), "cells": [age, letter["attempts"], cause, of] })
    });
    let rows: Vec<_> = rows.collect();
    let columns = json!([
        { "name": "age", "is_time": true },
        { "name": "attempts", "is_time": false },
        { "name": "cause", "is_time": false, "is_text": true },
        { "name": "for", "is_time": false, "is_text": true },
    ]);
    let left_out = held.saturating_sub(rows.len());
    let table = json!({
        "name": "dead letters", "columns": columns, "rows": rows, "left_out": left_out, "ascending": true,
    });
    (held > 0).then_some(table)
}

fn histories(pool: &Arc<Shared>) -> Vec<Json> {
    pool.end.parts().flat_map(|part| part.shown_histories()).take(MOST_BRIDGES).collect()
}

impl Viewer {
    /// False: it is gone, or has missed too much.
    fn tell(&mut self, text: &str) -> bool {
        // No second event waits for it, however large what a server queues for others may be.
        let told = match self.body.conn().queued() {
            0 => self.body.write(text.as_bytes()).ok(),
            _ => None,
        };
        match told {
            Some(_) => self.missed = 0,
            None if self.body.write(b"").is_err() => return false,
            None => self.missed += 1,
        }
        self.missed < MOST_MISSED
    }
}
