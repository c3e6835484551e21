//! The timeline: what each thread of a pool did, span by span, for Perfetto (<https://ui.perfetto.dev>) and
//! `chrome://tracing`.
//!
//! Threads record by themselves (`trace/recorder.rs`). Here a recording is started and finished, and its records become
//! events of the [Trace Event format], in microseconds since the start. A wake is tied to the span that it ended: the
//! first one of the woken thread, of those in which it waits, that ends after it.
//!
//! [Trace Event format]: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

use super::Pool;
use super::context::blocking;
use super::members::{Member, ThreadRole};
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::{AcqRel, Release};
use crate::sys::clock;
use crate::trace::{NO_THREAD, Name, Record, Records, What};
use core::cmp::Reverse;
use core::fmt::{self, Write};
use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

/// Records that a thread keeps, of 32 bytes each.
pub(crate) const KEPT_RECORDS: usize = 1 << 16;
/// The longest time that a thread sleeps for a trace.
const LONGEST: Duration = Duration::from_secs(3600);
const KEPT_ALLOWED: RangeInclusive<usize> = 64..=1 << 24;

/// A pool that records what its threads do; see [`Pool::record`]. Dropped, it is stopped.
#[must_use = "what is recorded is in what `finish` gives"]
pub struct Recording {
    shared: Arc<Shared>,
    began: u64,
    is_over: bool,
}

/// What a recording has shown.
pub struct Trace {
    pool: String,
    began: u64,
    ended: u64,
    tracks: Vec<Track>,
}

/// What one thread did.
struct Track {
    name: String,
    records: Records,
}

impl Pool {
    /// Starts to record what each thread does, for a timeline: terms of leadership with their harvests, waits, handlers
    /// and tasks by name with how long they took, parking, the watch, and who woke whom, took over leadership, stepped
    /// in, or took over what another had claimed.
    ///
    /// A thread keeps its last 65,536 records (2 MiB); older ones are counted. Recording costs a few
    /// readings of the clock and a lock that no other thread wants for each handler. A pool that is not recorded pays two
    /// relaxed loads for each.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pool is recorded already; [`Error::ShutDown`], [`Error::Forked`].
    pub fn record(&self) -> Result<Recording> {
        self.record_up_to(KEPT_RECORDS)
    }

    /// As [`record`](Self::record); a thread keeps its last `records`, 64 to 16,777,216, of 32 bytes each.
    ///
    /// # Errors
    /// As `record`; and [`Error::Invalid`] names the range.
    pub fn record_up_to(&self, records: usize) -> Result<Recording> {
        Recording::of(self.shared(), records)
    }

    /// Records for as long as `time`, and gives what that has shown. The calling thread sleeps meanwhile; on a thread of
    /// the pool, another one leads.
    ///
    /// ```
    /// use paceline::Pool;
    /// use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new()?;
    /// let trace = pool.trace(Duration::from_millis(10))?;
    /// # let path = std::env::temp_dir().join(format!("paceline-trace-{}.json", std::process::id()));
    /// std::fs::write(&path, trace.to_json())?; // https://ui.perfetto.dev opens it
    /// # std::fs::remove_file(path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`record`](Self::record); and [`Error::Invalid`] for a time of more than one hour.
    pub fn trace(&self, time: Duration) -> Result<Trace> {
        self.trace_up_to(time, KEPT_RECORDS)
    }

    /// See [`record_up_to`](Self::record_up_to).
    pub(crate) fn trace_up_to(&self, time: Duration, records: usize) -> Result<Trace> {
        if time > LONGEST {
            return Err(Error::invalid("time", format!("{time:?}"), "up to 1 hour"));
        }
        let recording = self.record_up_to(records)?;
        blocking(|_| false, || std::thread::sleep(time))?;
        Ok(recording.finish())
    }
}

impl Recording {
    /// See [`Pool::record_up_to`].
    pub(crate) fn of(shared: &Arc<Shared>, records: usize) -> Result<Self> {
        if !KEPT_ALLOWED.contains(&records) {
            let (least, most) = (KEPT_ALLOWED.start(), KEPT_ALLOWED.end());
            return Err(Error::invalid("records", records, format!("{least} to {most}")));
        }
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        if shared.end.is_stopping() {
            return Err(Error::ShutDown);
        }
        Self::start(shared, records)
    }

    fn start(shared: &Arc<Shared>, records: usize) -> Result<Self> {
        let members = &shared.ready.members;
        if members.recorded.swap(true, AcqRel) {
            let value = "called while the pool is recorded";
            return Err(Error::invalid("record", value, "one recording of a pool at a time"));
        }
        let recording = Self { shared: Arc::clone(shared), began: clock::now(), is_over: false };
        for (index, member) in members.iter().enumerate() {
            let look = member.doing.look();
            let is_busy = match member.role() {
                ThreadRole::Away => false,
                ThreadRole::Leader => recording.is_waiting(index),
                _ => true,
            };
            member.doing.recorder.start(recording.began, records, is_busy, look.name);
        }
        members.outside.start(recording.began, records, false, Name::NONE);
        Ok(recording)
    }

    /// Whether a leader waits at its source.
    fn is_waiting(&self, member: usize) -> bool {
        let sets = &self.shared.ready.handles.sets;
        sets.iter().any(|set| set.leader() == Some(member) && set.source.is_armed())
    }

    /// Ends the recording. Handlers that run, and threads that wait, are in it until now.
    pub fn finish(mut self) -> Trace {
        let tracks = self.stop();
        let ended = clock::now();
        Trace { ended, pool: self.shared.log.pool().to_owned(), began: self.began, tracks }
    }

    fn stop(&mut self) -> Vec<Track> {
        self.is_over = true;
        let members = &self.shared.ready.members;
        let outside = members.outside.finish(None, Name::NONE);
        let tracks = members.iter().enumerate().filter_map(|(index, member)| {
            let name = match index.checked_sub(members.threads) {
                None => format!("thread {index}"),
                Some(host) => format!("host {host}"),
            };
            Some(Track { name, records: finish(member)? })
        });
        let mut tracks: Vec<_> = tracks.collect();
        let outside = outside.map(|records| Track { name: "outside".into(), records });
        tracks.extend(outside);
        // Release: the next recording finds all of this done.
        members.recorded.store(false, Release);
        tracks
    }
}

fn finish(member: &Member) -> Option<Records> {
    let open = match member.role() {
        ThreadRole::Away => None,
        ThreadRole::Leader => Some(What::Wait),
        ThreadRole::Follower => Some(What::Park),
        ThreadRole::Watch => Some(What::Watch),
        ThreadRole::Parked => Some(What::Aside),
        ThreadRole::Processing | ThreadRole::Task => Some(What::Handle),
    };
    member.doing.recorder.finish(open, member.doing.look().name)
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop();
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("pool", &self.shared.log.pool()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("records", &self.records())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// How many records there are.
    pub fn records(&self) -> usize {
        self.tracks.iter().map(|track| track.records.len()).sum()
    }

    /// How many records have gone for newer ones.
    pub fn lost(&self) -> u64 {
        self.tracks.iter().map(|track| track.records.lost()).sum()
    }

    /// How long was recorded.
    pub fn recorded(&self) -> Duration {
        Duration::from_nanos(self.ended.saturating_sub(self.began))
    }

    /// The end of that of which all records of all threads are here: less, if a busy thread has replaced its older ones.
    /// [`Pool::record_up_to`] has threads keep more.
    pub fn whole(&self) -> Duration {
        let since = self.tracks.iter().filter_map(|track| track.records.whole_since()).max();
        Duration::from_nanos(self.ended.saturating_sub(since.unwrap_or(0).max(self.began)))
    }

    /// What of it is here, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let (recorded, whole) = (self.recorded().as_secs_f64(), self.whole().as_secs_f64());
        match self.lost() {
            0 => format!("all of {recorded:.3} s"),
            lost => format!(
                "only the last {whole:.3} s of {recorded:.3} s are whole: {lost} older records were replaced"
            ),
        }
    }

    /// As a JSON object of the Trace Event format, which <https://ui.perfetto.dev> and `chrome://tracing` open. Each
    /// thread is a track; its number is that of [`Stats::threads`](super::Stats::threads) plus one. `otherData` has the
    /// number of records, of those that were lost, how many seconds were [recorded](Self::recorded), how many of them are
    /// [whole](Self::whole), and a sentence of that. A thread that has lost records begins with a span that says so.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut events = Events { began: self.began, list: Vec::new(), flows: 0 };
        let ends: Vec<_> = self.tracks.iter().map(|track| ends_of_waits(&track.records)).collect();
        for (index, track) in self.tracks.iter().enumerate() {
            events.add_gap(index, &track.records);
            for record in track.records.iter() {
                events.add(index, record, &track.name);
                if record.what == What::Wake {
                    events.add_flow(index, record, ends.get(usize::from(record.other)));
                }
            }
        }
        events.list.sort_by_key(|event| (event.at, Reverse(event.lasted)));
        let pool = quoted(&format!("pool {}", self.pool));
        let mut json = format!(
            r#"{{"displayTimeUnit":"ns","otherData":{{"records":{},"lost":{},"recorded_seconds":{},"whole_seconds":{},"summary":{}}},"traceEvents":["#,
            self.records(),
            self.lost(),
            self.recorded().as_secs_f64(),
            self.whole().as_secs_f64(),
            quoted(&self.summary()),
        );
        let _ = write!(
            json,
            r#"{{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{{"name":{pool}}}}}"#
        );
        for (index, track) in self.tracks.iter().enumerate() {
            let (tid, name) = (index + 1, quoted(&track.name));
            let _ = write!(
                json,
                r#",{{"ph":"M","name":"thread_name","pid":1,"tid":{tid},"args":{{"name":{name}}}}}"#
            );
        }
        for event in events.list {
            json.push(',');
            json.push_str(&event.json);
        }
        json.push_str("]}");
        json
    }
}

/// When the waits of a thread ended, in order.
fn ends_of_waits(records: &Records) -> Vec<u64> {
    let is_wait = |what| matches!(what, What::Wait | What::Park | What::Watch | What::Aside);
    let waits = records.iter().filter(|record| is_wait(record.what));
    let mut ends: Vec<_> = waits.map(|record| record.at + record.lasted).collect();
    ends.sort_unstable();
    ends
}

/// In quotes, with escapes.
fn quoted(text: &str) -> String {
    // Into memory, of a text: it cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

struct Event {
    at: u64,
    lasted: u64,
    json: String,
}

struct Events {
    began: u64,
    list: Vec<Event>,
    flows: usize,
}

impl Events {
    fn add(&mut self, track: usize, record: &Record, thread: &str) {
        // What was begun in an earlier recording is in this one from its start.
        let at = record.at.max(self.began);
        let lasted = (record.at + record.lasted).saturating_sub(at);
        let (category, name) = named(record);
        let name = quoted(name);
        let head = self.head(track, at);
        let shape = match record.what.is_instant() {
            // What an arrow begins at is a slice, and threads outside have no other.
            true if thread == "outside" => r#""ph":"X","dur":0.001"#.to_owned(),
            true => r#""ph":"i","s":"t""#.to_owned(),
            false => format!(r#""ph":"X","dur":{}"#, Micros(lasted)),
        };
        let args = arguments(record);
        let json =
            format!(r#"{{{shape},"cat":"{category}","name":{name},{head},"args":{{{args}}}}}"#);
        self.list.push(Event { at, lasted, json });
    }

    /// Where the records of a thread were that have gone for newer ones.
    fn add_gap(&mut self, track: usize, records: &Records) {
        let first = records.iter().map(|record| record.at).min();
        let (Some(_), Some(first)) = (records.whole_since(), first) else { return };
        let lasted = first.saturating_sub(self.began);
        let (head, lost) = (self.head(track, self.began), records.lost());
        let json = format!(
            r#"{{"ph":"X","dur":{},"cat":"lost","name":"{lost} older records were replaced",{head},"args":{{"lost":{lost}}}}}"#,
            Micros(lasted)
        );
        self.list.push(Event { at: self.began, lasted, json });
    }

    /// An arrow from who wakes to the end of the wait that this ends. None is known if that has gone.
    fn add_flow(&mut self, track: usize, record: &Record, ends: Option<&Vec<u64>>) {
        let Some(ends) = ends else { return };
        let after = ends.partition_point(|&end| end < record.at);
        let Some(&end) = ends.get(after) else { return };
        self.flows += 1;
        let id = self.flows;
        let (from, to) = (self.head(track, record.at), self.head(record.other.into(), end));
        let shared = format!(r#""cat":"wake","name":"wake","id":{id}"#);
        let json = format!(r#"{{"ph":"s",{shared},{from}}}"#);
        self.list.push(Event { at: record.at, lasted: 0, json });
        let json = format!(r#"{{"ph":"f","bp":"e",{shared},{to}}}"#);
        self.list.push(Event { at: end, lasted: 0, json });
    }

    fn head(&self, track: usize, at: u64) -> String {
        format!(r#""ts":{},"pid":1,"tid":{}"#, Micros(at.saturating_sub(self.began)), track + 1)
    }
}

/// Nanoseconds, as microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Category and name.
fn named(record: &Record) -> (&'static str, &'static str) {
    let text = |otherwise| record.name.text().unwrap_or(otherwise);
    match record.what {
        What::Lead => ("lead", "lead"),
        What::Wait => ("wait", "wait"),
        What::Handle => ("handle", text("task")),
        What::Run => ("run", text("run")),
        What::Park => ("park", "park"),
        What::Watch => ("watch", "watch"),
        What::Aside => ("park", "set aside"),
        What::Wake => ("wake", "wake"),
        What::HandOver => ("hand-over", "hand-over"),
        What::Rescue => ("rescue", "rescue"),
        What::Steal => ("steal", "steal"),
    }
}

fn arguments(record: &Record) -> String {
    let other = |key: &str| match record.other {
        NO_THREAD => String::new(),
        other => format!(r#""{key}":{other}"#),
    };
    match record.what {
        What::Lead => format!(r#""harvest":{}"#, record.number),
        What::Wake => other("woken"),
        What::HandOver => other("before"),
        What::Steal => other("from"),
        What::Rescue => match record.name.text() {
            Some(name) => format!(r#"{},"runs":{}"#, other("held_up"), quoted(name)),
            None => other("held_up"),
        },
        _ => String::new(),
    }
}
